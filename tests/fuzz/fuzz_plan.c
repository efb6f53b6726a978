/* SPDX-License-Identifier: MIT
 * Planning of intervals: every plan satisfies the definition of a plan, its peak and bound are right, the checker
 * accepts exactly the lists of offsets that are plans, more steps never give a worse plan, and threads change nothing.
 * Bad input fails with a message. Nothing is left afterwards, whichever allocation fails.
 */
#include <stdlib.h>

#include "base/error.h"
#include "fuzz/fuzz_target.h"
#include "support/test_allocator.h"
#include "unit/plan/plan_tests.h"

/* Bytes that are read in order; zeros after the last. */
typedef struct input {
  const uint8_t *data;
  size_t size;
} input;

static uint32_t take(input *in) {
  if (in->size == 0) return 0;
  in->size--;
  return *in->data++;
}

static uint32_t take_pair(input *in) { return take(in) << 8 | take(in); }

/* Problems --------------------------------------------------------------------------------------------------------- */

/* The options that the first byte selects. */
enum { WITH_ALIGNMENT = 1, WITH_OBSTACLES = 2, WITH_MISTAKES = 4, WITH_LARGE = 8, WITH_FAILURE = 16 };

static size_t take_bytes(input *in, uint32_t form) {
  const uint32_t low = take(in);
  if ((form & WITH_LARGE) != 0 && low % 4 == 0) return (size_t)(low + 1) << take(in) % 64;
  return (form & WITH_LARGE) != 0 ? low << 8 | take(in) : low;
}

static rondo_plan_item take_item(input *in, uint32_t form) {
  rondo_plan_item item = {.bytes = take_bytes(in, form), .lower = take(in)};
  const uint32_t steps = take(in);
  item.upper = steps == UINT8_MAX ? RONDO_PLAN_FOREVER : item.lower + 1 + steps;
  if ((form & WITH_ALIGNMENT) != 0) item.alignment = (size_t)1 << take(in) % 10;
  if ((form & WITH_MISTAKES) != 0 && take(in) == 0) item.alignment = take(in);
  if ((form & WITH_MISTAKES) != 0 && take(in) == 0) item.upper = take(in);
  return item;
}

static rondo_plan_obstacle take_obstacle(input *in) {
  rondo_plan_obstacle obstacle = {.offset = take_pair(in), .bytes = take_pair(in) >> 4, .lower = take(in)};
  const uint32_t steps = take(in);
  obstacle.upper = steps == UINT8_MAX ? RONDO_PLAN_FOREVER : obstacle.lower + 1 + steps;
  return obstacle;
}

static void take_problem(input *in, uint32_t form, sample *out) {
  *out = (sample){.problem = {RONDO_PLAN_PROBLEM_INIT, .items = out->items, .obstacles = out->obstacles}};
  if ((form & WITH_OBSTACLES) != 0) {
    const size_t count = take(in) % (MAX_OBSTACLES + 1);
    for (size_t i = 0; i < count; i++) out->obstacles[i] = take_obstacle(in);
    out->problem.obstacle_count = count;
  }
  while (in->size > 0 && out->problem.count < 200) out->items[out->problem.count++] = take_item(in, form);
}

static bool is_bad(const rondo_plan_problem *problem) {
  for (size_t i = 0; i < problem->count; i++) {
    const rondo_plan_item *item = &problem->items[i];
    if (item->lower >= item->upper || (item->alignment & (item->alignment - 1)) != 0) return true;
  }
  return false;
}

/* Plans ------------------------------------------------------------------------------------------------------------ */

static void require_message(rondo_status status) {
  REQUIRE(rondo_last_error()->status == status && rondo_last_error()->message[0] != '\0');
}

static void require_info(const rondo_plan_problem *problem, const size_t *offsets, const rondo_plan_info *info) {
  size_t top = 0;
  for (size_t i = 0; i < problem->count; i++) {
    const size_t end = offsets[i] + problem->items[i].bytes;
    if (end > top) top = end;
  }
  REQUIRE(info->peak == top && info->lower_bound <= top && most_live(problem) <= info->lower_bound);
  REQUIRE(info->optimal || info->peak > info->lower_bound);
}

static void require_verdict(const rondo_plan_problem *problem, const size_t *offsets) {
  const rondo_status status = rondo_plan_check(NULL, problem, offsets);
  REQUIRE(status == RONDO_OK || status == RONDO_INVALID_DATA);
  REQUIRE((status == RONDO_OK) == is_plan(problem, offsets));
  if (status != RONDO_OK) require_message(status);
}

