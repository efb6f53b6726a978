/* SPDX-License-Identifier: MIT
 * Warm-up and capture. While capturing, each call is checked right after it: the resources know what was prepared too
 * late, the capture whether a call was refused, and the graph whether it has new memory nodes. Kernels of Rondo prepare
 * nothing and need no check.
 */
#include "tensor/compile/program_record.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "device/device.h"

/* Warm-up --------------------------------------------------------------------------------------------------------- */

static rondo_status explain_warm_up(rondo_status status) {
  rondo_saved_error error;
  rondo_error_save(&error);
  if (status != RONDO_INVALID_GRAPH || error.reason != RONDO_REASON_NO_FUNCTION) return status;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NO_FUNCTION, "an operator has no kernel for this device: %s",
                    error.message);
}

rondo_status rondo_warm_up(rondo_compiled *compiled) {
  const rondo_status status = rondo_compiled_enqueue(compiled);
  if (status != RONDO_OK) return explain_warm_up(status);
  RONDO_TRY(rondo_stream_synchronize(compiled->stream));
  for (size_t i = 0; i < compiled->steps.count; i++) {
    bool *has_run = rondo_kernel_set_has_run(compiled->resources.kernels, compiled->steps.items[i].kernel);
    if (has_run != NULL) *has_run = true;
  }
  return RONDO_OK;
}

/* Guarded devices look at what kernels access. Kernels of a CPU are ready once they are made. */
bool rondo_is_warm(const rondo_compiled *compiled) {
  if (compiled->resources.is_guarded) return false;
  if (!compiled->resources.is_cuda) return true;
  for (size_t i = 0; i < compiled->steps.count; i++) {
    if (compiled->steps.items[i].kernel == NULL) continue;
    const bool *has_run = rondo_kernel_set_has_run(compiled->resources.kernels, compiled->steps.items[i].kernel);
    if (has_run == NULL || !*has_run) return false;
  }
  return true;
}

/* Adds a product to those that have run, unless one of them has its shape. Returns whether it was added. */
static bool is_new_shape(const rondo_product **products, size_t *inout_count, const rondo_product *product) {
  for (size_t i = 0; i < *inout_count; i++)
    if (rondo_product_is_alike(products[i], product)) return false;
  products[(*inout_count)++] = product;
  return true;
}

/* Of products of one shape, of which layers of a network have many, one runs. */
static rondo_status enqueue_calls(rondo_compiled *compiled, const rondo_product **products, bool *out_any) {
  size_t count = 0;
  *out_any = false;
  for (size_t i = 0; i < compiled->steps.count; i++) {
    const rondo_step *step = &compiled->steps.items[i];
    if (step->kernel != NULL) continue;
    const rondo_product *product = rondo_resources_product(&compiled->resources, step->operation);
    if (product != NULL && !is_new_shape(products, &count, product)) continue;
    RONDO_TRY(rondo_compiled_enqueue_step(compiled, step, compiled->stream));
    *out_any = true;
  }
  return RONDO_OK;
}

/* Whether the device has code for the kernels, which a run would have found out. */
static rondo_status check_kernels(const rondo_compiled *compiled) {
  const rondo_device *device = compiled->device;
  for (size_t i = 0; i < compiled->steps.count; i++) {
    const rondo_step *step = &compiled->steps.items[i];
    if (step->kernel == NULL) continue;
    const rondo_kernel_node node = {.kernel = step->kernel, .grid = step->grid};
    const rondo_status status = device->ops->kernel_check(device, &node);
    if (status != RONDO_OK)
      return rondo_fail_context(explain_warm_up(status), "%s (operator %u of %s)", step->operator_name, step->number,
                                compiled->label);
  }
  return RONDO_OK;
}

