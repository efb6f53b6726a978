/* SPDX-License-Identifier: MIT
 * The core is a problem of its own, which rondo_interval_plan plans with a budget in steps. A repair works on a copy of
 * the plan, which replaces the part's plan once it is complete. Sizes of cores are trials; each repairs its own copy.
 */
#include "plan/interval/dense_core.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "plan/interval/placement_rules.h"
#include "plan/search/ejection_chains.h"
#include "plan/search/trials.h"

/* Scans of a repair that take as long as a step. */
#define SCANS_PER_STEP 8

/* The minimum number of scans of a repair; the maximum number for each box of the part and unit of effort. */
#define LEAST_SCANS (UINT64_C(1) << 20)
#define MOST_SCANS_PER_BOX 160

/* Boxes of the part that are sorted, to find the core, in the time of a step. */
#define SORTED_PER_STEP 8

/* If a repair fails, the space above the bound is multiplied by this for the next try. */
#define SPACE_GROWTH 8

typedef struct worker {
  rondo_scratch scratch;
  const rondo_core *of;
  const rondo_part *part;
  uint32_t *inside; /* boxes of the core */
  uint32_t inside_count;
  rondo_plan_item *items; /* the same, as a problem */
  size_t *inside_offsets;
  uint64_t *offsets; /* of all boxes, while they are repaired */
  uint8_t *states;
  rondo_neighbours neighbours;
  uint64_t peak; /* limit of the repair */
  rondo_core_cost cost;
} worker;

/* Whether the budget allows so many more steps. */
static bool fits(worker *w, uint64_t steps) {
  if (w->cost.steps + steps > w->cost.needed) w->cost.needed = w->cost.steps + steps;
  return w->cost.needed <= w->of->most_steps;
}

/* The core --------------------------------------------------------------------------------------------------------- */

/* The smallest crowding of a box of the core: about `of->boxes` boxes have it or more. 0: too many have the same
 * crowding. */
static rondo_status least_crowding(worker *w, uint64_t *out) {
  const rondo_boxes *boxes = &w->part->boxes;
  const uint32_t want = w->of->boxes;
  rondo_sort_entry *entries = NULL;
  *out = 0;
  RONDO_TRY(rondo_scratch_take(&w->scratch, boxes->count, 2 * sizeof *entries, &entries));
  for (uint32_t i = 0; i < boxes->count; i++) entries[i] = (rondo_sort_entry){UINT64_MAX - boxes->crowding[i], i};
  rondo_sort_entries(entries, entries + boxes->count, boxes->count);
  uint32_t count = want < boxes->count ? want : boxes->count - 1;
  while (count > 0 && entries[count - 1].key == entries[count].key) count--;
  if (count == 0) {
    while (count < boxes->count && entries[count].key == entries[0].key) count++;
  }
  if (count <= 2 * want) *out = UINT64_MAX - entries[count - 1].key;
  return RONDO_OK;
}

static rondo_status list_core(worker *w, uint64_t least) {
  const rondo_boxes *boxes = &w->part->boxes;
  for (uint32_t i = 0; i < boxes->count; i++) w->inside_count += boxes->crowding[i] >= least;
  RONDO_TRY(rondo_scratch_take(&w->scratch, w->inside_count, sizeof *w->inside, &w->inside));
  RONDO_TRY(rondo_scratch_take(&w->scratch, w->inside_count, sizeof *w->items, &w->items));
  RONDO_TRY(rondo_scratch_take(&w->scratch, w->inside_count, sizeof *w->inside_offsets, &w->inside_offsets));
  for (uint32_t i = 0, at = 0; i < boxes->count; i++) {
    const rondo_box *box = &boxes->boxes[i];
    if (boxes->crowding[i] < least) continue;
    w->inside[at] = i;
    w->items[at++] = (rondo_plan_item){.bytes = box->bytes, .lower = box->lower, .upper = box->upper};
  }
  return RONDO_OK;
}

/* Until the deadline, rounded down, at least 1; 0: there is no deadline. */
static uint32_t milliseconds_left(const worker *w) {
  if (w->of->deadline_ns == 0) return 0;
  const uint64_t now = rondo_clock_ns();
  const uint64_t left = w->of->deadline_ns > now ? (w->of->deadline_ns - now) / 1000000 : 0;
  return left == 0 ? 1 : left > UINT32_MAX ? UINT32_MAX : (uint32_t)left;
}

