/* SPDX-License-Identifier: MIT
 * A pool of device memory: chunks from the driver, cut into blocks of multiples of 256 bytes. A device has two, one for
 * rondo_malloc and one for rondo_malloc_async; they differ in what they do with chunks that nobody uses.
 *
 * A block is live, free, or pending: freed in stream order by work that may still run. A pending block can be had at
 * once by the queue that freed it, because what it queues next runs later; everybody else gets it when the fence of
 * that free is complete. Neighbours grow together when they are free, not while they are pending.
 *
 * Blocks stand in bins by size, four bins to a power of two; the best fit of the first bin that has one is taken.
 * Chunks that nobody uses any more are discarded: in the immediate pool at once but for one, in the stream-ordered pool
 * when it is trimmed. Whoever lets the lock go takes them along and destroys them.
 *
 * Threads: the caller holds the lock of the device's memory, except for rondo_chunk_create and rondo_chunk_destroy,
 * which call the driver and are called without it. Of the driver only event queries run under the lock.
 */
#ifndef RONDO_MEMORY_BLOCK_POOL_H
#define RONDO_MEMORY_BLOCK_POOL_H

#include "device/device.h"
#include "memory/allocation_table.h"

#define RONDO_BLOCK_ALIGNMENT 256
#define RONDO_POOL_BINS 256

/* Completes when what was queued before a free is done. Shared by the pieces of a block that was cut while pending. */
typedef struct rondo_fence {
  struct rondo_fence *next; /* in the list of spare ones */
  rondo_device_event *event;
  rondo_queue *queue; /* identity only: a destroyed queue's work is done, and so is its fence */
  uint32_t references;
} rondo_fence;

typedef struct rondo_chunk rondo_chunk;

typedef enum rondo_block_state { RONDO_BLOCK_LIVE, RONDO_BLOCK_FREE, RONDO_BLOCK_PENDING } rondo_block_state;

typedef struct rondo_block {
  rondo_allocation allocation; /* in the table while live */
  rondo_chunk *chunk;
  struct rondo_block *previous, *next;         /* neighbours in the chunk */
  struct rondo_block *bin_previous, *bin_next; /* in the bin, unless live */
  struct rondo_block *age_previous, *age_next; /* among the pending ones, the earliest freed first */
  size_t offset, bytes;
  rondo_block_state state;
  rondo_fence *fence; /* pending only */
} rondo_block;

struct rondo_chunk {
  rondo_chunk *previous, *next;
  struct rondo_pool *pool;
  rondo_physical *physical;
  char *base;
  size_t bytes;
  rondo_block *blocks; /* the first */
  bool dedicated;      /* made for one allocation, and gone with it */
};

/* Heads of lists by size, and which are not empty. */
typedef struct rondo_bins {
  rondo_block *heads[RONDO_POOL_BINS];
  uint64_t filled[RONDO_POOL_BINS / 64];
} rondo_bins;

typedef struct rondo_pool {
  rondo_device *device;
  const rondo_allocator *allocator;
  rondo_allocation_kind kind;
  size_t page_bytes;
  size_t chunk_bytes;    /* chunks are multiples of this */
  size_t dedicated_from; /* larger allocations get a chunk of their own; SIZE_MAX = none do */
  rondo_chunk *chunks;
  rondo_chunk *spare;     /* immediate: the one shared chunk that is kept though nobody uses it */
  rondo_chunk *discarded; /* out of the pool, to be destroyed without the lock */
  rondo_bins free, pending;
  rondo_block *oldest, *newest; /* of the pending ones */
  rondo_fence *spare_fences;
  uint64_t used, used_high, reserved, reserved_high;
  uint32_t live;
} rondo_pool;

void rondo_pool_init(rondo_pool *pool, rondo_device *device, const rondo_allocator *allocator, size_t page_bytes,
                     rondo_allocation_kind kind);
void rondo_pool_deinit(rondo_pool *pool); /* nothing is live; without the lock */

/* `bytes` as the pool counts them; false when that does not fit. */
bool rondo_pool_round(size_t bytes, size_t *out);

/* A live block for `queue` (NULL: no stream order, fences count), or NULL when the pool must grow. */
rondo_block *rondo_pool_take(rondo_pool *pool, const rondo_queue *queue, size_t rounded);

/* What to grow by: a chunk that is not in the pool yet, with one free block. */
RONDO_MUST_USE rondo_status rondo_chunk_create(rondo_pool *pool, size_t rounded, rondo_chunk **out);
void rondo_chunk_destroy(rondo_chunk *chunk);

/* Enters the chunk and takes `rounded` bytes of it. */
rondo_block *rondo_pool_adopt(rondo_pool *pool, rondo_chunk *chunk, size_t rounded);

/* Gives a live block back, at once or after its fence, of which the pool takes the caller's reference. */
void rondo_pool_give(rondo_block *block, rondo_fence *fence);

/* Makes pending blocks free whose fences are complete. */
void rondo_pool_sweep(rondo_pool *pool);

/* Discards chunks that are free as a whole while at least `keep` bytes stay reserved. */
void rondo_pool_trim_idle(rondo_pool *pool, uint64_t keep);

/* The discarded chunks, a list by `next`; no longer the pool's. */
rondo_chunk *rondo_pool_take_discarded(rondo_pool *pool);
void rondo_chunks_destroy(rondo_chunk *list);

/* Fences. A spare one or NULL; making one calls the driver, without the lock. */
rondo_fence *rondo_pool_spare_fence(rondo_pool *pool);
RONDO_MUST_USE rondo_status rondo_fence_create(rondo_pool *pool, rondo_fence **out);
void rondo_pool_release_fence(rondo_pool *pool, rondo_fence *fence);

#endif
