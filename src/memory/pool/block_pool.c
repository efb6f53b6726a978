/* SPDX-License-Identifier: MIT
 * The blocks of a pool: bins, cutting, joining, and chunks.
 */
#include "memory/pool/block_pool.h"

#include <assert.h>

#include "base/error.h"
#include "base/linked_list.h"
#include "base/log.h"
#include "memory/memory_errors.h"
#include "memory/peer_access.h"

#define SHARED_CHUNK_BYTES (2u << 20)

void rondo_pool_init(rondo_pool *pool, rondo_device *device, const rondo_allocator *allocator, size_t page_bytes,
                     rondo_allocation_kind kind) {
  const bool immediate = kind == RONDO_ALLOCATION_IMMEDIATE;
  assert(page_bytes > 0 && (page_bytes & (page_bytes - 1)) == 0);
  *pool = (rondo_pool){.device = device, .allocator = allocator, .kind = kind, .page_bytes = page_bytes};
  pool->chunk_bytes = page_bytes > SHARED_CHUNK_BYTES ? page_bytes : SHARED_CHUNK_BYTES;
  pool->dedicated_from = immediate ? pool->chunk_bytes / 4 : SIZE_MAX;
  pool->follow_events = pool->opportunistic = pool->internal = 1;
  pool->figures.struct_size = sizeof pool->figures;
}

void rondo_pool_deinit(rondo_pool *pool) {
  rondo_pool_sweep(pool);
  rondo_pool_trim_idle(pool, 0);
  rondo_chunks_destroy(rondo_pool_take_discarded(pool));
  assert(pool->chunks == NULL && pool->figures.live_allocations == 0);
  while (pool->spare_fences != NULL) {
    rondo_fence *fence = pool->spare_fences;
    pool->spare_fences = fence->next;
    fence->event->ops->destroy(fence->event);
    rondo_release(pool->allocator, fence, 1, sizeof *fence);
  }
  rondo_array_free(pool->allocator, &pool->by_slot);
}

bool rondo_pool_round(size_t bytes, size_t *out) {
  return bytes <= PTRDIFF_MAX && rondo_checked_align(bytes, RONDO_BLOCK_ALIGNMENT, out);
}

size_t rondo_pool_rounded(size_t bytes) {
  assert(bytes <= PTRDIFF_MAX);
  return (bytes + RONDO_BLOCK_ALIGNMENT - 1) / RONDO_BLOCK_ALIGNMENT * RONDO_BLOCK_ALIGNMENT;
}

/* Bins ------------------------------------------------------------------------------------------------------------ */

/* Four bins for each power of two: the two bits after the highest one choose. */
static unsigned bin_of(size_t bytes) {
  const uint64_t units = bytes / RONDO_BLOCK_ALIGNMENT;
  assert(units > 0);
  const unsigned power = 63u - (unsigned)__builtin_clzll(units);
  const unsigned quarter = power >= 2 ? (unsigned)(units >> (power - 2)) & 3u : (unsigned)(units << (2 - power)) & 3u;
  return power * 4 + quarter;
}

static void bin_insert(rondo_bins *bins, rondo_block *block) {
  const unsigned bin = bin_of(block->bytes);
  /* No link as in linked_list.h: the bins of pending blocks move when there are more slots. */
  block->bin_previous = NULL;
  block->bin_next = bins->heads[bin];
  if (block->bin_next != NULL) block->bin_next->bin_previous = block;
  bins->heads[bin] = block;
  bins->filled[bin / 64] |= UINT64_C(1) << (bin % 64);
}

static void bin_remove(rondo_bins *bins, rondo_block *block) {
  const unsigned bin = bin_of(block->bytes);
  *(block->bin_previous == NULL ? &bins->heads[bin] : &block->bin_previous->bin_next) = block->bin_next;
  if (block->bin_next != NULL) block->bin_next->bin_previous = block->bin_previous;
  block->bin_previous = block->bin_next = NULL;
  if (bins->heads[bin] == NULL) bins->filled[bin / 64] &= ~(UINT64_C(1) << (bin % 64));
}

