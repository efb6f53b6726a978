/* SPDX-License-Identifier: MIT
 * The skyline is a doubly linked list of segments, ordered by time, without gaps, neighbours of different height. A
 * heap finds the lowest; it may hold old entries of segments that changed since, told apart by their version. Items are
 * visited in the order in which they begin, through an array in which placed ones are skipped by links.
 */
#include "plan/skyline.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"

#define NONE UINT32_MAX

typedef struct segment {
  uint32_t lower, upper; /* steps, half-open */
  size_t height;
  uint32_t previous, next;
  uint32_t version; /* 0: gone */
} segment;

typedef struct heap_entry {
  size_t height;
  uint32_t first;
  uint32_t segment, version;
} heap_entry;

typedef struct start {
  uint32_t lower, item;
} start;

typedef struct skyline {
  const rondo_allocator *allocator;
  const rondo_plan_problem *problem;
  const uint32_t *ranks;
  size_t *offsets;
  size_t peak;
  start *starts;  /* items with bytes, by where they begin */
  uint32_t *skip; /* skip[i] = i: start i is not placed; else one to look at instead. skip[start_count] = start_count */
  size_t start_count;
  RONDO_ARRAY(segment) segments;
  RONDO_ARRAY(heap_entry) heap;
  uint32_t versions; /* given out so far */
} skyline;

/* Heap ------------------------------------------------------------------------------------------------------------- */

static bool lower(const heap_entry *a, const heap_entry *b) {
  return a->height != b->height ? a->height < b->height : a->first < b->first;
}

static void swap(heap_entry *a, heap_entry *b) {
  const heap_entry kept = *a;
  *a = *b;
  *b = kept;
}

/* Gives the segment a new version and an entry in the heap. */
static rondo_status announce(skyline *s, uint32_t index) {
  segment *seg = &s->segments.items[index];
  seg->version = ++s->versions;
  const heap_entry entry = {seg->height, seg->lower, index, seg->version};
  RONDO_TRY(rondo_array_push(s->allocator, &s->heap, &entry));
  heap_entry *heap = s->heap.items;
  for (size_t i = s->heap.count - 1; i > 0 && lower(&heap[i], &heap[(i - 1) / 2]); i = (i - 1) / 2) {
    swap(&heap[i], &heap[(i - 1) / 2]);
  }
  return RONDO_OK;
}

static heap_entry take_top(skyline *s) {
  heap_entry *heap = s->heap.items;
  const heap_entry top = heap[0];
  heap[0] = heap[--s->heap.count];
  for (size_t i = 0;;) {
    size_t least = i;
    for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < s->heap.count; child++) {
      if (lower(&heap[child], &heap[least])) least = child;
    }
    if (least == i) return top;
    swap(&heap[i], &heap[least]);
    i = least;
  }
}

static uint32_t take_lowest_segment(skyline *s) {
  for (;;) {
    assert(s->heap.count > 0);
    const heap_entry entry = take_top(s);
    if (s->segments.items[entry.segment].version == entry.version) return entry.segment;
  }
}

/* Segments --------------------------------------------------------------------------------------------------------- */

static void link_behind(skyline *s, uint32_t index, uint32_t previous, uint32_t next) {
  segment *items = s->segments.items;
  items[index].previous = previous;
  items[index].next = next;
  if (previous != NONE) items[previous].next = index;
  if (next != NONE) items[next].previous = index;
}

/* Makes the segment one with the neighbour behind it; the heap learns of it when the caller announces it. */
static void swallow_next(skyline *s, uint32_t index) {
  segment *items = s->segments.items;
  const uint32_t gone = items[index].next;
  items[index].upper = items[gone].upper;
  items[gone].version = 0;
  link_behind(s, index, items[index].previous, items[gone].next);
}

/* Sets the height of a segment that is in no heap, joins it with neighbours of that height, and announces it. */
static rondo_status settle(skyline *s, uint32_t index, size_t height) {
  s->segments.items[index].height = height;
  const uint32_t next = s->segments.items[index].next;
  if (next != NONE && s->segments.items[next].height == height) swallow_next(s, index);
  const uint32_t previous = s->segments.items[index].previous;
  if (previous != NONE && s->segments.items[previous].height == height) {
    swallow_next(s, previous);
    index = previous;
  }
  return announce(s, index);
}

/* Cuts off the part of the segment before `step` (which lies inside it) into a segment of its own. */
static rondo_status split_before(skyline *s, uint32_t index, uint32_t step) {
  const segment whole = s->segments.items[index];
  segment front = whole;
  front.upper = step;
  const uint32_t made = (uint32_t)s->segments.count;
  RONDO_TRY(rondo_array_push(s->allocator, &s->segments, &front));
  s->segments.items[index].lower = step;
  link_behind(s, made, whole.previous, index);
  return announce(s, made);
}

static rondo_status split_after(skyline *s, uint32_t index, uint32_t step) {
  const segment whole = s->segments.items[index];
  segment back = whole;
  back.lower = step;
  const uint32_t made = (uint32_t)s->segments.count;
  RONDO_TRY(rondo_array_push(s->allocator, &s->segments, &back));
  s->segments.items[index].upper = step;
  link_behind(s, made, index, whole.next);
  return announce(s, made);
}

