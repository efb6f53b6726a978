/* SPDX-License-Identifier: MIT
 * The checks of a model's structure.
 */
#include "onnx/format/model_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "onnx/format/attribute.h"
#include "onnx/format/name_table.h"

#define FIRST_IR_VERSION 3
#define LAST_IR_VERSION 14

typedef struct checker {
  const rondo_onnx_data_source *source;
  const RondoOnnx__Model *model;
  rondo_allocator allocator;
  rondo_onnx_name_table names;
  bool in_function;
} checker;

/* Names ------------------------------------------------------------------------------------------------------------ */

const char *rondo_onnx_node_label(char out[RONDO_ONNX_NODE_LABEL], const RondoOnnx__Node *node, size_t index) {
  const char *const op = rondo_onnx_text(node->op_type), *const name = rondo_onnx_text(node->name);
  if (name[0] != '\0')
    (void)snprintf(out, RONDO_ONNX_NODE_LABEL, "node '%.100s' (%.40s)", name, op);
  else
    (void)snprintf(out, RONDO_ONNX_NODE_LABEL, "node %zu (%.40s)", index, op);
  return out;
}

static const char *plain_domain(const char *domain) {
  return strcmp(rondo_onnx_text(domain), "ai.onnx") == 0 ? "" : rondo_onnx_text(domain);
}

const char *rondo_onnx_node_domain(const RondoOnnx__Node *node) { return plain_domain(node->domain); }

/* What identifies a function: of the model, and of a node that calls it. */
typedef struct function_key {
  const char *parts[3]; /* name, domain, overload */
} function_key;

static function_key key_of(const RondoOnnx__Function *function) {
  return (function_key){
      {rondo_onnx_text(function->name), plain_domain(function->domain), rondo_onnx_text(function->overload)}};
}

static int compare_keys(const function_key *a, const function_key *b) {
  int order = 0;
  for (size_t i = 0; i < 3 && order == 0; i++) order = strcmp(a->parts[i], b->parts[i]);
  return order;
}

static int compare_functions(const void *a, const void *b) {
  const function_key first = key_of(*(RondoOnnx__Function *const *)a),
                     second = key_of(*(RondoOnnx__Function *const *)b);
  return compare_keys(&first, &second);
}

static int compare_with_function(const void *key, const void *item) {
  const function_key other = key_of(*(RondoOnnx__Function *const *)item);
  return compare_keys(key, &other);
}

void rondo_onnx_sort_functions(RondoOnnx__Model *model) {
  if (model->n_functions > 1)
    qsort(model->functions, model->n_functions, sizeof(RondoOnnx__Function *), compare_functions);
}

size_t rondo_onnx_find_function(const RondoOnnx__Model *model, const RondoOnnx__Node *node) {
  const function_key key = {
      {rondo_onnx_text(node->op_type), rondo_onnx_node_domain(node), rondo_onnx_text(node->overload)}};
  if (model->n_functions == 0) return 0;
  RondoOnnx__Function *const *found =
      bsearch(&key, model->functions, model->n_functions, sizeof(RondoOnnx__Function *), compare_with_function);
  return found != NULL ? (size_t)(found - model->functions) : model->n_functions;
}

/* What the value of a name in the table is. Initializers may be listed as inputs too. */
enum { AN_INITIALIZER, ANOTHER_VALUE };

static rondo_status define(checker *self, const char *name, const char *what, uint32_t kind) {
  bool is_new;
  if (rondo_onnx_text(name)[0] == '\0')
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "%s has no name", what);
  RONDO_TRY(rondo_onnx_name_add(&self->allocator, &self->names, name, kind, &is_new));
  if (is_new) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_DUPLICATE_NAME,
                    "%s '%s': the graph has another value of this name", what, name);
}

static rondo_status define_input(checker *self, const char *name) {
  uint32_t kind;
  const bool is_default =
      rondo_onnx_text(name)[0] != '\0' && rondo_onnx_name_find(&self->names, name, &kind) && kind == AN_INITIALIZER;
  return is_default ? RONDO_OK : define(self, name, "an input", ANOTHER_VALUE);
}

/* Nodes ------------------------------------------------------------------------------------------------------------ */

/* Where several nodes belong together: those of a graph or of a function. */
typedef struct body {
  RondoOnnx__Node *const *nodes;
  size_t count;
} body;

static bool is_computed_by(const body *of, size_t first, const char *name) {
  for (size_t i = first; i < of->count; i++)
    for (size_t k = 0; k < of->nodes[i]->n_output; k++)
      if (strcmp(of->nodes[i]->output[k], name) == 0) return true;
  return false;
}

static rondo_status fail_undefined(const body *of, size_t index, const char *name) {
  if (is_computed_by(of, index, name))
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_CYCLE,
                      "it uses '%s', which it or a later node computes: nodes must come in the order in which they can "
                      "be computed",
                      name);
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_UNKNOWN_NAME,
                    "it uses '%s', which is no input, no initializer and no result of a node", name);
}

