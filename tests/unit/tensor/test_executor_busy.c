/* SPDX-License-Identifier: MIT
 * A program that is compiled while its executor runs other work cannot measure whether the executor pays. It runs
 * sequentially and reports why (SE-10).
 */
#include <stdatomic.h>

#include <rondo/operators.h>

#include "base/clock.h"
#include "exec/eager/executor.h"
#include "support/rondo_test.h"
#include "support/test_program.h"

enum { MOST_SECONDS = 30 };

typedef struct occupant {
  rondo_executor_plan *plan;
  rondo_stream *stream;
  atomic_bool is_over;
  rondo_status status;
} occupant;

/* Occupies the executor for a millisecond. */
static rondo_status run_node(void *user, uint32_t node, rondo_stream *stream) {
  (void)user;
  (void)node;
  (void)stream;
  test_sleep_ms(1);
  return RONDO_OK;
}

/* Between two runs, another thread can make a plan. */
static void occupy(void *user) {
  occupant *o = user;
  bool has_run;
  while (!atomic_load(&o->is_over) && o->status == RONDO_OK)
    o->status = rondo_executor_run(o->plan, o->stream, NULL, &has_run);
}

typedef struct compiler {
  occupant *occupant;
  test_fixture *t;
  rondo_executor *executor;
  rondo_program *program;
  rondo_compiled_info info;
  rondo_status status;
} compiler;

static rondo_status compile_once(compiler *c) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER,
                                         .executor = c->executor};
  rondo_compiled *compiled = NULL;
  rondo_status status = rondo_compile(c->program, c->t->device, &options, &compiled);
  if (status != RONDO_OK) return status;
  c->info = (rondo_compiled_info){.struct_size = sizeof c->info};
  status = rondo_compiled_get_info(compiled, &c->info);
  const rondo_status destroyed = rondo_compiled_destroy(compiled);
  return status == RONDO_OK ? destroyed : status;
}

/* The two overlap in most tries on a quiet machine, and in few on a busy one. */
static void compile_until_busy(void *user) {
  compiler *c = user;
  const uint64_t end = rondo_clock_ns() + MOST_SECONDS * UINT64_C(1000000000);
  while (c->status == RONDO_OK && c->info.sequential_reason != RONDO_SEQUENTIAL_BUSY && rondo_clock_ns() < end)
    c->status = compile_once(c);
  atomic_store(&c->occupant->is_over, true);
}

static rondo_program *make_program(void) {
  const size_t shape[] = {4};
  const char *const inputs[] = {"a", "b"}, *const outputs[] = {"c", "d"};
  rondo_program *program = test_new_program();
  for (size_t i = 0; i < 2; i++) {
    rondo_value x;
    assert_ok(rondo_program_input(program, inputs[i], RONDO_F32, shape, 1, &x));
    assert_ok(rondo_op_tanh(program, x, &x));
    assert_ok(rondo_program_output(program, outputs[i], x));
  }
  return program;
}

static rondo_executor_plan *make_plan(rondo_executor *executor) {
  const uint32_t start[] = {0, 0}, none[] = {0};
  const rondo_purpose purpose = RONDO_PURPOSE_COMPUTE;
  const bool is_expensive = false;
  const rondo_executor_work work = {.count = 1,
                                    .before_start = start,
                                    .before = none,
                                    .purposes = &purpose,
                                    .is_expensive = &is_expensive,
                                    .run_node = run_node};
  rondo_executor_plan *plan = NULL;
  assert_ok(rondo_executor_plan_create(executor, &work, &plan));
  return plan;
}

TEST(test_se10_an_executor_that_is_busy_is_not_measured) {
  const rondo_executor_options options = {RONDO_EXECUTOR_OPTIONS_INIT, .threads = RONDO_EXECUTOR_NO_THREADS};
  rondo_executor *executor = test_executor(t, &options);
  occupant o = {.plan = make_plan(executor), .stream = t->stream};
  compiler c = {.occupant = &o, .t = t, .executor = executor, .program = make_program()};
  test_on_threads((test_thread[]){{occupy, &o}, {compile_until_busy, &c}}, 2);
  assert_int_equal(o.status, RONDO_OK);
  assert_int_equal(c.status, RONDO_OK);
  assert_int_equal(c.info.sequential_reason, RONDO_SEQUENTIAL_BUSY);
  rondo_executor_plan_destroy(o.plan);
  rondo_program_destroy(c.program);
}
