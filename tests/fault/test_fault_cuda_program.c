/* SPDX-License-Identifier: MIT
 * Every call of the CUDA driver, by Rondo or by cuBLASLt, and every allocation of host memory may fail while a program
 * is compiled, recorded, fed, run, read and recompiled on a CUDA device, and another one that shares with it. Either an
 * error comes out or the numbers are right; nothing is left in the driver, in cuBLASLt or in host memory, and nothing
 * is misused.
 */
#include "fake_cuda/fake_cublaslt.h"
#include "fault/fault_cuda_sweep.h"

enum { ROWS = 4, INNER = 80, COLUMNS = 5 };

static const fake_cublaslt_control *products;
static test_allocator allocator;
static float right[5]; /* losses without a failure */

static struct {
  rondo_device *device;
  rondo_program *program;
  rondo_compiled *compiled, *sharer;
  float losses[5];
} work;

/* The product is so deep that the library makes it in parts, in a workspace. */
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
  TRY(rondo_op_scale(work.program, y, 2, &y)); /* joined with the one before */
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

/* Errors here are told as well; the device is gone all the same. */
static void take_down(void) {
  rondo_status status = rondo_compiled_destroy(work.compiled);
  (void)status;
  status = rondo_compiled_destroy(work.sharer);
  (void)status;
  rondo_program_destroy(work.program);
  status = rondo_device_close(work.device);
  (void)status;
}

static fault_work all;

static void check(const fault_failure *of, rondo_status status) {
  fault_work_assert_clean(&all, of, "cuBLASLt", products->live());
  if (status == RONDO_OK) assert_memory_equal(work.losses, right, sizeof right);
}

static fault_work all = {.run = run, .take_down = take_down, .check = check, .least = 100, .memory = &allocator};

static int load_driver(void **state) {
  *state = &all;
  products = fake_cublaslt_get();
  assert_non_null(products);
  fault_work_begin(&all);
  memcpy(right, work.losses, sizeof right);
  take_down();
  assert_true(products->workspaces() > 0);
  return 0;
}

int main(void) { return fault_work_main("fault_cuda_program", load_driver); }
