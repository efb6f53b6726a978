/* SPDX-License-Identifier: MIT
 * The one way to write a file. A new file is written beside its place and takes it once it is whole and on the disk, so
 * that at any time, whatever stops the process or the machine, the place holds the old file or the new one. Symbolic
 * links are followed. What is no regular file (a pipe, a device, /dev/stdout) is written directly.
 *
 * The writer holds a lock (flock) on its temporary file. A temporary file that nobody has locked belongs to a process
 * that ended; the next writer of the same file removes it. Threads: any; one thread at a time per replacement.
 */
#ifndef RONDO_BASE_FILE_REPLACEMENT_H
#define RONDO_BASE_FILE_REPLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rondo/files.h>

#include "base/error.h"

#define RONDO_PATH_BYTES 4096 /* the kernel's limit, with the NUL */

typedef struct rondo_file_replacement {
  int file;        /* open for writing; a regular file for reading too */
  bool is_direct;  /* no regular file; `temporary` is empty */
  bool has_old;    /* a file is there already */
  mode_t old_mode; /* here and below: of that file */
  uid_t old_user;
  gid_t old_group;
  uint64_t written;                 /* bytes so far */
  char path[RONDO_PATH_BYTES];      /* of the place, behind symbolic links */
  char temporary[RONDO_PATH_BYTES]; /* in the same folder; "" when there is none, or none any more */
} rondo_file_replacement;

/* Opens the temporary file. Errors of all calls: IO_ERROR with errno. Messages do not name the path, which the caller
 * puts before them. */
RONDO_MUST_USE rondo_status rondo_file_replacement_begin(const char *path, rondo_file_replacement *out);

RONDO_MUST_USE rondo_status rondo_file_replacement_write(rondo_file_replacement *replacement, const void *bytes,
                                                         size_t count);

/* Puts what was written so far in its place. The file stays open. */
RONDO_MUST_USE rondo_status rondo_file_replacement_place(rondo_file_replacement *replacement);

/* Ends a replacement that was begun: places the file when `status`, that of the writing, is RONDO_OK and it is not in
 * its place yet; else removes the temporary file. Closes the file. Returns `status` or what went wrong here. */
RONDO_MUST_USE rondo_status rondo_file_replacement_end(rondo_file_replacement *replacement, rondo_status status);

#endif
