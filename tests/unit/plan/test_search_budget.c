/* SPDX-License-Identifier: MIT
 * Searching within a budget: the same plan for any number of threads, never a worse plan for more steps, an end at the
 * goal; with every kind of problem, and with failing allocators.
 */
#define _GNU_SOURCE
#include "../../../bench/plan_items.h"
#include "unit/plan/plan_tests.h"

/* Large items, few of them live at once: the greedy rules do not meet the bound. */
static void make_hard(sample *out, size_t items, uint64_t seed) {
  out->problem = (rondo_plan_problem){RONDO_PLAN_PROBLEM_INIT, .items = out->items, .count = items};
  for (size_t i = 0; i < items; i++) {
    const uint32_t lower = test_random_below(&seed, (uint32_t)items);
    out->items[i] = (rondo_plan_item){.bytes = 1 + test_random_below(&seed, 1000) * (1 + test_random_below(&seed, 4)),
                                      .lower = lower,
                                      .upper = lower + 1 + test_random_below(&seed, 30)};
  }
}

static void assert_same(const planned *a, const planned *b) {
  assert_int_equal(a->info.peak, b->info.peak);
  assert_int_equal(a->info.steps, b->info.steps);
  assert_int_equal(a->info.optimal, b->info.optimal);
  assert_string_equal(a->info.method, b->info.method);
  assert_memory_equal(a->offsets, b->offsets, a->info.count * sizeof *a->offsets);
}

UNIT_TEST(test_steps_give_the_same_plan_on_any_number_of_threads) {
  sample hard;
  for (uint64_t seed = 1; seed <= 6; seed++) {
    make_hard(&hard, 60 + 40 * (size_t)seed, seed);
    rondo_plan_options options = {.budget_steps = 100000 * seed, .seed = seed, .threads = 1};
    planned one = make_plan(&hard.problem, &options);
    assert_true(one.info.steps <= options.budget_steps);
    for (uint32_t threads = 2; threads <= 5; threads++) {
      options.threads = threads;
      planned several = make_plan(&hard.problem, &options);
      assert_same(&one, &several);
      rondo_plan_destroy(several.plan);
    }
    rondo_plan_destroy(one.plan);
  }
}

UNIT_TEST(test_more_steps_are_never_worse) {
  sample hard;
  bool improved = false;
  for (uint64_t seed = 1; seed <= 6; seed++) {
    make_hard(&hard, 40 * (size_t)seed, 100 + seed);
    const rondo_plan_options fast = {.fast_only = true};
    planned made = make_plan(&hard.problem, &fast);
    size_t peak = made.info.peak;
    assert_int_equal(made.info.steps, 0);
    rondo_plan_destroy(made.plan);
    for (uint64_t steps = 1; steps <= 1000000; steps = 3 * steps + 50) {
      const rondo_plan_options options = {.budget_steps = steps, .threads = 2};
      made = make_plan(&hard.problem, &options);
      assert_true(made.info.peak <= peak);
      assert_true(made.info.steps <= steps);
      improved = improved || made.info.peak < peak;
      peak = made.info.peak;
      rondo_plan_destroy(made.plan);
    }
  }
  assert_true(improved);
}

UNIT_TEST(test_every_kind_of_problem_is_searched) {
  uint64_t seed = 11;
  sample random;
  for (unsigned round = 0; round < test_effort(200); round++) {
    make_sample(&random, &seed, round % 16);
    const rondo_plan_options fast = {.fast_only = true};
    const rondo_plan_options options = {.budget_steps = 30000, .threads = 1 + round % 3, .seed = round};
    planned quick = make_plan(&random.problem, &fast);
    planned made = make_plan(&random.problem, &options);
    assert_true(made.info.peak <= quick.info.peak);
    assert_int_equal(made.info.lower_bound, quick.info.lower_bound);
    rondo_plan_destroy(quick.plan);
    rondo_plan_destroy(made.plan);
  }
}

/* A problem whose quick plan is returned, and is not the best. */
static planned make_beatable(sample *out) {
  const rondo_plan_options fast = {.fast_only = true};
  const rondo_plan_options slow = {.budget_steps = 1000000};
  for (uint64_t seed = 1; seed < 100; seed++) {
    make_hard(out, 200, seed);
    planned quick = make_plan(&out->problem, &fast);
    planned better = make_plan(&out->problem, &slow);
    const bool beaten = better.info.peak < quick.info.peak;
    rondo_plan_destroy(better.plan);
    if (beaten) return quick;
    rondo_plan_destroy(quick.plan);
  }
  fail_msg("no problem is hard");
  return (planned){0};
}

