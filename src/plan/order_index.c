/* SPDX-License-Identifier: MIT
 * What begins at a slot that comes neither before a life's alloc nor behind its free conflicts with it, and these slots
 * are a range of each chain. All else that conflicts was there before: it begins before the alloc and is freed neither
 * before it nor by it. Of a chain's own items that means freed from a certain time on; of items with two chains, not
 * before the first time that does not come before the alloc, which rules out nearly all. A tree with the latest time of
 * each group of entries finds them.
 */
#include "plan/order_index.h"

#include <string.h>

#include "base/error.h"
#include "plan/sort.h"

#define BITS_A_LEVEL 4

enum { OWN, CROSSING };

/* Making ----------------------------------------------------------------------------------------------------------- */

static uint32_t kind_of(const rondo_life *life) { return life->alloc_chain == life->free_chain ? OWN : CROSSING; }

static rondo_status sort_entries(const rondo_allocator *allocator, rondo_order_index *index) {
  const rondo_lives *lives = index->lives;
  rondo_sort_entry *entries = NULL;
  RONDO_TRY(rondo_allocate_items(allocator, index->count, 2 * sizeof *entries, &entries));
  for (uint32_t i = 0; i < index->count; i++) {
    const rondo_life *life = &lives->lives[lives->items[i]];
    entries[i] = (rondo_sort_entry){(uint64_t)kind_of(life) << 32 | life->alloc, lives->items[i]};
  }
  if (index->count > 1) rondo_sort_entries(entries, entries + index->count, index->count);
  for (uint32_t i = 0; i < index->count; i++) {
    index->items[i] = entries[i].value;
    index->by_entry[i] = lives->lives[entries[i].value];
  }
  rondo_release(allocator, entries, index->count, 2 * sizeof *entries);
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
      index->first[kind][slot] = entry;
    }
  }
}

static uint32_t groups_of(const rondo_order_index *index, uint32_t level) {
  return (uint32_t)(((uint64_t)index->count + (UINT64_C(1) << level * BITS_A_LEVEL) - 1) >> level * BITS_A_LEVEL);
}

static void note_latest(rondo_order_index *index) {
  for (uint32_t i = 0; i < index->count; i++) index->latest[0][i] = index->by_entry[i].free_time;
  for (uint32_t level = 1; level < RONDO_INDEX_LEVELS; level++) {
    const uint32_t below = groups_of(index, level - 1);
    for (uint32_t i = 0; i < below; i++) {
      uint32_t *latest = &index->latest[level][i >> BITS_A_LEVEL];
      if (index->latest[level - 1][i] > *latest) *latest = index->latest[level - 1][i];
    }
  }
}

/* A kind has a range for each chain of the parts of alloc and free, for what is before and behind these in their
 * stages, and for what is between the stages. */
static uint32_t most_ranges(const rondo_relation *relation) {
  uint32_t most = 0;
  for (size_t i = 0; i < relation->parts.count; i++) {
    if (relation->parts.items[i].chain_count > most) most = relation->parts.items[i].chain_count;
  }
  return RONDO_INDEX_KINDS * (2 * most + 5);
}

rondo_status rondo_order_index_make(const rondo_allocator *allocator, const rondo_lives *lives,
                                    rondo_order_index *out) {
  const size_t slots = (size_t)lives->relation->slot_count + 1;
  *out = (rondo_order_index){.lives = lives, .count = lives->count, .most_ranges = most_ranges(lives->relation)};
  RONDO_TRY(rondo_allocate_items(allocator, out->count, sizeof *out->items, &out->items));
  RONDO_TRY(rondo_allocate_items(allocator, out->count, sizeof *out->by_entry, &out->by_entry));
  for (uint32_t kind = 0; kind < RONDO_INDEX_KINDS; kind++) {
    RONDO_TRY(rondo_allocate_items(allocator, slots, sizeof(uint32_t), &out->first[kind]));
  }
  for (uint32_t level = 0; level < RONDO_INDEX_LEVELS; level++) {
    RONDO_TRY(rondo_allocate_items(allocator, groups_of(out, level), sizeof(uint32_t), &out->latest[level]));
  }
  RONDO_TRY(sort_entries(allocator, out));
  note_firsts(out);
  note_latest(out);
  return RONDO_OK;
}

