/* SPDX-License-Identifier: MIT
 * Matrix products by the fake cuBLASLt: it computes them, with a workspace from the program's arena; also those of
 * integers; shapes that it does not support; calls that it refuses while a program is compiled or run; nothing of it is
 * left.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/quantized.h>

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
  library->lack_integers(false);
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

/* Integers --------------------------------------------------------------------------------------------------------- */

enum { ROWS = 20, COLUMNS = 64, OUTPUTS = 32 };

/* y = x weightᵀ + bias, in F16, of a weight of `bits` bits in groups of `group` columns, 0 for whole rows. */
static rondo_program *make_quantized(uint32_t bits, size_t group) {
  const rondo_state_options frozen = {RONDO_STATE_OPTIONS_INIT, .frozen = true};
  rondo_quantized_options how = {RONDO_QUANTIZED_OPTIONS_INIT, .bits = bits, .group = group,
                                 .activations = RONDO_QUANTIZED_INT8};
  const size_t groups = group == 0 ? 1 : COLUMNS / group;
  rondo_program *program = test_named_program("quantized");
  rondo_value x, values, scales, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){ROWS, COLUMNS}, 2, &x));
  assert_ok(rondo_program_input(program, "bias", RONDO_F32, (const size_t[]){OUTPUTS}, 1, &how.bias));
  assert_ok(rondo_program_state(program, "values", bits == 4 ? RONDO_U8 : RONDO_I8,
                                (const size_t[]){OUTPUTS, COLUMNS * bits / 8}, 2, &values));
  assert_ok(
      rondo_program_state_with(program, "scales", RONDO_F32, (const size_t[]){OUTPUTS, groups}, 2, &frozen, &scales));
  assert_ok(rondo_op_cast(program, x, RONDO_F16, &x));
  assert_ok(rondo_op_cast(program, how.bias, RONDO_F16, &how.bias));
  assert_ok(rondo_op_matmul_quantized(program, x, values, scales, (rondo_value){0}, &how, &y));
  assert_ok(rondo_op_cast(program, y, RONDO_F32, &y));
  assert_ok(rondo_program_output(program, "y", y));
  return program;
}

/* Whole numbers, of which the largest of each row of x is 127: all sums are exact. The last row has a NaN. */
static void run_quantized(rondo_compiled *compiled, uint32_t bits, size_t groups, float *y) {
  static float x[ROWS * COLUMNS], added[OUTPUTS], scales[OUTPUTS * COLUMNS];
  static int8_t values[OUTPUTS * COLUMNS];
  for (size_t i = 0; i < ROWS * COLUMNS; i++) x[i] = i % COLUMNS == 3 ? 127 : (float)(i % 7) - 3;
  x[ROWS * COLUMNS - 1] = NAN;
  for (size_t i = 0; i < OUTPUTS; i++) added[i] = (float)i;
  for (size_t i = 0; i < OUTPUTS * groups; i++) scales[i] = i % 3 == 0 ? 0.25f : 0.5f;
  for (size_t i = 0; i < OUTPUTS * COLUMNS; i++) values[i] = (int8_t)(i % 11 - 5);
  assert_ok(rondo_compiled_write(compiled, "x", x, sizeof x));
  assert_ok(rondo_compiled_write(compiled, "bias", added, sizeof added));
  assert_ok(rondo_compiled_write(compiled, "values", values, OUTPUTS * COLUMNS * bits / 8));
  assert_ok(rondo_compiled_write(compiled, "scales", scales, OUTPUTS * groups * sizeof *scales));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", y, ROWS * OUTPUTS * sizeof *y));
}

/* Products of the library in a run, which gives what Rondo's kernels give. Sets how many of them are of integers. */
static uint64_t quantized_share(test_fixture *t, uint32_t bits, size_t group, uint64_t *out_of_integers) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER};
  const rondo_compile_options own = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER, .own_kernels = true};
  static float y[2][ROWS * OUTPUTS];
  const size_t groups = group == 0 ? 1 : COLUMNS / group;
  rondo_compiled *compiled = test_compile(make_quantized(bits, group), t->device, &own);
  run_quantized(compiled, bits, groups, y[0]);
  assert_ok(rondo_compiled_destroy(compiled));
  compiled = test_compile(make_quantized(bits, group), t->device, &options);
  const uint64_t before = library->products(), of_integers = library->of_integers();
  run_quantized(compiled, bits, groups, y[1]);
  *out_of_integers = library->of_integers() - of_integers;
  const uint64_t share = library->products() - before;
  assert_ok(rondo_compiled_destroy(compiled));
  for (size_t i = 0; i < ROWS * OUTPUTS; i++)
    assert_true(i / OUTPUTS == ROWS - 1 ? isnan(y[0][i]) && isnan(y[1][i]) : y[0][i] == y[1][i]);
  return share;
}

