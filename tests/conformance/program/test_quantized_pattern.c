/* SPDX-License-Identifier: MIT
 * The pattern "quantized" (ON-5): products and convolutions of dequantised numbers, and quantised sums, become integer
 * operators on a CPU. Their results are those of the operators as written, but for a step of a quantised result; what
 * only looks like the pattern stays as it is.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <rondo/quantized.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

static const rondo_value none;

#define DIMS(...) (const size_t[]){__VA_ARGS__}, sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t)
#define MOST_BYTES 65536

typedef struct pattern_case {
  const char *what;
  uint32_t count; /* how often the pattern is replaced on a CPU */
  rondo_value (*build)(rondo_program *program);
} pattern_case;

/* Building --------------------------------------------------------------------------------------------------------- */

static rondo_value named(rondo_program *program, char kind, const char *name, rondo_type type, const size_t *dims,
                         size_t rank) {
  const rondo_state_options frozen = {RONDO_STATE_OPTIONS_INIT, .frozen = true};
  rondo_value value;
  assert_ok(kind == 'i' ? rondo_program_input(program, name, type, dims, rank, &value)
                        : rondo_program_state_with(program, name, type, dims, rank, &frozen, &value));
  return value;
}

static rondo_value number(rondo_program *program, double x) {
  rondo_value value;
  assert_ok(rondo_op_full(program, RONDO_F32, NULL, 0, x, &value));
  return value;
}

static rondo_value dequantized(rondo_program *program, rondo_value bytes, rondo_value scale, rondo_value zero,
                               size_t dimension) {
  const rondo_quantize_linear_options options = {RONDO_QUANTIZE_LINEAR_OPTIONS_INIT, .dimension = dimension};
  assert_ok(rondo_op_dequantize_linear(program, bytes, scale, zero, &options, &bytes));
  return bytes;
}

static rondo_value quantized(rondo_program *program, rondo_value x, double scale, rondo_type type) {
  const rondo_value zero = named(program, 's', "result zero", type, NULL, 0);
  assert_ok(rondo_op_quantize_linear(program, x, number(program, scale), zero, NULL, &x));
  return x;
}

static rondo_value image(rondo_program *program) {
  return dequantized(program, named(program, 'i', "x", RONDO_U8, DIMS(2, 6, 9, 7)), number(program, 0.02),
                     named(program, 's', "x zero", RONDO_U8, NULL, 0), 0);
}

static rondo_value conv(rondo_program *program, rondo_value x, rondo_value weight, rondo_value bias) {
  const rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT, .bias = bias, .stride = {2, 1}, .padding = {1, 1},
                                      .groups = 2};
  assert_ok(rondo_op_conv(program, x, weight, &options, &x));
  return x;
}

static rondo_value filters(rondo_program *program, rondo_type type, bool has_zeros) {
  return dequantized(program, named(program, 's', "weight", type, DIMS(8, 3, 3, 3)),
                     named(program, 's', "scale", RONDO_F32, DIMS(8)),
                     has_zeros ? named(program, 's', "zeros", type, DIMS(8)) : none, 0);
}

static rondo_value quantized_conv(rondo_program *program) {
  const rondo_value bias = named(program, 's', "bias", RONDO_F32, DIMS(8));
  return quantized(program, conv(program, image(program), filters(program, RONDO_I8, false), bias), 0.05, RONDO_U8);
}

static rondo_value quantized_conv_with_relu(rondo_program *program) {
  rondo_value y = conv(program, image(program), filters(program, RONDO_U8, true), none);
  assert_ok(rondo_op_relu(program, y, &y));
  return quantized(program, y, 0.05, RONDO_I8);
}

static rondo_value conv_of_floats(rondo_program *program) {
  return conv(program, image(program), filters(program, RONDO_I8, true), none);
}

/* Four input channels of a group: the weight becomes a packed state. */
static rondo_value quantized_conv_of_quads(rondo_program *program) {
  const rondo_value x = dequantized(program, named(program, 'i', "x", RONDO_U8, DIMS(2, 8, 9, 7)),
                                    number(program, 0.02), named(program, 's', "x zero", RONDO_U8, NULL, 0), 0);
  const rondo_value weight =
      dequantized(program, named(program, 's', "weight", RONDO_I8, DIMS(8, 4, 3, 3)),
                  named(program, 's', "scale", RONDO_F32, DIMS(8)), named(program, 's', "zeros", RONDO_I8, DIMS(8)), 0);
  return quantized(program, conv(program, x, weight, none), 0.05, RONDO_U8);
}

