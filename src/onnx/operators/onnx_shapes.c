/* SPDX-License-Identifier: MIT
 * Operators that change shapes, and copy elements at most.
 */
#include <string.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/node_attributes.h"
#include "onnx/operators/operator_families.h"

/* The same elements in another shape ------------------------------------------------------------------------------- */

/* Sets result 0 to input 0 in another shape. A held constant of any type and rank keeps its elements. */
static rondo_status set_reshaped(rondo_onnx_node *node, rondo_onnx_shape shape) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  const rondo_onnx_constant *constant = node->inputs[0].constant;
  rondo_onnx_constant *reshaped;
  rondo_value value;
  shape.type = have->type;
  if (rondo_onnx_shape_count(&shape) != rondo_onnx_shape_count(have)) {
    char from[RONDO_ONNX_SHAPE_TEXT], to[RONDO_ONNX_SHAPE_TEXT];
    return rondo_onnx_refuse(node, "%s has not as many elements as %s", rondo_onnx_shape_text(from, have),
                             rondo_onnx_shape_text(to, &shape));
  }
  if (!rondo_onnx_has_result(&node->inputs[0]) && constant->folding == NULL) {
    RONDO_TRY(rondo_onnx_constant_reshaped(node->importer, constant, &shape, &reshaped));
    rondo_onnx_set_constant(node, 0, reshaped);
    return RONDO_OK;
  }
  const rondo_onnx_shape held = rondo_onnx_program_shape(&shape);
  RONDO_TRY(rondo_onnx_operand_as(node, 0, held.dims, held.rank, &value));
  return rondo_onnx_set_shaped(node, 0, value, &shape);
}

static rondo_status fail_rank(rondo_onnx_node *node, size_t rank) {
  return rondo_onnx_refuse(node, "the result has %zu dimensions, and %d are supported", rank,
                           RONDO_ONNX_MOST_DIMENSIONS);
}

/* A size of 0 means that of the input, unless `zero_is_size`; one size may be -1, which is what is left. */
static rondo_status resolve_sizes(rondo_onnx_node *node, const int64_t *sizes, bool zero_is_size,
                                  rondo_onnx_shape *out) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  size_t known = 1, inferred = SIZE_MAX;
  for (size_t i = 0; i < out->rank; i++) {
    const bool is_copied = sizes[i] == 0 && !zero_is_size;
    if (sizes[i] < -1 || (sizes[i] == -1 && inferred != SIZE_MAX) || (is_copied && i >= have->rank))
      return rondo_onnx_refuse(node, "size %lld of dimension %zu", (long long)sizes[i], i);
    if (sizes[i] == -1) {
      inferred = i;
      continue;
    }
    out->dims[i] = is_copied ? have->dims[i] : (size_t)sizes[i];
    if (!rondo_checked_multiply(known, out->dims[i], &known)) return rondo_onnx_refuse(node, "its sizes are too large");
  }
  if (inferred != SIZE_MAX) out->dims[inferred] = known > 0 ? rondo_onnx_shape_count(have) / known : 0;
  return RONDO_OK;
}

static rondo_status add_reshape(rondo_onnx_node *node, const void *data) {
  const int64_t *sizes;
  int64_t zero_is_size;
  rondo_onnx_shape shape = {0};
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "allowzero", 0, &zero_is_size));
  RONDO_TRY(rondo_onnx_known_integers(node, 1, &sizes, &shape.rank));
  if (shape.rank > RONDO_ONNX_MOST_DIMENSIONS) return fail_rank(node, shape.rank);
  RONDO_TRY(resolve_sizes(node, sizes, zero_is_size != 0, &shape));
  return set_reshaped(node, shape);
}

static rondo_status add_flatten(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  rondo_onnx_shape shape = {.rank = 2, .dims = {1, 1}};
  int64_t axis;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "axis", 1, &axis));
  if (axis < 0) axis += (int64_t)have->rank;
  if (axis < 0 || axis > (int64_t)have->rank)
    return rondo_onnx_refuse_attribute(node, "axis", "it is no dimension of %zu", have->rank);
  for (size_t i = 0; i < have->rank; i++) shape.dims[i < (size_t)axis ? 0 : 1] *= have->dims[i];
  return set_reshaped(node, shape);
}

