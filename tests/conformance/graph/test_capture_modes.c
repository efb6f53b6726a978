/* SPDX-License-Identifier: MIT
 * GX-3: the modes of capture, C9. The capture's mode, the calling thread's mode and the thread that began the capture
 * decide which immediate calls are refused: the whole table. Also captures while a second thread is busy.
 */
#include "support/rondo_test.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { MODE_COUNT = 3 };
static const rondo_capture_mode all_modes[MODE_COUNT] = {RONDO_CAPTURE_GLOBAL, RONDO_CAPTURE_THREAD_LOCAL,
                                                         RONDO_CAPTURE_RELAXED};

typedef struct attempt {
  test_fixture *fixture;
  rondo_status (*call)(struct attempt *self);
  const char *name; /* of the function that is called */
  rondo_capture_mode thread_mode;
  rondo_stream *other;
  rondo_event *event; /* recorded outside the capture */
  void *memory;
  rondo_status status;
  rondo_reason reason;
  bool named;
} attempt;

static rondo_status call_malloc(attempt *self) { return rondo_malloc(self->fixture->device, 64, NULL, &self->memory); }

static rondo_status call_free(attempt *self) {
  const rondo_status status = rondo_free(self->fixture->device, self->memory);
  if (status == RONDO_OK) self->memory = NULL;
  return status;
}

static rondo_status call_stream_synchronize(attempt *self) { return rondo_stream_synchronize(self->other); }
static rondo_status call_event_synchronize(attempt *self) { return rondo_event_synchronize(self->event); }
static rondo_status call_trim(attempt *self) { return rondo_graph_memory_trim(self->fixture->device); }
static rondo_status call_capturing_synchronize(attempt *self) {
  return rondo_stream_synchronize(self->fixture->stream);
}
static rondo_status call_device_synchronize(attempt *self) { return rondo_device_synchronize(self->fixture->device); }

/* Runs the call under the thread mode, on whatever thread this is. */
static void try_call(void *user) {
  attempt *self = user;
  rondo_capture_mode mode = self->thread_mode;
  self->status = rondo_capture_exchange_thread_mode(&mode);
  if (self->status != RONDO_OK) return;
  self->status = self->call(self);
  if (self->status != RONDO_OK) {
    self->reason = rondo_last_error()->reason;
    self->named = strstr(rondo_last_error()->message, self->name) != NULL;
  }
  const rondo_status restored = rondo_capture_exchange_thread_mode(&mode);
  if (self->status == RONDO_OK) self->status = restored;
}

/* The rule of C9. */
static bool is_refused(rondo_capture_mode capture_mode, rondo_capture_mode thread_mode, bool own_thread) {
  if (thread_mode == RONDO_CAPTURE_RELAXED) return false;
  if (own_thread) return capture_mode != RONDO_CAPTURE_RELAXED;
  return thread_mode == RONDO_CAPTURE_GLOBAL && capture_mode == RONDO_CAPTURE_GLOBAL;
}

/* A refused call is named in its error and in that of the invalid capture; an allowed one does not affect the capture.
 * */
