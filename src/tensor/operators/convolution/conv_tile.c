/* SPDX-License-Identifier: MIT
 * Tiles of convolutions on a CPU, each by one thread. Panels of both factors are gathered as floats on the stack: of
 * the image's windows a row for each tap, which is nearly contiguous in memory. gemm.h multiplies the panels in the
 * order of the depth. Threads: any.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/common/operator_rows.h"
#include "tensor/operators/common/strided_lanes.h"
#include "tensor/operators/convolution/conv.h"
#include "tensor/operators/elementwise/unary_operators.h"
#include "tensor/operators/matmul/gemm_packed.h"

#define EDGE RONDO_CONV_EDGE
#define DEPTH 128 /* of a panel */
#define PANEL_ROOM (EDGE * DEPTH + RONDO_LANES)

typedef struct conv_data {
  const rondo_conv_shape *shape;
  rondo_type type;
  const void *image, *weight; /* image: x, or for dx dy; weight: for dweight dy */
  const void *bias;           /* NULL: none */
  void *to;                   /* y, dx or dweight */
  rondo_conv_product product;
} conv_data;

typedef struct conv_tile {
  size_t product, row, column, rows, columns;
} conv_tile;

static conv_tile tile_at(const conv_data *d, size_t number) {
  const rondo_conv_product *p = &d->product;
  const size_t edge = d->shape->edge;
  const size_t across = rondo_divide_up(p->columns, edge), down = rondo_divide_up(p->rows, edge);
  conv_tile t = {
      .product = number / (across * down), .row = number / across % down * edge, .column = number % across * edge};
  assert(edge <= EDGE && t.product < p->count);
  t.rows = rondo_smaller(p->rows - t.row, edge);
  t.columns = rondo_smaller(p->columns - t.column, edge);
  return t;
}

/* Windows ---------------------------------------------------------------------------------------------------------- */

/* `count` (at most EDGE) elements of the image: every step-th from `first` on. With a step, the image is x, and up to
 * RONDO_LANES - 1 elements after them may change. */
static void load_line(const conv_data *d, size_t first, size_t step, size_t count, float *to) {
  const size_t in = rondo_conv_in(d->shape);
  assert(count <= EDGE);
  if (step == 1) {
    const float *chunk = rondo_load_chunk(d->type, d->image, first, count, to);
    if (chunk != to) memcpy(to, chunk, count * sizeof *to);
    return;
  }
  if (d->type == RONDO_F32) {
    const float *image = d->image;
    rondo_copy_strided(image + first, image + (first / in + 1) * in, step, count, to);
    return;
  }
  for (size_t i = 0; i < count; i++) to[i] = rondo_load_one(d->type, d->image, first + i * step);
}

/* Whether the image is flat, the stride is 1 and the width is kept, so that one tap of all windows is the shifted
 * image. */
static bool is_shift(const rondo_window *w) {
  return w->stride[RONDO_HEIGHT] == 1 && w->stride[RONDO_WIDTH] == 1 && w->in[RONDO_WIDTH] == w->out[RONDO_WIDTH] &&
         rondo_window_is_trivial(w, RONDO_DEPTH);
}

/* A tap by its place along each axis. */
typedef struct tap_place {
  size_t in, down, across;
} tap_place;

static tap_place place_of(const rondo_window *w, size_t tap) {
  const size_t row = tap / w->kernel[RONDO_WIDTH];
  return (tap_place){row / w->kernel[RONDO_HEIGHT], row % w->kernel[RONDO_HEIGHT], tap % w->kernel[RONDO_WIDTH]};
}

/* The row of the image, of all of its planes, that a tap of the windows of row `out` has; false in the padding. */
static bool row_of_tap(const rondo_window *w, size_t out, const tap_place *tap, size_t *in) {
  const size_t height = w->out[RONDO_HEIGHT];
  size_t z = 0, y = 0;
  if (!rondo_window_tap(w, RONDO_DEPTH, out / height, tap->in, &z)) return false;
  if (!rondo_window_tap(w, RONDO_HEIGHT, out % height, tap->down, &y)) return false;
  *in = z * w->in[RONDO_HEIGHT] + y;
  return true;
}

