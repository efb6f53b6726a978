/* SPDX-License-Identifier: MIT
 * What Rondo costs the host beside replays:
 *
 *   idle_cpu           processor time that an open device with streams and execs uses in a second without work
 *   launch_threads_N   one rondo_exec_launch of 32 empty kernels in a line, while N threads launch at once, each an
 * exec of its own on a stream of its own (GX-10)
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <rondo/rondo.h>

#include "measure.h"

enum { NODES = 32, MOST_THREADS = 8, SAMPLES = 2000, IDLE_SAMPLES = 3 };

static void check(rondo_status status) {
  if (status == RONDO_OK) return;
  fprintf(stderr, "%s: %s\n", rondo_status_name(status), rondo_last_error()->message);
  exit(EXIT_FAILURE);
}

static void empty_kernel(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  (void)args;
}

typedef struct lane {
  rondo_stream *stream;
  rondo_exec *exec;
  pthread_barrier_t *together;
  uint64_t samples[SAMPLES];
} lane;

static rondo_device *open_device(void) {
  rondo_device *device = NULL;
  check(rondo_device_open("cpu", NULL, &device));
  return device;
}

static void make_lane(rondo_device *device, lane *self) {
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "empty", .cpu = empty_kernel};
  rondo_kernel *kernel = NULL;
  rondo_graph *graph = NULL;
  rondo_node node = {0};
  check(rondo_stream_create(device, NULL, &self->stream));
  check(rondo_kernel_create(device, &options, &kernel));
  check(rondo_graph_create(device, NULL, &graph));
  for (int i = 0; i < NODES; i++) {
    check(rondo_graph_add_kernel(graph, &node, i > 0, kernel, (rondo_grid){.x = 1}, RONDO_NO_ARGS, &node));
  }
  check(rondo_instantiate(graph, NULL, &self->exec));
  check(rondo_graph_destroy(graph));
  rondo_kernel_destroy(kernel);
}

static void launch_and_wait(const lane *self) {
  check(rondo_exec_launch(self->exec, self->stream));
  check(rondo_stream_synchronize(self->stream));
}

/* The launch alone is timed; each is waited for, so that queues stay short. */
static void *launch_often(void *argument) {
  lane *self = argument;
  for (int i = 0; i < 200; i++) launch_and_wait(self);
  pthread_barrier_wait(self->together);
  for (int i = 0; i < SAMPLES; i++) {
    const uint64_t start = bench_now_ns();
    check(rondo_exec_launch(self->exec, self->stream));
    self->samples[i] = bench_now_ns() - start;
    check(rondo_stream_synchronize(self->stream));
  }
  return NULL;
}

static void measure_threads(unsigned count) {
  static lane lanes[MOST_THREADS];
  static uint64_t all[MOST_THREADS * SAMPLES];
  pthread_t threads[MOST_THREADS];
  pthread_barrier_t together;
  char measure[32];
  rondo_device *device = open_device();
  pthread_barrier_init(&together, NULL, count);
  for (unsigned i = 0; i < count; i++) {
    make_lane(device, &lanes[i]);
    lanes[i].together = &together;
    if (pthread_create(&threads[i], NULL, launch_often, &lanes[i]) != 0) exit(EXIT_FAILURE);
  }
  for (unsigned i = 0; i < count; i++) {
    pthread_join(threads[i], NULL);
    memcpy(all + i * SAMPLES, lanes[i].samples, sizeof lanes[i].samples);
  }
  snprintf(measure, sizeof measure, "launch_threads_%u", count);
  bench_report_value(measure, "ns", all, count * SAMPLES);
  bench_child_end();
}

static void measure_idle(void) {
  static lane lanes[2];
  uint64_t samples[IDLE_SAMPLES];
  const useconds_t rest_us = (useconds_t)bench_setting("BENCH_IDLE_MS", 1000) * 1000;
  rondo_device *device = open_device();
  for (int i = 0; i < 2; i++) make_lane(device, &lanes[i]);
  for (int i = 0; i < IDLE_SAMPLES; i++) {
    for (int k = 0; k < 100; k++) launch_and_wait(&lanes[k % 2]);
    usleep(50000); /* until the workers have gone to sleep */
    const uint64_t cpu = bench_cpu_ns(), start = bench_now_ns();
    usleep(rest_us);
    samples[i] = (bench_cpu_ns() - cpu) * 1000 / ((bench_now_ns() - start) / 1000000);
  }
  bench_report_value("idle_cpu", "ns/s", samples, IDLE_SAMPLES);
  bench_child_end();
}

int main(void) {
  bench_begin("bench_host", rondo_version());
  if (bench_child()) measure_idle();
  for (unsigned count = 1; count <= MOST_THREADS; count *= 2) {
    if (bench_child()) measure_threads(count);
  }
  return bench_end();
}
