/* SPDX-License-Identifier: MIT
 * Each allocation of a data-parallel training fails once (MM-4): making the program, compiling it with sharded states
 * and a divided table and accumulated gradients, running it, and gathering and applying a checkpoint. The group has one
 * rank, so nobody waits for a rank that failed.
 */
#include "fault_allocations.h"

enum { ROWS = 4, WORDS = 6, WIDTH = 8, RUNS = 2 };

static struct {
  rondo_communicator *communicator;
  rondo_program *program;
  rondo_compiled *compiled;
  rondo_weights *checkpoint;
} made;

static rondo_status add_model(rondo_value *weights, rondo_value *loss) {
  const size_t rows = ROWS, table[] = {WORDS, WIDTH}, matrix[] = {WIDTH, WORDS};
  rondo_value tokens, labels, x;
  TRY(rondo_program_input(made.program, "tokens", RONDO_I32, &rows, 1, &tokens));
  TRY(rondo_program_input(made.program, "labels", RONDO_I32, &rows, 1, &labels));
  const rondo_state_options divided = {RONDO_STATE_OPTIONS_INIT, .shard_rows = true};
  TRY(rondo_program_state_with(made.program, "table", RONDO_F32, table, 2, &divided, &x));
  TRY(rondo_program_state(made.program, "weights", RONDO_F32, matrix, 2, weights));
  TRY(rondo_op_embedding(made.program, x, tokens, &x));
  TRY(rondo_op_matmul(made.program, x, *weights, (rondo_value){0}, &x));
  TRY(rondo_op_cross_entropy(made.program, x, labels, loss));
  return rondo_program_output(made.program, "loss", *loss);
}

static rondo_status make_program(fault_rig *rig) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .allocator = &rig->allocator.table};
  const rondo_data_parallel_options parallel = {RONDO_DATA_PARALLEL_OPTIONS_INIT, .shard_states = true,
                                                .bucket_bytes = 256, .loss_output = "mean"};
  const rondo_gradient_options gradients = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = RUNS, .max_norm = 1};
  rondo_value weights, loss, rate;
  TRY(rondo_communicator_create_all(&rig->device, 1, NULL, &made.communicator));
  TRY(rondo_program_create(&options, &made.program));
  TRY(rondo_program_data_parallel(made.program, made.communicator, &parallel));
  TRY(add_model(&weights, &loss));
  TRY(rondo_program_cell(made.program, "rate", 0.1f, &rate));
  const rondo_rate_options schedule = {RONDO_RATE_OPTIONS_INIT, .rate = 0.1f, .output = "weights.rate"};
  const rondo_parameter_group group = {.states = &weights, .state_count = 1, .schedule = &schedule, .max_norm = 1};
  const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate, .gradients = &gradients,
                                   .groups = &group, .group_count = 1};
  return rondo_program_adam(made.program, loss, &adam);
}

static rondo_status train(fault_rig *rig) {
  float before[WIDTH * WORDS], after[WIDTH * WORDS];
  for (int i = 0; i < WIDTH * WORDS; i++) before[i] = (float)(i % 7) / 8;
  TRY(make_program(rig));
  TRY(rondo_compile(made.program, rig->device, NULL, &made.compiled));
  TRY(rondo_compiled_write(made.compiled, "table", before, sizeof before));
  TRY(rondo_compiled_write(made.compiled, "weights", before, sizeof before));
  TRY(rondo_compiled_broadcast(made.compiled, 0));
  for (int i = 0; i < RUNS; i++) TRY(rondo_compiled_run(made.compiled));
  TRY(rondo_compiled_read(made.compiled, "weights", after, sizeof after));
  assert_memory_not_equal(before, after, sizeof before);
  TRY(rondo_weights_create(&rig->allocator.table, &made.checkpoint));
  TRY(rondo_checkpoint_gather(made.checkpoint, made.compiled));
  return rondo_checkpoint_apply(made.checkpoint, made.compiled);
}

static void destroy(void) {
  rondo_weights_destroy(made.checkpoint);
  const rondo_status status = rondo_compiled_destroy(made.compiled); /* may report the failure of a run */
  (void)status;
  rondo_program_destroy(made.program);
  assert_ok(rondo_communicator_destroy(made.communicator));
  made.checkpoint = NULL;
  made.compiled = NULL;
  made.program = NULL;
  made.communicator = NULL;
}

static const fault_work work = {.run = train, .destroy = destroy};

UNIT_TEST(test_mm4_one_allocation_fails) { fault_allocations(&work, false, 1); }

UNIT_TEST(test_mm4_all_later_allocations_fail) { fault_allocations(&work, true, 5); }
