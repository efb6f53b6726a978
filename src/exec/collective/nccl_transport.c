/* SPDX-License-Identifier: MIT
 * Collectives by NCCL, which vendor/nccl.h loads when a communicator is made. Its work goes to the stream's
 * native handle, through the driver's slot for libraries, and is captured and imported as that of any library. No node
 * of the graph can retain the communicator, so what the driver captured does: NCCL's communicator ends after the
 * driver's graphs that have its kernels in them. (ncclCommDestroy waits for such graphs.)
 *
 * NCCL connects ranks when an algorithm is first used (since 2.22, unless NCCL_RUNTIME_CONNECT=0), also during a
 * capture, and for that it enables peer access between devices of one process, which captures forbid. So all its calls
 * are made in the relaxed mode. What it does at once does not concern the capture, and what it enqueues is captured.
 *
 * Ranks join in a group of calls (ncclGroupStart), so that ncclCommInitRank returns before it waits for the others:
 * several ranks of one thread can then join, and the environment is restored before the wait.
 *
 * Threads: a link belongs to one thread at a time, except for cancelling and releasing it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exec/capture/capture_internal.h"
#include "exec/collective/communicator.h"
#include "exec/collective/nccl_operations.h"
#include "graph/user_object.h"

_Static_assert(sizeof(nccl_unique_id) == RONDO_COMMUNICATOR_ID_BYTES, "the public id is NCCL's");

/* Links ------------------------------------------------------------------------------------------------------------ */

typedef struct nccl_link {
  rondo_link link;
  atomic_uint references; /* one of the user, and one of each capture */
  rondo_device *device;
  rondo_allocator allocator;
  rondo_nccl_rank rank;
  rondo_device_event *last; /* after what was enqueued and not captured */
  _Atomic bool cancelled;
} nccl_link;

enum { SCRATCH_BYTES = 256 };

static const rondo_transport nccl_transport;

static nccl_link *link_of(rondo_link *link) { return (nccl_link *)link; }

/* rondo_library_call. Aborting has already destroyed it. */
static rondo_status end_comm(void *user) {
  nccl_link *link = user;
  if (link->rank.comm == NULL || atomic_load(&link->cancelled)) return RONDO_OK;
  return rondo_nccl_check(rondo_nccl_api.destroy(link->rank.comm), "ending NCCL's communicator");
}

static rondo_status free_link(nccl_link *link) {
  const rondo_status status = rondo_device_call_library(link->device, RONDO_LIBRARY_FREE, end_comm, link);
  if (link->last != NULL) link->last->ops->destroy(link->last);
  if (link->rank.scratch != NULL) link->device->ops->host_release(link->device, link->rank.scratch, SCRATCH_BYTES);
  const rondo_allocator allocator = link->allocator;
  rondo_release(&allocator, link, 1, sizeof *link);
  return status;
}

static rondo_status release_link(nccl_link *link) {
  return atomic_fetch_sub_explicit(&link->references, 1, memory_order_acq_rel) == 1 ? free_link(link) : RONDO_OK;
}

/* Without a communicator of NCCL. If it fails, *out is NULL or to be freed. */
static rondo_status make_link(rondo_device *device, uint32_t world_size, nccl_link **out) {
  RONDO_TRY(rondo_allocate_items(&device->allocator, 1, sizeof(nccl_link), out));
  **out = (nccl_link){
      .link = {&nccl_transport}, .device = device, .allocator = device->allocator, .rank.world_size = world_size};
  atomic_init(&(*out)->references, 1);
  RONDO_TRY(device->ops->event_create(device, false, &(*out)->last));
  RONDO_TRY(device->ops->host_allocate(device, SCRATCH_BYTES, &(*out)->rank.scratch));
  memset((*out)->rank.scratch, 0, SCRATCH_BYTES);
  return RONDO_OK;
}

/* rondo_library_call. */
static rondo_status abort_comm(void *user) {
  return rondo_nccl_check(rondo_nccl_api.break_off(((nccl_link *)user)->rank.comm), "aborting NCCL's communicator");
}

