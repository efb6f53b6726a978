/* SPDX-License-Identifier: MIT
 * Making exchanges, cutting collectives into pieces and queueing these, and the end of it all.
 */
#include "exec/collective/exchange.h"

#include <stdio.h>

#include "exec/capture_internal.h"
#include "exec/collective/reduce.h"

static rondo_exchange *exchange_of(rondo_link *link) { return (rondo_exchange *)link; }

/* Life ------------------------------------------------------------------------------------------------------------ */

/* Behind the last executable: nothing of a device can come here any more. */
static void end(void *user) {
  rondo_exchange *exchange = user;
  if (exchange->has_monitor) {
    atomic_store(&exchange->stop, true);
    rondo_group_ring(exchange->group, exchange->group->rank);
    rondo_thread_join(exchange->monitor);
  }
  rondo_group_leave(exchange->group);
  const rondo_allocator allocator = exchange->allocator;
  rondo_release_text(&allocator, exchange->name);
  rondo_release(&allocator, exchange, 1, sizeof *exchange);
}

/* The last hold is gone. */
static void end_event(rondo_event *event) { event->driver->ops->destroy(event->driver); }

/* Gives up what the user holds. */
static void release(rondo_exchange *exchange) {
  for (int i = 0; i < RONDO_EXCHANGE_KERNELS; i++) rondo_kernel_release(exchange->kernels[i]);
  rondo_event_let_go(&exchange->event);
}

static rondo_status start(rondo_exchange *exchange) {
  for (unsigned i = 0; i < RONDO_EXCHANGE_KERNELS; i++)
    RONDO_TRY(rondo_exchange_make_kernel(exchange, i, &exchange->kernels[i]));
  RONDO_TRY(rondo_thread_start(&exchange->monitor, "rondo-ranks", rondo_exchange_watch, exchange));
  exchange->has_monitor = true;
  return RONDO_OK;
}

/* Owns the group when it succeeds. */
static rondo_status create(const rondo_communicator_plan *plan, rondo_group *group, rondo_link **out) {
  rondo_device *device = plan->device;
  rondo_exchange *exchange;
  RONDO_TRY(rondo_allocate_items(&device->allocator, 1, sizeof *exchange, &exchange));
  *exchange = (rondo_exchange){.link = {&rondo_exchange_transport},
                               .allocator = device->allocator,
                               .device = device,
                               .timeout_ns = plan->timeout_ns};
  exchange->event = (rondo_event){.device = device, .recorded = true, .ended = end_event};
  atomic_init(&exchange->event.holds, 1);
  rondo_status status = rondo_allocate_text(&device->allocator, plan->name, &exchange->name);
  if (status == RONDO_OK) status = device->ops->semaphore->create(device, end, exchange, &exchange->event.driver);
  if (status != RONDO_OK) {
    rondo_release_text(&device->allocator, exchange->name);
    rondo_release(&device->allocator, exchange, 1, sizeof *exchange);
    return status;
  }
  exchange->group = group;
  status = start(exchange);
  if (status == RONDO_OK) {
    *out = &exchange->link;
    return RONDO_OK;
  }
  exchange->group = NULL;
  release(exchange);
  return status;
}

static rondo_status exchange_prepare(rondo_device *device, bool is_first,
                                     unsigned char token[RONDO_GROUP_TOKEN_BYTES]) {
  (void)device;
  (void)is_first;
  (void)token;
  return RONDO_OK;
}

static rondo_status exchange_open(const rondo_communicator_plan *plans, rondo_group **groups, uint32_t count,
                                  rondo_link **out) {
  for (uint32_t i = 0; i < count; i++) {
    const rondo_status status = create(&plans[i], groups[i], &out[i]);
    if (status == RONDO_OK) continue;
    for (uint32_t k = 0; k < i; k++) {
      release(exchange_of(out[k]));
      groups[k] = NULL;
    }
    return status;
  }
  return RONDO_OK;
}

