/* SPDX-License-Identifier: MIT
 * Planning on a partial order: small problems compared with every order of execution, larger ones with every pair, bad
 * input, failing allocators (GM-11: an item that is not ordered after a free never gets its bytes).
 */
#include "order_tests.h"

#include "plan/partial_order/order_bound.h"
#include "plan/partial_order/order_hull.h"
#include "plan/partial_order/order_lifetimes.h"
#include "support/test_allocator.h"
#include "support/test_effort.h"

static rondo_plan *plan_sample(const order_sample *s, const rondo_plan_options *options, rondo_plan_info *info) {
  rondo_plan *plan = NULL;
  assert_ok(rondo_plan_make(&s->problem, options, &plan));
  info->struct_size = sizeof *info;
  assert_ok(rondo_plan_get_info(plan, info));
  const size_t *offsets = rondo_plan_offsets(plan);
  assert_ok(rondo_plan_check(NULL, &s->problem, offsets));
  assert_true(is_order_plan(s, offsets));
  size_t top = 0;
  for (size_t i = 0; i < s->problem.count; i++) {
    if (offsets[i] + s->items[i].bytes > top) top = offsets[i] + s->items[i].bytes;
  }
  assert_int_equal(info->peak, top);
  assert_true(info->lower_bound <= info->peak);
  if (info->peak == info->lower_bound) assert_true(info->optimal);
  return plan;
}

UNIT_TEST(test_items_that_may_live_together_share_no_bytes) {
  uint64_t seed = 1;
  static order_sample s;
  for (unsigned round = 0; round < test_effort(4000); round++) {
    const rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .budget_steps = 1 + test_random_below(&seed, 400)};
    rondo_plan_info info = {0};
    make_order_sample(&s, &seed, round % 8, MAX_ITEMS);
    const bool by_the_clock = round % 3 == 0;
    rondo_plan_destroy(plan_sample(&s, by_the_clock ? NULL : &options, &info));
    if (round % 8 == 0 && !by_the_clock) assert_int_equal(info.lower_bound, s.max_live);
  }
}

UNIT_TEST(test_bounds_hold_and_peaks_are_near) {
  uint64_t seed = 2;
  static order_sample s;
  size_t sum = 0;
  size_t least_sum = 0;
  for (unsigned round = 0; round < test_effort(1500); round++) {
    const rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .budget_steps = 300};
    rondo_plan_info info = {0};
    size_t sequence[MAX_ITEMS];
    size_t offsets[MAX_ITEMS];
    make_order_sample(&s, &seed, round % 8, 6);
    rondo_plan_destroy(plan_sample(&s, &options, &info));
    for (size_t i = 0; i < s.problem.count; i++) sequence[i] = i;
    const size_t least = min_peak(&s, sequence, 0, offsets, 0, SIZE_MAX);
    assert_true(info.lower_bound <= least);
    assert_true(info.peak >= least);
    sum += info.peak;
    least_sum += least;
  }
  assert_true(sum <= least_sum + least_sum / 50);
}

UNIT_TEST(test_the_checker_finds_every_overlap_and_no_other) {
  uint64_t seed = 3;
  static order_sample s;
  const unsigned cases = test_effort(4000);
  unsigned wrong = 0;
  for (unsigned round = 0; round < cases; round++) {
    size_t offsets[MAX_ITEMS];
    make_order_sample(&s, &seed, round % 8, MAX_ITEMS);
    const uint32_t range = 1 + test_random_below(&seed, 120);
    for (size_t i = 0; i < s.problem.count; i++) {
      const size_t alignment = s.items[i].alignment == 0 ? 1 : s.items[i].alignment;
      offsets[i] = test_random_below(&seed, range) / alignment * alignment;
    }
    if (is_order_plan(&s, offsets)) {
      assert_ok(rondo_plan_check(NULL, &s.problem, offsets));
    } else {
      assert_fails(rondo_plan_check(NULL, &s.problem, offsets), RONDO_INVALID_DATA);
      wrong++;
    }
  }
  assert_in_range(wrong, cases / 4, cases * 39 / 40); /* both kinds were seen */
}

