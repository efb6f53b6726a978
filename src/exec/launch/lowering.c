/* SPDX-License-Identifier: MIT
 * Lowering walks through a graph in topological order, and through a child graph when it gets to the child node. So a
 * node is appended after all nodes that it depends on.
 */
#include "exec/launch/lowering.h"

#include <stdlib.h>
#include <string.h>

#include "base/tasks/task_graph.h"
#include "exec/stream/stream_internal.h"
#include "graph/edges.h"
#include "graph/node_name.h"
#include "graph/topological_order.h"

/* A range of the pool: nodes on which a later node depends. */
typedef struct ends {
  size_t first, count;
} ends;

typedef struct graph_walker {
  rondo_lowering *lowering;
  bool keeps_children; /* CHILD nodes are appended like others */
  const rondo_allocator *allocator;
  RONDO_ARRAY(uint32_t) pool; /* indices, in ranges */
} graph_walker;

/* One of the graphs, while it is walked. A successor of a node depends on its index or, for a child node, its ends. */
typedef struct graph_level {
  rondo_graph *graph;
  ends around;       /* the predecessors of its roots */
  uint32_t *indices; /* by slot */
  ends *ends_of;     /* by slot, for child nodes; NULL before the first one */
  uint32_t number;   /* of the outermost child node that contains the graph; RONDO_NO_NODE for the outermost graph */
  const char *inside;
} graph_level;

static const rondo_node_params join_params = {.kind = RONDO_NODE_EMPTY, .name = ""};

/* Appending ------------------------------------------------------------------------------------------------------- */

static rondo_status fail_too_many(const rondo_lowering *lowering) {
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                    "a graph of more than %zu nodes with its children cannot be instantiated: split it",
                    lowering->nodes.count);
}

/* The caller fills the node and its origin, and adds the edges to the node, next. */
static inline rondo_status append(graph_walker *walker, uint32_t *out_index) {
  rondo_lowering *lowering = walker->lowering;
  const size_t index = lowering->nodes.count;
  if (index >= RONDO_INDEX_CHILD) return fail_too_many(lowering);
  RONDO_TRY(rondo_array_reserve(walker->allocator, &lowering->predecessor_start, index + 1));
  RONDO_TRY(rondo_array_reserve(walker->allocator, &lowering->origins, index + 1));
  RONDO_TRY(rondo_array_reserve(walker->allocator, &lowering->nodes, index + 1));
  lowering->predecessor_start.items[index] = (uint32_t)lowering->predecessors.count;
  lowering->predecessor_start.count = lowering->origins.count = lowering->nodes.count = index + 1;
  *out_index = (uint32_t)index;
  return RONDO_OK;
}

/* Adds edges from all nodes of a range to the last node. */
static rondo_status link_run(graph_walker *walker, ends from) {
  rondo_lowering *lowering = walker->lowering;
  if (lowering->predecessors.count + from.count > UINT32_MAX)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                      "a graph of more than %zu edges with its children cannot be instantiated: split it",
                      lowering->predecessors.count);
  for (size_t i = 0; i < from.count; i++) {
    const uint32_t end = walker->pool.items[from.first + i];
    RONDO_TRY(rondo_array_push(walker->allocator, &lowering->predecessors, &end));
  }
  return RONDO_OK;
}

/* Adds edges from kernels, which are in the list, for the programmatic edges that order. */
static rondo_status link_promised(graph_walker *walker, const graph_level *level, uint32_t slot) {
  size_t count;
  const rondo_programmatic_edge *edges = rondo_graph_programmatic_to(level->graph, slot, &count);
  for (size_t i = 0; i < count; i++)
    if (edges[i].orders)
      RONDO_TRY(rondo_array_push(walker->allocator, &walker->lowering->predecessors, &level->indices[edges[i].from]));
  return RONDO_OK;
}

