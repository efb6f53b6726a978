/* SPDX-License-Identifier: MIT
 * A pool of device memory: chunks from the driver, cut into blocks of multiples of 256 bytes. A device has one pool for
 * rondo_malloc (the immediate pool), and for rondo_malloc_async a default pool and those that users create.
 *
 * A block is live, free, or pending: freed in stream order while work that uses it may still run. A pending block can
 * be reused by these streams, in this order (P1): the stream that freed it; any stream, once the host has waited for
 * the free, which makes the block free; streams that are ordered after the free by events (rondo_order_knows); any
 * stream, once the free is found to be complete; and, when memory runs out, any stream that first waits for the free.
 * Policies can disable the last three. A block that was reused while pending keeps the fence of that free, because its
 * memory may still be in use. Adjacent free blocks are joined; adjacent pending ones only when nothing else fits.
 *
 * Blocks are in bins by size, four bins for each power of two, with separate bins for the pending blocks of each slot.
 * The best fit is taken. An unused chunk is discarded: immediately in the immediate pool, which keeps one; by a trim in
 * stream-ordered pools. The caller takes discarded chunks and destroys them after it has released the lock.
 *
 * Threads: the caller holds the lock of the device's memory, except for rondo_chunk_create and rondo_chunks_destroy,
 * which call the driver. Under the lock, only events are queried.
 */
#ifndef RONDO_MEMORY_POOL_BLOCK_POOL_H
#define RONDO_MEMORY_POOL_BLOCK_POOL_H

#include <rondo/memory.h>

#include "device/device.h"
#include "memory/allocation_table.h"
#include "memory/pool/stream_order.h"

#define RONDO_BLOCK_ALIGNMENT 256
#define RONDO_POOL_BINS 256

/* Completes when the work before a free is complete. The parts of a block that was cut while pending share it. */
typedef struct rondo_fence {
  struct rondo_fence *next; /* in the list of spare ones */
  rondo_device_event *event;
  uint32_t slot;   /* of the stream that freed */
  uint64_t number; /* of the free */
  uint32_t references;
} rondo_fence;

typedef struct rondo_chunk rondo_chunk;

typedef enum rondo_block_state { RONDO_BLOCK_LIVE, RONDO_BLOCK_FREE, RONDO_BLOCK_PENDING } rondo_block_state;

/* Why a free block is free. A joined block has the highest reason of its parts. */
typedef enum rondo_free_reason {
  RONDO_FREE_NEW,    /* never used */
  RONDO_FREE_WAITED, /* the host waited for the free, or freed immediately */
  RONDO_FREE_DONE    /* the free was found to be complete */
} rondo_free_reason;

typedef struct rondo_block {
  rondo_allocation allocation; /* in the table while live */
  rondo_chunk *chunk;
  struct rondo_block *previous, *next;         /* neighbours in the chunk */
  struct rondo_block *bin_previous, *bin_next; /* in the bin, unless live */
  struct rondo_block *age_previous, *age_next; /* among the pending blocks of its slot, by number */
  size_t offset, bytes;
  rondo_block_state state;
  rondo_free_reason reason;    /* free blocks only */
  rondo_fence *fence;          /* pending: of its free; live: of the previous free, or NULL; free: NULL */
  uint64_t run;                /* live: the warm-up run that logged it (warm_up_log.h); 0: none */
  uint32_t run_item, run_slot; /* its index in that run, and the slot of the stream that allocated it */
} rondo_block;

struct rondo_chunk {
  rondo_chunk *next, **link;
  struct rondo_pool *pool; /* may be freed before a discarded chunk is destroyed */
  rondo_device *device;
  rondo_physical *physical;
  char *base;
  size_t bytes;
  rondo_block *blocks; /* the first */
  size_t used;         /* bytes in live blocks */
  bool dedicated;      /* created for one allocation, and discarded with it */
  uint32_t index_node; /* in the index of the device's own ranges */
};

/* Lists of blocks by size, and a bit for each list that is not empty. */
typedef struct rondo_bins {
  rondo_block *heads[RONDO_POOL_BINS];
  uint64_t filled[RONDO_POOL_BINS / 64];
} rondo_bins;

/* The pending blocks of one slot. */
typedef struct rondo_pending_list {
  rondo_block *oldest, *newest;
  rondo_bins bins;
} rondo_pending_list;

