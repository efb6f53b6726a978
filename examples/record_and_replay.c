/* SPDX-License-Identifier: MIT
 * Record and replay, with memory inside the graph: computes y += a * x a thousand times, through a scratch buffer that
 * exists only while the graph runs.
 *
 *   record_and_replay [DEVICE]
 *
 * Prints: y[0] = 500 after 1000 replays of 4 nodes
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <rondo/rondo.h>

#define TRY(call)                                  \
  do {                                             \
    const rondo_status try_status = (call);        \
    if (try_status != RONDO_OK) return try_status; \
  } while (0)

enum { BLOCK = 256, N = 4096, STEPS = 1000 };

static void saxpy_cpu(rondo_blocks blocks, void *const *args) {
  const float a = *(const float *)args[0];
  const float *x = *(const float **)args[1];
  float *y = *(float **)args[2];
  for (size_t i = blocks.first * BLOCK; i < blocks.last * BLOCK; i++) y[i] += a * x[i];
}

/* A block has as many threads on a CUDA device as it has elements on the CPU. */
static const char saxpy_cuda[] =
    "extern \"C\" __global__ void saxpy(float a, const float *x, float *y) {\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  y[i] += a * x[i];\n"
    "}\n";

/* x is all ones, y all zeros. */
static rondo_status make_vectors(rondo_device *device, rondo_stream *stream, void **out_x, void **out_y) {
  static float host[N];
  for (size_t i = 0; i < N; i++) host[i] = 1;
  TRY(rondo_malloc(device, sizeof host, "x", out_x));
  TRY(rondo_malloc(device, sizeof host, "y", out_y));
  TRY(rondo_copy_async(stream, *out_x, host, sizeof host));
  return rondo_fill_async(stream, &(rondo_fill){.dst = *out_y, .value = 0, .element_bytes = 4, .width = N});
}

/* Work that is enqueued between begin and end does not run. It becomes the nodes of a graph. */
static rondo_status record_and_replay(rondo_stream *stream, rondo_kernel *saxpy, const void *x, void *y,
                                      size_t *out_nodes) {
  const size_t bytes = N * sizeof(float);
  const float a = 0.5f;
  void *scratch;
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

  *out_nodes = 0;
  TRY(rondo_graph_nodes(graph, NULL, out_nodes));
  rondo_exec_destroy(exec);
  return rondo_graph_destroy(graph);
}

static rondo_status run(const char *name, bool *out_is_right) {
  const rondo_kernel_options options = {
      RONDO_KERNEL_OPTIONS_INIT, .name = "saxpy",        .cpu = saxpy_cpu,
      .cuda_source = saxpy_cuda, .block_threads = BLOCK, .params = {RONDO_SCALAR(float), RONDO_READS, RONDO_UPDATES}};
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *saxpy;
  void *x, *y;
  size_t nodes;
  float first;
  TRY(rondo_device_open(name, NULL, &device));
  TRY(rondo_stream_create(device, NULL, &stream));
  TRY(rondo_kernel_create(device, &options, &saxpy));
  TRY(make_vectors(device, stream, &x, &y));
  TRY(record_and_replay(stream, saxpy, x, y, &nodes));
  TRY(rondo_copy_async(stream, &first, y, sizeof first));
  TRY(rondo_stream_synchronize(stream));
  printf("y[0] = %g after %d replays of %zu nodes\n", (double)first, STEPS, nodes);
  *out_is_right = first == 500;
  TRY(rondo_free(device, x));
  TRY(rondo_free(device, y));
  rondo_kernel_destroy(saxpy);
  TRY(rondo_stream_destroy(stream));
  return rondo_device_close(device);
}

int main(int argc, char **argv) {
  bool is_right = false;
  if (run(argc > 1 ? argv[1] : "cpu", &is_right) == RONDO_OK) return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
  fprintf(stderr, "%s: %s\n", argv[0], rondo_last_error()->message);
  return EXIT_FAILURE;
}
