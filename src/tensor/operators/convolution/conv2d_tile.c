/* SPDX-License-Identifier: MIT
 * Tiles of convolutions on a CPU, each by one thread: panels of both factors are gathered as floats on the stack (of
 * the image's windows a row a tap, which lies in memory nearly as it is), and multiplied by gemm.h, the depth in its
 * order.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/common/operator_rows.h"
#include "tensor/operators/convolution/conv2d.h"
#include "tensor/operators/matmul/gemm.h"

#define EDGE RONDO_CONV2D_EDGE
#define DEPTH 128 /* of a panel */

typedef struct conv_data {
  const rondo_conv2d_shape *shape;
  rondo_type type;
  const void *image, *weight; /* image: x, or for dx dy; weight: for dweight dy */
} conv_data;

typedef struct conv_tile {
  size_t product, row, column, rows, columns;
} conv_tile;

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }
static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static conv_tile tile_at(const rondo_conv2d_shape *s, rondo_conv2d_product p, size_t number) {
  const size_t across = (p.columns + s->edge - 1) / s->edge, down = (p.rows + s->edge - 1) / s->edge;
  conv_tile t = {.product = number / (across * down),
                 .row = number / across % down * s->edge,
                 .column = number % across * s->edge};
  assert(s->edge <= EDGE && t.product < p.count);
  t.rows = smaller(p.rows - t.row, s->edge);
  t.columns = smaller(p.columns - t.column, s->edge);
  return t;
}

static float load_one(rondo_type type, const void *memory, size_t at) {
  float room;
  return *rondo_load_chunk(type, memory, at, 1, &room);
}

/* Windows ---------------------------------------------------------------------------------------------------------- */

/* Of the image from element `first` on every step-th, `count` of them, at most EDGE. */
static void load_line(const conv_data *d, size_t first, size_t step, size_t count, float *to) {
  if (step == 1) {
    const float *chunk = rondo_load_chunk(d->type, d->image, first, count, to);
    if (chunk != to) memcpy(to, chunk, count * sizeof *to);
    return;
  }
  for (size_t i = 0; i < count; i++) to[i] = load_one(d->type, d->image, first + i * step);
}

/* Whether windows lie as close as the image's elements, so that one tap of all is the image, shifted. */
static bool is_shift(const rondo_window *w) {
  return w->stride[RONDO_HEIGHT] == 1 && w->stride[RONDO_WIDTH] == 1 && w->in[RONDO_WIDTH] == w->out[RONDO_WIDTH];
}

/* From a window to where a tap of it lies, modulo 2^64 as all differences here. */
static size_t shift_of(const rondo_window *w, size_t down, size_t across) {
  const size_t rows = down * w->dilation[RONDO_HEIGHT] - w->padding[RONDO_HEIGHT];
  return rows * w->in[RONDO_WIDTH] + across * w->dilation[RONDO_WIDTH] - w->padding[RONDO_WIDTH];
}

static rondo_span move_span(rondo_span span, size_t by) { return (rondo_span){span.first + by, span.last + by}; }

/* The plane's elements first + shift .. , but zeros for what is not in these rows and columns. */
static void gather_shifted(const conv_data *d, size_t plane, size_t shift, rondo_span rows, rondo_span columns,
                           size_t first, size_t count, float *to) {
  const size_t width = d->shape->window.in[RONDO_WIDTH], last = first + count;
  const size_t begin = smaller(larger(rows.first * width + columns.first, first), last);
  const size_t end = larger(smaller((rows.last - 1) * width + columns.last, last), begin);
  if (rows.first >= rows.last || columns.first >= columns.last || begin == end) {
    memset(to, 0, count * sizeof *to);
    return;
  }
  memset(to, 0, (begin - first) * sizeof *to);
  load_line(d, plane + begin + shift, 1, end - begin, to + (begin - first));
  memset(to + (end - first), 0, (last - end) * sizeof *to);
  for (size_t row = begin / width * width; row < end; row += width) {
    for (size_t x = larger(row, begin); x < smaller(row + columns.first, end); x++) to[x - first] = 0;
    for (size_t x = larger(row + columns.last, begin); x < smaller(row + width, end); x++) to[x - first] = 0;
  }
}

