/* SPDX-License-Identifier: MIT
 * The engine transport: making links, and enqueueing and capturing collectives as a kernel and a wait. The kernels
 * differ in their buffers only; what they do is in engine_progress.c.
 */
#include "exec/collective/engine_link.h"

#include <rondo/exec.h>

#include "exec/capture/capture_internal.h"
#include "exec/collective/engine_progress.h"
#include "exec/patch/frozen_values.h"

static rondo_engine_link *link_of(rondo_link *link) { return (rondo_engine_link *)link; }

/* Kernels --------------------------------------------------------------------------------------------------------- */

/* (reads or updates a buffer, updates the link, the call) */
static void start_with_source(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  rondo_engine_link_start(*(rondo_engine_link *const *)args[1], args[2], *(const void *const *)args[0], NULL);
}

static void start_with_destination(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  rondo_engine_link_start(*(rondo_engine_link *const *)args[1], args[2], NULL, *(void *const *)args[0]);
}

static void start_in_place(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  void *const buffer = *(void *const *)args[0];
  rondo_engine_link_start(*(rondo_engine_link *const *)args[1], args[2], buffer, buffer);
}

/* (reads src, writes dst, updates the link, the call) */
static void start_with_both(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  rondo_engine_link_start(*(rondo_engine_link *const *)args[2], args[3], *(const void *const *)args[0],
                          *(void *const *)args[1]);
}

/* (updates the link, the call) */
static void start_without_buffer(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  rondo_engine_link_start(*(rondo_engine_link *const *)args[0], args[1], NULL, NULL);
}

#define CALL RONDO_PARAMETER(RONDO_ACCESS_SCALAR, sizeof(rondo_engine_call), RONDO_ALIGNOF(rondo_engine_call))

static const rondo_kernel_options kernels[RONDO_ENGINE_KERNELS] = {
    [RONDO_ENGINE_NO_BUFFER] = {.name = "collective", .cpu = start_without_buffer, .params = {RONDO_UPDATES, CALL}},
    [RONDO_ENGINE_READS] = {.name = "collective_reads",
                            .cpu = start_with_source,
                            .params = {RONDO_READS, RONDO_UPDATES, CALL}},
    [RONDO_ENGINE_WRITES] = {.name = "collective_writes",
                             .cpu = start_with_destination,
                             .params = {RONDO_WRITES, RONDO_UPDATES, CALL}},
    [RONDO_ENGINE_READS_AND_WRITES] = {.name = "collective_reads_writes",
                                       .cpu = start_with_both,
                                       .params = {RONDO_READS, RONDO_WRITES, RONDO_UPDATES, CALL}},
    [RONDO_ENGINE_UPDATES] = {.name = "collective_updates",
                              .cpu = start_in_place,
                              .params = {RONDO_UPDATES, RONDO_UPDATES, CALL}},
};

static void release_event(void *event) { rondo_event_release(event); }

static rondo_status make_kernel(rondo_engine_link *link, unsigned which) {
  rondo_kernel *made;
  RONDO_TRY(rondo_kernel_make(link->device, &link->allocator, &kernels[which], &made));
  rondo_event_retain(&link->event);
  made->kept = &link->event;
  made->kept_release = release_event;
  link->kernels[which] = made;
  return RONDO_OK;
}

/* Life ------------------------------------------------------------------------------------------------------------ */

/* Runs after the last executable ended: no device work can use the link any more. */
static void end(void *user) {
  rondo_engine_link *link = user;
  if (link->has_progress) {
    atomic_store(&link->stop, true);
    rondo_engine_link_ring(link);
    rondo_thread_join(link->progress);
  }
  rondo_engine_link_check(link);
  if (link->engine.close != NULL) link->engine.close(link->engine.user);
  const rondo_allocator allocator = link->allocator;
  rondo_release_text(&allocator, link->engine_name);
  rondo_release_text(&allocator, link->name);
  rondo_release(&allocator, link, 1, sizeof *link);
}

