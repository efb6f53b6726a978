/* SPDX-License-Identifier: MIT
 * Collectives that fail: bad arguments, incomplete groups, ranks that differ, stop, or overlap. Each is an error on
 * every affected rank that names both sides, and never a hang (TR-16).
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
  assert_error(rondo_all_reduce(c, s, src, dst, 1, (rondo_type)9, sum), BAD, RONDO_REASON_TYPE);
  assert_error(rondo_all_reduce(c, s, src, dst, 1, RONDO_F32, (rondo_reduction)0), BAD, RONDO_REASON_TYPE);
  assert_error(rondo_all_reduce(c, s, src, dst, 1, RONDO_F32, (rondo_reduction)4), BAD, RONDO_REASON_TYPE);
  assert_error(rondo_all_reduce(c, s, src, src + 4, 8, RONDO_F32, sum), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_all_gather(c, s, src, src, 8, RONDO_F32), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_reduce_scatter(c, s, src, src, 8, RONDO_F32, sum), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_broadcast(c, s, src, dst, 1, RONDO_F32, self.count), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_broadcast(c, s, NULL, dst, 1, RONDO_F32, 1), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_barrier(c, NULL), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_communicator_abort(NULL), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_communicator_get_info(c, NULL), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_rendezvous_make(NULL), BAD, RONDO_REASON_NULL_ARGUMENT);
  if (!test_device_is("cuda")) {
    assert_error(rondo_all_reduce(c, s, src, dst, 1, RONDO_BF16, sum), RONDO_UNSUPPORTED, RONDO_REASON_TYPE);
    assert_message("CPU devices do not reduce bf16: convert to f32, or gather");
  }
  assert_string_equal(rondo_reduction_name(RONDO_REDUCE_MAX), "max");
  assert_string_equal(rondo_reduction_name((rondo_reduction)0), "unknown");
  test_ranks_close(&self); /* nothing was queued */
}

TEST(test_tr16_bad_groups) {
  rondo_communicator *c = (rondo_communicator *)t, *both[2];
  rondo_device *devices[] = {t->device, NULL};
  const rondo_communicator_options odd = {RONDO_COMMUNICATOR_OPTIONS_INIT, .piece_bytes = 100};
  char name[400];
  if (test_device_is("cuda")) skip();
  memset(name, 'x', sizeof name);
  name[sizeof name - 1] = '\0';
  assert_error(rondo_communicator_create(t->device, "/r", 0, 1, NULL, NULL), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_communicator_create(NULL, "/r", 0, 1, NULL, &c), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_null(c);
  assert_error(rondo_communicator_create(t->device, NULL, 0, 1, NULL, &c), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_communicator_create(t->device, "/r", 0, 0, NULL, &c), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_communicator_create(t->device, "/r", 0, RONDO_MAX_RANKS + 1, NULL, &c), BAD,
               RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_communicator_create(t->device, "/r", 2, 2, NULL, &c), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_communicator_create(t->device, "/r", 0, 1, &odd, &c), BAD, RONDO_REASON_BAD_OPTIONS);
  assert_error(rondo_communicator_create_all(devices, 2, NULL, both), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_communicator_create_all(NULL, 1, NULL, &c), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_communicator_create_all(devices, 0, NULL, &c), BAD, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_communicator_create(t->device, name, 0, 1, NULL, &c), BAD, RONDO_REASON_BAD_SIZE);
  assert_fails(rondo_communicator_create(t->device, "/nowhere/at/all", 0, 1, NULL, &c), RONDO_IO_ERROR);
  assert_message("/nowhere/at/all");
  assert_fails(rondo_communicator_create(t->device, "/dev/null", 0, 1, NULL, &c), RONDO_INVALID_DATA);
  assert_ok(rondo_communicator_destroy(NULL));
}

/* Coming together -------------------------------------------------------------------------------------------------- */

static const rondo_communicator_options hasty = {RONDO_COMMUNICATOR_OPTIONS_INIT, .join_timeout_ms = 60};

TEST(test_tr16_ranks_that_do_not_come_are_named) {
  rondo_communicator *c;
  char rendezvous[RONDO_RENDEZVOUS_BYTES];
  if (test_device_is("cuda")) skip();
  assert_ok(rondo_rendezvous_make(rendezvous));
  assert_error(rondo_communicator_create(t->device, rendezvous, 1, 4, &hasty, &c), RONDO_UNAVAILABLE,
               RONDO_REASON_TIMED_OUT);
  assert_message("0, 2, 3");
  assert_message(rendezvous);
  assert_int_not_equal(access(rendezvous, F_OK), 0); /* nothing is left */
}

/* Rank 0 waits for rank 1, which first tries what the group must refuse. */
typedef struct meeting {
  test_fixture *t;
  const char *rendezvous;
  bool taken, other_size, other_pieces; /* refused, with the reason */
  rondo_status statuses[2];
} meeting;

static rondo_status meet(const meeting *self, uint32_t rank) {
  rondo_communicator *c;
  const rondo_status status = rondo_communicator_create(self->t->device, self->rendezvous, rank, 2, NULL, &c);
  return status == RONDO_OK ? rondo_communicator_destroy(c) : status;
}

static void wait_for_rank_1(void *user) {
  meeting *self = user;
  self->statuses[0] = meet(self, 0);
}

static bool is_refused(const meeting *self, uint32_t rank, uint32_t world_size, uint32_t piece_bytes,
                       rondo_reason reason) {
  rondo_communicator *c;
  const rondo_communicator_options options = {RONDO_COMMUNICATOR_OPTIONS_INIT, .piece_bytes = piece_bytes};
  const rondo_status status =
      rondo_communicator_create(self->t->device, self->rendezvous, rank, world_size, &options, &c);
  return status == BAD && rondo_last_error()->reason == reason && c == NULL;
}

static void try_and_join(void *user) {
  meeting *self = user;
  struct stat about = {0};
  while (stat(self->rendezvous, &about) != 0 || about.st_size == 0) test_sleep_ms(1); /* until rank 0 is there */
  self->taken = is_refused(self, 0, 2, 0, RONDO_REASON_RANK_TAKEN);
  self->other_size = is_refused(self, 1, 3, 0, RONDO_REASON_MISMATCH) &&
                     strstr(rondo_last_error()->message, "rank 1 has world_size 3") != NULL;
  self->other_pieces = is_refused(self, 1, 2, 8192, RONDO_REASON_MISMATCH);
  self->statuses[1] = meet(self, 1);
}

TEST(test_tr16_ranks_that_do_not_belong_are_refused) {
  char rendezvous[RONDO_RENDEZVOUS_BYTES];
  meeting self = {.t = t, .rendezvous = rendezvous};
  const test_thread threads[] = {{wait_for_rank_1, &self}, {try_and_join, &self}};
  if (test_device_is("cuda")) skip();
  assert_ok(rondo_rendezvous_make(rendezvous));
  test_on_threads(threads, 2);
  assert_true(self.taken);
  assert_true(self.other_size);
  assert_true(self.other_pieces);
  for (int i = 0; i < 2; i++) assert_int_equal(self.statuses[i], RONDO_OK);
}

static void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_int_equal(fputs(text, file) >= 0, 1);
  assert_int_equal(fclose(file), 0);
}

