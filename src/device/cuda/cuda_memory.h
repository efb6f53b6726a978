/* SPDX-License-Identifier: MIT
 * Virtual memory and host memory: slots of rondo_device_ops.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_MEMORY_H
#define RONDO_DEVICE_CUDA_CUDA_MEMORY_H

#include "device/cuda/cuda.h"

RONDO_MUST_USE rondo_status cuda_reserve(rondo_device *device, size_t bytes, size_t alignment, void **out_address);
RONDO_MUST_USE rondo_status cuda_unreserve(rondo_device *device, void *address, size_t bytes);
RONDO_MUST_USE rondo_status cuda_physical_create(rondo_device *device, size_t bytes, rondo_physical_use use,
                                                 rondo_physical **out);
void cuda_physical_destroy(rondo_physical *physical);
RONDO_MUST_USE rondo_status cuda_map(rondo_device *device, void *address, rondo_physical *physical);
RONDO_MUST_USE rondo_status cuda_unmap(rondo_device *device, void *address, size_t bytes);
RONDO_MUST_USE rondo_status cuda_protect(rondo_device *device, void *address, size_t bytes,
                                         rondo_protection protection);

/* Gives the device, and the devices that it has admitted, access to a mapping. */
cu_result cuda_set_access(cuda_device *device, cu_address address, size_t bytes, int flags);
RONDO_MUST_USE rondo_status cuda_admit(rondo_device *device, uint64_t peers);
RONDO_MUST_USE rondo_status cuda_host_allocate(rondo_device *device, size_t bytes, void **out_address);
void cuda_host_release(rondo_device *device, void *address, size_t bytes);
bool cuda_knows_address(rondo_device *device, const void *address, bool *out_is_device);
bool cuda_has_address(rondo_device *device, const void *address);

#endif
