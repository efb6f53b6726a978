/* SPDX-License-Identifier: MIT
 * Kernels and copies as the driver takes them, on streams and in graphs.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_LAUNCH_PARAMS_H
#define RONDO_DEVICE_CUDA_CUDA_LAUNCH_PARAMS_H

#include "device/cuda/cuda.h"

/* Launch on a stream. */
cu_result cuda_launch_params(const cuda_api *api, cu_stream stream, const cu_kernel_params *params);
cu_result cuda_kernel_submit(const cuda_api *api, cu_stream stream, const rondo_kernel_node *kernel);

/* Those of a foreign kernel have no arguments. */
void cuda_kernel_params(const rondo_kernel_node *kernel, cu_kernel_params *out);

/* A copy is made in so many parts: one, or one for each slice if the driver cannot describe the slices' distance. */
size_t cuda_copy_parts(const rondo_copy *copy);
void cuda_copy_params(const rondo_copy *copy, size_t part, cu_copy *out);
cu_result cuda_copy_submit(const cuda_api *api, cu_stream stream, const rondo_copy *copy);

#endif
