/* SPDX-License-Identifier: MIT
 * Targets are the bound and an eighth, a sixteenth, and so on: halves of what is above the bound. One that is not
 * reached is given up after some steps for one half as far from the best plan. What the repair has learnt about hard
 * items stays, until several targets in a row were not reached.
 */
#include "plan/order_descent.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"

#define STEPS_A_LOOK_AT_THE_CLOCK 8
#define STEPS_AN_ITEM 2 /* and so many for each that is out at first, until a target is given up */
#define STEPS_OUT 64
#define FAILS_TO_FORGET 6
#define FIRST_PART 8 /* of the bound, that the first target may be above it */

rondo_status rondo_order_descent_make(const rondo_allocator *allocator, const rondo_order_index *index, size_t most,
                                      rondo_order_descent *out) {
  *out = (rondo_order_descent){0};
  RONDO_TRY(rondo_order_repair_make(allocator, index, most, &out->repair));
  return rondo_allocate_items(allocator, index->lives->problem->count, sizeof *out->offsets, &out->offsets);
}

void rondo_order_descent_free(const rondo_allocator *allocator, rondo_order_descent *descent) {
  const rondo_order_index *index = descent->repair.index;
  if (index != NULL) {
    rondo_release(allocator, descent->offsets, index->lives->problem->count, sizeof *descent->offsets);
  }
  rondo_order_repair_free(allocator, &descent->repair);
  *descent = (rondo_order_descent){0};
}

/* How much lower than the peak to aim. */
static size_t choose_less(const rondo_order_descent *d, size_t peak, size_t bound) {
  const size_t gap = peak > bound ? peak - bound : 0;
  size_t above = bound / FIRST_PART >> d->number % 2;
  while (above > gap - gap / 8) above /= 2;
  const size_t less = (gap - above) >> d->fails;
  return less > 0 ? less : 1;
}

static bool may_go_on(const rondo_order_descent *d) {
  if (d->repair.steps >= d->most_steps) return false;
  return d->deadline_ns == UINT64_MAX || rondo_clock_ns() < d->deadline_ns;
}

/* True when nothing is out. */
static bool reach_target(rondo_order_descent *d) {
  rondo_order_repair *repair = &d->repair;
  const uint64_t most = STEPS_AN_ITEM * (uint64_t)repair->index->count + STEPS_OUT * (uint64_t)repair->out_count;
  for (const uint64_t end = repair->steps + most; repair->steps < end && may_go_on(d);) {
    const uint64_t left = d->most_steps - repair->steps;
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
  d->rounds++;
  rondo_order_repair_forget(&d->repair, rondo_hash_u64(rondo_hash_u64(d->best->options->seed, d->number), d->rounds));
}

void rondo_order_descent_run(rondo_order_descent *descent) {
  size_t peak = 0;
  size_t bound = 0;
  while (may_go_on(descent) && !rondo_order_best_read(descent->best, descent->offsets, &peak, &bound)) {
    rondo_order_repair_begin(&descent->repair, descent->offsets, peak - choose_less(descent, peak, bound));
    if (reach_target(descent)) {
      const size_t made = rondo_order_repair_read(&descent->repair, descent->offsets);
      rondo_order_best_offer(descent->best, descent->offsets, made, "order: repair");
      descent->fails -= descent->fails > 0;
    } else if (may_go_on(descent)) {
      note_fail(descent);
    }
  }
}
