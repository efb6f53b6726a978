/* SPDX-License-Identifier: MIT
 * Planning memory, numbers only: sizes and lifetimes in, offsets out. Two items share bytes only when one is dead
 * before the other begins, in every order in which the work may run.
 *
 * Lifetimes come in one of two forms. Intervals: the work runs in one order, and an item lives from a step up to
 * another. A partial order: the work is a DAG, and an item lives from the node that allocates it to the node that frees
 * it; two items may then share bytes only if the free of one comes strictly before the alloc of the other along the
 * edges.
 *
 * The same problem with the same options gives the same plan on every machine, unless the budget is given in
 * milliseconds. All functions are thread-safe; a plan is immutable.
 */
#ifndef RONDO_PLAN_H
#define RONDO_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rondo/allocator.h>
#include <rondo/status.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_plan rondo_plan;

#define RONDO_PLAN_FOREVER UINT32_MAX   /* upper: never freed */
#define RONDO_PLAN_NO_BRANCH UINT32_MAX /* a branch without a parent */

/* What needs a place. A free node is behind the alloc node: lower < upper in either form. */
typedef struct rondo_plan_item {
  size_t bytes;     /* 0 is legal: lies at offset 0 and is in nobody's way */
  size_t alignment; /* of the offset: a power of two; 0 = 1 */
  uint32_t lower;   /* intervals: the first step in which it lives; order: the node that allocates it */
  uint32_t upper;   /* intervals: the first step in which it no longer lives, > lower; order: the node that frees it.
                       RONDO_PLAN_FOREVER: never */
  uint32_t branch;  /* 0: always; else 1 + its branch's place in the problem's branches */
} rondo_plan_item;

/* Bytes that somebody else holds while lower <= step < upper (with an order: between those nodes). Obstacles may
 * overlap each other. */
typedef struct rondo_plan_obstacle {
  size_t offset, bytes;
  uint32_t lower, upper; /* 0 and RONDO_PLAN_FOREVER: always; with an order too */
} rondo_plan_obstacle;

/* A DAG in topological order: the successors of node i are successors[successor_start[i] .. successor_start[i + 1]),
 * all greater than i. Any nodes of a graph may be left out as long as every path between those that are left is kept.
 */
typedef struct rondo_plan_order {
  uint32_t node_count;
  const uint32_t *successor_start; /* node_count + 1 */
  const uint32_t *successors;
} rondo_plan_order;

/* One way a choice can go, of which exactly one is taken in a run: items in different branches of the same choice never
 * live together, whatever the order says. */
typedef struct rondo_plan_branch {
  uint32_t parent; /* the branch in which the choice itself stands, an earlier one; RONDO_PLAN_NO_BRANCH: in none */
  uint32_t choice; /* a number that the branches of one choice have in common */
} rondo_plan_branch;

typedef struct rondo_plan_problem {
  uint32_t struct_size;
  uint32_t branch_count;
  const rondo_plan_item *items;
  size_t count;
  const rondo_plan_obstacle *obstacles;
  size_t obstacle_count;
  const rondo_plan_order *order; /* NULL: intervals */
  const rondo_plan_branch *branches;
} rondo_plan_problem;
#define RONDO_PLAN_PROBLEM_INIT .struct_size = sizeof(rondo_plan_problem)

/* How long to search. Zero is the default: until the peak is within 1.005 of the lower bound, 5 ms at most. Plans of
 * any size get better with more budget. The items are placed again and again in other orders, and after each failed
 * try those that had no room are placed earlier. Each try takes time that grows with the items times their logarithm:
 * about 15 ms for 30,000. Small problems are also searched exactly, and large ones placed again in windows of time.
 * Where 8,192 items or more without alignments, obstacles and an order have to be planned together, most of the search
 * is rounds of cores: those that live where most bytes are live are planned alone, and the rest is repaired around
 * them, for cores of three sizes a round. Later rounds take longer. */
typedef struct rondo_plan_options {
  uint32_t struct_size;
  uint32_t budget_ms;    /* wall time; 0: 5, unless budget_steps is set */
  uint64_t budget_steps; /* search steps instead of time: the result does not depend on the machine or the threads, and
                            is never worse with more steps. In rounds of cores, eight looks at items that live together
                            with the one to be placed are a step; a round that does not fit into the steps left ends
                            with them and does not count. With an order, steps that look at more than 2,048 items on
                            average count as so many of 2,048 each, so that a budget bounds the work at every size */
  double gap;            /* stop when peak <= gap * lower bound; at least 1; 0: 1.005, or 1 when a budget or
                                       fast_only is set */
  size_t capacity;       /* stop when peak <= capacity; 0: none */
  uint64_t seed;
  uint32_t threads; /* that search, the caller's included, at most 256; 0: one */
  bool fast_only;   /* greedy placing under a few rules; for more than 1,536 items also two rounds of cores, which no
                       budget_steps bound, and for more than 2,048 up to 32 more tries that place a million items in
                       all; no search */
  const rondo_allocator *allocator; /* NULL: the C library's */
} rondo_plan_options;
#define RONDO_PLAN_OPTIONS_INIT .struct_size = sizeof(rondo_plan_options)

