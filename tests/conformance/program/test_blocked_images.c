/* SPDX-License-Identifier: MIT
 * Images in blocks of channels between operators (ON-5): networks of each kind of layer have the values that they have
 * with plain images, whatever oneDNN or, in F16 with one block, cuDNN makes of them; the bits do not depend on the
 * workers or on recording; the explanation counts the convolutions. With AVX-512, and on CUDA, a block has all
 * channels. Other types, and other devices or those without the library, keep plain images.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

enum { MOST_OUTPUTS = 3 };

/* A network under construction. */
typedef struct network {
  rondo_program *program;
  rondo_type type; /* F32 or F16 */
  uint32_t inputs, outputs;
} network;

typedef struct network_case {
  const char *what;
  uint32_t count, last, count_f16; /* of convolutions whose results have blocks: of F32 by oneDNN; the same where a
                                      block has all channels; of F16 by cuDNN */
  void (*build)(network *n);
} network_case;

/* Building --------------------------------------------------------------------------------------------------------- */

#define DIMS(...) (const size_t[]){__VA_ARGS__}, sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t)

static rondo_value input_of_f32(network *n, const size_t *dims, size_t rank) {
  char name[16];
  rondo_value value;
  (void)snprintf(name, sizeof name, "x%u", n->inputs++);
  assert_ok(rondo_program_input(n->program, name, RONDO_F32, dims, rank, &value));
  return value;
}

static rondo_value input(network *n, const size_t *dims, size_t rank) {
  rondo_value value = input_of_f32(n, dims, rank);
  if (n->type != RONDO_F32) assert_ok(rondo_op_cast(n->program, value, n->type, &value));
  return value;
}

static void output(network *n, rondo_value value) {
  char name[16];
  assert_true(n->outputs < MOST_OUTPUTS);
  if (n->type != RONDO_F32) assert_ok(rondo_op_cast(n->program, value, RONDO_F32, &value));
  (void)snprintf(name, sizeof name, "y%u", n->outputs++);
  assert_ok(rondo_program_output(n->program, name, value));
}

typedef struct layer {
  size_t in, out, kernel, stride, padding, dilation;
  uint32_t groups;
  bool without_bias;
} layer;

static rondo_value conv(network *n, rondo_value x, layer l) {
  const size_t groups = l.groups == 0 ? 1 : l.groups;
  const rondo_value weight = input(n, DIMS(l.out, l.in / groups, l.kernel, l.kernel));
  const rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT,
                                      .groups = l.groups,
                                      .stride = {l.stride, l.stride},
                                      .padding = {l.padding, l.padding},
                                      .dilation = {l.dilation, l.dilation},
                                      .bias = l.without_bias ? (rondo_value){0} : input(n, DIMS(l.out))};
  assert_ok(rondo_op_conv(n->program, x, weight, &options, &x));
  return x;
}

static rondo_value relu(network *n, rondo_value x) {
  assert_ok(rondo_op_relu(n->program, x, &x));
  return x;
}

static rondo_value add(network *n, rondo_value a, rondo_value b) {
  assert_ok(rondo_op_add(n->program, a, b, &a));
  return a;
}

static rondo_value mul(network *n, rondo_value a, rondo_value b) {
  assert_ok(rondo_op_mul(n->program, a, b, &a));
  return a;
}

static rondo_value concat(network *n, const rondo_value *parts, size_t count, size_t dimension) {
  rondo_value whole;
  assert_ok(rondo_op_concat(n->program, parts, count, dimension, &whole));
  return whole;
}

static rondo_value mean(network *n, rondo_value x, bool keeps) {
  assert_ok(rondo_op_mean(n->program, x, (const size_t[]){2, 3}, 2, keeps, &x));
  return x;
}

static rondo_value norm(network *n, rondo_value x, size_t channels, bool has_scale) {
  rondo_batch_norm_options options = {RONDO_BATCH_NORM_OPTIONS_INIT, .inference = true, .epsilon = 1e-2f};
  if (has_scale) options.scale = input_of_f32(n, DIMS(channels));
  if (has_scale) options.shift = input_of_f32(n, DIMS(channels));
  options.running_mean = input_of_f32(n, DIMS(channels));
  assert_ok(rondo_op_abs(n->program, input_of_f32(n, DIMS(channels)), &options.running_variance));
  assert_ok(rondo_op_batch_norm(n->program, x, &options, &x));
  return x;
}

