/* SPDX-License-Identifier: MIT
 * Learning rates by schedules (RC-6, FW-5): the numbers against the formulas of their papers, and a replay that follows
 * the schedule without writes by the host, also if updates are skipped.
 */
#include <math.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

#define COUNT 3

static const rondo_value none;

/* Numbers ---------------------------------------------------------------------------------------------------------- */

static void assert_rate(const rondo_rate_options *options, uint64_t updates, double wanted) {
  float rate;
  assert_ok(rondo_rate_at(options, updates, &rate));
  assert_true(fabs((double)rate - wanted) <= 1e-6 * fabs(wanted));
}

TEST(test_rc6_rates_are_as_defined) {
  const rondo_rate_options constant = {RONDO_RATE_OPTIONS_INIT, .rate = 0.5f, .warm_up = 4};
  const rondo_rate_options line = {RONDO_RATE_OPTIONS_INIT, .kind = RONDO_RATE_LINEAR, .rate = 1, .last = 0.5f,
                                   .period = 10};
  const rondo_rate_options cosine = {
      RONDO_RATE_OPTIONS_INIT, .kind = RONDO_RATE_COSINE, .rate = 2, .last = 1, .warm_up = 2, .period = 8};
  rondo_rate_options restarts = cosine;
  const rondo_rate_options steps = {RONDO_RATE_OPTIONS_INIT, .kind = RONDO_RATE_STEPS, .rate = 1, .factor = 0.5f,
                                    .period = 3};
  const rondo_rate_options root = {RONDO_RATE_OPTIONS_INIT, .kind = RONDO_RATE_INVERSE_SQRT, .rate = 1, .warm_up = 4};
  for (uint64_t s = 0; s < 40; s++) {
    const double n = (double)s + 1, after = (double)s - 2, pi = acos(-1);
    assert_rate(&constant, s, 0.5 * fmin(1, n / 4));
    assert_rate(&line, s, 1 - 0.5 * fmin(10, (double)s) / 10);
    assert_rate(&cosine, s, s < 2 ? n : 1 + (1 + cos(pi * fmin(8, after) / 8)) / 2);
    restarts.restarts = true;
    assert_rate(&restarts, s, s < 2 ? n : 1 + (1 + cos(pi * fmod(after, 8) / 8)) / 2);
    assert_rate(&steps, s, pow(0.5, floor((double)s / 3)));
    assert_rate(&root, s, fmin(n / 4, sqrt(4 / n)));
  }
  assert_rate(&line, UINT64_MAX, 0.5);
}

TEST(test_wrong_schedules_are_refused) {
  const rondo_rate_options wrong[] = {
      {RONDO_RATE_OPTIONS_INIT, .rate = 0},
      {RONDO_RATE_OPTIONS_INIT, .rate = NAN},
      {RONDO_RATE_OPTIONS_INIT, .rate = INFINITY},
      {RONDO_RATE_OPTIONS_INIT, .rate = 1, .last = 2},
      {RONDO_RATE_OPTIONS_INIT, .rate = 1, .last = -1},
      {RONDO_RATE_OPTIONS_INIT, .rate = 1, .factor = 1.5f},
      {RONDO_RATE_OPTIONS_INIT, .rate = 1, .factor = -1},
      {RONDO_RATE_OPTIONS_INIT, .kind = RONDO_RATE_LINEAR, .rate = 1},
      {RONDO_RATE_OPTIONS_INIT, .kind = RONDO_RATE_COSINE, .rate = 1},
      {RONDO_RATE_OPTIONS_INIT, .kind = RONDO_RATE_STEPS, .rate = 1},
  };
  const rondo_rate_options unknown = {RONDO_RATE_OPTIONS_INIT, .kind = (rondo_rate_kind)77, .rate = 1};
  float rate;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    assert_invalid(rondo_rate_at(&wrong[i], 0, &rate), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_rate_at(&unknown, 0, &rate), RONDO_REASON_BAD_OPTIONS);
  assert_invalid(rondo_rate_at(NULL, 0, &rate), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_rate_at(&wrong[0], 0, NULL), RONDO_REASON_NULL_ARGUMENT);
}

/* Programs --------------------------------------------------------------------------------------------------------- */

