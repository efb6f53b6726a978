/* SPDX-License-Identifier: MIT
 * Stream-ordered pools: creating and destroying them, attributes, returning memory, and the effects of waiting.
 */
#include "memory/pool/memory_pool.h"

#include <assert.h>
#include <stddef.h>

#include "base/error.h"
#include "memory/memory_check.h"
#include "memory/profile/warm_up_log.h"

static const rondo_device_use pool_use = {.rank = 9, .name = "pool"};

/* Life ------------------------------------------------------------------------------------------------------------ */

rondo_status rondo_pools_make(rondo_device_memory *memory, const rondo_pool_options *options, rondo_pool **out) {
  rondo_pool *pool;
  RONDO_TRY(rondo_allocate_items(&memory->allocator, 1, sizeof *pool, &pool));
  rondo_pool_init(pool, memory->device, &memory->allocator, memory->page_bytes, RONDO_ALLOCATION_STREAM_ORDERED);
  const rondo_status status = rondo_allocate_text(&memory->allocator, options->name, &pool->name);
  if (status != RONDO_OK) {
    rondo_release(&memory->allocator, pool, 1, sizeof *pool);
    return status;
  }
  pool->release_threshold = options->release_threshold;
  pool->total = &memory->stream_ordered;
  pthread_mutex_lock(&memory->lock);
  pool->next = memory->default_pool.next;
  memory->default_pool.next = pool;
  pthread_mutex_unlock(&memory->lock);
  rondo_device_begin_use(memory->device, &pool_use);
  *out = pool;
  return RONDO_OK;
}

static void free_pool(rondo_device_memory *memory, rondo_pool *pool) {
  rondo_pool_deinit(pool);
  rondo_release_text(&memory->allocator, pool->name);
  rondo_release(&memory->allocator, pool, 1, sizeof *pool);
}

rondo_status rondo_pools_destroy(rondo_device_memory *memory, rondo_pool *pool) {
  if (pool == &memory->default_pool)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_STILL_IN_USE,
                      "rondo_pool_destroy: the default pool of device %s cannot be destroyed: trim it to give its "
                      "memory back",
                      memory->device->name);
  pthread_mutex_lock(&memory->lock);
  if (memory->current == pool) memory->current = &memory->default_pool;
  assert(!pool->destroyed);
  pool->destroyed = true;
  memory->destroyed_pools++;
  pthread_mutex_unlock(&memory->lock);
  rondo_device_end_use(memory->device, &pool_use);
  rondo_pools_sweep_destroyed(memory);
  return RONDO_OK;
}

/* Takes the first destroyed pool that has no memory in use out of the list. Under the lock. */
static rondo_pool *take_destroyed(rondo_device_memory *memory) {
  for (rondo_pool **at = &memory->default_pool.next; *at != NULL; at = &(*at)->next) {
    rondo_pool *pool = *at;
    if (!pool->destroyed || pool->figures.live_allocations > 0 || pool->growing > 0) continue;
    rondo_pool_sweep(pool);
    rondo_pool_trim_idle(pool, 0);
    if (pool->chunks != NULL) continue;
    *at = pool->next;
    memory->destroyed_pools--;
    return pool;
  }
  return NULL;
}

void rondo_pools_sweep_destroyed(rondo_device_memory *memory) {
  for (;;) {
    pthread_mutex_lock(&memory->lock);
    rondo_pool *pool = memory->destroyed_pools == 0 ? NULL : take_destroyed(memory);
    if (pool == NULL) {
      pthread_mutex_unlock(&memory->lock);
      return;
    }
    rondo_pools_leave(memory, pool);
    free_pool(memory, pool);
  }
}

void rondo_pools_deinit(rondo_device_memory *memory) {
  rondo_pools_sweep_destroyed(memory);
  rondo_pool_deinit(&memory->default_pool);
}

rondo_pool *rondo_pools_current(rondo_device_memory *memory) {
  pthread_mutex_lock(&memory->lock);
  rondo_pool *pool = memory->current;
  pthread_mutex_unlock(&memory->lock);
  return pool;
}

void rondo_pools_set_current(rondo_device_memory *memory, rondo_pool *pool) {
  pthread_mutex_lock(&memory->lock);
  memory->current = pool == NULL ? &memory->default_pool : pool;
  pthread_mutex_unlock(&memory->lock);
}

uint64_t rondo_pools_read_peers(rondo_device_memory *memory, const rondo_pool *pool) {
  pthread_mutex_lock(&memory->lock);
  const rondo_pool *of = pool == NULL ? memory->current : pool;
  const uint64_t peers = atomic_load_explicit(&of->peers, memory_order_relaxed);
  pthread_mutex_unlock(&memory->lock);
  return peers;
}

/* Attributes ------------------------------------------------------------------------------------------------------ */

