/* SPDX-License-Identifier: MIT
 * What the public calls tell about a model: its inputs, outputs, operators and sizes. They are made once, when the
 * model is loaded.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/versioned_struct.h"
#include "onnx/format/model_check.h"
#include "onnx/format/onnx_model.h"
#include "onnx/format/widened_elements.h"

/* Inputs and outputs ----------------------------------------------------------------------------------------------- */

static rondo_onnx_dimension dimension_of(const RondoOnnx__Dimension *given) {
  const bool has_size = given->has_dim_value && given->dim_value >= 0;
  return (rondo_onnx_dimension){.is_dynamic = !has_size,
                                .size = has_size ? (size_t)given->dim_value : 0,
                                .name = rondo_onnx_text(given->dim_param)};
}

static rondo_status describe_shape(rondo_onnx_model *model, const RondoOnnx__Shape *shape, rondo_onnx_value *out) {
  rondo_onnx_dimension *dimensions;
  RONDO_TRY(rondo_scratch_take(&model->scratch, shape->n_dim, sizeof *dimensions, &dimensions));
  for (size_t i = 0; i < shape->n_dim; i++) dimensions[i] = dimension_of(shape->dim[i]);
  out->has_shape = true;
  out->rank = shape->n_dim;
  out->dimensions = dimensions;
  return RONDO_OK;
}

static const char *name_of_kind(const RondoOnnx__Type *type) {
  switch (type != NULL ? type->value_case : RONDO_ONNX__TYPE__VALUE__NOT_SET) {
    case RONDO_ONNX__TYPE__VALUE_SEQUENCE_TYPE:
      return "sequence";
    case RONDO_ONNX__TYPE__VALUE_OPTIONAL_TYPE:
      return "optional";
    case RONDO_ONNX__TYPE__VALUE_MAP_TYPE:
      return "map";
    case RONDO_ONNX__TYPE__VALUE_SPARSE_TENSOR_TYPE:
      return "sparse";
    default:
      return "unknown";
  }
}

static const RondoOnnx__Type *element_of(const RondoOnnx__Type *type) {
  if (type->value_case == RONDO_ONNX__TYPE__VALUE_SEQUENCE_TYPE) return type->sequence_type->elem_type;
  return type->value_case == RONDO_ONNX__TYPE__VALUE_OPTIONAL_TYPE ? type->optional_type->elem_type : NULL;
}

static rondo_status describe_type(rondo_onnx_model *model, const RondoOnnx__Type *type, rondo_onnx_value *out);

/* Recursion is limited by the nesting of messages. */
static rondo_status describe_element(rondo_onnx_model *model, const RondoOnnx__Type *type, rondo_onnx_value *out) {
  rondo_onnx_value *element;
  if (type == NULL) return RONDO_OK;
  RONDO_TRY(rondo_scratch_take(&model->scratch, 1, sizeof *element, &element));
  element->struct_size = sizeof *element;
  element->name = out->name;
  out->element = element;
  return describe_type(model, type, element);
}

static rondo_status describe_type(rondo_onnx_model *model, const RondoOnnx__Type *type, rondo_onnx_value *out) {
  out->type_name = name_of_kind(type);
  if (type == NULL) return RONDO_OK;
  if (type->value_case != RONDO_ONNX__TYPE__VALUE_TENSOR_TYPE) return describe_element(model, element_of(type), out);
  const RondoOnnx__TensorType *tensor = type->tensor_type;
  out->type_name = rondo_onnx_type_name(tensor->elem_type);
  out->has_type = rondo_onnx_find_type(tensor->elem_type, &out->type);
  out->program_type = rondo_onnx_program_type_of(tensor->elem_type);
  return tensor->shape != NULL ? describe_shape(model, tensor->shape, out) : RONDO_OK;
}

static rondo_status describe_value(rondo_onnx_model *model, const RondoOnnx__Value *value, rondo_onnx_value *out) {
  *out = (rondo_onnx_value){.name = value->name};
  return describe_type(model, value->type, out);
}

