/* SPDX-License-Identifier: MIT
 * concat concatenates values along a dimension; split splits a value, and computes only the parts that something reads.
 * Each is the gradient of the other, and both copy the same way: rows, over the dimensions before, consist of runs, one
 * for each part. Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/common/operator_tools.h"
#include "tensor/operators/shape/strided.h"

#define MAX_PARTS RONDO_MAX_OPERANDS

enum { DIMENSION, LENGTHS }; /* sizes; LENGTHS: of split, the first of the parts' lengths along the dimension */

/* A scalar argument of the kernels; without padding. */
typedef struct parts_shape {
  size_t rows, width; /* of the whole, in units */
  size_t parts;
  size_t starts[MAX_PARTS + 1]; /* of each part in a row, in units; then width */
  size_t unit_bytes;            /* 1, 2, 4, 8 or 16 */
} parts_shape;

#define PIECE 16384 /* bytes of a row that a CPU copies at once */

static size_t piece_units(const parts_shape *shape) { return PIECE / shape->unit_bytes; }
static size_t pieces_of(const parts_shape *shape) { return rondo_divide_up(shape->width, piece_units(shape)); }

/* Doubles the unit while two units are always copied together. */
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
  parts_shape shape = {.rows = rondo_shape_elements_of(whole, 0, dimension),
                       .parts = count,
                       .unit_bytes = rondo_type_bytes(whole->type)};
  const size_t inner = rondo_shape_elements_of(whole, dimension + 1, whole->rank);
  for (size_t i = 0; i < count; i++)
    shape.starts[i + 1] = shape.starts[i] + rondo_emit_shape(emitter, parts[i])->dims[dimension] * inner;
  shape.width = shape.starts[count];
  assert(shape.rows * shape.width == rondo_shape_elements(whole));
  widen(&shape);
  return shape;
}

/* Kernels ---------------------------------------------------------------------------------------------------------- */

/* args: shape, whole, parts. An item is a piece of a row. */
static void walk_cpu(rondo_blocks blocks, void *const *args, bool splits) {
  const parts_shape *shape = args[0];
  unsigned char *whole = RONDO_ARG(unsigned char *, 1);
  const size_t bytes = shape->unit_bytes, pieces = pieces_of(shape);
  RONDO_EACH_ITEM(item, blocks, shape->rows * pieces) {
    const size_t row = item / pieces, first = item % pieces * piece_units(shape), last = first + piece_units(shape);
    for (size_t i = 0; i < shape->parts; i++) {
      const size_t begin = rondo_larger(first, shape->starts[i]), end = rondo_smaller(last, shape->starts[i + 1]);
      unsigned char *part = *(unsigned char *const *)args[2 + i];
      if (part == NULL || begin >= end) continue;
      unsigned char *in_whole = whole + (row * shape->width + begin) * bytes;
      unsigned char *in_part =
          part + (row * (shape->starts[i + 1] - shape->starts[i]) + begin - shape->starts[i]) * bytes;
      memcpy(splits ? in_part : in_whole, splits ? in_whole : in_part, (end - begin) * bytes);
    }
  }
}

static void concat_cpu(rondo_blocks blocks, void *const *args) { walk_cpu(blocks, args, false); }
static void split_cpu(rondo_blocks blocks, void *const *args) { walk_cpu(blocks, args, true); }

#define FOUR(access) access, access, access, access

RONDO_UNTYPED_KERNEL(concat, concat, RONDO_SCALAR(parts_shape), RONDO_WRITES, FOUR(RONDO_READS), FOUR(RONDO_READS));
RONDO_UNTYPED_KERNEL(split, concat, RONDO_SCALAR(parts_shape), RONDO_READS, FOUR(RONDO_WRITES), FOUR(RONDO_WRITES));

