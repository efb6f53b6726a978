/* SPDX-License-Identifier: MIT
 * graph_scaling.cu with Rondo: the same table, of captures that become graphs of Rondo. Instantiating one verifies it.
 */
#include <chrono>

#include <rondo/rondo.hpp>

#include "sample.h"

constexpr int max_branches = 4, launches = 20;

extern "C" __global__ void count_up(int *counter) { *counter += 1; }

struct branches {
  cudaStream_t streams[max_branches];
  cudaEvent_t forked, joined;
  int *counters; /* one for each branch */
};

/* `nodes` kernels in all. */
static void enqueue(const branches *b, int width, int nodes) {
  CHECK(cudaEventRecord(b->forked, b->streams[0]));
  for (int i = 0; i < width; i++) {
    if (i > 0) CHECK(cudaStreamWaitEvent(b->streams[i], b->forked, 0));
    for (int k = 0; k < nodes / width; k++) count_up<<<1, 1, 0, b->streams[i]>>>(b->counters + i);
    if (i > 0) CHECK(cudaEventRecord(b->joined, b->streams[i]));
    if (i > 0) CHECK(cudaStreamWaitEvent(b->streams[0], b->joined, 0));
  }
}

/* Microseconds since the last call. */
static double lap() {
  static auto last = std::chrono::steady_clock::now();
  const auto now = std::chrono::steady_clock::now();
  const double us = std::chrono::duration<double, std::micro>(now - last).count();
  last = now;
  return us;
}

static void measure(const rondo::stream &adopted, const branches *b, int width, int nodes) {
  const cudaStream_t stream = b->streams[0];
  lap();
  const rondo::graph graph = rondo::capture_graph(adopted, [&] { enqueue(b, width, nodes); });
  const double capture = lap();
  const rondo::exec exec(graph);
  const double instantiate = lap();
  exec.launch(adopted);
  const double first = lap();
  CHECK(cudaStreamSynchronize(stream));
  lap();
  for (int i = 1; i < launches; i++) exec.launch(adopted);
  const double again = lap() / (launches - 1);
  CHECK(cudaStreamSynchronize(stream));
  std::printf("%5d %8d %10.1f %12.1f %13.1f %8.2f\n", nodes, width, capture, instantiate, first, again);
}

static void run(const branches *b) {
  const rondo::device device("cuda:0");
  const rondo::stream adopted = rondo::stream::adopt(device, b->streams[0]);
  std::printf("nodes branches capture/us instantiate/us first launch/us launch/us\n");
  for (int nodes : {8, 64, 512})
    for (int width : {1, max_branches}) measure(adopted, b, width, nodes);
}

int main() {
  branches b = {};
  b.counters = device_array<int>(max_branches);
  for (cudaStream_t &stream : b.streams) stream = new_stream();
  CHECK(cudaEventCreateWithFlags(&b.forked, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&b.joined, cudaEventDisableTiming));

  run(&b);

  int counters[max_branches], sum = 0;
  CHECK(cudaMemcpy(counters, b.counters, sizeof counters, cudaMemcpyDeviceToHost));
  for (int counter : counters) sum += counter;
  std::printf("%d kernels ran\n", sum);
  for (cudaStream_t stream : b.streams) CHECK(cudaStreamDestroy(stream));
  for (cudaEvent_t event : {b.forked, b.joined}) CHECK(cudaEventDestroy(event));
  CHECK(cudaFree(b.counters));
  return 0;
}
