/* SPDX-License-Identifier: MIT
 * The skyline is a doubly linked list of segments in the order of time, without gaps; neighbours differ in height.
 * Among the segments that are lower than their neighbours, any may come first, because none of them changes another: so
 * a walk downhill from the last one finds one, and no heap is needed. A segment at or in an obstacle is raised to its
 * end, as far as the obstacle reaches in time. Below an obstacle, a box fits that is not higher than the space below
 * it, or that lives before or after it.
 */
#include "plan/interval/skyline.h"

#include <assert.h>

#include "base/error.h"

#define NONE UINT32_MAX

struct rondo_skyline_segment {
  uint64_t height;
  uint32_t lower, upper; /* sections */
  uint32_t previous, next;
};

typedef rondo_skyline_segment segment;

rondo_status rondo_skyline_make(rondo_scratch *scratch, uint32_t boxes, uint32_t sections, rondo_skyline *out) {
  *out = (rondo_skyline){.capacity = sections};
  RONDO_TRY(rondo_scratch_take(scratch, sections, sizeof *out->segments, &out->segments));
  RONDO_TRY(rondo_scratch_take(scratch, sections, sizeof *out->spare, &out->spare));
  return rondo_box_tree_make(scratch, boxes, &out->tree);
}

void rondo_skyline_bind(rondo_skyline *s, const rondo_boxes *boxes) {
  assert(boxes->count <= s->tree.capacity && boxes->section_count <= s->capacity);
  s->boxes = boxes;
  s->live = NULL;
  rondo_box_tree_shape(&s->tree, boxes->boxes, boxes->count, boxes->obstacles != NULL);
}

/* Segments --------------------------------------------------------------------------------------------------------- */

static void link_between(rondo_skyline *s, uint32_t previous, uint32_t index, uint32_t next) {
  s->segments[index].previous = previous;
  s->segments[index].next = next;
  if (previous != NONE) s->segments[previous].next = index;
  if (next != NONE) s->segments[next].previous = index;
}

/* Cuts a segment in two at `section`, and returns the later one, which is new. */
static uint32_t cut(rondo_skyline *s, uint32_t index, uint32_t section) {
  segment *whole = &s->segments[index];
  const uint32_t back = s->spare[--s->spare_count];
  s->segments[back] = (segment){.height = whole->height, .lower = section, .upper = whole->upper};
  whole->upper = section;
  link_between(s, index, back, whole->next);
  return back;
}

/* Merges a segment into its next neighbour, which has the same height. */
static void join_next(rondo_skyline *s, uint32_t index) {
  const segment gone = s->segments[index];
  s->spare[s->spare_count++] = index;
  s->segments[gone.next].lower = gone.lower;
  s->segments[gone.next].previous = gone.previous;
  if (gone.previous != NONE) s->segments[gone.previous].next = gone.next;
}

/* Raises a segment, and joins it with neighbours of the same height. Returns the segment that contains it then. */
static uint32_t raise_whole(rondo_skyline *s, uint32_t index, uint64_t height) {
  s->segments[index].height = height;
  const uint32_t previous = s->segments[index].previous;
  const uint32_t next = s->segments[index].next;
  if (previous != NONE && s->segments[previous].height == height) join_next(s, previous);
  if (next == NONE || s->segments[next].height != height) return index;
  join_next(s, index);
  return next;
}

static uint32_t raise_part(rondo_skyline *s, uint32_t index, uint32_t lower, uint32_t upper, uint64_t height) {
  if (lower > s->segments[index].lower) index = cut(s, index, lower);
  if (upper < s->segments[index].upper) (void)cut(s, index, upper);
  return raise_whole(s, index, height);
}

/* Walks downhill from `index` to a segment that is lower than its neighbours. */
static uint32_t descend(const rondo_skyline *s, uint32_t index) {
  for (;;) {
    const segment *of = &s->segments[index];
    if (of->previous != NONE && s->segments[of->previous].height < of->height) {
      index = of->previous;
    } else if (of->next != NONE && s->segments[of->next].height < of->height) {
      index = of->next;
    } else {
      return index;
    }
  }
}

/* Placing ---------------------------------------------------------------------------------------------------------- */

