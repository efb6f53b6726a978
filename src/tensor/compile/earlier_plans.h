/* SPDX-License-Identifier: MIT
 * What earlier compilations decided that does not depend on sizes: the order of operations, which of them are joined,
 * and how values lie above each other in the arena. So a program of the same structure in other sizes, such as another
 * batch size, is planned without a search (rondo_plan_options.start). Plans are found by their structure; the oldest
 * are dropped beyond a limit of bytes. Thread-compatible.
 */
#ifndef RONDO_TENSOR_COMPILE_EARLIER_PLANS_H
#define RONDO_TENSOR_COMPILE_EARLIER_PLANS_H

#include <stdint.h>

#include "base/array.h"
#include "tensor/compile/operator_edges.h"

#define RONDO_EARLIER_PLANS_BYTES ((size_t)16 << 20)

/* The words of a structure (tensor/compile/program_structure.h), which are compared. */
typedef RONDO_ARRAY(uint32_t) rondo_structure;

/* What was decided. Gaps are peaks divided by lower bounds. */
typedef struct rondo_earlier_plan {
  rondo_structure structure;
  uint32_t positions;
  uint32_t *order, *joined; /* by position, as in rondo_schedule, */
  rondo_edges before;       /* and so are these */
  size_t count;             /* of arena items */
  size_t *offsets;          /* in the plan for the order */
  size_t *branch_offsets;   /* in the plan for branches; NULL: there are none */
  uint32_t width;           /* of the branches, or the narrowest that was tried */
  bool ended_early;         /* as in rondo_layout */
  double gap, branch_gap;
} rondo_earlier_plan;

typedef struct rondo_earlier_plans {
  rondo_allocator allocator;
  RONDO_ARRAY(rondo_earlier_plan) items; /* the oldest first */
  size_t bytes;
} rondo_earlier_plans;

void rondo_earlier_plans_free(rondo_earlier_plans *plans);

/* NULL: none. Valid until the next is kept. */
const rondo_earlier_plan *rondo_earlier_plans_find(const rondo_earlier_plans *plans, const rondo_structure *structure);

/* Takes what the plan has, by the allocator of the plans, also on failure. Replaces one of the same structure.
 * Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_earlier_plans_keep(rondo_earlier_plans *plans, rondo_earlier_plan *plan);

/* Frees what the plan has. */
void rondo_earlier_plan_free(const rondo_allocator *allocator, rondo_earlier_plan *plan);

#endif
