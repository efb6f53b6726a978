/* SPDX-License-Identifier: MIT
 * Queues: non-blocking streams.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_QUEUE_H
#define RONDO_DEVICE_CUDA_CUDA_QUEUE_H

#include "device/cuda/cuda.h"

RONDO_MUST_USE rondo_status cuda_queue_create(rondo_device *device, const char *label, rondo_queue **out);
RONDO_MUST_USE rondo_status cuda_event_create(rondo_device *device, bool timing, rondo_device_event **out);

/* For an executable that is about to be destroyed: no queue names it any more. */
void cuda_queues_forget(cuda_device *device, cuda_executable *executable);

/* Under the device's lock: of each queue the graph that was launched last since it was waited for, as a text that
 * stands after others; "" when there are none. */
void cuda_queues_name_launched(const cuda_device *device, char *text, size_t bytes);

/* Takes the failure of one queue's host functions, if any queue has one. */
RONDO_MUST_USE rondo_status cuda_queues_take_failure(cuda_device *device);

/* All queues were waited for, since before the epoch was raised beyond this one. */
void cuda_queues_settle(cuda_device *device, uint64_t epoch);

/* The memory of queues that were destroyed on a lost device; no host function is called any more. */
void cuda_dead_queues_free(cuda_device *device);

/* In the queue's order, *place becomes the queue. */
RONDO_MUST_USE rondo_status cuda_queue_tell(cuda_queue *queue, cuda_queue **place);

#endif
