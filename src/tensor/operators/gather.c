/* SPDX-License-Identifier: MIT
 * gather: elements picked along a dimension by indices of the result's shape. Its gradient adds up, for each element of
 * the value, those of dy that were picked from it, in their order along the dimension and in F32: one thread an
 * element, so that nothing is added at once by two. A wrong index picks element 0, and comes back there.
 */
#include <string.h>

#include "tensor/emit.h"
#include "tensor/operators.h"
#include "tensor/operators/element.h"
#include "tensor/program_internal.h"
#include "tensor/shape.h"

enum { VALUE, INDICES };  /* inputs */
enum { DIMENSION, SIZE }; /* sizes; SIZE: of the value along the dimension, for the gradient */

/* What the kernels get as one scalar; without padding. The value is [outer, size, inner], the result [outer, picked,
 * inner]. */
typedef struct pick_shape {
  size_t outer, size, picked, inner;
  uint32_t wide_indices, unit_bytes;
} pick_shape;

static pick_shape shape_of(const rondo_shape *indices, size_t dimension, size_t size, rondo_type type) {
  pick_shape shape = {.outer = 1,
                      .size = size,
                      .picked = indices->dims[dimension],
                      .inner = 1,
                      .wide_indices = indices->type == RONDO_I64,
                      .unit_bytes = (uint32_t)rondo_type_bytes(type)};
  for (size_t i = 0; i < dimension; i++) shape.outer *= indices->dims[i];
  for (size_t i = dimension + 1; i < indices->rank; i++) shape.inner *= indices->dims[i];
  return shape;
}

/* Forward ---------------------------------------------------------------------------------------------------------- */

static void gather_cpu(rondo_blocks blocks, void *const *args) {
  const pick_shape *shape = args[0];
  const char *x = RONDO_ARG(const char *, 1);
  const void *indices = RONDO_ARG(const void *, 2);
  char *y = RONDO_ARG(char *, 3);
  _Atomic uint64_t *cell = RONDO_ARG(_Atomic uint64_t *, 4);
  const size_t bytes = shape->unit_bytes, run = shape->picked * shape->inner;
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_span span = rondo_block_span(block, blocks, shape->outer * run, RONDO_LANES);
    for (size_t i = span.first; i < span.last; i++) {
      const int64_t index = rondo_index_at(indices, shape->wide_indices, i);
      const size_t at = rondo_check_index(cell, i, index, shape->size) ? (size_t)index : 0;
      memcpy(y + i * bytes, x + ((i / run * shape->size + at) * shape->inner + i % shape->inner) * bytes, bytes);
    }
  }
}

static const rondo_kernel_options gather_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "gather", .cpu = gather_cpu, RONDO_CUDA(gather),
    .params = {RONDO_SCALAR(pick_shape), RONDO_READS, RONDO_READS, RONDO_WRITES, RONDO_UPDATES}};

static bool fits(const rondo_shape *value, const rondo_shape *indices, size_t dimension) {
  bool is_fit = value->rank == indices->rank;
  for (uint32_t i = 0; i < value->rank && is_fit; i++) is_fit = i == dimension || value->dims[i] == indices->dims[i];
  return is_fit;
}

static rondo_status infer_gather(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *value = rondo_operation_input(program, operation, VALUE);
  const rondo_shape *indices = rondo_operation_input(program, operation, INDICES);
  const size_t dimension = operation->attributes.sizes[DIMENSION];
  RONDO_TRY(rondo_require_indices(program, operation, INDICES, RONDO_ANY_RANK));
  if (dimension >= value->rank) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "dimension %zu of a value that has %u",
                                dimension, value->rank);
  }
  if (!fits(value, indices, dimension)) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "indices must have the value's sizes but along dimension %zu", dimension);
  }
  if (indices->type == RONDO_I32 && value->dims[dimension] > INT32_MAX) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "more elements than i32 can count");
  }
  results[0] = *indices;
  results[0].type = value->type;
  return RONDO_OK;
}

static rondo_status differentiate_gather(rondo_program *program, const rondo_operation *operation,
                                         const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t inputs[] = {result_gradients[0], operation->inputs[INDICES]};
  rondo_attributes attributes = operation->attributes;
  attributes.sizes[SIZE] = rondo_operation_input(program, operation, VALUE)->dims[attributes.sizes[DIMENSION]];
  attributes.size_count = 2;
  return rondo_program_add(program, &rondo_operator_gather_gradient, inputs, 2, &attributes, &input_gradients[VALUE]);
}

