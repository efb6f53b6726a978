/* SPDX-License-Identifier: MIT
 * Captures: beginning, adding nodes, forking and joining through events, ending. capture_internal.h says which thread
 * may touch what; capture_refusals.c refuses calls that a capture forbids.
 */
#include "exec/capture/capture_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "base/versioned_struct.h"
#include "exec/build/graph_build.h"
#include "exec/capture/arena_capture.h"
#include "exec/capture/capture_driver.h"
#include "exec/random/random_internal.h"
#include "graph/graph.h"
#include "graph/graph_check.h"
#include "graph/graph_clone.h"
#include "graph/node_name.h"
#include "graph/node_params.h"
#include "graph/topological_order.h"
#include "memory/arena/arena_internal.h"
#include "memory/arena/arena_recording.h"

enum { FEW_NODES = 16 };

/* Frontiers ------------------------------------------------------------------------------------------------------- */

static bool frontier_has(const rondo_frontier *frontier, rondo_node node) {
  for (size_t i = 0; i < frontier->count; i++)
    if (frontier->items[i].id == node.id) return true;
  return false;
}

static int by_id(const void *a, const void *b) {
  const rondo_node *x = a, *y = b;
  return (x->id > y->id) - (x->id < y->id);
}

static void frontier_remove_duplicates(rondo_frontier *frontier) {
  size_t kept = 0;
  qsort(frontier->items, frontier->count, sizeof *frontier->items, by_id);
  for (size_t i = 0; i < frontier->count; i++)
    if (kept == 0 || frontier->items[kept - 1].id != frontier->items[i].id)
      frontier->items[kept++] = frontier->items[i];
  frontier->count = kept;
}

/* Adds the nodes to the frontier, which has the capacity. A few nodes are compared one by one; more are sorted, because
 * there can be as many as the graph has. */
static void frontier_unite(rondo_frontier *frontier, const rondo_node *nodes, size_t count) {
  assert(frontier->count + count <= frontier->capacity);
  const bool is_long = count > FEW_NODES;
  for (size_t i = 0; i < count; i++)
    if (is_long || !frontier_has(frontier, nodes[i])) frontier->items[frontier->count++] = nodes[i];
  if (is_long) frontier_remove_duplicates(frontier);
}

/* Asserts that the frontier holds nodes of the capture's graph, each once. */
static void check_frontier(const rondo_stream *stream) {
  (void)stream;
#ifndef NDEBUG
  const rondo_capture *capture = rondo_stream_capture(stream);
  const rondo_frontier *frontier = &stream->frontier;
  uint32_t slot;
  assert(capture->graph->captures > 0 && frontier->count <= frontier->capacity);
  assert(stream->last.id == 0 || rondo_graph_find(capture->graph, stream->last, &slot) == RONDO_OK);
  for (size_t i = 0; i < frontier->count; i++) {
    assert(rondo_graph_find(capture->graph, frontier->items[i], &slot) == RONDO_OK);
    for (size_t k = 0; k < i && i < FEW_NODES; k++) assert(frontier->items[k].id != frontier->items[i].id);
  }
#endif
}

/* Beginning ------------------------------------------------------------------------------------------------------- */

