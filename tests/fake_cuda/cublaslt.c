/* SPDX-License-Identifier: MIT
 * The fake cuBLASLt, a separate library. Like the real one, it knows only the driver, not Rondo. A product is a kernel
 * that the driver of RONDO_CUDA_LIBRARY launches on the caller's stream, with its arguments in one buffer (`extra`), as
 * cuBLAS does. A product with many terms is computed in two parts in the workspace, which a second kernel adds. The
 * library works in the current context. It refuses what the real one refuses: an algorithm that was chosen for another
 * product, a workspace that is too small, types that differ, and epilogues and strides that it does not have. Threads:
 * any.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cuda/fake_cublaslt.h"
#include "fake_cuda/foreign_library.h"
#include "fake_cuda/image.h"
#include "tensor/operators/common/element.h"
#include "tensor/vendor/cublaslt_abi.h"

/* One deeper is made in parts. */
#define DEEP 64
/* Rows and columns of a tile; tiles at once. */
#define TILE 64
#define PROCESSORS 132

enum { EXECUTION_FAILED = 13 /* CUBLAS_STATUS_EXECUTION_FAILED */ };

struct cublaslt_context {
  cu_context context;
  cu_module module;
  cu_function part, sum;
};

struct cublaslt_product {
  int compute_type, scale_type;
  int32_t transpose_a, transpose_b;
  uint32_t epilogue;
  const void *bias;
  void *kept;
  int64_t kept_stride, kept_batch_stride;
  const float *scale_a, *scale_b;
  int32_t scale_mode_a, scale_mode_b;
};

struct cublaslt_layout {
  int type;
  size_t rows, columns, stride;
  int32_t batches;
  int64_t batch_stride;
};

struct cublaslt_wishes {
  uint64_t workspace;
  uint32_t reductions;
};

/* Functions: fake_<member>, under the library's names. */
#define ROW(result, member, symbol, arguments) EXPORT result fake_##member arguments __asm__(#symbol);
CUBLASLT_FUNCTIONS(ROW)
#undef ROW

/* What tests ask -------------------------------------------------------------------------------------------------- */

static uint64_t products, workspaces, in_tf32, of_integers, of_float8;
static bool lacks_integers;

static uint64_t count_products(void) { return read_count(&products); }
static uint64_t count_workspaces(void) { return read_count(&workspaces); }
static uint64_t count_in_tf32(void) { return read_count(&in_tf32); }
static uint64_t count_of_integers(void) { return read_count(&of_integers); }
static uint64_t count_of_float8(void) { return read_count(&of_float8); }

static void lack_integers(bool lacks) {
  pthread_mutex_lock(&lock);
  lacks_integers = lacks;
  pthread_mutex_unlock(&lock);
}

EXPORT const void *fake_control(void) __asm__(FAKE_CUBLASLT_ENTRY);
const void *fake_control(void) {
  static const fake_cublaslt_control control = {count_live,  count_products,    count_workspaces, count_in_tf32,
                                                set_failure, count_of_integers, lack_integers,    count_of_float8};
  return &control;
}

static int unmake(void *object) {
  if (object == NULL) return CUBLASLT_BAD_VALUE;
  free_object(object);
  return CUBLASLT_OK;
}

