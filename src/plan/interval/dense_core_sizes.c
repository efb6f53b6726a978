/* SPDX-License-Identifier: MIT
 * Threads take sizes in their order, and each repairs a copy of the plan. A core that reached the limit counts before
 * all that did not, then the lowest peak, then the first: whichever thread is fast.
 */
#include "plan/interval/dense_core_sizes.h"

#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"

/* Boxes of a core; how much larger than the largest of them a part has to be. */
static const uint32_t sizes[] = {512, 2048, 1024};
enum { SIZES = sizeof sizes / sizeof sizes[0], TIMES_LARGER = 3 };

/* Steps for planning a core, in the first round and in later ones. Up to one round, the effort of a repair doubles from
 * each round to the next, and the steps every other time. */
#define CORE_STEPS (UINT64_C(1) << 16)
#define LATER_CORE_STEPS (UINT64_C(1) << 14)
enum { LONGEST_ROUND = 5 };

/* Sizes grow by a part of theirs from round to round, up to this round, and begin again. */
enum { GROWTH = 4, GROWN_ROUNDS = 5 };

enum { MOST_REPAIRS = 2 };

typedef struct contest {
  const rondo_allocator *allocator;
  const rondo_cores *of;
  const rondo_part *part;
  const uint64_t *offsets; /* of the plan that there is, and its peak */
  uint64_t peak;
  _Atomic uint32_t next;
  _Atomic uint32_t first_hit;    /* the first core that reached the limit; UINT32_MAX: none */
  _Atomic uint64_t steps[SIZES]; /* that each core took; 0: not known yet; UINT64_MAX: it was cut short */
  uint64_t needed[SIZES];        /* rondo_core_cost, of each */
} contest;

typedef struct contestant {
  contest *all;
  uint64_t *offsets, *best; /* what is worked on, and the best so far */
  uint64_t peak;            /* of the best */
  uint32_t core;            /* that it is around; SIZES: none */
  rondo_status status;
  rondo_saved_error error;
  rondo_thread thread;
  bool started;
} contestant;

/* Cores ------------------------------------------------------------------------------------------------------------ */

static bool is_over(const contest *all, uint32_t core) {
  return core >= SIZES || core > atomic_load(&all->first_hit) ||
         (all->of->deadline_ns != 0 && rondo_clock_ns() >= all->of->deadline_ns);
}

static void note_hit(contest *all, uint32_t core) {
  uint32_t first = atomic_load(&all->first_hit);
  while (core < first && !atomic_compare_exchange_weak(&all->first_hit, &first, core)) continue;
}

static bool is_better(const contest *all, uint32_t core, uint64_t peak, const contestant *than) {
  if (than->core == SIZES) return true;
  const bool hit = peak <= all->of->limit;
  const bool other_hit = than->peak <= all->of->limit;
  if (hit != other_hit) return hit;
  if (!hit && peak != than->peak) return peak < than->peak;
  return core < than->core;
}

/* What the cores before that are through leave for a core. Where they take more, the round is of no account. */
static uint64_t steps_left(const contest *all, uint32_t core) {
  uint64_t left = all->of->most_steps;
  for (uint32_t i = 0; i < core; i++) {
    const uint64_t steps = atomic_load(&all->steps[i]);
    if (steps >= left) return 0;
    left -= steps;
  }
  return left;
}

static rondo_core core_of(const rondo_cores *cores, uint32_t number) {
  const uint64_t round = cores->round < LONGEST_ROUND ? cores->round : LONGEST_ROUND;
  return (rondo_core){
      .boxes = sizes[number] + sizes[number] / GROWTH * (uint32_t)(cores->round % GROWN_ROUNDS),
      .repairs = cores->round == 0 ? 1 : MOST_REPAIRS,
      .steps = cores->round == 0 ? CORE_STEPS : LATER_CORE_STEPS << round / 2,
      .seed = cores->round,
      .effort = round == 0 ? 1 : UINT64_C(1) << (round - 1),
      .limit = cores->limit,
      .deadline_ns = cores->deadline_ns,
  };
}

