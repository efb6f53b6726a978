/* SPDX-License-Identifier: MIT
 * argmin along each dimension, of floats and integers.
 */
#include "operators/argmax_reference.h"

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  return rondo_op_argmin(program, in[0], call->sizes[PLACE_DIMENSION], call->sizes[PLACE_KEEPS] != 0, result);
}

static void reference(const test_call *call, double *const *in, double *y) { find_places(call, in[0], -1, y); }

TEST_OPERATOR(test_argmin, .name = "argmin", .draw = draw_places, .build = build, .reference = reference,
              .has_no_gradient = true)
TEST_OPERATOR(test_argmin_of_integers, .name = "argmin", .draw = draw_places_of_integers, .build = build,
              .reference = reference, .only_f32 = true, .has_no_gradient = true)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_argmin), test_case(test_argmin_of_integers)};
  return test_main(tests);
}
