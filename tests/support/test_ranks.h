/* SPDX-License-Identifier: MIT
 * A group of ranks in one process for tests of collectives: a device each (cpu:0, cpu:1, ...; cuda:0, cuda:1, ...), a
 * stream, kernels, two buffers, and a communicator. On CUDA the group has two ranks, and a test is skipped where there
 * are no two GPUs or no NCCL.
 *
 * What ranks do is done on a thread of each rank's own, as all devices allow; it hands its status back.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_RANKS_H
#define RONDO_TESTS_SUPPORT_TEST_RANKS_H

#include "support/rondo_test.h"

enum { TEST_RANKS = 3, TEST_RANK_BYTES = 4 << 20 /* of a buffer */ };

typedef struct test_rank {
  test_fixture fixture; /* so that its helpers serve */
  uint32_t rank, world_size;
  rondo_communicator *communicator;
  void *src, *dst;
  rondo_status status; /* of the last call on all ranks */
  char message[1024];
} test_rank;

typedef struct test_ranks {
  uint32_t count;
  test_rank ranks[TEST_RANKS];
} test_ranks;

/* "cpu:1", "cpu:check:1" or "cuda:1". */
void test_rank_device(uint32_t rank, char *name, size_t bytes);

/* Whether this status of making communicators says that the device under test has none, so that a test is skipped. */
bool test_ranks_are_missing(rondo_status status);

/* Opens devices, with one worker each, and makes the group; options as for the communicators. Skips the test where
 * there is no such group. */
void test_ranks_open(test_ranks *self, const rondo_communicator_options *options);
/* The same on devices alone. */
void test_ranks_open_devices(test_ranks *self);
/* Destroys all, and looks for leaks. */
void test_ranks_close(test_ranks *self);

/* Calls the function for each rank on a thread of its own. */
typedef rondo_status (*test_rank_function)(test_rank *rank, void *user);
void test_ranks_try(test_ranks *self, test_rank_function function, void *user);
/* It succeeds on all. */
void test_ranks_do(test_ranks *self, test_rank_function function, void *user);

#endif
