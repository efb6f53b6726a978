/* SPDX-License-Identifier: MIT
 * select.
 */
#include "operators/broadcast_reference.h"

static void set_condition(test_call *call) {
  call->inputs[0].type = RONDO_I32;
  call->inputs[0].low = -1;
  call->inputs[0].high = 2;
}

static void draw(uint64_t *seed, test_call *call) {
  draw_broadcast(seed, call, 3, -3, 3);
  set_condition(call);
}

static void draw_select_of_integers(uint64_t *seed, test_call *call) {
  draw_broadcast_integers(seed, call, 3, -9, 9);
  set_condition(call);
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *inputs,
                          rondo_value *result) {
  (void)call;
  return rondo_op_select(program, inputs[0], inputs[1], inputs[2], result);
}

static void reference(const test_call *call, double *const *inputs, double *result) {
  size_t shape[RONDO_MAX_DIMENSIONS], rank;
  const size_t count = broadcast_shape(call, shape, &rank);
  for (size_t i = 0; i < count; i++) {
    const size_t from = inputs[0][broadcast_index(call, 0, shape, rank, i)] != 0 ? 1 : 2;
    result[i] = inputs[from][broadcast_index(call, from, shape, rank, i)];
  }
}

TEST_OPERATOR(test_floats, .name = "select", .draw = draw, .build = build, .reference = reference)
TEST_OPERATOR(test_integers, .name = "select", .draw = draw_select_of_integers, .build = build, .reference = reference,
              .only_f32 = true, .has_no_gradient = true)

/* The gradient of what comparisons choose flows through the values, not through the comparison. */
static rondo_status build_clipped(const test_call *call, rondo_program *program, const rondo_value *inputs,
                                  rondo_value *result) {
  rondo_value less;
  (void)call;
  const rondo_status status = rondo_op_less(program, inputs[0], inputs[1], &less);
  return status != RONDO_OK ? status : rondo_op_select(program, less, inputs[0], inputs[1], result);
}

static void draw_two(uint64_t *seed, test_call *call) { draw_broadcast(seed, call, 2, -3, 3); }

static double smaller_of(double a, double b) { return a < b ? a : b; }

static void reference_clipped(const test_call *call, double *const *inputs, double *result) {
  reference_broadcast(call, inputs, result, smaller_of);
}

TEST_OPERATOR(test_chosen_by_comparison, .name = "select", .draw = draw_two, .build = build_clipped,
              .reference = reference_clipped, .has_ties = true)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_floats), test_case(test_integers),
                                     test_case(test_chosen_by_comparison)};
  return test_main(tests);
}
