/* SPDX-License-Identifier: MIT
 * Launches from several threads. Each launcher's kernels increment its own counter in device memory, which reveals a
 * launch that was lost or ran twice. The calling thread creates and destroys all objects; the others only launch.
 */
#define _POSIX_C_SOURCE 200809L
#include "bench/launch_threads.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool.h"

#define NODES 32
#define SAMPLE_CAPACITY 50000

typedef struct launcher {
  pthread_t thread;
  bool is_started;
  pthread_mutex_t *gate; /* held until all threads have started */
  double seconds;
  rondo_device *device;
  rondo_stream *stream;
  rondo_exec *exec;
  void *counter; /* a uint64_t in device memory */
  samples host;
  uint64_t launches;
  char failure[512]; /* "" after success; otherwise a copy of rondo_last_error(), which is per thread */
} launcher;

static void count(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  ++**(uint64_t *const *)args[0];
}

static const rondo_kernel_options count_options = {
    RONDO_KERNEL_OPTIONS_INIT,
    .name = "count",
    .cpu = count,
    .cuda_source = "extern \"C\" __global__ void count(unsigned long long *counter) { ++*counter; }",
    .block_threads = 1,
    .params = {RONDO_UPDATES},
};

/* A line, so that the kernels increment the counter one at a time. */
static rondo_status build_line(rondo_graph *graph, rondo_kernel *kernel, void *const *counter) {
  const rondo_grid one_block = {1, 1, 1};
  rondo_node last, node;
  for (size_t i = 0; i < NODES; i++, last = node) {
    TOOL_TRY(rondo_graph_add_kernel(graph, &last, i ? 1 : 0, kernel, one_block, RONDO_ARGS(counter), &node));
  }
  return RONDO_OK;
}

static rondo_status create_exec(launcher *l, rondo_kernel *kernel) {
  rondo_graph *graph = NULL;
  TOOL_TRY(rondo_graph_create(l->device, NULL, &graph));
  rondo_status status = build_line(graph, kernel, &l->counter);
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .upload_stream = l->stream};
  if (!status) status = rondo_instantiate(graph, &options, &l->exec);
  const rondo_status destroyed = rondo_graph_destroy(graph);
  return status ? status : destroyed;
}

static rondo_status create_launcher(launcher *l, rondo_kernel *kernel) {
  TOOL_TRY(rondo_stream_create(l->device, NULL, &l->stream));
  TOOL_TRY(rondo_malloc(l->device, sizeof(uint64_t), "counter", &l->counter));
  const rondo_fill zero = {.dst = l->counter, .element_bytes = 1, .width = sizeof(uint64_t)};
  TOOL_TRY(rondo_fill_async(l->stream, &zero));
  TOOL_TRY(rondo_stream_synchronize(l->stream));
  return create_exec(l, kernel);
}

static rondo_status destroy_launcher(launcher *l) {
  samples_destroy(&l->host);
  rondo_exec_destroy(l->exec);
  const rondo_status destroyed = rondo_stream_destroy(l->stream);
  const rondo_status freed = rondo_free(l->device, l->counter);
  return destroyed ? destroyed : freed;
}

static rondo_status launch(launcher *l) {
  const uint64_t end = clock_ns() + (uint64_t)(l->seconds * 1e9);
  uint64_t now = 0;
  do {
    const uint64_t begin = clock_ns();
    TOOL_TRY(rondo_exec_launch(l->exec, l->stream));
    samples_add(&l->host, (double)(clock_ns() - begin) / 1e3);
    l->launches++;
    TOOL_TRY(rondo_stream_synchronize(l->stream));
    now = clock_ns();
  } while (now < end);
  return RONDO_OK;
}

static void *run_launcher(void *user) {
  launcher *l = user;
  pthread_mutex_lock(l->gate);
  pthread_mutex_unlock(l->gate);
  if (launch(l)) snprintf(l->failure, sizeof l->failure, "%s", rondo_last_error()->message);
  return NULL;
}

/* Starts all threads together and waits for them. */
static int run_all(launcher *launchers, uint32_t threads) {
  pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
  int error = 0;
  pthread_mutex_lock(&gate);
  for (uint32_t i = 0; i < threads && !error; i++) {
    launchers[i].gate = &gate;
    error = pthread_create(&launchers[i].thread, NULL, run_launcher, &launchers[i]);
    launchers[i].is_started = !error;
  }
  pthread_mutex_unlock(&gate);
  for (uint32_t i = 0; i < threads; i++) {
    if (launchers[i].is_started) pthread_join(launchers[i].thread, NULL);
  }
  pthread_mutex_destroy(&gate);
  return error ? tool_fail_thread(error) : TOOL_OK;
}

/* Checks that each kernel ran once for each launch. */
static int check_launcher(launcher *l) {
  uint64_t counted = 0;
  if (l->failure[0]) return tool_fail("a launch from one of several threads failed: %s", l->failure);
  rondo_status status = rondo_copy_async(l->stream, &counted, l->counter, sizeof counted);
  if (!status) status = rondo_stream_synchronize(l->stream);
  if (status) return tool_fail_status("the counter of a thread");
  if (counted == l->launches * NODES) return TOOL_OK;
  return tool_fail("%" PRIu64 " launches from one thread ran %" PRIu64 " kernels instead of %" PRIu64, l->launches,
                   counted, l->launches * NODES);
}

static int create_all(rondo_device *device, launcher *launchers, uint32_t threads, double seconds) {
  rondo_kernel *kernel = NULL;
  if (rondo_kernel_create(device, &count_options, &kernel)) return tool_fail_status("the benchmark's kernel");
  int result = TOOL_OK;
  for (uint32_t i = 0; i < threads && result == TOOL_OK; i++) {
    launchers[i].device = device;
    launchers[i].seconds = seconds;
    if (!samples_create(&launchers[i].host, SAMPLE_CAPACITY)) result = tool_fail_memory("the times");
    if (result == TOOL_OK && create_launcher(&launchers[i], kernel)) result = tool_fail_status("a thread's exec");
  }
  rondo_kernel_destroy(kernel);
  return result;
}

/* Checks all launchers and merges their times. */
static int collect(launcher *launchers, uint32_t threads, summary *out_host) {
  samples all;
  if (!samples_create(&all, (size_t)threads * SAMPLE_CAPACITY)) return tool_fail_memory("the times");
  int result = TOOL_OK;
  for (uint32_t i = 0; i < threads && result == TOOL_OK; i++) {
    result = check_launcher(&launchers[i]);
    for (size_t s = 0; s < launchers[i].host.count; s++) samples_add(&all, launchers[i].host.values[s]);
  }
  *out_host = samples_summarize(&all);
  samples_destroy(&all);
  return result;
}

int launch_from_threads(rondo_device *device, uint32_t threads, double seconds, summary *out_host) {
  launcher *launchers = calloc(threads, sizeof *launchers);
  if (!launchers) return tool_fail_memory("%" PRIu32 " threads", threads);
  int result = create_all(device, launchers, threads, seconds);
  if (result == TOOL_OK) result = run_all(launchers, threads);
  if (result == TOOL_OK) result = collect(launchers, threads, out_host);
  for (uint32_t i = 0; i < threads; i++) {
    if (launchers[i].device && destroy_launcher(&launchers[i])) result = tool_fail_status("a thread's stream");
  }
  free(launchers);
  return result;
}
