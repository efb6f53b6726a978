/* SPDX-License-Identifier: MIT
 * Compiled programs that share (FW-9; sessions use this): states by their names, one arena, one stream. Values that one
 * program overwrites for another are refused and not returned (RC-5). Programs are destroyed in every order. Every
 * difference is refused, and then states are unchanged.
 */
#include <math.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

enum { FEATURES = 3, CLASSES = 4, MOST_ROWS = 8 };

static const rondo_value none = {0};

/* y = tanh(x w) of so many rows. */
static rondo_program *make_layer(size_t rows, rondo_value *out_y) {
  rondo_program *program = test_named_program(rows == MOST_ROWS ? "large" : "small");
  const rondo_value x = test_value(program, 'i', "x", rows, FEATURES);
  const rondo_value w = test_value(program, 's', "w", FEATURES, CLASSES);
  assert_ok(rondo_op_matmul(program, x, w, none, out_y));
  assert_ok(rondo_op_tanh(program, *out_y, out_y));
  assert_ok(rondo_program_output(program, "y", *out_y));
  return program;
}

static rondo_status try_compile(test_fixture *t, rondo_program *program, rondo_compiled *share, rondo_compiled **out) {
  rondo_stream *stream = share == NULL && test_adopts_streams() ? test_adopted_stream(t->device, NULL) : NULL;
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .share = share, .stream = stream};
  const rondo_status status = rondo_compile(program, t->device, &options, out);
  rondo_program_destroy(program);
  return status;
}

static rondo_compiled *compile(test_fixture *t, rondo_program *program, rondo_compiled *share) {
  rondo_compiled *compiled = NULL;
  assert_ok(try_compile(t, program, share, &compiled));
  return compiled;
}

static rondo_compiled *compile_layer(test_fixture *t, size_t rows, rondo_compiled *share) {
  rondo_value y;
  return compile(t, make_layer(rows, &y), share);
}

/* A layer and what trains it: Adam, whose moments are states too. */
static rondo_compiled *compile_training(test_fixture *t, size_t rows, rondo_compiled *share) {
  rondo_value y, labels, loss, rate;
  rondo_program *program = make_layer(rows, &y);
  assert_ok(rondo_program_input(program, "labels", RONDO_I32, &rows, 1, &labels));
  assert_ok(rondo_program_cell(program, "rate", 0.125f, &rate));
  assert_ok(rondo_op_cross_entropy(program, y, labels, &loss));
  assert_ok(rondo_program_output(program, "loss", loss));
  const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate};
  assert_ok(rondo_program_adam(program, loss, &adam));
  return compile(t, program, share);
}

static const void *state_of(const rondo_compiled *compiled, const char *name) {
  return test_compiled_value(compiled, 's', name).address;
}

static const float weights[FEATURES * CLASSES] = {0.1f, 0.2f, 0.3f, 0.4f, 1, 2, 3, 4, -1, -2, -3, -4};

static void write_weights(rondo_compiled *compiled) {
  assert_ok(rondo_compiled_write(compiled, "w", weights, sizeof weights));
}

/* Row i of x is i + shift in its first place, and zeros. */
static void write_rows(rondo_compiled *compiled, size_t rows, float shift) {
  float x[MOST_ROWS * FEATURES] = {0};
  for (size_t i = 0; i < rows; i++) x[i * FEATURES] = (float)i + shift;
  assert_ok(rondo_compiled_write(compiled, "x", x, rows * FEATURES * sizeof *x));
}

static void assert_rows(rondo_compiled *compiled, size_t rows, float shift) {
  float y[MOST_ROWS * CLASSES], wanted[MOST_ROWS * CLASSES];
  for (size_t i = 0; i < rows * CLASSES; i++) wanted[i] = tanhf(((float)(i / CLASSES) + shift) * weights[i % CLASSES]);
  assert_ok(rondo_compiled_read(compiled, "y", y, rows * CLASSES * sizeof *y));
  assert_near(y, wanted, rows * CLASSES, 1e-6f);
}

static void write_labels(rondo_compiled *compiled, size_t rows) {
  int32_t labels[MOST_ROWS];
  for (size_t i = 0; i < rows; i++) labels[i] = (int32_t)(i % CLASSES);
  assert_ok(rondo_compiled_write(compiled, "labels", labels, rows * sizeof *labels));
}

