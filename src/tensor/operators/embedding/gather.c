/* SPDX-License-Identifier: MIT
 * gather and index_select: elements along a dimension, selected by indices of the result's shape or by one shared list.
 * The gradient adds, for each element of the value, the elements of dy that were read from it, in their order along the
 * dimension and in F32. One thread computes an element, so there are no atomics. A wrong index reads element 0, and its
 * gradient is added to element 0.
 *
 * gather_gradient computes the whole gradient. gather_add adds a few elements to an existing gradient in place.
 * Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/common/composition.h"
#include "tensor/operators/embedding/gather.h"
#include "tensor/operators/shape/strided.h"

enum { VALUE, INDICES };  /* inputs */
enum { DIMENSION, SIZE }; /* sizes; SIZE: of the value along the dimension, for the gradient */
enum { SHARES };          /* flags: there is one list of indices, [picked] */

/* gather_add compares each index along the dimension with all others, so their number is limited. */
#define MAX_ADDED 64

/* A scalar argument of the kernels; without padding. The value is [outer, size, inner], the result [outer, picked,
 * inner]. */
typedef struct pick_shape {
  size_t outer, size, picked, inner, unit_bytes;
  uint32_t wide_indices, shares;
} pick_shape;

static pick_shape shape_of(const rondo_shape *result, const rondo_shape *indices, const rondo_attributes *attributes,
                           size_t size) {
  const size_t dimension = attributes->sizes[DIMENSION];
  const pick_shape shape = {.outer = rondo_shape_elements_of(result, 0, dimension),
                            .size = size,
                            .picked = result->dims[dimension],
                            .inner = rondo_shape_elements_of(result, dimension + 1, result->rank),
                            .unit_bytes = rondo_type_bytes(result->type),
                            .wide_indices = indices->type == RONDO_I64,
                            .shares = attributes->flags[SHARES]};
  assert(dimension < result->rank && shape.outer * shape.picked * shape.inner == rondo_shape_elements(result));
  return shape;
}

/* The position of the index for element `inside` of row `row`, out of outer x picked. */
static size_t index_position(const pick_shape *shape, size_t row, size_t inside) {
  return shape->shares != 0 ? row % shape->picked : row * shape->inner + inside;
}

/* Forward ---------------------------------------------------------------------------------------------------------- */

/* Copies the elements of a row, out of outer x picked, that one index selects. */
static void pick(const pick_shape *shape, const char *x, const void *indices, size_t row, size_t inside, size_t count,
                 char *y, rondo_index_cell cell) {
  const size_t position = index_position(shape, row, inside), bytes = shape->unit_bytes;
  const int64_t index = rondo_index_at(indices, shape->wide_indices, position);
  const size_t at = rondo_check_index(cell, position, index, shape->size) ? (size_t)index : 0;
  const size_t from = (row / shape->picked * shape->size + at) * shape->inner + inside;
  memcpy(y + (row * shape->inner + inside) * bytes, x + from * bytes, count * bytes);
}

static void gather_cpu(rondo_blocks blocks, void *const *args) {
  const pick_shape *shape = args[0];
  const char *x = RONDO_ARG(const char *, 1);
  const void *indices = RONDO_ARG(const void *, 2);
  char *y = RONDO_ARG(char *, 3);
  const rondo_index_cell cell = rondo_begin_check(blocks, args + 4);
  const size_t together = shape->shares != 0 ? shape->inner : 1;
  RONDO_EACH_ITEM(row, blocks, shape->outer * shape->picked) {
    for (size_t i = 0; i < shape->inner; i += together) pick(shape, x, indices, row, i, together, y, cell);
  }
}

RONDO_UNTYPED_KERNEL(gather, gather, RONDO_SCALAR(pick_shape), RONDO_READS, RONDO_READS, RONDO_WRITES,
                     RONDO_CHECK_PARAMETERS);

static rondo_status require_pickable(const rondo_program *program, const rondo_operation *operation) {
  const rondo_shape *value = rondo_operation_input(program, operation, VALUE);
  const size_t dimension = operation->attributes.sizes[DIMENSION];
  RONDO_TRY(rondo_require_dimension(program, operation, VALUE, dimension));
  if (rondo_operation_input(program, operation, INDICES)->type == RONDO_I64 || value->dims[dimension] <= INT32_MAX) {
    return RONDO_OK;
  }
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "the dimension has %zu elements, more than an i32 can count: use i64 indices",
                              value->dims[dimension]);
}