static int compare_texts(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of the dense initializers, sorted. */
static rondo_status list_initializers(rondo_onnx_model *model, const char ***out) {
  const RondoOnnx__Graph *graph = model->message->graph;
  RONDO_TRY(rondo_scratch_take(&model->scratch, graph->n_initializer, sizeof **out, out));
  for (size_t i = 0; i < graph->n_initializer; i++) (*out)[i] = graph->initializer[i]->name;
  if (graph->n_initializer > 1) qsort(*out, graph->n_initializer, sizeof **out, compare_texts);
  return RONDO_OK;
}

static rondo_status describe_inputs(rondo_onnx_model *model) {
  const RondoOnnx__Graph *graph = model->message->graph;
  const char **initializers;
  RONDO_TRY(list_initializers(model, &initializers));
  RONDO_TRY(rondo_scratch_take(&model->scratch, graph->n_input, sizeof *model->inputs, &model->inputs));
  for (size_t i = 0; i < graph->n_input; i++) {
    const char *name = graph->input[i]->name;
    if (graph->n_initializer > 0 &&
        bsearch(&name, initializers, graph->n_initializer, sizeof *initializers, compare_texts) != NULL)
      continue;
    RONDO_TRY(describe_value(model, graph->input[i], &model->inputs[model->info.inputs++]));
  }
  return RONDO_OK;
}

static rondo_status describe_outputs(rondo_onnx_model *model) {
  const RondoOnnx__Graph *graph = model->message->graph;
  RONDO_TRY(rondo_scratch_take(&model->scratch, graph->n_output, sizeof *model->outputs, &model->outputs));
  for (size_t i = 0; i < graph->n_output; i++)
    RONDO_TRY(describe_value(model, graph->output[i], &model->outputs[model->info.outputs++]));
  return RONDO_OK;
}

/* Operators -------------------------------------------------------------------------------------------------------- */

typedef RONDO_ARRAY(rondo_onnx_operator) operator_list;

static int compare_operators(const void *a, const void *b) {
  const rondo_onnx_operator *x = a, *y = b;
  const int by_domain = strcmp(x->domain, y->domain);
  return by_domain != 0 ? by_domain : strcmp(x->name, y->name);
}

static rondo_status list_nodes(rondo_onnx_model *model, RondoOnnx__Node *const *nodes, size_t count,
                               operator_list *list);

static rondo_status list_nested(rondo_onnx_model *model, const RondoOnnx__Node *node, operator_list *list) {
  for (size_t i = 0; i < node->n_attribute; i++) {
    const RondoOnnx__Attribute *attribute = node->attribute[i];
    if (attribute->g != NULL) RONDO_TRY(list_nodes(model, attribute->g->node, attribute->g->n_node, list));
    for (size_t g = 0; g < attribute->n_graphs; g++)
      RONDO_TRY(list_nodes(model, attribute->graphs[g]->node, attribute->graphs[g]->n_node, list));
  }
  return RONDO_OK;
}

/* One entry for each node that is no call of a function. */
static rondo_status list_nodes(rondo_onnx_model *model, RondoOnnx__Node *const *nodes, size_t count,
                               operator_list *list) {
  for (size_t i = 0; i < count; i++) {
    const rondo_onnx_operator entry = {
        .domain = rondo_onnx_node_domain(nodes[i]), .name = nodes[i]->op_type, .nodes = 1};
    model->info.nodes++;
    if (rondo_onnx_find_function(model->message, nodes[i]) == model->message->n_functions)
      RONDO_TRY(rondo_array_push(&model->allocator, list, &entry));
    RONDO_TRY(list_nested(model, nodes[i], list));
  }
  return RONDO_OK;
}

static rondo_status list_all_nodes(rondo_onnx_model *model, operator_list *list) {
  const RondoOnnx__Model *message = model->message;
  RONDO_TRY(list_nodes(model, message->graph->node, message->graph->n_node, list));
  for (size_t i = 0; i < message->n_functions; i++)
    RONDO_TRY(list_nodes(model, message->functions[i]->node, message->functions[i]->n_node, list));
  return RONDO_OK;
}

/* Sorts the list, and adds up entries of one operator. */
static rondo_status join_operators(rondo_onnx_model *model, operator_list *list) {
  if (list->count > 1) qsort(list->items, list->count, sizeof *list->items, compare_operators);
  size_t kept = 0;
  for (size_t i = 0; i < list->count; i++) {
    if (kept > 0 && compare_operators(&list->items[kept - 1], &list->items[i]) == 0)
      list->items[kept - 1].nodes++;
    else
      list->items[kept++] = list->items[i];
  }
  RONDO_TRY(rondo_scratch_take(&model->scratch, kept, sizeof *list->items, &model->operators));
  if (kept > 0) memcpy(model->operators, list->items, kept * sizeof *list->items);
  model->operator_count = kept;
  return RONDO_OK;
}

static rondo_status describe_operators(rondo_onnx_model *model) {
  operator_list list = {0};
  rondo_status status = list_all_nodes(model, &list);
  if (status == RONDO_OK) status = join_operators(model, &list);
  rondo_array_free(&model->allocator, &list);
  return status;
}

/* Sizes ------------------------------------------------------------------------------------------------------------ */

static rondo_status count_weights(rondo_onnx_model *model) {
  const RondoOnnx__Graph *graph = model->message->graph;
  rondo_onnx_data_source source = rondo_onnx_data_of(model);
  source.scratch = NULL;
  rondo_onnx_tensor tensor;
  model->info.initializers = graph->n_initializer;
  for (size_t i = 0; i < graph->n_initializer; i++) {
    RONDO_TRY(rondo_onnx_read_tensor(&source, graph->initializer[i], &tensor));
    model->info.parameters += tensor.count;
    model->info.weight_bytes += tensor.bytes;
  }
  return RONDO_OK;
}

static int64_t find_opset(const RondoOnnx__Model *message) {
  for (size_t i = 0; i < message->n_opset_import; i++) {
    const char *domain = rondo_onnx_text(message->opset_import[i]->domain);
    if (domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0) return message->opset_import[i]->version;
  }
  return 0;
}

rondo_status rondo_onnx_describe(rondo_onnx_model *model) {
  const RondoOnnx__Model *message = model->message;
  model->info = (rondo_onnx_info){.ir_version = (uint32_t)message->ir_version,
                                  .opset = find_opset(message),
                                  .graph_name = rondo_onnx_text(message->graph->name),
                                  .producer_name = rondo_onnx_text(message->producer_name),
                                  .producer_version = rondo_onnx_text(message->producer_version)};
  RONDO_TRY(describe_inputs(model));
  RONDO_TRY(describe_outputs(model));
  RONDO_TRY(describe_operators(model));
  return count_weights(model);
}

/* Public calls ----------------------------------------------------------------------------------------------------- */

static rondo_status fail_past_end(const char *call, const char *what, size_t index, size_t count) {
  return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE, "%s: there is no %s %zu: the model has %zu", call, what,
                    index, count);
}

