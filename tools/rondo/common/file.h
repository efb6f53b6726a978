/* SPDX-License-Identifier: MIT
 * Whole files in memory.
 */
#ifndef RONDO_TOOL_FILE_H
#define RONDO_TOOL_FILE_H

#include <stdbool.h>
#include <stddef.h>

#define FILE_MAX_BYTES ((size_t)256 << 20)

typedef struct file_bytes {
  unsigned char *bytes; /* followed by a NUL that is not counted */
  size_t count;
} file_bytes;

/* Reads a file of up to FILE_MAX_BYTES; "-" is standard input. Returns TOOL_OK, or TOOL_FAILURE after a message. */
int file_read(const char *path, file_bytes *out);
void file_release(file_bytes *file);

/* Writes a text with rondo_file_write. Returns the same as file_read. */
int file_write(const char *path, const char *text);

/* Checks that file_write can write `path`, before the work whose result is written there. Returns the same as
 * file_read. */
int file_check_writable(const char *path);

/* Whether both paths lead to the same file, or would if it existed. Always false for devices and pipes. */
bool file_is_same(const char *a, const char *b);

/* The name of `path` in messages. */
const char *file_display_name(const char *path);

#endif
