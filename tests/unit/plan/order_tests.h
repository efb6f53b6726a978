/* SPDX-License-Identifier: MIT
 * Shared by the tests of planning on a partial order: random problems, and which items may be alive together, found by
 * trying every order of execution.
 */
#ifndef RONDO_TESTS_ORDER_TESTS_H
#define RONDO_TESTS_ORDER_TESTS_H

#include <stdlib.h>
#include <string.h>

#include "plan/partial_order/order_plan.h"
#include "support/rondo_test.h"

#define MAX_NODES 8
#define MAX_ITEMS 12
#define MAX_OBSTACLES 3
#define MAX_BRANCHES 7
#define MAX_STATES 6561 /* 3 to the MAX_NODES */
#define MAX_PIECES (MAX_ITEMS + MAX_OBSTACLES)

/* A problem that owns its lists; it must not be moved. */
typedef struct order_sample {
  rondo_plan_item items[MAX_ITEMS];
  rondo_plan_obstacle obstacles[MAX_OBSTACLES];
  rondo_plan_branch branches[MAX_BRANCHES];
  uint32_t successor_start[MAX_NODES + 1];
  uint32_t successors[MAX_NODES * MAX_NODES];
  rondo_plan_order order;
  rondo_plan_problem problem;
  bool precedes[MAX_NODES][MAX_NODES];      /* [u][v]: u comes strictly before v */
  bool may_overlap[MAX_PIECES][MAX_PIECES]; /* items, then obstacles: may live together */
  size_t max_live;                          /* bytes of items in the worst execution */
} order_sample;

enum { ALIGNED = 1, WITH_OBSTACLES = 2, WITH_BRANCHES = 4 };

static inline void make_random_order(order_sample *s, uint64_t *seed) {
  const uint32_t nodes = 2 + test_random_below(seed, MAX_NODES - 1);
  const uint32_t density = 1 + test_random_below(seed, 5);
  uint32_t edges = 0;
  memset(s->precedes, 0, sizeof s->precedes);
  for (uint32_t u = 0; u < nodes; u++) {
    s->successor_start[u] = edges;
    for (uint32_t v = nodes - 1; v > u; v--) { /* not ascending */
      if (test_random_below(seed, 6) >= density) continue;
      s->successors[edges++] = v;
      s->precedes[u][v] = true;
    }
  }
  s->successor_start[nodes] = edges;
  s->order = (rondo_plan_order){nodes, s->successor_start, s->successors};
  for (uint32_t m = 0; m < nodes; m++) {
    for (uint32_t u = 0; u < nodes; u++) {
      for (uint32_t v = 0; v < nodes; v++) s->precedes[u][v] |= s->precedes[u][m] && s->precedes[m][v];
    }
  }
}

/* A node that comes after another, or FOREVER. */
static inline uint32_t random_free(const order_sample *s, uint64_t *seed, uint32_t lower) {
  for (int tries = 0; tries < 6; tries++) {
    const uint32_t upper = test_random_below(seed, s->order.node_count);
    if (s->precedes[lower][upper]) return upper;
  }
  return RONDO_PLAN_FOREVER;
}

