/* SPDX-License-Identifier: MIT
 * Order queries and boxes of the verifier against brute force: random graphs of many shapes against their transitive
 * closure, with clocks and with masks; random boxes against the bytes that they touch.
 */
#include "graph/byte_box.h"
#include "graph/node_params.h"
#include "graph/verify/happens_before.h"
#include "support/test_effort.h"
#include "unit/graph/graph_tests.h"

enum { MOST_NODES = 700, MOST_EDGES = 4000, MOST_PAIRS = 3000 };

typedef struct random_dag {
  uint32_t count;
  uint32_t starts[MOST_NODES + 1], successors[MOST_EDGES];
  bool edges[MOST_NODES][MOST_NODES];
  bool reaches[MOST_NODES][MOST_NODES];
} random_dag;

static void link(random_dag *dag, uint32_t from, uint32_t to) {
  if (from < to && to < dag->count) dag->edges[from][to] = true;
}

/* Chains, forks and joins, layers, or edges at random. */
static void add_edges(random_dag *dag, uint64_t *random) {
  const uint32_t shape = test_random_below(random, 4), width = 1 + test_random_below(random, dag->count);
  for (uint32_t i = 0; i < dag->count; i++) {
    if (shape == 0) link(dag, i, i + width);
    if (shape == 1) link(dag, i / width * width, i), link(dag, i, (i / width + 1) * width);
    if (shape == 2 && i >= width) link(dag, i - width + test_random_below(random, width), i);
    const uint32_t extra = shape == 3 ? 3 : test_random_below(random, 8) == 0;
    for (uint32_t k = 0; k < extra; k++) link(dag, test_random_below(random, i + 1), i);
  }
}

static void close_dag(random_dag *dag) {
  uint32_t filled = 0;
  for (uint32_t i = 0; i < dag->count; i++) {
    dag->starts[i] = filled;
    for (uint32_t k = i + 1; k < dag->count && filled < MOST_EDGES; k++)
      if (dag->edges[i][k]) dag->successors[filled++] = k;
  }
  dag->starts[dag->count] = filled;
  for (uint32_t i = dag->count; i-- > 0;)
    for (uint32_t e = dag->starts[i]; e < dag->starts[i + 1]; e++) {
      const uint32_t next = dag->successors[e];
      dag->reaches[i][next] = true;
      for (uint32_t k = next + 1; k < dag->count; k++) dag->reaches[i][k] |= dag->reaches[next][k];
    }
}

static void make_dag(random_dag *dag, uint64_t *random) {
  memset(dag, 0, sizeof *dag);
  dag->count = 1 + test_random_below(random, test_random_below(random, 4) == 0 ? MOST_NODES : 40);
  add_edges(dag, random);
  close_dag(dag);
}

static void check_pairs(const random_dag *dag, const rondo_allocator *allocator, uint32_t widest, uint64_t *random) {
  static rondo_order_pair pairs[MOST_PAIRS];
  const rondo_flat_edges edges = {
      .node_count = dag->count, .successor_start = dag->starts, .successors = dag->successors};
  rondo_verify_order order;
  assert_ok(rondo_verify_order_make(allocator, &edges, widest, &order));
  assert_int_equal(order.clocks != NULL, order.chain_count > 1 && order.chain_count <= widest);
  for (size_t i = 0; i < MOST_PAIRS; i++)
    pairs[i] = (rondo_order_pair){.before = test_random_below(random, dag->count),
                                  .after = test_random_below(random, dag->count)};
  assert_ok(rondo_verify_order_check(&order, pairs, MOST_PAIRS));
  for (size_t i = 0; i < MOST_PAIRS; i++) {
    bool ordered;
    const bool expected = dag->reaches[pairs[i].before][pairs[i].after];
    assert_int_equal(pairs[i].ordered, expected);
    if (rondo_verify_order_decide(&order, pairs[i].before, pairs[i].after, &ordered))
      assert_int_equal(ordered, expected);
  }
  rondo_verify_order_free(&order);
}

GRAPH_TEST(test_order_is_the_transitive_closure) {
  static random_dag dag;
  uint64_t random = 1;
  for (uint32_t i = test_effort(150); i > 0; i--) {
    make_dag(&dag, &random);
    check_pairs(&dag, &fixture->allocator.table, RONDO_ORDER_WIDEST, &random);
    check_pairs(&dag, &fixture->allocator.table, 0, &random);
  }
}

/* Boxes ----------------------------------------------------------------------------------------------------------- */

enum { FIELD = 400 };

