/* SPDX-License-Identifier: MIT
 * The log sink: levels, lines, and that a sink never runs after it was replaced.
 */
#define _GNU_SOURCE

#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/log.h"
#include "base/thread.h"
#include "support/rondo_test.h"

typedef struct collected {
  size_t count;
  rondo_log_level level;
  char area[32];
  char line[2048];
} collected;

static void collect(void *user, rondo_log_level level, const char *area, const char *message) {
  collected *out = user;
  out->count++;
  out->level = level;
  strncpy(out->area, area, sizeof out->area - 1);
  strncpy(out->line, message, sizeof out->line - 1);
}

static int no_sink(void **state) {
  (void)state;
  rondo_log_set_sink(NULL, NULL, RONDO_LOG_ERROR);
  return 0;
}

#define LOG_TEST(name) TEST_REGISTER(name, void *no_fixture, no_sink, no_sink, false)

LOG_TEST(test_without_a_sink_nothing_is_reported) {
  assert_false(rondo_log_on(RONDO_LOG_ERROR));
  rondo_log(RONDO_LOG_ERROR, "test", "into the void");
}

LOG_TEST(test_level_area_and_line_arrive) {
  collected out = {0};
  rondo_log_set_sink(collect, &out, RONDO_LOG_WARNING);
  rondo_log(RONDO_LOG_WARNING, "device", "%d workers on %s", 3, "cpu");
  assert_int_equal(out.count, 1);
  assert_int_equal(out.level, RONDO_LOG_WARNING);
  assert_string_equal(out.area, "device");
  assert_string_equal(out.line, "3 workers on cpu");
  rondo_log(RONDO_LOG_INFO, "device", "not asked for");
  assert_int_equal(out.count, 1);
  rondo_log(RONDO_LOG_ERROR, "device", "asked for");
  assert_int_equal(out.count, 2);
}

