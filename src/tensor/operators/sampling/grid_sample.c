/* SPDX-License-Identifier: MIT
 * grid_sample: elements of images or volumes at coordinates of a grid, as torch.nn.functional.grid_sample and
 * GridSample of ONNX. An element is a sum of products of weights along each axis. The coordinates decide these weights
 * and neighbours, which all channels share. Values of F16 and BF16 are computed in F32. The gradient of the value is
 * added by one thread for each channel, in the order of the grid, so that it has the same bits each time. Threads: as
 * tensor/program/operator.h says.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "tensor/operators/common/operator_tools.h"

enum { VALUE, GRID };                             /* inputs */
enum { MODE, PADDING, IMAGE, SIZES = IMAGE + 3 }; /* sizes; IMAGE: of the value, for its gradient */
enum { ALIGNS_CORNERS };                          /* flags */

#define AXES 3
#define TAPS 4

/* A scalar argument of the kernels; without padding. Axes are depth, height and width; images have a depth of 1. */
typedef struct sample_shape {
  size_t images, channels, in[AXES], out; /* out: elements of a channel of the result */
  uint32_t mode, padding, aligns_corners, axes;
} sample_shape;

/* Coordinates ------------------------------------------------------------------------------------------------------ */

/* The neighbours of a coordinate along an axis, -1 outside of the value, their weights, and the derivatives of these by
 * the grid's number. */
typedef struct taps {
  size_t count;
  int64_t at[TAPS];
  float weights[TAPS], slopes[TAPS];
} taps;

/* A coordinate and its derivative by the grid's number. */
typedef struct coordinate {
  float at, slope;
} coordinate;

/* The coordinate after reflections at low and high, which lie half an element apart from each other's multiples. */
static coordinate reflect(coordinate x, float low, float high) {
  const float span = high - low, from_low = fabsf(x.at - low), side = x.at < low ? -1.0f : 1.0f;
  if (span <= 0) return (coordinate){0, 0};
  const float turns = floorf(from_low / span), rest = from_low - turns * span;
  const bool is_even = fmodf(turns, 2) == 0;
  return (coordinate){is_even ? low + rest : high - rest, x.slope * (is_even ? side : -side)};
}

static coordinate clip(coordinate x, float high) {
  if (x.at <= 0) return (coordinate){0, 0};
  return x.at >= high ? (coordinate){high, 0} : x;
}

/* A coordinate outside becomes one inside, unless there are zeros outside. */
static coordinate pad(const sample_shape *s, coordinate x, size_t size) {
  const float last = (float)(size - 1);
  if (s->padding == RONDO_GRID_BORDER) return clip(x, last);
  if (s->padding != RONDO_GRID_REFLECTION) return x;
  return clip(s->aligns_corners != 0 ? reflect(x, 0, last) : reflect(x, -0.5f, last + 0.5f), last);
}

static coordinate coordinate_of(const sample_shape *s, float number, size_t size) {
  const float half = (float)(s->aligns_corners != 0 ? size - 1 : size) / 2;
  const coordinate x = {(number + 1) * half - (s->aligns_corners != 0 ? 0.0f : 0.5f), half};
  return fabsf(x.at) < 0x1p30f ? x : (coordinate){-100, 0}; /* NaN too; outside of all values */
}

static int64_t index_of(float at, size_t size) { return at >= 0 && at < (float)size ? (int64_t)at : -1; }