/* The row of windows whose tap is in row `in` of the image; false if there is none. */
static bool row_of_windows(const rondo_window *w, size_t in, const tap_place *tap, size_t *out) {
  const size_t height = w->in[RONDO_HEIGHT];
  size_t z = 0, y = 0;
  if (!rondo_window_at(w, RONDO_DEPTH, in / height, tap->in, &z)) return false;
  if (!rondo_window_at(w, RONDO_HEIGHT, in % height, tap->down, &y)) return false;
  *out = z * w->out[RONDO_HEIGHT] + y;
  return true;
}

/* The distance from a window to one of its taps, modulo 2^64 as all differences here. */
static size_t shift_of(const rondo_window *w, size_t down, size_t across) {
  const size_t rows = down * w->dilation[RONDO_HEIGHT] - w->padding[RONDO_HEIGHT];
  return rows * w->in[RONDO_WIDTH] + across * w->dilation[RONDO_WIDTH] - w->padding[RONDO_WIDTH];
}

static rondo_span move_span(rondo_span span, size_t by) { return (rondo_span){span.first + by, span.last + by}; }

/* The plane's elements first + shift .. , but zeros outside of these rows and columns. */
static void gather_shifted(const conv_data *d, size_t plane, size_t shift, rondo_span rows, rondo_span columns,
                           size_t first, size_t count, float *to) {
  const size_t width = d->shape->window.in[RONDO_WIDTH], last = first + count;
  const size_t begin = rondo_smaller(rondo_larger(rows.first * width + columns.first, first), last);
  const size_t end = rondo_larger(rondo_smaller((rows.last - 1) * width + columns.last, last), begin);
  if (rows.first >= rows.last || columns.first >= columns.last || begin == end) {
    memset(to, 0, count * sizeof *to);
    return;
  }
  memset(to, 0, (begin - first) * sizeof *to);
  load_line(d, plane + begin + shift, 1, end - begin, to + (begin - first));
  memset(to + (end - first), 0, (last - end) * sizeof *to);
  for (size_t row = begin / width * width; row < end; row += width) {
    for (size_t x = rondo_larger(row, begin); x < rondo_smaller(row + columns.first, end); x++) to[x - first] = 0;
    for (size_t x = rondo_larger(row + columns.last, begin); x < rondo_smaller(row + width, end); x++)
      to[x - first] = 0;
  }
}

/* One tap of the windows first .. first + count - 1 of the plane that begins at element `plane`. */
static void gather_tap(const conv_data *d, size_t plane, size_t tap, size_t first, size_t count, float *to) {
  const rondo_window *w = &d->shape->window;
  const size_t width = w->out[RONDO_WIDTH];
  const tap_place at = place_of(w, tap);
  const rondo_span inside = rondo_window_inside(w, RONDO_WIDTH, at.across);
  if (is_shift(w)) {
    gather_shifted(d, plane, shift_of(w, at.down, at.across), rondo_window_inside(w, RONDO_HEIGHT, at.down), inside,
                   first, count, to);
    return;
  }
  for (size_t i = 0, length; i < count; i += length) {
    const size_t out = (first + i) % width;
    size_t y = 0, x = 0;
    length = rondo_smaller(width - out, count - i);
    const size_t begin = rondo_larger(inside.first, out), end = rondo_smaller(inside.last, out + length);
    if (begin >= end || !row_of_tap(w, (first + i) / width, &at, &y)) {
      memset(to + i, 0, length * sizeof *to);
      continue;
    }
    (void)rondo_window_tap(w, RONDO_WIDTH, begin, at.across, &x);
    memset(to + i, 0, (begin - out) * sizeof *to);
    load_line(d, plane + y * w->in[RONDO_WIDTH] + x, w->stride[RONDO_WIDTH], end - begin, to + i + begin - out);
    memset(to + i + end - out, 0, (out + length - end) * sizeof *to);
  }
}