/* Adds edges from the dependencies, nodes of the same graph, to the last node. */
static rondo_status link_dependencies(graph_walker *walker, const graph_level *level, const rondo_slots *dependencies) {
  if (dependencies->count == 0) return link_run(walker, level->around);
  for (size_t i = 0; i < dependencies->count; i++) {
    const uint32_t slot = dependencies->items[i], from = level->indices[slot];
    const bool is_child = from == RONDO_INDEX_CHILD;
    RONDO_TRY(is_child ? link_run(walker, level->ends_of[slot])
                       : rondo_array_push(walker->allocator, &walker->lowering->predecessors, &from));
  }
  return RONDO_OK;
}

/* Appends an empty node that replaces all of `from` as a dependency. */
static rondo_status join(graph_walker *walker, ends from, ends *out) {
  rondo_lowering *lowering = walker->lowering;
  uint32_t at = RONDO_NO_NODE;
  RONDO_TRY(append(walker, &at));
  lowering->nodes.items[at] =
      (rondo_lowered_node){.params = &join_params, .where = {.number = RONDO_NO_NODE, .own = RONDO_NO_NODE}};
  lowering->origins.items[at] = (rondo_lowered_origin){.slot = RONDO_NO_NODE};
  RONDO_TRY(link_run(walker, from));
  lowering->join_count++;
  *out = (ends){.first = walker->pool.count, .count = 1};
  return rondo_array_push(walker->allocator, &walker->pool, &at);
}

/* Appends to the pool the nodes on which a successor of this node depends. */
static rondo_status gather_ends(graph_walker *walker, const graph_level *level, uint32_t slot) {
  const bool is_child = level->indices[slot] == RONDO_INDEX_CHILD;
  const ends run = is_child ? level->ends_of[slot] : (ends){.count = 1};
  for (size_t i = 0; i < run.count; i++) {
    const uint32_t end = is_child ? walker->pool.items[run.first + i] : level->indices[slot];
    RONDO_TRY(rondo_array_push(walker->allocator, &walker->pool, &end));
  }
  return RONDO_OK;
}

/* The predecessors of a child graph: the ends of its dependencies or, for a root, those of the graph around it. */
static rondo_status gather_before(graph_walker *walker, const graph_level *level, const rondo_slots *dependencies,
                                  ends *out) {
  const size_t first = walker->pool.count;
  *out = level->around;
  if (dependencies->count == 0) return RONDO_OK;
  for (size_t i = 0; i < dependencies->count; i++) RONDO_TRY(gather_ends(walker, level, dependencies->items[i]));
  *out = (ends){.first = first, .count = walker->pool.count - first};
  return RONDO_OK;
}

static rondo_status gather_sinks(graph_walker *walker, const graph_level *level, ends *out) {
  const size_t first = walker->pool.count;
  for (uint32_t i = 0; i < level->graph->nodes.count; i++) {
    const rondo_graph_node *node = &level->graph->nodes.items[i];
    if (node->live && node->dependents.count == 0) RONDO_TRY(gather_ends(walker, level, i));
  }
  *out = (ends){.first = first, .count = walker->pool.count - first};
  return RONDO_OK;
}

/* Walking --------------------------------------------------------------------------------------------------------- */

static rondo_status walk_graph(graph_walker *walker, rondo_graph *graph, ends around, ends *out);

static size_t count_roots(const rondo_graph *graph) {
  size_t roots = 0;
  for (size_t i = 0; i < graph->nodes.count; i++)
    roots += graph->nodes.items[i].live && graph->nodes.items[i].dependencies.count == 0;
  return roots;
}

static rondo_status walk_inside(graph_walker *walker, const rondo_graph_node *node, ends before, ends *out) {
  rondo_graph *child = node->params.as.child;
  if (child->live_count == 0) return join(walker, before, out);
  if (before.count > 1 && count_roots(child) > 1) RONDO_TRY(join(walker, before, &before));
  RONDO_TRY(walk_graph(walker, child, before, out));
  return out->count > 1 && node->dependents.count > 1 ? join(walker, *out, out) : RONDO_OK;
}

