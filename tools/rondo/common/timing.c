/* SPDX-License-Identifier: MIT
 * Measured times. Room is taken before measuring, so that adding a sample costs a store.
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
  *set = (samples){.us = calloc(capacity, sizeof *set->us), .capacity = capacity};
  return set->us != NULL;
}

void samples_destroy(samples *set) {
  free(set->us);
  *set = (samples){0};
}

void samples_add(samples *set, double us) {
  if (!samples_are_full(set)) set->us[set->count++] = us;
}

bool samples_are_full(const samples *set) { return set->count == set->capacity; }

static int compare(const void *left, const void *right) {
  const double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

summary samples_summarize(samples *set) {
  if (set->count == 0) return (summary){0};
  qsort(set->us, set->count, sizeof *set->us, compare);
  const size_t middle = set->count / 2;
  const double median = set->count % 2 ? set->us[middle] : (set->us[middle - 1] + set->us[middle]) / 2;
  return (summary){.median = median,
                   .minimum = set->us[0],
                   .p95 = set->us[set->count * 95 / 100],
                   .maximum = set->us[set->count - 1]};
}
