/* SPDX-License-Identifier: MIT
 * rondo_bench idle: what an open device with streams and execs costs while nothing runs.
 */
#define _GNU_SOURCE
#include "bench_check.h"
#include "measure.h"
#include "rondo_bench.h"

enum { NODES = 32, IDLE_SAMPLES = 3 };

static void empty_kernel(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  (void)args;
}

typedef struct launcher {
  rondo_stream *stream;
  rondo_exec *exec;
} launcher;

static rondo_device *open_device(void) {
  rondo_device *device = NULL;
  check(rondo_device_open("cpu", NULL, &device));
  return device;
}

static void make_launcher(rondo_device *device, launcher *self) {
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

static void launch_and_wait(const launcher *self) {
  check(rondo_exec_launch(self->exec, self->stream));
  check(rondo_stream_synchronize(self->stream));
}

static void measure_idle(void) {
  static launcher launchers[2];
  samples times = bench_samples(IDLE_SAMPLES);
  const useconds_t rest_us = (useconds_t)bench_setting("BENCH_IDLE_MS", 1000) * 1000;
  rondo_device *device = open_device();
  for (int i = 0; i < 2; i++) make_launcher(device, &launchers[i]);
  for (int i = 0; i < IDLE_SAMPLES; i++) {
    for (int k = 0; k < 100; k++) launch_and_wait(&launchers[k % 2]);
    usleep(50000); /* until the workers sleep */
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
  bench_begin("rondo_bench idle", rondo_version());
  if (bench_child()) measure_idle();
  return bench_end();
}

const benchmark bench_idle = {
    .name = "idle",
    .summary = "processor time of a device without work",
    .description =
        "Measures what an open device with streams and execs costs while nothing runs.\n\n"
        "idle_cpu: processor time in a second\n\n"
        "BENCH_IDLE_MS: how long the device is idle; default 1000",
    .program = run,
};