/* The loss is x w, so the gradient of w is x. */
static rondo_program *new_program(rondo_value *loss) {
  const size_t row[] = {1, COUNT}, column[] = {COUNT, 1};
  rondo_program *program = test_new_program();
  rondo_value x, w;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, row, 2, &x));
  assert_ok(rondo_program_state(program, "w", RONDO_F32, column, 2, &w));
  assert_ok(rondo_op_matmul(program, x, w, none, loss));
  assert_ok(rondo_op_reshape(program, *loss, NULL, 0, loss));
  assert_ok(rondo_program_output(program, "loss", *loss));
  return program;
}

static rondo_status add_optimizer(rondo_program *program, rondo_value loss, bool adam, rondo_value rate,
                                  const rondo_rate_options *schedule, const rondo_gradient_options *gradients) {
  const rondo_adam_options by_adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate, .schedule = schedule,
                                      .gradients = gradients};
  const rondo_sgd_options by_sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate, .schedule = schedule,
                                    .gradients = gradients};
  return adam ? rondo_program_adam(program, loss, &by_adam) : rondo_program_sgd(program, loss, &by_sgd);
}

static rondo_compiled *compile(test_fixture *t, rondo_program *program, bool recorded) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT,
                                         .record = recorded ? RONDO_RECORD_ALWAYS : RONDO_RECORD_NEVER};
  return test_compile(program, t->device, &options);
}

static float read_number(rondo_compiled *compiled, const char *name) {
  float number = 0;
  assert_ok(rondo_compiled_read(compiled, name, &number, sizeof number));
  return number;
}

/* In each run, the rate and the weights equal those of a program whose cell the host writes. */
static void compare_with_cell(test_fixture *t, bool adam, bool recorded, const rondo_rate_options *schedule) {
  const float x[COUNT] = {1, -2, 0.5f};
  rondo_value loss, cell;
  float w[COUNT], wanted[COUNT];
  rondo_program *program = new_program(&loss), *other = NULL;
  assert_ok(add_optimizer(program, loss, adam, none, schedule, NULL));
  rondo_compiled *scheduled = compile(t, program, recorded);
  other = new_program(&loss);
  assert_ok(rondo_program_cell(other, "cell", 0, &cell));
  assert_ok(add_optimizer(other, loss, adam, cell, NULL, NULL));
  rondo_compiled *written = compile(t, other, recorded);
  assert_ok(rondo_compiled_write(scheduled, "x", x, sizeof x));
  assert_ok(rondo_compiled_write(written, "x", x, sizeof x));
  for (uint64_t i = 0; i < 12; i++) {
    float expected;
    assert_ok(rondo_rate_at(schedule, i, &expected));
    assert_ok(rondo_compiled_run(scheduled));
    const float rate = read_number(scheduled, "rate");
    assert_true(fabsf(rate - expected) <= 1e-6f * expected);
    assert_ok(rondo_compiled_write(written, "cell", &rate, sizeof rate));
    assert_ok(rondo_compiled_run(written));
    assert_ok(rondo_compiled_read(scheduled, "w", w, sizeof w));
    assert_ok(rondo_compiled_read(written, "w", wanted, sizeof wanted));
    assert_memory_equal(w, wanted, sizeof w);
  }
  assert_ok(rondo_compiled_destroy(scheduled));
  assert_ok(rondo_compiled_destroy(written));
}

TEST(test_rc6_fw5_a_replay_follows_the_schedule) {
  for (int kind = RONDO_RATE_CONSTANT; kind <= RONDO_RATE_INVERSE_SQRT; kind++) {
    const rondo_rate_options schedule = {RONDO_RATE_OPTIONS_INIT,
                                         .kind = (rondo_rate_kind)kind,
                                         .rate = 0.1f,
                                         .last = 0.01f,
                                         .factor = 0.5f,
                                         .warm_up = 3,
                                         .period = 5,
                                         .restarts = true,
                                         .output = "rate"};
    for (int form = 0; form < 4; form++) compare_with_cell(t, form % 2 == 0, form / 2 == 0, &schedule);
  }
}

