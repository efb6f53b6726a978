/* SPDX-License-Identifier: MIT
 * A slab: small blocks of host memory for one object that makes many of them and frees most at its end, as a graph does
 * with its nodes. Blocks are cut from chunks, which come from a parent allocator and are released to it together. A
 * block that is released earlier is reused for the same size. Larger blocks come directly from the parent allocator and
 * must be released. Small blocks are aligned to 16. Not thread-safe: the owner synchronizes.
 *
 * J. Bonwick, "The Slab Allocator: An Object-Caching Kernel Memory Allocator", USENIX Summer 1994.
 */
#ifndef RONDO_BASE_SLAB_H
#define RONDO_BASE_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/allocation.h"

enum { RONDO_SLAB_STEP = 16, RONDO_SLAB_LARGEST = 512, RONDO_SLAB_SIZES = RONDO_SLAB_LARGEST / RONDO_SLAB_STEP };

typedef struct rondo_slab_chunk rondo_slab_chunk;
typedef struct rondo_slab_block rondo_slab_block;

typedef struct rondo_slab {
  rondo_allocator from;
  rondo_slab_chunk *chunks;
  unsigned char *next, *end; /* the free part of the newest chunk */
  size_t chunk_bytes;        /* of the next chunk */
  uint64_t held_bytes;       /* in chunks */
  rondo_slab_block *released[RONDO_SLAB_SIZES];
} rondo_slab;

/* For tests; set it only while no slab exists. Each block comes from the parent allocator, so each allocation can be
 * made to fail. Always true under AddressSanitizer, which then checks the bounds of each block. */
extern bool rondo_slab_by_block;

/* Allocates nothing. */
void rondo_slab_init(rondo_slab *slab, const rondo_allocator *from);

/* An allocator that uses the slab, which must not move. */
rondo_allocator rondo_slab_allocator(rondo_slab *slab);

RONDO_MUST_USE rondo_status rondo_slab_take_slowly(rondo_slab *slab, size_t bytes, void **out);

/* A block, not zeroed; `bytes` is not 0. In most cases a small block is cut from the chunk inline. */
RONDO_MUST_USE static inline rondo_status rondo_slab_take(rondo_slab *slab, size_t bytes, void **out) {
  const size_t size = (bytes - 1) / RONDO_SLAB_STEP, rounded = (size + 1) * RONDO_SLAB_STEP;
  if (size >= RONDO_SLAB_SIZES || slab->released[size] != NULL || (size_t)(slab->end - slab->next) < rounded)
    return rondo_slab_take_slowly(slab, bytes, out);
  *out = slab->next;
  slab->next += rounded;
  return RONDO_OK;
}

/* Asserts the invariant: the free part is in the newest chunk, released blocks are in chunks, and the bytes add up. */
void rondo_slab_check(const rondo_slab *slab);

/* Releases all chunks, and with them the small blocks that were not released. */
void rondo_slab_free(rondo_slab *slab);

#endif
