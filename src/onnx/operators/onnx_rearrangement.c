/* SPDX-License-Identifier: MIT
 * Operators that repeat, move or hide elements: Tile, Pad, CenterCropPad, Trilu, blocks of images, and reversed
 * sequences; and CumSum.
 */
#include <string.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/node_attributes.h"
#include "onnx/operators/operator_families.h"

/* Tile ------------------------------------------------------------------------------------------------------------- */

static rondo_status add_tile(rondo_onnx_node *node, const void *data) {
  rondo_onnx_shape shape = *rondo_onnx_input_shape(node, 0);
  size_t repeats[RONDO_ONNX_MOST_DIMENSIONS], count;
  const int64_t *given;
  rondo_program *program;
  rondo_value value;
  (void)data;
  RONDO_TRY(rondo_onnx_known_integers(node, 1, &given, &count));
  if (count != shape.rank) return rondo_onnx_refuse(node, "%zu repeats for %zu dimensions", count, shape.rank);
  for (size_t i = 0; i < count; i++) {
    repeats[i] = (size_t)given[i];
    if (given[i] < 0 || !rondo_checked_multiply(shape.dims[i], repeats[i], &shape.dims[i]))
      return rondo_onnx_refuse(node, "%lld repeats in dimension %zu", (long long)given[i], i);
  }
  if (rondo_onnx_shape_count(&shape) == 0) return rondo_onnx_set_empty(node, 0, &shape);
  RONDO_TRY(rondo_onnx_operand(node, 0, &value));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  if (count > 0) RONDO_TRY(rondo_op_tile(program, value, repeats, &value));
  return rondo_onnx_set_typed(node, 0, value, shape.type);
}

/* Pad -------------------------------------------------------------------------------------------------------------- */

typedef struct padding {
  rondo_pad_mode mode;
  int64_t before[RONDO_ONNX_MOST_DIMENSIONS], after[RONDO_ONNX_MOST_DIMENSIONS];
  double number;
} padding;

static rondo_status read_mode(rondo_onnx_node *node, rondo_pad_mode *out) {
  static const char *const names[] = {"constant", "reflect", "edge", "wrap"}; /* in the order of rondo_pad_mode */
  const char *name;
  RONDO_TRY(rondo_onnx_attribute_text(node, "mode", "constant", &name));
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    *out = (rondo_pad_mode)i;
    if (strcmp(name, names[i]) == 0) return RONDO_OK;
  }
  return rondo_onnx_refuse_attribute(node, "mode", "it is '%s'", name);
}

/* The counts before all axes come first, then those after them. */
static rondo_status spread_pads(rondo_onnx_node *node, const int64_t *pads, size_t pad_count, const int64_t *axes,
                                size_t axis_count, padding *out) {
  const size_t rank = rondo_onnx_input_shape(node, 0)->rank;
  if (axes == NULL) axis_count = rank;
  if (axis_count > rank || pad_count != 2 * axis_count)
    return rondo_onnx_refuse(node, "it has %zu counts for %zu axes of %zu", pad_count, axis_count, rank);
  for (size_t i = 0; i < axis_count; i++) {
    size_t axis = i;
    if (axes != NULL) RONDO_TRY(rondo_onnx_axis(axes[i], rank, &axis));
    out->before[axis] = pads[i];
    out->after[axis] = pads[axis_count + i];
  }
  return RONDO_OK;
}

/* Up to operator set 10, all are attributes. */
static rondo_status read_pad_attributes(rondo_onnx_node *node, padding *out) {
  const int64_t *pads;
  size_t count;
  float number;
  RONDO_TRY(rondo_onnx_attribute_ints(node, "pads", &pads, &count));
  RONDO_TRY(rondo_onnx_attribute_float(node, "value", 0, &number));
  out->number = (double)number;
  return spread_pads(node, pads, count, NULL, 0, out);
}

static rondo_status read_pad_inputs(rondo_onnx_node *node, padding *out) {
  const int64_t *pads, *axes = NULL;
  const double *number;
  size_t count, axis_count = 0, numbers;
  if (rondo_onnx_has_input(node, 2)) {
    RONDO_TRY(rondo_onnx_known_numbers(node, 2, &number, &numbers));
    if (numbers != 1) return rondo_onnx_refuse(node, "input 2 has %zu elements, not one", numbers);
    out->number = number[0];
  }
  if (rondo_onnx_has_input(node, 3)) RONDO_TRY(rondo_onnx_known_integers(node, 3, &axes, &axis_count));
  RONDO_TRY(rondo_onnx_known_integers(node, 1, &pads, &count));
  return spread_pads(node, pads, count, axes, axis_count, out);
}

