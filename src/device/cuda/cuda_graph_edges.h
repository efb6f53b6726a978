/* SPDX-License-Identifier: MIT
 * What stands behind what in the driver's graph of an executable. Nodes that are order alone (empty ones, allocs and
 * frees) are each a call of the driver and one more node to instantiate. So they are left out where edges between what
 * is in front of them and what is behind them can stand for them without becoming more. The order of all other nodes is
 * the same.
 *
 * Threads: the executable's owner, while it is built.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_GRAPH_EDGES_H
#define RONDO_DEVICE_CUDA_CUDA_GRAPH_EDGES_H

#include "base/array.h"
#include "device/cuda/cuda_executable.h"

/* One node. It stands behind before[first .. first + count), and so does what depends on it when it is left out. */
typedef struct cuda_way {
  size_t first;
  uint32_t count;
  uint32_t behind; /* nodes that depend on it */
  uint32_t listed; /* the last list that it is in, as the number of its node plus 1 */
  bool is_left_out;
} cuda_way;

typedef struct cuda_order {
  const cuda_executable *executable;
  cuda_way *ways;               /* of each node; NULL when none is order alone: each stands behind its predecessors */
  RONDO_ARRAY(uint32_t) before; /* nodes that are not left out */
  size_t node_count;            /* of ways */
  size_t most;                  /* nodes that one which is not left out stands behind */
} cuda_order;

/* Of executable->nodes and predecessors. Free it on failure too. */
RONDO_MUST_USE rondo_status cuda_order_make(const cuda_executable *executable, cuda_order *out);
void cuda_order_free(const rondo_allocator *allocator, cuda_order *order);

/* What the node stands behind, *out_count of them; or what depends on it, when it is left out. */
static inline const uint32_t *cuda_order_before(const cuda_order *order, size_t node, size_t *out_count) {
  const cuda_executable *executable = order->executable;
  if (order->ways == NULL) {
    *out_count = executable->predecessor_start[node + 1] - executable->predecessor_start[node];
    return *out_count == 0 ? NULL : executable->predecessors + executable->predecessor_start[node];
  }
  *out_count = order->ways[node].count;
  return *out_count == 0 ? NULL : order->before.items + order->ways[node].first;
}

static inline bool cuda_order_leaves_out(const cuda_order *order, size_t node) {
  return order->ways != NULL && order->ways[node].is_left_out;
}

/* Whether the one stands right behind the other; neither is left out. */
bool cuda_order_has_edge(const cuda_order *order, uint32_t from, uint32_t to);

#endif
