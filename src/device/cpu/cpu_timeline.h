/* SPDX-License-Identifier: MIT
 * Timelines: numbers that only grow, and the waiters for values of them. Each queue has one, and each event-record
 * node. Invariant: a waiter is on one list at most, and fired once, after the value has reached its target. Threads:
 * any; only one thread at a time advances a timeline, but any number may raise one.
 */
#ifndef RONDO_DEVICE_CPU_CPU_TIMELINE_H
#define RONDO_DEVICE_CPU_CPU_TIMELINE_H

#include "device/cpu/cpu.h"

void cpu_timeline_init(cpu_timeline *timeline, cpu_device *device, void (*release)(cpu_timeline *));
void cpu_timeline_retain(cpu_timeline *timeline);
void cpu_timeline_release(cpu_timeline *timeline);
void cpu_timeline_advance(cpu_timeline *timeline, uint64_t value);

/* The same for a timeline that several threads advance: it stays where it is when it is there already. */
void cpu_timeline_raise(cpu_timeline *timeline, uint64_t value);

/* True when the point is reached; else the waiter will be fired, perhaps before this returns: the caller must not touch
 * what the waiter belongs to afterwards. */
bool cpu_timeline_pass_or_wait(cpu_timeline *timeline, cpu_waiter *waiter);

/* Sleeps until the timeline may have reached `target`, or was signalled since `signal` was read from it. */
void cpu_timeline_sleep(cpu_timeline *timeline, uint64_t target, uint32_t signal);

/* Wakes those who sleep. */
void cpu_timeline_signal(cpu_timeline *timeline);

/* Asserts the invariants, and of each waiter that it is not due. While no other thread uses the timeline. */
void cpu_timeline_check(const cpu_timeline *timeline);

/* Replaces *point, with the references. */
void cpu_point_set(cpu_point *point, cpu_timeline *timeline, uint64_t value);

#endif
