/* SPDX-License-Identifier: MIT
 * RC-7, TR-16: ranks train a model, each by replaying a graph of its own with an all-reduce in it, and end with the
 * same bits as one rank that has all of the data. Ranks are threads here; tests/mpi has processes.
 */
#include <string.h>

#include "support/test_ranks.h"

enum { WEIGHTS = 3000, STEPS = 12, RANKS = 2 };

/* The model --------------------------------------------------------------------------------------------------------
 * Least squares to each rank's own target: the gradient is weights - target, the step weights -= rate * sum. */

typedef struct model {
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *saxpy;
  float *weights, *target, *gradient, *other; /* on the device; only one rank alone needs `other` */
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

/* The captured work: with a communicator, the step of one rank; without, the step of all ranks. */
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

/* Ranks ----------------------------------------------------------------------------------------------------------- */

typedef struct trained {
  model of;
  rondo_communicator *communicator;
  rondo_status status;
  float weights[WEIGHTS];
} trained;

static void train_rank(void *user) {
  trained *self = user;
  self->status = train(&self->of, self->communicator, NULL, self->weights);
}

static void close_ranks(trained *ranks, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    assert_ok(rondo_communicator_destroy(ranks[i].communicator));
    assert_ok(close_model(&ranks[i].of));
  }
}

static void train_ranks(trained *ranks) {
  rondo_device *devices[RANKS];
  rondo_communicator *communicators[RANKS] = {NULL};
  test_thread threads[RANKS];
  for (uint32_t i = 0; i < RANKS; i++) {
    const rondo_status opened = open_model(i, &ranks[i].of);
    if (opened != RONDO_OK && i > 0 && test_device_is("cuda")) { /* no second device */
      close_ranks(ranks, i);
      skip();
    }
    assert_int_equal(opened, RONDO_OK);
    assert_ok(write_target(&ranks[i].of, i, ranks[i].of.target));
    devices[i] = ranks[i].of.device;
    threads[i] = (test_thread){train_rank, &ranks[i]};
  }
  const rondo_status made = rondo_communicator_create_all(devices, RANKS, NULL, communicators);
  for (uint32_t i = 0; i < RANKS; i++) ranks[i].communicator = communicators[i];
  if (test_ranks_are_missing(made)) {
    close_ranks(ranks, RANKS);
    skip();
  }
  assert_int_equal(made, RONDO_OK);
  test_on_threads(threads, RANKS);
  for (uint32_t i = 0; i < RANKS; i++) assert_int_equal(ranks[i].status, RONDO_OK);
  close_ranks(ranks, RANKS);
}

DEVICE_TEST(test_rc7_tr16_ranks_train_as_one) {
  static trained ranks[RANKS];
  static float alone[WEIGHTS];
  float *second = NULL;
  model m = {0};
  memset(ranks, 0, sizeof ranks);
  train_ranks(ranks);
  assert_ok(open_model(0, &m));
  assert_ok(allocate(&m, &second));
  assert_ok(write_target(&m, 0, m.target));
  assert_ok(write_target(&m, 1, second));
  assert_ok(train(&m, NULL, second, alone));
  assert_ok(rondo_free(m.device, second));
  assert_ok(close_model(&m));
  assert_true(alone[1] != 0);
  for (uint32_t i = 0; i < RANKS; i++) assert_memory_equal(ranks[i].weights, alone, sizeof alone);
}