/* A first layer, whose image has no blocks, and its relu. */
static rondo_value begin(network *n, size_t images, size_t height, size_t width) {
  return relu(n, conv(n, input(n, DIMS(images, 3, height, width)), (layer){3, 32, 3, .padding = 1}));
}

static const layer middle = {32, 32, 3, .padding = 1};

/* Networks --------------------------------------------------------------------------------------------------------- */

static void two_layers(network *n) {
  output(n, relu(n, conv(n, begin(n, 2, 17, 13), (layer){32, 48, 3, .stride = 2, .padding = 1})));
}

static void many_images(network *n) { output(n, conv(n, begin(n, 11, 9, 10), (layer){32, 160, 3, .padding = 1})); }

static void one_layer(network *n) { output(n, relu(n, conv(n, input(n, DIMS(2, 32, 11, 9)), middle))); }

static void small_layers(network *n) {
  const rondo_value x = conv(n, input(n, DIMS(1, 16, 3, 3)), (layer){16, 16, .kernel = 1});
  output(n, conv(n, x, (layer){16, 16, .kernel = 1}));
}

static void pointwise_layers(network *n) {
  const rondo_value x = relu(n, conv(n, begin(n, 1, 19, 15), (layer){32, 96, .kernel = 1}));
  output(n, conv(n, x, (layer){96, 64, 1, .stride = 2, .without_bias = true}));
}

/* The window of a corner lies in the padding. */
static void layers_with_wide_padding(network *n) {
  const rondo_value x = relu(n, conv(n, begin(n, 2, 9, 8), (layer){32, 48, 1, .padding = 1}));
  output(n, relu(n, add(n, conv(n, x, (layer){48, 48, 3, .stride = 2, .padding = 3}),
                        conv(n, x, (layer){48, 48, 1, .stride = 2, .padding = 2}))));
}

static void dilated_layers(network *n) {
  const rondo_value x = begin(n, 3, 20, 21);
  output(n, relu(n, conv(n, x, (layer){32, 64, 3, .stride = 2, .padding = 2, .dilation = 2})));
}

static void layers_of_groups(network *n) {
  const rondo_value x = relu(n, conv(n, begin(n, 2, 15, 14), (layer){32, 64, 3, .padding = 1, .groups = 2}));
  const rondo_value y = conv(n, x, (layer){64, 64, 5, .padding = 2, .groups = 64});
  output(n, conv(n, y, (layer){64, 32, .kernel = 1}));
}

/* Groups of 10 channels. */
static void layers_of_odd_groups(network *n) {
  const rondo_value x = conv(n, begin(n, 2, 15, 14), (layer){32, 80, 3, .padding = 1});
  output(n, conv(n, relu(n, x), (layer){80, 80, 3, .padding = 1, .groups = 8}));
}

/* 20 channels have no blocks. */
static void layers_of_odd_channels(network *n) {
  const rondo_value x = relu(n, conv(n, begin(n, 2, 14, 13), (layer){32, 20, 3, .padding = 1}));
  const rondo_value y = conv(n, relu(n, conv(n, x, (layer){20, 32, 3, .padding = 1})), middle);
  output(n, y);
}

static void residual_layers(network *n) {
  const rondo_value x = begin(n, 2, 13, 12), y = conv(n, relu(n, conv(n, x, middle)), middle);
  output(n, relu(n, add(n, conv(n, relu(n, add(n, x, y)), middle), x)));
}

/* The sum is read by another operator too, and the image from outside by two layers. */
static void layers_that_share(network *n) {
  const rondo_value x = input(n, DIMS(2, 32, 13, 11)), a = conv(n, x, middle), b = conv(n, x, middle);
  const rondo_value sum = add(n, add(n, a, x), b);
  rondo_value flat;
  output(n, conv(n, sum, middle));
  assert_ok(rondo_op_reshape(n->program, sum, DIMS(2, 32 * 13 * 11), &flat));
  output(n, flat);
}

static void output_in_the_middle(network *n) {
  const rondo_value x = begin(n, 2, 13, 12), y = relu(n, conv(n, x, middle));
  output(n, y);
  output(n, conv(n, y, middle));
}

