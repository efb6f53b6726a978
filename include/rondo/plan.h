/* SPDX-License-Identifier: MIT
 * Plans memory: takes sizes and lifetimes, and returns offsets. Two items share bytes only if the lifetime of one ends
 * before that of the other begins, in every order in which the work may run.
 *
 * Lifetimes come in one of two forms. Intervals: the work runs in one order, and an item lives from one step up to
 * another. Partial order: the work is a DAG, and an item lives from the node that allocates it to the node that frees
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

/* An item to place. The node that frees it comes after the node that allocates it: lower < upper in both forms. */
typedef struct rondo_plan_item {
  size_t bytes;     /* 0 is allowed: the item is placed at offset 0 and overlaps nothing */
  size_t alignment; /* of the offset: a power of two; 0 = 1 */
  uint32_t lower;   /* intervals: the first step in which it lives; order: the node that allocates it */
  uint32_t upper;   /* intervals: the first step in which it no longer lives, > lower; order: the node that frees it.
                       RONDO_PLAN_FOREVER: never */
  uint32_t branch;  /* 0: in no branch; else 1 + the index of its branch in the problem's branches */
} rondo_plan_item;

/* Bytes that are not available while lower <= step < upper (with an order: between those nodes). Obstacles may overlap
 * each other. */
typedef struct rondo_plan_obstacle {
  size_t offset, bytes;
  uint32_t lower, upper; /* 0 and RONDO_PLAN_FOREVER: always; with an order too */
} rondo_plan_obstacle;

/* A DAG in topological order: the successors of node i are successors[successor_start[i] .. successor_start[i + 1]),
 * all greater than i. Nodes of a graph may be left out, as long as each path between the remaining nodes stays a path.
 */
typedef struct rondo_plan_order {
  uint32_t node_count;
  const uint32_t *successor_start; /* node_count + 1 */
  const uint32_t *successors;
} rondo_plan_order;

/* One branch of a choice. A run takes exactly one branch of each choice. So items in different branches of a choice
 * never live at once, whatever the order. */
