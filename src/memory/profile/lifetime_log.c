/* SPDX-License-Identifier: MIT
 * Lifetimes: passing them to the planner, and logging those of a graph.
 */
#include "memory/profile/lifetime_log.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/binary_search.h"
#include "base/error.h"
#include "graph/node_name.h"
#include "graph/topological_order.h"
#include "memory/graph_memory/address_reuse.h"
#include "memory/memory_check.h"
#include "memory/pool/block_pool.h"

/* Planning -------------------------------------------------------------------------------------------------------- */

bool rondo_lifetimes_is_line(const rondo_flat_edges *edges) {
  for (size_t i = 0; i + 1 < edges->node_count; i++) {
    const uint32_t start = edges->successor_start[i];
    if (start == edges->successor_start[i + 1] || edges->successors[start] != i + 1) return false;
  }
  return true;
}

rondo_status rondo_lifetimes_plan(const rondo_allocator *allocator, const rondo_flat_edges *edges,
                                  const rondo_lifetime *lifetimes, size_t count, const rondo_plan_options *options,
                                  rondo_plan **out_plan) {
  *out_plan = NULL;
  rondo_plan_item *items;
  rondo_plan_options used = {RONDO_PLAN_OPTIONS_INIT};
  if (options != NULL) used = *options;
  if (used.allocator == NULL) used.allocator = allocator;
  const rondo_plan_order nodes = {.node_count = (uint32_t)edges->node_count,
                                  .successor_start = edges->successor_start,
                                  .successors = edges->successors};
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *items, &items));
  for (size_t i = 0; i < count; i++) {
    assert(lifetimes[i].alloc < lifetimes[i].freed);
    items[i] = (rondo_plan_item){.bytes = lifetimes[i].bytes,
                                 .alignment = RONDO_BLOCK_ALIGNMENT,
                                 .lower = lifetimes[i].alloc,
                                 .upper = lifetimes[i].freed};
  }
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = items, .count = count,
                                      .order = rondo_lifetimes_is_line(edges) ? NULL : &nodes};
  const rondo_status status = rondo_plan_make(&problem, &used, out_plan);
  rondo_release(allocator, items, count, sizeof(rondo_plan_item));
  return status;
}

/* Logs ------------------------------------------------------------------------------------------------------------ */

void rondo_lifetime_draft_free(const rondo_allocator *allocator, rondo_lifetime_draft *draft) {
  rondo_array_free(allocator, &draft->edges);
  rondo_array_free(allocator, &draft->lifetimes);
  rondo_array_free(allocator, &draft->ends);
}

/* A counting sort by `from`, which is filled from the end. */
static rondo_status group_edges(rondo_noted_lifetimes *noted, const rondo_lifetime_draft *draft) {
  const size_t count = draft->edges.count;
  const rondo_noted_edge *edges = draft->edges.items;
  if (count > UINT32_MAX)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                      "a graph of %zu edges cannot be planned: at most %" PRIu32 " are supported: split the graph",
                      count, UINT32_MAX);
  RONDO_TRY(
      rondo_allocate_items(&noted->allocator, (size_t)draft->node_count + 1, sizeof *noted->starts, &noted->starts));
  noted->node_count = draft->node_count;
  RONDO_TRY(rondo_allocate_items(&noted->allocator, count, sizeof *noted->successors, &noted->successors));
  for (size_t i = 0; i < count; i++) noted->starts[edges[i].from]++;
  for (size_t i = 1; i <= noted->node_count; i++) noted->starts[i] += noted->starts[i - 1];
  for (size_t i = count; i-- > 0;) noted->successors[--noted->starts[edges[i].from]] = edges[i].to;
  return RONDO_OK;
}

static int compare_ends(const void *a, const void *b) {
  const rondo_noted_end *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  return (x->node > y->node) - (x->node < y->node);
}

/* Keeps the first end of each key. */
static void sort_ends(rondo_noted_lifetimes *noted) {
  rondo_noted_end *ends = noted->ends.items;
  size_t kept = 0;
  if (noted->ends.count > 0) qsort(ends, noted->ends.count, sizeof *ends, compare_ends);
  for (size_t i = 0; i < noted->ends.count; i++)
    if (kept == 0 || ends[kept - 1].key != ends[i].key) ends[kept++] = ends[i];
  noted->ends.count = kept;
}

rondo_status rondo_noted_lifetimes_make(const rondo_allocator *allocator, const rondo_lifetime_draft *draft,
                                        rondo_noted_lifetimes **out) {
  rondo_noted_lifetimes *noted;
  *out = NULL;
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *noted, &noted));
  noted->allocator = *allocator;
  atomic_init(&noted->references, 1);
  rondo_status status = group_edges(noted, draft);
  if (status == RONDO_OK) status = rondo_array_copy(allocator, &noted->lifetimes, &draft->lifetimes);
  if (status == RONDO_OK) status = rondo_array_copy(allocator, &noted->ends, &draft->ends);
  if (status != RONDO_OK) {
    rondo_noted_lifetimes_release(noted);
    return status;
  }
  sort_ends(noted);
  rondo_noted_lifetimes_check(noted);
  *out = noted;
  return RONDO_OK;
}

