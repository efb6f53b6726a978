/* SPDX-License-Identifier: MIT
 * Several searches (slots) work in rounds. In a round, each slot makes a fixed number of steps and knows only what was
 * known when the round began; threads take the next free slot. At the end of the round, results are taken in the order
 * of the slots, up to the first that reached the target. So the outcome does not depend on timing, and a longer budget
 * continues where a shorter one ends.
 */
#include "plan/search/parallel_search.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "plan/interval/boxes.h"
#include "plan/search/exact_search.h"

#define SLOTS 4U
#define FIRST_QUOTA UINT64_C(2000)
#define LAST_QUOTA UINT64_C(64000)
#define SHARE_ONE 256U

typedef struct slot {
  rondo_exact exact;
  bool descends;      /* else it searches at the goal */
  uint64_t capacity;  /* of the search; 0: none yet */
  uint32_t share;     /* of the distance from the goal to the best peak, in 256ths */
  uint64_t max_steps; /* at one capacity */
  uint64_t waited;
  /* Of the round: */
  uint64_t quota, used;
  uint64_t peak;     /* the best known to the slot */
  uint64_t *offsets; /* of that peak, when the slot found it */
  bool found;
  uint64_t bound; /* a lower bound of the peak, as far as the slot knows */
  rondo_status status;
  rondo_saved_error error;
} slot;

struct rondo_search {
  rondo_allocator allocator;
  rondo_scratch scratch;
  rondo_search_sections sections;
  uint64_t quota;              /* steps of a slot in the next round */
  rondo_search_budget *budget; /* of the run */
  uint64_t goal;               /* of the run: a peak that is good enough */
  uint64_t peak, bound;
  uint64_t *offsets; /* of the peak, one an item of the sections, when anything was found */
  bool found;
  slot slots[SLOTS];
  _Atomic uint32_t next_slot;
  _Atomic uint32_t winner;
};

/* A slot in a round ------------------------------------------------------------------------------------------------ */

static bool is_done(const rondo_search *s, const slot *own) { return own->peak <= s->goal || own->peak <= own->bound; }

static void record(const rondo_search *s, slot *own) {
  const uint64_t *offsets = own->exact.state.minima;
  const uint64_t peak = rondo_boxes_peak(s->sections.items, s->sections.item_count, offsets);
  assert(peak < own->peak);
  own->peak = peak;
  own->found = true;
  memcpy(own->offsets, offsets, s->sections.item_count * sizeof *offsets);
}

/* The capacity that the slot searches next. It is the goal until that is proved to be out of reach, and then just below
 * the best peak. A slot that descends searches between the two: lower after a success, higher when its steps are
 * used up. */
static uint64_t choose_capacity(const rondo_search *s, const slot *own) {
  const uint64_t below = own->peak - 1;
  const uint64_t goal = s->goal > own->bound ? s->goal : own->bound;
  if (!own->descends) return s->goal >= own->bound ? goal : below;
  return goal + (below - goal) / SHARE_ONE * own->share + (below - goal) % SHARE_ONE * own->share / SHARE_ONE;
}

static void aim(const rondo_search *s, slot *own) {
  const uint64_t capacity = choose_capacity(s, own);
  own->waited = 0;
  if (capacity == own->capacity) return;
  own->capacity = capacity;
  rondo_exact_aim(&own->exact, capacity);
}

static void raise_share(slot *own) {
  if (own->share + 8 < SHARE_ONE) {
    own->share += (SHARE_ONE - own->share) / 2;
  } else {
    own->share = SHARE_ONE / 2;
    own->max_steps *= 2;
  }
}

static rondo_status run_slot(rondo_search *s, slot *own, uint32_t number) {
  const rondo_search_watch watch = {s->budget->deadline_ns, &s->winner, number};
  if (own->capacity == 0 || own->capacity >= own->peak || own->capacity < own->bound) aim(s, own);
  while (own->used < own->quota && !is_done(s, own)) {
    uint64_t steps = own->quota - own->used;
    if (own->descends && own->max_steps - own->waited < steps) steps = own->max_steps - own->waited;
    uint64_t used = 0;
    rondo_search_outcome outcome = RONDO_SEARCH_PAUSED;
    RONDO_TRY(rondo_exact_run(&own->exact, steps, &watch, &used, &outcome));
    own->used += used;
    own->waited += used;
    if (outcome == RONDO_SEARCH_FOUND) {
      record(s, own);
      if (own->share > SHARE_ONE / 8) own->share /= 2;
    } else if (outcome == RONDO_SEARCH_CLOSED) {
      if (own->capacity >= own->bound) own->bound = own->capacity + 1;
    } else if (used < steps) {
      return RONDO_OK; /* it stopped */
    } else if (own->descends && own->waited == own->max_steps) {
      raise_share(own);
    } else {
      continue;
    }
    if (!is_done(s, own)) aim(s, own);
  }
  return RONDO_OK;
}

/* Rounds ----------------------------------------------------------------------------------------------------------- */

static void win(rondo_search *s, uint32_t number) {
  uint32_t winner = atomic_load(&s->winner);
  while (number < winner && !atomic_compare_exchange_weak(&s->winner, &winner, number)) {
  }
}

