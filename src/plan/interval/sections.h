/* SPDX-License-Identifier: MIT
 * Sections: time without irrelevant steps. A section is a maximal set of lives that share a step. Two lives overlap in
 * sections exactly if they overlap in steps, and there are at most as many sections as lives.
 */
#ifndef RONDO_PLAN_INTERVAL_SECTIONS_H
#define RONDO_PLAN_INTERVAL_SECTIONS_H

#include "plan/radix_sort.h"

/* A rectangle to place: bytes over a range of time. */
typedef struct rondo_box {
  uint64_t bytes;
  uint32_t lower, upper; /* steps or sections: half-open, not empty */
} rondo_box;

/* Replaces the boxes' steps by sections; returns the number of sections. `scratch` has 4 entries for each box; `count`
 * is at most 2^31. */
uint32_t rondo_sections_number(rondo_box *boxes, size_t count, rondo_sort_entry *scratch);

#endif
