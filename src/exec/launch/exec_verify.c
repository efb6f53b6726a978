/* SPDX-License-Identifier: MIT
 * Verification of a graph, alone or when an exec is created or updated. It flattens the graph, describes the
 * allocations outside the graph to graph/verify/verifier.h, and returns the findings.
 */
#include <rondo/verify.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/binary_search.h"
#include "base/log.h"
#include "base/versioned_struct.h"
#include "exec/launch/exec_internal.h"
#include "exec/launch/exec_verify.h"
#include "graph/graph.h"
#include "graph/node_params.h"
#include "graph/verify/verifier.h"
#include "memory/allocation_lookup.h"
#include "memory/arena/arena.h"
#include "memory/arena/arena_recording.h"
#include "memory/memory_errors.h"
#include "memory/peer_access.h"

/* Allocations outside the graph ------------------------------------------------------------------------------------ */

/* The user's list, sorted by address. Of several at one address, the last one here is the first in the user's list that
 * is not empty. */
typedef struct given_allocation {
  const rondo_verify_allocation *allocation;
  const rondo_verify_allocation *farthest; /* of those up to this index, the one that ends last */
} given_allocation;

/* What is known about memory outside the graph. */
typedef struct surroundings {
  const rondo_graph *root; /* whose devices have allocations; NULL: it is only data */
  given_allocation *given;
  size_t given_count;
  RONDO_ARRAY(const rondo_graph *) recordings; /* those of the graphs that were recorded into an arena */
  rondo_known_ranges held; /* memory that is live throughout them; first the ranges that are live before all nodes */
  bool needs_access_check; /* an address was looked up that is in no live allocation, or in graph memory */
} surroundings;

static int compare_given(const void *a, const void *b) {
  const rondo_verify_allocation *x = ((const given_allocation *)a)->allocation;
  const rondo_verify_allocation *y = ((const given_allocation *)b)->allocation;
  const uintptr_t left = (uintptr_t)x->address, right = (uintptr_t)y->address;
  if (left != right) return left < right ? -1 : 1;
  if ((x->bytes == 0) != (y->bytes == 0)) return x->bytes == 0 ? -1 : 1;
  return (x < y) - (x > y);
}

/* The address of the last byte. */
static uintptr_t last_of(const rondo_verify_allocation *at) {
  const uintptr_t begin = (uintptr_t)at->address;
  if (at->bytes == 0) return begin;
  return at->bytes - 1 < UINTPTR_MAX - begin ? begin + (at->bytes - 1) : UINTPTR_MAX;
}

static rondo_status sort_given(const rondo_allocator *allocator, const rondo_verify_options *options,
                               surroundings *around) {
  const size_t count = options->allocation_count;
  if (count == 0) return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *around->given, &around->given));
  around->given_count = count;
  for (size_t i = 0; i < count; i++) around->given[i].allocation = &options->allocations[i];
  qsort(around->given, count, sizeof *around->given, compare_given);
  for (size_t i = 0; i < count; i++) {
    const rondo_verify_allocation *at = around->given[i].allocation,
                                  *before = i == 0 ? at : around->given[i - 1].farthest;
    around->given[i].farthest = last_of(at) > last_of(before) ? at : before;
  }
  return RONDO_OK;
}

static bool is_in(uintptr_t address, const rondo_verify_allocation *at) {
  return at->bytes > 0 && address >= (uintptr_t)at->address && address <= last_of(at);
}

/* The user's allocation that begins at the address; else the one that contains the address and ends last; else NULL. */
static const rondo_verify_allocation *find_given(const surroundings *around, const void *address) {
  const uintptr_t sought = (uintptr_t)address;
  size_t low = 0, high = around->given_count;
  RONDO_BINARY_SEARCH(low, high, middle, (uintptr_t)around->given[middle].allocation->address <= sought)
  if (low == 0) return NULL;
  const rondo_verify_allocation *before = around->given[low - 1].allocation,
                                *farthest = around->given[low - 1].farthest;
  if ((uintptr_t)before->address == sought && before->bytes > 0) return before;
  return is_in(sought, farthest) ? farthest : NULL;
}

