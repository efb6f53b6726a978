/* SPDX-License-Identifier: MIT
 * The kernels that copy inputs in front of recorded work, several ranges at once: one is a node of the work's
 * graph, whose places are set by one call of the driver, where a copy node that is to have another source takes
 * many times that; one is queued, also for ranges of the host's memory, where each copy would be a call.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_INPUT_COPIES_H
#define RONDO_DEVICE_CUDA_CUDA_INPUT_COPIES_H

#include "device/cuda/cuda.h"

/* Loads the kernels into device->copies and device->queued_copies (cuda_input_copies.c); leaves NULL there where the
 * driver does not compile them. cuda_copies_unload may follow a failure too. */
RONDO_MUST_USE rondo_status cuda_copies_load(cuda_device *device);
void cuda_copies_unload(cuda_device *device);
rondo_kernel *cuda_copy_kernel(const rondo_device *device, size_t bytes, uint32_t *out_blocks);
rondo_kernel *cuda_queued_copy_kernel(const rondo_device *device);
uint32_t cuda_queued_copy_blocks(const rondo_device *device, size_t bytes, size_t largest);

#endif