static void broadcast_operands(network *n) {
  rondo_value x = conv(n, begin(n, 2, 13, 12), middle);
  x = mul(n, x, input(n, DIMS(32, 1, 1)));
  x = add(n, input(n, DIMS(1, 32, 1, 1)), x);
  x = mul(n, x, input(n, DIMS(2, 32, 1, 1)));
  x = add(n, x, input(n, DIMS(1, 1, 13, 12)));
  x = mul(n, x, input(n, DIMS(13, 1)));
  x = add(n, x, input(n, DIMS(1, 1, 1, 1)));
  assert_ok(rondo_op_clamp(n->program, x, -1, 2, &x));
  output(n, conv(n, x, middle));
}

/* An operand that has all of its sizes but that of the images keeps the sum plain. */
static void broadcast_image(network *n) {
  const rondo_value x = conv(n, begin(n, 2, 13, 12), middle), y = input(n, DIMS(1, 32, 13, 12));
  output(n, conv(n, add(n, x, y), middle));
}

static void pooled(network *n, const rondo_pooling_options *max, const rondo_pooling_options *avg) {
  rondo_value x = begin(n, 2, 23, 21);
  assert_ok(rondo_op_max_pool(n->program, x, max, &x, NULL));
  x = conv(n, x, middle);
  assert_ok(rondo_op_avg_pool(n->program, x, avg, &x));
  output(n, conv(n, x, (layer){32, 64, 3, .padding = 1}));
}

