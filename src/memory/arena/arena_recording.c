/* SPDX-License-Identifier: MIT
 * Recordings in an arena: beginning one, with its blocks and slots as records of its space, and reading the result.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/graph.h"
#include "memory/arena/arena_internal.h"
#include "memory/arena/arena_recording.h"
#include "memory/arena/arena_recording_plan.h"
#include "memory/graph_memory/alloc_node_address.h"
#include "memory/graph_memory/graph_allocation.h"
#include "memory/graph_memory/graph_view.h"
#include "memory/memory_check.h"

/* Blocks ---------------------------------------------------------------------------------------------------------- */

rondo_status rondo_arena_check_block(const rondo_arena *arena, const rondo_arena_block *block, size_t *out_rounded) {
  const size_t offset = (size_t)((uintptr_t)block->address - (uintptr_t)rondo_arena_base(arena));
  if (offset % RONDO_BLOCK_ALIGNMENT == 0 && rondo_pool_round(block->bytes, out_rounded) && offset <= arena->reserved &&
      *out_rounded <= arena->reserved - offset)
    return RONDO_OK;
  char label[RONDO_ARENA_LABEL], name[RONDO_ALLOCATION_LABEL];
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_FOREIGN_ADDRESS,
                    "block %s at %p is not memory of %s: pass outputs of its recordings",
                    rondo_named_size(name, block->name, block->bytes), block->address, rondo_arena_label(label, arena));
}

static rondo_status add_block(rondo_address_space *space, const rondo_arena_block *block) {
  size_t rounded;
  RONDO_TRY(rondo_arena_check_block(space->arena, block, &rounded));
  RONDO_TRY(rondo_graph_allocation_add(space, RONDO_RECORD_BLOCK, block->address, block->bytes, block->name));
  space->allocations.items[space->block_count++]->key = block->key;
  return RONDO_OK;
}

/* The space's records by address; the caller releases them. */
static rondo_status sort_records(const rondo_address_space *space, rondo_graph_allocation ***out) {
  const size_t count = space->allocations.count;
  RONDO_TRY(rondo_allocate_items(&space->memory->allocator, count, sizeof **out, out));
  if (count == 0) return RONDO_OK;
  memcpy(*out, space->allocations.items, count * sizeof **out);
  qsort(*out, count, sizeof **out, rondo_graph_allocation_compare);
  return RONDO_OK;
}

static rondo_status refuse_overlap(const rondo_graph_allocation *a, const rondo_graph_allocation *b) {
  char first[RONDO_ALLOCATION_LABEL], second[RONDO_ALLOCATION_LABEL];
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_FOREIGN_ADDRESS,
                    "blocks %s and %s of a recording overlap, so one of them is not live: leave it out",
                    rondo_allocation_label(first, &a->base), rondo_allocation_label(second, &b->base));
}

static rondo_status add_blocks(rondo_address_space *space, const rondo_arena_setting *setting) {
  rondo_graph_allocation **sorted;
  for (size_t i = 0; i < setting->block_count; i++) RONDO_TRY(add_block(space, &setting->blocks[i]));
  RONDO_TRY(sort_records(space, &sorted));
  rondo_status status = RONDO_OK;
  for (size_t i = 1; i < setting->block_count && status == RONDO_OK; i++) {
    const char *end = sorted[i - 1]->base.address + rondo_graph_allocation_rounded(sorted[i - 1]);
    if (sorted[i]->base.address < end) status = refuse_overlap(sorted[i - 1], sorted[i]);
  }
  rondo_release(&space->memory->allocator, sorted, setting->block_count, sizeof *sorted);
  return status;
}

/* Slots ----------------------------------------------------------------------------------------------------------- */

/* The planned address of the slot. NULL if there is none, or if a block that the plan does not know is there. */
static char *planned_slot(const rondo_address_space *space, const rondo_profile *profile, size_t index, size_t bytes) {
  if (profile == NULL || index >= profile->slots.count) return NULL;
  const rondo_planned_alloc *at = &profile->slots.items[index];
  char *const address = space->first.base + at->offset;
  const bool fits = at->bytes == bytes && at->offset <= space->first.bytes && bytes <= space->first.bytes - at->offset;
  const bool is_free = rondo_range_is_free(space->allocations.items, space->allocations.count, address, bytes);
  return fits && is_free ? address : NULL;
}

