/* SPDX-License-Identifier: MIT
 * stream_allocation.cu with Rondo: a round is a region. Its allocations are planned into the recording, whose memory
 * stays from round to round, and the host enqueues a round with one launch.
 *
 * Fewer: calls that enqueue or allocate
 * At most 2 MiB more: bytes at most
 * Exactly 6 MiB: bytes at most
 */
#include <rondo/rondo.hpp>

#include "sample.h"

constexpr int n = 1 << 18, block = 256, rounds = 20;

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

static void run_round(rondo::stream_ref adopted, cudaStream_t stream, float *result, counts *c) {
  rondo::scratch<float> x(adopted, n), y(adopted, n), z(adopted, n);
  measure(c);
  fill_with<<<n / block, block, 0, stream>>>(1.0f, x);
  fill_with<<<n / block, block, 0, stream>>>(2.0f, y);
  add<<<n / block, block, 0, stream>>>(x, y, z);
  x.reset();
  y.reset();
  add<<<1, block, 0, stream>>>(z, result, result);
  c->enqueued += 10;
}

static counts run(cudaStream_t stream, float *result) {
  counts c = {0, used_bytes(), 0};
  const rondo::device device("cuda:0");
  const rondo::stream adopted = rondo::stream::adopt(device, stream);
  const rondo::tree tree(device);
  const rondo::region<> region(tree, "round", {});
  for (int i = 0; i < rounds; i++) {
    region.run(adopted, {}, {}, [&](rondo::call &call) { run_round(call.stream(), stream, result, &c); });
    measure(&c);
    adopted.synchronize(); /* after which the pool of the first round is empty */
  }
  c.enqueued += static_cast<int>(region.info().replayed);
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