static void pooling_layers(network *n) {
  const rondo_pooling_options max = {RONDO_POOLING_OPTIONS_INIT, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
  const rondo_pooling_options avg = {RONDO_POOLING_OPTIONS_INIT, .kernel = {3, 2}, .stride = {1, 1}, .padding = {1, 1}};
  pooled(n, &max, &avg);
}

static void other_pooling_layers(network *n) {
  const rondo_pooling_options max = {RONDO_POOLING_OPTIONS_INIT, .kernel = {2, 3}, .stride = {2, 1}, .dilation = {2, 1},
                                     .ceil_mode = true};
  const rondo_pooling_options avg = {RONDO_POOLING_OPTIONS_INIT, .kernel = {3, 3},        .stride = {1, 1},
                                     .padding_before = {1, 0},   .padding_after = {2, 1}, .counts_padding = true};
  pooled(n, &max, &avg);
}

/* The places of maxima count elements of plain images. */
static void places_of_maxima(network *n) {
  const rondo_pooling_options max = {RONDO_POOLING_OPTIONS_INIT, .kernel = {2, 2}};
  rondo_value x = conv(n, begin(n, 2, 16, 14), middle), places;
  assert_ok(rondo_op_max_pool(n->program, x, &max, &x, &places));
  assert_ok(rondo_op_cast(n->program, places, n->type, &places));
  output(n, places);
  output(n, conv(n, x, middle));
}

static void concat_layers(network *n) {
  const rondo_value x = begin(n, 2, 13, 14);
  const rondo_value parts[] = {conv(n, x, middle), x, relu(n, conv(n, x, (layer){32, 16, .kernel = 1}))};
  output(n, conv(n, concat(n, parts, 3, 1), (layer){80, 48, .kernel = 1}));
}

static void concat_of_mixed_parts(network *n) {
  const rondo_value x = begin(n, 2, 13, 14), y = conv(n, x, middle);
  const rondo_value parts[] = {y, relu(n, conv(n, x, (layer){32, 20, .kernel = 1}))};
  output(n, conv(n, concat(n, parts, 2, 1), (layer){52, 48, .kernel = 3}));
}

static void concat_of_columns(network *n) {
  const rondo_value x = begin(n, 2, 13, 14);
  const rondo_value parts[] = {conv(n, x, middle), conv(n, x, middle)};
  output(n, conv(n, concat(n, parts, 2, 3), middle));
}

/* As DenseNet has it: the normalization comes first. */
static void norm_layers(network *n) {
  const rondo_value x = begin(n, 2, 13, 14), y = conv(n, relu(n, norm(n, x, 32, true)), middle);
  const rondo_value z = concat(n, (const rondo_value[]){x, y}, 2, 1);
  output(n, conv(n, relu(n, norm(n, z, 64, false)), (layer){64, 32, .kernel = 1}));
}

static void squeezed_layers(network *n) {
  const rondo_value x = conv(n, begin(n, 2, 23, 22), middle);
  rondo_value gate =
      conv(n, relu(n, conv(n, mean(n, x, true), (layer){32, 16, .kernel = 1})), (layer){16, 32, .kernel = 1});
  assert_ok(rondo_op_sigmoid(n->program, gate, &gate));
  output(n, conv(n, mul(n, x, gate), middle));
}

static void global_reductions(network *n) {
  const rondo_value x = conv(n, begin(n, 3, 23, 22), middle);
  rondo_value y;
  output(n, mean(n, x, false));
  assert_ok(rondo_op_max(n->program, x, (const size_t[]){3, 2}, 2, false, &y));
  output(n, y);
  assert_ok(rondo_op_sum(n->program, x, (const size_t[]){1, 3}, 2, false, &y));
  output(n, y);
}

static rondo_value silu(network *n, rondo_value x) {
  assert_ok(rondo_op_silu(n->program, x, &x));
  return x;
}

/* So large that their rows are divided. */
static void large_images(network *n) {
  const rondo_value x = conv(n, begin(n, 2, 61, 58), (layer){32, 64, 5, .stride = 2, .padding = 2});
  const rondo_value y = conv(n, silu(n, x), (layer){64, 64, 3, .padding = 3, .dilation = 3});
  output(n, silu(n, conv(n, relu(n, y), (layer){64, 96, .kernel = 1})));
}

/* Of many channels, which are divided. */
static void small_images(network *n) {
  const rondo_value x = relu(n, conv(n, begin(n, 1, 7, 7), (layer){32, 256, 3, .padding = 1}));
  output(n, silu(n, conv(n, x, (layer){256, 512, .kernel = 1})));
}

static void mixed_channels(network *n) {
  const rondo_pooling_options pooling = {RONDO_POOLING_OPTIONS_INIT, .kernel = {3, 3}, .stride = {2, 2}};
  const rondo_value x = relu(n, conv(n, begin(n, 2, 25, 23), (layer){32, 21, 3, .padding = 1}));
  rondo_value y = conv(n, x, (layer){21, 43, .kernel = 1}), z;
  y = mul(n, y, mean(n, y, true));
  assert_ok(rondo_op_max_pool(n->program, x, &pooling, &z, NULL));
  assert_ok(rondo_op_avg_pool(n->program, y, &pooling, &y));
  output(n, conv(n, concat(n, (const rondo_value[]){y, z}, 2, 1), (layer){64, 37, 3, .padding = 1}));
}

static void transposed_layers(network *n) {
  const rondo_value x = relu(n, conv(n, begin(n, 2, 14, 13), (layer){32, 64, 3, .padding = 1}));
  const rondo_value weight = input(n, DIMS(64, 24, 2, 3)), overlapping = input(n, DIMS(24, 16, 3, 3));
  const rondo_conv_transpose_options options = {RONDO_CONV_TRANSPOSE_OPTIONS_INIT, .stride = {2, 3},
                                                .bias = input(n, DIMS(24))};
  const rondo_conv_transpose_options others = {RONDO_CONV_TRANSPOSE_OPTIONS_INIT, .stride = {2, 2}, .padding = {1, 1}};
  rondo_value y;
  assert_ok(rondo_op_conv_transpose(n->program, x, weight, &options, &y));
  y = relu(n, conv(n, y, (layer){24, 24, 3, .padding = 1}));
  assert_ok(rondo_op_conv_transpose(n->program, y, overlapping, &others, &y));
  output(n, conv(n, y, (layer){16, 32, 3, .padding = 1}));
}

/* Windows that begin in the padding lie side by side too, but not where the elements of x do. */
static void shifted_transposed_layers(network *n) {
  const rondo_value x = relu(n, conv(n, begin(n, 2, 14, 13), (layer){32, 64, 3, .padding = 1}));
  const rondo_value weight = input(n, DIMS(64, 24, 2, 2));
  const rondo_conv_transpose_options options = {RONDO_CONV_TRANSPOSE_OPTIONS_INIT, .stride = {2, 2},
                                                .padding_before = {0, 1}, .output_padding = {0, 1}};
  rondo_value y;
  assert_ok(rondo_op_conv_transpose(n->program, x, weight, &options, &y));
  output(n, conv(n, y, (layer){24, 24, 3, .padding = 1}));
}

/* So large that its rows are divided. It has no blocks. */
static void image_of_one_channel(network *n) {
  const rondo_value x = relu(n, conv(n, input(n, DIMS(1, 1, 60, 62)), (layer){1, 64, 5, .padding = 2}));
  output(n, relu(n, conv(n, x, (layer){64, 32, 3, .stride = 2})));
}

static const network_case cases[] = {
    {"two layers", 2, 2, 2, two_layers},
    {"many images", 2, 2, 2, many_images},
    {"one layer", 0, 0, 1, one_layer},
    {"small layers", 0, 0, 2, small_layers},
    {"pointwise layers", 3, 3, 3, pointwise_layers},
    {"dilated layers", 2, 2, 2, dilated_layers},
    {"layers with wide padding", 0, 4, 4, layers_with_wide_padding},
    {"layers of groups", 4, 4, 2, layers_of_groups},
    {"layers of groups of 10 channels", 2, 3, 2, layers_of_odd_groups},
    {"layers of 20 channels", 2, 4, 2, layers_of_odd_channels},
    {"residual layers", 4, 4, 4, residual_layers},
    {"layers that share", 3, 3, 3, layers_that_share},
    {"an output in the middle", 3, 3, 3, output_in_the_middle},
    {"broadcast operands", 3, 3, 3, broadcast_operands},
    {"a broadcast image", 2, 2, 3, broadcast_image},
    {"pooling", 3, 3, 3, pooling_layers},
    {"other pooling", 3, 3, 3, other_pooling_layers},
    {"places of maxima", 2, 2, 3, places_of_maxima},
    {"concatenation", 4, 4, 4, concat_layers},
    {"concatenation of mixed parts", 2, 4, 2, concat_of_mixed_parts},
    {"concatenation of columns", 3, 3, 4, concat_of_columns},
    {"batch normalization", 3, 3, 3, norm_layers},
    {"squeeze and excitation", 3, 3, 5, squeezed_layers},
    {"global reductions", 2, 2, 2, global_reductions},
    {"large images", 4, 4, 4, large_images},
    {"small images", 2, 2, 3, small_images},
    {"mixed channels", 0, 4, 1, mixed_channels},
    {"transposed convolutions", 2, 3, 4, transposed_layers},
    {"shifted transposed convolutions", 2, 2, 3, shifted_transposed_layers},
    {"an image of one channel", 2, 2, 2, image_of_one_channel},
};
enum { CASES = sizeof cases / sizeof cases[0] };

/* Running ---------------------------------------------------------------------------------------------------------- */

typedef struct results {
  float *values[MOST_OUTPUTS];
  size_t counts[MOST_OUTPUTS];
} results;

static void free_results(results *r) {
  for (size_t i = 0; i < MOST_OUTPUTS; i++) free(r->values[i]);
  memset(r, 0, sizeof *r);
}

static network build(const network_case *of, rondo_type type) {
  network n = {.program = test_new_program(), .type = type};
  of->build(&n);
  return n;
}

static void fill(rondo_compiled *compiled, const char *name, size_t bytes, uint64_t seed) {
  float *values = malloc(bytes);
  assert_non_null(values);
  for (size_t i = 0; i < bytes / sizeof *values; i++)
    values[i] = (float)test_random_below(&seed, 2001) / 1000.0f - 1.0f;
  assert_ok(rondo_compiled_write(compiled, name, values, bytes));
  free(values);
}

static results run(rondo_compiled *compiled, const network *n) {
  results r = {.values = {NULL}};
  char name[16];
  for (uint32_t i = 0; i < n->inputs; i++) {
    (void)snprintf(name, sizeof name, "x%u", i);
    fill(compiled, name, test_compiled_value(compiled, 'i', name).bytes, 3 + i);
  }
  assert_ok(rondo_compiled_run(compiled));
  for (uint32_t i = 0; i < n->outputs; i++) {
    (void)snprintf(name, sizeof name, "y%u", i);
    const size_t bytes = test_compiled_value(compiled, 'o', name).bytes;
    r.counts[i] = bytes / sizeof(float);
    r.values[i] = malloc(bytes);
    assert_non_null(r.values[i]);
    assert_ok(rondo_compiled_read(compiled, name, r.values[i], bytes));
  }
  return r;
}

static bool is_cuda(const test_fixture *t) {
  rondo_device_info device = {.struct_size = sizeof device};
  assert_ok(rondo_device_get_info(t->device, &device));
  return device.cuda;
}

/* Whether the library that computes images of the type in blocks is there. */
static bool has_library(const test_fixture *t, rondo_type type) {
  rondo_library_info library = {RONDO_LIBRARY_INFO_INIT};
  if ((type == RONDO_F16) != is_cuda(t)) return false;
  for (size_t i = 0; rondo_library_enumerate(i, &library) == RONDO_OK; i++)
    if (strstr(library.purpose, "convolutions") != NULL && strstr(library.purpose, is_cuda(t) ? "CUDA" : "CPU") != NULL)
      return library.path != NULL;
  return false;
}

/* How many convolutions the explanation counts. */
static uint32_t count_blocked(const rondo_compiled *compiled) {
  char *text = NULL;
  unsigned count = 0;
  assert_ok(rondo_compiled_explain(compiled, RONDO_EXPLAIN_TEXT, &text));
  const char *at = strstr(text, "blocked_images ");
  if (at != NULL) assert_int_equal(sscanf(at, "blocked_images %u", &count), 1);
  rondo_text_free(text);
  return count;
}

/* Whether a block has all channels: then 20 of them have one. */
static bool has_all_channels(const test_fixture *t) {
  network n = {.program = test_new_program(), .type = RONDO_F32};
  layers_of_odd_channels(&n);
  rondo_compiled *compiled = test_compile(n.program, t->device, NULL);
  const bool has_all = count_blocked(compiled) > 2;
  assert_ok(rondo_compiled_destroy(compiled));
  return has_all;
}

static void assert_close(const network_case *of, double near, const results *got, const results *expected) {
  for (size_t k = 0; k < MOST_OUTPUTS; k++) {
    double largest = 0;
    assert_int_equal(got->counts[k], expected->counts[k]);
    for (size_t i = 0; i < expected->counts[k]; i++) largest = fmax(largest, fabs((double)expected->values[k][i]));
    for (size_t i = 0; i < expected->counts[k]; i++) {
      const double a = (double)got->values[k][i], b = (double)expected->values[k][i];
      if (!(fabs(a - b) <= near * largest)) fail_msg("%s: y%zu: element %zu is %g, not %g", of->what, k, i, a, b);
    }
  }
}

static void assert_same_bits(const network_case *of, const char *how, const results *got, const results *expected) {
  for (size_t k = 0; k < MOST_OUTPUTS; k++)
    if (expected->counts[k] > 0 &&
        memcmp(got->values[k], expected->values[k], expected->counts[k] * sizeof(float)) != 0)
      fail_msg("%s: y%zu has other bits %s", of->what, k, how);
}

/* Tests ------------------------------------------------------------------------------------------------------------ */

/* In F16, each operator between the layers rounds. */
static void compare_with_plain(const test_fixture *t, const network_case *of, rondo_type type) {
  const rondo_compile_options off = {RONDO_COMPILE_OPTIONS_INIT, .without_patterns = "blocked_images"};
  const network n = build(of, type);
  rondo_compiled *compiled = test_compile_kept(n.program, t->device, NULL);
  rondo_compiled *plain = test_compile(n.program, t->device, &off);
  const uint32_t of_f32 = has_all_channels(t) ? of->last : of->count;
  const uint32_t has = type == RONDO_F16 ? of->count_f16 : of_f32;
  const uint32_t count = count_blocked(compiled), expected = has_library(t, type) ? has : 0;
  /* On CUDA, cuDNN is not used for few products unless it is told so. */
  const char *least = getenv("RONDO_CUDNN_LEAST");
  const bool may_be_fewer = is_cuda(t) && (least == NULL || strcmp(least, "1") != 0);
  if (count > expected || (count < expected && !may_be_fewer))
    fail_msg("%s: %u convolutions have blocks, not %u", of->what, count, expected);
  assert_int_equal(count_blocked(plain), 0);
  results got = run(compiled, &n), of_plain = run(plain, &n);
  assert_close(of, type == RONDO_F16 ? 5e-3 : 1e-5, &got, &of_plain);
  free_results(&got);
  free_results(&of_plain);
}

TEST(test_on5_images_in_blocks_have_the_values_of_plain_ones) {
  for (size_t i = 0; i < CASES; i++) compare_with_plain(t, &cases[i], RONDO_F32);
}

TEST(test_on5_images_of_f16_in_one_block_have_the_values_of_plain_ones) {
  for (size_t i = 0; i < CASES; i++) compare_with_plain(t, &cases[i], RONDO_F16);
}

TEST(test_on5_images_in_blocks_have_the_same_bits_recorded) {
  const rondo_compile_options never = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER};
  const rondo_compile_options always = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_ALWAYS};
  for (size_t i = 0; i < CASES; i++) {
    const network n = build(&cases[i], is_cuda(t) ? RONDO_F16 : RONDO_F32);
    results eager = run(test_compile_kept(n.program, t->device, &never), &n);
    results recorded = run(test_compile(n.program, t->device, &always), &n);
    assert_same_bits(&cases[i], "recorded", &recorded, &eager);
    free_results(&eager);
    free_results(&recorded);
  }
}

