/* SPDX-License-Identifier: MIT
 * Graphs of the driver: importing them, and the driver's forms of graphs and execs. Importing makes a capture that has
 * ended of the driver's graph, so that nodes are read as those of captures are. The form of a graph is kept with the
 * graph. After a change a new form is made, and the earlier one is kept until the next. If only kernels have changed,
 * it is a copy of the last form that was built from all nodes or imported. A graph that is as it was imported needs no
 * other form than the imported one.
 *
 * Invariant: the attachment `native` of a graph is NULL or a native_form, which only this file reads. Threads: as the
 * graph or exec.
 */
#include <rondo/native_graph.h>

#include "base/versioned_struct.h"
#include "exec/api_check.h"
#include "exec/build/graph_build.h"
#include "exec/capture/capture_import.h"
#include "exec/launch/exec_internal.h"
#include "exec/random/random_internal.h"
#include "exec/stream/stream_work.h"
#include "graph/graph.h"
#include "graph/node_name.h"

/* The driver's form of a graph. It was imported, built from all nodes, or copied from such a form. */
typedef struct native_form {
  rondo_allocator allocator;
  void *handle;
  rondo_executable *executable;      /* owns the handle; NULL: the graph's `captured` does */
  struct native_form *whole;         /* what it was copied from, a reference; NULL: it is no copy */
  struct native_form *earlier;       /* of the graph before its last change: the caller may still launch it; or NULL */
  RONDO_ARRAY(rondo_event *) events; /* for which it waits; references */
  size_t references;
} native_form;

static void free_contents(const rondo_allocator *allocator, native_form *form) {
  if (form->executable != NULL) form->executable->ops->destroy(form->executable);
  for (size_t i = 0; i < form->events.count; i++) rondo_event_release(form->events.items[i]);
  rondo_array_free(allocator, &form->events);
}

static void release_form(void *object) {
  native_form *form = object;
  if (form == NULL || --form->references > 0) return;
  const rondo_allocator allocator = form->allocator;
  release_form(form->earlier);
  free_contents(&allocator, form);
  release_form(form->whole);
  rondo_release(&allocator, form, 1, sizeof *form);
}

/* What copies of the form, if it is not NULL, are made from. */
static native_form *whole_of(native_form *form) { return form == NULL || form->whole == NULL ? form : form->whole; }

/* The graph keeps the form from before its last change, which the caller's exec may have been made from. */
static rondo_status attach_form(rondo_graph *graph, const native_form *made) {
  native_form *form, *earlier = graph->native.object;
  RONDO_TRY(rondo_allocate_items(&graph->allocator, 1, sizeof *form, &form));
  *form = *made;
  form->allocator = graph->allocator;
  form->references = 1;
  if (form->whole != NULL) form->whole->references++;
  form->earlier = earlier;
  if (earlier != NULL) {
    release_form(earlier->earlier);
    earlier->earlier = NULL;
  }
  graph->native = (rondo_graph_attachment){.object = form, .release = release_form};
  graph->is_native_stale = false;
  return RONDO_OK;
}

/* Attaches a form of all nodes. Later forms in which at most a quarter of them differ are copies of it, which takes
 * less time than adding all nodes. */
static rondo_status attach_whole(rondo_graph *graph, const native_form *made) {
  RONDO_TRY(rondo_array_reserve(&graph->allocator, &graph->native_changes, graph->live_count / 4 + 1));
  RONDO_TRY(attach_form(graph, made));
  rondo_graph_clear_changes(graph);
  return RONDO_OK;
}

/* OK if the device's driver has graphs. */
static rondo_status require_graphs(const char *call, const rondo_device *device) {
  if (device->ops->capture != NULL) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NOT_SUPPORTED,
                    "%s: device '%s' has no driver with graphs of its own: use a CUDA device", call, device->name);
}

/* Importing ------------------------------------------------------------------------------------------------------- */

/* The graph attaches the capture first, because its nodes refer to it. */
static rondo_status add_nodes(rondo_graph *graph, rondo_captured *captured) {
  rondo_importer importer = {.captured = captured, .graph = graph};
  rondo_captured_attach(captured, &graph->captured);
  rondo_status status = rondo_importer_add_all(&importer, 0);
  rondo_importer_free(&importer);
  if (status == RONDO_OK && !graph->is_bound)
    status = attach_whole(graph, &(native_form){.handle = captured->ops->native(captured)});
  return status;
}

static rondo_status import(rondo_device *device, void *native, const rondo_import_options *options, rondo_graph **out) {
  const char *const call = "rondo_graph_import";
  const rondo_graph_options of_graph = {RONDO_GRAPH_OPTIONS_INIT, .name = options->name};
  rondo_captured *captured;
  rondo_graph *graph;
  RONDO_TRY(rondo_build_graph(call, device, &of_graph, &graph));
  rondo_status status = device->ops->capture->import(device, native, !options->takes_ownership, &captured);
  if (status == RONDO_OK) {
    status = add_nodes(graph, captured);
    if (status == RONDO_OK) captured->owns_graph = true;
    rondo_captured_release(captured);
  }
  if (status == RONDO_OK)
    *out = graph;
  else
    rondo_graph_free(graph);
  return rondo_fail_context(status, "%s", call);
}

