/* SPDX-License-Identifier: MIT
 * Without NCCL: communicators on CUDA are unavailable, which says what was tried, every time (TR-16).
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "support/rondo_test.h"

TEST(what_was_tried_is_named_each_time) {
  rondo_communicator *communicator;
  for (int i = 0; i < 2; i++) {
    assert_error(rondo_communicator_create_all(&t->device, 1, NULL, &communicator), RONDO_UNAVAILABLE,
                 RONDO_REASON_NO_DRIVER);
    assert_message("libnccl-of-nobody.so.2");
    assert_message("RONDO_NCCL_LIBRARY");
    assert_null(communicator);
  }
  assert_error(rondo_communicator_create(t->device, "/dev/shm/nothing-is-made-here", 1, 2, NULL, &communicator),
               RONDO_UNAVAILABLE, RONDO_REASON_NO_DRIVER);
}

int main(void) {
  if (setenv("RONDO_NCCL_LIBRARY", "libnccl-of-nobody.so.2", 1) != 0) return EXIT_FAILURE;
  return test_run_registered();
}
