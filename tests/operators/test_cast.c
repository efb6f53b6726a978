/* SPDX-License-Identifier: MIT
 * cast: of each type to each other one.
 */
#include <math.h>
#include <string.h>

#include "support/test_operator.h"
#include "support/test_program.h"

static const rondo_type types[] = {RONDO_F32, RONDO_F16, RONDO_BF16, RONDO_I32,
                                   RONDO_I64, RONDO_I8,  RONDO_U8,   RONDO_BOOL};

enum { TO }; /* sizes */

static bool is_float(rondo_type type) { return type == RONDO_F32 || type == RONDO_F16 || type == RONDO_BF16; }

/* Random cases ----------------------------------------------------------------------------------------------------- */

static void draw_shape(uint64_t *seed, size_t *shape, size_t *rank) {
  *rank = test_draw_between(seed, 0, 4);
  test_draw_shape(seed, *rank, 9, shape);
}

static void draw_floats(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS], rank;
  draw_shape(seed, shape, &rank);
  test_add_float(call, shape, rank, -300, 300);
  call->sizes[TO] = types[test_draw_between(seed, 0, 2)];
}

static void draw_floats_to_integers(uint64_t *seed, test_call *call) {
  draw_floats(seed, call);
  call->sizes[TO] = types[test_draw_between(seed, 3, 7)];
}

static void draw_integers(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS], rank;
  draw_shape(seed, shape, &rank);
  static const double lowest[] = {[RONDO_I32] = -2000, [RONDO_I64] = -2000, [RONDO_I8] = -128};
  static const double ends[] = {
      [RONDO_I32] = 2000, [RONDO_I64] = 2000, [RONDO_I8] = 128, [RONDO_U8] = 256, [RONDO_BOOL] = 2};
  test_tensor *tensor = test_add_index(call, shape, rank, 2);
  tensor->type = types[test_draw_between(seed, 3, 7)];
  tensor->low = tensor->type <= RONDO_I8 && tensor->type != RONDO_BOOL ? lowest[tensor->type] : 0;
  tensor->high = ends[tensor->type];
  call->sizes[TO] = types[test_draw_between(seed, 0, 7)];
}

/* Floats are clamped, integers keep their lower bits. */
static double to_small(double x, rondo_type from, double low, double high) {
  if (is_float(from)) return fmin(fmax(trunc(x), low), high);
  const double wrapped = fmod(x - low, high - low + 1);
  return low + wrapped + (wrapped < 0 ? high - low + 1 : 0);
}

static double converted(double x, rondo_type from, rondo_type to) {
  if (to == RONDO_BOOL) return x != 0;
  if (to == RONDO_I8) return to_small(x, from, -128, 127);
  if (to == RONDO_U8) return to_small(x, from, 0, 255);
  return is_float(to) ? x : trunc(x);
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *inputs,
                          rondo_value *result) {
  return rondo_op_cast(program, inputs[0], (rondo_type)call->sizes[TO], result);
}

static void reference(const test_call *call, double *const *inputs, double *result) {
  const rondo_type from = call->inputs[0].type == 0 ? call->type : call->inputs[0].type;
  for (size_t i = 0; i < test_input_elements(call, 0); i++)
    result[i] = converted(inputs[0][i], from, (rondo_type)call->sizes[TO]);
}

/* There and back, so that the result can have a loss. */
static rondo_status build_round_trip(const test_call *call, rondo_program *program, const rondo_value *inputs,
                                     rondo_value *result) {
  rondo_value there;
  const rondo_status status = rondo_op_cast(program, inputs[0], (rondo_type)call->sizes[TO], &there);
  return status != RONDO_OK ? status : rondo_op_cast(program, there, call->type, result);
}

/* Single numbers --------------------------------------------------------------------------------------------------- */

static void cast_once(test_fixture *t, rondo_type from, rondo_type to, const void *x, void *y, size_t count) {
  rondo_program *program = test_new_program();
  rondo_value in, out;
  assert_ok(rondo_program_input(program, "x", from, &count, 1, &in));
  assert_ok(rondo_op_cast(program, in, to, &out));
  assert_ok(rondo_program_output(program, "y", out));
  test_run_program(t, program,
                   (const test_bytes[]){{"x", (void *)(uintptr_t)x, count * rondo_type_bytes(from)}, {.name = NULL}},
                   (const test_bytes[]){{"y", y, count * rondo_type_bytes(to)}, {.name = NULL}});
}

/* Numbers beyond the range of an integer are clamped. */
TEST(test_floats_beyond_integers) {
  static const float x[] = {NAN, INFINITY, -INFINITY, 3e9f, -3e9f, 1e19f, -1e19f, 2147483520, -2147483648.0f, -0.9f};
  static const int32_t wanted[] = {0,         INT32_MAX, INT32_MIN,  INT32_MAX, INT32_MIN,
                                   INT32_MAX, INT32_MIN, 2147483520, INT32_MIN, 0};
  static const int64_t wide[] = {0,         INT64_MAX, INT64_MIN,  3000000000,  -3000000000,
                                 INT64_MAX, INT64_MIN, 2147483520, -2147483648, 0};
  int32_t y[10];
  int64_t z[10];
  cast_once(t, RONDO_F32, RONDO_I32, x, y, 10);
  assert_memory_equal(y, wanted, sizeof wanted);
  cast_once(t, RONDO_F32, RONDO_I64, x, z, 10);
  assert_memory_equal(z, wide, sizeof wide);
}

