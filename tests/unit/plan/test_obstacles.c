/* SPDX-License-Identifier: MIT
 * Planning around obstacles, memory that others hold: the first obstacle in the way and the box that fits, compared
 * with their definitions, and many obstacles at once (groundwork of GM-11).
 */
#include "plan/interval/obstacles.h"
#include "unit/plan/plan_tests.h"

#define MANY 400
#define STEPS 60U

static rondo_obstacle random_range(uint64_t *seed) {
  const uint32_t lower = test_random_below(seed, STEPS);
  const uint64_t offset = test_random_below(seed, 1000);
  return (rondo_obstacle){.offset = offset,
                          .end = offset + 1 + test_random_below(seed, 200),
                          .lower = lower,
                          .upper = lower + 1 + test_random_below(seed, STEPS - lower)};
}

/* By its definition: the lowest offset of a range that is met and ends above; NULL: none. */
static const rondo_obstacle *lowest_above(const rondo_obstacle *ranges, size_t count, uint32_t lower, uint32_t upper,
                                          uint64_t height) {
  const rondo_obstacle *lowest = NULL;
  for (size_t i = 0; i < count; i++) {
    if (!lives_meet(lower, upper, ranges[i].lower, ranges[i].upper) || ranges[i].end <= height) continue;
    if (lowest == NULL || ranges[i].offset < lowest->offset) lowest = &ranges[i];
  }
  return lowest;
}

UNIT_TEST(test_the_first_obstacle_above_is_found) {
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_scratch scratch = {.allocator = &allocator};
  uint64_t seed = 1;
  for (uint32_t count = 1; count <= MANY; count += count < 20 ? 1 : 95) {
    rondo_obstacle ranges[MANY];
    rondo_obstacles obstacles;
    for (uint32_t i = 0; i < count; i++) ranges[i] = random_range(&seed);
    assert_ok(rondo_obstacles_make(&scratch, ranges, count, &obstacles));
    for (int i = 0; i < 500; i++) {
      const rondo_obstacle asked = random_range(&seed);
      const rondo_obstacle *expected = lowest_above(ranges, count, asked.lower, asked.upper, asked.end);
      const rondo_obstacle *found = rondo_obstacles_above(&obstacles, asked.lower, asked.upper, asked.end);
      assert_int_equal(found == NULL, expected == NULL);
      if (found != NULL) assert_int_equal(found->offset, expected->offset);
    }
    assert_null(rondo_obstacles_above(&obstacles, 0, STEPS, UINT64_MAX));
    rondo_scratch_free(&scratch);
  }
}

static bool is_even(const void *self, uint32_t box) {
  (void)self;
  return box % 2 == 0;
}

static uint32_t first_rank(const rondo_box *boxes, const bool *gone, const rondo_box_query *query) {
  uint32_t rank = 0;
  for (; rank < MANY; rank++) {
    const rondo_box *box = &boxes[rank];
    if (!gone[rank] && box->lower >= query->lower && box->upper <= query->upper && box->bytes <= query->most_bytes &&
        (query->accepts == NULL || query->accepts(NULL, rank))) {
      break;
    }
  }
  return rank < query->before ? rank : query->before;
}

UNIT_TEST(test_the_first_box_is_found_by_life_and_bytes) {
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_scratch scratch = {.allocator = &allocator};
  uint64_t seed = 2;
  rondo_box boxes[MANY];
  bool gone[MANY] = {false};
  rondo_box_tree tree;
  for (uint32_t i = 0; i < MANY; i++) {
    const rondo_obstacle life = random_range(&seed);
    boxes[i] = (rondo_box){life.end, life.lower, life.upper};
  }
  assert_ok(rondo_box_tree_make(&scratch, MANY, &tree));
  rondo_box_tree_shape(&tree, boxes, MANY, true);
  rondo_box_tree_fill(&tree, NULL);
  for (uint32_t i = 0; i < MANY; i++) {
    for (int k = 0; k < 20; k++) {
      const rondo_obstacle asked = random_range(&seed);
      const rondo_box_query query = {.lower = asked.lower,
                                     .upper = asked.upper,
                                     .before = k % 3 == 0 ? test_random_below(&seed, MANY) : MANY,
                                     .most_bytes = k % 4 == 0 ? UINT64_MAX : asked.end,
                                     .accepts = k % 5 == 0 ? is_even : NULL,
                                     .most_refusals = MANY};
      assert_int_equal(rondo_box_tree_first(&tree, &query), first_rank(boxes, gone, &query));
    }
    const uint32_t next = i * 7 % MANY;
    gone[next] = true;
    rondo_box_tree_remove(&tree, next);
  }
  rondo_scratch_free(&scratch);
}

