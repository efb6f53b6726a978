/* SPDX-License-Identifier: MIT
 * Integers (ON-3): matmul_integer and conv_integer are exact, with zeros of both factors, scales and biases;
 * quantize_linear, dequantize_linear and dynamic_quantize_linear.
 */
#include <math.h>
#include <string.h>

#include <rondo/quantized.h>

#include "support/test_operator.h"
#include "support/test_program.h"

enum { M = 70, K = 1030, N = 83 }; /* several tiles and panels, none of them whole */

static uint8_t bytes_a[M * K], bytes_b[K * N], zeros[N];
static float scales[N];
static int32_t biases[N];

static int number_of(uint8_t byte, bool is_unsigned) { return is_unsigned ? byte : (int8_t)byte; }

static void draw_all(uint64_t *seed) {
  for (size_t i = 0; i < sizeof bytes_a; i++) bytes_a[i] = (uint8_t)test_random_below(seed, 256);
  for (size_t i = 0; i < sizeof bytes_b; i++) bytes_b[i] = (uint8_t)test_random_below(seed, 256);
  for (size_t i = 0; i < N; i++) {
    zeros[i] = (uint8_t)test_random_below(seed, 256);
    scales[i] = (float)(1 + test_random_below(seed, 9)) * 1e-5f;
    biases[i] = (int32_t)test_random_below(seed, 100000) - 50000;
  }
}

static int32_t sum_at(size_t i, size_t j, bool a_unsigned, bool b_unsigned, uint8_t a_zero) {
  uint32_t sum = 0;
  for (size_t k = 0; k < K; k++)
    sum += (uint32_t)((number_of(bytes_a[i * K + k], a_unsigned) - number_of(a_zero, a_unsigned)) *
                      (number_of(bytes_b[k * N + j], b_unsigned) - number_of(zeros[j], b_unsigned)));
  return (int32_t)sum;
}

static rondo_value input(rondo_program *program, const char *name, rondo_type type, const size_t *shape, size_t rank) {
  rondo_value made;
  assert_ok(rondo_program_input(program, name, type, shape, rank, &made));
  return made;
}

static rondo_value state(rondo_program *program, const char *name, rondo_type type, const size_t *shape, size_t rank) {
  const rondo_state_options frozen = {RONDO_STATE_OPTIONS_INIT, .frozen = true};
  rondo_value made;
  assert_ok(rondo_program_state_with(program, name, type, shape, rank, &frozen, &made));
  return made;
}

