/* SPDX-License-Identifier: MIT
 * The planner for one order of execution. It cuts the problem into parts. It plans each part by several rules, and
 * large parts around their dense cores, until the whole is good enough. The best plan is kept, the earlier one among
 * equals.
 */
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "plan/interval/dense_core.h"
#include "plan/interval/earlier_plan.h"
#include "plan/interval/placer.h"
#include "plan/search/improve_parts.h"
#include "plan/search/random_restarts.h"
#include "plan/search/trials.h"

/* Placing boxes one by one takes quadratic time: for this many, about as long as a skyline. */
#define FEW_BOXES 2048

/* Fewer boxes are placed before another thread has started. */
#define BOXES_FOR_THREADS 2048

/* The fast path plans no cores if a part of few boxes is this near the bound: 1 / FAST_NEARNESS above it. */
#define FAST_NEARNESS 512

/* Rounds of cores of the fast path. */
#define FAST_ROUNDS 2

/* With this many boxes, the core comes before most rules. */
#define BOXES_FOR_CORE_FIRST 16384

/* Rules that are tried before the core. */
#define RULES_BEFORE_CORE 2

/* The peak of a plan around its core may be 1 / CORE_NEARNESS of the bound above it, so that the rest has space. */
#define CORE_NEARNESS 2048

/* Restarts of the fast path: the maximum numbers of runs, and of boxes that they place in all. */
#define FAST_RUNS 32
#define FAST_PLACINGS (UINT64_C(1) << 20)

typedef struct planner {
  rondo_scratch scratch;
  const rondo_plan_problem *problem;
  const rondo_plan_options *options;
  rondo_box_set set;
  rondo_parts parts;
  rondo_placer placer;
  uint64_t *offsets; /* of each box, above its part's base */
  uint64_t floor;    /* no plan of the boxes has a lower peak */
  uint64_t target;   /* a plan of this peak is good enough */
  uint64_t deadline; /* in nanoseconds of the clock; 0: none */
} planner;

/* Goals ------------------------------------------------------------------------------------------------------------ */

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t scaled(uint64_t value, double factor) {
  const double product = (double)value * factor;
  return product >= (double)RONDO_NO_LIMIT ? RONDO_NO_LIMIT : larger(value, (uint64_t)product);
}

static void set_goals(planner *p, uint64_t start) {
  p->floor = p->parts.bottom;
  for (size_t i = 0; i < p->parts.count; i++) {
    p->floor = larger(p->floor, p->parts.items[i].base + p->parts.items[i].lower_bound);
  }
  p->target = larger(scaled(p->floor, p->options->gap), p->options->capacity);
  if (p->options->budget_ms > 0) p->deadline = start + p->options->budget_ms * UINT64_C(1000000);
}

static bool is_good(const planner *p, const rondo_part *part) {
  return part->peak != UINT64_MAX && part->peak + part->base <= p->target;
}

/* A part gets a plan even if the time is over. */
static bool is_done(const planner *p, const rondo_part *part) {
  if (part->peak == UINT64_MAX) return false;
  return is_good(p, part) || rondo_clock_is_past(p->deadline);
}

/* Fast rules ------------------------------------------------------------------------------------------------------- */

/* The highest peak that improves the part's plan. */
static uint64_t limit_of(const rondo_part *part) { return part->peak == UINT64_MAX ? RONDO_NO_LIMIT : part->peak - 1; }

static void keep(planner *p, rondo_part *part, const uint64_t *offsets, uint64_t peak, const char *method) {
  part->peak = peak;
  part->method = method;
  memcpy(p->offsets + part->first, offsets, part->boxes.count * sizeof *p->offsets);
}

static void try_slots(planner *p, rondo_part *part) {
  uint64_t peak = 0;
  if (part->boxes.alignments != NULL || part->boxes.obstacles != NULL) return;
  if (rondo_placer_by_slots(&p->placer, &peak)) keep(p, part, p->placer.trial, peak, "slots");
}

/* What the threads share. */
typedef struct rules_task {
  const rondo_rule *rules;
  rondo_placer *placer; /* of the caller's thread */
  uint64_t limit;
  _Atomic uint64_t lowest; /* peak of all threads, or the limit */
} rules_task;

/* A rule is a trial. */
typedef struct rules_thread {
  rondo_trial_thread base;
  rondo_placer *placer;
  rondo_placer own; /* not of the caller's thread */
} rules_thread;

static rondo_status prepare_rules(void *thread, rondo_scratch *scratch) {
  rules_thread *t = thread;
  const rules_task *task = t->base.all->task;
  const rondo_boxes *boxes = task->placer->boxes;
  t->placer = t->base.index == 0 ? task->placer : &t->own;
  if (t->base.index == 0) return RONDO_OK;
  RONDO_TRY(rondo_placer_make(scratch, boxes->count, boxes->section_count, &t->own));
  rondo_placer_bind(&t->own, boxes);
  return RONDO_OK;
}

/* A run ends above the lowest peak so far, but neither at it nor below the target: so the best rule runs to its end,
 * whichever thread is fast. */