/* Plans. options may be NULL. The caller destroys the plan. Memory and the fast path's time grow with the number of
 * items times its logarithm; the fast path's time on a DAG also with the items times the obstacles, and to up to the
 * square of the items where it is as wide as it is long. What is placed first is placed to its end, whatever the
 * budget. Errors:
 * INVALID_ARGUMENT naming the item, obstacle, branch or edge (lower >= upper, an alignment that is no power of two, a
 * node or branch that is not there, an edge that does not go forward, a gap below 1, more than 256 threads);
 * LIMIT_EXCEEDED (sizes that do not add up in a size_t, more than 2^30 items); OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_plan_make(const rondo_plan_problem *problem,
                                                      const rondo_plan_options *options, rondo_plan **out_plan);

/* NULL is fine. */
RONDO_API void rondo_plan_destroy(rondo_plan *plan);

/* The offset of each item, in the problem's order; valid as long as the plan. NULL for an empty or NULL plan. */
RONDO_API const size_t *rondo_plan_offsets(const rondo_plan *plan);

typedef struct rondo_plan_info {
  uint32_t struct_size;
  bool optimal;         /* proven: no plan has a lower peak */
  size_t count;         /* items */
  size_t peak;          /* bytes from offset 0 that hold all items */
  size_t lower_bound;   /* no plan needs less: most bytes of items live at once, in the worst order, and what alignment
                           and obstacles make them need beside that, as far as it is known */
  size_t sum;           /* of all items' bytes: what they take without sharing */
  size_t alignment;     /* the largest of any item, at least 1: what the memory's address needs */
  uint64_t steps;       /* searched */
  uint64_t nanoseconds; /* taken */
  const char *method;   /* what found the plan, for reports; static: "none" (no items); "stacking" (nothing was left to
                           choose: what lives as long as all beside it lies below it); the order of items in which each
                           was placed as low as it goes ("area", "crowding", "first fit", ...), or "slots" of one size;
                           what bettered that ("core", the most crowded items by themselves, "restarts", "windows",
                           "search"); behind "order: ", what it was on a DAG, where "repair" bettered it */
} rondo_plan_info;

/* Errors: INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_plan_get_info(const rondo_plan *plan, rondo_plan_info *out_info);

/* Proves `offsets` (one an item): each is aligned, and no two items that may live together, and no item and an
 * obstacle, have a byte in common. Knows nothing of how plans are made; allocator may be NULL. Errors: as
 * rondo_plan_make for the problem; INVALID_DATA with OVERLAP, MISALIGNED or OUT_OF_RANGE, naming the item or pair by
 * number with offsets, sizes and lifetimes; OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_plan_check(const rondo_allocator *allocator,
                                                       const rondo_plan_problem *problem, const size_t *offsets);

typedef struct rondo_plan_picture_options {
  uint32_t struct_size;
  uint32_t width, height;   /* pixels, 320 to 20000; 0: 1200, 640 */
  const char *title;        /* NULL: "Memory map" */
  const char *const *names; /* one an item; NULL, or an entry that is NULL: its number */
  const uint64_t *times;    /* what each step is called, to the last in a lifetime and one more; NULL: its number */
  size_t capacity;          /* shown beside the peak; 0: none */
  const rondo_allocator *allocator; /* NULL: the C library's */
} rondo_plan_picture_options;
#define RONDO_PLAN_PICTURE_OPTIONS_INIT .struct_size = sizeof(rondo_plan_picture_options)

/* Draws offsets (one an item; they need not be a plan) as SVG: address against time, an item's name, bytes, offset and
 * lifetime under the pointer, and below it the bytes that are live. Steps are evenly spaced; of an order, nodes are.
 * One file without outside resources, for light and dark backgrounds; its bytes grow with the items, to about 150 each
 * without their names, of which 120 bytes are shown at most. *out_text is freed with rondo_text_free. Errors:
 * as rondo_plan_make for the problem; INVALID_ARGUMENT (NULL, a width or height out of range); OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_plan_to_svg(const rondo_plan_problem *problem, const size_t *offsets,
                                                        const rondo_plan_picture_options *options, char **out_text);

RONDO_EXTERN_C_END

#endif
