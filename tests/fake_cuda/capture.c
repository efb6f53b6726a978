/* SPDX-License-Identifier: MIT
 * Stream capture of the fake driver, rules C1 to C16 of docs/rules.md with the codes of docs/cuda-probes.md. A capture
 * lists its streams. Each stream has the nodes that its next node depends on, and its last captured node, from which a
 * path must lead to the origin stream by the end. Checks before other calls refuse what cannot be captured, and make
 * the affected captures invalid.
 */
#include <stdlib.h>
#include <string.h>

#include "fake_cuda/fake.h"

static fake_capture *captures;
static uint64_t last_number;

void fake_frontier_clear(fake_frontier *frontier) {
  free(frontier->nodes);
  free(frontier->data);
  *frontier = (fake_frontier){0, NULL, NULL};
}

void fake_frontier_set(fake_frontier *frontier, const cu_graph_node *nodes, const cu_edge_data *data, size_t count) {
  cu_graph_node *new_nodes = fake_allocate(count, sizeof(cu_graph_node));
  cu_edge_data *new_data = fake_allocate(count, sizeof *new_data);
  if (count > 0) memcpy(new_nodes, nodes, count * sizeof(cu_graph_node));
  if (count > 0 && data != NULL) memcpy(new_data, data, count * sizeof *new_data);
  fake_frontier_clear(frontier);
  *frontier = (fake_frontier){count, new_nodes, new_data};
}

static bool holds(const fake_frontier *frontier, cu_graph_node node) {
  for (size_t i = 0; i < frontier->count; i++) {
    if (frontier->nodes[i] == node) return true;
  }
  return false;
}

/* Adds those that are not in it. */
static void unite(fake_frontier *frontier, const cu_graph_node *nodes, const cu_edge_data *data, size_t count) {
  fake_frontier both = {0, fake_allocate(frontier->count + count, sizeof(cu_graph_node)),
                        fake_allocate(frontier->count + count, sizeof(cu_edge_data))};
  for (; both.count < frontier->count; both.count++) {
    both.nodes[both.count] = frontier->nodes[both.count];
    both.data[both.count] = frontier->data[both.count];
  }
  for (size_t i = 0; i < count; i++) {
    if (holds(&both, nodes[i])) continue;
    if (data != NULL) both.data[both.count] = data[i];
    both.nodes[both.count++] = nodes[i];
  }
  fake_frontier_clear(frontier);
  *frontier = both;
}

static fake_capture *find_capture(uint64_t number) {
  fake_capture *capture = captures;
  while (capture != NULL && capture->number != number) capture = capture->next;
  return capture;
}

static void join(fake_capture *capture, fake_stream *stream) {
  stream->capture = capture;
  stream->next_in_capture = capture->streams;
  stream->last_captured = NULL;
  capture->streams = stream;
}

/* Its streams are ordinary ones again. The graph is handed back, the caller's. */
static fake_graph *dissolve(fake_capture *capture) {
  fake_capture **place = &captures;
  fake_graph *graph = capture->graph;
  while (*place != capture) place = &(*place)->next;
  *place = capture->next;
  for (fake_stream *stream = capture->streams; stream != NULL; stream = stream->next_in_capture) {
    stream->capture = NULL;
    fake_frontier_clear(&stream->frontier);
  }
  graph->capture = NULL;
  free(capture);
  return graph;
}

void fake_capture_leave(fake_stream *stream) {
  fake_capture *capture = stream->capture;
  if (capture == NULL) return;
  capture->is_invalid = true;
  if (capture->origin == stream) {
    fake_graph_free(dissolve(capture));
    return;
  }
  fake_stream **place = &capture->streams;
  while (*place != stream) place = &(*place)->next_in_capture;
  *place = stream->next_in_capture;
  stream->capture = NULL;
}

void fake_captures_reset(void) {
  while (captures != NULL) fake_graph_free(dissolve(captures));
}

/* Gates ----------------------------------------------------------------------------------------------------------- */

static cu_result refuse(fake_capture *capture, cu_result code) {
  const bool was_invalid = capture->is_invalid;
  capture->is_invalid = true;
  return was_invalid ? CU_STREAM_CAPTURE_INVALIDATED : code;
}