/* The first bin from `bin` on that is not empty; RONDO_POOL_BINS when there is none. */
static unsigned next_filled(const rondo_bins *bins, unsigned bin) {
  while (bin < RONDO_POOL_BINS) {
    const uint64_t rest = bins->filled[bin / 64] >> (bin % 64);
    if (rest != 0) return bin + (unsigned)__builtin_ctzll(rest);
    bin = (bin / 64 + 1) * 64;
  }
  return RONDO_POOL_BINS;
}

/* The smallest block of at least `bytes`; of pending blocks, only those freed up to the number `up_to`. */
static rondo_block *find_fit(const rondo_bins *bins, size_t bytes, uint64_t up_to) {
  for (unsigned bin = next_filled(bins, bin_of(bytes)); bin < RONDO_POOL_BINS; bin = next_filled(bins, bin + 1)) {
    rondo_block *best = NULL;
    for (rondo_block *block = bins->heads[bin]; block != NULL; block = block->bin_next) {
      if (block->bytes < bytes || (best != NULL && block->bytes >= best->bytes)) continue;
      if (block->fence != NULL && block->fence->number > up_to) continue;
      best = block;
      if (best->bytes == bytes) return best;
    }
    if (best != NULL) return best;
  }
  return NULL;
}

/* On which streams the pending blocks were freed that a search takes. */
typedef enum freed_on { ANY_STREAM, SAME_STREAM, ORDERED_STREAMS } freed_on;

/* The number of the slot's last free whose block the search may take; 0 for none. */
static uint64_t frees_for(freed_on which, const rondo_stream_order *stream, uint32_t slot) {
  if (which == ANY_STREAM) return UINT64_MAX;
  if (which == SAME_STREAM) return slot == stream->slot ? UINT64_MAX : 0;
  return rondo_order_known(stream, slot);
}

static rondo_block *find_pending(const rondo_pool *pool, freed_on which, const rondo_stream_order *stream,
                                 size_t bytes) {
  rondo_block *best = NULL;
  for (uint32_t slot = 1; slot < pool->by_slot.count; slot++) {
    const rondo_pending_list *list = &pool->by_slot.items[slot];
    const uint64_t up_to = frees_for(which, stream, slot);
    if (list->oldest == NULL || list->oldest->fence->number > up_to) continue;
    rondo_block *block = find_fit(&list->bins, bytes, up_to);
    if (block != NULL && (best == NULL || block->bytes < best->bytes)) best = block;
  }
  return best;
}

/* Statistics ------------------------------------------------------------------------------------------------------ */

static void raise_to(uint64_t *high, uint64_t now) {
  if (now > *high) *high = now;
}

/* Adds to the statistics of the pool and to those of all pools together. Negative numbers wrap around. */
static void count_bytes(rondo_pool *pool, uint64_t used, uint64_t reserved) {
  rondo_pool_statistics *const both[] = {&pool->figures, pool->total};
  for (size_t i = 0; i < 2 && both[i] != NULL; i++) {
    raise_to(&both[i]->used_high, both[i]->used += used);
    raise_to(&both[i]->reserved_high, both[i]->reserved += reserved);
  }
}

/* Counts a block that becomes live (1) or stops being live (-1). */
static void count_live(rondo_block *block, int by) {
  rondo_pool *pool = block->chunk->pool;
  const size_t bytes = by > 0 ? block->bytes : 0 - block->bytes;
  assert(by > 0 || (pool->figures.live_allocations > 0 && block->chunk->used >= block->bytes));
  pool->figures.live_allocations += (uint32_t)by;
  block->chunk->used += bytes;
  count_bytes(pool, bytes, 0);
}

/* Unused chunks --------------------------------------------------------------------------------------------------- */

static bool is_unused(const rondo_chunk *chunk) {
  return chunk->blocks->state == RONDO_BLOCK_FREE && chunk->blocks->next == NULL;
}

static void discard(rondo_chunk *chunk) {
  rondo_pool *pool = chunk->pool;
  assert(is_unused(chunk) && chunk->used == 0);
  bin_remove(&pool->free, chunk->blocks);
  RONDO_LIST_REMOVE(chunk, next, link);
  if (pool->spare == chunk) pool->spare = NULL;
  count_bytes(pool, 0, 0 - (uint64_t)chunk->bytes);
  chunk->next = pool->discarded;
  pool->discarded = chunk;
}

