/* SPDX-License-Identifier: MIT
 * Trees of several threads, streams and devices, after the tests of PyTorch's CUDAGraph Trees, whose names and numbers
 * the tests have; and buffers that other threads release during calls. The peer's managers belong to a thread and a
 * device; Rondo's trees are objects, and each thread uses its own. In assert_seen, each letter is a call: e eager, r
 * recorded, p replayed.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "support/test_effort.h"
#include "support/test_scene.h"

/* Threads ---------------------------------------------------------------------------------------------------------- */

/* A separate tree with a function of two kernels, called in steps. Errors are counted, because threads cannot assert.
 * */
typedef struct tree_user {
  test_fixture *fixture;
  rondo_kernel *affine;
  uint32_t *words; /* that count up from 1 */
  uint32_t calls, wrong, bodies;
  rondo_status status;
} tree_user;

static rondo_status user_body(rondo_call *call, void *user) {
  tree_user *self = user;
  const uint32_t factor = 3, term = 1;
  void *out;
  self->bodies++;
  TRY(rondo_call_output(call, 0, SCENE_BYTES, NULL, &out));
  TRY(rondo_copy_async(rondo_call_stream(call), out, rondo_call_input(call, 0), SCENE_BYTES));
  return rondo_launch(rondo_call_stream(call), self->affine, (rondo_grid){SCENE_WORDS, 0, 0},
                      RONDO_ARGS(&factor, &term, &out));
}

/* x, f(x), f(f(x)). */
static rondo_status call_twice(tree_user *self, rondo_tree *tree, rondo_function *f, rondo_stream *stream) {
  const rondo_input x = scene_at(self->words);
  rondo_buffer *first = NULL, *second = NULL;
  uint32_t words[SCENE_WORDS];
  TRY(rondo_tree_step_begin(tree));
  TRY(rondo_function_call(f, stream, &x, 1, &first, 1));
  const rondo_input of_first = scene_given(first);
  TRY(rondo_function_call(f, stream, &of_first, 1, &second, 1));
  TRY(rondo_buffer_copy(second, stream, 0, words, sizeof words));
  TRY(rondo_stream_synchronize(stream));
  for (uint32_t i = 0; i < SCENE_WORDS; i++) self->wrong += words[i] != 9 * (i + 1) + 4;
  rondo_buffer_release(second);
  return rondo_tree_step_end(tree);
}

static rondo_status use_tree(tree_user *self) {
  const rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT, .name = "f", .body = user_body, .user = self,
                                          RONDO_INPUTS(RONDO_INPUT_MOVING)};
  rondo_tree *tree;
  rondo_function *f;
  rondo_stream *stream;
  TRY(rondo_stream_create(self->fixture->device, NULL, &stream));
  TRY(rondo_tree_create(self->fixture->device, NULL, &tree));
  TRY(rondo_function_create(tree, &options, &f));
  for (uint32_t i = 0; i < self->calls; i++) TRY(call_twice(self, tree, f, stream));
  TRY(rondo_tree_destroy(tree));
  return rondo_stream_destroy(stream);
}

static void run_user(void *user) {
  tree_user *self = user;
  self->status = use_tree(self);
}

static void assert_user(const tree_user *self) {
  assert_int_equal(self->status, RONDO_OK);
  assert_int_equal(self->wrong, 0);
  assert_int_equal(self->bodies, 4);
}

/* 12 test_multithreaded_cudagraph_trees: an owner, then three threads at once, each with a tree: all results are right,
 * and the body runs four times in each: warmed up and recorded at two positions. */
SCENE_TEST(test_threads_peer_12_each_has_a_tree) {
  enum { USERS = 4 };
  tree_user users[USERS];
  test_thread threads[USERS - 1];
  for (int i = 0; i < USERS; i++)
    users[i] = (tree_user){.fixture = s->fixture,
                           .affine = test_kernel(s->fixture, TEST_KERNEL_AFFINE),
                           .words = scene_words(s, 1),
                           .calls = test_effort(60) + 4};
  run_user(&users[0]);
  for (int i = 1; i < USERS; i++) threads[i - 1] = (test_thread){.function = run_user, .user = &users[i]};
  test_on_threads(threads, USERS - 1);
  for (int i = 0; i < USERS; i++) assert_user(&users[i]);
}

/* Threads that release what the tree's thread passes to them. */
enum { RELEASERS = 3, ROOM = 64 };
typedef struct releaser {
  rondo_buffer *_Atomic places[ROOM];
  _Atomic bool is_over;
} releaser;

static void release_all(void *user) {
  releaser *self = user;
  bool is_over;
  do {
    is_over = atomic_load(&self->is_over); /* before the last look */
    for (int i = 0; i < ROOM; i++) {
      rondo_buffer *buffer = atomic_exchange(&self->places[i], NULL);
      rondo_buffer_retain(buffer);
      rondo_buffer_release(buffer);
      rondo_buffer_release(buffer);
    }
  } while (!is_over);
}

/* Gives the buffer to a releaser, or releases it here when there is no place. */
static void pass_to(releaser *to, uint32_t place, rondo_buffer *buffer) {
  rondo_buffer *nobody = NULL;
  if (!atomic_compare_exchange_strong(&to->places[place % ROOM], &nobody, buffer)) rondo_buffer_release(buffer);
}

