/* SPDX-License-Identifier: MIT
 * Numbered trials on several threads, with the result of one thread that makes them in order: the first trial that
 * reaches the target ends the run; else the lowest peak counts, and the earlier trial among equals. So timing does not
 * matter. Each thread keeps the offsets of the best of its own trials.
 */
#ifndef RONDO_PLAN_SEARCH_TRIALS_H
#define RONDO_PLAN_SEARCH_TRIALS_H

#include <stdatomic.h>

#include "base/allocation.h"
#include "base/error.h"
#include "base/thread.h"

#define RONDO_NO_TRIAL UINT64_MAX

/* A thread. It is the first field of a struct of the caller. */
typedef struct rondo_trial_thread {
  struct rondo_trials *all;
  uint32_t index;        /* 0: the caller's thread */
  uint64_t *best;        /* offsets */
  uint64_t peak, number; /* of the best trial; RONDO_NO_TRIAL: none */
  rondo_status status;
  rondo_saved_error error;
  rondo_thread thread;
  bool started;
} rondo_trial_thread;

typedef struct rondo_trials {
  uint64_t count;       /* trials have numbers below it */
  uint64_t stride;      /* how many consecutive trials a thread takes at once */
  uint64_t target;      /* a peak that is good enough */
  uint64_t deadline_ns; /* of rondo_clock_ns: no trial but the first begins after it; 0: none */
  uint32_t boxes;       /* offsets of a plan */
  uint32_t threads;    /* including the caller's; fewer if there are fewer strides, or the system does not allow more */
  size_t thread_bytes; /* of the caller's struct */
  void *task;          /* for the functions below */
  rondo_status (*prepare)(void *thread, rondo_scratch *scratch); /* before any thread starts; the struct is zeroed */
  rondo_status (*attempt)(void *thread, uint64_t first);         /* makes the trials of one stride */
  void *thread_list;                                             /* set by rondo_trials_run, as all below */
  _Atomic uint64_t next;                                         /* the first trial that no thread has taken */
  _Atomic uint64_t first_hit; /* the first trial that reached the target; RONDO_NO_TRIAL: none */
} rondo_trials;

/* Whether the trial must not be made: a trial before it has reached the target, or time is over. */
bool rondo_trials_are_over(const rondo_trials *trials, uint64_t number);

/* Keeps a trial's plan if it is the thread's best. */
void rondo_trials_offer(rondo_trial_thread *thread, uint64_t number, uint64_t peak, const uint64_t *offsets);

/* Makes the trials. *out_best is the thread with the best one, which is in the scratch; NULL: there is none. Errors:
 * OUT_OF_MEMORY; that of the first thread that has one. */
RONDO_MUST_USE rondo_status rondo_trials_run(rondo_scratch *scratch, rondo_trials *trials,
                                             const rondo_trial_thread **out_best);

#endif
