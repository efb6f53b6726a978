/* SPDX-License-Identifier: MIT
 * conv_integer. On a CPU, a kernel makes planes of an image: quads of four channels, side by side as unsigned bytes,
 * with the image's zero around them. Strides divide an image into phases, each of which has a plane, so that the
 * elements that a tap reads for neighbouring results are neighbours in a plane. Then a convolution is a product of the
 * weights and the planes (integer_lanes.h): each quad of channels and each tap is an offset into the planes. No window
 * is copied. Results are computed at all positions of a plane up to the last result; those between rows are dropped.
 * Weights are in quads too: as they are stored, or as the kernel copies them. The zeros are taken off by the sums of
 * the weights and, if the weights have zeros, of the windows. Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/convolution/window.h"
#include "tensor/operators/integer/integer_lanes.h"
#include "tensor/operators/integer/integer_product.h"
#include "tensor/run/packed_state.h"

enum { X, WEIGHT };
enum { GROUPS = RONDO_WINDOW_SIZES };
_Static_assert(GROUPS + 1 == RONDO_INTEGER_TYPE, "the sizes of the attributes");

#define QUAD RONDO_QUAD

/* A scalar argument of the kernels; without padding. */
typedef struct conv_shape {
  rondo_window window;
  size_t images, groups, in_channels, out_channels; /* of a group */
  size_t is_packed;                                 /* the weights are a packed state (tensor/run/packed_state.h) */
  rondo_integer_ending ending;
} conv_shape;

/* Planes ----------------------------------------------------------------------------------------------------------- */

/* How planes lie in the workspace, after the offsets and the weights. Sizes are numbers of quads. */
typedef struct planes {
  bool fit; /* their sizes fit a size_t; else `step` and `group` mean nothing */
  size_t phases[RONDO_WINDOW_AXES], sizes[RONDO_WINDOW_AXES]; /* of a plane */
  size_t plane;                                               /* elements */
  size_t step, group;        /* from four channels to the next four; elements of a group */
  size_t quads, taps, depth; /* quads of channels of a group; offsets */
  size_t positions;          /* of a plane, up to the last result */
  size_t tile; /* 0: a plane is in one piece; else it is cut into this many positions, and pieces of all channels of a
                  group follow each other, so that a tile of results reads neighbouring pages */
} planes;

#define ALIGNMENT 64
#define AFTER_PLANES ALIGNMENT /* bytes: positions are computed in whole vectors */
#define MOST_POSITIONS 256     /* of a tile */
#define CACHED_BYTES 131072    /* of planes, for a tile */
#define ENOUGH_TILES 16

/* Whether a plane is the image: a window of one element, at each element. */
static bool is_image(const rondo_window *w) {
  bool is_same = rondo_window_taps(w) == 1;
  for (int axis = 0; axis < RONDO_WINDOW_AXES; axis++)
    is_same = is_same && w->stride[axis] == 1 && w->padding[axis] == 0 && w->in[axis] == w->out[axis];
  return is_same;
}

/* Positions of a tile: as many as a cache holds of all channels. */
static size_t tile_positions(const planes *p) {
  const size_t unit = RONDO_LANE_COLUMNS, least = 4 * unit, cached = CACHED_BYTES / QUAD / p->quads;
  const size_t most = cached < least ? least : rondo_smaller(cached / least * least, MOST_POSITIONS);
  const size_t tiles = rondo_divide_up(p->positions, most);
  return rondo_divide_up(rondo_divide_up(p->positions, tiles), unit) * unit;
}

static void multiply(planes *p, size_t by, size_t *size) { p->fit = rondo_checked_multiply(*size, by, size) && p->fit; }

static planes planes_of(const conv_shape *s) {
  const rondo_window *w = &s->window;
  planes p = {
      .fit = true, .plane = 1, .step = 1, .quads = rondo_divide_up(s->in_channels, QUAD), .taps = rondo_window_taps(w)};
  for (int axis = 0; axis < RONDO_WINDOW_AXES; axis++) {
    const size_t reach = (w->kernel[axis] - 1) * w->dilation[axis]; /* of the last tap */
    p.phases[axis] = rondo_smaller(w->stride[axis], reach + 1);
    p.sizes[axis] = w->out[axis] + reach / w->stride[axis];
    p.positions = p.positions * p.sizes[axis] + w->out[axis] - 1;
    p.plane *= p.sizes[axis]; /* it fits if `step` does, and so do the positions */
    multiply(&p, p.sizes[axis], &p.step);
    multiply(&p, p.phases[axis], &p.step);
  }
  p.positions++;
  p.depth = p.quads * p.taps;
  if (p.fit && is_image(w)) p.tile = p.step = tile_positions(&p);
  p.group = p.tile == 0 ? p.step : p.tile * rondo_divide_up(p.positions, p.tile);
  multiply(&p, p.quads, &p.group);
  return p;
}