/* An unused chunk of the immediate pool is discarded now, one of other pools at the next synchronization. */
static void settle_unused(rondo_chunk *chunk) {
  rondo_pool *pool = chunk->pool;
  if (pool->kind == RONDO_ALLOCATION_STREAM_ORDERED)
    pool->excess = pool->excess || pool->figures.reserved > pool->release_threshold;
  else if (chunk->dedicated || (pool->spare != NULL && pool->spare != chunk))
    discard(chunk);
  else
    pool->spare = chunk;
}

void rondo_pool_trim_idle(rondo_pool *pool, uint64_t keep) {
  rondo_chunk *next;
  for (rondo_chunk *chunk = pool->chunks; chunk != NULL; chunk = next) {
    next = chunk->next;
    if (is_unused(chunk) && pool->figures.reserved - chunk->bytes >= keep) discard(chunk);
  }
}

rondo_chunk *rondo_pool_take_discarded(rondo_pool *pool) {
  rondo_chunk *list = pool->discarded;
  pool->discarded = NULL;
  return list;
}

/* Blocks ---------------------------------------------------------------------------------------------------------- */

/* Inserts by number: nearly always after the newest. */
static void age_insert(rondo_pending_list *list, rondo_block *block) {
  rondo_block *before = list->newest;
  while (before != NULL && before->fence->number > block->fence->number) before = before->age_previous;
  block->age_previous = before;
  block->age_next = before == NULL ? list->oldest : before->age_next;
  *(before == NULL ? &list->oldest : &before->age_next) = block;
  *(block->age_next == NULL ? &list->newest : &block->age_next->age_previous) = block;
}

static void age_remove(rondo_pending_list *list, rondo_block *block) {
  *(block->age_previous == NULL ? &list->oldest : &block->age_previous->age_next) = block->age_next;
  *(block->age_next == NULL ? &list->newest : &block->age_next->age_previous) = block->age_previous;
  block->age_previous = block->age_next = NULL;
}

static rondo_pending_list *list_of(const rondo_block *block) {
  rondo_pool *pool = block->chunk->pool;
  assert(block->state == RONDO_BLOCK_PENDING && block->fence->slot < pool->by_slot.count);
  return &pool->by_slot.items[block->fence->slot];
}

rondo_status rondo_pool_expect_slot(rondo_pool *pool, uint32_t slot) {
  const rondo_pending_list none = {0};
  while (pool->by_slot.count <= slot) RONDO_TRY(rondo_array_push(pool->allocator, &pool->by_slot, &none));
  return RONDO_OK;
}

static rondo_bins *bins_of(rondo_block *block) {
  return block->state == RONDO_BLOCK_FREE ? &block->chunk->pool->free : &list_of(block)->bins;
}

/* Adds a block to, and removes it from, the lists of blocks that can be taken. */
static void enlist(rondo_block *block) {
  if (block->state == RONDO_BLOCK_PENDING) age_insert(list_of(block), block);
  bin_insert(bins_of(block), block);
}
static void delist(rondo_block *block) {
  bin_remove(bins_of(block), block);
  if (block->state == RONDO_BLOCK_PENDING) age_remove(list_of(block), block);
}

/* Cuts the block to `bytes`; the rest becomes a block in the same state. Without host memory for that the block stays
 * whole, and the rest is unused while the block is live. */
static void cut(rondo_block *block, size_t bytes) {
  const rondo_pool *pool = block->chunk->pool;
  void *memory;
  assert(bytes > 0 && bytes <= block->bytes);
  if (block->bytes == bytes || rondo_allocate(pool->allocator, 1, sizeof *block, &memory) != RONDO_OK) return;
  rondo_block *rest = memory;
  rest->chunk = block->chunk;
  rest->offset = block->offset + bytes;
  rest->bytes = block->bytes - bytes;
  rest->state = block->state;
  rest->reason = block->reason;
  rest->fence = block->fence;
  if (rest->fence != NULL) rest->fence->references++;
  rest->previous = block;
  rest->next = block->next;
  if (rest->next != NULL) rest->next->previous = rest;
  block->next = rest;
  block->bytes = bytes;
  enlist(rest);
}

