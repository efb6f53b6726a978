/* SPDX-License-Identifier: MIT
 * Unmapping in a process with the maximum number of mappings: it uses the spare mapping for that moment, and each of
 * several threads gets it. Skipped if the maximum is so high that the test would take too long.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "device_tests.h"

enum { MOST = 1000000, THREADS = 2, ROUNDS = 20000, LAST_ONES = 16 };

typedef struct unmapper {
  rondo_device *device;
  void *address;
  size_t bytes;
  atomic_uint *ready;
  uint32_t failed;
} unmapper;

/* Unmaps addresses without memory, which is allowed, so the number of mappings stays the same. */
static void *unmap_often(void *user) {
  unmapper *u = user;
  atomic_fetch_add(u->ready, 1);
  while (atomic_load(u->ready) <= THREADS) rondo_yield();
  for (int i = 0; i < ROUNDS; i++) u->failed += u->device->ops->unmap(u->device, u->address, u->bytes) != RONDO_OK;
  return NULL;
}

/* Splits the range until the system refuses, and makes mappings until it refuses these too. */
static size_t eat(char *range, size_t pages, size_t page, void *last[LAST_ONES]) {
  size_t count = 0;
  for (size_t i = 1; i < pages; i += 2)
    if (mprotect(range + i * page, page, PROT_READ) != 0) break;
  while (count < LAST_ONES) {
    last[count] = mmap(NULL, page, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (last[count] == MAP_FAILED) break;
    count++;
  }
  return count;
}

/* Lets the threads go while the process is at its limit. */
static void run_at_the_limit(rondo_thread threads[THREADS], atomic_uint *ready, size_t pages) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  void *last[LAST_ONES];
  char *range = mmap(NULL, pages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(range != MAP_FAILED);
  while (atomic_load(ready) < THREADS) rondo_yield();
  const size_t count = eat(range, pages, page, last);
  atomic_fetch_add(ready, 1);
  for (int i = 0; i < THREADS; i++) rondo_thread_join(threads[i]);
  assert_int_equal(munmap(range, pages * page), 0);
  for (size_t i = 0; i < count; i++) assert_int_equal(munmap(last[i], page), 0);
  assert_in_range(count, 0, LAST_ONES - 1); /* it was met */
}

UNIT_TEST(each_of_two_threads_gets_the_spare_mapping) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = test_most_mappings() + 2;
  rondo_thread threads[THREADS];
  unmapper unmappers[THREADS];
  atomic_uint ready = 0;
  rondo_device *device;
  if (pages > MOST) skip();
  assert_ok(rondo_device_open("cpu", &(rondo_device_options){.workers = 1}, &device));
  for (int i = 0; i < THREADS; i++) {
    unmappers[i] = (unmapper){.device = device, .bytes = page, .ready = &ready};
    assert_ok(device->ops->reserve(device, page, page, &unmappers[i].address));
    assert_ok(rondo_thread_start(&threads[i], "unmapper", unmap_often, &unmappers[i]));
  }
  run_at_the_limit(threads, &ready, pages);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(unmappers[i].failed, 0);
    assert_ok(device->ops->unreserve(device, unmappers[i].address, page));
  }
  assert_ok(rondo_device_close(device));
}
