/* SPDX-License-Identifier: MIT
 * column_sum: of a value seen as [outer, count, inner] the sums over the middle, [outer, inner], added in their order
 * by one thread each (on CUDA by the warps of a block, joined in theirs). The gradient of what is repeated: of a bias,
 * of broadcast matrices.
 */
#include "tensor/operators/column_sum.h"

#include <string.h>

#include "tensor/operators.h"
#include "tensor/operators/joined.h"
#include "tensor/shape.h"

enum { OUTER, COUNT, INNER }; /* sizes */

/* What the kernel gets as one scalar. */
typedef struct column_shape {
  size_t outer, count, inner;
} column_shape;

#define COLUMN_GRAIN ((rondo_grain){64, 32})

RONDO_INLINE void add_row(const float *restrict x, float *restrict sums, size_t columns) {
  RONDO_EACH_LANE(j, lane, columns, sums[j] += x[j]);
}

/* Sums of at most a chunk of neighbouring columns, `first` the first one's uppermost element. */
RONDO_INLINE void sum_columns(rondo_type type, const column_shape *shape, const void *x, size_t first, size_t columns,
                              float *sums) {
  float room[RONDO_CHUNK];
  memset(sums, 0, columns * sizeof *sums);
  for (size_t row = 0; row < shape->count; row++)
    add_row(rondo_load_chunk(type, x, first + row * shape->inner, columns, room), sums, columns);
}

RONDO_INLINE void sum_span(rondo_type type, const column_shape *shape, const void *x, void *y, rondo_span span) {
  float room[RONDO_CHUNK];
  for (size_t at = span.first, length; at < span.last; at += length) {
    const size_t in_row = shape->inner - at % shape->inner;
    length = span.last - at < in_row ? span.last - at : in_row;
    if (length > RONDO_CHUNK) length = RONDO_CHUNK;
    float *sums = rondo_chunk_of(type, y, at, room);
    const size_t first = at / shape->inner * shape->count * shape->inner + at % shape->inner;
    sum_columns(type, shape, x, first, length, sums);
    rondo_store_chunk(type, y, at, length, sums);
  }
}

RONDO_VECTORISED_KERNEL(column_sum_cpu) {
  const column_shape *shape = args[0];
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_span span = rondo_block_span(block, blocks, shape->outer * shape->inner, RONDO_LANES);
    sum_span(type, shape, RONDO_ARG(const void *, 1), RONDO_ARG(void *, 2), span);
  }
}

/* Of joined ones the shapes, behind the table. */
typedef struct column_shapes {
  column_shape of[RONDO_MOST_JOINED];
} column_shapes;

RONDO_VECTORISED_KERNEL(column_sum_joined_cpu) {
  const column_shapes *shapes = args[1];
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_joined_share share = rondo_joined_share_of(args[0], block);
    const size_t at = 2 + 2 * (size_t)share.operation;
    sum_span(type, &shapes->of[share.operation], RONDO_ARG(const void *, at + 1), RONDO_ARG(void *, at), share.span);
  }
}

RONDO_TYPED_KERNEL(column_sum, column_sum, RONDO_SCALAR(column_shape), RONDO_READS, RONDO_WRITES);

#define POINTERS RONDO_WRITES, RONDO_READS

static const rondo_parameter joined_parameters[] = {RONDO_SCALAR(rondo_joined_table), RONDO_SCALAR(column_shapes),
                                                    RONDO_JOINED_PARAMETERS(POINTERS)};

RONDO_TYPED_KERNEL_LIST(column_sum_joined, column_sum, joined_parameters);

static rondo_status infer_column_sum(const rondo_program *program, const rondo_operation *operation,
                                     rondo_shape *results) {
  const size_t *sizes = operation->attributes.sizes;
  RONDO_TRY(rondo_require_float(program, operation, 0, RONDO_ANY_RANK));
  const rondo_shape *value = rondo_operation_input(program, operation, 0);
  if (rondo_shape_elements(value) != sizes[OUTER] * sizes[COUNT] * sizes[INNER]) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "it has not %zu x %zu x %zu elements",
                                sizes[OUTER], sizes[COUNT], sizes[INNER]);
  }
  results[0] = rondo_shape_matrix(value->type, sizes[OUTER], sizes[INNER]);
  return RONDO_OK;
}

