/* SPDX-License-Identifier: MIT
 * The public functions of streams. Every operation is one piece of work. It is checked; then it becomes a node if the
 * stream captures, and else goes to the device's queue. rondo_launch is the hot path: a few comparisons accept valid
 * launches on streams that do not capture. All other launches take the general path.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include <rondo/external_semaphore.h>

#include "base/trace.h"
#include "base/versioned_struct.h"
#include "device/retired_objects.h"
#include "exec/capture/capture_internal.h"
#include "exec/patch/frozen_values.h"
#include "exec/stream/stream_work.h"
#include "graph/node_params.h"

static const rondo_device_use stream_use = {.rank = 3, .name = "stream"};

/* Life ------------------------------------------------------------------------------------------------------------ */

static void make_label(rondo_stream *stream, uint64_t number) {
  if (stream->name[0] == '\0')
    (void)snprintf(stream->label, sizeof stream->label, "stream %" PRIu64, number);
  else
    (void)snprintf(stream->label, sizeof stream->label, "stream '%.60s'", stream->name);
}

static rondo_status make_stream(rondo_device *device, const char *name, const rondo_queue_options *options,
                                rondo_stream **out) {
  rondo_stream *stream;
  const uint64_t number = atomic_fetch_add_explicit(&device->queues_numbered, 1, memory_order_relaxed) + 1;
  RONDO_TRY(rondo_allocate_items(&device->allocator, 1, sizeof *stream, &stream));
  stream->device = device;
  stream->synchronous = device->synchronous;
  rondo_status status = rondo_allocate_text(&device->allocator, name, &stream->name);
  if (status == RONDO_OK) {
    make_label(stream, number);
    status = device->ops->queue_create(device, stream->label, options, &stream->queue);
    if (status != RONDO_OK) rondo_release_text(&device->allocator, stream->name);
  }
  if (status != RONDO_OK) {
    rondo_release(&device->allocator, stream, 1, sizeof *stream);
    return status;
  }
  stream->queue->number = number;
  stream->order.queue = stream->queue;
  rondo_device_begin_use(device, &stream_use);
  *out = stream;
  return RONDO_OK;
}

static rondo_status check_making(const char *call, const rondo_device *device, const rondo_stream_options *options,
                                 rondo_stream **out_stream, rondo_stream_options *known) {
  RONDO_TRY(rondo_check_call(call, "out_stream", out_stream));
  *out_stream = NULL;
  if (device == NULL) return rondo_refuse_null(call, "device");
  return rondo_versioned_read("rondo_stream_options", options, known, sizeof *known);
}

rondo_status rondo_stream_create(rondo_device *device, const rondo_stream_options *options, rondo_stream **out_stream) {
  rondo_stream_options known;
  RONDO_TRY(check_making("rondo_stream_create", device, options, out_stream, &known));
  const rondo_queue_options made = {.priority = known.priority, .is_blocking = known.blocking};
  return make_stream(device, known.name, &made, out_stream);
}

rondo_status rondo_stream_adopt(rondo_device *device, void *native, const rondo_stream_options *options,
                                rondo_stream **out_stream) {
  const char *const call = "rondo_stream_adopt";
  rondo_stream_options known;
  RONDO_TRY(check_making(call, device, options, out_stream, &known));
  if (known.priority != 0 || known.blocking)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: priority %d, blocking %d: an adopted stream keeps those of its owner: leave them 0", call,
                      (int)known.priority, (int)known.blocking);
  RONDO_TRY(rondo_capture_refuse_adoption(device, native));
  const rondo_queue_options adopted = {.adopts = true, .native = native};
  return rondo_fail_context(make_stream(device, known.name, &adopted, out_stream), "%s", call);
}

rondo_status rondo_stream_tie_make(rondo_stream *stream, rondo_stream_tie **out) {
  if (stream->tie == NULL) {
    rondo_stream_tie *tie;
    RONDO_TRY(rondo_allocate_items(&stream->device->allocator, 1, sizeof *tie, &tie));
    tie->allocator = stream->device->allocator;
    tie->stream = stream;
    atomic_init(&tie->references, 1);
    stream->tie = tie;
  }
  atomic_fetch_add_explicit(&stream->tie->references, 1, memory_order_relaxed);
  *out = stream->tie;
  return RONDO_OK;
}

