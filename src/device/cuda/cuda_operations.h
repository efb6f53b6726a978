/* SPDX-License-Identifier: MIT
 * Memory operations and external semaphores in the driver's terms: on streams, in nodes, and operations that are read
 * from captured nodes. A semaphore that goes out of use is destroyed after the work that may use it (cuda_kernel.h).
 * Threads: any.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_OPERATIONS_H
#define RONDO_DEVICE_CUDA_CUDA_OPERATIONS_H

#include "device/cuda/cuda_placeholder_memory.h"

/* The driver's form of `node->count` operations. */
void cuda_operations_params(const rondo_memory_operations_node *node, cu_memory_operation *out);

/* Enqueues them. In the device's context. */
cu_result cuda_operations_submit(const cuda_device *device, cu_stream stream, const rondo_memory_operations_node *node);

/* Maps placeholders at the words, while a node with them is made, changed or instantiated. */
RONDO_MUST_USE rondo_status cuda_operations_add_placeholders(cuda_placeholders *to,
                                                             const cu_memory_operation *operations, size_t count);

/* Reads those of a captured node. *out_count is 0 if there are operations that a node of Rondo does not have. */
cu_result cuda_operations_read(const cuda_api *api, cu_graph_node node,
                               rondo_memory_operation out[RONDO_MAX_MEMORY_OPERATIONS], size_t *out_count);

/* Semaphores ------------------------------------------------------------------------------------------------------ */

/* The slot of rondo_device_ops. */
RONDO_MUST_USE rondo_status cuda_import_semaphore(rondo_device *device, rondo_semaphore_type type, int descriptor,
                                                  rondo_external_semaphore *semaphore);

/* The driver's form of a list, in `storage` of so many bytes for `count` semaphores. */
size_t cuda_semaphores_bytes(size_t count);
void cuda_semaphores_fill(const rondo_semaphores_node *node, void *storage);
cu_semaphores_params cuda_semaphores_in(void *storage, size_t count);

/* Enqueue a list. In the device's context. */
cu_result cuda_semaphores_submit(const cuda_device *device, cu_stream stream, rondo_node_kind kind,
                                 const cu_semaphores_params *params);

#endif
