/* SPDX-License-Identifier: MIT
 * Planning: known problems, random ones proved by the checker and against a pairwise comparison, quality on the shapes
 * of lifetimes that programs have, and failing allocators (FW-1: fixed addresses; groundwork of GM-11).
 */
#include <string.h>

#include "plan/profile.h"
#include "support/rondo_test.h"

#define MAX_ITEMS 600

static bool lives_overlap(const rondo_plan_item *a, const rondo_plan_item *b) {
  return a->lower < b->upper && b->lower < a->upper;
}

/* A plan, and what it says of itself. */
typedef struct planned {
  rondo_plan *plan;
  const size_t *offsets;
  rondo_plan_info info;
} planned;

/* The definition of a plan, word for word. */
static void assert_plan(const rondo_plan_problem *problem, const planned *made) {
  const rondo_plan_item *items = problem->items;
  size_t sum = 0;
  size_t top = 0;
  for (size_t i = 0; i < problem->count; i++) {
    const size_t offset = made->offsets[i];
    sum += items[i].bytes;
    if (offset + items[i].bytes > top) top = offset + items[i].bytes;
    if (items[i].alignment > 1) assert_int_equal(offset % items[i].alignment, 0);
    for (size_t j = 0; j < i; j++) {
      if (!lives_overlap(&items[i], &items[j])) continue;
      assert_true(items[i].bytes == 0 || items[j].bytes == 0 || offset >= made->offsets[j] + items[j].bytes ||
                  made->offsets[j] >= offset + items[i].bytes);
    }
  }
  assert_int_equal(made->info.count, problem->count);
  assert_int_equal(made->info.sum, sum);
  assert_int_equal(made->info.peak, top);
  assert_true(made->info.lower_bound <= made->info.peak);
}

static size_t bound_by_counting(const rondo_plan_problem *problem) {
  size_t most = 0;
  for (size_t i = 0; i < problem->count; i++) {
    size_t live = 0;
    for (size_t j = 0; j < problem->count; j++) {
      const uint32_t step = problem->items[i].lower;
      if (problem->items[j].lower <= step && step < problem->items[j].upper) live += problem->items[j].bytes;
    }
    if (live > most) most = live;
  }
  return most;
}

static planned make_plan(const rondo_plan_problem *problem) {
  planned made = {0};
  assert_ok(rondo_plan_make(problem, NULL, &made.plan));
  made.offsets = rondo_plan_offsets(made.plan);
  assert_ok(rondo_plan_get_info(made.plan, &made.info));
  assert_ok(rondo_plan_check(NULL, problem, made.offsets));
  assert_plan(problem, &made);
  return made;
}

static void test_nothing_to_plan(void **state) {
  (void)state;
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT};
  planned made = make_plan(&problem);
  assert_null(made.offsets);
  assert_int_equal(made.info.peak, 0);
  assert_int_equal(made.info.lower_bound, 0);
  assert_int_equal(made.info.alignment, 1);
  rondo_plan_destroy(made.plan);
}

static void test_items_that_do_not_meet_share(void **state) {
  (void)state;
  const rondo_plan_item items[] = {{.bytes = 100, .lower = 0, .upper = 4},
                                   {.bytes = 80, .lower = 4, .upper = 8},
                                   {.bytes = 60, .lower = 8, .upper = RONDO_PLAN_FOREVER}};
  const rondo_plan_problem problem = {.items = items, .count = 3};
  planned made = make_plan(&problem);
  assert_int_equal(made.info.peak, 100);
  assert_int_equal(made.info.lower_bound, 100);
  assert_int_equal(made.info.sum, 240);
  rondo_plan_destroy(made.plan);
}

static void test_items_that_meet_in_one_step_do_not_share(void **state) {
  (void)state;
  const rondo_plan_item items[] = {{100, 0, 0, 4, 0}, {80, 0, 3, 8, 0}};
  const rondo_plan_problem problem = {.items = items, .count = 2};
  planned made = make_plan(&problem);
  assert_int_equal(made.info.peak, 180);
  rondo_plan_destroy(made.plan);
}

static void test_items_without_bytes_are_in_nobodys_way(void **state) {
  (void)state;
  const rondo_plan_item items[] = {{0, 256, 0, 9, 0}, {64, 64, 2, 3, 0}, {0, 0, 2, 3, 0}};
  const rondo_plan_problem problem = {.items = items, .count = 3};
  planned made = make_plan(&problem);
  assert_int_equal(made.offsets[0], 0);
  assert_int_equal(made.offsets[2], 0);
  assert_int_equal(made.info.peak, 64);
  assert_int_equal(made.info.alignment, 256);
  rondo_plan_destroy(made.plan);
}

