/* SPDX-License-Identifier: MIT
 * Replacing files. The order is what makes it safe: the bytes are brought to the disk before the name says that they
 * are there, and the folder, which holds the name, after.
 */
#define _POSIX_C_SOURCE 200809L
#include "tensor/file_replacement.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

/* A name beside `path` that no other thread or process of now uses; one that ended before may have left such a file. */
static rondo_status make_temporary_name(const rondo_allocator *allocator, const char *path, char **out) {
  static atomic_uint serial;
  rondo_text text;
  rondo_text_init(&text, allocator);
  rondo_text_add(&text, "%s.%ld-%u.tmp", path, (long)getpid(), atomic_fetch_add(&serial, 1));
  const rondo_status status = rondo_text_take(&text, out);
  rondo_text_deinit(&text);
  return status;
}

/* Renaming would put a file in the place of a device or a pipe too, and give up what writes there. *out_old: the
 * permissions of the file that is there, if *out_is_there. */
static rondo_status check_path(const char *path, bool *out_is_there, mode_t *out_old) {
  struct stat info;
  *out_is_there = false;
  if (path[0] == '\0') return rondo_fail_errno(RONDO_IO_ERROR, ENOENT, "the name of the file is empty");
  if (stat(path, &info) != 0) return RONDO_OK;
  *out_is_there = true;
  *out_old = info.st_mode & 0777;
  if (S_ISREG(info.st_mode)) return RONDO_OK;
  return rondo_fail_errno(RONDO_IO_ERROR, S_ISDIR(info.st_mode) ? EISDIR : EINVAL,
                          "it is no regular file, and stays as it is: name another");
}

rondo_status rondo_file_replacement_begin(const rondo_allocator *allocator, const char *path,
                                          rondo_file_replacement *out) {
  mode_t old = 0;
  bool is_there;
  *out = (rondo_file_replacement){.allocator = *allocator, .path = path, .file = -1};
  RONDO_TRY(check_path(path, &is_there, &old));
  for (;;) {
    RONDO_TRY(make_temporary_name(allocator, path, &out->temporary));
    out->file = open(out->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, is_there ? 0600 : 0666);
    if (out->file >= 0) {
      if (is_there) (void)fchmod(out->file, old); /* where there are no permissions it stays as files there are */
      return RONDO_OK;
    }
    const int error = errno;
    rondo_status status = RONDO_OK;
    if (error != EEXIST) status = rondo_fail_errno(RONDO_IO_ERROR, error, "%s cannot be made", out->temporary);
    rondo_release_text(allocator, out->temporary);
    RONDO_TRY(status);
  }
}

rondo_status rondo_file_replacement_write(const rondo_file_replacement *replacement, const void *bytes, size_t count) {
  for (size_t done = 0; done < count;) {
    const ssize_t wrote = write(replacement->file, (const unsigned char *)bytes + done, count - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return rondo_fail_errno(RONDO_IO_ERROR, errno, "%zu bytes cannot be written", count - done);
    done += (size_t)wrote;
  }
  return RONDO_OK;
}

/* Opens the folder that `path` is in; *out is -1 where folders cannot be opened to be brought to the disk, which is so
 * when they may be written and not read. */
static rondo_status open_folder(const rondo_allocator *allocator, const char *path, int *out) {
  const char *slash = strrchr(path, '/');
  const size_t length = slash == NULL ? 1 : slash == path ? 1 : (size_t)(slash - path);
  char *folder = NULL;
  RONDO_TRY(rondo_allocate_items(allocator, length + 1, 1, &folder));
  memcpy(folder, slash == NULL ? "." : path, length);
  *out = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int error = errno;
  rondo_release(allocator, folder, length + 1, 1);
  if (*out >= 0 || error == EACCES) return RONDO_OK;
  return rondo_fail_errno(RONDO_IO_ERROR, error, "its folder cannot be opened");
}

/* File systems that have no such thing say EINVAL. */
static rondo_status rename_and_keep(const rondo_file_replacement *r, int folder) {
  if (rename(r->temporary, r->path) != 0) {
    return rondo_fail_errno(RONDO_IO_ERROR, errno, "%s cannot be renamed", r->temporary);
  }
  if (folder < 0 || fsync(folder) == 0 || errno == EINVAL) return RONDO_OK;
  return rondo_fail_errno(RONDO_IO_ERROR, errno,
                          "it is written, but its folder cannot be brought to the disk: if the machine stops now, the "
                          "old file may come back");
}

static rondo_status put_in_place(const rondo_file_replacement *r) {
  int folder = -1;
  RONDO_TRY(open_folder(&r->allocator, r->path, &folder));
  const rondo_status status = rename_and_keep(r, folder);
  if (folder >= 0) close(folder);
  return status;
}

rondo_status rondo_file_replacement_end(rondo_file_replacement *r, rondo_status status) {
  if (status == RONDO_OK && fsync(r->file) != 0) {
    status = rondo_fail_errno(RONDO_IO_ERROR, errno, "%s cannot be brought to the disk", r->temporary);
  }
  if (close(r->file) != 0 && status == RONDO_OK) {
    status = rondo_fail_errno(RONDO_IO_ERROR, errno, "%s cannot be closed", r->temporary);
  }
  if (status == RONDO_OK) status = put_in_place(r);
  if (status != RONDO_OK) unlink(r->temporary); /* there is none behind a rename */
  rondo_release_text(&r->allocator, r->temporary);
  return status;
}
