/* SPDX-License-Identifier: MIT
 * Depthwise convolutions on a CPU: each group has one input channel and one output channel, which is too little for a
 * matrix product.
 *
 * Results are computed in patches. The input of a patch's windows is gathered as floats into a buffer on the stack,
 * with zeros for the padding. Every stride-th row and column go into a plane of their own, a phase. Rows of planes and
 * of sums have the same length, so one tap of all windows is contiguous: sums[i] += weight[t] * buffer[offset[t] + i],
 * over the taps in their order. Sums between two rows belong to no window and are ignored.
 *
 * For dx the roles are exchanged: dy has one plane, and each phase of dx uses some of the taps. Threads: any.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "tensor/operators/common/operator_rows.h"
#include "tensor/operators/common/strided_lanes.h"
#include "tensor/operators/convolution/conv.h"
#include "tensor/operators/elementwise/unary_operators.h"

#define EXTENT RONDO_CONV_DEPTHWISE_EXTENT
#define STRIDE RONDO_CONV_DEPTHWISE_STRIDE
#define WIDEST 128 /* columns of a patch times the stride */
#define ROOM 8192  /* elements of all planes */
#define SLACK (RONDO_LANES + EXTENT)

_Static_assert((STRIDE + EXTENT) * (WIDEST + EXTENT) <= ROOM, "a patch has a row at least");
_Static_assert(WIDEST + EXTENT <= RONDO_CHUNK, "a row of a plane is a chunk");

/* A part of the results; counted in windows, or for dx in strides. */
typedef struct patch {
  size_t row, column, rows, columns;
  size_t reach[RONDO_WINDOW_AXES]; /* rows and columns of a plane beyond the patch that its windows read */
  size_t pitch, plane;             /* elements of a plane's row, and of a plane */
} patch;

/* What is gathered: planes of an image, of this size. */
typedef struct source {
  rondo_type type;
  const void *image;
  const size_t *size;
} source;

typedef struct tap {
  size_t offset;
  float weight;
} tap;

/* Computes `count` sums, rounded up to whole lanes. */
RONDO_VECTORISED(correlate,
                 (const float *restrict buffer, const tap *taps, size_t tap_count, float first, size_t count,
                  float *restrict sums),
                 (buffer, taps, tap_count, first, count, sums)) {
  for (size_t i = 0; i < count; i += RONDO_LANES) {
    float lanes[RONDO_LANES];
    for (size_t lane = 0; lane < RONDO_LANES; lane++) lanes[lane] = first;
    for (size_t t = 0; t < tap_count; t++) {
      const float *x = buffer + taps[t].offset + i, weight = taps[t].weight;
      for (size_t lane = 0; lane < RONDO_LANES; lane++) lanes[lane] += weight * x[lane];
    }
    memcpy(sums + i, lanes, sizeof lanes);
  }
}

RONDO_VECTORISED(multiply_rows, (const float *x, const float *y, size_t rows, size_t columns, size_t pitch, float *sum),
                 (x, y, rows, columns, pitch, sum)) {
  for (size_t i = 0; i < rows; i++) *sum += rondo_row_dot(x + i * pitch, y + i * pitch, columns);
}

/* Patches ---------------------------------------------------------------------------------------------------------- */

static size_t reach_of(const rondo_window *w, int axis) {
  return (w->kernel[axis] - 1) * w->dilation[axis] / w->stride[axis];
}

static size_t widest_of(const rondo_window *w, size_t width) {
  return rondo_smaller(width, WIDEST / w->stride[RONDO_WIDTH]);
}

static size_t tallest_of(const rondo_window *w, size_t height, size_t width) {
  const size_t planes = w->stride[RONDO_HEIGHT] * w->stride[RONDO_WIDTH];
  const size_t pitch = widest_of(w, width) + reach_of(w, RONDO_WIDTH);
  return rondo_smaller(height, ROOM / (planes * pitch) - reach_of(w, RONDO_HEIGHT));
}