static void test_alignment_holds_and_is_reported(void **state) {
  (void)state;
  const rondo_plan_item items[] = {{1, 1, 0, 5, 0}, {100, 256, 0, 5, 0}, {3, 64, 0, 5, 0}, {7, 4096, 1, 2, 0}};
  const rondo_plan_problem problem = {.items = items, .count = 4};
  planned made = make_plan(&problem);
  assert_int_equal(made.info.alignment, 4096);
  rondo_plan_destroy(made.plan);
}

static void test_sizes_that_do_not_add_up_are_refused(void **state) {
  (void)state;
  const rondo_plan_item items[] = {{SIZE_MAX - 5, 0, 0, 1, 0}, {6, 0, 2, 3, 0}};
  const rondo_plan_problem sum = {.items = items, .count = 2};
  rondo_plan *plan = (rondo_plan *)(void *)&sum;
  assert_error(rondo_plan_make(&sum, NULL, &plan), RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE);
  assert_null(plan);
  const rondo_plan_item aligned[] = {{3, 0, 0, 1, 0}, {SIZE_MAX - 10, 0, 0, 1, 0}, {1, 4096, 0, 1, 0}};
  const rondo_plan_problem gaps = {.items = aligned, .count = 3};
  assert_error(rondo_plan_make(&gaps, NULL, &plan), RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE);
}

/* Forward values live until their mirror step, as in a training step. */
static size_t make_training(rondo_plan_item *items, uint32_t layers, uint64_t seed) {
  size_t count = 0;
  const uint32_t end = 4 * layers;
  for (uint32_t i = 0; i < layers; i++) {
    const size_t bytes = 256 * (1 + (size_t)test_random_below(&seed, 64));
    items[count++] = (rondo_plan_item){bytes, 256, i, end - i + 1, 0};                       /* activation */
    items[count++] = (rondo_plan_item){bytes, 256, end - i - 1, end - i + 1, 0};             /* its gradient */
    items[count++] = (rondo_plan_item){256 + bytes / 1024 * 256, 256, i, i + 2, 0};          /* scratch */
    items[count++] = (rondo_plan_item){256 * (1 + (size_t)i % 7), 256, end - i, end + 2, 0}; /* weight gradient */
  }
  return count;
}

static void test_training_steps_are_planned_near_the_bound(void **state) {
  (void)state;
  rondo_plan_item items[MAX_ITEMS];
  for (uint32_t layers = 1; layers <= 128; layers *= 2) {
    const rondo_plan_problem problem = {.items = items, .count = make_training(items, layers, layers)};
    planned made = make_plan(&problem);
    assert_true((double)made.info.peak <= 1.01 * (double)made.info.lower_bound);
    rondo_plan_destroy(made.plan);
  }
}

static size_t make_random(rondo_plan_item *items, uint64_t *seed) {
  const size_t count = 1 + test_random_below(seed, 80);
  const uint32_t steps = 1 + test_random_below(seed, 60);
  for (size_t i = 0; i < count; i++) {
    const uint32_t lower = test_random_below(seed, steps);
    const uint32_t upper = lower + 1 + test_random_below(seed, steps - lower);
    items[i] =
        (rondo_plan_item){test_random_below(seed, 300), (size_t)1 << test_random_below(seed, 6), lower, upper, 0};
  }
  return count;
}

static void test_random_problems_are_planned_right_and_alike(void **state) {
  (void)state;
  uint64_t seed = 1;
  rondo_plan_item items[MAX_ITEMS];
  for (int round = 0; round < 300; round++) {
    const rondo_plan_problem problem = {.items = items, .count = make_random(items, &seed)};
    planned made = make_plan(&problem);
    planned again = make_plan(&problem);
    assert_int_equal(made.info.lower_bound, bound_by_counting(&problem));
    assert_int_equal(made.info.peak, again.info.peak);
    assert_memory_equal(made.offsets, again.offsets, problem.count * sizeof *made.offsets);
    rondo_plan_destroy(made.plan);
    rondo_plan_destroy(again.plan);
  }
}

static void test_profile_says_the_most_within_a_life(void **state) {
  (void)state;
  const rondo_allocator allocator = rondo_allocator_default();
  const rondo_plan_item items[] = {{10, 0, 0, 10, 0}, {5, 0, 2, 5, 0}, {7, 0, 4, 5, 0}, {20, 0, 8, 9, 0}};
  const rondo_plan_problem problem = {.items = items, .count = 4};
  rondo_profile profile;
  assert_ok(rondo_profile_make(&allocator, &problem, &profile));
  const size_t most[] = {30, 22, 22, 30};
  for (size_t i = 0; i < 4; i++) assert_int_equal(rondo_profile_most(&profile, &items[i]), most[i]);
  assert_int_equal(rondo_profile_peak(&profile), 30);
  rondo_profile_free(&allocator, &profile);
}

