/* SPDX-License-Identifier: MIT
 * Placing, raising and undoing. The items to place of a section are at the front of its list: placing an item swaps it
 * to the end of the front; undoing the last placement extends the front again.
 *
 * Settling does not cascade: a floor that rises to the lowest minimum of the section's items raises no minimum.
 */
#include "plan/search/partial_packing.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"

enum { CHANGE_PLACED, CHANGE_MINIMUM, CHANGE_FLOOR };

rondo_status rondo_search_state_init(rondo_scratch *scratch, const rondo_search_sections *sections,
                                     rondo_search_state *out) {
  *out = (rondo_search_state){.sections = sections, .allocator = scratch->allocator};
  const size_t items = sections->item_count;
  const size_t count = (size_t)sections->section_count + 1;
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *out->floors, &out->floors));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *out->slack, &out->slack));
  RONDO_TRY(rondo_scratch_take(scratch, items, sizeof *out->minima, &out->minima));
  RONDO_TRY(rondo_scratch_take(scratch, items, sizeof *out->placed, &out->placed));
  RONDO_TRY(rondo_scratch_take(scratch, sections->cover_count, sizeof *out->cover, &out->cover));
  RONDO_TRY(rondo_scratch_take(scratch, sections->cover_count, sizeof *out->positions, &out->positions));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *out->open, &out->open));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *out->crossing, &out->crossing));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *out->dirty, &out->dirty));
  return rondo_scratch_take(scratch, count, sizeof *out->is_dirty, &out->is_dirty);
}

void rondo_search_state_free(rondo_search_state *state) {
  if (state->sections != NULL) rondo_array_free(state->allocator, &state->trail);
}

void rondo_search_state_reset(rondo_search_state *state, uint64_t capacity) {
  const rondo_search_sections *sections = state->sections;
  assert(capacity >= sections->max_load);
  state->capacity = capacity;
  memcpy(state->cover, sections->cover, sections->cover_count * sizeof *state->cover);
  for (uint32_t s = 0; s < sections->section_count; s++) {
    const uint32_t start = sections->cover_start[s];
    state->floors[s] = 0;
    state->slack[s] = capacity - sections->load[s];
    state->open[s] = sections->cover_start[s + 1] - start;
    state->crossing[s] = 0;
    state->is_dirty[s] = false;
    for (uint32_t k = 0; k < state->open[s]; k++) {
      const uint32_t i = state->cover[start + k];
      state->positions[sections->cover_index[i] + (s - sections->items[i].lower)] = k;
      if (s > sections->items[i].lower) state->crossing[s]++;
    }
  }
  memset(state->minima, 0, sections->item_count * sizeof *state->minima);
  memset(state->placed, 0, sections->item_count * sizeof *state->placed);
  state->dirty_count = 0;
  state->trail.count = 0;
}

static void note(rondo_search_state *state, uint32_t what, uint32_t number, uint64_t old) {
  if (state->trail.count == state->trail.capacity) {
    const rondo_status status =
        rondo_array_reserve(state->allocator, &state->trail, state->trail.capacity * 2 + state->sections->item_count);
    if (status != RONDO_OK) {
      state->status = status;
      return;
    }
  }
  state->trail.items[state->trail.count++] = (rondo_search_change){old, what, number};
}

static void make_dirty(rondo_search_state *state, uint32_t section) {
  if (state->is_dirty[section]) return;
  state->is_dirty[section] = true;
  state->dirty[state->dirty_count++] = section;
}

static void raise_minimum(rondo_search_state *state, uint32_t item, uint64_t minimum) {
  const uint64_t old = state->minima[item];
  if (minimum <= old) return;
  note(state, CHANGE_MINIMUM, item, old);
  state->minima[item] = minimum;
  for (uint32_t s = state->sections->items[item].lower; s < state->sections->items[item].upper; s++) {
    if (state->floors[s] == old) make_dirty(state, s); /* the item may have determined the floor */
  }
}

void rondo_search_state_raise_twins(rondo_search_state *state, uint32_t item, uint64_t minimum) {
  const rondo_search_sections *sections = state->sections;
  const uint32_t lower = sections->items[item].lower;
  for (uint32_t k = sections->begin_start[lower]; k < sections->begin_start[lower + 1]; k++) {
    const uint32_t other = sections->begins[k];
    if (state->placed[other] || sections->items[other].upper != sections->items[item].upper) continue;
    if (sections->items[other].bytes == sections->items[item].bytes) raise_minimum(state, other, minimum);
  }
}

/* Moves the item after the items to place of the section. */
static void remove_from_section(rondo_search_state *state, uint32_t item, uint32_t section) {
  const rondo_search_sections *sections = state->sections;
  uint32_t *list = state->cover + sections->cover_start[section];
  uint32_t *position = &state->positions[sections->cover_index[item] + (section - sections->items[item].lower)];
  const uint32_t last = --state->open[section];
  const uint32_t other = list[last];
  state->positions[sections->cover_index[other] + (section - sections->items[other].lower)] = *position;
  list[*position] = other;
  list[last] = item;
  *position = last;
}

static void raise_above(rondo_search_state *state, uint32_t lower, uint32_t upper, uint64_t floor) {
  const rondo_search_sections *sections = state->sections;
  const uint32_t *list = state->cover + sections->cover_start[lower];
  for (uint32_t k = 0; k < state->open[lower]; k++) raise_minimum(state, list[k], floor);
  for (uint32_t k = sections->begin_start[lower + 1]; k < sections->begin_start[upper]; k++) {
    const uint32_t i = sections->begins[k];
    if (!state->placed[i]) raise_minimum(state, i, floor);
  }
}

