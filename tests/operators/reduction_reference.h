/* SPDX-License-Identifier: MIT
 * What the tests of reductions share: random shapes and sets of dimensions, and the result that an element goes into.
 */
#ifndef RONDO_TESTS_OPERATORS_REDUCTION_REFERENCE_H
#define RONDO_TESTS_OPERATORS_REDUCTION_REFERENCE_H

#include <math.h>

#include "support/test_operator.h"

/* Of `sizes`: whether all are reduced and named by NULL, whether they are kept, how many, and which. */
enum { ALL, KEEPS, COUNT, FIRST };

static inline void draw_dimensions(uint64_t *seed, test_call *call, size_t rank) {
  call->sizes[ALL] = test_random_below(seed, 6) == 0;
  call->sizes[KEEPS] = test_random_below(seed, 2);
  call->sizes[COUNT] = 0;
  for (size_t d = rank; d > 0; d--) {
    if (test_random_below(seed, 2) == 0) call->sizes[FIRST + call->sizes[COUNT]++] = d - 1;
  }
}

/* Now and then one dimension is long, so that results are made of parts. */
static inline void draw_reduction(uint64_t *seed, test_call *call, double low, double high) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 0, 6);
  test_draw_shape(seed, rank, rank > 4 ? 3 : 6, shape);
  if (rank > 0 && rank < 4 && test_random_below(seed, 3) == 0)
    shape[test_random_below(seed, (uint32_t)rank)] = test_draw_between(seed, 130, 1400);
  test_add_float(call, shape, rank, low, high);
  draw_dimensions(seed, call, rank);
}

static inline bool is_reduced(const test_call *call, size_t dimension) {
  bool named = call->sizes[ALL] != 0;
  for (size_t i = 0; i < call->sizes[COUNT]; i++) named = named || call->sizes[FIRST + i] == dimension;
  return named;
}

/* The number of the result that element `at` goes into. */
static inline size_t result_of(const test_call *call, size_t at) {
  const test_tensor *x = &call->inputs[0];
  size_t result = 0, stride = 1;
  for (size_t d = x->rank; d > 0; d--) {
    const size_t position = at % x->shape[d - 1];
    at /= x->shape[d - 1];
    if (is_reduced(call, d - 1)) continue;
    result += position * stride;
    stride *= x->shape[d - 1];
  }
  return result;
}

static inline size_t result_count(const test_call *call) {
  size_t count = 1;
  for (size_t d = 0; d < call->inputs[0].rank; d++) count *= is_reduced(call, d) ? 1 : call->inputs[0].shape[d];
  return count;
}

typedef rondo_status (*reduction)(rondo_program *program, rondo_value value, const size_t *dims, size_t dim_count,
                                  bool keeps, rondo_value *out_value);

static inline rondo_status build_reduction(const test_call *call, rondo_program *program, rondo_value value,
                                           reduction op, rondo_value *result) {
  return op(program, value, call->sizes[ALL] ? NULL : call->sizes + FIRST, call->sizes[COUNT], call->sizes[KEEPS] != 0,
            result);
}

/* Of x [2, 4] along the last dimension: all that are the extreme, the first, third and fourth of the first row, share
 * the gradient; in the second row there is a not-a-number. */
static inline void check_extreme(test_fixture *t, reduction op, const float x[8]) {
  const size_t shape[] = {2, 4}, last = 1;
  float y[2], dx[8];
  rondo_program *program = NULL;
  rondo_compiled *compiled = NULL;
  rondo_value in, out, loss, gradient;
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &in));
  assert_ok(op(program, in, &last, 1, false, &out));
  assert_ok(rondo_op_sum(program, out, NULL, 0, false, &loss));
  assert_ok(rondo_program_gradients(program, loss, &in, 1, &gradient));
  assert_ok(rondo_program_output(program, "y", out));
  assert_ok(rondo_program_output(program, "dx", gradient));
  assert_ok(rondo_compile(program, t->device, NULL, &compiled));
  assert_ok(rondo_compiled_write(compiled, "x", x, sizeof dx));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", y, sizeof y));
  assert_ok(rondo_compiled_read(compiled, "dx", dx, sizeof dx));
  assert_true(y[0] == x[0] && isnan(y[1]));
  assert_near(dx, ((float[]){1.0f / 3, 0, 1.0f / 3, 1.0f / 3}), 4, 1e-6f);
  assert_ok(rondo_compiled_destroy(compiled));
  rondo_program_destroy(program);
}

#endif
