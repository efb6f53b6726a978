/* SPDX-License-Identifier: MIT
 * Random numbers in replays: a dropout kernel of the program's own, run step by step, and then, from the same seed,
 * recorded and replayed. Each step drops other elements, and both runs drop the same ones.
 *
 *   dropout [DEVICE]
 *
 * Prints: 20 replayed steps dropped what 20 plain steps did: 20471 of 81920 elements
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/rondo.h>

#define TRY(call)                                                        \
  do {                                                                   \
    if ((call) != RONDO_OK) {                                            \
      fprintf(stderr, "%s: %s\n", argv[0], rondo_last_error()->message); \
      return EXIT_FAILURE;                                               \
    }                                                                    \
  } while (0)

enum { BLOCK = 256, N = 4096, STEPS = 20 };
static const uint32_t dropped_below = UINT32_C(1) << 30; /* a quarter */

/* Element i draws from subsequence i, so that it does not matter how the grid is cut. */
static void dropout_cpu(rondo_blocks blocks, void *const *args) {
  const rondo_random random = rondo_random_begin(args);
  const uint32_t bound = *(const uint32_t *)args[3];
  const float *x = *(const float **)args[4];
  float *y = *(float **)args[5];
  for (size_t i = blocks.first * BLOCK; i < blocks.last * BLOCK; i++)
    y[i] = rondo_philox(random.seed, i, random.offset).x[0] < bound ? 0 : x[i];
}

static const char dropout_cuda[] =
    "extern \"C\" __global__ void dropout(const unsigned long long *cells, unsigned long long seed,\n"
    "                                     unsigned long long offset, unsigned bound, const float *x, float *y) {\n"
    "  const rondo_random random = rondo_random_begin(cells, seed, offset);\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  y[i] = rondo_philox(random.seed, i, random.offset).x[0] < bound ? 0 : x[i];\n"
    "}\n";

static rondo_status make_dropout(rondo_device *device, rondo_kernel **out) {
  static char source[8192]; /* the library's functions, and then the kernel */
  (void)snprintf(source, sizeof source, "%s%s", rondo_random_cuda_source(), dropout_cuda);
  const rondo_kernel_options options = {
      RONDO_KERNEL_OPTIONS_INIT,
      .name = "dropout",
      .cpu = dropout_cpu,
      .cuda_source = source,
      .block_threads = BLOCK,
      .params = {RONDO_RANDOM_PARAMETERS, RONDO_SCALAR(uint32_t), RONDO_READS, RONDO_WRITES}};
  return rondo_kernel_create(device, &options, out);
}

/* Queues, or records, one step: what it may draw is reserved first. */
static rondo_status queue_dropout(rondo_stream *stream, rondo_kernel *dropout, rondo_generator *generator, void *x,
                                  void *y) {
  rondo_random random;
  const rondo_status status = rondo_generator_reserve(generator, stream, 1, &random);
  if (status != RONDO_OK) return status;
  return rondo_launch(stream, dropout, (rondo_grid){.x = N / BLOCK},
                      RONDO_ARGS(RONDO_RANDOM_ARGS(random), &dropped_below, &x, &y));
}

int main(int argc, char **argv) {
  static float host[N], plain[STEPS][N], replayed[STEPS][N];
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *dropout;
  rondo_generator *generator;
  void *x, *y;
  TRY(rondo_device_open(argc > 1 ? argv[1] : "cpu", NULL, &device));
  TRY(rondo_stream_create(device, NULL, &stream));
  TRY(make_dropout(device, &dropout));
  TRY(rondo_generator_create(device, &(rondo_generator_options){RONDO_GENERATOR_OPTIONS_INIT, .seed = 42}, &generator));
  TRY(rondo_malloc(device, sizeof host, "x", &x));
  TRY(rondo_malloc(device, sizeof host, "y", &y));
  for (size_t i = 0; i < N; i++) host[i] = 1;
  TRY(rondo_copy_async(stream, x, host, sizeof host));

  for (int step = 0; step < STEPS; step++) {
    TRY(queue_dropout(stream, dropout, generator, x, y));
    TRY(rondo_copy_async(stream, plain[step], y, sizeof host));
  }

  /* Recording draws nothing; each launch draws what a plain step would. */
  rondo_graph *graph;
  rondo_exec *exec;
  TRY(rondo_generator_seed(generator, 42));
  TRY(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(queue_dropout(stream, dropout, generator, x, y));
  TRY(rondo_capture_end(stream, &graph));
  TRY(rondo_instantiate(graph, NULL, &exec));
  for (int step = 0; step < STEPS; step++) {
    TRY(rondo_exec_launch(exec, stream));
    TRY(rondo_copy_async(stream, replayed[step], y, sizeof host));
  }
  TRY(rondo_stream_synchronize(stream));

  const bool same = memcmp(plain, replayed, sizeof plain) == 0;
  int dropped = 0;
  for (size_t i = 0; i < (size_t)STEPS * N; i++) dropped += replayed[i / N][i % N] == 0;
  printf("%d replayed steps dropped %s %d plain steps did: %d of %d elements\n", STEPS,
         same ? "what" : "other elements than", STEPS, dropped, STEPS * N);

  rondo_exec_destroy(exec);
  TRY(rondo_graph_destroy(graph));
  TRY(rondo_free(device, x));
  TRY(rondo_free(device, y));
  rondo_generator_destroy(generator);
  rondo_kernel_destroy(dropout);
  TRY(rondo_stream_destroy(stream));
  TRY(rondo_device_close(device));
  return same ? EXIT_SUCCESS : EXIT_FAILURE;
}
