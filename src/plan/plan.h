/* SPDX-License-Identifier: MIT
 * Planning memory, numbers only: items with sizes and lifetimes in, offsets out. Items whose lifetimes do not overlap
 * may share bytes. Deterministic: the same problem gives the same plan on every machine.
 *
 * A lifetime is a range of steps of one order of execution. Times are compared, never counted, so steps may be sparse.
 * Thread-safe: no state is kept.
 */
#ifndef RONDO_PLAN_PLAN_H
#define RONDO_PLAN_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/allocation.h"

typedef struct rondo_plan_item {
  size_t bytes;         /* 0 is legal: lies at offset 0 and is in nobody's way */
  size_t alignment;     /* of the offset: a power of two; 0 = 1 */
  uint32_t first, last; /* live from the beginning of step `first` to the end of step `last`; first <= last */
} rondo_plan_item;

typedef struct rondo_plan_problem {
  const rondo_plan_item *items;
  size_t count; /* less than UINT32_MAX / 4 */
} rondo_plan_problem;

typedef struct rondo_plan {
  size_t *offsets; /* one an item */
  size_t count;
  size_t peak;        /* bytes from offset 0 that hold all items */
  size_t lower_bound; /* most bytes live at once: no plan needs less */
  size_t sum;         /* of all items' bytes: what they take without sharing */
  size_t alignment;   /* the largest of any item, at least 1: what the memory's address needs */
  const char *method; /* the rule that won, for reports; static */
} rondo_plan;

/* Plans. The caller frees the plan with rondo_plan_free. Nothing is allocated for a problem without items.
 * Errors: LIMIT_EXCEEDED (sizes that do not add up in a size_t, or too many items), OUT_OF_MEMORY; *out is then zero.
 */
RONDO_MUST_USE rondo_status rondo_plan_make(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                                            rondo_plan *out);
void rondo_plan_free(const rondo_allocator *allocator, rondo_plan *plan); /* a zero one is fine */

/* Proves a plan: every offset is aligned, the peak holds every item, and no two items whose lifetimes overlap have a
 * byte in common. Knows nothing of how plans are made. Debug builds prove every plan before it is handed out.
 * Errors: INVALID_DATA naming the item or pair by number with offsets, sizes and steps; OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_plan_check(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                                             const rondo_plan *plan);

#endif
