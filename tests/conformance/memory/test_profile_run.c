/* SPDX-License-Identifier: MIT
 * Profiles of work that runs (GM-2, GM-11): the allocations and frees of a run, on one stream or several, give the
 * profile that recording the same calls gives, and the recording follows it. Memory without an order between its uses
 * shares no bytes.
 */
#include "support/test_effort.h"
#include "support/test_graph_memory.h"

enum { UNIT = 16384, UNITS = UNIT / 4, STREAMS = 3, MOST = 64 };

/* Counted in steps, so that plans do not depend on how busy the machine is. */
static const rondo_plan_options planning = {RONDO_PLAN_OPTIONS_INIT, .budget_steps = 50000, .gap = 1};

static rondo_profile_info info_of(const rondo_profile *profile) {
  rondo_profile_info info = {.struct_size = sizeof info};
  assert_ok(rondo_profile_get_info(profile, &info));
  return info;
}

static rondo_profile *end_run(rondo_stream *stream) {
  rondo_profile *profile = NULL;
  assert_ok(rondo_profile_end(stream, &planning, &profile));
  return profile;
}

static rondo_profile *profile_of(const rondo_graph *graph) {
  rondo_profile *profile = NULL;
  assert_ok(rondo_profile_create(graph, &planning, &profile));
  return profile;
}

static void *take(rondo_stream *stream, size_t units) { return test_allocate_async(stream, units * UNIT); }

static void give(rondo_stream *stream, void *address) { assert_ok(rondo_free_async(stream, address)); }

/* Ends the stream's run; its profile has this bound, and as many allocations. */
static void assert_run(rondo_stream *stream, size_t allocations, uint64_t units) {
  rondo_profile *profile = end_run(stream);
  const rondo_profile_info info = info_of(profile);
  assert_int_equal(info.allocations, allocations);
  assert_int_equal(info.lower_bound, units * UNIT);
  assert_int_equal(info.peak, units * UNIT);
  rondo_profile_destroy(profile);
}

/* Work ------------------------------------------------------------------------------------------------------------ */

/* Calls on several streams, the same in each run for a seed. */
typedef struct work {
  test_fixture *t;
  rondo_stream *streams[STREAMS]; /* the first is the fixture's */
  uint64_t state;
  struct {
    void *address;
    int stream; /* after which the memory may be freed */
  } live[MOST];
  size_t count;
} work;

static uint32_t next_random(work *self, uint32_t below) {
  self->state = self->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(self->state >> 33) % below;
}

static void allocate(work *self, int stream) {
  void *address = test_allocate_async(self->streams[stream], 1 + next_random(self, 4 * UNIT));
  self->live[self->count].address = address;
  self->live[self->count++].stream = stream;
}

static void release(work *self, int stream, size_t at) {
  if (self->live[at].stream != stream) test_order(self->t, self->streams[self->live[at].stream], self->streams[stream]);
  give(self->streams[stream], self->live[at].address);
  self->live[at] = self->live[--self->count];
}

/* Forks the streams, makes calls, some after other streams, and joins them. Leaves some memory. */
static void do_calls(work *self, uint64_t seed) {
  self->state = seed;
  self->count = 0;
  const int streams = 1 + (int)(seed % STREAMS);
  for (int i = 1; i < streams; i++) test_order(self->t, self->streams[0], self->streams[i]);
  for (int i = 0; i < 60; i++) {
    const int stream = (int)next_random(self, (uint32_t)streams), other = (int)next_random(self, (uint32_t)streams);
    if (next_random(self, 8) == 0 && stream != other)
      test_order(self->t, self->streams[stream], self->streams[other]);
    else if (self->count < 6 || (self->count < MOST / 2 && next_random(self, 2) == 0))
      allocate(self, stream);
    else
      release(self, stream, next_random(self, (uint32_t)self->count));
  }
  while (self->count > 2) release(self, 0, self->count - 1);
  for (int i = 1; i < streams; i++) test_order(self->t, self->streams[i], self->streams[0]);
}

static rondo_profile *run_calls(work *self, uint64_t seed) {
  assert_ok(rondo_profile_begin(self->streams[0]));
  do_calls(self, seed);
  rondo_profile *profile = end_run(self->streams[0]);
  while (self->count > 0) release(self, 0, self->count - 1);
  return profile;
}

