/* SPDX-License-Identifier: MIT
 * A pool of device memory: chunks from the driver, cut into blocks of multiples of 256 bytes. A device has one for
 * rondo_malloc, and for rondo_malloc_async a default one and those that users make.
 *
 * A block is live, free, or pending: freed in stream order by work that may still run. Who gets a pending block, in the
 * order of search of P1: the stream that freed it; everybody once the host has waited for the free, which makes it
 * free; streams that are ordered behind the free by events (rondo_order_knows); everybody when the free is found to be
 * done; and, when memory runs out, anybody who then waits for it. The last three can be switched off. A block that was
 * taken while pending keeps the fence of that free while it lives, because its memory may be in use until then.
 * Neighbours grow together when they are free; pending ones are joined when nothing else fits.
 *
 * Blocks stand in bins by size, four bins to a power of two, the pending ones of each slot apart, so that looking for
 * memory does not go through what others freed; the best fit is taken.
 * Chunks that nobody uses any more are discarded: in the immediate pool at once but for one, in stream-ordered pools
 * when they are trimmed. Whoever lets the lock go takes them along and destroys them.
 *
 * Threads: the caller holds the lock of the device's memory, except for rondo_chunk_create and rondo_chunks_destroy,
 * which call the driver and are called without it. Of the driver only event queries run under the lock.
 */
#ifndef RONDO_MEMORY_POOL_BLOCK_POOL_H
#define RONDO_MEMORY_POOL_BLOCK_POOL_H

#include <rondo/memory.h>

#include "device/device.h"
#include "memory/allocation_table.h"
#include "memory/pool/stream_order.h"

#define RONDO_BLOCK_ALIGNMENT 256
#define RONDO_POOL_BINS 256

/* Completes when what was queued before a free is done. Shared by the pieces of a block that was cut while pending. */
typedef struct rondo_fence {
  struct rondo_fence *next; /* in the list of spare ones */
  rondo_device_event *event;
  uint32_t slot;   /* of the stream that freed */
  uint64_t number; /* of the free */
  uint32_t references;
} rondo_fence;

typedef struct rondo_chunk rondo_chunk;

typedef enum rondo_block_state { RONDO_BLOCK_LIVE, RONDO_BLOCK_FREE, RONDO_BLOCK_PENDING } rondo_block_state;

/* Why a free block is free; joined blocks are free for the last of their reasons. */
typedef enum rondo_free_reason {
  RONDO_FREE_NEW,    /* never used */
  RONDO_FREE_WAITED, /* the host waited, or freed at once */
  RONDO_FREE_DONE    /* the free was found to be done */
} rondo_free_reason;

typedef struct rondo_block {
  rondo_allocation allocation; /* in the table while live */
  rondo_chunk *chunk;
  struct rondo_block *previous, *next;         /* neighbours in the chunk */
  struct rondo_block *bin_previous, *bin_next; /* in the bin, unless live */
  struct rondo_block *age_previous, *age_next; /* among the pending ones of its slot, by number */
  size_t offset, bytes;
  rondo_block_state state;
  rondo_free_reason reason;    /* free only */
  rondo_fence *fence;          /* of the free that is pending, or, live, of the free before; else NULL */
  uint64_t run;                /* live: that noted it, and which of its allocations it is (warm_up_log.h); 0: none */
  uint32_t run_item, run_slot; /* of the stream that allocated it there */
} rondo_block;

struct rondo_chunk {
  rondo_chunk *previous, *next;
  struct rondo_pool *pool; /* may be gone when a discarded chunk is destroyed */
  rondo_device *device;
  rondo_physical *physical;
  char *base;
  size_t bytes;
  rondo_block *blocks; /* the first */
  size_t used;         /* of the bytes, in live blocks */
  bool dedicated;      /* made for one allocation, and gone with it */
  uint32_t place;      /* in the index of the device's own ranges, which its owner keeps */
};

/* Heads of lists by size, and which are not empty. */
typedef struct rondo_bins {
  rondo_block *heads[RONDO_POOL_BINS];
  uint64_t filled[RONDO_POOL_BINS / 64];
} rondo_bins;