/* One tap of the windows first .. first + count - 1, over the plane that begins at `plane`. */
static void gather_tap(const conv_data *d, size_t plane, size_t tap, size_t first, size_t count, float *to) {
  const rondo_window *w = &d->shape->window;
  const size_t width = w->out[RONDO_WIDTH], down = tap / w->kernel[RONDO_WIDTH], across = tap % w->kernel[RONDO_WIDTH];
  const rondo_span inside = rondo_window_inside(w, RONDO_WIDTH, across);
  if (is_shift(w)) {
    gather_shifted(d, plane, shift_of(w, down, across), rondo_window_inside(w, RONDO_HEIGHT, down), inside, first,
                   count, to);
    return;
  }
  for (size_t i = 0, length; i < count; i += length) {
    const size_t out = (first + i) % width;
    size_t y = 0, x = 0;
    length = smaller(width - out, count - i);
    const size_t begin = larger(inside.first, out), end = smaller(inside.last, out + length);
    if (begin >= end || !rondo_window_tap(w, RONDO_HEIGHT, (first + i) / width, down, &y)) {
      memset(to + i, 0, length * sizeof *to);
      continue;
    }
    (void)rondo_window_tap(w, RONDO_WIDTH, begin, across, &x);
    memset(to + i, 0, (begin - out) * sizeof *to);
    load_line(d, plane + y * w->in[RONDO_WIDTH] + x, w->stride[RONDO_WIDTH], end - begin, to + i + begin - out);
    memset(to + i + end - out, 0, (out + length - end) * sizeof *to);
  }
}

/* Of the image's places first .. first + count - 1 what the windows hold whose tap lies there. */
static void gather_windows(const conv_data *d, size_t plane, size_t tap, size_t first, size_t count, float *to) {
  const rondo_window *w = &d->shape->window;
  const size_t width = w->in[RONDO_WIDTH], down = tap / w->kernel[RONDO_WIDTH], across = tap % w->kernel[RONDO_WIDTH];
  const size_t step = w->stride[RONDO_WIDTH], from = across * w->dilation[RONDO_WIDTH];
  const rondo_span inside = rondo_window_inside(w, RONDO_WIDTH, across);
  if (is_shift(w)) {
    const size_t shift = shift_of(w, down, across);
    const rondo_span rows = rondo_window_inside(w, RONDO_HEIGHT, down);
    gather_shifted(d, plane, 0 - shift, move_span(rows, down * w->dilation[RONDO_HEIGHT] - w->padding[RONDO_HEIGHT]),
                   move_span(inside, from - w->padding[RONDO_WIDTH]), first, count, to);
    return;
  }
  memset(to, 0, count * sizeof *to);
  for (size_t i = 0, length; i < count; i += length) {
    const size_t in = (first + i) % width, padded = in + w->padding[RONDO_WIDTH];
    size_t y = 0;
    length = smaller(width - in, count - i);
    if (!rondo_window_at(w, RONDO_HEIGHT, (first + i) / width, down, &y) || padded + length <= from) continue;
    const size_t begin = larger(inside.first, padded > from ? (padded - from + step - 1) / step : 0);
    const size_t end = smaller(inside.last, (padded + length - from + step - 1) / step);
    const size_t line = plane + y * w->out[RONDO_WIDTH];
    const size_t shift = i + from - padded; /* modulo: window 0 may lie before */
    if (step == 1 && begin < end) load_line(d, line + begin, 1, end - begin, to + (begin + shift));
    for (size_t out = begin; step > 1 && out < end; out++)
      to[out * step + shift] = load_one(d->type, d->image, line + out);
  }
}

RONDO_VECTORISED(add_scaled, (const float *restrict from, float factor, float *restrict to, size_t count),
                 (from, factor, to, count)) {
  RONDO_EACH_LANE(i, lane, count, to[i] += factor * from[i]);
}

