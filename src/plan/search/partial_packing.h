/* SPDX-License-Identifier: MIT
 * A partial packing, built from the bottom up. Each section has a floor: below it lies what is placed there, and space
 * that is known to be lost. Each item that is not placed has a minimum, below which no solution of this branch has it:
 * at least the highest floor of its sections. A placed item lies at what was its minimum.
 *
 * Invariant, after rondo_search_state_settle has returned true: the floor of a section with items to place is the
 * lowest minimum of them, and what it lost fits: floor + bytes to place <= capacity. A run of sections with one floor
 * and higher floors on both sides (a valley) then has, at either end, items to place that begin or end there: in a
 * packing whose items have all been pushed down, either one of these lies on that floor or nothing does at that end.
 *
 * All changes go on a trail and can be undone. Threads: one at a time.
 */
#ifndef RONDO_PLAN_SEARCH_PARTIAL_PACKING_H
#define RONDO_PLAN_SEARCH_PARTIAL_PACKING_H

#include "base/array.h"
#include "plan/search/search_sections.h"

typedef struct rondo_search_change {
  uint64_t old; /* floor or minimum */
  uint32_t what, number;
} rondo_search_change;

typedef struct rondo_search_state {
  const rondo_search_sections *sections;
  const rondo_allocator *allocator;
  rondo_status status; /* not RONDO_OK: the trail could not grow, and the state is of no use any more */
  uint64_t capacity;   /* at least the largest load */
  uint64_t *floors;    /* a section's */
  uint64_t *slack;     /* a section's: capacity - floor - bytes to place */
  uint64_t *minima;    /* an item's; its offset, once it is placed */
  bool *placed;        /* an item's */
  uint32_t *cover;     /* as the sections' cover, but those to place come first */
  uint32_t *positions; /* by cover_index: where in its section's list an item is */
  uint32_t *open;      /* a section's: items to place */
  uint32_t *crossing;  /* of the cut below section s: items to place that live on both sides */
  uint32_t *dirty;     /* sections whose floor may have to rise */
  bool *is_dirty;
  uint32_t dirty_count;
  uint32_t failed_section; /* where settle found no room */
  RONDO_ARRAY(rondo_search_change) trail;
} rondo_search_state;

/* The sections, and the scratch's allocator, must outlive the state. Errors: OUT_OF_MEMORY; then the state is to be
 * freed all the same. */
RONDO_MUST_USE rondo_status rondo_search_state_init(rondo_scratch *scratch, const rondo_search_sections *sections,
                                                    rondo_search_state *out);
void rondo_search_state_free(rondo_search_state *state);

/* Back to nothing placed. */
void rondo_search_state_reset(rondo_search_state *state, uint64_t capacity);

/* Lays the item at its minimum, which must be the floor of all its sections. Returns whether that parted the sections:
 * a cut is left without items across it, or a section without items. settle must follow. */
bool rondo_search_state_place(rondo_search_state *state, uint32_t item);

/* Raises the minimum of the item and of all of its kind, which could lie in its place; settle must follow. */
void rondo_search_state_raise_twins(rondo_search_state *state, uint32_t item, uint64_t minimum);

/* Restores the invariant; false when there is no room. */
bool rondo_search_state_settle(rondo_search_state *state);

/* Takes back all changes since the trail had `mark` entries. */
void rondo_search_state_undo(rondo_search_state *state, size_t mark);

/* What the sections have lost since the trail had `mark` entries, each in relation to what it can lose still, in units
 * of 1 / 65536. */
uint64_t rondo_search_state_loss(const rondo_search_state *state, size_t mark);

/* Part of a valley's two ends: items that could lie there now, one for each kind. */
static inline bool rondo_search_state_fits(const rondo_search_state *state, uint32_t item, uint64_t floor) {
  const uint32_t twin = state->sections->twin[item];
  return !state->placed[item] && state->minima[item] == floor && (twin == RONDO_SEARCH_NONE || state->placed[twin]);
}

/* Whether the section, the end of a valley, can stay without an item on its floor. */
bool rondo_search_state_can_lift(const rondo_search_state *state, uint32_t section);

/* Asserts the invariant of a settled state, and that the lists of each section agree. Linear in the cover. */
#ifdef NDEBUG
static inline void rondo_search_state_check(const rondo_search_state *state) { (void)state; }
#else
void rondo_search_state_check(const rondo_search_state *state);
#endif

#endif
