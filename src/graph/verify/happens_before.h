/* SPDX-License-Identifier: MIT
 * Which nodes of a flattened graph come before others, for many pairs of nodes.
 *
 * The nodes are covered by chains: paths along edges, found greedily. The nodes of a chain are in the order of their
 * numbers. If there are few chains, each node has a clock: for every chain, how many of its nodes come before the node.
 * Then one comparison answers a pair (C. J. Fidge 1988, F. Mattern 1989; on a chain cover: H. V. Jagadish, ACM TODS 15
 * (1990)). If a graph is too wide for clocks, pairs are first shortened at nodes with a single predecessor or
 * successor. The remaining pairs are answered by bit masks that move along the edges, for 256 nodes at a time. Memory
 * is linear in the number of nodes in both cases.
 *
 * Nodes are numbered in a topological order, so a node can only come before nodes with higher numbers.
 */
#ifndef RONDO_GRAPH_VERIFY_HAPPENS_BEFORE_H
#define RONDO_GRAPH_VERIFY_HAPPENS_BEFORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"

/* The successors of node i are successors[successor_start[i] .. successor_start[i + 1]). */
typedef struct rondo_flat_edges {
  size_t node_count;
  const uint32_t *successor_start;
  const uint32_t *successors; /* may be NULL when there are no edges */
} rondo_flat_edges;

/* The question whether `before` comes before `after`. The other fields belong to the caller. */
typedef struct rondo_order_pair {
  uint32_t before, after;
  uint32_t subject, object;
  uint16_t kind;
  bool ordered; /* the answer */
} rondo_order_pair;

#define RONDO_ORDER_NONE UINT32_MAX       /* no node */
#define RONDO_ORDER_MANY (UINT32_MAX - 1) /* more than one */

typedef struct rondo_verify_order {
  const rondo_allocator *allocator;
  rondo_flat_edges edges;
  /* of each node: its chain, and its index there from 1. One block with only_predecessor and only_successor. NULL if
   * the edges are a single line */
  uint32_t *chain, *index;
  uint32_t *only_predecessor,
      *only_successor; /* the only direct predecessor and the only direct successor; or NONE, MANY */
  uint32_t chain_count;
  uint32_t *clocks; /* chain_count for each node; NULL if there is one chain or if there are too many */
} rondo_verify_order;

/* Whether the two are on one chain in this order, as in most pairs. */
static inline bool rondo_verify_order_on_chain(const rondo_verify_order *order, uint32_t before, uint32_t after) {
  return before < after && (order->chain_count == 1 || order->chain[before] == order->chain[after]);
}

/* Graphs with more than `widest` chains have no clocks (RONDO_ORDER_WIDEST except in tests). Free it after a failure
 * too. */
#define RONDO_ORDER_WIDEST 64
RONDO_MUST_USE rondo_status rondo_verify_order_make(const rondo_allocator *allocator, const rondo_flat_edges *edges,
                                                    uint32_t widest, rondo_verify_order *out);
void rondo_verify_order_free(rondo_verify_order *order);

/* Answers the pair and returns true if that is cheap. Else rondo_verify_order_check has to answer it. */
bool rondo_verify_order_decide(const rondo_verify_order *order, uint32_t before, uint32_t after, bool *out_ordered);

/* Answers all pairs. */
RONDO_MUST_USE rondo_status rondo_verify_order_check(const rondo_verify_order *order, rondo_order_pair *pairs,
                                                     size_t count);

#endif
