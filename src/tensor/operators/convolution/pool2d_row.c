/* SPDX-License-Identifier: MIT
 * Pooling on a CPU, a part of a row at a time: for each tap of the windows, the windows of the part take its elements.
 * Each window has its taps in their order, whatever the parts are. Threads: any.
 */
#include "tensor/operators/convolution/pool2d.h"

#include <assert.h>
#include <string.h>

/* Rows ------------------------------------------------------------------------------------------------------------- */

/* A part of a row of results: `count` windows from column `first` on, whose taps span at most a chunk of the image. */
typedef struct part {
  size_t plane, row, first, count;
  rondo_span rows; /* of the image, in the windows */
} part;

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* The elements of the image in window `out`, along an axis. */
static rondo_span inside(const rondo_window *w, int axis, size_t out) {
  const size_t from = out * w->stride[axis], to = from + w->kernel[axis];
  return (rondo_span){from > w->padding[axis] ? from - w->padding[axis] : 0,
                      smaller(to - w->padding[axis], w->in[axis])};
}

/* The windows that contain element `in` of the image, along an axis. */
static rondo_span around(const rondo_window *w, int axis, size_t in) {
  const size_t at = in + w->padding[axis];
  return (rondo_span){at < w->kernel[axis] ? 0 : (at - w->kernel[axis]) / w->stride[axis] + 1,
                      smaller(at / w->stride[axis] + 1, w->out[axis])};
}

/* The windows of the part whose tap is in the image, counted from the part's first one; *out_column is the tap of the
 * first of them. */
static rondo_span windows_of_tap(const rondo_window *w, const part *p, size_t tap, size_t *out_column) {
  const rondo_span all = rondo_window_inside(w, RONDO_WIDTH, tap);
  const size_t first = all.first > p->first ? all.first : p->first, last = smaller(all.last, p->first + p->count);
  if (first >= last) return (rondo_span){0, 0};
  *out_column = first * w->stride[RONDO_WIDTH] + tap - w->padding[RONDO_WIDTH];
  return (rondo_span){first - p->first, last - p->first};
}

static size_t part_columns(const rondo_window *w) { return (RONDO_CHUNK - 1) / w->stride[RONDO_WIDTH] + 1; }

#define EACH_PART(p, s, number)                                                                                     \
  for (part p = {(number) / (s)->window.out[RONDO_HEIGHT], (number) % (s)->window.out[RONDO_HEIGHT], 0, 0, {0, 0}}; \
       next_part(&(s)->window, &p);)

/* Begins with the first part after the one of a count of 0. */
static bool next_part(const rondo_window *w, part *p) {
  p->first += p->count;
  p->count = smaller(part_columns(w), w->out[RONDO_WIDTH] - p->first);
  p->rows = inside(w, RONDO_HEIGHT, p->row);
  return p->count > 0;
}

static size_t in_of(const rondo_pool2d_shape *s) { return s->window.in[RONDO_HEIGHT] * s->window.in[RONDO_WIDTH]; }
static size_t out_of(const rondo_pool2d_shape *s) { return s->window.out[RONDO_HEIGHT] * s->window.out[RONDO_WIDTH]; }

/* The index of the part's first result. */
static size_t result_of(const rondo_pool2d_shape *s, const part *p) {
  return p->plane * out_of(s) + p->row * s->window.out[RONDO_WIDTH] + p->first;
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

/* Begins with the first element of each window. */
static void begin_maxima(const rondo_pool2d_shape *s, rondo_type type, const void *x, const part *p, float *largest,
                         int32_t *places) {
  for (size_t i = 0; i < p->count; i++) {
    const size_t column = inside(&s->window, RONDO_WIDTH, p->first + i).first;
    const size_t place = p->rows.first * s->window.in[RONDO_WIDTH] + column;
    largest[i] = rondo_load_one(type, x, p->plane * in_of(s) + place);
    places[i] = (int32_t)place;
  }
}

/* Takes all taps: into maxima, or, where places is NULL, into sums. */
static void take_taps(const rondo_pool2d_shape *s, rondo_type type, const void *x, const part *p, float *results,
                      int32_t *places) {
  const rondo_window *w = &s->window;
  const size_t step = w->stride[RONDO_WIDTH];
  float buffer[RONDO_CHUNK];
  for (size_t row = p->rows.first; row < p->rows.last; row++) {
    for (size_t tap = 0; tap < w->kernel[RONDO_WIDTH]; tap++) {
      size_t column = 0;
      const rondo_span windows = windows_of_tap(w, p, tap, &column);
      const size_t count = windows.last - windows.first, place = row * w->in[RONDO_WIDTH] + column;
      if (count == 0) continue;
      const float *taps = rondo_load_chunk(type, x, p->plane * in_of(s) + place, (count - 1) * step + 1, buffer);
      if (places != NULL)
        keep_tap(taps, step, count, (int32_t)place, results + windows.first, places + windows.first);
      else
        add_tap(taps, step, count, results + windows.first);
    }
  }
}

/* What each element of a window is multiplied with, in a mean. */
static float share_of(const rondo_pool2d_shape *s, size_t row, size_t column) {
  const rondo_window *w = &s->window;
  const rondo_span rows = inside(w, RONDO_HEIGHT, row), columns = inside(w, RONDO_WIDTH, column);
  const size_t whole = w->kernel[RONDO_HEIGHT] * w->kernel[RONDO_WIDTH];
  const size_t part_inside = (rows.last - rows.first) * (columns.last - columns.first);
  return 1.0f / (float)(s->counts_padding != 0 ? whole : part_inside);
}

void rondo_max_pool2d_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_pool2d_shape *s = args[0];
  const void *x = RONDO_ARG(const void *, 1);
  void *y = RONDO_ARG(void *, 2);
  int32_t *places = RONDO_ARG(int32_t *, 3), at[RONDO_CHUNK];
  float largest[RONDO_CHUNK];
  RONDO_EACH_ITEM(i, blocks, s->planes * s->window.out[RONDO_HEIGHT]) {
    EACH_PART(p, s, i) {
      begin_maxima(s, type, x, &p, largest, at);
      take_taps(s, type, x, &p, largest, at);
      rondo_store_floats(type, y, result_of(s, &p), p.count, largest);
      if (places != NULL) memcpy(places + result_of(s, &p), at, p.count * sizeof *at);
    }
  }
}

