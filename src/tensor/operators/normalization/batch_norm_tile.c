/* SPDX-License-Identifier: MIT
 * Tiles of batch_norm on a CPU; one thread computes a part. A run has contiguous elements of an image: of one channel,
 * or one of each of the tile's channels. Sums are kept in slots, one for each element of a chunk of the run, so that
 * both cases are loops over lanes. For one channel, the slots are then added up. Threads: any.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "tensor/operators/normalization/batch_norm.h"

typedef struct norm_tile {
  size_t channel, channels;
  size_t part, first, last; /* runs first .. last - 1 */
  size_t run, slots;        /* run: elements; the last of an image may have fewer */
} norm_tile;

static norm_tile tile_at(const rondo_batch_norm_shape *s, size_t number) {
  assert(number < rondo_batch_norm_tiles(s) * s->parts);
  const size_t channel = number / s->parts * s->width, part = number % s->parts, first = part * s->share;
  const size_t channels = s->channels - channel < s->width ? s->channels - channel : s->width;
  const size_t run = s->inner == 1 ? channels : s->run, runs = s->images * s->cuts;
  return (norm_tile){.channel = channel,
                     .channels = channels,
                     .part = part,
                     .first = first,
                     .last = runs - first < s->share ? runs : first + s->share,
                     .run = run,
                     .slots = run < RONDO_CHUNK ? run : RONDO_CHUNK};
}

/* The first element of a run, and its number of elements. */
static size_t run_of(const rondo_batch_norm_shape *s, const norm_tile *t, size_t run) {
  return (rondo_batch_norm_image(s, run) * s->channels + t->channel) * s->inner + rondo_batch_norm_begin(s, run);
}
static size_t run_end(const rondo_batch_norm_shape *s, const norm_tile *t, size_t run) {
  return s->cuts == 1 ? t->run : rondo_smaller(t->run, s->inner - rondo_batch_norm_begin(s, run));
}

/* The pieces of a tile's runs, run by run: `length` elements from `first` on. */
#define EACH_PIECE(s, t, first, length)                                              \
  for (size_t run = (t)->first; run < (t)->last; run++)                              \
    for (size_t at = 0, end = run_end(s, t, run), first = run_of(s, t, run), length; \
         at < end && (length = rondo_chunk_length(at, end)) > 0; at += length, first += length)

static bool is_one_channel(const norm_tile *t) { return t->run != t->channels; }

/* For a tile of one channel: copies the first slot to all. */
static void spread(const norm_tile *t, float *slots) {
  for (size_t i = 1; i < t->slots && is_one_channel(t); i++) slots[i] = slots[0];
}

/* For a tile of one channel: sets all slots to their sum. */
static void add_up(const norm_tile *t, float *slots) {
  for (size_t i = 1; i < t->slots && is_one_channel(t); i++) slots[0] += slots[i];
  spread(t, slots);
}

/* The two numbers of a part and channel. */
static float *sums_of(const rondo_batch_norm_shape *s, float *sums, size_t channel, size_t part) {
  return sums + (channel * s->parts + part) * 2;
}

static void store_sums(const rondo_batch_norm_shape *s, const norm_tile *t, const float *first, const float *second,
                       float *sums) {
  assert(t->channels <= t->slots && t->slots <= RONDO_CHUNK);
  for (size_t k = 0; k < t->channels; k++) {
    float *pair = sums_of(s, sums, t->channel + k, t->part);
    pair[0] = first[k];
    pair[1] = second[k];
  }
}

/* Statistics ------------------------------------------------------------------------------------------------------- */

RONDO_VECTORISED(add_chunk, (const float *restrict x, float *restrict sums, size_t count), (x, sums, count)) {
  RONDO_EACH_LANE(i, lane, count, sums[i] += x[i]);
}

RONDO_VECTORISED(add_squares, (const float *restrict x, const float *restrict mean, float *restrict sums, size_t count),
                 (x, mean, sums, count)) {
  RONDO_EACH_LANE(i, lane, count, sums[i] += (x[i] - mean[i]) * (x[i] - mean[i]));
}

/* Sums x, or (x - mean)^2, in each slot. */
static void add_part(rondo_type type, const rondo_batch_norm_shape *s, const norm_tile *t, const void *x,
                     const float *mean, float *sums) {
  float buffer[RONDO_CHUNK];
  memset(sums, 0, t->slots * sizeof *sums);
  EACH_PIECE(s, t, first, length) {
    const float *chunk = rondo_load_chunk(type, x, first, length, buffer);
    if (mean == NULL) add_chunk(chunk, sums, length);
    if (mean != NULL) add_squares(chunk, mean, sums, length);
  }
  add_up(t, sums);
}

