/* SPDX-License-Identifier: MIT
 * PR-8: kernels at sizes of ordinary networks have blocks for a large GPU: gradients of few weights, batch_norm of one
 * image and of a training step. Updates of running statistics are one kernel.
 */
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"
#include "tensor/run/compiled.h"

enum { PROCESSORS = 100 }; /* of a large GPU, about */

/* Kernels of an operator, and the fewest blocks of one. */
typedef struct step_sizes {
  size_t count, blocks;
} step_sizes;

static step_sizes sizes_of(const rondo_compiled *compiled, const char *operator_name) {
  step_sizes found = {0, SIZE_MAX};
  for (size_t i = 0; i < compiled->steps.count; i++) {
    const rondo_step *step = &compiled->steps.items[i];
    if (strcmp(step->operator_name, operator_name) != 0) continue;
    found.count++;
    if (step->grid.x < found.blocks) found.blocks = step->grid.x;
  }
  return found;
}

static void assert_fills(const rondo_compiled *compiled, const char *operator_name) {
  const step_sizes found = sizes_of(compiled, operator_name);
  if (found.count == 0 || found.blocks < PROCESSORS)
    fail_msg("%s: %zu kernels, the smallest of %zu blocks", operator_name, found.count, found.blocks);
}

static rondo_compiled *compile(test_fixture *t, rondo_program *program) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .own_kernels = true};
  rondo_compiled *compiled = NULL;
  assert_ok(rondo_compile(program, t->device, &options, &compiled));
  rondo_program_destroy(program);
  return compiled;
}

static rondo_program *start(const size_t *shape, rondo_value *out_x) {
  rondo_program *program = NULL;
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 4, out_x));
  return program;
}

TEST(test_gradients_of_few_weights) {
  rondo_value x, weight, y, loss, gradient;
  rondo_program *program = start((const size_t[]){4, 1, 64, 64}, &x);
  assert_ok(rondo_program_input(program, "weight", RONDO_F32, (const size_t[]){40, 1, 3, 3}, 4, &weight));
  const rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT, .padding = {1, 1}};
  assert_ok(rondo_op_conv(program, x, weight, &options, &y));
  assert_ok(rondo_op_mean(program, y, NULL, 0, false, &loss));
  assert_ok(rondo_program_gradients(program, loss, &weight, 1, &gradient));
  assert_ok(rondo_program_output(program, "gradient", gradient));
  rondo_compiled *compiled = compile(t, program);
  const step_sizes found = sizes_of(compiled, "conv_weight_gradient");
  assert_int_equal(found.count, 2); /* parts, and their sums */
  assert_true(found.blocks >= 40 * 9 / 8);
  assert_ok(rondo_compiled_destroy(compiled));
}

static rondo_value normalize(rondo_program *program, rondo_value x, const char *const *names, bool inference) {
  rondo_batch_norm_options options = {RONDO_BATCH_NORM_OPTIONS_INIT, .momentum = 0.1f, .inference = inference};
  rondo_value y;
  assert_ok(rondo_program_state(program, names[0], RONDO_F32, (const size_t[]){64}, 1, &options.running_mean));
  assert_ok(rondo_program_state(program, names[1], RONDO_F32, (const size_t[]){64}, 1, &options.running_variance));
  assert_ok(rondo_op_batch_norm(program, x, &options, &y));
  return y;
}

TEST(test_batch_norm_of_one_image) {
  rondo_value x;
  rondo_program *program = start((const size_t[]){1, 64, 112, 112}, &x);
  assert_ok(rondo_program_output(program, "y", normalize(program, x, (const char *const[]){"mean", "var"}, true)));
  rondo_compiled *compiled = compile(t, program);
  assert_fills(compiled, "batch_norm");
  assert_ok(rondo_compiled_destroy(compiled));
}

TEST(test_batch_norm_of_a_training_step) {
  rondo_value x, y, loss, gradient;
  rondo_program *program = start((const size_t[]){8, 64, 32, 32}, &x);
  y = normalize(program, x, (const char *const[]){"mean 1", "var 1"}, false);
  y = normalize(program, y, (const char *const[]){"mean 2", "var 2"}, false);
  assert_ok(rondo_op_mean(program, y, NULL, 0, false, &loss));
  assert_ok(rondo_program_gradients(program, loss, &x, 1, &gradient));
  assert_ok(rondo_program_output(program, "gradient", gradient));
  rondo_compiled *compiled = compile(t, program);
  assert_fills(compiled, "batch_norm");
  assert_fills(compiled, "batch_norm_gradient");
  assert_int_equal(sizes_of(compiled, "batch_norm_update").count, 1);
  assert_ok(rondo_compiled_destroy(compiled));
}
