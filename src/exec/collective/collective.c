/* SPDX-License-Identifier: MIT
 * The public calls of the operations: one table of what each has, one check of its arguments, then the transport.
 */
#include <inttypes.h>
#include <stdio.h>

#include "exec/capture/stray_work.h"
#include "exec/collective/collective_reduce.h"
#include "exec/collective/communicator.h"

/* The size of a buffer: no elements, `count` elements, or `count` elements for each rank. */
typedef enum extent { NOTHING, ONE_PART, ALL_PARTS } extent;

static const struct {
  const char *name, *call;
  extent src, dst;
  bool reduces, may_be_in_place;
} operations[] = {
    [RONDO_COLLECTIVE_ALL_REDUCE] = {"all_reduce", "rondo_all_reduce", ONE_PART, ONE_PART, true, true},
    [RONDO_COLLECTIVE_BROADCAST] = {"broadcast", "rondo_broadcast", ONE_PART, ONE_PART, false, true},
    [RONDO_COLLECTIVE_ALL_GATHER] = {"all_gather", "rondo_all_gather", ONE_PART, ALL_PARTS, false, true},
    [RONDO_COLLECTIVE_REDUCE_SCATTER] = {"reduce_scatter", "rondo_reduce_scatter", ALL_PARTS, ONE_PART, true, true},
    [RONDO_COLLECTIVE_ALL_TO_ALL] = {"all_to_all", "rondo_all_to_all", ALL_PARTS, ALL_PARTS, false, false},
    [RONDO_COLLECTIVE_SEND_RECEIVE] = {"send_receive", "rondo_send_receive", ONE_PART, ONE_PART, false, false},
    [RONDO_COLLECTIVE_BARRIER] = {"barrier", "rondo_barrier", NOTHING, NOTHING, false, false},
};

static bool is_known(rondo_collective_operation operation) {
  return (size_t)operation > 0 && (size_t)operation < sizeof operations / sizeof operations[0];
}

const char *rondo_collective_operation_name(rondo_collective_operation operation) {
  return is_known(operation) ? operations[operation].name : "unknown";
}

static void describe_pair(const rondo_collective *work, char *text, size_t bytes) {
  const char *const type = rondo_type_name(work->type);
  if (work->dst == NULL)
    (void)snprintf(text, bytes, "send (to %" PRIu32 ") of %zu %s", work->to, work->count, type);
  else if (work->src == NULL)
    (void)snprintf(text, bytes, "receive (from %" PRIu32 ") of %zu %s", work->from, work->count, type);
  else
    (void)snprintf(text, bytes, "send_receive (to %" PRIu32 ", from %" PRIu32 ") of %zu %s", work->to, work->from,
                   work->count, type);
}

void rondo_collective_describe(const rondo_collective *work, char *text, size_t bytes) {
  const char *const name = rondo_collective_operation_name(work->operation);
  char detail[64] = "";
  const rondo_reduction reduction = work->is_average != 0 ? RONDO_REDUCE_AVERAGE : work->reduction;
  if (reduction != 0) (void)snprintf(detail, sizeof detail, " (%s)", rondo_reduction_name(reduction));
  if (work->operation == RONDO_COLLECTIVE_BROADCAST)
    (void)snprintf(detail, sizeof detail, " (root %" PRIu32 ")", work->root);
  if (work->operation == RONDO_COLLECTIVE_SEND_RECEIVE) {
    describe_pair(work, text, bytes);
    return;
  }
  if (work->operation == RONDO_COLLECTIVE_BARRIER)
    (void)snprintf(text, bytes, "%s", name);
  else
    (void)snprintf(text, bytes, "%s%s of %zu %s", name, detail, work->count, rondo_type_name(work->type));
}

/* In `to` and `from`: this rank does not send, or not receive. No rank has this number. */
static const uint32_t NO_RANK = UINT32_MAX;

typedef struct range {
  uintptr_t begin;
  size_t bytes;
} range;

static bool overlap(range a, range b) { return a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes; }

/* Whether this rank needs a source; and a destination. */
static bool sends(const rondo_communicator *communicator, const rondo_collective *work) {
  if (work->operation == RONDO_COLLECTIVE_SEND_RECEIVE) return work->to != NO_RANK;
  return operations[work->operation].src != NOTHING &&
         (work->operation != RONDO_COLLECTIVE_BROADCAST || work->root == communicator->plan.rank);
}

static bool receives(const rondo_collective *work) {
  return work->operation == RONDO_COLLECTIVE_SEND_RECEIVE ? work->from != NO_RANK
                                                          : operations[work->operation].dst != NOTHING;
}