/* PR-9: weights and activations of 8 bits with one scale in a row are multiplied as integers, all others as floats. */
PRODUCT_TEST(test_pr9_products_of_8_bits_are_of_integers) {
  uint64_t of_integers;
  assert_int_equal(quantized_share(t, 8, 0, &of_integers), 1);
  assert_int_equal(of_integers, 1);
  assert_int_equal(quantized_share(t, 8, COLUMNS, &of_integers), 1);
  assert_int_equal(of_integers, 1);
  assert_int_equal(quantized_share(t, 8, COLUMNS / 2, &of_integers), 1);
  assert_int_equal(of_integers, 0);
  assert_int_equal(quantized_share(t, 4, 0, &of_integers), 1);
  assert_int_equal(of_integers, 0);
  library->lack_integers(true);
  assert_int_equal(quantized_share(t, 8, 0, &of_integers), 1);
  assert_int_equal(of_integers, 0);
}

typedef struct integer_case {
  rondo_type a, b;
  size_t b_batches, m, k, n;
  bool has_zeros, has_scale;
} integer_case;

static rondo_program *make_integers(const integer_case *c) {
  rondo_program *program = test_named_program("integers");
  rondo_integer_product_options how = {RONDO_INTEGER_PRODUCT_OPTIONS_INIT};
  rondo_value left, right, y;
  assert_ok(rondo_program_input(program, "a", c->a, (const size_t[]){2, c->m, c->k}, 3, &left));
  assert_ok(rondo_program_input(program, "b", c->b, (const size_t[]){c->b_batches, c->k, c->n}, 3, &right));
  if (c->has_zeros) assert_ok(rondo_program_input(program, "a_zero", c->a, NULL, 0, &how.a_zero));
  if (c->has_zeros) assert_ok(rondo_program_input(program, "b_zero", c->b, &c->n, 1, &how.b_zero));
  if (c->has_scale) assert_ok(rondo_op_full(program, RONDO_F32, NULL, 0, 0.001f, &how.scale));
  assert_ok(rondo_op_matmul_integer(program, left, right, &how, &y));
  assert_ok(rondo_program_output(program, "y", y));
  return program;
}

/* Runs it on any bytes. */
static void run_integers(rondo_compiled *compiled, void *y, size_t bytes) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  uint64_t seed = 5;
  for (size_t i = 0; rondo_compiled_get_value(compiled, i, &value) == RONDO_OK; i++) {
    if (value.kind != 'i') continue;
    uint8_t *numbers = malloc(value.bytes);
    assert_non_null(numbers);
    for (size_t k = 0; k < value.bytes; k++) numbers[k] = (uint8_t)test_random_below(&seed, 256);
    assert_ok(rondo_compiled_write(compiled, value.name, numbers, value.bytes));
    free(numbers);
  }
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", y, bytes));
}

static uint64_t integer_share(test_fixture *t, const integer_case *c) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER};
  const rondo_compile_options own = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER, .own_kernels = true};
  const size_t bytes = 2 * c->m * c->n * (c->has_scale ? 1 : sizeof(int32_t));
  char *y = calloc(2, bytes);
  assert_non_null(y);
  rondo_compiled *compiled = test_compile(make_integers(c), t->device, &own);
  run_integers(compiled, y, bytes);
  assert_ok(rondo_compiled_destroy(compiled));
  compiled = test_compile(make_integers(c), t->device, &options);
  const uint64_t before = library->of_integers();
  run_integers(compiled, y + bytes, bytes);
  const uint64_t share = library->of_integers() - before;
  assert_ok(rondo_compiled_destroy(compiled));
  assert_memory_equal(y, y + bytes, bytes);
  free(y);
  return share;
}

