/* SPDX-License-Identifier: MIT
 * The table of RONDO_* variables: defaults, values, and the messages about invalid values.
 */
#define _GNU_SOURCE

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rondo/log.h>

#include "base/environment.h"
#include "base/log.h"
#include "base/thread.h"
#include "support/rondo_test.h"

#define LINES 16

typedef struct said {
  size_t count;
  rondo_log_level levels[LINES];
  char lines[LINES][512];
} said;

static void note(void *user, rondo_log_level level, const char *area, const char *message) {
  said *all = user;
  if (all->count == LINES || strcmp(area, "options") != 0) return;
  all->levels[all->count] = level;
  strncpy(all->lines[all->count], message, sizeof all->lines[0] - 1);
  all->count++;
}

static int clean(void **state) {
  (void)state;
  size_t count;
  const rondo_option_row *rows = rondo_option_table(&count);
  for (size_t i = 0; i < count; i++) unsetenv(rows[i].name);
  rondo_log_set_sink(NULL, NULL, RONDO_LOG_ERROR);
  rondo_options_reload();
  return 0;
}

#define OPTIONS_TEST(name) TEST_REGISTER(name, void *no_fixture, clean, clean, false)

/* What is said when the environment is read with `name` set to `value`. */
static said say_with(const char *name, const char *value) {
  said all = {0};
  rondo_log_set_sink(note, &all, RONDO_LOG_WARNING);
  setenv(name, value, 1);
  rondo_options_reload();
  rondo_log_set_sink(NULL, NULL, RONDO_LOG_ERROR);
  unsetenv(name);
  return all;
}

static void *read_all(void *argument) {
  uint64_t *out = argument;
  *out = rondo_option_number(RONDO_OPTION_CPU_WORKERS) + rondo_option_flag(RONDO_OPTION_CPU_BIND) +
         strlen(rondo_option_text(RONDO_OPTION_CBLAS_LIBRARY));
  return NULL;
}

/* Runs before anything else has read the environment. */
TEST_REGISTER(test_first_read_by_many_threads, void *no_fixture, NULL, clean, false) {
  enum { THREADS = 8 };
  rondo_thread threads[THREADS];
  uint64_t sums[THREADS];
  setenv("RONDO_CPU_WORKERS", "3", 1);
  setenv("RONDO_CBLAS_LIBRARY", "none", 1);
  for (int i = 0; i < THREADS; i++) assert_ok(rondo_thread_start(&threads[i], "reader", read_all, &sums[i]));
  for (int i = 0; i < THREADS; i++) rondo_thread_join(threads[i]);
  for (int i = 0; i < THREADS; i++) assert_int_equal(sums[i], 3 + 1 + 4);
}

UNIT_TEST(test_the_table_is_whole) {
  size_t count;
  const rondo_option_row *rows = rondo_option_table(&count);
  assert_int_equal(count, RONDO_OPTION_COUNT);
  for (size_t i = 0; i < count; i++) {
    assert_memory_equal(rows[i].name, "RONDO_", 6);
    assert_non_null(rows[i].default_value);
    assert_true(strlen(rows[i].meaning) > 0 && strchr(rows[i].meaning, '\n') == NULL);
    const bool number = strcmp(rows[i].kind, "number") == 0;
    assert_true(number || strcmp(rows[i].kind, "flag") == 0 || strcmp(rows[i].kind, "text") == 0);
    assert_true(number == (rows[i].maximum > 0));
    for (size_t j = 0; j < i; j++) assert_string_not_equal(rows[i].name, rows[j].name);
  }
}

OPTIONS_TEST(test_defaults) {
  assert_string_equal(rondo_option_text(RONDO_OPTION_LOG), "");
  assert_string_equal(rondo_option_text(RONDO_OPTION_TRACE), "");
  assert_string_equal(rondo_option_text(RONDO_OPTION_CBLAS_LIBRARY), "");
  assert_int_equal(rondo_option_number(RONDO_OPTION_CPU_WORKERS), 0);
  assert_int_equal(rondo_option_number(RONDO_OPTION_CPU_SPIN_US), 1000);
  assert_true(rondo_option_flag(RONDO_OPTION_CPU_BIND));
  assert_false(rondo_option_flag(RONDO_OPTION_SYNC));
}

OPTIONS_TEST(test_values) {
  static const char *const on[] = {"1", "on", "yes", "true"}, *const off[] = {"0", "off", "no", "false"};
  for (size_t i = 0; i < 4; i++) {
    assert_int_equal(say_with("RONDO_SYNC", on[i]).count, 0);
    assert_true(rondo_option_flag(RONDO_OPTION_SYNC));
    assert_int_equal(say_with("RONDO_CPU_BIND", off[i]).count, 0);
    assert_false(rondo_option_flag(RONDO_OPTION_CPU_BIND));
  }
  assert_int_equal(say_with("RONDO_CPU_SPIN_US", "0").count, 0);
  assert_int_equal(rondo_option_number(RONDO_OPTION_CPU_SPIN_US), 0);
  assert_int_equal(say_with("RONDO_TRACE", "a dir/trace.json").count, 0);
  assert_string_equal(rondo_option_text(RONDO_OPTION_TRACE), "a dir/trace.json");
}

