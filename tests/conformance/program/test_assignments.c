/* SPDX-License-Identifier: MIT
 * Assignments to states (PR-3): moving averages, an optimizer of the program's own, a network that reads a stream,
 * states that exchange their values. Recorded, eager and joined runs give the same bits; a run that fails changes
 * nothing; divided programs and checkpoints have the states; a state is changed in one way.
 */
#include <math.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

enum { COUNT = 5, RUNS = 6 };

static const rondo_value none;

static rondo_value add_state(rondo_program *program, const char *name, bool frozen) {
  const size_t shape[] = {COUNT};
  const rondo_state_options options = {RONDO_STATE_OPTIONS_INIT, .frozen = frozen};
  rondo_value value;
  assert_ok(rondo_program_state_with(program, name, RONDO_F32, shape, 1, &options, &value));
  return value;
}

/* a x + b y */
static rondo_value mix(rondo_program *program, rondo_value x, float a, rondo_value y, float b) {
  rondo_value sum;
  assert_ok(rondo_op_scale(program, x, a, &x));
  assert_ok(rondo_op_scale(program, y, b, &y));
  assert_ok(rondo_op_add(program, x, y, &sum));
  return sum;
}

/* loss = sum((w x)^2), with a moving average of w. */
typedef struct network {
  rondo_program *program;
  rondo_value x, w, average, loss, rate;
} network;

static network make_network(void) {
  network n = {.program = test_named_program("net")};
  const size_t shape[] = {COUNT};
  assert_ok(rondo_program_input(n.program, "x", RONDO_F32, shape, 1, &n.x));
  n.w = add_state(n.program, "w", false);
  n.average = add_state(n.program, "average", true);
  assert_ok(rondo_op_mul(n.program, n.w, n.x, &n.loss));
  assert_ok(rondo_op_square(n.program, n.loss, &n.loss));
  assert_ok(rondo_op_sum(n.program, n.loss, (const size_t[]){0}, 1, false, &n.loss));
  assert_ok(rondo_program_output(n.program, "loss", n.loss));
  assert_ok(rondo_program_cell(n.program, "rate", 0.125f, &n.rate));
  return n;
}

static float number_at(int run, int k) { return (float)((run * 5 + k * 3) % 7 - 3) / 4; }

static void write_vector(rondo_compiled *compiled, const char *name, int run) {
  float numbers[COUNT];
  for (int k = 0; k < COUNT; k++) numbers[k] = number_at(run, k);
  assert_ok(rondo_compiled_write(compiled, name, numbers, sizeof numbers));
}

static void read_vector(rondo_compiled *compiled, const char *name, float *out) {
  assert_ok(rondo_compiled_read(compiled, name, out, COUNT * sizeof *out));
}

/* Trains in one of the forms, and reads two states. */
static void train(test_fixture *t, rondo_program *program, int form, const char *const names[2], float out[2][COUNT]) {
  const rondo_compile_options forms[] = {{RONDO_COMPILE_OPTIONS_INIT},
                                         {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER},
                                         {RONDO_COMPILE_OPTIONS_INIT, .fusion = RONDO_FUSION_NEVER},
                                         {RONDO_COMPILE_OPTIONS_INIT, .branches = RONDO_BRANCHES_ALWAYS}};
  rondo_compiled *compiled = test_compile_kept(program, t->device, &forms[form]);
  write_vector(compiled, "w", 1);
  for (int run = 0; run < RUNS; run++) {
    write_vector(compiled, "x", run + 2);
    assert_ok(rondo_compiled_run(compiled));
  }
  for (int i = 0; i < 2; i++) read_vector(compiled, names[i], out[i]);
  assert_ok(rondo_compiled_destroy(compiled));
}

enum { FORMS = 4 };

static void assert_trained(test_fixture *t, rondo_program *program, const char *const names[2],
                           float wanted[2][COUNT]) {
  float first[2][COUNT], got[2][COUNT];
  for (int form = 0; form < FORMS; form++) {
    train(t, program, form, names, got);
    if (form == 0) memcpy(first, got, sizeof got);
    assert_memory_equal(got, first, sizeof got);
  }
  for (int i = 0; i < 2; i++) assert_near(first[i], wanted[i], COUNT, 2e-6f);
}

