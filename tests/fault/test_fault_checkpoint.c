/* SPDX-License-Identifier: MIT
 * Saves while system calls fail, and while the process dies during a save. The file at the path is always the old
 * checkpoint or the new one, complete. The linker redirects the system calls of a save to this file.
 */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/files/file_replacement.h"
#include "support/rondo_test.h"
#include "support/test_effort.h"

/* Calls of the system ---------------------------------------------------------------------------------------------- */

enum { MOST_CALLS = 64, DIED = 42 };

/* Counts calls, starting at 1, while a save is watched. */
static struct {
  bool watches;
  size_t fail_at, die_at; /* 0: none */
  int error;              /* the error of the failing call */
  size_t most_bytes;      /* of one write; 0: any */
  size_t count;
  char log[MOST_CALLS + 1]; /* one letter for each call */
} calls;

/* Returns whether the call fails. The process may end here. */
static bool count_call(char letter) {
  if (!calls.watches) return false;
  if (calls.count < MOST_CALLS) calls.log[calls.count] = letter;
  calls.count++;
  if (calls.count == calls.die_at) _exit(DIED);
  if (calls.count != calls.fail_at) return false;
  errno = calls.error;
  return true;
}

int __real_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode) {
  return count_call(flags & O_DIRECTORY ? 'D' : 'O') ? -1 : __real_open(path, flags, mode);
}

/* Data written before the process ended is in the file. */
ssize_t __real_write(int file, const void *bytes, size_t count);
ssize_t __wrap_write(int file, const void *bytes, size_t count);
ssize_t __wrap_write(int file, const void *bytes, size_t count) {
  if (calls.watches && calls.count + 1 == calls.die_at && __real_write(file, bytes, count / 2) < 0) return -1;
  if (count_call('w')) return -1;
  return __real_write(file, bytes, calls.most_bytes > 0 && count > calls.most_bytes ? calls.most_bytes : count);
}

int __real_fsync(int file);
int __wrap_fsync(int file);
int __wrap_fsync(int file) { return count_call('s') ? -1 : __real_fsync(file); }

/* A file is closed even when the call is reported as failed. */
int __real_close(int file);
int __wrap_close(int file);
int __wrap_close(int file) {
  const bool fails = count_call('c');
  const int error = errno, result = __real_close(file);
  errno = error;
  return fails ? -1 : result;
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to) { return count_call('r') ? -1 : __real_rename(from, to); }

/* Checkpoints ------------------------------------------------------------------------------------------------------ */

enum { OLD = 1, NEW = 2 };

static char folder[] = "/tmp/rondo-fault-checkpoint-XXXXXX";
static char path[sizeof folder + 16];

/* A set whose metadata and numbers (`count` of them) identify it. */
static rondo_weights *make_set(uint32_t serial, size_t count) {
  rondo_weights *set = NULL;
  char text[16];
  float *numbers = malloc(count * sizeof *numbers);
  assert_non_null(numbers);
  for (size_t i = 0; i < count; i++) numbers[i] = (float)serial;
  const rondo_weight weight = {.name = "numbers",
                               .type = RONDO_F32,
                               .rank = 1,
                               .shape = {count},
                               .data = numbers,
                               .bytes = count * sizeof *numbers};
  (void)snprintf(text, sizeof text, "%u", serial);
  assert_ok(rondo_weights_create(NULL, &set));
  assert_ok(rondo_weights_add(set, &weight));
  assert_ok(rondo_weights_set_metadata(set, "serial", text));
  free(numbers);
  return set;
}

static rondo_status save(uint32_t serial, size_t count) {
  rondo_weights *set = make_set(serial, count);
  calls.count = 0;
  memset(calls.log, 0, sizeof calls.log);
  calls.watches = true;
  const rondo_status status = rondo_checkpoint_save(set, path);
  calls.watches = false;
  rondo_weights_destroy(set);
  return status;
}

/* Counts the files in the folder next to the checkpoint, and removes them. */
static size_t remove_others(void) {
  DIR *opened = opendir(folder);
  size_t count = 0;
  assert_non_null(opened);
  for (struct dirent *entry = readdir(opened); entry != NULL; entry = readdir(opened)) {
    char other[512];
    static const char *const stay[] = {".", "..", "checkpoint"};
    bool stays = false;
    for (size_t i = 0; i < sizeof stay / sizeof stay[0]; i++) stays = stays || strcmp(entry->d_name, stay[i]) == 0;
    if (stays) continue;
    (void)snprintf(other, sizeof other, "%s/%s", folder, entry->d_name);
    assert_int_equal(unlink(other), 0);
    count++;
  }
  closedir(opened);
  return count;
}

