/* SPDX-License-Identifier: MIT
 * Work of two devices in one graph. Each device adds to a vector of its own, and the first one then adds both vectors.
 * Capture follows an event to a stream of the other device, as it follows one to another stream of the same device.
 *
 *   two_devices [DEVICE]
 *
 * DEVICE is the first device. The second one is the device with number 1 of the same kind.
 *
 * Prints: sum[0] = 1500 after 1000 replays of 4 nodes on 2 devices
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

enum { BLOCK = 64, N = 1024, STEPS = 1000, SKIPPED = 77 };

static void saxpy_cpu(rondo_blocks blocks, void *const *args) {
  const float a = *(const float *)args[0];
  const float *x = *(const float **)args[1];
  float *y = *(float **)args[2];
  for (size_t i = blocks.first * BLOCK; i < blocks.last * BLOCK; i++) y[i] += a * x[i];
}

/* A block has as many threads on a CUDA device as it has elements on the CPU. */
static const char saxpy_cuda[] =
    "extern \"C\" __global__ void saxpy(float a, const float *x, float *y) {\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  y[i] += a * x[i];\n"
    "}\n";

/* What a device has: events and kernels belong to one device. */
typedef struct side {
  rondo_device *device;
  rondo_stream *stream;
  rondo_event *event;
  rondo_kernel *saxpy;
  void *ones, *y;
} side;

static rondo_status make_vector(const side *s, float value, void **out) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  TRY(rondo_malloc(s->device, N * sizeof(float), NULL, out));
  return rondo_fill_async(s->stream, &(rondo_fill){.dst = *out, .value = bits, .element_bytes = 4, .width = N});
}

static rondo_status make_side(const char *name, side *s) {
  TRY(rondo_device_open(name, NULL, &s->device));
  TRY(rondo_stream_create(s->device, NULL, &s->stream));
  TRY(rondo_event_create(s->device, NULL, &s->event));
  TRY(rondo_kernel_create(
      s->device,
      &(rondo_kernel_options){RONDO_KERNEL_OPTIONS_INIT, .name = "saxpy", .cpu = saxpy_cpu, .cuda_source = saxpy_cuda,
                              .block_threads = BLOCK, .params = {RONDO_SCALAR(float), RONDO_READS, RONDO_UPDATES}},
      &s->saxpy));
  TRY(make_vector(s, 1, &s->ones));
  TRY(make_vector(s, 0, &s->y));
  return rondo_stream_synchronize(s->stream);
}

static rondo_status free_side(const side *s) {
  rondo_kernel_destroy(s->saxpy);
  rondo_event_destroy(s->event);
  TRY(rondo_free(s->device, s->ones));
  TRY(rondo_free(s->device, s->y));
  TRY(rondo_stream_destroy(s->stream));
  return rondo_device_close(s->device);
}

/* Replays y1 += 0.5 on the first device and y2 += 1 on the second, then sum = y1 + y2 on the first. */
static rondo_status record_and_replay(const side *first, const side *second, void *sum, size_t *out_nodes) {
  const float half = 0.5f, one = 1;
  const rondo_grid grid = {.x = N / BLOCK};
  rondo_graph *graph;
  rondo_exec *exec;
  TRY(rondo_capture_begin(first->stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(rondo_event_record(first->event, first->stream));
  TRY(rondo_stream_wait_event(second->stream, first->event)); /* joins the capture */
  TRY(rondo_launch(first->stream, first->saxpy, grid, RONDO_ARGS(&half, &first->ones, &first->y)));
  TRY(rondo_launch(second->stream, second->saxpy, grid, RONDO_ARGS(&one, &second->ones, &second->y)));
  TRY(rondo_event_record(second->event, second->stream));
  TRY(rondo_stream_wait_event(first->stream, second->event));
  TRY(rondo_copy_async(first->stream, sum, second->y, N * sizeof(float)));
  TRY(rondo_launch(first->stream, first->saxpy, grid, RONDO_ARGS(&one, &first->y, &sum)));
  TRY(rondo_capture_end(first->stream, &graph));

  TRY(rondo_instantiate(graph, NULL, &exec));
  for (int step = 0; step < STEPS; step++) TRY(rondo_exec_launch(exec, first->stream)); /* the work of both devices */
  TRY(rondo_graph_nodes(graph, NULL, out_nodes));
  rondo_exec_destroy(exec);
  return rondo_graph_destroy(graph);
}

static rondo_status run(const char *name_1, const char *name_2, int *out_result) {
  side first, second;
  void *sum;
  float value;
  size_t nodes = 0;
  bool can_read;
  TRY(make_side(name_1, &first));
  TRY(make_side(name_2, &second));
  TRY(rondo_device_can_access_peer(first.device, second.device, &can_read));
  if (!can_read) return RONDO_OK;
  TRY(rondo_memory_set_access(second.device, first.device, true)); /* the first device may read the second's memory */
  TRY(make_vector(&first, 0, &sum));
  TRY(record_and_replay(&first, &second, sum, &nodes));
  TRY(rondo_copy_async(first.stream, &value, sum, sizeof value));
  TRY(rondo_stream_synchronize(first.stream));
  printf("sum[0] = %g after %d replays of %zu nodes on 2 devices\n", (double)value, STEPS, nodes);
  *out_result = value == 1500 ? EXIT_SUCCESS : EXIT_FAILURE;
  TRY(rondo_free(first.device, sum));
  TRY(free_side(&first));
  return free_side(&second);
}

static const char *find_second(const char *first) {
  if (strncmp(first, "cuda", 4) == 0) return "cuda:1";
  return strncmp(first, "cpu:check", 9) == 0 ? "cpu:check:1" : "cpu:1";
}

int main(int argc, char **argv) {
  const char *first = argc > 1 ? argv[1] : "cpu";
  int result = SKIPPED;
  if (run(first, find_second(first), &result) == RONDO_OK) return result;
  fprintf(stderr, "%s: %s\n", argv[0], rondo_last_error()->message);
  return rondo_last_error()->reason == RONDO_REASON_UNKNOWN_DEVICE ? SKIPPED : EXIT_FAILURE;
}