static size_t aligned(size_t bytes) { return rondo_divide_up(bytes, ALIGNMENT) * ALIGNMENT; }

/* Whether the weights can be stored in quads: signed, with the channels of a quad side by side. */
static bool may_have_quads(const conv_shape *s) { return s->in_channels % QUAD == 0 && s->ending.b_unsigned == 0; }

/* Whether they are. */
static bool has_quads(const conv_shape *s, const planes *p) {
  return s->is_packed != 0 || (p->taps == 1 && may_have_quads(s));
}

static size_t row_bytes(const planes *p) { return p->depth * QUAD; }

/* The workspace: the offsets, the rows of all weights unless they have quads, and the planes. */
static size_t rows_at(const planes *p) { return aligned(p->depth * sizeof(uint32_t)); }
static size_t planes_at(const conv_shape *s, const planes *p) {
  return rows_at(p) + (has_quads(s, p) ? 0 : aligned(s->groups * s->out_channels * row_bytes(p)));
}

/* The planes of a group of an image, and where those of a tile begin in them. */
static uint8_t *group_planes(const conv_shape *s, const planes *p, unsigned char *workspace, size_t group) {
  return workspace + planes_at(s, p) + QUAD * group * p->group;
}
static size_t tile_at(const planes *p, size_t position) { return p->tile == 0 ? position : position * p->quads; }

/* Where the planes of four channels have what a tap reads for position 0. */
static size_t tap_offset(const rondo_window *w, const planes *p, size_t tap) {
  size_t phase = 0, at = 0, step = 1, phase_step = 1;
  for (int axis = RONDO_WINDOW_AXES - 1; axis >= 0; axis--) {
    const size_t from = tap % w->kernel[axis] * w->dilation[axis];
    tap /= w->kernel[axis];
    phase += from % w->stride[axis] * phase_step;
    at += from / w->stride[axis] * step;
    phase_step *= p->phases[axis];
    step *= p->sizes[axis];
  }
  return phase * p->plane + at;
}

static void write_offsets(const rondo_window *w, const planes *p, uint32_t *offsets) {
  for (size_t tap = 0; tap < p->taps; tap++) {
    const size_t at = tap_offset(w, p, tap);
    for (size_t quad = 0; quad < p->quads; quad++) offsets[quad * p->taps + tap] = (uint32_t)(quad * p->step + at);
  }
}

/* Four channels of an image; NULL after the last one. */
typedef struct channel_quad {
  const uint8_t *channels[QUAD];
  uint8_t turned, zero; /* zero: as it is in the planes */
} channel_quad;

/* Channels first .. first + 3 of `count`, each of `size` elements. */
static void find_channels(const uint8_t *from, size_t first, size_t count, size_t size, const uint8_t **out) {
  for (size_t q = 0; q < QUAD; q++) out[q] = first + q < count ? from + (first + q) * size : NULL;
}

/* The element of the image that is the first of a plane's along an axis, from a padded image's `phase` on, and which
 * ones of the plane are in the image. */
static rondo_span inside_of(const rondo_window *w, const planes *p, int axis, size_t phase, size_t *out_first) {
  const size_t stride = w->stride[axis], padding = w->padding[axis], end = padding + w->in[axis];
  const size_t first = phase < padding ? rondo_divide_up(padding - phase, stride) : 0;
  const size_t last = rondo_smaller(phase < end ? rondo_divide_up(end - phase, stride) : 0, p->sizes[axis]);
  *out_first = first * stride + phase - padding;
  return (rondo_span){rondo_smaller(first, last), last};
}

