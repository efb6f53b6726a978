/* SPDX-License-Identifier: MIT
 * Who comes before whom in a flattened graph, for many pairs of nodes.
 *
 * The nodes are covered by chains: paths along edges, found greedily. A chain's own nodes are in the order of their
 * numbers. While there are few chains each node carries a clock, which says for every chain how many of its nodes come
 * before, so that one comparison answers a pair (C. J. Fidge 1988, F. Mattern 1989; on a chain cover: H. V. Jagadish,
 * ACM TODS 15 (1990)). Where a graph is too wide for that, pairs are first shortened by nodes with a single way in or
 * out, and what is left is carried along the edges in masks, 256 nodes at a time. Either way memory is linear in the
 * nodes.
 *
 * Nodes are numbered in a topological order, so a node can only come before those with a higher number.
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

/* Whether `before` comes before `after`. The other fields belong to the caller. */
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
  uint32_t *chain, *place;    /* of each node: its chain, and its index there from 1; one block with the ways */
  uint32_t *way_in, *way_out; /* the only node before and after it: NONE, MANY or that */
  uint32_t chain_count;
  uint32_t *clocks; /* chain_count for each node; NULL for a single chain, and if there are too many */
} rondo_verify_order;

/* Most pairs are of one chain. */
static inline bool rondo_verify_order_on_chain(const rondo_verify_order *order, uint32_t before, uint32_t after) {
  return before < after && order->chain[before] == order->chain[after];
}

/* `widest`: more chains than this have no clocks (RONDO_ORDER_WIDEST but in tests). Freed also after a failure. */
#define RONDO_ORDER_WIDEST 64
RONDO_MUST_USE rondo_status rondo_verify_order_make(const rondo_allocator *allocator, const rondo_flat_edges *edges,
                                                    uint32_t widest, rondo_verify_order *out);
void rondo_verify_order_free(rondo_verify_order *order);

/* Answers the pair if that is cheap; false if it needs rondo_verify_order_check. */
bool rondo_verify_order_decide(const rondo_verify_order *order, uint32_t before, uint32_t after, bool *out_ordered);

/* Answers all pairs. */
RONDO_MUST_USE rondo_status rondo_verify_order_check(const rondo_verify_order *order, rondo_order_pair *pairs,
                                                     size_t count);

#endif
