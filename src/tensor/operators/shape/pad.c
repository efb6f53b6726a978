/* SPDX-License-Identifier: MIT
 * pad: a value with elements added, or with a constant also removed, before and after each dimension. The gradient of a
 * constant pad is the pad that undoes it. The gradient of the other modes adds the elements that were read from one
 * element, in their order, one dimension after the other. Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/common/operator_tools.h"

#define LAST (RONDO_MAX_DIMENSIONS - 1)

/* sizes. BEFORE and AFTER: signed numbers; FILL: the bits of the constant as an element. */
enum { BEFORE, AFTER = RONDO_MAX_DIMENSIONS, MODE = 2 * RONDO_MAX_DIMENSIONS, FILL, SIZES };

/* Forward ---------------------------------------------------------------------------------------------------------- */

/* A scalar argument of the kernel; without padding. The dimensions are at the end of the arrays; those before are 1. */
typedef struct pad_shape {
  size_t count, unit_bytes, mode;
  uint64_t fill;
  size_t dims[RONDO_MAX_DIMENSIONS], sizes[RONDO_MAX_DIMENSIONS]; /* of the result; of the value */
  int64_t before[RONDO_MAX_DIMENSIONS];
} pad_shape;

/* The index in the value for an index of the result; -1: the constant. */
static int64_t source_of(const pad_shape *shape, size_t dimension, size_t i) {
  const int64_t size = (int64_t)shape->sizes[dimension], at = (int64_t)i - shape->before[dimension];
  if (at >= 0 && at < size) return at;
  switch ((rondo_pad_mode)shape->mode) {
    case RONDO_PAD_REFLECT:
      return at < 0 ? -at : 2 * (size - 1) - at;
    case RONDO_PAD_REPLICATE:
      return at < 0 ? 0 : size - 1;
    case RONDO_PAD_CIRCULAR:
      return at < 0 ? at + size : at - size;
    default:
      return -1;
  }
}

/* The first element of the value's row for a row of the result; -1: the row is the constant. */
static int64_t source_row(const pad_shape *shape, size_t row) {
  size_t from = 0, weight = shape->sizes[LAST];
  for (size_t d = LAST; d > 0; d--) {
    const int64_t at = source_of(shape, d - 1, row % shape->dims[d - 1]);
    if (at < 0) return -1;
    from += (size_t)at * weight;
    weight *= shape->sizes[d - 1];
    row /= shape->dims[d - 1];
  }
  return (int64_t)from;
}

static void put_constant(const pad_shape *shape, unsigned char *y, size_t count) {
  const size_t bytes = shape->unit_bytes;
  for (size_t i = 0; i < count; i++) memcpy(y + i * bytes, &shape->fill, bytes); /* the low bytes come first */
}

/* Columns first .. last - 1 of a row; `x` is the value's row. The elements that the value has are copied at once. */
static void pad_columns(const pad_shape *shape, const unsigned char *x, unsigned char *y, size_t first, size_t last) {
  const size_t bytes = shape->unit_bytes;
  const int64_t before = shape->before[LAST], end = before + (int64_t)shape->sizes[LAST];
  for (size_t i = first, count; i < last; i += count, y += count * bytes) {
    const int64_t at = source_of(shape, LAST, i);
    const bool is_inside = (int64_t)i >= before && (int64_t)i < end;
    count = is_inside ? rondo_smaller(last, (size_t)end) - i : 1;
    if (at < 0)
      put_constant(shape, y, count);
    else
      memcpy(y, x + (size_t)at * bytes, count * bytes);
  }
}

static void pad_cpu(rondo_blocks blocks, void *const *args) {
  const pad_shape *shape = args[0];
  const unsigned char *x = RONDO_ARG(const unsigned char *, 1);
  unsigned char *y = RONDO_ARG(unsigned char *, 2);
  const size_t columns = shape->dims[LAST], bytes = shape->unit_bytes;
  const rondo_span span = rondo_blocks_span(blocks, shape->count, RONDO_LANES);
  for (size_t i = span.first, count; i < span.last; i += count) {
    const size_t column = i % columns;
    count = rondo_smaller(columns - column, span.last - i);
    const int64_t from = source_row(shape, i / columns);
    if (from < 0)
      put_constant(shape, y + i * bytes, count);
    else
      pad_columns(shape, x + (size_t)from * bytes, y + i * bytes, column, column + count);
  }
}