/* Axes are an attribute, or input 1 from operator set 13 on. *out_count is SIZE_MAX where there are none. */
static rondo_status find_axes(rondo_onnx_node *node, const int64_t **out, size_t *out_count) {
  if (rondo_onnx_has_input(node, 1)) return rondo_onnx_known_integers(node, 1, out, out_count);
  RONDO_TRY(rondo_onnx_attribute_ints(node, "axes", out, out_count));
  if (*out == NULL) *out_count = SIZE_MAX;
  return RONDO_OK;
}

/* Marks the axes of `rank` dimensions. */
static rondo_status mark_axes(const int64_t *axes, size_t count, size_t rank, bool *marks) {
  for (size_t i = 0; i < count; i++) {
    size_t axis;
    RONDO_TRY(rondo_onnx_axis(axes[i], rank, &axis));
    if (marks[axis])
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_DUPLICATE_NAME, "axis %zu is given twice", axis);
    marks[axis] = true;
  }
  return RONDO_OK;
}

static rondo_status add_squeeze(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  bool removed[RONDO_ONNX_MOST_DIMENSIONS] = {false};
  rondo_onnx_shape shape = {0};
  const int64_t *axes;
  size_t count;
  (void)data;
  RONDO_TRY(find_axes(node, &axes, &count));
  if (count != SIZE_MAX) RONDO_TRY(mark_axes(axes, count, have->rank, removed));
  for (size_t i = 0; i < have->rank; i++) {
    if (removed[i] && have->dims[i] != 1)
      return rondo_onnx_refuse(node, "dimension %zu has the size %zu, not 1", i, have->dims[i]);
    const bool stays = count == SIZE_MAX ? have->dims[i] != 1 : !removed[i];
    if (stays) shape.dims[shape.rank++] = have->dims[i];
  }
  return set_reshaped(node, shape);
}

static rondo_status add_unsqueeze(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  bool added[RONDO_ONNX_MOST_DIMENSIONS] = {false};
  rondo_onnx_shape shape = {0};
  const int64_t *axes;
  size_t count, from = 0;
  (void)data;
  RONDO_TRY(find_axes(node, &axes, &count));
  if (count == SIZE_MAX) return rondo_onnx_refuse(node, "it has no axes");
  if (count > RONDO_ONNX_MOST_DIMENSIONS - have->rank) return fail_rank(node, have->rank + count);
  shape.rank = have->rank + count;
  RONDO_TRY(mark_axes(axes, count, shape.rank, added));
  for (size_t i = 0; i < shape.rank; i++) shape.dims[i] = added[i] ? 1 : have->dims[from++];
  return set_reshaped(node, shape);
}

/* Of an optional without a value, too. */
static rondo_status add_identity(rondo_onnx_node *node, const void *data) {
  (void)data;
  if (rondo_onnx_input_count(node) == 0) return rondo_onnx_refuse(node, "it has no input");
  rondo_onnx_set_input(node, 0, 0);
  return RONDO_OK;
}

/* Shapes as values ------------------------------------------------------------------------------------------------- */

static rondo_status set_integers(rondo_onnx_node *node, const size_t *numbers, size_t count, size_t rank) {
  const rondo_onnx_shape shape = {.type = RONDO_ONNX_INT64, .rank = rank, .dims = {count}};
  rondo_onnx_constant *constant;
  void *elements;
  RONDO_TRY(rondo_onnx_constant_make(node->importer, &shape, &constant, &elements));
  for (size_t i = 0; i < count; i++) ((int64_t *)elements)[i] = (int64_t)numbers[i];
  if (!node->folds) constant->given |= RONDO_ONNX_OF_SIZES;
  rondo_onnx_set_constant(node, 0, constant);
  return RONDO_OK;
}

