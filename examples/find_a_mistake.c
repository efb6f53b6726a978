/* SPDX-License-Identifier: MIT
 * Finds mistakes that the graph does not show. The checking device (cpu:check) detects them at run time: a kernel that
 * uses memory after its free, through a pointer inside a struct; a loop that writes one element past the end; and two
 * kernels that race because an edge is missing. Each error names the kernel and the memory, and the program continues.
 *
 *   find_a_mistake
 *
 * Prints three errors and: all three were found
 */
#include <stdio.h>
#include <stdlib.h>

#include <rondo/rondo.h>

#define TRY(call)                                  \
  do {                                             \
    const rondo_status try_status = (call);        \
    if (try_status != RONDO_OK) return try_status; \
  } while (0)

enum { COUNT = 1000 };

/* The kernel's argument: an address inside a struct, which the declaration of its parameters does not show. */
typedef struct work {
  float *values;
  size_t count;
  float factor, term;
} work;

static void apply_cpu(rondo_blocks blocks, void *const *args) {
  const work *self = args[0];
  if (blocks.first > 0) return;
  for (size_t i = 0; i < self->count; i++) self->values[i] = self->values[i] * self->factor + self->term;
}

static const rondo_kernel_options apply_options = {RONDO_KERNEL_OPTIONS_INIT, .name = "apply", .cpu = apply_cpu,
                                                   .params = {RONDO_SCALAR(work)}};
static const rondo_grid one_block = {.x = 1};

/* Instantiates and launches the graph, and counts whether the next synchronization returns the expected error. */
static rondo_status expect(const char *mistake, rondo_graph *graph, const rondo_instantiate_options *options,
                           rondo_stream *stream, rondo_reason reason, int *inout_found) {
  rondo_exec *exec;
  TRY(rondo_instantiate(graph, options, &exec));
  rondo_status status = rondo_exec_launch(exec, stream);
  if (status == RONDO_OK) status = rondo_stream_synchronize(stream);
  printf("%s: %s: %s\n", mistake, rondo_status_name(status), status ? rondo_last_error()->message : "not found");
  *inout_found += status != RONDO_OK && rondo_last_error()->reason == reason;
  rondo_exec_destroy(exec);
  return RONDO_OK;
}

/* Scratch memory is freed, and the next node uses it. */
static rondo_status use_freed_memory(rondo_device *device, rondo_stream *stream, rondo_kernel *apply,
                                     int *inout_found) {
  const rondo_instantiate_options unverified = {RONDO_INSTANTIATE_OPTIONS_INIT, .skip_verify = true};
  rondo_graph *graph;
  rondo_node node;
  void *scratch;
  TRY(rondo_graph_create(device, NULL, &graph));
  TRY(rondo_graph_add_alloc(graph, NULL, 0, COUNT * sizeof(float), "scratch", &scratch, &node));
  TRY(rondo_graph_add_free(graph, &node, 1, scratch, &node));
  const work stale = {.values = scratch, .count = COUNT, .factor = 2};
  TRY(rondo_graph_add_kernel(graph, &node, 1, apply, one_block, RONDO_ARGS(&stale), &node));
  TRY(expect("a use after the free", graph, &unverified, stream, RONDO_REASON_USE_AFTER_FREE, inout_found));
  return rondo_graph_destroy(graph);
}

static rondo_status go_too_far(rondo_device *device, rondo_stream *stream, rondo_kernel *apply, float *values,
                               int *inout_found) {
  const work far = {.values = values, .count = COUNT + 1, .factor = 2};
  rondo_graph *graph;
  rondo_node node;
  TRY(rondo_graph_create(device, NULL, &graph));
  TRY(rondo_graph_add_kernel(graph, NULL, 0, apply, one_block, RONDO_ARGS(&far), &node));
  TRY(expect("an element too many", graph, NULL, stream, RONDO_REASON_OUT_OF_RANGE, inout_found));
  return rondo_graph_destroy(graph);
}

static rondo_status launch_and_read(rondo_graph *graph, rondo_stream *stream, const float *values, float *out_result) {
  rondo_exec *exec;
  TRY(rondo_instantiate(graph, NULL, &exec));
  TRY(rondo_exec_launch(exec, stream));
  TRY(rondo_copy_async(stream, out_result, values, sizeof *out_result));
  TRY(rondo_stream_synchronize(stream));
  rondo_exec_destroy(exec);
  return RONDO_OK;
}

/* Two kernels change the same values, and no edge orders them. With the edge that the message names, the same device
 * reports no error. */
static rondo_status leave_an_edge_out(rondo_device *device, rondo_stream *stream, rondo_kernel *apply, float *values,
                                      int *inout_found) {
  const work doubled = {.values = values, .count = COUNT, .factor = 2};
  const work raised = {.values = values, .count = COUNT, .factor = 1, .term = 1};
  const rondo_fill ones = {.dst = values, .value = 0x3f800000, .element_bytes = 4, .width = COUNT};
  rondo_graph *graph;
  rondo_node filled, first, second;
  float result;
  TRY(rondo_graph_create(device, NULL, &graph));
  TRY(rondo_graph_add_fill(graph, NULL, 0, &ones, &filled));
  TRY(rondo_graph_add_kernel(graph, &filled, 1, apply, one_block, RONDO_ARGS(&doubled), &first));
  TRY(rondo_graph_add_kernel(graph, &filled, 1, apply, one_block, RONDO_ARGS(&raised), &second));
  TRY(expect("a missing edge", graph, NULL, stream, RONDO_REASON_RACE, inout_found));
  TRY(rondo_graph_add_edges(graph, &first, &second, 1));
  TRY(launch_and_read(graph, stream, values, &result));
  if (result != 3) *inout_found = 0;
  return rondo_graph_destroy(graph);
}

static rondo_status run(int *out_found) {
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *apply;
  void *values;
  *out_found = 0;
  TRY(rondo_device_open("cpu:check", NULL, &device));
  TRY(rondo_stream_create(device, NULL, &stream));
  TRY(rondo_kernel_create(device, &apply_options, &apply));
  TRY(rondo_malloc(device, COUNT * sizeof(float), "values", &values));
  TRY(use_freed_memory(device, stream, apply, out_found));
  TRY(go_too_far(device, stream, apply, values, out_found));
  TRY(leave_an_edge_out(device, stream, apply, values, out_found));
  TRY(rondo_free(device, values));
  rondo_kernel_destroy(apply);
  TRY(rondo_stream_destroy(stream));
  return rondo_device_close(device);
}

int main(void) {
  int found;
  const rondo_status status = run(&found);
  if (status == RONDO_UNAVAILABLE) return 77; /* this machine cannot intercept page faults */
  if (status != RONDO_OK) {
    fprintf(stderr, "find_a_mistake: %s\n", rondo_last_error()->message);
    return EXIT_FAILURE;
  }
  printf("%s\n", found == 3 ? "all three were found" : "not all were found");
  return found == 3 ? EXIT_SUCCESS : EXIT_FAILURE;
}
