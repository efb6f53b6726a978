/* SPDX-License-Identifier: MIT
 * Chooses algorithms and runs products. The library stores matrices by columns, so it sees a matrix that is stored by
 * rows as its transpose. The code therefore requests the transpose of c, which is the transpose of b' times the
 * transpose of a'.
 */
#include "tensor/vendor/cublaslt.h"

#include <assert.h>

#include "base/log.h"
#include "device/device.h"
#include "tensor/vendor/compute_libraries.h"

struct rondo_product {
  rondo_product_maker *maker;
  rondo_product_shape shape;
  cublaslt_product product;
  cublaslt_layout a, b, c; /* in the caller's order */
  bool has_algorithm;      /* whether the next two fields hold an algorithm */
  cublaslt_algorithm algorithm;
  size_t workspace_bytes;
  rondo_product_memory memory;
};

static rondo_status check(int code, const char *what) {
  if (code == CUBLASLT_OK) return RONDO_OK;
  const char *name = rondo_cublaslt_api.status_name(code);
  return rondo_fail_driver(code == CUBLASLT_NO_MEMORY ? RONDO_OUT_OF_MEMORY : RONDO_EXECUTION_FAILED, RONDO_REASON_NONE,
                           code, name, "%s: cuBLASLt failed (RONDO_CUBLASLT_LIBRARY=none disables it)", what);
}

/* Preparing -------------------------------------------------------------------------------------------------------- */

/* The workspace limit in F32 copies of the result, and its bounds in bytes. No algorithm benefits from more. */
#define PARTS 32
#define MIN_WORKSPACE ((uint64_t)64 << 10)
#define MAX_WORKSPACE ((uint64_t)32 << 20)

static uint64_t workspace_limit(const rondo_product_shape *shape) {
  const double parts = (double)PARTS * sizeof(float) * (double)shape->batches * (double)shape->m * (double)shape->n;
  if (parts < (double)MIN_WORKSPACE) return MIN_WORKSPACE;
  return parts > (double)MAX_WORKSPACE ? MAX_WORKSPACE : (uint64_t)parts;
}

static bool is_integer(const rondo_product_shape *shape) { return shape->type == RONDO_I8; }
static bool is_float8(const rondo_product_shape *shape) {
  return shape->type == RONDO_F8_E4M3 || shape->type == RONDO_F8_E5M2;
}

static rondo_type type_of_b(const rondo_product_shape *shape) { return is_float8(shape) ? shape->type_b : shape->type; }
static rondo_type type_of_c(const rondo_product_shape *shape) {
  return is_float8(shape) ? shape->type_c : is_integer(shape) ? RONDO_I32 : shape->type;
}

static int type_of(rondo_type type) {
  switch (type) {
    case RONDO_F16:
      return CUBLASLT_F16;
    case RONDO_BF16:
      return CUBLASLT_BF16;
    case RONDO_I8:
      return CUBLASLT_I8;
    case RONDO_I32:
      return CUBLASLT_I32;
    case RONDO_F8_E4M3:
      return CUBLASLT_F8_E4M3;
    case RONDO_F8_E5M2:
      return CUBLASLT_F8_E5M2;
    default:
      return CUBLASLT_F32;
  }
}

/* A batch of matrices, each stored as `rows` rows of `columns` elements; `stride` elements from one matrix to the next.
 * */
static int create_layout(const rondo_product_shape *s, rondo_type type, size_t rows_stored, size_t columns,
                         size_t stride, cublaslt_layout *out) {
  const int32_t batches = (int32_t)s->batches;
  const int64_t apart = (int64_t)stride;
  int code = rondo_cublaslt_api.layout_create(out, type_of(type), columns, rows_stored, (int64_t)columns);
  if (code != CUBLASLT_OK || batches == 1) return code;
  code = rondo_cublaslt_api.layout_set(*out, CUBLASLT_LAYOUT_BATCHES, &batches, sizeof batches);
  return code == CUBLASLT_OK ? rondo_cublaslt_api.layout_set(*out, CUBLASLT_LAYOUT_BATCH_STRIDE, &apart, sizeof apart)
                             : code;
}

