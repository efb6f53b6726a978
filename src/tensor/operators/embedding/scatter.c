/* SPDX-License-Identifier: MIT
 * scatter: a value in which elements along a dimension are replaced by updates, or combined with them, at indices, as
 * torch.scatter and torch.scatter_reduce. Updates with one index are applied in their order: of replacements, the last
 * one stays. A thread applies all updates of a column, so there are no atomics. The indices may be fewer than the
 * value's elements in the other dimensions, too. A wrong index fails the run and changes nothing. Threads: as
 * tensor/program/operator.h says.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/common/composition.h"
#include "tensor/operators/embedding/scatter_combine.h"
#include "tensor/operators/shape/strided.h"

enum { VALUE, INDICES, UPDATES }; /* inputs */
enum { DIMENSION, REDUCTION };    /* sizes; REDUCTION: a rondo_scatter_reduction */

/* A scalar argument of the kernel; without padding. The indices and updates are [outer, picked, inner]. A column of
 * them goes to a column of the value, which has `size` elements, `stride` apart. `places` are the first ones of the
 * columns of each of outer x inner. */
typedef struct scatter_shape {
  size_t outer, size, picked, inner, stride;
  rondo_strided places;
  uint32_t wide_indices, reduction;
} scatter_shape;

#define LAST (RONDO_MAX_DIMENSIONS - 1)

/* Kernel ----------------------------------------------------------------------------------------------------------- */

/* Combines element `to` of y with element `from` of the updates. */
static void apply(rondo_type type, uint32_t reduction, const void *updates, size_t from, void *y, size_t to) {
  int64_t buffers[2];
  if (rondo_is_integer(type)) {
    const int64_t old = *rondo_load_integers(type, y, to, 1, &buffers[0]);
    const int64_t result =
        rondo_combine_integers(reduction, old, *rondo_load_integers(type, updates, from, 1, &buffers[1]));
    rondo_store_integers(type, y, to, 1, &result);
  } else {
    rondo_store_one(type, y, to,
                    rondo_combine_floats(reduction, rondo_load_one(type, y, to), rondo_load_one(type, updates, from)));
  }
}

static void scatter_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const scatter_shape *s = args[0];
  const void *indices = RONDO_ARG(const void *, 1), *updates = RONDO_ARG(const void *, 2);
  void *y = RONDO_ARG(void *, 3);
  const rondo_index_cell cell = rondo_begin_check(blocks, args + 4);
  const rondo_span span = rondo_blocks_span(blocks, s->outer * s->inner, RONDO_LANES);
  for (size_t i = span.first, width; i < span.last; i += width) {
    const size_t outer = i / s->inner, inside = i % s->inner;
    const size_t run = s->places.strides[LAST] == 1 ? s->places.dims[LAST] : 1;
    const size_t first = rondo_strided_place(&s->places, i, RONDO_MAX_DIMENSIONS);
    width = rondo_smaller(rondo_smaller(run - i % run, s->inner - inside), span.last - i);
    for (size_t k = 0; k < s->picked; k++) {
      const size_t row = (outer * s->picked + k) * s->inner;
      for (size_t column = inside; column < inside + width; column++) {
        const int64_t index = rondo_index_at(indices, s->wide_indices, row + column);
        if (!rondo_check_index(cell, row + column, index, s->size)) continue;
        apply(type, s->reduction, updates, row + column, y, first + (column - inside) + (size_t)index * s->stride);
      }
    }
  }
}

RONDO_NUMBER_KERNEL(scatter, scatter, RONDO_SCALAR(scatter_shape), RONDO_READS, RONDO_READS, RONDO_UPDATES,
                    RONDO_CHECK_PARAMETERS);

/* Rows ------------------------------------------------------------------------------------------------------------- */

static rondo_status infer_scatter(const rondo_program *program, const rondo_operation *operation,
                                  rondo_shape *results) {
  const rondo_shape *value = rondo_operation_input(program, operation, VALUE);
  const rondo_shape *indices = rondo_operation_input(program, operation, INDICES);
  const rondo_shape *updates = rondo_operation_input(program, operation, UPDATES);
  const size_t dimension = operation->attributes.sizes[DIMENSION];
  RONDO_TRY(rondo_require_indices(program, operation, INDICES, value->rank));
  RONDO_TRY(rondo_require_dimension(program, operation, VALUE, dimension));
  RONDO_TRY(rondo_require_input(program, operation, UPDATES, value->type, value->rank));
  bool fits = rondo_shape_same_except(indices, updates, SIZE_MAX);
  for (uint32_t d = 0; d < value->rank; d++) fits = fits && (d == dimension || indices->dims[d] <= value->dims[d]);
  if (!fits) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "indices and updates must have one shape, with at most the value's sizes except along "
                                "dimension %zu",
                                dimension);
  }
  if (indices->type == RONDO_I32 && value->dims[dimension] > INT32_MAX) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "the dimension has %zu elements, more than an i32 can count: use i64 indices",
                                value->dims[dimension]);
  }
  results[0] = *value;
  return RONDO_OK;
}

