/* SPDX-License-Identifier: MIT
 * Serial executions. While one runs, a tree of branches and choices holds the live bytes. A branch has its own live
 * bytes and, for each choice in it, those of the branch of the choice that has the most.
 */
#include "plan/partial_order/order_bound.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"

#define NONE UINT32_MAX

typedef struct serial {
  const rondo_plan_problem *problem;
  const rondo_branches *branches;
  uint32_t node_count;
  uint32_t *first_alloc, *first_free; /* of each node: the first item that it allocates or frees; NONE: none */
  uint32_t *next_alloc, *next_free;   /* of each item: the next item of its node */
  size_t *live;                       /* of each branch */
  size_t *largest;                    /* of each choice: the live bytes of its largest branch */
  uint32_t *largest_branch;           /* of each choice: the branch with the most live bytes */
  uint32_t *ready;                    /* heap of nodes whose predecessors have run */
  size_t ready_count;
  uint32_t *blocked; /* of each node: predecessors that have not run */
  int64_t *gain;     /* of each node: what it allocates less what it frees, in a unit in which sums fit */
} serial;

/* The live bytes --------------------------------------------------------------------------------------------------- */

/* Finds the largest branch of a choice. */
static void find_largest(serial *s, uint32_t choice) {
  const rondo_branches *branches = s->branches;
  uint32_t best = branches->sorted[branches->choice_begin[choice]];
  for (uint32_t i = branches->choice_begin[choice]; i < branches->choice_begin[choice + 1]; i++) {
    if (s->live[branches->sorted[i]] > s->live[best]) best = branches->sorted[i];
  }
  s->largest_branch[choice] = best;
  s->largest[choice] = s->live[best];
}

static void add_live(serial *s, uint32_t branch, size_t bytes, bool adds) {
  for (;;) {
    s->live[branch] = adds ? s->live[branch] + bytes : s->live[branch] - bytes;
    if (branch == 0) return;
    const uint32_t choice = s->branches->choice[branch];
    const size_t before = s->largest[choice];
    if (s->live[branch] > before) {
      s->largest[choice] = s->live[branch];
      s->largest_branch[choice] = branch;
    } else if (!adds && s->largest_branch[choice] == branch) {
      find_largest(s, choice);
    }
    if (s->largest[choice] == before) return;
    bytes = adds ? s->largest[choice] - before : before - s->largest[choice];
    branch = s->branches->parent[branch];
  }
}

static void run_node(serial *s, uint32_t node, rondo_order_bound *bound) {
  const rondo_plan_item *items = s->problem->items;
  for (uint32_t i = s->first_alloc[node]; i != NONE; i = s->next_alloc[i]) {
    add_live(s, items[i].branch, items[i].bytes, true);
  }
  if (s->live[0] > bound->bytes) {
    bound->bytes = s->live[0];
    for (uint32_t i = 0; i < s->branches->choice_count; i++) bound->taken[i] = s->largest_branch[i];
  }
  for (uint32_t i = s->first_free[node]; i != NONE; i = s->next_free[i]) {
    add_live(s, items[i].branch, items[i].bytes, false);
  }
}

static void start_empty(serial *s) {
  memset(s->live, 0, s->branches->count * sizeof *s->live);
  for (uint32_t i = 0; i < s->branches->choice_count; i++) find_largest(s, i);
}

/* Allocating first ------------------------------------------------------------------------------------------------- */

static bool runs_before(const serial *s, uint32_t a, uint32_t b) {
  return s->gain[a] != s->gain[b] ? s->gain[a] > s->gain[b] : a < b;
}

static void add_ready(serial *s, uint32_t node) {
  size_t at = s->ready_count++;
  for (; at > 0 && runs_before(s, node, s->ready[(at - 1) / 2]); at = (at - 1) / 2)
    s->ready[at] = s->ready[(at - 1) / 2];
  s->ready[at] = node;
}

static uint32_t take_ready(serial *s) {
  const uint32_t first = s->ready[0];
  const uint32_t last = s->ready[--s->ready_count];
  size_t at = 0;
  for (size_t child = 1; child < s->ready_count; child = 2 * at + 1) {
    if (child + 1 < s->ready_count && runs_before(s, s->ready[child + 1], s->ready[child])) child++;
    if (!runs_before(s, s->ready[child], last)) break;
    s->ready[at] = s->ready[child];
    at = child;
  }
  s->ready[at] = last;
  return first;
}