/* Patch `number` of results [height, width], in row-major order. */
static patch patch_at(const rondo_window *w, size_t height, size_t width, size_t number) {
  const size_t tallest = tallest_of(w, height, width), widest = widest_of(w, width);
  const size_t across = rondo_divide_up(width, widest);
  patch p = {.row = number / across * tallest,
             .column = number % across * widest,
             .reach = {[RONDO_HEIGHT] = reach_of(w, RONDO_HEIGHT), [RONDO_WIDTH] = reach_of(w, RONDO_WIDTH)}};
  p.rows = rondo_smaller(tallest, height - p.row);
  p.columns = rondo_smaller(widest, width - p.column);
  p.pitch = p.columns + p.reach[RONDO_WIDTH];
  p.plane = (p.rows + p.reach[RONDO_HEIGHT]) * p.pitch;
  assert(p.rows > 0 && p.columns > 0 && p.plane * w->stride[RONDO_HEIGHT] * w->stride[RONDO_WIDTH] <= ROOM);
  return p;
}

static size_t count_patches(const rondo_window *w, size_t height, size_t width) {
  return rondo_divide_up(height, tallest_of(w, height, width)) * rondo_divide_up(width, widest_of(w, width));
}

/* dx is split in strides, from the first element of the padded image to the last. */
static size_t first_stride(const rondo_window *w, int axis) { return w->padding[axis] / w->stride[axis]; }

static size_t count_strides(const rondo_window *w, int axis) {
  return (w->padding[axis] + w->in[axis] - 1) / w->stride[axis] - first_stride(w, axis) + 1;
}

static size_t forward_patches(const rondo_window *w) {
  return count_patches(w, w->out[RONDO_HEIGHT], w->out[RONDO_WIDTH]);
}

static size_t gradient_patches(const rondo_window *w) {
  return count_patches(w, count_strides(w, RONDO_HEIGHT), count_strides(w, RONDO_WIDTH));
}

/* Gathering -------------------------------------------------------------------------------------------------------- */

/* The elements of a line first <= i < last whose columns column + i step are in the image. */
static rondo_span columns_inside(int64_t width, int64_t column, int64_t step, size_t count) {
  const size_t fits = column < width ? (size_t)((width - column + step - 1) / step) : 0;
  return (rondo_span){column < 0 ? (size_t)((step - 1 - column) / step) : 0, rondo_smaller(fits, count)};
}

/* The plane's elements (row, column), (row, column + step), .., at most a chunk of them; zeros outside of the image. */
static void gather_line(const source *s, size_t plane, int64_t row, int64_t column, int64_t step, size_t count,
                        float *to) {
  const int64_t width = (int64_t)s->size[RONDO_WIDTH];
  const rondo_span inside = columns_inside(width, column, step, count);
  const size_t first = inside.first, last = inside.last;
  assert(step > 0 && count <= RONDO_CHUNK);
  if (row < 0 || row >= (int64_t)s->size[RONDO_HEIGHT] || first >= last) {
    memset(to, 0, count * sizeof *to);
    return;
  }
  for (size_t i = 0; i < first; i++) to[i] = 0;
  for (size_t i = last; i < count; i++) to[i] = 0;
  const size_t from = plane + (size_t)(row * width + column + (int64_t)first * step);
  if (step == 1) {
    const float *chunk = rondo_load_chunk(s->type, s->image, from, last - first, to + first);
    if (chunk != to + first) memcpy(to + first, chunk, (last - first) * sizeof *to);
    return;
  }
  if (s->type == RONDO_F32) {
    const float *places = (const float *)s->image + from;
    for (size_t i = first; i < last; i++) to[i] = places[(i - first) * (size_t)step];
    return;
  }
  for (size_t i = first; i < last; i++) to[i] = rondo_load_one(s->type, s->image, from + (i - first) * (size_t)step);
}