static rondo_status nccl_cancel(rondo_link *base) {
  nccl_link *link = link_of(base);
  if (atomic_exchange(&link->cancelled, true)) return RONDO_OK;
  return rondo_device_call_library(link->device, RONDO_LIBRARY_FREE, abort_comm, link);
}

/* If waiting fails, the work may never end, and NCCL would wait for it. So the communicator is aborted. */
static rondo_status nccl_close(rondo_link *base) {
  nccl_link *link = link_of(base);
  if (link->last->ops->synchronize(link->last) != RONDO_OK)
    rondo_status_ignore(nccl_cancel(base), "the streams report the failure");
  return release_link(link);
}

/* NULL is fine. Other ranks may be missing, so the communicator does not wait for them. */
static void discard_link(nccl_link *link) {
  if (link == NULL) return;
  if (link->rank.comm != NULL) rondo_status_ignore(nccl_cancel(&link->link), "the first error counts");
  rondo_status_ignore(free_link(link), "the first error counts");
}

/* Joining --------------------------------------------------------------------------------------------------------- */

/* Ranks of one process that join together. */
typedef struct joining {
  const rondo_communicator_plan *plans;
  uint32_t count;
  nccl_unique_id id;
  rondo_link **links;
} joining;

/* One of them. */
typedef struct joining_rank {
  const joining *all;
  uint32_t index;
} joining_rank;

/* rondo_library_call. */
static rondo_status make_id(void *user) {
  return rondo_nccl_check(rondo_nccl_api.make_unique_id(user), "beginning to use NCCL");
}

/* rondo_library_call. */
static rondo_status init_rank(void *user) {
  const joining_rank *self = user;
  const rondo_communicator_plan *plan = &self->all->plans[self->index];
  nccl_link *link = link_of(self->all->links[self->index]);
  return rondo_nccl_check(
      rondo_nccl_api.init_rank(&link->rank.comm, (int)plan->world_size, self->all->id, (int)plan->rank),
      "joining NCCL's group");
}

/* rondo_nccl_address_call. */
static rondo_status init_ranks(void *user) {
  const joining *all = user;
  for (uint32_t i = 0; i < all->count; i++) {
    joining_rank rank = {all, i};
    RONDO_TRY(rondo_device_call_library(all->plans[i].device, RONDO_LIBRARY_AT_ONCE, init_rank, &rank));
  }
  return RONDO_OK;
}

static rondo_status join(joining *all, const char *address) {
  RONDO_TRY(rondo_nccl_check(rondo_nccl_api.group_start(), "beginning a group of calls"));
  rondo_status status = rondo_nccl_with_address(&all->plans[0].device->allocator, address, init_ranks, all);
  RONDO_THEN(status, rondo_nccl_check(rondo_nccl_api.group_end(), "joining NCCL's group"));
  return status;
}

static rondo_status make_and_join(joining *all, const char *address) {
  for (uint32_t i = 0; i < all->count; i++) {
    nccl_link *made = NULL;
    const rondo_status status = make_link(all->plans[i].device, all->plans[i].world_size, &made);
    all->links[i] = made == NULL ? NULL : &made->link;
    RONDO_TRY(status);
  }
  return join(all, address);
}

static rondo_status open_links(joining *all, const char *address) {
  for (uint32_t i = 0; i < all->count; i++) all->links[i] = NULL;
  const rondo_status status = make_and_join(all, address);
  if (status == RONDO_OK) return RONDO_OK;
  for (uint32_t i = 0; i < all->count; i++) {
    if (all->links[i] != NULL) discard_link(link_of(all->links[i]));
    all->links[i] = NULL;
  }
  return status;
}

typedef struct id_request {
  rondo_device *device;
  nccl_unique_id id;
} id_request;