/* The last reference is gone. */
static void end_event(rondo_event *event) { event->driver->ops->destroy(event->driver); }

/* Releases the user's references. */
static void release(rondo_engine_link *link) {
  for (int i = 0; i < RONDO_ENGINE_KERNELS; i++) rondo_kernel_release(link->kernels[i]);
  rondo_event_release(&link->event);
}

static rondo_status start_link(rondo_engine_link *link) {
  RONDO_TRY(rondo_allocate_text(&link->allocator, link->engine.name, &link->engine_name));
  link->engine.name = link->engine_name;
  for (unsigned i = 0; i < RONDO_ENGINE_KERNELS; i++) RONDO_TRY(make_kernel(link, i));
  RONDO_TRY(rondo_thread_start(&link->progress, "rondo-ranks", rondo_engine_link_progress, link));
  link->has_progress = true;
  return RONDO_OK;
}

static const rondo_transport engine_transport;

/* Without the engine, which the caller adds when nothing can fail any more. */
static rondo_status make_link(const rondo_communicator_plan *plan, bool is_polled, rondo_engine_link **out) {
  rondo_device *device = plan->device;
  rondo_engine_link *link;
  RONDO_TRY(rondo_allocate_items(&device->allocator, 1, sizeof *link, &link));
  *link = (rondo_engine_link){
      .link = {&engine_transport}, .allocator = device->allocator, .device = device, .timeout_ns = plan->timeout_ns};
  link->event = (rondo_event){.counted = {.retain = rondo_event_retain, .release = rondo_event_release},
                              .device = device,
                              .recorded = true,
                              .ended = end_event};
  atomic_init(&link->event.references, 1);
  rondo_status status = rondo_allocate_text(&device->allocator, plan->name, &link->name);
  if (status == RONDO_OK)
    status = device->ops->semaphore->create(device, end, is_polled ? rondo_engine_link_poll : NULL, link,
                                            &link->event.driver);
  *out = link;
  if (status == RONDO_OK) return RONDO_OK;
  rondo_release_text(&device->allocator, link->name);
  rondo_release(&device->allocator, link, 1, sizeof *link);
  return status;
}

rondo_status rondo_engine_link_open(const rondo_communicator_plan *plan, const rondo_collective_engine *engine,
                                    void (*attach)(rondo_engine_link *link), rondo_engine_link **out) {
  rondo_engine_link *link;
  RONDO_TRY(make_link(plan, attach == NULL, &link));
  link->engine = *engine;
  link->attach = attach;
  const rondo_status status = start_link(link);
  if (status == RONDO_OK) {
    if (attach != NULL) attach(link);
    *out = link;
    return RONDO_OK;
  }
  link->engine.close = NULL; /* the caller keeps the engine */
  release(link);
  return status;
}

static rondo_status link_close(rondo_link *base) {
  rondo_engine_link *link = link_of(base);
  atomic_store(&link->closes, true);
  for (;;) {
    const uint32_t signal = atomic_load(&link->done_signal);
    if (atomic_load(&link->done) == atomic_load(&link->queued)) break;
    rondo_futex_wait(&link->done_signal, signal);
  }
  release(link);
  return RONDO_OK;
}

static rondo_status link_cancel(rondo_link *base) {
  rondo_engine_link_fail(link_of(base), RONDO_REASON_ABORTED, "rondo_communicator_abort was called");
  return RONDO_OK;
}

static void link_info(const rondo_link *base, rondo_communicator_info *out) {
  const rondo_engine_link *link = (const rondo_engine_link *)base;
  out->failed = rondo_engine_link_has_failed(link);
  out->completed = atomic_load(&link->completed);
  out->engine = link->engine.name;
}

static rondo_status refuse_failed(const rondo_engine_link *link) {
  while (atomic_load(&link->failed) == 1) rondo_yield();
  return rondo_fail(RONDO_INVALID_STATE, link->failure.reason,
                    "the communicator has failed before: destroy it and make another group: %s", link->failure.message);
}

