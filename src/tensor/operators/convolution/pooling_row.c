/* SPDX-License-Identifier: MIT
 * Pooling on a CPU, a part of a row at a time: for each tap of the windows, the windows of the part take its elements.
 * Where windows have one element of a row, as in images whose last dimension is a block of channels, all rows of a
 * plane are computed together. Each window has its taps in their order, whatever the parts are. Threads: any.
 */
#include "tensor/operators/convolution/pooling.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Rows ------------------------------------------------------------------------------------------------------------- */

/* A part of a row of results: `count` windows from column `first` on, whose taps span at most a chunk of the image. */
typedef struct part {
  size_t channel, plane, row, first, count;
} part;

/* The windows that may contain element `in` of the image, along an axis; without a dilation, all of them do. */
static rondo_span around(const rondo_window *w, int axis, size_t in) {
  const size_t at = in + w->padding[axis], extent = w->dilation[axis] * (w->kernel[axis] - 1) + 1;
  return (rondo_span){at < extent ? 0 : (at - extent) / w->stride[axis] + 1,
                      rondo_smaller(at / w->stride[axis] + 1, w->out[axis])};
}

/* Whether a window contains an element of the image, along an axis. */
static bool contains(const rondo_window *w, int axis, size_t out, size_t in) {
  const size_t at = in + w->padding[axis], from = out * w->stride[axis];
  return at >= from && (at - from) % w->dilation[axis] == 0 && (at - from) / w->dilation[axis] < w->kernel[axis];
}

/* The windows of the part whose tap is in the image, counted from the part's first one; *out_column is the tap of the
 * first of them. */
static rondo_span windows_of_tap(const rondo_window *w, const part *p, size_t tap, size_t *out_column) {
  const rondo_span all = rondo_window_inside(w, RONDO_WIDTH, tap);
  const size_t first = rondo_larger(all.first, p->first), last = rondo_smaller(all.last, p->first + p->count);
  if (first >= last) return (rondo_span){0, 0};
  *out_column = first * w->stride[RONDO_WIDTH] + tap * w->dilation[RONDO_WIDTH] - w->padding[RONDO_WIDTH];
  return (rondo_span){first - p->first, last - p->first};
}

static size_t part_columns(const rondo_window *w) { return (RONDO_CHUNK - 1) / w->stride[RONDO_WIDTH] + 1; }

/* The parts of row `number` of the results of all channels. */
#define EACH_PART(p, s, number) for (part p = part_before(&(s)->window, number); next_part(&(s)->window, &p);)

static part part_before(const rondo_window *w, size_t number) {
  const size_t height = w->out[RONDO_HEIGHT], plane = number / height;
  return (part){plane / w->out[RONDO_DEPTH], plane % w->out[RONDO_DEPTH], number % height, 0, 0};
}

static bool next_part(const rondo_window *w, part *p) {
  p->first += p->count;
  p->count = rondo_smaller(part_columns(w), w->out[RONDO_WIDTH] - p->first);
  return p->count > 0;
}

/* The index of the part's first result. */
static size_t result_of(const rondo_window *w, const part *p) {
  const size_t row = (p->channel * w->out[RONDO_DEPTH] + p->plane) * w->out[RONDO_HEIGHT] + p->row;
  return row * w->out[RONDO_WIDTH] + p->first;
}

static size_t rows_of(const rondo_pooling_shape *s) {
  return s->channels * s->window.out[RONDO_DEPTH] * s->window.out[RONDO_HEIGHT];
}

/* Results ---------------------------------------------------------------------------------------------------------- */

/* Each `step`-th element of x replaces a smaller one. NaN is the largest. */
RONDO_INLINE void keep_larger(const float *restrict x, size_t step, size_t count, int32_t place,
                              float *restrict largest, int32_t *restrict places) {
  for (size_t i = 0; i < count; i++) {
    const float here = x[i * step], before = largest[i];
    const bool is_larger = (here > before) | ((here != here) & (before == before));
    largest[i] = is_larger ? here : before;
    places[i] = is_larger ? place + (int32_t)(i * step) : places[i];
  }
}

/* With a constant step, the compiler makes vectors. */
RONDO_VECTORISED(keep_tap, (const float *x, size_t step, size_t count, int32_t place, float *largest, int32_t *places),
                 (x, step, count, place, largest, places)) {
  if (step == 1)
    keep_larger(x, 1, count, place, largest, places);
  else if (step == 2)
    keep_larger(x, 2, count, place, largest, places);
  else
    keep_larger(x, step, count, place, largest, places);
}

static void add_tap(const float *x, size_t step, size_t count, float *sums) {
  for (size_t i = 0; i < count; i++) sums[i] += x[i * step];
}

