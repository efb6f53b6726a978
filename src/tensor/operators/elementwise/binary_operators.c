/* SPDX-License-Identifier: MIT
 * Element-wise operators with two inputs, which are broadcast, and their gradients with three inputs.
 * binary_operators.inc has a row for each operator. This file turns a row into its CPU functions, its kernels, the
 * operator and the public function, and defines the gradients. Threads: as tensor/program/operator.h says.
 */
#include <math.h>

#include "tensor/operators/elementwise/broadcast.h"
#include "tensor/operators/elementwise/unary_operators.h"
#include "tensor/program/operation.h"

/* Gradients -------------------------------------------------------------------------------------------------------- */

static rondo_status differentiate_add(rondo_program *program, const rondo_operation *operation,
                                      const uint32_t *result_gradients, uint32_t *input_gradients) {
  for (uint32_t i = 0; i < 2; i++)
    RONDO_TRY(rondo_add_sum_to(program, result_gradients[0], operation->inputs[i], &input_gradients[i]));
  return RONDO_OK;
}

static rondo_status differentiate_sub(rondo_program *program, const rondo_operation *operation,
                                      const uint32_t *result_gradients, uint32_t *input_gradients) {
  const rondo_attributes minus = rondo_scale_attributes(-1);
  RONDO_TRY(differentiate_add(program, operation, result_gradients, input_gradients));
  const uint32_t negated = input_gradients[1];
  return rondo_program_add(program, &rondo_operator_neg, &negated, 1, &minus, &input_gradients[1]);
}

/* The gradient of input `number`: `row` of the terms, summed over the broadcast dimensions. */
static rondo_status add_gradient(rondo_program *program, const rondo_operation *operation, const rondo_operator *row,
                                 const uint32_t *terms, uint32_t number, uint32_t *input_gradients) {
  uint32_t wide;
  RONDO_TRY(rondo_program_add(program, row, terms, row->required, NULL, &wide));
  return rondo_add_sum_to(program, wide, operation->inputs[number], &input_gradients[number]);
}

static rondo_status differentiate_mul(rondo_program *program, const rondo_operation *operation,
                                      const uint32_t *result_gradients, uint32_t *input_gradients) {
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t terms[] = {result_gradients[0], operation->inputs[1 - i]};
    RONDO_TRY(add_gradient(program, operation, &rondo_operator_mul, terms, i, input_gradients));
  }
  return RONDO_OK;
}

static rondo_status differentiate_div(rondo_program *program, const rondo_operation *operation,
                                      const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t of_a[] = {result_gradients[0], operation->inputs[1]};
  const uint32_t of_b[] = {result_gradients[0], operation->results[0], operation->inputs[1]};
  RONDO_TRY(add_gradient(program, operation, &rondo_operator_div, of_a, 0, input_gradients));
  return add_gradient(program, operation, &rondo_operator_div_gradient, of_b, 1, input_gradients);
}

static rondo_status differentiate_pow(rondo_program *program, const rondo_operation *operation,
                                      const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t of_base[] = {result_gradients[0], operation->inputs[0], operation->inputs[1]};
  const uint32_t of_exponent[] = {result_gradients[0], operation->results[0], operation->inputs[0]};
  RONDO_TRY(add_gradient(program, operation, &rondo_operator_pow_base_gradient, of_base, 0, input_gradients));
  return add_gradient(program, operation, &rondo_operator_pow_exponent_gradient, of_exponent, 1, input_gradients);
}

/* Between its steps, the quotient is constant: a - b quotient. */
static rondo_status differentiate_remainder(rondo_program *program, const rondo_operation *operation,
                                            const uint32_t *result_gradients, uint32_t *input_gradients) {
  const rondo_operator *row =
      operation->row == &rondo_operator_fmod ? &rondo_operator_fmod_gradient : &rondo_operator_remainder_gradient;
  const uint32_t terms[] = {result_gradients[0], operation->inputs[0], operation->inputs[1]};
  RONDO_TRY(rondo_add_sum_to(program, result_gradients[0], operation->inputs[0], &input_gradients[0]));
  return add_gradient(program, operation, row, terms, 1, input_gradients);
}
#define differentiate_fmod differentiate_remainder

/* The gradient goes to the larger input, or for minimum to the smaller one. Equal inputs get half of it each. */
static rondo_status differentiate_maximum(rondo_program *program, const rondo_operation *operation,
                                          const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t swapped = operation->row == &rondo_operator_minimum ? 1 : 0;
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t terms[] = {result_gradients[0], operation->inputs[i ^ swapped], operation->inputs[i ^ swapped ^ 1]};
    RONDO_TRY(add_gradient(program, operation, &rondo_operator_maximum_gradient, terms, i, input_gradients));
  }
  return RONDO_OK;
}
#define differentiate_minimum differentiate_maximum

