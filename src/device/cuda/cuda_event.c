/* SPDX-License-Identifier: MIT
 * Events. The driver keeps what waits for a record alive, so destroying is immediate.
 */
#include "device/cuda/cuda_event.h"
#include "base/error.h"
#include "device/cuda/cuda.h"
#include "device/cuda/cuda_context.h"

static void event_destroy(rondo_device_event *base) {
  cuda_event *event = (cuda_event *)base;
  cuda_device *device = cuda_device_of(base->device);
  cuda_scope scope;
  cuda_enter_to_free(device, &scope);
  (void)device->api->event_destroy(event->event); /* on a lost device it is gone already */
  cuda_leave(&scope);
  rondo_release(&device->base.allocator, event, 1, sizeof *event);
}

static rondo_status event_query(rondo_device_event *base) {
  cuda_device *device = cuda_device_of(base->device);
  cuda_scope scope;
  RONDO_TRY(cuda_require(device));
  cuda_enter_to_free(device, &scope); /* asking needs no context */
  const cu_result code = device->api->event_query(((cuda_event *)base)->event);
  cuda_leave(&scope);
  return cuda_check(device, code, "asking whether an event of device '%s' is complete", device->base.name);
}

static rondo_status event_synchronize(rondo_device_event *base) {
  cuda_device *device = cuda_device_of(base->device);
  cuda_scope scope;
  RONDO_TRY(cuda_enter(device, &scope));
  const cu_result code = device->api->event_synchronize(((cuda_event *)base)->event);
  cuda_leave(&scope);
  return cuda_check(device, code, "waiting for an event of device '%s'", device->base.name);
}

/* The driver measures in milliseconds, with a resolution of about half a microsecond. */
static rondo_status event_elapsed(const rondo_device_event *begin, const rondo_device_event *end, int64_t *out_ns) {
  cuda_device *device = cuda_device_of(begin->device);
  float milliseconds = 0;
  cuda_scope scope;
  RONDO_TRY(cuda_enter(device, &scope));
  const cu_result code = device->api->event_elapsed_time(&milliseconds, ((const cuda_event *)begin)->event,
                                                         ((const cuda_event *)end)->event);
  cuda_leave(&scope);
  *out_ns = (int64_t)((double)milliseconds * 1e6);
  return cuda_check(device, code, "measuring the time between two events of device '%s'", device->base.name);
}

const rondo_event_ops cuda_event_ops = {
    .destroy = event_destroy,
    .query = event_query,
    .synchronize = event_synchronize,
    .elapsed = event_elapsed,
};

rondo_status cuda_event_create(rondo_device *base, bool timing, rondo_device_event **out) {
  cuda_device *device = cuda_device_of(base);
  cuda_scope scope;
  void *memory;
  *out = NULL;
  RONDO_TRY(rondo_allocate(&base->allocator, 1, sizeof(cuda_event), &memory));
  cuda_event *event = memory;
  event->base = (rondo_device_event){&base->tables.event, base, timing};
  rondo_status status = cuda_enter(device, &scope);
  if (status == RONDO_OK) {
    const cu_result code =
        device->api->event_create(&event->event, timing ? CU_EVENT_FLAG_DEFAULT : CU_EVENT_FLAG_DISABLE_TIMING);
    status = cuda_check(device, code, "making an event on device '%s'", base->name);
    cuda_leave(&scope);
  }
  if (status == RONDO_OK)
    *out = &event->base;
  else
    rondo_release(&base->allocator, event, 1, sizeof *event);
  return status;
}
