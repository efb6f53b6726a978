/* SPDX-License-Identifier: MIT
 * Without NCCL, communicators on CUDA are unavailable. Each error says which libraries were tried (TR-16).
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
}

TEST(all_ways_to_a_group_are_unavailable) {
  rondo_communicator *communicator;
  rondo_communicator_id id = {{0}};
  assert_error(rondo_communicator_make_id(t->device, &id), RONDO_UNAVAILABLE, RONDO_REASON_NO_DRIVER);
  assert_message("rondo_communicator_make_id");
  assert_error(rondo_communicator_from_id(t->device, &id, 0, 1, NULL, &communicator), RONDO_UNAVAILABLE,
               RONDO_REASON_NO_DRIVER);
  assert_null(communicator);
  assert_int_equal(setenv("RANK", "0", 1) | setenv("WORLD_SIZE", "1", 1) | setenv("NCCL_COMM_ID", "n:1", 1), 0);
  assert_error(rondo_communicator_from_environment(t->device, NULL, &communicator), RONDO_UNAVAILABLE,
               RONDO_REASON_NO_DRIVER);
  assert_null(communicator);
}

int main(void) {
  if (setenv("RONDO_NCCL_LIBRARY", "libnccl-of-nobody.so.2", 1) != 0) return EXIT_FAILURE;
  return test_run_registered();
}
