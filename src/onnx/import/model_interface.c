/* SPDX-License-Identifier: MIT
 * Inputs and outputs.
 */
#include "onnx/import/model_interface.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <rondo/operators.h>

#include "base/error.h"
#include "onnx/format/widened_elements.h"
#include "onnx/import/build_result.h"
#include "onnx/import/constant.h"
#include "onnx/import/folding.h"
#include "onnx/import/graph_import.h"
#include "onnx/import/model_part.h"
#include "onnx/import/scaled_image.h"
#include "tensor/program/program.h"

#define MOST_GIVEN 63 /* values of inputs: bits of rondo_onnx_constant.given, of which RONDO_ONNX_OF_SIZES is one */

/* Options ---------------------------------------------------------------------------------------------------------- */

static bool is_listed(const rondo_onnx_input_list *list, const char *name) {
  for (size_t i = 0; i < list->count; i++)
    if (strcmp(list->items[i].value.name, name) == 0) return true;
  return false;
}

static rondo_status fail_unknown_input(const rondo_onnx_importer *importer, const char *name) {
  for (size_t i = 0; i < importer->model->info.inputs; i++)
    if (strcmp(importer->model->inputs[i].name, name) == 0)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_UNKNOWN_NAME,
                        "the input '%s' is a sequence: give its elements, '%s[0]', '%s[1]' and so on", name, name,
                        name);
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_UNKNOWN_NAME, "the model has no input '%s'", name);
}

static rondo_status check_given(const rondo_onnx_importer *importer, size_t index) {
  const rondo_onnx_given_input *all = importer->options->inputs, *given = &all[index];
  if (!is_listed(&importer->listed, given->name)) return fail_unknown_input(importer, given->name);
  for (size_t i = 0; i < index; i++)
    if (strcmp(all[i].name, given->name) == 0)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_DUPLICATE_NAME, "the input '%s' is given twice",
                        given->name);
  if (given->rank > RONDO_ONNX_MOST_DIMENSIONS)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "the input '%s' is given with %zu dimensions",
                      given->name, given->rank);
  return RONDO_OK;
}

static rondo_status check_options(const rondo_onnx_importer *importer) {
  const rondo_onnx_build_options *options = importer->options;
  size_t values = 0;
  for (size_t i = 0; i < options->input_count; i++) {
    RONDO_TRY(check_given(importer, i));
    values += options->inputs[i].data != NULL;
  }
  if (values <= MOST_GIVEN) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    "the values of %zu inputs are given, more than %d", values, MOST_GIVEN);
}

static int find_given(const rondo_onnx_importer *importer, const char *name) {
  for (size_t i = 0; i < importer->options->input_count; i++)
    if (strcmp(importer->options->inputs[i].name, name) == 0) return (int)i;
  return -1;
}

/* Shapes ----------------------------------------------------------------------------------------------------------- */

typedef struct dimension_sizes {
  RONDO_ARRAY(rondo_onnx_dimension_size) known; /* by name: of the options, and of shapes that are given */
} dimension_sizes;

static const rondo_onnx_dimension_size *find_size(const dimension_sizes *sizes, const char *name) {
  for (size_t i = 0; i < sizes->known.count; i++)
    if (strcmp(sizes->known.items[i].name, name) == 0) return &sizes->known.items[i];
  return NULL;
}

/* " ('batch')", or "" for a dimension without a name. */
#define DIMENSION_NAME 80
static const char *dimension_name(char out[DIMENSION_NAME], const rondo_onnx_dimension *dimension) {
  out[0] = '\0';
  if (dimension->name[0] != '\0') (void)snprintf(out, DIMENSION_NAME, " ('%.70s')", dimension->name);
  return out;
}

static rondo_status fail_size(const rondo_onnx_value *input, size_t index, size_t given, size_t expected) {
  char name[DIMENSION_NAME];
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "the input '%s' is given with size %zu of dimension %zu%s, which has size %zu", input->name, given,
                    index, dimension_name(name, &input->dimensions[index]), expected);
}

/* Elements of a sequence have sizes of their own. */
static rondo_status note_size(rondo_onnx_importer *importer, dimension_sizes *sizes, const rondo_onnx_value *input,
                              size_t index, size_t size, bool is_element) {
  const rondo_onnx_dimension *dimension = &input->dimensions[index];
  const rondo_onnx_dimension_size entry = {.name = dimension->name, .size = size};
  if (!dimension->is_dynamic)
    return dimension->size == size ? RONDO_OK : fail_size(input, index, size, dimension->size);
  if (dimension->name[0] == '\0' || is_element) return RONDO_OK;
  const rondo_onnx_dimension_size *known = find_size(sizes, dimension->name);
  if (known == NULL) return rondo_array_push(&importer->allocator, &sizes->known, &entry);
  return known->size == size ? RONDO_OK : fail_size(input, index, size, known->size);
}

