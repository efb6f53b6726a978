/* SPDX-License-Identifier: MIT
 * Cutting collectives into pieces, and enqueueing the pieces: by the stream's own calls, which also capture them, or,
 * if there are many, as one graph. A queue has capacity for some hundred pieces of work, and a thread that drives
 * several ranks has to reach the next rank before what it enqueued can run.
 */
#include <rondo/exec.h>
#include <stdio.h>

#include "exec/capture/capture_internal.h"
#include "exec/collective/collective_reduce.h"
#include "exec/collective/exchange.h"
#include "exec/patch/frozen_values.h"

enum { MOST_QUEUED_PIECES = 4 };
static const uint64_t CAPTURED = UINT64_C(1) << 63; /* in tags */

rondo_status rondo_exchange_check(const rondo_link *link, const char *call, const rondo_collective *work) {
  (void)link;
  if (work->reduction == 0 || rondo_reduce_find(work->type, work->reduction) != NULL) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_TYPE,
                    "%s: CPU devices do not reduce %s: convert to f32, or gather and reduce yourself", call,
                    rondo_type_name(work->type));
}

static rondo_status refuse_failed(const rondo_exchange *exchange, const char *call) {
  while (atomic_load(&exchange->failed) == 1) rondo_yield();
  return rondo_fail(RONDO_INVALID_STATE, exchange->failure.reason,
                    "%s: the communicator has failed before: destroy it and make another group: %s", call,
                    exchange->failure.message);
}

/* Works of a piece ------------------------------------------------------------------------------------------------ */

/* A collective on its way to the stream, or into a graph, with the piece in hand. */
typedef struct sending {
  rondo_exchange *exchange;
  rondo_stream *stream;
  rondo_capture *capture; /* that the stream is part of; NULL */
  rondo_graph *graph;     /* that the pieces are put into; NULL: the stream's own calls */
  rondo_node last;        /* there */
  const char *call;
  const rondo_collective *work;
  size_t most; /* elements of a piece */
  rondo_piece piece;
  size_t element, part; /* bytes */
  unsigned works;       /* so far */
  uint64_t pieces;      /* whole ones so far */
} sending;

static rondo_status add_node(sending *s, rondo_node_params *params) {
  rondo_node node;
  RONDO_TRY(rondo_graph_add(s->graph, &s->last, s->works > 0 ? 1 : 0, params, &node));
  s->last = node;
  return RONDO_OK;
}

static rondo_status launch(sending *s, unsigned which, size_t bytes, const void *const *args, const size_t *arg_bytes,
                           size_t arg_count) {
  static const char *const steps[] = {"send", "arrive", "receive", "finish"};
  const size_t blocks = bytes == 0 ? 1 : (bytes + RONDO_EXCHANGE_BLOCK - 1) / RONDO_EXCHANGE_BLOCK;
  rondo_kernel *kernel = s->exchange->kernels[which];
  const rondo_grid grid = {.x = (uint32_t)blocks};
  char name[64];
  (void)snprintf(name, sizeof name, "%s (%s)", rondo_operation_name(s->work->operation), steps[which]);
  const rondo_launch_options options = {RONDO_LAUNCH_OPTIONS_INIT, .name = name, .arg_bytes = arg_bytes};
  const rondo_kernel_node node = {
      .kernel = kernel, .grid = grid, .args = args, .arg_count = arg_count, .arg_bytes = arg_bytes};
  rondo_node_params params = {.kind = RONDO_NODE_KERNEL, .name = name, .as.kernel = node};
  rondo_launch_values *const paused = rondo_launch_values_pause(); /* a piece's number is meant to change */
  const rondo_status status =
      s->graph != NULL ? add_node(s, &params) : rondo_launch_with(s->stream, kernel, grid, args, arg_count, &options);
  rondo_launch_values_resume(paused);
  if (status == RONDO_OK) s->works++;
  return rondo_fail_context(status, "%s", s->call);
}

