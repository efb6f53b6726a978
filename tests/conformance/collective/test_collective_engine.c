/* SPDX-License-Identifier: MIT
 * Communicators on an engine of the program's own (MM-1, MM-3): what <rondo/collective_engine.h> promises an engine
 * about its arguments, its threads and its life, and what becomes of its failures.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "support/test_ranks.h"

#define BAD RONDO_INVALID_ARGUMENT

/* An engine --------------------------------------------------------------------------------------------------------
 * Rank 1 of 4. A collective is done after `tests` calls of test, or never, and moves nothing. */

enum { NEVER = INT32_MAX, MOST_WORKS = 64 };

/* A thread that uses the communicator while another one does. */
typedef struct intruder {
  rondo_communicator *communicator;
  rondo_stream *stream;
  rondo_status status;
  rondo_reason reason;
} intruder;

typedef struct engine {
  int tests;
  bool never_ends;           /* and is not made to */
  bool is_polled_by_workers; /* a collective ends only when a thread that runs kernels polls, three kernels later */
  _Atomic rondo_status start_fails, test_fails, watch_fails, split_fails;
  struct engine *child; /* made by split */
  intruder *intruder;   /* comes during split */
  /* What happened. */
  rondo_collective works[MOST_WORKS];
  bool captured[MOST_WORKS];
  int kernels_before[MOST_WORKS]; /* kernels of busy() that had ended when the collective started */
  char message[512];              /* of notify */
  atomic_int starts, watches, absents, notifies, closes, polls; /* polls: of the last collective */
  atomic_int inside, overlaps, late; /* calls now; two at once; after close or without a collective */
} engine;

static atomic_int busy_kernels; /* that have ended */
static _Thread_local bool runs_kernels;

static void busy(rondo_blocks blocks, void *const *args) {
  (void)blocks, (void)args;
  runs_kernels = true;
  test_sleep_ms(1);
  atomic_fetch_add(&busy_kernels, 1);
}

static rondo_status report(rondo_status status, const char *message) {
  const rondo_error error = {
      .status = status, .reason = RONDO_REASON_PEER_LOST, .node = RONDO_NO_NODE, .message = message};
  return rondo_error_set(&error);
}

static void enter(engine *self) {
  if (atomic_fetch_add(&self->inside, 1) != 0) atomic_fetch_add(&self->overlaps, 1);
  if (atomic_load(&self->closes) != 0) atomic_fetch_add(&self->late, 1);
}

static void leave(engine *self) { atomic_fetch_sub(&self->inside, 1); }

static rondo_status start(void *user, const rondo_collective *work, bool is_captured) {
  engine *self = user;
  enter(self);
  const int number = atomic_fetch_add(&self->starts, 1);
  self->works[number % MOST_WORKS] = *work;
  self->captured[number % MOST_WORKS] = is_captured;
  self->kernels_before[number % MOST_WORKS] = atomic_load(&busy_kernels);
  atomic_store(&self->polls, 0);
  const rondo_status status = atomic_load(&self->start_fails);
  leave(self);
  return status == RONDO_OK ? RONDO_OK : report(status, "it does not start");
}

static rondo_status test(void *user, bool *out_is_done) {
  engine *self = user;
  enter(self);
  if (atomic_load(&self->starts) == 0) atomic_fetch_add(&self->late, 1);
  const int before = self->kernels_before[(atomic_load(&self->starts) + MOST_WORKS - 1) % MOST_WORKS];
  const bool may_end = !self->is_polled_by_workers || (runs_kernels && atomic_load(&busy_kernels) >= before + 3);
  *out_is_done = atomic_fetch_add(&self->polls, 1) >= self->tests && may_end;
  const rondo_status status = atomic_load(&self->test_fails);
  leave(self);
  return status == RONDO_OK ? RONDO_OK : report(status, "rank 3 is gone");
}

static rondo_status watch(void *user) {
  engine *self = user;
  enter(self);
  atomic_fetch_add(&self->watches, 1);
  const rondo_status status = atomic_load(&self->watch_fails);
  leave(self);
  return status == RONDO_OK ? RONDO_OK : report(status, "rank 2 has failed");
}

static void absent(void *user, char *text, size_t bytes) {
  engine *self = user;
  atomic_fetch_add(&self->absents, 1);
  (void)snprintf(text, bytes, "rank 2 sleeps");
}

