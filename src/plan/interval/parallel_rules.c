/* SPDX-License-Identifier: MIT
 * Threads take rules in their order. A run is cut short above the lowest peak so far, but neither at it nor below the
 * target: so whichever thread is fast, the rule that wins is run to its end. Each thread keeps the best of its own
 * runs.
 */
#include "plan/interval/parallel_rules.h"

#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"

/* Fewer boxes are placed before another thread has begun. */
#define FEWEST_BOXES 2048

typedef struct course {
  const rondo_race *of;
  _Atomic size_t next;
  _Atomic uint64_t lowest;  /* peak, or the limit */
  _Atomic size_t first_hit; /* the first rule that reached the target; SIZE_MAX: none */
} course;

typedef struct runner {
  course *all;
  rondo_placer *placer;
  rondo_placer own;  /* of a thread that is not the caller's */
  uint64_t *offsets; /* of the best run */
  uint64_t peak;
  size_t rule; /* that run's; the number of rules: none */
  rondo_thread thread;
  bool started;
} runner;

/* Runs ------------------------------------------------------------------------------------------------------------- */

static bool is_over(const course *all, size_t rule) {
  return rule >= all->of->count || rule > atomic_load(&all->first_hit) ||
         (rule > 0 && all->of->deadline_ns != 0 && rondo_clock_ns() >= all->of->deadline_ns);
}

static void note_peak(course *all, size_t rule, uint64_t peak) {
  uint64_t lowest = atomic_load(&all->lowest);
  while (peak < lowest && !atomic_compare_exchange_weak(&all->lowest, &lowest, peak)) continue;
  if (peak > all->of->target) return;
  size_t first = atomic_load(&all->first_hit);
  while (rule < first && !atomic_compare_exchange_weak(&all->first_hit, &first, rule)) continue;
}

/* A rule that reached the target comes before all that did not, and before later ones. */
static bool is_better(const course *all, size_t rule, uint64_t peak, const runner *than) {
  if (than->rule == all->of->count) return true;
  const bool hit = peak <= all->of->target;
  const bool other_hit = than->peak <= all->of->target;
  if (hit != other_hit) return hit;
  if (!hit && peak != than->peak) return peak < than->peak;
  return rule < than->rule;
}

static void run_rule(runner *r, size_t rule) {
  uint64_t peak = 0;
  const uint64_t lowest = atomic_load(&r->all->lowest);
  const uint64_t limit = lowest > r->all->of->target ? lowest : r->all->of->target;
  if (!rondo_placer_by_rule(r->placer, &r->all->of->rules[rule], limit, &peak) || peak > r->all->of->limit) {
    return;
  }
  note_peak(r->all, rule, peak);
  if (!is_better(r->all, rule, peak, r)) return;
  r->peak = peak;
  r->rule = rule;
  memcpy(r->offsets, r->placer->trial, r->placer->boxes->count * sizeof *r->offsets);
}

static void *run_rules(void *argument) {
  runner *r = argument;
  for (;;) {
    const size_t rule = atomic_fetch_add(&r->all->next, 1);
    if (is_over(r->all, rule)) return NULL;
    run_rule(r, rule);
  }
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status make_runner(const rondo_allocator *allocator, course *all, rondo_placer *placer, bool is_callers,
                                runner *out) {
  const rondo_boxes *boxes = placer->boxes;
  *out = (runner){.all = all, .placer = placer, .rule = all->of->count};
  RONDO_TRY(rondo_allocate_items(allocator, boxes->count, sizeof *out->offsets, &out->offsets));
  if (is_callers) return RONDO_OK;
  out->placer = &out->own;
  RONDO_TRY(rondo_placer_make(allocator, boxes->count, boxes->section_count, &out->own));
  rondo_placer_bind(&out->own, boxes);
  return RONDO_OK;
}

static void run_threads(runner *runners, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    runners[i].started = rondo_thread_start(&runners[i].thread, "rondo-plan", run_rules, &runners[i]) == RONDO_OK;
  }
  run_rules(&runners[0]);
  for (uint32_t i = 1; i < count; i++) {
    if (runners[i].started) rondo_thread_join(runners[i].thread);
  }
}

static void take_winner(const course *all, const runner *runners, uint32_t count, rondo_placer *placer,
                        size_t *out_winner, uint64_t *out_peak) {
  const runner *best = &runners[0];
  for (uint32_t i = 1; i < count; i++) {
    if (runners[i].rule != all->of->count && is_better(all, runners[i].rule, runners[i].peak, best)) best = &runners[i];
  }
  *out_winner = best->rule;
  *out_peak = best->peak;
  if (best->rule == all->of->count) return;
  memcpy(placer->trial, best->offsets, placer->boxes->count * sizeof *placer->trial);
}

rondo_status rondo_race_run(const rondo_allocator *allocator, const rondo_race *race, rondo_placer *placer,
                            size_t *out_winner, uint64_t *out_peak) {
  const uint32_t room = placer->boxes->count < FEWEST_BOXES ? 1 : race->threads;
  const uint32_t count = room < race->count ? room : race->count > 0 ? (uint32_t)race->count : 1;
  course all = {.of = race};
  runner *runners = NULL;
  atomic_init(&all.next, 0);
  atomic_init(&all.lowest, race->limit);
  atomic_init(&all.first_hit, SIZE_MAX);
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *runners, &runners));
  rondo_status status = RONDO_OK;
  for (uint32_t i = 0; i < count && status == RONDO_OK; i++) {
    status = make_runner(allocator, &all, placer, i == 0, &runners[i]);
  }
  if (status == RONDO_OK) {
    run_threads(runners, count);
    take_winner(&all, runners, count, placer, out_winner, out_peak);
  }
  for (uint32_t i = 0; i < count; i++) {
    rondo_placer_free(allocator, &runners[i].own);
    rondo_release(allocator, runners[i].offsets, placer->boxes->count, sizeof *runners[i].offsets);
  }
  rondo_release(allocator, runners, count, sizeof *runners);
  return status;
}