TEST(test_floats_beyond_bytes) {
  static const float x[] = {NAN, INFINITY, -INFINITY, 300, -300, 127.9f, -128.9f, 0.5f, -0.0f};
  static const int8_t wanted[] = {0, 127, -128, 127, -128, 127, -128, 0, 0};
  static const uint8_t counts[] = {0, 255, 0, 255, 0, 127, 0, 0, 0}, flags[] = {1, 1, 1, 1, 1, 1, 1, 1, 0};
  int8_t y[9];
  uint8_t z[9];
  cast_once(t, RONDO_F32, RONDO_I8, x, y, 9);
  assert_memory_equal(y, wanted, sizeof wanted);
  cast_once(t, RONDO_F32, RONDO_U8, x, z, 9);
  assert_memory_equal(z, counts, sizeof counts);
  cast_once(t, RONDO_F32, RONDO_BOOL, x, z, 9);
  assert_memory_equal(z, flags, sizeof flags);
}

TEST(test_integers_beyond_integers) {
  static const int64_t x[] = {0x123456789abcLL, -1, 0x80000000LL};
  static const int32_t wanted[] = {0x56789abc, -1, INT32_MIN};
  int32_t y[3];
  cast_once(t, RONDO_I64, RONDO_I32, x, y, 3);
  assert_memory_equal(y, wanted, sizeof wanted);
}

/* Ties are rounded to even, too large numbers become infinity, and NaN stays NaN. */
TEST(test_rounding) {
  static const float x[] = {1 + 0x1p-11f, 1 + 0x3p-11f, 65519, 65520, 0x1p-25f, 0x3p-25f, -INFINITY};
  static const uint16_t halves[] = {0x3c00, 0x3c02, 0x7bff, 0x7c00, 0, 2, 0xfc00};
  static const float z[] = {1 + 0x1p-8f, 1 + 0x3p-8f, 3.4028235e38f, -INFINITY, 0x1p-149f};
  static const uint16_t brains[] = {0x3f80, 0x3f82, 0x7f80, 0xff80, 0};
  const float nan = NAN;
  uint16_t y[7];
  cast_once(t, RONDO_F32, RONDO_F16, x, y, 7);
  assert_memory_equal(y, halves, sizeof halves);
  cast_once(t, RONDO_F32, RONDO_BF16, z, y, 5);
  assert_memory_equal(y, brains, sizeof brains);
  cast_once(t, RONDO_F32, RONDO_F16, &nan, y, 1);
  assert_true((y[0] & 0x7fff) > 0x7c00);
  cast_once(t, RONDO_F32, RONDO_BF16, &nan, y, 1);
  assert_true((y[0] & 0x7fff) > 0x7f80);
}

/* 8-bit floats, whose numbers the format's definition gives: sign, exponent, mantissa. */
typedef struct float8 {
  rondo_type type;
  int mantissa, bias;
  bool has_infinity; /* of the largest exponent, all but 0 are NaN; otherwise only all ones are */
  double largest;
} float8;
static const float8 float8s[] = {{RONDO_F8_E4M3, 3, 7, false, 448}, {RONDO_F8_E5M2, 2, 15, true, 57344}};

static double number_of(const float8 *f, uint8_t bits) {
  const int ones = (1 << f->mantissa) - 1, exponent = (bits & 0x7f) >> f->mantissa, rest = bits & ones;
  const double sign = bits >> 7 ? -1 : 1;
  if (!f->has_infinity && (bits & 0x7f) == 0x7f) return NAN;
  if (f->has_infinity && exponent == 31) return rest == 0 ? sign * INFINITY : NAN;
  return sign * (exponent == 0 ? ldexp(rest, 1 - f->bias - f->mantissa)
                               : ldexp(rest + ones + 1, exponent - f->bias - f->mantissa));
}

/* The nearest number; of two, the one whose last bit is 0. What is too large becomes the largest. */
static uint8_t nearest_to(const float8 *f, double x) {
  uint8_t best = 0;
  if (isnan(x)) return (uint8_t)(signbit(x) ? 0xff : 0x7f);
  const double magnitude = fmin(fabs(x), f->largest);
  for (uint8_t bits = 1; isfinite(number_of(f, bits)); bits++) {
    const double more = fabs(number_of(f, bits) - magnitude) - fabs(number_of(f, best) - magnitude);
    if (more < 0 || (more == 0 && bits % 2 == 0)) best = bits;
  }
  return (uint8_t)(best | (signbit(x) ? 0x80 : 0));
}

