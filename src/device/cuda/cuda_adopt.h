/* SPDX-License-Identifier: MIT
 * Streams that a program made without Rondo, as queues.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_ADOPT_H
#define RONDO_DEVICE_CUDA_CUDA_ADOPT_H

#include "base/thread.h"
#include "device/cuda/cuda.h"

/* Makes `native` the stream of a new queue. In the device's context. Errors: INVALID_ARGUMENT with OTHER_DEVICE or
 * STREAM_GONE, INVALID_STATE/ALREADY_CAPTURING, those of the driver. */
RONDO_MUST_USE rondo_status cuda_adopt(cuda_queue *queue, void *native);

/* INVALID_STATE/WRONG_THREAD if the queue is the default stream of another thread: here its handle is another stream.
 */
RONDO_MUST_USE rondo_status cuda_queue_refuse_thread(const cuda_queue *queue);
static inline bool cuda_queue_is_here(const cuda_queue *queue) {
  return __builtin_expect(queue->thread == 0, 1) || queue->thread == rondo_thread_id();
}
RONDO_MUST_USE static inline rondo_status cuda_queue_require_thread(const cuda_queue *queue) {
  return cuda_queue_is_here(queue) ? RONDO_OK : cuda_queue_refuse_thread(queue);
}

#endif