/* Whether the calling thread's mode and the capture's together forbid unsafe calls (C9). */
static bool forbids_unsafe(const fake_capture *capture) {
  const bool is_own = capture->thread == &fake_self.identity;
  if (fake_self.capture_mode == CU_CAPTURE_MODE_RELAXED) return false;
  if (is_own) return capture->mode != CU_CAPTURE_MODE_RELAXED;
  return fake_self.capture_mode != CU_CAPTURE_MODE_THREAD_LOCAL && capture->mode == CU_CAPTURE_MODE_GLOBAL;
}

cu_result fake_gate_unsafe(void) {
  cu_result code = CU_OK;
  for (fake_capture *capture = captures; capture != NULL; capture = capture->next) {
    if (!forbids_unsafe(capture)) continue;
    capture->is_invalid = true;
    code = CU_STREAM_CAPTURE_UNSUPPORTED;
  }
  return code;
}

cu_result fake_gate_stream(fake_stream *stream) {
  if (stream->capture != NULL) return refuse(stream->capture, CU_STREAM_CAPTURE_UNSUPPORTED);
  const cu_result code = fake_gate_legacy(stream);
  return code == CU_OK ? fake_gate_unsafe() : code;
}

cu_result fake_gate_event(const fake_event *event) {
  if (event->capture == 0) return fake_gate_unsafe();
  fake_capture *capture = find_capture(event->capture);
  return capture != NULL ? refuse(capture, CU_CAPTURED_EVENT) : CU_CAPTURED_EVENT;
}

static bool has_stream_of(const fake_capture *capture, const fake_context *context, bool only_blocking) {
  for (const fake_stream *stream = capture->streams; stream != NULL; stream = stream->next_in_capture) {
    if (stream->object.context == context && (stream->is_blocking || !only_blocking)) return true;
  }
  return false;
}

/* Refuses with `code` while a stream of the context is in a capture, and makes each such capture invalid. */
static cu_result refuse_in_context(const fake_context *context, bool only_blocking, cu_result code) {
  cu_result result = CU_OK;
  for (fake_capture *capture = captures; capture != NULL; capture = capture->next) {
    if (!has_stream_of(capture, context, only_blocking)) continue;
    capture->is_invalid = true;
    result = code;
  }
  return result;
}

cu_result fake_gate_context(const fake_context *context) {
  return refuse_in_context(context, false, CU_STREAM_CAPTURE_UNSUPPORTED);
}

cu_result fake_gate_legacy(const fake_stream *stream) {
  if (!stream->is_legacy) return CU_OK;
  return refuse_in_context(stream->object.context, true, CU_STREAM_CAPTURE_IMPLICIT);
}

/* The same code also when the capture is invalid already (docs/cuda-probes.md, 11). */
cu_result fake_gate_submit(fake_stream *stream) {
  if (stream->capture == NULL) return fake_gate_legacy(stream);
  stream->capture->is_invalid = true;
  return CU_STREAM_CAPTURE_UNSUPPORTED;
}

/* Captured calls -------------------------------------------------------------------------------------------------- */

cu_result fake_capture_work(fake_stream *stream, fake_work *work, cu_node_type type) {
  fake_frontier *frontier = &stream->frontier;
  fake_node *node;
  if (stream->capture->is_invalid) {
    fake_work_release(work);
    return CU_STREAM_CAPTURE_INVALIDATED;
  }
  const cu_result code =
      fake_graph_add(stream->capture->graph, frontier->nodes, frontier->data, frontier->count, type, work, &node);
  if (code != CU_OK) return refuse(stream->capture, code);
  stream->last_captured = fake_as(cu_graph_node, node);
  fake_frontier_set(frontier, &stream->last_captured, NULL, 1);
  return CU_OK;
}

cu_result fake_capture_record(fake_stream *stream, fake_event *event) {
  if (stream->capture->is_invalid) return CU_STREAM_CAPTURE_INVALIDATED;
  event->capture = stream->capture->number;
  fake_marker_release(event->marker);
  event->marker = NULL;
  fake_frontier_set(&event->frontier, stream->frontier.nodes, stream->frontier.data, stream->frontier.count);
  return CU_OK;
}

/* An ordinary stream waits for an event of a capture, and so joins it (C3). */
static cu_result fork_into(fake_stream *stream, const fake_event *event) {
  fake_capture *capture = find_capture(event->capture);
  if (capture == NULL) return CU_CAPTURED_EVENT;
  if (capture->is_invalid) return CU_STREAM_CAPTURE_INVALIDATED;
  if (stream->is_legacy) return refuse(capture, CU_STREAM_CAPTURE_IMPLICIT);
  join(capture, stream);
  fake_frontier_set(&stream->frontier, event->frontier.nodes, event->frontier.data, event->frontier.count);
  return CU_OK;
}

