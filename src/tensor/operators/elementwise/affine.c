/* SPDX-License-Identifier: MIT
 * scale, add_constant, neg and bitwise_not: slope x + offset, element-wise. Slope and offset are attributes, whole
 * numbers for integers: the complement of x is -x - 1. A gradient is multiplied by the slope. Threads: as
 * tensor/program/operator.h says.
 */
#include "tensor/operators/elementwise/unary_operators.h"

#include "tensor/program/operation.h"
#include "tensor/program/program.h"

enum { SLOPE = RONDO_AFFINE_SLOPE, OFFSET = RONDO_AFFINE_OFFSET };

rondo_attributes rondo_scale_attributes(float number) {
  return (rondo_attributes){.numbers = {[SLOPE] = number, [OFFSET] = -0.0f}}; /* adding -0 keeps the sign of zeros */
}

/* Kernel ----------------------------------------------------------------------------------------------------------- */

RONDO_VECTORISED(affine_chunk, (const float *restrict x, float slope, float offset, float *restrict y, size_t count),
                 (x, slope, offset, y, count)) {
  RONDO_EACH_LANE(i, lane, count, y[i] = slope * x[i] + offset);
}

RONDO_VECTORISED(affine_integers,
                 (const int64_t *restrict x, int64_t slope, int64_t offset, int64_t *restrict y, size_t count),
                 (x, slope, offset, y, count)) {
  RONDO_EACH_LANE(i, lane, count, const int64_t product = WRAP(slope, *, x[i]); y[i] = WRAP(product, +, offset));
}

static void compute_affine(const rondo_chunk_call *call) {
  const float slope = call->numbers[SLOPE], offset = call->numbers[OFFSET];
  if (rondo_is_integer(call->result_type))
    affine_integers(call->terms[0], (int64_t)slope, (int64_t)offset, call->result, call->count);
  else
    affine_chunk(call->terms[0], slope, offset, call->result, call->count);
}

/* The kernel of all these operators. */
static void affine_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_elementwise_cpu(&rondo_operator_scale, type, blocks, args);
}

RONDO_NUMBER_KERNEL(affine, affine, RONDO_UNARY_PARAMETERS, RONDO_SCALAR(float), RONDO_SCALAR(float));

/* Rows ------------------------------------------------------------------------------------------------------------- */

static rondo_status add_scale(rondo_program *program, uint32_t value, float number, uint32_t *out_value) {
  const rondo_attributes attributes = rondo_scale_attributes(number);
  return rondo_program_add(program, &rondo_operator_scale, &value, 1, &attributes, out_value);
}

static rondo_status differentiate_affine(rondo_program *program, const rondo_operation *operation,
                                         const uint32_t *result_gradients, uint32_t *input_gradients) {
  const float slope = operation->attributes.numbers[SLOPE];
  input_gradients[0] = result_gradients[0];
  return slope == 1 ? RONDO_OK : add_scale(program, result_gradients[0], slope, &input_gradients[0]);
}

static rondo_status emit_affine(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *shape = rondo_emit_shape(emitter, operation->inputs[0]);
  const size_t count = rondo_shape_elements(shape);
  const float *numbers = operation->attributes.numbers;
  return rondo_emit_operands(emitter, operation, &affine_code[shape->type],
                             rondo_emit_grid(emitter, count, RONDO_PACKED_GRAIN),
                             RONDO_OPERANDS(RONDO_INPUT(0), RONDO_RESULT(0), RONDO_OBJECT(count),
                                            RONDO_OBJECT(numbers[SLOPE]), RONDO_OBJECT(numbers[OFFSET])));
}

#define AFFINE_ROW                                                                                        \
  .inputs = {"value"}, .required = 1, .result_count = 1, .infer = rondo_infer_unary, .emit = emit_affine, \
  .element = {.compute = compute_affine, .function = "affine_of", .source = rondo_cuda_affine_functions, .numbers = 2}

RONDO_OPERATOR(scale, .types = RONDO_FLOATS, .differentiate = differentiate_affine, AFFINE_ROW);
RONDO_OPERATOR(add_constant, .types = RONDO_FLOATS, .differentiate = differentiate_affine, AFFINE_ROW);
RONDO_OPERATOR(neg, .types = RONDO_NUMBERS, .differentiate = differentiate_affine, AFFINE_ROW);
RONDO_OPERATOR(bitwise_not, .types = RONDO_INTEGERS, AFFINE_ROW);

rondo_status rondo_op_scale(rondo_program *program, rondo_value value, float number, rondo_value *out_value) {
  const rondo_attributes attributes = rondo_scale_attributes(number);
  return rondo_program_apply(program, &rondo_operator_scale, &value, 1, &attributes, out_value);
}

rondo_status rondo_op_add_constant(rondo_program *program, rondo_value value, float number, rondo_value *out_value) {
  const rondo_attributes attributes = {.numbers = {[SLOPE] = 1, [OFFSET] = number}};
  return rondo_program_apply(program, &rondo_operator_add_constant, &value, 1, &attributes, out_value);
}

rondo_status rondo_op_neg(rondo_program *program, rondo_value value, rondo_value *out_value) {
  const rondo_attributes attributes = rondo_scale_attributes(-1);
  return rondo_program_apply(program, &rondo_operator_neg, &value, 1, &attributes, out_value);
}

/* The complement of a BOOL is the other one. */
rondo_status rondo_op_bitwise_not(rondo_program *program, rondo_value value, rondo_value *out_value) {
  static const rondo_attributes attributes = {.numbers = {[SLOPE] = -1, [OFFSET] = -1}};
  uint32_t index = 0;
  RONDO_TRY(rondo_program_begin_of(program, "bitwise_not", value, "value", out_value, &index));
  if (rondo_program_shape(program, index)->type == RONDO_BOOL) return rondo_op_logical_not(program, value, out_value);
  return rondo_program_apply(program, &rondo_operator_bitwise_not, &value, 1, &attributes, out_value);
}
