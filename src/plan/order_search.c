/* SPDX-License-Identifier: MIT
 * Preferences are weighted sums of the logarithms of an item's bytes, of its span (how many nodes its life may meet)
 * and of how crowded it is there, all in whole numbers, so that every machine sorts alike. A few weights are tried
 * always; restarts add noise, and prefer what stuck out before; each is followed by a repair of the best plan.
 */
#include "plan/order_search.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "plan/order_stack.h"

#define ONE 65536                   /* in logarithms */
#define MOST_PLACED_BY_RULES 240000 /* items; the first rule places all there are */
#define REPAIR_STEPS 1000
#define BOUND_WORK_FAST 256 /* looks at each node and edge */
#define BOUND_WORK 8192

typedef struct weights {
  const char *name;
  uint32_t bytes, span, crowd;
  uint32_t noise; /* up to as much is added at random */
  bool by_stream; /* streams that hardly wait for each other are best kept apart */
} weights;

enum { RULES = 4, STREAMS = 3 };

static const weights rules[RULES] = {{"order: area", 4, 4, 0, 0, false},
                                     {"order: crowded area", 4, 4, 4, 0, false},
                                     {"order: crowd", 1, 1, 32, 0, false},
                                     [STREAMS] = {"order: streams", 4, 4, 0, 0, true}};

typedef struct candidate {
  uint64_t key;
  size_t bytes;
  uint32_t item;
} candidate;

/* What preferences are made from. */
typedef struct features {
  uint32_t *bytes, *span, *crowd; /* logarithms, one an item */
  uint64_t *stuck;                /* how much an item is preferred for having stuck out */
  candidate *candidates;
  uint32_t *ranks;
  size_t *crowds; /* a tree of maxima over the nodes: how much is live when they run in their order */
  uint32_t node_count;
} features;

/* Features --------------------------------------------------------------------------------------------------------- */

uint32_t rondo_order_logarithm(uint64_t value) {
  uint32_t whole = 0;
  for (uint32_t step = 32; step > 0; step /= 2) {
    if (value >> whole >> step > 0) whole += step;
  }
  const uint64_t top = whole > 16 ? value >> (whole - 16) : value << (16 - whole);
  return whole * ONE + (uint32_t)(top - ONE);
}

static void measure_crowds(const rondo_plan_problem *problem, features *f) {
  size_t *leaves = f->crowds + f->node_count;
  for (size_t i = 0; i < problem->count; i++) {
    leaves[problem->items[i].lower] += problem->items[i].bytes;
    const uint32_t upper = problem->items[i].upper;
    if (upper != RONDO_PLAN_FOREVER && upper + 1 < f->node_count) leaves[upper + 1] -= problem->items[i].bytes;
  }
  for (uint32_t i = 1; i < f->node_count; i++) leaves[i] += leaves[i - 1];
  for (uint32_t i = f->node_count; i-- > 1;) {
    f->crowds[i] = f->crowds[2 * i] > f->crowds[2 * i + 1] ? f->crowds[2 * i] : f->crowds[2 * i + 1];
  }
}

static size_t most_crowded(const features *f, uint32_t lower, uint32_t upper) {
  size_t low = (size_t)lower + f->node_count;
  size_t high = (size_t)(upper < f->node_count ? upper : f->node_count - 1) + f->node_count + 1;
  size_t most = 0;
  for (; low < high; low /= 2, high /= 2) {
    if (low % 2 == 1 && f->crowds[low++] > most) most = f->crowds[low - 1];
    if (high % 2 == 1 && f->crowds[--high] > most) most = f->crowds[high];
  }
  return most;
}

static rondo_status make_features(const rondo_allocator *allocator, const rondo_lives *lives, features *f) {
  const rondo_plan_problem *problem = lives->problem;
  const size_t count = problem->count;
  f->node_count = problem->order->node_count;
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof(uint32_t), &f->bytes));
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof(uint32_t), &f->span));
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof(uint32_t), &f->crowd));
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof(uint64_t), &f->stuck));
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *f->candidates, &f->candidates));
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof(uint32_t), &f->ranks));
  RONDO_TRY(rondo_allocate_items(allocator, f->node_count, 2 * sizeof(size_t), &f->crowds));
  measure_crowds(problem, f);
  for (size_t i = 0; i < count; i++) {
    const rondo_plan_item *item = &problem->items[i];
    if (item->bytes == 0) continue;
    f->bytes[i] = rondo_order_logarithm(item->bytes);
    f->span[i] = rondo_order_logarithm(rondo_lives_span(lives, &lives->lives[i]));
    f->crowd[i] = rondo_order_logarithm(most_crowded(f, item->lower, item->upper));
  }
  return RONDO_OK;
}

