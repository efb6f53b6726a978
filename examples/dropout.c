/* SPDX-License-Identifier: MIT
 * Random numbers in replays. A dropout kernel of the program runs eagerly step by step, then is recorded and replayed
 * from the same seed. Each step drops different elements, and both runs drop the same ones.
 *
 *   dropout [DEVICE]
 *
 * Prints: 20 replayed steps dropped what 20 eager steps did: 20471 of 81920 elements
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/rondo.h>

#define TRY(call)                                  \
  do {                                             \
    const rondo_status try_status = (call);        \
    if (try_status != RONDO_OK) return try_status; \
  } while (0)

enum { BLOCK = 256, N = 4096, STEPS = 20, SEED = 42 };
static const uint32_t dropped_below = UINT32_C(1) << 30; /* a quarter */

/* Element i draws from subsequence i, so the result does not depend on the size of blocks. */
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

typedef struct program {
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *dropout;
  rondo_generator *generator;
  void *x, *y;
} program;

static rondo_status set_up(program *p, const char *device) {
  static float host[N];
  for (size_t i = 0; i < N; i++) host[i] = 1;
  TRY(rondo_device_open(device, NULL, &p->device));
  TRY(rondo_stream_create(p->device, NULL, &p->stream));
  TRY(make_dropout(p->device, &p->dropout));
  TRY(rondo_generator_create(p->device, &(rondo_generator_options){RONDO_GENERATOR_OPTIONS_INIT, .seed = SEED},
                             &p->generator));
  TRY(rondo_malloc(p->device, sizeof host, "x", &p->x));
  TRY(rondo_malloc(p->device, sizeof host, "y", &p->y));
  return rondo_copy_async(p->stream, p->x, host, sizeof host);
}

/* Enqueues or records one step. The numbers that it may draw are reserved first. */
static rondo_status queue_dropout(const program *p) {
  rondo_random random;
  TRY(rondo_generator_reserve(p->generator, p->stream, 1, &random));
  return rondo_launch(p->stream, p->dropout, (rondo_grid){.x = N / BLOCK},
                      RONDO_ARGS(RONDO_RANDOM_ARGS(random), &dropped_below, &p->x, &p->y));
}

static rondo_status run_plain(const program *p, float (*results)[N]) {
  for (int step = 0; step < STEPS; step++) {
    TRY(queue_dropout(p));
    TRY(rondo_copy_async(p->stream, results[step], p->y, sizeof results[step]));
  }
  return rondo_stream_synchronize(p->stream);
}

/* Recording draws nothing. Each launch draws what an eager step would. */
static rondo_status run_recorded(const program *p, float (*results)[N]) {
  rondo_graph *graph;
  rondo_exec *exec;
  TRY(rondo_capture_begin(p->stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(queue_dropout(p));
  TRY(rondo_capture_end(p->stream, &graph));
  TRY(rondo_instantiate(graph, NULL, &exec));
  for (int step = 0; step < STEPS; step++) {
    TRY(rondo_exec_launch(exec, p->stream));
    TRY(rondo_copy_async(p->stream, results[step], p->y, sizeof results[step]));
  }
  TRY(rondo_stream_synchronize(p->stream));
  rondo_exec_destroy(exec);
  return rondo_graph_destroy(graph);
}

static rondo_status tear_down(const program *p) {
  TRY(rondo_free(p->device, p->x));
  TRY(rondo_free(p->device, p->y));
  rondo_generator_destroy(p->generator);
  rondo_kernel_destroy(p->dropout);
  TRY(rondo_stream_destroy(p->stream));
  return rondo_device_close(p->device);
}

static rondo_status run(const char *device, bool *out_is_right) {
  static float plain[STEPS][N], replayed[STEPS][N];
  program p;
  TRY(set_up(&p, device));
  TRY(run_plain(&p, plain));
  TRY(rondo_generator_seed(p.generator, SEED));
  TRY(run_recorded(&p, replayed));
  TRY(tear_down(&p));
  int dropped = 0;
  for (size_t i = 0; i < (size_t)STEPS * N; i++) dropped += replayed[i / N][i % N] == 0;
  *out_is_right = memcmp(plain, replayed, sizeof plain) == 0;
  printf("%d replayed steps dropped %s %d eager steps did: %d of %d elements\n", STEPS,
         *out_is_right ? "what" : "other elements than", STEPS, dropped, STEPS * N);
  return RONDO_OK;
}

int main(int argc, char **argv) {
  bool is_right = false;
  if (run(argc > 1 ? argv[1] : "cpu", &is_right) == RONDO_OK) return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
  fprintf(stderr, "%s: %s\n", argv[0], rondo_last_error()->message);
  return EXIT_FAILURE;
}
