/* SPDX-License-Identifier: MIT
 * Queues: a ring of items. The user of the stream writes them, and one owner at a time runs them (a worker, or a host
 * thread that waits). Invariant: tail <= head <= tail + CPU_RING_GRANULES; each item except a skip counts once on the
 * timeline. Threads: the producer calls begin and publish. Any thread may drain, schedule or resume; the owner word
 * decides who runs the queue.
 */
#ifndef RONDO_DEVICE_CPU_CPU_QUEUE_H
#define RONDO_DEVICE_CPU_CPU_QUEUE_H

#include "device/cpu/cpu.h"

RONDO_MUST_USE rondo_status cpu_queue_create(rondo_device *device, const char *label,
                                             const rondo_queue_options *options, rondo_queue **out);

/* Returns memory for an item of `bytes`. Waits until the ring has capacity. The item is in the queue after
 * cpu_queue_publish with *out_head. */
cpu_item *cpu_queue_begin(cpu_queue *queue, cpu_operation operation, size_t bytes, uint64_t *out_head);
void cpu_queue_publish(cpu_queue *queue, uint64_t head);

/* Makes a CPU_WAIT of the item, which keeps the timeline. If that is of another device, it keeps the device open. */
void cpu_queue_begin_wait(const cpu_queue *queue, cpu_item *item, cpu_point point);

/* Enqueues memory operations. Errors: OUT_OF_MEMORY, LIMIT_EXCEEDED. */
RONDO_MUST_USE rondo_status cpu_queue_submit_operations(cpu_queue *queue, const rondo_memory_operations_node *work);

/* Takes ownership of the queue and runs at most `budget` items. False if another thread owns it. The caller keeps the
 * struct alive. */
bool cpu_queue_drain(cpu_queue *queue, cpu_participant *self, uint64_t budget);

/* Resumes a queue that was set aside: for a waiter, or after the last task of its graph. */
void cpu_queue_resume(cpu_queue *queue);
void cpu_queue_finish_graph(cpu_queue *queue);

/* Waits until no thread sets the queue aside or resumes it. */
void cpu_queue_await_visitors(cpu_queue *queue);

/* Makes sure that a worker checks the queue. */
void cpu_queue_schedule(cpu_queue *queue);

/* Asserts the invariants of a queue whose work is done. Call it while no other thread uses the queue. */
void cpu_queue_check(const cpu_queue *queue);

/* The queue that has this timeline. NULL if it is not the timeline of a queue. */
cpu_queue *cpu_queue_with(cpu_timeline *timeline);
void cpu_queue_retain(cpu_queue *queue);
void cpu_queue_release(cpu_queue *queue);
RONDO_MUST_USE rondo_status cpu_queue_launch_checked(rondo_queue *queue, rondo_executable *executable);
RONDO_MUST_USE rondo_status cpu_queue_launch_patched_checked(rondo_queue *queue, rondo_executable *executable,
                                                             const rondo_patch_change *changes, size_t count);

#endif
