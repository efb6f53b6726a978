/* SPDX-License-Identifier: MIT
 * Planning the core first. Where nearly as many bytes are live as the lower bound has, few boxes live, and only there a
 * plan has no bytes to lose. So these boxes are planned for themselves, without those that would be in their way; the
 * rest of a plan is kept as far as the core leaves it alone, and repaired around it, where there is room.
 */
#ifndef RONDO_PLAN_INTERVAL_DENSE_CORE_H
#define RONDO_PLAN_INTERVAL_DENSE_CORE_H

#include "plan/interval/plan_parts.h"

typedef struct rondo_core {
  uint32_t boxes;       /* about so many of the most crowded are the core */
  uint32_t repairs;     /* at most; each has more room above the bound than the one before */
  uint64_t steps;       /* for planning the core */
  uint64_t seed;        /* of that */
  uint64_t effort;      /* of a repair: scans at most, in halves of the overlaps of the part's boxes */
  uint64_t limit;       /* a plan ends there, or where the core does */
  uint64_t deadline_ns; /* of rondo_clock_ns; 0: none */
  uint64_t most_steps;  /* in all: it is cut short there */
} rondo_core;

/* What a core took, and the least `most_steps` with which it would not have been cut short: more than it had, if it
 * was. Up to there it does the same with any. */
typedef struct rondo_core_cost {
  uint64_t steps, needed;
} rondo_core_cost;

/* Improves the plan of a part, which has no alignments and no obstacles. order: its boxes, the largest areas first.
 * The peak never rises. Errors: OUT_OF_MEMORY; the plan is then as it was. */
RONDO_MUST_USE rondo_status rondo_core_improve(const rondo_allocator *allocator, const rondo_core *core,
                                               const rondo_part *part, const uint32_t *order, uint64_t *inout_offsets,
                                               uint64_t *inout_peak, rondo_core_cost *out_cost);

/* Plans around cores of several sizes at once, with the result of one after another: whether a repair succeeds is hard
 * to foresee, and the first that reaches the limit ends it. Each round tries other sizes than those before. */
typedef struct rondo_cores {
  uint64_t round;       /* 0: of the fast path */
  uint64_t most_steps;  /* cores are cut short there, and then the round is of no account */
  uint64_t limit;       /* plans end there, or where their core does */
  uint64_t deadline_ns; /* of rondo_clock_ns; 0: none */
  uint32_t threads;     /* the caller's included; fewer when the system gives no more */
} rondo_cores;

/* Improves the plan of a part, which has no alignments and no obstacles; one that is not much larger than a core stays
 * as it is. The peak never rises. *out_steps: what the cores up to the first that reached the limit took, at most
 * most_steps. Errors: OUT_OF_MEMORY; the plan is then as it was. */
RONDO_MUST_USE rondo_status rondo_cores_improve(const rondo_allocator *allocator, const rondo_cores *cores,
                                                const rondo_part *part, uint64_t *inout_offsets, uint64_t *inout_peak,
                                                uint64_t *out_steps);

#endif
