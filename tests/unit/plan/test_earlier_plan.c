/* SPDX-License-Identifier: MIT
 * Plans that begin with that of the same items in other sizes (PR-6): a plan of the same sizes is found again without a
 * search, one of proportional sizes too; offsets that are no plan of the items do no harm.
 */
#include "support/rondo_test.h"
#include "support/test_effort.h"

enum { ITEMS = 300, TRIES = 30, STEPS = 60 };

typedef struct sample {
  rondo_plan_item items[ITEMS];
  uint32_t successor_start[STEPS + 1], successors[2 * STEPS];
  rondo_plan_order order;
  rondo_plan_problem problem;
} sample;

/* Lives of intervals, or on an order of two streams that meet now and then. */
static void make_sample(sample *s, uint64_t *seed, bool is_order) {
  uint32_t edges = 0;
  for (uint32_t i = 0; i < STEPS; i++) {
    s->successor_start[i] = edges;
    if (i + 2 < STEPS) s->successors[edges++] = i + 2;
    if (i % 10 == 0 && i + 3 < STEPS) s->successors[edges++] = i + 3;
  }
  s->successor_start[STEPS] = edges;
  s->order = (rondo_plan_order){STEPS, s->successor_start, s->successors};
  for (size_t i = 0; i < ITEMS; i++) {
    const uint32_t lower = test_random_below(seed, STEPS - 4), length = 1 + test_random_below(seed, 8);
    const uint32_t upper = lower + (is_order ? 2 * length : length);
    s->items[i] = (rondo_plan_item){.bytes = 256 * (size_t)test_random_below(seed, 100),
                                    .alignment = 256,
                                    .lower = lower,
                                    .upper = upper < STEPS ? upper : RONDO_PLAN_FOREVER};
  }
  s->problem = (rondo_plan_problem){RONDO_PLAN_PROBLEM_INIT, .items = s->items, .count = ITEMS,
                                    .order = is_order ? &s->order : NULL};
}

static rondo_plan *plan(const sample *s, const size_t *start, double gap, rondo_plan_info *info) {
  const rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .budget_steps = 200, .gap = gap, .start = start};
  rondo_plan *made = NULL;
  *info = (rondo_plan_info){.struct_size = sizeof *info};
  assert_ok(rondo_plan_make(&s->problem, &options, &made));
  assert_ok(rondo_plan_get_info(made, info));
  assert_ok(rondo_plan_check(NULL, &s->problem, rondo_plan_offsets(made)));
  return made;
}

/* On an order, the first placement may be better. */
static void assert_reused(const rondo_plan_info *info, bool is_order, double gap) {
  if (!is_order) assert_string_equal(info->method, "earlier plan");
  assert_true(info->steps == 0 && (double)info->peak <= gap * (double)info->lower_bound);
}

UNIT_TEST(test_a_plan_is_found_again) {
  uint64_t seed = 7;
  static sample s;
  for (int try = 0; try < TRIES; try++) {
    rondo_plan_info first, again;
    make_sample(&s, &seed, try % 2 == 1);
    rondo_plan *made = plan(&s, NULL, 1.01, &first);
    const double reached = (double)first.peak / (double)first.lower_bound * 1.02;
    rondo_plan *same = plan(&s, rondo_plan_offsets(made), reached, &again);
    assert_reused(&again, try % 2 == 1, reached);
    assert_true(try % 2 == 1 || again.peak <= first.peak);
    rondo_plan_destroy(same);
    for (size_t i = 0; i < ITEMS; i++) s.items[i].bytes *= 3;
    same = plan(&s, rondo_plan_offsets(made), reached, &again);
    assert_reused(&again, try % 2 == 1, reached);
    rondo_plan_destroy(same);
    rondo_plan_destroy(made);
  }
}

/* Where the start is not good enough, the plan is as near as without it. */
UNIT_TEST(test_a_bad_start_does_no_harm) {
  uint64_t seed = 11;
  static sample s;
  size_t start[ITEMS];
  for (int try = 0; try < TRIES; try++) {
    rondo_plan_info alone, with;
    make_sample(&s, &seed, try % 2 == 1);
    for (size_t i = 0; i < ITEMS; i++) start[i] = try % 3 == 0 ? SIZE_MAX - i : test_random_below(&seed, 5);
    rondo_plan *made = plan(&s, NULL, 1.01, &alone);
    rondo_plan *other = plan(&s, start, 1.01, &with);
    assert_true((double)with.peak <= 1.1 * (double)alone.peak);
    rondo_plan_destroy(made);
    rondo_plan_destroy(other);
  }
}

/* Offsets that do not fit are those of a plan that is not taken; so is a start with obstacles. */
UNIT_TEST(test_starts_that_cannot_be_used) {
  const rondo_plan_item high[] = {
      {.bytes = SIZE_MAX / 4, .alignment = (size_t)1 << (8 * sizeof(size_t) - 2), .upper = 1},
      {.bytes = 1, .upper = 1},
      {.bytes = SIZE_MAX / 4, .alignment = (size_t)1 << (8 * sizeof(size_t) - 2), .upper = 1}};
  const rondo_plan_obstacle obstacle = {.offset = 0, .bytes = 8, .upper = 1};
  const size_t start[] = {1, 0, 2};
  const rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .start = start};
  rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = high, .count = 3};
  rondo_plan_info info = {.struct_size = sizeof info};
  rondo_plan *made = NULL;
  assert_ok(rondo_plan_make(&problem, &options, &made));
  rondo_plan_destroy(made);
  problem.count = 2;
  problem.obstacles = &obstacle;
  problem.obstacle_count = 1;
  assert_ok(rondo_plan_make(&problem, &options, &made));
  assert_ok(rondo_plan_get_info(made, &info));
  assert_string_not_equal(info.method, "earlier plan");
  rondo_plan_destroy(made);
}

UNIT_TEST(test_allocations_of_an_earlier_plan_fail) {
  uint64_t seed = 5;
  static sample s;
  for (int is_order = 0; is_order < 2; is_order++) {
    rondo_plan_info info;
    make_sample(&s, &seed, is_order == 1);
    rondo_plan *made = plan(&s, NULL, 1.01, &info);
    for (size_t fails_at = 1;; fails_at++) {
      test_allocator counting;
      test_allocator_init(&counting);
      atomic_store(&counting.fail_at, fails_at);
      const rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .gap = 2, .budget_steps = 10,
                                          .start = rondo_plan_offsets(made), .allocator = &counting.table};
      rondo_plan *other = NULL;
      const rondo_status status = rondo_plan_make(&s.problem, &options, &other);
      rondo_plan_destroy(other);
      assert_true(test_allocator_is_clean(&counting));
      if (status == RONDO_OK) break;
      assert_int_equal(status, RONDO_OUT_OF_MEMORY);
    }
    rondo_plan_destroy(made);
  }
}