/* *out is NULL when the arena is full. */
static rondo_status find_slot(rondo_address_space *space, const rondo_profile *profile, size_t index, size_t bytes,
                              char **out) {
  const size_t count = space->allocations.count;
  rondo_graph_allocation **sorted;
  rondo_gap_search search = {.best_bytes = SIZE_MAX};
  *out = planned_slot(space, profile, index, bytes);
  if (*out != NULL) return RONDO_OK;
  space->slots_depart = true;
  RONDO_TRY(sort_records(space, &sorted));
  rondo_gaps_search(&space->first, sorted, count, NULL, bytes, &search);
  *out = search.best == NULL && bytes <= search.left ? search.end : search.best;
  rondo_release(&space->memory->allocator, sorted, count, sizeof *sorted);
  return RONDO_OK;
}

static rondo_status choose_slot(rondo_address_space *space, const rondo_profile *profile, size_t index, size_t bytes,
                                char **out) {
  if (space->memory->device->ops->guard != NULL) return rondo_arena_take_guarded(space, bytes, out);
  RONDO_TRY(find_slot(space, profile, index, bytes, out));
  return *out != NULL ? RONDO_OK : rondo_arena_fail_full(space->arena, bytes);
}

static rondo_status add_slot(rondo_address_space *space, const rondo_profile *profile, size_t index,
                             rondo_arena_slot *slot) {
  size_t rounded;
  char *address;
  slot->address = NULL;
  if (slot->bytes == 0 || !rondo_pool_round(slot->bytes, &rounded))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "slot %zu of a recording has %zu bytes: use at least 1, and less than the address space", index,
                      slot->bytes);
  RONDO_TRY(choose_slot(space, profile, index, rounded, &address));
  RONDO_TRY(rondo_graph_allocation_add(space, RONDO_RECORD_SLOT, address, slot->bytes, slot->name));
  slot->address = address;
  return RONDO_OK;
}

/* Beginning ------------------------------------------------------------------------------------------------------- */

static rondo_status fill_space(rondo_address_space *space, const rondo_arena_setting *setting,
                               const rondo_profile *profile) {
  RONDO_TRY(rondo_allocation_starts_init(&space->memory->allocator, &space->own));
  RONDO_TRY(add_blocks(space, setting));
  RONDO_TRY(rondo_arena_guard_blocks(space));
  for (size_t i = 0; i < setting->slot_count; i++) RONDO_TRY(add_slot(space, profile, i, &setting->slots[i]));
  space->held_count = space->allocations.count;
  return rondo_arena_guard_slots(space);
}

/* A new reference, or NULL. */
static rondo_status profile_for(const rondo_arena_setting *setting, rondo_profile **out) {
  *out = setting->profile;
  if (setting->profile != NULL) rondo_profile_retain(setting->profile);
  if (setting->profile != NULL || setting->lifetimes == NULL) return RONDO_OK;
  return rondo_arena_plan_setting(setting, out);
}

rondo_status rondo_arena_begin(const rondo_arena_setting *setting, rondo_address_space **out,
                               rondo_profile **out_profile) {
  rondo_arena *arena = setting->arena;
  rondo_address_space *space;
  *out = NULL;
  *out_profile = NULL;
  rondo_retired_sweep(arena->memory, false);
  RONDO_TRY(rondo_address_space_create(arena->memory, &space));
  rondo_arena_enter(arena, space);
  rondo_status status = profile_for(setting, out_profile);
  if (status == RONDO_OK) status = fill_space(space, setting, *out_profile);
  if (status == RONDO_OK) {
    rondo_address_space_check(space);
    *out = space;
    return RONDO_OK;
  }
  if (*out_profile != NULL) rondo_profile_release(*out_profile);
  *out_profile = NULL;
  rondo_address_space_release(space);
  rondo_retired_sweep(arena->memory, false);
  return status;
}

rondo_arena *rondo_arena_of(const rondo_graph *graph) {
  return graph->device == NULL ? NULL : rondo_address_space_of(graph)->arena;
}