void rondo_avg_pool2d_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_pool2d_shape *s = args[0];
  const void *x = RONDO_ARG(const void *, 1);
  void *y = RONDO_ARG(void *, 2);
  float sums[RONDO_CHUNK];
  RONDO_EACH_ITEM(i, blocks, s->planes * s->window.out[RONDO_HEIGHT]) {
    EACH_PART(p, s, i) {
      memset(sums, 0, p.count * sizeof *sums);
      take_taps(s, type, x, &p, sums, NULL);
      for (size_t k = 0; k < p.count; k++) sums[k] *= share_of(s, p.row, p.first + k);
      rondo_store_floats(type, y, result_of(s, &p), p.count, sums);
    }
  }
}

/* Gradients -------------------------------------------------------------------------------------------------------- */

/* A part of a row of the image: the elements from `first` on. `at` is the index of the first one in its plane. */
typedef struct image_part {
  size_t plane, row, first, count, at;
} image_part;

/* Adds the gradients of a row of windows, those of columns `windows`, to the maxima in the part. */
static void add_maxima(const rondo_pool2d_shape *s, rondo_type type, const void *dy, const int32_t *places,
                       const image_part *p, size_t row, rondo_span windows, float *sums) {
  const size_t line = p->plane * out_of(s) + row * s->window.out[RONDO_WIDTH];
  for (size_t i = line + windows.first; i < line + windows.last; i++) {
    const size_t to = (size_t)places[i] - p->at;
    if (to < p->count) sums[to] += rondo_load_one(type, dy, i);
  }
}

/* The same for means. */
static void add_means(const rondo_pool2d_shape *s, rondo_type type, const void *dy, const image_part *p, size_t row,
                      rondo_span windows, float *sums) {
  const size_t line = p->plane * out_of(s) + row * s->window.out[RONDO_WIDTH];
  for (size_t i = windows.first; i < windows.last; i++) {
    const rondo_span columns = inside(&s->window, RONDO_WIDTH, i);
    const float part_of_dy = rondo_load_one(type, dy, line + i) * share_of(s, row, i);
    const size_t first = columns.first > p->first ? columns.first : p->first;
    const size_t last = smaller(columns.last, p->first + p->count);
    for (size_t k = first; k < last; k++) sums[k - p->first] += part_of_dy;
  }
}

/* places: the indices of the maxima; NULL: means. */
static void add_windows(const rondo_pool2d_shape *s, rondo_type type, const void *dy, const int32_t *places,
                        const image_part *p, float *sums) {
  const rondo_window *w = &s->window;
  const rondo_span rows = around(w, RONDO_HEIGHT, p->row);
  const rondo_span windows = {around(w, RONDO_WIDTH, p->first).first,
                              around(w, RONDO_WIDTH, p->first + p->count - 1).last};
  memset(sums, 0, p->count * sizeof *sums);
  for (size_t row = rows.first; row < rows.last; row++) {
    if (places != NULL)
      add_maxima(s, type, dy, places, p, row, windows, sums);
    else
      add_means(s, type, dy, p, row, windows, sums);
  }
}

static void make_gradient(rondo_type type, rondo_blocks blocks, void *const *args, const int32_t *places) {
  const rondo_pool2d_shape *s = args[0];
  const void *dy = RONDO_ARG(const void *, 1);
  void *dx = RONDO_ARG(void *, 2);
  const size_t height = s->window.in[RONDO_HEIGHT], width = s->window.in[RONDO_WIDTH];
  float sums[RONDO_CHUNK];
  RONDO_EACH_ITEM(i, blocks, s->planes * height) {
    RONDO_EACH_CHUNK(first, count, 0, width) {
      const image_part p = {i / height, i % height, first, count, i % height * width + first};
      add_windows(s, type, dy, places, &p, sums);
      rondo_store_floats(type, dx, p.plane * in_of(s) + p.at, count, sums);
    }
  }
}

void rondo_max_pool2d_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  make_gradient(type, blocks, args, RONDO_ARG(const int32_t *, 3));
}

void rondo_avg_pool2d_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  make_gradient(type, blocks, args, NULL);
}
