/* SPDX-License-Identifier: MIT
 * rondo_bench host (GX-10): what Rondo costs the host besides replays.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "bench_check.h"
#include "measure.h"
#include "rondo_bench.h"

enum { NODES = 32, MOST_THREADS = 8, SAMPLES = 2000, IDLE_SAMPLES = 3 };

static void empty_kernel(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  (void)args;
}

typedef struct lane {
  rondo_stream *stream;
  rondo_exec *exec;
  pthread_barrier_t *together;
  samples times; /* nanoseconds */
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
    const uint64_t start = clock_ns();
    check(rondo_exec_launch(self->exec, self->stream));
    samples_add(&self->times, (double)(clock_ns() - start));
    check(rondo_stream_synchronize(self->stream));
  }
  return NULL;
}

static void measure_threads(unsigned count) {
  static lane lanes[MOST_THREADS];
  pthread_t threads[MOST_THREADS];
  pthread_barrier_t together;
  char measure[32];
  samples all = bench_samples((size_t)count * SAMPLES);
  rondo_device *device = open_device();
  pthread_barrier_init(&together, NULL, count);
  for (unsigned i = 0; i < count; i++) {
    make_lane(device, &lanes[i]);
    lanes[i].together = &together;
    lanes[i].times = bench_samples(SAMPLES);
    if (pthread_create(&threads[i], NULL, launch_often, &lanes[i]) != 0) exit(EXIT_FAILURE);
  }
  for (unsigned i = 0; i < count; i++) {
    pthread_join(threads[i], NULL);
    for (size_t k = 0; k < SAMPLES; k++) samples_add(&all, lanes[i].times.values[k]);
  }
  snprintf(measure, sizeof measure, "launch_threads_%u", count);
  bench_report_value(measure, "ns", &all);
  bench_child_end();
}

static void measure_idle(void) {
  static lane lanes[2];
  samples times = bench_samples(IDLE_SAMPLES);
  const useconds_t rest_us = (useconds_t)bench_setting("BENCH_IDLE_MS", 1000) * 1000;
  rondo_device *device = open_device();
  for (int i = 0; i < 2; i++) make_lane(device, &lanes[i]);
  for (int i = 0; i < IDLE_SAMPLES; i++) {
    for (int k = 0; k < 100; k++) launch_and_wait(&lanes[k % 2]);
    usleep(50000); /* until the workers have gone to sleep */
    const uint64_t cpu = bench_cpu_ns(), start = clock_ns();
    usleep(rest_us);
    samples_add(&times, (double)((bench_cpu_ns() - cpu) * 1000 / ((clock_ns() - start) / 1000000)));
  }
  bench_report_value("idle_cpu", "ns/s", &times);
  bench_child_end();
}

static int run(int argc, char **argv) {
  (void)argc;
  (void)argv;
  bench_begin("rondo_bench host", rondo_version());
  if (bench_child()) measure_idle();
  for (unsigned count = 1; count <= MOST_THREADS; count *= 2) {
    if (bench_child()) measure_threads(count);
  }
  return bench_end();
}

const benchmark bench_host = {
    .name = "host",
    .summary = "the host beside replays: an idle device, several threads",
    .description =
        "Measures what Rondo costs the host besides replays. Rows:\n"
        "\n"
        "idle_cpu: processor time that an open device with streams and execs uses in a\n"
        "second without work\n"
        "\n"
        "launch_threads_N: one rondo_exec_launch of 32 empty kernels in a line, while N\n"
        "threads launch at once, each an exec of its own on a stream of its own\n"
        "\n"
        "BENCH_IDLE_MS is how long the device is idle (default 1000).",
    .program = run,
};
