/* SPDX-License-Identifier: MIT
 * not_equal.
 */
#include "operators/broadcast_reference.h"

static double value_of_not_equal(double a, double b) { return a != b; }

TEST_COMPARISON(not_equal)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_not_equal), test_case(test_not_equal_of_integers)};
  return test_main(tests);
}
