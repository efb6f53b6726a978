/* SPDX-License-Identifier: MIT
 * Layers for drawings: every edge goes down through its bends, nothing in a layer overlaps, trees have no crossings,
 * and the same graph gives the same picture.
 */
#include "render/graph_layers.h"

#include <stdlib.h>
#include <string.h>

#include "support/rondo_test.h"

enum { WIDTH = 40, GAP = 10, MOST = 80 };

/* A graph as edges between nodes in topological order. */
typedef struct edge_list {
  uint32_t nodes, count;
  uint32_t from[4 * MOST], to[4 * MOST];
} edge_list;

/* The input of rondo_layers_make, with edges by their first node. */
typedef struct layers_case {
  uint32_t start[MOST + 1], to[4 * MOST], widths[MOST];
  rondo_layers_input input;
} layers_case;

static void make_case(const edge_list *list, layers_case *out) {
  uint32_t count = 0;
  *out = (layers_case){.input = {.node_count = list->nodes, .gap = GAP}};
  for (uint32_t i = 0; i < list->nodes; i++) {
    out->start[i] = count;
    out->widths[i] = WIDTH + i % 3 * 8;
    for (uint32_t e = 0; e < list->count; e++)
      if (list->from[e] == i) out->to[count++] = list->to[e];
  }
  out->start[list->nodes] = count;
  out->input.start = out->start;
  out->input.to = out->to;
  out->input.widths = out->widths;
}

static uint32_t width_of(const layers_case *c, uint32_t place) {
  return place < c->input.node_count ? c->widths[place] : 0;
}

static void assert_edges_go_down(const layers_case *c, const rondo_layers *layers) {
  uint32_t bends = c->input.node_count;
  for (uint32_t i = 0; i < c->input.node_count; i++) {
    for (uint32_t e = c->start[i]; e < c->start[i + 1]; e++) {
      uint32_t at = layers->layer[i];
      assert_int_equal(layers->bend_start[e], bends);
      for (; bends < layers->bend_start[e + 1]; bends++) assert_int_equal(layers->layer[bends], ++at);
      assert_int_equal(layers->layer[c->to[e]], at + 1);
    }
  }
  assert_int_equal(bends, layers->vertex_count);
}

static void assert_nothing_overlaps(const layers_case *c, const rondo_layers *layers) {
  for (uint32_t a = 0; a < layers->vertex_count; a++) {
    const int32_t half = (int32_t)width_of(c, a) / 2;
    assert_true(layers->x[a] - half >= -1 && layers->x[a] + half <= layers->width + 1);
    for (uint32_t b = 0; b < a; b++) {
      if (layers->layer[a] != layers->layer[b]) continue;
      const int32_t apart = abs(layers->x[a] - layers->x[b]);
      assert_true(apart + 1 >= (int32_t)((width_of(c, a) + width_of(c, b)) / 2 + GAP)); /* 1 for rounding */
    }
  }
}

/* Every two edges between the same layers, by the places they pass. */
static uint64_t count_crossings(const layers_case *c, const rondo_layers *layers) {
  static uint32_t from[MOST * MOST], to[MOST * MOST];
  uint32_t links = 0;
  uint64_t crossings = 0;
  for (uint32_t i = 0; i < c->input.node_count; i++) {
    for (uint32_t e = c->start[i]; e < c->start[i + 1]; e++) {
      uint32_t at = i;
      for (uint32_t bend = layers->bend_start[e]; bend <= layers->bend_start[e + 1]; bend++) {
        from[links] = at;
        at = bend < layers->bend_start[e + 1] ? bend : c->to[e];
        to[links++] = at;
      }
    }
  }
  for (uint32_t a = 0; a < links; a++)
    for (uint32_t b = 0; b < a; b++)
      crossings += layers->layer[from[a]] == layers->layer[from[b]] &&
                   (int64_t)(layers->x[from[a]] - layers->x[from[b]]) * (layers->x[to[a]] - layers->x[to[b]]) < 0;
  return crossings;
}

