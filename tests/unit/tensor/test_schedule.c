/* SPDX-License-Identifier: MIT
 * Which operators run, in which order, and where their values are: repetitions, dependencies, early updates, and that
 * values that may be live together share no bytes; random programs compared with brute force.
 */
#include <stdio.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"
#include "tensor/compile/join_updates.h"
#include "tensor/compile/layout.h"
#include "tensor/program/operators.h"

static const rondo_value none;

/* Edges ------------------------------------------------------------------------------------------------------------ */

static rondo_edges random_edges(const rondo_allocator *allocator, uint64_t *seed, uint32_t count) {
  rondo_edges edges;
  uint32_t kept = 0;
  assert_ok(rondo_edges_make(allocator, count, (size_t)count * count, &edges));
  for (uint32_t q = 0; q < count; q++) {
    edges.start[q] = kept;
    for (uint32_t p = 0; p < q; p++) {
      if (test_random_below(seed, 4) == 0) edges.items[kept++] = p;
    }
  }
  edges.start[count] = kept;
  return edges;
}

static bool has_edge(const rondo_edges *edges, uint32_t p, uint32_t q) {
  for (uint32_t i = edges->start[q]; i < edges->start[q + 1]; i++) {
    if (edges->items[i] == p) return true;
  }
  return false;
}

/* Without the edge itself when `past` is set. */
static bool reaches(const rondo_edges *edges, uint32_t p, uint32_t q, bool past) {
  for (uint32_t i = edges->start[q]; i < edges->start[q + 1]; i++) {
    const uint32_t r = edges->items[i];
    if ((r == p && !past) || (r > p && reaches(edges, p, r, false))) return true;
  }
  return false;
}

static void assert_reduced(const rondo_edges *reduced, const rondo_edges *edges) {
  for (uint32_t q = 0; q < edges->count; q++) {
    for (uint32_t p = 0; p < q; p++) {
      assert_int_equal(reaches(reduced, p, q, false), reaches(edges, p, q, false));
      assert_int_equal(has_edge(reduced, p, q), has_edge(edges, p, q) && !reaches(edges, p, q, true));
    }
  }
}

UNIT_TEST(test_edges_that_others_imply_go) {
  const rondo_allocator allocator = rondo_allocator_default();
  for (uint64_t seed = 1; seed <= 40; seed++) {
    uint64_t draws = seed, again = seed;
    const uint32_t count = 1 + test_random_below(&draws, 14);
    again = draws;
    rondo_edges edges = random_edges(&allocator, &draws, count), reduced = random_edges(&allocator, &again, count);
    rondo_edges turned, narrow;
    assert_ok(rondo_edges_reduce(&allocator, &reduced));
    assert_reduced(&reduced, &edges);
    assert_ok(rondo_edges_transpose(&allocator, &reduced, count, &turned));
    assert_ok(rondo_edges_narrow(&allocator, &reduced, 2, NULL, &narrow));
    for (uint32_t q = 0; q < count; q++) {
      for (uint32_t p = 0; p < q; p++) assert_int_equal(has_edge(&reduced, p, q), has_edge(&turned, q, p));
      if (q >= 2) assert_true(reaches(&narrow, q - 2, q, false));
    }
    rondo_edges_free(&allocator, &edges);
    rondo_edges_free(&allocator, &reduced);
    rondo_edges_free(&allocator, &turned);
    rondo_edges_free(&allocator, &narrow);
  }
}

/* Positions 2 and 4 may overlap with all others; these form a chain. */
UNIT_TEST(test_free_positions_are_not_narrowed) {
  const rondo_allocator allocator = rondo_allocator_default();
  const bool is_free[] = {false, false, true, false, true, false};
  static const uint32_t chain[] = {0, 1, 3, 5};
  rondo_edges edges, narrow;
  assert_ok(rondo_edges_make(&allocator, 6, 1, &edges));
  assert_ok(rondo_edges_narrow(&allocator, &edges, 1, is_free, &narrow));
  assert_int_equal(narrow.start[6], 3);
  for (uint32_t i = 1; i < 4; i++) assert_true(has_edge(&narrow, chain[i - 1], chain[i]));
  rondo_edges_free(&allocator, &narrow);
  assert_ok(rondo_edges_narrow(&allocator, &edges, 2, is_free, &narrow));
  assert_int_equal(narrow.start[6], 2);
  for (uint32_t i = 2; i < 4; i++) assert_true(has_edge(&narrow, chain[i - 2], chain[i]));
  rondo_edges_free(&allocator, &narrow);
  rondo_edges_free(&allocator, &edges);
}

