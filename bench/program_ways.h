/* SPDX-License-Identifier: MIT
 * Compiled programs that compute the same in several ways, timed in alternation.
 */
#ifndef RONDO_BENCH_PROGRAM_WAYS_H
#define RONDO_BENCH_PROGRAM_WAYS_H

#include "bench/benchmark.h"
#include "bench_check.h"
#include "measure.h"

enum { WAY_SAMPLES = 4000, WAY_NAME = 80 };

/* Nanoseconds of a run, until it is complete. */
static inline double bench_time_run(rondo_compiled *compiled) {
  const uint64_t start = clock_ns();
  check(rondo_compiled_run(compiled));
  check(rondo_compiled_synchronize(compiled));
  return (double)(clock_ns() - start);
}

/* A way that is measured under a name. */
typedef struct program_way {
  rondo_compiled *compiled;
  char name[WAY_NAME];
  samples times;
} program_way;

/* Runs all ways in each round, after one run of each, and reports their times. */
static inline void bench_measure_ways(program_way *ways, size_t count) {
  const double budget = 8e-3 * (double)bench_setting("BENCH_BUDGET_MS", 150);
  for (size_t i = 0; i < count; i++) {
    ways[i].times = bench_samples(WAY_SAMPLES);
    (void)bench_time_run(ways[i].compiled);
  }
  for (rounds r = rounds_begin(budget, 5, WAY_SAMPLES); rounds_next(&r);)
    for (size_t i = 0; i < count; i++) samples_add(&ways[i].times, bench_time_run(ways[i].compiled));
  for (size_t i = 0; i < count; i++) bench_report_value(ways[i].name, "ns", &ways[i].times);
}

#endif
