/* SPDX-License-Identifier: MIT
 * interpolate: images of another size, as torch.nn.functional.interpolate and Resize of ONNX. All modes are products of
 * one interpolation for each dimension, so an operation, resize, interpolates along one: an element is a sum of up to
 * four neighbours (taps). Cubic weights are those of Keys, "Cubic Convolution Interpolation for Digital Image
 * Processing" (1981). The gradient adds, for each element, what read it. Nothing is scattered.
 * Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "tensor/operators/common/operator_tools.h"

#define TAPS 4

enum { DIMENSION, SIZE, MODE, NEAREST, FACTOR, ADDEND, DIVISOR, SIZES }; /* sizes; the last three: bits of a double */
enum { CUBIC };                                                          /* numbers */

/* A scalar argument of the kernels; without padding. Images are [outer, in, inner] and [outer, out, inner]. Element i
 * of the dimension `out` is at (factor i + addend) / divisor of the dimension `in`: integers, if no scale is given, so
 * that coordinates that are integers are exact. */
typedef struct resize_shape {
  size_t outer, in, out, inner;
  double factor, addend, divisor, cubic;
  uint32_t mode, nearest;
} resize_shape;

/* Taps ------------------------------------------------------------------------------------------------------------- */

/* The neighbours of an element: their indices, at the edges the last one again, and their weights. */
typedef struct taps {
  size_t count, at[TAPS];
  float weights[TAPS];
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

static taps taps_of(const resize_shape *s, size_t i) {
  const double x = (s->factor * (double)i + s->addend) / s->divisor, low = floor(x), rest = x - low;
  taps t = {.count = s->mode == RONDO_INTERPOLATE_NEAREST ? 1 : s->mode == RONDO_INTERPOLATE_LINEAR ? 2 : TAPS};
  const double first = s->mode == RONDO_INTERPOLATE_NEAREST  ? nearest_of(s->nearest, x)
                       : s->mode == RONDO_INTERPOLATE_LINEAR ? low
                                                             : low - 1;
  for (size_t k = 0; k < t.count; k++) {
    t.at[k] = inside(first + (double)k, s->in);
    t.weights[k] = s->mode == RONDO_INTERPOLATE_NEAREST  ? 1.0f
                   : s->mode == RONDO_INTERPOLATE_LINEAR ? (float)(k == 0 ? 1 - rest : rest)
                                                         : (float)cubic_weight(s->cubic, fabs(rest + 1 - (double)k));
  }
  return t;
}

/* The elements of the result that may have read element `at`: first .. last - 1. */
static rondo_span readers_of(const resize_shape *s, size_t at) {
  const double far = 3; /* more than any tap is away */
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
  for (size_t k = 0; k < t.count; k++) weight += t.at[k] == at ? t.weights[k] : 0.0f;
  return weight;
}

/* Forward ---------------------------------------------------------------------------------------------------------- */

/* Rows of the last dimension: the taps of some elements, then these elements of each row. */
static void resize_columns(rondo_type type, const resize_shape *s, rondo_span rows, const void *x, void *y) {
  taps of[RONDO_CHUNK];
  float sums[RONDO_CHUNK];
  RONDO_EACH_CHUNK(first, length, 0, s->out) {
    for (size_t i = 0; i < length; i++) of[i] = taps_of(s, first + i);
    for (size_t row = rows.first; row < rows.last; row++) {
      for (size_t i = 0; i < length; i++) {
        sums[i] = 0;
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
    memset(sums, 0, length * sizeof *sums);
    for (size_t k = 0; k < t.count; k++)
      rondo_add_scaled(rondo_load_chunk(type, x, (outer * s->in + t.at[k]) * s->inner + at, length, buffer),
                       t.weights[k], sums, length);
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

static void set_coordinates(rondo_attributes *attributes, rondo_coordinates coordinates, size_t in, size_t out,
                            double scale) {
  double factor = scale > 0 ? 1 : (double)in, addend = 0, divisor = scale > 0 ? scale : (double)out;
  const bool is_one = coordinates == RONDO_COORDINATES_HALF_PIXEL_OR_0 && out == 1;
  if (coordinates == RONDO_COORDINATES_ALIGN_CORNERS) {
    factor = (double)(in - 1);
    divisor = out > 1 ? (double)(out - 1) : 1;
  } else if (is_one) {
    factor = 0;
  } else if (coordinates != RONDO_COORDINATES_ASYMMETRIC) { /* (i + 1/2) factor / divisor - 1/2 */
    addend = factor - divisor;
    factor *= 2;
    divisor *= 2;
  }
  put_number(attributes, FACTOR, factor);
  put_number(attributes, ADDEND, addend);
  put_number(attributes, DIVISOR, divisor);
}

/* Adds the interpolation along one dimension, if it changes anything. */
static rondo_status add_resize(rondo_program *program, size_t dimension, const rondo_interpolate_options *given,
                               uint32_t *inout_value) {
  const size_t in = rondo_program_shape(program, *inout_value)->dims[dimension], out = given->size[dimension - 2];
  const uint32_t value = *inout_value;
  rondo_attributes attributes = {.sizes = {dimension, out, (size_t)given->mode, (size_t)given->nearest},
                                 .size_count = SIZES,
                                 .numbers = {[CUBIC] = given->cubic == 0 ? -0.75f : given->cubic}};
  set_coordinates(&attributes, given->coordinates, in, out, given->scale[dimension - 2]);
  const bool is_same = number_in(&attributes, FACTOR) == number_in(&attributes, DIVISOR);
  if (in == out && is_same && number_in(&attributes, ADDEND) == 0) return RONDO_OK;
  return rondo_program_add(program, &rondo_operator_resize, &value, 1, &attributes, inout_value);
}

static rondo_status add_cast(rondo_program *program, rondo_type type, uint32_t *inout_value) {
  const rondo_attributes to = {.sizes = {(size_t)type}, .size_count = 1};
  const uint32_t value = *inout_value;
  if (rondo_program_shape(program, value)->type == type) return RONDO_OK;
  return rondo_program_add(program, &rondo_operator_cast, &value, 1, &to, inout_value);
}

/* Between dimensions, F16 and BF16 are F32, so that results are rounded once. Without a change, the result is a view of
 * the value. */
static rondo_status add_all(rondo_program *program, const rondo_interpolate_options *given, uint32_t *inout_value) {
  const rondo_shape shape = *rondo_program_shape(program, *inout_value);
  const uint32_t first = *inout_value;
  if (shape.rank > 3 && given->mode != RONDO_INTERPOLATE_NEAREST) RONDO_TRY(add_cast(program, RONDO_F32, inout_value));
  for (size_t d = 2; d < shape.rank; d++) RONDO_TRY(add_resize(program, d, given, inout_value));
  RONDO_TRY(add_cast(program, shape.type, inout_value));
  if (*inout_value != first) return RONDO_OK;
  return rondo_program_add_shaped(program, &rondo_operator_reshape, first, shape, inout_value);
}

static rondo_status check(const rondo_shape *value, const rondo_interpolate_options *given) {
  char text[RONDO_SHAPE_TEXT];
  if (!rondo_shape_is_float(value) || value->rank < 3) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, value->rank < 3 ? RONDO_REASON_SHAPE : RONDO_REASON_TYPE,
                      "interpolate: value is %s %s; it must be [n, c, ..] of f32, f16 or bf16",
                      rondo_type_name(value->type), rondo_shape_text(text, value));
  }
  if (!isfinite(given->cubic))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "interpolate: cubic is %g: use a finite number, or 0 for -0.75", (double)given->cubic);
  if ((size_t)given->mode > RONDO_INTERPOLATE_CUBIC || (size_t)given->coordinates > RONDO_COORDINATES_HALF_PIXEL_OR_0 ||
      (size_t)given->nearest > RONDO_NEAREST_ROUND_PREFER_CEIL) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "interpolate: mode %d, coordinates %d or nearest %d does not exist", (int)given->mode,
                      (int)given->coordinates, (int)given->nearest);
  }
  for (uint32_t d = 2; d < value->rank; d++) {
    const size_t most = (size_t)1 << 31, size = given->size[d - 2];
    const double scale = given->scale[d - 2];
    const bool has_scale = scale == 0 || (scale >= 1e-9 && scale <= 1e9);
    if (size > 0 && size <= most && value->dims[d] <= most && has_scale) continue;
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "interpolate: dimension %u of %s gets %zu elements with a scale of %g: give a size from 1 to "
                      "2^31, or a scale from 1e-9 to 1e9 for at least one element",
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
