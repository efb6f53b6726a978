/* SPDX-License-Identifier: MIT
 * rondo_file_write and rondo_file_check (PR-12): links, permissions, long names, pipes, limits, and the temporary files
 * of processes that were killed. In tests/fault/test_fault_checkpoint.c each system call of a write fails.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/file_replacement.h"
#include "support/rondo_test.h"

enum { OTHER = 65534 }; /* a user and a group */

/* Each test has an empty folder, which is the current one. */
static char folder[64];

static int enter_folder(void **state) {
  (void)state;
  strcpy(folder, "/tmp/rondo-files-XXXXXX");
  return mkdtemp(folder) == NULL ? -1 : chdir(folder);
}

static size_t count_files(bool remove_them) {
  size_t count = 0;
  DIR *opened = opendir(".");
  assert_non_null(opened);
  for (struct dirent *entry = readdir(opened); entry != NULL; entry = readdir(opened)) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (remove_them) assert_int_equal(unlink(entry->d_name), 0);
    count++;
  }
  closedir(opened);
  return count;
}

static int leave_folder(void **state) {
  (void)state;
  (void)count_files(true);
  return chdir("/") == 0 ? rmdir(folder) : -1;
}

static rondo_status write_text(const char *path, const char *text) {
  return rondo_file_write(path, text, strlen(text));
}

static void assert_holds(const char *path, const char *text) {
  char found[64] = "";
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  found[fread(found, 1, sizeof found - 1, file)] = '\0';
  fclose(file);
  assert_string_equal(found, text);
}

static void assert_errno(rondo_status status, int error) {
  assert_int_equal(status, RONDO_IO_ERROR);
  assert_int_equal(rondo_last_error()->driver_code, error);
}

#define IN_FOLDER_TEST(name) TEST_REGISTER(name, void *no_fixture, enter_folder, leave_folder, false)

