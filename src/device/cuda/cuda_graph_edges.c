/* SPDX-License-Identifier: MIT
 * Leaving nodes out: one after the other in topological order, each with the list of what it stands behind. A node
 * between several in front and several behind is kept, since edges from each to each would be more than those to it and
 * from it; so is one whose list is long, which many in a row would copy.
 */
#include "device/cuda/cuda_graph_edges.h"

#include "base/allocation.h"

#define LONGEST_LEFT_OUT 16

static void count_behind(const cuda_executable *executable, cuda_order *order) {
  const size_t edges = executable->predecessor_start[executable->count];
  for (size_t e = 0; e < edges; e++) order->ways[executable->predecessors[e]].behind++;
}

static rondo_status list_once(const rondo_allocator *allocator, cuda_order *order, uint32_t i, uint32_t before) {
  cuda_way *way = &order->ways[before];
  if (way->listed == i + 1) return RONDO_OK;
  way->listed = i + 1;
  order->ways[i].count++;
  return rondo_array_push(allocator, &order->before, &before);
}

/* What the node stands behind because of one that it depends on. */
static rondo_status list_behind(const rondo_allocator *allocator, cuda_order *order, uint32_t i, uint32_t predecessor) {
  const cuda_way way = order->ways[predecessor];
  if (!way.is_left_out) return list_once(allocator, order, i, predecessor);
  for (size_t k = 0; k < way.count; k++) RONDO_TRY(list_once(allocator, order, i, order->before.items[way.first + k]));
  return RONDO_OK;
}

/* Behind a single node that is left out, it has the list of that. */
static rondo_status list(const cuda_executable *executable, cuda_order *order, uint32_t i) {
  const uint32_t first = executable->predecessor_start[i], past = executable->predecessor_start[i + 1];
  const cuda_way *only = past - first == 1 ? &order->ways[executable->predecessors[first]] : NULL;
  cuda_way *way = &order->ways[i];
  way->first = order->before.count;
  if (only != NULL && only->is_left_out) {
    way->first = only->first;
    way->count = only->count;
    return RONDO_OK;
  }
  for (uint32_t e = first; e < past; e++)
    RONDO_TRY(list_behind(cuda_allocator_of(executable), order, i, executable->predecessors[e]));
  return RONDO_OK;
}

static bool is_order_alone(const cuda_node *node) {
  return node->kind == RONDO_NODE_EMPTY || node->kind == RONDO_NODE_ALLOC || node->kind == RONDO_NODE_FREE;
}

static bool can_be_left_out(const cuda_node *node, const cuda_way *way) {
  if (!is_order_alone(node)) return false;
  return way->count <= 1 || way->behind == 0 || (way->behind == 1 && way->count <= LONGEST_LEFT_OUT);
}

/* True when all nodes stay, each behind its predecessors; *out_most is the longest list of these. */
static bool is_plain(const cuda_executable *executable, size_t *out_most) {
  size_t most = 0;
  for (size_t i = 0; i < executable->count; i++) {
    const size_t count = executable->predecessor_start[i + 1] - executable->predecessor_start[i];
    if (is_order_alone(&executable->nodes[i])) return false;
    if (count > most) most = count;
  }
  *out_most = most;
  return true;
}

static rondo_status make_ways(const cuda_executable *executable, cuda_order *out) {
  const rondo_allocator *allocator = cuda_allocator_of(executable);
  const size_t count = out->node_count = executable->count;
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *out->ways, &out->ways));
  RONDO_TRY(rondo_array_reserve(allocator, &out->before, executable->predecessor_start[count]));
  count_behind(executable, out);
  for (uint32_t i = 0; i < count; i++) {
    cuda_way *way = &out->ways[i];
    RONDO_TRY(list(executable, out, i));
    way->is_left_out = can_be_left_out(&executable->nodes[i], way);
    if (!way->is_left_out && way->count > out->most) out->most = way->count;
  }
  return RONDO_OK;
}

rondo_status cuda_order_make(const cuda_executable *executable, cuda_order *out) {
  *out = (cuda_order){.executable = executable};
  return is_plain(executable, &out->most) ? RONDO_OK : make_ways(executable, out);
}

void cuda_order_free(const rondo_allocator *allocator, cuda_order *order) {
  rondo_array_free(allocator, &order->before);
  rondo_release(allocator, order->ways, order->node_count, sizeof *order->ways);
}

bool cuda_order_has_edge(const cuda_order *order, uint32_t from, uint32_t to) {
  size_t count;
  const uint32_t *before = cuda_order_before(order, to, &count);
  for (size_t i = 0; i < count; i++)
    if (before[i] == from) return true;
  return false;
}
