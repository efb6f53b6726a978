/* SPDX-License-Identifier: MIT
 * Memory operations in the driver's terms: on streams, in nodes, and read from captured nodes. Threads: any.
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

#endif
