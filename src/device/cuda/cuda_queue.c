/* SPDX-License-Identifier: MIT
 * Queues, which are streams of the driver, and events. Work goes straight to the driver. Only host functions are kept
 * here until they have run: then their record is unused and the queue uses it again, so that a warm queue allocates
 * nothing. Threads: as driver.h says. Records come back from the threads that ran them.
 */
#include <assert.h>
#include <stdio.h>

#include "base/allocation.h"
#include "base/linked_list.h"
#include "device/cuda/cuda_adopt.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_executable.h"
#include "device/cuda/cuda_host_function.h"
#include "device/cuda/cuda_kernel.h"
#include "device/cuda/cuda_launch_params.h"
#include "device/cuda/cuda_operations.h"
#include "device/cuda/cuda_queue.h"

/* Failures of host functions --------------------------------------------------------------------------------------- */

/* Takes one. The others stay with their queues. */
rondo_status cuda_queues_take_failure(cuda_device *device) {
  rondo_status status = RONDO_OK;
  pthread_mutex_lock(&device->lock);
  for (cuda_queue *queue = device->queues; queue != NULL && status == RONDO_OK; queue = queue->next)
    status = rondo_first_failure_take(&queue->failure);
  pthread_mutex_unlock(&device->lock);
  return status;
}

/* Submitting ------------------------------------------------------------------------------------------------------- */

static cu_result submit_fill(const cuda_api *api, cu_stream stream, const rondo_fill *fill) {
  const cu_address dst = cuda_address(fill->dst);
  const size_t pitch = fill->pitch;
  const bool is_row = fill->height == 1;
  switch (fill->element_bytes) {
    case 1:
      return is_row ? api->memset_8_async(dst, (unsigned char)fill->value, fill->width, stream)
                    : api->memset_2d_8_async(dst, pitch, (unsigned char)fill->value, fill->width, fill->height, stream);
    case 2:
      return is_row
                 ? api->memset_16_async(dst, (unsigned short)fill->value, fill->width, stream)
                 : api->memset_2d_16_async(dst, pitch, (unsigned short)fill->value, fill->width, fill->height, stream);
    default:
      return is_row ? api->memset_32_async(dst, fill->value, fill->width, stream)
                    : api->memset_2d_32_async(dst, pitch, fill->value, fill->width, fill->height, stream);
  }
}

/* Only the owner pops. */
static rondo_status take_unused(cuda_queue *queue, cuda_host_work **out) {
  cuda_host_work *work = atomic_load_explicit(&queue->unused, memory_order_acquire);
  while (work != NULL && !atomic_compare_exchange_weak_explicit(&queue->unused, &work, work->next, memory_order_acquire,
                                                                memory_order_acquire)) {
  }
  if (work == NULL) {
    RONDO_TRY(rondo_allocate_items(&queue->base.device->allocator, 1, sizeof *work, &work));
    work->next_of_queue = queue->records;
    queue->records = work;
  }
  *out = work;
  return RONDO_OK;
}

/* Enqueues a record of the queue, on which the driver calls `function`. The function calls cuda_host_put_unused. */
static rondo_status enqueue_record(cuda_queue *queue, cuda_host_work *work, cu_host_function function) {
  cuda_device *device = cuda_device_of(queue->base.device);
  assert(work->owner == queue);
  atomic_fetch_add_explicit(&queue->hosts_left, 1, memory_order_relaxed);
  const cu_result code = device->api->launch_host_function(queue->stream, function, work);
  if (code == CU_OK) return RONDO_OK;
  cuda_host_put_unused(queue, work);
  return cuda_check(device, code, "a host function on %s", queue->label);
}

/* The record of a host function is used once, and a graph of other code would call it again. */
static rondo_status refuse_foreign_capture(const cuda_queue *queue) {
  uint64_t id;
  if (!queue->is_adopted || cuda_queue_capture(queue, &id) == CU_CAPTURE_STATUS_NONE) return RONDO_OK;
  return rondo_fail(RONDO_CAPTURE_REFUSED, RONDO_REASON_FOREIGN_WORK,
                    "a host function on %s: other code captures the stream, and its graph cannot hold this: capture "
                    "with rondo_capture_begin",
                    queue->label);
}