static void run_allocating_first(serial *s, rondo_order_bound *bound) {
  const rondo_plan_order *order = s->problem->order;
  for (uint32_t i = 0; i < s->node_count; i++) {
    if (s->blocked[i] == 0) add_ready(s, i);
  }
  while (s->ready_count > 0) {
    const uint32_t node = take_ready(s);
    run_node(s, node, bound);
    for (uint32_t i = order->successor_start[node]; i < order->successor_start[node + 1]; i++) {
      if (--s->blocked[order->successors[i]] == 0) add_ready(s, order->successors[i]);
    }
  }
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static void prepare(serial *s) {
  const rondo_plan_order *order = s->problem->order;
  for (uint32_t i = 0; i < s->node_count; i++) s->first_alloc[i] = s->first_free[i] = NONE;
  for (uint32_t i = 0; i < s->problem->count; i++) {
    const rondo_plan_item *item = &s->problem->items[i];
    if (item->bytes == 0) continue;
    const int64_t gain = (int64_t)(item->bytes / 4 + 1); /* their sum fits in a size_t */
    s->next_alloc[i] = s->first_alloc[item->lower];
    s->first_alloc[item->lower] = i;
    s->gain[item->lower] += gain;
    if (item->upper == RONDO_PLAN_FOREVER) continue;
    s->next_free[i] = s->first_free[item->upper];
    s->first_free[item->upper] = i;
    s->gain[item->upper] -= gain;
  }
  for (uint32_t i = 0; s->node_count > 0 && i < order->successor_start[s->node_count]; i++) {
    s->blocked[order->successors[i]]++;
  }
}

static rondo_status allocate(rondo_scratch *scratch, serial *s) {
  const size_t nodes = s->node_count;
  const size_t items = s->problem->count;
  RONDO_TRY(rondo_scratch_take(scratch, nodes, sizeof(uint32_t), &s->first_alloc));
  RONDO_TRY(rondo_scratch_take(scratch, nodes, sizeof(uint32_t), &s->first_free));
  RONDO_TRY(rondo_scratch_take(scratch, items, sizeof(uint32_t), &s->next_alloc));
  RONDO_TRY(rondo_scratch_take(scratch, items, sizeof(uint32_t), &s->next_free));
  RONDO_TRY(rondo_scratch_take(scratch, s->branches->count, sizeof(size_t), &s->live));
  RONDO_TRY(rondo_scratch_take(scratch, s->branches->choice_count, sizeof(size_t), &s->largest));
  RONDO_TRY(rondo_scratch_take(scratch, s->branches->choice_count, sizeof(uint32_t), &s->largest_branch));
  RONDO_TRY(rondo_scratch_take(scratch, nodes, sizeof(uint32_t), &s->ready));
  RONDO_TRY(rondo_scratch_take(scratch, nodes, sizeof(uint32_t), &s->blocked));
  return rondo_scratch_take(scratch, nodes, sizeof(int64_t), &s->gain);
}

rondo_status rondo_serial_bound(rondo_scratch *scratch, const rondo_plan_problem *problem,
                                const rondo_branches *branches, rondo_order_bound *bound) {
  serial s = {.problem = problem, .branches = branches, .node_count = problem->order->node_count};
  rondo_scratch temporary = {.allocator = scratch->allocator};
  *bound = (rondo_order_bound){0};
  RONDO_TRY(rondo_scratch_take(scratch, branches->choice_count, sizeof *bound->taken, &bound->taken));
  const rondo_status status = allocate(&temporary, &s);
  if (status == RONDO_OK) {
    prepare(&s);
    start_empty(&s);
    for (uint32_t i = 0; i < branches->choice_count; i++) bound->taken[i] = s.largest_branch[i];
    for (uint32_t i = 0; i < s.node_count; i++) run_node(&s, i, bound);
    start_empty(&s);
    run_allocating_first(&s, bound);
  }
  rondo_scratch_free(&temporary);
  return status;
}

rondo_status rondo_serial_bytes(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                                size_t *out_bytes) {
  rondo_scratch scratch = {.allocator = allocator};
  rondo_branches branches;
  rondo_order_bound bound = {0};
  rondo_status status = rondo_branches_make(&scratch, problem, &branches);
  if (status == RONDO_OK) status = rondo_serial_bound(&scratch, problem, &branches, &bound);
  *out_bytes = bound.bytes;
  rondo_scratch_free(&scratch);
  return status;
}
