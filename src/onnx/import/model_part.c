/* SPDX-License-Identifier: MIT
 * Cuts, traces and handed values. Constants that nodes compute from shapes of results are copied into the trace when
 * the part ends, because the nodes themselves are left out later.
 */
#include "onnx/import/model_part.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "onnx/format/widened_elements.h"
#include "onnx/import/build_result.h"
#include "onnx/import/constant.h"
#include "onnx/import/folding.h"
#include "onnx/import/graph_import.h"
#include "onnx/import/model_interface.h"

#define NAME_BYTES 48
#define MOST_READ_TOGETHER 8 /* elements of the other inputs of a node that are read with the one that it needs */

/* A result of a node, or an output of a graph. */
typedef struct traced_value {
  rondo_onnx_value_kind kind;
  rondo_onnx_handed *handed;   /* NULL: it is a constant alone */
  rondo_onnx_constant *source; /* a constant of the part's own import, until it is copied; NULL: none */
  rondo_onnx_constant *copy;   /* with elements in memory of the part */
  struct traced_value *items;  /* of a sequence */
  size_t item_count;
} traced_value;

typedef struct traced_node {
  bool is_done;
  traced_value *outputs;           /* of a node that is done */
  size_t output_count;             /* 0: they are the trace's of an earlier part */
  rondo_onnx_traced_graph *graphs; /* that it imports, in their order */
} traced_node;

struct rondo_onnx_traced_graph {
  traced_node *nodes;
  size_t node_count;
  traced_value *outputs;
  size_t output_count;
  rondo_onnx_traced_graph *next; /* of the same node */
};

/* Parts ------------------------------------------------------------------------------------------------------------ */

rondo_status rondo_onnx_part_begin(rondo_onnx_importer *importer) {
  rondo_onnx_build *build = importer->build;
  const rondo_onnx_sharing *sharing = importer->sharing;
  rondo_onnx_model_part *part;
  unsigned char *known;
  if (sharing == NULL || !sharing->divides) return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(&build->allocator, 1, sizeof *part, &part));
  build->part = importer->part = part;
  part->scratch.allocator = &build->allocator;
  part->before = sharing->before;
  if (part->before == NULL)
    return rondo_scratch_take(&part->scratch, sharing->listed->count, sizeof *part->model_inputs, &part->model_inputs);
  part->number = part->before->number + 1;
  part->model_inputs = part->before->model_inputs;
  RONDO_TRY(rondo_scratch_take(&build->scratch, part->before->cut_bytes, 1, &known));
  memcpy(known, sharing->known, part->before->cut_bytes);
  part->known = known;
  return RONDO_OK;
}

void rondo_onnx_part_destroy(const rondo_allocator *allocator, rondo_onnx_model_part *part) {
  if (part == NULL) return;
  rondo_array_free(allocator, &part->handed);
  rondo_array_free(allocator, &part->cuts);
  rondo_array_free(allocator, &part->inputs);
  rondo_array_free(allocator, &part->outputs);
  rondo_scratch_free(&part->scratch);
  rondo_release(allocator, part, 1, sizeof *part);
}

/* What the host read of the value, or of its count, after the part; NULL: nothing. */
static const unsigned char *find_in_cuts(const rondo_onnx_model_part *part, const unsigned char *values,
                                         const rondo_onnx_handed *handed, bool is_count) {
  for (size_t i = 0; i < part->cuts.count; i++) {
    const rondo_onnx_cut *cut = &part->cuts.items[i];
    if (cut->handed == handed && cut->is_count == is_count) return values + cut->offset;
  }
  return NULL;
}

/* The same after any part before this one. */
static const unsigned char *find_known(const rondo_onnx_model_part *part, const rondo_onnx_handed *handed,
                                       bool is_count) {
  const unsigned char *found = NULL;
  for (; part->before != NULL && found == NULL; part = part->before)
    found = find_in_cuts(part->before, part->known, handed, is_count);
  return found;
}

