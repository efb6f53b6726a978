/* SPDX-License-Identifier: MIT
 * The search can pause at any step. It keeps a stack of frames (decisions) and a list of goals (ranges of sections that
 * no item to place crosses). Goals are on a stack too and never change, so going back to a frame restores its list by
 * truncating that stack. A frame's goal fails when both of its choices have failed; then the decision that made the
 * goal is at fault.
 *
 * All numbers are integers, so every machine makes the same decisions.
 */
#include "plan/search/exact_search.h"

#include <assert.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "plan/interval/placement_rules.h"

#define MOST_MEMORY (UINT32_C(1) << 16) /* entries, of 16 bytes */
#define MEMORY_PER_ITEM 128U
#define WEIGHT_ONE 16U
#define ORDERS 4U
#define TIES 3U        /* orders of equal ends */
#define WATCH_STEPS 32 /* between two looks at the clock and the other searches, which are then cheap enough */
#define LEAST_LOSS 64U /* smaller losses are not distinguished */

/* The next decision: an end of a valley, and an item there. */
typedef struct choice {
  uint32_t item;
  uint32_t count;  /* choices at this end */
  uint32_t weight; /* of its section */
  uint64_t tie;
  uint32_t valley_lower, valley_upper;
  bool at_end; /* at the end of the valley; else at its beginning */
} choice;

static rondo_status allocate_tables(rondo_scratch *scratch, rondo_exact *exact) {
  const rondo_search_sections *sections = exact->state.sections;
  RONDO_TRY(rondo_scratch_take(scratch, sections->item_count, sizeof *exact->keys, &exact->keys));
  RONDO_TRY(rondo_scratch_take(scratch, sections->item_count, sizeof *exact->loads, &exact->loads));
  RONDO_TRY(rondo_scratch_take(scratch, sections->section_count, sizeof *exact->weights, &exact->weights));
  exact->memory_count = 1;
  while (exact->memory_count < MOST_MEMORY && exact->memory_count < MEMORY_PER_ITEM * sections->item_count) {
    exact->memory_count *= 2;
  }
  return rondo_scratch_take(scratch, exact->memory_count, 2 * sizeof *exact->memory, &exact->memory);
}

rondo_status rondo_exact_init(rondo_scratch *scratch, const rondo_search_sections *sections, uint64_t seed,
                              rondo_exact *out) {
  *out = (rondo_exact){.seed = seed};
  RONDO_TRY(rondo_search_state_init(scratch, sections, &out->state));
  RONDO_TRY(allocate_tables(scratch, out));
  for (uint32_t s = 0; s < sections->section_count; s++) {
    out->weights[s] = WEIGHT_ONE;
    for (uint32_t k = sections->cover_start[s]; k < sections->cover_start[s + 1]; k++) {
      uint64_t *load = &out->loads[sections->cover[k]];
      if (sections->load[s] > *load) *load = sections->load[s];
    }
  }
  return RONDO_OK;
}

void rondo_exact_free(rondo_exact *exact) {
  if (exact->state.sections == NULL) return;
  rondo_array_free(exact->state.allocator, &exact->goals);
  rondo_array_free(exact->state.allocator, &exact->frames);
  rondo_search_state_free(&exact->state);
}

/* Goals ------------------------------------------------------------------------------------------------------------ */

static rondo_status push_goal(rondo_exact *exact, rondo_exact_goal goal) {
  return rondo_array_push(exact->state.allocator, &exact->goals, &goal);
}

/* Sorts the goals from `first` on, longest first, and links them so that the shortest is solved first. */
static void link_goals(rondo_exact *exact, size_t first, uint32_t next) {
  rondo_exact_goal *goals = exact->goals.items;
  for (size_t i = first + 1; i < exact->goals.count; i++) {
    const rondo_exact_goal goal = goals[i];
    size_t at = i;
    for (; at > first && goals[at - 1].upper - goals[at - 1].lower < goal.upper - goal.lower; at--) {
      goals[at] = goals[at - 1];
    }
    goals[at] = goal;
  }
  for (size_t i = first; i < exact->goals.count; i++) {
    goals[i].next = next;
    next = (uint32_t)i;
  }
  exact->todo = next;
}

