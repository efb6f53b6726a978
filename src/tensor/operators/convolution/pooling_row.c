/* SPDX-License-Identifier: MIT
 * Pooling on a CPU, a part of a row at a time: for each tap of the windows, the windows of the part take its elements.
 * Where windows have one element of a row, as in images whose last dimension is a block of channels, all rows of a
 * plane are computed together. Each window has its taps in their order, whatever the parts are. Threads: any.
 */
#include "tensor/operators/convolution/pooling.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "tensor/operators/common/strided_lanes.h"

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

/* A sum, or the larger of both; NaN is the largest. */
RONDO_INLINE float combine_one(float x, float before, bool adds) {
  const bool is_larger = (x > before) | (x != x);
  return adds ? before + x : is_larger ? x : before;
}

RONDO_INLINE void combine_lanes(const float *restrict x, bool adds, float *restrict y) {
  for (size_t lane = 0; lane < RONDO_LANES; lane++) y[lane] = combine_one(x[lane], y[lane], adds);
}

RONDO_INLINE void combine_four(const float *x, size_t step, bool adds, float *y) {
  rondo_four here, before;
  memcpy(&before, y, sizeof before);
  if (step == 1)
    memcpy(&here, x, sizeof here);
  else
    here = rondo_load_pairs(x);
  const rondo_four_masks is_larger = (here > before) | (here != here);
  const rondo_four larger =
      (rondo_four)(((rondo_four_masks)here & is_larger) | ((rondo_four_masks)before & ~is_larger));
  before = adds ? before + here : larger;
  memcpy(y, &before, sizeof before);
}

/* Combines each `step`-th element of x, of which it reads none from `last` on, with the results. */
RONDO_INLINE void combine_taps_by(const float *x, const float *last, size_t step, size_t count, bool adds, float *y) {
  const size_t room = (size_t)(last - x);
  size_t i = 0;
  for (; step == 1 && i + RONDO_LANES <= count; i += RONDO_LANES) combine_lanes(x + i, adds, y + i);
  for (; step <= 2 && i + 4 <= count && (i + 4) * step <= room; i += 4) combine_four(x + i * step, step, adds, y + i);
  for (; i < count; i++) y[i] = combine_one(x[i * step], y[i], adds);
}

