/* SPDX-License-Identifier: MIT
 * A multi-layer perceptron as a function of a tree: what bench/trees_vs_torch.py holds beside PyTorch's CUDAGraph
 * Trees.
 *
 *   bench_tree_mlp DEVICE LAYERS WIDTH BATCH CALLS
 *
 * Each layer is y = relu(x W' + b). On a GPU with cuBLAS the products are cuBLAS's, in half precision with sums in
 * float, as PyTorch's are, and a kernel of this program adds the bias; elsewhere both are kernels of this program, in
 * float, which shows that the program works. The input is elsewhere at every call, and patched into the product that
 * reads it. A call is all that a program does for a step: marking it, calling the function, giving the output back.
 *
 * Results of replays are compared with those of plain runs. Prints one JSON object; times are host times in
 * microseconds, of the call and until the work is done.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rondo/rondo.h>

#define TRY(call)                                  \
  do {                                             \
    const rondo_status try_status = (call);        \
    if (try_status != RONDO_OK) return try_status; \
  } while (0)

enum { PLACES = 2, WARM_UPS = 30, MOST_CALLS = 100000, BLOCK = 256, WORKSPACE = 32 << 20 };

/* cuBLAS, as its cublas_api.h has it. */
enum { TYPE_HALF = 2, COMPUTE_FLOAT = 68, DEFAULT_ALGORITHM = -1, TRANSPOSED = 1 };
typedef struct cublas {
  int (*create)(void **handle);
  int (*destroy)(void *handle);
  int (*set_stream)(void *handle, void *stream);
  int (*set_workspace)(void *handle, void *workspace, size_t bytes);
  int (*gemm)(void *handle, int transpose_a, int transpose_b, int m, int n, int k, const void *alpha, const void *a,
              int type_a, int lda, const void *b, int type_b, int ldb, const void *beta, void *c, int type_c, int ldc,
              int compute, int algorithm);
} cublas;

typedef struct perceptron {
  const char *device_name;
  uint32_t layers, width, batch, calls;
  size_t element, bytes; /* of a number, and of a layer's values */
  rondo_device *device;
  rondo_stream *stream;
  cublas library;
  void *handle; /* NULL: without cuBLAS */
  rondo_kernel *multiply, *activate;
  void *weights, *biases, *workspace, *inputs[PLACES];
  rondo_tree *tree;
  rondo_function *function;
  void *expected[PLACES]; /* on the host */
  double *host_us, *total_us;
} perceptron;

/* Kernels ---------------------------------------------------------------------------------------------------------- */

/* y[row][column] = sum of x[row][i] * w[column][i]: a block each. */
static void multiply_cpu(rondo_blocks blocks, void *const *args) {
  const float *x = *(const float **)args[0], *w = *(const float **)args[1];
  float *y = *(float **)args[2];
  const uint32_t width = *(const uint32_t *)args[3];
  for (size_t at = blocks.first; at < blocks.last; at++) {
    float sum = 0;
    for (size_t i = 0; i < width; i++) sum += x[at / width * width + i] * w[at % width * width + i];
    y[at] = sum;
  }
}
static const char multiply_cuda[] =
    "extern \"C\" __global__ void multiply(const float *x, const float *w, float *y, unsigned width) {\n"
    "  const unsigned at = blockIdx.x;\n"
    "  float sum = 0;\n"
    "  for (unsigned i = 0; i < width; i++) sum += x[at / width * width + i] * w[at % width * width + i];\n"
    "  y[at] = sum;\n"
    "}\n";

static void activate_cpu(rondo_blocks blocks, void *const *args) {
  float *y = *(float **)args[0];
  const float *bias = *(const float **)args[1];
  const uint32_t width = *(const uint32_t *)args[2], count = *(const uint32_t *)args[3];
  for (size_t at = blocks.first * BLOCK; at < blocks.last * BLOCK && at < count; at++) {
    const float value = y[at] + bias[at % width];
    y[at] = value > 0 ? value : 0;
  }
}
static const char activate_cuda[] =
    "extern \"C\" __global__ void activate(float *y, const float *bias, unsigned width, unsigned count) {\n"
    "  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (at >= count) return;\n"
    "  const float value = y[at] + bias[at % width];\n"
    "  y[at] = value > 0 ? value : 0;\n"
    "}\n";

/* In half precision; its two conversions as instructions, so that no header is needed. */
static const char activate_half_cuda[] =
    "__device__ float wide(unsigned short h) { float f; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(f) : \"h\"(h)); return f; "
    "}\n"
    "__device__ unsigned short narrow(float f) {\n"
    "  unsigned short h; asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(f)); return h;\n"
    "}\n"
    "extern \"C\" __global__ void activate(unsigned short *y, const unsigned short *bias, unsigned width,\n"
    "                                    unsigned count) {\n"
    "  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (at >= count) return;\n"
    "  const float value = wide(y[at]) + wide(bias[at % width]);\n"
    "  y[at] = narrow(value > 0 ? value : 0);\n"
    "}\n";

