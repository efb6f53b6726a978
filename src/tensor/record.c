/* SPDX-License-Identifier: MIT
 * Warm-up and capture. While capturing, each call is looked at right after it (kernels of the library's own make
 * nothing ready): the resources tell what was made ready late, the capture whether the call was refused something, and
 * the graph whether it has gained memory nodes.
 */
#include "tensor/record.h"

#include "base/error.h"

/* Warm-up --------------------------------------------------------------------------------------------------------- */

static rondo_status explain_warm_up(rondo_status status) {
  rondo_saved_error error;
  rondo_error_save(&error);
  if (status != RONDO_INVALID_GRAPH || error.reason != RONDO_REASON_NO_FUNCTION) return status;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NO_FUNCTION, "an operator has no kernel for this device: %s",
                    error.message);
}

rondo_status rondo_warm_up(rondo_compiled *compiled) {
  for (size_t i = 0; i < compiled->steps.count; i++) {
    const rondo_status status = rondo_compiled_play(compiled, &compiled->steps.items[i]);
    if (status != RONDO_OK) return explain_warm_up(status);
  }
  return rondo_stream_synchronize(compiled->stream);
}

/* Capture --------------------------------------------------------------------------------------------------------- */

static rondo_status fail_unprepared(const rondo_compiled *compiled, const rondo_step *step, const char *what) {
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_UNPREPARED,
                    "%s (operator %u of program '%s') did while capturing what the warm-up should have done: %s",
                    step->operator_name, step->operation, compiled->name, what);
}

/* Of the nodes from the `seen`-th on: the first that allocates or frees, of kind 0 when there is none; and how many
 * are kernels. */
static rondo_status look_at_nodes(const rondo_compiled *compiled, rondo_graph *graph, size_t seen,
                                  rondo_node_params *out_memory, uint32_t *out_kernels) {
  size_t count = 0;
  rondo_node *nodes = NULL;
  *out_memory = (rondo_node_params){0};
  *out_kernels = 0;
  RONDO_TRY(rondo_graph_nodes(graph, NULL, &count));
  const size_t room = count;
  RONDO_TRY(rondo_allocate_items(&compiled->allocator, room, sizeof *nodes, &nodes));
  rondo_status status = rondo_graph_nodes(graph, nodes, &count);
  for (size_t i = seen; i < count && status == RONDO_OK; i++) {
    rondo_node_params params;
    status = rondo_graph_get_params(graph, nodes[i], &params);
    if (status != RONDO_OK) break;
    *out_kernels += params.kind == RONDO_NODE_KERNEL;
    const bool is_foreign = params.kind == RONDO_NODE_FOREIGN && params.as.foreign.address != NULL;
    const bool is_memory = params.kind == RONDO_NODE_ALLOC || params.kind == RONDO_NODE_FREE || is_foreign;
    if (is_memory && out_memory->kind == 0) *out_memory = params;
  }
  rondo_release(&compiled->allocator, nodes, room, sizeof *nodes);
  return status;
}

static rondo_status check_graph(rondo_compiled *compiled, const rondo_step *step, rondo_graph *graph, size_t seen) {
  rondo_node_params found;
  uint32_t kernels;
  RONDO_TRY(look_at_nodes(compiled, graph, seen, &found, &kernels));
  compiled->info.kernels += kernels;
  if (found.kind == RONDO_NODE_FOREIGN) return fail_unprepared(compiled, step, found.as.foreign.what);
  if (found.kind == RONDO_NODE_FREE) return fail_unprepared(compiled, step, "memory was freed");
  if (found.kind != RONDO_NODE_ALLOC) return RONDO_OK;
  char size[RONDO_SIZE_TEXT];
  const rondo_alloc_node *alloc = &found.as.alloc;
  rondo_status_ignore(fail_unprepared(compiled, step, "memory was allocated"), "the next line adds to it and returns");
  return rondo_fail_context(RONDO_INVALID_STATE, "allocation '%s' (%s)", alloc->name == NULL ? "" : alloc->name,
                            rondo_size_text(size, alloc->bytes));
}

/* Plays one call into the capture and looks at what it did. */
static rondo_status capture_call(rondo_compiled *compiled, rondo_step *step) {
  rondo_capture_info info = {.struct_size = sizeof info};
  size_t seen = 0;
  RONDO_TRY(rondo_capture_get_info(compiled->stream, &info));
  RONDO_TRY(rondo_graph_nodes(info.graph, NULL, &seen));
  const rondo_status status = rondo_compiled_play(compiled, step);
  rondo_saved_error error;
  rondo_error_save(&error);
  RONDO_TRY(rondo_capture_get_info(compiled->stream, &info));
  if (info.state != RONDO_CAPTURE_ACTIVE) return fail_unprepared(compiled, step, error.message);
  if (status != RONDO_OK) return status;
  if (compiled->resources.late[0] != '\0') return fail_unprepared(compiled, step, compiled->resources.late);
  size_t count = 0;
  RONDO_TRY(rondo_graph_nodes(info.graph, NULL, &count));
  step->nodes_end += (uint32_t)(count - seen);
  return check_graph(compiled, step, info.graph, seen);
}

