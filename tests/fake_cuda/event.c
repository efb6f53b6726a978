/* SPDX-License-Identifier: MIT
 * Events of the fake driver. An event refers to the marker of its last record. Nodes of graphs retain the event's
 * struct, so that the use of a destroyed event is detected.
 */
#include <stdlib.h>

#include "fake_cuda/fake.h"

fake_event *fake_event_need(cu_event handle) { return fake_need(FAKE_CUDA_EVENT, fake_handle(handle)); }

void fake_event_release(fake_event *event) {
  if (--event->references > 0) return;
  fake_marker_release(event->marker);
  fake_frontier_clear(&event->frontier);
  free(event);
}

void fake_event_end(fake_event *event) {
  fake_object_remove(&event->object);
  fake_event_release(event);
}

cu_result fake_event_create(cu_event *out, unsigned flags) {
  cu_result code = fake_begin(CALL_event_create, FAKE_IN_CONTEXT);
  const unsigned known = CU_EVENT_FLAG_BLOCKING_SYNC | CU_EVENT_FLAG_DISABLE_TIMING;
  if (code == CU_OK && (out == NULL || (flags & ~known) != 0)) code = CU_INVALID_VALUE;
  if (code == CU_OK) {
    fake_event *event = fake_allocate(1, sizeof *event);
    event->references = 1;
    event->has_timing = (flags & CU_EVENT_FLAG_DISABLE_TIMING) == 0;
    fake_object_add(&event->object, FAKE_CUDA_EVENT, fake_self.current);
    *out = fake_as(cu_event, event);
  }
  return fake_end(code);
}

cu_result fake_event_destroy(cu_event handle) {
  cu_result code = fake_begin(CALL_event_destroy, FAKE_IN_CONTEXT | FAKE_ALL_THE_SAME);
  fake_event *event = code == CU_OK ? fake_event_need(handle) : NULL;
  if (code == CU_OK && event == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK) code = event->object.context->lost;
  if (event != NULL) fake_event_end(event);
  return fake_end(code);
}

static cu_result record_now(fake_event *event, fake_stream *stream) {
  cu_result code = fake_gate_legacy(stream);
  if (code != CU_OK) return code;
  fake_marker_release(event->marker);
  event->marker = fake_marker_new();
  event->capture = 0;
  fake_frontier_clear(&event->frontier);
  return fake_stream_submit(stream, (fake_task){.reach = fake_marker_retain(event->marker)});
}

static cu_result record_external(cu_event handle, fake_stream *stream) {
  fake_work *work;
  if (stream->capture == NULL) return CU_INVALID_VALUE;
  const cu_result code = fake_work_event(handle, CU_NODE_EVENT_RECORD, &work);
  return code == CU_OK ? fake_capture_work(stream, work, CU_NODE_EVENT_RECORD) : code;
}

static cu_result record(cu_event handle, cu_stream stream_handle, unsigned flags) {
  fake_event *event = fake_event_need(handle);
  fake_stream *stream = event != NULL ? fake_stream_need(stream_handle) : NULL;
  if (stream == NULL) return CU_INVALID_HANDLE;
  if (flags > CU_RECORD_EXTERNAL) return CU_INVALID_VALUE;
  if (event->object.context != stream->object.context)
    return fake_violation(CU_INVALID_HANDLE, "event recorded on a stream of another context");
  if (flags == CU_RECORD_EXTERNAL) return record_external(handle, stream);
  return stream->capture != NULL ? fake_capture_record(stream, event) : record_now(event, stream);
}

cu_result fake_event_record(cu_event event, cu_stream stream) {
  cu_result code = fake_begin(CALL_event_record, FAKE_ANYWHERE);
  if (code == CU_OK) code = record(event, stream, 0);
  return fake_end(code);
}

cu_result fake_event_record_with_flags(cu_event event, cu_stream stream, unsigned flags) {
  cu_result code = fake_begin(CALL_event_record_with_flags, FAKE_IN_CONTEXT);
  if (code == CU_OK) code = record(event, stream, flags);
  return fake_end(code);
}

cu_result fake_event_query(cu_event handle) {
  cu_result code = fake_begin(CALL_event_query, FAKE_ANYWHERE);
  const fake_event *event = code == CU_OK ? fake_event_need(handle) : NULL;
  if (code == CU_OK && event == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK) code = fake_gate_event(event);
  if (code == CU_OK) code = event->object.context->lost;
  if (code == CU_OK && !fake_marker_is_reached(event->marker)) code = CU_NOT_READY;
  return fake_end(code);
}

cu_result fake_event_synchronize(cu_event handle) {
  cu_result code = fake_begin(CALL_event_synchronize, FAKE_IN_CONTEXT | FAKE_ALL_THE_SAME);
  const fake_event *event = code == CU_OK ? fake_event_need(handle) : NULL;
  if (code == CU_OK && event == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK) code = fake_gate_event(event);
  if (code == CU_OK) {
    const fake_context *context = event->object.context;
    fake_marker *marker = fake_marker_retain(event->marker);
    fake_marker_want(marker);
    while (!fake_marker_is_reached(marker)) fake_wait();
    fake_marker_release(marker);
    code = context->lost;
  }
  return fake_end(code);
}

static cu_result elapsed(float *milliseconds, const fake_event *begin, const fake_event *end) {
  if (!begin->has_timing || !end->has_timing || begin->object.context != end->object.context) return CU_INVALID_HANDLE;
  if (begin->capture != 0 || end->capture != 0) return CU_CAPTURED_EVENT;
  if (begin->marker == NULL || end->marker == NULL) return CU_INVALID_HANDLE;
  if (!begin->marker->is_reached || !end->marker->is_reached) return CU_NOT_READY;
  *milliseconds = (float)((double)(int64_t)(end->marker->time_ns - begin->marker->time_ns) / 1e6);
  return CU_OK;
}

cu_result fake_event_elapsed_time(float *milliseconds, cu_event begin_handle, cu_event end_handle) {
  cu_result code = fake_begin(CALL_event_elapsed_time, FAKE_IN_CONTEXT);
  const fake_event *begin = code == CU_OK ? fake_event_need(begin_handle) : NULL;
  const fake_event *end = begin != NULL ? fake_event_need(end_handle) : NULL;
  if (code == CU_OK && end == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK && milliseconds == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK) code = elapsed(milliseconds, begin, end);
  return fake_end(code);
}
