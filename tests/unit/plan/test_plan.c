/* SPDX-License-Identifier: MIT
 * Planning: known problems; random ones, checked by rondo_plan_check and pair by pair; quality on the lifetimes that
 * programs have; and failing allocators (FW-1: fixed addresses; groundwork of GM-11).
 */
#include "plan/interval/live_bytes.h"
#include "unit/plan/plan_tests.h"

UNIT_TEST(test_nothing_to_plan) {
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT};
  planned made = make_plan(&problem, NULL);
  assert_null(made.offsets);
  assert_int_equal(made.info.peak, 0);
  assert_int_equal(made.info.lower_bound, 0);
  assert_int_equal(made.info.alignment, 1);
  rondo_plan_destroy(made.plan);
}

UNIT_TEST(test_items_that_do_not_meet_share) {
  const rondo_plan_item items[] = {{.bytes = 100, .lower = 0, .upper = 4},
                                   {.bytes = 80, .lower = 4, .upper = 8},
                                   {.bytes = 60, .lower = 8, .upper = RONDO_PLAN_FOREVER}};
  const rondo_plan_problem problem = {.items = items, .count = 3};
  planned made = make_plan(&problem, NULL);
  assert_int_equal(made.info.peak, 100);
  assert_int_equal(made.info.lower_bound, 100);
  assert_int_equal(made.info.sum, 240);
  rondo_plan_destroy(made.plan);
}

UNIT_TEST(test_items_that_meet_in_one_step_do_not_share) {
  const rondo_plan_item items[] = {{100, 0, 0, 4, 0}, {80, 0, 3, 8, 0}};
  const rondo_plan_problem problem = {.items = items, .count = 2};
  planned made = make_plan(&problem, NULL);
  assert_int_equal(made.info.peak, 180);
  rondo_plan_destroy(made.plan);
}

UNIT_TEST(test_items_without_bytes_are_in_nobodys_way) {
  const rondo_plan_item items[] = {{0, 256, 0, 9, 0}, {64, 64, 2, 3, 0}, {0, 0, 2, 3, 0}};
  const rondo_plan_problem problem = {.items = items, .count = 3};
  planned made = make_plan(&problem, NULL);
  assert_int_equal(made.offsets[0], 0);
  assert_int_equal(made.offsets[2], 0);
  assert_int_equal(made.info.peak, 64);
  assert_int_equal(made.info.alignment, 256);
  rondo_plan_destroy(made.plan);
}

UNIT_TEST(test_alignment_holds_and_is_reported) {
  const rondo_plan_item items[] = {{1, 1, 0, 5, 0}, {100, 256, 0, 5, 0}, {3, 64, 0, 5, 0}, {7, 4096, 1, 2, 0}};
  const rondo_plan_problem problem = {.items = items, .count = 4};
  planned made = make_plan(&problem, NULL);
  assert_int_equal(made.info.alignment, 4096);
  rondo_plan_destroy(made.plan);
}

/* Items of the large alignment share no block of it, whatever lies between them. */
UNIT_TEST(test_alignment_raises_the_bound) {
  const rondo_plan_item items[] = {
      {100, 4096, 0, 5, 0}, {4000, 4096, 1, 5, 0}, {4097, 4096, 2, 5, 0}, {64, 64, 0, 5, 0}, {9, 1, 0, 5, 0}};
  const rondo_plan_problem problem = {.items = items, .count = 5};
  planned made = make_plan(&problem, NULL);
  assert_int_equal(made.info.lower_bound, 2 * 4096 + 4097);
  assert_int_equal(made.info.peak, made.info.lower_bound);
  assert_true(made.info.optimal);
  rondo_plan_destroy(made.plan);
}

static bool fits_in(const rondo_plan_problem *problem, size_t *offsets, size_t placed, size_t capacity) {
  if (placed == problem->count) return true;
  const rondo_plan_item *item = &problem->items[placed];
  rondo_plan_problem so_far = *problem;
  so_far.count = placed + 1;
  for (size_t at = 0; at + item->bytes <= capacity; at += item->alignment) {
    offsets[placed] = at;
    if (is_plan(&so_far, offsets) && fits_in(problem, offsets, placed + 1, capacity)) return true;
  }
  return false;
}

UNIT_TEST(test_no_plan_is_below_the_bound) {
  uint64_t seed = 11;
  for (uint32_t i = test_effort(1000); i > 0; i--) {
    rondo_plan_item items[5];
    size_t offsets[5];
    const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = items, .count = 5};
    for (size_t k = 0; k < 5; k++) {
      const uint32_t lower = test_random_below(&seed, 4);
      items[k] = (rondo_plan_item){.bytes = 1 + test_random_below(&seed, 7),
                                   .alignment = (size_t)1 << test_random_below(&seed, 4),
                                   .lower = lower,
                                   .upper = lower + 1 + test_random_below(&seed, 3)};
    }
    planned made = make_plan(&problem, NULL);
    assert_false(fits_in(&problem, offsets, 0, made.info.lower_bound - 1));
    if (made.info.optimal) assert_false(fits_in(&problem, offsets, 0, made.info.peak - 1));
    rondo_plan_destroy(made.plan);
  }
}