/* Each update takes two runs; an update whose gradients overflow does not count. */
TEST(test_rc6_updates_that_are_left_out_do_not_count) {
  const rondo_rate_options schedule = {
      RONDO_RATE_OPTIONS_INIT, .kind = RONDO_RATE_STEPS, .rate = 1, .factor = 0.5f, .period = 1, .output = "rate"};
  const rondo_gradient_options gradients = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 2, .max_norm = 1000};
  static const float wanted[] = {1, 1, 1, 1, 0.5f, 0.5f, 0.25f};
  for (int adam = 0; adam < 2; adam++) {
    rondo_value loss;
    rondo_program *program = new_program(&loss);
    assert_ok(add_optimizer(program, loss, adam == 1, none, &schedule, &gradients));
    rondo_compiled *compiled = compile(t, program, true);
    for (int i = 0; i < 7; i++) {
      const float x[COUNT] = {i == 1 ? INFINITY : 1, 2, 3};
      assert_ok(rondo_compiled_write(compiled, "x", x, sizeof x));
      assert_ok(rondo_compiled_run(compiled));
      assert_true(read_number(compiled, "rate") == wanted[i]);
    }
    int32_t updates;
    assert_ok(rondo_compiled_read(compiled, adam == 1 ? "adam.step" : "sgd.step", &updates, sizeof updates));
    assert_int_equal(updates, 2);
    assert_ok(rondo_compiled_destroy(compiled));
  }
}

/* A rate may be any scalar: here half of what the host writes. */
TEST(test_fw5_a_rate_is_computed_in_the_program) {
  const float x[COUNT] = {1, 1, 1}, given = 0.5f;
  rondo_value loss, cell, half;
  float w[COUNT];
  rondo_program *program = new_program(&loss);
  assert_ok(rondo_program_cell(program, "given", 0, &cell));
  assert_ok(rondo_op_scale(program, cell, 0.5f, &half));
  assert_ok(add_optimizer(program, loss, false, half, NULL, NULL));
  rondo_compiled *compiled = compile(t, program, true);
  assert_ok(rondo_compiled_write(compiled, "x", x, sizeof x));
  assert_ok(rondo_compiled_write(compiled, "given", &given, sizeof given));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "w", w, sizeof w));
  for (int i = 0; i < COUNT; i++) assert_true(w[i] == -0.25f);
  assert_ok(rondo_compiled_destroy(compiled));
}

TEST(test_wrong_rates_are_refused) {
  const rondo_rate_options schedule = {RONDO_RATE_OPTIONS_INIT, .rate = 1};
  const rondo_rate_options taken = {RONDO_RATE_OPTIONS_INIT, .rate = 1, .output = "loss"}, bad = {.rate = -1};
  const size_t pair[] = {2};
  rondo_value loss, cell, vector, whole;
  rondo_program *program = new_program(&loss);
  assert_ok(rondo_program_cell(program, "cell", 1, &cell));
  assert_ok(rondo_program_input(program, "vector", RONDO_F32, pair, 1, &vector));
  assert_ok(rondo_program_input(program, "whole", RONDO_I32, NULL, 0, &whole));
  for (int adam = 0; adam < 2; adam++) {
    const rondo_status status = RONDO_INVALID_ARGUMENT;
    assert_error(add_optimizer(program, loss, adam, cell, &schedule, NULL), status, RONDO_REASON_BAD_OPTIONS);
    assert_error(add_optimizer(program, loss, adam, none, NULL, NULL), status, RONDO_REASON_NULL_ARGUMENT);
    assert_error(add_optimizer(program, loss, adam, vector, NULL, NULL), status, RONDO_REASON_SHAPE);
    assert_error(add_optimizer(program, loss, adam, whole, NULL, NULL), status, RONDO_REASON_TYPE);
    assert_error(add_optimizer(program, loss, adam, none, &bad, NULL), status, RONDO_REASON_OUT_OF_RANGE);
    assert_error(add_optimizer(program, loss, adam, none, &taken, NULL), status, RONDO_REASON_DUPLICATE_NAME);
  }
  assert_ok(add_optimizer(program, loss, false, none, &schedule, NULL)); /* as before: an optimizer can be added */
  rondo_program_destroy(program);
}
