/* SPDX-License-Identifier: MIT
 * A row of numbers, all 0 at first, of which ranges are raised to at least a value, and the greatest of a range is
 * asked for; each in the logarithm of its length.
 */
#ifndef RONDO_PLAN_RANGE_PEAKS_H
#define RONDO_PLAN_RANGE_PEAKS_H

#include "base/allocation.h"

typedef struct rondo_range_peaks {
  struct rondo_range_peak *nodes;
  uint32_t leaves; /* a power of two */
} rondo_range_peaks;

/* Errors: OUT_OF_MEMORY; *out can be freed either way. */
RONDO_MUST_USE rondo_status rondo_range_peaks_make(const rondo_allocator *allocator, uint32_t length,
                                                   rondo_range_peaks *out);
void rondo_range_peaks_free(const rondo_allocator *allocator, rondo_range_peaks *peaks);

/* All are 0 again. */
void rondo_range_peaks_clear(rondo_range_peaks *peaks);

/* Entries begin..end - 1, which may be none. */
void rondo_range_peaks_raise(rondo_range_peaks *peaks, uint32_t begin, uint32_t end, size_t value);
size_t rondo_range_peaks_most(const rondo_range_peaks *peaks, uint32_t begin, uint32_t end); /* 0 when none */

#endif
