/* SPDX-License-Identifier: MIT
 * Timed work, such as the runs of a compiled program: how long the host takes to enqueue it, and how long until it is
 * complete. One thread at a time for each cost.
 */
#ifndef RONDO_TOOL_TIMED_RUNS_H
#define RONDO_TOOL_TIMED_RUNS_H

#include <rondo/rondo.h>

#include "common/json.h"
#include "common/timing.h"

/* The cost of work, in microseconds: the host's calls, the time until the work is complete, and optionally the time
 * between two events around it. */
enum { COST_HOST, COST_TOTAL, COST_DEVICE, COST_TIMES };

typedef struct cost {
  samples samples[COST_TIMES];
  summary result[COST_TIMES];
} cost;

/* Allocates `capacity` samples of host and total time for each of `count` costs. Returns TOOL_OK, or TOOL_FAILURE after
 * a message. */
int costs_create(cost *costs, size_t count, size_t capacity);
void costs_destroy(cost *costs, size_t count); /* may be zeroed */

/* Adds a sample from three clock values: before the calls, after them, and when the work is complete. */
void cost_add(cost *to, uint64_t begin, uint64_t enqueued, uint64_t end);

/* Times two statements: one enqueues work, one waits for it. `to` may be NULL for a warm-up. */
#define COST_TIME(to, enqueue, wait)                           \
  do {                                                         \
    const uint64_t begin_ = clock_ns();                        \
    enqueue;                                                   \
    const uint64_t enqueued_ = clock_ns();                     \
    wait;                                                      \
    const uint64_t end_ = clock_ns();                          \
    if ((to) != NULL) cost_add((to), begin_, enqueued_, end_); \
  } while (0)

/* Computes the results; sorts the samples. */
void costs_summarize(cost *costs, size_t count);

/* Writes host_us and total_us, into the open object or into a new object `name`. */
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

/* Writes the object `name` with step_us and host_us (each with _min and _max) and seconds; null if nothing ran. */
void run_times_to_json(run_times *times, json *out, const char *name);

/* Rows of a printed table. */
void run_times_print_head(const char *step);
void run_times_print(run_times *times, const char *name);

/* The lower bound, the plan and the sum of the memory between a compiled program's operators. */
void memory_to_json(const rondo_compiled_info *info, json *out);
void memory_print(const rondo_compiled_info *info);

#endif
