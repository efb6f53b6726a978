/* SPDX-License-Identifier: MIT
 * The loop of an engine that generates text, token by token. The engine enqueues the layers of a model anew for each
 * token: its tensors are at other addresses each time, and every other token has one layer more. So it captures each
 * token's work, and updates and launches the executable graph of an earlier token with as many layers. Meanwhile
 * another thread allocates memory.
 */
#include <atomic>
#include <mutex>
#include <thread>

#include "sample.h"

constexpr int width = 256, tokens = 400, settled = 100, sets = 3, topologies = 2, layers = 12;

extern "C" __global__ void embed(int token, float *y) { y[threadIdx.x] = static_cast<float>(token % 7); }

extern "C" __global__ void layer(const float *weights, const float *x, float *y) {
  y[threadIdx.x] = x[threadIdx.x] + weights[threadIdx.x];
}

struct model {
  float *weights, *tensors[sets], *host_result;
  cudaGraphExec_t execs[topologies];
};

/* The engine takes one of its sets of tensors, as an allocator of its own would. */
static void enqueue(const model *m, int token, cudaStream_t stream) {
  float *tensor = m->tensors[token / topologies % sets];
  embed<<<1, width, 0, stream>>>(token, tensor);
  for (int i = 0; i < layers + token % topologies; i++, tensor += width)
    layer<<<1, width, 0, stream>>>(m->weights, tensor, tensor + width);
  CHECK(cudaMemcpyAsync(m->host_result, tensor, sizeof(float), cudaMemcpyDeviceToHost, stream));
}

static void decode(model *m, int token, cudaStream_t stream) {
  cudaGraph_t graph;
  cudaGraphExec_t *exec = &m->execs[token % topologies];
  cudaGraphExecUpdateResultInfo updated;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  enqueue(m, token, stream);
  CHECK(cudaStreamEndCapture(stream, &graph));
  if (*exec != nullptr && cudaGraphExecUpdate(*exec, graph, &updated) != cudaSuccess) {
    CHECK(cudaGraphExecDestroy(*exec));
    *exec = nullptr;
  }
  if (*exec == nullptr) CHECK(cudaGraphInstantiate(exec, graph, 0));
  CHECK(cudaGraphLaunch(*exec, stream));
  CHECK(cudaGraphDestroy(graph));
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
  allocating other;
  std::size_t before = 0;
  int right = 0;
  for (int token = 0; token < tokens; token++) {
    if (token == settled) before = (std::lock_guard<std::mutex>(other.holds), used_bytes());
    decode(m, token, stream);
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
  model m = {device_array(width, ones), {}, host_array<float>(1), {}};
  for (float *&set : m.tensors) set = device_array<float>((layers + 2) * width);
  const cudaStream_t stream = new_stream();
  run(&m, stream);
  for (cudaGraphExec_t exec : m.execs)
    if (exec != nullptr) CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(m.weights));
  for (float *set : m.tensors) CHECK(cudaFree(set));
  CHECK(cudaFreeHost(m.host_result));
  return 0;
}
