/* SPDX-License-Identifier: MIT
 * The list of earlier plans (PR-6): plans are found by their structure and replaced, the oldest are dropped beyond the
 * limit of bytes, and nothing is left when an allocation fails. Structures of one hash are different ones.
 */
#include "base/hash.h"
#include "support/rondo_test.h"
#include "support/test_program.h"
#include "tensor/compile/layout.h"

/* A structure of one word, which is in the caller's memory. */
static rondo_structure structure_of(uint32_t *word) {
  return (rondo_structure){.items = word, .count = 1, .capacity = 1};
}

static const rondo_earlier_plan *find(const rondo_earlier_plans *plans, uint32_t word) {
  const rondo_structure structure = structure_of(&word);
  return rondo_earlier_plans_find(plans, &structure);
}

static rondo_earlier_plan make_plan(const rondo_allocator *allocator, uint32_t word, size_t count) {
  rondo_earlier_plan plan = {.positions = 2, .count = count, .width = (uint32_t)count};
  const rondo_structure structure = structure_of(&word);
  assert_ok(rondo_array_copy(allocator, &plan.structure, &structure));
  assert_ok(rondo_allocate_items(allocator, count, sizeof *plan.offsets, &plan.offsets));
  assert_ok(rondo_allocate_items(allocator, plan.positions, sizeof *plan.order, &plan.order));
  assert_ok(rondo_allocate_items(allocator, plan.positions, sizeof *plan.joined, &plan.joined));
  assert_ok(rondo_edges_make(allocator, plan.positions, 1, &plan.before));
  return plan;
}

ALLOCATOR_TEST(test_plans_are_found_and_replaced) {
  rondo_earlier_plans plans = {.allocator = counting->table};
  for (uint32_t i = 0; i < 3; i++) {
    rondo_earlier_plan plan = make_plan(&counting->table, 10 + i, 4 + i);
    assert_ok(rondo_earlier_plans_keep(&plans, &plan));
    assert_null(plan.offsets);
  }
  assert_null(find(&plans, 9));
  assert_int_equal(find(&plans, 11)->count, 5);
  rondo_earlier_plan other = make_plan(&counting->table, 11, 7);
  assert_ok(rondo_earlier_plans_keep(&plans, &other));
  assert_int_equal(find(&plans, 11)->count, 7);
  assert_int_equal(plans.items.count, 3);
  rondo_earlier_plans_free(&plans);
}

ALLOCATOR_TEST(test_the_oldest_plans_are_dropped) {
  const size_t third = RONDO_EARLIER_PLANS_BYTES / sizeof(size_t) / 3;
  rondo_earlier_plans plans = {.allocator = counting->table};
  for (uint32_t i = 0; i < 4; i++) {
    rondo_earlier_plan plan = make_plan(&counting->table, i, third);
    assert_ok(rondo_earlier_plans_keep(&plans, &plan));
    assert_true(plans.bytes <= RONDO_EARLIER_PLANS_BYTES);
  }
  assert_null(find(&plans, 0));
  assert_non_null(find(&plans, 3));
  rondo_earlier_plan large = make_plan(&counting->table, 9, 4 * third);
  assert_ok(rondo_earlier_plans_keep(&plans, &large));
  assert_null(find(&plans, 9));
  assert_null(large.offsets);
  rondo_earlier_plans_free(&plans);
}

ALLOCATOR_TEST(test_a_plan_that_cannot_be_kept_is_freed) {
  rondo_earlier_plans plans = {.allocator = counting->table};
  rondo_earlier_plan plan = make_plan(&counting->table, 1, 3);
  atomic_store(&counting->fail_at, atomic_load(&counting->calls) + 1);
  assert_fails(rondo_earlier_plans_keep(&plans, &plan), RONDO_OUT_OF_MEMORY);
  assert_null(plan.offsets);
  rondo_earlier_plans_free(&plans);
}

/* Structures ------------------------------------------------------------------------------------------------------- */

/* Two names with one hash as the first operator of a program. */
static const char *const colliding[] = {"gbucioihaaaeaaaa", "trumflxlxxxzkrns"};

static void double_cpu(const float *const *in, float *y, size_t count, const float *numbers) {
  (void)numbers;
  for (size_t i = 0; i < count; i++) y[i] = 2 * in[0][i];
}

/* An operator of this name, of a vector of `count` elements. */
static rondo_program *make_program(const char *name, size_t count) {
  static const rondo_operator_element element = {.cpu = double_cpu};
  const rondo_operator_definition definition = {RONDO_OPERATOR_DEFINITION_INIT, .name = name, .inputs = {"x"},
                                                .element = &element};
  rondo_operator *operation;
  rondo_value x, y;
  rondo_program *program = test_named_program("one");
  assert_ok(rondo_operator_define(&definition, &operation));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, &count, 1, &x));
  assert_ok(rondo_op_apply(program, operation, &x, 1, NULL, &y));
  rondo_operator_destroy(operation); /* the program keeps it */
  assert_ok(rondo_program_output(program, "y", y));
  return program;
}

/* Whether it is planned as an earlier one. */
static bool plan(rondo_earlier_plans *plans, const char *name, size_t count) {
  rondo_program *program = make_program(name, count);
  rondo_layout layout;
  assert_ok(rondo_layout_make(program, &(rondo_layout_options){.plans = plans}, &layout));
  const bool is_reused = layout.reused_plans > 0;
  rondo_layout_free(program, &layout);
  rondo_program_destroy(program);
  return is_reused;
}

UNIT_TEST(test_structures_of_one_hash_share_no_plan) {
  const uint64_t begin = rondo_hash_u64(RONDO_HASH_START, 1);
  rondo_earlier_plans plans = {.allocator = rondo_allocator_default()};
  assert_int_equal(rondo_hash_text(begin, colliding[0]), rondo_hash_text(begin, colliding[1]));
  assert_false(plan(&plans, colliding[0], 100));
  assert_true(plan(&plans, colliding[0], 200)); /* other sizes */
  assert_false(plan(&plans, colliding[1], 100));
  assert_true(plan(&plans, colliding[1], 300));
  assert_int_equal(plans.items.count, 2);
  rondo_earlier_plans_free(&plans);
}