/* The elements of a channel before a run, and those of a part of a channel. */
static size_t elements_before(const rondo_batch_norm_shape *s, size_t run) {
  return rondo_batch_norm_image(s, run) * s->inner + rondo_smaller(rondo_batch_norm_begin(s, run), s->inner);
}
static float part_elements(const rondo_batch_norm_shape *s, size_t part) {
  const size_t first = part * s->share, last = rondo_smaller(first + s->share, s->images * s->cuts);
  return (float)(elements_before(s, last) - elements_before(s, first));
}

void rondo_batch_norm_statistics_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_batch_norm_shape *s = args[0];
  const void *x = RONDO_ARG(const void *, 1);
  float *sums = RONDO_ARG(float *, 2), means[RONDO_CHUNK], squares[RONDO_CHUNK];
  RONDO_EACH_ITEM(number, blocks, rondo_batch_norm_tiles(s) * s->parts) {
    const norm_tile t = tile_at(s, number);
    const float count = part_elements(s, t.part);
    add_part(type, s, &t, x, NULL, means);
    for (size_t i = 0; i < t.slots; i++) means[i] /= count;
    add_part(type, s, &t, x, means, squares);
    store_sums(s, &t, means, squares, sums);
  }
}

/* The mean and variance of a channel, from those of its parts. */
static void join_statistics(const rondo_batch_norm_shape *s, float *sums, size_t channel, float *mean,
                            float *variance) {
  const float count = (float)(s->images * s->inner);
  float sum = 0, squares = 0;
  for (size_t part = 0; part < s->parts; part++) sum += part_elements(s, part) * sums_of(s, sums, channel, part)[0];
  *mean = sum / count;
  for (size_t part = 0; part < s->parts; part++) {
    const float *pair = sums_of(s, sums, channel, part), off = pair[0] - *mean;
    squares += pair[1] + part_elements(s, part) * off * off;
  }
  *variance = squares / count;
}

/* Forward ---------------------------------------------------------------------------------------------------------- */

/* For the elements of each slot: y = (x - mean) · factor + shift. */
typedef struct norm_slots {
  float mean[RONDO_CHUNK], factor[RONDO_CHUNK], shift[RONDO_CHUNK];
} norm_slots;

RONDO_VECTORISED(normalise_chunk, (const norm_slots *slots, const float *restrict x, float *restrict y, size_t count),
                 (slots, x, y, count)) {
  const float *mean = slots->mean, *factor = slots->factor, *shift = slots->shift;
  RONDO_EACH_LANE(i, lane, count, y[i] = (x[i] - mean[i]) * factor[i] + shift[i]);
}

static void make_slots(const rondo_batch_norm_shape *s, const norm_tile *t, void *const *args, norm_slots *slots) {
  float *sums = RONDO_ARG(float *, 2);
  const float *scale = RONDO_ARG(const float *, 3), *shift = RONDO_ARG(const float *, 4);
  float *of_mean = RONDO_ARG(float *, 8), *of_variance = RONDO_ARG(float *, 9);
  for (size_t k = 0; k < t->channels; k++) {
    const size_t channel = t->channel + k;
    float mean, variance;
    if (s->is_fixed != 0) {
      mean = RONDO_ARG(const float *, 5)[channel];
      variance = RONDO_ARG(const float *, 6)[channel];
    } else {
      join_statistics(s, sums, channel, &mean, &variance);
    }
    if (of_mean != NULL && t->part == 0) of_mean[channel] = mean;
    if (of_variance != NULL && t->part == 0) of_variance[channel] = variance;
    slots->mean[k] = mean;
    slots->factor[k] = (scale != NULL ? scale[channel] : 1.0f) / sqrtf(variance + s->epsilon);
    slots->shift[k] = shift != NULL ? shift[channel] : 0;
  }
  spread(t, slots->mean);
  spread(t, slots->factor);
  spread(t, slots->shift);
}

void rondo_batch_norm_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_batch_norm_shape *s = args[0];
  const void *x = RONDO_ARG(const void *, 1);
  void *y = RONDO_ARG(void *, 7);
  float buffers[2][RONDO_CHUNK];
  norm_slots slots;
  RONDO_EACH_ITEM(number, blocks, rondo_batch_norm_tiles(s) * s->parts) {
    const norm_tile t = tile_at(s, number);
    make_slots(s, &t, args, &slots);
    EACH_PIECE(s, &t, first, length) {
      float *to = rondo_chunk_of(type, y, first, buffers[1]);
      normalise_chunk(&slots, rondo_load_chunk(type, x, first, length, buffers[0]), to, length);
      rondo_store_chunk(type, y, first, length, to);
    }
  }
}

/* Gradient --------------------------------------------------------------------------------------------------------- */

/* For the elements of each slot: h = (x - mean) · deviation; dx = factor · (g - of_g - h · of_gh). */
typedef struct gradient_slots {
  float mean[RONDO_CHUNK], deviation[RONDO_CHUNK], factor[RONDO_CHUNK], of_g[RONDO_CHUNK], of_gh[RONDO_CHUNK];
} gradient_slots;