static rondo_byte_box random_box(uint64_t *random) {
  const size_t width = 1 + test_random_below(random, 9), height = 1 + test_random_below(random, 5);
  const size_t pitch = height == 1 ? width : width + test_random_below(random, 8);
  const size_t slice = (height - 1) * pitch + width, depth = 1 + test_random_below(random, 3);
  const size_t slice_pitch = depth == 1 ? pitch * height : slice + test_random_below(random, 12);
  const uintptr_t begin = 1 + test_random_below(random, 120);
  return (rondo_byte_box){.begin = begin,
                          .end = begin + (depth - 1) * slice_pitch + slice,
                          .width = width,
                          .height = height,
                          .pitch = pitch,
                          .depth = depth,
                          .slice_pitch = slice_pitch};
}

static void paint(const rondo_byte_box *box, bool field[FIELD]) {
  memset(field, 0, FIELD * sizeof *field);
  for (size_t slice = 0; slice < box->depth; slice++)
    for (size_t row = 0; row < box->height; row++)
      for (size_t i = 0; i < box->width; i++)
        field[box->begin + slice * box->slice_pitch + row * box->pitch + i] = true;
}

UNIT_TEST(test_boxes_overlap_where_bytes_do) {
  uint64_t random = 2;
  const uint32_t cases = test_effort(200000);
  size_t overlaps = 0;
  for (uint32_t i = 0; i < cases; i++) {
    rondo_byte_box a = random_box(&random), b = random_box(&random);
    if (test_random_below(&random, 2) == 0 && a.depth == 1 && b.depth == 1 && b.width <= a.pitch) {
      b.pitch = b.height > 1 ? a.pitch : b.pitch; /* rectangles of one matrix */
      b.end = b.begin + (b.height - 1) * b.pitch + b.width;
      b.slice_pitch = b.pitch * b.height;
    }
    if (a.end > FIELD || b.end > FIELD) continue;
    bool a_field[FIELD], b_field[FIELD], expected = false;
    paint(&a, a_field);
    paint(&b, b_field);
    for (int k = 0; k < FIELD; k++) expected = expected || (a_field[k] && b_field[k]);
    assert_int_equal(rondo_byte_box_overlap(&a, &b), expected);
    overlaps += expected;
  }
  assert_true(overlaps > cases / 200);
}

/* Adjacent rows are a range. A copy has two boxes. A missing address has none. */
UNIT_TEST(test_boxes_of_nodes) {
  rondo_byte_box boxes[RONDO_MOST_EXTENTS];
  bool writes[RONDO_MOST_EXTENTS];
  rondo_node_params params = {.kind = RONDO_NODE_COPY,
                              .as.copy = {.dst = (void *)0x1000,
                                          .src = (const void *)0x2000,
                                          .width = 8,
                                          .height = 4,
                                          .depth = 2,
                                          .dst_pitch = 8,
                                          .src_pitch = 16}};
  rondo_node_params_resolve(&params);
  assert_int_equal(rondo_byte_box_of_node(&params, boxes, writes), 2);
  assert_true(writes[0] && !writes[1]);
  assert_true(rondo_byte_box_is_range(&boxes[0]) && boxes[0].end == 0x1040);
  assert_true(!rondo_byte_box_is_range(&boxes[1]) && boxes[1].end == 0x2078);
  params.as.copy.dst = NULL;
  assert_int_equal(rondo_byte_box_of_node(&params, boxes, writes), 1);
  assert_true(!writes[0] && boxes[0].begin == 0x2000);
  params =
      (rondo_node_params){.kind = RONDO_NODE_FILL,
                          .as.fill = {.dst = (void *)0x100, .element_bytes = 4, .width = 4, .height = 2, .pitch = 32}};
  rondo_node_params_resolve(&params);
  assert_int_equal(rondo_byte_box_of_node(&params, boxes, writes), 1);
  assert_true(writes[0] && boxes[0].width == 16 && boxes[0].end == 0x130);
}

/* Boxes of millions of rows with different pitches are not compared row by row. */
UNIT_TEST(test_huge_boxes_are_not_walked) {
  const rondo_byte_box a = {.begin = 0x100000,
                            .end = 0x100000 + ((UINT64_C(1) << 24) - 1) * 64 + 4,
                            .width = 4,
                            .height = 1 << 24,
                            .pitch = 64,
                            .depth = 1,
                            .slice_pitch = UINT64_C(64) << 24};
  rondo_byte_box b = a;
  b.begin += 8;
  b.pitch = 32;
  b.end = b.begin + ((UINT64_C(1) << 24) - 1) * 32 + 4;
  assert_int_equal(rondo_byte_box_overlap(&a, &b), RONDO_OVERLAP_UNKNOWN);
  b.pitch = 64;
  assert_int_equal(rondo_byte_box_overlap(&a, &b), RONDO_OVERLAP_NO);
}
