/* SPDX-License-Identifier: MIT
 * Matrix products by the fake cuBLASLt: it computes them, with a workspace from the program's arena; shapes that it
 * does not support; calls that it refuses while a program is compiled or run; nothing of it is left.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "fake_cuda/fake_cublaslt.h"
#include "support/rondo_test.h"
#include "support/test_program.h"
#include "unit/tensor/reference.h"

enum { M = 5, K = 100, N = 7 }; /* so deep that the product is made in parts */

static const fake_cublaslt_control *library;
static float a[M * K], b[K * N], bias[N];

static int set_up(void **state) {
  library = fake_cublaslt_get();
  assert_non_null(library);
  library->refuse(NULL, 0);
  return test_setup(state);
}

static int tear_down(void **state) {
  const bool clean = test_destroy_left();
  assert_int_equal(library->live(), 0);
  return test_teardown(state) == 0 && clean ? 0 : -1;
}

static rondo_program *make_program(bool with_bias) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .name = "product"};
  rondo_program *program = NULL;
  rondo_value left, right, added = {0}, result;
  assert_ok(rondo_program_create(&options, &program));
  assert_ok(rondo_program_input(program, "a", RONDO_F32, (const size_t[]){M, K}, 2, &left));
  assert_ok(rondo_program_input(program, "b", RONDO_F32, (const size_t[]){K, N}, 2, &right));
  if (with_bias) assert_ok(rondo_program_input(program, "bias", RONDO_F32, (const size_t[]){N}, 1, &added));
  assert_ok(rondo_op_matmul(program, left, right, added, &result));
  assert_ok(rondo_program_output(program, "c", result));
  return program;
}

static rondo_status compile(test_fixture *t, bool with_bias, bool eager, rondo_compiled **out) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT,
                                         .record = eager ? RONDO_RECORD_NEVER : RONDO_RECORD_ALWAYS};
  rondo_program *program = make_program(with_bias);
  const rondo_status status = rondo_compile(program, t->device, &options, out);
  rondo_program_destroy(program);
  return status;
}

static void write_inputs(rondo_compiled *compiled, bool with_bias) {
  uint64_t seed = 3;
  for (size_t i = 0; i < M * K; i++) a[i] = (float)test_random_below(&seed, 9) - 4;
  for (size_t i = 0; i < K * N; i++) b[i] = (float)test_random_below(&seed, 9) - 4;
  for (size_t i = 0; i < N; i++) bias[i] = (float)i;
  assert_ok(rondo_compiled_write(compiled, "a", a, sizeof a));
  assert_ok(rondo_compiled_write(compiled, "b", b, sizeof b));
  if (with_bias) assert_ok(rondo_compiled_write(compiled, "bias", bias, sizeof bias));
}

/* The numbers are whole and small, so that the result is exact. */
static void assert_product(rondo_compiled *compiled, bool with_bias) {
  static double exact_a[M * K], exact_b[K * N], exact_bias[N], exact[M * N];
  float c[M * N];
  for (size_t i = 0; i < M * K; i++) exact_a[i] = (double)a[i];
  for (size_t i = 0; i < K * N; i++) exact_b[i] = (double)b[i];
  for (size_t i = 0; i < N; i++) exact_bias[i] = (double)bias[i];
  reference_matmul(exact_a, exact_b, with_bias ? exact_bias : NULL, M, N, K, false, false, exact);
  assert_ok(rondo_compiled_read(compiled, "c", c, sizeof c));
  for (size_t i = 0; i < M * N; i++) assert_true((double)c[i] == exact[i]);
}

#define PRODUCT_TEST(name) TEST_DEFINE(name, test_fixture *t, set_up, tear_down)

