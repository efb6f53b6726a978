/* SPDX-License-Identifier: MIT
 * A graph with memory of its own: each step of a pipeline allocates what the next one reads, in the order of the
 * stream, so that the allocations become nodes of the captured graph. Two are alive at any one time. (The idea of
 * CUDA's sample graphMemoryNodes.)
 */
#include "sample.h"

constexpr int n = 1 << 18, block = 256, launches = 10;
constexpr std::size_t bytes = n * sizeof(float);

extern "C" __global__ void square(const float *x, float *y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i] * x[i];
}

extern "C" __global__ void add_neighbour(const float *x, float *y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i] + x[(i + 1) % n];
}

static void enqueue(cudaStream_t stream, const float *x, float *y) {
  float *squares, *sums, *more;
  CHECK(cudaMallocAsync(&squares, bytes, stream));
  square<<<n / block, block, 0, stream>>>(x, squares);
  CHECK(cudaMallocAsync(&sums, bytes, stream));
  add_neighbour<<<n / block, block, 0, stream>>>(squares, sums);
  CHECK(cudaFreeAsync(squares, stream));
  CHECK(cudaMallocAsync(&more, bytes, stream));
  add_neighbour<<<n / block, block, 0, stream>>>(sums, more);
  CHECK(cudaFreeAsync(sums, stream));
  square<<<n / block, block, 0, stream>>>(more, y);
  CHECK(cudaFreeAsync(more, stream));
}

/* Returns the bytes of the graph's memory. */
static std::size_t run(cudaStream_t stream, const float *x, float *y) {
  const std::size_t before = used_bytes();

  cudaGraph_t graph;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  enqueue(stream, x, y);
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int launch = 0; launch < launches; launch++) CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  const std::size_t used = used_bytes() - before;
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  return used;
}

int main() {
  float *x = device_array<float>(n), *y = device_array<float>(n), host[3] = {1, 2, 3};
  CHECK(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice));
  const cudaStream_t stream = new_stream();
  const std::size_t used = run(stream, x, y);

  CHECK(cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost));
  std::printf("bytes of the graph's memory: %zu\n", used);
  std::printf("y = %g %g %g\n", host[0], host[1], host[2]);
  CHECK(cudaStreamDestroy(stream));
  for (void *array : {x, y}) CHECK(cudaFree(array));
  return 0;
}