/* The average reads the weights before each run. */
TEST(test_pr3_a_moving_average_of_weights) {
  const network n = make_network();
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = n.rate};
  float wanted[2][COUNT];
  assert_ok(rondo_program_assign(n.program, n.average, mix(n.program, n.average, 0.75f, n.w, 0.25f)));
  assert_ok(rondo_program_sgd(n.program, n.loss, &sgd));
  for (int k = 0; k < COUNT; k++) {
    double w = (double)number_at(1, k), average = 0;
    for (int run = 0; run < RUNS; run++) {
      const double x = (double)number_at(run + 2, k);
      average = 0.75 * average + 0.25 * w;
      w -= 0.125 * 2 * w * x * x;
    }
    wanted[0][k] = (float)w;
    wanted[1][k] = (float)average;
  }
  assert_trained(t, n.program, (const char *const[]){"w", "average"}, wanted);
}

/* Momentum written as assignments, against rondo_program_sgd. */
TEST(test_pr3_an_optimizer_of_the_programs_own) {
  static const char *const own[] = {"w", "average"}, *const theirs[] = {"w", "w.momentum"};
  network n = make_network();
  rondo_value gradient, momentum;
  float wanted[2][COUNT];
  assert_ok(rondo_program_gradients(n.program, n.loss, &n.w, 1, &gradient));
  const rondo_value v = mix(n.program, n.average, 0.5f, gradient, 1);
  assert_ok(rondo_program_assign(n.program, n.average, v));
  assert_ok(rondo_program_assign(n.program, n.w, mix(n.program, n.w, 1, v, -0.125f)));
  network other = make_network();
  assert_ok(rondo_program_cell(other.program, "momentum", 0.5f, &momentum));
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = other.rate, .momentum = momentum};
  assert_ok(rondo_program_sgd(other.program, other.loss, &sgd));
  train(t, other.program, 0, theirs, wanted);
  assert_trained(t, n.program, own, wanted);
}

/* States are read as they were before the run, also by other assignments, through views and by way of a cell. */
TEST(test_pr3_states_exchange_their_values) {
  for (int view = 0; view < 2; view++) {
    rondo_program *program = test_new_program();
    const rondo_value a = add_state(program, "a", false), b = add_state(program, "b", false);
    rondo_value from = a;
    if (view == 1) assert_ok(rondo_op_reshape(program, a, (const size_t[]){COUNT, 1}, 2, &from));
    if (view == 1) assert_ok(rondo_op_reshape(program, from, (const size_t[]){COUNT}, 1, &from));
    assert_ok(rondo_program_assign(program, a, b));
    assert_ok(rondo_program_assign(program, b, from));
    rondo_compiled *compiled = test_compile(program, t->device, NULL);
    float got[COUNT];
    write_vector(compiled, "a", 1);
    write_vector(compiled, "b", 2);
    for (int run = 0; run < 3; run++) assert_ok(rondo_compiled_run(compiled));
    read_vector(compiled, "a", got);
    for (int k = 0; k < COUNT; k++) assert_true(got[k] == number_at(2, k));
    read_vector(compiled, "b", got);
    for (int k = 0; k < COUNT; k++) assert_true(got[k] == number_at(1, k));
  }
}

/* h = tanh(h w + x) from run to run; the loss trains w, not h. */
TEST(test_pr3_a_network_reads_a_stream) {
  network n = make_network();
  const rondo_value w[] = {n.w};
  rondo_value h;
  float wanted[2][COUNT];
  assert_ok(rondo_op_mul(n.program, n.average, n.w, &h));
  assert_ok(rondo_op_add(n.program, h, n.x, &h));
  assert_ok(rondo_op_tanh(n.program, h, &h));
  assert_ok(rondo_program_assign(n.program, n.average, h));
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = n.rate, .states = w, .state_count = 1};
  assert_ok(rondo_program_sgd(n.program, n.loss, &sgd));
  for (int k = 0; k < COUNT; k++) {
    double weight = (double)number_at(1, k), state = 0;
    for (int run = 0; run < RUNS; run++) {
      const double x = (double)number_at(run + 2, k);
      state = tanh(state * weight + x);
      weight -= 0.125 * 2 * weight * x * x;
    }
    wanted[0][k] = (float)weight;
    wanted[1][k] = (float)state;
  }
  assert_trained(t, n.program, (const char *const[]){"w", "average"}, wanted);
}