static void notify(void *user, const char *message) {
  engine *self = user;
  (void)snprintf(self->message, sizeof self->message, "%s", message);
  atomic_fetch_add(&self->notifies, 1);
}

static void close_engine(void *user) {
  engine *self = user;
  enter(self);
  atomic_fetch_add(&self->closes, 1);
  leave(self);
}

static rondo_collective_engine table_of(engine *self);

static void *intrude(void *user) {
  intruder *self = user;
  self->status = rondo_barrier(self->communicator, self->stream);
  self->reason = rondo_last_error()->reason;
  return NULL;
}

static rondo_status split(void *user, uint32_t color, uint32_t key, uint32_t timeout_ms, rondo_collective_engine *out) {
  engine *self = user;
  if (self->intruder != NULL) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, intrude, self->intruder), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
  }
  if (self->split_fails != RONDO_OK) return report(self->split_fails, "nobody divides");
  *out = table_of(self->child);
  out->rank = color;
  out->world_size = key;
  return timeout_ms == 777 ? RONDO_OK : report(RONDO_INVALID_DATA, "another timeout");
}

static rondo_collective_engine table_of(engine *self) {
  return (rondo_collective_engine){RONDO_COLLECTIVE_ENGINE_INIT,
                                   .rank = 1,
                                   .world_size = 4,
                                   .name = "fake",
                                   .user = self,
                                   .start = start,
                                   .test = test,
                                   .watch = watch,
                                   .absent = absent,
                                   .notify = notify,
                                   .split = split,
                                   .close = close_engine};
}

/* With a timeout of 100 ms if it never ends. */
static rondo_communicator *communicator_on(const test_fixture *t, engine *self) {
  const rondo_communicator_options options = {RONDO_COMMUNICATOR_OPTIONS_INIT, .join_timeout_ms = 777,
                                              .timeout_ms = self->never_ends ? 100 : 0, .name = "mine"};
  const rondo_collective_engine table = table_of(self);
  rondo_communicator *made;
  if (test_device_is("cuda")) skip();
  assert_ok(rondo_communicator_from_engine(t->device, &table, &options, &made));
  return made;
}

/* The engine is closed, perhaps by a worker a moment later, and was used as promised. */
static void assert_closed(const engine *self) {
  for (int i = 0; i < 5000 && atomic_load(&self->closes) == 0; i++) test_sleep_ms(1);
  assert_int_equal(atomic_load(&self->closes), 1);
  assert_int_equal(atomic_load(&self->overlaps), 0);
  assert_int_equal(atomic_load(&self->late), 0);
}

/* What it gets ----------------------------------------------------------------------------------------------------- */

TEST(test_mm1_an_engine_gets_what_the_call_says) {
  static engine self;
  self = (engine){.tests = 0};
  rondo_communicator *c = communicator_on(t, &self);
  float *src = (float *)test_words(t, 64), *dst = (float *)test_words(t, 64);
  assert_ok(rondo_reduce_scatter(c, t->stream, src, dst, 3, RONDO_F32, RONDO_REDUCE_MAX));
  assert_ok(rondo_broadcast(c, t->stream, src, dst, 5, RONDO_I64, 3));
  assert_ok(rondo_send(c, t->stream, src, 7, RONDO_F16, 2));
  assert_ok(rondo_receive(c, t->stream, dst, 8, RONDO_BF16, 0));
  assert_ok(rondo_barrier(c, t->stream));
  assert_ok(rondo_all_to_all(c, t->stream, src, dst, 2, RONDO_F64));
  assert_ok(rondo_stream_synchronize(t->stream));
  const rondo_collective expected[] = {
      {.operation = RONDO_COLLECTIVE_REDUCE_SCATTER,
       .type = RONDO_F32,
       .reduction = RONDO_REDUCE_MAX,
       .count = 3,
       .src = src,
       .dst = dst},
      {.operation = RONDO_COLLECTIVE_BROADCAST, .type = RONDO_I64, .root = 3, .count = 5, .dst = dst},
      {.operation = RONDO_COLLECTIVE_SEND_RECEIVE, .type = RONDO_F16, .to = 2, .count = 7, .src = src},
      {.operation = RONDO_COLLECTIVE_SEND_RECEIVE, .type = RONDO_BF16, .from = 0, .count = 8, .dst = dst},
      {.operation = RONDO_COLLECTIVE_BARRIER},
      {.operation = RONDO_COLLECTIVE_ALL_TO_ALL, .type = RONDO_F64, .count = 2, .src = src, .dst = dst},
  };
  enum { COUNT = sizeof expected / sizeof expected[0] };
  assert_int_equal(atomic_load(&self.starts), COUNT);
  for (int i = 0; i < COUNT; i++) {
    const rondo_collective *got = &self.works[i], *want = &expected[i];
    assert_int_equal(got->struct_size, sizeof(rondo_collective));
    assert_true(got->operation == want->operation && got->type == want->type && got->reduction == want->reduction);
    assert_true(got->root == want->root && got->count == want->count && got->src == want->src && got->dst == want->dst);
    assert_true(got->to == want->to && got->from == want->from && got->is_average == 0);
    assert_false(self.captured[i]);
  }
  assert_ok(rondo_communicator_destroy(c));
  assert_closed(&self);
}

