/* SPDX-License-Identifier: MIT
 * Streams of the fake driver. Each has a thread, which runs tasks in the order in which they were enqueued. Destroying
 * a stream lets it finish them. On a lost or released context work is skipped, but markers are reached, so that nobody
 * waits forever. The legacy stream of a context waits for the work that is enqueued on the blocking streams, and they
 * for its work. The default stream of a thread is a blocking stream that the thread's first use starts.
 */
#include <stdlib.h>
#include <time.h>

#include "fake_cuda/fake.h"

static fake_stream *streams;

fake_marker *fake_marker_new(void) {
  fake_marker *marker = fake_allocate(1, sizeof *marker);
  marker->references = 1;
  return marker;
}

fake_marker *fake_marker_retain(fake_marker *marker) {
  if (marker != NULL) marker->references++;
  return marker;
}

void fake_marker_release(fake_marker *marker) {
  if (marker != NULL && --marker->references == 0) free(marker);
}

void fake_marker_reach(fake_marker *marker) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  if (marker == NULL || marker->is_reached) return;
  marker->time_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
  marker->is_reached = true;
  fake_signal();
}

bool fake_marker_is_reached(const fake_marker *marker) { return marker == NULL || marker->is_reached; }

/* Markers of a program's nodes are reached even when the program was left out. */
static void finish_program(fake_task *task) {
  for (size_t i = 0; i < task->program->count; i++) {
    if (task->program->types[i] == CU_NODE_EVENT_RECORD) fake_marker_reach(task->program_markers[i]);
    fake_marker_release(task->program_markers[i]);
  }
  free(task->program_markers);
  fake_program_release(task->program);
}

static void run_operations(const fake_context *context, const fake_work *work) {
  size_t done = 0;
  bool (*const run)(const fake_work *work, size_t *inout_done) =
      work->type == CU_NODE_BATCH_MEMORY_OPERATION ? fake_operations_run : fake_semaphores_run;
  while (fake_context_works(context) && !run(work, &done)) fake_wait_short();
}

static bool may_wait(const fake_work *work) {
  return work->type == CU_NODE_BATCH_MEMORY_OPERATION || work->type == CU_NODE_SEMAPHORE_SIGNAL ||
         work->type == CU_NODE_SEMAPHORE_WAIT;
}

static void run_task(const fake_stream *stream, fake_task *task) {
  fake_context *context = stream->object.context;
  fake_marker_want(task->wait);
  while (!fake_marker_is_reached(task->wait)) fake_wait();
  if (task->work != NULL && may_wait(task->work))
    run_operations(context, task->work);
  else if (task->work != NULL && fake_context_works(context))
    fake_work_run(task->work, context);
  if (task->program != NULL && fake_context_works(context))
    fake_program_run(task->program, context, task->program_markers);
  if (task->program != NULL) finish_program(task);
  fake_marker_reach(task->reach);
  fake_marker_release(task->wait);
  fake_marker_release(task->reach);
  fake_work_release(task->work);
  free(task);
}

static void forget_stream(fake_stream *stream) {
  fake_stream **place = &streams;
  while (*place != stream) place = &(*place)->next;
  *place = stream->next;
  fake_frontier_clear(&stream->frontier);
  (void)pthread_cond_destroy(&stream->arrived);
  free(stream);
  fake_signal();
}

static void *run_stream(void *argument) {
  fake_stream *stream = argument;
  pthread_mutex_lock(&fake_lock);
  while (stream->first != NULL || !stream->is_ending) {
    if (stream->first == NULL) {
      pthread_cond_wait(&stream->arrived, &fake_lock);
      continue;
    }
    fake_stream_hold_back(stream);
    fake_stream_hang();
    fake_task *task = stream->first;
    stream->first = task->next;
    if (stream->first == NULL) stream->last = NULL;
    run_task(stream, task);
    stream->completed++;
    fake_signal();
  }
  forget_stream(stream);
  pthread_mutex_unlock(&fake_lock);
  return NULL;
}

typedef enum stream_kind { CREATED_STREAM, LEGACY_STREAM, DEFAULT_STREAM } stream_kind;