static void check_product(test_fixture *t, bool a_unsigned, bool b_unsigned) {
  static int32_t sums[M * N];
  static uint8_t rounded[M * N];
  const rondo_type of_a = a_unsigned ? RONDO_U8 : RONDO_I8, of_b = b_unsigned ? RONDO_U8 : RONDO_I8;
  uint8_t a_zero = 77, to_zero = 100;
  rondo_program *program = test_new_program();
  rondo_value y, z;
  const rondo_value a = input(program, "a", of_a, (size_t[]){M, K}, 2),
                    b = input(program, "b", of_b, (size_t[]){K, N}, 2);
  rondo_integer_product_options options = {RONDO_INTEGER_PRODUCT_OPTIONS_INIT,
                                           .a_zero = input(program, "a_zero", of_a, NULL, 0),
                                           .b_zero = input(program, "b_zero", of_b, (size_t[]){N}, 1)};
  assert_ok(rondo_op_matmul_integer(program, a, b, &options, &y));
  options.scale = input(program, "scale", RONDO_F32, (size_t[]){N}, 1);
  options.bias = input(program, "bias", RONDO_I32, (size_t[]){N}, 1);
  options.result_zero = input(program, "to_zero", RONDO_U8, NULL, 0);
  assert_ok(rondo_op_matmul_integer(program, a, b, &options, &z));
  assert_ok(rondo_program_output(program, "y", y));
  assert_ok(rondo_program_output(program, "z", z));
  test_run_program(t, program,
                   (const test_bytes[]){TEST_BYTES("a", bytes_a),
                                        TEST_BYTES("b", bytes_b),
                                        TEST_BYTES("a_zero", a_zero),
                                        TEST_BYTES("b_zero", zeros),
                                        TEST_BYTES("scale", scales),
                                        TEST_BYTES("bias", biases),
                                        TEST_BYTES("to_zero", to_zero),
                                        {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("y", sums), TEST_BYTES("z", rounded), {.name = NULL}});
  for (size_t i = 0; i < M * N; i++) {
    const int32_t sum = sum_at(i / N, i % N, a_unsigned, b_unsigned, a_zero);
    const float scaled = rintf((float)(sum + biases[i % N]) * scales[i % N]) + 100;
    assert_int_equal(sums[i], sum);
    assert_int_equal(rounded[i], (int)fminf(fmaxf(scaled, 0), 255));
  }
}

TEST(test_products_are_exact) {
  uint64_t seed = 1;
  draw_all(&seed);
  for (int i = 0; i < 4; i++) check_product(t, i % 2 != 0, i / 2 != 0);
}

/* Factors without zeros give what zeros of 0 give, whatever their types. */
static void check_without_zeros(test_fixture *t, rondo_type of_a, rondo_type of_b) {
  static int32_t sums[4][M * N], images[2][2 * 2 * 3 * 3];
  static uint8_t image[3 * 5 * 5], weight[4 * 3 * 3 * 3], none = 0;
  uint64_t seed = 8;
  rondo_program *program = test_new_program();
  const rondo_value a = input(program, "a", of_a, (size_t[]){M, K}, 2);
  const rondo_value b = input(program, "b", of_b, (size_t[]){K, N}, 2);
  const rondo_value rows = input(program, "rows", of_b, (size_t[]){N, K}, 2);
  const rondo_value x = input(program, "x", of_a, (size_t[]){1, 3, 5, 5}, 4);
  const rondo_value w = input(program, "w", of_b, (size_t[]){4, 3, 3, 3}, 4);
  rondo_integer_product_options options = {RONDO_INTEGER_PRODUCT_OPTIONS_INIT};
  for (int given = 0; given < 2; given++) {
    const char *const names[][3] = {{"y0", "t0", "c0"}, {"y1", "t1", "c1"}};
    rondo_value y[3];
    if (given != 0) options.a_zero = input(program, "a_zero", of_a, NULL, 0);
    if (given != 0) options.b_zero = input(program, "b_zero", of_b, NULL, 0);
    options.transpose_b = false;
    assert_ok(rondo_op_matmul_integer(program, a, b, &options, &y[0]));
    assert_ok(rondo_op_conv_integer(program, x, w, NULL, &options, &y[2]));
    options.transpose_b = true;
    assert_ok(rondo_op_matmul_integer(program, a, rows, &options, &y[1]));
    for (int i = 0; i < 3; i++) assert_ok(rondo_program_output(program, names[given][i], y[i]));
  }
  draw_all(&seed);
  for (size_t i = 0; i < sizeof image; i++) image[i] = (uint8_t)test_random_below(&seed, 256);
  for (size_t i = 0; i < sizeof weight; i++) weight[i] = (uint8_t)test_random_below(&seed, 256);
  test_run_program(t, program,
                   (const test_bytes[]){TEST_BYTES("a", bytes_a),
                                        TEST_BYTES("b", bytes_b),
                                        TEST_BYTES("rows", bytes_b),
                                        TEST_BYTES("x", image),
                                        TEST_BYTES("w", weight),
                                        TEST_BYTES("a_zero", none),
                                        TEST_BYTES("b_zero", none),
                                        {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("y0", sums[0]),
                                        TEST_BYTES("y1", sums[1]),
                                        TEST_BYTES("t0", sums[2]),
                                        TEST_BYTES("t1", sums[3]),
                                        TEST_BYTES("c0", images[0]),
                                        TEST_BYTES("c1", images[1]),
                                        {.name = NULL}});
  assert_memory_equal(sums[0], sums[1], sizeof sums[0]);
  assert_memory_equal(sums[2], sums[3], sizeof sums[2]);
  assert_memory_equal(images[0], images[1], sizeof images[0]);
  for (size_t i = 0; i < M * N; i++) {
    uint32_t sum = 0;
    for (size_t k = 0; k < K; k++)
      sum += (uint32_t)(number_of(bytes_a[i / N * K + k], of_a == RONDO_U8) *
                        number_of(bytes_b[i % N * K + k], of_b == RONDO_U8));
    assert_int_equal(sums[2][i], (int32_t)sum);
  }
}

TEST(test_on3_products_without_zeros) {
  for (int i = 0; i < 4; i++)
    check_without_zeros(t, i % 2 != 0 ? RONDO_U8 : RONDO_I8, i / 2 != 0 ? RONDO_U8 : RONDO_I8);
}

enum { MOST_CHANNELS = 8 };

/* conv_integer has the bits of conv on the same numbers, whose sums F32 holds exactly. A weight of which four channels
 * can be side by side becomes a packed state if it is a state. */
static void check_conv_of(test_fixture *t, uint64_t *seed, size_t channels, bool is_state, size_t groups, size_t stride,
                          size_t before, size_t kernel, size_t dilation) {
  static uint8_t x[2 * MOST_CHANNELS * 11 * 13], weight[MOST_CHANNELS * MOST_CHANNELS * 9];
  static int32_t sums[2 * MOST_CHANNELS * 16 * 18];
  static float exact[2 * MOST_CHANNELS * 16 * 18];
  const size_t in[] = {2, channels, 11, 13}, of[] = {channels, channels / groups, kernel, kernel};
  const rondo_conv_options options = {
      RONDO_CONV_OPTIONS_INIT,          .groups = (uint32_t)groups,         .stride = {stride, stride},
      .dilation = {dilation, dilation}, .padding_before = {before, before}, .padding_after = {1, 1}};
  rondo_integer_product_options products = {RONDO_INTEGER_PRODUCT_OPTIONS_INIT};
  uint8_t x_zero = 9, own[MOST_CHANNELS] = {0, 1, 255, 3, 200, 8, 128, 127};
  rondo_program *program = test_new_program();
  rondo_value numbers, weights, copy, y, z, zero;
  size_t shape[RONDO_MAX_DIMENSIONS], rank, count = 1;
  rondo_type type;
  for (size_t i = 0; i < sizeof x; i++) x[i] = (uint8_t)test_random_below(seed, 256);
  for (size_t i = 0; i < sizeof weight; i++) weight[i] = (uint8_t)test_random_below(seed, 256);
  numbers = input(program, "x", RONDO_U8, in, 4);
  weights = is_state ? state(program, "weight", RONDO_I8, of, 4) : input(program, "weight", RONDO_I8, of, 4);
  products.a_zero = input(program, "x_zero", RONDO_U8, NULL, 0);
  products.b_zero = input(program, "zeros", RONDO_I8, (size_t[]){channels}, 1);
  assert_ok(rondo_op_conv_integer(program, numbers, weights, &options, &products, &y));
  assert_ok(rondo_program_output(program, "y", y));
  assert_ok(rondo_op_cast(program, numbers, RONDO_F32, &numbers));
  assert_ok(rondo_op_cast(program, products.a_zero, RONDO_F32, &zero));
  assert_ok(rondo_op_sub(program, numbers, zero, &numbers));
  copy = is_state ? input(program, "copy", RONDO_I8, of, 4) : weights;
  assert_ok(rondo_op_cast(program, copy, RONDO_F32, &weights));
  assert_ok(rondo_op_cast(program, products.b_zero, RONDO_F32, &zero));
  assert_ok(rondo_op_reshape(program, zero, (size_t[]){channels, 1, 1, 1}, 4, &zero));
  assert_ok(rondo_op_sub(program, weights, zero, &weights));
  assert_ok(rondo_op_conv(program, numbers, weights, &options, &z));
  assert_ok(rondo_program_output(program, "z", z));
  assert_ok(rondo_value_shape(program, y, &type, shape, &rank));
  for (size_t i = 0; i < rank; i++) count *= shape[i];
  assert_true(type == RONDO_I32 && count * sizeof(int32_t) <= sizeof sums);
  test_run_program(
      t, program,
      (const test_bytes[]){{"x", x, 2 * channels * 11 * 13},
                           {"weight", weight, channels * of[1] * kernel * kernel},
                           TEST_BYTES("x_zero", x_zero),
                           {"zeros", own, channels},
                           {"copy", is_state ? weight : NULL, channels * of[1] * kernel * kernel},
                           {.name = NULL}},
      (const test_bytes[]){{"y", sums, count * sizeof *sums}, {"z", exact, count * sizeof *exact}, {.name = NULL}});
  for (size_t i = 0; i < count; i++) assert_true((float)sums[i] == exact[i]);
}

static void check_conv(test_fixture *t, uint64_t *seed, size_t groups, size_t stride, size_t before, size_t kernel,
                       size_t dilation) {
  check_conv_of(t, seed, 6, false, groups, stride, before, kernel, dilation);
}

TEST(test_convolutions_are_exact) {
  uint64_t seed = 2;
  check_conv(t, &seed, 1, 1, 1, 3, 1);
  check_conv(t, &seed, 1, 2, 0, 3, 1);
  check_conv(t, &seed, 3, 1, 2, 2, 1);
  check_conv(t, &seed, 6, 2, 1, 3, 1);
  check_conv(t, &seed, 1, 1, 0, 1, 1);
  check_conv(t, &seed, 2, 2, 0, 1, 1);
  check_conv(t, &seed, 2, 1, 2, 3, 2);
  check_conv(t, &seed, 1, 2, 1, 3, 3);
  check_conv(t, &seed, 2, 3, 1, 2, 1);
}

TEST(test_convolutions_with_packed_weights_are_exact) {
  uint64_t seed = 12;
  for (size_t groups = 1; groups <= 2; groups++) {
    check_conv_of(t, &seed, 8, true, groups, 1, 1, 3, 1);
    check_conv_of(t, &seed, 8, true, groups, 2, 1, 3, 1);
    check_conv_of(t, &seed, 8, true, groups, 1, 2, 2, 2);
    check_conv_of(t, &seed, 8, true, groups, 1, 0, 1, 1);
    check_conv_of(t, &seed, 8, false, groups, 2, 1, 3, 1);
  }
}

/* Images of several tiles ------------------------------------------------------------------------------------------ */

enum { AXES = 3, MOST_OUT = 10, MOST_IN = 2 * 40 * 33 * 29, MOST_RESULTS = 2 * MOST_OUT * 33 * 29 };

/* The sizes of the image and the window are those of its dimensions, rank - 2 of them. */
typedef struct conv_case {
  size_t rank, images, in_channels, out_channels, groups;
  size_t in[AXES], kernel[AXES], stride[AXES], padding[AXES];
} conv_case;

static const conv_case conv_cases[] = {
    {4, 2, 40, 10, 1, {33, 29}, {1, 1}, {1, 1}, {0, 0}},
    {4, 2, 40, 10, 2, {33, 29}, {1, 1}, {1, 1}, {0, 0}},
    {4, 2, 40, 10, 1, {33, 29}, {3, 3}, {1, 1}, {1, 1}},
    {4, 2, 40, 10, 2, {33, 29}, {3, 3}, {1, 2}, {1, 0}},
    {4, 2, 40, 10, 1, {33, 29}, {1, 1}, {2, 3}, {0, 1}},
    {3, 2, 6, 7, 1, {700}, {1}, {1}, {0}},
    {3, 2, 6, 7, 1, {700}, {5}, {1}, {2}},
    {3, 2, 6, 4, 2, {700}, {2}, {3}, {1}},
    {5, 1, 5, 6, 1, {4, 9, 11}, {1, 3, 2}, {1, 1, 1}, {0, 1, 1}},
    {5, 1, 5, 6, 1, {4, 9, 11}, {1, 3, 3}, {2, 1, 3}, {0, 1, 1}},
    {5, 1, 5, 6, 1, {4, 9, 11}, {3, 1, 2}, {1, 3, 2}, {1, 0, 1}},
    {5, 1, 5, 6, 1, {4, 9, 11}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}},
};

/* With three axes for any image: those that it lacks are of size 1. */
static conv_case of_three_axes(const conv_case *c) {
  conv_case of = *c;
  for (size_t i = 0, lacks = 5 - c->rank; i < AXES; i++) {
    of.in[i] = i < lacks ? 1 : c->in[i - lacks];
    of.kernel[i] = i < lacks ? 1 : c->kernel[i - lacks];
    of.stride[i] = i < lacks ? 1 : c->stride[i - lacks];
    of.padding[i] = i < lacks ? 0 : c->padding[i - lacks];
  }
  return of;
}

static size_t out_size(const conv_case *c, size_t axis) {
  return (c->in[axis] + 2 * c->padding[axis] - c->kernel[axis]) / c->stride[axis] + 1;
}

/* The factors of a convolution and their types. */
typedef struct conv_factors {
  uint8_t x[MOST_IN], weight[MOST_OUT * 40 * 9], zeros[MOST_OUT], x_zero;
  bool x_unsigned, weight_unsigned;
} conv_factors;

/* The sum at (z, y, x) of an output channel; `c` has three axes. */
static int32_t window_sum(const conv_case *c, const conv_factors *f, size_t image, size_t channel, const size_t *at) {
  const size_t depth = c->in_channels / c->groups, first = channel / (c->out_channels / c->groups) * depth;
  const size_t *k = c->kernel;
  int32_t sum = 0;
  for (size_t i = 0; i < depth * k[0] * k[1] * k[2]; i++) {
    const size_t tap[AXES] = {i / (k[2] * k[1]) % k[0], i / k[2] % k[1], i % k[2]};
    size_t from = image * c->in_channels + first + i / (k[0] * k[1] * k[2]);
    bool is_inside = true;
    for (size_t axis = 0; axis < AXES; axis++) {
      const size_t place = at[axis] * c->stride[axis] + tap[axis] - c->padding[axis]; /* wraps before the image */
      is_inside = is_inside && place < c->in[axis];
      from = from * c->in[axis] + place;
    }
    if (is_inside)
      sum += (number_of(f->x[from], f->x_unsigned) - number_of(f->x_zero, f->x_unsigned)) *
             (number_of(f->weight[channel * depth * k[0] * k[1] * k[2] + i], f->weight_unsigned) -
              number_of(f->zeros[channel], f->weight_unsigned));
  }
  return sum;
}

static void check_sums(const conv_case *given, const conv_factors *f, const int32_t *sums) {
  const conv_case c = of_three_axes(given);
  const size_t out[AXES] = {out_size(&c, 0), out_size(&c, 1), out_size(&c, 2)}, places = out[0] * out[1] * out[2];
  for (size_t i = 0; i < c.images * c.out_channels * places; i++) {
    const size_t at[AXES] = {i / (out[2] * out[1]) % out[0], i / out[2] % out[1], i % out[2]};
    assert_int_equal(sums[i], window_sum(&c, f, i / places / c.out_channels, i / places % c.out_channels, at));
  }
}

static void check_tiles(test_fixture *t, const conv_case *c, conv_factors *f, bool is_state) {
  static int32_t sums[MOST_RESULTS];
  const rondo_type of_x = f->x_unsigned ? RONDO_U8 : RONDO_I8, of_weight = f->weight_unsigned ? RONDO_U8 : RONDO_I8;
  size_t x_shape[5] = {c->images, c->in_channels}, shape[5] = {c->out_channels, c->in_channels / c->groups};
  size_t x_bytes = x_shape[0] * x_shape[1], bytes = shape[0] * shape[1], count = c->images * c->out_channels;
  rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT, .groups = (uint32_t)c->groups};
  rondo_integer_product_options products = {RONDO_INTEGER_PRODUCT_OPTIONS_INIT};
  rondo_program *program = test_new_program();
  rondo_value y;
  for (size_t axis = 0; axis < c->rank - 2; axis++) {
    x_bytes *= x_shape[2 + axis] = c->in[axis];
    bytes *= shape[2 + axis] = c->kernel[axis];
    count *= out_size(c, axis);
    options.stride[axis] = c->stride[axis];
    options.padding[axis] = c->padding[axis];
  }
  assert_true(x_bytes <= sizeof f->x && bytes <= sizeof f->weight && count * sizeof *sums <= sizeof sums);
  products.a_zero = input(program, "x_zero", of_x, NULL, 0);
  products.b_zero = input(program, "zeros", of_weight, &c->out_channels, 1);
  assert_ok(rondo_op_conv_integer(program, input(program, "x", of_x, x_shape, c->rank),
                                  is_state ? state(program, "weight", of_weight, shape, c->rank)
                                           : input(program, "weight", of_weight, shape, c->rank),
                                  &options, &products, &y));
  assert_ok(rondo_program_output(program, "y", y));
  test_run_program(t, program,
                   (const test_bytes[]){{"x", f->x, x_bytes},
                                        {"weight", f->weight, bytes},
                                        TEST_BYTES("x_zero", f->x_zero),
                                        {"zeros", f->zeros, c->out_channels},
                                        {.name = NULL}},
                   (const test_bytes[]){{"y", sums, count * sizeof *sums}, {.name = NULL}});
  check_sums(c, f, sums);
}

