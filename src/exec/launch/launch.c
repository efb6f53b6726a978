/* SPDX-License-Identifier: MIT
 * Launching. For most execs a launch is the driver's launch and a counter. The flag has_extras says whether there is
 * more to do: for graph memory, event nodes or random numbers.
 */
#include "base/trace.h"
#include "exec/launch/declared_access.h"
#include "exec/patch/patch.h"
#include "graph/graph.h"

/* For rare cases. If they were inlined, every launch would save registers for them. */
#define OUT_OF_LINE __attribute__((noinline))

OUT_OF_LINE static rondo_status refuse(const char *call, const rondo_exec *exec, const rondo_stream *stream) {
  RONDO_TRY(rondo_check_call(call, "the exec", exec));
  if (stream == NULL) return rondo_refuse_null(call, "the stream");
  return rondo_require_device(call, "the stream", exec->device, stream->device);
}

/* The exec becomes a child graph in the capture (C16). */
OUT_OF_LINE static rondo_status launch_into_capture(rondo_exec *exec, rondo_stream *stream) {
  RONDO_TRY(rondo_capture_refuse_stray(stream, "rondo_exec_launch"));
  RONDO_TRY(rondo_capture_require_active(rondo_stream_capture(stream), "rondo_exec_launch"));
  if (exec->disabled_count > 0)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NODE_KIND,
                      "rondo_exec_launch: an exec with %zu disabled nodes cannot become a child graph of a capture: "
                      "enable them first",
                      exec->disabled_count);
  rondo_patch_settle(exec);
  rondo_node_params params = {.kind = RONDO_NODE_CHILD, .as.child = exec->graph};
  return rondo_capture_add(stream, "rondo_exec_launch", &params);
}

/* Adds the names of the call and the graph to a failure of graph memory. */
static rondo_status fail_memory(const char *call, const rondo_exec *exec, rondo_status status) {
  char label[RONDO_LABEL_BYTES];
  return rondo_fail_context(status, "%s of %s", call, rondo_graph_label(label, exec->graph));
}

/* The heap that backs the graph memory of a launch. */
static rondo_status find_heap(const rondo_exec *exec, rondo_stream *stream, rondo_heap **out) {
  *out = exec->heap;
  return *out != NULL ? RONDO_OK : rondo_stream_heap(stream, out);
}

static rondo_status begin_memory(const rondo_exec *exec, rondo_stream *stream) {
  rondo_heap *heap;
  RONDO_TRY(find_heap(exec, stream, &heap));
  return rondo_exec_memory_begin(exec->memory, heap, stream->queue);
}

static inline rondo_status run(const rondo_exec *exec, rondo_queue *queue, rondo_moves *moves) {
  if (moves == NULL) return queue->ops->launch(queue, exec->executable);
  const rondo_status status = queue->ops->launch_patched(queue, exec->executable, moves->changes, moves->count);
  moves->are_made = status == RONDO_OK;
  return status;
}

static rondo_status launch_with_memory(const rondo_exec *exec, rondo_stream *stream, rondo_moves *moves) {
  const rondo_status begun = begin_memory(exec, stream);
  if (__builtin_expect(begun != RONDO_OK, 0)) return fail_memory("rondo_exec_launch", exec, begun);
  const rondo_status launched = run(exec, stream->queue, moves);
  return rondo_exec_memory_end(exec->memory, stream->queue, launched);
}

static inline rondo_status launch_queued(const rondo_exec *exec, rondo_stream *stream, rondo_moves *moves) {
  return exec->memory != NULL ? launch_with_memory(exec, stream, moves) : run(exec, stream->queue, moves);
}

static rondo_status launch_with_random(const rondo_exec *exec, rondo_stream *stream, rondo_moves *moves) {
  RONDO_TRY(rondo_exec_random_begin(exec->random, stream->queue));
  return rondo_exec_random_end(exec->random, stream->queue, launch_queued(exec, stream, moves));
}