/* rondo_nccl_address_call. */
static rondo_status request_id(void *user) {
  id_request *request = user;
  return rondo_device_call_library(request->device, RONDO_LIBRARY_AT_ONCE, make_id, &request->id);
}

static rondo_status get_id(rondo_device *device, const char *address, nccl_unique_id *out) {
  id_request request = {.device = device};
  RONDO_TRY(rondo_nccl_with_address(&device->allocator, address, request_id, &request));
  *out = request.id;
  return RONDO_OK;
}

rondo_status rondo_nccl_make_id(rondo_device *device, rondo_communicator_id *out) {
  nccl_unique_id id;
  RONDO_TRY(rondo_library_require(&rondo_nccl));
  RONDO_TRY(get_id(device, NULL, &id));
  memcpy(out->bytes, &id, sizeof id);
  return RONDO_OK;
}

rondo_status rondo_nccl_open(const rondo_communicator_plan *plans, uint32_t count, const rondo_communicator_id *id,
                             rondo_link **out) {
  joining all = {.plans = plans, .count = count, .links = out};
  RONDO_TRY(rondo_library_require(&rondo_nccl));
  memcpy(&all.id, id->bytes, sizeof all.id);
  return open_links(&all, NULL);
}

/* The id of a group at an address is the address, so each rank makes it. */
static rondo_status open_at(const rondo_communicator_plan *plan, const char *address, rondo_link **out) {
  joining all = {.plans = plan, .count = 1, .links = out};
  RONDO_TRY(rondo_nccl_require(RONDO_NCCL_ADDRESS));
  RONDO_TRY(get_id(plan->device, address, &all.id));
  return open_links(&all, address);
}

rondo_status rondo_nccl_open_at(const rondo_communicator_plan *plan, const char *address, rondo_link **out) {
  RONDO_TRY(rondo_library_require(&rondo_nccl));
  return rondo_fail_context(open_at(plan, address, out), "rank %" PRIu32 " of %" PRIu32 " at %s", plan->rank,
                            plan->world_size, address);
}

/* Running --------------------------------------------------------------------------------------------------------- */

static nccl_result async_error(const nccl_link *link) {
  nccl_result result = NCCL_OK;
  const nccl_result asked = rondo_nccl_api.async_error(link->rank.comm, &result);
  return asked != NCCL_OK ? asked : result;
}

static bool has_failed(nccl_result result) { return result != NCCL_OK && result != NCCL_IN_PROGRESS; }

static void nccl_info(const rondo_link *base, rondo_communicator_info *out) {
  const nccl_link *link = (const nccl_link *)base;
  out->engine = "NCCL";
  out->failed = atomic_load(&link->cancelled) || has_failed(async_error(link));
}

static rondo_status require_working(const nccl_link *link) {
  if (atomic_load(&link->cancelled))
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ABORTED,
                      "the communicator was aborted: destroy it and make another group");
  const nccl_result result = async_error(link);
  if (!has_failed(result)) return RONDO_OK;
  return rondo_fail_driver(RONDO_INVALID_STATE, RONDO_REASON_PEER_LOST, result, rondo_nccl_api.error_string(result),
                           "the communicator has failed before: destroy it and make another group");
}

typedef struct nccl_run {
  const nccl_link *link;
  const rondo_collective *work;
  nccl_stream stream;
  const char *call;
  bool is_captured;
} nccl_run;

/* rondo_library_call. */
static rondo_status run_work(void *user) {
  const nccl_run *run = user;
  const nccl_result result = rondo_nccl_enqueue(&run->link->rank, run->work, run->stream);
  if (result == NCCL_OK || !run->is_captured) return rondo_nccl_check(result, run->call);
  char what[256];
  (void)snprintf(what, sizeof what,
                 "%s, captured (if it cannot connect ranks now, call one like it eagerly first, or set "
                 "NCCL_RUNTIME_CONNECT=0)",
                 run->call);
  return rondo_nccl_check(result, what);
}

static void release_object(void *object) {
  rondo_status_ignore(release_link(object), "no caller can handle the failure");
}