/* Finds the range in the arena into which the graph, or a graph inside it, was recorded. */
static bool find_in_arena(const surroundings *around, const void *address, rondo_known_range *out) {
  bool found = false;
  for (size_t i = 0; i < around->recordings.count && !found; i++)
    found = rondo_memory_find_dead(around->recordings.items[i], address, out);
  for (size_t i = 0; i < around->held.count && found; i++) {
    const rondo_known_range *held = &around->held.items[i];
    if ((uintptr_t)address - (uintptr_t)held->begin >= held->bytes) continue;
    *out = *held;
    return true;
  }
  return found;
}

static bool find_on(const rondo_device *device, const void *address, rondo_known_range *out) {
  rondo_device_memory *memory = rondo_device_memory_made(device);
  return memory != NULL && rondo_memory_find_range(memory, address, out);
}

static bool find_on_devices(const rondo_graph *root, const void *address, rondo_known_range *out) {
  bool found = root != NULL && find_on(root->device, address, out);
  for (size_t i = 0; root != NULL && i < root->others.count && !found; i++)
    found = find_on(root->others.items[i].device, address, out);
  return found;
}

static bool find_allocated(surroundings *around, const void *address, rondo_known_range *out) {
  const bool is_of_arena = find_in_arena(around, address, out);
  const bool is_found = is_of_arena || find_on_devices(around->root, address, out);
  around->needs_access_check |= is_of_arena || !is_found || out->is_dead || out->is_graph_memory;
  return is_found;
}

static bool find_range(void *user, const void *address, rondo_known_range *out) {
  surroundings *around = user;
  const rondo_verify_allocation *given = find_given(around, address);
  if (given == NULL) return find_allocated(around, address, out);
  *out = (rondo_known_range){.begin = given->address, .bytes = given->bytes};
  snprintf(out->name, sizeof out->name, "%s", given->name == NULL ? "" : given->name);
  snprintf(out->no_access, sizeof out->no_access, "%s", given->no_access == NULL ? "" : given->no_access);
  return true;
}

/* Flattened graphs ------------------------------------------------------------------------------------------------ */

static rondo_status flatten(const rondo_lowering *lowering, rondo_flat_node **out) {
  RONDO_TRY(rondo_allocate_items(&lowering->allocator, lowering->nodes.count, sizeof **out, out));
  for (size_t i = 0; i < lowering->nodes.count; i++)
    (*out)[i] = (rondo_flat_node){.params = lowering->nodes.items[i].params,
                                  .graph = lowering->origins.items[i].graph,
                                  .slot = lowering->origins.items[i].slot};
  return RONDO_OK;
}

/* Lists the graphs of the nodes that were recorded into an arena, the outermost first. */
static rondo_status collect_recordings(const rondo_verify_input *input, const rondo_graph *root, surroundings *around) {
  const rondo_graph *last = root;
  if (rondo_arena_of(root) != NULL) RONDO_TRY(rondo_array_push(input->allocator, &around->recordings, &root));
  for (size_t i = 0; i < input->edges.node_count; i++) {
    const rondo_graph *graph = input->nodes[i].graph;
    bool there = graph == NULL || graph == last || rondo_arena_of(graph) == NULL;
    for (size_t k = 0; k < around->recordings.count && !there; k++) there = around->recordings.items[k] == graph;
    if (!there) RONDO_TRY(rondo_array_push(input->allocator, &around->recordings, &graph));
    if (graph != NULL) last = graph;
  }
  return RONDO_OK;
}

static bool overlaps(const rondo_known_range *a, const char *begin, size_t bytes) {
  return (uintptr_t)a->begin < (uintptr_t)begin + bytes && (uintptr_t)begin < (uintptr_t)a->begin + a->bytes;
}

/* Whether the range is live before all nodes: no alloc node of another graph, and no range that is known to be live
 * before all nodes, overlaps it. */
