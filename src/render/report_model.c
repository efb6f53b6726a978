/* SPDX-License-Identifier: MIT
 * Makes the model of a report. A walk through the graph and its children makes the list of entries and its edges. Then
 * times are looked up, and dynamic programming along the list computes depths and the critical path.
 */
#include "render/report_model.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/binary_search.h"
#include "base/error.h"
#include "graph/topological_order.h"

/* Walking ---------------------------------------------------------------------------------------------------------- */

static rondo_status walk_graph(rondo_report_model *m, uint32_t index);

static rondo_status add_node(rondo_report_model *m, uint32_t graph, uint32_t slot, bool runs, uint32_t *out_entry) {
  const rondo_report_node node = {.graph = graph, .slot = slot, .runs = runs};
  if (m->nodes.count >= RONDO_NO_NODE - 1)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                      "rondo_graph_report: the graph and its children have more than %zu nodes: report a part of it",
                      m->nodes.count);
  *out_entry = (uint32_t)m->nodes.count;
  return rondo_array_push(&m->allocator, &m->nodes, &node);
}

static rondo_status add_edge(rondo_report_model *m, uint32_t from, uint32_t to) {
  const rondo_report_edge edge = {from, to};
  return rondo_array_push(&m->allocator, &m->edges, &edge);
}

static rondo_status add_graph(rondo_report_model *m, const rondo_graph *graph, uint32_t parent, uint32_t parent_slot,
                              uint32_t *out_index) {
  rondo_report_graph made = {.graph = graph, .parent = parent, .parent_slot = parent_slot};
  const size_t slots = graph->nodes.count;
  if (parent == RONDO_NO_NODE)
    snprintf(made.prefix, sizeof made.prefix, "n");
  else
    snprintf(made.prefix, sizeof made.prefix, "%.*s%" PRIu32 "_", RONDO_REPORT_PREFIX_BYTES - 12,
             m->graphs.items[parent].prefix, parent_slot);
  *out_index = (uint32_t)m->graphs.count;
  RONDO_TRY(rondo_array_push(&m->allocator, &m->graphs, &made));
  rondo_report_graph *kept = &m->graphs.items[*out_index];
  RONDO_TRY(rondo_graph_order_in(graph, m->graphs.items[0].graph, &kept->order));
  RONDO_TRY(rondo_allocate_items(&m->allocator, slots, sizeof *kept->begin, &kept->begin));
  RONDO_TRY(rondo_allocate_items(&m->allocator, slots, sizeof *kept->end, &kept->end));
  return rondo_allocate_items(&m->allocator, slots, sizeof *kept->marks, &kept->marks);
}

/* Adds edges from the child node's begin to the roots of the child graph, and from its sinks to the node's end. */
static rondo_status tie_child(rondo_report_model *m, uint32_t index, uint32_t around_begin, uint32_t around_end) {
  const rondo_graph *graph = m->graphs.items[index].graph;
  bool is_empty = true;
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const rondo_graph_node *node = &graph->nodes.items[i];
    if (!node->live) continue;
    is_empty = false;
    if (node->dependencies.count == 0) RONDO_TRY(add_edge(m, around_begin, m->graphs.items[index].begin[i]));
    if (node->dependents.count == 0) RONDO_TRY(add_edge(m, m->graphs.items[index].end[i], around_end));
  }
  return is_empty ? add_edge(m, around_begin, around_end) : RONDO_OK;
}

static rondo_status walk_child(rondo_report_model *m, uint32_t index, uint32_t slot, const rondo_graph *child) {
  uint32_t inside, begin = m->graphs.items[index].begin[slot], end = RONDO_NO_NODE;
  RONDO_TRY(add_graph(m, child, index, slot, &inside));
  RONDO_TRY(walk_graph(m, inside));
  RONDO_TRY(add_node(m, index, slot, false, &end));
  m->graphs.items[index].end[slot] = end;
  return tie_child(m, inside, begin, end);
}

static rondo_status walk_node(rondo_report_model *m, uint32_t index, uint32_t slot) {
  const rondo_graph_node *node = rondo_graph_at(m->graphs.items[index].graph, slot);
  const bool is_child = node->params.kind == RONDO_NODE_CHILD;
  uint32_t entry = RONDO_NO_NODE;
  RONDO_TRY(add_node(m, index, slot, !is_child, &entry));
  rondo_report_graph *graph = &m->graphs.items[index];
  graph->begin[slot] = graph->end[slot] = entry;
  m->of_kind[node->params.kind]++;
  m->node_count++;
  m->edge_count += node->dependencies.count;
  for (size_t i = 0; i < node->dependencies.count; i++)
    RONDO_TRY(add_edge(m, graph->end[node->dependencies.items[i]], entry));
  return is_child ? walk_child(m, index, slot, node->params.as.child) : RONDO_OK;
}

