/* SPDX-License-Identifier: MIT
 * interpolate: images of another size, as torch.nn.functional.interpolate and Resize of ONNX. All modes are products of
 * one interpolation for each dimension, so an operation, resize, interpolates along one: an element is a sum of up to
 * four neighbours (taps), or of more if images are smoothed while they shrink (antialias). Cubic weights are those of
 * Keys, "Cubic Convolution Interpolation for Digital Image Processing" (1981). The gradient adds, for each element,
 * what read it. Nothing is scattered. Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "tensor/operators/common/operator_tools.h"

#define TAPS 4

/* Sizes; those from FACTOR on are the bits of a double. */
enum { DIMENSION, SIZE, MODE, NEAREST, FACTOR, ADDEND, DIVISOR, SQUEEZE, SIZES };
enum { CUBIC, OUTSIDE };          /* numbers */
enum { EXCLUDES_OUTSIDE, CROPS }; /* flags */

/* A scalar argument of the kernels; without padding. Images are [outer, in, inner] and [outer, out, inner]. Element i
 * of the dimension `out` is at (factor i + addend) / divisor of the dimension `in`: integers, if no scale is given, so
 * that coordinates that are integers are exact. Distances to neighbours are multiplied by `squeeze`, at most 1. */
typedef struct resize_shape {
  size_t outer, in, out, inner;
  double factor, addend, divisor, cubic, squeeze, outside;
  uint32_t mode, nearest;
  uint32_t excludes_outside, crops; /* no weight for neighbours outside; `outside` where a coordinate is */
} resize_shape;

/* Taps ------------------------------------------------------------------------------------------------------------- */

/* The neighbours of an element, at the edges the last one again. Their indices and weights are stored if they are few.
 */
typedef struct taps {
  size_t count, at[TAPS];
  float weights[TAPS];
  double first, rest, total; /* the index of the first; how far the coordinate is from the one at or before it; the sum
                                of the weights, by which they are divided */
} taps;

static double nearest_of(uint32_t rounding, double x) {
  switch ((rondo_nearest)rounding) {
    case RONDO_NEAREST_CEIL:
      return ceil(x);
    case RONDO_NEAREST_ROUND_PREFER_FLOOR:
      return ceil(x - 0.5);
    case RONDO_NEAREST_ROUND_PREFER_CEIL:
      return floor(x + 0.5);
    default:
      return floor(x);
  }
}

