/* SPDX-License-Identifier: MIT
 * Recompiling (FW-6): another batch size updates the exec in place where the topology is the same, another program gets
 * a new one, and both are counted; states continue; errors change nothing.
 */
#include <math.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

enum { WIDTH = 3, CLASSES = 4, MOST_ROWS = 64 };

static const rondo_value none = {0};

typedef struct shape_of_step {
  size_t rows;
  float weight_decay;
  bool is_deeper;
} shape_of_step;

/* A layer of so many rows and its training, perhaps with another tanh and a softmax next to it. */
static rondo_program *make_program(shape_of_step shape) {
  rondo_program *program = test_named_program("step");
  rondo_value x, labels, w, y, loss, rate, side;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){shape.rows, WIDTH}, 2, &x));
  assert_ok(rondo_program_input(program, "labels", RONDO_I32, &shape.rows, 1, &labels));
  assert_ok(rondo_program_state(program, "w", RONDO_F32, (const size_t[]){WIDTH, CLASSES}, 2, &w));
  assert_ok(rondo_program_cell(program, "rate", 0.125f, &rate));
  assert_ok(rondo_op_matmul(program, x, w, none, &y));
  assert_ok(rondo_op_tanh(program, y, &y));
  if (shape.is_deeper) {
    assert_ok(rondo_op_softmax(program, y, &side));
    assert_ok(rondo_program_output(program, "side", side));
  }
  assert_ok(rondo_op_cross_entropy(program, y, labels, &loss));
  assert_ok(rondo_program_output(program, "loss", loss));
  const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate, .weight_decay = shape.weight_decay};
  assert_ok(rondo_program_adam(program, loss, &adam));
  return program;
}

static rondo_compiled *compile_with(test_fixture *t, shape_of_step shape, const rondo_compile_options *options) {
  rondo_program *program = make_program(shape);
  float w[WIDTH * CLASSES];
  rondo_compiled *compiled = test_compile(program, t->device, options);
  for (int i = 0; i < WIDTH * CLASSES; i++) w[i] = (float)(i % 5) * 0.25f - 0.5f;
  assert_ok(rondo_compiled_write(compiled, "w", w, sizeof w));
  return compiled;
}

static rondo_compiled *compile(test_fixture *t, shape_of_step shape) { return compile_with(t, shape, NULL); }

static rondo_status try_recompile(rondo_compiled *compiled, shape_of_step shape, rondo_recompile_result *out_result) {
  rondo_program *program = make_program(shape);
  const rondo_status status = rondo_compiled_recompile(compiled, program, out_result);
  rondo_program_destroy(program);
  return status;
}

static rondo_recompile_result recompile(rondo_compiled *compiled, shape_of_step shape) {
  rondo_recompile_result result = {.struct_size = sizeof result};
  assert_ok(try_recompile(compiled, shape, &result));
  return result;
}

static float step(rondo_compiled *compiled, size_t rows, int number) {
  float x[MOST_ROWS * WIDTH], loss;
  int32_t labels[MOST_ROWS];
  for (size_t i = 0; i < rows * WIDTH; i++) x[i] = (float)((i * 5 + (size_t)number * 3) % 11) * 0.25f - 1;
  for (size_t i = 0; i < rows; i++) labels[i] = (int32_t)((i + (size_t)number) % CLASSES);
  assert_ok(rondo_compiled_write(compiled, "x", x, rows * WIDTH * sizeof *x));
  assert_ok(rondo_compiled_write(compiled, "labels", labels, rows * sizeof *labels));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "loss", &loss, sizeof loss));
  return loss;
}

static void assert_counts(const rondo_compiled *compiled, uint64_t captures, uint64_t updates,
                          uint64_t instantiations) {
  const rondo_compiled_info info = test_compiled_info(compiled);
  assert_int_equal(info.captures, captures);
  assert_int_equal(info.updates, updates);
  assert_int_equal(info.instantiations, instantiations);
}

/* Updating and instantiating --------------------------------------------------------------------------------------- */

/* Against programs of each shape that share the states. */
TEST(test_fw6_another_batch_size_has_the_losses_of_a_program_of_its_own) {
  static const size_t rows[] = {8, 3, 64, 8, 1, 5};
  rondo_compiled *one = compile(t, (shape_of_step){.rows = 8}), *many[6] = {compile(t, (shape_of_step){.rows = 8})};
  for (int i = 0; i < 6; i++) {
    const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .share = many[0]};
    rondo_program *program = make_program((shape_of_step){.rows = rows[i]});
    if (i > 0) (void)recompile(one, (shape_of_step){.rows = rows[i]});
    if (i > 0) assert_ok(rondo_compile(program, t->device, &options, &many[i]));
    rondo_program_destroy(program);
    for (int k = 0; k < 3; k++) {
      const float wanted = step(many[i], rows[i], k), got = step(one, rows[i], k);
      assert_memory_equal(&got, &wanted, sizeof got);
    }
  }
  const rondo_compiled_info info = test_compiled_info(one);
  assert_int_equal(info.captures, 6);
  assert_int_equal(info.updates + info.instantiations, 6);
  for (int i = 1; i < 6; i++) assert_ok(rondo_compiled_destroy(many[i]));
}

