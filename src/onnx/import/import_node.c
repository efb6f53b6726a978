/* SPDX-License-Identifier: MIT
 * Inputs and results of nodes.
 */
#include "onnx/import/import_node.h"

#include <stdarg.h>
#include <string.h>

#include "base/error.h"
#include "base/numbers/half_float.h"
#include "base/text.h"
#include "onnx/import/constant.h"
#include "onnx/import/folding.h"
#include "onnx/import/model_interface.h"
#include "onnx/import/model_part.h"
#include "onnx/import/scaled_image.h"
#include "onnx/import/widened_value.h"

#define REASON_BYTES 400

/* Refusals --------------------------------------------------------------------------------------------------------- */

rondo_status rondo_onnx_refuse(rondo_onnx_node *node, const char *format, ...) {
  char reason[REASON_BYTES];
  va_list arguments;
  (void)node;
  va_start(arguments, format);
  (void)rondo_format_cut(reason, sizeof reason, format, arguments);
  va_end(arguments);
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE, "%s", reason);
}

rondo_status rondo_onnx_refuse_attribute(rondo_onnx_node *node, const char *attribute, const char *format, ...) {
  char reason[REASON_BYTES];
  va_list arguments;
  node->refused_attribute = attribute;
  va_start(arguments, format);
  (void)rondo_format_cut(reason, sizeof reason, format, arguments);
  va_end(arguments);
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE, "attribute '%s': %s", attribute, reason);
}

/* Inputs ----------------------------------------------------------------------------------------------------------- */

size_t rondo_onnx_input_count(const rondo_onnx_node *node) { return node->message->n_input; }

bool rondo_onnx_has_input(const rondo_onnx_node *node, size_t index) {
  return index < node->message->n_input && node->message->input[index][0] != '\0' &&
         node->inputs[index].kind != RONDO_ONNX_NOTHING;
}

const rondo_onnx_shape *rondo_onnx_input_shape(const rondo_onnx_node *node, size_t index) {
  assert(rondo_onnx_has_input(node, index));
  return &node->inputs[index].shape;
}

bool rondo_onnx_is_constant(const rondo_onnx_node *node, size_t index) {
  assert(rondo_onnx_has_input(node, index));
  return node->inputs[index].constant != NULL;
}

static rondo_status check_operand(rondo_onnx_node *node, size_t index) {
  const rondo_onnx_shape *shape = rondo_onnx_input_shape(node, index);
  rondo_type type;
  RONDO_TRY((node->row->flags & RONDO_ONNX_ROW_WIDE) != 0
                ? rondo_onnx_held_type(node->importer, shape->type, &type)
                : rondo_onnx_program_type(node->importer, shape->type, &type));
  if (rondo_onnx_shape_count(shape) == 0) return rondo_onnx_refuse(node, "input %zu has no elements", index);
  return RONDO_OK;
}

rondo_status rondo_onnx_check_counted(rondo_onnx_node *node, size_t index) {
  if (node->inputs[index].count.id == 0 || (node->row->flags & RONDO_ONNX_ROW_COUNTED) != 0) return RONDO_OK;
  rondo_onnx_need_value(node->importer, &node->inputs[index]);
  return rondo_onnx_refuse(node,
                           "the size of input %zu depends on data, and then it can only be cast, transposed and an "
                           "output: give the values of the model's inputs that it depends on",
                           index);
}

rondo_status rondo_onnx_constant_operand(rondo_onnx_node *node, rondo_onnx_constant *constant, rondo_value *out) {
  rondo_program *program;
  if (node->folds) {
    RONDO_TRY(rondo_onnx_node_program(node, &program));
    return rondo_onnx_folding_operand(node->importer, node->folding, constant, out);
  }
  if (constant->filling == NULL) RONDO_TRY(rondo_onnx_folding_compute(node->importer, constant));
  return rondo_onnx_constant_value(node->importer, constant, out);
}

/* In the shape of programs. */
static rondo_status add_operand(rondo_onnx_node *node, size_t index, rondo_value *out) {
  const rondo_onnx_import_value *value = &node->inputs[index];
  RONDO_TRY(rondo_onnx_check_counted(node, index));
  RONDO_TRY(check_operand(node, index));
  if (!node->folds && value->input != NULL) return rondo_onnx_add_input(node->importer, value->input, out);
  if (!node->folds && value->scaled != NULL) return rondo_onnx_add_scaled(node->importer, value->scaled, out);
  *out = value->result;
  return !node->folds && out->id != 0 ? RONDO_OK : rondo_onnx_constant_operand(node, value->constant, out);
}

