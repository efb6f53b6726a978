/* SPDX-License-Identifier: MIT
 * See capture_driver.h.
 */
#include "exec/capture/capture_driver.h"

#include <assert.h>

#include "base/log.h"
#include "device/device.h"
#include "graph/graph.h"
#include "graph/node_name.h"

/* Failing --------------------------------------------------------------------------------------------------------- */

/* The last node that is known to be good, for messages. */
static const char *last_good(const rondo_capture *capture, char buffer[RONDO_LABEL_BYTES]) {
  const rondo_graph *graph = capture->graph;
  const uint64_t known = capture->importer.slots.count;
  if (known == 0 || graph->nodes.count == 0) return "its beginning";
  const uint32_t slot = (uint32_t)(graph->nodes.count - 1);
  return graph->nodes.items[slot].live ? rondo_node_label(buffer, &graph->nodes.items[slot].params, slot)
                                       : "a node that was removed";
}

/* What breaks captures of streams that synchronise with the legacy stream. */
#define LEGACY_HINT ", or work on the legacy default stream (use other streams, or per-thread default streams)"

static rondo_status fail_broken(rondo_capture *capture, const char *call) {
  char label[RONDO_LABEL_BYTES];
  const rondo_stream *origin = capture->origin;
  const bool synchronises = origin != NULL && origin->queue->is_blocking;
  rondo_capture_invalidate_by_driver(
      capture, "a call of a library, or on the driver itself, between %s and %s, that cannot be captured%s",
      last_good(capture, label), call, synchronises ? LEGACY_HINT : "");
  return rondo_capture_require_active(capture, call);
}

/* The driver refused a call: makes the capture invalid. The cause is this call, unless the driver's capture was broken
 * before. */
static rondo_status fail_refused(rondo_stream *stream, const char *call, rondo_status status) {
  rondo_capture *capture = rondo_stream_capture(stream);
  rondo_captured *captured = capture->importer.captured;
  const rondo_captured_edge *edges;
  rondo_saved_error error;
  size_t count;
  bool is_active = true;
  rondo_error_save(&error);
  const rondo_status asked = captured->ops->frontier(captured, capture->origin->queue, &is_active, &edges, &count);
  if (asked == RONDO_OK && !is_active) return fail_broken(capture, call);
  rondo_capture_invalidate_by_driver(capture, "%s, which the driver refused with %s", call,
                                     error.driver_name[0] != '\0' ? error.driver_name : rondo_status_name(status));
  return rondo_fail_context(rondo_error_raise(&error), "%s: the capture on %s is now invalid", call,
                            capture->origin_name);
}

/* Following ------------------------------------------------------------------------------------------------------- */

/* Reads the driver's frontier into the capture's working memory. */
static rondo_status read_frontier(rondo_stream *stream, bool *out_is_active, bool *out_is_plain) {
  rondo_capture *capture = rondo_stream_capture(stream);
  rondo_captured *captured = capture->importer.captured;
  const rondo_captured_edge *edges;
  size_t count;
  capture->driver_frontier.count = 0;
  *out_is_plain = true;
  RONDO_TRY(captured->ops->frontier(captured, stream->queue, out_is_active, &edges, &count));
  for (size_t i = 0; *out_is_active && i < count; i++) {
    RONDO_TRY(rondo_array_push(&capture->allocator, &capture->driver_frontier, &edges[i].node));
    *out_is_plain = *out_is_plain && !edges[i].is_programmatic;
  }
  return RONDO_OK;
}

/* Adds an empty node, so that the next node waits for the whole frontier. */
static rondo_status make_plain(rondo_stream *stream) {
  rondo_capture *capture = rondo_stream_capture(stream);
  rondo_captured *captured = capture->importer.captured;
  uint64_t name;
  assert(capture->driver_frontier.count > 0);
  RONDO_TRY(
      captured->ops->place(captured, NULL, capture->driver_frontier.items, capture->driver_frontier.count, &name));
  RONDO_TRY(captured->ops->set_frontier(captured, stream->queue, &name, 1));
  capture->driver_frontier.items[0] = name;
  capture->driver_frontier.count = 1;
  return RONDO_OK;
}