struct rondo_pool {
  rondo_device *device;
  const rondo_allocator *allocator;
  char *name; /* NULL or "" unless a user named it */
  rondo_allocation_kind kind;
  size_t page_bytes;
  size_t chunk_bytes;                              /* chunks are multiples of this */
  size_t dedicated_from;                           /* larger allocations get a dedicated chunk; SIZE_MAX: never */
  uint64_t follow_events, opportunistic, internal; /* the policies, 0 or 1 */
  uint64_t release_threshold;
  _Atomic uint64_t peers; /* other devices that may access its memory */
  rondo_chunk *chunks;
  rondo_chunk *spare;     /* immediate: the unused chunk that is kept */
  rondo_chunk *discarded; /* to be destroyed after the lock is released */
  rondo_bins free;
  RONDO_ARRAY(rondo_pending_list) by_slot;
  rondo_fence *spare_fences;
  rondo_pool_statistics figures;
  rondo_pool_statistics *total; /* bytes of several pools; may be NULL */
  uint32_t growing;             /* allocations that are growing the pool without the lock */
  bool excess;                  /* more than the threshold was reserved when a chunk became unused */
  bool destroyed;               /* by its user; freed when none of its memory is in use */
  struct rondo_pool *next;      /* in the device's list */
};

void rondo_pool_init(rondo_pool *pool, rondo_device *device, const rondo_allocator *allocator, size_t page_bytes,
                     rondo_allocation_kind kind);
/* No block is live and all frees are complete. Without the lock. */
void rondo_pool_deinit(rondo_pool *pool);

/* Rounds up to a multiple of 256; false when the result is too large. */
bool rondo_pool_round(size_t bytes, size_t *out);

/* The same for a size that was rounded successfully before. */
size_t rondo_pool_rounded(size_t bytes);

/* Takes a block, which becomes live, for the stream (NULL: not in stream order). NULL when the pool has to grow. */
rondo_block *rondo_pool_take(rondo_pool *pool, const rondo_stream_order *stream, size_t rounded);

/* When the pool cannot grow: takes a block that the stream may use only after it has waited for the block's fence. NULL
 * when there is none, or the policy forbids it. */
rondo_block *rondo_pool_take_unordered(rondo_pool *pool, size_t rounded);
/* Undoes that if the stream could not wait: the block is pending again. */
void rondo_pool_untake(rondo_block *block);

/* Creates a chunk with one free block; it is not in the pool yet. */
RONDO_MUST_USE rondo_status rondo_chunk_create(rondo_pool *pool, size_t rounded, rondo_chunk **out);

/* Adds the chunk to the pool and takes `rounded` bytes of it. */
rondo_block *rondo_pool_adopt(rondo_pool *pool, rondo_chunk *chunk, size_t rounded);

/* Allocates the list of pending blocks of a slot. Required before a free on its stream. */
RONDO_MUST_USE rondo_status rondo_pool_expect_slot(rondo_pool *pool, uint32_t slot);

/* Frees a live block after the fence, whose reference passes to the pool. NULL frees it immediately, or after the fence
 * that the block still has. */
void rondo_pool_free(rondo_block *block, rondo_fence *fence);

/* Makes pending blocks free: sweep those whose fences are complete; note_waited those of a slot up to the number of the
 * free for which the host has waited. */
void rondo_pool_sweep(rondo_pool *pool);
void rondo_pool_note_waited(rondo_pool *pool, uint32_t slot, uint64_t number);

/* Discards unused chunks while at least `keep` bytes stay reserved. */
void rondo_pool_trim_idle(rondo_pool *pool, uint64_t keep);

/* Takes the discarded chunks out of the pool, as a list by `next`. */
rondo_chunk *rondo_pool_take_discarded(rondo_pool *pool);
void rondo_chunks_destroy(rondo_chunk *list);

/* spare_fence returns an unused fence or NULL. fence_create makes one; it calls the driver, so without the lock. */
rondo_fence *rondo_pool_spare_fence(rondo_pool *pool);
RONDO_MUST_USE rondo_status rondo_fence_create(rondo_pool *pool, rondo_fence **out);
void rondo_pool_release_fence(rondo_pool *pool, rondo_fence *fence);

#endif
