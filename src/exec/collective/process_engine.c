/* SPDX-License-Identifier: MIT
 * The ranks of one process share a group: a lock, and for each rank the collective that it has started. The rank that
 * comes last moves the data of all, in the order of the ranks, and rings the others. A send and its receive meet in the
 * same way, pair by pair. So a rank that waits costs nothing, and no data is copied twice.
 *
 * Invariant: a rank's work is there from its start until its test has seen that it is done. A failure of the group is
 * written once and seen by all tests.
 *
 * Threads: everything in a group is accessed under its lock. A link is rung under it too: the link is freed after its
 * rank was closed, which takes the lock.
 */
#include "exec/collective/process_engine.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "exec/collective/collective_reduce.h"
#include "exec/collective/engine_progress.h"

enum { CHUNK_BYTES = 32 << 10, DESCRIPTION_BYTES = 96 };

typedef enum rank_state { IDLE, WAITING, DONE } rank_state;

typedef struct process_group process_group;

typedef struct process_rank {
  process_group *group;
  rondo_engine_link *link; /* NULL: not attached yet, or closed */
  rank_state state;
  bool has_left;
  bool has_sent, has_received; /* of a SEND_RECEIVE */
  rondo_collective work;
  /* Of a division of the group. */
  bool divides;
  uint32_t attempts; /* calls since the last division that succeeded */
  uint32_t color, key;
  rondo_collective_engine divided; /* made by the last rank that divides */
} process_rank;

struct process_group {
  rondo_allocator allocator;
  pthread_mutex_t lock;
  uint32_t count, open, waiting, dividing; /* ranks: all, not closed, waiting in a collective, dividing the group */
  _Atomic bool moves;                      /* a rank moves the data of all, with the lock */
  _Atomic uint32_t divisions;              /* futex: grows when the group was divided, or has failed */
  rondo_status status;                     /* of the failure */
  rondo_reason reason;
  bool is_reported; /* by a rank that failed by itself */
  char message[512];
  process_rank ranks[];
};

/* Failing --------------------------------------------------------------------------------------------------------- */

static void ring(process_rank *rank) {
  if (rank->link != NULL) rondo_engine_link_ring(rank->link);
}

static void wake_dividing(process_group *group) {
  atomic_fetch_add(&group->divisions, 1);
  rondo_futex_wake(&group->divisions, UINT32_MAX);
}

static void fail_group(process_group *group, rondo_reason reason, const char *format, ...) RONDO_PRINTF(3, 4);
static void fail_group(process_group *group, rondo_reason reason, const char *format, ...) {
  if (group->status != RONDO_OK) return;
  va_list arguments;
  va_start(arguments, format);
  (void)rondo_format_cut(group->message, sizeof group->message, format, arguments);
  va_end(arguments);
  group->status = RONDO_EXECUTION_FAILED;
  group->reason = reason;
  for (uint32_t i = 0; i < group->count; i++) ring(&group->ranks[i]);
  wake_dividing(group);
}

static void fail_difference(process_group *group, const process_rank *first, const process_rank *other) {
  char of_first[DESCRIPTION_BYTES], of_other[DESCRIPTION_BYTES];
  rondo_collective_describe(&first->work, of_first, sizeof of_first);
  rondo_collective_describe(&other->work, of_other, sizeof of_other);
  fail_group(group, RONDO_REASON_MISMATCH,
             "rank %td calls %s, but rank %td calls %s: call the same collectives in the same order on all ranks",
             first - group->ranks, of_first, other - group->ranks, of_other);
}

/* Moving data ----------------------------------------------------------------------------------------------------- */

static bool is_same(const rondo_collective *a, const rondo_collective *b) {
  return a->operation == b->operation && a->type == b->type && a->reduction == b->reduction && a->root == b->root &&
         a->count == b->count && a->is_average == b->is_average;
}

static size_t part_bytes(const rondo_collective *work) { return work->count * rondo_type_bytes(work->type); }

/* memcpy, also for a buffer that is already in its place. */
static void copy(void *dst, const void *src, size_t bytes) {
  if (dst != src) memcpy(dst, src, bytes);
}

