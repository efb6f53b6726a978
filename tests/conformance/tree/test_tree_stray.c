/* SPDX-License-Identifier: MIT
 * Stray work (TR-8): work that a body queues on a stream that it did not fork would run once, during the recording, and
 * be missing from replays. Each call that queues such work fails and is named, whatever the body does with the error.
 * The reason is typed, and the body runs eagerly, so that the work is done exactly once in each call (TR-15). Calls
 * that queue no work, and work that is forked or belongs to another capture, to another thread or to a host step, are
 * not stray.
 * In assert_seen, each letter is a call: e eager, r recorded, p replayed.
 */
#include <rondo/collective.h>
#include <rondo/patch.h>
#include <rondo/program.h>
#include <rondo/random.h>
#include <rondo/recording.h>
#include <stdio.h>
#include <string.h>

#include "support/foreign_library.h"
#include "support/test_program.h"
#include "support/test_scene.h"

enum { CALLS = 4 };

/* What a body does in addition to its own work: out = in * 3 + 1. */
typedef struct stray {
  test_scene *scene;
  rondo_device *device; /* of the stray work; not always the scene's */
  rondo_stream *stream; /* that the body does not fork */
  rondo_kernel *affine;
  uint32_t *words; /* SCENE_WORDS of that device */
  rondo_event *event;
  rondo_graph *graph;
  rondo_exec *exec; /* word += 1, as a launch of the graph */
  rondo_patch_set *patches;
  rondo_recording *recording;
  rondo_generator *generator;
  rondo_communicator *communicator; /* of one rank; NULL where there are no collectives */
  rondo_compiled *compiled;
  rondo_tree *tree; /* another one */
  rondo_function *function;
  rondo_buffer *buffer;
  foreign_library *library; /* NULL where there are no native handles */
  rondo_status (*work)(struct stray *self);
  uint32_t host_calls, runs, refused;
  bool is_deaf; /* the body ignores the status of the work */
} stray;

static rondo_status add_one(const stray *self, rondo_stream *stream) {
  const uint32_t one = 1;
  return rondo_launch(stream, self->affine, (rondo_grid){SCENE_WORDS, 0, 0}, RONDO_ARGS(&one, &one, &self->words));
}

static rondo_status body(rondo_call *call, void *user) {
  stray *self = user;
  self->runs++;
  scene_put(call, 0, scene_input(call, 0), 3, 1);
  const rondo_status status = self->work(self);
  if (status != RONDO_OK) self->refused++;
  test_note_error();
  return self->is_deaf ? RONDO_OK : status;
}

/* The works -------------------------------------------------------------------------------------------------------- */

static rondo_status by_launch(stray *self) { return add_one(self, self->stream); }
/* No mode of the thread allows it. */
static rondo_status by_relaxed_launch(stray *self) {
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED;
  assert_ok(rondo_capture_exchange_thread_mode(&mode));
  const rondo_status status = by_launch(self);
  assert_ok(rondo_capture_exchange_thread_mode(&mode));
  return status;
}
static rondo_status by_launch_with(stray *self) {
  const uint32_t one = 1;
  const rondo_launch_options options = {RONDO_LAUNCH_OPTIONS_INIT, .name = "one more"};
  return rondo_launch_with(self->stream, self->affine, (rondo_grid){SCENE_WORDS, 0, 0},
                           RONDO_ARGS(&one, &one, &self->words), &options);
}
static rondo_status by_copy(stray *self) {
  return rondo_copy_async(self->stream, self->words, self->words + SCENE_WORDS / 2, SCENE_BYTES / 2);
}
static rondo_status by_copy_box(stray *self) {
  const rondo_copy copy = {.dst = self->words,
                           .src = self->words + SCENE_WORDS / 2,
                           .width = 16,
                           .height = 2,
                           .dst_pitch = 32,
                           .src_pitch = 16};
  return rondo_copy_box_async(self->stream, &copy);
}
static rondo_status by_fill(stray *self) {
  const rondo_fill fill = {.dst = self->words, .value = 7, .element_bytes = 4, .width = SCENE_WORDS};
  return rondo_fill_async(self->stream, &fill);
}
static rondo_status by_host(stray *self) { return rondo_host_async(self->stream, test_host_count, &self->host_calls); }
static rondo_status by_record(stray *self) { return rondo_event_record(self->event, self->stream); }
static rondo_status by_wait(stray *self) { return rondo_stream_wait_event(self->stream, self->event); }
static rondo_status by_malloc(stray *self) {
  void *scratch;
  const rondo_status status = rondo_malloc_async(self->stream, 4096, NULL, &scratch);
  return status == RONDO_OK ? rondo_free_async(self->stream, scratch) : status;
}
static rondo_status by_exec(stray *self) { return rondo_exec_launch(self->exec, self->stream); }
static rondo_status by_patches(stray *self) {
  const void *address = self->words;
  return rondo_patch_set_launch(self->patches, self->stream, &address);
}
static rondo_status by_recording(stray *self) { return rondo_recording_replay(self->recording, self->stream); }
static rondo_status by_generator(stray *self) {
  rondo_random random;
  return rondo_generator_reserve(self->generator, self->stream, 4, &random);
}
static rondo_status by_uniform(stray *self) {
  return rondo_random_uniform(self->generator, self->stream, (float *)self->words, SCENE_WORDS, 0, 1);
}
static rondo_status by_function(stray *self) {
  const rondo_input input = {.address = self->words, .bytes = SCENE_BYTES};
  rondo_buffer *out;
  const rondo_status status = rondo_function_call(self->function, self->stream, &input, 1, &out, 1);
  if (status == RONDO_OK) rondo_buffer_release(out);
  return status;
}
static rondo_status by_all_reduce(stray *self) {
  return rondo_all_reduce(self->communicator, self->stream, self->words, self->words, SCENE_WORDS, RONDO_I32,
                          RONDO_REDUCE_SUM);
}
static rondo_status by_barrier(stray *self) { return rondo_barrier(self->communicator, self->stream); }
static rondo_status by_measure(stray *self) {
  rondo_node_time times[1];
  size_t count = 1;
  return rondo_exec_measure(self->exec, self->stream, 1, times, &count);
}
static rondo_status by_buffer_copy(stray *self) {
  return rondo_buffer_copy(self->buffer, self->stream, 0, self->words, SCENE_BYTES);
}
static rondo_status by_buffer_clone(stray *self) {
  rondo_buffer *clone;
  const rondo_status status = rondo_buffer_clone(self->buffer, self->stream, &clone);
  if (status == RONDO_OK) rondo_buffer_release(clone);
  return status;
}
static rondo_status by_prepare(stray *self) {
  const rondo_input input = {.address = self->words, .bytes = SCENE_BYTES};
  return rondo_function_prepare(self->function, self->stream, &input, 1);
}

