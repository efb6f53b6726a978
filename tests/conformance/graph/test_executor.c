/* SPDX-License-Identifier: MIT
 * Eager runs by an executor (SE-10): the same bits as sequential and recorded runs, for any program, memory plan,
 * number of threads and set of expensive operators; streams by purpose with few events; runs that the executor cannot
 * take are sequential.
 */
#include <stdio.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"
#include "support/test_program.h"
#include "support/test_random_program.h"
#include "support/test_session.h"

enum { EDGE = TEST_RANDOM_EDGE, CELLS = TEST_RANDOM_CELLS, STATES = TEST_RANDOM_STATES, STEPS = 4 };

/* Random programs -------------------------------------------------------------------------------------------------- */

static const test_random_shape random_shape = {.has_z = true, .adds = true, .most_operators = 24};

/* All that a program leaves after some steps. */
typedef struct outcome {
  float loss[STEPS], y[CELLS], states[STATES][CELLS];
} outcome;

static void write_inputs(rondo_compiled *compiled, int step) {
  float numbers[CELLS];
  for (int i = 0; i < CELLS; i++) numbers[i] = (float)((i + step) % 7) / 7 - 0.4f;
  assert_ok(rondo_compiled_write(compiled, "x", numbers, sizeof numbers));
  for (int i = 0; i < CELLS; i++) numbers[i] = (float)((i * 3 + step) % 5) / 5 - 0.3f;
  assert_ok(rondo_compiled_write(compiled, "z", numbers, sizeof numbers));
}

static void train(rondo_compiled *compiled, rondo_status (*run)(rondo_compiled *compiled), outcome *out) {
  test_random_program_write_states(compiled);
  for (int i = 0; i < STEPS; i++) {
    write_inputs(compiled, i);
    assert_ok(run(compiled));
    assert_ok(rondo_compiled_fetch(compiled, "loss", &out->loss[i], sizeof out->loss[i]));
  }
  assert_ok(rondo_compiled_read(compiled, "y", out->y, sizeof out->y));
  test_random_program_read_states(compiled, out->states);
}

static void train_by(test_fixture *t, rondo_program *program, const rondo_compile_options *options,
                     rondo_status (*run)(rondo_compiled *compiled), outcome *out) {
  memset(out, 0, sizeof *out);
  rondo_compiled *compiled = test_compile_kept(program, t->device, options);
  train(compiled, run, out);
  assert_ok(rondo_compiled_destroy(compiled));
}

static rondo_executor *make_executor(test_fixture *t, uint32_t threads, double expensive_us) {
  const rondo_executor_options options = {RONDO_EXECUTOR_OPTIONS_INIT, .threads = threads,
                                          .expensive_us = expensive_us};
  return test_executor(t, &options);
}

static rondo_executor_info info_of(const rondo_executor *executor) {
  rondo_executor_info info = {.struct_size = sizeof info};
  assert_ok(rondo_executor_get_info(executor, &info));
  return info;
}

/* All three modes; with the executor, the memory is planned for the order and for its dependencies, staged and not. */
static void compare_forms(test_fixture *t, rondo_program *program, rondo_executor *executor) {
  static const rondo_staged_value staged[] = {
      {"x", RONDO_STAGING_HOST}, {"z", RONDO_STAGING_DEVICE}, {"loss", RONDO_STAGING_HOST}};
  static const rondo_branch_policy branches[] = {RONDO_BRANCHES_NEVER, RONDO_BRANCHES_ALWAYS, RONDO_BRANCHES_AUTO};
  outcome recorded, line, other;
  rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .executor_policy = RONDO_EXECUTOR_ALWAYS};
  train_by(t, program, &options, rondo_compiled_run, &recorded);
  train_by(t, program, &options, rondo_compiled_run_eager, &line);
  assert_memory_equal(&recorded, &line, sizeof recorded);
  options.record = RONDO_RECORD_NEVER;
  options.executor = executor;
  options.staged = staged;
  for (size_t form = 0; form < 6; form++) {
    options.branches = branches[form % 3];
    options.staged_count = form < 3 ? 0 : 3;
    train_by(t, program, &options, rondo_compiled_run, &other);
    assert_memory_equal(&recorded, &other, sizeof recorded);
  }
}

