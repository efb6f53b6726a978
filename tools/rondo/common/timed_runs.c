/* SPDX-License-Identifier: MIT
 * Timed runs, and how they and the memory of a compiled program are printed.
 */
#include "common/timed_runs.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/tool.h"

int costs_create(cost *costs, size_t count, size_t capacity) {
  for (size_t i = 0; i < count; i++)
    if (!samples_create(&costs[i].samples[COST_HOST], capacity) ||
        !samples_create(&costs[i].samples[COST_TOTAL], capacity))
      return tool_fail_memory("the times of %zu runs", capacity);
  return TOOL_OK;
}

void costs_destroy(cost *costs, size_t count) {
  for (size_t i = 0; i < count * COST_TIMES; i++) samples_destroy(&costs[i / COST_TIMES].samples[i % COST_TIMES]);
}

void cost_add(cost *to, uint64_t begin, uint64_t enqueued, uint64_t end) {
  samples_add(&to->samples[COST_HOST], (double)(enqueued - begin) / 1e3);
  samples_add(&to->samples[COST_TOTAL], (double)(end - begin) / 1e3);
}

void costs_summarize(cost *costs, size_t count) {
  for (size_t i = 0; i < count * COST_TIMES; i++)
    costs[i / COST_TIMES].result[i % COST_TIMES] = samples_summarize(&costs[i / COST_TIMES].samples[i % COST_TIMES]);
}

void cost_to_json(json *out, const cost *of) {
  json_summary(out, "host_us", of->result[COST_HOST]);
  json_summary(out, "total_us", of->result[COST_TOTAL]);
}

void cost_object_to_json(json *out, const char *name, const cost *of) {
  json_begin_object(out, name);
  cost_to_json(out, of);
  json_end(out);
}

rondo_status run_timed(rondo_compiled *compiled, run_function run, cost *to) {
  COST_TIME(to, TOOL_TRY(run(compiled)), TOOL_TRY(rondo_compiled_synchronize(compiled)));
  return RONDO_OK;
}

void run_times_to_json(run_times *times, json *out, const char *name) {
  if (times->cost.samples[COST_TOTAL].count == 0) {
    json_verbatim(out, name, "null");
    return;
  }
  costs_summarize(&times->cost, 1);
  json_begin_object(out, name);
  json_summary(out, "step_us", times->cost.result[COST_TOTAL]);
  json_summary(out, "host_us", times->cost.result[COST_HOST]);
  json_real(out, "seconds", times->seconds);
  json_end(out);
}

void run_times_print_head(const char *step) {
  printf("\n%-17s %30s   %30s   %9s\n", "", "host enqueues, us", step, "all");
}

void run_times_print(run_times *times, const char *name) {
  costs_summarize(&times->cost, 1);
  const summary host = times->cost.result[COST_HOST], step = times->cost.result[COST_TOTAL];
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
