/* SPDX-License-Identifier: MIT
 * concat: values put together along a dimension; split: one cut into some. Each is the gradient of the other, and one
 * kernel: rows, of the dimensions before, are made of runs, one a part.
 */
#include <string.h>

#include "base/error.h"
#include "tensor/emit.h"
#include "tensor/operators.h"
#include "tensor/operators/kernel_support.h"
#include "tensor/program_internal.h"
#include "tensor/shape.h"

#define MOST_PARTS RONDO_MAX_OPERANDS

enum { DIMENSION, LENGTHS }; /* sizes; from LENGTHS on, of split: of each part along the dimension */

/* What the kernels get as one scalar; without padding. */
typedef struct parts_shape {
  size_t rows, width; /* of the whole, in units */
  size_t parts;
  size_t starts[MOST_PARTS + 1]; /* of each part in a row, in units; the last is width */
  size_t unit_bytes;             /* 2, 4, 8 or 16 */
} parts_shape;

/* Two elements that always go together become one unit, as long as that goes. */
static void widen(parts_shape *shape) {
  while (shape->unit_bytes < 16) {
    for (size_t i = 0; i <= shape->parts; i++) {
      if (shape->starts[i] % 2 != 0) return;
    }
    for (size_t i = 0; i <= shape->parts; i++) shape->starts[i] /= 2;
    shape->width /= 2;
    shape->unit_bytes *= 2;
  }
}

static parts_shape shape_of(const rondo_emitter *emitter, const uint32_t *parts, size_t count, const rondo_shape *whole,
                            size_t dimension) {
  parts_shape shape = {.rows = 1, .parts = count, .unit_bytes = rondo_type_bytes(whole->type)};
  size_t inner = 1;
  for (size_t i = 0; i < dimension; i++) shape.rows *= whole->dims[i];
  for (size_t i = dimension + 1; i < whole->rank; i++) inner *= whole->dims[i];
  for (size_t i = 0; i < count; i++)
    shape.starts[i + 1] = shape.starts[i] + rondo_emit_shape(emitter, parts[i])->dims[dimension] * inner;
  shape.width = shape.starts[count];
  widen(&shape);
  return shape;
}

/* Kernels ---------------------------------------------------------------------------------------------------------- */

/* args: shape, whole, parts. */
static void walk_cpu(rondo_blocks blocks, void *const *args, bool splits) {
  const parts_shape *shape = args[0];
  unsigned char *whole = RONDO_ARG(unsigned char *, 1);
  const size_t bytes = shape->unit_bytes;
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_span span = rondo_block_span(block, blocks, shape->rows, 1);
    for (size_t row = span.first; row < span.last; row++) {
      for (size_t i = 0; i < shape->parts; i++) {
        const size_t length = (shape->starts[i + 1] - shape->starts[i]) * bytes;
        unsigned char *in_whole = whole + (row * shape->width + shape->starts[i]) * bytes;
        unsigned char *in_part = *(unsigned char *const *)args[2 + i] + row * length;
        memcpy(splits ? in_part : in_whole, splits ? in_whole : in_part, length);
      }
    }
  }
}

static void concat_cpu(rondo_blocks blocks, void *const *args) { walk_cpu(blocks, args, false); }
static void split_cpu(rondo_blocks blocks, void *const *args) { walk_cpu(blocks, args, true); }

#define FOUR(access) access, access, access, access

static const rondo_kernel_options concat_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "concat", .cpu = concat_cpu, RONDO_CUDA(concat),
    .params = {RONDO_SCALAR(parts_shape), RONDO_WRITES, FOUR(RONDO_READS), FOUR(RONDO_READS)}};
static const rondo_kernel_options split_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "split", .cpu = split_cpu, RONDO_CUDA(concat),
    .params = {RONDO_SCALAR(parts_shape), RONDO_READS, FOUR(RONDO_WRITES), FOUR(RONDO_WRITES)}};

static rondo_status emit_parts(rondo_emitter *emitter, const rondo_kernel_options *code, const parts_shape *shape,
                               const uint32_t *parts, uint32_t whole_value) {
  void *whole = rondo_emit_address(emitter, whole_value);
  void *at[MOST_PARTS] = {NULL};
  for (size_t i = 0; i < shape->parts; i++) at[i] = rondo_emit_address(emitter, parts[i]);
  const bool is_cuda = rondo_emit_is_cuda(emitter);
  const rondo_grain grain = {32768 / (shape->width * shape->unit_bytes) + 1, RONDO_CUDA_THREADS};
  return rondo_emit_kernel(emitter, code,
                           rondo_emit_grid(emitter, is_cuda ? shape->rows * shape->width : shape->rows, grain),
                           RONDO_ARGS(shape, &whole, &at[0], &at[1], &at[2], &at[3], &at[4], &at[5], &at[6], &at[7]));
}

