/* SPDX-License-Identifier: MIT
 * Allocating and freeing, immediately and in stream order, and the statistics. The driver is called without the lock.
 * While an allocation is being freed it is in no table, so that a second free is detected.
 */
#include "memory/device_memory.h"

#include <assert.h>

#include "base/error.h"
#include "memory/graph_memory/address_space.h"
#include "memory/graph_memory/graph_allocation.h"
#include "memory/heap/graph_heap.h"
#include "memory/host_memory.h"
#include "memory/memory_check.h"
#include "memory/memory_errors.h"
#include "memory/new_memory.h"
#include "memory/peer_access.h"
#include "memory/pool/memory_pool.h"
#include "memory/profile/warm_up_log.h"

const rondo_device_use rondo_allocation_use = {.rank = 11, .name = "allocation"};

/* The device's state --------------------------------------------------------------------------------------------- */

static void release_memory(void *state) {
  rondo_device_memory *memory = state;
  const rondo_allocator allocator = memory->allocator;
  rondo_memory_release_withheld(memory);
  rondo_heaps_destroy(memory);
  rondo_pool_deinit(&memory->immediate);
  rondo_pools_deinit(memory);
  rondo_array_free(&allocator, &memory->orders);
  rondo_allocation_table_deinit(&allocator, &memory->table);
  rondo_allocation_table_deinit(&allocator, &memory->host);
  rondo_range_index_deinit(&allocator, &memory->symbols);
  rondo_range_index_deinit(&allocator, &memory->own);
  pthread_mutex_destroy(&memory->lock);
  rondo_release(&allocator, memory, 1, sizeof *memory);
}

static rondo_status create_memory(rondo_device *device, rondo_device_memory **out) {
  rondo_device_memory *memory;
  RONDO_TRY(rondo_allocate_items(&device->allocator, 1, sizeof *memory, &memory));
  memory->device = device;
  memory->allocator = device->allocator;
  rondo_status status = rondo_allocation_table_init(&memory->allocator, &memory->table);
  if (status == RONDO_OK) {
    status = rondo_allocation_table_init(&memory->allocator, &memory->host);
    if (status != RONDO_OK) rondo_allocation_table_deinit(&memory->allocator, &memory->table);
  }
  if (status != RONDO_OK) {
    rondo_release(&device->allocator, memory, 1, sizeof *memory);
    return status;
  }
  rondo_device_info info = {.struct_size = sizeof info};
  device->ops->info(device, &info);
  memory->page_bytes = (size_t)info.page_bytes;
  memory->limit_bytes = info.memory_bytes;
  memory->memory_nodes = info.graph_memory;
  memory->memory_pools = info.memory_pools;
  pthread_mutex_init(&memory->lock, NULL);
  rondo_pool_init(&memory->immediate, device, &memory->allocator, memory->page_bytes, RONDO_ALLOCATION_IMMEDIATE);
  rondo_pool_init(&memory->default_pool, device, &memory->allocator, memory->page_bytes,
                  RONDO_ALLOCATION_STREAM_ORDERED);
  memory->default_pool.total = &memory->stream_ordered;
  memory->current = &memory->default_pool;
  *out = memory;
  return RONDO_OK;
}

rondo_status rondo_device_memory_of(rondo_device *device, rondo_device_memory **out) {
  static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
  *out = rondo_device_memory_made(device);
  if (*out != NULL) return RONDO_OK;
  pthread_mutex_lock(&making);
  rondo_status status = RONDO_OK;
  *out = atomic_load_explicit(&device->memory.state, memory_order_relaxed);
  if (*out == NULL) {
    status = create_memory(device, out);
    if (status == RONDO_OK) {
      device->memory.release = release_memory;
      atomic_store_explicit(&device->memory.state, *out, memory_order_release);
    }
  }
  pthread_mutex_unlock(&making);
  return status;
}

rondo_status rondo_device_memory_require_pools(const rondo_device_memory *memory, const char *call) {
  if (memory->memory_pools) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NOT_SUPPORTED,
                    "%s: device %s has no memory pools, and so no stream-ordered memory and no memory nodes: allocate "
                    "with rondo_malloc (see rondo_device_info.memory_pools)",
                    call, memory->device->name);
}

rondo_status rondo_device_memory_require_nodes(const rondo_device_memory *memory, const char *call) {
  RONDO_TRY(rondo_device_memory_require_pools(memory, call));
  if (memory->memory_nodes) return RONDO_OK;
  return rondo_fail(
      RONDO_UNSUPPORTED, RONDO_REASON_NOT_SUPPORTED,
      "%s: device %s has no memory nodes: allocate outside of graphs (see rondo_device_info.graph_memory)", call,
      memory->device->name);
}

