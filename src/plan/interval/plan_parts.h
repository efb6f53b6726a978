/* SPDX-License-Identifier: MIT
 * Cuts a problem into parts that can be planned separately, without loss. Time is cut where no life crosses from one
 * section to the next. Boxes that live throughout the stretch between two cuts are placed at the bottom, and the rest
 * is cut again above them. With obstacles or alignments there is one part, because the bottom is not free.
 */
#ifndef RONDO_PLAN_INTERVAL_PLAN_PARTS_H
#define RONDO_PLAN_INTERVAL_PLAN_PARTS_H

#include "plan/interval/boxes.h"

typedef struct rondo_part {
  rondo_boxes boxes;    /* a range of the set's arrays, with sections of its own */
  uint32_t first;       /* the index of the first box in the set's arrays */
  uint64_t base;        /* bytes below the part */
  uint64_t lower_bound; /* of its peak, above the base */
  uint64_t peak;        /* of the best plan so far; UINT64_MAX: none */
  const char *method;   /* of that plan */
  bool optimal;         /* proven */
  uint64_t visits;      /* by the improvement */
  uint64_t episodes;    /* of restarts */
  uint64_t windows;     /* tried */
  uint64_t cores;       /* rounds of them */
  bool exhausted;       /* no window helps any more */
  bool unsearchable;    /* the exact search does not support it, or it is too large */
} rondo_part;

typedef struct rondo_parts {
  rondo_part *items;
  size_t count;
  size_t capacity;
  uint64_t bottom; /* the end of the highest box that is placed already */
} rondo_parts;

/* Cuts the set's boxes. Sections become those of the part. Sets offsets[i] of the boxes at the bottom. Free the parts
 * by rondo_array_free, also after a failure. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_parts_make(const rondo_allocator *allocator, const rondo_box_set *set,
                                             uint64_t *offsets, rondo_parts *out);

/* Where the part's plan ends. */
static inline uint64_t rondo_part_top(const rondo_part *part) { return part->base + part->peak; }

/* The offset relative to the base; 0 below it. */
static inline uint64_t rondo_part_above_base(const rondo_part *part, uint64_t offset) {
  return offset > part->base ? offset - part->base : 0;
}

/* The part whose plan ends highest. Among equals, one with a proven optimum: then the whole cannot be improved. NULL:
 * there is no part. */
rondo_part *rondo_parts_highest(const rondo_parts *parts);

#endif
