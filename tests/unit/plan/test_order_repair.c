/* SPDX-License-Identifier: MIT
 * Repairs of plans on a partial order: results of the index compared with every pair, plans at a target compared with
 * every order of execution, and threads in parallel (GM-11: an item that is not ordered after a free never gets its
 * bytes).
 */
#include "order_tests.h"

#include "plan/partial_order/order_repair.h"
#include "support/test_allocator.h"
#include "support/test_effort.h"

/* What a repair needs of a problem. */
typedef struct repair_sample {
  rondo_allocator allocator;
  rondo_scratch scratch;
  rondo_branches branches;
  rondo_relation relation;
  rondo_lifetimes lifetimes;
  rondo_order_index index;
} repair_sample;

static void make_repair_sample(repair_sample *t, const rondo_plan_problem *problem, uint32_t max_chains) {
  *t = (repair_sample){.allocator = rondo_allocator_default()};
  t->scratch.allocator = &t->allocator;
  assert_ok(rondo_branches_make(&t->scratch, problem, &t->branches));
  assert_ok(rondo_relation_make(&t->scratch, problem->order, max_chains, &t->relation));
  assert_ok(rondo_lifetimes_make(&t->scratch, problem, &t->relation, &t->branches, &t->lifetimes));
  assert_ok(rondo_order_index_make(&t->scratch, &t->lifetimes, &t->index));
}

static void free_repair_sample(repair_sample *t) {
  rondo_relation_free(&t->allocator, &t->relation);
  rondo_scratch_free(&t->scratch);
}

/* Counts how often each item was found. */
static void count_conflicts(const repair_sample *t, const rondo_index_conflicts *found, unsigned *counts) {
  assert_true(found->range_count <= t->index.max_ranges);
  for (uint32_t i = 0; i < found->range_count; i++) {
    for (uint32_t k = found->ranges[i].begin; k < found->ranges[i].end; k++) counts[t->index.items[k]]++;
  }
  for (uint32_t i = 0; i < found->other_count; i++) counts[t->index.items[found->others[i]]]++;
}

static void assert_finds_conflicts(repair_sample *t) {
  const rondo_plan_problem *problem = t->lifetimes.problem;
  rondo_index_conflicts found;
  unsigned *counts = calloc(problem->count, sizeof *counts);
  assert_non_null(counts);
  assert_ok(rondo_index_conflicts_make(&t->scratch, &t->index, &found));
  for (uint32_t entry = 0; entry < t->index.count; entry++) {
    const rondo_conflict conflict = rondo_conflict_of(&t->lifetimes, &t->index.by_entry[entry]);
    rondo_order_index_find(&t->index, entry, &found);
    count_conflicts(t, &found, counts);
    for (size_t i = 0; i < problem->count; i++) {
      const bool may_overlap =
          problem->items[i].bytes > 0 && rondo_conflict_one(&t->lifetimes, &conflict, &t->lifetimes.pieces[i]);
      assert_int_equal(counts[i], may_overlap);
      counts[i] = 0;
    }
  }
  free(counts);
}

UNIT_TEST(test_the_index_finds_each_conflict_once) {
  uint64_t seed = 1;
  static order_sample s;
  static repair_sample t;
  for (unsigned round = 0; round < test_effort(2000); round++) {
    make_order_sample(&s, &seed, round % 2 == 0 ? 0 : WITH_BRANCHES, MAX_ITEMS);
    make_repair_sample(&t, &s.problem, round % 4);
    assert_finds_conflicts(&t);
    free_repair_sample(&t);
  }
}