TEST(test_pr8_all_8_bit_floats) {
  uint8_t bits[256], back[256];
  for (int i = 0; i < 256; i++) bits[i] = (uint8_t)i;
  for (size_t k = 0; k < 2; k++) {
    const float8 *f = &float8s[k];
    float numbers[256];
    int32_t whole[256];
    cast_once(t, f->type, RONDO_F32, bits, numbers, 256);
    cast_once(t, RONDO_F32, f->type, numbers, back, 256);
    cast_once(t, f->type, RONDO_I32, bits, whole, 256);
    for (int i = 0; i < 256; i++) {
      const double wanted = number_of(f, bits[i]), got = (double)numbers[i];
      assert_true(isnan(wanted) ? isnan(got) : got == wanted && signbit(got) == signbit(wanted));
      if (!isnan(wanted)) assert_int_equal(back[i], isinf(wanted) ? nearest_to(f, wanted) : bits[i]);
      if (isfinite(wanted)) assert_int_equal(whole[i], (int32_t)wanted);
    }
  }
}

/* Of all magnitudes, between two numbers, and halfway. */
TEST(test_pr8_rounding_to_8_bit_floats) {
  enum { N = 2048 };
  static float x[N];
  static uint8_t y[N], by_half[N];
  static uint16_t halves[N];
  uint64_t seed = 3;
  for (size_t k = 0; k < 2; k++) {
    const float8 *f = &float8s[k];
    for (size_t i = 0; i < N; i++) {
      const double sign = i % 2 == 0 ? 1 : -1, low = number_of(f, (uint8_t)(i % 0x7b));
      x[i] = (float)(sign * ldexp(test_random_below(&seed, 1 << 20) + 1.0, (int)test_random_below(&seed, 40) - 40));
      if (i < 600) x[i] = (float)(sign * (low + number_of(f, (uint8_t)(i % 0x7b + 1))) / 2);
    }
    const float ends[] = {NAN, INFINITY, -INFINITY, 0, -0.0f, 464, 465, 1e30f, -1e30f, 61440, 1e-30f, 0x1p-149f};
    memcpy(x, ends, sizeof ends);
    cast_once(t, RONDO_F32, f->type, x, y, N);
    cast_once(t, RONDO_F32, RONDO_F16, x, halves, N);
    cast_once(t, RONDO_F16, f->type, halves, by_half, N);
    for (size_t i = 0; i < N; i++) {
      if (y[i] != nearest_to(f, (double)x[i]))
        fail_msg("%s of %g is %02x, not %02x", rondo_type_name(f->type), (double)x[i], y[i],
                 nearest_to(f, (double)x[i]));
    }
    for (size_t i = 0; i < 600; i++) assert_true(by_half[i] == y[i] || i < 12);
  }
}

/* Copies keep the bytes; there is no arithmetic. */
UNIT_TEST(test_pr8_8_bit_floats_are_stored) {
  rondo_program *program = test_new_program();
  rondo_value x, y, parts[2];
  assert_ok(rondo_program_input(program, "x", RONDO_F8_E4M3, (size_t[]){4, 2}, 2, &x));
  assert_ok(rondo_op_reshape(program, x, (size_t[]){2, 4}, 2, &y));
  assert_ok(rondo_op_slice(program, y, (size_t[]){0, 0}, (size_t[]){1, 4}, NULL, &parts[0]));
  assert_ok(rondo_op_slice(program, y, (size_t[]){1, 0}, (size_t[]){1, 4}, NULL, &parts[1]));
  assert_ok(rondo_op_concat(program, parts, 2, 0, &y));
  assert_error(rondo_op_add(program, x, x, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  assert_error(rondo_op_matmul(program, x, x, (rondo_value){0}, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  rondo_program_destroy(program);
}

/* A cast to its own type is the value itself; types that values cannot have are refused. */
UNIT_TEST(test_types) {
  rondo_program *program = test_new_program();
  rondo_value x, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F16, NULL, 0, &x));
  assert_ok(rondo_op_cast(program, x, RONDO_F16, &y));
  assert_true(y.id == x.id);
  assert_int_equal(rondo_op_cast(program, x, RONDO_F64, &y), RONDO_INVALID_ARGUMENT);
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_TYPE);
  assert_true(y.id == 0);
  assert_int_equal(rondo_op_cast(program, (rondo_value){0}, RONDO_F32, &y), RONDO_INVALID_ARGUMENT);
  assert_int_equal(rondo_op_cast(NULL, x, RONDO_F32, &y), RONDO_INVALID_ARGUMENT);
  rondo_program_destroy(program);
}

#define OPERATOR .build = build, .reference = reference
#define ROUND_TRIP .build = build_round_trip, .reference = reference

static const test_operator rows[] = {
    {.name = "cast", .draw = draw_floats, OPERATOR, .has_no_gradient = true},
    {.name = "cast", .draw = draw_floats_to_integers, OPERATOR, .has_no_gradient = true},
    {.name = "cast", .draw = draw_integers, OPERATOR, .has_no_gradient = true, .only_f32 = true},
    {.name = "cast", .draw = draw_floats, ROUND_TRIP, .tolerance = 0x1p-8, .only_f32 = true},
};

TEST_OPERATOR_MAIN(rows)
