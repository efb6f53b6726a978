/* SPDX-License-Identifier: MIT
 * Lets every call of the CUDA driver, by Rondo or by cuBLASLt, and every host allocation fail while a program is
 * compiled, recorded, fed, run, read and recompiled on a CUDA device, and another program shares with it. Either an
 * error is returned or the numbers are right. Nothing is left in the driver, in cuBLASLt or in host memory, and nothing
 * is misused.
 */
#include "fake_cuda/fake_cublaslt.h"
#include "fault/fault_cuda_sweep.h"

enum { ROWS = 4, INNER = 80, COLUMNS = 5 };

static test_allocator allocator;

static struct {
  rondo_device *device;
  rondo_program *program;
  rondo_compiled *compiled, *sharer;
  float losses[5];
} work;

/* The product is so deep that cuBLASLt computes it in parts, in a workspace. */
static rondo_status build(void) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .name = "small", .allocator = &allocator.table};
  rondo_value x, labels, weight, bias, rate, y;
  TRY(rondo_program_create(&options, &work.program));
  TRY(rondo_program_input(work.program, "x", RONDO_F32, (const size_t[]){ROWS, INNER}, 2, &x));
  TRY(rondo_program_input(work.program, "labels", RONDO_I32, (const size_t[]){ROWS}, 1, &labels));
  TRY(rondo_program_state(work.program, "weight", RONDO_F32, (const size_t[]){INNER, COLUMNS}, 2, &weight));
  TRY(rondo_program_state(work.program, "bias", RONDO_F32, (const size_t[]){COLUMNS}, 1, &bias));
  TRY(rondo_program_cell(work.program, "rate", 0.5f, &rate));
  TRY(rondo_op_matmul(work.program, x, weight, bias, &y));
  TRY(rondo_op_tanh(work.program, y, &y));
  TRY(rondo_op_scale(work.program, y, 2, &y)); /* joined with the previous operator */
  TRY(rondo_op_cross_entropy(work.program, y, labels, &y));
  TRY(rondo_program_output(work.program, "loss", y));
  return rondo_program_adam(work.program, y, &(rondo_adam_options){RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate});
}

static rondo_status step(rondo_compiled *compiled, int number) {
  const int32_t labels[ROWS] = {1, 0, 3, 4};
  float x[ROWS * INNER];
  void *mapped;
  for (int i = 0; i < ROWS * INNER; i++) x[i] = (float)(i % 7) - 3;
  TRY(rondo_compiled_feed(compiled, "x", x, sizeof x));
  TRY(rondo_compiled_map(compiled, "labels", NULL, &mapped));
  memcpy(mapped, labels, sizeof labels);
  TRY(rondo_compiled_unmap(compiled, "labels"));
  TRY(number == 1 ? rondo_compiled_run_eager(compiled) : rondo_compiled_run(compiled));
  TRY(rondo_compiled_fetch(compiled, "loss", &work.losses[number], sizeof work.losses[number]));
  return rondo_compiled_read(compiled, "loss", &work.losses[number], sizeof work.losses[number]);
}

static rondo_status run(const char *device) {
  memset(&work, 0, sizeof work);
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &allocator.table};
  const rondo_staged_value staged[] = {
      {"x", RONDO_STAGING_DEVICE}, {"labels", RONDO_STAGING_HOST}, {"loss", RONDO_STAGING_HOST}};
  rondo_compile_options how = {RONDO_COMPILE_OPTIONS_INIT, .staged = staged, .staged_count = 3};
  TRY(rondo_device_open(device, &options, &work.device));
  TRY(build());
  TRY(rondo_compile(work.program, work.device, &how, &work.compiled));
  for (int i = 0; i < 3; i++) TRY(step(work.compiled, i));
  how.share = work.compiled;
  TRY(rondo_compile(work.program, work.device, &how, &work.sharer));
  TRY(step(work.sharer, 3));
  TRY(rondo_compiled_recompile(work.compiled, work.program, NULL));
  return step(work.compiled, 4);
}

/* Teardown may return errors, too. The objects are destroyed in any case. */
static void tear_down(void) {
  rondo_status status = rondo_compiled_destroy(work.compiled);
  status = rondo_compiled_destroy(work.sharer);
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
                            .results = work.losses,
                            .result_bytes = sizeof work.losses,
                            .library = "cuBLASLt",
                            .least = 100,
                            .memory = &allocator};