/* Long chains, so that the index's tree has several levels; stages, as now and then all chains meet. */
UNIT_TEST(test_the_index_finds_conflicts_of_many) {
  enum { NODES = 1500, WIDTH = 3 };
  static rondo_plan_item items[NODES];
  static uint32_t start[NODES + 1], successors[3 * NODES];
  uint64_t seed = 2;
  for (unsigned round = 0; round < test_effort(4); round++) {
    uint32_t edges = 0;
    for (uint32_t v = 0; v < NODES; v++) {
      const uint32_t other = v + 1 + test_random_below(&seed, WIDTH);
      start[v] = edges;
      if (v + WIDTH < NODES) successors[edges++] = v + WIDTH;
      if (other != v + WIDTH && other < NODES && test_random_below(&seed, 20) == 0) successors[edges++] = other;
      const uint32_t steps = 1 + test_random_below(&seed, test_random_below(&seed, 10) == 0 ? 400 : 6);
      const uint32_t upper = v + WIDTH * steps;
      items[v] = (rondo_plan_item){.bytes = 1 + test_random_below(&seed, 99), .lower = v, .upper = upper};
      if (upper >= NODES) items[v].upper = RONDO_PLAN_FOREVER;
    }
    start[NODES] = edges;
    const rondo_plan_order order = {NODES, start, successors};
    const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = items, .count = NODES, .order = &order};
    static repair_sample t;
    make_repair_sample(&t, &problem, 0);
    assert_finds_conflicts(&t);
    free_repair_sample(&t);
  }
}

/* With everything out at first, or from another plan. */
UNIT_TEST(test_a_repaired_plan_ends_below_the_target) {
  uint64_t seed = 3;
  static order_sample s;
  static repair_sample t;
  const unsigned cases = test_effort(4000);
  unsigned done = 0;
  for (unsigned round = 0; round < cases; round++) {
    size_t offsets[MAX_ITEMS] = {0};
    rondo_order_repair repair;
    make_order_sample(&s, &seed, round % 8, MAX_ITEMS);
    make_repair_sample(&t, &s.problem, 0);
    const size_t first = 2 * s.max_live + 80;
    assert_ok(rondo_order_repair_make(&t.scratch, &t.index, &repair));
    rondo_order_repair_begin(&repair, NULL, first);
    for (size_t target = first; rondo_order_repair_run(&repair, 60);) {
      const size_t peak = rondo_order_repair_read(&repair, offsets);
      assert_true(is_order_plan(&s, offsets));
      assert_true(peak <= target);
      done++;
      if (peak <= s.max_live + 1) break;
      target = s.max_live + (peak - s.max_live) / 2;
      rondo_order_repair_begin(&repair, offsets, target);
      if (round % 5 == 0) rondo_order_repair_reset_costs(&repair, round);
    }
    free_repair_sample(&t);
  }
  assert_true(done > cases);
}

/* Numbers are kept in 32 bits: where bytes have more, in larger units. */
UNIT_TEST(test_huge_items_are_repaired) {
  uint64_t seed = 4;
  static order_sample s;
  static repair_sample t;
  const size_t factor = (size_t)1 << 52;
  const unsigned cases = test_effort(300);
  unsigned done = 0;
  for (unsigned round = 0; round < cases; round++) {
    size_t offsets[MAX_ITEMS] = {0};
    rondo_order_repair repair;
    make_order_sample(&s, &seed, 0, MAX_ITEMS);
    for (size_t i = 0; i < s.problem.count; i++) {
      if (s.items[i].bytes > 0) s.items[i].bytes = s.items[i].bytes * factor - test_random_below(&seed, 3);
    }
    make_repair_sample(&t, &s.problem, 0);
    const size_t target = (2 * s.max_live + 80) * factor;
    assert_ok(rondo_order_repair_make(&t.scratch, &t.index, &repair));
    rondo_order_repair_begin(&repair, NULL, target);
    if (rondo_order_repair_run(&repair, 60)) {
      assert_true(rondo_order_repair_read(&repair, offsets) <= target);
      assert_true(is_order_plan(&s, offsets));
      done++;
    }
    free_repair_sample(&t);
  }
  assert_true(done > cases * 5 / 6);
}