UNIT_TEST(test_sizes_that_do_not_add_up_are_refused) {
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

UNIT_TEST(test_training_steps_are_planned_near_the_bound) {
  rondo_plan_item items[MAX_ITEMS];
  for (uint32_t layers = 1; layers <= 128; layers *= 2) {
    const rondo_plan_problem problem = {.items = items, .count = make_training(items, layers, layers)};
    const rondo_plan_options options = {.budget_steps = 20000};
    planned made = make_plan(&problem, &options);
    assert_true((double)made.info.peak <= 1.01 * (double)made.info.lower_bound);
    rondo_plan_destroy(made.plan);
  }
}

static const unsigned all_kinds[] = {0,         ALIGNED,   MIXED_ALIGNMENTS,    ALIGNED | FEW_SIZES,
                                     FEW_SIZES, OBSTACLES, OBSTACLES | ALIGNED, OBSTACLES | MIXED_ALIGNMENTS};

UNIT_TEST(test_random_problems_are_planned_right_and_alike) {
  uint64_t seed = 1;
  const rondo_plan_options fast = {.fast_only = true};
  sample random;
  for (size_t round = 0; round < test_effort(800); round++) {
    const unsigned kinds = all_kinds[round % (sizeof all_kinds / sizeof all_kinds[0])];
    make_sample(&random, &seed, kinds);
    planned made = make_plan(&random.problem, &fast);
    planned again = make_plan(&random.problem, &fast);
    if (kinds == 0 || kinds == FEW_SIZES) assert_int_equal(made.info.lower_bound, most_live(&random.problem));
    assert_int_equal(made.info.peak, again.info.peak);
    assert_memory_equal(made.offsets, again.offsets, random.problem.count * sizeof *made.offsets);
    rondo_plan_destroy(made.plan);
    rondo_plan_destroy(again.plan);
  }
}

/* The least peak that leaves room for the live bytes of every step and the obstacles. */
static size_t squeezed_bound(const rondo_plan_problem *problem) {
  size_t bound = 0;
  for (uint32_t step = 0; step < 70; step++) {
    size_t need = 0;
    for (size_t i = 0; i < problem->count; i++) {
      if (problem->items[i].lower <= step && step < problem->items[i].upper) need += problem->items[i].bytes;
    }
    size_t peak = 0;
    for (; need > 0; peak++) {
      bool held = false;
      for (size_t i = 0; i < problem->obstacle_count; i++) {
        const rondo_plan_obstacle *obstacle = &problem->obstacles[i];
        held = held || (obstacle->lower <= step && step < obstacle->upper && obstacle->offset <= peak &&
                        peak < obstacle->offset + obstacle->bytes);
      }
      if (!held) need--;
    }
    if (peak > bound) bound = peak;
  }
  return bound;
}

UNIT_TEST(test_obstacles_raise_the_bound) {
  uint64_t seed = 5;
  sample random;
  for (uint32_t i = test_effort(60); i > 0; i--) {
    make_sample(&random, &seed, OBSTACLES);
    planned made = make_plan(&random.problem, NULL);
    assert_int_equal(made.info.lower_bound, squeezed_bound(&random.problem));
    rondo_plan_destroy(made.plan);
  }
}

/* Room below, between and above; a range that is held only for a while is used before and after. */
UNIT_TEST(test_items_go_around_obstacles) {
  const rondo_plan_item items[] = {{.bytes = 100, .lower = 0, .upper = 10},
                                   {.bytes = 50, .lower = 0, .upper = 10},
                                   {.bytes = 20, .lower = 0, .upper = 3}};
  const rondo_plan_obstacle obstacles[] = {{.offset = 50, .bytes = 10, .upper = RONDO_PLAN_FOREVER},
                                           {.offset = 60, .bytes = 20, .lower = 3, .upper = 5}};
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = items, .count = 3, .obstacles = obstacles,
                                      .obstacle_count = 2};
  planned made = make_plan(&problem, NULL);
  assert_int_equal(made.offsets[1], 0);
  assert_int_equal(made.offsets[2], 60);
  assert_int_equal(made.offsets[0], 80);
  assert_int_equal(made.info.peak, 180);
  assert_true(made.info.optimal);
  rondo_plan_destroy(made.plan);
}

