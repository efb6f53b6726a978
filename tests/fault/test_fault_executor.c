/* SPDX-License-Identifier: MIT
 * Every allocation of host memory may fail while an executor is created and a program with it compiled, run and
 * destroyed (SE-10): the error is OUT_OF_MEMORY, nothing is left, and a run that succeeds is right.
 */
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"

#define TRY(call)                            \
  do {                                       \
    const rondo_status status_ = (call);     \
    if (status_ != RONDO_OK) return status_; \
  } while (0)

enum { BRANCHES = 4, CELLS = 6 };

typedef struct rig {
  test_allocator allocator;
  rondo_device *device;
  rondo_executor *executor;
  rondo_program *program;
  rondo_compiled *compiled;
} rig;

static rondo_status build(rig *r) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .allocator = &r->allocator.table};
  const size_t shape[] = {CELLS};
  rondo_value x, y, sum;
  TRY(rondo_program_create(&options, &r->program));
  TRY(rondo_program_input(r->program, "x", RONDO_F32, shape, 1, &x));
  sum = x;
  for (int i = 0; i < BRANCHES; i++) {
    TRY(rondo_op_scale(r->program, x, (float)i, &y));
    TRY(rondo_op_add(r->program, sum, y, &sum));
  }
  return rondo_program_output(r->program, "sum", sum);
}

static rondo_status do_all(rig *r) {
  const rondo_executor_options two = {RONDO_EXECUTOR_OPTIONS_INIT, .threads = 2, .expensive_us = 1e-3};
  const rondo_staged_value staged[] = {{"x", RONDO_STAGING_HOST}};
  const float x[CELLS] = {1, 2, 3, 4, 5, 6};
  float sum[CELLS];
  TRY(rondo_executor_create(r->device, &two, &r->executor));
  TRY(build(r));
  const rondo_compile_options how = {RONDO_COMPILE_OPTIONS_INIT,
                                     .executor = r->executor,
                                     .executor_policy = RONDO_EXECUTOR_ALWAYS,
                                     .fusion = RONDO_FUSION_NEVER,
                                     .branches = RONDO_BRANCHES_NEVER,
                                     .staged = staged,
                                     .staged_count = 1};
  TRY(rondo_compile(r->program, r->device, &how, &r->compiled));
  TRY(rondo_compiled_write(r->compiled, "x", x, sizeof x));
  TRY(rondo_compiled_run_unrecorded(r->compiled));
  TRY(rondo_compiled_read(r->compiled, "sum", sum, sizeof sum));
  for (int i = 0; i < CELLS; i++) assert_true(sum[i] == x[i] * 7);
  return rondo_compiled_recompile(r->compiled, r->program, NULL);
}

/* False when the work makes fewer allocations than that. */
static bool sweep(size_t at, bool rest, size_t *inout_heard) {
  static rig r;
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &r.allocator.table, .workers = 1};
  r = (rig){.device = NULL};
  test_allocator_init(&r.allocator);
  assert_ok(rondo_device_open("cpu", &options, &r.device));
  atomic_store(&r.allocator.calls, 0);
  atomic_store(&r.allocator.fail_at, at);
  atomic_store(&r.allocator.fail_on, rest);
  const rondo_status status = do_all(&r);
  const bool has_failed = atomic_load(&r.allocator.calls) >= at;
  atomic_store(&r.allocator.fail_at, 0);
  atomic_store(&r.allocator.fail_on, false);
  if (status != RONDO_OK && status != RONDO_OUT_OF_MEMORY)
    fail_msg("allocation %zu: heard was %s: %s", at, rondo_status_name(status), rondo_last_error()->message);
  *inout_heard += status != RONDO_OK;
  assert_ok(rondo_compiled_destroy(r.compiled));
  rondo_program_destroy(r.program);
  assert_ok(rondo_executor_destroy(r.executor));
  assert_ok(rondo_device_close(r.device));
  if (atomic_load(&r.allocator.live) != 0) fail_msg("allocation %zu: %zu left", at, atomic_load(&r.allocator.live));
  assert_int_equal(atomic_load(&r.allocator.faults), 0);
  return has_failed;
}

static void sweep_all(bool rest, size_t step) {
  size_t heard = 0, count = 0;
  for (size_t at = 1; sweep(at, rest, &heard); at += step * test_failure_step()) count++;
  assert_true(count > 100 / (step * test_failure_step()));
  assert_true(heard > count / 2);
}

static void test_se10_an_allocation_fails(void **state) {
  (void)state;
  sweep_all(false, 1);
}

static void test_se10_all_allocations_fail_from_then_on(void **state) {
  (void)state;
  sweep_all(true, 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_se10_an_allocation_fails),
      cmocka_unit_test(test_se10_all_allocations_fail_from_then_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
