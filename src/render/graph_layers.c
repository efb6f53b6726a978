/* SPDX-License-Identifier: MIT
 * The layout has three steps:
 * 1. Layers. The layer of a node is the length of the longest path to it.
 * 2. Order. Sweeps downwards and upwards sort each layer by the mean position of the neighbours in the previous layer
 *    (Sugiyama's barycentres). The order with the fewest crossings is kept. Counting crossings takes O(log n) for each
 *    edge and n vertices in a layer (W. Barth, P. Mutzel, M. Juenger, "Simple and efficient bilayer cross counting",
 * JGAA 8 (2004)).
 * 3. Positions.
 * Thread-compatible.
 */
#include "render/graph_layers.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/numbers/real.h"

enum { MAX_SWEEPS = 16, MAX_STALLED = 4 /* sweeps without fewer crossings */ };

/* The neighbours of vertex i in one direction are items[start[i]] to items[start[i + 1] - 1]. */
typedef struct neighbour_lists {
  uint32_t *start, *items;
} neighbour_lists;

typedef struct layer_order {
  rondo_layers *layers;
  uint32_t link_count; /* a link is a part of an edge, between two neighbouring layers */
  neighbour_lists above, below;
  uint32_t *row_start; /* the vertices of layer l are row[row_start[l]] to row[row_start[l + 1] - 1], from the left */
  uint32_t *row;
  uint32_t *position; /* of each vertex in its layer */
} layer_order;

/* Layers ----------------------------------------------------------------------------------------------------------- */

static uint32_t edge_count_of(const rondo_layers_input *input) {
  return input->node_count == 0 ? 0 : input->start[input->node_count];
}

/* Nodes without dependencies are in the layer above their first dependent. */
static void find_layers(const rondo_layers_input *input, bool *has_above, uint32_t *layer) {
  for (uint32_t i = 0; i < input->node_count; i++) {
    for (uint32_t e = input->start[i]; e < input->start[i + 1]; e++) {
      const uint32_t to = input->to[e];
      has_above[to] = true;
      if (layer[to] <= layer[i]) layer[to] = layer[i] + 1;
    }
  }
  for (uint32_t i = 0; i < input->node_count; i++) {
    uint32_t nearest = UINT32_MAX;
    for (uint32_t e = input->start[i]; e < input->start[i + 1]; e++)
      if (layer[input->to[e]] < nearest) nearest = layer[input->to[e]];
    if (!has_above[i] && nearest != UINT32_MAX) layer[i] = nearest - 1;
  }
}

/* `layer` is zeroed. */
static rondo_status layer_nodes(const rondo_allocator *allocator, const rondo_layers_input *input, uint32_t *layer) {
  bool *has_above;
  RONDO_TRY(rondo_allocate_items(allocator, input->node_count, sizeof *has_above, &has_above));
  find_layers(input, has_above, layer);
  rondo_release(allocator, has_above, input->node_count, sizeof *has_above);
  return RONDO_OK;
}

static uint64_t count_vertices(const rondo_layers_input *input, const uint32_t *layer) {
  uint64_t count = input->node_count;
  for (uint32_t i = 0; i < input->node_count; i++)
    for (uint32_t e = input->start[i]; e < input->start[i + 1]; e++) count += layer[input->to[e]] - layer[i] - 1;
  return count;
}

rondo_status rondo_layers_count(const rondo_allocator *allocator, const rondo_layers_input *input,
                                uint64_t *out_vertices) {
  uint32_t *layer;
  *out_vertices = 0;
  RONDO_TRY(rondo_allocate_items(allocator, input->node_count, sizeof *layer, &layer));
  const rondo_status status = layer_nodes(allocator, input, layer);
  if (status == RONDO_OK) *out_vertices = count_vertices(input, layer);
  rondo_release(allocator, layer, input->node_count, sizeof *layer);
  return status;
}

/* Links between neighbouring layers -------------------------------------------------------------------------------- */

/* Calls `link` for each link of each edge, and sets the layers of bends. */
static void walk_links(layer_order *o, void (*link)(layer_order *o, uint32_t from, uint32_t to)) {
  rondo_layers *layers = o->layers;
  const rondo_layers_input *input = &layers->input;
  uint32_t bend = input->node_count;
  for (uint32_t i = 0; i < input->node_count; i++) {
    for (uint32_t e = input->start[i]; e < input->start[i + 1]; e++) {
      uint32_t from = i;
      layers->bend_start[e] = bend;
      for (uint32_t at = layers->layer[i] + 1; at < layers->layer[input->to[e]]; at++, bend++) {
        layers->layer[bend] = at;
        link(o, from, bend);
        from = bend;
      }
      link(o, from, input->to[e]);
    }
  }
  layers->bend_start[edge_count_of(input)] = bend;
}