static rondo_status infer_gather(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *value = rondo_operation_input(program, operation, VALUE);
  const rondo_shape *indices = rondo_operation_input(program, operation, INDICES);
  const size_t dimension = operation->attributes.sizes[DIMENSION];
  RONDO_TRY(rondo_require_indices(program, operation, INDICES, RONDO_ANY_RANK));
  RONDO_TRY(require_pickable(program, operation));
  if (!rondo_shape_same_except(value, indices, dimension)) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "indices must have the value's sizes except along dimension %zu", dimension);
  }
  results[0] = *indices;
  results[0].type = value->type;
  return RONDO_OK;
}

static rondo_status infer_index_select(const rondo_program *program, const rondo_operation *operation,
                                       rondo_shape *results) {
  RONDO_TRY(rondo_require_indices(program, operation, INDICES, 1));
  RONDO_TRY(require_pickable(program, operation));
  results[0] = *rondo_operation_input(program, operation, VALUE);
  results[0].dims[operation->attributes.sizes[DIMENSION]] = rondo_operation_input(program, operation, INDICES)->dims[0];
  return RONDO_OK;
}

static rondo_status differentiate_gather(rondo_program *program, const rondo_operation *operation,
                                         const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t inputs[] = {result_gradients[0], operation->inputs[INDICES]};
  const size_t dimension = operation->attributes.sizes[DIMENSION];
  bool is_added;
  RONDO_TRY(rondo_program_add_picked_gradient(program, inputs, dimension, operation->attributes.flags[SHARES],
                                              &input_gradients[VALUE], &is_added));
  if (is_added) return RONDO_OK;
  rondo_attributes attributes = operation->attributes;
  attributes.sizes[SIZE] = rondo_operation_input(program, operation, VALUE)->dims[dimension];
  attributes.size_count = 2;
  uint32_t whole;
  RONDO_TRY(rondo_program_add(program, &rondo_operator_gather_gradient, inputs, 2, &attributes, &whole));
  return rondo_program_add_gradient(program, whole, &input_gradients[VALUE]);
}

static rondo_status emit_gather(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *value = rondo_emit_shape(emitter, operation->inputs[VALUE]);
  const rondo_shape *result = rondo_emit_shape(emitter, operation->results[0]);
  const rondo_attributes *attributes = &operation->attributes;
  const pick_shape shape = shape_of(result, rondo_emit_shape(emitter, operation->inputs[INDICES]), attributes,
                                    value->dims[attributes->sizes[DIMENSION]]);
  const size_t count = rondo_shape_elements(result) / (rondo_emit_is_cuda(emitter) ? 1 : shape.inner);
  return rondo_emit_operands(emitter, operation, &gather_code,
                             rondo_emit_grid(emitter, count, (rondo_grain){2048 / shape.inner + 1, RONDO_CUDA_THREADS}),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(VALUE), RONDO_INPUT(INDICES),
                                            RONDO_RESULT(0), RONDO_CHECK(INDICES, shape.size)));
}

#define GATHER_ROW                                                                                                    \
  .inputs = {"value", "indices"}, .required = 2, .result_count = 1, .checks_indices = 1, .types = RONDO_STORED_TYPES, \
  .index_rule = "element 0 was used instead", .adds_gradients = true, .differentiate = differentiate_gather,          \
  .emit = emit_gather

RONDO_OPERATOR(gather, .infer = infer_gather, GATHER_ROW);
RONDO_OPERATOR(index_select, .infer = infer_index_select, GATHER_ROW);

/* Of a value that is larger than the indices in the other dimensions, the first elements are taken. */
static rondo_status add_gather(rondo_program *program, rondo_value value, rondo_value indices, size_t dimension,
                               rondo_value *out_value) {
  const rondo_shape of_value = rondo_shape_at(program, value), of_indices = rondo_shape_at(program, indices);
  const rondo_attributes attributes = {.sizes = {dimension}, .size_count = 1};
  rondo_value inputs[] = {value, indices};
  size_t starts[RONDO_MAX_DIMENSIONS] = {0}, lengths[RONDO_MAX_DIMENSIONS];
  bool is_part = false, fits = of_value.rank == of_indices.rank && dimension < of_value.rank;
  for (uint32_t d = 0; fits && d < of_value.rank; d++) {
    lengths[d] = d == dimension ? of_value.dims[d] : of_indices.dims[d];
    is_part = is_part || lengths[d] < of_value.dims[d];
    fits = lengths[d] <= of_value.dims[d];
  }
  if (fits && is_part) RONDO_TRY(rondo_op_slice(program, value, starts, lengths, NULL, &inputs[VALUE]));
  return rondo_program_apply(program, &rondo_operator_gather, inputs, 2, &attributes, out_value);
}

