/* SPDX-License-Identifier: MIT
 * The clock, a bounded set of samples, and their summary: the only timing code of the tool and of bench/. C++ programs
 * of bench/ include it, too. One thread at a time for each set.
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

/* Microseconds, unless the owner says otherwise. A zeroed one is empty and has no capacity. */
typedef struct samples {
  double *values;
  size_t count, capacity;
} samples;

/* Returns false if out of memory. */
bool samples_create(samples *set, size_t capacity);
void samples_destroy(samples *set);

/* Ignores the value if the set is full. */
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
