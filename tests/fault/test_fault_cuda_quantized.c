/* SPDX-License-Identifier: MIT
 * Lets every call of the CUDA driver, by Rondo or by cuBLASLt, and every host allocation fail while products with a
 * quantised weight and a gradient are compiled, recorded and run on a CUDA device: one with few rows, one that the
 * library computes from the weight as floats, two that it computes from integers, of which one is a product of integers
 * alone, and one of 8-bit floats. Either an error is returned or the numbers are right. Nothing is left in the driver,
 * in cuBLASLt or in host memory, and nothing is misused.
 */
#include "fake_cuda/fake_cublaslt.h"
#include "fault/fault_cuda_sweep.h"

enum { FEW = 2, MANY = 66, COLUMNS = 80, OUTPUTS = 6, GROUPS = 3 };
enum { DEPTH = 32, BYTE_OUTPUTS = 16 }; /* of products of integers */

static test_allocator allocator;

static struct {
  rondo_device *device;
  rondo_program *program;
  rondo_compiled *compiled;
  struct {
    float of_weights[FEW * OUTPUTS + MANY * OUTPUTS + MANY * COLUMNS], of_bytes[MANY * BYTE_OUTPUTS];
    int32_t sums[MANY * BYTE_OUTPUTS];
    float of_float8[MANY * BYTE_OUTPUTS];
  } results[2]; /* eager and recorded */
} work;

/* Both factors are whole numbers, so that the sums are exact. */
static rondo_status build_float8(rondo_value x, rondo_value bytes) {
  rondo_value scale, y;
  TRY(rondo_op_cast(work.program, x, RONDO_F8_E4M3, &x));
  TRY(rondo_op_cast(work.program, bytes, RONDO_F8_E5M2, &bytes));
  TRY(rondo_op_full(work.program, RONDO_F32, NULL, 0, 0.5, &scale));
  TRY(rondo_op_matmul_scaled(work.program, x, bytes, scale, scale, NULL, &y));
  return rondo_program_output(work.program, "of float8", y);
}

static rondo_status build_integers(void) {
  const rondo_state_options frozen = {RONDO_STATE_OPTIONS_INIT, .frozen = true};
  const rondo_quantized_options how = {RONDO_QUANTIZED_OPTIONS_INIT, .bits = 8, .activations = RONDO_QUANTIZED_INT8};
  rondo_value x, bytes, scales, y, factor, sums;
  TRY(rondo_program_input(work.program, "x", RONDO_F32, (const size_t[]){MANY, DEPTH}, 2, &x));
  TRY(rondo_program_state(work.program, "bytes", RONDO_I8, (const size_t[]){BYTE_OUTPUTS, DEPTH}, 2, &bytes));
  TRY(rondo_program_state_with(work.program, "byte scales", RONDO_F32, (const size_t[]){BYTE_OUTPUTS, 1}, 2, &frozen,
                               &scales));
  TRY(rondo_op_matmul_quantized(work.program, x, bytes, scales, (rondo_value){0}, &how, &y));
  TRY(rondo_program_output(work.program, "of bytes", y));
  TRY(build_float8(x, bytes));
  TRY(rondo_op_cast(work.program, x, RONDO_I8, &x));
  TRY(rondo_program_input(work.program, "factor", RONDO_U8, (const size_t[]){DEPTH, BYTE_OUTPUTS}, 2, &factor));
  TRY(rondo_op_matmul_integer(work.program, x, factor, NULL, &sums));
  return rondo_program_output(work.program, "sums", sums);
}

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
  TRY(rondo_program_output(work.program, "gradient", gradient));
  return build_integers();
}

static rondo_status write_integers(void) {
  float x[MANY * DEPTH], scales[BYTE_OUTPUTS];
  uint8_t bytes[BYTE_OUTPUTS * DEPTH];
  for (int i = 0; i < MANY * DEPTH; i++) x[i] = i % DEPTH == 3 ? 127 : (float)(i % 7) - 3;
  for (int i = 0; i < BYTE_OUTPUTS; i++) scales[i] = i % 2 == 0 ? 1 : 0.5f;
  for (int i = 0; i < BYTE_OUTPUTS * DEPTH; i++) bytes[i] = (uint8_t)(i * 37);
  TRY(rondo_compiled_write(work.compiled, "x", x, sizeof x));
  TRY(rondo_compiled_write(work.compiled, "bytes", bytes, sizeof bytes));
  TRY(rondo_compiled_write(work.compiled, "factor", bytes, sizeof bytes));
  return rondo_compiled_write(work.compiled, "byte scales", scales, sizeof scales);
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
  TRY(rondo_compiled_write(work.compiled, "scales", scales, sizeof scales));
  return write_integers();
}

static rondo_status read_results(int recorded) {
  const size_t few = (size_t)FEW * OUTPUTS, many = (size_t)MANY * OUTPUTS, gradient = (size_t)MANY * COLUMNS;
  float *to = work.results[recorded].of_weights;
  TRY(rondo_compiled_read(work.compiled, "of few", to, few * sizeof *to));
  TRY(rondo_compiled_read(work.compiled, "of many", to + few, many * sizeof *to));
  TRY(rondo_compiled_read(work.compiled, "gradient", to + few + many, gradient * sizeof *to));
  TRY(rondo_compiled_read(work.compiled, "of bytes", work.results[recorded].of_bytes,
                          sizeof work.results[recorded].of_bytes));
  TRY(rondo_compiled_read(work.compiled, "of float8", work.results[recorded].of_float8,
                          sizeof work.results[recorded].of_float8));
  return rondo_compiled_read(work.compiled, "sums", work.results[recorded].sums, sizeof work.results[recorded].sums);
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
    TRY(read_results(recorded));
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

static void assert_whole(void) {
  assert_true(fake_cublaslt_get()->workspaces() > 0);
  assert_true(fake_cublaslt_get()->of_integers() >= 2);
  assert_true(fake_cublaslt_get()->of_float8() >= 1);
}

static fault_work tested = {.open_library = open_library,
                            .run = run,
                            .tear_down = tear_down,
                            .assert_whole = assert_whole,
                            .results = work.results,
                            .result_bytes = sizeof work.results,
                            .library = "cuBLASLt",
                            .least = 100,
                            .memory = &allocator};
