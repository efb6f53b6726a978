/* SPDX-License-Identifier: MIT
 * The pieces that conflict with a lifetime are of two kinds. Those that begin within it begin at a slot that comes
 * neither before its alloc nor after its free. These slots are a range of each chain. Those that live across its alloc
 * begin before the alloc and are not freed before it. Of the entries whose alloc and free are on the same chain, they
 * are those freed from a certain time on, so of short-lived entries only the last few need to be visited. Of the
 * entries with two chains, they are freed no earlier than the first node that does not come before the alloc. Trees of
 * the latest free time of each group of entries skip the others.
 */
#include "plan/partial_order/order_index.h"

#include <string.h>

#include "base/binary_search.h"
#include "base/error.h"
#include "plan/radix_sort.h"

#define BITS_PER_LEVEL 4

#define MAX_SHORT 16 /* slots between alloc and free */
#define MAX_MEDIUM 256
/* Maximum time between alloc and free, for each grade of the crossing entries */
static const uint32_t max_times[RONDO_INDEX_GRADES] = {128, 1024, UINT32_MAX};

enum { SHORT, MEDIUM, LONG, CROSSING };

/* Making ----------------------------------------------------------------------------------------------------------- */

static uint32_t kind_of(const rondo_lifetime *life) {
  if (life->alloc_chain != life->free_chain) return CROSSING;
  const uint32_t slots = life->free - life->alloc;
  return slots <= MAX_SHORT ? SHORT : slots <= MAX_MEDIUM ? MEDIUM : LONG;
}

static rondo_status sort_entries(const rondo_allocator *allocator, rondo_order_index *index) {
  const rondo_lifetimes *lifetimes = index->lifetimes;
  rondo_scratch temporary = {.allocator = allocator};
  rondo_sort_entry *entries = NULL;
  RONDO_TRY(rondo_scratch_take(&temporary, index->count, 2 * sizeof *entries, &entries));
  for (uint32_t i = 0; i < index->count; i++) {
    const rondo_lifetime *life = &lifetimes->pieces[lifetimes->items[i]];
    entries[i] = (rondo_sort_entry){(uint64_t)kind_of(life) << 32 | life->alloc, lifetimes->items[i]};
  }
  if (index->count > 1) rondo_sort_entries(entries, entries + index->count, index->count);
  for (uint32_t i = 0; i < index->count; i++) {
    index->items[i] = entries[i].value;
    index->by_entry[i] = lifetimes->pieces[entries[i].value];
  }
  rondo_scratch_free(&temporary);
  return RONDO_OK;
}

static void note_firsts(rondo_order_index *index) {
  const uint32_t slots = index->lifetimes->relation->slot_count;
  uint32_t entry = 0;
  for (uint32_t kind = 0; kind < RONDO_INDEX_KINDS; kind++) {
    for (uint32_t slot = 0; slot <= slots; slot++) {
      while (entry < index->count && kind_of(&index->by_entry[entry]) == kind && index->by_entry[entry].alloc < slot) {
        entry++;
      }
      index->firsts[slot].of[kind] = entry;
    }
  }
}

static uint32_t groups_of(uint32_t count, uint32_t level) {
  return (uint32_t)(((uint64_t)count + (UINT64_C(1) << level * BITS_PER_LEVEL) - 1) >> level * BITS_PER_LEVEL);
}

static rondo_status make_times(rondo_scratch *scratch, uint32_t count, rondo_index_times *times) {
  times->count = count;
  for (uint32_t level = 0; level < RONDO_INDEX_LEVELS; level++) {
    RONDO_TRY(rondo_scratch_take(scratch, groups_of(count, level), sizeof(uint32_t), &times->latest[level]));
  }
  return RONDO_OK;
}

