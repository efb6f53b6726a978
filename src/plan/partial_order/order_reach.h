/* SPDX-License-Identifier: MIT
 * Whether one node of a DAG comes before another, asked in bulk: questions are collected and answered 256 nodes at a
 * time, by propagating bits along the edges. Knows nothing of chains: what is proved with it does not rest on them.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_REACH_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_REACH_H

#include <rondo/plan.h>

#include "base/allocation.h"

typedef struct rondo_reach_question {
  uint32_t from, to; /* is there a path of at least one edge? */
  uint32_t number;   /* the asker's, or what both directions of one pair have in common */
  bool answer;
} rondo_reach_question;

/* Sorts the questions by `from` and fills in the answers. Work: for every 256 nodes asked about, the nodes and edges
 * between the first of them and the last `to`. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_reach_answer(const rondo_allocator *allocator, const rondo_plan_order *order,
                                               rondo_reach_question *questions, size_t count);

#endif
