/* SPDX-License-Identifier: MIT
 * Mistakes are found before anything runs, and said with names: a cycle, a kernel without code for the device, a
 * capture whose second stream was never joined, and one during which the host wanted to wait. What existed before each
 * still works.
 *
 *   what_a_mistake_looks_like [DEVICE]
 *
 * Prints four errors and: all four were found
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

static void nothing_cpu(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  (void)args;
}

static const char nothing_cuda[] = "extern \"C\" __global__ void nothing() {}";

static const rondo_grid one_block = {.x = 1};

/* Prints the error that a call gave and tells whether it was the one that the mistake should give. */
static int was_found(const char *mistake, rondo_status status, rondo_reason reason) {
  const rondo_error *error = rondo_last_error();
  if (!status) {
    printf("%s: not found\n", mistake);
    return 0;
  }
  printf("%s: %s: %s\n", mistake, rondo_status_name(status), error->message);
  return error->reason == reason;
}

int main(int argc, char **argv) {
  rondo_device *device;
  rondo_stream *stream, *other;
  rondo_event *event;
  rondo_kernel *nothing, *codeless;
  TRY(rondo_device_open(argc > 1 ? argv[1] : "cpu", NULL, &device));
  TRY(rondo_stream_create(device, NULL, &stream));
  TRY(rondo_stream_create(device, &(rondo_stream_options){RONDO_STREAM_OPTIONS_INIT, .name = "branch"}, &other));
  TRY(rondo_event_create(device, NULL, &event));
  TRY(rondo_kernel_create(device,
                          &(rondo_kernel_options){RONDO_KERNEL_OPTIONS_INIT, .name = "nothing", .cpu = nothing_cpu,
                                                  .cuda_source = nothing_cuda},
                          &nothing));
  TRY(rondo_kernel_create(device, &(rondo_kernel_options){RONDO_KERNEL_OPTIONS_INIT, .name = "codeless"}, &codeless));

  /* Two kernels, each behind the other. */
  rondo_graph *graph;
  rondo_node a, b;
  rondo_exec *exec;
  TRY(rondo_graph_create(device, NULL, &graph));
  TRY(rondo_graph_add_kernel(graph, NULL, 0, nothing, one_block, RONDO_NO_ARGS, &a));
  TRY(rondo_graph_add_kernel(graph, &a, 1, nothing, one_block, RONDO_NO_ARGS, &b));
  TRY(rondo_graph_add_edges(graph, &b, &a, 1));
  int found = was_found("a cycle", rondo_instantiate(graph, NULL, &exec), RONDO_REASON_CYCLE);

  /* Without the edge the graph is fine; a kernel that this device has no code for is not. */
  rondo_node c;
  TRY(rondo_graph_remove_edges(graph, &b, &a, 1));
  TRY(rondo_graph_add_kernel(graph, &b, 1, codeless, one_block, RONDO_NO_ARGS, &c));
  found += was_found("no code", rondo_instantiate(graph, NULL, &exec), RONDO_REASON_NO_FUNCTION);

  /* A stream that was forked off and never joined again. */
  rondo_graph *captured;
  TRY(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(rondo_event_record(event, stream));
  TRY(rondo_stream_wait_event(other, event));
  TRY(rondo_launch(other, nothing, one_block, RONDO_NO_ARGS));
  found += was_found("an unjoined branch", rondo_capture_end(stream, &captured), RONDO_REASON_UNJOINED);

  /* Waiting for work that will only run later: refused, and the capture is over. */
  TRY(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(rondo_launch(stream, nothing, one_block, RONDO_NO_ARGS));
  found += was_found("waiting while capturing", rondo_stream_synchronize(stream), RONDO_REASON_UNSUPPORTED_CALL);
  const rondo_status ended = rondo_capture_end(stream, &captured);

  /* The graph without the last node, and the stream, work as before. */
  TRY(rondo_graph_remove(graph, c));
  TRY(rondo_instantiate(graph, NULL, &exec));
  TRY(rondo_exec_launch(exec, stream));
  TRY(rondo_stream_synchronize(stream));
  printf("%s\n", found == 4 && ended == RONDO_CAPTURE_INVALID ? "all four were found" : "not all were found");

  rondo_exec_destroy(exec);
  TRY(rondo_graph_destroy(graph));
  rondo_kernel_destroy(nothing);
  rondo_kernel_destroy(codeless);
  rondo_event_destroy(event);
  TRY(rondo_stream_destroy(stream));
  TRY(rondo_stream_destroy(other));
  TRY(rondo_device_close(device));
  return found == 4 ? EXIT_SUCCESS : EXIT_FAILURE;
}
