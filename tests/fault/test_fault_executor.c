/* SPDX-License-Identifier: MIT
 * Lets every host allocation fail while an executor is created, and a program with it is compiled, run and destroyed
 * (SE-10). The error is OUT_OF_MEMORY, nothing is left, and a run that succeeds is right.
 */
#include <string.h>

#include "fault/fault_allocations.h"

enum { BRANCHES = 4, CELLS = 6 };

static struct {
  rondo_executor *executor;
  rondo_program *program;
  rondo_compiled *compiled;
} made;

static rondo_status build(fault_rig *rig) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .allocator = &rig->allocator.table};
  const size_t shape[] = {CELLS};
  rondo_value x, y, sum;
  TRY(rondo_program_create(&options, &made.program));
  TRY(rondo_program_input(made.program, "x", RONDO_F32, shape, 1, &x));
  sum = x;
  for (int i = 0; i < BRANCHES; i++) {
    TRY(rondo_op_scale(made.program, x, (float)i, &y));
    TRY(rondo_op_add(made.program, sum, y, &sum));
  }
  return rondo_program_output(made.program, "sum", sum);
}

static rondo_status do_all(fault_rig *rig) {
  const rondo_executor_options two = {RONDO_EXECUTOR_OPTIONS_INIT, .threads = 2, .expensive_us = 1e-3};
  const rondo_staged_value staged[] = {{"x", RONDO_STAGING_HOST}};
  const float x[CELLS] = {1, 2, 3, 4, 5, 6};
  float sum[CELLS];
  TRY(rondo_executor_create(rig->device, &two, &made.executor));
  TRY(build(rig));
  const rondo_compile_options how = {RONDO_COMPILE_OPTIONS_INIT,
                                     .executor = made.executor,
                                     .executor_policy = RONDO_EXECUTOR_ALWAYS,
                                     .fusion = RONDO_FUSION_NEVER,
                                     .branches = RONDO_BRANCHES_NEVER,
                                     .staged = staged,
                                     .staged_count = 1};
  TRY(rondo_compile(made.program, rig->device, &how, &made.compiled));
  TRY(rondo_compiled_write(made.compiled, "x", x, sizeof x));
  TRY(rondo_compiled_run_eager(made.compiled));
  TRY(rondo_compiled_read(made.compiled, "sum", sum, sizeof sum));
  for (int i = 0; i < CELLS; i++) assert_true(sum[i] == x[i] * 7);
  return rondo_compiled_recompile(made.compiled, made.program, NULL);
}

static void destroy(void) {
  assert_ok(rondo_compiled_destroy(made.compiled));
  rondo_program_destroy(made.program);
  assert_ok(rondo_executor_destroy(made.executor));
  memset(&made, 0, sizeof made);
}

static const fault_work all = {.run = do_all, .destroy = destroy};

UNIT_TEST(test_se10_an_allocation_fails) { fault_allocations(&all, false, 1); }

UNIT_TEST(test_se10_all_allocations_fail_from_then_on) { fault_allocations(&all, true, 5); }
