/* SPDX-License-Identifier: MIT
 * rsqrt.
 */
#include <math.h>

#include "operators/unary_reference.h"

static double value_at(double x) { return 1 / sqrt(x); }

TEST_UNARY(rsqrt, 0.1, 9)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_rsqrt)};
  return test_main(tests);
}
