/* SPDX-License-Identifier: MIT
 * memory_nodes.cu with Rondo: the temporary arrays are planned into the graph, whose memory is as large as what is
 * alive at any one time.
 *
 * At most 2 MiB more: bytes of the graph's memory
 * Exactly 4 MiB: bytes of the graph's memory
 */
#include <rondo/rondo.hpp>

#include "sample.h"

constexpr int n = 1 << 18, block = 256, launches = 10;

extern "C" __global__ void square(const float *x, float *y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i] * x[i];
}

extern "C" __global__ void add_neighbour(const float *x, float *y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i] + x[(i + 1) % n];
}

static void enqueue(const rondo::stream &adopted, cudaStream_t stream, const float *x, float *y) {
  rondo::scratch<float> squares(adopted, n);
  square<<<n / block, block, 0, stream>>>(x, squares);
  rondo::scratch<float> sums(adopted, n);
  add_neighbour<<<n / block, block, 0, stream>>>(squares, sums);
  squares.reset();
  rondo::scratch<float> more(adopted, n);
  add_neighbour<<<n / block, block, 0, stream>>>(sums, more);
  sums.reset();
  square<<<n / block, block, 0, stream>>>(more, y);
}

/* Returns the bytes of the graph's memory. */
static std::size_t run(cudaStream_t stream, const float *x, float *y) {
  const std::size_t before = used_bytes();

  const rondo::device device("cuda:0");
  const rondo::stream adopted = rondo::stream::adopt(device, stream);
  for (const char *kernel : {"square", "add_neighbour"})
    rondo::declare_access<const float *, rondo::out<float *>>(device, kernel);
  const rondo::graph graph = rondo::capture_graph(adopted, [&] { enqueue(adopted, stream, x, y); });
  const rondo::exec exec(graph); /* verified */
  for (int launch = 0; launch < launches; launch++) exec.launch(adopted);
  CHECK(cudaStreamSynchronize(stream));
  const std::size_t used = used_bytes() - before;
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
