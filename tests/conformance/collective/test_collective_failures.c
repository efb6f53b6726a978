/* SPDX-License-Identifier: MIT
 * Collectives that fail: bad arguments, ranks that differ, stop, overlap, or do not divide the group with the others.
 * Each is an error on every affected rank that names both sides, and never a hang (TR-16, MM-3).
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "support/test_ranks.h"

#define BAD RONDO_INVALID_ARGUMENT

/* Arguments -------------------------------------------------------------------------------------------------------- */

DEVICE_TEST(test_tr16_bad_arguments) {
  test_ranks self;
  test_ranks_open(&self, NULL);
  test_rank *rank = &self.ranks[1];
  rondo_communicator *c = rank->communicator;
  rondo_stream *s = rank->fixture.stream;
  char *src = rank->src, *dst = rank->dst;
  const rondo_reduction sum = RONDO_REDUCE_SUM;
  assert_error(rondo_all_reduce(NULL, s, src, dst, 1, RONDO_F32, sum), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_all_reduce(c, NULL, src, dst, 1, RONDO_F32, sum), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_all_reduce(c, s, NULL, dst, 1, RONDO_F32, sum), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_all_reduce(c, s, src, NULL, 1, RONDO_F32, sum), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_all_reduce(c, self.ranks[0].fixture.stream, src, dst, 1, RONDO_F32, sum), BAD,
               RONDO_REASON_OTHER_DEVICE);
  assert_error(rondo_all_reduce(c, s, src, dst, 0, RONDO_F32, sum), BAD, RONDO_REASON_BAD_SIZE);
  assert_error(rondo_all_reduce(c, s, src, dst, SIZE_MAX / 4, RONDO_F32, sum), BAD, RONDO_REASON_BAD_SIZE);
  assert_error(rondo_all_reduce(c, s, src + 2, dst, 1, RONDO_F32, sum), BAD, RONDO_REASON_BAD_SIZE);
  assert_error(rondo_all_reduce(c, s, src, dst, 1, (rondo_type)99, sum), BAD, RONDO_REASON_TYPE);
  assert_error(rondo_all_reduce(c, s, src, dst, 1, RONDO_F8_E5M2, sum), BAD, RONDO_REASON_TYPE);
  assert_error(rondo_all_gather(c, s, src, dst, 1, RONDO_F8_E4M3), BAD, RONDO_REASON_TYPE);
  assert_error(rondo_all_reduce(c, s, src, dst, 1, RONDO_F32, (rondo_reduction)0), BAD, RONDO_REASON_TYPE);
  assert_error(rondo_all_reduce(c, s, src, dst, 1, RONDO_F32, (rondo_reduction)5), BAD, RONDO_REASON_TYPE);
  assert_error(rondo_all_reduce(c, s, src, src + 4, 8, RONDO_F32, sum), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_all_gather(c, s, src, src, 8, RONDO_F32), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_reduce_scatter(c, s, src, src, 8, RONDO_F32, sum), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_broadcast(c, s, src, dst, 1, RONDO_F32, self.count), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_broadcast(c, s, NULL, dst, 1, RONDO_F32, 1), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_barrier(c, NULL), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_communicator_abort(NULL), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_communicator_get_info(c, NULL), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_string_equal(rondo_reduction_name(RONDO_REDUCE_MAX), "max");
  assert_string_equal(rondo_reduction_name(RONDO_REDUCE_AVERAGE), "average");
  assert_string_equal(rondo_reduction_name((rondo_reduction)0), "unknown");
  test_ranks_close(&self); /* nothing was queued */
}

/* Of the calls that are not in test_tr16_bad_arguments. */
DEVICE_TEST(test_mm3_bad_arguments) {
  test_ranks self;
  test_ranks_open(&self, NULL);
  test_rank *rank = &self.ranks[1];
  rondo_communicator *c = rank->communicator, *part = c;
  rondo_stream *s = rank->fixture.stream;
  char *src = rank->src, *dst = rank->dst;
  const rondo_type f32 = RONDO_F32;
  assert_error(rondo_all_to_all(c, s, src, src, 8, f32), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_all_to_all(c, s, src, src + 8 * 4, 8, f32), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_all_to_all(c, s, NULL, dst, 8, f32), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_all_to_all(c, s, src, dst, SIZE_MAX / 8, f32), BAD, RONDO_REASON_BAD_SIZE);
  assert_error(rondo_send(c, s, src, 1, f32, self.count), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_message("the rank to send to");
  assert_error(rondo_receive(c, s, dst, 1, f32, self.count), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_message("the rank to receive from");
  assert_error(rondo_send(c, s, src, 1, f32, 1), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_message("would wait for itself");
  assert_error(rondo_receive(c, s, dst, 1, f32, 1), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_send_receive(c, s, src, 1, dst, 0, 1, f32), BAD, RONDO_REASON_OUT_OF_RANGE);
  /* No number is free to mean "nobody". */
  assert_error(rondo_send(c, s, src, 1, f32, UINT32_MAX), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_receive(c, s, dst, 1, f32, UINT32_MAX), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_send_receive(c, s, src, UINT32_MAX, dst, 0, 1, f32), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_send_receive(c, s, src, 0, dst, UINT32_MAX, 1, f32), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_send_receive(c, s, src, 0, src, 0, 1, f32), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_send_receive(c, s, src, 0, NULL, 0, 1, f32), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_send(c, s, NULL, 1, f32, 0), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_send(NULL, s, src, 1, f32, 0), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_receive(c, s, NULL, 1, f32, 0), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_receive(c, s, dst + 1, 1, f32, 0), BAD, RONDO_REASON_BAD_SIZE);
  assert_error(rondo_all_reduce(c, s, src, dst, 1, RONDO_I32, RONDO_REDUCE_AVERAGE), BAD, RONDO_REASON_TYPE);
  assert_message("an average of i32 is not defined");
  assert_error(rondo_communicator_split(NULL, 0, 0, &part), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_null(part);
  assert_error(rondo_communicator_split(c, 0, 0, NULL), BAD, RONDO_REASON_NULL_ARGUMENT);
  test_ranks_close(&self);
}

TEST(test_tr16_bad_groups) {
  rondo_communicator *c = (rondo_communicator *)t, *both[2];
  rondo_device *devices[] = {t->device, NULL};
  const rondo_communicator_options odd = {RONDO_COMMUNICATOR_OPTIONS_INIT, .reserved = 1};
  if (test_device_is("cuda")) skip();
  assert_error(rondo_communicator_create_all(devices, 2, NULL, both), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_null(both[0]);
  assert_error(rondo_communicator_create_all(NULL, 1, NULL, &c), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_null(c);
  assert_error(rondo_communicator_create_all(devices, 1, NULL, NULL), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_communicator_create_all(devices, 0, NULL, &c), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_communicator_create_all(devices, RONDO_MAX_RANKS + 1, NULL, &c), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_communicator_create_all(devices, 1, &odd, &c), BAD, RONDO_REASON_BAD_OPTIONS);
  assert_message("reserved is 1");
  assert_ok(rondo_communicator_destroy(NULL));
}

/* What joins by NCCL alone. */
TEST(test_mm2_cpu_devices_have_no_ids) {
  rondo_communicator *c = (rondo_communicator *)t;
  rondo_communicator_id id = {{0}};
  if (test_device_is("cuda")) skip();
  assert_error(rondo_communicator_make_id(t->device, &id), RONDO_UNSUPPORTED, RONDO_REASON_OTHER_DEVICE);
  assert_message("use rondo_communicator_from_mpi");
  assert_error(rondo_communicator_from_id(t->device, &id, 0, 1, NULL, &c), RONDO_UNSUPPORTED,
               RONDO_REASON_OTHER_DEVICE);
  assert_null(c);
  assert_error(rondo_communicator_from_environment(t->device, NULL, &c), RONDO_UNSUPPORTED, RONDO_REASON_OTHER_DEVICE);
  assert_error(rondo_communicator_make_id(NULL, &id), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_communicator_make_id(t->device, NULL), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_communicator_from_id(t->device, NULL, 0, 1, NULL, &c), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_communicator_from_id(t->device, &id, 0, 1, NULL, NULL), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_communicator_from_id(t->device, &id, 0, 0, NULL, &c), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_communicator_from_id(t->device, &id, 3, 3, NULL, &c), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_communicator_from_environment(NULL, NULL, &c), BAD, RONDO_REASON_NULL_ARGUMENT);
}

/* Differing -------------------------------------------------------------------------------------------------------- */

/* What the last rank calls, and what the others call. */
typedef struct difference {
  rondo_status (*first)(const test_rank *rank), (*last)(const test_rank *rank);
  const char *of_first, *of_last; /* in the message */
} difference;

#define CALLS(name, ...)                           \
  static rondo_status name(const test_rank *r) {   \
    rondo_communicator *const c = r->communicator; \
    rondo_stream *const s = r->fixture.stream;     \
    return __VA_ARGS__;                            \
  }

CALLS(sum_64, rondo_all_reduce(c, s, r->src, r->dst, 64, RONDO_F32, RONDO_REDUCE_SUM))
CALLS(sum_65, rondo_all_reduce(c, s, r->src, r->dst, 65, RONDO_F32, RONDO_REDUCE_SUM))
CALLS(sum_64_i32, rondo_all_reduce(c, s, r->src, r->dst, 64, RONDO_I32, RONDO_REDUCE_SUM))
CALLS(min_64, rondo_all_reduce(c, s, r->src, r->dst, 64, RONDO_F32, RONDO_REDUCE_MIN))
CALLS(average_64, rondo_all_reduce(c, s, r->src, r->dst, 64, RONDO_F32, RONDO_REDUCE_AVERAGE))
CALLS(barrier, rondo_barrier(c, s))
CALLS(root_0, rondo_broadcast(c, s, r->src, r->dst, 64, RONDO_F32, 0))
CALLS(root_1, rondo_broadcast(c, s, r->src, r->dst, 64, RONDO_F32, 1))
CALLS(gather_4, rondo_all_gather(c, s, r->src, r->dst, 4, RONDO_F16))
CALLS(gather_5, rondo_all_gather(c, s, r->src, r->dst, 5, RONDO_F16))
CALLS(scatter_max, rondo_reduce_scatter(c, s, r->src, r->dst, 9, RONDO_BF16, RONDO_REDUCE_MAX))
CALLS(scatter_sum, rondo_reduce_scatter(c, s, r->src, r->dst, 9, RONDO_BF16, RONDO_REDUCE_SUM))
CALLS(exchange_7, rondo_all_to_all(c, s, r->src, r->dst, 7, RONDO_F64))
CALLS(exchange_8, rondo_all_to_all(c, s, r->src, r->dst, 8, RONDO_F64))
CALLS(send_to_last, rondo_send(c, s, r->src, 3, RONDO_F32, r->world_size - 1))
CALLS(receive_from_0, rondo_receive(c, s, r->dst, 4, RONDO_F32, 0))

static const difference differences[] = {
    {sum_64, sum_65, "all_reduce (sum) of 64 f32", "all_reduce (sum) of 65 f32"},
    {sum_64, sum_64_i32, "all_reduce (sum) of 64 f32", "all_reduce (sum) of 64 i32"},
    {sum_64, min_64, "all_reduce (sum) of 64 f32", "all_reduce (min) of 64 f32"},
    {sum_64, average_64, "all_reduce (sum) of 64 f32", "all_reduce (average) of 64 f32"},
    {sum_64, barrier, "all_reduce (sum) of 64 f32", "barrier"},
    {root_0, root_1, "broadcast (root 0) of 64 f32", "broadcast (root 1) of 64 f32"},
    {gather_4, gather_5, "all_gather of 4 f16", "all_gather of 5 f16"},
    {scatter_max, scatter_sum, "reduce_scatter (max) of 9 bf16", "reduce_scatter (sum) of 9 bf16"},
    {exchange_7, exchange_8, "all_to_all of 7 f64", "all_to_all of 8 f64"},
    {exchange_7, gather_4, "all_to_all of 7 f64", "all_gather of 4 f16"},
};
enum { DIFFERENCES = sizeof differences / sizeof differences[0] };

static rondo_status call_differently(test_rank *rank, void *user) {
  const difference *what = user;
  const bool is_last = rank->rank == rank->world_size - 1;
  TRY((is_last ? what->last : what->first)(rank));
  return rondo_stream_synchronize(rank->fixture.stream);
}

static void assert_differs(const test_rank *r, const char *rank_0, const char *rank_2) {
  char text[96];
  assert_int_equal(r->status, RONDO_EXECUTION_FAILED);
  (void)snprintf(text, sizeof text, "rank 0 calls %s, but", rank_0);
  assert_non_null(strstr(r->message, text));
  (void)snprintf(text, sizeof text, "rank 2 calls %s: call the same", rank_2);
  assert_non_null(strstr(r->message, text));
  assert_non_null(strstr(r->message, "'gradients'"));
  rondo_communicator_info info = {.struct_size = sizeof info};
  assert_ok(rondo_communicator_get_info(r->communicator, &info));
  assert_true(info.failed);
  assert_error(rondo_barrier(r->communicator, r->fixture.stream), RONDO_INVALID_STATE, RONDO_REASON_MISMATCH);
}

static const rondo_communicator_options gradients = {RONDO_COMMUNICATOR_OPTIONS_INIT, .name = "gradients"};

DEVICE_TEST(test_tr16_ranks_that_differ_all_learn_it) {
  test_ranks self;
  if (test_device_is("cuda")) skip();
  for (int i = 0; i < DIFFERENCES; i++) {
    difference what = differences[i];
    test_ranks_open(&self, &gradients);
    test_ranks_try(&self, call_differently, &what);
    for (uint32_t rank = 0; rank < self.count; rank++) assert_differs(&self.ranks[rank], what.of_first, what.of_last);
    test_ranks_close(&self);
  }
}

/* A send and its receive; and a send to a rank that calls a collective of all ranks. Rank 1 has no part in the first,
 * but waits in a barrier that the others do not reach. */
static rondo_status pair_differently(test_rank *rank, void *user) {
  const difference *what = user;
  if (rank->rank == 1) TRY(barrier(rank));
  if (rank->rank != 1) TRY((rank->rank == 0 ? what->first : what->last)(rank));
  return rondo_stream_synchronize(rank->fixture.stream);
}

DEVICE_TEST(test_mm3_pairs_that_differ_learn_it) {
  static const difference pairs[] = {
      {send_to_last, receive_from_0, "send (to 2) of 3 f32", "receive (from 0) of 4 f32"},
      {send_to_last, barrier, "send (to 2) of 3 f32", "barrier"},
      {barrier, receive_from_0, "barrier", "receive (from 0) of 4 f32"},
  };
  test_ranks self;
  if (test_device_is("cuda")) skip();
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    difference what = pairs[i];
    test_ranks_open(&self, &gradients);
    test_ranks_try(&self, pair_differently, &what);
    for (uint32_t rank = 0; rank < self.count; rank++) assert_differs(&self.ranks[rank], what.of_first, what.of_last);
    test_ranks_close(&self);
  }
}

/* Stopping --------------------------------------------------------------------------------------------------------- */

/* Rank 0 does something else, and the others call the collective. */
typedef enum stop { LEAVES, STAYS_AWAY, ABORTS, STOPS } stop;

static rondo_status stop_or_call(test_rank *rank, void *user) {
  const stop how = *(const stop *)user;
  if (rank->rank > 0) {
    const rondo_status status = rondo_all_reduce(rank->communicator, rank->fixture.stream, rank->src, rank->dst, 9,
                                                 RONDO_F64, RONDO_REDUCE_MAX);
    return status == RONDO_OK ? rondo_stream_synchronize(rank->fixture.stream) : status;
  }
  test_sleep_ms(5);
  rondo_communicator *communicator = rank->communicator;
  if (how == ABORTS) return rondo_communicator_abort(communicator);
  if (how == STAYS_AWAY) return RONDO_OK;
  rank->communicator = NULL;
  return rondo_communicator_destroy(communicator);
}

DEVICE_TEST(test_tr16_what_waits_for_a_lost_rank_fails) {
  static const rondo_reason reasons[STOPS] = {RONDO_REASON_PEER_LOST, RONDO_REASON_TIMED_OUT, RONDO_REASON_PEER_LOST};
  static const char *const texts[STOPS] = {"rank 0 has destroyed its communicator",
                                           "did not end within 300 ms: rank 0 did not call it",
                                           "rondo_communicator_abort was called"};
  test_ranks self;
  if (test_device_is("cuda")) skip();
  for (int i = 0; i < STOPS; i++) {
    stop how = (stop)i;
    test_ranks_open(&self, &(rondo_communicator_options){RONDO_COMMUNICATOR_OPTIONS_INIT, .timeout_ms = 300});
    test_ranks_try(&self, stop_or_call, &how);
    assert_int_equal(self.ranks[0].status, RONDO_OK);
    bool named = false;
    for (uint32_t rank = 1; rank < self.count; rank++) {
      assert_int_equal(self.ranks[rank].status, RONDO_EXECUTION_FAILED);
      assert_non_null(strstr(self.ranks[rank].message, "all_reduce (max) of 9 f64"));
      named = named || strstr(self.ranks[rank].message, texts[how]) != NULL;
      const rondo_status after = rondo_barrier(self.ranks[rank].communicator, self.ranks[rank].fixture.stream);
      assert_int_equal(after, RONDO_INVALID_STATE);
      /* One may have heard it from the other. */
      const rondo_reason reason = rondo_last_error()->reason;
      assert_true(reason == reasons[how] || reason == RONDO_REASON_PEER_LOST);
    }
    assert_true(named);
    test_ranks_close(&self);
  }
}

/* Rank 0 waits for rank 1 alone. */
static rondo_status send_to_nobody(test_rank *rank, void *user) {
  (void)user;
  if (rank->rank > 0) return RONDO_OK;
  TRY(rondo_send(rank->communicator, rank->fixture.stream, rank->src, 2, RONDO_F16, 1));
  return rondo_stream_synchronize(rank->fixture.stream);
}

DEVICE_TEST(test_mm3_what_nobody_receives_times_out) {
  test_ranks self;
  if (test_device_is("cuda")) skip();
  test_ranks_open(&self, &(rondo_communicator_options){RONDO_COMMUNICATOR_OPTIONS_INIT, .timeout_ms = 100});
  test_ranks_try(&self, send_to_nobody, NULL);
  assert_int_equal(self.ranks[0].status, RONDO_EXECUTION_FAILED);
  assert_non_null(strstr(self.ranks[0].message, "send (to 1) of 2 f16 did not end within 100 ms: rank 1 did not call"));
  test_ranks_close(&self);
}

/* Two ranks that both send first wait for each other. */
static rondo_status send_first(test_rank *rank, void *user) {
  const uint32_t other = 1 - rank->rank;
  (void)user;
  if (rank->rank > 1) return RONDO_OK;
  TRY(rondo_send(rank->communicator, rank->fixture.stream, rank->src, 1, RONDO_I64, other));
  TRY(rondo_receive(rank->communicator, rank->fixture.stream, rank->dst, 1, RONDO_I64, other));
  return rondo_stream_synchronize(rank->fixture.stream);
}

DEVICE_TEST(test_mm3_ranks_that_both_send_first_time_out) {
  test_ranks self;
  bool is_explained = false;
  if (test_device_is("cuda")) skip();
  test_ranks_open(&self, &(rondo_communicator_options){RONDO_COMMUNICATOR_OPTIONS_INIT, .timeout_ms = 100});
  test_ranks_try(&self, send_first, NULL);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(self.ranks[i].status, RONDO_EXECUTION_FAILED);
    is_explained = is_explained || strstr(self.ranks[i].message, "the ranks wait for each other") != NULL;
  }
  assert_true(is_explained);
  test_ranks_close(&self);
}

/* What is enqueued after the one that fails ends too, so that nothing waits for it. */
DEVICE_TEST(test_tr16_what_is_enqueued_after_a_failure_ends) {
  test_ranks self;
  if (test_device_is("cuda")) skip();
  test_ranks_open(&self, NULL);
  test_rank *rank = &self.ranks[0];
  for (int i = 0; i < 20; i++)
    assert_ok(rondo_all_reduce(rank->communicator, rank->fixture.stream, rank->src, rank->src, 10, RONDO_BF16,
                               RONDO_REDUCE_AVERAGE));
  assert_ok(rondo_communicator_abort(rank->communicator));
  assert_ok(rondo_communicator_abort(rank->communicator)); /* again */
  assert_ok(rondo_communicator_destroy(rank->communicator));
  rank->communicator = NULL;
  assert_error(rondo_stream_synchronize(rank->fixture.stream), RONDO_EXECUTION_FAILED, RONDO_REASON_ABORTED);
  assert_message("rank 0 of 3: rondo_communicator_abort was called");
  test_ranks_close(&self);
}

typedef struct aborting {
  rondo_communicator *communicator;
  rondo_status status, last;
} aborting;

static void abort_one(void *user) {
  aborting *self = user;
  self->status = rondo_communicator_abort(self->communicator);
  self->last = rondo_last_error()->status;
}

/* By a thread on which nothing has failed, nor does by this. */
static void assert_aborts(rondo_communicator *communicator) {
  aborting self = {.communicator = communicator};
  test_on_thread(abort_one, &self);
  assert_status(self.status, RONDO_OK);
  assert_int_equal(self.last, RONDO_OK);
}

/* An exec whose communicator failed returns the error at each launch, and the stream remains usable. */
DEVICE_TEST(test_tr16_launches_of_failed_communicators_fail) {
  test_ranks self;
  if (test_device_is("cuda")) skip();
  test_ranks_open(&self, NULL);
  test_rank *rank = &self.ranks[0];
  rondo_stream *stream = rank->fixture.stream;
  assert_ok(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_all_reduce(rank->communicator, stream, rank->src, rank->dst, 1, RONDO_F32, RONDO_REDUCE_SUM));
  rondo_graph *graph = test_capture_end(stream);
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, stream)); /* waits for the others, in vain */
  assert_status(rondo_stream_query(stream), RONDO_NOT_READY);
  assert_aborts(self.ranks[1].communicator);
  for (int i = 0; i < 3; i++) {
    assert_error(rondo_stream_synchronize(stream), RONDO_EXECUTION_FAILED, RONDO_REASON_PEER_LOST);
    assert_ok(rondo_stream_synchronize(stream)); /* said once */
    assert_ok(rondo_exec_launch(exec, stream));
  }
  assert_error(rondo_stream_synchronize(stream), RONDO_EXECUTION_FAILED, RONDO_REASON_PEER_LOST);
  uint32_t *word = test_words(&rank->fixture, 1);
  assert_int_equal(test_word(&rank->fixture, word), 0);
  test_words_free(&rank->fixture, word);
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
  test_ranks_close(&self);
}

/* Overlapping ------------------------------------------------------------------------------------------------------ */

/* In a graph the communicator is what both write. */
DEVICE_TEST(test_tr16_unordered_collectives_of_a_graph_are_a_race) {
  test_ranks self;
  rondo_exec *exec = NULL;
  if (test_device_is("cuda")) skip();
  test_ranks_open(&self, NULL);
  test_rank *rank = &self.ranks[0];
  rondo_stream *stream = rank->fixture.stream, *side = test_stream(&rank->fixture, "side");
  assert_ok(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  test_order(&rank->fixture, stream, side);
  assert_ok(rondo_all_reduce(rank->communicator, stream, rank->src, rank->src, 1, RONDO_F32, RONDO_REDUCE_SUM));
  assert_ok(rondo_all_reduce(rank->communicator, side, rank->dst, rank->dst, 1, RONDO_F32, RONDO_REDUCE_SUM));
  test_order(&rank->fixture, side, stream);
  rondo_graph *graph = test_capture_end(stream);
  assert_error(rondo_instantiate(graph, NULL, &exec), RONDO_INVALID_GRAPH, RONDO_REASON_RACE);
  assert_message("all_reduce");
  assert_null(exec);
  test_graph_destroy(graph);
  test_stream_destroy(side);
  test_ranks_close(&self);
}

/* On streams without order they are found when they run. */
DEVICE_TEST(test_tr16_collectives_that_overlap_fail) {
  test_ranks self;
  if (test_device_is("cuda")) skip();
  test_ranks_open(&self, NULL);
  test_rank *rank = &self.ranks[0];
  rondo_stream *streams[] = {rank->fixture.stream, test_stream(&rank->fixture, "side")};
  void *const buffers[] = {rank->src, rank->dst};
  for (int i = 0; i < 2; i++)
    assert_ok(rondo_all_reduce(rank->communicator, streams[i], buffers[i], buffers[i], 1, RONDO_F32, RONDO_REDUCE_SUM));
  for (int i = 0; i < 2; i++) {
    assert_error(rondo_stream_synchronize(streams[i]), RONDO_EXECUTION_FAILED, RONDO_REASON_OVERLAP);
    assert_message("in progress");
  }
  test_stream_destroy(streams[1]);
  test_ranks_close(&self);
}

/* Two execs of one graph on two streams. */
DEVICE_TEST(test_tr16_execs_that_overlap_fail) {
  test_ranks self;
  rondo_exec *execs[2];
  if (test_device_is("cuda")) skip();
  test_ranks_open(&self, NULL);
  test_rank *rank = &self.ranks[0];
  rondo_stream *streams[] = {rank->fixture.stream, test_stream(&rank->fixture, "side")};
  assert_ok(rondo_capture_begin(streams[0], RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_barrier(rank->communicator, streams[0]));
  rondo_graph *graph = test_capture_end(streams[0]);
  for (int i = 0; i < 2; i++) {
    execs[i] = test_instantiate(graph);
    assert_ok(rondo_exec_launch(execs[i], streams[i]));
  }
  for (int i = 0; i < 2; i++) {
    assert_error(rondo_stream_synchronize(streams[i]), RONDO_EXECUTION_FAILED, RONDO_REASON_OVERLAP);
    rondo_exec_destroy(execs[i]);
  }
  test_graph_destroy(graph);
  test_stream_destroy(streams[1]);
  test_ranks_close(&self);
}

/* Dividing -------------------------------------------------------------------------------------------------------- */

static const rondo_communicator_options hasty = {RONDO_COMMUNICATOR_OPTIONS_INIT, .join_timeout_ms = 60};

/* All but the last rank divide the group. */
typedef struct division {
  rondo_reason reasons[TEST_RANKS];
  bool last_leaves, last_aborts;
} division;

static rondo_status divide_but_last(test_rank *rank, void *user) {
  division *self = user;
  rondo_communicator *const old = rank->communicator;
  rondo_communicator *part = NULL;
  if (rank->rank + 1 < rank->world_size) {
    const rondo_status status = rondo_communicator_split(old, 0, 0, &part);
    if (status != RONDO_OK) self->reasons[rank->rank] = rondo_last_error()->reason;
    return part == NULL ? status : RONDO_OK;
  }
  test_sleep_ms(5);
  if (self->last_aborts) return rondo_communicator_abort(old);
  if (!self->last_leaves) return RONDO_OK;
  rank->communicator = NULL;
  return rondo_communicator_destroy(old);
}

static void assert_undivided(division what, const rondo_communicator_options *options, rondo_status status,
                             rondo_reason reason, const char *text) {
  test_ranks self;
  test_ranks_open(&self, options);
  test_ranks_try(&self, divide_but_last, &what);
  for (uint32_t i = 0; i + 1 < self.count; i++) {
    assert_int_equal(self.ranks[i].status, status);
    assert_int_equal(what.reasons[i], reason);
    if (strstr(self.ranks[i].message, text) == NULL) fail_msg("no '%s' in '%s'", text, self.ranks[i].message);
  }
  test_ranks_close(&self);
}

DEVICE_TEST(test_mm3_a_division_without_all_ranks_fails) {
  if (test_device_is("cuda")) skip();
  assert_undivided((division){.last_leaves = false}, &hasty, RONDO_UNAVAILABLE, RONDO_REASON_TIMED_OUT,
                   "rank 2 did not call rondo_communicator_split within 60 ms");
  assert_undivided((division){.last_leaves = true}, NULL, RONDO_UNAVAILABLE, RONDO_REASON_PEER_LOST,
                   "rank 2 has destroyed its communicator");
  assert_undivided((division){.last_aborts = true}, NULL, RONDO_INVALID_STATE, RONDO_REASON_PEER_LOST,
                   "rank 2 has failed: rondo_communicator_abort was called");
}

/* A division that has timed out may be tried again. */
static rondo_status divide_all(test_rank *rank, void *user) {
  rondo_communicator *part;
  (void)user;
  TRY(rondo_communicator_split(rank->communicator, 0, 0, &part));
  return rondo_communicator_destroy(part);
}

DEVICE_TEST(test_mm3_a_division_may_be_tried_again) {
  test_ranks self;
  rondo_communicator *part;
  if (test_device_is("cuda")) skip();
  test_ranks_open(&self, &(rondo_communicator_options){RONDO_COMMUNICATOR_OPTIONS_INIT, .join_timeout_ms = 2000});
  assert_error(rondo_communicator_split(self.ranks[1].communicator, 0, 0, &part), RONDO_UNAVAILABLE,
               RONDO_REASON_TIMED_OUT);
  assert_message("rondo_communicator_split: rank 0 did not call");
  test_ranks_do(&self, divide_all, NULL);
  test_ranks_close(&self);
}

DEVICE_TEST(test_mm3_failed_groups_are_not_divided) {
  test_ranks self;
  rondo_communicator *part;
  if (test_device_is("cuda")) skip();
  test_ranks_open(&self, NULL);
  assert_aborts(self.ranks[0].communicator);
  assert_error(rondo_communicator_split(self.ranks[0].communicator, 0, 0, &part), RONDO_INVALID_STATE,
               RONDO_REASON_ABORTED);
  assert_null(part);
  test_ranks_close(&self);
}

/* One thread divides the group again and again, and waits each time; another calls a collective of the same
 * communicator until it hears of that. */
typedef struct two_threads {
  test_rank *rank;
  atomic_bool is_found;
} two_threads;

static void divide_in_vain(void *user) {
  two_threads *self = user;
  rondo_communicator *part;
  do {
    self->rank->status = rondo_communicator_split(self->rank->communicator, 0, 0, &part);
  } while (!atomic_load(&self->is_found));
}

static void call_meanwhile(void *user) {
  two_threads *self = user;
  while (rondo_barrier(self->rank->communicator, NULL) != RONDO_INVALID_STATE) test_sleep_ms(1);
  (void)snprintf(self->rank->message, sizeof self->rank->message, "%s", rondo_last_error()->message);
  atomic_store(&self->is_found, true);
}

DEVICE_TEST(test_tr16_two_threads_in_one_communicator_are_found) {
  test_ranks self;
  two_threads both = {.rank = &self.ranks[0]};
  const test_thread threads[] = {{divide_in_vain, &both}, {call_meanwhile, &both}};
  if (test_device_is("cuda")) skip();
  test_ranks_open(&self, &(rondo_communicator_options){RONDO_COMMUNICATOR_OPTIONS_INIT, .join_timeout_ms = 100});
  test_on_threads(threads, 2);
  const char *const text = "rondo_barrier: another thread is calling a function of this communicator";
  assert_non_null(strstr(both.rank->message, text));
  test_ranks_close(&self);
}

/* From a host function nothing is called. */
static rondo_status call_inside(void *user) {
  test_rank *rank = user;
  rank->status = rondo_barrier(rank->communicator, rank->fixture.stream);
  return RONDO_OK;
}

DEVICE_TEST(test_tr16_host_functions_call_none) {
  test_ranks self;
  test_ranks_open(&self, NULL);
  test_rank *rank = &self.ranks[0];
  assert_ok(rondo_host_async(rank->fixture.stream, call_inside, rank));
  assert_ok(rondo_stream_synchronize(rank->fixture.stream));
  assert_int_equal(rank->status, RONDO_INVALID_STATE);
  test_ranks_close(&self);
}