/* Lines of a plane that are gathered together, from elements of F32. */
typedef struct lines {
  const float *from, *last;   /* the plane, and its end */
  size_t height, width, down; /* of the image, and from a line's row to the next one's */
  int64_t row;                /* of the first line */
  int64_t column;             /* of a line's first element */
  rondo_span inside;          /* elements of a line that the image has */
  size_t count, pitch;        /* lines, and elements of one */
} lines;

/* Whole lanes are written, so the end of a line is written after what is before it, and the next line after both. */
RONDO_INLINE void clear_lanes(float *to, size_t first, size_t last) {
  for (size_t i = first; i < last; i += RONDO_LANES)
    for (size_t lane = 0; lane < RONDO_LANES; lane++) to[i + lane] = 0;
}

RONDO_INLINE void gather_lines_by(const lines *l, size_t step, float *to) {
  for (size_t i = 0; i < l->count; i++, to += l->pitch) {
    const int64_t row = l->row + (int64_t)(i * l->down);
    if (row < 0 || row >= (int64_t)l->height || l->inside.first >= l->inside.last) {
      clear_lanes(to, 0, l->pitch);
      continue;
    }
    for (size_t k = 0; k < l->inside.first; k++) to[k] = 0;
    const float *from = l->from + row * (int64_t)l->width + l->column + (int64_t)(l->inside.first * step);
    rondo_copy_strided(from, l->last, step, l->inside.last - l->inside.first, to + l->inside.first);
    if (l->inside.last < l->pitch) clear_lanes(to, l->inside.last, l->pitch);
  }
}

/* The steps are constants, for which the copies are vectorised. `to` has SLACK elements after the lines. */
RONDO_VECTORISED(gather_lines, (const lines *l, size_t step, float *to), (l, step, to)) {
  if (step == 1)
    gather_lines_by(l, 1, to);
  else if (step == 2)
    gather_lines_by(l, 2, to);
  else
    gather_lines_by(l, step, to);
}

static void gather_typed_lines(const source *s, const lines *l, size_t plane, size_t step, float *to) {
  for (size_t i = 0; i < l->count; i++)
    gather_line(s, plane, l->row + (int64_t)(i * l->down), l->column, (int64_t)step, l->pitch, to + i * l->pitch);
}

/* All phases of the input of the patch's windows. */
static void gather_phases(const source *s, const rondo_window *w, const patch *p, size_t plane, float *buffer) {
  const size_t down = w->stride[RONDO_HEIGHT], across = w->stride[RONDO_WIDTH];
  const float *from = s->type == RONDO_F32 ? (const float *)s->image + plane : NULL;
  lines l = {.from = from,
             .last = from == NULL ? NULL : from + s->size[RONDO_HEIGHT] * s->size[RONDO_WIDTH],
             .height = s->size[RONDO_HEIGHT],
             .width = s->size[RONDO_WIDTH],
             .down = down,
             .count = p->rows + p->reach[RONDO_HEIGHT],
             .pitch = p->pitch};
  for (size_t phase = 0; phase < down * across; phase++) {
    l.row = (int64_t)(p->row * down + phase / across) - (int64_t)w->padding[RONDO_HEIGHT];
    l.column = (int64_t)(p->column * across + phase % across) - (int64_t)w->padding[RONDO_WIDTH];
    l.inside = columns_inside((int64_t)l.width, l.column, (int64_t)across, l.pitch);
    if (from != NULL)
      gather_lines(&l, across, buffer + phase * p->plane);
    else
      gather_typed_lines(s, &l, plane, across, buffer + phase * p->plane);
  }
  memset(buffer + down * across * p->plane, 0, SLACK * sizeof *buffer);
}