/* Combines the ranks' bytes at `offset` of their sources, chunk by chunk, and writes them to the destinations of the
 * ranks from `first` on, before `last`. A chunk is read from all before it is written, because buffers may be in place.
 */
static void combine(process_group *group, size_t offset, uint32_t first, uint32_t last) {
  const rondo_collective *work = &group->ranks[0].work;
  const rondo_combine_function reduce = rondo_combine_find(work->type, work->reduction);
  const size_t bytes = part_bytes(work), element = rondo_type_bytes(work->type);
  max_align_t chunk[CHUNK_BYTES / sizeof(max_align_t)];
  for (size_t done = 0; done < bytes; done += CHUNK_BYTES) {
    const size_t now = bytes - done < CHUNK_BYTES ? bytes - done : CHUNK_BYTES;
    memcpy(chunk, (const char *)work->src + offset + done, now);
    for (uint32_t i = 1; i < group->count; i++)
      reduce(chunk, (const char *)group->ranks[i].work.src + offset + done, now / element);
    for (uint32_t i = first; i < last; i++) memcpy((char *)group->ranks[i].work.dst + done, chunk, now);
  }
}

/* dst[r] of each rank = part `i` of rank r's source, or its only part. */
static void gather(process_group *group, bool has_parts) {
  const size_t part = part_bytes(&group->ranks[0].work);
  for (uint32_t i = 0; i < group->count; i++)
    for (uint32_t r = 0; r < group->count; r++)
      copy((char *)group->ranks[i].work.dst + r * part,
           (const char *)group->ranks[r].work.src + (has_parts ? i * part : 0), part);
}

static void broadcast(process_group *group) {
  const rondo_collective *from = &group->ranks[group->ranks[0].work.root].work;
  for (uint32_t i = 0; i < group->count; i++) copy(group->ranks[i].work.dst, from->src, part_bytes(from));
}

static void move_data(process_group *group) {
  switch (group->ranks[0].work.operation) {
    case RONDO_COLLECTIVE_ALL_REDUCE:
      combine(group, 0, 0, group->count);
      return;
    case RONDO_COLLECTIVE_REDUCE_SCATTER:
      for (uint32_t i = 0; i < group->count; i++) combine(group, i * part_bytes(&group->ranks[0].work), i, i + 1);
      return;
    case RONDO_COLLECTIVE_ALL_GATHER:
      gather(group, false);
      return;
    case RONDO_COLLECTIVE_ALL_TO_ALL:
      gather(group, true);
      return;
    case RONDO_COLLECTIVE_BROADCAST:
      broadcast(group);
      return;
    case RONDO_COLLECTIVE_SEND_RECEIVE:
    case RONDO_COLLECTIVE_BARRIER:
      return;
  }
}

/* All ranks wait in a collective of the group. */
static void run_together(process_group *group) {
  for (uint32_t i = 1; i < group->count; i++) {
    if (is_same(&group->ranks[0].work, &group->ranks[i].work)) continue;
    fail_difference(group, &group->ranks[0], &group->ranks[i]);
    return;
  }
  atomic_store(&group->moves, true);
  move_data(group);
  atomic_store(&group->moves, false);
  group->waiting = 0;
  for (uint32_t i = 0; i < group->count; i++) {
    group->ranks[i].state = DONE;
    ring(&group->ranks[i]);
  }
}

/* Sending and receiving ------------------------------------------------------------------------------------------- */

static void end_pair(process_rank *rank) {
  if ((rank->work.src != NULL && !rank->has_sent) || (rank->work.dst != NULL && !rank->has_received)) return;
  rank->state = DONE;
  ring(rank);
}

static bool is_pair(const process_rank *rank) { return rank->work.operation == RONDO_COLLECTIVE_SEND_RECEIVE; }

/* Whether the rank's send or receive waits for the rank `other`. */
static bool waits_for(const process_rank *rank, uint32_t other) {
  const rondo_collective *work = &rank->work;
  return (work->src != NULL && !rank->has_sent && work->to == other) ||
         (work->dst != NULL && !rank->has_received && work->from == other);
}