static rondo_status link_split(rondo_link *base, uint32_t color, uint32_t key, rondo_communicator_plan *plan,
                               rondo_link **out) {
  const rondo_engine_link *link = link_of(base);
  rondo_collective_engine engine = {RONDO_COLLECTIVE_ENGINE_INIT};
  rondo_engine_link *made;
  if (rondo_engine_link_has_failed(link)) return refuse_failed(link);
  if (link->engine.split == NULL)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE,
                      "the engine '%s' does not divide groups: make a communicator for each part", link->engine.name);
  RONDO_TRY(link->engine.split(link->engine.user, color, key, plan->join_timeout_ms, &engine));
  plan->rank = engine.rank;
  plan->world_size = engine.world_size;
  const rondo_status status = rondo_engine_link_open(plan, &engine, link->attach, &made);
  if (status == RONDO_OK) {
    *out = &made->link;
    return RONDO_OK;
  }
  rondo_saved_error error;
  rondo_error_save(&error);
  if (engine.notify != NULL) engine.notify(engine.user, error.message); /* the other ranks may have their part */
  engine.close(engine.user);
  return rondo_error_raise(&error);
}

/* Enqueueing ------------------------------------------------------------------------------------------------------ */

/* The bytes of this rank's buffers. */
static void measure(const rondo_engine_link *link, const rondo_collective *work, size_t *src_bytes, size_t *dst_bytes) {
  const size_t part = work->count * rondo_type_bytes(work->type), all = part * link->engine.world_size;
  const bool has_all_src =
      work->operation == RONDO_COLLECTIVE_REDUCE_SCATTER || work->operation == RONDO_COLLECTIVE_ALL_TO_ALL;
  const bool has_all_dst =
      work->operation == RONDO_COLLECTIVE_ALL_GATHER || work->operation == RONDO_COLLECTIVE_ALL_TO_ALL;
  *src_bytes = has_all_src ? all : part;
  *dst_bytes = has_all_dst ? all : part;
}

static unsigned choose_kernel(const rondo_collective *work) {
  if (work->src != NULL && work->src == work->dst) return RONDO_ENGINE_UPDATES;
  if (work->src != NULL && work->dst != NULL) return RONDO_ENGINE_READS_AND_WRITES;
  if (work->src != NULL) return RONDO_ENGINE_READS;
  return work->dst != NULL ? RONDO_ENGINE_WRITES : RONDO_ENGINE_NO_BUFFER;
}

/* The arguments of a launch. `bytes` and `values` are parallel to the kernel's parameters. */
typedef struct arguments {
  const void *values[4];
  size_t bytes[4], count;
} arguments;

static arguments make_arguments(rondo_engine_link *const *link, const rondo_collective *work, unsigned which,
                                const rondo_engine_call *call) {
  arguments made = {.count = 0};
  size_t src_bytes, dst_bytes;
  measure(*link, work, &src_bytes, &dst_bytes);
  if (which == RONDO_ENGINE_UPDATES && dst_bytes > src_bytes) src_bytes = dst_bytes;
  if (work->src != NULL) {
    made.values[made.count] = &work->src;
    made.bytes[made.count++] = src_bytes;
  }
  if (work->dst != NULL && which != RONDO_ENGINE_UPDATES) {
    made.values[made.count] = &work->dst;
    made.bytes[made.count++] = dst_bytes;
  }
  made.values[made.count] = link;
  made.bytes[made.count++] = sizeof **link;
  made.values[made.count++] = call;
  return made;
}

