/* SPDX-License-Identifier: MIT
 * Targets are the bound and two fifteenths of it, one, a half, and so on; as long as the bound may yet be raised, half
 * way there. One that is not reached is given up after some steps for one half as far from the best plan. What the
 * repair has learnt about hard items stays, until several targets in a row were not reached.
 */
#include "plan/partial_order/order_descent.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"

#define STEPS_A_LOOK_AT_THE_CLOCK 8
#define STEPS_AN_ITEM 2   /* until a target is given up; and as many again where much is out at first, */
#define STEPS_OUT 32      /* items by this, or more */
#define LOOKS_A_STEP 2048 /* on average; else the steps count as so many that they are */
#define FAILS_TO_FORGET 6
#define PARTS 15

/* The best plan ---------------------------------------------------------------------------------------------------- */

static void note_over(rondo_order_best *best) {
  const double enough = best->options->gap * (double)best->bound;
  if (best->peak == SIZE_MAX) return;
  if (best->peak > best->bound && best->peak > best->options->capacity && (double)best->peak > enough) return;
  atomic_store(&best->is_over, true);
}

void rondo_order_best_offer(rondo_order_best *best, const size_t *offsets, size_t peak, const char *method) {
  pthread_mutex_lock(&best->lock);
  if (peak < best->peak) {
    best->peak = peak;
    best->method = method;
    memcpy(best->offsets, offsets, best->count * sizeof *offsets);
    note_over(best);
  }
  pthread_mutex_unlock(&best->lock);
}

void rondo_order_best_raise_bound(rondo_order_best *best, size_t bound) {
  pthread_mutex_lock(&best->lock);
  if (bound > best->bound) best->bound = bound;
  best->bound_is_final = true;
  note_over(best);
  pthread_mutex_unlock(&best->lock);
}

/* Descents --------------------------------------------------------------------------------------------------------- */

static void forget(rondo_order_descent *d, uint64_t seed) {
  seed = rondo_hash_u64(rondo_hash_u64(seed, d->number), d->rounds++);
  rondo_order_repair_forget(&d->repair, seed);
}

rondo_status rondo_order_descent_make(rondo_scratch *scratch, const rondo_order_index *index, uint32_t number,
                                      rondo_order_descent *out) {
  *out = (rondo_order_descent){.number = number};
  RONDO_TRY(rondo_order_repair_make(scratch, index, &out->repair));
  if (number > 1) forget(out, number);
  return rondo_scratch_take(scratch, index->lives->problem->count, sizeof *out->offsets, &out->offsets);
}

static size_t choose_target(const rondo_order_descent *d) {
  const rondo_order_best *now = d->best;
  const size_t gap = now->peak > now->bound ? now->peak - now->bound : 0;
  size_t above = now->bound / PARTS * (2 - d->number % 2);
  while (above > gap - gap / 8) above /= 2;
  if (now->peak == SIZE_MAX) return now->bound + above;
  const size_t less = (gap - above) >> (d->fails + !now->bound_is_final);
  return now->peak - (less > 0 ? less : 1);
}

/* Chooses a target and begins the repair with the best plan. */
static void begin(rondo_order_descent *d) {
  pthread_mutex_lock(&d->best->lock);
  const bool has_plan = d->best->peak != SIZE_MAX;
  const size_t target = choose_target(d);
  if (has_plan) memcpy(d->offsets, d->best->offsets, d->best->count * sizeof *d->offsets);
  pthread_mutex_unlock(&d->best->lock);
  rondo_order_repair_begin(&d->repair, has_plan ? d->offsets : NULL, target);
}

uint64_t rondo_order_descent_steps(const rondo_order_descent *descent) {
  const uint64_t by_looks = descent->repair.looks / LOOKS_A_STEP;
  return by_looks > descent->repair.steps ? by_looks : descent->repair.steps;
}

static bool may_go_on(const rondo_order_descent *d) {
  if (rondo_order_descent_steps(d) >= d->most_steps || atomic_load_explicit(&d->best->is_over, memory_order_relaxed))
    return false;
  return d->deadline_ns == UINT64_MAX || rondo_clock_ns() < d->deadline_ns;
}

/* True when nothing is out. */
static bool reach_target(rondo_order_descent *d) {
  rondo_order_repair *repair = &d->repair;
  const uint64_t count = repair->index->count;
  const uint64_t out = repair->out_count;
  const uint64_t most = STEPS_AN_ITEM * (count + (STEPS_OUT * out < count ? STEPS_OUT * out : count));
  for (const uint64_t end = repair->steps + most; repair->steps < end && may_go_on(d);) {
    const uint64_t left = d->most_steps - rondo_order_descent_steps(d);
    if (rondo_order_repair_run(repair, left < STEPS_A_LOOK_AT_THE_CLOCK ? left : STEPS_A_LOOK_AT_THE_CLOCK)) {
      return true;
    }
  }
  return false;
}

static void note_fail(rondo_order_descent *d) {
  d->fails++;
  if (d->fails < FAILS_TO_FORGET) return;
  d->fails = 0;
  forget(d, d->best->options->seed);
}

void rondo_order_descent_run(rondo_order_descent *descent) {
  rondo_order_repair *repair = &descent->repair;
  while (may_go_on(descent)) {
    begin(descent);
    if (reach_target(descent)) {
      const size_t made = rondo_order_repair_read(repair, descent->offsets);
      rondo_order_best_offer(descent->best, descent->offsets, made, "order: repair");
      descent->fails -= descent->fails > 0;
    } else if (may_go_on(descent)) {
      note_fail(descent);
    }
  }
}