/* A collective of all ranks needs this one, and a send or receive needs the other: they would wait for each other. */
static void look_for_crossed(process_group *group, const process_rank *rank) {
  const uint32_t self = (uint32_t)(rank - group->ranks);
  for (uint32_t i = 0; i < group->count; i++) {
    const process_rank *other = &group->ranks[i];
    if (other->state != WAITING || is_pair(other) == is_pair(rank)) continue;
    if (is_pair(rank) ? !waits_for(rank, i) : !waits_for(other, self)) continue;
    fail_difference(group, i < self ? other : rank, i < self ? rank : other);
    return;
  }
}

/* Moves what one rank sends to another if both are there. */
static void meet(process_rank *sender, process_rank *receiver) {
  process_group *group = sender->group;
  const rondo_collective *sent = &sender->work, *received = &receiver->work;
  const bool sends = sender->state == WAITING && sent->operation == RONDO_COLLECTIVE_SEND_RECEIVE &&
                     sent->src != NULL && !sender->has_sent && &group->ranks[sent->to] == receiver;
  const bool receives = receiver->state == WAITING && received->operation == RONDO_COLLECTIVE_SEND_RECEIVE &&
                        received->dst != NULL && !receiver->has_received && &group->ranks[received->from] == sender;
  if (!sends || !receives) return;
  if (sent->count != received->count || sent->type != received->type) {
    fail_difference(group, sender, receiver);
    return;
  }
  memcpy(received->dst, sent->src, part_bytes(sent));
  sender->has_sent = receiver->has_received = true;
  end_pair(sender);
  if (receiver != sender) end_pair(receiver);
}

/* The engine ------------------------------------------------------------------------------------------------------ */

/* What one rank reports to the others names none of their operations. */
static rondo_status raise_failure(const process_rank *rank) {
  const process_group *group = rank->group;
  char description[DESCRIPTION_BYTES];
  if (!group->is_reported) return rondo_fail(group->status, group->reason, "%s", group->message);
  rondo_collective_describe(&rank->work, description, sizeof description);
  return rondo_fail(group->status, group->reason, "%s: %s", description, group->message);
}

/* A rank that has left starts nothing any more. */
static void look_for_left(process_group *group, const process_rank *rank) {
  char description[DESCRIPTION_BYTES];
  rondo_collective_describe(&rank->work, description, sizeof description);
  for (uint32_t i = 0; i < group->count; i++) {
    if (!group->ranks[i].has_left || (is_pair(rank) && !waits_for(rank, i))) continue;
    fail_group(group, RONDO_REASON_PEER_LOST,
               "%s: rank %" PRIu32 " has destroyed its communicator: it made fewer calls, or failed", description, i);
    return;
  }
}

static rondo_status engine_start(void *user, const rondo_collective *work, bool is_captured) {
  process_rank *rank = user;
  process_group *group = rank->group;
  rondo_status status = RONDO_OK;
  (void)is_captured;
  pthread_mutex_lock(&group->lock);
  assert(rank->state != WAITING || group->status != RONDO_OK);
  rank->work = *work;
  rank->state = WAITING;
  rank->has_sent = rank->has_received = false;
  if (group->status == RONDO_OK && is_pair(rank)) {
    if (work->src != NULL) meet(rank, &group->ranks[work->to]);
    if (work->dst != NULL && rank->state == WAITING) meet(&group->ranks[work->from], rank);
  } else if (group->status == RONDO_OK && ++group->waiting == group->count) {
    run_together(group);
  }
  if (rank->state == WAITING) look_for_left(group, rank);
  if (rank->state == WAITING) look_for_crossed(group, rank);
  if (group->status != RONDO_OK) status = raise_failure(rank);
  pthread_mutex_unlock(&group->lock);
  return status;
}

