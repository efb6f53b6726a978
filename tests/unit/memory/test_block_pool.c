/* SPDX-License-Identifier: MIT
 * The pool of blocks, through internal functions: who gets freed memory and when, how blocks are split and merged,
 * which chunks are freed, and random use compared with a model (GM-19).
 */
#define _GNU_SOURCE
#include "memory/pool/block_pool.h"

#include "fault/fake_driver.h"
#include "memory/memory_check.h"
#include "support/rondo_test.h"
#include "support/test_assertion.h"

typedef struct fixture {
  rondo_device *device;
  rondo_allocator allocator;
  rondo_order_table orders;
  rondo_stream_order streams[2];
  rondo_pool pool;
} fixture;

static fixture *make(rondo_allocation_kind kind) {
  fixture *self = calloc(1, sizeof *self);
  self->device = fake_open(NULL);
  self->allocator = self->device->allocator;
  rondo_pool_init(&self->pool, self->device, &self->allocator, FAKE_PAGE, kind);
  for (int i = 0; i < 2; i++) {
    assert_ok(self->device->ops->queue_create(self->device, "", NULL, &self->streams[i].queue));
    assert_ok(rondo_order_join(&self->allocator, &self->orders, &self->streams[i]));
    assert_ok(rondo_pool_expect_slot(&self->pool, self->streams[i].slot));
  }
  return self;
}

static void destroy(fixture *self) {
  fake_of(self->device)->stalled = false;
  rondo_pool_deinit(&self->pool);
  for (int i = 0; i < 2; i++) {
    assert_ok(self->streams[i].queue->ops->destroy(self->streams[i].queue));
    rondo_order_leave(&self->orders, &self->streams[i]);
  }
  rondo_array_free(&self->allocator, &self->orders);
  assert_int_equal(fake_close(self->device), 0);
  free(self);
}

static rondo_block *take(fixture *self, int queue, size_t bytes) {
  size_t rounded;
  assert_true(rondo_pool_round(bytes, &rounded));
  rondo_block *block = rondo_pool_take(&self->pool, queue < 0 ? NULL : &self->streams[queue], rounded);
  if (block == NULL) {
    rondo_chunk *chunk;
    assert_ok(rondo_chunk_create(&self->pool, rounded, &chunk));
    block = rondo_pool_adopt(&self->pool, chunk, rounded);
  }
  rondo_pool_check(&self->pool);
  return block;
}

static void give(fixture *self, rondo_block *block, int queue) {
  rondo_fence *fence = NULL;
  if (queue >= 0) {
    fence = rondo_pool_spare_fence(&self->pool);
    if (fence == NULL) assert_ok(rondo_fence_create(&self->pool, &fence));
    rondo_stream_order *stream = &self->streams[queue];
    assert_ok(stream->queue->ops->record(stream->queue, fence->event));
    fence->slot = stream->slot;
    fence->number = rondo_order_number(&self->orders, stream);
  }
  rondo_pool_free(block, fence);
  rondo_pool_check(&self->pool);
  rondo_chunks_destroy(rondo_pool_take_discarded(&self->pool));
}

/* GM-19: memory freed on a stream is available to that stream immediately, and to another one when the free is
 * complete. */
UNIT_TEST(test_gm19_who_gets_freed_memory) {
  fixture *self = make(RONDO_ALLOCATION_STREAM_ORDERED);
  fake_of(self->device)->stalled = true;
  rondo_block *first = take(self, 0, 1 << 20);
  char *address = first->allocation.address;
  give(self, first, 0);
  rondo_block *other = take(self, 1, 1 << 20);
  assert_ptr_not_equal(other->allocation.address, address);
  rondo_block *same = take(self, 0, 1 << 20);
  assert_ptr_equal(same->allocation.address, address);
  give(self, same, 0);
  fake_of(self->device)->stalled = false;
  rondo_pool_sweep(&self->pool);
  rondo_block *later = take(self, 1, 1 << 20);
  assert_ptr_equal(later->allocation.address, address);
  give(self, later, -1);
  give(self, other, -1);
  assert_int_equal(self->pool.figures.reserved, 2 << 20);
  destroy(self);
}

/* A pending block that is cut keeps its fence for the rest. */
UNIT_TEST(test_cutting_a_pending_block) {
  fixture *self = make(RONDO_ALLOCATION_STREAM_ORDERED);
  fake_of(self->device)->stalled = true;
  rondo_block *whole = take(self, 0, 2 << 20);
  char *address = whole->allocation.address;
  give(self, whole, 0);
  rondo_block *part = take(self, 0, 1000);
  assert_ptr_equal(part->allocation.address, address);
  assert_int_equal(part->bytes, 1024);
  rondo_block *foreign = take(self, 1, 1000);
  assert_true(foreign->allocation.address < address || foreign->allocation.address >= address + (2 << 20));
  rondo_block *rest = take(self, 0, (2 << 20) - 1024);
  assert_ptr_equal(rest->allocation.address, address + 1024);
  give(self, part, 0);
  give(self, rest, 0);
  give(self, foreign, -1);
  destroy(self);
}