static void count_link(layer_order *o, uint32_t from, uint32_t to) {
  o->below.start[from + 1]++;
  o->above.start[to + 1]++;
}

/* start[i] is the position of the next neighbour of i. At the end it is the beginning of vertex i + 1. */
static void add_link(layer_order *o, uint32_t from, uint32_t to) {
  o->below.items[o->below.start[from]++] = to;
  o->above.items[o->above.start[to]++] = from;
}

static void sum_up(uint32_t *start, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) start[i + 1] += start[i];
}

static void move_back(uint32_t *start, uint32_t count) {
  memmove(start + 1, start, count * sizeof *start);
  start[0] = 0;
}

static void link_vertices(layer_order *o) {
  const uint32_t count = o->layers->vertex_count;
  walk_links(o, count_link);
  sum_up(o->below.start, count);
  sum_up(o->above.start, count);
  walk_links(o, add_link);
  move_back(o->below.start, count);
  move_back(o->above.start, count);
}

/* Fills the rows in the order of the vertices. */
static void fill_rows(layer_order *o) {
  const rondo_layers *layers = o->layers;
  for (uint32_t i = 0; i < layers->vertex_count; i++) o->row_start[layers->layer[i] + 1]++;
  sum_up(o->row_start, layers->layer_count);
  for (uint32_t i = 0; i < layers->vertex_count; i++) {
    uint32_t *next = &o->row_start[layers->layer[i]];
    o->row[(*next)++] = i;
  }
  move_back(o->row_start, layers->layer_count);
}

static void note_positions(layer_order *o) {
  for (uint32_t l = 0; l < o->layers->layer_count; l++)
    for (uint32_t i = o->row_start[l]; i < o->row_start[l + 1]; i++) o->position[o->row[i]] = i - o->row_start[l];
}

/* Order ------------------------------------------------------------------------------------------------------------ */

typedef struct sorted_vertex {
  double mean;
  uint32_t position, vertex;
} sorted_vertex;

typedef struct orderer {
  layer_order *ordering;
  sorted_vertex *sorted; /* room for all */
  uint32_t *ends;        /* room for all links: positions below, in the order of those above */
  uint32_t *tree;        /* room for all, and one more: sums over positions */
  uint32_t *best;        /* rows with the fewest crossings so far */
} orderer;

static int compare_sorted(const void *left, const void *right) {
  const sorted_vertex *a = left, *b = right;
  if (a->mean != b->mean) return a->mean < b->mean ? -1 : 1;
  return (a->position > b->position) - (a->position < b->position);
}

static int compare_positions(const void *left, const void *right) {
  const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
  return (a > b) - (a < b);
}

static double mean_position(const layer_order *o, const neighbour_lists *toward, uint32_t vertex) {
  const uint32_t first = toward->start[vertex], end = toward->start[vertex + 1];
  double sum = 0;
  for (uint32_t i = first; i < end; i++) sum += (double)o->position[toward->items[i]];
  return first == end ? (double)o->position[vertex] : sum / (double)(end - first);
}

static void sort_row(orderer *w, uint32_t layer, const neighbour_lists *toward) {
  layer_order *o = w->ordering;
  const uint32_t first = o->row_start[layer], count = o->row_start[layer + 1] - first;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t vertex = o->row[first + i];
    w->sorted[i] = (sorted_vertex){mean_position(o, toward, vertex), i, vertex};
  }
  qsort(w->sorted, count, sizeof *w->sorted, compare_sorted);
  for (uint32_t i = 0; i < count; i++) {
    o->row[first + i] = w->sorted[i].vertex;
    o->position[w->sorted[i].vertex] = i;
  }
}

static void sweep(orderer *w, bool downwards) {
  const uint32_t count = w->ordering->layers->layer_count;
  for (uint32_t i = 1; i < count; i++)
    sort_row(w, downwards ? i : count - 1 - i, downwards ? &w->ordering->above : &w->ordering->below);
}

