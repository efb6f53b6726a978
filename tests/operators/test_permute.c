/* SPDX-License-Identifier: MIT
 * permute and transpose: all orders, large planes in tiles, what needs no copy.
 */
#include "support/test_operator.h"
#include "support/test_program.h"

enum { ORDER = 0, EXCHANGES = RONDO_MAX_DIMENSIONS, A, B }; /* sizes */

static void draw_order(uint64_t *seed, size_t rank, size_t *order) {
  for (size_t i = 0; i < rank; i++) order[i] = i;
  for (size_t i = rank; i > 1; i--) {
    const size_t other = test_random_below(seed, (uint32_t)i), last = order[i - 1];
    order[i - 1] = order[other];
    order[other] = last;
  }
}

static void draw(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 0, 6);
  test_draw_shape(seed, rank, 4, shape);
  test_add_float(call, shape, rank, -1, 1);
  draw_order(seed, rank, call->sizes + ORDER);
}

static void draw_large(uint64_t *seed, test_call *call) {
  const size_t shape[] = {test_draw_between(seed, 1, 3), test_draw_between(seed, 20, 90),
                          test_draw_between(seed, 20, 90)};
  test_add_float(call, shape, 3, -1, 1);
  draw_order(seed, 3, call->sizes + ORDER);
}

static void draw_exchange(uint64_t *seed, test_call *call) {
  draw(seed, call);
  const size_t rank = call->inputs[0].rank;
  if (rank == 0) return;
  call->sizes[EXCHANGES] = 1;
  call->sizes[A] = test_random_below(seed, (uint32_t)rank);
  call->sizes[B] = test_random_below(seed, (uint32_t)rank);
  for (size_t i = 0; i < rank; i++) call->sizes[ORDER + i] = i;
  call->sizes[ORDER + call->sizes[A]] = call->sizes[B];
  call->sizes[ORDER + call->sizes[B]] = call->sizes[A];
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  if (call->sizes[EXCHANGES] == 1) return rondo_op_transpose(program, in[0], call->sizes[A], call->sizes[B], result);
  return rondo_op_permute(program, in[0], call->sizes + ORDER, result);
}

static void reference(const test_call *call, double *const *in, double *y) {
  const test_tensor *value = &call->inputs[0];
  const size_t count = test_input_elements(call, 0);
  for (size_t i = 0; i < count; i++) {
    size_t index[RONDO_MAX_DIMENSIONS], rest = i, at = 0;
    for (size_t k = value->rank; k > 0; k--) {
      const size_t dimension = call->sizes[ORDER + k - 1];
      index[dimension] = rest % value->shape[dimension];
      rest /= value->shape[dimension];
    }
    for (size_t k = 0; k < value->rank; k++) at = at * value->shape[k] + index[k];
    y[i] = in[0][at];
  }
}

TEST_OPERATOR(test_permute, .name = "permute", .draw = draw, .build = build, .reference = reference)
TEST_OPERATOR(test_large, .name = "permute", .draw = draw_large, .build = build, .reference = reference)
TEST_OPERATOR(test_transpose, .name = "transpose", .draw = draw_exchange, .build = build, .reference = reference)

/* Dimensions of 1 move for nothing; others cost a kernel. */
static void test_no_copy(void **state) {
  test_fixture *t = *state;
  for (size_t middle = 1; middle <= 2; middle++) {
    rondo_program *program = NULL;
    rondo_compiled *compiled = NULL;
    rondo_compiled_info info = {.struct_size = sizeof info};
    rondo_value x, y;
    assert_ok(rondo_program_create(NULL, &program));
    assert_ok(rondo_program_input(program, "x", RONDO_I64, (size_t[]){4, middle, 6}, 3, &x));
    assert_ok(rondo_op_permute(program, x, (size_t[]){1, 0, 2}, &y));
    assert_ok(rondo_program_output(program, "y", y));
    assert_ok(rondo_compile(program, t->device, NULL, &compiled));
    assert_ok(rondo_compiled_get_info(compiled, &info));
    assert_int_equal(info.kernels, middle - 1);
    assert_ok(rondo_compiled_destroy(compiled));
    rondo_program_destroy(program);
  }
}

static void test_what_does_not_fit(void **state) {
  rondo_program *program = test_new_program();
  rondo_value x, y;
  (void)state;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){4, 5, 6}, 3, &x));
  assert_invalid(rondo_op_permute(program, x, (size_t[]){0, 1, 1}, &y), RONDO_REASON_SHAPE);
  assert_message("permute(value 'x' [4, 5, 6]): the order must contain each of 0 .. 2 once; entry 2 is 1");
  assert_invalid(rondo_op_permute(program, x, (size_t[]){0, 1, 3}, &y), RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_permute(program, x, NULL, &y), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_op_transpose(program, x, 0, 3, &y), RONDO_REASON_SHAPE);
  assert_message("dimension 0 or 3 does not exist: the value has 3, counted from 0");
  assert_true(y.id == 0);
  rondo_program_destroy(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_permute), test_case(test_large), test_case(test_transpose),
                                     test_case(test_no_copy), test_case(test_what_does_not_fit)};
  return test_main(tests);
}
