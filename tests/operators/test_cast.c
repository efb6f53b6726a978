/* SPDX-License-Identifier: MIT
 * cast: of each type to each other one.
 */
#include <math.h>

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