/* Begins with the first element of each window, or with less than any element where it has none. */
static void begin_maxima(const rondo_pooling_shape *s, rondo_type type, const void *x, const part *p, float *largest,
                         int32_t *places) {
  const rondo_window *w = &s->window;
  const rondo_span planes = rondo_window_taps_inside(w, RONDO_DEPTH, p->plane);
  const rondo_span rows = rondo_window_taps_inside(w, RONDO_HEIGHT, p->row);
  for (size_t i = 0; i < p->count; i++) {
    const rondo_span columns = rondo_window_taps_inside(w, RONDO_WIDTH, p->first + i);
    largest[i] = -INFINITY;
    places[i] = -1;
    if (planes.first >= planes.last || rows.first >= rows.last || columns.first >= columns.last) continue;
    size_t z = 0, y = 0, column = 0;
    (void)rondo_window_tap(w, RONDO_DEPTH, p->plane, planes.first, &z);
    (void)rondo_window_tap(w, RONDO_HEIGHT, p->row, rows.first, &y);
    (void)rondo_window_tap(w, RONDO_WIDTH, p->first + i, columns.first, &column);
    const size_t place = (z * w->in[RONDO_HEIGHT] + y) * w->in[RONDO_WIDTH] + column;
    largest[i] = rondo_load_one(type, x, p->channel * rondo_window_in(w) + place);
    places[i] = (int32_t)place;
  }
}

/* Takes the taps in row `row` of all rows of a channel's image: into maxima, or, where places is NULL, into sums. */
static void take_row(const rondo_pooling_shape *s, rondo_type type, const void *x, const part *p, size_t row,
                     float *results, int32_t *places) {
  const rondo_window *w = &s->window;
  const size_t step = w->stride[RONDO_WIDTH];
  float buffer[RONDO_CHUNK];
  for (size_t tap = 0; tap < w->kernel[RONDO_WIDTH]; tap++) {
    size_t column = 0;
    const rondo_span windows = windows_of_tap(w, p, tap, &column);
    const size_t count = windows.last - windows.first, place = row * w->in[RONDO_WIDTH] + column;
    if (count == 0) continue;
    const float *taps =
        rondo_load_chunk(type, x, p->channel * rondo_window_in(w) + place, (count - 1) * step + 1, buffer);
    if (places != NULL)
      keep_tap(taps, step, count, (int32_t)place, results + windows.first, places + windows.first);
    else
      add_tap(taps, step, count, results + windows.first);
  }
}

static void take_taps(const rondo_pooling_shape *s, rondo_type type, const void *x, const part *p, float *results,
                      int32_t *places) {
  const rondo_window *w = &s->window;
  const rondo_span planes = rondo_window_taps_inside(w, RONDO_DEPTH, p->plane);
  const rondo_span rows = rondo_window_taps_inside(w, RONDO_HEIGHT, p->row);
  for (size_t i = planes.first; i < planes.last; i++) {
    for (size_t j = rows.first; j < rows.last; j++) {
      size_t z = 0, y = 0;
      (void)rondo_window_tap(w, RONDO_DEPTH, p->plane, i, &z);
      (void)rondo_window_tap(w, RONDO_HEIGHT, p->row, j, &y);
      take_row(s, type, x, p, z * w->in[RONDO_HEIGHT] + y, results, places);
    }
  }
}

/* The elements of a window along an axis that a mean is divided by. */
static size_t counted(const rondo_pooling_shape *s, int axis, size_t out) {
  const rondo_window *w = &s->window;
  const rondo_span taps = rondo_window_taps_inside(w, axis, out);
  if (s->counts_padding == 0) return taps.last - taps.first;
  return rondo_window_taps_before(w, axis, out, w->padding[axis] + w->in[axis] + w->after[axis]);
}

/* What a sum is multiplied with; `others`: the elements of the window along the other axes. A window without elements
 * has a sum of 0. */
static float share_of(const rondo_pooling_shape *s, size_t others, size_t column) {
  if (s->divisor != 0) return 1.0f / (float)s->divisor;
  const size_t count = others * counted(s, RONDO_WIDTH, column);
  return count == 0 ? 0.0f : 1.0f / (float)count;
}

static size_t other_elements(const rondo_pooling_shape *s, size_t plane, size_t row) {
  return s->divisor != 0 ? 1 : counted(s, RONDO_DEPTH, plane) * counted(s, RONDO_HEIGHT, row);
}

/* Planes ----------------------------------------------------------------------------------------------------------- */

/* Whether windows of F32 images have one element of each row of the image, so that a row of results is combined from
 * whole rows. `places`: of maxima. */
static bool is_by_planes(const rondo_pooling_shape *s, rondo_type type, const int32_t *places) {
  const rondo_window *w = &s->window;
  return type == RONDO_F32 && places == NULL && w->kernel[RONDO_WIDTH] == 1 && w->stride[RONDO_WIDTH] == 1 &&
         w->padding[RONDO_WIDTH] == 0 && w->after[RONDO_WIDTH] == 0;
}

