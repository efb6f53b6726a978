/* SPDX-License-Identifier: MIT
 * slice: every step-th of some elements along each dimension. slice_gradient computes the gradient in the value's
 * shape, which is 0 outside of the slice; slice_add adds the gradient of another slice to it. A slice of all elements
 * is a reshape and copies nothing. A slice of leading rows is copied, because it would be aligned to 256 bytes, as
 * values must be, only by chance. Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/common/operator_tools.h"
#include "tensor/operators/shape/strided.h"

enum { START = 0, LENGTH = RONDO_MAX_DIMENSIONS, STEP = 2 * RONDO_MAX_DIMENSIONS }; /* sizes, for each dimension */

/* Forward ---------------------------------------------------------------------------------------------------------- */

static bool is_inside(size_t start, size_t length, size_t step, size_t size) {
  size_t last;
  return step > 0 && length > 0 && rondo_checked_multiply(length - 1, step, &last) &&
         rondo_checked_add(start, last, &last) && last < size;
}

static rondo_status infer_slice(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *value = rondo_operation_input(program, operation, 0);
  const size_t *sizes = operation->attributes.sizes;
  results[0] = *value;
  for (uint32_t i = 0; i < value->rank; i++) {
    if (!is_inside(sizes[START + i], sizes[LENGTH + i], sizes[STEP + i], value->dims[i])) {
      return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                  "length %zu, start %zu and step %zu are out of range for dimension %u, which has %zu "
                                  "elements",
                                  sizes[LENGTH + i], sizes[START + i], sizes[STEP + i], i, value->dims[i]);
    }
    results[0].dims[i] = sizes[LENGTH + i];
  }
  return RONDO_OK;
}

static rondo_status differentiate_slice(rondo_program *program, const rondo_operation *operation,
                                        const uint32_t *result_gradients, uint32_t *input_gradients) {
  const size_t *sizes = operation->attributes.sizes;
  return rondo_program_add_part_gradient(program, operation->inputs[0], sizes + START, sizes + STEP,
                                         result_gradients[0], &input_gradients[0]);
}

/* The copy of a slice of a value of shape `value` into one of shape `taken`. */
static rondo_strided copy_of(const rondo_shape *value, const rondo_shape *taken, const size_t *sizes) {
  size_t strides[RONDO_MAX_DIMENSIONS], offset = 0;
  rondo_strides_of(value, strides);
  for (uint32_t i = 0; i < value->rank; i++) {
    offset += sizes[START + i] * strides[i];
    strides[i] *= sizes[STEP + i];
  }
  return rondo_strided_make(taken, offset, strides);
}

static rondo_status emit_slice(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_strided copy = copy_of(rondo_emit_shape(emitter, operation->inputs[0]),
                                     rondo_emit_shape(emitter, operation->results[0]), operation->attributes.sizes);
  return rondo_emit_strided(emitter, &copy, operation->inputs[0], operation->results[0]);
}

RONDO_OPERATOR(slice, .types = RONDO_STORED_TYPES, .inputs = {"value"}, .required = 1, .result_count = 1,
               .adds_gradients = true, .infer = infer_slice, .differentiate = differentiate_slice, .emit = emit_slice);

static bool takes_all(const rondo_shape *value, const size_t *lengths) {
  return memcmp(value->dims, lengths, value->rank * sizeof *lengths) == 0;
}

rondo_status rondo_op_slice(rondo_program *program, rondo_value value, const size_t *start, const size_t *length,
                            const size_t *step, rondo_value *out_value) {
  uint32_t index, result;
  RONDO_TRY(rondo_program_begin_of(program, "slice", value, "value", out_value, &index));
  const rondo_shape shape = *rondo_program_shape(program, index);
  if (shape.rank > 0) RONDO_TRY(rondo_require("slice", "start", start));
  if (shape.rank > 0) RONDO_TRY(rondo_require("slice", "length", length));
  rondo_attributes attributes = {.size_count = STEP + shape.rank};
  for (uint32_t i = 0; i < shape.rank; i++) {
    attributes.sizes[START + i] = start[i];
    attributes.sizes[LENGTH + i] = length[i];
    attributes.sizes[STEP + i] = step == NULL ? 1 : step[i];
  }
  const rondo_operation checked = {.row = &rondo_operator_slice, .inputs = {index}, .attributes = attributes};
  rondo_shape inferred;
  RONDO_TRY(infer_slice(program, &checked, &inferred));
  const bool is_whole = takes_all(&shape, attributes.sizes + LENGTH);
  RONDO_TRY(is_whole ? rondo_program_add_shaped(program, &rondo_operator_reshape, index, shape, &result)
                     : rondo_program_add(program, &rondo_operator_slice, &index, 1, &attributes, &result));
  *out_value = rondo_program_tag(program, result);
  return RONDO_OK;
}