/* Rondo divides what the engine has summed up. */
TEST(test_mm3_an_engine_sums_up_averages) {
  static engine self;
  self = (engine){.tests = 2};
  rondo_communicator *c = communicator_on(t, &self);
  float *sums = (float *)test_words(t, 2), averages[2];
  test_write(t, sums, (float[]){6, -2}, sizeof averages);
  assert_ok(rondo_all_reduce(c, t->stream, sums, sums, 2, RONDO_F32, RONDO_REDUCE_AVERAGE));
  test_read(t, averages, sums, sizeof averages);
  assert_true(averages[0] == 1.5f && averages[1] == -0.5f);
  assert_int_equal(self.works[0].reduction, RONDO_REDUCE_SUM);
  assert_int_equal(self.works[0].is_average, 1);
  assert_ok(rondo_communicator_destroy(c));
  assert_closed(&self);
}

/* Some are done when they start, some are polled by the worker, and some by the progress thread. */
TEST(test_mm1_an_engine_has_one_collective_at_a_time) {
  static engine self;
  static const int tests[] = {0, 3, 3000};
  for (int i = 0; i < 3; i++) {
    self = (engine){.tests = tests[i]};
    rondo_communicator *c = communicator_on(t, &self);
    uint32_t *words = test_words(t, 4);
    const int rounds = i == 2 ? 3 : 300;
    for (int k = 0; k < rounds; k++)
      assert_ok(rondo_all_reduce(c, t->stream, words, words, 4, RONDO_I32, RONDO_REDUCE_SUM));
    assert_ok(rondo_stream_synchronize(t->stream));
    rondo_communicator_info info = {.struct_size = sizeof info};
    assert_ok(rondo_communicator_get_info(c, &info));
    assert_int_equal(info.rank, 1);
    assert_int_equal(info.world_size, 4);
    assert_int_equal(info.collectives, rounds);
    assert_int_equal(info.completed, rounds);
    assert_false(info.failed);
    assert_ok(rondo_communicator_destroy(c));
    assert_int_equal(atomic_load(&self.starts), rounds);
    assert_int_equal(atomic_load(&self.notifies), 0);
    assert_closed(&self);
    test_words_free(t, words);
  }
}

/* Captures 40 kernels, two collectives one after the other, and a kernel before all of them. */
static rondo_exec *capture_busy_branches(const test_fixture *t, rondo_communicator *c, uint32_t *words,
                                         rondo_kernel *kernel) {
  rondo_capture_info info = {.struct_size = sizeof info};
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_launch(t->stream, kernel, (rondo_grid){.x = 1}, RONDO_NO_ARGS));
  assert_ok(rondo_capture_get_info(t->stream, &info));
  const rondo_node first = info.frontier[0];
  for (int i = 0; i < 40; i++) {
    assert_ok(rondo_capture_set_frontier(t->stream, &first, 1, true));
    assert_ok(rondo_launch(t->stream, kernel, (rondo_grid){.x = 1}, RONDO_NO_ARGS));
  }
  assert_ok(rondo_capture_set_frontier(t->stream, &first, 1, true));
  for (int i = 0; i < 2; i++) assert_ok(rondo_all_reduce(c, t->stream, words, words, 4, RONDO_I32, RONDO_REDUCE_SUM));
  return test_exec_of(test_capture_end(t->stream));
}

