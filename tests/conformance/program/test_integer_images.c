/* SPDX-License-Identifier: MIT
 * Images of 8-bit integers with their channels last (ON-5): networks of integer convolutions, sums, maxima and
 * concatenations have the bits that they have with plain images, with weights that are packed states or not, with any
 * workers; the explanation counts the convolutions. CUDA keeps plain images.
 */
#include <rondo/quantized.h>

#include <stdio.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

#define DIMS(...) (const size_t[]){__VA_ARGS__}, sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t)
enum { MOST_BYTES = 1 << 17 };

/* A network under construction. Values have names by their number. */
typedef struct network {
  rondo_program *program;
  uint32_t values;
} network;

typedef struct network_case {
  const char *what;
  uint32_t count; /* of convolutions whose results have their channels last */
  rondo_value (*build)(network *n);
} network_case;

/* Building --------------------------------------------------------------------------------------------------------- */

static rondo_value named(network *n, bool is_state, rondo_type type, const size_t *dims, size_t rank) {
  const rondo_state_options frozen = {RONDO_STATE_OPTIONS_INIT, .frozen = true};
  char name[16];
  rondo_value value;
  (void)snprintf(name, sizeof name, "v%u", n->values++);
  assert_ok(is_state ? rondo_program_state_with(n->program, name, type, dims, rank, &frozen, &value)
                     : rondo_program_input(n->program, name, type, dims, rank, &value));
  return value;
}

typedef struct layer {
  size_t in, out, kernel, stride, padding, dilation;
  rondo_type x, weight, result; /* 0: U8, I8, U8 */
  bool is_input, has_zeros, has_floats;
} layer;

static rondo_value conv(network *n, rondo_value x, layer l) {
  const rondo_type of_x = l.x == 0 ? RONDO_U8 : l.x, of_weight = l.weight == 0 ? RONDO_I8 : l.weight;
  const rondo_type of_result = l.result == 0 ? RONDO_U8 : l.result;
  const rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT, .stride = {l.stride, l.stride},
                                      .padding = {l.padding, l.padding}, .dilation = {l.dilation, l.dilation}};
  const rondo_integer_product_options products = {
      RONDO_INTEGER_PRODUCT_OPTIONS_INIT,
      .result_type = of_result,
      .a_zero = named(n, true, of_x, NULL, 0),
      .b_zero = l.has_zeros ? named(n, true, of_weight, DIMS(l.out)) : (rondo_value){0},
      .bias = named(n, true, l.has_floats ? RONDO_F32 : RONDO_I32, DIMS(l.out)),
      .scale = named(n, true, RONDO_F32, DIMS(l.out)),
      .result_zero = named(n, true, of_result, NULL, 0),
      .activation = l.padding > 0 ? RONDO_ACTIVATION_RELU : RONDO_ACTIVATION_NONE,
      .a_scale = 0.02f,
      .result_scale = 0.7f};
  const rondo_value weight = named(n, !l.is_input, of_weight, DIMS(l.out, l.in, l.kernel, l.kernel));
  assert_ok(rondo_op_conv_integer(n->program, x, weight, &options, &products, &x));
  return x;
}

static rondo_value add(network *n, rondo_value a, rondo_value b) {
  const rondo_add_integer_options options = {RONDO_ADD_INTEGER_OPTIONS_INIT, .a_scale = 0.5f, .b_scale = 0.25f,
                                             .result_scale = 0.75f};
  assert_ok(rondo_op_add_integer(n->program, a, b, &options, &a));
  return a;
}

/* Maxima of bytes by the pattern "quantized". */
static rondo_value maxima(network *n, rondo_value x) {
  const rondo_pooling_options options = {RONDO_POOLING_OPTIONS_INIT, .kernel = {3, 3}, .stride = {2, 2},
                                         .padding = {1, 1}};
  rondo_value scale;
  assert_ok(rondo_op_full(n->program, RONDO_F32, NULL, 0, 0.5, &scale));
  assert_ok(rondo_op_dequantize_linear(n->program, x, scale, (rondo_value){0}, NULL, &x));
  assert_ok(rondo_op_max_pool(n->program, x, &options, &x, NULL));
  assert_ok(rondo_op_quantize_linear(n->program, x, scale, (rondo_value){0}, NULL, &x));
  return x;
}