/* A count is not trusted: the run may have failed. */
static size_t read_count(const rondo_onnx_handed *handed, const unsigned char *known) {
  const size_t most = handed->shape.dims[handed->counted_axis];
  int64_t count;
  assert(handed->is_counted && known != NULL);
  memcpy(&count, known, sizeof count);
  return count <= 0 ? 0 : (uint64_t)count < most ? (size_t)count : most;
}

size_t rondo_onnx_cut_count(const rondo_onnx_model_part *part, const unsigned char *values,
                            const rondo_onnx_handed *handed) {
  return read_count(handed, find_in_cuts(part, values, handed, true));
}

static size_t known_count(const rondo_onnx_model_part *part, const rondo_onnx_handed *handed) {
  return read_count(handed, find_known(part, handed, true));
}

/* Constants -------------------------------------------------------------------------------------------------------- */

/* A constant of what the host read, which has elements of the type of programs. */
static rondo_status make_known(rondo_onnx_importer *importer, const rondo_onnx_shape *shape, const unsigned char *known,
                               rondo_onnx_constant **out) {
  void *elements;
  RONDO_TRY(rondo_onnx_constant_make(importer, shape, out, &elements));
  if (rondo_onnx_widened_type(shape->type) != 0)
    rondo_onnx_narrow(shape->type, known, (*out)->count, elements);
  else if ((*out)->bytes > 0)
    memcpy(elements, known, (*out)->bytes);
  return RONDO_OK;
}

static rondo_status copy_constant(rondo_onnx_importer *importer, traced_value *value) {
  rondo_onnx_constant *source = value->source, *copy;
  void *elements;
  value->source = NULL;
  if (source->strings != NULL) return RONDO_OK; /* the node is not done */
  RONDO_TRY(rondo_onnx_folding_compute(importer, source));
  RONDO_TRY(rondo_scratch_take(&importer->part->scratch, 1, sizeof *copy, &copy));
  RONDO_TRY(rondo_scratch_take(&importer->part->scratch, source->bytes, 1, &elements));
  if (source->bytes > 0) memcpy(elements, source->elements, source->bytes);
  *copy = (rondo_onnx_constant){
      .shape = source->shape, .bytes = source->bytes, .given = source->given, .elements = elements};
  value->copy = copy;
  return RONDO_OK;
}

static rondo_status take_copy(rondo_onnx_importer *importer, const rondo_onnx_constant *copy,
                              rondo_onnx_constant **out) {
  void *elements;
  RONDO_TRY(rondo_onnx_constant_make(importer, &copy->shape, out, &elements));
  if (copy->bytes > 0) memcpy(elements, copy->elements, copy->bytes);
  (*out)->given = copy->given;
  return RONDO_OK;
}

/* Handing on ------------------------------------------------------------------------------------------------------- */

static rondo_status name_handed(rondo_onnx_model_part *part, const char *what, const char **out) {
  char name[NAME_BYTES];
  (void)snprintf(name, sizeof name, "part %zu: %s %zu", part->number, what, part->handed.count);
  return rondo_scratch_text(&part->scratch, name, out);
}

static bool is_cut_at(const rondo_onnx_model_part *part, const rondo_onnx_handed *handed, bool is_count) {
  for (size_t i = 0; i < part->cuts.count; i++)
    if (part->cuts.items[i].handed == handed && part->cuts.items[i].is_count == is_count) return true;
  return false;
}

static rondo_status hand_on(rondo_onnx_importer *importer, rondo_onnx_handed *handed);

static rondo_status add_cut(rondo_onnx_importer *importer, rondo_onnx_handed *handed, bool is_count) {
  rondo_onnx_model_part *part = importer->part;
  rondo_onnx_cut cut = {.handed = handed, .is_count = is_count, .bytes = sizeof(int64_t)};
  rondo_type type;
  if (is_cut_at(part, handed, is_count)) return RONDO_OK;
  if (!is_count) {
    rondo_onnx_shape shape = handed->shape;
    RONDO_TRY(rondo_onnx_held_type(importer, shape.type, &type));
    if (handed->is_counted) shape.dims[handed->counted_axis] = known_count(part, handed);
    cut.bytes = rondo_onnx_shape_count(&shape) * rondo_type_bytes(type);
  }
  if (!rondo_checked_align(part->cut_bytes, sizeof(int64_t), &cut.offset) ||
      !rondo_checked_add(cut.offset, cut.bytes, &part->cut_bytes))
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE, "a value that the host must read is too large");
  RONDO_TRY(rondo_array_push(&importer->build->allocator, &part->cuts, &cut));
  return hand_on(importer, handed);
}