/* Joins the block with the next one, which was removed from its lists. */
static void absorb_next(rondo_block *block) {
  rondo_block *next = block->next;
  assert(next->offset == block->offset + block->bytes);
  block->bytes += next->bytes;
  if (next->reason > block->reason) block->reason = next->reason;
  block->next = next->next;
  if (block->next != NULL) block->next->previous = block;
  rondo_release(block->chunk->pool->allocator, next, 1, sizeof *next);
}

/* Makes a block that is in no list free, and joins it with free neighbours. */
static void make_free(rondo_block *block, rondo_free_reason reason) {
  block->state = RONDO_BLOCK_FREE;
  block->reason = reason;
  if (block->next != NULL && block->next->state == RONDO_BLOCK_FREE) {
    delist(block->next);
    absorb_next(block);
  }
  if (block->previous != NULL && block->previous->state == RONDO_BLOCK_FREE) {
    block = block->previous;
    delist(block);
    absorb_next(block);
  }
  enlist(block);
  if (is_unused(block->chunk)) settle_unused(block->chunk);
}

/* Makes a block that is in no list live. */
static rondo_block *make_live(rondo_block *block) {
  rondo_pool *pool = block->chunk->pool;
  if (pool->spare == block->chunk) pool->spare = NULL;
  block->state = RONDO_BLOCK_LIVE;
  block->run = 0;
  block->allocation =
      (rondo_allocation){.address = block->chunk->base + block->offset, .bytes = block->bytes, .kind = pool->kind};
  count_live(block, 1);
  return block;
}

static rondo_block *take_block(rondo_block *block, size_t rounded) {
  delist(block);
  cut(block, rounded);
  return make_live(block);
}

/* Taking ---------------------------------------------------------------------------------------------------------- */

static rondo_block *take_free(rondo_pool *pool, size_t rounded) {
  rondo_block *block = find_fit(&pool->free, rounded, UINT64_MAX);
  if (block == NULL) return NULL;
  if (block->reason == RONDO_FREE_WAITED) pool->figures.host_ordered++;
  if (block->reason == RONDO_FREE_DONE) pool->figures.opportunistic++;
  return take_block(block, rounded);
}

static rondo_block *take_pending(rondo_pool *pool, freed_on which, const rondo_stream_order *stream, size_t rounded,
                                 uint64_t *counter) {
  rondo_block *block = find_pending(pool, which, stream, rounded);
  if (block == NULL) return NULL;
  (*counter)++;
  return take_block(block, rounded);
}

/* The later of two fences of one slot; the other is released. Either may be NULL. */
static rondo_fence *later(rondo_pool *pool, rondo_fence *a, rondo_fence *b) {
  if (a == NULL || b == NULL) return a == NULL ? b : a;
  assert(a->slot == b->slot);
  rondo_fence *const last = a->number > b->number ? a : b;
  rondo_pool_release_fence(pool, last == a ? b : a);
  return last;
}

/* Joins `first` with the blocks after it up to `last`, whose last `rest` bytes stay a separate block. */
static rondo_block *join(rondo_block *first, rondo_block *last, size_t rest) {
  delist(last);
  cut(last, last->bytes - rest);
  if (first != last) delist(first);
  const rondo_block *const end = last->next;
  while (first->next != end) {
    rondo_block *next = first->next;
    if (next != last) delist(next);
    first->fence = later(first->chunk->pool, first->fence, next->fence);
    absorb_next(first);
  }
  return make_live(first);
}

/* Takes adjacent blocks that are free or were freed on the stream, joined. */
static rondo_block *take_joined(rondo_pool *pool, const rondo_stream_order *stream, size_t rounded) {
  for (rondo_chunk *chunk = pool->chunks; chunk != NULL; chunk = chunk->next) {
    rondo_block *first = NULL;
    size_t bytes = 0;
    const bool has_room = chunk->bytes - chunk->used >= rounded;
    for (rondo_block *block = chunk->blocks; block != NULL && has_room; block = block->next) {
      const bool own = block->state == RONDO_BLOCK_PENDING && block->fence->slot == stream->slot;
      if (block->state != RONDO_BLOCK_FREE && !own) {
        first = NULL;
        continue;
      }
      bytes = first == NULL ? block->bytes : bytes + block->bytes;
      if (first == NULL) first = block;
      if (bytes < rounded) continue;
      pool->figures.same_stream++;
      return join(first, block, bytes - rounded);
    }
  }
  return NULL;
}

