/* SPDX-License-Identifier: MIT
 * Makes the boxes of a problem: replaces steps by sections, sorts, handles alignment, and computes the lower bound.
 */
#include "plan/interval/boxes.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "plan/interval/live_bytes.h"

/* Sizes are rounded up to the largest alignment if this raises the bound by at most one part in WORTH_ROUNDING. */
#define WORTH_ROUNDING 2000

typedef struct maker {
  rondo_scratch *scratch;  /* of the set */
  rondo_scratch temporary; /* freed when the set is made */
  const rondo_plan_problem *problem;
  rondo_box *lives;          /* items with bytes, then obstacles */
  rondo_sort_entry *entries; /* 4 for each life */
  size_t life_count;
  size_t alignment;    /* the largest of an item with bytes */
  bool same_alignment; /* of all items with bytes */
} maker;

/* Items ------------------------------------------------------------------------------------------------------------ */

static size_t alignment_of(const rondo_plan_item *item) { return item->alignment == 0 ? 1 : item->alignment; }

static uint32_t count_boxes(maker *m) {
  uint32_t count = 0;
  m->alignment = 1;
  m->same_alignment = true;
  for (size_t i = 0; i < m->problem->count; i++) {
    const rondo_plan_item *item = &m->problem->items[i];
    if (item->bytes == 0) continue;
    if (count > 0 && alignment_of(item) != m->alignment) m->same_alignment = false;
    if (alignment_of(item) > m->alignment) m->alignment = alignment_of(item);
    count++;
  }
  return count;
}

/* The lives of items with bytes, in the order of the items, then those of all obstacles. */
static size_t list_lives(maker *m) {
  size_t count = 0;
  for (size_t i = 0; i < m->problem->count; i++) {
    const rondo_plan_item *item = &m->problem->items[i];
    if (item->bytes > 0) m->lives[count++] = (rondo_box){item->bytes, item->lower, item->upper};
  }
  for (size_t i = 0; i < m->problem->obstacle_count; i++) {
    const rondo_plan_obstacle *obstacle = &m->problem->obstacles[i];
    m->lives[count++] = (rondo_box){obstacle->bytes, obstacle->lower, obstacle->upper};
  }
  return count;
}

static void sort_boxes(maker *m, uint32_t count) {
  uint32_t at = 0;
  for (size_t i = 0; i < m->problem->count; i++) {
    if (m->problem->items[i].bytes == 0) continue;
    const uint64_t key = (uint64_t)m->lives[at].lower << 32 | (UINT32_MAX - m->lives[at].upper);
    m->entries[at++] = (rondo_sort_entry){key, (uint32_t)i};
  }
  rondo_sort_entries(m->entries, m->entries + count, count);
}

static void fill_boxes(const maker *m, rondo_boxes *boxes) {
  for (uint32_t i = 0; i < boxes->count; i++) {
    const rondo_sort_entry *entry = &m->entries[i];
    const rondo_plan_item *item = &m->problem->items[entry->value];
    boxes->items[i] = entry->value;
    boxes->steps[i] = item->upper - item->lower;
    boxes->boxes[i] =
        (rondo_box){item->bytes, (uint32_t)(entry->key >> 32), UINT32_MAX - (uint32_t)(entry->key & UINT32_MAX)};
  }
}

/* Alignment -------------------------------------------------------------------------------------------------------- */

static bool are_multiples(const rondo_boxes *boxes, size_t alignment) {
  for (uint32_t i = 0; i < boxes->count; i++) {
    if (boxes->boxes[i].bytes % alignment != 0) return false;
  }
  return true;
}

/* False if the sum of the rounded sizes does not fit in 64 bits. */
static bool round_sizes(rondo_boxes *boxes, size_t alignment) {
  size_t sum = 0;
  for (uint32_t i = 0; i < boxes->count; i++) {
    size_t rounded = 0;
    if (!rondo_checked_align(boxes->boxes[i].bytes, alignment, &rounded)) return false;
    if (!rondo_checked_add(sum, rounded, &sum)) return false;
    boxes->boxes[i].bytes = rounded;
  }
  return true;
}