UNIT_TEST(test_search_ends_at_its_goal) {
  sample hard;
  planned quick = make_beatable(&hard);
  const rondo_plan_options met = {.budget_steps = UINT64_MAX, .capacity = quick.info.peak};
  planned made = make_plan(&hard.problem, &met);
  assert_true(made.info.peak <= met.capacity);
  assert_int_equal(made.info.steps, 0);
  rondo_plan_destroy(made.plan);
  const rondo_plan_options gap = {.budget_steps = UINT64_MAX, .gap = 3};
  made = make_plan(&hard.problem, &gap);
  assert_true(made.info.peak <= 3 * made.info.lower_bound);
  assert_int_equal(made.info.steps, 0);
  rondo_plan_destroy(made.plan);
  const rondo_plan_options lower = {.budget_steps = UINT64_C(100000000), .capacity = quick.info.peak - 1};
  made = make_plan(&hard.problem, &lower);
  assert_true(made.info.peak < quick.info.peak);
  assert_true(made.info.steps < lower.budget_steps);
  rondo_plan_destroy(made.plan);
  rondo_plan_destroy(quick.plan);
}

/* Cuts a rectangle of 4096 bytes and 256 steps, from step `first` on, into pieces until the list is full: packed again,
 * they need as much as is live at once. */
static void cut_rectangle(rondo_plan_item *items, size_t count, uint32_t first, uint64_t *seed) {
  items[0] = (rondo_plan_item){.bytes = 4096, .lower = first, .upper = first + 256};
  for (size_t made = 1; made < count;) {
    rondo_plan_item *piece = &items[test_random_below(seed, (uint32_t)made)];
    rondo_plan_item rest = *piece;
    if (test_random_below(seed, 2) == 0 && piece->bytes >= 16) {
      piece->bytes = 1 + test_random_below(seed, (uint32_t)piece->bytes - 1);
      rest.bytes -= piece->bytes;
    } else if (piece->upper - piece->lower >= 4) {
      piece->upper = piece->lower + 1 + test_random_below(seed, piece->upper - piece->lower - 1);
      rest.lower = piece->upper;
    } else {
      continue;
    }
    items[made++] = rest;
  }
}

/* Two parts, of which each has to be searched until it meets the bound, though the other one is as high. */
UNIT_TEST(test_parts_are_searched_down_to_the_bound) {
  sample cut = {.problem = {RONDO_PLAN_PROBLEM_INIT, .items = cut.items}};
  bool searched = false;
  for (uint64_t seed = 1; seed <= 12; seed++) {
    uint64_t chance = seed;
    cut_rectangle(cut.items, 70, 0, &chance);
    memcpy(cut.items + 70, cut.items, 70 * sizeof *cut.items);
    for (size_t i = 70; i < 140; i++) {
      cut.items[i].lower += 256;
      cut.items[i].upper += 256;
    }
    cut.problem.count = 140;
    const rondo_plan_options options = {.budget_steps = 20000000, .threads = 2};
    planned made = make_plan(&cut.problem, &options);
    assert_true(made.info.optimal);
    assert_int_equal(made.info.peak, 4096);
    searched = searched || strcmp(made.info.method, "search") == 0;
    rondo_plan_destroy(made.plan);
  }
  assert_true(searched);
}

/* Seven items that need more than is live at once, and a search that ends by itself because that is proved. */
UNIT_TEST(test_an_optimum_above_the_bound_is_reported) {
  rondo_plan_item items[] = {{64, 0, 2, 5, 0}, {32, 0, 3, 7, 0}, {64, 0, 6, 8, 0}, {65, 0, 7, 8, 0},
                             {34, 0, 5, 7, 0}, {64, 0, 0, 3, 0}, {33, 0, 4, 6, 0}};
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = items, .count = 7};
  const rondo_plan_options options = {.budget_steps = UINT64_MAX};
  planned made = make_plan(&problem, &options);
  assert_true(made.info.peak > made.info.lower_bound);
  assert_true(made.info.optimal);
  rondo_plan_destroy(made.plan);
  const rondo_plan_options fast = {.fast_only = true};
  made = make_plan(&problem, &fast);
  assert_false(made.info.optimal);
  rondo_plan_destroy(made.plan);
}

