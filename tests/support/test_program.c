/* SPDX-License-Identifier: MIT
 * Programs in tests.
 */
#include "support/test_program.h"

#include <string.h>

#include "support/test_cleanup.h"

static rondo_status destroy_program(void *object) {
  (rondo_program_destroy)(object);
  return RONDO_OK;
}
static rondo_status destroy_compiled(void *object) { return (rondo_compiled_destroy)(object); }
static rondo_status destroy_divided(void *object) { return (rondo_divided_destroy)(object); }

TEST_DESTROYS_ALWAYS(program)
TEST_DESTROYS(compiled)
TEST_DESTROYS(divided)

void test_leave_compiled(rondo_compiled *compiled) { test_leave_with(TEST_LEFT_COMPILED, compiled, destroy_compiled); }

TEST_GETTER(rondo_compiled_info, test_compiled_info, const rondo_compiled, rondo_compiled_get_info)

rondo_program *test_named_program(const char *name) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .name = name};
  rondo_program *program = NULL;
  assert_ok(rondo_program_create(&options, &program));
  test_leave_with(TEST_LEFT_PROGRAM, program, destroy_program);
  return program;
}

rondo_program *test_new_program(void) { return test_named_program(NULL); }

rondo_value test_value(rondo_program *program, char kind, const char *name, size_t m, size_t n) {
  const size_t shape[] = {m, n};
  rondo_value value;
  assert_ok(kind == 's' ? rondo_program_state(program, name, RONDO_F32, shape, 2, &value)
                        : rondo_program_input(program, name, RONDO_F32, shape, 2, &value));
  return value;
}

rondo_compiled_value test_compiled_value(const rondo_compiled *compiled, char kind, const char *name) {
  for (size_t i = 0;; i++) {
    rondo_compiled_value value = {.struct_size = sizeof value};
    assert_ok(rondo_compiled_get_value(compiled, i, &value));
    if ((kind == 0 || value.kind == kind) && strcmp(value.name, name) == 0) return value;
  }
}

rondo_compiled *test_compile_kept(rondo_program *program, rondo_device *device, const rondo_compile_options *options) {
  rondo_compiled *compiled = NULL;
  rondo_compile_options on = {RONDO_COMPILE_OPTIONS_INIT};
  if (options != NULL) on = *options;
  const bool joins = on.share != NULL && !on.share_states_only;
  if (test_adopts_streams() && !joins && on.stream == NULL) on.stream = test_adopted_stream(device, NULL);
  assert_ok(rondo_compile(program, device, &on, &compiled));
  test_leave_compiled(compiled);
  return compiled;
}

rondo_compiled *test_compile(rondo_program *program, rondo_device *device, const rondo_compile_options *options) {
  rondo_compiled *compiled = test_compile_kept(program, device, options);
  rondo_program_destroy(program);
  return compiled;
}

rondo_divided *test_compile_divided(rondo_program *program, rondo_device *const *devices, size_t count,
                                    const rondo_divide_options *options) {
  rondo_divided *divided = NULL;
  assert_ok(rondo_compile_divided(program, devices, count, options, &divided));
  test_leave_with(TEST_LEFT_DIVIDED, divided, destroy_divided);
  return divided;
}

float test_read_number(rondo_compiled *compiled, const char *name) {
  float number = 0;
  assert_ok(rondo_compiled_read(compiled, name, &number, sizeof number));
  return number;
}
