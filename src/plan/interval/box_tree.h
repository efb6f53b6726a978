/* SPDX-License-Identifier: MIT
 * Finds the unplaced box that comes first in an order of preference, among those that live within a range of sections:
 * a k-d tree over the lower and upper ends of the boxes' lives and, if requested, over their bytes. The shape is made
 * once for a set of boxes; each order of preference fills it again.
 */
#ifndef RONDO_PLAN_INTERVAL_BOX_TREE_H
#define RONDO_PLAN_INTERVAL_BOX_TREE_H

#include "base/allocation.h"
#include "plan/interval/sections.h"

#define RONDO_NO_BOX UINT32_MAX

typedef struct rondo_box_point {
  uint32_t lower, upper;
  uint32_t rank; /* RONDO_NO_BOX: placed */
  uint32_t box;
} rondo_box_point;

/* The bounds of the unplaced points below a node. */
typedef struct rondo_box_node {
  uint32_t first_rank;
  uint32_t least_lower, most_lower, least_upper, most_upper;
} rondo_box_node;

typedef struct rondo_box_tree {
  const rondo_box *boxes; /* NULL: queries have no limit on bytes */
  rondo_box_point *points;
  uint32_t *index_of_box; /* the index of each box among the points */
  rondo_box_node *nodes;
  uint64_t *least_bytes; /* of each node; only if queries limit the bytes */
  uint32_t count;
  uint32_t leaves;        /* a power of two; leaf i holds points i * count / leaves up to (i + 1) * count / leaves */
  uint32_t capacity;      /* capacity in points */
  uint32_t leaf_capacity; /* capacity in leaves; there are twice as many nodes */
} rondo_box_tree;

/* Makes a tree for at most `capacity` boxes. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_box_tree_make(rondo_scratch *scratch, uint32_t capacity, rondo_box_tree *out);

/* Sets the boxes. with_bytes: queries may limit the bytes; the boxes must then stay. */
void rondo_box_tree_shape(rondo_box_tree *tree, const rondo_box *boxes, uint32_t count, bool with_bytes);

/* Marks all boxes as unplaced. order[0] is preferred to order[1], and so on. NULL: box 0 is preferred to box 1, and so
 * on. */
void rondo_box_tree_fill(rondo_box_tree *tree, const uint32_t *order);

void rondo_box_tree_remove(rondo_box_tree *tree, uint32_t box);

/* Whether the box is unplaced. */
static inline bool rondo_box_tree_holds(const rondo_box_tree *tree, uint32_t box) {
  return tree->points[tree->index_of_box[box]].rank != RONDO_NO_BOX;
}

typedef struct rondo_box_query {
  uint32_t lower, upper;                           /* lives within these sections */
  uint32_t before;                                 /* only ranks below this; RONDO_NO_BOX: any */
  uint64_t most_bytes;                             /* UINT64_MAX: any; else the tree must be shaped with bytes */
  bool (*accepts)(const void *self, uint32_t box); /* a further condition; NULL: none */
  const void *self;
  uint32_t most_refusals; /* of `accepts`: after more of them, the search returns the best found so far */
} rondo_box_query;

/* The rank of the preferred unplaced box that fulfils the query; `before` if there is none. */
uint32_t rondo_box_tree_first(const rondo_box_tree *tree, const rondo_box_query *query);

/* Asserts that each box has one point, and that each node bounds the unplaced points below it. Linear. */
#ifdef NDEBUG
static inline void rondo_box_tree_check(const rondo_box_tree *tree) { (void)tree; }
#else
void rondo_box_tree_check(const rondo_box_tree *tree);
#endif

#endif
