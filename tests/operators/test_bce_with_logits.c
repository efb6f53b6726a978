/* SPDX-License-Identifier: MIT
 * bce_with_logits: mean and sum; logits so large that exp overflows.
 */
#include <math.h>

#include "support/test_operator.h"

enum { COMBINE }; /* sizes */

static void draw(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 0, 4);
  test_draw_shape(seed, rank, 7, shape);
  test_add_float(call, shape, rank, -5, 5);
  test_add_float(call, shape, rank, 0, 1);
  call->sizes[COMBINE] = test_random_below(seed, 2) == 0 ? RONDO_COMBINE_MEAN : RONDO_COMBINE_SUM;
}

static void draw_large(uint64_t *seed, test_call *call) {
  const size_t count = test_draw_between(seed, 1, 40);
  test_add_float(call, &count, 1, -1e4, 1e4)->has_no_gradient = true;
  test_add_float(call, &count, 1, 0, 1)->has_no_gradient = true;
  call->sizes[COMBINE] = RONDO_COMBINE_MEAN;
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  return rondo_op_bce_with_logits(program, in[0], in[1], (rondo_combine)call->sizes[COMBINE], result);
}

static void reference(const test_call *call, double *const *in, double *y) {
  const size_t count = test_input_elements(call, 0);
  y[0] = 0;
  for (size_t i = 0; i < count; i++) {
    const double x = in[0][i], t = in[1][i];
    y[0] += t * (x < -700 ? -x : log1p(exp(-x))) + (1 - t) * (x > 700 ? x : log1p(exp(x)));
  }
  if (call->sizes[COMBINE] == RONDO_COMBINE_MEAN) y[0] /= (double)count;
}

TEST_OPERATOR(test_bce_with_logits, .name = "bce_with_logits", .draw = draw, .build = build, .reference = reference)
TEST_OPERATOR(test_large_logits, .name = "bce_with_logits", .draw = draw_large, .build = build, .reference = reference)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_bce_with_logits), test_case(test_large_logits)};
  return test_main(tests);
}
