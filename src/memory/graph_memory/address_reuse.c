/* SPDX-License-Identifier: MIT
 * Address reuse. Removing a node or edges is allowed if the condition still holds for every pair of alloc nodes, by any
 * path. Clones share addresses but not edges, so each graph is checked on its own. Only pairs that a removed edge may
 * have ordered are checked, and none if there is another path around each edge.
 */
#include "memory/graph_memory/address_reuse.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/binary_search.h"
#include "base/error.h"
#include "graph/node_name.h"
#include "memory/graph_memory/graph_allocation.h"

/* The search for other paths is skipped for more edges than this. */
#define MAX_DETOURS 32

typedef struct removed_edge {
  uint32_t from, to;
} removed_edge;

typedef struct removal_check {
  const rondo_graph *graph;
  uint32_t slot;                   /* of the removed node, whose edges are removed too; RONDO_NO_NODE for none */
  RONDO_ARRAY(removed_edge) edges; /* by `from`, then `to` */
  rondo_address_uses uses;
  uint8_t *before, *after; /* by slot: whether the node is before or after a removed edge */
  uint8_t *reached;        /* by slot, for one search */
  uint32_t *stack;
} removal_check;

/* Uses ------------------------------------------------------------------------------------------------------------ */

/* The address of a live node of that kind; NULL for other nodes. */
static rondo_status find_address(const rondo_graph *graph, uint32_t slot, rondo_node_kind kind, const char **out) {
  const rondo_graph_node *node = &graph->nodes.items[slot];
  char label[RONDO_LABEL_BYTES];
  *out = NULL;
  if (!node->live || node->params.kind != kind) return RONDO_OK;
  *out = kind == RONDO_NODE_ALLOC ? node->params.as.alloc.address : node->params.as.free_address;
  if (*out != NULL) return RONDO_OK;
  return rondo_fail_node(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, slot,
                         "%s has no address: dump the graph with its addresses",
                         rondo_node_label(label, &node->params, slot));
}

static rondo_status push_use(const rondo_graph *graph, rondo_address_uses *uses, const rondo_graph_allocation *block,
                             uint32_t slot, const char *begin, size_t bytes) {
  const rondo_address_use use = {
      .block = block, .slot = slot, .free_slot = RONDO_NO_NODE, .begin = begin, .bytes = bytes};
  return rondo_array_push(&graph->allocator, uses, &use);
}

static rondo_status push_uses(const rondo_graph *graph, rondo_address_uses *uses) {
  const rondo_address_space *space = graph->device == NULL ? NULL : rondo_address_space_of(graph);
  for (size_t i = 0; space != NULL && i < space->block_count; i++) {
    const rondo_graph_allocation *block = space->allocations.items[i];
    RONDO_TRY(push_use(graph, uses, block, RONDO_NO_NODE, block->base.address, block->base.bytes));
  }
  for (uint32_t slot = 0; slot < graph->nodes.count; slot++) {
    const char *begin;
    RONDO_TRY(find_address(graph, slot, RONDO_NODE_ALLOC, &begin));
    if (begin == NULL) continue;
    RONDO_TRY(push_use(graph, uses, NULL, slot, begin, graph->nodes.items[slot].params.as.alloc.bytes));
  }
  return RONDO_OK;
}

/* Whether the use sorts before (address, slot). Blocks come first, because RONDO_NO_NODE + 1 is 0. */
static bool precedes(const rondo_address_use *use, const char *address, uint32_t slot) {
  if (use->begin != address) return (uintptr_t)use->begin < (uintptr_t)address;
  return (uint32_t)(use->slot + 1) < (uint32_t)(slot + 1);
}

static int compare_uses(const void *a, const void *b) {
  const rondo_address_use *x = *(const rondo_address_use *const *)a, *y = *(const rondo_address_use *const *)b;
  return precedes(x, y->begin, y->slot) ? -1 : precedes(y, x->begin, x->slot);
}

/* A free node ends the last use at its address that has a lower slot (alloc_node_address.c). */
static rondo_status note_frees(const rondo_graph *graph, rondo_address_use *const *sorted, size_t count) {
  for (uint32_t slot = 0; slot < graph->nodes.count; slot++) {
    const char *address;
    RONDO_TRY(find_address(graph, slot, RONDO_NODE_FREE, &address));
    if (address == NULL) continue;
    size_t low = 0, high = count;
    RONDO_BINARY_SEARCH(low, high, middle, precedes(sorted[middle], address, slot))
    if (low == 0) continue;
    rondo_address_use *use = sorted[low - 1];
    if (use->begin == address && use->free_slot == RONDO_NO_NODE) use->free_slot = slot;
  }
  return RONDO_OK;
}

