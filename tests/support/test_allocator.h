/* SPDX-License-Identifier: MIT
 * An allocator for tests. It counts live blocks, checks that each block is freed with the size with which it was
 * allocated, and fails on request. Thread-safe. It counts mistakes in `faults`, because it cannot assert on the
 * library's threads.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_ALLOCATOR_H
#define RONDO_TESTS_SUPPORT_TEST_ALLOCATOR_H

#include <rondo/allocator.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "support/test_cases.h"

typedef struct test_allocator {
  rondo_allocator table;          /* for the library */
  atomic_size_t live, live_bytes; /* live blocks, and their bytes */
  atomic_size_t calls;            /* number of calls of allocate */
  atomic_size_t fail_at;          /* this call (1, 2, ...) fails; 0: none */
  atomic_bool fail_on;            /* all later calls fail, too */
  atomic_size_t faults;           /* blocks freed with another size, freed twice, or with a wrong alignment */
  _Atomic(void (*)(void *user))
      meanwhile; /* called once, before the next allocation, to simulate another thread in the middle of a call */
  void *user;
  struct block_header *blocks; /* live blocks, newest first */
} test_allocator;

void test_allocator_init(test_allocator *allocator);

/* Whether all blocks were freed and there were no mistakes; otherwise prints the counts. */
bool test_allocator_is_clean(const test_allocator *allocator);

/* Calls the function for each live block. It must not allocate from this allocator. */
void test_allocator_walk(const test_allocator *allocator, void (*visit)(const void *block, size_t bytes, void *user),
                         void *user);

/* A test whose fixture is an allocator, `counting`. The teardown asserts that it is clean. */
int test_allocator_setup(void **state);
int test_allocator_teardown(void **state);
#define ALLOCATOR_TEST(name) \
  TEST_REGISTER(name, test_allocator *counting, test_allocator_setup, test_allocator_teardown, false)

#endif
