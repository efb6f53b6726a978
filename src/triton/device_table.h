/* SPDX-License-Identifier: MIT
 * The devices that instances use. Each is opened once, by its first user, and closed by the last, so that instances
 * share its threads and memory. Thread-safe.
 */
#ifndef RONDO_TRITON_DEVICE_TABLE_H
#define RONDO_TRITON_DEVICE_TABLE_H

#include <pthread.h>
#include <rondo/device.h>

#include "base/array.h"

enum { RONDO_TRITON_DEVICE_NAME = 24 };

typedef struct rondo_triton_device {
  char name[RONDO_TRITON_DEVICE_NAME];
  rondo_device *device;
  uint32_t users;
} rondo_triton_device;

typedef struct rondo_triton_devices {
  pthread_mutex_t lock; /* also during opening and closing, so that two users wait for one device */
  rondo_allocator allocator;
  RONDO_ARRAY(rondo_triton_device) items;
} rondo_triton_devices;

RONDO_MUST_USE rondo_status rondo_triton_devices_open(rondo_triton_devices *devices, const char *name,
                                                      rondo_device **out_device);
/* Also returns memory that the device keeps. Errors: those of rondo_memory_trim and rondo_device_close. */
RONDO_MUST_USE rondo_status rondo_triton_devices_close(rondo_triton_devices *devices, rondo_device *device);

#endif