/* Programs --------------------------------------------------------------------------------------------------------- */

#define EDGE 16

static rondo_program *new_program(rondo_value *x) {
  const size_t shape[] = {EDGE, EDGE};
  rondo_program *program = test_new_program();
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, x));
  return program;
}

static rondo_value new_state(rondo_program *program, const char *name) {
  const size_t shape[] = {EDGE, EDGE};
  rondo_value state;
  assert_ok(rondo_program_state(program, name, RONDO_F32, shape, 2, &state));
  return state;
}

/* The sum of all elements' squares or so: any scalar. */
static rondo_value add_loss(rondo_program *program, rondo_value y, size_t elements) {
  const size_t row[] = {1, elements}, column[] = {elements, 1};
  rondo_value a, b, loss;
  assert_ok(rondo_op_reshape(program, y, row, 2, &a));
  assert_ok(rondo_op_reshape(program, y, column, 2, &b));
  assert_ok(rondo_op_matmul(program, a, b, none, &loss));
  assert_ok(rondo_op_reshape(program, loss, NULL, 0, &loss));
  return loss;
}

static void add_training(rondo_program *program, rondo_value loss, float rate) {
  rondo_value cell;
  assert_ok(rondo_program_cell(program, "rate", rate, &cell));
  const rondo_sgd_options options = {RONDO_SGD_OPTIONS_INIT, .learning_rate = cell};
  assert_ok(rondo_program_output(program, "loss", loss));
  assert_ok(rondo_program_sgd(program, loss, &options));
}

static size_t count_runs(const rondo_layout *layout, const rondo_program *program, const char *name) {
  size_t count = 0;
  for (uint32_t p = 0; p < layout->schedule.count; p++)
    count += strcmp(program->operations.items[layout->schedule.order[p]].row->name, name) == 0;
  return count;
}

UNIT_TEST(test_equal_operators_run_once) {
  const size_t flat[] = {EDGE * EDGE};
  rondo_value x, a, b, c, d, e;
  rondo_layout layout;
  rondo_program *program = new_program(&x);
  assert_ok(rondo_op_tanh(program, x, &a));
  assert_ok(rondo_op_tanh(program, x, &b));
  assert_ok(rondo_op_softmax(program, a, &c));
  assert_ok(rondo_op_softmax(program, b, &d));
  assert_ok(rondo_op_reshape(program, a, flat, 1, &e));
  assert_ok(rondo_op_softmax(program, e, &e)); /* the same bytes in another shape: not the same */
  assert_ok(rondo_program_output(program, "c", c));
  assert_ok(rondo_program_output(program, "d", d));
  assert_ok(rondo_program_output(program, "e", e));
  assert_ok(rondo_layout_make(program, NULL, &layout));
  assert_int_equal(count_runs(&layout, program, "tanh"), 1);
  assert_int_equal(count_runs(&layout, program, "softmax"), 2);
  assert_int_equal(layout.locations[(uint32_t)c.id - 1].offset, layout.locations[(uint32_t)d.id - 1].offset);
  assert_int_not_equal(layout.locations[(uint32_t)c.id - 1].offset, layout.locations[(uint32_t)e.id - 1].offset);
  rondo_layout_free(program, &layout);
  rondo_program_destroy(program);
}

/* A gradient dies with its update, so that the gradients of a deep network are never all there. */
UNIT_TEST(test_updates_run_early) {
  const size_t shape[] = {1, EDGE};
  char name[16];
  rondo_value x;
  rondo_layout layout;
  rondo_program *program = new_program(&x);
  assert_ok(rondo_program_input(program, "row", RONDO_F32, shape, 2, &x)); /* small compared with the weights */
  for (int i = 0; i < 12; i++) {
    (void)snprintf(name, sizeof name, "w%d", i);
    assert_ok(rondo_op_matmul(program, x, new_state(program, name), none, &x));
  }
  add_training(program, add_loss(program, x, EDGE), 0.1f);
  assert_ok(rondo_layout_make(program, &(rondo_layout_options){.branches = RONDO_BRANCHES_NEVER}, &layout));
  assert_int_equal(count_runs(&layout, program, "sgd"), 12);
  assert_true(layout.schedule.peak < layout.schedule.program_peak / 2);
  assert_false(layout.has_branches);
  assert_int_equal(layout.arena_bytes, layout.arena_bound);
  rondo_layout_free(program, &layout);
  rondo_program_destroy(program);
}