/* An operand of an element-wise node with more dimensions than programs have. The dimensions that are one in programs
 * must be those of the result, or 1, and then broadcasting is the same. */
static rondo_status add_merged_operand(rondo_onnx_node *node, size_t index, const rondo_onnx_shape *result,
                                       rondo_value *out) {
  const rondo_onnx_shape *shape = rondo_onnx_input_shape(node, index);
  const size_t missing = result->rank - shape->rank, more = result->rank - RONDO_MAX_DIMENSIONS;
  rondo_onnx_shape padded = {.type = shape->type, .rank = result->rank};
  bool is_same = true, is_one = true;
  for (size_t i = 0; i < result->rank; i++) {
    padded.dims[i] = i < missing ? 1 : shape->dims[i - missing];
    if (i == 0 || i > more + 1) continue;
    is_same = is_same && padded.dims[i] == result->dims[i];
    is_one = is_one && padded.dims[i] == 1;
  }
  if (!is_same && !is_one)
    return rondo_onnx_refuse(node,
                             "input %zu is broadcast along some of dimensions 1 to %zu of %zu, which are one in "
                             "programs",
                             index, more + 1, result->rank);
  padded = rondo_onnx_program_shape(&padded);
  RONDO_TRY(add_operand(node, index, out));
  return rondo_onnx_reshape(node, *out, padded.dims, padded.rank, out);
}

/* The shape of an element-wise result with more dimensions than programs have; false: it has no more. */
static bool find_merged(const rondo_onnx_node *node, rondo_onnx_shape *out) {
  const rondo_onnx_shape *widest = NULL;
  if ((node->row->flags & RONDO_ONNX_ROW_MERGED) == 0) return false;
  *out = (rondo_onnx_shape){.rank = 0};
  for (size_t i = 0; i < node->message->n_input; i++) {
    const rondo_onnx_shape *shape = &node->inputs[i].shape;
    if (rondo_onnx_has_input(node, i) && shape->rank > (widest != NULL ? widest->rank : 0)) widest = shape;
  }
  if (widest == NULL || widest->rank <= RONDO_MAX_DIMENSIONS) return false;
  *out = *widest;
  for (size_t i = 0; i < node->message->n_input; i++) {
    const rondo_onnx_shape *shape = &node->inputs[i].shape;
    for (size_t d = 0; rondo_onnx_has_input(node, i) && d < shape->rank; d++) {
      size_t *size = &out->dims[out->rank - 1 - d];
      if (*size == 1) *size = shape->dims[shape->rank - 1 - d];
    }
  }
  return true;
}

rondo_status rondo_onnx_operand(rondo_onnx_node *node, size_t index, rondo_value *out) {
  const size_t rank = rondo_onnx_input_shape(node, index)->rank;
  rondo_onnx_shape merged;
  if (find_merged(node, &merged)) return add_merged_operand(node, index, &merged, out);
  if (rank > RONDO_MAX_DIMENSIONS)
    return rondo_onnx_refuse(node, "input %zu has %zu dimensions, and programs have at most %d", index, rank,
                             RONDO_MAX_DIMENSIONS);
  return add_operand(node, index, out);
}

rondo_status rondo_onnx_operand_as(rondo_onnx_node *node, size_t index, const size_t *dims, size_t rank,
                                   rondo_value *out) {
  RONDO_TRY(add_operand(node, index, out));
  return rondo_onnx_reshape(node, *out, dims, rank, out);
}

/* Marks the inputs on whose given values the constant depends. */
static void freeze(rondo_onnx_importer *importer, uint64_t given) {
  for (size_t i = 0; i < importer->input_count && given != 0; i++) {
    rondo_onnx_import_input *input = &importer->inputs[i];
    if (input->given >= 0 && (given >> input->given & 1) != 0) input->is_frozen = true;
  }
}