/* A scalar counter of each type, and a constant; in one kernel. */
TEST(test_pr3_states_of_all_types) {
  static const rondo_type types[] = {RONDO_I32, RONDO_I64, RONDO_F16, RONDO_BF16, RONDO_F32, RONDO_I8, RONDO_U8};
  static const char *const names[] = {"i32", "i64", "f16", "bf16", "f32", "i8", "u8"};
  rondo_program *program = test_new_program();
  for (int i = 0; i < 7; i++) {
    rondo_value state, one, next;
    assert_ok(rondo_program_state(program, names[i], types[i], NULL, 0, &state));
    assert_ok(rondo_op_full(program, types[i], NULL, 0, 1, &one));
    assert_ok(rondo_op_add(program, state, one, &next));
    assert_ok(rondo_program_assign(program, state, next));
  }
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  for (int run = 0; run < 3; run++) assert_ok(rondo_compiled_run(compiled));
  int32_t i32;
  int64_t i64;
  uint16_t f16, bf16;
  int8_t i8;
  uint8_t u8;
  assert_ok(rondo_compiled_read(compiled, "i32", &i32, sizeof i32));
  assert_ok(rondo_compiled_read(compiled, "i64", &i64, sizeof i64));
  assert_ok(rondo_compiled_read(compiled, "f16", &f16, sizeof f16));
  assert_ok(rondo_compiled_read(compiled, "bf16", &bf16, sizeof bf16));
  assert_ok(rondo_compiled_read(compiled, "i8", &i8, sizeof i8));
  assert_ok(rondo_compiled_read(compiled, "u8", &u8, sizeof u8));
  assert_true(i32 == 3 && i64 == 3 && f16 == 0x4200 && bf16 == 0x4040 && i8 == 3 && u8 == 3);
  assert_true(test_read_number(compiled, "f32") == 3);
}

/* Types without arithmetic: two states exchange their bytes in each run. */
TEST(test_pr3_states_of_stored_types) {
  static const rondo_type types[] = {RONDO_BOOL, RONDO_F8_E4M3, RONDO_F8_E5M2};
  static const char *const names[][2] = {{"bool a", "bool b"}, {"e4m3 a", "e4m3 b"}, {"e5m2 a", "e5m2 b"}};
  static const unsigned char bytes[2][COUNT] = {{1, 0, 0, 1, 1}, {0, 0, 1, 1, 0}};
  const size_t count = COUNT;
  rondo_program *program = test_new_program();
  for (int i = 0; i < 3; i++) {
    rondo_value a, b;
    assert_ok(rondo_program_state(program, names[i][0], types[i], &count, 1, &a));
    assert_ok(rondo_program_state(program, names[i][1], types[i], &count, 1, &b));
    assert_ok(rondo_program_assign(program, a, b));
    assert_ok(rondo_program_assign(program, b, a));
  }
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 2; k++) assert_ok(rondo_compiled_write(compiled, names[i][k], bytes[k], COUNT));
  for (int run = 1; run <= 3; run++) {
    assert_ok(rondo_compiled_run(compiled));
    for (int i = 0; i < 6; i++) {
      unsigned char got[COUNT];
      assert_ok(rondo_compiled_read(compiled, names[i / 2][i % 2], got, sizeof got));
      assert_memory_equal(got, bytes[(i + run) % 2], sizeof got);
    }
  }
}

/* Failures and others ---------------------------------------------------------------------------------------------- */

static rondo_value add_look_up(rondo_program *program) {
  const size_t shape[] = {COUNT, 1}, one = 1;
  rondo_value table, index, y;
  assert_ok(rondo_program_state(program, "table", RONDO_F32, shape, 2, &table));
  assert_ok(rondo_program_input(program, "index", RONDO_I32, &one, 1, &index));
  assert_ok(rondo_op_embedding(program, table, index, &y));
  assert_ok(rondo_op_reshape(program, y, &one, 1, &y));
  return y;
}