static rondo_status make_kernels(perceptron *p) {
  const rondo_kernel_options multiply = {
      RONDO_KERNEL_OPTIONS_INIT, .name = "multiply",
      .cpu = multiply_cpu,       .cuda_source = multiply_cuda,
      .block_threads = 1,        .params = {RONDO_READS, RONDO_READS, RONDO_WRITES, RONDO_SCALAR(uint32_t)}};
  const rondo_kernel_options activate = {
      RONDO_KERNEL_OPTIONS_INIT,
      .name = "activate",
      .cpu = activate_cpu,
      .cuda_source = p->handle == NULL ? activate_cuda : activate_half_cuda,
      .block_threads = BLOCK,
      .params = {RONDO_UPDATES, RONDO_READS, RONDO_SCALAR(uint32_t), RONDO_SCALAR(uint32_t)}};
  TRY(rondo_kernel_create(p->device, &activate, &p->activate));
  return p->handle == NULL ? rondo_kernel_create(p->device, &multiply, &p->multiply) : RONDO_OK;
}

/* The function ----------------------------------------------------------------------------------------------------- */

static rondo_status queue_product(const perceptron *p, rondo_stream *stream, const void *x, const void *w, void *y) {
  const float one = 1, zero = 0;
  const int width = (int)p->width;
  if (p->handle == NULL)
    return rondo_launch(stream, p->multiply, (rondo_grid){p->batch * p->width, 1, 1},
                        RONDO_ARGS(&x, &w, &y, &p->width));
  /* Column by column, as cuBLAS has it: y is W' of the weights and x, each column a row of the batch. */
  const int code = p->library.gemm(p->handle, TRANSPOSED, 0, width, (int)p->batch, width, &one, w, TYPE_HALF, width, x,
                                   TYPE_HALF, width, &zero, y, TYPE_HALF, width, COMPUTE_FLOAT, DEFAULT_ALGORITHM);
  if (code != 0) fprintf(stderr, "bench_tree_mlp: cuBLAS refused a product (%d)\n", code);
  return code == 0 ? RONDO_OK : RONDO_UNSUPPORTED;
}

static rondo_status queue_layer(const perceptron *p, rondo_stream *stream, uint32_t layer, const void *x, void *y) {
  const char *w = (const char *)p->weights + (size_t)layer * p->width * p->width * p->element;
  const char *bias = (const char *)p->biases + (size_t)layer * p->width * p->element;
  const uint32_t count = p->batch * p->width;
  TRY(queue_product(p, stream, x, w, y));
  return rondo_launch(stream, p->activate, (rondo_grid){(count + BLOCK - 1) / BLOCK, 1, 1},
                      RONDO_ARGS(&y, &bias, &p->width, &count));
}

static rondo_status run_layers(rondo_call *call, void *user) {
  const perceptron *p = user;
  rondo_stream *stream = rondo_call_stream(call);
  void *x = rondo_call_input(call, 0), *y;
  if (p->handle != NULL && (p->library.set_stream(p->handle, rondo_stream_native(stream)) != 0 ||
                            p->library.set_workspace(p->handle, p->workspace, WORKSPACE) != 0))
    return RONDO_UNSUPPORTED;
  for (uint32_t i = 0; i < p->layers; i++) {
    TRY(i + 1 == p->layers ? rondo_call_output(call, 0, p->bytes, NULL, &y)
                           : rondo_malloc_async(stream, p->bytes, NULL, &y));
    TRY(queue_layer(p, stream, i, x, y));
    if (i > 0) TRY(rondo_free_async(stream, x));
    x = y;
  }
  return RONDO_OK;
}

static rondo_status call(const perceptron *p, uint32_t number, rondo_buffer **out) {
  const rondo_input x = {.address = p->inputs[number % PLACES], .bytes = p->bytes};
  TRY(rondo_tree_mark_step(p->tree));
  return rondo_function_call(p->function, p->stream, &x, 1, out, 1);
}

/* Making ready ----------------------------------------------------------------------------------------------------- */

static bool find(void *library, const char *name, void *out) {
  void *symbol = dlsym(library, name);
  memcpy(out, &symbol, sizeof symbol);
  return symbol != NULL;
}

