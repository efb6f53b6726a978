/* SPDX-License-Identifier: MIT
 * A partial packing, built from the bottom up. The floor of a section is the end of what is placed there, including
 * space that is known to be lost. Each item that is not placed has a minimum: a lower bound of its offset in every
 * solution of this branch. It is at least the highest floor of its sections. The minimum of a placed item is its
 * offset.
 *
 * Invariant, after rondo_search_state_settle has returned true: the floor of a section with items to place is their
 * lowest minimum, and floor + bytes to place <= capacity. A valley is a run of sections with one floor and higher
 * floors on both sides. At either end it has items to place that begin or end there. In a packing whose items have all
 * been pushed down, either one of these is on that floor, or nothing is on it at that end.
 *
 * All changes are recorded on a trail and can be undone. Threads: one at a time.
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
  rondo_status status; /* not RONDO_OK: the trail could not grow, and the state is unusable */
  uint64_t capacity;   /* at least the largest load */
  uint64_t *floors;    /* of each section */
  uint64_t *slack;     /* of each section: capacity - floor - bytes to place */
  uint64_t *minima;    /* of each item; its offset once it is placed */
  bool *placed;        /* of each item */
  uint32_t *cover;     /* as the sections' cover, with the items to place first */
  uint32_t *positions; /* by cover_index: the index of the item in the list of the section */
  uint32_t *open;      /* of each section: items to place */
  uint32_t *crossing;  /* of the cut before section s: items to place that live on both sides */
  uint32_t *dirty;     /* sections whose floor may have to rise */
  bool *is_dirty;
  uint32_t dirty_count;
  uint32_t failed_section; /* where settle found no space */
  RONDO_ARRAY(rondo_search_change) trail;
} rondo_search_state;

/* The sections and the scratch's allocator must outlive the state. Errors: OUT_OF_MEMORY; free the state also then. */
RONDO_MUST_USE rondo_status rondo_search_state_init(rondo_scratch *scratch, const rondo_search_sections *sections,
                                                    rondo_search_state *out);
void rondo_search_state_free(rondo_search_state *state);

/* Nothing is placed again. */
void rondo_search_state_reset(rondo_search_state *state, uint64_t capacity);

/* Places the item at its minimum, which must be the floor of all its sections. Returns whether this may separate the
 * sections: no item to place crosses a cut, or a section has no items to place. Call settle next. */
bool rondo_search_state_place(rondo_search_state *state, uint32_t item);

/* Raises the minimum of the item and of all items of its kind, which could take its place. Call settle next. */
void rondo_search_state_raise_twins(rondo_search_state *state, uint32_t item, uint64_t minimum);

/* Restores the invariant; false if there is no space. */
bool rondo_search_state_settle(rondo_search_state *state);

/* Undoes all changes since the trail had `mark` entries. */
void rondo_search_state_undo(rondo_search_state *state, size_t mark);

/* The space that the sections have lost since the trail had `mark` entries, each in relation to the space that it can
 * still lose, in units of 1 / 65536. */
uint64_t rondo_search_state_loss(const rondo_search_state *state, size_t mark);

/* Whether the item, at an end of a valley, can be placed on its floor now: the first unplaced item of its kind. */
static inline bool rondo_search_state_fits(const rondo_search_state *state, uint32_t item, uint64_t floor) {
  const uint32_t twin = state->sections->twin[item];
  return !state->placed[item] && state->minima[item] == floor && (twin == RONDO_SEARCH_NONE || state->placed[twin]);
}

/* Whether the section, an end of a valley, can stay without an item on its floor. */
bool rondo_search_state_can_lift(const rondo_search_state *state, uint32_t section);

/* Asserts the invariant of a settled state, and that the lists of each section agree. Linear in the cover. */
#ifdef NDEBUG
static inline void rondo_search_state_check(const rondo_search_state *state) { (void)state; }
#else
void rondo_search_state_check(const rondo_search_state *state);
#endif

#endif
