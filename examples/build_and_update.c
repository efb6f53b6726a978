/* SPDX-License-Identifier: MIT
 * A graph built node by node, and an exec that is kept while its parameters change: one node at a time, all from
 * another graph, and what is refused: another topology.
 *
 *   build_and_update [DEVICE]
 *
 * Prints: first 10, one node 30, whole graph 250, then TOPOLOGY_CHANGED, still 250
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

/* `value` is filled in by the first node, multiplied by the second. */
static void multiply_cpu(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  **(int **)args[0] *= *(const int *)args[1];
}

static const char multiply_cuda[] =
    "extern \"C\" __global__ void multiply(int *value, int factor) { if (threadIdx.x == 0) *value *= factor; }";

static const rondo_grid one_block = {.x = 1};

/* fill -> multiply */
static rondo_status build(rondo_device *device, rondo_kernel *multiply, int *value, int start, int factor,
                          rondo_node *out_multiply, rondo_graph **out_graph) {
  rondo_node fill;
  const rondo_fill first = {.dst = value, .value = (uint32_t)start, .element_bytes = 4, .width = 1};
  rondo_status status = rondo_graph_create(device, NULL, out_graph);
  if (!status) status = rondo_graph_add_fill(*out_graph, NULL, 0, &first, &fill);
  if (status) return status;
  return rondo_graph_add_kernel(*out_graph, &fill, 1, multiply, one_block, RONDO_ARGS(&value, &factor), out_multiply);
}

static rondo_status launch_and_read(rondo_exec *exec, rondo_stream *stream, const int *value, int *out) {
  rondo_status status = rondo_exec_launch(exec, stream);
  if (!status) status = rondo_copy_async(stream, out, value, sizeof *out);
  return status ? status : rondo_stream_synchronize(stream);
}

int main(int argc, char **argv) {
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *multiply;
  void *memory;
  TRY(rondo_device_open(argc > 1 ? argv[1] : "cpu", NULL, &device));
  TRY(rondo_stream_create(device, NULL, &stream));
  TRY(rondo_kernel_create(
      device,
      &(rondo_kernel_options){RONDO_KERNEL_OPTIONS_INIT, .name = "multiply", .cpu = multiply_cpu,
                              .cuda_source = multiply_cuda, .params = {RONDO_UPDATES, RONDO_SCALAR(int)}},
      &multiply));
  TRY(rondo_malloc(device, sizeof(int), "value", &memory));
  int *value = memory;

  rondo_graph *graph;
  rondo_node node;
  rondo_exec *exec;
  int first, one_node, whole, after;
  TRY(build(device, multiply, value, 5, 2, &node, &graph));
  TRY(rondo_instantiate(graph, NULL, &exec));
  TRY(launch_and_read(exec, stream, value, &first));

  /* One node: the exec multiplies by 6 from now on. */
  const int six = 6;
  const void *const args[] = {&value, &six};
  const rondo_node_params params = {.kind = RONDO_NODE_KERNEL,
                                    .as.kernel = {.kernel = multiply, .grid = one_block, .args = args, .arg_count = 2}};
  TRY(rondo_exec_set_params(exec, node, &params));
  TRY(launch_and_read(exec, stream, value, &one_node));

  /* All: the parameters of another graph of the same topology. */
  rondo_graph *other;
  rondo_node other_node;
  TRY(build(device, multiply, value, 25, 10, &other_node, &other));
  TRY(rondo_exec_update(exec, other, NULL));
  TRY(launch_and_read(exec, stream, value, &whole));

  /* A node more is another topology: refused with a reason, and the exec is as before. */
  rondo_node extra;
  rondo_update_result result = {0};
  TRY(rondo_graph_add_empty(other, &other_node, 1, &extra));
  const rondo_status refused = rondo_exec_update(exec, other, &result);
  TRY(launch_and_read(exec, stream, value, &after));
  printf("first %d, one node %d, whole graph %d, then %s, still %d\n", first, one_node, whole,
         rondo_reason_name(result.reason), after);

  rondo_exec_destroy(exec);
  TRY(rondo_graph_destroy(graph));
  TRY(rondo_graph_destroy(other));
  TRY(rondo_free(device, memory));
  rondo_kernel_destroy(multiply);
  TRY(rondo_stream_destroy(stream));
  TRY(rondo_device_close(device));
  return refused == RONDO_UPDATE_REFUSED && after == 250 ? EXIT_SUCCESS : EXIT_FAILURE;
}
