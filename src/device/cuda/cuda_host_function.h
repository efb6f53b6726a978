/* SPDX-License-Identifier: MIT
 * Host functions run on threads of the device, so that they do not block each other.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_HOST_FUNCTION_H
#define RONDO_DEVICE_CUDA_CUDA_HOST_FUNCTION_H

#include "device/cuda/cuda.h"

void cuda_hosts_prepare(cuda_device *device);

/* Starts a thread unless there is one. Errors: those of rondo_thread_start. */
RONDO_MUST_USE rondo_status cuda_hosts_start(cuda_device *device);

/* Waits for the posted functions and ends the threads. Functions that are posted later are dropped. */
void cuda_hosts_stop(cuda_device *device);

/* The cu_host_function of a cuda_host_work that is enqueued or in a graph: posts it to a thread. */
void cuda_post_host(void *work);

/* The cu_host_function of a cuda_host_work in an exported graph: calls it on the driver's thread, and logs its failure,
 * because no queue of the device has launched it. */
void cuda_call_host(void *work);

/* Frees a node's record that no launch calls any more. */
void cuda_host_free(const rondo_allocator *allocator, cuda_host_work *work);

/* A gate that is 0. Errors: OUT_OF_MEMORY, DEVICE_LOST. */
RONDO_MUST_USE rondo_status cuda_gate_take(cuda_device *device, cuda_gate **out);
void cuda_gate_give(cuda_device *device, cuda_gate *gate); /* NULL is fine */
void cuda_gates_free(cuda_device *device);                 /* in the device's context */

/* A record of the queue is unused again. Any thread. The queue may be freed once it has no records left to wait for. */
void cuda_host_put_unused(cuda_queue *queue, cuda_host_work *work);

#endif
