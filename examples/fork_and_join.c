/* SPDX-License-Identifier: MIT
 * Two streams become two branches of one graph. An event forks the second stream from the capturing one, and another
 * event joins it again. Without a capture, the same calls run eagerly on two streams.
 *
 *   fork_and_join [DEVICE]
 *
 * Prints the graph's edges and: sum[3] = 3*3 + 3*3*3 = 36
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

/* A block has as many threads on a CUDA device as it has elements on the CPU. */
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

typedef struct program {
  rondo_device *device;
  rondo_stream *left, *right;
  rondo_event *fork, *join;
  rondo_kernel *power, *add;
  void *x, *squares, *cubes, *sum;
} program;

static rondo_status make_kernels(program *p) {
  TRY(rondo_kernel_create(
      p->device,
      &(rondo_kernel_options){RONDO_KERNEL_OPTIONS_INIT, .name = "power", .cpu = power_cpu, .cuda_source = power_cuda,
                              .block_threads = BLOCK, .params = {RONDO_SCALAR(int), RONDO_READS, RONDO_WRITES}},
      &p->power));
  return rondo_kernel_create(
      p->device,
      &(rondo_kernel_options){RONDO_KERNEL_OPTIONS_INIT, .name = "add", .cpu = add_cpu, .cuda_source = add_cuda,
                              .block_threads = BLOCK, .params = {RONDO_READS, RONDO_READS, RONDO_WRITES}},
      &p->add);
}

static rondo_status set_up(program *p, const char *device) {
  TRY(rondo_device_open(device, NULL, &p->device));
  TRY(rondo_stream_create(p->device, NULL, &p->left));
  TRY(rondo_stream_create(p->device, NULL, &p->right));
  TRY(rondo_event_create(p->device, NULL, &p->fork));
  TRY(rondo_event_create(p->device, NULL, &p->join));
  TRY(make_kernels(p));
  TRY(rondo_malloc(p->device, N * sizeof(float), "x", &p->x));
  TRY(rondo_malloc(p->device, N * sizeof(float), "squares", &p->squares));
  TRY(rondo_malloc(p->device, N * sizeof(float), "cubes", &p->cubes));
  return rondo_malloc(p->device, N * sizeof(float), "sum", &p->sum);
}

static rondo_status capture(const program *p, const float *host, rondo_graph **out_graph) {
  const rondo_grid grid = {.x = N / BLOCK};
  const int two = 2, three = 3;
  TRY(rondo_capture_begin(p->left, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(rondo_copy_async(p->left, p->x, host, N * sizeof *host));
  TRY(rondo_event_record(p->fork, p->left));
  TRY(rondo_stream_wait_event(p->right, p->fork)); /* from here on, `right` captures too */
  TRY(rondo_launch(p->left, p->power, grid, RONDO_ARGS(&two, &p->x, &p->squares)));
  TRY(rondo_launch(p->right, p->power, grid, RONDO_ARGS(&three, &p->x, &p->cubes)));
  TRY(rondo_event_record(p->join, p->right));
  TRY(rondo_stream_wait_event(p->left, p->join)); /* and is joined to `left` */
  TRY(rondo_launch(p->left, p->add, grid, RONDO_ARGS(&p->squares, &p->cubes, &p->sum)));
  return rondo_capture_end(p->left, out_graph);
}

static rondo_status print_edges(const rondo_graph *graph, size_t *out_count) {
  rondo_node from[MAX_EDGES], to[MAX_EDGES];
  *out_count = MAX_EDGES;
  TRY(rondo_graph_edges(graph, from, to, out_count));
  for (size_t i = 0; i < *out_count; i++) printf("%u -> %u\n", rondo_node_number(from[i]), rondo_node_number(to[i]));
  return RONDO_OK;
}

static rondo_status launch(const program *p, rondo_graph *graph, float *result) {
  rondo_exec *exec;
  TRY(rondo_instantiate(graph, NULL, &exec));
  TRY(rondo_exec_launch(exec, p->left));
  TRY(rondo_copy_async(p->left, result, p->sum, N * sizeof *result));
  TRY(rondo_stream_synchronize(p->left));
  rondo_exec_destroy(exec);
  return RONDO_OK;
}

static rondo_status tear_down(const program *p) {
  void *const allocations[] = {p->x, p->squares, p->cubes, p->sum};
  for (size_t i = 0; i < sizeof allocations / sizeof allocations[0]; i++) TRY(rondo_free(p->device, allocations[i]));
  rondo_kernel_destroy(p->power);
  rondo_kernel_destroy(p->add);
  rondo_event_destroy(p->fork);
  rondo_event_destroy(p->join);
  TRY(rondo_stream_destroy(p->left));
  TRY(rondo_stream_destroy(p->right));
  return rondo_device_close(p->device);
}

static rondo_status run(const char *device, bool *out_is_right) {
  static float host[N], result[N];
  program p;
  rondo_graph *graph;
  size_t edges;
  for (size_t i = 0; i < N; i++) host[i] = (float)i;
  TRY(set_up(&p, device));
  TRY(capture(&p, host, &graph));
  TRY(print_edges(graph, &edges));
  TRY(launch(&p, graph, result));
  printf("sum[3] = 3*3 + 3*3*3 = %g\n", (double)result[3]);
  *out_is_right = result[3] == 36 && edges == 4;
  TRY(rondo_graph_destroy(graph));
  return tear_down(&p);
}

int main(int argc, char **argv) {
  bool is_right = false;
  if (run(argc > 1 ? argv[1] : "cpu", &is_right) == RONDO_OK) return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
  fprintf(stderr, "%s: %s\n", argv[0], rondo_last_error()->message);
  return EXIT_FAILURE;
}