/* No such call writes to a state (rondo_emit_call). */
rondo_status rondo_warm_up_calls(rondo_compiled *compiled, bool *out_any) {
  const size_t capacity = compiled->steps.count;
  const rondo_product **products;
  *out_any = false;
  RONDO_TRY(check_kernels(compiled));
  RONDO_TRY(rondo_allocate_items(&compiled->allocator, capacity, sizeof *products, &products));
  const rondo_status status = enqueue_calls(compiled, products, out_any);
  rondo_release(&compiled->allocator, products, capacity, sizeof *products);
  return status == RONDO_OK && *out_any ? rondo_stream_synchronize(compiled->stream) : status;
}

/* Capture --------------------------------------------------------------------------------------------------------- */

static rondo_status fail_unprepared(const rondo_compiled *compiled, const rondo_step *step, const char *what) {
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_UNPREPARED,
                    "%s (operator %u of %s) did while capturing what the warm-up should have done: %s",
                    step->operator_name, step->number, compiled->label, what);
}

/* Among the nodes from number `seen` on, finds the first that allocates or frees (kind 0: none), and counts kernels. */
static rondo_status find_new_nodes(const rondo_compiled *compiled, rondo_graph *graph, size_t seen,
                                   rondo_node_params *out_memory, uint32_t *out_kernels) {
  size_t count = 0;
  rondo_node *nodes = NULL;
  *out_memory = (rondo_node_params){0};
  *out_kernels = 0;
  RONDO_TRY(rondo_graph_nodes(graph, NULL, &count));
  const size_t capacity = count;
  RONDO_TRY(rondo_allocate_items(&compiled->allocator, capacity, sizeof *nodes, &nodes));
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
  rondo_release(&compiled->allocator, nodes, capacity, sizeof *nodes);
  return status;
}

static rondo_status check_graph(rondo_compiled *compiled, const rondo_step *step, rondo_graph *graph, size_t seen) {
  rondo_node_params found;
  uint32_t kernels;
  RONDO_TRY(find_new_nodes(compiled, graph, seen, &found, &kernels));
  if (!compiled->ranks.is_short) compiled->info.kernels += kernels;
  if (found.kind == RONDO_NODE_FOREIGN) return fail_unprepared(compiled, step, found.as.foreign.what);
  if (found.kind == RONDO_NODE_FREE) return fail_unprepared(compiled, step, "memory was freed");
  if (found.kind != RONDO_NODE_ALLOC) return RONDO_OK;
  char size[RONDO_SIZE_TEXT];
  const rondo_alloc_node *alloc = &found.as.alloc;
  return rondo_fail_context(fail_unprepared(compiled, step, "memory was allocated"), "allocation '%s' (%s)",
                            alloc->name == NULL ? "" : alloc->name, rondo_size_text(size, alloc->bytes));
}

/* The state of a capture of steps. With branches, an operator does not depend on the frontier that the operator before
 * it leaves. So the frontier after each position p is kept: ends.items[first_end[p]] up to ends.items[first_end[p +
 * 1]]. */
typedef struct recorder {
  const rondo_program *program; /* these two are for staged inputs only */
  const rondo_schedule *schedule;
  const rondo_edges *before; /* of positions */
  rondo_compiled *compiled;
  uint32_t nodes;     /* in the graph */
  rondo_node *copies; /* by staged input: the copy into its slot */
  bool *is_joined;    /* by staged input, without branches: an operator depends on the copy, so all later ones do */
  RONDO_ARRAY(rondo_node) ends;
  uint32_t *first_end; /* NULL: no branches */
  RONDO_ARRAY(rondo_node) frontier;
  RONDO_ARRAY(rondo_node) roots; /* predecessors of the operators that depend on no operator */
} recorder;

