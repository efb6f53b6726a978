/* SPDX-License-Identifier: MIT
 * The trace sink and the Chrome trace file, read back with jansson.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/trace.h"
#include "support/rondo_test.h"

static char path[64], other_path[64];

static int make_file(char name[64]) {
  strcpy(name, "/tmp/rondo-trace-XXXXXX");
  const int descriptor = mkstemp(name);
  if (descriptor < 0) return -1;
  return close(descriptor);
}

static int make_path(void **state) {
  (void)state;
  return make_file(path) == 0 ? make_file(other_path) : -1;
}

static int remove_path(void **state) {
  (void)state;
  rondo_trace_set_sink(NULL, NULL);
  unlink(path);
  unlink(other_path);
  return rondo_trace_close_json() == RONDO_OK ? 0 : -1;
}

static json_t *read_file(const char *name) {
  json_error_t error;
  json_t *root = json_load_file(name, JSON_REJECT_DUPLICATES, &error);
  if (root == NULL) fail_msg("%s:%d: %s", error.source, error.line, error.text);
  assert_true(json_is_array(root));
  return root;
}

static const char *text_of(const json_t *event, const char *key) {
  const char *text = json_string_value(json_object_get(event, key));
  return text == NULL ? "" : text;
}

/* Without the names of threads. */
static json_t *read_events(const char *name) {
  json_t *root = read_file(name);
  for (size_t i = json_array_size(root); i-- > 0;) {
    if (strcmp(text_of(json_array_get(root, i), "name"), "thread_name") == 0)
      assert_int_equal(json_array_remove(root, i), 0);
  }
  return root;
}

static json_t *read_trace(void) { return read_events(path); }

static void assert_events(const char *name, size_t count) {
  json_t *root = read_events(name);
  assert_int_equal(json_array_size(root), count);
  json_decref(root);
}

/* How often the file calls the track so. */
static unsigned count_names(const char *file, uint64_t track, const char *name) {
  unsigned count = 0;
  json_t *root = read_file(file);
  for (size_t i = 0; i < json_array_size(root); i++) {
    const json_t *event = json_array_get(root, i);
    if (strcmp(text_of(event, "name"), "thread_name") != 0) continue;
    if (json_integer_value(json_object_get(event, "tid")) != (json_int_t)track) continue;
    assert_string_equal(text_of(event, "ph"), "M");
    assert_int_equal(json_integer_value(json_object_get(event, "pid")), getpid());
    assert_string_equal(text_of(json_object_get(event, "args"), "name"), name);
    count++;
  }
  json_decref(root);
  return count;
}

static void assert_errno(rondo_status status, int error) {
  assert_int_equal(status, RONDO_IO_ERROR);
  assert_int_equal(rondo_last_error()->driver_code, error);
}

UNIT_TEST(test_off_by_default) {
  assert_false(rondo_trace_on());
  rondo_trace(RONDO_TRACE_INSTANT, "test", "nobody hears", 1, 0);
  rondo_trace_emit(RONDO_TRACE_INSTANT, "test", "nobody hears", 1, 0);
  assert_ok(rondo_trace_close_json());
}

typedef struct heard {
  size_t count;
  rondo_trace_event event;
} heard;

static void hear(void *user, const rondo_trace_event *event) {
  heard *out = user;
  out->count++;
  out->event = *event;
}

UNIT_TEST(test_a_sink_gets_the_events) {
  heard out = {0};
  rondo_trace_set_sink(hear, &out);
  assert_true(rondo_trace_on());
  const uint64_t before = rondo_clock_ns();
  rondo_trace(RONDO_TRACE_COUNTER, "exec", "bytes", 9, 2.5);
  assert_int_equal(out.count, 1);
  assert_int_equal(out.event.kind, RONDO_TRACE_COUNTER);
  assert_string_equal(out.event.area, "exec");
  assert_string_equal(out.event.name, "bytes");
  assert_int_equal(out.event.track, 9);
  assert_true(out.event.value == 2.5);
  assert_true(out.event.time_ns >= before && out.event.time_ns <= rondo_clock_ns());
  rondo_trace_set_sink(NULL, NULL);
  assert_false(rondo_trace_on());
  rondo_trace(RONDO_TRACE_COUNTER, "exec", "bytes", 9, 2.5);
  assert_int_equal(out.count, 1);
}