/* The checker is told wrong plans, each wrong in one way. */
static void test_checker_finds_what_is_wrong(void **state) {
  (void)state;
  const rondo_plan_item items[] = {{100, 4, 0, 4, 0}, {50, 4, 2, 6, 0}, {10, 4, 5, 7, 0}};
  const rondo_plan_problem problem = {.items = items, .count = 3};
  size_t offsets[] = {0, 100, 0};
  assert_ok(rondo_plan_check(NULL, &problem, offsets));
  offsets[1] = 96;
  assert_fails(rondo_plan_check(NULL, &problem, offsets), RONDO_INVALID_DATA);
  assert_message("items 0 (100 bytes at 0, steps 0 up to 4) and 1 (50 bytes at 96, steps 2 up to 6)");
  offsets[1] = 98;
  assert_fails(rondo_plan_check(NULL, &problem, offsets), RONDO_INVALID_DATA);
  assert_message("not aligned to 4");
  offsets[1] = SIZE_MAX - 7;
  assert_fails(rondo_plan_check(NULL, &problem, offsets), RONDO_INVALID_DATA);
  assert_message("ends past");
  offsets[1] = 100;
  offsets[2] = 140;
  assert_fails(rondo_plan_check(NULL, &problem, offsets), RONDO_INVALID_DATA);
  assert_message("items 1 (50 bytes at 100, steps 2 up to 6) and 2");
}

/* Every wrong plan that moving one item can make is found, and no right one is refused. */
static void test_checker_agrees_with_the_definition(void **state) {
  (void)state;
  uint64_t seed = 7;
  rondo_plan_item items[MAX_ITEMS];
  size_t offsets[MAX_ITEMS];
  for (int round = 0; round < 200; round++) {
    const rondo_plan_problem problem = {.items = items, .count = make_random(items, &seed)};
    planned made = make_plan(&problem);
    memcpy(offsets, made.offsets, problem.count * sizeof *offsets);
    const size_t moved = test_random_below(&seed, (uint32_t)problem.count);
    const size_t alignment = items[moved].alignment;
    offsets[moved] = test_random_below(&seed, 1 + (uint32_t)made.info.peak) / alignment * alignment;
    bool right = true;
    for (size_t i = 0; i < problem.count; i++) {
      const bool apart =
          offsets[i] >= offsets[moved] + items[moved].bytes || offsets[moved] >= offsets[i] + items[i].bytes;
      const bool counts = i != moved && items[i].bytes > 0 && items[moved].bytes > 0;
      if (counts && lives_overlap(&items[i], &items[moved]) && !apart) right = false;
    }
    assert_int_equal(rondo_plan_check(NULL, &problem, offsets) == RONDO_OK, right);
    rondo_plan_destroy(made.plan);
  }
}

static void test_failing_allocators_leak_nothing(void **state) {
  (void)state;
  rondo_plan_item items[MAX_ITEMS];
  const rondo_plan_problem problem = {.items = items, .count = make_training(items, 16, 3)};
  rondo_status status = RONDO_OUT_OF_MEMORY;
  for (size_t fail_at = 1; status != RONDO_OK; fail_at++) {
    test_allocator allocator;
    test_allocator_init(&allocator);
    atomic_store(&allocator.fail_at, fail_at);
    const rondo_plan_options options = {.fast_only = true, .allocator = &allocator.table};
    rondo_plan *plan = NULL;
    status = rondo_plan_make(&problem, &options, &plan);
    assert_true(status == RONDO_OK || status == RONDO_OUT_OF_MEMORY);
    assert_int_equal(plan == NULL, status != RONDO_OK);
    rondo_plan_destroy(plan);
    assert_int_equal(atomic_load(&allocator.live), 0);
    assert_int_equal(atomic_load(&allocator.faults), 0);
    assert_true(fail_at < 1000);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nothing_to_plan),
      cmocka_unit_test(test_items_that_do_not_meet_share),
      cmocka_unit_test(test_items_that_meet_in_one_step_do_not_share),
      cmocka_unit_test(test_items_without_bytes_are_in_nobodys_way),
      cmocka_unit_test(test_alignment_holds_and_is_reported),
      cmocka_unit_test(test_sizes_that_do_not_add_up_are_refused),
      cmocka_unit_test(test_training_steps_are_planned_near_the_bound),
      cmocka_unit_test(test_random_problems_are_planned_right_and_alike),
      cmocka_unit_test(test_profile_says_the_most_within_a_life),
      cmocka_unit_test(test_checker_finds_what_is_wrong),
      cmocka_unit_test(test_checker_agrees_with_the_definition),
      cmocka_unit_test(test_failing_allocators_leak_nothing),
  };
  return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
