/* SPDX-License-Identifier: MIT
 * Element-wise operators with one input. unary_operators.inc has a row for each operator. This file turns a row into
 * its CPU functions, its kernels, the operator, the gradient operator and the public function. Threads: as
 * tensor/program/operator.h says.
 */
#include "tensor/operators/elementwise/unary_operators.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "tensor/operators/elementwise/broadcast.h"
#include "tensor/program/operation.h"

/* Kernels ---------------------------------------------------------------------------------------------------------- */

RONDO_VECTORISED(compute_blocks, (const rondo_operator *row, rondo_type type, rondo_blocks blocks, void *const *args),
                 (row, type, blocks, args)) {
  const uint32_t inputs = row->required, elements = inputs - row->element.others;
  void *y = RONDO_ARG(void *, inputs);
  const size_t count = RONDO_ARG(size_t, inputs + 1);
  const bool is_integer = rondo_is_integer(type);
  rondo_chunk_buffer buffers[RONDO_MAX_TERMS + 1];
  rondo_chunk_buffer *last = &buffers[RONDO_MAX_TERMS];
  rondo_chunk_call call = {.row = row, .result_type = type};
  for (uint32_t n = 0; n < row->element.numbers; n++) call.numbers[n] = RONDO_ARG(float, inputs + 2 + n);
  for (uint32_t t = elements; t < inputs; t++) call.terms[t] = RONDO_ARG(const void *, t);
  if (elements < inputs) call.size = RONDO_ARG(size_t, inputs + 2);
  const rondo_span span = rondo_blocks_span(blocks, count, RONDO_LANES);
  RONDO_EACH_CHUNK(at, length, span.first, span.last) {
    for (uint32_t t = 0; t < elements; t++) {
      const void *x = RONDO_ARG(const void *, t);
      call.terms[t] = is_integer ? (const void *)rondo_load_integers(type, x, at, length, buffers[t].integers)
                                 : (const void *)rondo_load_chunk(type, x, at, length, buffers[t].floats);
    }
    call.result = is_integer ? (void *)last->integers : (void *)rondo_chunk_of(type, y, at, last->floats);
    call.first = at;
    call.count = length;
    row->element.compute(&call);
    if (is_integer)
      rondo_store_integers(type, y, at, length, call.result);
    else
      rondo_store_chunk(type, y, at, length, call.result);
  }
}

void rondo_elementwise_cpu(const rondo_operator *row, rondo_type type, rondo_blocks blocks, void *const *args) {
  assert(row->required <= RONDO_MAX_TERMS && row->element.others < row->required);
  compute_blocks(row, type, blocks, args);
}

void rondo_compute_unary(const rondo_chunk_call *call) {
  const rondo_unary *family = call->row->family;
  if (family->slope != NULL)
    family->slope(call->terms[0], call->terms[1], call->result, call->count);
  else if (rondo_is_integer(call->result_type))
    family->integers(call->terms[0], call->result, call->count);
  else
    family->chunk(call->terms[0], call->result, call->count);
}

/* Functions of the rows -------------------------------------------------------------------------------------------- */

/* Public operators say which types they take. */
rondo_status rondo_infer_unary(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  if (operation->row->types == 0) RONDO_TRY(rondo_require_float(program, operation, 0, RONDO_ANY_RANK));
  results[0] = *rondo_operation_input(program, operation, 0);
  return RONDO_OK;
}

static rondo_status infer_slope(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  RONDO_TRY(rondo_infer_unary(program, operation, results));
  return rondo_require_same_shape(program, operation, 0, 1);
}

static rondo_status differentiate_unary(rondo_program *program, const rondo_operation *operation,
                                        const uint32_t *result_gradients, uint32_t *input_gradients) {
  const rondo_unary *family = operation->row->family;
  const uint32_t inputs[] = {family->keeps_result ? operation->results[0] : operation->inputs[0], result_gradients[0]};
  return rondo_program_add(program, family->gradient, inputs, 2, NULL, &input_gradients[0]);
}

static rondo_status emit_unary(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_unary *family = operation->row->family;
  const rondo_shape *shape = rondo_emit_shape(emitter, operation->inputs[0]);
  assert(family->code[shape->type].name != NULL);
  const size_t count = rondo_shape_elements(shape);
  const rondo_grid grid = rondo_emit_grid(emitter, count, RONDO_PACKED_GRAIN);
  if (family->slope == NULL)
    return rondo_emit_operands(emitter, operation, &family->code[shape->type], grid,
                               RONDO_OPERANDS(RONDO_INPUT(0), RONDO_RESULT(0), RONDO_OBJECT(count)));
  return rondo_emit_operands(emitter, operation, &family->code[shape->type], grid,
                             RONDO_OPERANDS(RONDO_INPUT(0), RONDO_INPUT(1), RONDO_RESULT(0), RONDO_OBJECT(count)));
}

