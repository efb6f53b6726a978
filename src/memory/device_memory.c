/* SPDX-License-Identifier: MIT
 * Allocating and freeing at once and in stream order, host memory, and the figures. What calls the driver does so
 * between two stretches under the lock; an allocation that is on its way out is in no table meanwhile, so that a
 * second free of it is found out.
 */
#include "memory/device_memory.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "memory/address_space.h"
#include "memory/heap.h"

/* The device's state --------------------------------------------------------------------------------------------- */

static void release_memory(void *state) {
  rondo_device_memory *memory = state;
  const rondo_allocator allocator = memory->allocator;
  rondo_heaps_destroy(memory);
  rondo_pool_deinit(&memory->immediate);
  rondo_pool_deinit(&memory->stream_ordered);
  rondo_allocation_table_deinit(&allocator, &memory->table);
  rondo_allocation_table_deinit(&allocator, &memory->host);
  pthread_mutex_destroy(&memory->lock);
  rondo_release(&allocator, memory, 1, sizeof *memory);
}

static rondo_status create_memory(rondo_device *device, rondo_device_memory **out) {
  void *state;
  RONDO_TRY(rondo_allocate(&device->allocator, 1, sizeof(rondo_device_memory), &state));
  rondo_device_memory *memory = state;
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
  memory->graph_memory = info.graph_memory;
  pthread_mutex_init(&memory->lock, NULL);
  rondo_pool_init(&memory->immediate, device, &memory->allocator, memory->page_bytes, RONDO_ALLOCATION_IMMEDIATE);
  rondo_pool_init(&memory->stream_ordered, device, &memory->allocator, memory->page_bytes,
                  RONDO_ALLOCATION_STREAM_ORDERED);
  *out = memory;
  return RONDO_OK;
}

rondo_status rondo_device_memory_of(rondo_device *device, rondo_device_memory **out) {
  static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
  *out = atomic_load_explicit(&device->memory.state, memory_order_acquire);
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

rondo_status rondo_device_memory_require(const rondo_device_memory *memory, const char *call) {
  if (memory->graph_memory) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE,
                    "%s: device %s has no memory pools and no memory nodes: allocate with rondo_malloc", call,
                    memory->device->name);
}

/* Figures --------------------------------------------------------------------------------------------------------- */

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

void rondo_memory_read_statistics(rondo_device_memory *memory, rondo_memory_statistics *out) {
  rondo_retired_sweep(memory, false);
  pthread_mutex_lock(&memory->lock);
  rondo_pool_sweep(&memory->immediate);
  rondo_pool_sweep(&memory->stream_ordered);
  const rondo_pool *pool = &memory->stream_ordered;
  out->live_allocations = memory->immediate.live + pool->live;
  out->pool_used = pool->used;
  out->pool_used_high = pool->used_high;
  out->pool_reserved = pool->reserved;
  out->pool_reserved_high = pool->reserved_high;
  rondo_chunk *discarded = rondo_pool_take_discarded(&memory->immediate);
  pthread_mutex_unlock(&memory->lock);
  rondo_chunks_destroy(discarded);
  out->graph_used = atomic_load_explicit(&memory->graph_used.now, memory_order_relaxed);
  out->graph_used_high = atomic_load_explicit(&memory->graph_used.high, memory_order_relaxed);
  out->graph_reserved = atomic_load_explicit(&memory->graph_reserved.now, memory_order_relaxed);
  out->graph_reserved_high = atomic_load_explicit(&memory->graph_reserved.high, memory_order_relaxed);
  out->remaps = atomic_load_explicit(&memory->remaps, memory_order_relaxed);
  out->heap_growth = atomic_load_explicit(&memory->heap_growth, memory_order_relaxed);
}

static void lower_high(rondo_level *level) {
  atomic_store_explicit(&level->high, atomic_load_explicit(&level->now, memory_order_relaxed), memory_order_relaxed);
}