TEST(test_on3_convolutions_of_several_tiles_are_exact) {
  static conv_factors f;
  uint64_t seed = 14;
  for (size_t i = 0; i < sizeof conv_cases / sizeof *conv_cases; i++) {
    for (size_t k = 0; k < sizeof f.x; k++) f.x[k] = (uint8_t)test_random_below(&seed, 256);
    for (size_t k = 0; k < sizeof f.weight; k++) f.weight[k] = (uint8_t)test_random_below(&seed, 256);
    for (size_t k = 0; k < sizeof f.zeros; k++) f.zeros[k] = (uint8_t)test_random_below(&seed, 256);
    f.x_zero = (uint8_t)test_random_below(&seed, 256);
    f.x_unsigned = i % 2 == 0;
    for (int k = 0; k < 2; k++) {
      f.weight_unsigned = k == 0;
      check_tiles(t, &conv_cases[i], &f, k != 0);
    }
  }
}

/* Strides larger than the image, and planes whose size does not fit 64 bits. */
TEST(test_convolutions_with_large_strides) {
  enum { LARGE = 1 << 30 };
  static const conv_case cases[] = {
      {4, 1, 1, 1, 1, {2, 2}, {2, 2}, {LARGE, LARGE}, {0, 0}},
      {5, 1, 1, 1, 1, {2, 2, 2}, {2, 2, 2}, {LARGE, LARGE, 16}, {0, 0, 0}},
      {4, 1, 1, 1, 1, {2, 3}, {2, 2}, {LARGE, 7}, {0, 4}},
  };
  static conv_factors f = {.x = {1, 2, 3, 200, 5, 6, 7, 8},
                           .weight = {9, 8, 7, 250, 5, 4, 3, 2},
                           .zeros = {3},
                           .x_zero = 4,
                           .x_unsigned = true};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_tiles(t, &cases[i], &f, false);
}

