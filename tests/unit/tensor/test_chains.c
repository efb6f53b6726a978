/* SPDX-License-Identifier: MIT
 * Which operators are joined into a chain, and where the chain runs: its limits, other readers of its intermediate
 * values, and that no lifetime grows by more than the chain saves.
 */
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"
#include "tensor/compile/layout.h"

enum { EDGE = 16 };

static rondo_program *new_program(void) {
  rondo_program *program = test_new_program();
  return program;
}

static rondo_value new_input(rondo_program *program, const char *name, size_t rows, size_t columns) {
  rondo_value value;
  assert_ok(rondo_program_input(program, name, RONDO_F32, (size_t[]){rows, columns}, 2, &value));
  return value;
}

static rondo_value softmax_of(rondo_program *program, rondo_value x) {
  rondo_value y;
  assert_ok(rondo_op_softmax(program, x, &y));
  return y;
}

static rondo_value sum_of(rondo_program *program, rondo_value a, rondo_value b) {
  rondo_value y;
  assert_ok(rondo_op_add(program, a, b, &y));
  return y;
}

static void lay_out(const rondo_program *program, rondo_layout *layout) {
  assert_ok(rondo_layout_make(program, NULL, layout));
}

static void finish(rondo_program *program, rondo_layout *layout) {
  rondo_layout_free(program, layout);
  rondo_program_destroy(program);
}

/* Limits ----------------------------------------------------------------------------------------------------------- */

UNIT_TEST(test_a_long_line_is_cut) {
  rondo_program *program = new_program();
  rondo_value x = new_input(program, "x", 3, 5);
  rondo_layout layout;
  char name[RONDO_CHAIN_NAME];
  for (int i = 0; i < 30; i++) assert_ok(rondo_op_tanh(program, x, &x));
  assert_ok(rondo_program_output(program, "y", x));
  lay_out(program, &layout);
  const rondo_schedule *schedule = &layout.schedule;
  assert_int_equal(schedule->count, 3);
  assert_int_equal(schedule->chains.count, 3);
  assert_int_equal(schedule->chains.items[0].count, RONDO_CHAIN_STEPS);
  assert_int_equal(schedule->chains.items[1].count, RONDO_CHAIN_STEPS);
  assert_int_equal(schedule->chains.items[2].count, 30 - 2 * RONDO_CHAIN_STEPS);
  rondo_chain_name(program, &schedule->chains.items[2], name, sizeof name);
  assert_string_equal(name, "tanh+tanh+tanh+tanh+tanh+tanh");
  rondo_chain_name(program, &schedule->chains.items[2], name, 16);
  assert_string_equal(name, "tanh+tanh+...");
  finish(program, &layout);
}

UNIT_TEST(test_more_inputs_than_a_chain_has) {
  rondo_program *program = new_program();
  rondo_value y = new_input(program, "x", 3, 5);
  rondo_layout layout;
  char name[] = "a";
  for (; name[0] < 'l'; name[0]++) y = sum_of(program, y, new_input(program, name, 3, 5));
  assert_ok(rondo_program_output(program, "y", y));
  lay_out(program, &layout);
  assert_int_equal(layout.schedule.count, 2);
  for (size_t i = 0; i < layout.schedule.chains.count; i++)
    assert_true(layout.schedule.chains.items[i].form.input_count <= RONDO_CHAIN_INPUTS);
  finish(program, &layout);
}

UNIT_TEST(test_more_broadcasts_than_a_chain_has) {
  static const size_t shapes[][4] = {{1, 3, 4, 5}, {2, 1, 4, 5}, {2, 3, 1, 5},
                                     {2, 3, 4, 1}, {1, 3, 1, 5}, {2, 1, 4, 1}};
  rondo_program *program = new_program();
  rondo_value y, other;
  rondo_layout layout;
  char name[] = "a";
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){2, 3, 4, 5}, 4, &y));
  for (int i = 0; i < 6; i++, name[0]++) {
    assert_ok(rondo_program_input(program, name, RONDO_F32, shapes[i], 4, &other));
    y = sum_of(program, y, other);
  }
  assert_ok(rondo_program_output(program, "y", y));
  lay_out(program, &layout);
  assert_int_equal(layout.schedule.count, 2);
  assert_int_equal(layout.schedule.chains.items[0].form.layout_count, RONDO_CHAIN_LAYOUTS);
  assert_int_equal(layout.schedule.chains.items[0].form.packs, 0); /* five is no whole number of packs */
  finish(program, &layout);
}

/* Readers ---------------------------------------------------------------------------------------------------------- */

UNIT_TEST(test_what_others_read_is_stored) {
  rondo_program *program = new_program();
  const rondo_value x = new_input(program, "x", EDGE, EDGE);
  rondo_value a, b, c;
  rondo_layout layout;
  assert_ok(rondo_op_tanh(program, x, &a));
  assert_ok(rondo_op_relu(program, a, &b)); /* a and b are outputs, c has another reader */
  assert_ok(rondo_op_abs(program, b, &c));
  assert_ok(rondo_program_output(program, "a", a));
  assert_ok(rondo_program_output(program, "b", b));
  assert_ok(rondo_program_output(program, "c", softmax_of(program, c)));
  assert_ok(rondo_op_square(program, c, &c));
  assert_ok(rondo_program_output(program, "d", c));
  lay_out(program, &layout);
  assert_int_equal(layout.schedule.chains.count, 0);
  assert_int_equal(layout.schedule.count, 5);
  finish(program, &layout);
}