/* Gradient --------------------------------------------------------------------------------------------------------- */

#define LAST (RONDO_MAX_DIMENSIONS - 1)

/* A scalar argument of the kernel; without padding. The dimensions are at the end of the arrays; those before are 1. */
typedef struct place_shape {
  size_t count, unit_bytes;          /* of the result */
  size_t dims[RONDO_MAX_DIMENSIONS]; /* of the result */
  size_t starts[RONDO_MAX_DIMENSIONS], steps[RONDO_MAX_DIMENSIONS];
  size_t lengths[RONDO_MAX_DIMENSIONS]; /* of dy */
} place_shape;

/* The position of index i in the slice; SIZE_MAX if it is not in the slice. */
static size_t place_of(const place_shape *shape, uint32_t dimension, size_t i) {
  const size_t start = shape->starts[dimension], step = shape->steps[dimension];
  if (i < start || (i - start) % step != 0) return SIZE_MAX;
  const size_t at = (i - start) / step;
  return at < shape->lengths[dimension] ? at : SIZE_MAX;
}

/* The row of dy for a row of the result; SIZE_MAX if there is none. */
static size_t row_of(const place_shape *shape, size_t row) {
  size_t from = 0, weight = 1;
  for (uint32_t i = LAST; i > 0; i--) {
    const size_t at = place_of(shape, i - 1, row % shape->dims[i - 1]);
    if (at == SIZE_MAX) return SIZE_MAX;
    from += at * weight;
    weight *= shape->lengths[i - 1];
    row /= shape->dims[i - 1];
  }
  return from;
}

static void slice_gradient_cpu(rondo_blocks blocks, void *const *args) {
  const place_shape *shape = args[0];
  const unsigned char *dy = RONDO_ARG(const unsigned char *, 1);
  unsigned char *dx = RONDO_ARG(unsigned char *, 2);
  const size_t bytes = shape->unit_bytes, columns = shape->dims[LAST];
  RONDO_EACH_ITEM(row, blocks, shape->count / columns) {
    const size_t from = row_of(shape, row);
    unsigned char *to = dx + row * columns * bytes;
    memset(to, 0, columns * bytes);
    if (from == SIZE_MAX) continue;
    for (size_t i = 0; i < shape->lengths[LAST]; i++) {
      memcpy(to + (shape->starts[LAST] + i * shape->steps[LAST]) * bytes,
             dy + (from * shape->lengths[LAST] + i) * bytes, bytes);
    }
  }
}

RONDO_UNTYPED_KERNEL(slice_gradient, slice, RONDO_SCALAR(place_shape), RONDO_READS, RONDO_WRITES);

/* Here the lengths in the attributes are the dimensions of the value. */
static rondo_status infer_slice_gradient(const rondo_program *program, const rondo_operation *operation,
                                         rondo_shape *results) {
  results[0] = *rondo_operation_input(program, operation, 0);
  memcpy(results[0].dims, operation->attributes.sizes + LENGTH, sizeof results[0].dims);
  return RONDO_OK;
}

static rondo_status emit_slice_gradient(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *result = rondo_emit_shape(emitter, operation->results[0]);
  const rondo_shape *taken = rondo_emit_shape(emitter, operation->inputs[0]);
  assert(result->rank == taken->rank && result->rank <= RONDO_MAX_DIMENSIONS);
  const uint32_t before = RONDO_MAX_DIMENSIONS - result->rank;
  place_shape shape = {.count = rondo_shape_elements(result), .unit_bytes = rondo_type_bytes(result->type)};
  for (uint32_t i = 0; i < RONDO_MAX_DIMENSIONS; i++) {
    const bool is_there = i >= before;
    shape.dims[i] = is_there ? result->dims[i - before] : 1;
    shape.lengths[i] = is_there ? taken->dims[i - before] : 1;
    shape.starts[i] = is_there ? operation->attributes.sizes[START + i - before] : 0;
    shape.steps[i] = is_there ? operation->attributes.sizes[STEP + i - before] : 1;
  }
  return rondo_emit_operands(emitter, operation, &slice_gradient_code,
                             rondo_emit_grid(emitter, shape.count, RONDO_ELEMENTWISE_GRAIN),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(0), RONDO_RESULT(0)));
}

