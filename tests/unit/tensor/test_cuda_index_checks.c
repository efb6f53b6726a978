/* SPDX-License-Identifier: MIT
 * Wrong indices on the fake driver: checking for them costs a run no driver call, because kernels write them to host
 * memory. Each is reported once, whether its run was recorded or not, and is dropped with its program (FW-1).
 */
#include "fake_cuda/fake_fixture.h"
#include "support/test_program.h"

enum { ROWS = 8, WIDTH = 3, COUNT = 4, NO_MEMORY = 2 };

/* Two look-ups, so that there are two cells. */
static rondo_program *make_program(void) {
  const rondo_program_options named = {RONDO_PROGRAM_OPTIONS_INIT, .name = "look-up"};
  rondo_program *program = NULL;
  rondo_value table, first, second, x, y;
  assert_ok(rondo_program_create(&named, &program));
  assert_ok(rondo_program_state(program, "table", RONDO_F32, (const size_t[]){ROWS, WIDTH}, 2, &table));
  assert_ok(rondo_program_input(program, "first", RONDO_I32, (const size_t[]){COUNT}, 1, &first));
  assert_ok(rondo_program_input(program, "second", RONDO_I32, (const size_t[]){COUNT}, 1, &second));
  assert_ok(rondo_op_embedding(program, table, first, &x));
  assert_ok(rondo_op_embedding(program, table, second, &y));
  assert_ok(rondo_op_add(program, x, y, &y));
  assert_ok(rondo_program_output(program, "y", y));
  return program;
}

static rondo_compiled *make_compiled(const test_fixture *f) {
  rondo_program *program = make_program();
  rondo_compiled *compiled = test_compile(program, f->device, NULL);
  return compiled;
}

static rondo_compiled *make_plain(const test_fixture *f) {
  const rondo_program_options named = {RONDO_PROGRAM_OPTIONS_INIT, .name = "sum"};
  rondo_program *program = NULL;
  rondo_value x, y;
  assert_ok(rondo_program_create(&named, &program));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){COUNT}, 1, &x));
  assert_ok(rondo_op_add(program, x, x, &y));
  assert_ok(rondo_program_output(program, "y", y));
  rondo_compiled *compiled = test_compile(program, f->device, NULL);
  return compiled;
}

static void write_indices(rondo_compiled *compiled, const char *name, int32_t last) {
  const int32_t indices[COUNT] = {0, ROWS - 1, 2, last};
  assert_ok(rondo_compiled_write(compiled, name, indices, sizeof indices));
}

static uint64_t count_copies(void) {
  return fake->calls("cuMemcpyAsync") + fake->calls("cuMemcpyDtoHAsync") + fake->calls("cuMemcpy3DAsync") +
         fake->calls("cuMemcpyHtoDAsync") + fake->calls("cuMemcpyDtoDAsync");
}

/* Of the second run, when nothing is left to be made ready. */
static uint64_t count_calls(rondo_compiled *compiled) {
  uint64_t before = 0;
  for (int run = 0; run < 2; run++) {
    before = fake->calls(NULL);
    assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_synchronize(compiled));
  }
  return fake->calls(NULL) - before;
}

/* As many as of a program that has no indices to check. */
FAKE_TEST(test_fw1_a_replay_costs_no_call_more) {
  rondo_compiled *compiled = make_compiled(t), *plain = make_plain(t);
  write_indices(compiled, "first", 1);
  write_indices(compiled, "second", 3);
  const uint64_t expected = count_calls(plain), copies = count_copies();
  assert_int_equal(count_calls(compiled), expected);
  assert_int_equal(count_copies() - copies, 0);
  rondo_compiled_info info = test_compiled_info(compiled);
  assert_int_equal(info.nodes, info.kernels);
}

FAKE_TEST(test_fw1_each_finding_is_reported_once) {
  rondo_compiled *compiled = make_compiled(t);
  for (int is_recorded = 0; is_recorded < 2; is_recorded++) {
    rondo_status (*const run)(rondo_compiled *) = is_recorded ? rondo_compiled_run : rondo_compiled_run_eager;
    write_indices(compiled, "first", 1);
    write_indices(compiled, "second", ROWS);
    assert_ok(run(compiled));
    write_indices(compiled, "second", 0); /* a right run does not take it back */
    assert_ok(run(compiled));
    assert_error(rondo_compiled_synchronize(compiled), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
    assert_non_null(strstr(rondo_last_error()->message, "has 8 at position 3, which is not in 0 .. 7"));
    assert_ok(rondo_compiled_synchronize(compiled));
    assert_ok(run(compiled));
    assert_ok(rondo_compiled_synchronize(compiled));
  }
}

/* A finding that nothing waited for is reported when the program is destroyed, which leaves nothing but freed memory
 * that the device keeps.
 */
FAKE_TEST(test_fw1_the_end_reports_what_is_left) {
  const size_t before = fake->live(FAKE_CUDA_HOST_MEMORY);
  rondo_compiled *compiled = make_compiled(t);
  assert_true(fake->live(FAKE_CUDA_HOST_MEMORY) > before);
  write_indices(compiled, "first", -1);
  write_indices(compiled, "second", 0);
  assert_ok(rondo_compiled_run(compiled));
  assert_error(rondo_compiled_destroy(compiled), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
  assert_ok(rondo_memory_trim(t->device));
  assert_int_equal(fake->live(FAKE_CUDA_HOST_MEMORY), before);
}

static uint64_t host_bytes_of(const rondo_compiled *compiled) {
  rondo_compiled_info info = test_compiled_info(compiled);
  return info.host_bytes;
}

FAKE_TEST(test_fw1_cells_are_counted) {
  rondo_compiled *compiled = make_compiled(t), *plain = make_plain(t);
  assert_true(host_bytes_of(plain) > 0);
  assert_int_equal(host_bytes_of(compiled) - host_bytes_of(plain), 2 * sizeof(uint64_t));
}

/* In the order in which it is taken. The device has no freed memory that would make room. */
FAKE_TEST(test_fw1_fw3_missing_host_memory_is_reported_with_its_use) {
  static const char *const messages[] = {"memory for writes of program 'look-up' (128.0 KiB)",
                                         "host buffers of staged values of program 'look-up' (256 B)",
                                         "memory for feeding inputs of program 'look-up' (128.0 KiB)",
                                         "cells for wrong indices of program 'look-up' (16 B)"};
  static const rondo_staged_value staged[] = {{"first", RONDO_STAGING_HOST}, {"second", RONDO_STAGING_DEVICE}};
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .staged = staged, .staged_count = 2};
  rondo_program *program = make_program();
  for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
    rondo_compiled *compiled = NULL;
    assert_ok(rondo_memory_trim(t->device));
    fake->fail_call("cuMemHostAlloc", i + 1, NO_MEMORY, false);
    assert_fails(rondo_compile(program, t->device, &options, &compiled), RONDO_OUT_OF_MEMORY);
    assert_message(messages[i]);
    assert_message("pinned host memory for device 'cuda:0': give memory back");
    assert_null(compiled);
  }
  rondo_program_destroy(program);
}