/* The weight of a neighbour at this distance, 0 .. 2. */
static double cubic_weight(double a, double distance) {
  const double d = distance;
  return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

static size_t inside(double index, size_t size) {
  return index < 0 ? 0 : index > (double)(size - 1) ? size - 1 : (size_t)index;
}

/* The weight of a neighbour at this distance in units of the wider of both images' elements. */
static double weight_at_distance(const resize_shape *s, double distance) {
  if (s->mode == RONDO_INTERPOLATE_LINEAR) return distance < 1 ? 1 - distance : 0;
  return distance < 2 ? cubic_weight(s->cubic, distance) : 0;
}

/* The weight of neighbour k, before the division by the total. */
static double raw_weight(const resize_shape *s, const taps *t, size_t k) {
  const double index = t->first + (double)k, from_low = (double)k + 1 - (double)(t->count / 2);
  if (s->excludes_outside != 0 && (index < 0 || index > (double)(s->in - 1))) return 0;
  return weight_at_distance(s, fabs(from_low - t->rest) * s->squeeze);
}

static size_t index_of(const resize_shape *s, const taps *t, size_t k) {
  return t->count <= TAPS ? t->at[k % TAPS] : inside(t->first + (double)k, s->in);
}

/* k % TAPS is k there; compilers see that it is inside. */
static float weight_of_tap(const resize_shape *s, const taps *t, size_t k) {
  return t->count <= TAPS ? t->weights[k % TAPS] : (float)(raw_weight(s, t, k) / t->total);
}

static taps nearest_tap(const resize_shape *s, double index) {
  return (taps){.count = 1, .at = {inside(index, s->in)}, .weights = {1}};
}

/* The neighbours within reach of the coordinate `low` + `rest`. */
static taps neighbours_of(const resize_shape *s, double low, double rest) {
  const double reach = s->mode == RONDO_INTERPOLATE_LINEAR ? 1 : 2, before = floor(-reach / s->squeeze) + 1;
  taps t = {.count = (size_t)(2 - 2 * before), .first = low + before, .rest = rest, .total = 1};
  const bool is_weighted = s->squeeze < 1 || s->excludes_outside != 0;
  for (size_t k = 0; k < t.count && k < TAPS; k++) t.at[k] = inside(t.first + (double)k, s->in);
  if (is_weighted) {
    t.total = 0;
    for (size_t k = 0; k < t.count; k++) t.total += raw_weight(s, &t, k);
  }
  if (t.total == 0) return nearest_tap(s, low); /* all of them are outside */
  for (size_t k = 0; k < t.count && t.count <= TAPS; k++) t.weights[k] = (float)(raw_weight(s, &t, k) / t.total);
  return t;
}

static taps taps_of(const resize_shape *s, size_t i) {
  const double x = (s->factor * (double)i + s->addend) / s->divisor, low = floor(x);
  if (s->crops != 0 && (x < 0 || x > (double)(s->in - 1))) return (taps){.count = 0};
  if (s->mode == RONDO_INTERPOLATE_NEAREST) return nearest_tap(s, nearest_of(s->nearest, x));
  return neighbours_of(s, low, x - low);
}

/* The elements of the result that may have read element `at`: first .. last - 1. */
static rondo_span readers_of(const resize_shape *s, size_t at) {
  const double far = 1 + 2 / s->squeeze; /* more than any tap is away */
  rondo_span all = {0, s->out};
  if (s->factor <= 0) return all;
  const double first = floor((((double)at - far) * s->divisor - s->addend) / s->factor);
  const double last = ceil((((double)at + far) * s->divisor - s->addend) / s->factor) + 1;
  if (at > 0 && first > 0) all.first = inside(first, s->out);
  if (at + 1 < s->in && last < (double)s->out) all.last = last < 0 ? 0 : (size_t)last;
  return all.first < all.last ? all : (rondo_span){0, 0};
}

/* The weight with which element i of the result read element `at`. */
static float weight_of(const resize_shape *s, size_t i, size_t at) {
  const taps t = taps_of(s, i);
  float weight = 0;
  for (size_t k = 0; k < t.count; k++) weight += index_of(s, &t, k) == at ? weight_of_tap(s, &t, k) : 0.0f;
  return weight;
}

/* Forward ---------------------------------------------------------------------------------------------------------- */

#define MOST_WEIGHTS 128 /* that are computed once for all rows */

/* One element of each row, from any number of taps. */
static void resize_column(rondo_type type, const resize_shape *s, size_t i, rondo_span rows, const void *x, void *y) {
  const taps t = taps_of(s, i);
  float weights[MOST_WEIGHTS];
  for (size_t k = 0; k < t.count && k < MOST_WEIGHTS; k++) weights[k] = weight_of_tap(s, &t, k);
  for (size_t row = rows.first; row < rows.last; row++) {
    float sum = t.count == 0 ? (float)s->outside : 0;
    for (size_t k = 0; k < t.count; k++) {
      const float weight = k < MOST_WEIGHTS ? weights[k] : weight_of_tap(s, &t, k);
      sum += weight * rondo_load_one(type, x, row * s->in + index_of(s, &t, k));
    }
    rondo_store_one(type, y, row * s->out + i, sum);
  }
}

/* Rows of the last dimension: the taps of some elements, then these elements of each row. */
static void resize_columns(rondo_type type, const resize_shape *s, rondo_span rows, const void *x, void *y) {
  taps of[RONDO_CHUNK];
  float sums[RONDO_CHUNK];
  if (s->squeeze < 1) {
    for (size_t i = 0; i < s->out; i++) resize_column(type, s, i, rows, x, y);
    return;
  }
  RONDO_EACH_CHUNK(first, length, 0, s->out) {
    for (size_t i = 0; i < length; i++) of[i] = taps_of(s, first + i);
    for (size_t row = rows.first; row < rows.last; row++) {
      for (size_t i = 0; i < length; i++) {
        sums[i] = of[i].count == 0 ? (float)s->outside : 0;
        for (size_t k = 0; k < of[i].count; k++)
          sums[i] += of[i].weights[k] * rondo_load_one(type, x, row * s->in + of[i].at[k]);
      }
      rondo_store_floats(type, y, row * s->out + first, length, sums);
    }
  }
}

/* Row `i` of the other dimensions: `inner` elements, in one order for all. */
static void resize_row(rondo_type type, const resize_shape *s, size_t outer, size_t i, const void *x, void *y) {
  const taps t = taps_of(s, i);
  float sums[RONDO_CHUNK], buffer[RONDO_CHUNK];
  RONDO_EACH_CHUNK(at, length, 0, s->inner) {
    for (size_t k = 0; k < length; k++) sums[k] = t.count == 0 ? (float)s->outside : 0;
    for (size_t k = 0; k < t.count; k++)
      rondo_add_scaled(rondo_load_chunk(type, x, (outer * s->in + index_of(s, &t, k)) * s->inner + at, length, buffer),
                       weight_of_tap(s, &t, k), sums, length);
    rondo_store_floats(type, y, (outer * s->out + i) * s->inner + at, length, sums);
  }
}

static void resize_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const resize_shape *s = args[0];
  const void *x = RONDO_ARG(const void *, 1);
  void *y = RONDO_ARG(void *, 2);
  if (s->inner == 1) {
    resize_columns(type, s, rondo_blocks_span(blocks, s->outer, 1), x, y);
    return;
  }
  RONDO_EACH_ITEM(row, blocks, s->outer * s->out) resize_row(type, s, row / s->out, row % s->out, x, y);
}

