/* SPDX-License-Identifier: MIT
 * Lifetimes: passing them to the planner, and logging those of a graph. The graph's alloc and free nodes at one address
 * alternate in the order of their numbers (alloc_node_address.c). A free of what the graph does not allocate ends a
 * block, if it frees one.
 */
#include "memory/profile/lifetime_log.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/binary_search.h"
#include "base/error.h"
#include "graph/node_name.h"
#include "graph/topological_order.h"
#include "memory/arena/arena_internal.h"
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
  rondo_plan_options asked = {RONDO_PLAN_OPTIONS_INIT};
  if (options != NULL) asked = *options;
  if (asked.allocator == NULL) asked.allocator = allocator;
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
  const rondo_status status = rondo_plan_make(&problem, &asked, out_plan);
  rondo_release(allocator, items, count, sizeof(rondo_plan_item));
  return status;
}

/* Ordered graphs -------------------------------------------------------------------------------------------------- */

static void count_edges(rondo_ordered_graph *ordered) {
  uint32_t sum = 0;
  for (size_t i = 0; i < ordered->flat.node_count; i++) {
    ordered->starts[i] = sum;
    sum += (uint32_t)rondo_graph_at(ordered->graph, ordered->slots[i])->dependents.count;
  }
  ordered->starts[ordered->flat.node_count] = sum;
}

/* Walks the edges by their second nodes, in order, so that each node's successors ascend. */
static void fill_successors(rondo_ordered_graph *ordered) {
  const size_t count = ordered->flat.node_count;
  for (size_t i = 0; i < count; i++) {
    const rondo_slots *dependencies = &rondo_graph_at(ordered->graph, ordered->slots[i])->dependencies;
    for (size_t k = 0; k < dependencies->count; k++)
      ordered->successors[ordered->starts[ordered->places[dependencies->items[k]]]++] = (uint32_t)i;
  }
  for (size_t i = count; i > 0; i--) ordered->starts[i] = ordered->starts[i - 1];
  ordered->starts[0] = 0;
}

static rondo_status allocate_order(rondo_ordered_graph *ordered) {
  const rondo_graph *graph = ordered->graph;
  const rondo_allocator *allocator = &graph->allocator;
  size_t edges = 0;
  for (size_t i = 0; i < graph->nodes.count; i++) edges += graph->nodes.items[i].dependencies.count;
  if (edges > UINT32_MAX)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                      "a graph of %zu edges cannot be planned: at most %" PRIu32 " are supported: split the graph",
                      edges, UINT32_MAX);
  RONDO_TRY(rondo_allocate_items(allocator, graph->nodes.count, sizeof(uint32_t), &ordered->places));
  RONDO_TRY(rondo_allocate_items(allocator, (size_t)graph->live_count + 1, sizeof(uint32_t), &ordered->starts));
  RONDO_TRY(rondo_allocate_items(allocator, edges, sizeof(uint32_t), &ordered->successors));
  ordered->edge_count = edges;
  return RONDO_OK;
}

rondo_status rondo_ordered_graph_make(const rondo_graph *graph, rondo_ordered_graph *out) {
  *out = (rondo_ordered_graph){.graph = graph, .flat.node_count = graph->live_count};
  RONDO_TRY(rondo_graph_order(graph, &out->slots));
  RONDO_TRY(allocate_order(out));
  for (uint32_t i = 0; i < graph->live_count; i++) out->places[out->slots[i]] = i;
  count_edges(out);
  fill_successors(out);
  out->flat.successor_start = out->starts;
  out->flat.successors = out->successors;
  return RONDO_OK;
}

void rondo_ordered_graph_free(rondo_ordered_graph *ordered) {
  const rondo_allocator *allocator = &ordered->graph->allocator;
  const size_t count = ordered->flat.node_count;
  rondo_release(allocator, ordered->successors, ordered->edge_count, sizeof(uint32_t));
  if (ordered->starts != NULL) rondo_release(allocator, ordered->starts, count + 1, sizeof(uint32_t));
  rondo_release(allocator, ordered->places, ordered->graph->nodes.count, sizeof(uint32_t));
  rondo_release(allocator, ordered->slots, count, sizeof(uint32_t));
}

/* Making ---------------------------------------------------------------------------------------------------------- */

static size_t edge_count(const rondo_flat_edges *edges) {
  return edges->node_count == 0 ? 0 : edges->successor_start[edges->node_count];
}