typedef struct stray_case {
  const char *name; /* of the call that is refused */
  rondo_status (*work)(stray *self);
} stray_case;
static const stray_case works[] = {
    {"rondo_launch", by_launch},
    {"rondo_launch", by_relaxed_launch},
    {"rondo_launch_with", by_launch_with},
    {"rondo_copy_async", by_copy},
    {"rondo_copy_box_async", by_copy_box},
    {"rondo_fill_async", by_fill},
    {"rondo_host_async", by_host},
    {"rondo_event_record", by_record},
    {"rondo_stream_wait_event", by_wait},
    {"rondo_malloc_async", by_malloc},
    {"rondo_exec_launch", by_exec},
    {"rondo_patch_set_launch", by_patches},
    {"rondo_exec_launch", by_recording},
    {"rondo_generator_reserve", by_generator},
    {"rondo_generator_reserve", by_uniform},
    {"rondo_function_call", by_function},
    {"rondo_function_prepare", by_prepare},
    {"rondo_exec_measure", by_measure},
    {"rondo_copy_async", by_buffer_copy},
    {"rondo_buffer_clone", by_buffer_clone},
    {"rondo_all_reduce", by_all_reduce},
    {"rondo_barrier", by_barrier},
};
enum { COLLECTIVES = 2, WORKS = sizeof works / sizeof works[0] };

/* The last are collectives, which are not everywhere. */
static size_t count_works(const stray *self) { return self->communicator == NULL ? WORKS - COLLECTIVES : WORKS; }

/* Life ------------------------------------------------------------------------------------------------------------- */

