/* SPDX-License-Identifier: MIT
 * Layers by longest path, and the order within them: layers are gone through downwards and upwards, each sorted by the
 * mean position of its neighbours in the layer before (Sugiyama's barycentres), and the order with the fewest crossings
 * is kept. Crossings are counted in the logarithm of the layer's width for each edge (W. Barth, P. Mutzel, M. Juenger,
 * "Simple and efficient bilayer cross counting", JGAA 8 (2004)).
 */
#include "render/graph_layers.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "render/graph_layers_internal.h"

enum { MOST_SWEEPS = 16, PATIENCE = 4 /* sweeps without fewer crossings */ };

/* Layers ----------------------------------------------------------------------------------------------------------- */

static uint32_t edge_count_of(const rondo_layers_input *input) {
  return input->node_count == 0 ? 0 : input->start[input->node_count];
}

/* Nodes that depend on nothing stand right above the first that needs them. */
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

/* `layer` has room for the nodes, zeroed. */
static rondo_status layer_nodes(const rondo_allocator *allocator, const rondo_layers_input *input, uint32_t *layer) {
  bool *has_above;
  RONDO_TRY(rondo_allocate_items(allocator, input->node_count, sizeof *has_above, &has_above));
  find_layers(input, has_above, layer);
  rondo_release(allocator, has_above, input->node_count, sizeof *has_above);
  return RONDO_OK;
}

static uint64_t count_places(const rondo_layers_input *input, const uint32_t *layer) {
  uint64_t count = input->node_count;
  for (uint32_t i = 0; i < input->node_count; i++)
    for (uint32_t e = input->start[i]; e < input->start[i + 1]; e++) count += layer[input->to[e]] - layer[i] - 1;
  return count;
}

rondo_status rondo_layers_count(const rondo_allocator *allocator, const rondo_layers_input *input,
                                uint64_t *out_places) {
  uint32_t *layer;
  *out_places = 0;
  RONDO_TRY(rondo_allocate_items(allocator, input->node_count, sizeof *layer, &layer));
  const rondo_status status = layer_nodes(allocator, input, layer);
  if (status == RONDO_OK) *out_places = count_places(input, layer);
  rondo_release(allocator, layer, input->node_count, sizeof *layer);
  return status;
}

/* Links between neighbouring layers -------------------------------------------------------------------------------- */