/* ON-3: products with one matrix of 8-bit integers, in sizes that are padded, and of any signs and zeros. */
PRODUCT_TEST(test_on3_integer_products_are_the_librarys) {
  static const integer_case cases[] = {
      {RONDO_I8, RONDO_I8, 1, 5, 32, 16, false, false},  {RONDO_I8, RONDO_I8, 1, 5, 33, 7, false, true},
      {RONDO_U8, RONDO_I8, 1, 5, 33, 7, true, false},    {RONDO_I8, RONDO_U8, 1, 1, 130, 70, true, true},
      {RONDO_U8, RONDO_U8, 1, 9, 300, 33, false, false}, {RONDO_U8, RONDO_U8, 1, 9, 300, 33, true, true}};
  const integer_case batched = {RONDO_I8, RONDO_I8, 2, 5, 32, 16, false, false};
  const integer_case deep = {RONDO_I8, RONDO_I8, 1, 1, 131057, 1, false, false};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) assert_int_equal(integer_share(t, &cases[i]), 1);
  assert_int_equal(integer_share(t, &batched), 0);
  assert_int_equal(integer_share(t, &deep), 0);
  library->lack_integers(true);
  assert_int_equal(integer_share(t, &cases[0]), 0);
}

/* 8-bit floats ----------------------------------------------------------------------------------------------------- */

typedef struct float8_case {
  rondo_type a, b, type;
  size_t m, n, k;
  bool scales_a_rows, scales_b_rows, has_bias;
} float8_case;

static rondo_program *make_float8(const float8_case *c) {
  rondo_matmul_scaled_options options = {RONDO_MATMUL_SCALED_OPTIONS_INIT, .type = c->type};
  rondo_program *program = test_named_program("float8");
  rondo_value left, right, a_scale, b_scale, y;
  assert_ok(rondo_program_input(program, "a", RONDO_F32, (const size_t[]){c->m, c->k}, 2, &left));
  assert_ok(rondo_program_input(program, "b", RONDO_F32, (const size_t[]){c->n, c->k}, 2, &right));
  assert_ok(rondo_op_cast(program, left, c->a, &left));
  assert_ok(rondo_op_cast(program, right, c->b, &right));
  assert_ok(rondo_op_arange(program, RONDO_F32, c->scales_a_rows ? c->m : 1, 0.5, 0.25, &a_scale));
  assert_ok(rondo_op_arange(program, RONDO_F32, c->scales_b_rows ? c->n : 1, 2, 1, &b_scale));
  if (c->has_bias) assert_ok(rondo_op_full(program, c->type, &c->n, 1, 3, &options.bias));
  assert_ok(rondo_op_matmul_scaled(program, left, right, a_scale, b_scale, &options, &y));
  if (c->type != RONDO_F32) assert_ok(rondo_op_cast(program, y, RONDO_F32, &y));
  assert_ok(rondo_program_output(program, "y", y));
  return program;
}

/* Small whole numbers, so that sums are exact in any order. */
static void run_float8(rondo_compiled *compiled, const float8_case *c, float *y) {
  static float left[ROWS * COLUMNS], right[OUTPUTS * COLUMNS];
  for (size_t i = 0; i < c->m * c->k; i++) left[i] = (float)(i % 5) - 2;
  for (size_t i = 0; i < c->n * c->k; i++) right[i] = (float)(i % 3) - 1;
  assert_ok(rondo_compiled_write(compiled, "a", left, c->m * c->k * sizeof *left));
  assert_ok(rondo_compiled_write(compiled, "b", right, c->n * c->k * sizeof *right));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", y, c->m * c->n * sizeof *y));
}

/* Products of the library in a run, which gives what Rondo's kernels give. `refused`: the library's function that
 * returns an error once, when the program is compiled; NULL: none does. */
static uint64_t float8_share(test_fixture *t, const float8_case *c, const char *refused) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER};
  const rondo_compile_options own = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER, .own_kernels = true};
  static float y[2][ROWS * OUTPUTS];
  rondo_compiled *compiled = test_compile(make_float8(c), t->device, &own);
  run_float8(compiled, c, y[0]);
  assert_ok(rondo_compiled_destroy(compiled));
  library->refuse(refused, 7);
  compiled = test_compile(make_float8(c), t->device, &options);
  library->refuse(NULL, 0);
  const uint64_t before = library->of_float8();
  run_float8(compiled, c, y[1]);
  const uint64_t share = library->of_float8() - before;
  assert_ok(rondo_compiled_destroy(compiled));
  assert_memory_equal(y[0], y[1], c->m * c->n * sizeof y[0][0]);
  return share;
}