rondo_status rondo_graph_import(rondo_device *device, void *native, const rondo_import_options *options,
                                rondo_graph **out_graph) {
  const char *const call = "rondo_graph_import";
  rondo_import_options known;
  RONDO_TRY(rondo_check_call(call, "out_graph", out_graph));
  *out_graph = NULL;
  if (device == NULL) return rondo_refuse_null(call, "the device");
  if (native == NULL) return rondo_refuse_null(call, "the driver's graph");
  RONDO_TRY(rondo_device_require_own(call, device));
  RONDO_TRY(rondo_versioned_read("rondo_import_options", options, &known, sizeof known));
  RONDO_TRY(require_graphs(call, device));
  return import(device, native, &known, out_graph);
}

/* Lowering for the driver ----------------------------------------------------------------------------------------- */

/* A graph and those inside it, each lowered by itself. */
typedef struct level {
  rondo_lowering lowering;
  rondo_lowered_graph view;
  struct level *children; /* one for each node; zero unless it is a CHILD */
} level;

static void free_level(level *of) {
  const rondo_allocator allocator = of->lowering.allocator;
  const size_t count = of->lowering.nodes.count;
  for (size_t i = 0; i < count && of->children != NULL; i++)
    if (of->lowering.nodes.items[i].params->kind == RONDO_NODE_CHILD) free_level(&of->children[i]);
  if (of->children != NULL) rondo_release(&allocator, of->children, count, sizeof(level));
  rondo_lowering_free(&of->lowering);
}

static rondo_status lower_level(rondo_graph *graph, level *out);

static rondo_status lower_children(level *of) {
  rondo_lowered_node *nodes = of->lowering.nodes.items;
  for (size_t i = 0; i < of->lowering.nodes.count; i++) {
    if (nodes[i].params->kind != RONDO_NODE_CHILD) continue;
    if (of->children == NULL)
      RONDO_TRY(rondo_allocate_items(&of->lowering.allocator, of->lowering.nodes.count, sizeof(level), &of->children));
    RONDO_TRY(lower_level(nodes[i].params->as.child, &of->children[i]));
    nodes[i].child = &of->children[i].view;
  }
  return RONDO_OK;
}

/* On failure, too, free_level frees it. */
static rondo_status lower_level(rondo_graph *graph, level *out) {
  RONDO_TRY(rondo_lower_level(graph, &out->lowering));
  out->view = rondo_lowering_view(&out->lowering, graph->name);
  return lower_children(out);
}

/* Graphs ---------------------------------------------------------------------------------------------------------- */

static rondo_status fail_extra(const char *call, const char *label, const char *what) {
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NOT_SUPPORTED,
                    "%s: %s %s, which a launch by the driver would leave out: launch with rondo_exec_launch", call,
                    label, what);
}

static rondo_status check_node(const rondo_lowered_node *node) {
  const char *const call = "rondo_graph_native";
  char label[RONDO_LABEL_BYTES];
  if (rondo_node_is_memory(node->params))
    return fail_extra(call, rondo_node_label_at(label, node->params, &node->where), "is graph memory");
  if (node->params->kind == RONDO_NODE_EVENT_RECORD)
    return fail_extra(call, rondo_node_label_at(label, node->params, &node->where), "records an event of Rondo's");
  return rondo_work_check_code(call, node->device, node->params, &node->where);
}

static rondo_status check_level(const level *of) {
  for (size_t i = 0; i < of->lowering.nodes.count; i++) {
    RONDO_TRY(check_node(&of->lowering.nodes.items[i]));
    if (of->children != NULL && of->lowering.nodes.items[i].params->kind == RONDO_NODE_CHILD)
      RONDO_TRY(check_level(&of->children[i]));
  }
  return RONDO_OK;
}

/* The caller may launch the form after its nodes, and their events, have left the graph. */
static rondo_status keep_events(const rondo_allocator *allocator, const level *of, native_form *form) {
  for (size_t i = 0; i < of->lowering.nodes.count; i++) {
    const rondo_node_params *params = of->lowering.nodes.items[i].params;
    if (params->kind == RONDO_NODE_CHILD) RONDO_TRY(keep_events(allocator, &of->children[i], form));
    if (params->kind != RONDO_NODE_EVENT_WAIT) continue;
    RONDO_TRY(rondo_array_push(allocator, &form->events, &params->as.event));
    rondo_event_retain(params->as.event);
  }
  return RONDO_OK;
}

static rondo_status make_form(rondo_graph *graph, const level *outermost, native_form *out) {
  rondo_device *device = graph->device;
  RONDO_TRY(check_level(outermost));
  RONDO_TRY(keep_events(&graph->allocator, outermost, out));
  RONDO_TRY(rondo_fail_context(device->ops->capture->export(device, &outermost->view, &out->executable, &out->handle),
                               "rondo_graph_native"));
  return attach_whole(graph, out);
}