/* *out_better: the core's plan is better than `peak`. */
static rondo_status plan_core(worker *w, uint64_t peak, bool *out_better) {
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = w->items, .count = w->inside_count};
  const rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT,
                                      .budget_ms = milliseconds_left(w),
                                      .budget_steps = w->of->steps,
                                      .gap = 1,
                                      .seed = w->of->seed,
                                      .capacity = w->of->limit,
                                      .threads = 1};
  rondo_plan_info info = {.struct_size = sizeof info};
  RONDO_TRY(rondo_interval_plan(w->scratch.allocator, &problem, &options, w->inside_offsets, &info));
  w->cost.steps += info.steps;
  w->peak = info.peak > w->of->limit ? info.peak : w->of->limit;
  *out_better = w->peak < peak;
  return RONDO_OK;
}

/* Repair --------------------------------------------------------------------------------------------------------- */

static void eject_overlapping(worker *w, uint32_t box) {
  const rondo_box *boxes = w->part->boxes.boxes;
  rondo_neighbours_find(&w->neighbours, box);
  for (uint32_t i = 0; i < w->neighbours.found_count; i++) {
    const uint32_t other = w->neighbours.found[i];
    if (w->states[other] != RONDO_REPAIR_IN) continue;
    if (w->offsets[other] >= w->offsets[box] + boxes[box].bytes) continue;
    if (w->offsets[box] < w->offsets[other] + boxes[other].bytes) w->states[other] = RONDO_REPAIR_OUT;
  }
}

/* Moves the core to the offsets of its plan. Boxes that overlap it, or are too high, are out. */
static void place_core(worker *w, const uint64_t *offsets) {
  const rondo_boxes *boxes = &w->part->boxes;
  for (uint32_t i = 0; i < boxes->count; i++) {
    w->offsets[i] = offsets[i];
    w->states[i] = offsets[i] + boxes->boxes[i].bytes > w->peak ? RONDO_REPAIR_OUT : RONDO_REPAIR_IN;
  }
  for (uint32_t i = 0; i < w->inside_count; i++) {
    w->offsets[w->inside[i]] = w->inside_offsets[i];
    w->states[w->inside[i]] = RONDO_REPAIR_DEAR;
  }
  for (uint32_t i = 0; i < w->inside_count; i++) eject_overlapping(w, w->inside[i]);
}

/* The scans after which the steps exceed the budget. */
static uint64_t scans_left(const worker *w) {
  const uint64_t steps = w->of->most_steps - w->cost.steps;
  return steps < UINT64_MAX / SCANS_PER_STEP ? steps * SCANS_PER_STEP + SCANS_PER_STEP - 1 : UINT64_MAX;
}

