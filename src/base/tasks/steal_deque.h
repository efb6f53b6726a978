/* SPDX-License-Identifier: MIT
 * A work-stealing deque of fixed capacity: its owner pushes and pops at the bottom, any thread steals at the top.
 *
 * Invariant: top <= bottom + 1, and bottom - top <= RONDO_DEQUE_CAPACITY. `top` only grows, so a thief's exchange of it
 * succeeds only if the entry that the thief has read is still the oldest one.
 *
 * Threads: push and pop belong to the owner. peek and take are for any thread. Zeroed memory is an empty deque.
 * push and peek are sequentially consistent, so a thread that pushes and then looks for sleepers, and a thread that
 * announces its sleep and then looks at the deque, cannot both miss each other (base/tasks/sleepers.h).
 */
#ifndef RONDO_BASE_TASKS_STEAL_DEQUE_H
#define RONDO_BASE_TASKS_STEAL_DEQUE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"

enum { RONDO_DEQUE_CAPACITY = 256 };
#define RONDO_DEQUE_EMPTY UINT64_MAX

typedef struct rondo_steal_deque {
  alignas(RONDO_CACHE_LINE) _Atomic int64_t top;
  alignas(RONDO_CACHE_LINE) _Atomic int64_t bottom;
  alignas(RONDO_CACHE_LINE) _Atomic uint64_t entries[RONDO_DEQUE_CAPACITY];
} rondo_steal_deque;

/* The oldest entry as a thief saw it. */
typedef struct rondo_steal {
  int64_t top;
  uint64_t entry;
} rondo_steal;

/* Pushes entries, none of which is RONDO_DEQUE_EMPTY; thieves see all of them at once. Returns how many: fewer than
 * `count` if the deque is full. */
uint32_t rondo_deque_push(rondo_steal_deque *deque, const uint64_t *entries, uint32_t count);
/* The newest entry; RONDO_DEQUE_EMPTY if there is none. */
uint64_t rondo_deque_pop(rondo_steal_deque *deque);

/* For the owner: true if the deque is empty, or nearly so. The answer may be out of date at once. */
static inline bool rondo_deque_looks_empty(const rondo_steal_deque *deque) {
  return atomic_load_explicit(&deque->top, memory_order_relaxed) >=
         atomic_load_explicit(&deque->bottom, memory_order_relaxed);
}

/* Stealing takes two steps: a look at the oldest entry, and taking it. Each returns false if it finds none: another
 * thread may have taken it. */
bool rondo_deque_peek(rondo_steal_deque *deque, rondo_steal *out);
bool rondo_deque_take(rondo_steal_deque *deque, const rondo_steal *steal);

/* Asserts the invariant. For the owner, or while no other thread uses the deque. */
void rondo_deque_check(const rondo_steal_deque *deque);

#endif