/* A product of one row: a call of a library would cost more. */
static void multiply_row(const conv_tile *t, size_t depth, const float *left, const float *right, bool transpose_b,
                         float *sums) {
  for (size_t k = 0; k < depth && !transpose_b; k++) add_scaled(right + k * t->columns, left[k], sums, t->columns);
  for (size_t k = 0; k < t->columns && transpose_b; k++) sums[k] += rondo_row_dot(left, right + k * depth, depth);
}

/* sums += left · right; `left` has rows of `stride` elements. */
static void multiply(const conv_tile *t, size_t depth, const float *left, size_t stride, bool transpose_a,
                     const float *right, bool transpose_b, float *sums) {
  if (t->rows == 1) {
    multiply_row(t, depth, left, right, transpose_b, sums);
    return;
  }
  const rondo_gemm gemm = {.transpose_a = transpose_a,
                           .transpose_b = transpose_b,
                           .accumulate = true,
                           .m = t->rows,
                           .n = t->columns,
                           .k = depth,
                           .a = left,
                           .b = right,
                           .c = sums,
                           .a_stride = stride,
                           .b_stride = transpose_b ? depth : t->columns,
                           .c_stride = t->columns};
  rondo_gemm_run(&gemm);
}

/* Rows of `depth` elements, `stride` apart in memory, as floats: where they lie, or in `room`; *out_stride is then
 * theirs. */
static const float *load_rows(rondo_type type, const void *memory, size_t first, size_t stride, size_t rows,
                              size_t depth, float *room, size_t *out_stride) {
  *out_stride = type == RONDO_F32 ? stride : depth;
  if (type == RONDO_F32) return (const float *)memory + first;
  for (size_t i = 0; i < rows; i++) (void)rondo_load_chunk(type, memory, first + i * stride, depth, room + i * depth);
  return room;
}

/* Row `first` on of the result's matrix, whose rows are `stride` long. */
static void store_tile(rondo_type type, const conv_tile *t, size_t first, size_t stride, const float *sums, void *to) {
  for (size_t i = 0; i < t->rows; i++) {
    const size_t at = first + (t->row + i) * stride + t->column;
    if (type == RONDO_F32) memcpy((float *)to + at, sums + i * t->columns, t->columns * sizeof *sums);
    rondo_store_chunk(type, to, at, t->columns, sums + i * t->columns);
  }
}

/* Whether the windows are the images themselves, as floats: then the products are made where their factors lie. */
static bool is_pointwise(const conv_data *d) {
  const rondo_window *w = &d->shape->window;
  return d->type == RONDO_F32 && rondo_conv2d_taps(d->shape) == 1 && is_shift(w) && w->padding[RONDO_HEIGHT] == 0 &&
         w->padding[RONDO_WIDTH] == 0;
}

/* Forward ---------------------------------------------------------------------------------------------------------- */

static void convolve_pointwise(const conv_data *d, rondo_conv2d_product p, const conv_tile *t, const float *bias,
                               float *y) {
  const size_t first = t->product % d->shape->groups * p.rows + t->row;
  const rondo_gemm gemm = {.accumulate = bias != NULL,
                           .m = t->rows,
                           .n = t->columns,
                           .k = p.depth,
                           .a = (const float *)d->weight + first * p.depth,
                           .b = (const float *)d->image + t->product * p.depth * p.columns + t->column,
                           .c = y + (t->product * p.rows + t->row) * p.columns + t->column,
                           .a_stride = p.depth,
                           .b_stride = p.columns,
                           .c_stride = p.columns};
  for (size_t i = 0; i < t->rows && bias != NULL; i++) {
    for (size_t k = 0; k < t->columns; k++) gemm.c[i * p.columns + k] = bias[first + i];
  }
  rondo_gemm_run(&gemm);
}