static rondo_status emit_parts(rondo_emitter *emitter, const rondo_kernel_options *code, const parts_shape *shape,
                               const uint32_t *parts, uint32_t whole_value) {
  void *whole = rondo_emit_address(emitter, whole_value);
  void *at[MAX_PARTS] = {NULL};
  for (size_t i = 0; i < shape->parts; i++) at[i] = rondo_emit_address(emitter, parts[i]);
  const bool is_cuda = rondo_emit_is_cuda(emitter);
  const rondo_grain grain = {32768 / rondo_smaller(shape->width * shape->unit_bytes, PIECE) + 1, RONDO_CUDA_THREADS};
  const size_t items = is_cuda ? shape->rows * shape->width : shape->rows * pieces_of(shape);
  return rondo_emit_kernel(emitter, code, rondo_emit_grid(emitter, items, grain),
                           RONDO_ARGS(shape, &whole, &at[0], &at[1], &at[2], &at[3], &at[4], &at[5], &at[6], &at[7]));
}

/* The operator that splits into this number of parts. */
static const rondo_operator *split_row(size_t count) {
  assert(count >= 2 && count <= MAX_PARTS);
  static const rondo_operator *const rows[] = {
      &rondo_operator_split_2, &rondo_operator_split_3, &rondo_operator_split_4, &rondo_operator_split_5,
      &rondo_operator_split_6, &rondo_operator_split_7, &rondo_operator_split_8};
  return rows[count - 2];
}

/* Concat ----------------------------------------------------------------------------------------------------------- */

static size_t input_count(const rondo_operation *operation) {
  size_t count = 0;
  while (count < MAX_PARTS && operation->inputs[count] != RONDO_NO_VALUE) count++;
  return count;
}

static rondo_status infer_concat(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const size_t dimension = operation->attributes.sizes[DIMENSION];
  results[0] = *rondo_operation_input(program, operation, 0);
  RONDO_TRY(rondo_require_dimension(program, operation, 0, dimension));
  for (uint32_t i = 1; i < input_count(operation); i++) {
    const rondo_shape *part = rondo_operation_input(program, operation, i);
    if (part->type != results[0].type || !rondo_shape_same_except(part, &results[0], dimension)) {
      return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                  "all inputs must have one type and the same sizes except in dimension %zu",
                                  dimension);
    }
    if (!rondo_checked_add(results[0].dims[dimension], part->dims[dimension], &results[0].dims[dimension]))
      return rondo_fail(
          RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
          "concat: the sizes along dimension %zu add up to more than fits in %zu bits: make the inputs smaller",
          dimension, 8 * sizeof(size_t));
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

RONDO_OPERATOR(concat, .types = RONDO_STORED_TYPES, .inputs = {"a", "b", "c", "d", "e", "f", "g", "h"}, .required = 2,
               .result_count = 1, .infer = infer_concat, .differentiate = differentiate_concat, .emit = emit_concat);

static rondo_status require_count(const char *call, size_t count) {
  if (count >= 1) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: 0 parts; there must be at least 1", call);
}

/* The only part is the whole, so there is no operation that checks it. length: the part's; NULL: its own. */
static rondo_status check_only(const rondo_program *program, const char *call, rondo_value value, size_t dimension,
                               const size_t *length, uint32_t *out_index) {
  RONDO_TRY(rondo_program_resolve(program, value, call, "value", out_index));
  const rondo_shape *shape = rondo_program_shape(program, *out_index);
  if (dimension >= shape->rank)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "%s: there is no dimension %zu: the value has %u, counted from 0", call, dimension,
                      (unsigned)shape->rank);
  if (length == NULL || *length == shape->dims[dimension]) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "%s: the only length is %zu, and dimension %zu has %zu elements", call, *length, dimension,
                    shape->dims[dimension]);
}

/* Copies the list; the caller releases the copy. The call may write its result into an entry of the original list, even
 * if it fails. */