/* The cubic weight of a neighbour at this distance, and its derivative. */
static float cubic_weight(float distance, float *out_slope) {
  const float a = -0.75f, d = distance;
  *out_slope = d <= 1 ? (3 * (a + 2) * d - 2 * (a + 3)) * d : (3 * a * d - 10 * a) * d + 8 * a;
  return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

static taps cubic_taps(const sample_shape *s, coordinate x, size_t size) {
  const float low = floorf(x.at), rest = x.at - low;
  taps t = {.count = TAPS};
  for (size_t k = 0; k < TAPS; k++) {
    const float from = rest + 1 - (float)k;
    t.at[k] = index_of(pad(s, (coordinate){low - 1 + (float)k, 0}, size).at, size);
    t.weights[k] = cubic_weight(fabsf(from), &t.slopes[k]);
    t.slopes[k] *= from < 0 ? -x.slope : x.slope;
  }
  return t;
}

static taps taps_of(const sample_shape *s, float number, size_t size) {
  coordinate x = coordinate_of(s, number, size);
  if (s->mode == RONDO_INTERPOLATE_CUBIC) return cubic_taps(s, x, size);
  x = pad(s, x, size);
  if (s->mode == RONDO_INTERPOLATE_NEAREST)
    return (taps){.count = 1, .at = {index_of(rintf(x.at), size)}, .weights = {1}};
  const float low = floorf(x.at), rest = x.at - low;
  return (taps){.count = 2,
                .at = {index_of(low, size), index_of(low + 1, size)},
                .weights = {1 - rest, rest},
                .slopes = {-x.slope, x.slope}};
}

/* The neighbours of an element of the grid along all axes. The grid has the width first. */
typedef struct neighbours {
  taps axes[AXES];
} neighbours;

static neighbours neighbours_of(const sample_shape *s, const float *grid, size_t element) {
  neighbours n = {.axes[0] = {.count = 1, .weights = {1}}};
  for (size_t i = 0; i < s->axes; i++) {
    const size_t axis = AXES - 1 - i;
    n.axes[axis] = taps_of(s, grid[element * s->axes + i], s->in[axis]);
  }
  return n;
}

/* A neighbour: its index in the channel, and its weight, or the derivative of this by the grid's number of an axis. */
typedef struct neighbour {
  size_t at;
  float weight;
} neighbour;

#define MOST_NEIGHBOURS (TAPS * TAPS * TAPS)

/* Lists the neighbours that are inside; returns their number. `derived`: the axis of the derivative; AXES: none. */
static size_t list_neighbours(const sample_shape *s, const neighbours *n, size_t derived, neighbour *out) {
  const taps *z = &n->axes[0], *y = &n->axes[1], *x = &n->axes[2];
  size_t count = 0;
  for (size_t i = 0; i < z->count; i++) {
    for (size_t j = 0; j < y->count; j++) {
      for (size_t k = 0; k < x->count; k++) {
        if (z->at[i] < 0 || y->at[j] < 0 || x->at[k] < 0) continue;
        const size_t row = (size_t)z->at[i] * s->in[1] + (size_t)y->at[j];
        const float of_plane = derived == 0 ? z->slopes[i] : z->weights[i];
        const float of_row = derived == 1 ? y->slopes[j] : y->weights[j];
        const float of_column = derived == 2 ? x->slopes[k] : x->weights[k];
        out[count++] = (neighbour){row * s->in[2] + (size_t)x->at[k], of_plane * of_row * of_column};
      }
    }
  }
  return count;
}

static float sum_of(const float *channel, const neighbour *list, size_t count) {
  float sum = 0;
  for (size_t i = 0; i < count; i++) sum += list[i].weight * channel[list[i].at];
  return sum;
}

static size_t elements_in(const sample_shape *s) { return s->in[0] * s->in[1] * s->in[2]; }

/* Kernels ---------------------------------------------------------------------------------------------------------- */

static void grid_sample_cpu(rondo_blocks blocks, void *const *args) {
  const sample_shape *s = args[0];
  const float *x = RONDO_ARG(const float *, 1), *grid = RONDO_ARG(const float *, 2);
  float *y = RONDO_ARG(float *, 3);
  RONDO_EACH_ITEM(i, blocks, s->images * s->out) {
    neighbour list[MOST_NEIGHBOURS];
    const neighbours n = neighbours_of(s, grid, i);
    const size_t count = list_neighbours(s, &n, AXES, list), image = i / s->out;
    for (size_t c = image * s->channels; c < (image + 1) * s->channels; c++)
      y[c * s->out + i % s->out] = sum_of(x + c * elements_in(s), list, count);
  }
}

/* shape, grid, dy, dx */
static void grid_sample_gradient_cpu(rondo_blocks blocks, void *const *args) {
  const sample_shape *s = args[0];
  const float *grid = RONDO_ARG(const float *, 1), *dy = RONDO_ARG(const float *, 2);
  float *dx = RONDO_ARG(float *, 3);
  RONDO_EACH_ITEM(c, blocks, s->images * s->channels) {
    float *channel = dx + c * elements_in(s);
    memset(channel, 0, elements_in(s) * sizeof *channel);
    for (size_t i = 0; i < s->out; i++) {
      neighbour list[MOST_NEIGHBOURS];
      const neighbours n = neighbours_of(s, grid, c / s->channels * s->out + i);
      const size_t count = list_neighbours(s, &n, AXES, list);
      for (size_t k = 0; k < count; k++) channel[list[k].at] += list[k].weight * dy[c * s->out + i];
    }
  }
}

/* shape, x, grid, dy, dgrid */
static void grid_sample_coordinate_gradient_cpu(rondo_blocks blocks, void *const *args) {
  const sample_shape *s = args[0];
  const float *x = RONDO_ARG(const float *, 1), *grid = RONDO_ARG(const float *, 2), *dy = RONDO_ARG(const float *, 3);
  float *to = RONDO_ARG(float *, 4);
  RONDO_EACH_ITEM(i, blocks, s->images * s->out) {
    const neighbours n = neighbours_of(s, grid, i);
    const size_t image = i / s->out;
    for (size_t k = 0; k < s->axes; k++) {
      neighbour list[MOST_NEIGHBOURS];
      const size_t count = list_neighbours(s, &n, AXES - 1 - k, list);
      float sum = 0;
      for (size_t c = image * s->channels; c < (image + 1) * s->channels; c++)
        sum += dy[c * s->out + i % s->out] * sum_of(x + c * elements_in(s), list, count);
      to[i * s->axes + k] = sum;
    }
  }
}

RONDO_UNTYPED_KERNEL(grid_sample, grid_sample, RONDO_SCALAR(sample_shape), RONDO_READS, RONDO_READS, RONDO_WRITES);
RONDO_UNTYPED_KERNEL(grid_sample_gradient, grid_sample, RONDO_SCALAR(sample_shape), RONDO_READS, RONDO_READS,
                     RONDO_WRITES);
RONDO_UNTYPED_KERNEL(grid_sample_coordinate_gradient, grid_sample, RONDO_SCALAR(sample_shape), RONDO_READS, RONDO_READS,
                     RONDO_READS, RONDO_WRITES);

static sample_shape shape_of(const rondo_shape *value, const rondo_shape *grid, const rondo_attributes *attributes) {
  sample_shape s = {.images = value->dims[0],
                    .channels = value->dims[1],
                    .in = {1, 1, 1},
                    .mode = (uint32_t)attributes->sizes[MODE],
                    .padding = (uint32_t)attributes->sizes[PADDING],
                    .aligns_corners = attributes->flags[ALIGNS_CORNERS],
                    .axes = value->rank - 2};
  s.out = rondo_shape_elements_of(grid, 1, grid->rank - 1);
  for (uint32_t i = 2; i < value->rank; i++) s.in[AXES - value->rank + i] = value->dims[i];
  return s;
}

/* Rows ------------------------------------------------------------------------------------------------------------- */

/* value [n, c, ..], grid [n, .., axes] -> [n, c, ..]. */
static rondo_status infer_sample(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *value = rondo_operation_input(program, operation, VALUE);
  const rondo_shape *grid = rondo_operation_input(program, operation, GRID);
  RONDO_TRY(rondo_require_input(program, operation, VALUE, RONDO_F32, RONDO_ANY_RANK));
  RONDO_TRY(rondo_require_input(program, operation, GRID, RONDO_F32, RONDO_ANY_RANK));
  const bool has_rank = value->rank == 4 || value->rank == 5;
  if (!has_rank || grid->rank != value->rank || grid->dims[0] != value->dims[0] ||
      grid->dims[grid->rank - 1] != value->rank - 2)
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "the value must be [n, c, h, w] with a grid [n, h', w', 2], or [n, c, d, h, w] with a "
                                "grid [n, d', h', w', 3]");
  results[0] = *value;
  for (uint32_t i = 2; i < value->rank; i++) results[0].dims[i] = grid->dims[i - 1];
  return RONDO_OK;
}

