/* SPDX-License-Identifier: MIT
 * conv_integer. On a CPU, a kernel makes planes of an image: 16-bit integers without the zero, with zeros around them,
 * and two channels side by side. Strides divide an image into phases, each of which has a plane, so that the elements
 * that a tap reads for neighbouring results are neighbours in a plane. Then a convolution is a product of the weights
 * and the planes (integer_lanes.h): each pair of channels and each tap is an offset into the planes. No window is
 * copied. Results are computed at all positions of a plane up to the last result; those between rows are dropped.
 * Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/convolution/window.h"
#include "tensor/operators/quantized/integer_lanes.h"
#include "tensor/operators/quantized/integer_product.h"

enum { X, WEIGHT };
enum { GROUPS = RONDO_WINDOW_SIZES };
_Static_assert(GROUPS + 1 == RONDO_INTEGER_TYPE, "the sizes of the attributes");

/* A scalar argument of the kernels; without padding. */
typedef struct conv_shape {
  rondo_window window;
  size_t images, groups, in_channels, out_channels; /* of a group */
  rondo_integer_ending ending;
} conv_shape;

/* Planes ----------------------------------------------------------------------------------------------------------- */

/* How planes lie in the workspace, after the offsets. Sizes are pairs of numbers. */
typedef struct planes {
  size_t phases[RONDO_WINDOW_AXES], sizes[RONDO_WINDOW_AXES]; /* of a plane */
  size_t plane;                                               /* elements */
  size_t pair, group;        /* from two channels to the next two; elements of a group */
  size_t pairs, taps, depth; /* pairs of channels of a group; offsets */
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
  const size_t unit = 2 * RONDO_LANE_COLUMNS, cached = CACHED_BYTES / (2 * sizeof(int16_t)) / p->pairs;
  const size_t most = cached < 2 * unit ? 2 * unit : rondo_smaller(cached / unit * unit, MOST_POSITIONS);
  const size_t tiles = rondo_divide_up(p->positions, most);
  return rondo_divide_up(rondo_divide_up(p->positions, tiles), unit) * unit;
}

static planes planes_of(const conv_shape *s) {
  const rondo_window *w = &s->window;
  planes p = {.plane = 1, .pair = 1, .pairs = rondo_divide_up(s->in_channels, 2), .taps = rondo_window_taps(w)};
  for (int axis = 0; axis < RONDO_WINDOW_AXES; axis++) {
    p.phases[axis] = w->kernel[axis] == 1 ? 1 : w->stride[axis];
    p.sizes[axis] = w->out[axis] + (w->kernel[axis] - 1) * w->dilation[axis] / w->stride[axis];
    p.positions = p.positions * p.sizes[axis] + w->out[axis] - 1;
    p.plane *= p.sizes[axis];
    p.pair *= p.phases[axis] * p.sizes[axis];
  }
  p.positions++;
  p.depth = p.pairs * p.taps;
  p.group = p.pairs * p.pair;
  if (is_image(w)) {
    p.tile = p.pair = tile_positions(&p);
    p.group = p.pairs * p.tile * rondo_divide_up(p.positions, p.tile);
  }
  return p;
}

static size_t offset_bytes(const planes *p) {
  return rondo_divide_up(p->depth * sizeof(uint32_t), ALIGNMENT) * ALIGNMENT;
}

/* The planes of a group of an image, and where those of a tile begin in them. */
static int16_t *group_planes(const planes *p, unsigned char *workspace, size_t group) {
  return (int16_t *)(void *)(workspace + offset_bytes(p)) + 2 * group * p->group;
}
static size_t tile_at(const planes *p, size_t position) { return p->tile == 0 ? position : position * p->pairs; }

/* Where the planes of two channels have what a tap reads for position 0. */
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
    for (size_t pair = 0; pair < p->pairs; pair++) offsets[pair * p->taps + tap] = (uint32_t)(pair * p->pair + at);
  }
}

