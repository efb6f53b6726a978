/* SPDX-License-Identifier: MIT
 * Operators whose shapes depend on the values of elements: NonZero, Compress and Unique. If these values are known at
 * import, the results are as large as they should be. If not, NonZero and Compress have memory for all that can be
 * selected, or for the bound of the options, and a count that the program computes.
 */
#include <string.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/node_attributes.h"
#include "onnx/operators/operator_families.h"

static rondo_status make_integers(rondo_onnx_node *node, size_t rank, size_t rows, size_t columns,
                                  rondo_onnx_constant **out, int64_t **out_elements) {
  const rondo_onnx_shape shape = {.type = RONDO_ONNX_INT64, .rank = rank, .dims = {rows, columns}};
  void *elements;
  RONDO_TRY(rondo_onnx_constant_make(node->importer, &shape, out, &elements));
  *out_elements = elements;
  return RONDO_OK;
}

/* NonZero ---------------------------------------------------------------------------------------------------------- */

/* Finds the places in each run. A scalar has no dimensions, and so no rows. */
static rondo_status find_non_zero(rondo_onnx_node *node) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  const size_t bound = rondo_onnx_bound_of(node, rondo_onnx_shape_count(have));
  rondo_program *program;
  rondo_value value, indices, count;
  if (have->rank == 0) return rondo_onnx_refuse(node, "its input is a scalar that is not known at import");
  RONDO_TRY(rondo_onnx_operand(node, 0, &value));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_non_zero(program, value, bound, &indices, &count));
  return rondo_onnx_set_counted(node, 0, indices, RONDO_ONNX_INT64, 1, count);
}

/* A column for each element that is not 0, a row for each dimension. */
static rondo_status add_non_zero(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  const double *numbers;
  size_t count, places = 0;
  rondo_onnx_constant *constant;
  int64_t *indices;
  (void)data;
  if (!rondo_onnx_is_constant(node, 0)) return find_non_zero(node);
  RONDO_TRY(rondo_onnx_known_numbers(node, 0, &numbers, &count));
  for (size_t i = 0; i < count; i++) places += numbers[i] != 0;
  RONDO_TRY(make_integers(node, 2, have->rank, places, &constant, &indices));
  for (size_t i = 0, place = 0; i < count && place < places; i++) {
    if (numbers[i] == 0) continue;
    for (size_t d = have->rank, rest = i; d-- > 0; rest /= have->dims[d])
      indices[d * places + place] = (int64_t)(rest % have->dims[d]);
    place++;
  }
  rondo_onnx_set_constant(node, 0, constant);
  return RONDO_OK;
}

/* Compress --------------------------------------------------------------------------------------------------------- */

/* The indices where the condition is true, as a constant; the condition may be shorter than the dimension. */
static rondo_status find_selected(rondo_onnx_node *node, size_t size, rondo_onnx_constant **out) {
  const int64_t *condition;
  size_t count, selected = 0;
  int64_t *indices;
  RONDO_TRY(rondo_onnx_known_integers(node, 1, &condition, &count));
  if (count > size) return rondo_onnx_refuse(node, "the condition has %zu elements for %zu", count, size);
  for (size_t i = 0; i < count; i++) selected += condition[i] != 0;
  RONDO_TRY(make_integers(node, 1, selected, 0, out, &indices));
  for (size_t i = 0, at = 0; i < count; i++)
    if (condition[i] != 0) indices[at++] = (int64_t)i;
  return RONDO_OK;
}

/* Selects in each run. `from`: the shape of the value, perhaps as one row. */
static rondo_status compress_in_run(rondo_onnx_node *node, const rondo_onnx_shape *from, size_t axis) {
  const size_t bound = rondo_onnx_bound_of(node, rondo_onnx_shape_count(rondo_onnx_input_shape(node, 1)));
  rondo_program *program;
  rondo_value value, condition, count;
  RONDO_TRY(rondo_onnx_operand(node, 0, &value));
  RONDO_TRY(rondo_onnx_operand(node, 1, &condition));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_onnx_reshape(node, value, from->dims, from->rank, &value));
  RONDO_TRY(rondo_op_compress(program, value, condition, axis, bound, &value, &count));
  return rondo_onnx_set_counted(node, 0, value, from->type, axis, count);
}