static rondo_status exchange_close(rondo_link *link) {
  rondo_exchange *exchange = exchange_of(link);
  for (;;) {
    const uint32_t signal = atomic_load(&exchange->done_signal);
    if (atomic_load(&exchange->done) == atomic_load(&exchange->queued)) break;
    rondo_futex_wait(&exchange->done_signal, signal);
  }
  release(exchange);
  return RONDO_OK;
}

static rondo_status exchange_break_off(rondo_link *link) {
  rondo_exchange_fail(exchange_of(link), RONDO_REASON_ABORTED, "rondo_communicator_abort was called");
  return RONDO_OK;
}

static void exchange_info(const rondo_link *link, rondo_communicator_info *out) {
  const rondo_exchange *exchange = (const rondo_exchange *)link;
  out->failed = rondo_exchange_has_failed(exchange);
  out->pieces = atomic_load(&exchange->settled);
  out->shared_bytes = 2 * atomic_load(&exchange->group->reserved_bytes);
}

/* Queueing -------------------------------------------------------------------------------------------------------- */

static rondo_status exchange_check(const rondo_link *link, const char *call, const rondo_collective *work) {
  (void)link;
  if (work->reduction == 0 || rondo_reduce_find(work->type, work->reduction) != NULL) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_TYPE,
                    "%s: CPU devices do not combine %s: convert to f32, or gather and combine yourself", call,
                    rondo_type_name(work->type));
}

static rondo_status refuse_failed(const rondo_exchange *exchange, const char *call) {
  while (atomic_load(&exchange->failed) == 1) rondo_yield();
  return rondo_fail(RONDO_INVALID_STATE, exchange->failure.reason,
                    "%s: the communicator has failed before: destroy it and make another group: %s", call,
                    exchange->failure.message);
}

/* A piece on its way to the stream. */
typedef struct sending {
  rondo_exchange *exchange;
  rondo_stream *stream;
  const char *call;
  const rondo_collective *work;
  rondo_piece piece;
  size_t element, part; /* bytes */
  unsigned launched;    /* kernels of the collective so far */
} sending;

