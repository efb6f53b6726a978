/* SPDX-License-Identifier: MIT
 * Logging eager runs.
 */
#include "memory/profile/warm_up_log.h"

#include <assert.h>
#include <inttypes.h>

#include "base/binary_search.h"
#include "base/error.h"

#define NO_EVENT UINT32_MAX

typedef struct warm_up_event {
  uint64_t number; /* in its slot */
  uint32_t event;
} warm_up_event;

/* A slot, which streams may have one after another. */
typedef struct warm_up_slot {
  uint32_t last;                     /* its last event */
  rondo_clock *known;                /* the stream's clock at that event; a reference */
  RONDO_ARRAY(warm_up_event) events; /* by number */
} warm_up_slot;

struct rondo_warm_up {
  rondo_warm_up *next;
  rondo_allocator allocator;
  uint64_t serial; /* stored in the blocks that it logged */
  uint32_t slot;   /* of the stream on which it was begun */
  uint64_t number; /* of the begin */
  rondo_status failed;
  rondo_lifetime_draft draft; /* its nodes are the events */
  RONDO_ARRAY(warm_up_slot) slots;
};

/* Life ------------------------------------------------------------------------------------------------------------ */

/* Frees the logged data. */
static void clear(rondo_warm_up *run) {
  for (size_t i = 0; i < run->slots.count; i++) {
    rondo_clock_release(run->slots.items[i].known);
    rondo_array_free(&run->allocator, &run->slots.items[i].events);
  }
  rondo_array_free(&run->allocator, &run->slots);
  rondo_lifetime_draft_free(&run->allocator, &run->draft);
}

void rondo_warm_up_destroy(rondo_warm_up *run) {
  if (run == NULL) return;
  const rondo_allocator allocator = run->allocator;
  clear(run);
  rondo_release(&allocator, run, 1, sizeof *run);
}

static rondo_warm_up *first_run(const rondo_device_memory *memory) {
  return atomic_load_explicit(&memory->warm_ups, memory_order_relaxed);
}

/* The run that was begun on the stream. */
static rondo_warm_up *own_run(const rondo_device_memory *memory, const rondo_stream_order *stream) {
  rondo_warm_up *run = first_run(memory);
  while (run != NULL && run->slot != stream->slot) run = run->next;
  return run;
}

/* Under the lock. The oldest run stays first. */
static rondo_status begin_locked(rondo_device_memory *memory, rondo_stream_order *stream, const char *label,
                                 rondo_warm_up *run) {
  if (stream->slot != 0 && own_run(memory, stream) != NULL)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ALREADY_PROFILING,
                      "rondo_profile_begin: a profile was already begun on %s: end it first", label);
  RONDO_TRY(rondo_order_join(&memory->allocator, &memory->orders, stream));
  run->serial = ++memory->warm_up_serial;
  run->slot = stream->slot;
  run->number = rondo_order_number(&memory->orders, stream);
  rondo_warm_up *last = first_run(memory);
  while (last != NULL && last->next != NULL) last = last->next;
  if (last == NULL)
    atomic_store_explicit(&memory->warm_ups, run, memory_order_relaxed);
  else
    last->next = run;
  return RONDO_OK;
}

rondo_status rondo_warm_up_begin(rondo_device_memory *memory, rondo_stream_order *stream, const char *label) {
  rondo_warm_up *run;
  RONDO_TRY(rondo_allocate_items(&memory->allocator, 1, sizeof *run, &run));
  run->allocator = memory->allocator;
  pthread_mutex_lock(&memory->lock);
  const rondo_status status = begin_locked(memory, stream, label, run);
  pthread_mutex_unlock(&memory->lock);
  if (status != RONDO_OK) rondo_warm_up_destroy(run);
  return status;
}

/* Under the lock. */
static void take_out(rondo_device_memory *memory, const rondo_warm_up *run) {
  rondo_warm_up *before = first_run(memory);
  if (before == run) {
    atomic_store_explicit(&memory->warm_ups, run->next, memory_order_relaxed);
    return;
  }
  while (before->next != run) before = before->next;
  before->next = run->next;
}