RONDO_OPERATOR(slice_gradient, .inputs = {"gradient"}, .required = 1, .result_count = 1, .infer = infer_slice_gradient,
               .emit = emit_slice_gradient);

/* Adding ----------------------------------------------------------------------------------------------------------- */

enum { SUM, PART }; /* inputs */

/* Adds `count` contiguous elements of dy to elements of the sum, which are `stride` apart from `to` on. */
static void add_elements(rondo_type type, const void *dy, size_t from, void *sum, size_t to, size_t stride,
                         size_t count) {
  const size_t together = stride == 1 ? RONDO_CHUNK : 1;
  for (size_t at = 0, length; at < count; at += length) {
    length = rondo_smaller(count - at, together);
    rondo_add_chunk(type, dy, from + at, sum, to + at * stride, length);
  }
}

static void slice_add_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_strided *places = args[0];
  const void *dy = RONDO_ARG(const void *, 1);
  void *sum = RONDO_ARG(void *, 2);
  const size_t columns = places->dims[LAST], stride = places->strides[LAST];
  const rondo_span span = rondo_blocks_span(blocks, places->count, RONDO_LANES);
  for (size_t i = span.first, count; i < span.last; i += count) {
    const size_t column = i % columns;
    count = rondo_smaller(columns - column, span.last - i);
    add_elements(type, dy, i, sum, rondo_strided_place(places, i / columns, LAST) + column * stride, stride, count);
  }
}

RONDO_TYPED_KERNEL(slice_add, slice_add, RONDO_SCALAR(rondo_strided), RONDO_READS, RONDO_UPDATES);

static rondo_status emit_slice_add(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *result = rondo_emit_shape(emitter, operation->results[0]);
  const rondo_strided places =
      copy_of(result, rondo_emit_shape(emitter, operation->inputs[PART]), operation->attributes.sizes);
  RONDO_TRY(rondo_emit_sum_so_far(emitter, operation->inputs[SUM], operation->results[0]));
  return rondo_emit_operands(emitter, operation, &slice_add_code[result->type],
                             rondo_emit_grid(emitter, places.count, RONDO_ELEMENTWISE_GRAIN),
                             RONDO_OPERANDS(RONDO_OBJECT(places), RONDO_INPUT(PART), RONDO_RESULT(0)));
}

RONDO_OPERATOR(slice_add, .inputs = {"sum", "gradient"}, .required = 2, .result_count = 1, .is_in_place = true,
               .infer = rondo_infer_same, .emit = emit_slice_add);

rondo_status rondo_program_add_part_gradient(rondo_program *program, uint32_t value, const size_t *starts,
                                             const size_t *steps, uint32_t gradient, uint32_t *inout_sum) {
  const rondo_shape *shape = rondo_program_shape(program, value);
  const uint32_t inputs[] = {*inout_sum, gradient};
  rondo_attributes attributes = {.size_count = STEP + shape->rank};
  assert(shape->rank <= RONDO_MAX_DIMENSIONS && STEP + RONDO_MAX_DIMENSIONS <= RONDO_MAX_SIZES);
  memcpy(attributes.sizes + START, starts, shape->rank * sizeof *starts);
  memcpy(attributes.sizes + LENGTH, shape->dims, shape->rank * sizeof *shape->dims);
  memcpy(attributes.sizes + STEP, steps, shape->rank * sizeof *steps);
  if (*inout_sum == RONDO_NO_VALUE)
    return rondo_program_add(program, &rondo_operator_slice_gradient, &gradient, 1, &attributes, inout_sum);
  return rondo_program_add(program, &rondo_operator_slice_add, inputs, 2, &attributes, inout_sum);
}