/* The gradient of the updates is read where they went; that of the value is 0 where it was replaced. */
static rondo_status differentiate_scatter(rondo_program *program, const rondo_operation *operation,
                                          const uint32_t *result_gradients, uint32_t *input_gradients) {
  uint32_t replaced[] = {result_gradients[0], operation->inputs[INDICES], RONDO_NO_VALUE};
  rondo_value picked;
  RONDO_TRY(rondo_op_gather(program, rondo_program_tag(program, result_gradients[0]),
                            rondo_program_tag(program, operation->inputs[INDICES]),
                            operation->attributes.sizes[DIMENSION], &picked));
  RONDO_TRY(rondo_program_resolve(program, picked, "scatter", "gradient", &input_gradients[UPDATES]));
  input_gradients[VALUE] = result_gradients[0];
  if (operation->row == &rondo_operator_scatter_add) return RONDO_OK;
  const rondo_shape zeros = *rondo_operation_input(program, operation, UPDATES);
  RONDO_TRY(rondo_program_add_zeros(program, &zeros, &replaced[UPDATES]));
  return rondo_program_add(program, &rondo_operator_scatter, replaced, 3, &operation->attributes,
                           &input_gradients[VALUE]);
}

/* Where the columns of the indices begin in the value. */
static rondo_strided places_of(const rondo_shape *value, const rondo_shape *indices, size_t dimension) {
  rondo_shape columns = *indices;
  size_t strides[RONDO_MAX_DIMENSIONS];
  rondo_strides_of(value, strides);
  columns.dims[dimension] = 1;
  return rondo_strided_make(&columns, 0, strides);
}

static rondo_status emit_scatter(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *value = rondo_emit_shape(emitter, operation->inputs[VALUE]);
  const rondo_shape *indices = rondo_emit_shape(emitter, operation->inputs[INDICES]);
  const size_t dimension = operation->attributes.sizes[DIMENSION];
  const scatter_shape shape = {.outer = rondo_shape_elements_of(indices, 0, dimension),
                               .size = value->dims[dimension],
                               .picked = indices->dims[dimension],
                               .inner = rondo_shape_elements_of(indices, dimension + 1, indices->rank),
                               .stride = rondo_shape_elements_of(value, dimension + 1, value->rank),
                               .places = places_of(value, indices, dimension),
                               .wide_indices = indices->type == RONDO_I64,
                               .reduction = (uint32_t)operation->attributes.sizes[REDUCTION]};
  const rondo_grain grain = {2048 / shape.picked + 1, RONDO_CUDA_THREADS};
  RONDO_TRY(rondo_emit_sum_so_far(emitter, operation->inputs[VALUE], operation->results[0]));
  return rondo_emit_operands(emitter, operation, &scatter_code[value->type],
                             rondo_emit_grid(emitter, shape.outer * shape.inner, grain),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(INDICES), RONDO_INPUT(UPDATES),
                                            RONDO_RESULT(0), RONDO_CHECK(INDICES, shape.size)));
}

#define SCATTER_ROW                                                                                 \
  .inputs = {"value", "indices", "updates"}, .required = 3, .result_count = 1, .is_in_place = true, \
  .checks_indices = 1, .index_rule = "its update was left out", .infer = infer_scatter, .emit = emit_scatter

RONDO_OPERATOR(scatter, SCATTER_ROW, .types = RONDO_ALL_TYPES, .differentiate = differentiate_scatter);
RONDO_OPERATOR(scatter_add, SCATTER_ROW, .types = RONDO_NUMBERS, .differentiate = differentiate_scatter);
RONDO_OPERATOR(scatter_reduce, SCATTER_ROW, .types = RONDO_NUMBERS);

typedef struct scatter_values {
  rondo_value value, indices, updates;
  size_t dimension;
} scatter_values;

static rondo_status add_scatter(rondo_program *program, const rondo_operator *row, uint32_t reduction,
                                const scatter_values *values, rondo_value *out_value) {
  const rondo_attributes attributes = {.sizes = {values->dimension, reduction}, .size_count = 2};
  const rondo_value inputs[] = {values->value, values->indices, values->updates};
  return rondo_program_apply(program, row, inputs, 3, &attributes, out_value);
}

rondo_status rondo_op_scatter(rondo_program *program, rondo_value value, size_t dimension, rondo_value indices,
                              rondo_value updates, rondo_value *out_value) {
  const scatter_values values = {value, indices, updates, dimension};
  return add_scatter(program, &rondo_operator_scatter, RONDO_SCATTER_REPLACE, &values, out_value);
}

rondo_status rondo_op_scatter_add(rondo_program *program, rondo_value value, size_t dimension, rondo_value indices,
                                  rondo_value updates, rondo_value *out_value) {
  const scatter_values values = {value, indices, updates, dimension};
  return add_scatter(program, &rondo_operator_scatter_add, RONDO_SCATTER_ADD, &values, out_value);
}

rondo_status rondo_op_scatter_reduce(rondo_program *program, rondo_value value, size_t dimension, rondo_value indices,
                                     rondo_value updates, rondo_scatter_reduction reduction, rondo_value *out_value) {
  const scatter_values values = {value, indices, updates, dimension};
  RONDO_TRY(rondo_program_begin(program, "scatter_reduce", out_value));
  RONDO_TRY(rondo_require_scatter_reduction("scatter_reduce", reduction));
  const rondo_operator *row = reduction == RONDO_SCATTER_REPLACE ? &rondo_operator_scatter
                              : reduction == RONDO_SCATTER_ADD   ? &rondo_operator_scatter_add
                                                                 : &rondo_operator_scatter_reduce;
  return add_scatter(program, row, (uint32_t)reduction, &values, out_value);
}
