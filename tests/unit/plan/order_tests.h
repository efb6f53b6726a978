/* SPDX-License-Identifier: MIT
 * What the tests of planning on a partial order share: problems at random, and what may live together, found by running
 * every execution.
 */
#ifndef RONDO_TESTS_ORDER_TESTS_H
#define RONDO_TESTS_ORDER_TESTS_H

#include <stdlib.h>
#include <string.h>

#include "plan/partial_order/order_plan.h"
#include "support/rondo_test.h"

#define MOST_NODES 8
#define MOST_ITEMS 12
#define MOST_OBSTACLES 3
#define MOST_BRANCHES 7
#define MOST_STATES 6561 /* 3 to the MOST_NODES */
#define MOST_THINGS (MOST_ITEMS + MOST_OBSTACLES)

/* A problem that owns its lists; it must not be moved. */
typedef struct order_sample {
  rondo_plan_item items[MOST_ITEMS];
  rondo_plan_obstacle obstacles[MOST_OBSTACLES];
  rondo_plan_branch branches[MOST_BRANCHES];
  uint32_t successor_start[MOST_NODES + 1];
  uint32_t successors[MOST_NODES * MOST_NODES];
  rondo_plan_order order;
  rondo_plan_problem problem;
  bool behind[MOST_NODES][MOST_NODES];  /* [u][v]: v comes strictly behind u */
  bool meets[MOST_THINGS][MOST_THINGS]; /* items, then obstacles: may live together */
  size_t most_live;                     /* bytes of items in the worst execution */
} order_sample;

enum { ALIGNED = 1, WITH_OBSTACLES = 2, WITH_BRANCHES = 4 };

static inline void make_random_order(order_sample *s, uint64_t *seed) {
  const uint32_t nodes = 2 + test_random_below(seed, MOST_NODES - 1);
  const uint32_t density = 1 + test_random_below(seed, 5);
  uint32_t edges = 0;
  memset(s->behind, 0, sizeof s->behind);
  for (uint32_t u = 0; u < nodes; u++) {
    s->successor_start[u] = edges;
    for (uint32_t v = nodes - 1; v > u; v--) { /* not ascending */
      if (test_random_below(seed, 6) >= density) continue;
      s->successors[edges++] = v;
      s->behind[u][v] = true;
    }
  }
  s->successor_start[nodes] = edges;
  s->order = (rondo_plan_order){nodes, s->successor_start, s->successors};
  for (uint32_t m = 0; m < nodes; m++) {
    for (uint32_t u = 0; u < nodes; u++) {
      for (uint32_t v = 0; v < nodes; v++) s->behind[u][v] |= s->behind[u][m] && s->behind[m][v];
    }
  }
}

/* A node that comes behind another, or FOREVER. */
static inline uint32_t random_free(const order_sample *s, uint64_t *seed, uint32_t lower) {
  for (int tries = 0; tries < 6; tries++) {
    const uint32_t upper = test_random_below(seed, s->order.node_count);
    if (s->behind[lower][upper]) return upper;
  }
  return RONDO_PLAN_FOREVER;
}

static inline void make_random_branches(order_sample *s, uint64_t *seed) {
  s->problem.branches = s->branches;
  s->problem.branch_count = 2 + test_random_below(seed, MOST_BRANCHES - 1);
  for (uint32_t i = 0; i < s->problem.branch_count; i++) {
    const bool nested = i > 0 && test_random_below(seed, 3) == 0;
    s->branches[i].parent = nested ? test_random_below(seed, i) : RONDO_PLAN_NO_BRANCH;
    s->branches[i].choice = test_random_below(seed, 2); /* one number in two parents is two choices */
  }
}

static inline void make_random_items(order_sample *s, uint64_t *seed, unsigned kinds, size_t most) {
  s->problem.count = 1 + test_random_below(seed, (uint32_t)most);
  for (size_t i = 0; i < s->problem.count; i++) {
    rondo_plan_item *item = &s->items[i];
    *item =
        (rondo_plan_item){.bytes = test_random_below(seed, 20), .lower = test_random_below(seed, s->order.node_count)};
    item->upper = random_free(s, seed, item->lower);
    if ((kinds & ALIGNED) != 0) item->alignment = (size_t)1 << test_random_below(seed, 4);
    if (s->problem.branch_count > 0) item->branch = test_random_below(seed, s->problem.branch_count + 1);
  }
}