/* For the image's elements first .. first + count - 1, the values of the windows whose tap covers them; else zero. */
static void gather_windows(const conv_data *d, size_t plane, size_t tap, size_t first, size_t count, float *to) {
  const rondo_window *w = &d->shape->window;
  const tap_place at = place_of(w, tap);
  const size_t width = w->in[RONDO_WIDTH], step = w->stride[RONDO_WIDTH], from = at.across * w->dilation[RONDO_WIDTH];
  const rondo_span inside = rondo_window_inside(w, RONDO_WIDTH, at.across);
  if (is_shift(w)) {
    const size_t shift = shift_of(w, at.down, at.across);
    const rondo_span rows = rondo_window_inside(w, RONDO_HEIGHT, at.down);
    gather_shifted(d, plane, 0 - shift, move_span(rows, at.down * w->dilation[RONDO_HEIGHT] - w->padding[RONDO_HEIGHT]),
                   move_span(inside, from - w->padding[RONDO_WIDTH]), first, count, to);
    return;
  }
  memset(to, 0, count * sizeof *to);
  for (size_t i = 0, length; i < count; i += length) {
    const size_t in = (first + i) % width, padded = in + w->padding[RONDO_WIDTH];
    size_t y = 0;
    length = rondo_smaller(width - in, count - i);
    if (!row_of_windows(w, (first + i) / width, &at, &y) || padded + length <= from) continue;
    const size_t begin = rondo_larger(inside.first, padded > from ? rondo_divide_up(padded - from, step) : 0);
    const size_t end = rondo_smaller(inside.last, rondo_divide_up(padded + length - from, step));
    const size_t line = plane + y * w->out[RONDO_WIDTH];
    const size_t shift = i + from - padded; /* modulo 2^64: window 0 may be before */
    if (step == 1 && begin < end) load_line(d, line + begin, 1, end - begin, to + (begin + shift));
    for (size_t out = begin; step > 1 && out < end; out++)
      to[out * step + shift] = rondo_load_one(d->type, d->image, line + out);
  }
}

/* A product of one row. A call of a library would cost more. */
static void multiply_row(const conv_tile *t, size_t depth, const float *left, const float *right, bool transpose_b,
                         float *sums) {
  for (size_t k = 0; k < depth && !transpose_b; k++)
    rondo_add_scaled(right + k * t->columns, left[k], sums, t->columns);
  for (size_t k = 0; k < t->columns && transpose_b; k++) sums[k] += rondo_row_dot(left, right + k * depth, depth);
}

/* Tiles of fewer multiplications are the own kernel's, such as those of small groups. */
#define LIBRARY_LEAST ((size_t)1 << 20)

/* sums += left · right; `left` has rows of `stride` elements. */
static void multiply(const conv_tile *t, size_t depth, const float *left, size_t stride, bool transpose_a,
                     const float *right, bool transpose_b, float *sums) {
  if (t->rows == 1) {
    multiply_row(t, depth, left, right, transpose_b, sums);
    return;
  }
  const rondo_gemm gemm = {t->rows,
                           t->columns,
                           depth,
                           .a = {left, stride, transpose_a},
                           .b = {right, transpose_b ? depth : t->columns, transpose_b},
                           .c = {sums, t->columns, true}};
  if (transpose_a || transpose_b || t->rows * t->columns * depth >= LIBRARY_LEAST)
    rondo_gemm_run(&gemm);
  else
    rondo_gemm_run_small(&(rondo_gemm_small){gemm.m, gemm.n, gemm.k, gemm.a, gemm.b, gemm.c, NULL, false});
}

/* Rows of `depth` elements, `stride` apart in memory, as floats: in place, or converted into `buffer`. *out_stride is
 * the stride of the result. */
static const float *load_rows(rondo_type type, const void *memory, size_t first, size_t stride, size_t rows,
                              size_t depth, float *buffer, size_t *out_stride) {
  *out_stride = type == RONDO_F32 ? stride : depth;
  if (type == RONDO_F32) return (const float *)memory + first;
  for (size_t i = 0; i < rows; i++) (void)rondo_load_chunk(type, memory, first + i * stride, depth, buffer + i * depth);
  return buffer;
}

/* The first element of the tile in the result. */
static size_t corner_of(const conv_data *d, const conv_tile *t) {
  return (t->product * d->product.rows + t->row) * d->product.columns + t->column;
}

