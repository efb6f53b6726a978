/* SPDX-License-Identifier: MIT
 * Record and replay, with memory inside the graph: y += a * x, a thousand times, through a scratch buffer that exists
 * only while the graph runs.
 *
 *   record_and_replay [DEVICE]
 *
 * Prints: y[0] = 500 after 1000 replays of 4 nodes
 */
#include <stdio.h>
#include <stdlib.h>

#include <rondo/rondo.h>

#define TRY(call)                                                        \
  do {                                                                   \
    if ((call) != RONDO_OK) {                                            \
      fprintf(stderr, "%s: %s\n", argv[0], rondo_last_error()->message); \
      return EXIT_FAILURE;                                               \
    }                                                                    \
  } while (0)

enum { BLOCK = 256, N = 4096, STEPS = 1000 };

static void saxpy_cpu(rondo_blocks blocks, void *const *args) {
  const float a = *(const float *)args[0];
  const float *x = *(const float **)args[1];
  float *y = *(float **)args[2];
  for (size_t i = blocks.first * BLOCK; i < blocks.last * BLOCK; i++) y[i] += a * x[i];
}

/* A block of a CUDA device has as many threads as a block of the CPU's has elements. */
static const char saxpy_cuda[] =
    "extern \"C\" __global__ void saxpy(float a, const float *x, float *y) {\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  y[i] += a * x[i];\n"
    "}\n";

int main(int argc, char **argv) {
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *saxpy;
  TRY(rondo_device_open(argc > 1 ? argv[1] : "cpu", NULL, &device));
  TRY(rondo_stream_create(device, NULL, &stream));
  TRY(rondo_kernel_create(
      device,
      &(rondo_kernel_options){RONDO_KERNEL_OPTIONS_INIT, .name = "saxpy", .cpu = saxpy_cpu, .cuda_source = saxpy_cuda,
                              .block_threads = BLOCK, .params = {RONDO_SCALAR(float), RONDO_READS, RONDO_UPDATES}},
      &saxpy));

  static float host[N];
  const size_t bytes = sizeof host;
  const float a = 0.5f;
  void *x, *y, *scratch;
  for (size_t i = 0; i < N; i++) host[i] = 1;
  TRY(rondo_malloc(device, bytes, "x", &x));
  TRY(rondo_malloc(device, bytes, "y", &y));
  TRY(rondo_copy_async(stream, x, host, bytes));
  TRY(rondo_fill_async(stream, &(rondo_fill){.dst = y, .value = 0, .element_bytes = 4, .width = N}));

  /* What is queued from here on does not run: it becomes the nodes of a graph. */
  rondo_graph *graph;
  TRY(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(rondo_malloc_async(stream, bytes, &(rondo_malloc_options){RONDO_MALLOC_OPTIONS_INIT, .name = "scratch"},
                         &scratch)); /* an alloc node: its address is fixed */
  TRY(rondo_copy_async(stream, scratch, x, bytes));
  TRY(rondo_launch(stream, saxpy, (rondo_grid){.x = N / BLOCK}, RONDO_ARGS(&a, &scratch, &y)));
  TRY(rondo_free_async(stream, scratch)); /* a free node */
  TRY(rondo_capture_end(stream, &graph));

  rondo_exec *exec;
  TRY(rondo_instantiate(graph, NULL, &exec)); /* verified, planned, lowered */
  for (int step = 0; step < STEPS; step++) TRY(rondo_exec_launch(exec, stream));
  TRY(rondo_copy_async(stream, host, y, bytes));
  TRY(rondo_stream_synchronize(stream));

  size_t nodes = 0;
  TRY(rondo_graph_nodes(graph, NULL, &nodes));
  printf("y[0] = %g after %d replays of %zu nodes\n", (double)host[0], STEPS, nodes);

  rondo_exec_destroy(exec);
  TRY(rondo_graph_destroy(graph));
  TRY(rondo_free(device, x));
  TRY(rondo_free(device, y));
  rondo_kernel_destroy(saxpy);
  TRY(rondo_stream_destroy(stream));
  TRY(rondo_device_close(device));
  return host[0] == 500 ? EXIT_SUCCESS : EXIT_FAILURE;
}
