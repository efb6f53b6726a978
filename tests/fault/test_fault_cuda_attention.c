/* SPDX-License-Identifier: MIT
 * Lets every call of the CUDA driver, by Rondo or by cuDNN, and every host allocation fail while causal attention with
 * a mask, of which one row sees nothing, and its gradients are compiled, recorded and run on a CUDA device. Either an
 * error is returned or the numbers are right. Nothing is left in the driver, in cuDNN or in host memory, and nothing is
 * misused.
 */
#include "fake_cuda/fake_cudnn.h"
#include "fault/fault_cuda_sweep.h"

enum { HEADS = 2, ROWS = 5, SIZE = 8, VALUES = HEADS * ROWS * SIZE };

static test_allocator allocator;

static struct {
  rondo_device *device;
  rondo_program *program;
  rondo_compiled *compiled;
  float gradients[2][3][VALUES]; /* eager and recorded; of q, k and v */
} work;

static const char *const names[] = {"q", "k", "v"}, *const gradient_names[] = {"dq", "dk", "dv"};

static rondo_status build(void) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .name = "small", .allocator = &allocator.table};
  rondo_attention_options how = {RONDO_ATTENTION_OPTIONS_INIT, .causal = true};
  rondo_value inputs[3], halves[3], y, gradients[3];
  TRY(rondo_program_create(&options, &work.program));
  for (int i = 0; i < 3; i++) {
    TRY(rondo_program_input(work.program, names[i], RONDO_F32, (const size_t[]){1, HEADS, ROWS, SIZE}, 4, &inputs[i]));
    TRY(rondo_op_cast(work.program, inputs[i], RONDO_F16, &halves[i]));
  }
  TRY(rondo_program_input(work.program, "mask", RONDO_BOOL, (const size_t[]){ROWS, ROWS}, 2, &how.mask));
  TRY(rondo_op_attention(work.program, halves[0], halves[1], halves[2], &how, &y));
  TRY(rondo_op_cast(work.program, y, RONDO_F32, &y));
  TRY(rondo_op_square(work.program, y, &y));
  TRY(rondo_op_sum(work.program, y, NULL, 0, false, &y));
  TRY(rondo_program_gradients(work.program, y, inputs, 3, gradients));
  for (int i = 0; i < 3; i++) TRY(rondo_program_output(work.program, gradient_names[i], gradients[i]));
  return RONDO_OK;
}

static rondo_status write_inputs(void) {
  float values[VALUES];
  uint8_t mask[ROWS * ROWS];
  for (int i = 0; i < VALUES; i++) values[i] = (float)(i % 7) / 4 - 1;
  for (int i = 0; i < ROWS * ROWS; i++) mask[i] = i / ROWS != 2 && i % 3 != 1;
  for (int i = 0; i < 3; i++) TRY(rondo_compiled_write(work.compiled, names[i], values, sizeof values));
  return rondo_compiled_write(work.compiled, "mask", mask, sizeof mask);
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
    for (int i = 0; i < 3; i++)
      TRY(rondo_compiled_read(work.compiled, gradient_names[i], work.gradients[recorded][i],
                              sizeof work.gradients[recorded][i]));
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

static void assert_whole(void) { assert_true(fake_cudnn_get()->graphs() > 0); }

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
