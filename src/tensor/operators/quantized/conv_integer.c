/* SPDX-License-Identifier: MIT
 * conv_integer: convolutions of 8-bit integers as products of the weights and panels of windows, which are gathered as
 * bytes, in tiles (integer_product.h). The padding has the zero of x. Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/convolution/window.h"
#include "tensor/operators/quantized/integer_product.h"

enum { X, WEIGHT };
enum { GROUPS = RONDO_WINDOW_SIZES, SIZES };

/* A scalar argument of the kernels; without padding. */
typedef struct conv_shape {
  rondo_window window;
  size_t images, groups, in_channels, out_channels; /* of a group */
  rondo_integer_ending ending;
} conv_shape;

static size_t depth_of(const conv_shape *s) { return s->in_channels * rondo_window_taps(&s->window); }
static size_t across(const conv_shape *s) {
  return rondo_divide_up(rondo_window_out(&s->window), RONDO_INTEGER_COLUMNS);
}
static size_t down(const conv_shape *s) { return rondo_divide_up(s->out_channels, RONDO_INTEGER_ROWS); }

/* Windows ---------------------------------------------------------------------------------------------------------- */

/* The part of a row of windows that begins at window `first` of the channel: its first byte in the image, and which of
 * its windows have this tap in the image. */
typedef struct line {
  size_t from, count;
  rondo_span inside;
} line;

static line line_of(const rondo_window *w, size_t first, size_t most, size_t tap) {
  const size_t width = w->out[RONDO_WIDTH], row = first / width, column = first % width;
  const size_t across_tap = tap % w->kernel[RONDO_WIDTH], row_tap = tap / w->kernel[RONDO_WIDTH];
  line made = {.count = rondo_smaller(width - column, most)};
  size_t z = 0, y = 0, x = 0;
  const bool has_row =
      rondo_window_tap(w, RONDO_DEPTH, row / w->out[RONDO_HEIGHT], row_tap / w->kernel[RONDO_HEIGHT], &z) &&
      rondo_window_tap(w, RONDO_HEIGHT, row % w->out[RONDO_HEIGHT], row_tap % w->kernel[RONDO_HEIGHT], &y);
  const rondo_span all = rondo_window_inside(w, RONDO_WIDTH, across_tap);
  const size_t begin = rondo_larger(all.first, column), end = rondo_smaller(all.last, column + made.count);
  if (!has_row || begin >= end) return made;
  (void)rondo_window_tap(w, RONDO_WIDTH, begin, across_tap, &x);
  made.from = (z * w->in[RONDO_HEIGHT] + y) * w->in[RONDO_WIDTH] + x;
  made.inside = (rondo_span){begin - column, end - column};
  return made;
}

/* One tap of windows first .. first + count - 1 of a channel. */
static void gather_tap(const rondo_window *w, const uint8_t *channel, size_t tap, size_t first, size_t count, int zero,
                       uint8_t *to) {
  const size_t step = w->stride[RONDO_WIDTH];
  for (size_t i = 0; i < count;) {
    const line l = line_of(w, first + i, count - i, tap);
    const size_t length = l.inside.last - l.inside.first;
    uint8_t *at = to + i + l.inside.first;
    memset(to + i, zero, l.inside.first);
    if (step == 1)
      memcpy(at, channel + l.from, length);
    else
      for (size_t k = 0; k < length; k++) at[k] = channel[l.from + k * step];
    memset(at + length, zero, l.count - l.inside.last);
    i += l.count;
  }
}

static bool is_pointwise(const rondo_window *w) {
  bool is_same = rondo_window_taps(w) == 1;
  for (int axis = 0; axis < RONDO_WINDOW_AXES; axis++)
    is_same = is_same && w->stride[axis] == 1 && w->padding[axis] == 0 && w->in[axis] == w->out[axis];
  return is_same;
}

/* Rows `from` .. of the windows of a group's channels. */
static void gather_windows(const conv_shape *s, const uint8_t *group, size_t from, size_t depth, size_t column,
                           int zero, rondo_integer_tile *tile) {
  const rondo_window *w = &s->window;
  const size_t taps = rondo_window_taps(w), in = rondo_window_in(w);
  const bool is_image = is_pointwise(w);
  for (size_t k = 0; k < depth; k++) {
    const uint8_t *channel = group + (from + k) / taps * in;
    uint8_t *to = &tile->b[k * RONDO_INTEGER_COLUMNS];
    if (is_image)
      memcpy(to, channel + column, tile->columns);
    else
      gather_tap(w, channel, (from + k) % taps, column, tile->columns, zero, to);
  }
}