/* The captured graph retains the communicator. */
static rondo_status keep(nccl_link *link, rondo_capture *capture, const char *call) {
  rondo_captured *captured = capture->importer.captured;
  RONDO_TRY(rondo_capture_require_active(capture, call));
  if (rondo_object_list_has(&captured->objects, link)) return RONDO_OK;
  atomic_fetch_add_explicit(&link->references, 1, memory_order_relaxed);
  const rondo_status status = rondo_captured_keep(captured, link, release_object);
  if (status != RONDO_OK) release_object(link);
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
  RONDO_TRY(rondo_fail_context(rondo_stream_require_thread(stream), "%s", call));
  rondo_capture *capture = rondo_stream_find_capture(stream);
  nccl_run run = {link, work, rondo_stream_native(stream), call, capture != NULL};
  RONDO_TRY(rondo_fail_context(require_working(link), "%s", call));
  RONDO_TRY(rondo_fail_context(rondo_nccl_require_operation(work), "%s", call));
  if (capture != NULL) RONDO_TRY(keep(link, capture, call));
  const rondo_status status = rondo_device_call_library(link->device, RONDO_LIBRARY_AT_ONCE, run_work, &run);
  if (status != RONDO_OK && capture != NULL) rondo_capture_invalidate(capture, "%s, which NCCL refused", call);
  if (status != RONDO_OK || capture != NULL) return status;
  return note_queued(link, stream, call);
}

/* Dividing -------------------------------------------------------------------------------------------------------- */

typedef struct nccl_split {
  const nccl_link *from;
  int color, key;
  nccl_link *to;
  int rank, world_size;
} nccl_split;

/* rondo_library_call. */
static rondo_status split_comm(void *user) {
  nccl_split *self = user;
  const char *const what = "dividing NCCL's group";
  nccl_comm *const made = &self->to->rank.comm;
  RONDO_TRY(rondo_nccl_check(rondo_nccl_api.split(self->from->rank.comm, self->color, self->key, made, NULL), what));
  RONDO_TRY(rondo_nccl_check(rondo_nccl_api.get_rank(*made, &self->rank), what));
  return rondo_nccl_check(rondo_nccl_api.count_ranks(*made, &self->world_size), what);
}

/* NCCL compares keys as signed numbers. */
static int key_of(uint32_t key) { return (int)((int64_t)key - INT32_MAX - 1); }

static rondo_status make_split(rondo_link *base, uint32_t color, uint32_t key, nccl_split *split) {
  nccl_link *link = link_of(base);
  RONDO_TRY(require_working(link));
  RONDO_TRY(rondo_nccl_require(RONDO_NCCL_SPLIT));
  if (color > INT32_MAX)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "color %" PRIu32 " is out of range: NCCL takes 0 to %" PRId32, color, INT32_MAX);
  RONDO_TRY(link->last->ops->synchronize(link->last));
  RONDO_TRY(make_link(link->device, 0, &split->to));
  *split = (nccl_split){.from = link, .color = (int)color, .key = key_of(key), .to = split->to};
  return rondo_device_call_library(link->device, RONDO_LIBRARY_AT_ONCE, split_comm, split);
}

/* NCCL wants a communicator without work in progress. */
static rondo_status nccl_split_link(rondo_link *base, uint32_t color, uint32_t key, rondo_communicator_plan *plan,
                                    rondo_link **out) {
  nccl_split split = {0};
  const rondo_status status = make_split(base, color, key, &split);
  if (status != RONDO_OK) {
    discard_link(split.to);
    return status;
  }
  plan->rank = (uint32_t)split.rank;
  plan->world_size = split.to->rank.world_size = (uint32_t)split.world_size;
  *out = &split.to->link;
  return RONDO_OK;
}

static const rondo_transport nccl_transport = {
    .run = nccl_run_work,
    .cancel = nccl_cancel,
    .info = nccl_info,
    .split = nccl_split_link,
    .close = nccl_close,
};
