/* SPDX-License-Identifier: MIT
 * Record and replay, with memory inside the graph: computes y += a * x a thousand times, through a scratch buffer that
 * exists only while the graph runs. As record_and_replay.c, in C++.
 *
 *   record_and_replay [DEVICE]
 *
 * Prints: y[0] = 500 after 1000 replays of 4 nodes
 */
#include <cstdio>
#include <vector>

#include <rondo/rondo.hpp>

constexpr std::size_t block = 256, n = 4096;
constexpr int steps = 1000;

/* A block has as many threads on a CUDA device as it has elements on the CPU. */
static const rondo::kernel_code saxpy_cuda = {
    "extern \"C\" __global__ void saxpy(float a, const float *x, float *y) {\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  y[i] += a * x[i];\n"
    "}\n"};

static bool run(const char *name) {
  const rondo::device device(name);
  const rondo::stream stream(device);
  const rondo::kernel<float, const float *, float *> saxpy(
      device, "saxpy",
      [](rondo_blocks blocks, float a, const float *x, float *y) {
        for (std::size_t i = blocks.first * block; i < blocks.last * block; i++) y[i] += a * x[i];
      },
      saxpy_cuda);
  const rondo::memory<float> x(device, n, "x"), y(device, n, "y");
  const std::vector<float> ones(n, 1.0f);
  stream.copy(x, ones);
  stream.fill(y, 0.0f);

  /* Work that is enqueued in the lambda does not run. It becomes the nodes of a graph. */
  const rondo::graph graph = rondo::capture_graph(stream, [&] {
    const rondo::scratch<float> scratch(stream, n, "scratch"); /* an alloc node, and a free node at the end */
    stream.copy(scratch, x);
    stream.launch(saxpy, rondo::grid(n / block), 0.5f, scratch, y);
  });
  const rondo::exec exec(graph); /* verified, planned, lowered */
  for (int step = 0; step < steps; step++) exec.launch(stream);

  float first = 0;
  stream.copy(rondo::span(&first, 1), rondo::span(y).first(1));
  stream.synchronize();
  std::printf("y[0] = %g after %d replays of %zu nodes\n", static_cast<double>(first), steps, graph.nodes().size());
  return first == 500;
}

int main(int argc, char **argv) {
  try {
    return run(argc > 1 ? argv[1] : "cpu") ? 0 : 1;
  } catch (const rondo::error &error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