static results run_with_workers(const network_case *of, uint32_t workers) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = workers};
  rondo_device *device = NULL;
  const network n = build(of, RONDO_F32);
  assert_ok(rondo_device_open(test_device_name(), &options, &device));
  rondo_compiled *compiled = test_compile(n.program, device, NULL);
  const results r = run(compiled, &n);
  assert_ok(rondo_compiled_destroy(compiled));
  assert_ok(rondo_device_close(device));
  return r;
}

TEST(test_on5_images_in_blocks_have_the_same_bits_with_any_workers) {
  (void)t;
  if (!test_device_is("cpu")) skip();
  for (size_t i = 0; i < CASES; i++) {
    results one = run_with_workers(&cases[i], 1), three = run_with_workers(&cases[i], 3);
    assert_same_bits(&cases[i], "with three workers", &three, &one);
    free_results(&one);
    free_results(&three);
  }
}

/* The gradient of two layers. With places, their activation is on the second of two devices: the layers are in one
 * part, and their gradients in another. */
static network build_with_gradient(bool places) {
  network n = {.program = test_new_program(), .type = RONDO_F32};
  const rondo_value x = input(&n, DIMS(2, 32, 13, 12));
  rondo_value loss = relu(&n, conv(&n, conv(&n, x, middle), middle)), gradient;
  if (places) assert_ok(rondo_program_place(n.program, loss, 1));
  assert_ok(rondo_op_sum(n.program, loss, NULL, 0, false, &loss));
  assert_ok(rondo_program_gradients(n.program, loss, &x, 1, &gradient));
  output(&n, gradient);
  return n;
}