rondo_warm_up *rondo_warm_up_end(rondo_device_memory *memory, const rondo_stream_order *stream) {
  if (stream->slot == 0) return NULL;
  pthread_mutex_lock(&memory->lock);
  rondo_warm_up *run = own_run(memory, stream);
  if (run != NULL) take_out(memory, run);
  pthread_mutex_unlock(&memory->lock);
  return run;
}

/* Logging --------------------------------------------------------------------------------------------------------- */

static bool takes_part(const rondo_warm_up *run, const rondo_stream_order *stream) {
  return rondo_order_knows(stream, run->slot, run->number);
}

/* The stream's own run, otherwise the oldest in which it takes part. */
static rondo_warm_up *run_of(const rondo_device_memory *memory, const rondo_stream_order *stream) {
  rondo_warm_up *run = stream->slot == 0 ? NULL : own_run(memory, stream);
  if (run != NULL) return run;
  run = first_run(memory);
  while (run != NULL && !takes_part(run, stream)) run = run->next;
  return run;
}

static rondo_status refuse_more(void) {
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                    "a profile takes at most %" PRIu32 " mallocs and frees, and %" PRIu32
                    " edges between them: profile a part of the work",
                    RONDO_WARM_UP_EVENTS, RONDO_WARM_UP_EDGES);
}

static rondo_status add_edge(rondo_warm_up *run, uint32_t from, uint32_t to) {
  const rondo_noted_edge edge = {.from = from, .to = to};
  assert(from < to);
  if (run->draft.edges.count == RONDO_WARM_UP_EDGES) return refuse_more();
  return rondo_array_push(&run->allocator, &run->draft.edges, &edge);
}

/* The last event of the slot up to the number; NO_EVENT when there is none. */
static uint32_t last_event(const warm_up_slot *slot, uint64_t number) {
  size_t low = 0, high = slot->events.count;
  RONDO_BINARY_SEARCH(low, high, middle, slot->events.items[middle].number <= number)
  return low == 0 ? NO_EVENT : slot->events.items[low - 1].event;
}

static uint64_t number_in(const rondo_clock *clock, uint32_t slot) {
  return clock != NULL && slot < clock->count ? clock->numbers[slot] : 0;
}

/* Adds edges for the knowledge that the stream has gained since its last event. */
static rondo_status add_learned(rondo_warm_up *run, const rondo_stream_order *stream, uint32_t event) {
  warm_up_slot *own = &run->slots.items[stream->slot];
  if (stream->known == NULL || stream->known == own->known) return RONDO_OK;
  for (uint32_t i = 1; i < stream->known->count && i < run->slots.count; i++) {
    const uint64_t now = stream->known->numbers[i], before = number_in(own->known, i);
    if (i == stream->slot || now <= before) continue;
    const uint32_t from = last_event(&run->slots.items[i], now);
    if (from == NO_EVENT || from == last_event(&run->slots.items[i], before)) continue;
    RONDO_TRY(add_edge(run, from, event));
  }
  rondo_clock_release(own->known);
  own->known = rondo_clock_retain(stream->known);
  return RONDO_OK;
}

/* The stream's event `number`. */
static rondo_status add_event(rondo_warm_up *run, const rondo_stream_order *stream, uint64_t number,
                              uint32_t *out_event) {
  const warm_up_slot none = {.last = NO_EVENT};
  const warm_up_event event = {.number = number, .event = run->draft.node_count};
  if (run->draft.node_count == RONDO_WARM_UP_EVENTS) return refuse_more();
  while (run->slots.count <= stream->slot) RONDO_TRY(rondo_array_push(&run->allocator, &run->slots, &none));
  warm_up_slot *own = &run->slots.items[stream->slot];
  if (own->last != NO_EVENT) RONDO_TRY(add_edge(run, own->last, event.event));
  RONDO_TRY(add_learned(run, stream, event.event));
  RONDO_TRY(rondo_array_push(&run->allocator, &own->events, &event));
  own->last = event.event;
  run->draft.node_count++;
  *out_event = event.event;
  return RONDO_OK;
}