/* An input without a name is one that is left out. */
static rondo_status check_inputs(const checker *self, const body *of, size_t index) {
  const RondoOnnx__Node *node = of->nodes[index];
  uint32_t kind;
  for (size_t i = 0; i < node->n_input; i++)
    if (node->input[i][0] != '\0' && !rondo_onnx_name_find(&self->names, node->input[i], &kind))
      return fail_undefined(of, index, node->input[i]);
  return RONDO_OK;
}

static rondo_status check_graph(checker *self, const RondoOnnx__Graph *graph);

static rondo_status check_graphs(checker *self, const RondoOnnx__Attribute *attribute) {
  if (attribute->g != NULL)
    RONDO_TRY(rondo_fail_context(check_graph(self, attribute->g), "graph '%s'", attribute->name));
  for (size_t i = 0; i < attribute->n_graphs; i++)
    RONDO_TRY(rondo_fail_context(check_graph(self, attribute->graphs[i]), "graph '%s'", attribute->name));
  return RONDO_OK;
}

static rondo_status check_attributes(checker *self, const RondoOnnx__Node *node) {
  if (node->n_attribute > RONDO_ONNX_MOST_ATTRIBUTES)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE, "it has %zu attributes, more than %d",
                      node->n_attribute, RONDO_ONNX_MOST_ATTRIBUTES);
  for (size_t i = 0; i < node->n_attribute; i++) {
    const RondoOnnx__Attribute *attribute = node->attribute[i];
    RONDO_TRY(rondo_onnx_check_attribute(self->source, attribute, self->in_function));
    if (rondo_onnx_find_attribute(node, attribute->name) != attribute)
      return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_DUPLICATE_NAME, "it has two attributes '%s'", attribute->name);
    RONDO_TRY(check_graphs(self, attribute));
  }
  return RONDO_OK;
}

static rondo_status check_node(checker *self, const body *of, size_t index) {
  const RondoOnnx__Node *node = of->nodes[index];
  if (rondo_onnx_text(node->op_type)[0] == '\0')
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "it has no operator");
  RONDO_TRY(check_inputs(self, of, index));
  RONDO_TRY(check_attributes(self, node));
  for (size_t i = 0; i < node->n_output; i++)
    if (node->output[i][0] != '\0') RONDO_TRY(define(self, node->output[i], "its output", ANOTHER_VALUE));
  return RONDO_OK;
}

static rondo_status check_body(checker *self, const body *of) {
  char label[RONDO_ONNX_NODE_LABEL];
  for (size_t i = 0; i < of->count; i++)
    RONDO_TRY(rondo_fail_context(check_node(self, of, i), "%s", rondo_onnx_node_label(label, of->nodes[i], i)));
  return RONDO_OK;
}

static rondo_status check_defined(const checker *self, const char *name) {
  uint32_t kind;
  if (rondo_onnx_text(name)[0] == '\0')
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "an output has no name");
  if (rondo_onnx_name_find(&self->names, name, &kind)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_UNKNOWN_NAME, "no node computes the output '%s'", name);
}

/* Graphs and functions --------------------------------------------------------------------------------------------- */

static rondo_status define_initializers(checker *self, const RondoOnnx__Graph *graph) {
  rondo_onnx_tensor tensor;
  for (size_t i = 0; i < graph->n_initializer; i++) {
    RONDO_TRY(rondo_onnx_read_tensor(self->source, graph->initializer[i], &tensor));
    RONDO_TRY(define(self, tensor.name, "an initializer", AN_INITIALIZER));
  }
  for (size_t i = 0; i < graph->n_sparse_initializer; i++) {
    RONDO_TRY(rondo_onnx_check_sparse(self->source, graph->sparse_initializer[i]));
    RONDO_TRY(define(self, graph->sparse_initializer[i]->values->name, "a sparse initializer", AN_INITIALIZER));
  }
  return RONDO_OK;
}

static rondo_status check_values(checker *self, const RondoOnnx__Graph *graph) {
  const body nodes = {.nodes = graph->node, .count = graph->n_node};
  RONDO_TRY(define_initializers(self, graph));
  for (size_t i = 0; i < graph->n_input; i++) RONDO_TRY(define_input(self, graph->input[i]->name));
  RONDO_TRY(check_body(self, &nodes));
  for (size_t i = 0; i < graph->n_output; i++) RONDO_TRY(check_defined(self, graph->output[i]->name));
  return RONDO_OK;
}

/* Recursion is limited by RONDO_ONNX_MOST_NESTED. */
static rondo_status check_graph(checker *self, const RondoOnnx__Graph *graph) {
  const size_t outer = rondo_onnx_scope_begin(&self->names);
  const rondo_status status = check_values(self, graph);
  rondo_onnx_scope_end(&self->names, outer);
  rondo_onnx_name_table_check(&self->names);
  return status;
}

static rondo_status check_function(checker *self, const RondoOnnx__Function *function) {
  const body nodes = {.nodes = function->node, .count = function->n_node};
  for (size_t i = 0; i < function->n_attribute_proto; i++)
    RONDO_TRY(rondo_onnx_check_attribute(self->source, function->attribute_proto[i], false));
  for (size_t i = 0; i < function->n_input; i++) RONDO_TRY(define(self, function->input[i], "an input", ANOTHER_VALUE));
  RONDO_TRY(check_body(self, &nodes));
  for (size_t i = 0; i < function->n_output; i++) RONDO_TRY(check_defined(self, function->output[i]));
  return RONDO_OK;
}

