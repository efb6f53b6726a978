/* SPDX-License-Identifier: MIT
 * What the tests that fail calls of the fake CUDA driver share: the codes, the setup, and the assertion that nothing is
 * left.
 */
#ifndef RONDO_TESTS_FAULT_FAULT_CUDA_H
#define RONDO_TESTS_FAULT_FAULT_CUDA_H

#include <rondo/rondo.h>
#include <string.h>

#include "fake_cuda/fake_cuda.h"
#include "support/rondo_test.h"

enum { REFUSED = 1, NO_MEMORY = 2, LAUNCH_FAILED = 719 };

static const fake_cuda_control *fake; /* the driver under test */

/* Loads the fake driver and makes Rondo load it: Rondo caches a failed load for the whole process. */
static inline int fault_cuda_set_up(void **state) {
  rondo_device *device = NULL;
  (void)state;
  fake = fake_cuda_get();
  assert_non_null(fake);
  fake->reset();
  assert_ok(rondo_device_open("cuda:0", NULL, &device));
  assert_ok(rondo_device_close(device));
  return 0;
}

/* A test in which calls of the driver fail. */
#define FAULT_CUDA_TEST(name) TEST_REGISTER(name, void *none, fault_cuda_set_up, NULL, false)

/* Calls that give memory back. When one fails, its object is left. */
static inline bool fault_cuda_gives_back(const char *call) {
  return strcmp(call, "cuMemUnmap") == 0 || strcmp(call, "cuMemAddressFree") == 0 || strcmp(call, "cuMemRelease") == 0;
}

/* Asserts that nothing was misused, that at most `most` objects of the driver are left, and no block of the allocator.
 * `what` is the call that failed, for the `at`-th time. */
static inline void fault_cuda_assert_clean(const test_allocator *allocator, size_t most, const char *what, size_t at) {
  char text[2048];
  fake->list_violations(text, sizeof text);
  if (fake->violations() > 0) fail_msg("%s, failure %zu: misuse: %s", what, at, text);
  fake->list(text, sizeof text);
  if (fake->live(FAKE_CUDA_ANY) > most) fail_msg("%s, failure %zu: left: %s", what, at, text);
  if (atomic_load(&allocator->live) > 0 || atomic_load(&allocator->faults) > 0)
    fail_msg("%s, failure %zu: %zu blocks of host memory left", what, at, atomic_load(&allocator->live));
}

#endif