static void free_features(const rondo_allocator *allocator, size_t count, features *f) {
  rondo_release(allocator, f->bytes, count, sizeof(uint32_t));
  rondo_release(allocator, f->span, count, sizeof(uint32_t));
  rondo_release(allocator, f->crowd, count, sizeof(uint32_t));
  rondo_release(allocator, f->stuck, count, sizeof(uint64_t));
  rondo_release(allocator, f->candidates, count, sizeof *f->candidates);
  rondo_release(allocator, f->ranks, count, sizeof(uint32_t));
  rondo_release(allocator, f->crowds, f->node_count, 2 * sizeof(size_t));
}

/* Preferences ------------------------------------------------------------------------------------------------------ */

static int compare_candidates(const void *a, const void *b) {
  const candidate *x = a;
  const candidate *y = b;
  if (x->key != y->key) return x->key > y->key ? -1 : 1;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return (x->item > y->item) - (x->item < y->item);
}

static void rank_by(const rondo_lives *lives, const weights *by, uint64_t seed, features *f) {
  for (uint32_t i = 0; i < lives->count; i++) {
    const uint32_t item = lives->items[i];
    uint64_t key = (uint64_t)by->bytes * f->bytes[item] + (uint64_t)by->span * f->span[item] +
                   (uint64_t)by->crowd * f->crowd[item];
    if (by->noise > 0) key += rondo_hash_u64(seed, item) % by->noise + f->stuck[item];
    f->candidates[i] = (candidate){key, lives->problem->items[item].bytes, item};
  }
  if (lives->count > 1) qsort(f->candidates, lives->count, sizeof *f->candidates, compare_candidates);
  for (uint32_t i = 0; i < lives->count; i++) f->ranks[f->candidates[i].item] = i;
}

static rondo_status try_weights(rondo_order_search *search, features *f, const weights *by, uint64_t seed,
                                uint64_t deadline_ns) {
  size_t peak = 0;
  rank_by(search->lives, by, seed, f);
  const rondo_order_sequence sequence = {f->ranks, by->by_stream};
  RONDO_TRY(rondo_order_placer_run(&search->placer, &sequence, deadline_ns, search->trial, &peak));
  rondo_order_search_offer(search, peak, by->name);
  return RONDO_OK;
}

/* What ends above the bound is preferred from now on; it is long until that is forgotten. */
static void note_stuck(const rondo_order_search *search, features *f) {
  const rondo_plan_item *items = search->lives->problem->items;
  for (uint32_t i = 0; i < search->lives->count; i++) {
    const uint32_t item = search->lives->items[i];
    f->stuck[item] -= f->stuck[item] / 64;
    if (search->trial[item] + items[item].bytes > search->bound->bytes) f->stuck[item] += 2 * ONE;
  }
}

static rondo_status restart(rondo_order_search *search, features *f, uint64_t round) {
  static const weights bases[] = {{NULL, 4, 4, 4, 0, false},
                                  {NULL, 5, 3, 2, 0, false},
                                  {NULL, 3, 3, 2, 0, false},
                                  {NULL, 3, 4, 13, 0, false},
                                  {NULL, 2, 2, 8, 0, true}};
  const uint64_t seed = rondo_hash_u64(search->options->seed, round);
  weights drawn = bases[round % (sizeof bases / sizeof bases[0])];
  drawn.name = "order: restarts";
  drawn.noise = (uint32_t)ONE << (seed % 3);
  search->steps += search->lives->count;
  RONDO_TRY(try_weights(search, f, &drawn, seed, search->deadline_ns));
  note_stuck(search, f);
  return RONDO_OK;
}

/* The search ------------------------------------------------------------------------------------------------------- */

bool rondo_order_search_is_done(const rondo_order_search *search) {
  if (search->peak == SIZE_MAX) return false;
  if (search->peak <= search->bound->bytes || search->peak <= search->options->capacity) return true;
  return (double)search->peak <= search->options->gap * (double)search->bound->bytes;
}

bool rondo_order_search_is_late(const rondo_order_search *search) {
  return search->deadline_ns != UINT64_MAX && rondo_clock_ns() >= search->deadline_ns;
}

bool rondo_order_search_may_go_on(const rondo_order_search *search) {
  const rondo_plan_options *options = search->options;
  if (options->fast_only) return false;
  if (options->budget_steps > 0 && search->steps >= options->budget_steps) return false;
  return !rondo_order_search_is_late(search);
}

