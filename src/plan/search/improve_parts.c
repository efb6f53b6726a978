/* SPDX-License-Identifier: MIT
 * The slices of a part double from visit to visit. So parts that are the highest in alternation share the budget, and
 * little is lost when a visit begins again.
 */
#include "plan/search/improve_parts.h"

#include "base/clock.h"
#include "base/error.h"
#include "plan/interval/dense_core.h"
#include "plan/search/parallel_search.h"
#include "plan/search/window_search.h"

/* Parts of fewer boxes are placed and searched as a whole. */
#define FEWEST_BOXES 1024

/* A window begins with FIRST_WINDOW boxes and gets WINDOW_RUNS runs. If it does not help, the next one has twice as
 * many boxes, at most LARGEST_WINDOW. */
#define FIRST_WINDOW 256
#define LARGEST_WINDOW 8192
#define WINDOW_RUNS 32

/* Parts of this many boxes are also planned around cores, except in one of TURNS turns, which makes FEW_RUNS runs and
 * more. A plan around a core is good enough if it is above the goal by 1 / CORE_NEARNESS of what the old plan is. */
#define BOXES_FOR_CORES 2048
#define TURNS 3
#define CORE_NEARNESS 32
#define FEW_RUNS 32

/* Steps of a part's first slice: a few milliseconds. A visit makes at least one episode or round. */
#define FIRST_SLICE (UINT64_C(1) << 14)

typedef struct improver {
  const rondo_allocator *allocator;
  rondo_parts *parts;
  rondo_improvement *improvement;
  uint64_t *offsets;
  rondo_search *search;
  const rondo_part *searched; /* by that search; NULL: none yet */
} improver;

/* A lower peak of the part does not improve the whole: another part is proved to need more, or the target is reached.
 * */
static uint64_t last_goal_of(const improver *m, const rondo_part *part) {
  uint64_t goal = m->improvement->target;
  for (size_t i = 0; i < m->parts->count; i++) {
    const rondo_part *other = &m->parts->items[i];
    if (other->optimal && rondo_part_top(other) > goal) goal = rondo_part_top(other);
  }
  return rondo_part_above_base(part, goal);
}

/* The peak at which another part is the highest, or the next lower one. */
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

/* Makes as many whole episodes as fit into the steps, at least one. For a part that is planned around cores, makes as
 * many runs as fit, and FEW_RUNS more. The budget cuts it short. */
static rondo_status run_restarts(improver *m, rondo_part *part, uint64_t steps) {
  const uint64_t before = part->peak;
  const uint64_t episode_steps = (uint64_t)part->boxes.count * RONDO_RUNS_PER_EPISODE;
  const uint64_t episodes = steps < episode_steps ? 1 : steps / episode_steps;
  rondo_restarts restarts = restarts_of(m, part, next_goal_of(m, part));
  uint64_t most = episodes * RONDO_RUNS_PER_EPISODE;
  if (takes_cores(part)) most = least(most, FEW_RUNS + steps / part->boxes.count);
  restarts.runs = least(most, steps_left(m) / part->boxes.count);
  uint64_t runs = 0;
  RONDO_TRY(rondo_restarts_improve(m->allocator, &restarts, m->offsets + part->first, &part->peak, &runs));
  if (part->peak < before) part->method = "restarts";
  part->episodes += episodes;
  m->improvement->steps += runs * part->boxes.count;
  return RONDO_OK;
}

/* Tries windows until the goal is reached, `steps` are done, or no size helps. */
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

/* Makes a round of cores. A round that the budget cuts short does not count: else a larger budget could be worse. */
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

/* The search is kept as long as the same part is worked on, with what it has learnt. The seed of a new search contains
 * the part's visits, so that it does not repeat an earlier one. Parts with obstacles or alignments are not searched. */
static rondo_status begin_search(improver *m, const rondo_part *part) {
  const rondo_boxes *boxes = &part->boxes;
  const uint64_t seed = m->improvement->options->seed + part->visits;
  rondo_search_end(m->search);
  m->search = NULL;
  m->searched = part;
  if (boxes->obstacles != NULL || boxes->alignments != NULL) return RONDO_OK;
  return rondo_search_begin(m->allocator, boxes->boxes, boxes->count, part->lower_bound, seed, &m->search);
}

/* Sets part->optimal if it is proved, and part->unsearchable if the part cannot be searched. */
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

/* A part that is planned around cores begins with them, and they take most turns. The other turns, and all turns of
 * other parts, begin with restarts. After that, small parts are searched; large ones alternate between windows (or the
 * search, once windows do not help) and restarts. */
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