static int setup_one_worker(void **state) {
  return test_setup_with(state, (rondo_device_options){RONDO_DEVICE_OPTIONS_INIT, .workers = 1});
}

/* A collective starts before other work that is ready with it, and the worker polls between its kernels, so that the
 * next one starts too while it is busy. More workers would run all kernels at once. */
TEST_DEFINE(test_mm4_collectives_go_on_beside_a_busy_worker, test_fixture *t, setup_one_worker, test_teardown) {
  static engine self;
  if (test_device_is("cpu:check")) skip(); /* its orders are random */
  self = (engine){.tests = 2, .is_polled_by_workers = true};
  rondo_communicator *c = communicator_on(t, &self);
  uint32_t *words = test_words(t, 4);
  rondo_kernel *kernel =
      test_kernel_make(t, &(rondo_kernel_options){RONDO_KERNEL_OPTIONS_INIT, .name = "busy", .cpu = busy});
  rondo_exec *exec = capture_busy_branches(t, c, words, kernel);
  atomic_store(&busy_kernels, 0);
  assert_ok(rondo_exec_launch(exec, t->stream));
  for (int i = 0; i < 5000 && atomic_load(&busy_kernels) < 41; i++) test_sleep_ms(1); /* this thread does not poll */
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(atomic_load(&self.starts), 2);
  assert_int_equal(atomic_load(&busy_kernels), 41);
  assert_in_range(self.kernels_before[0], 1, 10);
  assert_in_range(self.kernels_before[1], 1, 30);
  rondo_exec_destroy(exec);
  assert_ok(rondo_communicator_destroy(c));
  assert_closed(&self);
}

TEST(test_mm1_a_call_on_a_synchronous_device_waits_for_the_end) {
  static engine self;
  test_fixture other = {.device = NULL};
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .synchronous = true,
                                        .allocator = &t->allocator.table};
  float word = 1;
  if (test_device_is("cuda")) skip();
  assert_ok(rondo_device_open(test_device_name(), &options, &other.device));
  assert_ok(rondo_stream_create(other.device, NULL, &other.stream));
  self = (engine){.tests = 3000};
  rondo_communicator *c = communicator_on(&other, &self);
  for (int i = 1; i <= 3; i++) {
    rondo_communicator_info info = {.struct_size = sizeof info};
    assert_ok(rondo_all_reduce(c, other.stream, &word, &word, 1, RONDO_F32, RONDO_REDUCE_SUM));
    assert_ok(rondo_communicator_get_info(c, &info));
    assert_int_equal(info.completed, i);
  }
  atomic_store(&self.test_fails, RONDO_EXECUTION_FAILED);
  assert_error(rondo_barrier(c, other.stream), RONDO_EXECUTION_FAILED, RONDO_REASON_PEER_LOST);
  assert_ok(rondo_communicator_destroy(c));
  assert_ok(rondo_stream_destroy(other.stream));
  assert_ok(rondo_device_close(other.device));
  assert_closed(&self);
}

/* A replay says that it is one. The engine is closed with the last exec. */
TEST(test_mm1_an_engine_lives_as_long_as_graphs_need_it) {
  static engine self;
  self = (engine){.tests = 1};
  rondo_communicator *c = communicator_on(t, &self);
  uint32_t *words = test_words(t, 4);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_all_reduce(c, t->stream, words, words, 4, RONDO_I32, RONDO_REDUCE_SUM));
  rondo_graph *graph = test_capture_end(t->stream), *clone;
  assert_int_equal(atomic_load(&self.starts), 0);
  assert_ok(rondo_graph_clone(graph, &clone));
  assert_ok(rondo_communicator_destroy(c));
  test_graph_destroy(graph);
  rondo_exec *exec = test_exec_of(clone);
  assert_int_equal(atomic_load(&self.closes), 0);
  for (int i = 0; i < 10; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
  rondo_exec_destroy(exec);
  assert_int_equal(atomic_load(&self.starts), 10);
  for (int i = 0; i < 10; i++) assert_true(self.captured[i]);
  assert_closed(&self);
}

TEST(test_mm1_an_engine_watches_without_collectives) {
  static engine self;
  self = (engine){.tests = NEVER};
  rondo_communicator *c = communicator_on(t, &self);
  for (int i = 0; i < 5000 && atomic_load(&self.watches) < 2; i++) test_sleep_ms(1);
  assert_true(atomic_load(&self.watches) >= 2);
  assert_ok(rondo_communicator_destroy(c));
  assert_closed(&self);
}