static rondo_status engine_test(void *user, bool *out_is_done) {
  process_rank *rank = user;
  process_group *group = rank->group;
  rondo_status status = RONDO_OK;
  *out_is_done = false;
  if (atomic_load(&group->moves)) return RONDO_OK; /* the rank is rung afterwards */
  pthread_mutex_lock(&group->lock);
  *out_is_done = rank->state == DONE;
  if (!*out_is_done && group->status != RONDO_OK) status = raise_failure(rank);
  pthread_mutex_unlock(&group->lock);
  return status;
}

/* "rank 1, 3 did not call it" */
static void engine_absent(void *user, char *text, size_t bytes) {
  const process_rank *rank = user;
  process_group *group = rank->group;
  size_t used = 0;
  text[0] = '\0';
  pthread_mutex_lock(&group->lock);
  for (uint32_t i = 0; i < group->count && used + 24 < bytes; i++) {
    if (group->ranks[i].state == WAITING || (is_pair(rank) && !waits_for(rank, i))) continue;
    used += (size_t)snprintf(text + used, bytes - used, "%s%" PRIu32, used == 0 ? "rank " : ", ", i);
  }
  pthread_mutex_unlock(&group->lock);
  (void)snprintf(text + used, bytes - used, "%s", used == 0 ? "the ranks wait for each other" : " did not call it");
}

static void engine_notify(void *user, const char *message) {
  const process_rank *rank = user;
  process_group *group = rank->group;
  pthread_mutex_lock(&group->lock);
  if (group->status == RONDO_OK) group->is_reported = true;
  fail_group(group, RONDO_REASON_PEER_LOST, "rank %td has failed: %s", rank - group->ranks, message);
  pthread_mutex_unlock(&group->lock);
}

static void engine_close(void *user) {
  process_rank *rank = user;
  process_group *group = rank->group;
  pthread_mutex_lock(&group->lock);
  rank->link = NULL;
  rank->has_left = true;
  wake_dividing(group);
  for (uint32_t i = 0; i < group->count; i++)
    if (group->ranks[i].state == WAITING && group->status == RONDO_OK) look_for_left(group, &group->ranks[i]);
  const bool is_last = --group->open == 0;
  pthread_mutex_unlock(&group->lock);
  if (!is_last) return;
  const rondo_allocator allocator = group->allocator;
  pthread_mutex_destroy(&group->lock);
  rondo_release(&allocator, group, 1, sizeof *group + group->count * sizeof *group->ranks);
}

void rondo_process_engine_attach(rondo_engine_link *link) {
  process_rank *rank = link->engine.user;
  pthread_mutex_lock(&rank->group->lock);
  rank->link = link;
  ring(rank);
  pthread_mutex_unlock(&rank->group->lock);
}

/* Dividing -------------------------------------------------------------------------------------------------------- */

/* Whether rank `a` comes before rank `b` in their new group. */
static bool comes_before(const process_rank *a, const process_rank *b) {
  return a->key != b->key ? a->key < b->key : a < b;
}

static uint32_t new_rank_of(const process_group *group, const process_rank *rank) {
  uint32_t number = 0;
  for (uint32_t i = 0; i < group->count; i++)
    number += group->ranks[i].color == rank->color && comes_before(&group->ranks[i], rank);
  return number;
}

/* The new group of the ranks with the color of `rank`, the first of them. */
static rondo_status divide_color(process_group *group, const process_rank *rank) {
  uint32_t members = 0;
  rondo_collective_engine *engines;
  for (uint32_t i = 0; i < group->count; i++) members += group->ranks[i].color == rank->color;
  RONDO_TRY(rondo_allocate_items(&group->allocator, members, sizeof *engines, &engines));
  const rondo_status status = rondo_process_engine_make(&group->allocator, members, engines);
  for (uint32_t i = 0; i < group->count && status == RONDO_OK; i++)
    if (group->ranks[i].color == rank->color) group->ranks[i].divided = engines[new_rank_of(group, &group->ranks[i])];
  rondo_release(&group->allocator, engines, members, sizeof *engines);
  return status;
}