TEST(test_se10_every_way_gives_the_same_bits) {
  static const struct {
    uint32_t threads;
    double expensive_us;
  } kinds[] = {{RONDO_EXECUTOR_NO_THREADS, 0}, {1, 1e-3}, {3, 1e-3}, {2, 4}};
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
    rondo_executor *executor = make_executor(t, kinds[k].threads, kinds[k].expensive_us);
    for (uint64_t seed = 1; seed <= test_effort(6); seed++) {
      uint64_t draws = 4 * seed + k;
      rondo_program *program = test_random_program(&random_shape, &draws);
      compare_forms(t, program, executor);
      rondo_program_destroy(program);
    }
    const rondo_executor_info info = info_of(executor);
    assert_true(info.runs > 0);
    assert_int_equal(info.nodes, info.inline_nodes + info.thread_nodes);
    assert_int_equal(info.busy_runs, 0);
    assert_true(info.run_us > 0 && info.idle_us >= 0);
    assert_true(info.joins <= info.waits);
    if (kinds[k].threads == RONDO_EXECUTOR_NO_THREADS) assert_int_equal(info.queued_nodes + info.thread_nodes, 0);
    if (kinds[k].expensive_us == 1e-3) assert_true(info.queued_nodes > 0);
    assert_ok(rondo_executor_destroy(executor));
  }
}

/* Streams and events ----------------------------------------------------------------------------------------------- */

/* y = softmax(tanh(x)), or such for each of `count` inputs. */
static rondo_program *small_program(uint32_t count) {
  const size_t shape[] = {EDGE, EDGE};
  rondo_value x;
  char name[16];
  rondo_program *program = test_new_program();
  for (uint32_t i = 0; i < count; i++) {
    (void)snprintf(name, sizeof name, "x%u", i);
    assert_ok(rondo_program_input(program, name, RONDO_F32, shape, 2, &x));
    assert_ok(rondo_op_tanh(program, x, &x));
    assert_ok(rondo_op_softmax(program, x, &x));
    (void)snprintf(name, sizeof name, "y%u", i);
    assert_ok(rondo_program_output(program, name, x));
  }
  return program;
}

static rondo_compiled *compile(test_fixture *t, rondo_program *program, rondo_executor *executor, size_t staged_count) {
  static const rondo_staged_value staged[] = {{"x0", RONDO_STAGING_HOST}, {"y0", RONDO_STAGING_HOST}};
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER,
                                         .executor = executor,       .executor_policy = RONDO_EXECUTOR_ALWAYS,
                                         .staged = staged,           .staged_count = staged_count};
  return test_compile_kept(program, t->device, &options);
}

static void assert_counts(const rondo_executor *executor, const rondo_executor_info *before, uint64_t nodes,
                          uint64_t events, uint64_t waits, uint64_t joins) {
  const rondo_executor_info now = info_of(executor);
  assert_int_equal(now.runs - before->runs, 1);
  assert_int_equal(now.nodes - before->nodes, nodes);
  assert_int_equal(now.events - before->events, events);
  assert_int_equal(now.waits - before->waits, waits);
  assert_int_equal(now.joins - before->joins, joins);
}

/* All on the program's stream: no event. With copies: the beginning, which the streams of both copies follow; the
 * input, and the operator before the output, each awaited once; and the ends of both streams. */
TEST(test_se10_streams_by_purpose_take_few_events) {
  rondo_program *program = small_program(1);
  rondo_executor *executor = make_executor(t, RONDO_EXECUTOR_NO_THREADS, 0);
  for (size_t staged = 0; staged <= 2; staged += 2) {
    rondo_compiled *compiled = compile(t, program, executor, staged);
    const rondo_executor_info before = info_of(executor);
    assert_ok(rondo_compiled_run_eager(compiled));
    if (staged == 0)
      assert_counts(executor, &before, 2, 0, 0, 0);
    else
      assert_counts(executor, &before, 5, 5, 6, 2);
    assert_ok(rondo_compiled_destroy(compiled));
  }
}

