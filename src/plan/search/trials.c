/* SPDX-License-Identifier: MIT
 * A trial that reached the target precedes all that did not, and later ones that did.
 */
#include "plan/search/trials.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"

static rondo_trial_thread *thread_at(const rondo_trials *trials, uint32_t index) {
  return (rondo_trial_thread *)(void *)((char *)trials->thread_list + index * trials->thread_bytes);
}

static rondo_status prepare(rondo_scratch *scratch, rondo_trials *trials) {
  const uint64_t strides = trials->count / trials->stride + (trials->count % trials->stride != 0);
  assert(trials->threads > 0 && trials->thread_bytes >= sizeof(rondo_trial_thread));
  if (trials->threads > strides) trials->threads = strides > 0 ? (uint32_t)strides : 1;
  atomic_store(&trials->next, 0);
  atomic_store(&trials->first_hit, RONDO_NO_TRIAL);
  RONDO_TRY(rondo_scratch_take(scratch, trials->threads, trials->thread_bytes, &trials->thread_list));
  for (uint32_t i = 0; i < trials->threads; i++) {
    rondo_trial_thread *thread = thread_at(trials, i);
    *thread = (rondo_trial_thread){.all = trials, .index = i, .peak = UINT64_MAX, .number = RONDO_NO_TRIAL};
    RONDO_TRY(rondo_scratch_take(scratch, trials->boxes, sizeof *thread->best, &thread->best));
    RONDO_TRY(trials->prepare(thread, scratch));
  }
  return RONDO_OK;
}

bool rondo_trials_are_over(const rondo_trials *trials, uint64_t number) {
  return number >= trials->count || number > atomic_load(&trials->first_hit) ||
         (number > 0 && rondo_clock_is_past(trials->deadline_ns));
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
  rondo_trials *trials = thread->all;
  while (thread->status == RONDO_OK) {
    const uint64_t first = atomic_fetch_add(&trials->next, trials->stride);
    if (rondo_trials_are_over(trials, first)) return NULL;
    thread->status = trials->attempt(thread, first);
  }
  rondo_error_save(&thread->error);
  return NULL;
}

rondo_status rondo_trials_run(rondo_scratch *scratch, rondo_trials *trials, const rondo_trial_thread **out_best) {
  *out_best = NULL;
  RONDO_TRY(prepare(scratch, trials));
  for (uint32_t i = 1; i < trials->threads; i++) {
    rondo_trial_thread *thread = thread_at(trials, i);
    thread->started = rondo_thread_start(&thread->thread, "rondo-plan", run, thread) == RONDO_OK;
  }
  run(trials->thread_list);
  for (uint32_t i = 1; i < trials->threads; i++) {
    if (thread_at(trials, i)->started) rondo_thread_join(thread_at(trials, i)->thread);
  }
  const rondo_trial_thread *best = NULL;
  for (uint32_t i = 0; i < trials->threads; i++) {
    const rondo_trial_thread *thread = thread_at(trials, i);
    if (thread->status != RONDO_OK) return rondo_error_raise(&thread->error);
    if (thread->number == RONDO_NO_TRIAL) continue;
    if (best == NULL || is_better(trials->target, thread->number, thread->peak, best)) best = thread;
  }
  *out_best = best;
  return RONDO_OK;
}
