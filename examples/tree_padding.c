/* SPDX-License-Identifier: MIT
 * Requests of many lengths: each is padded to the next power of two, so that a few recordings serve all of them. The
 * length itself stands in memory, where the recorded work reads it, and not in the recording.
 *
 *   tree_padding [DEVICE]
 *
 * Prints: 200 requests of 100 lengths: 5 recordings, 190 of 200 calls replayed, all sums right
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

enum { REQUESTS = 200, LENGTHS = 100, LEAST = 8, MOST = 128 };

typedef struct program {
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *kernel;
  rondo_tree *tree;
  rondo_function *function;
  void *values, *length; /* room for the longest request */
} program;

/* The sum of the first `*length` values; what is behind them is padding. */
static void sum_cpu(rondo_blocks blocks, void *const *args) {
  const uint32_t *values = *(const uint32_t **)args[0], length = **(const uint32_t **)args[1];
  uint32_t *sum = *(uint32_t **)args[2];
  (void)blocks;
  *sum = 0;
  for (uint32_t i = 0; i < length; i++) *sum += values[i];
}
static const char sum_cuda[] =
    "extern \"C\" __global__ void sum(const unsigned *values, const unsigned *length, unsigned *sum) {\n"
    "  unsigned all = 0;\n"
    "  for (unsigned i = 0; i < *length; i++) all += values[i];\n"
    "  *sum = all;\n"
    "}\n";

static rondo_status sum_up(rondo_call *call, void *user) {
  const program *p = user;
  void *values = rondo_call_input(call, 0), *length = rondo_call_input(call, 1), *sum;
  TRY(rondo_call_output(call, 0, sizeof(uint32_t), NULL, &sum));
  return rondo_launch(rondo_call_stream(call), p->kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&values, &length, &sum));
}

static uint32_t padded(uint32_t length) {
  uint32_t size = LEAST;
  while (size < length) size *= 2;
  return size;
}

/* One request: its values and length are written to where the function reads them. */
static rondo_status ask(const program *p, const uint32_t *values, uint32_t length, uint32_t *out_sum) {
  const rondo_input inputs[] = {{.address = p->values, .bytes = padded(length) * sizeof *values},
                                {.address = p->length, .bytes = sizeof length}};
  rondo_buffer *sum;
  TRY(rondo_copy_async(p->stream, p->values, values, length * sizeof *values));
  TRY(rondo_copy_async(p->stream, p->length, &length, sizeof length));
  TRY(rondo_function_call(p->function, p->stream, inputs, 2, &sum, 1));
  TRY(rondo_buffer_copy(sum, p->stream, 0, out_sum, sizeof *out_sum));
  rondo_buffer_release(sum);
  return rondo_stream_synchronize(p->stream);
}

/* Request `number` with values 1, 2, ..., of a length that differs from those of its neighbours. */
static rondo_status ask_and_check(const program *p, uint32_t number, bool *inout_right) {
  const uint32_t length = number * 37 % LENGTHS + 1;
  uint32_t values[MOST], sum;
  for (uint32_t i = 0; i < length; i++) values[i] = i + 1;
  TRY(ask(p, values, length, &sum));
  if (sum != length * (length + 1) / 2) *inout_right = false;
  return RONDO_OK;
}

static rondo_status set_up(program *p, const char *name) {
  static const uint32_t inputs[] = {RONDO_INPUT_MOVING, RONDO_INPUT_STATIC};
  const rondo_kernel_options kernel = {
      RONDO_KERNEL_OPTIONS_INIT, .name = "sum",      .cpu = sum_cpu,
      .cuda_source = sum_cuda,   .block_threads = 1, .params = {RONDO_READS, RONDO_READS, RONDO_WRITES}};
  const rondo_function_options function = {
      RONDO_FUNCTION_OPTIONS_INIT, .name = "sum", .body = sum_up, .user = p, .inputs = inputs, .input_count = 2};
  TRY(rondo_device_open(name, NULL, &p->device));
  TRY(rondo_stream_create(p->device, NULL, &p->stream));
  TRY(rondo_kernel_create(p->device, &kernel, &p->kernel));
  TRY(rondo_malloc(p->device, MOST * sizeof(uint32_t), "values", &p->values));
  TRY(rondo_malloc(p->device, sizeof(uint32_t), "length", &p->length));
  TRY(rondo_tree_create(p->device, NULL, &p->tree));
  return rondo_function_create(p->tree, &function, &p->function);
}

static rondo_status take_down(const program *p) {
  TRY(rondo_tree_destroy(p->tree));
  TRY(rondo_free(p->device, p->values));
  TRY(rondo_free(p->device, p->length));
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
         is_right ? "all sums right" : "wrong sums");
  return take_down(p);
}

int main(int argc, char **argv) {
  program p = {.device = NULL};
  if (run(&p, argc > 1 ? argv[1] : "cpu") == RONDO_OK) return EXIT_SUCCESS;
  fprintf(stderr, "%s: %s\n", argv[0], rondo_last_error()->message);
  return EXIT_FAILURE;
}
