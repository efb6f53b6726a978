/* SPDX-License-Identifier: MIT
 * square.
 */
#include "operators/unary_reference.h"

static double value_at(double x) { return x * x; }

TEST_UNARY(square, -3, 3)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_square)};
  return test_main(tests);
}
