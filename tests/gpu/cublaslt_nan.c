/* SPDX-License-Identifier: MIT
 * How cuBLASLt's epilogues treat NaN, which its documentation does not say. For each shape, the algorithm is requested
 * as in src/tensor/vendor/cublaslt.c, and one row of the left factor has a NaN. The program counts how many results of
 * that row are NaN, and how many of the other rows. It prints a table, with LOST if not all results of the row are NaN,
 * as with some algorithms for relu. It asserts nothing. Not part of the build: it needs the real headers, the library
 * and a GPU: cc -I<CUDA>/include tests/gpu/cublaslt_nan.c -L<CUDA>/lib64 -lcublasLt -lcuda -lm.
 */
#include <cublasLt.h>
#include <cuda.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Of the layers of `rondo serve recommender`, and the batch sizes that it was seen to record. */
static const struct { size_t depth, columns; } layers[] = {{13, 512}, {512, 256}, {256, 64}, {64, 16}, {745, 512}};
static const size_t sizes[] = {143, 399, 739, 1194, 1791, 2388, 3582, 4776};
static const struct {
  const char *name;
  cublasLtEpilogue_t epilogue;
} ends[] = {
    {"bias", CUBLASLT_EPILOGUE_BIAS}, {"relu", CUBLASLT_EPILOGUE_RELU_BIAS}, {"gelu", CUBLASLT_EPILOGUE_GELU_BIAS}};

enum { MOST_DEPTH = 745, MOST_COLUMNS = 512, MOST_ROWS = 4776 };
#define MOST_WORKSPACE ((size_t)32 << 20)

static CUdeviceptr a, b, bias, c, workspace;
static cublasLtHandle_t handle;
static float *results;

static void must_(int code, const char *call, int line) {
  if (code == 0) return;
  printf("line %d: %.100s: %d\n", line, call, code);
  exit(1);
}
#define must(call) must_((int)(call), #call, __LINE__)

static CUdeviceptr make_memory(size_t bytes, unsigned value) {
  CUdeviceptr memory;
  must(cuMemAlloc(&memory, bytes));
  must(cuMemsetD32(memory, value, bytes / 4));
  return memory;
}

static int number_of(const cublasLtMatmulAlgo_t *way, cublasLtMatmulAlgoConfigAttributes_t attribute) {
  int32_t number = -1;
  size_t written;
  return cublasLtMatmulAlgoConfigGetAttribute(way, attribute, &number, sizeof number, &written) == 0 ? number : -1;
}

static void count(size_t rows, size_t columns, size_t bad_row, size_t *out_kept, size_t *out_spread) {
  must(cuMemcpyDtoH(results, c, rows * columns * sizeof *results));
  *out_kept = *out_spread = 0;
  for (size_t i = 0; i < rows * columns; i++)
    *(i / columns == bad_row ? out_kept : out_spread) += isnan(results[i]) != 0;
}

typedef struct product {
  size_t rows, columns;
  cublasLtMatmulDesc_t description;
  cublasLtMatrixLayout_t a, b, c;
  cublasLtMatmulHeuristicResult_t way;
} product;