/* Captures one call and checks what it did. */
static rondo_status capture_call(recorder *r, const rondo_step *step) {
  rondo_compiled *compiled = r->compiled;
  rondo_capture_info info = {.struct_size = sizeof info};
  size_t seen = 0;
  RONDO_TRY(rondo_capture_get_info(compiled->stream, &info));
  RONDO_TRY(rondo_graph_nodes(info.graph, NULL, &seen));
  const rondo_status status = rondo_compiled_enqueue_step(compiled, step, compiled->stream);
  rondo_saved_error error;
  rondo_error_save(&error);
  RONDO_TRY(rondo_capture_get_info(compiled->stream, &info));
  if (status == RONDO_OUT_OF_MEMORY) return status; /* also if a part of the call was captured */
  if (info.state != RONDO_CAPTURE_ACTIVE) return fail_unprepared(compiled, step, error.message);
  if (status != RONDO_OK) return status;
  if (compiled->resources.late[0] != '\0') return fail_unprepared(compiled, step, compiled->resources.late);
  size_t count = 0;
  RONDO_TRY(rondo_graph_nodes(info.graph, NULL, &count));
  r->nodes += (uint32_t)(count - seen);
  return check_graph(compiled, step, info.graph, seen);
}

/* A kernel is one node. */
static rondo_status capture_step(recorder *r, rondo_step *step) {
  if (step->kernel != NULL) r->nodes++;
  RONDO_TRY(step->kernel != NULL ? rondo_compiled_enqueue_step(r->compiled, step, r->compiled->stream)
                                 : capture_call(r, step));
  if (!r->compiled->ranks.is_short) step->nodes_end = r->nodes;
  return RONDO_OK;
}

/* Staged values ---------------------------------------------------------------------------------------------------- */

/* Copies the stream's frontier into r->frontier. */
static rondo_status read_frontier(recorder *r, rondo_node *out_first) {
  rondo_capture_info info = {.struct_size = sizeof info};
  RONDO_TRY(rondo_capture_get_info(r->compiled->stream, &info));
  if (info.frontier_count > 0) *out_first = info.frontier[0];
  r->frontier.count = 0;
  for (size_t i = 0; i < info.frontier_count; i++)
    RONDO_TRY(rondo_array_push(&r->compiled->allocator, &r->frontier, &info.frontier[i]));
  return RONDO_OK;
}

static rondo_status set_frontier(const recorder *r, const rondo_node *nodes, size_t count, bool replace) {
  return rondo_capture_set_frontier(r->compiled->stream, nodes, count, replace);
}

/* Captures the copies of staged inputs in parallel, and after them the event `taken`, on which no node depends. */
static rondo_status capture_inputs(recorder *r) {
  const rondo_feeds *feeds = &r->compiled->feeds;
  if (feeds->inputs.count == 0) return RONDO_OK;
  for (size_t i = 0; i < feeds->inputs.count; i++) {
    RONDO_TRY(set_frontier(r, NULL, 0, true));
    RONDO_TRY(rondo_feeds_enqueue_input(&feeds->inputs.items[i], r->compiled->stream));
    RONDO_TRY(read_frontier(r, &r->copies[i]));
  }
  RONDO_TRY(set_frontier(r, r->copies, feeds->inputs.count, true));
  RONDO_TRY(rondo_event_record_external(feeds->taken, r->compiled->stream));
  r->nodes += (uint32_t)feeds->inputs.count + 1;
  return set_frontier(r, NULL, 0, true);
}

/* Makes the next operation depend on the copies of the staged inputs that it reads. */
static rondo_status join_copies(recorder *r, const rondo_operation *operation) {
  const rondo_feeds *feeds = &r->compiled->feeds;
  for (uint32_t k = 0; feeds->inputs.count > 0 && k < RONDO_MAX_OPERANDS; k++) {
    if (operation->inputs[k] == RONDO_NO_VALUE) continue;
    const rondo_staged_input *input = rondo_feeds_input(feeds, r->schedule->owners[operation->inputs[k]]);
    if (input == NULL) continue;
    const size_t i = (size_t)(input - feeds->inputs.items);
    if (!r->is_joined[i]) RONDO_TRY(set_frontier(r, &r->copies[i], 1, false));
    r->is_joined[i] = r->first_end == NULL;
  }
  return RONDO_OK;
}

