/* SPDX-License-Identifier: MIT
 * Around a piece of work on the driver of fake_driver.h, in which one call or one allocation fails.
 */
#ifndef RONDO_TESTS_FAULT_FAULT_FAKE_H
#define RONDO_TESTS_FAULT_FAULT_FAKE_H

#include "fault/fake_driver.h"
#include "fault/fault_sweep.h"

/* From here on the point's failure comes; what was made so far does not count. `fake` NULL: another driver, of which
 * allocations alone fail. */
static inline void fault_fake_begin(fault_point *point, fake_device *fake, test_allocator *allocator) {
  point->calls = fake == NULL ? 0 : fake->calls;
  point->allocations = allocator->calls;
  allocator->fail_on = point->rest;
  if (point->allocation_at != 0) allocator->fail_at = point->allocations + point->allocation_at;
  if (fake == NULL) return;
  fake->fail_rest = point->rest;
  if (point->driver_at != 0) fake->fail_at = point->calls + point->driver_at;
}

/* From here on nothing fails. A failure is explained. */
static inline void fault_fake_end(fault_point *point, fake_device *fake, test_allocator *allocator,
                                  rondo_status status) {
  if (status != RONDO_OK) assert_true(rondo_last_error()->message[0] != '\0');
  point->calls = fake == NULL ? 0 : fake->calls - point->calls;
  point->allocations = allocator->calls - point->allocations;
  if (fake != NULL) fake->fail_at = 0;
  allocator->fail_at = 0;
}

/* The device has nothing of the driver's left, nor its allocator of host memory. */
static inline void fault_fake_close(rondo_device *device, const test_allocator *allocator) {
  assert_int_equal(fake_close(device), 0);
  assert_true(test_allocator_is_clean(allocator));
}

#endif