/* Fills the tree for the entries in the list; NULL: for all. */
static void note_times(const rondo_order_index *index, const uint32_t *list, rondo_index_times *times) {
  for (uint32_t i = 0; i < times->count; i++) {
    times->latest[0][i] = index->by_entry[list == NULL ? i : list[i]].free_time;
  }
  for (uint32_t level = 1; level < RONDO_INDEX_LEVELS; level++) {
    for (uint32_t i = 0; i < groups_of(times->count, level - 1); i++) {
      uint32_t *latest = &times->latest[level][i >> BITS_PER_LEVEL];
      if (times->latest[level - 1][i] > *latest) *latest = times->latest[level - 1][i];
    }
  }
}

static uint32_t grade_of(const rondo_lifetime *life) {
  uint32_t grade = 0;
  while (life->free_time - life->alloc_time > max_times[grade]) grade++;
  return grade;
}

static rondo_status list_crossing(rondo_scratch *scratch, rondo_order_index *index) {
  const uint32_t first = index->firsts[0].of[CROSSING];
  const uint32_t count = index->count - first;
  rondo_scratch temporary = {.allocator = scratch->allocator};
  rondo_sort_entry *entries = NULL;
  RONDO_TRY(make_times(scratch, count, &index->crossing_times));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *index->crossing, &index->crossing));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *index->crossing_lifetimes, &index->crossing_lifetimes));
  RONDO_TRY(rondo_scratch_take(&temporary, count, 2 * sizeof *entries, &entries));
  for (uint32_t i = 0; i < count; i++) {
    const rondo_lifetime *life = &index->by_entry[first + i];
    entries[i] = (rondo_sort_entry){(uint64_t)grade_of(life) << 32 | life->alloc_time, first + i};
    for (uint32_t grade = grade_of(life); grade < RONDO_INDEX_GRADES; grade++) index->grade_begin[grade + 1]++;
  }
  if (count > 1) rondo_sort_entries(entries, entries + count, count);
  for (uint32_t i = 0; i < count; i++) {
    index->crossing[i] = entries[i].value;
    index->crossing_lifetimes[i] = index->by_entry[entries[i].value];
  }
  note_times(index, index->crossing, &index->crossing_times);
  rondo_scratch_free(&temporary);
  return RONDO_OK;
}

/* Each kind has a range for each chain of the parts of alloc and free, for the slots before and after these parts in
 * their stages, and for the stages between. */
static uint32_t max_ranges(const rondo_relation *relation) {
  uint32_t most = 0;
  for (size_t i = 0; i < relation->parts.count; i++) {
    if (relation->parts.items[i].chain_count > most) most = relation->parts.items[i].chain_count;
  }
  return RONDO_INDEX_KINDS * (2 * most + 5);
}

rondo_status rondo_order_index_make(rondo_scratch *scratch, const rondo_lifetimes *lifetimes, rondo_order_index *out) {
  const size_t slots = (size_t)lifetimes->relation->slot_count + 1;
  *out = (rondo_order_index){
      .lifetimes = lifetimes, .count = lifetimes->count, .max_ranges = max_ranges(lifetimes->relation)};
  out->grain = lifetimes->count == 0 ? 1 : SIZE_MAX;
  for (uint32_t i = 0; i < lifetimes->count; i++) {
    const size_t alignment = lifetimes->problem->items[lifetimes->items[i]].alignment;
    if (alignment < out->grain) out->grain = alignment == 0 ? 1 : alignment;
  }
  RONDO_TRY(rondo_scratch_take(scratch, out->count, sizeof *out->items, &out->items));
  RONDO_TRY(rondo_scratch_take(scratch, out->count, sizeof *out->by_entry, &out->by_entry));
  RONDO_TRY(rondo_scratch_take(scratch, slots, sizeof *out->firsts, &out->firsts));
  RONDO_TRY(make_times(scratch, out->count, &out->times));
  RONDO_TRY(sort_entries(scratch->allocator, out));
  note_firsts(out);
  note_times(out, NULL, &out->times);
  return list_crossing(scratch, out);
}

