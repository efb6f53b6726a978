/* SPDX-License-Identifier: MIT
 * Making the driver's graph of an executable's nodes, and instantiating it.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_GRAPH_BUILD_H
#define RONDO_DEVICE_CUDA_CUDA_GRAPH_BUILD_H

#include "device/cuda/cuda_executable.h"

/* From the executable's nodes; the handles of their parts go to `handles`. In the device's context. Nothing is left on
 * failure. */
RONDO_MUST_USE rondo_status cuda_build(cuda_executable *executable, cuda_built *out, cu_graph_node *handles);

/* Calls `make` while what the executable's copies and captured fills name can be seen to be a device's memory
 * (cuda_placeholders). */
RONDO_MUST_USE rondo_status cuda_with_placeholders(cuda_executable *executable,
                                                   rondo_status (*make)(cuda_executable *executable, void *user),
                                                   void *user);
void cuda_built_free(const cuda_executable *executable, cuda_built *built);

/* Instantiates built->graph. Errors: what the driver says, with the node that it names; handles may be NULL. */
RONDO_MUST_USE rondo_status cuda_instantiate(cuda_executable *executable, cuda_built *built,
                                             const cu_graph_node *handles);

#endif
