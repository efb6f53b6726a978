/* SPDX-License-Identifier: MIT
 * Regular files, mapped to be read. The pages belong to the system's page cache: they take memory only while they are
 * used, and rondo_file_mapping_drop releases them early. A mapping keeps the file's data if the file is replaced or
 * deleted, but not if it is truncated: then reading the missing part raises SIGBUS.
 *
 * Any number of threads may read a mapping.
 */
#ifndef RONDO_BASE_FILES_FILE_MAPPING_H
#define RONDO_BASE_FILES_FILE_MAPPING_H

#include <stddef.h>

#include <rondo/status.h>

#include "base/component.h"

typedef struct rondo_file_mapping {
  unsigned char *bytes; /* NULL for an empty file */
  size_t count;
} rondo_file_mapping;

/* Errors: NOT_FOUND; IO_ERROR with errno, also if it is not a regular file; OUT_OF_MEMORY if the process has no address
 * space left. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_file_map(const char *path, rondo_file_mapping *out);
/* A zeroed mapping is allowed. */
RONDO_PRIVATE void rondo_file_unmap(rondo_file_mapping *mapping);

/* Releases the pages that hold `count` bytes from `at` on; a later read loads them from the file again. Does nothing if
 * `at` is not in the mapping. */
RONDO_PRIVATE void rondo_file_mapping_drop(const rondo_file_mapping *mapping, const void *at, size_t count);

#endif