void rondo_memory_lower_highs(rondo_device_memory *memory) {
  lower_high(&memory->graph_used);
  lower_high(&memory->graph_reserved);
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

void rondo_memory_trim_pool(rondo_device_memory *memory, uint64_t keep_bytes) {
  pthread_mutex_lock(&memory->lock);
  rondo_pool_sweep(&memory->stream_ordered);
  rondo_pool_trim_idle(&memory->stream_ordered, keep_bytes);
  rondo_chunk *discarded = rondo_pool_take_discarded(&memory->stream_ordered);
  pthread_mutex_unlock(&memory->lock);
  rondo_chunks_destroy(discarded);
}

void rondo_memory_forget_error(const rondo_saved_error *before) {
  rondo_status_ignore(rondo_error_raise(before), "it is the detail of an earlier call");
}

void rondo_memory_give_back_idle(rondo_device_memory *memory) {
  pthread_mutex_lock(&memory->lock);
  rondo_pool_sweep(&memory->immediate);
  rondo_pool_trim_idle(&memory->immediate, 0);
  rondo_chunk *discarded = rondo_pool_take_discarded(&memory->immediate);
  pthread_mutex_unlock(&memory->lock);
  rondo_chunks_destroy(discarded);
  rondo_memory_trim_pool(memory, 0);
}

static rondo_status fail_growth(rondo_device_memory *memory, const rondo_pool *pool, rondo_status status,
                                size_t bytes) {
  char asked[RONDO_SIZE_TEXT], immediate[RONDO_SIZE_TEXT], ordered[RONDO_SIZE_TEXT], graphs[RONDO_SIZE_TEXT];
  pthread_mutex_lock(&memory->lock);
  const uint64_t immediate_bytes = memory->immediate.reserved, ordered_bytes = memory->stream_ordered.reserved;
  pthread_mutex_unlock(&memory->lock);
  return rondo_fail_context(
      status, "%s of %s on %s, which holds %s by rondo_malloc, %s by rondo_malloc_async and %s for graphs",
      pool->kind == RONDO_ALLOCATION_IMMEDIATE ? "rondo_malloc" : "rondo_malloc_async", rondo_size_text(asked, bytes),
      memory->device->name, rondo_size_text(immediate, immediate_bytes), rondo_size_text(ordered, ordered_bytes),
      rondo_size_text(graphs, atomic_load_explicit(&memory->graph_reserved.now, memory_order_relaxed)));
}

/* A chunk for a pool that has no room; a second try after giving back what is idle. */
static rondo_status make_room(rondo_device_memory *memory, rondo_pool *pool, size_t bytes, size_t rounded,
                              rondo_chunk **out) {
  rondo_saved_error before;
  rondo_error_save(&before);
  rondo_status status = rondo_chunk_create(pool, rounded, out);
  if (status == RONDO_OUT_OF_MEMORY) {
    rondo_memory_give_back_idle(memory);
    status = rondo_chunk_create(pool, rounded, out);
    if (status == RONDO_OK) rondo_memory_forget_error(&before);
  }
  return status == RONDO_OK ? RONDO_OK : fail_growth(memory, pool, status, bytes);
}

/* Under the lock. */
static void enter_block(rondo_device_memory *memory, rondo_block *block, size_t bytes, char *name) {
  block->allocation.bytes = bytes;
  block->allocation.name = name;
  rondo_allocation_table_insert(&memory->allocator, &memory->table, &block->allocation);
  atomic_fetch_add_explicit(&memory->device->allocations, 1, memory_order_relaxed);
}

static rondo_status take_block(rondo_device_memory *memory, rondo_queue *queue, size_t bytes, char *name,
                               rondo_block **out) {
  rondo_pool *pool = queue == NULL ? &memory->immediate : &memory->stream_ordered;
  size_t rounded;
  if (!rondo_pool_round(bytes, &rounded))
    return fail_growth(
        memory, pool,
        rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_BAD_SIZE, "%zu bytes do not fit the address space", bytes), bytes);
  pthread_mutex_lock(&memory->lock);
  rondo_block *block = rondo_pool_take(pool, queue, rounded);
  if (block == NULL) {
    pthread_mutex_unlock(&memory->lock);
    rondo_chunk *chunk;
    RONDO_TRY(make_room(memory, pool, bytes, rounded, &chunk));
    pthread_mutex_lock(&memory->lock);
    block = rondo_pool_adopt(pool, chunk, rounded);
  }
  enter_block(memory, block, bytes, name);
  rondo_chunk *discarded = rondo_pool_take_discarded(pool);
  pthread_mutex_unlock(&memory->lock);
  rondo_chunks_destroy(discarded);
  *out = block;
  return RONDO_OK;
}