RONDO_UNTYPED_KERNEL(pad, pad, RONDO_SCALAR(pad_shape), RONDO_READS, RONDO_WRITES);

/* How many elements a mode can add to one side of a dimension of this size. */
static size_t most_added(size_t mode, size_t size) {
  return mode == RONDO_PAD_REFLECT ? size - 1 : mode == RONDO_PAD_CIRCULAR ? size : (size_t)INT64_MAX / 4;
}

static rondo_status infer_pad(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *value = rondo_operation_input(program, operation, 0);
  const size_t *sizes = operation->attributes.sizes, mode = sizes[MODE];
  results[0] = *value;
  for (uint32_t d = 0; d < value->rank; d++) {
    const int64_t before = (int64_t)sizes[BEFORE + d], after = (int64_t)sizes[AFTER + d];
    const int64_t lowest = mode == RONDO_PAD_CONSTANT ? -INT64_MAX / 4 : 0;
    const int64_t most = (int64_t)most_added(mode, value->dims[d]);
    if (before < lowest || after < lowest || before > most || after > most ||
        (int64_t)value->dims[d] + before + after < 1) {
      return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                  "dimension %u, which has %zu elements, cannot get %lld before and %lld after: at "
                                  "least one is left, reflect adds fewer elements than there are and circular no "
                                  "more, and only a constant pad removes some",
                                  d, value->dims[d], (long long)before, (long long)after);
    }
    results[0].dims[d] = (size_t)((int64_t)value->dims[d] + before + after);
  }
  return RONDO_OK;
}

static rondo_status differentiate_pad(rondo_program *program, const rondo_operation *operation,
                                      const uint32_t *result_gradients, uint32_t *input_gradients) {
  const rondo_shape value = *rondo_operation_input(program, operation, 0);
  const size_t *sizes = operation->attributes.sizes;
  rondo_attributes attributes = {.size_count = SIZES};
  input_gradients[0] = result_gradients[0];
  for (uint32_t d = 0; d < value.rank; d++) {
    attributes.sizes[BEFORE + d] = 0 - sizes[BEFORE + d];
    attributes.sizes[AFTER + d] = 0 - sizes[AFTER + d];
  }
  if (sizes[MODE] == RONDO_PAD_CONSTANT)
    return rondo_program_add(program, &rondo_operator_pad, result_gradients, 1, &attributes, input_gradients);
  for (uint32_t d = 0; d < value.rank; d++) {
    const uint32_t gradient = input_gradients[0];
    const rondo_attributes along = {.sizes = {d, sizes[BEFORE + d], value.dims[d], sizes[MODE]}, .size_count = 4};
    if (sizes[BEFORE + d] == 0 && sizes[AFTER + d] == 0) continue;
    RONDO_TRY(rondo_program_add(program, &rondo_operator_pad_gradient, &gradient, 1, &along, input_gradients));
  }
  return RONDO_OK;
}

static rondo_status emit_pad(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *value = rondo_emit_shape(emitter, operation->inputs[0]);
  const rondo_shape *result = rondo_emit_shape(emitter, operation->results[0]);
  const size_t *sizes = operation->attributes.sizes;
  const uint32_t without = RONDO_MAX_DIMENSIONS - value->rank;
  pad_shape shape = {.count = rondo_shape_elements(result),
                     .unit_bytes = rondo_type_bytes(result->type),
                     .mode = sizes[MODE],
                     .fill = sizes[FILL]};
  for (uint32_t d = 0; d < RONDO_MAX_DIMENSIONS; d++) {
    shape.dims[d] = d < without ? 1 : result->dims[d - without];
    shape.sizes[d] = d < without ? 1 : value->dims[d - without];
    shape.before[d] = d < without ? 0 : (int64_t)sizes[BEFORE + d - without];
  }
  return rondo_emit_operands(emitter, operation, &pad_code,
                             rondo_emit_grid(emitter, shape.count, RONDO_ELEMENTWISE_GRAIN),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(0), RONDO_RESULT(0)));
}

