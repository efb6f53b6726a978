/* SPDX-License-Identifier: MIT
 * Tiles of convolutions on a CPU, each by one thread: panels of both factors are gathered as floats on the stack (of
 * the image's windows a row a tap, which lies in memory nearly as it is), and multiplied by gemm.h, the depth in its
 * order.
 */
#include <string.h>

#include "tensor/operators/conv2d.h"
#include "tensor/operators/gemm.h"

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

/* One tap of the windows first .. first + count - 1, over the plane that begins at `plane`. */
static void gather_tap(const conv_data *d, size_t plane, size_t tap, size_t first, size_t count, float *to) {
  const rondo_window *w = &d->shape->window;
  const size_t width = w->out[RONDO_WIDTH], down = tap / w->kernel[RONDO_WIDTH], across = tap % w->kernel[RONDO_WIDTH];
  const rondo_span inside = rondo_window_inside(w, RONDO_WIDTH, across);
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

static void multiply(const conv_tile *t, size_t depth, const float *left, bool transpose_a, const float *right,
                     bool transpose_b, float *sums) {
  const rondo_gemm gemm = {.transpose_a = transpose_a,
                           .transpose_b = transpose_b,
                           .accumulate = true,
                           .m = t->rows,
                           .n = t->columns,
                           .k = depth,
                           .a = left,
                           .b = right,
                           .c = sums,
                           .a_stride = transpose_a ? t->rows : depth,
                           .b_stride = transpose_b ? depth : t->columns,
                           .c_stride = t->columns};
  rondo_gemm_run(&gemm);
}

/* Row `first` on of the result's matrix, whose rows are `stride` long. */
static void store_tile(rondo_type type, const conv_tile *t, size_t first, size_t stride, const float *sums, void *to) {
  for (size_t i = 0; i < t->rows; i++) {
    const size_t at = first + (t->row + i) * stride + t->column;
    if (type == RONDO_F32) memcpy((float *)to + at, sums + i * t->columns, t->columns * sizeof *sums);
    rondo_store_chunk(type, to, at, t->columns, sums + i * t->columns);
  }
}

/* Forward ---------------------------------------------------------------------------------------------------------- */

static void convolve(const conv_data *d, rondo_conv2d_product p, const conv_tile *t, const void *bias, void *y) {
  const rondo_conv2d_shape *s = d->shape;
  const size_t taps = rondo_conv2d_taps(s), group = t->product % s->groups;
  const size_t first = group * s->out_channels + t->row;
  float left[EDGE * DEPTH], right[EDGE * DEPTH], sums[EDGE * EDGE];
  for (size_t i = 0; i < t->rows * t->columns; i++)
    sums[i] = bias == NULL ? 0.0f : load_one(d->type, bias, first + i / t->columns);
  for (size_t from = 0; from < p.depth; from += DEPTH) {
    const size_t depth = smaller(DEPTH, p.depth - from);
    for (size_t i = 0; i < t->rows; i++) {
      const float *row = rondo_load_chunk(d->type, d->weight, (first + i) * p.depth + from, depth, left + i * depth);
      if (row != left + i * depth) memcpy(left + i * depth, row, depth * sizeof *row);
    }
    for (size_t k = 0; k < depth; k++) {
      const size_t plane = t->product * s->in_channels + (from + k) / taps;
      gather_tap(d, plane * rondo_conv2d_in(s), (from + k) % taps, t->column, t->columns, right + k * t->columns);
    }
    multiply(t, depth, left, false, right, false, sums);
  }
  store_tile(d->type, t, t->product * p.rows * p.columns, p.columns, sums, y);
}

void rondo_conv2d_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const conv_data d = {
      .shape = args[0], .type = type, .image = RONDO_ARG(const void *, 1), .weight = RONDO_ARG(const void *, 2)};
  const rondo_conv2d_product p = rondo_conv2d_forward(d.shape);
  const size_t tiles = rondo_conv2d_tiles(d.shape, p);
  for (size_t block = blocks.first; block < blocks.last; block++) {
    for (size_t number = block; number < tiles; number += blocks.grid.x) {
      const conv_tile t = tile_at(d.shape, p, number);
      convolve(&d, p, &t, RONDO_ARG(const void *, 3), RONDO_ARG(void *, 4));
    }
  }
}

/* Gradients -------------------------------------------------------------------------------------------------------- */

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
    multiply(t, depth, left, true, right, false, sums);
  }
  store_tile(d->type, t, t->product * p.rows * p.columns, p.columns, sums, dx);
}

void rondo_conv2d_input_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const conv_data d = {
      .shape = args[0], .type = type, .weight = RONDO_ARG(const void *, 1), .image = RONDO_ARG(const void *, 2)};
  const rondo_conv2d_product p = rondo_conv2d_input_gradient(d.shape);
  const size_t tiles = rondo_conv2d_tiles(d.shape, p);
  for (size_t block = blocks.first; block < blocks.last; block++) {
    for (size_t number = block; number < tiles; number += blocks.grid.x) {
      const conv_tile t = tile_at(d.shape, p, number);
      make_input_gradient(&d, p, &t, RONDO_ARG(void *, 3));
    }
  }
}

/* What the places from .. from + depth - 1 of an image add. */
static void add_places(const conv_data *d, const conv_tile *t, size_t image, size_t from, size_t depth, float *sums) {
  const rondo_conv2d_shape *s = d->shape;
  const size_t taps = rondo_conv2d_taps(s), product = image * s->groups + t->product;
  float left[EDGE * DEPTH], right[EDGE * DEPTH];
  for (size_t i = 0; i < t->rows; i++) {
    const size_t plane = product * s->out_channels + t->row + i;
    const float *row =
        rondo_load_chunk(d->type, d->weight, plane * rondo_conv2d_out(s) + from, depth, left + i * depth);
    if (row != left + i * depth) memcpy(left + i * depth, row, depth * sizeof *row);
  }
  for (size_t j = 0; j < t->columns; j++) {
    const size_t plane = product * s->in_channels + (t->column + j) / taps;
    gather_tap(d, plane * rondo_conv2d_in(s), (t->column + j) % taps, from, depth, right + j * depth);
  }
  multiply(t, depth, left, false, right, true, sums);
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
  for (size_t block = blocks.first; block < blocks.last; block++) {
    for (size_t number = block; number < tiles; number += blocks.grid.x) {
      const conv_tile t = tile_at(d.shape, p, number);
      make_weight_gradient(&d, p, &t, RONDO_ARG(void *, 3));
    }
  }
}
