/* SPDX-License-Identifier: MIT
 * split: each part; parts that nothing is computed from.
 */
#include "support/test_operator.h"
#include "support/test_program.h"

enum {
  DIMENSION,
  COUNT,
  TAKEN,
  LENGTHS
}; /* sizes; TAKEN: the part that is the result, or COUNT: the last before all */

static void draw(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 1, 4), count = test_draw_between(seed, 2, 8);
  const size_t dimension = test_random_below(seed, (uint32_t)rank), unit = test_random_below(seed, 2) == 0 ? 8 : 1;
  test_draw_shape(seed, rank, 6, shape);
  shape[dimension] = 0;
  for (size_t i = 0; i < count; i++) {
    call->sizes[LENGTHS + i] = unit * test_draw_between(seed, 1, 3);
    shape[dimension] += call->sizes[LENGTHS + i];
  }
  call->sizes[DIMENSION] = dimension;
  call->sizes[COUNT] = count;
  call->sizes[TAKEN] = test_random_below(seed, (uint32_t)count + 1);
  test_add_float(call, shape, rank, -1, 1);
}

/* Of all parts the last comes first. */
static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  rondo_value parts[9];
  const size_t count = call->sizes[COUNT];
  const rondo_status status =
      rondo_op_split(program, in[0], call->sizes[DIMENSION], call->sizes + LENGTHS, count, parts + 1);
  if (status != RONDO_OK) return status;
  *result = parts[1 + call->sizes[TAKEN] % count];
  if (call->sizes[TAKEN] < count) return RONDO_OK;
  parts[0] = parts[count];
  return rondo_op_concat(program, parts, count, call->sizes[DIMENSION], result);
}

static void reference(const test_call *call, double *const *in, double *y) {
  const test_tensor *value = &call->inputs[0];
  const size_t dimension = call->sizes[DIMENSION], count = call->sizes[COUNT];
  const size_t rows = test_elements(value->shape, dimension), width = test_input_elements(call, 0) / rows;
  const size_t inner = width / value->shape[dimension];
  for (size_t row = 0; row < rows; row++) {
    for (size_t i = 0; i < count; i++) {
      const size_t part = call->sizes[TAKEN] < count ? i : (i + count - 1) % count;
      size_t start = 0;
      if (call->sizes[TAKEN] < count && part != call->sizes[TAKEN]) continue;
      for (size_t k = 0; k < part; k++) start += call->sizes[LENGTHS + k] * inner;
      for (size_t k = 0; k < call->sizes[LENGTHS + part] * inner; k++) *y++ = in[0][row * width + start + k];
    }
  }
}

TEST_OPERATOR(test_split, .name = "split", .draw = draw, .build = build, .reference = reference)

static void test_what_does_not_fit(void **state) {
  rondo_program *program = test_new_program();
  rondo_value x, y[9];
  (void)state;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){4, 6}, 2, &x));
  assert_invalid(rondo_op_split(program, x, 1, (size_t[]){3, 4}, 2, y), RONDO_REASON_SHAPE);
  assert_message("must add up to the 6 elements of dimension 1");
  assert_invalid(rondo_op_split(program, x, 1, (size_t[]){6, 0}, 2, y), RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_split(program, x, 1, (size_t[]){SIZE_MAX, 7}, 2, y), RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_split(program, x, 2, (size_t[]){3, 3}, 2, y), RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_split(program, x, 1, (size_t[]){6}, 1, y), RONDO_REASON_OUT_OF_RANGE);
  rondo_program_destroy(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_split), test_case(test_what_does_not_fit)};
  return test_main(tests);
}
