/* SPDX-License-Identifier: MIT
 * Copies that are enqueued together: from any alignment, of any size, from host and device memory, and zeros; few of
 * them, and more than fit into one launch. Nothing else is written. Also on a GPU, whose kernel moves 16 bytes, 4 or
 * one at a time, depending on both alignments.
 */
#include <string.h>

#include "exec/stream/copy_list.h"
#include "support/rondo_test.h"

enum { ROOM = 1 << 20, APART = 16, SENTINEL = 0xa5 };

typedef struct lists {
  test_fixture *fixture;
  unsigned char *from, *to; /* host memory, device memory */
  unsigned char *device_from;
  unsigned char *expected, *found;
  rondo_copy_list list;
} lists;

static void *host_room(test_fixture *t) {
  void *memory;
  assert_ok(rondo_host_malloc(t->device, ROOM, &memory));
  return memory;
}

static void *device_room(test_fixture *t) { return test_allocate(t, ROOM, NULL); }

static void make(lists *l, test_fixture *t) {
  uint64_t random = 7;
  *l = (lists){.fixture = t, .from = host_room(t), .to = device_room(t), .device_from = device_room(t)};
  l->expected = host_room(t);
  l->found = host_room(t);
  for (size_t i = 0; i < ROOM; i++) l->from[i] = (unsigned char)(1 + test_random_below(&random, 255));
  test_write(t, l->device_from, l->from, ROOM);
}

static void begin(lists *l, size_t bytes) {
  memset(l->expected, SENTINEL, ROOM);
  test_write(l->fixture, l->to, l->expected, ROOM);
  rondo_copy_list_begin(&l->list, l->fixture->stream, bytes);
}

static void copy(lists *l, size_t to, size_t from, size_t bytes, bool is_host) {
  assert_true(to + bytes <= ROOM && from + bytes <= ROOM);
  assert_ok(rondo_copy_list_add(&l->list, l->to + to, (is_host ? l->from : l->device_from) + from, bytes));
  memcpy(l->expected + to, l->from + from, bytes);
}

static void zeros(lists *l, size_t to, size_t bytes) {
  assert_true(to + bytes <= ROOM);
  assert_ok(rondo_copy_list_add_zeros(&l->list, l->to + to, bytes));
  memset(l->expected + to, 0, bytes);
}

static void end(lists *l) {
  assert_ok(rondo_copy_list_end(&l->list));
  assert_ok(rondo_stream_synchronize(l->fixture->stream));
  test_read(l->fixture, l->found, l->to, ROOM);
  assert_memory_equal(l->found, l->expected, ROOM);
}

static void unmake(const lists *l) {
  assert_ok(rondo_host_free(l->fixture->device, l->from));
  assert_ok(rondo_host_free(l->fixture->device, l->expected));
  assert_ok(rondo_host_free(l->fixture->device, l->found));
  assert_ok(rondo_free(l->fixture->device, l->to));
  assert_ok(rondo_free(l->fixture->device, l->device_from));
}

/* All combinations of alignments of source and destination, with several sizes. */
TEST(test_se5_bytes_begin_anywhere) {
  static const size_t sizes[] = {1, 3, 4, 15, 16, 17, 63, 257, 5000};
  static lists l;
  make(&l, t);
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    const size_t step = (sizes[s] + 3 * APART) / APART * APART;
    begin(&l, APART * APART * sizes[s]);
    for (size_t i = 0; i < APART * APART && (i + 1) * step <= ROOM / 2; i++) /* fewer of the large ones */
      copy(&l, i * step + i % APART, ROOM / 2 + i * step + i / APART, sizes[s], i % 3 > 0);
    end(&l);
  }
  unmake(&l);
}

TEST(test_se5_zeros_begin_anywhere) {
  static lists l;
  make(&l, t);
  begin(&l, ROOM);
  for (size_t i = 0; i < 3 * APART; i++) zeros(&l, i * 400 + i % APART, i < APART ? 1 + i : 300 - i);
  zeros(&l, ROOM / 2 + 1, ROOM / 4 + 5);
  end(&l);
  unmake(&l);
}

/* One copy of many blocks among copies of few bytes, and more copies than one launch can make. */
TEST(test_se5_few_and_many_of_all_sizes) {
  static const size_t counts[] = {0,
                                  1,
                                  RONDO_MOST_QUEUED_RANGES - 1,
                                  RONDO_MOST_QUEUED_RANGES,
                                  RONDO_MOST_QUEUED_RANGES + 1,
                                  3 * RONDO_MOST_QUEUED_RANGES + 5};
  static lists l;
  make(&l, t);
  for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
    begin(&l, ROOM);
    for (size_t i = 0; i + 1 < counts[c]; i++) {
      if (i % 5 == 4)
        zeros(&l, i * 1000, 100 + i);
      else
        copy(&l, i * 1000, i * 40, 4 * i + 4, i % 2 > 0);
    }
    if (counts[c] > 0) copy(&l, ROOM / 2, ROOM / 4, ROOM / 2, true);
    end(&l);
  }
  unmake(&l);
}

/* Too many bytes for the kernel, in total or unaligned. */
TEST(test_se5_what_is_left_to_copies) {
  static lists l;
  make(&l, t);
  begin(&l, SIZE_MAX);
  copy(&l, 0, 0, 1000, true);
  copy(&l, 2000, 77, ROOM / 4, true);
  zeros(&l, ROOM / 2, 500);
  end(&l);
  begin(&l, ROOM);
  copy(&l, 0, 1, ROOM / 2, true);
  copy(&l, ROOM / 2, 2, 30, true);
  zeros(&l, ROOM / 2 + 31, 500);
  end(&l);
  unmake(&l);
}
