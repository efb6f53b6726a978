/* SPDX-License-Identifier: MIT
 * Slots and clocks of streams.
 */
#include "memory/pool/stream_order.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"

/* Slots ----------------------------------------------------------------------------------------------------------- */

static void take_slot(rondo_order_table *table, uint32_t slot, rondo_stream_order *stream) {
  rondo_order_slot *at = &table->items[slot];
  assert(slot != 0 && at->waited <= at->freed);
  at->taken = true;
  stream->slot = slot;
  stream->freed = stream->waited = at->freed;
}

rondo_status rondo_order_join(const rondo_allocator *allocator, rondo_order_table *table, rondo_stream_order *stream) {
  if (stream->slot != 0) return RONDO_OK;
  for (size_t i = 1; i < table->count; i++)
    if (!table->items[i].taken) {
      take_slot(table, (uint32_t)i, stream);
      return RONDO_OK;
    }
  const rondo_order_slot none = {.taken = true};
  while (table->count == 0) RONDO_TRY(rondo_array_push(allocator, table, &none));
  RONDO_TRY(rondo_array_push(allocator, table, &none));
  take_slot(table, (uint32_t)table->count - 1, stream);
  return RONDO_OK;
}

void rondo_order_leave(rondo_order_table *table, rondo_stream_order *stream) {
  assert(stream->slot == 0 || table->items[stream->slot].taken);
  if (stream->slot != 0) table->items[stream->slot].taken = false;
  if (stream->known != NULL) rondo_clock_release(stream->known);
  *stream = (rondo_stream_order){0};
}

uint64_t rondo_order_number(rondo_order_table *table, rondo_stream_order *stream) {
  assert(stream->slot != 0);
  stream->freed = ++table->items[stream->slot].freed;
  return stream->freed;
}

/* Clocks ---------------------------------------------------------------------------------------------------------- */

static size_t clock_bytes(uint32_t count) { return sizeof(rondo_clock) + count * sizeof(uint64_t); }

void rondo_clock_release(rondo_clock *clock) {
  if (clock == NULL || atomic_fetch_sub_explicit(&clock->references, 1, memory_order_acq_rel) > 1) return;
  const rondo_allocator allocator = clock->allocator;
  rondo_release(&allocator, clock, 1, clock_bytes(clock->count));
}

rondo_clock *rondo_clock_retain(rondo_clock *clock) {
  if (clock != NULL) atomic_fetch_add_explicit(&clock->references, 1, memory_order_relaxed);
  return clock;
}

static rondo_clock *make_clock(const rondo_allocator *allocator, uint32_t count) {
  rondo_clock *clock;
  assert(count > 0);
  if (rondo_allocate_items(allocator, 1, clock_bytes(count), &clock) != RONDO_OK) return NULL;
  atomic_init(&clock->references, 1);
  clock->allocator = *allocator;
  clock->count = count;
  return clock;
}

rondo_clock *rondo_order_snapshot(const rondo_allocator *allocator, const rondo_order_table *table) {
  if (table->count == 0) return NULL;
  rondo_clock *clock = make_clock(allocator, (uint32_t)table->count);
  for (uint32_t i = 0; clock != NULL && i < clock->count; i++) clock->numbers[i] = table->items[i].freed;
  return clock;
}

/* A clock that only the stream references, with at least `count` numbers; NULL without host memory. */
static rondo_clock *own_clock(const rondo_allocator *allocator, rondo_stream_order *stream, uint32_t count) {
  rondo_clock *old = stream->known;
  const uint32_t old_count = old == NULL ? 0 : old->count;
  if (old != NULL && old_count >= count && atomic_load_explicit(&old->references, memory_order_acquire) == 1)
    return old;
  rondo_clock *clock = make_clock(allocator, count > old_count ? count : old_count);
  if (clock == NULL) return NULL;
  if (old != NULL) memcpy(clock->numbers, old->numbers, old_count * sizeof *old->numbers);
  rondo_clock_release(old);
  stream->known = clock;
  return clock;
}

void rondo_order_learn(const rondo_allocator *allocator, rondo_stream_order *stream, uint32_t slot, uint64_t number) {
  if (slot == 0 || rondo_order_knows(stream, slot, number)) return;
  assert(slot != stream->slot); /* a stream knows all its own frees */
  rondo_clock *clock = own_clock(allocator, stream, slot + 1);
  if (clock != NULL) clock->numbers[slot] = number;
}

void rondo_order_copy_slowly(rondo_event_order *event, const rondo_stream_order *stream) {
  rondo_clock *known = rondo_clock_retain(stream->known);
  rondo_clock_release(event->known);
  *event = (rondo_event_order){.slot = stream->slot, .freed = stream->freed, .known = known};
}

static bool knows_all(const rondo_stream_order *stream, const rondo_clock *clock) {
  for (uint32_t i = 1; i < clock->count; i++)
    if (clock->numbers[i] > 0 && !rondo_order_knows(stream, i, clock->numbers[i])) return false;
  return true;
}

/* A stream without a clock shares the event's. */
static bool adopt(rondo_stream_order *stream, rondo_clock *clock) {
  if (stream->known != NULL) return false;
  stream->known = rondo_clock_retain(clock);
  return true;
}

static void merge_clock(const rondo_allocator *allocator, rondo_stream_order *stream, rondo_clock *other) {
  if (stream->known == other || adopt(stream, other) || knows_all(stream, other)) return;
  rondo_clock *clock = own_clock(allocator, stream, other->count);
  for (uint32_t i = 1; clock != NULL && i < other->count; i++)
    if (other->numbers[i] > clock->numbers[i]) clock->numbers[i] = other->numbers[i];
}

void rondo_order_merge(const rondo_allocator *allocator, rondo_stream_order *stream, const rondo_event_order *event) {
  if (event->known != NULL) merge_clock(allocator, stream, event->known);
  rondo_order_learn(allocator, stream, event->slot, event->freed);
}