static rondo_status note_sizes(rondo_onnx_importer *importer, dimension_sizes *sizes,
                               const rondo_onnx_listed_input *listed) {
  const rondo_onnx_value *input = &listed->value;
  const bool is_element = importer->listed.spans[listed->owner].kind == RONDO_ONNX_SEQUENCE;
  const int given = find_given(importer, input->name);
  const rondo_onnx_given_input *option = given >= 0 ? &importer->options->inputs[given] : NULL;
  if (option == NULL || option->shape == NULL || !input->has_shape) return RONDO_OK;
  if (option->rank != input->rank)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "the input '%s' is given with %zu dimensions, and the model has %zu", input->name, option->rank,
                      input->rank);
  for (size_t i = 0; i < input->rank; i++)
    RONDO_TRY(note_size(importer, sizes, input, i, option->shape[i], is_element));
  return RONDO_OK;
}

static rondo_status fail_dynamic(const rondo_onnx_value *input, size_t index) {
  char name[DIMENSION_NAME];
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "dimension %zu%s of the input '%s' is dynamic: give its size, or the shape of the input", index,
                    dimension_name(name, &input->dimensions[index]), input->name);
}

static rondo_status shape_of_model(const dimension_sizes *sizes, const rondo_onnx_value *input, rondo_onnx_shape *out) {
  if (!input->has_shape)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "the model does not say which shape the input '%s' has: give its shape", input->name);
  if (input->rank > RONDO_ONNX_MOST_DIMENSIONS)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_SHAPE, "it has %zu dimensions", input->rank);
  out->rank = input->rank;
  for (size_t i = 0; i < input->rank; i++) {
    const rondo_onnx_dimension *dimension = &input->dimensions[i];
    const rondo_onnx_dimension_size *known = dimension->name[0] != '\0' ? find_size(sizes, dimension->name) : NULL;
    if (dimension->is_dynamic && known == NULL) return fail_dynamic(input, i);
    out->dims[i] = dimension->is_dynamic ? known->size : dimension->size;
  }
  return RONDO_OK;
}

static rondo_status find_shape(const rondo_onnx_importer *importer, const dimension_sizes *sizes,
                               const rondo_onnx_value *input, rondo_onnx_shape *out) {
  const int given = find_given(importer, input->name);
  const rondo_onnx_given_input *option = given >= 0 ? &importer->options->inputs[given] : NULL;
  if (option == NULL || option->shape == NULL) return shape_of_model(sizes, input, out);
  out->rank = option->rank;
  memcpy(out->dims, option->shape, option->rank * sizeof *out->dims);
  return RONDO_OK;
}

/* Inputs ----------------------------------------------------------------------------------------------------------- */

rondo_status rondo_onnx_check_moves(const rondo_onnx_row_dimensions *first, size_t rank) {
  const bool moves_rows = first->rows < rank && first->rows != 0;
  const bool moves_length = first->length < rank && first->length != (first->rows < rank ? 1 : 0);
  if (rank <= RONDO_MAX_DIMENSIONS || (!moves_rows && !moves_length)) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_SHAPE,
                    "it has %zu dimensions, more than %d, and dimension %zu is the %s: make that the %s one", rank,
                    RONDO_MAX_DIMENSIONS, moves_rows ? first->rows : first->length,
                    moves_rows ? "number of rows" : "length", moves_rows ? "first" : "second");
}

/* Where each dimension of the model is in the program. */
typedef struct moved_order {
  size_t order[RONDO_ONNX_MOST_DIMENSIONS];
  bool moves; /* some dimension */
} moved_order;

/* `all` may be NULL. */
static rondo_status find_order(const rondo_onnx_row_dimensions *all, size_t index, size_t rank, moved_order *out) {
  const rondo_onnx_row_dimensions none = {RONDO_ONNX_NO_DIMENSION, RONDO_ONNX_NO_DIMENSION};
  const rondo_onnx_row_dimensions *first = all == NULL ? &none : &all[index];
  size_t at = 0;
  out->moves = false;
  if (first->rows < rank) out->order[first->rows] = at++;
  if (first->length < rank) out->order[first->length] = at++;
  for (size_t d = 0; d < rank; d++) {
    if (d != first->rows && d != first->length) out->order[d] = at++;
    out->moves |= out->order[d] != d;
  }
  return rondo_onnx_check_moves(first, rank);
}