const char *fake_status_name(int status) {
  static const code_name names[] = {{CUBLASLT_OK, "CUBLAS_STATUS_SUCCESS"},
                                    {CUBLASLT_NO_MEMORY, "CUBLAS_STATUS_ALLOC_FAILED"},
                                    {CUBLASLT_BAD_VALUE, "CUBLAS_STATUS_INVALID_VALUE"},
                                    {EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED"},
                                    {CUBLASLT_NO_SUCH, "CUBLAS_STATUS_NOT_SUPPORTED"}};
  return CODE_NAME(names, status, "CUBLAS_STATUS_UNKNOWN");
}

/* Kernels ---------------------------------------------------------------------------------------------------------- */

/* d [rows, columns] of matrices stored column by column, `batches` of them; what both kernels get. */
typedef struct product_arguments {
  uint64_t rows, columns, depth, a_stride, b_stride, d_stride, kept_stride;
  uint64_t batches, a_batch, b_batch, d_batch, kept_batch;
  uint64_t transpose_a, transpose_b, parts, rounds_parts, type, type_a, type_b, epilogue;
  uint64_t scales_rows;
  const float *scale_a, *scale_b; /* of 8-bit floats, else NULL */
  const void *a, *b, *bias;
  void *d, *kept;
  float *workspace;
} product_arguments;

static float load(uint64_t type, const void *memory, size_t at) { return rondo_load_one((rondo_type)type, memory, at); }

static void store(const product_arguments *p, void *memory, size_t at, float x) {
  *rondo_chunk_of((rondo_type)p->type, memory, at, &x) = x;
  rondo_store_chunk((rondo_type)p->type, memory, at, 1, &x);
}

/* To each row of a column its products with `count` elements of b's column, of depths from `at` on: by rows where those
 * of a lie side by side, else by depths. Each sum is in the order of the depth. */
static void add_along_depth(const product_arguments *p, size_t a, size_t at, size_t count, const float *right,
                            float *out) {
  float room[RONDO_CHUNK];
  for (size_t row = 0; row < p->rows; row++) {
    const float *left = rondo_load_chunk((rondo_type)p->type_a, p->a, a + row * p->a_stride + at, count, room);
    for (size_t i = 0; i < count; i++) out[row] += left[i] * right[i];
  }
}

static void add_along_rows(const product_arguments *p, size_t a, size_t at, size_t count, const float *right,
                           float *out) {
  float room[RONDO_CHUNK];
  for (size_t i = 0; i < count; i++) {
    RONDO_EACH_CHUNK(first, length, 0, p->rows) {
      const size_t begin = a + (at + i) * p->a_stride + first;
      const float *left = rondo_load_chunk((rondo_type)p->type_a, p->a, begin, length, room);
      for (size_t k = 0; k < length; k++) out[first + k] += left[k] * right[i];
    }
  }
}

/* A column of the product's part from one depth to another. */
static void multiply(const product_arguments *p, size_t batch, size_t column, size_t from, size_t to, float *out) {
  const size_t a = batch * p->a_batch, b = batch * p->b_batch;
  float right[RONDO_CHUNK];
  for (size_t row = 0; row < p->rows; row++) out[row] = 0;
  RONDO_EACH_CHUNK(at, count, from, to) {
    for (size_t i = 0; i < count; i++) {
      const size_t depth = at + i;
      right[i] =
          load(p->type_b, p->b, b + (p->transpose_b ? depth * p->b_stride + column : column * p->b_stride + depth));
    }
    (p->transpose_a ? add_along_depth : add_along_rows)(p, a, at, count, right, out);
  }
}

static float gelu(float x) { return 0.5f * x * (1 + tanhf(0.797884561f * (x + 0.044715f * x * x * x))); }

/* Adds the bias and so on, and stores a column. */
static void finish(const product_arguments *p, size_t batch, size_t column, const float *sums) {
  for (size_t row = 0; row < p->rows; row++) {
    float x = sums[row];
    if (p->scale_a != NULL) x *= p->scale_a[p->scales_rows ? row : 0] * p->scale_b[p->scales_rows ? column : 0];
    if ((p->epilogue & CUBLASLT_EPILOGUE_ADD_BIAS) != 0) x += load(p->type, p->bias, row);
    if ((p->epilogue & CUBLASLT_EPILOGUE_KEEP) != 0)
      store(p, p->kept, batch * p->kept_batch + column * p->kept_stride + row, x);
    if ((p->epilogue & CUBLASLT_EPILOGUE_BE_GELU) != 0) x = gelu(x);
    store(p, p->d, batch * p->d_batch + column * p->d_stride + row, x);
  }
}

static float *make_column(const product_arguments *p) {
  float *column = malloc(p->rows * sizeof *column);
  if (column == NULL) abort();
  return column;
}

static void round_column(const product_arguments *p, float *column) {
  float room;
  for (size_t row = 0; row < p->rows; row++) {
    store(p, &room, 0, column[row]);
    column[row] = load(p->type, &room, 0);
  }
}

/* A column of a product of I8. */
static void multiply_integers(const product_arguments *p, size_t batch, size_t column) {
  int32_t *to = (int32_t *)p->d + batch * p->d_batch + column * p->d_stride;
  const int8_t *right = (const int8_t *)p->b + batch * p->b_batch + column * p->b_stride;
  for (size_t row = 0; row < p->rows; row++) {
    const int8_t *left = (const int8_t *)p->a + batch * p->a_batch + row * p->a_stride;
    int32_t sum = 0;
    for (size_t i = 0; i < p->depth; i++) sum += left[i] * right[i];
    to[row] = sum;
  }
}

/* A block is a column of a part of one product. */
static void part_cpu(rondo_blocks blocks, void *const *args) {
  const product_arguments *p = args[0];
  for (size_t block = blocks.first; p->type == RONDO_I8 && block < blocks.last; block++)
    multiply_integers(p, block / p->columns, block % p->columns);
  if (p->type == RONDO_I8) return;
  float *const own = make_column(p);
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const size_t part = block / p->columns % p->parts, column = block % p->columns;
    const size_t batch = block / p->columns / p->parts;
    float *to = p->parts == 1 ? own : p->workspace + block * p->rows;
    multiply(p, batch, column, p->depth * part / p->parts, p->depth * (part + 1) / p->parts, to);
    if (p->parts == 1)
      finish(p, batch, column, to);
    else if (p->rounds_parts)
      round_column(p, to);
  }
  free(own);
}