rondo_status rondo_memory_allocate(rondo_device_memory *memory, rondo_queue *queue, size_t bytes, const char *name,
                                   void **out_address) {
  char *copy;
  RONDO_TRY(copy_name(memory, name, &copy));
  rondo_block *block = NULL;
  const rondo_status status = take_block(memory, queue, bytes, copy, &block);
  if (status != RONDO_OK) {
    if (copy != NULL) rondo_release_text(&memory->allocator, copy);
    return status;
  }
  *out_address = block->allocation.address;
  return RONDO_OK;
}

/* Ranges ---------------------------------------------------------------------------------------------------------- */

rondo_status rondo_memory_check_range(rondo_device_memory *memory, const char *call, const char *what,
                                      const void *address, size_t bytes) {
  rondo_status status = RONDO_OK;
  pthread_mutex_lock(&memory->lock);
  const rondo_allocation *at = rondo_allocation_table_around(&memory->table, address);
  if (at == NULL) at = rondo_allocation_table_around(&memory->host, address);
  const size_t offset = at == NULL ? 0 : (size_t)((const char *)address - at->address);
  if (at != NULL && bytes > at->bytes - offset)
    status = rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                        "%s: the %s of %zu bytes at offset %zu passes the end of allocation '%.60s' of %zu bytes: "
                        "make it smaller, or allocate more",
                        call, what, bytes, offset, at->name == NULL ? "(no name)" : at->name, at->bytes);
  pthread_mutex_unlock(&memory->lock);
  return status;
}

/* Freeing --------------------------------------------------------------------------------------------------------- */

/* Why there is nothing to free at the address. Under the lock. */
static rondo_status refuse_free(const rondo_device_memory *memory, const char *call, const void *address) {
  const rondo_graph_allocation *graph = rondo_graph_allocation_at(memory, address);
  char label[RONDO_ALLOCATION_LABEL];
  if (graph != NULL && atomic_load_explicit(&graph->life, memory_order_relaxed) == RONDO_LIFE_NEVER)
    return rondo_fail(RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED,
                      "%s: graph allocation %s at %p is not allocated: no launch has left it so. Launch its graph "
                      "first; what its graph frees itself cannot be freed outside",
                      call, rondo_allocation_label(label, &graph->base), address);
  if (graph != NULL)
    return rondo_fail(RONDO_INVALID_LIFETIME, RONDO_REASON_DOUBLE_FREE,
                      "%s: graph allocation %s at %p was freed already: free it once for each launch that allocates "
                      "it",
                      call, rondo_allocation_label(label, &graph->base), address);
  if (rondo_allocation_table_was_freed(&memory->table, address))
    return rondo_fail(RONDO_INVALID_LIFETIME, RONDO_REASON_DOUBLE_FREE,
                      "%s: the memory at %p was freed already: free it once, with rondo_free, rondo_free_async or a "
                      "free node",
                      call, address);
  return rondo_fail(RONDO_INVALID_LIFETIME, RONDO_REASON_FOREIGN_ADDRESS,
                    "%s: %p is not the address of an allocation of device %s (or of one freed long ago): free the "
                    "address that the allocation returned, on its own device",
                    call, address, memory->device->name);
}

/* The block that starts at the address, out of the table. Under the lock. */
static rondo_block *withdraw_block(rondo_device_memory *memory, const void *address) {
  rondo_allocation *at = rondo_allocation_table_find(&memory->table, address);
  while (at != NULL && at->kind == RONDO_ALLOCATION_GRAPH) at = rondo_allocation_table_next(at);
  if (at == NULL) return NULL;
  rondo_allocation_table_remove(&memory->table, at);
  return (rondo_block *)at;
}

/* A fence behind what is queued. */
static rondo_status record_fence(rondo_device_memory *memory, rondo_pool *pool, rondo_queue *queue, rondo_fence **out) {
  pthread_mutex_lock(&memory->lock);
  rondo_fence *fence = rondo_pool_spare_fence(pool);
  pthread_mutex_unlock(&memory->lock);
  if (fence == NULL) RONDO_TRY(rondo_fence_create(pool, &fence));
  const rondo_status status = queue->ops->record(queue, fence->event);
  if (status != RONDO_OK) {
    pthread_mutex_lock(&memory->lock);
    rondo_pool_release_fence(pool, fence);
    pthread_mutex_unlock(&memory->lock);
    return status;
  }
  fence->queue = queue;
  *out = fence;
  return RONDO_OK;
}