static int create_layouts(rondo_product *p) {
  const rondo_product_shape *s = &p->shape;
  const rondo_type type = s->type, of_b = type_of_b(s);
  int code = s->transpose_a ? create_layout(s, type, s->k, s->m, s->a_stride, &p->a)
                            : create_layout(s, type, s->m, s->k, s->a_stride, &p->a);
  if (code == CUBLASLT_OK)
    code = s->transpose_b ? create_layout(s, of_b, s->n, s->k, s->b_stride, &p->b)
                          : create_layout(s, of_b, s->k, s->n, s->b_stride, &p->b);
  return code == CUBLASLT_OK ? create_layout(s, type_of_c(s), s->m, s->n, s->m * s->n, &p->c) : code;
}

static int set_number(cublaslt_product product, int attribute, uint32_t value) {
  return rondo_cublaslt_api.product_set(product, attribute, &value, sizeof value);
}

static int set_distance(cublaslt_product product, int attribute, size_t value) {
  const int64_t distance = (int64_t)value;
  return rondo_cublaslt_api.product_set(product, attribute, &distance, sizeof distance);
}

/* The library requires that a row of the kept values has a multiple of this many elements. */
#define KEPT_UNIT 8

/* Relu is not supported: some algorithms of the library lose NaNs, which would hide errors. Its gelu propagates them
 * (tests/gpu/cublaslt_nan.c). */
bool rondo_product_takes(rondo_activation activation, bool keeps_unactivated, size_t columns) {
  if (keeps_unactivated) return activation == RONDO_ACTIVATION_GELU_TANH && columns % KEPT_UNIT == 0;
  return activation == RONDO_ACTIVATION_NONE || activation == RONDO_ACTIVATION_GELU_TANH;
}

static int describe_end(const rondo_product *p) {
  const rondo_product_shape *s = &p->shape;
  uint32_t epilogue = s->has_bias ? CUBLASLT_EPILOGUE_ADD_BIAS : 0;
  if (s->activation == RONDO_ACTIVATION_GELU_TANH) epilogue |= CUBLASLT_EPILOGUE_BE_GELU;
  if (s->keeps_unactivated) epilogue |= CUBLASLT_EPILOGUE_KEEP;
  int code = epilogue == 0 ? CUBLASLT_OK : set_number(p->product, CUBLASLT_PRODUCT_EPILOGUE, epilogue);
  if (code != CUBLASLT_OK || !s->keeps_unactivated) return code;
  code = set_distance(p->product, CUBLASLT_PRODUCT_KEPT_STRIDE, s->n);
  return code == CUBLASLT_OK ? set_distance(p->product, CUBLASLT_PRODUCT_KEPT_BATCH, s->m * s->n) : code;
}

/* The library chooses an algorithm by whether there are scales. Their address is set when there is memory; until then
 * it is one that is aligned as they are, and which the library does not read. */
static int describe_scales(const rondo_product *p) {
  static const uint32_t attributes[] = {CUBLASLT_PRODUCT_SCALE_A, CUBLASLT_PRODUCT_SCALE_B};
  static const uint32_t modes[] = {CUBLASLT_PRODUCT_SCALE_MODE_A, CUBLASLT_PRODUCT_SCALE_MODE_B};
  static const _Alignas(256) float aligned = 1;
  const void *scale = &aligned;
  int code = CUBLASLT_OK;
  for (size_t i = 0; i < 2 && code == CUBLASLT_OK; i++) {
    code = rondo_cublaslt_api.product_set(p->product, (int)attributes[i], &scale, sizeof scale);
    if (code == CUBLASLT_OK && p->shape.scales_rows)
      code = set_number(p->product, (int)modes[i], CUBLASLT_SCALE_OF_ROWS);
  }
  return code;
}

static int create_product(rondo_product *p) {
  const bool in_tf32 = p->maker->allow_tf32 && p->shape.type == RONDO_F32;
  if (is_integer(&p->shape)) return rondo_cublaslt_api.product_create(&p->product, CUBLASLT_COMPUTE_I32, CUBLASLT_I32);
  return rondo_cublaslt_api.product_create(&p->product, in_tf32 ? CUBLASLT_COMPUTE_TF32 : CUBLASLT_COMPUTE_F32,
                                           CUBLASLT_F32);
}

static int describe(rondo_product *p) {
  const rondo_product_shape *s = &p->shape;
  int code = create_product(p);
  if (code == CUBLASLT_OK) /* their a is our b */
    code =
        set_number(p->product, CUBLASLT_PRODUCT_TRANSPOSE_A, s->transpose_b ? CUBLASLT_TRANSPOSED : CUBLASLT_AS_IT_IS);
  if (code == CUBLASLT_OK)
    code =
        set_number(p->product, CUBLASLT_PRODUCT_TRANSPOSE_B, s->transpose_a ? CUBLASLT_TRANSPOSED : CUBLASLT_AS_IT_IS);
  if (code == CUBLASLT_OK) code = describe_end(p);
  if (code == CUBLASLT_OK && is_float8(s)) code = describe_scales(p);
  return code == CUBLASLT_OK ? create_layouts(p) : code;
}

