/* SPDX-License-Identifier: MIT
 * log.
 */
#include <math.h>

#include "operators/unary_reference.h"

static double value_at(double x) { return log(x); }

TEST_UNARY(log, 0.05, 8)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_log)};
  return test_main(tests);
}