static void restore_sizes(const rondo_plan_problem *problem, rondo_boxes *boxes) {
  for (uint32_t i = 0; i < boxes->count; i++) boxes->boxes[i].bytes = problem->items[boxes->items[i]].bytes;
}

static rondo_status list_alignments(const maker *m, rondo_box_set *set) {
  rondo_boxes *boxes = &set->all;
  RONDO_TRY(rondo_scratch_take(m->scratch, set->capacity, sizeof *boxes->alignments, &boxes->alignments));
  for (uint32_t i = 0; i < boxes->count; i++) {
    boxes->alignments[i] = (uint8_t)__builtin_ctzll(alignment_of(&m->problem->items[boxes->items[i]]));
  }
  return RONDO_OK;
}

/* Boxes that are all aligned to some power of two never share one of its blocks: each takes as many blocks as it needs
 * by itself, and only the highest ends before its last block does. So there is one pass for each alignment that occurs,
 * over the boxes that have it or a larger one. A section needs the blocks of its boxes, less the longest tail of a last
 * block: sections are visited with the longest tails first. */
typedef struct alignment_sweep {
  const rondo_boxes *boxes;
  rondo_sort_entry *entries; /* 2 for each box */
  uint32_t entry_count;
  uint64_t *lives; /* of each section: bytes of whole blocks */
  uint32_t *next;  /* of each section and the end: itself, or a later section once it was visited */
  uint32_t level;  /* logarithm of the alignment */
} alignment_sweep;

/* Lists the boxes of the level by their tails, and computes the bytes live in each section. False: these do not fit in
 * 64 bits. */
static bool list_level(alignment_sweep *s) {
  const uint64_t rest = (UINT64_C(1) << s->level) - 1;
  uint64_t sum = 0;
  s->entry_count = 0;
  memset(s->lives, 0, ((size_t)s->boxes->section_count + 1) * sizeof *s->lives);
  for (uint32_t i = 0; i < s->boxes->count; i++) {
    const rondo_box *box = &s->boxes->boxes[i];
    if (s->boxes->alignments[i] < s->level) continue;
    const uint64_t bytes = (box->bytes + rest) & ~rest;
    if (bytes < box->bytes || __builtin_add_overflow(sum, bytes, &sum)) return false;
    s->lives[box->lower] += bytes;
    s->lives[box->upper] -= bytes;
    s->entries[s->entry_count++] = (rondo_sort_entry){UINT64_MAX - (bytes - box->bytes), i};
  }
  for (uint32_t i = 1; i < s->boxes->section_count; i++) s->lives[i] += s->lives[i - 1];
  rondo_sort_entries(s->entries, s->entries + s->boxes->count, s->entry_count);
  return true;
}

/* The first section from `from` on that was not visited yet. Halves the path that it walks. */
static uint32_t next_section(uint32_t *next, uint32_t from) {
  while (next[from] != from) {
    next[from] = next[next[from]];
    from = next[from];
  }
  return from;
}

static uint64_t bound_of_level(alignment_sweep *s) {
  uint64_t bound = 0;
  if (!list_level(s)) return 0;
  for (uint32_t i = 0; i <= s->boxes->section_count; i++) s->next[i] = i;
  for (uint32_t i = 0; i < s->entry_count; i++) {
    const rondo_box *box = &s->boxes->boxes[s->entries[i].value];
    const uint64_t tail = UINT64_MAX - s->entries[i].key;
    for (uint32_t at = next_section(s->next, box->lower); at < box->upper; at = next_section(s->next, at)) {
      if (s->lives[at] - tail > bound) bound = s->lives[at] - tail;
      s->next[at] = at + 1;
    }
  }
  return bound;
}

