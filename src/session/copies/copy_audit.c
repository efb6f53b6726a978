/* SPDX-License-Identifier: MIT
 * The copy audit: compares the host memory that each copy and fill uses with the ranges that the caller has declared.
 * Nothing is removed before the whole graph has been checked. Stateless. Threads: the thread that owns the graph.
 */

#include "base/array.h"
#include "base/error.h"
#include "base/versioned_struct.h"
#include "exec/api_check.h"
#include "graph/graph.h"
#include "graph/node_name.h"
#include "graph/node_params.h"
#include "memory/graph_memory/address_space.h"
#include "memory/node_addresses.h"
#include "memory/peer_access.h"
#include "session/copies/input_copies.h"

static const char call[] = "rondo_graph_audit_copies";

typedef struct audit {
  rondo_graph *graph;
  rondo_audit_options options;
  rondo_input_copy *copies;
  size_t capacity;
  rondo_audit_info info;
  RONDO_ARRAY(uint32_t) inputs; /* slots of input copies in the graph itself, in topological order */
} audit;

/* A copy or fill in the graph or in one of its child graphs. */
typedef struct visit {
  audit *audit;
  const rondo_graph *graph;
  uint32_t slot;
  const rondo_node_params *params;
} visit;

/* Memory ----------------------------------------------------------------------------------------------------------- */

static bool is_host(const visit *at, const void *address) {
  if (rondo_peers_owner(address) != NULL || rondo_graph_has_foreign_memory(at->audit->graph, address)) return false;
  rondo_device *device = at->audit->graph->device;
  bool is_device = false;
  return device->ops->knows_address == NULL || !device->ops->knows_address(device, address, &is_device) || !is_device;
}

/* The range that contains the whole extent; `count` if none does. */
static size_t find_range(const rondo_host_range *ranges, size_t count, const rondo_extent *extent) {
  size_t i = 0;
  for (; i < count; i++) {
    const uintptr_t offset = (uintptr_t)extent->address - (uintptr_t)ranges[i].address;
    if (offset < ranges[i].bytes && extent->bytes <= ranges[i].bytes - offset) break;
  }
  return i;
}

/* Refusals --------------------------------------------------------------------------------------------------------- */

static const char *label_of(const visit *at, char buffer[RONDO_LABEL_BYTES]) {
  return rondo_node_label_in(buffer, at->graph, at->audit->graph, at->slot);
}

static uint32_t number_of(const visit *at) { return rondo_graph_outer_number(at->graph, at->audit->graph, at->slot); }

static rondo_status refuse_source(const visit *at, const rondo_extent *source) {
  char label[RONDO_LABEL_BYTES], graph[RONDO_LABEL_BYTES];
  const rondo_audit_options *known = &at->audit->options;
  return rondo_fail_node(
      RONDO_CAPTURE_REFUSED, RONDO_REASON_WRONG_MEMORY, number_of(at),
      "%s: %s of %s reads %zu bytes of host memory at %p, which belong to none of the %zu inputs and %zu constants. "
      "The host may have computed them during the capture, and a launch would not compute them again. "
      "Compute them on the device, pass them as an input, or keep them and list them as a constant",
      call, label_of(at, label), rondo_graph_label(graph, at->audit->graph), source->bytes, source->address,
      known->input_count, known->constant_count);
}

static rondo_status refuse_destination(const visit *at, const rondo_extent *destination) {
  char label[RONDO_LABEL_BYTES], graph[RONDO_LABEL_BYTES];
  return rondo_fail_node(
      RONDO_CAPTURE_REFUSED, RONDO_REASON_WRONG_MEMORY, number_of(at),
      "%s: %s of %s writes %zu bytes of host memory at %p, which belong to none of the %zu outputs. "
      "What the host does with them was not captured. Do it on the device, or list the memory as an output",
      call, label_of(at, label), rondo_graph_label(graph, at->audit->graph), destination->bytes, destination->address,
      at->audit->options.output_count);
}

