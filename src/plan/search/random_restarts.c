/* SPDX-License-Identifier: MIT
 * Threads take episodes in turn; an episode has a generator of its own, so it is the same whoever runs it. Each thread
 * keeps its best plan. All working memory is made before the threads start.
 */
#include "plan/search/random_restarts.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "plan/interval/placer.h"

/* So many runs miss an aim before it is raised half way to the best peak. An aim is so near the target, as a part of
 * what the best peak is above it. */
enum { PATIENCE = 16, NEARNESS = 8 };

/* Weights and keys are fixed-point numbers with so many bits behind the point, of logarithms with 16. */
enum { WEIGHT_BITS = 8, KEY_BITS = 16 + WEIGHT_BITS };

typedef struct shared {
  const rondo_restarts *of;
  uint64_t peak; /* of the plan to be bettered */
  _Atomic uint64_t next_episode;
  _Atomic uint64_t first_hit; /* the first run that reached the target; UINT64_MAX: none */
  _Atomic uint64_t runs;
} shared;

typedef struct worker {
  shared *all;
  rondo_placer placer;
  rondo_loads loads;
  int64_t *keys;
  uint64_t *best; /* offsets */
  uint64_t best_peak, best_run;
  rondo_thread thread;
  bool started;
} worker;

/* Chance ----------------------------------------------------------------------------------------------------------- */

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t next_random(uint64_t *state) {
  *state += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t mixed = *state;
  mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
  return mixed ^ (mixed >> 31);
}

/* 0 up to, not including, `most` << WEIGHT_BITS. */
static int64_t random_weight(uint64_t *state, int64_t most) {
  return (int64_t)(next_random(state) % ((uint64_t)most << WEIGHT_BITS));
}

/* Keys ------------------------------------------------------------------------------------------------------------- */

/* What an episode prefers. Crowding counts for little in most episodes, and for more than the rest in some. */
typedef struct taste {
  int64_t bytes, steps, crowding; /* weights of logarithms */
  int64_t noise;                  /* weight */
} taste;

/* The first episode prefers large areas, those first that live where it is crowded. */
static taste first_taste(void) {
  const int64_t one = INT64_C(1) << WEIGHT_BITS;
  return (taste){.bytes = one, .steps = one, .crowding = 50 * one};
}

static taste random_taste(uint64_t *state) {
  const bool crowded = next_random(state) % 3 == 0;
  taste made = {.bytes = random_weight(state, 2), .steps = random_weight(state, 2)};
  made.crowding = random_weight(state, crowded ? 100 : 4);
  made.noise = random_weight(state, 1);
  return made;
}

static void begin_keys(worker *w, const taste *by, uint64_t *state) {
  const rondo_boxes *boxes = w->all->of->boxes;
  for (uint32_t i = 0; i < boxes->count; i++) {
    w->keys[i] = by->bytes * rondo_logarithm(boxes->boxes[i].bytes) + by->steps * rondo_logarithm(boxes->steps[i]) +
                 by->crowding * rondo_logarithm(boxes->crowding[i]) + by->noise * (int64_t)(next_random(state) >> 48);
  }
}

static void order_by_keys(worker *w) {
  rondo_placer *placer = &w->placer;
  const uint32_t count = w->all->of->boxes->count;
  for (uint32_t i = 0; i < count; i++) placer->entries[i] = (rondo_sort_entry){(uint64_t)(INT64_MAX - w->keys[i]), i};
  rondo_sort_entries(placer->entries, placer->entries + count, count);
  for (uint32_t i = 0; i < count; i++) placer->order[i] = placer->entries[i].value;
}

/* Promotes what is left in the section of the conflict and begins or ends within the segment: it would have fitted
 * there next to what was placed instead, and what is longer on both sides can wait. */
static void promote(worker *w, uint64_t *state) {
  const rondo_box *boxes = w->all->of->boxes->boxes;
  const rondo_skyline_conflict *at = &w->placer.skyline.conflict;
  for (uint32_t i = 0; i < w->all->of->boxes->count && boxes[i].lower <= at->section; i++) {
    if (boxes[i].upper <= at->section || !rondo_box_tree_holds(&w->placer.skyline.tree, i)) continue;
    if (boxes[i].lower < at->lower && boxes[i].upper > at->upper) continue;
    w->keys[i] += (INT64_C(1) << (KEY_BITS - 1)) + (random_weight(state, 1) << 16);
  }
}

/* Runs ------------------------------------------------------------------------------------------------------------- */

static void note_hit(shared *all, uint64_t run) {
  uint64_t first = atomic_load(&all->first_hit);
  while (run < first && !atomic_compare_exchange_weak(&all->first_hit, &first, run)) continue;
}

static void keep(worker *w, uint64_t run, uint64_t peak) {
  if (peak >= w->best_peak) return;
  w->best_peak = peak;
  w->best_run = run;
  memcpy(w->best, w->placer.trial, w->all->of->boxes->count * sizeof *w->best);
  if (peak <= w->all->of->target) note_hit(w->all, run);
}

static bool is_over(const shared *all, uint64_t run) {
  return run >= all->of->runs || run > atomic_load(&all->first_hit) ||
         (all->of->deadline_ns != 0 && rondo_clock_ns() >= all->of->deadline_ns);
}