static void make_exec(stray *self) {
  const void *address = self->words;
  const rondo_patch_input input = {.address = address, .bytes = SCENE_BYTES};
  assert_ok(rondo_capture_begin(self->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(add_one(self, self->stream));
  assert_ok(rondo_capture_end(self->stream, &self->graph));
  assert_ok(rondo_instantiate(self->graph, NULL, &self->exec));
  assert_ok(rondo_patch_set_create(self->exec, &input, 1, NULL, &self->patches));
  assert_ok(rondo_recording_create(self->device, NULL, &self->recording));
  assert_ok(rondo_recording_capture_begin(self->recording, self->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(add_one(self, self->stream));
  assert_ok(rondo_recording_capture_end(self->recording, self->stream));
}

static rondo_status other_body(rondo_call *call, void *user) {
  void *out;
  const rondo_status status = rondo_call_output(call, 0, SCENE_BYTES, NULL, &out);
  return status == RONDO_OK ? add_one(user, rondo_call_stream(call)) : status;
}

/* On the scene's device, or on another one, which then is the stray's. */
static void open_stray(stray *self, test_scene *s, rondo_device *device) {
  void *words;
  *self = (stray){.scene = s, .device = device};
  assert_ok(
      rondo_stream_create(device, &(rondo_stream_options){RONDO_STREAM_OPTIONS_INIT, .name = "side"}, &self->stream));
  assert_ok(rondo_kernel_create(device, test_kernel_options(TEST_KERNEL_AFFINE), &self->affine));
  assert_ok(rondo_malloc(device, SCENE_BYTES, "stray words", &words));
  self->words = words;
  assert_ok(by_fill(self));
  assert_ok(rondo_event_create(device, NULL, &self->event));
  assert_ok(rondo_event_record(self->event, self->stream));
  assert_ok(rondo_generator_create(device, NULL, &self->generator));
  const rondo_status ranked = rondo_communicator_create_all(&device, 1, NULL, &self->communicator);
  if (!test_device_is("cuda")) assert_int_equal(ranked, RONDO_OK);
  assert_ok(rondo_tree_create(device, NULL, &self->tree));
  static const uint32_t moving = RONDO_INPUT_MOVING | RONDO_INPUT_MUTATED;
  const rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT, .name = "other",
                                          .body = other_body,          .user = self,
                                          .inputs = &moving,           .input_count = 1};
  assert_ok(rondo_function_create(self->tree, &options, &self->function));
  assert_ok(rondo_buffer_create(self->tree, SCENE_BYTES, NULL, &self->buffer));
  make_exec(self);
}

static void close_stray(stray *self) {
  rondo_buffer_release(self->buffer);
  assert_ok(rondo_tree_destroy(self->tree));
  assert_ok(rondo_stream_synchronize(self->stream));
  assert_ok(rondo_recording_destroy(self->recording));
  assert_ok(rondo_communicator_destroy(self->communicator));
  rondo_patch_set_destroy(self->patches);
  rondo_exec_destroy(self->exec);
  assert_ok(rondo_graph_destroy(self->graph));
  rondo_generator_destroy(self->generator);
  rondo_event_destroy(self->event);
  assert_ok(rondo_free(self->device, self->words));
  rondo_kernel_destroy(self->affine);
  assert_ok(rondo_stream_destroy(self->stream));
}

static rondo_function *make_function(stray *self, rondo_status (*work)(stray *self), bool is_deaf) {
  self->work = work;
  self->is_deaf = is_deaf;
  self->runs = self->refused = 0;
  return SCENE_FUNCTION(self->scene, "f", body, self, RONDO_INPUTS(RONDO_INPUT_MOVING));
}

static uint32_t first_word(const stray *self) {
  uint32_t word;
  assert_ok(rondo_stream_synchronize(self->stream));
  assert_ok(rondo_copy_async(self->stream, &word, self->words, sizeof word));
  assert_ok(rondo_stream_synchronize(self->stream));
  return word;
}

/* Refusals --------------------------------------------------------------------------------------------------------- */

static void assert_last_message(const test_scene *s, const char *text) {
  const rondo_call_info info = test_last_call(s->tree);
  if (strstr(info.message, text) == NULL) print_error("no '%s' in: %s\n", text, info.message);
  assert_non_null(strstr(info.message, text));
}

static void assert_call(test_scene *s, rondo_function *f, const uint32_t *x) { scene_check(s, f, scene_at(x), 4, 3); }

/* Calls of which all but the first are refused a recording, the second by trying. */
static void assert_refused(stray *self, const stray_case *tried, bool is_deaf, rondo_skip skip) {
  test_scene *s = self->scene;
  rondo_function *f = make_function(self, tried->work, is_deaf);
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < CALLS; i++) {
    assert_call(s, f, x);
    if (i == 0) continue;
    assert_string_equal(rondo_skip_name(test_last_call(s->tree).skip), rondo_skip_name(skip));
    assert_last_message(s, tried->name);
    assert_last_message(s, "'side'");
    assert_last_message(s, "'f'");
  }
  assert_seen(s, "eeee");
  assert_int_equal(self->runs, CALLS + 1);
  assert_int_equal(self->refused, 1);
  assert_int_equal(test_function_info(f).recordings, 0);
  assert_int_equal(test_function_info(f).skipped[skip], CALLS - 1);
  assert_ok(rondo_function_destroy(f));
}

static void assert_all_refused(stray *self, rondo_skip skip) {
  for (size_t i = 0; i < count_works(self); i++)
    for (int is_deaf = 0; is_deaf < 2; is_deaf++) assert_refused(self, &works[i], is_deaf == 1, skip);
}

SCENE_TEST(test_tr8_work_on_a_stream_that_is_not_forked) {
  stray self;
  open_stray(&self, s, s->fixture->device);
  assert_all_refused(&self, RONDO_SKIP_OTHER_WORK);
  close_stray(&self);
}

/* Where the test's device has a second one. */
static bool open_second(const test_scene *s, rondo_device **out) {
  const char *name = test_device_is("cuda") ? "cuda:1" : test_is_guarded(s->fixture) ? "cpu:check:1" : "cpu:1";
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1,
                                        .allocator = &s->fixture->allocator.table};
  const rondo_status opened = rondo_device_open(name, &options, out);
  if (opened == RONDO_NOT_FOUND && test_device_is("cuda")) return false; /* one GPU */
  assert_ok(opened);
  return true;
}

SCENE_TEST(test_tr8_work_on_another_device) {
  rondo_device *second;
  stray self;
  if (!open_second(s, &second)) skip();
  open_stray(&self, s, second);
  assert_all_refused(&self, RONDO_SKIP_SEVERAL_DEVICES);
  close_stray(&self);
  assert_ok(rondo_device_close(second));
}

/* Where the test's device is none of the host. */
static bool open_host(const test_scene *s, rondo_device **out) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1,
                                        .allocator = &s->fixture->allocator.table};
  if (!test_device_is("cuda")) return false;
  assert_ok(rondo_device_open("cpu", &options, out));
  return true;
}