static const layer first = {.in = 3, .out = 16, .kernel = 7, .stride = 2, .padding = 3},
                   middle = {.in = 16, .out = 16, .kernel = 3, .padding = 1},
                   narrow = {.in = 16, .out = 24, .kernel = 1}, wide = {.in = 24, .out = 16, .kernel = 1};

static rondo_value residual(network *n) {
  const rondo_value x = maxima(n, conv(n, named(n, false, RONDO_U8, DIMS(2, 3, 23, 19)), first));
  const rondo_value y = conv(n, conv(n, conv(n, x, middle), narrow), wide);
  return conv(n, add(n, x, y),
              (layer){.in = 16, .out = 64, .kernel = 3, .stride = 2, .padding = 1, .has_floats = true});
}

static rondo_value with_zeros(network *n) {
  const rondo_value x = named(n, false, RONDO_I8, DIMS(3, 16, 9, 7));
  const rondo_value y = conv(
      n, x,
      (layer){.in = 16, .out = 20, .kernel = 3, .padding = 1, .x = RONDO_I8, .result = RONDO_I8, .has_zeros = true});
  return conv(n, y, (layer){.in = 20, .out = 132, .kernel = 1, .x = RONDO_I8, .weight = RONDO_U8, .has_zeros = true});
}

static rondo_value with_inputs(network *n) {
  const rondo_value x = named(n, false, RONDO_U8, DIMS(1, 4, 11, 12));
  const rondo_value y =
      conv(n, x, (layer){.in = 4, .out = 28, .kernel = 3, .padding = 2, .dilation = 2, .is_input = true});
  return conv(n, y, (layer){.in = 28, .out = 16, .kernel = 2, .stride = 2, .is_input = true, .result = RONDO_I8});
}

static rondo_value concatenated(network *n) {
  const rondo_value x = conv(n, named(n, false, RONDO_U8, DIMS(2, 16, 8, 9)), middle);
  const rondo_value parts[] = {conv(n, x, narrow), conv(n, x, middle)};
  rondo_value y;
  assert_ok(rondo_op_concat(n->program, parts, 2, 1, &y));
  return conv(n, y, (layer){.in = 40, .out = 8, .kernel = 3});
}

/* The largest strides: the distance between windows is no size. */
static rondo_value with_largest_strides(network *n) {
  const rondo_value x = conv(n, named(n, false, RONDO_U8, DIMS(1, 16, 8, 9)), middle);
  return conv(n, x, (layer){.in = 16, .out = 32, .kernel = 3, .stride = (size_t)1 << 30});
}

/* Channels that are no whole quads, and groups, stay plain. */
static rondo_value of_odd_channels(network *n) {
  const rondo_value x =
      conv(n, named(n, false, RONDO_U8, DIMS(1, 8, 6, 6)), (layer){.in = 8, .out = 6, .kernel = 3, .padding = 1});
  return conv(n, x, (layer){.in = 6, .out = 7, .kernel = 1});
}

static const network_case cases[] = {{"residual network", 5, residual},
                                     {"zeros of weights", 2, with_zeros},
                                     {"weights that are inputs", 2, with_inputs},
                                     {"concatenation", 4, concatenated},
                                     {"the largest strides", 2, with_largest_strides},
                                     {"odd channels", 0, of_odd_channels}};
enum { CASES = sizeof cases / sizeof *cases };

static network build(const network_case *of) {
  network n = {.program = test_new_program()};
  assert_ok(rondo_program_output(n.program, "y", of->build(&n)));
  return n;
}

/* Running ---------------------------------------------------------------------------------------------------------- */

static void write_value(rondo_compiled *compiled, const rondo_compiled_value *value, uint64_t *seed) {
  static unsigned char bytes[MOST_BYTES];
  float *floats = (float *)(void *)bytes;
  int32_t *integers = (int32_t *)(void *)bytes;
  assert_true(value->bytes <= sizeof bytes);
  for (size_t i = 0; i < value->bytes; i++) bytes[i] = (unsigned char)test_random_below(seed, 256);
  for (size_t i = 0; value->type == RONDO_F32 && i < value->bytes / sizeof *floats; i++)
    floats[i] = (float)(1 + test_random_below(seed, 20)) * 1e-2f;
  for (size_t i = 0; value->type == RONDO_I32 && i < value->bytes / sizeof *integers; i++)
    integers[i] = (int32_t)test_random_below(seed, 5000) - 2500;
  assert_ok(rondo_compiled_write(compiled, value->name, bytes, value->bytes));
}

