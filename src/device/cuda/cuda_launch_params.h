/* SPDX-License-Identifier: MIT
 * Kernels and copies as the driver takes them, on streams and in graphs.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_LAUNCH_PARAMS_H
#define RONDO_DEVICE_CUDA_CUDA_LAUNCH_PARAMS_H

#include "device/cuda/cuda.h"

/* Launch on a stream. `config` is resolved; NULL: the default. */
cu_result cuda_launch_params(const cuda_api *api, cu_stream stream, const cu_kernel_params *params);
cu_result cuda_launch_configured(const cuda_device *device, cu_stream stream, const cu_kernel_params *params,
                                 const rondo_launch_config *config);
cu_result cuda_kernel_submit(const cuda_api *api, cu_stream stream, const rondo_kernel_node *kernel);

/* Whether the device has programmatic dependent launches. Others begin a kernel after those before it. */
bool cuda_may_begin_early(const cuda_device *device);

/* The attributes of a kernel node. Reading fills in all of the configuration that is an attribute; setting sets those
 * that are not the default. */
cu_result cuda_node_attributes_read(const cuda_api *api, cu_graph_node node, rondo_launch_config *out);
cu_result cuda_node_attributes_set(const cuda_device *device, cu_graph_node node, const rondo_launch_config *config);

/* Those of a foreign kernel have no arguments. */
void cuda_kernel_params(const rondo_kernel_node *kernel, cu_kernel_params *out);

/* A copy is made in so many parts: one, or one for each slice if the driver cannot describe the slices' distance. */
size_t cuda_copy_parts(const rondo_copy *copy);
void cuda_copy_params(const rondo_copy *copy, size_t part, cu_copy *out);
cu_result cuda_copy_submit(const cuda_api *api, cu_stream stream, const rondo_copy *copy);

#endif
