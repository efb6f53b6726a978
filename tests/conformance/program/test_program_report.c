/* SPDX-License-Identifier: MIT
 * GX-7: the page of a compiled program, whose memory map shows the values in the arena.
 */
#include <rondo/program.h>
#include <stdio.h>

#include "support/rondo_test.h"
#include "support/test_markup.h"
#include "support/test_program.h"

static rondo_compiled *compile(test_fixture *t, bool eager) {
  static const size_t shape[] = {4, 8}, weights_shape[] = {8, 16};
  rondo_program *program = test_named_program("net");
  rondo_value x, weights, y, z;
  assert_ok(rondo_program_input(program, "picture", RONDO_F32, shape, 2, &x));
  assert_ok(rondo_program_state(program, "weights", RONDO_F32, weights_shape, 2, &weights));
  assert_ok(rondo_op_matmul(program, x, weights, (rondo_value){0}, &y));
  assert_ok(rondo_op_tanh(program, y, &z));
  assert_ok(rondo_program_output(program, "verdict", z));
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT,
                                         .record = eager ? RONDO_RECORD_NEVER : RONDO_RECORD_ALWAYS};
  return test_compile(program, t->device, &options);
}

TEST(test_gx7_a_compiled_program_has_a_page) {
  rondo_compiled *compiled = compile(t, false);
  char *text = NULL, bytes[64];
  rondo_compiled_info info = test_compiled_info(compiled);
  assert_ok(rondo_compiled_report(compiled, NULL, &text));
  assert_well_formed(text);
  assert_self_contained(text);
  assert_true(test_count(text, "<h1>net</h1>") > 0);
  assert_true(test_count(text, "picture: 256 bytes at offset ") > 0);
  assert_true(test_count(text, "matmul 0: 256 bytes at offset ") > 0);
  assert_true(test_count(text, "verdict: 256 bytes at offset ") > 0);
  snprintf(bytes, sizeof bytes, "%u bytes, live at once", (unsigned)info.lower_bound);
  assert_true(test_count(text, bytes) > 0);
  rondo_text_free(text);
  assert_ok(rondo_compiled_destroy(compiled));
  compiled = compile(t, true);
  assert_fails(rondo_compiled_report(compiled, NULL, &text), RONDO_INVALID_STATE);
  assert_null(text);
  assert_fails(rondo_compiled_report(NULL, NULL, &text), RONDO_INVALID_ARGUMENT);
  assert_fails(rondo_compiled_report(compiled, NULL, NULL), RONDO_INVALID_ARGUMENT);
}
