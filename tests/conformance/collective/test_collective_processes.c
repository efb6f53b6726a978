/* SPDX-License-Identifier: MIT
 * RC-7: one process for each device. The test starts itself again as ranks of a group that train a model by replaying a
 * graph with an all-reduce in it, and as ranks that end too early.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test_ranks.h"

enum { WEIGHTS = 3000, STEPS = 12, PROCESSES = 2, SKIPPED = 77 };

extern char **environ;

/* The model --------------------------------------------------------------------------------------------------------
 * Least squares to each rank's own target: the gradient is weights - target, the step weights -= rate * sum. */

typedef struct model {
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *saxpy;
  float *weights, *target, *gradient, *other; /* on the device; only one process needs `other` */
} model;

static const float minus = -1, one = 1, rate = -0.3f;

static void make_target(uint32_t rank, float *out) {
  for (size_t i = 0; i < WEIGHTS; i++) out[i] = (float)((i * 31 + rank * 17) % 101) / 7 - 3;
}

static rondo_status allocate(const model *m, float **out) {
  void *memory;
  TRY(rondo_malloc(m->device, WEIGHTS * sizeof(float), NULL, &memory));
  const rondo_fill zeros = {.dst = memory, .element_bytes = 4, .width = WEIGHTS};
  *out = memory;
  return rondo_fill_async(m->stream, &zeros);
}

static rondo_status open_model(uint32_t rank, model *m) {
  char name[48];
  test_rank_device(rank, name, sizeof name);
  TRY(rondo_device_open(name, &(rondo_device_options){.workers = 1}, &m->device));
  TRY(rondo_stream_create(m->device, NULL, &m->stream));
  TRY(rondo_kernel_create(m->device, test_kernel_options(TEST_KERNEL_SAXPY), &m->saxpy));
  float **const buffers[] = {&m->weights, &m->target, &m->gradient, &m->other};
  for (size_t i = 0; i < 4; i++) TRY(allocate(m, buffers[i]));
  return rondo_stream_synchronize(m->stream);
}

static rondo_status close_model(model *m) {
  float *const buffers[] = {m->weights, m->target, m->gradient, m->other};
  for (size_t i = 0; i < 4; i++) TRY(rondo_free(m->device, buffers[i]));
  rondo_kernel_destroy(m->saxpy);
  TRY(rondo_stream_destroy(m->stream));
  return rondo_device_close(m->device);
}

static rondo_status write_target(const model *m, uint32_t rank, float *to) {
  static float target[WEIGHTS];
  make_target(rank, target);
  TRY(rondo_copy_async(m->stream, to, target, sizeof target));
  return rondo_stream_synchronize(m->stream);
}

/* y += a * x */
static rondo_status add(const model *m, const float *a, float *x, float *y) {
  return rondo_launch(m->stream, m->saxpy, (rondo_grid){.x = WEIGHTS}, RONDO_ARGS(a, &x, &y));
}

static rondo_status compute_gradient(const model *m, float *gradient, float *target) {
  TRY(rondo_copy_async(m->stream, gradient, m->weights, WEIGHTS * sizeof(float)));
  return add(m, &minus, target, gradient);
}

/* The captured work: with a communicator, the step of one rank; without, the step of all ranks in one process. */
static rondo_status step(const model *m, rondo_communicator *communicator, float *second_target) {
  TRY(compute_gradient(m, m->gradient, m->target));
  if (communicator != NULL) {
    TRY(rondo_all_reduce(communicator, m->stream, m->gradient, m->gradient, WEIGHTS, RONDO_F32, RONDO_REDUCE_SUM));
  } else {
    TRY(compute_gradient(m, m->other, second_target));
    TRY(add(m, &one, m->other, m->gradient));
  }
  return add(m, &rate, m->gradient, m->weights);
}