bool rondo_search_state_place(rondo_search_state *state, uint32_t item) {
  const uint32_t lower = state->sections->items[item].lower;
  const uint32_t upper = state->sections->items[item].upper;
  const uint64_t offset = state->minima[item];
  const uint64_t floor = offset + state->sections->items[item].bytes;
  bool parted = false;
  note(state, CHANGE_PLACED, item, offset);
  state->placed[item] = true;
  for (uint32_t s = lower; s < upper; s++) {
    assert(state->floors[s] == offset);
    state->floors[s] = floor;
    remove_from_section(state, item, s);
    if (s > lower && --state->crossing[s] == 0) parted = true;
    if (state->open[s] == 0) {
      parted = true;
    } else {
      make_dirty(state, s);
    }
  }
  raise_above(state, lower, upper, floor);
  return parted;
}

/* The lowest minimum of the section's items to place; any value up to the floor if it is not above the floor. */
static uint64_t lowest_minimum(const rondo_search_state *state, uint32_t section) {
  const uint32_t *list = state->cover + state->sections->cover_start[section];
  const uint64_t floor = state->floors[section];
  uint64_t lowest = UINT64_MAX;
  for (uint32_t k = 0; k < state->open[section] && lowest > floor; k++) {
    if (state->minima[list[k]] < lowest) lowest = state->minima[list[k]];
  }
  return lowest;
}

static bool settle_section(rondo_search_state *state, uint32_t section) {
  if (state->open[section] == 0) return true;
  const uint64_t floor = state->floors[section];
  const uint64_t lowest = lowest_minimum(state, section);
  if (lowest <= floor) return true;
  if (lowest - floor > state->slack[section]) {
    state->failed_section = section;
    return false;
  }
  note(state, CHANGE_FLOOR, section, floor);
  state->slack[section] -= lowest - floor;
  state->floors[section] = lowest;
  return true;
}

bool rondo_search_state_settle(rondo_search_state *state) {
  bool settled = true;
  while (state->dirty_count > 0) {
    const uint32_t section = state->dirty[--state->dirty_count];
    state->is_dirty[section] = false;
    if (settled) settled = settle_section(state, section);
  }
  return settled;
}

static void undo_placement(rondo_search_state *state, uint32_t item, uint64_t offset) {
  const uint32_t lower = state->sections->items[item].lower;
  state->placed[item] = false;
  for (uint32_t s = lower; s < state->sections->items[item].upper; s++) {
    state->floors[s] = offset;
    state->open[s]++;
    if (s > lower) state->crossing[s]++;
  }
}

void rondo_search_state_undo(rondo_search_state *state, size_t mark) {
  assert(state->dirty_count == 0);
  while (state->trail.count > mark) {
    const rondo_search_change *change = &state->trail.items[--state->trail.count];
    if (change->what == CHANGE_MINIMUM) {
      state->minima[change->number] = change->old;
    } else if (change->what == CHANGE_FLOOR) {
      state->slack[change->number] += state->floors[change->number] - change->old;
      state->floors[change->number] = change->old;
    } else {
      undo_placement(state, change->number, change->old);
    }
  }
}

uint64_t rondo_search_state_loss(const rondo_search_state *state, size_t mark) {
  const uint64_t least_slack = state->capacity / 64 + 1;
  uint64_t sum = 0;
  for (size_t i = mark; i < state->trail.count; i++) {
    const rondo_search_change *change = &state->trail.items[i];
    if (change->what != CHANGE_FLOOR) continue;
    const uint64_t scale = (state->slack[change->number] + least_slack) / 65536 + 1;
    sum += (state->floors[change->number] - change->old) / scale;
  }
  return sum;
}

bool rondo_search_state_can_lift(const rondo_search_state *state, uint32_t section) {
  const uint64_t slack = state->slack[section];
  if (slack == 0) return false;
  const uint64_t floor = state->floors[section];
  const uint32_t *list = state->cover + state->sections->cover_start[section];
  for (uint32_t k = 0; k < state->open[section]; k++) {
    const uint32_t i = list[k];
    const uint64_t least = state->minima[i] > floor ? state->minima[i] : floor + state->sections->least[i];
    if (least - floor <= slack) return true;
  }
  return false;
}

/* Check ------------------------------------------------------------------------------------------------------------ */

#ifndef NDEBUG
static void check_section(const rondo_search_state *state, uint32_t section) {
  const rondo_search_sections *sections = state->sections;
  const uint32_t start = sections->cover_start[section];
  uint64_t to_place = 0, lowest = UINT64_MAX;
  uint32_t crossing = 0;
  assert(!state->is_dirty[section]);
  for (uint32_t k = 0; k < sections->cover_start[section + 1] - start; k++) {
    const uint32_t i = state->cover[start + k];
    assert(state->positions[sections->cover_index[i] + (section - sections->items[i].lower)] == k);
    assert(state->placed[i] == (k >= state->open[section]));
    if (state->placed[i]) continue;
    to_place += sections->items[i].bytes;
    crossing += section > sections->items[i].lower;
    if (state->minima[i] < lowest) lowest = state->minima[i];
  }
  assert(state->crossing[section] == crossing);
  assert(state->floors[section] + to_place + state->slack[section] == state->capacity);
  assert(state->open[section] == 0 || state->floors[section] == lowest);
}

void rondo_search_state_check(const rondo_search_state *state) {
  if (state->status != RONDO_OK) return;
  assert(state->dirty_count == 0);
  for (uint32_t s = 0; s < state->sections->section_count; s++) check_section(state, s);
}
#endif
