/* SPDX-License-Identifier: MIT
 * What a piece does on workers. A slot has the data as it is sent: one part, or, for reduce-scatter, one part for each
 * rank after another. After a failure nothing is copied, but every piece is still finished, so that it is counted.
 */
#include <string.h>

#include "base/clock.h"
#include "exec/collective/collective_reduce.h"
#include "exec/collective/exchange.h"

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* The bytes of a piece's part. */
static size_t part_bytes(const rondo_piece *piece) {
  return (size_t)piece->length * rondo_type_bytes((rondo_type)piece->type);
}

/* A range of blocks, in bytes of what the kernel walks over. */
typedef struct stretch {
  size_t begin, end;
} stretch;

static stretch stretch_of(rondo_blocks blocks, size_t all) {
  return (stretch){smaller(blocks.first * RONDO_EXCHANGE_BLOCK, all), smaller(blocks.last * RONDO_EXCHANGE_BLOCK, all)};
}

/* Copies a stretch of parts of `part` bytes that lie `from_step` bytes apart, into ones that lie `to_step` apart. */
static void copy_parts(char *to, size_t to_step, const char *from, size_t from_step, size_t part, stretch s) {
  while (s.begin < s.end) {
    const size_t index = s.begin / part, inside = s.begin % part;
    const size_t bytes = smaller(part - inside, s.end - s.begin);
    memcpy(to + index * to_step + inside, from + index * from_step + inside, bytes);
    s.begin += bytes;
  }
}

/* Arriving -------------------------------------------------------------------------------------------------------- */

/* The piece is the one under way, or becomes it. */
static bool claim(rondo_exchange *exchange, const rondo_piece *piece) {
  uint64_t current = 0;
  if (rondo_exchange_has_failed(exchange)) return false;
  if (atomic_compare_exchange_strong(&exchange->current, &current, piece->tag) || current == piece->tag) return true;
  rondo_exchange_fail(
      exchange, RONDO_REASON_OVERLAP,
      "%s began while another collective of this communicator was in progress: enqueue them on one stream, "
      "order the streams by events, or use two communicators",
      rondo_operation_name((rondo_operation)piece->operation));
  return false;
}

static void say_what(const rondo_exchange *exchange, uint64_t number, const rondo_piece *piece) {
  rondo_group_self(exchange->group)->works[number % 2] = (rondo_group_work){.count = piece->count,
                                                                            .first = piece->first,
                                                                            .operation = piece->operation,
                                                                            .type = piece->type,
                                                                            .reduction = piece->reduction,
                                                                            .root = piece->root};
}

/* The piece is the one under way, and arrives once. */
static bool may_arrive(rondo_exchange *exchange, const rondo_piece *piece) {
  if (!claim(exchange, piece)) return false;
  if (atomic_exchange(&exchange->has_arrived, 1) == 0) return true;
  rondo_exchange_fail(exchange, RONDO_REASON_OVERLAP,
                      "%s of two execs ran at once: order them, or give each exec its own communicator",
                      rondo_operation_name((rondo_operation)piece->operation));
  return false;
}

static void arrive(rondo_exchange *exchange, const rondo_piece *piece) {
  const rondo_semaphore_ops *semaphore = exchange->device->ops->semaphore;
  rondo_group *group = exchange->group;
  const uint64_t number = atomic_load_explicit(&exchange->arrived, memory_order_relaxed) + 1;
  if (!may_arrive(exchange, piece)) {
    semaphore->ask(exchange->event.driver, UINT64_MAX); /* the wait must not be over before the failure is there */
    return;
  }
  say_what(exchange, number, piece);
  rondo_exchange_note_last(exchange, piece);
  atomic_store(&exchange->arrived_ns, rondo_clock_ns());
  semaphore->ask(exchange->event.driver, number);
  atomic_store(&exchange->arrived, number);
  atomic_store(&rondo_group_self(group)->arrived, number);
  for (uint32_t rank = 0; rank < group->world_size; rank++)
    if (rank != group->rank) rondo_group_ring(group, rank);
  if (!rondo_exchange_settle(exchange, number)) rondo_group_ring(group, group->rank);
}

/* (reads src, updates exchange, piece) */
static void run_send(rondo_blocks blocks, void *const *args) {
  const char *src = *(const char *const *)args[0];
  rondo_exchange *exchange = *(rondo_exchange *const *)args[1];
  const rondo_piece *piece = args[2];
  const rondo_group *group = exchange->group;
  const size_t part = part_bytes(piece), element = rondo_type_bytes((rondo_type)piece->type);
  const bool scatters = piece->operation == RONDO_REDUCE_SCATTER;
  if (claim(exchange, piece)) {
    const uint64_t number = atomic_load_explicit(&exchange->arrived, memory_order_relaxed) + 1;
    char *slot = (char *)rondo_group_slot(group, group->rank, number);
    const char *from = scatters ? src + (size_t)piece->first * element : src;
    copy_parts(slot, part, from, scatters ? (size_t)piece->count * element : part, part,
               stretch_of(blocks, scatters ? part * group->world_size : part));
  }
  if ((piece->flags & RONDO_PIECE_ARRIVES) != 0) arrive(exchange, piece);
}

/* (updates exchange, piece) */
static void run_arrive(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  arrive(*(rondo_exchange *const *)args[0], args[1]);
}

/* Receiving ------------------------------------------------------------------------------------------------------- */