/* A row of a plane, of those elements that are in the image; `from` is the first of them there. */
static void write_row(const channel_quad *c, size_t from, size_t stride, rondo_span inside, size_t size, uint8_t *to) {
  const uint8_t *channels[QUAD];
  for (size_t q = 0; q < QUAD; q++) channels[q] = c->channels[q] == NULL ? NULL : c->channels[q] + from;
  memset(to, c->zero, QUAD * inside.first);
  if (stride == 1) {
    rondo_integer_interleave(channels, inside.last - inside.first, c->turned, to + QUAD * inside.first);
  } else {
    for (size_t q = 0; q < QUAD; q++)
      for (size_t i = inside.first, at = 0; i < inside.last; i++, at += stride)
        to[QUAD * i + q] = channels[q] == NULL ? 0 : (uint8_t)(channels[q][at] ^ c->turned);
  }
  memset(to + QUAD * inside.last, c->zero, QUAD * (size - inside.last));
}

/* The plane of a phase. */
static void write_plane(const rondo_window *w, const planes *p, const channel_quad *c, const size_t *phase,
                        uint8_t *to) {
  rondo_span inside[RONDO_WINDOW_AXES];
  size_t first[RONDO_WINDOW_AXES];
  const size_t width = p->sizes[RONDO_WIDTH];
  for (int axis = 0; axis < RONDO_WINDOW_AXES; axis++) inside[axis] = inside_of(w, p, axis, phase[axis], &first[axis]);
  const rondo_span rows = inside[RONDO_HEIGHT], layers = inside[RONDO_DEPTH], columns = inside[RONDO_WIDTH];
  for (size_t z = 0; z < p->sizes[RONDO_DEPTH]; z++) {
    for (size_t y = 0; y < p->sizes[RONDO_HEIGHT]; y++, to += QUAD * width) {
      const bool is_inside = z >= layers.first && z < layers.last && y >= rows.first && y < rows.last;
      if (!is_inside || columns.first == columns.last) {
        memset(to, c->zero, QUAD * width);
        continue;
      }
      const size_t layer = first[RONDO_DEPTH] + (z - layers.first) * w->stride[RONDO_DEPTH];
      const size_t row = first[RONDO_HEIGHT] + (y - rows.first) * w->stride[RONDO_HEIGHT];
      write_row(c, (layer * w->in[RONDO_HEIGHT] + row) * w->in[RONDO_WIDTH] + first[RONDO_WIDTH],
                w->stride[RONDO_WIDTH], columns, width, to);
    }
  }
}

static void write_planes(const conv_shape *s, const planes *p, const channel_quad *c, size_t quad, uint8_t *group) {
  uint8_t *to = group + QUAD * quad * p->step;
  size_t phase[RONDO_WINDOW_AXES];
  for (size_t at = 0; p->tile > 0 && at < p->positions; at += p->tile) {
    const rondo_span all = {0, rondo_smaller(p->positions - at, p->tile)};
    write_row(c, at, 1, all, all.last, to + QUAD * tile_at(p, at));
  }
  if (p->tile > 0) return;
  for (phase[RONDO_DEPTH] = 0; phase[RONDO_DEPTH] < p->phases[RONDO_DEPTH]; phase[RONDO_DEPTH]++)
    for (phase[RONDO_HEIGHT] = 0; phase[RONDO_HEIGHT] < p->phases[RONDO_HEIGHT]; phase[RONDO_HEIGHT]++)
      for (phase[RONDO_WIDTH] = 0; phase[RONDO_WIDTH] < p->phases[RONDO_WIDTH]; phase[RONDO_WIDTH]++) {
        write_plane(&s->window, p, c, phase, to);
        to += QUAD * p->plane;
      }
}

/* A row of weights as quads: those of all taps for the first channels, then for the next ones. */
static void write_weights(const conv_shape *s, const planes *p, const uint8_t *from, uint8_t *to) {
  const uint8_t *channels[QUAD];
  for (size_t quad = 0; quad < p->quads; quad++) {
    find_channels(from, QUAD * quad, s->in_channels, p->taps, channels);
    rondo_integer_interleave(channels, p->taps, rondo_to_signed(s->ending.b_unsigned), to + QUAD * quad * p->taps);
  }
}

/* The zero of the image, as it is in the planes. */
static uint8_t zero_in_planes(const conv_shape *s, const void *zero) {
  const uint8_t given = zero == NULL ? 0 : *(const uint8_t *)zero;
  return given ^ rondo_to_unsigned(s->ending.a_unsigned);
}

static void write_quad(const conv_shape *s, const planes *p, void *const *args, size_t number) {
  const size_t in = rondo_window_in(&s->window), group = number / p->quads, quad = number % p->quads;
  channel_quad c = {.turned = rondo_to_unsigned(s->ending.a_unsigned),
                    .zero = zero_in_planes(s, RONDO_ARG(const void *, 3))};
  find_channels(RONDO_ARG(const uint8_t *, 1) + group * s->in_channels * in, QUAD * quad, s->in_channels, in,
                c.channels);
  write_planes(s, p, &c, quad, group_planes(s, p, RONDO_ARG(unsigned char *, 4), group));
}