TEST(test_pr3_a_failed_run_assigns_nothing) {
  rondo_program *program = test_new_program();
  const rondo_value a = add_state(program, "a", false);
  rondo_value next, more = add_look_up(program);
  assert_ok(rondo_op_add(program, a, more, &next));
  assert_ok(rondo_program_assign(program, a, next));
  for (int eager = 0; eager < 2; eager++) {
    const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT,
                                           .record = eager ? RONDO_RECORD_NEVER : RONDO_RECORD_ALWAYS};
    rondo_compiled *compiled = test_compile_kept(program, t->device, &options);
    const int32_t wrong = COUNT, right = 1;
    float got[COUNT];
    write_vector(compiled, "a", 1);
    write_vector(compiled, "table", 2);
    assert_ok(rondo_compiled_write(compiled, "index", &wrong, sizeof wrong));
    assert_ok(rondo_compiled_run(compiled));
    assert_error(rondo_compiled_synchronize(compiled), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
    read_vector(compiled, "a", got);
    for (int k = 0; k < COUNT; k++) assert_true(got[k] == number_at(1, k));
    assert_ok(rondo_compiled_write(compiled, "index", &right, sizeof right));
    assert_ok(rondo_compiled_run(compiled));
    read_vector(compiled, "a", got);
    for (int k = 0; k < COUNT; k++) assert_true(got[k] == number_at(1, k) + number_at(2, 1));
    assert_ok(rondo_compiled_destroy(compiled));
  }
}

TEST(test_pr3_checkpoints_and_other_programs_have_the_state) {
  const network n = make_network();
  rondo_weights *checkpoint = NULL;
  float got[COUNT], again[COUNT];
  assert_ok(rondo_program_assign(n.program, n.average, mix(n.program, n.average, 0.5f, n.w, 0.5f)));
  rondo_compiled *compiled = test_compile_kept(n.program, t->device, NULL);
  write_vector(compiled, "w", 1);
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_weights_create(NULL, &checkpoint));
  assert_ok(rondo_checkpoint_gather(checkpoint, compiled));
  assert_ok(rondo_compiled_run(compiled));
  read_vector(compiled, "average", got);
  rondo_program *reader = test_new_program();
  assert_ok(rondo_program_output(reader, "seen", add_state(reader, "average", true)));
  const rondo_compile_options shared = {RONDO_COMPILE_OPTIONS_INIT, .share = compiled};
  rondo_compiled *other = test_compile_kept(reader, t->device, &shared);
  assert_ok(rondo_compiled_run(other));
  read_vector(other, "seen", again);
  assert_memory_equal(again, got, sizeof got);
  assert_ok(rondo_compiled_destroy(other));
  assert_ok(rondo_compiled_destroy(compiled));
  compiled = test_compile_kept(n.program, t->device, NULL);
  assert_ok(rondo_checkpoint_apply(checkpoint, compiled));
  rondo_weights_destroy(checkpoint);
  assert_ok(rondo_compiled_run(compiled));
  read_vector(compiled, "average", again);
  assert_memory_equal(again, got, sizeof got);
  assert_ok(rondo_compiled_destroy(compiled));
}

/* The value is computed on one device, the state is on the other. */
TEST(test_pr3_a_divided_program_assigns) {
  rondo_device *devices[] = {t->device, test_device(test_device_is("cpu") ? "cpu:1" : "cpu", NULL)};
  rondo_program *program = test_new_program();
  const rondo_value a = add_state(program, "a", false), b = add_state(program, "b", false);
  const rondo_value next = mix(program, a, 0.5f, b, 0.25f);
  float numbers[COUNT], got[COUNT];
  assert_ok(rondo_program_assign(program, b, a));
  assert_ok(rondo_program_assign(program, a, next));
  assert_ok(rondo_program_place(program, b, 1));
  rondo_divided *divided = test_compile_divided(program, devices, 2, NULL);
  for (int k = 0; k < COUNT; k++) numbers[k] = number_at(1, k);
  assert_ok(rondo_divided_write(divided, "a", numbers, sizeof numbers));
  for (int run = 0; run < 3; run++) assert_ok(rondo_divided_run(divided));
  assert_ok(rondo_divided_read(divided, "a", got, sizeof got));
  for (int k = 0; k < COUNT; k++) {
    float x = number_at(1, k), y = 0;
    for (int run = 0; run < 3; run++) {
      const float now = 0.5f * x + 0.25f * y;
      y = x;
      x = now;
    }
    assert_true(got[k] == x);
  }
}

