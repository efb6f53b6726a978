/* SPDX-License-Identifier: MIT
 * Offsets of bags that are wrong fail the run and touch no other memory.
 */
#include "support/test_operator.h"
#include "support/test_program.h"

static void test_wrong_offsets(void **state) {
  const struct {
    int32_t offsets[3];
    const char *message;
  } cases[] = {{{0, 3, 9}, "offsets has 9 at position 2, which is not in 0 .. 6; bags begin one after the other"},
               {{1, 3, 6}, "offsets has 1 at position 0"},
               {{0, 4, 3}, "offsets has 3 at position 2"},
               {{0, -1, 3}, "offsets has -1 at position 1"},
               {{0, INT32_MAX, INT32_MAX}, "offsets has 2147483647 at position 1"}};
  test_fixture *t = *state;
  rondo_program *program = test_new_program();
  rondo_value table, indices, offsets, y, loss, gradient;
  float result[9];
  assert_ok(rondo_program_state(program, "table", RONDO_F32, (size_t[]){5, 3}, 2, &table));
  assert_ok(rondo_program_input(program, "indices", RONDO_I32, (size_t[]){6}, 1, &indices));
  assert_ok(rondo_program_input(program, "offsets", RONDO_I32, (size_t[]){3}, 1, &offsets));
  assert_ok(rondo_op_embedding_bag(program, table, indices, offsets, (rondo_value){0}, RONDO_COMBINE_MEAN, &y));
  assert_ok(rondo_op_mse(program, y, y, RONDO_COMBINE_SUM, &loss));
  assert_ok(rondo_program_gradients(program, loss, &table, 1, &gradient));
  assert_ok(rondo_program_output(program, "y", y));
  assert_ok(rondo_program_output(program, "gradient", gradient));
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_ok(rondo_compiled_write(compiled, "offsets", cases[i].offsets, sizeof cases[i].offsets));
    assert_ok(rondo_compiled_run(compiled));
    assert_error(rondo_compiled_read(compiled, "y", result, sizeof result), RONDO_EXECUTION_FAILED,
                 RONDO_REASON_OUT_OF_RANGE);
    assert_message(cases[i].message);
  }
  const int32_t right[] = {0, 6, 6};
  assert_ok(rondo_compiled_write(compiled, "offsets", right, sizeof right));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", result, sizeof result));
  assert_ok(rondo_compiled_destroy(compiled));
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_wrong_offsets)};
  return test_main(tests);
}