static size_t clamp_axis(int64_t axis, size_t rank) {
  const int64_t count = (int64_t)rank, from_start = axis < 0 ? axis + count : axis;
  return (size_t)(from_start < 0 ? 0 : from_start > count ? count : from_start);
}

static rondo_status add_shape(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  int64_t start, end;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "start", 0, &start));
  RONDO_TRY(rondo_onnx_attribute_int(node, "end", INT64_MAX, &end));
  const size_t first = clamp_axis(start, have->rank), last = clamp_axis(end, have->rank);
  return set_integers(node, have->dims + first, last > first ? last - first : 0, 1);
}

static rondo_status add_size(rondo_onnx_node *node, const void *data) {
  const size_t count = rondo_onnx_shape_count(rondo_onnx_input_shape(node, 0));
  (void)data;
  return set_integers(node, &count, 1, 0);
}

/* Transpose, Expand ------------------------------------------------------------------------------------------------ */

static rondo_status find_order(rondo_onnx_node *node, size_t rank, size_t *order) {
  const int64_t *given;
  size_t count;
  bool is_used[RONDO_ONNX_MOST_DIMENSIONS] = {false};
  RONDO_TRY(rondo_onnx_attribute_ints(node, "perm", &given, &count));
  if (given != NULL && count != rank)
    return rondo_onnx_refuse_attribute(node, "perm", "it has %zu numbers for %zu dimensions", count, rank);
  for (size_t i = 0; i < rank; i++) {
    RONDO_TRY(rondo_onnx_axis(given != NULL ? given[i] : (int64_t)(rank - 1 - i), rank, &order[i]));
    if (is_used[order[i]]) return rondo_onnx_refuse_attribute(node, "perm", "it names dimension %zu twice", order[i]);
    is_used[order[i]] = true;
  }
  return RONDO_OK;
}

/* Dimensions that stay side by side become one, in the shape that is transposed and in the order. */
static void merge_dimensions(rondo_onnx_shape *inout, size_t order[RONDO_ONNX_MOST_DIMENSIONS]) {
  size_t begins[RONDO_ONNX_MOST_DIMENSIONS], kept = 0;
  rondo_onnx_shape merged = {.type = inout->type};
  for (size_t i = 0; i < inout->rank; i++)
    if (i == 0 || order[i] != order[i - 1] + 1) begins[kept++] = order[i];
  for (size_t d = 0; d < inout->rank; d++) {
    bool begins_here = false;
    for (size_t i = 0; i < kept; i++) begins_here |= begins[i] == d;
    if (begins_here) merged.dims[merged.rank++] = 1;
    merged.dims[merged.rank - 1] *= inout->dims[d];
    for (size_t i = 0; i < kept && begins_here; i++)
      if (begins[i] == d) order[i] = merged.rank - 1;
  }
  *inout = merged;
}

/* More dimensions than programs have, of which enough stay side by side. */
static rondo_status transpose_merged(rondo_onnx_node *node, const rondo_onnx_shape *result, size_t *order) {
  rondo_onnx_shape merged = *rondo_onnx_input_shape(node, 0);
  rondo_program *program;
  rondo_value value;
  merge_dimensions(&merged, order);
  if (merged.rank > RONDO_MAX_DIMENSIONS)
    return rondo_onnx_refuse(node, "%zu dimensions of %zu change their places, and programs have at most %d",
                             merged.rank, result->rank, RONDO_MAX_DIMENSIONS);
  RONDO_TRY(rondo_onnx_operand_as(node, 0, merged.dims, merged.rank, &value));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  if (merged.rank > 1) RONDO_TRY(rondo_op_permute(program, value, order, &value));
  return rondo_onnx_set_shaped(node, 0, value, result);
}