TEST(test_planes_that_are_too_large_are_refused) {
  const size_t large = (size_t)1 << 30, shape[] = {1, 1, 2, 2, 2};
  const rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT, .stride = {large, large, large},
                                      .dilation = {large, large, large}, .padding = {large, large, large}};
  rondo_device_info info = {.struct_size = sizeof info};
  rondo_program *program = test_new_program();
  rondo_compiled *compiled = NULL;
  rondo_value y;
  assert_ok(rondo_device_get_info(t->device, &info));
  if (info.cuda) skip(); /* it makes no planes */
  assert_ok(rondo_op_conv_integer(program, input(program, "x", RONDO_U8, shape, 5),
                                  input(program, "weight", RONDO_I8, shape, 5), &options, NULL, &y));
  assert_ok(rondo_program_output(program, "y", y));
  assert_error(rondo_compile(program, t->device, NULL, &compiled), RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE);
  assert_null(compiled);
  rondo_program_destroy(program);
}

/* A transposed b, and what becomes of the sums. */
static uint8_t b_transposed[N * K];

static float ended(int32_t sum, size_t column, float result_scale) {
  const float factor = 0.5f * scales[column] / result_scale;
  const float y = (float)sum * factor + (float)biases[column] * 1e-3f / result_scale;
  return y < 0 ? 0 : y;
}