/* Partial results of half precision would be rounded before they are added. All schemes add them in a fixed order. */
static uint32_t reductions_of(const rondo_product_shape *shape) {
  const uint32_t in_compute_type = CUBLASLT_REDUCE_COMPUTE_TYPE;
  const uint32_t in_output_type = CUBLASLT_REDUCE_OUTPUT_TYPE | CUBLASLT_REDUCE_IN_PLACE;
  const rondo_type result = type_of_c(shape);
  const bool is_rounded = result == RONDO_F16 || result == RONDO_BF16;
  return is_rounded ? in_compute_type : in_compute_type | in_output_type;
}

static int set_preferences(const rondo_product *p, cublaslt_wishes wishes) {
  const uint64_t most = workspace_limit(&p->shape);
  const uint32_t reductions = reductions_of(&p->shape);
  const int code = rondo_cublaslt_api.wishes_set(wishes, CUBLASLT_WISH_WORKSPACE, &most, sizeof most);
  return code == CUBLASLT_OK
             ? rondo_cublaslt_api.wishes_set(wishes, CUBLASLT_WISH_REDUCTIONS, &reductions, sizeof reductions)
             : code;
}

/* A product with so few rows or columns is nearly a matrix times a vector. Rondo's own kernels are not designed for
 * that. */
#define THIN 8
#define THIN_SHARE 8

static bool is_thin(const rondo_product_shape *shape) { return shape->m <= THIN || shape->n <= THIN; }

/* If the tiles keep less than this share of the device busy, and each tile is as deep as the product, the library takes
 * longer than own kernels, which have smaller tiles and split the depth. Measured on an H200, it took up to 10.8 times
 * as long for products of 24 to 192 rows. It did not take longer for products of at most SHALLOW steps. */
#define MIN_BUSY (1.0f / 16)
#define SHALLOW 1024

static bool takes_all(void) { return rondo_option_number(RONDO_OPTION_CUBLASLT_LEAST) <= 1; }

static bool is_idle(const rondo_product_shape *shape, const cublaslt_choice *choice) {
  return !takes_all() && !is_thin(shape) && shape->k > SHALLOW && choice->workspace_bytes == 0 &&
         choice->waves < MIN_BUSY;
}

/* A single F32 result of at most this many elements: own kernels have smaller tiles and keep more of the device busy.
 * Measured on an H200, the library took less time for 64 x 768 results with a depth of 768 and 3,072, as it splits the
 * depth in place, and without that 1.1 to 1.6 times as long for up to 65,536. For larger results, and for all results
 * if the library may use TF32, own kernels took longer. */
#define SMALL_RESULT 32768

static bool is_small(const rondo_product_maker *maker, const rondo_product_shape *shape) {
  return !takes_all() && shape->type == RONDO_F32 && !maker->allow_tf32 && shape->batches == 1 && !is_thin(shape) &&
         (double)shape->m * (double)shape->n <= SMALL_RESULT;
}

static int choose(rondo_product *p) {
  cublaslt_wishes wishes = NULL;
  cublaslt_choice choice = {0};
  int count = 0;
  int code = rondo_cublaslt_api.wishes_create(&wishes);
  if (code != CUBLASLT_OK) return code;
  code = set_preferences(p, wishes);
  if (code == CUBLASLT_OK)
    code = rondo_cublaslt_api.choose(p->maker->handle, p->product, p->b, p->a, p->c, p->c, wishes, 1, &choice, &count);
  (void)rondo_cublaslt_api.wishes_destroy(wishes); /* it exists, so this cannot fail */
  if (code == CUBLASLT_NO_SUCH || (code == CUBLASLT_OK && count == 0)) return CUBLASLT_OK;
  p->has_algorithm = code == CUBLASLT_OK && choice.status == CUBLASLT_OK && !is_idle(&p->shape, &choice);
  p->algorithm = choice.algorithm;
  p->workspace_bytes = choice.workspace_bytes;
  return code;
}

/* Releases and GPUs differ in what they take of 8-bit floats, and in the code with which they refuse it: then own
 * kernels compute the product. */
