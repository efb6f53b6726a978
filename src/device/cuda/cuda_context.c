/* SPDX-License-Identifier: MIT
 * Making the device's context current for a while, and turning the driver's codes into statuses. A scope is entered and
 * left by one thread. Threads: any.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_executable.h"
#include "device/cuda/cuda_queue.h"

/* What the driver's codes mean (CUDA driver API, CUresult). After a code of DEVICE_LOST, nothing works in the context
 * any more. All other codes are EXECUTION_FAILED. */
static const struct meaning {
  cu_result code;
  rondo_status status;
  rondo_reason reason;
} meanings[] = {
    {CU_OUT_OF_MEMORY, RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED},
    {CU_INVALID_IMAGE, RONDO_INVALID_DATA, RONDO_REASON_MALFORMED},
    {CU_NO_BINARY_FOR_GPU, RONDO_INVALID_DATA, RONDO_REASON_MALFORMED},
    {CU_INVALID_PTX, RONDO_INVALID_DATA, RONDO_REASON_MALFORMED},
    {CU_UNSUPPORTED_PTX_VERSION, RONDO_INVALID_DATA, RONDO_REASON_MALFORMED},
    {CU_NOT_FOUND, RONDO_INVALID_DATA, RONDO_REASON_NO_FUNCTION},
    {CU_LAUNCH_OUT_OF_RESOURCES, RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE},
    {CU_NOT_SUPPORTED, RONDO_UNSUPPORTED, RONDO_REASON_NOT_SUPPORTED},
    {CU_CALL_REQUIRES_NEWER_DRIVER, RONDO_UNSUPPORTED, RONDO_REASON_NO_DRIVER},
    {CU_STREAM_CAPTURE_UNSUPPORTED, RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL},
    {CU_STREAM_CAPTURE_IMPLICIT, RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL},
    {CU_STREAM_CAPTURE_INVALIDATED, RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED},
    {CU_STREAM_CAPTURE_MERGE, RONDO_CAPTURE_REFUSED, RONDO_REASON_MERGE},
    {CU_STREAM_CAPTURE_UNMATCHED, RONDO_CAPTURE_REFUSED, RONDO_REASON_UNMATCHED_STREAM},
    {CU_STREAM_CAPTURE_UNJOINED, RONDO_CAPTURE_REFUSED, RONDO_REASON_UNJOINED},
    {CU_STREAM_CAPTURE_ISOLATION, RONDO_CAPTURE_REFUSED, RONDO_REASON_ISOLATION},
    {CU_CAPTURED_EVENT, RONDO_CAPTURE_REFUSED, RONDO_REASON_CAPTURED_EVENT},
    {CU_STREAM_CAPTURE_WRONG_THREAD, RONDO_CAPTURE_REFUSED, RONDO_REASON_WRONG_THREAD},
    {CU_GRAPH_EXEC_UPDATE_FAILURE, RONDO_UPDATE_REFUSED, RONDO_REASON_NOT_UPDATABLE},
    {CU_ECC_UNCORRECTABLE, RONDO_DEVICE_LOST, RONDO_REASON_NONE},
    {CU_NVLINK_UNCORRECTABLE, RONDO_DEVICE_LOST, RONDO_REASON_NONE},
    {CU_CONTAINED, RONDO_DEVICE_LOST, RONDO_REASON_NONE},
    {CU_ILLEGAL_ADDRESS, RONDO_DEVICE_LOST, RONDO_REASON_NONE},
    {CU_LAUNCH_TIMEOUT, RONDO_DEVICE_LOST, RONDO_REASON_NONE},
    {CU_CONTEXT_IS_DESTROYED, RONDO_DEVICE_LOST, RONDO_REASON_NONE},
    {CU_ASSERT, RONDO_DEVICE_LOST, RONDO_REASON_NONE},
    {CU_HARDWARE_STACK_ERROR, RONDO_DEVICE_LOST, RONDO_REASON_NONE},
    {CU_ILLEGAL_INSTRUCTION, RONDO_DEVICE_LOST, RONDO_REASON_NONE},
    {CU_MISALIGNED_ADDRESS, RONDO_DEVICE_LOST, RONDO_REASON_NONE},
    {CU_INVALID_ADDRESS_SPACE, RONDO_DEVICE_LOST, RONDO_REASON_NONE},
    {CU_INVALID_PC, RONDO_DEVICE_LOST, RONDO_REASON_NONE},
    {CU_LAUNCH_FAILED, RONDO_DEVICE_LOST, RONDO_REASON_NONE},
    {CU_TENSOR_MEMORY_LEAK, RONDO_DEVICE_LOST, RONDO_REASON_NONE},
};

static struct meaning meaning_of(cu_result code) {
  for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
    if (meanings[i].code == code) return meanings[i];
  return (struct meaning){code, RONDO_EXECUTION_FAILED, RONDO_REASON_NONE};
}

rondo_status cuda_fail_lost(const cuda_device *device, const char *what) {
  const cu_result code = atomic_load_explicit(&device->lost, memory_order_acquire);
  return rondo_fail_driver(RONDO_DEVICE_LOST, RONDO_REASON_NONE, (int32_t)code, cuda_code_name(device->api, code),
                           "%s: device '%s' is lost, because work on it failed%s: close it; to find the node, set "
                           "rondo_device_options.synchronous",
                           what, device->base.name, device->suspects);
}

