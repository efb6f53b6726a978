/* SPDX-License-Identifier: MIT
 * The clock, a bounded set of samples, and their summary: the one timing library of the tool and of bench/, whose
 * programs in C++ include it too. A set has one thread at a time.
 */
#ifndef RONDO_TOOL_TIMING_H
#define RONDO_TOOL_TIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* CLOCK_MONOTONIC. */
uint64_t clock_ns(void);
void clock_wait_until(uint64_t ns);

/* Microseconds, unless the owner says otherwise. Zero is an empty set without room. */
typedef struct samples {
  double *values;
  size_t count, capacity;
} samples;

/* False when there is no memory. */
bool samples_create(samples *set, size_t capacity);
void samples_destroy(samples *set);

/* A full set takes no more. */
void samples_add(samples *set, double value);
bool samples_are_full(const samples *set);

typedef struct summary {
  double median, minimum, p95, maximum; /* all 0 for an empty set */
} summary;

/* Sorts the set. */
summary samples_summarize(samples *set);

#ifdef __cplusplus
}
#endif

#endif