/* Only three functions are required. */
TEST(test_mm1_an_engine_may_have_few_functions) {
  static engine self;
  self = (engine){.tests = 1};
  char name[] = "few";
  rondo_communicator *c, *part;
  const rondo_collective_engine table = {
      .world_size = 1, .name = name, .user = &self, .start = start, .test = test, .close = close_engine};
  if (test_device_is("cuda")) skip();
  assert_ok(rondo_communicator_from_engine(t->device, &table, NULL, &c));
  name[0] = 'n'; /* it was copied */
  rondo_communicator_info info = {.struct_size = sizeof info};
  assert_ok(rondo_communicator_get_info(c, &info));
  assert_string_equal(info.engine, "few");
  assert_ok(rondo_barrier(c, t->stream));
  assert_error(rondo_communicator_split(c, 0, 0, &part), RONDO_UNSUPPORTED, RONDO_REASON_NONE);
  assert_message("the engine 'few' does not divide groups");
  assert_null(part);
  assert_ok(rondo_communicator_destroy(c));
  assert_closed(&self);
}

/* Failures --------------------------------------------------------------------------------------------------------- */

/* The communicator has failed with this text, and destroying it closes the engine. */
static void assert_failed(const test_fixture *t, rondo_communicator *c, const engine *self, const char *text) {
  rondo_communicator_info info = {.struct_size = sizeof info};
  assert_ok(rondo_communicator_get_info(c, &info));
  assert_true(info.failed);
  assert_fails(rondo_barrier(c, t->stream), RONDO_INVALID_STATE);
  assert_message(text);
  assert_int_equal(atomic_load(&self->notifies), 1);
  assert_non_null(strstr(self->message, text));
  assert_ok(rondo_communicator_destroy(c));
  assert_int_equal(atomic_load(&self->notifies), 1);
  assert_closed(self);
}

TEST(test_mm1_an_engine_that_fails_to_start) {
  static engine self;
  self = (engine){.tests = 0, .start_fails = RONDO_IO_ERROR};
  rondo_communicator *c = communicator_on(t, &self);
  test_gate *gate = test_gate_make(); /* all three are enqueued before the first one starts */
  assert_ok(rondo_host_async(t->stream, test_gate_pass, gate));
  for (int i = 0; i < 3; i++) assert_ok(rondo_barrier(c, t->stream));
  test_gate_open(gate);
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_PEER_LOST);
  assert_message("rank 1 of 4 ('mine'): it does not start");
  assert_int_equal(atomic_load(&self.starts), 1);
  assert_int_equal(atomic_load(&self.polls), 0); /* what has not started is not tested */
  assert_failed(t, c, &self, "it does not start");
}

TEST(test_mm1_an_engine_that_fails_later) {
  static engine self;
  self = (engine){.tests = NEVER};
  rondo_communicator *c = communicator_on(t, &self);
  assert_ok(rondo_barrier(c, t->stream));
  atomic_store(&self.test_fails, RONDO_EXECUTION_FAILED);
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_PEER_LOST);
  assert_message("rank 3 is gone");
  assert_failed(t, c, &self, "rank 3 is gone");
}

/* While nothing is in progress, and while something is. */
TEST(test_mm1_an_engine_that_fails_when_it_watches) {
  static engine self;
  for (int i = 0; i < 2; i++) {
    self = (engine){.tests = NEVER, .watch_fails = i == 0 ? RONDO_IO_ERROR : RONDO_OK};
    rondo_communicator *c = communicator_on(t, &self);
    for (int k = 0; i == 0 && k < 5000 && atomic_load(&self.notifies) == 0; k++) test_sleep_ms(1);
    if (i == 1) {
      assert_ok(rondo_barrier(c, t->stream));
      atomic_store(&self.watch_fails, RONDO_IO_ERROR);
      assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_PEER_LOST);
    }
    assert_failed(t, c, &self, "rank 2 has failed");
  }
}

