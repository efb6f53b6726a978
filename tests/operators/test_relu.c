/* SPDX-License-Identifier: MIT
 * relu.
 */
#include "operators/unary_reference.h"

static double value_at(double x) { return x > 0 ? x : 0; }

TEST_UNARY(relu, -4, 4)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_relu)};
  return test_main(tests);
}
