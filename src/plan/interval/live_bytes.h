/* SPDX-License-Identifier: MIT
 * How many bytes are live in each section, and the most in any stretch of sections: the most of all bounds every plan
 * from below, and the most during one box's life says how crowded it is there.
 */
#ifndef RONDO_PLAN_INTERVAL_LIVE_BYTES_H
#define RONDO_PLAN_INTERVAL_LIVE_BYTES_H

#include "plan/interval/boxes.h"

typedef struct rondo_profile {
  uint64_t *tree; /* maxima over stretches: section i at tree[count + i], inner node i over 2i and 2i + 1 */
  size_t count;   /* of sections */
} rondo_profile;

/* The boxes' bytes must add up in 64 bits. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_profile_make(rondo_scratch *scratch, const rondo_boxes *boxes, rondo_profile *out);

/* Most bytes live at once in sections lower up to upper, of which there is at least one. Logarithmic. */
uint64_t rondo_profile_most(const rondo_profile *profile, uint32_t lower, uint32_t upper);

/* The bytes live in each section. */
const uint64_t *rondo_profile_lives(const rondo_profile *profile);

/* Most bytes live at once. */
uint64_t rondo_profile_peak(const rondo_profile *profile);

#endif
