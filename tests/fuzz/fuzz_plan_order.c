/* SPDX-License-Identifier: MIT
 * Planning on a partial order: the input is a small problem, a DAG or a chain of steps, with branches, obstacles and
 * alignments, partly invalid. This file finds pair by pair which items may be alive together. A plan must separate
 * these and respect the bound. For random offsets, the checker must agree with the pairs.
 */
#include <rondo/rondo.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz_target.h"

enum { NODES = 24, EDGES = 80, ITEMS = 40, OBSTACLES = 4, BRANCHES = 6 };

typedef struct input {
  const uint8_t *data;
  size_t size;
} input;

typedef struct sample {
  rondo_plan_item items[ITEMS];
  rondo_plan_obstacle obstacles[OBSTACLES];
  rondo_plan_branch branches[BRANCHES];
  uint32_t successor_start[NODES + 1], successors[EDGES];
  bool after[NODES][NODES]; /* [u][v]: v is strictly after u */
  rondo_plan_order order;
  rondo_plan_problem problem;
  bool is_wrong;
} sample;

static uint32_t next(input *in, uint32_t bound) {
  if (in->size == 0) return 0;
  in->size--;
  return *in->data++ % bound;
}

/* Reading ---------------------------------------------------------------------------------------------------------- */

/* Edges may exist twice; a few lead nowhere. */
static void read_edges(input *in, sample *s, uint32_t node, uint32_t nodes, uint32_t *edges) {
  for (uint32_t k = next(in, 4); k > 0 && *edges < EDGES; k--) {
    const uint32_t step = next(in, 256);
    const bool is_wrong = step == 255;
    const uint32_t to = is_wrong ? next(in, node + 1) : node + 1 + step % 8;
    if (!is_wrong && to >= nodes) continue;
    s->successors[(*edges)++] = to;
    s->is_wrong = s->is_wrong || is_wrong;
    s->after[node][to] = !is_wrong;
  }
}

static void read_order(input *in, sample *s) {
  const uint32_t nodes = 1 + next(in, NODES);
  uint32_t edges = 0;
  for (uint32_t u = 0; u < nodes; u++) {
    s->successor_start[u] = edges;
    read_edges(in, s, u, nodes, &edges);
  }
  s->successor_start[nodes] = edges;
  for (uint32_t m = 0; m < nodes; m++) {
    for (uint32_t u = 0; u < nodes; u++) {
      for (uint32_t v = 0; v < nodes; v++) s->after[u][v] |= s->after[u][m] && s->after[m][v];
    }
  }
  s->order = (rondo_plan_order){nodes, s->successor_start, s->successors};
  s->problem.order = &s->order;
}

/* The node after `lower` that follows `skip` others after it; FOREVER if there are not that many. */
static uint32_t find_after(const sample *s, uint32_t lower, uint32_t skip) {
  for (uint32_t v = lower + 1; v < s->order.node_count; v++) {
    if (s->after[lower][v] && skip-- == 0) return v;
  }
  return RONDO_PLAN_FOREVER;
}

static void read_lifetime(input *in, sample *s, uint32_t *lower, uint32_t *upper) {
  const uint32_t length = next(in, 256);
  *lower = next(in, s->problem.order == NULL ? NODES : s->order.node_count);
  if (s->problem.order == NULL) {
    *upper = length % 16 == 0 ? RONDO_PLAN_FOREVER : *lower + length % 16;
  } else if (length < 255) {
    *upper = find_after(s, *lower, length % 16);
  } else {
    *upper = next(in, NODES);
    s->is_wrong = s->is_wrong || *upper >= s->order.node_count || !s->after[*lower][*upper];
  }
}

static void read_branches(input *in, sample *s) {
  s->problem.branch_count = next(in, BRANCHES + 1);
  for (uint32_t i = 0; i < s->problem.branch_count; i++) {
    const uint32_t parent = next(in, BRANCHES);
    s->branches[i].parent = parent < i ? parent : RONDO_PLAN_NO_BRANCH;
    s->branches[i].choice = next(in, 2);
  }
}

static void read_problem(input *in, sample *s) {
  const uint32_t form = next(in, 256);
  s->problem = (rondo_plan_problem){RONDO_PLAN_PROBLEM_INIT, .items = s->items, .obstacles = s->obstacles};
  s->problem.branches = s->branches;
  if (form % 4 != 0) read_order(in, s);
  if (form % 8 >= 4) read_branches(in, s);
  if (form % 16 >= 8) s->problem.obstacle_count = next(in, OBSTACLES + 1);
  for (size_t i = 0; i < s->problem.obstacle_count; i++) {
    rondo_plan_obstacle *obstacle = &s->obstacles[i];
    read_lifetime(in, s, &obstacle->lower, &obstacle->upper);
    obstacle->offset = next(in, 256);
    obstacle->bytes = next(in, 64);
  }
  while (in->size > 0 && s->problem.count < ITEMS) {
    rondo_plan_item *item = &s->items[s->problem.count++];
    read_lifetime(in, s, &item->lower, &item->upper);
    item->bytes = next(in, 256);
    if (form >= 128) item->alignment = (size_t)1 << next(in, 5);
    item->branch = next(in, s->problem.branch_count + 1);
  }
}

