/* SPDX-License-Identifier: MIT
 * How the wait of a piece ends. When all ranks have arrived they all compare the same words, so that all find the same
 * difference. What only one rank sees, the end of another or a timeout, it tells the others.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "exec/collective/collective_reduce.h"
#include "exec/collective/exchange.h"

static const uint64_t FIRST_LOOK_NS = UINT64_C(10000000), LONGEST_LOOK_NS = UINT64_C(200000000);
static const uint64_t IDLE_NS = UINT64_C(3600000000000);

/* Failing --------------------------------------------------------------------------------------------------------- */

enum { DESCRIPTION_BYTES = 96 };

/* "all_reduce (sum) of 4096 f32" */
static const char *describe(char text[DESCRIPTION_BYTES], const rondo_group_work *work) {
  const char *const name = rondo_operation_name((rondo_operation)work->operation);
  if (work->operation == RONDO_BARRIER) return name;
  char detail[24] = "";
  if (work->reduction != 0)
    (void)snprintf(detail, sizeof detail, " (%s)", rondo_reduction_name((rondo_reduction)work->reduction));
  if (work->operation == RONDO_BROADCAST) (void)snprintf(detail, sizeof detail, " (root %" PRIu32 ")", work->root);
  (void)snprintf(text, DESCRIPTION_BYTES, "%s%s of %" PRIu64 " %s", name, detail, work->count,
                 rondo_type_name((rondo_type)work->type));
  return text;
}

/* "rank 0 of 2 ('gradients')" */
static const char *name_self(char text[DESCRIPTION_BYTES], const rondo_exchange *exchange) {
  const bool has_name = exchange->name[0] != '\0';
  (void)snprintf(text, DESCRIPTION_BYTES, "rank %" PRIu32 " of %" PRIu32 "%s%.40s%s", exchange->group->rank,
                 exchange->group->world_size, has_name ? " ('" : "", exchange->name, has_name ? "')" : "");
  return text;
}

static void tell_others(const rondo_exchange *exchange, const char *text) {
  rondo_group *group = exchange->group;
  rondo_group_member *self = rondo_group_self(group);
  (void)snprintf(self->failure, sizeof self->failure, "%.*s", RONDO_GROUP_TEXT - 1, text);
  atomic_store(&self->failed, 1);
  for (uint32_t rank = 0; rank < group->world_size; rank++) rondo_group_ring(group, rank);
}

void rondo_exchange_fail(rondo_exchange *exchange, rondo_reason reason, const char *format, ...) {
  uint32_t before = 0;
  if (!atomic_compare_exchange_strong(&exchange->failed, &before, 1)) return;
  char self[DESCRIPTION_BYTES], what[512];
  rondo_saved_error own;
  va_list arguments;
  va_start(arguments, format);
  (void)rondo_format_cut(what, sizeof what, format, arguments);
  va_end(arguments);
  rondo_error_save(&own);
  (void)rondo_fail(RONDO_EXECUTION_FAILED, reason, "%s: %s", name_self(self, exchange), what);
  rondo_error_save(&exchange->failure);
  rondo_error_restore(&own);
  atomic_store(&exchange->failed, 2);
  exchange->device->ops->semaphore->fail_waits(exchange->event.driver, &exchange->failure);
  tell_others(exchange, what);
}

/* Settling -------------------------------------------------------------------------------------------------------- */

static bool is_same(const rondo_group_work *a, const rondo_group_work *b) { return memcmp(a, b, sizeof *a) == 0; }

/* The first rank that differs from rank 0; the number of ranks when all agree. */
static uint32_t find_difference(const rondo_group *group, uint64_t number) {
  const rondo_group_member *members = group->header->members;
  uint32_t rank = 1;
  while (rank < group->world_size && is_same(&members[0].works[number % 2], &members[rank].works[number % 2])) rank++;
  return rank;
}

static void fail_difference(rondo_exchange *exchange, uint64_t number, uint32_t rank) {
  const rondo_group_member *members = exchange->group->header->members;
  const rondo_group_work first = members[0].works[number % 2], other = members[rank].works[number % 2];
  char of_first[DESCRIPTION_BYTES], of_other[DESCRIPTION_BYTES];
  rondo_exchange_fail(exchange, RONDO_REASON_MISMATCH,
                      "rank 0 calls %s, but rank %" PRIu32 " calls %s (piece %" PRIu64
                      "): call the same collectives in the same order on all ranks",
                      describe(of_first, &first), rank, describe(of_other, &other), number);
}

static void note_settled(rondo_exchange *exchange, uint64_t number) {
  atomic_store(&exchange->settled, number);
  exchange->device->ops->semaphore->raise(exchange->event.driver, number);
}

