/* SPDX-License-Identifier: MIT
 * Moves copies of inputs out of a graph, so that they run before it: checks that the result is the same, and keeps the
 * order of the other nodes.
 */
#include <assert.h>

#include "base/array.h"
#include "base/error.h"
#include "graph/edges.h"
#include "graph/graph.h"
#include "graph/node_name.h"
#include "graph/node_params.h"
#include "memory/allocation_lookup.h"
#include "memory/graph_memory/address_space.h"
#include "memory/graph_memory/graph_view.h"
#include "memory/node_addresses.h"
#include "session/copies/input_copies.h"

/* A copy that would run before the graph. */
typedef struct moved_copy {
  const rondo_graph *graph;
  uint32_t slot;
  rondo_extent destination;
  rondo_device_memory *memory;
  unsigned char *is_after; /* by slot: depends on the copy */
} moved_copy;

static bool overlaps(const moved_copy *copy, const void *address, size_t bytes) {
  const uintptr_t a = (uintptr_t)address, b = (uintptr_t)copy->destination.address;
  return a < b + copy->destination.bytes && (bytes > UINTPTR_MAX - a || b < a + bytes);
}

static rondo_status refuse_access(const moved_copy *copy, const rondo_node_params *params, uint32_t slot) {
  char label[RONDO_LABEL_BYTES], other[RONDO_LABEL_BYTES];
  const rondo_node_params *own = &rondo_graph_at(copy->graph, copy->slot)->params;
  return rondo_fail_node(RONDO_INVALID_GRAPH, RONDO_REASON_RACE, copy->slot,
                         "rondo_graph_audit_copies: %s copies an input, and cannot run before the graph: %s does "
                         "not depend on it and accesses its destination. Give the input device memory of its own",
                         rondo_node_label(label, own, copy->slot), rondo_node_label(other, params, slot));
}

static rondo_status refuse_allocated(const moved_copy *copy, const rondo_node_params *params, uint32_t slot) {
  char label[RONDO_LABEL_BYTES], other[RONDO_LABEL_BYTES];
  const rondo_node_params *own = &rondo_graph_at(copy->graph, copy->slot)->params;
  return rondo_fail_node(
      RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED, copy->slot,
      "rondo_graph_audit_copies: %s copies an input to memory that %s of the same graph allocates, so the "
      "copy cannot run before the graph: allocate the input's memory before the capture",
      rondo_node_label(label, own, copy->slot), rondo_node_label(other, params, slot));
}

/* The bytes that a kernel may access through a pointer: as declared, or else up to the end of the allocation. */
static size_t reach_of(const moved_copy *copy, const rondo_kernel_node *kernel, size_t argument, const void *address) {
  if (kernel->arg_bytes != NULL && kernel->arg_bytes[argument] > 0) return kernel->arg_bytes[argument];
  rondo_known_range range;
  if (!rondo_memory_find_range(copy->memory, address, &range)) return 1;
  return range.bytes - (size_t)((const char *)address - range.begin);
}

static bool accesses_destination(const moved_copy *copy, const rondo_node_params *params) {
  rondo_extent extents[RONDO_MOST_EXTENTS];
  const size_t count = rondo_node_extents(params, extents);
  for (size_t i = 0; i < count; i++)
    if (overlaps(copy, extents[i].address, extents[i].bytes)) return true;
  if (params->kind == RONDO_NODE_FREE) return overlaps(copy, params->as.free_address, 1);
  if (params->kind != RONDO_NODE_KERNEL) return false;
  rondo_node_address addresses[RONDO_MAX_PARAMETERS];
  const size_t pointers = rondo_node_addresses(params, addresses);
  for (size_t i = 0; i < pointers; i++) {
    const size_t bytes = reach_of(copy, &params->as.kernel, addresses[i].field, addresses[i].address);
    if (overlaps(copy, addresses[i].address, bytes)) return true;
  }
  return false;
}

/* `is_after` says which slots of `graph` depend on the copy; NULL: none. */
static rondo_status check_graph(const moved_copy *copy, const rondo_graph *graph, const unsigned char *is_after) {
  for (uint32_t i = 0; i < graph->nodes.count; i++) {
    const rondo_graph_node *node = &graph->nodes.items[i];
    if (!node->live || (graph == copy->graph && i == copy->slot)) continue;
    const rondo_node_params *params = &node->params;
    if (params->kind == RONDO_NODE_ALLOC && overlaps(copy, params->as.alloc.address, params->as.alloc.bytes))
      return refuse_allocated(copy, params, i);
    if (is_after != NULL && is_after[i]) continue;
    if (params->kind == RONDO_NODE_CHILD) RONDO_TRY(check_graph(copy, params->as.child, NULL));
    if (accesses_destination(copy, params)) return refuse_access(copy, params, i);
  }
  return RONDO_OK;
}

