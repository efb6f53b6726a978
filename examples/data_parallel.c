/* SPDX-License-Identifier: MIT
 * Data-parallel training on two devices, with one process for each. Every process records its own step as a graph that
 * contains an all-reduce of the gradients, and replays it. Each process trains on half of the data. Both end with the
 * same model, bit for bit.
 *
 *   data_parallel
 *
 * Prints: both processes have found y = 2 x - 1
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rondo/rondo.h>

#define TRY(call)                                  \
  do {                                             \
    const rondo_status try_status = (call);        \
    if (try_status != RONDO_OK) return try_status; \
  } while (0)

enum { PROCESSES = 2, POINTS = 64, STEPS = 300 };

/* The gradient of the squared error of w x + b, for the points of one process. */
static void add_up_gradient(rondo_blocks blocks, void *const *args) {
  const float *x = *(const float *const *)args[0], *y = *(const float *const *)args[1];
  const float *model = *(const float *const *)args[2];
  float *gradient = *(float *const *)args[3];
  (void)blocks;
  gradient[0] = gradient[1] = 0;
  for (int i = 0; i < POINTS; i++) {
    const float error = model[0] * x[i] + model[1] - y[i];
    gradient[0] += error * x[i];
    gradient[1] += error;
  }
}

static void descend(rondo_blocks blocks, void *const *args) {
  const float rate = *(const float *)args[0];
  const float *gradient = *(const float *const *)args[1];
  float *model = *(float *const *)args[2];
  for (size_t i = blocks.first; i < blocks.last; i++) model[i] -= rate * gradient[i];
}

/* One process. */
typedef struct trainer {
  uint32_t rank;
  rondo_device *device;
  rondo_stream *stream;
  rondo_communicator *communicator;
  rondo_kernel *gradient_kernel, *descent_kernel;
  void *data, *model, *gradient;
} trainer;

static rondo_status set_up(trainer *t, const char *rendezvous) {
  const rondo_kernel_options of_gradient = {RONDO_KERNEL_OPTIONS_INIT, .name = "add_up_gradient",
                                            .cpu = add_up_gradient,
                                            .params = {RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES}};
  const rondo_kernel_options of_descent = {RONDO_KERNEL_OPTIONS_INIT, .name = "descend", .cpu = descend,
                                           .params = {RONDO_SCALAR(float), RONDO_READS, RONDO_UPDATES}};
  TRY(rondo_device_open(t->rank == 0 ? "cpu:0" : "cpu:1", NULL, &t->device));
  TRY(rondo_stream_create(t->device, NULL, &t->stream));
  TRY(rondo_kernel_create(t->device, &of_gradient, &t->gradient_kernel));
  TRY(rondo_kernel_create(t->device, &of_descent, &t->descent_kernel));
  return rondo_communicator_create(t->device, rendezvous, t->rank, PROCESSES, NULL, &t->communicator);
}

/* The points of this process: every second one of y = 2 x - 1, for x from -1 to 1. */
static rondo_status make_data(trainer *t) {
  float points[2][POINTS], zeros[2] = {0};
  for (uint32_t i = 0; i < POINTS; i++) {
    points[0][i] = (float)(2 * i + t->rank) / POINTS - 1;
    points[1][i] = 2 * points[0][i] - 1;
  }
  TRY(rondo_malloc(t->device, sizeof points, "points", &t->data));
  TRY(rondo_malloc(t->device, sizeof zeros, "model", &t->model));
  TRY(rondo_malloc(t->device, sizeof zeros, "gradient", &t->gradient));
  TRY(rondo_copy_async(t->stream, t->data, points, sizeof points));
  TRY(rondo_copy_async(t->stream, t->model, zeros, sizeof zeros));
  return rondo_stream_synchronize(t->stream);
}

/* The step: both processes record the same collectives in the same order. */
static rondo_status record_step(const trainer *t, rondo_graph **out) {
  const float *x = t->data, *y = x + POINTS, rate = 0.5f / (PROCESSES * POINTS);
  TRY(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(rondo_launch(t->stream, t->gradient_kernel, (rondo_grid){1, 1, 1}, RONDO_ARGS(&x, &y, &t->model, &t->gradient)));
  TRY(rondo_all_reduce(t->communicator, t->stream, t->gradient, t->gradient, 2, RONDO_F32, RONDO_REDUCE_SUM));
  TRY(rondo_launch(t->stream, t->descent_kernel, (rondo_grid){2, 1, 1}, RONDO_ARGS(&rate, &t->gradient, &t->model)));
  return rondo_capture_end(t->stream, out);
}

static rondo_status tear_down(const trainer *t) {
  TRY(rondo_communicator_destroy(t->communicator));
  TRY(rondo_free(t->device, t->data));
  TRY(rondo_free(t->device, t->model));
  TRY(rondo_free(t->device, t->gradient));
  rondo_kernel_destroy(t->gradient_kernel);
  rondo_kernel_destroy(t->descent_kernel);
  TRY(rondo_stream_destroy(t->stream));
  return rondo_device_close(t->device);
}

static rondo_status train(trainer *t, const char *rendezvous, float out_model[2]) {
  rondo_graph *graph;
  rondo_exec *exec;
  TRY(set_up(t, rendezvous));
  TRY(make_data(t));
  TRY(record_step(t, &graph));
  TRY(rondo_instantiate(graph, NULL, &exec));
  for (int step = 0; step < STEPS; step++) TRY(rondo_exec_launch(exec, t->stream));
  TRY(rondo_copy_async(t->stream, out_model, t->model, 2 * sizeof(float)));
  TRY(rondo_stream_synchronize(t->stream));
  rondo_exec_destroy(exec);
  TRY(rondo_graph_destroy(graph));
  return tear_down(t);
}

/* The work of one process. Its model goes to `out_model`. */
static int run(uint32_t rank, const char *rendezvous, float out_model[2]) {
  trainer t = {.rank = rank};
  if (train(&t, rendezvous, out_model) == RONDO_OK) return EXIT_SUCCESS;
  fprintf(stderr, "rank %u: %s\n", rank, rondo_last_error()->message);
  return EXIT_FAILURE;
}

int main(void) {
  char rendezvous[RONDO_RENDEZVOUS_BYTES];
  float models[PROCESSES][2];
  int ends[2], result;
  if (rondo_rendezvous_make(rendezvous) != RONDO_OK || pipe(ends) != 0) return EXIT_FAILURE;

  /* The other process starts before any device is opened. It returns its model through the pipe. */
  const pid_t child = fork();
  if (child < 0) return EXIT_FAILURE;
  if (child == 0) {
    if (run(1, rendezvous, models[1]) != EXIT_SUCCESS) return EXIT_FAILURE;
    return write(ends[1], models[1], sizeof models[1]) == (ssize_t)sizeof models[1] ? EXIT_SUCCESS : EXIT_FAILURE;
  }
  if (run(0, rendezvous, models[0]) != EXIT_SUCCESS) return EXIT_FAILURE;
  if (waitpid(child, &result, 0) != child || result != 0) return EXIT_FAILURE;
  if (read(ends[0], models[1], sizeof models[1]) != (ssize_t)sizeof models[1]) return EXIT_FAILURE;
  if (memcmp(models[0], models[1], sizeof models[0]) != 0) return EXIT_FAILURE;
  printf("both processes have found y = %.3g x - %.3g\n", (double)models[0][0], -(double)models[0][1]);
  return EXIT_SUCCESS;
}
