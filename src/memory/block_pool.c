/* SPDX-License-Identifier: MIT
 * The pool's blocks: bins, cutting, growing together, and the chunks they lie in.
 */
#include "memory/block_pool.h"

#include <assert.h>

#include "base/error.h"
#include "base/logging.h"

#define SHARED_CHUNK_BYTES (2u << 20)
#define SWEPT_WITH_A_FREE 2 /* pending blocks looked at with every free, so that they do not pile up */

void rondo_pool_init(rondo_pool *pool, rondo_device *device, const rondo_allocator *allocator, size_t page_bytes,
                     rondo_allocation_kind kind) {
  const bool immediate = kind == RONDO_ALLOCATION_IMMEDIATE;
  *pool = (rondo_pool){.device = device, .allocator = allocator, .kind = kind, .page_bytes = page_bytes};
  pool->chunk_bytes = page_bytes > SHARED_CHUNK_BYTES ? page_bytes : SHARED_CHUNK_BYTES;
  pool->dedicated_from = immediate ? pool->chunk_bytes / 4 : SIZE_MAX;
}

void rondo_pool_deinit(rondo_pool *pool) {
  rondo_pool_sweep(pool);
  rondo_pool_trim_idle(pool, 0);
  rondo_chunks_destroy(rondo_pool_take_discarded(pool));
  assert(pool->chunks == NULL);
  while (pool->spare_fences != NULL) {
    rondo_fence *fence = pool->spare_fences;
    pool->spare_fences = fence->next;
    fence->event->ops->destroy(fence->event);
    rondo_release(pool->allocator, fence, 1, sizeof *fence);
  }
}

bool rondo_pool_round(size_t bytes, size_t *out) {
  return bytes <= PTRDIFF_MAX && rondo_checked_align(bytes, RONDO_BLOCK_ALIGNMENT, out);
}

/* Bins ------------------------------------------------------------------------------------------------------------ */

/* Four bins to a power of two: the two bits below the highest choose. */
static unsigned bin_of(size_t bytes) {
  const uint64_t units = bytes / RONDO_BLOCK_ALIGNMENT;
  const unsigned power = 63u - (unsigned)__builtin_clzll(units);
  const unsigned quarter = power >= 2 ? (unsigned)(units >> (power - 2)) & 3u : (unsigned)(units << (2 - power)) & 3u;
  return power * 4 + quarter;
}

static void bin_insert(rondo_bins *bins, rondo_block *block) {
  const unsigned bin = bin_of(block->bytes);
  block->bin_previous = NULL;
  block->bin_next = bins->heads[bin];
  if (block->bin_next != NULL) block->bin_next->bin_previous = block;
  bins->heads[bin] = block;
  bins->filled[bin / 64] |= UINT64_C(1) << (bin % 64);
}

static void bin_remove(rondo_bins *bins, rondo_block *block) {
  const unsigned bin = bin_of(block->bytes);
  if (block->bin_previous != NULL)
    block->bin_previous->bin_next = block->bin_next;
  else
    bins->heads[bin] = block->bin_next;
  if (block->bin_next != NULL) block->bin_next->bin_previous = block->bin_previous;
  if (bins->heads[bin] == NULL) bins->filled[bin / 64] &= ~(UINT64_C(1) << (bin % 64));
  block->bin_previous = block->bin_next = NULL;
}

/* The first bin from `bin` on that is not empty, RONDO_POOL_BINS past the last. */
static unsigned next_filled(const rondo_bins *bins, unsigned bin) {
  while (bin < RONDO_POOL_BINS) {
    const uint64_t rest = bins->filled[bin / 64] >> (bin % 64);
    if (rest != 0) return bin + (unsigned)__builtin_ctzll(rest);
    bin = (bin / 64 + 1) * 64;
  }
  return RONDO_POOL_BINS;
}