/* How many items the kernel below has: quads of channels, then rows of weights that it copies. */
static size_t quads_of(const conv_shape *s, const planes *p) { return s->images * s->groups * p->quads; }
static size_t items_of(const conv_shape *s, const planes *p) {
  return quads_of(s, p) + (has_quads(s, p) ? 0 : s->groups * s->out_channels);
}

/* args: shape, x, weight, x's zero; workspace. */
static void conv_integer_planes(rondo_blocks blocks, void *const *args) {
  const conv_shape *s = args[0];
  const planes p = planes_of(s);
  unsigned char *workspace = RONDO_ARG(unsigned char *, 4);
  if (blocks.first == 0) {
    write_offsets(&s->window, &p, (uint32_t *)(void *)workspace);
    memset(group_planes(s, &p, workspace, s->images * s->groups), 0, AFTER_PLANES);
  }
  RONDO_EACH_ITEM(number, blocks, items_of(s, &p)) {
    if (number < quads_of(s, &p)) {
      write_quad(s, &p, args, number);
    } else {
      const size_t row = number - quads_of(s, &p);
      write_weights(s, &p, RONDO_ARG(const uint8_t *, 2) + row * s->in_channels * p.taps,
                    workspace + rows_at(&p) + row * row_bytes(&p));
    }
  }
}

static const rondo_kernel_options planes_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "conv_integer_planes", .cpu = conv_integer_planes,
    .params = {RONDO_SCALAR(conv_shape), RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES}};

/* Tiles ------------------------------------------------------------------------------------------------------------ */

/* A tile has some positions of some strips of output channels, of a group of an image. */
typedef struct tiling {
  size_t positions, across;        /* of a tile; tiles beside each other */
  size_t strips, down, in_channel; /* of a tile; tiles below each other; strips of a group */
} tiling;

static tiling tiling_of(const conv_shape *s, const planes *p) {
  tiling t = {.positions = tile_positions(p), .in_channel = rondo_divide_up(s->out_channels, RONDO_LANE_ROWS)};
  t.across = rondo_divide_up(p->positions, t.positions);
  const size_t wanted = rondo_divide_up(ENOUGH_TILES, s->images * s->groups * t.across);
  t.strips = rondo_divide_up(t.in_channel, rondo_smaller(wanted, t.in_channel));
  t.down = rondo_divide_up(t.in_channel, t.strips);
  return t;
}

/* Stores the results of positions first .. of a channel, whose image begins at `to`. */
static void store_positions(const conv_shape *s, const planes *p, const rondo_integer_channels *channels, size_t index,
                            const int32_t *sums, size_t first, size_t count, unsigned char *to) {
  const rondo_window *w = &s->window;
  const size_t bytes = rondo_integer_result_bytes(&s->ending), width = w->out[RONDO_WIDTH];
  const size_t pitch = p->sizes[RONDO_WIDTH], rows = p->sizes[RONDO_HEIGHT];
  _Alignas(ALIGNMENT) unsigned char made[MOST_POSITIONS * sizeof(int32_t)]; /* also floats and 32-bit integers */
  if (p->plane == rondo_window_out(w)) {
    rondo_integer_store_row(&s->ending, channels, index, sums, count, to, first);
    return;
  }
  rondo_integer_store_row(&s->ending, channels, index, sums, count, made, 0);
  for (size_t i = 0, some; i < count; i += some) {
    const size_t x = (first + i) % pitch, row = (first + i) / pitch, y = row % rows;
    some = rondo_smaller(pitch - x, count - i);
    if (x >= width || y >= w->out[RONDO_HEIGHT]) continue;
    memcpy(to + ((row / rows * w->out[RONDO_HEIGHT] + y) * width + x) * bytes, made + i * bytes,
           rondo_smaller(some, width - x) * bytes);
  }
}

/* Some positions of a group of an image. */
typedef struct tile {
  size_t group, first, count, pitch;
  const uint8_t *image;
  const uint32_t *offsets;
  int32_t totals[MOST_POSITIONS]; /* the sums of the windows, if the weights have zeros */
} tile;