static rondo_graph *record_calls(work *self, uint64_t seed, rondo_profile *profile) {
  const rondo_capture_options options = {RONDO_CAPTURE_OPTIONS_INIT, .profile = profile};
  assert_ok(rondo_capture_begin_with(self->streams[0], &options));
  do_calls(self, seed);
  return test_capture_end(self->streams[0]);
}

/* The same allocations in the same order with the same bound, and the recording of them departs nowhere. On several
 * streams the edges differ that say the same order, and the plans by a little. */
TEST(test_gm11_a_run_is_profiled_as_its_recording) {
  work self = {.t = t, .streams = {t->stream}};
  for (int i = 1; i < STREAMS; i++) self.streams[i] = test_stream(self.t, "outside");
  for (uint64_t seed = 1; seed <= test_effort(60); seed++) {
    rondo_graph *online = record_calls(&self, seed, NULL);
    rondo_profile *ran = run_calls(&self, seed), *recorded = profile_of(online);
    const rondo_profile_info a = info_of(ran), b = info_of(recorded);
    assert_int_equal(a.allocations, b.allocations);
    assert_int_equal(a.sum, b.sum);
    assert_int_equal(a.lower_bound, b.lower_bound);
    assert_true(seed % STREAMS == 0 ? a.peak == b.peak : a.peak <= b.peak + b.peak / 20);
    rondo_graph *planned = record_calls(&self, seed, ran);
    if (!test_is_guarded(self.t)) {
      assert_int_equal(info_of(ran).departures, 0);
      assert_int_equal(info_of(ran).placed, a.allocations);
    }
    test_graph_destroy(online);
    test_graph_destroy(planned);
    rondo_profile_destroy(ran);
    rondo_profile_destroy(recorded);
  }
  for (int i = 1; i < STREAMS; i++) test_stream_destroy(self.streams[i]);
}