rondo_status rondo_onnx_known_value(rondo_onnx_node *node, const rondo_onnx_import_value *value, const char *name,
                                    const rondo_onnx_constant **out) {
  rondo_onnx_constant *constant = value->constant;
  if (constant == NULL) {
    rondo_onnx_need_value(node->importer, value);
    return rondo_onnx_refuse(node,
                             "the value of '%s' must be known at import: give the values of the model's inputs that it "
                             "depends on",
                             name);
  }
  if (!node->folds) freeze(node->importer, constant->given);
  RONDO_TRY(rondo_onnx_folding_compute(node->importer, constant));
  RONDO_TRY(rondo_onnx_constant_align(node->importer, constant));
  *out = constant;
  return RONDO_OK;
}

rondo_status rondo_onnx_known_input(rondo_onnx_node *node, size_t index, const rondo_onnx_constant **out) {
  assert(rondo_onnx_has_input(node, index));
  return rondo_onnx_known_value(node, &node->inputs[index], node->message->input[index], out);
}

static bool read_number(rondo_onnx_type type, const void *elements, size_t index, double *out) {
  int64_t integer;
  switch (type) {
    case RONDO_ONNX_FLOAT:
      *out = (double)((const float *)elements)[index];
      return true;
    case RONDO_ONNX_DOUBLE:
      *out = ((const double *)elements)[index];
      return true;
    case RONDO_ONNX_FLOAT16:
      *out = (double)rondo_from_f16(((const uint16_t *)elements)[index]);
      return true;
    case RONDO_ONNX_BFLOAT16:
      *out = (double)rondo_from_bf16(((const uint16_t *)elements)[index]);
      return true;
    default:
      if (!rondo_onnx_integer_at(type, elements, index, &integer)) return false;
      *out = (double)integer;
      return true;
  }
}

static rondo_status refuse_type(rondo_onnx_node *node, size_t index, const char *what) {
  return rondo_onnx_refuse(node, "input %zu has the type '%s', not %s", index,
                           rondo_onnx_type_name((int32_t)rondo_onnx_input_shape(node, index)->type), what);
}

rondo_status rondo_onnx_known_integers(rondo_onnx_node *node, size_t index, const int64_t **out, size_t *out_count) {
  const rondo_onnx_constant *constant;
  int64_t *integers;
  RONDO_TRY(rondo_onnx_known_input(node, index, &constant));
  RONDO_TRY(rondo_scratch_take(&node->importer->scratch, constant->count, sizeof *integers, &integers));
  for (size_t i = 0; i < constant->count; i++)
    if (!rondo_onnx_integer_at(constant->shape.type, constant->elements, i, &integers[i]))
      return refuse_type(node, index, "integers");
  *out = integers;
  *out_count = constant->count;
  return RONDO_OK;
}

rondo_status rondo_onnx_known_numbers(rondo_onnx_node *node, size_t index, const double **out, size_t *out_count) {
  const rondo_onnx_constant *constant;
  double *numbers;
  RONDO_TRY(rondo_onnx_known_input(node, index, &constant));
  RONDO_TRY(rondo_scratch_take(&node->importer->scratch, constant->count, sizeof *numbers, &numbers));
  for (size_t i = 0; i < constant->count; i++)
    if (!read_number(constant->shape.type, constant->elements, i, &numbers[i]))
      return refuse_type(node, index, "numbers");
  *out = numbers;
  *out_count = constant->count;
  return RONDO_OK;
}

rondo_status rondo_onnx_node_program(rondo_onnx_node *node, rondo_program **out) {
  *out = node->importer->program;
  if (!node->folds) return RONDO_OK;
  if (node->folding == NULL)
    RONDO_TRY(rondo_onnx_folding_open(node->importer, node->inputs, rondo_onnx_input_count(node), &node->folding));
  *out = rondo_onnx_folding_program(node->folding);
  return RONDO_OK;
}

size_t rondo_onnx_bound_of(const rondo_onnx_node *node, size_t most) {
  const size_t bound = node->importer->options->data_dependent_bound;
  return bound > 0 && bound < most ? bound : most;
}

/* Results ---------------------------------------------------------------------------------------------------------- */

size_t rondo_onnx_output_count(const rondo_onnx_node *node) { return node->message->n_output; }

bool rondo_onnx_wants_output(const rondo_onnx_node *node, size_t index) {
  return index < node->message->n_output && node->message->output[index][0] != '\0';
}