/* Counts the pairs of links whose ends below are in the reverse order of their ends above, with a Fenwick tree. */
static uint64_t count_inversions(orderer *w, uint32_t links, uint32_t positions) {
  uint64_t crossings = 0;
  memset(w->tree, 0, (positions + 1) * sizeof *w->tree);
  for (uint32_t i = 0; i < links; i++) {
    uint32_t not_right = 0;
    for (uint32_t at = w->ends[i] + 1; at > 0; at &= at - 1) not_right += w->tree[at];
    crossings += i - not_right;
    for (uint32_t at = w->ends[i] + 1; at <= positions; at += at & (0 - at)) w->tree[at]++;
  }
  return crossings;
}

static uint64_t count_crossings(orderer *w) {
  const layer_order *o = w->ordering;
  uint64_t crossings = 0;
  for (uint32_t l = 0; l + 1 < o->layers->layer_count; l++) {
    uint32_t links = 0;
    for (uint32_t i = o->row_start[l]; i < o->row_start[l + 1]; i++) {
      const uint32_t begin = links;
      for (uint32_t k = o->below.start[o->row[i]]; k < o->below.start[o->row[i] + 1]; k++)
        w->ends[links++] = o->position[o->below.items[k]];
      qsort(w->ends + begin, links - begin, sizeof *w->ends, compare_positions);
    }
    crossings += count_inversions(w, links, o->row_start[l + 2] - o->row_start[l + 1]);
  }
  return crossings;
}

static void find_order(orderer *w) {
  layer_order *o = w->ordering;
  const size_t bytes = o->layers->vertex_count * sizeof *o->row;
  uint64_t fewest = UINT64_MAX;
  for (int i = 0, since = 0; i < MAX_SWEEPS && since < MAX_STALLED && fewest > 0; i++, since++) {
    sweep(w, i % 2 == 0);
    const uint64_t crossings = count_crossings(w);
    if (crossings >= fewest) continue;
    fewest = crossings;
    since = 0;
    memcpy(w->best, o->row, bytes);
  }
  memcpy(o->row, w->best, bytes);
  note_positions(o);
}

/* Positions -------------------------------------------------------------------------------------------------------- */

/* Each vertex is as near as possible to the mean of its neighbours in the previous layer, in the sense of least
 * squares, while widths and gaps are respected. After subtracting the widths, this is an isotonic regression, which is
 * solved exactly by pooling adjacent vertices that violate the order (R. E. Barlow, D. J. Bartholomew, J. M. Bremner,
 * H. D. Brunk, "Statistical inference under order restrictions", 1972). A few sweeps go downwards and upwards. Bends
 * weigh more, so that long edges are straight. */

enum { PLACE_SWEEPS = 9, BEND_WEIGHT = 6 };

/* Adjacent vertices with no free space between them. */
typedef struct pool {
  double mean, weight;
  uint32_t count;
} pool;

typedef struct placer {
  const layer_order *ordering;
  double *x;     /* of each vertex */
  double *taken; /* room for a layer: what the widths to the left take */
  pool *pools;   /* room for a layer */
} placer;

static bool is_bend(const placer *p, uint32_t vertex) { return vertex >= p->ordering->layers->input.node_count; }

static double width_of(const placer *p, uint32_t vertex) {
  return is_bend(p, vertex) ? 0 : (double)p->ordering->layers->input.widths[vertex];
}

static void add_neighbours(const placer *p, const neighbour_lists *toward, uint32_t vertex, double *sum,
                           double *count) {
  for (uint32_t i = toward->start[vertex]; i < toward->start[vertex + 1]; i++) {
    *sum += p->x[toward->items[i]];
    *count += 1;
  }
}

typedef enum direction { DOWNWARDS, UPWARDS, BOTH } direction;

/* The mean position of the neighbours. */
static double wish_of(const placer *p, uint32_t vertex, direction to) {
  double sum = 0, count = 0;
  if (to != UPWARDS) add_neighbours(p, &p->ordering->above, vertex, &sum, &count);
  if (to != DOWNWARDS) add_neighbours(p, &p->ordering->below, vertex, &sum, &count);
  return count == 0 ? p->x[vertex] : sum / count;
}