RONDO_TYPED_KERNEL(resize, resize, RONDO_SCALAR(resize_shape), RONDO_READS, RONDO_WRITES);

/* Gradient --------------------------------------------------------------------------------------------------------- */

#define MOST_READERS 16

/* Who read an element of a row, if there are few. */
typedef struct readers {
  rondo_span span;
  float weights[MOST_READERS];
} readers;

static float read_back(rondo_type type, const resize_shape *s, const readers *of, size_t at, const void *dy,
                       size_t row) {
  float sum = 0;
  for (size_t i = of->span.first; i < of->span.last; i++) {
    const size_t k = i - of->span.first;
    const float weight = k < MOST_READERS ? of->weights[k] : weight_of(s, i, at);
    if (weight != 0) sum += weight * rondo_load_one(type, dy, row * s->out + i);
  }
  return sum;
}

static void gradient_columns(rondo_type type, const resize_shape *s, rondo_span rows, const void *dy, void *dx) {
  readers of[RONDO_CHUNK];
  float sums[RONDO_CHUNK];
  RONDO_EACH_CHUNK(first, length, 0, s->in) {
    for (size_t i = 0; i < length; i++) {
      of[i].span = readers_of(s, first + i);
      for (size_t k = 0; k < MOST_READERS && of[i].span.first + k < of[i].span.last; k++)
        of[i].weights[k] = weight_of(s, of[i].span.first + k, first + i);
    }
    for (size_t row = rows.first; row < rows.last; row++) {
      for (size_t i = 0; i < length; i++) sums[i] = read_back(type, s, &of[i], first + i, dy, row);
      rondo_store_floats(type, dx, row * s->in + first, length, sums);
    }
  }
}

static void gradient_row(rondo_type type, const resize_shape *s, size_t outer, size_t at, const void *dy, void *dx) {
  const rondo_span span = readers_of(s, at);
  float sums[RONDO_CHUNK], buffer[RONDO_CHUNK];
  RONDO_EACH_CHUNK(inner, length, 0, s->inner) {
    memset(sums, 0, length * sizeof *sums);
    for (size_t i = span.first; i < span.last; i++) {
      const float weight = weight_of(s, i, at);
      if (weight != 0)
        rondo_add_scaled(rondo_load_chunk(type, dy, (outer * s->out + i) * s->inner + inner, length, buffer), weight,
                         sums, length);
    }
    rondo_store_floats(type, dx, (outer * s->in + at) * s->inner + inner, length, sums);
  }
}