/* The row of split that has so many results. */
static const rondo_operator *split_row(size_t count) {
  static const rondo_operator *const rows[] = {
      &rondo_operator_split_2, &rondo_operator_split_3, &rondo_operator_split_4, &rondo_operator_split_5,
      &rondo_operator_split_6, &rondo_operator_split_7, &rondo_operator_split_8};
  return rows[count - 2];
}

/* Concat ----------------------------------------------------------------------------------------------------------- */

static size_t input_count(const rondo_operation *operation) {
  size_t count = 0;
  while (count < MOST_PARTS && operation->inputs[count] != RONDO_NO_VALUE) count++;
  return count;
}

static bool fits_beside(const rondo_shape *a, const rondo_shape *b, size_t dimension) {
  bool fits = a->type == b->type && a->rank == b->rank;
  for (uint32_t i = 0; i < a->rank && fits; i++) fits = i == dimension || a->dims[i] == b->dims[i];
  return fits;
}

static rondo_status infer_concat(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const size_t dimension = operation->attributes.sizes[DIMENSION];
  results[0] = *rondo_operation_input(program, operation, 0);
  RONDO_TRY(rondo_require_dimension(program, operation, 0, dimension));
  for (uint32_t i = 1; i < input_count(operation); i++) {
    const rondo_shape *part = rondo_operation_input(program, operation, i);
    if (!fits_beside(&results[0], part, dimension)) {
      return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                  "all must have one type and the same sizes but along dimension %zu", dimension);
    }
    if (!rondo_checked_add(results[0].dims[dimension], part->dims[dimension], &results[0].dims[dimension]))
      return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                        "concat: the sizes along dimension %zu add up to more than fits in %zu bits", dimension,
                        8 * sizeof(size_t));
  }
  return RONDO_OK;
}

static rondo_status differentiate_concat(rondo_program *program, const rondo_operation *operation,
                                         const uint32_t *result_gradients, uint32_t *input_gradients) {
  const size_t count = input_count(operation), dimension = operation->attributes.sizes[DIMENSION];
  rondo_attributes attributes = {.sizes = {dimension}, .size_count = (uint32_t)(LENGTHS + count)};
  for (uint32_t i = 0; i < count; i++)
    attributes.sizes[LENGTHS + i] = rondo_operation_input(program, operation, i)->dims[dimension];
  return rondo_program_add(program, split_row(count), result_gradients, 1, &attributes, input_gradients);
}

static rondo_status emit_concat(rondo_emitter *emitter, const rondo_operation *operation) {
  const parts_shape shape =
      shape_of(emitter, operation->inputs, input_count(operation), rondo_emit_shape(emitter, operation->results[0]),
               operation->attributes.sizes[DIMENSION]);
  return emit_parts(emitter, &concat_code, &shape, operation->inputs, operation->results[0]);
}

const rondo_operator rondo_operator_concat = {.name = "concat",
                                              .types = RONDO_NUMBERS,
                                              .inputs = {"a", "b", "c", "d", "e", "f", "g", "h"},
                                              .required = 2,
                                              .result_count = 1,
                                              .infer = infer_concat,
                                              .differentiate = differentiate_concat,
                                              .emit = emit_concat};

static rondo_status fail_count(const char *call, size_t count) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: %zu parts; there can be 2 .. %d", call,
                    count, MOST_PARTS);
}

rondo_status rondo_op_concat(rondo_program *program, const rondo_value *values, size_t count, size_t dimension,
                             rondo_value *out_value) {
  const rondo_attributes attributes = {.sizes = {dimension}, .size_count = 1};
  RONDO_TRY(rondo_require("concat", "out_value", out_value));
  *out_value = (rondo_value){0};
  RONDO_TRY(rondo_require("concat", "values", values));
  if (count < 2 || count > MOST_PARTS) return fail_count("concat", count);
  for (size_t i = 0; i < count; i++) {
    if (values[i].id == 0)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, "concat: entry %zu is no value", i);
  }
  return rondo_program_apply(program, &rondo_operator_concat, values, (uint32_t)count, &attributes, out_value);
}

/* Stack ------------------------------------------------------------------------------------------------------------ */

/* The value with a dimension of 1 before `dimension`. */
static rondo_status insert_dimension(rondo_program *program, rondo_value value, size_t dimension, rondo_value *out) {
  rondo_type type;
  size_t dims[RONDO_MAX_DIMENSIONS + 1], rank;
  RONDO_TRY(rondo_value_shape(program, value, &type, dims, &rank));
  if (dimension > rank || rank == RONDO_MAX_DIMENSIONS) {
    return rondo_fail(
        RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
        "stack: a dimension %zu cannot be put into a value that has %zu: it goes to 0 .. %zu, and the most "
        "there can be is %d",
        dimension, rank, rank, RONDO_MAX_DIMENSIONS);
  }
  memmove(dims + dimension + 1, dims + dimension, (rank - dimension) * sizeof *dims);
  dims[dimension] = 1;
  return rondo_op_reshape(program, value, dims, rank + 1, out);
}

