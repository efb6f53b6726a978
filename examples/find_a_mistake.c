/* SPDX-License-Identifier: MIT
 * Mistakes that nobody can see in the graph, found on the checking device when it runs: a kernel that keeps using
 * memory after its free, by a pointer it was given as a plain number; a loop that goes one element too far; and two
 * kernels that race because an edge is missing. Each is named, and the program goes on.
 *
 *   find_a_mistake
 *
 * Prints three errors and: all three were found
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

enum { COUNT = 1000 };

/* What the kernel is given: an address inside of a struct, which no declaration of its parameters shows. */
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

/* Launches the exec and tells whether the next synchronisation gives the error that the mistake should. */
static int was_found(const char *mistake, rondo_exec *exec, rondo_stream *stream, rondo_reason reason) {
  rondo_status status = rondo_exec_launch(exec, stream);
  if (!status) status = rondo_stream_synchronize(stream);
  if (!status) {
    printf("%s: not found\n", mistake);
    return 0;
  }
  printf("%s: %s: %s\n", mistake, rondo_status_name(status), rondo_last_error()->message);
  return rondo_last_error()->reason == reason;
}

int main(int argc, char **argv) {
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *apply;
  rondo_graph *graph;
  rondo_exec *exec;
  rondo_node node;
  void *scratch, *values;
  int found = 0;
  (void)argc;
  if (rondo_device_open("cpu:check", NULL, &device) == RONDO_UNAVAILABLE) return 77;
  TRY(rondo_stream_create(device, NULL, &stream));
  TRY(rondo_kernel_create(device, &apply_options, &apply));
  TRY(rondo_malloc(device, COUNT * sizeof(float), "values", &values));

  /* Scratch memory is freed, and used by the node behind. */
  const work late = {.values = NULL, .count = COUNT, .factor = 2};
  work stale = late;
  TRY(rondo_graph_create(device, NULL, &graph));
  TRY(rondo_graph_add_alloc(graph, NULL, 0, COUNT * sizeof(float), "scratch", &scratch, &node));
  TRY(rondo_graph_add_free(graph, &node, 1, scratch, &node));
  stale.values = scratch;
  TRY(rondo_graph_add_kernel(graph, &node, 1, apply, one_block, RONDO_ARGS(&stale), &node));
  TRY(rondo_instantiate(graph, &(rondo_instantiate_options){RONDO_INSTANTIATE_OPTIONS_INIT, .skip_verify = true},
                        &exec));
  found += was_found("a use after the free", exec, stream, RONDO_REASON_USE_AFTER_FREE);
  rondo_exec_destroy(exec);
  TRY(rondo_graph_destroy(graph));

  /* One element too many. */
  const work far = {.values = values, .count = COUNT + 1, .factor = 2};
  TRY(rondo_graph_create(device, NULL, &graph));
  TRY(rondo_graph_add_kernel(graph, NULL, 0, apply, one_block, RONDO_ARGS(&far), &node));
  TRY(rondo_instantiate(graph, NULL, &exec));
  found += was_found("an element too many", exec, stream, RONDO_REASON_OUT_OF_RANGE);
  rondo_exec_destroy(exec);
  TRY(rondo_graph_destroy(graph));

  /* Two kernels change the same values, and nothing says in which order. */
  const work doubled = {.values = values, .count = COUNT, .factor = 2};
  const work raised = {.values = values, .count = COUNT, .factor = 1, .term = 1};
  const rondo_fill ones = {.dst = values, .value = 0x3f800000, .element_bytes = 4, .width = COUNT};
  rondo_node filled, first, second;
  TRY(rondo_graph_create(device, NULL, &graph));
  TRY(rondo_graph_add_fill(graph, NULL, 0, &ones, &filled));
  TRY(rondo_graph_add_kernel(graph, &filled, 1, apply, one_block, RONDO_ARGS(&doubled), &first));
  TRY(rondo_graph_add_kernel(graph, &filled, 1, apply, one_block, RONDO_ARGS(&raised), &second));
  TRY(rondo_instantiate(graph, NULL, &exec));
  found += was_found("a missing edge", exec, stream, RONDO_REASON_RACE);
  rondo_exec_destroy(exec);

  /* With the edge that the message names all is well, on the same device. */
  float result = 0;
  TRY(rondo_graph_add_edges(graph, &first, &second, 1));
  TRY(rondo_instantiate(graph, NULL, &exec));
  TRY(rondo_exec_launch(exec, stream));
  TRY(rondo_copy_async(stream, &result, values, sizeof result));
  TRY(rondo_stream_synchronize(stream));
  printf("%s\n", found == 3 && result == 3 ? "all three were found" : "not all were found");

  rondo_exec_destroy(exec);
  TRY(rondo_graph_destroy(graph));
  TRY(rondo_free(device, values));
  rondo_kernel_destroy(apply);
  TRY(rondo_stream_destroy(stream));
  TRY(rondo_device_close(device));
  return found == 3 && result == 3 ? EXIT_SUCCESS : EXIT_FAILURE;
}