RONDO_OPERATOR(pad, .types = RONDO_ALL_TYPES, .inputs = {"value"}, .required = 1, .result_count = 1, .infer = infer_pad,
               .differentiate = differentiate_pad, .emit = emit_pad);

/* Gradient along one dimension ------------------------------------------------------------------------------------- */

enum { DIMENSION, ADDED, SIZE, OF_MODE }; /* sizes */

/* A scalar argument of the kernel; without padding. dy is [outer, padded, inner], dx [outer, size, inner]. */
typedef struct unpad_shape {
  size_t outer, size, padded, inner, before, mode;
} unpad_shape;

/* The elements along the dimension of dy that were read from element `at`: up to three ranges, in order. */
static size_t readers_of(const unpad_shape *s, size_t at, rondo_span *ranges) {
  const size_t own = s->before + at, after = s->padded - s->size - s->before, from_end = s->size - 1 - at;
  size_t count = 0;
  switch ((rondo_pad_mode)s->mode) {
    case RONDO_PAD_REFLECT:
      if (at > 0 && at <= s->before) ranges[count++] = (rondo_span){s->before - at, s->before - at + 1};
      ranges[count++] = (rondo_span){own, own + 1};
      if (from_end > 0 && from_end <= after) ranges[count++] = (rondo_span){own + 2 * from_end, own + 2 * from_end + 1};
      return count;
    case RONDO_PAD_REPLICATE:
      ranges[0] = (rondo_span){at == 0 ? 0 : own, from_end == 0 ? s->padded : own + 1};
      return 1;
    default:
      if (own >= s->size) ranges[count++] = (rondo_span){own - s->size, own - s->size + 1};
      ranges[count++] = (rondo_span){own, own + 1};
      if (own + s->size < s->padded) ranges[count++] = (rondo_span){own + s->size, own + s->size + 1};
      return count;
  }
}

/* The elements of which each was read once, and which are copied together. */
static rondo_span read_once(const unpad_shape *s) {
  const size_t after = s->padded - s->size - s->before;
  const size_t edge = s->mode == RONDO_PAD_CIRCULAR ? 0 : 1;
  const size_t first = s->mode == RONDO_PAD_REPLICATE ? 1 : s->mode == RONDO_PAD_REFLECT ? s->before + edge : after;
  const size_t at_end = s->mode == RONDO_PAD_REPLICATE ? 1 : s->mode == RONDO_PAD_REFLECT ? after + edge : s->before;
  return first + at_end < s->size ? (rondo_span){first, s->size - at_end} : (rondo_span){0, 0};
}

static void add_readers(rondo_type type, const unpad_shape *s, size_t outer, size_t at, const void *dy, void *dx) {
  rondo_span ranges[3];
  float sums[RONDO_CHUNK], buffer[RONDO_CHUNK];
  const size_t count = readers_of(s, at, ranges);
  RONDO_EACH_CHUNK(inside, length, 0, s->inner) {
    memset(sums, 0, length * sizeof *sums);
    for (size_t r = 0; r < count; r++) {
      for (size_t k = ranges[r].first; k < ranges[r].last; k++)
        rondo_add_floats(rondo_load_chunk(type, dy, (outer * s->padded + k) * s->inner + inside, length, buffer), sums,
                         length);
    }
    rondo_store_floats(type, dx, (outer * s->size + at) * s->inner + inside, length, sums);
  }
}

/* How many pieces the elements along the dimension are computed in: one for short rows. */
static size_t pieces_of(const unpad_shape *s) { return s->inner < 64 ? 1 : s->size; }

static void pad_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const unpad_shape *s = args[0];
  const unsigned char *dy = RONDO_ARG(const unsigned char *, 1);
  unsigned char *dx = RONDO_ARG(unsigned char *, 2);
  const size_t pieces = pieces_of(s), length = s->size / pieces, bytes = s->inner * rondo_type_bytes(type);
  const rondo_span once = read_once(s);
  RONDO_EACH_ITEM(i, blocks, s->outer * pieces) {
    const size_t outer = i / pieces, first = i % pieces * length, last = first + length;
    for (size_t at = first, count; at < last; at += count) {
      const bool is_copied = at >= once.first && at < once.last;
      count = is_copied ? rondo_smaller(once.last, last) - at : 1;
      if (is_copied)
        memcpy(dx + (outer * s->size + at) * bytes, dy + (outer * s->padded + s->before + at) * bytes, count * bytes);
      else
        add_readers(type, s, outer, at, dy, dx);
    }
  }
}