/* Without an axis, of all elements in one row. */
static rondo_status add_compress(rondo_onnx_node *node, const void *data) {
  rondo_onnx_shape shape = *rondo_onnx_input_shape(node, 0);
  int64_t given;
  size_t axis = 0;
  rondo_onnx_constant *selected;
  rondo_program *program;
  rondo_value value, indices;
  (void)data;
  if (!rondo_onnx_has_attribute(node, "axis")) {
    shape.dims[0] = rondo_onnx_shape_count(&shape);
    shape.rank = 1;
  }
  RONDO_TRY(rondo_onnx_attribute_int(node, "axis", 0, &given));
  RONDO_TRY(rondo_onnx_axis(given, shape.rank, &axis));
  if (!rondo_onnx_is_constant(node, 1)) return compress_in_run(node, &shape, axis);
  RONDO_TRY(find_selected(node, shape.dims[axis], &selected));
  const rondo_onnx_shape from = shape;
  shape.dims[axis] = selected->count;
  if (rondo_onnx_shape_count(&shape) == 0) return rondo_onnx_set_empty(node, 0, &shape);
  RONDO_TRY(rondo_onnx_operand(node, 0, &value));
  RONDO_TRY(rondo_onnx_constant_operand(node, selected, &indices));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_onnx_reshape(node, value, from.dims, from.rank, &value));
  RONDO_TRY(rondo_op_index_select(program, value, indices, axis, &value));
  return rondo_onnx_set_typed(node, 0, value, shape.type);
}

/* Unique ----------------------------------------------------------------------------------------------------------- */

/* The parts of a tensor along an axis: part p has the elements [o, p, i]. */
typedef struct parts {
  const double *numbers;
  const int64_t *integers; /* of integer types, which doubles do not hold; or NULL */
  size_t count, outer, inner;
} parts;

/* As NumPy orders them: NaN is above all numbers, and one NaN like another. */
static int compare_elements(const parts *of, size_t a, size_t b) {
  if (of->integers != NULL) return (of->integers[a] > of->integers[b]) - (of->integers[a] < of->integers[b]);
  const double x = of->numbers[a], y = of->numbers[b];
  const bool is_x_nan = x != x, is_y_nan = y != y;
  return is_x_nan || is_y_nan ? (int)is_x_nan - (int)is_y_nan : (x > y) - (x < y);
}

static int compare_parts(const parts *of, size_t a, size_t b) {
  for (size_t o = 0; o < of->outer; o++)
    for (size_t i = 0; i < of->inner; i++) {
      const int order = compare_elements(of, (o * of->count + a) * of->inner + i, (o * of->count + b) * of->inner + i);
      if (order != 0) return order;
    }
  return 0;
}

static void merge(const parts *of, const size_t *from, size_t begin, size_t middle, size_t end, size_t *to) {
  size_t left = begin, right = middle;
  for (size_t i = begin; i < end; i++) {
    const bool takes_left = left < middle && (right == end || compare_parts(of, from[left], from[right]) <= 0);
    to[i] = takes_left ? from[left++] : from[right++];
  }
}

/* The order of the parts; equal ones stay in theirs. `spare` has as many elements. */
static void sort_parts(const parts *of, size_t *order, size_t *spare) {
  for (size_t i = 0; i < of->count; i++) order[i] = i;
  for (size_t width = 1; width < of->count; width *= 2) {
    for (size_t begin = 0; begin < of->count; begin += 2 * width) {
      const size_t middle = begin + width < of->count ? begin + width : of->count;
      const size_t end = middle + width < of->count ? middle + width : of->count;
      merge(of, order, begin, middle, end, spare);
    }
    memcpy(order, spare, of->count * sizeof *order);
  }
}

typedef struct unique_parts {
  size_t count;                    /* of different parts */
  size_t *first, *repeats, *which; /* of each: its first place, how often it occurs; of each part: which it is */
} unique_parts;

/* In their sorted order. */
static void find_groups(const parts *of, const size_t *order, unique_parts *out) {
  out->count = 0;
  for (size_t i = 0; i < of->count; i++) {
    if (i == 0 || compare_parts(of, order[i - 1], order[i]) != 0) {
      out->first[out->count] = order[i];
      out->repeats[out->count++] = 0;
    }
    out->repeats[out->count - 1]++;
    out->which[order[i]] = out->count - 1;
  }
}

/* In the order of their first places. `place` and `spare` have an element for each part. */
static void order_by_place(const parts *of, unique_parts *unique, size_t *place, size_t *spare) {
  size_t count = 0;
  for (size_t i = 0; i < of->count; i++)
    if (unique->first[unique->which[i]] == i) place[unique->which[i]] = count++;
  for (size_t i = 0; i < of->count; i++) unique->which[i] = place[unique->which[i]];
  for (int which = 0; which < 2; which++) {
    size_t *const numbers = which == 0 ? unique->first : unique->repeats;
    for (size_t i = 0; i < unique->count; i++) spare[place[i]] = numbers[i];
    memcpy(numbers, spare, unique->count * sizeof *numbers);
  }
}