TEST(test_mm1_an_engine_that_never_ends) {
  static engine self;
  self = (engine){.tests = NEVER, .never_ends = true};
  rondo_communicator *c = communicator_on(t, &self);
  float *words = (float *)test_words(t, 4);
  assert_ok(rondo_all_reduce(c, t->stream, words, words, 3, RONDO_F32, RONDO_REDUCE_AVERAGE));
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_TIMED_OUT);
  assert_message("all_reduce (average) of 3 f32 did not end within 100 ms: rank 2 sleeps");
  assert_int_equal(atomic_load(&self.absents), 1);
  assert_failed(t, c, &self, "rank 2 sleeps");
}

/* Without `absent` and `notify`. */
TEST(test_mm1_an_engine_that_says_nothing) {
  static engine self;
  self = (engine){.tests = NEVER};
  rondo_communicator *c;
  const rondo_communicator_options options = {RONDO_COMMUNICATOR_OPTIONS_INIT, .timeout_ms = 100};
  rondo_collective_engine table = table_of(&self);
  table.absent = NULL;
  table.notify = NULL;
  if (test_device_is("cuda")) skip();
  assert_ok(rondo_communicator_from_engine(t->device, &table, &options, &c));
  assert_ok(rondo_barrier(c, t->stream));
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_TIMED_OUT);
  assert_message("other ranks did not call it");
  assert_ok(rondo_communicator_destroy(c));
  assert_closed(&self);
}

/* `check` refuses a call, which leaves the communicator as it was. */
static rondo_status check(void *user, const rondo_collective *work) {
  (void)user;
  return work->type == RONDO_BF16 ? report(RONDO_UNSUPPORTED, "no bf16 here") : RONDO_OK;
}

TEST(test_mm1_an_engine_that_refuses_a_call) {
  static engine self;
  self = (engine){.tests = 0};
  rondo_communicator *c;
  rondo_collective_engine table = table_of(&self);
  table.check = check;
  uint32_t *words = test_words(t, 8);
  if (test_device_is("cuda")) skip();
  assert_ok(rondo_communicator_from_engine(t->device, &table, NULL, &c));
  assert_error(rondo_all_reduce(c, t->stream, words, words, 4, RONDO_BF16, RONDO_REDUCE_SUM), RONDO_UNSUPPORTED,
               RONDO_REASON_PEER_LOST);
  assert_message("no bf16 here");
  assert_ok(rondo_all_reduce(c, t->stream, words, words, 4, RONDO_F16, RONDO_REDUCE_SUM));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(atomic_load(&self.starts), 1);
  assert_ok(rondo_communicator_destroy(c));
  assert_closed(&self);
}

TEST(test_mm1_an_engine_that_is_aborted) {
  static engine self;
  self = (engine){.tests = NEVER};
  rondo_communicator *c = communicator_on(t, &self);
  assert_ok(rondo_barrier(c, t->stream));
  for (int i = 0; i < 2; i++) assert_ok(rondo_communicator_abort(c));
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_ABORTED);
  assert_failed(t, c, &self, "rondo_communicator_abort was called");
}

/* Creating and dividing -------------------------------------------------------------------------------------------- */

