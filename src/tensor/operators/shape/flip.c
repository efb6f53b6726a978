/* SPDX-License-Identifier: MIT
 * flip: the elements in the reversed order along some dimensions, by a strided copy with negative strides. And roll,
 * which moves elements along dimensions, those at an end to the other one. Threads: as tensor/program/operator.h says.
 */
#include <assert.h>

#include "tensor/operators/common/composition.h"
#include "tensor/operators/shape/strided.h"

/* sizes: for each dimension, 1 if it is reversed, else 0. */

static rondo_status differentiate_flip(rondo_program *program, const rondo_operation *operation,
                                       const uint32_t *result_gradients, uint32_t *input_gradients) {
  return rondo_program_add(program, &rondo_operator_flip, result_gradients, 1, &operation->attributes, input_gradients);
}

/* Negative strides wrap around, as all sums with them do. */
static rondo_status emit_flip(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *value = rondo_emit_shape(emitter, operation->inputs[0]);
  size_t strides[RONDO_MAX_DIMENSIONS], offset = 0;
  rondo_strides_of(value, strides);
  for (uint32_t d = 0; d < value->rank; d++) {
    if (operation->attributes.sizes[d] == 0) continue;
    offset += (value->dims[d] - 1) * strides[d];
    strides[d] = 0 - strides[d];
  }
  const rondo_strided copy = rondo_strided_make(rondo_emit_shape(emitter, operation->results[0]), offset, strides);
  return rondo_emit_strided(emitter, &copy, operation->inputs[0], operation->results[0]);
}

RONDO_OPERATOR(flip, .types = RONDO_STORED_TYPES, .inputs = {"value"}, .required = 1, .result_count = 1,
               .infer = rondo_infer_same, .differentiate = differentiate_flip, .emit = emit_flip);

/* The dimensions of both operators. A dimension may be named twice only by roll. */
static rondo_status require_dimensions(const char *call, const rondo_shape *shape, const size_t *dims, size_t dim_count,
                                       bool allows_twice) {
  bool is_named[RONDO_MAX_DIMENSIONS] = {false};
  if (dim_count > 0) RONDO_TRY(rondo_require(call, "dims", dims));
  for (size_t i = 0; i < dim_count; i++) {
    if (dims[i] >= shape->rank || (is_named[dims[i]] && !allows_twice))
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                        "%s: dimension %zu is named twice, or does not exist: the value has %u, counted from 0", call,
                        dims[i], shape->rank);
    is_named[dims[i]] = true;
  }
  return RONDO_OK;
}

rondo_status rondo_op_flip(rondo_program *program, rondo_value value, const size_t *dims, size_t dim_count,
                           rondo_value *out_value) {
  rondo_shape shape;
  RONDO_TRY(rondo_program_begin(program, "flip", out_value));
  RONDO_TRY(rondo_given_shape(program, value, "flip", "value", &shape));
  RONDO_TRY(require_dimensions("flip", &shape, dims, dim_count, false));
  rondo_attributes attributes = {.size_count = shape.rank};
  bool moves = false;
  for (size_t i = 0; i < dim_count; i++) {
    attributes.sizes[dims[i]] = shape.dims[dims[i]] > 1;
    moves = moves || shape.dims[dims[i]] > 1;
  }
  if (!moves) return rondo_compose_reshape(program, value, &shape, out_value);
  return rondo_program_apply(program, &rondo_operator_flip, &value, 1, &attributes, out_value);
}

/* roll ------------------------------------------------------------------------------------------------------------- */

/* The last `moved` elements along the dimension, then the others. */
static rondo_status roll_one(rondo_program *program, size_t dimension, size_t moved, rondo_value *inout_value) {
  const rondo_shape shape = rondo_shape_at(program, *inout_value);
  rondo_value halves[2];
  size_t starts[RONDO_MAX_DIMENSIONS] = {0}, lengths[RONDO_MAX_DIMENSIONS];
  assert(moved > 0 && moved < shape.dims[dimension]);
  for (uint32_t d = 0; d < shape.rank; d++) lengths[d] = shape.dims[d];
  starts[dimension] = shape.dims[dimension] - moved;
  lengths[dimension] = moved;
  RONDO_TRY(rondo_op_slice(program, *inout_value, starts, lengths, NULL, &halves[0]));
  starts[dimension] = 0;
  lengths[dimension] = shape.dims[dimension] - moved;
  RONDO_TRY(rondo_op_slice(program, *inout_value, starts, lengths, NULL, &halves[1]));
  return rondo_op_concat(program, halves, 2, dimension, inout_value);
}

static rondo_status add_roll(rondo_program *program, const int64_t *shifts, const size_t *dims, size_t dim_count,
                             rondo_value *inout_value) {
  const rondo_shape shape = rondo_shape_at(program, *inout_value);
  for (size_t i = 0; i < dim_count; i++) {
    const int64_t size = (int64_t)shape.dims[dims[i]], rest = shifts[i] % size;
    const size_t moved = (size_t)(rest < 0 ? rest + size : rest);
    if (moved > 0) RONDO_TRY(roll_one(program, dims[i], moved, inout_value));
  }
  return RONDO_OK;
}

rondo_status rondo_op_roll(rondo_program *program, rondo_value value, const int64_t *shifts, const size_t *dims,
                           size_t dim_count, rondo_value *out_value) {
  rondo_shape shape;
  rondo_value rolled;
  RONDO_TRY(rondo_program_begin(program, "roll", out_value));
  RONDO_TRY(rondo_given_shape(program, value, "roll", "value", &shape));
  RONDO_TRY(require_dimensions("roll", &shape, dims, dim_count, true));
  if (dim_count > 0) RONDO_TRY(rondo_require("roll", "shifts", shifts));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  rondo_status status = rondo_compose_reshape(program, value, &shape, &rolled);
  if (status == RONDO_OK) status = add_roll(program, shifts, dims, dim_count, &rolled);
  return rondo_compose_end(program, "roll", mark, status, rolled, out_value);
}
