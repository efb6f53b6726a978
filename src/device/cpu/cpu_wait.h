/* SPDX-License-Identifier: MIT
 * Host threads that wait for a queue or a point on a timeline: they help with the work of that queue only, and sleep
 * when there is nothing to do for them; and what wakes those who sleep when there is (cpu.h, cpu_queue_begin_sleep).
 */
#ifndef RONDO_DEVICE_CPU_CPU_WAIT_H
#define RONDO_DEVICE_CPU_CPU_WAIT_H

#include "device/cpu/cpu.h"

/* Threads that sleep while they wait for a queue, but would work for it: hosts that wait for it, and the starter of its
 * graph. Before it sleeps, such a thread
 *   1. reads the number that it will sleep on (the futex),
 *   2. calls cpu_queue_begin_sleep, which returns a ticket,
 *   3. looks again for something to do, and sleeps only if there is nothing,
 *   4. calls cpu_queue_end_sleep with the ticket, which returns true if the thread was woken for work.
 * The thread that makes something ready calls cpu_queue_wake_waiters afterwards. It returns false if nobody was about
 * to sleep.
 *
 * No wake is lost. Making ready and begin_sleep are sequentially consistent, and so are the looks that follow them:
 * either the waker sees the sleeper, or the sleeper, looking again, sees what is ready. The number is read before
 * begin_sleep and changed by the waker, so a thread that is woken before it sleeps does not fall asleep. One wake ends
 * the sleep of all, so only one of several wakers pays for the system call; a thread that is awake checks again before
 * it sleeps. */
uint32_t cpu_queue_begin_sleep(cpu_queue *queue);
bool cpu_queue_end_sleep(cpu_queue *queue, uint32_t ticket);
bool cpu_queue_wake_waiters(cpu_queue *queue);

/* A hint: whether such a thread sleeps, or is about to. */
static inline bool cpu_queue_has_sleepers(const cpu_queue *queue) {
  return (uint32_t)atomic_load_explicit(&queue->sleeping, memory_order_relaxed) != 0;
}

/* Waits until item number `target` is done, working along. */
void cpu_queue_await(cpu_queue *queue, uint64_t target);

/* Waits for a point; when it is a queue's, working along. */
void cpu_point_await(cpu_device *device, cpu_point point);

#endif
