/* SPDX-License-Identifier: MIT
 * A counter that one thread posts and others await; the hand-written bounds use it. A waiting thread pauses some times,
 * then yields some times, then sleeps in futex(2).
 */
#ifndef RONDO_BENCH_PARK_H
#define RONDO_BENCH_PARK_H

#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PARK_NEVER UINT32_MAX /* value of `spin`: only pauses */

typedef struct park_policy {
  uint32_t spin, yield;
} park_policy;

typedef struct park_word {
  _Alignas(128) atomic_uint value;
  atomic_uint sleepers;
} park_word;

static inline void park_relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb");
#endif
}

static inline long park_futex(atomic_uint *word, int operation, unsigned value) {
  return syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

static inline void park_post(park_word *word, uint32_t value) {
  atomic_store(&word->value, value); /* sequentially consistent: ordered before the check for sleepers */
  if (atomic_load(&word->sleepers) > 0) park_futex(&word->value, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

/* Waits until the counter, which only grows, has reached the value. */
static inline void park_await(park_word *word, uint32_t value, park_policy policy) {
  uint32_t spun = 0, yielded = 0, seen;
  while ((int32_t)((seen = atomic_load_explicit(&word->value, memory_order_acquire)) - value) < 0) {
    if (policy.spin == PARK_NEVER || spun++ < policy.spin) {
      park_relax();
    } else if (yielded++ < policy.yield) {
      spun = policy.spin - policy.spin / 8;
      sched_yield();
    } else {
      atomic_fetch_add(&word->sleepers, 1);
      seen = atomic_load(&word->value);
      if ((int32_t)(seen - value) < 0) park_futex(&word->value, FUTEX_WAIT_PRIVATE, seen);
      atomic_fetch_sub(&word->sleepers, 1);
    }
  }
}

#endif
