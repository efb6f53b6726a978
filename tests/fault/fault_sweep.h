/* SPDX-License-Identifier: MIT
 * Failing each call of the driver, or each allocation, that a piece of work makes: once, or from there on. What the
 * work must do about it, its `run` asserts; here, that nothing but OUT_OF_MEMORY comes out and that enough failures do.
 */
#ifndef RONDO_TESTS_FAULT_FAULT_SWEEP_H
#define RONDO_TESTS_FAULT_FAULT_SWEEP_H

#include "support/rondo_test.h"
#include "support/test_effort.h"

/* Does the work once, with driver call `driver_at` or allocation `allocation_at` of it failing (0: none), and all later
 * ones too when `rest`. Returns its status and how many of each it made. */
typedef rondo_status (*fault_run)(size_t driver_at, size_t allocation_at, bool rest, size_t *out_calls,
                                  size_t *out_allocations);

static inline void fault_sweep(fault_run run, bool of_driver, bool rest, size_t least_failures) {
  size_t calls, allocations, failures = 0;
  assert_int_equal(run(0, 0, false, &calls, &allocations), RONDO_OK);
  const size_t count = of_driver ? calls : allocations;
  assert_true(count > 20);
  for (size_t at = 1; at <= count; at += test_failure_step()) {
    const rondo_status status = run(of_driver ? at : 0, of_driver ? 0 : at, rest, &calls, &allocations);
    failures += status != RONDO_OK;
    if (status != RONDO_OK && status != RONDO_OUT_OF_MEMORY) fail_msg("%zu: %s", at, rondo_status_name(status));
  }
  assert_true(failures >= least_failures / test_failure_step());
}

#endif
