/* SPDX-License-Identifier: MIT
 * Lets every host allocation fail while a program is compiled whose patterns are replaced, in several rounds (ON-5).
 * The error is OUT_OF_MEMORY, nothing is left, and the program can be compiled afterwards.
 */
#include <string.h>

#include "fault/fault_allocations.h"

enum { ROWS = 2, DEPTH = 3, COLUMNS = 4 };

static struct {
  rondo_program *program;
  rondo_compiled *compiled;
} made;

/* h = relu(x w + b), y = h sigmoid(h): a bias, an activation and silu. */
static rondo_status build(fault_rig *rig) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .allocator = &rig->allocator.table};
  rondo_value x, w, b, h, y;
  TRY(rondo_program_create(&options, &made.program));
  TRY(rondo_program_input(made.program, "x", RONDO_F32, (const size_t[]){ROWS, DEPTH}, 2, &x));
  TRY(rondo_program_state(made.program, "w", RONDO_F32, (const size_t[]){DEPTH, COLUMNS}, 2, &w));
  TRY(rondo_program_state(made.program, "b", RONDO_F32, (const size_t[]){COLUMNS}, 1, &b));
  TRY(rondo_op_matmul(made.program, x, w, (rondo_value){0}, &h));
  TRY(rondo_op_add(made.program, h, b, &h));
  TRY(rondo_op_relu(made.program, h, &h));
  TRY(rondo_op_sigmoid(made.program, h, &y));
  TRY(rondo_op_mul(made.program, h, y, &y));
  return rondo_program_output(made.program, "y", y);
}

static rondo_status compile_and_run(fault_rig *rig) {
  const float b[COLUMNS] = {-1, 0, 20, 40}, expected[COLUMNS] = {0, 0, 20, 40};
  rondo_compiled_info info = {.struct_size = sizeof info};
  float y[ROWS][COLUMNS];
  TRY(build(rig));
  TRY(rondo_compile(made.program, rig->device, NULL, &made.compiled));
  TRY(rondo_compiled_get_info(made.compiled, &info));
  assert_int_equal(info.patterns, 3);
  TRY(rondo_compiled_write(made.compiled, "b", b, sizeof b));
  TRY(rondo_compiled_run(made.compiled));
  TRY(rondo_compiled_read(made.compiled, "y", y, sizeof y));
  for (size_t i = 0; i < ROWS; i++) assert_near(y[i], expected, COLUMNS, 1e-6f);
  return RONDO_OK;
}

static void destroy(void) {
  assert_ok(rondo_compiled_destroy(made.compiled));
  rondo_program_destroy(made.program);
  memset(&made, 0, sizeof made);
}

static const fault_work work = {.run = compile_and_run, .destroy = destroy};

UNIT_TEST(test_on5_an_allocation_fails) { fault_allocations(&work, false, 1); }

UNIT_TEST(test_on5_all_allocations_fail_from_then_on) { fault_allocations(&work, true, 1); }
