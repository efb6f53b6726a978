/* SPDX-License-Identifier: MIT
 * A loop that allocates in the order of its stream: each round allocates three arrays, adds two of them into the third,
 * and frees them. The host waits at the end of each round. (The idea of CUDA's sample streamOrderedAllocation.)
 */
#include "sample.h"

constexpr int n = 1 << 18, block = 256, rounds = 20;
constexpr std::size_t bytes = n * sizeof(float);

extern "C" __global__ void fill_with(float value, float *y) { y[blockIdx.x * blockDim.x + threadIdx.x] = value; }

extern "C" __global__ void add(const float *x, const float *y, float *z) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  z[i] = x[i] + y[i];
}

struct counts {
  int enqueued; /* operations */
  std::size_t before, most_bytes;
};

static void measure(counts *c) {
  if (used_bytes() - c->before > c->most_bytes) c->most_bytes = used_bytes() - c->before;
}

static void run_round(cudaStream_t stream, float *result, counts *c) {
  float *x, *y, *z;
  CHECK(cudaMallocAsync(&x, bytes, stream));
  CHECK(cudaMallocAsync(&y, bytes, stream));
  CHECK(cudaMallocAsync(&z, bytes, stream));
  measure(c);
  fill_with<<<n / block, block, 0, stream>>>(1.0f, x);
  fill_with<<<n / block, block, 0, stream>>>(2.0f, y);
  add<<<n / block, block, 0, stream>>>(x, y, z);
  CHECK(cudaFreeAsync(x, stream));
  CHECK(cudaFreeAsync(y, stream));
  add<<<1, block, 0, stream>>>(z, result, result);
  CHECK(cudaFreeAsync(z, stream));
  c->enqueued += 10;
}

static counts run(cudaStream_t stream, float *result) {
  counts c = {0, used_bytes(), 0};
  for (int i = 0; i < rounds; i++) {
    run_round(stream, result, &c);
    measure(&c);
    CHECK(cudaStreamSynchronize(stream));
  }
  return c;
}

int main() {
  float *result = device_array<float>(block), first;
  const cudaStream_t stream = new_stream();
  const counts c = run(stream, result);

  CHECK(cudaMemcpy(&first, result, sizeof first, cudaMemcpyDeviceToHost));
  std::printf("calls that enqueue or allocate: %d\n", c.enqueued);
  std::printf("bytes at most: %zu\n", c.most_bytes);
  std::printf("%d rounds added up %g\n", rounds, first);
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(result));
  return 0;
}
