/* SPDX-License-Identifier: MIT
 * The smallest tree: one function, which runs as a warm-up at its first call, is recorded at its second and replayed
 * afterwards. The code of the function is the same in all three cases. Its scratch memory is part of the recording's
 * memory plan. Its input is at a different address at each call.
 *
 *   tree_first [DEVICE]
 *
 * Prints: 1000 calls, 998 replayed; y[0] = 1000
 */
#include <stdio.h>

#include <rondo/rondo.h>

#define TRY(call)                           \
  do {                                      \
    const rondo_status try_status = (call); \
    if (try_status) return try_status;      \
  } while (0)

enum { COUNT = 1 << 16, BLOCK = 256, BYTES = COUNT * sizeof(float), CALLS = 1000 };
static const rondo_grid grid = {.x = COUNT / BLOCK};

static void multiply_cpu(rondo_blocks blocks, void *const *args) {
  const float *a = *(const float *const *)args[0], *b = *(const float *const *)args[1];
  float *out = *(float *const *)args[2];
  for (size_t i = blocks.first * BLOCK; i < blocks.last * BLOCK; i++) out[i] = a[i] * b[i];
}
static const char multiply_cuda[] =
    "extern \"C\" __global__ void multiply(const float *a, const float *b, float *out) {\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  out[i] = a[i] * b[i];\n"
    "}\n";

/* y = x * x * x */
static rondo_status cube(rondo_call *call, void *user) {
  rondo_kernel *multiply = user;
  rondo_stream *stream = rondo_call_stream(call);
  void *x = rondo_call_input(call, 0), *square, *y;
  TRY(rondo_malloc_async(stream, BYTES, NULL, &square)); /* becomes part of the recording, at a planned address */
  TRY(rondo_call_output(call, 0, BYTES, NULL, &y));
  TRY(rondo_launch(stream, multiply, grid, RONDO_ARGS(&x, &x, &square)));
  TRY(rondo_launch(stream, multiply, grid, RONDO_ARGS(&square, &x, &y)));
  return rondo_free_async(stream, square);
}

static rondo_status calls(rondo_function *function, rondo_stream *stream, void *const x[2], float *out_first) {
  for (int i = 0; i < CALLS; i++) {
    rondo_buffer *y;
    const rondo_input input = {.address = x[i % 2], .bytes = BYTES};
    TRY(rondo_function_call(function, stream, &input, 1, &y, 1)); /* the 1st runs, the 2nd is recorded, then replayed */
    TRY(rondo_buffer_copy(y, stream, 0, out_first, sizeof *out_first));
    rondo_buffer_release(y);
  }
  return rondo_stream_synchronize(stream);
}

static rondo_status make_input(rondo_device *device, rondo_stream *stream, void **out) {
  static float host[COUNT];
  for (size_t i = 0; i < COUNT; i++) host[i] = 10;
  TRY(rondo_malloc(device, BYTES, "x", out));
  TRY(rondo_copy_async(stream, *out, host, BYTES));
  return rondo_stream_synchronize(stream);
}

static rondo_status run(const char *name) {
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *multiply;
  rondo_tree *tree;
  rondo_function *function;
  rondo_tree_info info = {.struct_size = sizeof info};
  void *x[2];
  float first;
  TRY(rondo_device_open(name, NULL, &device)); /* "cpu" or "cuda:0": nothing else changes */
  TRY(rondo_stream_create(device, NULL, &stream));
  TRY(rondo_kernel_create(device,
                          &(rondo_kernel_options){RONDO_KERNEL_OPTIONS_INIT, .name = "multiply", .cpu = multiply_cpu,
                                                  .cuda_source = multiply_cuda, .block_threads = BLOCK,
                                                  .params = {RONDO_READS, RONDO_READS, RONDO_WRITES}},
                          &multiply));
  TRY(make_input(device, stream, &x[0]));
  TRY(make_input(device, stream, &x[1]));

  TRY(rondo_tree_create(device, NULL, &tree));
  TRY(rondo_function_create(tree,
                            &(rondo_function_options){RONDO_FUNCTION_OPTIONS_INIT, .name = "cube", .body = cube,
                                                      .user = multiply, RONDO_INPUTS(RONDO_INPUT_MOVING)},
                            &function));
  TRY(calls(function, stream, x, &first));
  TRY(rondo_tree_get_info(tree, &info));
  printf("%d calls, %d replayed; y[0] = %g\n", CALLS, (int)info.replayed, (double)first);

  TRY(rondo_tree_destroy(tree)); /* with its functions */
  for (int i = 0; i < 2; i++) TRY(rondo_free(device, x[i]));
  rondo_kernel_destroy(multiply);
  TRY(rondo_stream_destroy(stream));
  return rondo_device_close(device);
}

int main(int argc, char **argv) {
  if (run(argc > 1 ? argv[1] : "cpu") == RONDO_OK) return 0;
  fprintf(stderr, "%s\n", rondo_last_error()->message);
  return 1;
}