/* Adds quads first .. last - 1 of the windows; of each, as many channels as `ones` has ones. */
static void add_windows(tile *t, size_t first, size_t last, const int8_t *ones) {
  enum { MOST = 64 };
  int8_t row[MOST * QUAD];
  const rondo_lane_rows rows = {row, sizeof row, 1};
  for (size_t k = 0; k < MOST; k++) memcpy(row + k * QUAD, ones, QUAD);
  for (size_t k = first; k < last; k += MOST)
    rondo_integer_add_lanes(&rows, t->image, t->offsets + k, rondo_smaller(last - k, MOST), t->count, t->totals,
                            t->pitch);
}

static void find_totals(const conv_shape *s, const planes *p, tile *t) {
  const size_t whole = (p->quads - 1) * p->taps, left = s->in_channels - QUAD * (p->quads - 1);
  memset(t->totals, 0, t->pitch * sizeof *t->totals);
  add_windows(t, 0, whole, (const int8_t[QUAD]){1, 1, 1, 1});
  add_windows(t, whole, p->depth, (const int8_t[QUAD]){1, left > 1, left > 2, left > 3});
}

/* The zero of a row of weights, as a signed one. */
static int32_t zero_of_row(const conv_shape *s, const void *zeros, size_t row) {
  const uint8_t given = zeros == NULL ? 0 : ((const uint8_t *)zeros)[s->ending.zeros_b == 1 ? 0 : row];
  return rondo_signed_byte(given, rondo_to_signed(s->ending.b_unsigned));
}

static bool has_zeros(const conv_shape *s, const void *zeros, size_t group) {
  const size_t count = zeros == NULL || s->ending.zeros_b == 1 ? 1 : s->out_channels; /* else all have the same */
  for (size_t i = 0; i < count; i++)
    if (zero_of_row(s, zeros, group % s->groups * s->out_channels + i) != 0) return true;
  return false;
}

/* shape, x, weight, x's zero, weight's zeros, bias, scale, result_zero, workspace, result */
static void find_tile(const conv_shape *s, const planes *p, void *const *args, size_t group, size_t first, tile *out) {
  unsigned char *workspace = RONDO_ARG(unsigned char *, 8);
  out->group = group;
  out->first = first;
  out->count = rondo_smaller(p->positions - first, tile_positions(p));
  out->pitch = rondo_divide_up(out->count, RONDO_LANE_COLUMNS) * RONDO_LANE_COLUMNS;
  out->image = group_planes(s, p, workspace, group) + QUAD * tile_at(p, first);
  out->offsets = (const uint32_t *)(const void *)workspace;
  if (has_zeros(s, RONDO_ARG(const void *, 4), group)) find_totals(s, p, out);
}

static const uint8_t *weight_rows(const conv_shape *s, const planes *p, void *const *args, size_t row) {
  const uint8_t *first = has_quads(s, p) ? RONDO_ARG(const uint8_t *, 2) : RONDO_ARG(const uint8_t *, 8) + rows_at(p);
  return first + row * row_bytes(p);
}

RONDO_VECTORISED(fill_sums, (uint32_t begin, int32_t *restrict to, size_t count), (begin, to, count)) {
  RONDO_EACH_LANE(i, lane, count, to[i] = (int32_t)begin);
}

RONDO_VECTORISED(subtract_totals,
                 (uint32_t begin, uint32_t factor, const int32_t *restrict totals, int32_t *restrict to, size_t count),
                 (begin, factor, totals, to, count)) {
  RONDO_EACH_LANE(i, lane, count, to[i] = (int32_t)(begin - factor * (uint32_t)totals[i]));
}

/* What zeros add to the sums of a row of weights: (a - zero) (b - own) is a b - zero b - own a + zero own. */
static void begin_sums(const conv_shape *s, const planes *p, void *const *args, const tile *t, size_t row,
                       int32_t *sums) {
  const uint32_t zero = zero_in_planes(s, RONDO_ARG(const void *, 3));
  const uint32_t own = (uint32_t)zero_of_row(s, RONDO_ARG(const void *, 4), row);
  uint32_t begin = zero * own * (uint32_t)(s->in_channels * p->taps);
  if (zero != 0) begin -= zero * (uint32_t)rondo_integer_total(weight_rows(s, p, args, row), row_bytes(p), 0);
  if (own == 0)
    fill_sums(begin, sums, t->pitch);
  else
    subtract_totals(begin, own, t->totals, sums, t->pitch);
}

