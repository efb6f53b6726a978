/* SPDX-License-Identifier: MIT
 * minimum.
 */
#include <math.h>

#include "operators/broadcast_reference.h"

static double value_of_minimum(double a, double b) { return fmin(a, b); }

TEST_ARITHMETIC(minimum)
TEST_OPERATOR(test_equal_numbers, .name = "minimum", .draw = draw_coarse, .build = build_minimum,
              .reference = reference_minimum, .gradient_tolerance = 4e-4)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_floats), test_case(test_integers), test_case(test_equal_numbers)};
  return test_main(tests);
}
