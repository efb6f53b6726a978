/* SPDX-License-Identifier: MIT
 * Collectives by NCCL, which vendor/vendor_libraries.h loads when a communicator is made. Its work goes to the stream's
 * native handle, through the driver's slot for libraries, and is captured and imported as that of any library. No node
 * of the graph can retain the communicator, so what the driver captured does: NCCL's communicator ends after the
 * driver's graphs that have its kernels in them. (ncclCommDestroy waits for such graphs.)
 *
 * NCCL connects ranks when an algorithm is first used (since 2.22, unless NCCL_RUNTIME_CONNECT=0), also during a
 * capture, and for that it enables peer access between devices of one process, which captures forbid. So all its calls
 * are made in the relaxed mode. What it does at once does not concern the capture, and what it enqueues is captured.
 *
 * Threads: a link belongs to one thread at a time, except for breaking it off and releasing it.
 */
#include <stdio.h>
#include <string.h>

#include "exec/capture/capture_internal.h"
#include "exec/collective/communicator.h"
#include "vendor/vendor_libraries.h"

_Static_assert(sizeof(nccl_unique_id) == RONDO_GROUP_TOKEN_BYTES, "the group's token is NCCL's id");

static rondo_status check(nccl_result result, const char *what) {
  if (result == NCCL_OK || result == NCCL_IN_PROGRESS) return RONDO_OK;
  return rondo_fail_driver(RONDO_EXECUTION_FAILED, RONDO_REASON_NONE, result, rondo_nccl_api.error_string(result),
                           "%s: NCCL refused it (NCCL_DEBUG=WARN says more)", what);
}

/* Links ------------------------------------------------------------------------------------------------------------ */

typedef struct nccl_link {
  rondo_link link;
  atomic_uint references; /* one of the user, and one of each capture */
  rondo_device *device;
  rondo_allocator allocator;
  rondo_group *group;
  uint32_t rank, world_size;
  nccl_comm comm;
  void *scratch;            /* what a barrier sums up */
  rondo_device_event *last; /* after what was enqueued and not captured */
  _Atomic bool broken;
} nccl_link;

enum { SCRATCH_BYTES = 256 };

static nccl_link *link_of(rondo_link *link) { return (nccl_link *)link; }

/* rondo_library_call. */
static rondo_status make_id(void *user) { return check(rondo_nccl_api.make_unique_id(user), "beginning to use NCCL"); }

static rondo_status nccl_prepare(rondo_device *device, bool is_first, unsigned char token[RONDO_GROUP_TOKEN_BYTES]) {
  nccl_unique_id id;
  RONDO_TRY(rondo_library_require(&rondo_nccl));
  if (!is_first) return RONDO_OK;
  RONDO_TRY(rondo_device_call_library(device, RONDO_LIBRARY_AT_ONCE, make_id, &id));
  memcpy(token, &id, sizeof id);
  return RONDO_OK;
}

/* rondo_library_call. */
static rondo_status init_rank(void *user) {
  nccl_link *link = user;
  nccl_unique_id id;
  memcpy(&id, link->group->header->token, sizeof id);
  return check(rondo_nccl_api.init_rank(&link->comm, (int)link->world_size, id, (int)link->rank),
               "joining NCCL's group");
}

/* rondo_library_call. An aborted communicator is already destroyed. */
static rondo_status end_comm(void *user) {
  nccl_link *link = user;
  if (link->comm == NULL || atomic_load(&link->broken)) return RONDO_OK;
  return check(rondo_nccl_api.destroy(link->comm), "ending NCCL's communicator");
}

static rondo_status free_link(nccl_link *link) {
  const rondo_status status = rondo_device_call_library(link->device, RONDO_LIBRARY_FREE, end_comm, link);
  if (link->last != NULL) link->last->ops->destroy(link->last);
  if (link->scratch != NULL) link->device->ops->host_release(link->device, link->scratch, SCRATCH_BYTES);
  rondo_group_leave(link->group);
  const rondo_allocator allocator = link->allocator;
  rondo_release(&allocator, link, 1, sizeof *link);
  return status;
}

static rondo_status release_link(nccl_link *link) {
  return atomic_fetch_sub_explicit(&link->references, 1, memory_order_acq_rel) == 1 ? free_link(link) : RONDO_OK;
}

