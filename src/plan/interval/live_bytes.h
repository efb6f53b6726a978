/* SPDX-License-Identifier: MIT
 * The bytes in each section that are still to be placed: at first, those of all boxes. Their maximum over all sections
 * bounds every plan from below. The maximum during one box's life says how crowded it is there.
 *
 * While a skyline is built, a raised segment loses the space below it. If its new height plus the bytes to be placed in
 * one of its sections exceeds the limit, the run has failed, long before a box ends above the limit.
 *
 * A tree of maxima with range updates; one thread at a time.
 */
#ifndef RONDO_PLAN_INTERVAL_LIVE_BYTES_H
#define RONDO_PLAN_INTERVAL_LIVE_BYTES_H

#include "plan/interval/boxes.h"

#define RONDO_NO_SECTION UINT32_MAX

typedef struct rondo_live_node {
  uint64_t max;   /* over the sections below the node, before what the ancestors have taken is subtracted */
  uint64_t taken; /* from all sections below the node */
} rondo_live_node;

typedef struct rondo_live_bytes {
  uint32_t width;        /* leaves: a power of two; leaf width + i is section i; nodes 2i and 2i + 1 are below node i */
  rondo_live_node *tree; /* 2 for each leaf; tree[1].max is the maximum over all sections */
  uint64_t *whole;       /* bytes in each section before anything is placed */
  uint32_t section_count;
} rondo_live_bytes;

/* Nothing is placed. The boxes' bytes must add up in 64 bits. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_live_bytes_make(rondo_scratch *scratch, const rondo_boxes *boxes,
                                                  rondo_live_bytes *out);

/* Nothing is placed again. */
void rondo_live_bytes_reset(rondo_live_bytes *live);

/* Subtracts a placed box's bytes from its sections. */
void rondo_live_bytes_take(rondo_live_bytes *live, const rondo_box *box);

/* A section in [lower, upper) in which more than `bytes` are still to be placed, usually the one with the most;
 * RONDO_NO_SECTION: none. */
uint32_t rondo_live_bytes_above(const rondo_live_bytes *live, uint32_t lower, uint32_t upper, uint64_t bytes);

/* The maximum in [lower, upper), which is not empty, while nothing is placed. Logarithmic. */
uint64_t rondo_live_bytes_max(const rondo_live_bytes *live, uint32_t lower, uint32_t upper);

#endif
