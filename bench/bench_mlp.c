/* SPDX-License-Identifier: MIT
 * rondo_bench mlp: a multi-layer perceptron as a function of a tree, which bench/trees_vs_torch.py compares with
 * PyTorch's CUDAGraph Trees.
 *
 * Each layer is y = relu(x W' + b). On a GPU, cuBLAS computes the products in half precision with sums in float, as it
 * does for PyTorch, and a kernel of this program adds the bias. Without cuBLAS, kernels of this program compute both in
 * float, which only tests the program. The input is at another address in every call, and is patched into the product
 * that reads it. The time of a call includes everything that a program does for a step: it marks the step, calls the
 * function and releases the output. Results of replays are compared with those of eager runs.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "bench_check.h"
#include "rondo_bench.h"

enum { PLACES = 2, WARM_UPS = 30, BLOCK = 256, WORKSPACE = 32 << 20 };

/* cuBLAS, as declared in its cublas_api.h. */
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
  bench_base base;
  uint64_t layer_count, row_width, rows, calls;
  uint32_t layers, width, batch; /* the same as kernel arguments */
  size_t element, bytes;         /* of a number, and of the values of a layer */
  rondo_stream *stream;
  cublas library;
  void *handle; /* NULL: without cuBLAS */
  rondo_kernel *multiply, *activate;
  void *weights, *biases, *workspace, *inputs[PLACES];
  rondo_tree *tree;
  rondo_function *function;
  void *expected[PLACES]; /* on the host */
  cost times;
} perceptron;

/* Kernels ---------------------------------------------------------------------------------------------------------- */

/* y[row][column] = sum of x[row][i] * w[column][i]: one block for each element. */
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

/* In half precision. The two conversions are instructions, so that no header is needed. */
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

static void make_kernels(perceptron *p) {
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
  check(rondo_kernel_create(p->base.device, &activate, &p->activate));
  if (p->handle == NULL) check(rondo_kernel_create(p->base.device, &multiply, &p->multiply));
}

/* The function ----------------------------------------------------------------------------------------------------- */

static rondo_status queue_product(const perceptron *p, rondo_stream *stream, const void *x, const void *w, void *y) {
  const float one = 1, zero = 0;
  const int width = (int)p->width;
  if (p->handle == NULL)
    return rondo_launch(stream, p->multiply, (rondo_grid){p->batch * p->width, 1, 1},
                        RONDO_ARGS(&x, &w, &y, &p->width));
  /* In column-major order, as cuBLAS expects: y is W' of the weights and x, where each column is a row of the batch. */
  const int code = p->library.gemm(p->handle, TRANSPOSED, 0, width, (int)p->batch, width, &one, w, TYPE_HALF, width, x,
                                   TYPE_HALF, width, &zero, y, TYPE_HALF, width, COMPUTE_FLOAT, DEFAULT_ALGORITHM);
  if (code != 0) tool_warn("cuBLAS refused a product (%d)", code);
  return code == 0 ? RONDO_OK : RONDO_UNSUPPORTED;
}

static rondo_status queue_layer(const perceptron *p, rondo_stream *stream, uint32_t layer, const void *x, void *y) {
  const char *w = (const char *)p->weights + (size_t)layer * p->width * p->width * p->element;
  const char *bias = (const char *)p->biases + (size_t)layer * p->width * p->element;
  const uint32_t count = p->batch * p->width;
  TOOL_TRY(queue_product(p, stream, x, w, y));
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
    TOOL_TRY(i + 1 == p->layers ? rondo_call_output(call, 0, p->bytes, NULL, &y)
                                : rondo_malloc_async(stream, p->bytes, NULL, &y));
    TOOL_TRY(queue_layer(p, stream, i, x, y));
    if (i > 0) TOOL_TRY(rondo_free_async(stream, x));
    x = y;
  }
  return RONDO_OK;
}

static rondo_buffer *call(const perceptron *p, uint64_t number) {
  const rondo_input x = {.address = p->inputs[number % PLACES], .bytes = p->bytes};
  rondo_buffer *y;
  check(rondo_tree_mark_step(p->tree));
  check(rondo_function_call(p->function, p->stream, &x, 1, &y, 1));
  return y;
}

/* Preparing -------------------------------------------------------------------------------------------------------- */

static bool find(void *library, const char *name, void *out) {
  void *symbol = dlsym(library, name);
  memcpy(out, &symbol, sizeof symbol);
  return symbol != NULL;
}

/* With a driver of another name, cuBLAS would use the machine's own driver. This file calls dlopen itself because the
 * loader in src/vendor is internal, and because a baseline must not depend on what it is compared with. */
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

/* The bits of a number that half precision represents exactly. */
static uint16_t half_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffff) == 0) return 0;
  return (uint16_t)((bits >> 16 & 0x8000) | (((bits >> 23 & 0xff) - 112) << 10) | (bits >> 13 & 0x3ff));
}

/* `count` numbers that are `size` or -size, in an order that looks random. */
static void *make_numbers(const perceptron *p, size_t count, float size, uint32_t seed) {
  char *host = bench_allocate(count, p->element);
  void *numbers;
  for (size_t i = 0; i < count; i++) {
    seed = seed * 1664525 + 1013904223;
    const float value = seed >> 31 != 0 ? size : -size;
    const uint16_t half = half_of(value);
    memcpy(host + i * p->element, p->handle == NULL ? (const void *)&value : &half, p->element);
  }
  check(rondo_malloc(p->base.device, count * p->element, "numbers", &numbers));
  check(rondo_copy_async(p->stream, numbers, host, count * p->element));
  check(rondo_stream_synchronize(p->stream));
  free(host);
  return numbers;
}

