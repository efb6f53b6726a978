/* SPDX-License-Identifier: MIT
 * All-to-all, send and receive, averages, 16-bit types and subgroups by NCCL, on the fake one, eager and captured
 * (MM-3).
 */
#include <string.h>

#include "base/numbers/half_float.h"
#include "fake_cuda/fake_nccl.h"
#include "support/test_ranks.h"

enum { COUNT = 5, MOST = COUNT * TEST_RANKS };

static const fake_nccl_control *nccl;
static test_ranks self;
static test_rank *const first = &self.ranks[0];

static int set_up(void **state) {
  (void)state;
  nccl = fake_nccl_get();
  assert_non_null(nccl);
  nccl->refuse(NULL, 0);
  test_ranks_open(&self, NULL);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  test_ranks_close(&self);
  assert_int_equal(nccl->live(), 0);
  return 0;
}

#define NCCL_TEST(name) TEST_DEFINE(name, void *no_fixture, set_up, tear_down)

/* Operations ------------------------------------------------------------------------------------------------------ */

static float value_of(uint32_t rank, size_t i) { return (float)(100 * rank + i); }

static const float untouched = -1;

typedef struct operation {
  const char *name;
  rondo_status (*call)(test_rank *rank);
  float (*expected)(const test_rank *rank, size_t i);
  size_t count; /* of results */
} operation;

static rondo_status call_all_to_all(test_rank *rank) {
  return rondo_all_to_all(rank->communicator, rank->fixture.stream, rank->src, rank->dst, COUNT, RONDO_F32);
}
static float all_to_all(const test_rank *rank, size_t i) {
  return value_of((uint32_t)(i / COUNT), rank->rank * COUNT + i % COUNT);
}

static uint32_t before(const test_rank *rank) { return (rank->rank + rank->world_size - 1) % rank->world_size; }

static rondo_status call_ring(test_rank *rank) {
  return rondo_send_receive(rank->communicator, rank->fixture.stream, rank->src, (rank->rank + 1) % rank->world_size,
                            rank->dst, before(rank), COUNT, RONDO_F32);
}
static float ring(const test_rank *rank, size_t i) { return value_of(before(rank), i); }

static rondo_status call_itself(test_rank *rank) {
  return rondo_send_receive(rank->communicator, rank->fixture.stream, rank->src, rank->rank, rank->dst, rank->rank,
                            COUNT, RONDO_F32);
}
static float itself(const test_rank *rank, size_t i) { return value_of(rank->rank, i); }

static rondo_status call_pair(test_rank *rank) {
  rondo_stream *stream = rank->fixture.stream;
  if (rank->rank == 0) return rondo_send(rank->communicator, stream, rank->src, COUNT, RONDO_F32, 1);
  return rondo_receive(rank->communicator, stream, rank->dst, COUNT, RONDO_F32, 0);
}
static float pair(const test_rank *rank, size_t i) { return rank->rank == 0 ? untouched : value_of(0, i); }

static rondo_status call_average(test_rank *rank) {
  return rondo_all_reduce(rank->communicator, rank->fixture.stream, rank->src, rank->dst, COUNT, RONDO_F32,
                          RONDO_REDUCE_AVERAGE);
}
static float average(const test_rank *rank, size_t i) {
  return (value_of(0, i) + value_of(rank->world_size - 1, i)) / 2;
}

static rondo_status call_scattered_average(test_rank *rank) {
  return rondo_reduce_scatter(rank->communicator, rank->fixture.stream, rank->src, rank->dst, COUNT, RONDO_F32,
                              RONDO_REDUCE_AVERAGE);
}
static float scattered_average(const test_rank *rank, size_t i) { return average(rank, rank->rank * COUNT + i); }