static rondo_status add_transpose(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  rondo_onnx_shape shape = *have;
  size_t order[RONDO_ONNX_MOST_DIMENSIONS];
  rondo_program *program;
  rondo_value value;
  (void)data;
  RONDO_TRY(find_order(node, have->rank, order));
  for (size_t i = 0; i < shape.rank; i++) shape.dims[i] = have->dims[order[i]];
  if (rondo_onnx_shape_count(&shape) == 0) return rondo_onnx_set_empty(node, 0, &shape);
  if (shape.rank > RONDO_MAX_DIMENSIONS) return transpose_merged(node, &shape, order);
  RONDO_TRY(rondo_onnx_operand(node, 0, &value));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  if (have->rank > 1) RONDO_TRY(rondo_op_permute(program, value, order, &value));
  RONDO_TRY(rondo_onnx_set_typed(node, 0, value, shape.type));
  if (node->folds && shape.rank == 2 && order[0] == 1 && rondo_onnx_wants_output(node, 0))
    node->outputs[0].transposed = node->inputs[0].constant; /* products read it as it is stored */
  for (size_t i = 0; i < shape.rank; i++)
    if (order[i] == node->inputs[0].counted_axis) rondo_onnx_keep_count(node, i);
  return RONDO_OK;
}

static rondo_status add_expand(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  rondo_onnx_shape wanted = {0}, shape;
  const int64_t *sizes;
  rondo_program *program;
  rondo_value value;
  (void)data;
  RONDO_TRY(rondo_onnx_known_integers(node, 1, &sizes, &wanted.rank));
  if (wanted.rank > RONDO_ONNX_MOST_DIMENSIONS) return fail_rank(node, wanted.rank);
  for (size_t i = 0; i < wanted.rank; i++) {
    if (sizes[i] < 0) return rondo_onnx_refuse(node, "size %lld of dimension %zu", (long long)sizes[i], i);
    wanted.dims[i] = (size_t)sizes[i];
  }
  RONDO_TRY(rondo_onnx_broadcast((const rondo_onnx_shape *const[]){have, &wanted}, 2, &shape));
  if (rondo_onnx_shape_count(&shape) == 0) return rondo_onnx_set_empty(node, 0, &shape);
  RONDO_TRY(rondo_onnx_operand(node, 0, &value));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_expand(program, value, shape.dims, shape.rank, &value));
  return rondo_onnx_set_typed(node, 0, value, shape.type);
}

/* Concat, Split ---------------------------------------------------------------------------------------------------- */

static rondo_status join_shapes(rondo_onnx_node *node, size_t axis, rondo_onnx_shape *out) {
  *out = *rondo_onnx_input_shape(node, 0);
  for (size_t i = 1; i < rondo_onnx_input_count(node); i++) {
    const rondo_onnx_shape *next = rondo_onnx_input_shape(node, i);
    if (next->rank != out->rank) return rondo_onnx_refuse(node, "its inputs have different numbers of dimensions");
    for (size_t d = 0; d < out->rank; d++)
      if (d != axis && next->dims[d] != out->dims[d])
        return rondo_onnx_refuse(node, "its inputs have the sizes %zu and %zu in dimension %zu", out->dims[d],
                                 next->dims[d], d);
    out->dims[axis] += next->dims[axis];
  }
  return RONDO_OK;
}

/* Inputs without elements are left out: programs have no such values. */
static rondo_status add_concat(rondo_onnx_node *node, const void *data) {
  const size_t count = rondo_onnx_input_count(node);
  int64_t given;
  size_t axis, used = 0;
  rondo_onnx_shape shape;
  rondo_program *program;
  rondo_value *values;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "axis", 1, &given));
  RONDO_TRY(rondo_onnx_axis(given, rondo_onnx_input_shape(node, 0)->rank, &axis));
  RONDO_TRY(join_shapes(node, axis, &shape));
  if (rondo_onnx_shape_count(&shape) == 0) return rondo_onnx_set_empty(node, 0, &shape);
  RONDO_TRY(rondo_scratch_take(&node->importer->scratch, count, sizeof *values, &values));
  for (size_t i = 0; i < count; i++)
    if (rondo_onnx_input_shape(node, i)->dims[axis] > 0) RONDO_TRY(rondo_onnx_operand(node, i, &values[used++]));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_concat(program, values, used, axis, &values[0]));
  return rondo_onnx_set_typed(node, 0, values[0], shape.type);
}

