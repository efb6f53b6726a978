/* SPDX-License-Identifier: MIT
 * Each episode has a random generator of its own, so its result does not depend on the thread that runs it. All working
 * memory is allocated before the threads start.
 */
#include "plan/search/random_restarts.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "plan/interval/placer.h"
#include "plan/search/trials.h"

/* After MAX_MISSES runs that miss an aim, it is raised halfway to the best peak. A new aim is above the target by 1 /
 * NEARNESS of what the best peak is. */
enum { MAX_MISSES = 16, NEARNESS = 8 };

/* Weights and keys are fixed-point numbers with this many bits after the point. Keys are products of a weight and a
 * logarithm, which has 16. */
enum { WEIGHT_BITS = 8, KEY_BITS = 16 + WEIGHT_BITS };

/* What the threads share. */
typedef struct task {
  const rondo_restarts *of;
  uint64_t peak;         /* of the plan to improve */
  _Atomic uint64_t runs; /* done */
} task;

/* A run is a trial, and an episode a stride. */
typedef struct worker {
  rondo_trial_thread base;
  const rondo_restarts *of;
  rondo_placer placer;
  rondo_live_bytes live;
  int64_t *keys;
} worker;

/* Random numbers --------------------------------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state) {
  const uint64_t mixed = rondo_hash_u64(0, *state);
  *state += RONDO_HASH_START;
  return mixed;
}

/* In [0, most << WEIGHT_BITS). */
static int64_t random_weight(uint64_t *state, int64_t most) {
  return (int64_t)(next_random(state) % ((uint64_t)most << WEIGHT_BITS));
}

/* Keys ------------------------------------------------------------------------------------------------------------- */

/* The preferences of an episode. Crowding counts little in most episodes, and more than the rest in some. */
typedef struct weights {
  int64_t bytes, steps, crowding; /* weights of logarithms */
  int64_t noise;                  /* weight */
} weights;

/* The first episode prefers large areas, and first of all those that live where it is crowded. */
static weights first_weights(void) {
  const int64_t one = INT64_C(1) << WEIGHT_BITS;
  return (weights){.bytes = one, .steps = one, .crowding = 50 * one};
}

static weights random_weights(uint64_t *state) {
  const bool crowded = next_random(state) % 3 == 0;
  weights made = {.bytes = random_weight(state, 2), .steps = random_weight(state, 2)};
  made.crowding = random_weight(state, crowded ? 100 : 4);
  made.noise = random_weight(state, 1);
  return made;
}

static void begin_keys(worker *w, const weights *by, uint64_t *state) {
  const rondo_boxes *boxes = w->of->boxes;
  for (uint32_t i = 0; i < boxes->count; i++) {
    w->keys[i] = by->bytes * rondo_logarithm(boxes->boxes[i].bytes) + by->steps * rondo_logarithm(boxes->steps[i]) +
                 by->crowding * rondo_logarithm(boxes->crowding[i]) + by->noise * (int64_t)(next_random(state) >> 48);
  }
}

static void order_by_keys(worker *w) {
  rondo_placer *placer = &w->placer;
  const uint32_t count = w->of->boxes->count;
  for (uint32_t i = 0; i < count; i++) placer->entries[i] = (rondo_sort_entry){(uint64_t)(INT64_MAX - w->keys[i]), i};
  rondo_sort_entries(placer->entries, placer->entries + count, count);
  for (uint32_t i = 0; i < count; i++) placer->order[i] = placer->entries[i].value;
}

/* Promotes the boxes left in the section of the conflict that begin or end within the segment: each would have fitted
 * there instead of what was placed. Boxes that are longer on both sides can wait. */
