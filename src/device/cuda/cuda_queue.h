/* SPDX-License-Identifier: MIT
 * Queues, which are streams of the driver, and events.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_QUEUE_H
#define RONDO_DEVICE_CUDA_CUDA_QUEUE_H

#include "device/cuda/cuda.h"

RONDO_MUST_USE rondo_status cuda_queue_create(rondo_device *device, const char *label,
                                              const rondo_queue_options *options, rondo_queue **out);
RONDO_MUST_USE rondo_status cuda_event_create(rondo_device *device, bool timing, rondo_device_event **out);

/* Whether the queue is part of a capture, and of which. On a lost device, of none. */
cu_capture_status cuda_queue_capture(const cuda_queue *queue, uint64_t *out_id);

/* Call it before an executable is destroyed: removes it from all queues. */
void cuda_queues_forget(cuda_device *device, cuda_executable *executable);

/* With the device's lock: names the graph that each queue launched last and has not waited for, as the end of a
 * message; "" if all were waited for. */
void cuda_queues_name_launched(const cuda_device *device, char *text, size_t bytes);

/* Takes the failure of a host function of one queue, if any queue has one. */
RONDO_MUST_USE rondo_status cuda_queues_take_failure(cuda_device *device);

/* All work from before the epoch was waited for, on all queues. */
void cuda_queues_settle(cuda_device *device, uint64_t epoch);

/* Frees queues that were destroyed on a lost device, when no host function is called any more. */
void cuda_dead_queues_free(cuda_device *device);

/* Sets *out to the queue, in the order of the queue's work. */
RONDO_MUST_USE rondo_status cuda_queue_store_self(cuda_queue *queue, cuda_queue **out);

#endif