/* The node as the user knows it. */
static rondo_node tag_of(const rondo_graph *graph, uint32_t slot) {
  return (rondo_node){.id = (uint64_t)graph->source_serial << 32 | slot};
}

static rondo_status walk_child(graph_walker *walker, graph_level *level, uint32_t slot) {
  const rondo_graph_node *node = rondo_graph_at(level->graph, slot);
  rondo_lowering *lowering = walker->lowering;
  const size_t number = lowering->children.count, first = lowering->nodes.count;
  const rondo_lowered_child child = {
      .graph = level->graph, .slot = slot, .tag = tag_of(level->graph, slot), .first = (uint32_t)first};
  ends before;
  if (level->ends_of == NULL)
    RONDO_TRY(rondo_allocate_items(walker->allocator, level->graph->nodes.count, sizeof(ends), &level->ends_of));
  level->indices[slot] = RONDO_INDEX_CHILD;
  RONDO_TRY(rondo_array_push(walker->allocator, &lowering->children, &child));
  RONDO_TRY(gather_before(walker, level, &node->dependencies, &before));
  RONDO_TRY(walk_inside(walker, node, before, &level->ends_of[slot]));
  lowering->children.items[number].count = (uint32_t)(lowering->nodes.count - first);
  return RONDO_OK;
}

/* Graphs without a device name no events. */
static inline rondo_lowered_node lowered_of(const rondo_node_params *params, rondo_device *device,
                                            const rondo_node_where *where, uint64_t captured) {
  const bool is_event = rondo_node_names_event(params) && params->as.event != NULL;
  return (rondo_lowered_node){.params = params,
                              .event = is_event ? params->as.event->driver : NULL,
                              .device = device,
                              .where = *where,
                              .captured = captured};
}

rondo_lowered_node rondo_lowered_of(const rondo_node_params *params, rondo_device *device,
                                    const rondo_node_where *where, uint64_t captured) {
  return lowered_of(params, device, where, captured);
}

static rondo_status walk_node(graph_walker *walker, graph_level *level, uint32_t slot) {
  rondo_graph *graph = level->graph;
  rondo_lowering *lowering = walker->lowering;
  const rondo_graph_node *node = rondo_graph_at(graph, slot);
  uint32_t index = RONDO_INDEX_NONE;
  if (node->params.kind == RONDO_NODE_CHILD && !walker->keeps_children) return walk_child(walker, level, slot);
  RONDO_TRY(append(walker, &index));
  const rondo_node_where where = {
      .number = level->inside == NULL ? slot : level->number, .own = slot, .inside = level->inside};
  lowering->nodes.items[index] =
      lowered_of(&node->params, rondo_graph_node_device(graph, node), &where, node->captured);
  lowering->origins.items[index] = (rondo_lowered_origin){.graph = graph, .slot = slot, .tag = tag_of(graph, slot)};
  level->indices[slot] = index;
  RONDO_TRY(link_promised(walker, level, slot));
  return link_dependencies(walker, level, &node->dependencies);
}

/* Reserves for as many nodes and edges as the graph has. Child graphs need more. */
static rondo_status reserve(graph_walker *walker, const rondo_graph *graph) {
  rondo_lowering *lowering = walker->lowering;
  const size_t nodes = lowering->nodes.count + graph->live_count;
  size_t edges = lowering->predecessors.count;
  for (size_t i = 0; i < graph->nodes.count; i++) edges += graph->nodes.items[i].dependencies.count;
  RONDO_TRY(rondo_array_reserve(walker->allocator, &lowering->nodes, nodes));
  RONDO_TRY(rondo_array_reserve(walker->allocator, &lowering->origins, nodes));
  RONDO_TRY(rondo_array_reserve(walker->allocator, &lowering->predecessor_start, nodes + 1));
  return rondo_array_reserve(walker->allocator, &lowering->predecessors, edges);
}