/* Calls `link` for each pair of places in neighbouring layers that an edge connects; gives the bends their layers. */
static void walk_links(rondo_ordering *o, void (*link)(rondo_ordering *o, uint32_t from, uint32_t to)) {
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

static void count_link(rondo_ordering *o, uint32_t from, uint32_t to) {
  o->below.start[from + 1]++;
  o->above.start[to + 1]++;
}

/* start[i] is where the next one goes, and in the end where place i + 1 begins. */
static void add_link(rondo_ordering *o, uint32_t from, uint32_t to) {
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

static void link_places(rondo_ordering *o) {
  const uint32_t count = o->layers->place_count;
  walk_links(o, count_link);
  sum_up(o->below.start, count);
  sum_up(o->above.start, count);
  walk_links(o, add_link);
  move_back(o->below.start, count);
  move_back(o->above.start, count);
}

/* Rows in the order of the places. */
static void fill_rows(rondo_ordering *o) {
  const rondo_layers *layers = o->layers;
  for (uint32_t i = 0; i < layers->place_count; i++) o->row_start[layers->layer[i] + 1]++;
  sum_up(o->row_start, layers->layer_count);
  for (uint32_t i = 0; i < layers->place_count; i++) {
    uint32_t *next = &o->row_start[layers->layer[i]];
    o->row[(*next)++] = i;
  }
  move_back(o->row_start, layers->layer_count);
}

static void note_positions(rondo_ordering *o) {
  for (uint32_t l = 0; l < o->layers->layer_count; l++)
    for (uint32_t i = o->row_start[l]; i < o->row_start[l + 1]; i++) o->position[o->row[i]] = i - o->row_start[l];
}

/* Order ------------------------------------------------------------------------------------------------------------ */

typedef struct sorted_place {
  double mean;
  uint32_t position, place;
} sorted_place;

typedef struct orderer {
  rondo_ordering *ordering;
  sorted_place *sorted; /* room for all */
  uint32_t *ends;       /* room for all links: positions below, in the order of those above */
  uint32_t *tree;       /* room for all, and one more: sums over positions */
  uint32_t *best;       /* rows with the fewest crossings so far */
} orderer;

static int compare_sorted(const void *left, const void *right) {
  const sorted_place *a = left, *b = right;
  if (a->mean != b->mean) return a->mean < b->mean ? -1 : 1;
  return (a->position > b->position) - (a->position < b->position);
}

static int compare_positions(const void *left, const void *right) {
  const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
  return (a > b) - (a < b);
}

static double mean_position(const rondo_ordering *o, const rondo_neighbours *toward, uint32_t place) {
  const uint32_t first = toward->start[place], end = toward->start[place + 1];
  double sum = 0;
  for (uint32_t i = first; i < end; i++) sum += (double)o->position[toward->items[i]];
  return first == end ? (double)o->position[place] : sum / (double)(end - first);
}

static void sort_row(orderer *w, uint32_t layer, const rondo_neighbours *toward) {
  rondo_ordering *o = w->ordering;
  const uint32_t first = o->row_start[layer], count = o->row_start[layer + 1] - first;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t place = o->row[first + i];
    w->sorted[i] = (sorted_place){mean_position(o, toward, place), i, place};
  }
  qsort(w->sorted, count, sizeof *w->sorted, compare_sorted);
  for (uint32_t i = 0; i < count; i++) {
    o->row[first + i] = w->sorted[i].place;
    o->position[w->sorted[i].place] = i;
  }
}

static void sweep(orderer *w, bool downwards) {
  const uint32_t count = w->ordering->layers->layer_count;
  for (uint32_t i = 1; i < count; i++)
    sort_row(w, downwards ? i : count - 1 - i, downwards ? &w->ordering->above : &w->ordering->below);
}

/* Of the links, taken from the left above, how many end left of an earlier one. */
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
  const rondo_ordering *o = w->ordering;
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
  rondo_ordering *o = w->ordering;
  const size_t bytes = o->layers->place_count * sizeof *o->row;
  uint64_t fewest = UINT64_MAX;
  for (int i = 0, since = 0; i < MOST_SWEEPS && since < PATIENCE && fewest > 0; i++, since++) {
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

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status order_rows(rondo_ordering *o) {
  const rondo_allocator *allocator = &o->layers->allocator;
  const uint32_t count = o->layers->place_count;
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

static rondo_status allocate_neighbours(const rondo_ordering *o, rondo_neighbours *out) {
  const rondo_allocator *allocator = &o->layers->allocator;
  RONDO_TRY(rondo_allocate_items(allocator, (size_t)o->layers->place_count + 1, sizeof *out->start, &out->start));
  return rondo_allocate_items(allocator, o->link_count, sizeof *out->items, &out->items);
}

static void free_neighbours(const rondo_ordering *o, rondo_neighbours *neighbours) {
  const rondo_allocator *allocator = &o->layers->allocator;
  rondo_release(allocator, neighbours->start, (size_t)o->layers->place_count + 1, sizeof *neighbours->start);
  rondo_release(allocator, neighbours->items, o->link_count, sizeof *neighbours->items);
}

static rondo_status allocate_ordering(rondo_ordering *o) {
  const rondo_allocator *allocator = &o->layers->allocator;
  const size_t places = o->layers->place_count;
  RONDO_TRY(allocate_neighbours(o, &o->above));
  RONDO_TRY(allocate_neighbours(o, &o->below));
  RONDO_TRY(rondo_allocate_items(allocator, (size_t)o->layers->layer_count + 1, sizeof *o->row_start, &o->row_start));
  RONDO_TRY(rondo_allocate_items(allocator, places, sizeof *o->row, &o->row));
  return rondo_allocate_items(allocator, places, sizeof *o->position, &o->position);
}

static void free_ordering(rondo_ordering *o) {
  const rondo_allocator *allocator = &o->layers->allocator;
  free_neighbours(o, &o->above);
  free_neighbours(o, &o->below);
  rondo_release(allocator, o->row_start, (size_t)o->layers->layer_count + 1, sizeof *o->row_start);
  rondo_release(allocator, o->row, o->layers->place_count, sizeof *o->row);
  rondo_release(allocator, o->position, o->layers->place_count, sizeof *o->position);
}

static rondo_status arrange(rondo_layers *layers) {
  const uint32_t edges = edge_count_of(&layers->input);
  rondo_ordering o = {.layers = layers, .link_count = edges + layers->place_count - layers->input.node_count};
  rondo_status status = allocate_ordering(&o);
  if (status == RONDO_OK) {
    link_places(&o);
    fill_rows(&o);
    note_positions(&o);
    status = order_rows(&o);
  }
  if (status == RONDO_OK) status = rondo_layers_place(&o);
  free_ordering(&o);
  return status;
}

static rondo_status make(rondo_layers *out) {
  const rondo_layers_input *input = &out->input;
  uint64_t places;
  RONDO_TRY(rondo_layers_count(&out->allocator, input, &places));
  out->place_count = (uint32_t)places;
  RONDO_TRY(rondo_allocate_items(&out->allocator, places, sizeof *out->layer, &out->layer));
  RONDO_TRY(rondo_allocate_items(&out->allocator, places, sizeof *out->x, &out->x));
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
  rondo_release(&layers->allocator, layers->layer, layers->place_count, sizeof *layers->layer);
  rondo_release(&layers->allocator, layers->x, layers->place_count, sizeof *layers->x);
  rondo_release(&layers->allocator, layers->bend_start, (size_t)edge_count_of(&layers->input) + 1,
                sizeof *layers->bend_start);
  *layers = (rondo_layers){0};
}
