/* SPDX-License-Identifier: MIT
 * permute reorders dimensions; transpose exchanges two of them. If only dimensions of size 1 move, the operator is a
 * reshape and copies nothing. Threads: as tensor/program/operator.h says.
 */
#include <assert.h>

#include "tensor/operators/common/operator_tools.h"
#include "tensor/operators/shape/strided.h"

/* sizes: dimension i of the result is dimension sizes[i] of the value. */

static rondo_status infer_permute(const rondo_program *program, const rondo_operation *operation,
                                  rondo_shape *results) {
  const rondo_shape *value = rondo_operation_input(program, operation, 0);
  const size_t *order = operation->attributes.sizes;
  bool taken[RONDO_MAX_DIMENSIONS] = {false};
  results[0] = *value;
  for (uint32_t i = 0; i < value->rank; i++) {
    if (order[i] >= value->rank || taken[order[i]]) {
      return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                  "the order must contain each of 0 .. %u once; entry %u is %zu", value->rank - 1, i,
                                  order[i]);
    }
    taken[order[i]] = true;
    results[0].dims[i] = value->dims[order[i]];
  }
  return RONDO_OK;
}

/* The inverse order. */
static rondo_status differentiate_permute(rondo_program *program, const rondo_operation *operation,
                                          const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t rank = rondo_operation_input(program, operation, 0)->rank;
  rondo_attributes attributes = {.size_count = rank};
  for (uint32_t i = 0; i < rank; i++) attributes.sizes[operation->attributes.sizes[i]] = i;
  return rondo_program_add(program, &rondo_operator_permute, result_gradients, 1, &attributes, &input_gradients[0]);
}

static rondo_status emit_permute(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *value = rondo_emit_shape(emitter, operation->inputs[0]);
  size_t distances[RONDO_MAX_DIMENSIONS], strides[RONDO_MAX_DIMENSIONS];
  assert(value->rank <= RONDO_MAX_DIMENSIONS);
  rondo_strides_of(value, distances);
  for (uint32_t i = 0; i < value->rank; i++) strides[i] = distances[operation->attributes.sizes[i]];
  const rondo_strided copy = rondo_strided_make(rondo_emit_shape(emitter, operation->results[0]), 0, strides);
  return rondo_emit_strided(emitter, &copy, operation->inputs[0], operation->results[0]);
}

RONDO_OPERATOR(permute, .types = RONDO_STORED_TYPES, .inputs = {"value"}, .required = 1, .result_count = 1,
               .infer = infer_permute, .differentiate = differentiate_permute, .emit = emit_permute);

/* Whether the dimensions larger than 1 keep their order. */
static bool moves_nothing(const rondo_shape *value, const size_t *order) {
  size_t last = 0;
  for (uint32_t i = 0; i < value->rank; i++) {
    if (order[i] >= value->rank || value->dims[order[i]] == 1) continue;
    if (order[i] < last) return false;
    last = order[i];
  }
  return true;
}

static rondo_status add_permute(rondo_program *program, uint32_t value, const rondo_attributes *attributes,
                                uint32_t *out_result) {
  const rondo_operation checked = {.row = &rondo_operator_permute, .inputs = {value}, .attributes = *attributes};
  rondo_shape result;
  RONDO_TRY(infer_permute(program, &checked, &result));
  if (!moves_nothing(rondo_program_shape(program, value), attributes->sizes))
    return rondo_program_add(program, &rondo_operator_permute, &value, 1, attributes, out_result);
  return rondo_program_add_shaped(program, &rondo_operator_reshape, value, result, out_result);
}

rondo_status rondo_op_permute(rondo_program *program, rondo_value value, const size_t *order, rondo_value *out_value) {
  uint32_t index, result;
  RONDO_TRY(rondo_program_begin_of(program, "permute", value, "value", out_value, &index));
  const uint32_t rank = rondo_program_shape(program, index)->rank;
  if (rank > 0) RONDO_TRY(rondo_require("permute", "order", order));
  rondo_attributes attributes = {.size_count = rank};
  for (uint32_t i = 0; i < rank; i++) attributes.sizes[i] = order[i];
  RONDO_TRY(add_permute(program, index, &attributes, &result));
  *out_value = rondo_program_tag(program, result);
  return RONDO_OK;
}

rondo_status rondo_op_transpose(rondo_program *program, rondo_value value, size_t a, size_t b, rondo_value *out_value) {
  uint32_t index, result;
  RONDO_TRY(rondo_program_begin_of(program, "transpose", value, "value", out_value, &index));
  const uint32_t rank = rondo_program_shape(program, index)->rank;
  if (a >= rank || b >= rank) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "transpose: dimension %zu or %zu does not exist: the value has %u, counted from 0", a, b, rank);
  }
  rondo_attributes attributes = {.size_count = rank};
  for (uint32_t i = 0; i < rank; i++) attributes.sizes[i] = i == a ? b : i == b ? a : i;
  RONDO_TRY(add_permute(program, index, &attributes, &result));
  *out_value = rondo_program_tag(program, result);
  return RONDO_OK;
}