TEST(test_fw6_the_same_topology_updates_the_exec_in_place) {
  rondo_compiled *compiled = compile(t, (shape_of_step){.rows = 8, .weight_decay = 0.25f});
  const rondo_exec *exec = rondo_compiled_exec(compiled);
  rondo_stream *stream = rondo_compiled_stream(compiled);
  assert_counts(compiled, 1, 0, 1);
  (void)step(compiled, 8, 0);
  const rondo_recompile_result result = recompile(compiled, (shape_of_step){.rows = 8, .weight_decay = 0.5f});
  assert_true(result.updated);
  assert_int_equal(result.reason, RONDO_REASON_NONE);
  assert_ptr_equal(rondo_compiled_exec(compiled), exec);
  assert_ptr_equal(rondo_compiled_stream(compiled), stream);
  assert_counts(compiled, 2, 1, 1);
  assert_int_equal(test_exec_info(exec).updates, 1);
  rondo_compiled *other = compile(t, (shape_of_step){.rows = 8, .weight_decay = 0.25f});
  (void)step(other, 8, 0);
  float w[2][WIDTH * CLASSES];
  (void)step(compiled, 8, 1);
  (void)step(other, 8, 1);
  assert_ok(rondo_compiled_read(compiled, "w", w[0], sizeof w[0]));
  assert_ok(rondo_compiled_read(other, "w", w[1], sizeof w[1]));
  assert_memory_not_equal(w[0], w[1], sizeof w[0]); /* the decay is another one */
}

TEST(test_fw6_another_topology_is_instantiated_again) {
  float side[8 * CLASSES], w[2][WIDTH * CLASSES];
  rondo_compiled *compiled = compile(t, (shape_of_step){.rows = 8});
  (void)step(compiled, 8, 0);
  assert_ok(rondo_compiled_read(compiled, "w", w[0], sizeof w[0]));
  rondo_recompile_result result = recompile(compiled, (shape_of_step){.rows = 8, .is_deeper = true});
  assert_false(result.updated);
  assert_int_equal(result.reason, RONDO_REASON_TOPOLOGY_CHANGED);
  assert_counts(compiled, 2, 0, 2);
  assert_ok(rondo_compiled_read(compiled, "w", w[1], sizeof w[1]));
  assert_memory_equal(w[0], w[1], sizeof w[0]);
  (void)step(compiled, 8, 1);
  assert_ok(rondo_compiled_read(compiled, "side", side, sizeof side));
  assert_near(&(float){side[0] + side[1] + side[2] + side[3]}, &(float){1}, 1, 1e-6f);
  result = recompile(compiled, (shape_of_step){.rows = 8});
  assert_false(result.updated);
  assert_counts(compiled, 3, 0, 3);
}

TEST(test_fw6_the_arena_grows_and_is_used_again) {
  rondo_compiled *compiled = compile(t, (shape_of_step){.rows = 2});
  const uint32_t live = test_memory_statistics(t).live_allocations;
  for (int i = 0; i < 3; i++) {
    (void)recompile(compiled, (shape_of_step){.rows = 64});
    (void)step(compiled, 64, i);
    (void)recompile(compiled, (shape_of_step){.rows = 2});
    (void)step(compiled, 2, i);
    assert_int_equal(test_memory_statistics(t).live_allocations, live);
  }
}

/* Those of a CPU are, without a run; cpu:check looks at what they access. */
static bool kernels_are_ready(void) { return test_device_is("cpu") && !test_device_is("cpu:check"); }

/* What does not depend on sizes is reused: memory is planned without a search, nothing is run to warm up. The bits are
 * those of a program that was compiled alone. */