/* Adds an input whose rows and length come first, and moves them back to their places. */
static rondo_status add_moved(rondo_onnx_importer *importer, rondo_onnx_import_input *input, rondo_type type,
                              const size_t *order) {
  const size_t rank = input->shape.rank;
  size_t dims[RONDO_ONNX_MOST_DIMENSIONS];
  rondo_value first;
  for (size_t d = 0; d < rank; d++) dims[order[d]] = input->shape.dims[d];
  RONDO_TRY(rondo_program_input(importer->program, input->name, type, dims, rank, &first));
  return rondo_op_permute(importer->program, first, order, &input->result);
}

rondo_status rondo_onnx_add_input(rondo_onnx_importer *importer, rondo_onnx_import_input *input, rondo_value *out) {
  rondo_type type;
  moved_order moved;
  const rondo_onnx_sharing *sharing = importer->sharing;
  const bool is_handed = input->handed != NULL;
  const size_t index = is_handed ? 0 : (size_t)(input - importer->inputs);
  if (input->result.id == 0) {
    RONDO_TRY(rondo_onnx_held_type(importer, input->shape.type, &type));
    RONDO_TRY(find_order(sharing == NULL || is_handed ? NULL : sharing->inputs, index, input->shape.rank, &moved));
    const rondo_onnx_shape held = rondo_onnx_program_shape(&input->shape);
    RONDO_TRY(moved.moves
                  ? add_moved(importer, input, type, moved.order)
                  : rondo_program_input(importer->program, input->name, type, held.dims, held.rank, &input->result));
  }
  *out = input->result;
  return RONDO_OK;
}

/* A copy of the value that the caller gave, which is needed only during the import. */
static rondo_status copy_given(rondo_onnx_importer *importer, const rondo_onnx_import_input *input,
                               const rondo_onnx_given_input *given, rondo_onnx_constant **out) {
  void *elements;
  RONDO_TRY(rondo_onnx_constant_make(importer, &input->shape, out, &elements));
  if (given->bytes != (*out)->bytes)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "the value of the input '%s' has %zu bytes, and its type and shape need %zu", input->name,
                      given->bytes, (*out)->bytes);
  if (given->bytes > 0) memcpy(elements, given->data, given->bytes);
  (*out)->given = UINT64_C(1) << input->given;
  return RONDO_OK;
}

/* Without a program type, or without elements, it can only be a constant. */
static bool is_constant_only(const rondo_onnx_importer *importer, const rondo_onnx_shape *shape) {
  rondo_type type;
  rondo_saved_error before;
  rondo_error_save(&before);
  const bool has_type = rondo_onnx_held_type(importer, shape->type, &type) == RONDO_OK;
  rondo_error_restore(&before);
  return !has_type || rondo_onnx_shape_count(shape) == 0;
}

static rondo_status make_value(rondo_onnx_importer *importer, rondo_onnx_import_input *input, int option,
                               rondo_onnx_import_value *out) {
  const bool is_empty = rondo_onnx_shape_count(&input->shape) == 0;
  void *elements;
  rondo_value result;
  *out = (rondo_onnx_import_value){.kind = RONDO_ONNX_TENSOR_VALUE, .shape = input->shape};
  if (input->given >= 0) {
    RONDO_TRY(copy_given(importer, input, &importer->options->inputs[option], &out->constant));
  } else if (is_empty) {
    RONDO_TRY(rondo_onnx_constant_make(importer, &input->shape, &out->constant, &elements));
  }
  if (is_empty) return RONDO_OK;
  if (out->constant != NULL && is_constant_only(importer, &input->shape)) {
    input->is_frozen = true;
    return RONDO_OK;
  }
  out->input = input;
  const bool is_later = importer->part != NULL && importer->part->before != NULL;
  return input->given >= 0 || is_later ? RONDO_OK : rondo_onnx_add_input(importer, input, &result);
}