static bool is_live_before(const rondo_verify_input *input, const surroundings *around, const rondo_graph *graph,
                           size_t index, size_t sure) {
  const rondo_known_range *range = &around->held.items[index];
  for (size_t i = 0; i < sure; i++)
    if (overlaps(&around->held.items[i], range->begin, range->bytes)) return false;
  for (size_t i = 0; i < input->edges.node_count; i++) {
    const rondo_flat_node *node = &input->nodes[i];
    if (node->graph == graph || node->params->kind != RONDO_NODE_ALLOC) continue;
    if (overlaps(range, node->params->as.alloc.address, node->params->as.alloc.bytes)) return false;
  }
  return true;
}

/* A range that a nested recording expects to be live may come from an outer recording. The others go first. */
static rondo_status collect_live_ranges(rondo_verify_input *input, const rondo_graph *root, surroundings *around) {
  size_t sure = 0;
  RONDO_TRY(collect_recordings(input, root, around));
  for (size_t i = 0; i < around->recordings.count; i++) {
    const rondo_graph *graph = around->recordings.items[i];
    size_t at = around->held.count;
    RONDO_TRY(rondo_memory_list_held(graph, input->allocator, &around->held));
    for (; at < around->held.count; at++) {
      if (graph != root && !is_live_before(input, around, graph, at, sure)) continue;
      const rondo_known_range range = around->held.items[at];
      around->held.items[at] = around->held.items[sure];
      around->held.items[sure++] = range;
    }
  }
  input->held = around->held.items;
  input->held_count = sure;
  return RONDO_OK;
}

static void free_surroundings(const rondo_allocator *allocator, surroundings *around) {
  rondo_release(allocator, around->given, around->given_count, sizeof *around->given);
  rondo_array_free(allocator, &around->recordings);
  rondo_array_free(allocator, &around->held);
}

/* The caller has set nodes, edges and clone_tags in `input`. `root` is the outermost graph. *out_allocated: all that
 * the nodes access is memory of the graph itself, or of its one device and was allocated. */
static rondo_status verify_flat(rondo_verify_input *input, const rondo_graph *root, const rondo_device *device,
                                const rondo_verify_options *options, rondo_findings **out, bool *out_allocated) {
  surroundings around = {0};
  if (device != NULL) around.root = root;
  input->root = root;
  input->find = find_range;
  input->user = &around;
  input->knows_all = device != NULL;
  input->max_findings = options->max_findings;
  rondo_status status = sort_given(input->allocator, options, &around);
  if (status == RONDO_OK) status = collect_live_ranges(input, root, &around);
  if (status == RONDO_OK) status = rondo_verify(input, out);
  input->user = NULL;
  *out_allocated = !around.needs_access_check && around.recordings.count == 0 && root->others.count == 0 &&
                   (device == NULL || !rondo_peers_others_have_memory(device));
  free_surroundings(input->allocator, &around);
  return status;
}

static rondo_status verify_lowering(const rondo_lowering *lowering, const rondo_device *device, bool clone_tags,
                                    const rondo_verify_options *options, rondo_findings **out, bool *out_allocated) {
  rondo_flat_node *nodes;
  *out = NULL;
  RONDO_TRY(flatten(lowering, &nodes));
  rondo_verify_input input = {.allocator = &lowering->allocator,
                              .nodes = nodes,
                              .edges = rondo_lowering_edges(lowering),
                              .clone_tags = clone_tags};
  const rondo_status status = verify_flat(&input, lowering->root, device, options, out, out_allocated);
  rondo_release(&lowering->allocator, nodes, lowering->nodes.count, sizeof *nodes);
  return status;
}

static rondo_status verify_graph(const rondo_graph *graph, const rondo_verify_options *options, rondo_findings **out) {
  rondo_lowering lowering;
  bool is_allocated;
  const rondo_status lowered = rondo_lower((rondo_graph *)(uintptr_t)graph, &lowering); /* it is only read */
  if (lowered != RONDO_OK) return rondo_fail_context(lowered, "rondo_graph_verify");
  const rondo_status status = verify_lowering(&lowering, graph->device, false, options, out, &is_allocated);
  rondo_lowering_free(&lowering);
  return status;
}