cu_result fake_capture_wait(fake_stream *stream, fake_event *event) {
  fake_capture *capture = stream->capture;
  if (capture == NULL) return fork_into(stream, event);
  if (capture->is_invalid) return CU_STREAM_CAPTURE_INVALIDATED;
  fake_capture *other = event->capture != 0 ? find_capture(event->capture) : NULL;
  if (other == NULL) return refuse(capture, CU_STREAM_CAPTURE_ISOLATION);
  if (other != capture) {
    other->is_invalid = true;
    return refuse(capture, CU_STREAM_CAPTURE_MERGE);
  }
  unite(&stream->frontier, event->frontier.nodes, event->frontier.data, event->frontier.count);
  return CU_OK;
}

/* Beginning, asking, ending --------------------------------------------------------------------------------------- */

static cu_result begin(fake_stream *stream, cu_capture_mode mode) {
  if (mode > CU_CAPTURE_MODE_RELAXED) return CU_INVALID_VALUE;
  if (stream->is_legacy) return CU_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture != NULL) return CU_ILLEGAL_STATE;
  fake_capture *capture = fake_allocate(1, sizeof *capture);
  capture->number = ++last_number;
  capture->graph = fake_graph_new();
  capture->graph->capture = capture;
  capture->origin = stream;
  capture->thread = &fake_self.identity;
  capture->mode = mode;
  capture->next = captures;
  captures = capture;
  join(capture, stream);
  fake_frontier_clear(&stream->frontier);
  return CU_OK;
}

cu_result fake_capture_begin(cu_stream handle, cu_capture_mode mode) {
  cu_result code = fake_begin(CALL_capture_begin, FAKE_IN_CONTEXT);
  fake_stream *stream = code == CU_OK ? fake_stream_need(handle) : NULL;
  if (code == CU_OK && stream == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK) code = begin(stream, mode);
  return fake_end(code);
}

/* Whether a stream other than the origin captured what the origin did not wait for (C5). */
static bool has_unjoined(const fake_capture *capture) {
  for (const fake_stream *stream = capture->streams; stream != NULL; stream = stream->next_in_capture) {
    const fake_node *node = fake_find(FAKE_CUDA_NODE, fake_handle(stream->last_captured));
    if (stream == capture->origin || node == NULL) continue;
    if (!fake_graph_reaches(capture->graph, node, &capture->origin->frontier)) return true;
  }
  return false;
}

static cu_result end(fake_stream *stream, cu_graph *out) {
  fake_capture *capture = stream->capture;
  if (capture == NULL) return CU_ILLEGAL_STATE;
  if (capture->origin != stream) return CU_STREAM_CAPTURE_UNMATCHED;
  if (capture->mode != CU_CAPTURE_MODE_RELAXED && capture->thread != &fake_self.identity)
    return CU_STREAM_CAPTURE_WRONG_THREAD;
  cu_result code = capture->is_invalid ? CU_STREAM_CAPTURE_INVALIDATED : fake_self.result;
  if (code == CU_OK && has_unjoined(capture)) code = CU_STREAM_CAPTURE_UNJOINED;
  fake_graph *graph = dissolve(capture);
  if (code == CU_OK)
    *out = fake_as(cu_graph, graph);
  else
    fake_graph_free(graph);
  return code;
}

cu_result fake_capture_end(cu_stream handle, cu_graph *out) {
  cu_result code = fake_begin(CALL_capture_end, FAKE_IN_CONTEXT | FAKE_ALL_THE_SAME);
  fake_stream *stream = code == CU_OK ? fake_stream_need(handle) : NULL;
  if (code == CU_OK && stream == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK && out == NULL) code = CU_INVALID_VALUE;
  if (code != CU_OK) return fake_end(code);
  *out = NULL;
  return fake_end(end(stream, out));
}

static cu_capture_status status_of(const fake_stream *stream) {
  if (stream->capture == NULL) return CU_CAPTURE_STATUS_NONE;
  return stream->capture->is_invalid ? CU_CAPTURE_STATUS_INVALIDATED : CU_CAPTURE_STATUS_ACTIVE;
}

/* Asking for the legacy stream is refused as its use is, but leaves captures as they are. */
static cu_result refuse_asking(const fake_stream *stream) {
  if (!stream->is_legacy) return CU_OK;
  for (const fake_capture *capture = captures; capture != NULL; capture = capture->next) {
    if (has_stream_of(capture, stream->object.context, true)) return CU_STREAM_CAPTURE_IMPLICIT;
  }
  return CU_OK;
}

