/* SPDX-License-Identifier: MIT
 * Lets every host allocation fail, once or from then on, while a device's costs are measured, work is metered, a
 * program is recorded where it pays, measured and explained (FW-7, FW-8), and a tree's function is recorded where it
 * pays. Each failure returns OUT_OF_MEMORY, unless the library rightly works around it. Nothing is left.
 */
#include <string.h>

#include "base/error.h"
#include "support/rondo_test.h"
#include "support/test_effort.h"

/* With these costs, every recording pays. */
static const rondo_costs cheap = {RONDO_COSTS_INIT, .stream_kernel = 1e9};

static struct {
  test_allocator allocator;
  rondo_device *device;
  rondo_stream *stream;
  rondo_program *program;
  rondo_compiled *compiled;
  rondo_tree *tree;
  void *memory;
  char *text;
} work;

static rondo_status fill(rondo_stream *stream, void *user) {
  return rondo_fill_async(stream, &(rondo_fill){.dst = user, .value = 1, .element_bytes = 4, .width = 64});
}

static rondo_status do_costs(void) {
  rondo_costs costs = {RONDO_COSTS_INIT};
  rondo_gain gain = {.struct_size = sizeof gain};
  RONDO_TRY(rondo_device_get_costs(work.device, &costs));
  return rondo_gain_measure(work.stream, fill, work.memory, 1, &gain);
}

static rondo_status do_program(void) {
  const rondo_program_options named = {RONDO_PROGRAM_OPTIONS_INIT, .name = "small", .allocator = &work.allocator.table};
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_AUTO};
  rondo_value x, y;
  RONDO_TRY(rondo_device_set_costs(work.device, &cheap));
  RONDO_TRY(rondo_program_create(&named, &work.program));
  RONDO_TRY(rondo_program_state(work.program, "x", RONDO_F32, (const size_t[]){8}, 1, &x));
  RONDO_TRY(rondo_op_tanh(work.program, x, &y));
  RONDO_TRY(rondo_program_output(work.program, "y", y));
  RONDO_TRY(rondo_compile(work.program, work.device, &options, &work.compiled));
  RONDO_TRY(rondo_compiled_measure(work.compiled, 1, NULL));
  RONDO_TRY(rondo_compiled_explain(work.compiled, RONDO_EXPLAIN_TEXT, &work.text));
  rondo_text_free(work.text);
  work.text = NULL;
  return rondo_compiled_explain(work.compiled, RONDO_EXPLAIN_JSON, &work.text);
}

static rondo_status body(rondo_call *call, void *user) {
  void *out;
  (void)user;
  RONDO_TRY(rondo_call_output(call, 0, 256, NULL, &out));
  return fill(rondo_call_stream(call), out);
}

static rondo_status do_tree(void) {
  rondo_function *function;
  const rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT, .name = "f", .body = body,
                                          .record = RONDO_RECORD_AUTO};
  RONDO_TRY(rondo_device_set_costs(work.device, &cheap));
  RONDO_TRY(rondo_tree_create(work.device, NULL, &work.tree));
  RONDO_TRY(rondo_function_create(work.tree, &options, &function));
  for (int i = 0; i < 4; i++) {
    rondo_buffer *out = NULL;
    RONDO_TRY(rondo_function_call(function, work.stream, NULL, 0, &out, 1));
    rondo_buffer_release(out);
  }
  return rondo_tree_explain(work.tree, RONDO_EXPLAIN_JSON, &work.text);
}

static void set_up(void) {
  memset(&work, 0, sizeof work);
  test_allocator_init(&work.allocator);
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &work.allocator.table};
  assert_ok(rondo_device_open("cpu", &options, &work.device));
  assert_ok(rondo_stream_create(work.device, NULL, &work.stream));
  assert_ok(rondo_malloc(work.device, 256, "words", &work.memory));
}

static void tear_down(void) {
  rondo_text_free(work.text);
  assert_ok(rondo_tree_destroy(work.tree));
  assert_ok(rondo_compiled_destroy(work.compiled));
  rondo_program_destroy(work.program);
  assert_ok(rondo_stream_destroy(work.stream));
  assert_ok(rondo_free(work.device, work.memory));
  assert_ok(rondo_device_close(work.device));
  assert_true(test_allocator_is_clean(&work.allocator));
}

/* Returns whether the failure occurred. */
static bool run(rondo_status (*of)(void), size_t at, bool rest, size_t *inout_heard) {
  set_up();
  atomic_store(&work.allocator.calls, 0);
  atomic_store(&work.allocator.fail_on, rest);
  atomic_store(&work.allocator.fail_at, at);
  const rondo_status status = of();
  const bool has_failed = atomic_load(&work.allocator.calls) >= at;
  atomic_store(&work.allocator.fail_at, 0);
  if (status != RONDO_OK && status != RONDO_OUT_OF_MEMORY)
    fail_msg("allocation %zu: %s: %s", at, rondo_status_name(status), rondo_last_error()->message);
  *inout_heard += status != RONDO_OK;
  tear_down();
  return has_failed;
}

/* The measurement records chains of many similar kernels. Not each of these allocations is tried. */
static void sweep(rondo_status (*of)(void), size_t sparsely, size_t least) {
  for (int rest = 0; rest < 2; rest++) {
    size_t heard = 0, step = test_failure_step();
    for (size_t at = 1; run(of, at, rest == 1, &heard); at += step)
      if (sparsely > 0) step = test_failure_step() * (1 + at / sparsely);
    assert_true(heard >= least / test_failure_step());
  }
}

UNIT_TEST(test_fw8_allocations_fail_while_costs_are_measured) { sweep(do_costs, 8, 20); }

UNIT_TEST(test_fw7_allocations_fail_while_a_program_is_measured_and_explained) { sweep(do_program, 0, 50); }

UNIT_TEST(test_fw8_allocations_fail_while_a_function_is_metered) { sweep(do_tree, 0, 20); }
