/* SPDX-License-Identifier: MIT
 * Runs of a compiled program, timed: what it costs the host to hand one over, and how long it takes until it is done.
 */
#ifndef RONDO_TOOL_TIMED_RUNS_H
#define RONDO_TOOL_TIMED_RUNS_H

#include <rondo/rondo.h>

#include "common/json.h"
#include "common/timing.h"

/* rondo_compiled_run or rondo_compiled_run_unrecorded. */
typedef rondo_status (*run_function)(rondo_compiled *compiled);

typedef struct run_times {
  samples host; /* of the call that queues a run */
  samples step; /* from that call until the run is done and waited for */
  double seconds;
} run_times;

/* Room for `capacity` runs. Returns TOOL_OK, or TOOL_FAILURE after a message. */
int run_times_create(run_times *times, size_t capacity);
void run_times_destroy(run_times *times);

/* Runs once and waits. */
rondo_status run_timed(rondo_compiled *compiled, run_function run, run_times *times);

/* The object `name` with step_us, host_us (each with _min and _max) and seconds; null when there was no run. */
void run_times_to_json(run_times *times, json *out, const char *name);

/* Rows of a table for people. */
void run_times_print_head(const char *step);
void run_times_print(run_times *times, const char *name);

/* Lower bound, plan and sum of what a compiled program keeps between its operators. */
void memory_to_json(const rondo_compiled_info *info, json *out);
void memory_print(const rondo_compiled_info *info);

#endif