static rondo_status import_frontier(rondo_stream *stream) {
  rondo_capture *capture = rondo_stream_capture(stream);
  rondo_importer *importer = &capture->importer;
  for (size_t i = 0; i < capture->driver_frontier.count; i++)
    RONDO_TRY(rondo_importer_add(importer, capture->driver_frontier.items[i]));
  RONDO_TRY(rondo_importer_order_after(importer, capture->driver_frontier.items, capture->driver_frontier.count));
  RONDO_TRY(rondo_importer_reserve(importer)); /* for the node that rondo_capture_tell adds */
  RONDO_TRY(rondo_array_reserve(&stream->device->allocator, &stream->frontier, importer->order.count));
  for (size_t i = 0; i < importer->order.count; i++) stream->frontier.items[i] = importer->order.items[i];
  stream->frontier.count = importer->order.count;
  return RONDO_OK;
}

rondo_status rondo_capture_follow(rondo_stream *stream, const char *call) {
  rondo_capture *capture = rondo_stream_capture(stream);
  bool is_active, is_plain;
  if (capture->importer.captured == NULL) return RONDO_OK;
  RONDO_TRY(read_frontier(stream, &is_active, &is_plain));
  if (!is_active) return fail_broken(capture, call);
  if (!is_plain) RONDO_TRY(make_plain(stream));
  const rondo_status status = import_frontier(stream);
  return status == RONDO_OK ? RONDO_OK : rondo_fail_context(status, "%s", call);
}

/* Passing on to the driver ---------------------------------------------------------------------------------------- */

static rondo_status place_node(rondo_stream *stream, const rondo_node_params *copy, uint64_t *out) {
  const rondo_capture *capture = rondo_stream_capture(stream);
  rondo_captured *captured = capture->importer.captured;
  RONDO_TRY(captured->ops->place(captured, copy, capture->driver_frontier.items, capture->driver_frontier.count, out));
  return captured->ops->set_frontier(captured, stream->queue, out, 1);
}

/* Kernels use the driver's own launch, which gives the node the stream's attributes. If a library has memory in the
 * graph, copies use the driver's own call too: once such memory is freed in the graph, no copy of it can be added. */
static rondo_status give_node(rondo_stream *stream, const rondo_node_params *params, uint64_t *out) {
  const rondo_capture *capture = rondo_stream_capture(stream);
  rondo_captured *captured = capture->importer.captured;
  const bool is_copy = params->kind == RONDO_NODE_COPY && capture->graph->is_bound;
  if (params->kind != RONDO_NODE_KERNEL || params->as.kernel.kernel->driver_data == NULL)
    return place_node(stream, is_copy ? params : NULL, out);
  return captured->ops->launch(captured, stream->queue, params, out);
}

/* Makes memory of an alloc node visible to the driver. Without that, it may refuse libraries' calls that use the
 * memory. */
static rondo_status show_memory(rondo_captured *captured, const rondo_alloc_node *alloc) {
  rondo_saved_error before;
  rondo_error_save(&before);
  const rondo_status status = captured->ops->show(captured, alloc->address, alloc->bytes);
  if (status != RONDO_OUT_OF_MEMORY) return status;
  rondo_error_restore(&before); /* the allocation itself needs no memory before a launch */
  return RONDO_OK;
}

rondo_status rondo_capture_tell(rondo_stream *stream, const char *call, rondo_node node) {
  rondo_capture *capture = rondo_stream_capture(stream);
  const uint32_t slot = rondo_node_number(node);
  uint64_t name = 0;
  if (capture->importer.captured == NULL) return RONDO_OK;
  const rondo_node_params *params = &rondo_graph_at(capture->graph, slot)->params;
  rondo_status status = RONDO_OK;
  if (params->kind == RONDO_NODE_ALLOC) status = show_memory(capture->importer.captured, &params->as.alloc);
  if (status == RONDO_OK) status = give_node(stream, params, &name);
  if (status != RONDO_OK) return fail_refused(stream, call, rondo_fail_context(status, "node %u", slot));
  rondo_importer_know(&capture->importer, name, slot);
  return RONDO_OK;
}

static rondo_status name_frontier(const rondo_stream *stream, rondo_capture *capture) {
  capture->driver_frontier.count = 0;
  for (size_t i = 0; i < stream->frontier.count; i++) {
    uint64_t name;
    RONDO_TRY(rondo_importer_name(&capture->importer, rondo_node_number(stream->frontier.items[i]), &name));
    RONDO_TRY(rondo_array_push(&capture->allocator, &capture->driver_frontier, &name));
  }
  return RONDO_OK;
}