static rondo_status walk_graph(rondo_report_model *m, uint32_t index) {
  const uint32_t count = m->graphs.items[index].graph->live_count;
  for (uint32_t i = 0; i < count; i++) RONDO_TRY(walk_node(m, index, m->graphs.items[index].order[i]));
  return RONDO_OK;
}

static int compare_edges(const void *left, const void *right) {
  const rondo_report_edge *a = left, *b = right;
  if (a->from != b->from) return a->from < b->from ? -1 : 1;
  return (a->to > b->to) - (a->to < b->to);
}

/* Times ------------------------------------------------------------------------------------------------------------ */

rondo_status rondo_report_find(const rondo_report_model *m, const char *what, rondo_node node, uint32_t *out_entry) {
  const uint32_t serial = (uint32_t)(node.id >> 32), slot = (uint32_t)node.id;
  for (size_t i = 0; i < m->graphs.count; i++) {
    const rondo_report_graph *graph = &m->graphs.items[i];
    if (graph->graph->serial != serial) continue;
    if (slot >= graph->graph->nodes.count || !graph->graph->nodes.items[slot].live) break;
    *out_entry = graph->begin[slot];
    return RONDO_OK;
  }
  return rondo_fail_node(RONDO_INVALID_ARGUMENT, RONDO_REASON_UNKNOWN_NODE, node.id == 0 ? RONDO_NO_NODE : slot,
                         "rondo_graph_report: %s names node %" PRIu32
                         ", which is in neither the graph nor a child graph of it",
                         what, slot);
}

static rondo_status note_times(rondo_report_model *m) {
  for (size_t i = 0; i < m->options->time_count; i++) {
    const rondo_node_time *time = &m->options->times[i];
    uint32_t entry = RONDO_NO_NODE;
    RONDO_TRY(rondo_report_find(m, "a time", time->node, &entry));
    rondo_report_node *node = &m->nodes.items[entry];
    if (!node->runs || !(time->microseconds >= 0)) continue;
    node->timed = true;
    node->us = time->microseconds;
    m->total_us += node->us;
    if (node->us > m->longest_us) m->longest_us = node->us;
    m->timed = true;
  }
  return RONDO_OK;
}

/* Paths ------------------------------------------------------------------------------------------------------------ */

/* The longest path to the end of each entry. */
typedef struct longest {
  double *us;
  uint32_t *before; /* the previous entry on it; RONDO_NO_NODE: none */
} longest;

/* The length that the entry adds to a path: its time, or 1 without times. */
static double cost_of(const rondo_report_model *m, const rondo_report_node *node) {
  if (!node->runs) return 0;
  return m->timed ? node->us : 1;
}

/* Visits the entries in order. Before an entry is visited, `paths` has the longest path of its predecessors. */
static void find_paths(rondo_report_model *m, const longest *paths) {
  size_t edge = 0;
  for (uint32_t i = 0; i < m->nodes.count; i++) {
    rondo_report_node *node = &m->nodes.items[i];
    node->depth += node->runs;
    paths->us[i] += cost_of(m, node);
    for (; edge < m->edges.count && m->edges.items[edge].from == i; edge++) {
      const uint32_t to = m->edges.items[edge].to;
      if (m->nodes.items[to].depth < node->depth) m->nodes.items[to].depth = node->depth;
      if (paths->before[to] != RONDO_NO_NODE && paths->us[to] >= paths->us[i]) continue;
      paths->us[to] = paths->us[i];
      paths->before[to] = i;
    }
    if (node->depth > m->depth) m->depth = node->depth;
  }
}

/* Finds the end of the longest path, and counts the nodes on it. RONDO_NO_NODE: there are no entries. */
static uint32_t find_critical(rondo_report_model *m, const longest *paths) {
  uint32_t last = m->nodes.count == 0 ? RONDO_NO_NODE : 0;
  for (uint32_t i = 0; i < m->nodes.count; i++)
    if (paths->us[i] > paths->us[last]) last = i;
  if (last != RONDO_NO_NODE) m->critical_us = paths->us[last];
  for (uint32_t at = last; at != RONDO_NO_NODE; at = paths->before[at]) m->critical_count += m->nodes.items[at].runs;
  return last;
}

