/* SPDX-License-Identifier: MIT
 * The cache of compiled kernels: which entries are used and which are not, how it keeps to its size, that kernels are
 * compiled once, and that files which another user may have written are not used.
 */
#define _GNU_SOURCE
#include <rondo/rondo.h>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/environment.h"
#include "device/cuda/cuda_kernel_cache.h"
#include "support/rondo_test.h"

static char folder[PATH_MAX];
static rondo_allocator allocator;

static void set_bound(const char *bytes) {
  assert_int_equal(setenv("RONDO_CUDA_CACHE_BYTES", bytes, 1), 0);
  rondo_options_reload();
}

/* The cache is two folders below an existing one. */
static int set_up(void **state) {
  const char *temporary = getenv("TMPDIR");
  char path[PATH_MAX + 16];
  (void)snprintf(folder, sizeof folder, "%s/rondo-cache-XXXXXX", temporary != NULL ? temporary : "/tmp");
  if (mkdtemp(folder) == NULL) return -1;
  (void)snprintf(path, sizeof path, "%s/a/b", folder);
  allocator = rondo_allocator_default();
  assert_int_equal(setenv("RONDO_CUDA_CACHE", path, 1), 0);
  set_bound("1000000");
  (void)state;
  return 0;
}

/* Calls `visit` for each file of the cache. Returns how many there are. */
static size_t each_file(void (*visit)(const char *path)) {
  char path[PATH_MAX + 16], file[2 * PATH_MAX];
  size_t count = 0;
  (void)snprintf(path, sizeof path, "%s/a/b", folder);
  DIR *directory = opendir(path);
  if (directory == NULL) return 0;
  for (const struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
    if (entry->d_name[0] == '.') continue;
    (void)snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
    count++;
    if (visit != NULL) visit(file);
  }
  (void)closedir(directory);
  return count;
}

static void remove_file(const char *path) { assert_int_equal(unlink(path), 0); }

static int tear_down(void **state) {
  char path[PATH_MAX + 16];
  (void)state;
  (void)each_file(remove_file);
  (void)snprintf(path, sizeof path, "%s/a/b", folder);
  (void)rmdir(path);
  (void)snprintf(path, sizeof path, "%s/a", folder);
  (void)rmdir(path);
  assert_int_equal(setenv("RONDO_CUDA_CACHE", "none", 1), 0);
  rondo_options_reload();
  return rmdir(folder);
}

static const cuda_cache_key first = {13000, 9, 0, "source of the first"};

static size_t put_counted(const cuda_cache_key *key, const char *text) {
  const cuda_compiled compiled = {.code = {(char *)(uintptr_t)text, strlen(text)}};
  return cuda_cache_put(key, &compiled);
}

static void put(const cuda_cache_key *key, const char *text) { assert_int_equal(put_counted(key, text), 0); }

/* NULL: it is not there. */
static void assert_found(const cuda_cache_key *key, const char *text) {
  cuda_compiled compiled;
  assert_int_equal(cuda_cache_find(&allocator, key, &compiled), text != NULL);
  if (text == NULL) return;
  assert_int_equal(compiled.code.count, strlen(text));
  assert_memory_equal(compiled.code.bytes, text, compiled.code.count);
  assert_int_equal(compiled.findings.count, 0);
  cuda_compiled_free(&allocator, &compiled);
}

#define CACHE_TEST(name) TEST_REGISTER(name, void *no_fixture, set_up, tear_down, false)

CACHE_TEST(what_is_put_is_found) {
  assert_found(&first, NULL);
  put(&first, "code of the first");
  assert_found(&first, "code of the first");
  put(&first, "other code");
  assert_found(&first, "other code");
  assert_int_equal(each_file(NULL), 1);
}

static void change_last_byte(const char *path) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  assert_true(file >= 0);
  assert_true(lseek(file, -1, SEEK_END) > 0);
  assert_int_equal(write(file, "#", 1), 1);
  assert_int_equal(close(file), 0);
}