static size_t run_closure(const rondo_plan_problem *problem, const rondo_branches *branches, const uint32_t *taken,
                          uint64_t most_work, bool *out_exact) {
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_scratch scratch = {.allocator = &allocator};
  rondo_closure *closure = NULL;
  assert_ok(rondo_closure_make(&scratch, problem, branches, &closure));
  const size_t bytes = rondo_closure_run(closure, taken, most_work, UINT64_MAX, out_exact);
  rondo_scratch_free(&scratch);
  return bytes;
}

/* The serial bound is that of some execution, the closure that of the worst. */
UNIT_TEST(test_the_closure_is_the_worst_execution) {
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_scratch scratch = {.allocator = &allocator};
  uint64_t seed = 4;
  static order_sample s;
  unsigned raised = 0;
  for (unsigned round = 0; round < test_effort(3000); round++) {
    rondo_branches branches;
    rondo_order_bound bound;
    bool exact = false;
    make_order_sample(&s, &seed, round % 2 == 0 ? 0 : WITH_BRANCHES, MAX_ITEMS);
    assert_ok(rondo_branches_make(&scratch, &s.problem, &branches));
    assert_ok(rondo_serial_bound(&scratch, &s.problem, &branches, &bound));
    const size_t serial = bound.bytes;
    assert_true(serial <= s.max_live);
    const size_t most = run_closure(&s.problem, &branches, bound.taken, UINT64_MAX, &exact);
    assert_true(exact);
    assert_true(most >= serial && most <= s.max_live);
    if (round % 2 == 0) assert_int_equal(most, s.max_live);
    if (most > serial) raised++;
    assert_true(run_closure(&s.problem, &branches, bound.taken, round % 40, &exact) <=
                s.max_live); /* valid early too */
    rondo_scratch_free(&scratch);
  }
  assert_true(raised > 0);
}

/* With few chains, some nodes are loose; conflicts may then be added, but never lost. */
static void assert_relation(const order_sample *s, uint32_t max_chains) {
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_scratch scratch = {.allocator = &allocator};
  rondo_relation relation;
  rondo_branches branches;
  rondo_lifetimes lifetimes;
  rondo_hull hull;
  assert_ok(rondo_relation_make(&scratch, &s->order, max_chains, &relation));
  assert_ok(rondo_branches_make(&scratch, &s->problem, &branches));
  assert_ok(rondo_lifetimes_make(&scratch, &s->problem, &relation, &branches, &lifetimes));
  assert_ok(rondo_hull_make(&scratch, &lifetimes, &hull));
  for (size_t i = 0; i < s->problem.count; i++) {
    const rondo_conflict conflict = rondo_conflict_of(&lifetimes, &lifetimes.pieces[i]);
    for (size_t j = 0; j < s->problem.count; j++) {
      const bool found = rondo_conflict_one(&lifetimes, &conflict, &lifetimes.pieces[j]);
      const rondo_plan_item *a = &hull.copy.items[i], *b = &hull.copy.items[j];
      const bool overlap = a->lower < b->upper && b->lower < a->upper;
      if (i == j) continue;
      if (s->may_overlap[i][j]) assert_true(found);
      if (found && s->items[i].branch == 0 && s->items[j].branch == 0) assert_true(overlap);
      if (max_chains == 0) assert_true(found == s->may_overlap[i][j]);
    }
  }
  rondo_relation_free(&allocator, &relation);
  rondo_scratch_free(&scratch);
}

UNIT_TEST(test_items_that_may_live_together_conflict) {
  uint64_t seed = 5;
  static order_sample s;
  for (unsigned round = 0; round < test_effort(2000); round++) {
    make_order_sample(&s, &seed, round % 2 == 0 ? 0 : WITH_BRANCHES, MAX_ITEMS);
    assert_relation(&s, 0);
    assert_relation(&s, 1 + round % 3);
  }
}

/* Larger orders ---------------------------------------------------------------------------------------------------- */

