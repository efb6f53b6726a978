/* SPDX-License-Identifier: MIT
 * Convolutions by the fake cuDNN: it computes all three passes, by engine configurations that give the same bits each
 * time, with workspaces from the program's arena; shapes that it does not support; calls that it refuses while a
 * program is compiled or run; nothing of it is left.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "fake_cuda/fake_cudnn.h"
#include "support/rondo_test.h"
#include "support/test_program.h"

/* A convolution in two groups whose windows leave places out. */
enum { IMAGES = 2, GROUPS = 2, IN = 4, OUT = 6, HEIGHT = 5, WIDTH = 7, KERNEL = 3, STRIDE = 2, PADDING = 1 };
enum { HIGH = (HEIGHT + 2 * PADDING - KERNEL) / STRIDE + 1, WIDE = (WIDTH + 2 * PADDING - KERNEL) / STRIDE + 1 };
enum { X = IMAGES * IN * HEIGHT * WIDTH, W = OUT * (IN / GROUPS) * KERNEL * KERNEL, Y = IMAGES * OUT * HIGH * WIDE };

static const fake_cudnn_control *library;
static float x[X], weight[W], bias[OUT], slope[Y];
static float exact_y[Y], exact_dx[X], exact_dweight[W];

static int set_up(void **state) {
  library = fake_cudnn_get();
  assert_non_null(library);
  library->refuse(NULL, 0);
  (void)library->refuse_call(0, 0);
  return test_setup(state);
}

static int tear_down(void **state) {
  assert_int_equal(library->live(), 0);
  assert_int_equal(library->violations(), 0);
  assert_int_equal(library->inexact(), 0);
  return test_teardown(state);
}

/* y, and the gradients of the sum of y times slopes. */
static rondo_program *make_program(void) {
  const rondo_program_options named = {RONDO_PROGRAM_OPTIONS_INIT, .name = "images"};
  rondo_program *program = NULL;
  rondo_value image, windows, added, slopes, y, loss, gradients[2];
  assert_ok(rondo_program_create(&named, &program));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){IMAGES, IN, HEIGHT, WIDTH}, 4, &image));
  assert_ok(rondo_program_input(program, "weight", RONDO_F32, (const size_t[]){OUT, IN / GROUPS, KERNEL, KERNEL}, 4,
                                &windows));
  assert_ok(rondo_program_input(program, "bias", RONDO_F32, (const size_t[]){OUT}, 1, &added));
  assert_ok(rondo_program_input(program, "slope", RONDO_F32, (const size_t[]){IMAGES, OUT, HIGH, WIDE}, 4, &slopes));
  const rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT, .groups = GROUPS, .stride = {STRIDE, STRIDE},
                                      .padding = {PADDING, PADDING}, .bias = added};
  assert_ok(rondo_op_conv(program, image, windows, &options, &y));
  assert_ok(rondo_program_output(program, "y", y));
  assert_ok(rondo_op_mul(program, y, slopes, &loss));
  assert_ok(rondo_op_sum(program, loss, NULL, 0, false, &loss));
  assert_ok(rondo_program_gradients(program, loss, (const rondo_value[]){image, windows}, 2, gradients));
  assert_ok(rondo_program_output(program, "dx", gradients[0]));
  assert_ok(rondo_program_output(program, "dweight", gradients[1]));
  return program;
}

static rondo_status compile_as(test_fixture *t, const rondo_compile_options *options, rondo_compiled **out) {
  rondo_program *program = make_program();
  const rondo_status status = rondo_compile(program, t->device, options, out);
  rondo_program_destroy(program);
  return status;
}

static rondo_status compile(test_fixture *t, rondo_record_policy record, rondo_compiled **out) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = record};
  return compile_as(t, &options, out);
}

/* What each product of an element of x and one of the weight adds to. */
static void add_product(size_t x_at, size_t w_at, size_t y_at) {
  exact_y[y_at] += x[x_at] * weight[w_at];
  exact_dx[x_at] += slope[y_at] * weight[w_at];
  exact_dweight[w_at] += slope[y_at] * x[x_at];
}

static void add_window(size_t image, size_t o, size_t row, size_t column) {
  const size_t y_at = ((image * OUT + o) * HIGH + row) * WIDE + column, group = o / (OUT / GROUPS);
  exact_y[y_at] = bias[o];
  for (size_t i = 0; i < IN / GROUPS * KERNEL * KERNEL; i++) {
    const size_t c = i / (KERNEL * KERNEL), down = row * STRIDE + i / KERNEL % KERNEL - PADDING;
    const size_t across = column * STRIDE + i % KERNEL - PADDING; /* below 0 it is very large */
    if (down >= HEIGHT || across >= WIDTH) continue;
    add_product(((image * IN + group * (IN / GROUPS) + c) * HEIGHT + down) * WIDTH + across,
                o * (IN / GROUPS) * KERNEL * KERNEL + i, y_at);
  }
}