TEST(test_pr6_another_batch_size_reuses_plans_and_warm_up) {
  static const size_t rows[] = {16, 24, 40, 16};
  rondo_compiled *compiled = compile(t, (shape_of_step){.rows = 16, .is_deeper = true});
  rondo_compiled *alone = compile(t, (shape_of_step){.rows = 16, .is_deeper = true});
  assert_int_equal(test_compiled_info(compiled).reused_plans, 0);
  assert_true(test_compiled_info(compiled).skipped_warm_up == kernels_are_ready());
  for (int i = 0; i < 4; i++) {
    if (i > 0) (void)recompile(compiled, (shape_of_step){.rows = rows[i], .is_deeper = true});
    const rondo_compiled_info info = test_compiled_info(compiled);
    if (i > 0) assert_true(info.reused_plans > 0);
    const bool is_checked = test_device_is("cpu:check"); /* which looks at what kernels access */
    if (i > 0) assert_true(info.skipped_warm_up != is_checked);
    rondo_compiled *fresh = compile(t, (shape_of_step){.rows = rows[i], .is_deeper = true});
    assert_true((double)info.arena_bytes <= 1.05 * (double)test_compiled_info(fresh).arena_bytes);
    if (rows[i] != 16) continue;
    for (int k = 0; k < 3; k++) {
      const float wanted = step(alone, 16, k), got = step(compiled, 16, k);
      assert_memory_equal(&got, &wanted, sizeof got);
    }
  }
}

/* A program of another structure is planned by itself. */
TEST(test_pr6_another_structure_reuses_no_plan) {
  rondo_compiled *compiled = compile(t, (shape_of_step){.rows = 8});
  (void)recompile(compiled, (shape_of_step){.rows = 8, .is_deeper = true});
  assert_int_equal(test_compiled_info(compiled).reused_plans, 0);
  assert_true(test_compiled_info(compiled).skipped_warm_up == kernels_are_ready()); /* no softmax had been run */
  (void)recompile(compiled, (shape_of_step){.rows = 12});
  assert_true(test_compiled_info(compiled).reused_plans > 0);
}

/* Two states, each in a group with its own decay. Updates with one decay are joined into one kernel, because their
 * gradients are small in comparison with x. */
static rondo_program *make_groups(const float *decays) {
  rondo_program *program = test_named_program("groups");
  static const size_t width = 4, many = 65536;
  rondo_value states[2], loss, rate, x;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, &many, 1, &x));
  assert_ok(rondo_op_tanh(program, x, &x));
  assert_ok(rondo_op_sum(program, x, NULL, 0, false, &x));
  assert_ok(rondo_program_state(program, "a", RONDO_F32, &width, 1, &states[0]));
  assert_ok(rondo_program_state(program, "b", RONDO_F32, &width, 1, &states[1]));
  assert_ok(rondo_program_cell(program, "rate", 0.5f, &rate));
  assert_ok(rondo_op_add(program, states[0], states[1], &loss));
  assert_ok(rondo_op_square(program, loss, &loss));
  assert_ok(rondo_op_sum(program, loss, NULL, 0, false, &loss));
  assert_ok(rondo_op_add(program, loss, x, &loss));
  const rondo_parameter_group groups[] = {{.states = &states[0], .state_count = 1, .weight_decay = decays[0]},
                                          {.states = &states[1], .state_count = 1, .weight_decay = decays[1]}};
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate, .groups = groups, .group_count = 2};
  assert_ok(rondo_program_sgd(program, loss, &sgd));
  return program;
}

/* Updates that an earlier program joined have other decays here. */
TEST(test_pr6_operations_with_other_constants_are_not_joined) {
  static const float decays[][2] = {{0.25f, 0.25f}, {0.25f, 0.5f}}, a[4] = {1, 1, 1, 1}, b[4] = {2, 2, 2, 2};
  rondo_program *program = make_groups(decays[0]), *other = make_groups(decays[1]);
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  const uint32_t kernels = test_compiled_info(compiled).kernels;
  assert_ok(rondo_compiled_recompile(compiled, other, NULL));
  assert_int_equal(test_compiled_info(compiled).kernels, kernels + 1);
  rondo_program_destroy(other);
  assert_ok(rondo_compiled_write(compiled, "a", a, sizeof a));
  assert_ok(rondo_compiled_write(compiled, "b", b, sizeof b));
  assert_ok(rondo_compiled_run(compiled));
  float got[2][4];
  assert_ok(rondo_compiled_read(compiled, "a", got[0], sizeof got[0]));
  assert_ok(rondo_compiled_read(compiled, "b", got[1], sizeof got[1]));
  for (int i = 0; i < 4; i++) {
    assert_true(got[0][i] == 1 - 0.5f * (6 + 0.25f * 1));
    assert_true(got[1][i] == 2 - 0.5f * (6 + 0.5f * 2));
  }
}

TEST(test_fw6_what_is_not_recorded_stays_so) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER};
  rondo_compiled *compiled = compile_with(t, (shape_of_step){.rows = 2}, &options);
  const rondo_recompile_result result = recompile(compiled, (shape_of_step){.rows = 5});
  assert_false(result.updated);
  assert_int_equal(result.reason, RONDO_REASON_NONE);
  assert_counts(compiled, 0, 0, 0);
  assert_null(rondo_compiled_exec(compiled));
  assert_true(isfinite(step(compiled, 5, 0)));
}

