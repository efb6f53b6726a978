/* SPDX-License-Identifier: MIT
 * Programs in tests.
 */
#include "support/test_program.h"

rondo_program *test_new_program(void) {
  rondo_program *program = NULL;
  assert_ok(rondo_program_create(NULL, &program));
  return program;
}

rondo_compiled *test_compile(rondo_program *program, rondo_device *device, const rondo_compile_options *options) {
  rondo_compiled *compiled = NULL;
  assert_ok(rondo_compile(program, device, options, &compiled));
  rondo_program_destroy(program);
  return compiled;
}

float test_read_number(rondo_compiled *compiled, const char *name) {
  float number = 0;
  assert_ok(rondo_compiled_read(compiled, name, &number, sizeof number));
  return number;
}