/* Sets the offset of each tap in these planes. */
static void place_taps(const rondo_window *w, const patch *p, tap *taps) {
  const size_t down = w->stride[RONDO_HEIGHT], across = w->stride[RONDO_WIDTH];
  assert(w->kernel[RONDO_HEIGHT] <= EXTENT && w->kernel[RONDO_WIDTH] <= EXTENT);
  for (size_t i = 0; i < w->kernel[RONDO_HEIGHT]; i++) {
    const size_t row = i * w->dilation[RONDO_HEIGHT];
    for (size_t j = 0; j < w->kernel[RONDO_WIDTH]; j++) {
      const size_t column = j * w->dilation[RONDO_WIDTH];
      (taps++)->offset = (row % down * across + column % across) * p->plane + row / down * p->pitch + column / across;
    }
  }
}

/* Patches of one shape have the same offsets. `*held`: the patch for which they were set last. */
static void update_taps(const rondo_window *w, const patch *p, patch *held, tap *taps) {
  if (p->pitch != held->pitch || p->plane != held->plane) place_taps(w, p, taps);
  *held = *p;
}

/* Forward ---------------------------------------------------------------------------------------------------------- */

static void convolve(const source *x, const rondo_conv_shape *s, const patch *p, size_t plane, const tap *taps,
                     float first, void *y) {
  const rondo_window *w = &s->window;
  const size_t width = w->out[RONDO_WIDTH];
  float buffer[ROOM + SLACK], sums[ROOM + RONDO_LANES];
  gather_phases(x, w, p, plane * rondo_conv_in(s), buffer);
  correlate(buffer, taps, rondo_conv_taps(s), first, p->rows * p->pitch, sums);
  rondo_activate_in_place((rondo_activation)s->activation, sums, p->rows * p->pitch);
  for (size_t i = 0; i < p->rows; i++) {
    const size_t at = plane * rondo_conv_out(s) + (p->row + i) * width + p->column;
    rondo_store_floats(x->type, y, at, p->columns, sums + i * p->pitch);
  }
}

static void load_weights(rondo_type type, const void *weight, size_t first, size_t taps, tap *to) {
  for (size_t t = 0; t < taps; t++) to[t].weight = rondo_load_one(type, weight, first + t);
}

void rondo_conv_depthwise_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_conv_shape *s = args[0];
  const rondo_window *w = &s->window;
  const source x = {type, RONDO_ARG(const void *, 1), w->in};
  const void *weight = RONDO_ARG(const void *, 2), *bias = RONDO_ARG(const void *, 3);
  const size_t patches = forward_patches(w), count = rondo_conv_taps(s);
  tap taps[EXTENT * EXTENT];
  patch held = {.pitch = 0};
  RONDO_EACH_TILE(number, blocks, patches * s->images * s->groups) {
    const size_t plane = number / patches, group = plane % s->groups;
    const patch p = patch_at(w, w->out[RONDO_HEIGHT], w->out[RONDO_WIDTH], number % patches);
    update_taps(w, &p, &held, taps);
    load_weights(type, weight, group * count, count, taps);
    convolve(&x, s, &p, plane, taps, bias == NULL ? 0.0f : rondo_load_one(type, bias, group), RONDO_ARG(void *, 4));
  }
}

/* dx --------------------------------------------------------------------------------------------------------------- */

/* The windows that contain an element of a stride are at that stride or before it. */
static void gather_windows(const source *dy, const rondo_window *w, const patch *p, size_t plane, float *buffer) {
  const int64_t down = (int64_t)(first_stride(w, RONDO_HEIGHT) + p->row) - (int64_t)p->reach[RONDO_HEIGHT];
  const int64_t across = (int64_t)(first_stride(w, RONDO_WIDTH) + p->column) - (int64_t)p->reach[RONDO_WIDTH];
  for (size_t i = 0; i < p->rows + p->reach[RONDO_HEIGHT]; i++)
    gather_line(dy, plane, down + (int64_t)i, across, 1, p->pitch, buffer + i * p->pitch);
  memset(buffer + p->plane, 0, SLACK * sizeof *buffer);
}

