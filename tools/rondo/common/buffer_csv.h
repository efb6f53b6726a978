/* SPDX-License-Identifier: MIT
 * Files of buffers with lifetimes, in the format of the MiniMalloc benchmark (M. D. Moffitt, "MiniMalloc: A Lightweight
 * Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS 2023): lines of comma-separated fields. The first
 * line names the columns id, lower, upper, size and, optionally, offset, in any order.
 *
 * A buffer of `size` bytes lives from time `lower` up to, but not including, time `upper`. Times are 64-bit numbers;
 * only their order counts. Ids are unique texts. Fields may be quoted as in RFC 4180, but may not contain line ends.
 * Blanks around fields, empty lines, CR LF and a byte order mark are accepted.
 */
#ifndef RONDO_TOOL_BUFFER_CSV_H
#define RONDO_TOOL_BUFFER_CSV_H

#include <rondo/plan.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/file.h"

typedef struct buffer_list {
  size_t count;
  const char **ids;       /* point into the file's bytes, or are generated */
  uint32_t *lines;        /* of each buffer, from 1 */
  rondo_plan_item *items; /* lifetimes are indices into `times` */
  uint64_t *times;        /* all distinct times, ascending */
  size_t time_count;
  bool has_offsets;
  size_t *offsets; /* from the file */
  file_bytes file;
} buffer_list;

/* Reads a file; "-" is standard input. Returns TOOL_OK, or TOOL_FAILURE after a message, with file and line. */
int buffer_list_read(const char *path, buffer_list *out);

/* Parses a file in memory, which ends in a NUL that is not counted. Takes ownership of the bytes, also after a failure.
 * Messages call the file `name`. */
int buffer_list_parse(const char *name, file_bytes file, buffer_list *out);
void buffer_list_release(buffer_list *list);

/* Checks that the file's offsets are a valid plan. Returns TOOL_OK, or TOOL_FAILURE after a message that names two
 * overlapping lines. */
int buffer_list_check_offsets(const char *path, const buffer_list *list);

/* Writes the buffers with these offsets in the same format, to a path or to an open stream. Returns the same as
 * buffer_list_read. */
int buffer_list_write(const char *path, const buffer_list *list, const size_t *offsets);
void buffer_list_print(FILE *stream, const buffer_list *list, const size_t *offsets);

#endif