OPTIONS_TEST(test_an_empty_value_is_none) {
  assert_int_equal(say_with("RONDO_CPU_SPIN_US", "").count, 0);
  assert_int_equal(rondo_option_number(RONDO_OPTION_CPU_SPIN_US), 1000);
  assert_int_equal(say_with("RONDO_LOG", "").count, 0);
}

OPTIONS_TEST(test_bad_values_are_reported_once_and_ignored) {
  static const struct {
    const char *name, *value;
  } cases[] = {
      {"RONDO_CPU_WORKERS", "-1"},
      {"RONDO_CPU_WORKERS", " 4"},
      {"RONDO_CPU_WORKERS", "4x"},
      {"RONDO_CPU_WORKERS", "+4"},
      {"RONDO_CPU_WORKERS", "four"},
      {"RONDO_CPU_WORKERS", "1025"},
      {"RONDO_CPU_WORKERS", "0x4"},
      {"RONDO_SYNC", "maybe"},
      {"RONDO_SYNC", "2"},
      {"RONDO_SYNC", "1|on"},
      {"RONDO_LOG", "loud"},
      {"RONDO_LOG", "error|warning"},
      {"RONDO_LOG", "trees"},
      {"RONDO_LOG", "tree="},
      {"RONDO_LOG", "tree=loud"},
      {"RONDO_LOG", "=debug"},
      {"RONDO_LOG", "trees=debug"},
      {"RONDO_LOG", "debug=tree"},
      {"RONDO_LOG", "tree,"},
      {"RONDO_LOG", ",tree"},
      {"RONDO_LOG", "tree,loud"},
      {"RONDO_LOG", "tree, exec"},
      {"RONDO_CPU_WORKERS", "18446744073709551616"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const said all = say_with(cases[i].name, cases[i].value);
    assert_int_equal(all.count, 1);
    assert_int_equal(all.levels[0], RONDO_LOG_WARNING);
    assert_non_null(strstr(all.lines[0], cases[i].name));
    assert_non_null(strstr(all.lines[0], "is ignored"));
    assert_int_equal(rondo_option_number(RONDO_OPTION_CPU_WORKERS), 0);
    assert_false(rondo_option_flag(RONDO_OPTION_SYNC));
    assert_string_equal(rondo_option_text(RONDO_OPTION_LOG), "");
  }
}

OPTIONS_TEST(test_a_text_that_is_too_long) {
  char path[PATH_MAX + 1];
  memset(path, 'p', sizeof path - 1);
  path[sizeof path - 1] = '\0';
  const said all = say_with("RONDO_TRACE", path);
  assert_int_equal(all.count, 1);
  assert_non_null(strstr(all.lines[0], "RONDO_TRACE is ignored: it is longer than"));
  assert_string_equal(rondo_option_text(RONDO_OPTION_TRACE), "");
  assert_int_equal(say_with("RONDO_TRACE", path + 1).count, 0);
  assert_int_equal(strlen(rondo_option_text(RONDO_OPTION_TRACE)), PATH_MAX - 1);
}

OPTIONS_TEST(test_an_unknown_variable_names_the_closest) {
  static const struct {
    const char *name, *closest;
  } cases[] = {
      {"RONDO_CPU_WORKER", "RONDO_CPU_WORKERS"},
      {"RONDO_WORKERS", "RONDO_CPU_WORKERS"},
      {"RONDO_LOGS", "RONDO_LOG"},
      {"RONDO_SINC", "RONDO_SYNC"},
      {"RONDO_CPU_SPIN", "RONDO_CPU_SPIN_US"},
      {"RONDO_BLAS_LIBRARY", "RONDO_CBLAS_LIBRARY"},
      {"RONDO_", "RONDO_LOG"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const said all = say_with(cases[i].name, "1");
    assert_int_equal(all.count, 1);
    assert_non_null(strstr(all.lines[0], cases[i].name));
    const char *closest = strstr(all.lines[0], "the closest one is ");
    assert_non_null(closest);
    assert_string_equal(closest + strlen("the closest one is "), cases[i].closest);
  }
}

OPTIONS_TEST(test_a_very_long_unknown_variable) {
  char name[3000] = "RONDO_";
  memset(name + 6, 'X', sizeof name - 7);
  const said all = say_with(name, "1");
  assert_int_equal(all.count, 1);
  assert_non_null(strstr(all.lines[0], "XXX... is not a known variable"));
}

OPTIONS_TEST(test_variables_of_others_are_left_alone) {
  assert_int_equal(say_with("RONDO_TEST_DEVICE", "cpu").count, 0);
  assert_int_equal(say_with("RONDOLOG", "1").count, 0);
  assert_int_equal(say_with("XRONDO_LOG", "1").count, 0);
}

OPTIONS_TEST(test_it_waits_for_a_sink_and_is_reported_once) {
  said first = {0}, second = {0};
  setenv("RONDO_SINC", "1", 1);
  rondo_options_reload();
  rondo_log_set_sink(note, &first, RONDO_LOG_ERROR); /* takes no warnings */
  assert_int_equal(first.count, 0);
  rondo_log_set_sink(note, &first, RONDO_LOG_INFO);
  assert_int_equal(first.count, 1);
  rondo_log_set_sink(note, &second, RONDO_LOG_INFO);
  assert_int_equal(rondo_option_number(RONDO_OPTION_CPU_WORKERS), 0);
  rondo_log_set_sink(NULL, NULL, RONDO_LOG_ERROR);
  unsetenv("RONDO_SINC");
  assert_int_equal(first.count, 1);
  assert_int_equal(second.count, 0);
}

OPTIONS_TEST(test_rondo_log_overrides_the_level) {
  static const char *const names[] = {"error", "warning", "info", "debug"};
  for (int named = 0; named < 4; named++) {
    for (int asked = 0; asked < 4; asked++) {
      said all = {0};
      setenv("RONDO_LOG", names[named], 1);
      rondo_options_reload();
      rondo_log_set_sink(note, &all, (rondo_log_level)asked);
      for (int level = 0; level < 4; level++) {
        assert_int_equal(rondo_log_on((rondo_log_level)level), level <= named);
        rondo_log((rondo_log_level)level, "options", "level %d", level);
      }
      rondo_log_set_sink(NULL, NULL, RONDO_LOG_ERROR);
      unsetenv("RONDO_LOG");
      assert_int_equal(all.count, named + 1);
    }
  }
}

/* Privileged programs -------------------------------------------------------------------------------------------- */

enum { CHILD_IGNORES = 0, CHILD_READS = 1, CHILD_IS_NOT_PRIVILEGED = 2, CHILD_SAYS_NOTHING = 3, CHILD_IS_NOT_RUN = 4 };

/* The privileged child. Every text option is set, as a caller that attacks the program would. */
static int be_privileged(void) {
  said all = {0};
  size_t count;
  if (getauxval(AT_SECURE) == 0) return CHILD_IS_NOT_PRIVILEGED;
  rondo_log_set_sink(note, &all, RONDO_LOG_WARNING);
  const rondo_option_row *rows = rondo_option_table(&count);
  for (size_t i = 0; i < count; i++)
    if (strcmp(rows[i].kind, "text") == 0 && strcmp(rondo_option_text((rondo_option)i), rows[i].default_value) != 0)
      return CHILD_READS;
  for (size_t i = 0; i < all.count; i++)
    if (strstr(all.lines[i], "RONDO_CUDA_LIBRARY is ignored: the program runs with raised privileges"))
      return CHILD_IGNORES;
  return CHILD_SAYS_NOTHING;
}

/* Copies this program to `path` as one that runs with the rights of another group. */
static bool copy_as_setgid(const char *path) {
  struct stat info;
  const int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  const int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
  assert_true(from >= 0 && to >= 0);
  assert_int_equal(fstat(from, &info), 0);
  for (off_t done = 0; done < info.st_size;) assert_true(sendfile(to, from, &done, (size_t)(info.st_size - done)) > 0);
  const bool is_set = fchown(to, (uid_t)-1, 65534) == 0 && fchmod(to, 02755) == 0;
  assert_int_equal(close(from) + close(to), 0);
  return is_set;
}

/* With the variables as a caller would set them who wants code of theirs to run, or a file to be overwritten. */
static int run_child(const char *path) {
  size_t count;
  const rondo_option_row *rows = rondo_option_table(&count);
  int status;
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    for (size_t i = 0; i < count; i++)
      if (strcmp(rows[i].kind, "text") == 0) (void)setenv(rows[i].name, "/tmp/of-the-caller", 1);
    (void)execl(path, path, "--privileged", (char *)NULL);
    _exit(CHILD_IS_NOT_RUN);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

OPTIONS_TEST(test_a_privileged_program_reads_no_variable) {
  const char *temporary = getenv("TMPDIR");
  char folder[PATH_MAX], path[PATH_MAX + 16];
  (void)snprintf(folder, sizeof folder, "%s/rondo-options-XXXXXX", temporary != NULL ? temporary : "/tmp");
  assert_non_null(mkdtemp(folder));
  (void)snprintf(path, sizeof path, "%s/program", folder);
  const bool is_set = copy_as_setgid(path);
  const int result = is_set ? run_child(path) : CHILD_IS_NOT_PRIVILEGED;
  assert_int_equal(unlink(path) + rmdir(folder), 0);
  if (result == CHILD_IS_NOT_PRIVILEGED) skip(); /* only root may give the file away; or the folder is mounted nosuid */
  assert_int_equal(result, CHILD_IGNORES);
}

int main(int count, char **words) {
  if (count == 2 && strcmp(words[1], "--privileged") == 0) _exit(be_privileged());
  return test_run_registered();
}
