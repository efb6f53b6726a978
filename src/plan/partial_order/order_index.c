/* SPDX-License-Identifier: MIT
 * What begins at a slot that comes neither before a life's alloc nor after its free conflicts with it, and these slots
 * are a range of each chain. All else that conflicts was there before: it begins before the alloc and is freed neither
 * before it nor by it. Of a chain's own items that means freed from a certain time on, so of those that live for a few
 * slots only the last few begin; of items with two chains, not before the first time that does not come before the
 * alloc. Trees with the latest time of each group of entries find what lives long, and what has two chains.
 */
#include "plan/partial_order/order_index.h"

#include <string.h>

#include "base/binary_search.h"
#include "base/error.h"
#include "plan/radix_sort.h"

#define BITS_A_LEVEL 4

#define MOST_SHORT 16 /* slots from alloc to free */
#define MOST_MEDIUM 256
/* From alloc to free, of each grade of those that cross. */
static const uint32_t most_times[RONDO_INDEX_GRADES] = {128, 1024, UINT32_MAX};

enum { SHORT, MEDIUM, LONG, CROSSING };

/* Making ----------------------------------------------------------------------------------------------------------- */

static uint32_t kind_of(const rondo_life *life) {
  if (life->alloc_chain != life->free_chain) return CROSSING;
  const uint32_t slots = life->free - life->alloc;
  return slots <= MOST_SHORT ? SHORT : slots <= MOST_MEDIUM ? MEDIUM : LONG;
}

static rondo_status sort_entries(const rondo_allocator *allocator, rondo_order_index *index) {
  const rondo_lives *lives = index->lives;
  rondo_scratch temporary = {.allocator = allocator};
  rondo_sort_entry *entries = NULL;
  RONDO_TRY(rondo_scratch_take(&temporary, index->count, 2 * sizeof *entries, &entries));
  for (uint32_t i = 0; i < index->count; i++) {
    const rondo_life *life = &lives->lives[lives->items[i]];
    entries[i] = (rondo_sort_entry){(uint64_t)kind_of(life) << 32 | life->alloc, lives->items[i]};
  }
  if (index->count > 1) rondo_sort_entries(entries, entries + index->count, index->count);
  for (uint32_t i = 0; i < index->count; i++) {
    index->items[i] = entries[i].value;
    index->by_entry[i] = lives->lives[entries[i].value];
  }
  rondo_scratch_free(&temporary);
  return RONDO_OK;
}

static void note_firsts(rondo_order_index *index) {
  const uint32_t slots = index->lives->relation->slot_count;
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
  return (uint32_t)(((uint64_t)count + (UINT64_C(1) << level * BITS_A_LEVEL) - 1) >> level * BITS_A_LEVEL);
}

static rondo_status make_times(rondo_scratch *scratch, uint32_t count, rondo_index_times *times) {
  times->count = count;
  for (uint32_t level = 0; level < RONDO_INDEX_LEVELS; level++) {
    RONDO_TRY(rondo_scratch_take(scratch, groups_of(count, level), sizeof(uint32_t), &times->latest[level]));
  }
  return RONDO_OK;
}

/* Of the entries in the list; NULL: all. */
static void note_times(const rondo_order_index *index, const uint32_t *list, rondo_index_times *times) {
  for (uint32_t i = 0; i < times->count; i++) {
    times->latest[0][i] = index->by_entry[list == NULL ? i : list[i]].free_time;
  }
  for (uint32_t level = 1; level < RONDO_INDEX_LEVELS; level++) {
    for (uint32_t i = 0; i < groups_of(times->count, level - 1); i++) {
      uint32_t *latest = &times->latest[level][i >> BITS_A_LEVEL];
      if (times->latest[level - 1][i] > *latest) *latest = times->latest[level - 1][i];
    }
  }
}

static uint32_t grade_of(const rondo_life *life) {
  uint32_t grade = 0;
  while (life->free_time - life->alloc_time > most_times[grade]) grade++;
  return grade;
}

static rondo_status list_crossing(rondo_scratch *scratch, rondo_order_index *index) {
  const uint32_t first = index->firsts[0].of[CROSSING];
  const uint32_t count = index->count - first;
  rondo_scratch temporary = {.allocator = scratch->allocator};
  rondo_sort_entry *entries = NULL;
  RONDO_TRY(make_times(scratch, count, &index->crossing_times));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *index->crossing, &index->crossing));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *index->crossing_lives, &index->crossing_lives));
  RONDO_TRY(rondo_scratch_take(&temporary, count, 2 * sizeof *entries, &entries));
  for (uint32_t i = 0; i < count; i++) {
    const rondo_life *life = &index->by_entry[first + i];
    entries[i] = (rondo_sort_entry){(uint64_t)grade_of(life) << 32 | life->alloc_time, first + i};
    for (uint32_t grade = grade_of(life); grade < RONDO_INDEX_GRADES; grade++) index->grade_begin[grade + 1]++;
  }
  if (count > 1) rondo_sort_entries(entries, entries + count, count);
  for (uint32_t i = 0; i < count; i++) {
    index->crossing[i] = entries[i].value;
    index->crossing_lives[i] = index->by_entry[entries[i].value];
  }
  note_times(index, index->crossing, &index->crossing_times);
  rondo_scratch_free(&temporary);
  return RONDO_OK;
}