static void mark_critical(rondo_report_model *m, const longest *paths, uint32_t last) {
  uint32_t after = RONDO_NO_NODE;
  for (uint32_t at = last; at != RONDO_NO_NODE; at = paths->before[at]) {
    const rondo_report_node *node = &m->nodes.items[at];
    rondo_drawing_mark *mark = &m->graphs.items[node->graph].marks[node->slot];
    const bool same = after != RONDO_NO_NODE && m->nodes.items[after].graph == node->graph;
    if (!mark->critical) mark->next_critical = same ? m->nodes.items[after].slot : RONDO_NO_NODE;
    mark->critical = true;
    after = at;
  }
}

static rondo_status find_width(rondo_report_model *m) {
  uint32_t *nodes_at;
  const size_t depths = (size_t)m->depth + 1;
  RONDO_TRY(rondo_allocate_items(&m->allocator, depths, sizeof *nodes_at, &nodes_at));
  for (size_t i = 0; i < m->nodes.count; i++) {
    const rondo_report_node *node = &m->nodes.items[i];
    if (node->runs && ++nodes_at[node->depth] > m->width) m->width = nodes_at[node->depth];
  }
  rondo_release(&m->allocator, nodes_at, depths, sizeof *nodes_at);
  return RONDO_OK;
}

static rondo_status measure_paths(rondo_report_model *m) {
  const size_t count = m->nodes.count;
  longest paths = {0};
  rondo_status status = rondo_allocate_items(&m->allocator, count, sizeof *paths.us, &paths.us);
  if (status == RONDO_OK) status = rondo_allocate_items(&m->allocator, count, sizeof *paths.before, &paths.before);
  if (status == RONDO_OK) {
    for (size_t i = 0; i < count; i++) paths.before[i] = RONDO_NO_NODE;
    find_paths(m, &paths);
    const uint32_t last = find_critical(m, &paths);
    if (m->critical_count < m->node_count - m->of_kind[RONDO_NODE_CHILD]) mark_critical(m, &paths, last);
    status = find_width(m);
  }
  rondo_release(&m->allocator, paths.before, count, sizeof *paths.before);
  rondo_release(&m->allocator, paths.us, count, sizeof *paths.us);
  return status;
}

const char *rondo_report_time_text(char out[RONDO_REPORT_TIME_TEXT], double us, int ms_decimals) {
  const char *value = us >= 1000 ? RONDO_FIXED(us / 1000, ms_decimals) : RONDO_FIXED(us, 1);
  snprintf(out, RONDO_REPORT_TIME_TEXT, "%.24s %s", value, us >= 1000 ? "ms" : "\xC2\xB5s");
  return out;
}

static void mark_times(rondo_report_model *m) {
  for (size_t i = 0; i < m->nodes.count; i++) {
    const rondo_report_node *node = &m->nodes.items[i];
    rondo_drawing_mark *mark = &m->graphs.items[node->graph].marks[node->slot];
    if (!node->timed) continue;
    if (m->longest_us > 0) mark->share = node->us / m->longest_us;
    rondo_report_time_text(mark->time, node->us, 1);
  }
}

/* Memory ----------------------------------------------------------------------------------------------------------- */

static rondo_status add_allocation(rondo_report_model *m, uint32_t entry) {
  const rondo_node_params *params = rondo_report_params(m, entry);
  const rondo_report_allocation made = {.name = params->as.alloc.name,
                                        .address = params->as.alloc.address,
                                        .bytes = params->as.alloc.bytes,
                                        .alloc = entry,
                                        .free = RONDO_NO_NODE};
  return rondo_array_push(&m->allocator, &m->allocations, &made);
}

static int compare_allocations(const void *left, const void *right) {
  const rondo_report_allocation *a = left, *b = right;
  if (a->address != b->address) return (uintptr_t)a->address < (uintptr_t)b->address ? -1 : 1;
  return (a->alloc > b->alloc) - (a->alloc < b->alloc);
}

static void sort_allocations(rondo_report_model *m) {
  if (m->allocations.count > 1)
    qsort(m->allocations.items, m->allocations.count, sizeof *m->allocations.items, compare_allocations);
}

static bool is_before(const rondo_report_allocation *a, const void *address, uint32_t entry) {
  return (uintptr_t)a->address < (uintptr_t)address || (a->address == address && a->alloc < entry);
}

/* The last allocation at the address that comes before the entry, or NULL. Allocations are sorted. */
static rondo_report_allocation *find_allocation(const rondo_report_model *m, const void *address, uint32_t entry) {
  size_t low = 0, high = m->allocations.count;
  RONDO_BINARY_SEARCH(low, high, middle, is_before(&m->allocations.items[middle], address, entry))
  if (low == 0 || m->allocations.items[low - 1].address != address) return NULL;
  return &m->allocations.items[low - 1];
}