RONDO_VECTORISED(add_products,
                 (const gradient_slots *slots, const float *restrict x, const float *restrict dy, float *restrict g,
                  float *restrict gh, size_t count),
                 (slots, x, dy, g, gh, count)) {
  const float *mean = slots->mean, *deviation = slots->deviation;
  RONDO_EACH_LANE(i, lane, count, g[i] += dy[i]; gh[i] += dy[i] * ((x[i] - mean[i]) * deviation[i]));
}

RONDO_VECTORISED(gradient_chunk,
                 (const gradient_slots *slots, const float *restrict x, const float *restrict dy, float *restrict dx,
                  size_t count),
                 (slots, x, dy, dx, count)) {
  const float *mean = slots->mean, *deviation = slots->deviation, *factor = slots->factor;
  const float *of_g = slots->of_g, *of_gh = slots->of_gh;
  RONDO_EACH_LANE(i, lane, count, dx[i] = factor[i] * (dy[i] - of_g[i] - (x[i] - mean[i]) * deviation[i] * of_gh[i]));
}

static void make_statistics_slots(const rondo_batch_norm_shape *s, const norm_tile *t, void *const *args,
                                  gradient_slots *slots) {
  const float *mean = RONDO_ARG(const float *, 3), *variance = RONDO_ARG(const float *, 4);
  for (size_t k = 0; k < t->channels; k++) {
    slots->mean[k] = mean[t->channel + k];
    slots->deviation[k] = 1.0f / sqrtf(variance[t->channel + k] + s->epsilon);
  }
  spread(t, slots->mean);
  spread(t, slots->deviation);
}

void rondo_batch_norm_gradient_sums_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_batch_norm_shape *s = args[0];
  const void *x = RONDO_ARG(const void *, 1), *dy = RONDO_ARG(const void *, 2);
  float buffers[2][RONDO_CHUNK], g[RONDO_CHUNK], gh[RONDO_CHUNK];
  gradient_slots slots;
  RONDO_EACH_ITEM(number, blocks, rondo_batch_norm_tiles(s) * s->parts) {
    const norm_tile t = tile_at(s, number);
    make_statistics_slots(s, &t, args, &slots);
    memset(g, 0, sizeof g);
    memset(gh, 0, sizeof gh);
    EACH_PIECE(s, &t, first, length) {
      add_products(&slots, rondo_load_chunk(type, x, first, length, buffers[0]),
                   rondo_load_chunk(type, dy, first, length, buffers[1]), g, gh, length);
    }
    add_up(&t, g);
    add_up(&t, gh);
    store_sums(s, &t, g, gh, RONDO_ARG(float *, 5));
  }
}

/* Adds the sums of the parts for each channel: they are the gradients of shift and scale. */
static void make_gradient_slots(const rondo_batch_norm_shape *s, const norm_tile *t, void *const *args,
                                gradient_slots *slots) {
  float *sums = RONDO_ARG(float *, 5), *dscale = RONDO_ARG(float *, 8), *dshift = RONDO_ARG(float *, 9);
  const float *scale = RONDO_ARG(const float *, 6);
  const float count = (float)(s->images * s->inner);
  make_statistics_slots(s, t, args, slots);
  for (size_t k = 0; k < t->channels; k++) {
    const size_t channel = t->channel + k;
    float g = 0, gh = 0;
    for (size_t part = 0; part < s->parts; part++) {
      g += sums_of(s, sums, channel, part)[0];
      gh += sums_of(s, sums, channel, part)[1];
    }
    if (dscale != NULL && t->part == 0) dscale[channel] = gh;
    if (dshift != NULL && t->part == 0) dshift[channel] = g;
    slots->factor[k] = (scale != NULL ? scale[channel] : 1.0f) * slots->deviation[k];
    slots->of_g[k] = s->is_fixed != 0 ? 0 : g / count;
    slots->of_gh[k] = s->is_fixed != 0 ? 0 : gh / count;
  }
  spread(t, slots->factor);
  spread(t, slots->of_g);
  spread(t, slots->of_gh);
}

void rondo_batch_norm_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_batch_norm_shape *s = args[0];
  const void *x = RONDO_ARG(const void *, 1), *dy = RONDO_ARG(const void *, 2);
  void *dx = RONDO_ARG(void *, 7);
  float buffers[3][RONDO_CHUNK];
  gradient_slots slots;
  RONDO_EACH_ITEM(number, blocks, rondo_batch_norm_tiles(s) * s->parts) {
    const norm_tile t = tile_at(s, number);
    make_gradient_slots(s, &t, args, &slots);
    EACH_PIECE(s, &t, first, length) {
      float *to = rondo_chunk_of(type, dx, first, buffers[2]);
      gradient_chunk(&slots, rondo_load_chunk(type, x, first, length, buffers[0]),
                     rondo_load_chunk(type, dy, first, length, buffers[1]), to, length);
      rondo_store_chunk(type, dx, first, length, to);
    }
  }
}