static void sum_cpu(rondo_blocks blocks, void *const *args) {
  const product_arguments *p = args[0];
  float *const own = make_column(p);
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const size_t batch = block / p->columns, column = block % p->columns;
    for (size_t row = 0; row < p->rows; row++) {
      own[row] = 0;
      for (size_t part = 0; part < p->parts; part++)
        own[row] += p->workspace[((batch * p->parts + part) * p->columns + column) * p->rows + row];
    }
    finish(p, batch, column, own);
  }
  free(own);
}

int fake_create(cublaslt_handle *out) {
  static const char image[] = FAKE_IMAGE_HEAD "fake_cublaslt_part\nfake_cublaslt_sum\n";
  const int code = begin("cublasLtCreate");
  if (code != CUBLASLT_OK) return code;
  cublaslt_handle handle = make_object(sizeof *handle);
  const library_kernel kernels[] = {{"fake_cublaslt_part", part_cpu, &handle->part},
                                    {"fake_cublaslt_sum", sum_cpu, &handle->sum}};
  if (!load_kernels(image, kernels, 2, (rondo_parameter)RONDO_SCALAR(product_arguments), &handle->context,
                    &handle->module)) {
    free_object(handle);
    return 1; /* CUBLAS_STATUS_NOT_INITIALIZED */
  }
  *out = handle;
  return CUBLASLT_OK;
}

int fake_destroy(cublaslt_handle handle) {
  if (handle != NULL) (void)driver()->module_unload(handle->module);
  return unmake(handle);
}

/* Descriptions ----------------------------------------------------------------------------------------------------- */

int fake_product_create(cublaslt_product *out, int compute_type, int scale_type) {
  const int code = begin("cublasLtMatmulDescCreate");
  if (code != CUBLASLT_OK) return code;
  const bool is_float = compute_type == CUBLASLT_COMPUTE_F32 || compute_type == CUBLASLT_COMPUTE_TF32;
  if (!(is_float && scale_type == CUBLASLT_F32) &&
      !(compute_type == CUBLASLT_COMPUTE_I32 && scale_type == CUBLASLT_I32))
    return CUBLASLT_NO_SUCH;
  *out = make_object(sizeof **out);
  (*out)->compute_type = compute_type;
  (*out)->scale_type = scale_type;
  (*out)->epilogue = 1; /* CUBLASLT_EPILOGUE_DEFAULT */
  return CUBLASLT_OK;
}