/* Makes a result of this part an output of its program. Later parts need to know its size. */
static rondo_status hand_on(rondo_onnx_importer *importer, rondo_onnx_handed *handed) {
  rondo_onnx_model_part *part = importer->part;
  if (handed->part != part || handed->name != NULL) return RONDO_OK;
  RONDO_TRY(name_handed(part, "value", &handed->name));
  if (handed->is_counted) RONDO_TRY(name_handed(part, "count", &handed->count_name));
  RONDO_TRY(rondo_array_push(&importer->build->allocator, &part->handed, &handed));
  return handed->is_counted ? add_cut(importer, handed, true) : RONDO_OK;
}

static rondo_status hand_on_value(rondo_onnx_importer *importer, const rondo_onnx_import_value *value) {
  if (value->kind == RONDO_ONNX_SEQUENCE)
    for (size_t i = 0; i < value->item_count; i++) RONDO_TRY(hand_on_value(importer, &value->list->items[i]));
  return value->handed != NULL ? hand_on(importer, value->handed) : RONDO_OK;
}

static rondo_status hand_on_traced(rondo_onnx_importer *importer, const traced_value *values, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (values[i].handed != NULL) RONDO_TRY(hand_on(importer, values[i].handed));
    RONDO_TRY(hand_on_traced(importer, values[i].items, values[i].item_count));
  }
  return RONDO_OK;
}

static rondo_status hand_on_name(rondo_onnx_importer *importer, const char *name) {
  uint32_t index;
  if (name[0] == '\0' || !rondo_onnx_name_find(&importer->names, name, &index)) return RONDO_OK;
  return hand_on_value(importer, &importer->values.items[index]);
}

static rondo_status hand_on_inputs(rondo_onnx_importer *importer, const RondoOnnx__Node *node);

/* What a graph reads of those around it. Names of its own may be others there, which hands on too much. */
static rondo_status hand_on_graph(rondo_onnx_importer *importer, const RondoOnnx__Graph *graph) {
  for (size_t i = 0; i < graph->n_node; i++) RONDO_TRY(hand_on_inputs(importer, graph->node[i]));
  for (size_t i = 0; i < graph->n_output; i++) RONDO_TRY(hand_on_name(importer, graph->output[i]->name));
  return RONDO_OK;
}

static rondo_status hand_on_inputs(rondo_onnx_importer *importer, const RondoOnnx__Node *node) {
  for (size_t i = 0; i < node->n_input; i++) RONDO_TRY(hand_on_name(importer, node->input[i]));
  for (size_t i = 0; i < node->n_attribute; i++) {
    const RondoOnnx__Attribute *attribute = node->attribute[i];
    if (attribute->g != NULL) RONDO_TRY(hand_on_graph(importer, attribute->g));
    for (size_t k = 0; k < attribute->n_graphs; k++) RONDO_TRY(hand_on_graph(importer, attribute->graphs[k]));
  }
  return RONDO_OK;
}

/* Cuts ------------------------------------------------------------------------------------------------------------- */

void rondo_onnx_need_value(rondo_onnx_importer *importer, const rondo_onnx_import_value *value) {
  importer->need = (rondo_onnx_need){
      .is_set = rondo_onnx_has_result(value), .is_count = value->count.id != 0, .handed = value->handed};
}

/* A node that needs one input often needs others, such as the end of a slice besides its begin. */
static rondo_status cut_at_small_inputs(rondo_onnx_node *node) {
  for (size_t i = 0; i < node->message->n_input; i++) {
    const rondo_onnx_import_value *value = &node->inputs[i];
    if (value->kind != RONDO_ONNX_TENSOR_VALUE || value->handed == NULL || value->constant != NULL ||
        value->count.id != 0 || rondo_onnx_shape_count(&value->shape) > MOST_READ_TOGETHER)
      continue;
    RONDO_TRY(add_cut(node->importer, value->handed, false));
  }
  return RONDO_OK;
}

