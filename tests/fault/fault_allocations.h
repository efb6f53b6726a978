/* SPDX-License-Identifier: MIT
 * Runs a piece of work on a CPU device with each of its host allocations failing: only that one, or that one and all
 * later ones. The work must return no error but OUT_OF_MEMORY and must leave nothing.
 */
#ifndef RONDO_TESTS_FAULT_FAULT_ALLOCATIONS_H
#define RONDO_TESTS_FAULT_FAULT_ALLOCATIONS_H

#include "support/rondo_test.h"
#include "support/test_effort.h"

typedef struct fault_rig {
  test_allocator allocator;
  rondo_device *device; /* with one worker; it takes its memory from the allocator */
} fault_rig;

typedef struct fault_work {
  void (*prepare)(void);                   /* while nothing fails; may be NULL */
  rondo_status (*run)(fault_rig *rig);     /* asserts that the result of a run that succeeds is right */
  void (*destroy)(void);                   /* what both have made so far */
  bool (*is_expected)(rondo_status other); /* other than OUT_OF_MEMORY; may be NULL */
} fault_work;

static inline bool fault_is_expected(const fault_work *work, rondo_status status) {
  if (status == RONDO_OK || status == RONDO_OUT_OF_MEMORY) return true;
  return work->is_expected != NULL && work->is_expected(status);
}

/* Runs the work with allocation `at` failing. Returns false when the work makes fewer allocations. */
static inline bool fault_at_allocation(const fault_work *work, size_t at, bool rest, size_t *inout_heard) {
  static fault_rig r;
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &r.allocator.table, .workers = 1};
  r = (fault_rig){.device = NULL};
  test_allocator_init(&r.allocator);
  assert_ok(rondo_device_open("cpu", &options, &r.device));
  if (work->prepare != NULL) work->prepare();
  atomic_store(&r.allocator.calls, 0);
  atomic_store(&r.allocator.fail_at, at);
  atomic_store(&r.allocator.fail_on, rest);
  const rondo_status status = work->run(&r);
  const bool has_failed = atomic_load(&r.allocator.calls) >= at;
  atomic_store(&r.allocator.fail_at, 0);
  atomic_store(&r.allocator.fail_on, false);
  if (!fault_is_expected(work, status))
    fail_msg("allocation %zu: heard was %s: %s", at, rondo_status_name(status), rondo_last_error()->message);
  *inout_heard += status != RONDO_OK;
  work->destroy();
  assert_ok(rondo_device_close(r.device));
  assert_true(test_allocator_is_clean(&r.allocator));
  return has_failed;
}

/* Fails each `step`-th allocation. More than half of the failures must be reported. */
static inline void fault_allocations(const fault_work *work, bool rest, size_t step) {
  size_t heard = 0, count = 0;
  for (size_t at = 1; fault_at_allocation(work, at, rest, &heard); at += step * test_failure_step()) count++;
  assert_true(count > 100 / (step * test_failure_step()));
  assert_true(heard > count / 2);
}

#endif
