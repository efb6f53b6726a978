/* SPDX-License-Identifier: MIT
 * Work in the driver's terms: what submitting to a stream and lowering to a graph share.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_LAUNCH_PARAMS_H
#define RONDO_DEVICE_CUDA_CUDA_LAUNCH_PARAMS_H

#include "device/cuda/cuda.h"

/* The bytes from the first to the last that the copy's sides take. */
void cuda_copy_extents(const rondo_copy *copy, size_t *out_src, size_t *out_dst);

/* The driver's launch. */
cu_result cuda_kernel_submit(const cuda_api *api, cu_stream stream, const rondo_kernel_node *kernel);

/* A foreign kernel's are without arguments. */
void cuda_kernel_params(const rondo_kernel_node *kernel, cu_kernel_params *out);

/* A copy is done in so many parts: 1, or as many as it has slices where the driver cannot describe their distance. */
size_t cuda_copy_parts(const rondo_copy *copy);
void cuda_copy_params(const rondo_copy *copy, size_t part, cu_copy *out);
cu_result cuda_copy_submit(const cuda_api *api, cu_stream stream, const rondo_copy *copy);

#endif