static rondo_status set_integers(rondo_onnx_node *node, size_t output, const size_t *numbers, size_t count) {
  rondo_onnx_constant *constant;
  int64_t *elements;
  RONDO_TRY(make_integers(node, 1, count, 0, &constant, &elements));
  for (size_t i = 0; i < count; i++) elements[i] = (int64_t)numbers[i];
  rondo_onnx_set_constant(node, output, constant);
  return RONDO_OK;
}

static rondo_status set_unique(rondo_onnx_node *node, const rondo_onnx_constant *from, const parts *of,
                               const unique_parts *unique, rondo_onnx_shape shape, size_t axis) {
  const size_t bytes = rondo_onnx_type_bytes(shape.type) * of->inner;
  rondo_onnx_constant *constant;
  void *elements;
  if (bytes == 0) return rondo_onnx_refuse(node, "its elements share bytes");
  shape.dims[axis] = unique->count;
  RONDO_TRY(rondo_onnx_constant_make(node->importer, &shape, &constant, &elements));
  for (size_t o = 0; o < of->outer; o++)
    for (size_t p = 0; p < unique->count; p++)
      memcpy((unsigned char *)elements + (o * unique->count + p) * bytes,
             (const unsigned char *)from->elements + (o * of->count + unique->first[p]) * bytes, bytes);
  rondo_onnx_set_constant(node, 0, constant);
  RONDO_TRY(set_integers(node, 1, unique->first, unique->count));
  RONDO_TRY(set_integers(node, 2, unique->which, of->count));
  return set_integers(node, 3, unique->repeats, unique->count);
}

static rondo_status read_parts(rondo_onnx_node *node, const rondo_onnx_shape *shape, size_t axis, parts *out) {
  const bool is_float = shape->type == RONDO_ONNX_FLOAT || shape->type == RONDO_ONNX_DOUBLE ||
                        shape->type == RONDO_ONNX_FLOAT16 || shape->type == RONDO_ONNX_BFLOAT16;
  size_t count;
  *out = (parts){.count = shape->dims[axis], .outer = 1, .inner = 1};
  for (size_t i = 0; i < axis; i++) out->outer *= shape->dims[i];
  for (size_t i = axis + 1; i < shape->rank; i++) out->inner *= shape->dims[i];
  return is_float ? rondo_onnx_known_numbers(node, 0, &out->numbers, &count)
                  : rondo_onnx_known_integers(node, 0, &out->integers, &count);
}

/* Without an axis, of all elements in one row. */
static rondo_status add_unique(rondo_onnx_node *node, const void *data) {
  rondo_onnx_shape shape = *rondo_onnx_input_shape(node, 0);
  const rondo_onnx_constant *from;
  int64_t given, sorted;
  size_t axis, *arrays;
  parts of;
  (void)data;
  if (!rondo_onnx_has_attribute(node, "axis")) {
    shape.dims[0] = rondo_onnx_shape_count(&shape);
    shape.rank = 1;
  }
  RONDO_TRY(rondo_onnx_attribute_int(node, "axis", 0, &given));
  RONDO_TRY(rondo_onnx_attribute_int(node, "sorted", 1, &sorted));
  RONDO_TRY(rondo_onnx_axis(given, shape.rank, &axis));
  RONDO_TRY(rondo_onnx_known_input(node, 0, &from));
  RONDO_TRY(read_parts(node, &shape, axis, &of));
  RONDO_TRY(rondo_scratch_take(&node->importer->scratch, 5 * of.count, sizeof *arrays, &arrays));
  size_t *const order = arrays, *const spare = arrays + of.count;
  unique_parts unique = {
      .first = arrays + 2 * of.count, .repeats = arrays + 3 * of.count, .which = arrays + 4 * of.count};
  sort_parts(&of, order, spare);
  find_groups(&of, order, &unique);
  if (sorted == 0) order_by_place(&of, &unique, order, spare);
  return set_unique(node, from, &of, &unique, shape, axis);
}

/* The table -------------------------------------------------------------------------------------------------------- */

static const rondo_onnx_row rows[] = {
    {"Compress", 9, 0, 2, 2, 0, add_compress, NULL},
    {"NonZero", 9, 0, 1, 1, 0, add_non_zero, NULL},
    {"Unique", 11, 0, 1, 1, 0, add_unique, NULL},
};

RONDO_ONNX_FAMILY(rondo_onnx_data_dependent, rows);