/* The smallest block of the first bin that has one of at least `bytes`; of `queue` alone when it is not NULL. */
static rondo_block *find_fit(const rondo_bins *bins, size_t bytes, const rondo_queue *queue) {
  for (unsigned bin = next_filled(bins, bin_of(bytes)); bin < RONDO_POOL_BINS; bin = next_filled(bins, bin + 1)) {
    rondo_block *best = NULL;
    for (rondo_block *block = bins->heads[bin]; block != NULL; block = block->bin_next) {
      if (block->bytes < bytes || (queue != NULL && block->fence->queue != queue)) continue;
      if (best == NULL || block->bytes < best->bytes) best = block;
      if (best->bytes == bytes) return best;
    }
    if (best != NULL) return best;
  }
  return NULL;
}

static rondo_bins *bins_of(rondo_block *block) {
  rondo_pool *pool = block->chunk->pool;
  return block->state == RONDO_BLOCK_FREE ? &pool->free : &pool->pending;
}

/* Idle chunks ----------------------------------------------------------------------------------------------------- */

static bool is_idle(const rondo_chunk *chunk) {
  return chunk->blocks->state == RONDO_BLOCK_FREE && chunk->blocks->next == NULL;
}

static void discard(rondo_chunk *chunk) {
  rondo_pool *pool = chunk->pool;
  bin_remove(&pool->free, chunk->blocks);
  if (chunk->previous != NULL)
    chunk->previous->next = chunk->next;
  else
    pool->chunks = chunk->next;
  if (chunk->next != NULL) chunk->next->previous = chunk->previous;
  if (pool->spare == chunk) pool->spare = NULL;
  pool->reserved -= chunk->bytes;
  chunk->next = pool->discarded;
  pool->discarded = chunk;
}

/* What the immediate pool does with a chunk that nobody uses any more. */
static void settle_idle(rondo_chunk *chunk) {
  rondo_pool *pool = chunk->pool;
  if (chunk->dedicated || (pool->spare != NULL && pool->spare != chunk))
    discard(chunk);
  else
    pool->spare = chunk;
}

void rondo_pool_trim_idle(rondo_pool *pool, uint64_t keep) {
  rondo_chunk *next;
  for (rondo_chunk *chunk = pool->chunks; chunk != NULL; chunk = next) {
    next = chunk->next;
    if (is_idle(chunk) && pool->reserved - chunk->bytes >= keep) discard(chunk);
  }
}

rondo_chunk *rondo_pool_take_discarded(rondo_pool *pool) {
  rondo_chunk *list = pool->discarded;
  pool->discarded = NULL;
  return list;
}

/* Blocks ---------------------------------------------------------------------------------------------------------- */

static void age_append(rondo_pool *pool, rondo_block *block) {
  block->age_previous = pool->newest;
  block->age_next = NULL;
  if (pool->newest != NULL)
    pool->newest->age_next = block;
  else
    pool->oldest = block;
  pool->newest = block;
}

static void age_remove(rondo_pool *pool, rondo_block *block) {
  if (block->age_previous != NULL)
    block->age_previous->age_next = block->age_next;
  else
    pool->oldest = block->age_next;
  if (block->age_next != NULL)
    block->age_next->age_previous = block->age_previous;
  else
    pool->newest = block->age_previous;
  block->age_previous = block->age_next = NULL;
}

/* Into and out of the lists of blocks that can be had. */
static void enlist(rondo_block *block) {
  rondo_pool *pool = block->chunk->pool;
  if (block->state == RONDO_BLOCK_PENDING) age_append(pool, block);
  bin_insert(bins_of(block), block);
}
static void delist(rondo_block *block) {
  rondo_pool *pool = block->chunk->pool;
  bin_remove(bins_of(block), block);
  if (block->state == RONDO_BLOCK_PENDING) age_remove(pool, block);
}

static void unlink_block(rondo_block *block) {
  if (block->previous != NULL)
    block->previous->next = block->next;
  else
    block->chunk->blocks = block->next;
  if (block->next != NULL) block->next->previous = block->previous;
}

/* Leaves `bytes` in the block and makes a block of the rest, in the same state. With no memory for that the block stays
 * whole, which wastes the rest while it is in use. */