/* Lists the taps that contribute to a phase of dx; returns how many there are. */
static size_t list_taps(const rondo_window *w, const patch *p, size_t down, size_t across, const tap *weights,
                        tap *taps) {
  const size_t kernel = w->kernel[RONDO_WIDTH];
  size_t count = 0;
  for (size_t t = 0; t < w->kernel[RONDO_HEIGHT] * kernel; t++) {
    const size_t row = t / kernel * w->dilation[RONDO_HEIGHT], column = t % kernel * w->dilation[RONDO_WIDTH];
    if (row % w->stride[RONDO_HEIGHT] != down || column % w->stride[RONDO_WIDTH] != across) continue;
    const size_t back = row / w->stride[RONDO_HEIGHT] * p->pitch + column / w->stride[RONDO_WIDTH];
    const size_t reach = p->reach[RONDO_HEIGHT] * p->pitch + p->reach[RONDO_WIDTH];
    assert(back <= reach && count < EXTENT * EXTENT);
    taps[count++] = (tap){reach - back, weights[t].weight};
  }
  return count;
}

/* Stores to every step-th element of dx from (row, column) on, except outside of the image, in the padding. */
static void store_line(const source *dx, size_t plane, int64_t row, int64_t column, int64_t step, size_t count,
                       const float *sums, void *to) {
  const int64_t width = (int64_t)dx->size[RONDO_WIDTH];
  if (row < 0 || row >= (int64_t)dx->size[RONDO_HEIGHT]) return;
  const rondo_span inside = columns_inside(width, column, step, count);
  const size_t first = inside.first, last = inside.last, line = plane + (size_t)(row * width);
  if (first >= last) return;
  if (step == 1) {
    rondo_store_floats(dx->type, to, line + (size_t)(column + (int64_t)first), last - first, sums + first);
    return;
  }
  for (size_t i = first; i < last; i++)
    rondo_store_one(dx->type, to, line + (size_t)(column + (int64_t)i * step), sums[i]);
}

static void store_phase(const source *dx, const rondo_window *w, const patch *p, size_t plane, size_t down,
                        size_t across, const float *sums, void *to) {
  const size_t *stride = w->stride, *padding = w->padding;
  const size_t row = (first_stride(w, RONDO_HEIGHT) + p->row) * stride[RONDO_HEIGHT] + down;
  const size_t column = (first_stride(w, RONDO_WIDTH) + p->column) * stride[RONDO_WIDTH] + across;
  for (size_t i = 0; i < p->rows; i++) {
    store_line(dx, plane, (int64_t)(row + i * stride[RONDO_HEIGHT]) - (int64_t)padding[RONDO_HEIGHT],
               (int64_t)column - (int64_t)padding[RONDO_WIDTH], (int64_t)stride[RONDO_WIDTH], p->columns,
               sums + i * p->pitch, to);
  }
}

static void make_input_gradient(const source *dy, const rondo_conv_shape *s, const patch *p, size_t plane,
                                const tap *weights, void *to) {
  const rondo_window *w = &s->window;
  const source dx = {.type = dy->type, .size = w->in};
  float buffer[ROOM + SLACK], sums[ROOM + RONDO_LANES];
  tap taps[EXTENT * EXTENT];
  gather_windows(dy, w, p, plane * rondo_conv_out(s), buffer);
  for (size_t down = 0; down < w->stride[RONDO_HEIGHT]; down++) {
    for (size_t across = 0; across < w->stride[RONDO_WIDTH]; across++) {
      const size_t count = list_taps(w, p, down, across, weights, taps);
      correlate(buffer, taps, count, 0.0f, p->rows * p->pitch, sums);
      store_phase(&dx, w, p, plane * rondo_conv_in(s), down, across, sums, to);
    }
  }
}

void rondo_conv_depthwise_input_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_conv_shape *s = args[0];
  const rondo_window *w = &s->window;
  const void *weight = RONDO_ARG(const void *, 1);
  const source dy = {type, RONDO_ARG(const void *, 2), w->out};
  const size_t height = count_strides(w, RONDO_HEIGHT), width = count_strides(w, RONDO_WIDTH);
  const size_t patches = gradient_patches(w), taps = rondo_conv_taps(s);
  tap weights[EXTENT * EXTENT];
  RONDO_EACH_TILE(number, blocks, patches * s->images * s->groups) {
    const size_t plane = number / patches;
    const patch p = patch_at(w, height, width, number % patches);
    load_weights(type, weight, plane % s->groups * taps, taps, weights);
    make_input_gradient(&dy, s, &p, plane, weights, RONDO_ARG(void *, 3));
  }
}