/* A hundred branches on one stream need no event, however they are ordered. */
TEST(test_se10_operators_of_one_stream_wait_for_nothing) {
  rondo_program *program = small_program(100);
  rondo_executor *executor = make_executor(t, RONDO_EXECUTOR_NO_THREADS, 0);
  rondo_compiled *compiled = compile(t, program, executor, 0);
  const rondo_executor_info before = info_of(executor);
  assert_ok(rondo_compiled_run_eager(compiled));
  assert_counts(executor, &before, 200, 0, 0, 0);
}

TEST(test_se10_runs_allocate_nothing) {
  rondo_program *program = small_program(20);
  rondo_executor *executor = make_executor(t, 2, 1e-3);
  rondo_compiled *compiled = compile(t, program, executor, 2);
  for (int i = 0; i < 3; i++) assert_ok(rondo_compiled_run_eager(compiled));
  assert_ok(rondo_compiled_synchronize(compiled));
  const size_t calls = atomic_load(&t->allocator.calls);
  for (int i = 0; i < 20; i++) assert_ok(rondo_compiled_run_eager(compiled));
  assert_ok(rondo_compiled_synchronize(compiled));
  assert_int_equal(atomic_load(&t->allocator.calls), calls);
}

/* What goes in a line ---------------------------------------------------------------------------------------------- */

TEST(test_se10_the_faster_way_is_chosen_by_measuring) {
  rondo_executor *executor = make_executor(t, 1, 0);
  for (uint32_t count = 1; count <= 30; count += 29) {
    rondo_program *program = small_program(count);
    const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .executor = executor};
    rondo_compiled *compiled = test_compile_kept(program, t->device, &options);
    const rondo_compiled_info info = test_compiled_info(compiled);
    const rondo_executor_info before = info_of(executor);
    assert_ok(rondo_compiled_run_eager(compiled));
    assert_ok(rondo_compiled_synchronize(compiled));
    assert_int_equal(info_of(executor).runs - before.runs, info.sequential_reason == RONDO_SEQUENTIAL_NONE);
    if (count == 1) {
      assert_int_equal(info.sequential_reason, RONDO_SEQUENTIAL_CHAIN);
      assert_true(info.sequential_us == 0 && info.executor_us == 0);
    } else {
      const bool is_faster = info.sequential_us >= 1.05 * info.executor_us;
      assert_true(info.sequential_us > 0 && info.executor_us > 0);
      assert_int_equal(info.sequential_reason, is_faster ? RONDO_SEQUENTIAL_NONE : RONDO_SEQUENTIAL_FASTER);
    }
    assert_ok(rondo_compiled_destroy(compiled));
    rondo_program_destroy(program);
  }
}

TEST(test_se10_without_an_executor_runs_go_in_a_line) {
  rondo_program *program = small_program(2);
  rondo_compiled *compiled = compile(t, program, NULL, 0);
  assert_int_equal(test_compiled_info(compiled).sequential_reason, RONDO_SEQUENTIAL_NO_EXECUTOR);
  assert_ok(rondo_compiled_run_eager(compiled));
}

/* One stream while capturing (SE-2): the captured work is a chain, and replays give the same results as runs. */
TEST(test_se10_a_captured_run_goes_in_a_line) {
  rondo_program *program = small_program(5);
  rondo_executor *executor = make_executor(t, 2, 1e-3);
  rondo_compiled *compiled = compile(t, program, executor, 0);
  rondo_stream *stream = rondo_compiled_stream(compiled);
  float x[CELLS], run[CELLS], replayed[CELLS];
  size_t nodes = 0, edges = 0;
  for (int i = 0; i < CELLS; i++) x[i] = (float)i / CELLS;
  assert_ok(rondo_compiled_write(compiled, "x4", x, sizeof x));
  assert_ok(rondo_compiled_run_eager(compiled));
  assert_ok(rondo_compiled_read(compiled, "y4", run, sizeof run));
  const rondo_executor_info before = info_of(executor);
  assert_ok(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_compiled_run_eager(compiled));
  rondo_graph *graph = test_capture_end(stream);
  assert_int_equal(info_of(executor).runs, before.runs);
  assert_ok(rondo_graph_nodes(graph, NULL, &nodes));
  assert_ok(rondo_graph_edges(graph, NULL, NULL, &edges));
  assert_int_equal(edges, nodes - 1);
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, stream));
  assert_ok(rondo_compiled_read(compiled, "y4", replayed, sizeof replayed));
  assert_memory_equal(run, replayed, sizeof run);
}