PRODUCT_TEST(test_products_are_the_librarys) {
  for (int i = 0; i < 4; i++) {
    const bool with_bias = i % 2 == 1, eager = i >= 2;
    rondo_compiled *compiled = NULL;
    assert_ok(compile(t, with_bias, eager, &compiled));
    const uint64_t before = library->products(), in_parts = library->workspaces();
    write_inputs(compiled, with_bias);
    assert_ok(rondo_compiled_run_eager(compiled));
    assert_product(compiled, with_bias);
    assert_int_equal(library->products(), before + 1);
    assert_int_equal(library->workspaces(), in_parts + 1);
    write_inputs(compiled, with_bias);
    assert_ok(rondo_compiled_run(compiled));
    assert_product(compiled, with_bias);
    rondo_compiled_info info = test_compiled_info(compiled);
    assert_int_equal(info.kernels, eager ? 0 : 2);
    assert_true(info.arena_bytes >= sizeof a + sizeof b + 2 * M * N * sizeof(float)); /* the two parts */
    assert_ok(rondo_compiled_destroy(compiled));
  }
}

static uint64_t products_in_tf32(test_fixture *t, rondo_type type, bool allow_tf32) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .allow_tf32 = allow_tf32};
  const size_t shape[] = {16, 16};
  rondo_program *program = test_new_program();
  rondo_value left, result;
  assert_ok(rondo_program_input(program, "a", type, shape, 2, &left));
  assert_ok(rondo_op_matmul(program, left, left, (rondo_value){0}, &result));
  assert_ok(rondo_program_output(program, "c", result));
  rondo_compiled *compiled = test_compile(program, t->device, &options);
  const uint64_t before = library->in_tf32(), all_before = library->products();
  assert_ok(rondo_compiled_run_eager(compiled));
  assert_ok(rondo_compiled_synchronize(compiled));
  assert_int_equal(library->products(), all_before + 1);
  assert_ok(rondo_compiled_destroy(compiled));
  return library->in_tf32() - before;
}

/* Exact by default; only factors of F32 are rounded, and only when asked for. */
PRODUCT_TEST(test_tf32_is_used_where_it_is_allowed) {
  assert_int_equal(products_in_tf32(t, RONDO_F32, false), 0);
  assert_int_equal(products_in_tf32(t, RONDO_F32, true), 1);
  assert_int_equal(products_in_tf32(t, RONDO_BF16, true), 0);
}

/* Of half precision too: 256 + 1 in one part and -256 in the other, where BF16 holds 256 and 258. */
PRODUCT_TEST(test_parts_are_added_in_f32) {
  static uint16_t left[K], right[K];
  const uint16_t one = 0x3f80, most = 0x4380, least = 0xc380;
  rondo_program *program = test_new_program();
  rondo_value x, y, product;
  uint16_t result = 0;
  for (size_t i = 0; i < K; i++) left[i] = one;
  right[0] = most, right[1] = one, right[K - 1] = least;
  assert_ok(rondo_program_input(program, "a", RONDO_BF16, (const size_t[]){1, K}, 2, &x));
  assert_ok(rondo_program_input(program, "b", RONDO_BF16, (const size_t[]){K, 1}, 2, &y));
  assert_ok(rondo_op_matmul(program, x, y, (rondo_value){0}, &product));
  assert_ok(rondo_program_output(program, "c", product));
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  assert_ok(rondo_compiled_write(compiled, "a", left, sizeof left));
  assert_ok(rondo_compiled_write(compiled, "b", right, sizeof right));
  const uint64_t in_parts = library->workspaces();
  assert_ok(rondo_compiled_run_eager(compiled));
  assert_ok(rondo_compiled_read(compiled, "c", &result, sizeof result));
  assert_int_equal(library->workspaces(), in_parts + 1);
  assert_int_equal(result, one);
}

/* The workspace lies in the arena while the product runs, and so in the memory map of a report. */
PRODUCT_TEST(test_workspaces_are_in_the_memory_map) {
  const rondo_report_options options = {RONDO_REPORT_OPTIONS_INIT, .title = "product"};
  rondo_compiled *compiled = NULL;
  char *text = NULL;
  assert_ok(compile(t, false, false, &compiled));
  assert_ok(rondo_compiled_report(compiled, &options, &text));
  assert_non_null(strstr(text, "workspace of matmul 0"));
  rondo_text_free(text);
  assert_ok(rondo_compiled_destroy(compiled));
}

