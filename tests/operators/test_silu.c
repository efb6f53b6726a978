/* SPDX-License-Identifier: MIT
 * silu.
 */
#include <math.h>

#include "operators/unary_reference.h"

static double value_at(double x) { return x / (1 + exp(-x)); }

TEST_UNARY(silu, -9, 9)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_silu)};
  return test_main(tests);
}