static column_shape shape_of(const rondo_operation *operation) {
  const size_t *sizes = operation->attributes.sizes;
  return (column_shape){sizes[OUTER], sizes[COUNT], sizes[INNER]};
}

static rondo_status emit_joined(rondo_emitter *emitter, const rondo_operation *const *operations, uint32_t count) {
  static const uint32_t values[] = {RONDO_JOINED_RESULT(0), 0};
  const rondo_type type = rondo_emit_shape(emitter, operations[0]->inputs[0])->type;
  const rondo_joined_kernel kernel = {&column_sum_joined_code[type], values, 2, 0, COLUMN_GRAIN};
  column_shapes shapes = {.of = {{0}}};
  for (uint32_t i = 0; i < count; i++) shapes.of[i] = shape_of(operations[i]);
  return rondo_emit_joined(emitter, &kernel, operations, count, RONDO_ARGS(&shapes));
}

static const rondo_join column_sum_join = {
    .most = RONDO_MOST_JOINED, .is_typed = true, .is_varied = true, .emit = emit_joined};

static rondo_status emit_column_sum(rondo_emitter *emitter, const rondo_operation *operation) {
  const column_shape shape = shape_of(operation);
  const void *x = rondo_emit_address(emitter, operation->inputs[0]);
  void *y = rondo_emit_address(emitter, operation->results[0]);
  return rondo_emit_kernel(emitter, &column_sum_code[rondo_emit_shape(emitter, operation->inputs[0])->type],
                           rondo_emit_grid(emitter, shape.outer * shape.inner, COLUMN_GRAIN),
                           RONDO_ARGS(&shape, &x, &y));
}

const rondo_operator rondo_operator_column_sum = {.name = "column_sum",
                                                  .inputs = {"value"},
                                                  .required = 1,
                                                  .result_count = 1,
                                                  .infer = infer_column_sum,
                                                  .emit = emit_column_sum,
                                                  .join = &column_sum_join};

/* Broadcasting undone ---------------------------------------------------------------------------------------------- */

static size_t product_of(const size_t *dims, size_t count) {
  size_t product = 1;
  for (size_t i = 0; i < count; i++) product *= dims[i];
  return product;
}

/* Sums over the dimensions first <= i < last, which become 1. */
static rondo_status add_sum(rondo_program *program, rondo_shape *shape, uint32_t first, uint32_t last,
                            uint32_t *value) {
  const rondo_attributes attributes = {
      .sizes = {product_of(shape->dims, first), product_of(shape->dims + first, last - first),
                product_of(shape->dims + last, shape->rank - last)},
      .size_count = 3};
  for (uint32_t i = first; i < last; i++) shape->dims[i] = 1;
  return rondo_program_add(program, &rondo_operator_column_sum, value, 1, &attributes, value);
}

/* To a rank that is not larger. */
static rondo_status add_sums(rondo_program *program, rondo_shape *shape, const rondo_shape *to, uint32_t *value) {
  const uint32_t missing = shape->rank - to->rank;
  for (uint32_t first = 0, last; first < shape->rank; first = last + 1) {
    last = first;
    while (last < shape->rank && shape->dims[last] != (last < missing ? 1 : to->dims[last - missing])) last++;
    if (last > first) RONDO_TRY(add_sum(program, shape, first, last, value));
  }
  return RONDO_OK;
}

rondo_status rondo_program_add_sum_like(rondo_program *program, uint32_t value, uint32_t like, uint32_t *out_value) {
  const rondo_shape to = *rondo_program_shape(program, like);
  rondo_shape shape = *rondo_program_shape(program, value);
  rondo_attributes attributes = {.size_count = to.rank};
  *out_value = value;
  if (rondo_shape_same(&shape, &to)) return RONDO_OK;
  if (rondo_shape_elements(&shape) != rondo_shape_elements(&to)) RONDO_TRY(add_sums(program, &shape, &to, out_value));
  memcpy(attributes.sizes, to.dims, to.rank * sizeof *to.dims);
  return rondo_program_add(program, &rondo_operator_reshape, out_value, 1, &attributes, out_value);
}