/* Indices of any rank: the dimension of the result becomes theirs. */
static rondo_status add_index_select(rondo_program *program, rondo_value value, rondo_value indices, size_t dimension,
                                     rondo_value *out_value) {
  const rondo_shape of_value = rondo_shape_at(program, value), of_indices = rondo_shape_at(program, indices);
  const rondo_attributes attributes = {.sizes = {dimension}, .size_count = 1, .flags = {[SHARES] = true}};
  const size_t count = rondo_shape_elements(&of_indices);
  rondo_value inputs[] = {value, indices};
  size_t dims[2 * RONDO_MAX_DIMENSIONS];
  if (of_indices.rank != 1) RONDO_TRY(rondo_op_reshape(program, indices, &count, 1, &inputs[INDICES]));
  RONDO_TRY(rondo_program_apply(program, &rondo_operator_index_select, inputs, 2, &attributes, out_value));
  if (of_indices.rank == 1) return RONDO_OK;
  memcpy(dims, of_value.dims, dimension * sizeof *dims);
  memcpy(dims + dimension, of_indices.dims, of_indices.rank * sizeof *dims);
  memcpy(dims + dimension + of_indices.rank, of_value.dims + dimension + 1,
         (of_value.rank - dimension - 1) * sizeof *dims);
  return rondo_op_reshape(program, *out_value, dims, of_value.rank + of_indices.rank - 1, out_value);
}

/* A public operator, whose operations `add` adds. */
static rondo_status apply(rondo_program *program, const char *call, rondo_value value, rondo_value indices,
                          size_t dimension,
                          rondo_status (*add)(rondo_program *program, rondo_value value, rondo_value indices,
                                              size_t dimension, rondo_value *out_value),
                          rondo_value *out_value) {
  rondo_shape unused;
  rondo_value made = {0};
  RONDO_TRY(rondo_program_begin(program, call, out_value));
  RONDO_TRY(rondo_given_shape(program, value, call, "value", &unused));
  RONDO_TRY(rondo_given_shape(program, indices, call, "indices", &unused));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add(program, value, indices, dimension, &made);
  return rondo_compose_end(program, call, mark, status, made, out_value);
}

rondo_status rondo_op_gather(rondo_program *program, rondo_value value, rondo_value indices, size_t dimension,
                             rondo_value *out_value) {
  return apply(program, "gather", value, indices, dimension, add_gather, out_value);
}

rondo_status rondo_op_index_select(rondo_program *program, rondo_value value, rondo_value indices, size_t dimension,
                                   rondo_value *out_value) {
  return apply(program, "index_select", value, indices, dimension, add_index_select, out_value);
}

/* Gradient --------------------------------------------------------------------------------------------------------- */

/* Part of a gradient, at most RONDO_CHUNK elements: one of `outer`, some of `inner`, and several of `size` only if all
 * of `inner` fit. */
typedef struct pick_tile {
  size_t outer, first, last, inside, width;
} pick_tile;

static size_t tile_width(const pick_shape *shape) { return rondo_smaller(shape->inner, RONDO_CHUNK); }

/* The tiles for each of `outer`. */
static size_t tile_count(const pick_shape *shape) {
  const size_t width = tile_width(shape);
  return rondo_divide_up(shape->size, RONDO_CHUNK / width) * rondo_divide_up(shape->inner, width);
}

static pick_tile tile_at(const pick_shape *shape, size_t number) {
  const size_t width = tile_width(shape), depth = RONDO_CHUNK / width, across = rondo_divide_up(shape->inner, width);
  assert(width > 0 && number < shape->outer * tile_count(shape));
  const size_t rest = number % tile_count(shape), first = rest / across * depth, inside = rest % across * width;
  return (pick_tile){.outer = number / tile_count(shape),
                     .first = first,
                     .last = rondo_smaller(first + depth, shape->size),
                     .inside = inside,
                     .width = rondo_smaller(shape->inner - inside, width)};
}

/* The element along the dimension that index k of one of `outer` selects; 0 for a wrong index. */
static size_t picked_at(const pick_shape *shape, const void *indices, size_t outer, size_t k, size_t inside) {
  const size_t position = index_position(shape, outer * shape->picked + k, inside);
  const int64_t index = rondo_index_at(indices, shape->wide_indices, position);
  return index >= 0 && (uint64_t)index < shape->size ? (size_t)index : 0;
}