TEST(test_mm1_bad_engines_stay_the_callers) {
  static engine self;
  self = (engine){.tests = 0};
  rondo_communicator *c = (rondo_communicator *)t;
  const rondo_collective_engine good = table_of(&self);
  rondo_collective_engine table = good;
  if (test_device_is("cuda")) {
    assert_error(rondo_communicator_from_engine(t->device, &good, NULL, &c), RONDO_UNSUPPORTED,
                 RONDO_REASON_OTHER_DEVICE);
    return;
  }
  assert_error(rondo_communicator_from_engine(NULL, &good, NULL, &c), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_null(c);
  assert_error(rondo_communicator_from_engine(t->device, NULL, NULL, &c), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_communicator_from_engine(t->device, &good, NULL, NULL), BAD, RONDO_REASON_NULL_ARGUMENT);
  table.start = NULL;
  assert_error(rondo_communicator_from_engine(t->device, &table, NULL, &c), BAD, RONDO_REASON_BAD_OPTIONS);
  assert_message("the engine has no 'start'");
  table = good;
  table.test = NULL;
  assert_error(rondo_communicator_from_engine(t->device, &table, NULL, &c), BAD, RONDO_REASON_BAD_OPTIONS);
  assert_message("'test'");
  table = good;
  table.close = NULL;
  assert_error(rondo_communicator_from_engine(t->device, &table, NULL, &c), BAD, RONDO_REASON_BAD_OPTIONS);
  assert_message("'close'");
  table = good;
  table.rank = table.world_size;
  assert_error(rondo_communicator_from_engine(t->device, &table, NULL, &c), BAD, RONDO_REASON_OUT_OF_RANGE);
  table.world_size = 0;
  assert_error(rondo_communicator_from_engine(t->device, &table, NULL, &c), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_int_equal(atomic_load(&self.closes), 0);
}

/* The new communicator has the engine that split made, and the options of the old one. */
TEST(test_mm3_an_engine_divides_its_group) {
  static engine self, child;
  rondo_communicator *part;
  self = (engine){.tests = 0, .never_ends = true, .child = &child};
  child = (engine){.tests = NEVER};
  rondo_communicator *c = communicator_on(t, &self);
  assert_ok(rondo_communicator_split(c, 2, 3, &part)); /* here the color is the rank, and the key the size */
  rondo_communicator_info info = {.struct_size = sizeof info};
  assert_ok(rondo_communicator_get_info(part, &info));
  assert_int_equal(info.rank, 2);
  assert_int_equal(info.world_size, 3);
  assert_ok(rondo_communicator_destroy(c));
  assert_closed(&self);
  assert_ok(rondo_barrier(part, t->stream));
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_TIMED_OUT);
  assert_message("rank 2 of 3 ('mine'): barrier did not end within 100 ms");
  assert_failed(t, part, &child, "rank 2 sleeps");
}

TEST(test_mm3_an_engine_that_does_not_divide) {
  static engine self, child;
  rondo_communicator *part;
  self = (engine){.tests = 0, .child = &child, .split_fails = RONDO_UNAVAILABLE};
  child = (engine){.tests = 0};
  rondo_communicator *c = communicator_on(t, &self);
  assert_error(rondo_communicator_split(c, 0, 1, &part), RONDO_UNAVAILABLE, RONDO_REASON_PEER_LOST);
  assert_message("rondo_communicator_split: nobody divides");
  assert_null(part);
  assert_ok(rondo_barrier(c, t->stream)); /* the group lives on */
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_ok(rondo_communicator_destroy(c));
  assert_closed(&self);
  assert_int_equal(atomic_load(&child.closes), 0);
}

/* It is refused, and the other thread's call and the communicator go on. */
TEST(test_mm1_a_call_while_another_thread_is_in_one) {
  static engine self;
  intruder second = {.stream = t->stream};
  rondo_communicator *part;
  self = (engine){.tests = 0, .split_fails = RONDO_UNAVAILABLE, .intruder = &second};
  rondo_communicator *c = second.communicator = communicator_on(t, &self);
  assert_fails(rondo_communicator_split(c, 0, 1, &part), RONDO_UNAVAILABLE);
  assert_int_equal(second.status, RONDO_INVALID_STATE);
  assert_int_equal(second.reason, RONDO_REASON_CONCURRENT_USE);
  assert_ok(rondo_barrier(c, t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_ok(rondo_communicator_destroy(c));
  assert_closed(&self);
}

/* What engines are built with -------------------------------------------------------------------------------------- */

TEST(test_mm1_descriptions_of_collectives) {
  char text[96];
  const rondo_collective work = {
      .operation = RONDO_COLLECTIVE_ALL_REDUCE, .type = RONDO_F32, .count = 4096, .reduction = RONDO_REDUCE_SUM};
  (void)t;
  rondo_collective_describe(&work, text, sizeof text);
  assert_string_equal(text, "all_reduce (sum) of 4096 f32");
  rondo_collective_describe(&work, text, 11);
  assert_string_equal(text, "all_reduce");
  assert_string_equal(rondo_collective_operation_name(RONDO_COLLECTIVE_ALL_TO_ALL), "all_to_all");
  assert_string_equal(rondo_collective_operation_name((rondo_collective_operation)0), "unknown");
  assert_string_equal(rondo_collective_operation_name((rondo_collective_operation)8), "unknown");
  float to[] = {1, -2}, from[] = {-1, 5};
  rondo_combine_find(RONDO_F32, RONDO_REDUCE_MIN)(to, from, 2);
  assert_true(to[0] == -1 && to[1] == -2);
  assert_true(rondo_combine_find(RONDO_F32, RONDO_REDUCE_AVERAGE) == NULL);
  assert_true(rondo_combine_find((rondo_type)77, RONDO_REDUCE_SUM) == NULL);
}
