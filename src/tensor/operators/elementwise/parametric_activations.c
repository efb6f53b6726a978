/* SPDX-License-Identifier: MIT
 * Activations with numbers, and those that are made of others: prelu, selu, celu and log_sigmoid.
 * parametric_activations.inc has a row for each operator. This file turns a row into its CPU functions, its kernels,
 * the operator and the gradient operator, which reads the input. Threads: as tensor/program/operator.h says.
 */
#include "tensor/operators/elementwise/unary_operators.h"

#include <math.h>

#include "tensor/operators/common/composition.h"

enum { P, Q }; /* numbers */

typedef void (*parametric_chunk)(const float *restrict x, const float *restrict dy, float p, float q, float *restrict y,
                                 size_t count);

/* The `family` of a row; an operator has a gradient, a gradient operator has none. */
typedef struct parametric_row {
  const rondo_kernel_options *code; /* one per type */
  parametric_chunk chunk;           /* dy: of a gradient operator */
  const rondo_operator *gradient;
} parametric_row;

static void compute_parametric(const rondo_chunk_call *call) {
  const parametric_row *family = call->row->family;
  family->chunk(call->terms[0], call->terms[1], call->numbers[P], call->numbers[Q], call->result, call->count);
}

static rondo_status infer_slope(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  RONDO_TRY(rondo_infer_unary(program, operation, results));
  return rondo_require_same_shape(program, operation, 0, 1);
}

static rondo_status differentiate_parametric(rondo_program *program, const rondo_operation *operation,
                                             const uint32_t *result_gradients, uint32_t *input_gradients) {
  const parametric_row *family = operation->row->family;
  const uint32_t inputs[] = {operation->inputs[0], result_gradients[0]};
  return rondo_program_add(program, family->gradient, inputs, 2, &operation->attributes, &input_gradients[0]);
}

static rondo_status emit_parametric(rondo_emitter *emitter, const rondo_operation *operation) {
  const parametric_row *family = operation->row->family;
  const rondo_shape *shape = rondo_emit_shape(emitter, operation->inputs[0]);
  const rondo_kernel_options *code = &family->code[shape->type];
  const size_t count = rondo_shape_elements(shape);
  const rondo_grid grid = rondo_emit_grid(emitter, count, RONDO_PACKED_GRAIN);
  const float *numbers = operation->attributes.numbers;
  if (family->gradient != NULL)
    return rondo_emit_operands(emitter, operation, code, grid,
                               RONDO_OPERANDS(RONDO_INPUT(0), RONDO_RESULT(0), RONDO_OBJECT(count),
                                              RONDO_OBJECT(numbers[P]), RONDO_OBJECT(numbers[Q])));
  return rondo_emit_operands(emitter, operation, code, grid,
                             RONDO_OPERANDS(RONDO_INPUT(0), RONDO_INPUT(1), RONDO_RESULT(0), RONDO_OBJECT(count),
                                            RONDO_OBJECT(numbers[P]), RONDO_OBJECT(numbers[Q])));
}

/* The table -------------------------------------------------------------------------------------------------------- */

#define FORMULA RONDO_INLINE