typedef struct big_sample {
  rondo_plan_item *items;
  rondo_plan_branch branches[6];
  uint32_t *successor_start, *successors;
  rondo_plan_order order;
  rondo_plan_problem problem;
} big_sample;

/* `width` streams that wait for one another now and then; every item is freed further on in its stream. */
static void make_streams(big_sample *s, uint32_t nodes, uint32_t width, uint64_t seed) {
  s->items = calloc(nodes, sizeof *s->items);
  s->successor_start = calloc(nodes + 1, sizeof *s->successor_start);
  s->successors = calloc(2 * (size_t)nodes, sizeof *s->successors);
  assert_true(s->items != NULL && s->successor_start != NULL && s->successors != NULL);
  uint32_t edges = 0;
  for (uint32_t v = 0; v < nodes; v++) {
    s->successor_start[v] = edges;
    if (v + width < nodes) s->successors[edges++] = v + width;
    const uint32_t other = v + 1 + test_random_below(&seed, 3 * width);
    if (other < nodes && test_random_below(&seed, 5) == 0) s->successors[edges++] = other;
    const uint32_t upper = v + width * (1 + test_random_below(&seed, 9));
    const size_t bytes = 64 * (size_t)test_random_below(&seed, 40);
    s->items[v] = (rondo_plan_item){.bytes = bytes, .alignment = 64, .lower = v};
    s->items[v].upper = upper < nodes ? upper : RONDO_PLAN_FOREVER;
  }
  s->successor_start[nodes] = edges;
  s->order = (rondo_plan_order){nodes, s->successor_start, s->successors};
  s->problem = (rondo_plan_problem){RONDO_PLAN_PROBLEM_INIT, .items = s->items, .count = nodes, .order = &s->order};
}

static void free_big(big_sample *s) {
  free(s->items);
  free(s->successor_start);
  free(s->successors);
}

static rondo_plan_info plan_big(const big_sample *s, const rondo_plan_options *options) {
  rondo_plan *plan = NULL;
  rondo_plan_info info = {.struct_size = sizeof info};
  assert_ok(rondo_plan_make(&s->problem, options, &plan));
  assert_ok(rondo_plan_get_info(plan, &info));
  assert_ok(rondo_plan_check(NULL, &s->problem, rondo_plan_offsets(plan)));
  rondo_plan_destroy(plan);
  return info;
}

UNIT_TEST(test_more_steps_are_never_worse_and_repeat) {
  big_sample s;
  size_t last = SIZE_MAX;
  make_streams(&s, 300, 5, 6);
  for (uint64_t steps = 1; steps < test_effort(100000); steps *= 4) {
    rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .budget_steps = steps, .seed = 7};
    const rondo_plan_info first = plan_big(&s, &options);
    options.threads = 3;
    const rondo_plan_info second = plan_big(&s, &options);
    assert_true(first.peak <= last);
    assert_int_equal(first.peak, second.peak);
    assert_int_equal(first.steps, second.steps);
    last = first.peak;
  }
  free_big(&s);
}

/* Each ends when its time is over, or when one has reached the goal. */
UNIT_TEST(test_threads_search_in_parallel) {
  for (uint32_t round = 0; round < 6; round++) {
    big_sample s;
    make_streams(&s, 3000, 6, 20 + round);
    rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .budget_ms = 20 + 10 * round, .threads = 2 + round};
    if (round % 2 == 0) options.gap = 1.5;
    const rondo_plan_info info = plan_big(&s, &options);
    assert_true(info.peak >= info.lower_bound && info.peak < info.sum);
    free_big(&s);
  }
}

UNIT_TEST(test_goals_end_the_search) {
  big_sample s;
  make_streams(&s, 300, 5, 8);
  const rondo_plan_options fast = {RONDO_PLAN_OPTIONS_INIT, .fast_only = true};
  const size_t peak = plan_big(&s, &fast).peak;
  const rondo_plan_options fits = {RONDO_PLAN_OPTIONS_INIT, .budget_steps = 1000000, .capacity = 2 * peak};
  assert_true(plan_big(&s, &fits).steps < 1000000);
  const rondo_plan_options gap = {RONDO_PLAN_OPTIONS_INIT, .budget_steps = 1000000, .gap = 8};
  assert_true(plan_big(&s, &gap).steps < 1000000);
  free_big(&s);
}