static rondo_status refuse_child(const visit *at) {
  char label[RONDO_LABEL_BYTES], graph[RONDO_LABEL_BYTES];
  return rondo_fail_node(RONDO_UNSUPPORTED, RONDO_REASON_NODE_KIND, number_of(at),
                         "%s: %s of %s copies an input, and cannot be taken out of a child graph: "
                         "capture it outside of the child graph, or keep the copies (rondo_audit_options.keep_inputs)",
                         call, label_of(at, label), rondo_graph_label(graph, at->audit->graph));
}

/* Visiting --------------------------------------------------------------------------------------------------------- */

static rondo_status note_input(const visit *at, size_t input, const rondo_extent *source) {
  audit *a = at->audit;
  const rondo_copy *copy = &at->params->as.copy;
  if (at->graph != a->graph && !a->options.keep_inputs) return refuse_child(at);
  if (at->graph == a->graph) RONDO_TRY(rondo_array_push(&a->graph->allocator, &a->inputs, &at->slot));
  if (a->info.inputs < a->capacity) {
    a->copies[a->info.inputs] =
        (rondo_input_copy){.input = input,
                           .offset = (size_t)((uintptr_t)source->address - (uintptr_t)a->options.inputs[input].address),
                           .copy = *copy};
  }
  a->info.inputs++;
  a->info.input_bytes += copy->width * copy->height * copy->depth;
  return RONDO_OK;
}

static rondo_status audit_source(const visit *at, const rondo_extent *source, bool to_host) {
  audit *a = at->audit;
  const rondo_audit_options *known = &a->options;
  const size_t input = find_range(known->inputs, known->input_count, source);
  if (input < known->input_count) return to_host ? RONDO_OK : note_input(at, input, source);
  if (find_range(known->constants, known->constant_count, source) == known->constant_count)
    return refuse_source(at, source);
  const rondo_copy *copy = &at->params->as.copy;
  a->info.constants++;
  a->info.constant_bytes += copy->width * copy->height * copy->depth;
  return RONDO_OK;
}

static rondo_status audit_destination(const visit *at, const rondo_extent *destination) {
  audit *a = at->audit;
  const rondo_audit_options *known = &a->options;
  if (find_range(known->outputs, known->output_count, destination) == known->output_count)
    return refuse_destination(at, destination);
  const rondo_node_params *params = at->params;
  a->info.outputs++;
  a->info.output_bytes += params->kind == RONDO_NODE_COPY
                              ? params->as.copy.width * params->as.copy.height * params->as.copy.depth
                              : params->as.fill.width * params->as.fill.height * params->as.fill.element_bytes;
  return RONDO_OK;
}

static rondo_status audit_work(const visit *at) {
  rondo_extent extents[RONDO_MOST_EXTENTS];
  const size_t count = rondo_node_extents(at->params, extents);
  if (count == 0) return RONDO_OK;
  const bool to_host = is_host(at, extents[0].address);
  const bool from_host = count > 1 && is_host(at, extents[1].address);
  if (to_host) RONDO_TRY(audit_destination(at, &extents[0]));
  if (from_host) return audit_source(at, &extents[1], to_host);
  if (!to_host && count > 1) at->audit->info.device_copies++;
  return RONDO_OK;
}

static rondo_status audit_graph(audit *a, const rondo_graph *graph);

static rondo_status audit_node(audit *a, const rondo_graph *graph, uint32_t slot) {
  const visit at = {.audit = a, .graph = graph, .slot = slot, .params = &rondo_graph_at(graph, slot)->params};
  return at.params->kind == RONDO_NODE_CHILD ? audit_graph(a, at.params->as.child) : audit_work(&at);
}

static rondo_status audit_graph(audit *a, const rondo_graph *graph) {
  size_t count = 0;
  RONDO_TRY(rondo_graph_sort(graph, NULL, &count));
  rondo_node *nodes;
  RONDO_TRY(rondo_allocate_items(&graph->allocator, count, sizeof *nodes, &nodes));
  const size_t capacity = count;
  rondo_status status = rondo_graph_sort(graph, nodes, &count);
  for (size_t i = 0; status == RONDO_OK && i < count; i++) status = audit_node(a, graph, rondo_node_number(nodes[i]));
  rondo_release(&graph->allocator, nodes, capacity, sizeof *nodes);
  return status;
}