static void promote(worker *w, uint64_t *state) {
  const rondo_box *boxes = w->of->boxes->boxes;
  const rondo_skyline_conflict *at = &w->placer.skyline.conflict;
  for (uint32_t i = 0; i < w->of->boxes->count && boxes[i].lower <= at->section; i++) {
    if (boxes[i].upper <= at->section || !rondo_box_tree_holds(&w->placer.skyline.tree, i)) continue;
    if (boxes[i].lower < at->lower && boxes[i].upper > at->upper) continue;
    w->keys[i] += (INT64_C(1) << (KEY_BITS - 1)) + (random_weight(state, 1) << 16);
  }
}

/* Runs ------------------------------------------------------------------------------------------------------------- */

/* The aim of an episode. */
typedef struct aim {
  uint64_t best; /* peak */
  uint64_t peak; /* to reach */
  uint32_t misses;
} aim;

static aim aim_below(const worker *w, uint64_t best) {
  const uint64_t target = w->of->target;
  return (aim){.best = best, .peak = best <= target ? target : target + (best - target) / NEARNESS};
}

static void note_miss(aim *own) {
  if (++own->misses < MAX_MISSES) return;
  own->misses = 0;
  own->peak += (own->best - own->peak) / 2;
}

static rondo_status run_episode(void *thread, uint64_t first) {
  worker *w = thread;
  task *shared = w->base.all->task;
  const uint64_t number = w->of->first_episode + first / RONDO_RUNS_PER_EPISODE;
  uint64_t state = w->of->seed ^ (number + 1) * UINT64_C(0xd1342543de82ef95);
  const weights by = number == 0 ? first_weights() : random_weights(&state);
  aim own = aim_below(w, shared->peak);
  begin_keys(w, &by, &state);
  for (uint64_t run = first; run < first + RONDO_RUNS_PER_EPISODE && !rondo_trials_are_over(w->base.all, run); run++) {
    uint64_t peak = 0;
    order_by_keys(w);
    atomic_fetch_add(&shared->runs, 1);
    if (rondo_placer_by_order(&w->placer, own.peak, &peak)) {
      rondo_trials_offer(&w->base, run, peak, w->placer.trial);
      own = aim_below(w, peak);
    } else {
      promote(w, &state);
      note_miss(&own);
    }
  }
  return RONDO_OK;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status prepare(void *thread, rondo_scratch *scratch) {
  worker *w = thread;
  w->of = ((const task *)w->base.all->task)->of;
  const rondo_boxes *boxes = w->of->boxes;
  RONDO_TRY(rondo_placer_make(scratch, boxes->count, boxes->section_count, &w->placer));
  RONDO_TRY(rondo_live_bytes_make(scratch, boxes, &w->live));
  rondo_placer_bind(&w->placer, boxes);
  w->placer.skyline.live = &w->live;
  return rondo_scratch_take(scratch, boxes->count, sizeof *w->keys, &w->keys);
}

rondo_status rondo_restarts_improve(const rondo_allocator *allocator, const rondo_restarts *restarts,
                                    uint64_t *inout_offsets, uint64_t *inout_peak, uint64_t *out_runs) {
  task shared = {.of = restarts, .peak = *inout_peak};
  rondo_trials trials = {.count = restarts->runs,
                         .stride = RONDO_RUNS_PER_EPISODE,
                         .target = restarts->target,
                         .deadline_ns = restarts->deadline_ns,
                         .boxes = restarts->boxes->count,
                         .threads = restarts->threads,
                         .thread_bytes = sizeof(worker),
                         .task = &shared,
                         .prepare = prepare,
                         .attempt = run_episode};
  rondo_scratch scratch = {.allocator = allocator};
  const rondo_trial_thread *best = NULL;
  const rondo_status status = rondo_trials_run(&scratch, &trials, &best);
  const uint64_t hit = atomic_load(&trials.first_hit);
  *out_runs = hit != RONDO_NO_TRIAL ? hit + 1 : atomic_load(&shared.runs);
  if (best != NULL && best->peak < *inout_peak) {
    *inout_peak = best->peak;
    memcpy(inout_offsets, best->best, trials.boxes * sizeof *inout_offsets);
  }
  rondo_scratch_free(&scratch);
  return status;
}