static rondo_status copy_edges(rondo_noted_lifetimes *noted, const rondo_flat_edges *edges) {
  const size_t nodes = edges->node_count, count = edge_count(edges);
  RONDO_TRY(rondo_allocate_items(&noted->allocator, nodes + 1, sizeof *noted->starts, &noted->starts));
  noted->node_count = (uint32_t)nodes;
  if (nodes == 0) return RONDO_OK;
  memcpy(noted->starts, edges->successor_start, (nodes + 1) * sizeof *noted->starts);
  RONDO_TRY(rondo_allocate_items(&noted->allocator, count, sizeof *noted->successors, &noted->successors));
  if (count > 0) memcpy(noted->successors, edges->successors, count * sizeof *noted->successors);
  return RONDO_OK;
}

static int compare_ends(const void *a, const void *b) {
  const rondo_noted_end *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  return (x->node > y->node) - (x->node < y->node);
}

/* Keeps the first end of each key. */
static rondo_status copy_ends(rondo_noted_lifetimes *noted, const rondo_noted_end *ends, size_t count) {
  if (count == 0) return RONDO_OK;
  RONDO_TRY(rondo_array_reserve(&noted->allocator, &noted->ends, count));
  memcpy(noted->ends.items, ends, count * sizeof *ends);
  qsort(noted->ends.items, count, sizeof *ends, compare_ends);
  for (size_t i = 0; i < count; i++)
    if (noted->ends.count == 0 || noted->ends.items[noted->ends.count - 1].key != noted->ends.items[i].key)
      noted->ends.items[noted->ends.count++] = noted->ends.items[i];
  return RONDO_OK;
}

static rondo_status copy_lifetimes(rondo_noted_lifetimes *noted, const rondo_lifetime *lifetimes, size_t count) {
  if (count == 0) return RONDO_OK;
  RONDO_TRY(rondo_array_reserve(&noted->allocator, &noted->lifetimes, count));
  memcpy(noted->lifetimes.items, lifetimes, count * sizeof *lifetimes);
  noted->lifetimes.count = count;
  return RONDO_OK;
}

rondo_status rondo_noted_lifetimes_make(const rondo_allocator *allocator, const rondo_flat_edges *edges,
                                        const rondo_lifetime *lifetimes, size_t count, const rondo_noted_end *ends,
                                        size_t end_count, rondo_noted_lifetimes **out) {
  rondo_noted_lifetimes *noted;
  *out = NULL;
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *noted, &noted));
  noted->allocator = *allocator;
  atomic_init(&noted->references, 1);
  rondo_status status = copy_edges(noted, edges);
  if (status == RONDO_OK) status = copy_lifetimes(noted, lifetimes, count);
  if (status == RONDO_OK) status = copy_ends(noted, ends, end_count);
  if (status != RONDO_OK) {
    rondo_noted_lifetimes_release(noted);
    return status;
  }
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
  const rondo_flat_edges edges = rondo_noted_edges(noted);
  rondo_release(&allocator, noted->successors, edge_count(&edges), sizeof *noted->successors);
  if (noted->starts != NULL)
    rondo_release(&allocator, noted->starts, (size_t)noted->node_count + 1, sizeof *noted->starts);
  rondo_array_free(&allocator, &noted->lifetimes);
  rondo_array_free(&allocator, &noted->ends);
  rondo_release(&allocator, noted, 1, sizeof *noted);
}

const rondo_noted_end *rondo_noted_find_end(const rondo_noted_lifetimes *noted, uint64_t key) {
  size_t low = 0, high = noted->ends.count;
  RONDO_BINARY_SEARCH(low, high, middle, noted->ends.items[middle].key < key)
  return low < noted->ends.count && noted->ends.items[low].key == key ? &noted->ends.items[low] : NULL;
}

/* An alloc or free node. */
typedef struct memory_event {
  const char *address;
  uint32_t slot;
  bool is_alloc;
  bool is_paired;      /* a free node: of an alloc node of the graph */
  uint32_t freed_slot; /* an alloc node: its free node; RONDO_NO_NODE when the graph does not free it */
} memory_event;

typedef struct noter {
  const rondo_graph *graph;
  rondo_ordered_graph ordered;
  RONDO_ARRAY(memory_event) events;
  RONDO_ARRAY(rondo_lifetime) lifetimes;
  RONDO_ARRAY(rondo_noted_end) ends;
} noter;

/* Pairing --------------------------------------------------------------------------------------------------------- */

static rondo_status collect_events(noter *self) {
  const rondo_graph *graph = self->graph;
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const rondo_graph_node *node = &graph->nodes.items[i];
    const bool is_alloc = node->live && node->params.kind == RONDO_NODE_ALLOC;
    if (!is_alloc && (!node->live || node->params.kind != RONDO_NODE_FREE)) continue;
    const char *address = is_alloc ? node->params.as.alloc.address : node->params.as.free_address;
    char label[RONDO_LABEL_BYTES];
    if (address == NULL)
      return rondo_fail_node(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, (uint32_t)i,
                             "%s has no address: dump the graph with its addresses",
                             rondo_node_label(label, &node->params, (uint32_t)i));
    const memory_event event = {
        .address = address, .slot = (uint32_t)i, .is_alloc = is_alloc, .freed_slot = RONDO_NO_NODE};
    RONDO_TRY(rondo_array_push(&graph->allocator, &self->events, &event));
  }
  return RONDO_OK;
}