rondo_status rondo_onnx_cut_at_node(rondo_onnx_node *node, bool *out_is_cut) {
  const rondo_onnx_need need = node->importer->need;
  *out_is_cut = need.handed != NULL;
  if (!*out_is_cut) return RONDO_OK;
  RONDO_TRY(add_cut(node->importer, need.handed, need.is_count));
  return need.is_count ? RONDO_OK : cut_at_small_inputs(node);
}

/* Inputs ----------------------------------------------------------------------------------------------------------- */

rondo_status rondo_onnx_part_add_input(rondo_onnx_importer *importer, size_t index, rondo_onnx_import_value *value) {
  rondo_onnx_model_part *part = importer->part;
  if (part == NULL) return RONDO_OK;
  if (importer->input_values == NULL)
    RONDO_TRY(rondo_scratch_take(&importer->scratch, importer->listed.count, sizeof *importer->input_values,
                                 &importer->input_values));
  if (value->kind == RONDO_ONNX_TENSOR_VALUE && value->input != NULL) {
    rondo_onnx_handed *handed = &part->model_inputs[index];
    const unsigned char *known = find_known(part, handed, false);
    if (part->before == NULL) *handed = (rondo_onnx_handed){.input = index, .shape = value->shape};
    value->handed = handed;
    if (known != NULL) RONDO_TRY(make_known(importer, &value->shape, known, &value->constant));
  }
  importer->input_values[index] = *value;
  return RONDO_OK;
}

/* The input of the program that is a value of an earlier part. */
static rondo_status find_input(rondo_onnx_importer *importer, const rondo_onnx_handed *handed,
                               const rondo_onnx_shape *shape, rondo_onnx_import_input **out) {
  for (size_t i = 0; i < importer->handed_inputs.count; i++) {
    *out = importer->handed_inputs.items[i];
    if ((*out)->handed == handed) return RONDO_OK;
  }
  RONDO_TRY(rondo_scratch_take(&importer->scratch, 1, sizeof **out, out));
  **out = (rondo_onnx_import_input){.name = handed->name, .shape = *shape, .given = -1, .handed = handed};
  return rondo_array_push(&importer->allocator, &importer->handed_inputs, out);
}

/* A result of an earlier part. One that is not handed on has no readers here. */
static rondo_status take_handed(rondo_onnx_importer *importer, rondo_onnx_handed *handed,
                                rondo_onnx_import_value *out) {
  rondo_onnx_shape shape = handed->shape;
  void *elements;
  if (handed->part == NULL) {
    *out = importer->input_values[handed->input];
    return RONDO_OK;
  }
  *out = (rondo_onnx_import_value){.kind = RONDO_ONNX_UNKNOWN};
  if (handed->name == NULL) return RONDO_OK;
  if (handed->is_counted) shape.dims[handed->counted_axis] = known_count(importer->part, handed);
  *out = (rondo_onnx_import_value){.kind = RONDO_ONNX_TENSOR_VALUE, .shape = shape};
  if (rondo_onnx_shape_count(&shape) == 0) return rondo_onnx_constant_make(importer, &shape, &out->constant, &elements);
  out->handed = handed;
  const unsigned char *known = find_known(importer->part, handed, false);
  if (known != NULL) RONDO_TRY(make_known(importer, &shape, known, &out->constant));
  return find_input(importer, handed, &shape, &out->input);
}

static rondo_status take_items(rondo_onnx_importer *importer, const traced_value *traced, rondo_onnx_import_value *out);

static rondo_status take_value(rondo_onnx_importer *importer, const traced_value *traced,
                               rondo_onnx_import_value *out) {
  *out = (rondo_onnx_import_value){.kind = traced->kind};
  if (traced->handed != NULL) RONDO_TRY(take_handed(importer, traced->handed, out));
  if (out->kind == RONDO_ONNX_UNKNOWN) return RONDO_OK;
  if (traced->copy != NULL && out->constant == NULL) {
    RONDO_TRY(take_copy(importer, traced->copy, &out->constant));
    out->shape = traced->copy->shape;
  }
  assert(traced->kind != RONDO_ONNX_TENSOR_VALUE || out->constant != NULL || rondo_onnx_has_result(out));
  return traced->kind == RONDO_ONNX_SEQUENCE ? take_items(importer, traced, out) : RONDO_OK;
}

