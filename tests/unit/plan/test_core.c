/* SPDX-License-Identifier: MIT
 * Planning the core of large problems first: neighbours found as by their definition, repairs that leave a plan or say
 * that they gave up, plans near the bound without a search, and failing allocators (groundwork of GM-11).
 */
#include "plan/interval/dense_core.h"
#include "plan/interval/overlapping_boxes.h"
#include "plan/search/ejection_chains.h"
#include "support/test_allocator.h"
#include "support/test_effort.h"
#include "unit/plan/plan_tests.h"

enum { BOXES = 500, MANY = 3000, MORE = 6500, FEWER = 1600 };

static void make_random_items(rondo_plan_item *items, uint32_t count, uint32_t longest, uint64_t *seed) {
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t lower = test_random_below(seed, count);
    const size_t least = (size_t)64 << test_random_below(seed, 8);
    items[i] = (rondo_plan_item){.bytes = least + test_random_below(seed, (uint32_t)least),
                                 .lower = lower,
                                 .upper = lower + 1 + test_random_below(seed, longest)};
  }
}

static void make_set(const rondo_plan_item *items, uint32_t count, rondo_box_set *set) {
  const rondo_allocator allocator = rondo_allocator_default();
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = items, .count = count};
  assert_ok(rondo_box_set_make(&allocator, &problem, set));
}

static bool boxes_meet(const rondo_boxes *boxes, uint32_t a, uint32_t b) {
  return lives_meet(boxes->boxes[a].lower, boxes->boxes[a].upper, boxes->boxes[b].lower, boxes->boxes[b].upper);
}

static void test_neighbours_are_those_that_live_together(void **state) {
  (void)state;
  static rondo_plan_item items[BOXES];
  const rondo_allocator allocator = rondo_allocator_default();
  const uint32_t longest[] = {1, 3, 30, 2 * BOXES};
  uint64_t seed = 1;
  for (size_t round = 0; round < 4; round++) {
    rondo_box_set set;
    rondo_neighbours neighbours;
    make_random_items(items, BOXES, longest[round], &seed);
    make_set(items, BOXES, &set);
    assert_ok(rondo_neighbours_make(&allocator, &set.all, &neighbours));
    for (uint32_t i = 0; i < set.all.count; i++) {
      uint32_t met = 0;
      rondo_neighbours_find(&neighbours, i);
      for (uint32_t k = 0; k < set.all.count; k++) {
        if (k == i || !boxes_meet(&set.all, i, k)) continue;
        assert_true(met < neighbours.met_count);
        assert_int_equal(neighbours.met[met++], k);
      }
      assert_int_equal(met, neighbours.met_count);
    }
    rondo_neighbours_free(&allocator, &neighbours);
    rondo_box_set_free(&allocator, &set);
  }
}

static bool is_plan_of_boxes(const rondo_boxes *boxes, const uint64_t *offsets, uint64_t limit) {
  for (uint32_t i = 0; i < boxes->count; i++) {
    if (offsets[i] + boxes->boxes[i].bytes > limit) return false;
    for (uint32_t k = 0; k < i; k++) {
      if (!boxes_meet(boxes, i, k)) continue;
      if (ranges_meet(offsets[i], boxes->boxes[i].bytes, offsets[k], boxes->boxes[k].bytes)) return false;
    }
  }
  return true;
}

