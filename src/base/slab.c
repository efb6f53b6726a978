/* SPDX-License-Identifier: MIT
 * Slabs. Sizes are rounded up to a step. Each chunk is larger than the one before, so a small object holds little
 * memory and a large one allocates rarely.
 */
#include "base/slab.h"

#include <assert.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ADDRESS_SANITIZER true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ADDRESS_SANITIZER true
#endif
#endif
#ifndef HAS_ADDRESS_SANITIZER
#define HAS_ADDRESS_SANITIZER false
#endif

bool rondo_slab_by_block = HAS_ADDRESS_SANITIZER;

enum { FIRST_CHUNK = 1 << 10, LARGEST_CHUNK = 1 << 18 };

struct rondo_slab_chunk {
  rondo_slab_chunk *older;
  size_t bytes;
};

struct rondo_slab_block {
  rondo_slab_block *next;
};

void rondo_slab_init(rondo_slab *slab, const rondo_allocator *from) {
  *slab = (rondo_slab){.from = *from, .chunk_bytes = FIRST_CHUNK};
}

static bool is_small(size_t bytes) { return !rondo_slab_by_block && bytes <= RONDO_SLAB_LARGEST; }

static size_t size_of(size_t bytes) { return (bytes - 1) / RONDO_SLAB_STEP; }

static bool add_chunk(rondo_slab *slab) {
  rondo_slab_chunk *chunk = slab->from.allocate(slab->from.self, slab->chunk_bytes, RONDO_SLAB_STEP);
  if (chunk == NULL) return false;
  *chunk = (rondo_slab_chunk){.older = slab->chunks, .bytes = slab->chunk_bytes};
  slab->chunks = chunk;
  slab->next = (unsigned char *)chunk + (sizeof *chunk + RONDO_SLAB_STEP - 1) / RONDO_SLAB_STEP * RONDO_SLAB_STEP;
  slab->end = (unsigned char *)chunk + slab->chunk_bytes;
  slab->held_bytes += slab->chunk_bytes;
  if (slab->chunk_bytes < LARGEST_CHUNK) slab->chunk_bytes *= 2;
  return true;
}

static void *allocate(void *self, size_t bytes, size_t alignment) {
  rondo_slab *slab = self;
  if (!is_small(bytes)) return slab->from.allocate(slab->from.self, bytes, alignment);
  assert(alignment <= RONDO_SLAB_STEP);
  const size_t size = size_of(bytes), rounded = (size + 1) * RONDO_SLAB_STEP;
  rondo_slab_block *released = slab->released[size];
  if (released != NULL) {
    slab->released[size] = released->next;
    return released;
  }
  if ((size_t)(slab->end - slab->next) < rounded && !add_chunk(slab)) return NULL;
  void *block = slab->next;
  slab->next += rounded;
  return block;
}

/* The size alone tells whether a block is in a chunk. */
static void release(void *self, void *pointer, size_t bytes) {
  rondo_slab *slab = self;
  if (!is_small(bytes)) {
    slab->from.release(slab->from.self, pointer, bytes);
    return;
  }
  rondo_slab_block *block = pointer;
  block->next = slab->released[size_of(bytes)];
  slab->released[size_of(bytes)] = block;
}

/* With rondo_slab_by_block there are no chunks, so every block comes here. */
rondo_status rondo_slab_take_slowly(rondo_slab *slab, size_t bytes, void **out) {
  const rondo_allocator own = rondo_slab_allocator(slab);
  return rondo_allocate(&own, 1, bytes, out);
}

rondo_allocator rondo_slab_allocator(rondo_slab *slab) {
  return (rondo_allocator){.self = slab, .allocate = allocate, .release = release};
}

#ifndef NDEBUG
static bool is_in_chunk(const rondo_slab *slab, const void *block) {
  const rondo_slab_chunk *chunk = slab->chunks;
  while (chunk != NULL && (uintptr_t)block - (uintptr_t)chunk >= chunk->bytes) chunk = chunk->older;
  return chunk != NULL && (uintptr_t)block % RONDO_SLAB_STEP == 0;
}
#endif

void rondo_slab_check(const rondo_slab *slab) {
#ifdef NDEBUG
  (void)slab;
#else
  uint64_t bytes = 0;
  for (const rondo_slab_chunk *chunk = slab->chunks; chunk != NULL; chunk = chunk->older) bytes += chunk->bytes;
  assert(bytes == slab->held_bytes);
  assert(slab->next <= slab->end && (slab->chunks == NULL) == (slab->end == NULL));
  assert(slab->chunks == NULL || slab->end == (const unsigned char *)slab->chunks + slab->chunks->bytes);
  for (size_t i = 0; i < RONDO_SLAB_SIZES; i++)
    for (const rondo_slab_block *block = slab->released[i]; block != NULL; block = block->next)
      assert(is_in_chunk(slab, block));
#endif
}

void rondo_slab_free(rondo_slab *slab) {
  rondo_slab_check(slab);
  while (slab->chunks != NULL) {
    rondo_slab_chunk *chunk = slab->chunks;
    slab->chunks = chunk->older;
    slab->from.release(slab->from.self, chunk, chunk->bytes);
  }
  rondo_slab_init(slab, &slab->from);
}
