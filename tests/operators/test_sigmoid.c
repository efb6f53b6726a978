/* SPDX-License-Identifier: MIT
 * sigmoid.
 */
#include <math.h>

#include "operators/unary_reference.h"

static double value_at(double x) { return 1 / (1 + exp(-x)); }

TEST_UNARY(sigmoid, -9, 9)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_sigmoid)};
  return test_main(tests);
}