/* Kernel ----------------------------------------------------------------------------------------------------------- */

static void gather_weights(const conv_shape *s, const void *weight, const void *zeros, size_t row, size_t from,
                           size_t depth, rondo_integer_tile *tile) {
  for (size_t i = 0; i < tile->rows; i++) {
    const uint32_t is_unsigned = s->ending.b_unsigned;
    const int32_t zero = zeros == NULL ? 0 : rondo_byte_at(zeros, is_unsigned, s->ending.zeros_b == 1 ? 0 : row + i);
    int16_t *to = &tile->a[i * RONDO_INTEGER_DEPTH];
    for (size_t k = 0; k < depth; k++)
      to[k] = (int16_t)(rondo_byte_at(weight, is_unsigned, (row + i) * depth_of(s) + from + k) - zero);
    if (depth % 2 != 0) to[depth] = 0;
  }
}

/* shape, x, weight, x's zero, weight's zeros, bias, scale, result_zero, result */
static void convolve_tile(const conv_shape *s, void *const *args, size_t number, rondo_integer_tile *tile) {
  const rondo_integer_arrays arrays = {.a_zero = RONDO_ARG(const void *, 3),
                                       .b_zero = RONDO_ARG(const void *, 4),
                                       .bias = RONDO_ARG(const int32_t *, 5),
                                       .scale = RONDO_ARG(const float *, 6),
                                       .result_zero = RONDO_ARG(const void *, 7),
                                       .result = RONDO_ARG(void *, 8)};
  const size_t out = rondo_window_out(&s->window), product = number / across(s) / down(s);
  const size_t column = number % across(s) * RONDO_INTEGER_COLUMNS;
  const size_t in_group = number / across(s) % down(s) * RONDO_INTEGER_ROWS;
  const size_t row = product % s->groups * s->out_channels + in_group; /* among all output channels */
  const int32_t zero = arrays.a_zero == NULL ? 0 : rondo_byte_at(arrays.a_zero, s->ending.a_unsigned, 0);
  const uint8_t *group = RONDO_ARG(const uint8_t *, 1) + product * s->in_channels * rondo_window_in(&s->window);
  int32_t zeros[RONDO_INTEGER_COLUMNS];
  for (size_t j = 0; j < RONDO_INTEGER_COLUMNS; j++) zeros[j] = zero;
  tile->rows = rondo_smaller(s->out_channels - in_group, RONDO_INTEGER_ROWS);
  tile->columns = rondo_smaller(out - column, RONDO_INTEGER_COLUMNS);
  memset(tile->sums, 0, sizeof tile->sums);
  for (size_t from = 0; from < depth_of(s); from += RONDO_INTEGER_DEPTH) {
    const size_t depth = rondo_smaller(depth_of(s) - from, RONDO_INTEGER_DEPTH);
    gather_weights(s, RONDO_ARG(const void *, 2), arrays.b_zero, row, from, depth, tile);
    gather_windows(s, group, from, depth, column, zero, tile);
    rondo_integer_multiply(tile, depth, s->ending.a_unsigned != 0);
    if (zero != 0) rondo_integer_subtract(tile, depth, zeros);
  }
  for (size_t i = 0; i < tile->rows; i++)
    rondo_integer_store(&s->ending, &arrays, tile, i, row + i,
                        ((product / s->groups * s->groups * s->out_channels) + row + i) * out + column);
}

static void conv_integer_cpu(rondo_blocks blocks, void *const *args) {
  const conv_shape *s = args[0];
  rondo_integer_tile tile;
  memset(tile.b, 0, sizeof tile.b); /* bytes after the columns are read */
  RONDO_EACH_TILE(number, blocks, s->images * s->groups * down(s) * across(s)) convolve_tile(s, args, number, &tile);
}

RONDO_UNTYPED_KERNEL(conv_integer, integer_product, RONDO_SCALAR(conv_shape), RONDO_READS, RONDO_READS, RONDO_READS,
                     RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES);

/* Row -------------------------------------------------------------------------------------------------------------- */