/* The table -------------------------------------------------------------------------------------------------------- */

#define FORMULA RONDO_INLINE
#define INPUT false
#define RESULT true

/* Not in elementary.h, because CUDA has a function of its own. */
RONDO_INLINE float rondo_rsqrt(float x) { return 1.0f / sqrtf(x); }

#define FORMULAS(name, formula, slope_formula)              \
  RONDO_INLINE float name##_of(float x) { return formula; } \
  RONDO_INLINE float name##_gradient_of(float kept, float dy) { return slope_formula; }

#define CHUNK_LOOP(name) RONDO_EACH_LANE(i, lane, count, y[i] = name##_of(x[i]))
#define SLOPE_LOOP(name) RONDO_EACH_LANE(i, lane, count, dx[i] = name##_gradient_of(kept[i], dy[i]))

#define CPU_FUNCTIONS(name, chunk_loop, slope_loop)                                                           \
  RONDO_VECTORISED(name##_chunk, (const float *restrict x, float *restrict y, size_t count), (x, y, count)) { \
    chunk_loop;                                                                                               \
  }                                                                                                           \
  RONDO_VECTORISED(name##_slope,                                                                              \
                   (const float *restrict kept, const float *restrict dy, float *restrict dx, size_t count),  \
                   (kept, dy, dx, count)) {                                                                   \
    slope_loop;                                                                                               \
  }                                                                                                           \
  static void name##_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {                           \
    rondo_elementwise_cpu(&rondo_operator_##name, type, blocks, args);                                        \
  }                                                                                                           \
  static void name##_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {                  \
    rondo_elementwise_cpu(&rondo_operator_##name##_gradient, type, blocks, args);                             \
  }

/* Whether sin and cos of one of the numbers need the form for large arguments. */
RONDO_INLINE bool has_far(const float *x, size_t count) {
  uint32_t far = 0;
  RONDO_EACH_LANE(i, lane, count, far |= rondo_is_far(x[i]));
  return far != 0;
}

#define FAR_CHUNK_LOOP(name) \
  CHUNK_LOOP(name);          \
  for (size_t i = has_far(x, count) ? 0 : count; i < count; i++) y[i] = rondo_is_far(x[i]) ? name##_far_of(x[i]) : y[i]
#define FAR_SLOPE_LOOP(name)                                        \
  SLOPE_LOOP(name);                                                 \
  for (size_t i = has_far(kept, count) ? 0 : count; i < count; i++) \
  dx[i] = rondo_is_far(kept[i]) ? name##_far_gradient_of(kept[i], dy[i]) : dx[i]

