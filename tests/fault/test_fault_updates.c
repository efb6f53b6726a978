/* SPDX-License-Identifier: MIT
 * Each allocation fails once while a program with what optimizers can do is made, compiled and run: groups with a
 * schedule and a clipping (PR-1), an assignment (PR-3), and the rows of a sparse table that several look-ups read, over
 * two runs (PR-7).
 */
#include "fault_allocations.h"

enum { ROWS = 12, WORDS = 6, WIDTH = 8, LOOK_UPS = 10, RUNS = 2 };

static struct {
  rondo_program *program;
  rondo_compiled *compiled;
} made;

/* The sum of all rows that are looked up, one index after the other, times the weights. */
static rondo_status add_model(rondo_value *weights, rondo_value *loss) {
  const size_t indices = ROWS, one = 1, table[] = {WORDS, WIDTH}, matrix[] = {WIDTH, 1};
  const rondo_state_options sparse = {RONDO_STATE_OPTIONS_INIT, .sparse = true};
  rondo_value tokens, words, x = {0}, part;
  TRY(rondo_program_input(made.program, "tokens", RONDO_I32, &indices, 1, &tokens));
  TRY(rondo_program_state_with(made.program, "table", RONDO_F32, table, 2, &sparse, &words));
  TRY(rondo_program_state(made.program, "weights", RONDO_F32, matrix, 2, weights));
  for (size_t i = 0; i < LOOK_UPS; i++) {
    TRY(rondo_op_slice(made.program, tokens, &i, &one, NULL, &part));
    TRY(rondo_op_embedding(made.program, words, part, &part));
    if (i > 0) TRY(rondo_op_add(made.program, x, part, &part));
    x = part;
  }
  TRY(rondo_op_matmul(made.program, x, *weights, (rondo_value){0}, loss));
  TRY(rondo_op_square(made.program, *loss, loss));
  TRY(rondo_op_reshape(made.program, *loss, NULL, 0, loss));
  return rondo_program_output(made.program, "loss", *loss);
}

static rondo_status add_updates(rondo_value weights, rondo_value loss) {
  const size_t matrix[] = {WIDTH, 1};
  const rondo_state_options frozen = {RONDO_STATE_OPTIONS_INIT, .frozen = true};
  const rondo_rate_options schedule = {RONDO_RATE_OPTIONS_INIT, .rate = 0.1f, .output = "weights.rate"};
  const rondo_parameter_group group = {.states = &weights, .state_count = 1, .schedule = &schedule, .max_norm = 1};
  const rondo_gradient_options accumulated = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = RUNS};
  rondo_value average, rate;
  TRY(rondo_program_cell(made.program, "rate", 0.1f, &rate));
  TRY(rondo_program_state_with(made.program, "average", RONDO_F32, matrix, 2, &frozen, &average));
  TRY(rondo_program_assign(made.program, average, weights));
  const rondo_adagrad_options adagrad = {
      RONDO_ADAGRAD_OPTIONS_INIT, .learning_rate = rate, .rate_decay = 0.5f, .gradients = &accumulated,
      .initial_sum = 0.1f,        .groups = &group,      .group_count = 1};
  return rondo_program_adagrad(made.program, loss, &adagrad);
}

static rondo_status train(fault_rig *rig) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .allocator = &rig->allocator.table};
  float before[WORDS * WIDTH], after[WORDS * WIDTH];
  rondo_value weights, loss;
  for (int i = 0; i < WORDS * WIDTH; i++) before[i] = (float)(i % 7 + 1) / 8;
  TRY(rondo_program_create(&options, &made.program));
  TRY(add_model(&weights, &loss));
  TRY(add_updates(weights, loss));
  TRY(rondo_compile(made.program, rig->device, NULL, &made.compiled));
  TRY(rondo_compiled_write(made.compiled, "table", before, sizeof before));
  TRY(rondo_compiled_write(made.compiled, "weights", before, WIDTH * sizeof *before));
  for (int i = 0; i < RUNS; i++) TRY(rondo_compiled_run(made.compiled));
  TRY(rondo_compiled_read(made.compiled, "table", after, sizeof after));
  assert_memory_not_equal(before, after, WIDTH * sizeof *before);
  assert_memory_equal(before + WIDTH, after + WIDTH, sizeof before - WIDTH * sizeof *before);
  return RONDO_OK;
}

static void destroy(void) {
  const rondo_status status = rondo_compiled_destroy(made.compiled); /* may report the failure of a run */
  (void)status;
  rondo_program_destroy(made.program);
  made.compiled = NULL;
  made.program = NULL;
}

static const fault_work work = {.run = train, .destroy = destroy};

UNIT_TEST(test_pr7_one_allocation_fails) { fault_allocations(&work, false, 1); }

UNIT_TEST(test_pr7_all_later_allocations_fail) { fault_allocations(&work, true, 3); }