static rondo_status check_types(const char *call, const rondo_collective *work) {
  if (rondo_type_bytes(work->type) == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE,
                      "%s: %d is not a type: use RONDO_F32 or another value of rondo_type", call, (int)work->type);
  if (work->type == RONDO_BOOL || work->type > RONDO_U8)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE, "%s: collectives do not take %s: use RONDO_U8", call,
                      rondo_type_name(work->type));
  if (!operations[work->operation].reduces) return RONDO_OK;
  if (!rondo_reduction_is_known(work->reduction))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE,
                      "%s: %d is not a reduction: use RONDO_REDUCE_SUM, _MAX, _MIN or _AVERAGE", call,
                      (int)work->reduction);
  const bool is_integer =
      work->type == RONDO_I32 || work->type == RONDO_I64 || work->type == RONDO_I8 || work->type == RONDO_U8;
  if (work->reduction != RONDO_REDUCE_AVERAGE || !is_integer) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE,
                    "%s: an average of %s is not defined: sum up and divide, or use a floating-point type", call,
                    rondo_type_name(work->type));
}

static rondo_status check_rank(const char *call, const rondo_communicator *communicator, const char *what,
                               uint32_t rank) {
  if (rank < communicator->plan.world_size) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: %s %" PRIu32 " is out of range: use 0 to %" PRIu32, call, what, rank,
                    communicator->plan.world_size - 1);
}

static rondo_status check_ranks(const char *call, const rondo_communicator *communicator,
                                const rondo_collective *work) {
  if (work->operation != RONDO_COLLECTIVE_SEND_RECEIVE) return check_rank(call, communicator, "root", work->root);
  if (work->to != NO_RANK) RONDO_TRY(check_rank(call, communicator, "the rank to send to,", work->to));
  if (work->from != NO_RANK) RONDO_TRY(check_rank(call, communicator, "the rank to receive from,", work->from));
  if ((work->to == communicator->plan.rank) == (work->from == communicator->plan.rank)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: rank %" PRIu32
                    " would wait for itself: use rondo_send_receive with itself as both ranks, or "
                    "rondo_copy_async",
                    call, communicator->plan.rank);
}

static rondo_status check_buffer(const char *call, const char *what, const void *buffer, const rondo_collective *work) {
  const size_t element = rondo_type_bytes(work->type);
  RONDO_TRY(rondo_require(call, what, buffer));
  if ((uintptr_t)buffer % element == 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                    "%s: %s %p is not aligned to its elements of %zu bytes (%s)", call, what, buffer, element,
                    rondo_type_name(work->type));
}

/* In place: the buffer of one part is this rank's part of the other. */
static rondo_status check_overlap(const char *call, const rondo_communicator *communicator,
                                  const rondo_collective *work, size_t part) {
  const extent src = operations[work->operation].src, dst = operations[work->operation].dst;
  const range from = {(uintptr_t)work->src, src == ALL_PARTS ? part * communicator->plan.world_size : part};
  const range to = {(uintptr_t)work->dst, dst == ALL_PARTS ? part * communicator->plan.world_size : part};
  const size_t own = part * communicator->plan.rank;
  const bool in_place = operations[work->operation].may_be_in_place &&
                        from.begin + (src == ALL_PARTS ? own : 0) == to.begin + (dst == ALL_PARTS ? own : 0);
  if (in_place || !overlap(from, to)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: source %p (%zu bytes) and destination %p (%zu bytes) overlap: separate them%s", call,
                    work->src, from.bytes, work->dst, to.bytes,
                    operations[work->operation].may_be_in_place ? ", or use the exact in-place address" : "");
}

static rondo_status check_buffers(const char *call, const rondo_communicator *communicator,
                                  const rondo_collective *work) {
  const bool has_src = sends(communicator, work), has_dst = receives(work);
  size_t part, all;
  if (work->count == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "%s: 0 elements: omit the call on all ranks, or use rondo_barrier", call);
  if (!rondo_checked_multiply(work->count, rondo_type_bytes(work->type), &part) ||
      !rondo_checked_multiply(part, communicator->plan.world_size, &all) || all > PTRDIFF_MAX)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "%s: %zu elements on %" PRIu32
                      " ranks do not fit the address space: split the collective into several",
                      call, work->count, communicator->plan.world_size);
  if (has_src) RONDO_TRY(check_buffer(call, "the source", work->src, work));
  if (has_dst) RONDO_TRY(check_buffer(call, "the destination", work->dst, work));
  return has_src && has_dst ? check_overlap(call, communicator, work, part) : RONDO_OK;
}

static rondo_status check(const char *call, const rondo_communicator *communicator, const rondo_stream *stream,
                          const rondo_collective *work) {
  RONDO_TRY(rondo_device_require_own(call, communicator->device));
  RONDO_TRY(rondo_require(call, "the stream", stream));
  RONDO_TRY(rondo_require_device(call, "the stream", communicator->device, stream->device));
  if (work->operation == RONDO_COLLECTIVE_BARRIER) return RONDO_OK;
  RONDO_TRY(check_types(call, work));
  RONDO_TRY(check_ranks(call, communicator, work));
  return check_buffers(call, communicator, work);
}

static rondo_status run_checked(rondo_communicator *communicator, rondo_stream *stream, const char *call,
                                rondo_collective *work) {
  RONDO_TRY(check(call, communicator, stream, work));
  RONDO_TRY(rondo_capture_refuse_stray(stream, call));
  if (!sends(communicator, work)) work->src = NULL;
  if (!receives(work)) work->dst = NULL;
  if (work->to == NO_RANK) work->to = 0;
  if (work->from == NO_RANK) work->from = 0;
  RONDO_TRY(communicator->link->transport->run(communicator->link, stream, call, work));
  atomic_fetch_add_explicit(&communicator->collectives, 1, memory_order_relaxed);
  return RONDO_OK;
}

