/* SPDX-License-Identifier: MIT
 * cumsum and cumprod: the sums or products of the elements up to each one along a dimension, as torch.cumsum and
 * torch.cumprod; exclusive: without the element itself; reversed: from the end. Those of floats are kept in F32 and
 * rounded when they are stored; integers wrap around. The gradient of sums is the sum in the other direction. Threads:
 * as tensor/program/operator.h says.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/common/operator_rows.h"
#include "tensor/operators/common/operator_tools.h"

enum { DIMENSION };           /* sizes */
enum { EXCLUSIVE, REVERSED }; /* flags */

/* A scalar argument of the kernel; without padding. The value is [outer, size, inner]. */
typedef struct cumsum_shape {
  size_t outer, size, inner;
  uint32_t exclusive, reversed, multiplies;
  uint32_t unused; /* so that there is no padding */
} cumsum_shape;

static size_t tile_count(const cumsum_shape *s) { return rondo_divide_up(s->inner, RONDO_CHUNK); }

/* Defines functions for a number type: the sums or products (first, joins) along a row, and along all columns of a tile
 * of at most RONDO_CHUNK columns, whose first element is `at_first`. */
#define CUMULATE(name, number, joined_type, load, store, start, joins)                                                \
  static void name##_in_row(rondo_type type, const cumsum_shape *s, const void *x, size_t at_first, void *y) {        \
    number from[RONDO_CHUNK], to[RONDO_CHUNK], joined = start;                                                        \
    for (size_t done = 0, length; done < s->size; done += length) {                                                   \
      length = rondo_chunk_length(done, s->size);                                                                     \
      const size_t at = s->reversed != 0 ? s->size - done - length : done;                                            \
      const number *chunk = load(type, x, at_first + at, length, from);                                               \
      for (size_t k = 0; k < length; k++) {                                                                           \
        const size_t i = s->reversed != 0 ? length - 1 - k : k;                                                       \
        const number next = (number)((joined_type)joined joins(joined_type) chunk[i]);                                \
        to[i] = s->exclusive != 0 ? joined : next;                                                                    \
        joined = next;                                                                                                \
      }                                                                                                               \
      store(type, y, at_first + at, length, to);                                                                      \
    }                                                                                                                 \
  }                                                                                                                   \
  static void name##_in_columns(rondo_type type, const cumsum_shape *s, const void *x, size_t at_first, size_t width, \
                                void *y) {                                                                            \
    number from[RONDO_CHUNK], joined[RONDO_CHUNK];                                                                    \
    for (size_t i = 0; i < width; i++) joined[i] = start;                                                             \
    for (size_t k = 0; k < s->size; k++) {                                                                            \
      const size_t at = at_first + (s->reversed != 0 ? s->size - 1 - k : k) * s->inner;                               \
      const number *chunk = load(type, x, at, width, from);                                                           \
      if (s->exclusive != 0) store(type, y, at, width, joined);                                                       \
      for (size_t i = 0; i < width; i++) joined[i] = (number)((joined_type)joined[i] joins(joined_type) chunk[i]);    \
      if (s->exclusive == 0) store(type, y, at, width, joined);                                                       \
    }                                                                                                                 \
  }

CUMULATE(float_sums, float, float, rondo_load_chunk, rondo_store_floats, 0, +)
CUMULATE(integer_sums, int64_t, uint64_t, rondo_load_integers, rondo_store_integers, 0, +)
CUMULATE(float_products, float, float, rondo_load_chunk, rondo_store_floats, 1, *)
CUMULATE(integer_products, int64_t, uint64_t, rondo_load_integers, rondo_store_integers, 1, *)

typedef struct cumulation {
  void (*in_row)(rondo_type type, const cumsum_shape *s, const void *x, size_t at_first, void *y);
  void (*in_columns)(rondo_type type, const cumsum_shape *s, const void *x, size_t at_first, size_t width, void *y);
} cumulation;

/* By whether they multiply, and whether the type is an integer. */
static const cumulation cumulations[2][2] = {
    {{float_sums_in_row, float_sums_in_columns}, {integer_sums_in_row, integer_sums_in_columns}},
    {{float_products_in_row, float_products_in_columns}, {integer_products_in_row, integer_products_in_columns}}};