static uint64_t bound_of_all(alignment_sweep *s) {
  uint64_t levels = 0;
  uint64_t bound = 0;
  for (uint32_t i = 0; i < s->boxes->count; i++) levels |= UINT64_C(1) << s->boxes->alignments[i];
  for (; levels > 0; levels &= levels - 1) {
    s->level = (uint32_t)__builtin_ctzll(levels);
    const uint64_t own = bound_of_level(s);
    if (own > bound) bound = own;
  }
  return bound;
}

/* Raises the lower bound by what alignment adds. */
static rondo_status raise_bound(maker *m, rondo_box_set *set) {
  const size_t count = (size_t)set->all.section_count + 1;
  alignment_sweep s = {.boxes = &set->all, .entries = m->entries};
  RONDO_TRY(rondo_scratch_take(&m->temporary, count, sizeof *s.lives, &s.lives));
  RONDO_TRY(rondo_scratch_take(&m->temporary, count, sizeof *s.next, &s.next));
  const uint64_t bound = bound_of_all(&s);
  if (bound > set->lower_bound) set->lower_bound = bound;
  return RONDO_OK;
}

/* Whether to use the rounded sizes and plan without regard to alignment. */
static rondo_status is_worth_rounding(maker *m, const rondo_box_set *set, bool *out) {
  rondo_live_bytes live;
  *out = true;
  if (m->same_alignment) return RONDO_OK;
  RONDO_TRY(rondo_live_bytes_make(&m->temporary, &set->all, &live));
  const uint64_t rounded = live.tree[1].max;
  *out = rounded <= set->lower_bound || rounded - set->lower_bound <= set->lower_bound / WORTH_ROUNDING;
  return RONDO_OK;
}

/* Either rounds the sizes, or keeps sizes and alignments. On entry, lower_bound is that of the items' own sizes. */
static rondo_status align(maker *m, rondo_box_set *set) {
  if (set->all.obstacles == NULL && are_multiples(&set->all, m->alignment)) return RONDO_OK;
  RONDO_TRY(list_alignments(m, set));
  RONDO_TRY(raise_bound(m, set));
  if (set->all.obstacles == NULL && round_sizes(&set->all, m->alignment)) {
    RONDO_TRY(is_worth_rounding(m, set, &set->rounded));
  }
  if (set->rounded) {
    set->all.alignments = NULL;
  } else {
    restore_sizes(m->problem, &set->all);
  }
  return RONDO_OK;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status bound(maker *m, rondo_box_set *set) {
  rondo_live_bytes live;
  RONDO_TRY(rondo_live_bytes_make(&m->temporary, &set->all, &live));
  set->lower_bound = live.tree[1].max;
  if (set->all.obstacles == NULL) return RONDO_OK;
  return rondo_obstacles_bound(&m->temporary, &set->obstacles, live.whole, set->all.section_count, &set->lower_bound);
}

static rondo_status make_obstacles(maker *m, rondo_box_set *set) {
  const size_t given = m->problem->obstacle_count;
  rondo_obstacle *ranges = NULL;
  uint32_t count = 0;
  RONDO_TRY(rondo_scratch_take(&m->temporary, given, sizeof *ranges, &ranges));
  for (size_t i = 0; i < given; i++) {
    const rondo_plan_obstacle *of = &m->problem->obstacles[i];
    const rondo_box *life = &m->lives[set->all.count + i];
    if (of->bytes > 0) {
      ranges[count++] = (rondo_obstacle){of->offset, of->offset + of->bytes, life->lower, life->upper};
    }
  }
  const rondo_status status = rondo_obstacles_make(m->scratch, ranges, count, &set->obstacles);
  if (count > 0) set->all.obstacles = &set->obstacles;
  return status;
}

static rondo_status make_set(maker *m, rondo_box_set *set) {
  rondo_boxes *boxes = &set->all;
  RONDO_TRY(rondo_scratch_take(&m->temporary, m->life_count, sizeof *m->lives, &m->lives));
  RONDO_TRY(rondo_scratch_take(&m->temporary, m->life_count, 4 * sizeof *m->entries, &m->entries));
  RONDO_TRY(rondo_scratch_take(m->scratch, set->capacity, sizeof *boxes->boxes, &boxes->boxes));
  RONDO_TRY(rondo_scratch_take(m->scratch, set->capacity, sizeof *boxes->items, &boxes->items));
  RONDO_TRY(rondo_scratch_take(m->scratch, set->capacity, sizeof *boxes->steps, &boxes->steps));
  RONDO_TRY(rondo_scratch_take(m->scratch, set->capacity, sizeof *boxes->crowding, &boxes->crowding));
  boxes->section_count = rondo_sections_number(m->lives, list_lives(m), m->entries);
  sort_boxes(m, boxes->count);
  fill_boxes(m, boxes);
  RONDO_TRY(make_obstacles(m, set));
  RONDO_TRY(bound(m, set));
  return align(m, set);
}

rondo_status rondo_box_set_make(rondo_scratch *scratch, const rondo_plan_problem *problem, rondo_box_set *out) {
  maker m = {.scratch = scratch, .temporary.allocator = scratch->allocator, .problem = problem};
  *out = (rondo_box_set){.all = {.count = count_boxes(&m)}};
  out->capacity = out->all.count;
  m.life_count = out->capacity + problem->obstacle_count;
  if (out->capacity == 0) return RONDO_OK;
  const rondo_status status = make_set(&m, out);
  if (status == RONDO_OK) rondo_boxes_check(&out->all);
  rondo_scratch_free(&m.temporary);
  return status;
}

uint64_t rondo_boxes_peak(const rondo_box *boxes, uint32_t count, const uint64_t *offsets) {
  uint64_t peak = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (offsets[i] + boxes[i].bytes > peak) peak = offsets[i] + boxes[i].bytes;
  }
  return peak;
}