/* Runs with random inputs and states; returns the bytes of the output. */
static size_t run(rondo_compiled *compiled, const network *n, unsigned char *y) {
  uint64_t seed = 6;
  for (uint32_t i = 0; i < n->values; i++) {
    char name[16];
    rondo_compiled_value value = {.struct_size = sizeof value};
    (void)snprintf(name, sizeof name, "v%u", i);
    for (size_t k = 0; rondo_compiled_get_value(compiled, k, &value) == RONDO_OK; k++)
      if (strcmp(value.name, name) == 0) write_value(compiled, &value, &seed);
  }
  const rondo_compiled_value out = test_compiled_value(compiled, 'o', "y");
  assert_true(out.bytes <= MOST_BYTES);
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", y, out.bytes));
  return out.bytes;
}

static uint32_t count_of(const rondo_compiled *compiled) {
  rondo_compiled_pattern pattern = {.struct_size = sizeof pattern};
  for (size_t i = 0; rondo_compiled_get_pattern(compiled, i, &pattern) == RONDO_OK; i++)
    if (strcmp(pattern.name, "blocked_images") == 0) return pattern.count;
  return 0;
}

static void assert_varied(const network_case *of, const unsigned char *y, size_t bytes) {
  size_t others = 0;
  for (size_t i = 0; i < bytes; i++) others += y[i] != y[0];
  if (others < bytes / 8) fail_msg("%s: %zu of %zu results are equal", of->what, bytes - others, bytes);
}

/* Tests ------------------------------------------------------------------------------------------------------------ */

TEST(test_on5_integer_images_have_the_bits_of_plain_ones) {
  static unsigned char y[MOST_BYTES], of_plain[MOST_BYTES];
  const rondo_compile_options off = {RONDO_COMPILE_OPTIONS_INIT, .without_patterns = "blocked_images"};
  rondo_device_info info = {.struct_size = sizeof info};
  assert_ok(rondo_device_get_info(t->device, &info));
  for (size_t i = 0; i < CASES; i++) {
    const network n = build(&cases[i]);
    rondo_compiled *compiled = test_compile_kept(n.program, t->device, NULL);
    rondo_compiled *plain = test_compile(n.program, t->device, &off);
    const uint32_t count = count_of(compiled), expected = info.cuda ? 0 : cases[i].count;
    if (count != expected) fail_msg("%s: %u convolutions have blocks, not %u", cases[i].what, count, expected);
    const size_t bytes = run(compiled, &n, y);
    assert_int_equal(run(plain, &n, of_plain), bytes);
    if (memcmp(y, of_plain, bytes) != 0) fail_msg("%s: other bits", cases[i].what);
    assert_varied(&cases[i], y, bytes);
  }
}

static size_t run_with_workers(const network_case *of, uint32_t workers, unsigned char *y) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = workers};
  rondo_device *device = NULL;
  const network n = build(of);
  assert_ok(rondo_device_open(test_device_name(), &options, &device));
  rondo_compiled *compiled = test_compile(n.program, device, NULL);
  const size_t bytes = run(compiled, &n, y);
  assert_ok(rondo_compiled_destroy(compiled));
  assert_ok(rondo_device_close(device));
  return bytes;
}

TEST(test_on5_integer_images_have_the_same_bits_with_any_workers) {
  static unsigned char one[MOST_BYTES], three[MOST_BYTES];
  (void)t;
  if (!test_device_is("cpu")) skip();
  for (size_t i = 0; i < CASES; i++) {
    const size_t bytes = run_with_workers(&cases[i], 1, one);
    assert_int_equal(run_with_workers(&cases[i], 3, three), bytes);
    if (memcmp(one, three, bytes) != 0) fail_msg("%s: other bits with three workers", cases[i].what);
  }
}

int main(void) { return test_run_registered(); }
