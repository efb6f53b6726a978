/* SPDX-License-Identifier: MIT
 * The monotonic clock, in nanoseconds.
 */
#ifndef RONDO_BASE_CLOCK_H
#define RONDO_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/component.h"

RONDO_PRIVATE uint64_t rondo_clock_ns(void);

/* Whether the deadline has passed. A deadline of 0 never passes. */
static inline bool rondo_clock_is_past(uint64_t deadline_ns) {
  return deadline_ns != 0 && rondo_clock_ns() >= deadline_ns;
}

#endif
