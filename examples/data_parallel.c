/* SPDX-License-Identifier: MIT
 * Data-parallel training on two devices of one process, with a thread for each. Every thread records its own step as a
 * graph that contains an all-reduce of the gradients, and replays it. Each trains on half of the data. Both end with
 * the same model, bit for bit.
 *
 *   data_parallel
 *
 * Prints: both devices have found y = 2 x - 1
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/rondo.h>

#define TRY(call)                                  \
  do {                                             \
    const rondo_status try_status = (call);        \
    if (try_status != RONDO_OK) return try_status; \
  } while (0)

enum { RANKS = 2, POINTS = 64, STEPS = 300 };

/* The gradient of the squared error of w x + b, for the points of one rank. */
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

/* One rank. */
typedef struct trainer {
  uint32_t rank;
  rondo_device *device;
  rondo_stream *stream;
  rondo_communicator *communicator;
  rondo_kernel *gradient_kernel, *descent_kernel;
  void *data, *model, *gradient;
  float result[2];
} trainer;

static rondo_status set_up(trainer *t) {
  const rondo_kernel_options of_gradient = {RONDO_KERNEL_OPTIONS_INIT, .name = "add_up_gradient",
                                            .cpu = add_up_gradient,
                                            .params = {RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES}};
  const rondo_kernel_options of_descent = {RONDO_KERNEL_OPTIONS_INIT, .name = "descend", .cpu = descend,
                                           .params = {RONDO_SCALAR(float), RONDO_READS, RONDO_UPDATES}};
  TRY(rondo_device_open(t->rank == 0 ? "cpu:0" : "cpu:1", NULL, &t->device));
  TRY(rondo_stream_create(t->device, NULL, &t->stream));
  TRY(rondo_kernel_create(t->device, &of_gradient, &t->gradient_kernel));
  return rondo_kernel_create(t->device, &of_descent, &t->descent_kernel);
}

/* The points of this rank: every second one of y = 2 x - 1, for x from -1 to 1. */
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

/* The step: all ranks record the same collectives in the same order. */
static rondo_status record_step(const trainer *t, rondo_graph **out) {
  const float *x = t->data, *y = x + POINTS, rate = 0.5f / POINTS;
  TRY(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(rondo_launch(t->stream, t->gradient_kernel, (rondo_grid){1, 1, 1}, RONDO_ARGS(&x, &y, &t->model, &t->gradient)));
  TRY(rondo_all_reduce(t->communicator, t->stream, t->gradient, t->gradient, 2, RONDO_F32, RONDO_REDUCE_AVERAGE));
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

static rondo_status train(trainer *t) {
  rondo_graph *graph;
  rondo_exec *exec;
  TRY(make_data(t));
  TRY(record_step(t, &graph));
  TRY(rondo_instantiate(graph, NULL, &exec));
  for (int step = 0; step < STEPS; step++) TRY(rondo_exec_launch(exec, t->stream));
  TRY(rondo_copy_async(t->stream, t->result, t->model, sizeof t->result));
  TRY(rondo_stream_synchronize(t->stream));
  rondo_exec_destroy(exec);
  TRY(rondo_graph_destroy(graph));
  return tear_down(t);
}

/* The work of a thread. If it fails, the program ends: the other ranks would wait for this one. */
static void *run(void *user) {
  trainer *t = user;
  if (train(t) == RONDO_OK) return NULL;
  fprintf(stderr, "rank %u: %s\n", t->rank, rondo_last_error()->message);
  exit(EXIT_FAILURE);
}

static rondo_status join_ranks(trainer *trainers) {
  rondo_device *devices[RANKS];
  rondo_communicator *communicators[RANKS];
  for (uint32_t i = 0; i < RANKS; i++) {
    trainers[i].rank = i;
    TRY(set_up(&trainers[i]));
    devices[i] = trainers[i].device;
  }
  TRY(rondo_communicator_create_all(devices, RANKS, NULL, communicators));
  for (uint32_t i = 0; i < RANKS; i++) trainers[i].communicator = communicators[i];
  return RONDO_OK;
}

int main(void) {
  static trainer trainers[RANKS];
  pthread_t threads[RANKS];
  if (join_ranks(trainers) != RONDO_OK) {
    fprintf(stderr, "%s\n", rondo_last_error()->message);
    return EXIT_FAILURE;
  }
  for (int i = 0; i < RANKS; i++)
    if (pthread_create(&threads[i], NULL, run, &trainers[i]) != 0) return EXIT_FAILURE;
  for (int i = 0; i < RANKS; i++)
    if (pthread_join(threads[i], NULL) != 0) return EXIT_FAILURE;
  if (memcmp(trainers[0].result, trainers[1].result, sizeof trainers[0].result) != 0) return EXIT_FAILURE;
  printf("both devices have found y = %.3g x - %.3g\n", (double)trainers[0].result[0], -(double)trainers[0].result[1]);
  return EXIT_SUCCESS;
}