static uint64_t next_id(void) {
  static _Atomic uint64_t last;
  return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

static rondo_status check_begin(const char *call, rondo_stream *stream, rondo_capture_mode mode) {
  RONDO_TRY(rondo_check_call(call, "the stream", stream));
  RONDO_TRY(rondo_device_require_own(call, stream->device));
  RONDO_TRY(rondo_capture_mode_check(call, mode));
  const rondo_capture *capture = rondo_stream_find_capture(stream);
  if (capture != NULL)
    return rondo_fail(RONDO_CAPTURE_REFUSED, RONDO_REASON_ALREADY_CAPTURING,
                      "%s: %s is part of the capture that began on %s: end that capture first", call, stream->label,
                      capture->origin_name);
  return RONDO_OK;
}

/* The device's allocator would not do: an event of another device can retain the capture after this device was closed
 * and its allocator is gone. */
static rondo_status make_capture(rondo_stream *stream, rondo_capture_mode mode, rondo_capture **out) {
  rondo_device *device = stream->device;
  const rondo_allocator libc = rondo_allocator_default();
  rondo_capture *capture;
  RONDO_TRY(rondo_allocate_items(&libc, 1, sizeof *capture, &capture));
  *capture = (rondo_capture){.allocator = device->allocator,
                             .device = device,
                             .id = next_id(),
                             .origin = stream,
                             .thread = rondo_thread_id(),
                             .mode = mode};
  atomic_init(&capture->references, 1);
  atomic_init(&capture->state, RONDO_CAPTURE_ACTIVE);
  memcpy(capture->origin_name, stream->label, sizeof capture->origin_name);
  *out = capture;
  return RONDO_OK;
}

/* The creator's reference, and the memory of the device. What is left knows that the capture is over. */
static void abandon(rondo_capture *capture) {
  rondo_array_free(&capture->allocator, &capture->driver_frontier);
  rondo_capture_release(capture);
}

/* Begins a capture whose first node depends on the stream's frontier. `is_given`: the graph is the user's. On failure
 * no capture has begun. */
static rondo_status start(rondo_stream *stream, rondo_capture_mode mode, rondo_graph *graph, bool is_given) {
  rondo_capture *capture;
  assert(rondo_stream_capture(stream) == NULL);
  RONDO_TRY(rondo_graph_own_nodes(graph));
  RONDO_TRY(make_capture(stream, mode, &capture));
  capture->graph = graph;
  capture->into_given = is_given;
  const rondo_status status = rondo_capture_begin_driver(capture);
  if (status != RONDO_OK) {
    abandon(capture);
    return status;
  }
  graph->captures++;
  stream->last = (rondo_node){0};
  rondo_capture_list_add(capture);
  return RONDO_OK;
}

/* Begins in an empty graph, which is destroyed on failure. */
static rondo_status start_in_new(rondo_stream *stream, rondo_capture_mode mode, rondo_graph *graph) {
  stream->frontier.count = 0;
  const rondo_status status = start(stream, mode, graph, false);
  if (status != RONDO_OK) rondo_graph_free(graph);
  return status;
}

static rondo_status begin(const char *call, rondo_stream *stream, const rondo_capture_options *options) {
  rondo_graph *graph;
  RONDO_TRY(check_begin(call, stream, options->mode));
  const rondo_graph_options graph_options = {RONDO_GRAPH_OPTIONS_INIT, .name = stream->name,
                                             .profile = options->profile, .relocate = options->relocate};
  RONDO_TRY(rondo_build_graph(call, stream->device, &graph_options, &graph));
  return start_in_new(stream, options->mode, graph);
}

rondo_status rondo_capture_begin_in_arena(rondo_stream *stream, rondo_capture_mode mode, rondo_arena_setting *setting) {
  const char *const call = "a recording";
  rondo_address_space *space;
  rondo_profile *profile;
  rondo_graph *graph;
  RONDO_TRY(check_begin(call, stream, mode));
  RONDO_TRY(rondo_require_device(call, "the arena", stream->device, rondo_arena_device(setting->arena)));
  RONDO_TRY(rondo_arena_begin(setting, &space, &profile));
  rondo_status status = rondo_build_graph_in(stream->device, stream->name, space, profile, false, &graph);
  if (status == RONDO_OK) status = start_in_new(stream, mode, graph);
  if (profile != NULL) rondo_profile_release(profile);
  rondo_address_space_release(space);
  return status;
}

rondo_status rondo_capture_begin(rondo_stream *stream, rondo_capture_mode mode) {
  return begin("rondo_capture_begin", stream, &(rondo_capture_options){.mode = mode});
}

rondo_status rondo_capture_begin_with(rondo_stream *stream, const rondo_capture_options *options) {
  rondo_capture_options known;
  RONDO_TRY(rondo_versioned_read("rondo_capture_options", options, &known, sizeof known));
  return begin("rondo_capture_begin_with", stream, &known);
}

/* Ends the capture. Destroys its graph unless `keep_graph` is set or the user passed the graph. */
static void finish(rondo_capture *capture, bool keep_graph) {
  rondo_graph *graph = capture->graph;
  rondo_capture_list_remove(capture);
  rondo_capture_release_generators(capture);
  assert(graph->captures > 0);
  graph->captures--;
  const bool is_kept = keep_graph || capture->into_given;
  if (keep_graph) rondo_graph_check(graph);
  abandon(capture);
  if (!is_kept) rondo_graph_free(graph); /* it kept the device open */
}

/* Ends the capture and the driver's capture. If `status` is a failure, or ending fails, the graph is not kept. */
static rondo_status end(rondo_capture *capture, rondo_status status) {
  status = rondo_capture_end_driver(capture, status);
  finish(capture, status == RONDO_OK);
  return status;
}

/* Sets the frontier to nodes of the graph, or adds them to it, each once. */
static rondo_status set_frontier(const char *call, rondo_stream *stream, const rondo_graph *graph,
                                 const rondo_node *nodes, size_t count, bool replace) {
  if (nodes == NULL && count > 0) return rondo_refuse_null(call, "the list of nodes");
  for (size_t i = 0; i < count; i++) {
    uint32_t slot;
    RONDO_TRY(rondo_fail_context(rondo_graph_find(graph, nodes[i], &slot), "%s: nodes[%zu]", call, i));
  }
  const uintptr_t begin = (uintptr_t)stream->frontier.items, at = (uintptr_t)nodes;
  const bool own = count > 0 && at >= begin && at < begin + stream->frontier.count * sizeof *nodes;
  if (own && !replace) return RONDO_OK; /* they are the frontier itself, from rondo_capture_get_info */
  const size_t kept = replace ? 0 : stream->frontier.count;
  RONDO_TRY(rondo_array_reserve(&stream->device->allocator, &stream->frontier, kept + count));
  stream->frontier.count = kept;
  frontier_unite(&stream->frontier, nodes, count);
  return RONDO_OK;
}

static rondo_status check_target(const char *call, const rondo_stream *stream, const rondo_graph *graph) {
  if (graph == NULL) return rondo_refuse_null(call, "the graph");
  RONDO_TRY(rondo_require_device(call, "the graph", stream->device, graph->device));
  char label[RONDO_LABEL_BYTES];
  if (graph->captures == 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_CAPTURING_INTO,
                    "%s: another stream captures into %s: end that capture first", call,
                    rondo_graph_label(label, graph));
}

rondo_status rondo_capture_begin_to_graph(rondo_stream *stream, rondo_graph *graph, const rondo_node *dependencies,
                                          size_t count, rondo_capture_mode mode) {
  const char *const call = "rondo_capture_begin_to_graph";
  RONDO_TRY(check_begin(call, stream, mode));
  RONDO_TRY(check_target(call, stream, graph));
  RONDO_TRY(set_frontier(call, stream, graph, dependencies, count, true));
  RONDO_TRY(start(stream, mode, graph, true));
  const rondo_status status = rondo_capture_tell_frontier(stream, call);
  return status == RONDO_OK ? RONDO_OK : end(rondo_stream_capture(stream), status);
}

/* Adding ---------------------------------------------------------------------------------------------------------- */

/* Work runs on the device of its stream, which has not checked it yet. Host functions, event nodes and child graphs do
 * not depend on it. */
static rondo_status set_device(const rondo_stream *stream, const char *call, const rondo_graph *graph,
                               rondo_node_params *params) {
  const bool is_kernel = params->kind == RONDO_NODE_KERNEL;
  if (is_kernel && params->as.kernel.kernel != NULL && params->as.kernel.kernel->device != stream->device)
    return rondo_node_params_check(call, stream->device, params);
  if (rondo_node_names_semaphores(params)) return rondo_node_params_check(call, stream->device, params);
  const bool is_placed = is_kernel || params->kind == RONDO_NODE_COPY || params->kind == RONDO_NODE_FILL ||
                         params->kind == RONDO_NODE_MEMORY_OPERATIONS || rondo_node_is_memory(params);
  if (stream->device != graph->device && is_placed) params->device = stream->device;
  return RONDO_OK;
}

rondo_status rondo_capture_add(rondo_stream *stream, const char *call, rondo_node_params *params) {
  rondo_capture *capture = rondo_stream_capture(stream);
  rondo_node node;
  RONDO_TRY(rondo_capture_require_active(capture, call));
  RONDO_TRY(set_device(stream, call, capture->graph, params));
  RONDO_TRY(rondo_capture_follow(stream, call));
  RONDO_TRY(rondo_array_reserve(&stream->device->allocator, &stream->frontier, 1));
  RONDO_TRY(rondo_build_node(call, capture->graph, stream->frontier.items, stream->frontier.count, params, &node));
  RONDO_TRY(rondo_capture_tell(stream, call, node));
  stream->frontier.items[0] = node;
  stream->frontier.count = 1;
  stream->last = node;
  check_frontier(stream);
  return RONDO_OK;
}

/* Events ---------------------------------------------------------------------------------------------------------- */

rondo_status rondo_capture_record_event(rondo_stream *stream, rondo_event *event) {
  rondo_capture *capture = rondo_stream_capture(stream);
  RONDO_TRY(rondo_capture_require_active(capture, "rondo_event_record"));
  RONDO_TRY(rondo_capture_follow(stream, "rondo_event_record"));
  RONDO_TRY(rondo_array_reserve(&event->device->allocator, &event->frontier, stream->frontier.count));
  rondo_capture_retain(capture);
  rondo_event_leave_capture(event);
  event->capture = capture;
  frontier_unite(&event->frontier, stream->frontier.items, stream->frontier.count);
  check_frontier(stream);
  return rondo_capture_tell_record(stream, event);
}

/* The stream waits for an event from outside its capture: the capture becomes invalid. */
static rondo_status refuse_isolation(rondo_stream *stream, rondo_capture *capture) {
  RONDO_TRY(rondo_capture_require_active(capture, "rondo_stream_wait_event"));
  rondo_capture_invalidate(capture, "rondo_stream_wait_event for an event recorded outside the capture");
  rondo_capture_watch_note_wait(capture, "that was not recorded in it",
                                "record the event on a stream of the call, or let its stream wait before the call");
  return rondo_fail(RONDO_CAPTURE_REFUSED, RONDO_REASON_ISOLATION,
                    "rondo_stream_wait_event: %s captures and cannot wait for an event that was never recorded, or "
                    "recorded outside its capture, which is now invalid: record the event in the capture, wait before "
                    "it begins, or use rondo_stream_wait_event_external",
                    stream->label);
}

static rondo_status refuse_merge(rondo_stream *stream, rondo_capture *own, rondo_capture *other) {
  RONDO_TRY(rondo_capture_require_active(own, "rondo_stream_wait_event"));
  rondo_capture_invalidate(own, "rondo_stream_wait_event for an event of the capture on %s", other->origin_name);
  rondo_capture_invalidate(other, "rondo_stream_wait_event by a stream of the capture on %s", own->origin_name);
  rondo_capture_watch_note_wait(own, "of another capture", "leave the capture of the event out of the body");
  rondo_capture_watch_note_wait(other, "of another capture", "leave the capture that waits out of the body");
  return rondo_fail(RONDO_CAPTURE_REFUSED, RONDO_REASON_MERGE,
                    "rondo_stream_wait_event: %s is part of the capture on %s, the event of the one on %s; both are "
                    "now invalid: captures cannot be merged, end one first",
                    stream->label, own->origin_name, other->origin_name);
}

static rondo_status refuse_over(const rondo_stream *stream, const rondo_capture *capture) {
  return rondo_fail(RONDO_CAPTURE_REFUSED, RONDO_REASON_CAPTURED_EVENT,
                    "rondo_stream_wait_event: the event was last recorded in the capture on %s, which is over, so %s "
                    "has nothing to wait for: record it again, or capture rondo_event_record_external",
                    capture->origin_name, stream->label);
}

/* A recording in an arena has the memory of one device. */
static rondo_status check_join(const rondo_stream *stream, const rondo_capture *capture) {
  if (rondo_arena_of(capture->graph) == NULL) return RONDO_OK;
  return rondo_require_device("rondo_stream_wait_event", "the event, which is being recorded for replays,",
                              stream->device, capture->device);
}

static rondo_status join(rondo_stream *stream, rondo_event *event) {
  rondo_capture *capture = event->capture;
  RONDO_TRY(check_join(stream, capture));
  RONDO_TRY(rondo_array_reserve(&stream->device->allocator, &stream->frontier, event->frontier.count));
  RONDO_TRY(rondo_capture_list_join(capture, stream));
  stream->frontier.count = 0;
  stream->last = (rondo_node){0};
  frontier_unite(&stream->frontier, event->frontier.items, event->frontier.count);
  return rondo_capture_tell_wait(stream, event);
}

rondo_status rondo_capture_wait_event(rondo_stream *stream, rondo_event *event) {
  rondo_capture *own = rondo_stream_capture(stream), *other = event->capture;
  assert(own != NULL || other != NULL);
  const bool over = other != NULL && atomic_load_explicit(&other->state, memory_order_acquire) == RONDO_CAPTURE_OVER;
  if (other == NULL || (over && own != NULL)) return refuse_isolation(stream, own);
  if (over) return refuse_over(stream, other);
  if (own != NULL && own != other) return refuse_merge(stream, own, other);
  RONDO_TRY(rondo_capture_require_active(other, "rondo_stream_wait_event"));
  if (own == NULL) return join(stream, event);
  RONDO_TRY(rondo_array_reserve(&stream->device->allocator, &stream->frontier,
                                stream->frontier.count + event->frontier.count));
  frontier_unite(&stream->frontier, event->frontier.items, event->frontier.count);
  return rondo_capture_tell_wait(stream, event);
}

/* Ending ---------------------------------------------------------------------------------------------------------- */

static rondo_status fail_unjoined(const rondo_capture *capture, const rondo_stream *stream) {
  const uint32_t slot = rondo_node_number(stream->last);
  assert(stream->last.id != 0 && stream != capture->origin);
  char node[RONDO_LABEL_BYTES];
  return rondo_fail_node(
      RONDO_CAPTURE_REFUSED, RONDO_REASON_UNJOINED, slot,
      "rondo_capture_end: %s was forked and not joined again, its last node is %s: record an event there "
      "and let %s wait for it before the end",
      stream->label, rondo_node_label(node, &rondo_graph_at(capture->graph, slot)->params, slot), capture->origin_name);
}

/* Marks the predecessors of the origin's frontier. Each member's last node must be among them (C5). */
static rondo_status find_unjoined(const rondo_capture *capture, bool *marks, uint32_t *slots,
                                  const rondo_stream **out) {
  const rondo_frontier *frontier = &capture->origin->frontier;
  for (size_t i = 0; i < frontier->count; i++) slots[i] = rondo_node_number(frontier->items[i]);
  RONDO_TRY(rondo_graph_mark_ancestors(capture->graph, slots, frontier->count, marks));
  for (const rondo_stream *member = capture->members; member != NULL && *out == NULL; member = member->next_member)
    if (member != capture->origin && member->last.id != 0 && !marks[rondo_node_number(member->last)]) *out = member;
  return RONDO_OK;
}

static rondo_status check_joined(const rondo_capture *capture, const rondo_stream **out) {
  *out = NULL;
  if (capture->members->next_member == NULL) return RONDO_OK;
  const size_t nodes = capture->graph->nodes.count, ends = capture->origin->frontier.count;
  void *marks = NULL, *slots = NULL;
  rondo_status status = rondo_allocate(&capture->allocator, nodes, sizeof(bool), &marks);
  if (status == RONDO_OK) status = rondo_allocate(&capture->allocator, ends, sizeof(uint32_t), &slots);
  if (status == RONDO_OK) status = find_unjoined(capture, marks, slots, out);
  rondo_release(&capture->allocator, slots, ends, sizeof(uint32_t));
  rondo_release(&capture->allocator, marks, nodes, sizeof(bool));
  return status;
}

/* Checks that the capture may end on this stream and thread: anywhere once its origin is destroyed. */
static rondo_status check_origin(const char *call, const rondo_stream *stream, const rondo_capture *capture) {
  const rondo_stream *origin = capture->origin;
  if (origin == NULL) return RONDO_OK;
  if (stream != origin)
    return rondo_fail(RONDO_CAPTURE_REFUSED, RONDO_REASON_UNMATCHED_STREAM,
                      "%s: %s joined a capture that began on %s: end it there", call, stream->label,
                      capture->origin_name);
  if (capture->mode != RONDO_CAPTURE_RELAXED && capture->thread != rondo_thread_id())
    return rondo_fail(RONDO_CAPTURE_REFUSED, RONDO_REASON_WRONG_THREAD,
                      "%s: the capture on %s was begun by another thread: end it there, or begin it with "
                      "RONDO_CAPTURE_RELAXED",
                      call, capture->origin_name);
  if (rondo_stream_require_thread(stream) == RONDO_OK) return RONDO_OK;
  return rondo_fail(RONDO_CAPTURE_REFUSED, RONDO_REASON_WRONG_THREAD,
                    "%s: the capture on %s, the default stream of another thread, was begun there: end it on that "
                    "thread, in any mode, or capture a stream that was created",
                    call, capture->origin_name);
}

static rondo_status check_end(const char *call, const rondo_stream *stream, const rondo_capture *capture,
                              rondo_graph **out_graph) {
  if (capture == NULL)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURING, "%s: %s is not capturing", call, stream->label);
  RONDO_TRY(check_origin(call, stream, capture));
  if (out_graph == NULL && !capture->into_given) return rondo_refuse_null(call, "out_graph");
  return RONDO_OK;
}

