/* SPDX-License-Identifier: MIT
 * The public calls of the five operations: one table of what each has, one check of its arguments, then the transport.
 */
#include <inttypes.h>

#include "exec/capture/stray_work.h"
#include "exec/collective/collective_reduce.h"
#include "exec/collective/communicator.h"

/* The size of a buffer: no elements, `count` elements, or `count` elements for each rank. */
typedef enum extent { NOTHING, ONE_PART, ALL_PARTS } extent;

static const struct {
  const char *name, *call;
  extent src, dst;
  bool reduces;
} operations[] = {
    [RONDO_ALL_REDUCE] = {"all_reduce", "rondo_all_reduce", ONE_PART, ONE_PART, true},
    [RONDO_BROADCAST] = {"broadcast", "rondo_broadcast", ONE_PART, ONE_PART, false},
    [RONDO_ALL_GATHER] = {"all_gather", "rondo_all_gather", ONE_PART, ALL_PARTS, false},
    [RONDO_REDUCE_SCATTER] = {"reduce_scatter", "rondo_reduce_scatter", ALL_PARTS, ONE_PART, true},
    [RONDO_BARRIER] = {"barrier", "rondo_barrier", NOTHING, NOTHING, false},
};

const char *rondo_operation_name(rondo_operation operation) {
  const size_t number = (size_t)operation;
  return number > 0 && number < sizeof operations / sizeof operations[0] ? operations[number].name : "unknown";
}

typedef struct range {
  uintptr_t begin;
  size_t bytes;
} range;

static bool overlap(range a, range b) { return a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes; }

static bool sends(const rondo_communicator *communicator, const rondo_collective *work) {
  return operations[work->operation].src != NOTHING &&
         (work->operation != RONDO_BROADCAST || work->root == communicator->rank);
}

static rondo_status check_types(const char *call, const rondo_collective *work) {
  if (rondo_type_bytes(work->type) == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE,
                      "%s: %d is not a type: use RONDO_F32 or another value of rondo_type", call, (int)work->type);
  if (!operations[work->operation].reduces || rondo_reduction_is_known(work->reduction)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE,
                    "%s: %d is not a reduction: use RONDO_REDUCE_SUM, _MAX or _MIN", call, (int)work->reduction);
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
  const range from = {(uintptr_t)work->src, src == ALL_PARTS ? part * communicator->world_size : part};
  const range to = {(uintptr_t)work->dst, dst == ALL_PARTS ? part * communicator->world_size : part};
  const size_t own = part * communicator->rank;
  const bool in_place = from.begin + (src == ALL_PARTS ? own : 0) == to.begin + (dst == ALL_PARTS ? own : 0);
  if (in_place || !overlap(from, to)) return RONDO_OK;
  return rondo_fail(
      RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
      "%s: source %p (%zu bytes) and destination %p (%zu bytes) overlap: separate them, or use the exact in-place "
      "address",
      call, work->src, from.bytes, work->dst, to.bytes);
}

static rondo_status check_buffers(const char *call, const rondo_communicator *communicator,
                                  const rondo_collective *work) {
  size_t part, all;
  if (work->count == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "%s: 0 elements: omit the call on all ranks, or use rondo_barrier", call);
  if (!rondo_checked_multiply(work->count, rondo_type_bytes(work->type), &part) ||
      !rondo_checked_multiply(part, communicator->world_size, &all) || all > PTRDIFF_MAX)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "%s: %zu elements on %" PRIu32 " ranks do not fit the address space", call, work->count,
                      communicator->world_size);
  const bool has_src = sends(communicator, work);
  if (has_src) RONDO_TRY(check_buffer(call, "the source", work->src, work));
  RONDO_TRY(check_buffer(call, "the destination", work->dst, work));
  return has_src ? check_overlap(call, communicator, work, part) : RONDO_OK;
}

static rondo_status check(const char *call, const rondo_communicator *communicator, const rondo_stream *stream,
                          const rondo_collective *work) {
  RONDO_TRY(rondo_check_call(call, "the communicator", communicator));
  RONDO_TRY(rondo_device_require_own(call, communicator->device));
  RONDO_TRY(rondo_require(call, "the stream", stream));
  RONDO_TRY(rondo_require_device(call, "the stream", communicator->device, stream->device));
  if (operations[work->operation].src == NOTHING) return RONDO_OK;
  RONDO_TRY(check_types(call, work));
  if (work->root >= communicator->world_size)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: root %" PRIu32 " is out of range: the group has %" PRIu32 " ranks", call, work->root,
                      communicator->world_size);
  RONDO_TRY(check_buffers(call, communicator, work));
  const rondo_transport *transport = communicator->link->transport;
  return transport->check == NULL ? RONDO_OK : transport->check(communicator->link, call, work);
}

static rondo_status run(rondo_communicator *communicator, rondo_stream *stream, rondo_collective work) {
  const char *const call = operations[work.operation].call;
  RONDO_TRY(check(call, communicator, stream, &work));
  RONDO_TRY(rondo_capture_refuse_stray(stream, call));
  if (!sends(communicator, &work)) work.src = NULL;
  RONDO_TRY(communicator->link->transport->run(communicator->link, stream, call, &work));
  atomic_fetch_add_explicit(&communicator->collectives, 1, memory_order_relaxed);
  return RONDO_OK;
}

rondo_status rondo_all_reduce(rondo_communicator *communicator, rondo_stream *stream, const void *src, void *dst,
                              size_t count, rondo_type type, rondo_reduction reduction) {
  return run(
      communicator, stream,
      (rondo_collective){
          .operation = RONDO_ALL_REDUCE, .type = type, .reduction = reduction, .count = count, .src = src, .dst = dst});
}

rondo_status rondo_broadcast(rondo_communicator *communicator, rondo_stream *stream, const void *src, void *dst,
                             size_t count, rondo_type type, uint32_t root) {
  return run(communicator, stream,
             (rondo_collective){
                 .operation = RONDO_BROADCAST, .type = type, .root = root, .count = count, .src = src, .dst = dst});
}

rondo_status rondo_all_gather(rondo_communicator *communicator, rondo_stream *stream, const void *src, void *dst,
                              size_t count, rondo_type type) {
  return run(communicator, stream,
             (rondo_collective){.operation = RONDO_ALL_GATHER, .type = type, .count = count, .src = src, .dst = dst});
}

rondo_status rondo_reduce_scatter(rondo_communicator *communicator, rondo_stream *stream, const void *src, void *dst,
                                  size_t count, rondo_type type, rondo_reduction reduction) {
  return run(communicator, stream,
             (rondo_collective){.operation = RONDO_REDUCE_SCATTER,
                                .type = type,
                                .reduction = reduction,
                                .count = count,
                                .src = src,
                                .dst = dst});
}

rondo_status rondo_barrier(rondo_communicator *communicator, rondo_stream *stream) {
  return run(communicator, stream, (rondo_collective){.operation = RONDO_BARRIER});
}
