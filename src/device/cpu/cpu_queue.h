/* SPDX-License-Identifier: MIT
 * Queues: a ring of items, written by the stream's user and consumed by one owner at a time (a worker, or a host thread
 * that waits). Invariant: tail <= head <= tail + CPU_RING_GRANULES; each item but a skip counts once on the timeline.
 * Threads: begin and publish are the producer's. Any thread may drain, schedule or resume; the owner word decides who
 * runs the queue.
 */
#ifndef RONDO_DEVICE_CPU_CPU_QUEUE_H
#define RONDO_DEVICE_CPU_CPU_QUEUE_H

#include "device/cpu/cpu.h"

RONDO_MUST_USE rondo_status cpu_queue_create(rondo_device *device, const char *label, rondo_queue **out);

/* Room for an item of `bytes`, which may wait until there is some; what is written there is in the queue once it is
 * published with *out_head. */
cpu_item *cpu_queue_begin(cpu_queue *queue, cpu_operation operation, size_t bytes, uint64_t *out_head);
void cpu_queue_publish(cpu_queue *queue, uint64_t head);

/* Owns the queue and runs what is in it, at most `budget` items; false when somebody else has it. The caller keeps the
 * struct alive. */
bool cpu_queue_drain(cpu_queue *queue, cpu_participant *self, uint64_t budget);

/* Lets a queue go on that was set aside: for a waiter, or after the last task of its graph. */
void cpu_queue_resume(cpu_queue *queue);
void cpu_queue_finish_graph(cpu_queue *queue);

/* Makes sure that a worker looks at the queue. */
void cpu_queue_schedule(cpu_queue *queue);

/* Asserts the invariants of a queue whose work is done. While no other thread uses it. */
void cpu_queue_check(const cpu_queue *queue);

/* The queue whose timeline it is; NULL when it is another one. */
cpu_queue *cpu_queue_with(cpu_timeline *timeline);
void cpu_queue_retain(cpu_queue *queue);
void cpu_queue_release(cpu_queue *queue);
RONDO_MUST_USE rondo_status cpu_queue_launch_checked(rondo_queue *queue, rondo_executable *executable);
RONDO_MUST_USE rondo_status cpu_queue_launch_patched_checked(rondo_queue *queue, rondo_executable *executable,
                                                             const rondo_patch_change *changes, size_t count);

#endif
