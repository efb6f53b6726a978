/* SPDX-License-Identifier: MIT
 * Every call of the CUDA driver, by Rondo or by cuBLASLt, and every allocation of host memory may fail while a program
 * is compiled, recorded, run and read on a CUDA device. Either an error comes out or the numbers are right; nothing is
 * left in the driver, in cuBLASLt or in host memory, and nothing is misused.
 */
#include "fake_cuda/fake_cublaslt.h"
#include "fault/fault_cuda.h"

enum { ROWS = 4, INNER = 80, COLUMNS = 5 };

static const fake_cuda_control *fake;
static const fake_cublaslt_control *products;

typedef struct work {
  test_allocator allocator;
  rondo_device *device;
  rondo_program *program;
  rondo_compiled *compiled;
  float losses[3];
} work;

/* The product is so deep that the library makes it in parts, in a workspace. */
static rondo_status build(work *w) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .name = "small", .allocator = &w->allocator.table};
  rondo_value x, labels, weight, bias, rate, y;
  TRY(rondo_program_create(&options, &w->program));
  TRY(rondo_program_input(w->program, "x", RONDO_F32, (const size_t[]){ROWS, INNER}, 2, &x));
  TRY(rondo_program_input(w->program, "labels", RONDO_I32, (const size_t[]){ROWS}, 1, &labels));
  TRY(rondo_program_state(w->program, "weight", RONDO_F32, (const size_t[]){INNER, COLUMNS}, 2, &weight));
  TRY(rondo_program_state(w->program, "bias", RONDO_F32, (const size_t[]){COLUMNS}, 1, &bias));
  TRY(rondo_program_cell(w->program, "rate", 0.5f, &rate));
  TRY(rondo_op_matmul(w->program, x, weight, bias, &y));
  TRY(rondo_op_tanh(w->program, y, &y));
  TRY(rondo_op_cross_entropy(w->program, y, labels, &y));
  TRY(rondo_program_output(w->program, "loss", y));
  return rondo_program_adam(w->program, y, &(rondo_adam_options){RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate});
}

static rondo_status step(work *w, int number) {
  TRY(number == 1 ? rondo_compiled_run_unrecorded(w->compiled) : rondo_compiled_run(w->compiled));
  return rondo_compiled_read(w->compiled, "loss", &w->losses[number], sizeof w->losses[number]);
}

static rondo_status do_all(work *w) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &w->allocator.table};
  const int32_t labels[ROWS] = {1, 0, 3, 4};
  float x[ROWS * INNER];
  for (int i = 0; i < ROWS * INNER; i++) x[i] = (float)(i % 7) - 3;
  TRY(rondo_device_open("cuda:0", &options, &w->device));
  TRY(build(w));
  TRY(rondo_compile(w->program, w->device, NULL, &w->compiled));
  TRY(rondo_compiled_write(w->compiled, "x", x, sizeof x));
  TRY(rondo_compiled_write(w->compiled, "labels", labels, sizeof labels));
  for (int i = 0; i < 3; i++) TRY(step(w, i));
  return RONDO_OK;
}

/* Errors here are told as well; the device is gone all the same. */
static void take_down(work *w) {
  rondo_status status = rondo_compiled_destroy(w->compiled);
  (void)status;
  rondo_program_destroy(w->program);
  status = rondo_device_close(w->device);
  (void)status;
}

typedef struct failure {
  uint64_t driver_at, allocation_at; /* 0: none */
  unsigned code;
  bool onward;
} failure;

/* What the driver refused to take back, or all once every call is refused. */
static bool may_be_left(const failure *of, const char *call) {
  if (of->code == LAUNCH_FAILED || call == NULL) return false;
  return of->onward || fault_cuda_gives_back(call);
}

static void assert_nothing_left(const work *w, const failure *of) {
  const char *call = fake->failed(), *const what = call == NULL ? "allocation" : call;
  const size_t at = (size_t)(of->driver_at + of->allocation_at);
  fault_cuda_assert_clean(fake, &w->allocator, may_be_left(of, call) ? SIZE_MAX : 0, what, at);
  if (fake->live(FAKE_CUDA_ANY) > 0) fake->reset();
  if (products->live() > 0) fail_msg("%s, failure %zu: %zu objects of cuBLASLt left", what, at, products->live());
}

static float right[3]; /* losses without a failure */

/* Whether the failure came. */
static bool run(const failure *of) {
  static work w;
  memset(&w, 0, sizeof w);
  test_allocator_init(&w.allocator);
  atomic_store(&w.allocator.fail_at, of->allocation_at);
  atomic_store(&w.allocator.fail_on, of->onward);
  fake->forget();
  fake->fail_call(NULL, of->driver_at, of->code, of->onward);
  const rondo_status status = do_all(&w);
  const bool came = of->driver_at > 0 ? fake->failed() != NULL : atomic_load(&w.allocator.calls) >= of->allocation_at;
  take_down(&w);
  assert_nothing_left(&w, of);
  if (status == RONDO_OK) assert_memory_equal(w.losses, right, sizeof right);
  return came;
}

static void sweep(failure of, bool of_driver) {
  uint64_t *at = of_driver ? &of.driver_at : &of.allocation_at;
  size_t count = 0;
  fake->reset();
  for (*at = 1; run(&of); (*at)++) count++;
  assert_true(count > 100);
}

static int load_driver(void **state) {
  static work w;
  (void)state;
  fake = fake_cuda_get();
  products = fake_cublaslt_get();
  assert_non_null(fake);
  assert_non_null(products);
  fake->reset();
  test_allocator_init(&w.allocator);
  assert_ok(do_all(&w)); /* what fails at the first loading of a library is kept for good */
  memcpy(right, w.losses, sizeof right);
  take_down(&w);
  assert_true(products->workspaces() > 0);
  return 0;
}

static void each_call_is_refused(void **state) {
  (void)state;
  sweep((failure){.code = REFUSED}, true);
}

static void each_call_runs_out_of_memory(void **state) {
  (void)state;
  sweep((failure){.code = NO_MEMORY}, true);
}

static void each_call_and_all_after_it_are_refused(void **state) {
  (void)state;
  sweep((failure){.code = REFUSED, .onward = true}, true);
}

static void each_call_loses_the_device(void **state) {
  (void)state;
  sweep((failure){.code = LAUNCH_FAILED}, true);
}

static void each_allocation_fails(void **state) {
  (void)state;
  sweep((failure){0}, false);
}

static void each_allocation_and_all_after_it_fail(void **state) {
  (void)state;
  sweep((failure){.onward = true}, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_call_is_refused),
      cmocka_unit_test(each_call_runs_out_of_memory),
      cmocka_unit_test(each_call_and_all_after_it_are_refused),
      cmocka_unit_test(each_call_loses_the_device),
      cmocka_unit_test(each_allocation_fails),
      cmocka_unit_test(each_allocation_and_all_after_it_fail),
  };
  return cmocka_run_group_tests(tests, load_driver, NULL);
}
