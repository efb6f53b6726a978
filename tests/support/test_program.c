/* SPDX-License-Identifier: MIT
 * Programs in tests.
 */
#include "support/test_program.h"

#include "support/test_cleanup.h"

rondo_program *test_new_program(void) {
  rondo_program *program = NULL;
  assert_ok(rondo_program_create(NULL, &program));
  test_leave_kind(TEST_LEFT_PROGRAM, program, NULL);
  return program;
}

rondo_compiled *test_compile_kept(rondo_program *program, rondo_device *device, const rondo_compile_options *options) {
  rondo_compiled *compiled = NULL;
  assert_ok(rondo_compile(program, device, options, &compiled));
  test_leave_kind(TEST_LEFT_COMPILED, compiled, NULL);
  return compiled;
}

rondo_compiled *test_compile(rondo_program *program, rondo_device *device, const rondo_compile_options *options) {
  rondo_compiled *compiled = test_compile_kept(program, device, options);
  rondo_program_destroy(program);
  return compiled;
}

float test_read_number(rondo_compiled *compiled, const char *name) {
  float number = 0;
  assert_ok(rondo_compiled_read(compiled, name, &number, sizeof number));
  return number;
}
