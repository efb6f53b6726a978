/* SPDX-License-Identifier: MIT
 * The bytes that are still to be placed in each section, while a skyline is built. A segment that is lifted loses the
 * room below it: if its new height and the bytes to be placed in one of its sections exceed the limit, the run has
 * failed, long before a box ends above the limit.
 *
 * A tree of maxima with range updates; one thread at a time.
 */
#ifndef RONDO_PLAN_INTERVAL_REMAINING_BYTES_H
#define RONDO_PLAN_INTERVAL_REMAINING_BYTES_H

#include "plan/interval/boxes.h"

#define RONDO_NO_SECTION UINT32_MAX

typedef struct rondo_load {
  uint64_t most;  /* in any section below the node, without what ancestors have taken */
  uint64_t taken; /* from all sections below the node */
} rondo_load;

typedef struct rondo_loads {
  uint32_t width;   /* leaves: a power of two; section i is node width + i, node i is above 2i and 2i + 1 */
  rondo_load *tree; /* 2 a leaf */
  uint64_t *whole;  /* bytes in each section before anything is placed */
  uint32_t section_count;
} rondo_loads;

/* The loads of these boxes, whose bytes must add up in 64 bits. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_loads_make(rondo_scratch *scratch, const rondo_boxes *boxes, rondo_loads *out);

/* Nothing is placed. */
void rondo_loads_reset(rondo_loads *loads);

/* Takes a placed box's bytes from its sections. */
void rondo_loads_take(rondo_loads *loads, const rondo_box *box);

/* A section of `lower` up to `upper` in which more than `bytes` are still to be placed, usually the one with the most;
 * RONDO_NO_SECTION: none. */
uint32_t rondo_loads_above(const rondo_loads *loads, uint32_t lower, uint32_t upper, uint64_t bytes);

#endif