rondo_status rondo_index_conflicts_make(rondo_scratch *scratch, const rondo_order_index *index,
                                        rondo_index_conflicts *out) {
  *out = (rondo_index_conflicts){0};
  RONDO_TRY(rondo_scratch_take(scratch, index->max_ranges, sizeof *out->ranges, &out->ranges));
  return rondo_scratch_take(scratch, index->count, sizeof *out->others, &out->others);
}

/* Entries that begin within ---------------------------------------------------------------------------------------- */

typedef struct query {
  const rondo_order_index *index;
  const rondo_relation *relation;
  const rondo_lifetime *life;
  rondo_conflict conflict;
  rondo_index_conflicts *out;
} query;

/* Adds the entries that begin at slots low .. high - 1. */
static void add_slots(query *q, uint32_t low, uint32_t high) {
  if (low >= high) return;
  const rondo_index_firsts *begins = &q->index->firsts[low];
  const rondo_index_firsts *ends = &q->index->firsts[high];
  for (uint32_t kind = 0; kind < RONDO_INDEX_KINDS; kind++) {
    const rondo_index_range range = {begins->of[kind], ends->of[kind]};
    if (range.begin < range.end) q->out->ranges[q->out->range_count++] = range;
  }
}

/* Adds the slots of the chains of a part that do not come before the alloc (from_alloc) or after the free (to_free). */
static void add_chains(query *q, const rondo_relation_part *part, bool from_alloc, bool to_free) {
  for (uint32_t c = 0; c < part->chain_count; c++) {
    const uint32_t low = from_alloc ? q->conflict.past[c] : q->relation->chain_slot.items[part->first_chain + c];
    const uint32_t high = to_free ? q->conflict.future[c] : rondo_relation_chain_end(q->relation, part, c);
    add_slots(q, low, high);
  }
}

static void add_begun_within(query *q) {
  const rondo_relation *relation = q->relation;
  const uint32_t *stages = relation->stage_slot.items;
  const rondo_relation_part *first = &relation->parts.items[relation->slot_part[q->life->alloc]];
  const rondo_relation_part *last = &relation->parts.items[relation->slot_part[q->life->free]];
  const bool has_alloc = q->life->alloc != 0;
  const bool has_free = q->life->free != relation->slot_count - 1;
  if (has_alloc && has_free && first == last) {
    add_slots(q, stages[first->stage], first->first_slot);
    add_chains(q, first, true, true);
    add_slots(q, first->end_slot, stages[first->stage + 1]);
    return;
  }
  if (has_alloc) {
    add_slots(q, stages[first->stage], first->first_slot);
    add_chains(q, first, true, false);
  }
  add_slots(q, has_alloc ? first->end_slot : 0, has_free ? last->first_slot : relation->slot_count);
  if (has_free) {
    add_chains(q, last, false, true);
    add_slots(q, last->end_slot, stages[last->stage + 1]);
  }
}

/* Entries that live across the alloc ------------------------------------------------------------------------------- */

static inline void add_other(query *q, uint32_t entry) { q->out->others[q->out->other_count++] = entry; }

static void add_if_conflicts(query *q, uint32_t entry) {
  const rondo_order_index *index = q->index;
  if (rondo_conflict_one(index->lifetimes, &q->conflict, &index->by_entry[entry])) add_other(q, entry);
}

/* The first entry of a list, from `at` on, that is freed at `time` or later. */
static inline uint32_t find_freed_from(const rondo_index_times *times, uint32_t at, uint32_t end, uint32_t time) {
  while (at < end && times->latest[0][at] < time) {
    uint32_t count = 1;
    for (uint32_t level = 1; level < RONDO_INDEX_LEVELS; level++) {
      const uint32_t size = UINT32_C(1) << level * BITS_PER_LEVEL;
      if (at % size > 0 || end - at < size || times->latest[level][at >> level * BITS_PER_LEVEL] >= time) break;
      count = size;
    }
    at += count;
  }
  return at;
}

