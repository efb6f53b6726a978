/* SPDX-License-Identifier: MIT
 * Whole files in memory.
 */
#ifndef RONDO_TOOL_FILE_H
#define RONDO_TOOL_FILE_H

#include <stddef.h>
#include <stdio.h>

#define FILE_MAX_BYTES ((size_t)256 << 20)

typedef struct file_bytes {
  unsigned char *bytes; /* followed by a NUL that is not counted */
  size_t count;
} file_bytes;

/* Reads a file of up to FILE_MAX_BYTES; "-" is standard input. Returns TOOL_OK, or TOOL_FAILURE having said why. */
int file_read(const char *path, file_bytes *out);
void file_release(file_bytes *file);

/* Writes a file anew. Returns as file_read. */
int file_write(const char *path, const char *text);

/* Closes a stream that was written to. Returns as file_read, TOOL_FAILURE when anything was not written. */
int file_finish(const char *path, FILE *stream);

/* Whether a file can be put at `path` in place of what is there: found out before the work whose result goes there.
 * Returns as file_read. */
int file_check_replaceable(const char *path);

/* Whether `path` is another file than `other`, which `what` says the use of; either may be NULL, or the name of a file
 * that is to be made. Devices and pipes are always apart. Returns as file_read. */
int file_check_apart(const char *path, const char *other, const char *what);

/* The name that messages use for `path`. */
const char *file_display_name(const char *path);

#endif