/* With a mode other than constant, what negative counts remove is cut first, as NumPy does. */
static rondo_status cut(rondo_onnx_node *node, padding *of, rondo_value *inout) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  size_t start[RONDO_ONNX_MOST_DIMENSIONS], length[RONDO_ONNX_MOST_DIMENSIONS];
  rondo_program *program;
  bool cuts = false;
  for (size_t i = 0; i < have->rank; i++) {
    const size_t before = of->before[i] < 0 ? (size_t)0 - (size_t)of->before[i] : 0;
    const size_t after = of->after[i] < 0 ? (size_t)0 - (size_t)of->after[i] : 0;
    if (before >= have->dims[i] || after >= have->dims[i] - before)
      return rondo_onnx_refuse(node, "it removes all elements of dimension %zu", i);
    start[i] = before;
    length[i] = have->dims[i] - before - after;
    cuts = cuts || before + after > 0;
    if (before > 0) of->before[i] = 0;
    if (after > 0) of->after[i] = 0;
  }
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  return cuts ? rondo_op_slice(program, *inout, start, length, NULL, inout) : RONDO_OK;
}

static rondo_status add_pad(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  padding of = {0};
  rondo_program *program;
  rondo_value value;
  (void)data;
  RONDO_TRY(read_mode(node, &of.mode));
  RONDO_TRY(node->opset < 11 ? read_pad_attributes(node, &of) : read_pad_inputs(node, &of));
  RONDO_TRY(rondo_onnx_operand(node, 0, &value));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  if (of.mode != RONDO_PAD_CONSTANT) RONDO_TRY(cut(node, &of, &value));
  RONDO_TRY(rondo_op_pad(program, value, of.before, of.after, of.mode, of.number, &value));
  return rondo_onnx_set_typed(node, 0, value, have->type);
}

/* CenterCropPad ---------------------------------------------------------------------------------------------------- */

/* Counts of Pad: what is odd is removed, or added, at the end. */
static rondo_status find_centre(rondo_onnx_node *node, padding *out) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  const int64_t *sizes, *axes;
  size_t count, axis_count;
  RONDO_TRY(rondo_onnx_attribute_ints(node, "axes", &axes, &axis_count));
  RONDO_TRY(rondo_onnx_known_integers(node, 1, &sizes, &count));
  if (count != (axes != NULL ? axis_count : have->rank))
    return rondo_onnx_refuse(node, "%zu sizes for %zu axes", count, axes != NULL ? axis_count : have->rank);
  for (size_t i = 0; i < count; i++) {
    size_t axis;
    RONDO_TRY(rondo_onnx_axis(axes != NULL ? axes[i] : (int64_t)i, have->rank, &axis));
    if (sizes[i] < 1) return rondo_onnx_refuse(node, "the size %lld", (long long)sizes[i]);
    const int64_t added = sizes[i] - (int64_t)have->dims[axis];
    out->before[axis] = added / 2;
    out->after[axis] = added - added / 2;
  }
  return RONDO_OK;
}

static rondo_status add_center_crop_pad(rondo_onnx_node *node, const void *data) {
  padding of = {0};
  rondo_program *program;
  rondo_value value;
  (void)data;
  RONDO_TRY(find_centre(node, &of));
  RONDO_TRY(rondo_onnx_operand(node, 0, &value));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_pad(program, value, of.before, of.after, RONDO_PAD_CONSTANT, 0, &value));
  return rondo_onnx_set_typed(node, 0, value, rondo_onnx_input_shape(node, 0)->type);
}

/* Trilu ------------------------------------------------------------------------------------------------------------ */

static rondo_status add_trilu(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  const int64_t *known;
  int64_t upper, diagonal = 0;
  size_t count;
  rondo_program *program;
  rondo_value value;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "upper", 1, &upper));
  if (rondo_onnx_has_input(node, 1)) {
    RONDO_TRY(rondo_onnx_known_integers(node, 1, &known, &count));
    if (count != 1) return rondo_onnx_refuse(node, "k has %zu elements, not one", count);
    diagonal = known[0];
  }
  if (rondo_onnx_shape_count(have) == 0) return rondo_onnx_set_empty(node, 0, have);
  RONDO_TRY(rondo_onnx_operand(node, 0, &value));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(upper != 0 ? rondo_op_triu(program, value, diagonal, &value)
                       : rondo_op_tril(program, value, diagonal, &value));
  return rondo_onnx_set_typed(node, 0, value, have->type);
}

/* DepthToSpace, SpaceToDepth --------------------------------------------------------------------------------------- */

static rondo_status read_block(rondo_onnx_node *node, size_t *out) {
  int64_t block;
  RONDO_TRY(rondo_onnx_attribute_int(node, "blocksize", 0, &block));
  *out = (size_t)block;
  return block > 0 ? RONDO_OK : rondo_onnx_refuse_attribute(node, "blocksize", "it is %lld", (long long)block);
}

