/* SPDX-License-Identifier: MIT
 * Bytes to read from any place of: a file, or memory. Reading past the end is an error of the caller; a file that got
 * shorter since it was opened is told as TRUNCATED.
 */
#ifndef RONDO_TENSOR_BYTE_SOURCE_H
#define RONDO_TENSOR_BYTE_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include <rondo/status.h>

typedef struct rondo_byte_source {
  const unsigned char *bytes; /* NULL: a file */
  int file;
  uint64_t count;
} rondo_byte_source;

/* NOT_FOUND or IO_ERROR with errno; also for what is no regular file. */
RONDO_MUST_USE rondo_status rondo_byte_source_open(const char *path, rondo_byte_source *out);
void rondo_byte_source_close(rondo_byte_source *source);

RONDO_MUST_USE rondo_status rondo_byte_source_read(const rondo_byte_source *source, uint64_t offset, void *to,
                                                   size_t count);

#endif
