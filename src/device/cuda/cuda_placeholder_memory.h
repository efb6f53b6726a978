/* SPDX-License-Identifier: MIT
 * Placeholder memory: pages at addresses of graph memory, so that the driver takes them for a device's memory.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_PLACEHOLDER_MEMORY_H
#define RONDO_DEVICE_CUDA_CUDA_PLACEHOLDER_MEMORY_H

#include "device/cuda/cuda.h"

/* The memory that a copy node or a memset node names must be mapped when the node is made, changed or instantiated:
 * from that, the driver knows that it is a device's memory. Other pages may be mapped there when the node runs
 * (docs/cuda-probes.md, 18 and 30 to 38). Between begin and end, placeholders are mapped at all addresses that are
 * added and not mapped. Nothing else is mapped or unmapped meanwhile. */
typedef struct cuda_placeholders {
  cuda_device *device;
  cuda_ranges ranges;
} cuda_placeholders;

/* In the device's context. Errors: OUT_OF_MEMORY, DEVICE_LOST. Call end after a failure too. */
RONDO_MUST_USE rondo_status cuda_placeholders_begin(cuda_device *device, cuda_placeholders *out);
RONDO_MUST_USE rondo_status cuda_placeholders_add(cuda_placeholders *self, const void *memory, size_t bytes);
RONDO_MUST_USE rondo_status cuda_placeholders_add_copy(cuda_placeholders *self, const rondo_copy *copy);
void cuda_placeholders_end(cuda_placeholders *self);

/* Instead of end: adds the placeholders to `kept`. They stay until it is dropped or memory is mapped there. Nothing
 * stays after a failure. */
RONDO_MUST_USE rondo_status cuda_placeholders_keep(cuda_placeholders *self, cuda_ranges *kept);
void cuda_placeholders_drop(cuda_device *device, cuda_ranges *kept);

/* With the mapping lock: memory is about to be mapped there, or the addresses are released. Fails if the driver refuses
 * to unmap what is there. */
RONDO_MUST_USE rondo_status cuda_placeholders_yield(cuda_device *device, cuda_range at);

/* With the mapping lock: reserve capacity to note one mapping; unmap a useless mapping, or note it if the driver
 * refuses. */
RONDO_MUST_USE rondo_status cuda_placeholders_reserve_left(cuda_device *device);
void cuda_placeholders_take_back(cuda_device *device, cuda_range at);

/* The page of all placeholders, when the device closes. */
void cuda_placeholders_free(cuda_device *device);

#endif
