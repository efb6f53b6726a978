/* SPDX-License-Identifier: MIT
 * Lowering: nested graphs become one list in topological order with the same reachability, joins keep the number of
 * edges small, and tags map the user's nodes to their indices.
 */
#define _GNU_SOURCE
#include "exec/launch/lowering.h"

#include <rondo/rondo.h>

#include "exec/launch/exec_check.h"
#include "exec/launch/exec_internal.h"
#include "exec/launch/instantiate.h"
#include "fault/fake_driver.h"
#include "support/rondo_test.h"

static int set_up(void **state) {
  static test_fixture fixture;
  fixture = (test_fixture){.device = fake_open(NULL)};
  *state = &fixture;
  return 0;
}

static int tear_down(void **state) {
  const test_fixture *fixture = *state;
  const bool clean = test_destroy_left();
  return fake_close(fixture->device) == 0 && clean ? 0 : -1;
}

/* Lowers a graph and checks the result. The caller frees the draft. */
static const rondo_lowering *lower(rondo_graph *graph, rondo_exec_draft *draft) {
  assert_ok(rondo_exec_draft_make("test", graph, false, draft));
  const rondo_lowering *lowering = &draft->lowering;
  rondo_lowering_check(lowering);
  for (uint32_t i = 0; i < lowering->nodes.count; i++)
    for (uint32_t k = lowering->successor_start[i]; k < lowering->successor_start[i + 1]; k++) {
      assert_true(lowering->successors[k] > i);
      assert_true(k == lowering->successor_start[i] || lowering->successors[k - 1] < lowering->successors[k]);
    }
  return lowering;
}

static rondo_node add_empty(rondo_graph *graph, const rondo_node *before, size_t count) {
  rondo_node node = {0};
  assert_ok(rondo_graph_add_empty(graph, before, count, &node));
  return node;
}

static rondo_node add_child(rondo_graph *graph, const rondo_node *before, size_t count, rondo_graph *child,
                            rondo_graph **out_own) {
  rondo_node node = {0};
  rondo_node_params params;
  assert_ok(rondo_graph_add_child(graph, before, count, child, &node));
  assert_ok(rondo_graph_get_params(graph, node, &params));
  if (out_own != NULL) *out_own = params.as.child;
  return node;
}

static bool reaches(const rondo_lowering *lowering, uint32_t from, uint32_t to) {
  if (from == to) return true;
  for (uint32_t i = lowering->successor_start[from]; i < lowering->successor_start[from + 1]; i++)
    if (lowering->successors[i] <= to && reaches(lowering, lowering->successors[i], to)) return true;
  return false;
}

#define LOWERING_TEST(name) TEST_REGISTER(name, test_fixture *t, set_up, tear_down, false)

/* head -> child {a, b -> c} -> tail, and an empty child next to it. */
LOWERING_TEST(test_nodes_of_a_child_replace_the_child_node) {
  rondo_graph *inner = test_graph(t), *nothing = test_graph(t), *outer = test_graph(t), *own = NULL;
  const rondo_node a = add_empty(inner, NULL, 0), b = add_empty(inner, NULL, 0), c = add_empty(inner, &b, 1);
  const rondo_node head = add_empty(outer, NULL, 0);
  const rondo_node child = add_child(outer, &head, 1, inner, &own), hole = add_child(outer, &head, 1, nothing, NULL);
  const rondo_node both[2] = {child, hole};
  const rondo_node tail = add_empty(outer, both, 2), apart = add_empty(outer, NULL, 0);
  rondo_exec_draft draft;
  const rondo_lowering *lowering = lower(outer, &draft);
  const uint32_t head_at = rondo_lowering_find(lowering, head), tail_at = rondo_lowering_find(lowering, tail);
  const uint32_t apart_at = rondo_lowering_find(lowering, apart);
  assert_int_equal(rondo_lowering_find(lowering, child), RONDO_INDEX_CHILD);
  assert_int_equal(rondo_lowering_find(lowering, a),
                   RONDO_INDEX_NONE); /* in the graph that was cloned into the child node */
  const rondo_node inside[3] = {{own->serial * (UINT64_C(1) << 32) + rondo_node_number(a)},
                                {own->serial * (UINT64_C(1) << 32) + rondo_node_number(b)},
                                {own->serial * (UINT64_C(1) << 32) + rondo_node_number(c)}};
  uint32_t at[3];
  for (int i = 0; i < 3; i++) {
    at[i] = rondo_lowering_find(lowering, inside[i]);
    assert_true(at[i] < lowering->nodes.count);
    assert_true(lowering->origins.items[at[i]].tag.id == inside[i].id);
    assert_true(reaches(lowering, head_at, at[i]) && reaches(lowering, at[i], tail_at));
    assert_false(reaches(lowering, apart_at, at[i]));
  }
  assert_true(reaches(lowering, at[1], at[2]));
  assert_false(reaches(lowering, at[0], at[2]) || reaches(lowering, at[0], at[1]));
  assert_int_equal(lowering->join_count, 1); /* the empty child */
  rondo_exec_draft_free(&draft);
}