static rondo_status take_items(rondo_onnx_importer *importer, const traced_value *traced,
                               rondo_onnx_import_value *out) {
  out->item_count = traced->item_count;
  RONDO_TRY(rondo_onnx_count_values(importer, traced->item_count));
  RONDO_TRY(rondo_scratch_take(&importer->scratch, 1, sizeof *out->list, &out->list));
  out->list->count = out->list->capacity = traced->item_count;
  RONDO_TRY(rondo_scratch_take(&importer->scratch, traced->item_count, sizeof *out->list->items, &out->list->items));
  for (size_t i = 0; i < traced->item_count; i++)
    RONDO_TRY(take_value(importer, &traced->items[i], &out->list->items[i]));
  return RONDO_OK;
}

/* Traces ----------------------------------------------------------------------------------------------------------- */

rondo_status rondo_onnx_trace_begin(rondo_onnx_importer *importer, size_t nodes, rondo_onnx_trace *outer) {
  rondo_onnx_model_part *part = importer->part;
  rondo_onnx_trace *at = &importer->trace;
  rondo_onnx_traced_graph *graph;
  if (part == NULL) return RONDO_OK;
  RONDO_TRY(rondo_scratch_take(&part->scratch, 1, sizeof *graph, &graph));
  RONDO_TRY(rondo_scratch_take(&part->scratch, nodes, sizeof *graph->nodes, &graph->nodes));
  graph->node_count = nodes;
  const rondo_onnx_traced_graph *earlier = part->before != NULL ? part->before->trace : NULL;
  if (at->graph == NULL) {
    part->trace = graph;
  } else {
    earlier = at->next_child;
    if (earlier != NULL) at->next_child = earlier->next;
    if (at->last_child != NULL)
      at->last_child->next = graph;
    else
      at->graph->nodes[at->node].graphs = graph;
    at->last_child = graph;
  }
  assert(earlier == NULL || earlier->node_count == nodes);
  *outer = *at;
  *at = (rondo_onnx_trace){.graph = graph, .earlier = earlier};
  return RONDO_OK;
}

void rondo_onnx_trace_node(rondo_onnx_importer *importer, size_t index) {
  rondo_onnx_trace *at = &importer->trace;
  if (importer->part == NULL) return;
  at->node = index;
  at->last_child = NULL;
  at->next_child = at->earlier != NULL ? at->earlier->nodes[index].graphs : NULL;
}

void rondo_onnx_trace_end(rondo_onnx_importer *importer, const rondo_onnx_trace *outer) {
  if (importer->part != NULL) importer->trace = *outer;
}

static rondo_status trace_value(rondo_onnx_importer *importer, rondo_onnx_import_value *value, traced_value *out) {
  rondo_onnx_import_value *copy;
  *out = (traced_value){.kind = value->kind, .source = value->constant};
  if (value->kind == RONDO_ONNX_SEQUENCE) {
    RONDO_TRY(rondo_scratch_take(&importer->part->scratch, value->item_count, sizeof *out->items, &out->items));
    out->item_count = value->item_count;
    RONDO_TRY(rondo_onnx_count_values(importer, value->item_count));
    for (size_t i = 0; i < value->item_count; i++)
      RONDO_TRY(trace_value(importer, &value->list->items[i], &out->items[i]));
  }
  if (value->handed == NULL && rondo_onnx_has_result(value)) {
    RONDO_TRY(rondo_scratch_take(&importer->scratch, 1, sizeof *copy, &copy));
    RONDO_TRY(rondo_scratch_take(&importer->part->scratch, 1, sizeof *value->handed, &value->handed));
    *copy = *value;
    *value->handed = (rondo_onnx_handed){.part = importer->part,
                                         .shape = value->shape,
                                         .value = copy,
                                         .is_counted = value->count.id != 0,
                                         .counted_axis = value->counted_axis};
  }
  out->handed = value->handed;
  return RONDO_OK;
}