static rondo_status import_tensor(rondo_onnx_importer *importer, const dimension_sizes *sizes,
                                  const rondo_onnx_listed_input *listed, int *values, rondo_onnx_import_value *out) {
  const rondo_onnx_value *described = &listed->value;
  rondo_onnx_import_input *input = &importer->inputs[importer->input_count - 1];
  const int option = find_given(importer, described->name);
  const bool has_data = option >= 0 && importer->options->inputs[option].data != NULL;
  rondo_type none;
  if (listed->type == NULL || listed->type->value_case != RONDO_ONNX__TYPE__VALUE_TENSOR_TYPE)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_TYPE, "it is no tensor ('%s')", described->type_name);
  input->shape.type = (rondo_onnx_type)listed->type->tensor_type->elem_type;
  if (has_data && rondo_onnx_type_bits((int32_t)input->shape.type) == 0)
    return rondo_onnx_held_type(importer, input->shape.type, &none);
  input->given = has_data ? (*values)++ : -1;
  RONDO_TRY(find_shape(importer, sizes, described, &input->shape));
  return make_value(importer, input, option, out);
}

static rondo_status import_item(rondo_onnx_importer *importer, const dimension_sizes *sizes,
                                const rondo_onnx_listed_input *listed, int *values, rondo_onnx_import_value *out) {
  const char *name = listed->value.name;
  *out = (rondo_onnx_import_value){0};
  importer->inputs[importer->input_count++] = (rondo_onnx_import_input){.name = name, .given = -1};
  rondo_status status = import_tensor(importer, sizes, listed, values, out);
  if (status == RONDO_OK) status = rondo_onnx_part_add_input(importer, importer->input_count - 1, out);
  return status == RONDO_UNSUPPORTED ? rondo_onnx_report_value(importer, "input", name) : status;
}

/* A sequence with an element that cannot be imported is unknown as a whole. */
static rondo_status import_span(rondo_onnx_importer *importer, const dimension_sizes *sizes, size_t index,
                                int *values) {
  const rondo_onnx_input_span *span = &importer->listed.spans[index];
  rondo_onnx_import_value *items, whole = {.kind = span->kind, .item_count = span->count};
  RONDO_TRY(rondo_onnx_count_values(importer, span->count));
  RONDO_TRY(rondo_scratch_take(&importer->scratch, span->count, sizeof *items, &items));
  RONDO_TRY(rondo_scratch_take(&importer->scratch, 1, sizeof *whole.list, &whole.list));
  *whole.list = (rondo_onnx_item_list){.items = items, .count = span->count, .capacity = span->count};
  for (size_t i = 0; i < span->count; i++) {
    RONDO_TRY(import_item(importer, sizes, &importer->listed.items[span->first + i], values, &items[i]));
    if (items[i].kind == RONDO_ONNX_UNKNOWN) whole.kind = RONDO_ONNX_UNKNOWN;
  }
  const bool is_tensor = span->kind == RONDO_ONNX_TENSOR_VALUE;
  return rondo_onnx_define(importer, importer->model->inputs[index].name, is_tensor ? &items[0] : &whole);
}

static rondo_status import_each(rondo_onnx_importer *importer, dimension_sizes *sizes) {
  int values = 0;
  for (size_t i = 0; i < importer->options->dimension_count; i++)
    RONDO_TRY(rondo_array_push(&importer->allocator, &sizes->known, &importer->options->dimensions[i]));
  for (size_t i = 0; i < importer->listed.count; i++)
    RONDO_TRY(note_sizes(importer, sizes, &importer->listed.items[i]));
  for (size_t i = 0; i < importer->model->info.inputs; i++) RONDO_TRY(import_span(importer, sizes, i, &values));
  return RONDO_OK;
}

static rondo_status list_inputs(rondo_onnx_importer *importer) {
  if (importer->sharing == NULL)
    return rondo_onnx_list_inputs(importer->kept, importer->model, importer->options, &importer->listed);
  importer->listed = *importer->sharing->listed;
  return RONDO_OK;
}

rondo_status rondo_onnx_import_inputs(rondo_onnx_importer *importer) {
  dimension_sizes sizes = {0};
  RONDO_TRY(list_inputs(importer));
  RONDO_TRY(check_options(importer));
  RONDO_TRY(
      rondo_scratch_take(&importer->scratch, importer->listed.count, sizeof *importer->inputs, &importer->inputs));
  const rondo_status status = import_each(importer, &sizes);
  rondo_array_free(&importer->allocator, &sizes.known);
  return status;
}

/* Results ---------------------------------------------------------------------------------------------------------- */

