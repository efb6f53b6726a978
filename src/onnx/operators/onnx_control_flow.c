/* SPDX-License-Identifier: MIT
 * If, Loop and Scan. Programs have no control flow: the graph of the branch that is taken is imported, and the body of
 * a loop as often as it runs. So conditions and trip counts must be known at import; those of Scan always are.
 */
#include <string.h>

#include "base/error.h"
#include "onnx/import/build_result.h"
#include "onnx/import/constant.h"
#include "onnx/import/graph_import.h"
#include "onnx/import/node_attributes.h"
#include "onnx/operators/joined_tensors.h"
#include "onnx/operators/operator_families.h"

static rondo_status read_condition(rondo_onnx_node *node, const rondo_onnx_import_value *value, const char *name,
                                   bool *out) {
  const rondo_onnx_constant *constant;
  RONDO_TRY(rondo_onnx_known_value(node, value, name, &constant));
  if (constant->shape.type != RONDO_ONNX_BOOL || constant->count != 1)
    return rondo_onnx_refuse(node, "'%s' is not one bool", name);
  *out = *(const unsigned char *)constant->elements != 0;
  return RONDO_OK;
}

static rondo_status require_graph(rondo_onnx_node *node, const char *name, const RondoOnnx__Graph **out) {
  RONDO_TRY(rondo_onnx_attribute_graph(node, name, out));
  return *out != NULL ? RONDO_OK : rondo_onnx_refuse_attribute(node, name, "it is missing");
}

static void set_outputs(rondo_onnx_node *node, size_t first, const rondo_onnx_import_value *values, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (values[i].kind == RONDO_ONNX_UNKNOWN) node->is_unknown = true;
    rondo_onnx_set_value(node, first + i, &values[i]);
  }
}

/* If --------------------------------------------------------------------------------------------------------------- */

static rondo_status add_if(rondo_onnx_node *node, const void *data) {
  const RondoOnnx__Graph *branches[2];
  rondo_onnx_import_value *outputs;
  bool condition;
  (void)data;
  RONDO_TRY(require_graph(node, "else_branch", &branches[0]));
  RONDO_TRY(require_graph(node, "then_branch", &branches[1]));
  RONDO_TRY(read_condition(node, &node->inputs[0], node->message->input[0], &condition));
  const RondoOnnx__Graph *taken = branches[condition];
  RONDO_TRY(rondo_scratch_take(&node->importer->scratch, taken->n_output, sizeof *outputs, &outputs));
  RONDO_TRY(rondo_onnx_import_graph(node->importer, taken, NULL, 0, outputs));
  set_outputs(node, 0, outputs, taken->n_output);
  return RONDO_OK;
}

/* Values of iterations --------------------------------------------------------------------------------------------- */

/* The values of one scan output in each iteration, joined along a new axis. */
typedef struct scan_output {
  RONDO_ARRAY(rondo_onnx_import_value) items;
} scan_output;

static void reverse(rondo_onnx_import_value *items, size_t count) {
  for (size_t i = 0; i < count / 2; i++) {
    const rondo_onnx_import_value other = items[i];
    items[i] = items[count - 1 - i];
    items[count - 1 - i] = other;
  }
}

/* Without iterations, the shape is that of the body's output, if the model says it. */
static rondo_status set_no_items(rondo_onnx_node *node, size_t output, const RondoOnnx__Value *described,
                                 int64_t given_axis) {
  rondo_onnx_shape shape = {.rank = 0};
  size_t axis;
  const RondoOnnx__Type *type = described->type;
  if (type == NULL || type->value_case != RONDO_ONNX__TYPE__VALUE_TENSOR_TYPE || type->tensor_type->shape == NULL ||
      type->tensor_type->shape->n_dim >= RONDO_ONNX_MOST_DIMENSIONS)
    return rondo_onnx_refuse(
        node,
        "there are no iterations, and the shape of output %zu is not known: export the model with the shapes "
        "of the body's outputs, or leave the output out",
        output);
  shape.type = (rondo_onnx_type)type->tensor_type->elem_type;
  RONDO_TRY(rondo_onnx_axis(given_axis, type->tensor_type->shape->n_dim + 1, &axis));
  for (size_t i = 0; i < type->tensor_type->shape->n_dim; i++) {
    const RondoOnnx__Dimension *dimension = type->tensor_type->shape->dim[i];
    if (shape.rank == axis) shape.rank++; /* the iterations, of size 0 */
    shape.dims[shape.rank++] = dimension->dim_value > 0 ? (size_t)dimension->dim_value : 0;
  }
  if (shape.rank == axis) shape.rank++;
  return rondo_onnx_set_empty(node, output, &shape);
}