static void check_rows(test_fixture *t, size_t rows, bool a_unsigned, bool b_unsigned) {
  static int32_t sums[M * N];
  static int8_t rounded[M * N];
  static float floats[M * N], bias[N];
  const rondo_type of_a = a_unsigned ? RONDO_U8 : RONDO_I8, of_b = b_unsigned ? RONDO_U8 : RONDO_I8;
  uint8_t a_zero = 201, to_zero = 250; /* -6 */
  rondo_program *program = test_new_program();
  rondo_value x, y, z;
  const rondo_value a = input(program, "a", of_a, (size_t[]){rows, K}, 2);
  const rondo_value b = input(program, "b", of_b, (size_t[]){N, K}, 2);
  rondo_integer_product_options options = {RONDO_INTEGER_PRODUCT_OPTIONS_INIT, .transpose_b = true,
                                           .a_zero = input(program, "a_zero", of_a, NULL, 0),
                                           .b_zero = input(program, "b_zero", of_b, (size_t[]){N}, 1)};
  for (size_t i = 0; i < N; i++) bias[i] = (float)biases[i] * 1e-3f;
  assert_ok(rondo_op_matmul_integer(program, a, b, &options, &x));
  options.scale = input(program, "scale", RONDO_F32, (size_t[]){N}, 1);
  options.bias = input(program, "bias", RONDO_F32, (size_t[]){N}, 1);
  options.a_scale = 0.5f;
  options.activation = RONDO_ACTIVATION_RELU;
  options.result_type = RONDO_F32;
  assert_ok(rondo_op_matmul_integer(program, a, b, &options, &y));
  options.result_type = RONDO_I8;
  options.result_scale = 2;
  options.result_zero = input(program, "to_zero", RONDO_I8, NULL, 0);
  assert_ok(rondo_op_matmul_integer(program, a, b, &options, &z));
  assert_ok(rondo_program_output(program, "x", x));
  assert_ok(rondo_program_output(program, "y", y));
  assert_ok(rondo_program_output(program, "z", z));
  test_run_program(t, program,
                   (const test_bytes[]){{"a", bytes_a, rows * K},
                                        TEST_BYTES("b", b_transposed),
                                        TEST_BYTES("a_zero", a_zero),
                                        TEST_BYTES("b_zero", zeros),
                                        TEST_BYTES("scale", scales),
                                        TEST_BYTES("bias", bias),
                                        TEST_BYTES("to_zero", to_zero),
                                        {.name = NULL}},
                   (const test_bytes[]){{"x", sums, rows * N * sizeof *sums},
                                        {"y", floats, rows * N * sizeof *floats},
                                        {"z", rounded, rows * N},
                                        {.name = NULL}});
  for (size_t i = 0; i < rows * N; i++) {
    const int32_t sum = sum_at(i / N, i % N, a_unsigned, b_unsigned, a_zero);
    const float whole = rintf(ended(sum, i % N, 2)) - 6;
    assert_int_equal(sums[i], sum);
    assert_true(floats[i] == ended(sum, i % N, 1));
    assert_int_equal(rounded[i], (int)fminf(fmaxf(whole, -128), 127));
  }
}