/* A 64-bit field of a pool, and the highest value to which it can be set. Setting a high mark to 0 copies the field at
 * `now`, which is 0 for other attributes. */
typedef struct pool_attribute {
  const char *name;
  size_t offset, now;
  bool is_settable;
  uint64_t max;
} pool_attribute;

#define ROW(attribute, field, now, is_settable, max) \
  [attribute] = {#attribute, offsetof(rondo_pool, field), now, is_settable, max}
static const pool_attribute attributes[] = {
    ROW(RONDO_POOL_FOLLOW_EVENT_DEPENDENCIES, follow_events, 0, true, 1),
    ROW(RONDO_POOL_ALLOW_OPPORTUNISTIC, opportunistic, 0, true, 1),
    ROW(RONDO_POOL_ALLOW_INTERNAL_DEPENDENCIES, internal, 0, true, 1),
    ROW(RONDO_POOL_RELEASE_THRESHOLD, release_threshold, 0, true, UINT64_MAX),
    ROW(RONDO_POOL_RESERVED_CURRENT, figures.reserved, 0, false, 0),
    ROW(RONDO_POOL_RESERVED_HIGH, figures.reserved_high, offsetof(rondo_pool, figures.reserved), true, 0),
    ROW(RONDO_POOL_USED_CURRENT, figures.used, 0, false, 0),
    ROW(RONDO_POOL_USED_HIGH, figures.used_high, offsetof(rondo_pool, figures.used), true, 0),
};

static uint64_t *field_at(rondo_pool *pool, size_t offset) { return (uint64_t *)(void *)((char *)pool + offset); }

static rondo_status find_attribute(const char *call, rondo_pool_attribute attribute, const pool_attribute **out) {
  const unsigned number = (unsigned)attribute;
  if (number == 0 || number >= sizeof attributes / sizeof *attributes)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: %d is not an attribute of pools: use a value of rondo_pool_attribute", call, (int)attribute);
  *out = &attributes[number];
  return RONDO_OK;
}

rondo_status rondo_pools_read(rondo_device_memory *memory, rondo_pool *pool, rondo_pool_attribute attribute,
                              uint64_t *out_value) {
  const pool_attribute *at = NULL;
  RONDO_TRY(find_attribute("rondo_pool_get_attribute", attribute, &at));
  pthread_mutex_lock(&memory->lock);
  *out_value = *field_at(pool, at->offset);
  pthread_mutex_unlock(&memory->lock);
  return RONDO_OK;
}

static rondo_status check_value(const pool_attribute *at, uint64_t value) {
  const char *const call = "rondo_pool_set_attribute";
  if (!at->is_settable)
    return rondo_fail(
        RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
        "%s: %s counts what is allocated now and cannot be set: set the ..._HIGH attribute to 0 to reset a mark", call,
        at->name);
  if (value <= at->max) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: %s cannot be set to %llu: it takes %s",
                    call, at->name, (unsigned long long)value,
                    at->max == 1 ? "0 or 1" : "only 0, which resets the high mark");
}

rondo_status rondo_pools_write(rondo_device_memory *memory, rondo_pool *pool, rondo_pool_attribute attribute,
                               uint64_t value) {
  const pool_attribute *at = NULL;
  RONDO_TRY(find_attribute("rondo_pool_set_attribute", attribute, &at));
  RONDO_TRY(check_value(at, value));
  pthread_mutex_lock(&memory->lock);
  *field_at(pool, at->offset) = at->now == 0 ? value : *field_at(pool, at->now);
  if (attribute == RONDO_POOL_RELEASE_THRESHOLD) pool->excess = pool->figures.reserved > value;
  rondo_pools_leave(memory, pool);
  return RONDO_OK;
}

void rondo_pools_read_statistics(rondo_device_memory *memory, rondo_pool *pool, rondo_pool_statistics *out) {
  pthread_mutex_lock(&memory->lock);
  *out = pool->figures;
  pthread_mutex_unlock(&memory->lock);
}

/* Returning memory ------------------------------------------------------------------------------------------------ */

/* Moves the discarded chunks of the pool to the list, which is destroyed after the lock is released. */
static void gather(rondo_device_memory *memory, rondo_pool *pool, rondo_chunk **list) {
  rondo_chunk *chunk = rondo_pool_take_discarded(pool);
  while (chunk != NULL) {
    rondo_chunk *next = chunk->next;
    rondo_memory_note_gone(memory, chunk->base, chunk->bytes, chunk->index_node);
    chunk->next = *list;
    *list = chunk;
    chunk = next;
  }
}

void rondo_pools_leave(rondo_device_memory *memory, rondo_pool *pool) {
  rondo_chunk *list = NULL;
  if (pool->figures.live_allocations <= RONDO_CHECKED_MEMBERS) rondo_pool_check(pool);
  gather(memory, pool, &list);
  if (pool->excess) atomic_store_explicit(&memory->excess, true, memory_order_relaxed);
  pthread_mutex_unlock(&memory->lock);
  rondo_chunks_destroy(list);
}