static const operation operations[] = {
    {"all_to_all", call_all_to_all, all_to_all, 2 * COUNT},
    {"ring", call_ring, ring, COUNT},
    {"itself", call_itself, itself, COUNT},
    {"pair", call_pair, pair, COUNT},
    {"average", call_average, average, COUNT},
    {"scattered", call_scattered_average, scattered_average, COUNT},
};

typedef struct trial {
  const operation *operation;
  bool is_captured;
} trial;

static rondo_status launch_captured(test_rank *rank, const operation *tried) {
  rondo_stream *stream = rank->fixture.stream;
  rondo_graph *graph;
  rondo_exec *exec;
  TRY(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(tried->call(rank));
  TRY(rondo_capture_end(stream, &graph));
  TRY(rondo_instantiate(graph, NULL, &exec));
  TRY(rondo_graph_destroy(graph));
  rondo_status status = rondo_exec_launch(exec, stream);
  if (status == RONDO_OK) status = rondo_exec_launch(exec, stream);
  if (status == RONDO_OK) status = rondo_stream_synchronize(stream);
  rondo_exec_destroy(exec);
  return status;
}

static rondo_status try_operation(test_rank *rank, void *user) {
  const trial *self_trial = user;
  const operation *tried = self_trial->operation;
  rondo_stream *stream = rank->fixture.stream;
  float src[MOST], dst[MOST];
  for (size_t i = 0; i < MOST; i++) {
    src[i] = value_of(rank->rank, i);
    dst[i] = untouched;
  }
  TRY(rondo_copy_async(stream, rank->src, src, sizeof src));
  TRY(rondo_copy_async(stream, rank->dst, dst, sizeof dst));
  TRY(rondo_stream_synchronize(stream));
  TRY(self_trial->is_captured ? launch_captured(rank, tried) : tried->call(rank));
  TRY(rondo_copy_async(stream, dst, rank->dst, sizeof dst));
  TRY(rondo_stream_synchronize(stream));
  for (size_t i = 0; i < MOST; i++) {
    const float expected = i < tried->count ? tried->expected(rank, i) : untouched;
    if (dst[i] == expected) continue;
    print_error("%s on rank %u: %g in place of %g at %zu\n", tried->name, rank->rank, (double)dst[i], (double)expected,
                i);
    return RONDO_INVALID_DATA;
  }
  return RONDO_OK;
}

NCCL_TEST(operations_compute_what_they_say) {
  for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
    for (int form = 0; form < 2; form++) {
      trial t = {&operations[i], form == 1};
      const uint64_t calls = nccl->calls();
      test_ranks_do(&self, try_operation, &t);
      assert_int_equal(nccl->calls() - calls, self.count); /* one kernel each */
    }
  }
}

/* Ranks connect in the capture. */
NCCL_TEST(the_first_call_may_be_captured) {
  for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
    trial t = {&operations[i], true};
    test_ranks_do(&self, try_operation, &t);
    test_ranks_close(&self);
    test_ranks_open(&self, NULL);
  }
}

/* Sums of 16-bit types are rounded once a rank. */
static rondo_status sum_halves(test_rank *rank, void *user) {
  const rondo_type type = *(const rondo_type *)user;
  const bool is_f16 = type == RONDO_F16;
  rondo_stream *stream = rank->fixture.stream;
  uint16_t halves[COUNT];
  for (size_t i = 0; i < COUNT; i++)
    halves[i] = is_f16 ? rondo_to_f16((float)i + 0.5f) : rondo_to_bf16((float)i + 0.5f);
  TRY(rondo_copy_async(stream, rank->src, halves, sizeof halves));
  TRY(rondo_all_reduce(rank->communicator, stream, rank->src, rank->dst, COUNT, type, RONDO_REDUCE_SUM));
  TRY(rondo_all_reduce(rank->communicator, stream, rank->dst, rank->dst, COUNT, type, RONDO_REDUCE_AVERAGE));
  TRY(rondo_copy_async(stream, halves, rank->dst, sizeof halves));
  TRY(rondo_stream_synchronize(stream));
  for (size_t i = 0; i < COUNT; i++) {
    const float sum = is_f16 ? rondo_from_f16(halves[i]) : rondo_from_bf16(halves[i]);
    if (sum != (float)rank->world_size * ((float)i + 0.5f)) return RONDO_INVALID_DATA;
  }
  return RONDO_OK;
}