/* A result of the type in which an input is held has the type of this input. */
static rondo_onnx_type type_in_model(const rondo_onnx_node *node, rondo_type type) {
  const bool is_wide = (node->row->flags & RONDO_ONNX_ROW_WIDE) != 0;
  for (size_t i = 0; i < node->message->n_input; i++) {
    const rondo_onnx_type have = node->inputs[i].shape.type;
    if (node->inputs[i].kind == RONDO_ONNX_TENSOR_VALUE && rondo_onnx_widened_type(have) == type &&
        (is_wide || have == RONDO_ONNX_DOUBLE))
      return have;
  }
  return rondo_onnx_type_of(type);
}

/* With type 0, the type of the program. Without a shape, that of the program. */
static rondo_status set_result_as(rondo_onnx_node *node, size_t index, rondo_value value, rondo_onnx_type model_type,
                                  const rondo_onnx_shape *shape) {
  rondo_program *program;
  rondo_type type;
  rondo_onnx_import_value result = {.kind = RONDO_ONNX_TENSOR_VALUE};
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_value_shape(program, value, &type, result.shape.dims, &result.shape.rank));
  if (shape != NULL) result.shape = *shape;
  result.shape.type = model_type != 0 ? model_type : type_in_model(node, type);
  assert(rondo_onnx_type_of(type) == result.shape.type || rondo_onnx_widened_type(result.shape.type) == type);
  if (node->folds) {
    RONDO_TRY(rondo_onnx_folding_defer(node->importer, node->folding, &result.shape, value, &result.constant));
    result.constant->given = node->given;
  } else {
    result.result = value;
  }
  rondo_onnx_set_value(node, index, &result);
  return RONDO_OK;
}

static rondo_status set_result(rondo_onnx_node *node, size_t index, rondo_value value, rondo_onnx_type model_type) {
  rondo_onnx_shape merged;
  return set_result_as(node, index, value, model_type, find_merged(node, &merged) ? &merged : NULL);
}

rondo_status rondo_onnx_set_shaped(rondo_onnx_node *node, size_t index, rondo_value value,
                                   const rondo_onnx_shape *shape) {
  const rondo_onnx_shape held = rondo_onnx_program_shape(shape);
  if (!rondo_onnx_wants_output(node, index)) return RONDO_OK;
  RONDO_TRY(rondo_onnx_reshape(node, value, held.dims, held.rank, &value));
  return set_result_as(node, index, value, shape->type, shape);
}

rondo_status rondo_onnx_set_result(rondo_onnx_node *node, size_t index, rondo_value value) {
  return rondo_onnx_wants_output(node, index) ? set_result(node, index, value, 0) : RONDO_OK;
}

rondo_status rondo_onnx_set_typed(rondo_onnx_node *node, size_t index, rondo_value value, rondo_onnx_type type) {
  return rondo_onnx_wants_output(node, index) ? set_result(node, index, value, type) : RONDO_OK;
}

rondo_status rondo_onnx_set_fitted(rondo_onnx_node *node, size_t index, rondo_value value, rondo_onnx_type type) {
  rondo_program *program;
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_onnx_fit_value(program, type, value, &value));
  return rondo_onnx_set_typed(node, index, value, type);
}

rondo_status rondo_onnx_set_counted(rondo_onnx_node *node, size_t index, rondo_value value, rondo_onnx_type type,
                                    size_t axis, rondo_value count) {
  assert(!node->folds); /* what is known has a size */
  if (!rondo_onnx_wants_output(node, index)) return RONDO_OK;
  RONDO_TRY(set_result(node, index, value, type));
  node->outputs[index].count = count;
  node->outputs[index].counted_axis = axis;
  return RONDO_OK;
}

void rondo_onnx_keep_count(rondo_onnx_node *node, size_t axis) {
  if (node->folds || node->message->n_output == 0) return;
  node->outputs[0].count = node->inputs[0].count;
  node->outputs[0].counted_axis = axis;
}

void rondo_onnx_set_value(rondo_onnx_node *node, size_t index, const rondo_onnx_import_value *value) {
  if (index < node->message->n_output) node->outputs[index] = *value;
}

void rondo_onnx_set_constant(rondo_onnx_node *node, size_t index, rondo_onnx_constant *constant) {
  const rondo_onnx_import_value value = {
      .kind = RONDO_ONNX_TENSOR_VALUE, .shape = constant->shape, .constant = constant};
  if (node->folds) constant->given |= node->given;
  rondo_onnx_set_value(node, index, &value);
}