typedef struct runner {
  rondo_compiled *compiled;
  rondo_status status;
  float y[CELLS];
} runner;

static void run_often(void *user) {
  runner *r = user;
  for (int i = 0; i < 50 && r->status == RONDO_OK; i++) {
    r->status = rondo_compiled_run_eager(r->compiled);
    if (r->status == RONDO_OK) r->status = rondo_compiled_read(r->compiled, "y2", r->y, sizeof r->y);
  }
}

/* Programs of several threads with one executor: a run that finds it busy is sequential. */
TEST(test_se10_threads_may_share_an_executor) {
  enum { RUNNERS = 3 };
  rondo_program *program = small_program(8);
  rondo_executor *executor = make_executor(t, 1, 1e-3);
  runner runners[RUNNERS];
  test_thread threads[RUNNERS];
  float x[CELLS];
  for (int i = 0; i < CELLS; i++) x[i] = (float)(i % 9) / 9;
  for (int i = 0; i < RUNNERS; i++) {
    runners[i] = (runner){.compiled = compile(t, program, executor, 0), .status = RONDO_OK};
    assert_ok(rondo_compiled_write(runners[i].compiled, "x2", x, sizeof x));
    threads[i] = (test_thread){run_often, &runners[i]};
  }
  const rondo_executor_info before = info_of(executor);
  test_on_threads(threads, RUNNERS);
  const rondo_executor_info after = info_of(executor);
  assert_int_equal(after.runs + after.busy_runs - before.runs - before.busy_runs, 50 * RUNNERS);
  for (int i = 0; i < RUNNERS; i++) {
    assert_int_equal(runners[i].status, RONDO_OK);
    assert_memory_equal(runners[i].y, runners[0].y, sizeof runners[0].y);
    assert_ok(rondo_compiled_destroy(runners[i].compiled));
  }
}

/* Sessions --------------------------------------------------------------------------------------------------------- */

enum { CALLERS = 3, REQUESTS = 12 };

typedef struct caller {
  rondo_session *session;
  uint32_t number;
  rondo_status status;
  bool is_right;
  test_request request;
} caller;

/* Of few numbers of rows, so that programs are found again. */
static void call_often(void *user) {
  caller *c = user;
  c->is_right = true;
  for (uint32_t i = 0; i < REQUESTS && c->status == RONDO_OK; i++) {
    test_request_fill(&c->request, 1 + (i + c->number) % 4, i);
    c->request.request.mode = i % 3 == 0 ? RONDO_RUN_AUTO : RONDO_RUN_EAGER;
    c->status = rondo_session_run(c->session, "scorer", &c->request.request, NULL);
    c->is_right = c->is_right && (c->status != RONDO_OK || test_request_is_right(&c->request));
  }
}

TEST(test_se10_sessions_run_what_is_not_recorded_by_executors) {
  static caller callers[CALLERS];
  test_thread threads[CALLERS];
  const size_t size = 2;
  const rondo_executor_options executor = {RONDO_EXECUTOR_OPTIONS_INIT, .threads = 1, .expensive_us = 1e-3};
  rondo_session *session = test_session_open(
      t->device, (rondo_session_options){.streams = 2, .max_eager_programs = 3, .executor = &executor});
  test_scorer_add(session, "scorer", (rondo_model_options){0});
  test_scorer_capture(session, "scorer", &size, 1);
  for (uint32_t i = 0; i < CALLERS; i++) {
    callers[i] = (caller){.session = session, .number = i};
    threads[i] = (test_thread){call_often, &callers[i]};
  }
  test_on_threads(threads, CALLERS);
  for (uint32_t i = 0; i < CALLERS; i++) assert_true(callers[i].status == RONDO_OK && callers[i].is_right);
  const rondo_model_info info = test_model_info(session, "scorer");
  assert_int_equal(info.requests, CALLERS * REQUESTS);
  assert_true(info.eager > 0 && info.executor_programs <= info.eager_programs);
  assert_ok(rondo_session_destroy(session));
  const rondo_executor_options wrong = {RONDO_EXECUTOR_OPTIONS_INIT, .expensive_us = -1};
  const rondo_session_options refused = {RONDO_SESSION_OPTIONS_INIT, .executor = &wrong};
  assert_invalid(rondo_session_create(t->device, &refused, &session), RONDO_REASON_OUT_OF_RANGE);
}

