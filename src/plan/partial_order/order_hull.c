/* SPDX-License-Identifier: MIT
 * An item's interval must end after the last alloc that conflicts with it. Such an alloc is below a bound on each chain
 * of the free's part, anywhere in the stage's other parts, or in an earlier stage. The last alloc in each of these is
 * computed first.
 */
#include "plan/partial_order/order_hull.h"

#include "base/error.h"

/* Steps, from 1 on; 0: none. */
typedef struct stage_lasts {
  uint32_t before; /* last alloc of earlier stages */
  uint32_t most;   /* last alloc of the stage */
  uint32_t part;   /* part of that last alloc */
  uint32_t other;  /* last alloc of the other parts */
} stage_lasts;

typedef struct hull_maker {
  const rondo_lifetimes *lifetimes;
  uint32_t *last_alloc; /* of each slot: the step of the last alloc on its chain up to the slot */
  stage_lasts *stages;
  size_t stage_count;
} hull_maker;

/* A node's step is its number plus 2. The beginning has step 1. */
static uint32_t step_of(const hull_maker *m, uint32_t slot) {
  return slot == 0 ? 1 : m->lifetimes->relation->slot_node[slot] + 2;
}

static void note_stages(hull_maker *m) {
  const rondo_relation *relation = m->lifetimes->relation;
  uint32_t latest = 0;
  for (size_t s = 0; s < m->stage_count; s++) {
    stage_lasts *stage = &m->stages[s];
    stage->before = latest;
    for (uint32_t slot = relation->stage_slot.items[s]; slot < relation->stage_slot.items[s + 1]; slot++) {
      const uint32_t step = m->last_alloc[slot];
      const uint32_t part = relation->slot_part[slot];
      if (step > stage->most) {
        if (part != stage->part) stage->other = stage->most;
        stage->most = step;
        stage->part = part;
      } else if (part != stage->part && step > stage->other) {
        stage->other = step;
      }
    }
    if (stage->most > latest) latest = stage->most;
  }
}

static void note_chains(hull_maker *m) {
  const rondo_relation *relation = m->lifetimes->relation;
  for (uint32_t slot = 1; slot < relation->slot_count; slot++) {
    const bool same = relation->slot_chain[slot] == relation->slot_chain[slot - 1];
    if (same && m->last_alloc[slot] < m->last_alloc[slot - 1]) m->last_alloc[slot] = m->last_alloc[slot - 1];
  }
}

/* The first step after all allocs that conflict with the lifetime, or a later step. */
static uint32_t end_of(const hull_maker *m, const rondo_lifetime *life) {
  const rondo_relation *relation = m->lifetimes->relation;
  if (life->free == relation->slot_count - 1) return RONDO_PLAN_FOREVER;
  const uint32_t number = relation->slot_part[life->free];
  const rondo_relation_part *part = &relation->parts.items[number];
  const stage_lasts *stage = &m->stages[part->stage];
  uint32_t last = step_of(m, life->alloc);
  if (stage->before > last) last = stage->before;
  const uint32_t others = stage->part == number ? stage->other : stage->most;
  if (others > last) last = others;
  const uint32_t *row = rondo_relation_future(relation, life->free);
  for (uint32_t c = 0; c < part->chain_count; c++) {
    if (row[c] == relation->chain_slot.items[part->first_chain + c]) continue;
    if (m->last_alloc[row[c] - 1] > last) last = m->last_alloc[row[c] - 1];
  }
  return last + 1;
}

static rondo_status measure(rondo_scratch *temporary, rondo_hull *hull, uint32_t steps) {
  size_t *change = NULL;
  RONDO_TRY(rondo_scratch_take(temporary, steps, sizeof *change, &change));
  for (size_t i = 0; i < hull->copy.problem.count; i++) {
    const rondo_plan_item *item = &hull->copy.items[i];
    change[item->lower] += item->bytes; /* modulo 2^64, as the subtraction below */
    if (item->upper < steps) change[item->upper] -= item->bytes;
  }
  for (size_t i = 0, live = 0; i < steps; i++) {
    live += change[i];
    if (live > hull->max_live) hull->max_live = live;
  }
  return RONDO_OK;
}

static rondo_status fill(rondo_scratch *scratch, rondo_scratch *temporary, hull_maker *m, rondo_hull *hull) {
  const rondo_lifetimes *lifetimes = m->lifetimes;
  const size_t pieces = lifetimes->problem->count + lifetimes->problem->obstacle_count;
  const uint32_t slots = lifetimes->relation->slot_count;
  RONDO_TRY(rondo_scratch_take(temporary, slots, sizeof *m->last_alloc, &m->last_alloc));
  RONDO_TRY(rondo_scratch_take(temporary, m->stage_count, sizeof *m->stages, &m->stages));
  RONDO_TRY(rondo_plan_copy_make(scratch, lifetimes->problem, &hull->copy));
  for (size_t i = 0; i < pieces; i++)
    m->last_alloc[lifetimes->pieces[i].alloc] = step_of(m, lifetimes->pieces[i].alloc);
  note_stages(m);
  note_chains(m);
  for (size_t i = 0; i < pieces; i++) {
    const rondo_lifetime *life = &lifetimes->pieces[i];
    rondo_plan_copy_set_lifetime(&hull->copy, i, step_of(m, life->alloc), end_of(m, life));
  }
  hull->copy.problem.order = NULL;
  hull->copy.problem.branch_count = 0;
  return measure(temporary, hull, slots + 2);
}

rondo_status rondo_hull_make(rondo_scratch *scratch, const rondo_lifetimes *lifetimes, rondo_hull *out) {
  *out = (rondo_hull){0};
  hull_maker m = {.lifetimes = lifetimes, .stage_count = lifetimes->relation->stage_slot.count - 1};
  rondo_scratch temporary = {.allocator = scratch->allocator};
  const rondo_status status = fill(scratch, &temporary, &m, out);
  rondo_scratch_free(&temporary);
  return status;
}
