/* SPDX-License-Identifier: MIT
 * The kernel behind fill nodes.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_FILL_H
#define RONDO_DEVICE_CUDA_CUDA_FILL_H

#include "device/cuda/cuda.h"

/* Loads the kernel into device->fill. */
RONDO_MUST_USE rondo_status cuda_fill_load(cuda_device *device);
void cuda_fill_params(const cuda_device *device, const rondo_fill *fill, cuda_fill *out);

#endif