NCCL_TEST(sixteen_bit_types_are_summed) {
  rondo_type types[] = {RONDO_F16, RONDO_BF16};
  for (size_t i = 0; i < 2; i++) test_ranks_do(&self, sum_halves, &types[i]);
}

NCCL_TEST(integers_have_no_average) {
  assert_invalid(rondo_all_reduce(first->communicator, first->fixture.stream, first->src, first->dst, COUNT, RONDO_I32,
                                  RONDO_REDUCE_AVERAGE),
                 RONDO_REASON_TYPE);
}

/* Refusals -------------------------------------------------------------------------------------------------------- */

static const char *const group_calls[] = {"ncclGroupStart", "ncclSend", "ncclRecv", "ncclGroupEnd"};
enum { GROUP_CALLS = sizeof group_calls / sizeof *group_calls };

static void check_refused(rondo_status status, const char *call) {
  assert_int_equal(status, RONDO_EXECUTION_FAILED);
  assert_int_equal(rondo_last_error()->driver_code, 3);
  assert_message(call);
  assert_message("internal error");
}

/* NCCL's group of calls has ended, so the next call works. */
NCCL_TEST(refused_sends_are_told_and_the_next_one_works) {
  trial t = {&operations[0], false};
  for (int i = 0; i < GROUP_CALLS; i++) {
    nccl->refuse(group_calls[i], 3);
    check_refused(call_itself(first), "rondo_send_receive");
    nccl->refuse(group_calls[i], 3);
    check_refused(call_all_to_all(first), "rondo_all_to_all");
    test_ranks_do(&self, try_operation, &t);
  }
}

NCCL_TEST(a_refused_send_makes_the_capture_invalid) {
  for (int i = 0; i < GROUP_CALLS; i++) {
    rondo_graph *graph = NULL;
    assert_ok(rondo_capture_begin(first->fixture.stream, RONDO_CAPTURE_THREAD_LOCAL));
    nccl->refuse(group_calls[i], 3);
    check_refused(call_itself(first), "NCCL_RUNTIME_CONNECT=0");
    assert_fails(rondo_capture_end(first->fixture.stream, &graph), RONDO_CAPTURE_INVALID);
    assert_message("rondo_send_receive");
    assert_null(graph);
  }
}

/* A receive that waits for a rank that never sends. */
NCCL_TEST(aborting_ends_a_receive_that_waits) {
  trial t = {&operations[1], false};
  test_ranks_do(&self, try_operation, &t); /* connects */
  assert_ok(rondo_receive(first->communicator, first->fixture.stream, first->dst, COUNT, RONDO_F32, 1));
  assert_status(rondo_stream_query(first->fixture.stream), RONDO_NOT_READY);
  assert_ok(rondo_communicator_abort(first->communicator));
  assert_ok(rondo_stream_synchronize(first->fixture.stream));
  assert_error(call_itself(first), RONDO_INVALID_STATE, RONDO_REASON_ABORTED);
}

/* Subgroups ------------------------------------------------------------------------------------------------------- */

typedef struct split_task {
  uint32_t colors[TEST_RANKS], keys[TEST_RANKS];
  uint32_t ranks[TEST_RANKS], world_sizes[TEST_RANKS]; /* expected */
  rondo_communicator *made[TEST_RANKS];
} split_task;

static rondo_status split(test_rank *rank, void *user) {
  split_task *task = user;
  const uint32_t own = rank->rank;
  return rondo_communicator_split(rank->communicator, task->colors[own], task->keys[own], &task->made[own]);
}