/* Check ------------------------------------------------------------------------------------------------------------ */

#ifndef NDEBUG
void rondo_boxes_check(const rondo_boxes *boxes) {
  for (uint32_t i = 0; i < boxes->count; i++) {
    const rondo_box *box = &boxes->boxes[i];
    assert(box->bytes > 0 && box->lower < box->upper && box->upper <= boxes->section_count);
    assert(i == 0 || box[-1].lower <= box->lower);
    assert(boxes->alignments == NULL || boxes->alignments[i] < 64);
  }
}

/* Whether two half-open ranges overlap. */
static bool overlap(uint64_t a, uint64_t a_end, uint64_t b, uint64_t b_end) { return a < b_end && b < a_end; }

static void check_overlaps(const rondo_boxes *boxes, const uint64_t *offsets, uint32_t number) {
  const rondo_box *box = &boxes->boxes[number];
  const uint64_t offset = offsets[number], end = offset + box->bytes;
  for (uint32_t i = 0; i < number; i++) {
    const rondo_box *other = &boxes->boxes[i];
    if (!overlap(box->lower, box->upper, other->lower, other->upper)) continue;
    assert(!overlap(offset, end, offsets[i], offsets[i] + other->bytes));
  }
  for (uint32_t i = 0; boxes->obstacles != NULL && i < boxes->obstacles->count; i++) {
    const rondo_obstacle *obstacle = &boxes->obstacles->ranges[i];
    if (!overlap(box->lower, box->upper, obstacle->lower, obstacle->upper)) continue;
    assert(!overlap(offset, end, obstacle->offset, obstacle->end));
  }
}

void rondo_boxes_check_plan(const rondo_boxes *boxes, const uint64_t *offsets, uint64_t peak) {
  for (uint32_t i = 0; i < boxes->count; i++) {
    assert(boxes->boxes[i].bytes <= peak && offsets[i] <= peak - boxes->boxes[i].bytes);
    assert(boxes->alignments == NULL || rondo_box_offset(boxes, i, offsets[i]) == offsets[i]);
    if (boxes->count <= RONDO_CHECKED_BOXES) check_overlaps(boxes, offsets, i);
  }
}
#endif
