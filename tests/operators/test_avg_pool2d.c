/* SPDX-License-Identifier: MIT
 * avg_pool2d: kernel, stride, padding.
 */
#include "operators/pool2d_reference.h"

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *inputs,
                          rondo_value *result) {
  const rondo_pool2d_options options = pool_options(call);
  return rondo_op_avg_pool2d(program, inputs[0], &options, result);
}

static double pool(const size_t *s, const double *plane, size_t y, size_t x) {
  double sum = 0;
  size_t count = 0;
  for (size_t i = 0; i < s[KH]; i++) {
    for (size_t j = 0; j < s[KW]; j++) {
      const size_t at_y = y * s[SH] + i - s[PH], at_x = x * s[SW] + j - s[PW];
      const bool is_in = at_y < s[H] && at_x < s[W]; /* below 0 they are very large */
      if (is_in) sum += plane[at_y * s[W] + at_x];
      count += is_in || s[COUNTS_PADDING] ? 1 : 0;
    }
  }
  return sum / (double)count;
}

static void reference(const test_call *call, double *const *inputs, double *result) {
  reference_pool(call, inputs, result, pool);
}

TEST_OPERATOR(test_avg_pool2d, .name = "avg_pool2d", .draw = draw_pool, .build = build, .reference = reference)

static void test_what_does_not_fit_is_refused(void **state) {
  (void)state;
  check_pool_refusals(rondo_op_avg_pool2d);
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_avg_pool2d), cmocka_unit_test(test_what_does_not_fit_is_refused)};
  return test_main(tests);
}