/* Events 1 to 4 have their phases, this process and times in order between the two. */
static void assert_events_of_this_run(const json_t *root, uint64_t before, uint64_t after) {
  static const char *const phases[] = {"B", "i", "C", "E"};
  double last = (double)before / 1000 - 1;
  for (size_t i = 1; i < 5; i++) {
    const json_t *event = json_array_get(root, i);
    assert_string_equal(text_of(event, "ph"), phases[i - 1]);
    assert_int_equal(json_integer_value(json_object_get(event, "pid")), getpid());
    const json_t *time = json_object_get(event, "ts"); /* microseconds with a fraction */
    assert_true(json_is_real(time));
    assert_true(json_real_value(time) >= last && json_real_value(time) <= (double)after / 1000 + 1);
    last = json_real_value(time);
  }
}

#define WITH_FILE_TEST(name) TEST_REGISTER(name, void *no_fixture, make_path, remove_path, false)

WITH_FILE_TEST(test_the_file_has_each_kind) {
  assert_ok(rondo_trace_open_json(path));
  const uint64_t before = rondo_clock_ns();
  rondo_trace(RONDO_TRACE_BEGIN, "exec", "launch", 3, 0);
  rondo_trace(RONDO_TRACE_INSTANT, "cpu", "wake \"up\"\n\xFF", 3, 0);
  rondo_trace(RONDO_TRACE_COUNTER, "memory", "held", UINT64_C(1) << 53, 0.1);
  rondo_trace(RONDO_TRACE_END, "exec", "launch", 3, 0);
  const uint64_t after = rondo_clock_ns();
  assert_ok(rondo_trace_close_json());
  assert_false(rondo_trace_on());

  json_t *root = read_trace();
  assert_int_equal(json_array_size(root), 5);
  assert_string_equal(text_of(json_array_get(root, 0), "ph"), "M");
  assert_events_of_this_run(root, before, after);
  assert_int_equal(json_integer_value(json_object_get(json_array_get(root, 1), "tid")), 3);
  assert_string_equal(text_of(json_array_get(root, 1), "cat"), "exec");
  assert_string_equal(text_of(json_array_get(root, 1), "name"), "launch");
  assert_string_equal(text_of(json_array_get(root, 2), "name"), "wake \"up\"\n\xEF\xBF\xBD");
  assert_string_equal(text_of(json_array_get(root, 2), "s"), "t");
  const json_t *arguments = json_object_get(json_array_get(root, 3), "args");
  assert_true(json_real_value(json_object_get(arguments, "value")) == 0.1);
  json_decref(root);
}

WITH_FILE_TEST(test_long_names_are_cut) {
  char name[5000];
  memset(name, '\x01', sizeof name - 1); /* each becomes six bytes */
  name[sizeof name - 1] = '\0';
  assert_ok(rondo_trace_open_json(path));
  rondo_trace(RONDO_TRACE_COUNTER, name, name, UINT64_C(1) << 53, -1.7976931348623157e308);
  assert_ok(rondo_trace_close_json());
  json_t *root = read_trace();
  assert_int_equal(json_array_size(root), 2);
  assert_true(strlen(text_of(json_array_get(root, 1), "name")) > 100);
  json_decref(root);
}

static void *trace_a_lot(void *argument) {
  const uint64_t track = rondo_thread_id();
  for (int i = 0; i < 300; i++) {
    rondo_trace(RONDO_TRACE_BEGIN, "test", "span", track, 0);
    rondo_trace(RONDO_TRACE_END, "test", "span", track, 0);
  }
  return argument;
}

WITH_FILE_TEST(test_many_threads_write_one_file) {
  enum { THREADS = 4 };
  rondo_thread threads[THREADS];
  assert_ok(rondo_trace_open_json(path));
  for (int i = 0; i < THREADS; i++) assert_ok(rondo_thread_start(&threads[i], "tracer", trace_a_lot, NULL));
  for (int i = 0; i < THREADS; i++) rondo_thread_join(threads[i]);
  assert_ok(rondo_trace_close_json());
  assert_events(path, 1 + THREADS * 600);
}

typedef struct late_tracer {
  atomic_bool named; /* who starts a thread names it after that */
  uint64_t track;
} late_tracer;

static void *trace_once_named(void *argument) {
  late_tracer *self = argument;
  while (!atomic_load(&self->named)) rondo_yield();
  self->track = rondo_thread_id();
  return trace_a_lot(argument);
}

