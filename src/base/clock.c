/* SPDX-License-Identifier: MIT
 * CLOCK_MONOTONIC: the same clock in every thread, never goes back, and is read without a system call if the vDSO
 * supports it.
 */
#define _GNU_SOURCE
#include "base/clock.h"

#include <time.h>

uint64_t rondo_clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}