static rondo_status copy_list(const rondo_program *program, const char *call, const rondo_value *values, size_t count,
                              rondo_value **out) {
  *out = NULL;
  RONDO_TRY(rondo_require(call, "program", program));
  RONDO_TRY(rondo_require(call, "values", values));
  RONDO_TRY(require_count(call, count));
  for (size_t i = 0; i < count; i++) {
    if (values[i].id == 0)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, "%s: entry %zu is not a value", call, i);
  }
  RONDO_TRY(rondo_allocate_items(&program->allocator, count, sizeof **out, out));
  memcpy(*out, values, count * sizeof **out);
  return RONDO_OK;
}

/* An operation has at most MAX_PARTS inputs. More values are concatenated in groups, and the groups in the same way,
 * so the elements are copied once for each power of MAX_PARTS. */
rondo_status rondo_program_add_concat(rondo_program *program, uint32_t *values, size_t count, size_t dimension) {
  const rondo_attributes attributes = {.sizes = {dimension}, .size_count = 1};
  while (count > 1) {
    size_t groups = 0;
    for (size_t first = 0; first < count; first += MAX_PARTS, groups++) {
      const size_t together = rondo_smaller(count - first, MAX_PARTS);
      uint32_t whole = values[first];
      if (together > 1)
        RONDO_TRY(rondo_program_add(program, &rondo_operator_concat, values + first, (uint32_t)together, &attributes,
                                    &whole));
      values[groups] = whole;
    }
    count = groups;
  }
  return RONDO_OK;
}

static rondo_status concat_list(rondo_program *program, const rondo_value *list, size_t count, size_t dimension,
                                rondo_value *out_value) {
  uint32_t *values;
  rondo_status status = rondo_allocate_items(&program->allocator, count, sizeof *values, &values);
  RONDO_TRY(status);
  for (size_t i = 0; i < count && status == RONDO_OK; i++)
    status = rondo_program_resolve(program, list[i], "concat", "an entry of values", &values[i]);
  if (status == RONDO_OK) status = rondo_program_add_concat(program, values, count, dimension);
  if (status == RONDO_OK) *out_value = rondo_program_tag(program, values[0]);
  rondo_release(&program->allocator, values, count, sizeof *values);
  return status;
}

/* Concatenates the list and releases it; all or nothing. `status`: of the calls before. */
static rondo_status finish_list(rondo_program *program, rondo_program_mark mark, rondo_status status, rondo_value *list,
                                size_t count, size_t dimension, rondo_value *out_value) {
  if (status == RONDO_OK) status = concat_list(program, list, count, dimension, out_value);
  if (status != RONDO_OK) rondo_program_roll_back(program, mark);
  rondo_release(&program->allocator, list, count, sizeof *list);
  return status;
}

rondo_status rondo_op_concat(rondo_program *program, const rondo_value *values, size_t count, size_t dimension,
                             rondo_value *out_value) {
  rondo_value *list = NULL;
  RONDO_TRY(rondo_require("concat", "out_value", out_value));
  rondo_status status = copy_list(program, "concat", values, count, &list);
  *out_value = (rondo_value){0};
  RONDO_TRY(status);
  uint32_t only;
  if (count == 1) status = check_only(program, "concat", list[0], dimension, NULL, &only);
  return finish_list(program, rondo_program_get_mark(program), status, list, count, dimension, out_value);
}

/* Stack ------------------------------------------------------------------------------------------------------------ */

/* The value with a dimension of 1 before `dimension`. */
static rondo_status insert_dimension(rondo_program *program, rondo_value value, size_t dimension, rondo_value *out) {
  rondo_type type;
  size_t dims[RONDO_MAX_DIMENSIONS + 1], rank;
  RONDO_TRY(rondo_value_shape(program, value, &type, dims, &rank));
  if (dimension > rank || rank == RONDO_MAX_DIMENSIONS) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "stack: dimension %zu cannot be inserted into a value with %zu dimensions: choose 0 to %zu; a "
                      "result has at most %d dimensions",
                      dimension, rank, rank, RONDO_MAX_DIMENSIONS);
  }
  memmove(dims + dimension + 1, dims + dimension, (rank - dimension) * sizeof *dims);
  dims[dimension] = 1;
  return rondo_op_reshape(program, value, dims, rank + 1, out);
}