static float train(rondo_compiled *compiled, size_t rows) {
  float loss;
  write_rows(compiled, rows, -1);
  write_labels(compiled, rows);
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "loss", &loss, sizeof loss));
  return loss;
}

/* States, arena, stream -------------------------------------------------------------------------------------------- */

TEST(test_fw9_sharers_have_states_arena_and_stream_in_common) {
  rondo_compiled *large = compile_layer(t, MOST_ROWS, NULL);
  write_weights(large);
  rondo_compiled *small = compile_layer(t, 2, large);
  assert_ptr_equal(rondo_compiled_stream(small), rondo_compiled_stream(large));
  assert_ptr_equal(state_of(small, "w"), state_of(large, "w"));
  const rondo_compiled_info mine = test_compiled_info(small), theirs = test_compiled_info(large);
  assert_int_equal(theirs.shared_bytes, 0);
  assert_int_equal(mine.shared_bytes, 256 + mine.arena_bytes);
  for (int round = 0; round < 3; round++) {
    write_rows(small, 2, (float)round);
    assert_ok(rondo_compiled_run(small));
    assert_rows(small, 2, (float)round);
    write_rows(large, MOST_ROWS, (float)round);
    assert_ok(rondo_compiled_run_eager(large));
    assert_rows(large, MOST_ROWS, (float)round);
  }
  assert_ok(rondo_compiled_destroy(large));
  write_rows(small, 2, 1);
  assert_ok(rondo_compiled_run(small));
  assert_rows(small, 2, 1);
  assert_ok(rondo_compiled_destroy(small));
}

/* The memory of several is that of the largest. */
TEST(test_fw9_sharers_hold_memory_once) {
  rondo_compiled *all[4] = {compile_layer(t, MOST_ROWS, NULL)};
  const uint32_t live = test_memory_statistics(t).live_allocations;
  for (size_t i = 1; i < 4; i++) all[i] = compile_layer(t, MOST_ROWS - i, all[i - 1]);
  assert_int_equal(test_memory_statistics(t).live_allocations, live);
  for (size_t i = 0; i < 4; i++) assert_ok(rondo_compiled_destroy(all[i]));
}

/* States alone: two programs that may run in parallel, whichever is destroyed first. */
TEST(test_sharing_states_only_has_a_stream_and_an_arena_of_its_own) {
  rondo_compiled *first = compile_layer(t, 3, NULL), *second = NULL;
  rondo_value y;
  rondo_program *program = make_layer(4, &y);
  write_weights(first);
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .share = first, .share_states_only = true};
  assert_ok(rondo_compile(program, t->device, &options, &second));
  rondo_program_destroy(program);
  rondo_compiled *third = compile_layer(t, 2, second); /* all of the second's */
  assert_ptr_equal(state_of(first, "w"), state_of(second, "w"));
  assert_ptr_equal(state_of(first, "w"), state_of(third, "w"));
  assert_ptr_not_equal(rondo_compiled_stream(first), rondo_compiled_stream(second));
  assert_ptr_equal(rondo_compiled_stream(second), rondo_compiled_stream(third));
  write_rows(first, 3, 1);
  write_rows(second, 4, 2);
  assert_ok(rondo_compiled_run(first));
  assert_ok(rondo_compiled_run(second));
  assert_rows(second, 4, 2);
  assert_rows(first, 3, 1); /* nothing overwrote it */
  assert_ok(rondo_compiled_destroy(first));
  write_rows(third, 2, 3);
  assert_ok(rondo_compiled_run(third));
  assert_rows(third, 2, 3);
  assert_ok(rondo_compiled_destroy(second));
  assert_ok(rondo_compiled_destroy(third));
}

TEST(test_fw9_a_larger_sharer_has_an_arena_of_its_own_that_later_ones_use) {
  rondo_compiled *small = compile_layer(t, 2, NULL);
  rondo_compiled *large = compile_layer(t, 200, small);
  rondo_compiled *middle = compile_layer(t, 100, small);
  assert_int_equal(test_compiled_info(large).shared_bytes, 256);
  assert_int_equal(test_compiled_info(middle).shared_bytes, 256 + test_compiled_info(middle).arena_bytes);
  write_weights(middle);
  write_rows(small, 2, 0);
  assert_ok(rondo_compiled_run(small));
  float x[200 * FEATURES] = {0};
  assert_ok(rondo_compiled_write(large, "x", x, sizeof x));
  assert_ok(rondo_compiled_run(large));
  assert_rows(small, 2, 0);
  assert_ok(rondo_compiled_destroy(small));
  assert_ok(rondo_compiled_run(large));
  assert_ok(rondo_compiled_destroy(large));
  assert_ok(rondo_compiled_destroy(middle));
}

