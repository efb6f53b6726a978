/* SPDX-License-Identifier: MIT
 * The portfolio: lowest-skyline placing under several orders of preference, until one meets the lower bound; the best
 * is kept, the earlier one among equals. Which rules, and that they suffice for the memory of neural networks: the
 * traces of MiniMalloc (Moffitt, ASPLOS 2023) and of training runs, on which no order is best everywhere.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "plan/plan_internal.h"
#include "plan/profile.h"
#include "plan/skyline.h"

typedef double (*key_function)(const rondo_plan_item *item, const rondo_profile *profile);

/* Steps of a life, as a number that orders lives by length. */
static double duration(const rondo_plan_item *item, const rondo_profile *profile) {
  (void)profile;
  return (double)item->upper - (double)item->lower;
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

static rondo_status prepare(planner *p, rondo_plan_info *info) {
  const size_t count = p->problem->count;
  RONDO_TRY(rondo_profile_make(p->allocator, p->problem, &p->profile));
  info->lower_bound = rondo_profile_peak(&p->profile);
  info->peak = SIZE_MAX;
  RONDO_TRY(rondo_allocate(p->allocator, count, sizeof *p->offsets, (void **)&p->offsets));
  RONDO_TRY(rondo_allocate(p->allocator, count, sizeof *p->candidates, (void **)&p->candidates));
  return rondo_allocate(p->allocator, count, sizeof *p->ranks, (void **)&p->ranks);
}

static rondo_status try_rules(planner *p, size_t *offsets, rondo_plan_info *info) {
  for (size_t i = 0; i < sizeof rules / sizeof rules[0] && info->peak > info->lower_bound; i++) {
    size_t peak = 0;
    rank_by(p, &rules[i]);
    RONDO_TRY(rondo_skyline_place(p->allocator, p->problem, p->ranks, p->offsets, &peak));
    if (peak < info->peak) {
      info->peak = peak;
      info->method = rules[i].name;
      memcpy(offsets, p->offsets, p->problem->count * sizeof *p->offsets);
    }
  }
  info->optimal = info->peak == info->lower_bound;
  return RONDO_OK;
}

rondo_status rondo_interval_plan(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                                 const rondo_plan_options *options, size_t *offsets, rondo_plan_info *info) {
  (void)options;
  planner p = {.allocator = allocator, .problem = problem};
  if (problem->obstacle_count > 0) return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE, "plans with obstacles");
  rondo_status status = prepare(&p, info);
  if (status == RONDO_OK) status = try_rules(&p, offsets, info);
  rondo_profile_free(allocator, &p.profile);
  rondo_release(allocator, p.offsets, problem->count, sizeof *p.offsets);
  rondo_release(allocator, p.candidates, problem->count, sizeof *p.candidates);
  rondo_release(allocator, p.ranks, problem->count, sizeof *p.ranks);
  return status;
}