/* Whole and small numbers, so that the results are exact. */
static void draw_numbers(void) {
  uint64_t seed = 5;
  for (size_t i = 0; i < X; i++) x[i] = (float)test_random_below(&seed, 9) - 4;
  for (size_t i = 0; i < W; i++) weight[i] = (float)test_random_below(&seed, 9) - 4;
  for (size_t i = 0; i < Y; i++) slope[i] = (float)test_random_below(&seed, 5) - 2;
  for (size_t i = 0; i < OUT; i++) bias[i] = (float)i;
  memset(exact_dx, 0, sizeof exact_dx);
  memset(exact_dweight, 0, sizeof exact_dweight);
  for (size_t i = 0; i < Y; i++)
    add_window(i / (OUT * HIGH * WIDE), i / (HIGH * WIDE) % OUT, i / WIDE % HIGH, i % WIDE);
}

static void write_inputs(rondo_compiled *compiled) {
  draw_numbers();
  assert_ok(rondo_compiled_write(compiled, "x", x, sizeof x));
  assert_ok(rondo_compiled_write(compiled, "weight", weight, sizeof weight));
  assert_ok(rondo_compiled_write(compiled, "bias", bias, sizeof bias));
  assert_ok(rondo_compiled_write(compiled, "slope", slope, sizeof slope));
}

static void assert_results(rondo_compiled *compiled) {
  float y[Y], dx[X], dweight[W];
  assert_ok(rondo_compiled_read(compiled, "y", y, sizeof y));
  assert_ok(rondo_compiled_read(compiled, "dx", dx, sizeof dx));
  assert_ok(rondo_compiled_read(compiled, "dweight", dweight, sizeof dweight));
  assert_near(y, exact_y, Y, 0);
  assert_near(dx, exact_dx, X, 0);
  assert_near(dweight, exact_dweight, W, 0);
}

#define CONVOLUTION_TEST(name) TEST_DEFINE(name, test_fixture *t, set_up, tear_down)

CONVOLUTION_TEST(test_all_passes_are_the_librarys) {
  for (int eager = 0; eager < 2; eager++) {
    rondo_compiled *compiled = NULL;
    assert_ok(compile(t, eager ? RONDO_RECORD_NEVER : RONDO_RECORD_ALWAYS, &compiled));
    const uint64_t before = library->convolutions(), with_workspace = library->workspaces();
    write_inputs(compiled);
    assert_ok(rondo_compiled_run_eager(compiled));
    assert_results(compiled);
    assert_int_equal(library->convolutions(), before + 3);
    assert_int_equal(library->workspaces(), with_workspace + 3);
    write_inputs(compiled);
    assert_ok(rondo_compiled_run(compiled));
    assert_results(compiled);
    assert_int_equal(library->convolutions(), before + (eager ? 6 : 3)); /* a replay calls nothing */
    assert_ok(rondo_compiled_destroy(compiled));
  }
}

static uint64_t runs_in_tf32(test_fixture *t, bool allow_tf32) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .allow_tf32 = allow_tf32};
  rondo_compiled *compiled = NULL;
  assert_ok(compile_as(t, &options, &compiled));
  const uint64_t before = library->in_tf32();
  write_inputs(compiled);
  assert_ok(rondo_compiled_run_eager(compiled));
  assert_results(compiled);
  assert_ok(rondo_compiled_destroy(compiled));
  return library->in_tf32() - before;
}

/* Exact by default, as products are. */
CONVOLUTION_TEST(test_tf32_is_used_where_it_is_allowed) {
  assert_int_equal(runs_in_tf32(t, false), 0);
  assert_int_equal(runs_in_tf32(t, true), 3);
}

/* By request, also when compiled again. */
CONVOLUTION_TEST(test_kernels_of_rondo_do_without) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .own_kernels = true};
  rondo_compiled *compiled = NULL;
  assert_ok(compile_as(t, &options, &compiled));
  rondo_program *program = make_program();
  const uint64_t before = library->convolutions();
  for (int i = 0; i < 2; i++) {
    write_inputs(compiled);
    assert_ok(rondo_compiled_run_eager(compiled));
    assert_results(compiled);
    assert_int_equal(library->convolutions(), before);
    assert_int_equal(library->live(), 0);
    assert_ok(rondo_compiled_recompile(compiled, program, NULL));
  }
  rondo_program_destroy(program);
  assert_ok(rondo_compiled_destroy(compiled));
}