static rondo_status add_alloc(rondo_device_memory *memory, rondo_warm_up *run, rondo_stream_order *stream,
                              rondo_block *block) {
  rondo_lifetime lifetime = {.bytes = rondo_pool_rounded(block->allocation.bytes), .freed = RONDO_PLAN_FOREVER};
  RONDO_TRY(rondo_order_join(&memory->allocator, &memory->orders, stream));
  RONDO_TRY(add_event(run, stream, rondo_order_number(&memory->orders, stream), &lifetime.alloc));
  RONDO_TRY(rondo_array_push(&run->allocator, &run->draft.lifetimes, &lifetime));
  block->run = run->serial;
  block->run_item = (uint32_t)run->draft.lifetimes.count - 1;
  block->run_slot = stream->slot;
  return RONDO_OK;
}

/* Whether the stream comes after the malloc of the block. */
static bool is_after(const rondo_warm_up *run, const rondo_stream_order *stream, const rondo_block *block) {
  if (block->run_slot == stream->slot) return true;
  const uint64_t known = number_in(stream->known, block->run_slot);
  const uint32_t last = last_event(&run->slots.items[block->run_slot], known);
  return last != NO_EVENT && last >= run->draft.lifetimes.items[block->run_item].alloc;
}

static rondo_status add_free(rondo_warm_up *run, const rondo_stream_order *stream, uint32_t item, uint64_t number) {
  uint32_t event;
  RONDO_TRY(add_event(run, stream, number, &event));
  run->draft.lifetimes.items[item].freed = event;
  return RONDO_OK;
}

/* Drops the run after an error; the call that is logged has not failed. */
static void drop(rondo_warm_up *run, rondo_status status, const rondo_saved_error *before) {
  run->failed = status;
  clear(run);
  rondo_error_restore(before);
}

static rondo_status add_end(rondo_device_memory *memory, rondo_warm_up *run, rondo_stream_order *stream, uint64_t key) {
  rondo_noted_end end = {.key = key};
  assert(key != 0);
  RONDO_TRY(rondo_order_join(&memory->allocator, &memory->orders, stream));
  RONDO_TRY(add_event(run, stream, rondo_order_number(&memory->orders, stream), &end.node));
  return rondo_array_push(&run->allocator, &run->draft.ends, &end);
}

/* A malloc of the block or, without one, the end with the key. */
static void note(rondo_device_memory *memory, rondo_stream_order *stream, rondo_block *block, uint64_t key) {
  rondo_saved_error before;
  rondo_error_save(&before);
  pthread_mutex_lock(&memory->lock);
  rondo_warm_up *run = run_of(memory, stream);
  if (run != NULL && run->failed == RONDO_OK) {
    const rondo_status status =
        block != NULL ? add_alloc(memory, run, stream, block) : add_end(memory, run, stream, key);
    if (status != RONDO_OK) drop(run, status, &before);
  }
  pthread_mutex_unlock(&memory->lock);
}

void rondo_warm_up_note_alloc_slowly(rondo_device_memory *memory, rondo_stream_order *stream, rondo_block *block) {
  note(memory, stream, block, 0);
}

void rondo_warm_up_note_end(rondo_device_memory *memory, rondo_stream_order *stream, uint64_t key) {
  note(memory, stream, NULL, key);
}

void rondo_warm_up_note_free_slowly(rondo_device_memory *memory, const rondo_stream_order *stream,
                                    const rondo_block *block, uint64_t number) {
  rondo_warm_up *run = first_run(memory);
  while (run != NULL && run->serial != block->run) run = run->next;
  if (run == NULL || run->failed != RONDO_OK) return;
  if (!takes_part(run, stream) || !is_after(run, stream, block)) return;
  rondo_saved_error before;
  rondo_error_save(&before);
  const rondo_status status = add_free(run, stream, block->run_item, number);
  if (status != RONDO_OK) drop(run, status, &before);
}

/* Results ---------------------------------------------------------------------------------------------------------- */

static rondo_status fail_run(const rondo_warm_up *run) {
  if (run->failed == RONDO_LIMIT_EXCEEDED) return refuse_more();
  return rondo_fail(run->failed, RONDO_REASON_ALLOCATION_FAILED,
                    "no host memory was left to log the mallocs and frees of a run for its profile");
}

rondo_status rondo_warm_up_note(const rondo_warm_up *run, rondo_noted_lifetimes **out) {
  *out = NULL;
  return run->failed != RONDO_OK ? fail_run(run) : rondo_noted_lifetimes_make(&run->allocator, &run->draft, out);
}