TEST(test_tr16_a_file_of_somebody_elses_is_left_alone) {
  rondo_communicator *c;
  char rendezvous[RONDO_RENDEZVOUS_BYTES], text[32] = "";
  if (test_device_is("cuda")) skip();
  assert_ok(rondo_rendezvous_make(rendezvous));
  write_file(rendezvous, "precious");
  assert_fails(rondo_communicator_create(t->device, rendezvous, 0, 1, &hasty, &c), RONDO_INVALID_DATA);
  assert_message("pass a path that does not exist");
  FILE *file = fopen(rendezvous, "r");
  assert_non_null(file);
  assert_non_null(fgets(text, sizeof text, file));
  assert_int_equal(fclose(file), 0);
  assert_string_equal(text, "precious");
  write_file(rendezvous, ""); /* an empty one will do, and goes */
  assert_ok(rondo_communicator_create(t->device, rendezvous, 0, 1, &hasty, &c));
  assert_int_not_equal(access(rendezvous, F_OK), 0);
  assert_ok(rondo_communicator_destroy(c));
}

/* Differing -------------------------------------------------------------------------------------------------------- */

/* The last rank calls another collective. */
typedef enum difference { COUNT, TYPE, REDUCTION, OPERATION, ROOT, DIFFERENCES } difference;

static rondo_status call_differently(test_rank *rank, void *user) {
  const difference what = *(const difference *)user;
  rondo_communicator *c = rank->communicator;
  rondo_stream *s = rank->fixture.stream;
  const bool differs = rank->rank == rank->world_size - 1;
  const rondo_type type = differs && what == TYPE ? RONDO_I32 : RONDO_F32;
  const rondo_reduction reduction = differs && what == REDUCTION ? RONDO_REDUCE_MIN : RONDO_REDUCE_SUM;
  rondo_status status;
  if (what == ROOT)
    status = rondo_broadcast(c, s, rank->src, rank->dst, 64, RONDO_F32, differs ? 1 : 0);
  else if (differs && what == OPERATION)
    status = rondo_barrier(c, s);
  else
    status = rondo_all_reduce(c, s, rank->src, rank->dst, differs && what == COUNT ? 65 : 64, type, reduction);
  return status == RONDO_OK ? rondo_stream_synchronize(s) : status;
}

static const char *const descriptions[DIFFERENCES] = {[COUNT] = "all_reduce (sum) of 65 f32",
                                                      [TYPE] = "all_reduce (sum) of 64 i32",
                                                      [REDUCTION] = "all_reduce (min) of 64 f32",
                                                      [OPERATION] = "barrier",
                                                      [ROOT] = "broadcast (root 1) of 64 f32"};

DEVICE_TEST(test_tr16_ranks_that_differ_all_learn_it) {
  test_ranks self;
  if (test_device_is("cuda")) skip();
  for (int i = 0; i < DIFFERENCES; i++) {
    difference what = (difference)i;
    test_ranks_open(&self, &(rondo_communicator_options){RONDO_COMMUNICATOR_OPTIONS_INIT, .name = "gradients"});
    test_ranks_try(&self, call_differently, &what);
    for (uint32_t rank = 0; rank < self.count; rank++) {
      const test_rank *r = &self.ranks[rank];
      assert_int_equal(r->status, RONDO_EXECUTION_FAILED);
      assert_non_null(strstr(r->message, descriptions[what]));
      assert_non_null(strstr(r->message, what == ROOT ? "rank 0 calls broadcast (root 0)" : "rank 0 calls all_reduce"));
      assert_non_null(strstr(r->message, "rank 2 calls"));
      assert_non_null(strstr(r->message, "'gradients'"));
      rondo_communicator_info info = {.struct_size = sizeof info};
      assert_ok(rondo_communicator_get_info(r->communicator, &info));
      assert_true(info.failed);
      assert_error(rondo_barrier(r->communicator, r->fixture.stream), RONDO_INVALID_STATE, RONDO_REASON_MISMATCH);
    }
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
  static const char *const texts[STOPS] = {"rank 0 has destroyed its communicator", "did not arrive within 300 ms",
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