/* Loops ------------------------------------------------------------------------------------------------------------ */

typedef struct loop {
  rondo_onnx_node *node;
  const RondoOnnx__Graph *body;
  size_t extra_inputs, extra_outputs; /* of the body, before those that are carried: Loop's iteration and condition */
  size_t carried, scanned;            /* values from iteration to iteration; values of each iteration that are joined */
  rondo_onnx_import_value *inputs, *outputs; /* of the body */
  scan_output *scan_outputs;
  bool has_failed; /* a node of the body cannot be imported, which is reported once, or lacks a value */
} loop;

static rondo_status loop_begin(loop *of) {
  rondo_scratch *scratch = &of->node->importer->scratch;
  RONDO_TRY(rondo_scratch_take(scratch, of->body->n_input, sizeof *of->inputs, &of->inputs));
  RONDO_TRY(rondo_scratch_take(scratch, of->body->n_output, sizeof *of->outputs, &of->outputs));
  return rondo_scratch_take(scratch, of->scanned, sizeof *of->scan_outputs, &of->scan_outputs);
}

static void loop_end(loop *of) {
  for (size_t i = 0; of->scan_outputs != NULL && i < of->scanned; i++)
    rondo_array_free(&of->node->importer->allocator, &of->scan_outputs[i].items);
}

/* One iteration: what it carries becomes the input of the next. */
static rondo_status iterate(loop *of) {
  rondo_onnx_importer *importer = of->node->importer;
  const size_t reported = importer->build->info.unsupported;
  RONDO_TRY(rondo_onnx_import_graph(importer, of->body, of->inputs, of->body->n_input, of->outputs));
  of->has_failed = importer->build->info.unsupported > reported;
  for (size_t i = 0; i < of->body->n_output; i++)
    if (of->outputs[i].kind == RONDO_ONNX_UNKNOWN) of->has_failed = true;
  of->node->is_unknown = of->has_failed;
  if (of->has_failed) return RONDO_OK;
  if (of->carried > 0)
    memcpy(of->inputs + of->extra_inputs, of->outputs + of->extra_outputs, of->carried * sizeof *of->inputs);
  const rondo_onnx_import_value *items = of->outputs + of->extra_outputs + of->carried;
  for (size_t i = 0; i < of->scanned; i++)
    RONDO_TRY(rondo_array_push(&importer->allocator, &of->scan_outputs[i].items, &items[i]));
  return RONDO_OK;
}

static rondo_status set_scan_output(loop *of, size_t index, int64_t axis, bool is_reversed) {
  scan_output *output = &of->scan_outputs[index];
  rondo_onnx_import_value stacked = {0};
  if (!rondo_onnx_wants_output(of->node, of->carried + index)) return RONDO_OK;
  if (output->items.count == 0)
    return set_no_items(of->node, of->carried + index, of->body->output[of->extra_outputs + of->carried + index], axis);
  if (is_reversed) reverse(output->items.items, output->items.count);
  RONDO_TRY(rondo_onnx_join(of->node, output->items.items, output->items.count, axis, true, &stacked));
  set_outputs(of->node, of->carried + index, &stacked, 1);
  return RONDO_OK;
}

/* Loop ------------------------------------------------------------------------------------------------------------- */

static rondo_status set_iteration(loop *of, int64_t iteration) {
  const rondo_onnx_shape shape = {.type = RONDO_ONNX_INT64};
  rondo_onnx_constant *constant;
  void *elements;
  RONDO_TRY(rondo_onnx_constant_make(of->node->importer, &shape, &constant, &elements));
  memcpy(elements, &iteration, sizeof iteration);
  of->inputs[0] = (rondo_onnx_import_value){.kind = RONDO_ONNX_TENSOR_VALUE, .shape = shape, .constant = constant};
  return RONDO_OK;
}