static rondo_status make_link(const rondo_communicator_plan *plan, rondo_group *group, nccl_link **out) {
  rondo_device *device = plan->device;
  RONDO_TRY(rondo_allocate_items(&device->allocator, 1, sizeof(nccl_link), out));
  **out = (nccl_link){.link = {&rondo_nccl_transport},
                      .device = device,
                      .allocator = device->allocator,
                      .group = group,
                      .rank = plan->rank,
                      .world_size = plan->world_size};
  atomic_init(&(*out)->references, 1);
  RONDO_TRY(device->ops->event_create(device, false, &(*out)->last));
  RONDO_TRY(device->ops->host_allocate(device, SCRATCH_BYTES, &(*out)->scratch));
  memset((*out)->scratch, 0, SCRATCH_BYTES);
  return RONDO_OK;
}

/* Ranks of one thread begin in one group of calls, because each waits for all. */
static rondo_status init_all(rondo_link **links, uint32_t count) {
  RONDO_TRY(check(rondo_nccl_api.group_start(), "beginning a group of calls"));
  rondo_status status = RONDO_OK;
  for (uint32_t i = 0; i < count && status == RONDO_OK; i++)
    status = rondo_device_call_library(link_of(links[i])->device, RONDO_LIBRARY_AT_ONCE, init_rank, links[i]);
  rondo_saved_error first;
  rondo_error_save(&first);
  const rondo_status ended = check(rondo_nccl_api.group_end(), "joining NCCL's group");
  return status == RONDO_OK ? ended : rondo_error_raise(&first);
}

static rondo_status open_all(const rondo_communicator_plan *plans, rondo_group **groups, uint32_t count,
                             rondo_link **out) {
  for (uint32_t i = 0; i < count; i++) {
    nccl_link *made = NULL;
    const rondo_status status = make_link(&plans[i], groups[i], &made);
    out[i] = made == NULL ? NULL : &made->link;
    RONDO_TRY(status);
  }
  if (count > 1) return init_all(out, count);
  return rondo_device_call_library(plans[0].device, RONDO_LIBRARY_AT_ONCE, init_rank, out[0]);
}

static rondo_status nccl_open(const rondo_communicator_plan *plans, rondo_group **groups, uint32_t count,
                              rondo_link **out) {
  const rondo_status status = open_all(plans, groups, count, out);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_saved_error error;
  rondo_error_save(&error);
  for (uint32_t i = 0; i < count && out[i] != NULL; i++) {
    link_of(out[i])->group = NULL; /* the caller keeps it */
    rondo_status_ignore(free_link(link_of(out[i])), "the first error counts");
  }
  return rondo_error_raise(&error);
}

/* rondo_library_call. */
static rondo_status break_comm(void *user) {
  return check(rondo_nccl_api.break_off(((nccl_link *)user)->comm), "breaking NCCL's communicator off");
}

static rondo_status nccl_break_off(rondo_link *base) {
  nccl_link *link = link_of(base);
  if (atomic_exchange(&link->broken, true)) return RONDO_OK;
  return rondo_device_call_library(link->device, RONDO_LIBRARY_FREE, break_comm, link);
}

/* If waiting fails, the work may never end, and NCCL would wait for it. So the communicator is aborted. */
static rondo_status nccl_close(rondo_link *base) {
  nccl_link *link = link_of(base);
  if (link->last->ops->synchronize(link->last) != RONDO_OK)
    rondo_status_ignore(nccl_break_off(base), "the streams report the failure");
  return release_link(link);
}

/* Running --------------------------------------------------------------------------------------------------------- */

static nccl_result async_error(const nccl_link *link) {
  nccl_result result = NCCL_OK;
  const nccl_result asked = rondo_nccl_api.async_error(link->comm, &result);
  return asked != NCCL_OK ? asked : result;
}

static bool has_failed(nccl_result result) { return result != NCCL_OK && result != NCCL_IN_PROGRESS; }

static void nccl_info(const rondo_link *base, rondo_communicator_info *out) {
  const nccl_link *link = (const nccl_link *)base;
  out->failed = atomic_load(&link->broken) || has_failed(async_error(link));
}

static rondo_status require_working(const nccl_link *link, const char *call) {
  if (atomic_load(&link->broken))
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ABORTED,
                      "%s: the communicator was aborted: destroy it and make another group", call);
  const nccl_result result = async_error(link);
  if (!has_failed(result)) return RONDO_OK;
  return rondo_fail_driver(RONDO_INVALID_STATE, RONDO_REASON_PEER_LOST, result, rondo_nccl_api.error_string(result),
                           "%s: the communicator has failed before: destroy it and make another group", call);
}

typedef struct nccl_run {
  const nccl_link *link;
  const rondo_collective *work;
  nccl_stream stream;
  const char *call;
  bool is_captured;
} nccl_run;

