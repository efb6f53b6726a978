/* SPDX-License-Identifier: MIT
 * Whole files in memory. Reading does not query the size first, so pipes and devices work like files.
 */
#define _GNU_SOURCE
#include "common/file.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/tool.h"

static bool is_standard(const char *path) { return strcmp(path, "-") == 0; }

const char *file_display_name(const char *path) { return is_standard(path) ? "standard input" : path; }

/* Makes space for more bytes and the NUL. */
static bool grow(file_bytes *file, size_t *capacity) {
  const size_t wanted = *capacity ? *capacity * 2 : (size_t)64 << 10;
  unsigned char *bytes = realloc(file->bytes, wanted + 1);
  if (!bytes) return false;
  file->bytes = bytes;
  *capacity = wanted;
  return true;
}

static int read_all(FILE *stream, const char *name, file_bytes *out) {
  size_t capacity = 0;
  while (!feof(stream)) {
    if (out->count == capacity && !grow(out, &capacity)) return tool_fail_memory("%s", name);
    out->count += fread(out->bytes + out->count, 1, capacity - out->count, stream);
    if (ferror(stream)) return tool_fail("%s: %s", name, strerror(errno));
    if (out->count > FILE_MAX_BYTES) {
      return tool_fail("%s: larger than the %zu MiB that can be read", name, FILE_MAX_BYTES >> 20);
    }
  }
  out->bytes[out->count] = '\0';
  return TOOL_OK;
}

static int read_or_release(FILE *stream, const char *name, file_bytes *out) {
  const int result = read_all(stream, name, out);
  if (result != TOOL_OK) file_release(out);
  return result;
}

int file_read(const char *path, file_bytes *out) {
  *out = (file_bytes){0};
  if (is_standard(path)) return read_or_release(stdin, file_display_name(path), out);
  FILE *stream = fopen(path, "rb");
  if (!stream) return tool_fail("%s: %s", path, strerror(errno));
  const int result = read_or_release(stream, path, out);
  fclose(stream);
  return result;
}

void file_release(file_bytes *file) {
  free(file->bytes);
  *file = (file_bytes){0};
}

int file_write(const char *path, const char *text) {
  return rondo_file_write(path, text, strlen(text)) ? tool_fail("%s", rondo_last_error()->message) : TOOL_OK;
}

int file_check_writable(const char *path) {
  return rondo_file_check(path) ? tool_fail("%s", rondo_last_error()->message) : TOOL_OK;
}

/* For two paths that do not exist yet: realpath fails, but has resolved the part that exists. */
static bool would_be_same_file(const char *a, const char *b) {
  char x[PATH_MAX], y[PATH_MAX];
  const bool are_new = !realpath(a, x) && errno == ENOENT && !realpath(b, y) && errno == ENOENT;
  return are_new && strcmp(x, y) == 0;
}

/* Several writers may share a device or a pipe. */
bool file_is_same(const char *a, const char *b) {
  struct stat x, y;
  const bool has_a = stat(a, &x) == 0, has_b = stat(b, &y) == 0;
  if (!has_a && !has_b) return would_be_same_file(a, b);
  return has_a && has_b && S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
