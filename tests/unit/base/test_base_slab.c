/* SPDX-License-Identifier: MIT
 * Slabs: blocks of every size keep what is written to them; there are few chunks, and all are freed.
 */
#include <string.h>

#include "base/slab.h"
#include "support/rondo_test.h"

enum { BLOCKS = 600 };

typedef struct block {
  unsigned char *pointer;
  size_t bytes;
} block;

static void fill(const block *of, unsigned char value) { memset(of->pointer, value, of->bytes); }

static void assert_filled(const block *of, unsigned char value) {
  for (size_t i = 0; i < of->bytes; i++) assert_int_equal(of->pointer[i], value);
}

static block take(const rondo_allocator *allocator, size_t bytes) {
  void *pointer;
  assert_ok(rondo_allocate(allocator, 1, bytes, &pointer));
  assert_int_equal((uintptr_t)pointer % RONDO_SLAB_STEP, 0);
  const block taken = {pointer, bytes};
  assert_filled(&taken, 0);
  return taken;
}

UNIT_TEST(test_blocks_of_all_sizes_lie_apart) {
  rondo_slab slab;
  const rondo_allocator libc = rondo_allocator_default();
  rondo_slab_init(&slab, &libc);
  const rondo_allocator allocator = rondo_slab_allocator(&slab);
  block blocks[BLOCKS];
  for (size_t i = 0; i < BLOCKS; i++) blocks[i] = take(&allocator, i + 1);
  for (size_t i = 0; i < BLOCKS; i++) fill(&blocks[i], (unsigned char)(i % 251));
  for (size_t i = 0; i < BLOCKS; i += 2) {
    assert_filled(&blocks[i], (unsigned char)(i % 251));
    rondo_release(&allocator, blocks[i].pointer, 1, blocks[i].bytes);
    blocks[i] = take(&allocator, i + 1);
    fill(&blocks[i], (unsigned char)(i % 251));
  }
  for (size_t i = 0; i < BLOCKS; i++) assert_filled(&blocks[i], (unsigned char)(i % 251));
  for (size_t i = 0; i < BLOCKS; i++) rondo_release(&allocator, blocks[i].pointer, 1, blocks[i].bytes);
  rondo_slab_check(&slab);
  rondo_slab_free(&slab);
}

ALLOCATOR_TEST(test_small_blocks_share_chunks) {
  rondo_slab slab;
  rondo_slab_init(&slab, &counting->table);
  assert_int_equal(counting->calls, 0);
  const rondo_allocator allocator = rondo_slab_allocator(&slab);
  block blocks[200];
  for (size_t i = 0; i < 200; i++) blocks[i] = take(&allocator, 40);
  for (size_t round = 0; round < 50; round++) {
    for (size_t i = 0; i < 200; i++) rondo_release(&allocator, blocks[i].pointer, 1, blocks[i].bytes);
    for (size_t i = 0; i < 200; i++) blocks[i] = take(&allocator, 33 + (i + round) % 16); /* one step of sizes */
  }
  if (slab.held_bytes > 0) { /* else a sanitizer watches each block */
    assert_true(counting->calls < 10);
    assert_true(slab.held_bytes < 40 * 1024);
  }
  rondo_slab_check(&slab);
  for (size_t i = 0; i < 200; i++) rondo_release(&allocator, blocks[i].pointer, 1, blocks[i].bytes);
  rondo_slab_check(&slab);
  rondo_slab_free(&slab);
}

ALLOCATOR_TEST(test_large_blocks_are_the_other_allocators) {
  rondo_slab slab;
  rondo_slab_init(&slab, &counting->table);
  const rondo_allocator allocator = rondo_slab_allocator(&slab);
  const block large = take(&allocator, RONDO_SLAB_LARGEST + 1);
  assert_int_equal(counting->live_bytes, RONDO_SLAB_LARGEST + 1);
  rondo_release(&allocator, large.pointer, 1, large.bytes);
  assert_int_equal(counting->live, 0);
  rondo_slab_free(&slab);
}

ALLOCATOR_TEST(test_a_failure_leaves_it_usable) {
  atomic_store(&counting->fail_at, 1);
  rondo_slab slab;
  rondo_slab_init(&slab, &counting->table);
  const rondo_allocator allocator = rondo_slab_allocator(&slab);
  void *pointer;
  assert_int_equal(rondo_allocate(&allocator, 1, 24, &pointer), RONDO_OUT_OF_MEMORY);
  assert_null(pointer);
  const block taken = take(&allocator, 24);
  rondo_release(&allocator, taken.pointer, 1, taken.bytes);
  rondo_slab_free(&slab);
}