static inline void make_random_obstacles(order_sample *s, uint64_t *seed) {
  s->problem.obstacle_count = test_random_below(seed, MOST_OBSTACLES + 1);
  for (size_t i = 0; i < s->problem.obstacle_count; i++) {
    rondo_plan_obstacle *obstacle = &s->obstacles[i];
    *obstacle = (rondo_plan_obstacle){.offset = test_random_below(seed, 50), .bytes = test_random_below(seed, 15)};
    obstacle->lower = test_random_below(seed, 3) == 0 ? 0 : test_random_below(seed, s->order.node_count);
    obstacle->upper = test_random_below(seed, 3) == 0 ? RONDO_PLAN_FOREVER : random_free(s, seed, obstacle->lower);
  }
}

/* Every execution -------------------------------------------------------------------------------------------------- */

/* One way for every choice: ways[i] is whether branch i is the one that its choice takes. */
typedef struct branch_ways {
  bool ways[MOST_BRANCHES];
} branch_ways;

static inline bool is_same_choice(const order_sample *s, uint32_t a, uint32_t b) {
  return s->branches[a].parent == s->branches[b].parent && s->branches[a].choice == s->branches[b].choice;
}

static inline bool is_taken(const order_sample *s, const branch_ways *taken, uint32_t number) {
  for (uint32_t b = number == 0 ? RONDO_PLAN_NO_BRANCH : number - 1; b != RONDO_PLAN_NO_BRANCH;
       b = s->branches[b].parent) {
    if (!taken->ways[b]) return false;
  }
  return true;
}

/* Of node states: 0 not begun, 1 running, 2 over. */
static inline bool is_live(const uint8_t *states, uint32_t lower, uint32_t upper) {
  return states[lower] > 0 && (upper == RONDO_PLAN_FOREVER || states[upper] < 2);
}

static inline void look_at_state(order_sample *s, const uint8_t *states, const branch_ways *taken) {
  const size_t items = s->problem.count;
  bool live[MOST_THINGS] = {false};
  size_t bytes = 0;
  for (size_t i = 0; i < items; i++) {
    live[i] = is_taken(s, taken, s->items[i].branch) && is_live(states, s->items[i].lower, s->items[i].upper);
    if (live[i]) bytes += s->items[i].bytes;
  }
  for (size_t i = 0; i < s->problem.obstacle_count; i++) {
    const rondo_plan_obstacle *obstacle = &s->obstacles[i];
    const bool always = obstacle->lower == 0 && obstacle->upper == RONDO_PLAN_FOREVER;
    live[items + i] = always || is_live(states, obstacle->lower, obstacle->upper);
  }
  if (bytes > s->most_live) s->most_live = bytes;
  for (size_t i = 0; i < items + s->problem.obstacle_count; i++) {
    for (size_t j = 0; j < i; j++) {
      if (live[i] && live[j]) s->meets[i][j] = s->meets[j][i] = true;
    }
  }
}

/* Calls itself for every choice, from branch `at` on, with each of its ways taken. */
static inline void look_at_ways(order_sample *s, const uint8_t *states, branch_ways *taken, uint32_t at) {
  uint32_t first = at;
  while (first < s->problem.branch_count) {
    bool seen = false;
    for (uint32_t i = 0; i < first; i++) seen = seen || is_same_choice(s, i, first);
    if (!seen) break;
    first++;
  }
  if (first >= s->problem.branch_count) {
    look_at_state(s, states, taken);
    return;
  }
  for (uint32_t way = first; way < s->problem.branch_count; way++) {
    if (!is_same_choice(s, first, way)) continue;
    taken->ways[way] = true;
    look_at_ways(s, states, taken, first + 1);
    taken->ways[way] = false;
  }
}

static inline bool may_begin(const order_sample *s, const uint8_t *states, uint32_t node) {
  for (uint32_t u = 0; u < s->order.node_count; u++) {
    if (s->behind[u][node] && states[u] < 2) return false;
  }
  return true;
}

