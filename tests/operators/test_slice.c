/* SPDX-License-Identifier: MIT
 * slice: starts, lengths and steps along each dimension.
 */
#include "support/test_operator.h"
#include "support/test_program.h"

enum { START = 0, LENGTH = RONDO_MAX_DIMENSIONS, STEP = 2 * RONDO_MAX_DIMENSIONS }; /* sizes */

static void draw(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 0, 6);
  const bool is_plain = test_random_below(seed, 2) == 0;
  test_draw_shape(seed, rank, rank > 3 ? 5 : 40, shape);
  test_add_float(call, shape, rank, -1, 1);
  for (size_t i = 0; i < rank; i++) {
    const size_t step = is_plain ? 1 : test_draw_between(seed, 1, 3);
    const size_t start = test_random_below(seed, 2) == 0 ? 0 : test_random_below(seed, (uint32_t)shape[i]);
    call->sizes[START + i] = start;
    call->sizes[STEP + i] = step;
    call->sizes[LENGTH + i] = test_draw_between(seed, 1, (shape[i] - start + step - 1) / step);
  }
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  bool is_plain = true;
  for (size_t i = 0; i < call->inputs[0].rank; i++) is_plain = is_plain && call->sizes[STEP + i] == 1;
  return rondo_op_slice(program, in[0], call->sizes + START, call->sizes + LENGTH, is_plain ? NULL : call->sizes + STEP,
                        result);
}

static void reference(const test_call *call, double *const *in, double *y) {
  const test_tensor *value = &call->inputs[0];
  const size_t count = test_elements(call->sizes + LENGTH, value->rank);
  for (size_t i = 0; i < count; i++) {
    size_t rest = i, at = 0, weight = 1;
    for (size_t k = value->rank; k > 0; k--) {
      const size_t length = call->sizes[LENGTH + k - 1];
      at += (call->sizes[START + k - 1] + rest % length * call->sizes[STEP + k - 1]) * weight;
      rest /= length;
      weight *= value->shape[k - 1];
    }
    y[i] = in[0][at];
  }
}

TEST_OPERATOR(test_slice, .name = "slice", .draw = draw, .build = build, .reference = reference)

static void test_what_does_not_fit(void **state) {
  const struct {
    size_t start[2], length[2], step[2];
  } cases[] = {{{0, 0}, {5, 6}, {1, 1}},       {{1, 0}, {4, 6}, {1, 1}}, {{0, 0}, {4, 0}, {1, 1}},
               {{0, 0}, {4, 3}, {1, 0}},       {{0, 0}, {4, 4}, {1, 2}}, {{0, 0}, {4, 3}, {1, SIZE_MAX}},
               {{0, SIZE_MAX}, {4, 2}, {1, 1}}};
  rondo_program *program = test_new_program();
  rondo_value x, y;
  (void)state;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){4, 6}, 2, &x));
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_invalid(rondo_op_slice(program, x, cases[i].start, cases[i].length, cases[i].step, &y), RONDO_REASON_SHAPE);
  }
  assert_message("slice(value 'x' [4, 6])");
  assert_invalid(rondo_op_slice(program, x, NULL, cases[0].length, NULL, &y), RONDO_REASON_NULL_ARGUMENT);
  rondo_program_destroy(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_slice), test_case(test_what_does_not_fit)};
  return test_main(tests);
}