/* Adds the elements of dy that were read from the tile, in their order. */
static void add_picked(rondo_type type, const pick_shape *shape, const pick_tile *t, const void *dy,
                       const void *indices, float *sums) {
  float buffer[RONDO_CHUNK];
  memset(sums, 0, (t->last - t->first) * t->width * sizeof *sums);
  for (size_t k = 0; k < shape->picked; k++) {
    const size_t row = t->outer * shape->picked + k;
    const float *from = rondo_load_chunk(type, dy, row * shape->inner + t->inside, t->width, buffer);
    for (size_t i = 0; i < t->width; i++) {
      const size_t at = picked_at(shape, indices, t->outer, k, t->inside + i);
      if (at >= t->first && at < t->last) sums[(at - t->first) * t->width + i] += from[i];
    }
  }
}

static void gather_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const pick_shape *shape = args[0];
  const void *dy = RONDO_ARG(const void *, 1);
  const void *indices = RONDO_ARG(const void *, 2);
  void *dx = RONDO_ARG(void *, 3);
  float sums[RONDO_CHUNK];
  RONDO_EACH_ITEM(number, blocks, shape->outer * tile_count(shape)) {
    const pick_tile t = tile_at(shape, number);
    add_picked(type, shape, &t, dy, indices, sums);
    for (size_t at = t.first; at < t.last; at++) {
      const size_t first = (t.outer * shape->size + at) * shape->inner + t.inside;
      rondo_store_floats(type, dx, first, t.width, sums + (at - t.first) * t.width);
    }
  }
}

RONDO_TYPED_KERNEL(gather_gradient, gather_gradient, RONDO_SCALAR(pick_shape), RONDO_READS, RONDO_READS, RONDO_WRITES);

static rondo_status infer_gather_gradient(const rondo_program *program, const rondo_operation *operation,
                                          rondo_shape *results) {
  RONDO_TRY(rondo_require_float(program, operation, 0, RONDO_ANY_RANK));
  results[0] = *rondo_operation_input(program, operation, 0);
  results[0].dims[operation->attributes.sizes[DIMENSION]] = operation->attributes.sizes[SIZE];
  return RONDO_OK;
}

static rondo_status emit_gather_gradient(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *dy = rondo_emit_shape(emitter, operation->inputs[0]);
  const pick_shape shape = shape_of(dy, rondo_emit_shape(emitter, operation->inputs[INDICES]), &operation->attributes,
                                    operation->attributes.sizes[SIZE]);
  const size_t count =
      rondo_emit_is_cuda(emitter) ? shape.outer * shape.size * shape.inner : shape.outer * tile_count(&shape);
  const rondo_grain grain = {4096 / (shape.picked * tile_width(&shape) + RONDO_CHUNK) + 1, RONDO_CUDA_THREADS};
  return rondo_emit_operands(
      emitter, operation, &gather_gradient_code[dy->type], rondo_emit_grid(emitter, count, grain),
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(0), RONDO_INPUT(INDICES), RONDO_RESULT(0)));
}

RONDO_OPERATOR(gather_gradient, .inputs = {"gradient", "indices"}, .required = 2, .result_count = 1,
               .infer = infer_gather_gradient, .emit = emit_gather_gradient);

rondo_status rondo_program_add_gather_gradient(rondo_program *program, uint32_t gradient, uint32_t indices,
                                               size_t dimension, size_t size, uint32_t *out_value) {
  const uint32_t inputs[] = {gradient, indices};
  const rondo_attributes attributes = {.sizes = {[DIMENSION] = dimension, [SIZE] = size}, .size_count = 2};
  return rondo_program_add(program, &rondo_operator_gather_gradient, inputs, 2, &attributes, out_value);
}

/* Adding ----------------------------------------------------------------------------------------------------------- */

enum { TO_SUM, ADDED, PICKS }; /* inputs */

static bool is_picked_before(const pick_shape *shape, const void *indices, size_t outer, size_t k, size_t inside) {
  const size_t at = picked_at(shape, indices, outer, k, inside);
  for (size_t before = 0; before < k; before++) {
    if (picked_at(shape, indices, outer, before, inside) == at) return true;
  }
  return false;
}

/* Adds all elements of dy whose index equals index `first`, which is the first of them; `width` elements have the same
 * indices. */
