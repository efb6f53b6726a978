/* SPDX-License-Identifier: MIT
 * Lists of inputs.
 */
#include "onnx/import/input_list.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define MOST_ELEMENTS 65536 /* of a sequence */
#define POSITION_DIGITS 6

/* Names ------------------------------------------------------------------------------------------------------------ */

rondo_status rondo_onnx_element_name(rondo_scratch *scratch, const char *name, size_t index, const char **out) {
  const size_t bytes = strlen(name) + 24;
  char *text;
  RONDO_TRY(rondo_scratch_take(scratch, bytes, 1, &text));
  (void)snprintf(text, bytes, "%s[%zu]", name, index);
  *out = text;
  return RONDO_OK;
}

/* What follows the name of the sequence: "[12]" of "x[12]"; NULL: it is another name. */
static const char *find_brackets(const char *name, const char *sequence) {
  const size_t length = strlen(sequence);
  return strncmp(name, sequence, length) == 0 && name[length] == '[' ? name + length : NULL;
}

static bool parse_position(const char *name, const char *sequence, size_t *out) {
  const char *at = find_brackets(name, sequence);
  size_t digits = 0;
  *out = 0;
  if (at == NULL) return false;
  for (at++; *at >= '0' && *at <= '9' && digits < POSITION_DIGITS; at++, digits++)
    *out = *out * 10 + (size_t)(*at - '0');
  return digits > 0 && strcmp(at, "]") == 0;
}

/* Numbers of elements ---------------------------------------------------------------------------------------------- */

static bool has_given(const rondo_onnx_build_options *options, const char *name) {
  for (size_t i = 0; i < options->input_count; i++)
    if (strcmp(options->inputs[i].name, name) == 0) return true;
  return false;
}

/* Whether an input of the model has this name: a tensor may be called "x[3]". */
static bool is_input(const rondo_onnx_model *model, const char *name) {
  for (size_t i = 0; i < model->info.inputs; i++)
    if (strcmp(model->inputs[i].name, name) == 0) return true;
  return false;
}

/* The number that the options say, as the dimension "x[]", or by the last element that they give. */
static bool find_count(const rondo_onnx_model *model, const rondo_onnx_build_options *options, const char *name,
                       size_t *out) {
  bool is_found = false;
  *out = 0;
  for (size_t i = 0; i < options->dimension_count; i++) {
    const char *brackets = find_brackets(options->dimensions[i].name, name);
    if (brackets == NULL || strcmp(brackets, "[]") != 0) continue;
    *out = options->dimensions[i].size;
    return true;
  }
  for (size_t i = 0; i < options->input_count; i++) {
    size_t position;
    if (!parse_position(options->inputs[i].name, name, &position)) continue;
    if (is_input(model, options->inputs[i].name)) continue;
    if (position >= *out) *out = position + 1;
    is_found = true;
  }
  return is_found;
}

static rondo_status check_names(const rondo_onnx_build_options *options) {
  static const char call[] = "rondo_onnx_build_program";
  if (options->dimension_count > 0) RONDO_TRY(rondo_require(call, "options.dimensions", options->dimensions));
  if (options->input_count > 0) RONDO_TRY(rondo_require(call, "options.inputs", options->inputs));
  for (size_t i = 0; i < options->dimension_count; i++)
    RONDO_TRY(rondo_require(call, "the name of a dimension", options->dimensions[i].name));
  for (size_t i = 0; i < options->input_count; i++)
    RONDO_TRY(rondo_require(call, "the name of a given input", options->inputs[i].name));
  return RONDO_OK;
}

/* Spans ------------------------------------------------------------------------------------------------------------ */

static bool is_kind(const rondo_onnx_value *value, const char *kind) { return strcmp(value->type_name, kind) == 0; }

static bool is_sequence_of_tensors(const rondo_onnx_value *value) {
  const rondo_onnx_value *element = is_kind(value, "sequence") ? value->element : NULL;
  return element != NULL && element->element == NULL && !is_kind(element, "map") && !is_kind(element, "sparse");
}