/* Whether the channels of a block come before its rows and columns: CRD, else DCR. */
static rondo_status read_channel_order(rondo_onnx_node *node, bool *out) {
  const char *mode;
  RONDO_TRY(rondo_onnx_attribute_text(node, "mode", "DCR", &mode));
  *out = strcmp(mode, "CRD") == 0;
  return *out || strcmp(mode, "DCR") == 0
             ? RONDO_OK
             : rondo_onnx_refuse_attribute(node, "mode", "it is '%s', not DCR or CRD", mode);
}

typedef struct block_form {
  rondo_status (*add)(rondo_program *program, rondo_value value, size_t block, bool channels_first,
                      rondo_value *out_value);
} block_form;

static rondo_status add_blocks(rondo_onnx_node *node, const void *data) {
  const block_form *form = data;
  bool channels_first;
  size_t block;
  rondo_program *program;
  rondo_value value;
  RONDO_TRY(read_block(node, &block));
  RONDO_TRY(read_channel_order(node, &channels_first));
  RONDO_TRY(rondo_onnx_operand(node, 0, &value));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(form->add(program, value, block, channels_first, &value));
  return rondo_onnx_set_typed(node, 0, value, rondo_onnx_input_shape(node, 0)->type);
}

/* ReverseSequence, CumSum ------------------------------------------------------------------------------------------ */

static rondo_status add_reverse_sequence(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  int64_t batch, time;
  size_t batch_axis, time_axis;
  rondo_program *program;
  rondo_value value, lengths;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "batch_axis", 1, &batch));
  RONDO_TRY(rondo_onnx_attribute_int(node, "time_axis", 0, &time));
  RONDO_TRY(rondo_onnx_axis(batch, have->rank, &batch_axis));
  RONDO_TRY(rondo_onnx_axis(time, have->rank, &time_axis));
  RONDO_TRY(rondo_onnx_operand(node, 0, &value));
  RONDO_TRY(rondo_onnx_operand(node, 1, &lengths));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_reverse_sequence(program, value, lengths, time_axis, batch_axis, &value));
  return rondo_onnx_set_typed(node, 0, value, have->type);
}

typedef struct cumulation_form {
  rondo_status (*add)(rondo_program *program, rondo_value value, size_t dimension, bool exclusive, bool reversed,
                      rondo_value *out_value);
} cumulation_form;

static rondo_status add_cumulation(rondo_onnx_node *node, const void *data) {
  const cumulation_form *form = data;
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  const int64_t *given;
  int64_t exclusive, reverse;
  size_t axis, count;
  rondo_program *program;
  rondo_value value;
  RONDO_TRY(rondo_onnx_attribute_int(node, "exclusive", 0, &exclusive));
  RONDO_TRY(rondo_onnx_attribute_int(node, "reverse", 0, &reverse));
  RONDO_TRY(rondo_onnx_known_integers(node, 1, &given, &count));
  if (count != 1) return rondo_onnx_refuse(node, "it has %zu axes, not one", count);
  RONDO_TRY(rondo_onnx_axis(given[0], have->rank, &axis));
  if (rondo_onnx_shape_count(have) == 0) return rondo_onnx_set_empty(node, 0, have);
  RONDO_TRY(rondo_onnx_operand(node, 0, &value));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(form->add(program, value, axis, exclusive != 0, reverse != 0, &value));
  return rondo_onnx_set_typed(node, 0, value, have->type);
}

/* The table -------------------------------------------------------------------------------------------------------- */

static const rondo_onnx_row rows[] = {
    {"CenterCropPad", 18, 0, 2, 2, 0, add_center_crop_pad, NULL},
    {"CumProd", 26, 0, 2, 2, 0, add_cumulation, &(const cumulation_form){rondo_op_cumprod}},
    {"CumSum", 11, 0, 2, 2, 0, add_cumulation, &(const cumulation_form){rondo_op_cumsum}},
    {"DepthToSpace", 1, 0, 1, 1, 0, add_blocks, &(const block_form){rondo_op_depth_to_space}},
    {"Pad", 2, 10, 1, 1, 0, add_pad, NULL},
    {"Pad", 11, 0, 2, 4, 0, add_pad, NULL},
    {"ReverseSequence", 10, 0, 2, 2, 0, add_reverse_sequence, NULL},
    {"SpaceToDepth", 1, 0, 1, 1, 0, add_blocks, &(const block_form){rondo_op_space_to_depth}},
    {"Tile", 6, 0, 2, 2, 0, add_tile, NULL},
    {"Trilu", 14, 0, 1, 2, 0, add_trilu, NULL},
};

RONDO_ONNX_FAMILY(rondo_onnx_rearrangement, rows);