#define CHUNK(name, arguments)                                                                                \
  RONDO_VECTORISED(                                                                                           \
      name##_chunk,                                                                                           \
      (const float *restrict x, const float *restrict dy, float p, float q, float *restrict y, size_t count), \
      (x, dy, p, q, y, count)) {                                                                              \
    (void)dy;                                                                                                 \
    RONDO_EACH_LANE(i, lane, count, y[i] = name##_of arguments);                                              \
  }                                                                                                           \
  static void name##_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {                           \
    rondo_elementwise_cpu(&rondo_operator_##name, type, blocks, args);                                        \
  }

#define NUMBERS RONDO_SCALAR(float), RONDO_SCALAR(float)

#define ELEMENT(name)                                                                                              \
  {                                                                                                                \
    .compute = compute_parametric, .function = #name "_of", .source = rondo_cuda_parametric_activations_functions, \
    .numbers = 2                                                                                                   \
  }

#define PARAMETRIC(operator, formula, slope_formula)                                                             \
  RONDO_INLINE float operator##_of(float x, float p, float q) {                                                  \
    (void)q;                                                                                                     \
    return formula;                                                                                              \
  }                                                                                                              \
  RONDO_INLINE float operator##_gradient_of(float x, float dy, float p, float q) {                               \
    (void)x, (void)p, (void)q;                                                                                   \
    return slope_formula;                                                                                        \
  }                                                                                                              \
  CHUNK(operator,(x[i], p, q))                                                                                   \
  CHUNK(operator##_gradient, (x[i], dy[i], p, q))                                                                \
  RONDO_TYPED_KERNEL(operator, operator, RONDO_UNARY_PARAMETERS, NUMBERS);                                       \
  RONDO_TYPED_KERNEL(operator##_gradient, operator, RONDO_SLOPE_PARAMETERS, NUMBERS);                            \
  static const parametric_row operator##_family = {operator##_code, operator##_chunk,                            \
                                                   &rondo_operator_##operator##_gradient };                      \
  static const parametric_row operator##_gradient_family = {operator##_gradient_code, operator##_gradient_chunk, \
                                                            NULL};                                               \
  const rondo_operator rondo_operator_##operator= {.name = #operator,                                            \
                                                   .types = RONDO_FLOATS,                                        \
                                                   .inputs = {"value"},                                          \
                                                   .required = 1,                                                \
                                                   .result_count = 1,                                            \
                                                   .family = &operator##_family,                                 \
                                                   .infer = rondo_infer_unary,                                   \
                                                   .differentiate = differentiate_parametric,                    \
                                                   .emit = emit_parametric,                                      \
                                                   .element = ELEMENT(operator)};                                \
  const rondo_operator rondo_operator_##operator##_gradient = {.name = #operator"_gradient",                     \
                                                               .inputs = {"value", "gradient"},                  \
                                                               .required = 2,                                    \
                                                               .result_count = 1,                                \
                                                               .family = &operator##_gradient_family,            \
                                                               .infer = infer_slope,                             \
                                                               .emit = emit_parametric,                          \
                                                               .element = ELEMENT(operator##_gradient)};

#include "tensor/operators/elementwise/parametric_activations.inc"

/* Public ----------------------------------------------------------------------------------------------------------- */

static rondo_status apply(rondo_program *program, const rondo_operator *row, rondo_value value, float p, float q,
                          rondo_value *out_value) {
  const rondo_attributes attributes = {.numbers = {[P] = p, [Q] = q}};
  RONDO_TRY(rondo_program_begin(program, row->name, out_value));
  if (isnan(p) || isnan(q))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: a parameter is not a number", row->name);
  return rondo_program_apply(program, row, &value, 1, &attributes, out_value);
}

static rondo_status fail_number(const char *call, const char *what, float number, const char *rule) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: %s is %g: use %s", call, what,
                    (double)number, rule);
}

rondo_status rondo_op_leaky_relu(rondo_program *program, rondo_value value, float slope, rondo_value *out_value) {
  return apply(program, &rondo_operator_leaky_relu, value, slope, 0, out_value);
}

rondo_status rondo_op_elu(rondo_program *program, rondo_value value, float alpha, rondo_value *out_value) {
  return apply(program, &rondo_operator_elu, value, alpha, 1, out_value);
}

rondo_status rondo_op_celu(rondo_program *program, rondo_value value, float alpha, rondo_value *out_value) {
  RONDO_TRY(rondo_program_begin(program, "celu", out_value));
  if (alpha == 0) return fail_number("celu", "alpha", alpha, "a number that is not 0");
  return apply(program, &rondo_operator_elu, value, alpha, 1.0f / alpha, out_value);
}

rondo_status rondo_op_hardsigmoid(rondo_program *program, rondo_value value, float alpha, float beta,
                                  rondo_value *out_value) {
  return apply(program, &rondo_operator_hardsigmoid, value, alpha, beta, out_value);
}

rondo_status rondo_op_hardswish(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return apply(program, &rondo_operator_hardswish, value, 1.0f / 6.0f, 0.5f, out_value);
}

rondo_status rondo_op_softplus(rondo_program *program, rondo_value value, float beta, rondo_value *out_value) {
  RONDO_TRY(rondo_program_begin(program, "softplus", out_value));
  if (beta == 0) return fail_number("softplus", "beta", beta, "a number that is not 0, such as 1");
  return apply(program, &rondo_operator_softplus, value, beta, 0, out_value);
}

rondo_status rondo_op_threshold(rondo_program *program, rondo_value value, float threshold, float replacement,
                                rondo_value *out_value) {
  return apply(program, &rondo_operator_threshold, value, threshold, replacement, out_value);
}

rondo_status rondo_op_shrink(rondo_program *program, rondo_value value, float lambda, float bias,
                             rondo_value *out_value) {
  RONDO_TRY(rondo_program_begin(program, "shrink", out_value));
  if (lambda < 0) return fail_number("shrink", "lambda", lambda, "0 or more");
  return apply(program, &rondo_operator_shrink, value, lambda, bias, out_value);
}