/* Imports the rest of the capture and checks that everything is joined. */
static rondo_status finish_order(const char *call, rondo_stream *stream, rondo_capture *capture) {
  const rondo_stream *unjoined = NULL;
  RONDO_TRY(rondo_capture_require_sound(capture, call));
  const rondo_status status = rondo_capture_follow(stream, call);
  if (status == RONDO_CAPTURE_INVALID) return rondo_capture_require_sound(capture, call);
  if (status == RONDO_OK) RONDO_TRY(check_joined(capture, &unjoined));
  return status == RONDO_OK && unjoined != NULL ? fail_unjoined(capture, unjoined) : status;
}

rondo_status rondo_capture_end(rondo_stream *stream, rondo_graph **out_graph) {
  const char *const call = "rondo_capture_end";
  if (out_graph != NULL) *out_graph = NULL;
  RONDO_TRY(rondo_check_call(call, "the stream", stream));
  RONDO_TRY(rondo_device_require_own(call, stream->device));
  rondo_capture *capture = rondo_stream_find_capture(stream);
  RONDO_TRY(check_end(call, stream, capture, out_graph));
  rondo_graph *graph = capture->graph;
  const rondo_status status = end(capture, finish_order(call, stream, capture));
  if (status == RONDO_OK && out_graph != NULL) *out_graph = graph;
  return status;
}