static void place_layer(placer *p, uint32_t layer, direction to) {
  const layer_order *o = p->ordering;
  const uint32_t *row = &o->row[o->row_start[layer]];
  const uint32_t count = o->row_start[layer + 1] - o->row_start[layer];
  uint32_t pools = 0;
  double taken = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (i > 0) taken += (width_of(p, row[i - 1]) + width_of(p, row[i])) / 2 + o->layers->input.gap;
    p->taken[i] = taken;
    p->pools[pools++] = (pool){wish_of(p, row[i], to) - taken, is_bend(p, row[i]) ? BEND_WEIGHT : 1, 1};
    for (; pools > 1 && p->pools[pools - 2].mean > p->pools[pools - 1].mean; pools--) {
      pool *into = &p->pools[pools - 2];
      const pool from = p->pools[pools - 1];
      into->mean = (into->mean * into->weight + from.mean * from.weight) / (into->weight + from.weight);
      into->weight += from.weight;
      into->count += from.count;
    }
  }
  for (uint32_t i = 0, k = 0; k < pools; k++)
    for (uint32_t n = 0; n < p->pools[k].count; n++, i++) p->x[row[i]] = p->pools[k].mean + p->taken[i];
}

static void place_all(placer *p) {
  const uint32_t count = p->ordering->layers->layer_count;
  for (int sweep = 0; sweep < PLACE_SWEEPS; sweep++) {
    const direction to = sweep + 1 == PLACE_SWEEPS ? BOTH : sweep % 2 == 0 ? DOWNWARDS : UPWARDS;
    for (uint32_t i = 0; i < count; i++) place_layer(p, to == UPWARDS ? count - 1 - i : i, to);
  }
}

/* Stores the positions, moved so that the leftmost edge is at 0. */
static void store_positions(const placer *p) {
  rondo_layers *layers = p->ordering->layers;
  double left = INFINITY, right = -INFINITY;
  for (uint32_t i = 0; i < layers->vertex_count; i++) {
    left = rondo_fmin(left, p->x[i] - width_of(p, i) / 2);
    right = rondo_fmax(right, p->x[i] + width_of(p, i) / 2);
  }
  for (uint32_t i = 0; i < layers->vertex_count; i++) layers->x[i] = (int32_t)(p->x[i] - left + 0.5);
  layers->width = (int32_t)rondo_ceil(right - left);
}

static uint32_t widest_row(const layer_order *o) {
  uint32_t widest = 0;
  for (uint32_t l = 0; l < o->layers->layer_count; l++) {
    const uint32_t count = o->row_start[l + 1] - o->row_start[l];
    if (count > widest) widest = count;
  }
  return widest;
}

