/* SPDX-License-Identifier: MIT
 * Runs a piece of work with each of its driver calls, or each of its allocations, failing: only that one, or that one
 * and all later ones. The work's `run` asserts how the work handles the failure. The sweep asserts that the work
 * returns no error but OUT_OF_MEMORY, and that enough failures occur.
 */
#ifndef RONDO_TESTS_FAULT_FAULT_SWEEP_H
#define RONDO_TESTS_FAULT_FAULT_SWEEP_H

#include "support/rondo_test.h"
#include "support/test_effort.h"

/* Which call or allocation fails, and how many of each the work made. */
typedef struct fault_point {
  size_t driver_at, allocation_at; /* 0: none */
  bool rest;                       /* all later ones too */
  size_t calls, allocations;       /* set by the run */
} fault_point;

/* Runs the work once, and returns its status. */
typedef rondo_status (*fault_run)(fault_point *point);

static inline void fault_sweep(fault_run run, bool of_driver, bool rest, size_t least_failures) {
  fault_point none = {0};
  size_t failures = 0;
  assert_int_equal(run(&none), RONDO_OK);
  const size_t count = of_driver ? none.calls : none.allocations;
  assert_true(count > 20);
  for (size_t at = 1; at <= count; at += test_failure_step()) {
    fault_point point = {.driver_at = of_driver ? at : 0, .allocation_at = of_driver ? 0 : at, .rest = rest};
    const rondo_status status = run(&point);
    failures += status != RONDO_OK;
    if (status != RONDO_OK && status != RONDO_OUT_OF_MEMORY) fail_msg("%zu: %s", at, rondo_status_name(status));
  }
  assert_true(failures >= least_failures / test_failure_step());
}

#endif
