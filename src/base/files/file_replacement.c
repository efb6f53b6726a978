/* SPDX-License-Identifier: MIT
 * Replaces files atomically. The order makes it safe: fsync the temporary file, rename it, fsync its folder. The
 * temporary file stays locked until it is renamed.
 */
#define _GNU_SOURCE
#include "base/files/file_replacement.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file_limit.h"
#include "base/hash.h"

enum { MOST_LINKS = 40, PREFIX_BYTES = 32, MOST_TRIES = 1000 };

static const char suffix[] = ".tmp";

/* Paths ------------------------------------------------------------------------------------------------------------ */

static rondo_status fail_too_long(void) {
  return rondo_fail_errno(RONDO_IO_ERROR, ENAMETOOLONG, "the path has more than %d bytes: use a shorter one",
                          RONDO_PATH_BYTES - 1);
}

/* The length of the folder part of a path: that of "a/b/" in "a/b/c". */
static size_t folder_length(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

/* The descriptor that a path such as /dev/fd/3 names; -1: none. */
static int descriptor_of(const char *path) {
  static const char *const folders[] = {"/proc/self/fd/", "/dev/fd/"};
  for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
    const size_t length = strlen(folders[i]);
    const char *number = path + length;
    if (strncmp(path, folders[i], length) != 0 || number[0] == '\0' || strlen(number) > 9) continue;
    if (number[strspn(number, "0123456789")] == '\0') return atoi(number);
  }
  return -1;
}

/* Replaces the last component of `path`, a symbolic link, by the link's target. */
static rondo_status replace_link(char path[RONDO_PATH_BYTES], const char *target) {
  const size_t kept = target[0] == '/' ? 0 : folder_length(path);
  if (kept + strlen(target) >= RONDO_PATH_BYTES) return fail_too_long();
  memcpy(path + kept, target, strlen(target) + 1);
  return RONDO_OK;
}

/* Resolves the last component of the path as long as it is a symbolic link. The kernel resolves links in the folders.
 */
static rondo_status follow_links(const char *path, char out[RONDO_PATH_BYTES]) {
  if (path[0] == '\0') return rondo_fail_errno(RONDO_IO_ERROR, ENOENT, "the name of the file is empty");
  if (strlen(path) >= RONDO_PATH_BYTES) return fail_too_long();
  memcpy(out, path, strlen(path) + 1);
  for (int i = 0; i < MOST_LINKS; i++) {
    char target[RONDO_PATH_BYTES];
    if (descriptor_of(out) >= 0) return RONDO_OK;
    const ssize_t length = readlink(out, target, sizeof target - 1);
    if (length < 0) return RONDO_OK;
    target[length] = '\0';
    RONDO_TRY(replace_link(out, target));
  }
  return rondo_fail_errno(RONDO_IO_ERROR, ELOOP, "it is a symbolic link to one to another, and so on");
}

static rondo_status fail_path(int error) {
  return rondo_fail_errno(RONDO_IO_ERROR, error, "its folder or its name is not usable");
}

/* Resolves the path and reads the attributes of the file that exists there. */
static rondo_status resolve(const char *path, rondo_file_replacement *out) {
  struct stat info;
  out->file = -1;
  out->temporary[0] = '\0';
  out->written = 0;
  RONDO_TRY(follow_links(path, out->path));
  const bool is_descriptor = descriptor_of(out->path) >= 0;
  out->has_old = !is_descriptor && stat(path, &info) == 0;
  if (!is_descriptor && !out->has_old && errno != ENOENT) return fail_path(errno);
  out->is_direct = is_descriptor || (out->has_old && !S_ISREG(info.st_mode));
  if (!out->has_old) return RONDO_OK;
  if (S_ISDIR(info.st_mode)) return rondo_fail_errno(RONDO_IO_ERROR, EISDIR, "it is no regular file, but a folder");
  if (out->is_direct) memcpy(out->path, path, strlen(path) + 1); /* targets of links in /proc may have no name */
  out->old_mode = info.st_mode & 0777;
  out->old_user = info.st_uid;
  out->old_group = info.st_gid;
  return RONDO_OK;
}