/* Maxima between numbers of this type, of one zero, whose scales are 0.02 and `scale`. */
static rondo_value quantized_maxima(rondo_program *program, rondo_type type, double scale) {
  const rondo_pooling_options options = {RONDO_POOLING_OPTIONS_INIT, .kernel = {3, 2}, .stride = {2, 1},
                                         .padding = {1, 1}};
  const rondo_value zero = named(program, 's', "zero", type, NULL, 0);
  rondo_value y =
      dequantized(program, named(program, 'i', "x", type, DIMS(2, 6, 9, 37)), number(program, 0.02), zero, 0);
  assert_ok(rondo_op_max_pool(program, y, &options, &y, NULL));
  assert_ok(rondo_op_quantize_linear(program, y, number(program, scale), zero, NULL, &y));
  return y;
}

static rondo_value maxima_of_u8(rondo_program *program) { return quantized_maxima(program, RONDO_U8, 0.02); }
static rondo_value maxima_of_i8(rondo_program *program) { return quantized_maxima(program, RONDO_I8, 0.02); }
static rondo_value maxima_of_two_scales(rondo_program *program) { return quantized_maxima(program, RONDO_U8, 0.03); }

/* The scale has a dimension more than the bytes, which the maxima are of. */
static rondo_value maxima_with_another_dimension(rondo_program *program) {
  const rondo_pooling_options options = {RONDO_POOLING_OPTIONS_INIT, .kernel = {3, 2}};
  rondo_value x = named(program, 'i', "x", RONDO_U8, DIMS(8, 6, 6)), scale;
  assert_ok(rondo_op_full(program, RONDO_F32, DIMS(1, 1, 1, 1), 0.02, &scale));
  assert_ok(rondo_op_cast(program, x, RONDO_F32, &x));
  assert_ok(rondo_op_mul(program, x, scale, &x));
  assert_ok(rondo_op_max_pool(program, x, &options, &x, NULL));
  assert_ok(rondo_op_quantize_linear(program, x, number(program, 0.02), none, NULL, &x));
  return x;
}

/* The weight is of the input channels' scales. */
static rondo_value conv_of_other_scales(rondo_program *program) {
  const rondo_value weight = dequantized(program, named(program, 's', "weight", RONDO_I8, DIMS(8, 3, 3, 3)),
                                         named(program, 's', "scale", RONDO_F32, DIMS(3)), none, 1);
  return conv(program, image(program), weight, none);
}

static rondo_value rows(rondo_program *program) {
  return dequantized(program, named(program, 'i', "x", RONDO_I8, DIMS(3, 5, 37)), number(program, 0.02),
                     named(program, 's', "x zero", RONDO_I8, NULL, 0), 0);
}

static rondo_value product(rondo_program *program, bool transposes) {
  const rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT, .transpose_b = transposes};
  const rondo_value bytes = transposes ? named(program, 's', "weight", RONDO_I8, DIMS(11, 37))
                                       : named(program, 's', "weight", RONDO_I8, DIMS(37, 11));
  const rondo_value weight = dequantized(program, bytes, named(program, 's', "scale", RONDO_F32, DIMS(11)),
                                         named(program, 's', "zeros", RONDO_I8, DIMS(11)), transposes ? 0 : 1);
  rondo_value y;
  assert_ok(rondo_op_matmul_with(program, rows(program), weight, &options, &y));
  return y;
}

static rondo_value transposed_product(rondo_program *program) { return product(program, true); }

/* The bias is another operator at first. */
static rondo_value quantized_product(rondo_program *program) {
  rondo_value y = product(program, false);
  assert_ok(rondo_op_add(program, y, named(program, 's', "bias", RONDO_F32, DIMS(11)), &y));
  return quantized(program, y, 0.05, RONDO_U8);
}

/* Of two inputs: there is no weight to read as integers. */
static rondo_value product_of_inputs(rondo_program *program) {
  const rondo_value b =
      dequantized(program, named(program, 'i', "b", RONDO_I8, DIMS(37, 11)), number(program, 0.02), none, 0);
  rondo_value y;
  assert_ok(rondo_op_matmul(program, rows(program), b, none, &y));
  return y;
}

static rondo_value sum(rondo_program *program, bool has_relu) {
  const rondo_value b =
      dequantized(program, named(program, 'i', "b", RONDO_I8, DIMS(2, 6, 9, 7)), number(program, 0.03), none, 0);
  rondo_value y;
  assert_ok(rondo_op_add(program, image(program), b, &y));
  if (has_relu) assert_ok(rondo_op_relu(program, y, &y));
  return quantized(program, y, 0.04, RONDO_U8);
}
static rondo_value quantized_sum(rondo_program *program) { return sum(program, false); }
static rondo_value quantized_sum_with_relu(rondo_program *program) { return sum(program, true); }

/* What dequantises x has another reader, and stays for it. */
static rondo_value conv_and_its_input(rondo_program *program) {
  const rondo_value x = image(program);
  rondo_value y;
  assert_ok(rondo_op_mean(program, x, NULL, 0, false, &y));
  assert_ok(rondo_op_add(program, conv(program, x, filters(program, RONDO_I8, false), none), y, &y));
  return y;
}