/* All have arrived. */
static void compare(rondo_exchange *exchange, uint64_t number) {
  const uint32_t different = find_difference(exchange->group, number);
  if (different < exchange->group->world_size)
    fail_difference(exchange, number, different);
  else
    note_settled(exchange, number);
}

bool rondo_exchange_settle(rondo_exchange *exchange, uint64_t number) {
  const rondo_group *group = exchange->group;
  for (uint32_t rank = 0; rank < group->world_size; rank++)
    if (atomic_load(&group->header->members[rank].arrived) < number) return false;
  if (atomic_exchange(&exchange->settling, 1) != 0) return false;
  if (atomic_load(&exchange->settled) < number && !rondo_exchange_has_failed(exchange)) compare(exchange, number);
  atomic_store(&exchange->settling, 0);
  return true;
}

/* Watching -------------------------------------------------------------------------------------------------------- */

static const char *describe_last(char text[DESCRIPTION_BYTES], const rondo_exchange *exchange) {
  const uint64_t kind = atomic_load_explicit(&exchange->last_kind, memory_order_relaxed);
  const rondo_group_work work = {.count = atomic_load_explicit(&exchange->last_count, memory_order_relaxed),
                                 .operation = (uint32_t)(kind >> 16) & 0xff,
                                 .type = (uint32_t)(kind >> 8) & 0xff,
                                 .reduction = (uint32_t)kind & 0xff,
                                 .root = (uint32_t)(kind >> 32)};
  return describe(text, &work);
}

/* A rank that has not arrived, and never will. */
static bool is_lost(rondo_exchange *exchange, uint32_t rank, uint64_t number) {
  const rondo_group *group = exchange->group;
  const rondo_group_member *member = &group->header->members[rank];
  char work[DESCRIPTION_BYTES];
  if (atomic_load(&member->failed) != 0) {
    rondo_exchange_fail(exchange, RONDO_REASON_PEER_LOST, "%s: rank %" PRIu32 " has failed: %.*s",
                        describe_last(work, exchange), rank, RONDO_GROUP_TEXT - 1, member->failure);
    return true;
  }
  const bool has_left = atomic_load(&member->left) != 0;
  const bool is_gone = has_left || !rondo_group_is_alive(group, rank);
  if (!is_gone || atomic_load(&member->arrived) >= number) return false;
  rondo_exchange_fail(exchange, RONDO_REASON_PEER_LOST, "%s: rank %" PRIu32 " %s: it made fewer calls, or failed",
                      describe_last(work, exchange), rank,
                      has_left ? "has destroyed its communicator" : "has ended, with its process");
  return true;
}

/* True when somebody has come, or it is over. */
static bool look_for_lost(rondo_exchange *exchange, uint64_t number) {
  const rondo_group *group = exchange->group;
  const uint64_t waited_ns = rondo_clock_ns() - atomic_load(&exchange->arrived_ns);
  char work[DESCRIPTION_BYTES];
  for (uint32_t rank = 0; rank < group->world_size; rank++) {
    if (atomic_load(&group->header->members[rank].arrived) >= number) continue;
    if (is_lost(exchange, rank, number)) return true;
    if (waited_ns < exchange->timeout_ns) continue;
    rondo_exchange_fail(exchange, RONDO_REASON_TIMED_OUT,
                        "%s: rank %" PRIu32 " did not arrive within %" PRIu64
                        " ms: it made fewer calls, or is busy: then raise timeout_ms",
                        describe_last(work, exchange), rank, exchange->timeout_ns / UINT64_C(1000000));
    return true;
  }
  return false;
}

/* Nothing is to be watched: what is waited for has come, or never will. */
static bool is_idle(rondo_exchange *exchange) {
  const uint64_t number = atomic_load(&exchange->arrived);
  return rondo_exchange_has_failed(exchange) || atomic_load(&exchange->settled) >= number ||
         rondo_exchange_settle(exchange, number) || look_for_lost(exchange, number);
}

void *rondo_exchange_watch(void *argument) {
  rondo_exchange *exchange = argument;
  rondo_group *group = exchange->group;
  uint64_t look_ns = FIRST_LOOK_NS;
  while (!atomic_load(&exchange->stop)) {
    const uint32_t seen = atomic_load(&rondo_group_self(group)->doorbell);
    const bool is_at_rest = is_idle(exchange);
    if (atomic_load(&exchange->stop)) break;
    rondo_group_sleep(group, seen, is_at_rest ? IDLE_NS : look_ns);
    look_ns = is_at_rest ? FIRST_LOOK_NS : 2 * look_ns;
    if (look_ns > LONGEST_LOOK_NS) look_ns = LONGEST_LOOK_NS;
  }
  return NULL;
}
