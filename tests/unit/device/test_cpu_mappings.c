/* SPDX-License-Identifier: MIT
 * Unmapping in a process with the maximum number of mappings: it uses the spare mapping for that moment, and each of
 * several threads gets it. Skipped if the maximum is so high that the test would take too long. Memory whose pages are
 * replaced by those of a file, or stay if the system refuses.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
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

/* A file of this many pages, mapped; page i has bytes of value i + 1. */
static unsigned char *mapped_file(size_t pages, size_t page) {
  FILE *file = tmpfile();
  assert_non_null(file);
  for (size_t i = 0; i < pages * page; i++) assert_true(fputc((int)(i / page) + 1, file) >= 0);
  assert_int_equal(fflush(file), 0);
  unsigned char *bytes = mmap(NULL, pages * page, PROT_READ, MAP_PRIVATE, fileno(file), 0);
  assert_true(bytes != MAP_FAILED);
  assert_int_equal(fclose(file), 0);
  return bytes;
}

static void assert_bytes(const unsigned char *bytes, size_t count, unsigned char value) {
  for (size_t i = 0; i < count; i++) assert_int_equal(bytes[i], value);
}

enum { OFFSET = 100, OLD = 0xee };

/* With a limit on its addresses, a process gets no further mapping. */
static void check_refusal(rondo_device *device, unsigned char *memory, const unsigned char *file, size_t page) {
  struct rlimit limit;
  size_t first, bytes;
  assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
  const struct rlimit least = {.rlim_cur = page, .rlim_max = limit.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_AS, &least), 0);
  const rondo_status status = device->ops->map_file(device, memory, file, 4 * page, &first, &bytes);
  assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
  assert_ok(status);
  assert_int_equal(bytes, 0);
  assert_bytes(memory, 4 * page, OLD);
}

/* The whole pages alone; both keep their content when the other is written. */
static void check_file_pages(rondo_device *device, unsigned char *memory, const unsigned char *file, size_t page) {
  size_t first, bytes;
  assert_ok(device->ops->map_file(device, memory + 1, file, 3 * page, &first, &bytes)); /* another offset in a page */
  assert_int_equal(bytes, 0);
  assert_ok(device->ops->map_file(device, memory + OFFSET, file + OFFSET, page, &first, &bytes)); /* no whole page */
  assert_int_equal(bytes, 0);
  assert_bytes(memory, 4 * page, OLD);
  assert_ok(device->ops->map_file(device, memory + OFFSET, file + OFFSET, 3 * page, &first, &bytes));
  if (bytes == 0) skip(); /* the system maps no pages twice */
  assert_int_equal(first, page - OFFSET);
  assert_int_equal(bytes, 2 * page);
  assert_bytes(memory, page, OLD);
  assert_bytes(memory + page, page, 2);
  assert_bytes(memory + 2 * page, page, 3);
  assert_bytes(memory + 3 * page, page, OLD);
  memset(memory + page, OLD, page);
  assert_bytes(file + page, page, 2);
  assert_bytes(file + 2 * page, page, 3);
}

UNIT_TEST(pages_of_a_file_replace_those_of_memory) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 4 * page;
  unsigned char *const file = mapped_file(4, page);
  rondo_physical *physical;
  rondo_device *device;
  void *memory;
  assert_ok(rondo_device_open("cpu", NULL, &device));
  assert_ok(device->ops->reserve(device, bytes, 0, &memory));
  assert_ok(device->ops->physical_create(device, bytes, RONDO_PHYSICAL_ONCE, &physical));
  assert_ok(device->ops->map(device, memory, physical));
  assert_bytes(memory, bytes, 0);
  memset(memory, OLD, bytes);
  check_refusal(device, memory, file, page);
  check_file_pages(device, memory, file, page);
  assert_int_equal(munmap(file, bytes), 0);
  assert_bytes((unsigned char *)memory + 2 * page, page, 3); /* also without the other mapping */
  assert_ok(device->ops->unmap(device, memory, bytes));
  device->ops->physical_destroy(physical);
  assert_ok(device->ops->unreserve(device, memory, bytes));
  assert_ok(rondo_device_close(device));
}
