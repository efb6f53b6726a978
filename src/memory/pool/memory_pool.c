/* SPDX-License-Identifier: MIT
 * Stream-ordered pools: life, attributes, giving memory back, and waiting.
 */
#include "memory/pool/memory_pool.h"

#include "memory/memory_errors.h"
#include "memory/profile/warm_up_log.h"

static const rondo_device_use pool_use = {.rank = 9, .name = "pool"};

/* Life ------------------------------------------------------------------------------------------------------------ */

rondo_status rondo_pools_make(rondo_device_memory *memory, const rondo_pool_options *options, rondo_pool **out) {
  void *state;
  RONDO_TRY(rondo_allocate(&memory->allocator, 1, sizeof(rondo_pool), &state));
  rondo_pool *pool = state;
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
                      "rondo_pool_destroy: this is the default pool of device %s, which stays: trim it to give its "
                      "memory back",
                      memory->device->name);
  pthread_mutex_lock(&memory->lock);
  if (memory->current == pool) memory->current = &memory->default_pool;
  pool->destroyed = true;
  memory->destroyed_pools++;
  pthread_mutex_unlock(&memory->lock);
  rondo_device_end_use(memory->device, &pool_use);
  rondo_pools_sweep_destroyed(memory);
  return RONDO_OK;
}

/* Takes the first destroyed pool without memory in use out of the list. Under the lock. */
static rondo_pool *take_destroyed(rondo_device_memory *memory) {
  for (rondo_pool **at = &memory->default_pool.next; *at != NULL; at = &(*at)->next) {
    rondo_pool *pool = *at;
    if (!pool->destroyed || pool->live > 0 || pool->growing > 0) continue;
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
    rondo_memory_leave_pool(memory, pool);
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

static rondo_status refuse_attribute(const char *call, rondo_pool_attribute attribute) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    "%s: %d is no attribute of pools: use a name of rondo_pool_attribute", call, (int)attribute);
}

rondo_status rondo_pools_read(rondo_device_memory *memory, rondo_pool *pool, rondo_pool_attribute attribute,
                              uint64_t *out_value) {
  pthread_mutex_lock(&memory->lock);
  const uint64_t values[] = {[RONDO_POOL_FOLLOW_EVENT_DEPENDENCIES] = pool->follow_events,
                             [RONDO_POOL_ALLOW_OPPORTUNISTIC] = pool->opportunistic,
                             [RONDO_POOL_ALLOW_INTERNAL_DEPENDENCIES] = pool->internal,
                             [RONDO_POOL_RELEASE_THRESHOLD] = pool->release_threshold,
                             [RONDO_POOL_RESERVED_CURRENT] = pool->usage.reserved,
                             [RONDO_POOL_RESERVED_HIGH] = pool->usage.reserved_high,
                             [RONDO_POOL_USED_CURRENT] = pool->usage.used,
                             [RONDO_POOL_USED_HIGH] = pool->usage.used_high};
  pthread_mutex_unlock(&memory->lock);
  if ((unsigned)attribute == 0 || (unsigned)attribute >= sizeof values / sizeof *values)
    return refuse_attribute("rondo_pool_get_attribute", attribute);
  *out_value = values[attribute];
  return RONDO_OK;
}

/* Those that take some values alone. */
static const char *const attribute_names[] = {
    [RONDO_POOL_FOLLOW_EVENT_DEPENDENCIES] = "RONDO_POOL_FOLLOW_EVENT_DEPENDENCIES",
    [RONDO_POOL_ALLOW_OPPORTUNISTIC] = "RONDO_POOL_ALLOW_OPPORTUNISTIC",
    [RONDO_POOL_ALLOW_INTERNAL_DEPENDENCIES] = "RONDO_POOL_ALLOW_INTERNAL_DEPENDENCIES",
    [RONDO_POOL_RESERVED_HIGH] = "RONDO_POOL_RESERVED_HIGH",
    [RONDO_POOL_USED_HIGH] = "RONDO_POOL_USED_HIGH",
    [RONDO_POOL_RESERVED_CURRENT] = "RONDO_POOL_RESERVED_CURRENT",
    [RONDO_POOL_USED_CURRENT] = "RONDO_POOL_USED_CURRENT",
};