/* Statistics ------------------------------------------------------------------------------------------------------ */

void rondo_level_add(rondo_level *level, uint64_t amount) {
  const uint64_t now = atomic_fetch_add_explicit(&level->now, amount, memory_order_relaxed) + amount;
  uint64_t high = atomic_load_explicit(&level->high, memory_order_relaxed);
  while (now > high &&
         !atomic_compare_exchange_weak_explicit(&level->high, &high, now, memory_order_relaxed, memory_order_relaxed)) {
  }
}

void rondo_level_subtract(rondo_level *level, uint64_t amount) {
  atomic_fetch_sub_explicit(&level->now, amount, memory_order_relaxed);
}

static uint32_t count_live(const rondo_device_memory *memory) {
  uint32_t live = memory->immediate.figures.live_allocations;
  for (const rondo_pool *pool = &memory->default_pool; pool != NULL; pool = pool->next)
    live += pool->figures.live_allocations;
  return live;
}

void rondo_memory_read_statistics(rondo_device_memory *memory, rondo_memory_statistics *out) {
  rondo_retired_sweep(memory, false);
  rondo_pools_sweep_destroyed(memory);
  pthread_mutex_lock(&memory->lock);
  rondo_pool_sweep(&memory->immediate);
  const rondo_pool_statistics *usage = &memory->stream_ordered;
  out->live_allocations = count_live(memory);
  out->pool_used = usage->used;
  out->pool_used_high = usage->used_high;
  out->pool_reserved = usage->reserved;
  out->pool_reserved_high = usage->reserved_high;
  out->host_withheld = memory->withheld.bytes;
  if (memory->table.starts.count <= RONDO_CHECKED_MEMBERS) rondo_memory_check(memory);
  rondo_pools_leave(memory, &memory->immediate);
  out->graph_used = atomic_load_explicit(&memory->graph_used.now, memory_order_relaxed);
  out->graph_used_high = atomic_load_explicit(&memory->graph_used.high, memory_order_relaxed);
  out->graph_reserved = atomic_load_explicit(&memory->graph_reserved.now, memory_order_relaxed);
  out->graph_reserved_high = atomic_load_explicit(&memory->graph_reserved.high, memory_order_relaxed);
  out->remaps = atomic_load_explicit(&memory->remaps, memory_order_relaxed);
  out->heap_growth = atomic_load_explicit(&memory->heap_growth, memory_order_relaxed);
  out->profiles = atomic_load_explicit(&memory->profiles, memory_order_relaxed);
  out->profiled_allocations = atomic_load_explicit(&memory->profiled, memory_order_relaxed);
  out->profile_departures = atomic_load_explicit(&memory->departures, memory_order_relaxed);
  out->arena_backed = atomic_load_explicit(&memory->arena_backed.now, memory_order_relaxed);
  out->arena_backed_high = atomic_load_explicit(&memory->arena_backed.high, memory_order_relaxed);
  out->profiles_renewed = atomic_load_explicit(&memory->replanned, memory_order_relaxed);
}

static void lower_high(rondo_level *level) {
  atomic_store_explicit(&level->high, atomic_load_explicit(&level->now, memory_order_relaxed), memory_order_relaxed);
}

void rondo_memory_lower_highs(rondo_device_memory *memory) {
  lower_high(&memory->graph_used);
  lower_high(&memory->graph_reserved);
  lower_high(&memory->arena_backed);
  pthread_mutex_lock(&memory->lock);
  memory->stream_ordered.used_high = memory->stream_ordered.used;
  memory->stream_ordered.reserved_high = memory->stream_ordered.reserved;
  pthread_mutex_unlock(&memory->lock);
}

/* Allocating ------------------------------------------------------------------------------------------------------ */

static rondo_status copy_name(rondo_device_memory *memory, const char *name, char **out) {
  *out = NULL;
  return name == NULL || name[0] == '\0' ? RONDO_OK : rondo_allocate_text(&memory->allocator, name, out);
}

static void release_name(rondo_device_memory *memory, rondo_allocation *allocation) {
  if (allocation->name != NULL) rondo_release_text(&memory->allocator, allocation->name);
  allocation->name = NULL;
}

uint32_t rondo_memory_note_own(rondo_device_memory *memory, const void *address, size_t bytes) {
  return rondo_range_enter(&memory->allocator, &memory->own, address, bytes, 0, NULL);
}