/* With a driver of another name cuBLAS would talk to the machine's own. */
static bool load(cublas *out) {
  static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
  void *library = NULL;
  if (getenv("RONDO_CUDA_LIBRARY") != NULL) return false;
  for (size_t i = 0; i < sizeof names / sizeof names[0] && library == NULL; i++)
    library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  return library != NULL && find(library, "cublasCreate_v2", &out->create) &&
         find(library, "cublasDestroy_v2", &out->destroy) && find(library, "cublasSetStream_v2", &out->set_stream) &&
         find(library, "cublasSetWorkspace_v2", &out->set_workspace) && find(library, "cublasGemmEx", &out->gemm);
}

/* The bits of a number that half precision has exactly. */
static uint16_t half_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffff) == 0) return 0;
  return (uint16_t)((bits >> 16 & 0x8000) | (((bits >> 23 & 0xff) - 112) << 10) | (bits >> 13 & 0x3ff));
}

/* `count` numbers that are `size` or -size, in an order that looks like chance. */
static rondo_status make_numbers(const perceptron *p, size_t count, float size, uint32_t seed, void **out) {
  char *host = malloc(count * p->element);
  if (host == NULL) return RONDO_OUT_OF_MEMORY;
  for (size_t i = 0; i < count; i++) {
    seed = seed * 1664525 + 1013904223;
    const float value = seed >> 31 != 0 ? size : -size;
    const uint16_t half = half_of(value);
    memcpy(host + i * p->element, p->handle == NULL ? (const void *)&value : &half, p->element);
  }
  rondo_status status = rondo_malloc(p->device, count * p->element, "numbers", out);
  if (status == RONDO_OK) status = rondo_copy_async(p->stream, *out, host, count * p->element);
  if (status == RONDO_OK) status = rondo_stream_synchronize(p->stream);
  free(host);
  return status;
}

/* Weights of about sqrt(2 / width) keep values of one size from layer to layer (He and others 2015). */
static rondo_status make_memory(perceptron *p) {
  uint32_t root = 1;
  while ((root + 1) * (root + 1) <= 2 * 1024 * 1024 / p->width) root++;
  const float size = (float)root / 1024;
  TRY(make_numbers(p, (size_t)p->layers * p->width * p->width, size, 1, &p->weights));
  TRY(make_numbers(p, (size_t)p->layers * p->width, 1.0f / 64, 2, &p->biases));
  for (uint32_t i = 0; i < PLACES; i++) TRY(make_numbers(p, (size_t)p->batch * p->width, 1, 3 + i, &p->inputs[i]));
  return p->handle == NULL ? RONDO_OK : rondo_malloc(p->device, WORKSPACE, "cuBLAS", &p->workspace);
}

static rondo_status set_up(perceptron *p) {
  static const uint32_t moving = RONDO_INPUT_MOVING;
  TRY(rondo_device_open(p->device_name, NULL, &p->device));
  TRY(rondo_stream_create(p->device, NULL, &p->stream));
  if (rondo_stream_native(p->stream) != NULL && load(&p->library) && p->library.create(&p->handle) != 0)
    p->handle = NULL;
  p->element = p->handle == NULL ? sizeof(float) : sizeof(uint16_t);
  p->bytes = (size_t)p->batch * p->width * p->element;
  TRY(make_kernels(p));
  TRY(make_memory(p));
  const rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT,
                                          .name = "perceptron",
                                          .body = run_layers,
                                          .user = p,
                                          .inputs = &moving,
                                          .input_count = 1,
                                          .find_inputs = p->handle != NULL};
  TRY(rondo_tree_create(p->device, &(rondo_tree_options){RONDO_TREE_OPTIONS_INIT, .name = "perceptron"}, &p->tree));
  return rondo_function_create(p->tree, &options, &p->function);
}

static rondo_status take_down(const perceptron *p) {
  TRY(rondo_tree_destroy(p->tree));
  TRY(rondo_free(p->device, p->weights));
  TRY(rondo_free(p->device, p->biases));
  TRY(rondo_free(p->device, p->workspace));
  for (int i = 0; i < PLACES; i++) TRY(rondo_free(p->device, p->inputs[i]));
  if (p->handle != NULL) (void)p->library.destroy(p->handle);
  rondo_kernel_destroy(p->activate);
  rondo_kernel_destroy(p->multiply);
  TRY(rondo_stream_destroy(p->stream));
  return rondo_device_close(p->device);
}

/* Measuring -------------------------------------------------------------------------------------------------------- */

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static rondo_status call_and_read(const perceptron *p, uint32_t number, void *out) {
  rondo_buffer *y;
  TRY(call(p, number, &y));
  TRY(rondo_buffer_copy(y, p->stream, 0, out, p->bytes));
  rondo_buffer_release(y);
  return rondo_stream_synchronize(p->stream);
}

