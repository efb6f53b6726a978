/* SPDX-License-Identifier: MIT
 * A part's slices double from visit to visit, so that parts that stand out in turn share the budget, and what a visit
 * begins anew costs little.
 */
#include "plan/improve.h"

#include "base/clock.h"
#include "base/error.h"
#include "plan/restarts.h"

/* Steps of a part's first slice, a few milliseconds. */
#define FIRST_SLICE (UINT64_C(1) << 16)

typedef struct improver {
  const rondo_allocator *allocator;
  rondo_parts *parts;
  rondo_improvement *improvement;
  uint64_t *offsets;
} improver;

static uint64_t top_of(const rondo_part *part) { return part->base + part->peak; }

static rondo_part *highest(const rondo_parts *parts) {
  rondo_part *found = NULL;
  for (size_t i = 0; i < parts->count; i++) {
    if (found == NULL || top_of(&parts->items[i]) > top_of(found)) found = &parts->items[i];
  }
  return found;
}

/* Where the part stands out no longer. */
static uint64_t goal_of(const improver *m, const rondo_part *part) {
  uint64_t goal = m->improvement->target;
  for (size_t i = 0; i < m->parts->count; i++) {
    const rondo_part *other = &m->parts->items[i];
    if (other != part && top_of(other) > goal) goal = top_of(other);
  }
  return goal > part->base ? goal - part->base : 0;
}

static uint64_t steps_left(const improver *m) {
  const uint64_t budget = m->improvement->options->budget_steps;
  return budget == 0 ? UINT64_MAX : budget - m->improvement->steps;
}

static bool is_late(const improver *m) {
  return m->improvement->deadline_ns != 0 && rondo_clock_ns() >= m->improvement->deadline_ns;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Whole episodes, as many as fit into the steps, at least one; cut short by the budget. */
static rondo_status run_restarts(improver *m, rondo_part *part, uint64_t goal, uint64_t steps) {
  const uint64_t before = part->peak;
  const uint64_t episode_steps = (uint64_t)part->boxes.count * RONDO_RUNS_AN_EPISODE;
  const uint64_t episodes = steps < episode_steps ? 1 : steps / episode_steps;
  const rondo_restarts restarts = {
      .boxes = &part->boxes,
      .lower_bound = part->lower_bound,
      .target = goal,
      .deadline_ns = m->improvement->deadline_ns,
      .first_episode = part->episodes,
      .runs = least(episodes * RONDO_RUNS_AN_EPISODE, steps_left(m) / part->boxes.count),
      .seed = m->improvement->options->seed,
      .threads = m->improvement->options->threads,
  };
  uint64_t runs = 0;
  RONDO_TRY(rondo_restarts_improve(m->allocator, &restarts, m->offsets + part->first, &part->peak, &runs));
  if (part->peak < before) part->method = "restarts";
  part->episodes += episodes;
  m->improvement->steps += runs * part->boxes.count;
  return RONDO_OK;
}

rondo_status rondo_parts_improve(const rondo_allocator *allocator, rondo_parts *parts, rondo_improvement *improvement,
                                 uint64_t *offsets) {
  improver m = {.allocator = allocator, .parts = parts, .improvement = improvement, .offsets = offsets};
  if (parts->count == 0) return RONDO_OK;
  for (;;) {
    rondo_part *part = highest(parts);
    const uint64_t before = improvement->steps;
    if (part->optimal || top_of(part) <= improvement->target || is_late(&m)) return RONDO_OK;
    const uint64_t slice = FIRST_SLICE << least(part->visits++, 40);
    RONDO_TRY(run_restarts(&m, part, goal_of(&m, part), slice));
    if (improvement->steps == before) return RONDO_OK;
  }
}