static int set_up(void **state) {
  (void)state;
  memset(&calls, 0, sizeof calls);
  return save(OLD, 100) == RONDO_OK ? 0 : -1;
}

#define CHECKPOINT_TEST(name) TEST_REGISTER(name, void *no_fixture, set_up, NULL, false)

static int make_folder(void **state) {
  (void)state;
  if (mkdtemp(folder) == NULL) return -1;
  (void)snprintf(path, sizeof path, "%s/checkpoint", folder);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  (void)remove_others();
  unlink(path);
  return rmdir(folder);
}

/* Tests ------------------------------------------------------------------------------------------------------------ */

/* Returns which set is at the path, after asserting that it is complete. */
static uint32_t read_serial(void) {
  rondo_weights *set = NULL;
  rondo_weight weight;
  assert_ok(rondo_checkpoint_load(path, NULL, &set));
  const uint32_t serial = (uint32_t)strtoul(rondo_weights_get_metadata(set, "serial"), NULL, 10);
  assert_ok(rondo_weights_find(set, "numbers", &weight));
  for (size_t i = 0; i < weight.shape[0]; i++) assert_true(((const float *)weight.data)[i] == (float)serial);
  rondo_weights_destroy(set);
  return serial;
}

/* The data is on the disk before the rename, and the rename is on the disk afterwards. */
CHECKPOINT_TEST(test_the_order_of_a_save) {
  assert_ok(save(NEW, 100));
  assert_string_equal(calls.log, "OwwwsDrscc");
  assert_int_equal(read_serial(), NEW);
  calls.most_bytes = 100;
  assert_ok(save(OLD, 1000));
  assert_true(calls.count > 40);
  assert_int_equal(read_serial(), OLD);
}

CHECKPOINT_TEST(test_a_call_that_fails_leaves_the_old_one) {
  static const int errors[] = {ENOSPC, EIO, EDQUOT, EROFS};
  assert_ok(save(OLD, 100));
  const size_t count = calls.count;
  for (size_t at = 1; at <= count; at++) {
    calls.error = errors[at % 4];
    calls.fail_at = at;
    const rondo_status status = save(NEW, 100);
    calls.fail_at = 0;
    if (at >=
        count - 1) { /* fsync has already reported every error that closing the folder and the file could report */
      assert_int_equal(status, RONDO_OK);
      continue;
    }
    assert_int_equal(status, RONDO_IO_ERROR);
    assert_int_equal(rondo_last_error()->driver_code, calls.error);
    assert_message(path);
    assert_int_equal(read_serial(), at == count - 2 ? NEW : OLD); /* the new set has the name until the next crash */
    assert_int_equal(remove_others(), 0);
    assert_ok(save(OLD, 100));
  }
}

CHECKPOINT_TEST(test_folders_that_cannot_be_synchronized_are_no_failure) {
  calls.fail_at = 6;
  calls.error = EACCES; /* opening it */
  assert_ok(save(NEW, 100));
  assert_string_equal(calls.log, "OwwwsDrc");
  assert_int_equal(read_serial(), NEW);
  calls.fail_at = 8;
  calls.error = EINVAL; /* synchronizing it */
  assert_ok(save(OLD, 100));
  assert_int_equal(read_serial(), OLD);
}

/* Dies at call `at` of a save. */
static void die_in_save(size_t at) {
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    calls.die_at = at;
    _exit(save(NEW, 100) == RONDO_OK ? 0 : 1);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == DIED);
}

CHECKPOINT_TEST(test_a_process_that_ends_at_any_call_leaves_one_that_is_whole) {
  for (size_t at = 1; at <= 10; at++) {
    assert_ok(save(OLD, 100));
    die_in_save(at);
    assert_int_equal(read_serial(), at <= 7 ? OLD : NEW); /* the seventh is the rename */
    assert_int_equal(remove_others(), at >= 2 && at <= 7 ? 1 : 0);
  }
}

/* PR-12 */
CHECKPOINT_TEST(test_the_next_save_removes_what_a_process_that_ended_left) {
  for (size_t at = 1; at <= 10; at++) {
    assert_ok(save(OLD, 100));
    for (int i = 0; i < 3; i++) die_in_save(at);
    assert_ok(save(OLD, 100));
    assert_int_equal(read_serial(), OLD);
    assert_int_equal(remove_others(), 0);
  }
}