static rondo_status keep_shape(rondo_onnx_importer *importer, const rondo_onnx_shape *shape,
                               rondo_onnx_built_value *out) {
  size_t *dims;
  rondo_type type = 0;
  (void)rondo_onnx_find_type((int32_t)shape->type, &type);
  RONDO_TRY(rondo_scratch_take(importer->kept, shape->rank, sizeof *dims, &dims));
  if (shape->rank > 0) memcpy(dims, shape->dims, shape->rank * sizeof *dims);
  if (out->program_name != NULL) RONDO_TRY(rondo_onnx_held_type(importer, shape->type, &type));
  out->type = type;
  out->rank = shape->rank;
  out->shape = dims;
  out->type_name = rondo_onnx_type_name((int32_t)shape->type);
  out->is_double = out->program_name != NULL && shape->type == RONDO_ONNX_DOUBLE;
  return RONDO_OK;
}

rondo_status rondo_onnx_finish_inputs(rondo_onnx_importer *importer) {
  rondo_value result;
  const bool is_part = rondo_onnx_is_cut(importer->part) || (importer->part != NULL && importer->part->before != NULL);
  for (size_t i = 0; i < importer->input_count; i++) {
    rondo_onnx_import_input *input = &importer->inputs[i];
    if (!is_part && !input->is_frozen && input->given >= 0 && !is_constant_only(importer, &input->shape))
      RONDO_TRY(rondo_onnx_add_input(importer, input, &result));
    rondo_onnx_built_value built = {.name = input->name,
                                    .is_frozen = input->is_frozen,
                                    .program_name = input->result.id != 0 ? input->name : NULL,
                                    .value_index = importer->listed.items[i].owner,
                                    .element_index = importer->listed.items[i].index};
    RONDO_TRY(keep_shape(importer, &input->shape, &built));
    RONDO_TRY(rondo_array_push(&importer->build->allocator, &importer->build->inputs, &built));
  }
  importer->build->info.inputs = importer->input_count;
  return RONDO_OK;
}

/* Outputs ---------------------------------------------------------------------------------------------------------- */

/* A name that no value of the model or of the program has: `name` with as many suffixes as that takes. */
static rondo_status add_suffix(rondo_onnx_importer *importer, const char *name, const char *suffix, const char **out) {
  uint32_t index;
  char *longer;
  *out = name;
  do {
    const size_t bytes = strlen(*out), more = strlen(suffix) + 1;
    RONDO_TRY(rondo_scratch_take(importer->kept, bytes + more, 1, &longer));
    memcpy(longer, *out, bytes);
    memcpy(longer + bytes, suffix, more);
    *out = longer;
  } while (rondo_onnx_name_find(&importer->names, longer, &index) || rondo_program_has_name(importer->program, longer));
  return RONDO_OK;
}

/* The name of an output in the program, which may have an input or state of this name. */
static rondo_status name_output(rondo_onnx_importer *importer, const char *name, const char **out) {
  *out = name;
  return rondo_program_has_name(importer->program, name) ? add_suffix(importer, name, ".output", out) : RONDO_OK;
}

rondo_status rondo_onnx_output_value(rondo_onnx_importer *importer, const rondo_onnx_import_value *value,
                                     rondo_value *out) {
  if (value->input != NULL) return rondo_onnx_add_input(importer, value->input, out);
  if (value->scaled != NULL) return rondo_onnx_add_scaled(importer, value->scaled, out);
  *out = value->result;
  return out->id != 0 ? RONDO_OK : rondo_onnx_constant_value(importer, value->constant, out);
}

/* Constants of types that programs lack stay as they are. */
static bool is_known_only(const rondo_onnx_importer *importer, const rondo_onnx_import_value *value) {
  const rondo_onnx_type type = value->shape.type;
  const bool is_held = type != RONDO_ONNX_DOUBLE && rondo_onnx_widened_type(type) != 0;
  return !rondo_onnx_has_result(value) && (is_held || is_constant_only(importer, &value->shape));
}

/* Moves the rows and the length of this output to the first places. */
static rondo_status move_output(rondo_onnx_importer *importer, size_t index, size_t rank, rondo_value *inout) {
  const rondo_onnx_sharing *sharing = importer->sharing;
  size_t from[RONDO_ONNX_MOST_DIMENSIONS];
  moved_order moved;
  RONDO_TRY(find_order(sharing == NULL ? NULL : sharing->outputs, index, rank, &moved));
  if (!moved.moves) return RONDO_OK;
  for (size_t d = 0; d < rank; d++) from[moved.order[d]] = d;
  return rondo_op_permute(importer->program, *inout, from, inout);
}