rondo_status rondo_graph_verify(const rondo_graph *graph, const rondo_verify_options *options,
                                rondo_findings **out_findings) {
  const char *const call = "rondo_graph_verify";
  RONDO_TRY(rondo_check_call(call, "out_findings", out_findings));
  *out_findings = NULL;
  if (graph == NULL) return rondo_refuse_null(call, "the graph");
  rondo_verify_options known;
  RONDO_TRY(rondo_versioned_read("rondo_verify_options", options, &known, sizeof known));
  if (known.allocations == NULL && known.allocation_count > 0)
    return rondo_refuse_null(call, "the list of allocations");
  const rondo_status status = verify_graph(graph, &known, out_findings);
  return status == RONDO_OK ? RONDO_OK : rondo_fail_context(status, "%s", call);
}

/* Execs ----------------------------------------------------------------------------------------------------------- */

static void log_warnings(const char *call, const rondo_graph *graph, const rondo_findings *findings) {
  uint64_t warnings;
  char label[RONDO_LABEL_BYTES];
  rondo_finding first = {.struct_size = sizeof first};
  rondo_findings_totals(findings, NULL, &warnings);
  if (!rondo_log_on(RONDO_LOG_WARNING) || rondo_findings_get(findings, 0, &first) != RONDO_OK) return;
  rondo_log(RONDO_LOG_WARNING, "exec", "%s: %s has %llu warnings, which rondo_exec_get_findings lists; the first: %s",
            call, rondo_graph_label(label, graph), (unsigned long long)warnings, first.message);
}

/* A number that grows with every allocation and free on the device, also of host and graph memory. Never 0. */
static uint64_t device_stamp(const rondo_device *device) {
  rondo_device_memory *memory = rondo_device_memory_made(device);
  if (memory == NULL) return 1;
  return 2 + atomic_load_explicit(&device->allocations_ended, memory_order_acquire) +
         atomic_load_explicit(&memory->table.index.version, memory_order_acquire) +
         atomic_load_explicit(&memory->host.index.version, memory_order_acquire);
}

/* Of all devices of the graph. */
static uint64_t allocations_stamp(const rondo_graph *graph) {
  uint64_t stamp = device_stamp(graph->device);
  for (size_t i = 0; i < graph->others.count; i++) stamp += device_stamp(graph->others.items[i].device);
  return stamp;
}

bool rondo_exec_is_verified(const rondo_graph *graph) {
  return atomic_load_explicit(&graph->verified, memory_order_relaxed) == allocations_stamp(graph);
}

rondo_status rondo_exec_draft_verify(const char *call, rondo_exec_draft *draft, rondo_graph *graph) {
  const rondo_verify_options options = {RONDO_VERIFY_OPTIONS_INIT};
  rondo_findings *findings;
  bool is_allocated;
  const uint64_t stamp = allocations_stamp(graph);
  const uint64_t ended = atomic_load_explicit(&graph->device->allocations_ended, memory_order_acquire);
  RONDO_TRY(verify_lowering(&draft->lowering, draft->graph->device, true, &options, &findings, &is_allocated));
  draft->checked_at_verify = is_allocated ? ended : RONDO_UNCHECKED;
  const rondo_status status = rondo_findings_raise(findings);
  if (status != RONDO_OK || rondo_findings_count(findings) == 0) {
    rondo_findings_destroy(findings);
    if (status == RONDO_OK) atomic_store_explicit(&graph->verified, stamp, memory_order_relaxed);
    return status;
  }
  log_warnings(call, draft->graph, findings);
  draft->findings = findings;
  return RONDO_OK;
}

/* One node of an exec ---------------------------------------------------------------------------------------------- */

static size_t bytes_of(const rondo_kernel_node *node, size_t index) {
  return node->arg_bytes == NULL ? 0 : node->arg_bytes[index];
}

static bool same_pointers(const rondo_kernel_node *now, const rondo_kernel_node *then) {
  if (now->kernel != then->kernel) return false;
  for (size_t i = 0; i < then->arg_count; i++) {
    if (then->kernel->parameters[i].access == RONDO_ACCESS_SCALAR) continue;
    if (memcmp(now->args[i], then->args[i], sizeof(void *)) != 0 || bytes_of(now, i) != bytes_of(then, i)) return false;
  }
  return true;
}