rondo_block *rondo_pool_take(rondo_pool *pool, const rondo_stream_order *stream, size_t rounded) {
  rondo_block *block = NULL;
  assert(rounded % RONDO_BLOCK_ALIGNMENT == 0);
  if (rounded > pool->dedicated_from) return NULL;
  if (stream != NULL) block = take_pending(pool, SAME_STREAM, stream, rounded, &pool->figures.same_stream);
  if (block == NULL) block = take_free(pool, rounded);
  if (block == NULL && stream != NULL && pool->follow_events)
    block = take_pending(pool, ORDERED_STREAMS, stream, rounded, &pool->figures.event_ordered);
  if (block == NULL && pool->opportunistic) {
    rondo_pool_sweep(pool);
    block = take_free(pool, rounded);
  }
  return block == NULL && stream != NULL ? take_joined(pool, stream, rounded) : block;
}

rondo_block *rondo_pool_take_unordered(rondo_pool *pool, size_t rounded) {
  return pool->internal ? take_pending(pool, ANY_STREAM, NULL, rounded, &pool->figures.internal_dependencies) : NULL;
}

/* Freeing --------------------------------------------------------------------------------------------------------- */

static bool is_done(const rondo_fence *fence) { return fence->event->ops->query(fence->event) == RONDO_OK; }

/* Makes a pending block free, whose free is complete. */
static void finish(rondo_block *block, rondo_free_reason reason) {
  delist(block);
  rondo_pool_release_fence(block->chunk->pool, block->fence);
  block->fence = NULL;
  make_free(block, reason);
}

void rondo_pool_sweep(rondo_pool *pool) {
  for (size_t slot = 0; slot < pool->by_slot.count; slot++) {
    const rondo_pending_list *list = &pool->by_slot.items[slot];
    while (list->oldest != NULL && is_done(list->oldest->fence)) finish(list->oldest, RONDO_FREE_DONE);
  }
}

void rondo_pool_note_waited(rondo_pool *pool, uint32_t slot, uint64_t number) {
  if (slot >= pool->by_slot.count) return;
  const rondo_pending_list *list = &pool->by_slot.items[slot];
  while (list->oldest != NULL && list->oldest->fence->number <= number) finish(list->oldest, RONDO_FREE_WAITED);
}

static void make_pending(rondo_block *block, rondo_fence *fence) {
  block->fence = fence;
  block->state = RONDO_BLOCK_PENDING;
  enlist(block);
}

void rondo_pool_free(rondo_block *block, rondo_fence *fence) {
  rondo_pool *pool = block->chunk->pool;
  rondo_fence *before = block->fence;
  assert(block->state == RONDO_BLOCK_LIVE);
  block->fence = NULL;
  count_live(block, -1);
  if (fence == NULL && before != NULL && !(pool->opportunistic && is_done(before))) {
    make_pending(block, before);
    return;
  }
  if (before != NULL) rondo_pool_release_fence(pool, before);
  if (fence == NULL)
    make_free(block, RONDO_FREE_WAITED);
  else
    make_pending(block, fence);
}

void rondo_pool_untake(rondo_block *block) {
  assert(block->state == RONDO_BLOCK_LIVE && block->fence != NULL);
  block->chunk->pool->figures.internal_dependencies--;
  count_live(block, -1);
  make_pending(block, block->fence);
}

/* Chunks ---------------------------------------------------------------------------------------------------------- */

/* The caller cannot report the error. */
static void log_lost_chunk(void) {
  rondo_log(RONDO_LOG_ERROR, "memory", "releasing a chunk failed, its address range is lost: %s",
            rondo_last_error()->message);
}

