/* SPDX-License-Identifier: MIT
 * Records an existing batch loop from its second batch on. The first batch runs eagerly, as a warm-up. The second is
 * captured and replayed, and later batches are only replayed. The last batch is shorter and runs eagerly. The input,
 * the output and the changing learning rate are in memory that was allocated before the capture.
 *
 *   record_batches [DEVICE]
 *
 * Prints: out[0] = 10.5 after 6 batches: 2 run, 4 replayed, 1 captured
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

enum { BLOCK = 64, ROWS = 1024, LAST_ROWS = 640, BATCHES = 6, FIRST_CAPTURED = 1 };

typedef struct program {
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *step;
  rondo_recording *recording;
  void *in, *out, *rate;
  size_t runs;
} program;

static void step_cpu(rondo_blocks blocks, void *const *args) {
  const float *rate = *(const float **)args[0], *in = *(const float **)args[1];
  float *out = *(float **)args[2];
  for (size_t i = blocks.first * BLOCK; i < blocks.last * BLOCK; i++) out[i] += *rate * in[i];
}

static const char step_cuda[] =
    "extern \"C\" __global__ void step(const float *rate, const float *in, float *out) {\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  out[i] += *rate * in[i];\n"
    "}\n";

/* Everything that a batch uses is created before the first capture. */
static rondo_status set_up(program *p, const char *name) {
  const rondo_kernel_options kernel = {RONDO_KERNEL_OPTIONS_INIT, .name = "step",
                                       .cpu = step_cpu,           .cuda_source = step_cuda,
                                       .block_threads = BLOCK,    .params = {RONDO_READS, RONDO_READS, RONDO_UPDATES}};
  TRY(rondo_device_open(name, NULL, &p->device));
  TRY(rondo_stream_create(p->device, NULL, &p->stream));
  TRY(rondo_kernel_create(p->device, &kernel, &p->step));
  TRY(rondo_malloc(p->device, ROWS * sizeof(float), "in", &p->in));
  TRY(rondo_malloc(p->device, ROWS * sizeof(float), "out", &p->out));
  TRY(rondo_malloc(p->device, sizeof(float), "rate", &p->rate));
  TRY(rondo_fill_async(p->stream, &(rondo_fill){.dst = p->out, .element_bytes = 4, .width = ROWS}));
  const rondo_recording_options options = {RONDO_RECORDING_OPTIONS_INIT, .name = "batch"};
  return rondo_recording_create(p->device, &options, &p->recording);
}

static rondo_status tear_down(program *p) {
  TRY(rondo_recording_destroy(p->recording)); /* releases its memory */
  TRY(rondo_free(p->device, p->in));
  TRY(rondo_free(p->device, p->out));
  TRY(rondo_free(p->device, p->rate));
  rondo_kernel_destroy(p->step);
  TRY(rondo_stream_destroy(p->stream));
  return rondo_device_close(p->device);
}

/* Runs before the batch, not in the capture: a capture would keep the address of `host`. */
static rondo_status feed(program *p, size_t batch, size_t rows) {
  static float host[ROWS];
  const float rate = 1.0f / (float)(1 << batch); /* a decreasing learning rate */
  for (size_t i = 0; i < rows; i++) host[i] = (float)(1 << batch) * 1.75f;
  TRY(rondo_copy_async(p->stream, p->in, host, rows * sizeof *host));
  TRY(rondo_copy_async(p->stream, p->rate, &rate, sizeof rate));
  return rondo_stream_synchronize(p->stream);
}

/* One batch. The code is the same with and without recording. */
static rondo_status run(program *p, size_t rows) {
  void *scratch;
  p->runs++;
  TRY(rondo_malloc_async(p->stream, ROWS * sizeof(float), NULL, &scratch));
  TRY(rondo_copy_async(p->stream, scratch, p->in, rows * sizeof(float)));
  TRY(rondo_launch(p->stream, p->step, (rondo_grid){.x = (uint32_t)(rows / BLOCK)},
                   RONDO_ARGS(&p->rate, &scratch, &p->out)));
  return rondo_free_async(p->stream, scratch);
}

static rondo_status run_batch(program *p, size_t batch) {
  const bool is_last = batch == BATCHES - 1;
  const size_t rows = is_last ? LAST_ROWS : ROWS;
  TRY(feed(p, batch, rows));
  if (batch < FIRST_CAPTURED || is_last) return run(p, rows);
  if (batch == FIRST_CAPTURED) {
    TRY(rondo_recording_capture_begin(p->recording, p->stream, RONDO_CAPTURE_THREAD_LOCAL));
    TRY(run(p, rows)); /* recorded, not run */
    p->runs--;
    TRY(rondo_recording_capture_end(p->recording, p->stream));
  }
  return rondo_recording_replay(p->recording, p->stream); /* otherwise the captured batch would never run */
}

static rondo_status run_all(program *p, const char *name, float *out) {
  rondo_recording_info info = {.struct_size = sizeof info};
  TRY(set_up(p, name));
  for (size_t batch = 0; batch < BATCHES; batch++) TRY(run_batch(p, batch));
  TRY(rondo_copy_async(p->stream, out, p->out, sizeof *out));
  TRY(rondo_stream_synchronize(p->stream));
  TRY(rondo_recording_get_info(p->recording, &info));
  printf("out[0] = %g after %d batches: %zu run, %llu replayed, %llu captured\n", (double)*out, BATCHES, p->runs,
         (unsigned long long)info.replays, (unsigned long long)info.captures);
  return tear_down(p);
}

int main(int argc, char **argv) {
  program p = {.device = NULL};
  float out = 0;
  if (run_all(&p, argc > 1 ? argv[1] : "cpu", &out) != RONDO_OK) {
    fprintf(stderr, "%s: %s\n", argv[0], rondo_last_error()->message);
    return EXIT_FAILURE;
  }
  return out == 10.5f ? EXIT_SUCCESS : EXIT_FAILURE;
}
