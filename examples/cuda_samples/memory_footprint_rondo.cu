/* SPDX-License-Identifier: MIT
 * memory_footprint.cu with Rondo: the graphs of a stream share memory, and the second array of a branch gets the
 * address of the first.
 *
 * At most 2 MiB more: bytes of the graphs' memory
 * Exactly 4 MiB: bytes of the graphs' memory
 */
#include <rondo/rondo.hpp>

#include "sample.h"

constexpr int n = 1 << 18, block = 256, graphs = 4, launches = 2;

extern "C" __global__ void fill_with(float value, float *y) { y[blockIdx.x * blockDim.x + threadIdx.x] = value; }

extern "C" __global__ void add_to(const float *x, float *y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] += x[i];
}

/* y += value, through two temporaries, of which the second is allocated after the first is free. */
static void add_value(const rondo::stream &adopted, float value, float *y) {
  for (int i = 0; i < 2; i++) {
    const rondo::scratch<float> temporary(adopted, n);
    const auto stream = adopted.native<CUstream_st>();
    fill_with<<<n / block, block, 0, stream>>>(value / 2, temporary);
    add_to<<<n / block, block, 0, stream>>>(temporary, y);
  }
}

static void enqueue(const rondo::stream &adopted, const rondo::stream &adopted_branch, cudaEvent_t event, float value,
                    float *const y[2]) {
  const auto stream = adopted.native<CUstream_st>(), branch = adopted_branch.native<CUstream_st>();
  CHECK(cudaEventRecord(event, stream));
  CHECK(cudaStreamWaitEvent(branch, event, 0));
  add_value(adopted, value, y[0]);
  add_value(adopted_branch, 2 * value, y[1]);
  CHECK(cudaEventRecord(event, branch));
  CHECK(cudaStreamWaitEvent(stream, event, 0));
}

/* Returns the bytes of the graphs' memory. */
static std::size_t run(cudaStream_t stream, cudaStream_t branch, cudaEvent_t event, float *const y[2]) {
  const std::size_t before = used_bytes();

  const rondo::device device("cuda:0");
  const rondo::stream adopted = rondo::stream::adopt(device, stream);
  const rondo::stream adopted_branch = rondo::stream::adopt(device, branch);
  std::vector<rondo::exec> execs;
  for (int i = 0; i < graphs; i++) {
    execs.emplace_back(
        rondo::capture_graph(adopted, [&] { enqueue(adopted, adopted_branch, event, static_cast<float>(1 + i), y); }));
  }
  for (int i = 0; i < launches * graphs; i++) execs[i % graphs].launch(adopted);
  CHECK(cudaStreamSynchronize(stream));
  const std::size_t used = used_bytes() - before;
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