/* The lengths are an attribute, or input 1; or else equal, but for the last one, which may be shorter. */
static rondo_status find_lengths(rondo_onnx_node *node, size_t size, size_t count, size_t *lengths) {
  const int64_t *given;
  int64_t parts;
  size_t given_count, sum = 0;
  RONDO_TRY(rondo_onnx_attribute_ints(node, "split", &given, &given_count));
  RONDO_TRY(rondo_onnx_attribute_int(node, "num_outputs", (int64_t)count, &parts));
  if (rondo_onnx_has_input(node, 1)) RONDO_TRY(rondo_onnx_known_integers(node, 1, &given, &given_count));
  if (parts != (int64_t)count || (given != NULL && given_count != count))
    return rondo_onnx_refuse(node, "it has %zu outputs, and lengths of %zu", count,
                             given != NULL ? given_count : (size_t)parts);
  const size_t each = (size + count - 1) / count;
  for (size_t i = 0; i < count; i++) {
    const size_t left = size - sum;
    if (given != NULL && (given[i] < 0 || (uint64_t)given[i] > left))
      return rondo_onnx_refuse(node, "length %lld of output %zu, and %zu are left", (long long)given[i], i, left);
    lengths[i] = given != NULL ? (size_t)given[i] : each < left ? each : left;
    sum += lengths[i];
  }
  return sum == size ? RONDO_OK : rondo_onnx_refuse(node, "its lengths add up to %zu, not to %zu", sum, size);
}

static rondo_status set_parts(rondo_onnx_node *node, size_t axis, const size_t *lengths, const rondo_value *parts) {
  rondo_onnx_shape shape = *rondo_onnx_input_shape(node, 0);
  for (size_t i = 0, at = 0; i < rondo_onnx_output_count(node); i++) {
    shape.dims[axis] = lengths[i];
    if (rondo_onnx_shape_count(&shape) == 0)
      RONDO_TRY(rondo_onnx_set_empty(node, i, &shape));
    else
      RONDO_TRY(rondo_onnx_set_typed(node, i, parts[at++], shape.type));
  }
  return RONDO_OK;
}

static rondo_status add_split(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  const size_t count = rondo_onnx_output_count(node);
  int64_t given;
  size_t axis, used = 0, *lengths, *longer;
  rondo_program *program;
  rondo_value value, *parts;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "axis", 0, &given));
  RONDO_TRY(rondo_onnx_axis(given, have->rank, &axis));
  RONDO_TRY(rondo_scratch_take(&node->importer->scratch, count, sizeof *lengths, &lengths));
  RONDO_TRY(rondo_scratch_take(&node->importer->scratch, count, sizeof *longer, &longer));
  RONDO_TRY(rondo_scratch_take(&node->importer->scratch, count, sizeof *parts, &parts));
  if (count == 0) return rondo_onnx_refuse(node, "it has no outputs");
  RONDO_TRY(find_lengths(node, have->dims[axis], count, lengths));
  for (size_t i = 0; i < count; i++)
    if (lengths[i] > 0) longer[used++] = lengths[i];
  if (rondo_onnx_shape_count(have) > 0) {
    RONDO_TRY(rondo_onnx_operand(node, 0, &value));
    RONDO_TRY(rondo_onnx_node_program(node, &program));
    RONDO_TRY(rondo_op_split(program, value, axis, longer, used, parts));
  }
  return set_parts(node, axis, lengths, parts);
}

/* Slice ------------------------------------------------------------------------------------------------------------ */

typedef struct slices {
  size_t start[RONDO_ONNX_MOST_DIMENSIONS], length[RONDO_ONNX_MOST_DIMENSIONS], step[RONDO_ONNX_MOST_DIMENSIONS];
  bool is_reversed[RONDO_ONNX_MOST_DIMENSIONS]; /* from start downwards */
} slices;

