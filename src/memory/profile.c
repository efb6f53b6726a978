/* SPDX-License-Identifier: MIT
 * Making profiles: the alloc and free nodes of a graph are paired by their addresses, which alternate in the order of
 * making (placement.c), and planned on the graph's order.
 */
#include "memory/profile.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/versioned.h"
#include "device/device.h"
#include "memory/address_space.h"
#include "memory/block_pool.h"

/* An alloc or free node. */
typedef struct memory_event {
  const char *address;
  uint32_t slot;
  bool is_alloc;
  uint32_t freed_slot; /* of an alloc: RONDO_NO_NODE when the graph does not free it */
} memory_event;

typedef struct profiler {
  const rondo_graph *graph;
  rondo_ordered_graph ordered;
  RONDO_ARRAY(memory_event) events;
  RONDO_ARRAY(rondo_lifetime) lifetimes;
} profiler;

/* Pairing --------------------------------------------------------------------------------------------------------- */

static rondo_status collect_events(profiler *self) {
  const rondo_graph *graph = self->graph;
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const rondo_graph_node *node = &graph->nodes.items[i];
    const bool is_alloc = node->live && node->params.kind == RONDO_NODE_ALLOC;
    if (!is_alloc && (!node->live || node->params.kind != RONDO_NODE_FREE)) continue;
    const char *address = is_alloc ? node->params.as.alloc.address : node->params.as.free_address;
    char label[RONDO_LABEL_BYTES];
    if (address == NULL)
      return rondo_fail_node(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, (uint32_t)i,
                             "rondo_profile_create: %s has no address: dump the graph with its addresses",
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

/* A free node belongs to the alloc node at its address that was made last before it. */
static void pair_events(profiler *self) {
  const size_t count = self->events.count;
  if (count == 0) return;
  qsort(self->events.items, count, sizeof *self->events.items, compare_addresses);
  for (size_t i = 1; i < count; i++) {
    memory_event *before = &self->events.items[i - 1];
    const memory_event *event = &self->events.items[i];
    if (!event->is_alloc && before->is_alloc && before->address == event->address) before->freed_slot = event->slot;
  }
  qsort(self->events.items, count, sizeof *self->events.items, compare_slots);
}

static rondo_status fail_backwards(const profiler *self, const memory_event *event) {
  char label[RONDO_LABEL_BYTES];
  return rondo_fail_node(RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED, event->freed_slot,
                         "rondo_profile_create: free node %" PRIu32 " comes before %s, whose memory it frees",
                         event->freed_slot,
                         rondo_node_label(label, &rondo_graph_at(self->graph, event->slot)->params, event->slot));
}

static rondo_status add_lifetime(profiler *self, const memory_event *event) {
  const rondo_alloc_node *alloc = &rondo_graph_at(self->graph, event->slot)->params.as.alloc;
  const uint32_t *places = self->ordered.places;
  rondo_lifetime lifetime = {.alloc = places[event->slot], .freed = RONDO_PLAN_FOREVER};
  if (event->freed_slot != RONDO_NO_NODE) lifetime.freed = places[event->freed_slot];
  if (lifetime.freed < lifetime.alloc) return fail_backwards(self, event);
  if (!rondo_pool_round(alloc->bytes, &lifetime.bytes))
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                      "rondo_profile_create: an allocation of %zu bytes does not fit the address space", alloc->bytes);
  return rondo_array_push(&self->graph->allocator, &self->lifetimes, &lifetime);
}

/* Profiles -------------------------------------------------------------------------------------------------------- */

void rondo_profile_retain(rondo_profile *profile) {
  atomic_fetch_add_explicit(&profile->references, 1, memory_order_relaxed);
}

void rondo_profile_release(rondo_profile *profile) {
  if (atomic_fetch_sub_explicit(&profile->references, 1, memory_order_acq_rel) > 1) return;
  const rondo_allocator allocator = profile->allocator;
  rondo_array_free(&allocator, &profile->allocs);
  rondo_release(&allocator, profile, 1, sizeof *profile);
}

static rondo_status create_profile(const rondo_allocator *allocator, rondo_profile **out) {
  void *state;
  RONDO_TRY(rondo_allocate(allocator, 1, sizeof(rondo_profile), &state));
  *out = state;
  (*out)->allocator = *allocator;
  (*out)->plan.struct_size = sizeof(*out)->plan;
  atomic_init(&(*out)->references, 1);
  return RONDO_OK;
}

static rondo_status keep_plan(rondo_profile *profile, const rondo_lifetime *lifetimes, size_t count,
                              const rondo_plan *plan) {
  const size_t *offsets = rondo_plan_offsets(plan);
  RONDO_TRY(rondo_array_reserve(&profile->allocator, &profile->allocs, count));
  for (size_t i = 0; i < count; i++)
    profile->allocs.items[i] = (rondo_planned_alloc){.bytes = lifetimes[i].bytes, .offset = offsets[i]};
  profile->allocs.count = count;
  return rondo_plan_get_info(plan, &profile->plan);
}

rondo_status rondo_profile_from_lifetimes(const rondo_allocator *allocator, const rondo_flat_edges *edges,
                                          const rondo_lifetime *lifetimes, size_t count,
                                          const rondo_plan_options *options, rondo_profile **out) {
  rondo_profile *profile;
  rondo_plan *plan;
  *out = NULL;
  RONDO_TRY(create_profile(allocator, &profile));
  rondo_status status = rondo_lifetimes_plan(allocator, edges, lifetimes, count, options, &plan);
  if (status == RONDO_OK) status = keep_plan(profile, lifetimes, count, plan);
  rondo_plan_destroy(plan);
  if (status != RONDO_OK) {
    rondo_profile_release(profile);
    return status;
  }
  *out = profile;
  return RONDO_OK;
}

/* Graphs ---------------------------------------------------------------------------------------------------------- */

static rondo_status plan_graph(profiler *self, const rondo_plan_options *options, rondo_profile **out) {
  RONDO_TRY(rondo_ordered_graph_make(self->graph, &self->ordered));
  RONDO_TRY(collect_events(self));
  pair_events(self);
  for (size_t i = 0; i < self->events.count; i++)
    if (self->events.items[i].is_alloc) RONDO_TRY(add_lifetime(self, &self->events.items[i]));
  return rondo_profile_from_lifetimes(&self->graph->allocator, &self->ordered.flat, self->lifetimes.items,
                                      self->lifetimes.count, options, out);
}

static void count_profile(const rondo_graph *graph) {
  const rondo_address_space *space = rondo_address_space_of(graph);
  rondo_device_memory *memory = space->memory;
  pthread_mutex_lock(&memory->lock);
  const bool departed = space->planned.serial == graph->serial && space->planned.departed;
  pthread_mutex_unlock(&memory->lock);
  atomic_fetch_add_explicit(&memory->profiles, 1, memory_order_relaxed);
  if (departed) atomic_fetch_add_explicit(&memory->replanned, 1, memory_order_relaxed);
}

static rondo_status profile_graph(const rondo_graph *graph, const rondo_plan_options *options, rondo_profile **out) {
  profiler self = {.graph = graph, .ordered = {.graph = graph}};
  const rondo_status status = plan_graph(&self, options, out);
  rondo_ordered_graph_free(&self.ordered);
  rondo_array_free(&graph->allocator, &self.events);
  rondo_array_free(&graph->allocator, &self.lifetimes);
  RONDO_TRY(status);
  if (graph->hold.object != NULL) graph->hold.retain(graph->hold.object);
  (*out)->hold = graph->hold;
  if (graph->device != NULL) count_profile(graph);
  return RONDO_OK;
}

rondo_status rondo_profile_create(const rondo_graph *graph, const rondo_plan_options *plan_options,
                                  rondo_profile **out_profile) {
  const char *const call = "rondo_profile_create";
  rondo_plan_options known;
  if (out_profile == NULL) return rondo_refuse_null(call, "out_profile");
  *out_profile = NULL;
  if (graph == NULL) return rondo_refuse_null(call, "the graph");
  RONDO_TRY(rondo_refuse_in_callback(call));
  RONDO_TRY(rondo_versioned_read("rondo_plan_options", plan_options, &known, sizeof known));
  known.struct_size = sizeof known;
  return profile_graph(graph, &known, out_profile);
}

void rondo_profile_destroy(rondo_profile *profile) {
  if (profile == NULL) return;
  if (profile->hold.object != NULL) profile->hold.release(profile->hold.object);
  rondo_profile_release(profile);
}

rondo_status rondo_profile_get_info(const rondo_profile *profile, rondo_profile_info *out_info) {
  const char *const call = "rondo_profile_get_info";
  if (profile == NULL || out_info == NULL) return rondo_refuse_null(call, profile == NULL ? "the profile" : "out_info");
  const rondo_profile_info info = {.struct_size = sizeof info,
                                   .optimal = profile->plan.optimal,
                                   .allocations = profile->allocs.count,
                                   .peak = profile->plan.peak,
                                   .lower_bound = profile->plan.lower_bound,
                                   .sum = profile->plan.sum,
                                   .placed = atomic_load_explicit(&profile->placed, memory_order_relaxed),
                                   .departures = atomic_load_explicit(&profile->departures, memory_order_relaxed)};
  return rondo_versioned_write("rondo_profile_info", &info, out_info, sizeof info);
}