static rondo_status differentiate_sample(rondo_program *program, const rondo_operation *operation,
                                         const uint32_t *result_gradients, uint32_t *input_gradients) {
  const rondo_shape *value = rondo_operation_input(program, operation, VALUE);
  const uint32_t grid = operation->inputs[GRID], dy = result_gradients[0];
  const uint32_t for_value[] = {grid, dy}, for_grid[] = {operation->inputs[VALUE], grid, dy};
  rondo_attributes attributes = operation->attributes;
  for (uint32_t i = 2; i < value->rank; i++) attributes.sizes[IMAGE + i - 2] = value->dims[i];
  attributes.size_count = SIZES;
  RONDO_TRY(rondo_program_add(program, &rondo_operator_grid_sample_gradient, for_value, 2, &attributes,
                              &input_gradients[VALUE]));
  return rondo_program_add(program, &rondo_operator_grid_sample_coordinate_gradient, for_grid, 3,
                           &operation->attributes, &input_gradients[GRID]);
}

static rondo_status infer_gradient(const rondo_program *program, const rondo_operation *operation,
                                   rondo_shape *results) {
  results[0] = *rondo_operation_input(program, operation, 1);
  for (uint32_t i = 2; i < results[0].rank; i++) results[0].dims[i] = operation->attributes.sizes[IMAGE + i - 2];
  return RONDO_OK;
}

static rondo_status infer_grid_gradient(const rondo_program *program, const rondo_operation *operation,
                                        rondo_shape *results) {
  results[0] = *rondo_operation_input(program, operation, GRID);
  return RONDO_OK;
}

#define GRAIN ((rondo_grain){64, RONDO_CUDA_THREADS})