static rondo_status run_as(rondo_communicator *communicator, rondo_stream *stream, const char *call,
                           rondo_collective work) {
  RONDO_TRY(rondo_check_call(call, "the communicator", communicator));
  RONDO_TRY(rondo_communicator_enter(communicator, call));
  work.struct_size = sizeof work;
  const rondo_status status = run_checked(communicator, stream, call, &work);
  rondo_communicator_leave(communicator);
  return status;
}

static rondo_status run(rondo_communicator *communicator, rondo_stream *stream, rondo_collective work) {
  return run_as(communicator, stream, operations[work.operation].call, work);
}

/* The public calls ------------------------------------------------------------------------------------------------- */

rondo_status rondo_all_reduce(rondo_communicator *communicator, rondo_stream *stream, const void *src, void *dst,
                              size_t count, rondo_type type, rondo_reduction reduction) {
  return run(communicator, stream,
             (rondo_collective){.operation = RONDO_COLLECTIVE_ALL_REDUCE,
                                .type = type,
                                .reduction = reduction,
                                .count = count,
                                .src = src,
                                .dst = dst});
}

rondo_status rondo_broadcast(rondo_communicator *communicator, rondo_stream *stream, const void *src, void *dst,
                             size_t count, rondo_type type, uint32_t root) {
  return run(
      communicator, stream,
      (rondo_collective){
          .operation = RONDO_COLLECTIVE_BROADCAST, .type = type, .root = root, .count = count, .src = src, .dst = dst});
}

rondo_status rondo_all_gather(rondo_communicator *communicator, rondo_stream *stream, const void *src, void *dst,
                              size_t count, rondo_type type) {
  return run(communicator, stream,
             (rondo_collective){
                 .operation = RONDO_COLLECTIVE_ALL_GATHER, .type = type, .count = count, .src = src, .dst = dst});
}

rondo_status rondo_reduce_scatter(rondo_communicator *communicator, rondo_stream *stream, const void *src, void *dst,
                                  size_t count, rondo_type type, rondo_reduction reduction) {
  return run(communicator, stream,
             (rondo_collective){.operation = RONDO_COLLECTIVE_REDUCE_SCATTER,
                                .type = type,
                                .reduction = reduction,
                                .count = count,
                                .src = src,
                                .dst = dst});
}

rondo_status rondo_all_to_all(rondo_communicator *communicator, rondo_stream *stream, const void *src, void *dst,
                              size_t count, rondo_type type) {
  return run(communicator, stream,
             (rondo_collective){
                 .operation = RONDO_COLLECTIVE_ALL_TO_ALL, .type = type, .count = count, .src = src, .dst = dst});
}

/* A caller's UINT32_MAX, such as rank - 1 on rank 0, is not NO_RANK. */
static rondo_status refuse_no_rank(const char *call, const rondo_communicator *communicator) {
  RONDO_TRY(rondo_check_call(call, "the communicator", communicator));
  return check_rank(call, communicator, "rank", NO_RANK);
}

rondo_status rondo_send(rondo_communicator *communicator, rondo_stream *stream, const void *src, size_t count,
                        rondo_type type, uint32_t to) {
  if (to == NO_RANK) return refuse_no_rank("rondo_send", communicator);
  return run_as(communicator, stream, "rondo_send",
                (rondo_collective){.operation = RONDO_COLLECTIVE_SEND_RECEIVE,
                                   .type = type,
                                   .to = to,
                                   .from = NO_RANK,
                                   .count = count,
                                   .src = src});
}

rondo_status rondo_receive(rondo_communicator *communicator, rondo_stream *stream, void *dst, size_t count,
                           rondo_type type, uint32_t from) {
  if (from == NO_RANK) return refuse_no_rank("rondo_receive", communicator);
  return run_as(communicator, stream, "rondo_receive",
                (rondo_collective){.operation = RONDO_COLLECTIVE_SEND_RECEIVE,
                                   .type = type,
                                   .to = NO_RANK,
                                   .from = from,
                                   .count = count,
                                   .dst = dst});
}

rondo_status rondo_send_receive(rondo_communicator *communicator, rondo_stream *stream, const void *src, uint32_t to,
                                void *dst, uint32_t from, size_t count, rondo_type type) {
  if (to == NO_RANK || from == NO_RANK) return refuse_no_rank("rondo_send_receive", communicator);
  return run(communicator, stream,
             (rondo_collective){.operation = RONDO_COLLECTIVE_SEND_RECEIVE,
                                .type = type,
                                .to = to,
                                .from = from,
                                .count = count,
                                .src = src,
                                .dst = dst});
}

rondo_status rondo_barrier(rondo_communicator *communicator, rondo_stream *stream) {
  return run(communicator, stream, (rondo_collective){.operation = RONDO_COLLECTIVE_BARRIER});
}
