/* SPDX-License-Identifier: MIT
 * Training on two devices, one process each: every process records its own step as a graph, with an all-reduce of the
 * gradients in it, and replays it. Each sees half of the data; both end with the same model, bit for bit.
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

#define TRY(call)                                                          \
  do {                                                                     \
    if ((call) != RONDO_OK) {                                              \
      fprintf(stderr, "rank %u: %s\n", rank, rondo_last_error()->message); \
      return EXIT_FAILURE;                                                 \
    }                                                                      \
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

/* One process; its model goes to `out`. */
static int train(uint32_t rank, const char *rendezvous, float out[2]) {
  const rondo_kernel_options of_gradient = {RONDO_KERNEL_OPTIONS_INIT, .name = "add_up_gradient",
                                            .cpu = add_up_gradient,
                                            .params = {RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES}};
  const rondo_kernel_options of_descent = {RONDO_KERNEL_OPTIONS_INIT, .name = "descend", .cpu = descend,
                                           .params = {RONDO_SCALAR(float), RONDO_READS, RONDO_UPDATES}};
  rondo_device *device;
  rondo_stream *stream;
  rondo_communicator *communicator;
  rondo_kernel *gradient_kernel, *descent_kernel;
  TRY(rondo_device_open(rank == 0 ? "cpu:0" : "cpu:1", NULL, &device));
  TRY(rondo_stream_create(device, NULL, &stream));
  TRY(rondo_kernel_create(device, &of_gradient, &gradient_kernel));
  TRY(rondo_kernel_create(device, &of_descent, &descent_kernel));
  TRY(rondo_communicator_create(device, rendezvous, rank, PROCESSES, NULL, &communicator));

  /* The points of this process: every other one of y = 2 x - 1, for x from -1 to 1. */
  float points[2][POINTS], zeros[2] = {0};
  for (uint32_t i = 0; i < POINTS; i++) {
    points[0][i] = (float)(2 * i + rank) / POINTS - 1;
    points[1][i] = 2 * points[0][i] - 1;
  }
  void *data, *model, *gradient;
  TRY(rondo_malloc(device, sizeof points, "points", &data));
  TRY(rondo_malloc(device, sizeof zeros, "model", &model));
  TRY(rondo_malloc(device, sizeof zeros, "gradient", &gradient));
  TRY(rondo_copy_async(stream, data, points, sizeof points));
  TRY(rondo_copy_async(stream, model, zeros, sizeof zeros));

  /* The step, recorded: both processes record the same collectives in the same order. */
  const float *x = data, *y = x + POINTS, rate = 0.5f / (PROCESSES * POINTS);
  rondo_graph *graph;
  rondo_exec *exec;
  TRY(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(rondo_launch(stream, gradient_kernel, (rondo_grid){1, 1, 1}, RONDO_ARGS(&x, &y, &model, &gradient)));
  TRY(rondo_all_reduce(communicator, stream, gradient, gradient, 2, RONDO_F32, RONDO_REDUCE_SUM));
  TRY(rondo_launch(stream, descent_kernel, (rondo_grid){2, 1, 1}, RONDO_ARGS(&rate, &gradient, &model)));
  TRY(rondo_capture_end(stream, &graph));
  TRY(rondo_instantiate(graph, NULL, &exec));

  for (int step = 0; step < STEPS; step++) TRY(rondo_exec_launch(exec, stream));
  TRY(rondo_copy_async(stream, out, model, 2 * sizeof(float)));
  TRY(rondo_stream_synchronize(stream));

  rondo_exec_destroy(exec);
  TRY(rondo_graph_destroy(graph));
  TRY(rondo_communicator_destroy(communicator));
  TRY(rondo_free(device, data));
  TRY(rondo_free(device, model));
  TRY(rondo_free(device, gradient));
  rondo_kernel_destroy(gradient_kernel);
  rondo_kernel_destroy(descent_kernel);
  TRY(rondo_stream_destroy(stream));
  TRY(rondo_device_close(device));
  return EXIT_SUCCESS;
}

int main(void) {
  char rendezvous[RONDO_RENDEZVOUS_BYTES];
  float models[PROCESSES][2];
  int ends[2], result;
  if (rondo_rendezvous_make(rendezvous) != RONDO_OK || pipe(ends) != 0) return EXIT_FAILURE;

  /* The other process, started before any device is opened, hands its model back through the pipe. */
  const pid_t child = fork();
  if (child < 0) return EXIT_FAILURE;
  if (child == 0) {
    if (train(1, rendezvous, models[1]) != EXIT_SUCCESS) return EXIT_FAILURE;
    return write(ends[1], models[1], sizeof models[1]) == (ssize_t)sizeof models[1] ? EXIT_SUCCESS : EXIT_FAILURE;
  }
  if (train(0, rendezvous, models[0]) != EXIT_SUCCESS) return EXIT_FAILURE;
  if (waitpid(child, &result, 0) != child || result != 0) return EXIT_FAILURE;
  if (read(ends[0], models[1], sizeof models[1]) != (ssize_t)sizeof models[1]) return EXIT_FAILURE;
  if (memcmp(models[0], models[1], sizeof models[0]) != 0) return EXIT_FAILURE;
  printf("both processes have found y = %.3g x - %.3g\n", (double)models[0][0], -(double)models[0][1]);
  return EXIT_SUCCESS;
}