/* Captures the copies of staged outputs that the operation computed, in parallel with later operations. */
static rondo_status capture_outputs(recorder *r, uint32_t operation) {
  const rondo_feeds *feeds = &r->compiled->feeds;
  for (size_t i = 0; i < feeds->outputs.count; i++) {
    const rondo_staged_output *output = &feeds->outputs.items[i];
    rondo_node first;
    if (output->operation != operation) continue;
    RONDO_TRY(read_frontier(r, &first));
    RONDO_TRY(rondo_feeds_enqueue_output(output, r->compiled->stream));
    RONDO_TRY(rondo_event_record_external(output->ready, r->compiled->stream));
    RONDO_TRY(set_frontier(r, r->frontier.items, r->frontier.count, true));
    r->nodes += 2;
  }
  return RONDO_OK;
}

/* Operations ------------------------------------------------------------------------------------------------------- */

static rondo_status begin_branch(recorder *r, uint32_t position) {
  assert(r->first_end != NULL && position < r->before->count);
  const rondo_edges *edges = r->before;
  if (edges->start[position] == edges->start[position + 1])
    return set_frontier(r, r->roots.items, r->roots.count, true);
  r->frontier.count = 0;
  for (uint32_t e = edges->start[position]; e < edges->start[position + 1]; e++) {
    const uint32_t before = edges->items[e];
    for (uint32_t i = r->first_end[before]; i < r->first_end[before + 1]; i++)
      RONDO_TRY(rondo_array_push(&r->compiled->allocator, &r->frontier, &r->ends.items[i]));
  }
  return set_frontier(r, r->frontier.items, r->frontier.count, true);
}

static rondo_status end_branch(recorder *r, uint32_t position) {
  rondo_capture_info info = {.struct_size = sizeof info};
  RONDO_TRY(rondo_capture_get_info(r->compiled->stream, &info));
  for (size_t i = 0; i < info.frontier_count; i++)
    RONDO_TRY(rondo_array_push(&r->compiled->allocator, &r->ends, &info.frontier[i]));
  r->first_end[position + 1] = (uint32_t)r->ends.count;
  return RONDO_OK;
}

/* Steps are in the schedule's order; an operation may have none. */
static rondo_status capture_steps(recorder *r, uint32_t number, size_t *inout_step) {
  rondo_compiled *compiled = r->compiled;
  assert(*inout_step <= compiled->steps.count);
  for (; *inout_step < compiled->steps.count && compiled->steps.items[*inout_step].operation == number; ++*inout_step)
    RONDO_TRY(capture_step(r, &compiled->steps.items[*inout_step]));
  return RONDO_OK;
}

static rondo_status capture_operation(recorder *r, uint32_t position, size_t *inout_step) {
  const uint32_t number = r->schedule->order[position];
  if (r->first_end != NULL) RONDO_TRY(begin_branch(r, position));
  RONDO_TRY(join_copies(r, rondo_schedule_operation(r->program, r->schedule, number)));
  RONDO_TRY(capture_steps(r, number, inout_step));
  if (r->first_end != NULL) RONDO_TRY(end_branch(r, position));
  return capture_outputs(r, number);
}

static rondo_status capture_all(recorder *r) {
  size_t step = 0;
  RONDO_TRY(capture_inputs(r));
  for (uint32_t p = 0; p < r->schedule->count; p++) RONDO_TRY(capture_operation(r, p, &step));
  return RONDO_OK;
}