/* Hardly any item fits below an obstacle: each is looked at seldom enough for this to end in the time of a test. */
UNIT_TEST(test_many_obstacles_are_planned_around) {
  enum { ITEMS = 20000, RANGES = 4000 };
  static rondo_plan_item items[ITEMS];
  static rondo_plan_obstacle obstacles[RANGES];
  uint64_t seed = 3;
  for (uint32_t i = 0; i < ITEMS; i++) {
    const uint32_t lower = test_random_below(&seed, ITEMS);
    items[i] = (rondo_plan_item){.bytes = 1 + test_random_below(&seed, 5000),
                                 .alignment = i % 3 == 0 ? 64 : 1,
                                 .lower = lower,
                                 .upper = lower + 1 + test_random_below(&seed, 100)};
  }
  for (uint32_t i = 0; i < RANGES; i++) {
    const bool always = i % 2 == 0;
    const uint32_t lower = test_random_below(&seed, ITEMS);
    obstacles[i] = (rondo_plan_obstacle){.offset = 40 * (size_t)i,
                                         .bytes = 1 + test_random_below(&seed, 39),
                                         .lower = always ? 0 : lower,
                                         .upper = always ? RONDO_PLAN_FOREVER : lower + 500};
  }
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = items, .count = ITEMS, .obstacles = obstacles,
                                      .obstacle_count = RANGES};
  const rondo_plan_options fast = {.fast_only = true};
  rondo_plan *plan = NULL;
  rondo_plan_info info = {.struct_size = sizeof info};
  assert_ok(rondo_plan_make(&problem, &fast, &plan));
  assert_ok(rondo_plan_get_info(plan, &info));
  assert_ok(rondo_plan_check(NULL, &problem, rondo_plan_offsets(plan)));
  assert_true(info.lower_bound <= info.peak && info.peak <= info.lower_bound * 2);
  rondo_plan_destroy(plan);
}

enum { EXTREME_NODES = 12 };

static size_t random_size(uint64_t *seed) { return (size_t)test_random(seed) >> test_random_below(seed, 64); }

/* Few items and obstacles of any size, at any alignment; every other obstacle ends where offsets do. */
static void make_extreme(sample *out, uint64_t *seed) {
  out->problem = (rondo_plan_problem){RONDO_PLAN_PROBLEM_INIT, .items = out->items, .obstacles = out->obstacles};
  out->problem.count = 1 + test_random_below(seed, 8);
  for (size_t i = 0; i < out->problem.count; i++) {
    const uint32_t lower = test_random_below(seed, EXTREME_NODES - 1);
    out->items[i] = (rondo_plan_item){.bytes = random_size(seed) >> 4,
                                      .alignment = (size_t)1 << test_random_below(seed, 64),
                                      .lower = lower,
                                      .upper = lower + 1 + test_random_below(seed, EXTREME_NODES - 1 - lower)};
    if (test_random_below(seed, 2) == 0) out->items[i].alignment = 1;
  }
  out->problem.obstacle_count = test_random_below(seed, 4);
  for (size_t i = 0; i < out->problem.obstacle_count; i++) {
    const size_t offset = random_size(seed), rest = SIZE_MAX - offset;
    const uint32_t lower = test_random_below(seed, EXTREME_NODES - 1);
    out->obstacles[i] = (rondo_plan_obstacle){.offset = offset,
                                              .bytes = i % 2 == 0 ? rest : (size_t)test_random(seed) % (rest / 2 + 1),
                                              .lower = lower,
                                              .upper = lower + 1};
  }
}

/* A plan that is one; or that there is no room. */
static void try_extreme(const rondo_plan_problem *problem, uint64_t *made, uint64_t *refused) {
  const rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .budget_steps = 200};
  rondo_plan *plan = NULL;
  rondo_plan_info info = {.struct_size = sizeof info};
  const rondo_status status = rondo_plan_make(problem, &options, &plan);
  if (status != RONDO_OK) {
    assert_error(status, RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE);
    assert_null(plan);
    (*refused)++;
    return;
  }
  assert_ok(rondo_plan_check(NULL, problem, rondo_plan_offsets(plan)));
  assert_ok(rondo_plan_get_info(plan, &info));
  assert_true(info.lower_bound <= info.peak);
  rondo_plan_destroy(plan);
  (*made)++;
}

/* Every other node comes before all later ones; those between come before none. */
static void make_comb(uint32_t starts[EXTREME_NODES + 1], uint32_t edges[EXTREME_NODES * EXTREME_NODES]) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < EXTREME_NODES; i++) {
    starts[i] = count;
    for (uint32_t k = i + 1; k < EXTREME_NODES && i % 2 == 0; k++) edges[count++] = k;
  }
  starts[EXTREME_NODES] = count;
}

UNIT_TEST(test_nothing_wraps_around) {
  uint32_t starts[EXTREME_NODES + 1], edges[EXTREME_NODES * EXTREME_NODES];
  const rondo_plan_order comb = {EXTREME_NODES, starts, edges};
  uint64_t seed = 11, made = 0, refused = 0;
  make_comb(starts, edges);
  for (uint32_t i = 0; i < test_effort(3000); i++) {
    sample extreme;
    make_extreme(&extreme, &seed);
    try_extreme(&extreme.problem, &made, &refused);
    for (size_t k = 0; k < extreme.problem.count; k++) extreme.items[k].lower &= ~UINT32_C(1);
    for (size_t k = 0; k < extreme.problem.obstacle_count; k++) extreme.obstacles[k].lower &= ~UINT32_C(1);
    extreme.problem.order = &comb;
    try_extreme(&extreme.problem, &made, &refused);
  }
  assert_true(made > 0 && refused > 0);
}