/* The function waits until it is certain that the stream waits for it. Otherwise it is not called. */
static rondo_status submit_host(cuda_queue *queue, const rondo_host_node *host) {
  cuda_device *device = cuda_device_of(queue->base.device);
  cuda_host_work *work;
  RONDO_TRY(refuse_foreign_capture(queue));
  RONDO_TRY(cuda_hosts_start(device));
  if (queue->gate == NULL) RONDO_TRY(cuda_gate_take(device, &queue->gate));
  RONDO_TRY(take_unused(queue, &work));
  const uint32_t value = queue->hosts_queued + 1;
  *work = (cuda_host_work){.host = *host,
                           .device = device,
                           .queue = &work->owner,
                           .owner = queue,
                           .node = RONDO_NO_NODE,
                           .gate = queue->gate,
                           .value = value,
                           .state = CUDA_HOST_BEING_QUEUED,
                           .next_of_queue = work->next_of_queue};
  RONDO_TRY(enqueue_record(queue, work, cuda_post_host));
  queue->hosts_queued = value;
  const cu_result code = device->api->stream_wait_value_32(queue->stream, cuda_address(queue->gate), value,
                                                           CU_WAIT_VALUE_GREATER_OR_EQUAL);
  atomic_store_explicit(&work->state, code == CU_OK ? CUDA_HOST_READY : CUDA_HOST_TAKEN_BACK, memory_order_release);
  return cuda_check(device, code, "a host function on %s", queue->label);
}

static void run_store_self(void *user) {
  cuda_host_work *work = user;
  *work->queue = work->owner;
  cuda_host_put_unused(work->owner, work);
}

rondo_status cuda_queue_store_self(cuda_queue *queue, cuda_queue **out) {
  cuda_host_work *work;
  RONDO_TRY(take_unused(queue, &work));
  *work = (cuda_host_work){.queue = out, .owner = queue, .next_of_queue = work->next_of_queue};
  return enqueue_record(queue, work, run_store_self);
}

/* A semaphore that goes out of use waits for the queue's work from before. */
static rondo_status submit_semaphores(cuda_queue *queue, const rondo_node_params *work) {
  const rondo_semaphores_node *node = &work->as.semaphores;
  cuda_device *device = cuda_device_of(queue->base.device);
  uint64_t storage[RONDO_MAX_SEMAPHORES * (sizeof(cu_semaphore_params) + sizeof(void *)) / sizeof(uint64_t)];
  cuda_semaphores_fill(node, storage);
  const cu_semaphores_params params = cuda_semaphores_in(storage, node->count);
  cuda_queue_note_work(queue);
  return cuda_check(device, cuda_semaphores_submit(device, queue->stream, work->kind, &params),
                    "%s %zu semaphores on %s", work->kind == RONDO_NODE_SEMAPHORE_SIGNAL ? "signalling" : "waiting for",
                    node->count, queue->label);
}

static rondo_status queue_submit(rondo_queue *base, const rondo_node_params *work) {
  cuda_queue *queue = (cuda_queue *)base;
  cuda_device *device = cuda_device_of(base->device);
  const cuda_api *api = device->api;
  CUDA_SCOPE(scope);
  RONDO_TRY(cuda_enter_for_work(device, &scope));
  switch (work->kind) {
    case RONDO_NODE_KERNEL:
      cuda_queue_note_work(queue);
      RONDO_TRY(cuda_check(device, cuda_kernel_submit(api, queue->stream, &work->as.kernel), "kernel '%s' on %s",
                           work->as.kernel.kernel->name, queue->label));
      cuda_queue_count(&queue->kernels, 1);
      return RONDO_OK;
    case RONDO_NODE_COPY:
      return cuda_check(device, cuda_copy_submit(api, queue->stream, &work->as.copy),
                        "a copy of %zu x %zu x %zu bytes on %s", work->as.copy.width, work->as.copy.height,
                        work->as.copy.depth, queue->label);
    case RONDO_NODE_FILL:
      return cuda_check(device, submit_fill(api, queue->stream, &work->as.fill), "a fill of %zu x %zu elements on %s",
                        work->as.fill.width, work->as.fill.height, queue->label);
    case RONDO_NODE_MEMORY_OPERATIONS:
      return cuda_check(device, cuda_operations_submit(device, queue->stream, &work->as.memory_operations),
                        "%zu memory operations on %s", work->as.memory_operations.count, queue->label);
    case RONDO_NODE_SEMAPHORE_SIGNAL:
    case RONDO_NODE_SEMAPHORE_WAIT:
      return submit_semaphores(queue, work);
    default:
      assert(work->kind == RONDO_NODE_HOST); /* no other kind is enqueued */
      return submit_host(queue, &work->as.host);
  }
}

/* Order ------------------------------------------------------------------------------------------------------------ */

static rondo_status queue_record(rondo_queue *base, rondo_device_event *event) {
  cuda_device *device = cuda_device_of(base->device);
  const cuda_queue *queue = (const cuda_queue *)base;
  RONDO_TRY(cuda_require(device));
  return cuda_check(device, device->api->event_record(((cuda_event *)event)->event, queue->stream),
                    "recording an event on %s", queue->label);
}

