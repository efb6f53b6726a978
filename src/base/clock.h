/* SPDX-License-Identifier: MIT
 * The monotonic clock, in nanoseconds.
 */
#ifndef RONDO_BASE_CLOCK_H
#define RONDO_BASE_CLOCK_H

#include <stdint.h>

uint64_t rondo_clock_ns(void);

#endif