static rondo_status try_rule(void *thread, uint64_t rule) {
  rules_thread *t = thread;
  rules_task *task = t->base.all->task;
  uint64_t peak = 0;
  uint64_t lowest = atomic_load(&task->lowest);
  const uint64_t limit = larger(lowest, t->base.all->target);
  if (!rondo_placer_by_rule(t->placer, &task->rules[rule], limit, &peak) || peak > task->limit) return RONDO_OK;
  while (peak < lowest && !atomic_compare_exchange_weak(&task->lowest, &lowest, peak)) continue;
  rondo_trials_offer(&t->base, rule, peak, t->placer->trial);
  return RONDO_OK;
}

static rondo_status try_rules(planner *p, rondo_part *part, size_t first, size_t end) {
  size_t count = 0;
  const rondo_rule *rules = rondo_skyline_rules(&count);
  if (is_done(p, part)) return RONDO_OK;
  rules_task task = {.rules = rules + first, .placer = &p->placer, .limit = limit_of(part), .lowest = limit_of(part)};
  rondo_trials trials = {.count = (end < count ? end : count) - first,
                         .stride = 1,
                         .target = rondo_part_above_base(part, p->target),
                         .deadline_ns = p->deadline,
                         .boxes = part->boxes.count,
                         .threads = part->boxes.count < BOXES_FOR_THREADS ? 1 : p->options->threads,
                         .thread_bytes = sizeof(rules_thread),
                         .task = &task,
                         .prepare = prepare_rules,
                         .attempt = try_rule};
  rondo_scratch scratch = {.allocator = p->scratch.allocator};
  const rondo_trial_thread *best = NULL;
  const rondo_status status = rondo_trials_run(&scratch, &trials, &best);
  if (best != NULL) keep(p, part, best->best, best->peak, task.rules[best->number].name);
  rondo_scratch_free(&scratch);
  return status;
}

static void try_fits(planner *p, rondo_part *part) {
  uint64_t peak = 0;
  if (part->boxes.obstacles != NULL || part->boxes.count > FEW_BOXES || is_done(p, part)) return;
  if (rondo_placer_by_sweep(&p->placer, limit_of(part), &peak)) keep(p, part, p->placer.trial, peak, "sweep");
  if (is_done(p, part)) return;
  if (rondo_placer_by_first_fit(&p->placer, limit_of(part), &peak)) keep(p, part, p->placer.trial, peak, "first fit");
}

static uint64_t core_limit(const rondo_part *part) { return part->lower_bound + part->lower_bound / CORE_NEARNESS; }

/* Whether the plan is as near the bound as a plan around a core. */
static bool is_near(const rondo_part *part) { return part->peak <= core_limit(part); }

/* Whether the plan is good enough for the fast path. */
static bool is_fast_near(const rondo_part *part) {
  return part->peak <= part->lower_bound + part->lower_bound / FAST_NEARNESS;
}

/* The second round of cores allows more space above the bound. */
static rondo_status try_cores(planner *p, rondo_part *part) {
  static const uint64_t nearness[FAST_ROUNDS] = {CORE_NEARNESS, FAST_NEARNESS};
  if (part->boxes.alignments != NULL || part->boxes.obstacles != NULL) return RONDO_OK;
  for (; part->cores < FAST_ROUNDS && !is_done(p, part); part->cores++) {
    const uint64_t before = part->peak;
    uint64_t steps = 0;
    const rondo_cores cores = {.round = part->cores,
                               .most_steps = UINT64_MAX,
                               .limit = larger(rondo_part_above_base(part, p->target),
                                               part->lower_bound + part->lower_bound / nearness[part->cores]),
                               .deadline_ns = p->deadline,
                               .threads = p->options->threads};
    RONDO_TRY(rondo_cores_improve(p->scratch.allocator, &cores, part, p->offsets + part->first, &part->peak, &steps));
    if (part->peak < before) part->method = "core";
  }
  return RONDO_OK;
}

/* A few runs, for parts that are too large to place boxes one by one. */
static rondo_status try_restarts(planner *p, rondo_part *part) {
  const uint64_t before = part->peak;
  uint64_t runs = FAST_PLACINGS / part->boxes.count;
  if (p->options->fast_only && is_fast_near(part)) return RONDO_OK;
  if (part->boxes.count <= FEW_BOXES || is_near(part) || is_done(p, part)) return RONDO_OK;
  const rondo_restarts restarts = {.boxes = &part->boxes,
                                   .target = larger(rondo_part_above_base(part, p->target), core_limit(part)),
                                   .deadline_ns = p->deadline,
                                   .runs = runs < FAST_RUNS ? runs : FAST_RUNS,
                                   .seed = p->options->seed,
                                   .threads = 1};
  RONDO_TRY(rondo_restarts_improve(p->scratch.allocator, &restarts, p->offsets + part->first, &part->peak, &runs));
  if (part->peak < before) part->method = "restarts";
  return RONDO_OK;
}