static rondo_status add_output(rondo_onnx_importer *importer, const rondo_onnx_import_value *value,
                               rondo_onnx_built_value *built) {
  rondo_value result;
  if (is_known_only(importer, value)) return RONDO_OK;
  if (rondo_onnx_is_handed(importer, value)) {
    built->program_name = value->handed->name;
    return RONDO_OK;
  }
  RONDO_TRY(rondo_onnx_output_value(importer, value, &result));
  RONDO_TRY(move_output(importer, built->value_index, value->shape.rank, &result));
  RONDO_TRY(name_output(importer, built->name, &built->program_name));
  return rondo_program_output(importer->program, built->program_name, result);
}

/* Adds how much of an output is used as an output of its own. */
static rondo_status add_count(rondo_onnx_importer *importer, const rondo_onnx_import_value *value,
                              rondo_onnx_built_value *built) {
  if (value->count.id == 0) return RONDO_OK;
  RONDO_TRY(add_suffix(importer, built->program_name, ".count", &built->count_name));
  RONDO_TRY(rondo_program_output(importer->program, built->count_name, value->count));
  built->counted_dimension = value->counted_axis;
  return RONDO_OK;
}

/* A copy of the elements, which stays when the caller frees the weights. */
static rondo_status describe_constant(rondo_onnx_importer *importer, rondo_onnx_constant *constant,
                                      rondo_onnx_built_value *built) {
  void *copy;
  RONDO_TRY(rondo_onnx_folding_compute(importer, constant));
  if (constant->elements == NULL || constant->bytes == 0) return RONDO_OK;
  RONDO_TRY(rondo_scratch_take(importer->kept, constant->bytes, 1, &copy));
  memcpy(copy, constant->elements, constant->bytes);
  built->data = copy;
  built->bytes = constant->bytes;
  return RONDO_OK;
}

static rondo_status fill_output(rondo_onnx_importer *importer, const rondo_onnx_import_value *value,
                                rondo_onnx_built_value *built) {
  if (value->kind == RONDO_ONNX_SEQUENCE || value->kind == RONDO_ONNX_NOTHING)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_TYPE, "it is a sequence of sequences or optionals");
  if (value->kind == RONDO_ONNX_UNKNOWN && importer->build->info.unsupported == 0)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE, "no node that can be imported computes it");
  if (value->kind == RONDO_ONNX_UNKNOWN) return RONDO_OK; /* the reason is listed */
  if (!rondo_onnx_has_result(value)) RONDO_TRY(describe_constant(importer, value->constant, built));
  RONDO_TRY(add_output(importer, value, built));
  RONDO_TRY(add_count(importer, value, built));
  return keep_shape(importer, &value->shape, built);
}

static rondo_status import_tensor_output(rondo_onnx_importer *importer, const rondo_onnx_import_value *value,
                                         rondo_onnx_built_value built) {
  const rondo_status status = fill_output(importer, value, &built);
  if (status == RONDO_UNSUPPORTED)
    RONDO_TRY(rondo_onnx_report_value(importer, "output", built.name));
  else
    RONDO_TRY(status);
  RONDO_TRY(rondo_onnx_part_add_output(importer, built.program_name != NULL ? value : NULL));
  return rondo_array_push(&importer->build->allocator, &importer->build->outputs, &built);
}

static rondo_status import_output(rondo_onnx_importer *importer, size_t index, const char *name) {
  const rondo_onnx_import_value value = *rondo_onnx_look_up(importer, name);
  rondo_onnx_built_value built = {.name = name, .type_name = "unknown", .value_index = index};
  if (value.kind == RONDO_ONNX_NOTHING) return RONDO_OK;
  if (value.kind != RONDO_ONNX_SEQUENCE) return import_tensor_output(importer, &value, built);
  RONDO_TRY(rondo_onnx_count_values(importer, value.item_count));
  for (size_t i = 0; i < value.item_count; i++) {
    built.element_index = i;
    RONDO_TRY(rondo_onnx_element_name(importer->kept, name, i, &built.name));
    RONDO_TRY(import_tensor_output(importer, &value.list->items[i], built));
  }
  return RONDO_OK;
}

rondo_status rondo_onnx_import_outputs(rondo_onnx_importer *importer) {
  const RondoOnnx__Graph *graph = importer->model->message->graph;
  for (size_t i = 0; i < graph->n_output; i++)
    RONDO_TRY(
        rondo_fail_context(import_output(importer, i, graph->output[i]->name), "output '%s'", graph->output[i]->name));
  importer->build->info.outputs = importer->build->outputs.count;
  return RONDO_OK;
}