static void convolve_strip(const conv_shape *s, const planes *p, void *const *args, const tile *t, size_t in_group) {
  const rondo_integer_arrays arrays = {.bias = RONDO_ARG(const void *, 5),
                                       .scale = RONDO_ARG(const float *, 6),
                                       .result_zero = RONDO_ARG(const void *, 7)};
  const size_t out = rondo_window_out(&s->window), bytes = rondo_integer_result_bytes(&s->ending);
  const size_t row = t->group % s->groups * s->out_channels + in_group; /* among all output channels */
  unsigned char *result = RONDO_ARG(unsigned char *, 9) + (t->group * s->out_channels + in_group) * out * bytes;
  const rondo_lane_rows rows = {(const int8_t *)weight_rows(s, p, args, row), row_bytes(p),
                                rondo_smaller(s->out_channels - in_group, RONDO_LANE_ROWS)};
  int32_t sums[RONDO_LANE_ROWS * MOST_POSITIONS];
  rondo_integer_channels channels;
  for (size_t i = 0; i < rows.count; i++) begin_sums(s, p, args, t, row + i, sums + i * t->pitch);
  rondo_integer_add_lanes(&rows, t->image, t->offsets, p->depth, t->count, sums, t->pitch);
  rondo_integer_find_channels(&s->ending, &arrays, row, rows.count, &channels);
  for (size_t i = 0; i < rows.count; i++)
    store_positions(s, p, &channels, i, sums + i * t->pitch, t->first, t->count, result + i * out * bytes);
}

/* The sum of a result, as the definition says. */
static int32_t sum_at(const conv_shape *s, void *const *args, size_t image, size_t channel, size_t place) {
  const rondo_window *w = &s->window;
  const rondo_integer_ending *e = &s->ending;
  const void *x_zero = RONDO_ARG(const void *, 3), *zeros = RONDO_ARG(const void *, 4);
  const int32_t of_x = x_zero == NULL ? 0 : rondo_byte_at(x_zero, e->a_unsigned, 0);
  const int32_t own = zeros == NULL ? 0 : rondo_byte_at(zeros, e->b_unsigned, e->zeros_b == 1 ? 0 : channel);
  const size_t first = (image * s->groups + channel / s->out_channels) * s->in_channels, taps = rondo_window_taps(w);
  uint32_t sum = 0;
  for (size_t tap = 0; tap < taps; tap++) {
    size_t at = place, left = tap, from = 0, step = 1, in;
    bool is_inside = true;
    for (int axis = RONDO_WINDOW_AXES - 1; axis >= 0; axis--) {
      is_inside = rondo_window_tap(w, axis, at % w->out[axis], left % w->kernel[axis], &in) && is_inside;
      from += in * step;
      step *= w->in[axis];
      at /= w->out[axis];
      left /= w->kernel[axis];
    }
    for (size_t c = 0; is_inside && c < s->in_channels; c++)
      sum += (uint32_t)((rondo_byte_at(RONDO_ARG(const void *, 1), e->a_unsigned,
                                       (first + c) * rondo_window_in(w) + from) -
                         of_x) *
                        (rondo_byte_at(RONDO_ARG(const void *, 2), e->b_unsigned,
                                       (channel * s->in_channels + c) * taps + tap) -
                         own));
  }
  return (int32_t)sum;
}

/* Without planes: a driver of CUDA that runs kernels on the host calls the function of a CPU. */
static void convolve_plainly(const conv_shape *s, rondo_blocks blocks, void *const *args) {
  const rondo_integer_arrays arrays = {.bias = RONDO_ARG(const void *, 5),
                                       .scale = RONDO_ARG(const float *, 6),
                                       .result_zero = RONDO_ARG(const void *, 7)};
  const size_t out = rondo_window_out(&s->window), all = s->groups * s->out_channels;
  RONDO_EACH_ITEM(i, blocks, s->images * all * out) {
    const size_t channel = i / out % all;
    const int32_t sum = sum_at(s, args, i / out / all, channel, i % out);
    rondo_integer_channels channels;
    rondo_integer_find_channels(&s->ending, &arrays, channel, 1, &channels);
    rondo_integer_store_row(&s->ending, &channels, 0, &sum, 1, RONDO_ARG(void *, 9), i);
  }
}