/* n sinks of one child before n roots of another: n + n edges and a join, not n * n. */
LOWERING_TEST(test_wide_children_are_joined) {
  enum { WIDE = 300 };
  rondo_graph *wide = test_graph(t), *outer = test_graph(t);
  for (int i = 0; i < WIDE; i++) add_empty(wide, NULL, 0);
  const rondo_node first = add_child(outer, NULL, 0, wide, NULL);
  const rondo_node second = add_child(outer, &first, 1, wide, NULL);
  const rondo_node third = add_child(outer, &first, 1, wide, NULL);
  const rondo_node ends[2] = {second, third};
  add_empty(outer, ends, 2);
  rondo_exec_draft draft;
  const rondo_lowering *lowering = lower(outer, &draft);
  assert_true(lowering->predecessors.count <= 6 * WIDE);
  assert_int_equal(lowering->nodes.count - lowering->join_count, 3 * WIDE + 1);
  for (uint32_t i = 0; i < lowering->nodes.count - 1; i++)
    assert_true(reaches(lowering, i, (uint32_t)lowering->nodes.count - 1));
  rondo_exec_draft_free(&draft);
}

/* Random nested graphs: reachability in the lowered list is that in the graphs. */
typedef struct flat {
  rondo_node tags[400];
  bool before[400][400];
  size_t count;
} flat;

/* Adds `size` random nodes to a graph. Nodes without a child are noted in `all`, with their ancestors. `entry` marks
 * the ancestors of the whole graph; `out_all` receives the ancestors of a node after the graph. */
static void fill_random(test_fixture *t, rondo_graph *graph, int depth, uint64_t *random, flat *all, const bool *entry,
                        bool *out_all) {
  enum { SIZE = 6 };
  bool after[SIZE][400] = {{false}};
  rondo_node nodes[SIZE];
  for (int i = 0; i < SIZE; i++) {
    rondo_node before[SIZE];
    size_t count = 0;
    bool own[400] = {false};
    memcpy(own, entry, sizeof own);
    for (int k = 0; k < i; k++) {
      if (test_random_below(random, 3) != 0) continue;
      before[count++] = nodes[k];
      for (int j = 0; j < 400; j++) own[j] = own[j] || after[k][j];
    }
    if (depth > 0 && test_random_below(random, 3) == 0) {
      rondo_graph *empty = test_graph(t), *child = NULL;
      nodes[i] = add_child(graph, before, count, empty, &child);
      if (test_random_below(random, 4) != 0) fill_random(t, child, depth - 1, random, all, own, after[i]);
      for (int j = 0; j < 400; j++) after[i][j] = after[i][j] || own[j];
    } else {
      nodes[i] = add_empty(graph, before, count);
      const size_t at = all->count++;
      all->tags[at] = nodes[i];
      memcpy(all->before[at], own, sizeof own);
      memcpy(after[i], own, sizeof own);
      after[i][at] = true;
    }
    for (int j = 0; j < 400; j++) out_all[j] = out_all[j] || after[i][j];
  }
}

LOWERING_TEST(test_random_nesting) {
  flat *all = malloc(sizeof *all);
  for (uint64_t seed = 1; seed <= 40; seed++) {
    uint64_t random = seed;
    const bool entry[400] = {false};
    bool end[400] = {false};
    rondo_graph *graph = test_graph(t);
    memset(all, 0, sizeof *all);
    fill_random(t, graph, 3, &random, all, entry, end);
    rondo_exec_draft draft;
    const rondo_lowering *lowering = lower(graph, &draft);
    assert_int_equal(lowering->nodes.count - lowering->join_count, all->count);
    for (size_t i = 0; i < all->count; i++)
      for (size_t k = 0; k < i; k++) {
        const uint32_t from = rondo_lowering_find(lowering, all->tags[k]);
        const uint32_t to = rondo_lowering_find(lowering, all->tags[i]);
        assert_int_equal(from < to && reaches(lowering, from, to), all->before[i][k]);
      }
    rondo_exec_draft_free(&draft);
  }
  free(all);
}
