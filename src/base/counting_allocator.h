/* SPDX-License-Identifier: MIT
 * An allocator that counts its calls and passes them on, for the statistics of a device.
 */
#ifndef RONDO_BASE_COUNTING_ALLOCATOR_H
#define RONDO_BASE_COUNTING_ALLOCATOR_H

#include <stdint.h>

#include <rondo/allocator.h>
#include <rondo/status.h>

#include "base/component.h"

/* Makes one on top of `given` (NULL: the C library's), which also has its memory. */
RONDO_MUST_USE rondo_status rondo_counting_allocator_make(const rondo_allocator *given, rondo_allocator *out);

/* All that was allocated through it must have been released. */
void rondo_counting_allocator_free(const rondo_allocator *counting);

/* The number of allocations so far. Thread-safe. */
uint64_t rondo_counting_allocator_calls(const rondo_allocator *counting);

/* The allocator below `allocator`, if it counts; otherwise a copy of it. For blocks that may outlive the device. */
rondo_allocator rondo_allocator_uncounted(const rondo_allocator *allocator);

#endif
