/* SPDX-License-Identifier: MIT
 * Pages that stand in for graph memory, so that the driver sees that it is a device's: for a moment while nodes
 * are made, and where a stream captures until its capture is over.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_PLACEHOLDER_MEMORY_H
#define RONDO_DEVICE_CUDA_CUDA_PLACEHOLDER_MEMORY_H

#include "device/cuda/cuda.h"

/* All that a copy node or a memset node names must be mapped when the node is made, changed or instantiated, so that
 * the driver sees that it is a device's memory; other pages may stand there when it runs (docs/cuda-probes.md, 18 and
 * 30 to 38). Between begin and end pages stand in for all that is named and not mapped; nothing else is mapped or
 * unmapped meanwhile. */
typedef struct cuda_placeholders {
  cuda_device *device;
  cuda_ranges ranges;
} cuda_placeholders;

/* In the device's context. Errors: OUT_OF_MEMORY, DEVICE_LOST; to be ended all the same. */
RONDO_MUST_USE rondo_status cuda_placeholders_begin(cuda_device *device, cuda_placeholders *out);
RONDO_MUST_USE rondo_status cuda_placeholders_add(cuda_placeholders *self, const void *memory, size_t bytes);
RONDO_MUST_USE rondo_status cuda_placeholders_add_copy(cuda_placeholders *self, const rondo_copy *copy);

/* Instead of end: what was added stays until `kept`, to which it is added, is dropped, or memory is mapped there.
 * Nothing stays when it fails. */
RONDO_MUST_USE rondo_status cuda_placeholders_keep(cuda_placeholders *self, cuda_ranges *kept);
void cuda_placeholders_drop(cuda_device *device, cuda_ranges *kept);

/* With the mapping lock: something is about to be mapped there, or the addresses are given back. Fails where the driver
 * refuses to unmap what is there. */
RONDO_MUST_USE rondo_status cuda_placeholders_yield(cuda_device *device, cuda_range at);

/* With the mapping lock: room to note one mapping, and noting it: it was made in vain and could not be taken back. It
 * is unmapped later, and until then nothing else is mapped there. */
RONDO_MUST_USE rondo_status cuda_placeholders_reserve_left(cuda_device *device);
void cuda_placeholders_take_back(cuda_device *device, cuda_range at);
void cuda_placeholders_end(cuda_placeholders *self);
void cuda_stand_in_free(cuda_device *device);

#endif