static void conv_integer_cpu(rondo_blocks blocks, void *const *args) {
  const conv_shape *s = args[0];
  if (RONDO_ARG(const void *, 8) == NULL) {
    convolve_plainly(s, blocks, args);
    return;
  }
  const planes p = planes_of(s);
  const tiling t = tiling_of(s, &p);
  tile of;
  RONDO_EACH_TILE(number, blocks, s->images * s->groups * t.down * t.across) {
    const size_t first = number % t.across * t.positions, strip = number / t.across % t.down * t.strips;
    find_tile(s, &p, args, number / t.across / t.down, first, &of);
    for (size_t i = strip; i < rondo_smaller(strip + t.strips, t.in_channel); i++)
      convolve_strip(s, &p, args, &of, i * RONDO_LANE_ROWS);
  }
}

RONDO_UNTYPED_KERNEL(conv_integer, integer_product, RONDO_SCALAR(conv_shape), RONDO_READS, RONDO_READS, RONDO_READS,
                     RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES);

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

static conv_shape shape_in(const rondo_shape *x, const rondo_shape *weight, const rondo_attributes *attributes) {
  const size_t groups = attributes->sizes[GROUPS];
  return (conv_shape){.window = rondo_window_of(x, attributes),
                      .images = x->dims[0],
                      .groups = groups,
                      .in_channels = weight->dims[1],
                      .out_channels = weight->dims[0] / groups,
                      .ending = {.b_unsigned = weight->type == RONDO_U8}};
}

/* The workspace of a CPU; false if it does not fit a size_t, or an offset 32 bits. */
static bool workspace_of(const conv_shape *s, size_t *out) {
  const planes p = planes_of(s);
  size_t weights, bytes;
  if (!p.fit || p.group > UINT32_MAX || p.depth > UINT32_MAX) return false;
  if (!rondo_checked_multiply(s->groups * s->out_channels, row_bytes(&p), &weights) || weights > PTRDIFF_MAX)
    return false;
  *out = planes_at(s, &p) + AFTER_PLANES;
  return rondo_checked_multiply(p.group, QUAD, &bytes) && rondo_checked_multiply(bytes, s->images, &bytes) &&
         rondo_checked_multiply(bytes, s->groups, &bytes) && rondo_checked_add(bytes, *out, out);
}

/* The order of write_weights. */
static rondo_status make_order(const rondo_allocator *allocator, const conv_shape *s, rondo_packed_state **out) {
  const size_t taps = rondo_window_taps(&s->window);
  RONDO_TRY(rondo_packed_state_create(allocator, 1, s->groups * s->out_channels, s->in_channels, taps, out));
  for (size_t r = 0; r < (*out)->rows; r++) (*out)->row[r] = r * s->in_channels * taps;
  for (size_t c = 0; c < s->in_channels; c++) (*out)->column[c] = c / QUAD * QUAD * taps + c % QUAD;
  for (size_t t = 0; t < taps; t++) (*out)->tap[t] = QUAD * t;
  return RONDO_OK;
}

static rondo_status pack_conv_integer(rondo_resources *resources, const rondo_program *program, uint32_t number,
                                      rondo_packed_state **out_packed) {
  const rondo_operation *operation = &program->operations.items[number];
  const conv_shape s = shape_in(rondo_operation_input(program, operation, X),
                                rondo_operation_input(program, operation, WEIGHT), &operation->attributes);
  *out_packed = NULL;
  if (resources->is_cuda || !may_have_quads(&s) || rondo_window_taps(&s.window) == 1) return RONDO_OK;
  RONDO_TRY(make_order(&program->allocator, &s, out_packed));
  return rondo_integer_keep_order(resources, number, out_packed);
}

static rondo_status prepare_conv_integer(rondo_resources *resources, const rondo_program *program, uint32_t number,
                                         size_t *out_workspace_bytes) {
  const rondo_operation *operation = &program->operations.items[number];
  conv_shape s = shape_in(rondo_operation_input(program, operation, X),
                          rondo_operation_input(program, operation, WEIGHT), &operation->attributes);
  s.is_packed = rondo_resources_object(resources, number) != NULL;
  rondo_device_info info = {.struct_size = sizeof info};
  *out_workspace_bytes = 0;
  RONDO_TRY(rondo_device_get_info(resources->device, &info));
  if (info.cuda || workspace_of(&s, out_workspace_bytes)) return RONDO_OK;
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                    "the workspace of a convolution of images of %zu elements is too large: make the images smaller",
                    rondo_window_in(&s.window));
}

