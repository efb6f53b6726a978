/* SPDX-License-Identifier: MIT
 * Feeding the next batch while a run goes on. The recorded graph begins with a copy from a staging buffer into the
 * input's slot; behind it the buffer is free, and what is fed goes there on a stream beside the runs. The result comes
 * back through host memory, as soon as it is computed.
 *
 *   feed_ahead [DEVICE]
 *
 * Prints: 40 batches, each of the right sum; 2 copies in the graph
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

enum { NUMBERS = 4096, BATCHES = 40, MOST_NODES = 16 };

static float batch[NUMBERS];

static void make_batch(int number) {
  for (int i = 0; i < NUMBERS; i++) batch[i] = (float)(number % 7);
}

int main(int argc, char **argv) {
  rondo_program *program;
  rondo_value x, sum;
  TRY(rondo_program_create(NULL, &program));
  TRY(rondo_program_input(program, "x", RONDO_F32, (size_t[]){NUMBERS}, 1, &x));
  TRY(rondo_op_sum(program, x, NULL, 0, false, &sum));
  TRY(rondo_program_output(program, "sum", sum));

  /* How each gets in or out is said when the program is compiled. */
  rondo_device *device;
  rondo_compiled *compiled;
  const rondo_staged_value staged[] = {{"x", RONDO_STAGING_DEVICE}, {"sum", RONDO_STAGING_HOST}};
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .staged = staged, .staged_count = 2};
  TRY(rondo_device_open(argc > 1 ? argv[1] : "cpu", NULL, &device));
  TRY(rondo_compile(program, device, &options, &compiled));
  rondo_program_destroy(program);

  /* Each run is queued, the next batch fed behind it, and only then its result looked at. */
  int right = 0;
  make_batch(0);
  TRY(rondo_compiled_feed(compiled, "x", batch, sizeof batch));
  for (int i = 0; i < BATCHES; i++) {
    float result;
    TRY(rondo_compiled_run(compiled));
    make_batch(i + 1); /* the bytes of the last one have been copied: they may be written over */
    TRY(rondo_compiled_feed(compiled, "x", batch, sizeof batch));
    TRY(rondo_compiled_fetch(compiled, "sum", &result, sizeof result));
    right += (int)result == (i % 7) * NUMBERS;
  }

  size_t count = MOST_NODES, copies = 0;
  rondo_node nodes[MOST_NODES];
  TRY(rondo_graph_nodes(rondo_compiled_graph(compiled), nodes, &count));
  for (size_t i = 0; i < count; i++) {
    rondo_node_params params;
    TRY(rondo_graph_get_params(rondo_compiled_graph(compiled), nodes[i], &params));
    copies += params.kind == RONDO_NODE_COPY;
  }
  if (right == BATCHES) printf("%d batches, each of the right sum; %zu copies in the graph\n", right, copies);

  TRY(rondo_compiled_destroy(compiled));
  TRY(rondo_device_close(device));
  return EXIT_SUCCESS;
}