rondo_status rondo_op_stack(rondo_program *program, const rondo_value *values, size_t count, size_t dimension,
                            rondo_value *out_value) {
  rondo_value *list = NULL;
  RONDO_TRY(rondo_require("stack", "out_value", out_value));
  rondo_status status = copy_list(program, "stack", values, count, &list);
  *out_value = (rondo_value){0};
  RONDO_TRY(status);
  const rondo_program_mark mark = rondo_program_get_mark(program);
  for (size_t i = 0; i < count && status == RONDO_OK; i++) {
    const rondo_value value = list[i];
    status = insert_dimension(program, value, dimension, &list[i]);
  }
  return finish_list(program, mark, status, list, count, dimension, out_value);
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
                              "the lengths, each at least 1, must add up to the %zu elements of dimension %zu",
                              value->dims[dimension], dimension);
}

/* Adds the gradients of the parts that have one. */
static rondo_status add_parts(rondo_program *program, const rondo_operation *operation,
                              const uint32_t *result_gradients, uint32_t *inout_sum) {
  const size_t dimension = operation->attributes.sizes[DIMENSION];
  size_t starts[RONDO_MAX_DIMENSIONS] = {0}, steps[RONDO_MAX_DIMENSIONS];
  for (uint32_t i = 0; i < RONDO_MAX_DIMENSIONS; i++) steps[i] = 1;
  for (uint32_t i = 0; i < operation->row->result_count; i++) {
    if (result_gradients[i] != RONDO_NO_VALUE)
      RONDO_TRY(rondo_program_add_part_gradient(program, operation->inputs[0], starts, steps, result_gradients[i],
                                                inout_sum));
    starts[dimension] += operation->attributes.sizes[LENGTHS + i];
  }
  return RONDO_OK;
}

static rondo_status differentiate_split(rondo_program *program, const rondo_operation *operation,
                                        const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t count = operation->row->result_count;
  const rondo_attributes attributes = {.sizes = {operation->attributes.sizes[DIMENSION]}, .size_count = 1};
  uint32_t whole;
  for (uint32_t i = 0; i < count; i++) {
    if (result_gradients[i] == RONDO_NO_VALUE)
      return add_parts(program, operation, result_gradients, &input_gradients[0]);
  }
  RONDO_TRY(rondo_program_add(program, &rondo_operator_concat, result_gradients, count, &attributes, &whole));
  return rondo_program_add_gradient(program, whole, &input_gradients[0]);
}

/* The index of the only part that is computed; the count of parts if there are several. */
static uint32_t find_only_part(const rondo_emitter *emitter, const rondo_operation *operation) {
  const uint32_t count = operation->row->result_count;
  uint32_t made = 0, last = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (rondo_emit_address(emitter, operation->results[i]) == NULL) continue;
    made++;
    last = i;
  }
  return made == 1 ? last : count;
}

/* A single part is copied like a slice, without reading the rest of the value. */
static rondo_status emit_part(rondo_emitter *emitter, const rondo_operation *operation, uint32_t part) {
  const rondo_shape *value = rondo_emit_shape(emitter, operation->inputs[0]);
  size_t strides[RONDO_MAX_DIMENSIONS], start = 0;
  rondo_strides_of(value, strides);
  for (uint32_t i = 0; i < part; i++) start += operation->attributes.sizes[LENGTHS + i];
  const rondo_strided copy = rondo_strided_make(rondo_emit_shape(emitter, operation->results[part]),
                                                start * strides[operation->attributes.sizes[DIMENSION]], strides);
  return rondo_emit_strided(emitter, &copy, operation->inputs[0], operation->results[part]);
}

