/* SPDX-License-Identifier: MIT
 * Which states are trained (PR-1): frozen states, the list in an optimizer's options, and stop_gradient keep states bit
 * for bit; rondo_compiled_explain lists what each optimizer updates; training a state that cannot be trained is an
 * error.
 */
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

enum { COUNT = 4 };

static const rondo_value none;

/* loss = sum((a b + c)^2), with a constant table b among the states, like the tables of RoPE. */
typedef struct network {
  rondo_program *program;
  rondo_value a, b, c, loss, rate;
} network;

static rondo_value add_state(rondo_program *program, const char *name, bool frozen) {
  const size_t shape[] = {COUNT};
  const rondo_state_options options = {RONDO_STATE_OPTIONS_INIT, .frozen = frozen};
  rondo_value value;
  assert_ok(rondo_program_state_with(program, name, RONDO_F32, shape, 1, &options, &value));
  return value;
}

static rondo_value add_loss(rondo_program *program, rondo_value a, rondo_value b, rondo_value c) {
  rondo_value x;
  assert_ok(rondo_op_mul(program, a, b, &x));
  assert_ok(rondo_op_add(program, x, c, &x));
  assert_ok(rondo_op_square(program, x, &x));
  assert_ok(rondo_op_sum(program, x, (const size_t[]){0}, 1, false, &x));
  return x;
}

static network make_network(bool frozen) {
  network n = {0};
  assert_ok(rondo_program_create(&(rondo_program_options){RONDO_PROGRAM_OPTIONS_INIT, .name = "net"}, &n.program));
  n.a = add_state(n.program, "a", false);
  n.b = add_state(n.program, "b", frozen);
  n.c = add_state(n.program, "c", false);
  n.loss = add_loss(n.program, n.a, n.b, n.c);
  assert_ok(rondo_program_output(n.program, "loss", n.loss));
  assert_ok(rondo_program_cell(n.program, "rate", 0.0625f, &n.rate));
  return n;
}

static void write_states(rondo_compiled *compiled) {
  static const float a[COUNT] = {1, -2, 3, 0.5f}, b[COUNT] = {1, 0.5f, -1, 2}, c[COUNT] = {0.25f, 1, 2, -1};
  assert_ok(rondo_compiled_write(compiled, "a", a, sizeof a));
  assert_ok(rondo_compiled_write(compiled, "b", b, sizeof b));
  assert_ok(rondo_compiled_write(compiled, "c", c, sizeof c));
}

static rondo_compiled *compile(test_fixture *t, rondo_program *program) {
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  write_states(compiled);
  return compiled;
}

/* Of one run: which of a, b and c change, as letters. */
static void assert_changes(rondo_compiled *compiled, const char *expected) {
  static const char *const names[] = {"a", "b", "c"};
  float before[3][COUNT], after[COUNT];
  char changed[4] = "";
  for (int i = 0; i < 3; i++) assert_ok(rondo_compiled_read(compiled, names[i], before[i], sizeof before[i]));
  assert_ok(rondo_compiled_run(compiled));
  for (int i = 0; i < 3; i++) {
    assert_ok(rondo_compiled_read(compiled, names[i], after, sizeof after));
    if (memcmp(before[i], after, sizeof after) != 0) strcat(changed, names[i]);
  }
  assert_string_equal(changed, expected);
}

static void assert_explained(const rondo_compiled *compiled, const char *text, const char *json) {
  char *told = NULL;
  assert_ok(rondo_compiled_explain(compiled, RONDO_EXPLAIN_TEXT, &told));
  if (text != NULL) assert_non_null(strstr(told, text));
  if (text == NULL) assert_null(strstr(told, "updates"));
  rondo_text_free(told);
  assert_ok(rondo_compiled_explain(compiled, RONDO_EXPLAIN_JSON, &told));
  assert_non_null(strstr(told, json));
  rondo_text_free(told);
}

TEST(test_pr1_a_frozen_state_is_not_trained) {
  for (int by_adam = 0; by_adam < 2; by_adam++) {
    network n = make_network(true);
    const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = n.rate, .weight_decay = 0.1f};
    const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = n.rate, .weight_decay = 0.1f};
    assert_ok(by_adam ? rondo_program_adam(n.program, n.loss, &adam) : rondo_program_sgd(n.program, n.loss, &sgd));
    rondo_compiled *compiled = compile(t, n.program);
    assert_changes(compiled, "ac");
    assert_explained(compiled, by_adam ? "adam: 2 states, 'a', 'c'\n" : "sgd: 2 states, 'a', 'c'\n",
                     by_adam ? "\"updates\":[{\"optimizer\":\"adam\",\"states\":[\"a\",\"c\"],\"group\":null}]"
                             : "\"updates\":[{\"optimizer\":\"sgd\",\"states\":[\"a\",\"c\"],\"group\":null}]");
    assert_int_equal(test_compiled_info(compiled).parameters, 2 * COUNT);
    assert_ok(rondo_compiled_destroy(compiled));
  }
}