static void check_attempt(attempt *self, bool refused) {
  rondo_stream *stream = self->fixture->stream;
  rondo_graph *graph = NULL;
  if (refused) {
    assert_int_equal(self->status, RONDO_CAPTURE_REFUSED);
    assert_int_equal(self->reason, RONDO_REASON_UNSUPPORTED_CALL);
    assert_true(self->named);
    assert_int_equal(test_capture_state(stream), RONDO_CAPTURE_INVALIDATED);
    assert_error(rondo_capture_end(stream, &graph), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
    assert_message(self->name);
    assert_null(graph);
  } else {
    assert_int_equal(self->status, RONDO_OK);
    assert_int_equal(test_capture_state(stream), RONDO_CAPTURE_ACTIVE);
    test_graph_destroy(test_capture_end(stream));
  }
}

static void try_in_capture(attempt *self, rondo_capture_mode capture_mode, bool own_thread, bool refused) {
  assert_ok(rondo_capture_begin(self->fixture->stream, capture_mode));
  if (own_thread) {
    try_call(self);
  } else {
    test_on_thread(try_call, self);
  }
  if ((self->status != RONDO_OK) != refused) {
    print_error("%s with capture mode %d and thread mode %d, on %s thread\n", self->name, (int)capture_mode,
                (int)self->thread_mode, own_thread ? "the capture's" : "another");
  }
  check_attempt(self, refused);
}

static void try_everywhere(test_fixture *t, rondo_status (*call)(attempt *), const char *name) {
  attempt self = {.fixture = t, .call = call, .name = name, .other = test_stream(t, "other"), .event = test_event(t)};
  assert_ok(rondo_event_record(self.event, self.other));
  for (int i = 0; i < MODE_COUNT; i++) {
    for (int k = 0; k < MODE_COUNT; k++) {
      for (int own = 0; own < 2; own++) {
        if (call == call_free && self.memory == NULL) assert_ok(rondo_malloc(t->device, 64, NULL, &self.memory));
        self.thread_mode = all_modes[k];
        try_in_capture(&self, all_modes[i], own == 1, is_refused(all_modes[i], all_modes[k], own == 1));
        if (call == call_free) continue;
        assert_ok(rondo_free(t->device, self.memory));
        self.memory = NULL;
      }
    }
  }
  assert_ok(rondo_free(t->device, self.memory));
  rondo_event_destroy(self.event);
  test_stream_destroy(self.other);
}

TEST(test_gx3_c9_malloc) { try_everywhere(t, call_malloc, "rondo_malloc"); }
TEST(test_gx3_c9_free) { try_everywhere(t, call_free, "rondo_free"); }
TEST(test_gx3_c9_waiting_for_another_stream) { try_everywhere(t, call_stream_synchronize, "rondo_stream_synchronize"); }
TEST(test_gx3_c9_waiting_for_an_event_outside) { try_everywhere(t, call_event_synchronize, "rondo_event_synchronize"); }
TEST(test_gx3_c9_trimming) { try_everywhere(t, call_trim, "rondo_graph_memory_trim"); }

/* Waiting for the capturing stream, or for the whole device, is refused in every mode, from every thread. */
static void refuse_everywhere(test_fixture *t, rondo_status (*call)(attempt *), const char *name) {
  attempt self = {.fixture = t, .call = call, .name = name};
  for (int i = 0; i < MODE_COUNT; i++) {
    for (int k = 0; k < MODE_COUNT; k++) {
      for (int own = 0; own < 2; own++) {
        self.thread_mode = all_modes[k];
        try_in_capture(&self, all_modes[i], own == 1, true);
      }
    }
  }
}

TEST(test_gx3_c9_waiting_for_the_capturing_stream) {
  refuse_everywhere(t, call_capturing_synchronize, "rondo_stream_synchronize");
}
TEST(test_gx3_c9_waiting_for_the_device) { refuse_everywhere(t, call_device_synchronize, "rondo_device_synchronize"); }

static void read_thread_mode(void *user) {
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED;
  const bool read = rondo_capture_exchange_thread_mode(&mode) == RONDO_OK;
  *(bool *)user = read && mode == RONDO_CAPTURE_GLOBAL;
}

/* A thread starts with GLOBAL; an exchange returns the mode before; threads have modes of their own. */
TEST(test_gx3_c9_thread_modes_are_exchanged) {
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED;
  assert_ok(rondo_capture_exchange_thread_mode(&mode));
  assert_int_equal(mode, RONDO_CAPTURE_GLOBAL);
  mode = RONDO_CAPTURE_THREAD_LOCAL;
  assert_ok(rondo_capture_exchange_thread_mode(&mode));
  assert_int_equal(mode, RONDO_CAPTURE_RELAXED);
  bool fresh_thread_is_global = false;
  test_on_thread(read_thread_mode, &fresh_thread_is_global);
  assert_true(fresh_thread_is_global);
  mode = RONDO_CAPTURE_GLOBAL;
  assert_ok(rondo_capture_exchange_thread_mode(&mode));
  assert_int_equal(mode, RONDO_CAPTURE_THREAD_LOCAL);
}

/* Nothing stays refused once the capture is over. */
TEST(test_gx3_c9_refusals_end_with_the_capture) {
  void *memory = NULL;
  for (int i = 0; i < MODE_COUNT; i++) {
    assert_ok(rondo_capture_begin(t->stream, all_modes[i]));
    test_graph_destroy(test_capture_end(t->stream));
    assert_ok(rondo_malloc(t->device, 64, NULL, &memory));
    assert_ok(rondo_free(t->device, memory));
  }
}

/* A second thread that allocates, launches and waits all the time. */
typedef struct busy_thread {
  test_fixture *fixture;
  rondo_stream *stream;
  uint32_t *word;
  atomic_bool stop;
  atomic_uint rounds;
  rondo_status status;
  uint32_t refused; /* calls that a capture refused */
} busy_thread;

/* Returns true to continue. Counts refusals by a capture; other failures end the loop. */
static bool tolerate(busy_thread *self, rondo_status status) {
  if (status == RONDO_OK) return true;
  if (status == RONDO_CAPTURE_REFUSED) {
    self->refused++;
    return true;
  }
  self->status = status;
  return false;
}

static void stay_busy(void *user) {
  busy_thread *self = user;
  rondo_device *device = self->fixture->device;
  rondo_kernel *kernel = self->fixture->kernels[TEST_KERNEL_AFFINE];
  const uint32_t one = 1;
  bool going = true;
  while (going && !atomic_load(&self->stop)) {
    void *memory = NULL;
    going = tolerate(self, rondo_malloc(device, 256, NULL, &memory)) &&
            tolerate(self,
                     rondo_launch(self->stream, kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&one, &one, &self->word))) &&
            tolerate(self, rondo_stream_synchronize(self->stream));
    while (going && memory != NULL) {
      const uint32_t before = self->refused;
      going = tolerate(self, rondo_free(device, memory));
      if (self->refused == before) memory = NULL;
    }
    atomic_fetch_add(&self->rounds, 1);
  }
}