/* Entry point ------------------------------------------------------------------------------------------------------ */

static rondo_status check_ranges(const char *what, const rondo_host_range *ranges, size_t count) {
  if (count > 0) RONDO_TRY(rondo_require(call, what, ranges));
  for (size_t i = 0; i < count; i++) {
    RONDO_TRY(rondo_require(call, what, ranges[i].address));
    if (ranges[i].bytes == 0)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                        "%s: range %zu of the %s has 0 bytes: leave it out", call, i, what);
  }
  return RONDO_OK;
}

static bool has_name(const rondo_host_range *range) { return range->name != NULL && range->name[0] != '\0'; }

/* Ranges that the graph reads and writes must not overlap. Otherwise a copy that was moved to the front would read the
 * results of the last launch. */
static rondo_status check_apart(const rondo_audit_options *o, const rondo_host_range *read, size_t count) {
  for (size_t i = 0; i < count; i++) {
    for (size_t k = 0; k < o->output_count; k++) {
      const uintptr_t a = (uintptr_t)read[i].address, b = (uintptr_t)o->outputs[k].address;
      if (a + read[i].bytes <= b || b + o->outputs[k].bytes <= a) continue;
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OVERLAP,
                        "%s: the host memory%s%s%s (%zu bytes at %p) is read and overlaps output %zu%s%s%s (%zu at %p)",
                        call, has_name(&read[i]) ? " '" : "", has_name(&read[i]) ? read[i].name : "",
                        has_name(&read[i]) ? "'" : "", read[i].bytes, read[i].address, k,
                        has_name(&o->outputs[k]) ? ", '" : "", has_name(&o->outputs[k]) ? o->outputs[k].name : "",
                        has_name(&o->outputs[k]) ? "'," : "", o->outputs[k].bytes, o->outputs[k].address);
    }
  }
  return RONDO_OK;
}

static rondo_status check_options(const rondo_audit_options *o) {
  RONDO_TRY(check_ranges("inputs", o->inputs, o->input_count));
  RONDO_TRY(check_ranges("constants", o->constants, o->constant_count));
  RONDO_TRY(check_ranges("outputs", o->outputs, o->output_count));
  RONDO_TRY(check_apart(o, o->inputs, o->input_count));
  return check_apart(o, o->constants, o->constant_count);
}

/* Removes nothing if the caller's array is too short. */
static rondo_status remove_copies(audit *a) {
  if (a->options.keep_inputs || a->inputs.count == 0) return RONDO_OK;
  RONDO_TRY(rondo_graph_check_erase(a->graph, a->inputs.items[0]));
  for (size_t i = 0; i < a->inputs.count; i++) RONDO_TRY(rondo_audit_check_movable(a->graph, a->inputs.items[i]));
  if (a->info.inputs > a->capacity) return RONDO_OK;
  return rondo_audit_remove_copies(a->graph, a->inputs.items, a->inputs.count, &a->info.edges);
}

rondo_status rondo_graph_audit_copies(rondo_graph *graph, const rondo_audit_options *options, rondo_input_copy *copies,
                                      size_t *inout_count, rondo_audit_info *out_info) {
  RONDO_TRY(rondo_check_call(call, "the graph", graph));
  RONDO_TRY(rondo_require(call, "inout_count", inout_count));
  audit a = {.graph = graph, .copies = copies, .capacity = copies == NULL ? 0 : *inout_count};
  RONDO_TRY(rondo_versioned_read("rondo_audit_options", options, &a.options, sizeof a.options));
  RONDO_TRY(rondo_versioned_check("rondo_audit_info", out_info, sizeof a.info));
  RONDO_TRY(rondo_require(call, "the graph's device", graph->device));
  RONDO_TRY(check_options(&a.options));
  rondo_status status = audit_graph(&a, graph);
  if (status == RONDO_OK) status = remove_copies(&a);
  rondo_array_free(&graph->allocator, &a.inputs);
  RONDO_TRY(status);
  *inout_count = a.info.inputs;
  return out_info == NULL ? RONDO_OK : rondo_versioned_write("rondo_audit_info", &a.info, out_info, sizeof a.info);
}
