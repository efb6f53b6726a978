/* SPDX-License-Identifier: MIT
 * A program that captures and launches its own cudaGraph_t gets more of it: the graph is imported, verified, and
 * launched with its input at other addresses, without a copy and without another capture. The program's graph stays
 * its own.
 *
 *   nvcc examples/cuda_graph.cu $(pkg-config --cflags --libs rondo) -o cuda_graph && ./cuda_graph
 *
 * Prints: y[0] = 2, then 4, from one graph of 2 nodes
 */
#include <cstdio>

#include <rondo/rondo.h>

#define TRY(call)                           \
  do {                                      \
    const rondo_status try_status = (call); \
    if (try_status) return try_status;      \
  } while (0)

static constexpr int COUNT = 1 << 20, BLOCK = 256;

__global__ void twice(float *y) { y[blockIdx.x * blockDim.x + threadIdx.x] *= 2; }

/* The program as it was: it captures its own graph. */
static cudaGraph_t capture(cudaStream_t stream, const float *x, float *y) {
  cudaGraph_t graph = nullptr;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  cudaMemcpyAsync(y, x, COUNT * sizeof *x, cudaMemcpyDeviceToDevice, stream);
  twice<<<COUNT / BLOCK, BLOCK, 0, stream>>>(y);
  cudaStreamEndCapture(stream, &graph);
  return graph;
}

static rondo_status launch(rondo_patch_set *set, rondo_stream *stream, const float *x, const float *y, float *result) {
  const void *const addresses[] = {x};
  TRY(rondo_patch_set_launch(set, stream, addresses));
  TRY(rondo_copy_async(stream, result, y, sizeof *result));
  return rondo_stream_synchronize(stream);
}

static rondo_status run(cudaGraph_t own, float *const inputs[2], const float *y, float results[2]) {
  rondo_device *device;
  rondo_stream *stream;
  rondo_graph *graph;
  rondo_exec *exec;
  rondo_patch_set *set;
  size_t nodes = 0;
  TRY(rondo_device_open("cuda:0", nullptr, &device));
  TRY(rondo_stream_create(device, nullptr, &stream));
  TRY(rondo_graph_import(device, own, nullptr, &graph)); /* a copy: cudaGraphDestroy is still the program's */
  TRY(rondo_instantiate(graph, nullptr, &exec));         /* verifies the graph */
  rondo_patch_input input = {};
  input.address = inputs[0];
  input.bytes = COUNT * sizeof(float);
  TRY(rondo_patch_set_create(exec, &input, 1, nullptr, &set));
  for (int i = 0; i < 2; i++) TRY(launch(set, stream, inputs[i], y, &results[i]));
  TRY(rondo_graph_nodes(graph, nullptr, &nodes));
  std::printf("y[0] = %g, then %g, from one graph of %zu nodes\n", results[0], results[1], nodes);
  rondo_patch_set_destroy(set);
  rondo_exec_destroy(exec);
  TRY(rondo_graph_destroy(graph));
  TRY(rondo_stream_destroy(stream));
  return rondo_device_close(device);
}

int main() {
  float *inputs[2], *y, results[2] = {};
  cudaStream_t stream;
  if (cudaMalloc(&inputs[0], COUNT * sizeof *y) != cudaSuccess) return 77;
  if (cudaMalloc(&inputs[1], COUNT * sizeof *y) != cudaSuccess || cudaMalloc(&y, COUNT * sizeof *y) != cudaSuccess)
    return 77;
  for (int i = 0; i < 2; i++) {
    const float first = static_cast<float>(i + 1);
    cudaMemcpy(inputs[i], &first, sizeof first, cudaMemcpyHostToDevice);
  }
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return 1;
  cudaDeviceSynchronize();
  const cudaGraph_t graph = capture(stream, inputs[0], y);
  const rondo_status status = run(graph, inputs, y, results);
  if (status != RONDO_OK) std::fprintf(stderr, "%s\n", rondo_last_error()->message);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  cudaFree(y);
  for (float *input : inputs) cudaFree(input);
  return status == RONDO_OK && results[0] == 2 && results[1] == 4 ? 0 : 1;
}
