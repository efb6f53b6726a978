/* SPDX-License-Identifier: MIT
 * Collectives by an NCCL of 2020, which RONDO_NCCL_LIBRARY names: what it has works, and what it lacks is refused with
 * the version that is needed (MM-2, MM-3).
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "support/rondo_test.h"

enum { COUNT = 4 };

typedef struct old_group {
  rondo_communicator *communicator;
  void *src, *dst;
} old_group;

static old_group open_group(test_fixture *t) {
  old_group made = {.src = test_allocate(t, 64, "source"), .dst = test_allocate(t, 64, "destination")};
  assert_ok(rondo_communicator_create_all(&t->device, 1, NULL, &made.communicator));
  return made;
}

static void close_group(test_fixture *t, const old_group *g) {
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_ok(rondo_communicator_destroy(g->communicator));
  assert_ok(rondo_free(t->device, g->src));
  assert_ok(rondo_free(t->device, g->dst));
}

TEST(what_it_has_works) {
  const old_group g = open_group(t);
  assert_ok(rondo_all_reduce(g.communicator, t->stream, g.src, g.dst, COUNT, RONDO_F32, RONDO_REDUCE_SUM));
  assert_ok(rondo_barrier(g.communicator, t->stream));
  close_group(t, &g);
}

TEST(what_it_lacks_is_refused_with_the_version_that_has_it) {
  const old_group g = open_group(t);
  rondo_communicator *const c = g.communicator, *made;
  assert_error(rondo_send_receive(c, t->stream, g.src, 0, g.dst, 0, COUNT, RONDO_F32), RONDO_UNSUPPORTED,
               RONDO_REASON_NONE);
  assert_message("rondo_send_receive: NCCL 2.7 is needed to send and receive, but this is NCCL 2.6");
  assert_fails(rondo_all_to_all(c, t->stream, g.src, g.dst, COUNT, RONDO_F32), RONDO_UNSUPPORTED);
  assert_message("NCCL 2.7 is needed");
  assert_fails(rondo_all_reduce(c, t->stream, g.src, g.dst, COUNT, RONDO_F32, RONDO_REDUCE_AVERAGE), RONDO_UNSUPPORTED);
  assert_message("rondo_all_reduce: NCCL 2.10 is needed for averages and BF16");
  assert_fails(rondo_broadcast(c, t->stream, g.src, g.dst, COUNT, RONDO_BF16, 0), RONDO_UNSUPPORTED);
  assert_message("NCCL 2.10 is needed");
  assert_fails(rondo_communicator_split(c, 0, 0, &made), RONDO_UNSUPPORTED);
  assert_message("NCCL 2.18 is needed to divide groups");
  assert_null(made);
  assert_ok(rondo_barrier(c, t->stream));
  close_group(t, &g);
}

/* A call that was refused before it captured anything leaves the capture as it is. */
TEST(a_capture_goes_on_after_a_refusal) {
  const old_group g = open_group(t);
  assert_ok(rondo_barrier(g.communicator, t->stream));
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_fails(rondo_all_to_all(g.communicator, t->stream, g.src, g.dst, COUNT, RONDO_F32), RONDO_UNSUPPORTED);
  assert_ok(rondo_barrier(g.communicator, t->stream));
  test_run_once(t, test_capture_end(t->stream));
  close_group(t, &g);
}

TEST(ranks_are_not_found_by_the_environment) {
  rondo_communicator *made;
  assert_int_equal(setenv("RANK", "0", 1) | setenv("WORLD_SIZE", "1", 1) | setenv("NCCL_COMM_ID", "n:1", 1), 0);
  assert_fails(rondo_communicator_from_environment(t->device, NULL, &made), RONDO_UNSUPPORTED);
  assert_message("NCCL 2.13 is needed to find ranks by the environment");
  assert_null(made);
}