/* As in Python: negative numbers count from the end, and then both are limited. */
static rondo_status slice_axis(rondo_onnx_node *node, slices *of, size_t axis, int64_t start, int64_t end,
                               int64_t step) {
  const int64_t size = (int64_t)rondo_onnx_input_shape(node, 0)->dims[axis];
  if (step == 0) return rondo_onnx_refuse(node, "a step is 0");
  const int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? size : size - 1;
  if (start < 0) start = start < -size ? lowest : start + size;
  if (end < 0) end = end < -size ? lowest : end + size;
  start = start < lowest ? lowest : start > highest ? highest : start;
  end = end < lowest ? lowest : end > highest ? highest : end;
  const uint64_t width = step > 0 ? (uint64_t)step : UINT64_C(0) - (uint64_t)step;
  const int64_t distance = step > 0 ? end - start : start - end;
  of->length[axis] = distance > 0 ? (size_t)(((uint64_t)distance - 1) / width) + 1 : 0;
  of->start[axis] = of->length[axis] > 0 ? (size_t)start : 0;
  of->step[axis] = (size_t)width;
  of->is_reversed[axis] = step < 0;
  return RONDO_OK;
}

typedef struct slice_numbers {
  const int64_t *starts, *ends, *axes, *steps; /* axes and steps may be NULL */
  size_t count;
} slice_numbers;

static rondo_status find_list(rondo_onnx_node *node, size_t index, const char *attribute, const int64_t **out,
                              size_t *out_count) {
  if (node->opset < 10) return rondo_onnx_attribute_ints(node, attribute, out, out_count);
  *out = NULL;
  *out_count = 0;
  return rondo_onnx_has_input(node, index) ? rondo_onnx_known_integers(node, index, out, out_count) : RONDO_OK;
}

static rondo_status find_slices(rondo_onnx_node *node, slices *out) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  slice_numbers of;
  size_t ends, axes, steps;
  bool marks[RONDO_ONNX_MOST_DIMENSIONS] = {false};
  RONDO_TRY(find_list(node, 1, "starts", &of.starts, &of.count));
  RONDO_TRY(find_list(node, 2, "ends", &of.ends, &ends));
  RONDO_TRY(find_list(node, 3, "axes", &of.axes, &axes));
  RONDO_TRY(find_list(node, 4, "steps", &of.steps, &steps));
  if (of.count != ends || (of.axes != NULL && axes != of.count) || (of.steps != NULL && steps != of.count) ||
      of.count > have->rank)
    return rondo_onnx_refuse(node, "it has %zu starts, %zu ends, %zu axes and %zu steps for %zu dimensions", of.count,
                             ends, axes, steps, have->rank);
  for (size_t i = 0; i < have->rank; i++) {
    out->length[i] = have->dims[i];
    out->step[i] = 1;
  }
  for (size_t i = 0; i < of.count; i++) {
    const int64_t given = of.axes != NULL ? of.axes[i] : (int64_t)i;
    size_t axis;
    RONDO_TRY(mark_axes(&given, 1, have->rank, marks));
    RONDO_TRY(rondo_onnx_axis(given, have->rank, &axis));
    RONDO_TRY(slice_axis(node, out, axis, of.starts[i], of.ends[i], of.steps != NULL ? of.steps[i] : 1));
  }
  return RONDO_OK;
}

/* Dimensions that are reversed are selected one by one. The others are then sliced at once. */
static rondo_status select_reversed(rondo_program *program, slices *of, size_t rank, rondo_value *inout) {
  for (size_t i = 0; i < rank; i++) {
    rondo_value indices;
    if (!of->is_reversed[i]) continue;
    RONDO_TRY(rondo_op_arange(program, RONDO_I32, of->length[i], (double)of->start[i], -(double)of->step[i], &indices));
    RONDO_TRY(rondo_op_index_select(program, *inout, indices, i, inout));
    of->start[i] = 0;
    of->step[i] = 1;
  }
  return RONDO_OK;
}