/* Two channels of an image. `second` is NULL after the last of an odd number of channels. */
typedef struct channel_pair {
  const uint8_t *first, *second;
  rondo_byte_form form;
} channel_pair;

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
static void write_row(const channel_pair *c, size_t from, size_t stride, rondo_span inside, size_t size, int16_t *to) {
  const uint8_t *first = c->first + from, *second = c->second == NULL ? NULL : c->second + from;
  memset(to, 0, 2 * inside.first * sizeof *to);
  if (stride == 1) {
    rondo_integer_interleave(first, second, inside.last - inside.first, c->form, to + 2 * inside.first);
  } else {
    for (size_t i = inside.first; i < inside.last; i++, first += stride) {
      to[2 * i] = (int16_t)((first[0] ^ c->form.turned) - c->form.offset);
      to[2 * i + 1] = second == NULL ? (int16_t)0 : (int16_t)((second[0] ^ c->form.turned) - c->form.offset);
      if (second != NULL) second += stride;
    }
  }
  memset(to + 2 * inside.last, 0, 2 * (size - inside.last) * sizeof *to);
}

/* The plane of a phase. */
static void write_plane(const rondo_window *w, const planes *p, const channel_pair *c, const size_t *phase,
                        int16_t *to) {
  rondo_span inside[RONDO_WINDOW_AXES];
  size_t first[RONDO_WINDOW_AXES];
  const size_t width = p->sizes[RONDO_WIDTH];
  for (int axis = 0; axis < RONDO_WINDOW_AXES; axis++) inside[axis] = inside_of(w, p, axis, phase[axis], &first[axis]);
  const rondo_span rows = inside[RONDO_HEIGHT], layers = inside[RONDO_DEPTH], columns = inside[RONDO_WIDTH];
  for (size_t z = 0; z < p->sizes[RONDO_DEPTH]; z++) {
    for (size_t y = 0; y < p->sizes[RONDO_HEIGHT]; y++, to += 2 * width) {
      const bool is_inside = z >= layers.first && z < layers.last && y >= rows.first && y < rows.last;
      if (!is_inside || columns.first == columns.last) {
        memset(to, 0, 2 * width * sizeof *to);
        continue;
      }
      const size_t layer = first[RONDO_DEPTH] + (z - layers.first) * w->stride[RONDO_DEPTH];
      const size_t row = first[RONDO_HEIGHT] + (y - rows.first) * w->stride[RONDO_HEIGHT];
      write_row(c, (layer * w->in[RONDO_HEIGHT] + row) * w->in[RONDO_WIDTH] + first[RONDO_WIDTH],
                w->stride[RONDO_WIDTH], columns, width, to);
    }
  }
}

static void write_planes(const conv_shape *s, const planes *p, const channel_pair *c, size_t pair, int16_t *group) {
  int16_t *to = group + 2 * pair * p->pair;
  size_t phase[RONDO_WINDOW_AXES];
  for (size_t at = 0; p->tile > 0 && at < p->positions; at += p->tile)
    rondo_integer_interleave(c->first + at, c->second == NULL ? NULL : c->second + at,
                             rondo_smaller(p->positions - at, p->tile), c->form, to + 2 * tile_at(p, at));
  if (p->tile > 0) return;
  for (phase[RONDO_DEPTH] = 0; phase[RONDO_DEPTH] < p->phases[RONDO_DEPTH]; phase[RONDO_DEPTH]++)
    for (phase[RONDO_HEIGHT] = 0; phase[RONDO_HEIGHT] < p->phases[RONDO_HEIGHT]; phase[RONDO_HEIGHT]++)
      for (phase[RONDO_WIDTH] = 0; phase[RONDO_WIDTH] < p->phases[RONDO_WIDTH]; phase[RONDO_WIDTH]++) {
        write_plane(&s->window, p, c, phase, to);
        to += 2 * p->plane;
      }
}