/* Staged values stay staged, by their names, and programs that share continue. */
TEST(test_fw6_staging_and_sharing_hold_on) {
  const rondo_staged_value staged[] = {
      {"x", RONDO_STAGING_DEVICE}, {"labels", RONDO_STAGING_HOST}, {"loss", RONDO_STAGING_HOST}};
  rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .staged = staged, .staged_count = 3};
  rondo_compiled *plain = compile(t, (shape_of_step){.rows = 4}), *fed = NULL;
  rondo_compiled *sharer = compile_with(t, (shape_of_step){.rows = 4}, &options);
  options.share = sharer;
  rondo_program *program = make_program((shape_of_step){.rows = 7});
  assert_ok(rondo_compile(program, t->device, &options, &fed));
  rondo_program_destroy(program);
  (void)recompile(plain, (shape_of_step){.rows = 2});
  (void)recompile(sharer, (shape_of_step){.rows = 2});
  for (int i = 0; i < 4; i++) {
    float wanted = step(plain, 2, i), got = step(sharer, 2, i);
    assert_memory_equal(&got, &wanted, sizeof got);
    (void)recompile(plain, (shape_of_step){.rows = 7});
    wanted = step(plain, 7, i), got = step(fed, 7, i);
    assert_memory_equal(&got, &wanted, sizeof got);
    (void)recompile(plain, (shape_of_step){.rows = 2});
  }
  assert_int_equal(test_compiled_info(sharer).staging_device_bytes, 256);
  assert_ok(rondo_compiled_destroy(plain));
  assert_ok(rondo_compiled_destroy(sharer));
  assert_true(isfinite(step(fed, 7, 0)));
  assert_ok(rondo_compiled_destroy(fed));
}

/* Errors ----------------------------------------------------------------------------------------------------------- */

static rondo_program *make_wrong_program(void) {
  rondo_program *program = test_new_program();
  rondo_value w;
  assert_ok(rondo_program_state(program, "w", RONDO_F32, (const size_t[]){2}, 1, &w));
  assert_ok(rondo_program_output(program, "all", w));
  return program;
}

TEST(test_fw6_errors_leave_what_there_was) {
  rondo_compiled *compiled = compile(t, (shape_of_step){.rows = 4}), *twin = compile(t, (shape_of_step){.rows = 4});
  rondo_program *wrong = make_wrong_program(), *empty = NULL;
  assert_ok(rondo_program_create(NULL, &empty));
  assert_invalid(rondo_compiled_recompile(NULL, wrong, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_compiled_recompile(compiled, NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_compiled_recompile(compiled, wrong, NULL), RONDO_REASON_SHAPE);
  assert_invalid(rondo_compiled_recompile(compiled, empty, NULL), RONDO_REASON_NONE);
  assert_ok(rondo_capture_begin(rondo_compiled_stream(compiled), RONDO_CAPTURE_THREAD_LOCAL));
  assert_error(rondo_compiled_recompile(compiled, wrong, NULL), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL);
  rondo_graph *graph = test_capture_end(rondo_compiled_stream(compiled));
  test_graph_destroy(graph);
  assert_counts(compiled, 1, 0, 1);
  const float wanted = step(twin, 4, 0), got = step(compiled, 4, 0);
  assert_memory_equal(&got, &wanted, sizeof got);
  rondo_program_destroy(empty);
}

TEST(test_fw6_a_staged_value_that_is_gone_or_mapped_is_refused) {
  void *address;
  const rondo_staged_value staged = {"x", RONDO_STAGING_HOST};
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .staged = &staged, .staged_count = 1};
  rondo_compiled *compiled = compile_with(t, (shape_of_step){.rows = 4}, &options);
  rondo_program *program = test_new_program();
  rondo_value w;
  assert_ok(rondo_program_state(program, "w", RONDO_F32, (const size_t[]){WIDTH, CLASSES}, 2, &w));
  assert_ok(rondo_op_tanh(program, w, &w));
  assert_ok(rondo_program_output(program, "y", w));
  assert_error(rondo_compiled_recompile(compiled, program, NULL), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
  assert_message("'x'");
  assert_ok(rondo_compiled_map(compiled, "x", NULL, &address));
  assert_error(try_recompile(compiled, (shape_of_step){.rows = 2}, NULL), RONDO_INVALID_STATE,
               RONDO_REASON_STILL_IN_USE);
  assert_ok(rondo_compiled_unmap(compiled, "x"));
  assert_true(isfinite(step(compiled, 4, 0)));
}