static rondo_status build_form(rondo_graph *graph) {
  level outermost = {0};
  native_form form = {0};
  rondo_status status = rondo_fail_context(lower_level(graph, &outermost), "rondo_graph_native");
  if (status == RONDO_OK) status = make_form(graph, &outermost, &form);
  if (status != RONDO_OK) free_contents(&graph->allocator, &form);
  free_level(&outermost);
  return status;
}

/* The kernels that have changed, as nodes of a lowered graph without edges. */
static rondo_status lower_changes(const rondo_graph *graph, rondo_scratch *scratch, rondo_lowered_graph *out) {
  const rondo_slots *changes = &graph->native_changes;
  rondo_lowered_node *nodes;
  uint32_t *starts;
  RONDO_TRY(rondo_scratch_take(scratch, changes->count, sizeof *nodes, &nodes));
  RONDO_TRY(rondo_scratch_take(scratch, changes->count + 1, sizeof *starts, &starts));
  for (size_t i = 0; i < changes->count; i++) {
    const rondo_graph_node *node = rondo_graph_at(graph, changes->items[i]);
    const rondo_node_where where = {.number = changes->items[i], .own = changes->items[i]};
    nodes[i] = rondo_lowered_of(&node->params, rondo_graph_node_device(graph, node), &where, node->captured);
    RONDO_TRY(check_node(&nodes[i]));
  }
  *out = (rondo_lowered_graph){.name = graph->name,
                               .node_count = changes->count,
                               .nodes = nodes,
                               .successor_start = starts,
                               .predecessor_start = starts};
  return RONDO_OK;
}

static rondo_status copy_form(rondo_graph *graph, rondo_scratch *scratch, native_form *out) {
  const rondo_capture_ops *ops = graph->device->ops->capture;
  rondo_lowered_graph changed;
  *out = (native_form){.whole = whole_of(graph->native.object)};
  RONDO_TRY(lower_changes(graph, scratch, &changed));
  return rondo_fail_context(
      ops->revise(graph->device, out->whole->handle, out->whole->executable, &changed, &out->executable, &out->handle),
      "rondo_graph_native");
}

/* The form of a graph in which only kernels have changed. */
static rondo_status revise_form(rondo_graph *graph) {
  rondo_scratch scratch = {.allocator = &graph->allocator};
  native_form form;
  rondo_status status = copy_form(graph, &scratch, &form);
  rondo_scratch_free(&scratch);
  if (status != RONDO_OK) return status;
  status = attach_form(graph, &form);
  if (status != RONDO_OK) form.executable->ops->destroy(form.executable);
  return status;
}

static rondo_status check_graph(rondo_graph *graph) {
  const char *const call = "rondo_graph_native";
  char label[RONDO_LABEL_BYTES];
  if (graph->device == NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE,
                      "%s: %s was created without a device and is only data: create it for a device", call,
                      rondo_graph_label(label, graph));
  RONDO_TRY(rondo_device_require_own(call, graph->device));
  RONDO_TRY(require_graphs(call, graph->device));
  RONDO_TRY(rondo_build_refuse_captured(call, graph));
  RONDO_TRY(rondo_graph_refuse_bound(graph, "has no form that callers may launch: use rondo_exec_native"));
  if (rondo_random_is_drawn(graph)) return fail_extra(call, rondo_graph_label(label, graph), "draws random numbers");
  return RONDO_OK;
}

rondo_status rondo_graph_native(rondo_graph *graph, void **out_native) {
  RONDO_TRY(rondo_check_call("rondo_graph_native", "out_native", out_native));
  *out_native = NULL;
  if (graph == NULL) return rondo_refuse_null("rondo_graph_native", "the graph");
  RONDO_TRY(check_graph(graph));
  const bool is_made = graph->native.object != NULL;
  if (!is_made || graph->is_native_stale)
    RONDO_TRY(is_made && !graph->is_native_other ? revise_form(graph) : build_form(graph));
  *out_native = ((const native_form *)graph->native.object)->handle;
  return RONDO_OK;
}

/* Execs ----------------------------------------------------------------------------------------------------------- */

/* What a launch does besides the driver's launch; NULL if nothing. */
static const char *extra_of(const rondo_exec *exec) {
  if (exec->memory != NULL) return "has graph memory";
  if (exec->random != NULL) return "draws random numbers";
  if (exec->records.count > 0) return "records events";
  return exec->broken ? "could not be updated" : NULL;
}

rondo_status rondo_exec_native(rondo_exec *exec, void **out_native) {
  const char *const call = "rondo_exec_native";
  char label[RONDO_LABEL_BYTES];
  RONDO_TRY(rondo_check_call(call, "out_native", out_native));
  *out_native = NULL;
  if (exec == NULL) return rondo_refuse_null(call, "the exec");
  RONDO_TRY(rondo_device_require_own(call, exec->device));
  RONDO_TRY(require_graphs(call, exec->device));
  const char *const extra = extra_of(exec);
  if (extra != NULL) return fail_extra(call, rondo_graph_label(label, exec->graph), extra);
  return rondo_fail_context(exec->executable->ops->native(exec->executable, out_native), "%s", call);
}