/* Too many items to be placed again as a whole: windows lower the peak, alike on any number of threads. */
UNIT_TEST(test_large_problems_are_mended_in_windows) {
  enum { MANY = 3000 };
  static rondo_plan_item items[MANY];
  uint64_t seed = 4;
  for (size_t i = 0; i < MANY; i++) {
    const uint32_t lower = test_random_below(&seed, MANY);
    items[i] = (rondo_plan_item){.bytes = 1 + test_random_below(&seed, 2000),
                                 .alignment = i % 2 == 0 ? 1 : 8,
                                 .lower = lower,
                                 .upper = lower + 1 + test_random_below(&seed, 60)};
  }
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = items, .count = MANY};
  const rondo_plan_options fast = {.fast_only = true};
  planned quick = make_plan(&problem, &fast);
  size_t peak = quick.info.peak;
  for (uint64_t steps = 1000; steps <= 256000; steps *= 4) {
    const rondo_plan_options one = {.budget_steps = steps};
    const rondo_plan_options two = {.budget_steps = steps, .threads = 2};
    planned a = make_plan(&problem, &one);
    planned b = make_plan(&problem, &two);
    assert_same(&a, &b);
    assert_true(a.info.peak <= peak && a.info.steps <= steps);
    peak = a.info.peak;
    rondo_plan_destroy(a.plan);
    rondo_plan_destroy(b.plan);
  }
  assert_true(peak < quick.info.peak);
  rondo_plan_destroy(quick.plan);
}

/* make_plan compares all pairs of items; for many, the checker has to do. Returns the peak in millionths of the bound,
 * rounded up. */
static uint64_t ratio_of_many(const input *in, const rondo_plan_options *options, planned *out) {
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = in->items, .count = in->count};
  assert_ok(rondo_plan_make(&problem, options, &out->plan));
  assert_ok(rondo_plan_get_info(out->plan, &out->info));
  out->offsets = rondo_plan_offsets(out->plan);
  assert_ok(rondo_plan_check(NULL, &problem, out->offsets));
  return (out->info.peak * UINT64_C(1000000) + out->info.lower_bound - 1) / out->info.lower_bound;
}

typedef struct many_items {
  void (*make)(input *in, size_t items, uint64_t seed);
  size_t items;
  uint64_t seed;
} many_items;

/* A training step of a large model, inference of a chain of layers, and items at random: the fast path comes near the
 * bound, and a budget of steps brings the plan nearer, with the same result on any number of threads. */
UNIT_TEST(test_many_items_use_their_budget) {
  static const many_items lists[] = {{make_blocks, 20000, 1},
                                     {make_blocks, 20000, 3},
                                     {make_chain, 30000, 7},
                                     {make_chain, 30000, 9},
                                     {make_random, 20000, 1}};
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
    input in = {.name = "many"};
    lists[i].make(&in, lists[i].items, lists[i].seed);
    const rondo_plan_options fast = {.fast_only = true};
    const rondo_plan_options one = {.budget_steps = 40 * in.count};
    const rondo_plan_options two = {.budget_steps = 40 * in.count, .threads = 2};
    planned quick = {0}, a = {0}, b = {0};
    assert_true(ratio_of_many(&in, &fast, &quick) <= 1002000);
    const uint64_t reached = ratio_of_many(&in, &one, &a);
    assert_true(reached <= 1000700);
    assert_true(a.info.peak < quick.info.peak || quick.info.optimal);
    (void)ratio_of_many(&in, &two, &b);
    assert_same(&a, &b);
    rondo_plan_destroy(quick.plan);
    rondo_plan_destroy(a.plan);
    rondo_plan_destroy(b.plan);
    free(in.items);
  }
}

/* Only what does not depend on the clock. */
UNIT_TEST(test_time_is_a_budget) {
  sample hard;
  make_hard(&hard, 300, 9);
  const rondo_plan_options fast = {.fast_only = true};
  const rondo_plan_options options = {.budget_ms = 20, .threads = 2};
  planned quick = make_plan(&hard.problem, &fast);
  planned made = make_plan(&hard.problem, &options);
  assert_true(made.info.peak <= quick.info.peak);
  assert_true(made.info.nanoseconds > 0);
  rondo_plan_destroy(quick.plan);
  rondo_plan_destroy(made.plan);
}

UNIT_TEST(test_failing_allocators_leak_nothing) {
  sample hard;
  make_hard(&hard, 60, 5);
  assert_allocations_may_fail(&hard.problem, (rondo_plan_options){.budget_steps = 20000, .threads = 2}, 2000);
}