static rondo_status walk_nodes(graph_walker *walker, graph_level *level) {
  uint32_t *order;
  RONDO_TRY(rondo_graph_order_in(level->graph, walker->lowering->root, &order));
  rondo_status status = reserve(walker, level->graph);
  for (uint32_t i = 0; i < level->graph->live_count && status == RONDO_OK; i++)
    status = walk_node(walker, level, order[i]);
  rondo_release(&level->graph->allocator, order, level->graph->live_count, sizeof *order);
  return status;
}

static rondo_status add_indices(graph_walker *walker, const rondo_graph *graph, uint32_t **out) {
  const size_t count = graph->nodes.count;
  RONDO_TRY(rondo_allocate_items(walker->allocator, count, sizeof **out, out));
  if (count > 0) memset(*out, 0xff, count * sizeof **out); /* RONDO_INDEX_NONE */
  const rondo_graph_indices entry = {.serial = graph->source_serial,
                                     .count = count,
                                     .indices = *out,
                                     .around = rondo_graph_outer_number(graph, walker->lowering->root, RONDO_NO_NODE)};
  const rondo_status status = rondo_array_push(walker->allocator, &walker->lowering->graphs, &entry);
  if (status != RONDO_OK) rondo_release(walker->allocator, *out, count, sizeof **out);
  return status;
}

/* Adds the path to a child graph, for the labels of its nodes. */
static rondo_status add_path(graph_walker *walker, graph_level *level) {
  char inside[RONDO_INSIDE_BYTES], *path;
  const rondo_graph *const root = walker->lowering->root;
  const char *const text = rondo_graph_inside(inside, level->graph, root);
  if (text == NULL) return RONDO_OK;
  RONDO_TRY(rondo_allocate_text(walker->allocator, text, &path));
  const rondo_status status = rondo_array_push(walker->allocator, &walker->lowering->paths, &path);
  if (status != RONDO_OK) rondo_release_text(walker->allocator, path);
  level->inside = path;
  level->number = rondo_graph_outer_number(level->graph, root, RONDO_NO_NODE);
  return status;
}

/* Programmatic edges are between kernels, which are in the list. */
static rondo_status add_programmatic(graph_walker *walker, const graph_level *level) {
  const rondo_graph *graph = level->graph;
  for (size_t i = 0; i < graph->programmatic.count; i++) {
    const rondo_programmatic_edge *loose = &graph->programmatic.items[i];
    const rondo_lowered_edge lowered = {.from = level->indices[loose->from],
                                        .to = level->indices[loose->to],
                                        .from_port = loose->from_port,
                                        .to_port = loose->to_port,
                                        .type = loose->type,
                                        .orders = loose->orders};
    RONDO_TRY(rondo_array_push(walker->allocator, &walker->lowering->programmatic, &lowered));
  }
  return RONDO_OK;
}

/* `out` may be NULL: nothing depends on the outermost graph. */
static rondo_status walk_graph(graph_walker *walker, rondo_graph *graph, ends around, ends *out) {
  graph_level level = {.graph = graph, .around = around};
  RONDO_TRY(add_indices(walker, graph, &level.indices));
  rondo_status status = add_path(walker, &level);
  if (status == RONDO_OK) status = walk_nodes(walker, &level);
  if (status == RONDO_OK) status = add_programmatic(walker, &level);
  if (status == RONDO_OK && out != NULL) status = gather_sinks(walker, &level, out);
  rondo_release(walker->allocator, level.ends_of, graph->nodes.count, sizeof(ends));
  return status;
}

/* Edges ----------------------------------------------------------------------------------------------------------- */

static rondo_status invert_edges(graph_walker *walker) {
  rondo_lowering *lowering = walker->lowering;
  const size_t nodes = lowering->nodes.count, edges = lowering->predecessors.count;
  const uint32_t past = (uint32_t)edges;
  if (edges > UINT32_MAX)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                      "a graph of %zu edges with its children cannot be instantiated: split it", edges);
  RONDO_TRY(rondo_array_push(walker->allocator, &lowering->predecessor_start, &past));
  RONDO_TRY(rondo_allocate_items(walker->allocator, nodes + 1, sizeof(uint32_t), &lowering->successor_start));
  RONDO_TRY(rondo_allocate_items(walker->allocator, edges, sizeof(uint32_t), &lowering->successors));
  rondo_edges_invert(nodes, lowering->predecessor_start.items, lowering->predecessors.items, lowering->successor_start,
                     lowering->successors);
  return RONDO_OK;
}

