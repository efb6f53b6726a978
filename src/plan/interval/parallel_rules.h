/* SPDX-License-Identifier: MIT
 * Placing the same boxes under several rules in parallel, as if they were tried one after the other: the first
 * rule that reaches the target ends it, else the lowest peak counts, the earlier one among equals.
 */
#ifndef RONDO_PLAN_INTERVAL_PARALLEL_RULES_H
#define RONDO_PLAN_INTERVAL_PARALLEL_RULES_H

#include "plan/interval/placer.h"

typedef struct rondo_rules_task {
  const rondo_rule *rules;
  size_t count;         /* at least 1 */
  uint64_t limit;       /* higher peaks are of no interest */
  uint64_t target;      /* a peak that is good enough */
  uint64_t deadline_ns; /* of rondo_clock_ns: no rule but the first begins after it; 0: none */
  uint32_t threads;     /* the caller's included; fewer when the system gives no more */
} rondo_rules_task;

/* The winner's number and peak; task->count: no rule kept to the limit. Its offsets are in the placer, which has the
 * boxes. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_rules_run(const rondo_allocator *allocator, const rondo_rules_task *task,
                                            rondo_placer *placer, size_t *out_winner, uint64_t *out_peak);

#endif