/* Adds goals for the parts of the range that have items to place, before the list that begins with `next`. */
static rondo_status part(rondo_exact *exact, uint32_t lower, uint32_t upper, uint32_t parent, uint32_t next) {
  const rondo_search_state *state = &exact->state;
  const size_t first = exact->goals.count;
  for (uint32_t s = lower; s < upper;) {
    uint32_t end = s + 1;
    if (state->open[s] > 0) {
      while (end < upper && state->crossing[end] > 0) end++;
      RONDO_TRY(push_goal(exact, (rondo_exact_goal){s, end, parent, RONDO_SEARCH_NONE}));
    }
    s = end;
  }
  link_goals(exact, first, next);
  return RONDO_OK;
}

/* Goals without a packing ------------------------------------------------------------------------------------------ */

static void hash_goal(const rondo_exact *exact, const rondo_exact_goal *goal, uint64_t hashes[2]) {
  const rondo_search_sections *sections = exact->state.sections;
  uint64_t floors = rondo_hash_u64(0, ((uint64_t)goal->lower << 32 | goal->upper) ^ exact->memory_salt);
  uint64_t items = 0;
  for (uint32_t s = goal->lower; s < goal->upper; s++) {
    floors = (floors ^ exact->state.floors[s]) * RONDO_HASH_START;
    floors ^= floors >> 29;
  }
  const uint32_t end = sections->begin_start[goal->upper];
  for (uint32_t k = sections->begin_start[goal->lower]; k < end; k++) {
    if (exact->state.placed[sections->begins[k]]) items += rondo_hash_u64(0, sections->begins[k]);
  }
  hashes[0] = rondo_hash_u64(0, floors + items);
  hashes[1] = rondo_hash_u64(0, floors ^ rondo_hash_u64(0, items));
}

static uint64_t *memory_of(const rondo_exact *exact, const uint64_t hashes[2]) {
  return exact->memory + 2 * (hashes[0] & (exact->memory_count - 1));
}

static bool is_known(const rondo_exact *exact, const uint64_t hashes[2]) {
  const uint64_t *entry = memory_of(exact, hashes);
  return entry[0] == hashes[0] && entry[1] == hashes[1];
}

static void remember(rondo_exact *exact, const uint64_t hashes[2]) {
  uint64_t *entry = memory_of(exact, hashes);
  entry[0] = hashes[0];
  entry[1] = hashes[1];
}

/* Choosing -------------------------------------------------------------------------------------------------------- */

static uint64_t tie_of(const rondo_exact *exact, uint32_t section) {
  const rondo_search_state *state = &exact->state;
  if (exact->tie == 0) return state->floors[section];
  if (exact->tie == 1) return state->slack[section];
  return state->floors[section] + state->slack[section]; /* smallest if the most bytes are to be placed */
}

/* Items that begin, or end, at an end of a valley. */
typedef struct candidates {
  const uint32_t *items;
  uint32_t count;
  uint32_t section;
} candidates;

static candidates candidates_of(const rondo_exact *exact, const choice *of) {
  const rondo_search_sections *sections = exact->state.sections;
  const uint32_t list = of->at_end ? of->valley_upper : of->valley_lower;
  const uint32_t *starts = of->at_end ? sections->end_start : sections->begin_start;
  const uint32_t *items = of->at_end ? sections->ends : sections->begins;
  return (candidates){items + starts[list], starts[list + 1] - starts[list], of->at_end ? list - 1 : list};
}

