/* SPDX-License-Identifier: MIT
 * What the tests of argmax and argmin share: random values of which many integers are equal, and the places.
 */
#ifndef RONDO_TESTS_OPERATORS_ARGMAX_REFERENCE_H
#define RONDO_TESTS_OPERATORS_ARGMAX_REFERENCE_H

#include "support/test_operator.h"

enum { PLACE_DIMENSION, PLACE_KEEPS }; /* sizes */

/* Now and then a dimension is long, so that a row is more than a warp's or a chunk. */
static inline void draw_places(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 1, 4);
  test_draw_shape(seed, rank, 6, shape);
  if (test_random_below(seed, 3) == 0)
    shape[test_random_below(seed, (uint32_t)rank)] = test_draw_between(seed, 200, 1300);
  test_add_float(call, shape, rank, -1, 1);
  call->sizes[PLACE_DIMENSION] = test_random_below(seed, (uint32_t)rank);
  call->sizes[PLACE_KEEPS] = test_random_below(seed, 2);
}

static inline void draw_places_of_integers(uint64_t *seed, test_call *call) {
  draw_places(seed, call);
  call->inputs[0].type = test_random_below(seed, 2) == 0 ? RONDO_I32 : RONDO_I64;
  call->inputs[0].low = -40;
  call->inputs[0].high = 40;
}

/* The place of the largest of sign · x. */
static inline void find_places(const test_call *call, const double *x, double sign, double *y) {
  const test_tensor *value = &call->inputs[0];
  const size_t dimension = call->sizes[PLACE_DIMENSION], size = value->shape[dimension];
  const size_t inner = test_elements(value->shape + dimension + 1, value->rank - dimension - 1);
  for (size_t i = 0; i < test_input_elements(call, 0) / size; i++) {
    const double *from = x + i / inner * size * inner + i % inner;
    size_t best = 0;
    for (size_t k = 1; k < size; k++) best = sign * from[k * inner] > sign * from[best * inner] ? k : best;
    y[i] = (double)best;
  }
}

#endif
