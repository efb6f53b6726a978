/* SPDX-License-Identifier: MIT
 * Timed runs, and how they and the memory of a compiled program are shown.
 */
#include "common/timed_runs.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/tool.h"

int run_times_create(run_times *times, size_t capacity) {
  *times = (run_times){0};
  if (samples_create(&times->host, capacity) && samples_create(&times->step, capacity)) return TOOL_OK;
  run_times_destroy(times);
  return tool_fail_memory("the times of %zu runs", capacity);
}

void run_times_destroy(run_times *times) {
  samples_destroy(&times->host);
  samples_destroy(&times->step);
}

rondo_status run_timed(rondo_compiled *compiled, run_function run, run_times *times) {
  const uint64_t begin = clock_ns();
  TOOL_TRY(run(compiled));
  const uint64_t queued = clock_ns();
  TOOL_TRY(rondo_compiled_synchronize(compiled));
  const uint64_t end = clock_ns();
  samples_add(&times->host, (double)(queued - begin) / 1e3);
  samples_add(&times->step, (double)(end - begin) / 1e3);
  return RONDO_OK;
}

void run_times_to_json(run_times *times, json *out, const char *name) {
  if (times->step.count == 0) {
    json_verbatim(out, name, "null");
    return;
  }
  json_begin_object(out, name);
  json_summary(out, "step_us", samples_summarize(&times->step));
  json_summary(out, "host_us", samples_summarize(&times->host));
  json_real(out, "seconds", times->seconds);
  json_end(out);
}

void run_times_print_head(const char *step) {
  printf("\n%-17s %30s   %30s   %9s\n", "", "host enqueues, us", step, "all");
}

void run_times_print(run_times *times, const char *name) {
  const summary host = samples_summarize(&times->host), step = samples_summarize(&times->step);
  printf("%-17s %8.2f (%8.2f to %8.2f)   %8.1f (%8.1f to %8.1f)   %7.2f s\n", name, host.median, host.minimum,
         host.maximum, step.median, step.minimum, step.maximum, times->seconds);
}

void memory_to_json(const rondo_compiled_info *info, json *out) {
  json_begin_object(out, "memory");
  json_integer(out, "lower_bound", info->lower_bound);
  json_integer(out, "planned", info->arena_bytes);
  json_integer(out, "sum", info->sum_bytes);
  json_integer(out, "straight", info->straight_bytes);
  json_integer(out, "order_peak", info->order_peak);
  json_integer(out, "program_peak", info->program_peak);
  json_integer(out, "states", info->state_bytes);
  json_integer(out, "host", info->host_bytes);
  json_end(out);
}

void memory_print(const rondo_compiled_info *info) {
  printf("\nmemory between operators: planned %" PRIu64 " B, lower bound %" PRIu64 " B, without sharing %" PRIu64
         " B; states %" PRIu64 " B; host memory for copies %" PRIu64 " B\n",
         info->arena_bytes, info->lower_bound, info->sum_bytes, info->state_bytes, info->host_bytes);
  printf("order of operators: results live at once %" PRIu64 " B, in the program's order %" PRIu64 " B\n",
         info->order_peak, info->program_peak);
}
