/* SPDX-License-Identifier: MIT
 * A header precedes each block. Its distance from the block is at least the header's size and preserves the alignment.
 * The headers of all live blocks form a list, under a lock.
 */
#include "support/test_allocator.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LIVE_MARK 0x6c697665u
#define DEAD_MARK 0x64656164u

typedef struct block_header {
  void *start; /* the pointer from aligned_alloc */
  size_t bytes;
  uint32_t mark;
  struct block_header *previous, *next; /* live blocks of the same allocator */
} block_header;

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* for the lists of all allocators */

static block_header *header_of(void *pointer) { return (block_header *)pointer - 1; }

static bool is_power_of_two(size_t value) { return value != 0 && (value & (value - 1)) == 0; }

static bool is_to_fail(test_allocator *allocator, size_t call) {
  const size_t fail_at = atomic_load(&allocator->fail_at);
  return fail_at != 0 && (call == fail_at || (call > fail_at && atomic_load(&allocator->fail_on)));
}

static void link_block(test_allocator *allocator, block_header *header) {
  pthread_mutex_lock(&list_lock);
  header->next = allocator->blocks;
  if (header->next != NULL) header->next->previous = header;
  allocator->blocks = header;
  pthread_mutex_unlock(&list_lock);
}

static void unlink_block(test_allocator *allocator, block_header *header) {
  pthread_mutex_lock(&list_lock);
  if (header->next != NULL) header->next->previous = header->previous;
  *(header->previous != NULL ? &header->previous->next : &allocator->blocks) = header->next;
  pthread_mutex_unlock(&list_lock);
}

static void *counted_allocate(void *self, size_t bytes, size_t alignment) {
  test_allocator *allocator = self;
  void (*const meanwhile)(void *) = atomic_exchange(&allocator->meanwhile, NULL);
  if (meanwhile != NULL) meanwhile(allocator->user);
  if (is_to_fail(allocator, atomic_fetch_add(&allocator->calls, 1) + 1)) return NULL;
  if (bytes == 0 || alignment < 16 || !is_power_of_two(alignment)) {
    atomic_fetch_add(&allocator->faults, 1);
    return NULL;
  }
  const size_t distance = (sizeof(block_header) + alignment - 1) / alignment * alignment;
  if (bytes > SIZE_MAX - distance - alignment) return NULL;
  unsigned char *start = aligned_alloc(alignment, (distance + bytes + alignment - 1) / alignment * alignment);
  if (start == NULL) return NULL;
  void *pointer = start + distance;
  memset(pointer, 0xa5, bytes);
  block_header *header = header_of(pointer);
  *header = (block_header){.start = start, .bytes = bytes, .mark = LIVE_MARK};
  link_block(allocator, header);
  atomic_fetch_add(&allocator->live, 1);
  atomic_fetch_add(&allocator->live_bytes, bytes);
  return pointer;
}

static void counted_release(void *self, void *pointer, size_t bytes) {
  test_allocator *allocator = self;
  block_header *header = header_of(pointer);
  if (header->mark != LIVE_MARK || header->bytes != bytes) {
    atomic_fetch_add(&allocator->faults, 1);
    return;
  }
  header->mark = DEAD_MARK;
  unlink_block(allocator, header);
  memset(pointer, 0xdd, bytes);
  atomic_fetch_sub(&allocator->live, 1);
  atomic_fetch_sub(&allocator->live_bytes, bytes);
  free(header->start);
}

void test_allocator_init(test_allocator *allocator) {
  memset(allocator, 0, sizeof *allocator);
  allocator->table = (rondo_allocator){.self = allocator, .allocate = counted_allocate, .release = counted_release};
}

int test_allocator_setup(void **state) {
  static test_allocator allocator;
  test_allocator_init(&allocator);
  *state = &allocator;
  return 0;
}

int test_allocator_teardown(void **state) { return test_allocator_is_clean(*state) ? 0 : -1; }

bool test_allocator_is_clean(const test_allocator *allocator) {
  const size_t live = atomic_load(&allocator->live), faults = atomic_load(&allocator->faults);
  if (live != 0 || faults != 0) print_error("%zu blocks of host memory leaked, %zu faults\n", live, faults);
  return live == 0 && faults == 0;
}

void test_allocator_walk(const test_allocator *allocator, void (*visit)(const void *block, size_t bytes, void *user),
                         void *user) {
  pthread_mutex_lock(&list_lock);
  for (const block_header *at = allocator->blocks; at != NULL; at = at->next) visit(at + 1, at->bytes, user);
  pthread_mutex_unlock(&list_lock);
}