IN_FOLDER_TEST(test_files_are_made_and_replaced) {
  struct stat info;
  const mode_t mask = umask(027);
  assert_ok(write_text("file", "first"));
  umask(mask);
  assert_holds("file", "first");
  assert_int_equal(stat("file", &info), 0);
  assert_int_equal(info.st_mode & 0777, 0640);
  assert_int_equal(chmod("file", 0604), 0);
  assert_ok(write_text("file", "second"));
  assert_holds("file", "second");
  assert_int_equal(stat("file", &info), 0);
  assert_int_equal(info.st_mode & 0777, 0604);
  assert_ok(rondo_file_write("file", NULL, 0));
  assert_holds("file", "");
  assert_invalid(rondo_file_write("file", NULL, 1), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_file_write(NULL, "", 0), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_file_check(NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_int_equal(count_files(false), 1);
}

/* A child's end: 0 when the new file is as it should be. */
static int replace_as_another_user(void) {
  struct stat info;
  if (setgroups(0, NULL) != 0 || setgid(OTHER) != 0 || setuid(OTHER) != 0) return 2;
  if (write_text("file", "new") != RONDO_OK || stat("file", &info) != 0) return 3;
  return info.st_uid == OTHER && info.st_gid == OTHER && (info.st_mode & 0777) == 0644 ? 0 : 4;
}

/* Where the group cannot be kept, what it may do is not given to another group. */
IN_FOLDER_TEST(test_permissions_are_given_to_no_other_group) {
  int status;
  if (geteuid() != 0) skip(); /* only root has a file whose group is not the writer's, and may be another user */
  assert_ok(write_text("file", "old"));
  assert_int_equal(chmod("file", 0664), 0);
  assert_int_equal(chmod(".", 0777), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) _exit(replace_as_another_user());
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  assert_holds("file", "new");
}

IN_FOLDER_TEST(test_links_stay_and_hard_links_keep_the_old_content) {
  struct stat info;
  assert_ok(write_text("file", "old"));
  assert_int_equal(link("file", "hard"), 0);
  assert_int_equal(symlink("file", "link"), 0);
  assert_int_equal(symlink("link", "chain"), 0);
  assert_int_equal(symlink("missing", "dangling"), 0);
  assert_int_equal(symlink("loop", "loop"), 0);
  assert_ok(write_text("chain", "new"));
  assert_ok(write_text("dangling", "made"));
  assert_holds("file", "new");
  assert_holds("hard", "old");
  assert_holds("missing", "made");
  assert_int_equal(lstat("chain", &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  assert_errno(write_text("loop", "new"), ELOOP);
  assert_errno(rondo_file_check("loop"), ELOOP);
}

IN_FOLDER_TEST(test_names_may_be_as_long_as_the_file_system_takes) {
  char name[257];
  memset(name, 'x', sizeof name);
  name[255] = '\0';
  assert_ok(rondo_file_check(name));
  assert_ok(write_text(name, "text"));
  assert_holds(name, "text");
  name[255] = 'x';
  name[256] = '\0';
  assert_errno(rondo_file_check(name), ENAMETOOLONG);
  assert_errno(write_text(name, "text"), ENAMETOOLONG);
}

IN_FOLDER_TEST(test_what_cannot_be_written_is_found_out_before) {
  static const struct {
    const char *path;
    int error;
  } bad[] = {{"", ENOENT}, {"nowhere/file", ENOENT}, {"file/below", ENOTDIR}, {".", EISDIR}, {"/", EISDIR}};
  assert_ok(write_text("file", "old"));
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    assert_errno(rondo_file_check(bad[i].path), bad[i].error);
    assert_message("cannot be written");
    assert_errno(write_text(bad[i].path, "new"), bad[i].error);
  }
  assert_ok(rondo_file_check("file"));
  assert_ok(rondo_file_check("other"));
  assert_ok(rondo_file_check("/dev/null"));
  assert_holds("file", "old");
  assert_int_equal(count_files(false), 1);
}

IN_FOLDER_TEST(test_pipes_and_descriptors_are_written_directly) {
  int ends[2];
  char path[32], found[8] = "";
  assert_int_equal(pipe(ends), 0);
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, i == 0 ? "/dev/fd/%d" : "/proc/self/fd/%d", ends[1]);
    assert_ok(rondo_file_check(path));
    assert_ok(write_text(path, "text"));
    assert_int_equal(read(ends[0], found, sizeof found), 4);
    assert_string_equal(found, "text");
  }
  close(ends[0]);
  close(ends[1]);
  const int file = open("file", O_WRONLY | O_CREAT, 0666); /* as standard output that is redirected */
  assert_true(file >= 0);
  assert_int_equal(write(file, "a", 1), 1);
  snprintf(path, sizeof path, "/dev/fd/%d", file);
  assert_ok(write_text(path, "b"));
  close(file);
  assert_holds("file", "ab");
  assert_errno(write_text("/dev/full", "text"), ENOSPC);
  assert_errno(write_text("/dev/fd/999", "text"), EBADF);
}

/* The process would end by SIGXFSZ if it came to the write. */
IN_FOLDER_TEST(test_a_file_that_would_pass_the_limit_leaves_the_old_one) {
  struct rlimit limit;
  static const char large[5000] = "large";
  assert_ok(write_text("file", "old"));
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const struct rlimit small = {4096, limit.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  const rondo_status status = rondo_file_write("file", large, sizeof large);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
  assert_errno(status, EFBIG);
  assert_message("limit of 4.0 KiB on the size of files");
  assert_holds("file", "old");
  assert_int_equal(count_files(false), 1);
}

static void begin_and_die(void) {
  rondo_file_replacement file;
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    if (rondo_file_replacement_begin("file", &file) == RONDO_OK) raise(SIGKILL);
    _exit(1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

IN_FOLDER_TEST(test_temporary_files_of_killed_processes_are_removed) {
  rondo_file_replacement other;
  for (int i = 0; i < 3; i++) begin_and_die(); /* each removes that of the one before */
  assert_int_equal(count_files(false), 1);
  assert_ok(write_text("another", "text")); /* those of another file stay */
  assert_int_equal(count_files(false), 2);
  assert_ok(rondo_file_replacement_begin("file", &other));
  assert_int_equal(count_files(false), 2);
  assert_ok(rondo_file_check("file")); /* what is being written stays, too */
  assert_ok(write_text("file", "first"));
  assert_int_equal(count_files(false), 3);
  assert_ok(rondo_file_replacement_end(&other, rondo_file_replacement_write(&other, "second", 6)));
  assert_holds("file", "second");
  assert_int_equal(count_files(false), 2);
}
