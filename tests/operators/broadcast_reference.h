/* SPDX-License-Identifier: MIT
 * What the tests of operators that broadcast share: random shapes that fit together, and which elements of the inputs
 * an element of the result is made of.
 */
#ifndef RONDO_TESTS_OPERATORS_BROADCAST_REFERENCE_H
#define RONDO_TESTS_OPERATORS_BROADCAST_REFERENCE_H

#include "support/test_operator.h"

#define MOST_COARSE 4096

/* Numbers of which many are equal, for inputs of up to MOST_COARSE elements. */
static inline const double *coarse_numbers(void) {
  static double numbers[2 * MOST_COARSE];
  uint64_t seed = 5;
  for (size_t i = 0; numbers[0] == 0 && i < 2 * MOST_COARSE; i++)
    numbers[i] = ((double)test_random_below(&seed, 5) + 1) / 2;
  return numbers;
}

/* `count` inputs, random in low .. high, whose shapes broadcast: dimensions of a common shape, of which each may lack
 * the first ones and have others as 1. */
static inline void draw_broadcast(uint64_t *seed, test_call *call, size_t count, double low, double high) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 0, 6);
  test_draw_shape(seed, rank, rank > 4 ? 3 : 6, shape);
  if (rank > 0 && rank < 4 && test_random_below(seed, 4) == 0)
    shape[rank - 1] = test_draw_between(seed, 250, 600) & ~3u;
  for (size_t i = 0; i < count; i++) {
    const size_t lacks = test_random_below(seed, 3) == 0 ? test_draw_between(seed, 0, rank) : 0;
    size_t own[RONDO_MAX_DIMENSIONS];
    for (size_t d = lacks; d < rank; d++) own[d - lacks] = test_random_below(seed, 4) == 0 ? 1 : shape[d];
    test_add_float(call, own, rank - lacks, low, high);
  }
}

/* The same of integers, I32 or I64. */
static inline void draw_broadcast_integers(uint64_t *seed, test_call *call, size_t count, double low, double high) {
  const rondo_type type = test_random_below(seed, 2) == 0 ? RONDO_I32 : RONDO_I64;
  draw_broadcast(seed, call, count, low, high);
  for (size_t i = 0; i < count; i++) call->inputs[i].type = type;
}

/* Elements of the shape that the inputs have together. */
static inline size_t broadcast_shape(const test_call *call, size_t *shape, size_t *rank) {
  *rank = 0;
  for (size_t d = 0; d < RONDO_MAX_DIMENSIONS; d++) shape[d] = 1;
  for (size_t i = 0; i < call->input_count; i++) *rank = call->inputs[i].rank > *rank ? call->inputs[i].rank : *rank;
  for (size_t i = 0; i < call->input_count; i++) {
    const test_tensor *input = &call->inputs[i];
    for (size_t d = 0; d < input->rank; d++) {
      size_t *dim = &shape[*rank - input->rank + d];
      if (input->shape[d] > *dim) *dim = input->shape[d];
    }
  }
  return test_elements(shape, *rank);
}

/* Which element of an input the element `at` of the result is made of. */
static inline size_t broadcast_index(const test_call *call, size_t input, const size_t *shape, size_t rank, size_t at) {
  const test_tensor *of = &call->inputs[input];
  size_t index = 0, stride = 1;
  for (size_t d = rank; d > 0; d--) {
    const size_t position = at % shape[d - 1];
    at /= shape[d - 1];
    if (rank - d >= of->rank) continue;
    const size_t dim = of->shape[of->rank - 1 - (rank - d)];
    if (dim != 1) index += position * stride;
    stride *= dim;
  }
  return index;
}

/* result[i] = value_at(a, b) */
static inline void reference_broadcast(const test_call *call, double *const *inputs, double *result,
                                       double (*value_at)(double a, double b)) {
  size_t shape[RONDO_MAX_DIMENSIONS], rank;
  const size_t count = broadcast_shape(call, shape, &rank);
  for (size_t i = 0; i < count; i++) {
    result[i] = value_at(inputs[0][broadcast_index(call, 0, shape, rank, i)],
                         inputs[1][broadcast_index(call, 1, shape, rank, i)]);
  }
}

/* rondo_op_`op` of two inputs, element by element, whose value at a and b is value_of_`op`(a, b). */
#define BINARY_OPERATOR(op)                                                                                \
  static rondo_status build_##op(const test_call *call, rondo_program *program, const rondo_value *inputs, \
                                 rondo_value *result) {                                                    \
    (void)call;                                                                                            \
    return rondo_op_##op(program, inputs[0], inputs[1], result);                                           \
  }                                                                                                        \
  static void reference_##op(const test_call *call, double *const *inputs, double *result) {               \
    reference_broadcast(call, inputs, result, value_of_##op);                                              \
  }

/* Two inputs of which many elements are equal. */
static inline void draw_coarse(uint64_t *seed, test_call *call) {
  draw_broadcast(seed, call, 2, -3, 3);
  for (size_t i = 0; i < 2; i++) {
    if (test_input_elements(call, i) <= MOST_COARSE) call->inputs[i].values = coarse_numbers() + i * MOST_COARSE;
  }
}

static inline void draw_floats(uint64_t *seed, test_call *call) { draw_broadcast(seed, call, 2, -3, 3); }
static inline void draw_integers(uint64_t *seed, test_call *call) { draw_broadcast_integers(seed, call, 2, -50, 50); }
static inline void draw_few_integers(uint64_t *seed, test_call *call) { draw_broadcast_integers(seed, call, 2, -2, 2); }

/* The tests test_floats and test_integers of it. */
#define TEST_ARITHMETIC(op)                                                                                          \
  BINARY_OPERATOR(op)                                                                                                \
  TEST_OPERATOR(test_floats, .name = #op, .draw = draw_floats, .build = build_##op, .reference = reference_##op,     \
                .gradient_tolerance = 4e-4)                                                                          \
  TEST_OPERATOR(test_integers, .name = #op, .draw = draw_integers, .build = build_##op, .reference = reference_##op, \
                .only_f32 = true, .has_no_gradient = true)

/* The tests test_`op` and test_`op`_of_integers of it, which gives an integer. */
#define TEST_COMPARISON(op)                                                                                    \
  BINARY_OPERATOR(op)                                                                                          \
  TEST_OPERATOR(test_##op, .name = #op, .draw = draw_coarse, .build = build_##op, .reference = reference_##op, \
                .has_no_gradient = true)                                                                       \
  TEST_OPERATOR(test_##op##_of_integers, .name = #op, .draw = draw_few_integers, .build = build_##op,          \
                .reference = reference_##op, .only_f32 = true, .has_no_gradient = true)

#endif