/* One run. */
typedef struct run {
  rondo_skyline *skyline;
  const uint32_t *order;
  uint64_t limit;
  uint64_t *offsets;
  uint64_t peak;
  uint32_t left; /* boxes to place */
  uint32_t at;   /* segment */
} run;

/* If a box would end above the limit, everything left in its first section is in conflict. */
static bool fail_at(run *r, const rondo_box *box) {
  r->skyline->conflict = (rondo_skyline_conflict){box->lower, 0, r->skyline->boxes->section_count};
  return false;
}

static bool place(run *r, uint32_t chosen) {
  const rondo_box *box = &r->skyline->boxes->boxes[chosen];
  const uint64_t offset = rondo_box_offset(r->skyline->boxes, chosen, r->skyline->segments[r->at].height);
  if (offset > r->limit || box->bytes > r->limit - offset) return fail_at(r, box);
  const uint64_t top = offset + box->bytes;
  r->offsets[chosen] = offset;
  r->left--;
  if (top > r->peak) r->peak = top;
  rondo_box_tree_remove(&r->skyline->tree, chosen);
  if (r->skyline->live != NULL) rondo_live_bytes_take(r->skyline->live, box);
  r->at = raise_part(r->skyline, r->at, box->lower, box->upper, top);
  return true;
}

/* Whether the bytes still to be placed in each section of the segment fit between the height and the limit. */
static bool rest_fits(run *r, const segment *of, uint64_t height) {
  if (r->skyline->live == NULL || height > r->limit) return true;
  const uint32_t section = rondo_live_bytes_above(r->skyline->live, of->lower, of->upper, r->limit - height);
  if (section == RONDO_NO_SECTION) return true;
  r->skyline->conflict = (rondo_skyline_conflict){section, of->lower, of->upper};
  return false;
}

/* Raises a segment on which nothing fits to the next height that matters: that of a neighbour, or of an obstacle above
 * it. After an obstacle that ends at the largest offset, that is the largest height. False: the rest does not fit below
 * the limit. */
static bool raise_empty(run *r, const rondo_obstacle *above) {
  const segment *of = &r->skyline->segments[r->at];
  uint64_t height = above == NULL ? UINT64_MAX : above->offset;
  if (of->previous != NONE && r->skyline->segments[of->previous].height < height) {
    height = r->skyline->segments[of->previous].height;
  }
  if (of->next != NONE && r->skyline->segments[of->next].height < height) {
    height = r->skyline->segments[of->next].height;
  }
  /* Every box fits on a segment that spans all time and has no obstacle above it. */
  assert(above != NULL || of->previous != NONE || of->next != NONE);
  if (!rest_fits(r, of, height)) return false;
  r->at = raise_whole(r->skyline, r->at, height);
  return true;
}

static void raise_above(run *r, const rondo_obstacle *obstacle) {
  const segment *of = &r->skyline->segments[r->at];
  const uint32_t lower = obstacle->lower > of->lower ? obstacle->lower : of->lower;
  const uint32_t upper = obstacle->upper < of->upper ? obstacle->upper : of->upper;
  r->at = raise_part(r->skyline, r->at, lower, upper, obstacle->end);
}

/* Below an obstacle, boxes are also searched for before and after it, and there before and after the next one: the
 * depth of this. */
#define MOST_SIDES 2

/* Boxes that alignment makes too high for the space below an obstacle, before the search ends with the best found. */
#define MOST_REFUSALS 64

/* The search for a box to place on the segment at `height`. */
typedef struct selection {
  const run *of;
  uint64_t height;
  uint64_t ceiling; /* the offset of the next obstacle */
  uint32_t rank;    /* of the best so far; RONDO_NO_BOX: none */
} selection;

static bool is_clear(const void *self, uint32_t box) {
  const selection *s = self;
  const rondo_boxes *boxes = s->of->skyline->boxes;
  const uint64_t offset = rondo_box_offset(boxes, box, s->height);
  return offset <= s->ceiling && boxes->boxes[box].bytes <= s->ceiling - offset;
}