TEST(test_rows_with_rows_are_exact) {
  uint64_t seed = 3;
  draw_all(&seed);
  for (size_t j = 0; j < N; j++)
    for (size_t k = 0; k < K; k++) b_transposed[j * K + k] = bytes_b[k * N + j];
  for (int i = 0; i < 4; i++) check_rows(t, M, i % 2 != 0, i / 2 != 0);
  for (size_t rows = 1; rows < 6; rows++) check_rows(t, rows, true, false);
}

/* A product with a state, which is packed, has the bits of that with an input. */
static void check_packed(test_fixture *t, uint64_t *seed, const size_t *sizes, bool transposes, bool rounds) {
  enum { MOST = 8192 };
  static uint8_t a[MOST], b[MOST], b_zeros[MOST], to_zero, a_zero;
  static float scale[MOST];
  static int32_t packed[MOST], plain[MOST];
  const size_t m = sizes[0], k = sizes[1], n = sizes[2];
  const size_t shape[] = {transposes ? n : k, transposes ? k : n}, bytes = m * n * (rounds ? 1 : sizeof *packed);
  rondo_program *program = test_new_program();
  rondo_integer_product_options options = {RONDO_INTEGER_PRODUCT_OPTIONS_INIT, .transpose_b = transposes,
                                           .a_zero = input(program, "a_zero", RONDO_U8, NULL, 0),
                                           .b_zero = input(program, "b_zero", RONDO_I8, &n, 1)};
  rondo_value y[2];
  const rondo_value of_a = input(program, "a", RONDO_U8, (size_t[]){1, m, k}, 3);
  const rondo_value of_b[] = {state(program, "packed", RONDO_I8, shape, 2), input(program, "b", RONDO_I8, shape, 2)};
  const rondo_value of_scale = input(program, "scale", RONDO_F32, &n, 1);
  const rondo_value of_zero = input(program, "to_zero", RONDO_U8, NULL, 0);
  if (rounds) options.scale = of_scale;
  if (rounds) options.result_zero = of_zero;
  for (int i = 0; i < 2; i++) {
    assert_ok(rondo_op_matmul_integer(program, of_a, of_b[i], &options, &y[i]));
    assert_ok(rondo_program_output(program, i == 0 ? "x" : "y", y[i]));
  }
  assert_true(m * k <= MOST && k * n <= MOST && m * n <= MOST);
  for (size_t i = 0; i < MOST; i++) {
    a[i] = (uint8_t)test_random_below(seed, 256);
    b[i] = (uint8_t)test_random_below(seed, 256);
    b_zeros[i] = (uint8_t)test_random_below(seed, 256);
    scale[i] = (float)(1 + test_random_below(seed, 20)) * 1e-5f;
  }
  a_zero = a[0];
  to_zero = a[1];
  const test_bytes inputs[] = {{"a", a, m * k},
                               {"packed", b, k * n},
                               {"b", b, k * n},
                               {"b_zero", b_zeros, n},
                               TEST_BYTES("a_zero", a_zero),
                               TEST_BYTES("to_zero", to_zero),
                               {"scale", scale, n * sizeof *scale},
                               {.name = NULL}};
  test_run_program(t, program, inputs, (const test_bytes[]){{"x", packed, bytes}, {"y", plain, bytes}, {.name = NULL}});
  assert_memory_equal(packed, plain, bytes);
}

TEST(test_products_with_packed_weights_are_exact) {
  static const size_t sizes[][3] = {{1, 44, 24}, {7, 44, 128}, {50, 4, 10}, {33, 100, 40}, {8, 45, 24}, {8, 44, 7}};
  uint64_t seed = 13;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int how = 0; how < 4; how++) check_packed(t, &seed, sizes[i], how % 2 != 0, how / 2 != 0);
}