static int compare_serials(const void *a, const void *b) {
  const uint32_t left = ((const rondo_graph_indices *)a)->serial, right = ((const rondo_graph_indices *)b)->serial;
  return (left > right) - (left < right);
}

static rondo_status lower(rondo_graph *graph, bool keeps_children, rondo_lowering *out) {
  *out = (rondo_lowering){.allocator = graph->allocator, .root = graph};
  graph_walker walker = {.lowering = out, .keeps_children = keeps_children, .allocator = &out->allocator};
  rondo_status status = walk_graph(&walker, graph, (ends){0}, NULL);
  if (status == RONDO_OK) status = invert_edges(&walker);
  rondo_array_free(walker.allocator, &walker.pool);
  if (status != RONDO_OK) {
    rondo_lowering_free(out);
    return status;
  }
  if (out->graphs.count > 1) qsort(out->graphs.items, out->graphs.count, sizeof *out->graphs.items, compare_serials);
  return RONDO_OK;
}

rondo_status rondo_lower(rondo_graph *graph, rondo_lowering *out) { return lower(graph, false, out); }

rondo_status rondo_lower_level(rondo_graph *graph, rondo_lowering *out) { return lower(graph, true, out); }

void rondo_lowering_free(rondo_lowering *lowering) {
  const rondo_allocator *allocator = &lowering->allocator;
  if (lowering->allocator.release == NULL) return;
  for (size_t i = 0; i < lowering->graphs.count; i++) {
    const rondo_graph_indices *at = &lowering->graphs.items[i];
    rondo_release(allocator, at->indices, at->count, sizeof(uint32_t));
  }
  if (lowering->successor_start != NULL)
    rondo_release(allocator, lowering->successor_start, lowering->nodes.count + 1, sizeof(uint32_t));
  rondo_release(allocator, lowering->successors, lowering->predecessors.count, sizeof(uint32_t));
  rondo_array_free(allocator, &lowering->predecessor_start);
  rondo_array_free(allocator, &lowering->predecessors);
  rondo_array_free(allocator, &lowering->programmatic);
  for (size_t i = 0; i < lowering->paths.count; i++) rondo_release_text(allocator, lowering->paths.items[i]);
  rondo_array_free(allocator, &lowering->paths);
  rondo_array_free(allocator, &lowering->children);
  rondo_array_free(allocator, &lowering->graphs);
  rondo_array_free(allocator, &lowering->origins);
  rondo_array_free(allocator, &lowering->nodes);
  *lowering = (rondo_lowering){0};
}

/* Looking up ------------------------------------------------------------------------------------------------------ */

static const rondo_graph_indices *find_graph(const rondo_lowering *lowering, uint32_t serial) {
  const rondo_graph_indices key = {.serial = serial}, *items = lowering->graphs.items;
  if (lowering->graphs.count == 0) return NULL;
  if (items[0].serial == serial) return items; /* usually there is no other */
  return bsearch(&key, items, lowering->graphs.count, sizeof *items, compare_serials);
}

uint32_t rondo_lowering_find(const rondo_lowering *lowering, rondo_node node) {
  const rondo_graph_indices *at = find_graph(lowering, (uint32_t)(node.id >> 32));
  const uint32_t slot = rondo_node_number(node);
  return at == NULL || slot >= at->count ? RONDO_INDEX_NONE : at->indices[slot];
}

const rondo_lowered_child *rondo_lowering_find_child(const rondo_lowering *lowering, rondo_node node) {
  for (size_t i = 0; i < lowering->children.count; i++)
    if (lowering->children.items[i].tag.id == node.id) return &lowering->children.items[i];
  return NULL;
}