/* Reading --------------------------------------------------------------------------------------------------------- */

static const rondo_allocator *allocator_of(const rondo_arena_recording *recording) {
  return &recording->arena->memory->allocator;
}

static size_t count_outputs(const rondo_noted_lifetimes *noted) {
  size_t count = 0;
  for (size_t i = 0; i < noted->lifetimes.count; i++) count += noted->lifetimes.items[i].freed == RONDO_PLAN_FOREVER;
  return count;
}

/* Lifetimes are in the order of the alloc nodes. */
static rondo_status read_outputs(const rondo_graph *graph, const rondo_noted_lifetimes *noted,
                                 rondo_arena_recording *out) {
  const size_t count = count_outputs(noted);
  uint32_t allocation = 0;
  RONDO_TRY(rondo_allocate_items(allocator_of(out), count, sizeof *out->outputs, &out->outputs));
  for (uint32_t slot = 0; slot < graph->nodes.count && out->output_count < count; slot++) {
    const rondo_graph_node *node = &graph->nodes.items[slot];
    if (!node->live || node->params.kind != RONDO_NODE_ALLOC) continue;
    const rondo_alloc_node *alloc = &node->params.as.alloc;
    if (noted->lifetimes.items[allocation].freed == RONDO_PLAN_FOREVER)
      out->outputs[out->output_count++] = (rondo_arena_output){.address = alloc->address,
                                                               .bytes = alloc->bytes,
                                                               .name = alloc->name,
                                                               .node = slot,
                                                               .allocation = allocation};
    allocation++;
  }
  return RONDO_OK;
}

/* Under the lock. Also frees the points of the view, which only placing more nodes would need. */
static void read_space(const rondo_graph *graph, rondo_address_space *space, rondo_arena_recording *out) {
  const rondo_planned_addresses *planned = &space->planned;
  rondo_graph_view_refresh(space, graph);
  rondo_graph_points_reset(space);
  rondo_graph_points_free(space);
  out->need = space->top;
  for (size_t i = 0; i < space->block_count; i++)
    if (!space->allocations.items[i]->open) out->ended[out->ended_count++] = (uint32_t)i;
  if (planned->profile == NULL || planned->serial != graph->serial) return;
  out->planned = true;
  out->departed = planned->departed || space->slots_depart || planned->next != planned->profile->allocs.count;
  out->peak = planned->profile->plan.peak;
  out->lower_bound = planned->profile->plan.lower_bound;
}

static rondo_status read_recording(const rondo_graph *graph, rondo_arena_recording *out) {
  rondo_address_space *space = rondo_address_space_of(graph);
  rondo_noted_lifetimes *noted;
  RONDO_TRY(rondo_noted_lifetimes_of_graph(graph, &noted));
  rondo_status status = read_outputs(graph, noted, out);
  if (status == RONDO_OK) status = rondo_arena_find_least(space, noted, &out->least);
  rondo_noted_lifetimes_release(noted);
  RONDO_TRY(status);
  RONDO_TRY(rondo_allocate_items(allocator_of(out), space->block_count, sizeof *out->ended, &out->ended));
  out->ended_room = space->block_count;
  pthread_mutex_lock(&space->memory->lock);
  read_space(graph, space, out);
  pthread_mutex_unlock(&space->memory->lock);
  return RONDO_OK;
}

rondo_status rondo_arena_recording_read(const rondo_graph *graph, rondo_arena_recording *out) {
  char label[RONDO_LABEL_BYTES];
  *out = (rondo_arena_recording){.arena = rondo_arena_of(graph)};
  if (out->arena == NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS, "%s was not recorded into an arena",
                      rondo_graph_label(label, graph));
  const rondo_status status = read_recording(graph, out);
  rondo_arena_check(out->arena);
  if (status != RONDO_OK) rondo_arena_recording_free(out);
  return status;
}

void rondo_arena_recording_free(rondo_arena_recording *recording) {
  if (recording->arena == NULL) return;
  rondo_release(allocator_of(recording), recording->outputs, recording->output_count, sizeof *recording->outputs);
  rondo_release(allocator_of(recording), recording->ended, recording->ended_room, sizeof *recording->ended);
  *recording = (rondo_arena_recording){0};
}