/* Combines `count` rows of `width` elements, which are `step` elements apart, with those of the results. */
RONDO_INLINE void combine(const float *restrict x, size_t step, size_t width, size_t count, bool adds,
                          float *restrict y) {
  for (size_t i = 0; i < count; i++, x += step, y += width) {
    for (size_t k = 0; k < width; k++) {
      const float here = x[k], before = y[k];
      const bool is_larger = (here > before) | (here != here);
      y[k] = adds ? before + here : is_larger ? here : before;
    }
  }
}

/* The widths of blocks of channels are constants, so that the compiler makes vectors. */
RONDO_VECTORISED(combine_rows, (const float *x, size_t step, size_t width, size_t count, bool adds, float *y),
                 (x, step, width, count, adds, y)) {
  if (width == 8 && adds)
    combine(x, step, 8, count, true, y);
  else if (width == 8)
    combine(x, step, 8, count, false, y);
  else if (width == 16 && adds)
    combine(x, step, 16, count, true, y);
  else if (width == 16)
    combine(x, step, 16, count, false, y);
  else
    combine(x, step, width, count, adds, y);
}

/* Takes the taps of a plane of the image for all rows of a plane of results. */
static void take_plane(const rondo_window *w, const float *x, bool adds, float *y) {
  const size_t width = w->in[RONDO_WIDTH], stride = w->stride[RONDO_HEIGHT];
  for (size_t tap = 0; tap < w->kernel[RONDO_HEIGHT]; tap++) {
    const rondo_span rows = rondo_window_inside(w, RONDO_HEIGHT, tap);
    if (rows.first >= rows.last) continue;
    const size_t from = rows.first * stride + tap * w->dilation[RONDO_HEIGHT] - w->padding[RONDO_HEIGHT];
    combine_rows(x + from * width, stride * width, width, rows.last - rows.first, adds, y + rows.first * width);
  }
}

/* The planes of results, of all channels, in the blocks. */
static void pool_planes(const rondo_pooling_shape *s, rondo_blocks blocks, void *const *args, bool is_mean) {
  const rondo_window *w = &s->window;
  const size_t plane_in = w->in[RONDO_HEIGHT] * w->in[RONDO_WIDTH], width = w->out[RONDO_WIDTH];
  const size_t height = w->out[RONDO_HEIGHT];
  RONDO_EACH_ITEM(item, blocks, s->channels * w->out[RONDO_DEPTH]) {
    const size_t channel = item / w->out[RONDO_DEPTH], plane = item % w->out[RONDO_DEPTH];
    const float *x = RONDO_ARG(const float *, 1) + channel * rondo_window_in(w);
    float *y = RONDO_ARG(float *, 2) + item * height * width;
    for (size_t i = 0; i < height * width; i++) y[i] = is_mean ? 0 : -INFINITY;
    const rondo_span planes = rondo_window_taps_inside(w, RONDO_DEPTH, plane);
    for (size_t tap = planes.first; tap < planes.last; tap++) {
      size_t z = 0;
      (void)rondo_window_tap(w, RONDO_DEPTH, plane, tap, &z);
      take_plane(w, x + z * plane_in, is_mean, y);
    }
    for (size_t row = 0; row < height && is_mean; row++) {
      const float share = share_of(s, other_elements(s, plane, row), 0);
      for (size_t k = 0; k < width; k++) y[row * width + k] *= share;
    }
  }
}

/* Kernels ---------------------------------------------------------------------------------------------------------- */

void rondo_max_pool_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_pooling_shape *s = args[0];
  const void *x = RONDO_ARG(const void *, 1);
  void *y = RONDO_ARG(void *, 2);
  int32_t *places = RONDO_ARG(int32_t *, 3), at[RONDO_CHUNK];
  float largest[RONDO_CHUNK];
  if (is_by_planes(s, type, places)) {
    pool_planes(s, blocks, args, false);
    return;
  }
  RONDO_EACH_ITEM(i, blocks, rows_of(s)) {
    EACH_PART(p, s, i) {
      begin_maxima(s, type, x, &p, largest, at);
      take_taps(s, type, x, &p, largest, at);
      rondo_store_floats(type, y, result_of(&s->window, &p), p.count, largest);
      if (places != NULL) memcpy(places + result_of(&s->window, &p), at, p.count * sizeof *at);
    }
  }
}

