/* SPDX-License-Identifier: MIT
 * Asserts the invariants of an exec. Debug builds do that when it is created, updated, or gets a patch set, but not for
 * a launch.
 *
 * Threads: as the exec.
 */
#include "exec/launch/exec_check.h"

#ifndef NDEBUG

#include <assert.h>

#include "base/binary_search.h"
#include "exec/patch/patch.h"
#include "graph/graph_check.h"

/* Lowerings -------------------------------------------------------------------------------------------------------- */

static bool has_successor(const rondo_lowering *lowering, uint32_t from, uint32_t to) {
  const uint32_t *items = &lowering->successors[lowering->successor_start[from]]; /* they ascend */
  const uint32_t count = lowering->successor_start[from + 1] - lowering->successor_start[from];
  uint32_t at = 0, end = count;
  RONDO_BINARY_SEARCH(at, end, middle, items[middle] < to)
  return at < count && items[at] == to;
}

/* Asserts that every node comes after all nodes that it depends on. */
static void check_order(const rondo_lowering *lowering) {
  const uint32_t nodes = (uint32_t)lowering->nodes.count;
  const uint32_t *start = lowering->predecessor_start.items, *next = lowering->successor_start;
  assert(lowering->predecessor_start.count == nodes + (size_t)1);
  assert(start[0] == 0 && start[nodes] == lowering->predecessors.count);
  assert(next[0] == 0 && next[nodes] == lowering->predecessors.count);
  for (uint32_t to = 0; to < nodes; to++) {
    assert(start[to] <= start[to + 1] && next[to] <= next[to + 1]);
    for (uint32_t e = start[to]; e < start[to + 1]; e++) assert(lowering->predecessors.items[e] < to);
    for (uint32_t e = next[to]; e < next[to + 1]; e++) assert(lowering->successors[e] > to);
    if (start[to] < start[to + 1]) assert(has_successor(lowering, lowering->predecessors.items[start[to]], to));
  }
  for (size_t i = 0; i < lowering->programmatic.count; i++) {
    const rondo_lowered_edge *edge = &lowering->programmatic.items[i];
    assert(edge->from < edge->to && edge->to < nodes);
    assert(!edge->orders || has_successor(lowering, edge->from, edge->to));
  }
}

/* Asserts that a lowered node has the parameters of its node in the clone, and that its tag maps to its index. */
static void check_node(const rondo_lowering *lowering, uint32_t index) {
  const rondo_lowered_origin *origin = &lowering->origins.items[index];
  const rondo_lowered_node *lowered = &lowering->nodes.items[index];
  const rondo_graph_node *node = rondo_graph_at(origin->graph, origin->slot);
  assert(lowered->params == &node->params);
  assert(lowered->captured == node->captured);
  assert(lowered->device == rondo_graph_node_device(origin->graph, node));
  assert(node->params.kind != RONDO_NODE_CHILD);
  assert(lowered->event == NULL || rondo_node_names_event(&node->params));
  assert(rondo_lowering_find(lowering, origin->tag) == index);
}

void rondo_lowering_check(const rondo_lowering *lowering) {
  size_t joins = 0;
  assert(lowering->root != NULL);
  assert(lowering->origins.count == lowering->nodes.count);
  check_order(lowering);
  for (uint32_t index = 0; index < lowering->nodes.count; index++) {
    const bool is_join = lowering->origins.items[index].graph == NULL;
    joins += is_join;
    if (is_join)
      assert(lowering->nodes.items[index].params->kind == RONDO_NODE_EMPTY);
    else
      check_node(lowering, index);
  }
  assert(joins == lowering->join_count);
  for (size_t i = 1; i < lowering->graphs.count; i++)
    assert(lowering->graphs.items[i - 1].serial <= lowering->graphs.items[i].serial);
}

/* Execs ------------------------------------------------------------------------------------------------------------ */

static void check_records(const rondo_exec *exec) {
  size_t records = 0;
  for (size_t index = 0; index < exec->lowering.nodes.count; index++)
    records += rondo_exec_params(exec, index)->kind == RONDO_NODE_EVENT_RECORD;
  assert(records == exec->records.count);
  for (size_t i = 0; i < records; i++) {
    assert(rondo_exec_params(exec, exec->records.items[i])->kind == RONDO_NODE_EVENT_RECORD);
    assert(i == 0 || exec->records.items[i - 1] < exec->records.items[i]);
  }
}

static void check_disabled(const rondo_exec *exec) {
  size_t disabled = 0;
  for (size_t index = 0; index < exec->lowering.nodes.count; index++) {
    const rondo_node_kind kind = rondo_exec_params(exec, index)->kind;
    if (!exec->disabled[index]) continue;
    assert(kind == RONDO_NODE_KERNEL || kind == RONDO_NODE_COPY || kind == RONDO_NODE_FILL);
    disabled++;
  }
  assert(disabled == exec->disabled_count);
}

void rondo_exec_check(const rondo_exec *exec) {
  assert(exec->executable != NULL && exec->graph->device == exec->device);
  assert(exec->graph->hold.object == NULL); /* the device does not count the clone as a graph */
  assert(exec->lowering.root == (exec->placed != NULL ? exec->placed : exec->graph));
  assert(exec->placed != NULL || (exec->relocation == NULL && exec->random == NULL));
  assert(exec->heap == NULL || exec->memory != NULL);
  assert(exec->has_extras == (exec->memory != NULL || exec->records.count > 0 || exec->random != NULL || exec->broken));
  assert(!exec->owns_nodes || !rondo_graph_shares_nodes(exec->graph));
  assert(exec->placed == NULL || !rondo_graph_shares_nodes(exec->placed));
  rondo_graph_check(exec->graph);
  if (exec->placed != NULL) rondo_graph_check(exec->placed);
  rondo_lowering_check(&exec->lowering);
  check_records(exec);
  check_disabled(exec);
  rondo_patch_sets_check(exec);
}

#endif
