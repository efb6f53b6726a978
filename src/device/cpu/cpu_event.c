/* SPDX-License-Identifier: MIT
 * Events: points on timelines. Recording on a queue costs nothing but for timing events, which queue a stamp. Time
 * stamps carry the number of their record, so that a late one of an earlier record does not overwrite the last.
 * Counted: the handle holds one reference, each queued stamp and each executable with a node for it another.
 */
#include <assert.h>

#include "base/clock.h"
#include "device/cpu/cpu.h"
#include "device/cpu/cpu_event.h"
#include "device/cpu/cpu_timeline.h"
#include "device/cpu/cpu_wait.h"

void cpu_event_retain(cpu_event *event) { atomic_fetch_add_explicit(&event->references, 1, memory_order_relaxed); }

void cpu_event_release(cpu_event *event) {
  const unsigned before = atomic_fetch_sub_explicit(&event->references, 1, memory_order_acq_rel);
  assert(before > 0);
  if (before != 1) return;
  cpu_timeline_release(event->point.timeline);
  rondo_release(&event->device->base.allocator, event, 1, sizeof *event);
}

/* Stamps of one event come at once when it was recorded on several queues: then the later record's stays. */
void cpu_event_stamp(cpu_event *event, uint64_t serial) {
  uint64_t before = atomic_load_explicit(&event->stamp_serial, memory_order_relaxed);
  do {
    while (before % 2 != 0) {
      rondo_yield();
      before = atomic_load_explicit(&event->stamp_serial, memory_order_relaxed);
    }
    if (before > 2 * serial) return;
  } while (!atomic_compare_exchange_weak(&event->stamp_serial, &before, 2 * serial + 1));
  atomic_store_explicit(&event->stamp_ns, rondo_clock_ns(), memory_order_relaxed);
  atomic_store_explicit(&event->stamp_serial, 2 * serial, memory_order_release);
}

void cpu_event_record_at(cpu_event *event, cpu_timeline *timeline, uint64_t value) {
  event->records++;
  cpu_point_set(&event->point, timeline, value);
}

static void event_destroy(rondo_device_event *event) { cpu_event_release((cpu_event *)event); }

static rondo_status event_query(rondo_device_event *event) {
  return cpu_point_reached(((cpu_event *)event)->point) ? RONDO_OK : RONDO_NOT_READY;
}

static rondo_status event_synchronize(rondo_device_event *base) {
  cpu_event *event = (cpu_event *)base;
  cpu_point_await(event->device, event->point);
  return RONDO_OK;
}

static uint64_t completion_ns(const rondo_device_event *base) {
  const cpu_event *event = (const cpu_event *)base;
  const cpu_timeline *timeline = event->point.timeline;
  const bool in_graph = timeline != NULL && timeline->stamped;
  return atomic_load_explicit(in_graph ? &timeline->stamp_ns : &event->stamp_ns, memory_order_relaxed);
}

static rondo_status event_elapsed(const rondo_device_event *begin, const rondo_device_event *end, int64_t *out_ns) {
  *out_ns = (int64_t)(completion_ns(end) - completion_ns(begin));
  return RONDO_OK;
}

const rondo_event_ops cpu_event_ops = {
    .destroy = event_destroy,
    .query = event_query,
    .synchronize = event_synchronize,
    .elapsed = event_elapsed,
};

rondo_status cpu_event_create(rondo_device *device, bool timing, rondo_device_event **out) {
  void *memory;
  *out = NULL;
  RONDO_TRY(rondo_allocate(&device->allocator, 1, sizeof(cpu_event), &memory));
  cpu_event *event = memory;
  event->base = (rondo_device_event){&device->tables.event, device, timing};
  event->device = (cpu_device *)device;
  atomic_init(&event->references, 1);
  *out = &event->base;
  return RONDO_OK;
}

/* A timeline with the device it was allocated from. */
typedef struct own_timeline {
  cpu_timeline timeline;
  cpu_device *device;
} own_timeline;

static void free_own(cpu_timeline *timeline) {
  own_timeline *own = (own_timeline *)timeline;
  rondo_release(&own->device->base.allocator, own, 1, sizeof *own);
}

rondo_status cpu_timeline_create(cpu_device *device, cpu_timeline **out) {
  void *memory;
  *out = NULL;
  RONDO_TRY(rondo_allocate(&device->base.allocator, 1, sizeof(own_timeline), &memory));
  own_timeline *own = memory;
  own->device = device;
  cpu_timeline_init(&own->timeline, free_own);
  *out = &own->timeline;
  return RONDO_OK;
}
