/* SPDX-License-Identifier: MIT
 * Timed work: how long the host takes to enqueue it, and how long until it is complete. The runs of a compiled program
 * are such work. One thread at a time per cost.
 */
#ifndef RONDO_TOOL_TIMED_RUNS_H
#define RONDO_TOOL_TIMED_RUNS_H

#include <rondo/rondo.h>

#include "common/json.h"
#include "common/timing.h"

/* What work costs, in microseconds: the host's calls, the time until it is complete and, where it is measured, the time
 * between two events around it. */
enum { COST_HOST, COST_TOTAL, COST_DEVICE, COST_TIMES };

typedef struct cost {
  samples samples[COST_TIMES];
  summary result[COST_TIMES];
} cost;

/* Makes room for `capacity` samples of the host and in total in each of `count` costs. Returns TOOL_OK, or TOOL_FAILURE
 * after a message. */
int costs_create(cost *costs, size_t count, size_t capacity);
void costs_destroy(cost *costs, size_t count); /* zeroed ones are fine */

/* Adds a sample from three times of the clock: before the calls, after them, and when their work is complete. */
void cost_add(cost *to, uint64_t begin, uint64_t enqueued, uint64_t end);

/* Times two statements, which enqueue work and wait for it. `to` may be NULL, for a warm-up. */
#define COST_TIME(to, enqueue, wait)                           \
  do {                                                         \
    const uint64_t begin_ = clock_ns();                        \
    enqueue;                                                   \
    const uint64_t enqueued_ = clock_ns();                     \
    wait;                                                      \
    const uint64_t end_ = clock_ns();                          \
    if ((to) != NULL) cost_add((to), begin_, enqueued_, end_); \
  } while (0)

/* Sets the results, which sorts the samples. */
void costs_summarize(cost *costs, size_t count);

/* Writes host_us and total_us: into the open object, or as an object of that name. */
void cost_to_json(json *out, const cost *of);
void cost_object_to_json(json *out, const char *name, const cost *of);

/* rondo_compiled_run or rondo_compiled_run_eager. */
typedef rondo_status (*run_function)(rondo_compiled *compiled);

typedef struct run_times {
  cost cost;
  double seconds; /* of all runs */
} run_times;

/* Runs once and waits. */
rondo_status run_timed(rondo_compiled *compiled, run_function run, cost *to);

/* The object `name` with step_us, host_us (each with _min and _max) and seconds; null when there was no run. */
void run_times_to_json(run_times *times, json *out, const char *name);

/* Rows of a table for people. */
void run_times_print_head(const char *step);
void run_times_print(run_times *times, const char *name);

/* Lower bound, plan and sum of what a compiled program keeps between its operators. */
void memory_to_json(const rondo_compiled_info *info, json *out);
void memory_print(const rondo_compiled_info *info);

#endif