UNIT_TEST(test_profile_has_the_maximum_within_a_lifetime) {
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_scratch scratch = {.allocator = &allocator};
  rondo_box boxes[] = {{10, 0, 10}, {5, 2, 5}, {7, 4, 5}, {20, 8, 9}};
  const rondo_boxes all = {.boxes = boxes, .count = 4, .section_count = 10};
  rondo_live_bytes live;
  assert_ok(rondo_live_bytes_make(&scratch, &all, &live));
  const uint64_t most[] = {30, 22, 22, 30};
  for (size_t i = 0; i < 4; i++) {
    assert_int_equal(rondo_live_bytes_max(&live, boxes[i].lower, boxes[i].upper), most[i]);
  }
  assert_int_equal(live.tree[1].max, 30);
  assert_int_equal(live.whole[3], 15);
  rondo_scratch_free(&scratch);
}

/* The checker gets wrong plans, each wrong in one way. */
UNIT_TEST(test_checker_finds_what_is_wrong) {
  const rondo_plan_item items[] = {{100, 4, 0, 4, 0}, {50, 4, 2, 6, 0}, {10, 4, 5, 7, 0}};
  const rondo_plan_problem problem = {.items = items, .count = 3};
  size_t offsets[] = {0, 100, 0};
  assert_ok(rondo_plan_check(NULL, &problem, offsets));
  offsets[1] = 96;
  assert_error(rondo_plan_check(NULL, &problem, offsets), RONDO_INVALID_DATA, RONDO_REASON_OVERLAP);
  assert_message("item 0 (100 bytes at 0, steps 0 up to 4) and item 1 (50 bytes at 96, steps 2 up to 6)");
  offsets[1] = 98;
  assert_error(rondo_plan_check(NULL, &problem, offsets), RONDO_INVALID_DATA, RONDO_REASON_MISALIGNED);
  assert_message("not aligned to 4");
  offsets[1] = SIZE_MAX - 7;
  assert_error(rondo_plan_check(NULL, &problem, offsets), RONDO_INVALID_DATA, RONDO_REASON_OUT_OF_RANGE);
  assert_message("ends past");
  offsets[1] = 100;
  offsets[2] = 140;
  assert_error(rondo_plan_check(NULL, &problem, offsets), RONDO_INVALID_DATA, RONDO_REASON_OVERLAP);
  assert_message("item 1 (50 bytes at 100, steps 2 up to 6) and item 2");
}

/* Every wrong plan that moving one item can make is found, and no right one is refused. */
UNIT_TEST(test_checker_agrees_with_the_definition) {
  uint64_t seed = 7;
  sample random;
  size_t offsets[MAX_ITEMS];
  const size_t cases = test_effort(1600);
  size_t wrong = 0;
  for (size_t round = 0; round < cases; round++) {
    make_sample(&random, &seed, all_kinds[round % (sizeof all_kinds / sizeof all_kinds[0])]);
    const rondo_plan_problem *problem = &random.problem;
    planned made = make_plan(problem, NULL);
    memcpy(offsets, made.offsets, problem->count * sizeof *offsets);
    const size_t moved = test_random_below(&seed, (uint32_t)problem->count);
    const size_t alignment = random.items[moved].alignment == 0 ? 1 : random.items[moved].alignment;
    offsets[moved] = test_random_below(&seed, 1 + (uint32_t)made.info.peak) / alignment * alignment;
    const bool right = is_plan(problem, offsets);
    wrong += !right;
    assert_int_equal(rondo_plan_check(NULL, problem, offsets) == RONDO_OK, right);
    rondo_plan_destroy(made.plan);
  }
  assert_in_range(wrong, cases / 4, cases * 15 / 16);
}

UNIT_TEST(test_checker_finds_who_is_in_an_obstacle) {
  const rondo_plan_item items[] = {{.bytes = 10, .lower = 2, .upper = 6}};
  const rondo_plan_obstacle obstacles[] = {{.offset = 5, .bytes = 100, .lower = 5, .upper = 9},
                                           {.offset = 90, .bytes = 1, .lower = 0, .upper = 1},
                                           {.offset = 7, .bytes = 3, .lower = 0, .upper = 9}};
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = items, .count = 1, .obstacles = obstacles,
                                      .obstacle_count = 3};
  size_t offset = 20;
  assert_error(rondo_plan_check(NULL, &problem, &offset), RONDO_INVALID_DATA, RONDO_REASON_OVERLAP);
  assert_message("item 0 (10 bytes at 20, steps 2 up to 6) and obstacle 0 (100 bytes at 5, steps 5");
  offset = 0;
  assert_error(rondo_plan_check(NULL, &problem, &offset), RONDO_INVALID_DATA, RONDO_REASON_OVERLAP);
  assert_message("obstacle 2 (3 bytes at 7");
  offset = 105;
  assert_ok(rondo_plan_check(NULL, &problem, &offset));
}

UNIT_TEST(test_failing_allocators_leak_nothing) {
  rondo_plan_item items[MAX_ITEMS];
  const rondo_plan_problem problem = {.items = items, .count = make_training(items, 16, 3)};
  assert_allocations_may_fail(&problem, (rondo_plan_options){.fast_only = true}, 1000);
}
