/* SPDX-License-Identifier: MIT
 * Queues that are one stream: a queue, and those of other handles that adopted it (rondo_stream_adopt). Each is a queue
 * of its own device. They form a ring, and one of them was used last. Before another is used, its ring gets a wait for
 * all that the last one has. So each item comes after all earlier items of the stream, and a queue that is used again
 * and again pays for one comparison.
 *
 * Threads: the queues of one stream are used, adopted and destroyed by one thread at a time.
 */
#ifndef RONDO_DEVICE_CPU_CPU_SHARED_QUEUE_H
#define RONDO_DEVICE_CPU_CPU_SHARED_QUEUE_H

#include "device/cpu/cpu.h"

/* Joins a new queue to the stream that has this native handle. Errors: INVALID_ARGUMENT with STREAM_GONE, OTHER_DEVICE.
 */
RONDO_MUST_USE rondo_status cpu_queue_share(cpu_queue *queue, const void *native);

/* The queue, whose work is done, leaves its stream. */
void cpu_queue_leave_shared(cpu_queue *queue);

/* Orders the next item of the queue after the work of its stream's other queues. */
void cpu_queue_catch_up(cpu_queue *queue);
static inline bool cpu_queue_is_behind(const cpu_queue *queue) {
  return __builtin_expect(queue->next_shared != NULL, 0) && !queue->is_last;
}

#endif