void rondo_pools_trim(rondo_device_memory *memory, rondo_pool *pool, uint64_t keep_bytes) {
  pthread_mutex_lock(&memory->lock);
  if (pool->opportunistic) rondo_pool_sweep(pool);
  rondo_pool_trim_idle(pool, keep_bytes);
  rondo_pools_leave(memory, pool);
}

static void give_back(rondo_device_memory *memory, rondo_pool *pool, bool done, rondo_chunk **list) {
  if (done || pool->opportunistic) rondo_pool_sweep(pool);
  rondo_pool_trim_idle(pool, 0);
  gather(memory, pool, list);
}

void rondo_pools_give_back(rondo_device_memory *memory, bool done) {
  rondo_chunk *list = NULL;
  pthread_mutex_lock(&memory->lock);
  give_back(memory, &memory->immediate, done, &list);
  for (rondo_pool *pool = &memory->default_pool; pool != NULL; pool = pool->next) give_back(memory, pool, done, &list);
  pthread_mutex_unlock(&memory->lock);
  rondo_chunks_destroy(list);
}

/* Waiting --------------------------------------------------------------------------------------------------------- */

/* Under the lock. */
static void note_waited(rondo_device_memory *memory, uint32_t slot, uint64_t number) {
  rondo_order_slot *at = &memory->orders.items[slot];
  assert(number <= at->freed);
  if (number <= at->waited) return;
  at->waited = number;
  rondo_pool_note_waited(&memory->immediate, slot, number);
  for (rondo_pool *pool = &memory->default_pool; pool != NULL; pool = pool->next)
    rondo_pool_note_waited(pool, slot, number);
}

static void note_clock(rondo_device_memory *memory, const rondo_clock *clock) {
  for (uint32_t slot = 1; clock != NULL && slot < clock->count; slot++) note_waited(memory, slot, clock->numbers[slot]);
}

/* Releases the lock. */
static void leave(rondo_device_memory *memory, bool synchronized) {
  rondo_chunk *list = NULL;
  gather(memory, &memory->immediate, &list);
  bool excess = false;
  for (rondo_pool *pool = &memory->default_pool; pool != NULL; pool = pool->next) {
    if (pool->excess && synchronized) {
      rondo_pool_trim_idle(pool, pool->release_threshold);
      pool->excess = false;
      gather(memory, pool, &list);
    }
    excess = excess || pool->excess;
  }
  atomic_store_explicit(&memory->excess, excess, memory_order_relaxed);
  pthread_mutex_unlock(&memory->lock);
  rondo_chunks_destroy(list);
  rondo_pools_sweep_destroyed(memory);
}

void rondo_pools_stream_waited_slowly(rondo_device *device, rondo_stream_order *stream, bool synchronized) {
  rondo_device_memory *memory = rondo_device_memory_made(device);
  pthread_mutex_lock(&memory->lock);
  if (stream->slot != 0) note_waited(memory, stream->slot, stream->freed);
  note_clock(memory, stream->known);
  stream->waited = stream->freed;
  leave(memory, synchronized);
}

void rondo_pools_event_waited_slowly(rondo_device *device, const rondo_event_order *event, bool synchronized) {
  rondo_device_memory *memory = rondo_device_memory_made(device);
  pthread_mutex_lock(&memory->lock);
  if (event->slot != 0) note_waited(memory, event->slot, event->freed);
  note_clock(memory, event->known);
  leave(memory, synchronized);
}

rondo_clock *rondo_pools_before_waiting(rondo_device *device) {
  rondo_device_memory *memory = rondo_device_memory_made(device);
  if (memory == NULL) return NULL;
  pthread_mutex_lock(&memory->lock);
  rondo_clock *clock = rondo_order_snapshot(&memory->allocator, &memory->orders);
  pthread_mutex_unlock(&memory->lock);
  return clock;
}

void rondo_pools_device_waited(rondo_device *device, rondo_clock *before) {
  rondo_device_memory *memory = rondo_device_memory_made(device);
  if (memory == NULL || (before == NULL && !rondo_pools_have_excess(device))) return;
  pthread_mutex_lock(&memory->lock);
  note_clock(memory, before);
  leave(memory, true);
  rondo_clock_release(before);
}

void rondo_pools_forget_stream(rondo_device *device, rondo_stream_order *stream) {
  rondo_pools_stream_waited(device, stream, true);
  rondo_device_memory *memory = rondo_device_memory_made(device);
  if (memory == NULL) return;
  rondo_warm_up_destroy(rondo_warm_up_end(memory, stream));
  pthread_mutex_lock(&memory->lock);
  rondo_order_leave(&memory->orders, stream);
  pthread_mutex_unlock(&memory->lock);
}
