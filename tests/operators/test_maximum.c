/* SPDX-License-Identifier: MIT
 * maximum.
 */
#include <math.h>

#include "operators/broadcast_reference.h"

static double value_of_maximum(double a, double b) { return fmax(a, b); }

TEST_ARITHMETIC(maximum)
TEST_OPERATOR(test_equal_numbers, .name = "maximum", .draw = draw_coarse, .build = build_maximum,
              .reference = reference_maximum, .gradient_tolerance = 4e-4)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_floats), test_case(test_integers), test_case(test_equal_numbers)};
  return test_main(tests);
}