TEST(test_sharing_keeps_states_through_the_warm_up_and_trains_them_together) {
  rondo_compiled *alone[2] = {compile_training(t, MOST_ROWS, NULL), NULL};
  rondo_compiled *both[2] = {compile_training(t, MOST_ROWS, NULL), NULL};
  write_weights(alone[0]);
  write_weights(both[0]);
  float wanted[6], losses[6], w[2][FEATURES * CLASSES];
  for (int i = 0; i < 6; i++) wanted[i] = train(alone[0], MOST_ROWS);
  for (int i = 0; i < 2; i++) losses[i] = train(both[0], MOST_ROWS);
  both[1] = compile_training(t, MOST_ROWS, both[0]);
  for (int i = 2; i < 6; i++) losses[i] = train(both[i % 2], MOST_ROWS);
  assert_memory_equal(losses, wanted, sizeof wanted);
  assert_ok(rondo_compiled_read(alone[0], "w", w[0], sizeof w[0]));
  assert_ok(rondo_compiled_read(both[1], "w", w[1], sizeof w[1]));
  assert_memory_equal(w[0], w[1], sizeof w[0]);
  for (int i = 0; i < 2; i++) {
    assert_ok(rondo_compiled_destroy(both[i]));
    assert_ok(rondo_compiled_destroy(alone[i]));
  }
}

/* States that only the second has are added, and a third program finds them. */
TEST(test_sharing_adds_states_and_cells_that_are_new) {
  rondo_compiled *layer = compile_layer(t, MOST_ROWS, NULL);
  write_weights(layer);
  rondo_compiled *first = compile_training(t, MOST_ROWS, layer);
  float rate = 0;
  assert_ok(rondo_compiled_read(first, "rate", &rate, sizeof rate));
  assert_float_equal(rate, 0.125f, 0);
  assert_ok(rondo_compiled_write(first, "rate", (const float[]){0.5f}, sizeof rate));
  rondo_compiled *second = compile_training(t, 2, first);
  assert_ok(rondo_compiled_read(second, "rate", &rate, sizeof rate));
  assert_float_equal(rate, 0.5f, 0);
  assert_ptr_equal(state_of(first, "w.m"), state_of(second, "w.m"));
  assert_ok(rondo_compiled_destroy(first));
  assert_true(isfinite(train(second, 2)));
  assert_ok(rondo_compiled_destroy(second));
  assert_ok(rondo_compiled_destroy(layer));
}

/* What is overwritten ---------------------------------------------------------------------------------------------- */

TEST(test_rc5_an_input_that_another_program_overwrote_is_refused) {
  rondo_compiled *large = compile_layer(t, MOST_ROWS, NULL);
  rondo_compiled *small = compile_layer(t, 2, large);
  write_weights(large);
  assert_error(rondo_compiled_run(large), RONDO_INVALID_STATE, RONDO_REASON_OVERWRITTEN);
  assert_message("'x'");
  assert_message("'large'");
  assert_error(rondo_compiled_run_eager(large), RONDO_INVALID_STATE, RONDO_REASON_OVERWRITTEN);
  write_rows(small, 2, 0);
  assert_ok(rondo_compiled_run(small));
  assert_rows(small, 2, 0);
  write_rows(large, MOST_ROWS, 0);
  assert_error(rondo_compiled_run(small), RONDO_INVALID_STATE, RONDO_REASON_OVERWRITTEN);
  assert_ok(rondo_compiled_run(large));
  assert_ok(rondo_compiled_run(large));
  assert_rows(large, MOST_ROWS, 0);
  assert_ok(rondo_compiled_destroy(small));
  assert_ok(rondo_compiled_destroy(large));
}

TEST(test_rc5_all_inputs_are_written_again) {
  rondo_compiled *first = compile_training(t, 4, NULL);
  rondo_compiled *second = compile_training(t, 4, first);
  (void)train(second, 4);
  assert_error(rondo_compiled_run(first), RONDO_INVALID_STATE, RONDO_REASON_OVERWRITTEN);
  assert_message("the first of 2, is in memory that another program has used");
  write_rows(first, 4, 0);
  assert_error(rondo_compiled_run(first), RONDO_INVALID_STATE, RONDO_REASON_OVERWRITTEN);
  assert_message("'labels'");
  write_labels(first, 4);
  assert_ok(rondo_compiled_run(first));
  assert_ok(rondo_compiled_destroy(first));
  assert_error(rondo_compiled_run_eager(second), RONDO_INVALID_STATE, RONDO_REASON_OVERWRITTEN);
  assert_ok(rondo_compiled_destroy(second));
}

