/* SPDX-License-Identifier: MIT
 * Imports graphs and functions.
 */
#include "onnx/import/graph_import.h"

#include <string.h>

#include "base/error.h"
#include "onnx/format/model_check.h"
#include "onnx/import/build_result.h"
#include "onnx/import/constant.h"
#include "onnx/import/empty_result.h"
#include "onnx/import/folding.h"
#include "onnx/import/model_part.h"
#include "onnx/import/node_attributes.h"

/* Names ------------------------------------------------------------------------------------------------------------ */

rondo_status rondo_onnx_define(rondo_onnx_importer *importer, const char *name, const rondo_onnx_import_value *value) {
  bool is_new;
  if (name[0] == '\0') return RONDO_OK; /* a result that nobody uses */
  RONDO_TRY(
      rondo_onnx_name_add(&importer->allocator, &importer->names, name, (uint32_t)importer->values.count, &is_new));
  return is_new ? rondo_array_push(&importer->allocator, &importer->values, value) : RONDO_OK;
}

const rondo_onnx_import_value *rondo_onnx_look_up(const rondo_onnx_importer *importer, const char *name) {
  uint32_t index = 0;
  const bool is_found = rondo_onnx_name_find(&importer->names, name, &index);
  assert(is_found);
  (void)is_found;
  return &importer->values.items[index];
}

/* Operator sets ---------------------------------------------------------------------------------------------------- */

static bool is_domain(const char *given, const char *domain) {
  const char *text = rondo_onnx_text(given);
  return strcmp(strcmp(text, "ai.onnx") == 0 ? "" : text, domain) == 0;
}

static int64_t opset_among(RondoOnnx__Opset *const *sets, size_t count, const char *domain) {
  for (size_t i = 0; i < count; i++)
    if (is_domain(sets[i]->domain, domain)) return sets[i]->version;
  return 0;
}

/* The version of the domain's operators here: a function may use another than the model. */
static int64_t opset_of(const rondo_onnx_importer *importer, const char *domain) {
  const RondoOnnx__Function *function = importer->scope->function;
  int64_t version = 0;
  if (function != NULL) version = opset_among(function->opset_import, function->n_opset_import, domain);
  const RondoOnnx__Model *model = importer->model->message;
  return version != 0 ? version : opset_among(model->opset_import, model->n_opset_import, domain);
}

/* Whether a node that fails like this is reported, and the import goes on. */
static bool is_refusal(rondo_status status) {
  return status == RONDO_UNSUPPORTED || status == RONDO_INVALID_ARGUMENT || status == RONDO_EXECUTION_FAILED;
}

/* Operators -------------------------------------------------------------------------------------------------------- */

static rondo_status check_inputs(rondo_onnx_node *node) {
  const size_t count = rondo_onnx_input_count(node);
  const bool needs_all = node->row->least_inputs == RONDO_ONNX_ANY_NUMBER;
  const size_t least = !needs_all ? node->row->least_inputs : count > 0 ? count : 1;
  for (size_t i = 0; i < least; i++)
    if (!rondo_onnx_has_input(node, i))
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, "input %zu is missing", i);
  if (node->row->most_inputs != RONDO_ONNX_ANY_NUMBER && count > node->row->most_inputs)
    return rondo_onnx_refuse(node, "it has %zu inputs, and at most %d are supported", count, node->row->most_inputs);
  for (size_t i = 0; i < count && (node->row->flags & RONDO_ONNX_ROW_ONCE) == 0; i++)
    if (rondo_onnx_has_input(node, i) && node->inputs[i].kind != RONDO_ONNX_TENSOR_VALUE)
      return rondo_onnx_refuse(node, "input %zu is a sequence or an optional, not a tensor", i);
  for (size_t i = 0; i < count && (node->row->flags & RONDO_ONNX_ROW_ONCE) == 0; i++)
    if (rondo_onnx_has_input(node, i)) RONDO_TRY(rondo_onnx_check_counted(node, i));
  return RONDO_OK;
}

static rondo_status check_results(rondo_onnx_node *node) {
  for (size_t i = 0; i < rondo_onnx_output_count(node); i++)
    if (rondo_onnx_wants_output(node, i) && node->outputs[i].kind == RONDO_ONNX_UNKNOWN && !node->is_unknown)
      return rondo_onnx_refuse(node, "output %zu, '%s', is not supported", i, node->message->output[i]);
  return RONDO_OK;
}

static rondo_status add_operators(rondo_onnx_node *node, bool folds) {
  node->folds = folds;
  node->folding = NULL;
  RONDO_TRY(node->row->handler(node, node->row->data));
  RONDO_TRY(rondo_onnx_check_attributes_read(node));
  return check_results(node);
}

