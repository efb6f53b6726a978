/* SPDX-License-Identifier: MIT
 * What the front doors of this layer share.
 */
#ifndef RONDO_EXEC_API_CHECK_H
#define RONDO_EXEC_API_CHECK_H

#include "base/error.h"
#include "device/device.h"

/* Refuses inside a host function, and a pointer that is NULL. */
RONDO_MUST_USE rondo_status rondo_front(const char *call, const char *what, const void *pointer);

/* OTHER_DEVICE unless the two are one; `what` is what belongs to the other. */
RONDO_MUST_USE rondo_status rondo_require_device(const char *call, const char *what, const rondo_device *expected,
                                                 const rondo_device *actual);

#endif
