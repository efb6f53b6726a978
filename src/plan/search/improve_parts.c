/* SPDX-License-Identifier: MIT
 * A part's slices double from visit to visit, so that parts that stand out in turn share the budget, and what a visit
 * begins again costs little.
 */
#include "plan/search/improve_parts.h"

#include "base/clock.h"
#include "base/error.h"
#include "plan/interval/dense_core.h"
#include "plan/search/parallel_search.h"
#include "plan/search/window_search.h"

/* Parts of fewer boxes are placed and searched as a whole. */
#define FEWEST_BOXES 1024

/* A window of so many boxes is tried so often; one that does not help is followed by one of twice the size. */
#define FIRST_WINDOW 256
#define LARGEST_WINDOW 8192
#define WINDOW_RUNS 32

/* Parts of so many boxes are planned around cores too, but for one of so many turns, which makes so many runs
 * and more. A plan around a core is to end so near the goal, as a part of what there is above it. */
#define BOXES_FOR_CORES 2048
#define TURNS 3
#define CORE_NEARNESS 32
#define FEW_RUNS 32

/* Steps of a part's first slice, a few milliseconds. A visit makes at least one episode or round. */
#define FIRST_SLICE (UINT64_C(1) << 14)

typedef struct improver {
  const rondo_allocator *allocator;
  rondo_parts *parts;
  rondo_improvement *improvement;
  uint64_t *offsets;
  rondo_search *search;
  const rondo_part *searched; /* by that search; NULL: none yet */
} improver;

/* Nothing is won by going lower: what is proved to need more, or the target. */
static uint64_t last_goal_of(const improver *m, const rondo_part *part) {
  uint64_t goal = m->improvement->target;
  for (size_t i = 0; i < m->parts->count; i++) {
    const rondo_part *other = &m->parts->items[i];
    if (other->optimal && rondo_part_top(other) > goal) goal = rondo_part_top(other);
  }
  return rondo_part_above_base(part, goal);
}

/* Where the part stands out no longer, or less than before. */
static uint64_t next_goal_of(const improver *m, const rondo_part *part) {
  uint64_t goal = m->improvement->target;
  for (size_t i = 0; i < m->parts->count; i++) {
    const rondo_part *other = &m->parts->items[i];
    if (other != part && rondo_part_top(other) > goal) goal = rondo_part_top(other);
  }
  return rondo_part_above_base(part, goal < rondo_part_top(part) ? goal : rondo_part_top(part) - 1);
}

static uint64_t steps_left(const improver *m) {
  const uint64_t budget = m->improvement->options->budget_steps;
  return budget == 0 ? UINT64_MAX : budget - m->improvement->steps;
}

static bool is_late(const improver *m) { return rondo_clock_is_past(m->improvement->deadline_ns); }

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static bool takes_cores(const rondo_part *part) {
  return part->boxes.count >= BOXES_FOR_CORES && part->boxes.obstacles == NULL && part->boxes.alignments == NULL;
}

static rondo_restarts restarts_of(const improver *m, const rondo_part *part, uint64_t goal) {
  return (rondo_restarts){
      .boxes = &part->boxes,
      .target = goal,
      .deadline_ns = m->improvement->deadline_ns,
      .first_episode = part->episodes,
      .seed = m->improvement->options->seed,
      .threads = m->improvement->options->threads,
  };
}

/* Whole episodes, as many as fit into the steps, at least one; of a part that is planned around cores, as many runs as
 * fit, at least a few. Cut short by the budget. */
static rondo_status run_restarts(improver *m, rondo_part *part, uint64_t steps) {
  const uint64_t before = part->peak;
  const uint64_t episode_steps = (uint64_t)part->boxes.count * RONDO_RUNS_AN_EPISODE;
  const uint64_t episodes = steps < episode_steps ? 1 : steps / episode_steps;
  rondo_restarts restarts = restarts_of(m, part, next_goal_of(m, part));
  uint64_t most = episodes * RONDO_RUNS_AN_EPISODE;
  if (takes_cores(part)) most = least(most, FEW_RUNS + steps / part->boxes.count);
  restarts.runs = least(most, steps_left(m) / part->boxes.count);
  uint64_t runs = 0;
  RONDO_TRY(rondo_restarts_improve(m->allocator, &restarts, m->offsets + part->first, &part->peak, &runs));
  if (part->peak < before) part->method = "restarts";
  part->episodes += episodes;
  m->improvement->steps += runs * part->boxes.count;
  return RONDO_OK;
}