static rondo_status try_core(contestant *c, uint32_t number) {
  contest *all = c->all;
  rondo_core core = core_of(all->of, number);
  rondo_core_cost cost;
  uint64_t peak = all->peak;
  if (core.boxes > all->part->boxes.count / TIMES_LARGER) return RONDO_OK;
  memcpy(c->offsets, all->offsets, all->part->boxes.count * sizeof *c->offsets);
  core.most_steps = steps_left(all, number);
  RONDO_TRY(rondo_core_improve(all->allocator, &core, all->part, all->of->order, c->offsets, &peak, &cost));
  all->needed[number] = cost.needed;
  atomic_store(&all->steps[number], cost.needed > core.most_steps ? UINT64_MAX : cost.steps);
  if (peak == all->peak || !is_better(all, number, peak, c)) return RONDO_OK;
  if (peak <= all->of->limit) note_hit(all, number);
  uint64_t *const spare = c->best;
  c->best = c->offsets;
  c->offsets = spare;
  c->peak = peak;
  c->core = number;
  return RONDO_OK;
}

static void *try_cores(void *argument) {
  contestant *c = argument;
  while (c->status == RONDO_OK) {
    const uint32_t core = atomic_fetch_add(&c->all->next, 1);
    if (is_over(c->all, core)) return NULL;
    c->status = try_core(c, core);
    if (c->status != RONDO_OK) rondo_error_save(&c->error);
  }
  return NULL;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status make_contestants(contest *all, uint32_t count, contestant *out) {
  const uint32_t boxes = all->part->boxes.count;
  for (uint32_t i = 0; i < count; i++) {
    out[i].all = all;
    out[i].core = SIZES;
    RONDO_TRY(rondo_allocate_items(all->allocator, boxes, sizeof *out[i].offsets, &out[i].offsets));
    RONDO_TRY(rondo_allocate_items(all->allocator, boxes, sizeof *out[i].best, &out[i].best));
  }
  return RONDO_OK;
}

static void free_contestants(const contest *all, uint32_t count, contestant *contestants) {
  const uint32_t boxes = all->part->boxes.count;
  for (uint32_t i = 0; i < count; i++) {
    rondo_release(all->allocator, contestants[i].offsets, boxes, sizeof *contestants[i].offsets);
    rondo_release(all->allocator, contestants[i].best, boxes, sizeof *contestants[i].best);
  }
  rondo_release(all->allocator, contestants, count, sizeof *contestants);
}

static rondo_status run_threads(contestant *contestants, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    contestant *c = &contestants[i];
    c->started = rondo_thread_start(&c->thread, "rondo-plan", try_cores, c) == RONDO_OK;
  }
  try_cores(&contestants[0]);
  for (uint32_t i = 1; i < count; i++) {
    if (contestants[i].started) rondo_thread_join(contestants[i].thread);
  }
  for (uint32_t i = 0; i < count; i++) {
    if (contestants[i].status != RONDO_OK) return rondo_error_raise(&contestants[i].error);
  }
  return RONDO_OK;
}

static void take_best(const contest *all, const contestant *contestants, uint32_t count, uint64_t *offsets,
                      uint64_t *peak) {
  const contestant *best = &contestants[0];
  for (uint32_t i = 1; i < count; i++) {
    if (contestants[i].core != SIZES && is_better(all, contestants[i].core, contestants[i].peak, best)) {
      best = &contestants[i];
    }
  }
  if (best->core == SIZES) return;
  *peak = best->peak;
  memcpy(offsets, best->best, all->part->boxes.count * sizeof *offsets);
}

/* False: one of the cores up to the first that reached the limit was cut short, or would have been one by one. */
static bool count_steps(const contest *all, uint64_t *out) {
  uint64_t left = all->of->most_steps;
  for (uint32_t i = 0; i < SIZES && i <= all->first_hit; i++) {
    if (all->needed[i] > left) return false;
    left -= all->steps[i];
  }
  *out = all->of->most_steps - left;
  return true;
}

rondo_status rondo_cores_improve(const rondo_allocator *allocator, const rondo_cores *cores, const rondo_part *part,
                                 uint64_t *inout_offsets, uint64_t *inout_peak, uint64_t *out_steps) {
  contest all = {.allocator = allocator, .of = cores, .part = part, .offsets = inout_offsets, .peak = *inout_peak};
  const uint32_t count = cores->threads < SIZES ? cores->threads : SIZES;
  contestant *contestants = NULL;
  *out_steps = 0;
  if (sizes[0] > part->boxes.count / TIMES_LARGER || cores->limit >= *inout_peak) return RONDO_OK;
  atomic_init(&all.next, 0);
  atomic_init(&all.first_hit, UINT32_MAX);
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *contestants, &contestants));
  rondo_status status = make_contestants(&all, count, contestants);
  if (status == RONDO_OK) status = run_threads(contestants, count);
  *out_steps = cores->most_steps;
  if (count_steps(&all, out_steps) && status == RONDO_OK)
    take_best(&all, contestants, count, inout_offsets, inout_peak);
  free_contestants(&all, count, contestants);
  return status;
}
