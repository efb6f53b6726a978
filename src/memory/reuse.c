/* SPDX-License-Identifier: MIT
 * What address reuse relies on: where two alloc nodes of a graph cover the same bytes, the free node of the earlier one
 * comes before the later one. Removing a node or edges is allowed when that still holds for every such pair afterwards,
 * by whatever path; else it is refused, naming the pair (decided from the graph alone, so that clones, which share
 * addresses but not edges, are each asked for themselves).
 */
#include <inttypes.h>

#include "base/error.h"
#include "memory/address_space.h"

/* An alloc node with the free node that ends its bytes' use. */
typedef struct extent {
  uint32_t slot, free_slot; /* RONDO_NO_NODE when the graph does not free it */
  const char *begin, *end;
} extent;

typedef struct removal_check {
  const rondo_graph *graph;
  uint32_t slot;
  const uint32_t *from, *to;
  size_t edge_count;
  RONDO_ARRAY(extent) extents; /* by slot */
  bool *marks;
  uint32_t *stack;
} removal_check;

static bool is_removed_edge(const removal_check *removal, uint32_t from, uint32_t to) {
  if (from == removal->slot || to == removal->slot) return true;
  for (size_t i = 0; i < removal->edge_count; i++)
    if (removal->from[i] == from && removal->to[i] == to) return true;
  return false;
}

/* Frees follow their allocs in slot order, see placement.c. */
static void note_free(removal_check *removal, uint32_t slot, const void *address) {
  for (size_t i = removal->extents.count; i-- > 0;) {
    extent *at = &removal->extents.items[i];
    if (at->begin != address) continue;
    if (at->free_slot == RONDO_NO_NODE) at->free_slot = slot;
    return;
  }
}

static rondo_status collect_extents(removal_check *removal) {
  const rondo_graph *graph = removal->graph;
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const rondo_graph_node *node = &graph->nodes.items[i];
    if (!node->live) continue;
    const uint32_t slot = (uint32_t)i;
    if (node->params.kind == RONDO_NODE_FREE) note_free(removal, slot, node->params.as.free_address);
    if (node->params.kind != RONDO_NODE_ALLOC) continue;
    const char *begin = node->params.as.alloc.address;
    const extent at = {
        .slot = slot, .free_slot = RONDO_NO_NODE, .begin = begin, .end = begin + node->params.as.alloc.bytes};
    RONDO_TRY(rondo_array_push(&graph->allocator, &removal->extents, &at));
  }
  return RONDO_OK;
}

/* Marks what comes before `slot` when the removal is done. */
static void mark_before(removal_check *removal, uint32_t slot) {
  const rondo_graph *graph = removal->graph;
  for (size_t i = 0; i < graph->nodes.count; i++) removal->marks[i] = false;
  size_t depth = 0;
  removal->stack[depth++] = slot;
  while (depth > 0) {
    const uint32_t at = removal->stack[--depth];
    const rondo_slots *dependencies = &rondo_graph_at(graph, at)->dependencies;
    for (size_t i = 0; i < dependencies->count; i++) {
      const uint32_t before = dependencies->items[i];
      if (removal->marks[before] || is_removed_edge(removal, before, at)) continue;
      removal->marks[before] = true;
      removal->stack[depth++] = before;
    }
  }
}

static rondo_status fail_in_use(const removal_check *removal, const extent *earlier, const extent *later) {
  const rondo_graph_node *freed = rondo_graph_at(removal->graph, earlier->slot);
  const rondo_graph_node *reusing = rondo_graph_at(removal->graph, later->slot);
  char first[RONDO_LABEL_BYTES], second[RONDO_LABEL_BYTES];
  return rondo_fail_node(RONDO_INVALID_STATE, RONDO_REASON_EDGE_IN_USE, later->slot,
                         "%s has bytes of %s and relies on being ordered after its free (node %" PRIu32
                         "): remove node %" PRIu32 " first, or keep a path %" PRIu32 " -> %" PRIu32,
                         rondo_node_label(second, &reusing->params, later->slot),
                         rondo_node_label(first, &freed->params, earlier->slot), earlier->free_slot, later->slot,
                         earlier->free_slot, later->slot);
}

static bool overlap(const extent *a, const extent *b) { return a->begin < b->end && b->begin < a->end; }

static rondo_status check_extent(removal_check *removal, size_t index) {
  const extent *later = &removal->extents.items[index];
  bool marked = false;
  for (size_t i = 0; i < index; i++) {
    const extent *earlier = &removal->extents.items[i];
    if (earlier->slot == removal->slot || earlier->free_slot == RONDO_NO_NODE || !overlap(earlier, later)) continue;
    if (!marked) mark_before(removal, later->slot);
    marked = true;
    if (!removal->marks[earlier->free_slot]) return fail_in_use(removal, earlier, later);
  }
  return RONDO_OK;
}

static rondo_status check_extents(removal_check *removal) {
  RONDO_TRY(collect_extents(removal));
  for (size_t i = 0; i < removal->extents.count; i++)
    if (removal->extents.items[i].slot != removal->slot) RONDO_TRY(check_extent(removal, i));
  return RONDO_OK;
}

rondo_status rondo_address_space_check_removal(const rondo_graph *graph, uint32_t slot, const uint32_t *from,
                                               const uint32_t *to, size_t count) {
  if (!graph->has_memory || graph->device == NULL) return RONDO_OK; /* without a device there are no addresses */
  if (rondo_address_space_of(graph)->relocate) return RONDO_OK;     /* nor are these relied on */
  removal_check removal = {.graph = graph, .slot = slot, .from = from, .to = to, .edge_count = count};
  const size_t slots = graph->nodes.count;
  void *marks = NULL, *stack = NULL;
  rondo_status status = rondo_allocate(&graph->allocator, slots, sizeof(bool), &marks);
  if (status == RONDO_OK) status = rondo_allocate(&graph->allocator, slots + 1, sizeof(uint32_t), &stack);
  if (status == RONDO_OK) {
    removal.marks = marks;
    removal.stack = stack;
    status = check_extents(&removal);
  }
  rondo_array_free(&graph->allocator, &removal.extents);
  rondo_release(&graph->allocator, stack, slots + 1, sizeof(uint32_t));
  rondo_release(&graph->allocator, marks, slots, sizeof(bool));
  return status;
}