rondo_status rondo_op_round_mantissa(rondo_program *program, rondo_value value, unsigned bits, int least_exponent,
                                     rondo_value *out_value) {
  RONDO_TRY(rondo_program_begin(program, "round_mantissa", out_value));
  if (bits > 23) return fail_number("round_mantissa", "the number of bits", (float)bits, "0 to 23");
  if (least_exponent < -149 || least_exponent > 127)
    return fail_number("round_mantissa", "the least exponent", (float)least_exponent, "-149 to 127");
  return apply(program, &rondo_operator_round_mantissa, value, ldexpf(1, -(int)bits), ldexpf(1, least_exponent),
               out_value);
}

/* Made of others --------------------------------------------------------------------------------------------------- */

/* The numbers of Klambauer et al. 2017. */
#define SELU_ALPHA 1.67326324f
#define SELU_SCALE 1.05070099f

static rondo_status add_selu(rondo_program *program, uint32_t value, uint32_t *out_value) {
  const rondo_attributes alpha = {.numbers = {[P] = SELU_ALPHA, [Q] = 1}}, scale = rondo_scale_attributes(SELU_SCALE);
  uint32_t elu;
  RONDO_TRY(rondo_program_add(program, &rondo_operator_elu, &value, 1, &alpha, &elu));
  return rondo_program_add(program, &rondo_operator_scale, &elu, 1, &scale, out_value);
}

/* -softplus(-x) */
static rondo_status add_log_sigmoid(rondo_program *program, uint32_t value, uint32_t *out_value) {
  const rondo_attributes beta = {.numbers = {[P] = 1}}, minus = rondo_scale_attributes(-1);
  uint32_t negated, softplus;
  RONDO_TRY(rondo_program_add(program, &rondo_operator_neg, &value, 1, &minus, &negated));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_softplus, &negated, 1, &beta, &softplus));
  return rondo_program_add(program, &rondo_operator_neg, &softplus, 1, &minus, out_value);
}

static rondo_status apply_made(rondo_program *program, const char *call,
                               rondo_status (*add)(rondo_program *program, uint32_t value, uint32_t *out_value),
                               rondo_value value, rondo_value *out_value) {
  uint32_t index, result = RONDO_NO_VALUE;
  RONDO_TRY(rondo_program_begin_of(program, call, value, "value", out_value, &index));
  const rondo_shape *shape = rondo_program_shape(program, index);
  if (!rondo_shape_is_float(shape))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE, "%s: the value is %s; it must be f32, f16 or bf16",
                      call, rondo_type_name(shape->type));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add(program, index, &result);
  return rondo_program_finish(program, mark, status, result, out_value);
}

rondo_status rondo_op_selu(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return apply_made(program, "selu", add_selu, value, out_value);
}

rondo_status rondo_op_log_sigmoid(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return apply_made(program, "log_sigmoid", add_log_sigmoid, value, out_value);
}

/* relu(x) + slope min(x, 0), whose gradients are those of prelu, also at 0. */
static rondo_status add_prelu(rondo_program *program, rondo_value value, rondo_value slope, rondo_value *out_value) {
  rondo_value above, below;
  RONDO_TRY(rondo_op_relu(program, value, &above));
  RONDO_TRY(rondo_op_clamp(program, value, -INFINITY, 0, &below));
  RONDO_TRY(rondo_op_mul(program, below, slope, &below));
  return rondo_op_add(program, above, below, out_value);
}

/* The slope must broadcast to the value, and not the value to the slope. */
static bool is_slope_of(const rondo_shape *slope, const rondo_shape *value) {
  bool fits = slope->type == value->type && slope->rank <= value->rank;
  for (uint32_t d = 1; fits && d <= slope->rank; d++) {
    const size_t dim = slope->dims[slope->rank - d];
    fits = dim == 1 || dim == value->dims[value->rank - d];
  }
  return fits;
}

rondo_status rondo_op_prelu(rondo_program *program, rondo_value value, rondo_value slope, rondo_value *out_value) {
  char texts[2][RONDO_SHAPE_TEXT];
  rondo_shape of_value, of_slope;
  rondo_value made = {0};
  RONDO_TRY(rondo_program_begin(program, "prelu", out_value));
  RONDO_TRY(rondo_given_shape(program, value, "prelu", "value", &of_value));
  RONDO_TRY(rondo_given_shape(program, slope, "prelu", "slope", &of_slope));
  if (!is_slope_of(&of_slope, &of_value))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "prelu: slope %s does not broadcast to value %s: both need one type; reshape slopes [c] of the "
                      "channels of [n, c, h, w] to [c, 1, 1]",
                      rondo_shape_text(texts[0], &of_slope), rondo_shape_text(texts[1], &of_value));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_prelu(program, value, slope, &made);
  return rondo_compose_end(program, "prelu", mark, status, made, out_value);
}