/* `offset`: where in the slots the parts begin that are combined. */
static void combine(const rondo_exchange *exchange, const rondo_piece *piece, char *dst, size_t offset, stretch s) {
  const rondo_group *group = exchange->group;
  const uint64_t number = atomic_load_explicit(&exchange->arrived, memory_order_relaxed);
  const rondo_reduce_function reduce = rondo_reduce_find((rondo_type)piece->type, (rondo_reduction)piece->reduction);
  const size_t element = rondo_type_bytes((rondo_type)piece->type), at = offset + s.begin;
  memcpy(dst + s.begin, rondo_group_slot(group, 0, number) + at, s.end - s.begin);
  for (uint32_t rank = 1; rank < group->world_size; rank++)
    reduce(dst + s.begin, rondo_group_slot(group, rank, number) + at, (s.end - s.begin) / element);
}

static void gather(const rondo_exchange *exchange, const rondo_piece *piece, char *dst, stretch s) {
  const rondo_group *group = exchange->group;
  const uint64_t number = atomic_load_explicit(&exchange->arrived, memory_order_relaxed);
  const size_t element = rondo_type_bytes((rondo_type)piece->type);
  copy_parts(dst + (size_t)piece->first * element, (size_t)piece->count * element,
             (const char *)rondo_group_slot(group, 0, number), 2 * (size_t)group->piece_bytes, part_bytes(piece), s);
}

static void receive(const rondo_exchange *exchange, const rondo_piece *piece, char *dst, rondo_blocks blocks) {
  const rondo_group *group = exchange->group;
  const size_t part = part_bytes(piece);
  const stretch s = stretch_of(blocks, part);
  switch ((rondo_operation)piece->operation) {
    case RONDO_ALL_REDUCE:
      combine(exchange, piece, dst, 0, s);
      return;
    case RONDO_REDUCE_SCATTER:
      combine(exchange, piece, dst, part * group->rank, s);
      return;
    case RONDO_BROADCAST: {
      const uint64_t number = atomic_load_explicit(&exchange->arrived, memory_order_relaxed);
      memcpy(dst + s.begin, rondo_group_slot(group, piece->root, number) + s.begin, s.end - s.begin);
      return;
    }
    case RONDO_ALL_GATHER:
      gather(exchange, piece, dst, stretch_of(blocks, part * group->world_size));
      return;
    case RONDO_BARRIER:
      return;
  }
}

static void finish(rondo_exchange *exchange, const rondo_piece *piece) {
  if (atomic_load_explicit(&exchange->current, memory_order_relaxed) == piece->tag) {
    atomic_store_explicit(&exchange->has_arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&exchange->current, 0, memory_order_release);
  }
  if ((piece->flags & RONDO_PIECE_IS_QUEUED) == 0) return;
  atomic_fetch_add(&exchange->done, 1);
  atomic_fetch_add(&exchange->done_signal, 1);
  rondo_futex_wake(&exchange->done_signal, UINT32_MAX);
}

/* All ranks have arrived with the piece that runs. It is then received even if something fails meanwhile, because
 * its wait did not fail. */
static bool is_there(const rondo_exchange *exchange, const rondo_piece *piece) {
  return atomic_load_explicit(&exchange->current, memory_order_relaxed) == piece->tag &&
         atomic_load(&exchange->settled) >= atomic_load_explicit(&exchange->arrived, memory_order_relaxed);
}

/* (updates exchange, writes dst, piece) */
static void run_receive(rondo_blocks blocks, void *const *args) {
  rondo_exchange *exchange = *(rondo_exchange *const *)args[0];
  const rondo_piece *piece = args[2];
  if (is_there(exchange, piece)) receive(exchange, piece, *(char *const *)args[1], blocks);
  if ((piece->flags & RONDO_PIECE_FINISHES) != 0) finish(exchange, piece);
}

/* (updates exchange, piece) */
static void run_finish(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  finish(*(rondo_exchange *const *)args[0], args[1]);
}

/* Kernels --------------------------------------------------------------------------------------------------------- */

#define PIECE RONDO_PARAMETER(RONDO_ACCESS_SCALAR, sizeof(rondo_piece), RONDO_ALIGNOF(rondo_piece))

static const rondo_kernel_options kernels[RONDO_EXCHANGE_KERNELS] = {
    [RONDO_EXCHANGE_SEND] = {.name = "send", .cpu = run_send, .params = {RONDO_READS, RONDO_UPDATES, PIECE}},
    [RONDO_EXCHANGE_ARRIVE] = {.name = "arrive", .cpu = run_arrive, .params = {RONDO_UPDATES, PIECE}},
    [RONDO_EXCHANGE_RECEIVE] = {.name = "receive", .cpu = run_receive, .params = {RONDO_UPDATES, RONDO_WRITES, PIECE}},
    [RONDO_EXCHANGE_FINISH] = {.name = "finish", .cpu = run_finish, .params = {RONDO_UPDATES, PIECE}},
};

static void release_event(void *event) { rondo_event_release(event); }

rondo_status rondo_exchange_make_kernel(rondo_exchange *exchange, unsigned which, rondo_kernel **out) {
  RONDO_TRY(rondo_kernel_make(exchange->device, &exchange->allocator, &kernels[which], out));
  rondo_event_retain(&exchange->event);
  (*out)->kept = &exchange->event;
  (*out)->kept_release = release_event;
  return RONDO_OK;
}