static uint64_t lay_out(const edge_list *list) {
  const rondo_allocator allocator = rondo_allocator_default();
  layers_case c;
  rondo_layers layers, again;
  uint64_t places = 0;
  make_case(list, &c);
  assert_ok(rondo_layers_make(&allocator, &c.input, &layers));
  assert_ok(rondo_layers_count(&allocator, &c.input, &places));
  assert_int_equal(places, layers.vertex_count);
  assert_edges_go_down(&c, &layers);
  assert_nothing_overlaps(&c, &layers);
  const uint64_t crossings = count_crossings(&c, &layers);
  assert_ok(rondo_layers_make(&allocator, &c.input, &again));
  assert_memory_equal(again.x, layers.x, layers.vertex_count * sizeof *layers.x);
  rondo_layers_free(&again);
  rondo_layers_free(&layers);
  return crossings;
}

static void add(edge_list *list, uint32_t from, uint32_t to) {
  list->from[list->count] = from;
  list->to[list->count++] = to;
  if (to >= list->nodes) list->nodes = to + 1;
}

UNIT_TEST(test_nothing_and_one_node) {
  const edge_list none = {0}, one = {.nodes = 1}, apart = {.nodes = 5};
  assert_int_equal(lay_out(&none), 0);
  assert_int_equal(lay_out(&one), 0);
  assert_int_equal(lay_out(&apart), 0);
}

/* A chain with edges that pass over 1, 2, 4, ... nodes, and back together. */
UNIT_TEST(test_long_edges_are_bent) {
  edge_list list = {0};
  for (uint32_t i = 0; i < 20; i++) add(&list, i, i + 1);
  for (uint32_t over = 2; over <= 16; over *= 2) add(&list, 0, over);
  assert_true(lay_out(&list) <= 4);
}

/* Trees whose nodes come in an order that has crossings. */
UNIT_TEST(test_trees_have_no_crossings) {
  for (uint64_t seed = 1; seed <= 20; seed++) {
    edge_list list = {0};
    uint64_t random = seed;
    for (uint32_t i = 1; i < 40; i++) add(&list, test_random_below(&random, i < 4 ? 1 : i), i);
    assert_int_equal(lay_out(&list), 0);
  }
}

UNIT_TEST(test_two_chains_do_not_cross) {
  edge_list list = {.nodes = 2};
  for (uint32_t i = 0; i + 2 < 30; i++) add(&list, i, i + 2);
  assert_int_equal(lay_out(&list), 0);
}

UNIT_TEST(test_random_graphs_are_laid_out) {
  for (uint64_t seed = 1; seed <= 60; seed++) {
    edge_list list = {0};
    uint64_t random = seed;
    const uint32_t nodes = 2 + test_random_below(&random, MOST - 2);
    for (uint32_t i = 1; i < nodes; i++) {
      const uint32_t first = test_random_below(&random, i), second = test_random_below(&random, i);
      add(&list, first, i);
      if (second != first) add(&list, second, i);
    }
    lay_out(&list);
  }
}

UNIT_TEST(test_layers_survive_a_lack_of_memory) {
  edge_list list = {0};
  layers_case c;
  for (uint32_t i = 0; i < 10; i++) add(&list, i / 2, i + 1);
  make_case(&list, &c);
  for (size_t at = 1;; at++) {
    test_allocator allocator;
    rondo_layers layers;
    test_allocator_init(&allocator);
    allocator.fail_at = at;
    const rondo_status status = rondo_layers_make(&allocator.table, &c.input, &layers);
    const bool reached = allocator.calls >= at;
    assert_int_equal(status, reached ? RONDO_OUT_OF_MEMORY : RONDO_OK);
    rondo_layers_free(&layers);
    assert_true(test_allocator_is_clean(&allocator));
    if (!reached) break;
  }
}