void rondo_memory_note_gone(rondo_device_memory *memory, const char *address, size_t bytes, uint32_t index_node) {
  rondo_allocation_table_note_gone(&memory->allocator, &memory->table, address, bytes);
  rondo_range_leave(&memory->own, index_node);
}

/* A request for memory. */
typedef struct allocation_request {
  rondo_pool *pool;
  rondo_stream_order *stream; /* NULL: immediate */
  size_t bytes, rounded;
  char *name;
  void *guarded;  /* on a guarded device: the address; the pool's block only counts */
  bool is_pinned; /* the request keeps the pool alive while another thread may destroy it */
} allocation_request;

/* Under the lock. */
static void enter_block(rondo_device_memory *memory, rondo_block *block, const allocation_request *request) {
  if (request->guarded != NULL) block->allocation.address = request->guarded;
  block->allocation.bytes = request->bytes;
  block->allocation.name = request->name;
  rondo_allocation_table_insert(&memory->allocator, &memory->table, &block->allocation);
  rondo_device_begin_use(memory->device, &rondo_allocation_use);
}

/* A block that the pool has. NULL if it must grow; the pool is then pinned until unpin_pool. */
static rondo_block *take_block(rondo_device_memory *memory, allocation_request *request) {
  pthread_mutex_lock(&memory->lock);
  if (request->pool == NULL) request->pool = memory->current;
  rondo_block *block = rondo_pool_take(request->pool, request->stream, request->rounded);
  if (block != NULL) enter_block(memory, block, request);
  if (block == NULL && !request->is_pinned) {
    request->pool->growing++;
    request->is_pinned = true;
  }
  rondo_pools_leave(memory, request->pool);
  return block;
}

static void unpin_pool(rondo_device_memory *memory, const allocation_request *request) {
  pthread_mutex_lock(&memory->lock);
  assert(request->pool->growing > 0);
  request->pool->growing--;
  pthread_mutex_unlock(&memory->lock);
  rondo_pools_sweep_destroyed(memory);
}

static rondo_status grow_pool(rondo_device_memory *memory, const allocation_request *request, rondo_block **out) {
  rondo_chunk *chunk;
  RONDO_TRY(rondo_chunk_create(request->pool, request->rounded, &chunk));
  pthread_mutex_lock(&memory->lock);
  chunk->index_node = rondo_memory_note_own(memory, chunk->base, chunk->bytes);
  *out = rondo_pool_adopt(request->pool, chunk, request->rounded);
  enter_block(memory, *out, request);
  pthread_mutex_unlock(&memory->lock);
  return RONDO_OK;
}

/* Takes a block that another stream freed, and lets the stream wait for that free. *out is NULL when there is none. */
static rondo_status take_unordered(rondo_device_memory *memory, const allocation_request *request, rondo_block **out) {
  *out = NULL;
  if (request->stream == NULL) return RONDO_OK;
  pthread_mutex_lock(&memory->lock);
  rondo_block *block = rondo_pool_take_unordered(request->pool, request->rounded);
  pthread_mutex_unlock(&memory->lock);
  if (block == NULL) return RONDO_OK;
  rondo_queue *queue = request->stream->queue;
  const rondo_status status = queue->ops->wait(queue, block->fence->event);
  pthread_mutex_lock(&memory->lock);
  if (status == RONDO_OK)
    enter_block(memory, block, request);
  else
    rondo_pool_untake(block);
  rondo_pools_leave(memory, request->pool);
  if (status != RONDO_OK) return status;
  rondo_order_learn(&memory->allocator, request->stream, block->fence->slot, block->fence->number);
  *out = block;
  return RONDO_OK;
}

/* When the system has no more memory: returns unused memory of pools; then lets the stream wait for a free; then looks
 * for completed frees; then reclaims memory as graphs do. */
static rondo_status reclaim_and_grow(rondo_device_memory *memory, allocation_request *request, rondo_block **out) {
  rondo_pools_give_back(memory, false);
  rondo_status status = grow_pool(memory, request, out);
  if (!rondo_reclaim_helps(status)) return status;
  RONDO_TRY(take_unordered(memory, request, out));
  if (*out != NULL) return RONDO_OK;
  rondo_pools_give_back(memory, true);
  *out = take_block(memory, request);
  if (*out != NULL) return RONDO_OK;
  rondo_reclaim reclaim = rondo_reclaim_begin(memory);
  do status = grow_pool(memory, request, out);
  while (rondo_reclaim_more(&reclaim, status));
  return status;
}

