/* SPDX-License-Identifier: MIT
 * Builds a graph node by node and updates its exec in place: first the parameters of one node, then those of all nodes,
 * taken from another graph. An update from a graph with another topology is refused.
 *
 *   build_and_update [DEVICE]
 *
 * Prints: first 10, one node 30, whole graph 250, then TOPOLOGY_CHANGED, still 250
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

/* `value` is filled in by the first node, multiplied by the second. */
static void multiply_cpu(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  **(int **)args[0] *= *(const int *)args[1];
}

static const char multiply_cuda[] =
    "extern \"C\" __global__ void multiply(int *value, int factor) { if (threadIdx.x == 0) *value *= factor; }";

static const rondo_grid one_block = {.x = 1};

typedef struct program {
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *multiply;
  void *value;
} program;

static rondo_status set_up(program *p, const char *device) {
  const rondo_kernel_options multiply = {RONDO_KERNEL_OPTIONS_INIT, .name = "multiply", .cpu = multiply_cpu,
                                         .cuda_source = multiply_cuda, .params = {RONDO_UPDATES, RONDO_SCALAR(int)}};
  TRY(rondo_device_open(device, NULL, &p->device));
  TRY(rondo_stream_create(p->device, NULL, &p->stream));
  TRY(rondo_kernel_create(p->device, &multiply, &p->multiply));
  return rondo_malloc(p->device, sizeof(int), "value", &p->value);
}

/* fill -> multiply */
static rondo_status build(const program *p, int start, int factor, rondo_node *out_multiply, rondo_graph **out_graph) {
  rondo_node fill;
  const rondo_fill first = {.dst = p->value, .value = (uint32_t)start, .element_bytes = 4, .width = 1};
  TRY(rondo_graph_create(p->device, NULL, out_graph));
  TRY(rondo_graph_add_fill(*out_graph, NULL, 0, &first, &fill));
  return rondo_graph_add_kernel(*out_graph, &fill, 1, p->multiply, one_block, RONDO_ARGS(&p->value, &factor),
                                out_multiply);
}

static rondo_status launch_and_read(const program *p, rondo_exec *exec, int *out) {
  TRY(rondo_exec_launch(exec, p->stream));
  TRY(rondo_copy_async(p->stream, out, p->value, sizeof *out));
  return rondo_stream_synchronize(p->stream);
}

/* The exec multiplies by 6 from now on. */
static rondo_status change_one_node(const program *p, rondo_exec *exec, rondo_node multiply) {
  const int six = 6;
  const void *const args[] = {&p->value, &six};
  const rondo_node_params params = {
      .kind = RONDO_NODE_KERNEL, .as.kernel = {.kernel = p->multiply, .grid = one_block, .args = args, .arg_count = 2}};
  return rondo_exec_set_params(exec, multiply, &params);
}

/* Takes the parameters of another graph with the same topology. Then adds a node: that topology is refused with a
 * reason, and the exec stays as it was. */
static rondo_status change_all(const program *p, rondo_exec *exec, int *out_whole, rondo_reason *out_reason) {
  rondo_graph *other;
  rondo_node multiply, extra;
  rondo_update_result result = {0};
  TRY(build(p, 25, 10, &multiply, &other));
  TRY(rondo_exec_update(exec, other, NULL));
  TRY(launch_and_read(p, exec, out_whole));
  TRY(rondo_graph_add_empty(other, &multiply, 1, &extra));
  if (rondo_exec_update(exec, other, &result) == RONDO_UPDATE_REFUSED) *out_reason = result.reason;
  return rondo_graph_destroy(other);
}

static rondo_status tear_down(const program *p) {
  TRY(rondo_free(p->device, p->value));
  rondo_kernel_destroy(p->multiply);
  TRY(rondo_stream_destroy(p->stream));
  return rondo_device_close(p->device);
}

static rondo_status run(const char *device, bool *out_is_right) {
  program p;
  rondo_graph *graph;
  rondo_node multiply;
  rondo_exec *exec;
  rondo_reason reason = RONDO_REASON_NONE;
  int first, one_node, whole, after;
  TRY(set_up(&p, device));
  TRY(build(&p, 5, 2, &multiply, &graph));
  TRY(rondo_instantiate(graph, NULL, &exec));
  TRY(launch_and_read(&p, exec, &first));
  TRY(change_one_node(&p, exec, multiply));
  TRY(launch_and_read(&p, exec, &one_node));
  TRY(change_all(&p, exec, &whole, &reason));
  TRY(launch_and_read(&p, exec, &after));
  printf("first %d, one node %d, whole graph %d, then %s, still %d\n", first, one_node, whole,
         rondo_reason_name(reason), after);
  *out_is_right = after == 250;
  rondo_exec_destroy(exec);
  TRY(rondo_graph_destroy(graph));
  return tear_down(&p);
}

int main(int argc, char **argv) {
  bool is_right = false;
  if (run(argc > 1 ? argv[1] : "cpu", &is_right) == RONDO_OK) return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
  fprintf(stderr, "%s: %s\n", argv[0], rondo_last_error()->message);
  return EXIT_FAILURE;
}