uint32_t rondo_lowering_around(const rondo_lowering *lowering, rondo_node node) {
  const rondo_graph_indices *at = find_graph(lowering, (uint32_t)(node.id >> 32));
  return at == NULL ? RONDO_NO_NODE : at->around;
}

/* Both lists are in the order of the walk: by first node, outer ones before those inside. */
static void move_child_tags(const rondo_lowering *from, rondo_lowering *to) {
  for (size_t i = 0, at = 0; i < to->children.count; i++) {
    rondo_lowered_child *child = &to->children.items[i];
    size_t mate = at;
    while (mate < from->children.count &&
           (from->children.items[mate].first != child->first || from->children.items[mate].count != child->count))
      mate++;
    child->tag = (rondo_node){0};
    if (mate == from->children.count) continue;
    child->tag = from->children.items[mate].tag;
    at = mate + 1;
  }
}

void rondo_lowering_move_tags(rondo_lowering *from, rondo_lowering *to) {
  move_child_tags(from, to);
  for (size_t i = 0; i < to->origins.count; i++) to->origins.items[i].tag = from->origins.items[i].tag;
  const rondo_lowering given = *from;
  from->graphs = to->graphs;
  to->graphs = given.graphs;
}

rondo_lowered_graph rondo_lowering_view(const rondo_lowering *lowering, const char *name) {
  return (rondo_lowered_graph){.name = name,
                               .node_count = lowering->nodes.count,
                               .nodes = lowering->nodes.items,
                               .successor_start = lowering->successor_start,
                               .successors = lowering->successors,
                               .predecessor_start = lowering->predecessor_start.items,
                               .predecessors = lowering->predecessors.items,
                               .programmatic = lowering->programmatic.items,
                               .programmatic_count = lowering->programmatic.count,
                               .captured = lowering->root->captured.object,
                               .is_bound = lowering->root->is_bound};
}

const char *rondo_lowering_label(const rondo_lowering *lowering, size_t index, char buffer[RONDO_LABEL_BYTES]) {
  const rondo_lowered_node *node = &lowering->nodes.items[index];
  return rondo_node_label_at(buffer, node->params, &node->where);
}

/* Comparing ------------------------------------------------------------------------------------------------------- */

/* The first node that is in only one of the two ascending lists; UINT32_MAX if they are equal. */
static uint32_t first_difference(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count) {
  for (size_t i = 0;; i++) {
    if (i == a_count && i == b_count) return UINT32_MAX;
    if (i == a_count || i == b_count) return i == a_count ? b[i] : a[i];
    if (a[i] != b[i]) return a[i] < b[i] ? a[i] : b[i];
  }
}

/* NULL if the graph has no edges. */
static const uint32_t *successors_from(const rondo_lowering *lowering, uint32_t start) {
  return lowering->successors == NULL ? NULL : lowering->successors + start;
}

uint32_t rondo_lowering_find_other_edges(const rondo_lowering *a, const rondo_lowering *b) {
  uint32_t first = UINT32_MAX;
  for (size_t i = 0; i < a->nodes.count; i++) {
    const uint32_t a_start = a->successor_start[i], b_start = b->successor_start[i];
    const uint32_t other = first_difference(successors_from(a, a_start), a->successor_start[i + 1] - a_start,
                                            successors_from(b, b_start), b->successor_start[i + 1] - b_start);
    if (other < first) first = other;
  }
  return first;
}

bool rondo_lowering_same_programmatic(const rondo_lowering *a, const rondo_lowering *b) {
  const size_t count = a->programmatic.count;
  if (b->programmatic.count != count) return false;
  for (size_t i = 0; i < count; i++) {
    const rondo_lowered_edge *x = &a->programmatic.items[i], *y = &b->programmatic.items[i];
    if (x->from != y->from || x->to != y->to || x->from_port != y->from_port || x->to_port != y->to_port ||
        x->type != y->type || x->orders != y->orders)
      return false;
  }
  return true;
}