/* The kernels that have no buffer. */
static rondo_status launch_bare(sending *s, unsigned which) {
  const void *exchange = s->exchange;
  const size_t bytes[] = {sizeof *s->exchange, 0};
  return launch(s, which, 0, (const void *const[]){&exchange, &s->piece}, bytes, 2);
}

static rondo_status queue_send(sending *s) {
  const bool scatters = s->work->operation == RONDO_REDUCE_SCATTER;
  const size_t parts = scatters ? s->exchange->group->world_size : 1, bytes = parts * s->part;
  if (s->work->src == NULL) return launch_bare(s, RONDO_EXCHANGE_ARRIVE);
  const void *exchange = s->exchange;
  const char *src = (const char *)s->work->src + (scatters ? 0 : (size_t)s->piece.first * s->element);
  const size_t arg_bytes[] = {scatters ? parts * s->work->count * s->element : s->part, sizeof *s->exchange, 0};
  const bool is_small = bytes <= RONDO_EXCHANGE_BLOCK;
  if (is_small) s->piece.flags |= RONDO_PIECE_ARRIVES;
  RONDO_TRY(launch(s, RONDO_EXCHANGE_SEND, bytes, (const void *const[]){&src, &exchange, &s->piece}, arg_bytes, 3));
  return is_small ? RONDO_OK : launch_bare(s, RONDO_EXCHANGE_ARRIVE);
}

static rondo_status queue_wait(sending *s) {
  rondo_node_params params = {.kind = RONDO_NODE_EVENT_WAIT, .name = "all ranks", .as.event = &s->exchange->event};
  if (s->graph != NULL) return add_node(s, &params);
  if (s->capture != NULL) return rondo_capture_add(s->stream, s->call, &params);
  return s->stream->queue->ops->wait(s->stream->queue, s->exchange->event.driver);
}

/* The root of a broadcast in place has it already. */
static bool receives(const rondo_collective *work) {
  return work->dst != NULL && (work->operation != RONDO_BROADCAST || work->dst != work->src);
}

static rondo_status queue_receive(sending *s) {
  const bool gathers = s->work->operation == RONDO_ALL_GATHER;
  const size_t parts = gathers ? s->exchange->group->world_size : 1, bytes = parts * s->part;
  if (!receives(s->work)) return launch_bare(s, RONDO_EXCHANGE_FINISH);
  const void *exchange = s->exchange;
  char *dst = (char *)s->work->dst + (gathers ? 0 : (size_t)s->piece.first * s->element);
  const size_t arg_bytes[] = {sizeof *s->exchange, gathers ? parts * s->work->count * s->element : s->part, 0};
  const bool is_small = bytes <= RONDO_EXCHANGE_BLOCK;
  if (is_small) s->piece.flags |= RONDO_PIECE_FINISHES;
  RONDO_TRY(launch(s, RONDO_EXCHANGE_RECEIVE, bytes, (const void *const[]){&exchange, &dst, &s->piece}, arg_bytes, 3));
  return is_small ? RONDO_OK : launch_bare(s, RONDO_EXCHANGE_FINISH);
}

/* Pieces ---------------------------------------------------------------------------------------------------------- */

static uint64_t next_tag(const sending *s) {
  rondo_exchange *exchange = s->exchange;
  if (s->capture == NULL) return ++exchange->tags;
  if (exchange->capture_id != s->capture->id) exchange->captured_tags = 0;
  exchange->capture_id = s->capture->id;
  return CAPTURED | ++exchange->captured_tags;
}

