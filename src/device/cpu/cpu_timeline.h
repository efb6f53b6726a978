/* SPDX-License-Identifier: MIT
 * Timelines: numbers that only grow, and the waiters for values of them. Each queue and each event-record node has one.
 * Invariant: a waiter is on at most one list, and is fired once, after the value has reached its target. Threads: any.
 * Only one thread at a time may advance a timeline, but any number may raise one.
 */
#ifndef RONDO_DEVICE_CPU_CPU_TIMELINE_H
#define RONDO_DEVICE_CPU_CPU_TIMELINE_H

#include "device/cpu/cpu.h"

void cpu_timeline_init(cpu_timeline *timeline, cpu_device *device, void (*release)(cpu_timeline *));
void cpu_timeline_retain(cpu_timeline *timeline);
void cpu_timeline_release(cpu_timeline *timeline);
void cpu_timeline_advance(cpu_timeline *timeline, uint64_t value);

/* The same for a timeline that several threads advance. It stays as it is if it has reached the value already. */
void cpu_timeline_raise(cpu_timeline *timeline, uint64_t value);

/* True if the point is reached. Else the waiter will be fired, perhaps before this returns. Afterwards the caller must
 * not use the object that the waiter belongs to. */
bool cpu_timeline_pass_or_wait(cpu_timeline *timeline, cpu_waiter *waiter);

/* Sleeps until the timeline may have reached `target`, or was signalled after `signal` was read from it. */
void cpu_timeline_sleep(cpu_timeline *timeline, uint64_t target, uint32_t signal);

/* Wakes the threads that sleep. */
void cpu_timeline_signal(cpu_timeline *timeline);

/* Asserts the invariants, and that no waiter is due. Call it while no other thread uses the timeline. */
void cpu_timeline_check(const cpu_timeline *timeline);

/* Replaces *point and its reference. */
void cpu_point_set(cpu_point *point, cpu_timeline *timeline, uint64_t value);

#endif
