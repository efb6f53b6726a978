/* SPDX-License-Identifier: MIT
 * Lets one call or allocation fail in a piece of work on the driver of fake_driver.h.
 */
#ifndef RONDO_TESTS_FAULT_FAULT_FAKE_H
#define RONDO_TESTS_FAULT_FAULT_FAKE_H

#include "base/slab.h"
#include "fault/fake_driver.h"
#include "fault/fault_sweep.h"

/* Each object is a separate allocation, so that each can fail. */
__attribute__((constructor)) static void fault_fake_allocate_each(void) { rondo_slab_by_block = true; }

/* The failure of `point` can occur from here on, and only calls and allocations from here on count. With another
 * driver, `device` is NULL, and only allocations fail. */
static inline void fault_fake_begin(fault_point *point, rondo_device *device, test_allocator *allocator) {
  fake_device *fake = device == NULL ? NULL : fake_of(device);
  point->calls = fake == NULL ? 0 : fake->calls;
  point->allocations = allocator->calls;
  allocator->fail_on = point->rest;
  if (point->allocation_at != 0) allocator->fail_at = point->allocations + point->allocation_at;
  if (fake == NULL) return;
  fake->fail_rest = point->rest;
  if (point->driver_at != 0) fake->fail_at = point->calls + point->driver_at;
}

/* Ends the failures, and asserts that an error has a message. */
static inline void fault_fake_end(fault_point *point, rondo_device *device, test_allocator *allocator,
                                  rondo_status status) {
  fake_device *fake = device == NULL ? NULL : fake_of(device);
  if (status != RONDO_OK) assert_true(rondo_last_error()->message[0] != '\0');
  point->calls = fake == NULL ? 0 : fake->calls - point->calls;
  point->allocations = allocator->calls - point->allocations;
  if (fake != NULL) fake->fail_at = 0;
  allocator->fail_at = 0;
}

/* Asserts that nothing is left in the driver or in the host allocator. */
static inline void fault_fake_close(rondo_device *device, const test_allocator *allocator) {
  assert_int_equal(fake_close(device), 0);
  assert_true(test_allocator_is_clean(allocator));
}

#endif