rondo_status rondo_onnx_set_empty(rondo_onnx_node *node, size_t index, const rondo_onnx_shape *shape) {
  rondo_onnx_constant *constant;
  void *elements;
  assert(rondo_onnx_shape_count(shape) == 0);
  RONDO_TRY(rondo_onnx_constant_make(node->importer, shape, &constant, &elements));
  rondo_onnx_set_constant(node, index, constant);
  return RONDO_OK;
}

void rondo_onnx_set_input(rondo_onnx_node *node, size_t index, size_t input) {
  rondo_onnx_set_value(node, index, &node->inputs[input]);
}

/* Inner nodes ------------------------------------------------------------------------------------------------------ */

rondo_status rondo_onnx_inner_begin(const rondo_onnx_node *node, rondo_onnx_import_value *inputs, size_t count,
                                    rondo_onnx_inner_node *out) {
  static char name[] = "of a graph";
  static char *output = name;
  char **names;
  RONDO_TRY(rondo_scratch_take(&node->importer->scratch, count, sizeof *names, &names));
  for (size_t i = 0; i < count; i++) names[i] = name;
  *out = (rondo_onnx_inner_node){.node = *node, .message = *node->message};
  out->message.n_input = count;
  out->message.input = names;
  out->message.n_output = 1;
  out->message.output = &output;
  out->node.message = &out->message;
  out->node.inputs = inputs;
  out->node.outputs = &out->output;
  out->node.folding = NULL;
  out->node.folds = true;
  out->node.given = 0;
  for (size_t i = 0; i < count; i++) {
    if (rondo_onnx_has_result(&inputs[i])) out->node.folds = false;
    if (inputs[i].constant != NULL) out->node.given |= inputs[i].constant->given;
  }
  return RONDO_OK;
}

rondo_status rondo_onnx_inner_operand(rondo_onnx_node *node, const rondo_onnx_inner_node *inner, rondo_value *out) {
  if (inner->output.scaled != NULL) return rondo_onnx_add_scaled(node->importer, inner->output.scaled, out);
  *out = inner->output.result;
  return out->id != 0 ? RONDO_OK : rondo_onnx_constant_operand(node, inner->output.constant, out);
}

/* Sizes ------------------------------------------------------------------------------------------------------------ */

rondo_status rondo_onnx_axis(int64_t axis, size_t rank, size_t *out) {
  const int64_t count = (int64_t)rank;
  if (axis < -count || axis >= count)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "axis %lld of %zu dimensions", (long long)axis,
                      rank);
  *out = (size_t)(axis < 0 ? axis + count : axis);
  return RONDO_OK;
}

static rondo_status broadcast_with(const rondo_onnx_shape *shape, rondo_onnx_shape *inout) {
  for (size_t i = 0; i < shape->rank; i++) {
    size_t *size = &inout->dims[inout->rank - 1 - i];
    const size_t other = shape->dims[shape->rank - 1 - i];
    if (*size != other && *size != 1 && other != 1)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "sizes %zu and %zu cannot be broadcast", *size,
                        other);
    if (*size == 1) *size = other;
  }
  return RONDO_OK;
}

rondo_status rondo_onnx_broadcast(const rondo_onnx_shape *const *shapes, size_t count, rondo_onnx_shape *out) {
  *out = (rondo_onnx_shape){.type = shapes[0]->type};
  for (size_t i = 0; i < count; i++)
    if (shapes[i]->rank > out->rank) out->rank = shapes[i]->rank;
  for (size_t i = 0; i < out->rank; i++) out->dims[i] = 1;
  for (size_t i = 0; i < count; i++) RONDO_TRY(broadcast_with(shapes[i], out));
  return RONDO_OK;
}

rondo_status rondo_onnx_reshape(rondo_onnx_node *node, rondo_value value, const size_t *dims, size_t rank,
                                rondo_value *out) {
  rondo_program *program;
  rondo_type type;
  size_t have[RONDO_MAX_DIMENSIONS], have_rank;
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_value_shape(program, value, &type, have, &have_rank));
  *out = value;
  if (have_rank == rank && (rank == 0 || memcmp(have, dims, rank * sizeof *dims) == 0)) return RONDO_OK;
  return rondo_op_reshape(program, value, dims, rank, out);
}
