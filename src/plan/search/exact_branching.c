/* SPDX-License-Identifier: MIT
 * Looking at both ends of each valley of a goal, and then at what each item of the chosen end would cost: it is laid
 * there, and taken back.
 */
#include "plan/search/exact_branching.h"

#include <assert.h>

#include "plan/interval/placement_rules.h"

#define LEAST_LOSS 64U /* what is lost beside it does not matter */

/* Ends ------------------------------------------------------------------------------------------------------------- */

static uint64_t tie_of(const rondo_exact *exact, uint32_t section) {
  const rondo_search_state *state = &exact->state;
  if (exact->tie == 0) return state->floors[section];
  if (exact->tie == 1) return state->slack[section];
  return state->floors[section] + state->slack[section]; /* least when most bytes are to place */
}

/* Items that begin, or end, at an end of a valley. */
typedef struct candidates {
  const uint32_t *items;
  uint32_t count;
  uint32_t section;
} candidates;

static candidates candidates_of(const rondo_exact *exact, const rondo_exact_choice *of) {
  const rondo_search_sections *sections = exact->state.sections;
  const uint32_t list = of->at_end ? of->valley_upper : of->valley_lower;
  const uint32_t *starts = of->at_end ? sections->end_start : sections->begin_start;
  const uint32_t *items = of->at_end ? sections->ends : sections->begins;
  return (candidates){items + starts[list], starts[list + 1] - starts[list], of->at_end ? list - 1 : list};
}

/* The best item of the end, and how many ways there are. */
static void look_at(const rondo_exact *exact, rondo_exact_choice *out) {
  const candidates at = candidates_of(exact, out);
  const uint64_t floor = exact->state.floors[at.section];
  out->item = RONDO_SEARCH_NONE;
  out->count = 0;
  for (uint32_t k = 0; k < at.count; k++) {
    const uint32_t i = at.items[k];
    if (!rondo_search_state_fits(&exact->state, i, floor)) continue;
    out->count++;
    if (out->item == RONDO_SEARCH_NONE || exact->keys[i] > exact->keys[out->item]) out->item = i;
  }
  if (rondo_search_state_can_lift(&exact->state, at.section)) out->count++;
  out->weight = exact->weights[at.section];
  out->tie = tie_of(exact, at.section);
}

/* What the sections would lose if the item lay there, in relation to how much it is preferred, as a logarithm; least
 * when it would leave no room at all. */
static int64_t price_of(rondo_exact *exact, uint32_t item) {
  rondo_search_state *state = &exact->state;
  const size_t mark = state->trail.count;
  rondo_search_state_place(state, item);
  const bool settled = rondo_search_state_settle(state);
  const uint64_t loss = settled ? rondo_search_state_loss(state, mark) : 0;
  rondo_search_state_undo(state, mark);
  if (!settled) return INT64_MIN;
  return (int64_t)rondo_logarithm(loss + LEAST_LOSS) - (int64_t)rondo_logarithm(exact->keys[item] + 1);
}

/* The item of the chosen end of which the least is lost; or one that cannot lie there, to get rid of it. */
static uint32_t look_ahead(rondo_exact *exact, const rondo_exact_choice *chosen) {
  const candidates at = candidates_of(exact, chosen);
  const uint64_t floor = exact->state.floors[at.section];
  uint32_t best = RONDO_SEARCH_NONE;
  int64_t least = INT64_MAX;
  for (uint32_t k = 0; k < at.count && least > INT64_MIN && exact->state.status == RONDO_OK; k++) {
    if (!rondo_search_state_fits(&exact->state, at.items[k], floor)) continue;
    const int64_t price = price_of(exact, at.items[k]);
    if (price >= least) continue;
    least = price;
    best = at.items[k];
  }
  return best;
}

static bool is_better(const rondo_exact_choice *a, const rondo_exact_choice *b) {
  if (b->item == RONDO_SEARCH_NONE) return true;
  const uint64_t x = (uint64_t)a->count * b->weight;
  const uint64_t y = (uint64_t)b->count * a->weight;
  return x != y ? x < y : a->tie < b->tie;
}

/* Looks at both ends of the valley; true when one of them leaves no choice. */
static bool consider(const rondo_exact *exact, uint32_t lower, uint32_t upper, rondo_exact_choice *best) {
  for (uint32_t end = 0; end < 2; end++) {
    rondo_exact_choice next = {.valley_lower = lower, .valley_upper = upper, .at_end = end != 0};
    look_at(exact, &next);
    assert(next.item != RONDO_SEARCH_NONE);
    if (next.count <= 1 || is_better(&next, best)) *best = next;
    if (next.count <= 1) return true;
  }
  return false;
}

static rondo_exact_choice choose_end(const rondo_exact *exact, const rondo_exact_goal *goal) {
  const uint64_t *floors = exact->state.floors;
  rondo_exact_choice best = {.item = RONDO_SEARCH_NONE};
  for (uint32_t lower = goal->lower; lower < goal->upper;) {
    uint32_t upper = lower + 1;
    while (upper < goal->upper && floors[upper] == floors[lower]) upper++;
    const bool is_valley = (lower == goal->lower || floors[lower - 1] > floors[lower]) &&
                           (upper == goal->upper || floors[upper] > floors[lower]);
    if (is_valley && consider(exact, lower, upper, &best)) return best;
    lower = upper;
  }
  return best;
}

rondo_exact_choice rondo_exact_choose(rondo_exact *exact, const rondo_exact_goal *goal) {
  rondo_exact_choice chosen = choose_end(exact, goal);
  if (chosen.count > 1) chosen.item = look_ahead(exact, &chosen);
  return chosen;
}