static rondo_status read_expected(perceptron *p) {
  TRY(rondo_tree_set_recording(p->tree, false));
  for (uint32_t i = 0; i < PLACES; i++) TRY(call_and_read(p, i, p->expected[i]));
  return rondo_tree_set_recording(p->tree, true);
}

static rondo_status measure(perceptron *p) {
  for (uint32_t i = 0; i < WARM_UPS + p->calls; i++) {
    rondo_buffer *y;
    const double begin = now_us();
    TRY(call(p, i, &y));
    rondo_buffer_release(y);
    const double queued = now_us();
    TRY(rondo_stream_synchronize(p->stream));
    if (i < WARM_UPS) continue;
    p->host_us[i - WARM_UPS] = queued - begin;
    p->total_us[i - WARM_UPS] = now_us() - begin;
  }
  return RONDO_OK;
}

/* Replays give what plain runs did, and that is not all zero. */
static rondo_status compare(const perceptron *p, void *scratch, bool *out) {
  *out = memcmp(p->expected[0], p->expected[1], p->bytes) != 0;
  for (uint32_t i = 0; i < PLACES; i++) {
    TRY(call_and_read(p, i, scratch));
    *out = *out && memcmp(scratch, p->expected[i], p->bytes) == 0;
  }
  return RONDO_OK;
}

static int compare_times(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void print_times(const char *name, double *us, uint32_t count) {
  qsort(us, count, sizeof *us, compare_times);
  printf(", \"%s\": %.3f, \"%s_min\": %.3f, \"%s_max\": %.3f", name, us[count / 2], name, us[0], name, us[count - 1]);
}

static void print(const perceptron *p, const rondo_tree_info *info) {
  printf("{\"device\": \"%s\", \"layers\": %" PRIu32 ", \"width\": %" PRIu32 ", \"batch\": %" PRIu32
         ", \"calls\": %" PRIu32 ", \"products\": \"%s\", \"element_bytes\": %zu",
         p->device_name, p->layers, p->width, p->batch, p->calls, p->handle == NULL ? "own" : "cuBLAS", p->element);
  print_times("host_us", p->host_us, p->calls);
  print_times("total_us", p->total_us, p->calls);
  printf(", \"replayed\": %" PRIu64 ", \"patched_inputs\": %" PRIu64 ", \"copied_inputs\": %" PRIu64
         ", \"arena_bytes\": %" PRIu64 "}\n",
         info->replayed, info->patched_inputs, info->copied_inputs, info->arena_used);
}

static rondo_status run(perceptron *p, bool *out_right) {
  rondo_tree_info info = {.struct_size = sizeof info};
  TRY(set_up(p));
  void *memory = calloc(PLACES + 1, p->bytes);
  if (memory == NULL) return RONDO_OUT_OF_MEMORY;
  for (int i = 0; i < PLACES; i++) p->expected[i] = (char *)memory + (size_t)i * p->bytes;
  rondo_status status = read_expected(p);
  if (status == RONDO_OK) status = measure(p);
  if (status == RONDO_OK) status = compare(p, (char *)memory + PLACES * p->bytes, out_right);
  if (status == RONDO_OK) status = rondo_tree_get_info(p->tree, &info);
  free(memory);
  TRY(status);
  print(p, &info);
  return take_down(p);
}

static bool read_number(const char *text, uint32_t most, uint32_t *out) {
  char *end;
  const unsigned long value = strtoul(text, &end, 10);
  *out = (uint32_t)value;
  return *end == '\0' && value >= 1 && value <= most;
}

int main(int argc, char **argv) {
  perceptron p = {.device_name = argc > 1 ? argv[1] : ""};
  bool is_right = false;
  if (argc != 6 || !read_number(argv[2], 1000, &p.layers) || !read_number(argv[3], 16384, &p.width) ||
      !read_number(argv[4], 4096, &p.batch) || !read_number(argv[5], MOST_CALLS, &p.calls)) {
    fputs("usage: bench_tree_mlp DEVICE LAYERS WIDTH BATCH CALLS\n", stderr);
    return 2;
  }
  p.host_us = calloc(p.calls, sizeof *p.host_us);
  p.total_us = calloc(p.calls, sizeof *p.total_us);
  const rondo_status status = p.host_us == NULL || p.total_us == NULL ? RONDO_OUT_OF_MEMORY : run(&p, &is_right);
  free(p.host_us);
  free(p.total_us);
  if (status != RONDO_OK)
    fprintf(stderr, "bench_tree_mlp: %s: %s\n", rondo_status_name(status), rondo_last_error()->message);
  else if (!is_right)
    fputs("bench_tree_mlp: a replay differs from a plain run\n", stderr);
  return status == RONDO_OK && is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
