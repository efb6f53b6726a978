/* SPDX-License-Identifier: MIT
 * argmax and argmin: the index of the largest or smallest element along a dimension, as I32. The first of equal
 * elements wins, or the last one for argmax_last and argmin_last; NaN wins over all numbers. They have no gradient.
 * Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <math.h>

#include "tensor/operators/common/operator_rows.h"
#include "tensor/operators/common/operator_tools.h"

enum { DIMENSION };              /* sizes */
enum { KEEPS, IS_MIN, IS_LAST }; /* flags */

/* A scalar argument of the kernels. The value is [outer, size, inner]. */
typedef struct argmax_shape {
  size_t outer, size, inner;
  uint32_t is_min, is_last;
} argmax_shape;

/* Some of the results of one of `outer`: at most RONDO_CHUNK of `inner`. */
typedef struct argmax_tile {
  size_t first, width; /* first: its first element in the value */
} argmax_tile;

static size_t tile_count(const argmax_shape *shape) { return rondo_divide_up(shape->inner, RONDO_CHUNK); }

static argmax_tile tile_at(const argmax_shape *shape, size_t number) {
  const size_t inside = number % tile_count(shape) * RONDO_CHUNK;
  return (argmax_tile){.first = number / tile_count(shape) * shape->size * shape->inner + inside,
                       .width = rondo_chunk_length(inside, shape->inner)};
}

/* Defines functions for a number type: whether x is better than the best so far; the index in the row of `size`
 * elements from `first` on; and the indices in all columns of a tile. */
#define ARGMAX(name, number, load, is_nan)                                                                          \
  static inline bool name##_is_better(number x, number best, const argmax_shape *s) {                               \
    const bool is_equal = x == best || (is_nan(x) && is_nan(best));                                                 \
    return (s->is_min != 0 ? x < best : x > best) || (is_nan(x) && !is_nan(best)) || (s->is_last != 0 && is_equal); \
  }                                                                                                                 \
  static int32_t name##_in_row(rondo_type type, const argmax_shape *s, const void *x, size_t first) {               \
    number best = 0, buffer[RONDO_CHUNK];                                                                           \
    size_t best_at = 0;                                                                                             \
    for (size_t at = 0; at < s->size; at += RONDO_CHUNK) {                                                          \
      const size_t length = rondo_chunk_length(at, s->size);                                                        \
      const number *chunk = load(type, x, first + at, length, buffer);                                              \
      for (size_t i = 0; i < length; i++) {                                                                         \
        if (at + i > 0 && !name##_is_better(chunk[i], best, s)) continue;                                           \
        best = chunk[i];                                                                                            \
        best_at = at + i;                                                                                           \
      }                                                                                                             \
    }                                                                                                               \
    return (int32_t)best_at;                                                                                        \
  }                                                                                                                 \
  static void name##_in_columns(rondo_type type, const argmax_shape *s, const argmax_tile *t, const void *x,        \
                                int32_t *indices) {                                                                 \
    number best[RONDO_CHUNK] = {0}, buffer[RONDO_CHUNK];                                                            \
    for (size_t at = 0; at < s->size; at++) {                                                                       \
      const number *chunk = load(type, x, t->first + at * s->inner, t->width, buffer);                              \
      for (size_t i = 0; i < t->width; i++) {                                                                       \
        if (at > 0 && !name##_is_better(chunk[i], best[i], s)) continue;                                            \
        best[i] = chunk[i];                                                                                         \
        indices[i] = (int32_t)at;                                                                                   \
      }                                                                                                             \
    }                                                                                                               \
  }
#define NEVER(x) false

ARGMAX(floats, float, rondo_load_chunk, isnan)
ARGMAX(integers, int64_t, rondo_load_integers, NEVER)

static void argmax_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const argmax_shape *shape = args[0];
  const void *x = RONDO_ARG(const void *, 1);
  int32_t *y = RONDO_ARG(int32_t *, 2);
  const bool is_integer = rondo_is_integer(type);
  RONDO_EACH_ITEM(number, blocks, shape->outer * tile_count(shape)) {
    const argmax_tile t = tile_at(shape, number);
    int32_t *indices = y + number / tile_count(shape) * shape->inner + number % tile_count(shape) * RONDO_CHUNK;
    if (shape->inner == 1) {
      *indices = (is_integer ? integers_in_row : floats_in_row)(type, shape, x, t.first);
    } else {
      (is_integer ? integers_in_columns : floats_in_columns)(type, shape, &t, x, indices);
    }
  }
}