static void note_lost(cuda_device *device, cu_result code) {
  pthread_mutex_lock(&device->lock);
  if (!cuda_is_lost(device)) {
    cuda_queues_name_launched(device, device->suspects, sizeof device->suspects);
    atomic_store_explicit(&device->lost, code, memory_order_release);
  }
  pthread_mutex_unlock(&device->lock);
}

/* Rondo knows its own captures before the driver refuses a call, so the capture is one of other code. */
static const char *advice_of(cu_result code, rondo_status status) {
  switch (code) {
    case CU_OUT_OF_MEMORY:
      return ": give memory back (rondo_memory_trim, rondo_host_free), or see what else uses the device";
    case CU_STREAM_CAPTURE_IMPLICIT:
      return ": it is work on the legacy default stream while a stream that synchronises with it captures: use another "
             "stream, or compile with per-thread default streams (nvcc --default-stream per-thread)";
    case CU_STREAM_CAPTURE_UNSUPPORTED:
      return ": a capture that other code began forbids it, and is invalid now: do it before or after that, or capture "
             "with rondo_capture_begin";
    case CU_STREAM_CAPTURE_INVALIDATED:
      return ": the capture is invalid: end it where it began, and begin again";
    case CU_CAPTURED_EVENT:
      return ": it was last recorded in a capture that other code began: record it again after that";
    default:
      return status == RONDO_EXECUTION_FAILED ? ": the driver refused it" : "";
  }
}

static rondo_status check(cuda_device *device, cu_result code, const char *what) {
  const struct meaning meaning = meaning_of(code);
  assert(code != CU_OK && code != CU_NOT_READY);
  if (meaning.status == RONDO_DEVICE_LOST) {
    note_lost(device, code);
    return cuda_fail_lost(device, what);
  }
  return rondo_fail_driver(meaning.status, meaning.reason, (int32_t)code, cuda_code_name(device->api, code), "%s%s",
                           what, advice_of(code, meaning.status));
}

rondo_status cuda_check(cuda_device *device, cu_result code, const char *format, ...) {
  if (code == CU_OK) return RONDO_OK;
  if (code == CU_NOT_READY) return RONDO_NOT_READY;
  char what[RONDO_ERROR_MESSAGE_BYTES / 2];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  return check(device, code, what);
}

rondo_status cuda_check_node(cuda_device *device, cu_result code, const cuda_node *node, const char *doing,
                             const char *graph) {
  if (code == CU_OK) return RONDO_OK;
  char label[RONDO_LABEL_BYTES], what[RONDO_ERROR_MESSAGE_BYTES / 2];
  rondo_saved_error error;
  (void)snprintf(what, sizeof what, "%s%s%s%s", doing, cuda_node_label(label, node), graph == NULL ? "" : " of ",
                 graph == NULL ? "" : graph);
  const rondo_status status = check(device, code, what);
  rondo_error_save(&error);
  error.node = node->where.number;
  rondo_error_restore(&error);
  return status;
}

static cu_result make_current(const cuda_device *device, cuda_scope *out) {
  const cu_result code = device->api->context_get_current(&out->before);
  if (code != CU_OK || out->before == device->context) return code;
  return device->api->context_set_current(device->context);
}

rondo_status cuda_enter_for_work(cuda_device *device, cuda_scope *out) {
  RONDO_TRY(cuda_require(device));
  *out = (cuda_scope){.device = device};
  const cu_result code = make_current(device, out);
  if (__builtin_expect(code == CU_OK, 1)) return RONDO_OK;
  out->device = NULL;
  return cuda_check(device, code, "making the context of device '%s' current", device->base.name);
}

/* Keeps the mode from before in the scope. Cannot fail, because the mode exists. */
static void exchange_mode(cuda_scope *scope) { (void)scope->device->api->capture_exchange_mode(&scope->mode); }

void cuda_relax(cuda_scope *scope) {
  scope->has_mode = true;
  scope->mode = CU_CAPTURE_MODE_RELAXED;
  exchange_mode(scope);
}

rondo_status cuda_enter(cuda_device *device, cuda_scope *out) {
  RONDO_TRY(cuda_enter_for_work(device, out));
  cuda_relax(out);
  return RONDO_OK;
}

/* If the driver does not say what is current, the context stays so: the caller may be inside another scope. */
void cuda_enter_to_free(cuda_device *device, cuda_scope *out) {
  *out = (cuda_scope){.device = device, .before = device->context, .has_mode = true, .mode = CU_CAPTURE_MODE_RELAXED};
  if (make_current(device, out) != CU_OK && device->api->context_set_current(device->context) != CU_OK)
    out->before = device->context; /* nothing to restore */
  exchange_mode(out);
}

static rondo_status enter_for_library(cuda_device *device, rondo_library_use use, cuda_scope *out) {
  if (use == RONDO_LIBRARY_WORK) return cuda_enter_for_work(device, out);
  if (use == RONDO_LIBRARY_AT_ONCE) return cuda_enter(device, out);
  cuda_enter_to_free(device, out);
  return RONDO_OK;
}

rondo_status cuda_call_library(rondo_device *base, rondo_library_use use, rondo_library_call call, void *user) {
  CUDA_SCOPE(scope);
  RONDO_TRY(enter_for_library(cuda_device_of(base), use, &scope));
  return call(user);
}

void cuda_leave(cuda_scope *scope) {
  cuda_device *device = scope->device;
  if (device == NULL) return;
  scope->device = NULL;
  if (scope->has_mode) (void)device->api->capture_exchange_mode(&scope->mode);
  if (scope->before == device->context) return;
  /* The caller's context was current before. If it cannot be made current, there is no way to report that. */
  (void)device->api->context_set_current(scope->before);
}