static rondo_status infer_conv_integer(const rondo_program *program, const rondo_operation *operation,
                                       rondo_shape *results) {
  const rondo_shape *x = rondo_operation_input(program, operation, X);
  const rondo_shape *weight = rondo_operation_input(program, operation, WEIGHT);
  const size_t groups = operation->attributes.sizes[GROUPS];
  rondo_window w;
  rondo_type type;
  if (!rondo_window_has_rank(x->rank) || weight->rank != x->rank || weight->dims[0] % groups != 0 ||
      x->dims[1] != weight->dims[1] * groups)
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "x must be [n, c, ..] and weight [o, c / groups, ..], with one to three dimensions "
                                "more, and c and o multiples of the %zu groups",
                                groups);
  RONDO_TRY(rondo_window_make(program, operation, x, &w));
  RONDO_TRY(rondo_integer_require(program, operation, weight->dims[0], &type));
  results[0] = rondo_window_image(type, x->rank, x->dims[0], weight->dims[0], w.out);
  return RONDO_OK;
}

static rondo_status emit_conv_integer(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *x = rondo_emit_shape(emitter, operation->inputs[X]);
  const rondo_shape *weight = rondo_emit_shape(emitter, operation->inputs[WEIGHT]);
  const size_t groups = operation->attributes.sizes[GROUPS];
  const conv_shape shape = {.window = rondo_window_of(x, &operation->attributes),
                            .images = x->dims[0],
                            .groups = groups,
                            .in_channels = weight->dims[1],
                            .out_channels = weight->dims[0] / groups,
                            .ending = rondo_integer_ending_of(emitter, operation, true)};
  const size_t elements = rondo_shape_elements(rondo_emit_shape(emitter, operation->results[0]));
  const rondo_grain grain = {1, RONDO_CUDA_THREADS};
  const rondo_grid grid = rondo_emit_is_cuda(emitter)
                              ? rondo_emit_grid(emitter, elements, grain)
                              : rondo_tile_grid(shape.images * groups * down(&shape) * across(&shape));
  return rondo_emit_operands(
      emitter, operation, &conv_integer_code, grid,
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(X), RONDO_INPUT(WEIGHT), RONDO_INPUT(RONDO_INTEGER_A_ZERO),
                     RONDO_INPUT(RONDO_INTEGER_B_ZERO), RONDO_INPUT(RONDO_INTEGER_BIAS),
                     RONDO_INPUT(RONDO_INTEGER_SCALE), RONDO_INPUT(RONDO_INTEGER_RESULT_ZERO), RONDO_RESULT(0)));
}

RONDO_OPERATOR(conv_integer, .types = RONDO_TYPE_BIT(RONDO_I8) | RONDO_TYPE_BIT(RONDO_U8),
               .inputs = {"x", "weight", "a_zero", "b_zero", "bias", "scale", "result_zero"}, .required = 2,
               .result_count = 1, .infer = infer_conv_integer, .emit = emit_conv_integer);

rondo_status rondo_op_conv_integer(rondo_program *program, rondo_value x, rondo_value weight,
                                   const rondo_conv_options *options, const rondo_integer_product_options *products,
                                   rondo_value *out_value) {
  rondo_value inputs[RONDO_INTEGER_INPUTS] = {x, weight};
  rondo_conv_options given;
  rondo_attributes attributes = {0};
  uint32_t index = 0;
  RONDO_TRY(rondo_program_begin(program, "conv_integer", out_value));
  RONDO_TRY(rondo_versioned_read("rondo_conv_options", options, &given, sizeof given));
  RONDO_TRY(rondo_integer_read("conv_integer", products, inputs, &attributes));
  if (given.bias.id != 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "conv_integer: give the bias, i32, in rondo_integer_product_options");
  RONDO_TRY(rondo_program_resolve(program, weight, "conv_integer", "weight", &index));
  const rondo_shape *shape = rondo_program_shape(program, index);
  const rondo_window_given window = {.kernel = &shape->dims[2],
                                     .stride = given.stride,
                                     .dilation = given.dilation,
                                     .padding = given.padding,
                                     .before = given.padding_before,
                                     .after = given.padding_after};
  rondo_window_attributes(rondo_window_has_rank(shape->rank) ? shape->rank : 4, &window, &attributes);
  attributes.sizes[GROUPS] = given.groups == 0 ? 1 : given.groups;
  attributes.size_count = SIZES;
  return rondo_program_apply(program, &rondo_operator_conv_integer, inputs, RONDO_INTEGER_INPUTS, &attributes,
                             out_value);
}