/* Moves a few items. */
static void require_same_verdict_elsewhere(const rondo_plan_problem *problem, const size_t *offsets, uint64_t seed) {
  size_t moved[MAX_ITEMS];
  memcpy(moved, offsets, problem->count * sizeof *moved);
  for (int round = 0; round < 4; round++) {
    const size_t i = test_random_below(&seed, (uint32_t)problem->count);
    const size_t j = test_random_below(&seed, (uint32_t)problem->count);
    moved[i] = round % 2 == 0 ? moved[j] : moved[i] + ((size_t)1 << test_random_below(&seed, 8));
    if (moved[i] > SIZE_MAX - problem->items[i].bytes) return;
    require_verdict(problem, moved);
  }
}

static rondo_plan *require_plan(const rondo_plan_problem *problem, const rondo_plan_options *options,
                                rondo_plan_info *info) {
  rondo_plan *plan = NULL;
  const rondo_status status = rondo_plan_make(problem, options, &plan);
  *info = (rondo_plan_info){.struct_size = sizeof *info};
  if (status != RONDO_OK) {
    REQUIRE(plan == NULL);
    require_message(status);
    REQUIRE(status == RONDO_LIMIT_EXCEEDED ||
            (is_bad(problem) ? status == RONDO_INVALID_ARGUMENT : status == RONDO_OUT_OF_MEMORY));
    return NULL;
  }
  REQUIRE(!is_bad(problem));
  REQUIRE(rondo_plan_get_info(plan, info) == RONDO_OK);
  require_info(problem, rondo_plan_offsets(plan), info);
  return plan;
}

static void require_better(const rondo_plan_problem *problem, const rondo_plan_options *options, size_t fast_peak) {
  rondo_plan_info few, more, threaded;
  rondo_plan_options others = *options;
  rondo_plan *a = require_plan(problem, options, &few);
  others.threads = 2;
  rondo_plan *b = require_plan(problem, &others, &threaded);
  others.budget_steps *= 3;
  rondo_plan *c = require_plan(problem, &others, &more);
  REQUIRE(a != NULL && b != NULL && c != NULL);
  REQUIRE(few.peak <= fast_peak && more.peak <= few.peak);
  REQUIRE(!few.optimal || more.peak == few.peak);
  REQUIRE(few.steps == threaded.steps && few.steps <= options->budget_steps);
  REQUIRE(memcmp(rondo_plan_offsets(a), rondo_plan_offsets(b), problem->count * sizeof(size_t)) == 0);
  require_verdict(problem, rondo_plan_offsets(a));
  require_verdict(problem, rondo_plan_offsets(c));
  rondo_plan_destroy(a);
  rondo_plan_destroy(b);
  rondo_plan_destroy(c);
}

static void plan(const rondo_plan_problem *problem, uint64_t seed, uint64_t steps, test_allocator *allocator) {
  rondo_plan_info fast;
  rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .seed = seed, .fast_only = true,
                                .allocator = &allocator->table};
  rondo_plan *made = require_plan(problem, &options, &fast);
  if (made == NULL || problem->count == 0) {
    rondo_plan_destroy(made);
    return;
  }
  require_verdict(problem, rondo_plan_offsets(made));
  require_same_verdict_elsewhere(problem, rondo_plan_offsets(made), seed);
  rondo_plan_destroy(made);
  options.fast_only = false;
  options.budget_steps = steps;
  require_better(problem, &options, fast.peak);
}

/* Any allocation may fail: planning then fails, or works without it. */
static void plan_with_failure(const rondo_plan_problem *problem, uint64_t steps, test_allocator *allocator) {
  rondo_plan_info info;
  const rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .budget_steps = steps, .allocator = &allocator->table};
  atomic_store(&allocator->fail_at, 1 + (size_t)steps % 61);
  rondo_plan_destroy(require_plan(problem, &options, &info));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static sample given;
  input in = {data, size};
  test_allocator allocator;
  test_allocator_init(&allocator);
  const uint32_t form = take(&in);
  const uint64_t seed = take(&in);
  const uint64_t steps = 1 + take_pair(&in) % 3000;
  take_problem(&in, form, &given);
  if ((form & WITH_FAILURE) != 0) {
    plan_with_failure(&given.problem, steps, &allocator);
  } else {
    plan(&given.problem, seed, steps, &allocator);
  }
  REQUIRE(allocator.live == 0 && allocator.faults == 0);
  return 0;
}