static void cut(rondo_block *block, size_t bytes) {
  const rondo_pool *pool = block->chunk->pool;
  void *memory;
  if (block->bytes == bytes || rondo_allocate(pool->allocator, 1, sizeof *block, &memory) != RONDO_OK) return;
  rondo_block *rest = memory;
  rest->chunk = block->chunk;
  rest->offset = block->offset + bytes;
  rest->bytes = block->bytes - bytes;
  rest->state = block->state;
  rest->fence = block->fence;
  if (rest->fence != NULL) rest->fence->references++;
  rest->previous = block;
  rest->next = block->next;
  if (rest->next != NULL) rest->next->previous = rest;
  block->next = rest;
  block->bytes = bytes;
  enlist(rest);
}

/* Takes in the free block behind. */
static void absorb_next(rondo_block *block) {
  rondo_block *next = block->next;
  bin_remove(&block->chunk->pool->free, next);
  block->bytes += next->bytes;
  unlink_block(next);
  rondo_release(block->chunk->pool->allocator, next, 1, sizeof *next);
}

/* Puts a block that is in no bin among the free ones, grown together with its neighbours. */
static void make_free(rondo_block *block) {
  rondo_chunk *chunk = block->chunk;
  rondo_pool *pool = chunk->pool;
  block->state = RONDO_BLOCK_FREE;
  if (block->next != NULL && block->next->state == RONDO_BLOCK_FREE) absorb_next(block);
  rondo_block *previous = block->previous;
  if (previous != NULL && previous->state == RONDO_BLOCK_FREE) {
    bin_remove(&pool->free, previous);
    previous->bytes += block->bytes;
    unlink_block(block);
    rondo_release(pool->allocator, block, 1, sizeof *block);
    block = previous;
  }
  enlist(block);
  if (pool->kind == RONDO_ALLOCATION_IMMEDIATE && is_idle(chunk)) settle_idle(chunk);
}

static rondo_block *make_live(rondo_block *block, size_t rounded) {
  rondo_pool *pool = block->chunk->pool;
  delist(block);
  if (pool->spare == block->chunk) pool->spare = NULL;
  cut(block, rounded);
  if (block->fence != NULL) rondo_pool_release_fence(pool, block->fence);
  block->fence = NULL;
  block->state = RONDO_BLOCK_LIVE;
  block->allocation =
      (rondo_allocation){.address = block->chunk->base + block->offset, .bytes = block->bytes, .kind = pool->kind};
  pool->live++;
  pool->used += block->bytes;
  if (pool->used > pool->used_high) pool->used_high = pool->used;
  return block;
}

rondo_block *rondo_pool_take(rondo_pool *pool, const rondo_queue *queue, size_t rounded) {
  if (rounded > pool->dedicated_from) return NULL;
  rondo_block *block = queue == NULL ? NULL : find_fit(&pool->pending, rounded, queue);
  if (block == NULL) block = find_fit(&pool->free, rounded, NULL);
  if (block == NULL) {
    rondo_pool_sweep(pool);
    block = find_fit(&pool->free, rounded, NULL);
  }
  return block == NULL ? NULL : make_live(block, rounded);
}

static void try_finish(rondo_block *block) {
  rondo_pool *pool = block->chunk->pool;
  if (block->fence->event->ops->query(block->fence->event) != RONDO_OK) return;
  delist(block);
  rondo_pool_release_fence(pool, block->fence);
  block->fence = NULL;
  make_free(block);
}

/* Looks at up to `limit` pending blocks, the earliest freed first. */
static void sweep_some(rondo_pool *pool, size_t limit) {
  rondo_block *block = pool->oldest;
  for (; block != NULL && limit > 0; limit--) {
    rondo_block *next = block->age_next;
    try_finish(block);
    block = next;
  }
}

void rondo_pool_sweep(rondo_pool *pool) { sweep_some(pool, SIZE_MAX); }

void rondo_pool_give(rondo_block *block, rondo_fence *fence) {
  rondo_pool *pool = block->chunk->pool;
  assert(block->state == RONDO_BLOCK_LIVE);
  pool->live--;
  pool->used -= block->bytes;
  if (fence == NULL) {
    make_free(block);
    return;
  }
  block->state = RONDO_BLOCK_PENDING;
  block->fence = fence;
  enlist(block);
  sweep_some(pool, SWEPT_WITH_A_FREE);
}

