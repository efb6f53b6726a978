/* SPDX-License-Identifier: MIT
 * The order of a bench's steps; and costs.
 */
#include "bench/bench_steps.h"

#include "common/tool.h"

int bench_steps_run(const bench_steps *steps, void *bench, bool is_json) {
  int result = steps->prepare(bench);
  if (result == TOOL_OK) result = steps->measure(bench);
  if (result == TOOL_OK) result = is_json ? steps->show_json(bench) : steps->show_text(bench);
  const int taken_down = steps->take_down(bench);
  return result == TOOL_OK ? taken_down : result;
}

bool costs_create(cost *costs, size_t count, size_t rounds) {
  for (size_t i = 0; i < count * COST_TIMES; i++) {
    if (!samples_create(&costs[i / COST_TIMES].samples[i % COST_TIMES], rounds)) return false;
  }
  return true;
}

void costs_destroy(cost *costs, size_t count) {
  for (size_t i = 0; i < count * COST_TIMES; i++) samples_destroy(&costs[i / COST_TIMES].samples[i % COST_TIMES]);
}

void cost_note(cost *to, uint64_t begin, uint64_t queued, uint64_t end) {
  samples_add(&to->samples[COST_HOST], (double)(queued - begin) / 1e3);
  samples_add(&to->samples[COST_TOTAL], (double)(end - begin) / 1e3);
}

void costs_summarize(cost *costs, size_t count) {
  for (size_t i = 0; i < count; i++) {
    for (size_t t = 0; t < COST_TIMES; t++) costs[i].result[t] = samples_summarize(&costs[i].samples[t]);
  }
}

void cost_to_json(json *out, const cost *of) {
  json_summary(out, "host_us", of->result[COST_HOST]);
  json_summary(out, "total_us", of->result[COST_TOTAL]);
}