rondo_status rondo_capture_tell_frontier(rondo_stream *stream, const char *call) {
  rondo_capture *capture = rondo_stream_capture(stream);
  rondo_captured *captured = capture->importer.captured;
  if (captured == NULL) return RONDO_OK;
  rondo_status status = name_frontier(stream, capture);
  if (status == RONDO_OK)
    status = captured->ops->set_frontier(captured, stream->queue, capture->driver_frontier.items,
                                         capture->driver_frontier.count);
  return status == RONDO_OK ? RONDO_OK : fail_refused(stream, call, status);
}

/* The driver gets an event that Rondo does not use otherwise: the driver refuses all questions about an event
 * recorded in a capture, and Rondo asks its own whether they are complete. */
rondo_status rondo_capture_tell_record(rondo_stream *stream, rondo_event *event) {
  const rondo_capture *capture = rondo_stream_capture(stream);
  rondo_device_event *mark;
  if (capture->importer.captured == NULL) return RONDO_OK;
  RONDO_TRY(stream->device->ops->event_create(stream->device, false, &mark));
  const rondo_status status = stream->queue->ops->record(stream->queue, mark);
  if (status != RONDO_OK) {
    mark->ops->destroy(mark);
    return fail_refused(stream, "rondo_event_record", status);
  }
  event->mark = mark;
  return RONDO_OK;
}

rondo_status rondo_capture_tell_wait(rondo_stream *stream, const rondo_event *event) {
  if (event->mark == NULL) return RONDO_OK;
  const rondo_status status = stream->queue->ops->wait(stream->queue, event->mark);
  return status == RONDO_OK ? RONDO_OK : fail_refused(stream, "rondo_stream_wait_event", status);
}

/* Beginning and ending -------------------------------------------------------------------------------------------- */

rondo_status rondo_capture_begin_driver(rondo_capture *capture) {
  const rondo_capture_ops *ops = capture->device->ops->capture;
  capture->importer.graph = capture->graph;
  assert(capture->importer.captured == NULL);
  if (ops == NULL) return RONDO_OK;
  RONDO_TRY(ops->begin(capture->origin->queue, capture->mode, &capture->importer.captured));
  capture->driver_id = capture->importer.captured->id;
  return RONDO_OK;
}

/* Its frontier is read from the driver before it is used. */
rondo_capture *rondo_capture_adopt(rondo_stream *stream) {
  const rondo_capture_ops *ops = stream->device->ops->capture;
  const uint64_t driver_id = ops != NULL ? ops->capture_of(stream->queue) : 0;
  if (driver_id == 0) return NULL;
  stream->frontier.count = 0;
  stream->last = (rondo_node){0};
  return rondo_capture_list_adopt(stream, driver_id);
}

static void warn_of_bound(const rondo_graph *graph) {
  char text[RONDO_BOUND_TEXT];
  if (graph->is_bound && rondo_log_on(RONDO_LOG_WARNING))
    rondo_log(RONDO_LOG_WARNING, "exec",
              "rondo_capture_end: the graph can be instantiated only once and cannot be cloned: %s",
              rondo_graph_bound_text(graph, text));
}

static rondo_status import_rest(rondo_capture *capture) {
  RONDO_TRY(rondo_importer_add_all(&capture->importer, 0));
  rondo_captured_attach(capture->importer.captured, &capture->graph->captured);
  warn_of_bound(capture->graph);
  return RONDO_OK;
}

static rondo_status fail_end(const rondo_capture *capture, rondo_status status) {
  if (rondo_last_error()->reason == RONDO_REASON_UNJOINED)
    return rondo_fail(
        RONDO_CAPTURE_REFUSED, RONDO_REASON_UNJOINED,
        "rondo_capture_end: a stream of a library was forked from the capture on %s and not joined again: "
        "let the library join it, with an event that %s waits for, before the end",
        capture->origin_name, capture->origin_name);
  return rondo_fail_context(status, "rondo_capture_end: the capture on %s", capture->origin_name);
}

rondo_status rondo_capture_end_driver(rondo_capture *capture, rondo_status status) {
  rondo_captured *captured = capture->importer.captured;
  rondo_saved_error first;
  if (captured == NULL) return status;
  rondo_error_save(&first);
  rondo_status ended = captured->ops->end(captured, capture->origin->queue);
  if (ended != RONDO_OK) ended = fail_end(capture, ended);
  if (status != RONDO_OK)
    (void)rondo_error_raise(&first);
  else
    status = ended == RONDO_OK ? import_rest(capture) : ended;
  if (status != RONDO_OK) rondo_importer_forget(&capture->importer);
  rondo_importer_free(&capture->importer);
  rondo_captured_release(captured);
  capture->importer.captured = NULL;
  return status;
}