RONDO_VECTORISED(combine_taps, (const float *x, const float *last, size_t step, size_t count, bool adds, float *y),
                 (x, last, step, count, adds, y)) {
  if (step == 1 && adds)
    combine_taps_by(x, last, 1, count, true, y);
  else if (step == 1)
    combine_taps_by(x, last, 1, count, false, y);
  else if (step == 2 && adds)
    combine_taps_by(x, last, 2, count, true, y);
  else if (step == 2)
    combine_taps_by(x, last, 2, count, false, y);
  else
    combine_taps_by(x, last, step, count, adds, y);
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

static void begin_results(const part *p, bool adds, float *results) {
  for (size_t i = 0; i < p->count; i++) results[i] = adds ? 0.0f : -INFINITY;
}

/* What the columns of a part have in common in all rows: the windows of the first taps of a row, and their first
 * elements; how many elements of a row a mean counts. */
#define MOST_TAPS 16
typedef struct row_columns {
  bool counts;         /* for means */
  size_t first, count; /* of the part; a count of 0: of none yet */
  rondo_span windows[MOST_TAPS];
  size_t columns[MOST_TAPS];
  size_t counted[RONDO_CHUNK];
} row_columns;

/* Where results are made. */
typedef struct accumulator {
  bool adds;       /* or else takes maxima */
  float *results;  /* of a part */
  int32_t *places; /* of maxima; NULL: they are not asked for */
  const row_columns *columns;
} accumulator;

/* Takes the taps in row `row` of all rows of a channel's image. */
static void take_row(const rondo_pooling_shape *s, rondo_type type, const void *x, const part *p, size_t row,
                     const accumulator *to) {
  const rondo_window *w = &s->window;
  const size_t step = w->stride[RONDO_WIDTH], in = rondo_window_in(w);
  float buffer[RONDO_CHUNK];
  for (size_t tap = 0; tap < w->kernel[RONDO_WIDTH]; tap++) {
    size_t column = tap < MOST_TAPS ? to->columns->columns[tap] : 0;
    const rondo_span windows = tap < MOST_TAPS ? to->columns->windows[tap] : windows_of_tap(w, p, tap, &column);
    const size_t count = windows.last - windows.first, place = row * w->in[RONDO_WIDTH] + column;
    if (count == 0) continue;
    const size_t length = (count - 1) * step + 1;
    const float *taps = rondo_load_chunk(type, x, p->channel * in + place, length, buffer);
    const float *last = taps == buffer ? taps + length : taps + (in - place);
    if (to->places != NULL)
      keep_tap(taps, step, count, (int32_t)place, to->results + windows.first, to->places + windows.first);
    else
      combine_taps(taps, last, step, count, to->adds, to->results + windows.first);
  }
}

static void take_taps(const rondo_pooling_shape *s, rondo_type type, const void *x, const part *p,
                      const accumulator *to) {
  const rondo_window *w = &s->window;
  const rondo_span planes = rondo_window_taps_inside(w, RONDO_DEPTH, p->plane);
  const rondo_span rows = rondo_window_taps_inside(w, RONDO_HEIGHT, p->row);
  for (size_t i = planes.first; i < planes.last; i++) {
    for (size_t j = rows.first; j < rows.last; j++) {
      size_t z = 0, y = 0;
      (void)rondo_window_tap(w, RONDO_DEPTH, p->plane, i, &z);
      (void)rondo_window_tap(w, RONDO_HEIGHT, p->row, j, &y);
      take_row(s, type, x, p, z * w->in[RONDO_HEIGHT] + y, to);
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

/* What a sum is multiplied with; `count`: the elements of the window. One without elements has a sum of 0. */
static float share_of(const rondo_pooling_shape *s, size_t count) {
  if (s->divisor != 0) return 1.0f / (float)s->divisor;
  return count == 0 ? 0.0f : 1.0f / (float)count;
}

static size_t other_elements(const rondo_pooling_shape *s, size_t plane, size_t row) {
  return s->divisor != 0 ? 1 : counted(s, RONDO_DEPTH, plane) * counted(s, RONDO_HEIGHT, row);
}

/* Looks the columns up if the part has others than before. */
static void update_columns(const rondo_pooling_shape *s, const part *p, row_columns *columns) {
  const rondo_window *w = &s->window;
  if (columns->count == p->count && columns->first == p->first) return;
  columns->first = p->first;
  columns->count = p->count;
  for (size_t tap = 0; tap < rondo_smaller(w->kernel[RONDO_WIDTH], MOST_TAPS); tap++)
    columns->windows[tap] = windows_of_tap(w, p, tap, &columns->columns[tap]);
  for (size_t k = 0; k < p->count && columns->counts; k++) columns->counted[k] = counted(s, RONDO_WIDTH, p->first + k);
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
    size_t k = 0;
    for (; k + RONDO_LANES <= width; k += RONDO_LANES) combine_lanes(x + k, adds, y + k);
    for (; k + 4 <= width; k += 4) combine_four(x + k, 1, adds, y + k);
    for (; k < width; k++) y[k] = combine_one(x[k], y[k], adds);
  }
}

RONDO_VECTORISED(combine_rows, (const float *x, size_t step, size_t width, size_t count, bool adds, float *y),
                 (x, step, width, count, adds, y)) {
  if (adds)
    combine(x, step, width, count, true, y);
  else
    combine(x, step, width, count, false, y);
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
    RONDO_EACH_LANE(i, lane, height * width, y[i] = is_mean ? 0 : -INFINITY);
    const rondo_span planes = rondo_window_taps_inside(w, RONDO_DEPTH, plane);
    for (size_t tap = planes.first; tap < planes.last; tap++) {
      size_t z = 0;
      (void)rondo_window_tap(w, RONDO_DEPTH, plane, tap, &z);
      take_plane(w, x + z * plane_in, is_mean, y);
    }
    for (size_t row = 0; row < height && is_mean; row++) {
      const float share = share_of(s, other_elements(s, plane, row) * counted(s, RONDO_WIDTH, 0));
      RONDO_EACH_LANE(k, lane, width, y[row * width + k] *= share);
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
  row_columns columns = {.counts = false, .count = 0};
  const accumulator to = {false, largest, places == NULL ? NULL : at, &columns};
  if (is_by_planes(s, type, places)) {
    pool_planes(s, blocks, args, false);
    return;
  }
  RONDO_EACH_ITEM(i, blocks, rows_of(s)) {
    EACH_PART(p, s, i) {
      update_columns(s, &p, &columns);
      if (places != NULL)
        begin_maxima(s, type, x, &p, largest, at);
      else
        begin_results(&p, false, largest);
      take_taps(s, type, x, &p, &to);
      rondo_store_floats(type, y, result_of(&s->window, &p), p.count, largest);
      if (places != NULL) memcpy(places + result_of(&s->window, &p), at, p.count * sizeof *at);
    }
  }
}

/* Bytes: maxima of the rows of a window, then of its columns. The lowest byte is less than any other. */
RONDO_INLINE uint8_t larger_byte(uint8_t a, uint8_t b, uint8_t turned) { return (a ^ turned) > (b ^ turned) ? a : b; }

RONDO_VECTORISED(keep_larger_bytes, (const uint8_t *restrict x, uint8_t turned, uint8_t *restrict y, size_t count),
                 (x, turned, y, count)) {
  RONDO_EACH_LANE(i, lane, count, y[i] = larger_byte(x[i], y[i], turned));
}

/* Row `row` of the results of a channel, whose image is x. `buffer` has room for a row of the image. */
static void pool_bytes(const rondo_window *w, const uint8_t *x, uint8_t turned, const part *p, uint8_t *buffer,
                       uint8_t *y) {
  const size_t width = w->in[RONDO_WIDTH];
  const rondo_span planes = rondo_window_taps_inside(w, RONDO_DEPTH, p->plane);
  const rondo_span rows = rondo_window_taps_inside(w, RONDO_HEIGHT, p->row);
  memset(buffer, turned, width);
  for (size_t i = planes.first; i < planes.last; i++) {
    for (size_t j = rows.first; j < rows.last; j++) {
      size_t plane = 0, row = 0;
      (void)rondo_window_tap(w, RONDO_DEPTH, p->plane, i, &plane);
      (void)rondo_window_tap(w, RONDO_HEIGHT, p->row, j, &row);
      keep_larger_bytes(x + (plane * w->in[RONDO_HEIGHT] + row) * width, turned, buffer, width);
    }
  }
  memset(y, turned, w->out[RONDO_WIDTH]);
  for (size_t tap = 0; tap < w->kernel[RONDO_WIDTH]; tap++) {
    const rondo_span columns = rondo_window_inside(w, RONDO_WIDTH, tap);
    for (size_t i = columns.first; i < columns.last; i++)
      y[i] = larger_byte(buffer[i * w->stride[RONDO_WIDTH] + tap * w->dilation[RONDO_WIDTH] - w->padding[RONDO_WIDTH]],
                         y[i], turned);
  }
}

void rondo_max_pool_bytes(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_pooling_shape *s = args[0];
  const rondo_window *w = &s->window;
  const uint8_t turned = type == RONDO_I8 ? 0x80 : 0;
  uint8_t buffer[RONDO_POOLED_BYTES];
  RONDO_EACH_ITEM(i, blocks, rows_of(s)) {
    const part p = part_before(w, i);
    pool_bytes(w, RONDO_ARG(const uint8_t *, 1) + p.channel * rondo_window_in(w), turned, &p, buffer,
               RONDO_ARG(uint8_t *, 2) + i * w->out[RONDO_WIDTH]);
  }
}

void rondo_avg_pool_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_pooling_shape *s = args[0];
  const void *x = RONDO_ARG(const void *, 1);
  void *y = RONDO_ARG(void *, 2);
  float sums[RONDO_CHUNK];
  row_columns columns = {.counts = true, .count = 0};
  const accumulator to = {true, sums, NULL, &columns};
  if (is_by_planes(s, type, NULL)) {
    pool_planes(s, blocks, args, true);
    return;
  }
  RONDO_EACH_ITEM(i, blocks, rows_of(s)) {
    EACH_PART(p, s, i) {
      const size_t others = other_elements(s, p.plane, p.row);
      update_columns(s, &p, &columns);
      begin_results(&p, true, sums);
      take_taps(s, type, x, &p, &to);
      for (size_t k = 0; k < p.count; k++) sums[k] *= share_of(s, others * columns.counted[k]);
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
    const float part_of_dy =
        rondo_load_one(type, dy, windows->line + i) * share_of(s, others * counted(s, RONDO_WIDTH, i));
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