static void resize_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const resize_shape *s = args[0];
  const void *dy = RONDO_ARG(const void *, 1);
  void *dx = RONDO_ARG(void *, 2);
  if (s->inner == 1) {
    gradient_columns(type, s, rondo_blocks_span(blocks, s->outer, 1), dy, dx);
    return;
  }
  RONDO_EACH_ITEM(row, blocks, s->outer * s->in) gradient_row(type, s, row / s->in, row % s->in, dy, dx);
}

RONDO_TYPED_KERNEL(resize_gradient, resize, RONDO_SCALAR(resize_shape), RONDO_READS, RONDO_WRITES);

/* Rows ------------------------------------------------------------------------------------------------------------- */

static double number_in(const rondo_attributes *attributes, uint32_t place) {
  double number;
  memcpy(&number, &attributes->sizes[place], sizeof number);
  return number;
}

static void put_number(rondo_attributes *attributes, uint32_t place, double number) {
  memcpy(&attributes->sizes[place], &number, sizeof number);
}

/* SIZE is that of the result along the dimension, in both rows. */
static rondo_status infer_resize(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  RONDO_TRY(rondo_require_float(program, operation, 0, RONDO_ANY_RANK));
  results[0] = *rondo_operation_input(program, operation, 0);
  results[0].dims[operation->attributes.sizes[DIMENSION]] = operation->attributes.sizes[SIZE];
  return RONDO_OK;
}

static rondo_status differentiate_resize(rondo_program *program, const rondo_operation *operation,
                                         const uint32_t *result_gradients, uint32_t *input_gradients) {
  rondo_attributes attributes = operation->attributes;
  attributes.sizes[SIZE] = rondo_operation_input(program, operation, 0)->dims[attributes.sizes[DIMENSION]];
  return rondo_program_add(program, &rondo_operator_resize_gradient, result_gradients, 1, &attributes, input_gradients);
}

static rondo_status emit_resize(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_attributes *attributes = &operation->attributes;
  const bool is_gradient = operation->row == &rondo_operator_resize_gradient;
  const size_t dimension = attributes->sizes[DIMENSION];
  const rondo_shape *from = rondo_emit_shape(emitter, operation->inputs[0]);
  const rondo_shape *to = rondo_emit_shape(emitter, operation->results[0]);
  const resize_shape shape = {.outer = rondo_shape_elements_of(to, 0, dimension),
                              .in = (is_gradient ? to : from)->dims[dimension],
                              .out = (is_gradient ? from : to)->dims[dimension],
                              .inner = rondo_shape_elements_of(to, dimension + 1, to->rank),
                              .factor = number_in(attributes, FACTOR),
                              .addend = number_in(attributes, ADDEND),
                              .divisor = number_in(attributes, DIVISOR),
                              .cubic = (double)attributes->numbers[CUBIC],
                              .squeeze = number_in(attributes, SQUEEZE),
                              .outside = (double)attributes->numbers[OUTSIDE],
                              .excludes_outside = attributes->flags[EXCLUDES_OUTSIDE],
                              .crops = attributes->flags[CROPS],
                              .mode = (uint32_t)attributes->sizes[MODE],
                              .nearest = (uint32_t)attributes->sizes[NEAREST]};
  const size_t along = to->dims[dimension], elements = rondo_shape_elements(to);
  const size_t row = shape.inner == 1 ? along : shape.inner;
  const rondo_grain grain = {2048 / row + 1, RONDO_CUDA_THREADS};
  const rondo_kernel_options *code = is_gradient ? resize_gradient_code : resize_code;
  return rondo_emit_operands(emitter, operation, &code[to->type],
                             rondo_emit_grid(emitter, rondo_emit_is_cuda(emitter) ? elements : elements / row, grain),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(0), RONDO_RESULT(0)));
}

RONDO_OPERATOR(resize, .types = RONDO_FLOATS, .inputs = {"value"}, .required = 1, .result_count = 1,
               .infer = infer_resize, .differentiate = differentiate_resize, .emit = emit_resize);
RONDO_OPERATOR(resize_gradient, .inputs = {"gradient"}, .required = 1, .result_count = 1, .infer = infer_resize,
               .emit = emit_resize);