/* As in PyTorch: of BOOL, a sum is "or", a product is "and", and a difference does not exist. */
#define types_of_add RONDO_ALL_TYPES
#define types_of_sub RONDO_NUMBERS
#define types_of_mul RONDO_ALL_TYPES
#define types_of_maximum RONDO_ALL_TYPES
#define types_of_minimum RONDO_ALL_TYPES
#define types_of_div RONDO_NUMBERS
#define types_of_pow RONDO_NUMBERS
#define types_of_remainder RONDO_NUMBERS
#define types_of_fmod RONDO_NUMBERS
#define types_of_bitwise_and (RONDO_INTEGERS | RONDO_TYPE_BIT(RONDO_BOOL))
#define types_of_bitwise_or types_of_bitwise_and
#define types_of_bitwise_xor types_of_bitwise_and
#define types_of_shift_left RONDO_INTEGERS
#define types_of_shift_right RONDO_INTEGERS

/* The table -------------------------------------------------------------------------------------------------------- */

#define FORMULA RONDO_INLINE
typedef int64_t integer;

/* The members of rondo_operator that the rows have in common. */
#define ROW_MEMBERS(operator, terms, ...) \
  .name = #operator, .inputs = {__VA_ARGS__}, .required = terms, RONDO_BROADCAST_ROW(operator, binary_operators)

#define PUBLIC_FUNCTION(operator)                                                                                  \
  rondo_status rondo_op_##operator(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out_value) { \
    return rondo_program_apply(program, &rondo_operator_##operator,(rondo_value[]){a, b}, 2, NULL, out_value);     \
  }

/* Of floats and integers: `terms` inputs with these names. */
#define ALL_TYPES(operator, terms, names, result_type, floats_formula, integers_formula, has_flags, takes, \
                  differentiates)                                                                          \
  RONDO_TERM_CHUNK(operator##_floats, float, result_type, floats_formula)                                  \
  RONDO_TERM_CHUNK(operator##_integers, int64_t, int64_t, integers_formula)                                \
  RONDO_BROADCAST_CPU(operator)                                                                            \
  RONDO_NUMBER_KERNEL(operator, operator, RONDO_BROADCAST_PARAMETERS_##terms);                             \
  static const rondo_broadcast_row operator##_family = {.code = operator##_code,                           \
                                                        .floats = operator##_floats,                       \
                                                        .integers = operator##_integers,                   \
                                                        .gives_flags = has_flags};                         \
  const rondo_operator rondo_operator_##operator= {ROW_MEMBERS(operator, terms, names), .types = takes,    \
                                                   .differentiate = differentiates};

#define INPUTS(...) __VA_ARGS__
#define BINARY(operator, floats_formula, integers_formula)                                                      \
  ALL_TYPES(operator, 2, INPUTS("a", "b"), float, floats_formula, integers_formula, false, types_of_##operator, \
            differentiate_##operator)                                                                           \
  PUBLIC_FUNCTION(operator)
#define COMPARISON(operator, formula)                                                              \
  ALL_TYPES(operator, 2, INPUTS("a", "b"), int64_t, formula, formula, true, RONDO_ALL_TYPES, NULL) \
  PUBLIC_FUNCTION(operator)
#define PREDICATE(operator, floats_formula, integers_formula)                                                     \
  ALL_TYPES(operator, 1, INPUTS("value"), int64_t, floats_formula, integers_formula, true, RONDO_ALL_TYPES, NULL) \
  rondo_status rondo_op_##operator(rondo_program *program, rondo_value value, rondo_value *out_value) {           \
    return rondo_program_apply(program, &rondo_operator_##operator, & value, 1, NULL, out_value);                 \
  }

#define STEP(operator, floats_formula, integers_formula)                                                       \
  ALL_TYPES(operator, 1, INPUTS("value"), float, floats_formula, integers_formula, false, RONDO_NUMBERS, NULL) \
  rondo_status rondo_op_##operator(rondo_program *program, rondo_value value, rondo_value *out_value) {        \
    return rondo_program_apply(program, &rondo_operator_##operator, & value, 1, NULL, out_value);              \
  }

#define INTEGER_BINARY(operator, formula)                                                                             \
  RONDO_TERM_CHUNK(operator##_integers, int64_t, int64_t, formula)                                                    \
  RONDO_BROADCAST_CPU(operator)                                                                                       \
  RONDO_INTEGER_KERNEL(operator, operator, RONDO_BROADCAST_PARAMETERS_2);                                             \
  static const rondo_broadcast_row operator##_family = {.code = operator##_code, .integers = operator##_integers };   \
  const rondo_operator rondo_operator_##operator= {ROW_MEMBERS(operator, 2, "a", "b"), .types = types_of_##operator}; \
  PUBLIC_FUNCTION(operator)

#define TERNARY(operator, inputs, formula)                                                                      \
  RONDO_TERM_CHUNK(operator##_floats, float, float, formula)                                                    \
  RONDO_BROADCAST_CPU(operator)                                                                                 \
  RONDO_TYPED_KERNEL(operator, operator, RONDO_BROADCAST_PARAMETERS_3);                                         \
  static const rondo_broadcast_row operator##_family = {.code = operator##_code, .floats = operator##_floats }; \
  const rondo_operator rondo_operator_##operator= {ROW_MEMBERS(operator, 3, inputs)};

#include "tensor/operators/elementwise/binary_operators.inc"
