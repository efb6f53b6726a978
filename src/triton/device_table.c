/* SPDX-License-Identifier: MIT
 * Opening and closing of shared devices.
 */
#include "triton/device_table.h"

#include <stdio.h>

#include <rondo/memory.h>

#include "base/error.h"

static rondo_status open_new(rondo_triton_devices *devices, const char *name, rondo_device **out_device) {
  rondo_triton_device entry = {.users = 1};
  RONDO_TRY(rondo_array_reserve(&devices->allocator, &devices->items, devices->items.count + 1));
  (void)snprintf(entry.name, sizeof entry.name, "%s", name);
  RONDO_TRY(rondo_device_open(name, NULL, &entry.device));
  *out_device = entry.device;
  return rondo_array_push(&devices->allocator, &devices->items, &entry);
}

static rondo_status open_device(rondo_triton_devices *devices, const char *name, rondo_device **out_device) {
  for (size_t i = 0; i < devices->items.count; i++) {
    rondo_triton_device *entry = &devices->items.items[i];
    if (strcmp(entry->name, name) != 0) continue;
    entry->users++;
    *out_device = entry->device;
    return RONDO_OK;
  }
  return open_new(devices, name, out_device);
}

rondo_status rondo_triton_devices_open(rondo_triton_devices *devices, const char *name, rondo_device **out_device) {
  *out_device = NULL;
  pthread_mutex_lock(&devices->lock);
  const rondo_status status = open_device(devices, name, out_device);
  pthread_mutex_unlock(&devices->lock);
  return status;
}

static rondo_status close_device(rondo_triton_devices *devices, rondo_device *device) {
  rondo_status status = RONDO_OK;
  pthread_mutex_lock(&devices->lock);
  for (size_t i = 0; i < devices->items.count; i++) {
    rondo_triton_device *entry = &devices->items.items[i];
    if (entry->device != device || --entry->users > 0) continue;
    status = rondo_device_close(device);
    rondo_array_remove(&devices->items, i);
    break;
  }
  pthread_mutex_unlock(&devices->lock);
  return status;
}

/* A device that others use keeps memory for later use; what this user's model needed may never be needed again. */
rondo_status rondo_triton_devices_close(rondo_triton_devices *devices, rondo_device *device) {
  rondo_status status = rondo_memory_trim(device);
  RONDO_THEN(status, close_device(devices, device));
  return status;
}