static rondo_status set_condition(loop *of, bool condition) {
  const rondo_onnx_shape shape = {.type = RONDO_ONNX_BOOL};
  rondo_onnx_constant *constant;
  void *elements;
  RONDO_TRY(rondo_onnx_constant_make(of->node->importer, &shape, &constant, &elements));
  *(unsigned char *)elements = condition;
  of->inputs[1] = (rondo_onnx_import_value){.kind = RONDO_ONNX_TENSOR_VALUE, .shape = shape, .constant = constant};
  return RONDO_OK;
}

static rondo_status run_loop(loop *of, int64_t trips, bool condition) {
  for (int64_t i = 0; i < trips && condition; i++) {
    RONDO_TRY(set_iteration(of, i));
    RONDO_TRY(set_condition(of, condition));
    RONDO_TRY(iterate(of));
    if (of->has_failed) return RONDO_OK;
    if (i + 1 < trips) RONDO_TRY(read_condition(of->node, &of->outputs[0], of->body->output[0]->name, &condition));
  }
  set_outputs(of->node, 0, of->inputs + of->extra_inputs, of->carried);
  for (size_t i = 0; i < of->scanned; i++) RONDO_TRY(set_scan_output(of, i, 0, false));
  return RONDO_OK;
}

static rondo_status read_trips(rondo_onnx_node *node, int64_t *out_trips, bool *out_condition) {
  const int64_t *trips;
  size_t count;
  *out_trips = INT64_MAX;
  *out_condition = true;
  if (rondo_onnx_has_input(node, 0)) {
    RONDO_TRY(rondo_onnx_known_integers(node, 0, &trips, &count));
    if (count != 1) return rondo_onnx_refuse(node, "its trip count has %zu elements", count);
    *out_trips = trips[0];
  }
  if (!rondo_onnx_has_input(node, 1)) return RONDO_OK;
  return read_condition(node, &node->inputs[1], node->message->input[1], out_condition);
}

static rondo_status add_loop(rondo_onnx_node *node, const void *data) {
  loop of = {.node = node, .extra_inputs = 2, .extra_outputs = 1};
  int64_t trips;
  bool condition;
  (void)data;
  RONDO_TRY(require_graph(node, "body", &of.body));
  const size_t inputs = rondo_onnx_input_count(node);
  of.carried = inputs > 2 ? inputs - 2 : 0;
  if (of.body->n_input != of.carried + 2 || of.body->n_output < of.carried + 1)
    return rondo_onnx_refuse(node, "its body has %zu inputs and %zu outputs for %zu values", of.body->n_input,
                             of.body->n_output, of.carried);
  of.scanned = of.body->n_output - of.carried - 1;
  RONDO_TRY(read_trips(node, &trips, &condition));
  rondo_status status = loop_begin(&of);
  if (status == RONDO_OK && of.carried > 0) memcpy(of.inputs + 2, node->inputs + 2, of.carried * sizeof *of.inputs);
  if (status == RONDO_OK) status = run_loop(&of, trips, condition);
  loop_end(&of);
  return status;
}

/* Scan ------------------------------------------------------------------------------------------------------------- */

typedef struct scan {
  loop of;
  size_t inputs, trips; /* scan inputs; the size of their axes */
  const int64_t *input_axes, *input_directions, *output_axes, *output_directions; /* NULL: 0 */
} scan;

static rondo_status read_list(rondo_onnx_node *node, const char *name, size_t wanted, const int64_t **out) {
  size_t count;
  RONDO_TRY(rondo_onnx_attribute_ints(node, name, out, &count));
  if (*out == NULL || count == wanted) return RONDO_OK;
  return rondo_onnx_refuse_attribute(node, name, "it has %zu numbers, not %zu", count, wanted);
}