UNIT_TEST(test_one_chain_is_planned_as_intervals) {
  big_sample s;
  make_streams(&s, 200, 1, 9);
  const rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .budget_steps = 20000};
  const rondo_plan_info info = plan_big(&s, &options);
  size_t most = 0;
  for (uint32_t v = 0; v < 200; v++) {
    size_t live = 0;
    for (uint32_t i = 0; i < 200; i++) live += i <= v && v <= s.items[i].upper ? s.items[i].bytes : 0;
    most = live > most ? live : most;
  }
  assert_int_equal(info.lower_bound, most);
  assert_true(info.peak <= most + most / 50);
  free_big(&s);
}

/* Nothing is ordered, so no two items may share. */
UNIT_TEST(test_independent_nodes_share_nothing) {
  big_sample s;
  make_streams(&s, 1000, 1000, 10);
  s.order = (rondo_plan_order){1000, calloc(1001, sizeof(uint32_t)), NULL};
  const rondo_plan_info info = plan_big(&s, NULL);
  assert_int_equal(info.peak, info.sum);
  assert_true(info.optimal);
  free((void *)(uintptr_t)s.order.successor_start);
  free_big(&s);
}

/* More streams than the maximum of chains: memory is linear, and the plan is checked. */
UNIT_TEST(test_a_very_wide_order_is_planned) {
  big_sample s;
  make_streams(&s, 70000, 300, 11);
  for (uint32_t i = 0; i < 70000; i++) {
    if (i % 30 != 0) s.items[i].bytes = 0;
  }
  const rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .fast_only = true};
  const rondo_plan_info info = plan_big(&s, &options);
  assert_true(info.peak < info.sum);
  free_big(&s);
}

UNIT_TEST(test_20000_items_are_checked_pair_by_pair) {
  big_sample s;
  rondo_plan *plan = NULL;
  uint64_t seed = 12;
  make_streams(&s, 20000, 6, 12);
  const rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .fast_only = true};
  assert_ok(rondo_plan_make(&s.problem, &options, &plan));
  size_t *offsets = calloc(s.problem.count, sizeof *offsets);
  assert_non_null(offsets);
  memcpy(offsets, rondo_plan_offsets(plan), s.problem.count * sizeof *offsets);
  assert_ok(rondo_plan_check(NULL, &s.problem, offsets));
  for (int round = 0; round < 10; round++) {
    /* Moves an item to the offset of one that its stream begins before the item ends. */
    const uint32_t item = 100 + test_random_below(&seed, 15000);
    if (s.items[item].bytes == 0 || s.items[item + 6].bytes == 0 || s.items[item].upper == item + 6) continue;
    const size_t kept = offsets[item];
    offsets[item] = offsets[item + 6];
    assert_fails(rondo_plan_check(NULL, &s.problem, offsets), RONDO_INVALID_DATA);
    offsets[item] = kept;
  }
  free(offsets);
  rondo_plan_destroy(plan);
  free_big(&s);
}

/* Branches --------------------------------------------------------------------------------------------------------- */

