/* SPDX-License-Identifier: MIT
 * The verifier visits the nodes in order and keeps the state of each cell (verifier_internal.h). An access belongs to
 * the alloc node that covers its first byte at that moment: allocations that share bytes live one after another, so if
 * the access is within the lifetime of any of them, it is that one.
 */
#include "graph/verify/verifier.h"

#include <assert.h>

#include "base/error.h"
#include "graph/verify/verifier_internal.h"
#include "graph/verify/verify_messages.h"

#define PAIRS_AT_ONCE 65536
#define MOST_MISTAKES 65536

/* Requirements ---------------------------------------------------------------------------------------------------- */

rondo_status rondo_verify_note(rondo_verifier *verifier, rondo_mistake_kind kind, bool is_error, uint32_t node,
                               uint32_t subject, uint32_t object) {
  const rondo_mistake mistake = {kind, is_error, node, subject, object};
  if (verifier->mistakes.count < MOST_MISTAKES)
    return rondo_array_push(verifier->allocator, &verifier->mistakes, &mistake);
  ++*(is_error ? &verifier->dropped_errors : &verifier->dropped_warnings);
  return RONDO_OK;
}

static bool is_error(const rondo_verifier *verifier, const rondo_order_pair *pair) {
  if (pair->kind == RONDO_MISTAKE_MAYBE_RACE) return false;
  const bool of_access = pair->kind == RONDO_MISTAKE_BEFORE || pair->kind == RONDO_MISTAKE_AFTER;
  return !of_access || !verifier->accesses.items[pair->subject].is_scanned;
}

static rondo_status note_pair(rondo_verifier *verifier, const rondo_order_pair *pair) {
  const uint32_t node = pair->kind == RONDO_MISTAKE_AFTER ? pair->before : pair->after;
  return rondo_verify_note(verifier, (rondo_mistake_kind)pair->kind, is_error(verifier, pair), node, pair->subject,
                           pair->object);
}

static rondo_status check_pairs(rondo_verifier *verifier) {
  RONDO_TRY(rondo_verify_order_check(&verifier->order, verifier->pairs.items, verifier->pairs.count));
  for (size_t i = 0; i < verifier->pairs.count; i++)
    if (!verifier->pairs.items[i].ordered) RONDO_TRY(note_pair(verifier, &verifier->pairs.items[i]));
  verifier->pairs.count = 0;
  return RONDO_OK;
}

rondo_status rondo_verify_require(rondo_verifier *verifier, rondo_mistake_kind kind, uint32_t before, uint32_t after,
                                  uint32_t subject, uint32_t object) {
  assert(before < verifier->input->edges.node_count && after < verifier->input->edges.node_count);
  if (rondo_verify_order_on_chain(&verifier->order, before, after)) return RONDO_OK;
  rondo_order_pair pair = {
      .before = before, .after = after, .subject = subject, .object = object, .kind = (uint16_t)kind};
  const bool is_decided = rondo_verify_order_decide(&verifier->order, before, after, &pair.ordered);
  if (is_decided && pair.ordered) return RONDO_OK;
  verifier->unsure_count++;
  if (is_decided) return note_pair(verifier, &pair);
  if (verifier->pairs.count == PAIRS_AT_ONCE) RONDO_TRY(check_pairs(verifier));
  return rondo_array_push(verifier->allocator, &verifier->pairs, &pair);
}

/* The walk -------------------------------------------------------------------------------------------------------- */

/* The previous allocation of the cell's bytes must be freed before this one. */
static rondo_status check_prior(rondo_verifier *verifier, uint32_t prior, uint32_t index) {
  rondo_region *region = &verifier->regions.items[index];
  const rondo_region *earlier = &verifier->regions.items[prior];
  if (prior == index || prior == region->last_prior) return RONDO_OK;
  region->last_prior = prior;
  if (earlier->freed == RONDO_NONE)
    return rondo_verify_note(verifier, RONDO_MISTAKE_STILL_ALIVE, true, region->alloc, prior, index);
  return rondo_verify_require(verifier, RONDO_MISTAKE_REUSE, earlier->freed, region->alloc, prior, index);
}