CONVOLUTION_TEST(test_workspaces_are_in_the_memory_map) {
  const rondo_report_options options = {RONDO_REPORT_OPTIONS_INIT, .title = "images"};
  rondo_compiled *compiled = NULL;
  char *text = NULL;
  assert_ok(compile(t, RONDO_RECORD_ALWAYS, &compiled));
  assert_ok(rondo_compiled_report(compiled, &options, &text));
  assert_non_null(strstr(text, "workspace of conv 0"));
  rondo_text_free(text);
  assert_ok(rondo_compiled_destroy(compiled));
}

/* Convolutions that the library makes when this one, of `type`, is compiled and run once; `least` as RONDO_CUDNN_LEAST.
 */
static uint64_t share_of(test_fixture *t, rondo_type type, bool with_bias, size_t channels, size_t padding,
                         const char *least) {
  rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT, .padding = {padding, padding}};
  rondo_program *program = test_new_program();
  rondo_compiled *compiled = NULL;
  rondo_value image, windows, y;
  assert_int_equal(setenv("RONDO_CUDNN_LEAST", least, 1), 0);
  rondo_options_reload();
  assert_ok(rondo_program_input(program, "x", type, (const size_t[]){1, channels, 4, 4}, 4, &image));
  assert_ok(rondo_program_input(program, "weight", type, (const size_t[]){5, channels, 2, 2}, 4, &windows));
  if (with_bias) assert_ok(rondo_program_input(program, "bias", type, (const size_t[]){5}, 1, &options.bias));
  assert_ok(rondo_op_conv(program, image, windows, &options, &y));
  assert_ok(rondo_program_output(program, "y", y));
  const rondo_status status = rondo_compile(program, t->device, NULL, &compiled);
  rondo_program_destroy(program);
  assert_int_equal(setenv("RONDO_CUDNN_LEAST", "1", 1), 0);
  rondo_options_reload();
  assert_ok(status);
  const uint64_t before = library->convolutions();
  assert_ok(rondo_compiled_run_eager(compiled));
  assert_ok(rondo_compiled_synchronize(compiled));
  const uint64_t share = library->convolutions() - before;
  assert_ok(rondo_compiled_destroy(compiled));
  return share;
}

static uint64_t librarys_share(test_fixture *t, rondo_type type, size_t channels, size_t padding, const char *least) {
  return share_of(t, type, false, channels, padding, least);
}

/* A sum of half precision would be rounded before a bias is added. */
CONVOLUTION_TEST(test_results_are_rounded_once) {
  assert_int_equal(share_of(t, RONDO_F32, true, 3, 0, "1"), 1);
  assert_int_equal(share_of(t, RONDO_F16, true, 3, 0, "1"), 0);
  assert_int_equal(share_of(t, RONDO_BF16, true, 3, 0, "1"), 0);
}

/* By the multiplications: 3 x 3 results, 5 channels of them, 4 taps of each of the input's channels. */
CONVOLUTION_TEST(test_small_ones_are_made_by_own_kernels) {
  assert_int_equal(librarys_share(t, RONDO_F32, 3, 0, "540"), 1);
  assert_int_equal(librarys_share(t, RONDO_F32, 3, 0, "541"), 0);
  assert_int_equal(librarys_share(t, RONDO_F16, 3, 0, "540"), 1);
  assert_int_equal(librarys_share(t, RONDO_BF16, 3, 0, "541"), 0);
}

/* Deep ones with few results, 4 taps of each channel, unless the library is to make all. Values of 16 bits have faster
 * engines. */
CONVOLUTION_TEST(test_ones_that_leave_the_device_idle_are_made_by_own_kernels) {
  assert_int_equal(librarys_share(t, RONDO_F32, 127, 0, "2"), 1);
  assert_int_equal(librarys_share(t, RONDO_F32, 128, 0, "2"), 0);
  assert_int_equal(librarys_share(t, RONDO_F32, 128, 0, "1"), 1);
  assert_int_equal(librarys_share(t, RONDO_BF16, 128, 0, "2"), 1);
}

/* The second list is asked where the first has nothing; own kernels make what neither has. */
CONVOLUTION_TEST(test_without_a_way_the_own_kernel_runs) {
  assert_int_equal(librarys_share(t, RONDO_F32, 1, 0, "1"), 1);
  assert_int_equal(librarys_share(t, RONDO_F32, 3, 1, "1"), 1);
  assert_int_equal(librarys_share(t, RONDO_F32, 3, 2, "1"), 0);
  rondo_compiled *compiled = NULL;
  library->refuse("cudnnBackendFinalize", 3002);
  assert_ok(compile(t, RONDO_RECORD_ALWAYS, &compiled));
  const uint64_t before = library->convolutions();
  write_inputs(compiled);
  assert_ok(rondo_compiled_run_eager(compiled));
  assert_results(compiled);
  assert_int_equal(library->convolutions(), before + 2); /* the first of three is the own kernel's */
  assert_ok(rondo_compiled_destroy(compiled));
}