typedef struct calling {
  test_scene *scene;
  releaser releasers[RELEASERS];
  rondo_function *make, *next;
  const uint32_t *x;
  uint32_t steps;
  rondo_status status;
} calling;

static rondo_status call_step(calling *self, uint32_t i) {
  const test_scene *s = self->scene;
  const rondo_input x = scene_at(self->x);
  rondo_buffer *made, *out;
  TRY(rondo_tree_step_begin(s->tree));
  TRY(rondo_function_call(self->make, s->stream, &x, 1, &made, 1));
  const rondo_input of_made = scene_of(made);
  for (uint32_t k = 0; k < 3; k++) {
    TRY(rondo_function_call(self->next, s->stream, &of_made, 1, &out, 1));
    pass_to(&self->releasers[k % RELEASERS], 3 * i + k, out);
  }
  pass_to(&self->releasers[i % RELEASERS], i, made);
  return rondo_tree_step_end(s->tree);
}

static void call_on_and_on(void *user) {
  calling *self = user;
  for (uint32_t i = 0; i < self->steps && self->status == RONDO_OK; i++) self->status = call_step(self, i);
  for (int i = 0; i < RELEASERS; i++) atomic_store(&self->releasers[i].is_over, true);
}

/* Other threads release buffers at any time: what is alive in a call varies, so that there are recordings for each case
 * that occurs, within the bound. Nothing is lost or freed twice, whatever happens to held outputs. */
SCENE_TEST(test_threads_release_while_calls_go_on) {
  for (int policy = RONDO_OUTPUTS_EXPIRE; policy <= RONDO_OUTPUTS_CLONE; policy++) {
    static calling c;
    memset(&c, 0, sizeof c);
    SCENE_TREE(s, .outputs = (rondo_output_policy)policy, .max_recordings = 24);
    c = (calling){.scene = s, .steps = test_effort(400)};
    c.make = scene_affine(s, "make", 3, 1);
    c.next = scene_affine(s, "next", 5, 2);
    c.x = scene_words(s, 1);
    test_thread threads[RELEASERS + 1] = {{.function = call_on_and_on, .user = &c}};
    for (int i = 0; i < RELEASERS; i++)
      threads[i + 1] = (test_thread){.function = release_all, .user = &c.releasers[i]};
    test_on_threads(threads, RELEASERS + 1);
    assert_int_equal(c.status, RONDO_OK);
    rondo_buffer *out = scene_call(s, c.make, scene_at(c.x));
    assert_counts(s, out, 4, 3);
    rondo_buffer_release(out);
    assert_int_equal(scene_info(s).live_outputs, 0);
    assert_int_equal(scene_info(s).calls, 4 * (uint64_t)c.steps + 1);
    s->calls = 0;
  }
}

/* Buffers that threads hold when the tree is destroyed are freed by their last release, wherever that is. The teardown
 * asserts that the device has no memory left. */
SCENE_TEST(test_threads_release_when_the_tree_is_gone) {
  static releaser releasers[RELEASERS];
  rondo_function *f = scene_affine(s, "f", 3, 1);
  const uint32_t *x = scene_words(s, 1);
  memset(releasers, 0, sizeof releasers);
  scene_begin(s);
  for (uint32_t i = 0; i < RELEASERS * ROOM / 2; i++)
    pass_to(&releasers[i % RELEASERS], i / RELEASERS, scene_call(s, f, scene_at(x)));
  test_thread threads[RELEASERS];
  for (int i = 0; i < RELEASERS; i++) {
    threads[i] = (test_thread){.function = release_all, .user = &releasers[i]};
    atomic_store(&releasers[i].is_over, true);
  }
  scene_use(s, (rondo_tree_options){RONDO_TREE_OPTIONS_INIT});
  test_on_threads(threads, RELEASERS);
}

/* Streams and devices ---------------------------------------------------------------------------------------------- */

/* 105 test_single_stream_use: all recordings share one arena, whichever streams they are called on; 59
 * test_warmup_stream_sync: each call is ordered on the caller's stream, before what the caller queues next. */
SCENE_TEST_WORKERS(test_streams_peer_59_105_one_memory) {
  test_skip_if_serial();
  rondo_stream *streams[] = {s->fixture->stream, test_stream(s->fixture, "a"), test_stream(s->fixture, "b")};
  rondo_function *f = scene_affine(s, "f", 3, 1);
  const uint32_t *x = scene_words(s, 1);
  uint32_t *result = scene_words(s, 0);
  for (int i = 0; i < 9; i++) {
    test_gate gate;
    s->stream = streams[i % 3];
    test_gate_init(&gate);
    test_gate_hold(&gate, s->stream);
    rondo_buffer *out = scene_call(s, f, scene_at(x)); /* waits for nothing */
    assert_ok(rondo_copy_async(s->stream, result, scene_address(out), SCENE_BYTES));
    test_gate_open(&gate);
    scene_assert_words(s, result, 4, 3);
    test_gate_destroy(&gate);
    rondo_buffer_release(out);
  }
  assert_seen(s, "erppppppp");
  assert_int_equal(scene_info(s).recordings, 1);
  s->stream = s->fixture->stream;
  for (int i = 1; i < 3; i++) test_stream_destroy(streams[i]);
}