static rondo_status emit_sample(rondo_emitter *emitter, const rondo_operation *operation) {
  const sample_shape shape = shape_of(rondo_emit_shape(emitter, operation->inputs[VALUE]),
                                      rondo_emit_shape(emitter, operation->inputs[GRID]), &operation->attributes);
  return rondo_emit_operands(
      emitter, operation, &grid_sample_code, rondo_emit_grid(emitter, shape.images * shape.out, GRAIN),
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(VALUE), RONDO_INPUT(GRID), RONDO_RESULT(0)));
}

static rondo_status emit_gradient(rondo_emitter *emitter, const rondo_operation *operation) {
  const sample_shape shape = shape_of(rondo_emit_shape(emitter, operation->results[0]),
                                      rondo_emit_shape(emitter, operation->inputs[0]), &operation->attributes);
  const rondo_grain grain = {1, RONDO_CUDA_THREADS};
  return rondo_emit_operands(emitter, operation, &grid_sample_gradient_code,
                             rondo_emit_grid(emitter, shape.images * shape.channels, grain),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(0), RONDO_INPUT(1), RONDO_RESULT(0)));
}

static rondo_status emit_grid_gradient(rondo_emitter *emitter, const rondo_operation *operation) {
  const sample_shape shape = shape_of(rondo_emit_shape(emitter, operation->inputs[VALUE]),
                                      rondo_emit_shape(emitter, operation->inputs[GRID]), &operation->attributes);
  return rondo_emit_operands(
      emitter, operation, &grid_sample_coordinate_gradient_code,
      rondo_emit_grid(emitter, shape.images * shape.out, GRAIN),
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(VALUE), RONDO_INPUT(GRID), RONDO_INPUT(2), RONDO_RESULT(0)));
}

RONDO_OPERATOR(grid_sample, .types = RONDO_TYPE_BIT(RONDO_F32), .inputs = {"value", "grid"}, .required = 2,
               .result_count = 1, .infer = infer_sample, .differentiate = differentiate_sample, .emit = emit_sample);
RONDO_OPERATOR(grid_sample_gradient, .inputs = {"grid", "gradient"}, .required = 2, .result_count = 1,
               .infer = infer_gradient, .emit = emit_gradient);
RONDO_OPERATOR(grid_sample_coordinate_gradient, .inputs = {"value", "grid", "gradient"}, .required = 3,
               .result_count = 1, .infer = infer_grid_gradient, .emit = emit_grid_gradient);

/* Public ----------------------------------------------------------------------------------------------------------- */

static rondo_status add_sample(rondo_program *program, uint32_t *inputs, const rondo_attributes *attributes,
                               uint32_t *out_result) {
  const rondo_type type = rondo_program_shape(program, inputs[VALUE])->type;
  RONDO_TRY(rondo_program_add_cast(program, RONDO_F32, &inputs[VALUE]));
  RONDO_TRY(rondo_program_add_cast(program, RONDO_F32, &inputs[GRID]));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_grid_sample, inputs, 2, attributes, out_result));
  return rondo_program_add_cast(program, type, out_result);
}

static rondo_status check(const rondo_shape *value, const rondo_shape *grid, const rondo_grid_sample_options *given) {
  if (!rondo_shape_is_float(value) || !rondo_shape_is_float(grid))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE,
                      "grid_sample: value is %s and grid is %s; they must be f32, f16 or bf16",
                      rondo_type_name(value->type), rondo_type_name(grid->type));
  if ((size_t)given->mode <= RONDO_INTERPOLATE_CUBIC && (size_t)given->padding <= RONDO_GRID_REFLECTION)
    return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "grid_sample: mode %d or padding %d does not exist", (int)given->mode, (int)given->padding);
}

rondo_status rondo_op_grid_sample(rondo_program *program, rondo_value value, rondo_value grid,
                                  const rondo_grid_sample_options *options, rondo_value *out_value) {
  rondo_grid_sample_options given;
  uint32_t inputs[2], result = RONDO_NO_VALUE;
  RONDO_TRY(rondo_program_begin_of(program, "grid_sample", value, "value", out_value, &inputs[VALUE]));
  RONDO_TRY(rondo_program_resolve(program, grid, "grid_sample", "grid", &inputs[GRID]));
  RONDO_TRY(rondo_versioned_read("rondo_grid_sample_options", options, &given, sizeof given));
  RONDO_TRY(check(rondo_program_shape(program, inputs[VALUE]), rondo_program_shape(program, inputs[GRID]), &given));
  const rondo_attributes attributes = {.sizes = {(size_t)given.mode, (size_t)given.padding},
                                       .size_count = SIZES,
                                       .flags = {[ALIGNS_CORNERS] = given.align_corners}};
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_sample(program, inputs, &attributes, &result);
  return rondo_program_finish(program, mark, status, result, out_value);
}