/* A kernel is one node. */
static rondo_status capture_kernel(rondo_compiled *compiled, rondo_step *step) {
  step->nodes_end++;
  return rondo_compiled_play(compiled, step);
}

/* Branches: what the operator before leaves at the frontier of the stream is not what the next one depends on. Of each
 * position of the order, the nodes at the frontier when it had played are ends.items[first_end[p]] up to
 * ends.items[first_end[p + 1]]. */
typedef struct branching {
  const rondo_schedule *schedule;
  RONDO_ARRAY(rondo_node) ends;
  uint32_t *first_end; /* NULL: no branches */
  RONDO_ARRAY(rondo_node) frontier;
} branching;

static rondo_status begin_operation(rondo_compiled *compiled, branching *b, uint32_t position) {
  const rondo_edges *edges = &b->schedule->before;
  b->frontier.count = 0;
  for (uint32_t e = edges->start[position]; e < edges->start[position + 1]; e++) {
    const uint32_t before = edges->items[e];
    for (uint32_t i = b->first_end[before]; i < b->first_end[before + 1]; i++)
      RONDO_TRY(rondo_array_push(&compiled->allocator, &b->frontier, &b->ends.items[i]));
  }
  return rondo_capture_set_frontier(compiled->stream, b->frontier.items, b->frontier.count, true);
}

static rondo_status end_operation(rondo_compiled *compiled, branching *b, uint32_t position) {
  rondo_capture_info info = {.struct_size = sizeof info};
  RONDO_TRY(rondo_capture_get_info(compiled->stream, &info));
  for (size_t i = 0; i < info.frontier_count; i++)
    RONDO_TRY(rondo_array_push(&compiled->allocator, &b->ends, &info.frontier[i]));
  b->first_end[position + 1] = (uint32_t)b->ends.count;
  return RONDO_OK;
}

static rondo_status capture_step(rondo_compiled *compiled, size_t index) {
  rondo_step *step = &compiled->steps.items[index];
  step->nodes_end = index == 0 ? 0 : compiled->steps.items[index - 1].nodes_end;
  return step->kernel != NULL ? capture_kernel(compiled, step) : capture_call(compiled, step);
}

/* Steps stand in the schedule's order; an operation may have none. */
static rondo_status capture_steps(rondo_compiled *compiled, branching *b) {
  size_t next = 0;
  for (uint32_t p = 0; p < b->schedule->count; p++) {
    if (b->first_end != NULL) RONDO_TRY(begin_operation(compiled, b, p));
    while (next < compiled->steps.count && compiled->steps.items[next].operation == b->schedule->order[p])
      RONDO_TRY(capture_step(compiled, next++));
    if (b->first_end != NULL) RONDO_TRY(end_operation(compiled, b, p));
  }
  return RONDO_OK;
}

static rondo_status capture_schedule(rondo_compiled *compiled, const rondo_layout *layout) {
  const rondo_allocator *allocator = &compiled->allocator;
  branching b = {.schedule = &layout->schedule};
  const size_t entries = layout->has_branches ? (size_t)layout->schedule.count + 1 : 0;
  rondo_status status = rondo_allocate_items(allocator, entries, sizeof *b.first_end, &b.first_end);
  if (status == RONDO_OK) status = capture_steps(compiled, &b);
  rondo_release(allocator, b.first_end, entries, sizeof *b.first_end);
  rondo_array_free(allocator, &b.ends);
  rondo_array_free(allocator, &b.frontier);
  return status;
}

/* Ends the capture also when the steps failed, and tells their failure then. */
static rondo_status capture(rondo_compiled *compiled, const rondo_layout *layout) {
  RONDO_TRY(rondo_capture_begin(compiled->stream, RONDO_CAPTURE_THREAD_LOCAL));
  compiled->resources.capturing = true;
  const rondo_status status = capture_schedule(compiled, layout);
  compiled->resources.capturing = false;
  rondo_saved_error error;
  rondo_error_save(&error);
  const rondo_status ended = rondo_capture_end(compiled->stream, &compiled->graph);
  return status == RONDO_OK ? ended : rondo_error_raise(&error);
}

rondo_status rondo_record(rondo_compiled *compiled, const rondo_layout *layout) {
  rondo_capture_mode mode = RONDO_CAPTURE_THREAD_LOCAL;
  RONDO_TRY(rondo_capture_exchange_thread_mode(&mode));
  const rondo_status status = capture(compiled, layout);
  RONDO_TRY(rondo_capture_exchange_thread_mode(&mode));
  if (status != RONDO_OK) return status;
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .upload_stream = compiled->stream};
  RONDO_TRY(rondo_instantiate(compiled->graph, &options, &compiled->exec));
  rondo_exec_info info = {.struct_size = sizeof info};
  RONDO_TRY(rondo_exec_get_info(compiled->exec, &info));
  compiled->info.nodes = info.node_count;
  return RONDO_OK;
}
