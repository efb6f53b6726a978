/* SPDX-License-Identifier: MIT
 * Where each place of a layer stands, its order given: as near as possible to the mean of its neighbours in the layer
 * before, in the sense of least squares, with no two closer than their widths allow. That is an isotonic regression
 * once the widths are taken out, solved exactly by pooling neighbours that violate the order (R. E. Barlow, D. J.
 * Bartholomew, J. M. Bremner, H. D. Brunk, "Statistical inference under order restrictions", 1972). Layers are gone
 * through downwards and upwards a few times; bends weigh more, so that long edges are straight.
 */
#include "render/graph_layers_internal.h"

#include <math.h>

#include "base/error.h"

enum { SWEEPS = 9, BEND_WEIGHT = 6 };

/* Neighbours that stand as close as they may. */
typedef struct pool {
  double mean, weight;
  uint32_t count;
} pool;

typedef struct placer {
  const rondo_ordering *ordering;
  double *x;     /* of each place */
  double *taken; /* room for a layer: what the widths to the left take */
  pool *pools;   /* room for a layer */
} placer;

static bool is_bend(const placer *p, uint32_t place) { return place >= p->ordering->layers->input.node_count; }

static double width_of(const placer *p, uint32_t place) {
  return is_bend(p, place) ? 0 : (double)p->ordering->layers->input.widths[place];
}

static void add_neighbours(const placer *p, const rondo_neighbours *toward, uint32_t place, double *sum,
                           double *count) {
  for (uint32_t i = toward->start[place]; i < toward->start[place + 1]; i++) {
    *sum += p->x[toward->items[i]];
    *count += 1;
  }
}

typedef enum direction { DOWNWARDS, UPWARDS, BOTH } direction;

/* Where a place would like to stand. */
static double wish_of(const placer *p, uint32_t place, direction to) {
  double sum = 0, count = 0;
  if (to != UPWARDS) add_neighbours(p, &p->ordering->above, place, &sum, &count);
  if (to != DOWNWARDS) add_neighbours(p, &p->ordering->below, place, &sum, &count);
  return count == 0 ? p->x[place] : sum / count;
}

static void place_layer(placer *p, uint32_t layer, direction to) {
  const rondo_ordering *o = p->ordering;
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
  for (int sweep = 0; sweep < SWEEPS; sweep++) {
    const direction to = sweep + 1 == SWEEPS ? BOTH : sweep % 2 == 0 ? DOWNWARDS : UPWARDS;
    for (uint32_t i = 0; i < count; i++) place_layer(p, to == UPWARDS ? count - 1 - i : i, to);
  }
}

/* Moves all so that it begins at 0. */
static void hand_over(const placer *p) {
  rondo_layers *layers = p->ordering->layers;
  double least = INFINITY, most = -INFINITY;
  for (uint32_t i = 0; i < layers->place_count; i++) {
    least = fmin(least, p->x[i] - width_of(p, i) / 2);
    most = fmax(most, p->x[i] + width_of(p, i) / 2);
  }
  for (uint32_t i = 0; i < layers->place_count; i++) layers->x[i] = (int32_t)floor(p->x[i] - least + 0.5);
  layers->width = (int32_t)ceil(most - least);
}

static uint32_t widest_row(const rondo_ordering *o) {
  uint32_t widest = 0;
  for (uint32_t l = 0; l < o->layers->layer_count; l++) {
    const uint32_t count = o->row_start[l + 1] - o->row_start[l];
    if (count > widest) widest = count;
  }
  return widest;
}

rondo_status rondo_layers_place(const rondo_ordering *ordering) {
  const rondo_allocator *allocator = &ordering->layers->allocator;
  const size_t places = ordering->layers->place_count, widest = widest_row(ordering);
  placer p = {.ordering = ordering};
  rondo_status status = rondo_allocate_items(allocator, places, sizeof *p.x, &p.x);
  if (status == RONDO_OK) status = rondo_allocate_items(allocator, widest, sizeof *p.taken, &p.taken);
  if (status == RONDO_OK) status = rondo_allocate_items(allocator, widest, sizeof *p.pools, &p.pools);
  if (status == RONDO_OK) {
    place_all(&p);
    hand_over(&p);
  }
  rondo_release(allocator, p.pools, widest, sizeof *p.pools);
  rondo_release(allocator, p.taken, widest, sizeof *p.taken);
  rondo_release(allocator, p.x, places, sizeof *p.x);
  return status;
}
