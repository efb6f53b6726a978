/* SPDX-License-Identifier: MIT
 * column_sum: of a matrix the sums of its columns, added in the order of the rows by one thread each (on CUDA by the
 * warps of a block, joined in theirs). The gradient of a bias: what sum gives over the rows, but those of several
 * layers are one kernel.
 */
#include <string.h>

#include "tensor/operators.h"
#include "tensor/operators/joined.h"
#include "tensor/shape.h"

/* What the kernel gets as one scalar. */
typedef struct column_shape {
  size_t rows, columns;
} column_shape;

#define COLUMN_GRAIN ((rondo_grain){64, 32})

RONDO_INLINE void add_row(const float *restrict x, float *restrict sums, size_t columns) {
  RONDO_EACH_LANE(j, lane, columns, sums[j] += x[j]);
}

/* Sums of at most a chunk of neighbouring columns. */
RONDO_INLINE void sum_columns(rondo_type type, const column_shape *shape, const void *x, size_t first, size_t count,
                              float *sums) {
  float room[RONDO_CHUNK];
  memset(sums, 0, count * sizeof *sums);
  for (size_t row = 0; row < shape->rows; row++)
    add_row(rondo_load_chunk(type, x, first + row * shape->columns, count, room), sums, count);
}

RONDO_INLINE void sum_span(rondo_type type, const column_shape *shape, const void *x, void *y, rondo_span span) {
  float room[RONDO_CHUNK];
  RONDO_EACH_CHUNK(at, length, span.first, span.last) {
    float *sums = rondo_chunk_of(type, y, at, room);
    sum_columns(type, shape, x, at, length, sums);
    rondo_store_chunk(type, y, at, length, sums);
  }
}

RONDO_VECTORISED_KERNEL(column_sum_cpu) {
  const column_shape *shape = args[0];
  const rondo_span span = rondo_blocks_span(blocks, shape->columns, RONDO_LANES);
  sum_span(type, shape, RONDO_ARG(const void *, 1), RONDO_ARG(void *, 2), span);
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
  RONDO_TRY(rondo_require_float(program, operation, 0, 2));
  const rondo_shape *value = rondo_operation_input(program, operation, 0);
  results[0] = rondo_shape_vector(value->type, value->dims[1]);
  return RONDO_OK;
}

static column_shape shape_of(const rondo_emitter *emitter, const rondo_operation *operation) {
  const size_t *dims = rondo_emit_shape(emitter, operation->inputs[0])->dims;
  return (column_shape){dims[0], dims[1]};
}

static rondo_status emit_joined(rondo_emitter *emitter, const rondo_operation *const *operations, uint32_t count) {
  static const uint32_t values[] = {RONDO_JOINED_RESULT(0), 0};
  const rondo_type type = rondo_emit_shape(emitter, operations[0]->inputs[0])->type;
  const rondo_joined_kernel kernel = {&column_sum_joined_code[type], values, 2, 0, COLUMN_GRAIN};
  column_shapes shapes = {.of = {{0}}};
  for (uint32_t i = 0; i < count; i++) shapes.of[i] = shape_of(emitter, operations[i]);
  return rondo_emit_joined(emitter, &kernel, operations, count, RONDO_ARGS(&shapes));
}

static const rondo_join column_sum_join = {.most = RONDO_MOST_JOINED, .is_typed = true, .emit = emit_joined};

static rondo_status emit_column_sum(rondo_emitter *emitter, const rondo_operation *operation) {
  const column_shape shape = shape_of(emitter, operation);
  const void *x = rondo_emit_address(emitter, operation->inputs[0]);
  void *y = rondo_emit_address(emitter, operation->results[0]);
  return rondo_emit_kernel(emitter, &column_sum_code[rondo_emit_shape(emitter, operation->inputs[0])->type],
                           rondo_emit_grid(emitter, shape.columns, COLUMN_GRAIN), RONDO_ARGS(&shape, &x, &y));
}

const rondo_operator rondo_operator_column_sum = {.name = "column_sum",
                                                  .inputs = {"value"},
                                                  .required = 1,
                                                  .result_count = 1,
                                                  .infer = infer_column_sum,
                                                  .emit = emit_column_sum,
                                                  .join = &column_sum_join};
