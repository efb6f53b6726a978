/* SPDX-License-Identifier: MIT
 * log_softmax over the last dimension.
 */
#include <math.h>

#include "support/test_operator.h"

static void draw(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 1, 4);
  test_draw_shape(seed, rank, 7, shape);
  if (test_random_below(seed, 4) == 0) shape[rank - 1] = test_draw_between(seed, 200, 1400);
  test_add_float(call, shape, rank, -4, 4);
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  (void)call;
  return rondo_op_log_softmax(program, in[0], result);
}

static void reference(const test_call *call, double *const *in, double *y) {
  const size_t columns = call->inputs[0].shape[call->inputs[0].rank - 1];
  const size_t rows = test_input_elements(call, 0) / columns;
  for (size_t row = 0; row < rows; row++) {
    double sum = 0;
    for (size_t i = row * columns; i < (row + 1) * columns; i++) sum += exp(in[0][i]);
    for (size_t i = row * columns; i < (row + 1) * columns; i++) y[i] = in[0][i] - log(sum);
  }
}

TEST_OPERATOR(test_log_softmax, .name = "log_softmax", .draw = draw, .build = build, .reference = reference)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_log_softmax)};
  return test_main(tests);
}