/* Free neighbours are joined, in whatever order they were freed. */
UNIT_TEST(test_neighbours_grow_together) {
  fixture *self = make(RONDO_ALLOCATION_STREAM_ORDERED);
  for (int order = 0; order < 6; order++) {
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    rondo_block *blocks[3];
    for (int i = 0; i < 3; i++) blocks[i] = take(self, 0, 600 << 10);
    for (int i = 0; i < 3; i++) give(self, blocks[orders[order][i]], -1);
    rondo_block *all = take(self, 0, 2 << 20);
    assert_int_equal(self->pool.figures.reserved, 2 << 20);
    give(self, all, -1);
  }
  destroy(self);
}

/* Freeing returns memory of rondo_malloc to the system; one shared chunk is kept. */
UNIT_TEST(test_immediate_chunks_go_back) {
  fixture *self = make(RONDO_ALLOCATION_IMMEDIATE);
  rondo_block *large = take(self, -1, (512 << 10) + 1), *small = take(self, -1, 1);
  assert_true(large->chunk->dedicated && !small->chunk->dedicated);
  assert_int_equal(large->bytes, (512 << 10) + FAKE_PAGE);
  give(self, large, -1);
  assert_int_equal(self->pool.figures.reserved, 2 << 20);
  rondo_block *filling[6];
  for (int i = 0; i < 6; i++) filling[i] = take(self, -1, 512 << 10);
  assert_int_equal(self->pool.figures.reserved, 4 << 20);
  for (int i = 0; i < 6; i++) give(self, filling[i], -1);
  give(self, small, -1);
  assert_int_equal(self->pool.figures.reserved, 2 << 20);
  assert_int_equal(fake_of(self->device)->physicals, 1);
  destroy(self);
}

/* GM-19: trimming keeps the requested bytes and the memory in use. */
UNIT_TEST(test_gm19_trim_keeps_what_is_asked) {
  fixture *self = make(RONDO_ALLOCATION_STREAM_ORDERED);
  rondo_block *blocks[4];
  for (int i = 0; i < 4; i++) blocks[i] = take(self, 0, 2 << 20);
  for (int i = 0; i < 3; i++) give(self, blocks[i], 0);
  rondo_pool_sweep(&self->pool);
  rondo_pool_trim_idle(&self->pool, 5 << 20);
  rondo_chunks_destroy(rondo_pool_take_discarded(&self->pool));
  assert_int_equal(self->pool.figures.reserved, 6 << 20);
  rondo_pool_trim_idle(&self->pool, 0);
  rondo_chunks_destroy(rondo_pool_take_discarded(&self->pool));
  assert_int_equal(self->pool.figures.reserved, 2 << 20);
  assert_int_equal(self->pool.figures.reserved_high, 8 << 20);
  give(self, blocks[3], -1);
  destroy(self);
}

/* Random use: live blocks never overlap, and the statistics equal a separate count. */
UNIT_TEST(test_random_use) {
  enum { MOST = 300, STEPS = 20000 };
  fixture *self = make(RONDO_ALLOCATION_STREAM_ORDERED);
  rondo_block *live[MOST];
  size_t count = 0;
  uint64_t random = 7, used = 0;
  for (int step = 0; step < STEPS; step++) {
    fake_of(self->device)->stalled = test_random_below(&random, 4) != 0;
    const int queue = (int)test_random_below(&random, 2);
    if (count < MOST && (count == 0 || test_random_below(&random, 2) == 0)) {
      rondo_block *block = take(self, queue, 1 + test_random_below(&random, 200000));
      memset(block->allocation.address, (int)count, 1);
      for (size_t i = 0; i < count; i++)
        assert_true(block->allocation.address >= live[i]->allocation.address + live[i]->bytes ||
                    live[i]->allocation.address >= block->allocation.address + block->bytes);
      used += block->bytes;
      live[count++] = block;
    } else {
      const size_t at = test_random_below(&random, (uint32_t)count);
      used -= live[at]->bytes;
      give(self, live[at], test_random_below(&random, 3) == 0 ? -1 : queue);
      live[at] = live[--count];
    }
    assert_int_equal(self->pool.figures.used, used);
    assert_int_equal(self->pool.figures.live_allocations, count);
  }
  fake_of(self->device)->stalled = false;
  while (count > 0) give(self, live[--count], -1);
  rondo_pool_sweep(&self->pool);
  rondo_pool_trim_idle(&self->pool, 0);
  rondo_chunks_destroy(rondo_pool_take_discarded(&self->pool));
  assert_int_equal(self->pool.figures.reserved, 0);
  destroy(self);
}

static void check_wrong_figures(void *pool) {
  ((rondo_pool *)pool)->figures.used++;
  rondo_pool_check(pool);
}

static void check_a_gap(void *pool) {
  ((rondo_pool *)pool)->chunks->blocks->bytes--;
  rondo_pool_check(pool);
}

UNIT_TEST(test_the_check_finds_faults) {
  fixture *self = make(RONDO_ALLOCATION_STREAM_ORDERED);
  rondo_block *block = take(self, 0, 1 << 20);
  test_assertion_fails(check_wrong_figures, &self->pool, "pool->figures.used == used");
  test_assertion_fails(check_a_gap, &self->pool, "block->offset == offset");
  give(self, block, -1);
  destroy(self);
}