/* Searches sections [lower, upper), above which `above` is the next obstacle. */
static void select_below(selection *s, uint32_t lower, uint32_t upper, const rondo_obstacle *above, uint32_t sides) {
  const rondo_boxes *boxes = s->of->skyline->boxes;
  rondo_box_query query = {.lower = lower, .upper = upper, .before = s->rank, .most_bytes = UINT64_MAX};
  if (above != NULL) {
    s->ceiling = above->offset;
    query.most_bytes = above->offset - s->height;
    query.accepts = boxes->alignments == NULL ? NULL : is_clear;
    query.self = s;
    query.most_refusals = MOST_REFUSALS;
  }
  s->rank = rondo_box_tree_first(&s->of->skyline->tree, &query);
  if (above == NULL || sides == 0) return;
  if (above->lower > lower) {
    const rondo_obstacle *next = rondo_obstacles_above(boxes->obstacles, lower, above->lower, s->height);
    select_below(s, lower, above->lower, next, sides - 1);
  }
  if (above->upper < upper) {
    const rondo_obstacle *next = rondo_obstacles_above(boxes->obstacles, above->upper, upper, s->height);
    select_below(s, above->upper, upper, next, sides - 1);
  }
}

/* Places a box on a segment that is lower than its neighbours, or raises the segment. False: the run has failed. */
static bool step(run *r) {
  rondo_skyline *s = r->skyline;
  const segment *lowest = &s->segments[r->at];
  const rondo_obstacle *above = NULL;
  if (s->boxes->obstacles != NULL) {
    above = rondo_obstacles_above(s->boxes->obstacles, lowest->lower, lowest->upper, lowest->height);
  }
  if (above != NULL && above->offset <= lowest->height) {
    raise_above(r, above);
    return true;
  }
  selection chosen = {.of = r, .height = lowest->height, .rank = RONDO_NO_BOX};
  select_below(&chosen, lowest->lower, lowest->upper, above, MOST_SIDES);
  if (chosen.rank != RONDO_NO_BOX) return place(r, r->order[chosen.rank]);
  return raise_empty(r, above);
}

static void begin(rondo_skyline *s, const uint32_t *order) {
  rondo_box_tree_fill(&s->tree, order);
  if (s->live != NULL) rondo_live_bytes_reset(s->live);
  s->spare_count = 0;
  for (uint32_t i = s->boxes->section_count; i > 1; i--) s->spare[s->spare_count++] = i - 1;
  s->segments[0] = (segment){.upper = s->boxes->section_count, .previous = NONE, .next = NONE};
}

/* Given any segment, asserts that the segments cover all sections without a gap, and that neighbours differ in height.
 * After a run that placed all boxes. Linear. */
static void check(const rondo_skyline *skyline, uint32_t first) {
#ifdef NDEBUG
  (void)skyline;
  (void)first;
#else
  uint32_t count = 1;
  while (skyline->segments[first].previous != NONE) first = skyline->segments[first].previous;
  assert(skyline->segments[first].lower == 0);
  for (uint32_t at = first, next; (next = skyline->segments[at].next) != NONE; at = next, count++) {
    assert(skyline->segments[next].previous == at && skyline->segments[at].upper == skyline->segments[next].lower);
    assert(skyline->segments[at].lower < skyline->segments[at].upper);
    assert(skyline->segments[at].height != skyline->segments[next].height);
    assert(skyline->segments[next].next != NONE || skyline->segments[next].upper == skyline->boxes->section_count);
  }
  assert(count + skyline->spare_count == skyline->boxes->section_count);
#endif
}

bool rondo_skyline_place(rondo_skyline *s, const uint32_t *order, uint64_t limit, uint64_t *offsets,
                         uint64_t *out_peak) {
  run r = {.skyline = s, .order = order, .limit = limit, .offsets = offsets, .left = s->boxes->count};
  begin(s, order);
  while (r.left > 0) {
    r.at = descend(s, r.at);
    if (!step(&r)) return false;
  }
  if (s->boxes->count <= RONDO_CHECKED_BOXES) {
    check(s, r.at);
    rondo_box_tree_check(&s->tree);
  }
  rondo_boxes_check_plan(s->boxes, offsets, r.peak);
  *out_peak = r.peak;
  return true;
}