/* Public ----------------------------------------------------------------------------------------------------------- */

/* The coordinate of element i: (factor i + addend) / divisor. */
typedef struct mapping {
  double factor, addend, divisor;
} mapping;

/* The part from `first` to `last`, where 0 and 1 are the centres of the outer elements. */
static mapping crop(double in, size_t out, double first, double last) {
  const double width = in - 1, steps = (double)out - 1;
  if (out == 1) return (mapping){0, (first + last) / 2 * width, 1};
  return (mapping){(last - first) * width, first * width * steps, steps};
}

static mapping map_coordinates(const rondo_interpolate_options *given, size_t axis, size_t in, size_t out) {
  const double scale = given->scale[axis];
  const double factor = scale > 0 ? 1 : (double)in, divisor = scale > 0 ? scale : (double)out;
  switch (given->coordinates) {
    case RONDO_COORDINATES_ALIGN_CORNERS:
      return (mapping){(double)(in - 1), 0, out > 1 ? (double)(out - 1) : 1};
    case RONDO_COORDINATES_ASYMMETRIC:
      return (mapping){factor, 0, divisor};
    case RONDO_COORDINATES_CROP:
      return crop((double)in, out, given->crop_first[axis], given->crop_last[axis]);
    case RONDO_COORDINATES_HALF_PIXEL_OR_0:
      if (out == 1) return (mapping){0, 0, divisor};
      break;
    case RONDO_COORDINATES_HALF_PIXEL_SYMMETRIC: /* the same centre, though out may not be in scale */
      if (scale > 0) return (mapping){2, 1 - scale + (scale * (double)in - (double)out), 2 * scale};
      break;
    default:
      break;
  }
  return (mapping){2 * factor, factor - divisor, 2 * divisor}; /* (i + 1/2) factor / divisor - 1/2 */
}

static double squeeze_of(const rondo_interpolate_options *given, size_t axis, size_t in, size_t out) {
  const double scale = given->scale[axis] > 0 ? given->scale[axis] : (double)out / (double)in;
  return given->antialias && given->mode != RONDO_INTERPOLATE_NEAREST && scale < 1 ? scale : 1;
}

/* Adds the interpolation along one dimension, if it changes anything. */
static rondo_status add_resize(rondo_program *program, size_t dimension, const rondo_interpolate_options *given,
                               uint32_t *inout_value) {
  const size_t axis = dimension - 2, out = given->size[axis];
  const size_t in = rondo_program_shape(program, *inout_value)->dims[dimension];
  const mapping map = map_coordinates(given, axis, in, out);
  const double squeeze = squeeze_of(given, axis, in, out);
  const uint32_t value = *inout_value;
  rondo_attributes attributes = {
      .sizes = {dimension, out, (size_t)given->mode, (size_t)given->nearest},
      .size_count = SIZES,
      .numbers = {[CUBIC] = given->cubic == 0 ? -0.75f : given->cubic, [OUTSIDE] = given->outside},
      .flags = {[EXCLUDES_OUTSIDE] = given->exclude_outside && given->mode != RONDO_INTERPOLATE_NEAREST,
                [CROPS] = given->coordinates == RONDO_COORDINATES_CROP}};
  if (in == out && map.factor == map.divisor && map.addend == 0 && squeeze == 1) return RONDO_OK;
  put_number(&attributes, FACTOR, map.factor);
  put_number(&attributes, ADDEND, map.addend);
  put_number(&attributes, DIVISOR, map.divisor);
  put_number(&attributes, SQUEEZE, squeeze);
  return rondo_program_add(program, &rondo_operator_resize, &value, 1, &attributes, inout_value);
}

/* Between dimensions, F16 and BF16 are F32, so that results are rounded once. Without a change, the result is a view of
 * the value. */