RONDO_TYPED_KERNEL(pad_gradient, pad_gradient, RONDO_SCALAR(unpad_shape), RONDO_READS, RONDO_WRITES);

static rondo_status infer_pad_gradient(const rondo_program *program, const rondo_operation *operation,
                                       rondo_shape *results) {
  RONDO_TRY(rondo_require_float(program, operation, 0, RONDO_ANY_RANK));
  results[0] = *rondo_operation_input(program, operation, 0);
  results[0].dims[operation->attributes.sizes[DIMENSION]] = operation->attributes.sizes[SIZE];
  return RONDO_OK;
}

static rondo_status emit_pad_gradient(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *dy = rondo_emit_shape(emitter, operation->inputs[0]);
  const size_t *sizes = operation->attributes.sizes, dimension = sizes[DIMENSION];
  const unpad_shape shape = {.outer = rondo_shape_elements_of(dy, 0, dimension),
                             .size = sizes[SIZE],
                             .padded = dy->dims[dimension],
                             .inner = rondo_shape_elements_of(dy, dimension + 1, dy->rank),
                             .before = sizes[ADDED],
                             .mode = sizes[OF_MODE]};
  const bool is_cuda = rondo_emit_is_cuda(emitter);
  const size_t pieces = pieces_of(&shape), items = shape.outer * (is_cuda ? shape.size * shape.inner : pieces);
  const rondo_grain grain = {8192 * pieces / (shape.size * shape.inner) + 1, RONDO_CUDA_THREADS};
  return rondo_emit_operands(emitter, operation, &pad_gradient_code[dy->type], rondo_emit_grid(emitter, items, grain),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(0), RONDO_RESULT(0)));
}

RONDO_OPERATOR(pad_gradient, .inputs = {"gradient"}, .required = 1, .result_count = 1, .infer = infer_pad_gradient,
               .emit = emit_pad_gradient);

/* Public ----------------------------------------------------------------------------------------------------------- */

/* The bits of the number as an element of this type. */
static uint64_t bits_of(rondo_type type, double number) {
  uint64_t bits = 0;
  if (rondo_is_integer(type))
    rondo_store_integers(type, &bits, 0, 1, &(int64_t){(int64_t)number});
  else
    rondo_store_one(type, &bits, 0, (float)number);
  return bits;
}

rondo_status rondo_op_pad(rondo_program *program, rondo_value value, const int64_t *before, const int64_t *after,
                          rondo_pad_mode mode, double number, rondo_value *out_value) {
  uint32_t index;
  RONDO_TRY(rondo_program_begin_of(program, "pad", value, "value", out_value, &index));
  const rondo_shape *shape = rondo_program_shape(program, index);
  if (shape->rank > 0) RONDO_TRY(rondo_require("pad", "before", before));
  if (shape->rank > 0) RONDO_TRY(rondo_require("pad", "after", after));
  if ((size_t)mode > RONDO_PAD_CIRCULAR) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "pad: mode %d does not exist: use RONDO_PAD_CONSTANT, _REFLECT, _REPLICATE or _CIRCULAR",
                      (int)mode);
  }
  if (!rondo_program_number_fits(shape->type, number)) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "pad: type %s cannot represent %g exactly",
                      rondo_type_name(shape->type), number);
  }
  rondo_attributes attributes = {.size_count = SIZES};
  for (uint32_t d = 0; d < shape->rank; d++) {
    attributes.sizes[BEFORE + d] = (size_t)before[d];
    attributes.sizes[AFTER + d] = (size_t)after[d];
  }
  attributes.sizes[MODE] = (size_t)mode;
  attributes.sizes[FILL] = bits_of(shape->type, number);
  return rondo_program_apply(program, &rondo_operator_pad, &value, 1, &attributes, out_value);
}
