/* SPDX-License-Identifier: MIT
 * Lets every host allocation fail while operators that are made of several operations are added to a program, which is
 * then differentiated, compiled and run (PR-8). The error is OUT_OF_MEMORY, nothing is left, and what was returned is
 * valid or no value.
 */
#include <string.h>

#include "fault/fault_allocations.h"

enum { STEPS = 3, BATCH = 2, STATES = 4 };

static struct {
  rondo_program *program;
  rondo_compiled *compiled;
} made;

/* A failed call leaves no value. */
#define ADD(call, value)                                 \
  do {                                                   \
    const rondo_status added = (call);                   \
    if (added != RONDO_OK) assert_true((value).id == 0); \
    TRY(added);                                          \
  } while (0)

static rondo_status add_network(rondo_value x, rondo_value *out_value) {
  rondo_recurrent_weights weights[2] = {{.input = {0}}, {.input = {0}}};
  const rondo_recurrent_options options = {RONDO_RECURRENT_OPTIONS_INIT, .bidirectional = true, .batch_first = true};
  const size_t shape[] = {3 * STATES, STATES};
  for (int i = 0; i < 2; i++) {
    TRY(rondo_program_state(made.program, i == 0 ? "w" : "w reverse", RONDO_F32, shape, 2, &weights[i].input));
    TRY(rondo_program_state(made.program, i == 0 ? "u" : "u reverse", RONDO_F32, shape, 2, &weights[i].hidden));
    TRY(rondo_program_state(made.program, i == 0 ? "b" : "b reverse", RONDO_F32, shape, 1, &weights[i].hidden_bias));
  }
  rondo_value last = {0};
  ADD(rondo_op_gru(made.program, x, weights, &options, out_value, &last), *out_value);
  return RONDO_OK;
}

static rondo_status add_image(rondo_value x, rondo_value *out_value) {
  const size_t image[] = {1, BATCH, STEPS, 2 * STATES}, kernel[] = {BATCH, BATCH, 2, 2};
  rondo_interpolate_options larger = {RONDO_INTERPOLATE_OPTIONS_INIT, .mode = RONDO_INTERPOLATE_LINEAR, .size = {5, 7}};
  rondo_conv_transpose_options wide = {RONDO_CONV_TRANSPOSE_OPTIONS_INIT, .stride = {2, 2}};
  rondo_value y, weight, scale;
  TRY(rondo_program_state(made.program, "kernel", RONDO_F32, kernel, 4, &weight));
  TRY(rondo_program_state(made.program, "scale", RONDO_F32, (const size_t[]){BATCH}, 1, &scale));
  TRY(rondo_op_reshape(made.program, x, image, 4, &y));
  wide.bias = scale;
  ADD(rondo_op_conv_transpose(made.program, y, weight, &wide, &y), y);
  ADD(rondo_op_group_norm(made.program, y, 1, scale, scale, 0, &y), y);
  ADD(rondo_op_interpolate(made.program, y, &larger, &y), y);
  ADD(rondo_op_pad(made.program, y, (const int64_t[]){0, 0, 1, 1}, (const int64_t[]){0, 0, 2, 2}, RONDO_PAD_REFLECT, 0,
                   out_value),
      *out_value);
  return RONDO_OK;
}

static rondo_status add_draw(rondo_value x, rondo_value *out_value) {
  const rondo_categorical_options options = {RONDO_CATEGORICAL_OPTIONS_INIT, .top_k = 2, .top_p = 0.5f};
  const size_t rows = BATCH * STEPS;
  rondo_value logits, seeds, counters;
  TRY(rondo_op_reshape(made.program, x, (size_t[]){rows, STATES}, 2, &logits));
  TRY(rondo_op_full(made.program, RONDO_I64, &rows, 1, 1, &seeds));
  TRY(rondo_op_full(made.program, RONDO_I32, &rows, 1, 2, &counters));
  ADD(rondo_op_categorical(made.program, logits, seeds, counters, &options, out_value), *out_value);
  return RONDO_OK;
}

static rondo_status do_all(fault_rig *rig) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .allocator = &rig->allocator.table};
  const size_t shape[] = {BATCH, STEPS, STATES};
  const float zeros[BATCH * STEPS * STATES] = {0};
  rondo_value x, y, drawn, loss, gradient;
  float result;
  TRY(rondo_program_create(&options, &made.program));
  TRY(rondo_program_input(made.program, "x", RONDO_F32, shape, 3, &x));
  TRY(add_network(x, &y));
  TRY(add_draw(x, &drawn));
  TRY(rondo_program_output(made.program, "drawn", drawn));
  TRY(add_image(y, &y));
  TRY(rondo_op_sum(made.program, y, NULL, 0, false, &loss));
  TRY(rondo_program_gradients(made.program, loss, &x, 1, &gradient));
  TRY(rondo_program_output(made.program, "gradient", gradient));
  TRY(rondo_program_output(made.program, "loss", loss));
  TRY(rondo_compile(made.program, rig->device, NULL, &made.compiled));
  TRY(rondo_compiled_write(made.compiled, "x", zeros, sizeof zeros));
  TRY(rondo_compiled_run(made.compiled));
  return rondo_compiled_read(made.compiled, "loss", &result, sizeof result);
}

static void destroy(void) {
  assert_ok(rondo_compiled_destroy(made.compiled));
  rondo_program_destroy(made.program);
  memset(&made, 0, sizeof made);
}

static const fault_work all = {.run = do_all, .destroy = destroy};

UNIT_TEST(test_pr8_an_allocation_fails) { fault_allocations(&all, false, 1); }

UNIT_TEST(test_pr8_all_allocations_fail_from_then_on) { fault_allocations(&all, true, 5); }