/* Makes one dimension of those side by side that are not cut, and of the shape that they are cut from. */
static void merge_whole(slices *of, rondo_onnx_shape *inout) {
  slices merged = {0};
  rondo_onnx_shape shape = {.type = inout->type};
  bool was_whole = false;
  for (size_t d = 0; d < inout->rank; d++) {
    const bool is_whole = of->length[d] == inout->dims[d] && of->step[d] == 1 && !of->is_reversed[d];
    const bool joins = is_whole && was_whole;
    const size_t at = joins ? shape.rank - 1 : shape.rank++;
    shape.dims[at] = joins ? shape.dims[at] * inout->dims[d] : inout->dims[d];
    merged.start[at] = of->start[d];
    merged.length[at] = is_whole ? shape.dims[at] : of->length[d];
    merged.step[at] = of->step[d];
    merged.is_reversed[at] = of->is_reversed[d];
    was_whole = is_whole;
  }
  *of = merged;
  *inout = shape;
}

static rondo_status add_slice(rondo_onnx_node *node, const void *data) {
  rondo_onnx_shape from = *rondo_onnx_input_shape(node, 0), shape = from;
  slices of = {0};
  rondo_program *program;
  rondo_value value;
  (void)data;
  RONDO_TRY(find_slices(node, &of));
  memcpy(shape.dims, of.length, sizeof shape.dims);
  if (rondo_onnx_shape_count(&shape) == 0) return rondo_onnx_set_empty(node, 0, &shape);
  if (shape.rank > RONDO_MAX_DIMENSIONS) merge_whole(&of, &from);
  if (from.rank > RONDO_MAX_DIMENSIONS)
    return rondo_onnx_refuse(node, "it cuts too many of %zu dimensions: programs have at most %d", shape.rank,
                             RONDO_MAX_DIMENSIONS);
  RONDO_TRY(rondo_onnx_operand_as(node, 0, from.dims, from.rank, &value));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(select_reversed(program, &of, from.rank, &value));
  if (from.rank > 0) RONDO_TRY(rondo_op_slice(program, value, of.start, of.length, of.step, &value));
  return rondo_onnx_set_shaped(node, 0, value, &shape);
}

/* The table -------------------------------------------------------------------------------------------------------- */

#define WIDE RONDO_ONNX_ROW_WIDE

static const rondo_onnx_row rows[] = {
    {"Concat", 4, 0, RONDO_ONNX_ANY_NUMBER, RONDO_ONNX_ANY_NUMBER, WIDE, add_concat, NULL},
    {"Expand", 8, 0, 2, 2, WIDE, add_expand, NULL},
    {"Flatten", 1, 0, 1, 1, WIDE, add_flatten, NULL},
    {"Identity", 1, 0, 0, 1, RONDO_ONNX_ROW_ONCE, add_identity, NULL},
    {"Reshape", 5, 0, 2, 2, WIDE, add_reshape, NULL},
    {"Shape", 1, 0, 1, 1, 0, add_shape, NULL},
    {"Size", 1, 0, 1, 1, 0, add_size, NULL},
    {"Slice", 1, 9, 1, 1, WIDE, add_slice, NULL},
    {"Slice", 10, 0, 3, 5, WIDE, add_slice, NULL},
    {"Split", 2, 12, 1, 1, WIDE, add_split, NULL},
    {"Split", 13, 0, 1, 2, WIDE, add_split, NULL},
    {"Squeeze", 1, 12, 1, 1, WIDE, add_squeeze, NULL},
    {"Squeeze", 13, 0, 1, 2, WIDE, add_squeeze, NULL},
    {"Transpose", 1, 0, 1, 1, WIDE | RONDO_ONNX_ROW_COUNTED, add_transpose, NULL},
    {"Unsqueeze", 1, 12, 1, 1, WIDE, add_unsqueeze, NULL},
    {"Unsqueeze", 13, 0, 2, 2, WIDE, add_unsqueeze, NULL},
};

RONDO_ONNX_FAMILY(rondo_onnx_shapes, rows);
