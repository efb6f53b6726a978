/* SPDX-License-Identifier: MIT
 * Adopting streams. A stream that the program created is used like Rondo's own. The default streams are not objects of
 * the driver: their handles mean the stream of the current context, or of the calling thread in it. So their queues
 * have functions that first make the device's context current and check the thread, and then call the device's table.
 * Threads: as driver.h says.
 */
#include "device/cuda/cuda_adopt.h"

#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_queue.h"

rondo_status cuda_queue_refuse_thread(const cuda_queue *queue) {
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_WRONG_THREAD,
                    "%s is the default stream of the thread that adopted it, and the same handle is another stream on "
                    "this thread: adopt CU_STREAM_PER_THREAD on each thread, or use a stream that was created",
                    queue->label);
}

/* Default streams -------------------------------------------------------------------------------------------------- */

static rondo_status enter(const rondo_queue *base, cuda_scope *scope) {
  if (base->device->is_inherited) return RONDO_OK; /* the table refuses */
  RONDO_TRY(cuda_queue_require_thread((const cuda_queue *)base));
  return cuda_enter_for_work(cuda_device_of(base->device), scope);
}

/* Functions of the table, one in each row. */
/* clang-format off */
#define IN_CONTEXT(slot, parameters, ...)                      \
  static rondo_status slot##_in_context parameters {           \
    CUDA_SCOPE(scope);                                         \
    RONDO_TRY(enter(queue, &scope));                           \
    return queue->device->tables.queue.slot(__VA_ARGS__);      \
  }
IN_CONTEXT(submit, (rondo_queue *queue, const rondo_node_params *work), queue, work)
IN_CONTEXT(record, (rondo_queue *queue, rondo_device_event *event), queue, event)
IN_CONTEXT(wait, (rondo_queue *queue, rondo_device_event *event), queue, event)
IN_CONTEXT(launch, (rondo_queue *queue, rondo_executable *executable), queue, executable)
IN_CONTEXT(launch_patched, (rondo_queue *queue, rondo_executable *executable, const rondo_patch_change *changes,
                            size_t count), queue, executable, changes, count)
IN_CONTEXT(upload, (rondo_queue *queue, rondo_executable *executable), queue, executable)
IN_CONTEXT(synchronize, (rondo_queue *queue), queue)
IN_CONTEXT(await, (rondo_queue *queue), queue)
IN_CONTEXT(query, (rondo_queue *queue), queue)
/* clang-format on */

static rondo_status destroy_any(rondo_queue *queue) { return queue->device->tables.queue.destroy(queue); }
static void *native_of(rondo_queue *queue) { return queue->device->tables.queue.native(queue); }
static rondo_status require_thread(const rondo_queue *queue) {
  return cuda_queue_require_thread((const cuda_queue *)queue);
}

static const rondo_queue_ops default_stream_ops = {
    .destroy = destroy_any,
    .submit = submit_in_context,
    .record = record_in_context,
    .wait = wait_in_context,
    .launch = launch_in_context,
    .launch_patched = launch_patched_in_context,
    .upload = upload_in_context,
    .synchronize = synchronize_in_context,
    .await = await_in_context,
    .query = query_in_context,
    .native = native_of,
    .require_thread = require_thread,
};

/* Adopting --------------------------------------------------------------------------------------------------------- */

/* What the driver says about a stream that was destroyed. Some of these codes mean a lost context elsewhere. */
static rondo_status check(const cuda_queue *queue, cu_result code) {
  cuda_device *device = cuda_device_of(queue->base.device);
  if (code != CU_INVALID_HANDLE && code != CU_INVALID_VALUE && code != CU_INVALID_CONTEXT &&
      code != CU_CONTEXT_IS_DESTROYED)
    return cuda_check(device, code, "adopting %p as %s of device '%s'", (void *)queue->stream, queue->label,
                      device->base.name);
  return rondo_fail_driver(RONDO_INVALID_ARGUMENT, RONDO_REASON_STREAM_GONE, (int32_t)code,
                           cuda_code_name(device->api, code),
                           "adopting %p as %s of device '%s': the driver knows no such stream: adopt a stream before "
                           "it is destroyed",
                           (void *)queue->stream, queue->label, device->base.name);
}

static rondo_status check_context(const cuda_queue *queue) {
  const cuda_device *device = cuda_device_of(queue->base.device);
  cu_context context = NULL;
  RONDO_TRY(check(queue, device->api->stream_get_context(queue->stream, &context)));
  if (context == device->context) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE,
                    "adopting %p as %s: it is a stream of context %p, and device '%s' works in the primary context of "
                    "its GPU, %p: open the device of that GPU, or create the stream in this context",
                    (void *)queue->stream, queue->label, (void *)context, device->base.name, (void *)device->context);
}

static rondo_status check_capture(const cuda_queue *queue) {
  const cuda_device *device = cuda_device_of(queue->base.device);
  cu_capture_status state = CU_CAPTURE_STATUS_NONE;
  RONDO_TRY(check(queue, device->api->capture_info(queue->stream, &state, NULL, NULL, NULL, NULL, NULL)));
  if (state == CU_CAPTURE_STATUS_NONE) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURING,
                    "adopting %p as %s: the stream is part of a capture: adopt it before, or after the capture has "
                    "ended",
                    (void *)queue->stream, queue->label);
}

static rondo_status adopt_created(cuda_queue *queue) {
  const cuda_api *api = cuda_device_of(queue->base.device)->api;
  unsigned flags = 0;
  RONDO_TRY(check_context(queue));
  RONDO_TRY(check_capture(queue));
  RONDO_TRY(check(queue, api->stream_get_flags(queue->stream, &flags)));
  queue->base.is_blocking = (flags & CU_STREAM_FLAG_NON_BLOCKING) == 0;
  return RONDO_OK;
}

/* The driver is asked nothing about the legacy stream: captures of others forbid that. */
rondo_status cuda_adopt(cuda_queue *queue, void *native) {
  const uintptr_t handle = (uintptr_t)native;
  queue->stream = native;
  queue->is_adopted = true;
  if (handle != 0 && handle != CU_LEGACY_STREAM && handle != CU_THREAD_STREAM) return adopt_created(queue);
  queue->base.ops = &default_stream_ops;
  queue->base.is_blocking = true;
  queue->is_legacy = handle != CU_THREAD_STREAM;
  if (queue->is_legacy) return RONDO_OK;
  queue->thread = rondo_thread_id();
  return check_capture(queue);
}
