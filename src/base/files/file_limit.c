/* SPDX-License-Identifier: MIT
 * The limit on the size of files. If the system call fails, which it cannot for valid arguments, there is no limit.
 */
#define _POSIX_C_SOURCE 200809L
#include "base/files/file_limit.h"

#include <sys/resource.h>

uint64_t rondo_file_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return limit.rlim_cur;
}

bool rondo_file_limit_forbids(uint64_t bytes) { return bytes > rondo_file_limit(); }