static void *run_slots(void *argument) {
  rondo_search *s = argument;
  for (;;) {
    const uint32_t number = atomic_fetch_add(&s->next_slot, 1);
    if (number >= SLOTS) return NULL;
    slot *own = &s->slots[number];
    own->status = run_slot(s, own, number);
    if (own->status != RONDO_OK) rondo_error_save(&own->error);
    if (is_done(s, own)) win(s, number);
  }
}

/* Gives each slot its steps of the round; false if none are left. */
static bool begin_round(rondo_search *s) {
  const uint64_t limit = s->budget->steps;
  const uint64_t used = s->budget->used;
  uint64_t left = limit == 0 ? UINT64_MAX : limit > used ? limit - used : 0;
  const bool any = left > 0;
  for (uint32_t k = 0; k < SLOTS; k++) {
    slot *own = &s->slots[k];
    own->quota = left < s->quota ? left : s->quota;
    left -= own->quota;
    own->used = 0;
    own->peak = s->peak;
    own->bound = s->bound;
    own->found = false;
  }
  atomic_store(&s->next_slot, 0);
  atomic_store(&s->winner, UINT32_MAX);
  return any;
}

#define MOST_THREADS SLOTS

static void run_round(rondo_search *s, uint32_t threads) {
  rondo_thread helpers[MOST_THREADS];
  uint32_t started = 0;
  while (started + 1 < threads && rondo_thread_start(&helpers[started], "rondo-plan", run_slots, s) == RONDO_OK) {
    started++;
  }
  (void)run_slots(s);
  while (started > 0) rondo_thread_join(helpers[--started]);
}

/* Takes the results in order. Slots after one that reached the target were cut short and do not count. */
static rondo_status end_round(rondo_search *s) {
  const uint32_t winner = atomic_load(&s->winner);
  for (uint32_t k = 0; k < SLOTS && k <= winner; k++) {
    const slot *own = &s->slots[k];
    if (own->status != RONDO_OK) return rondo_error_raise(&own->error);
    s->budget->used += own->used;
    if (own->bound > s->bound) s->bound = own->bound;
    if (!own->found || own->peak >= s->peak) continue;
    s->peak = own->peak;
    s->found = true;
    memcpy(s->offsets, own->offsets, s->sections.item_count * sizeof *s->offsets);
  }
  return RONDO_OK;
}

static rondo_status run_rounds(rondo_search *s, uint32_t threads, uint64_t steps) {
  const uint64_t before = s->budget->used;
  while (s->peak > s->goal && s->peak > s->bound && !rondo_clock_is_past(s->budget->deadline_ns)) {
    if (steps != 0 && s->budget->used - before >= steps) break;
    if (!begin_round(s)) break;
    run_round(s, threads);
    RONDO_TRY(end_round(s));
    if (s->quota < LAST_QUOTA) s->quota *= 2;
  }
  return RONDO_OK;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status make_slots(rondo_search *s, uint64_t seed) {
  const uint32_t count = s->sections.item_count;
  RONDO_TRY(rondo_scratch_take(&s->scratch, count, sizeof *s->offsets, &s->offsets));
  for (uint32_t k = 0; k < SLOTS; k++) {
    slot *own = &s->slots[k];
    RONDO_TRY(rondo_scratch_take(&s->scratch, count, sizeof *own->offsets, &own->offsets));
    RONDO_TRY(rondo_exact_init(&s->scratch, &s->sections, seed + k, &own->exact));
    own->descends = k % 2 != 0;
    own->share = SHARE_ONE / 2;
    own->max_steps = 4000 + 16 * (uint64_t)count;
  }
  return RONDO_OK;
}

rondo_status rondo_search_begin(const rondo_allocator *allocator, const rondo_box *items, size_t count,
                                uint64_t lower_bound, uint64_t seed, rondo_search **out) {
  rondo_search *s = NULL;
  bool made = false;
  *out = NULL;
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *s, &s));
  s->allocator = *allocator;
  s->scratch.allocator = &s->allocator;
  s->quota = FIRST_QUOTA;
  rondo_status status = rondo_search_sections_make(&s->scratch, items, count, &s->sections, &made);
  if (status == RONDO_OK && made) status = make_slots(s, seed);
  if (status != RONDO_OK || !made) {
    rondo_search_end(s);
    return status;
  }
  s->bound = lower_bound > s->sections.max_load ? lower_bound : s->sections.max_load;
  *out = s;
  return RONDO_OK;
}

void rondo_search_end(rondo_search *s) {
  if (s == NULL) return;
  const rondo_allocator allocator = s->allocator;
  for (uint32_t k = 0; k < SLOTS; k++) rondo_exact_free(&s->slots[k].exact);
  rondo_scratch_free(&s->scratch);
  rondo_release(&allocator, s, 1, sizeof *s);
}

rondo_status rondo_search_run(rondo_search *s, uint32_t threads, rondo_search_budget *budget, uint64_t steps,
                              uint64_t *inout_offsets, uint64_t *inout_peak, bool *out_optimal) {
  s->budget = budget;
  s->peak = *inout_peak;
  s->goal = budget->target > s->bound ? budget->target : s->bound;
  s->found = false;
  const rondo_status status = run_rounds(s, threads < MOST_THREADS ? threads : MOST_THREADS, steps);
  for (uint32_t i = 0; i < s->sections.item_count && s->found; i++) {
    inout_offsets[s->sections.given[i]] = s->offsets[i];
  }
  *inout_peak = s->peak;
  *out_optimal = s->peak <= s->bound;
  return status;
}
