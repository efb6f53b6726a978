/* SPDX-License-Identifier: MIT
 * What <math.h> has functions for in libm, which the core does not link.
 */
#ifndef RONDO_BASE_NUMBERS_REAL_H
#define RONDO_BASE_NUMBERS_REAL_H

#include <stdint.h>

/* As fmax and fmin: of a number and a NaN, the number. */
static inline double rondo_fmax(double a, double b) { return a >= b || b != b ? a : b; }
static inline double rondo_fmin(double a, double b) { return a <= b || b != b ? a : b; }

/* The next whole number, of 0 to 2^63. */
static inline uint64_t rondo_ceil(double value) {
  const uint64_t whole = (uint64_t)value;
  return (double)whole < value ? whole + 1 : whole;
}

#endif