static rondo_status repair(worker *w, const uint32_t *order, uint64_t *inout_offsets, uint64_t *inout_peak) {
  const uint64_t half = w->neighbours.sum / 2, cap = (uint64_t)w->part->boxes.count * MOST_SCANS_PER_BOX;
  const uint64_t most_scans = (half < cap ? half : cap) * w->of->effort;
  const rondo_repair rest = {.boxes = &w->part->boxes,
                             .neighbours = &w->neighbours,
                             .order = order,
                             .states = w->states,
                             .limit = w->peak,
                             .most_scans = most_scans > LEAST_SCANS ? most_scans : LEAST_SCANS,
                             .deadline_ns = w->of->deadline_ns,
                             .stop_scans = scans_left(w)};
  bool done = false;
  uint64_t scans = 0;
  RONDO_TRY(rondo_repair_run(w->scratch.allocator, &rest, w->offsets, &done, &scans));
  w->cost.steps += scans / SCANS_PER_STEP;
  if (!fits(w, 0) || !done) return RONDO_OK;
  const rondo_boxes *boxes = &w->part->boxes;
  *inout_peak = rondo_boxes_peak(boxes->boxes, boxes->count, w->offsets);
  memcpy(inout_offsets, w->offsets, boxes->count * sizeof *inout_offsets);
  return RONDO_OK;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

/* The limit of the next repair: SPACE_GROWTH times as much space above the bound, at most the old peak. */
static uint64_t with_more_space(const worker *w, uint64_t before) {
  const uint64_t bound = w->part->lower_bound, space = w->peak - bound;
  return space < (before - bound) / SPACE_GROWTH ? bound + space * SPACE_GROWTH : before;
}

/* Repairs the rest of the plan around the core. Tries again with more space if this fails. */
static rondo_status repair_around(worker *w, const uint32_t *order, uint64_t *inout_offsets, uint64_t *inout_peak) {
  const uint64_t before = *inout_peak;
  RONDO_TRY(rondo_scratch_take(&w->scratch, w->part->boxes.count, sizeof *w->offsets, &w->offsets));
  RONDO_TRY(rondo_scratch_take(&w->scratch, w->part->boxes.count, sizeof *w->states, &w->states));
  RONDO_TRY(rondo_neighbours_make(&w->scratch, &w->part->boxes, &w->neighbours));
  for (uint32_t i = 0; i < w->of->repairs && *inout_peak == before && w->peak < before && fits(w, 0); i++) {
    place_core(w, inout_offsets);
    RONDO_TRY(repair(w, order, inout_offsets, inout_peak));
    w->peak = with_more_space(w, before);
  }
  return RONDO_OK;
}

static rondo_status improve(worker *w, const uint32_t *order, uint64_t *inout_offsets, uint64_t *inout_peak) {
  uint64_t least = 0;
  bool better = false;
  w->cost.steps = w->part->boxes.count / SORTED_PER_STEP;
  if (!fits(w, w->of->steps)) return RONDO_OK;
  RONDO_TRY(least_crowding(w, &least));
  if (least == 0) return RONDO_OK;
  RONDO_TRY(list_core(w, least));
  RONDO_TRY(plan_core(w, *inout_peak, &better));
  return better ? repair_around(w, order, inout_offsets, inout_peak) : RONDO_OK;
}

rondo_status rondo_core_improve(const rondo_allocator *allocator, const rondo_core *core, const rondo_part *part,
                                const uint32_t *order, uint64_t *inout_offsets, uint64_t *inout_peak,
                                rondo_core_cost *out_cost) {
  worker w = {.scratch.allocator = allocator, .of = core, .part = part};
  *out_cost = w.cost;
  if (core->limit >= *inout_peak) return RONDO_OK;
  const rondo_status status = improve(&w, order, inout_offsets, inout_peak);
  rondo_scratch_free(&w.scratch);
  *out_cost = w.cost;
  return status;
}

/* Cores of several sizes ------------------------------------------------------------------------------------------- */

/* Boxes of a core; a part must have at least TIMES_LARGER times as many. */
static const uint32_t sizes[] = {512, 2048, 1024};
enum { SIZES = sizeof sizes / sizeof sizes[0], TIMES_LARGER = 3 };

/* Steps for planning a core, in the first round and in later ones. Up to round LONGEST_ROUND, the effort of a repair
 * doubles with each round, and the steps with every second one. */
#define CORE_STEPS (UINT64_C(1) << 16)
#define LATER_CORE_STEPS (UINT64_C(1) << 14)
enum { LONGEST_ROUND = 5 };

/* From round to round, sizes grow by 1 / GROWTH of the first size. After GROWN_ROUNDS rounds they begin again. */
enum { GROWTH = 4, GROWN_ROUNDS = 5 };

enum { MOST_REPAIRS = 2 };

/* What the threads share. */
typedef struct round_task {
  const rondo_cores *of;
  const rondo_allocator *allocator;
  const rondo_part *part;
  uint32_t *order;
  const uint64_t *offsets;       /* of the plan to improve */
  uint64_t peak;                 /* of that plan */
  _Atomic uint64_t steps[SIZES]; /* that each size took; 0: not known yet; UINT64_MAX: it was cut short */
  uint64_t needed[SIZES];        /* rondo_core_cost, of each size */
} round_task;

/* A size is a trial. */
typedef struct round_thread {
  rondo_trial_thread base;
  uint64_t *offsets; /* a copy of the plan */
} round_thread;

/* The steps that the sizes before this one leave, as far as they are known. If they turn out to take more, the round is
 * dropped. */
static uint64_t steps_left(const round_task *round, uint64_t number) {
  uint64_t left = round->of->most_steps;
  for (uint64_t i = 0; i < number; i++) {
    const uint64_t steps = atomic_load(&round->steps[i]);
    if (steps >= left) return 0;
    left -= steps;
  }
  return left;
}

static rondo_core core_of(const rondo_cores *cores, uint64_t number) {
  const uint64_t round = cores->round < LONGEST_ROUND ? cores->round : LONGEST_ROUND;
  return (rondo_core){
      .boxes = sizes[number] + sizes[number] / GROWTH * (uint32_t)(cores->round % GROWN_ROUNDS),
      .repairs = cores->round == 0 ? 1 : MOST_REPAIRS,
      .steps = cores->round == 0 ? CORE_STEPS : LATER_CORE_STEPS << round / 2,
      .seed = cores->round,
      .effort = round == 0 ? 1 : UINT64_C(1) << (round - 1),
      .limit = cores->limit,
      .deadline_ns = cores->deadline_ns,
  };
}

static rondo_status prepare_thread(void *thread, rondo_scratch *scratch) {
  round_thread *t = thread;
  return rondo_scratch_take(scratch, t->base.all->boxes, sizeof *t->offsets, &t->offsets);
}

static rondo_status try_size(void *thread, uint64_t number) {
  round_thread *t = thread;
  round_task *round = t->base.all->task;
  rondo_core core = core_of(round->of, number);
  rondo_core_cost cost;
  uint64_t peak = round->peak;
  if (core.boxes > t->base.all->boxes / TIMES_LARGER) return RONDO_OK;
  memcpy(t->offsets, round->offsets, t->base.all->boxes * sizeof *t->offsets);
  core.most_steps = steps_left(round, number);
  RONDO_TRY(rondo_core_improve(round->allocator, &core, round->part, round->order, t->offsets, &peak, &cost));
  round->needed[number] = cost.needed;
  atomic_store(&round->steps[number], cost.needed > core.most_steps ? UINT64_MAX : cost.steps);
  if (peak < round->peak) rondo_trials_offer(&t->base, number, peak, t->offsets);
  return RONDO_OK;
}

/* False: one of the sizes, up to the first that reached the limit, was cut short, or would have been on one thread. */
static bool count_steps(const round_task *round, uint64_t first_hit, uint64_t *out) {
  uint64_t left = round->of->most_steps;
  *out = left;
  for (uint32_t i = 0; i < SIZES && i <= first_hit; i++) {
    if (round->needed[i] > left) return false;
    left -= round->steps[i];
  }
  *out -= left;
  return true;
}

static rondo_status run_round(rondo_scratch *scratch, round_task *round, uint64_t *offsets, uint64_t *peak,
                              uint64_t *out_steps) {
  const rondo_boxes *boxes = &round->part->boxes;
  rondo_trials trials = {.count = SIZES,
                         .stride = 1,
                         .target = round->of->limit,
                         .deadline_ns = round->of->deadline_ns,
                         .boxes = boxes->count,
                         .threads = round->of->threads,
                         .thread_bytes = sizeof(round_thread),
                         .task = round,
                         .prepare = prepare_thread,
                         .attempt = try_size};
  const rondo_trial_thread *best = NULL;
  rondo_sort_entry *entries = NULL;
  RONDO_TRY(rondo_scratch_take(scratch, boxes->count, sizeof *round->order, &round->order));
  RONDO_TRY(rondo_scratch_take(scratch, boxes->count, 2 * sizeof *entries, &entries));
  rondo_rule_order(rondo_area_rule(), boxes, entries, round->order);
  const rondo_status status = rondo_trials_run(scratch, &trials, &best);
  if (!count_steps(round, atomic_load(&trials.first_hit), out_steps) || best == NULL) return status;
  *peak = best->peak;
  memcpy(offsets, best->best, boxes->count * sizeof *offsets);
  return RONDO_OK;
}

rondo_status rondo_cores_improve(const rondo_allocator *allocator, const rondo_cores *cores, const rondo_part *part,
                                 uint64_t *inout_offsets, uint64_t *inout_peak, uint64_t *out_steps) {
  round_task round = {.of = cores, .allocator = allocator, .part = part, .offsets = inout_offsets, .peak = *inout_peak};
  rondo_scratch scratch = {.allocator = allocator};
  *out_steps = 0;
  if (sizes[0] > part->boxes.count / TIMES_LARGER || cores->limit >= *inout_peak) return RONDO_OK;
  const rondo_status status = run_round(&scratch, &round, inout_offsets, inout_peak, out_steps);
  rondo_scratch_free(&scratch);
  return status;
}
