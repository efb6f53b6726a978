/* SPDX-License-Identifier: MIT
 * neg.
 */
#include "operators/unary_reference.h"

static double value_at(double x) { return -x; }

TEST_UNARY(neg, -4, 4)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_neg)};
  return test_main(tests);
}