static rondo_status free_block(rondo_device_memory *memory, rondo_queue *queue, rondo_block *block) {
  rondo_pool *pool = block->chunk->pool;
  rondo_fence *fence = NULL;
  const rondo_status status = queue == NULL ? RONDO_OK : record_fence(memory, pool, queue, &fence);
  pthread_mutex_lock(&memory->lock);
  if (status != RONDO_OK) {
    rondo_allocation_table_insert(&memory->allocator, &memory->table, &block->allocation);
    pthread_mutex_unlock(&memory->lock);
    return status;
  }
  release_name(memory, &block->allocation);
  rondo_allocation_table_note_freed(&memory->table, block->allocation.address);
  rondo_pool_give(block, fence);
  rondo_chunk *discarded = rondo_pool_take_discarded(pool);
  pthread_mutex_unlock(&memory->lock);
  atomic_fetch_sub_explicit(&memory->device->allocations, 1, memory_order_relaxed);
  rondo_chunks_destroy(discarded);
  return RONDO_OK;
}

rondo_status rondo_memory_free(rondo_device_memory *memory, const char *call, rondo_queue *queue, void *address) {
  pthread_mutex_lock(&memory->lock);
  rondo_block *block = withdraw_block(memory, address);
  rondo_graph_allocation *graph = block == NULL ? rondo_graph_allocation_at(memory, address) : NULL;
  const bool live = graph != NULL && atomic_load_explicit(&graph->life, memory_order_relaxed) == RONDO_LIFE_LIVE;
  rondo_status status = RONDO_OK;
  if (live)
    graph->references++;
  else if (block == NULL)
    status = refuse_free(memory, call, address);
  pthread_mutex_unlock(&memory->lock);
  if (status != RONDO_OK) return status;
  return block != NULL ? free_block(memory, queue, block) : rondo_graph_allocation_free(graph, queue);
}

/* Host memory ----------------------------------------------------------------------------------------------------- */

rondo_status rondo_memory_host_allocate(rondo_device_memory *memory, size_t bytes, void **out_address) {
  void *record, *address;
  RONDO_TRY(rondo_allocate(&memory->allocator, 1, sizeof(rondo_allocation), &record));
  const rondo_status status = memory->device->ops->host_allocate(memory->device, bytes, &address);
  if (status != RONDO_OK) {
    rondo_release(&memory->allocator, record, 1, sizeof(rondo_allocation));
    char asked[RONDO_SIZE_TEXT];
    return rondo_fail_context(status, "rondo_host_malloc of %s", rondo_size_text(asked, bytes));
  }
  rondo_allocation *allocation = record;
  *allocation = (rondo_allocation){.address = address, .bytes = bytes};
  pthread_mutex_lock(&memory->lock);
  rondo_allocation_table_insert(&memory->allocator, &memory->host, allocation);
  pthread_mutex_unlock(&memory->lock);
  atomic_fetch_add_explicit(&memory->device->allocations, 1, memory_order_relaxed);
  *out_address = address;
  return RONDO_OK;
}

/* Under the lock. */
static rondo_status withdraw_host(rondo_device_memory *memory, const void *address, rondo_allocation **out) {
  *out = rondo_allocation_table_find(&memory->host, address);
  if (*out != NULL) {
    rondo_allocation_table_remove(&memory->host, *out);
    rondo_allocation_table_note_freed(&memory->host, address);
    return RONDO_OK;
  }
  if (rondo_allocation_table_was_freed(&memory->host, address))
    return rondo_fail(RONDO_INVALID_LIFETIME, RONDO_REASON_DOUBLE_FREE,
                      "rondo_host_free: the host memory at %p was freed already: free it once", address);
  return rondo_fail(RONDO_INVALID_LIFETIME, RONDO_REASON_FOREIGN_ADDRESS,
                    "rondo_host_free: %p is not host memory of device %s: free the address that rondo_host_malloc "
                    "returned",
                    address, memory->device->name);
}

rondo_status rondo_memory_host_free(rondo_device_memory *memory, void *address) {
  rondo_allocation *allocation;
  pthread_mutex_lock(&memory->lock);
  const rondo_status status = withdraw_host(memory, address, &allocation);
  pthread_mutex_unlock(&memory->lock);
  if (status != RONDO_OK) return status;
  memory->device->ops->host_release(memory->device, address, allocation->bytes);
  rondo_release(&memory->allocator, allocation, 1, sizeof *allocation);
  atomic_fetch_sub_explicit(&memory->device->allocations, 1, memory_order_relaxed);
  return RONDO_OK;
}
