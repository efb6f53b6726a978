/* SPDX-License-Identifier: MIT
 * clamp: numbers below the lowest become the lowest, those above the highest the highest, as torch.clamp. For integers,
 * the limits are rounded towards each other. The gradient passes where the number was not changed. Threads: as
 * tensor/program/operator.h says.
 */
#include "tensor/operators/elementwise/unary_operators.h"

#include <math.h>

#include "base/error.h"
#include "tensor/program/operation.h"

enum { LOWEST, HIGHEST }; /* numbers */

/* Kernels ---------------------------------------------------------------------------------------------------------- */

/* NaN stays NaN. If the lowest is above the highest, all become the highest. */
RONDO_VECTORISED(clamp_chunk, (const float *restrict x, float lowest, float highest, float *restrict y, size_t count),
                 (x, lowest, highest, y, count)) {
  RONDO_EACH_LANE(i, lane, count, const float above = x[i] < lowest ? lowest : x[i];
                  y[i] = above > highest ? highest : above);
}

RONDO_VECTORISED(clamp_integers,
                 (const int64_t *restrict x, int64_t lowest, int64_t highest, int64_t *restrict y, size_t count),
                 (x, lowest, highest, y, count)) {
  RONDO_EACH_LANE(i, lane, count, const int64_t above = x[i] < lowest ? lowest : x[i];
                  y[i] = above > highest ? highest : above);
}

/* The nearest integer to a whole number, which may be infinite. */
static int64_t limit_of(float whole) {
  if (whole >= 0x1p63f) return INT64_MAX;
  return whole <= -0x1p63f ? INT64_MIN : (int64_t)whole;
}

RONDO_VECTORISED(clamp_slope,
                 (const float *restrict x, const float *restrict dy, float lowest, float highest, float *restrict dx,
                  size_t count),
                 (x, dy, lowest, highest, dx, count)) {
  RONDO_EACH_LANE(i, lane, count, dx[i] = ((x[i] >= lowest) & (x[i] <= highest)) ? dy[i] : 0.0f);
}

static void compute_clamp(const rondo_chunk_call *call) {
  const float lowest = call->numbers[LOWEST], highest = call->numbers[HIGHEST];
  if (rondo_is_integer(call->result_type))
    clamp_integers(call->terms[0], limit_of(ceilf(lowest)), limit_of(floorf(highest)), call->result, call->count);
  else
    clamp_chunk(call->terms[0], lowest, highest, call->result, call->count);
}

static void compute_clamp_gradient(const rondo_chunk_call *call) {
  clamp_slope(call->terms[0], call->terms[1], call->numbers[LOWEST], call->numbers[HIGHEST], call->result, call->count);
}

static void clamp_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_elementwise_cpu(&rondo_operator_clamp, type, blocks, args);
}

static void clamp_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_elementwise_cpu(&rondo_operator_clamp_gradient, type, blocks, args);
}

RONDO_NUMBER_KERNEL(clamp, clamp, RONDO_UNARY_PARAMETERS, RONDO_SCALAR(float), RONDO_SCALAR(float));
RONDO_TYPED_KERNEL(clamp_gradient, clamp, RONDO_SLOPE_PARAMETERS, RONDO_SCALAR(float), RONDO_SCALAR(float));

/* Rows ------------------------------------------------------------------------------------------------------------- */

static rondo_status infer_clamp_gradient(const rondo_program *program, const rondo_operation *operation,
                                         rondo_shape *results) {
  RONDO_TRY(rondo_infer_unary(program, operation, results));
  return rondo_require_same_shape(program, operation, 0, 1);
}

static rondo_status differentiate_clamp(rondo_program *program, const rondo_operation *operation,
                                        const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t inputs[] = {operation->inputs[0], result_gradients[0]};
  return rondo_program_add(program, &rondo_operator_clamp_gradient, inputs, 2, &operation->attributes,
                           &input_gradients[0]);
}

static rondo_status emit_clamp(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *shape = rondo_emit_shape(emitter, operation->inputs[0]);
  const size_t count = rondo_shape_elements(shape);
  const float *numbers = operation->attributes.numbers;
  const rondo_grid grid = rondo_emit_grid(emitter, count, RONDO_PACKED_GRAIN);
  if (operation->row == &rondo_operator_clamp)
    return rondo_emit_operands(emitter, operation, &clamp_code[shape->type], grid,
                               RONDO_OPERANDS(RONDO_INPUT(0), RONDO_RESULT(0), RONDO_OBJECT(count),
                                              RONDO_OBJECT(numbers[LOWEST]), RONDO_OBJECT(numbers[HIGHEST])));
  return rondo_emit_operands(emitter, operation, &clamp_gradient_code[shape->type], grid,
                             RONDO_OPERANDS(RONDO_INPUT(0), RONDO_INPUT(1), RONDO_RESULT(0), RONDO_OBJECT(count),
                                            RONDO_OBJECT(numbers[LOWEST]), RONDO_OBJECT(numbers[HIGHEST])));
}

RONDO_OPERATOR(
    clamp, .types = RONDO_NUMBERS, .inputs = {"value"}, .required = 1, .result_count = 1, .infer = rondo_infer_unary,
    .differentiate = differentiate_clamp, .emit = emit_clamp,
    .element = {.compute = compute_clamp, .function = "clamp_of", .source = rondo_cuda_clamp_functions, .numbers = 2});
RONDO_OPERATOR(clamp_gradient, .inputs = {"value", "gradient"}, .required = 2, .result_count = 1,
               .infer = infer_clamp_gradient, .emit = emit_clamp,
               .element = {.compute = compute_clamp_gradient,
                           .function = "clamp_gradient_of",
                           .source = rondo_cuda_clamp_functions,
                           .numbers = 2});

rondo_status rondo_op_clamp(rondo_program *program, rondo_value value, float lowest, float highest,
                            rondo_value *out_value) {
  const rondo_attributes attributes = {.numbers = {[LOWEST] = lowest, [HIGHEST] = highest}};
  RONDO_TRY(rondo_program_begin(program, "clamp", out_value));
  if (isnan(lowest) || isnan(highest)) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "clamp: the limits are %g and %g: use an infinity for no limit", (double)lowest, (double)highest);
  }
  return rondo_program_apply(program, &rondo_operator_clamp, &value, 1, &attributes, out_value);
}