rondo_status rondo_op_stack(rondo_program *program, const rondo_value *values, size_t count, size_t dimension,
                            rondo_value *out_value) {
  RONDO_TRY(rondo_require("stack", "out_value", out_value));
  *out_value = (rondo_value){0};
  RONDO_TRY(rondo_require("stack", "program", program));
  RONDO_TRY(rondo_require("stack", "values", values));
  if (count < 2 || count > MOST_PARTS) return fail_count("stack", count);
  const rondo_program_mark mark = rondo_program_get_mark(program);
  rondo_value parts[MOST_PARTS];
  rondo_status status = RONDO_OK;
  for (size_t i = 0; i < count && status == RONDO_OK; i++)
    status = insert_dimension(program, values[i], dimension, &parts[i]);
  if (status == RONDO_OK) status = rondo_op_concat(program, parts, count, dimension, out_value);
  if (status != RONDO_OK) rondo_program_roll_back(program, mark);
  return status;
}

/* Split ------------------------------------------------------------------------------------------------------------ */

static rondo_status infer_split(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *value = rondo_operation_input(program, operation, 0);
  const size_t dimension = operation->attributes.sizes[DIMENSION];
  const size_t *lengths = operation->attributes.sizes + LENGTHS;
  RONDO_TRY(rondo_require_dimension(program, operation, 0, dimension));
  size_t total = 0;
  bool fits = true;
  for (uint32_t i = 0; i < operation->row->result_count; i++) {
    results[i] = *value;
    results[i].dims[dimension] = lengths[i];
    fits = fits && lengths[i] > 0 && rondo_checked_add(total, lengths[i], &total);
  }
  if (fits && total == value->dims[dimension]) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "the parts, each at least 1, must add up to the %zu of dimension %zu",
                              value->dims[dimension], dimension);
}

/* Parts that nothing was computed from have gradients of zeros. */
static rondo_status differentiate_split(rondo_program *program, const rondo_operation *operation,
                                        const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t count = operation->row->result_count;
  const rondo_attributes attributes = {.sizes = {operation->attributes.sizes[DIMENSION]}, .size_count = 1};
  uint32_t parts[MOST_PARTS];
  for (uint32_t i = 0; i < count; i++) {
    parts[i] = result_gradients[i];
    if (parts[i] != RONDO_NO_VALUE) continue;
    const rondo_shape shape = *rondo_program_shape(program, operation->results[i]);
    RONDO_TRY(rondo_program_add_zeros(program, &shape, &parts[i]));
  }
  return rondo_program_add(program, &rondo_operator_concat, parts, count, &attributes, &input_gradients[0]);
}

static rondo_status emit_split(rondo_emitter *emitter, const rondo_operation *operation) {
  const parts_shape shape =
      shape_of(emitter, operation->results, operation->row->result_count,
               rondo_emit_shape(emitter, operation->inputs[0]), operation->attributes.sizes[DIMENSION]);
  return emit_parts(emitter, &split_code, &shape, operation->results, operation->inputs[0]);
}

#define SPLIT_ROW(count)                                                                     \
  const rondo_operator rondo_operator_split_##count = {.name = "split_" #count,              \
                                                       .types = RONDO_NUMBERS,               \
                                                       .inputs = {"value"},                  \
                                                       .required = 1,                        \
                                                       .result_count = (count),              \
                                                       .infer = infer_split,                 \
                                                       .differentiate = differentiate_split, \
                                                       .emit = emit_split}
SPLIT_ROW(2);
SPLIT_ROW(3);
SPLIT_ROW(4);
SPLIT_ROW(5);
SPLIT_ROW(6);
SPLIT_ROW(7);
SPLIT_ROW(8);

rondo_status rondo_op_split(rondo_program *program, rondo_value value, size_t dimension, const size_t *lengths,
                            size_t count, rondo_value *out_values) {
  uint32_t index, results[RONDO_MAX_RESULTS];
  RONDO_TRY(rondo_require("split", "out_values", out_values));
  for (size_t i = 0; i < count; i++) out_values[i] = (rondo_value){0};
  RONDO_TRY(rondo_require("split", "program", program));
  RONDO_TRY(rondo_require("split", "lengths", lengths));
  if (count < 2 || count > MOST_PARTS) return fail_count("split", count);
  RONDO_TRY(rondo_program_resolve(program, value, "split", "value", &index));
  rondo_attributes attributes = {.sizes = {dimension}, .size_count = (uint32_t)(LENGTHS + count)};
  memcpy(attributes.sizes + LENGTHS, lengths, count * sizeof *lengths);
  RONDO_TRY(rondo_program_add(program, split_row(count), &index, 1, &attributes, results));
  for (size_t i = 0; i < count; i++) out_values[i] = rondo_program_tag(program, results[i]);
  return RONDO_OK;
}
