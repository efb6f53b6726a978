/* SPDX-License-Identifier: MIT
 * Planning around cores of several sizes beside each other, as if one were tried after the other: how a repair goes is
 * a matter of luck, and the first that reaches the limit ends it. Each round tries other cores than those before.
 */
#ifndef RONDO_PLAN_INTERVAL_DENSE_CORE_SIZES_H
#define RONDO_PLAN_INTERVAL_DENSE_CORE_SIZES_H

#include "plan/interval/dense_core.h"

typedef struct rondo_cores {
  const uint32_t *order; /* the part's boxes, the largest areas first */
  uint64_t round;        /* 0: of the fast path */
  uint64_t most_steps;   /* cores are cut short there, and then the round is of no account */
  uint64_t limit;        /* plans end there, or where their core does */
  uint64_t deadline_ns;  /* of rondo_clock_ns; 0: none */
  uint32_t threads;      /* the caller's included; fewer when the system gives no more */
} rondo_cores;

/* Improves the plan of a part, which has no alignments and no obstacles; one that is not much larger than a core stays
 * as it is. The peak never rises. *out_steps: what the cores up to the first that reached the limit took, at most
 * most_steps. Errors: OUT_OF_MEMORY; the plan is then as it was. */
RONDO_MUST_USE rondo_status rondo_cores_improve(const rondo_allocator *allocator, const rondo_cores *cores,
                                                const rondo_part *part, uint64_t *inout_offsets, uint64_t *inout_peak,
                                                uint64_t *out_steps);

#endif