/* dweight ---------------------------------------------------------------------------------------------------------- */

/* The sum of the products of two planes, of which the first has zeros between its rows: one long row, which is faster
 * than several short ones. An infinite element between the rows of the second plane makes that NaN, though it belongs
 * to no product. */
static float multiply(const patch *p, const float *gradients, const float *places) {
  float sum = 0, without = 0;
  multiply_rows(gradients, places, 1, p->rows * p->pitch, 0, &sum);
  if (!isnan(sum)) return sum;
  multiply_rows(gradients, places, p->rows, p->columns, p->pitch, &without);
  return without;
}

/* Adds the gradient of each tap from the patch's windows. */
static void add_patch(const source *x, const source *dy, const rondo_conv_shape *s, const patch *p, size_t plane,
                      const tap *taps, float *sums) {
  const rondo_window *w = &s->window;
  float buffer[ROOM + SLACK], gradients[ROOM];
  gather_phases(x, w, p, plane * rondo_conv_in(s), buffer);
  for (size_t i = 0; i < p->rows; i++) {
    float *row = gradients + i * p->pitch;
    gather_line(dy, plane * rondo_conv_out(s), (int64_t)(p->row + i), (int64_t)p->column, 1, p->columns, row);
    memset(row + p->columns, 0, p->reach[RONDO_WIDTH] * sizeof *row);
  }
  for (size_t t = 0; t < rondo_conv_taps(s); t++) sums[t] += multiply(p, gradients, buffer + taps[t].offset);
}

void rondo_conv_depthwise_weight_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_conv_shape *s = args[0];
  const rondo_window *w = &s->window;
  const source x = {type, RONDO_ARG(const void *, 1), w->in}, dy = {type, RONDO_ARG(const void *, 2), w->out};
  const size_t patches = forward_patches(w), count = rondo_conv_taps(s);
  tap taps[EXTENT * EXTENT];
  patch held = {.pitch = 0};
  RONDO_EACH_TILE(group, blocks, s->groups) {
    float sums[EXTENT * EXTENT] = {0};
    for (size_t number = 0; number < s->images * patches; number++) {
      const patch p = patch_at(w, w->out[RONDO_HEIGHT], w->out[RONDO_WIDTH], number % patches);
      update_taps(w, &p, &held, taps);
      add_patch(&x, &dy, s, &p, number / patches * s->groups + group, taps, sums);
    }
    rondo_store_floats(type, RONDO_ARG(void *, 3), group * count, count, sums);
  }
}

/* Blocks ----------------------------------------------------------------------------------------------------------- */

bool rondo_conv_is_depthwise(const rondo_conv_shape *s) {
  const rondo_window *w = &s->window;
  if (s->in_channels != 1 || s->out_channels != 1 || s->parts > 1) return false;
  if (!rondo_window_is_trivial(w, RONDO_DEPTH)) return false;
  for (int axis = 0; axis < RONDO_WINDOW_AXES; axis++) {
    if ((w->kernel[axis] - 1) * w->dilation[axis] >= EXTENT || w->stride[axis] > STRIDE) return false;
  }
  return true;
}

size_t rondo_conv_depthwise_tiles(const rondo_conv_shape *s) {
  return s->images * s->groups * forward_patches(&s->window);
}

size_t rondo_conv_depthwise_input_gradient_tiles(const rondo_conv_shape *s) {
  return s->images * s->groups * gradient_patches(&s->window);
}

size_t rondo_conv_depthwise_weight_gradient_tiles(const rondo_conv_shape *s) { return s->groups; }
