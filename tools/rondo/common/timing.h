/* SPDX-License-Identifier: MIT
 * Measured times: the clock, a bounded set of samples, and what is printed of them.
 */
#ifndef RONDO_TOOL_TIMING_H
#define RONDO_TOOL_TIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CLOCK_MONOTONIC. */
uint64_t clock_ns(void);
void clock_wait_until(uint64_t ns);

/* Times in microseconds. Zero is an empty set without room. */
typedef struct samples {
  double *us;
  size_t count, capacity;
} samples;

/* False when there is no memory. */
bool samples_create(samples *set, size_t capacity);
void samples_destroy(samples *set);

/* A full set takes no more. */
void samples_add(samples *set, double us);
bool samples_are_full(const samples *set);

typedef struct summary {
  double median, minimum, maximum; /* all 0 for an empty set */
} summary;

/* Sorts the set. */
summary samples_summarize(samples *set);

#endif