TEST(test_pr3_assignments_are_explained) {
  const network n = make_network();
  char *told = NULL;
  assert_ok(rondo_program_assign(n.program, n.average, n.w));
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = n.rate};
  assert_ok(rondo_program_sgd(n.program, n.loss, &sgd));
  rondo_compiled *compiled = test_compile(n.program, t->device, NULL);
  assert_ok(rondo_compiled_explain(compiled, RONDO_EXPLAIN_TEXT, &told));
  assert_non_null(strstr(told, "sgd: 1 state, 'w'\n"));
  assert_non_null(strstr(told, "assign: 1 state, 'average'\n"));
  rondo_text_free(told);
  assert_ok(rondo_compiled_explain(compiled, RONDO_EXPLAIN_JSON, &told));
  assert_non_null(strstr(told, "{\"optimizer\":\"assign\",\"states\":[\"average\"],\"group\":null}"));
  rondo_text_free(told);
  assert_int_equal(test_compiled_info(compiled).parameters, COUNT);
}

/* Refusals --------------------------------------------------------------------------------------------------------- */

TEST(test_pr3_a_state_is_changed_in_one_way) {
  const network n = make_network();
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = n.rate};
  assert_ok(rondo_program_assign(n.program, n.w, n.x));
  assert_error(rondo_program_assign(n.program, n.w, n.x), RONDO_INVALID_STATE, RONDO_REASON_NONE);
  assert_message("'w' [5] is changed by assign");
  assert_invalid(rondo_program_sgd(n.program, n.loss, &sgd), RONDO_REASON_BAD_OPTIONS);
  assert_message("'w' [5] is assigned by rondo_program_assign");
  const network other = make_network();
  const rondo_sgd_options right = {RONDO_SGD_OPTIONS_INIT, .learning_rate = other.rate};
  assert_ok(rondo_program_sgd(other.program, other.loss, &right));
  assert_error(rondo_program_assign(other.program, other.w, other.x), RONDO_INVALID_STATE, RONDO_REASON_NONE);
  assert_message("is changed by sgd");
  assert_ok(rondo_program_assign(other.program, other.average, other.w));
}

TEST(test_pr3_running_statistics_are_not_assigned) {
  const size_t shape[] = {3, COUNT};
  rondo_program *program = test_new_program();
  rondo_value x, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  const rondo_value mean = add_state(program, "mean", false), variance = add_state(program, "variance", false);
  const rondo_batch_norm_options options = {RONDO_BATCH_NORM_OPTIONS_INIT, .running_mean = mean,
                                            .running_variance = variance, .momentum = 0.1f};
  assert_ok(rondo_program_assign(program, mean, variance));
  assert_invalid(rondo_op_batch_norm(program, x, &options, &y), RONDO_REASON_BAD_OPTIONS);
  assert_message("running_mean is assigned by rondo_program_assign");
  program = test_new_program();
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  const rondo_value second = add_state(program, "mean", false), third = add_state(program, "variance", false);
  const rondo_batch_norm_options again = {RONDO_BATCH_NORM_OPTIONS_INIT, .running_mean = second,
                                          .running_variance = third, .momentum = 0.1f};
  assert_ok(rondo_op_batch_norm(program, x, &again, &y));
  assert_error(rondo_program_assign(program, third, second), RONDO_INVALID_STATE, RONDO_REASON_NONE);
  assert_message("is changed by batch_norm_update");
}

TEST(test_pr3_what_does_not_fit_is_refused) {
  const network n = make_network();
  const size_t shape[] = {COUNT, 1};
  rondo_value row, half;
  assert_ok(rondo_op_reshape(n.program, n.x, shape, 2, &row));
  assert_ok(rondo_op_cast(n.program, n.x, RONDO_F16, &half));
  assert_invalid(rondo_program_assign(n.program, n.average, row), RONDO_REASON_SHAPE);
  assert_message("state and value must have one shape");
  assert_invalid(rondo_program_assign(n.program, n.average, half), RONDO_REASON_TYPE);
  assert_invalid(rondo_program_assign(n.program, n.x, n.w), RONDO_REASON_TYPE);
  assert_message("only states are assigned");
  assert_invalid(rondo_program_assign(n.program, n.rate, n.rate), RONDO_REASON_TYPE);
  assert_invalid(rondo_program_assign(n.program, none, n.w), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_program_assign(n.program, n.w, none), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_program_assign(NULL, n.w, n.w), RONDO_REASON_NULL_ARGUMENT);
  const network other = make_network();
  assert_invalid(rondo_program_assign(n.program, n.w, other.w), RONDO_REASON_UNKNOWN_NAME);
  assert_ok(rondo_program_assign(n.program, n.average, n.x)); /* as before */
}
