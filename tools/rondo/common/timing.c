/* SPDX-License-Identifier: MIT
 * Measured times. Memory is allocated before measuring, so that adding a sample costs one store.
 */
#define _POSIX_C_SOURCE 200809L
#include "common/timing.h"

#include <stdlib.h>
#include <time.h>

uint64_t clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void clock_wait_until(uint64_t ns) {
  const struct timespec due = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
  while (clock_ns() < ns)
    if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == 0) break;
}

bool samples_create(samples *set, size_t capacity) {
  *set = (samples){.values = calloc(capacity, sizeof *set->values), .capacity = capacity};
  return set->values != NULL;
}

void samples_destroy(samples *set) {
  free(set->values);
  *set = (samples){0};
}

void samples_add(samples *set, double value) {
  if (!samples_are_full(set)) set->values[set->count++] = value;
}

bool samples_are_full(const samples *set) { return set->count == set->capacity; }

static int compare(const void *left, const void *right) {
  const double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

summary samples_summarize(samples *set) {
  if (set->count == 0) return (summary){0};
  qsort(set->values, set->count, sizeof *set->values, compare);
  const size_t middle = set->count / 2;
  const double median = set->count % 2 ? set->values[middle] : (set->values[middle - 1] + set->values[middle]) / 2;
  return (summary){.median = median,
                   .minimum = set->values[0],
                   .p95 = set->values[set->count * 95 / 100],
                   .maximum = set->values[set->count - 1]};
}