static int set(void *to, size_t room, const void *value, size_t bytes) {
  if (bytes != room) return CUBLASLT_BAD_VALUE;
  memcpy(to, value, bytes);
  return CUBLASLT_OK;
}

int fake_product_set(cublaslt_product product, int attribute, const void *value, size_t bytes) {
  const int code = begin("cublasLtMatmulDescSetAttribute");
  if (code != CUBLASLT_OK) return code;
  const struct {
    int attribute;
    void *to;
    size_t bytes;
  } rows[] = {{CUBLASLT_PRODUCT_TRANSPOSE_A, &product->transpose_a, sizeof product->transpose_a},
              {CUBLASLT_PRODUCT_TRANSPOSE_B, &product->transpose_b, sizeof product->transpose_b},
              {CUBLASLT_PRODUCT_EPILOGUE, &product->epilogue, sizeof product->epilogue},
              {CUBLASLT_PRODUCT_BIAS, &product->bias, sizeof product->bias},
              {CUBLASLT_PRODUCT_KEPT, &product->kept, sizeof product->kept},
              {CUBLASLT_PRODUCT_KEPT_STRIDE, &product->kept_stride, sizeof product->kept_stride},
              {CUBLASLT_PRODUCT_KEPT_BATCH, &product->kept_batch_stride, sizeof product->kept_batch_stride},
              {CUBLASLT_PRODUCT_SCALE_A, &product->scale_a, sizeof product->scale_a},
              {CUBLASLT_PRODUCT_SCALE_B, &product->scale_b, sizeof product->scale_b},
              {CUBLASLT_PRODUCT_SCALE_MODE_A, &product->scale_mode_a, sizeof product->scale_mode_a},
              {CUBLASLT_PRODUCT_SCALE_MODE_B, &product->scale_mode_b, sizeof product->scale_mode_b}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (rows[i].attribute == attribute) return set(rows[i].to, rows[i].bytes, value, bytes);
  return CUBLASLT_NO_SUCH;
}

int fake_product_destroy(cublaslt_product product) { return unmake(product); }

static bool is_float8(int type) { return type == CUBLASLT_F8_E4M3 || type == CUBLASLT_F8_E5M2; }

int fake_layout_create(cublaslt_layout *out, int type, uint64_t rows, uint64_t columns, int64_t stride) {
  const int code = begin("cublasLtMatrixLayoutCreate");
  if (code != CUBLASLT_OK) return code;
  if ((type != CUBLASLT_F32 && type != CUBLASLT_F16 && type != CUBLASLT_BF16 && type != CUBLASLT_I8 &&
       type != CUBLASLT_I32 && !is_float8(type)) ||
      stride < (int64_t)rows)
    return CUBLASLT_BAD_VALUE;
  *out = make_object(sizeof **out);
  **out =
      (struct cublaslt_layout){.type = type, .rows = rows, .columns = columns, .stride = (size_t)stride, .batches = 1};
  return CUBLASLT_OK;
}

int fake_layout_set(cublaslt_layout layout, int attribute, const void *value, size_t bytes) {
  const int code = begin("cublasLtMatrixLayoutSetAttribute");
  if (code != CUBLASLT_OK) return code;
  if (attribute == CUBLASLT_LAYOUT_BATCHES) return set(&layout->batches, sizeof layout->batches, value, bytes);
  if (attribute == CUBLASLT_LAYOUT_BATCH_STRIDE)
    return set(&layout->batch_stride, sizeof layout->batch_stride, value, bytes);
  return CUBLASLT_NO_SUCH;
}

int fake_layout_destroy(cublaslt_layout layout) { return unmake(layout); }

int fake_wishes_create(cublaslt_wishes *out) {
  const int code = begin("cublasLtMatmulPreferenceCreate");
  if (code != CUBLASLT_OK) return code;
  *out = make_object(sizeof **out);
  (*out)->reductions = 7; /* CUBLASLT_REDUCTION_SCHEME_MASK */
  return CUBLASLT_OK;
}

int fake_wishes_set(cublaslt_wishes wishes, int attribute, const void *value, size_t bytes) {
  const int code = begin("cublasLtMatmulPreferenceSetAttribute");
  if (code != CUBLASLT_OK) return code;
  if (attribute == CUBLASLT_WISH_WORKSPACE) return set(&wishes->workspace, sizeof wishes->workspace, value, bytes);
  if (attribute == CUBLASLT_WISH_REDUCTIONS) return set(&wishes->reductions, sizeof wishes->reductions, value, bytes);
  return CUBLASLT_NO_SUCH;
}

int fake_wishes_destroy(cublaslt_wishes wishes) { return unmake(wishes); }

/* Products --------------------------------------------------------------------------------------------------------- */

/* Those that cublasLt.h has a name for. */
static bool has_epilogue(const struct cublaslt_product *product, size_t rows) {
  const uint32_t without_bias = product->epilogue & ~(uint32_t)CUBLASLT_EPILOGUE_ADD_BIAS;
  const bool keeps = without_bias == (CUBLASLT_EPILOGUE_BE_GELU | CUBLASLT_EPILOGUE_KEEP);
  if (keeps && (product->kept_stride % 8 != 0 || product->kept_stride < (int64_t)rows)) return false;
  return product->epilogue == 1 || keeps || without_bias == 0 || without_bias == CUBLASLT_EPILOGUE_BE_GELU;
}

/* 8-bit floats: of a transposed a with b as it is, not both E5M2, with sizes and strides that are multiples of 16
 * bytes, a bias of d's type, which is not F32, and one kind of scales ("cublasLtMatmul", to use FP8 kernels). */
static bool has_float8_types(const struct cublaslt_product *product, const struct cublaslt_layout *a,
                             const struct cublaslt_layout *b, const struct cublaslt_layout *d,
                             const product_arguments *p) {
  const bool of_rows = product->scale_mode_a == CUBLASLT_SCALE_OF_ROWS;
  const bool adds_bias = p->epilogue == CUBLASLT_EPILOGUE_ADD_BIAS;
  return product->compute_type == CUBLASLT_COMPUTE_F32 && is_float8(a->type) && is_float8(b->type) &&
         !(a->type == CUBLASLT_F8_E5M2 && b->type == CUBLASLT_F8_E5M2) && !is_float8(d->type) &&
         d->type != CUBLASLT_I8 && d->type != CUBLASLT_I32 && p->transpose_a != 0 && p->transpose_b == 0 &&
         (p->epilogue == 0 || (adds_bias && d->type != CUBLASLT_F32)) && (of_rows || product->scale_mode_a == 0) &&
         product->scale_mode_a == product->scale_mode_b && product->scale_a != NULL && product->scale_b != NULL &&
         ((uintptr_t)product->scale_a | (uintptr_t)product->scale_b) % 16 == 0 &&
         (p->rows | p->depth | p->a_stride | p->b_stride) % 16 == 0;
}

/* Integers: of a transposed a with b as it is, with sizes and strides that are multiples of 4 ("cublasLtMatmul", to
 * use IMMA kernels with regular data ordering), and without an epilogue. */
static bool has_types(const struct cublaslt_product *product, const struct cublaslt_layout *a,
                      const struct cublaslt_layout *b, const struct cublaslt_layout *d, const product_arguments *p) {
  if (is_float8(a->type) || is_float8(b->type)) return has_float8_types(product, a, b, d, p);
  if (product->compute_type != CUBLASLT_COMPUTE_I32)
    return product->scale_a == NULL && product->scale_b == NULL && a->type == d->type && b->type == d->type &&
           d->type != CUBLASLT_I8 && d->type != CUBLASLT_I32 &&
           (product->compute_type == CUBLASLT_COMPUTE_F32 || d->type == CUBLASLT_F32);
  return a->type == CUBLASLT_I8 && b->type == CUBLASLT_I8 && d->type == CUBLASLT_I32 && p->transpose_a != 0 &&
         p->transpose_b == 0 && p->epilogue == 0 &&
         (p->rows | p->depth | p->a_stride | p->b_stride | p->d_stride) % 4 == 0;
}

static rondo_type float_type(int type) {
  return type == CUBLASLT_F16       ? RONDO_F16
         : type == CUBLASLT_BF16    ? RONDO_BF16
         : type == CUBLASLT_F8_E4M3 ? RONDO_F8_E4M3
         : type == CUBLASLT_F8_E5M2 ? RONDO_F8_E5M2
                                    : RONDO_F32;
}

/* A product of these matrices; false when they do not fit together. */
static bool describe(cublaslt_product product, cublaslt_layout a, cublaslt_layout b, cublaslt_layout d,
                     product_arguments *out) {
  const bool transpose_a = product->transpose_a != CUBLASLT_AS_IT_IS;
  const bool transpose_b = product->transpose_b != CUBLASLT_AS_IT_IS;
  *out = (product_arguments){.rows = d->rows,
                             .columns = d->columns,
                             .depth = transpose_a ? a->rows : a->columns,
                             .a_stride = a->stride,
                             .b_stride = b->stride,
                             .d_stride = d->stride,
                             .kept_stride = (uint64_t)product->kept_stride,
                             .batches = (uint64_t)d->batches,
                             .a_batch = (uint64_t)a->batch_stride,
                             .b_batch = (uint64_t)b->batch_stride,
                             .d_batch = (uint64_t)d->batch_stride,
                             .kept_batch = (uint64_t)product->kept_batch_stride,
                             .transpose_a = transpose_a,
                             .transpose_b = transpose_b,
                             .type = d->type == CUBLASLT_I32 ? RONDO_I8 : float_type(d->type),
                             .type_a = float_type(a->type),
                             .type_b = float_type(b->type),
                             .scales_rows = product->scale_mode_a == CUBLASLT_SCALE_OF_ROWS,
                             .scale_a = product->scale_a,
                             .scale_b = product->scale_b,
                             .epilogue = product->epilogue == 1 ? 0 : product->epilogue};
  return (transpose_a ? a->columns : a->rows) == out->rows && (transpose_b ? b->rows : b->columns) == out->columns &&
         (transpose_b ? b->columns : b->rows) == out->depth && a->batches == d->batches && b->batches == d->batches &&
         has_epilogue(product, out->rows) && has_types(product, a, b, d, out);
}

/* Written into the algorithm, by which a product is known again. */
static uint64_t fingerprint(const product_arguments *p) {
  return p->rows * 1000003 + p->columns * 1009 + p->depth + p->batches * 100003 + (p->epilogue << 40) +
         (p->type << 50) + (p->type_a << 54) + (p->type_b << 58) + (p->scales_rows << 45) + (p->transpose_a << 62) +
         (p->transpose_b << 63);
}

/* How often the device is filled with tiles. */
static float waves_of(const product_arguments *p, uint64_t parts) {
  const uint64_t tiles = p->batches * ((p->rows + TILE - 1) / TILE) * ((p->columns + TILE - 1) / TILE) * parts;
  return (float)tiles / PROCESSORS;
}

int fake_choose(cublaslt_handle handle, cublaslt_product product, cublaslt_layout a, cublaslt_layout b,
                cublaslt_layout c, cublaslt_layout d, cublaslt_wishes wishes, int room, cublaslt_choice *choices,
                int *count) {
  product_arguments described;
  const int code = begin("cublasLtMatmulAlgoGetHeuristic");
  if (code != CUBLASLT_OK) return code;
  if (handle == NULL || room < 1 || c != d || !describe(product, a, b, d, &described)) return CUBLASLT_BAD_VALUE;
  pthread_mutex_lock(&lock);
  const bool lacks = lacks_integers && described.type == RONDO_I8;
  pthread_mutex_unlock(&lock);
  *count = 0;
  if (lacks) return CUBLASLT_OK;
  const size_t needed = 2 * described.batches * described.rows * described.columns * sizeof(float);
  const bool in_parts =
      described.type != RONDO_I8 && described.depth > DEEP && needed <= wishes->workspace && wishes->reductions != 0;
  const bool rounds = (wishes->reductions & CUBLASLT_REDUCE_OUTPUT_TYPE) != 0;
  *choices = (cublaslt_choice){.algorithm = {{fingerprint(&described), in_parts ? 2 : 1, rounds}},
                               .workspace_bytes = in_parts ? needed : 0,
                               .waves = waves_of(&described, in_parts ? 2 : 1)};
  *count = 1;
  return CUBLASLT_OK;
}

static int launch(cu_function function, uint64_t blocks, product_arguments *arguments, cublaslt_stream stream) {
  size_t bytes = sizeof *arguments;
  void *extra[] = {(void *)(uintptr_t)1, arguments, (void *)(uintptr_t)2, &bytes, NULL};
  const cu_result code =
      driver()->launch_kernel(function, (unsigned)blocks, 1, 1, 32, 1, 1, 0, (cu_stream)(void *)stream, NULL, extra);
  return code == CU_OK ? CUBLASLT_OK : EXECUTION_FAILED;
}

static int run(cublaslt_handle handle, product_arguments *arguments, cublaslt_stream stream) {
  const int code = launch(handle->part, arguments->batches * arguments->columns * arguments->parts, arguments, stream);
  if (code != CUBLASLT_OK || arguments->parts == 1) return code;
  return launch(handle->sum, arguments->batches * arguments->columns, arguments, stream);
}

static bool is_one_and_zero(const struct cublaslt_product *product, const void *alpha, const void *beta) {
  if (product->scale_type == CUBLASLT_I32) return *(const int32_t *)alpha == 1 && *(const int32_t *)beta == 0;
  return *(const float *)alpha == 1 && *(const float *)beta == 0;
}

int fake_multiply(cublaslt_handle handle, cublaslt_product product, const void *alpha, const void *a,
                  cublaslt_layout a_layout, const void *b, cublaslt_layout b_layout, const void *beta, const void *c,
                  cublaslt_layout c_layout, void *d, cublaslt_layout d_layout, const cublaslt_algorithm *algorithm,
                  void *workspace, size_t workspace_bytes, cublaslt_stream stream) {
  product_arguments arguments;
  cu_context context = NULL;
  int code = begin("cublasLtMatmul");
  if (code != CUBLASLT_OK) return code;
  if (driver()->context_get_current(&context) != CU_OK || context != handle->context) return CUBLASLT_BAD_VALUE;
  if (!describe(product, a_layout, b_layout, d_layout, &arguments) || c != d || c_layout != d_layout ||
      !is_one_and_zero(product, alpha, beta) || algorithm->data[0] != fingerprint(&arguments))
    return CUBLASLT_BAD_VALUE;
  arguments.parts = algorithm->data[1];
  arguments.rounds_parts = algorithm->data[2];
  if (arguments.parts > 1 &&
      (workspace == NULL ||
       workspace_bytes < arguments.parts * arguments.batches * arguments.rows * arguments.columns * sizeof(float)))
    return CUBLASLT_BAD_VALUE;
  arguments.a = a;
  arguments.b = b;
  arguments.d = d;
  arguments.workspace = workspace;
  arguments.bias = product->bias;
  arguments.kept = product->kept;
  code = run(handle, &arguments, stream);
  pthread_mutex_lock(&lock);
  products += code == CUBLASLT_OK;
  workspaces += code == CUBLASLT_OK && arguments.parts > 1;
  of_integers += code == CUBLASLT_OK && arguments.type == RONDO_I8;
  of_float8 += code == CUBLASLT_OK && arguments.scale_a != NULL;
  in_tf32 += code == CUBLASLT_OK && product->compute_type == CUBLASLT_COMPUTE_TF32;
  pthread_mutex_unlock(&lock);
  return code;
}
