/* SPDX-License-Identifier: MIT
 * greater and greater_equal.
 */
#include "operators/broadcast_reference.h"

static double value_of_greater(double a, double b) { return a > b; }

TEST_COMPARISON(greater)

static double value_of_greater_equal(double a, double b) { return a >= b; }

TEST_COMPARISON(greater_equal)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_greater), test_case(test_greater_of_integers),
                                     test_case(test_greater_equal), test_case(test_greater_equal_of_integers)};
  return test_main(tests);
}
