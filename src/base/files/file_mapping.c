/* SPDX-License-Identifier: MIT
 * Mapped files: private mappings that are never written, so all pages are shared with the page cache.
 */
#define _DEFAULT_SOURCE
#include "base/files/file_mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

static rondo_status map_open_file(const char *path, int file, rondo_file_mapping *out) {
  struct stat info;
  if (fstat(file, &info) != 0) return rondo_fail_errno(RONDO_IO_ERROR, errno, "%s cannot be read", path);
  if (!S_ISREG(info.st_mode)) {
    return rondo_fail_errno(RONDO_IO_ERROR, S_ISDIR(info.st_mode) ? EISDIR : EINVAL, "%s is not a regular file", path);
  }
  if (info.st_size == 0) return RONDO_OK;
  void *bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  if (bytes == MAP_FAILED) {
    return rondo_fail_errno(errno == ENOMEM ? RONDO_OUT_OF_MEMORY : RONDO_IO_ERROR, errno,
                            "%s of %lld bytes cannot be mapped", path, (long long)info.st_size);
  }
  *out = (rondo_file_mapping){.bytes = bytes, .count = (size_t)info.st_size};
  return RONDO_OK;
}

rondo_status rondo_file_map(const char *path, rondo_file_mapping *out) {
  *out = (rondo_file_mapping){0};
  if (path[0] == '\0') return rondo_fail_errno(RONDO_NOT_FOUND, ENOENT, "the name of the file is empty");
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer must not block */
  if (file < 0) {
    return rondo_fail_errno(errno == ENOENT || errno == ENOTDIR ? RONDO_NOT_FOUND : RONDO_IO_ERROR, errno,
                            "%s cannot be opened", path);
  }
  const rondo_status status = map_open_file(path, file, out);
  close(file);
  return status;
}

void rondo_file_unmap(rondo_file_mapping *mapping) {
  if (mapping->bytes != NULL) (void)munmap(mapping->bytes, mapping->count);
  *mapping = (rondo_file_mapping){0};
}

void rondo_file_mapping_drop(const rondo_file_mapping *mapping, const void *at, size_t count) {
  const uintptr_t begin = (uintptr_t)mapping->bytes, from = (uintptr_t)at;
  if (mapping->bytes == NULL || from < begin || from - begin >= mapping->count) return;
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = from / page * page;
  (void)madvise(mapping->bytes + (first - begin), from + count - first, MADV_DONTNEED); /* only saves memory */
}
