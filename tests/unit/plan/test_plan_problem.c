/* SPDX-License-Identifier: MIT
 * Invalid problems: each is refused with its status and reason, the message names the item, obstacle, branch or edge,
 * and there is no plan. Checking offsets refuses the same problems.
 */
#include "plan/plan_internal.h"
#include "unit/plan/plan_tests.h"

/* Two items, an obstacle, four nodes in a row and a branch in a branch. Each case makes one number invalid. */
typedef struct parts {
  rondo_plan_item items[2];
  rondo_plan_obstacle obstacle;
  rondo_plan_branch branches[2];
  uint32_t starts[5], successors[3];
  rondo_plan_order order;
  rondo_plan_problem problem;
} parts;

static void make_parts(parts *p, bool has_order) {
  *p = (parts){.items = {{.bytes = 64, .alignment = 64, .lower = 0, .upper = 2, .branch = 1},
                         {.bytes = 32, .lower = 1, .upper = RONDO_PLAN_FOREVER}},
               .obstacle = {.offset = 16, .bytes = 16, .lower = 1, .upper = 3},
               .branches = {{.parent = RONDO_PLAN_NO_BRANCH}, {.parent = 0, .choice = 1}},
               .starts = {0, 1, 2, 3, 3},
               .successors = {1, 2, 3}};
  p->order = (rondo_plan_order){4, p->starts, p->successors};
  p->problem = (rondo_plan_problem){RONDO_PLAN_PROBLEM_INIT,
                                    .branch_count = 2,
                                    .items = p->items,
                                    .count = 2,
                                    .obstacles = &p->obstacle,
                                    .obstacle_count = 1,
                                    .order = has_order ? &p->order : NULL,
                                    .branches = p->branches};
}

static void assert_refused(const parts *p, rondo_status status, rondo_reason reason, const char *text) {
  const size_t offsets[2] = {64, 128};
  rondo_plan *plan = (rondo_plan *)&offsets;
  assert_error(rondo_plan_make(&p->problem, NULL, &plan), status, reason);
  assert_message(text);
  assert_null(plan);
  assert_error(rondo_plan_check(NULL, &p->problem, offsets), status, reason);
  assert_message(text);
}

static void assert_out_of_range(const parts *p, const char *text) {
  assert_refused(p, RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, text);
}

UNIT_TEST(test_valid_problems_are_planned) {
  for (int has_order = 0; has_order < 2; has_order++) {
    parts p;
    rondo_plan *plan;
    make_parts(&p, has_order);
    assert_ok(rondo_plan_make(&p.problem, NULL, &plan));
    assert_ok(rondo_plan_check(NULL, &p.problem, rondo_plan_offsets(plan)));
    rondo_plan_destroy(plan);
  }
}

UNIT_TEST(test_items_are_checked) {
  parts p;
  make_parts(&p, false);
  p.items[1].alignment = 24;
  assert_refused(&p, RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE, "item 1 of a plan has alignment 24");
  make_parts(&p, false);
  p.items[1].branch = 3;
  assert_out_of_range(&p, "item 1 of a plan is in branch 3 of 2: give 1 + the index");
  make_parts(&p, false);
  p.items[0].upper = 0;
  assert_out_of_range(&p, "item 0 of a plan lives from 0 up to 0");
  make_parts(&p, true);
  p.items[0].upper = 4;
  assert_out_of_range(&p, "item 0 of a plan lives from node 0 to node 4 of an order of 4 nodes");
  make_parts(&p, true);
  p.items[1].lower = 4;
  assert_out_of_range(&p, "item 1 of a plan lives from node 4");
  make_parts(&p, false);
  p.items[1].bytes = SIZE_MAX - 63;
  assert_refused(&p, RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                 "the sum of the bytes of items 0 to 1 of a plan does not fit");
}

UNIT_TEST(test_obstacles_are_checked) {
  parts p;
  make_parts(&p, false);
  p.obstacle.upper = 1;
  assert_out_of_range(&p, "obstacle 0 of a plan lives from 1 up to 1");
  make_parts(&p, true);
  p.obstacle.upper = 5;
  assert_out_of_range(&p, "obstacle 0 of a plan lives from node 1 to node 5");
  make_parts(&p, false);
  p.obstacle.offset = SIZE_MAX - 8;
  assert_refused(&p, RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE, "obstacle 0 of a plan has 16 bytes at");
}

UNIT_TEST(test_orders_are_checked) {
  parts p;
  make_parts(&p, true);
  p.starts[0] = 1;
  assert_out_of_range(&p, "the successors of node 0 of a plan's order start at 1 instead of 0");
  make_parts(&p, true);
  p.starts[2] = 0;
  assert_out_of_range(&p, "the successors of node 1 of a plan's order start at 1 and end at 0");
  make_parts(&p, true);
  p.successors[1] = 1;
  assert_out_of_range(&p, "edge 1 of a plan's order goes from node 1 to node 1");
  make_parts(&p, true);
  p.successors[2] = 4;
  assert_out_of_range(&p, "edge 2 of a plan's order goes from node 2 to node 4");
  make_parts(&p, true);
  p.order.node_count = RONDO_PLAN_FOREVER;
  assert_out_of_range(&p, "a plan's order has 4294967295 nodes");
  make_parts(&p, true);
  p.order.successors = NULL;
  assert_refused(&p, RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, "a list of successors is NULL");
  p.order.successor_start = NULL;
  assert_refused(&p, RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, "a list of successors is NULL");
}

UNIT_TEST(test_branches_and_lists_are_checked) {
  parts p;
  make_parts(&p, false);
  p.branches[1].parent = 1;
  assert_out_of_range(&p, "branch 1 of a plan has parent 1");
  make_parts(&p, false);
  p.problem.items = NULL;
  assert_refused(&p, RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, "a plan has 2 items, but their list is NULL");
  make_parts(&p, false);
  p.problem.obstacle_count = RONDO_PLAN_MAX_ITEMS + 1;
  assert_refused(&p, RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE, "obstacles; the maximum is");
  rondo_plan *plan;
  assert_error(rondo_plan_make(NULL, NULL, &plan), RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT);
}

UNIT_TEST(test_options_are_checked) {
  parts p;
  make_parts(&p, false);
  rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .gap = 0.5};
  rondo_plan *plan;
  assert_error(rondo_plan_make(&p.problem, &options, &plan), RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS);
  assert_message("gap is 0.5");
  options = (rondo_plan_options){RONDO_PLAN_OPTIONS_INIT, .threads = RONDO_PLAN_MAX_THREADS + 1};
  assert_error(rondo_plan_make(&p.problem, &options, &plan), RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS);
  assert_message("threads is 257");
}