static inline void make_random_branches(order_sample *s, uint64_t *seed) {
  s->problem.branches = s->branches;
  s->problem.branch_count = 2 + test_random_below(seed, MAX_BRANCHES - 1);
  for (uint32_t i = 0; i < s->problem.branch_count; i++) {
    const bool nested = i > 0 && test_random_below(seed, 3) == 0;
    s->branches[i].parent = nested ? test_random_below(seed, i) : RONDO_PLAN_NO_BRANCH;
    s->branches[i].choice = test_random_below(seed, 2); /* the same number in two parents is two choices */
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
  s->problem.obstacle_count = test_random_below(seed, MAX_OBSTACLES + 1);
  for (size_t i = 0; i < s->problem.obstacle_count; i++) {
    rondo_plan_obstacle *obstacle = &s->obstacles[i];
    *obstacle = (rondo_plan_obstacle){.offset = test_random_below(seed, 50), .bytes = test_random_below(seed, 15)};
    obstacle->lower = test_random_below(seed, 3) == 0 ? 0 : test_random_below(seed, s->order.node_count);
    obstacle->upper = test_random_below(seed, 3) == 0 ? RONDO_PLAN_FOREVER : random_free(s, seed, obstacle->lower);
  }
}

/* Every execution -------------------------------------------------------------------------------------------------- */

/* One branch of every choice: of[i] is whether branch i is the one that its choice takes. */
typedef struct taken_branches {
  bool of[MAX_BRANCHES];
} taken_branches;

static inline bool is_same_choice(const order_sample *s, uint32_t a, uint32_t b) {
  return s->branches[a].parent == s->branches[b].parent && s->branches[a].choice == s->branches[b].choice;
}

static inline bool is_taken(const order_sample *s, const taken_branches *taken, uint32_t number) {
  for (uint32_t b = number == 0 ? RONDO_PLAN_NO_BRANCH : number - 1; b != RONDO_PLAN_NO_BRANCH;
       b = s->branches[b].parent) {
    if (!taken->of[b]) return false;
  }
  return true;
}

/* States of nodes: 0 not begun, 1 running, 2 over. */
static inline bool is_live(const uint8_t *states, uint32_t lower, uint32_t upper) {
  return states[lower] > 0 && (upper == RONDO_PLAN_FOREVER || states[upper] < 2);
}

static inline void visit_state(order_sample *s, const uint8_t *states, const taken_branches *taken) {
  const size_t items = s->problem.count;
  bool live[MAX_PIECES] = {false};
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
  if (bytes > s->max_live) s->max_live = bytes;
  for (size_t i = 0; i < items + s->problem.obstacle_count; i++) {
    for (size_t j = 0; j < i; j++) {
      if (live[i] && live[j]) s->may_overlap[i][j] = s->may_overlap[j][i] = true;
    }
  }
}

/* Calls itself for each choice, from branch `at` on, with each of its branches taken. */
static inline void visit_choices(order_sample *s, const uint8_t *states, taken_branches *taken, uint32_t at) {
  uint32_t first = at;
  while (first < s->problem.branch_count) {
    bool seen = false;
    for (uint32_t i = 0; i < first; i++) seen = seen || is_same_choice(s, i, first);
    if (!seen) break;
    first++;
  }
  if (first >= s->problem.branch_count) {
    visit_state(s, states, taken);
    return;
  }
  for (uint32_t branch = first; branch < s->problem.branch_count; branch++) {
    if (!is_same_choice(s, first, branch)) continue;
    taken->of[branch] = true;
    visit_choices(s, states, taken, first + 1);
    taken->of[branch] = false;
  }
}

static inline bool may_begin(const order_sample *s, const uint8_t *states, uint32_t node) {
  for (uint32_t u = 0; u < s->order.node_count; u++) {
    if (s->precedes[u][node] && states[u] < 2) return false;
  }
  return true;
}

/* Visits all states that executions reach. */
static inline void visit_all_states(order_sample *s) {
  static bool seen[MAX_STATES];
  static uint32_t stack[MAX_STATES];
  size_t count = 1;
  memset(seen, 0, sizeof seen);
  memset(s->may_overlap, 0, sizeof s->may_overlap);
  s->max_live = 0;
  stack[0] = 0;
  seen[0] = true;
  while (count > 0) {
    const uint32_t state = stack[--count];
    uint8_t states[MAX_NODES];
    uint32_t rest = state;
    for (uint32_t v = 0; v < s->order.node_count; v++, rest /= 3) states[v] = (uint8_t)(rest % 3);
    taken_branches taken = {0};
    visit_choices(s, states, &taken, 0);
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
  visit_all_states(s);
}

/* Plans ------------------------------------------------------------------------------------------------------------ */

static inline bool share_bytes(size_t a, size_t a_bytes, size_t b, size_t b_bytes) {
  return a_bytes > 0 && b_bytes > 0 && a < b + b_bytes && b < a + a_bytes;
}

/* Whether an item at an offset overlaps no obstacle and none of the first `placed` items of `sequence`. */
static inline bool fits(const order_sample *s, size_t item, size_t offset, const size_t *sequence, size_t placed,
                        const size_t *offsets) {
  const rondo_plan_item *items = s->items;
  for (size_t i = 0; i < s->problem.obstacle_count; i++) {
    const rondo_plan_obstacle *obstacle = &s->obstacles[i];
    if (s->may_overlap[item][s->problem.count + i] &&
        share_bytes(offset, items[item].bytes, obstacle->offset, obstacle->bytes)) {
      return false;
    }
  }
  for (size_t k = 0; k < placed; k++) {
    const size_t other = sequence == NULL ? k : sequence[k];
    if (other != item && s->may_overlap[item][other] &&
        share_bytes(offset, items[item].bytes, offsets[other], items[other].bytes)) {
      return false;
    }
  }
  return true;
}

static inline bool is_order_plan(const order_sample *s, const size_t *offsets) {
  for (size_t i = 0; i < s->problem.count; i++) {
    if (s->items[i].alignment > 1 && offsets[i] % s->items[i].alignment != 0) return false;
    if (!fits(s, i, offsets[i], NULL, s->problem.count, offsets)) return false;
  }
  return true;
}

/* The lowest possible peak: some sequence, with each item placed as low as possible, attains it. */
static inline size_t min_peak(const order_sample *s, size_t *sequence, size_t placed, size_t *offsets, size_t peak,
                              size_t best) {
  if (peak >= best) return best;
  if (placed == s->problem.count) return peak;
  for (size_t k = placed; k < s->problem.count; k++) {
    const size_t item = sequence[k];
    const size_t alignment = s->items[item].alignment == 0 ? 1 : s->items[item].alignment;
    sequence[k] = sequence[placed];
    sequence[placed] = item;
    size_t offset = 0;
    while (!fits(s, item, offset, sequence, placed, offsets)) offset += alignment;
    offsets[item] = offset;
    const size_t top = s->items[item].bytes == 0 ? 0 : offset + s->items[item].bytes;
    best = min_peak(s, sequence, placed + 1, offsets, top > peak ? top : peak, best);
    sequence[placed] = sequence[k];
    sequence[k] = item;
  }
  return best;
}

#endif