/* With many boxes, each rule takes long, and a core seldom fails. */
static rondo_status plan_many(planner *p, rondo_part *part) {
  RONDO_TRY(try_rules(p, part, 0, RULES_BEFORE_CORE));
  RONDO_TRY(try_cores(p, part));
  RONDO_TRY(try_restarts(p, part));
  return is_near(part) ? RONDO_OK : try_rules(p, part, RULES_BEFORE_CORE, SIZE_MAX);
}

static rondo_status plan_few(planner *p, rondo_part *part) {
  RONDO_TRY(try_rules(p, part, 0, SIZE_MAX));
  try_fits(p, part);
  if (p->options->fast_only && is_fast_near(part)) return RONDO_OK;
  RONDO_TRY(try_cores(p, part));
  return try_restarts(p, part);
}

static rondo_status plan_fast(planner *p) {
  for (size_t i = 0; i < p->parts.count; i++) {
    rondo_part *part = &p->parts.items[i];
    rondo_placer_bind(&p->placer, &part->boxes);
    try_slots(p, part);
    RONDO_TRY(part->boxes.count >= BOXES_FOR_CORE_FIRST ? plan_many(p, part) : plan_few(p, part));
    if (part->peak != UINT64_MAX) continue;
    return rondo_fail(
        RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
        "%zu items with their alignments and %zu obstacles do not fit into %zu bits of offsets: make them smaller",
        p->problem->count, p->problem->obstacle_count, 8 * sizeof(size_t));
  }
  return RONDO_OK;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status plan_slow(planner *p, rondo_plan_info *info) {
  rondo_improvement improvement = {.options = p->options, .target = p->target, .deadline_ns = p->deadline};
  if (p->options->fast_only) return RONDO_OK;
  RONDO_TRY(rondo_parts_improve(p->scratch.allocator, &p->parts, &improvement, p->offsets));
  info->steps = improvement.steps;
  return RONDO_OK;
}

static rondo_status prepare(planner *p, uint64_t start) {
  uint32_t boxes = 0;
  uint32_t sections = 0;
  RONDO_TRY(rondo_box_set_make(&p->scratch, p->problem, &p->set));
  RONDO_TRY(rondo_scratch_take(&p->scratch, p->set.all.count, sizeof *p->offsets, &p->offsets));
  RONDO_TRY(rondo_parts_make(p->scratch.allocator, &p->set, p->offsets, &p->parts));
  set_goals(p, start);
  for (size_t i = 0; i < p->parts.count; i++) {
    const rondo_boxes *of = &p->parts.items[i].boxes;
    if (of->count > boxes) boxes = of->count;
    if (of->section_count > sections) sections = of->section_count;
  }
  return rondo_placer_make(&p->scratch, boxes, sections, &p->placer);
}

static void write_result(const planner *p, size_t *offsets, rondo_plan_info *info) {
  const rondo_part *highest = rondo_parts_highest(&p->parts);
  memset(offsets, 0, p->problem->count * sizeof *offsets);
  for (uint32_t i = 0; i < p->set.all.count; i++) offsets[p->set.all.items[i]] = p->offsets[i];
  for (size_t i = 0; i < p->parts.count; i++) {
    const rondo_part *part = &p->parts.items[i];
    for (uint32_t k = 0; k < part->boxes.count; k++) offsets[part->boxes.items[k]] += part->base;
  }
  info->peak = 0;
  for (size_t i = 0; i < p->problem->count; i++) {
    const size_t end = offsets[i] + p->problem->items[i].bytes;
    if (end > info->peak) info->peak = end;
  }
  info->method = highest == NULL ? "stacking" : highest->method;
  info->lower_bound = p->set.lower_bound;
  info->optimal = info->peak == info->lower_bound || (highest != NULL && highest->optimal && !p->set.rounded);
}

/* Whether the plan that begins with an earlier one is good enough. */
static rondo_status try_earlier(planner *p, size_t *offsets, rondo_plan_info *info, bool *out_taken) {
  size_t peak;
  *out_taken = false;
  if (p->options->start == NULL || p->problem->obstacle_count > 0) return RONDO_OK;
  RONDO_TRY(rondo_earlier_stack(&p->scratch, p->problem, p->options->start, offsets, &peak));
  *out_taken = peak <= p->target;
  if (!*out_taken) return RONDO_OK;
  info->peak = peak;
  info->lower_bound = p->set.lower_bound;
  info->optimal = peak == info->lower_bound;
  info->method = "earlier plan";
  return RONDO_OK;
}

rondo_status rondo_interval_plan(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                                 const rondo_plan_options *options, size_t *offsets, rondo_plan_info *info) {
  planner p = {.scratch.allocator = allocator, .problem = problem, .options = options};
  bool is_planned = false;
  rondo_status status = prepare(&p, rondo_clock_ns());
  if (status == RONDO_OK) status = try_earlier(&p, offsets, info, &is_planned);
  if (status == RONDO_OK && !is_planned) status = plan_fast(&p);
  if (status == RONDO_OK && !is_planned) status = plan_slow(&p, info);
  if (status == RONDO_OK && !is_planned) write_result(&p, offsets, info);
  rondo_array_free(allocator, &p.parts);
  rondo_scratch_free(&p.scratch);
  return status;
}
