/* SPDX-License-Identifier: MIT
 * The process's limit on the size of files (RLIMIT_FSIZE, `ulimit -f`). The kernel applies it to memfd files and shared
 * memory too, and sends SIGXFSZ, which ends the process, to a thread that exceeds it. So callers check before a file
 * grows. Threads: any.
 */
#ifndef RONDO_BASE_FILES_FILE_LIMIT_H
#define RONDO_BASE_FILES_FILE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* The largest size of a file in bytes; UINT64_MAX: no limit. */
uint64_t rondo_file_limit(void);

/* Whether a file of this size would pass the limit. */
bool rondo_file_limit_forbids(uint64_t bytes);

#endif