static void convolve(const conv_data *d, rondo_conv2d_product p, const conv_tile *t, const void *bias, void *y) {
  const rondo_conv2d_shape *s = d->shape;
  const size_t taps = rondo_conv2d_taps(s), group = t->product % s->groups;
  const size_t first = group * s->out_channels + t->row;
  float left[EDGE * DEPTH], right[EDGE * DEPTH], sums[EDGE * EDGE];
  for (size_t i = 0; i < t->rows * t->columns; i++)
    sums[i] = bias == NULL ? 0.0f : load_one(d->type, bias, first + i / t->columns);
  for (size_t from = 0; from < p.depth; from += DEPTH) {
    const size_t depth = smaller(DEPTH, p.depth - from);
    size_t stride;
    const float *weights =
        load_rows(d->type, d->weight, first * p.depth + from, p.depth, t->rows, depth, left, &stride);
    for (size_t k = 0; k < depth; k++) {
      const size_t plane = t->product * s->in_channels + (from + k) / taps;
      gather_tap(d, plane * rondo_conv2d_in(s), (from + k) % taps, t->column, t->columns, right + k * t->columns);
    }
    multiply(t, depth, weights, stride, false, right, false, sums);
  }
  store_tile(d->type, t, t->product * p.rows * p.columns, p.columns, sums, y);
}

void rondo_conv2d_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const conv_data d = {
      .shape = args[0], .type = type, .image = RONDO_ARG(const void *, 1), .weight = RONDO_ARG(const void *, 2)};
  const rondo_conv2d_product p = rondo_conv2d_forward(d.shape);
  const size_t tiles = rondo_conv2d_tiles(d.shape, p);
  RONDO_EACH_TILE(number, blocks, tiles) {
    const conv_tile t = tile_at(d.shape, p, number);
    if (is_pointwise(&d)) {
      convolve_pointwise(&d, p, &t, RONDO_ARG(const float *, 3), RONDO_ARG(float *, 4));
    } else {
      convolve(&d, p, &t, RONDO_ARG(const void *, 3), RONDO_ARG(void *, 4));
    }
  }
}

/* Gradients -------------------------------------------------------------------------------------------------------- */

static void make_input_gradient_pointwise(const conv_data *d, rondo_conv2d_product p, const conv_tile *t, float *dx) {
  const size_t group = t->product % d->shape->groups;
  const rondo_gemm gemm = {.transpose_a = true,
                           .m = t->rows,
                           .n = t->columns,
                           .k = p.depth,
                           .a = (const float *)d->weight + group * p.depth * p.rows + t->row,
                           .b = (const float *)d->image + t->product * p.depth * p.columns + t->column,
                           .c = dx + (t->product * p.rows + t->row) * p.columns + t->column,
                           .a_stride = p.rows,
                           .b_stride = p.columns,
                           .c_stride = p.columns};
  rondo_gemm_run(&gemm);
}

static void make_input_gradient(const conv_data *d, rondo_conv2d_product p, const conv_tile *t, void *dx) {
  const rondo_conv2d_shape *s = d->shape;
  const size_t taps = rondo_conv2d_taps(s), group = t->product % s->groups;
  float left[EDGE * DEPTH], right[EDGE * DEPTH], sums[EDGE * EDGE];
  memset(sums, 0, t->rows * t->columns * sizeof *sums);
  for (size_t from = 0; from < p.depth; from += DEPTH) {
    const size_t depth = smaller(DEPTH, p.depth - from);
    for (size_t k = 0; k < depth; k++) {
      const size_t out = (from + k) / taps, tap = (from + k) % taps;
      const size_t weight = ((group * s->out_channels + out) * s->in_channels + t->row) * taps + tap;
      for (size_t i = 0; i < t->rows; i++) left[k * t->rows + i] = load_one(d->type, d->weight, weight + i * taps);
      gather_windows(d, (t->product * s->out_channels + out) * rondo_conv2d_out(s), tap, t->column, t->columns,
                     right + k * t->columns);
    }
    multiply(t, depth, left, t->rows, true, right, false, sums);
  }
  store_tile(d->type, t, t->product * p.rows * p.columns, p.columns, sums, dx);
}

