/* SPDX-License-Identifier: MIT
 * Watches for stray work, through internal functions: nested watches, pauses, and the message about the first stray
 * work of each.
 */
#include <string.h>

#include "exec/capture/capture_internal.h"
#include "support/rondo_test.h"

TEST(test_a_thread_without_a_watch) {
  assert_int_equal(rondo_capture_count, 0);
  assert_null(rondo_capture_watch_pause());
  assert_true(rondo_stream_runs_at_once(t->stream));
  assert_ok(rondo_capture_refuse_stray(t->stream, "a call"));
}

/* The outer watch goes on after the inner one ends. Both note stray work inside the inner one; only the outer one notes
 * later work. */
TEST(test_one_watch_in_another) {
  rondo_stream *side = test_stream(t, "side");
  rondo_capture_watch outer, inner;
  rondo_capture_watch_begin(&outer, "outer", t->stream);
  rondo_capture_watch_begin(&inner, "inner", side);
  assert_int_equal(rondo_capture_count, 2);
  assert_error(rondo_host_async(side, test_host_nothing, NULL), RONDO_CAPTURE_REFUSED, RONDO_REASON_STRAY_WORK);
  assert_message("'inner'");
  assert_string_equal(rondo_last_error()->message, inner.message);
  assert_int_equal(inner.stray, RONDO_STRAY_STREAM);
  assert_int_equal(outer.stray, RONDO_STRAY_STREAM);
  rondo_capture_watch_end(&inner);
  assert_error(rondo_malloc_async(t->stream, 64, NULL, &(void *){NULL}), RONDO_CAPTURE_REFUSED,
               RONDO_REASON_STRAY_WORK);
  assert_message("'outer'");
  assert_non_null(strstr(outer.message, "rondo_host_async")); /* the first one is kept */
  rondo_capture_watch_end(&outer);
  assert_int_equal(rondo_capture_count, 0);
  assert_ok(rondo_host_async(side, test_host_nothing, NULL));
  assert_ok(rondo_stream_synchronize(side));
}

TEST(test_nothing_is_stray_in_a_pause) {
  rondo_capture_watch watch;
  rondo_capture_watch_begin(&watch, "paused", t->stream);
  rondo_capture_watch *const paused = rondo_capture_watch_pause();
  assert_ptr_equal(paused, &watch);
  assert_ok(rondo_host_async(t->stream, test_host_nothing, NULL));
  assert_ok(rondo_stream_synchronize(t->stream));
  rondo_capture_watch_resume(paused);
  assert_false(rondo_stream_runs_at_once(t->stream));
  assert_int_equal(watch.stray, RONDO_STRAY_NONE);
  rondo_capture_watch_end(&watch);
}

/* The capture of the watched stream becomes invalid, and other captures do not. */
TEST(test_the_captures_that_become_invalid) {
  rondo_stream *side = test_stream(t, "side"), *own = test_stream(t, "own");
  rondo_capture_watch watch;
  rondo_graph *graph = NULL;
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  rondo_capture_watch_begin(&watch, "watched", t->stream);
  assert_ok(rondo_capture_begin(own, RONDO_CAPTURE_RELAXED));
  assert_ok(rondo_host_async(own, test_host_nothing, NULL));
  assert_error(rondo_host_async(side, test_host_nothing, NULL), RONDO_CAPTURE_REFUSED, RONDO_REASON_STRAY_WORK);
  assert_ok(rondo_host_async(own, test_host_nothing, NULL));
  test_graph_destroy(test_capture_end(own));
  assert_error(rondo_host_async(t->stream, test_host_nothing, NULL), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
  assert_message("rondo_host_async on stream 'side'");
  rondo_capture_watch_end(&watch);
  assert_error(rondo_capture_end(t->stream, &graph), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
}

typedef struct elsewhere {
  rondo_stream *stream;
  rondo_status status;
} elsewhere;
static void queue_elsewhere(void *user) {
  elsewhere *self = user;
  self->status = rondo_host_async(self->stream, test_host_nothing, NULL);
}
TEST(test_a_watch_is_its_threads_alone) {
  elsewhere self = {.stream = t->stream, .status = RONDO_UNSUPPORTED};
  rondo_capture_watch watch;
  rondo_capture_watch_begin(&watch, "watched", t->stream);
  test_on_thread(queue_elsewhere, &self);
  assert_int_equal(watch.stray, RONDO_STRAY_NONE);
  rondo_capture_watch_end(&watch);
  assert_ok(self.status);
  assert_ok(rondo_stream_synchronize(t->stream));
}

/* With names of the max length, the message still has the beginning of the remedy. */
TEST(test_long_names) {
  char name[200];
  memset(name, 'n', sizeof name);
  name[sizeof name - 1] = '\0';
  rondo_stream *own = test_stream(t, name), *side = test_stream(t, name);
  rondo_capture_watch watch;
  rondo_capture_watch_begin(&watch, name, own);
  assert_error(rondo_host_async(side, test_host_nothing, NULL), RONDO_CAPTURE_REFUSED, RONDO_REASON_STRAY_WORK);
  assert_message("missing from replays; fork stream");
  rondo_capture_watch_end(&watch);
}