static rondo_status check_value(rondo_pool_attribute attribute, uint64_t value) {
  uint64_t most = 0;
  switch (attribute) {
    case RONDO_POOL_RELEASE_THRESHOLD:
      return RONDO_OK;
    case RONDO_POOL_FOLLOW_EVENT_DEPENDENCIES:
    case RONDO_POOL_ALLOW_OPPORTUNISTIC:
    case RONDO_POOL_ALLOW_INTERNAL_DEPENDENCIES:
      most = 1;
      break;
    case RONDO_POOL_RESERVED_HIGH:
    case RONDO_POOL_USED_HIGH:
      break;
    case RONDO_POOL_RESERVED_CURRENT:
    case RONDO_POOL_USED_CURRENT:
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                        "rondo_pool_set_attribute: %s cannot be set: it counts what is allocated now",
                        attribute_names[attribute]);
    default:
      return refuse_attribute("rondo_pool_set_attribute", attribute);
  }
  if (value <= most) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "rondo_pool_set_attribute: %s cannot be set to %llu: it takes %s", attribute_names[attribute],
                    (unsigned long long)value, most == 1 ? "0 or 1" : "0 alone, which sets the high mark back");
}

rondo_status rondo_pools_write(rondo_device_memory *memory, rondo_pool *pool, rondo_pool_attribute attribute,
                               uint64_t value) {
  RONDO_TRY(check_value(attribute, value));
  pthread_mutex_lock(&memory->lock);
  if (attribute == RONDO_POOL_FOLLOW_EVENT_DEPENDENCIES) pool->follow_events = value == 1;
  if (attribute == RONDO_POOL_ALLOW_OPPORTUNISTIC) pool->opportunistic = value == 1;
  if (attribute == RONDO_POOL_ALLOW_INTERNAL_DEPENDENCIES) pool->internal = value == 1;
  if (attribute == RONDO_POOL_RESERVED_HIGH) pool->usage.reserved_high = pool->usage.reserved;
  if (attribute == RONDO_POOL_USED_HIGH) pool->usage.used_high = pool->usage.used;
  if (attribute == RONDO_POOL_RELEASE_THRESHOLD) {
    pool->release_threshold = value;
    pool->excess = pool->usage.reserved > value;
  }
  rondo_memory_leave_pool(memory, pool);
  return RONDO_OK;
}

void rondo_pools_read_statistics(rondo_device_memory *memory, rondo_pool *pool, rondo_pool_statistics *out) {
  pthread_mutex_lock(&memory->lock);
  out->live_allocations = pool->live;
  out->used = pool->usage.used;
  out->used_high = pool->usage.used_high;
  out->reserved = pool->usage.reserved;
  out->reserved_high = pool->usage.reserved_high;
  out->same_stream = pool->counters.same_stream;
  out->host_ordered = pool->counters.host_ordered;
  out->event_ordered = pool->counters.event_ordered;
  out->opportunistic = pool->counters.opportunistic;
  out->internal_dependencies = pool->counters.internal;
  out->chunks = pool->counters.chunks;
  pthread_mutex_unlock(&memory->lock);
}

/* Giving back ----------------------------------------------------------------------------------------------------- */

void rondo_pools_trim(rondo_device_memory *memory, rondo_pool *pool, uint64_t keep_bytes) {
  pthread_mutex_lock(&memory->lock);
  if (pool->opportunistic) rondo_pool_sweep(pool);
  rondo_pool_trim_idle(pool, keep_bytes);
  rondo_memory_leave_pool(memory, pool);
}

/* Gathers what pools discard, so that the lock is let go once for all of them. */
static void gather(rondo_device_memory *memory, rondo_pool *pool, rondo_chunk **list) {
  rondo_chunk *chunk = rondo_pool_take_discarded(pool);
  while (chunk != NULL) {
    rondo_chunk *next = chunk->next;
    rondo_memory_note_gone(memory, chunk->base, chunk->bytes, chunk->place);
    chunk->next = *list;
    *list = chunk;
    chunk = next;
  }
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
  rondo_order_slot *at = &memory->orders.slots.items[slot];
  if (number <= at->waited) return;
  at->waited = number;
  rondo_pool_note_waited(&memory->immediate, slot, number);
  for (rondo_pool *pool = &memory->default_pool; pool != NULL; pool = pool->next)
    rondo_pool_note_waited(pool, slot, number);
}

static void note_clock(rondo_device_memory *memory, const rondo_clock *clock) {
  for (uint32_t slot = 1; clock != NULL && slot < clock->count; slot++) note_waited(memory, slot, clock->numbers[slot]);
}

/* Lets the lock go. */
static void leave(rondo_device_memory *memory, bool synchronized) {
  rondo_chunk *list = NULL;
  gather(memory, &memory->immediate, &list);
  for (rondo_pool *pool = &memory->default_pool; pool != NULL && synchronized; pool = pool->next) {
    if (!pool->excess) continue;
    rondo_pool_trim_idle(pool, pool->release_threshold);
    pool->excess = false;
    gather(memory, pool, &list);
  }
  if (synchronized) atomic_store_explicit(&memory->excess, false, memory_order_relaxed);
  for (rondo_pool *pool = &memory->default_pool; pool != NULL; pool = pool->next)
    if (pool->excess) atomic_store_explicit(&memory->excess, true, memory_order_relaxed);
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
