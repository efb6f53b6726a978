/* SPDX-License-Identifier: MIT
 * The one way to write a file. A new file is written to a temporary file in the same folder, and renamed when it is
 * complete and on the disk. So the path always names the old file or the complete new one, even after a crash. Symbolic
 * links are followed. A file that is not regular (a pipe, a device, /dev/stdout) is written directly.
 *
 * The writer holds a lock (flock) on its temporary file. A temporary file without a lock belongs to a process that
 * ended; the next writer of the same file removes it. Threads: any; one thread at a time per replacement.
 */
#ifndef RONDO_BASE_FILES_FILE_REPLACEMENT_H
#define RONDO_BASE_FILES_FILE_REPLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rondo/files.h>

#include "base/component.h"
#include "base/error.h"

#define RONDO_PATH_BYTES 4096 /* the kernel's limit, with the NUL */

typedef struct rondo_file_replacement {
  int file;        /* open for writing; a regular file for reading too */
  bool is_direct;  /* not a regular file; `temporary` is empty */
  bool has_old;    /* a file exists already */
  mode_t old_mode; /* here and below: of that file */
  uid_t old_user;
  gid_t old_group;
  uint64_t written;                 /* bytes so far */
  char path[RONDO_PATH_BYTES];      /* of the file, after following symbolic links */
  char temporary[RONDO_PATH_BYTES]; /* in the same folder; "" if there is none */
} rondo_file_replacement;

/* Opens the temporary file. Errors of all calls: IO_ERROR with errno. Messages do not name the path: the caller adds
 * it. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_file_replacement_begin(const char *path, rondo_file_replacement *out);

RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_file_replacement_write(rondo_file_replacement *replacement,
                                                                       const void *bytes, size_t count);

/* Replaces the old file with what was written so far. The file stays open for writing. */
RONDO_MUST_USE rondo_status rondo_file_replacement_place(rondo_file_replacement *replacement);

/* Ends a replacement. If `status`, the result of the writing, is RONDO_OK, replaces the old file, unless
 * rondo_file_replacement_place did; else removes the temporary file. Closes the file. Returns `status` or the failure
 * of this call. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_file_replacement_end(rondo_file_replacement *replacement,
                                                                     rondo_status status);

#endif
