/* SPDX-License-Identifier: MIT
 * Collectives from inside: combining numbers that are special, groups whose memory cannot be had, which rank is
 * alive and which is rung (TR-16).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"
#include "exec/collective/collective_reduce.h"
#include "exec/collective/group.h"
#include "support/rondo_test.h"

/* Reducing --------------------------------------------------------------------------------------------------------- */

static float combine_f32(rondo_reduction reduction, float a, float b) {
  rondo_reduce_find(RONDO_F32, reduction)(&a, &b, 1);
  return a;
}

static double combine_f64(rondo_reduction reduction, double a, double b) {
  rondo_reduce_find(RONDO_F64, reduction)(&a, &b, 1);
  return a;
}

static bool is_nan(double value) { return value != value; }

UNIT_TEST(no_number_stays_none_tr_16) {
  const float none = strtof("nan", NULL);
  for (int r = RONDO_REDUCE_SUM; r <= RONDO_REDUCE_MIN; r++) {
    const rondo_reduction reduction = (rondo_reduction)r;
    assert_true(is_nan((double)combine_f32(reduction, none, 1)));
    assert_true(is_nan((double)combine_f32(reduction, 1, none)));
    assert_true(is_nan(combine_f64(reduction, (double)none, 1)));
    assert_true(is_nan(combine_f64(reduction, 1, (double)none)));
  }
  assert_true(combine_f32(RONDO_REDUCE_MAX, -1, 2) == 2 && combine_f32(RONDO_REDUCE_MIN, -1, 2) == -1);
  assert_true(combine_f64(RONDO_REDUCE_MAX, 3, 2) == 3 && combine_f64(RONDO_REDUCE_MIN, 3, 2) == 2);
}

UNIT_TEST(sums_of_integers_wrap_tr_16) {
  int32_t small[] = {INT32_MAX, INT32_MIN};
  const int32_t more[] = {1, -1};
  int64_t large = INT64_MAX;
  const int64_t one = 1;
  rondo_reduce_find(RONDO_I32, RONDO_REDUCE_SUM)(small, more, 2);
  rondo_reduce_find(RONDO_I64, RONDO_REDUCE_SUM)(&large, &one, 1);
  assert_int_equal(small[0], INT32_MIN);
  assert_int_equal(small[1], INT32_MAX);
  assert_true(large == INT64_MIN);
}

UNIT_TEST(what_has_no_function_is_known_tr_16) {
  assert_null(rondo_reduce_find(RONDO_BF16, RONDO_REDUCE_SUM));
  assert_null(rondo_reduce_find((rondo_type)77, RONDO_REDUCE_SUM));
  assert_null(rondo_reduce_find(RONDO_F32, (rondo_reduction)0));
  assert_null(rondo_reduce_find(RONDO_F32, (rondo_reduction)4));
}

/* Groups ---------------------------------------------------------------------------------------------------------- */

enum { PIECE = 1 << 16 };

static test_allocator allocator;
static char path[RONDO_RENDEZVOUS_BYTES]; /* of a group, for each test */

static int set_up(void **state) {
  (void)state;
  test_allocator_init(&allocator);
  assert_ok(rondo_rendezvous_make(path));
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  assert_int_equal(atomic_load(&allocator.live), 0);
  return 0;
}

static rondo_status enter(uint32_t rank, uint32_t world_size, rondo_group **out) {
  const rondo_group_options options = {.path = path,
                                       .rank = rank,
                                       .world_size = world_size,
                                       .piece_bytes = PIECE,
                                       .kind = 1,
                                       .timeout_ns = UINT64_C(5000000000)};
  return rondo_group_enter(&allocator.table, &options, out);
}

#define GROUP_TEST(name) TEST_REGISTER(name, void *no_fixture, set_up, tear_down, false)

GROUP_TEST(a_rank_is_alive_until_it_leaves_tr_16) {
  rondo_group *groups[3];
  for (uint32_t i = 0; i < 3; i++) assert_ok(enter(i, 3, &groups[i]));
  for (uint32_t i = 0; i < 3; i++) assert_ok(rondo_group_await(groups[i]));
  for (uint32_t i = 0; i < 3; i++)
    for (uint32_t k = 0; k < 3; k++) assert_true(rondo_group_is_alive(groups[i], k));
  const uint32_t seen = atomic_load(&rondo_group_self(groups[0])->doorbell);
  rondo_group_sleep(groups[0], seen, 1000); /* nobody rings: it times out */
  rondo_group_leave(groups[1]);             /* which rings */
  assert_true(atomic_load(&rondo_group_self(groups[0])->doorbell) != seen);
  rondo_group_sleep(groups[0], seen, UINT64_C(60000000000)); /* it was rung: no sleep */
  assert_false(rondo_group_is_alive(groups[0], 1));
  assert_true(rondo_group_is_alive(groups[0], 2));
  assert_int_equal(atomic_load(&groups[2]->header->members[1].left), 1);
  rondo_group_leave(groups[0]);
  rondo_group_leave(groups[2]);
  rondo_group_leave(NULL);
}

/* Each rank has two slots of its own, whose memory is allocated when it is reserved. */
GROUP_TEST(slots_have_memory_once_reserved_tr_16) {
  rondo_group *groups[2];
  for (uint32_t i = 0; i < 2; i++) assert_ok(enter(i, 2, &groups[i]));
  assert_ok(rondo_group_reserve(groups[0], 100));
  assert_int_equal(atomic_load(&groups[0]->reserved_bytes), 4096);
  assert_ok(rondo_group_reserve(groups[0], PIECE));
  assert_ok(rondo_group_reserve(groups[0], 5));
  assert_int_equal(atomic_load(&groups[0]->reserved_bytes), PIECE);
  memset(rondo_group_slot(groups[0], 0, 6), 1, PIECE);
  memset(rondo_group_slot(groups[0], 0, 7), 2, PIECE);
  assert_int_equal(rondo_group_slot(groups[1], 0, 8)[PIECE - 1], 1);
  assert_int_equal(rondo_group_slot(groups[1], 0, 9)[0], 2);
  for (uint32_t i = 0; i < 2; i++) rondo_group_leave(groups[i]);
}

/* A limit on the size of files has the effect of a full file system. */
GROUP_TEST(memory_that_cannot_be_had_is_an_error_tr_16) {
  rondo_group *group;
  struct rlimit before, limit;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
  limit = before;
  limit.rlim_cur = 4096;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const rondo_status status = enter(0, 1, &group);
  const rondo_error error = *rondo_last_error();
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_true(signal(SIGXFSZ, SIG_DFL) != SIG_ERR);
  assert_int_equal(status, RONDO_IO_ERROR);
  assert_string_equal(error.driver_name, "EFBIG");
  assert_null(group);
  assert_int_not_equal(access(path, F_OK), 0);
}

/* A process ended while it created the head. */
GROUP_TEST(a_head_half_made_is_made_again_tr_16) {
  rondo_group *group;
  const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  assert_true(file >= 0);
  assert_int_equal(ftruncate(file, 100), 0);
  assert_ok(enter(0, 1, &group));
  assert_ok(rondo_group_await(group));
  rondo_group_leave(group);
  assert_int_equal(close(file), 0);
}
