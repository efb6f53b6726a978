/* SPDX-License-Identifier: MIT
 * A trial that reached the target comes before all that did not, and before later ones.
 */
#include "plan/search/trials.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"

void *rondo_trials_thread(const rondo_trials *trials, uint32_t index) {
  assert(index < trials->threads);
  return (char *)trials->thread_list + index * trials->thread_bytes;
}

rondo_status rondo_trials_make(rondo_scratch *scratch, rondo_trials *trials) {
  assert(trials->threads > 0 && trials->thread_bytes >= sizeof(rondo_trial_thread));
  RONDO_TRY(rondo_scratch_take(scratch, trials->threads, trials->thread_bytes, &trials->thread_list));
  for (uint32_t i = 0; i < trials->threads; i++) {
    rondo_trial_thread *thread = rondo_trials_thread(trials, i);
    *thread = (rondo_trial_thread){.all = trials, .peak = UINT64_MAX, .number = RONDO_NO_TRIAL};
    RONDO_TRY(rondo_scratch_take(scratch, trials->boxes, sizeof *thread->best, &thread->best));
  }
  atomic_store(&trials->next, 0);
  atomic_store(&trials->first_hit, RONDO_NO_TRIAL);
  return RONDO_OK;
}

bool rondo_trials_are_over(const rondo_trials *trials, uint64_t number) {
  return number >= trials->count || number > atomic_load(&trials->first_hit) ||
         (trials->deadline_ns != 0 && rondo_clock_ns() >= trials->deadline_ns);
}

static bool is_better(uint64_t target, uint64_t number, uint64_t peak, const rondo_trial_thread *than) {
  if (than->number == RONDO_NO_TRIAL) return true;
  const bool hit = peak <= target;
  const bool other_hit = than->peak <= target;
  if (hit != other_hit) return hit;
  if (!hit && peak != than->peak) return peak < than->peak;
  return number < than->number;
}

void rondo_trials_offer(rondo_trial_thread *thread, uint64_t number, uint64_t peak, const uint64_t *offsets) {
  rondo_trials *trials = thread->all;
  assert(number < trials->count);
  if (!is_better(trials->target, number, peak, thread)) return;
  thread->peak = peak;
  thread->number = number;
  memcpy(thread->best, offsets, trials->boxes * sizeof *offsets);
  if (peak > trials->target) return;
  uint64_t first = atomic_load(&trials->first_hit);
  while (number < first && !atomic_compare_exchange_weak(&trials->first_hit, &first, number)) continue;
}

static void *run(void *argument) {
  rondo_trial_thread *thread = argument;
  thread->status = thread->all->work(argument);
  if (thread->status != RONDO_OK) rondo_error_save(&thread->error);
  return NULL;
}

rondo_status rondo_trials_run(rondo_trials *trials, const rondo_trial_thread **out_best) {
  *out_best = NULL;
  for (uint32_t i = 1; i < trials->threads; i++) {
    rondo_trial_thread *thread = rondo_trials_thread(trials, i);
    thread->started = rondo_thread_start(&thread->thread, "rondo-plan", run, thread) == RONDO_OK;
  }
  run(trials->thread_list);
  for (uint32_t i = 1; i < trials->threads; i++) {
    const rondo_trial_thread *thread = rondo_trials_thread(trials, i);
    if (thread->started) rondo_thread_join(thread->thread);
  }
  for (uint32_t i = 0; i < trials->threads; i++) {
    const rondo_trial_thread *thread = rondo_trials_thread(trials, i);
    if (thread->status != RONDO_OK) return rondo_error_raise(&thread->error);
    if (thread->number == RONDO_NO_TRIAL) continue;
    if (*out_best == NULL || is_better(trials->target, thread->number, thread->peak, *out_best)) *out_best = thread;
  }
  return RONDO_OK;
}
