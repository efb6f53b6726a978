/* SPDX-License-Identifier: MIT
 * Making the driver's graph of an executable's nodes, and instantiating it.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_GRAPH_BUILD_H
#define RONDO_DEVICE_CUDA_CUDA_GRAPH_BUILD_H

#include "base/array.h"
#include "device/cuda/cuda_executable.h"

/* Nodes that only order others (empty nodes, allocs and frees) each cost a call of the driver and one more node to
 * instantiate. They are left out where edges between the nodes before and after them can replace them without
 * increasing the number of edges. The order of all other nodes is the same. */

/* The order of one node. It comes after before[first .. first + count). If it is left out, its successors come after
 * these. */
typedef struct cuda_node_order {
  size_t first;
  uint32_t count;
  uint32_t successors;
  uint32_t listed; /* the last node whose list it is in, plus 1 */
  bool is_left_out;
} cuda_node_order;

typedef struct cuda_order {
  const cuda_executable *executable;
  /* for each node; NULL if no node only orders others: then each node comes after its predecessors */
  cuda_node_order *nodes;
  RONDO_ARRAY(uint32_t) before; /* nodes that are not left out */
  size_t node_count;            /* length of `nodes` */
  size_t most;                  /* the length of the longest list of a node that is not left out */
} cuda_order;

/* Made from executable->nodes and predecessors. Nothing is left out of an exported graph. Free it after a failure too.
 */
RONDO_MUST_USE rondo_status cuda_order_make(const cuda_executable *executable, cuda_order *out);
void cuda_order_free(const rondo_allocator *allocator, cuda_order *order);

/* The *out_count nodes that the node comes after; or, if it is left out, that its successors come after. */
static inline const uint32_t *cuda_order_before(const cuda_order *order, size_t node, size_t *out_count) {
  const cuda_executable *executable = order->executable;
  if (order->nodes == NULL) {
    *out_count = executable->predecessor_start[node + 1] - executable->predecessor_start[node];
    return *out_count == 0 ? NULL : executable->predecessors + executable->predecessor_start[node];
  }
  *out_count = order->nodes[node].count;
  return *out_count == 0 ? NULL : order->before.items + order->nodes[node].first;
}

static inline bool cuda_order_leaves_out(const cuda_order *order, size_t node) {
  return order->nodes != NULL && order->nodes[node].is_left_out;
}

/* Whether `to` comes directly after `from`. Neither is left out. */
bool cuda_order_has_edge(const cuda_order *order, uint32_t from, uint32_t to);

/* Makes a graph of the executable's nodes and edges; the handles of their parts go to `handles`. In the device's
 * context. After a failure, too, *out may have to be destroyed. */
RONDO_MUST_USE rondo_status cuda_build_graph(cuda_executable *executable, cu_graph *out, cu_graph_node *handles);

/* Makes and instantiates such a graph, or the captured one for bound nodes. Nothing is left on failure. */
RONDO_MUST_USE rondo_status cuda_build(cuda_executable *executable, cuda_built *out, cu_graph_node *handles);

/* Builds the executable again from its nodes as they are now. In the device's context. */
RONDO_MUST_USE rondo_status cuda_executable_rebuild(cuda_executable *executable);

/* Calls `make` while placeholder memory is mapped for the copies and captured fills of the executable
 * (cuda_placeholders), so that the driver takes their addresses for memory of a device. */
RONDO_MUST_USE rondo_status cuda_with_placeholders(cuda_executable *executable,
                                                   rondo_status (*make)(cuda_executable *executable, void *user),
                                                   void *user);
void cuda_built_free(const cuda_executable *executable, cuda_built *built);

/* Instantiates built->graph. Errors: what the driver says, with the node that it names; handles may be NULL. */
RONDO_MUST_USE rondo_status cuda_instantiate(cuda_executable *executable, cuda_built *built,
                                             const cu_graph_node *handles);

#endif
