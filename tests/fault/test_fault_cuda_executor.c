/* SPDX-License-Identifier: MIT
 * Lets every call of the CUDA driver, by Rondo or by cuBLASLt, and every host allocation fail while an executor is
 * created, and a program with it is compiled, fed, run eagerly, read and destroyed (SE-10). Either an error is returned
 * or the numbers are right. Nothing is left in the driver or in host memory, nothing is misused, and operators that are
 * still running when another one fails do not use freed memory.
 */
#include "fake_cuda/fake_cublaslt.h"
#include "fault/fault_cuda_sweep.h"

enum { ROWS = 4, INNER = 80, COLUMNS = 5, BRANCHES = 3, RUNS = 2 };

static test_allocator allocator;

static struct {
  rondo_device *device;
  rondo_executor *executor;
  rondo_program *program;
  rondo_compiled *compiled;
  float sums[RUNS];
} work;

/* Branches of a product that is deep enough for cuBLASLt, and of the operators after it; a sum joins them. */
static rondo_status build(void) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .name = "wide", .allocator = &allocator.table};
  static const char *const names[BRANCHES] = {"w0", "w1", "w2"};
  rondo_value x, weight, y, none = {0}, sum = {0};
  TRY(rondo_program_create(&options, &work.program));
  TRY(rondo_program_input(work.program, "x", RONDO_F32, (const size_t[]){ROWS, INNER}, 2, &x));
  for (int i = 0; i < BRANCHES; i++) {
    TRY(rondo_program_state(work.program, names[i], RONDO_F32, (const size_t[]){INNER, COLUMNS}, 2, &weight));
    TRY(rondo_op_matmul(work.program, x, weight, none, &y));
    TRY(rondo_op_softmax(work.program, y, &y));
    TRY(i == 0 ? RONDO_OK : rondo_op_add(work.program, sum, y, &y));
    sum = y;
  }
  return rondo_program_output(work.program, "sum", sum);
}

static rondo_status run_once(int number) {
  float x[ROWS * INNER], y[ROWS * COLUMNS];
  for (int i = 0; i < ROWS * INNER; i++) x[i] = (float)((i + number) % 7) - 3;
  TRY(rondo_compiled_write(work.compiled, "x", x, sizeof x));
  TRY(rondo_compiled_run_eager(work.compiled));
  TRY(rondo_compiled_read(work.compiled, "sum", y, sizeof y));
  for (int i = 0; i < ROWS * COLUMNS; i++) work.sums[number] += y[i] * (float)(i + 1);
  return RONDO_OK;
}

static rondo_status run(const char *device) {
  memset(&work, 0, sizeof work);
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &allocator.table};
  const rondo_executor_options threads = {RONDO_EXECUTOR_OPTIONS_INIT, .threads = 1, .expensive_us = 1e-3};
  const rondo_staged_value staged[] = {{"x", RONDO_STAGING_HOST}, {"sum", RONDO_STAGING_HOST}};
  TRY(rondo_device_open(device, &options, &work.device));
  TRY(rondo_executor_create(work.device, &threads, &work.executor));
  TRY(build());
  const rondo_compile_options how = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER,
                                     .executor = work.executor,  .executor_policy = RONDO_EXECUTOR_ALWAYS,
                                     .staged = staged,           .staged_count = 2};
  TRY(rondo_compile(work.program, work.device, &how, &work.compiled));
  for (int i = 0; i < RUNS; i++) TRY(run_once(i));
  return RONDO_OK;
}

/* Teardown may return errors, too. The objects are destroyed in any case. */
static void tear_down(void) {
  rondo_status status = rondo_compiled_destroy(work.compiled);
  status = rondo_executor_destroy(work.executor);
  rondo_program_destroy(work.program);
  status = rondo_device_close(work.device);
  (void)status;
}

static void open_library(void) {
  assert_non_null(fake_cublaslt_get());
  tested.live = fake_cublaslt_get()->live;
}

static fault_work tested = {.open_library = open_library,
                            .run = run,
                            .tear_down = tear_down,
                            .results = work.sums,
                            .result_bytes = sizeof work.sums,
                            .library = "cuBLASLt",
                            .least = 100,
                            .memory = &allocator};