/* A kind has a range for each chain of the parts of alloc and free, for what is before and after these in their
 * stages, and for what is between the stages. */
static uint32_t most_ranges(const rondo_relation *relation) {
  uint32_t most = 0;
  for (size_t i = 0; i < relation->parts.count; i++) {
    if (relation->parts.items[i].chain_count > most) most = relation->parts.items[i].chain_count;
  }
  return RONDO_INDEX_KINDS * (2 * most + 5);
}

rondo_status rondo_order_index_make(rondo_scratch *scratch, const rondo_lives *lives, rondo_order_index *out) {
  const size_t slots = (size_t)lives->relation->slot_count + 1;
  *out = (rondo_order_index){.lives = lives, .count = lives->count, .most_ranges = most_ranges(lives->relation)};
  out->grain = lives->count == 0 ? 1 : SIZE_MAX;
  for (uint32_t i = 0; i < lives->count; i++) {
    const size_t alignment = lives->problem->items[lives->items[i]].alignment;
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

rondo_status rondo_index_answer_make(rondo_scratch *scratch, const rondo_order_index *index, rondo_index_answer *out) {
  *out = (rondo_index_answer){0};
  RONDO_TRY(rondo_scratch_take(scratch, index->most_ranges, sizeof *out->ranges, &out->ranges));
  return rondo_scratch_take(scratch, index->count, sizeof *out->others, &out->others);
}

/* What begins in a life -------------------------------------------------------------------------------------------- */

typedef struct asking {
  const rondo_order_index *index;
  const rondo_relation *relation;
  const rondo_life *life;
  rondo_conflict conflict;
  rondo_index_answer *out;
} asking;

/* What begins at slots low..high - 1. */
static void add_slots(asking *a, uint32_t low, uint32_t high) {
  if (low >= high) return;
  const rondo_index_firsts *begins = &a->index->firsts[low];
  const rondo_index_firsts *ends = &a->index->firsts[high];
  for (uint32_t kind = 0; kind < RONDO_INDEX_KINDS; kind++) {
    const rondo_index_range range = {begins->of[kind], ends->of[kind]};
    if (range.begin < range.end) a->out->ranges[a->out->range_count++] = range;
  }
}

/* The slots of a chain of the alloc's part, or of the free's, that do not come before the one or after the other. */
static void add_chains(asking *a, const rondo_relation_part *part, bool from_alloc, bool to_free) {
  for (uint32_t c = 0; c < part->chain_count; c++) {
    const uint32_t low = from_alloc ? a->conflict.past[c] : a->relation->chain_slot.items[part->first_chain + c];
    const uint32_t high = to_free ? a->conflict.future[c] : rondo_relation_chain_end(a->relation, part, c);
    add_slots(a, low, high);
  }
}

static void add_begun_within(asking *a) {
  const rondo_relation *relation = a->relation;
  const uint32_t *stages = relation->stage_slot.items;
  const rondo_relation_part *first = &relation->parts.items[relation->slot_part[a->life->alloc]];
  const rondo_relation_part *last = &relation->parts.items[relation->slot_part[a->life->free]];
  const bool has_alloc = a->life->alloc != 0;
  const bool has_free = a->life->free != relation->slot_count - 1;
  if (has_alloc && has_free && first == last) {
    add_slots(a, stages[first->stage], first->first_slot);
    add_chains(a, first, true, true);
    add_slots(a, first->end_slot, stages[first->stage + 1]);
    return;
  }
  if (has_alloc) {
    add_slots(a, stages[first->stage], first->first_slot);
    add_chains(a, first, true, false);
  }
  add_slots(a, has_alloc ? first->end_slot : 0, has_free ? last->first_slot : relation->slot_count);
  if (has_free) {
    add_chains(a, last, false, true);
    add_slots(a, last->end_slot, stages[last->stage + 1]);
  }
}

/* What lives across its beginning ---------------------------------------------------------------------------------- */

static inline void add_other(asking *a, uint32_t entry) { a->out->others[a->out->other_count++] = entry; }

static void add_if_conflicts(asking *a, uint32_t entry) {
  const rondo_order_index *index = a->index;
  if (rondo_conflict_one(index->lives, &a->conflict, &index->by_entry[entry])) add_other(a, entry);
}

/* The first of a list, from `at` on, that is freed at `time` or later. */
static inline uint32_t find_freed_from(const rondo_index_times *times, uint32_t at, uint32_t end, uint32_t time) {
  while (at < end && times->latest[0][at] < time) {
    uint32_t count = 1;
    for (uint32_t level = 1; level < RONDO_INDEX_LEVELS; level++) {
      const uint32_t size = UINT32_C(1) << level * BITS_A_LEVEL;
      if (at % size > 0 || end - at < size || times->latest[level][at >> level * BITS_A_LEVEL] >= time) break;
      count = size;
    }
    at += count;
  }
  return at;
}

/* Of the last `most` slots before slot `past`. */
static void add_latest(asking *a, uint32_t kind, uint32_t low, uint32_t past, uint32_t most, uint32_t time) {
  const rondo_order_index *index = a->index;
  const uint32_t end = index->firsts[past].of[kind];
  for (uint32_t at = index->firsts[past - low > most ? past - most : low].of[kind]; at < end; at++) {
    if (index->times.latest[0][at] >= time) add_other(a, at);
  }
}

/* Of what a chain allocates before slot `past`, and frees. */
static void add_across_chain(asking *a, uint32_t low, uint32_t past) {
  const rondo_order_index *index = a->index;
  const uint32_t time = a->relation->slot_node[past] + 1;
  add_latest(a, SHORT, low, past, MOST_SHORT, time);
  add_latest(a, MEDIUM, low, past, MOST_MEDIUM, time);
  const uint32_t end = index->firsts[past].of[LONG];
  for (uint32_t at = index->firsts[low].of[LONG]; at < end; at++) {
    at = find_freed_from(&index->times, at, end, time);
    if (at < end) add_other(a, at);
  }
}

/* The first entry of a grade that begins at the time or later. */
static uint32_t find_crossing(const rondo_order_index *index, uint32_t grade, uint32_t time) {
  uint32_t low = index->grade_begin[grade], high = index->grade_begin[grade + 1];
  RONDO_BINARY_SEARCH(low, high, middle, index->crossing_lives[middle].alloc_time < time)
  return low;
}

/* What begins at an earlier time, but not before the alloc, begins within the life. */
static void add_crossing(asking *a, uint32_t grade) {
  const rondo_order_index *index = a->index;
  const uint32_t time = a->conflict.first;
  const uint32_t end = find_crossing(index, grade, a->life->alloc_time);
  const uint32_t earliest = time > most_times[grade] ? time - most_times[grade] : 0;
  for (uint32_t at = find_crossing(index, grade, earliest); at < end; at++) {
    at = find_freed_from(&index->crossing_times, at, end, time);
    if (at >= end) return;
    const rondo_life *life = &index->crossing_lives[at];
    if (!rondo_conflict_is_before(&a->conflict, life->alloc, life->alloc_chain)) continue;
    if (!rondo_conflict_is_before(&a->conflict, life->free, life->free_chain)) add_other(a, index->crossing[at]);
  }
}

static void add_across(asking *a) {
  const rondo_relation *relation = a->relation;
  const rondo_relation_part *part = &relation->parts.items[relation->slot_part[a->life->alloc]];
  if (a->life->alloc == 0) return;
  for (uint32_t grade = 0; grade < RONDO_INDEX_GRADES; grade++) add_crossing(a, grade);
  for (uint32_t c = 0; c < part->chain_count; c++) {
    const uint32_t low = relation->chain_slot.items[part->first_chain + c], past = a->conflict.past[c];
    if (past == rondo_relation_chain_end(relation, part, c)) continue; /* all that the chain frees comes before */
    add_across_chain(a, low, past);
  }
}

/* Only what other branches do not exclude. */
static void drop_excluded(asking *a) {
  rondo_index_answer *out = a->out;
  const uint32_t count = out->other_count;
  out->other_count = 0;
  for (uint32_t i = 0; i < count; i++) add_if_conflicts(a, out->others[i]);
  for (uint32_t i = 0; i < out->range_count; i++) {
    for (uint32_t entry = out->ranges[i].begin; entry < out->ranges[i].end; entry++) {
      add_if_conflicts(a, entry);
    }
  }
  out->range_count = 0;
}

void rondo_order_index_ask(const rondo_order_index *index, uint32_t entry, rondo_index_answer *out) {
  asking a = {.index = index, .relation = index->lives->relation, .life = &index->by_entry[entry], .out = out};
  a.conflict = rondo_conflict_of(index->lives, a.life);
  out->range_count = out->other_count = 0;
  add_begun_within(&a);
  add_across(&a);
  if (a.life->branch != 0) drop_excluded(&a);
}
