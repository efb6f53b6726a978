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

/* Writes a text as rondo_file_write does. Returns as file_read. */
int file_write(const char *path, const char *text);

/* Finds out whether file_write could write `path`, before the work whose result goes there. Returns as file_read. */
int file_check_writable(const char *path);

/* Whether both paths lead to the same file, or would if it existed. Never true of devices and pipes. */
bool file_is_same(const char *a, const char *b);

/* The name that messages use for `path`. */
const char *file_display_name(const char *path);

#endif