/* Many operators --------------------------------------------------------------------------------------------------- */

/* So many parallel towers of products, and their training. */
static rondo_program *new_towers(int towers) {
  rondo_value x, y = {0};
  char name[16];
  rondo_program *program = new_program(&x);
  for (int i = 0; i < towers; i++) {
    rondo_value tower = x;
    for (int k = 0; k < 4; k++) {
      (void)snprintf(name, sizeof name, "w%d.%d", i, k);
      assert_ok(rondo_op_matmul(program, tower, new_state(program, name), none, &tower));
      assert_ok(rondo_op_softmax(program, tower, &tower));
    }
    if (i == 0) y = tower;
    if (i > 0) assert_ok(rondo_op_add(program, y, tower, &y));
  }
  add_training(program, add_loss(program, y, EDGE * EDGE), 0.1f);
  return program;
}

static rondo_layout lay_out_towers(int towers) {
  rondo_program *program = new_towers(towers);
  rondo_layout layout;
  assert_ok(rondo_layout_make(program, NULL, &layout));
  const rondo_layout made = layout;
  rondo_layout_free(program, &layout);
  rondo_program_destroy(program);
  return made; /* its numbers */
}

/* Of twice as many operators, all ready side by side, twice as many are looked at and a little more. */
UNIT_TEST(test_orders_take_time_by_operators) {
  const rondo_layout few = lay_out_towers(64), many = lay_out_towers(128);
  if (many.schedule.looks > 3 * few.schedule.looks)
    fail_msg("%llu looks became %llu", (unsigned long long)few.schedule.looks, (unsigned long long)many.schedule.looks);
}

/* All towers side by side take far more bytes than one after the other, and no search finds a plan for that: only the
 * narrower branches that may fit are searched, once. */
UNIT_TEST(test_hopeless_branches_are_not_searched) {
  const rondo_layout many = lay_out_towers(128);
  assert_true(many.has_branches);
  assert_true(many.branch_bytes <= many.straight_bytes * 11 / 10);
  assert_true(many.branch_steps <= 20000);
  assert_false(many.ended_early);
}

/* Two lines of so many operators: the layout says that it did not look at branches. */
UNIT_TEST(test_too_many_operators_end_early) {
  rondo_value x, lines[2];
  rondo_layout layout;
  rondo_program *program = new_program(&x);
  lines[0] = x;
  assert_ok(rondo_op_tanh(program, x, &lines[1]));
  for (int i = 0; i < RONDO_MAX_REDUCED + 2; i++) assert_ok(rondo_op_softmax(program, lines[i % 2], &lines[i % 2]));
  assert_ok(rondo_program_output(program, "a", lines[0]));
  assert_ok(rondo_program_output(program, "b", lines[1]));
  assert_ok(rondo_layout_make(program, NULL, &layout));
  assert_true(layout.ended_early);
  assert_false(layout.has_branches);
  rondo_layout_free(program, &layout);
  rondo_program_destroy(program);
}

/* Joins ------------------------------------------------------------------------------------------------------------ */

/* Groups cover the order; in each, all are of one row and each follows on the one before it alone. */
static size_t count_kernels(const rondo_schedule *schedule, const rondo_program *program) {
  size_t kernels = 0;
  for (uint32_t first = 0; first < schedule->count; first += schedule->joined[first], kernels++) {
    const rondo_operator *row = program->operations.items[schedule->order[first]].row;
    const uint32_t end = first + schedule->joined[first];
    assert_true(schedule->joined[first] > 0 && end <= schedule->count);
    assert_true(end == first + 1 || schedule->joined[first] <= row->join->max);
    for (uint32_t p = first + 1; p < end; p++) {
      assert_int_equal(schedule->joined[p], 0);
      assert_ptr_equal(program->operations.items[schedule->order[p]].row, row);
      assert_int_equal(schedule->before.start[p + 1] - schedule->before.start[p], 1);
      assert_true(has_edge(&schedule->before, p - 1, p));
    }
  }
  return kernels;
}

