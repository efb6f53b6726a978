/* SPDX-License-Identifier: MIT
 * Timelines: numbers that only grow, and their waiters. A waiter pushes itself on the stack, then reads the value
 * again. The thread that advances the timeline stores the value, then reads the stack. So one of the two sees the
 * other. Stacks are taken as a whole, and waiters that are not due are put back, so there is no ABA problem and no
 * lock.
 */
#include <assert.h>

#include "device/cpu/cpu.h"

#include "device/cpu/cpu_pool.h"
#include "device/cpu/cpu_queue.h"
#include "device/cpu/cpu_timeline.h"

void cpu_timeline_init(cpu_timeline *timeline, cpu_device *device, void (*release)(cpu_timeline *)) {
  *timeline = (cpu_timeline){.device = device, .release = release};
  atomic_init(&timeline->references, 1);
}

void cpu_timeline_retain(cpu_timeline *timeline) {
  atomic_fetch_add_explicit(&timeline->references, 1, memory_order_relaxed);
}

void cpu_timeline_check(const cpu_timeline *timeline) {
#ifdef NDEBUG
  (void)timeline;
#else
  const uint64_t value = atomic_load(&timeline->value);
  assert(timeline->release != NULL);
  assert(atomic_load(&timeline->sleepers) == 0);
  for (const cpu_waiter *waiter = atomic_load(&timeline->waiters); waiter != NULL; waiter = waiter->next) {
    assert(waiter->target > value);
    assert((waiter->queue != NULL) != (waiter->executable != NULL));
  }
#endif
}

void cpu_timeline_release(cpu_timeline *timeline) {
  if (timeline == NULL) return;
  const unsigned before = atomic_fetch_sub_explicit(&timeline->references, 1, memory_order_acq_rel);
  assert(before > 0);
  if (before != 1) return;
  cpu_timeline_check(timeline);
  timeline->release(timeline);
}

static void push_waiter(cpu_timeline *timeline, cpu_waiter *waiter) {
  waiter->next = atomic_load_explicit(&timeline->waiters, memory_order_relaxed);
  while (!atomic_compare_exchange_weak(&timeline->waiters, &waiter->next, waiter)) {
  }
}

static void fire(cpu_waiter *waiter) {
  if (waiter->executable == NULL) {
    cpu_queue_resume(waiter->queue);
    return;
  }
  cpu_pool *pool = &waiter->executable->device->pool;
  waiter->next = atomic_load_explicit(&pool->injected, memory_order_relaxed);
  while (!atomic_compare_exchange_weak(&pool->injected, &waiter->next, waiter)) {
  }
  if (!cpu_pool_is_polled_here(pool)) cpu_pool_wake(pool); /* else the thread runs it, or wakes a worker */
}

/* Fires the waiters that are due. The caller keeps the timeline alive. */
static void flush(cpu_timeline *timeline) {
  bool put_back;
  uint64_t value;
  do {
    cpu_waiter *waiter = atomic_exchange(&timeline->waiters, NULL);
    value = atomic_load(&timeline->value);
    put_back = false;
    while (waiter != NULL) {
      cpu_waiter *next = waiter->next;
      if (waiter->target <= value) {
        fire(waiter);
      } else {
        push_waiter(timeline, waiter);
        put_back = true;
      }
      waiter = next;
    }
  } while (put_back && atomic_load(&timeline->value) != value);
}

void cpu_timeline_signal(cpu_timeline *timeline) {
  atomic_fetch_add(&timeline->signal, 1);
  rondo_futex_wake(&timeline->signal, UINT32_MAX);
}

/* The value has grown. */
static void announce(cpu_timeline *timeline) {
  if (atomic_load(&timeline->sleepers) != 0) cpu_timeline_signal(timeline);
  if (atomic_load(&timeline->waiters) != NULL) flush(timeline);
}

void cpu_timeline_advance(cpu_timeline *timeline, uint64_t value) {
  assert(value >= atomic_load_explicit(&timeline->value, memory_order_relaxed));
  atomic_store(&timeline->value, value);
  announce(timeline);
}

void cpu_timeline_raise(cpu_timeline *timeline, uint64_t value) {
  uint64_t before = atomic_load(&timeline->value);
  while (before < value) {
    if (!atomic_compare_exchange_weak(&timeline->value, &before, value)) continue;
    announce(timeline);
    return;
  }
}

bool cpu_timeline_pass_or_wait(cpu_timeline *timeline, cpu_waiter *waiter) {
  if (atomic_load_explicit(&timeline->value, memory_order_acquire) >= waiter->target) return true;
  const uint64_t target = waiter->target;
  /* the owner of the waiter has a reference, but may be freed once the waiter is fired */
  cpu_timeline_retain(timeline);
  push_waiter(timeline, waiter);
  if (atomic_load(&timeline->value) >= target) flush(timeline);
  cpu_timeline_release(timeline);
  return false;
}

void cpu_timeline_sleep(cpu_timeline *timeline, uint64_t target, uint32_t signal) {
  atomic_fetch_add(&timeline->sleepers, 1);
  if (atomic_load(&timeline->value) < target) rondo_futex_wait(&timeline->signal, signal);
  atomic_fetch_sub(&timeline->sleepers, 1);
}

void cpu_point_set(cpu_point *point, cpu_timeline *timeline, uint64_t value) {
  if (point->timeline != timeline) {
    if (timeline != NULL) cpu_timeline_retain(timeline);
    cpu_timeline_release(point->timeline);
    point->timeline = timeline;
  }
  point->value = value;
}