static rondo_status check_product(rondo_product *p, int code, const char *what) {
  if (!is_float8(&p->shape) || code == CUBLASLT_OK || code == CUBLASLT_NO_MEMORY) return check(code, what);
  p->has_algorithm = false;
  return RONDO_OK;
}

/* rondo_library_call. */
static rondo_status make_ready(void *user) {
  rondo_product *p = user;
  if (p->maker->handle == NULL) RONDO_TRY(check(rondo_cublaslt_api.create(&p->maker->handle), "initializing cuBLASLt"));
  const int described = describe(p);
  RONDO_TRY(check_product(p, described, "describing a matrix product"));
  if (described != CUBLASLT_OK) return RONDO_OK;
  return check_product(p, choose(p), "choosing the algorithm of a matrix product");
}

static void log_unsupported(const rondo_product_shape *shape) {
  rondo_log(RONDO_LOG_DEBUG, "tensor",
            "cuBLASLt has no fast algorithm for %zu matrix products of %zu x %zu, depth %zu, %s, activation %d",
            shape->batches, shape->m, shape->n, shape->k, rondo_type_name(shape->type), (int)shape->activation);
}

/* Tiny products take as long either way, and own kernels need no workspace. */
static bool is_worth_while(const rondo_product_maker *maker, const rondo_product_shape *shape) {
  const double least = (double)rondo_option_number(RONDO_OPTION_CUBLASLT_LEAST);
  const double products = (double)shape->batches * (double)shape->m * (double)shape->n * (double)shape->k;
  return products >= (is_thin(shape) ? least / THIN_SHARE : least) && !is_small(maker, shape) &&
         shape->batches <= INT32_MAX;
}

/* What the library's kernels for integers take. */
static inline bool is_right_integer(const rondo_product_shape *s) {
  return !s->transpose_a && s->transpose_b && !s->has_bias && s->activation == RONDO_ACTIVATION_NONE &&
         s->n % RONDO_INTEGER_PRODUCT_UNIT == 0 && s->k % RONDO_INTEGER_PRODUCT_UNIT == 0 &&
         s->k <= RONDO_INTEGER_PRODUCT_DEPTH;
}

static inline bool is_right_float8(const rondo_product_shape *s) {
  return !s->transpose_a && s->transpose_b && s->activation == RONDO_ACTIVATION_NONE && s->batches == 1 &&
         s->n % RONDO_FLOAT8_PRODUCT_UNIT == 0 && s->k % RONDO_FLOAT8_PRODUCT_UNIT == 0 &&
         !(s->type == RONDO_F8_E5M2 && s->type_b == RONDO_F8_E5M2) && !(s->has_bias && s->type_c == RONDO_F32);
}

rondo_status rondo_product_create(rondo_product_maker *maker, const rondo_product_shape *shape, rondo_product **out) {
  *out = NULL;
  assert(!is_integer(shape) || is_right_integer(shape));
  assert(!is_float8(shape) || is_right_float8(shape));
  if (!rondo_device_takes_libraries(maker->device) || !is_worth_while(maker, shape) ||
      !rondo_library_find(&rondo_cublaslt))
    return RONDO_OK;
  rondo_product *made;
  RONDO_TRY(rondo_allocate_items(&maker->allocator, 1, sizeof *made, &made));
  *made = (rondo_product){.maker = maker, .shape = *shape};
  const rondo_status status = rondo_device_call_library(maker->device, RONDO_LIBRARY_AT_ONCE, make_ready, made);
  if (status == RONDO_OK && made->has_algorithm) {
    *out = made;
    return RONDO_OK;
  }
  if (status == RONDO_OK) log_unsupported(shape);
  rondo_product_destroy(made);
  return status;
}

/* rondo_library_call. Descriptors are host memory, so there is no failure to report. */
static rondo_status free_descriptions(void *user) {
  const rondo_product *p = user;
  if (p->product != NULL) (void)rondo_cublaslt_api.product_destroy(p->product);
  if (p->a != NULL) (void)rondo_cublaslt_api.layout_destroy(p->a);
  if (p->b != NULL) (void)rondo_cublaslt_api.layout_destroy(p->b);
  if (p->c != NULL) (void)rondo_cublaslt_api.layout_destroy(p->c);
  return RONDO_OK;
}