/* Finds the preferred item of the end, and counts the choices. */
static void examine(const rondo_exact *exact, choice *out) {
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

/* The space that the sections would lose if the item were placed there, in relation to its preference, as a logarithm;
 * the smallest value if it would leave no space. */
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

/* The item of the chosen end that loses the least space; or one that cannot be placed there, to refute it. */
static uint32_t look_ahead(rondo_exact *exact, const choice *chosen) {
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

static bool is_better(const choice *a, const choice *b) {
  if (b->item == RONDO_SEARCH_NONE) return true;
  const uint64_t x = (uint64_t)a->count * b->weight;
  const uint64_t y = (uint64_t)b->count * a->weight;
  return x != y ? x < y : a->tie < b->tie;
}

/* Examines both ends of the valley; true if one of them leaves no choice. */
static bool consider(const rondo_exact *exact, uint32_t lower, uint32_t upper, choice *best) {
  for (uint32_t end = 0; end < 2; end++) {
    choice next = {.valley_lower = lower, .valley_upper = upper, .at_end = end != 0};
    examine(exact, &next);
    assert(next.item != RONDO_SEARCH_NONE);
    if (next.count <= 1 || is_better(&next, best)) *best = next;
    if (next.count <= 1) return true;
  }
  return false;
}

static choice choose_end(const rondo_exact *exact, const rondo_exact_goal *goal) {
  const uint64_t *floors = exact->state.floors;
  choice best = {.item = RONDO_SEARCH_NONE};
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

/* The goal has items to place, and the state is settled. On failure, sets state.status. */
static choice choose(rondo_exact *exact, const rondo_exact_goal *goal) {
  choice chosen = choose_end(exact, goal);
  if (chosen.count > 1) chosen.item = look_ahead(exact, &chosen);
  return chosen;
}

/* Deciding --------------------------------------------------------------------------------------------------------- */

/* The lowest offset of the item if it is not placed on the floor of the valley. */
static uint64_t next_minimum(const rondo_exact *exact, const rondo_exact_goal *goal, const choice *chosen) {
  const rondo_search_state *state = &exact->state;
  const uint32_t lower = chosen->valley_lower;
  const uint32_t upper = chosen->valley_upper;
  const uint64_t above_another = state->minima[chosen->item] + state->sections->least[chosen->item];
  if (state->sections->items[chosen->item].lower != lower || state->sections->items[chosen->item].upper != upper) {
    return above_another;
  }
  uint64_t wall = RONDO_SEARCH_MAX_BYTES;
  if (lower > goal->lower) wall = state->floors[lower - 1];
  if (upper < goal->upper && state->floors[upper] < wall) wall = state->floors[upper];
  return wall > above_another ? wall : above_another;
}

/* Steps ------------------------------------------------------------------------------------------------------------ */

static bool settle(rondo_exact *exact) {
  if (rondo_search_state_settle(&exact->state)) return true;
  exact->weights[exact->state.failed_section] += WEIGHT_ONE;
  return false;
}

/* Goes back to the last decision, from `frame` on, that has another choice, and takes that. *out_found: there is one.
 * */
static rondo_status go_back(rondo_exact *exact, uint32_t frame, bool *out_found) {
  rondo_search_state *state = &exact->state;
  *out_found = true;
  while (frame != RONDO_SEARCH_NONE) {
    rondo_exact_frame *f = &exact->frames.items[frame];
    exact->frames.count = frame + 1;
    exact->goals.count = f->goal_count;
    rondo_search_state_undo(state, f->mark);
    if (!f->refuted && f->minimum <= state->capacity - state->sections->items[f->item].bytes) {
      f->refuted = true;
      rondo_search_state_raise_twins(state, f->item, f->minimum);
      if (settle(exact)) {
        exact->todo = (uint32_t)exact->goals.count;
        return push_goal(exact, (rondo_exact_goal){f->lower, f->upper, frame, f->next});
      }
      rondo_search_state_undo(state, f->mark);
    }
    remember(exact, f->hashes);
    frame = f->parent;
  }
  *out_found = false;
  return RONDO_OK;
}

/* Decides about the goal. *out_fits: the decision leaves space for the rest. */
static rondo_status decide(rondo_exact *exact, rondo_exact_goal goal, const uint64_t hashes[2], bool *out_fits) {
  const choice chosen = choose(exact, &goal);
  if (exact->state.status != RONDO_OK) return exact->state.status;
  const rondo_exact_frame frame = {
      .lower = goal.lower,
      .upper = goal.upper,
      .parent = goal.parent,
      .next = goal.next,
      .item = chosen.item,
      .minimum = next_minimum(exact, &goal, &chosen),
      .goal_count = exact->goals.count,
      .mark = exact->state.trail.count,
      .hashes = {hashes[0], hashes[1]},
  };
  const uint32_t number = (uint32_t)exact->frames.count;
  RONDO_TRY(rondo_array_push(exact->state.allocator, &exact->frames, &frame));
  const bool parted = rondo_search_state_place(&exact->state, chosen.item);
  *out_fits = settle(exact);
  if (!*out_fits) return RONDO_OK;
  if (parted) return part(exact, goal.lower, goal.upper, number, goal.next);
  exact->todo = (uint32_t)exact->goals.count;
  return push_goal(exact, (rondo_exact_goal){goal.lower, goal.upper, number, goal.next});
}

/* One step. *out_open is false when the search has closed. */
static rondo_status step(rondo_exact *exact, bool *out_open) {
  const rondo_exact_goal goal = exact->goals.items[exact->todo];
  uint64_t hashes[2];
  hash_goal(exact, &goal, hashes);
  uint32_t failed = goal.parent;
  if (!is_known(exact, hashes)) {
    bool fits = false;
    RONDO_TRY(decide(exact, goal, hashes, &fits));
    *out_open = true;
    if (fits) return exact->state.status;
    failed = (uint32_t)exact->frames.count - 1;
  }
  RONDO_TRY(go_back(exact, failed, out_open));
  return exact->state.status;
}

/* Restarts --------------------------------------------------------------------------------------------------------- */

/* 1 1 2 1 1 2 4 1 1 2 ... */
static uint64_t luby(uint64_t n) {
  for (;;) {
    uint64_t power = 1;
    while (2 * power - 1 < n) power *= 2;
    if (2 * power - 1 == n) return power;
    n -= power - 1;
  }
}

static uint64_t key_of(const rondo_exact *exact, uint32_t item, uint32_t order) {
  const rondo_search_sections *sections = exact->state.sections;
  const uint64_t span = sections->items[item].upper - sections->items[item].lower;
  const uint64_t scale = (sections->max_load >> 20) + 1;
  const uint64_t bytes = sections->items[item].bytes / scale + 1;
  const uint64_t load = exact->loads[item] / scale + 1;
  if (order == 0) return bytes * span;
  if (order == 1) return bytes;
  if (order == 2) return (span << 21) + bytes;
  return bytes * span * (load >> 5);
}

/* Sets the preferences for the next restart. The first ones are free of noise if the seed is 0. */
static void prepare_keys(rondo_exact *exact) {
  const uint32_t order = exact->restarts % ORDERS;
  const bool noisy = exact->seed != 0 || exact->restarts >= ORDERS;
  const uint64_t stir = rondo_hash_u64(0, exact->seed ^ rondo_hash_u64(0, exact->restarts));
  exact->tie = exact->restarts / ORDERS % TIES;
  for (uint32_t i = 0; i < exact->state.sections->item_count; i++) {
    const uint64_t noise = noisy ? rondo_hash_u64(0, stir + i) & 255 : 0;
    exact->keys[i] = key_of(exact, i, order) * (256 + noise);
  }
}

static rondo_status restart(rondo_exact *exact) {
  const rondo_search_sections *sections = exact->state.sections;
  prepare_keys(exact);
  for (uint32_t s = 0; s < sections->section_count; s++) {
    exact->weights[s] = WEIGHT_ONE + (exact->weights[s] - WEIGHT_ONE) / 10 * 9;
  }
  rondo_search_state_reset(&exact->state, exact->state.capacity);
  rondo_search_state_check(&exact->state);
  exact->goals.count = exact->frames.count = 0;
  exact->steps_left = (500 + 2 * (uint64_t)sections->item_count) * luby(exact->restarts / ORDERS + 1);
  exact->restarts++;
  exact->aimed = true;
  return part(exact, 0, sections->section_count, RONDO_SEARCH_NONE, RONDO_SEARCH_NONE);
}

void rondo_exact_aim(rondo_exact *exact, uint64_t capacity) {
  if (capacity > exact->memory_capacity) exact->memory_salt++;
  exact->memory_capacity = capacity;
  exact->state.capacity = capacity;
  exact->aimed = false;
}

static bool gives_up(const rondo_search_watch *watch) {
  return atomic_load_explicit(watch->winner, memory_order_relaxed) < watch->number ||
         rondo_clock_is_past(watch->deadline_ns);
}

rondo_status rondo_exact_run(rondo_exact *exact, uint64_t steps, const rondo_search_watch *watch, uint64_t *out_used,
                             rondo_search_outcome *out_outcome) {
  *out_used = 0;
  *out_outcome = RONDO_SEARCH_PAUSED;
  while (*out_used < steps) {
    if (*out_used % WATCH_STEPS == 0 && gives_up(watch)) return RONDO_OK;
    if (!exact->aimed || exact->steps_left == 0) RONDO_TRY(restart(exact));
    bool open = false;
    RONDO_TRY(step(exact, &open));
    ++*out_used;
    exact->steps_left--;
    if (!open || exact->todo == RONDO_SEARCH_NONE) {
      *out_outcome = open ? RONDO_SEARCH_FOUND : RONDO_SEARCH_CLOSED;
      exact->aimed = false;
      return RONDO_OK;
    }
  }
  return RONDO_OK;
}