/* Both ways from a fork end in one operator; a repeated row is not computed for each of its elements. */
UNIT_TEST(test_a_fork_within_a_chain) {
  rondo_program *program = new_program();
  const rondo_value x = new_input(program, "x", EDGE, EDGE), row = new_input(program, "row", 1, EDGE);
  rondo_value a, b, c, wide;
  rondo_layout layout;
  assert_ok(rondo_op_tanh(program, x, &a));
  assert_ok(rondo_op_relu(program, a, &b));
  assert_ok(rondo_op_abs(program, a, &c));
  assert_ok(rondo_op_exp(program, row, &wide));
  assert_ok(rondo_op_mul(program, sum_of(program, b, c), wide, &a));
  assert_ok(rondo_program_output(program, "y", a));
  lay_out(program, &layout);
  assert_int_equal(layout.schedule.chains.count, 1);
  assert_int_equal(layout.schedule.chains.items[0].count, 5);
  assert_int_equal(layout.schedule.count, 2);
  finish(program, &layout);
}

/* A probability is no element, though here it has as many. */
UNIT_TEST(test_a_computed_probability) {
  rondo_program *program = new_program();
  rondo_value x, p;
  rondo_layout layout;
  assert_ok(rondo_program_cell(program, "p", 0.5f, &p));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, NULL, 0, &x));
  assert_ok(rondo_op_scale(program, p, 0.5f, &p));
  assert_ok(rondo_op_dropout(program, x, p, &x));
  assert_ok(rondo_program_output(program, "y", x));
  lay_out(program, &layout);
  assert_int_equal(layout.schedule.chains.count, 0);
  finish(program, &layout);
}

/* Memory ----------------------------------------------------------------------------------------------------------- */

/* Two values would live on for one that is spared, until what is computed meanwhile is there. */
UNIT_TEST(test_no_join_that_keeps_more_alive) {
  rondo_program *program = new_program();
  const rondo_value x = new_input(program, "x", EDGE, EDGE), z = new_input(program, "z", EDGE, EDGE);
  const rondo_value a = softmax_of(program, x), b = softmax_of(program, a);
  const rondo_value sum = sum_of(program, a, b);
  rondo_layout layout;
  rondo_value y;
  assert_ok(rondo_op_mul(program, sum, softmax_of(program, softmax_of(program, z)), &y));
  assert_ok(rondo_program_output(program, "y", y));
  lay_out(program, &layout);
  assert_int_equal(layout.schedule.chains.count, 0);
  finish(program, &layout);
}

/* The same where the other factor is there first: the chain stands where the sum did. */
UNIT_TEST(test_a_join_in_the_place_of_the_first) {
  rondo_program *program = new_program();
  const rondo_value x = new_input(program, "x", EDGE, EDGE), z = new_input(program, "z", EDGE, EDGE);
  const rondo_value a = softmax_of(program, x), b = softmax_of(program, a);
  const rondo_value sum = sum_of(program, a, b);
  rondo_layout layout;
  rondo_value y;
  assert_ok(rondo_program_output(program, "w", softmax_of(program, softmax_of(program, z))));
  assert_ok(rondo_op_mul(program, sum, z, &y));
  assert_ok(rondo_program_output(program, "y", y));
  lay_out(program, &layout);
  assert_int_equal(layout.schedule.chains.count, 1);
  assert_int_equal(layout.schedule.chains.items[0].place, layout.schedule.chains.items[0].members[0]);
  finish(program, &layout);
}

/* One value lives on for one that is spared: the chain stands where its last member did. */
UNIT_TEST(test_a_join_in_the_place_of_the_last) {
  rondo_program *program = new_program();
  const rondo_value x = new_input(program, "x", EDGE, EDGE), z = new_input(program, "z", EDGE, EDGE);
  rondo_layout layout;
  rondo_value y;
  assert_ok(rondo_op_tanh(program, softmax_of(program, x), &y));
  assert_ok(rondo_op_mul(program, y, softmax_of(program, softmax_of(program, z)), &y));
  assert_ok(rondo_program_output(program, "y", y));
  lay_out(program, &layout);
  assert_int_equal(layout.schedule.chains.count, 1);
  assert_int_equal(layout.schedule.chains.items[0].place, layout.schedule.chains.items[0].members[1]);
  finish(program, &layout);
}

/* The other factor is there first in the program's order, but another order has a lower peak without the join. */
UNIT_TEST(test_no_join_that_raises_the_peak) {
  rondo_program *program = new_program();
  const rondo_value x = new_input(program, "x", EDGE, EDGE), z = new_input(program, "z", EDGE, EDGE);
  const rondo_value other = softmax_of(program, z), a = softmax_of(program, x), b = softmax_of(program, a);
  rondo_layout joined, separate;
  rondo_value y;
  assert_ok(rondo_op_mul(program, sum_of(program, a, b), other, &y));
  assert_ok(rondo_program_output(program, "y", y));
  lay_out(program, &joined);
  assert_ok(rondo_layout_make(program, &(rondo_layout_options){.fusion = RONDO_FUSION_NEVER}, &separate));
  assert_int_equal(joined.schedule.peak, separate.schedule.peak);
  assert_int_equal(joined.schedule.chains.count, 0);
  rondo_layout_free(program, &separate);
  finish(program, &joined);
}