static rondo_status queue_wait(rondo_queue *base, rondo_device_event *event) {
  cuda_device *device = cuda_device_of(base->device);
  const cuda_queue *queue = (const cuda_queue *)base;
  RONDO_TRY(cuda_require(device));
  return cuda_check(device, device->api->stream_wait_event(queue->stream, ((cuda_event *)event)->event, 0),
                    "making %s wait for an event", queue->label);
}

/* All work that was enqueued before `epoch` was read is done. */
static void settle(cuda_queue *queue, uint64_t epoch) {
  atomic_store_explicit(&queue->settled, epoch, memory_order_release);
  atomic_store_explicit(&queue->is_busy, false, memory_order_release);
  atomic_store_explicit(&queue->last, NULL, memory_order_relaxed);
}

void cuda_queues_settle(cuda_device *device, uint64_t epoch) {
  pthread_mutex_lock(&device->lock);
  for (cuda_queue *queue = device->queues; queue != NULL; queue = queue->next) {
    uint64_t settled = atomic_load_explicit(&queue->settled, memory_order_relaxed);
    while (settled < epoch && !atomic_compare_exchange_weak(&queue->settled, &settled, epoch)) {
    }
    /* an executable that is launched meanwhile is not named */
    atomic_store_explicit(&queue->last, NULL, memory_order_relaxed);
  }
  pthread_mutex_unlock(&device->lock);
  cuda_kernels_look(device);
}

static rondo_status queue_await(rondo_queue *base) {
  cuda_device *device = cuda_device_of(base->device);
  cuda_queue *queue = (cuda_queue *)base;
  const uint64_t epoch = atomic_load(&device->epoch);
  CUDA_SCOPE(scope);
  RONDO_TRY(cuda_require(device));
  cuda_enter_to_free(device, &scope); /* callers rely on this wait */
  const cu_result code = device->api->stream_synchronize(queue->stream);
  RONDO_TRY(cuda_check(device, code, "waiting for %s", queue->label));
  settle(queue, epoch);
  return RONDO_OK;
}

static rondo_status queue_synchronize(rondo_queue *base) {
  RONDO_TRY(queue_await(base));
  return rondo_first_failure_take(&((cuda_queue *)base)->failure);
}

static rondo_status queue_query(rondo_queue *base) {
  cuda_device *device = cuda_device_of(base->device);
  cuda_queue *queue = (cuda_queue *)base;
  const uint64_t epoch = atomic_load(&device->epoch);
  CUDA_SCOPE(scope);
  RONDO_TRY(cuda_enter(device, &scope));
  const cu_result code = device->api->stream_query(queue->stream);
  RONDO_TRY(cuda_check(device, code, "asking whether %s is idle", queue->label));
  settle(queue, epoch);
  return rondo_first_failure_take(&queue->failure);
}

static void *queue_native(rondo_queue *base) { return ((cuda_queue *)base)->stream; }

/* Last launches ---------------------------------------------------------------------------------------------------- */

void cuda_queues_forget(cuda_device *device, cuda_executable *executable) {
  pthread_mutex_lock(&device->lock);
  for (cuda_queue *queue = device->queues; queue != NULL; queue = queue->next) {
    cuda_executable *last = executable;
    atomic_compare_exchange_strong_explicit(&queue->last, &last, NULL, memory_order_relaxed, memory_order_relaxed);
  }
  pthread_mutex_unlock(&device->lock);
}

/* With the device's lock, executables that queues name exist. */
void cuda_queues_name_launched(const cuda_device *device, char *text, size_t bytes) {
  size_t used = 0;
  text[0] = '\0';
  for (const cuda_queue *queue = device->queues; queue != NULL; queue = queue->next) {
    const cuda_executable *last = atomic_load_explicit(&queue->last, memory_order_relaxed);
    if (last == NULL) continue;
    const int length = snprintf(text + used, bytes - used, "%s %.48s on %s",
                                used == 0 ? " (last launched and not waited for:" : ",", last->label, queue->label);
    if (length < 0 || (size_t)length >= bytes - used - 1) break; /* as many as fit */
    used += (size_t)length;
  }
  if (used > 0) text[used++] = ')';
  text[used] = '\0';
}

/* Life ------------------------------------------------------------------------------------------------------------- */

static void link_queue(cuda_device *device, cuda_queue *queue) {
  pthread_mutex_lock(&device->lock);
  RONDO_LIST_INSERT(device->queues, queue, next, link);
  pthread_mutex_unlock(&device->lock);
}