static rondo_status train(const model *m, rondo_communicator *communicator, float *second_target, float *out) {
  rondo_graph *graph;
  rondo_exec *exec;
  TRY(rondo_capture_begin(m->stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(step(m, communicator, second_target));
  TRY(rondo_capture_end(m->stream, &graph));
  TRY(rondo_instantiate(graph, NULL, &exec));
  TRY(rondo_graph_destroy(graph));
  for (int i = 0; i < STEPS; i++) TRY(rondo_exec_launch(exec, m->stream));
  TRY(rondo_copy_async(m->stream, out, m->weights, WEIGHTS * sizeof(float)));
  TRY(rondo_stream_synchronize(m->stream));
  rondo_exec_destroy(exec);
  return RONDO_OK;
}

/* Processes ------------------------------------------------------------------------------------------------------- */

static rondo_status train_as(uint32_t rank, const char *rendezvous, float *out) {
  model m = {0};
  rondo_communicator *communicator;
  TRY(open_model(rank, &m));
  TRY(write_target(&m, rank, m.target));
  const rondo_status status = rondo_communicator_create(m.device, rendezvous, rank, PROCESSES, NULL, &communicator);
  if (test_ranks_are_missing(status)) {
    TRY(close_model(&m));
    return status;
  }
  TRY(status);
  TRY(train(&m, communicator, NULL, out));
  TRY(rondo_communicator_destroy(communicator));
  return close_model(&m);
}

static rondo_status end_early(uint32_t rank, const char *rendezvous) {
  model m = {0};
  rondo_communicator *communicator;
  TRY(open_model(rank, &m));
  TRY(rondo_communicator_create(m.device, rendezvous, rank, PROCESSES, NULL, &communicator));
  TRY(rondo_barrier(communicator, m.stream));
  TRY(rondo_stream_synchronize(m.stream));
  (void)raise(SIGKILL);
  return RONDO_OK;
}

/* A process: `test train RANK RENDEZVOUS`, whose weights go to its standard output, or `test end RANK RENDEZVOUS`. */
static int run_as_rank(char **argv) {
  static float weights[WEIGHTS];
  const uint32_t rank = (uint32_t)strtoul(argv[2], NULL, 10);
  const bool trains = strcmp(argv[1], "train") == 0;
  const rondo_status status = trains ? train_as(rank, argv[3], weights) : end_early(rank, argv[3]);
  if (test_ranks_are_missing(status)) return SKIPPED;
  if (status != RONDO_OK) {
    fprintf(stderr, "rank %u: %s\n", rank, rondo_last_error()->message);
    return EXIT_FAILURE;
  }
  return write(STDOUT_FILENO, weights, sizeof weights) == (ssize_t)sizeof weights ? EXIT_SUCCESS : EXIT_FAILURE;
}

typedef struct process {
  pid_t id;
  int output;
} process;

static process start(const char *what, uint32_t rank, const char *rendezvous) {
  char number[12];
  int ends[2];
  process started;
  posix_spawn_file_actions_t actions;
  (void)snprintf(number, sizeof number, "%u", rank);
  char *const argv[] = {(char *)"test", (char *)what, number, (char *)rendezvous, NULL};
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
  assert_int_equal(posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO), 0);
  assert_int_equal(posix_spawn(&started.id, "/proc/self/exe", &actions, NULL, argv, environ), 0);
  assert_int_equal(posix_spawn_file_actions_destroy(&actions), 0);
  assert_int_equal(close(ends[1]), 0);
  started.output = ends[0];
  return started;
}

/* Its exit status, or minus the signal that ended it. */
static int finish(process *self, void *output, size_t bytes) {
  size_t got = 0;
  ssize_t part = 1;
  int state;
  while (got < bytes && part > 0) {
    part = read(self->output, (char *)output + got, bytes - got);
    if (part > 0) got += (size_t)part;
  }
  assert_int_equal(close(self->output), 0);
  assert_int_equal(waitpid(self->id, &state, 0), self->id);
  if (WIFSIGNALED(state)) return -WTERMSIG(state);
  return WEXITSTATUS(state) == 0 && got < bytes ? EXIT_FAILURE : WEXITSTATUS(state);
}

/* Tests ----------------------------------------------------------------------------------------------------------- */

/* Each process has a device of its own. */
static bool is_there(const char *device) {
  const char *name, *unavailable;
  for (size_t i = 0; rondo_device_enumerate(i, &name, &unavailable) == RONDO_OK; i++)
    if (strcmp(name, device) == 0 && unavailable[0] == '\0') return true;
  return false;
}

DEVICE_TEST(test_rc7_processes_train_as_one) {
  static float alone[WEIGHTS], of_rank[PROCESSES][WEIGHTS];
  char rendezvous[RONDO_RENDEZVOUS_BYTES];
  process processes[PROCESSES];
  int results[PROCESSES];
  float *second = NULL;
  model m = {0};
  if (getenv("RONDO_CUDA_LIBRARY") != NULL && test_device_is("cuda")) skip(); /* a fake one is of one process */
  if (test_device_is("cuda") && !is_there("cuda:1")) skip();
  assert_ok(rondo_rendezvous_make(rendezvous));
  for (uint32_t i = 0; i < PROCESSES; i++) processes[i] = start("train", i, rendezvous);
  for (uint32_t i = 0; i < PROCESSES; i++) results[i] = finish(&processes[i], of_rank[i], sizeof of_rank[i]);
  for (uint32_t i = 0; i < PROCESSES; i++)
    if (results[i] == SKIPPED) skip();
  for (uint32_t i = 0; i < PROCESSES; i++) assert_int_equal(results[i], EXIT_SUCCESS);
  assert_ok(open_model(0, &m));
  assert_ok(allocate(&m, &second));
  assert_ok(write_target(&m, 0, m.target));
  assert_ok(write_target(&m, 1, second));
  assert_ok(train(&m, NULL, second, alone));
  assert_ok(rondo_free(m.device, second));
  assert_ok(close_model(&m));
  assert_true(alone[1] != 0);
  for (uint32_t i = 0; i < PROCESSES; i++) assert_memory_equal(of_rank[i], alone, sizeof alone);
  assert_int_not_equal(access(rendezvous, F_OK), 0);
}

/* The other process ends during the collective. This process learns it from its stream, and its device remains usable.
 * */
DEVICE_TEST(test_rc7_a_process_that_ends_is_found) {
  char rendezvous[RONDO_RENDEZVOUS_BYTES], unused;
  rondo_communicator *communicator;
  model m = {0};
  if (test_device_is("cuda")) skip();
  assert_ok(open_model(0, &m));
  assert_ok(rondo_rendezvous_make(rendezvous));
  process other = start("end", 1, rendezvous);
  assert_ok(rondo_communicator_create(m.device, rendezvous, 0, PROCESSES, NULL, &communicator));
  assert_ok(rondo_barrier(communicator, m.stream));
  assert_ok(rondo_stream_synchronize(m.stream));
  assert_ok(rondo_all_reduce(communicator, m.stream, m.weights, m.gradient, WEIGHTS, RONDO_F32, RONDO_REDUCE_SUM));
  assert_error(rondo_stream_synchronize(m.stream), RONDO_EXECUTION_FAILED, RONDO_REASON_PEER_LOST);
  assert_message("rank 0 of 2: all_reduce (sum) of 3000 f32: rank 1 has ended");
  assert_int_equal(finish(&other, &unused, 0), -SIGKILL);
  assert_error(rondo_barrier(communicator, m.stream), RONDO_INVALID_STATE, RONDO_REASON_PEER_LOST);
  assert_ok(rondo_copy_async(m.stream, m.gradient, m.weights, 4));
  assert_ok(rondo_stream_synchronize(m.stream));
  assert_ok(rondo_communicator_destroy(communicator));
  assert_ok(close_model(&m));
}

/* Who ended while waiting for the others leaves a file, which serves the next ones. */
DEVICE_TEST(test_rc7_a_rendezvous_is_taken_over_from_the_dead) {
  char rendezvous[RONDO_RENDEZVOUS_BYTES], unused;
  rondo_communicator *communicator;
  const rondo_communicator_options hasty = {RONDO_COMMUNICATOR_OPTIONS_INIT, .join_timeout_ms = 50};
  model m = {0};
  if (test_device_is("cuda")) skip();
  assert_ok(open_model(0, &m));
  assert_ok(rondo_rendezvous_make(rendezvous));
  process dead = start("train", 0, rendezvous);
  while (access(rendezvous, F_OK) != 0) test_sleep_ms(1);
  test_sleep_ms(20);
  assert_int_equal(kill(dead.id, SIGKILL), 0);
  assert_int_equal(finish(&dead, &unused, 0), -SIGKILL);
  assert_int_equal(access(rendezvous, F_OK), 0);
  assert_error(rondo_communicator_create(m.device, rendezvous, 1, 3, &hasty, &communicator), RONDO_UNAVAILABLE,
               RONDO_REASON_TIMED_OUT);
  assert_message("0, 2");
  assert_int_not_equal(access(rendezvous, F_OK), 0);
  assert_ok(close_model(&m));
}

int main(int argc, char **argv) { return argc == 4 ? run_as_rank(argv) : test_run_registered(); }
