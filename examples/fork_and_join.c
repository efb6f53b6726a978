/* SPDX-License-Identifier: MIT
 * Two streams become two branches of one graph: an event forks the second stream off the one that captures, another
 * joins it again. The same calls without a capture would run at once, on two streams.
 *
 *   fork_and_join [DEVICE]
 *
 * Prints the graph's edges and: sum[3] = 3*3 + 3*3*3 = 36
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

enum { BLOCK = 64, N = 1024, MAX_EDGES = 16 };

static void power_cpu(rondo_blocks blocks, void *const *args) {
  const int exponent = *(const int *)args[0];
  const float *x = *(const float **)args[1];
  float *y = *(float **)args[2];
  for (size_t i = blocks.first * BLOCK; i < blocks.last * BLOCK; i++) {
    y[i] = 1;
    for (int e = 0; e < exponent; e++) y[i] *= x[i];
  }
}

static void add_cpu(rondo_blocks blocks, void *const *args) {
  const float *a = *(const float **)args[0], *b = *(const float **)args[1];
  float *sum = *(float **)args[2];
  for (size_t i = blocks.first * BLOCK; i < blocks.last * BLOCK; i++) sum[i] = a[i] + b[i];
}

/* A block of a CUDA device has as many threads as a block of the CPU's has elements. */
static const char power_cuda[] =
    "extern \"C\" __global__ void power(int exponent, const float *x, float *y) {\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  y[i] = 1;\n"
    "  for (int e = 0; e < exponent; e++) y[i] *= x[i];\n"
    "}\n";
static const char add_cuda[] =
    "extern \"C\" __global__ void add(const float *a, const float *b, float *sum) {\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  sum[i] = a[i] + b[i];\n"
    "}\n";

int main(int argc, char **argv) {
  rondo_device *device;
  rondo_stream *left, *right;
  rondo_event *fork, *join;
  rondo_kernel *power, *add;
  TRY(rondo_device_open(argc > 1 ? argv[1] : "cpu", NULL, &device));
  TRY(rondo_stream_create(device, NULL, &left));
  TRY(rondo_stream_create(device, NULL, &right));
  TRY(rondo_event_create(device, NULL, &fork));
  TRY(rondo_event_create(device, NULL, &join));
  TRY(rondo_kernel_create(
      device,
      &(rondo_kernel_options){RONDO_KERNEL_OPTIONS_INIT, .name = "power", .cpu = power_cpu, .cuda_source = power_cuda,
                              .block_threads = BLOCK, .params = {RONDO_SCALAR(int), RONDO_READS, RONDO_WRITES}},
      &power));
  TRY(rondo_kernel_create(
      device,
      &(rondo_kernel_options){RONDO_KERNEL_OPTIONS_INIT, .name = "add", .cpu = add_cpu, .cuda_source = add_cuda,
                              .block_threads = BLOCK, .params = {RONDO_READS, RONDO_READS, RONDO_WRITES}},
      &add));

  static float host[N];
  void *x, *squares, *cubes, *sum;
  for (size_t i = 0; i < N; i++) host[i] = (float)i;
  TRY(rondo_malloc(device, sizeof host, "x", &x));
  TRY(rondo_malloc(device, sizeof host, "squares", &squares));
  TRY(rondo_malloc(device, sizeof host, "cubes", &cubes));
  TRY(rondo_malloc(device, sizeof host, "sum", &sum));

  rondo_graph *graph;
  const rondo_grid grid = {.x = N / BLOCK};
  const int two = 2, three = 3;
  TRY(rondo_capture_begin(left, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(rondo_copy_async(left, x, host, sizeof host));
  TRY(rondo_event_record(fork, left));
  TRY(rondo_stream_wait_event(right, fork)); /* from here on `right` captures too */
  TRY(rondo_launch(left, power, grid, RONDO_ARGS(&two, &x, &squares)));
  TRY(rondo_launch(right, power, grid, RONDO_ARGS(&three, &x, &cubes)));
  TRY(rondo_event_record(join, right));
  TRY(rondo_stream_wait_event(left, join)); /* and is back in `left` */
  TRY(rondo_launch(left, add, grid, RONDO_ARGS(&squares, &cubes, &sum)));
  TRY(rondo_capture_end(left, &graph));

  rondo_node from[MAX_EDGES], to[MAX_EDGES];
  size_t edges = MAX_EDGES;
  TRY(rondo_graph_edges(graph, from, to, &edges));
  for (size_t i = 0; i < edges; i++) printf("%u -> %u\n", rondo_node_number(from[i]), rondo_node_number(to[i]));

  rondo_exec *exec;
  static float result[N];
  TRY(rondo_instantiate(graph, NULL, &exec));
  TRY(rondo_exec_launch(exec, left));
  TRY(rondo_copy_async(left, result, sum, sizeof result));
  TRY(rondo_stream_synchronize(left));
  printf("sum[3] = 3*3 + 3*3*3 = %g\n", (double)result[3]);

  void *const allocations[] = {x, squares, cubes, sum};
  for (size_t i = 0; i < sizeof allocations / sizeof allocations[0]; i++) TRY(rondo_free(device, allocations[i]));
  rondo_exec_destroy(exec);
  TRY(rondo_graph_destroy(graph));
  rondo_kernel_destroy(power);
  rondo_kernel_destroy(add);
  rondo_event_destroy(fork);
  rondo_event_destroy(join);
  TRY(rondo_stream_destroy(left));
  TRY(rondo_stream_destroy(right));
  TRY(rondo_device_close(device));
  return result[3] == 36 && edges == 4 ? EXIT_SUCCESS : EXIT_FAILURE;
}