/* Windows until the goal is met, `steps` are done, or none of any size helps. */
static rondo_status run_windows(improver *m, rondo_part *part, uint64_t steps) {
  const uint64_t goal = next_goal_of(m, part);
  const uint64_t end = m->improvement->steps + steps;
  rondo_window window = {.boxes = FIRST_WINDOW};
  while (part->peak > goal && m->improvement->steps < end && steps_left(m) > 0 && !is_late(m)) {
    uint64_t done = 0;
    rondo_restarts restarts = restarts_of(m, part, goal);
    restarts.runs = WINDOW_RUNS;
    restarts.first_episode = part->windows++;
    window.most_steps = steps_left(m);
    RONDO_TRY(rondo_window_improve(m->allocator, &restarts, &window, m->offsets + part->first, &part->peak, &done));
    m->improvement->steps += done;
    if (window.lowered) {
      part->method = "windows";
      window.boxes = FIRST_WINDOW;
    } else if (window.boxes >= LARGEST_WINDOW || window.boxes / 2 >= part->boxes.count) {
      part->exhausted = true;
      return RONDO_OK;
    } else {
      window.boxes *= 2;
    }
  }
  return RONDO_OK;
}

/* A round of cores. One that the budget cuts short does not count: else more of it could be worse. */
static rondo_status run_cores(improver *m, rondo_part *part) {
  const uint64_t before = part->peak, goal = next_goal_of(m, part);
  uint64_t steps = 0;
  const rondo_cores cores = {.round = part->cores++,
                             .most_steps = steps_left(m),
                             .limit = goal + (before - goal) / CORE_NEARNESS,
                             .deadline_ns = m->improvement->deadline_ns,
                             .threads = m->improvement->options->threads};
  RONDO_TRY(rondo_cores_improve(m->allocator, &cores, part, m->offsets + part->first, &part->peak, &steps));
  if (part->peak < before) part->method = "core";
  m->improvement->steps += steps;
  return RONDO_OK;
}

/* Exact search ----------------------------------------------------------------------------------------------------- */

/* The search is kept for as long as the same part is worked on, and what it has learnt with it. A new one has the
 * part's visits in its seed, so that it does not repeat an earlier one. Parts with obstacles or alignments are not
 * searched. */
static rondo_status begin_search(improver *m, const rondo_part *part) {
  const rondo_boxes *boxes = &part->boxes;
  const uint64_t seed = m->improvement->options->seed + part->visits;
  rondo_search_end(m->search);
  m->search = NULL;
  m->searched = part;
  if (boxes->obstacles != NULL || boxes->alignments != NULL) return RONDO_OK;
  return rondo_search_begin(m->allocator, boxes->boxes, boxes->count, part->lower_bound, seed, &m->search);
}

/* Sets part->optimal when that is proved, part->unsearchable when the part is too large. */
static rondo_status run_search(improver *m, rondo_part *part, uint64_t steps) {
  const rondo_plan_options *options = m->improvement->options;
  const uint64_t before = part->peak;
  if (m->searched != part) RONDO_TRY(begin_search(m, part));
  if (m->search == NULL) {
    part->unsearchable = true;
    return RONDO_OK;
  }
  rondo_search_budget budget = {.deadline_ns = m->improvement->deadline_ns,
                                .steps = options->budget_steps,
                                .target = last_goal_of(m, part),
                                .used = m->improvement->steps};
  const rondo_status status = rondo_search_run(m->search, options->threads, &budget, steps, m->offsets + part->first,
                                               &part->peak, &part->optimal);
  m->improvement->steps = budget.used;
  if (part->peak < before) part->method = "search";
  return status;
}

/* Turns ------------------------------------------------------------------------------------------------------------ */

/* A part that is planned around cores begins with them, and they take most turns. The other turns, and all of other
 * parts, begin with restarts. Then small parts are searched; large ones take turns of mending in windows, as long as
 * that helps, or searching, and of restarts. */
static rondo_status visit(improver *m, rondo_part *part) {
  const uint64_t slice = FIRST_SLICE << least(part->visits, 40);
  const bool large = part->boxes.count >= FEWEST_BOXES;
  const uint64_t visits = part->visits++;
  const uint64_t turn = takes_cores(part) ? visits / TURNS : visits;
  if (takes_cores(part) && visits % TURNS != 1) return run_cores(m, part);
  if (large ? turn % 2 == 0 : turn == 0) return run_restarts(m, part, slice);
  if (large && part->boxes.obstacles == NULL && !part->exhausted) return run_windows(m, part, slice);
  if (!part->unsearchable) {
    RONDO_TRY(run_search(m, part, slice));
    if (!part->unsearchable) return RONDO_OK;
  }
  return run_restarts(m, part, slice);
}

static rondo_status improve(improver *m) {
  for (;;) {
    rondo_part *part = rondo_parts_highest(m->parts);
    const uint64_t before = m->improvement->steps;
    if (part->optimal || rondo_part_top(part) <= m->improvement->target || is_late(m)) return RONDO_OK;
    RONDO_TRY(visit(m, part));
    rondo_boxes_check_plan(&part->boxes, m->offsets + part->first, part->peak);
    if (m->improvement->steps == before) return RONDO_OK;
  }
}

rondo_status rondo_parts_improve(const rondo_allocator *allocator, rondo_parts *parts, rondo_improvement *improvement,
                                 uint64_t *offsets) {
  improver m = {.allocator = allocator, .parts = parts, .improvement = improvement, .offsets = offsets};
  const rondo_status status = parts->count == 0 ? RONDO_OK : improve(&m);
  rondo_search_end(m.search);
  return status;
}