/* What an episode aims at. */
typedef struct aim {
  uint64_t best; /* peak */
  uint64_t peak; /* to be reached */
  uint32_t misses;
} aim;

static aim aim_below(const worker *w, uint64_t best) {
  const uint64_t target = w->all->of->target;
  return (aim){.best = best, .peak = best <= target ? target : target + (best - target) / NEARNESS};
}

static void note_miss(aim *own) {
  if (++own->misses < PATIENCE) return;
  own->misses = 0;
  own->peak += (own->best - own->peak) / 2;
}

/* False: no further episode is wanted. */
static bool run_episode(worker *w, uint64_t episode) {
  const uint64_t number = w->all->of->first_episode + episode;
  uint64_t state = w->all->of->seed ^ (number + 1) * UINT64_C(0xd1342543de82ef95);
  const taste by = number == 0 ? first_taste() : random_taste(&state);
  aim own = aim_below(w, w->all->peak);
  begin_keys(w, &by, &state);
  for (uint64_t run = episode * RONDO_RUNS_AN_EPISODE; run < (episode + 1) * RONDO_RUNS_AN_EPISODE; run++) {
    if (is_over(w->all, run)) return false;
    uint64_t peak = 0;
    order_by_keys(w);
    atomic_fetch_add(&w->all->runs, 1);
    if (rondo_placer_by_order(&w->placer, own.peak, &peak)) {
      keep(w, run, peak);
      own = aim_below(w, peak);
    } else {
      promote(w, &state);
      note_miss(&own);
    }
  }
  return true;
}

static void *work(void *argument) {
  worker *w = argument;
  rondo_placer_bind(&w->placer, w->all->of->boxes);
  w->placer.skyline.loads = &w->loads;
  while (run_episode(w, atomic_fetch_add(&w->all->next_episode, 1))) continue;
  return NULL;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status make_worker(const rondo_allocator *allocator, shared *all, worker *w) {
  const rondo_boxes *boxes = all->of->boxes;
  w->all = all;
  w->best_peak = UINT64_MAX;
  RONDO_TRY(rondo_placer_make(allocator, boxes->count, boxes->section_count, &w->placer));
  RONDO_TRY(rondo_loads_make(allocator, boxes, &w->loads));
  RONDO_TRY(rondo_allocate_items(allocator, boxes->count, sizeof *w->keys, &w->keys));
  return rondo_allocate_items(allocator, boxes->count, sizeof *w->best, &w->best);
}

static void free_worker(const rondo_allocator *allocator, const rondo_boxes *boxes, worker *w) {
  rondo_placer_free(allocator, &w->placer);
  rondo_loads_free(allocator, &w->loads);
  rondo_release(allocator, w->keys, boxes->count, sizeof *w->keys);
  rondo_release(allocator, w->best, boxes->count, sizeof *w->best);
}

static void run_threads(worker *workers, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    workers[i].started = rondo_thread_start(&workers[i].thread, "rondo-plan", work, &workers[i]) == RONDO_OK;
  }
  work(&workers[0]);
  for (uint32_t i = 1; i < count; i++) {
    if (workers[i].started) rondo_thread_join(workers[i].thread);
  }
}

/* A run that hit the target is taken before all that did not, and the first of them before later ones: as if there had
 * been one thread, which stops there. */
static bool is_better(const shared *all, const worker *a, const worker *b) {
  const bool a_hit = a->best_peak <= all->of->target;
  const bool b_hit = b->best_peak <= all->of->target;
  if (a_hit != b_hit) return a_hit;
  if (!a_hit && a->best_peak != b->best_peak) return a->best_peak < b->best_peak;
  return a->best_run < b->best_run;
}

static uint64_t take_best(const shared *all, const worker *workers, uint32_t count, uint64_t *offsets, uint64_t *peak) {
  const worker *best = &workers[0];
  for (uint32_t i = 1; i < count; i++) {
    if (is_better(all, &workers[i], best)) best = &workers[i];
  }
  if (best->best_peak < *peak) {
    *peak = best->best_peak;
    memcpy(offsets, best->best, all->of->boxes->count * sizeof *offsets);
  }
  const uint64_t hit = atomic_load(&all->first_hit);
  return hit != UINT64_MAX ? hit + 1 : atomic_load(&all->runs);
}

rondo_status rondo_restarts_improve(const rondo_allocator *allocator, const rondo_restarts *restarts,
                                    uint64_t *inout_offsets, uint64_t *inout_peak, uint64_t *out_runs) {
  shared all = {.of = restarts, .peak = *inout_peak};
  worker *workers = NULL;
  const uint32_t count = restarts->threads;
  assert(count > 0);
  *out_runs = 0;
  atomic_init(&all.next_episode, 0);
  atomic_init(&all.runs, 0);
  atomic_init(&all.first_hit, UINT64_MAX);
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *workers, &workers));
  rondo_status status = RONDO_OK;
  for (uint32_t i = 0; i < count && status == RONDO_OK; i++) status = make_worker(allocator, &all, &workers[i]);
  if (status == RONDO_OK) {
    run_threads(workers, count);
    *out_runs = take_best(&all, workers, count, inout_offsets, inout_peak);
  }
  for (uint32_t i = 0; i < count; i++) free_worker(allocator, restarts->boxes, &workers[i]);
  rondo_release(allocator, workers, count, sizeof *workers);
  return status;
}
