/* SPDX-License-Identifier: MIT
 * The checks that public calls of this layer begin with, and the state that it keeps on devices.
 */
#include "exec/api_check.h"

#include <pthread.h>
#include <string.h>

rondo_status rondo_check_call(const char *call, const char *what, const void *pointer) {
  RONDO_TRY(rondo_refuse_in_callback(call));
  return rondo_require(call, what, pointer);
}

rondo_status rondo_require_device(const char *call, const char *what, const rondo_device *expected,
                                  const rondo_device *actual) {
  if (expected == actual) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE, "%s: %s belongs to device '%s', not to '%s'",
                    call, what, actual == NULL ? "(none)" : actual->name, expected == NULL ? "(none)" : expected->name);
}

static rondo_status make_state(rondo_device *device, rondo_device_slot *slot, const rondo_state_kind *kind,
                               void **out) {
  RONDO_TRY(rondo_allocate(&device->allocator, 1, kind->bytes, out));
  kind->init(*out, &device->allocator);
  slot->release = kind->release;
  atomic_store_explicit(&slot->state, *out, memory_order_release);
  return RONDO_OK;
}

rondo_status rondo_device_state(rondo_device *device, rondo_device_slot *slot, const rondo_state_kind *kind,
                                void *out) {
  static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
  void *state = atomic_load_explicit(&slot->state, memory_order_acquire);
  rondo_status status = RONDO_OK;
  if (state == NULL) {
    pthread_mutex_lock(&making);
    state = atomic_load_explicit(&slot->state, memory_order_relaxed);
    if (state == NULL) status = make_state(device, slot, kind, &state);
    pthread_mutex_unlock(&making);
  }
  memcpy(out, &state, sizeof state);
  return status;
}