static rondo_status emit_gather(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *value = rondo_emit_shape(emitter, operation->inputs[VALUE]);
  const rondo_shape *of_indices = rondo_emit_shape(emitter, operation->inputs[INDICES]);
  const size_t dimension = operation->attributes.sizes[DIMENSION];
  const pick_shape shape = shape_of(of_indices, dimension, value->dims[dimension], value->type);
  const void *x = rondo_emit_address(emitter, operation->inputs[VALUE]);
  const void *indices = rondo_emit_address(emitter, operation->inputs[INDICES]);
  void *y = rondo_emit_address(emitter, operation->results[0]);
  void *cell = NULL;
  RONDO_TRY(rondo_emit_index_check(emitter, INDICES, shape.size, &cell));
  return rondo_emit_kernel(
      emitter, &gather_code,
      rondo_emit_grid(emitter, rondo_shape_elements(of_indices), (rondo_grain){2048, RONDO_CUDA_THREADS}),
      RONDO_ARGS(&shape, &x, &indices, &y, &cell));
}

const rondo_operator rondo_operator_gather = {.name = "gather",
                                              .inputs = {"value", "indices"},
                                              .required = 2,
                                              .result_count = 1,
                                              .checks_indices = true,
                                              .types = RONDO_NUMBERS,
                                              .index_rule = "element 0 was used instead",
                                              .infer = infer_gather,
                                              .differentiate = differentiate_gather,
                                              .emit = emit_gather};

rondo_status rondo_op_gather(rondo_program *program, rondo_value value, rondo_value indices, size_t dimension,
                             rondo_value *out_value) {
  const rondo_value inputs[] = {value, indices};
  const rondo_attributes attributes = {.sizes = {dimension}, .size_count = 1};
  return rondo_program_apply(program, &rondo_operator_gather, inputs, 2, &attributes, out_value);
}

/* Gradient --------------------------------------------------------------------------------------------------------- */

static float picked_sum(rondo_type type, const pick_shape *shape, const void *dy, const void *indices, size_t i) {
  const size_t run = shape->size * shape->inner, inside = i % shape->inner;
  const int64_t mine = (int64_t)(i / shape->inner % shape->size);
  float sum = 0, room[1];
  for (size_t k = 0; k < shape->picked; k++) {
    const size_t from = (i / run * shape->picked + k) * shape->inner + inside;
    const int64_t index = rondo_index_at(indices, shape->wide_indices, from);
    const bool is_right = index >= 0 && (uint64_t)index < shape->size;
    if ((is_right ? index : 0) == mine) sum += *rondo_load_chunk(type, dy, from, 1, room);
  }
  return sum;
}

static void gather_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const pick_shape *shape = args[0];
  const void *dy = RONDO_ARG(const void *, 1);
  const void *indices = RONDO_ARG(const void *, 2);
  void *dx = RONDO_ARG(void *, 3);
  float room[1];
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_span span = rondo_block_span(block, blocks, shape->outer * shape->size * shape->inner, RONDO_LANES);
    for (size_t i = span.first; i < span.last; i++) {
      float *to = rondo_chunk_of(type, dx, i, room);
      *to = picked_sum(type, shape, dy, indices, i);
      rondo_store_chunk(type, dx, i, 1, to);
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
  const rondo_shape *result = rondo_emit_shape(emitter, operation->results[0]);
  const size_t *sizes = operation->attributes.sizes;
  const pick_shape shape =
      shape_of(rondo_emit_shape(emitter, operation->inputs[INDICES]), sizes[DIMENSION], sizes[SIZE], result->type);
  const void *dy = rondo_emit_address(emitter, operation->inputs[0]);
  const void *indices = rondo_emit_address(emitter, operation->inputs[INDICES]);
  void *dx = rondo_emit_address(emitter, operation->results[0]);
  return rondo_emit_kernel(emitter, &gather_gradient_code[result->type],
                           rondo_emit_grid(emitter, rondo_shape_elements(result),
                                           (rondo_grain){2048 / shape.picked + 1, RONDO_CUDA_THREADS}),
                           RONDO_ARGS(&shape, &dy, &indices, &dx));
}

const rondo_operator rondo_operator_gather_gradient = {.name = "gather_gradient",
                                                       .inputs = {"gradient", "indices"},
                                                       .required = 2,
                                                       .result_count = 1,
                                                       .infer = infer_gather_gradient,
                                                       .emit = emit_gather_gradient};