rondo_status rondo_address_uses_list(const rondo_graph *graph, rondo_address_uses *out) {
  rondo_address_use **sorted;
  RONDO_TRY(push_uses(graph, out));
  const size_t count = out->count;
  RONDO_TRY(rondo_allocate_items(&graph->allocator, count, sizeof *sorted, &sorted));
  for (size_t i = 0; i < count; i++) sorted[i] = &out->items[i];
  if (count > 0) qsort(sorted, count, sizeof *sorted, compare_uses);
  const rondo_status status = note_frees(graph, sorted, count);
  rondo_release(&graph->allocator, sorted, count, sizeof *sorted);
  return status;
}

/* Removed edges --------------------------------------------------------------------------------------------------- */

static int compare_edges(const void *a, const void *b) {
  const removed_edge *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  return (x->to > y->to) - (x->to < y->to);
}

static bool is_removed(const removal_check *removal, uint32_t from, uint32_t to) {
  const removed_edge edge = {.from = from, .to = to};
  return removal->edges.count > 0 &&
         bsearch(&edge, removal->edges.items, removal->edges.count, sizeof edge, compare_edges) != NULL;
}

static rondo_status add_edge(removal_check *removal, uint32_t from, uint32_t to) {
  const removed_edge edge = {.from = from, .to = to};
  return rondo_array_push(&removal->graph->allocator, &removal->edges, &edge);
}

static rondo_status collect_edges(removal_check *removal, const uint32_t *from, const uint32_t *to, size_t count) {
  for (size_t i = 0; i < count; i++) RONDO_TRY(add_edge(removal, from[i], to[i]));
  if (removal->slot != RONDO_NO_NODE) {
    const rondo_graph_node *node = rondo_graph_at(removal->graph, removal->slot);
    for (size_t i = 0; i < node->dependencies.count; i++)
      RONDO_TRY(add_edge(removal, node->dependencies.items[i], removal->slot));
    for (size_t i = 0; i < node->dependents.count; i++)
      RONDO_TRY(add_edge(removal, removal->slot, node->dependents.items[i]));
  }
  if (removal->edges.count > 1)
    qsort(removal->edges.items, removal->edges.count, sizeof *removal->edges.items, compare_edges);
  return RONDO_OK;
}

/* Walking --------------------------------------------------------------------------------------------------------- */

/* Marks the nodes before or after the slots on the stack; without `whole`, not across removed edges. */
static void spread(const removal_check *removal, size_t depth, bool backwards, bool whole, uint8_t *marks) {
  while (depth > 0) {
    const uint32_t at = removal->stack[--depth];
    const rondo_graph_node *node = rondo_graph_at(removal->graph, at);
    const rondo_slots *next = backwards ? &node->dependencies : &node->dependents;
    for (size_t i = 0; i < next->count; i++) {
      const uint32_t slot = next->items[i];
      if (marks[slot] || (!whole && is_removed(removal, backwards ? slot : at, backwards ? at : slot))) continue;
      marks[slot] = 1;
      removal->stack[depth++] = slot;
    }
  }
}

/* Marks the ends of the removed edges, and the nodes before or after them. */
static void mark_sides(const removal_check *removal) {
  for (int backwards = 0; backwards < 2; backwards++) {
    uint8_t *marks = backwards ? removal->before : removal->after;
    size_t depth = 0;
    for (size_t i = 0; i < removal->edges.count; i++) {
      const uint32_t end = backwards ? removal->edges.items[i].from : removal->edges.items[i].to;
      if (marks[end]) continue;
      marks[end] = 1;
      removal->stack[depth++] = end;
    }
    spread(removal, depth, backwards, true, marks);
  }
}

/* Marks the nodes that come before the slot without the removed edges. */
static void reach_back(const removal_check *removal, uint32_t slot) {
  memset(removal->reached, 0, removal->graph->nodes.count);
  removal->stack[0] = slot;
  spread(removal, 1, true, false, removal->reached);
}