typedef struct capture_thread {
  test_fixture *fixture;
  busy_thread *busy;
  uint32_t *word;
  rondo_capture_mode mode;
  rondo_status status;
  uint32_t invalid; /* captures that the other thread spoiled */
} capture_thread;

static rondo_status capture_once(capture_thread *self) {
  rondo_stream *stream = self->fixture->stream;
  rondo_kernel *kernel = self->fixture->kernels[TEST_KERNEL_AFFINE];
  const uint32_t one = 1, seen = atomic_load(&self->busy->rounds);
  rondo_graph *graph = NULL;
  rondo_status status = rondo_capture_begin(stream, self->mode);
  if (status != RONDO_OK) return status;
  for (int i = 0; i < 20 && status == RONDO_OK; i++) {
    status = rondo_launch(stream, kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&one, &one, &self->word));
  }
  while (atomic_load(&self->busy->rounds) < seen + 2 && self->busy->status == RONDO_OK) test_sleep_ms(0);
  const rondo_status ended = rondo_capture_end(stream, &graph);
  if (ended == RONDO_CAPTURE_INVALID) {
    self->invalid++;
    return RONDO_OK;
  }
  if (status == RONDO_OK) status = ended;
  const rondo_status destroyed = rondo_graph_destroy(graph);
  return status == RONDO_OK ? destroyed : status;
}

static void capture_often(void *user) {
  capture_thread *self = user;
  for (int i = 0; i < 30 && self->status == RONDO_OK; i++) self->status = capture_once(self);
  atomic_store(&self->busy->stop, true);
}

static void capture_beside_a_busy_thread(test_fixture *t, rondo_capture_mode mode, uint32_t *refused,
                                         uint32_t *invalid) {
  uint32_t *words = test_words(t, 2);
  test_kernel(t, TEST_KERNEL_AFFINE);
  busy_thread busy = {.fixture = t, .stream = test_stream(t, "busy"), .word = words};
  capture_thread capture = {.fixture = t, .busy = &busy, .word = words + 1, .mode = mode};
  const test_thread threads[2] = {{stay_busy, &busy}, {capture_often, &capture}};
  test_on_threads(threads, 2);
  assert_int_equal(busy.status, RONDO_OK);
  assert_int_equal(capture.status, RONDO_OK);
  *refused = busy.refused;
  *invalid = capture.invalid;
  test_stream_destroy(busy.stream);
  assert_int_equal(test_word(t, words + 1), 0);
  test_words_free(t, words);
}