static bool has_constants_only(const rondo_onnx_node *node) {
  for (size_t i = 0; i < rondo_onnx_input_count(node); i++)
    if (rondo_onnx_has_input(node, i) && node->inputs[i].constant == NULL) return false;
  return true;
}

static bool has_results(const rondo_onnx_import_value *values, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (rondo_onnx_has_result(&values[i])) return true;
  return false;
}

/* The values of the results are also known, because they depend on given values of inputs alone. Large ones are not
 * kept: the shapes that models compute are small. */
static void keep_known(rondo_onnx_node *known, rondo_onnx_node *node) {
  for (size_t i = 0; i < rondo_onnx_output_count(node); i++) {
    rondo_onnx_constant *constant = known->outputs[i].constant;
    if (constant != NULL && constant->bytes <= RONDO_ONNX_SMALL_BYTES && node->outputs[i].constant == NULL)
      node->outputs[i].constant = constant;
  }
}

static rondo_status add_known(rondo_onnx_node *node) {
  rondo_onnx_node known = *node;
  RONDO_TRY(rondo_scratch_take(&node->importer->scratch, rondo_onnx_output_count(node), sizeof *known.outputs,
                               &known.outputs));
  const rondo_status status = add_operators(&known, true);
  if (status == RONDO_OK) keep_known(&known, node);
  return is_refusal(status) ? RONDO_OK : status;
}

static rondo_status try_operators(rondo_onnx_node *node) { return add_operators(node, true); }

static bool has_empty_input(const rondo_onnx_node *node) {
  for (size_t i = 0; i < rondo_onnx_input_count(node); i++)
    if (rondo_onnx_has_input(node, i) && rondo_onnx_shape_count(rondo_onnx_input_shape(node, i)) == 0) return true;
  return false;
}

/* A refused node may still have results, if they have no elements. */
static rondo_status add_empty_results(rondo_onnx_node *node, rondo_status refused) {
  rondo_saved_error before;
  bool is_set;
  if (!is_refusal(refused) || node->importer->need.is_set || !has_empty_input(node)) return refused;
  rondo_error_save(&before);
  const rondo_status status = rondo_onnx_set_empty_results(node, try_operators, &is_set);
  node->importer->need = (rondo_onnx_need){.is_set = false};
  if (status != RONDO_OK && !is_refusal(status)) return status;
  rondo_error_restore(&before);
  return is_set ? RONDO_OK : refused;
}

/* Whether it reads a large constant of the model: a weight, of which no shape is computed. */
static bool reads_weights(const rondo_onnx_node *node) {
  for (size_t i = 0; i < rondo_onnx_input_count(node); i++) {
    const rondo_onnx_constant *constant = rondo_onnx_has_input(node, i) ? node->inputs[i].constant : NULL;
    if (constant != NULL && constant->given == 0 && constant->bytes > RONDO_ONNX_SMALL_BYTES) return true;
  }
  return false;
}

static rondo_status import_operator(rondo_onnx_node *node) {
  RONDO_TRY(
      rondo_onnx_find_row(rondo_onnx_node_domain(node->message), node->message->op_type, node->opset, &node->row));
  RONDO_TRY(check_inputs(node));
  const bool is_constant = has_constants_only(node);
  const bool is_given = has_results(node->inputs, rondo_onnx_input_count(node));
  const bool once = (node->row->flags & RONDO_ONNX_ROW_ONCE) != 0;
  rondo_status status = add_operators(node, is_constant && !is_given && !once);
  if (status != RONDO_OK && !once) status = add_empty_results(node, status);
  RONDO_TRY(status);
  if (!is_constant || !is_given || once || !has_results(node->outputs, rondo_onnx_output_count(node))) return RONDO_OK;
  return reads_weights(node) ? RONDO_OK : add_known(node);
}

/* Functions -------------------------------------------------------------------------------------------------------- */

static rondo_status bind_parameters(rondo_onnx_importer *importer, const RondoOnnx__Function *function,
                                    const rondo_onnx_node *node) {
  const rondo_onnx_import_value left_out = {.kind = RONDO_ONNX_NOTHING};
  for (size_t i = 0; i < function->n_input; i++)
    RONDO_TRY(
        rondo_onnx_define(importer, function->input[i], rondo_onnx_has_input(node, i) ? &node->inputs[i] : &left_out));
  return RONDO_OK;
}

static rondo_status import_body(rondo_onnx_importer *importer, const RondoOnnx__Function *function,
                                rondo_onnx_node *node) {
  RONDO_TRY(bind_parameters(importer, function, node));
  RONDO_TRY(rondo_onnx_import_nodes(importer, function->node, function->n_node));
  for (size_t i = 0; i < function->n_output; i++)
    rondo_onnx_set_value(node, i, rondo_onnx_look_up(importer, function->output[i]));
  const size_t set = function->n_output < node->message->n_output ? function->n_output : node->message->n_output;
  return rondo_onnx_trace_outputs(importer, node->outputs, set);
}

