/* SPDX-License-Identifier: MIT
 * Making profiles of lifetimes and of graphs.
 */
#include "memory/profile/memory_profile.h"

#include "base/error.h"
#include "base/versioned_struct.h"
#include "device/device.h"
#include "memory/graph_memory/address_space.h"
#include "memory/memory_check.h"
#include "memory/pool/block_pool.h"

/* Profiles -------------------------------------------------------------------------------------------------------- */

void rondo_profile_retain(rondo_profile *profile) {
  atomic_fetch_add_explicit(&profile->references, 1, memory_order_relaxed);
}

void rondo_profile_release(rondo_profile *profile) {
  if (atomic_fetch_sub_explicit(&profile->references, 1, memory_order_acq_rel) > 1) return;
  const rondo_allocator allocator = profile->allocator;
  rondo_array_free(&allocator, &profile->allocs);
  rondo_array_free(&allocator, &profile->slots);
  rondo_release(&allocator, profile, 1, sizeof *profile);
}

rondo_status rondo_profile_build(const rondo_noted_lifetimes *noted, const size_t *slot_bytes, size_t slot_count,
                                 const size_t *offsets, const rondo_plan_info *plan, rondo_profile **out) {
  const rondo_allocator *allocator = &noted->allocator;
  const size_t count = noted->lifetimes.count;
  rondo_profile *profile;
  *out = NULL;
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *profile, &profile));
  profile->allocator = *allocator;
  profile->plan = *plan;
  atomic_init(&profile->references, 1);
  rondo_status status = rondo_array_reserve(allocator, &profile->allocs, count);
  if (status == RONDO_OK) status = rondo_array_reserve(allocator, &profile->slots, slot_count);
  if (status != RONDO_OK) {
    rondo_profile_release(profile);
    return status;
  }
  for (size_t i = 0; i < count; i++)
    profile->allocs.items[i] = (rondo_planned_alloc){.bytes = noted->lifetimes.items[i].bytes, .offset = offsets[i]};
  for (size_t i = 0; i < slot_count; i++)
    profile->slots.items[i] =
        (rondo_planned_alloc){.bytes = rondo_pool_rounded(slot_bytes[i]), .offset = offsets[count + i]};
  profile->allocs.count = count;
  profile->slots.count = slot_count;
  rondo_profile_check(profile);
  *out = profile;
  return RONDO_OK;
}

rondo_status rondo_profile_of_noted(const rondo_noted_lifetimes *noted, const rondo_plan_options *options,
                                    rondo_profile **out) {
  const rondo_flat_edges edges = rondo_noted_edges(noted);
  rondo_plan_info info = {.struct_size = sizeof info};
  rondo_plan *plan;
  *out = NULL;
  RONDO_TRY(
      rondo_lifetimes_plan(&noted->allocator, &edges, noted->lifetimes.items, noted->lifetimes.count, options, &plan));
  rondo_status status = rondo_plan_get_info(plan, &info);
  if (status == RONDO_OK) status = rondo_profile_build(noted, NULL, 0, rondo_plan_offsets(plan), &info, out);
  rondo_plan_destroy(plan);
  return status;
}

/* Graphs ---------------------------------------------------------------------------------------------------------- */

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
  rondo_noted_lifetimes *noted;
  RONDO_TRY(rondo_noted_lifetimes_of_graph(graph, &noted));
  const rondo_status status = rondo_profile_of_noted(noted, options, out);
  rondo_noted_lifetimes_release(noted);
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
  return rondo_fail_context(profile_graph(graph, &known, out_profile), "%s", call);
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