/* Most bytes of results live at once, found again by brute force: a kernel's values are there while it runs. */
static size_t peak_by_kernels(const rondo_layout *layout, const rondo_program *program) {
  const rondo_schedule *schedule = &layout->schedule;
  size_t peak = 0;
  for (uint32_t p = 0; p < schedule->count; p++) {
    size_t live = 0;
    for (uint32_t v = 0; v < schedule->values; v++) {
      const rondo_location *location = &layout->locations[v];
      if (schedule->owners[v] != v || program->values.items[v].kind != RONDO_VALUE_RESULT) continue;
      if (location->block == RONDO_BLOCK_ARENA && location->first <= p && p <= location->last) live += location->bytes;
    }
    if (live > peak) peak = live;
  }
  return peak;
}

/* Of the same program alone and joined. */
static void assert_joins_cost_little(const rondo_program *program, size_t least_saved, size_t most_saved) {
  rondo_layout joined, alone;
  const rondo_layout_options never = {.branches = RONDO_BRANCHES_NEVER, .fusion = RONDO_FUSION_NEVER};
  assert_ok(rondo_layout_make(program, &(rondo_layout_options){.branches = RONDO_BRANCHES_NEVER}, &joined));
  assert_ok(rondo_layout_make(program, &never, &alone));
  const size_t saved = alone.schedule.count - count_kernels(&joined.schedule, program);
  assert_int_equal(count_kernels(&alone.schedule, program), alone.schedule.count);
  assert_in_range(saved, least_saved, most_saved);
  assert_int_equal(alone.schedule.peak, peak_by_kernels(&alone, program));
  assert_int_equal(joined.schedule.peak, peak_by_kernels(&joined, program));
  assert_true(joined.schedule.peak <= alone.schedule.peak + alone.schedule.peak / RONDO_JOIN_SHARE);
  rondo_layout_free(program, &joined);
  rondo_layout_free(program, &alone);
}

/* Of a deep network of one row the biases at least; with many rows, where activations outweigh gradients, all updates,
 * and most of the sums over rows. */
UNIT_TEST(test_small_updates_are_joined) {
  for (int many = 0; many < 2; many++) {
    const size_t shape[] = {many ? 64 : 1, EDGE}, vector[] = {EDGE};
    char name[16];
    rondo_value x, bias;
    rondo_program *program = new_program(&x);
    assert_ok(rondo_program_input(program, "rows", RONDO_F32, shape, 2, &x));
    for (int i = 0; i < 40; i++) {
      (void)snprintf(name, sizeof name, "w%d", i);
      const rondo_value w = new_state(program, name);
      name[0] = 'b';
      assert_ok(rondo_program_state(program, name, RONDO_F32, vector, 1, &bias));
      assert_ok(rondo_op_matmul(program, x, w, bias, &x));
      assert_ok(rondo_op_tanh(program, x, &x));
    }
    add_training(program, add_loss(program, x, shape[0] * EDGE), 0.1f);
    assert_joins_cost_little(program, many ? 76 + 34 : 39, many ? 77 + 39 : 77);
    rondo_program_destroy(program);
  }
}

/* Random programs -------------------------------------------------------------------------------------------------- */

static rondo_program *random_program(uint64_t *seed) {
  rondo_value values[40], x;
  rondo_program *program = new_program(&x);
  uint32_t count = 0;
  char name[16];
  values[count++] = x;
  for (int i = 0; i < 3; i++) {
    (void)snprintf(name, sizeof name, "w%d", i);
    values[count++] = new_state(program, name);
  }
  const uint32_t operators = 3 + test_random_below(seed, 25);
  for (uint32_t i = 0; i < operators; i++) {
    const rondo_value a = values[test_random_below(seed, count)], b = values[test_random_below(seed, count)];
    const uint32_t kind = test_random_below(seed, 3);
    if (kind == 0) assert_ok(rondo_op_tanh(program, a, &values[count]));
    if (kind == 1) assert_ok(rondo_op_softmax(program, a, &values[count]));
    if (kind == 2) assert_ok(rondo_op_matmul(program, a, b, none, &values[count]));
    count++;
  }
  assert_ok(rondo_program_output(program, "some", values[test_random_below(seed, count)]));
  assert_ok(rondo_op_matmul(program, values[count - 1], values[1], none, &x));
  add_training(program, add_loss(program, x, EDGE * EDGE), 0.01f);
  return program;
}