/* Weights of about sqrt(2 / width) keep the magnitude of values from layer to layer (He and others 2015). */
static void make_memory(perceptron *p) {
  uint32_t root = 1;
  while ((root + 1) * (root + 1) <= 2 * 1024 * 1024 / p->width) root++;
  p->weights = make_numbers(p, (size_t)p->layers * p->width * p->width, (float)root / 1024, 1);
  p->biases = make_numbers(p, (size_t)p->layers * p->width, 1.0f / 64, 2);
  for (uint32_t i = 0; i < PLACES; i++) p->inputs[i] = make_numbers(p, (size_t)p->batch * p->width, 1, 3 + i);
  if (p->handle != NULL) check(rondo_malloc(p->base.device, WORKSPACE, "cuBLAS", &p->workspace));
}

static int prepare(void *bench) {
  static const uint32_t moving = RONDO_INPUT_MOVING;
  perceptron *p = bench;
  p->layers = (uint32_t)p->layer_count;
  p->width = (uint32_t)p->row_width;
  p->batch = (uint32_t)p->rows;
  check(rondo_stream_create(p->base.device, NULL, &p->stream));
  if (strncmp(p->base.device_name, "cuda", 4) == 0 && load(&p->library) && p->library.create(&p->handle) != 0)
    p->handle = NULL;
  p->element = p->handle == NULL ? sizeof(float) : sizeof(uint16_t);
  p->bytes = (size_t)p->batch * p->width * p->element;
  make_kernels(p);
  make_memory(p);
  const rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT,
                                          .name = "perceptron",
                                          .body = run_layers,
                                          .user = p,
                                          .inputs = &moving,
                                          .input_count = 1,
                                          .find_inputs = p->handle != NULL};
  check(rondo_tree_create(p->base.device, &(rondo_tree_options){RONDO_TREE_OPTIONS_INIT, .name = "perceptron"},
                          &p->tree));
  check(rondo_function_create(p->tree, &options, &p->function));
  return costs_create(&p->times, 1, (size_t)p->calls);
}

/* Measuring ------------------------------------------------------------------------------------------------------- */

static void call_and_read(const perceptron *p, uint64_t number, void *out) {
  rondo_buffer *y = call(p, number);
  check(rondo_buffer_copy(y, p->stream, 0, out, p->bytes));
  rondo_buffer_release(y);
  check(rondo_stream_synchronize(p->stream));
}

static void time_call(perceptron *p, uint64_t number, cost *to) {
  COST_TIME(to, rondo_buffer_release(call(p, number)), check(rondo_stream_synchronize(p->stream)));
}

/* Replays must give the results of eager runs, which must not all be equal. */
static int compare(const perceptron *p) {
  void *result = bench_allocate(p->bytes, 1);
  bool is_right = memcmp(p->expected[0], p->expected[1], p->bytes) != 0;
  for (uint32_t i = 0; i < PLACES; i++) {
    call_and_read(p, i, result);
    is_right = is_right && memcmp(result, p->expected[i], p->bytes) == 0;
  }
  free(result);
  return is_right ? TOOL_OK : tool_fail("a replay differs from an eager run");
}

static int measure(void *bench) {
  perceptron *p = bench;
  check(rondo_tree_set_recording(p->tree, false));
  for (uint32_t i = 0; i < PLACES; i++) {
    p->expected[i] = bench_allocate(p->bytes, 1);
    call_and_read(p, i, p->expected[i]);
  }
  check(rondo_tree_set_recording(p->tree, true));
  for (uint64_t i = 0; i < WARM_UPS + p->calls; i++) time_call(p, i, i < WARM_UPS ? NULL : &p->times);
  costs_summarize(&p->times, 1);
  return compare(p);
}

static void report(void *bench, json *out) {
  const perceptron *p = bench;
  rondo_tree_info info = {.struct_size = sizeof info};
  check(rondo_tree_get_info(p->tree, &info));
  json_integer(out, "layers", p->layers);
  json_integer(out, "width", p->width);
  json_integer(out, "batch", p->batch);
  json_integer(out, "calls", p->calls);
  json_text(out, "products", p->handle == NULL ? "own" : "cuBLAS");
  json_integer(out, "element_bytes", p->element);
  cost_to_json(out, &p->times);
  json_integer(out, "replayed", info.replayed);
  json_integer(out, "patched_inputs", info.patched_inputs);
  json_integer(out, "copied_inputs", info.copied_inputs);
  json_integer(out, "arena_bytes", info.arena_used);
}

static const perceptron defaults = {
    .base = {.device_name = "cpu"}, .layer_count = 4, .row_width = 64, .rows = 8, .calls = 300};

#define OFFSET(member) offsetof(perceptron, member)

static const option_row rows[] = {
    {"layers", "N", OPTION_COUNT, OFFSET(layer_count), 1, 1000, "layers"},
    {"width", "N", OPTION_COUNT, OFFSET(row_width), 1, 16384, "values of a layer"},
    {"batch", "N", OPTION_COUNT, OFFSET(rows), 1, 4096, "rows of an input"},
    {"calls", "N", OPTION_COUNT, OFFSET(calls), 1, 100000, "calls that are measured"},
};

const benchmark bench_mlp = {
    .name = "mlp",
    .summary = "calls of a perceptron in a tree, to compare with PyTorch's",
    .description =
        "Measures calls of a multi-layer perceptron that is a function of a tree: the time of the host and the\n"
        "total time, in microseconds, medians. On a GPU with cuBLAS, cuBLAS computes the products in half\n"
        "precision. Fails if a replay differs from an eager run.",
    BENCH_STATE(defaults),
    BENCH_OPTIONS(rows),
    .prepare = prepare,
    .measure = measure,
    .report = report,
};
