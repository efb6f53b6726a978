/* SPDX-License-Identifier: MIT
 * Lets every call of the CUDA driver, by Rondo or by cuDNN, and every host allocation fail while a convolution and its
 * gradients are compiled, recorded and run on a CUDA device. Either an error is returned or the numbers are right.
 * Nothing is left in the driver, in cuDNN or in host memory, and nothing is misused.
 */
#include "fake_cuda/fake_cudnn.h"
#include "fault/fault_cuda_sweep.h"

enum { X = 2 * 3 * 4 * 4, WEIGHT = 5 * 3 * 3 * 3, BIAS = 5 };

static test_allocator allocator;

static struct {
  rondo_device *device;
  rondo_program *program;
  rondo_compiled *compiled;
  float gradients[2][WEIGHT]; /* eager and recorded */
} work;

static rondo_status build(void) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .name = "small", .allocator = &allocator.table};
  rondo_conv_options window = {RONDO_CONV_OPTIONS_INIT, .padding = {1, 1}};
  rondo_value x, weight, y, gradients[2];
  TRY(rondo_program_create(&options, &work.program));
  TRY(rondo_program_input(work.program, "x", RONDO_F32, (const size_t[]){2, 3, 4, 4}, 4, &x));
  TRY(rondo_program_input(work.program, "weight", RONDO_F32, (const size_t[]){5, 3, 3, 3}, 4, &weight));
  TRY(rondo_program_input(work.program, "bias", RONDO_F32, (const size_t[]){BIAS}, 1, &window.bias));
  TRY(rondo_op_conv(work.program, x, weight, &window, &y));
  TRY(rondo_op_square(work.program, y, &y));
  TRY(rondo_op_sum(work.program, y, NULL, 0, false, &y));
  TRY(rondo_program_gradients(work.program, y, (const rondo_value[]){x, weight}, 2, gradients));
  TRY(rondo_program_output(work.program, "dx", gradients[0]));
  return rondo_program_output(work.program, "dweight", gradients[1]);
}

static rondo_status write_inputs(void) {
  float x[X], weight[WEIGHT], bias[BIAS] = {1, 2, 3, 4, 5};
  for (int i = 0; i < X; i++) x[i] = (float)(i % 7) - 3;
  for (int i = 0; i < WEIGHT; i++) weight[i] = (float)(i % 5) - 2;
  TRY(rondo_compiled_write(work.compiled, "x", x, sizeof x));
  TRY(rondo_compiled_write(work.compiled, "weight", weight, sizeof weight));
  return rondo_compiled_write(work.compiled, "bias", bias, sizeof bias);
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
    TRY(rondo_compiled_read(work.compiled, "dweight", work.gradients[recorded], sizeof work.gradients[recorded]));
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

static void check(const fault_failure *of, rondo_status status) {
  (void)status;
  fault_work_assert_clean(of);
  assert_int_equal(fake_cudnn_get()->violations(), 0);
}

static void open_library(void) {
  assert_non_null(fake_cudnn_get());
  tested.live = fake_cudnn_get()->live;
}

static void assert_whole(void) { assert_true(fake_cudnn_get()->workspaces() > 0); }

static fault_work tested = {.open_library = open_library,
                            .run = run,
                            .tear_down = tear_down,
                            .assert_whole = assert_whole,
                            .check = check,
                            .results = work.gradients,
                            .result_bytes = sizeof work.gradients,
                            .library = "cuDNN",
                            .least = 100,
                            .memory = &allocator};