static rondo_status walk_alloc(rondo_verifier *verifier, uint32_t index) {
  const uint32_t first = verifier->points.items[verifier->region_points.items[2 * (size_t)index]].cell;
  const uint32_t past = verifier->points.items[verifier->region_points.items[2 * (size_t)index + 1]].cell;
  assert(index < verifier->alloc_count && first <= past && past < verifier->cells.count);
  /* They are equal if the address, from a dump, is the last one possible. */
  for (uint32_t i = first; i < past; i++) {
    rondo_cell *cell = &verifier->cells.items[i];
    RONDO_TRY(check_prior(verifier, cell->region, index));
    cell->region = index;
  }
  rondo_verify_forget(verifier, first, past);
  return RONDO_OK;
}

static rondo_status check_lifetime(rondo_verifier *verifier, uint32_t access, uint32_t index) {
  rondo_region *region = &verifier->regions.items[index];
  const rondo_access_use *use = &verifier->accesses.items[access];
  if (region->last_user == use->node) return RONDO_OK;
  if (!use->is_scanned) region->last_user = use->node;
  if (region->alloc != RONDO_NONE)
    RONDO_TRY(rondo_verify_require(verifier, RONDO_MISTAKE_BEFORE, region->alloc, use->node, access, index));
  if (region->freed == RONDO_NONE) return RONDO_OK;
  return rondo_verify_require(verifier, RONDO_MISTAKE_AFTER, use->node, region->freed, access, index);
}

static rondo_status note_access(rondo_verifier *verifier, rondo_mistake_kind kind, uint32_t access, uint32_t region) {
  return rondo_verify_note(verifier, kind, true, verifier->accesses.items[access].node, access, region);
}

/* An access that begins outside all allocations may still extend into one. */
static rondo_status check_cells(rondo_verifier *verifier, uint32_t access) {
  const rondo_access_use *use = &verifier->accesses.items[access];
  const uint32_t first = verifier->points.items[use->begin].cell, past = verifier->points.items[use->end].cell;
  for (uint32_t i = first; i < past; i++)
    if (verifier->cells.items[i].region != RONDO_NONE)
      return note_access(verifier, RONDO_MISTAKE_BEYOND, access, verifier->cells.items[i].region);
  return RONDO_OK;
}

static rondo_status check_extent(rondo_verifier *verifier, uint32_t access, uint32_t index) {
  const rondo_access_use *use = &verifier->accesses.items[access];
  if (use->end == RONDO_NONE) return RONDO_OK;
  if (index == RONDO_NONE) return check_cells(verifier, access);
  if (rondo_verifier_address(verifier, use->end) <= verifier->regions.items[index].end) return RONDO_OK;
  return note_access(verifier, RONDO_MISTAKE_BEYOND, access, index);
}

/* Whether every pair of nodes is ordered. Then there are no races. */
static bool is_line(const rondo_verifier *verifier) { return verifier->order.chain_count == 1; }

static rondo_status walk_access(rondo_verifier *verifier, uint32_t access) {
  rondo_access_use *use = &verifier->accesses.items[access];
  const rondo_point *begin = &verifier->points.items[use->begin];
  const uint32_t covering = verifier->cells.items[begin->cell].region;
  use->region = covering == RONDO_NONE ? begin->region : covering;
  const rondo_region *region = use->region == RONDO_NONE ? NULL : &verifier->regions.items[use->region];
  if (region != NULL) RONDO_TRY(check_lifetime(verifier, access, use->region));
  if (region != NULL && region->is_dead)
    return rondo_verify_note(verifier, RONDO_MISTAKE_DEAD, !use->is_scanned, use->node, access, use->region);
  if (use->is_scanned) return RONDO_OK;
  if (region != NULL && region->is_refused)
    RONDO_TRY(note_access(verifier, RONDO_MISTAKE_NO_ACCESS, access, use->region));
  RONDO_TRY(check_extent(verifier, access, use->region));
  return is_line(verifier) || use->is_atomic ? RONDO_OK : rondo_verify_race(verifier, access);
}

/* Alloc and free nodes access nothing, so a node is either among the accesses or among the regions. */
static rondo_status walk(rondo_verifier *verifier) {
  uint32_t alloc = 0;
  for (uint32_t i = 0; i < verifier->accesses.count; i++) {
    for (; alloc < verifier->alloc_count && verifier->regions.items[alloc].alloc < verifier->accesses.items[i].node;
         alloc++)
      RONDO_TRY(walk_alloc(verifier, alloc));
    RONDO_TRY(walk_access(verifier, i));
  }
  for (; alloc < verifier->alloc_count; alloc++) RONDO_TRY(walk_alloc(verifier, alloc));
  return RONDO_OK;
}