static bool is_plain(const fake_frontier *frontier) {
  static const cu_edge_data plain;
  for (size_t i = 0; i < frontier->count; i++) {
    if (memcmp(&frontier->data[i], &plain, sizeof plain) != 0) return false;
  }
  return true;
}

cu_result fake_capture_info(cu_stream handle, cu_capture_status *status, uint64_t *id, cu_graph *graph,
                            const cu_graph_node **frontier, const cu_edge_data **data, size_t *count) {
  cu_result code = fake_begin(CALL_capture_info, FAKE_IN_CONTEXT);
  fake_stream *stream = code == CU_OK ? fake_stream_need(handle) : NULL;
  if (code == CU_OK && stream == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK && status == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK) code = refuse_asking(stream);
  if (code != CU_OK) return fake_end(code);
  *status = status_of(stream);
  const bool is_active = *status == CU_CAPTURE_STATUS_ACTIVE;
  if (is_active && frontier != NULL && data == NULL && !is_plain(&stream->frontier)) return fake_end(FAKE_LOSSY_QUERY);
  if (id != NULL) *id = stream->capture != NULL ? stream->capture->number : 0;
  if (graph != NULL) *graph = is_active ? fake_as(cu_graph, stream->capture->graph) : NULL;
  if (frontier != NULL) *frontier = is_active ? stream->frontier.nodes : NULL;
  if (data != NULL) *data = is_active ? stream->frontier.data : NULL;
  if (count != NULL) *count = is_active ? stream->frontier.count : 0;
  return fake_end(CU_OK);
}

cu_result fake_stream_is_capturing(cu_stream handle, cu_capture_status *status) {
  cu_result code = fake_begin(CALL_stream_is_capturing, FAKE_IN_CONTEXT);
  fake_stream *stream = code == CU_OK ? fake_stream_need(handle) : NULL;
  if (code == CU_OK && stream == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK && status == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK) code = refuse_asking(stream);
  if (code == CU_OK) *status = status_of(stream);
  return fake_end(code);
}

static cu_result change_frontier(fake_stream *stream, const cu_graph_node *nodes, const cu_edge_data *data,
                                 size_t count, unsigned flags) {
  if (stream->capture == NULL) return CU_ILLEGAL_STATE;
  if (stream->capture->is_invalid) return CU_STREAM_CAPTURE_INVALIDATED;
  if (flags > CU_CAPTURE_DEPENDENCIES_SET || (count > 0 && nodes == NULL)) return CU_INVALID_VALUE;
  for (size_t i = 0; i < count; i++) {
    const fake_node *node = fake_need(FAKE_CUDA_NODE, fake_handle(nodes[i]));
    if (node == NULL || node->graph != stream->capture->graph) return CU_INVALID_VALUE;
  }
  if (flags == CU_CAPTURE_DEPENDENCIES_ADD)
    unite(&stream->frontier, nodes, data, count);
  else
    fake_frontier_set(&stream->frontier, nodes, data, count);
  if (!holds(&stream->frontier, stream->last_captured)) stream->last_captured = NULL;
  return CU_OK;
}

cu_result fake_capture_set_dependencies(cu_stream handle, cu_graph_node *nodes, const cu_edge_data *data, size_t count,
                                        unsigned flags) {
  cu_result code = fake_begin(CALL_capture_set_dependencies, FAKE_IN_CONTEXT);
  fake_stream *stream = code == CU_OK ? fake_stream_need(handle) : NULL;
  if (code == CU_OK && stream == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK) code = change_frontier(stream, nodes, data, count, flags);
  return fake_end(code);
}

/* Any mode is taken, as by the driver; one that it does not know counts as GLOBAL. */
cu_result fake_capture_exchange_mode(cu_capture_mode *mode) {
  cu_result code = fake_begin(CALL_capture_exchange_mode, FAKE_ANYWHERE);
  if (code == CU_OK && mode == NULL)
    code = fake_violation(CU_INVALID_VALUE, "cuThreadExchangeStreamCaptureMode(NULL), where the driver crashes");
  if (code == CU_OK) {
    const cu_capture_mode old = fake_self.capture_mode;
    fake_self.capture_mode = *mode;
    *mode = old;
  }
  return fake_end(code);
}