static rondo_status capture_schedule(const rondo_program *program, const rondo_layout *layout, rondo_scratch *scratch,
                                     rondo_compiled *compiled) {
  recorder r = {
      .program = program, .schedule = &layout->schedule, .before = &layout->schedule.before, .compiled = compiled};
  const size_t entries = layout->has_branches ? (size_t)layout->schedule.count + 1 : 0;
  const size_t inputs = compiled->feeds.inputs.count;
  RONDO_TRY(rondo_scratch_take(scratch, entries, sizeof *r.first_end, &r.first_end));
  RONDO_TRY(rondo_scratch_take(scratch, inputs, sizeof *r.copies, &r.copies));
  RONDO_TRY(rondo_scratch_take(scratch, inputs, sizeof *r.is_joined, &r.is_joined));
  const rondo_status status = capture_all(&r);
  rondo_array_free(&compiled->allocator, &r.ends);
  rondo_array_free(&compiled->allocator, &r.frontier);
  return status;
}

/* Into an existing capture ----------------------------------------------------------------------------------------- */

rondo_status rondo_record_keep(const rondo_layout *layout, rondo_compiled *compiled) {
  const uint32_t count = layout->schedule.count;
  void *order;
  if (!layout->has_branches) return RONDO_OK;
  RONDO_TRY(rondo_edges_copy(&compiled->allocator, &layout->schedule.before, &compiled->before));
  RONDO_TRY(rondo_allocate_copy(&compiled->allocator, layout->schedule.order, count, sizeof *compiled->order, &order));
  compiled->order = order;
  return RONDO_OK;
}

static rondo_status capture_position(recorder *r, uint32_t position, size_t *inout_step) {
  RONDO_TRY(begin_branch(r, position));
  RONDO_TRY(capture_steps(r, r->compiled->order[position], inout_step));
  return end_branch(r, position);
}

/* Orders what is captured next after all branches. */
static rondo_status join_branches(recorder *r) {
  const rondo_edges *edges = r->before;
  bool *has_later = NULL;
  RONDO_TRY(rondo_allocate_items(&r->compiled->allocator, edges->count, sizeof *has_later, &has_later));
  for (uint32_t e = 0; e < edges->start[edges->count]; e++) has_later[edges->items[e]] = true;
  r->frontier.count = 0;
  rondo_status status = RONDO_OK;
  for (uint32_t p = 0; p < edges->count; p++) {
    for (uint32_t i = r->first_end[p]; i < r->first_end[p + 1] && !has_later[p] && status == RONDO_OK; i++)
      status = rondo_array_push(&r->compiled->allocator, &r->frontier, &r->ends.items[i]);
  }
  rondo_release(&r->compiled->allocator, has_later, edges->count, sizeof *has_later);
  return status == RONDO_OK ? set_frontier(r, r->frontier.items, r->frontier.count, true) : status;
}

static rondo_status capture_branches(recorder *r) {
  size_t step = 0;
  rondo_node first;
  RONDO_TRY(read_frontier(r, &first));
  for (size_t i = 0; i < r->frontier.count; i++)
    RONDO_TRY(rondo_array_push(&r->compiled->allocator, &r->roots, &r->frontier.items[i]));
  for (uint32_t p = 0; p < r->before->count; p++) RONDO_TRY(capture_position(r, p, &step));
  return join_branches(r);
}

static rondo_status capture_sequence(recorder *r) {
  for (size_t i = 0; i < r->compiled->steps.count; i++) RONDO_TRY(capture_step(r, &r->compiled->steps.items[i]));
  return RONDO_OK;
}

