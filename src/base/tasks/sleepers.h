/* SPDX-License-Identifier: MIT
 * Threads that sleep until others have something for them. `count` says how many sleep or are about to; `epoch` is the
 * futex that they sleep on.
 *
 * No wake is lost. A sleeper calls enter, looks once more for something to do, and sleeps only if there is nothing. A
 * waker makes its work visible by a sequentially consistent store, calls exist, and calls wake if there are sleepers.
 * All four accesses are sequentially consistent: either the waker sees the count, or the sleeper sees the work. The
 * epoch is read in enter and changed by the waker, so a thread that is woken before it sleeps does not fall asleep.
 */
#ifndef RONDO_BASE_TASKS_SLEEPERS_H
#define RONDO_BASE_TASKS_SLEEPERS_H

#include <assert.h>

#include "base/thread.h"

typedef struct rondo_sleepers {
  _Atomic uint32_t count, epoch;
} rondo_sleepers;

/* Announces a sleep. The result goes to rondo_sleepers_sleep; call rondo_sleepers_leave afterwards in any case. */
static inline uint32_t rondo_sleepers_enter(rondo_sleepers *sleepers) {
  atomic_fetch_add(&sleepers->count, 1);
  return atomic_load(&sleepers->epoch);
}

static inline void rondo_sleepers_sleep(rondo_sleepers *sleepers, uint32_t epoch) {
  rondo_futex_wait(&sleepers->epoch, epoch);
}

static inline void rondo_sleepers_leave(rondo_sleepers *sleepers) {
  const uint32_t before = atomic_fetch_sub(&sleepers->count, 1);
  assert(before > 0);
  (void)before;
}

static inline bool rondo_sleepers_exist(rondo_sleepers *sleepers) { return atomic_load(&sleepers->count) != 0; }

/* Wakes at most `most` threads, whether or not any sleeps. */
static inline void rondo_sleepers_wake(rondo_sleepers *sleepers, uint32_t most) {
  atomic_fetch_add(&sleepers->epoch, 1);
  rondo_futex_wake(&sleepers->epoch, most);
}

#endif