TEST(test_gx3_a_busy_thread_during_a_global_capture) {
  uint32_t refused = 0, invalid = 0;
  capture_beside_a_busy_thread(t, RONDO_CAPTURE_GLOBAL, &refused, &invalid);
  assert_true(refused > 0);
  assert_true(invalid > 0);
}

TEST(test_gx3_a_busy_thread_during_other_captures) {
  for (int i = 1; i < MODE_COUNT; i++) {
    uint32_t refused = 0, invalid = 0;
    capture_beside_a_busy_thread(t, all_modes[i], &refused, &invalid);
    assert_int_equal(refused, 0);
    assert_int_equal(invalid, 0);
  }
}

/* FW-7: a refused call is named, with the last node that was captured before it, there and at the end. */
static void assert_position(test_fixture *t, rondo_status (*call)(attempt *self), const char *name, size_t kernels) {
  attempt self = {.fixture = t, .call = call};
  char where[64] = "before any node";
  rondo_graph *graph = NULL;
  uint32_t *word = test_words(t, 1);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  for (size_t i = 0; i < kernels; i++) test_affine(t, t->stream, word, 1, 3, 1);
  if (kernels > 0) (void)snprintf(where, sizeof where, "(node %zu)", kernels - 1);
  assert_fails(call(&self), RONDO_CAPTURE_REFUSED);
  assert_message(name);
  assert_message(where);
  assert_int_equal(rondo_last_error()->node, kernels > 0 ? kernels - 1 : RONDO_NO_NODE);
  assert_error(rondo_capture_end(t->stream, &graph), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
  assert_message(name);
  assert_message(where);
  test_words_free(t, word);
}

TEST(test_fw7_refused_calls_say_where_the_capture_was) {
  for (size_t kernels = 0; kernels < 3; kernels += 2) {
    assert_position(t, call_malloc, "rondo_malloc", kernels);
    assert_position(t, call_capturing_synchronize, "rondo_stream_synchronize", kernels);
    assert_position(t, call_device_synchronize, "rondo_device_synchronize", kernels);
  }
}

/* A capture that is RELAXED may be worked on by another thread than who began it. */
typedef struct relaxed_capture {
  test_fixture *fixture;
  uint32_t *word;
  atomic_bool has_begun;
  atomic_uint added;
  rondo_status begun, added_last, waited;
  uint32_t node;
} relaxed_capture;

static void add_until_refused(void *user) {
  relaxed_capture *self = user;
  const uint32_t one = 1;
  while (!atomic_load(&self->has_begun)) test_sleep_ms(0);
  for (; self->begun == RONDO_OK && self->added_last == RONDO_OK; atomic_fetch_add(&self->added, 1))
    self->added_last = rondo_launch(self->fixture->stream, self->fixture->kernels[TEST_KERNEL_AFFINE],
                                    (rondo_grid){1, 0, 0}, RONDO_ARGS(&one, &one, &self->word));
}

static void begin_and_be_refused(void *user) {
  relaxed_capture *self = user;
  self->begun = rondo_capture_begin(self->fixture->stream, RONDO_CAPTURE_RELAXED);
  atomic_store(&self->has_begun, true);
  while (self->begun == RONDO_OK && atomic_load(&self->added) < 100) test_sleep_ms(0);
  self->waited = rondo_device_synchronize(self->fixture->device);
  self->node = rondo_last_error()->node;
}

TEST(test_gx3_a_relaxed_capture_is_left_to_the_thread_that_adds) {
  rondo_graph *graph = NULL;
  test_kernel(t, TEST_KERNEL_AFFINE);
  for (int i = 0; i < 10; i++) {
    relaxed_capture capture = {.fixture = t, .word = test_words(t, 1)};
    const test_thread threads[2] = {{add_until_refused, &capture}, {begin_and_be_refused, &capture}};
    test_on_threads(threads, 2);
    assert_int_equal(capture.begun, RONDO_OK);
    assert_int_equal(capture.waited, RONDO_CAPTURE_REFUSED);
    assert_int_equal(capture.node, RONDO_NO_NODE);
    assert_int_equal(capture.added_last, RONDO_CAPTURE_INVALID);
    assert_error(rondo_capture_end(t->stream, &graph), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
    assert_message("rondo_device_synchronize");
    test_words_free(t, capture.word);
  }
}