static rondo_status add_all(rondo_program *program, const rondo_interpolate_options *given, uint32_t *inout_value) {
  const rondo_shape shape = *rondo_program_shape(program, *inout_value);
  const uint32_t first = *inout_value;
  if (shape.rank > 3 && given->mode != RONDO_INTERPOLATE_NEAREST)
    RONDO_TRY(rondo_program_add_cast(program, RONDO_F32, inout_value));
  for (size_t d = 2; d < shape.rank; d++) RONDO_TRY(add_resize(program, d, given, inout_value));
  RONDO_TRY(rondo_program_add_cast(program, shape.type, inout_value));
  if (*inout_value != first) return RONDO_OK;
  return rondo_program_add_shaped(program, &rondo_operator_reshape, first, shape, inout_value);
}

static rondo_status check_numbers(size_t rank, const rondo_interpolate_options *given) {
  if (!isfinite(given->cubic))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "interpolate: cubic is %g: use a finite number, or 0 for -0.75", (double)given->cubic);
  if ((size_t)given->mode > RONDO_INTERPOLATE_CUBIC || (size_t)given->coordinates > RONDO_COORDINATES_CROP ||
      (size_t)given->nearest > RONDO_NEAREST_ROUND_PREFER_CEIL) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "interpolate: mode %d, coordinates %d or nearest %d does not exist", (int)given->mode,
                      (int)given->coordinates, (int)given->nearest);
  }
  for (size_t axis = 0; given->coordinates == RONDO_COORDINATES_CROP && axis + 2 < rank; axis++) {
    if (fabs(given->crop_first[axis]) <= 1e9 && fabs(given->crop_last[axis]) <= 1e9) continue;
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "interpolate: dimension %zu is cropped from %g to %g: use numbers from -1e9 to 1e9, 0 and 1 for "
                      "all of it",
                      axis + 2, given->crop_first[axis], given->crop_last[axis]);
  }
  return RONDO_OK;
}

static rondo_status check(const rondo_shape *value, const rondo_interpolate_options *given) {
  char text[RONDO_SHAPE_TEXT];
  if (!rondo_shape_is_float(value) || value->rank < 3) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, value->rank < 3 ? RONDO_REASON_SHAPE : RONDO_REASON_TYPE,
                      "interpolate: value is %s %s; it must be [n, c, ..] of f32, f16 or bf16",
                      rondo_type_name(value->type), rondo_shape_text(text, value));
  }
  RONDO_TRY(check_numbers(value->rank, given));
  for (uint32_t d = 2; d < value->rank; d++) {
    const size_t most = (size_t)1 << 31, size = given->size[d - 2];
    const double scale = given->scale[d - 2];
    const double least = given->antialias ? fmax(1e-9, 1 / (double)value->dims[d]) : 1e-9;
    const bool has_scale = scale == 0 || (scale >= least && scale <= 1e9);
    if (size > 0 && size <= most && value->dims[d] <= most && has_scale) continue;
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "interpolate: dimension %u of %s gets %zu elements with a scale of %g: give a size from 1 to "
                      "2^31, or a scale from 1e-9 to 1e9 for at least one element; with antialias, scales are for one "
                      "element, too",
                      d, rondo_shape_text(text, value), size, scale);
  }
  return RONDO_OK;
}

/* Sizes that are not given follow from the scale. A product that no size can be leaves 0, which check() refuses. */
static void complete_sizes(const rondo_shape *value, rondo_interpolate_options *inout_given) {
  for (uint32_t d = 2; d < value->rank; d++) {
    const double size = (double)value->dims[d] * inout_given->scale[d - 2];
    if (inout_given->size[d - 2] == 0 && size >= 1 && size <= 0x1p31) inout_given->size[d - 2] = (size_t)size;
  }
}

rondo_status rondo_op_interpolate(rondo_program *program, rondo_value value, const rondo_interpolate_options *options,
                                  rondo_value *out_value) {
  rondo_interpolate_options given;
  uint32_t index;
  RONDO_TRY(rondo_program_begin_of(program, "interpolate", value, "value", out_value, &index));
  RONDO_TRY(rondo_require("interpolate", "options", options));
  RONDO_TRY(rondo_versioned_read("rondo_interpolate_options", options, &given, sizeof given));
  complete_sizes(rondo_program_shape(program, index), &given);
  RONDO_TRY(check(rondo_program_shape(program, index), &given));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_all(program, &given, &index);
  return rondo_program_finish(program, mark, status, index, out_value);
}