/* Goes through all states that executions reach. */
static inline void run_all(order_sample *s) {
  static bool seen[MOST_STATES];
  static uint32_t stack[MOST_STATES];
  size_t count = 1;
  memset(seen, 0, sizeof seen);
  memset(s->meets, 0, sizeof s->meets);
  s->most_live = 0;
  stack[0] = 0;
  seen[0] = true;
  while (count > 0) {
    const uint32_t state = stack[--count];
    uint8_t states[MOST_NODES];
    uint32_t rest = state;
    for (uint32_t v = 0; v < s->order.node_count; v++, rest /= 3) states[v] = (uint8_t)(rest % 3);
    branch_ways taken = {0};
    look_at_ways(s, states, &taken, 0);
    uint32_t power = 1;
    for (uint32_t v = 0; v < s->order.node_count; v++, power *= 3) {
      if (states[v] == 2 || (states[v] == 0 && !may_begin(s, states, v)) || seen[state + power]) continue;
      seen[state + power] = true;
      stack[count++] = state + power;
    }
  }
}

static inline void make_order_sample(order_sample *s, uint64_t *seed, unsigned kinds, size_t most_items) {
  make_random_order(s, seed);
  s->problem = (rondo_plan_problem){RONDO_PLAN_PROBLEM_INIT, .items = s->items, .order = &s->order};
  s->problem.obstacles = s->obstacles;
  if ((kinds & WITH_BRANCHES) != 0) make_random_branches(s, seed);
  make_random_items(s, seed, kinds, most_items);
  if ((kinds & WITH_OBSTACLES) != 0) make_random_obstacles(s, seed);
  run_all(s);
}

/* Plans ------------------------------------------------------------------------------------------------------------ */

static inline bool has_bytes_in_common(size_t a, size_t a_bytes, size_t b, size_t b_bytes) {
  return a_bytes > 0 && b_bytes > 0 && a < b + b_bytes && b < a + a_bytes;
}

/* Whether item i may lie there beside the obstacles and those of the first `placed` items of `sequence`. */
static inline bool fits_beside(const order_sample *s, size_t item, size_t offset, const size_t *sequence, size_t placed,
                               const size_t *offsets) {
  const rondo_plan_item *items = s->items;
  for (size_t i = 0; i < s->problem.obstacle_count; i++) {
    const rondo_plan_obstacle *obstacle = &s->obstacles[i];
    if (s->meets[item][s->problem.count + i] &&
        has_bytes_in_common(offset, items[item].bytes, obstacle->offset, obstacle->bytes)) {
      return false;
    }
  }
  for (size_t k = 0; k < placed; k++) {
    const size_t other = sequence == NULL ? k : sequence[k];
    if (other != item && s->meets[item][other] &&
        has_bytes_in_common(offset, items[item].bytes, offsets[other], items[other].bytes)) {
      return false;
    }
  }
  return true;
}

static inline bool is_order_plan(const order_sample *s, const size_t *offsets) {
  for (size_t i = 0; i < s->problem.count; i++) {
    if (s->items[i].alignment > 1 && offsets[i] % s->items[i].alignment != 0) return false;
    if (!fits_beside(s, i, offsets[i], NULL, s->problem.count, offsets)) return false;
  }
  return true;
}

/* The least peak there is: some sequence, each item as low as it can lie, attains it. */
static inline size_t least_peak(const order_sample *s, size_t *sequence, size_t placed, size_t *offsets, size_t peak,
                                size_t best) {
  if (peak >= best) return best;
  if (placed == s->problem.count) return peak;
  for (size_t k = placed; k < s->problem.count; k++) {
    const size_t item = sequence[k];
    const size_t alignment = s->items[item].alignment == 0 ? 1 : s->items[item].alignment;
    sequence[k] = sequence[placed];
    sequence[placed] = item;
    size_t offset = 0;
    while (!fits_beside(s, item, offset, sequence, placed, offsets)) offset += alignment;
    offsets[item] = offset;
    const size_t top = s->items[item].bytes == 0 ? 0 : offset + s->items[item].bytes;
    best = least_peak(s, sequence, placed + 1, offsets, top > peak ? top : peak, best);
    sequence[placed] = sequence[k];
    sequence[k] = item;
  }
  return best;
}

#endif
