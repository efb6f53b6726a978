/* SPDX-License-Identifier: MIT
 * The device's built-in kernels: one fills memory, one copies ranges.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_BUILTIN_KERNELS_H
#define RONDO_DEVICE_CUDA_CUDA_BUILTIN_KERNELS_H

#include "device/cuda/cuda.h"

/* A launch of the fill kernel. `params` points into it. */
typedef struct cuda_fill {
  cu_kernel_params params;
  uint64_t dst, pitch, width, height; /* bytes, bytes, bytes, rows */
  uint32_t value;
  void *addresses[5];
} cuda_fill;

/* Loads the kernel into device->fill. */
RONDO_MUST_USE rondo_status cuda_fill_load(cuda_device *device);
void cuda_fill_params(const cuda_device *device, const rondo_fill *fill, cuda_fill *out);

/* Loads the kernels into device->copies and device->queued_copies. A kernel that the driver does not compile stays
 * NULL. cuda_copies_unload may also follow a failure. */
RONDO_MUST_USE rondo_status cuda_copies_load(cuda_device *device);
void cuda_copies_unload(cuda_device *device);

/* Slots of rondo_device_ops. */
rondo_kernel *cuda_copy_kernel(const rondo_device *device, size_t bytes, uint32_t *out_blocks);
rondo_kernel *cuda_queued_copy_kernel(const rondo_device *device);
uint32_t cuda_queued_copy_blocks(const rondo_device *device, size_t bytes, size_t largest);

#endif
