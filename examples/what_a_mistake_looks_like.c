/* SPDX-License-Identifier: MIT
 * Rondo detects mistakes before anything runs, and its messages name the objects: a cycle, a kernel without code for
 * the device, a capture whose second stream was never joined, and a capture during which the host waited. After each
 * error, existing objects still work.
 *
 *   what_a_mistake_looks_like [DEVICE]
 *
 * Prints four errors and: all four were found
 */
#include <stdio.h>
#include <stdlib.h>

#include <rondo/rondo.h>

#define TRY(call)                                  \
  do {                                             \
    const rondo_status try_status = (call);        \
    if (try_status != RONDO_OK) return try_status; \
  } while (0)

static void nothing_cpu(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  (void)args;
}

static const char nothing_cuda[] = "extern \"C\" __global__ void nothing() {}";

static const rondo_grid one_block = {.x = 1};

typedef struct program {
  rondo_device *device;
  rondo_stream *stream, *other;
  rondo_event *event;
  rondo_kernel *nothing, *codeless;
  int found;
} program;

/* Prints the error of a call and counts whether it was the expected one. */
static void expect(program *p, const char *mistake, rondo_status status, rondo_reason reason) {
  printf("%s: %s: %s\n", mistake, rondo_status_name(status), status ? rondo_last_error()->message : "not found");
  p->found += status != RONDO_OK && rondo_last_error()->reason == reason;
}

static rondo_status set_up(program *p, const char *device) {
  const rondo_kernel_options nothing = {RONDO_KERNEL_OPTIONS_INIT, .name = "nothing", .cpu = nothing_cpu,
                                        .cuda_source = nothing_cuda};
  const rondo_kernel_options codeless = {RONDO_KERNEL_OPTIONS_INIT, .name = "codeless"};
  *p = (program){0};
  TRY(rondo_device_open(device, NULL, &p->device));
  TRY(rondo_stream_create(p->device, NULL, &p->stream));
  TRY(rondo_stream_create(p->device, &(rondo_stream_options){RONDO_STREAM_OPTIONS_INIT, .name = "branch"}, &p->other));
  TRY(rondo_event_create(p->device, NULL, &p->event));
  TRY(rondo_kernel_create(p->device, &nothing, &p->nothing));
  return rondo_kernel_create(p->device, &codeless, &p->codeless);
}

/* Mistakes in graphs. After each, the graph is as before. */
static rondo_status mistake_graphs(program *p) {
  rondo_graph *graph;
  rondo_node a, b, c;
  rondo_exec *exec;
  /* Two kernels that each depend on the other. */
  TRY(rondo_graph_create(p->device, NULL, &graph));
  TRY(rondo_graph_add_kernel(graph, NULL, 0, p->nothing, one_block, RONDO_NO_ARGS, &a));
  TRY(rondo_graph_add_kernel(graph, &a, 1, p->nothing, one_block, RONDO_NO_ARGS, &b));
  TRY(rondo_graph_add_edges(graph, &b, &a, 1));
  expect(p, "a cycle", rondo_instantiate(graph, NULL, &exec), RONDO_REASON_CYCLE);
  /* Without the edge, the graph is correct. A kernel without code for this device is refused. */
  TRY(rondo_graph_remove_edges(graph, &b, &a, 1));
  TRY(rondo_graph_add_kernel(graph, &b, 1, p->codeless, one_block, RONDO_NO_ARGS, &c));
  expect(p, "no code", rondo_instantiate(graph, NULL, &exec), RONDO_REASON_NO_FUNCTION);
  /* Without that node it works. */
  TRY(rondo_graph_remove(graph, c));
  TRY(rondo_instantiate(graph, NULL, &exec));
  TRY(rondo_exec_launch(exec, p->stream));
  TRY(rondo_stream_synchronize(p->stream));
  rondo_exec_destroy(exec);
  return rondo_graph_destroy(graph);
}

/* Mistakes in captures. Each ends the capture; the streams still work. */
static rondo_status mistake_captures(program *p) {
  rondo_graph *captured;
  /* A stream that was forked off and never joined again. */
  TRY(rondo_capture_begin(p->stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(rondo_event_record(p->event, p->stream));
  TRY(rondo_stream_wait_event(p->other, p->event));
  TRY(rondo_launch(p->other, p->nothing, one_block, RONDO_NO_ARGS));
  expect(p, "an unjoined branch", rondo_capture_end(p->stream, &captured), RONDO_REASON_UNJOINED);
  /* Waiting for work that will only run later. */
  TRY(rondo_capture_begin(p->stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(rondo_launch(p->stream, p->nothing, one_block, RONDO_NO_ARGS));
  expect(p, "waiting while capturing", rondo_stream_synchronize(p->stream), RONDO_REASON_UNSUPPORTED_CALL);
  if (rondo_capture_end(p->stream, &captured) != RONDO_CAPTURE_INVALID) p->found = 0;
  TRY(rondo_launch(p->stream, p->nothing, one_block, RONDO_NO_ARGS));
  return rondo_stream_synchronize(p->stream);
}

static rondo_status tear_down(const program *p) {
  rondo_kernel_destroy(p->nothing);
  rondo_kernel_destroy(p->codeless);
  rondo_event_destroy(p->event);
  TRY(rondo_stream_destroy(p->stream));
  TRY(rondo_stream_destroy(p->other));
  return rondo_device_close(p->device);
}

static rondo_status run(program *p, const char *device) {
  TRY(set_up(p, device));
  TRY(mistake_graphs(p));
  TRY(mistake_captures(p));
  return tear_down(p);
}

int main(int argc, char **argv) {
  program p;
  if (run(&p, argc > 1 ? argv[1] : "cpu") != RONDO_OK) {
    fprintf(stderr, "%s: %s\n", argv[0], rondo_last_error()->message);
    return EXIT_FAILURE;
  }
  printf("%s\n", p.found == 4 ? "all four were found" : "not all were found");
  return p.found == 4 ? EXIT_SUCCESS : EXIT_FAILURE;
}
