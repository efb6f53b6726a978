/* SPDX-License-Identifier: MIT
 * The kernel behind fill nodes.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_FILL_H
#define RONDO_DEVICE_CUDA_CUDA_FILL_H

#include "device/cuda/cuda.h"

/* A launch of the fill kernel; `params` points into it. */
typedef struct cuda_fill {
  cu_kernel_params params;
  uint64_t dst, pitch, width, height; /* bytes, bytes, bytes, rows */
  uint32_t value;
  void *addresses[5];
} cuda_fill;

/* Loads the kernel into device->fill. */
RONDO_MUST_USE rondo_status cuda_fill_load(cuda_device *device);
void cuda_fill_params(const cuda_device *device, const rondo_fill *fill, cuda_fill *out);

#endif
