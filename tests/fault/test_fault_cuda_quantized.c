/* SPDX-License-Identifier: MIT
 * Lets every call of the CUDA driver, by Rondo or by cuBLASLt, and every host allocation fail while products with a
 * quantised weight and a gradient are compiled, recorded and run on a CUDA device: one with few rows and one that the
 * library computes from the weight as floats. Either an error is returned or the numbers are right. Nothing is left in
 * the driver, in cuBLASLt or in host memory, and nothing is misused.
 */
#include "fake_cuda/fake_cublaslt.h"
#include "fault/fault_cuda_sweep.h"

enum { FEW = 2, MANY = 20, COLUMNS = 80, OUTPUTS = 6, GROUPS = 3 };

static test_allocator allocator;

static struct {
  rondo_device *device;
  rondo_program *program;
  rondo_compiled *compiled;
  float results[2][FEW * OUTPUTS + MANY * OUTPUTS + MANY * COLUMNS]; /* eager and recorded */
} work;

static rondo_status build(void) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .name = "small", .allocator = &allocator.table};
  const rondo_state_options frozen = {RONDO_STATE_OPTIONS_INIT, .frozen = true};
  rondo_quantized_options how = {RONDO_QUANTIZED_OPTIONS_INIT, .bits = 4, .group = 32};
  rondo_value few, many, values, scales, y, loss, gradient;
  TRY(rondo_program_create(&options, &work.program));
  TRY(rondo_program_input(work.program, "few", RONDO_F32, (const size_t[]){FEW, COLUMNS}, 2, &few));
  TRY(rondo_program_input(work.program, "many", RONDO_F32, (const size_t[]){MANY, COLUMNS}, 2, &many));
  TRY(rondo_program_state(work.program, "values", RONDO_U8, (const size_t[]){OUTPUTS, COLUMNS / 2}, 2, &values));
  TRY(rondo_program_state_with(work.program, "scales", RONDO_F32, (const size_t[]){OUTPUTS, GROUPS}, 2, &frozen,
                               &scales));
  TRY(rondo_op_matmul_quantized(work.program, few, values, scales, (rondo_value){0}, &how, &y));
  TRY(rondo_program_output(work.program, "of few", y));
  how.activations = RONDO_QUANTIZED_INT8;
  TRY(rondo_op_matmul_quantized(work.program, many, values, scales, (rondo_value){0}, &how, &y));
  TRY(rondo_program_output(work.program, "of many", y));
  TRY(rondo_op_sum(work.program, y, NULL, 0, false, &loss));
  TRY(rondo_program_gradients(work.program, loss, &many, 1, &gradient));
  return rondo_program_output(work.program, "gradient", gradient);
}

/* Whole numbers, of which the largest of each row is 127, so that all sums are exact in any order. */
static rondo_status write_inputs(void) {
  float x[MANY * COLUMNS], scales[OUTPUTS * GROUPS];
  uint8_t values[OUTPUTS * COLUMNS / 2];
  for (int i = 0; i < MANY * COLUMNS; i++) x[i] = i % COLUMNS == 3 ? 127 : (float)(i % 7) - 3;
  for (int i = 0; i < OUTPUTS * GROUPS; i++) scales[i] = i % 2 == 0 ? 1 : 0.5f;
  for (int i = 0; i < OUTPUTS * COLUMNS / 2; i++) values[i] = (uint8_t)(i * 37);
  TRY(rondo_compiled_write(work.compiled, "few", x, (size_t)FEW * COLUMNS * sizeof *x));
  TRY(rondo_compiled_write(work.compiled, "many", x, sizeof x));
  TRY(rondo_compiled_write(work.compiled, "values", values, sizeof values));
  return rondo_compiled_write(work.compiled, "scales", scales, sizeof scales);
}

static rondo_status read_results(float *to) {
  const size_t few = (size_t)FEW * OUTPUTS, many = (size_t)MANY * OUTPUTS, gradient = (size_t)MANY * COLUMNS;
  TRY(rondo_compiled_read(work.compiled, "of few", to, few * sizeof *to));
  TRY(rondo_compiled_read(work.compiled, "of many", to + few, many * sizeof *to));
  return rondo_compiled_read(work.compiled, "gradient", to + few + many, gradient * sizeof *to);
}

static rondo_status run(const char *device) {
  memset(&work, 0, sizeof work);
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &allocator.table};
  const rondo_compile_options how = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_ALWAYS};
  TRY(rondo_device_open(device, &options, &work.device));
  TRY(build());
  TRY(rondo_compile(work.program, work.device, &how, &work.compiled));
  for (int recorded = 0; recorded < 2; recorded++) {
    TRY(write_inputs());
    TRY(recorded ? rondo_compiled_run(work.compiled) : rondo_compiled_run_eager(work.compiled));
    TRY(read_results(work.results[recorded]));
  }
  return RONDO_OK;
}

/* Teardown may return errors, too. The objects are destroyed in any case. */
static void tear_down(void) {
  rondo_status status = rondo_compiled_destroy(work.compiled);
  rondo_program_destroy(work.program);
  status = rondo_device_close(work.device);
  (void)status;
}

static void open_library(void) {
  assert_non_null(fake_cublaslt_get());
  tested.live = fake_cublaslt_get()->live;
}

static void assert_whole(void) { assert_true(fake_cublaslt_get()->workspaces() > 0); }

static fault_work tested = {.open_library = open_library,
                            .run = run,
                            .tear_down = tear_down,
                            .assert_whole = assert_whole,
                            .results = work.results,
                            .result_bytes = sizeof work.results,
                            .library = "cuBLASLt",
                            .least = 100,
                            .memory = &allocator};