typedef struct rondo_plan_branch {
  uint32_t parent; /* an earlier branch, which contains the choice; RONDO_PLAN_NO_BRANCH: none */
  uint32_t choice; /* the same number in all branches of one choice */
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

/* How long to search. By default, until the peak is at most 1.005 times the lower bound, for at most 5 ms. A larger
 * budget improves plans of any size.
 *
 * The search uses restarts: it places the items again in another order, in which items that did not fit come earlier.
 * One run takes O(n log n) time: about 15 ms for 30,000 items. Small problems are also solved by branch and bound, and
 * large problems are also improved in windows of time. For at least 2,048 items that must be planned together,
 * without alignments, obstacles and an order, most of the search is rounds of cores. A core is the set of items that
 * live where the most bytes are live. It is planned alone, and the other items are repaired around it. Each round tries
 * cores of three sizes. Later rounds take longer. */
typedef struct rondo_plan_options {
  uint32_t struct_size;
  uint32_t budget_ms;    /* wall time; 0: 5, unless budget_steps is set. If both are set, both limit the search */
  uint64_t budget_steps; /* search steps instead of time: the result does not depend on the machine or the threads, and
                            is never worse with more steps. In rounds of cores, a step is eight visits of items that
                            overlap the item to place in time. A round that does not fit into the remaining steps uses
                            them up, and its result is discarded. With an order, a step that visits more than 2,048
                            items on average counts as one step for each 2,048, so that a budget bounds the work at
                            every size */
  double gap;            /* stop when peak <= gap * lower bound; at least 1; 0: 1.005, or 1 when a budget or
                            fast_only is set */
  size_t capacity;       /* stop when peak <= capacity; 0: none */
  uint64_t seed;
  uint32_t threads; /* threads that search, with the caller's; at most 256; 0: one. With an order, parts of the
                       search use at most 8 */
  bool fast_only; /* no search, and the budgets are ignored: greedy placement in a few orders. If the plan is not close
                     to the bound, also two rounds of cores from 1,536 items on and, for more than 2,048 items, up to
                     32 restarts, which place about a million items in total */
  const rondo_allocator *allocator; /* NULL: the C library's */
  const size_t *start; /* an offset for each item, of an earlier plan of the same items in other sizes, for example of
                          another batch size: the first plan has the items in the order of these offsets, each as low
                          as those below it allow. If it is good enough, nothing is searched. NULL: none. Not used with
                          obstacles */
} rondo_plan_options;
#define RONDO_PLAN_OPTIONS_INIT .struct_size = sizeof(rondo_plan_options)

/* Makes a plan. options may be NULL. The caller destroys the plan. Memory and the time of the fast path are O(n log n)
 * in the items. On a DAG, the time of the fast path also grows with the items times the obstacles, and up to the square
 * of the items if the DAG is as wide as it is long. The first placement always runs to its end, whatever the budget.
 * Errors: INVALID_ARGUMENT, naming the item, obstacle, branch or edge (lower >= upper, an alignment that is no power of
 * two, a node or branch that does not exist, an edge that does not go forward, no path from the node that allocates to
 * the node that frees, a gap below 1, more than 256 threads); LIMIT_EXCEEDED (sizes whose sum or offsets that do not
 * fit in a size_t, more than 2^30 items, more than 2^31 nodes); OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_plan_make(const rondo_plan_problem *problem,
                                                      const rondo_plan_options *options, rondo_plan **out_plan);

/* NULL is fine. */
RONDO_API void rondo_plan_destroy(rondo_plan *plan);

/* The offset of each item, in the order of the problem's items; valid as long as the plan. NULL for an empty or NULL
 * plan. */
RONDO_API const size_t *rondo_plan_offsets(const rondo_plan *plan);

typedef struct rondo_plan_info {
  uint32_t struct_size;
  bool optimal;         /* proven: no plan has a lower peak */
  size_t count;         /* items */
  size_t peak;          /* bytes from offset 0 that hold all items */
  size_t lower_bound;   /* no plan has a lower peak: the most bytes that are live at once in the worst order, plus what
                           alignment and obstacles are known to add */
  size_t sum;           /* of all items' bytes: the memory needed without sharing */
  size_t alignment;     /* the largest of any item, at least 1: what the memory's address needs */
  uint64_t steps;       /* searched */
  uint64_t nanoseconds; /* taken */
  /* The method that found the plan, for reports; a static string. "none": there are no items. "stacking": each item
   * lives as long as all items above it, so there was no choice. "area", "crowding", "first fit" and so on: the rule by
   * which items were placed, each as low as possible; "slots": in slots of one size; "earlier plan": with
   * rondo_plan_options.start. "core", "restarts", "windows",
   * "search": the part of the search that improved the plan. On a DAG, "order: area" or "order: repair". */
  const char *method;
} rondo_plan_info;

/* Errors: INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_plan_get_info(const rondo_plan *plan, rondo_plan_info *out_info);

/* Checks `offsets` (one for each item): each is aligned, and no two items that may live at the same time overlap, nor
 * an item and an obstacle. The check is independent of the planner. allocator may be NULL. Errors: as rondo_plan_make
 * for the problem; INVALID_DATA with OVERLAP, MISALIGNED or OUT_OF_RANGE, naming the item or the pair with offsets,
 * sizes and lifetimes; OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_plan_check(const rondo_allocator *allocator,
                                                       const rondo_plan_problem *problem, const size_t *offsets);

typedef struct rondo_plan_picture_options {
  uint32_t struct_size;
  uint32_t width, height;   /* pixels, 320 to 20000; 0: 1200, 640 */
  const char *title;        /* NULL: "Memory map" */
  const char *const *names; /* one for each item; NULL, or a NULL entry: its number */
  const uint64_t *times;    /* the label of each step, up to one after the last step of a lifetime; NULL: its number */
  size_t capacity;          /* shown next to the peak; 0: none */
  const rondo_allocator *allocator; /* NULL: the C library's */
} rondo_plan_picture_options;
#define RONDO_PLAN_PICTURE_OPTIONS_INIT .struct_size = sizeof(rondo_plan_picture_options)

/* Draws offsets (one for each item; they need not be a valid plan) as SVG: address over time, and below it the live
 * bytes. The tooltip of an item shows its name, bytes, offset and lifetime. Steps, or the nodes of an order, are evenly
 * spaced. The file needs no other resources, and suits light and dark backgrounds. It takes about 150 bytes for each
 * item, plus at most 120 bytes of its name. *out_text is freed with rondo_text_free. Errors:
 * as rondo_plan_make for the problem; INVALID_ARGUMENT (NULL, a width or height out of range); OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_plan_to_svg(const rondo_plan_problem *problem, const size_t *offsets,
                                                        const rondo_plan_picture_options *options, char **out_text);

RONDO_EXTERN_C_END

#endif