static rondo_status launch(sending *s, unsigned which, size_t bytes, const void *const *args, const size_t *arg_bytes,
                           size_t arg_count) {
  static const char *const steps[] = {"send", "arrive", "receive", "finish"};
  const size_t blocks = bytes == 0 ? 1 : (bytes + RONDO_EXCHANGE_BLOCK - 1) / RONDO_EXCHANGE_BLOCK;
  char name[64];
  (void)snprintf(name, sizeof name, "%s (%s)", rondo_operation_name(s->work->operation), steps[which]);
  const rondo_launch_options options = {RONDO_LAUNCH_OPTIONS_INIT, .name = name, .arg_bytes = arg_bytes};
  const rondo_status status = rondo_launch_with(s->stream, s->exchange->kernels[which],
                                                (rondo_grid){.x = (uint32_t)blocks}, args, arg_count, &options);
  if (status == RONDO_OK) s->launched++;
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

static rondo_status queue_wait(const sending *s) {
  rondo_stream *stream = s->stream;
  if (rondo_stream_find_capture(stream) == NULL)
    return stream->queue->ops->wait(stream->queue, s->exchange->event.driver);
  rondo_node_params params = {.kind = RONDO_NODE_EVENT_WAIT, .name = "all ranks", .as.event = &s->exchange->event};
  return rondo_capture_add(stream, s->call, &params, NULL);
}

static rondo_status queue_receive(sending *s) {
  const bool gathers = s->work->operation == RONDO_ALL_GATHER;
  const size_t parts = gathers ? s->exchange->group->world_size : 1, bytes = parts * s->part;
  const bool has_it = s->work->dst == NULL || s->work->dst == s->work->src; /* of a broadcast: its root in place */
  if (s->work->dst == NULL || (s->work->operation == RONDO_BROADCAST && has_it))
    return launch_bare(s, RONDO_EXCHANGE_FINISH);
  const void *exchange = s->exchange;
  char *dst = (char *)s->work->dst + (gathers ? 0 : (size_t)s->piece.first * s->element);
  const size_t arg_bytes[] = {sizeof *s->exchange, gathers ? parts * s->work->count * s->element : s->part, 0};
  const bool is_small = bytes <= RONDO_EXCHANGE_BLOCK;
  if (is_small) s->piece.flags |= RONDO_PIECE_FINISHES;
  RONDO_TRY(launch(s, RONDO_EXCHANGE_RECEIVE, bytes, (const void *const[]){&exchange, &dst, &s->piece}, arg_bytes, 3));
  return is_small ? RONDO_OK : launch_bare(s, RONDO_EXCHANGE_FINISH);
}

/* One that is queued by half would never end: then the exchange fails, or the capture is invalid. */
static void break_off(const sending *s) {
  rondo_capture *capture = rondo_stream_find_capture(s->stream);
  if (capture != NULL)
    rondo_capture_invalidate(capture, "%s, of which a part was captured when it failed", s->call);
  else
    rondo_exchange_fail(s->exchange, RONDO_REASON_ABORTED, "%s failed when a part of it was queued", s->call);
}

static rondo_status queue_piece(sending *s) {
  const bool is_captured = rondo_stream_find_capture(s->stream) != NULL;
  s->piece.tag = ++s->exchange->tags;
  s->piece.flags = is_captured ? 0 : RONDO_PIECE_IS_QUEUED;
  RONDO_TRY(queue_send(s));
  rondo_status status = queue_wait(s);
  if (!is_captured) atomic_fetch_add(&s->exchange->queued, 1);
  if (status == RONDO_OK) status = queue_receive(s);
  if (status == RONDO_OK) return RONDO_OK;
  if (!is_captured) atomic_fetch_sub(&s->exchange->queued, 1);
  return status;
}

static size_t elements_a_piece(const rondo_exchange *exchange, const rondo_collective *work) {
  const size_t element = rondo_type_bytes(work->type);
  if (work->operation == RONDO_BARRIER) return 1;
  return exchange->group->piece_bytes /
         (work->operation == RONDO_REDUCE_SCATTER ? element * exchange->group->world_size : element);
}

static rondo_status reserve(const sending *s, size_t most) {
  const size_t count = s->work->count < most ? s->work->count : most;
  const size_t parts = s->work->operation == RONDO_REDUCE_SCATTER ? s->exchange->group->world_size : 1;
  if (s->work->src == NULL) return RONDO_OK;
  return rondo_fail_context(rondo_group_reserve(s->exchange->group, count * s->element * parts), "%s", s->call);
}

static rondo_status exchange_run(rondo_link *link, rondo_stream *stream, const char *call,
                                 const rondo_collective *work) {
  sending s = {.exchange = exchange_of(link),
               .stream = stream,
               .call = call,
               .work = work,
               .element = rondo_type_bytes(work->type)};
  if (rondo_exchange_has_failed(s.exchange)) return refuse_failed(s.exchange, call);
  const size_t most = elements_a_piece(s.exchange, work);
  RONDO_TRY(reserve(&s, most));
  size_t first = 0;
  do {
    const size_t left = work->count - first;
    s.piece = (rondo_piece){.count = work->count,
                            .first = first,
                            .length = left < most ? left : most,
                            .operation = (uint32_t)work->operation,
                            .type = (uint32_t)work->type,
                            .reduction = (uint32_t)work->reduction,
                            .root = work->root};
    s.part = (size_t)s.piece.length * s.element;
    const rondo_status status = queue_piece(&s);
    if (status != RONDO_OK) {
      if (s.launched > 0) break_off(&s);
      return status;
    }
    first += (size_t)s.piece.length;
  } while (first < work->count);
  return RONDO_OK;
}

const rondo_transport rondo_exchange_transport = {
    .prepare = exchange_prepare,
    .open = exchange_open,
    .check = exchange_check,
    .run = exchange_run,
    .break_off = exchange_break_off,
    .info = exchange_info,
    .close = exchange_close,
};