/* Steps of one order: branches of one choice share bytes, and items outside it do not. */
UNIT_TEST(test_intervals_with_branches) {
  const rondo_plan_branch branches[] = {{RONDO_PLAN_NO_BRANCH, 0}, {RONDO_PLAN_NO_BRANCH, 0}, {0, 0}, {0, 0}};
  const rondo_plan_item items[] = {
      {.bytes = 100, .lower = 0, .upper = 10, .branch = 1}, {.bytes = 90, .lower = 2, .upper = 8, .branch = 2},
      {.bytes = 40, .lower = 3, .upper = 5, .branch = 3},   {.bytes = 30, .lower = 3, .upper = 5, .branch = 4},
      {.bytes = 10, .lower = 0, .upper = 4, .branch = 0},   {.bytes = 10, .lower = 4, .upper = 9, .branch = 0}};
  const rondo_plan_obstacle obstacles[] = {{.offset = 20, .bytes = 5, .lower = 0, .upper = RONDO_PLAN_FOREVER}};
  rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = items, .count = 6, .branches = branches};
  problem.branch_count = 4;
  rondo_plan *plan = NULL;
  rondo_plan_info info = {.struct_size = sizeof info};
  assert_ok(rondo_plan_make(&problem, NULL, &plan));
  assert_ok(rondo_plan_get_info(plan, &info));
  assert_ok(rondo_plan_check(NULL, &problem, rondo_plan_offsets(plan)));
  assert_int_equal(info.peak, 150);
  assert_true(info.optimal);
  const size_t wrong[] = {0, 0, 80, 100, 140, 140};
  assert_error(rondo_plan_check(NULL, &problem, wrong), RONDO_INVALID_DATA, RONDO_REASON_OVERLAP);
  rondo_plan_destroy(plan);
  problem.obstacles = obstacles;
  problem.obstacle_count = 1;
  assert_ok(rondo_plan_make(&problem, NULL, &plan));
  assert_ok(rondo_plan_check(NULL, &problem, rondo_plan_offsets(plan)));
  assert_ok(rondo_plan_get_info(plan, &info));
  assert_true(info.lower_bound >= 155);
  rondo_plan_destroy(plan);
}

/* Bad input -------------------------------------------------------------------------------------------------------- */