rondo_status rondo_compiled_record_into(rondo_compiled *compiled) {
  const rondo_allocator *allocator = &compiled->allocator;
  recorder r = {.before = &compiled->before, .compiled = compiled};
  const size_t entries = compiled->order == NULL ? 0 : (size_t)compiled->before.count + 1;
  RONDO_TRY(rondo_allocate_items(allocator, entries, sizeof *r.first_end, &r.first_end));
  compiled->resources.capturing = true;
  const rondo_status status = compiled->order == NULL ? capture_sequence(&r) : capture_branches(&r);
  compiled->resources.capturing = false;
  rondo_release(allocator, r.first_end, entries, sizeof *r.first_end);
  rondo_array_free(allocator, &r.ends);
  rondo_array_free(allocator, &r.frontier);
  rondo_array_free(allocator, &r.roots);
  return status;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

/* Ends the capture also if the steps failed, and then returns their failure. */
static rondo_status capture(const rondo_program *program, const rondo_layout *layout, rondo_compiled *compiled,
                            rondo_graph **out_graph) {
  rondo_scratch scratch = {.allocator = &compiled->allocator};
  RONDO_TRY(rondo_capture_begin(compiled->stream, RONDO_CAPTURE_THREAD_LOCAL));
  compiled->resources.capturing = true;
  const rondo_status status = capture_schedule(program, layout, &scratch, compiled);
  rondo_scratch_free(&scratch);
  compiled->resources.capturing = false;
  rondo_saved_error error;
  rondo_error_save(&error);
  const rondo_status ended = rondo_capture_end(compiled->stream, out_graph);
  return status == RONDO_OK ? ended : rondo_error_raise(&error);
}

/* Also the run that is not the last of a round. */
static rondo_status capture_runs(const rondo_program *program, const rondo_layout *layout, rondo_compiled *compiled) {
  RONDO_TRY(capture(program, layout, compiled, &compiled->graph));
  if (compiled->ranks.round <= 1) return RONDO_OK;
  compiled->ranks.is_short = true;
  const rondo_status status = capture(program, layout, compiled, &compiled->short_graph);
  compiled->ranks.is_short = false;
  return status;
}

rondo_status rondo_record(const rondo_program *program, const rondo_layout *layout, rondo_compiled *compiled) {
  rondo_capture_mode mode = RONDO_CAPTURE_THREAD_LOCAL;
  RONDO_TRY(rondo_capture_exchange_thread_mode(&mode));
  const rondo_status status = capture_runs(program, layout, compiled);
  RONDO_TRY(rondo_capture_exchange_thread_mode(&mode));
  if (status == RONDO_OK) compiled->info.captures++;
  return status;
}

/* Execs ------------------------------------------------------------------------------------------------------------ */

static rondo_status count_nodes(rondo_compiled *compiled) {
  rondo_exec_info info = {.struct_size = sizeof info};
  RONDO_TRY(rondo_exec_get_info(compiled->exec, &info));
  compiled->info.nodes = info.node_count;
  return RONDO_OK;
}

rondo_status rondo_record_instantiate(rondo_compiled *compiled) {
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .upload_stream = compiled->stream};
  if (compiled->graph == NULL) return RONDO_OK;
  RONDO_TRY(rondo_instantiate(compiled->graph, &options, &compiled->exec));
  compiled->info.instantiations++;
  return count_nodes(compiled);
}

rondo_status rondo_record_instantiate_short(rondo_compiled *compiled) {
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .upload_stream = compiled->stream};
  return compiled->short_graph == NULL ? RONDO_OK
                                       : rondo_instantiate(compiled->short_graph, &options, &compiled->short_exec);
}

rondo_status rondo_record_replace(rondo_compiled *compiled, rondo_compiled *replaced, rondo_update_result *out_result) {
  rondo_saved_error error;
  rondo_error_save(&error);
  if (compiled->graph == NULL || replaced->exec == NULL) return rondo_record_instantiate(compiled);
  RONDO_TRY(count_nodes(replaced));
  const rondo_status status = rondo_exec_update(replaced->exec, compiled->graph, out_result);
  if (status != RONDO_OK && status != RONDO_UPDATE_REFUSED) return status;
  if (status == RONDO_UPDATE_REFUSED) {
    rondo_error_restore(&error);
    return rondo_record_instantiate(compiled);
  }
  compiled->exec = replaced->exec;
  replaced->exec = NULL;
  compiled->info.nodes = replaced->info.nodes;
  compiled->info.updates++;
  return RONDO_OK;
}