bool rondo_exec_same_accesses(const rondo_exec *exec, uint32_t index, const rondo_node_params *then) {
  const rondo_node_params *now = rondo_exec_params(exec, index);
  if (then->kind == RONDO_NODE_KERNEL) return same_pointers(&now->as.kernel, &then->as.kernel);
  const bool accesses =
      then->kind == RONDO_NODE_COPY || then->kind == RONDO_NODE_FILL || then->kind == RONDO_NODE_MEMORY_OPERATIONS;
  return !accesses || rondo_node_params_compare(now, then, false) == 0;
}

static rondo_status fail_with_first(rondo_verify_input *input, const rondo_exec *exec) {
  const rondo_verify_options options = {RONDO_VERIFY_OPTIONS_INIT};
  rondo_findings *findings;
  bool is_allocated;
  RONDO_TRY(verify_flat(input, exec->lowering.root, exec->device, &options, &findings, &is_allocated));
  const rondo_status status = rondo_findings_raise(findings);
  rondo_findings_destroy(findings);
  return status;
}

/* Verifies the node together with all alloc and free nodes, in the order of the whole graph. */
static rondo_status verify_with_lifetimes(const rondo_exec *exec, uint32_t index, const rondo_node_params *params) {
  static const rondo_node_params nothing = {.kind = RONDO_NODE_EMPTY};
  const rondo_lowering *lowering = &exec->lowering;
  rondo_flat_node *nodes;
  RONDO_TRY(flatten(lowering, &nodes));
  for (size_t i = 0; i < lowering->nodes.count; i++) {
    if (!rondo_node_is_memory(nodes[i].params)) nodes[i].params = i == index ? params : &nothing;
  }
  rondo_verify_input input = {
      .allocator = &lowering->allocator, .nodes = nodes, .edges = rondo_lowering_edges(lowering), .clone_tags = true};
  const rondo_status status = fail_with_first(&input, exec);
  rondo_release(&lowering->allocator, nodes, lowering->nodes.count, sizeof *nodes);
  return status;
}

static rondo_status verify_alone(const rondo_exec *exec, uint32_t index, const rondo_node_params *params) {
  const rondo_lowered_origin *origin = &exec->lowering.origins.items[index];
  const rondo_flat_node node = {.params = params, .graph = origin->graph, .slot = origin->slot};
  const uint32_t no_edges[2] = {0, 0};
  rondo_verify_input input = {.allocator = &exec->lowering.allocator,
                              .nodes = &node,
                              .edges = {.node_count = 1, .successor_start = no_edges},
                              .clone_tags = true};
  return fail_with_first(&input, exec);
}

bool rondo_exec_accesses_plain(const rondo_exec *exec, const rondo_kernel_node *node) {
  const rondo_device_memory *memory = rondo_device_memory_made(exec->device);
  if (memory == NULL || exec->graph->has_memory) return false;
  for (size_t i = 0; i < node->arg_count; i++) {
    if (node->kernel->parameters[i].access == RONDO_ACCESS_SCALAR) continue;
    const void *address;
    memcpy(&address, node->args[i], sizeof address);
    if (!rondo_memory_is_plain(memory, address, bytes_of(node, i))) return false;
  }
  return true;
}

rondo_status rondo_exec_verify_node(const rondo_exec *exec, uint32_t index, const rondo_node_params *params) {
  if (params->kind == RONDO_NODE_KERNEL && rondo_exec_accesses_plain(exec, &params->as.kernel)) return RONDO_OK;
  return exec->graph->has_memory ? verify_with_lifetimes(exec, index, params) : verify_alone(exec, index, params);
}

/* Findings -------------------------------------------------------------------------------------------------------- */

rondo_status rondo_exec_get_findings(const rondo_exec *exec, const rondo_findings **out_findings) {
  const char *const call = "rondo_exec_get_findings";
  RONDO_TRY(rondo_check_call(call, "out_findings", out_findings));
  *out_findings = NULL;
  if (exec == NULL) return rondo_refuse_null(call, "the exec");
  *out_findings = exec->findings;
  return RONDO_OK;
}