size_t rondo_order_search_peak(const rondo_order_search *search, const size_t *offsets) {
  size_t peak = 0;
  for (uint32_t i = 0; i < search->lives->count; i++) {
    const uint32_t item = search->lives->items[i];
    const size_t top = offsets[item] + search->lives->problem->items[item].bytes;
    if (top > peak) peak = top;
  }
  return peak;
}

void rondo_order_search_offer(rondo_order_search *search, size_t peak, const char *method) {
  if (peak >= search->peak) return;
  search->peak = peak;
  search->method = method;
  memcpy(search->offsets, search->trial, search->lives->problem->count * sizeof *search->trial);
}

/* The first plan is often at the cheap bound; the dear one is found only where it is not. */
static rondo_status raise_bound(rondo_order_search *search) {
  const rondo_plan_order *order = search->lives->problem->order;
  const uint64_t size = (uint64_t)order->node_count + order->successor_start[order->node_count];
  const uint64_t work = size * (search->options->fast_only ? BOUND_WORK_FAST : BOUND_WORK);
  const uint64_t now = rondo_clock_ns();
  uint64_t deadline = search->deadline_ns;
  bool exact = false;
  if (deadline != UINT64_MAX) deadline = deadline > now ? now + (deadline - now) / 2 : now;
  return rondo_closure_bound(search->allocator, search->lives->problem, search->lives->branches, work, deadline,
                             search->bound, &exact);
}

/* Stacks that do not better the first plan are given up. *out_far: it is bettered by half of what it is above the bound
 * or more. */
static rondo_status try_stack(rondo_order_search *search, rondo_order_stack *stack, bool *out_far) {
  const size_t before = search->peak;
  *out_far = false;
  if (rondo_order_search_is_done(search) || rondo_order_search_is_late(search)) return RONDO_OK;
  RONDO_TRY(rondo_order_stack_make(search, stack));
  rondo_order_stack_run(stack, 0);
  *out_far = search->peak - search->bound->bytes <= (before - search->bound->bytes) / 2;
  if (search->peak == before) rondo_order_stack_free(stack);
  return RONDO_OK;
}

/* The first rule is given all the time it takes, for there must be a plan. Many items are placed by fewer rules.
 * Streams kept apart by preference are good only where they hardly wait for each other. */
static rondo_status try_rules(rondo_order_search *search, rondo_order_stack *stack, features *f) {
  const size_t first = search->is_loose ? STREAMS : 0;
  const size_t most = search->is_loose ? RULES : STREAMS;
  bool is_far_better = false;
  for (size_t i = 0; i < most && !is_far_better && !rondo_order_search_is_done(search); i++) {
    if (i > 0 && (i + 1) * (size_t)search->lives->count > MOST_PLACED_BY_RULES) break;
    if (i > 0 && rondo_order_search_is_late(search)) break;
    RONDO_TRY(try_weights(search, f, &rules[(first + i) % RULES], 0, i == 0 ? UINT64_MAX : search->deadline_ns));
    if (i > 0 || rondo_order_search_is_done(search)) continue;
    RONDO_TRY(raise_bound(search));
    RONDO_TRY(try_stack(search, stack, &is_far_better));
  }
  return RONDO_OK;
}

static rondo_status search_all(rondo_order_search *search, rondo_order_stack *stack, features *f) {
  RONDO_TRY(try_rules(search, stack, f));
  for (uint64_t round = 0; !rondo_order_search_is_done(search) && rondo_order_search_may_go_on(search); round++) {
    if (stack->room != NULL && round % 2 == 0) {
      rondo_order_stack_run(stack, round + 1);
    } else {
      RONDO_TRY(restart(search, f, round));
    }
    RONDO_TRY(rondo_order_repair(search, REPAIR_STEPS));
  }
  return RONDO_OK;
}

rondo_status rondo_order_search_run(rondo_order_search *search) {
  features f = {0};
  rondo_order_stack stack = {0};
  const size_t count = search->lives->problem->count;
  search->peak = SIZE_MAX;
  search->caution = 1;
  rondo_status status = rondo_order_placer_make(search->allocator, search->lives, &search->placer);
  if (status == RONDO_OK) status = rondo_allocate_items(search->allocator, count, sizeof(size_t), &search->trial);
  if (status == RONDO_OK) status = make_features(search->allocator, search->lives, &f);
  if (status == RONDO_OK) status = search_all(search, &stack, &f);
  rondo_order_stack_free(&stack);
  free_features(search->allocator, count, &f);
  rondo_release(search->allocator, search->trial, count, sizeof(size_t));
  rondo_order_placer_free(search->allocator, &search->placer);
  return status;
}