/* As without the flag, also by the function that has none. */
TEST(test_pr1_other_states_are_trained) {
  network n = make_network(false);
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = n.rate};
  assert_ok(rondo_program_sgd(n.program, n.loss, &sgd));
  rondo_compiled *compiled = compile(t, n.program);
  assert_changes(compiled, "abc");
  assert_ok(rondo_compiled_destroy(compiled));
  network plain = make_network(false);
  compiled = compile(t, plain.program);
  assert_changes(compiled, "");
  assert_explained(compiled, NULL, "\"updates\":[]");
}

TEST(test_pr1_an_optimizer_trains_the_states_of_its_list) {
  network n = make_network(false);
  const rondo_value states[] = {n.c, n.a};
  const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = n.rate, .states = states,
                                   .state_count = 2};
  assert_ok(rondo_program_adam(n.program, n.loss, &adam));
  rondo_compiled *compiled = compile(t, n.program);
  assert_changes(compiled, "ac");
  assert_ok(rondo_compiled_destroy(compiled));
  n = make_network(false);
  const rondo_value one[] = {n.b};
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = n.rate, .states = one, .state_count = 1};
  assert_ok(rondo_program_sgd(n.program, n.loss, &sgd));
  compiled = compile(t, n.program);
  assert_changes(compiled, "b");
  assert_explained(compiled, "sgd: 1 state, 'b'\n", "\"states\":[\"b\"]");
}

/* A wrong list leaves the program as it was. */
TEST(test_pr1_wrong_lists_are_refused) {
  const size_t shape[] = {COUNT};
  network n = make_network(true);
  rondo_value far, whole, input, x;
  assert_ok(rondo_program_state(n.program, "far", RONDO_F32, shape, 1, &far));
  assert_ok(rondo_program_state(n.program, "whole", RONDO_I32, shape, 1, &whole));
  assert_ok(rondo_program_input(n.program, "x", RONDO_F32, shape, 1, &input));
  assert_ok(rondo_op_mul(n.program, input, n.a, &x));
  const struct {
    rondo_value states[2];
    size_t count;
    rondo_reason reason;
    const char *message;
  } wrong[] = {{{n.a, far}, 2, RONDO_REASON_NONE, "states entry 1 is 'far' [4], but the loss has no gradient for it"},
               {{whole}, 1, RONDO_REASON_TYPE, "'whole' [4] i32"},
               {{n.a, input}, 2, RONDO_REASON_TYPE, "states entry 1 is 'x' [4], which is not a state"},
               {{x}, 1, RONDO_REASON_TYPE, "which is not a state"},
               {{n.a, n.a}, 2, RONDO_REASON_DUPLICATE_NAME, "states entry 1 is 'a' [4], which is also entry 0"},
               {{n.b}, 1, RONDO_REASON_BAD_OPTIONS, "which is frozen"},
               {{none}, 1, RONDO_REASON_NULL_ARGUMENT, "states entry 0 is no value"},
               {{n.a}, 0, RONDO_REASON_BAD_OPTIONS, "states is an empty list"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = n.rate, .states = wrong[i].states,
                                   .state_count = wrong[i].count};
    assert_invalid(rondo_program_sgd(n.program, n.loss, &sgd), wrong[i].reason);
    assert_message("rondo_program_sgd: ");
    assert_message(wrong[i].message);
  }
  const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = n.rate, .state_count = 1};
  assert_invalid(rondo_program_adam(n.program, n.loss, &adam), RONDO_REASON_NULL_ARGUMENT);
  const rondo_sgd_options right = {RONDO_SGD_OPTIONS_INIT, .learning_rate = n.rate};
  assert_ok(rondo_program_sgd(n.program, n.loss, &right));
  rondo_program_destroy(n.program);
}

TEST(test_pr1_a_loss_of_frozen_states_is_refused) {
  rondo_program *program = test_new_program();
  rondo_value rate;
  const rondo_value a = add_state(program, "a", true);
  const rondo_value loss = add_loss(program, a, a, a);
  assert_ok(rondo_program_cell(program, "rate", 1, &rate));
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate};
  assert_invalid(rondo_program_sgd(program, loss, &sgd), RONDO_REASON_NONE);
  assert_message("nothing to train");
}

/* stop_gradient ---------------------------------------------------------------------------------------------------- */

TEST(test_pr1_an_optimizer_stops_there) {
  rondo_program *program = test_new_program();
  rondo_value b, rate;
  const rondo_value a = add_state(program, "a", false), table = add_state(program, "b", false);
  const rondo_value c = add_state(program, "c", false);
  assert_ok(rondo_op_stop_gradient(program, table, &b));
  const rondo_value loss = add_loss(program, a, b, c);
  assert_ok(rondo_program_cell(program, "rate", 0.0625f, &rate));
  const rondo_value listed[] = {table};
  const rondo_sgd_options wrong = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate, .states = listed, .state_count = 1};
  assert_invalid(rondo_program_sgd(program, loss, &wrong), RONDO_REASON_NONE);
  assert_message("'b' [4], but the loss has no gradient for it");
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate};
  assert_ok(rondo_program_sgd(program, loss, &sgd));
  rondo_compiled *compiled = compile(t, program);
  assert_changes(compiled, "ac");
}