/* With the parts of a CUDA kernel: the first part has the sum of all, and the others are 0. */
static void store_parts(const conv_data *d, const conv_tile *t, const float *sums) {
  const size_t results = d->product.count * d->product.rows * d->product.columns;
  for (size_t i = 0; i < t->rows * t->columns; i++) {
    const size_t at = corner_of(d, t) + i / t->columns * d->product.columns + i % t->columns;
    ((float *)d->to)[at] = sums[i];
    for (size_t part = 1; part < d->shape->parts; part++) ((float *)d->to)[part * results + at] = 0;
  }
}

static void store_tile(const conv_data *d, const conv_tile *t, const float *sums) {
  if (d->shape->parts > 1) {
    store_parts(d, t, sums);
    return;
  }
  for (size_t i = 0; i < t->rows; i++)
    rondo_store_floats(d->type, d->to, corner_of(d, t) + i * d->product.columns, t->columns, sums + i * t->columns);
}

/* Whether the windows are the images themselves, in F32. The factors are then multiplied in place. */
static bool is_pointwise(const conv_data *d) {
  const rondo_window *w = &d->shape->window;
  bool is_same = d->type == RONDO_F32 && d->shape->parts < 2 && rondo_conv_taps(d->shape) == 1;
  for (int axis = 0; axis < RONDO_WINDOW_AXES; axis++)
    is_same = is_same && w->stride[axis] == 1 && w->padding[axis] == 0 && w->in[axis] == w->out[axis];
  return is_same;
}

/* Computes each tile of the product, in place or from panels. */
static void make_tiles(const conv_data *d, rondo_blocks blocks, void (*in_place)(const conv_data *, const conv_tile *),
                       void (*from_panels)(const conv_data *, const conv_tile *)) {
  const size_t tiles = rondo_conv_tiles(d->shape, d->product);
  RONDO_EACH_TILE(number, blocks, tiles) {
    const conv_tile t = tile_at(d, number);
    (is_pointwise(d) ? in_place : from_panels)(d, &t);
  }
}

/* Forward ---------------------------------------------------------------------------------------------------------- */

/* y = activation(y + bias), for a row of a tile. */
static void end_row(rondo_activation activation, float bias, float *y, size_t count) {
  float x[EDGE];
  assert(count <= EDGE);
  for (size_t k = 0; k < count; k++) x[k] = y[k] + bias;
  rondo_activate(activation, x, y, count);
}

/* The product by a library is added to the bias; with an activation, the bias is added afterwards, in the same pass. */
static void convolve_by_library(const conv_data *d, const rondo_gemm *product, const float *bias) {
  const rondo_activation activation = (rondo_activation)d->shape->activation;
  const size_t stride = product->c.stride;
  rondo_gemm gemm = *product;
  float *corner = gemm.c.at;
  gemm.c.accumulates = bias != NULL && activation == RONDO_ACTIVATION_NONE;
  for (size_t i = 0; i < gemm.m && gemm.c.accumulates; i++) {
    for (size_t k = 0; k < gemm.n; k++) corner[i * stride + k] = bias[i];
  }
  rondo_gemm_run(&gemm);
  for (size_t i = 0; i < gemm.m && activation != RONDO_ACTIVATION_NONE; i++)
    end_row(activation, bias == NULL ? 0 : bias[i], corner + i * stride, gemm.n);
}

static void convolve_by_own_kernel(const conv_data *d, const rondo_gemm *product, const float *bias) {
  const rondo_activation activation = (rondo_activation)d->shape->activation;
  const bool rectifies = activation == RONDO_ACTIVATION_RELU;
  rondo_gemm_run_small(&(rondo_gemm_small){.m = product->m,
                                           .n = product->n,
                                           .k = product->k,
                                           .a = product->a,
                                           .b = product->b,
                                           .c = product->c,
                                           .bias = bias,
                                           .rectifies = rectifies});
  for (size_t i = 0; i < product->m && !rectifies; i++)
    rondo_activate_in_place(activation, product->c.at + i * product->c.stride, product->n);
}

/* If rows of the image are so many bytes apart, few of their elements fit into the nearest cache together. */
#define SLOW_STRIDE 128

