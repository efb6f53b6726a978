/* SPDX-License-Identifier: MIT
 * The portfolio: lowest-skyline placing under several orders of preference, until one meets the lower bound; the best
 * is kept, the earlier one among equals. Which rules, and that they suffice for the memory of neural networks: the
 * traces of MiniMalloc (Moffitt, ASPLOS 2023) and of training runs, on which no order is best everywhere.
 */
#include "plan/plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "plan/profile.h"
#include "plan/skyline.h"

typedef double (*key_function)(const rondo_plan_item *item, const rondo_profile *profile);

/* Steps of a life, as a number that orders lives by length. */
static double duration(const rondo_plan_item *item, const rondo_profile *profile) {
  (void)profile;
  return (double)item->last - (double)item->first + 1.0;
}

static double bytes(const rondo_plan_item *item, const rondo_profile *profile) {
  (void)profile;
  return (double)item->bytes;
}

static double area(const rondo_plan_item *item, const rondo_profile *profile) {
  return bytes(item, profile) * duration(item, profile);
}

/* How crowded it is where the item lives. */
static double crowding(const rondo_plan_item *item, const rondo_profile *profile) {
  return (double)rondo_profile_most(profile, item);
}

typedef struct rule {
  const char *name;
  key_function key, then; /* larger first; ties by `then`, then by bytes, then by number */
} rule;

static const rule rules[] = {
    {"area", area, duration},
    {"crowding", crowding, area},
    {"duration", duration, bytes},
    {"bytes", bytes, duration},
};

typedef struct candidate {
  double key, then;
  size_t bytes;
  uint32_t item;
} candidate;

typedef struct planner {
  const rondo_allocator *allocator;
  const rondo_plan_problem *problem;
  rondo_profile profile;
  candidate *candidates;
  uint32_t *ranks;
  size_t *offsets; /* of the rule that is being tried */
} planner;

static int compare_candidates(const void *a, const void *b) {
  const candidate *x = a;
  const candidate *y = b;
  if (x->key != y->key) return x->key > y->key ? -1 : 1;
  if (x->then != y->then) return x->then > y->then ? -1 : 1;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return (x->item > y->item) - (x->item < y->item);
}

static void rank_by(planner *p, const rule *by) {
  for (uint32_t i = 0; i < p->problem->count; i++) {
    const rondo_plan_item *item = &p->problem->items[i];
    p->candidates[i] = (candidate){by->key(item, &p->profile), by->then(item, &p->profile), item->bytes, i};
  }
  qsort(p->candidates, p->problem->count, sizeof *p->candidates, compare_candidates);
  for (uint32_t i = 0; i < p->problem->count; i++) p->ranks[p->candidates[i].item] = i;
}

/* Sum, alignment and count, checked; the sum leaves room for the gaps that alignment can make. */
static rondo_status measure(const rondo_plan_problem *problem, rondo_plan *plan) {
  if (problem->count >= UINT32_MAX / 4) {
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE, "%zu items to plan memory for; the bound is %u",
                      problem->count, UINT32_MAX / 4);
  }
  plan->count = problem->count;
  plan->alignment = 1;
  for (size_t i = 0; i < problem->count; i++) {
    const rondo_plan_item *item = &problem->items[i];
    assert(item->first <= item->last && (item->alignment & (item->alignment - 1)) == 0);
    if (!rondo_checked_add(plan->sum, item->bytes, &plan->sum)) {
      return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                        "the bytes of %zu items to plan memory for do not add up in %zu bits", problem->count,
                        8 * sizeof(size_t));
    }
    if (item->alignment > plan->alignment) plan->alignment = item->alignment;
  }
  return RONDO_OK;
}

static rondo_status prepare(planner *p, rondo_plan *plan) {
  const size_t count = p->problem->count;
  RONDO_TRY(measure(p->problem, plan));
  RONDO_TRY(rondo_profile_make(p->allocator, p->problem, &p->profile));
  plan->lower_bound = rondo_profile_peak(&p->profile);
  plan->peak = SIZE_MAX;
  RONDO_TRY(rondo_allocate(p->allocator, count, sizeof *plan->offsets, (void **)&plan->offsets));
  RONDO_TRY(rondo_allocate(p->allocator, count, sizeof *p->offsets, (void **)&p->offsets));
  RONDO_TRY(rondo_allocate(p->allocator, count, sizeof *p->candidates, (void **)&p->candidates));
  return rondo_allocate(p->allocator, count, sizeof *p->ranks, (void **)&p->ranks);
}

static rondo_status try_rules(planner *p, rondo_plan *plan) {
  for (size_t i = 0; i < sizeof rules / sizeof rules[0] && plan->peak > plan->lower_bound; i++) {
    size_t peak = 0;
    rank_by(p, &rules[i]);
    RONDO_TRY(rondo_skyline_place(p->allocator, p->problem, p->ranks, p->offsets, &peak));
    if (peak < plan->peak) {
      plan->peak = peak;
      plan->method = rules[i].name;
      memcpy(plan->offsets, p->offsets, p->problem->count * sizeof *p->offsets);
    }
  }
  return RONDO_OK;
}

static rondo_status prove(const planner *p, const rondo_plan *plan) {
#ifdef NDEBUG
  (void)p;
  (void)plan;
  return RONDO_OK;
#else
  const rondo_status status = rondo_plan_check(p->allocator, p->problem, plan);
  assert(status == RONDO_OK || status == RONDO_OUT_OF_MEMORY);
  return status;
#endif
}

rondo_status rondo_plan_make(const rondo_allocator *allocator, const rondo_plan_problem *problem, rondo_plan *out) {
  *out = (rondo_plan){.alignment = 1, .method = "none"};
  if (problem->count == 0) return RONDO_OK;
  planner p = {.allocator = allocator, .problem = problem};
  rondo_status status = prepare(&p, out);
  if (status == RONDO_OK) status = try_rules(&p, out);
  if (status == RONDO_OK) status = prove(&p, out);
  rondo_profile_free(allocator, &p.profile);
  rondo_release(allocator, p.offsets, problem->count, sizeof *p.offsets);
  rondo_release(allocator, p.candidates, problem->count, sizeof *p.candidates);
  rondo_release(allocator, p.ranks, problem->count, sizeof *p.ranks);
  if (status != RONDO_OK) rondo_plan_free(allocator, out);
  return status;
}

void rondo_plan_free(const rondo_allocator *allocator, rondo_plan *plan) {
  rondo_release(allocator, plan->offsets, plan->count, sizeof *plan->offsets);
  *plan = (rondo_plan){0};
}