/* Each matrix b of a batch with all of a. */
TEST(test_batches_of_transposed_matrices) {
  enum { ROWS = 3, DEPTH = 19, COLUMNS = 5 };
  uint8_t a[2 * ROWS * DEPTH], b[4 * 2 * COLUMNS * DEPTH];
  int32_t sums[4 * 2 * ROWS * COLUMNS];
  uint64_t seed = 4;
  rondo_value y;
  rondo_program *program = test_new_program();
  const rondo_integer_product_options options = {RONDO_INTEGER_PRODUCT_OPTIONS_INIT, .transpose_b = true};
  for (size_t i = 0; i < sizeof a; i++) a[i] = (uint8_t)test_random_below(&seed, 256);
  for (size_t i = 0; i < sizeof b; i++) b[i] = (uint8_t)test_random_below(&seed, 256);
  assert_ok(rondo_op_matmul_integer(program, input(program, "a", RONDO_U8, (size_t[]){2, ROWS, DEPTH}, 3),
                                    input(program, "b", RONDO_I8, (size_t[]){4, 2, COLUMNS, DEPTH}, 4), &options, &y));
  assert_ok(rondo_program_output(program, "y", y));
  test_run_program(t, program, (const test_bytes[]){TEST_BYTES("a", a), TEST_BYTES("b", b), {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("y", sums), {.name = NULL}});
  for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
    const size_t matrix = i / COLUMNS / ROWS, row = i / COLUMNS % ROWS, column = i % COLUMNS;
    int32_t sum = 0;
    for (size_t k = 0; k < DEPTH; k++)
      sum += a[(matrix % 2 * ROWS + row) * DEPTH + k] * (int8_t)b[(matrix * COLUMNS + column) * DEPTH + k];
    assert_int_equal(sums[i], sum);
  }
}

/* Sums of quantised numbers ---------------------------------------------------------------------------------------- */