static void divide_all(process_group *group) {
  rondo_status status = RONDO_OK;
  for (uint32_t i = 0; i < group->count; i++) group->ranks[i].divided = (rondo_collective_engine){.user = NULL};
  for (uint32_t i = 0; i < group->count && status == RONDO_OK; i++)
    if (group->ranks[i].divided.user == NULL) status = divide_color(group, &group->ranks[i]);
  for (uint32_t i = 0; i < group->count; i++) {
    process_rank *rank = &group->ranks[i];
    rank->divides = false;
    rank->attempts = 0;
    if (status == RONDO_OK || rank->divided.user == NULL) continue;
    rank->divided.close(rank->divided.user);
    rank->divided.user = NULL;
  }
  group->dividing = 0;
  wake_dividing(group);
}

/* The first rank that has left; `count` if none has. */
static uint32_t find_left(const process_group *group) {
  uint32_t i = 0;
  while (i < group->count && !group->ranks[i].has_left) i++;
  return i;
}

static rondo_status fail_division(const process_rank *rank, uint32_t timeout_ms) {
  const process_group *group = rank->group;
  uint32_t absent = 0; /* other ranks that called it may have timed out already */
  const uint32_t left = find_left(group);
  if (group->status != RONDO_OK)
    return rondo_fail(RONDO_INVALID_STATE, group->reason, "the group has failed: %s", group->message);
  if (left < group->count)
    return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_PEER_LOST,
                      "rank %" PRIu32 " has destroyed its communicator: all ranks divide the group", left);
  while (absent + 1 < group->count && group->ranks[absent].attempts >= rank->attempts) absent++;
  return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_TIMED_OUT,
                    "rank %" PRIu32 " did not call rondo_communicator_split within %" PRIu32
                    " ms: all ranks call it, each on its own thread",
                    absent, timeout_ms);
}

/* Called with the lock, which it releases while it waits. */
static void wait_for_division(const process_rank *rank, uint64_t deadline_ns) {
  process_group *group = rank->group;
  while (rank->divides && group->status == RONDO_OK && find_left(group) == group->count) {
    const uint32_t before = atomic_load(&group->divisions);
    const uint64_t now_ns = rondo_clock_ns();
    if (now_ns >= deadline_ns) return;
    pthread_mutex_unlock(&group->lock);
    rondo_futex_wait_for(&group->divisions, before, deadline_ns - now_ns);
    pthread_mutex_lock(&group->lock);
  }
}

static rondo_status engine_split(void *user, uint32_t color, uint32_t key, uint32_t timeout_ms,
                                 rondo_collective_engine *out) {
  process_rank *rank = user;
  process_group *group = rank->group;
  rondo_status status = RONDO_OK;
  const uint64_t deadline_ns = rondo_clock_ns() + timeout_ms * UINT64_C(1000000);
  pthread_mutex_lock(&group->lock);
  rank->color = color;
  rank->key = key;
  rank->divides = true;
  rank->attempts++;
  if (++group->dividing == group->count) divide_all(group);
  wait_for_division(rank, deadline_ns);
  if (rank->divides) {
    status = fail_division(rank, timeout_ms);
    rank->divides = false;
    group->dividing--;
  } else if (rank->divided.user == NULL) {
    status = rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED, "no memory for the divided groups");
  }
  *out = rank->divided;
  pthread_mutex_unlock(&group->lock);
  return status;
}

/* Making ---------------------------------------------------------------------------------------------------------- */

rondo_status rondo_process_engine_make(const rondo_allocator *allocator, uint32_t count, rondo_collective_engine *out) {
  process_group *group;
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *group + count * sizeof *group->ranks, &group));
  group->allocator = *allocator;
  group->count = group->open = count;
  pthread_mutex_init(&group->lock, NULL);
  for (uint32_t i = 0; i < count; i++) {
    group->ranks[i] = (process_rank){.group = group};
    out[i] = (rondo_collective_engine){RONDO_COLLECTIVE_ENGINE_INIT, .rank = i,
                                       .world_size = count,          .name = "process",
                                       .user = &group->ranks[i],     .start = engine_start,
                                       .test = engine_test,          .absent = engine_absent,
                                       .notify = engine_notify,      .split = engine_split,
                                       .close = engine_close};
  }
  return RONDO_OK;
}