/* With names of its own: a function does not see those of its caller. */
static rondo_status import_function(rondo_onnx_node *node, const RondoOnnx__Function *function) {
  rondo_onnx_importer *const importer = node->importer;
  const rondo_onnx_name_table outer_names = importer->names;
  const rondo_onnx_scope *const outer = importer->scope;
  const rondo_onnx_scope scope = {.function = function, .call = node->message, .outer = outer};
  const size_t outer_values = importer->values.count;
  if (node->message->n_input > function->n_input || node->message->n_output > function->n_output)
    return rondo_onnx_refuse(node, "the function has %zu inputs and %zu outputs, and the node %zu and %zu",
                             function->n_input, function->n_output, node->message->n_input, node->message->n_output);
  importer->names = (rondo_onnx_name_table){0};
  importer->scope = &scope;
  const rondo_status status = import_body(importer, function, node);
  rondo_onnx_name_table_free(&importer->allocator, &importer->names);
  importer->names = outer_names;
  importer->scope = outer;
  importer->values.count = outer_values;
  return status;
}

/* Nodes ------------------------------------------------------------------------------------------------------------ */

/* Whether all inputs are known, also those that nodes of its graphs use: of these, the nodes find out themselves. */
static bool find_inputs(rondo_onnx_node *node) {
  for (size_t i = 0; i < node->message->n_input; i++) {
    node->inputs[i].kind = RONDO_ONNX_NOTHING;
    if (node->message->input[i][0] == '\0') continue;
    node->inputs[i] = *rondo_onnx_look_up(node->importer, node->message->input[i]);
    if (node->inputs[i].kind == RONDO_ONNX_UNKNOWN) return false;
    if (node->inputs[i].constant != NULL) node->given |= node->inputs[i].constant->given;
  }
  return true;
}

static rondo_status import_known(rondo_onnx_node *node) {
  const RondoOnnx__Model *model = node->importer->model->message;
  const size_t function = rondo_onnx_find_function(model, node->message);
  return function < model->n_functions ? import_function(node, model->functions[function]) : import_operator(node);
}

/* A node whose inputs are unknown is not imported, and listed only if no operator has its name. */
static rondo_status find_operator(rondo_onnx_node *node) {
  const RondoOnnx__Model *model = node->importer->model->message;
  if (rondo_onnx_find_function(model, node->message) < model->n_functions) return RONDO_OK;
  return rondo_onnx_find_row(rondo_onnx_node_domain(node->message), node->message->op_type, node->opset, &node->row);
}

static rondo_status import_reported(rondo_onnx_node *node, size_t index) {
  bool is_cut;
  const bool is_known = find_inputs(node);
  const rondo_status status = is_known ? import_known(node) : find_operator(node);
  if (!is_known) node->is_unknown = true;
  if (!is_refusal(status)) return status;
  node->is_unknown = true;
  if (node->message->n_output > 0) memset(node->outputs, 0, node->message->n_output * sizeof *node->outputs);
  RONDO_TRY(rondo_onnx_cut_at_node(node, &is_cut));
  return is_cut ? RONDO_OK
                : rondo_onnx_report_node(node->importer, node->message, index, node->opset, node->refused_attribute);
}

static rondo_status count_node(rondo_onnx_importer *importer) {
  const size_t given = importer->options->most_nodes, most = given != 0 ? given : RONDO_ONNX_MOST_NODES;
  if (importer->nodes++ < most) return RONDO_OK;
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                    "the model has more than %zu nodes, with those of its loops each time: raise most_nodes", most);
}

rondo_status rondo_onnx_count_values(rondo_onnx_importer *importer, size_t count) {
  if (count <= RONDO_ONNX_MOST_VALUES - importer->node_values) {
    importer->node_values += count;
    return RONDO_OK;
  }
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                    "the nodes of the model have more than %u values, with those of its loops each time",
                    RONDO_ONNX_MOST_VALUES);
}

static rondo_status import_node(rondo_onnx_importer *importer, const RondoOnnx__Node *message, size_t index) {
  rondo_onnx_node node = {
      .importer = importer, .message = message, .opset = opset_of(importer, rondo_onnx_node_domain(message))};
  RONDO_TRY(count_node(importer));
  RONDO_TRY(rondo_onnx_count_values(importer, message->n_input + message->n_output));
  RONDO_TRY(rondo_scratch_take(&importer->scratch, message->n_input, sizeof *node.inputs, &node.inputs));
  RONDO_TRY(rondo_scratch_take(&importer->scratch, message->n_output, sizeof *node.outputs, &node.outputs));
  importer->need = (rondo_onnx_need){.is_set = false};
  if (rondo_onnx_is_traced(importer)) {
    RONDO_TRY(rondo_onnx_take_traced(&node));
  } else {
    RONDO_TRY(import_reported(&node, index));
    RONDO_TRY(rondo_onnx_note_traced(&node));
  }
  importer->need = (rondo_onnx_need){.is_set = false};
  for (size_t i = 0; i < message->n_output; i++)
    RONDO_TRY(rondo_onnx_define(importer, message->output[i], &node.outputs[i]));
  return RONDO_OK;
}