#define ROWS(operator, keeps, takes, KERNEL, integer_chunk)                                        \
  KERNEL(operator, operator, RONDO_UNARY_PARAMETERS);                                              \
  RONDO_TYPED_KERNEL(operator##_gradient, operator, RONDO_SLOPE_PARAMETERS);                       \
  static const rondo_unary operator##_family = {.code = operator##_code,                           \
                                                .chunk = operator##_chunk,                         \
                                                .integers = integer_chunk,                         \
                                                .gradient = &rondo_operator_##operator##_gradient, \
                                                .keeps_result = keeps};                            \
  static const rondo_unary operator##_gradient_family = {.code = operator##_gradient_code,         \
                                                         .slope = operator##_slope };              \
  const rondo_operator rondo_operator_##operator= {                                                \
      .name = #operator,                                                                           \
      .types = takes,                                                                              \
      .inputs = {"value"},                                                                         \
      .required = 1,                                                                               \
      .result_count = 1,                                                                           \
      .family = &operator##_family,                                                                \
      .infer = rondo_infer_unary,                                                                  \
      .differentiate = differentiate_unary,                                                        \
      .emit = emit_unary,                                                                          \
      .element = RONDO_ELEMENT(rondo_compute_unary, operator, unary_operators)};                   \
  const rondo_operator rondo_operator_##operator##_gradient = {                                    \
      .name = #operator"_gradient",                                                                \
      .inputs = {"kept", "gradient"},                                                              \
      .required = 2,                                                                               \
      .result_count = 1,                                                                           \
      .family = &operator##_gradient_family,                                                       \
      .infer = infer_slope,                                                                        \
      .emit = emit_unary,                                                                          \
      .element = RONDO_ELEMENT(rondo_compute_unary, operator##_gradient, unary_operators)};

#define FORM_UNARY(operator, keeps, formula, slope_formula)           \
  FORMULAS(operator, formula, slope_formula)                          \
  CPU_FUNCTIONS(operator, CHUNK_LOOP(operator), SLOPE_LOOP(operator)) \
  ROWS(operator, keeps, RONDO_FLOATS, RONDO_TYPED_KERNEL, NULL)

#define UNARY(operator, keeps, formula, slope_formula) \
  FORM_UNARY(operator, keeps, formula, slope_formula)  \
  PUBLIC_FUNCTION(operator)

#define FAR_UNARY(operator, keeps, formula, slope_formula, far_formula, far_slope_formula) \
  FORMULAS(operator, formula, slope_formula)                                               \
  FORMULAS(operator##_far, far_formula, far_slope_formula)                                 \
  CPU_FUNCTIONS(operator, FAR_CHUNK_LOOP(operator), FAR_SLOPE_LOOP(operator))              \
  ROWS(operator, keeps, RONDO_FLOATS, RONDO_TYPED_KERNEL, NULL)                            \
  PUBLIC_FUNCTION(operator)

#define INTEGER_CHUNK(operator, integer_formula)                                                         \
  RONDO_VECTORISED(operator##_integers, (const int64_t *restrict in, int64_t *restrict y, size_t count), \
                   (in, y, count)) {                                                                     \
    RONDO_EACH_LANE(i, lane, count, const int64_t x = in[i]; y[i] = integer_formula);                    \
  }

#define NUMBER_UNARY(operator, keeps, formula, integer_formula, slope_formula)   \
  FORMULAS(operator, formula, slope_formula)                                     \
  CPU_FUNCTIONS(operator, CHUNK_LOOP(operator), SLOPE_LOOP(operator))            \
  INTEGER_CHUNK(operator, integer_formula)                                       \
  ROWS(operator, keeps, RONDO_NUMBERS, RONDO_NUMBER_KERNEL, operator##_integers) \
  PUBLIC_FUNCTION(operator)

#define PUBLIC_FUNCTION(operator)                                                                       \
  rondo_status rondo_op_##operator(rondo_program *program, rondo_value value, rondo_value *out_value) { \
    return rondo_program_apply(program, &rondo_operator_##operator, & value, 1, NULL, out_value);       \
  }

#include "tensor/operators/elementwise/unary_operators.inc"

rondo_status rondo_op_gelu(rondo_program *program, rondo_value value, rondo_gelu_form form, rondo_value *out_value) {
  RONDO_TRY(rondo_require("gelu", "out_value", out_value));
  *out_value = (rondo_value){0};
  if (form != RONDO_GELU_ERF && form != RONDO_GELU_TANH) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "gelu: form %d does not exist: use RONDO_GELU_ERF or RONDO_GELU_TANH", (int)form);
  }
  const rondo_operator *row = form == RONDO_GELU_TANH ? &rondo_operator_gelu_tanh : &rondo_operator_gelu;
  return rondo_program_apply(program, row, &value, 1, NULL, out_value);
}

/* Activations of matrix products ----------------------------------------------------------------------------------- */

const rondo_unary *rondo_activation_family(rondo_activation activation) {
  static const rondo_unary *const families[] = {[RONDO_ACTIVATION_RELU] = &relu_family,
                                                [RONDO_ACTIVATION_GELU] = &gelu_family,
                                                [RONDO_ACTIVATION_GELU_TANH] = &gelu_tanh_family,
                                                [RONDO_ACTIVATION_SILU] = &silu_family};
  assert((size_t)activation < sizeof families / sizeof *families);
  return families[activation];
}

RONDO_VECTORISED(rectify_in_place, (float *y, size_t count), (y, count)) {
  RONDO_EACH_LANE(i, lane, count, y[i] = rondo_relu(y[i]));
}

void rondo_activate_in_place(rondo_activation activation, float *y, size_t count) {
  float x[RONDO_CHUNK];
  if (activation == RONDO_ACTIVATION_NONE) return;
  if (activation == RONDO_ACTIVATION_RELU) {
    rectify_in_place(y, count);
    return;
  }
  for (size_t at = 0; at < count; at += RONDO_CHUNK) {
    const size_t length = rondo_smaller(count - at, RONDO_CHUNK);
    memcpy(x, y + at, length * sizeof *x);
    rondo_activate(activation, x, y + at, length);
  }
}

rondo_status rondo_emit_activation(rondo_emitter *emitter, rondo_activation activation, rondo_type type, const void *x,
                                   void *y, size_t count) {
  return rondo_emit_kernel(emitter, &rondo_activation_family(activation)->code[type],
                           rondo_emit_grid(emitter, count, RONDO_ELEMENTWISE_GRAIN), RONDO_ARGS(&x, &y, &count));
}