/* In the library's terms, column by column: c [columns, rows] = b [columns, depth] times a [depth, rows]. */
static void describe(size_t rows, size_t depth, size_t columns, const cublasLtEpilogue_t *end, product *out) {
  const void *address = (const void *)(uintptr_t)bias;
  *out = (product){.rows = rows, .columns = columns};
  must(cublasLtMatmulDescCreate(&out->description, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  must(cublasLtMatmulDescSetAttribute(out->description, CUBLASLT_MATMUL_DESC_EPILOGUE, end, sizeof *end));
  must(cublasLtMatmulDescSetAttribute(out->description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &address, sizeof address));
  must(cublasLtMatrixLayoutCreate(&out->a, CUDA_R_32F, depth, rows, (int64_t)depth));
  must(cublasLtMatrixLayoutCreate(&out->b, CUDA_R_32F, columns, depth, (int64_t)columns));
  must(cublasLtMatrixLayoutCreate(&out->c, CUDA_R_32F, columns, rows, (int64_t)columns));
}

static void choose_way(product *p) {
  const size_t parts = 32 * sizeof(float) * p->rows * p->columns;
  const uint64_t most = parts < MOST_WORKSPACE ? parts : MOST_WORKSPACE;
  const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  cublasLtMatmulPreference_t wishes;
  int choices = 0;
  must(cublasLtMatmulPreferenceCreate(&wishes));
  must(cublasLtMatmulPreferenceSetAttribute(wishes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most));
  must(cublasLtMatmulPreferenceSetAttribute(wishes, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
                                            sizeof reductions));
  must(cublasLtMatmulAlgoGetHeuristic(handle, p->description, p->b, p->a, p->c, p->c, wishes, 1, &p->way, &choices));
  must(cublasLtMatmulPreferenceDestroy(wishes));
}

static void multiply(const product *p) {
  const float one = 1, zero = 0;
  void *const to = (void *)(uintptr_t)c;
  must(cublasLtMatmul(handle, p->description, &one, (const void *)(uintptr_t)b, p->b, (const void *)(uintptr_t)a, p->a,
                      &zero, to, p->c, to, p->c, &p->way.algo, (void *)(uintptr_t)workspace, p->way.workspaceSize,
                      NULL));
  must(cuCtxSynchronize());
}

static void forget(const product *p) {
  must(cublasLtMatrixLayoutDestroy(p->a));
  must(cublasLtMatrixLayoutDestroy(p->b));
  must(cublasLtMatrixLayoutDestroy(p->c));
  must(cublasLtMatmulDescDestroy(p->description));
}

static void show_row(size_t rows, size_t depth, size_t columns, size_t end) {
  const size_t bad_rows[] = {0, rows / 2, rows - 1};
  const float none = NAN;
  product p;
  describe(rows, depth, columns, &ends[end].epilogue, &p);
  choose_way(&p);
  printf("| %zu x %zu x %zu | %s | %d, tile %d, stages %d, %d parts, reduction %d |", rows, depth, columns,
         ends[end].name, number_of(&p.way.algo, CUBLASLT_ALGO_CONFIG_ID),
         number_of(&p.way.algo, CUBLASLT_ALGO_CONFIG_TILE_ID), number_of(&p.way.algo, CUBLASLT_ALGO_CONFIG_STAGES_ID),
         number_of(&p.way.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
         number_of(&p.way.algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME));
  for (size_t i = 0; i < sizeof bad_rows / sizeof *bad_rows; i++) {
    const CUdeviceptr bad = a + bad_rows[i] * depth * sizeof(float);
    size_t kept, spread;
    must(cuMemcpyHtoD(bad, &none, sizeof none));
    multiply(&p);
    must(cuMemsetD32(bad, 0, 1));
    count(rows, columns, bad_rows[i], &kept, &spread);
    printf(" %s%zu of %zu, %zu elsewhere |", kept == columns ? "" : "LOST: ", kept, columns, spread);
  }
  printf("\n");
  forget(&p);
}

int main(void) {
  CUdevice device;
  CUcontext context;
  must(cuInit(0));
  must(cuDeviceGet(&device, 0));
  must(cuDevicePrimaryCtxRetain(&context, device));
  must(cuCtxSetCurrent(context));
  must(cublasLtCreate(&handle));
  a = make_memory(sizeof(float) * MOST_ROWS * MOST_DEPTH, 0);
  b = make_memory(sizeof(float) * MOST_DEPTH * MOST_COLUMNS, 0x3f800000); /* ones */
  bias = make_memory(sizeof(float) * MOST_COLUMNS, 0x3f800000);
  c = make_memory(sizeof(float) * MOST_ROWS * MOST_COLUMNS, 0);
  workspace = make_memory(MOST_WORKSPACE, 0);
  results = malloc(sizeof *results * MOST_ROWS * MOST_COLUMNS);
  if (results == NULL) return 1;
  printf(
      "cuBLASLt %zu\n\n| product | epilogue | way | NaN in the first row | in the middle | in the last |\n"
      "|---|---|---|---|---|---|\n",
      cublasLtGetVersion());
  for (size_t layer = 0; layer < sizeof layers / sizeof *layers; layer++)
    for (size_t end = 0; end < sizeof ends / sizeof *ends; end++)
      for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        show_row(sizes[i], layers[layer].depth, layers[layer].columns, end);
  free(results);
  return 0;
}
