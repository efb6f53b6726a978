/* SPDX-License-Identifier: MIT
 * A rule is a trial. A run is cut short above the lowest peak so far, but neither at it nor below the target: so
 * whichever thread is fast, the rule that wins is run to its end.
 */
#include "plan/interval/parallel_rules.h"

#include <assert.h>
#include <string.h>

#include "plan/search/trials.h"

/* Fewer boxes are placed before another thread has begun. */
#define FEWEST_BOXES 2048

typedef struct runner {
  rondo_trial_thread base;
  const rondo_rules_task *task;
  rondo_placer *placer;
  rondo_placer own;         /* of a thread that is not the caller's */
  _Atomic uint64_t *lowest; /* peak of all threads, or the limit */
} runner;

static void run_rule(runner *r, uint64_t rule) {
  uint64_t peak = 0;
  uint64_t lowest = atomic_load(r->lowest);
  const uint64_t limit = lowest > r->task->target ? lowest : r->task->target;
  if (!rondo_placer_by_rule(r->placer, &r->task->rules[rule], limit, &peak) || peak > r->task->limit) return;
  while (peak < lowest && !atomic_compare_exchange_weak(r->lowest, &lowest, peak)) continue;
  rondo_trials_offer(&r->base, rule, peak, r->placer->trial);
}

/* The first rule runs even when there is no time: there has to be a plan. */
static rondo_status run_rules(void *thread) {
  runner *r = thread;
  for (;;) {
    const uint64_t rule = atomic_fetch_add(&r->base.all->next, 1);
    if (rule > 0 && rondo_trials_are_over(r->base.all, rule)) return RONDO_OK;
    run_rule(r, rule);
  }
}

static rondo_status run_with(rondo_scratch *scratch, const rondo_rules_task *task, rondo_trials *trials,
                             rondo_placer *placer, const rondo_trial_thread **out_best) {
  _Atomic uint64_t lowest = task->limit;
  RONDO_TRY(rondo_trials_make(scratch, trials));
  for (uint32_t i = 0; i < trials->threads; i++) {
    runner *r = rondo_trials_thread(trials, i);
    r->task = task;
    r->lowest = &lowest;
    r->placer = i == 0 ? placer : &r->own;
    if (i == 0) continue;
    RONDO_TRY(rondo_placer_make(scratch, placer->boxes->count, placer->boxes->section_count, &r->own));
    rondo_placer_bind(&r->own, placer->boxes);
  }
  return rondo_trials_run(trials, out_best);
}

rondo_status rondo_rules_run(const rondo_allocator *allocator, const rondo_rules_task *task, rondo_placer *placer,
                             size_t *out_winner, uint64_t *out_peak) {
  const uint32_t room = placer->boxes->count < FEWEST_BOXES ? 1 : task->threads;
  rondo_trials trials = {.count = task->count,
                         .target = task->target,
                         .deadline_ns = task->deadline_ns,
                         .boxes = placer->boxes->count,
                         .threads = room < task->count ? room : (uint32_t)task->count,
                         .thread_bytes = sizeof(runner),
                         .work = run_rules};
  rondo_scratch scratch = {.allocator = allocator};
  const rondo_trial_thread *best = NULL;
  assert(task->count > 0);
  *out_winner = task->count;
  const rondo_status status = run_with(&scratch, task, &trials, placer, &best);
  if (status == RONDO_OK && best != NULL) {
    *out_winner = best->number;
    *out_peak = best->peak;
    memcpy(placer->trial, best->best, placer->boxes->count * sizeof *placer->trial);
  }
  rondo_scratch_free(&scratch);
  return status;
}