CACHE_TEST(ad4_findings_are_kept_with_the_code) {
  ptx_finding findings[2] = {{.entry = 7, .bytes = 8, .is_written = PTX_YES, .write = {12, "st.global.f32"}},
                             {.entry = 7, .parameter = 1, .bytes = 4}};
  const cuda_compiled compiled = {.code = {(char *)(uintptr_t) "code", 4}, .findings = {findings, 2, 2}};
  cuda_compiled found;
  assert_int_equal(cuda_cache_put(&first, &compiled), 0);
  assert_true(cuda_cache_find(&allocator, &first, &found));
  assert_int_equal(found.findings.count, 2);
  assert_memory_equal(found.findings.items, findings, sizeof findings);
  cuda_compiled_free(&allocator, &found);
  (void)each_file(change_last_byte);
  assert_false(cuda_cache_find(&allocator, &first, &found));
}

CACHE_TEST(all_that_code_depends_on_counts) {
  const cuda_cache_key others[] = {
      {13010, 9, 0, first.source}, {13000, 8, 0, first.source}, {13000, 9, 1, first.source}, {13000, 9, 0, "other"}};
  put(&first, "code");
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) assert_found(&others[i], NULL);
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) put(&others[i], others[i].source);
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) assert_found(&others[i], others[i].source);
  assert_found(&first, "code");
}

static void cut_file(const char *path) {
  struct stat stat_of;
  assert_int_equal(stat(path, &stat_of), 0);
  assert_int_equal(truncate(path, stat_of.st_size - 1), 0);
}

CACHE_TEST(broken_files_are_not_used) {
  put(&first, "code of the first");
  (void)each_file(change_last_byte);
  assert_found(&first, NULL);
  put(&first, "code of the first");
  assert_found(&first, "code of the first");
  (void)each_file(cut_file);
  assert_found(&first, NULL);
}

/* Three files fit. The least recently used one is removed. */
CACHE_TEST(the_longest_unused_goes) {
  char sources[5][32];
  cuda_cache_key keys[5];
  char code[1001];
  memset(code, 'c', sizeof code);
  code[1000] = '\0';
  set_bound("3500");
  for (int i = 0; i < 5; i++) {
    (void)snprintf(sources[i], sizeof sources[i], "source %d", i);
    keys[i] = (cuda_cache_key){13000, 9, 0, sources[i]};
  }
  for (int i = 0; i < 3; i++) {
    put(&keys[i], code);
    usleep(20000); /* file systems keep times in steps */
  }
  assert_found(&keys[0], code);
  usleep(20000);
  assert_int_equal(put_counted(&keys[3], code), 1);
  assert_int_equal(each_file(NULL), 3);
  assert_found(&keys[1], NULL);
  assert_found(&keys[0], code);
  set_bound("10");
  assert_int_equal(put_counted(&keys[4], code), 4);
  assert_int_equal(each_file(NULL), 0);
}

/* Nothing fits: a new file is removed at once. */
CACHE_TEST(what_goes_is_counted_by_the_device) {
  static const test_kernel_id kinds[] = {TEST_KERNEL_SET, TEST_KERNEL_EMPTY};
  rondo_device *device = NULL;
  set_bound("10");
  assert_ok(rondo_device_open("cuda:0", NULL, &device));
  for (uint64_t i = 0; i < 2; i++) {
    rondo_device_statistics statistics = {.struct_size = sizeof statistics};
    rondo_kernel *kernel = NULL;
    assert_ok(rondo_kernel_create(device, test_kernel_options(kinds[i]), &kernel));
    assert_ok(rondo_device_get_statistics(device, &statistics));
    assert_int_equal(statistics.kernels_compiled, i + 1);
    assert_int_equal(statistics.cache_evictions, i + 1);
    assert_int_equal(each_file(NULL), 0);
    rondo_kernel_destroy(kernel);
  }
  assert_ok(rondo_device_close(device));
}

/* A folder that cannot be made means no cache, and no failure. */
CACHE_TEST(without_a_folder_there_is_no_cache) {
  assert_int_equal(setenv("RONDO_CUDA_CACHE", "/proc/self/no/such", 1), 0);
  rondo_options_reload();
  put(&first, "code");
  assert_found(&first, NULL);
  assert_int_equal(setenv("RONDO_CUDA_CACHE", "none", 1), 0);
  rondo_options_reload();
  put(&first, "code");
  assert_found(&first, NULL);
}

