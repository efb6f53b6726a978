/* SPDX-License-Identifier: MIT
 * Collectives by the fake NCCL: calls that it refuses, when and in which order it is released, aborts (TR-16).
 */
#include <string.h>

#include "fake_cuda/fake_nccl.h"
#include "support/test_ranks.h"

static const fake_nccl_control *nccl;
static test_ranks self;                         /* open in every test */
static test_rank *const first = &self.ranks[0]; /* for work on one rank */

static void reset_nccl(void) {
  nccl = fake_nccl_get();
  assert_non_null(nccl);
  nccl->refuse(NULL, 0);
  nccl->set_async_error(0);
}

static int set_up(void **state) {
  (void)state;
  reset_nccl();
  test_ranks_open(&self, NULL);
  return 0;
}

static int set_up_devices(void **state) {
  (void)state;
  reset_nccl();
  test_ranks_open_devices(&self);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  test_ranks_close(&self);
  assert_int_equal(nccl->live(), 0);
  return 0;
}

static rondo_status all_reduce(test_rank *rank, void *user) {
  (void)user;
  TRY(rondo_all_reduce(rank->communicator, rank->fixture.stream, rank->src, rank->dst, 4, RONDO_F32, RONDO_REDUCE_SUM));
  return rondo_stream_synchronize(rank->fixture.stream);
}

#define DEVICES_TEST(name) TEST_DEFINE(name, void *no_fixture, set_up_devices, tear_down)

DEVICES_TEST(refusals_while_joining_are_reported) {
  static const char *const calls[] = {"ncclGetUniqueId", "ncclGroupStart", "ncclCommInitRank", "ncclGroupEnd"};
  rondo_communicator *made[2];
  rondo_device *devices[] = {first->fixture.device, self.ranks[1].fixture.device};
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    nccl->refuse(calls[i], 5);
    assert_fails(rondo_communicator_create_all(devices, 2, NULL, made), RONDO_EXECUTION_FAILED);
    assert_message("invalid usage");
    assert_int_equal(rondo_last_error()->driver_code, 5);
    assert_null(made[0]);
    assert_null(made[1]);
    assert_int_equal(nccl->live(), 0);
  }
  assert_ok(rondo_communicator_create_all(devices, 2, NULL, made));
  for (int i = 0; i < 2; i++) self.ranks[i].communicator = made[i];
  test_ranks_do(&self, all_reduce, NULL);
}

DEVICES_TEST(a_group_needs_gpus_of_its_own_and_of_one_kind) {
  rondo_device *cpu, *again, *const gpu = first->fixture.device;
  rondo_communicator *made[2];
  assert_ok(rondo_device_open("cpu", NULL, &cpu));
  assert_ok(rondo_device_open("cuda:0", NULL, &again));
  assert_error(rondo_communicator_create_all((rondo_device *[]){gpu, gpu}, 2, NULL, made), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_MISMATCH);
  assert_message("ranks 0 and 1 are on device 'cuda:0': give each rank its own GPU");
  assert_error(rondo_communicator_create_all((rondo_device *[]){gpu, again}, 2, NULL, made), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_MISMATCH);
  assert_message("give each rank its own GPU");
  assert_error(rondo_communicator_create_all((rondo_device *[]){gpu, cpu}, 2, NULL, made), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_MISMATCH);
  assert_message("'cuda:0' and 'cpu:0' are of different kinds");
  assert_null(made[0]);
  assert_null(made[1]);
  assert_ok(rondo_device_close(again));
  assert_ok(rondo_device_close(cpu));
}

#define NCCL_TEST(name) TEST_DEFINE(name, void *no_fixture, set_up, tear_down)

NCCL_TEST(a_refused_call_is_reported_and_the_next_one_works) {
  nccl->refuse("ncclAllReduce", 1);
  assert_fails(all_reduce(first, NULL), RONDO_EXECUTION_FAILED);
  assert_message("rondo_all_reduce");
  assert_message("unhandled cuda error");
  test_ranks_do(&self, all_reduce, NULL);
}

static void reduce_on(void *stream) {
  assert_fails(rondo_all_reduce(first->communicator, stream, first->src, first->dst, 4, RONDO_F32, RONDO_REDUCE_SUM),
               RONDO_INVALID_STATE);
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_WRONG_THREAD);
}

/* NCCL would get the handle, which is another stream on this thread. */
NCCL_TEST(ad1_the_default_stream_of_another_thread_is_refused) {
  rondo_stream *stream;
  assert_ok(rondo_stream_adopt(first->fixture.device, (void *)(uintptr_t)2, NULL, &stream)); /* CU_STREAM_PER_THREAD */
  test_on_thread(reduce_on, stream);
  assert_ok(rondo_stream_destroy(stream));
}

NCCL_TEST(a_refused_call_makes_the_capture_invalid) {
  rondo_graph *graph = NULL;
  assert_ok(rondo_capture_begin(first->fixture.stream, RONDO_CAPTURE_THREAD_LOCAL));
  nccl->refuse("ncclBroadcast", 4);
  assert_fails(rondo_broadcast(first->communicator, first->fixture.stream, first->src, first->dst, 4, RONDO_F32, 0),
               RONDO_EXECUTION_FAILED);
  assert_message("NCCL_RUNTIME_CONNECT=0");
  assert_fails(rondo_capture_end(first->fixture.stream, &graph), RONDO_CAPTURE_INVALID);
  assert_message("rondo_broadcast");
  assert_null(graph);
  test_ranks_do(&self, all_reduce, NULL);
}

