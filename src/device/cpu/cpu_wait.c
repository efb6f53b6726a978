/* SPDX-License-Identifier: MIT
 * Host threads that wait, and how they are woken. The header describes both.
 */
#include "device/cpu/cpu.h"

#include "device/cpu/cpu_pool.h"
#include "device/cpu/cpu_queue.h"
#include "device/cpu/cpu_run.h"
#include "device/cpu/cpu_timeline.h"
#include "device/cpu/cpu_wait.h"

uint32_t cpu_queue_begin_sleep(cpu_queue *queue) { return (uint32_t)(atomic_fetch_add(&queue->sleeping, 1) >> 32); }

bool cpu_queue_end_sleep(cpu_queue *queue, uint32_t ticket) {
  uint64_t now = atomic_load(&queue->sleeping);
  do {
    if (now >> 32 != ticket) return true;
  } while (!atomic_compare_exchange_weak(&queue->sleeping, &now, now - 1));
  return false;
}

bool cpu_queue_wake_waiters(cpu_queue *queue) {
  uint64_t now = atomic_load(&queue->sleeping);
  do {
    if ((uint32_t)now == 0) return false;
  } while (!atomic_compare_exchange_weak(&queue->sleeping, &now, ((now >> 32) + 1) << 32));
  cpu_timeline_signal(&queue->timeline);
  cpu_run_wake_starters(&queue->device->pool);
  return true;
}

/* True if it was woken for work. Without a participant it cannot help. */
static bool sleep_over(cpu_queue *queue, const cpu_participant *self, uint64_t target) {
  const uint32_t signal = atomic_load(&queue->timeline.signal);
  if (self == NULL) {
    cpu_timeline_sleep(&queue->timeline, target, signal);
    return false;
  }
  const uint32_t ticket = cpu_queue_begin_sleep(queue);
  cpu_pool_spread(&queue->device->pool);
  if (!cpu_queue_pending(queue) && !cpu_pool_has_shared(&queue->device->pool, self, queue))
    cpu_timeline_sleep(&queue->timeline, target, signal);
  return cpu_queue_end_sleep(queue, ticket);
}

void cpu_queue_await(cpu_queue *queue, uint64_t target) {
  if (atomic_load_explicit(&queue->timeline.value, memory_order_acquire) >= target) return;
  cpu_pool *pool = &queue->device->pool;
  cpu_participant *self = cpu_pool_join(pool);
  cpu_backoff backoff = {0};
  uint64_t value;
  while ((value = atomic_load_explicit(&queue->timeline.value, memory_order_acquire)) < target) {
    /* No more items than it waits for: later items may take any time. */
    if (self != NULL && ((cpu_queue_pending(queue) && cpu_queue_drain(queue, self, target - value)) ||
                         cpu_pool_help(pool, self, queue))) {
      backoff = (cpu_backoff){0};
    } else {
      cpu_pool_poll(pool, self, queue, &backoff);
      if (cpu_backoff_step(&backoff, pool) && sleep_over(queue, self, target)) backoff = (cpu_backoff){0};
    }
    if (backoff.turns == 1) cpu_pool_note_host(pool);
  }
  cpu_pool_leave(pool, self);
}

void cpu_point_await(cpu_device *device, cpu_point point) {
  if (cpu_point_reached(point)) return;
  cpu_timeline_retain(point.timeline); /* the queue may be destroyed meanwhile, and the event recorded again */
  cpu_queue *queue = cpu_queue_with(point.timeline);
  if (queue != NULL) cpu_queue_await(queue, point.value);
  cpu_backoff backoff = {0};
  while (!cpu_point_reached(point)) {
    const uint32_t signal = atomic_load(&point.timeline->signal);
    if (cpu_backoff_step(&backoff, &device->pool)) cpu_timeline_sleep(point.timeline, point.value, signal);
  }
  cpu_timeline_release(point.timeline);
}
