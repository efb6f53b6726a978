/* SPDX-License-Identifier: MIT
 * decoder_loop.cu with Rondo: a token is a region that is captured always. Rondo keeps the executable graphs, updates
 * the one with the same work, and says what happened if a capture dies.
 *
 * At most 2 MiB more: bytes more than after 100 tokens
 * Exactly 0 MiB: bytes more than after 100 tokens
 */
#include <atomic>
#include <mutex>
#include <thread>

#include <rondo/rondo.hpp>

#include "sample.h"

constexpr int width = 256, tokens = 400, settled = 100, sets = 3, topologies = 2, layers = 12;

extern "C" __global__ void embed(int token, float *y) { y[threadIdx.x] = static_cast<float>(token % 7); }

extern "C" __global__ void layer(const float *weights, const float *x, float *y) {
  y[threadIdx.x] = x[threadIdx.x] + weights[threadIdx.x];
}

struct model {
  float *weights, *tensors[sets], *host_result;
};

/* The engine takes one of its sets of tensors, as an allocator of its own would. */
static void enqueue(const model *m, int token, cudaStream_t stream) {
  float *tensor = m->tensors[token / topologies % sets];
  embed<<<1, width, 0, stream>>>(token, tensor);
  for (int i = 0; i < layers + token % topologies; i++, tensor += width)
    layer<<<1, width, 0, stream>>>(m->weights, tensor, tensor + width);
  CHECK(cudaMemcpyAsync(m->host_result, tensor, sizeof(float), cudaMemcpyDeviceToHost, stream));
}

static void decode(const rondo::region<> &region, const rondo::stream &adopted, model *m, int token) {
  region.run(adopted, {}, {}, [&](rondo::call &) { enqueue(m, token, adopted.native<CUstream_st>()); });
}

/* Another thread of the program, which the loop does not know. */
struct allocating {
  std::mutex holds; /* memory that does not count as growth */
  std::atomic<bool> is_over{false};
  std::thread thread{[this] {
    while (!is_over) {
      const std::lock_guard<std::mutex> lock(holds);
      CHECK(cudaFree(device_array<float>(1 << 16)));
    }
  }};
};

static void run(model *m, cudaStream_t stream) {
  const rondo::device device("cuda:0");
  const rondo::stream adopted = rondo::stream::adopt(device, stream);
  const rondo::tree tree(device);
  rondo_region_options options = {};
  options.mode = RONDO_REGION_CAPTURE_ALWAYS;
  const rondo::region<> region(tree, "token", {}, options);
  allocating other;
  std::size_t before = 0;
  int right = 0;
  for (int token = 0; token < tokens; token++) {
    if (token == settled) before = (std::lock_guard<std::mutex>(other.holds), used_bytes());
    decode(region, adopted, m, token);
    CHECK(cudaStreamSynchronize(stream));
    right += *m->host_result == static_cast<float>(token % 7 + layers + token % topologies);
  }
  other.is_over = true;
  other.thread.join();
  std::printf("bytes more than after %d tokens: %zd\n", settled, static_cast<ptrdiff_t>(used_bytes() - before));
  std::printf("%d of %d tokens are right\n", right, tokens);
}

int main() {
  float ones[width];
  for (float &one : ones) one = 1;
  model m = {device_array(width, ones), {}, host_array<float>(1)};
  for (float *&set : m.tensors) set = device_array<float>((layers + 2) * width);
  const cudaStream_t stream = new_stream();
  run(&m, stream);
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(m.weights));
  for (float *set : m.tensors) CHECK(cudaFree(set));
  CHECK(cudaFreeHost(m.host_result));
  return 0;
}