/* Refuses call after call. The error has the operator, the library's code and words, and the remedy. */
CONVOLUTION_TEST(test_each_refusal_while_compiling_is_reported) {
  uint64_t number = 0;
  for (bool came = true; came;) {
    rondo_compiled *compiled = NULL;
    (void)library->refuse_call(++number, 5000);
    const rondo_status status = compile(t, RONDO_RECORD_ALWAYS, &compiled);
    came = library->refuse_call(0, 0);
    if (!came) {
      assert_ok(status);
      assert_ok(rondo_compiled_destroy(compiled));
      break;
    }
    assert_int_equal(status, RONDO_EXECUTION_FAILED);
    assert_null(compiled);
    assert_message("conv");
    assert_message("of program 'images'");
    assert_message("was told to fail");
    assert_message("RONDO_CUDNN_LIBRARY=none");
    assert_int_equal(rondo_last_error()->driver_code, 5000);
    assert_string_equal(rondo_last_error()->driver_name, "CUDNN_STATUS_EXECUTION_FAILED");
    assert_int_equal(library->live(), 0);
  }
  assert_true(number > 100);
}

/* What is not supported, or broken inside, is made in another way; memory that is missing is an error. */
CONVOLUTION_TEST(test_each_lack_while_compiling_is_made_up_for) {
  static const int codes[] = {3000, 4000, 4004};
  for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
    uint64_t number = 0;
    for (bool came = true; came;) {
      rondo_compiled *compiled = NULL;
      (void)library->refuse_call(++number, codes[i]);
      const rondo_status status = compile(t, RONDO_RECORD_NEVER, &compiled);
      came = library->refuse_call(0, 0);
      if (status != RONDO_OK) {
        assert_int_equal(status, codes[i] == 4004 ? RONDO_OUT_OF_MEMORY : RONDO_EXECUTION_FAILED);
        assert_int_equal(rondo_last_error()->driver_code, codes[i]);
        assert_int_equal(library->live(), 0);
        continue;
      }
      write_inputs(compiled);
      assert_ok(rondo_compiled_run(compiled));
      assert_results(compiled);
      assert_ok(rondo_compiled_destroy(compiled));
    }
  }
}

CONVOLUTION_TEST(test_a_refusal_while_running_leaves_the_program_usable) {
  static const char *const calls[] = {"cudnnBackendExecute", "cudnnSetStream"};
  rondo_compiled *compiled = NULL;
  assert_ok(compile(t, RONDO_RECORD_ALWAYS, &compiled));
  write_inputs(compiled);
  for (size_t i = 0; i < 2; i++) {
    library->refuse(calls[i], 5000);
    assert_fails(rondo_compiled_run_eager(compiled), RONDO_EXECUTION_FAILED);
    assert_ok(rondo_compiled_run_eager(compiled));
    assert_results(compiled);
  }
  assert_ok(rondo_compiled_destroy(compiled));
}

CONVOLUTION_TEST(test_libraries_are_listed) {
  rondo_library_info info = {RONDO_LIBRARY_INFO_INIT};
  assert_ok(rondo_library_enumerate(0, &info));
  assert_string_equal(info.name, "cuBLASLt");
  assert_string_equal(info.purpose, "matrix products on CUDA devices");
  assert_string_equal(info.path, getenv("RONDO_CUBLASLT_LIBRARY"));
  assert_ok(rondo_library_enumerate(1, &info));
  assert_string_equal(info.name, "cuDNN");
  assert_string_equal(info.path, getenv("RONDO_CUDNN_LIBRARY"));
  assert_string_equal(info.reason, "");
  assert_ok(rondo_library_enumerate(2, &info));
  assert_string_equal(info.name, "oneDNN");
  assert_true((info.path == NULL) == (info.reason[0] != '\0'));
  assert_ok(rondo_library_enumerate(3, &info));
  assert_string_equal(info.name, "oneDNN");
  assert_string_equal(info.purpose, "convolutions on CPU devices");
  assert_ok(rondo_library_enumerate(4, &info));
  assert_string_equal(info.name, "CBLAS");
  assert_true((info.path == NULL) == (info.reason[0] != '\0'));
  assert_error(rondo_library_enumerate(5, &info), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  assert_fails(rondo_library_enumerate(0, NULL), RONDO_INVALID_ARGUMENT);
}