/* NCCL connects ranks at their first use, and enables peer access for that, which captures forbid. */
static rondo_status capture_first(test_rank *rank, void *user) {
  const rondo_capture_mode *mode = user;
  rondo_stream *stream = rank->fixture.stream;
  rondo_graph *graph = NULL;
  TRY(rondo_capture_begin(stream, *mode));
  rondo_status status = rondo_barrier(rank->communicator, stream);
  if (status == RONDO_OK) status = rondo_broadcast(rank->communicator, stream, rank->src, rank->dst, 4, RONDO_F32, 0);
  const rondo_status ended = rondo_capture_end(stream, &graph);
  TRY(status);
  TRY(ended);
  size_t kernels = 0;
  TRY(rondo_graph_nodes(graph, NULL, &kernels));
  TRY(rondo_graph_destroy(graph));
  return kernels == 2 ? RONDO_OK : RONDO_INVALID_DATA;
}

NCCL_TEST(ranks_connect_in_captures_of_all_modes) {
  rondo_capture_mode modes[] = {RONDO_CAPTURE_GLOBAL, RONDO_CAPTURE_THREAD_LOCAL, RONDO_CAPTURE_RELAXED};
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
    test_ranks_do(&self, capture_first, &modes[i]);
    test_ranks_do(&self, all_reduce, NULL);
    test_ranks_close(&self);
    test_ranks_open(&self, NULL); /* ranks that are not connected */
  }
}

NCCL_TEST(a_failed_communicator_refuses_all) {
  rondo_communicator_info info = {.struct_size = sizeof info};
  nccl->set_async_error(6);
  assert_error(rondo_barrier(first->communicator, first->fixture.stream), RONDO_INVALID_STATE, RONDO_REASON_PEER_LOST);
  assert_message("remote process exited");
  assert_ok(rondo_communicator_get_info(first->communicator, &info));
  assert_true(info.failed);
  nccl->set_async_error(0);
}

/* One rank calls, the other never does: the stream waits, until the communicator is aborted. */
NCCL_TEST(aborting_ends_what_waits) {
  test_ranks_do(&self, all_reduce, NULL); /* connects, so that later calls return at once */
  assert_ok(rondo_all_reduce(first->communicator, first->fixture.stream, first->src, first->dst, 4, RONDO_F32,
                             RONDO_REDUCE_SUM));
  assert_status(rondo_stream_query(first->fixture.stream), RONDO_NOT_READY);
  assert_ok(rondo_communicator_abort(first->communicator));
  assert_ok(rondo_communicator_abort(first->communicator));
  assert_ok(rondo_stream_synchronize(first->fixture.stream));
  assert_error(rondo_barrier(first->communicator, first->fixture.stream), RONDO_INVALID_STATE, RONDO_REASON_ABORTED);
  assert_int_equal(nccl->live(), self.count - 1);
}

/* A graph, its clone and an exec retain NCCL's communicator, because they have its kernels. */
static rondo_status keep_in_graphs(test_rank *rank, void *user) {
  rondo_stream *stream = rank->fixture.stream;
  rondo_graph *graph, *clone;
  rondo_exec **execs = user;
  rondo_communicator *communicator = rank->communicator;
  TRY(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  for (int i = 0; i < 3; i++) TRY(rondo_barrier(communicator, stream));
  TRY(rondo_capture_end(stream, &graph));
  rank->communicator = NULL;
  TRY(rondo_communicator_destroy(communicator));
  TRY(rondo_graph_clone(graph, &clone));
  TRY(rondo_graph_destroy(graph));
  TRY(rondo_instantiate(clone, NULL, &execs[rank->rank]));
  return rondo_graph_destroy(clone);
}

static rondo_status launch_twice(test_rank *rank, void *user) {
  rondo_exec **execs = user;
  for (int i = 0; i < 2; i++) TRY(rondo_exec_launch(execs[rank->rank], rank->fixture.stream));
  return rondo_stream_synchronize(rank->fixture.stream);
}

NCCL_TEST(captured_work_keeps_the_communicator) {
  rondo_exec *execs[TEST_RANKS];
  test_ranks_do(&self, keep_in_graphs, execs);
  assert_int_equal(nccl->live(), self.count);
  test_ranks_do(&self, launch_twice, execs);
  for (uint32_t i = 0; i < self.count; i++) rondo_exec_destroy(execs[i]);
  for (uint32_t i = 0; i < self.count; i++) assert_ok(rondo_device_synchronize(self.ranks[i].fixture.device));
  assert_int_equal(nccl->live(), 0);
}

/* A discarded capture releases the communicator. */
NCCL_TEST(a_discarded_capture_keeps_nothing) {
  test_ranks_do(&self, all_reduce, NULL); /* connects */
  rondo_stream *stream = test_stream(&first->fixture, "discarded");
  assert_ok(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_barrier(first->communicator, stream));
  test_stream_destroy(stream);
  assert_ok(rondo_communicator_destroy(first->communicator));
  first->communicator = NULL;
  assert_int_equal(nccl->live(), self.count - 1);
}

NCCL_TEST(every_call_goes_to_nccl) {
  const uint64_t before = nccl->calls();
  test_ranks_do(&self, all_reduce, NULL);
  assert_int_equal(nccl->calls() - before, self.count);
}
