/* SPDX-License-Identifier: MIT
 * less and less_equal.
 */
#include "operators/broadcast_reference.h"

static double value_of_less(double a, double b) { return a < b; }

TEST_COMPARISON(less)

static double value_of_less_equal(double a, double b) { return a <= b; }

TEST_COMPARISON(less_equal)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_less), test_case(test_less_of_integers), test_case(test_less_equal),
                                     test_case(test_less_equal_of_integers)};
  return test_main(tests);
}