/* y = weight x + bias, of images of one place. */
RONDO_VECTORISED(multiply_vector,
                 (const float *weight, const float *x, const float *bias, size_t rows, size_t depth, float *y),
                 (weight, x, bias, rows, depth, y)) {
  for (size_t i = 0; i < rows; i++) y[i] = rondo_row_dot(weight + i * depth, x, depth) + (bias == NULL ? 0 : bias[i]);
}

static void convolve_pointwise(const conv_data *d, const conv_tile *t) {
  const rondo_conv_product p = d->product;
  const size_t first = t->product % d->shape->groups * p.rows + t->row;
  const float *bias = d->bias == NULL ? NULL : (const float *)d->bias + first;
  if (p.columns == 1) {
    float *y = (float *)d->to + corner_of(d, t);
    multiply_vector((const float *)d->weight + first * p.depth, (const float *)d->image + t->product * p.depth, bias,
                    t->rows, p.depth, y);
    rondo_activate_in_place((rondo_activation)d->shape->activation, y, t->rows);
    return;
  }
  const rondo_gemm gemm = {
      t->rows,
      t->columns,
      p.depth,
      .a = {(const float *)d->weight + first * p.depth, p.depth, false},
      .b = {(const float *)d->image + t->product * p.depth * p.columns + t->column, p.columns, false},
      .c = {(float *)d->to + corner_of(d, t), p.columns, false}};
  const bool is_small = t->rows * t->columns * p.depth < LIBRARY_LEAST && p.columns % SLOW_STRIDE != 0;
  (is_small ? convolve_by_own_kernel : convolve_by_library)(d, &gemm, bias);
}

static void convolve(const conv_data *d, const conv_tile *t) {
  const rondo_conv_shape *s = d->shape;
  const rondo_conv_product p = d->product;
  const size_t taps = rondo_conv_taps(s), group = t->product % s->groups;
  const size_t first = group * s->out_channels + t->row;
  float left[EDGE * DEPTH], right[PANEL_ROOM], sums[EDGE * EDGE];
  for (size_t i = 0; i < t->rows; i++) {
    const float bias = d->bias == NULL ? 0.0f : rondo_load_one(d->type, d->bias, first + i);
    for (size_t k = 0; k < t->columns; k++) sums[i * t->columns + k] = bias;
  }
  for (size_t from = 0; from < p.depth; from += DEPTH) {
    const size_t depth = rondo_smaller(DEPTH, p.depth - from);
    size_t stride;
    const float *weights =
        load_rows(d->type, d->weight, first * p.depth + from, p.depth, t->rows, depth, left, &stride);
    for (size_t k = 0; k < depth; k++) {
      const size_t plane = t->product * s->in_channels + (from + k) / taps;
      gather_tap(d, plane * rondo_conv_in(s), (from + k) % taps, t->column, t->columns, right + k * t->columns);
    }
    multiply(t, depth, weights, stride, false, right, false, sums);
  }
  rondo_activate_in_place((rondo_activation)s->activation, sums, t->rows * t->columns);
  store_tile(d, t, sums);
}

void rondo_conv_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const conv_data d = {args[0],
                       type,
                       .image = RONDO_ARG(const void *, 1),
                       .weight = RONDO_ARG(const void *, 2),
                       .bias = RONDO_ARG(const void *, 3),
                       .to = RONDO_ARG(void *, 4),
                       .product = rondo_conv_forward(args[0])};
  make_tiles(&d, blocks, convolve_pointwise, convolve);
}

/* Gradients -------------------------------------------------------------------------------------------------------- */

static void make_input_gradient_pointwise(const conv_data *d, const conv_tile *t) {
  const rondo_conv_product p = d->product;
  const float *weight = (const float *)d->weight + t->product % d->shape->groups * p.depth * p.rows + t->row;
  const rondo_gemm gemm = {
      t->rows,
      t->columns,
      p.depth,
      .a = {weight, p.rows, true},
      .b = {(const float *)d->image + t->product * p.depth * p.columns + t->column, p.columns, false},
      .c = {(float *)d->to + corner_of(d, t), p.columns, false}};
  rondo_gemm_run(&gemm);
}