/* args: shape, x, x's zero; workspace. A block has some pairs of channels. */
static void conv_integer_planes(rondo_blocks blocks, void *const *args) {
  const conv_shape *s = args[0];
  const planes p = planes_of(s);
  const void *zero = RONDO_ARG(const void *, 2);
  unsigned char *workspace = RONDO_ARG(unsigned char *, 3);
  const size_t in = rondo_window_in(&s->window), groups = s->images * s->groups;
  const rondo_byte_form form =
      rondo_byte_form_of(s->ending.a_unsigned, zero == NULL ? 0 : rondo_byte_at(zero, s->ending.a_unsigned, 0));
  if (blocks.first == 0) {
    write_offsets(&s->window, &p, (uint32_t *)(void *)workspace);
    memset(group_planes(&p, workspace, groups), 0, AFTER_PLANES);
  }
  RONDO_EACH_ITEM(number, blocks, groups * p.pairs) {
    const size_t group = number / p.pairs, pair = number % p.pairs;
    const uint8_t *first = RONDO_ARG(const uint8_t *, 1) + (group * s->in_channels + 2 * pair) * in;
    const channel_pair c = {first, 2 * pair + 1 < s->in_channels ? first + in : NULL, form};
    write_planes(s, &p, &c, pair, group_planes(&p, workspace, group));
  }
}

static const rondo_kernel_options planes_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "conv_integer_planes", .cpu = conv_integer_planes,
    .params = {RONDO_SCALAR(conv_shape), RONDO_READS, RONDO_READS, RONDO_WRITES}};

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

/* Offsets `from` .. of rows of weights, as pairs. */
static void widen_weights(const conv_shape *s, const planes *p, void *const *args, size_t row, size_t row_count,
                          size_t from, size_t count, int16_t *to) {
  const void *zeros = RONDO_ARG(const void *, 4);
  const uint32_t is_unsigned = s->ending.b_unsigned;
  for (size_t i = 0; i < row_count; i++) {
    const uint8_t *weights = RONDO_ARG(const uint8_t *, 2) + (row + i) * s->in_channels * p->taps;
    const int32_t zero = zeros == NULL ? 0 : rondo_byte_at(zeros, is_unsigned, s->ending.zeros_b == 1 ? 0 : row + i);
    const rondo_byte_form form = rondo_byte_form_of(is_unsigned, zero);
    int16_t *at = to + 2 * i * RONDO_LANE_PAIRS;
    if (p->taps == 1) {
      const size_t channels = rondo_smaller(2 * count, s->in_channels - 2 * from);
      rondo_integer_widen(weights + 2 * from, channels, form, at);
      if (channels < 2 * count) at[channels] = 0;
      continue;
    }
    for (size_t k = from, some; k < from + count; k += some, at += 2 * some) {
      const size_t pair = k / p->taps, tap = k % p->taps;
      const uint8_t *first = weights + 2 * pair * p->taps + tap;
      some = rondo_smaller(p->taps - tap, from + count - k);
      rondo_integer_interleave(first, 2 * pair + 1 < s->in_channels ? first + p->taps : NULL, some, form, at);
    }
  }
}