RONDO_NUMBER_KERNEL(argmax, argmax, RONDO_SCALAR(argmax_shape), RONDO_READS, RONDO_WRITES);

static rondo_status infer_argmax(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *value = rondo_operation_input(program, operation, 0);
  const size_t dimension = operation->attributes.sizes[DIMENSION];
  RONDO_TRY(rondo_require_dimension(program, operation, 0, dimension));
  if (value->dims[dimension] > INT32_MAX) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "the dimension has %zu elements, more than an i32 can count: split it",
                                value->dims[dimension]);
  }
  rondo_shape result = {.type = RONDO_I32};
  for (size_t i = 0; i < value->rank; i++) {
    if (i != dimension) result.dims[result.rank++] = value->dims[i];
    if (i == dimension && operation->attributes.flags[KEEPS]) result.dims[result.rank++] = 1;
  }
  results[0] = result;
  return RONDO_OK;
}

static rondo_status emit_argmax(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *value = rondo_emit_shape(emitter, operation->inputs[0]);
  const size_t dimension = operation->attributes.sizes[DIMENSION];
  const argmax_shape shape = {.outer = rondo_shape_elements_of(value, 0, dimension),
                              .size = value->dims[dimension],
                              .inner = rondo_shape_elements_of(value, dimension + 1, value->rank),
                              .is_min = operation->attributes.flags[IS_MIN],
                              .is_last = operation->attributes.flags[IS_LAST]};
  assert(dimension < value->rank && shape.outer * shape.size * shape.inner == rondo_shape_elements(value));
  const bool is_cuda = rondo_emit_is_cuda(emitter);
  const rondo_grain grain = {4096 / shape.size / rondo_smaller(shape.inner, RONDO_CHUNK) + 1,
                             shape.inner == 1 ? rondo_row_grain(shape.size).cuda : RONDO_CUDA_THREADS};
  return rondo_emit_operands(
      emitter, operation, &argmax_code[value->type],
      rondo_emit_grid(emitter, shape.outer * (is_cuda ? shape.inner : tile_count(&shape)), grain),
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(0), RONDO_RESULT(0)));
}

#define ARGMAX_ROW                                                                                        \
  .types = RONDO_ALL_TYPES, .inputs = {"value"}, .required = 1, .result_count = 1, .infer = infer_argmax, \
  .emit = emit_argmax

RONDO_OPERATOR(argmax, ARGMAX_ROW);
RONDO_OPERATOR(argmin, ARGMAX_ROW);

static rondo_status add_argmax(rondo_program *program, const rondo_operator *row, bool is_last, rondo_value value,
                               size_t dimension, bool keeps, rondo_value *out_value) {
  const rondo_attributes attributes = {
      .sizes = {dimension},
      .size_count = 1,
      .flags = {[KEEPS] = keeps, [IS_MIN] = row == &rondo_operator_argmin, [IS_LAST] = is_last}};
  return rondo_program_apply(program, row, &value, 1, &attributes, out_value);
}

#define PUBLIC_FUNCTION(name, operator, is_last)                                                         \
  rondo_status rondo_op_##name(rondo_program *program, rondo_value value, size_t dimension, bool keeps,  \
                               rondo_value *out_value) {                                                 \
    return add_argmax(program, &rondo_operator_##operator, is_last, value, dimension, keeps, out_value); \
  }
PUBLIC_FUNCTION(argmax, argmax, false)
PUBLIC_FUNCTION(argmin, argmin, false)
PUBLIC_FUNCTION(argmax_last, argmax, true)
PUBLIC_FUNCTION(argmin_last, argmin, true)