static void cumsum_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const cumsum_shape *s = args[0];
  const void *x = RONDO_ARG(const void *, 1);
  void *y = RONDO_ARG(void *, 2);
  const cumulation *of = &cumulations[s->multiplies != 0][rondo_is_integer(type)];
  RONDO_EACH_ITEM(number, blocks, s->outer * tile_count(s)) {
    const size_t inside = number % tile_count(s) * RONDO_CHUNK;
    const size_t first = number / tile_count(s) * s->size * s->inner + inside;
    if (s->inner == 1)
      of->in_row(type, s, x, first, y);
    else
      of->in_columns(type, s, x, first, rondo_chunk_length(inside, s->inner), y);
  }
}

RONDO_NUMBER_KERNEL(cumsum, cumsum, RONDO_SCALAR(cumsum_shape), RONDO_READS, RONDO_WRITES);

static rondo_status infer_cumsum(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  results[0] = *rondo_operation_input(program, operation, 0);
  return rondo_require_dimension(program, operation, 0, operation->attributes.sizes[DIMENSION]);
}

static rondo_status differentiate_cumsum(rondo_program *program, const rondo_operation *operation,
                                         const uint32_t *result_gradients, uint32_t *input_gradients) {
  rondo_attributes attributes = operation->attributes;
  attributes.flags[REVERSED] = !attributes.flags[REVERSED];
  return rondo_program_add(program, &rondo_operator_cumsum, result_gradients, 1, &attributes, input_gradients);
}

static rondo_status emit(rondo_emitter *emitter, const rondo_operation *operation, bool multiplies) {
  const rondo_shape *value = rondo_emit_shape(emitter, operation->inputs[0]);
  const size_t dimension = operation->attributes.sizes[DIMENSION];
  const cumsum_shape shape = {.outer = rondo_shape_elements_of(value, 0, dimension),
                              .size = value->dims[dimension],
                              .inner = rondo_shape_elements_of(value, dimension + 1, value->rank),
                              .exclusive = operation->attributes.flags[EXCLUSIVE],
                              .reversed = operation->attributes.flags[REVERSED],
                              .multiplies = multiplies};
  const rondo_grain grain = {4096 / shape.size / rondo_smaller(shape.inner, RONDO_CHUNK) + 1,
                             shape.inner == 1 ? rondo_row_grain(shape.size).cuda : RONDO_CUDA_THREADS};
  const size_t items = shape.outer * (rondo_emit_is_cuda(emitter) ? shape.inner : tile_count(&shape));
  return rondo_emit_operands(emitter, operation, &cumsum_code[value->type], rondo_emit_grid(emitter, items, grain),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(0), RONDO_RESULT(0)));
}

static rondo_status emit_cumsum(rondo_emitter *emitter, const rondo_operation *operation) {
  return emit(emitter, operation, false);
}

static rondo_status emit_cumprod(rondo_emitter *emitter, const rondo_operation *operation) {
  return emit(emitter, operation, true);
}

RONDO_OPERATOR(cumsum, .types = RONDO_NUMBERS, .inputs = {"value"}, .required = 1, .result_count = 1,
               .infer = infer_cumsum, .differentiate = differentiate_cumsum, .emit = emit_cumsum);

RONDO_OPERATOR(cumprod, .types = RONDO_NUMBERS, .inputs = {"value"}, .required = 1, .result_count = 1,
               .infer = infer_cumsum, .emit = emit_cumprod);

static rondo_status apply(rondo_program *program, const rondo_operator *op, rondo_value value, size_t dimension,
                          bool exclusive, bool reversed, rondo_value *out_value) {
  const rondo_attributes attributes = {
      .sizes = {dimension}, .size_count = 1, .flags = {[EXCLUSIVE] = exclusive, [REVERSED] = reversed}};
  return rondo_program_apply(program, op, &value, 1, &attributes, out_value);
}

rondo_status rondo_op_cumsum(rondo_program *program, rondo_value value, size_t dimension, bool exclusive, bool reversed,
                             rondo_value *out_value) {
  return apply(program, &rondo_operator_cumsum, value, dimension, exclusive, reversed, out_value);
}

rondo_status rondo_op_cumprod(rondo_program *program, rondo_value value, size_t dimension, bool exclusive,
                              bool reversed, rondo_value *out_value) {
  return apply(program, &rondo_operator_cumprod, value, dimension, exclusive, reversed, out_value);
}