void rondo_order_index_free(const rondo_allocator *allocator, rondo_order_index *index) {
  if (index->lives == NULL) return;
  const size_t slots = (size_t)index->lives->relation->slot_count + 1;
  rondo_release(allocator, index->items, index->count, sizeof *index->items);
  rondo_release(allocator, index->by_entry, index->count, sizeof *index->by_entry);
  for (uint32_t kind = 0; kind < RONDO_INDEX_KINDS; kind++) {
    rondo_release(allocator, index->first[kind], slots, sizeof(uint32_t));
  }
  for (uint32_t level = 0; level < RONDO_INDEX_LEVELS; level++) {
    rondo_release(allocator, index->latest[level], groups_of(index, level), sizeof(uint32_t));
  }
  *index = (rondo_order_index){0};
}

rondo_status rondo_index_answer_make(const rondo_allocator *allocator, const rondo_order_index *index,
                                     rondo_index_answer *out) {
  *out = (rondo_index_answer){0};
  RONDO_TRY(rondo_allocate_items(allocator, index->most_ranges, sizeof *out->ranges, &out->ranges));
  return rondo_allocate_items(allocator, index->count, sizeof *out->others, &out->others);
}

void rondo_index_answer_free(const rondo_allocator *allocator, const rondo_order_index *index,
                             rondo_index_answer *answer) {
  rondo_release(allocator, answer->ranges, index->most_ranges, sizeof *answer->ranges);
  rondo_release(allocator, answer->others, index->count, sizeof *answer->others);
  *answer = (rondo_index_answer){0};
}

/* What begins in a life ---------------------------------------------------------------------------------------------
 */

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
  for (uint32_t kind = 0; kind < RONDO_INDEX_KINDS; kind++) {
    const rondo_index_range range = {a->index->first[kind][low], a->index->first[kind][high]};
    if (range.begin < range.end) a->out->ranges[a->out->range_count++] = range;
  }
}

/* The slots of a chain of the alloc's part, or of the free's, that do not come before the one or behind the other. */
static void add_chains(asking *a, const rondo_relation_part *part, bool from_alloc, bool to_free) {
  for (uint32_t c = 0; c < part->chain_count; c++) {
    const bool is_last = c + 1 == part->chain_count;
    const uint32_t *bounds = &a->relation->chain_slot.items[part->first_chain + c];
    const uint32_t low = from_alloc ? a->conflict.past[c] : bounds[0];
    const uint32_t high = to_free ? a->conflict.future[c] : is_last ? part->loose_slot : bounds[1];
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

/* Of the entries, those freed at `time` or later that conflict. */
static void add_freed_from(asking *a, uint32_t begin, uint32_t end, uint32_t time) {
  const rondo_order_index *index = a->index;
  for (uint32_t at = begin; at < end;) {
    uint32_t level = 0;
    while (level + 1 < RONDO_INDEX_LEVELS && at % (UINT32_C(1) << (level + 1) * BITS_A_LEVEL) == 0 &&
           end - at >= UINT32_C(1) << (level + 1) * BITS_A_LEVEL) {
      level++;
    }
    while (level > 0 && index->latest[level][at >> level * BITS_A_LEVEL] >= time) level--;
    const bool is_one = level == 0 && index->latest[0][at] >= time;
    if (is_one && rondo_conflict_one(index->lives, &a->conflict, &index->by_entry[at])) {
      a->out->others[a->out->other_count++] = at;
    }
    at += UINT32_C(1) << level * BITS_A_LEVEL;
  }
}

static void add_across(asking *a) {
  const rondo_relation *relation = a->relation;
  const uint32_t *const *first = (const uint32_t *const *)a->index->first;
  const rondo_relation_part *part = &relation->parts.items[relation->slot_part[a->life->alloc]];
  if (a->life->alloc == 0) return;
  const uint32_t stage = relation->stage_slot.items[part->stage];
  add_freed_from(a, first[CROSSING][0], first[CROSSING][stage], a->conflict.first);
  for (uint32_t c = 0; c < part->chain_count; c++) {
    const uint32_t low = relation->chain_slot.items[part->first_chain + c];
    const uint32_t past = a->conflict.past[c];
    add_freed_from(a, first[CROSSING][low], first[CROSSING][past], a->conflict.first);
    const uint32_t chain_end =
        c + 1 == part->chain_count ? part->loose_slot : relation->chain_slot.items[part->first_chain + c + 1];
    if (past == chain_end) continue; /* all that the chain frees comes before */
    add_freed_from(a, first[OWN][low], first[OWN][past], relation->slot_node[past] + 1);
  }
}

/* Only what other branches do not exclude. */
static void drop_excluded(asking *a) {
  rondo_index_answer *out = a->out;
  for (uint32_t i = 0; i < out->range_count; i++) {
    for (uint32_t entry = out->ranges[i].begin; entry < out->ranges[i].end; entry++) {
      if (rondo_conflict_one(a->index->lives, &a->conflict, &a->index->by_entry[entry])) {
        out->others[out->other_count++] = entry;
      }
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