/* With everything out at first, and twice the bytes that are live at once. */
static void test_a_repair_leaves_a_plan_or_gives_up(void **state) {
  (void)state;
  static rondo_plan_item items[BOXES];
  static uint32_t order[BOXES];
  static uint8_t states[BOXES];
  static uint64_t offsets[BOXES];
  const rondo_allocator allocator = rondo_allocator_default();
  uint64_t seed = 5;
  for (uint32_t i = 0; i < BOXES; i++) order[i] = BOXES - 1 - i;
  memset(states, RONDO_REPAIR_OUT, sizeof states);
  for (uint32_t round = 0; round < 6; round++) {
    rondo_box_set set;
    bool done = false;
    uint64_t looks = 0;
    make_random_items(items, BOXES, 10U << round, &seed);
    make_set(items, BOXES, &set);
    rondo_repair repair = {&set.all, order, states, 2 * set.lower_bound, UINT64_MAX, 0};
    assert_ok(rondo_repair_run(&allocator, &repair, offsets, &done, &looks));
    assert_true(done);
    assert_true(is_plan_of_boxes(&set.all, offsets, repair.limit));
    repair.limit = set.lower_bound;
    repair.most_looks = UINT64_C(100000);
    assert_ok(rondo_repair_run(&allocator, &repair, offsets, &done, &looks));
    if (done) assert_true(is_plan_of_boxes(&set.all, offsets, repair.limit));
    assert_true(looks <= repair.most_looks + BOXES);
    repair.most_looks = 0;
    assert_ok(rondo_repair_run(&allocator, &repair, offsets, &done, &looks));
    assert_false(done);
    rondo_box_set_free(&allocator, &set);
  }
}

static void test_large_problems_are_planned_near_the_bound(void **state) {
  (void)state;
  static rondo_plan_item items[MANY];
  uint32_t cores = 0;
  for (uint64_t seed = 1; seed <= test_effort(6); seed++) {
    uint64_t chance = seed;
    make_random_items(items, MANY, 300, &chance);
    const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = items, .count = MANY};
    const rondo_plan_options fast = {.fast_only = true};
    planned made = make_plan(&problem, &fast);
    const rondo_plan_options threads = {.fast_only = true, .threads = 3};
    planned again = make_plan(&problem, &threads);
    assert_memory_equal(made.offsets, again.offsets, MANY * sizeof *made.offsets);
    if (strcmp(made.info.method, "core") == 0) {
      cores++;
      assert_true((double)made.info.peak <= 1.03 * (double)made.info.lower_bound);
    }
    rondo_plan_destroy(again.plan);
    rondo_plan_destroy(made.plan);
  }
  assert_true(cores > 0);
}

/* Of so many, cores of all sizes and the rules beside each other are shared out among the threads. */
static void test_any_number_of_threads_plans_alike(void **state) {
  (void)state;
  static rondo_plan_item items[MORE];
  for (uint64_t seed = 1; seed <= test_effort(2); seed++) {
    uint64_t chance = seed;
    make_random_items(items, MORE, 900, &chance);
    const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = items, .count = MORE};
    const rondo_plan_options fast = {.fast_only = true};
    planned made = make_plan(&problem, &fast);
    for (uint32_t threads = 2; threads <= 4; threads += 2) {
      const rondo_plan_options shared = {.fast_only = true, .threads = threads};
      planned again = make_plan(&problem, &shared);
      assert_string_equal(made.info.method, again.info.method);
      assert_memory_equal(made.offsets, again.offsets, MORE * sizeof *made.offsets);
      rondo_plan_destroy(again.plan);
    }
    rondo_plan_destroy(made.plan);
  }
}

/* Every allocation fails in turn, with a problem of which the core is planned. */
static void test_failing_allocators_leak_nothing(void **state) {
  (void)state;
  static rondo_plan_item items[FEWER];
  uint64_t seed = 1;
  make_random_items(items, FEWER, 300, &seed);
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = items, .count = FEWER};
  assert_allocations_may_fail(&problem, (rondo_plan_options){.fast_only = true}, 2000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_neighbours_are_those_that_live_together),
      cmocka_unit_test(test_a_repair_leaves_a_plan_or_gives_up),
      cmocka_unit_test(test_large_problems_are_planned_near_the_bound),
      cmocka_unit_test(test_any_number_of_threads_plans_alike),
      cmocka_unit_test(test_failing_allocators_leak_nothing),
  };
  return cmocka_run_group_tests_name("plan core", tests, NULL, NULL);
}