/* Next to a GPU: work, and memory in its order, of a device of the host. */
SCENE_TEST(test_tr8_work_on_the_host_device) {
  rondo_device *host;
  stray self;
  if (!open_host(s, &host)) skip();
  open_stray(&self, s, host);
  assert_all_refused(&self, RONDO_SKIP_SEVERAL_DEVICES);
  close_stray(&self);
  assert_ok(rondo_device_close(host));
}

/* Each call does it once. */
SCENE_TEST(test_tr15_stray_work_is_done_once_a_call) {
  static rondo_status (*const counted[])(stray *) = {by_launch, by_launch_with, by_exec, by_patches, by_recording};
  stray self;
  open_stray(&self, s, s->fixture->device);
  const uint32_t *x = scene_words(s, 1);
  for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++) {
    const uint32_t before = first_word(&self);
    rondo_function *f = make_function(&self, counted[i], i % 2 == 1);
    for (int k = 0; k < CALLS; k++) assert_call(s, f, x);
    assert_int_equal(first_word(&self) - before, CALLS);
  }
  rondo_function *f = make_function(&self, by_host, false), *drawing = make_function(&self, by_generator, true);
  self.host_calls = 0;
  for (int i = 0; i < CALLS; i++) {
    self.work = by_host;
    assert_call(s, f, x);
    self.work = by_generator;
    assert_call(s, drawing, x);
  }
  assert_ok(rondo_stream_synchronize(self.stream));
  assert_int_equal(self.host_calls, CALLS);
  rondo_generator_state drawn = {.struct_size = sizeof drawn};
  assert_ok(rondo_generator_get_state(self.generator, &drawn));
  assert_int_equal(drawn.offset, 4 * CALLS);
  close_stray(&self);
}

/* Compiled programs have a stream of their own. */
static rondo_status by_program(stray *self) { return rondo_compiled_run(self->compiled); }
static rondo_status by_program_eager(stray *self) { return rondo_compiled_run_eager(self->compiled); }

static rondo_compiled *compile(rondo_device *device) {
  const size_t shape[] = {1, SCENE_WORDS};
  rondo_program *program = test_named_program("aside");
  rondo_value x;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  assert_ok(rondo_op_tanh(program, x, &x));
  assert_ok(rondo_program_output(program, "y", x));
  return test_compile(program, device, NULL);
}

SCENE_TEST(test_tr8_programs_run_on_streams_of_their_own) {
  stray self;
  open_stray(&self, s, s->fixture->device);
  self.compiled = compile(s->fixture->device);
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 4; i++) {
    rondo_function *f = make_function(&self, i < 2 ? by_program : by_program_eager, i % 2 == 0);
    for (int k = 0; k < CALLS; k++) {
      assert_call(s, f, x);
      if (k > 0) assert_skip(s->tree, OTHER_WORK);
      if (k > 0) assert_last_message(s, i < 2 ? "rondo_exec_launch" : "rondo_compiled_run_eager");
    }
    assert_int_equal(self.refused, 1);
  }
  assert_ok(rondo_compiled_destroy(self.compiled));
  close_stray(&self);
}

/* GM-17: memory of another device that is no longer accessible when the body is recorded, and a body that ignores that.
 * */
static rondo_status into_the_other(stray *self) {
  const uint32_t one = 1;
  rondo_kernel *kernel = test_kernel(self->scene->fixture, TEST_KERNEL_AFFINE);
  return rondo_launch(self->scene->stream, kernel, (rondo_grid){SCENE_WORDS, 0, 0},
                      RONDO_ARGS(&one, &one, &self->words));
}
SCENE_TEST(test_tr8_memory_of_another_device_out_of_reach) {
  s->fails_inside = true;
  rondo_device *second, *first = s->fixture->device;
  bool is_peer = false;
  stray self;
  if (!open_second(s, &second)) skip();
  open_stray(&self, s, second);
  assert_ok(rondo_device_can_access_peer(first, second, &is_peer));
  if (is_peer) {
    const uint32_t *x = scene_words(s, 1), before = first_word(&self);
    rondo_function *f = make_function(&self, into_the_other, true);
    assert_ok(rondo_memory_set_access(second, first, true));
    assert_call(s, f, x);
    assert_ok(rondo_stream_synchronize(s->stream));
    assert_ok(rondo_memory_set_access(second, first, false));
    for (int i = 0; i < 3; i++) {
      assert_call(s, f, x);
      assert_skip(s->tree, SEVERAL_DEVICES);
      assert_last_message(s, "stray words");
    }
    assert_seen(s, "eeee");
    assert_int_equal(first_word(&self) - before, 1);
  }
  close_stray(&self);
  assert_ok(rondo_device_close(second));
}

