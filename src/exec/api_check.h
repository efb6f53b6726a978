/* SPDX-License-Identifier: MIT
 * What the files of this layer share: the checks that public calls begin with, and the state that it keeps on devices.
 */
#ifndef RONDO_EXEC_API_CHECK_H
#define RONDO_EXEC_API_CHECK_H

#include "base/component.h"
#include "base/error.h"
#include "device/device.h"

/* Refuses inside a host function, and a pointer that is NULL. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_check_call(const char *call, const char *what, const void *pointer);

/* OTHER_DEVICE unless both devices are the same; `what` names the object of the other device. */
RONDO_MUST_USE rondo_status rondo_require_device(const char *call, const char *what, const rondo_device *expected,
                                                 const rondo_device *actual);

/* State in a slot of a device. The first call allocates `bytes` zeros, which `init` completes; `release` frees them
 * when the device closes. `out` is the address of a pointer of any type. Any thread. */
typedef struct rondo_state_kind {
  size_t bytes;
  void (*init)(void *state, const rondo_allocator *allocator);
  void (*release)(void *state);
} rondo_state_kind;
RONDO_MUST_USE rondo_status rondo_device_state(rondo_device *device, rondo_device_slot *slot,
                                               const rondo_state_kind *kind, void *out);

#endif
