/* SPDX-License-Identifier: MIT
 * Feeds the next batch while a run is in progress. The recorded graph begins with a copy from a staging buffer into the
 * input's slot. After this copy the buffer is free, and the next batch is fed into it on another stream. The result
 * returns through host memory as soon as it is computed.
 *
 *   feed_ahead [DEVICE]
 *
 * Prints: 40 batches, each of the right sum; 2 copies in the graph
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

enum { NUMBERS = 4096, BATCHES = 40, MOST_NODES = 16 };

static float batch[NUMBERS];

static void make_batch(int number) {
  for (int i = 0; i < NUMBERS; i++) batch[i] = (float)(number % 7);
}

/* How each value is transferred is an option of the compilation. */
static rondo_status compile_sum(rondo_device *device, rondo_compiled **out) {
  const rondo_staged_value staged[] = {{"x", RONDO_STAGING_DEVICE}, {"sum", RONDO_STAGING_HOST}};
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .staged = staged, .staged_count = 2};
  rondo_program *program;
  rondo_value x, sum;
  TRY(rondo_program_create(NULL, &program));
  TRY(rondo_program_input(program, "x", RONDO_F32, (size_t[]){NUMBERS}, 1, &x));
  TRY(rondo_op_sum(program, x, NULL, 0, false, &sum));
  TRY(rondo_program_output(program, "sum", sum));
  TRY(rondo_compile(program, device, &options, out));
  rondo_program_destroy(program);
  return RONDO_OK;
}

/* Enqueues each run, feeds the next batch, and only then reads the result. */
static rondo_status run_batches(rondo_compiled *compiled, int *out_right) {
  *out_right = 0;
  make_batch(0);
  TRY(rondo_compiled_feed(compiled, "x", batch, sizeof batch));
  for (int i = 0; i < BATCHES; i++) {
    float result;
    TRY(rondo_compiled_run(compiled));
    make_batch(i + 1); /* the last one has been copied and may be overwritten */
    TRY(rondo_compiled_feed(compiled, "x", batch, sizeof batch));
    TRY(rondo_compiled_fetch(compiled, "sum", &result, sizeof result));
    *out_right += (int)result == (i % 7) * NUMBERS;
  }
  return RONDO_OK;
}

static rondo_status count_copies(const rondo_graph *graph, size_t *out_copies) {
  rondo_node nodes[MOST_NODES];
  size_t count = MOST_NODES;
  *out_copies = 0;
  TRY(rondo_graph_nodes(graph, nodes, &count));
  for (size_t i = 0; i < count; i++) {
    rondo_node_params params;
    TRY(rondo_graph_get_params(graph, nodes[i], &params));
    *out_copies += params.kind == RONDO_NODE_COPY;
  }
  return RONDO_OK;
}

static rondo_status run(const char *name, bool *out_is_right) {
  rondo_device *device;
  rondo_compiled *compiled;
  size_t copies;
  int right;
  TRY(rondo_device_open(name, NULL, &device));
  TRY(compile_sum(device, &compiled));
  TRY(run_batches(compiled, &right));
  TRY(count_copies(rondo_compiled_graph(compiled), &copies));
  *out_is_right = right == BATCHES;
  printf("%d batches, %s of the right sum; %zu copies in the graph\n", BATCHES, *out_is_right ? "each" : "not each",
         copies);
  TRY(rondo_compiled_destroy(compiled));
  return rondo_device_close(device);
}

int main(int argc, char **argv) {
  bool is_right = false;
  if (run(argc > 1 ? argv[1] : "cpu", &is_right) == RONDO_OK) return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
  fprintf(stderr, "%s: %s\n", argv[0], rondo_last_error()->message);
  return EXIT_FAILURE;
}
