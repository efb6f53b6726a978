/* SPDX-License-Identifier: MIT
 * Requests of many lengths. The function lists the lengths to record, and the tree pads each request to the next of
 * them, so that a few recordings serve all. The output has the length of the request.
 *
 *   tree_padding [DEVICE]
 *
 * Prints: 200 requests of 100 lengths: 5 recordings, 190 of 200 calls replayed, all right
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

enum { REQUESTS = 200, LENGTHS = 100, MOST = 128 };

typedef struct program {
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *kernel;
  rondo_tree *tree;
  rondo_function *function;
  void *values; /* room for the longest request */
} program;

/* y = 3 x + 1, one row for each block. Rows of padding are computed too, but are not part of the output. */
static void work_cpu(rondo_blocks blocks, void *const *args) {
  const uint32_t *x = *(const uint32_t **)args[0];
  uint32_t *y = *(uint32_t **)args[1];
  for (size_t i = blocks.first; i < blocks.last; i++) y[i] = 3 * x[i] + 1;
}
static const char work_cuda[] =
    "extern \"C\" __global__ void work(const unsigned *x, unsigned *y) { y[blockIdx.x] = 3 * x[blockIdx.x] + 1; }\n";

static rondo_status work(rondo_call *call, void *user) {
  const program *p = user;
  rondo_input x;
  void *y;
  TRY(rondo_call_get_input(call, 0, &x)); /* padded */
  const rondo_output_options rows = {RONDO_OUTPUT_OPTIONS_INIT, .flags = RONDO_OUTPUT_ROWS, .rank = 1,
                                     .shape = {x.shape[0]}};
  TRY(rondo_call_output(call, 0, x.bytes, &rows, &y));
  return rondo_launch(rondo_call_stream(call), p->kernel, (rondo_grid){(uint32_t)x.shape[0], 0, 0},
                      RONDO_ARGS(&x.address, &y));
}

/* One request; the output must have its length. */
static rondo_status ask(const program *p, const uint32_t *x, uint32_t length, uint32_t *y, bool *inout_right) {
  const rondo_input input = {.address = p->values, .bytes = length * sizeof *x, .rank = 1, .shape = {length}};
  rondo_buffer_info info = {.struct_size = sizeof info};
  rondo_buffer *output;
  TRY(rondo_copy_async(p->stream, p->values, x, length * sizeof *x));
  TRY(rondo_function_call(p->function, p->stream, &input, 1, &output, 1));
  TRY(rondo_buffer_get_info(output, &info));
  TRY(rondo_buffer_copy(output, p->stream, 0, y, length * sizeof *y));
  rondo_buffer_release(output);
  if (info.bytes != length * sizeof *y) *inout_right = false;
  return rondo_stream_synchronize(p->stream);
}

/* Request `number` with values 1, 2, ..., of a length that differs from those of its neighbours. */
static rondo_status ask_and_check(const program *p, uint32_t number, bool *inout_right) {
  const uint32_t length = number * 37 % LENGTHS + 1;
  uint32_t x[MOST], y[MOST];
  for (uint32_t i = 0; i < length; i++) x[i] = number + i;
  TRY(ask(p, x, length, y, inout_right));
  for (uint32_t i = 0; i < length; i++)
    if (y[i] != 3 * (number + i) + 1) *inout_right = false;
  return RONDO_OK;
}

static rondo_status set_up(program *p, const char *name) {
  static const uint32_t input = RONDO_INPUT_MOVING | RONDO_INPUT_ROWS;
  static const size_t lengths[] = {8, 16, 32, 64, MOST};
  const rondo_kernel_options kernel = {RONDO_KERNEL_OPTIONS_INIT, .name = "work",
                                       .cpu = work_cpu,           .cuda_source = work_cuda,
                                       .block_threads = 1,        .params = {RONDO_READS, RONDO_WRITES}};
  const rondo_function_options function = {RONDO_FUNCTION_OPTIONS_INIT,
                                           .name = "work",
                                           .body = work,
                                           .user = p,
                                           .inputs = &input,
                                           .input_count = 1,
                                           .buckets = lengths,
                                           .bucket_count = sizeof lengths / sizeof lengths[0]};
  TRY(rondo_device_open(name, NULL, &p->device));
  TRY(rondo_stream_create(p->device, NULL, &p->stream));
  TRY(rondo_kernel_create(p->device, &kernel, &p->kernel));
  TRY(rondo_malloc(p->device, MOST * sizeof(uint32_t), "values", &p->values));
  TRY(rondo_tree_create(p->device, NULL, &p->tree));
  return rondo_function_create(p->tree, &function, &p->function);
}

static rondo_status tear_down(const program *p) {
  TRY(rondo_tree_destroy(p->tree));
  TRY(rondo_free(p->device, p->values));
  rondo_kernel_destroy(p->kernel);
  TRY(rondo_stream_destroy(p->stream));
  return rondo_device_close(p->device);
}

static rondo_status run(program *p, const char *name) {
  rondo_tree_info info = {.struct_size = sizeof info};
  bool is_right = true;
  TRY(set_up(p, name));
  for (uint32_t i = 0; i < REQUESTS; i++) TRY(ask_and_check(p, i, &is_right));
  TRY(rondo_tree_get_info(p->tree, &info));
  printf("%d requests of %d lengths: %u recordings, %llu of %llu calls replayed, %s\n", REQUESTS, LENGTHS,
         info.recordings, (unsigned long long)info.replayed, (unsigned long long)info.calls,
         is_right ? "all right" : "wrong results");
  return tear_down(p);
}

int main(int argc, char **argv) {
  program p = {.device = NULL};
  if (run(&p, argc > 1 ? argv[1] : "cpu") == RONDO_OK) return EXIT_SUCCESS;
  fprintf(stderr, "%s: %s\n", argv[0], rondo_last_error()->message);
  return EXIT_FAILURE;
}