LOG_TEST(test_it_is_one_line) {
  collected out = {0};
  rondo_log_set_sink(collect, &out, RONDO_LOG_DEBUG);
  rondo_log(RONDO_LOG_INFO, "test", "two\nlines\r\nand an end\n");
  assert_string_equal(out.line, "two lines  and an end ");
  char text[4000];
  memset(text, 'y', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  rondo_log(RONDO_LOG_INFO, "test", "%s", text);
  const size_t length = strlen(out.line);
  assert_in_range(length, 500, 1023);
  assert_string_equal(out.line + length - 3, "...");
}

/* What comes through of four areas with RONDO_LOG as it is and a sink that asks for warnings: the highest level each.
 */
static void check_levels(const char *setting, const int expected[4]) {
  static const char *const areas[] = {"tree", "exec", "memory", "test"};
  collected out = {0};
  assert_int_equal(setenv("RONDO_LOG", setting, 1), 0);
  rondo_options_reload();
  rondo_log_set_sink(collect, &out, RONDO_LOG_WARNING);
  for (size_t i = 0; i < 4; i++) {
    out.count = 0;
    for (int level = RONDO_LOG_ERROR; level <= RONDO_LOG_DEBUG; level++)
      rondo_log((rondo_log_level)level, areas[i], "level %d", level);
    assert_int_equal((int)out.count - 1, expected[i]);
  }
  rondo_log_set_sink(NULL, NULL, RONDO_LOG_ERROR);
  unsetenv("RONDO_LOG");
  rondo_options_reload();
}

LOG_TEST(test_areas_have_levels) {
  enum { E = RONDO_LOG_ERROR, W = RONDO_LOG_WARNING, I = RONDO_LOG_INFO, D = RONDO_LOG_DEBUG };
  check_levels("", (const int[]){W, W, W, W});
  check_levels("info", (const int[]){I, I, I, I});
  check_levels("tree", (const int[]){D, W, W, W});
  check_levels("tree=info", (const int[]){I, W, W, W});
  check_levels("tree=error", (const int[]){E, W, W, W});
  check_levels("error,tree,memory=info", (const int[]){D, E, I, E});
  check_levels("tree,debug,tree=warning", (const int[]){W, D, D, D}); /* of two, the last */
  check_levels("tree,loud", (const int[]){W, W, W, W});
}

LOG_TEST(test_levels_of_areas_open_the_log) {
  collected out = {0};
  assert_int_equal(setenv("RONDO_LOG", "error,tree", 1), 0);
  rondo_options_reload();
  rondo_log_set_sink(collect, &out, RONDO_LOG_ERROR);
  assert_true(rondo_log_on(RONDO_LOG_DEBUG)); /* someone takes it */
  unsetenv("RONDO_LOG");
  rondo_options_reload();
  rondo_log_set_sink(collect, &out, RONDO_LOG_ERROR);
  assert_false(rondo_log_on(RONDO_LOG_WARNING));
}

typedef struct slow_sink {
  _Atomic uint32_t inside; /* 1 while a call is under way */
  _Atomic uint32_t go;     /* 1 lets it end */
  _Atomic uint32_t removed;
} slow_sink;

static void wait_inside(void *user, rondo_log_level level, const char *area, const char *message) {
  (void)level, (void)area, (void)message;
  slow_sink *slow = user;
  atomic_store(&slow->inside, 1);
  rondo_futex_wake(&slow->inside, 1);
  while (atomic_load(&slow->go) == 0) rondo_futex_wait(&slow->go, 0);
  atomic_store(&slow->inside, 0);
}

static void *say_something(void *unused) {
  rondo_log(RONDO_LOG_ERROR, "test", "something");
  return unused;
}

static void *remove_sink(void *argument) {
  slow_sink *slow = argument;
  rondo_log_set_sink(NULL, NULL, RONDO_LOG_ERROR);
  atomic_store(&slow->removed, atomic_load(&slow->inside) == 0 ? 1 : 2);
  return NULL;
}

LOG_TEST(test_removal_waits_for_the_call_under_way) {
  slow_sink slow = {0};
  rondo_thread talker, remover;
  rondo_log_set_sink(wait_inside, &slow, RONDO_LOG_ERROR);
  assert_ok(rondo_thread_start(&talker, "talker", say_something, NULL));
  while (atomic_load(&slow.inside) == 0) rondo_futex_wait(&slow.inside, 0);
  assert_ok(rondo_thread_start(&remover, "remover", remove_sink, &slow));
  rondo_futex_wait_for(&slow.removed, 0, UINT64_C(20000000)); /* time to go wrong */
  const uint32_t too_early = atomic_load(&slow.removed);
  atomic_store(&slow.go, 1);
  rondo_futex_wake(&slow.go, 1);
  rondo_thread_join(talker);
  rondo_thread_join(remover);
  assert_int_equal(too_early, 0);
  assert_int_equal(atomic_load(&slow.removed), 1);
}

/* Freed right after its successor is installed: a sink that runs late writes to freed memory, which the sanitizers see,
 * and finds its mark gone, which any build sees. */
typedef struct mortal {
  uint32_t mark;
  _Atomic uint32_t calls;
} mortal;

#define ALIVE 0x600DF00Du

static _Atomic uint32_t late_calls;
static _Atomic uint32_t all_calls;
static atomic_bool stop;

static void use_mortal(void *user, rondo_log_level level, const char *area, const char *message) {
  (void)level, (void)area, (void)message;
  mortal *own = user;
  if (own->mark != ALIVE) atomic_fetch_add(&late_calls, 1);
  if (atomic_fetch_add(&own->calls, 1) % 64 == 0) rondo_yield(); /* lets the change fall into a call */
  if (own->mark != ALIVE) atomic_fetch_add(&late_calls, 1);
  atomic_fetch_add(&all_calls, 1);
}

static void *talk(void *unused) {
  while (!atomic_load(&stop)) rondo_log(RONDO_LOG_WARNING, "test", "again");
  return unused;
}

static void bury(mortal *old) {
  if (old == NULL) return;
  old->mark = 0;
  free(old);
}

LOG_TEST(test_sinks_change_while_threads_talk) {
  enum { TALKERS = 3, CHANGES = 2000 };
  rondo_thread talkers[TALKERS];
  atomic_store(&stop, false);
  for (int i = 0; i < TALKERS; i++) assert_ok(rondo_thread_start(&talkers[i], "talker", talk, NULL));
  mortal *installed = NULL;
  for (int i = 0; i < CHANGES; i++) {
    mortal *next = NULL;
    if (i % 5 != 4) {
      next = calloc(1, sizeof *next);
      assert_non_null(next);
      next->mark = ALIVE;
    }
    rondo_log_set_sink(next == NULL ? NULL : use_mortal, next, RONDO_LOG_WARNING);
    bury(installed);
    installed = next;
    if (i % 8 == 0) rondo_yield();
    while (i == 0 && atomic_load(&all_calls) == 0) rondo_yield(); /* all are talking from here on */
  }
  rondo_log_set_sink(NULL, NULL, RONDO_LOG_ERROR);
  bury(installed);
  atomic_store(&stop, true);
  for (int i = 0; i < TALKERS; i++) rondo_thread_join(talkers[i]);
  assert_int_equal(atomic_load(&late_calls), 0);
}

static void *install_and_remove(void *user) {
  for (int i = 0; i < 500; i++) {
    rondo_log_set_sink(use_mortal, user, RONDO_LOG_DEBUG);
    rondo_log(RONDO_LOG_DEBUG, "test", "mine or another's");
    rondo_log_set_sink(NULL, NULL, RONDO_LOG_ERROR);
  }
  return NULL;
}

LOG_TEST(test_several_threads_change_the_sink) {
  enum { THREADS = 3 };
  rondo_thread threads[THREADS];
  mortal users[THREADS] = {0};
  for (int i = 0; i < THREADS; i++) users[i].mark = ALIVE;
  for (int i = 0; i < THREADS; i++)
    assert_ok(rondo_thread_start(&threads[i], "changer", install_and_remove, &users[i]));
  for (int i = 0; i < THREADS; i++) rondo_thread_join(threads[i]);
  assert_false(rondo_log_on(RONDO_LOG_ERROR));
  assert_int_equal(atomic_load(&late_calls), 0);
}

int main(void) {
  unsetenv("RONDO_LOG");
  return test_run_registered();
}