static nccl_result run_inside(const nccl_run *run) {
  static const nccl_type types[] = {
      [RONDO_F32] = NCCL_F32, [RONDO_I32] = NCCL_I32, [RONDO_F64] = NCCL_F64,
      [RONDO_I64] = NCCL_I64, [RONDO_F16] = NCCL_F16, [RONDO_BF16] = NCCL_BF16,
  };
  static const nccl_reduction reductions[] = {
      [RONDO_REDUCE_SUM] = NCCL_SUM, [RONDO_REDUCE_MAX] = NCCL_MAX, [RONDO_REDUCE_MIN] = NCCL_MIN};
  const rondo_collective *w = run->work;
  const nccl_comm comm = run->link->comm;
  void *const scratch = run->link->scratch;
  switch (w->operation) {
    case RONDO_ALL_REDUCE:
      return rondo_nccl_api.all_reduce(w->src, w->dst, w->count, types[w->type], reductions[w->reduction], comm,
                                       run->stream);
    case RONDO_BROADCAST: /* which only reads the source of the root */
      return rondo_nccl_api.broadcast(w->src != NULL ? w->src : w->dst, w->dst, w->count, types[w->type], (int)w->root,
                                      comm, run->stream);
    case RONDO_ALL_GATHER:
      return rondo_nccl_api.all_gather(w->src, w->dst, w->count, types[w->type], comm, run->stream);
    case RONDO_REDUCE_SCATTER:
      return rondo_nccl_api.reduce_scatter(w->src, w->dst, w->count, types[w->type], reductions[w->reduction], comm,
                                           run->stream);
    case RONDO_BARRIER:
      break;
  }
  return rondo_nccl_api.all_reduce(scratch, scratch, 1, NCCL_I32, NCCL_SUM, comm, run->stream);
}

/* rondo_library_call. */
static rondo_status run_work(void *user) {
  const nccl_run *run = user;
  const nccl_result result = run_inside(run);
  if (result == NCCL_OK || !run->is_captured) return check(result, run->call);
  char what[256];
  (void)snprintf(what, sizeof what,
                 "%s, captured (if it cannot connect ranks now, call one like it eagerly first, or set "
                 "NCCL_RUNTIME_CONNECT=0)",
                 run->call);
  return check(result, what);
}

static void release_object(void *object) {
  rondo_status_ignore(release_link(object), "no caller can handle the failure");
}

/* The captured graph retains the communicator. */
static rondo_status keep(nccl_link *link, rondo_capture *capture, const char *call) {
  bool is_new;
  RONDO_TRY(rondo_capture_require_active(capture, call));
  atomic_fetch_add_explicit(&link->references, 1, memory_order_relaxed);
  const rondo_status status = rondo_captured_keep(capture->importer.captured, link, release_object, &is_new);
  if (!is_new) release_object(link);
  return status;
}

/* If the event cannot be recorded, waits for the work. */
static rondo_status note_queued(nccl_link *link, rondo_stream *stream, const char *call) {
  const rondo_status marked = stream->queue->ops->record(stream->queue, link->last);
  if (marked == RONDO_OK) return stream->synchronous ? rondo_stream_settle(stream, call) : RONDO_OK;
  rondo_saved_error error;
  rondo_error_save(&error);
  rondo_status_ignore(stream->queue->ops->await(stream->queue), "the first error counts");
  return rondo_error_raise(&error);
}

static rondo_status nccl_run_work(rondo_link *base, rondo_stream *stream, const char *call,
                                  const rondo_collective *work) {
  nccl_link *link = link_of(base);
  rondo_capture *capture = rondo_stream_find_capture(stream);
  nccl_run run = {link, work, rondo_stream_native(stream), call, capture != NULL};
  RONDO_TRY(require_working(link, call));
  if (capture != NULL) RONDO_TRY(keep(link, capture, call));
  const rondo_status status = rondo_device_call_library(link->device, RONDO_LIBRARY_AT_ONCE, run_work, &run);
  if (status != RONDO_OK && capture != NULL) rondo_capture_invalidate(capture, "%s, which NCCL refused", call);
  if (status != RONDO_OK || capture != NULL) return status;
  return note_queued(link, stream, call);
}

/* No `check`, because NCCL has reductions of all types. */
const rondo_transport rondo_nccl_transport = {
    .kind = 2,
    .prepare = nccl_prepare,
    .open = nccl_open,
    .run = nccl_run_work,
    .break_off = nccl_break_off,
    .info = nccl_info,
    .close = nccl_close,
};