static rondo_status lift(skyline *s, uint32_t index) {
  const segment *items = s->segments.items;
  const uint32_t previous = items[index].previous;
  const uint32_t next = items[index].next;
  assert(previous != NONE || next != NONE);
  size_t height = previous != NONE ? items[previous].height : items[next].height;
  if (next != NONE && items[next].height < height) height = items[next].height;
  return settle(s, index, height);
}

/* Items ------------------------------------------------------------------------------------------------------------ */

/* The first start from `from` on that is not placed. Halves the path it walks. */
static uint32_t unplaced(skyline *s, uint32_t from) {
  while (s->skip[from] != from) {
    s->skip[from] = s->skip[s->skip[from]];
    from = s->skip[from];
  }
  return from;
}

static uint32_t first_start_from(const skyline *s, uint32_t step) {
  size_t low = 0;
  size_t high = s->start_count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (s->starts[middle].lower < step) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return (uint32_t)low;
}

/* The preferred unplaced item that lives within the segment, as an index of starts; NONE when none does. */
static uint32_t choose(skyline *s, const segment *seg) {
  uint32_t best = NONE;
  uint32_t best_rank = NONE;
  for (uint32_t i = unplaced(s, first_start_from(s, seg->lower)); i < s->start_count && s->starts[i].lower < seg->upper;
       i = unplaced(s, i + 1)) {
    const uint32_t item = s->starts[i].item;
    if (s->problem->items[item].upper <= seg->upper && s->ranks[item] < best_rank) {
      best = i;
      best_rank = s->ranks[item];
    }
  }
  return best;
}

static rondo_status place(skyline *s, uint32_t index, uint32_t chosen) {
  const uint32_t number = s->starts[chosen].item;
  const rondo_plan_item *item = &s->problem->items[number];
  const segment whole = s->segments.items[index];
  size_t offset = 0;
  size_t top = 0;
  if (!rondo_checked_align(whole.height, item->alignment == 0 ? 1 : item->alignment, &offset) ||
      !rondo_checked_add(offset, item->bytes, &top)) {
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE, "item %u of %zu bytes does not fit above offset %zu",
                      number, item->bytes, whole.height);
  }
  s->offsets[number] = offset;
  if (top > s->peak) s->peak = top;
  s->skip[chosen] = chosen + 1;
  if (item->lower > whole.lower) RONDO_TRY(split_before(s, index, item->lower));
  if (item->upper < whole.upper) RONDO_TRY(split_after(s, index, item->upper));
  return settle(s, index, top);
}

static int compare_starts(const void *a, const void *b) {
  const start *x = a;
  const start *y = b;
  if (x->lower != y->lower) return x->lower < y->lower ? -1 : 1;
  return (x->item > y->item) - (x->item < y->item);
}

/* Lists the items that have bytes, and makes one flat segment that spans them. */
static rondo_status begin(skyline *s) {
  const rondo_plan_problem *problem = s->problem;
  RONDO_TRY(rondo_allocate(s->allocator, problem->count, sizeof *s->starts, (void **)&s->starts));
  RONDO_TRY(rondo_allocate(s->allocator, problem->count + 1, sizeof *s->skip, (void **)&s->skip));
  segment ground = {.lower = UINT32_MAX, .previous = NONE, .next = NONE};
  for (uint32_t i = 0; i < problem->count; i++) {
    const rondo_plan_item *item = &problem->items[i];
    s->offsets[i] = 0;
    if (item->bytes == 0) continue;
    s->starts[s->start_count++] = (start){item->lower, i};
    if (item->lower < ground.lower) ground.lower = item->lower;
    if (item->upper > ground.upper) ground.upper = item->upper;
  }
  qsort(s->starts, s->start_count, sizeof *s->starts, compare_starts);
  for (uint32_t i = 0; i <= s->start_count; i++) s->skip[i] = i;
  if (s->start_count == 0) return RONDO_OK;
  RONDO_TRY(rondo_array_push(s->allocator, &s->segments, &ground));
  return announce(s, 0);
}

static rondo_status place_all(skyline *s) {
  RONDO_TRY(begin(s));
  for (size_t left = s->start_count; left > 0;) {
    const uint32_t index = take_lowest_segment(s);
    const uint32_t chosen = choose(s, &s->segments.items[index]);
    if (chosen == NONE) {
      RONDO_TRY(lift(s, index));
    } else {
      RONDO_TRY(place(s, index, chosen));
      left--;
    }
  }
  return RONDO_OK;
}

rondo_status rondo_skyline_place(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                                 const uint32_t *ranks, size_t *offsets, size_t *out_peak) {
  skyline s = {.allocator = allocator, .problem = problem, .ranks = ranks, .offsets = offsets};
  const rondo_status status = place_all(&s);
  *out_peak = s.peak;
  rondo_release(allocator, s.starts, problem->count, sizeof *s.starts);
  rondo_release(allocator, s.skip, problem->count + 1, sizeof *s.skip);
  rondo_array_free(allocator, &s.segments);
  rondo_array_free(allocator, &s.heap);
  return status;
}
