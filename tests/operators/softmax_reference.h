/* SPDX-License-Identifier: MIT
 * What the tests of softmax and log_softmax share.
 */
#ifndef RONDO_TESTS_OPERATORS_SOFTMAX_REFERENCE_H
#define RONDO_TESTS_OPERATORS_SOFTMAX_REFERENCE_H

#include <math.h>

#include "support/test_operator.h"

/* Now and then rows are long. */
static inline void draw_rows(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 1, 4);
  test_draw_shape(seed, rank, 7, shape);
  if (test_random_below(seed, 4) == 0) shape[rank - 1] = test_draw_between(seed, 200, 1400);
  test_add_float(call, shape, rank, -4, 4);
}

/* y = value_of(x, the sum of exp(x) over its row) */
static inline void reference_rows(const test_call *call, const double *x, double *y,
                                  double (*value_of)(double x, double sum)) {
  const size_t columns = call->inputs[0].shape[call->inputs[0].rank - 1];
  for (size_t row = 0; row < test_input_elements(call, 0); row += columns) {
    double sum = 0;
    for (size_t i = row; i < row + columns; i++) sum += exp(x[i]);
    for (size_t i = row; i < row + columns; i++) y[i] = value_of(x[i], sum);
  }
}

#endif