/* Whether there is another path around each removed edge, so that all nodes stay ordered. */
static bool has_detours(const removal_check *removal) {
  const rondo_graph *graph = removal->graph;
  if (removal->slot != RONDO_NO_NODE && rondo_graph_at(graph, removal->slot)->params.kind == RONDO_NODE_FREE)
    return false;
  if (removal->edges.count > MAX_DETOURS) return false;
  for (size_t i = 0; i < removal->edges.count; i++) {
    const removed_edge *edge = &removal->edges.items[i];
    if (edge->to == removal->slot) continue;
    reach_back(removal, edge->to);
    const rondo_slots alone = {.items = (uint32_t[]){edge->from}, .count = 1};
    const rondo_slots *ends =
        edge->from == removal->slot ? &rondo_graph_at(graph, removal->slot)->dependencies : &alone;
    for (size_t k = 0; k < ends->count; k++)
      if (!removal->reached[ends->items[k]]) return false;
  }
  return true;
}

/* Pairs ----------------------------------------------------------------------------------------------------------- */

static rondo_status fail_in_use(const removal_check *removal, const rondo_address_use *earlier,
                                const rondo_address_use *later) {
  const rondo_graph_node *reusing = rondo_graph_at(removal->graph, later->slot);
  char first[RONDO_LABEL_BYTES], second[RONDO_LABEL_BYTES];
  if (earlier->block != NULL)
    (void)rondo_allocation_label(first, &earlier->block->base);
  else
    rondo_node_label(first, &rondo_graph_at(removal->graph, earlier->slot)->params, earlier->slot);
  return rondo_fail_node(RONDO_INVALID_STATE, RONDO_REASON_EDGE_IN_USE, later->slot,
                         "%s has bytes of %s and must be ordered after its free (node %" PRIu32
                         "): remove node %" PRIu32 " first, or keep a path %" PRIu32 " -> %" PRIu32,
                         rondo_node_label(second, &reusing->params, later->slot), first, earlier->free_slot,
                         later->slot, earlier->free_slot, later->slot);
}

static bool overlap(const rondo_address_use *a, const rondo_address_use *b) {
  return a->begin < b->begin + b->bytes && b->begin < a->begin + a->bytes;
}

static rondo_status check_use(const removal_check *removal, size_t index) {
  const rondo_address_use *later = &removal->uses.items[index];
  bool searched = false;
  if (later->block != NULL || later->slot == removal->slot || !removal->after[later->slot]) return RONDO_OK;
  for (size_t i = 0; i < index; i++) {
    const rondo_address_use *earlier = &removal->uses.items[i];
    const bool is_removed_too = earlier->block == NULL && earlier->slot == removal->slot;
    if (is_removed_too || earlier->free_slot == RONDO_NO_NODE) continue;
    if (!removal->before[earlier->free_slot] || !overlap(earlier, later)) continue;
    if (!searched) reach_back(removal, later->slot);
    searched = true;
    if (!removal->reached[earlier->free_slot]) return fail_in_use(removal, earlier, later);
  }
  return RONDO_OK;
}

static rondo_status check_pairs(removal_check *removal) {
  mark_sides(removal);
  if (has_detours(removal)) return RONDO_OK;
  RONDO_TRY(rondo_address_uses_list(removal->graph, &removal->uses));
  for (size_t i = 0; i < removal->uses.count; i++) RONDO_TRY(check_use(removal, i));
  return RONDO_OK;
}

static rondo_status check_removal(removal_check *removal, const uint32_t *from, const uint32_t *to, size_t count) {
  const rondo_allocator *allocator = &removal->graph->allocator;
  const size_t slots = removal->graph->nodes.count;
  void *marks, *stack;
  RONDO_TRY(collect_edges(removal, from, to, count));
  RONDO_TRY(rondo_allocate(allocator, slots, 3, &marks));
  rondo_status status = rondo_allocate(allocator, slots + 1, sizeof(uint32_t), &stack);
  if (status == RONDO_OK) {
    removal->before = marks;
    removal->after = removal->before + slots;
    removal->reached = removal->after + slots;
    removal->stack = stack;
    status = check_pairs(removal);
    rondo_release(allocator, stack, slots + 1, sizeof(uint32_t));
  }
  rondo_release(allocator, marks, slots, 3);
  return status;
}

rondo_status rondo_address_space_check_removal(const rondo_graph *graph, uint32_t slot, const uint32_t *from,
                                               const uint32_t *to, size_t count) {
  if (!graph->has_memory || graph->device == NULL) return RONDO_OK; /* without a device there are no addresses */
  if (rondo_address_space_of(graph)->relocate) return RONDO_OK;     /* these are not shared */
  removal_check removal = {.graph = graph, .slot = slot};
  const rondo_status status = check_removal(&removal, from, to, count);
  rondo_array_free(&graph->allocator, &removal.edges);
  rondo_array_free(&graph->allocator, &removal.uses);
  return status;
}