static rondo_status emit_planes(rondo_emitter *emitter, const rondo_operation *operation, const conv_shape *shape) {
  const planes p = planes_of(shape);
  const rondo_grain grain = {rondo_divide_up(RONDO_ELEMENTWISE_GRAIN.cpu, p.step), 1};
  return rondo_emit_operands(emitter, operation, &planes_code, rondo_emit_grid(emitter, items_of(shape, &p), grain),
                             RONDO_OPERANDS(RONDO_OBJECT(*shape), RONDO_INPUT(X), RONDO_INPUT(WEIGHT),
                                            RONDO_INPUT(RONDO_INTEGER_A_ZERO), RONDO_WORKSPACE));
}

static rondo_status emit_conv_integer(rondo_emitter *emitter, const rondo_operation *operation) {
  conv_shape shape = shape_in(rondo_emit_shape(emitter, operation->inputs[X]),
                              rondo_emit_shape(emitter, operation->inputs[WEIGHT]), &operation->attributes);
  shape.ending = rondo_integer_ending_of(emitter, operation, true);
  shape.is_packed = rondo_emit_object(emitter) != NULL;
  const size_t elements = rondo_shape_elements(rondo_emit_shape(emitter, operation->results[0]));
  rondo_grid grid = rondo_emit_grid(emitter, elements, (rondo_grain){1, RONDO_CUDA_THREADS});
  if (!rondo_emit_is_cuda(emitter)) {
    const planes p = planes_of(&shape);
    const tiling t = tiling_of(&shape, &p);
    grid = rondo_tile_grid(shape.images * shape.groups * t.down * t.across);
    RONDO_TRY(emit_planes(emitter, operation, &shape));
  }
  const void *workspace = rondo_emit_is_cuda(emitter) ? NULL : rondo_emit_workspace(emitter);
  return rondo_emit_operands(
      emitter, operation, &conv_integer_code, grid,
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(X), RONDO_INPUT(WEIGHT), RONDO_INPUT(RONDO_INTEGER_A_ZERO),
                     RONDO_INPUT(RONDO_INTEGER_B_ZERO), RONDO_INPUT(RONDO_INTEGER_BIAS),
                     RONDO_INPUT(RONDO_INTEGER_SCALE), RONDO_INPUT(RONDO_INTEGER_RESULT_ZERO), RONDO_OBJECT(workspace),
                     RONDO_RESULT(0)));
}

RONDO_OPERATOR(conv_integer, .types = RONDO_TYPE_BIT(RONDO_I8) | RONDO_TYPE_BIT(RONDO_U8),
               .inputs = {"x", "weight", "a_zero", "b_zero", "bias", "scale", "result_zero"}, .required = 2,
               .result_count = 1, .infer = infer_conv_integer, .prepare = prepare_conv_integer, .packed_input = WEIGHT,
               .pack = pack_conv_integer, .emit = emit_conv_integer);

rondo_status rondo_add_conv_integer(rondo_program *program, rondo_value x, rondo_value weight,
                                    const rondo_attributes *conv, const rondo_integer_product_options *products,
                                    rondo_value *out_value) {
  rondo_value inputs[RONDO_INTEGER_INPUTS] = {x, weight};
  rondo_attributes attributes = {0};
  RONDO_TRY(rondo_integer_read("conv_integer", products, inputs, &attributes));
  if (attributes.flags[RONDO_INTEGER_TRANSPOSE_B])
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "conv_integer: transpose_b is an option of matmul_integer");
  memcpy(attributes.sizes, conv->sizes, (GROUPS + 1) * sizeof *conv->sizes);
  attributes.flags[RONDO_WINDOW_ROUNDS_UP] = conv->flags[RONDO_WINDOW_ROUNDS_UP];
  return rondo_program_apply(program, &rondo_operator_conv_integer, inputs, RONDO_INTEGER_INPUTS, &attributes,
                             out_value);
}

rondo_status rondo_op_conv_integer(rondo_program *program, rondo_value x, rondo_value weight,
                                   const rondo_conv_options *options, const rondo_integer_product_options *products,
                                   rondo_value *out_value) {
  rondo_conv_options given;
  rondo_attributes attributes = {0};
  uint32_t index = 0;
  RONDO_TRY(rondo_program_begin(program, "conv_integer", out_value));
  RONDO_TRY(rondo_versioned_read("rondo_conv_options", options, &given, sizeof given));
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
  return rondo_add_conv_integer(program, x, weight, &attributes, products, out_value);
}