OUT_OF_LINE static rondo_status launch_with_extras(rondo_exec *exec, rondo_stream *stream, rondo_moves *moves) {
  if (exec->broken)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NOT_UPDATABLE,
                      "rondo_exec_launch: an update of this exec failed and could not be undone: update it again, or "
                      "instantiate again");
  RONDO_TRY(exec->random != NULL ? launch_with_random(exec, stream, moves) : launch_queued(exec, stream, moves));
  for (size_t i = 0; i < exec->records.count; i++)
    rondo_event_note_recorded(rondo_exec_params(exec, exec->records.items[i])->as.event, stream);
  return RONDO_OK;
}

static inline rondo_status enqueue(rondo_exec *exec, rondo_stream *stream, rondo_moves *moves) {
  return __builtin_expect(exec->has_extras, 0) ? launch_with_extras(exec, stream, moves)
                                               : run(exec, stream->queue, moves);
}

/* Part of it may run nevertheless, and other launches on other queues. */
OUT_OF_LINE static rondo_status fail(rondo_exec *exec, rondo_status status) {
  exec->last_queue = RONDO_QUEUE_UNKNOWN;
  return status;
}

static inline rondo_status finish(rondo_exec *exec, rondo_stream *stream, rondo_status status) {
  if (__builtin_expect(status != RONDO_OK, 0)) return fail(exec, status);
  exec->last_queue = stream->queue->number;
  exec->launches++;
  return __builtin_expect(stream->synchronous, 0) ? rondo_stream_settle(stream, "rondo_exec_launch") : RONDO_OK;
}

OUT_OF_LINE static rondo_status launch_traced(rondo_exec *exec, rondo_stream *stream, rondo_moves *moves) {
  rondo_trace_here(RONDO_TRACE_BEGIN, "exec", "rondo_exec_launch");
  const rondo_status status = enqueue(exec, stream, moves);
  rondo_trace_here(RONDO_TRACE_END, "exec", "rondo_exec_launch");
  return finish(exec, stream, status);
}

static inline rondo_status launch(rondo_exec *exec, rondo_stream *stream, rondo_moves *moves) {
  if (__builtin_expect(rondo_trace_on(), 0)) return launch_traced(exec, stream, moves);
  return finish(exec, stream, enqueue(exec, stream, moves));
}

rondo_status rondo_exec_launch_patched(rondo_exec *exec, rondo_stream *stream, rondo_moves *moves) {
  return launch(exec, stream, moves);
}

OUT_OF_LINE static rondo_status launch_checked(rondo_exec *exec, rondo_stream *stream) {
  RONDO_TRY(rondo_exec_check_access("rondo_exec_launch", exec));
  return launch(exec, stream, NULL);
}

rondo_status rondo_exec_launch(rondo_exec *exec, rondo_stream *stream) {
  const bool fine = exec != NULL && stream != NULL && exec->device == stream->device && !rondo_in_callback();
  if (__builtin_expect(!fine, 0)) return refuse("rondo_exec_launch", exec, stream);
  if (__builtin_expect(!rondo_stream_runs_at_once(stream), 0)) return launch_into_capture(exec, stream);
  if (__builtin_expect(!rondo_exec_has_checked_access(exec), 0)) return launch_checked(exec, stream);
  return launch(exec, stream, NULL);
}

static rondo_status upload_memory(const char *call, const rondo_exec *exec, rondo_stream *stream) {
  if (exec->memory == NULL) return RONDO_OK;
  rondo_heap *heap;
  rondo_status status = find_heap(exec, stream, &heap);
  if (status == RONDO_OK) status = rondo_exec_memory_upload(exec->memory, heap);
  return status == RONDO_OK ? RONDO_OK : fail_memory(call, exec, status);
}

rondo_status rondo_exec_upload(rondo_exec *exec, rondo_stream *stream) {
  const char *const call = "rondo_exec_upload";
  RONDO_TRY(refuse(call, exec, stream));
  if (rondo_stream_find_capture(stream) != NULL) return rondo_capture_refuse_stream(stream, call);
  RONDO_TRY(upload_memory(call, exec, stream));
  return stream->queue->ops->upload == NULL ? RONDO_OK : stream->queue->ops->upload(stream->queue, exec->executable);
}
