/* SPDX-License-Identifier: MIT
 * A problem cut into parts that can be planned each for itself, without loss: where no life crosses from one section to
 * the next, time is cut; boxes that live as long as all that is between two cuts lie at the bottom, and what is left
 * above them is cut again. With obstacles there is one part, because bottoms are not free.
 */
#ifndef RONDO_PLAN_INTERVAL_PLAN_PARTS_H
#define RONDO_PLAN_INTERVAL_PLAN_PARTS_H

#include "plan/interval/boxes.h"

typedef struct rondo_part {
  rondo_boxes boxes;    /* a stretch of the set's arrays, with sections of its own */
  uint32_t first;       /* where the stretch begins in the set's arrays */
  uint64_t base;        /* bytes that lie below the part */
  uint64_t lower_bound; /* of its peak, above the base */
  uint64_t peak;        /* of the best plan so far; UINT64_MAX: none */
  const char *method;   /* of that plan */
  bool optimal;         /* proven */
  uint64_t visits;      /* of the improvement */
  uint64_t episodes;    /* of restarts done */
  uint64_t windows;     /* tried */
  uint64_t cores;       /* rounds of them */
  bool exhausted;       /* no window helps any more */
  bool unsearchable;    /* too large, or of a form that the search does not take */
} rondo_part;

typedef struct rondo_parts {
  rondo_part *items;
  size_t count;
  size_t capacity;
  uint64_t bottom; /* end of the highest box that has its place already */
} rondo_parts;

/* Cuts the set's boxes, whose lives become sections of their part. offsets[i] of a box that lies at the bottom is set.
 * Freed by rondo_array_free, also after a failure. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_parts_make(const rondo_allocator *allocator, const rondo_box_set *set,
                                             uint64_t *offsets, rondo_parts *out);

/* Where the part's plan ends. */
static inline uint64_t rondo_part_top(const rondo_part *part) { return part->base + part->peak; }

/* The peak of the part that corresponds to an offset; 0 below the base. */
static inline uint64_t rondo_part_above_base(const rondo_part *part, uint64_t offset) {
  return offset > part->base ? offset - part->base : 0;
}

/* The part whose plan ends highest, among equals one that is proven: then nothing better is to be had. NULL: no part.
 */
rondo_part *rondo_parts_highest(const rondo_parts *parts);

#endif