static rondo_status trace_values(rondo_onnx_importer *importer, rondo_onnx_import_value *values, size_t count,
                                 traced_value **out) {
  RONDO_TRY(rondo_scratch_take(&importer->part->scratch, count, sizeof **out, out));
  for (size_t i = 0; i < count; i++) RONDO_TRY(trace_value(importer, &values[i], &(*out)[i]));
  return RONDO_OK;
}

rondo_status rondo_onnx_trace_outputs(rondo_onnx_importer *importer, rondo_onnx_import_value *outputs, size_t count) {
  rondo_onnx_traced_graph *graph = importer->trace.last_child;
  if (importer->part == NULL) return RONDO_OK;
  RONDO_TRY(trace_values(importer, outputs, count, &graph->outputs));
  graph->output_count = count;
  return RONDO_OK;
}

static const traced_node *find_earlier(const rondo_onnx_importer *importer) {
  const rondo_onnx_trace *at = &importer->trace;
  return importer->part != NULL && at->earlier != NULL ? &at->earlier->nodes[at->node] : NULL;
}

bool rondo_onnx_is_traced(const rondo_onnx_importer *importer) {
  const traced_node *earlier = find_earlier(importer);
  return earlier != NULL && earlier->is_done;
}

rondo_status rondo_onnx_take_traced(rondo_onnx_node *node) {
  rondo_onnx_importer *importer = node->importer;
  traced_node *traced = &importer->trace.graph->nodes[importer->trace.node];
  *traced = (traced_node){.is_done = true, .outputs = find_earlier(importer)->outputs};
  for (size_t i = 0; i < node->message->n_output; i++)
    RONDO_TRY(take_value(importer, &traced->outputs[i], &node->outputs[i]));
  return RONDO_OK;
}

static bool has_texts(const rondo_onnx_import_value *values, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (values[i].kind == RONDO_ONNX_SEQUENCE && has_texts(values[i].list->items, values[i].item_count)) return true;
    if (values[i].constant != NULL && values[i].constant->strings != NULL) return true;
  }
  return false;
}

/* Texts are not traced: a node that returns some is imported again. */
static bool is_done(const rondo_onnx_node *node) {
  if (node->is_unknown || has_texts(node->outputs, node->message->n_output)) return false;
  for (size_t i = 0; i < node->message->n_output; i++)
    if (rondo_onnx_wants_output(node, i) && node->outputs[i].kind == RONDO_ONNX_UNKNOWN) return false;
  return true;
}

static bool has_any_result(const rondo_onnx_import_value *values, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (values[i].kind == RONDO_ONNX_SEQUENCE && has_any_result(values[i].list->items, values[i].item_count))
      return true;
    if (rondo_onnx_has_result(&values[i])) return true;
  }
  return false;
}

/* A node whose inputs are constants alone is imported again in later parts, where they are the same. */
rondo_status rondo_onnx_note_traced(rondo_onnx_node *node) {
  rondo_onnx_importer *importer = node->importer;
  if (importer->part == NULL) return RONDO_OK;
  traced_node *traced = &importer->trace.graph->nodes[importer->trace.node];
  if (!is_done(node)) {
    for (const rondo_onnx_traced_graph *graph = traced->graphs; graph != NULL; graph = graph->next)
      RONDO_TRY(hand_on_traced(importer, graph->outputs, graph->output_count));
    return hand_on_inputs(importer, node->message);
  }
  traced->is_done = traced->graphs != NULL || has_any_result(node->inputs, node->message->n_input) ||
                    has_any_result(node->outputs, node->message->n_output);
  if (!traced->is_done) return RONDO_OK;
  RONDO_TRY(trace_values(importer, node->outputs, node->message->n_output, &traced->outputs));
  traced->output_count = node->message->n_output;
  return RONDO_OK;
}

/* The end of a part ------------------------------------------------------------------------------------------------ */