/* A warm-up, then the recording, in the live bytes, where placing node by node needs more. */
TEST(test_gm11_a_recording_follows_its_warm_up) {
  enum { PAGES = (2 << 20) / UNIT }; /* units that are whole pages on every device */
  uint32_t *out = test_words(t, 2 * UNITS);
  rondo_profile *profile = NULL;
  for (int round = 0; round < 2; round++) {
    const uint32_t values[3] = {3, 4, 5};
    void *blocks[3] = {NULL};
    const rondo_capture_options options = {RONDO_CAPTURE_OPTIONS_INIT, .profile = profile};
    assert_ok(round == 0 ? rondo_profile_begin(t->stream) : rondo_capture_begin_with(t->stream, &options));
    for (size_t i = 0; i < 3; i++) {
      const uint32_t words = i == 2 ? 2 * UNITS : UNITS;
      if (i == 2) give(t->stream, blocks[0]);
      blocks[i] = take(t->stream, words / UNITS * PAGES);
      assert_ok(rondo_launch(t->stream, test_kernel(t, TEST_KERNEL_SET), (rondo_grid){words, 0, 0},
                             RONDO_ARGS(&values[i], &blocks[i])));
    }
    for (size_t i = 1; i < 3; i++) {
      uint32_t *to = out + (i - 1) * UNITS;
      assert_ok(rondo_launch(t->stream, test_kernel(t, TEST_KERNEL_COMBINE), (rondo_grid){UNITS, 0, 0},
                             RONDO_ARGS(&blocks[i], &blocks[i], &to)));
      give(t->stream, blocks[i]);
    }
    if (round == 0) {
      profile = end_run(t->stream);
      assert_int_equal(info_of(profile).peak, 3 * PAGES * UNIT);
      assert_int_equal(test_memory_statistics(t).profiles, 1);
    }
  }
  rondo_graph *graph = test_capture_end(t->stream);
  rondo_exec *exec = test_instantiate(graph);
  if (!test_is_guarded(t)) assert_int_equal(test_exec_info(exec).graph_bytes, 3 * PAGES * UNIT);
  for (int i = 0; i < 3; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  test_assert_all(t, out, UNITS, 4 * 32);
  test_assert_all(t, out + UNITS, UNITS, 5 * 32);
  rondo_profile_destroy(profile);
}

/* What counts ----------------------------------------------------------------------------------------------------- */

/* Streams take part from the wait on; allocations that are unordered between streams are alive together. */
TEST(test_gm11_streams_join_by_events) {
  rondo_stream *a = test_stream(t, "a"), *b = test_stream(t, "b");
  assert_ok(rondo_profile_begin(t->stream));
  give(a, take(a, 50)); /* not yet */
  test_order(t, t->stream, a);
  give(a, take(a, 2));
  test_order(t, a, b); /* through the other */
  give(a, take(a, 3)); /* where the first was */
  give(b, take(b, 4)); /* after the first, not ordered with the second */
  assert_run(t->stream, 3, 7);
  give(a, take(a, 50)); /* no more */
  assert_ok(rondo_profile_begin(t->stream));
  give(a, take(a, 50)); /* not of this one */
  give(t->stream, take(t->stream, 1));
  assert_run(t->stream, 1, 1);
}

/* Frees before the begin, of earlier memory, immediate ones, and on a stream outside of the run. */
TEST(test_gm11_what_is_not_freed_in_order_shares_with_none) {
  rondo_stream *outside = test_stream(t, "outside");
  void *before = take(t->stream, 7);
  give(t->stream, take(t->stream, 9));
  assert_ok(rondo_profile_begin(t->stream));
  give(t->stream, before);
  void *at_once = take(t->stream, 1), *elsewhere = take(t->stream, 2), *kept = take(t->stream, 4), *plain = NULL;
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_ok(rondo_free(t->device, at_once));
  give(outside, elsewhere);
  assert_ok(rondo_malloc(t->device, UNIT, NULL, &plain));
  give(t->stream, plain);
  give(t->stream, take(t->stream, 8));
  give(t->stream, take(t->stream, 8));
  assert_run(t->stream, 5, 15);
  give(t->stream, kept);
}

/* Two profiles at once are separate; a stream of both belongs to its own, or to the one begun first. */
TEST(test_gm11_profiles_at_once) {
  rondo_stream *other = test_stream(t, "other"), *both = test_stream(t, "both");
  assert_ok(rondo_profile_begin(t->stream));
  assert_ok(rondo_profile_begin(other));
  give(t->stream, take(t->stream, 1));
  give(other, take(other, 2));
  test_order(t, t->stream, other);
  give(other, take(other, 3));
  test_order(t, other, both);
  give(both, take(both, 5));
  assert_run(other, 2, 3);
  give(other, take(other, 5)); /* of the first now */
  assert_run(t->stream, 3, 10);
}

/* A capture meanwhile is no part of it. */
TEST(test_gm11_nothing_and_captures) {
  assert_ok(rondo_profile_begin(t->stream));
  assert_run(t->stream, 0, 0);
  assert_ok(rondo_profile_begin(t->stream));
  give(t->stream, take(t->stream, 1));
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  give(t->stream, take(t->stream, 9));
  test_graph_destroy(test_capture_end(t->stream));
  assert_run(t->stream, 1, 1);
}

/* Misuse ---------------------------------------------------------------------------------------------------------- */

TEST(test_gm18_misuse_of_runs) {
  rondo_profile *profile = (rondo_profile *)t;
  assert_invalid(rondo_profile_begin(NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_profile_end(NULL, NULL, &profile), RONDO_REASON_NULL_ARGUMENT);
  assert_null(profile);
  assert_error(rondo_profile_end(t->stream, NULL, &profile), RONDO_INVALID_STATE, RONDO_REASON_NOT_PROFILING);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_error(rondo_profile_begin(t->stream), RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURING);
  test_graph_destroy(test_capture_end(t->stream)); /* it went on */
  assert_ok(rondo_profile_begin(t->stream));
  assert_error(rondo_profile_begin(t->stream), RONDO_INVALID_STATE, RONDO_REASON_ALREADY_PROFILING);
  give(t->stream, take(t->stream, 2));
  const rondo_plan_options unknown = {.struct_size = 3};
  assert_invalid(rondo_profile_end(t->stream, NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_fails(rondo_profile_end(t->stream, &unknown, &profile), RONDO_INVALID_ARGUMENT);
  assert_run(t->stream, 1, 2);
  assert_error(rondo_profile_end(t->stream, NULL, &profile), RONDO_INVALID_STATE, RONDO_REASON_NOT_PROFILING);
  const rondo_plan_options bad = {RONDO_PLAN_OPTIONS_INIT, .gap = 0.5};
  assert_ok(rondo_profile_begin(t->stream));
  give(t->stream, take(t->stream, 2));
  assert_fails(rondo_profile_end(t->stream, &bad, &profile), RONDO_INVALID_ARGUMENT);
  assert_null(profile);
  assert_error(rondo_profile_end(t->stream, NULL, &profile), RONDO_INVALID_STATE, RONDO_REASON_NOT_PROFILING);
}

/* The profile ends with its stream; another stream that takes part may be destroyed, and its memory is unaffected. */
TEST(test_gm18_a_stream_is_destroyed_meanwhile) {
  rondo_stream *first = test_stream(t, "first"), *second;
  rondo_profile *profile = NULL;
  assert_ok(rondo_profile_begin(first));
  void *kept = take(first, 1);
  test_order(t, first, t->stream);
  test_stream_destroy(first);
  give(t->stream, kept);
  second = test_stream(t, "second");
  give(second, take(second, 1));
  assert_error(rondo_profile_end(second, NULL, &profile), RONDO_INVALID_STATE, RONDO_REASON_NOT_PROFILING);
  assert_ok(rondo_profile_begin(t->stream));
  test_order(t, t->stream, second);
  void *left = take(second, 2);
  test_stream_destroy(second);
  rondo_stream *third = test_stream(t, "third");
  give(third, take(third, 9)); /* takes no part, whatever the previous one did */
  test_order(t, t->stream, third);
  give(third, take(third, 4));
  give(t->stream, left);
  assert_run(t->stream, 2, 6);
}

/* The number of notes is bounded: a longer run continues, and its end reports it (GM-19). */
TEST(test_gm19_a_run_is_too_long) {
  if (test_is_guarded(t)) skip();          /* where a malloc maps pages */
  if (test_effort_divisor() >= 20) skip(); /* one thread's: nothing for ThreadSanitizer */
  rondo_profile *profile = NULL;
  assert_ok(rondo_profile_begin(t->stream));
  for (size_t i = 0; i <= (size_t)1 << 19; i++) give(t->stream, take(t->stream, 1));
  assert_error(rondo_profile_end(t->stream, &planning, &profile), RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE);
  assert_null(profile);
  assert_ok(rondo_profile_begin(t->stream));
  give(t->stream, take(t->stream, 1));
  assert_run(t->stream, 1, 1);
}

/* Threads --------------------------------------------------------------------------------------------------------- */

typedef struct worker {
  rondo_stream *stream, *shared; /* the shared one takes part in another thread's profile */
  rondo_profile_info info;
  rondo_status status;
} worker;

static rondo_status work_on(rondo_stream *stream, int rounds) {
  for (int i = 0; i < rounds; i++) {
    void *address = NULL;
    rondo_status status = rondo_malloc_async(stream, UNIT, NULL, &address);
    if (status == RONDO_OK) status = rondo_free_async(stream, address);
    if (status != RONDO_OK) return status;
  }
  return RONDO_OK;
}

static rondo_status profile_work(worker *self) {
  rondo_profile *profile = NULL;
  rondo_status status = rondo_profile_begin(self->stream);
  if (status == RONDO_OK) status = work_on(self->stream, 100);
  if (status == RONDO_OK) status = work_on(self->shared, 100);
  if (status == RONDO_OK) status = rondo_profile_end(self->stream, &planning, &profile);
  if (status == RONDO_OK) status = rondo_profile_get_info(profile, &self->info);
  rondo_profile_destroy(profile);
  return status;
}

static void run_worker(void *user) {
  worker *self = user;
  self->info.struct_size = sizeof self->info;
  self->status = profile_work(self);
}

/* Each thread profiles a stream of its own and works on one of the main thread's profile (GX-10). */
TEST(test_gx10_threads_profile_at_once) {
  enum { THREADS = 4 };
  worker workers[THREADS] = {{.stream = NULL}};
  test_thread threads[THREADS];
  assert_ok(rondo_profile_begin(t->stream));
  for (int i = 0; i < THREADS; i++) {
    workers[i].stream = test_stream(t, "own");
    workers[i].shared = test_stream(t, "shared");
    test_order(t, t->stream, workers[i].shared);
    threads[i] = (test_thread){run_worker, &workers[i]};
  }
  test_on_threads(threads, THREADS);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(workers[i].status, RONDO_OK);
    assert_int_equal(workers[i].info.allocations, 100);
    assert_int_equal(workers[i].info.peak, UNIT);
    test_stream_destroy(workers[i].stream);
    test_stream_destroy(workers[i].shared);
  }
  assert_run(t->stream, THREADS * 100, THREADS);
}