/* 120 test_side_stream_memory_allocation: a body that forks a stream and allocates there: memory of the tree, one
 * recording. */
typedef struct forking {
  rondo_stream *side;
  uint32_t *words;
  rondo_event *events[2];
} forking;
static rondo_status forking_body(rondo_call *call, void *user) {
  forking *fork = user;
  rondo_stream *stream = rondo_call_stream(call);
  void *scratch;
  TRY(rondo_event_record(fork->events[0], stream));
  TRY(rondo_stream_wait_event(fork->side, fork->events[0]));
  TRY(rondo_malloc_async(fork->side, SCENE_BYTES, NULL, &scratch));
  TRY(rondo_copy_async(fork->side, scratch, rondo_call_input(call, 0), SCENE_BYTES));
  TRY(rondo_event_record(fork->events[1], fork->side));
  TRY(rondo_stream_wait_event(stream, fork->events[1]));
  scene_put(call, 0, scratch, 3, 1);
  return rondo_free_async(stream, scratch);
}
SCENE_TEST(test_streams_peer_120_memory_of_a_fork) {
  forking fork = {.side = test_stream(s->fixture, "side"), .events = {test_event(s->fixture), test_event(s->fixture)}};
  rondo_function *f = SCENE_FUNCTION(s, "f", forking_body, &fork, RONDO_INPUTS(RONDO_INPUT_MOVING));
  for (uint32_t i = 0; i < 5; i++) {
    scene_check(s, f, scene_at(scene_words(s, i)), 3 * i + 1, 3);
  }
  assert_seen(s, "erppp");
  assert_int_equal(scene_info(s).eager_bytes, 0);
  for (int i = 0; i < 2; i++) rondo_event_destroy(fork.events[i]);
  test_stream_destroy(fork.side);
}

/* A fork that is not joined cannot be recorded; the call is right, and the stream is free for other things again. */
static rondo_status unjoined_body(rondo_call *call, void *user) {
  forking *fork = user;
  scene_put(call, 0, scene_input(call, 0), 3, 1);
  TRY(rondo_event_record(fork->events[0], rondo_call_stream(call)));
  TRY(rondo_stream_wait_event(fork->side, fork->events[0]));
  return rondo_copy_async(fork->side, fork->words, rondo_call_input(call, 0), SCENE_BYTES);
}
SCENE_TEST(test_streams_a_fork_is_not_joined) {
  forking fork = {
      .side = test_stream(s->fixture, "side"), .words = scene_words(s, 0), .events = {test_event(s->fixture), NULL}};
  rondo_function *f = SCENE_FUNCTION(s, "f", unjoined_body, &fork, RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 4; i++) {
    scene_check(s, f, scene_at(x), 4, 3);
    if (i > 0) assert_skip(s->tree, OTHER_WORK);
    assert_ok(rondo_stream_synchronize(fork.side));
    scene_assert_words(s, fork.words, 1, 1);
  }
  assert_seen(s, "eeee");
  rondo_event_destroy(fork.events[0]);
  test_stream_destroy(fork.side);
}

/* 88 test_manager_per_device, 236 (its device): a tree of the second device uses nothing of the first one's. */
SCENE_TEST(test_devices_peer_88_236_the_second_device) {
  const char *name = test_device_is("cuda") ? "cuda:1" : test_is_guarded(s->fixture) ? "cpu:check:1" : "cpu:1";
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1,
                                        .allocator = &s->fixture->allocator.table};
  const rondo_memory_statistics before = test_memory_statistics(s->fixture);
  test_fixture second = {.allocator = s->fixture->allocator};
  void *words;
  const rondo_status opened = rondo_device_open(name, &options, &second.device);
  if (opened == RONDO_NOT_FOUND && test_device_is("cuda")) skip(); /* one GPU */
  assert_ok(opened);
  assert_ok(
      rondo_kernel_create(second.device, test_kernel_options(TEST_KERNEL_AFFINE), &second.kernels[TEST_KERNEL_AFFINE]));
  assert_ok(rondo_malloc(second.device, SCENE_BYTES, NULL, &words));
  assert_ok(rondo_stream_create(second.device, NULL, &second.stream));
  tree_user user = {.fixture = &second, .affine = second.kernels[TEST_KERNEL_AFFINE], .words = words, .calls = 5};
  scene_set(&(test_scene){.fixture = &second}, words, 1);
  run_user(&user);
  assert_user(&user);
  const rondo_memory_statistics after = test_memory_statistics(s->fixture);
  assert_int_equal(after.arena_backed, before.arena_backed);
  assert_int_equal(after.pool_reserved, before.pool_reserved);
  assert_ok(rondo_free(second.device, words));
  rondo_kernel_destroy(second.kernels[TEST_KERNEL_AFFINE]);
  assert_ok(rondo_stream_destroy(second.stream));
  assert_ok(rondo_device_close(second.device));
}
