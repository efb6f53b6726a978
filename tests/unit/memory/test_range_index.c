/* SPDX-License-Identifier: MIT
 * The index of ranges: a lookup finds what a linear search finds, with and without the lock. Readers that run during a
 * change see the state before or after it, never a mixture. Without memory for the index, lookups are slower but right.
 */
#include "memory/range_index.h"

#include "support/rondo_test.h"

enum { COUNT = 400, STEPS = 6000, SPAN = 4000 };

typedef struct range {
  uintptr_t begin, end;
  uint32_t number;
  bool entered;
} range;

/* The highest end of the ranges that contain the address; 0 when none does. */
static uintptr_t scan(const range *ranges, uintptr_t address, size_t *out_count) {
  uintptr_t farthest = 0;
  *out_count = 0;
  for (size_t i = 0; i < COUNT; i++) {
    const range *at = &ranges[i];
    if (!at->entered || at->begin > address || at->end <= address) continue;
    (*out_count)++;
    if (at->end > farthest) farthest = at->end;
  }
  return farthest;
}

static bool count_one(void *owner, void *user) {
  (void)owner;
  (*(size_t *)user)++;
  return true;
}

UNIT_TEST(test_b4_ranges_around_an_address) {
  rondo_allocator allocator;
  rondo_range_index index = {.root = 0};
  static range ranges[COUNT];
  uint64_t random = 3;
  size_t entered = 0;
  assert_ok(rondo_allocator_resolve(NULL, &allocator));
  for (int step = 0; step < STEPS; step++) {
    range *at = &ranges[test_random_below(&random, COUNT)];
    if (at->entered) {
      rondo_range_leave(&index, at->number);
    } else {
      at->begin = SPAN + 8 * test_random_below(&random, SPAN / 8);
      at->end = at->begin + 1 + test_random_below(&random, 100);
      at->number = rondo_range_enter(&allocator, &index, (const void *)at->begin, at->end - at->begin, 5, at);
      assert_true(at->number != 0);
    }
    at->entered = !at->entered;
    entered = at->entered ? entered + 1 : entered - 1;
    assert_int_equal(rondo_range_index_check(&index), entered);
    const uintptr_t asked = SPAN - 10 + test_random_below(&random, SPAN + 200);
    size_t expected_count, count = 0;
    const uintptr_t expected = scan(ranges, asked, &expected_count);
    const range *found = rondo_range_around(&index, (const void *)asked);
    rondo_range_found look;
    assert_int_equal(found == NULL ? 0 : found->end, expected);
    assert_true(rondo_range_look(&index, (const void *)asked, &look));
    assert_int_equal(look.end, expected);
    assert_true(expected == 0 || (look.tag == 5 && look.begin <= asked));
    rondo_range_visit(&index, (const void *)asked, count_one, &count);
    assert_int_equal(count, expected_count);
  }
  rondo_range_index_deinit(&allocator, &index);
}

UNIT_TEST(test_ranges_that_there_is_no_memory_for) {
  test_allocator allocator;
  rondo_range_index index = {.root = 0};
  rondo_range_found look;
  test_allocator_init(&allocator);
  allocator.fail_at = 1;
  allocator.fail_on = true;
  assert_int_equal(rondo_range_enter(&allocator.table, &index, (const void *)4096, 10, 0, NULL), 0);
  assert_false(rondo_range_look(&index, (const void *)4100, &look));
  allocator.fail_at = 0;
  const uint32_t number = rondo_range_enter(&allocator.table, &index, (const void *)8192, 10, 0, NULL);
  assert_true(number != 0);
  assert_int_equal(rondo_range_index_check(&index), 2);
  assert_false(rondo_range_look(&index, (const void *)8192, &look));
  rondo_range_leave(&index, 0);
  assert_true(rondo_range_look(&index, (const void *)8192, &look));
  assert_int_equal(look.end, 8202);
  rondo_range_leave(&index, number);
  rondo_range_index_deinit(&allocator.table, &index);
  assert_int_equal(allocator.live, 0);
}

/* One thread changes the index, which grows meanwhile; other threads read. Ranges that are never removed are always
 * found; those between them may or may not be found; nothing else is found. */
enum { FIXED = 64, READERS = 3, LOOKS = 30000, GAP = 1 << 16, EXTRA = 500 };

typedef struct reader {
  const rondo_range_index *index;
  atomic_bool *done;
  uint64_t random;
  uint32_t looks, wrong;
} reader;

static void look_around(void *user) {
  reader *self = user;
  while (self->looks < LOOKS && !(atomic_load(self->done) && self->looks > 100)) {
    const uintptr_t slot = 1 + test_random_below(&self->random, FIXED);
    const bool fixed = test_random_below(&self->random, 2) == 0;
    const uintptr_t address = slot * GAP + (fixed ? 100 : 1000);
    rondo_range_found found;
    if (!rondo_range_look(self->index, (const void *)address, &found)) continue;
    self->looks++;
    if (fixed) self->wrong += found.begin != slot * GAP || found.end != slot * GAP + 256;
    if (!fixed && found.end != 0) self->wrong += found.begin != slot * GAP + 512 || found.end != slot * GAP + 2048;
  }
}

typedef struct writer {
  rondo_range_index *index;
  const rondo_allocator *allocator;
  atomic_bool *done;
} writer;

static void change(void *user) {
  const writer *self = user;
  uint32_t between[FIXED] = {0}, extra[EXTRA];
  uint64_t random = 9;
  for (uint32_t round = 0; round < 4000; round++) {
    const uint32_t slot = test_random_below(&random, FIXED);
    const uintptr_t begin = (uintptr_t)(slot + 1) * GAP + 512;
    if (between[slot] == 0) {
      between[slot] = rondo_range_enter(self->allocator, self->index, (const void *)begin, 1536, 0, NULL);
    } else {
      rondo_range_leave(self->index, between[slot]);
      between[slot] = 0;
    }
    if (round < EXTRA)
      extra[round] = rondo_range_enter(self->allocator, self->index,
                                       (const void *)((uintptr_t)(FIXED + 10 + round) * GAP), 64, 0, NULL);
  }
  for (uint32_t i = 0; i < EXTRA; i++) rondo_range_leave(self->index, extra[i]);
  atomic_store(self->done, true);
}

UNIT_TEST(test_readers_see_whole_trees) {
  rondo_allocator allocator;
  rondo_range_index index = {.root = 0};
  reader readers[READERS];
  test_thread threads[READERS + 1];
  atomic_bool done = false;
  writer changes = {.index = &index, .allocator = &allocator, .done = &done};
  assert_ok(rondo_allocator_resolve(NULL, &allocator));
  for (uintptr_t i = 1; i <= FIXED; i++)
    assert_true(rondo_range_enter(&allocator, &index, (const void *)(i * GAP), 256, 0, NULL) != 0);
  for (uint32_t i = 0; i < READERS; i++) {
    readers[i] = (reader){.index = &index, .done = &done, .random = i};
    threads[i] = (test_thread){.function = look_around, .user = &readers[i]};
  }
  threads[READERS] = (test_thread){.function = change, .user = &changes};
  test_on_threads(threads, READERS + 1);
  for (uint32_t i = 0; i < READERS; i++) {
    assert_true(readers[i].looks > 100);
    assert_int_equal(readers[i].wrong, 0);
  }
  rondo_range_index_deinit(&allocator, &index);
}
