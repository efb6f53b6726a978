/* SPDX-License-Identifier: MIT
 * Programs whose operators may run in parallel: the recorded graph has the dependencies of the data and no others, with
 * the minimum number of waits, and every form of a program gives the same bits (FW-1, FW-4, FW-9). A checking device
 * replays in other orders.
 */
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"
#include "support/test_program.h"
#include "support/test_random_program.h"

enum { EDGE = TEST_RANDOM_EDGE, CELLS = TEST_RANDOM_CELLS, STATES = TEST_RANDOM_STATES, STEPS = 4, MOST_WAITS = 1024 };

static const rondo_value none;

static const test_random_shape random_shape = {.most_operators = 16};

/* All that a program leaves after some steps. */
typedef struct outcome {
  float loss[STEPS], y[CELLS], states[STATES][CELLS];
} outcome;

static void train(rondo_compiled *compiled, outcome *out) {
  float numbers[CELLS];
  for (int i = 0; i < CELLS; i++) numbers[i] = (float)(i % 7) / 7 - 0.4f;
  assert_ok(rondo_compiled_write(compiled, "x", numbers, sizeof numbers));
  test_random_program_write_states(compiled);
  for (int i = 0; i < STEPS; i++) {
    assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_read(compiled, "loss", &out->loss[i], sizeof out->loss[i]));
  }
  assert_ok(rondo_compiled_read(compiled, "y", out->y, sizeof out->y));
  test_random_program_read_states(compiled, out->states);
}

static bool run_form(test_fixture *t, rondo_program *program, const rondo_compile_options *options, outcome *out) {
  memset(out, 0, sizeof *out);
  rondo_compiled *compiled = test_compile_kept(program, t->device, options);
  rondo_compiled_info info = test_compiled_info(compiled);
  train(compiled, out);
  assert_ok(rondo_compiled_destroy(compiled));
  return info.has_branches;
}

TEST(test_every_form_gives_the_same_bits) {
  uint32_t with_branches = 0;
  for (uint64_t seed = 1; seed <= test_effort(16); seed++) {
    uint64_t draws = seed;
    outcome straight, other;
    rondo_program *program = test_random_program(&random_shape, &draws);
    rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .branches = RONDO_BRANCHES_NEVER};
    assert_false(run_form(t, program, &options, &straight));
    options.branches = RONDO_BRANCHES_ALWAYS;
    with_branches += run_form(t, program, &options, &other);
    assert_memory_equal(&straight, &other, sizeof straight);
    (void)run_form(t, program, NULL, &other);
    assert_memory_equal(&straight, &other, sizeof straight);
    options.record = RONDO_RECORD_NEVER;
    (void)run_form(t, program, &options, &other);
    assert_memory_equal(&straight, &other, sizeof straight);
    rondo_program_destroy(program);
  }
  assert_true(with_branches > 0);
}

/* Two halves that meet at the end and are not ordered otherwise. */
TEST(test_independent_operators_become_branches) {
  const size_t shape[] = {EDGE, EDGE};
  rondo_program *program = test_new_program();
  rondo_value x, a, b;
  size_t nodes = 0, edges = 0;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  assert_ok(rondo_op_tanh(program, x, &a));
  assert_ok(rondo_op_tanh(program, a, &a));
  assert_ok(rondo_op_softmax(program, x, &b));
  assert_ok(rondo_op_softmax(program, b, &b));
  assert_ok(rondo_op_matmul(program, a, b, none, &a));
  assert_ok(rondo_program_output(program, "y", a));
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .branches = RONDO_BRANCHES_ALWAYS,
                                         .fusion = RONDO_FUSION_NEVER};
  rondo_compiled *compiled = test_compile(program, t->device, &options);
  rondo_compiled_info info = test_compiled_info(compiled);
  assert_int_equal(info.operators, 5);
  assert_int_equal(info.dependencies, 4);
  assert_true(info.has_branches);
  assert_ok(rondo_graph_nodes(rondo_compiled_graph(compiled), NULL, &nodes));
  assert_ok(rondo_graph_edges(rondo_compiled_graph(compiled), NULL, NULL, &edges));
  if (nodes == 5) assert_int_equal(edges, 4); /* a product can be more than one node */
  assert_true(edges <= nodes - 1);
}

/* The edges of a graph whose nodes are numbered in an order that they keep. */
typedef struct waits {
  size_t nodes, count;
  rondo_node from[MOST_WAITS], to[MOST_WAITS];
} waits;

static void get_waits(const rondo_graph *graph, waits *out) {
  out->count = MOST_WAITS;
  assert_ok(rondo_graph_nodes(graph, NULL, &out->nodes));
  assert_ok(rondo_graph_edges(graph, out->from, out->to, &out->count));
  assert_true(out->count <= MOST_WAITS);
}

/* Over others than the edge `left_out`. */
static bool reaches(const waits *w, rondo_node from, rondo_node to, size_t left_out) {
  for (size_t i = 0; i < w->count; i++) {
    if (i == left_out || w->to[i].id != to.id) continue;
    if (w->from[i].id == from.id || reaches(w, from, w->from[i], left_out)) return true;
  }
  return false;
}

/* A wait that others imply is one too many: no smaller set of edges gives the same order (Aho, Garey and Ullman 1972).
 * And no program waits more often side by side than its data make it. */
TEST(test_no_wait_is_one_too_many) {
  uint32_t with_branches = 0;
  for (uint64_t seed = 1; seed <= test_effort(16); seed++) {
    uint64_t draws = seed;
    waits w;
    rondo_program *program = test_random_program(&random_shape, &draws);
    const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .branches = RONDO_BRANCHES_ALWAYS};
    rondo_compiled *compiled = test_compile_kept(program, t->device, &options);
    rondo_compiled_info info = test_compiled_info(compiled);
    get_waits(rondo_compiled_graph(compiled), &w);
    for (size_t i = 0; i < w.count; i++) assert_false(reaches(&w, w.from[i], w.to[i], i));
    if (info.has_branches && w.nodes == info.operators) assert_int_equal(w.count, info.dependencies);
    with_branches += info.has_branches;
    assert_ok(rondo_compiled_destroy(compiled));
    rondo_program_destroy(program);
  }
  assert_true(with_branches > 0);
}
