/* SPDX-License-Identifier: MIT
 * A file that is written beside its place and takes it once it is whole and on the disk, so that at any time, whatever
 * stops the process or the machine, the place holds the old file or the new one.
 */
#ifndef RONDO_TENSOR_FILE_REPLACEMENT_H
#define RONDO_TENSOR_FILE_REPLACEMENT_H

#include "base/allocation.h"
#include "base/error.h"

typedef struct rondo_file_replacement {
  rondo_allocator allocator;
  const char *path; /* the caller's */
  char *temporary;
  int file;
} rondo_file_replacement;

/* Makes the temporary file, with the permissions of the file that it is to replace. Errors of all: IO_ERROR with errno,
 * OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_file_replacement_begin(const rondo_allocator *allocator, const char *path,
                                                         rondo_file_replacement *out);

RONDO_MUST_USE rondo_status rondo_file_replacement_write(const rondo_file_replacement *replacement, const void *bytes,
                                                         size_t count);

/* Ends a replacement that was begun: puts the file in its place when `status`, that of the writing, is RONDO_OK, else
 * takes it away. Returns `status` or what went wrong here. */
RONDO_MUST_USE rondo_status rondo_file_replacement_end(rondo_file_replacement *replacement, rondo_status status);

#endif