static rondo_status read_scan(rondo_onnx_node *node, scan *out) {
  int64_t inputs;
  const size_t count = rondo_onnx_input_count(node);
  loop *of = &out->of;
  RONDO_TRY(require_graph(node, "body", &of->body));
  RONDO_TRY(rondo_onnx_attribute_int(node, "num_scan_inputs", 0, &inputs));
  if (inputs < 1 || (uint64_t)inputs > count || of->body->n_input != count)
    return rondo_onnx_refuse_attribute(node, "num_scan_inputs", "it is %lld of %zu inputs, and the body has %zu",
                                       (long long)inputs, count, of->body->n_input);
  out->inputs = (size_t)inputs;
  of->carried = count - out->inputs;
  if (of->body->n_output < of->carried)
    return rondo_onnx_refuse(node, "its body has %zu outputs for %zu values", of->body->n_output, of->carried);
  of->scanned = of->body->n_output - of->carried;
  RONDO_TRY(read_list(node, "scan_input_axes", out->inputs, &out->input_axes));
  RONDO_TRY(read_list(node, "scan_input_directions", out->inputs, &out->input_directions));
  RONDO_TRY(read_list(node, "scan_output_axes", of->scanned, &out->output_axes));
  return read_list(node, "scan_output_directions", of->scanned, &out->output_directions);
}

static rondo_status scan_axis(const scan *of, size_t index, size_t *out) {
  const rondo_onnx_shape *shape = rondo_onnx_input_shape(of->of.node, of->of.carried + index);
  return rondo_onnx_axis(of->input_axes != NULL ? of->input_axes[index] : 0, shape->rank, out);
}

static rondo_status find_scan_trips(scan *of) {
  for (size_t i = 0; i < of->inputs; i++) {
    size_t axis;
    RONDO_TRY(scan_axis(of, i, &axis));
    const size_t size = rondo_onnx_input_shape(of->of.node, of->of.carried + i)->dims[axis];
    if (i > 0 && size != of->trips)
      return rondo_onnx_refuse(of->of.node, "its inputs have %zu and %zu iterations", of->trips, size);
    of->trips = size;
  }
  return RONDO_OK;
}

/* The part of an input that an iteration gets, without its axis. */
static rondo_status select_item(const scan *of, size_t index, size_t trip, rondo_onnx_import_value *out) {
  rondo_onnx_part part = {.length = 1, .drops_axis = true};
  RONDO_TRY(scan_axis(of, index, &part.axis));
  const bool is_reversed = of->input_directions != NULL && of->input_directions[index] != 0;
  part.first = is_reversed ? of->trips - 1 - trip : trip;
  return rondo_onnx_take_part(of->of.node, &of->of.node->inputs[of->of.carried + index], &part, out);
}

static rondo_status run_scan(scan *of) {
  loop *l = &of->of;
  for (size_t trip = 0; trip < of->trips; trip++) {
    for (size_t i = 0; i < of->inputs; i++) RONDO_TRY(select_item(of, i, trip, &l->inputs[l->carried + i]));
    RONDO_TRY(iterate(l));
    if (l->has_failed) return RONDO_OK;
  }
  set_outputs(l->node, 0, l->inputs, l->carried);
  for (size_t i = 0; i < l->scanned; i++)
    RONDO_TRY(set_scan_output(l, i, of->output_axes != NULL ? of->output_axes[i] : 0,
                              of->output_directions != NULL && of->output_directions[i] != 0));
  return RONDO_OK;
}

static rondo_status add_scan(rondo_onnx_node *node, const void *data) {
  scan of = {.of = {.node = node}};
  (void)data;
  RONDO_TRY(read_scan(node, &of));
  RONDO_TRY(find_scan_trips(&of));
  rondo_status status = loop_begin(&of.of);
  if (status == RONDO_OK && of.of.carried > 0) memcpy(of.of.inputs, node->inputs, of.of.carried * sizeof *of.of.inputs);
  if (status == RONDO_OK) status = run_scan(&of);
  loop_end(&of.of);
  return status;
}

static const rondo_onnx_row rows[] = {
    {"If", 1, 0, 1, 1, RONDO_ONNX_ROW_ONCE, add_if, NULL},
    {"Loop", 1, 0, 0, RONDO_ONNX_ANY_NUMBER, RONDO_ONNX_ROW_ONCE, add_loop, NULL},
    {"Scan", 9, 0, RONDO_ONNX_ANY_NUMBER, RONDO_ONNX_ANY_NUMBER, RONDO_ONNX_ROW_ONCE, add_scan, NULL},
};

RONDO_ONNX_FAMILY(rondo_onnx_control_flow, rows);