void rondo_stream_tie_release(rondo_stream_tie *tie) {
  if (tie == NULL || atomic_fetch_sub_explicit(&tie->references, 1, memory_order_acq_rel) != 1) return;
  const rondo_allocator allocator = tie->allocator;
  rondo_release(&allocator, tie, 1, sizeof *tie);
}

static void cut_tie(rondo_stream *stream) {
  if (stream->tie == NULL) return;
  assert(stream->tie->stream == stream);
  stream->tie->stream = NULL;
  rondo_stream_tie_release(stream->tie);
}

static rondo_status refuse_used(const rondo_stream *stream) {
  if (stream->holds > 0)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE,
                      "rondo_stream_destroy: a function of a tree is being called on %s: destroy the stream after that "
                      "call has returned",
                      stream->label);
  if (stream->lends > 0)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE,
                      "rondo_stream_destroy: a compiled program or a session runs on %s: destroy that first "
                      "(rondo_compiled_destroy, rondo_session_destroy)",
                      stream->label);
  return RONDO_OK;
}

rondo_status rondo_stream_destroy(rondo_stream *stream) {
  if (stream == NULL || stream->device->is_inherited) return RONDO_OK;
  RONDO_TRY(rondo_refuse_in_callback("rondo_stream_destroy"));
  RONDO_TRY(refuse_used(stream));
  if (rondo_stream_find_capture(stream) != NULL) {
    RONDO_TRY(rondo_fail_context(rondo_stream_require_thread(stream),
                                 "rondo_stream_destroy: %s captures: end the capture on its thread first",
                                 stream->label));
    rondo_capture_forget_stream(stream);
  }
  assert(rondo_stream_capture(stream) == NULL);
  rondo_device *device = stream->device;
  const rondo_status status = stream->queue->ops->destroy(stream->queue);
  rondo_pools_forget_stream(device, &stream->order);
  rondo_heap_release(stream->heap);
  cut_tie(stream);
  rondo_array_free(&device->allocator, &stream->frontier);
  rondo_release_text(&device->allocator, stream->name);
  rondo_release(&device->allocator, stream, 1, sizeof *stream);
  rondo_device_end_use(device, &stream_use);
  return status;
}

rondo_device *rondo_stream_device(const rondo_stream *stream) { return stream == NULL ? NULL : stream->device; }

void *rondo_stream_native(rondo_stream *stream) {
  if (stream == NULL || stream->queue->ops->native == NULL) return NULL;
  return stream->queue->ops->native(stream->queue);
}

rondo_status rondo_stream_heap(rondo_stream *stream, rondo_heap **out) {
  if (stream->heap == NULL) {
    rondo_device_memory *memory;
    RONDO_TRY(rondo_device_memory_of(stream->device, &memory));
    RONDO_TRY(rondo_heap_acquire(memory, RONDO_HEAP_STREAM, &stream->heap));
  }
  *out = stream->heap;
  return RONDO_OK;
}

/* Work ------------------------------------------------------------------------------------------------------------ */

rondo_status rondo_stream_settle(rondo_stream *stream, const char *call) {
  const rondo_status status = stream->queue->ops->synchronize(stream->queue);
  rondo_pools_stream_waited(stream->device, &stream->order, true);
  return status == RONDO_OK ? RONDO_OK : rondo_fail_context(status, "%s (synchronous, see RONDO_SYNC)", call);
}

/* Enqueues checked work, with its defaults filled in. */
static inline rondo_status submit(rondo_stream *stream, const char *call, const rondo_node_params *work) {
  assert(work->name != NULL && rondo_stream_capture(stream) == NULL);
  rondo_thread_count_work();
  RONDO_TRY(stream->queue->ops->submit(stream->queue, work));
  return __builtin_expect(stream->synchronous, 0) ? rondo_stream_settle(stream, call) : RONDO_OK;
}

static rondo_status enqueue_or_capture(rondo_stream *stream, const char *call, rondo_node_params *work) {
  RONDO_TRY(rondo_check_call(call, "the stream", stream));
  if (rondo_launch_values_are_noted()) rondo_launch_values_note(work);
  if (rondo_stream_find_capture(stream) != NULL) return rondo_capture_add(stream, call, work);
  RONDO_TRY(rondo_capture_refuse_stray(stream, call));
  RONDO_TRY(rondo_work_check_now(call, stream->device, work));
  rondo_node_params_resolve(work);
  if (work->name == NULL) work->name = work->kind == RONDO_NODE_KERNEL ? work->as.kernel.kernel->name : "";
  return submit(stream, call, work);
}