/* The sum on the subgroup, eager and captured: 100 times the old ranks in it. */
static rondo_status use_subgroup(test_rank *rank, void *user) {
  split_task *task = user;
  rondo_communicator *const whole = rank->communicator;
  rondo_communicator_info info = {.struct_size = sizeof info};
  TRY(rondo_communicator_get_info(task->made[rank->rank], &info));
  if (info.rank != task->ranks[rank->rank] || info.world_size != task->world_sizes[rank->rank])
    return RONDO_INVALID_DATA;
  if (strcmp(info.engine, "NCCL") != 0) return RONDO_INVALID_DATA;
  test_rank part = *rank;
  part.communicator = task->made[rank->rank];
  part.rank = info.rank;
  part.world_size = info.world_size;
  for (int form = 0; form < 2; form++) {
    trial t = {&operations[form], form == 1};
    if (info.world_size == 1) t.operation = &operations[2];
    TRY(try_operation(&part, &t));
  }
  trial t = {&operations[0], false};
  rank->communicator = whole;
  return try_operation(rank, &t);
}

NCCL_TEST(subgroups_compute_beside_the_group) {
  split_task tasks[] = {
      {.colors = {0, 0}, .keys = {0, 0}, .ranks = {0, 1}, .world_sizes = {2, 2}},
      {.colors = {7, 7}, .keys = {5, 3}, .ranks = {1, 0}, .world_sizes = {2, 2}},
      {.colors = {INT32_MAX, INT32_MAX}, .keys = {UINT32_MAX, 0}, .ranks = {1, 0}, .world_sizes = {2, 2}},
      {.colors = {0, 1}, .keys = {0, 0}, .ranks = {0, 0}, .world_sizes = {1, 1}},
  };
  for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
    test_ranks_do(&self, split, &tasks[i]);
    assert_int_equal(nccl->live(), 2 * self.count);
    test_ranks_do(&self, use_subgroup, &tasks[i]);
    for (uint32_t k = 0; k < self.count; k++) assert_ok(rondo_communicator_destroy(tasks[i].made[k]));
    assert_int_equal(nccl->live(), self.count);
  }
}

/* The subgroup outlives the group. */
NCCL_TEST(the_group_may_go_first) {
  split_task task = {.colors = {0, 0}, .keys = {1, 0}};
  trial t = {&operations[3], true};
  test_ranks_do(&self, split, &task);
  for (uint32_t k = 0; k < self.count; k++) {
    assert_ok(rondo_communicator_destroy(self.ranks[k].communicator));
    self.ranks[k].communicator = task.made[k];
    self.ranks[k].rank = 1 - k;
  }
  test_ranks_do(&self, try_operation, &t);
}

NCCL_TEST(refused_splits_are_told) {
  static const char *const calls[] = {"ncclCommSplit", "ncclCommUserRank", "ncclCommCount"};
  rondo_communicator *whole[1], *made;
  assert_ok(rondo_communicator_create_all(&first->fixture.device, 1, NULL, whole));
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    nccl->refuse(calls[i], 5);
    assert_fails(rondo_communicator_split(whole[0], 0, 0, &made), RONDO_EXECUTION_FAILED);
    assert_message("rondo_communicator_split");
    assert_message("dividing NCCL's group");
    assert_null(made);
    assert_int_equal(nccl->live(), self.count + 1);
  }
  assert_invalid(rondo_communicator_split(whole[0], 1u << 31, 0, &made), RONDO_REASON_OUT_OF_RANGE);
  assert_message("color 2147483648");
  assert_ok(rondo_communicator_split(whole[0], 0, 0, &made));
  assert_ok(rondo_communicator_destroy(made));
  assert_ok(rondo_communicator_abort(whole[0]));
  assert_error(rondo_communicator_split(whole[0], 0, 0, &made), RONDO_INVALID_STATE, RONDO_REASON_ABORTED);
  assert_ok(rondo_communicator_destroy(whole[0]));
}