/* Ends the driver's capture while its stream still exists. */
static void abandon_driver(rondo_capture *capture) {
  rondo_saved_error before;
  rondo_error_save(&before);
  rondo_status_ignore(rondo_capture_end_driver(capture, RONDO_CAPTURE_INVALID), "the stream is destroyed");
  rondo_error_restore(&before);
}

/* Until it ends, the capture refuses work on its other streams (C10). Destroying the last of them ends it. */
void rondo_capture_forget_stream(rondo_stream *stream) {
  rondo_capture *capture = rondo_stream_capture(stream);
  rondo_capture_invalidate(capture, "the destruction of %s", stream->label);
  if (stream == capture->origin) abandon_driver(capture);
  if (rondo_capture_list_leave(capture, stream)) finish(capture, false);
}

/* Information ----------------------------------------------------------------------------------------------------- */

/* Updates the stream's frontier. A failure shows in the capture's state. */
static rondo_status update_frontier(rondo_stream *stream, const rondo_capture *capture) {
  if (atomic_load_explicit(&capture->state, memory_order_acquire) != RONDO_CAPTURE_ACTIVE) return RONDO_OK;
  const rondo_status status = rondo_capture_follow(stream, "rondo_capture_get_info");
  return status == RONDO_CAPTURE_INVALID ? RONDO_OK : status;
}

