/* SPDX-License-Identifier: MIT
 * Files of buffers with their lifetimes, as the MiniMalloc benchmark has them (M. D. Moffitt, "MiniMalloc: A
 * Lightweight Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS 2023): lines of comma-separated
 * fields under a line with their names, id,lower,upper,size and perhaps offset, in any order.
 *
 * A buffer of `size` bytes lives from time `lower` up to, but not including, time `upper`; times are any numbers of 64
 * bits, of which only the order counts. Ids are texts, each once. Fields may be quoted as in RFC 4180, but for line
 * ends; blanks around fields, empty lines, CR LF and a byte order mark are taken.
 */
#ifndef RONDO_TOOL_BUFFER_CSV_H
#define RONDO_TOOL_BUFFER_CSV_H

#include <rondo/plan.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/file.h"

typedef struct buffer_list {
  size_t count;
  const char **ids;       /* in the file's bytes, or a name for it */
  uint32_t *lines;        /* where each stands, from 1 */
  rondo_plan_item *items; /* lifetimes as places in `times` */
  uint64_t *times;        /* all that occur, ascending, each once */
  size_t time_count;
  bool has_offsets;
  size_t *offsets; /* as the file gives them */
  file_bytes file;
} buffer_list;

/* Reads a file; "-" is standard input. Returns TOOL_OK, or TOOL_FAILURE after a message, with file and line. */
int buffer_list_read(const char *path, buffer_list *out);

/* The same of bytes at hand, which end in a NUL that does not count; the list owns them, after a failure they are gone.
 * Messages name them `name`. */
int buffer_list_parse(const char *name, file_bytes file, buffer_list *out);
void buffer_list_release(buffer_list *list);

/* Proves that the file's own offsets are a plan. Returns TOOL_OK, or TOOL_FAILURE having named the two lines. */
int buffer_list_check_offsets(const char *path, const buffer_list *list);

/* Writes the buffers with these offsets as a file of the same form, or to an open one. Returns as buffer_list_read. */
int buffer_list_write(const char *path, const buffer_list *list, const size_t *offsets);
void buffer_list_print(FILE *stream, const buffer_list *list, const size_t *offsets);

#endif