static void unlink_queue(cuda_device *device, cuda_queue *queue) {
  pthread_mutex_lock(&device->lock);
  device->kernels += atomic_load_explicit(&queue->kernels, memory_order_relaxed);
  device->launches += atomic_load_explicit(&queue->launches, memory_order_relaxed);
  RONDO_LIST_REMOVE(queue, next, link);
  pthread_mutex_unlock(&device->lock);
}

static void free_queue(cuda_queue *queue) {
  const rondo_allocator *allocator = &queue->base.device->allocator;
  while (queue->records != NULL) {
    cuda_host_work *work = queue->records;
    queue->records = work->next_of_queue;
    rondo_release(allocator, work, 1, sizeof *work);
  }
  cuda_gate_give(cuda_device_of(queue->base.device), queue->gate);
  rondo_release(allocator, queue, 1, sizeof *queue);
}

/* On a lost device, the driver's thread may or may not call host functions later. */
static void bury_queue(cuda_device *device, cuda_queue *queue) {
  pthread_mutex_lock(&device->lock);
  queue->next = device->dead_queues;
  device->dead_queues = queue;
  pthread_mutex_unlock(&device->lock);
}

void cuda_dead_queues_free(cuda_device *device) {
  while (device->dead_queues != NULL) {
    cuda_queue *queue = device->dead_queues;
    device->dead_queues = queue->next;
    free_queue(queue);
  }
}

cu_capture_status cuda_queue_capture(const cuda_queue *queue, uint64_t *out_id) {
  cuda_device *device = cuda_device_of(queue->base.device);
  cu_capture_status state = CU_CAPTURE_STATUS_NONE;
  CUDA_SCOPE(scope);
  *out_id = 0;
  if (cuda_is_lost(device)) return CU_CAPTURE_STATUS_NONE;
  cuda_enter_to_free(device, &scope);
  const cu_result code = device->api->capture_info(queue->stream, &state, out_id, NULL, NULL, NULL, NULL);
  return code == CU_OK ? state : CU_CAPTURE_STATUS_NONE;
}

/* If a stream that was adopted is gone, or is the default stream of another thread, its work is waited for with all
 * other work of the context. */
static rondo_status wait_for_the_rest(cuda_queue *queue) {
  cuda_device *device = cuda_device_of(queue->base.device);
  CUDA_SCOPE(scope);
  RONDO_TRY(cuda_enter(device, &scope));
  return cuda_check(device, device->api->context_synchronize(), "waiting for device '%s', for %s", device->base.name,
                    queue->label);
}

static rondo_status wait_last(cuda_queue *queue) {
  uint64_t id;
  if (!cuda_queue_is_here(queue)) return wait_for_the_rest(queue);
  if (cuda_queue_capture(queue, &id) != CU_CAPTURE_STATUS_NONE) return RONDO_OK; /* then there is no work */
  const rondo_status status = queue_await(&queue->base);
  if (status == RONDO_OK || !queue->is_adopted) return status;
  rondo_saved_error first;
  rondo_error_save(&first);
  rondo_status_ignore(wait_for_the_rest(queue), "the first failure is returned");
  return rondo_error_raise(&first);
}

static rondo_status queue_destroy(rondo_queue *base) {
  cuda_device *device = cuda_device_of(base->device);
  cuda_queue *queue = (cuda_queue *)base;
  const rondo_status waited = wait_last(queue);
  const rondo_status status = waited == RONDO_OK ? rondo_first_failure_take(&queue->failure) : waited;
  CUDA_SCOPE(scope);
  cuda_enter_to_free(device, &scope);
  if (!queue->is_adopted) (void)device->api->stream_destroy(queue->stream); /* gone already on a lost device */
  unlink_queue(device, queue);
  if (cuda_is_lost(device)) {
    bury_queue(device, queue);
    return status;
  }
  while (atomic_load_explicit(&queue->hosts_left, memory_order_acquire) > 0)
    rondo_yield(); /* their threads are about to finish */
  free_queue(queue);
  return status;
}

const rondo_queue_ops cuda_queue_ops = {
    .destroy = queue_destroy,
    .submit = queue_submit,
    .record = queue_record,
    .wait = queue_wait,
    .launch = cuda_queue_launch,
    .launch_patched = cuda_queue_launch_patched,
    .upload = cuda_queue_upload,
    .synchronize = queue_synchronize,
    .await = queue_await,
    .query = queue_query,
    .native = queue_native,
};