CACHE_TEST(kernels_are_compiled_once) {
  rondo_device *device = NULL;
  for (int round = 0; round < 2; round++) {
    rondo_device_statistics statistics = {.struct_size = sizeof statistics};
    rondo_kernel *kernel = NULL;
    assert_ok(rondo_device_open("cuda:0", NULL, &device));
    assert_ok(rondo_kernel_create(device, test_kernel_options(TEST_KERNEL_SET), &kernel));
    assert_ok(rondo_device_get_statistics(device, &statistics));
    assert_int_equal(statistics.kernels_compiled, round == 0);
    assert_int_equal(statistics.kernels_cached, round == 1);
    rondo_kernel_destroy(kernel);
    assert_ok(rondo_device_close(device));
  }
}

/* Trust ----------------------------------------------------------------------------------------------------------- */

static char warning[512]; /* the last one of the cache */

static void keep_warning(void *user, rondo_log_level level, const char *area, const char *message) {
  (void)user;
  if (level == RONDO_LOG_WARNING && strcmp(area, "cuda") == 0) (void)snprintf(warning, sizeof warning, "%s", message);
}

static unsigned mode_of(const char *path) {
  struct stat info;
  assert_int_equal(lstat(path, &info), 0);
  return (unsigned)info.st_mode & 0777;
}

static void assert_is_private(const char *path) { assert_int_equal(mode_of(path), 0600); }

CACHE_TEST(only_the_owner_may_enter_and_read) {
  char path[PATH_MAX + 16];
  const mode_t before = umask(0);
  put(&first, "code");
  (void)umask(before);
  assert_int_equal(each_file(assert_is_private), 1);
  (void)snprintf(path, sizeof path, "%s/a", folder);
  assert_int_equal(mode_of(path), 0700);
  (void)snprintf(path, sizeof path, "%s/a/b", folder);
  assert_int_equal(mode_of(path), 0700);
}

static void let_others_write(const char *path) { assert_int_equal(chmod(path, 0620), 0); }
static void give_away(const char *path) { assert_int_equal(chown(path, 65534, 65534), 0); }

static char elsewhere[PATH_MAX + 16]; /* outside the cache */

static void replace_by_link(const char *path) {
  (void)snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", folder);
  assert_int_equal(rename(path, elsewhere), 0);
  assert_int_equal(symlink(elsewhere, path), 0);
}

CACHE_TEST(files_that_others_may_have_written_are_not_used) {
  rondo_log_set_sink(keep_warning, NULL, RONDO_LOG_WARNING);
  put(&first, "code");
  (void)each_file(let_others_write);
  assert_found(&first, NULL);
  assert_non_null(strstr(warning, "is not used: other users may write to it (mode 0620)"));
  put(&first, "code");
  assert_found(&first, "code");
  (void)each_file(replace_by_link);
  assert_found(&first, NULL);
  put(&first, "code");
  assert_found(&first, "code");
  if (geteuid() == 0) { /* only root may give files away */
    (void)each_file(give_away);
    assert_found(&first, NULL);
    assert_non_null(strstr(warning, "is not used: it belongs to user 65534, and this process runs as user 0"));
  }
  rondo_log_set_sink(NULL, NULL, RONDO_LOG_ERROR);
  assert_int_equal(unlink(elsewhere), 0);
}

CACHE_TEST(a_folder_that_others_may_write_to_is_not_used) {
  char path[PATH_MAX + 16];
  rondo_log_set_sink(keep_warning, NULL, RONDO_LOG_WARNING);
  put(&first, "code");
  (void)snprintf(path, sizeof path, "%s/a/b", folder);
  assert_int_equal(chmod(path, 0770), 0);
  assert_found(&first, NULL);
  assert_non_null(strstr(warning, "/a/b is not used: other users may write to it (mode 0770)"));
  put(&first, "other");
  assert_int_equal(chmod(path, 0755), 0);
  assert_found(&first, "code");
  rondo_log_set_sink(NULL, NULL, RONDO_LOG_ERROR);
}
