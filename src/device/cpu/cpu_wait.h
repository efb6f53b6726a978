/* SPDX-License-Identifier: MIT
 * Host threads that wait for a queue or for a point on a timeline. They help with the work of that queue only, and
 * sleep if there is none. Also how these sleepers are woken when there is work again.
 */
#ifndef RONDO_DEVICE_CPU_CPU_WAIT_H
#define RONDO_DEVICE_CPU_CPU_WAIT_H

#include "device/cpu/cpu.h"

/* Threads that sleep while they wait for a queue, but would run its work: hosts that wait for it, and the starter of
 * its graph. Before it sleeps, such a thread
 *   1. reads the number that it will sleep on (the futex),
 *   2. calls cpu_queue_begin_sleep, which returns a ticket,
 *   3. looks for work again, and sleeps only if there is none,
 *   4. calls cpu_queue_end_sleep with the ticket, which returns true if the thread was woken for work.
 * The thread that makes work ready calls cpu_queue_wake_waiters afterwards. It returns false if nobody was about
 * to sleep.
 *
 * No wake is lost. Making work ready and begin_sleep are sequentially consistent, and so are the reads that follow:
 * either the waker sees the sleeper, or the sleeper, which looks again, sees the work. The number is read before
 * begin_sleep and changed by the waker, so a thread that is woken before it sleeps does not fall asleep. One wake ends
 * the sleep of all, so only one of several wakers pays for the system call; a thread that is awake checks again before
 * it sleeps. */
uint32_t cpu_queue_begin_sleep(cpu_queue *queue);
bool cpu_queue_end_sleep(cpu_queue *queue, uint32_t ticket);
bool cpu_queue_wake_waiters(cpu_queue *queue);

/* A hint: whether such a thread sleeps or is about to sleep. */
static inline bool cpu_queue_has_sleepers(const cpu_queue *queue) {
  return (uint32_t)atomic_load_explicit(&queue->sleeping, memory_order_relaxed) != 0;
}

/* Waits until item number `target` is done, and helps with the work. */
void cpu_queue_await(cpu_queue *queue, uint64_t target);

/* Waits for a point. If it belongs to a queue, helps with the work. */
void cpu_point_await(cpu_device *device, cpu_point point);

#endif
