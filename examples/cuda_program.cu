/* SPDX-License-Identifier: MIT
 * An existing program of CUDA's run time, recorded: its buffers, kernels, launches, library calls and its stream stay
 * what they are. Rondo adopts the stream. What the program enqueues on it between the begin and the end of the capture
 * becomes a graph, which is verified, instantiated and launched.
 *
 *   nvcc examples/cuda_program.cu $(pkg-config --cflags --libs rondo) -o cuda_program && ./cuda_program
 *
 * Prints: x[0] = 1024 after 10 replays of 2 nodes
 */
#include <cstdio>

#include <rondo/rondo.h>

#define TRY(call)                           \
  do {                                      \
    const rondo_status try_status = (call); \
    if (try_status) return try_status;      \
  } while (0)

static constexpr int COUNT = 1 << 20, BLOCK = 256, REPLAYS = 10;

__global__ void add(float *x, const float *y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] += y[i];
}

/* The program as it was: it takes the stream that it works on. */
static cudaError_t step(cudaStream_t stream, float *x, float *y) {
  cudaMemcpyAsync(y, x, COUNT * sizeof *x, cudaMemcpyDeviceToDevice, stream);
  add<<<COUNT / BLOCK, BLOCK, 0, stream>>>(x, y);
  return cudaGetLastError();
}

static rondo_status record(rondo_stream *stream, cudaStream_t own, float *x, float *y, rondo_graph **graph) {
  TRY(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  const cudaError_t queued = step(own, x, y);
  const rondo_status ended = rondo_capture_end(stream, graph);
  return queued == cudaSuccess ? ended : RONDO_EXECUTION_FAILED;
}

static rondo_status run(cudaStream_t own, float *x, float *y, float *first) {
  rondo_device *device;
  rondo_stream *stream;
  rondo_graph *graph;
  rondo_exec *exec;
  size_t nodes = 0;
  TRY(rondo_device_open("cuda:0", nullptr, &device)); /* the GPU's primary context, as the run time has it */
  TRY(rondo_stream_adopt(device, own, nullptr, &stream));
  TRY(record(stream, own, x, y, &graph));
  TRY(rondo_instantiate(graph, nullptr, &exec));
  for (int i = 0; i < REPLAYS; i++) TRY(rondo_exec_launch(exec, stream));
  TRY(rondo_copy_async(stream, first, x, sizeof *first));
  TRY(rondo_stream_synchronize(stream));
  TRY(rondo_graph_nodes(graph, nullptr, &nodes));
  std::printf("x[0] = %g after %d replays of %zu nodes\n", *first, REPLAYS, nodes);
  rondo_exec_destroy(exec);
  TRY(rondo_graph_destroy(graph));
  TRY(rondo_stream_destroy(stream)); /* the program's stream is left */
  return rondo_device_close(device);
}

int main() {
  const float one = 1;
  float *x, *y, first = 0;
  cudaStream_t own;
  if (cudaMalloc(&x, COUNT * sizeof *x) != cudaSuccess || cudaMalloc(&y, COUNT * sizeof *y) != cudaSuccess) return 77;
  cudaMemset(x, 0, COUNT * sizeof *x);
  cudaMemcpy(x, &one, sizeof one, cudaMemcpyHostToDevice);
  if (cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking) != cudaSuccess) return 1;
  cudaDeviceSynchronize(); /* the calls above are not ordered with this stream */
  const rondo_status status = run(own, x, y, &first);
  cudaStreamDestroy(own);
  if (status != RONDO_OK) std::fprintf(stderr, "%s\n", rondo_last_error()->message);
  cudaFree(x);
  cudaFree(y);
  return status == RONDO_OK && first == 1024 ? 0 : 1;
}