TEST(test_on5_images_stay_plain_with_own_kernels_and_gradients) {
  const rondo_compile_options own = {RONDO_COMPILE_OPTIONS_INIT, .own_kernels = true};
  const rondo_compile_options never = {RONDO_COMPILE_OPTIONS_INIT, .fusion = RONDO_FUSION_NEVER};
  network n = build(&cases[0], RONDO_F32);
  assert_int_equal(count_blocked(test_compile_kept(n.program, t->device, &own)), 0);
  assert_int_equal(count_blocked(test_compile_kept(n.program, t->device, &never)), 0);
  assert_int_equal(count_blocked(test_compile_kept(build_with_gradient(false).program, t->device, NULL)), 0);
}

/* A part without gradients is one of a program with gradients. */
TEST(test_on5_images_stay_plain_in_each_part_of_a_program_with_gradients) {
  rondo_device *const devices[] = {t->device, test_device(test_device_is("cpu") ? "cpu:1" : "cpu", NULL)};
  rondo_divided_info info = {.struct_size = sizeof info};
  rondo_divided *divided = test_compile_divided(build_with_gradient(true).program, devices, 2, NULL);
  assert_ok(rondo_divided_get_info(divided, &info));
  assert_int_equal(info.parts, 3);
  for (size_t i = 0; i < info.parts; i++) {
    rondo_divided_part part = {.struct_size = sizeof part};
    assert_ok(rondo_divided_get_part(divided, i, &part));
    assert_int_equal(count_blocked(part.compiled), 0);
  }
}