PRODUCT_TEST(test_pr8_products_of_8_bit_floats_are_the_librarys) {
  static const float8_case taken[] = {{RONDO_F8_E4M3, RONDO_F8_E4M3, RONDO_F32, 5, 32, 64, false, false, false},
                                      {RONDO_F8_E5M2, RONDO_F8_E4M3, RONDO_BF16, 20, 16, 32, false, false, true},
                                      {RONDO_F8_E4M3, RONDO_F8_E5M2, RONDO_F16, 1, 16, 16, false, false, true},
                                      {RONDO_F8_E4M3, RONDO_F8_E4M3, RONDO_BF16, 20, 32, 64, true, true, false}};
  static const float8_case own[] = {{RONDO_F8_E5M2, RONDO_F8_E5M2, RONDO_F32, 5, 32, 64, false, false, false},
                                    {RONDO_F8_E4M3, RONDO_F8_E4M3, RONDO_F32, 5, 32, 64, false, false, true},
                                    {RONDO_F8_E4M3, RONDO_F8_E4M3, RONDO_F32, 5, 32, 64, true, false, false},
                                    {RONDO_F8_E4M3, RONDO_F8_E4M3, RONDO_F32, 5, 31, 64, false, false, false},
                                    {RONDO_F8_E4M3, RONDO_F8_E4M3, RONDO_F32, 5, 32, 63, false, false, false}};
  for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) assert_int_equal(float8_share(t, &taken[i], NULL), 1);
  for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) assert_int_equal(float8_share(t, &own[i], NULL), 0);
}

/* What a release or a GPU does not have is Rondo's, whatever the code. */
PRODUCT_TEST(test_pr8_refused_products_of_8_bit_floats_are_own_kernels) {
  static const char *const refused[] = {"cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute",
                                        "cublasLtMatrixLayoutCreate", "cublasLtMatmulAlgoGetHeuristic"};
  const float8_case c = {RONDO_F8_E4M3, RONDO_F8_E4M3, RONDO_BF16, 20, 32, 64, true, true, false};
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) assert_int_equal(float8_share(t, &c, refused[i]), 0);
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
  assert_int_equal(librarys_share(t, 16, 20, 2048, "2"), 0);
  assert_int_equal(librarys_share(t, 16, 20, 2049, "2"), 1);
  assert_int_equal(librarys_share(t, 16, 20, 2049, "10000000"), 0); /* of few multiplications */
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

/* A step of training whose gradient of w is as deep as there are rows. */
static rondo_program *make_step(size_t rows) {
  rondo_program *program = test_new_program();
  rondo_value x, w, rate, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){rows, 16}, 2, &x));
  assert_ok(rondo_program_state(program, "w", RONDO_F32, (const size_t[]){16, 16}, 2, &w));
  assert_ok(rondo_program_cell(program, "rate", 0.5f, &rate));
  assert_ok(rondo_op_matmul(program, x, w, (rondo_value){0}, &y));
  assert_ok(rondo_op_sum(program, y, NULL, 0, false, &y));
  assert_ok(rondo_program_output(program, "loss", y));
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate};
  assert_ok(rondo_program_sgd(program, y, &sgd));
  return program;
}

/* Recompiling for more rows, for which the library cuts the product into parts (PR-6): the plan of memory is reused,
 * and of the step the two products alone run once, to warm up. States are not touched. */
PRODUCT_TEST(test_pr6_another_batch_size_warms_up_products_alone) {
  static float written[16 * 16], read[16 * 16];
  rondo_program *few = make_step(60), *many = make_step(70);
  rondo_compiled *compiled = test_compile(few, t->device, NULL);
  for (size_t i = 0; i < 16 * 16; i++) written[i] = (float)i;
  assert_ok(rondo_compiled_write(compiled, "w", written, sizeof written));
  const uint64_t products = library->products(), in_parts = library->workspaces();
  assert_ok(rondo_compiled_recompile(compiled, many, NULL));
  rondo_program_destroy(many);
  const rondo_compiled_info info = test_compiled_info(compiled);
  assert_true(info.skipped_warm_up);
  assert_true(info.reused_plans > 0);
  assert_int_equal(library->workspaces(), in_parts + 2);   /* the warm-up and the capture */
  assert_int_equal(library->products(), products + 2 + 2); /* likewise */
  assert_ok(rondo_compiled_read(compiled, "w", read, sizeof read));
  assert_memory_equal(read, written, sizeof written);
  assert_ok(rondo_compiled_destroy(compiled));
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
