/* SPDX-License-Identifier: MIT
 * External semaphores where there are none (AD-8): CPU devices refuse to import them, and say what there is instead.
 * tests/unit/device/test_cuda_semaphores.c has the semaphores of the fake driver.
 */
#include "support/rondo_test.h"

TEST(test_ad8_cpu_devices_have_no_external_semaphores) {
  const rondo_semaphore_import_options options = {RONDO_SEMAPHORE_IMPORT_OPTIONS_INIT,
                                                  .type = RONDO_SEMAPHORE_TIMELINE_FD};
  rondo_external_semaphore *semaphore;
  if (!test_device_is("cpu")) return;
  assert_error(rondo_external_semaphore_import(t->device, 0, &options, &semaphore), RONDO_UNSUPPORTED,
               RONDO_REASON_NOT_SUPPORTED);
  assert_message("rondo_memory_operations_async");
  assert_null(semaphore);
  rondo_external_semaphore_destroy(NULL);
}