/* Without a way of the library's the program's own kernel makes it. */
PRODUCT_TEST(test_without_a_way_the_own_kernel_runs) {
  rondo_compiled *compiled = NULL;
  library->refuse("cublasLtMatmulAlgoGetHeuristic", 15);
  assert_ok(compile(t, true, false, &compiled));
  const uint64_t before = library->products();
  write_inputs(compiled, true);
  assert_ok(rondo_compiled_run(compiled));
  assert_product(compiled, true);
  assert_int_equal(library->products(), before);
  assert_ok(rondo_compiled_destroy(compiled));
}

/* How many products the library makes when one of this shape is compiled and run once; `least` as
 * RONDO_CUBLASLT_LEAST. */
static uint64_t librarys_share(test_fixture *t, size_t m, size_t k, size_t n, const char *least) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER};
  rondo_program *program = test_new_program();
  rondo_compiled *compiled = NULL;
  rondo_value left, right, result;
  assert_int_equal(setenv("RONDO_CUBLASLT_LEAST", least, 1), 0);
  rondo_options_reload();
  assert_ok(rondo_program_input(program, "a", RONDO_F32, (const size_t[]){m, k}, 2, &left));
  assert_ok(rondo_program_input(program, "b", RONDO_F32, (const size_t[]){k, n}, 2, &right));
  assert_ok(rondo_op_matmul(program, left, right, (rondo_value){0}, &result));
  assert_ok(rondo_program_output(program, "c", result));
  const rondo_status status = rondo_compile(program, t->device, &options, &compiled);
  rondo_program_destroy(program);
  assert_int_equal(setenv("RONDO_CUBLASLT_LEAST", "1", 1), 0);
  rondo_options_reload();
  assert_ok(status);
  const uint64_t before = library->products();
  assert_ok(rondo_compiled_run(compiled));
  const uint64_t share = library->products() - before;
  assert_ok(rondo_compiled_destroy(compiled));
  return share;
}

/* Few tiles that are not cut into parts leave most of the device idle where they are deep; single small results are own
 * kernels'. */
PRODUCT_TEST(test_ways_that_leave_the_device_idle_are_not_taken) {
  assert_int_equal(librarys_share(t, 16, 20, 16, "1"), 1);
  assert_int_equal(librarys_share(t, 16, 20, 16, "2"), 0);
  assert_int_equal(librarys_share(t, 16, K, 16, "2"), 0);
  assert_int_equal(librarys_share(t, 8, 20, 16, "2"), 1); /* thin */
  assert_int_equal(librarys_share(t, 16, 20, 4096, "2"), 0);
  assert_int_equal(librarys_share(t, 16, 20, 4097, "2"), 1);
  assert_int_equal(librarys_share(t, 16, 20, 4097, "10000000"), 0); /* of few multiplications */
}

/* Kernels of a recorded run that makes a batch of products, three of them, with this activation; of `type`. All is the
 * library's but for activations that it has not, which are one kernel more. */
static uint32_t kernels_with(test_fixture *t, rondo_type type, size_t n, rondo_activation activation,
                             bool with_gradient) {
  const rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT, .activation = activation, .transpose_b = true};
  rondo_program *program = test_new_program();
  rondo_value left, right, result, loss, gradient;
  assert_ok(rondo_program_input(program, "a", RONDO_F32, (const size_t[]){3, M, 20}, 3, &left));
  assert_ok(rondo_program_input(program, "b", RONDO_F32, (const size_t[]){3, n, 20}, 3, &right));
  if (type != RONDO_F32) assert_ok(rondo_op_cast(program, left, type, &left));
  if (type != RONDO_F32) assert_ok(rondo_op_cast(program, right, type, &right));
  assert_ok(rondo_op_matmul_with(program, left, right, &options, &result));
  assert_ok(rondo_program_output(program, "c", result));
  if (with_gradient) { /* so that what gelu is applied to is kept */
    rondo_value row, column;
    const size_t count = 3 * M * n;
    assert_ok(rondo_op_reshape(program, result, (const size_t[]){1, count}, 2, &row));
    assert_ok(rondo_op_reshape(program, result, (const size_t[]){count, 1}, 2, &column));
    assert_ok(rondo_op_matmul(program, row, column, (rondo_value){0}, &loss));
    assert_ok(rondo_op_reshape(program, loss, NULL, 0, &loss));
    assert_ok(rondo_program_gradients(program, loss, &left, 1, &gradient));
    assert_ok(rondo_program_output(program, "gradient", gradient));
  }
  const uint64_t before = library->products();
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_synchronize(compiled));
  assert_true(library->products() > before);
  rondo_compiled_info info = test_compiled_info(compiled);
  assert_ok(rondo_compiled_destroy(compiled));
  return info.kernels;
}