/* A strict tree returns it as an error, and preparing reports it. */
SCENE_TEST(test_tr8_stray_work_in_a_strict_tree) {
  stray self;
  open_stray(&self, s, s->fixture->device);
  const rondo_input x = scene_at(scene_words(s, 1));
  rondo_function *f = make_function(&self, by_launch, true);
  assert_error(rondo_function_prepare(f, s->stream, &x, 1), RONDO_UNSUPPORTED, RONDO_REASON_NOT_RECORDED);
  assert_message("OTHER_WORK");
  assert_message("rondo_launch");
  SCENE_TREE(s, .strict = true);
  f = make_function(&self, by_launch, true);
  rondo_buffer *out;
  rondo_buffer_release(scene_call(s, f, x));
  assert_error(rondo_function_call(f, s->stream, &x, 1, &out, 1), RONDO_UNSUPPORTED, RONDO_REASON_NOT_RECORDED);
  assert_message("OTHER_WORK");
  assert_message("rondo_stream_wait_event"); /* the remedy */
  close_stray(&self);
}

/* After the first one nothing more is queued of that run, on no stream. */
static rondo_status go_on(stray *self) {
  uint32_t before = self->refused;
  for (int i = 0; i < 3; i++) self->refused += add_one(self, self->stream) != RONDO_OK;
  if (self->refused == before) return RONDO_OK;
  assert_int_equal(self->refused - before, 3);
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_STRAY_WORK);
  assert_error(add_one(self, self->scene->stream), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
  assert_message("rondo_launch on stream 'side'");
  return RONDO_OK;
}
SCENE_TEST(test_tr15_a_body_that_strays_on_and_on) {
  stray self;
  open_stray(&self, s, s->fixture->device);
  const uint32_t *x = scene_words(s, 1);
  rondo_function *f = make_function(&self, go_on, true);
  const uint32_t before = first_word(&self);
  for (int i = 0; i < CALLS; i++) assert_call(s, f, x);
  assert_int_equal(first_word(&self) - before, 3 * CALLS);
  assert_int_equal(self.refused, 3);
  assert_seen(s, "eeee");
  close_stray(&self);
}

/* Segments --------------------------------------------------------------------------------------------------------- */

/* In place, before its step: in + 1. After the step, the stray work, and then more on its own stream, which is not
 * checked. */
static rondo_status segments_body(rondo_call *call, void *user) {
  stray *self = user;
  self->runs++;
  scene_change(call, scene_input(call, 0), 1, 1);
  scene_put(call, 0, scene_input(call, 0), 1, 0);
  assert_ok(rondo_call_host_step(call, test_host_nothing, NULL));
  const bool is_refused = add_one(self, self->stream) != RONDO_OK;
  const rondo_status step = rondo_call_host_step(call, test_host_nothing, NULL);
  assert_int_equal(step == RONDO_OK, !is_refused);
  if (is_refused) {
    assert_error(add_one(self, rondo_call_stream(call)), RONDO_CAPTURE_REFUSED, RONDO_REASON_STRAY_WORK);
    assert_message("does not capture any more");
  }
  return RONDO_OK;
}

/* TR-14, TR-15: the first segment, which has run, is undone; the work after the end of the recording is not queued. */
SCENE_TEST(test_tr15_stray_work_after_a_host_step) {
  stray self;
  open_stray(&self, s, s->fixture->device);
  const uint32_t before = first_word(&self);
  rondo_function *f =
      SCENE_FUNCTION(s, "f", segments_body, &self, RONDO_INPUTS(RONDO_INPUT_MOVING | RONDO_INPUT_MUTATED));
  uint32_t *x = scene_words(s, 1);
  for (uint32_t i = 0; i < CALLS; i++) {
    scene_check(s, f, scene_at(x), 2 + i, 1);
    if (i > 0) assert_skip(s->tree, OTHER_WORK);
  }
  scene_assert_words(s, x, 1 + CALLS, 1);
  assert_int_equal(first_word(&self) - before, CALLS);
  close_stray(&self);
}

