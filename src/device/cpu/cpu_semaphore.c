/* SPDX-License-Identifier: MIT
 * Semaphores: timelines that the layers above advance, from any thread. An event like any other stands for one, with a
 * point that tells waits to look what is asked for when they are come to; queues put aside and executables that wait
 * hold the timeline, so that the semaphore ends behind all of them.
 */
#include "device/cpu/cpu.h"

#include "device/cpu/cpu_event.h"
#include "device/cpu/cpu_semaphore.h"
#include "device/cpu/cpu_timeline.h"

static cpu_semaphore *semaphore_of(const rondo_device_event *event) {
  return (cpu_semaphore *)((const cpu_event *)event)->point.timeline;
}

static void free_semaphore(cpu_timeline *timeline) {
  cpu_semaphore *semaphore = (cpu_semaphore *)timeline;
  const rondo_allocator *allocator = &semaphore->device->base.allocator;
  semaphore->end(semaphore->user); /* which stops raising it */
  rondo_release(allocator, semaphore, 1, sizeof *semaphore);
}

static rondo_status semaphore_create(rondo_device *device, void (*end)(void *user), void *user,
                                     rondo_device_event **out) {
  RONDO_TRY(cpu_event_create(device, false, out));
  cpu_semaphore *semaphore;
  const rondo_status status = rondo_allocate_items(&device->allocator, 1, sizeof *semaphore, &semaphore);
  if (status != RONDO_OK) {
    (*out)->ops->destroy(*out);
    *out = NULL;
    return status;
  }
  cpu_timeline_init(&semaphore->timeline, free_semaphore);
  semaphore->device = (cpu_device *)device;
  semaphore->end = end;
  semaphore->user = user;
  /* The first reference is the event's. */
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
    .fail_waits = semaphore_fail_waits,
};