PRODUCT_TEST(test_batches_and_activations_are_the_librarys) {
  const uint32_t plain = kernels_with(t, RONDO_F32, 8, RONDO_ACTIVATION_NONE, false);
  assert_int_equal(plain, 1);
  assert_int_equal(kernels_with(t, RONDO_F32, 8, RONDO_ACTIVATION_RELU, false), 2); /* relu keeps not-a-number */
  assert_int_equal(kernels_with(t, RONDO_F32, 7, RONDO_ACTIVATION_GELU_TANH, false), 1);
  assert_int_equal(kernels_with(t, RONDO_F32, 8, RONDO_ACTIVATION_GELU, false), 2);
  assert_int_equal(kernels_with(t, RONDO_F32, 8, RONDO_ACTIVATION_SILU, false), 2);
  assert_int_equal(kernels_with(t, RONDO_BF16, 8, RONDO_ACTIVATION_RELU, false), 4); /* and two casts */
  const uint32_t step = kernels_with(t, RONDO_F32, 8, RONDO_ACTIVATION_GELU_TANH, true);
  assert_int_equal(kernels_with(t, RONDO_F32, 8, RONDO_ACTIVATION_SILU, true), step + 1);
  assert_int_equal(kernels_with(t, RONDO_F32, 7, RONDO_ACTIVATION_GELU_TANH, true), step + 1); /* rows of 8, 16 .. */
}

/* The error has the operator, the library's code and the remedy. */
PRODUCT_TEST(test_refusals_while_compiling_are_reported) {
  static const char *const calls[] = {"cublasLtCreate",
                                      "cublasLtMatmulDescCreate",
                                      "cublasLtMatmulDescSetAttribute",
                                      "cublasLtMatrixLayoutCreate",
                                      "cublasLtMatmulPreferenceCreate",
                                      "cublasLtMatmulPreferenceSetAttribute",
                                      "cublasLtMatmulAlgoGetHeuristic",
                                      "cublasLtMatmul"};
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    rondo_compiled *compiled = NULL;
    library->refuse(calls[i], 13);
    assert_fails(compile(t, true, false, &compiled), RONDO_EXECUTION_FAILED);
    assert_null(compiled);
    assert_message("matmul (operator 0 of program 'product')");
    assert_message("RONDO_CUBLASLT_LIBRARY=none");
    assert_int_equal(rondo_last_error()->driver_code, 13);
    assert_string_equal(rondo_last_error()->driver_name, "CUBLAS_STATUS_EXECUTION_FAILED");
    assert_int_equal(library->live(), 0);
  }
  library->refuse("cublasLtCreate", 3);
  rondo_compiled *compiled = NULL;
  assert_fails(compile(t, false, false, &compiled), RONDO_OUT_OF_MEMORY);
}

PRODUCT_TEST(test_a_refusal_while_running_leaves_the_program_usable) {
  rondo_compiled *compiled = NULL;
  assert_ok(compile(t, false, false, &compiled));
  write_inputs(compiled, false);
  library->refuse("cublasLtMatmul", 13);
  assert_fails(rondo_compiled_run_eager(compiled), RONDO_EXECUTION_FAILED);
  assert_ok(rondo_compiled_run_eager(compiled));
  assert_product(compiled, false);
  assert_ok(rondo_compiled_destroy(compiled));
}