UNIT_TEST(test_bad_orders_are_refused) {
  const uint32_t start[] = {0, 1, 2, 2, 2};
  const uint32_t forward[] = {1, 2};
  const uint32_t backward[] = {1, 0};
  const uint32_t outside[] = {1, 9};
  rondo_plan_order order = {4, start, forward};
  rondo_plan_item item = {.bytes = 8, .lower = 0, .upper = 2};
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = &item, .count = 1, .order = &order};
  const size_t offset = 0;
  rondo_plan *plan = NULL;
  assert_ok(rondo_plan_make(&problem, NULL, &plan));
  rondo_plan_destroy(plan);
  item.upper = 3; /* a later node, but not after node 0 */
  assert_error(rondo_plan_make(&problem, NULL, &plan), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_message("item 0");
  assert_message("node 3");
  assert_null(plan);
  assert_error(rondo_plan_check(NULL, &problem, &offset), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_message("node 3");
  item.upper = 4;
  assert_error(rondo_plan_make(&problem, NULL, &plan), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  item.upper = 2;
  order.successors = backward;
  assert_error(rondo_plan_make(&problem, NULL, &plan), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_message("from node 1 to node 0");
  order.successors = outside;
  assert_error(rondo_plan_make(&problem, NULL, &plan), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  const rondo_plan_obstacle obstacle = {.offset = 0, .bytes = 8, .lower = 1, .upper = 3};
  rondo_plan_problem obstructed = problem;
  obstructed.obstacles = &obstacle;
  obstructed.obstacle_count = 1;
  order.successors = forward;
  assert_error(rondo_plan_make(&obstructed, NULL, &plan), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_message("obstacle 0");
  order.node_count = 0; /* no node can allocate the item */
  assert_error(rondo_plan_make(&problem, NULL, &plan), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  item.upper = RONDO_PLAN_FOREVER;
  assert_error(rondo_plan_make(&problem, NULL, &plan), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_message("order of 0 nodes");
}

UNIT_TEST(test_offsets_that_do_not_fit_are_refused) {
  const uint32_t start[] = {0, 1, 1};
  const uint32_t successors[] = {1};
  const rondo_plan_order order = {2, start, successors};
  const rondo_plan_item items[] = {{.bytes = 3, .lower = 0, .upper = 1},
                                   {.bytes = SIZE_MAX - 10, .lower = 0, .upper = 1},
                                   {.bytes = 1, .alignment = 4096, .lower = 0, .upper = 1}};
  const rondo_plan_branch branches[] = {{RONDO_PLAN_NO_BRANCH, 0}, {RONDO_PLAN_NO_BRANCH, 0}};
  rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = items, .count = 3, .order = &order};
  problem.branches = branches;
  problem.branch_count = 2;
  rondo_plan *plan = NULL;
  assert_fails(rondo_plan_make(&problem, NULL, &plan), RONDO_LIMIT_EXCEEDED);
  assert_null(plan);
}

/* Above the obstacle is space for one item, which ends at the last offset. */
UNIT_TEST(test_an_item_at_the_last_offset_leaves_no_space) {
  const uint32_t start[] = {0, 1, 1}, successors[] = {1};
  const rondo_plan_order order = {2, start, successors};
  const rondo_plan_item items[] = {{.bytes = 10, .lower = 0, .upper = 1},
                                   {.bytes = 1, .lower = 0, .upper = 1},
                                   {.bytes = 5, .lower = 0, .upper = 1, .branch = 1},
                                   {.bytes = 5, .lower = 0, .upper = 1, .branch = 2}};
  const rondo_plan_obstacle obstacle = {.bytes = SIZE_MAX - 10, .upper = RONDO_PLAN_FOREVER};
  const rondo_plan_branch branches[] = {{RONDO_PLAN_NO_BRANCH, 0}, {RONDO_PLAN_NO_BRANCH, 0}};
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = items,      .count = 4,
                                      .obstacles = &obstacle,  .obstacle_count = 1, .order = &order,
                                      .branches = branches,    .branch_count = 2};
  rondo_plan *plan = NULL;
  assert_fails(rondo_plan_make(&problem, NULL, &plan), RONDO_LIMIT_EXCEEDED);
  assert_message("item 0 of a plan (10 bytes)");
}

/* Makes a plan, or checks one. */
static rondo_status make_or_check(const rondo_plan_problem *problem, const size_t *offsets,
                                  const rondo_allocator *allocator) {
  if (offsets != NULL) return rondo_plan_check(allocator, problem, offsets);
  const rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .budget_steps = 60, .allocator = allocator};
  rondo_plan *plan = NULL;
  const rondo_status status = rondo_plan_make(problem, &options, &plan);
  assert_true((status == RONDO_OK) == (plan != NULL));
  if (plan != NULL) assert_ok(rondo_plan_check(NULL, problem, rondo_plan_offsets(plan)));
  rondo_plan_destroy(plan);
  return status;
}

/* Lets every allocation fail in turn. Returns how many there are, plus 2. */
static size_t fail_each(const rondo_plan_problem *problem, const size_t *offsets) {
  rondo_status status = RONDO_OUT_OF_MEMORY;
  size_t fail_at = 1;
  for (; status == RONDO_OUT_OF_MEMORY; fail_at++) {
    test_allocator counting;
    test_allocator_init(&counting);
    counting.fail_at = fail_at;
    status = make_or_check(problem, offsets, &counting.table);
    assert_int_equal(counting.live, 0);
    assert_int_equal(counting.faults, 0);
  }
  assert_int_equal(status, RONDO_OK);
  return fail_at;
}

UNIT_TEST(test_failing_allocations_leave_nothing) {
  uint64_t seed = 13;
  static order_sample s;
  for (unsigned round = 0; round < 40; round += 40 / test_effort(40)) {
    make_order_sample(&s, &seed, round % 8, MAX_ITEMS);
    if (round >= 32) { /* as intervals */
      s.problem.order = NULL;
      for (size_t i = 0; i < s.problem.count; i++) s.items[i].upper = s.items[i].lower + 1 + (uint32_t)i % 3;
      for (size_t i = 0; i < s.problem.obstacle_count; i++) s.obstacles[i].upper = s.obstacles[i].lower + 2;
    }
    rondo_plan *plan = NULL;
    assert_ok(rondo_plan_make(&s.problem, NULL, &plan));
    assert_true(fail_each(&s.problem, NULL) > 10);
    fail_each(&s.problem, rondo_plan_offsets(plan));
    rondo_plan_destroy(plan);
  }
}