/* A host step may use other streams, in every run. */
static rondo_status stray_step(void *user) { return by_launch(user); }
static rondo_status step_body(rondo_call *call, void *user) {
  scene_put(call, 0, scene_input(call, 0), 3, 1);
  return rondo_call_host_step(call, stray_step, user);
}
SCENE_TEST(test_tr14_host_steps_may_use_other_streams) {
  stray self;
  open_stray(&self, s, s->fixture->device);
  const uint32_t before = first_word(&self);
  rondo_function *f = SCENE_FUNCTION(s, "f", step_body, &self, RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < CALLS; i++) assert_call(s, f, x);
  assert_seen(s, "erpp");
  assert_int_equal(first_word(&self) - before, CALLS);
  close_stray(&self);
}

/* What is not stray ------------------------------------------------------------------------------------------------ */

static rondo_status forked(stray *self) {
  assert_ok(rondo_event_record(self->event, self->scene->stream));
  assert_ok(rondo_stream_wait_event(self->stream, self->event));
  assert_ok(by_launch(self));
  assert_ok(by_malloc(self));
  assert_ok(by_exec(self));
  assert_ok(rondo_event_record(self->event, self->stream));
  return rondo_stream_wait_event(self->scene->stream, self->event);
}

/* A graph of the body's own, captured on the other stream and launched into the recording. */
static rondo_status captured_otherwise(stray *self) {
  assert_ok(rondo_capture_begin(self->stream, RONDO_CAPTURE_RELAXED));
  for (int i = 0; i < 2; i++) assert_ok(add_one(self, self->stream));
  rondo_graph *graph = test_capture_end(self->stream);
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_graph_destroy(graph));
  assert_ok(rondo_exec_launch(exec, self->scene->stream));
  rondo_exec_destroy(exec);
  return RONDO_OK;
}

static void launch_elsewhere(void *user) {
  stray *self = user;
  self->refused += by_launch(self) != RONDO_OK;
}

/* Two launches by another thread; replays do not repeat work that is not the body's, so it counts in one of CALLS runs.
 * */
static rondo_status by_another_thread(stray *self) {
  for (int i = 0; i < 2; i++) test_on_thread(launch_elsewhere, self);
  return RONDO_OK;
}

/* Streams and events are created and destroyed; an upload does what the first launch would. */
static rondo_status preparing(stray *self) {
  rondo_stream *stream = NULL;
  rondo_event *event = NULL;
  assert_ok(rondo_stream_create(self->device, NULL, &stream));
  assert_ok(rondo_event_create(self->device, NULL, &event));
  assert_ok(rondo_exec_upload(self->exec, stream));
  rondo_event_destroy(event);
  assert_ok(rondo_stream_destroy(stream));
  for (int i = 0; i < 2; i++) assert_ok(add_one(self, self->scene->stream));
  return RONDO_OK;
}

SCENE_TEST(test_tr1_what_is_not_stray_is_recorded) {
  static rondo_status (*const fine[])(stray *) = {forked, captured_otherwise, preparing, by_another_thread};
  stray self;
  open_stray(&self, s, s->fixture->device);
  const uint32_t *x = scene_words(s, 1);
  for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++) {
    const uint32_t before = first_word(&self);
    rondo_function *f = make_function(&self, fine[i], false);
    for (int k = 0; k < CALLS; k++) assert_call(s, f, x);
    assert_seen(s, "erpp");
    assert_int_equal(self.refused, 0);
    const uint32_t times = fine[i] == by_another_thread ? 2 : CALLS; /* its body ran twice */
    assert_ok(rondo_stream_synchronize(s->stream));
    assert_int_equal(first_word(&self) - before, 2 * times);
  }
  close_stray(&self);
}

/* A library forks the stream and joins it again, with its own events (GX-8). */
static rondo_status forked_by_a_library(stray *self) {
  void *own = rondo_stream_native(self->scene->stream), *other = rondo_stream_native(self->stream);
  assert_int_equal(foreign_order(self->library, own, other), 0);
  for (int i = 0; i < 2; i++) assert_ok(by_launch(self));
  assert_int_equal(foreign_order(self->library, other, own), 0);
  return RONDO_OK;
}
SCENE_TEST(test_gx8_what_a_library_forked_is_not_stray) {
  stray self;
  if (!test_device_is("cuda")) skip();
  open_stray(&self, s, s->fixture->device);
  self.library = foreign_open();
  assert_non_null(self.library);
  const uint32_t before = first_word(&self), *x = scene_words(s, 1);
  rondo_function *f = make_function(&self, forked_by_a_library, false);
  for (int k = 0; k < CALLS; k++) assert_call(s, f, x);
  assert_seen(s, "erpp");
  assert_ok(rondo_stream_synchronize(s->stream));
  assert_int_equal(first_word(&self) - before, 2 * CALLS);
  foreign_close(self.library);
  close_stray(&self);
}

/* A thread whose bodies always stray, and a second one that launches, allocates and captures by hand. */
enum { ROUNDS = 20, BUSY = 100 };

typedef struct straying {
  stray *self;
  const uint32_t *x;
  rondo_status status;
  uint64_t skipped;
} straying;