void rondo_avg_pool_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_pooling_shape *s = args[0];
  const void *x = RONDO_ARG(const void *, 1);
  void *y = RONDO_ARG(void *, 2);
  float sums[RONDO_CHUNK];
  if (is_by_planes(s, type, NULL)) {
    pool_planes(s, blocks, args, true);
    return;
  }
  RONDO_EACH_ITEM(i, blocks, rows_of(s)) {
    EACH_PART(p, s, i) {
      const size_t others = other_elements(s, p.plane, p.row);
      memset(sums, 0, p.count * sizeof *sums);
      take_taps(s, type, x, &p, sums, NULL);
      for (size_t k = 0; k < p.count; k++) sums[k] *= share_of(s, others, p.first + k);
      rondo_store_floats(type, y, result_of(&s->window, &p), p.count, sums);
    }
  }
}

/* Gradients -------------------------------------------------------------------------------------------------------- */

/* A part of a row of a channel's image: the elements from `first` on. `at` is the index of the first one in the image.
 */
typedef struct image_part {
  size_t channel, plane, row, first, count, at;
} image_part;

/* Some windows of a row of results: the indices of the row's first one, and the columns. */
typedef struct window_row {
  size_t plane, row, line;
  rondo_span columns;
} window_row;

/* Adds the gradients of these windows to the maxima in the part. */
static void add_maxima(rondo_type type, const void *dy, const int32_t *places, const image_part *p,
                       const window_row *windows, float *sums) {
  for (size_t i = windows->line + windows->columns.first; i < windows->line + windows->columns.last; i++) {
    const size_t to = (size_t)places[i] - p->at;
    if (to < p->count) sums[to] += rondo_load_one(type, dy, i);
  }
}

/* The same for means. */
static void add_means(const rondo_pooling_shape *s, rondo_type type, const void *dy, const image_part *p,
                      const window_row *windows, float *sums) {
  const rondo_window *w = &s->window;
  const size_t others = other_elements(s, windows->plane, windows->row);
  for (size_t i = windows->columns.first; i < windows->columns.last; i++) {
    const rondo_span taps = rondo_window_taps_inside(w, RONDO_WIDTH, i);
    const float part_of_dy = rondo_load_one(type, dy, windows->line + i) * share_of(s, others, i);
    for (size_t tap = taps.first; tap < taps.last; tap++) {
      const size_t to =
          i * w->stride[RONDO_WIDTH] + tap * w->dilation[RONDO_WIDTH] - w->padding[RONDO_WIDTH] - p->first;
      if (to < p->count) sums[to] += part_of_dy;
    }
  }
}

/* places: the indices of the maxima; NULL: means. */
static void add_windows(const rondo_pooling_shape *s, rondo_type type, const void *dy, const int32_t *places,
                        const image_part *p, float *sums) {
  const rondo_window *w = &s->window;
  const rondo_span planes = around(w, RONDO_DEPTH, p->plane), rows = around(w, RONDO_HEIGHT, p->row);
  window_row windows = {
      .columns = {around(w, RONDO_WIDTH, p->first).first, around(w, RONDO_WIDTH, p->first + p->count - 1).last}};
  memset(sums, 0, p->count * sizeof *sums);
  for (windows.plane = planes.first; windows.plane < planes.last; windows.plane++) {
    for (windows.row = rows.first; windows.row < rows.last; windows.row++) {
      if (!contains(w, RONDO_DEPTH, windows.plane, p->plane) || !contains(w, RONDO_HEIGHT, windows.row, p->row))
        continue;
      const size_t plane = p->channel * w->out[RONDO_DEPTH] + windows.plane;
      windows.line = (plane * w->out[RONDO_HEIGHT] + windows.row) * w->out[RONDO_WIDTH];
      if (places != NULL)
        add_maxima(type, dy, places, p, &windows, sums);
      else
        add_means(s, type, dy, p, &windows, sums);
    }
  }
}

static void make_gradient(rondo_type type, rondo_blocks blocks, void *const *args, const int32_t *places) {
  const rondo_pooling_shape *s = args[0];
  const rondo_window *w = &s->window;
  const void *dy = RONDO_ARG(const void *, 1);
  void *dx = RONDO_ARG(void *, 2);
  const size_t depth = w->in[RONDO_DEPTH], height = w->in[RONDO_HEIGHT], width = w->in[RONDO_WIDTH];
  float sums[RONDO_CHUNK];
  RONDO_EACH_ITEM(i, blocks, s->channels * depth * height) {
    RONDO_EACH_CHUNK(first, count, 0, width) {
      const image_part p = {.channel = i / height / depth,
                            .plane = i / height % depth,
                            .row = i % height,
                            .first = first,
                            .count = count,
                            .at = i % (depth * height) * width + first};
      add_windows(s, type, dy, places, &p, sums);
      rondo_store_floats(type, dx, i * width + first, count, sums);
    }
  }
}

void rondo_max_pool_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  make_gradient(type, blocks, args, RONDO_ARG(const int32_t *, 3));
}

void rondo_avg_pool_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  make_gradient(type, blocks, args, NULL);
}