WITH_FILE_TEST(test_a_thread_is_named_once_a_file) {
  const uint64_t foreign = rondo_thread_id() + 1000;
  char own_name[16];
  late_tracer tracer = {false, 0};
  rondo_thread thread;
  assert_int_equal(pthread_getname_np(pthread_self(), own_name, sizeof own_name), 0);
  assert_ok(rondo_trace_open_json(path));
  rondo_trace(RONDO_TRACE_INSTANT, "test", "on no thread's track", foreign, 0);
  for (int i = 0; i < 3; i++) rondo_trace_here(RONDO_TRACE_INSTANT, "test", "on its own");
  assert_ok(rondo_thread_start(&thread, "quote\"\\d", trace_once_named, &tracer));
  atomic_store(&tracer.named, true);
  rondo_thread_join(thread);
  assert_ok(rondo_trace_open_json(other_path));
  rondo_trace_here(RONDO_TRACE_INSTANT, "test", "on its own");
  assert_ok(rondo_trace_close_json());
  assert_int_equal(count_names(path, foreign, ""), 0);
  assert_int_equal(count_names(path, rondo_thread_id(), own_name), 1);
  assert_int_equal(count_names(path, tracer.track, "quote\"\\d"), 1);
  assert_int_equal(count_names(other_path, rondo_thread_id(), own_name), 1);
  assert_int_equal(count_names(other_path, tracer.track, ""), 0);
}

WITH_FILE_TEST(test_files_and_sinks_change_while_threads_trace) {
  enum { THREADS = 3 };
  rondo_thread threads[THREADS];
  for (int i = 0; i < THREADS; i++) assert_ok(rondo_thread_start(&threads[i], "tracer", trace_a_lot, NULL));
  for (int i = 0; i < 100; i++) {
    assert_ok(rondo_trace_open_json(i % 2 == 0 ? path : other_path));
    if (i % 3 == 0) rondo_trace_set_sink(NULL, NULL);
    if (i % 5 == 0) assert_ok(rondo_trace_close_json());
  }
  for (int i = 0; i < THREADS; i++) rondo_thread_join(threads[i]);
  assert_ok(rondo_trace_close_json());
  json_decref(read_trace());
}

/* What a killed program leaves is valid but for the bracket, which the format lets be missing. */
WITH_FILE_TEST(test_a_killed_process_leaves_its_events) {
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    if (rondo_trace_open_json(path) != RONDO_OK) _exit(1);
    for (int i = 0; i < 10; i++) rondo_trace(RONDO_TRACE_INSTANT, "test", "last words", 1, 0);
    raise(SIGKILL);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  FILE *file = fopen(path, "a");
  assert_non_null(file);
  assert_true(fputs("]", file) >= 0);
  assert_int_equal(fclose(file), 0);
  assert_events(path, 11);
}

WITH_FILE_TEST(test_another_sink_leaves_the_file_open) {
  heard out = {0};
  assert_ok(rondo_trace_open_json(path));
  rondo_trace(RONDO_TRACE_INSTANT, "test", "to the file", 1, 0);
  rondo_trace_set_sink(hear, &out);
  rondo_trace(RONDO_TRACE_INSTANT, "test", "to the sink", 1, 0);
  assert_ok(rondo_trace_close_json());
  assert_true(rondo_trace_on());
  rondo_trace(RONDO_TRACE_INSTANT, "test", "to the sink", 1, 0);
  assert_int_equal(out.count, 2);
  assert_events(path, 2);
}

WITH_FILE_TEST(test_another_file_takes_over) {
  assert_ok(rondo_trace_open_json(path));
  rondo_trace(RONDO_TRACE_INSTANT, "test", "to the first", 1, 0);
  assert_ok(rondo_trace_open_json(other_path));
  rondo_trace(RONDO_TRACE_INSTANT, "test", "to the second", 1, 0);
  rondo_trace(RONDO_TRACE_INSTANT, "test", "to the second", 1, 0);
  assert_events(path, 2);
  assert_ok(rondo_trace_close_json());
  assert_events(other_path, 3);
}