static rondo_status emit_split(rondo_emitter *emitter, const rondo_operation *operation) {
  const uint32_t only = find_only_part(emitter, operation);
  if (only < operation->row->result_count) return emit_part(emitter, operation, only);
  const parts_shape shape =
      shape_of(emitter, operation->results, operation->row->result_count,
               rondo_emit_shape(emitter, operation->inputs[0]), operation->attributes.sizes[DIMENSION]);
  return emit_parts(emitter, &split_code, &shape, operation->results, operation->inputs[0]);
}

#define SPLIT_ROW(count)                                                                     \
  const rondo_operator rondo_operator_split_##count = {.name = "split_" #count,              \
                                                       .types = RONDO_STORED_TYPES,          \
                                                       .inputs = {"value"},                  \
                                                       .required = 1,                        \
                                                       .result_count = (count),              \
                                                       .spare_results = (1u << (count)) - 1, \
                                                       .adds_gradients = true,               \
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

/* The program, the dimension, and the array that receives the parts. */
typedef struct splitter {
  rondo_program *program;
  size_t dimension;
  rondo_value *results;
} splitter;

static rondo_status add_split(const splitter *s, uint32_t value, const size_t *lengths, size_t count,
                              uint32_t *results) {
  rondo_attributes attributes = {.sizes = {s->dimension}, .size_count = (uint32_t)(LENGTHS + count)};
  memcpy(attributes.sizes + LENGTHS, lengths, count * sizeof *lengths);
  return rondo_program_add(s->program, split_row(count), &value, 1, &attributes, results);
}

static rondo_status add_lengths(const size_t *lengths, size_t count, size_t *out_sum) {
  *out_sum = 0;
  for (size_t i = 0; i < count; i++) {
    if (!rondo_checked_add(*out_sum, lengths[i], out_sum))
      return rondo_fail(
          RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
          "split: the sum of the lengths does not fit in %zu bits: give lengths that add up to the dimension",
          8 * sizeof(size_t));
  }
  return RONDO_OK;
}

/* An operation has at most MAX_PARTS results. For more parts, a value is split into groups first, as in concat_list.
 * `first`: the index of the first of these parts. */
static rondo_status split_list(const splitter *s, uint32_t value, const size_t *lengths, size_t first, size_t count) {
  size_t sums[MAX_PARTS], together = 1, groups = 0;
  uint32_t results[RONDO_MAX_RESULTS];
  while ((count - 1) / together >= MAX_PARTS) together *= MAX_PARTS;
  for (size_t at = 0; at < count; at += together)
    RONDO_TRY(add_lengths(lengths + first + at, rondo_smaller(count - at, together), &sums[groups++]));
  RONDO_TRY(add_split(s, value, sums, groups, results));
  for (size_t g = 0; g < groups; g++) {
    const size_t at = first + g * together, left = first + count - at;
    if (together == 1 || left == 1)
      s->results[at] = rondo_program_tag(s->program, results[g]);
    else
      RONDO_TRY(split_list(s, results[g], lengths, at, rondo_smaller(left, together)));
  }
  return RONDO_OK;
}

rondo_status rondo_op_split(rondo_program *program, rondo_value value, size_t dimension, const size_t *lengths,
                            size_t count, rondo_value *out_values) {
  uint32_t index;
  RONDO_TRY(rondo_require("split", "out_values", out_values));
  for (size_t i = 0; i < count; i++) out_values[i] = (rondo_value){0};
  RONDO_TRY(rondo_require("split", "program", program));
  RONDO_TRY(rondo_require("split", "lengths", lengths));
  RONDO_TRY(require_count("split", count));
  if (count == 1) {
    RONDO_TRY(check_only(program, "split", value, dimension, lengths, &index));
    out_values[0] = value;
    return RONDO_OK;
  }
  RONDO_TRY(rondo_program_resolve(program, value, "split", "value", &index));
  const splitter s = {.program = program, .dimension = dimension, .results = out_values};
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = split_list(&s, index, lengths, 0, count);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_program_roll_back(program, mark);
  for (size_t i = 0; i < count; i++) out_values[i] = (rondo_value){0};
  return status;
}
