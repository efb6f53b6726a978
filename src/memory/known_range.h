/* SPDX-License-Identifier: MIT
 * The device's allocations as verification asks for them.
 */
#ifndef RONDO_MEMORY_KNOWN_RANGE_H
#define RONDO_MEMORY_KNOWN_RANGE_H

#include "graph/verify.h"
#include "memory/device_memory.h"

/* The allocation that begins at the address, else one that it lies in; false when there is none. Any thread. */
bool rondo_memory_find_range(rondo_device_memory *memory, const void *address, rondo_known_range *out);

#endif
