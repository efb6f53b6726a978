/* SPDX-License-Identifier: MIT
 * tanh.
 */
#include <math.h>

#include "operators/unary_reference.h"

static double value_at(double x) { return tanh(x); }

TEST_UNARY(tanh, -4, 4)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_tanh)};
  return test_main(tests);
}
