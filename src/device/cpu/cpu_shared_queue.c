/* SPDX-License-Identifier: MIT
 * See cpu_shared_queue.h. A shared queue has functions of its own, which catch up and then call its device's table, so
 * other queues do not pay for this.
 */
#include "device/cpu/cpu_shared_queue.h"

#include <assert.h>
#include <string.h>

#include "device/cpu/cpu_queue.h"
#include "device/cpu/cpu_timeline.h"

/* Order ------------------------------------------------------------------------------------------------------------ */

static uint64_t submitted(const cpu_queue *queue) {
  return atomic_load_explicit(&queue->submitted, memory_order_relaxed);
}

static void wait_for(cpu_queue *queue, cpu_queue *other) {
  const cpu_point point = {&other->timeline, submitted(other)};
  uint64_t head;
  if (cpu_point_reached(point)) return;
  cpu_item *item = cpu_queue_begin(queue, CPU_WAIT, sizeof *item, &head);
  cpu_queue_begin_wait(queue, item, point);
  cpu_queue_publish(queue, head);
}

void cpu_queue_catch_up(cpu_queue *queue) {
  cpu_queue *last = queue->next_shared;
  while (last != queue && !last->is_last) last = last->next_shared;
  if (last != queue) wait_for(queue, last);
  last->is_last = false;
  queue->is_last = true;
}

/* In a forked child, the table refuses. */
static __attribute__((noinline)) void get_ready(rondo_queue *base) {
  if (!base->device->is_inherited) cpu_queue_catch_up((cpu_queue *)base);
}

static inline const rondo_queue_ops *ready(rondo_queue *base) {
  if (__builtin_expect(!((const cpu_queue *)base)->is_last, 0)) get_ready(base);
  return &base->device->tables.queue;
}

/* Functions of the table, one in each row. */
/* clang-format off */
#define CATCH_UP(slot, parameters, ...) \
  static rondo_status shared_##slot parameters { return ready(queue)->slot(__VA_ARGS__); }
CATCH_UP(submit, (rondo_queue *queue, const rondo_node_params *work), queue, work)
CATCH_UP(record, (rondo_queue *queue, rondo_device_event *event), queue, event)
CATCH_UP(wait, (rondo_queue *queue, rondo_device_event *event), queue, event)
CATCH_UP(launch, (rondo_queue *queue, rondo_executable *executable), queue, executable)
CATCH_UP(launch_patched, (rondo_queue *queue, rondo_executable *executable, const rondo_patch_change *changes,
                          size_t count), queue, executable, changes, count)
CATCH_UP(synchronize, (rondo_queue *queue), queue)
CATCH_UP(await, (rondo_queue *queue), queue)
CATCH_UP(query, (rondo_queue *queue), queue)
CATCH_UP(destroy, (rondo_queue *queue), queue)
/* clang-format on */

static rondo_status shared_upload(rondo_queue *queue, rondo_executable *executable) {
  const rondo_queue_ops *ops = ready(queue);
  return ops->upload == NULL ? RONDO_OK : ops->upload(queue, executable);
}

static void *shared_native(rondo_queue *queue) { return queue->device->tables.queue.native(queue); }

static const rondo_queue_ops shared_ops = {
    .destroy = shared_destroy,
    .submit = shared_submit,
    .record = shared_record,
    .wait = shared_wait,
    .launch = shared_launch,
    .launch_patched = shared_launch_patched,
    .upload = shared_upload,
    .synchronize = shared_synchronize,
    .await = shared_await,
    .query = shared_query,
    .native = shared_native,
};

/* Sharing ---------------------------------------------------------------------------------------------------------- */

/* A search in the devices of the process. */
typedef struct share_search {
  cpu_queue *queue; /* the new one */
  uint64_t number;  /* of the queue to share */
  bool is_elsewhere;
} share_search;

static void join(cpu_queue *queue, cpu_queue *other) {
  if (other->next_shared == NULL) {
    other->next_shared = other;
    other->is_last = true;
    other->base.ops = &shared_ops;
  }
  queue->next_shared = other->next_shared;
  other->next_shared = queue;
  queue->number = other->number; /* one stream has one native handle */
  queue->base.ops = &shared_ops;
}

static cpu_queue *find(cpu_device *device, const share_search *search) {
  cpu_queue *found = NULL;
  pthread_mutex_lock(&device->lock);
  for (uint32_t slot = 0; slot < CPU_MAX_QUEUES && found == NULL; slot++) {
    cpu_queue *queue = atomic_load_explicit(&device->queues[slot], memory_order_relaxed);
    if (queue != NULL && queue != search->queue && queue->number == search->number) found = queue;
  }
  pthread_mutex_unlock(&device->lock);
  return found;
}

/* True if the device has the queue. Devices of one driver have the same function. */
static bool visit(rondo_device *base, void *user) {
  share_search *search = user;
  cpu_queue *const queue = search->queue;
  if (base->is_inherited || base->ops->peers != queue->base.device->ops->peers) return false;
  cpu_queue *other = find((cpu_device *)base, search);
  if (other == NULL) return false;
  search->is_elsewhere = strcmp(base->name, queue->base.device->name) != 0;
  if (!search->is_elsewhere) join(queue, other);
  return true;
}

rondo_status cpu_queue_share(cpu_queue *queue, const void *native) {
  share_search search = {.queue = queue, .number = (uint64_t)(uintptr_t)native};
  const bool is_found = rondo_device_find(visit, &search);
  if (!is_found)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_STREAM_GONE,
                      "adopting %p as %s of device '%s': no CPU device of this process has a stream with this handle: "
                      "give what rondo_stream_native returned, and adopt it before it is destroyed",
                      native, queue->label, queue->base.device->name);
  if (!search.is_elsewhere) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE,
                    "adopting %p as %s: it is a stream of another CPU device than '%s': open that device again, and "
                    "adopt it there",
                    native, queue->label, queue->base.device->name);
}

void cpu_queue_leave_shared(cpu_queue *queue) {
  cpu_queue *before = queue;
  if (queue->next_shared == NULL) return;
  cpu_queue_await_visitors(queue);
  for (cpu_queue *other = queue->next_shared; other != queue; other = other->next_shared)
    cpu_queue_await_visitors(other); /* they may have the timeline of this one, whose device may be closed soon */
  while (before->next_shared != queue) before = before->next_shared;
  before->next_shared = queue->next_shared;
  if (queue->is_last) before->is_last = true;
  queue->next_shared = NULL;
  if (before->next_shared != before) return;
  before->next_shared = NULL;
  before->base.ops = &before->base.device->tables.queue;
}