static rondo_status grow_or_reclaim(rondo_device_memory *memory, allocation_request *request, rondo_block **out) {
  rondo_saved_error before;
  rondo_error_save(&before);
  rondo_status status = grow_pool(memory, request, out);
  if (!rondo_reclaim_helps(status)) return status;
  status = reclaim_and_grow(memory, request, out);
  if (status == RONDO_OK) rondo_error_restore(&before);
  return status;
}

static rondo_status allocate_block(rondo_device_memory *memory, allocation_request *request, rondo_block **out) {
  if (!rondo_pool_round(request->bytes, &request->rounded)) return rondo_memory_fail_size(request->bytes);
  *out = take_block(memory, request);
  if (*out != NULL) return RONDO_OK;
  const rondo_status status = grow_or_reclaim(memory, request, out);
  unpin_pool(memory, request);
  return status;
}

/* As allocate_block, with the address from the device's guard. */
static rondo_status allocate_guarded(rondo_device_memory *memory, allocation_request *request, rondo_block **out) {
  rondo_device *device = memory->device;
  const rondo_guard_ops *guard = device->ops->guard;
  rondo_queue *queue = request->stream == NULL ? NULL : request->stream->queue;
  rondo_reclaim reclaim = rondo_reclaim_begin(memory);
  rondo_status status;
  do status = guard->allocate(device, queue, request->bytes, request->name, &request->guarded);
  while (rondo_reclaim_more(&reclaim, status));
  if (status != RONDO_OK) return status;
  status = rondo_peers_note(device, request->guarded, request->bytes);
  if (status == RONDO_OK) {
    status = allocate_block(memory, request, out);
    if (status != RONDO_OK) rondo_peers_forget(device, request->guarded);
  }
  if (status != RONDO_OK) guard->release(device, queue, request->guarded);
  return status;
}

rondo_status rondo_memory_allocate(rondo_device_memory *memory, rondo_stream_order *stream, rondo_pool *pool,
                                   size_t bytes, const char *name, void **out_address) {
  allocation_request request = {.pool = stream == NULL ? &memory->immediate : pool, .stream = stream, .bytes = bytes};
  RONDO_TRY(copy_name(memory, name, &request.name));
  rondo_block *block = NULL;
  const rondo_status status = memory->device->ops->guard != NULL ? allocate_guarded(memory, &request, &block)
                                                                 : allocate_block(memory, &request, &block);
  if (status != RONDO_OK) {
    if (request.name != NULL) rondo_release_text(&memory->allocator, request.name);
    return rondo_memory_fail_growth(memory, status, stream == NULL ? "rondo_malloc" : "rondo_malloc_async", bytes);
  }
  *out_address = block->allocation.address;
  if (stream != NULL && rondo_warm_up_runs(memory)) rondo_warm_up_note_alloc_slowly(memory, stream, block);
  return RONDO_OK;
}

/* Freeing --------------------------------------------------------------------------------------------------------- */

/* The live block that starts at the address; NULL when there is none. Under the lock. */
static rondo_block *find_block(const rondo_device_memory *memory, const void *address) {
  rondo_allocation *at = rondo_allocation_table_find(&memory->table, address);
  while (at != NULL && (at->kind == RONDO_ALLOCATION_GRAPH || at->kind == RONDO_ALLOCATION_ARENA ||
                        at->kind == RONDO_ALLOCATION_SYMBOL))
    at = rondo_allocation_next(at);
  return (rondo_block *)at;
}

/* The chunk of a large allocation has held nothing else. */
bool rondo_memory_is_zero_at_first(rondo_device *device, const void *address) {
  rondo_device_memory *memory = rondo_device_memory_made(device);
  if (!device->ops->has_zero_pages || memory == NULL) return false;
  pthread_mutex_lock(&memory->lock);
  const rondo_block *block = find_block(memory, address);
  const bool is_zero = block != NULL && block->chunk->dedicated;
  pthread_mutex_unlock(&memory->lock);
  return is_zero;
}

/* A stream-ordered free before it is enqueued. */
typedef struct ordered_free {
  rondo_fence *fence;
  rondo_device_event *before; /* the memory may be in use until this event, so the stream waits for it; or NULL */
} ordered_free;

/* Under the lock. */
static rondo_status prepare_free(rondo_device_memory *memory, rondo_stream_order *stream, const rondo_block *block,
                                 ordered_free *out) {
  rondo_pool *pool = block->chunk->pool;
  const rondo_fence *before = block->fence;
  RONDO_TRY(rondo_order_join(&memory->allocator, &memory->orders, stream));
  RONDO_TRY(rondo_pool_expect_slot(pool, stream->slot));
  out->fence = rondo_pool_spare_fence(pool);
  if (before != NULL && !rondo_order_knows(stream, before->slot, before->number)) out->before = before->event;
  return RONDO_OK;
}

