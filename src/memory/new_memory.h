/* SPDX-License-Identifier: MIT
 * What memory holds before anything is written to it. Threads: any.
 */
#ifndef RONDO_MEMORY_NEW_MEMORY_H
#define RONDO_MEMORY_NEW_MEMORY_H

#include "base/component.h"
#include "device/device.h"

/* Whether memory of rondo_malloc, to which nothing was written yet, is zero: it is new, and the device's new memory is.
 * The address is the beginning of an allocation. */
RONDO_PRIVATE bool rondo_memory_is_zero_at_first(rondo_device *device, const void *address);

#endif
