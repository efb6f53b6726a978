/* SPDX-License-Identifier: MIT
 * What every bench does once its options are read, and the times that calls take, with and without waiting for their
 * work.
 */
#ifndef RONDO_TOOL_BENCH_STEPS_H
#define RONDO_TOOL_BENCH_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/json.h"
#include "common/timing.h"

/* Of a bench's own state. Each returns TOOL_OK, or TOOL_FAILURE having said why. */
typedef struct bench_steps {
  int (*prepare)(void *bench);
  int (*measure)(void *bench);
  int (*show_json)(const void *bench);
  int (*show_text)(const void *bench);
  int (*take_down)(void *bench); /* however far the others came */
} bench_steps;

int bench_steps_run(const bench_steps *steps, void *bench, bool is_json);

/* Of the calls, and until the work is done. */
enum { COST_HOST, COST_TOTAL, COST_TIMES };

typedef struct cost {
  samples samples[COST_TIMES];
  summary result[COST_TIMES];
} cost;

/* Room for so many rounds in each of `count` costs; false when there is no memory. */
bool costs_create(cost *costs, size_t count, size_t rounds);
void costs_destroy(cost *costs, size_t count);

/* Times of the clock: the calls begin, have been made, and their work is done. */
void cost_note(cost *to, uint64_t begin, uint64_t queued, uint64_t end);

/* Sets the results. */
void costs_summarize(cost *costs, size_t count);

/* host_us and total_us. */
void cost_to_json(json *out, const cost *of);

#endif