static rondo_status span_of_sequence(const rondo_onnx_model *model, const rondo_onnx_build_options *options,
                                     const char *name, bool is_optional, rondo_onnx_input_span *out) {
  const bool is_known = find_count(model, options, name, &out->count);
  out->kind = is_known ? RONDO_ONNX_SEQUENCE : RONDO_ONNX_NOTHING;
  if (!is_known && !is_optional)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "the number of elements of the input '%s', a sequence, is not known: give the elements as "
                      "'%s[0]', '%s[1]' and so on, or their number as the size of a dimension '%s[]'",
                      name, name, name, name);
  if (out->count <= MOST_ELEMENTS) return RONDO_OK;
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                    "the input '%s' is given with %zu elements, more than %d", name, out->count, MOST_ELEMENTS);
}

/* Kinds that cannot be imported are listed as tensors, so that their import says why. */
static rondo_status find_span(const rondo_onnx_model *model, const rondo_onnx_build_options *options,
                              const rondo_onnx_value *value, rondo_onnx_input_span *out) {
  const bool is_optional = is_kind(value, "optional") && value->element != NULL;
  *out = (rondo_onnx_input_span){.kind = RONDO_ONNX_TENSOR_VALUE, .first = out->first, .count = 1};
  if (is_sequence_of_tensors(value) || (is_optional && is_sequence_of_tensors(value->element)))
    return span_of_sequence(model, options, value->name, is_optional, out);
  if (!is_optional || value->element->element != NULL || has_given(options, value->name)) return RONDO_OK;
  out->kind = RONDO_ONNX_NOTHING;
  out->count = 0;
  return RONDO_OK;
}

/* Items ------------------------------------------------------------------------------------------------------------ */

static const RondoOnnx__Type *inner_type(const RondoOnnx__Type *type) {
  return type->value_case == RONDO_ONNX__TYPE__VALUE_SEQUENCE_TYPE ? type->sequence_type->elem_type
                                                                   : type->optional_type->elem_type;
}

/* The message of the tensor that the description is of: below the kinds that the value has around it. */
static rondo_status fill_items(rondo_scratch *scratch, const rondo_onnx_value *value, const RondoOnnx__Type *type,
                               size_t owner, const rondo_onnx_input_list *list) {
  const rondo_onnx_input_span *span = &list->spans[owner];
  const rondo_onnx_value *tensor = value;
  const bool is_listed = is_sequence_of_tensors(value) || span->kind == RONDO_ONNX_SEQUENCE ||
                         (is_kind(value, "optional") && value->element != NULL && value->element->element == NULL);
  for (; is_listed && tensor->element != NULL; tensor = tensor->element) type = inner_type(type);
  for (size_t i = 0; i < span->count; i++) {
    rondo_onnx_listed_input *item = &list->items[span->first + i];
    *item = (rondo_onnx_listed_input){.value = *tensor, .type = type, .owner = owner, .index = i};
    item->value.name = value->name;
    if (span->kind == RONDO_ONNX_SEQUENCE)
      RONDO_TRY(rondo_onnx_element_name(scratch, value->name, i, &item->value.name));
  }
  return RONDO_OK;
}

/* The graph also lists initializers as inputs. */
static rondo_status fill_list(rondo_scratch *scratch, const rondo_onnx_model *model,
                              const rondo_onnx_input_list *list) {
  const RondoOnnx__Graph *graph = model->message->graph;
  for (size_t i = 0, at = 0; i < graph->n_input && at < model->info.inputs; i++) {
    if (strcmp(graph->input[i]->name, model->inputs[at].name) != 0) continue;
    RONDO_TRY(fill_items(scratch, &model->inputs[at], graph->input[i]->type, at, list));
    at++;
  }
  return RONDO_OK;
}

rondo_status rondo_onnx_list_inputs(rondo_scratch *scratch, const rondo_onnx_model *model,
                                    const rondo_onnx_build_options *options, rondo_onnx_input_list *out) {
  const size_t count = model->info.inputs;
  *out = (rondo_onnx_input_list){0};
  RONDO_TRY(check_names(options));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *out->spans, &out->spans));
  for (size_t i = 0; i < count; i++) {
    out->spans[i].first = out->count;
    RONDO_TRY(find_span(model, options, &model->inputs[i], &out->spans[i]));
    out->count += out->spans[i].count;
  }
  RONDO_TRY(rondo_scratch_take(scratch, out->count, sizeof *out->items, &out->items));
  return fill_list(scratch, model, out);
}