WITH_FILE_TEST(test_the_file_being_written_is_refused) {
  assert_ok(rondo_trace_open_json(path));
  rondo_trace(RONDO_TRACE_INSTANT, "test", "before", 1, 0);
  assert_error(rondo_trace_open_json(path), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  rondo_trace(RONDO_TRACE_INSTANT, "test", "after", 1, 0);
  assert_ok(rondo_trace_close_json());
  assert_events(path, 3);
  assert_ok(rondo_trace_open_json(path)); /* empties what an earlier run left */
  assert_ok(rondo_trace_close_json());
  assert_events(path, 1);
}

WITH_FILE_TEST(test_files_that_cannot_be_opened) {
  heard out = {0};
  rondo_trace_set_sink(hear, &out);
  assert_invalid(rondo_trace_open_json(NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_errno(rondo_trace_open_json("/nowhere/at/all.json"), ENOENT);
  assert_message("/nowhere/at/all.json");
  assert_errno(rondo_trace_open_json("/dev/full"), ENOSPC);
  rondo_trace(RONDO_TRACE_INSTANT, "test", "the old sink is still there", 1, 0);
  assert_int_equal(out.count, 1);
}

/* From here on a file may have `bytes` at most; returns what it was. */
static rlim_t limit_file_size(rlim_t bytes) {
  struct rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = bytes;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
  return before;
}

static void overfill(void) {
  const rlim_t before = limit_file_size(2000);
  for (int i = 0; i < 100; i++) rondo_trace(RONDO_TRACE_INSTANT, "test", "too much", 1, 0);
  limit_file_size(before);
  rondo_trace(RONDO_TRACE_INSTANT, "test", "not written after the gap", 1, 0);
}

WITH_FILE_TEST(test_a_write_error_is_kept_until_close) {
  signal(SIGXFSZ, SIG_IGN);
  assert_ok(rondo_trace_open_json(path));
  overfill();
  assert_errno(rondo_trace_close_json(), EFBIG);
  assert_message(path);
  assert_ok(rondo_trace_close_json());
  json_t *root = read_trace(); /* up to the last event that was written as a whole */
  assert_true(json_array_size(root) > 10);
  json_decref(root);
}

/* PR-12: not even the first line fits. SIGXFSZ, which would end the process, is not ignored. */
WITH_FILE_TEST(test_a_trace_without_room_leaves_the_old_file) {
  assert_ok(rondo_trace_open_json(path));
  assert_ok(rondo_trace_close_json());
  signal(SIGXFSZ, SIG_DFL);
  const rlim_t before = limit_file_size(8);
  const rondo_status status = rondo_trace_open_json(path);
  limit_file_size(before);
  assert_errno(status, EFBIG);
  assert_message("ulimit -f");
  assert_events(path, 1);
}

/* An event that is refused as a whole costs none of those before it. */
WITH_FILE_TEST(test_a_trace_goes_on_up_to_the_limit) {
  enum { LIMIT = 2000 };
  char text[LIMIT + 1];
  signal(SIGXFSZ, SIG_DFL);
  const rlim_t before = limit_file_size(LIMIT);
  assert_ok(rondo_trace_open_json(path));
  for (int i = 0; i < 100; i++) rondo_trace(RONDO_TRACE_INSTANT, "test", "one of many", 1, 0);
  const rondo_status status = rondo_trace_close_json();
  limit_file_size(before);
  assert_errno(status, EFBIG);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  const size_t count = fread(text, 1, LIMIT, file);
  fclose(file);
  text[count] = '\0';
  const char *last = strrchr(text, '{');
  assert_non_null(last);
  assert_non_null(strchr(last, '}'));
  assert_true(count + strcspn(last, "}") + strlen(",\n}") > LIMIT); /* there is no room for another */
}

static void note_error(void *user, rondo_log_level level, const char *area, const char *message) {
  if (level == RONDO_LOG_ERROR && strcmp(area, "trace") == 0 && strstr(message, path) != NULL) ++*(int *)user;
}

WITH_FILE_TEST(test_a_write_error_of_a_replaced_file_is_reported) {
  int said = 0;
  signal(SIGXFSZ, SIG_IGN);
  rondo_log_set_sink(note_error, &said, RONDO_LOG_ERROR);
  assert_ok(rondo_trace_open_json(path));
  overfill();
  assert_ok(rondo_trace_open_json(other_path));
  rondo_log_set_sink(NULL, NULL, RONDO_LOG_ERROR);
  assert_int_equal(said, 1);
  assert_ok(rondo_trace_close_json());
}

int main(void) {
  unsetenv("RONDO_LOG");
  return test_run_registered();
}
