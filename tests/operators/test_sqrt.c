/* SPDX-License-Identifier: MIT
 * sqrt.
 */
#include <math.h>

#include "operators/unary_reference.h"

static double value_at(double x) { return sqrt(x); }

TEST_UNARY(sqrt, 0.1, 9)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_sqrt)};
  return test_main(tests);
}