/* Pairs ------------------------------------------------------------------------------------------------------------ */

typedef struct thing {
  size_t offset, bytes;
  uint32_t lower, upper, branch;
  bool is_always;
} thing;

static bool comes_before(const sample *s, const thing *a, const thing *b) {
  if (a->upper == RONDO_PLAN_FOREVER || b->is_always) return false;
  return s->problem.order == NULL ? a->upper <= b->lower : s->after[a->upper][b->lower];
}

/* Goes up from both branches until they are alternatives of one choice. */
static bool exclude(const sample *s, uint32_t a, uint32_t b) {
  for (uint32_t x = a; x != 0;) {
    const rondo_plan_branch *p = &s->branches[x - 1];
    for (uint32_t y = b; y != 0;) {
      const rondo_plan_branch *q = &s->branches[y - 1];
      if (x != y && p->parent == q->parent && p->choice == q->choice) return true;
      y = q->parent == RONDO_PLAN_NO_BRANCH ? 0 : q->parent + 1;
    }
    x = p->parent == RONDO_PLAN_NO_BRANCH ? 0 : p->parent + 1;
  }
  return false;
}

static bool are_apart(const sample *s, const thing *a, const thing *b) {
  if (a->bytes == 0 || b->bytes == 0 || a->offset >= b->offset + b->bytes || b->offset >= a->offset + a->bytes) {
    return true;
  }
  return comes_before(s, a, b) || comes_before(s, b, a) || exclude(s, a->branch, b->branch);
}

static thing thing_of(const sample *s, const size_t *offsets, size_t number) {
  if (number < s->problem.count) {
    const rondo_plan_item *item = &s->items[number];
    return (thing){offsets[number], item->bytes, item->lower, item->upper, item->branch, false};
  }
  const rondo_plan_obstacle *obstacle = &s->obstacles[number - s->problem.count];
  const bool is_always = obstacle->lower == 0 && obstacle->upper == RONDO_PLAN_FOREVER;
  return (thing){obstacle->offset, obstacle->bytes, obstacle->lower, obstacle->upper, 0, is_always};
}

static bool is_plan(const sample *s, const size_t *offsets) {
  for (size_t i = 0; i < s->problem.count; i++) {
    const thing item = thing_of(s, offsets, i);
    if (s->items[i].alignment > 1 && item.offset % s->items[i].alignment != 0) return false;
    for (size_t k = i + 1; k < s->problem.count + s->problem.obstacle_count; k++) {
      const thing other = thing_of(s, offsets, k);
      if (!are_apart(s, &item, &other)) return false;
    }
  }
  return true;
}

/* The target ------------------------------------------------------------------------------------------------------- */

static void check_plan(const sample *s, const rondo_plan *plan) {
  rondo_plan_info info = {.struct_size = sizeof info};
  const size_t *offsets = rondo_plan_offsets(plan);
  size_t top = 0;
  REQUIRE(rondo_plan_get_info(plan, &info) == RONDO_OK);
  REQUIRE(rondo_plan_check(NULL, &s->problem, offsets) == RONDO_OK);
  REQUIRE(is_plan(s, offsets));
  for (size_t i = 0; i < s->problem.count; i++) {
    if (s->items[i].bytes > 0 && offsets[i] + s->items[i].bytes > top) top = offsets[i] + s->items[i].bytes;
  }
  REQUIRE(info.peak == top);
  REQUIRE(info.lower_bound <= info.peak);
  REQUIRE(info.optimal || info.lower_bound < info.peak);
}

static void check_checker(const sample *s, const uint8_t *data, size_t size) {
  size_t offsets[ITEMS];
  for (size_t i = 0; i < s->problem.count; i++) offsets[i] = size == 0 ? 64 * i : 4 * (size_t)data[(7 * i) % size];
  const rondo_status status = rondo_plan_check(NULL, &s->problem, offsets);
  REQUIRE(status == (is_plan(s, offsets) ? RONDO_OK : RONDO_INVALID_DATA));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static sample s;
  memset(&s, 0, sizeof s);
  input in = {data, size};
  rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .budget_steps = 1 + 16 * (uint64_t)next(&in, 64)};
  options.seed = next(&in, 4);
  options.fast_only = options.seed == 3;
  read_problem(&in, &s);
  if (s.problem.count == 0) return 0; /* of an empty plan, not everything is checked */
  rondo_plan *plan = NULL;
  const rondo_status status = rondo_plan_make(&s.problem, &options, &plan);
  REQUIRE((status == RONDO_OK) == (plan != NULL));
  REQUIRE(status == (s.is_wrong ? RONDO_INVALID_ARGUMENT : RONDO_OK));
  if (status == RONDO_OK) {
    check_plan(&s, plan);
    check_checker(&s, data, size);
  }
  rondo_plan_destroy(plan);
  return 0;
}
