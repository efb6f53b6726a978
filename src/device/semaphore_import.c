/* SPDX-License-Identifier: MIT
 * Importing external semaphores: the checks of the public calls, and the count that keeps the device open. The driver
 * does the rest. Threads: any.
 */
#include "base/versioned_struct.h"
#include "device/device.h"
#include "graph/semaphore_data.h"

static const rondo_device_use semaphore_use = {.rank = 13, .name = "external semaphore"};

static rondo_status check(const char *call, const rondo_device *device, int descriptor,
                          const rondo_semaphore_import_options *options) {
  RONDO_TRY(rondo_refuse_in_callback(call));
  RONDO_TRY(rondo_device_require_own(call, device));
  if (options->type != RONDO_SEMAPHORE_OPAQUE_FD && options->type != RONDO_SEMAPHORE_TIMELINE_FD)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: %d is not a type of semaphore: use RONDO_SEMAPHORE_OPAQUE_FD or RONDO_SEMAPHORE_TIMELINE_FD",
                      call, (int)options->type);
  if (descriptor < 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: the file descriptor is %d: pass an open one", call, descriptor);
  if (device->ops->import_semaphore != NULL) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NOT_SUPPORTED,
                    "%s: device '%s' has no external semaphores, which only GPUs have: let streams wait for words of "
                    "memory (rondo_memory_operations_async)",
                    call, device->name);
}

rondo_status rondo_external_semaphore_import(rondo_device *device, int descriptor,
                                             const rondo_semaphore_import_options *options,
                                             rondo_external_semaphore **out_semaphore) {
  const char *const call = "rondo_external_semaphore_import";
  rondo_semaphore_import_options known;
  rondo_external_semaphore *semaphore;
  RONDO_TRY(rondo_require(call, "out_semaphore", out_semaphore));
  *out_semaphore = NULL;
  RONDO_TRY(rondo_require(call, "device", device));
  RONDO_TRY(rondo_require(call, "options", options));
  RONDO_TRY(rondo_versioned_read("rondo_semaphore_import_options", options, &known, sizeof known));
  RONDO_TRY(check(call, device, descriptor, &known));
  RONDO_TRY(rondo_fail_context(rondo_semaphore_make(device, &device->allocator, known.name, &semaphore), "%s", call));
  semaphore->is_timeline = known.type == RONDO_SEMAPHORE_TIMELINE_FD;
  const rondo_status status = device->ops->import_semaphore(device, known.type, descriptor, semaphore);
  if (status != RONDO_OK) {
    rondo_semaphore_release(semaphore);
    return rondo_fail_context(status, "%s", call);
  }
  rondo_device_begin_use(device, &semaphore_use);
  *out_semaphore = semaphore;
  return RONDO_OK;
}

void rondo_external_semaphore_destroy(rondo_external_semaphore *semaphore) {
  if (semaphore == NULL || semaphore->device == NULL || semaphore->device->is_inherited) return;
  rondo_device *device = semaphore->device;
  rondo_semaphore_release(semaphore);
  rondo_device_end_use(device, &semaphore_use);
}