static rondo_status queue_piece(sending *s, size_t first) {
  const size_t left = s->work->count - first;
  s->piece = (rondo_piece){.tag = next_tag(s),
                           .count = s->work->count,
                           .first = first,
                           .length = left < s->most ? left : s->most,
                           .operation = (uint32_t)s->work->operation,
                           .type = (uint32_t)s->work->type,
                           .reduction = (uint32_t)s->work->reduction,
                           .root = s->work->root,
                           .flags = s->capture != NULL ? 0 : RONDO_PIECE_IS_QUEUED};
  s->part = (size_t)s->piece.length * s->element;
  RONDO_TRY(queue_send(s));
  RONDO_TRY(queue_wait(s));
  RONDO_TRY(queue_receive(s));
  s->pieces++;
  return RONDO_OK;
}

static rondo_status queue_pieces(sending *s) {
  size_t first = 0;
  do {
    RONDO_TRY(queue_piece(s, first));
    first += (size_t)s->piece.length;
  } while (first < s->work->count);
  return RONDO_OK;
}

/* One that is queued by half would never end: then the exchange fails, or the capture is invalid. */
static void break_off(const sending *s) {
  if (s->capture != NULL)
    rondo_capture_invalidate(s->capture, "%s, of which a part was captured when it failed", s->call);
  else
    rondo_exchange_fail(s->exchange, RONDO_REASON_ABORTED, "%s failed when a part of it was enqueued", s->call);
}

static rondo_status run_by_calls(sending *s) {
  const rondo_status status = queue_pieces(s);
  if (s->capture == NULL) atomic_fetch_add(&s->exchange->queued, s->pieces);
  if (status != RONDO_OK && s->works > 0) break_off(s);
  return status;
}

static rondo_status launch_graph(sending *s) {
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .skip_verify = true};
  rondo_exec *exec;
  RONDO_TRY(queue_pieces(s));
  RONDO_TRY(rondo_instantiate(s->graph, &options, &exec));
  atomic_fetch_add(&s->exchange->queued, s->pieces);
  const rondo_status status = rondo_exec_launch(exec, s->stream);
  if (status != RONDO_OK) atomic_fetch_sub(&s->exchange->queued, s->pieces);
  rondo_exec_destroy(exec);
  return status;
}

/* Nothing is queued when it fails. */
static rondo_status run_as_graph(sending *s) {
  const rondo_graph_options options = {RONDO_GRAPH_OPTIONS_INIT, .name = rondo_operation_name(s->work->operation)};
  RONDO_TRY(rondo_graph_create(s->exchange->device, &options, &s->graph));
  const rondo_status status = launch_graph(s);
  rondo_status_ignore(rondo_graph_destroy(s->graph), "it is no child, and nobody captures into it");
  return rondo_fail_context(status, "%s", s->call);
}

static size_t elements_a_piece(const rondo_exchange *exchange, const rondo_collective *work) {
  const size_t element = rondo_type_bytes(work->type);
  if (work->operation == RONDO_BARRIER) return 1;
  return exchange->group->piece_bytes /
         (work->operation == RONDO_REDUCE_SCATTER ? element * exchange->group->world_size : element);
}

static rondo_status reserve(const sending *s) {
  const size_t count = s->work->count < s->most ? s->work->count : s->most;
  const size_t parts = s->work->operation == RONDO_REDUCE_SCATTER ? s->exchange->group->world_size : 1;
  if (s->work->src == NULL) return RONDO_OK;
  return rondo_fail_context(rondo_group_reserve(s->exchange->group, count * s->element * parts), "%s", s->call);
}

rondo_status rondo_exchange_run(rondo_link *link, rondo_stream *stream, const char *call,
                                const rondo_collective *work) {
  sending s = {.exchange = (rondo_exchange *)link,
               .stream = stream,
               .capture = rondo_stream_find_capture(stream),
               .call = call,
               .work = work,
               .element = rondo_type_bytes(work->type)};
  if (rondo_exchange_has_failed(s.exchange)) return refuse_failed(s.exchange, call);
  s.most = elements_a_piece(s.exchange, work);
  RONDO_TRY(reserve(&s));
  if (s.capture == NULL && work->count / s.most > MOST_QUEUED_PIECES) return run_as_graph(&s);
  return run_by_calls(&s);
}