/* Whether rondo_check_call and rondo_node_params_check would accept the launch, and its values are not noted. */
static inline bool is_launchable(const rondo_stream *stream, const rondo_kernel_node *work) {
  if (stream == NULL || work->kernel == NULL || rondo_in_callback() || rondo_launch_values_are_noted()) return false;
  if (work->kernel->device != stream->device || work->arg_count != work->kernel->parameter_count) return false;
  if (work->arg_count > 0 && work->args == NULL) return false;
  for (size_t i = 0; i < work->arg_count; i++)
    if (work->args[i] == NULL) return false;
  const rondo_grid grid = work->grid;
  const uint64_t rows = (uint64_t)(grid.y == 0 ? 1 : grid.y) * (grid.z == 0 ? 1 : grid.z);
  return grid.x > 0 && rows <= (UINT64_C(1) << 40) / grid.x;
}

rondo_status rondo_launch(rondo_stream *stream, rondo_kernel *kernel, rondo_grid grid, const void *const *args,
                          size_t arg_count) {
  rondo_node_params work;
  work.kind = RONDO_NODE_KERNEL;
  work.name = NULL;
  work.device = NULL;
  work.as.kernel = (rondo_kernel_node){.kernel = kernel, .grid = grid, .args = args, .arg_count = arg_count};
  const bool is_plain = is_launchable(stream, &work.as.kernel) && rondo_stream_runs_at_once(stream);
  if (__builtin_expect(!is_plain, 0)) return enqueue_or_capture(stream, "rondo_launch", &work);
  if (work.as.kernel.grid.y == 0) work.as.kernel.grid.y = 1;
  if (work.as.kernel.grid.z == 0) work.as.kernel.grid.z = 1;
  work.name = kernel->name;
  RONDO_TRY(rondo_work_check_runs("rondo_launch", stream->device, &work, NULL));
  return submit(stream, "rondo_launch", &work);
}

rondo_status rondo_launch_with(rondo_stream *stream, rondo_kernel *kernel, rondo_grid grid, const void *const *args,
                               size_t arg_count, const rondo_launch_options *options) {
  const char *const call = "rondo_launch_with";
  RONDO_TRY(rondo_check_call(call, "the stream", stream));
  rondo_launch_options known;
  RONDO_TRY(RONDO_VERSIONED_READ("rondo_launch_options", options, &known));
  const rondo_kernel_node node = {.kernel = kernel,
                                  .grid = grid,
                                  .args = args,
                                  .arg_count = arg_count,
                                  .arg_bytes = known.arg_bytes,
                                  .config = known.config};
  rondo_node_params work = {.kind = RONDO_NODE_KERNEL, .name = known.name, .as.kernel = node};
  return enqueue_or_capture(stream, call, &work);
}

rondo_status rondo_copy_async(rondo_stream *stream, void *dst, const void *src, size_t bytes) {
  rondo_node_params work = {.kind = RONDO_NODE_COPY, .as.copy = {.dst = dst, .src = src, .width = bytes}};
  return enqueue_or_capture(stream, "rondo_copy_async", &work);
}

rondo_status rondo_stream_copy(rondo_stream *stream, void *dst, const void *src, size_t bytes) {
  rondo_node_params work = {.kind = RONDO_NODE_COPY,
                            .name = "",
                            .as.copy = {.dst = dst,
                                        .src = src,
                                        .width = bytes,
                                        .height = 1,
                                        .depth = 1,
                                        .dst_pitch = bytes,
                                        .src_pitch = bytes,
                                        .dst_slice_pitch = bytes,
                                        .src_slice_pitch = bytes}};
  return submit(stream, "rondo_copy_async", &work);
}

rondo_status rondo_copy_box_async(rondo_stream *stream, const rondo_copy *copy) {
  if (copy == NULL) return rondo_refuse_null("rondo_copy_box_async", "copy");
  rondo_node_params work = {.kind = RONDO_NODE_COPY, .as.copy = *copy};
  return enqueue_or_capture(stream, "rondo_copy_box_async", &work);
}

rondo_status rondo_fill_async(rondo_stream *stream, const rondo_fill *fill) {
  if (fill == NULL) return rondo_refuse_null("rondo_fill_async", "fill");
  rondo_node_params work = {.kind = RONDO_NODE_FILL, .as.fill = *fill};
  return enqueue_or_capture(stream, "rondo_fill_async", &work);
}