static rondo_status check_priority(const cuda_queue *queue, int32_t priority) {
  const rondo_device *device = queue->base.device;
  const int least = device->limits.least_priority, greatest = device->limits.greatest_priority;
  if (priority <= least && priority >= greatest) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s cannot have the priority %d: device '%s' has %d (last) to %d (first)", queue->label,
                    (int)priority, device->name, least, greatest);
}

static rondo_status make_stream(cuda_queue *queue, const rondo_queue_options *options) {
  cuda_device *device = cuda_device_of(queue->base.device);
  const unsigned flags = options->is_blocking ? CU_STREAM_FLAG_DEFAULT : CU_STREAM_FLAG_NON_BLOCKING;
  if (options->priority != 0) RONDO_TRY(check_priority(queue, options->priority));
  queue->base.is_blocking = options->is_blocking;
  const cu_result code = options->priority == 0
                             ? device->api->stream_create(&queue->stream, flags)
                             : device->api->stream_create_with_priority(&queue->stream, flags, options->priority);
  return cuda_check(device, code, "making %s on device '%s'", queue->label, device->base.name);
}

rondo_status cuda_queue_create(rondo_device *base, const char *label, const rondo_queue_options *options,
                               rondo_queue **out) {
  static const rondo_queue_options defaults;
  cuda_device *device = cuda_device_of(base);
  cuda_queue *queue;
  CUDA_SCOPE(scope);
  *out = NULL;
  RONDO_TRY(cuda_enter(device, &scope));
  RONDO_TRY(rondo_allocate_items(&base->allocator, 1, sizeof *queue, &queue));
  queue->base = (rondo_queue){.ops = &base->tables.queue, .device = base};
  (void)snprintf(queue->label, sizeof queue->label, "%s", label);
  if (options == NULL) options = &defaults;
  const rondo_status status = options->adopts ? cuda_adopt(queue, options->native) : make_stream(queue, options);
  if (status != RONDO_OK) {
    free_queue(queue);
    return status;
  }
  link_queue(device, queue);
  *out = &queue->base;
  return RONDO_OK;
}

/* Events ----------------------------------------------------------------------------------------------------------- */

/* Work that waits for a record still does, which the driver ensures. */
static void event_destroy(rondo_device_event *base) {
  cuda_event *event = (cuda_event *)base;
  cuda_device *device = cuda_device_of(base->device);
  CUDA_SCOPE(scope);
  cuda_enter_to_free(device, &scope);
  (void)device->api->event_destroy(event->event); /* gone already on a lost device */
  rondo_release(&device->base.allocator, event, 1, sizeof *event);
}

static rondo_status event_query(rondo_device_event *base) {
  cuda_device *device = cuda_device_of(base->device);
  CUDA_SCOPE(scope);
  RONDO_TRY(cuda_require(device));
  cuda_enter_to_free(device, &scope); /* asking needs no context */
  const cu_result code = device->api->event_query(((cuda_event *)base)->event);
  return cuda_check(device, code, "asking whether an event of device '%s' is complete", device->base.name);
}

static rondo_status event_synchronize(rondo_device_event *base) {
  cuda_device *device = cuda_device_of(base->device);
  CUDA_SCOPE(scope);
  RONDO_TRY(cuda_enter(device, &scope));
  const cu_result code = device->api->event_synchronize(((cuda_event *)base)->event);
  return cuda_check(device, code, "waiting for an event of device '%s'", device->base.name);
}

/* The driver measures in milliseconds, with a resolution of about half a microsecond. */
static rondo_status event_elapsed(const rondo_device_event *begin, const rondo_device_event *end, int64_t *out_ns) {
  cuda_device *device = cuda_device_of(begin->device);
  float milliseconds = 0;
  CUDA_SCOPE(scope);
  RONDO_TRY(cuda_enter(device, &scope));
  const cu_result code = device->api->event_elapsed_time(&milliseconds, ((const cuda_event *)begin)->event,
                                                         ((const cuda_event *)end)->event);
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
  const unsigned flags = timing ? CU_EVENT_FLAG_DEFAULT : CU_EVENT_FLAG_DISABLE_TIMING;
  cuda_event *event;
  CUDA_SCOPE(scope);
  *out = NULL;
  RONDO_TRY(cuda_enter(device, &scope));
  RONDO_TRY(rondo_allocate_items(&base->allocator, 1, sizeof *event, &event));
  event->base = (rondo_device_event){&base->tables.event, base, timing};
  const rondo_status status =
      cuda_check(device, device->api->event_create(&event->event, flags), "making an event on device '%s'", base->name);
  if (status == RONDO_OK)
    *out = &event->base;
  else
    rondo_release(&base->allocator, event, 1, sizeof *event);
  return status;
}