static void add_picks(rondo_type type, const pick_shape *shape, const void *dy, const void *indices, size_t outer,
                      size_t first, size_t inside, size_t width, void *sum) {
  float buffer[RONDO_CHUNK], dy_buffer[RONDO_CHUNK];
  const size_t at = picked_at(shape, indices, outer, first, inside);
  const size_t position = (outer * shape->size + at) * shape->inner + inside;
  assert(width <= RONDO_CHUNK && first < shape->picked);
  float *to = rondo_chunk_of(type, sum, position, buffer);
  if (to == buffer) (void)rondo_load_chunk(type, sum, position, width, buffer);
  for (size_t k = first; k < shape->picked; k++) {
    const size_t from = (outer * shape->picked + k) * shape->inner + inside;
    if (k == first || picked_at(shape, indices, outer, k, inside) == at)
      rondo_add_floats(rondo_load_chunk(type, dy, from, width, dy_buffer), to, width);
  }
  rondo_store_chunk(type, sum, position, width, to);
}

static void gather_add_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const pick_shape *shape = args[0];
  const void *dy = RONDO_ARG(const void *, 1);
  const void *indices = RONDO_ARG(const void *, 2);
  void *sum = RONDO_ARG(void *, 3);
  const size_t max_width = shape->shares != 0 ? RONDO_CHUNK : 1;
  const rondo_span span = rondo_blocks_span(blocks, shape->outer * shape->inner, RONDO_LANES);
  for (size_t i = span.first, width; i < span.last; i += width) {
    const size_t outer = i / shape->inner, inside = i % shape->inner, left = span.last - i;
    width = rondo_smaller(rondo_smaller(shape->inner - inside, left), max_width);
    for (size_t k = 0; k < shape->picked; k++) {
      if (!is_picked_before(shape, indices, outer, k, inside))
        add_picks(type, shape, dy, indices, outer, k, inside, width, sum);
    }
  }
}

RONDO_TYPED_KERNEL(gather_add, gather_gradient, RONDO_SCALAR(pick_shape), RONDO_READS, RONDO_READS, RONDO_UPDATES);

/* Indices of several dimensions, as an embedding has them, count as one dimension. */
static pick_shape added_shape(const rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *sum = rondo_emit_shape(emitter, operation->results[0]);
  const rondo_shape *indices = rondo_emit_shape(emitter, operation->inputs[PICKS]);
  const rondo_attributes *attributes = &operation->attributes;
  pick_shape shape = shape_of(sum, indices, attributes, sum->dims[attributes->sizes[DIMENSION]]);
  shape.picked =
      rondo_shape_elements(rondo_emit_shape(emitter, operation->inputs[ADDED])) / (shape.outer * shape.inner);
  return shape;
}

static rondo_status emit_gather_add(rondo_emitter *emitter, const rondo_operation *operation) {
  const pick_shape shape = added_shape(emitter, operation);
  const rondo_grain grain = {8192 / shape.picked + 1, RONDO_CUDA_THREADS};
  RONDO_TRY(rondo_emit_sum_so_far(emitter, operation->inputs[TO_SUM], operation->results[0]));
  return rondo_emit_operands(
      emitter, operation, &gather_add_code[rondo_emit_shape(emitter, operation->results[0])->type],
      rondo_emit_grid(emitter, shape.outer * shape.inner, grain),
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(ADDED), RONDO_INPUT(PICKS), RONDO_RESULT(0)));
}

RONDO_OPERATOR(gather_add, .inputs = {"sum", "gradient", "indices"}, .required = 3, .result_count = 1,
               .is_in_place = true, .infer = rondo_infer_same, .emit = emit_gather_add);

rondo_status rondo_program_add_picked_gradient(rondo_program *program, const uint32_t *gradient_and_indices,
                                               size_t dimension, bool shares, uint32_t *inout_sum, bool *out_is_added) {
  const uint32_t inputs[] = {*inout_sum, gradient_and_indices[0], gradient_and_indices[1]};
  const rondo_attributes attributes = {.sizes = {dimension}, .size_count = 1, .flags = {[SHARES] = shares}};
  const rondo_shape *indices = rondo_program_shape(program, inputs[PICKS]);
  const size_t picked = shares ? rondo_shape_elements(indices) : indices->dims[dimension];
  *out_is_added = *inout_sum != RONDO_NO_VALUE && picked <= MAX_ADDED;
  if (!*out_is_added) return RONDO_OK;
  return rondo_program_add(program, &rondo_operator_gather_add, inputs, 3, &attributes, inout_sum);
}