static void make_input_gradient(const conv_data *d, const conv_tile *t) {
  const rondo_conv_shape *s = d->shape;
  const rondo_conv_product p = d->product;
  const size_t taps = rondo_conv_taps(s), group = t->product % s->groups;
  float left[EDGE * DEPTH], right[EDGE * DEPTH], sums[EDGE * EDGE];
  memset(sums, 0, t->rows * t->columns * sizeof *sums);
  for (size_t from = 0; from < p.depth; from += DEPTH) {
    const size_t depth = rondo_smaller(DEPTH, p.depth - from);
    for (size_t k = 0; k < depth; k++) {
      const size_t out = (from + k) / taps, tap = (from + k) % taps;
      const size_t weight = ((group * s->out_channels + out) * s->in_channels + t->row) * taps + tap;
      for (size_t i = 0; i < t->rows; i++)
        left[k * t->rows + i] = rondo_load_one(d->type, d->weight, weight + i * taps);
      gather_windows(d, (t->product * s->out_channels + out) * rondo_conv_out(s), tap, t->column, t->columns,
                     right + k * t->columns);
    }
    multiply(t, depth, left, t->rows, true, right, false, sums);
  }
  store_tile(d, t, sums);
}

void rondo_conv_input_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const conv_data d = {args[0],
                       type,
                       .weight = RONDO_ARG(const void *, 1),
                       .image = RONDO_ARG(const void *, 2),
                       .to = RONDO_ARG(void *, 3),
                       .product = rondo_conv_input_gradient(args[0])};
  make_tiles(&d, blocks, make_input_gradient_pointwise, make_input_gradient);
}

/* Adds the products of an image's positions from .. from + depth - 1. */
static void add_places(const conv_data *d, const conv_tile *t, size_t image, size_t from, size_t depth, float *sums) {
  const rondo_conv_shape *s = d->shape;
  const size_t taps = rondo_conv_taps(s), product = image * s->groups + t->product;
  float left[EDGE * DEPTH], right[PANEL_ROOM];
  const size_t places = rondo_conv_out(s);
  size_t stride;
  const float *gradients = load_rows(d->type, d->weight, (product * s->out_channels + t->row) * places + from, places,
                                     t->rows, depth, left, &stride);
  for (size_t j = 0; j < t->columns; j++) {
    const size_t plane = product * s->in_channels + (t->column + j) / taps;
    gather_tap(d, plane * rondo_conv_in(s), (t->column + j) % taps, from, depth, right + j * depth);
  }
  multiply(t, depth, gradients, stride, false, right, true, sums);
}

static void make_weight_gradient_pointwise(const conv_data *d, const conv_tile *t) {
  const rondo_conv_product p = d->product;
  const size_t places = rondo_conv_out(d->shape);
  for (size_t image = 0; image < d->shape->images; image++) {
    const size_t product = image * d->shape->groups + t->product;
    const rondo_gemm gemm = {t->rows,
                             t->columns,
                             places,
                             .a = {(const float *)d->weight + (product * p.rows + t->row) * places, places, false},
                             .b = {(const float *)d->image + (product * p.columns + t->column) * places, places, true},
                             .c = {(float *)d->to + corner_of(d, t), p.columns, image > 0}};
    rondo_gemm_run(&gemm);
  }
}

static void make_weight_gradient(const conv_data *d, const conv_tile *t) {
  const rondo_conv_shape *s = d->shape;
  float sums[EDGE * EDGE];
  memset(sums, 0, t->rows * t->columns * sizeof *sums);
  for (size_t image = 0; image < s->images; image++) {
    for (size_t from = 0; from < rondo_conv_out(s); from += DEPTH)
      add_places(d, t, image, from, rondo_smaller(DEPTH, rondo_conv_out(s) - from), sums);
  }
  store_tile(d, t, sums);
}

void rondo_conv_weight_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const conv_data d = {args[0],
                       type,
                       .image = RONDO_ARG(const void *, 1),
                       .weight = RONDO_ARG(const void *, 2),
                       .to = RONDO_ARG(void *, 3),
                       .product = rondo_conv_weight_gradient(args[0])};
  make_tiles(&d, blocks, make_weight_gradient_pointwise, make_weight_gradient);
}
