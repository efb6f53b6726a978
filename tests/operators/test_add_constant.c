/* SPDX-License-Identifier: MIT
 * add_constant.
 */
#include "operators/unary_reference.h"

static void draw(uint64_t *seed, test_call *call) {
  draw_unary(seed, call, -4, 4);
  call->numbers[0] = (double)test_draw_between(seed, 0, 16) / 4 - 2;
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *inputs,
                          rondo_value *result) {
  return rondo_op_add_constant(program, inputs[0], (float)call->numbers[0], result);
}

static void reference(const test_call *call, double *const *inputs, double *result) {
  for (size_t i = 0; i < test_input_elements(call, 0); i++) result[i] = inputs[0][i] + call->numbers[0];
}

TEST_OPERATOR(test_add_constant, .name = "add_constant", .draw = draw, .build = build, .reference = reference)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_add_constant)};
  return test_main(tests);
}
