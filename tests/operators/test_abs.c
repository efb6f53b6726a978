/* SPDX-License-Identifier: MIT
 * abs.
 */
#include <math.h>

#include "operators/unary_reference.h"

static double value_at(double x) { return fabs(x); }

TEST_UNARY(abs, -3, 3)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_abs)};
  return test_main(tests);
}