TEST(test_rc5_an_output_that_another_program_overwrote_is_refused) {
  rondo_compiled *large = compile_layer(t, MOST_ROWS, NULL);
  rondo_compiled *small = compile_layer(t, 2, large);
  float y[MOST_ROWS * CLASSES];
  write_rows(large, MOST_ROWS, 0);
  assert_ok(rondo_compiled_run(large));
  write_rows(small, 2, 0);
  assert_error(rondo_compiled_read(large, "y", y, sizeof y), RONDO_INVALID_STATE, RONDO_REASON_OVERWRITTEN);
  assert_message("'y'");
  assert_message("'large'");
  write_rows(large, MOST_ROWS, 0);
  assert_error(rondo_compiled_read(large, "y", y, sizeof y), RONDO_INVALID_STATE, RONDO_REASON_OVERWRITTEN);
  assert_ok(rondo_compiled_run(large));
  assert_ok(rondo_compiled_read(large, "y", y, sizeof y));
  assert_ok(rondo_compiled_destroy(large));
  assert_error(rondo_compiled_read(small, "y", y, 2 * CLASSES * sizeof *y), RONDO_INVALID_STATE,
               RONDO_REASON_OVERWRITTEN);
  assert_ok(rondo_compiled_destroy(small));
}

/* Refusals --------------------------------------------------------------------------------------------------------- */

TEST(test_sharing_refuses_states_that_differ) {
  rondo_compiled *layer = compile_layer(t, MOST_ROWS, NULL), *other = layer;
  write_weights(layer);
  const struct {
    rondo_type type;
    size_t rows;
    rondo_reason reason;
  } wrong[] = {{RONDO_F32, 5, RONDO_REASON_SHAPE}, {RONDO_I32, FEATURES, RONDO_REASON_TYPE}};
  for (size_t i = 0; i < 2; i++) {
    rondo_program *program = test_new_program();
    rondo_value w;
    assert_ok(rondo_program_state(program, "w", wrong[i].type, (const size_t[]){wrong[i].rows, CLASSES}, 2, &w));
    assert_ok(rondo_program_output(program, "all of w", w));
    assert_invalid(try_compile(t, program, layer, &other), wrong[i].reason);
    assert_message("'w'");
    assert_message("[3, 4]");
    assert_null(other);
  }
  rondo_program *program = test_new_program();
  rondo_value w;
  assert_ok(rondo_program_cell(program, "w", 1, &w));
  assert_ok(rondo_program_output(program, "w too", w));
  assert_invalid(try_compile(t, program, layer, &other), RONDO_REASON_DUPLICATE_NAME);
  write_rows(layer, MOST_ROWS, 0);
  assert_ok(rondo_compiled_run(layer));
  assert_rows(layer, MOST_ROWS, 0);
  assert_ok(rondo_compiled_destroy(layer));
}

TEST(test_sharing_refuses_another_device) {
  rondo_value y;
  rondo_compiled *layer = compile_layer(t, 2, NULL), *other = NULL;
  rondo_device *device = test_device("cpu", NULL);
  rondo_program *program = make_layer(2, &y);
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .share = layer};
  assert_invalid(rondo_compile(program, device, &options, &other), RONDO_REASON_OTHER_DEVICE);
  assert_message("programs that share must be compiled for one rondo_device");
  rondo_program_destroy(program);
  assert_ok(rondo_compiled_destroy(layer));
}

TEST(test_rc5_sharing_is_refused_while_the_stream_captures) {
  rondo_value y;
  rondo_compiled *layer = compile_layer(t, 2, NULL), *other = NULL;
  assert_ok(rondo_capture_begin(rondo_compiled_stream(layer), RONDO_CAPTURE_THREAD_LOCAL));
  assert_error(try_compile(t, make_layer(2, &y), layer, &other), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL);
  assert_ok(rondo_compiled_run(layer));
  rondo_graph *graph = test_capture_end(rondo_compiled_stream(layer));
  assert_ok(rondo_graph_destroy(graph));
  assert_ok(rondo_compiled_destroy(layer));
}