static rondo_status pair_allocations(rondo_report_model *m) {
  for (uint32_t i = 0; i < m->nodes.count; i++)
    if (m->nodes.items[i].runs && rondo_report_params(m, i)->kind == RONDO_NODE_ALLOC) RONDO_TRY(add_allocation(m, i));
  sort_allocations(m);
  for (uint32_t i = 0; i < m->nodes.count; i++) {
    const rondo_node_params *params = rondo_report_params(m, i);
    if (!m->nodes.items[i].runs || params->kind != RONDO_NODE_FREE || params->as.free_address == NULL) continue;
    rondo_report_allocation *of = find_allocation(m, params->as.free_address, i);
    if (of != NULL && of->free == RONDO_NO_NODE) of->free = i;
  }
  return RONDO_OK;
}

static rondo_status add_ranges(rondo_report_model *m) {
  for (size_t i = 0; i < m->options->range_count; i++) {
    const rondo_report_range *range = &m->options->ranges[i];
    rondo_report_allocation made = {.name = range->name == NULL ? "" : range->name,
                                    .address = range->address,
                                    .bytes = range->bytes,
                                    .is_range = true};
    uint32_t last;
    RONDO_TRY(rondo_report_find(m, "a range", range->first, &made.alloc));
    RONDO_TRY(rondo_report_find(m, "a range", range->last, &last));
    made.free = m->graphs.items[m->nodes.items[last].graph].end[m->nodes.items[last].slot];
    if (made.free < made.alloc)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                        "rondo_graph_report: range %zu, '%s', is from node %" PRIu32 " to node %" PRIu32
                        ", which runs earlier: exchange the two",
                        i, made.name, rondo_node_number(range->first), rondo_node_number(range->last));
    RONDO_TRY(rondo_array_push(&m->allocator, &m->allocations, &made));
  }
  sort_allocations(m);
  return RONDO_OK;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

/* Asserts the invariant of a model: edges go forward in the list and are sorted, and each node that runs is counted. */
static void check(const rondo_report_model *m) {
#ifdef NDEBUG
  (void)m;
#else
  size_t runs = 0;
  for (size_t i = 0; i < m->edges.count; i++) {
    assert(m->edges.items[i].from < m->edges.items[i].to && m->edges.items[i].to < m->nodes.count);
    assert(i == 0 || m->edges.items[i - 1].from <= m->edges.items[i].from);
  }
  for (size_t i = 0; i < m->nodes.count; i++) {
    assert(m->nodes.items[i].graph < m->graphs.count);
    runs += m->nodes.items[i].runs;
  }
  assert(runs == m->node_count - m->of_kind[RONDO_NODE_CHILD]);
#endif
}

static rondo_status make(const rondo_graph *graph, rondo_report_model *m) {
  uint32_t index;
  RONDO_TRY(add_graph(m, graph, RONDO_NO_NODE, RONDO_NO_NODE, &index));
  RONDO_TRY(walk_graph(m, index));
  if (m->edges.count > 1) qsort(m->edges.items, m->edges.count, sizeof *m->edges.items, compare_edges);
  check(m);
  RONDO_TRY(note_times(m));
  RONDO_TRY(measure_paths(m));
  mark_times(m);
  RONDO_TRY(pair_allocations(m));
  return add_ranges(m);
}

rondo_status rondo_report_model_make(const rondo_graph *graph, const rondo_report_options *options,
                                     rondo_report_model *out) {
  *out = (rondo_report_model){.allocator = graph->allocator, .options = options};
  return make(graph, out);
}

void rondo_report_model_free(rondo_report_model *m) {
  for (size_t i = 0; i < m->graphs.count; i++) {
    const rondo_report_graph *graph = &m->graphs.items[i];
    const size_t slots = graph->graph->nodes.count;
    rondo_release(&graph->graph->allocator, graph->order, graph->graph->live_count, sizeof *graph->order);
    rondo_release(&m->allocator, graph->begin, slots, sizeof *graph->begin);
    rondo_release(&m->allocator, graph->end, slots, sizeof *graph->end);
    rondo_release(&m->allocator, graph->marks, slots, sizeof *graph->marks);
  }
  rondo_array_free(&m->allocator, &m->graphs);
  rondo_array_free(&m->allocator, &m->nodes);
  rondo_array_free(&m->allocator, &m->edges);
  rondo_array_free(&m->allocator, &m->allocations);
}