/* Marks all slots that depend on the copy. `stack` has one element for each slot. */
static void mark_after(moved_copy *copy, uint32_t *stack) {
  size_t count = 0;
  stack[count++] = copy->slot;
  while (count > 0) {
    const rondo_slots *dependents = &rondo_graph_at(copy->graph, stack[--count])->dependents;
    for (size_t i = 0; i < dependents->count; i++) {
      const uint32_t next = dependents->items[i];
      if (copy->is_after[next]) continue;
      copy->is_after[next] = 1;
      stack[count++] = next;
    }
  }
}

rondo_status rondo_audit_check_movable(const rondo_graph *graph, uint32_t slot) {
  moved_copy copy = {.graph = graph, .slot = slot};
  rondo_extent extents[RONDO_MOST_EXTENTS];
  const size_t count = rondo_node_extents(&rondo_graph_at(graph, slot)->params, extents);
  if (count == 0) return RONDO_OK;
  copy.destination = extents[0];
  RONDO_TRY(rondo_device_memory_of(graph->device, &copy.memory));
  const size_t slots = graph->nodes.count;
  uint32_t *stack = NULL;
  RONDO_TRY(rondo_allocate_items(&graph->allocator, slots, sizeof *stack, &stack));
  rondo_status status = rondo_allocate_items(&graph->allocator, slots, 1, &copy.is_after);
  if (status == RONDO_OK) {
    mark_after(&copy, stack);
    status = check_graph(&copy, graph, copy.is_after);
  }
  rondo_release(&graph->allocator, copy.is_after, slots, 1);
  rondo_release(&graph->allocator, stack, slots, sizeof *stack);
  return status;
}

/* Removing --------------------------------------------------------------------------------------------------------- */

typedef struct bridge_edges {
  rondo_graph *graph;
  const unsigned char *is_removed; /* by slot */
  RONDO_ARRAY(uint32_t) from, to;
} bridge_edges;

static rondo_status put_bridge(bridge_edges *b, uint32_t from, uint32_t to) {
  rondo_allocator *allocator = &b->graph->allocator;
  RONDO_TRY(rondo_array_reserve(allocator, &b->from, b->from.count + 1));
  RONDO_TRY(rondo_array_reserve(allocator, &b->to, b->to.count + 1));
  RONDO_TRY(rondo_graph_link_edges(b->graph, &from, &to, 1));
  b->from.items[b->from.count++] = from;
  b->to.items[b->to.count++] = to;
  return RONDO_OK;
}

static bool has_edge(const rondo_graph *graph, uint32_t from, uint32_t to) {
  const rondo_slots *dependencies = &rondo_graph_at(graph, to)->dependencies;
  for (size_t i = 0; i < dependencies->count; i++)
    if (dependencies->items[i] == from) return true;
  return false;
}

/* Adds edges from each remaining predecessor of the node to all of its successors. Removed predecessors were bridged
 * before. */
static rondo_status bridge(bridge_edges *b, uint32_t slot) {
  const rondo_graph_node *node = rondo_graph_at(b->graph, slot);
  for (size_t i = 0; i < node->dependencies.count; i++) {
    const uint32_t from = node->dependencies.items[i];
    if (b->is_removed[from]) continue;
    for (size_t k = 0; k < node->dependents.count; k++) {
      const uint32_t to = node->dependents.items[k];
      if (!has_edge(b->graph, from, to)) RONDO_TRY(put_bridge(b, from, to));
    }
  }
  return RONDO_OK;
}

/* Counts the edges whose ends both remain. */
static uint32_t count_left(const bridge_edges *b) {
  uint32_t left = 0;
  for (size_t i = 0; i < b->to.count; i++) left += !b->is_removed[b->to.items[i]];
  return left;
}

static rondo_status remove_copies(bridge_edges *b, const uint32_t *slots, size_t count) {
  rondo_status status = RONDO_OK;
  for (size_t i = 0; status == RONDO_OK && i < count; i++) status = bridge(b, slots[i]);
  if (status != RONDO_OK) {
    rondo_status_ignore(rondo_graph_erase_edges(b->graph, b->from.items, b->to.items, b->from.count),
                        "removing edges that were just added cannot fail; the first failure is reported");
    return status;
  }
  for (size_t i = 0; i < count; i++) RONDO_TRY(rondo_graph_erase(b->graph, slots[i]));
  rondo_address_space_note_removal(b->graph);
  return RONDO_OK;
}

rondo_status rondo_audit_remove_copies(rondo_graph *graph, const uint32_t *slots, size_t count, uint32_t *out_edges) {
  const size_t capacity = graph->nodes.count;
  assert(count > 0 && count <= capacity);
  unsigned char *is_removed = NULL;
  RONDO_TRY(rondo_allocate_items(&graph->allocator, capacity, 1, &is_removed));
  for (size_t i = 0; i < count; i++) is_removed[slots[i]] = 1;
  bridge_edges b = {.graph = graph, .is_removed = is_removed};
  const rondo_status status = remove_copies(&b, slots, count);
  if (status == RONDO_OK) *out_edges = count_left(&b);
  rondo_array_free(&graph->allocator, &b.from);
  rondo_array_free(&graph->allocator, &b.to);
  rondo_release(&graph->allocator, is_removed, capacity, 1);
  return status;
}
