/* SPDX-License-Identifier: MIT
 * Nodes of executables in the driver's terms: made from lowered nodes, added to driver graphs, changed in driver
 * executables, run by themselves.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_GRAPH_NODE_H
#define RONDO_DEVICE_CUDA_CUDA_GRAPH_NODE_H

#include "device/cuda/cuda_executable.h"

/* Fills a node, which is zero before the call and after a failure. The arguments of a kernel are not copied. */
RONDO_MUST_USE rondo_status cuda_node_make(cuda_executable *executable, const rondo_lowered_node *lowered,
                                           cuda_node *out);
/* Makes a kernel node read its arguments at `args`. With NULL it has none and cannot be added to a graph. */
void cuda_node_bind(cuda_node *node, const void *const *args);
/* Releases the code and the semaphores that the driver's node uses. Freeing the node does that too. */
void cuda_node_release(cuda_node *node);
void cuda_node_free(cuda_executable *executable, cuda_node *node);

/* Adds it to a driver's graph after `count` nodes, unless it is a child node (cuda_build_graph). Nodes that come after
 * it depend on the last of its parts. */
cu_result cuda_node_add(const cuda_executable *executable, const cuda_node *node, cu_graph graph,
                        const cu_graph_node *before, size_t count, cu_graph_node *out_parts);

/* Change it in the driver's executable, or switch it on or off, for later launches. After a failure some parts may be
 * changed. */
cu_result cuda_node_change(const cuda_executable *executable, const cuda_built *built, const cuda_node *node);
cu_result cuda_node_switch(const cuda_executable *executable, const cuda_built *built, const cu_graph_node *handles,
                           const cuda_node *node, bool enabled);

/* Runs it by itself on a stream of its device. */
cu_result cuda_node_submit(const cuda_node *node, cu_stream stream);

#endif