static rondo_status open_directly(rondo_file_replacement *r) {
  const int given = descriptor_of(r->path);
  r->file = given >= 0 ? fcntl(given, F_DUPFD_CLOEXEC, 3) : open(r->path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
  return r->file >= 0 ? RONDO_OK : rondo_fail_errno(RONDO_IO_ERROR, errno, "it cannot be opened for writing");
}

/* Temporary files -------------------------------------------------------------------------------------------------- */

/* The common prefix of the names of all temporary files of this file. */
static void make_prefix(const char *path, char out[PREFIX_BYTES]) {
  const uint64_t hash = rondo_hash_text(RONDO_HASH_START, path + folder_length(path));
  (void)snprintf(out, PREFIX_BYTES, ".rondo-%016" PRIx64 "-", hash);
}

static void remove_if_stale(int folder, const char *name) {
  const int file = openat(folder, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  struct stat info;
  if (file < 0) return;
  if (flock(file, LOCK_EX | LOCK_NB) == 0 && fstat(file, &info) == 0 && S_ISREG(info.st_mode)) {
    (void)unlinkat(folder, name, 0); /* fails if it was renamed meanwhile */
  }
  (void)close(file); /* nothing was written */
}

static void find_folder(const char *path, char out[RONDO_PATH_BYTES]) {
  const size_t length = folder_length(path);
  memcpy(out, path, length);
  if (length == 0) out[0] = '.';
  out[length > 0 ? length : 1] = '\0';
}

/* Removes temporary files of this file that killed processes have left. Does nothing if the folder cannot be read. */
static void remove_stale(const char *path) {
  char folder[RONDO_PATH_BYTES], prefix[PREFIX_BYTES];
  find_folder(path, folder);
  make_prefix(path, prefix);
  DIR *opened = opendir(folder);
  if (opened == NULL) return;
  for (const struct dirent *entry = readdir(opened); entry != NULL; entry = readdir(opened)) {
    if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0) remove_if_stale(dirfd(opened), entry->d_name);
  }
  (void)closedir(opened);
}

/* A name in the file's folder that no other thread or process uses now. */
static rondo_status name_temporary(rondo_file_replacement *r) {
  static atomic_uint serial;
  char prefix[PREFIX_BYTES];
  make_prefix(r->path, prefix);
  const int length = snprintf(r->temporary, RONDO_PATH_BYTES, "%.*s%s%ld-%u%s", (int)folder_length(r->path), r->path,
                              prefix, (long)getpid(), atomic_fetch_add(&serial, 1), suffix);
  if (length > 0 && length < RONDO_PATH_BYTES) return RONDO_OK;
  r->temporary[0] = '\0';
  return fail_too_long();
}

/* Locks the new file. False: another process considered it stale and removes it. If the file system has no locks, no
 * process can lock it to remove it. */
static bool lock(int file) {
  struct stat info;
  if (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  return fstat(file, &info) != 0 || info.st_nlink > 0;
}

static void discard(rondo_file_replacement *r) {
  if (r->temporary[0] != '\0') (void)unlink(r->temporary); /* if this fails, the next writer removes the file */
  r->temporary[0] = '\0';
}

static rondo_status open_temporary(rondo_file_replacement *r) {
  remove_stale(r->path);
  for (int i = 0; i < MOST_TRIES; i++) {
    RONDO_TRY(name_temporary(r));
    r->file = open(r->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, r->has_old ? 0600 : 0666);
    if (r->file >= 0 && lock(r->file)) return RONDO_OK;
    if (r->file < 0 && errno != EEXIST) {
      r->temporary[0] = '\0';
      return rondo_fail_errno(RONDO_IO_ERROR, errno, "no file can be made in its folder");
    }
    if (r->file < 0) continue;
    discard(r);
    (void)close(r->file); /* it is empty */
  }
  r->temporary[0] = '\0';
  return rondo_fail_errno(RONDO_IO_ERROR, EEXIST, "no file can be made in its folder: all names are taken");
}

/* Replacing -------------------------------------------------------------------------------------------------------- */

rondo_status rondo_file_replacement_begin(const char *path, rondo_file_replacement *out) {
  RONDO_TRY(resolve(path, out));
  return out->is_direct ? open_directly(out) : open_temporary(out);
}

static rondo_status check_limit(const rondo_file_replacement *r, size_t count) {
  if (r->is_direct || count == 0 || !rondo_file_limit_forbids(r->written + count)) return RONDO_OK;
  char limit[RONDO_SIZE_TEXT];
  return rondo_fail_errno(RONDO_IO_ERROR, EFBIG,
                          "it would pass the limit of %s on the size of files: raise it (ulimit -f)",
                          rondo_size_text(limit, rondo_file_limit()));
}

rondo_status rondo_file_replacement_write(rondo_file_replacement *r, const void *bytes, size_t count) {
  RONDO_TRY(check_limit(r, count));
  for (size_t done = 0; done < count;) {
    const ssize_t wrote = write(r->file, (const unsigned char *)bytes + done, count - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return rondo_fail_errno(RONDO_IO_ERROR, errno, "%zu bytes cannot be written", count - done);
    done += (size_t)wrote;
    r->written += (size_t)wrote;
  }
  return RONDO_OK;
}

/* Copies owner, group and mode of the old file. What cannot be set keeps its default for new files. The owner is set
 * first, because changing it clears permission bits. If the group cannot be set, it gets only the permissions of
 * others. */
static void keep_attributes(const rondo_file_replacement *r) {
  if (!r->has_old) return;
  struct stat info;
  const bool is_changed =
      fchown(r->file, r->old_user, r->old_group) == 0 || fchown(r->file, (uid_t)-1, r->old_group) == 0;
  const bool is_kept = is_changed || (fstat(r->file, &info) == 0 && info.st_gid == r->old_group);
  const mode_t for_group = is_kept ? S_IRWXG : (r->old_mode & S_IRWXO) << 3;
  (void)fchmod(r->file, r->old_mode & (S_IRWXU | S_IRWXO | for_group));
}

/* Opens the folder for fsync. *out is -1 if it is writable but not readable, so that it cannot be opened. */
static rondo_status open_folder(const char *path, int *out) {
  char folder[RONDO_PATH_BYTES];
  find_folder(path, folder);
  *out = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (*out >= 0 || errno == EACCES) return RONDO_OK;
  return rondo_fail_errno(RONDO_IO_ERROR, errno, "its folder cannot be opened");
}

/* File systems that cannot fsync a folder return EINVAL. */
static rondo_status rename_and_keep(rondo_file_replacement *r, int folder) {
  if (rename(r->temporary, r->path) != 0) {
    return rondo_fail_errno(RONDO_IO_ERROR, errno, "%s cannot be renamed", r->temporary);
  }
  r->temporary[0] = '\0';
  if (folder < 0 || fsync(folder) == 0 || errno == EINVAL) return RONDO_OK;
  return rondo_fail_errno(RONDO_IO_ERROR, errno,
                          "it is written, but its folder cannot be brought to the disk: if the machine stops now, the "
                          "old file may come back");
}

rondo_status rondo_file_replacement_place(rondo_file_replacement *r) {
  int folder = -1;
  if (r->is_direct) return RONDO_OK;
  keep_attributes(r);
  if (fsync(r->file) != 0) return rondo_fail_errno(RONDO_IO_ERROR, errno, "it cannot be brought to the disk");
  RONDO_TRY(open_folder(r->path, &folder));
  const rondo_status status = rename_and_keep(r, folder);
  if (folder >= 0) (void)close(folder); /* it was open for reading */
  return status;
}

rondo_status rondo_file_replacement_end(rondo_file_replacement *r, rondo_status status) {
  if (status == RONDO_OK && r->temporary[0] != '\0') status = rondo_file_replacement_place(r);
  discard(r);
  const bool is_closed = close(r->file) == 0 || errno == EINTR;
  r->file = -1;
  if (is_closed || status != RONDO_OK || !r->is_direct) return status; /* fsync has reported errors of regular files */
  return rondo_fail_errno(RONDO_IO_ERROR, errno, "it cannot be closed");
}

/* Whole files ------------------------------------------------------------------------------------------------------ */

static rondo_status write_file(const char *path, const void *bytes, size_t count) {
  rondo_file_replacement file;
  RONDO_TRY(rondo_file_replacement_begin(path, &file));
  return rondo_file_replacement_end(&file, rondo_file_replacement_write(&file, bytes, count));
}

rondo_status rondo_file_write(const char *path, const void *bytes, size_t count) {
  RONDO_TRY(rondo_require("rondo_file_write", "path", path));
  if (count > 0) RONDO_TRY(rondo_require("rondo_file_write", "bytes", bytes));
  return rondo_fail_context(write_file(path, bytes, count), "%s cannot be written", path);
}

static rondo_status check_file(const char *path) {
  rondo_file_replacement file;
  RONDO_TRY(resolve(path, &file));
  if (file.is_direct) {
    if (faccessat(AT_FDCWD, file.path, W_OK, AT_EACCESS) == 0) return RONDO_OK;
    return rondo_fail_errno(RONDO_IO_ERROR, errno, "it cannot be opened for writing");
  }
  RONDO_TRY(open_temporary(&file));
  discard(&file);
  (void)close(file.file); /* nothing was written */
  return RONDO_OK;
}

rondo_status rondo_file_check(const char *path) {
  RONDO_TRY(rondo_require("rondo_file_check", "path", path));
  return rondo_fail_context(check_file(path), "%s cannot be written", path);
}
