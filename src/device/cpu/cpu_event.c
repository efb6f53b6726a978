/* SPDX-License-Identifier: MIT
 * Events are points on timelines. Only timing events cost something when a queue records them: they enqueue a stamp.
 * Stamps have the number of their record, so a late stamp of an earlier record does not overwrite the last one. The
 * handle, each enqueued stamp, and each executable with a node for the event have a reference to it.
 *
 * A semaphore is a timeline that the layers above advance, from any thread. An ordinary event represents it. Its point
 * has the value CPU_AS_ASKED, so a wait reads the requested value when it begins. Queues that were set aside and
 * executables that wait have references to the timeline, so the semaphore ends after all of them.
 */
#include <assert.h>

#include "base/clock.h"
#include "device/cpu/cpu.h"
#include "device/cpu/cpu_event.h"
#include "device/cpu/cpu_pool.h"
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

/* If an event is recorded on several queues, its stamps may come at the same time. The stamp of the latest record
 * stays. */
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
  cpu_event *event;
  *out = NULL;
  RONDO_TRY(rondo_allocate_items(&device->allocator, 1, sizeof *event, &event));
  event->base = (rondo_device_event){&device->tables.event, device, timing};
  event->device = (cpu_device *)device;
  atomic_init(&event->references, 1);
  *out = &event->base;
  return RONDO_OK;
}

static void free_timeline(cpu_timeline *timeline) {
  rondo_release(&timeline->device->base.allocator, timeline, 1, sizeof *timeline);
}

rondo_status cpu_timeline_create(cpu_device *device, cpu_timeline **out) {
  RONDO_TRY(rondo_allocate_items(&device->base.allocator, 1, sizeof **out, out));
  cpu_timeline_init(*out, device, free_timeline);
  return RONDO_OK;
}

/* Semaphores ------------------------------------------------------------------------------------------------------ */

static cpu_semaphore *semaphore_of(const rondo_device_event *event) {
  return (cpu_semaphore *)((const cpu_event *)event)->point.timeline;
}

static void free_semaphore(cpu_timeline *timeline) {
  cpu_semaphore *semaphore = (cpu_semaphore *)timeline;
  const rondo_allocator *allocator = &timeline->device->base.allocator;
  if (semaphore->poll != NULL) cpu_pool_end_polling(&timeline->device->pool, semaphore);
  semaphore->end(semaphore->user); /* after which it is not raised any more */
  rondo_release(allocator, semaphore, 1, sizeof *semaphore);
}

static rondo_status semaphore_create(rondo_device *device, void (*end)(void *user), bool (*poll)(void *user),
                                     void *user, rondo_device_event **out) {
  RONDO_TRY(cpu_event_create(device, false, out));
  cpu_semaphore *semaphore;
  const rondo_status status = rondo_allocate_items(&device->allocator, 1, sizeof *semaphore, &semaphore);
  if (status != RONDO_OK) {
    (*out)->ops->destroy(*out);
    *out = NULL;
    return status;
  }
  cpu_timeline_init(&semaphore->timeline, (cpu_device *)device, free_semaphore);
  semaphore->end = end;
  semaphore->poll = poll;
  semaphore->user = user;
  if (poll != NULL) atomic_store(&((cpu_device *)device)->pool.has_ranks, true);
  /* The event owns the first reference. */
  ((cpu_event *)*out)->point = (cpu_point){&semaphore->timeline, CPU_AS_ASKED};
  return RONDO_OK;
}

static void semaphore_ask(rondo_device_event *event, uint64_t value) {
  cpu_semaphore *semaphore = semaphore_of(event);
  uint64_t before = atomic_load(&semaphore->asked);
  while (before < value && !atomic_compare_exchange_weak(&semaphore->asked, &before, value)) {
  }
}

static void semaphore_raise(rondo_device_event *event, uint64_t value) {
  cpu_timeline_raise(&semaphore_of(event)->timeline, value);
}

static bool semaphore_begin_polling(rondo_device_event *event, uint64_t expected_ns) {
  return cpu_pool_begin_polling(&((cpu_event *)event)->device->pool, semaphore_of(event), expected_ns);
}

static void semaphore_fail_waits(rondo_device_event *event, const rondo_saved_error *error) {
  cpu_semaphore *semaphore = semaphore_of(event);
  semaphore->failure = *error;
  atomic_store(&semaphore->failed, true);
  cpu_timeline_raise(&semaphore->timeline, UINT64_MAX);
}

void cpu_point_settle(cpu_point point, cpu_queue *queue) {
  if (point.timeline == NULL || point.value != CPU_AS_ASKED) return;
  const cpu_semaphore *semaphore = (const cpu_semaphore *)point.timeline;
  if (!atomic_load(&semaphore->failed)) return;
  rondo_first_failure_keep(&queue->failure, &semaphore->failure);
}

const rondo_semaphore_ops cpu_semaphore_ops = {
    .create = semaphore_create,
    .ask = semaphore_ask,
    .raise = semaphore_raise,
    .begin_polling = semaphore_begin_polling,
    .fail_waits = semaphore_fail_waits,
};
