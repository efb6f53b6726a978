/* SPDX-License-Identifier: MIT
 * equal.
 */
#include "operators/broadcast_reference.h"

static double value_of_equal(double a, double b) { return a == b; }

TEST_COMPARISON(equal)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_equal), test_case(test_equal_of_integers)};
  return test_main(tests);
}
