/* SPDX-License-Identifier: MIT
 * Numbered trials on several threads, with the result of one thread that makes them in order: the first trial that
 * reaches the target ends the run, else the lowest peak counts, and the earlier trial among equals. So it does not
 * matter which thread is fast. Each thread keeps the offsets of the best of its own trials.
 */
#ifndef RONDO_PLAN_SEARCH_TRIALS_H
#define RONDO_PLAN_SEARCH_TRIALS_H

#include <stdatomic.h>

#include "base/allocation.h"
#include "base/error.h"
#include "base/thread.h"

#define RONDO_NO_TRIAL UINT64_MAX

/* A thread; the first field of a struct of the caller's. */
typedef struct rondo_trial_thread {
  struct rondo_trials *all;
  uint64_t *best;        /* offsets */
  uint64_t peak, number; /* of the best trial; RONDO_NO_TRIAL: none */
  rondo_status status;
  rondo_saved_error error;
  rondo_thread thread;
  bool started;
} rondo_trial_thread;

typedef struct rondo_trials {
  uint64_t count;       /* of trials: they have numbers below it */
  uint64_t target;      /* a peak that is good enough */
  uint64_t deadline_ns; /* of rondo_clock_ns; 0: none */
  uint32_t boxes;       /* offsets of a plan */
  uint32_t threads;     /* the caller's included; fewer when the system gives no more */
  size_t thread_bytes;  /* of the caller's struct */
  rondo_status (*work)(void *thread);
  void *thread_list;          /* made by rondo_trials_make */
  _Atomic uint64_t next;      /* for the threads to take numbers from */
  _Atomic uint64_t first_hit; /* the first trial that reached the target; RONDO_NO_TRIAL: none */
} rondo_trials;

/* Makes the threads' structs, zeroed but for the first field. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_trials_make(rondo_scratch *scratch, rondo_trials *trials);
void *rondo_trials_thread(const rondo_trials *trials, uint32_t index);

/* Whether the trial is not wanted any more. */
bool rondo_trials_are_over(const rondo_trials *trials, uint64_t number);

/* Takes a trial's plan, if it is the thread's best. */
void rondo_trials_offer(rondo_trial_thread *thread, uint64_t number, uint64_t peak, const uint64_t *offsets);

/* Runs `work` on all threads. *out_best is the thread with the best trial; NULL: there was none. Errors: that of the
 * first thread that has one. */
RONDO_MUST_USE rondo_status rondo_trials_run(rondo_trials *trials, const rondo_trial_thread **out_best);

#endif