void rondo_noted_lifetimes_retain(rondo_noted_lifetimes *noted) {
  atomic_fetch_add_explicit(&noted->references, 1, memory_order_relaxed);
}

void rondo_noted_lifetimes_release(rondo_noted_lifetimes *noted) {
  if (noted == NULL || atomic_fetch_sub_explicit(&noted->references, 1, memory_order_acq_rel) > 1) return;
  const rondo_allocator allocator = noted->allocator;
  if (noted->starts != NULL) {
    rondo_release(&allocator, noted->successors, noted->starts[noted->node_count], sizeof *noted->successors);
    rondo_release(&allocator, noted->starts, (size_t)noted->node_count + 1, sizeof *noted->starts);
  }
  rondo_array_free(&allocator, &noted->lifetimes);
  rondo_array_free(&allocator, &noted->ends);
  rondo_release(&allocator, noted, 1, sizeof *noted);
}

const rondo_noted_end *rondo_noted_find_end(const rondo_noted_lifetimes *noted, uint64_t key) {
  size_t low = 0, high = noted->ends.count;
  RONDO_BINARY_SEARCH(low, high, middle, noted->ends.items[middle].key < key)
  return low < noted->ends.count && noted->ends.items[low].key == key ? &noted->ends.items[low] : NULL;
}

/* Graphs ---------------------------------------------------------------------------------------------------------- */

typedef struct noter {
  const rondo_graph *graph;
  uint32_t *slots;     /* in topological order */
  uint32_t *positions; /* by slot: its index in that order */
  rondo_address_uses uses;
  rondo_lifetime_draft draft;
} noter;

static rondo_status add_nodes(noter *self) {
  const rondo_graph *graph = self->graph;
  RONDO_TRY(rondo_graph_order(graph, &self->slots));
  RONDO_TRY(rondo_allocate_items(&graph->allocator, graph->nodes.count, sizeof *self->positions, &self->positions));
  self->draft.node_count = graph->live_count;
  for (uint32_t i = 0; i < graph->live_count; i++) self->positions[self->slots[i]] = i;
  for (uint32_t i = 0; i < graph->live_count; i++) {
    const rondo_slots *before = &rondo_graph_at(graph, self->slots[i])->dependencies;
    for (size_t k = 0; k < before->count; k++) {
      const rondo_noted_edge edge = {.from = self->positions[before->items[k]], .to = i};
      RONDO_TRY(rondo_array_push(&graph->allocator, &self->draft.edges, &edge));
    }
  }
  return RONDO_OK;
}

static rondo_status fail_backwards(const noter *self, const rondo_address_use *use) {
  char label[RONDO_LABEL_BYTES];
  return rondo_fail_node(RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED, use->free_slot,
                         "free node %" PRIu32 " comes before %s, whose memory it frees: add an edge to the free node",
                         use->free_slot,
                         rondo_node_label(label, &rondo_graph_at(self->graph, use->slot)->params, use->slot));
}

static rondo_status add_lifetime(noter *self, const rondo_address_use *use) {
  rondo_lifetime lifetime = {.alloc = self->positions[use->slot], .freed = RONDO_PLAN_FOREVER};
  if (use->free_slot != RONDO_NO_NODE) lifetime.freed = self->positions[use->free_slot];
  if (lifetime.freed < lifetime.alloc) return fail_backwards(self, use);
  if (!rondo_pool_round(use->bytes, &lifetime.bytes))
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                      "an allocation of %zu bytes does not fit the address space: allocate less", use->bytes);
  return rondo_array_push(&self->graph->allocator, &self->draft.lifetimes, &lifetime);
}

static rondo_status add_end(noter *self, const rondo_address_use *use) {
  if (use->free_slot == RONDO_NO_NODE || use->block->key == 0) return RONDO_OK;
  const rondo_noted_end end = {.key = use->block->key, .node = self->positions[use->free_slot]};
  return rondo_array_push(&self->graph->allocator, &self->draft.ends, &end);
}

static rondo_status note_graph(noter *self, rondo_noted_lifetimes **out) {
  RONDO_TRY(add_nodes(self));
  RONDO_TRY(rondo_address_uses_list(self->graph, &self->uses));
  for (size_t i = 0; i < self->uses.count; i++) {
    const rondo_address_use *use = &self->uses.items[i];
    RONDO_TRY(use->block != NULL ? add_end(self, use) : add_lifetime(self, use));
  }
  return rondo_noted_lifetimes_make(&self->graph->allocator, &self->draft, out);
}

rondo_status rondo_noted_lifetimes_of_graph(const rondo_graph *graph, rondo_noted_lifetimes **out) {
  const rondo_allocator *allocator = &graph->allocator;
  noter self = {.graph = graph};
  *out = NULL;
  const rondo_status status = note_graph(&self, out);
  rondo_release(allocator, self.slots, graph->live_count, sizeof *self.slots);
  rondo_release(allocator, self.positions, graph->nodes.count, sizeof *self.positions);
  rondo_array_free(allocator, &self.uses);
  rondo_lifetime_draft_free(allocator, &self.draft);
  return status;
}