/* Stops during a save, and continues when the pipe has data. */
static void stop_in_save(const int went[2], const int go[2]) {
  char byte = 0;
  rondo_file_replacement file;
  if (rondo_file_replacement_begin(path, &file) != RONDO_OK) _exit(1);
  if (write(went[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1) _exit(2);
  _exit(rondo_file_replacement_end(&file, rondo_file_replacement_write(&file, "new", 3)) == RONDO_OK ? DIED : 3);
}

CHECKPOINT_TEST(test_a_save_leaves_the_temporary_file_of_another_alone) {
  int went[2], go[2], status = 0;
  char byte = 0;
  assert_int_equal(pipe(went), 0);
  assert_int_equal(pipe(go), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) stop_in_save(went, go);
  assert_int_equal(read(went[0], &byte, 1), 1);
  assert_ok(save(NEW, 100));
  assert_int_equal(read_serial(), NEW);
  assert_int_equal(write(go[1], &byte, 1), 1);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == DIED);
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(info.st_size, 3); /* the save that finishes last wins */
  assert_int_equal(remove_others(), 0);
  for (int i = 0; i < 2; i++) close(went[i]), close(go[i]);
}

/* Saves in a loop, each time more than one call can write, until the process is killed. */
static void save_for_ever(void) {
  for (uint32_t serial = 1;; serial++) {
    if (save(serial, 300000) != RONDO_OK) _exit(1);
  }
}

CHECKPOINT_TEST(test_a_process_that_is_killed_at_any_moment_leaves_one_that_is_whole) {
  uint64_t seed = 5;
  uint32_t kept = 0;
  for (uint32_t round = 0; round < test_effort(40) + 4; round++) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) save_for_ever();
    const struct timespec pause = {.tv_nsec = (long)(test_random(&seed) % 20000000)};
    nanosleep(&pause, NULL);
    assert_int_equal(kill(child, SIGKILL), 0);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    kept += read_serial();
    assert_true(remove_others() <= 1);
  }
  assert_true(kept > 0);
}

/* A limit on the size of files imitates a disk that becomes full in the middle of the data. */
CHECKPOINT_TEST(test_a_full_disk_leaves_the_old_one) {
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    const struct rlimit limit = {4096, 4096};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(1); /* SIGXFSZ would end the process */
    const rondo_status saved = save(NEW, 100000);
    _exit(saved == RONDO_IO_ERROR && rondo_last_error()->driver_code == EFBIG ? DIED : 2);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == DIED);
  assert_int_equal(read_serial(), OLD);
  assert_int_equal(remove_others(), 0);
}

static rondo_status save_and_load(const rondo_allocator *allocator) {
  rondo_weights *set = NULL, *back = NULL;
  const float one = 1;
  const rondo_weight weight = {.name = "one", .type = RONDO_F32, .data = &one, .bytes = sizeof one};
  rondo_status status = rondo_weights_create(allocator, &set);
  if (status == RONDO_OK) status = rondo_weights_add(set, &weight);
  if (status == RONDO_OK) status = rondo_checkpoint_save(set, path);
  if (status == RONDO_OK) status = rondo_checkpoint_load(path, allocator, &back);
  rondo_weights_destroy(back);
  rondo_weights_destroy(set);
  return status;
}

CHECKPOINT_TEST(test_failing_allocators_leak_nothing) {
  size_t failures = 0;
  rondo_status status = RONDO_OUT_OF_MEMORY;
  for (size_t at = 1; status != RONDO_OK; at++) {
    test_allocator allocator;
    test_allocator_init(&allocator);
    atomic_store(&allocator.fail_at, at);
    status = save_and_load(&allocator.table);
    failures += status != RONDO_OK;
    assert_true(status == RONDO_OK || status == RONDO_OUT_OF_MEMORY);
    assert_true(test_allocator_is_clean(&allocator));
    assert_int_equal(remove_others(), 0);
  }
  assert_true(failures > 10);
}

CHECKPOINT_TEST(test_there_is_no_folder) {
  rondo_weights *set = make_set(NEW, 10);
  char nowhere[sizeof path + 16];
  (void)snprintf(nowhere, sizeof nowhere, "%s/nowhere/checkpoint", folder);
  assert_fails(rondo_checkpoint_save(set, nowhere), RONDO_IO_ERROR);
  assert_int_equal(rondo_last_error()->driver_code, ENOENT);
  rondo_weights_destroy(set);
}

int main(void) { return test_run_registered_in(make_folder, remove_folder); }
