/* SPDX-License-Identifier: MIT
 * Plans the dense core first. Where nearly as many bytes are live as the lower bound, few boxes live, and only there a
 * plan cannot afford to lose bytes. So these boxes are planned by themselves. The rest of an existing plan is kept as
 * far as it does not overlap the core, and repaired around it.
 */
#ifndef RONDO_PLAN_INTERVAL_DENSE_CORE_H
#define RONDO_PLAN_INTERVAL_DENSE_CORE_H

#include "plan/interval/plan_parts.h"

typedef struct rondo_core {
  uint32_t boxes;       /* about how many of the most crowded boxes are the core */
  uint32_t repairs;     /* at most; each has more space above the bound than the one before */
  uint64_t steps;       /* for planning the core */
  uint64_t seed;        /* of the search in the core */
  uint64_t effort;      /* of a repair: the maximum number of scans, in halves of the overlaps of the part's boxes */
  uint64_t limit;       /* a good enough peak; the core's own peak may be higher */
  uint64_t deadline_ns; /* of rondo_clock_ns; 0: none */
  uint64_t most_steps;  /* in all: after these it is cut short */
} rondo_core;

/* The steps that a core took, and the smallest `most_steps` with which it is not cut short. If it was cut short,
 * `needed` is more than it had. With `needed` or more, the result is always the same. */
typedef struct rondo_core_cost {
  uint64_t steps, needed;
} rondo_core_cost;

/* Improves the plan of a part without alignments and obstacles. `order` lists its boxes, the largest areas first. The
 * peak never rises. Errors: OUT_OF_MEMORY; the plan is then unchanged. */
RONDO_MUST_USE rondo_status rondo_core_improve(const rondo_allocator *allocator, const rondo_core *core,
                                               const rondo_part *part, const uint32_t *order, uint64_t *inout_offsets,
                                               uint64_t *inout_peak, rondo_core_cost *out_cost);

/* Plans around cores of several sizes in parallel, with the result of one thread: it is hard to foresee whether a
 * repair succeeds, and the first that reaches the limit ends the round. Each round tries other sizes. */
typedef struct rondo_cores {
  uint64_t round;       /* 0: the first of the fast path */
  uint64_t most_steps;  /* if they do not suffice, the round does not count */
  uint64_t limit;       /* a good enough peak; a core's own peak may be higher */
  uint64_t deadline_ns; /* of rondo_clock_ns; 0: none */
  uint32_t threads;     /* the caller's included; fewer if the system does not allow more */
} rondo_cores;

/* Improves the plan of a part without alignments and obstacles, unless it is too small. The peak never rises.
 * *out_steps: the steps of the cores up to the first that reached the limit, at most most_steps. Errors: OUT_OF_MEMORY;
 * the plan is then unchanged. */
RONDO_MUST_USE rondo_status rondo_cores_improve(const rondo_allocator *allocator, const rondo_cores *cores,
                                                const rondo_part *part, uint64_t *inout_offsets, uint64_t *inout_peak,
                                                uint64_t *out_steps);

#endif
