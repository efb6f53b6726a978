/* SPDX-License-Identifier: MIT
 * A target lies above the bound by two fifteenths of the bound, in descents with odd numbers by one, or by a half, a
 * quarter and so on of that if the best plan is close to the bound. While the bound may still rise, the target is half
 * as far below the best plan, and again half as far after each target that was not reached within some steps. The
 * repair keeps what it learned about hard items until several targets in a row were missed.
 */
#include "plan/partial_order/order_descent.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"

#define STEPS_PER_CLOCK_READ 8
#define STEPS_PER_ITEM 2     /* steps for each item until a target is abandoned. If many items are unplaced at first, */
#define STEPS_OUT 32         /* up to as many again: all from 1/STEPS_OUT of the items on */
#define VISITS_PER_STEP 2048 /* average; more visits count as more steps */
#define FAILS_TO_RESET 6
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

static void reset_costs(rondo_order_descent *d, uint64_t seed) {
  seed = rondo_hash_u64(rondo_hash_u64(seed, d->number), d->rounds++);
  rondo_order_repair_reset_costs(&d->repair, seed);
}

rondo_status rondo_order_descent_make(rondo_scratch *scratch, const rondo_order_index *index, uint32_t number,
                                      rondo_order_descent *out) {
  *out = (rondo_order_descent){.number = number};
  RONDO_TRY(rondo_order_repair_make(scratch, index, &out->repair));
  if (number > 1) reset_costs(out, number);
  return rondo_scratch_take(scratch, index->lifetimes->problem->count, sizeof *out->offsets, &out->offsets);
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

/* Chooses a target, and begins to repair the best plan. */
static void begin(rondo_order_descent *d) {
  pthread_mutex_lock(&d->best->lock);
  const bool has_plan = d->best->peak != SIZE_MAX;
  const size_t target = choose_target(d);
  if (has_plan) memcpy(d->offsets, d->best->offsets, d->best->count * sizeof *d->offsets);
  pthread_mutex_unlock(&d->best->lock);
  rondo_order_repair_begin(&d->repair, has_plan ? d->offsets : NULL, target);
}

uint64_t rondo_order_descent_steps(const rondo_order_descent *descent) {
  const uint64_t by_visits = descent->repair.visits / VISITS_PER_STEP;
  return by_visits > descent->repair.steps ? by_visits : descent->repair.steps;
}

static bool may_continue(const rondo_order_descent *d) {
  if (rondo_order_descent_steps(d) >= d->max_steps || atomic_load_explicit(&d->best->is_over, memory_order_relaxed))
    return false;
  return d->deadline_ns == UINT64_MAX || rondo_clock_ns() < d->deadline_ns;
}

/* True if all items are placed. */
static bool reach_target(rondo_order_descent *d) {
  rondo_order_repair *repair = &d->repair;
  const uint64_t count = repair->index->count;
  const uint64_t out = repair->unplaced_count;
  const uint64_t most = STEPS_PER_ITEM * (count + (STEPS_OUT * out < count ? STEPS_OUT * out : count));
  for (const uint64_t end = repair->steps + most; repair->steps < end && may_continue(d);) {
    const uint64_t left = d->max_steps - rondo_order_descent_steps(d);
    if (rondo_order_repair_run(repair, left < STEPS_PER_CLOCK_READ ? left : STEPS_PER_CLOCK_READ)) {
      return true;
    }
  }
  return false;
}

static void note_failure(rondo_order_descent *d) {
  d->fails++;
  if (d->fails < FAILS_TO_RESET) return;
  d->fails = 0;
  reset_costs(d, d->best->options->seed);
}

void rondo_order_descent_run(rondo_order_descent *descent) {
  rondo_order_repair *repair = &descent->repair;
  while (may_continue(descent)) {
    begin(descent);
    if (reach_target(descent)) {
      const size_t made = rondo_order_repair_read(repair, descent->offsets);
      rondo_order_best_offer(descent->best, descent->offsets, made, "order: repair");
      descent->fails -= descent->fails > 0;
    } else if (may_continue(descent)) {
      note_failure(descent);
    }
  }
}
