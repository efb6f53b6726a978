/* SPDX-License-Identifier: MIT
 * Executors of several threads at once on one device (SE-10): programs of branches with shared states, some with a
 * separate executor, some with a common one, run eagerly in alternation with recorded runs and give the same numbers
 * each time, while others are compiled and destroyed.
 */
#include <stdio.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"
#include "support/test_program.h"

enum { EDGE = 12, CELLS = EDGE * EDGE, BRANCHES = 9, RUNNERS = 4, ROUNDS = 60 };

typedef struct runner {
  test_fixture *t;
  rondo_program *program;
  rondo_compiled *compiled; /* with the common executor, and their states */
  uint64_t seed;
  const float *right;
  rondo_status status;
  bool is_right;
} runner;

static rondo_program *make_program(void) {
  const size_t shape[] = {EDGE, EDGE};
  const rondo_value none = {0};
  rondo_value x, weight, y, sum = {0};
  char name[16];
  rondo_program *program = test_new_program();
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  for (int i = 0; i < BRANCHES; i++) {
    (void)snprintf(name, sizeof name, "w%d", i);
    assert_ok(rondo_program_state(program, name, RONDO_F32, shape, 2, &weight));
    assert_ok(rondo_op_matmul(program, x, weight, none, &y));
    assert_ok(rondo_op_softmax(program, y, &y));
    assert_ok(rondo_op_matmul(program, y, weight, none, &y));
    if (i > 0) assert_ok(rondo_op_add(program, sum, y, &y));
    sum = y;
  }
  assert_ok(rondo_program_output(program, "sum", sum));
  return program;
}

static rondo_status write_input(rondo_compiled *compiled) {
  float x[CELLS];
  for (int i = 0; i < CELLS; i++) x[i] = (float)(i % 17) / 17 - 0.5f;
  return rondo_compiled_write(compiled, "x", x, sizeof x);
}

static rondo_status run_some(runner *r, rondo_compiled *compiled) {
  float sum[CELLS];
  const uint32_t runs = 1 + test_random_below(&r->seed, 8);
  TRY(write_input(compiled));
  for (uint32_t i = 0; i < runs; i++)
    TRY(test_random_below(&r->seed, 3) == 0 ? rondo_compiled_run(compiled) : rondo_compiled_run_eager(compiled));
  TRY(rondo_compiled_read(compiled, "sum", sum, sizeof sum));
  r->is_right = r->is_right && memcmp(sum, r->right, sizeof sum) == 0;
  return RONDO_OK;
}

/* Only one thread may compile programs that share states, so that was done before. Others, with separate states and a
 * separate executor, are created and destroyed now and then. */
static rondo_status run_rounds(runner *r, rondo_compiled *mine, rondo_executor *own) {
  static const rondo_branch_policy branches[] = {RONDO_BRANCHES_NEVER, RONDO_BRANCHES_ALWAYS};
  for (uint32_t i = 0; i < test_effort(ROUNDS); i++) {
    TRY(run_some(r, mine));
    if (test_random_below(&r->seed, 8) != 0) continue;
    rondo_compiled *other = NULL;
    const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER,
                                           .branches = branches[test_random_below(&r->seed, 2)], .executor = own,
                                           .executor_policy = RONDO_EXECUTOR_ALWAYS};
    TRY(rondo_compile(r->program, r->t->device, &options, &other));
    const rondo_status ran = rondo_compiled_run(other);
    const rondo_status destroyed = rondo_compiled_destroy(other);
    TRY(ran);
    TRY(destroyed);
  }
  return RONDO_OK;
}

static void run_all(void *user) {
  runner *r = user;
  const rondo_executor_options options = {RONDO_EXECUTOR_OPTIONS_INIT, .threads = 1 + (uint32_t)r->seed % 3,
                                          .expensive_us = 1e-3};
  rondo_executor *own = NULL;
  r->status = rondo_executor_create(r->t->device, &options, &own);
  if (r->status == RONDO_OK) r->status = run_rounds(r, r->compiled, own);
  const rondo_status destroyed = rondo_executor_destroy(own);
  if (r->status == RONDO_OK) r->status = destroyed;
}

static rondo_compiled *compile_runner(test_fixture *t, rondo_program *program, rondo_compiled *share,
                                      rondo_executor *executor) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .share = share, .share_states_only = true,
                                         .executor = executor, .executor_policy = RONDO_EXECUTOR_ALWAYS};
  return test_compile_kept(program, t->device, &options);
}

static void write_states(rondo_compiled *compiled) {
  float numbers[CELLS];
  char name[16];
  for (int w = 0; w < BRANCHES; w++) {
    for (int i = 0; i < CELLS; i++) numbers[i] = (float)((i * (w + 3)) % 13) / 13 - 0.5f;
    (void)snprintf(name, sizeof name, "w%d", w);
    assert_ok(rondo_compiled_write(compiled, name, numbers, sizeof numbers));
  }
}

TEST_WORKERS(test_se10_executors_of_many_threads) {
  const rondo_executor_options options = {RONDO_EXECUTOR_OPTIONS_INIT, .threads = 2, .expensive_us = 1e-3};
  rondo_program *programs[RUNNERS], *program = make_program();
  runner runners[RUNNERS];
  test_thread threads[RUNNERS];
  float right[CELLS];
  rondo_executor *shared = test_executor(t, &options);
  rondo_compiled *anchor = compile_runner(t, program, NULL, NULL);
  write_states(anchor);
  assert_ok(write_input(anchor));
  assert_ok(rondo_compiled_run(anchor));
  assert_ok(rondo_compiled_read(anchor, "sum", right, sizeof right));
  for (uint32_t i = 0; i < RUNNERS; i++) {
    programs[i] = make_program();
    runners[i] = (runner){.t = t,
                          .program = programs[i],
                          .compiled = compile_runner(t, program, anchor, shared),
                          .seed = i + 1,
                          .right = right,
                          .is_right = true};
    threads[i] = (test_thread){run_all, &runners[i]};
  }
  test_on_threads(threads, RUNNERS);
  for (uint32_t i = 0; i < RUNNERS; i++) {
    assert_int_equal(runners[i].status, RONDO_OK);
    assert_true(runners[i].is_right);
    assert_ok(rondo_compiled_destroy(runners[i].compiled));
    rondo_program_destroy(programs[i]);
  }
}
