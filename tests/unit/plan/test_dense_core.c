/* SPDX-License-Identifier: MIT
 * Planning the dense core of large problems first: neighbors compared with their definition, repairs that give a plan
 * or report that they gave up, plans near the bound without a search, and failing allocators (groundwork of GM-11).
 */
#include "base/array.h"
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

static void make_set(rondo_scratch *scratch, const rondo_plan_item *items, uint32_t count, rondo_box_set *set) {
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = items, .count = count};
  assert_ok(rondo_box_set_make(scratch, &problem, set));
}

static bool boxes_meet(const rondo_boxes *boxes, uint32_t a, uint32_t b) {
  return lives_meet(boxes->boxes[a].lower, boxes->boxes[a].upper, boxes->boxes[b].lower, boxes->boxes[b].upper);
}

UNIT_TEST(test_neighbours_are_those_that_live_together) {
  static rondo_plan_item items[BOXES];
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_scratch scratch = {.allocator = &allocator};
  const uint32_t longest[] = {1, 3, 30, 2 * BOXES};
  uint64_t seed = 1;
  for (size_t round = 0; round < 4; round++) {
    rondo_box_set set;
    rondo_neighbours neighbours;
    make_random_items(items, BOXES, longest[round], &seed);
    make_set(&scratch, items, BOXES, &set);
    assert_ok(rondo_neighbours_make(&scratch, &set.all, &neighbours));
    for (uint32_t i = 0; i < set.all.count; i++) {
      uint32_t met = 0;
      rondo_neighbours_find(&neighbours, i);
      for (uint32_t k = 0; k < set.all.count; k++) {
        if (k == i || !boxes_meet(&set.all, i, k)) continue;
        assert_true(met < neighbours.found_count);
        assert_int_equal(neighbours.found[met++], k);
      }
      assert_int_equal(met, neighbours.found_count);
      assert_int_equal(met, neighbours.counts[i]);
    }
    rondo_scratch_free(&scratch);
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
UNIT_TEST(test_a_repair_leaves_a_plan_or_gives_up) {
  static rondo_plan_item items[BOXES];
  static uint32_t order[BOXES];
  static uint8_t states[BOXES];
  static uint64_t offsets[BOXES];
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_scratch scratch = {.allocator = &allocator};
  uint64_t seed = 5;
  for (uint32_t i = 0; i < BOXES; i++) order[i] = BOXES - 1 - i;
  memset(states, RONDO_REPAIR_OUT, sizeof states);
  for (uint32_t round = 0; round < 6; round++) {
    rondo_box_set set;
    bool done = false;
    uint64_t scans = 0;
    rondo_neighbours neighbours;
    make_random_items(items, BOXES, 10U << round, &seed);
    make_set(&scratch, items, BOXES, &set);
    assert_ok(rondo_neighbours_make(&scratch, &set.all, &neighbours));
    rondo_repair repair = {&set.all, &neighbours, order, states, 2 * set.lower_bound, UINT64_MAX, 0, 0};
    assert_ok(rondo_repair_run(&allocator, &repair, offsets, &done, &scans));
    assert_true(done);
    assert_true(is_plan_of_boxes(&set.all, offsets, repair.limit));
    repair.limit = set.lower_bound;
    repair.most_scans = UINT64_C(100000);
    assert_ok(rondo_repair_run(&allocator, &repair, offsets, &done, &scans));
    if (done) assert_true(is_plan_of_boxes(&set.all, offsets, repair.limit));
    assert_true(scans <= repair.most_scans + BOXES);
    repair.most_scans = UINT64_MAX;
    repair.stop_scans = 1000;
    assert_ok(rondo_repair_run(&allocator, &repair, offsets, &done, &scans));
    assert_true(scans <= repair.stop_scans + BOXES);
    repair.most_scans = 0;
    assert_ok(rondo_repair_run(&allocator, &repair, offsets, &done, &scans));
    assert_false(done);
    rondo_scratch_free(&scratch);
  }
}

UNIT_TEST(test_large_problems_are_planned_near_the_bound) {
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

/* With so many items, the threads share cores of all sizes and the placement rules. */
UNIT_TEST(test_any_number_of_threads_plans_alike) {
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

/* One part of MORE boxes, each above the one before, to be planned around cores. */
typedef struct stack {
  rondo_allocator allocator;
  rondo_scratch scratch;
  rondo_box_set set;
  rondo_parts parts;
  rondo_part *part;
  uint32_t order[MORE];
  uint64_t base[MORE], offsets[MORE], stacked[MORE];
  uint64_t peak;
} stack;

static void make_stack(stack *s) {
  static rondo_plan_item items[MORE];
  uint64_t seed = 1;
  *s = (stack){.allocator = rondo_allocator_default()};
  s->scratch.allocator = &s->allocator;
  make_random_items(items, MORE, 300, &seed);
  make_set(&s->scratch, items, MORE, &s->set);
  assert_ok(rondo_parts_make(&s->allocator, &s->set, s->base, &s->parts));
  s->part = rondo_parts_highest(&s->parts);
  for (uint32_t i = 0; i < s->part->boxes.count; i++) {
    s->order[i] = i;
    s->stacked[i] = s->peak;
    s->peak += s->part->boxes.boxes[i].bytes;
  }
}

static void free_stack(stack *s) {
  rondo_array_free(&s->allocator, &s->parts);
  rondo_scratch_free(&s->scratch);
}

static rondo_core_cost improve_stack(stack *s, uint64_t most_steps, uint64_t *out_peak) {
  const rondo_allocator allocator = rondo_allocator_default();
  const rondo_core core = {.boxes = 300,
                           .repairs = 2,
                           .steps = 1000,
                           .effort = 40000,
                           .limit = s->part->lower_bound,
                           .most_steps = most_steps};
  rondo_core_cost cost;
  memcpy(s->offsets, s->stacked, sizeof s->offsets);
  *out_peak = s->peak;
  assert_ok(rondo_core_improve(&allocator, &core, s->part, s->order, s->offsets, out_peak, &cost));
  return cost;
}

/* A core does the same with as many steps as it needs and with more; with fewer it ends there, and leaves the plan. */
UNIT_TEST(test_a_core_ends_with_its_steps) {
  static stack s;
  uint64_t peak = 0, same = 0;
  make_stack(&s);
  const rondo_core_cost whole = improve_stack(&s, UINT64_MAX, &peak);
  const rondo_core_cost enough = improve_stack(&s, whole.needed, &same);
  assert_memory_equal(&whole, &enough, sizeof whole);
  assert_int_equal(same, peak);
  assert_true(whole.needed > 10 * MORE);
  for (uint64_t most = 0; most < whole.needed; most += 1 + whole.needed / 10) {
    const rondo_core_cost cost = improve_stack(&s, most, &same);
    assert_true(cost.needed > most);
    assert_true(cost.steps <= most + MORE);
    assert_int_equal(same, s.peak);
    assert_memory_equal(s.offsets, s.stacked, sizeof s.offsets);
  }
  free_stack(&s);
}

static uint64_t run_round(stack *s, uint64_t most_steps, uint32_t threads, uint64_t *out_peak) {
  const rondo_allocator allocator = rondo_allocator_default();
  const rondo_cores cores = {.round = 5, .most_steps = most_steps, .limit = s->part->lower_bound, .threads = threads};
  uint64_t steps = 0;
  memcpy(s->offsets, s->stacked, sizeof s->offsets);
  *out_peak = s->peak;
  assert_ok(rondo_cores_improve(&allocator, &cores, s->part, s->offsets, out_peak, &steps));
  return steps;
}

/* A round counts with the steps that it needs, and is of no account with fewer, on any number of threads. */
UNIT_TEST(test_a_round_that_lacks_steps_does_not_count) {
  static stack s;
  static uint64_t offsets[MORE];
  uint64_t whole = 0, peak = 0;
  make_stack(&s);
  const uint64_t steps = run_round(&s, UINT64_MAX, 1, &whole);
  assert_true(whole < s.peak);
  for (uint64_t most = 0; most <= 2 * steps; most += 1 + steps / 5) {
    const uint64_t own = run_round(&s, most, 1, &peak);
    assert_true(own <= most && peak == (own == steps ? whole : s.peak));
    memcpy(offsets, s.offsets, sizeof offsets);
    for (uint32_t threads = 2; threads <= 3; threads++) {
      assert_int_equal(run_round(&s, most, threads, &peak), own);
      assert_memory_equal(offsets, s.offsets, sizeof offsets);
    }
  }
  free_stack(&s);
}

/* Every allocation fails in turn, with a problem of which the core is planned. */
UNIT_TEST(test_failing_allocators_leak_nothing) {
  static rondo_plan_item items[FEWER];
  uint64_t seed = 1;
  make_random_items(items, FEWER, 300, &seed);
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = items, .count = FEWER};
  assert_allocations_may_fail(&problem, (rondo_plan_options){.fast_only = true}, 2000);
}