/* What is pending of the frees of one slot. */
typedef struct rondo_pending_list {
  rondo_block *oldest, *newest;
  rondo_bins bins;
} rondo_pending_list;

/* Bytes with their highest values. */
typedef struct rondo_usage {
  uint64_t used, used_high, reserved, reserved_high;
} rondo_usage;

/* How allocations were served, and how often the pool grew. */
typedef struct rondo_pool_counters {
  uint64_t same_stream, host_ordered, event_ordered, opportunistic, internal, chunks;
} rondo_pool_counters;

struct rondo_pool {
  rondo_device *device;
  const rondo_allocator *allocator;
  char *name; /* "" unless a user made it */
  rondo_allocation_kind kind;
  size_t page_bytes;
  size_t chunk_bytes;                          /* chunks are multiples of this */
  size_t dedicated_from;                       /* larger allocations get a chunk of their own; SIZE_MAX = none do */
  bool follow_events, opportunistic, internal; /* the policies */
  uint64_t release_threshold;
  _Atomic uint64_t peers; /* devices that may access its memory beside its own */
  rondo_chunk *chunks;
  rondo_chunk *spare;     /* immediate: the one shared chunk that is kept though nobody uses it */
  rondo_chunk *discarded; /* out of the pool, to be destroyed without the lock */
  rondo_bins free;
  RONDO_ARRAY(rondo_pending_list) by_slot;
  rondo_fence *spare_fences;
  rondo_usage usage;
  rondo_usage *total; /* of several pools; may be NULL */
  rondo_pool_counters counters;
  uint32_t live;
  uint32_t growing;        /* allocations that look for more memory without the lock: it stays for them */
  bool excess;             /* more than the threshold was reserved when a chunk became idle */
  bool destroyed;          /* by its user: goes when nothing of it is in use */
  struct rondo_pool *next; /* in the device's list */
};

void rondo_pool_init(rondo_pool *pool, rondo_device *device, const rondo_allocator *allocator, size_t page_bytes,
                     rondo_allocation_kind kind);
void rondo_pool_deinit(rondo_pool *pool); /* nothing is live, all frees are done; without the lock */

/* `bytes` as the pool counts them; false when that does not fit. */
bool rondo_pool_round(size_t bytes, size_t *out);

/* A live block for the stream (NULL: no stream order), or NULL when the pool must grow. */
rondo_block *rondo_pool_take(rondo_pool *pool, const rondo_stream_order *stream, size_t rounded);

/* When the pool cannot grow: a live block whose free the stream must wait for before it uses it, by its fence; NULL
 * when there is none, or the policy does not allow it. */
rondo_block *rondo_pool_take_unordered(rondo_pool *pool, size_t rounded);
/* It could not wait: the block is pending again, and was not taken. */
void rondo_pool_untake(rondo_block *block);

/* What to grow by: a chunk that is not in the pool yet, with one free block. */
RONDO_MUST_USE rondo_status rondo_chunk_create(rondo_pool *pool, size_t rounded, rondo_chunk **out);

/* Enters the chunk and takes `rounded` bytes of it. */
rondo_block *rondo_pool_adopt(rondo_pool *pool, rondo_chunk *chunk, size_t rounded);

/* Room for pending blocks of the slot: to be had before a free on its stream. */
RONDO_MUST_USE rondo_status rondo_pool_expect_slot(rondo_pool *pool, uint32_t slot);

/* Gives a live block back after the fence, of which the pool takes the caller's reference, or at once (NULL), which is
 * after the fence that it was taken behind: so as if it had not been taken. */
void rondo_pool_give(rondo_block *block, rondo_fence *fence);

/* Makes pending blocks free: those whose fences are complete; those of a slot that the host has waited for, up to a
 * number. */
void rondo_pool_sweep(rondo_pool *pool);
void rondo_pool_note_waited(rondo_pool *pool, uint32_t slot, uint64_t number);

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
