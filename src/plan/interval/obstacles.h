/* SPDX-License-Identifier: MIT
 * Obstacles: ranges of offsets that others hold over sections of time. Finds the lowest obstacle above a height.
 */
#ifndef RONDO_PLAN_INTERVAL_OBSTACLES_H
#define RONDO_PLAN_INTERVAL_OBSTACLES_H

#include "plan/interval/box_tree.h"
#include "plan/plan_internal.h"

typedef struct rondo_obstacle {
  uint64_t offset, end;
  uint32_t lower, upper; /* sections, half-open */
} rondo_obstacle;

typedef struct rondo_obstacles {
  uint32_t count;
  rondo_obstacle *ranges; /* by offset */
  rondo_box *lives;       /* the boxes of the tree */
  rondo_box_tree tree;
} rondo_obstacles;

/* Copies `count` ranges, in any order, none of which is empty. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_obstacles_make(rondo_scratch *scratch, const rondo_obstacle *ranges, uint32_t count,
                                                 rondo_obstacles *out);

/* The lowest obstacle in sections [lower, upper) that ends above `height`; NULL: none. */
const rondo_obstacle *rondo_obstacles_above(const rondo_obstacles *obstacles, uint32_t lower, uint32_t upper,
                                            uint64_t height);

/* The lowest peak at which, in each section, `live[section]` bytes fit next to the obstacles, whatever the sizes of the
 * boxes. UINT64_MAX if there is none below that. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_obstacles_bound(rondo_scratch *scratch, const rondo_obstacles *obstacles,
                                                  const uint64_t *live, uint32_t section_count, uint64_t *out_bound);

#endif