static bool touches(const rondo_layout *layout, const rondo_program *program, uint32_t position, uint32_t owner,
                    bool results_only) {
  const rondo_operation *operation = &program->operations.items[layout->schedule.order[position]];
  for (uint32_t k = 0; !results_only && k < RONDO_MAX_OPERANDS; k++) {
    if (operation->inputs[k] != RONDO_NO_VALUE && layout->schedule.owners[operation->inputs[k]] == owner) return true;
  }
  for (uint32_t r = 0; r < operation->row->result_count; r++) {
    if (layout->schedule.owners[operation->results[r]] == owner) return true;
  }
  return false;
}

/* Whether every use of `a` is over before `b` is made: in the order, or by dependencies. */
static bool dies_before(const rondo_layout *layout, const rondo_program *program, uint32_t a, uint32_t b) {
  if (program->values.items[a].kind == RONDO_VALUE_INPUT || program->values.items[b].kind == RONDO_VALUE_INPUT)
    return false;
  for (size_t i = 0; i < program->outputs.count; i++) {
    if (layout->schedule.owners[program->outputs.items[i].value] == a) return false;
  }
  for (uint32_t q = 0; q < layout->schedule.count; q++) {
    for (uint32_t p = 0; touches(layout, program, q, b, true) && p < layout->schedule.count; p++) {
      if (!touches(layout, program, p, a, false)) continue;
      if (!(layout->has_branches ? p < q && reaches(&layout->schedule.before, p, q, false) : p < q)) return false;
    }
  }
  return true;
}

static void assert_nothing_live_is_shared(const rondo_layout *layout, const rondo_program *program) {
  for (uint32_t a = 0; a < layout->schedule.values; a++) {
    for (uint32_t b = 0; b < a; b++) {
      const rondo_location *x = &layout->locations[a], *y = &layout->locations[b];
      if (layout->schedule.owners[a] != a || layout->schedule.owners[b] != b) continue;
      if (x->block != RONDO_BLOCK_ARENA || y->block != RONDO_BLOCK_ARENA) continue;
      if (x->offset + x->bytes <= y->offset || y->offset + y->bytes <= x->offset) continue;
      assert_true(dies_before(layout, program, a, b) || dies_before(layout, program, b, a));
    }
  }
}

/* By the meaning of a run: positions of the program's order, updates last, that touch a common value, one of them
 * writing it. */
static void assert_dependencies_are_kept(const rondo_layout *layout, const rondo_program *program) {
  const rondo_schedule *schedule = &layout->schedule;
  for (uint32_t p = 0; p < schedule->count; p++) {
    const rondo_operation *one = &program->operations.items[schedule->order[p]];
    for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++) {
      const uint32_t owner = one->inputs[k] == RONDO_NO_VALUE ? RONDO_NO_VALUE : schedule->owners[one->inputs[k]];
      for (uint32_t q = 0; owner != RONDO_NO_VALUE && q < schedule->count; q++) {
        const rondo_operation *other = &program->operations.items[schedule->order[q]];
        const bool makes = touches(layout, program, q, owner, true);
        const bool updates = other->row->updates != 0 && one->row->updates == 0 && other->inputs[0] == owner;
        if (makes) assert_true(reaches(&schedule->before, q, p, false));
        if (updates) assert_true(reaches(&schedule->before, p, q, false));
      }
    }
  }
}

UNIT_TEST(test_random_programs_keep_what_is_live) {
  for (uint64_t seed = 1; seed <= 60; seed++) {
    uint64_t draws = seed;
    rondo_program *program = random_program(&draws);
    for (int policy = RONDO_BRANCHES_AUTO; policy <= RONDO_BRANCHES_ALWAYS; policy++) {
      rondo_layout layout;
      const rondo_layout_options options = {.branches = (rondo_branch_policy)policy};
      assert_ok(rondo_layout_make(program, &options, &layout));
      assert_true(layout.schedule.peak <= layout.schedule.program_peak + layout.schedule.program_peak / 64);
      assert_true(layout.arena_bound <= layout.arena_bytes && layout.arena_bytes <= layout.arena_sum);
      if (policy == RONDO_BRANCHES_NEVER) assert_false(layout.has_branches);
      assert_true(count_kernels(&layout.schedule, program) <= layout.schedule.count);
      assert_nothing_live_is_shared(&layout, program);
      assert_dependencies_are_kept(&layout, program);
      rondo_layout_free(program, &layout);
    }
    assert_joins_cost_little(program, 0, 4);
    rondo_program_destroy(program);
  }
}