rondo_status rondo_capture_get_info(const rondo_stream *stream, rondo_capture_info *out_info) {
  RONDO_TRY(rondo_check_call("rondo_capture_get_info", "the stream", stream));
  RONDO_TRY(rondo_device_require_own("rondo_capture_get_info", stream->device));
  if (out_info == NULL) return rondo_refuse_null("rondo_capture_get_info", "out_info");
  rondo_capture_info info = {.struct_size = sizeof info};
  rondo_stream *own = (rondo_stream *)(uintptr_t)stream;
  const rondo_capture *capture = rondo_stream_find_capture(own);
  if (capture != NULL) {
    RONDO_TRY(update_frontier(own, capture));
    info.state = (rondo_capture_state)atomic_load_explicit(&capture->state, memory_order_acquire);
    info.id = capture->id;
  }
  if (info.state == RONDO_CAPTURE_ACTIVE) {
    info.graph = capture->graph;
    info.frontier = stream->frontier.items;
    info.frontier_count = stream->frontier.count;
  }
  return rondo_versioned_write("rondo_capture_info", &info, out_info, sizeof info);
}

rondo_status rondo_capture_set_frontier(rondo_stream *stream, const rondo_node *nodes, size_t count, bool replace) {
  const char *const call = "rondo_capture_set_frontier";
  RONDO_TRY(rondo_check_call(call, "the stream", stream));
  const rondo_capture *capture = rondo_stream_find_capture(stream);
  if (capture == NULL)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURING, "%s: %s is not capturing", call, stream->label);
  RONDO_TRY(rondo_capture_require_active(capture, call));
  if (!replace) RONDO_TRY(rondo_capture_follow(stream, call));
  RONDO_TRY(set_frontier(call, stream, capture->graph, nodes, count, replace));
  if (!frontier_has(&stream->frontier, stream->last)) stream->last = (rondo_node){0};
  check_frontier(stream);
  return rondo_capture_tell_frontier(stream, call);
}