static rondo_status check_lives(rondo_verifier *verifier) {
  for (uint32_t i = 0; i < verifier->alloc_count; i++) {
    const rondo_region *region = &verifier->regions.items[i];
    if (region->freed == RONDO_NONE) continue;
    RONDO_TRY(rondo_verify_require(verifier, RONDO_MISTAKE_LIFE, region->alloc, region->freed, i, RONDO_NONE));
  }
  return RONDO_OK;
}

static bool has_pointer(const rondo_node_params *params) {
  switch (params->kind) {
    case RONDO_NODE_ALLOC:
    case RONDO_NODE_FREE:
    case RONDO_NODE_COPY:
    case RONDO_NODE_FILL:
    case RONDO_NODE_MEMORY_OPERATIONS:
      return true;
    case RONDO_NODE_KERNEL:
      for (uint32_t i = 0; i < params->as.kernel.kernel->parameter_count; i++)
        if (params->as.kernel.kernel->parameters[i].access != RONDO_ACCESS_SCALAR) return true;
      return false;
    default:
      return false;
  }
}

/* For a graph without an address. A graph of a device uses no memory; in a graph that is only data, nothing could be
 * checked. */
static rondo_status note_no_address(rondo_verifier *verifier) {
  if (verifier->input->knows_all) return RONDO_OK;
  for (uint32_t i = 0; i < verifier->input->edges.node_count; i++) {
    if (has_pointer(rondo_verifier_params(verifier, i)))
      return rondo_verify_note(verifier, RONDO_MISTAKE_NO_ADDRESS, false, i, RONDO_NONE, RONDO_NONE);
  }
  return RONDO_OK;
}

static rondo_status verify(rondo_verifier *verifier, rondo_findings *findings) {
  const uint32_t widest = verifier->input->widest;
  RONDO_TRY(rondo_verify_collect(verifier));
  if (verifier->points.count == 0) {
    RONDO_TRY(note_no_address(verifier));
    return rondo_verify_report(verifier, findings);
  }
  RONDO_TRY(rondo_verify_order_make(verifier->allocator, &verifier->input->edges,
                                    widest == 0 ? RONDO_ORDER_WIDEST : widest, &verifier->order));
  RONDO_TRY(rondo_verify_pair_frees(verifier));
  RONDO_TRY(check_lives(verifier));
  RONDO_TRY(walk(verifier));
  RONDO_TRY(check_pairs(verifier));
  return rondo_verify_report(verifier, findings);
}

static void free_verifier(rondo_verifier *verifier) {
  const rondo_allocator *allocator = verifier->allocator;
  if (verifier->order.allocator != NULL) rondo_verify_order_free(&verifier->order);
  rondo_release(allocator, verifier->point_table, verifier->point_capacity, sizeof(uint32_t));
  rondo_array_free(allocator, &verifier->points);
  rondo_array_free(allocator, &verifier->sorted);
  rondo_array_free(allocator, &verifier->accesses);
  rondo_array_free(allocator, &verifier->boxes);
  rondo_array_free(allocator, &verifier->frees);
  rondo_array_free(allocator, &verifier->free_points);
  rondo_array_free(allocator, &verifier->regions);
  rondo_array_free(allocator, &verifier->region_points);
  rondo_array_free(allocator, &verifier->ranges);
  rondo_array_free(allocator, &verifier->cells);
  rondo_array_free(allocator, &verifier->clusters);
  rondo_array_free(allocator, &verifier->loose_before);
  rondo_array_free(allocator, &verifier->readers);
  rondo_array_free(allocator, &verifier->wide_reads);
  rondo_array_free(allocator, &verifier->pairs);
  rondo_array_free(allocator, &verifier->mistakes);
}

rondo_status rondo_verify(const rondo_verify_input *input, rondo_findings **out) {
  rondo_verifier verifier = {.input = input, .allocator = input->allocator};
  RONDO_TRY(rondo_findings_make(input->allocator, input->max_findings, out));
  const rondo_status status = verify(&verifier, *out);
  free_verifier(&verifier);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_findings_destroy(*out);
  *out = NULL;
  return status;
}
