/* SPDX-License-Identifier: MIT
 * How much memory graphs need: several graphs, of which each has two branches with temporary memory, are launched one
 * after another on one stream. Their memory is not alive at the same time. (The idea of CUDA's sample
 * graphMemoryFootprint.)
 */
#include "sample.h"

constexpr int n = 1 << 18, block = 256, graphs = 4, launches = 2;
constexpr std::size_t bytes = n * sizeof(float);

extern "C" __global__ void fill_with(float value, float *y) { y[blockIdx.x * blockDim.x + threadIdx.x] = value; }

extern "C" __global__ void add_to(const float *x, float *y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] += x[i];
}

/* y += value, through two temporaries, of which the second is allocated after the first is free. */
static void add_value(cudaStream_t stream, float value, float *y) {
  for (int i = 0; i < 2; i++) {
    float *temporary;
    CHECK(cudaMallocAsync(&temporary, bytes, stream));
    fill_with<<<n / block, block, 0, stream>>>(value / 2, temporary);
    add_to<<<n / block, block, 0, stream>>>(temporary, y);
    CHECK(cudaFreeAsync(temporary, stream));
  }
}

static void enqueue(cudaStream_t stream, cudaStream_t branch, cudaEvent_t event, float value, float *const y[2]) {
  CHECK(cudaEventRecord(event, stream));
  CHECK(cudaStreamWaitEvent(branch, event, 0));
  add_value(stream, value, y[0]);
  add_value(branch, 2 * value, y[1]);
  CHECK(cudaEventRecord(event, branch));
  CHECK(cudaStreamWaitEvent(stream, event, 0));
}

/* Returns the bytes of the graphs' memory. */
static std::size_t run(cudaStream_t stream, cudaStream_t branch, cudaEvent_t event, float *const y[2]) {
  const std::size_t before = used_bytes();

  cudaGraphExec_t execs[graphs];
  for (int i = 0; i < graphs; i++) {
    cudaGraph_t graph;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    enqueue(stream, branch, event, static_cast<float>(1 + i), y);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&execs[i], graph, 0));
    CHECK(cudaGraphDestroy(graph));
  }
  for (int i = 0; i < launches * graphs; i++) CHECK(cudaGraphLaunch(execs[i % graphs], stream));
  CHECK(cudaStreamSynchronize(stream));
  const std::size_t used = used_bytes() - before;
  for (cudaGraphExec_t exec : execs) CHECK(cudaGraphExecDestroy(exec));
  return used;
}

int main() {
  float *y[2] = {device_array<float>(n), device_array<float>(n)}, host[2];
  const cudaStream_t stream = new_stream(), branch = new_stream();
  cudaEvent_t event;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const std::size_t used = run(stream, branch, event, y);

  for (int i = 0; i < 2; i++) CHECK(cudaMemcpy(&host[i], y[i], sizeof(float), cudaMemcpyDeviceToHost));
  std::printf("bytes of the graphs' memory: %zu\n", used);
  std::printf("%d graphs, y = %g %g\n", graphs, host[0], host[1]);
  CHECK(cudaEventDestroy(event));
  for (cudaStream_t each : {stream, branch}) CHECK(cudaStreamDestroy(each));
  for (void *array : y) CHECK(cudaFree(array));
  return 0;
}