/* Stores the results of positions first .. of a channel, whose image begins at `to`. */
static void store_positions(const conv_shape *s, const planes *p, const rondo_integer_channels *channels, size_t index,
                            const int32_t *sums, size_t first, size_t count, unsigned char *to) {
  const rondo_window *w = &s->window;
  const size_t bytes = rondo_integer_result_bytes(&s->ending), width = w->out[RONDO_WIDTH];
  const size_t pitch = p->sizes[RONDO_WIDTH], rows = p->sizes[RONDO_HEIGHT];
  unsigned char made[MOST_POSITIONS * sizeof(int32_t)];
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

/* shape, x, weight, x's zero, weight's zeros, bias, scale, result_zero, workspace, result */
static void convolve_strip(const conv_shape *s, const planes *p, void *const *args, size_t group, size_t in_group,
                           size_t first, size_t count) {
  unsigned char *workspace = RONDO_ARG(unsigned char *, 8);
  const rondo_integer_arrays arrays = {.bias = RONDO_ARG(const void *, 5),
                                       .scale = RONDO_ARG(const float *, 6),
                                       .result_zero = RONDO_ARG(const void *, 7)};
  const uint32_t *offsets = (const uint32_t *)(const void *)workspace;
  const size_t out = rondo_window_out(&s->window),
               row_count = rondo_smaller(s->out_channels - in_group, RONDO_LANE_ROWS);
  const size_t row = group % s->groups * s->out_channels + in_group; /* among all output channels */
  const size_t bytes = rondo_integer_result_bytes(&s->ending);
  unsigned char *result = RONDO_ARG(unsigned char *, 9) + (group * s->out_channels + in_group) * out * bytes;
  int16_t rows[2 * RONDO_LANE_ROWS * RONDO_LANE_PAIRS];
  int32_t sums[RONDO_LANE_ROWS * MOST_POSITIONS];
  rondo_integer_channels channels;
  const size_t pitch = rondo_divide_up(count, 2 * RONDO_LANE_COLUMNS) * 2 * RONDO_LANE_COLUMNS;
  memset(sums, 0, row_count * pitch * sizeof *sums);
  for (size_t k = 0; k < p->depth; k += RONDO_LANE_PAIRS) {
    const size_t some = rondo_smaller(p->depth - k, RONDO_LANE_PAIRS);
    widen_weights(s, p, args, row, row_count, k, some, rows);
    rondo_integer_add_lanes(rows, row_count, group_planes(p, workspace, group) + 2 * tile_at(p, first), offsets + k,
                            some, count, sums, pitch);
  }
  rondo_integer_find_channels(&s->ending, &arrays, row, row_count, &channels);
  for (size_t i = 0; i < row_count; i++)
    store_positions(s, p, &channels, i, sums + i * pitch, first, count, result + i * out * bytes);
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
  RONDO_EACH_TILE(number, blocks, s->images * s->groups * t.down * t.across) {
    const size_t first = number % t.across * t.positions, group = number / t.across / t.down;
    const size_t strip = number / t.across % t.down * t.strips;
    for (size_t i = strip; i < rondo_smaller(strip + t.strips, t.in_channel); i++)
      convolve_strip(s, &p, args, group, i * RONDO_LANE_ROWS, first, rondo_smaller(p.positions - first, t.positions));
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
                      .out_channels = weight->dims[0] / groups};
}

/* The workspace of a CPU; false if it does not fit a size_t, or an offset 32 bits. */
static bool workspace_of(const conv_shape *s, size_t *out) {
  const planes p = planes_of(s);
  size_t bytes;
  if (p.group > UINT32_MAX) return false;
  *out = offset_bytes(&p) + AFTER_PLANES;
  return rondo_checked_multiply(p.group, 2 * sizeof(int16_t), &bytes) &&
         rondo_checked_multiply(bytes, s->images, &bytes) && rondo_checked_multiply(bytes, s->groups, &bytes) &&
         rondo_checked_add(bytes, *out, out);
}

static rondo_status prepare_conv_integer(rondo_resources *resources, const rondo_program *program, uint32_t number,
                                         size_t *out_workspace_bytes) {
  const rondo_operation *operation = &program->operations.items[number];
  const conv_shape s = shape_in(rondo_operation_input(program, operation, X),
                                rondo_operation_input(program, operation, WEIGHT), &operation->attributes);
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
  const rondo_grain grain = {rondo_divide_up(RONDO_ELEMENTWISE_GRAIN.cpu, p.pair), 1};
  return rondo_emit_operands(
      emitter, operation, &planes_code, rondo_emit_grid(emitter, shape->images * shape->groups * p.pairs, grain),
      RONDO_OPERANDS(RONDO_OBJECT(*shape), RONDO_INPUT(X), RONDO_INPUT(RONDO_INTEGER_A_ZERO), RONDO_WORKSPACE));
}

static rondo_status emit_conv_integer(rondo_emitter *emitter, const rondo_operation *operation) {
  conv_shape shape = shape_in(rondo_emit_shape(emitter, operation->inputs[X]),
                              rondo_emit_shape(emitter, operation->inputs[WEIGHT]), &operation->attributes);
  shape.ending = rondo_integer_ending_of(emitter, operation, true);
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
               .result_count = 1, .infer = infer_conv_integer, .prepare = prepare_conv_integer,
               .emit = emit_conv_integer);

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