static rondo_status place_rows(const layer_order *ordering) {
  const rondo_allocator *allocator = &ordering->layers->allocator;
  const size_t vertices = ordering->layers->vertex_count, widest = widest_row(ordering);
  placer p = {.ordering = ordering};
  rondo_status status = rondo_allocate_items(allocator, vertices, sizeof *p.x, &p.x);
  if (status == RONDO_OK) status = rondo_allocate_items(allocator, widest, sizeof *p.taken, &p.taken);
  if (status == RONDO_OK) status = rondo_allocate_items(allocator, widest, sizeof *p.pools, &p.pools);
  if (status == RONDO_OK) {
    place_all(&p);
    store_positions(&p);
  }
  rondo_release(allocator, p.pools, widest, sizeof *p.pools);
  rondo_release(allocator, p.taken, widest, sizeof *p.taken);
  rondo_release(allocator, p.x, vertices, sizeof *p.x);
  return status;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status order_rows(layer_order *o) {
  const rondo_allocator *allocator = &o->layers->allocator;
  const uint32_t count = o->layers->vertex_count;
  orderer w = {.ordering = o};
  rondo_status status = rondo_allocate_items(allocator, count, sizeof *w.sorted, &w.sorted);
  if (status == RONDO_OK) status = rondo_allocate_items(allocator, o->link_count, sizeof *w.ends, &w.ends);
  if (status == RONDO_OK) status = rondo_allocate_items(allocator, (size_t)count + 1, sizeof *w.tree, &w.tree);
  if (status == RONDO_OK) status = rondo_allocate_items(allocator, count, sizeof *w.best, &w.best);
  if (status == RONDO_OK) find_order(&w);
  rondo_release(allocator, w.best, count, sizeof *w.best);
  rondo_release(allocator, w.tree, (size_t)count + 1, sizeof *w.tree);
  rondo_release(allocator, w.ends, o->link_count, sizeof *w.ends);
  rondo_release(allocator, w.sorted, count, sizeof *w.sorted);
  return status;
}

static rondo_status allocate_neighbours(const layer_order *o, neighbour_lists *out) {
  const rondo_allocator *allocator = &o->layers->allocator;
  RONDO_TRY(rondo_allocate_items(allocator, (size_t)o->layers->vertex_count + 1, sizeof *out->start, &out->start));
  return rondo_allocate_items(allocator, o->link_count, sizeof *out->items, &out->items);
}

static void free_neighbours(const layer_order *o, neighbour_lists *neighbours) {
  const rondo_allocator *allocator = &o->layers->allocator;
  rondo_release(allocator, neighbours->start, (size_t)o->layers->vertex_count + 1, sizeof *neighbours->start);
  rondo_release(allocator, neighbours->items, o->link_count, sizeof *neighbours->items);
}

static rondo_status allocate_ordering(layer_order *o) {
  const rondo_allocator *allocator = &o->layers->allocator;
  const size_t vertices = o->layers->vertex_count;
  RONDO_TRY(allocate_neighbours(o, &o->above));
  RONDO_TRY(allocate_neighbours(o, &o->below));
  RONDO_TRY(rondo_allocate_items(allocator, (size_t)o->layers->layer_count + 1, sizeof *o->row_start, &o->row_start));
  RONDO_TRY(rondo_allocate_items(allocator, vertices, sizeof *o->row, &o->row));
  return rondo_allocate_items(allocator, vertices, sizeof *o->position, &o->position);
}

static void free_ordering(layer_order *o) {
  const rondo_allocator *allocator = &o->layers->allocator;
  free_neighbours(o, &o->above);
  free_neighbours(o, &o->below);
  rondo_release(allocator, o->row_start, (size_t)o->layers->layer_count + 1, sizeof *o->row_start);
  rondo_release(allocator, o->row, o->layers->vertex_count, sizeof *o->row);
  rondo_release(allocator, o->position, o->layers->vertex_count, sizeof *o->position);
}

/* Asserts the invariant of an order: each vertex occurs once, in its layer, at its position. */
static void check_order(const layer_order *o) {
  for (uint32_t l = 0; l < o->layers->layer_count; l++) {
    assert(o->row_start[l] <= o->row_start[l + 1]);
    for (uint32_t i = o->row_start[l]; i < o->row_start[l + 1]; i++)
      assert(o->layers->layer[o->row[i]] == l && o->position[o->row[i]] == i - o->row_start[l]);
  }
  assert(o->row_start[o->layers->layer_count] == o->layers->vertex_count);
  (void)o;
}

static rondo_status arrange(rondo_layers *layers) {
  const uint32_t edges = edge_count_of(&layers->input);
  layer_order o = {.layers = layers, .link_count = edges + layers->vertex_count - layers->input.node_count};
  rondo_status status = allocate_ordering(&o);
  if (status == RONDO_OK) {
    link_vertices(&o);
    fill_rows(&o);
    note_positions(&o);
    status = order_rows(&o);
  }
  if (status == RONDO_OK) {
    check_order(&o);
    status = place_rows(&o);
  }
  free_ordering(&o);
  return status;
}

static rondo_status make(rondo_layers *out) {
  const rondo_layers_input *input = &out->input;
  uint64_t vertices;
  RONDO_TRY(rondo_layers_count(&out->allocator, input, &vertices));
  out->vertex_count = (uint32_t)vertices;
  RONDO_TRY(rondo_allocate_items(&out->allocator, vertices, sizeof *out->layer, &out->layer));
  RONDO_TRY(rondo_allocate_items(&out->allocator, vertices, sizeof *out->x, &out->x));
  RONDO_TRY(rondo_allocate_items(&out->allocator, (size_t)edge_count_of(input) + 1, sizeof *out->bend_start,
                                 &out->bend_start));
  RONDO_TRY(layer_nodes(&out->allocator, input, out->layer));
  for (uint32_t i = 0; i < input->node_count; i++)
    if (out->layer[i] >= out->layer_count) out->layer_count = out->layer[i] + 1;
  return arrange(out);
}

rondo_status rondo_layers_make(const rondo_allocator *allocator, const rondo_layers_input *input, rondo_layers *out) {
  *out = (rondo_layers){.allocator = *allocator, .input = *input};
  return input->node_count == 0 ? RONDO_OK : make(out);
}

void rondo_layers_free(rondo_layers *layers) {
  rondo_release(&layers->allocator, layers->layer, layers->vertex_count, sizeof *layers->layer);
  rondo_release(&layers->allocator, layers->x, layers->vertex_count, sizeof *layers->x);
  rondo_release(&layers->allocator, layers->bend_start, (size_t)edge_count_of(&layers->input) + 1,
                sizeof *layers->bend_start);
  *layers = (rondo_layers){0};
}
