/* SPDX-License-Identifier: MIT
 * exp.
 */
#include <math.h>

#include "operators/unary_reference.h"

static double value_at(double x) { return exp(x); }

TEST_UNARY(exp, -4, 3)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_exp)};
  return test_main(tests);
}