static void check_sum(test_fixture *t, bool a_unsigned, bool b_unsigned, bool has_relu) {
  enum { COUNT = 8209 };
  static uint8_t a[COUNT], b[COUNT], made[COUNT];
  const rondo_type of_a = a_unsigned ? RONDO_U8 : RONDO_I8, of_b = b_unsigned ? RONDO_U8 : RONDO_I8;
  uint8_t a_zero = 100, b_zero = 3, to_zero = 7;
  uint64_t seed = 6;
  rondo_program *program = test_new_program();
  rondo_value y;
  const rondo_add_integer_options options = {RONDO_ADD_INTEGER_OPTIONS_INIT,
                                             .result_type = of_a,
                                             .a_zero = input(program, "a_zero", of_a, NULL, 0),
                                             .b_zero = input(program, "b_zero", of_b, NULL, 0),
                                             .result_zero = input(program, "to_zero", of_a, NULL, 0),
                                             .activation = has_relu ? RONDO_ACTIVATION_RELU : RONDO_ACTIVATION_NONE,
                                             .a_scale = 0.02f,
                                             .b_scale = 0.03f,
                                             .result_scale = 0.025f};
  for (size_t i = 0; i < COUNT; i++) {
    a[i] = (uint8_t)test_random_below(&seed, 256);
    b[i] = (uint8_t)test_random_below(&seed, 256);
  }
  assert_ok(rondo_op_add_integer(program, input(program, "a", of_a, (size_t[]){COUNT}, 1),
                                 input(program, "b", of_b, (size_t[]){COUNT}, 1), &options, &y));
  assert_ok(rondo_program_output(program, "y", y));
  test_run_program(t, program,
                   (const test_bytes[]){TEST_BYTES("a", a),
                                        TEST_BYTES("b", b),
                                        TEST_BYTES("a_zero", a_zero),
                                        TEST_BYTES("b_zero", b_zero),
                                        TEST_BYTES("to_zero", to_zero),
                                        {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("y", made), {.name = NULL}});
  for (size_t i = 0; i < COUNT; i++) {
    const float of_first = (float)(number_of(a[i], a_unsigned) - 100) * 0.02f;
    const float of_second = (float)(number_of(b[i], b_unsigned) - 3) * 0.03f;
    const float all = of_first + of_second, whole = rintf((has_relu && all < 0 ? 0 : all) / 0.025f) + 7;
    const float limited = a_unsigned ? fminf(fmaxf(whole, 0), 255) : fminf(fmaxf(whole, -128), 127);
    assert_int_equal(number_of(made[i], a_unsigned), (int)limited);
  }
}

TEST(test_sums_of_quantised_numbers) {
  for (int i = 0; i < 8; i++) check_sum(t, i % 2 != 0, i / 2 % 2 != 0, i / 4 != 0);
}

/* Of rows of 5 elements; there are `blocks` scales a row. */
static void check_blocks(test_fixture *t, size_t block, size_t blocks) {
  float x[2 * 5] = {-1, 0.4f, 0.6f, 2.5f, 300, 1, 2, 3, -400, 0.5f}, scale[2 * 3] = {1, 0.5f, 2, 1, 1, 2}, back[10];
  int8_t zero[2 * 3] = {0, 1, 2, 3, 4, 5}, made[10];
  const rondo_quantize_linear_options options = {RONDO_QUANTIZE_LINEAR_OPTIONS_INIT, .dimension = 1, .block = block};
  rondo_program *program = test_new_program();
  rondo_value q, d;
  const rondo_value of_x = input(program, "x", RONDO_F32, (size_t[]){2, 5}, 2);
  const rondo_value of_scale = input(program, "scale", RONDO_F32, (size_t[]){2, blocks}, 2);
  const rondo_value of_zero = input(program, "zero", RONDO_I8, (size_t[]){2, blocks}, 2);
  assert_ok(rondo_op_quantize_linear(program, of_x, of_scale, of_zero, &options, &q));
  assert_ok(rondo_op_dequantize_linear(program, q, of_scale, of_zero, &options, &d));
  assert_ok(rondo_program_output(program, "q", q));
  assert_ok(rondo_program_output(program, "d", d));
  test_run_program(
      t, program,
      (const test_bytes[]){
          TEST_BYTES("x", x), {"scale", scale, 2 * blocks * sizeof *scale}, {"zero", zero, 2 * blocks}, {.name = NULL}},
      (const test_bytes[]){TEST_BYTES("q", made), TEST_BYTES("d", back), {.name = NULL}});
  for (size_t i = 0; i < 10; i++) {
    const size_t at = i / 5 * blocks + i % 5 / block;
    const float rounded = rintf(x[i] / scale[at]) + (float)zero[at];
    assert_int_equal(made[i], (int)fminf(fmaxf(rounded, -128), 127));
    assert_true(back[i] == (float)(made[i] - zero[at]) * scale[at]);
  }
}

TEST(test_quantising_by_blocks_and_back) {
  check_blocks(t, 2, 3);
  check_blocks(t, 5, 1);
}

/* Memory is in proportion to x. */
TEST(test_a_block_may_be_larger_than_the_dimension) {
  check_blocks(t, 6, 1);
  check_blocks(t, (size_t)1 << 40, 1);
  check_blocks(t, SIZE_MAX, 1);
}

/* The example of ONNX's operator. */
TEST(test_dynamic_quantisation) {
  float x[6] = {0, 2, -3, -2.5f, 1.34f, 0.5f}, scale;
  uint8_t made[6], zero;
  const uint8_t wanted[6] = {153, 255, 0, 26, 221, 179};
  rondo_program *program = test_new_program();
  rondo_value q, of_scale, of_zero;
  const rondo_value of_x = input(program, "x", RONDO_F32, (size_t[]){6}, 1);
  assert_ok(rondo_op_dynamic_quantize_linear(program, of_x, &q, &of_scale, &of_zero));
  assert_ok(rondo_program_output(program, "q", q));
  assert_ok(rondo_program_output(program, "scale", of_scale));
  assert_ok(rondo_program_output(program, "zero", of_zero));
  test_run_program(t, program, (const test_bytes[]){TEST_BYTES("x", x), {.name = NULL}},
                   (const test_bytes[]){
                       TEST_BYTES("q", made), TEST_BYTES("scale", scale), TEST_BYTES("zero", zero), {.name = NULL}});
  assert_true(fabsf(scale - 0.0196078438f) < 1e-7f && zero == 153);
  assert_memory_equal(made, wanted, sizeof made);
}

UNIT_TEST(test_what_has_no_integer_product) {
  rondo_integer_product_options options = {RONDO_INTEGER_PRODUCT_OPTIONS_INIT};
  rondo_program *program = test_new_program();
  const rondo_value a = input(program, "a", RONDO_I8, (size_t[]){2, 3}, 2);
  const rondo_value b = input(program, "b", RONDO_U8, (size_t[]){4, 5}, 2);
  const rondo_value f = input(program, "f", RONDO_F32, (size_t[]){3, 2}, 2);
  rondo_value y;
  assert_error(rondo_op_matmul_integer(program, a, b, NULL, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_matmul_integer(program, a, f, NULL, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  options.result_type = RONDO_F16;
  assert_error(rondo_op_matmul_integer(program, a, b, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  options.result_type = RONDO_F32;
  options.activation = RONDO_ACTIVATION_GELU;
  assert_error(rondo_op_matmul_integer(program, a, a, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  options.activation = RONDO_ACTIVATION_NONE;
  options.a_scale = -1;
  assert_error(rondo_op_matmul_integer(program, a, a, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  options.a_scale = 1;
  options.transpose_b = true;
  assert_error(rondo_op_matmul_integer(program, a, a, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS);
  options.result_type = RONDO_U8;
  assert_error(rondo_op_conv_integer(program, a, a, NULL, &options, &y), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_BAD_OPTIONS);
  assert_error(rondo_op_add_integer(program, a, b, NULL, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_add_integer(program, a, f, NULL, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  assert_error(rondo_op_conv_integer(program, a, b, NULL, NULL, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_quantize_linear(program, a, f, (rondo_value){0}, NULL, &y), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_TYPE);
  assert_error(rondo_op_quantize_linear(program, f, f, (rondo_value){0}, NULL, &y), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_SHAPE);
  assert_int_equal(y.id, 0);
  rondo_program_destroy(program);
}

int main(void) { return test_run_registered(); }