static int compare_addresses(const void *a, const void *b) {
  const memory_event *x = a, *y = b;
  if (x->address != y->address) return (uintptr_t)x->address < (uintptr_t)y->address ? -1 : 1;
  return (x->slot > y->slot) - (x->slot < y->slot);
}
static int compare_slots(const void *a, const void *b) {
  const memory_event *x = a, *y = b;
  return (x->slot > y->slot) - (x->slot < y->slot);
}

/* A free node belongs to the last alloc node at its address that has a lower number. */
static void pair_events(noter *self) {
  const size_t count = self->events.count;
  if (count == 0) return;
  qsort(self->events.items, count, sizeof *self->events.items, compare_addresses);
  for (size_t i = 1; i < count; i++) {
    memory_event *before = &self->events.items[i - 1];
    memory_event *event = &self->events.items[i];
    event->is_paired = !event->is_alloc && before->is_alloc && before->address == event->address;
    if (event->is_paired) before->freed_slot = event->slot;
  }
  qsort(self->events.items, count, sizeof *self->events.items, compare_slots);
}

static rondo_status fail_backwards(const noter *self, const memory_event *event) {
  char label[RONDO_LABEL_BYTES];
  return rondo_fail_node(RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED, event->freed_slot,
                         "free node %" PRIu32 " comes before %s, whose memory it frees: add an edge to the free node",
                         event->freed_slot,
                         rondo_node_label(label, &rondo_graph_at(self->graph, event->slot)->params, event->slot));
}

static rondo_status add_lifetime(noter *self, const memory_event *event) {
  const rondo_alloc_node *alloc = &rondo_graph_at(self->graph, event->slot)->params.as.alloc;
  const uint32_t *places = self->ordered.places;
  rondo_lifetime lifetime = {.alloc = places[event->slot], .freed = RONDO_PLAN_FOREVER};
  if (event->freed_slot != RONDO_NO_NODE) lifetime.freed = places[event->freed_slot];
  if (lifetime.freed < lifetime.alloc) return fail_backwards(self, event);
  if (!rondo_pool_round(alloc->bytes, &lifetime.bytes))
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                      "an allocation of %zu bytes does not fit the address space", alloc->bytes);
  return rondo_array_push(&self->graph->allocator, &self->lifetimes, &lifetime);
}

/* A free of a block of the recording. */
static rondo_status add_end(noter *self, const memory_event *event) {
  const rondo_address_space *space = self->graph->device == NULL ? NULL : rondo_address_space_of(self->graph);
  for (size_t i = 0; space != NULL && i < space->blocks.count; i++) {
    const rondo_found_block *block = &space->blocks.items[i];
    if (block->record->base.address != event->address || block->key == 0) continue;
    const rondo_noted_end end = {.key = block->key, .node = self->ordered.places[event->slot]};
    return rondo_array_push(&self->graph->allocator, &self->ends, &end);
  }
  return RONDO_OK;
}

static rondo_status note_graph(noter *self, rondo_noted_lifetimes **out) {
  RONDO_TRY(rondo_ordered_graph_make(self->graph, &self->ordered));
  RONDO_TRY(collect_events(self));
  pair_events(self);
  for (size_t i = 0; i < self->events.count; i++) {
    const memory_event *event = &self->events.items[i];
    if (event->is_alloc) RONDO_TRY(add_lifetime(self, event));
    if (!event->is_alloc && !event->is_paired) RONDO_TRY(add_end(self, event));
  }
  return rondo_noted_lifetimes_make(&self->graph->allocator, &self->ordered.flat, self->lifetimes.items,
                                    self->lifetimes.count, self->ends.items, self->ends.count, out);
}

rondo_status rondo_noted_lifetimes_of_graph(const rondo_graph *graph, rondo_noted_lifetimes **out) {
  noter self = {.graph = graph, .ordered = {.graph = graph}};
  *out = NULL;
  const rondo_status status = note_graph(&self, out);
  rondo_ordered_graph_free(&self.ordered);
  rondo_array_free(&graph->allocator, &self.events);
  rondo_array_free(&graph->allocator, &self.lifetimes);
  rondo_array_free(&graph->allocator, &self.ends);
  return status;
}
