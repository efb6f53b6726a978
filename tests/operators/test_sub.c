/* SPDX-License-Identifier: MIT
 * sub.
 */
#include "operators/broadcast_reference.h"

static double value_of_sub(double a, double b) { return a - b; }

TEST_ARITHMETIC(sub)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_floats), test_case(test_integers)};
  return test_main(tests);
}