static rondo_status copy_constants_of(rondo_onnx_importer *importer, traced_value *values, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (values[i].source != NULL) RONDO_TRY(copy_constant(importer, &values[i]));
    RONDO_TRY(copy_constants_of(importer, values[i].items, values[i].item_count));
  }
  return RONDO_OK;
}

/* What the trace has of this import alone. */
static rondo_status copy_constants(rondo_onnx_importer *importer, rondo_onnx_traced_graph *graph) {
  for (; graph != NULL; graph = graph->next) {
    RONDO_TRY(copy_constants_of(importer, graph->outputs, graph->output_count));
    for (size_t i = 0; i < graph->node_count; i++) {
      traced_node *node = &graph->nodes[i];
      RONDO_TRY(copy_constants_of(importer, node->outputs, node->output_count));
      RONDO_TRY(copy_constants(importer, node->graphs));
    }
  }
  return RONDO_OK;
}

static rondo_status add_program_outputs(rondo_onnx_importer *importer) {
  rondo_value result;
  for (size_t i = 0; i < importer->part->handed.count; i++) {
    const rondo_onnx_handed *handed = importer->part->handed.items[i];
    RONDO_TRY(rondo_onnx_output_value(importer, handed->value, &result));
    RONDO_TRY(rondo_program_output(importer->program, handed->name, result));
    if (handed->is_counted)
      RONDO_TRY(rondo_program_output(importer->program, handed->count_name, handed->value->count));
  }
  return RONDO_OK;
}

/* A call returns outputs of the sizes that are used. */
static rondo_status cut_at_count(rondo_onnx_importer *importer, const rondo_onnx_import_value *value) {
  if (value->kind == RONDO_ONNX_SEQUENCE)
    for (size_t i = 0; i < value->item_count; i++) RONDO_TRY(cut_at_count(importer, &value->list->items[i]));
  return value->count.id != 0 ? add_cut(importer, value->handed, true) : RONDO_OK;
}

rondo_status rondo_onnx_part_end(rondo_onnx_importer *importer) {
  const RondoOnnx__Graph *graph = importer->model->message->graph;
  if (importer->part == NULL) return RONDO_OK;
  for (size_t i = 0; i < graph->n_output; i++)
    RONDO_TRY(cut_at_count(importer, rondo_onnx_look_up(importer, graph->output[i]->name)));
  if (!rondo_onnx_is_cut(importer->part)) {
    importer->part->handed.count = 0; /* of nodes that are not done: no part comes after this one */
    return RONDO_OK;
  }
  for (size_t i = 0; i < graph->n_output; i++) RONDO_TRY(hand_on_name(importer, graph->output[i]->name));
  RONDO_TRY(copy_constants(importer, importer->part->trace));
  return add_program_outputs(importer);
}

rondo_status rondo_onnx_part_add_output(rondo_onnx_importer *importer, const rondo_onnx_import_value *value) {
  const rondo_onnx_handed *handed = NULL;
  if (importer->part == NULL) return RONDO_OK;
  if (value != NULL && rondo_onnx_is_handed(importer, value)) handed = value->handed;
  return rondo_array_push(&importer->build->allocator, &importer->part->outputs, &handed);
}

rondo_status rondo_onnx_part_finish(rondo_onnx_importer *importer) {
  rondo_onnx_model_part *part = importer->part;
  rondo_type type;
  if (part == NULL) return RONDO_OK;
  for (size_t i = 0; i < importer->handed_inputs.count; i++) {
    const rondo_onnx_import_input *input = importer->handed_inputs.items[i];
    rondo_onnx_part_input entry = {.handed = input->handed};
    if (input->result.id == 0) continue;
    RONDO_TRY(rondo_onnx_held_type(importer, input->shape.type, &type));
    entry.bytes = rondo_onnx_shape_count(&input->shape) * rondo_type_bytes(type);
    RONDO_TRY(rondo_array_push(&importer->build->allocator, &part->inputs, &entry));
  }
  if (rondo_onnx_is_cut(part)) return RONDO_OK;
  rondo_scratch_free(&part->scratch);
  part->trace = NULL;
  part->model_inputs = NULL;
  return RONDO_OK;
}