static rondo_status check_functions(checker *self) {
  rondo_status status = RONDO_OK;
  self->in_function = true;
  for (size_t i = 0; i < self->model->n_functions && status == RONDO_OK; i++) {
    const RondoOnnx__Function *function = self->model->functions[i];
    if (rondo_onnx_text(function->name)[0] == '\0')
      return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "a function of the model has no name");
    if (i > 0 && compare_functions(&self->model->functions[i - 1], &self->model->functions[i]) == 0)
      return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_DUPLICATE_NAME, "the model has two functions '%s'",
                        function->name);
    const size_t outer = rondo_onnx_scope_begin(&self->names);
    status = rondo_fail_context(check_function(self, function), "function '%s'", function->name);
    rondo_onnx_scope_end(&self->names, outer);
  }
  self->in_function = false;
  return status;
}

/* Calls ------------------------------------------------------------------------------------------------------------ */

typedef enum call_state { NOT_VISITED = 0, OPEN, VISITED } call_state;

typedef struct call_walk {
  const RondoOnnx__Model *model;
  unsigned char *states; /* a call_state for each function */
} call_walk;

static rondo_status visit_calls(const call_walk *walk, RondoOnnx__Node *const *nodes, size_t count, unsigned depth);

static rondo_status visit_function(const call_walk *walk, size_t index, unsigned depth) {
  const RondoOnnx__Function *function = walk->model->functions[index];
  if (walk->states[index] == VISITED) return RONDO_OK;
  if (walk->states[index] == OPEN)
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_CYCLE, "the function '%s' calls itself, perhaps through others",
                      rondo_onnx_text(function->name));
  if (depth == RONDO_ONNX_MOST_CALLS)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                      "the function '%s': functions call each other more than %d deep", rondo_onnx_text(function->name),
                      RONDO_ONNX_MOST_CALLS);
  walk->states[index] = OPEN;
  RONDO_TRY(visit_calls(walk, function->node, function->n_node, depth + 1));
  walk->states[index] = VISITED;
  return RONDO_OK;
}

static rondo_status visit_calls(const call_walk *walk, RondoOnnx__Node *const *nodes, size_t count, unsigned depth) {
  for (size_t i = 0; i < count; i++) {
    const size_t called = rondo_onnx_find_function(walk->model, nodes[i]);
    if (called < walk->model->n_functions) RONDO_TRY(visit_function(walk, called, depth));
    for (size_t k = 0; k < nodes[i]->n_attribute; k++) {
      const RondoOnnx__Attribute *attribute = nodes[i]->attribute[k];
      if (attribute->g != NULL) RONDO_TRY(visit_calls(walk, attribute->g->node, attribute->g->n_node, depth));
      for (size_t g = 0; g < attribute->n_graphs; g++)
        RONDO_TRY(visit_calls(walk, attribute->graphs[g]->node, attribute->graphs[g]->n_node, depth));
    }
  }
  return RONDO_OK;
}

static rondo_status check_calls(const checker *self) {
  call_walk walk = {.model = self->model};
  rondo_status status = RONDO_OK;
  RONDO_TRY(rondo_allocate_items(&self->allocator, self->model->n_functions, sizeof *walk.states, &walk.states));
  for (size_t i = 0; i < self->model->n_functions && status == RONDO_OK; i++) status = visit_function(&walk, i, 0);
  rondo_release(&self->allocator, walk.states, self->model->n_functions, sizeof *walk.states);
  return status;
}

/* Models ----------------------------------------------------------------------------------------------------------- */

static rondo_status check_versions(const RondoOnnx__Model *model) {
  if (!model->has_ir_version || model->ir_version < FIRST_IR_VERSION || model->ir_version > LAST_IR_VERSION)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_OUT_OF_RANGE,
                      "the IR version is %lld; Rondo reads %d to %d: convert the model with onnx.version_converter",
                      (long long)model->ir_version, FIRST_IR_VERSION, LAST_IR_VERSION);
  if (model->graph == NULL)
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "there is no graph: this is not an ONNX model");
  if (model->n_opset_import == 0)
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "the model does not say which operator set it uses");
  return RONDO_OK;
}

rondo_status rondo_onnx_check_model(const rondo_allocator *allocator, const rondo_onnx_data_source *source,
                                    const RondoOnnx__Model *model) {
  checker self = {.source = source, .model = model, .allocator = *allocator};
  RONDO_TRY(check_versions(model));
  const char *const name = rondo_onnx_text(model->graph->name);
  rondo_status status =
      rondo_fail_context(check_graph(&self, model->graph), name[0] != '\0' ? "graph '%s'" : "the graph%s", name);
  if (status == RONDO_OK) status = check_functions(&self);
  if (status == RONDO_OK) status = check_calls(&self);
  rondo_onnx_name_table_free(&self.allocator, &self.names);
  return status;
}
