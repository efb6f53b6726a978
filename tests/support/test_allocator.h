/* SPDX-License-Identifier: MIT
 * An allocator for tests: counts what lives, checks that each block comes back with the size it was asked for, and
 * fails on request. Thread-safe. What it finds wrong is counted in `faults`, because it cannot assert on the library's
 * threads.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_ALLOCATOR_H
#define RONDO_TESTS_SUPPORT_TEST_ALLOCATOR_H

#include <rondo/allocator.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "support/test_cases.h"

typedef struct test_allocator {
  rondo_allocator table;                   /* what the library is given */
  atomic_size_t live, live_bytes;          /* blocks that are out, and their bytes */
  atomic_size_t calls;                     /* of allocate so far */
  atomic_size_t fail_at;                   /* this call (1, 2, ...) fails; 0 = none */
  atomic_bool fail_on;                     /* and all later ones too */
  atomic_size_t faults;                    /* blocks released with another size, bad alignments, released twice */
  _Atomic(void (*)(void *user)) meanwhile; /* called once, in front of the next allocation: for what another thread does
                                              in the midst of a call of the library */
  void *user;
  struct block_header *blocks; /* live ones, the newest first */
} test_allocator;

void test_allocator_init(test_allocator *allocator);

/* Whether all blocks are back and nothing was wrong; else prints the counts. */
bool test_allocator_is_clean(const test_allocator *allocator);

/* Calls the function for each live block; it must not allocate from the same allocator. */
void test_allocator_walk(const test_allocator *allocator, void (*visit)(const void *block, size_t bytes, void *user),
                         void *user);

/* A test whose fixture is an allocator, `counting`; the teardown asserts that it is clean. */
int test_allocator_setup(void **state);
int test_allocator_teardown(void **state);
#define ALLOCATOR_TEST(name) \
  TEST_REGISTER(name, test_allocator *counting, test_allocator_setup, test_allocator_teardown, false)

#endif
