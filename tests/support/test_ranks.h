/* SPDX-License-Identifier: MIT
 * A group of ranks in one process, for tests of collectives. Each rank has a device (cpu:0, cpu:1, ...; cuda:0, cuda:1,
 * ...), a stream, kernels, two buffers, and a communicator. On CUDA the group has two ranks, and a test is skipped
 * without two GPUs or NCCL.
 *
 * Each rank works on its own thread, as all devices allow, and returns its status.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_RANKS_H
#define RONDO_TESTS_SUPPORT_TEST_RANKS_H

#include "support/rondo_test.h"

enum { TEST_RANKS = 3, TEST_RANK_BYTES = 4 << 20 /* of a buffer */ };

typedef struct test_rank {
  test_fixture fixture; /* for the functions that take a fixture */
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

/* How many ranks there can be: `most`, or fewer on CUDA, one for each GPU. */
uint32_t test_rank_count(uint32_t most);

/* Whether this status means that the device under test has no communicators, so that the test must be skipped. */
bool test_ranks_are_missing(rondo_status status);

/* Opens devices with one worker each and creates the group; options as for communicators. Skips the test if there can
 * be no such group. */
void test_ranks_open(test_ranks *self, const rondo_communicator_options *options);
/* Opens only the devices. */
void test_ranks_open_devices(test_ranks *self);
/* Destroys everything and checks for leaks. */
void test_ranks_close(test_ranks *self);

/* Calls the function for each rank on its own thread. */
typedef rondo_status (*test_rank_function)(test_rank *rank, void *user);
void test_ranks_try(test_ranks *self, test_rank_function function, void *user);
/* The same; the function must succeed for all ranks. */
void test_ranks_do(test_ranks *self, test_rank_function function, void *user);

#endif