rondo_status rondo_host_async(rondo_stream *stream, rondo_host_function function, void *user) {
  rondo_node_params work = {.kind = RONDO_NODE_HOST, .as.host = {.function = function, .user = user}};
  return enqueue_or_capture(stream, "rondo_host_async", &work);
}

rondo_status rondo_memory_operations_async(rondo_stream *stream, const rondo_memory_operation *operations,
                                           size_t count) {
  rondo_node_params work = {.kind = RONDO_NODE_MEMORY_OPERATIONS,
                            .as.memory_operations = {.operations = operations, .count = count}};
  return enqueue_or_capture(stream, "rondo_memory_operations_async", &work);
}

static rondo_status enqueue_semaphores(rondo_stream *stream, const char *call, rondo_node_kind kind,
                                       const rondo_semaphore_value *values, size_t count) {
  rondo_node_params work = {.kind = kind, .as.semaphores = {.values = values, .count = count}};
  return enqueue_or_capture(stream, call, &work);
}

rondo_status rondo_semaphore_signal_async(rondo_stream *stream, const rondo_semaphore_value *values, size_t count) {
  return enqueue_semaphores(stream, "rondo_semaphore_signal_async", RONDO_NODE_SEMAPHORE_SIGNAL, values, count);
}

rondo_status rondo_semaphore_wait_async(rondo_stream *stream, const rondo_semaphore_value *values, size_t count) {
  return enqueue_semaphores(stream, "rondo_semaphore_wait_async", RONDO_NODE_SEMAPHORE_WAIT, values, count);
}

/* Waiting --------------------------------------------------------------------------------------------------------- */

/* The checks of a call that queries a stream's state: its own capture forbids it, then other captures. */
static rondo_status check_query(rondo_stream *stream, const char *call) {
  RONDO_TRY(rondo_check_call(call, "the stream", stream));
  if (rondo_stream_find_capture(stream) != NULL) return rondo_capture_refuse_stream(stream, call);
  return rondo_capture_refuse_unsafe(call);
}

static rondo_status wait_for(rondo_stream *stream) {
  rondo_trace_here(RONDO_TRACE_BEGIN, "exec", "rondo_stream_synchronize");
  const rondo_status status = stream->queue->ops->synchronize(stream->queue);
  rondo_trace_here(RONDO_TRACE_END, "exec", "rondo_stream_synchronize");
  rondo_pools_stream_waited(stream->device, &stream->order, true);
  rondo_retired_objects_look(stream->device, status == RONDO_OK ? stream->queue->number : RONDO_QUEUE_NONE);
  return status;
}

rondo_status rondo_stream_synchronize(rondo_stream *stream) {
  RONDO_TRY(check_query(stream, "rondo_stream_synchronize"));
  return wait_for(stream);
}

rondo_status rondo_stream_drain(rondo_stream *stream, const char *call) {
  if (rondo_stream_find_capture(stream) != NULL) return rondo_capture_refuse_stream(stream, call);
  return wait_for(stream);
}

rondo_status rondo_stream_await(rondo_stream *stream, const char *call) {
  if (rondo_stream_find_capture(stream) != NULL) return rondo_capture_refuse_stream(stream, call);
  const rondo_status status = stream->queue->ops->await(stream->queue);
  rondo_pools_stream_waited(stream->device, &stream->order, true);
  return status;
}

rondo_status rondo_stream_query(rondo_stream *stream) {
  RONDO_TRY(check_query(stream, "rondo_stream_query"));
  const rondo_status status = stream->queue->ops->query(stream->queue);
  if (status == RONDO_OK) rondo_pools_stream_waited(stream->device, &stream->order, false);
  return status;
}

rondo_status rondo_device_synchronize(rondo_device *device) {
  const char *const call = "rondo_device_synchronize";
  RONDO_TRY(rondo_check_call(call, "the device", device));
  RONDO_TRY(rondo_capture_refuse_device(device, call));
  RONDO_TRY(rondo_capture_refuse_unsafe(call));
  rondo_trace_here(RONDO_TRACE_BEGIN, "exec", call);
  rondo_clock *before = rondo_pools_before_waiting(device);
  rondo_launched_objects *retired = rondo_retired_objects_take(device);
  const rondo_status status = device->ops->synchronize(device);
  rondo_pools_device_waited(device, before);
  rondo_retired_objects_end(device, retired, status == RONDO_OK);
  rondo_trace_here(RONDO_TRACE_END, "exec", call);
  return status;
}