static const pattern_case cases[] = {
    {"quantised convolution", 1, quantized_conv},
    {"quantised convolution with relu", 1, quantized_conv_with_relu},
    {"quantised convolution of quads", 1, quantized_conv_of_quads},
    {"maxima of u8", 1, maxima_of_u8},
    {"maxima of i8", 1, maxima_of_i8},
    {"maxima of two scales", 0, maxima_of_two_scales},
    {"maxima with another dimension", 0, maxima_with_another_dimension},
    {"convolution", 1, conv_of_floats},
    {"convolution with scales of inputs", 0, conv_of_other_scales},
    {"product with a transposed weight", 1, transposed_product},
    {"quantised product", 1, quantized_product},
    {"product of inputs", 0, product_of_inputs},
    {"quantised sum", 1, quantized_sum},
    {"quantised sum with relu", 1, quantized_sum_with_relu},
    {"convolution and its input", 1, conv_and_its_input},
};

/* Comparing -------------------------------------------------------------------------------------------------------- */

static uint32_t count_of(const rondo_compiled *compiled) {
  rondo_compiled_pattern pattern = {.struct_size = sizeof pattern};
  for (size_t i = 0; rondo_compiled_get_pattern(compiled, i, &pattern) == RONDO_OK; i++)
    if (strcmp(pattern.name, "quantized") == 0) return pattern.count;
  return 0;
}

static void write_value(rondo_compiled *compiled, const rondo_compiled_value *value, uint64_t *seed) {
  static unsigned char bytes[MOST_BYTES];
  float *floats = (float *)(void *)bytes;
  assert_true(value->bytes <= sizeof bytes);
  for (size_t i = 0; i < value->bytes; i++) bytes[i] = (unsigned char)test_random_below(seed, 256);
  for (size_t i = 0; value->type == RONDO_F32 && i < value->bytes / sizeof *floats; i++)
    floats[i] = (float)(1 + test_random_below(seed, 20)) * 1e-3f;
  assert_ok(rondo_compiled_write(compiled, value->name, bytes, value->bytes));
}

/* Runs with random inputs and states. */
static rondo_compiled_value run(rondo_compiled *compiled, void *y) {
  static const char *const names[] = {"x", "b", "x zero", "weight", "scale", "zeros", "bias", "result zero"};
  uint64_t seed = 5;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    rondo_compiled_value value = {.struct_size = sizeof value};
    for (size_t k = 0; rondo_compiled_get_value(compiled, k, &value) == RONDO_OK; k++)
      if (strcmp(value.name, names[i]) == 0) write_value(compiled, &value, &seed);
  }
  const rondo_compiled_value out = test_compiled_value(compiled, 'o', "y");
  assert_true(out.bytes <= MOST_BYTES);
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", y, out.bytes));
  return out;
}

static double number_at(rondo_type type, const void *elements, size_t index) {
  return type == RONDO_F32  ? (double)((const float *)elements)[index]
         : type == RONDO_U8 ? ((const uint8_t *)elements)[index]
                            : ((const int8_t *)elements)[index];
}

static void compare(test_fixture *t, const pattern_case *of) {
  static unsigned char y[MOST_BYTES], plain[MOST_BYTES];
  const rondo_compile_options off = {RONDO_COMPILE_OPTIONS_INIT, .without_patterns = "quantized"};
  rondo_device_info info = {.struct_size = sizeof info};
  rondo_program *program = test_new_program();
  assert_ok(rondo_device_get_info(t->device, &info));
  assert_ok(rondo_program_output(program, "y", of->build(program)));
  rondo_compiled *compiled = test_compile_kept(program, t->device, NULL);
  if (count_of(compiled) != (info.cuda ? 0 : of->count))
    fail_msg("%s was replaced %u times, not %u", of->what, count_of(compiled), of->count);
  const rondo_compiled_value out = run(compiled, y);
  rondo_compiled *as_written = test_compile(program, t->device, &off);
  assert_int_equal(count_of(as_written), 0);
  (void)run(as_written, plain);
  const bool is_float = out.type == RONDO_F32;
  double largest = 0;
  for (size_t i = 0; i < out.bytes / rondo_type_bytes(out.type); i++)
    largest = fmax(largest, fabs(number_at(out.type, plain, i)));
  assert_true(largest > 0);
  for (size_t i = 0; i < out.bytes / rondo_type_bytes(out.type); i++) {
    const double a = number_at(out.type, y, i), b = number_at(out.type, plain, i);
    if (!(fabs(a - b) <= (is_float ? 1e-5 * largest : 1))) fail_msg("%s: element %zu is %g, not %g", of->what, i, a, b);
  }
}

TEST(test_on5_quantised_operators_are_replaced) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) compare(t, &cases[i]);
}

int main(void) { return test_run_registered(); }
