/* SPDX-License-Identifier: MIT
 * Reading from files and memory.
 */
#define _POSIX_C_SOURCE 200809L
#include "tensor/byte_source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

rondo_status rondo_byte_source_open(const char *path, rondo_byte_source *out) {
  struct stat info;
  *out = (rondo_byte_source){.file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (out->file < 0) {
    return rondo_fail_errno(errno == ENOENT || errno == ENOTDIR ? RONDO_NOT_FOUND : RONDO_IO_ERROR, errno,
                            "%s cannot be opened", path);
  }
  if (fstat(out->file, &info) != 0 || !S_ISREG(info.st_mode)) {
    const int error = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
    rondo_byte_source_close(out);
    return rondo_fail_errno(RONDO_IO_ERROR, error, "%s is not a regular file", path);
  }
  out->count = (uint64_t)info.st_size;
  return RONDO_OK;
}

void rondo_byte_source_close(rondo_byte_source *source) {
  if (source->bytes == NULL && source->file >= 0) close(source->file);
  source->file = -1;
}

rondo_status rondo_byte_source_read(const rondo_byte_source *source, uint64_t offset, void *to, size_t count) {
  if (source->bytes != NULL) {
    if (count > 0) memcpy(to, source->bytes + offset, count);
    return RONDO_OK;
  }
  for (size_t done = 0; done < count;) {
    const ssize_t got = pread(source->file, (unsigned char *)to + done, count - done, (off_t)(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return rondo_fail_errno(RONDO_IO_ERROR, errno, "%zu bytes cannot be read", count - done);
    if (got == 0) {
      return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_TRUNCATED, "the file got shorter while it was read");
    }
    done += (size_t)got;
  }
  return RONDO_OK;
}