/* A recording is captured after it ran eagerly, so `is_captured` is meant to differ. The other values are not. */
static void note_values(rondo_engine_link *link, const rondo_collective *work, unsigned which,
                        const rondo_engine_call *call) {
  rondo_engine_call noted = *call;
  noted.is_captured = 0;
  const arguments made = make_arguments(&link, work, which, &noted);
  const rondo_node_params params = {.kind = RONDO_NODE_KERNEL,
                                    .as.kernel = {.kernel = link->kernels[which],
                                                  .grid = {.x = 1},
                                                  .args = made.values,
                                                  .arg_count = made.count,
                                                  .arg_bytes = made.bytes}};
  if (rondo_launch_values_are_noted()) rondo_launch_values_note(&params);
}

static rondo_status launch(rondo_engine_link *link, rondo_stream *stream, const rondo_collective *work,
                           const rondo_engine_call *call) {
  const unsigned which = choose_kernel(work);
  const arguments made = make_arguments(&link, work, which, call);
  const rondo_launch_options options = {
      RONDO_LAUNCH_OPTIONS_INIT, .name = rondo_collective_operation_name(work->operation), .arg_bytes = made.bytes};
  note_values(link, work, which, call);
  rondo_launch_values *const paused = rondo_launch_values_pause();
  const rondo_status status =
      rondo_launch_with(stream, link->kernels[which], (rondo_grid){.x = 1}, made.values, made.count, &options);
  rondo_launch_values_resume(paused);
  return status;
}

static rondo_status wait(rondo_engine_link *link, rondo_stream *stream, const char *call, bool is_captured) {
  rondo_node_params params = {.kind = RONDO_NODE_EVENT_WAIT, .name = "all ranks", .as.event = &link->event};
  return is_captured ? rondo_capture_add(stream, call, &params)
                     : stream->queue->ops->wait(stream->queue, link->event.driver);
}

/* A collective whose wait is missing would let later work begin too early. */
static void break_off(rondo_engine_link *link, rondo_capture *capture, const char *call) {
  if (capture != NULL)
    rondo_capture_invalidate(capture, "%s, of which a part was captured when it failed", call);
  else
    rondo_engine_link_fail(link, RONDO_REASON_ABORTED, "%s failed when a part of it was enqueued", call);
}

/* An engine gets a sum for an average. */
static rondo_status check_by_engine(rondo_engine_link *link, const char *call, const rondo_collective *work) {
  rondo_collective seen = *work;
  if (link->engine.check == NULL) return RONDO_OK;
  seen.is_average = work->reduction == RONDO_REDUCE_AVERAGE;
  if (seen.is_average != 0) seen.reduction = RONDO_REDUCE_SUM;
  return rondo_fail_context(link->engine.check(link->engine.user, &seen), "%s", call);
}

static rondo_status link_run(rondo_link *base, rondo_stream *stream, const char *call, const rondo_collective *work) {
  rondo_engine_link *link = link_of(base);
  rondo_capture *capture = rondo_stream_find_capture(stream);
  const rondo_engine_call parameters = {.count = work->count,
                                        .operation = (uint32_t)work->operation,
                                        .type = (uint32_t)work->type,
                                        .reduction = (uint32_t)work->reduction,
                                        .root = work->root,
                                        .to = work->to,
                                        .from = work->from,
                                        .is_captured = capture != NULL};
  if (rondo_engine_link_has_failed(link)) return rondo_fail_context(refuse_failed(link), "%s", call);
  RONDO_TRY(check_by_engine(link, call, work));
  if (capture == NULL) atomic_fetch_add(&link->queued, 1);
  rondo_status status = launch(link, stream, work, &parameters);
  if (status != RONDO_OK) {
    if (capture == NULL) atomic_fetch_sub(&link->queued, 1);
    return rondo_fail_context(status, "%s", call);
  }
  status = wait(link, stream, call, capture != NULL);
  if (status != RONDO_OK) break_off(link, capture, call);
  if (status != RONDO_OK || capture != NULL || !stream->synchronous) return status;
  return rondo_stream_settle(stream, call);
}

static const rondo_transport engine_transport = {
    .run = link_run,
    .cancel = link_cancel,
    .info = link_info,
    .split = link_split,
    .close = link_close,
};
