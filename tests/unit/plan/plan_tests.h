/* SPDX-License-Identifier: MIT
 * Shared by the tests of planning: random problems, and the definition of a plan in code.
 */
#ifndef RONDO_TESTS_PLAN_TESTS_H
#define RONDO_TESTS_PLAN_TESTS_H

#include <string.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"

#define MAX_ITEMS 600
#define MAX_OBSTACLES 8

/* A problem that owns its lists. */
typedef struct sample {
  rondo_plan_item items[MAX_ITEMS];
  rondo_plan_obstacle obstacles[MAX_OBSTACLES];
  rondo_plan_problem problem;
} sample;

/* A plan, and what it says of itself. */
typedef struct planned {
  rondo_plan *plan;
  const size_t *offsets;
  rondo_plan_info info;
} planned;

static inline bool lives_meet(uint32_t a_lower, uint32_t a_upper, uint32_t b_lower, uint32_t b_upper) {
  return a_lower < b_upper && b_lower < a_upper;
}

static inline bool ranges_meet(size_t a, size_t a_bytes, size_t b, size_t b_bytes) {
  return a_bytes > 0 && b_bytes > 0 && a < b + b_bytes && b < a + a_bytes;
}

static inline bool is_plan(const rondo_plan_problem *problem, const size_t *offsets) {
  const rondo_plan_item *items = problem->items;
  for (size_t i = 0; i < problem->count; i++) {
    if (items[i].alignment > 1 && offsets[i] % items[i].alignment != 0) return false;
    for (size_t j = 0; j < i; j++) {
      if (lives_meet(items[i].lower, items[i].upper, items[j].lower, items[j].upper) &&
          ranges_meet(offsets[i], items[i].bytes, offsets[j], items[j].bytes)) {
        return false;
      }
    }
    for (size_t j = 0; j < problem->obstacle_count; j++) {
      const rondo_plan_obstacle *obstacle = &problem->obstacles[j];
      if (lives_meet(items[i].lower, items[i].upper, obstacle->lower, obstacle->upper) &&
          ranges_meet(offsets[i], items[i].bytes, obstacle->offset, obstacle->bytes)) {
        return false;
      }
    }
  }
  return true;
}

static inline size_t most_live(const rondo_plan_problem *problem) {
  size_t most = 0;
  for (size_t i = 0; i < problem->count; i++) {
    size_t live = 0;
    const uint32_t step = problem->items[i].lower;
    for (size_t j = 0; j < problem->count; j++) {
      if (problem->items[j].lower <= step && step < problem->items[j].upper) live += problem->items[j].bytes;
    }
    if (live > most) most = live;
  }
  return most;
}

/* Plans, and proves what the plan says. The caller destroys made.plan. */
static inline planned make_plan(const rondo_plan_problem *problem, const rondo_plan_options *options) {
  planned made = {0};
  size_t sum = 0;
  size_t top = 0;
  assert_ok(rondo_plan_make(problem, options, &made.plan));
  made.offsets = rondo_plan_offsets(made.plan);
  assert_ok(rondo_plan_get_info(made.plan, &made.info));
  assert_ok(rondo_plan_check(NULL, problem, made.offsets));
  assert_true(is_plan(problem, made.offsets));
  for (size_t i = 0; i < problem->count; i++) {
    const size_t end = made.offsets[i] + problem->items[i].bytes;
    sum += problem->items[i].bytes;
    if (end > top) top = end;
  }
  assert_int_equal(made.info.count, problem->count);
  assert_int_equal(made.info.sum, sum);
  assert_int_equal(made.info.peak, top);
  assert_true(most_live(problem) <= made.info.lower_bound);
  assert_true(made.info.lower_bound <= made.info.peak);
  return made;
}

/* Kinds of random problems, to be combined. */
enum { ALIGNED = 1, MIXED_ALIGNMENTS = 2, OBSTACLES = 4, FEW_SIZES = 8 };

static inline rondo_plan_item random_item(uint64_t *seed, unsigned kinds, uint32_t steps) {
  const uint32_t lower = test_random_below(seed, steps);
  rondo_plan_item item = {.lower = lower, .upper = lower + 1 + test_random_below(seed, steps - lower)};
  item.bytes = (kinds & FEW_SIZES) != 0 ? 64 * test_random_below(seed, 3) : test_random_below(seed, 300);
  if ((kinds & ALIGNED) != 0) item.alignment = 64;
  if ((kinds & MIXED_ALIGNMENTS) != 0) item.alignment = (size_t)1 << test_random_below(seed, 6);
  if (test_random_below(seed, 40) == 0) item.upper = RONDO_PLAN_FOREVER;
  return item;
}

static inline void make_sample(sample *out, uint64_t *seed, unsigned kinds) {
  const uint32_t steps = 1 + test_random_below(seed, 60);
  out->problem = (rondo_plan_problem){RONDO_PLAN_PROBLEM_INIT, .items = out->items, .obstacles = out->obstacles};
  out->problem.count = 1 + test_random_below(seed, 80);
  for (size_t i = 0; i < out->problem.count; i++) out->items[i] = random_item(seed, kinds, steps);
  if ((kinds & OBSTACLES) == 0) return;
  out->problem.obstacle_count = test_random_below(seed, MAX_OBSTACLES + 1);
  for (size_t i = 0; i < out->problem.obstacle_count; i++) {
    const rondo_plan_item life = random_item(seed, 0, steps);
    const bool always = test_random_below(seed, 4) == 0;
    out->obstacles[i] = (rondo_plan_obstacle){.offset = test_random_below(seed, 3000),
                                              .bytes = test_random_below(seed, 400),
                                              .lower = always ? 0 : life.lower,
                                              .upper = always ? RONDO_PLAN_FOREVER : life.upper};
  }
}

/* Each of the first allocations fails in turn, until planning makes fewer, which are less than `most`: OUT_OF_MEMORY,
 * no plan, nothing left. `options.allocator` is set here. */
static inline void assert_allocations_may_fail(const rondo_plan_problem *problem, rondo_plan_options options,
                                               size_t most) {
  rondo_status status = RONDO_OUT_OF_MEMORY;
  for (size_t fail_at = 1; status != RONDO_OK; fail_at += test_failure_step()) {
    test_allocator allocator;
    test_allocator_init(&allocator);
    atomic_store(&allocator.fail_at, fail_at);
    options.allocator = &allocator.table;
    rondo_plan *plan = NULL;
    status = rondo_plan_make(problem, &options, &plan);
    assert_true(status == RONDO_OK || status == RONDO_OUT_OF_MEMORY);
    assert_int_equal(plan == NULL, status != RONDO_OK);
    if (status == RONDO_OK) assert_true(atomic_load(&allocator.calls) < fail_at);
    rondo_plan_destroy(plan);
    assert_int_equal(atomic_load(&allocator.live), 0);
    assert_int_equal(atomic_load(&allocator.faults), 0);
    assert_true(fail_at < most);
  }
}

#endif