/* Chunks ---------------------------------------------------------------------------------------------------------- */

/* Undoing has nobody to tell but the log; what could not be given back is lost to the process. */
static void complain(const char *what) {
  rondo_log(RONDO_LOG_ERROR, "memory", "%s failed, its address range is lost: %s", what, rondo_last_error()->message);
}

static rondo_status chunk_map(rondo_chunk *chunk) {
  rondo_device *device = chunk->pool->device;
  void *base;
  RONDO_TRY(device->ops->reserve(device, chunk->bytes, 0, &base));
  rondo_status status = device->ops->physical_create(device, chunk->bytes, &chunk->physical);
  if (status == RONDO_OK) {
    status = device->ops->map(device, base, chunk->physical);
    if (status != RONDO_OK) device->ops->physical_destroy(chunk->physical);
  }
  if (status == RONDO_OK)
    chunk->base = base;
  else if (device->ops->unreserve(device, base, chunk->bytes) != RONDO_OK)
    complain("giving back a chunk");
  return status;
}

rondo_status rondo_chunk_create(rondo_pool *pool, size_t rounded, rondo_chunk **out) {
  *out = NULL;
  const bool dedicated = rounded > pool->dedicated_from;
  size_t bytes;
  void *memory, *block_memory;
  if (!rondo_checked_align(rounded, dedicated ? pool->page_bytes : pool->chunk_bytes, &bytes))
    return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_BAD_SIZE, "%zu bytes do not fit the address space", rounded);
  RONDO_TRY(rondo_allocate(pool->allocator, 1, sizeof(rondo_chunk), &memory));
  rondo_chunk *chunk = memory;
  *chunk = (rondo_chunk){.pool = pool, .bytes = bytes, .dedicated = dedicated};
  rondo_status status = rondo_allocate(pool->allocator, 1, sizeof(rondo_block), &block_memory);
  if (status == RONDO_OK) {
    chunk->blocks = block_memory;
    *chunk->blocks = (rondo_block){.chunk = chunk, .bytes = bytes, .state = RONDO_BLOCK_FREE};
    status = chunk_map(chunk);
  }
  if (status != RONDO_OK) {
    rondo_release(pool->allocator, chunk->blocks, 1, sizeof(rondo_block));
    rondo_release(pool->allocator, chunk, 1, sizeof *chunk);
    return status;
  }
  *out = chunk;
  return RONDO_OK;
}

void rondo_chunk_destroy(rondo_chunk *chunk) {
  const rondo_pool *pool = chunk->pool;
  rondo_device *device = pool->device;
  rondo_status status = device->ops->unmap(device, chunk->base, chunk->bytes);
  if (status == RONDO_OK) status = device->ops->unreserve(device, chunk->base, chunk->bytes);
  if (status != RONDO_OK) complain("giving back a chunk");
  device->ops->physical_destroy(chunk->physical);
  rondo_release(pool->allocator, chunk->blocks, 1, sizeof *chunk->blocks);
  rondo_release(pool->allocator, chunk, 1, sizeof *chunk);
}

void rondo_chunks_destroy(rondo_chunk *list) {
  while (list != NULL) {
    rondo_chunk *chunk = list;
    list = chunk->next;
    rondo_chunk_destroy(chunk);
  }
}

rondo_block *rondo_pool_adopt(rondo_pool *pool, rondo_chunk *chunk, size_t rounded) {
  chunk->previous = NULL;
  chunk->next = pool->chunks;
  if (chunk->next != NULL) chunk->next->previous = chunk;
  pool->chunks = chunk;
  pool->reserved += chunk->bytes;
  if (pool->reserved > pool->reserved_high) pool->reserved_high = pool->reserved;
  enlist(chunk->blocks);
  return make_live(chunk->blocks, chunk->dedicated ? chunk->bytes : rounded);
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
  *out = NULL;
  void *memory;
  RONDO_TRY(rondo_allocate(pool->allocator, 1, sizeof(rondo_fence), &memory));
  rondo_fence *fence = memory;
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