rondo_status rondo_onnx_import_nodes(rondo_onnx_importer *importer, RondoOnnx__Node *const *nodes, size_t count) {
  char label[RONDO_ONNX_NODE_LABEL];
  rondo_onnx_trace outer;
  RONDO_TRY(rondo_onnx_trace_begin(importer, count, &outer));
  for (size_t i = 0; i < count; i++) {
    rondo_onnx_trace_node(importer, i);
    RONDO_TRY(rondo_fail_context(import_node(importer, nodes[i], i), "%s", rondo_onnx_node_label(label, nodes[i], i)));
  }
  rondo_onnx_trace_end(importer, &outer);
  return RONDO_OK;
}

/* Graphs ----------------------------------------------------------------------------------------------------------- */

/* Defines an initializer by the constant that was made of it, or reports why none could be made. */
static rondo_status define_initializer(rondo_onnx_importer *importer, const char *name, rondo_status made,
                                       rondo_onnx_constant *constant) {
  rondo_onnx_import_value value = {0};
  if (made == RONDO_UNSUPPORTED) {
    RONDO_TRY(rondo_onnx_report_value(importer, "initializer", name));
  } else {
    RONDO_TRY(made);
    value = (rondo_onnx_import_value){.kind = RONDO_ONNX_TENSOR_VALUE, .shape = constant->shape, .constant = constant};
  }
  return rondo_onnx_define(importer, name, &value);
}

static rondo_status import_initializer(rondo_onnx_importer *importer, const RondoOnnx__Tensor *message, bool is_main) {
  rondo_onnx_tensor tensor;
  rondo_onnx_constant *constant = NULL;
  RONDO_TRY(rondo_onnx_read_tensor(&importer->source, message, &tensor));
  const rondo_status made = rondo_onnx_constant_of(importer, &tensor, &constant);
  if (made == RONDO_OK && is_main) constant->name = tensor.name;
  return define_initializer(importer, tensor.name, made, constant);
}

static rondo_status import_sparse(rondo_onnx_importer *importer, const RondoOnnx__SparseTensor *message) {
  rondo_onnx_constant *constant = NULL;
  const rondo_status made = rondo_onnx_constant_of_sparse(importer, message, &constant);
  return define_initializer(importer, message->values->name, made, constant);
}

rondo_status rondo_onnx_import_initializers(rondo_onnx_importer *importer, const RondoOnnx__Graph *graph,
                                            bool is_main) {
  for (size_t i = 0; i < graph->n_initializer; i++)
    RONDO_TRY(import_initializer(importer, graph->initializer[i], is_main));
  for (size_t i = 0; i < graph->n_sparse_initializer; i++)
    RONDO_TRY(import_sparse(importer, graph->sparse_initializer[i]));
  return RONDO_OK;
}

static rondo_status import_scope(rondo_onnx_importer *importer, const RondoOnnx__Graph *graph,
                                 const rondo_onnx_import_value *inputs, rondo_onnx_import_value *out_outputs) {
  for (size_t i = 0; i < graph->n_input; i++) RONDO_TRY(rondo_onnx_define(importer, graph->input[i]->name, &inputs[i]));
  RONDO_TRY(rondo_onnx_import_initializers(importer, graph, false));
  RONDO_TRY(rondo_onnx_import_nodes(importer, graph->node, graph->n_node));
  for (size_t i = 0; i < graph->n_output; i++) out_outputs[i] = *rondo_onnx_look_up(importer, graph->output[i]->name);
  return rondo_onnx_trace_outputs(importer, out_outputs, graph->n_output);
}

rondo_status rondo_onnx_import_graph(rondo_onnx_importer *importer, const RondoOnnx__Graph *graph,
                                     const rondo_onnx_import_value *inputs, size_t count,
                                     rondo_onnx_import_value *out_outputs) {
  const size_t outer_values = importer->values.count;
  RONDO_TRY(count_node(importer)); /* a loop whose body has no nodes must end, too */
  if (count != graph->n_input)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "its graph '%s' has %zu inputs, not %zu",
                      rondo_onnx_text(graph->name), graph->n_input, count);
  const size_t outer = rondo_onnx_scope_begin(&importer->names);
  const rondo_status status = import_scope(importer, graph, inputs, out_outputs);
  rondo_onnx_scope_end(&importer->names, outer);
  importer->values.count = outer_values;
  return status;
}