static rondo_status get_value(const char *call, const rondo_onnx_model *model, bool is_output, size_t index,
                              rondo_onnx_value *out_value) {
  RONDO_TRY(rondo_require(call, "model", model));
  RONDO_TRY(rondo_require(call, "out_value", out_value));
  const rondo_onnx_value *values = is_output ? model->outputs : model->inputs;
  const size_t count = is_output ? model->info.outputs : model->info.inputs;
  if (index >= count) return fail_past_end(call, is_output ? "output" : "input", index, count);
  return rondo_versioned_write("rondo_onnx_value", &values[index], out_value, sizeof *out_value);
}

rondo_status rondo_onnx_get_input(const rondo_onnx_model *model, size_t index, rondo_onnx_value *out_value) {
  return get_value("rondo_onnx_get_input", model, false, index, out_value);
}

rondo_status rondo_onnx_get_output(const rondo_onnx_model *model, size_t index, rondo_onnx_value *out_value) {
  return get_value("rondo_onnx_get_output", model, true, index, out_value);
}

rondo_status rondo_onnx_get_operator(const rondo_onnx_model *model, size_t index, rondo_onnx_operator *out_operator) {
  const char *const call = "rondo_onnx_get_operator";
  RONDO_TRY(rondo_require(call, "model", model));
  RONDO_TRY(rondo_require(call, "out_operator", out_operator));
  if (index >= model->operator_count) return fail_past_end(call, "operator", index, model->operator_count);
  return rondo_versioned_write("rondo_onnx_operator", &model->operators[index], out_operator, sizeof *out_operator);
}

rondo_status rondo_onnx_get_info(const rondo_onnx_model *model, rondo_onnx_info *out_info) {
  RONDO_TRY(rondo_require("rondo_onnx_get_info", "model", model));
  RONDO_TRY(rondo_require("rondo_onnx_get_info", "out_info", out_info));
  return rondo_versioned_write("rondo_onnx_info", &model->info, out_info, sizeof *out_info);
}