void rondo_product_destroy(rondo_product *product) {
  if (product == NULL) return;
  rondo_status_ignore(rondo_device_call_library(product->maker->device, RONDO_LIBRARY_FREE, free_descriptions, product),
                      "what cannot be entered has nothing left to free");
  const rondo_allocator allocator = product->maker->allocator;
  rondo_release(&allocator, product, 1, sizeof *product);
}

/* rondo_library_call. */
static rondo_status free_handle(void *user) {
  (void)rondo_cublaslt_api.destroy(user); /* after the loss of a device, nothing of it remains */
  return RONDO_OK;
}

void rondo_product_maker_deinit(rondo_product_maker *maker) {
  if (maker->handle != NULL)
    rondo_status_ignore(rondo_device_call_library(maker->device, RONDO_LIBRARY_FREE, free_handle, maker->handle),
                        "what cannot be entered has nothing left to free");
  maker->handle = NULL;
}

/* Running ---------------------------------------------------------------------------------------------------------- */

size_t rondo_product_workspace(const rondo_product *product) { return product->workspace_bytes; }

bool rondo_product_is_alike(const rondo_product *a, const rondo_product *b) {
  const rondo_product_shape *x = &a->shape, *y = &b->shape;
  return x->type == y->type && type_of_b(x) == type_of_b(y) && type_of_c(x) == type_of_c(y) &&
         x->scales_rows == y->scales_rows && x->m == y->m && x->n == y->n && x->k == y->k && x->batches == y->batches &&
         x->a_stride == y->a_stride && x->b_stride == y->b_stride && x->transpose_a == y->transpose_a &&
         x->transpose_b == y->transpose_b && x->has_bias == y->has_bias && x->activation == y->activation &&
         x->keeps_unactivated == y->keeps_unactivated;
}

bool rondo_product_activates(const rondo_product *product) {
  return product->shape.activation != RONDO_ACTIVATION_NONE;
}

static rondo_status name_memory(rondo_product *product, int attribute, const void *const *address, const char *what) {
  return check(rondo_cublaslt_api.product_set(product->product, attribute, address, sizeof *address), what);
}

/* Their a is our b. */
static rondo_status name_scales(rondo_product *product, const rondo_product_memory *memory) {
  const void *of_a = memory->a_scales, *of_b = memory->b_scales;
  RONDO_TRY(name_memory(product, CUBLASLT_PRODUCT_SCALE_A, &of_b, "setting the scales of a matrix product"));
  return name_memory(product, CUBLASLT_PRODUCT_SCALE_B, &of_a, "setting the scales of a matrix product");
}

rondo_status rondo_product_bind(rondo_product *product, const rondo_product_memory *memory) {
  const void *kept = memory->unactivated;
  assert(product->has_algorithm && (memory->workspace != NULL || product->workspace_bytes == 0));
  assert(!product->shape.has_bias || memory->bias != NULL);
  product->memory = *memory;
  if (product->shape.has_bias)
    RONDO_TRY(name_memory(product, CUBLASLT_PRODUCT_BIAS, &memory->bias, "setting the bias of a matrix product"));
  if (is_float8(&product->shape)) RONDO_TRY(name_scales(product, memory));
  if (!product->shape.keeps_unactivated) return RONDO_OK;
  return name_memory(product, CUBLASLT_PRODUCT_KEPT, &kept, "setting the unactivated result of a matrix product");
}

bool rondo_product_is_integer(const rondo_product *product) { return is_integer(&product->shape); }

typedef struct product_run {
  const rondo_product *product;
  cublaslt_stream stream;
} product_run;

/* rondo_library_call. */
static rondo_status multiply(void *user) {
  const product_run *run = user;
  const rondo_product *p = run->product;
  const rondo_product_memory *at = &p->memory;
  const float one = 1, zero = 0;
  const int32_t integer_one = 1, integer_zero = 0;
  const void *alpha = is_integer(&p->shape) ? (const void *)&integer_one : &one;
  const void *beta = is_integer(&p->shape) ? (const void *)&integer_zero : &zero;
  return check(
      rondo_cublaslt_api.multiply(p->maker->handle, p->product, alpha, at->b, p->b, at->a, p->a, beta, at->c, p->c,
                                  at->c, p->c, &p->algorithm, at->workspace, p->workspace_bytes, run->stream),
      "a matrix product");
}

rondo_status rondo_product_run(const rondo_product *product, rondo_stream *stream) {
  product_run run = {product, rondo_stream_native(stream)};
  return rondo_device_call_library(product->maker->device, RONDO_LIBRARY_WORK, multiply, &run);
}