void rondo_conv2d_input_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const conv_data d = {
      .shape = args[0], .type = type, .weight = RONDO_ARG(const void *, 1), .image = RONDO_ARG(const void *, 2)};
  const rondo_conv2d_product p = rondo_conv2d_input_gradient(d.shape);
  const size_t tiles = rondo_conv2d_tiles(d.shape, p);
  RONDO_EACH_TILE(number, blocks, tiles) {
    const conv_tile t = tile_at(d.shape, p, number);
    if (is_pointwise(&d)) {
      make_input_gradient_pointwise(&d, p, &t, RONDO_ARG(float *, 3));
    } else {
      make_input_gradient(&d, p, &t, RONDO_ARG(void *, 3));
    }
  }
}

/* What the places from .. from + depth - 1 of an image add. */
static void add_places(const conv_data *d, const conv_tile *t, size_t image, size_t from, size_t depth, float *sums) {
  const rondo_conv2d_shape *s = d->shape;
  const size_t taps = rondo_conv2d_taps(s), product = image * s->groups + t->product;
  float left[EDGE * DEPTH], right[EDGE * DEPTH];
  const size_t places = rondo_conv2d_out(s);
  size_t stride;
  const float *gradients = load_rows(d->type, d->weight, (product * s->out_channels + t->row) * places + from, places,
                                     t->rows, depth, left, &stride);
  for (size_t j = 0; j < t->columns; j++) {
    const size_t plane = product * s->in_channels + (t->column + j) / taps;
    gather_tap(d, plane * rondo_conv2d_in(s), (t->column + j) % taps, from, depth, right + j * depth);
  }
  multiply(t, depth, gradients, stride, false, right, true, sums);
}

static void make_weight_gradient_pointwise(const conv_data *d, rondo_conv2d_product p, const conv_tile *t,
                                           float *dweight) {
  const size_t places = rondo_conv2d_out(d->shape);
  for (size_t image = 0; image < d->shape->images; image++) {
    const size_t product = image * d->shape->groups + t->product;
    const rondo_gemm gemm = {.transpose_b = true,
                             .accumulate = image > 0,
                             .m = t->rows,
                             .n = t->columns,
                             .k = places,
                             .a = (const float *)d->weight + (product * p.rows + t->row) * places,
                             .b = (const float *)d->image + (product * p.columns + t->column) * places,
                             .c = dweight + (t->product * p.rows + t->row) * p.columns + t->column,
                             .a_stride = places,
                             .b_stride = places,
                             .c_stride = p.columns};
    rondo_gemm_run(&gemm);
  }
}

static void make_weight_gradient(const conv_data *d, rondo_conv2d_product p, const conv_tile *t, void *dweight) {
  const rondo_conv2d_shape *s = d->shape;
  float sums[EDGE * EDGE];
  memset(sums, 0, t->rows * t->columns * sizeof *sums);
  for (size_t image = 0; image < s->images; image++) {
    for (size_t from = 0; from < rondo_conv2d_out(s); from += DEPTH)
      add_places(d, t, image, from, smaller(DEPTH, rondo_conv2d_out(s) - from), sums);
  }
  store_tile(d->type, t, t->product * p.rows * p.columns, p.columns, sums, dweight);
}

void rondo_conv2d_weight_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const conv_data d = {
      .shape = args[0], .type = type, .image = RONDO_ARG(const void *, 1), .weight = RONDO_ARG(const void *, 2)};
  const rondo_conv2d_product p = rondo_conv2d_weight_gradient(d.shape);
  const size_t tiles = rondo_conv2d_tiles(d.shape, p);
  RONDO_EACH_TILE(number, blocks, tiles) {
    const conv_tile t = tile_at(d.shape, p, number);
    if (is_pointwise(&d)) {
      make_weight_gradient_pointwise(&d, p, &t, RONDO_ARG(float *, 3));
    } else {
      make_weight_gradient(&d, p, &t, RONDO_ARG(void *, 3));
    }
  }
}