/* Adds entries that begin in the last `most` slots before slot `past`. */
static void add_latest(query *q, uint32_t kind, uint32_t low, uint32_t past, uint32_t most, uint32_t time) {
  const rondo_order_index *index = q->index;
  const uint32_t end = index->firsts[past].of[kind];
  for (uint32_t at = index->firsts[past - low > most ? past - most : low].of[kind]; at < end; at++) {
    if (index->times.latest[0][at] >= time) add_other(q, at);
  }
}

/* Adds entries that a chain allocates before slot `past` and frees at or after it. */
static void add_across_chain(query *q, uint32_t low, uint32_t past) {
  const rondo_order_index *index = q->index;
  const uint32_t time = q->relation->slot_node[past] + 1;
  add_latest(q, SHORT, low, past, MAX_SHORT, time);
  add_latest(q, MEDIUM, low, past, MAX_MEDIUM, time);
  const uint32_t end = index->firsts[past].of[LONG];
  for (uint32_t at = index->firsts[low].of[LONG]; at < end; at++) {
    at = find_freed_from(&index->times, at, end, time);
    if (at < end) add_other(q, at);
  }
}

/* The first entry of a grade that begins at the time or later. */
static uint32_t find_crossing(const rondo_order_index *index, uint32_t grade, uint32_t time) {
  uint32_t low = index->grade_begin[grade], high = index->grade_begin[grade + 1];
  RONDO_BINARY_SEARCH(low, high, middle, index->crossing_lifetimes[middle].alloc_time < time)
  return low;
}

/* Adds crossing entries. Those that begin earlier than the alloc, but not before it in the order, begin within the
 * lifetime and have been added. */
static void add_crossing(query *q, uint32_t grade) {
  const rondo_order_index *index = q->index;
  const uint32_t time = q->conflict.first;
  const uint32_t end = find_crossing(index, grade, q->life->alloc_time);
  const uint32_t earliest = time > max_times[grade] ? time - max_times[grade] : 0;
  for (uint32_t at = find_crossing(index, grade, earliest); at < end; at++) {
    at = find_freed_from(&index->crossing_times, at, end, time);
    if (at >= end) return;
    const rondo_lifetime *life = &index->crossing_lifetimes[at];
    if (!rondo_conflict_is_before(&q->conflict, life->alloc, life->alloc_chain)) continue;
    if (!rondo_conflict_is_before(&q->conflict, life->free, life->free_chain)) add_other(q, index->crossing[at]);
  }
}

static void add_across(query *q) {
  const rondo_relation *relation = q->relation;
  const rondo_relation_part *part = &relation->parts.items[relation->slot_part[q->life->alloc]];
  if (q->life->alloc == 0) return;
  for (uint32_t grade = 0; grade < RONDO_INDEX_GRADES; grade++) add_crossing(q, grade);
  for (uint32_t c = 0; c < part->chain_count; c++) {
    const uint32_t low = relation->chain_slot.items[part->first_chain + c], past = q->conflict.past[c];
    if (past == rondo_relation_chain_end(relation, part, c)) continue; /* all that the chain frees comes before */
    add_across_chain(q, low, past);
  }
}

/* Keeps the entries that are not in a branch that excludes this one. */
static void drop_excluded(query *q) {
  rondo_index_conflicts *out = q->out;
  const uint32_t count = out->other_count;
  out->other_count = 0;
  for (uint32_t i = 0; i < count; i++) add_if_conflicts(q, out->others[i]);
  for (uint32_t i = 0; i < out->range_count; i++) {
    for (uint32_t entry = out->ranges[i].begin; entry < out->ranges[i].end; entry++) {
      add_if_conflicts(q, entry);
    }
  }
  out->range_count = 0;
}

void rondo_order_index_find(const rondo_order_index *index, uint32_t entry, rondo_index_conflicts *out) {
  query q = {.index = index, .relation = index->lifetimes->relation, .life = &index->by_entry[entry], .out = out};
  q.conflict = rondo_conflict_of(index->lifetimes, q.life);
  out->range_count = out->other_count = 0;
  add_begun_within(&q);
  add_across(&q);
  if (q.life->branch != 0) drop_excluded(&q);
}