static rondo_status bare_body(rondo_call *call, void *user) {
  void *out;
  rondo_status status = rondo_call_output(call, 0, SCENE_BYTES, NULL, &out);
  if (status == RONDO_OK)
    status = rondo_copy_async(rondo_call_stream(call), out, rondo_call_input(call, 0), SCENE_BYTES);
  return status == RONDO_OK ? by_launch(user) : status;
}

static rondo_status stray_once(straying *s) {
  static const uint32_t moving = RONDO_INPUT_MOVING;
  const rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT, .name = "bare",
                                          .body = bare_body,           .user = s->self,
                                          .inputs = &moving,           .input_count = 1};
  const rondo_input input = scene_at(s->x);
  rondo_function_info info = {.struct_size = sizeof info};
  rondo_function *f;
  rondo_status status = rondo_function_create(s->self->scene->tree, &options, &f);
  for (int i = 0; i < CALLS && status == RONDO_OK; i++)
    status = rondo_function_call(f, s->self->scene->stream, &input, 1, NULL, 0);
  if (status == RONDO_OK) status = rondo_function_get_info(f, &info);
  s->skipped += info.skipped[RONDO_SKIP_OTHER_WORK];
  return status == RONDO_OK ? rondo_function_destroy(f) : status;
}

static void stray_on(void *user) {
  straying *s = user;
  for (int i = 0; i < ROUNDS && s->status == RONDO_OK; i++) s->status = stray_once(s);
}

static void be_busy(void *user) {
  stray *self = user;
  rondo_graph *graph;
  for (int i = 0; i < BUSY; i++) {
    self->refused += by_launch(self) != RONDO_OK;
    self->refused += by_malloc(self) != RONDO_OK;
    self->refused += rondo_capture_begin(self->stream, RONDO_CAPTURE_THREAD_LOCAL) != RONDO_OK;
    self->refused += by_launch(self) != RONDO_OK;
    self->refused += rondo_capture_end(self->stream, &graph) != RONDO_OK;
    self->refused += rondo_graph_destroy(graph) != RONDO_OK;
  }
}

SCENE_TEST_WORKERS(test_gx11_another_thread_goes_on) {
  stray self, busy;
  open_stray(&self, s, s->fixture->device);
  open_stray(&busy, s, s->fixture->device);
  straying here = {.self = &self, .x = scene_words(s, 1)};
  const uint32_t before = first_word(&self), before_busy = first_word(&busy);
  test_on_threads((const test_thread[]){{stray_on, &here}, {be_busy, &busy}}, 2);
  assert_ok(here.status);
  assert_int_equal(here.skipped, ROUNDS * (CALLS - 1));
  assert_int_equal(busy.refused, 0);
  assert_int_equal(first_word(&self) - before, ROUNDS * CALLS);
  assert_int_equal(first_word(&busy) - before_busy, BUSY);
  close_stray(&busy);
  close_stray(&self);
}

/* Replays lack order after work outside of the recording, as they lack the work: an event that was recorded there, and
 * one of another capture. */
static rondo_status after_another_stream(stray *self) {
  return rondo_stream_wait_event(self->scene->stream, self->event);
}
static rondo_status after_another_capture(stray *self) {
  rondo_graph *graph = NULL;
  if (test_capture_info(self->scene->stream).state != RONDO_CAPTURE_ACTIVE) return RONDO_OK;
  rondo_event *event = test_event(self->scene->fixture);
  assert_ok(rondo_capture_begin(self->stream, RONDO_CAPTURE_RELAXED));
  assert_ok(rondo_event_record(event, self->stream));
  const rondo_status status = rondo_stream_wait_event(self->scene->stream, event);
  rondo_event_destroy(event);
  return rondo_capture_end(self->stream, &graph) == RONDO_OK ? rondo_graph_destroy(graph) : status;
}
SCENE_TEST(test_tr8_order_after_what_is_outside) {
  static rondo_status (*const waits[])(stray *) = {after_another_stream, after_another_capture};
  stray self;
  open_stray(&self, s, s->fixture->device);
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 4; i++) {
    rondo_function *f = make_function(&self, waits[i / 2], i % 2 == 0);
    for (int k = 0; k < CALLS; k++) {
      assert_call(s, f, x);
      if (k > 0) assert_skip(s->tree, OTHER_WORK);
      if (k > 0) assert_last_message(s, "rondo_stream_wait_event");
    }
    assert_int_equal(self.refused, 1);
  }
  close_stray(&self);
}

/* Waits and queries have their own reason. */
static rondo_status by_synchronize(stray *self) { return rondo_stream_synchronize(self->stream); }
static rondo_status by_query(stray *self) {
  const rondo_status status = rondo_stream_query(self->stream);
  return status == RONDO_NOT_READY ? RONDO_OK : status;
}
static rondo_status by_event_synchronize(stray *self) { return rondo_event_synchronize(self->event); }
static rondo_status by_device_synchronize(stray *self) { return rondo_device_synchronize(self->device); }
static rondo_status by_malloc_at_once(stray *self) {
  void *address;
  const rondo_status status = rondo_malloc(self->device, 64, NULL, &address);
  return status == RONDO_OK ? rondo_free(self->device, address) : status;
}

