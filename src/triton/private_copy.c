/* SPDX-License-Identifier: MIT
 * The name of a copy is new each time, so that the loader does not take it for an earlier one.
 */
#define _GNU_SOURCE /* secure_getenv */
#include "triton/private_copy.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, PIECE_BYTES = 65536 };

static rondo_status fail(const char *call, const char *path, int code) {
  return rondo_fail_driver(RONDO_IO_ERROR, RONDO_REASON_NONE, code, strerrorname_np(code), "%s %s failed", call, path);
}

static rondo_status write_all(int to, const char *name, const char *bytes, size_t count) {
  while (count > 0) {
    const ssize_t written = write(to, bytes, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail("writing", name, errno);
    bytes += written;
    count -= (size_t)written;
  }
  return RONDO_OK;
}

static rondo_status copy(int from, const char *path, int to, const char *name) {
  char piece[PIECE_BYTES];
  for (;;) {
    const ssize_t count = read(from, piece, sizeof piece);
    if (count == 0) return RONDO_OK;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail("reading", path, errno);
    RONDO_TRY(write_all(to, name, piece, (size_t)count));
  }
}

static rondo_status open_copy(const char *name, void **out) {
  *out = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (*out != NULL) return RONDO_OK;
  const char *why = dlerror();
  return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NONE, "the shared object does not load, from a copy in TMPDIR: %s",
                    why == NULL ? "no reason was given" : why);
}

static rondo_status copy_and_load(int from, const char *path, void **out) {
  char name[PATH_BYTES];
  const char *folder = secure_getenv("TMPDIR");
  const int length =
      snprintf(name, sizeof name, "%s/rondo-model.XXXXXX", folder == NULL || folder[0] == '\0' ? "/tmp" : folder);
  if (length < 0 || (size_t)length >= sizeof name) return fail("making a path in", "TMPDIR", ENAMETOOLONG);
  const int to = mkostemp(name, O_CLOEXEC);
  if (to < 0) return fail("creating", name, errno);
  rondo_status status = copy(from, path, to, name);
  if (close(to) != 0 && status == RONDO_OK) status = fail("closing", name, errno);
  if (status == RONDO_OK) status = open_copy(name, out);
  (void)unlink(name);
  return status;
}

rondo_status rondo_triton_load_copy(const char *path, void **out) {
  *out = NULL;
  const int from = open(path, O_RDONLY | O_CLOEXEC);
  if (from < 0) return fail("opening", path, errno);
  const rondo_status status = copy_and_load(from, path, out);
  (void)close(from);
  return status;
}
