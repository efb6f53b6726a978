/* SPDX-License-Identifier: MIT
 * A region: an engine that enqueues its own work is recorded and replayed where the program calls it, without a
 * callback. How much the engine enqueues depends on the number of rows, which is the region's key. So each number of
 * rows runs once eagerly, is captured once, and is replayed afterwards. The input is at a different address at each
 * call.
 *
 *   tree_region [DEVICE]
 *
 * Prints: 1000 calls, 994 replayed; y = 7 8 9
 */
#include <stdio.h>

#include <rondo/rondo.h>

#define TRY(call)                           \
  do {                                      \
    const rondo_status try_status = (call); \
    if (try_status) return try_status;      \
  } while (0)

enum { ROWS = 3, COUNT = 1 << 12, BLOCK = 256, BYTES = COUNT * sizeof(float), CALLS = 1000 };

/* The engine ------------------------------------------------------------------------------------------------------- */

static void add_cpu(rondo_blocks blocks, void *const *args) {
  const float *in = *(const float *const *)args[0], number = *(const float *)args[2];
  float *out = *(float *const *)args[1];
  for (size_t i = blocks.first * BLOCK; i < blocks.last * BLOCK; i++) out[i] = in[i] + number;
}
static const char add_cuda[] =
    "extern \"C\" __global__ void add(const float *in, float *out, float number) {\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  out[i] = in[i] + number;\n"
    "}\n";

/* y = x + 1 + 1 ..., once for each row */
static rondo_status engine_run(rondo_kernel *add, rondo_stream *stream, const void *x, void *y, int rows) {
  const float one = 1;
  for (int i = 0; i < rows; i++) {
    const void *in = i == 0 ? x : y;
    TRY(rondo_launch(stream, add, (rondo_grid){.x = COUNT / BLOCK}, RONDO_ARGS(&in, &y, &one)));
  }
  return RONDO_OK;
}

/* The program ------------------------------------------------------------------------------------------------------ */

static rondo_status step(rondo_region *region, rondo_stream *stream, rondo_kernel *add, void *x, int rows,
                         float *out_first) {
  rondo_call *call;
  rondo_buffer *y = NULL;
  const rondo_input input = {.address = x, .bytes = BYTES};
  const rondo_region_arguments arguments = {
      .key = &rows, .key_bytes = sizeof rows, .inputs = &input, .input_count = 1, .outputs = &y, .output_count = 1};
  TRY(rondo_region_begin(region, stream, &arguments, &call));
  while (call != NULL) { /* NULL: the recording was launched */
    void *out;
    rondo_status done = rondo_call_output(call, 0, BYTES, NULL, &out);
    if (done == RONDO_OK) done = engine_run(add, stream, rondo_call_input(call, 0), out, rows);
    TRY(rondo_region_end(region, stream, done, &call)); /* not NULL: run it again, eagerly */
  }
  const rondo_status status = rondo_buffer_copy(y, stream, 0, out_first, sizeof *out_first);
  rondo_buffer_release(y);
  return status;
}

static rondo_status run_region(rondo_tree *tree, rondo_stream *stream, rondo_kernel *add, void *const x[2]) {
  rondo_region *region;
  rondo_region_info info = {.struct_size = sizeof info};
  float y[ROWS];
  TRY(rondo_region_create(tree,
                          &(rondo_region_options){RONDO_REGION_OPTIONS_INIT, .name = "engine",
                                                  RONDO_INPUTS(RONDO_INPUT_MOVING), .key_bytes = sizeof(int)},
                          &region));
  for (int i = 0; i < CALLS; i++) TRY(step(region, stream, add, x[i % 2], 1 + i % ROWS, &y[i % ROWS]));
  TRY(rondo_stream_synchronize(stream));
  TRY(rondo_region_get_info(region, &info));
  printf("%d calls, %d replayed; y = %g %g %g\n", CALLS, (int)info.replayed, (double)y[0], (double)y[1], (double)y[2]);
  return RONDO_OK;
}

static rondo_status make_input(rondo_device *device, rondo_stream *stream, void **out) {
  static float host[COUNT];
  for (size_t i = 0; i < COUNT; i++) host[i] = 6;
  TRY(rondo_malloc(device, BYTES, "x", out));
  TRY(rondo_copy_async(stream, *out, host, BYTES));
  return rondo_stream_synchronize(stream);
}

static rondo_status run(const char *name) {
  rondo_device *device;
  rondo_stream *stream;
  rondo_tree *tree;
  rondo_kernel *add;
  void *x[2];
  TRY(rondo_device_open(name, NULL, &device));
  TRY(rondo_stream_create(device, NULL, &stream));
  TRY(rondo_kernel_create(
      device,
      &(rondo_kernel_options){RONDO_KERNEL_OPTIONS_INIT, .name = "add", .cpu = add_cpu, .cuda_source = add_cuda,
                              .block_threads = BLOCK, .params = {RONDO_READS, RONDO_WRITES, RONDO_SCALAR(float)}},
      &add));
  for (int i = 0; i < 2; i++) TRY(make_input(device, stream, &x[i]));
  TRY(rondo_tree_create(device, NULL, &tree));
  TRY(run_region(tree, stream, add, x));
  TRY(rondo_tree_destroy(tree)); /* with its regions */
  for (int i = 0; i < 2; i++) TRY(rondo_free(device, x[i]));
  rondo_kernel_destroy(add);
  TRY(rondo_stream_destroy(stream));
  return rondo_device_close(device);
}

int main(int argc, char **argv) {
  if (run(argc > 1 ? argv[1] : "cpu") == RONDO_OK) return 0;
  fprintf(stderr, "%s\n", rondo_last_error()->message);
  return 1;
}