static rondo_status enqueue_free(rondo_pool *pool, rondo_queue *queue, ordered_free *ordered) {
  if (ordered->fence == NULL) RONDO_TRY(rondo_fence_create(pool, &ordered->fence));
  if (ordered->before != NULL) RONDO_TRY(queue->ops->wait(queue, ordered->before));
  return queue->ops->record(queue, ordered->fence->event);
}

/* Under the lock. */
static void give_block(rondo_device_memory *memory, rondo_stream_order *stream, rondo_block *block,
                       rondo_fence *fence) {
  rondo_fence *before = block->fence;
  assert(block->state == RONDO_BLOCK_LIVE);
  if (fence != NULL) {
    fence->slot = stream->slot;
    fence->number = rondo_order_number(&memory->orders, stream);
    if (rondo_warm_up_runs(memory)) rondo_warm_up_note_free_slowly(memory, stream, block, fence->number);
  }
  if (before != NULL && before->number <= memory->orders.items[before->slot].waited) {
    rondo_pool_release_fence(block->chunk->pool, before);
    block->fence = NULL;
  }
  rondo_allocation_table_note_freed(&memory->table, &block->allocation);
  release_name(memory, &block->allocation);
  rondo_pool_free(block, fence);
}

/* The block is out of the table. */
static rondo_status free_block(rondo_device_memory *memory, rondo_stream_order *stream, rondo_block *block,
                               ordered_free *ordered) {
  rondo_pool *pool = block->chunk->pool;
  rondo_device *device = memory->device;
  const rondo_guard_ops *guard = device->ops->guard;
  const rondo_status status = stream == NULL ? RONDO_OK : enqueue_free(pool, stream->queue, ordered);
  if (status == RONDO_OK && guard != NULL) {
    rondo_peers_forget(device, block->allocation.address);
    guard->release(device, stream == NULL ? NULL : stream->queue, block->allocation.address);
  }
  pthread_mutex_lock(&memory->lock);
  if (status == RONDO_OK) {
    give_block(memory, stream, block, ordered->fence);
    rondo_memory_note_ended(memory);
    rondo_device_end_use(memory->device, &rondo_allocation_use);
  } else {
    if (ordered->fence != NULL) rondo_pool_release_fence(pool, ordered->fence);
    rondo_allocation_table_insert(&memory->allocator, &memory->table, &block->allocation);
  }
  rondo_pools_leave(memory, pool);
  return status;
}

/* Under the lock. Fails without having changed anything. */
static rondo_status withdraw_block(rondo_device_memory *memory, rondo_stream_order *stream, const void *address,
                                   rondo_block **out, ordered_free *ordered) {
  *out = find_block(memory, address);
  if (*out == NULL) return RONDO_OK;
  if (stream != NULL) RONDO_TRY(prepare_free(memory, stream, *out, ordered));
  rondo_allocation_table_remove(&memory->table, &(*out)->allocation);
  return RONDO_OK;
}

/* The same for graph memory, with a reference. */
static rondo_status claim_graph(const rondo_device_memory *memory, const char *call, const void *address,
                                rondo_graph_allocation **out) {
  *out = rondo_graph_allocation_at(memory, address);
  const bool live = *out != NULL && atomic_load_explicit(&(*out)->life, memory_order_relaxed) == RONDO_LIFE_LIVE;
  if (!live) return rondo_memory_refuse_free(memory, call, address);
  (*out)->references++;
  return RONDO_OK;
}

rondo_status rondo_memory_free(rondo_device_memory *memory, const char *call, rondo_stream_order *stream,
                               void *address) {
  rondo_block *block;
  rondo_graph_allocation *graph = NULL;
  ordered_free ordered = {0};
  pthread_mutex_lock(&memory->lock);
  rondo_status status = withdraw_block(memory, stream, address, &block, &ordered);
  if (status == RONDO_OK && block == NULL) status = claim_graph(memory, call, address, &graph);
  pthread_mutex_unlock(&memory->lock);
  RONDO_TRY(status);
  status = block != NULL ? free_block(memory, stream, block, &ordered)
                         : rondo_graph_allocation_free(graph, stream == NULL ? NULL : stream->queue);
  rondo_pools_sweep_destroyed(memory);
  rondo_retired_sweep(memory, false);
  return status;
}