/* Mistakes --------------------------------------------------------------------------------------------------------- */

/* A wrong index is found by who waits, as in any run. */
TEST(test_se10_what_fails_later_comes_out_when_it_is_waited_for) {
  const size_t table_shape[] = {4, 3}, ids_shape[] = {2};
  const int32_t wrong[] = {1, 9}, right[] = {1, 3};
  rondo_value table, ids, y;
  rondo_executor *executor = make_executor(t, 1, 1e-3);
  rondo_program *program = test_new_program();
  assert_ok(rondo_program_state(program, "table", RONDO_F32, table_shape, 2, &table));
  assert_ok(rondo_program_input(program, "ids", RONDO_I32, ids_shape, 1, &ids));
  assert_ok(rondo_op_embedding(program, table, ids, &y));
  assert_ok(rondo_program_output(program, "y", y));
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER, .executor = executor,
                                         .executor_policy = RONDO_EXECUTOR_ALWAYS};
  rondo_compiled *compiled = test_compile_kept(program, t->device, &options);
  assert_ok(rondo_compiled_write(compiled, "ids", wrong, sizeof wrong));
  assert_ok(rondo_compiled_run(compiled));
  assert_error(rondo_compiled_synchronize(compiled), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
  assert_ok(rondo_compiled_write(compiled, "ids", right, sizeof right));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_synchronize(compiled));
}

TEST(test_se10_an_executor_in_use_is_not_destroyed) {
  rondo_program *program = small_program(2);
  rondo_executor *executor = make_executor(t, 1, 0);
  rondo_compiled *compiled = compile(t, program, executor, 0);
  assert_error(rondo_executor_destroy(executor), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_ok(rondo_compiled_recompile(compiled, program, NULL));
  assert_int_equal(test_compiled_info(compiled).sequential_reason, RONDO_SEQUENTIAL_NONE);
  const rondo_executor_info before = info_of(executor);
  assert_ok(rondo_compiled_run(compiled));
  assert_int_equal(info_of(executor).runs, before.runs + 1);
  assert_ok(rondo_executor_destroy(NULL));
}

TEST(test_se10_wrong_options_are_refused) {
  rondo_executor *executor = NULL;
  rondo_program *program = small_program(1);
  rondo_compiled *compiled = NULL;
  rondo_executor_options options = {RONDO_EXECUTOR_OPTIONS_INIT, .threads = RONDO_EXECUTOR_MAX_THREADS + 1};
  assert_invalid(rondo_executor_create(t->device, &options, &executor), RONDO_REASON_OUT_OF_RANGE);
  options = (rondo_executor_options){RONDO_EXECUTOR_OPTIONS_INIT, .expensive_us = -1};
  assert_invalid(rondo_executor_create(t->device, &options, &executor), RONDO_REASON_OUT_OF_RANGE);
  assert_null(executor);
  assert_invalid(rondo_executor_create(NULL, NULL, &executor), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_executor_create(t->device, NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_executor_get_info(NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  const rondo_compile_options policy = {RONDO_COMPILE_OPTIONS_INIT, .executor_policy = (rondo_executor_policy)7};
  assert_invalid(rondo_compile(program, t->device, &policy, &compiled), RONDO_REASON_BAD_OPTIONS);
  rondo_device *other = test_device("cpu:1", NULL);
  assert_ok(rondo_executor_create(other, NULL, &executor));
  const rondo_compile_options elsewhere = {RONDO_COMPILE_OPTIONS_INIT, .executor = executor};
  assert_invalid(rondo_compile(program, t->device, &elsewhere, &compiled), RONDO_REASON_OTHER_DEVICE);
  assert_message("both must be of one rondo_device");
  assert_ok(rondo_executor_destroy(executor));
}