static rondo_status map_chunk(rondo_chunk *chunk) {
  rondo_device *device = chunk->device;
  void *base;
  RONDO_TRY(rondo_peers_reserve(device, chunk->bytes, 0, &base));
  rondo_status status = device->ops->physical_create(device, chunk->bytes, RONDO_PHYSICAL_ONCE, &chunk->physical);
  if (status == RONDO_OK) {
    status = device->ops->map(device, base, chunk->physical);
    if (status != RONDO_OK) device->ops->physical_destroy(chunk->physical);
  }
  if (status == RONDO_OK)
    chunk->base = base;
  else if (rondo_peers_unreserve(device, base, chunk->bytes) != RONDO_OK)
    log_lost_chunk();
  return status;
}

static void free_chunk(const rondo_allocator *allocator, rondo_chunk *chunk) {
  rondo_release(allocator, chunk->blocks, 1, sizeof *chunk->blocks);
  rondo_release(allocator, chunk, 1, sizeof *chunk);
}

rondo_status rondo_chunk_create(rondo_pool *pool, size_t rounded, rondo_chunk **out) {
  const bool dedicated = rounded > pool->dedicated_from;
  size_t bytes;
  rondo_chunk *chunk;
  *out = NULL;
  if (!rondo_checked_align(rounded, dedicated ? pool->page_bytes : pool->chunk_bytes, &bytes))
    return rondo_memory_fail_size(rounded);
  RONDO_TRY(rondo_allocate_items(pool->allocator, 1, sizeof *chunk, &chunk));
  *chunk = (rondo_chunk){.pool = pool, .device = pool->device, .bytes = bytes, .dedicated = dedicated};
  rondo_status status = rondo_allocate_items(pool->allocator, 1, sizeof *chunk->blocks, &chunk->blocks);
  if (status == RONDO_OK) {
    *chunk->blocks = (rondo_block){.chunk = chunk, .bytes = bytes, .state = RONDO_BLOCK_FREE};
    status = map_chunk(chunk);
  }
  if (status != RONDO_OK) {
    free_chunk(pool->allocator, chunk);
    return status;
  }
  *out = chunk;
  return RONDO_OK;
}

static void destroy_chunk(rondo_chunk *chunk) {
  rondo_device *device = chunk->device;
  rondo_status status = device->ops->unmap(device, chunk->base, chunk->bytes);
  if (status == RONDO_OK)
    status = rondo_peers_unreserve(device, chunk->base, chunk->bytes);
  else
    rondo_peers_forget(device, chunk->base); /* addresses where something is still mapped are lost */
  if (status != RONDO_OK) log_lost_chunk();
  device->ops->physical_destroy(chunk->physical);
  free_chunk(&device->allocator, chunk);
}

void rondo_chunks_destroy(rondo_chunk *list) {
  while (list != NULL) {
    rondo_chunk *chunk = list;
    list = chunk->next;
    destroy_chunk(chunk);
  }
}

rondo_block *rondo_pool_adopt(rondo_pool *pool, rondo_chunk *chunk, size_t rounded) {
  assert(chunk->pool == pool && chunk->bytes >= rounded);
  RONDO_LIST_INSERT(pool->chunks, chunk, next, link);
  pool->figures.chunks++;
  count_bytes(pool, 0, chunk->bytes);
  enlist(chunk->blocks);
  return take_block(chunk->blocks, chunk->dedicated ? chunk->bytes : rounded);
}

/* Fences ---------------------------------------------------------------------------------------------------------- */

rondo_fence *rondo_pool_spare_fence(rondo_pool *pool) {
  rondo_fence *fence = pool->spare_fences;
  if (fence == NULL) return NULL;
  pool->spare_fences = fence->next;
  fence->references = 1;
  return fence;
}

rondo_status rondo_fence_create(rondo_pool *pool, rondo_fence **out) {
  rondo_fence *fence;
  *out = NULL;
  RONDO_TRY(rondo_allocate_items(pool->allocator, 1, sizeof *fence, &fence));
  fence->references = 1;
  const rondo_status status = pool->device->ops->event_create(pool->device, false, &fence->event);
  if (status != RONDO_OK) {
    rondo_release(pool->allocator, fence, 1, sizeof *fence);
    return status;
  }
  *out = fence;
  return RONDO_OK;
}

void rondo_pool_release_fence(rondo_pool *pool, rondo_fence *fence) {
  assert(fence->references > 0);
  if (--fence->references > 0) return;
  fence->next = pool->spare_fences;
  pool->spare_fences = fence;
}
