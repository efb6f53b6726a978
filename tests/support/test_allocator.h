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

typedef struct test_allocator {
  rondo_allocator table;                   /* what the library is given */
  atomic_size_t live;                      /* blocks that are out */
  atomic_size_t calls;                     /* of allocate so far */
  atomic_size_t fail_at;                   /* this call (1, 2, ...) fails; 0 = none */
  atomic_bool fail_on;                     /* and all later ones too */
  atomic_size_t faults;                    /* blocks released with another size, bad alignments, released twice */
  _Atomic(void (*)(void *user)) meanwhile; /* called once, in front of the next allocation: for what another thread does
                                              in the midst of a call of the library */
  void *user;
} test_allocator;

void test_allocator_init(test_allocator *allocator);

#endif