static fake_stream *start(fake_context *context, unsigned flags, stream_kind kind) {
  fake_stream *stream = fake_allocate(1, sizeof *stream);
  pthread_attr_t attributes;
  pthread_t thread;
  stream->object.context = context;
  stream->is_blocking = (flags & CU_STREAM_FLAG_NON_BLOCKING) == 0 && kind != LEGACY_STREAM;
  stream->is_legacy = kind == LEGACY_STREAM;
  (void)pthread_cond_init(&stream->arrived, NULL);
  (void)pthread_attr_init(&attributes);
  (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  const int error = pthread_create(&thread, &attributes, run_stream, stream);
  (void)pthread_attr_destroy(&attributes);
  if (error != 0) {
    (void)pthread_cond_destroy(&stream->arrived);
    free(stream);
    return NULL;
  }
  stream->next = streams;
  streams = stream;
  if (kind == CREATED_STREAM) fake_object_add(&stream->object, FAKE_CUDA_STREAM, context);
  return stream;
}

void fake_stream_end(fake_stream *stream) {
  fake_capture_leave(stream);
  if (stream->object.handle != 0) fake_object_remove(&stream->object);
  stream->is_ending = true;
  pthread_cond_signal(&stream->arrived);
}

fake_stream *fake_streams_first(void) { return streams; }

static bool is_any_busy(void) {
  for (const fake_stream *stream = streams; stream != NULL; stream = stream->next) {
    if (stream->completed < stream->submitted) return true;
  }
  return false;
}

void fake_streams_settle(void) {
  fake_context_want(NULL);
  while (is_any_busy()) fake_wait();
}

void fake_stream_serialize(const fake_stream *stream) {
  if (fake_is_serial) fake_context_drain(stream->object.context);
}

void fake_streams_leave(void) {
  while (streams != NULL) fake_wait();
}

static fake_stream *thread_stream(void) {
  fake_context *context = fake_self.current;
  fake_stream *stream = streams;
  while (stream != NULL &&
         (stream->object.context != context || stream->thread != &fake_self.identity || stream->is_ending))
    stream = stream->next;
  if (stream != NULL || context == NULL) return stream;
  stream = start(context, 0, DEFAULT_STREAM);
  if (stream != NULL) stream->thread = &fake_self.identity;
  return stream;
}

void fake_streams_end_defaults(fake_context *context) {
  context->legacy = NULL;
  for (fake_stream *stream = streams; stream != NULL; stream = stream->next)
    if (stream->object.context == context && (stream->is_legacy || stream->thread != NULL)) fake_stream_end(stream);
}

static fake_stream *legacy_stream(void) {
  fake_context *context = fake_self.current;
  if (context == NULL) return NULL;
  if (context->legacy == NULL) context->legacy = start(context, 0, LEGACY_STREAM);
  return context->legacy;
}

fake_stream *fake_stream_need(cu_stream handle) {
  if (handle == NULL || fake_handle(handle) == CU_LEGACY_STREAM) return legacy_stream();
  if (fake_handle(handle) == CU_THREAD_STREAM) return thread_stream();
  return fake_need(FAKE_CUDA_STREAM, fake_handle(handle));
}

static void push(fake_stream *stream, fake_task task) {
  fake_task *kept = fake_copy_of(&task, sizeof task);
  kept->next = NULL;
  if (stream->last != NULL)
    stream->last->next = kept;
  else
    stream->first = kept;
  stream->last = kept;
  stream->submitted++;
  fake_task_promise(kept, stream);
  pthread_cond_signal(&stream->arrived);
}

/* What is queued on `stream` from now on waits for all that `other` has. */
static void order_after(fake_stream *stream, fake_stream *other) {
  if (other->completed == other->submitted) return;
  fake_marker *marker = fake_marker_new();
  push(other, (fake_task){.reach = fake_marker_retain(marker)});
  push(stream, (fake_task){.wait = marker});
}

static void order_with_legacy(fake_stream *stream) {
  fake_context *context = stream->object.context;
  if (stream->is_blocking && context->legacy != NULL) order_after(stream, context->legacy);
  if (!stream->is_legacy) return;
  for (fake_stream *other = streams; other != NULL; other = other->next) {
    if (other->object.context == context && other->is_blocking) order_after(stream, other);
  }
}

cu_result fake_stream_submit(fake_stream *stream, fake_task task) {
  order_with_legacy(stream);
  push(stream, task);
  return stream->object.context->lost;
}

cu_result fake_stream_drain(fake_stream *stream) {
  const uint64_t target = stream->submitted;
  const fake_context *context = stream->object.context;
  const uint64_t handle = stream->object.handle;
  const bool is_default = handle == 0;
  fake_stream_want(stream, target);
  while (stream->completed < target) {
    fake_wait();
    if (!is_default && fake_find(FAKE_CUDA_STREAM, handle) == NULL)
      return fake_violation(CU_INVALID_HANDLE, "stream destroyed while another thread waited for it");
  }
  return context->lost;
}

static cu_result create(fake_call call, cu_stream *out, unsigned flags, int priority) {
  cu_result code = fake_begin(call, FAKE_IN_CONTEXT);
  if (code == CU_OK && (out == NULL || flags > CU_STREAM_FLAG_NON_BLOCKING)) code = CU_INVALID_VALUE;
  if (code == CU_OK) {
    fake_stream *stream = start(fake_self.current, flags, CREATED_STREAM);
    if (stream != NULL) stream->priority = priority;
    if (stream != NULL) *out = fake_as(cu_stream, stream);
    if (stream == NULL) code = CU_OUT_OF_MEMORY;
  }
  return fake_end(code);
}

cu_result fake_stream_create(cu_stream *out, unsigned flags) { return create(CALL_stream_create, out, flags, 0); }

/* The driver takes the nearest priority that it has. */
cu_result fake_stream_create_with_priority(cu_stream *out, unsigned flags, int priority) {
  if (priority > FAKE_LEAST_PRIORITY) priority = FAKE_LEAST_PRIORITY;
  if (priority < FAKE_GREATEST_PRIORITY) priority = FAKE_GREATEST_PRIORITY;
  return create(CALL_stream_create_with_priority, out, flags, priority);
}

cu_result fake_stream_priorities(int *least, int *greatest) {
  cu_result code = fake_begin(CALL_stream_priorities, FAKE_IN_CONTEXT);
  if (code == CU_OK && least != NULL) *least = FAKE_LEAST_PRIORITY;
  if (code == CU_OK && greatest != NULL) *greatest = FAKE_GREATEST_PRIORITY;
  return fake_end(code);
}

/* The live stream of a handle that a call describes. A destroyed one is no violation: the caller may not know. */
static cu_result find_described(fake_call call, cu_stream handle, const void *out, fake_stream **stream) {
  cu_result code = fake_begin(call, FAKE_IN_CONTEXT);
  const bool is_default = fake_handle(handle) <= CU_THREAD_STREAM;
  *stream = NULL;
  if (code == CU_OK && out == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK) *stream = is_default ? fake_stream_need(handle) : fake_find(FAKE_CUDA_STREAM, fake_handle(handle));
  return code == CU_OK && *stream == NULL ? CU_INVALID_HANDLE : code;
}

cu_result fake_stream_get_context(cu_stream handle, cu_context *out) {
  fake_stream *stream;
  const cu_result code = find_described(CALL_stream_get_context, handle, out, &stream);
  if (code == CU_OK) *out = fake_as(cu_context, stream->object.context);
  return fake_end(code);
}

cu_result fake_stream_get_flags(cu_stream handle, unsigned *out) {
  fake_stream *stream;
  const cu_result code = find_described(CALL_stream_get_flags, handle, out, &stream);
  if (code == CU_OK)
    *out = stream->is_blocking || stream->is_legacy ? CU_STREAM_FLAG_DEFAULT : CU_STREAM_FLAG_NON_BLOCKING;
  return fake_end(code);
}

cu_result fake_stream_get_priority(cu_stream handle, int *out) {
  fake_stream *stream;
  const cu_result code = find_described(CALL_stream_get_priority, handle, out, &stream);
  if (code == CU_OK) *out = stream->priority;
  return fake_end(code);
}

cu_result fake_stream_destroy(cu_stream handle) {
  cu_result code = fake_begin(CALL_stream_destroy, FAKE_IN_CONTEXT | FAKE_ALL_THE_SAME);
  fake_stream *stream = code == CU_OK ? fake_need(FAKE_CUDA_STREAM, fake_handle(handle)) : NULL;
  if (code == CU_OK && stream == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK) code = stream->object.context->lost;
  if (stream != NULL) fake_stream_end(stream);
  return fake_end(code);
}

cu_result fake_stream_synchronize(cu_stream handle) {
  cu_result code = fake_begin(CALL_stream_synchronize, FAKE_ALL_THE_SAME);
  fake_stream *stream = code == CU_OK ? fake_stream_need(handle) : NULL;
  if (code == CU_OK && stream == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK) code = fake_gate_stream(stream);
  if (code == CU_OK) code = fake_stream_drain(stream);
  return fake_end(code);
}

cu_result fake_stream_query(cu_stream handle) {
  cu_result code = fake_begin(CALL_stream_query, FAKE_IN_CONTEXT);
  fake_stream *stream = code == CU_OK ? fake_stream_need(handle) : NULL;
  if (code == CU_OK && stream == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK) code = fake_gate_stream(stream);
  if (code == CU_OK) code = stream->object.context->lost;
  if (code == CU_OK && stream->completed < stream->submitted) code = CU_NOT_READY;
  return fake_end(code);
}

cu_result fake_stream_wait_event(cu_stream stream_handle, cu_event event_handle, unsigned flags) {
  cu_result code = fake_begin(CALL_stream_wait_event, FAKE_ANYWHERE);
  fake_stream *stream = code == CU_OK ? fake_stream_need(stream_handle) : NULL;
  fake_event *event = stream != NULL ? fake_event_need(event_handle) : NULL;
  if (code == CU_OK && event == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK && flags > CU_WAIT_EXTERNAL) code = CU_INVALID_VALUE;
  if (code != CU_OK) return fake_end(code);
  const bool is_external = flags == CU_WAIT_EXTERNAL;
  fake_work *work;
  if (is_external && stream->capture == NULL) return fake_end(CU_INVALID_VALUE);
  if (is_external) {
    code = fake_work_event(event_handle, CU_NODE_EVENT_WAIT, &work);
    if (code == CU_OK) code = fake_capture_work(stream, work, CU_NODE_EVENT_WAIT);
  } else if (stream->capture != NULL || event->capture != 0) {
    code = fake_capture_wait(stream, event);
  } else {
    code = fake_gate_legacy(stream);
    if (code == CU_OK) code = fake_stream_submit(stream, (fake_task){.wait = fake_marker_retain(event->marker)});
  }
  return fake_end(code);
}