static rondo_status by_host_malloc(stray *self) {
  void *address;
  const rondo_status status = rondo_host_malloc(self->device, 64, &address);
  return status == RONDO_OK ? rondo_host_free(self->device, address) : status;
}

static rondo_status by_seed(stray *self) { return rondo_generator_seed(self->generator, 7); }

/* C10: the capture that the fork is part of becomes invalid. */
static rondo_status by_destroying_a_fork(stray *self) {
  test_scene *s = self->scene;
  rondo_stream *fork = test_stream(s->fixture, "fork");
  test_order(s->fixture, s->stream, fork);
  test_order(s->fixture, fork, s->stream);
  return rondo_stream_destroy(fork);
}

static void assert_host_work(stray *self) {
  static const stray_case asking[] = {{"rondo_stream_synchronize", by_synchronize},
                                      {"rondo_stream_query", by_query},
                                      {"rondo_event_synchronize", by_event_synchronize},
                                      {"rondo_device_synchronize", by_device_synchronize},
                                      {"rondo_malloc", by_malloc_at_once},
                                      {"rondo_host_malloc", by_host_malloc},
                                      {"rondo_generator_seed", by_seed},
                                      {"destruction of stream 'fork'", by_destroying_a_fork}};
  test_scene *s = self->scene;
  const uint32_t *x = scene_words(s, 1);
  for (size_t i = 0; i < 2 * sizeof asking / sizeof asking[0]; i++) {
    const stray_case *tried = &asking[i / 2];
    rondo_function *f = make_function(self, tried->work, i % 2 == 0);
    for (int k = 0; k < CALLS; k++) {
      assert_call(s, f, x);
      if (k > 0) assert_skip(s->tree, HOST_WORK);
      if (k > 0) assert_last_message(s, tried->name);
    }
    assert_seen(s, "eeee");
  }
}

static void assert_host_work_of(test_scene *s, rondo_device *device) {
  stray self;
  open_stray(&self, s, device);
  assert_host_work(&self);
  close_stray(&self);
}

/* Of the device, of a second one, and of the host's next to a GPU; an immediate allocation is such a call. */
SCENE_TEST(test_tr8_waiting_for_other_streams_is_host_work) {
  rondo_device *other;
  assert_host_work_of(s, s->fixture->device);
  if (open_second(s, &other)) {
    assert_host_work_of(s, other);
    assert_ok(rondo_device_close(other));
  }
  if (open_host(s, &other)) {
    assert_host_work_of(s, other);
    assert_ok(rondo_device_close(other));
  }
}

/* Captures of the caller's ----------------------------------------------------------------------------------------- */

/* A body cannot run eagerly there: the call returns its error, and the capture says what was wrong. */
SCENE_TEST(test_tr8_stray_work_in_a_capture_of_the_callers) {
  stray self;
  open_stray(&self, s, s->fixture->device);
  const uint32_t before = first_word(&self);
  const rondo_input x = scene_at(scene_words(s, 1));
  for (int is_deaf = 0; is_deaf < 2; is_deaf++) {
    rondo_function *f = make_function(&self, by_launch, is_deaf == 1);
    rondo_graph *graph = NULL;
    rondo_buffer *out = NULL;
    assert_ok(rondo_capture_begin(s->stream, RONDO_CAPTURE_THREAD_LOCAL));
    const rondo_status status = rondo_function_call(f, s->stream, &x, 1, &out, 1);
    assert_int_equal(status, is_deaf ? RONDO_OK : RONDO_CAPTURE_REFUSED);
    if (status != RONDO_OK) assert_int_equal(rondo_last_error()->reason, RONDO_REASON_STRAY_WORK);
    rondo_buffer_release(out);
    assert_error(rondo_capture_end(s->stream, &graph), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
    assert_message("rondo_launch on stream 'side'");
  }
  assert_int_equal(first_word(&self), before);
  close_stray(&self);
}

/* C9: outside of trees, a thread may give work to other streams during its capture. */
SCENE_TEST(test_c2_work_outside_a_manual_capture) {
  stray self;
  open_stray(&self, s, s->fixture->device);
  const uint32_t before = first_word(&self);
  assert_ok(rondo_capture_begin(s->stream, RONDO_CAPTURE_THREAD_LOCAL));
  for (size_t i = 0; i < count_works(&self); i++)
    if (works[i].work != by_measure) assert_ok(works[i].work(&self)); /* which waits, C9 */
  test_graph_destroy(test_capture_end(s->stream));
  assert_true(first_word(&self) != before);
  close_stray(&self);
}
