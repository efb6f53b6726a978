/* SPDX-License-Identifier: MIT
 * Attention as cuDNN graphs of products, pointwise operations and reductions, which the library recognizes as attention
 * and computes without storing the scores ("cuDNN Backend API", Fused Flash Attention fprop and bprop). It recognizes
 * the operations in this form and order only, so a step that looks needless, such as a product with 1, is needed. It
 * recognizes a bias, then a limit of later columns, then one of earlier columns, as NVIDIA's cudnn-frontend describes
 * them.
 *
 * The graphs are described by a builder that stops at the first failure. Threads: as cudnn_attention.h says.
 */
#include "tensor/vendor/cudnn_attention.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/environment.h"
#include "base/log.h"
#include "device/device.h"
#include "tensor/vendor/compute_libraries.h"

/* Numbers of tensors: in device memory, by value, and from VIRTUAL on those that are not stored. */
enum { Q, K, V, Y, SUMS, DY, DQ, DK, DV, ROW_SUMS, BIAS };
enum { SCALE = BIAS + 1, ONE, AHEAD, BACK, HIDDEN_LATER, HIDDEN_EARLIER, REAL, VIRTUAL = 100 };

/* Gradients with groups, a bias and a window have 30 operations. */
enum { RANK = 4, ALIGNMENT = 16, MOST_OPERATIONS = 32 };

struct rondo_fused_attention {
  rondo_cudnn_plan plan;
  rondo_fused_attention_shape shape; /* of a part */
  size_t batch_parts, head_parts; /* one after the other; at most one of them is more than 1, or a part has a batch */
  float hidden, one, back;        /* what the plan reads of host memory, with the scale */
  int32_t ahead;
};

/* Building --------------------------------------------------------------------------------------------------------- */

typedef struct builder {
  rondo_cudnn_plan *plan;
  const rondo_fused_attention_shape *shape;
  rondo_status status; /* the first failure */
  int64_t virtuals;    /* tensors that are not stored, so far */
  cudnn_descriptor operations[MOST_OPERATIONS];
  int64_t count;
} builder;

static cudnn_descriptor add(builder *b, cudnn_kind kind, const rondo_cudnn_setting *settings, size_t count) {
  cudnn_descriptor made = NULL;
  if (b->status == RONDO_OK) b->status = rondo_cudnn_add(b->plan, kind, settings, count, &made);
  return made;
}

typedef struct tensor_form {
  int64_t sizes[RANK], strides[RANK];
} tensor_form;

static cudnn_descriptor add_tensor(builder *b, int64_t number, int type, const tensor_form *form) {
  const bool is_virtual = number >= VIRTUAL, is_value = number >= SCALE && number < REAL;
  const int64_t alignment = ALIGNMENT;
  return add(b, CUDNN_TENSOR,
             RONDO_CUDNN_SETTINGS({CUDNN_TENSOR_NUMBER, CUDNN_OF_INT64, 1, &number},
                                  {CUDNN_TENSOR_TYPE, CUDNN_OF_TYPE, 1, &type},
                                  {CUDNN_TENSOR_SIZES, CUDNN_OF_INT64, RANK, form->sizes},
                                  {CUDNN_TENSOR_STRIDES, CUDNN_OF_INT64, RANK, form->strides},
                                  {CUDNN_TENSOR_ALIGNMENT, CUDNN_OF_INT64, 1, &alignment},
                                  {CUDNN_TENSOR_IS_VIRTUAL, CUDNN_OF_BOOLEAN, 1, &is_virtual},
                                  {CUDNN_TENSOR_IS_BY_VALUE, CUDNN_OF_BOOLEAN, 1, &is_value}));
}

static cudnn_descriptor add_virtual(builder *b, int type, const tensor_form *form) {
  return add_tensor(b, VIRTUAL + b->virtuals++, type, form);
}

static cudnn_descriptor add_value(builder *b, int64_t number) {
  return add_tensor(b, number, number == AHEAD ? CUDNN_I32 : CUDNN_F32, &(tensor_form){{1, 1, 1, 1}, {1, 1, 1, 1}});
}

/* Rows of heads, which are q, y, k or v, or, transposed, columns. */
static tensor_form rows_form(const builder *b, bool of_queries, const rondo_attention_strides *strides) {
  const rondo_fused_attention_shape *s = b->shape;
  const size_t heads = of_queries ? s->heads : s->groups, rows = of_queries ? s->rows : s->columns;
  return (tensor_form){{(int64_t)s->batches, (int64_t)heads, (int64_t)rows, (int64_t)s->size},
                       {(int64_t)strides->batch, (int64_t)strides->head, (int64_t)strides->row, 1}};
}

static tensor_form transposed(const tensor_form *form) {
  const int64_t *sizes = form->sizes, *strides = form->strides;
  return (tensor_form){{sizes[0], sizes[1], sizes[3], sizes[2]}, {strides[0], strides[1], strides[3], strides[2]}};
}

/* A contiguous tensor for each head of q. */
static tensor_form head_form(const builder *b, size_t down, size_t across) {
  const int64_t heads = (int64_t)b->shape->heads, d = (int64_t)down, a = (int64_t)across;
  return (tensor_form){{(int64_t)b->shape->batches, heads, d, a}, {heads * d * a, d * a, a, 1}};
}

static cudnn_descriptor add_rows(builder *b, int64_t number, bool of_queries, const rondo_attention_strides *strides) {
  const tensor_form form = rows_form(b, of_queries, strides);
  return add_tensor(b, number, rondo_cudnn_type(b->shape->type), &form);
}

static cudnn_descriptor add_columns(builder *b, int64_t number) {
  const tensor_form rows = rows_form(b, false, &b->shape->k), form = transposed(&rows);
  return add_tensor(b, number, rondo_cudnn_type(b->shape->type), &form);
}

/* All batches, or all heads, may have one bias. */
static cudnn_descriptor add_bias(builder *b) {
  const rondo_fused_attention_shape *s = b->shape;
  const rondo_attention_strides *strides = &s->bias;
  const int64_t rows = (int64_t)s->rows, row = (int64_t)strides->row;
  const int64_t heads = strides->head == 0 ? 1 : (int64_t)s->heads;
  const int64_t head = strides->head == 0 ? rows * row : (int64_t)strides->head;
  const int64_t batches = strides->batch == 0 ? 1 : (int64_t)s->batches;
  const int64_t batch = strides->batch == 0 ? heads * head : (int64_t)strides->batch;
  const tensor_form form = {{batches, heads, rows, (int64_t)s->columns}, {batch, head, row, 1}};
  return add_tensor(b, BIAS, rondo_cudnn_type(s->type), &form);
}

/* Scores of F32, and a number for each row. */
static cudnn_descriptor add_scores(builder *b, int type) {
  const tensor_form form = head_form(b, b->shape->rows, b->shape->columns);
  return add_virtual(b, type, &form);
}

static cudnn_descriptor add_numbers(builder *b, int64_t number) {
  const tensor_form form = head_form(b, b->shape->rows, 1);
  return number == VIRTUAL ? add_virtual(b, CUDNN_F32, &form) : add_tensor(b, number, CUDNN_F32, &form);
}

/* Operations ------------------------------------------------------------------------------------------------------- */

/* Own kernels compute what has too many operations. */
static void add_operation(builder *b, cudnn_kind kind, const rondo_cudnn_setting *settings, size_t count) {
  const cudnn_descriptor made = add(b, kind, settings, count);
  if (made == NULL) return;
  if (b->count < MOST_OPERATIONS)
    b->operations[b->count++] = made;
  else
    b->plan->is_lacking = true;
}

static void multiply(builder *b, cudnn_descriptor x, cudnn_descriptor y, cudnn_descriptor to) {
  const int compute = CUDNN_F32;
  const cudnn_descriptor product =
      add(b, CUDNN_MATMUL, RONDO_CUDNN_SETTINGS({CUDNN_MATMUL_COMPUTE, CUDNN_OF_TYPE, 1, &compute}));
  add_operation(
      b, CUDNN_MATMUL_OPERATION,
      RONDO_CUDNN_SETTINGS({CUDNN_MATMUL_A, CUDNN_OF_DESCRIPTOR, 1, &x}, {CUDNN_MATMUL_B, CUDNN_OF_DESCRIPTOR, 1, &y},
                           {CUDNN_MATMUL_C, CUDNN_OF_DESCRIPTOR, 1, &to},
                           {CUDNN_MATMUL_OF, CUDNN_OF_DESCRIPTOR, 1, &product}));
}

static void reduce(builder *b, int operator, cudnn_descriptor x, cudnn_descriptor to) {
  const int compute = CUDNN_F32;
  const cudnn_descriptor reduction =
      add(b, CUDNN_REDUCTION,
          RONDO_CUDNN_SETTINGS({CUDNN_REDUCTION_OPERATOR, CUDNN_OF_REDUCTION, 1, &operator},
                               {CUDNN_REDUCTION_COMPUTE, CUDNN_OF_TYPE, 1, &compute}));
  add_operation(b, CUDNN_REDUCTION_OPERATION,
                RONDO_CUDNN_SETTINGS({CUDNN_REDUCTION_X, CUDNN_OF_DESCRIPTOR, 1, &x},
                                     {CUDNN_REDUCTION_Y, CUDNN_OF_DESCRIPTOR, 1, &to},
                                     {CUDNN_REDUCTION_OF, CUDNN_OF_DESCRIPTOR, 1, &reduction}));
}

static void reshape(builder *b, cudnn_descriptor x, cudnn_descriptor to) {
  add_operation(b, CUDNN_RESHAPE_OPERATION,
                RONDO_CUDNN_SETTINGS({CUDNN_RESHAPE_X, CUDNN_OF_DESCRIPTOR, 1, &x},
                                     {CUDNN_RESHAPE_Y, CUDNN_OF_DESCRIPTOR, 1, &to}));
}

static cudnn_descriptor add_pointwise(builder *b, int mode, int compute) {
  return add(b, CUDNN_POINTWISE,
             RONDO_CUDNN_SETTINGS({CUDNN_POINTWISE_MODE, CUDNN_OF_POINTWISE, 1, &mode},
                                  {CUDNN_POINTWISE_COMPUTE, CUDNN_OF_TYPE, 1, &compute}));
}

/* to = mode(x, y, condition). y and condition are NULL for modes of fewer operands. */
static void apply_to(builder *b, cudnn_descriptor pointwise, cudnn_descriptor x, cudnn_descriptor y,
                     cudnn_descriptor condition, cudnn_descriptor to) {
  const rondo_cudnn_setting settings[] = {{CUDNN_POINTWISE_OF, CUDNN_OF_DESCRIPTOR, 1, &pointwise},
                                          {CUDNN_POINTWISE_X, CUDNN_OF_DESCRIPTOR, 1, &x},
                                          {CUDNN_POINTWISE_Y, CUDNN_OF_DESCRIPTOR, 1, &to},
                                          {CUDNN_POINTWISE_B, CUDNN_OF_DESCRIPTOR, 1, &y},
                                          {CUDNN_POINTWISE_T, CUDNN_OF_DESCRIPTOR, 1, &condition}};
  add_operation(b, CUDNN_POINTWISE_OPERATION, settings, condition != NULL ? 5 : y != NULL ? 4 : 3);
}

static void apply(builder *b, int mode, int compute, cudnn_descriptor x, cudnn_descriptor y, cudnn_descriptor to) {
  apply_to(b, add_pointwise(b, mode, compute), x, y, NULL, to);
}

static cudnn_descriptor scores_of(builder *b, int mode, cudnn_descriptor x, cudnn_descriptor y) {
  const cudnn_descriptor to = add_scores(b, CUDNN_F32);
  apply(b, mode, CUDNN_F32, x, y, to);
  return to;
}

/* The indices of the scores along an axis. */
static cudnn_descriptor indices_of(builder *b, cudnn_descriptor scores, int64_t axis) {
  const int mode = CUDNN_INDICES, compute = CUDNN_F32;
  const cudnn_descriptor pointwise = add(b, CUDNN_POINTWISE,
                                         RONDO_CUDNN_SETTINGS({CUDNN_POINTWISE_MODE, CUDNN_OF_POINTWISE, 1, &mode},
                                                              {CUDNN_POINTWISE_COMPUTE, CUDNN_OF_TYPE, 1, &compute},
                                                              {CUDNN_POINTWISE_AXIS, CUDNN_OF_INT64, 1, &axis}));
  const cudnn_descriptor to = add_scores(b, CUDNN_I32);
  apply_to(b, pointwise, scores, NULL, NULL, to);
  return to;
}

/* Indices of a type, with a number added to each. */
static cudnn_descriptor shift(builder *b, cudnn_descriptor indices, int64_t number, int type) {
  const cudnn_descriptor to = add_scores(b, type);
  apply(b, CUDNN_ADD, type, indices, add_value(b, number), to);
  return to;
}

/* Minus infinity, the value `hidden`, in place of scores for which the comparison of x with y is false. */
static cudnn_descriptor hide_unless(builder *b, cudnn_descriptor scores, int comparison, cudnn_descriptor x,
                                    cudnn_descriptor y, int64_t hidden) {
  const cudnn_descriptor is_seen = add_scores(b, CUDNN_BOOLEAN), to = add_scores(b, CUDNN_F32);
  apply(b, comparison, CUDNN_BOOLEAN, x, y, is_seen);
  const cudnn_descriptor pointwise = add_pointwise(b, CUDNN_SELECT, CUDNN_F32);
  apply_to(b, pointwise, scores, add_value(b, hidden), is_seen, to);
  return to;
}

/* Columns after that of the row, or at least a window after it. */
static cudnn_descriptor hide_later(builder *b, cudnn_descriptor scores) {
  const rondo_fused_attention_shape *s = b->shape;
  if (!s->causal && s->window == 0) return scores;
  const cudnn_descriptor rows = indices_of(b, scores, 2), columns = indices_of(b, scores, 3);
  const cudnn_descriptor last = s->causal || s->window == 1 ? rows : shift(b, rows, AHEAD, CUDNN_I32);
  return hide_unless(b, scores, CUDNN_GREATER_OR_EQUAL, last, columns, HIDDEN_LATER);
}

/* Columns at least a window before that of the row. */
static cudnn_descriptor hide_earlier(builder *b, cudnn_descriptor scores) {
  if (b->shape->window == 0) return scores;
  const cudnn_descriptor rows = indices_of(b, scores, 2), columns = indices_of(b, scores, 3);
  const cudnn_descriptor end = shift(b, columns, BACK, CUDNN_F32);
  return hide_unless(b, scores, CUDNN_GREATER, end, rows, HIDDEN_EARLIER);
}

static cudnn_descriptor hide_distant(builder *b, cudnn_descriptor scores) {
  return hide_earlier(b, hide_later(b, scores));
}

/* Attention -------------------------------------------------------------------------------------------------------- */

static cudnn_descriptor add_scaled_scores(builder *b, cudnn_descriptor q, cudnn_descriptor columns,
                                          cudnn_descriptor scale) {
  const cudnn_descriptor products = add_scores(b, CUDNN_F32);
  multiply(b, q, columns, products);
  const cudnn_descriptor scores = scores_of(b, CUDNN_MUL, products, scale);
  return b->shape->has_bias ? scores_of(b, CUDNN_ADD, scores, add_bias(b)) : scores;
}

static void add_forward(builder *b) {
  const rondo_fused_attention_shape *s = b->shape;
  const cudnn_descriptor q = add_rows(b, Q, true, &s->q), k = add_columns(b, K), v = add_rows(b, V, false, &s->k);
  const cudnn_descriptor scores = hide_distant(b, add_scaled_scores(b, q, k, add_value(b, SCALE)));
  const cudnn_descriptor largest = add_numbers(b, VIRTUAL), sum = add_numbers(b, VIRTUAL);
  reduce(b, CUDNN_REDUCE_MAX, scores, largest);
  const cudnn_descriptor off = scores_of(b, CUDNN_SUB, scores, largest);
  const cudnn_descriptor powers = scores_of(b, CUDNN_EXP, off, NULL);
  reduce(b, CUDNN_REDUCE_ADD, powers, sum);
  const cudnn_descriptor logarithm = add_numbers(b, VIRTUAL);
  apply(b, CUDNN_LOG, CUDNN_F32, sum, NULL, logarithm);
  apply(b, CUDNN_ADD, CUDNN_F32, largest, logarithm, add_numbers(b, s->keeps_sums ? SUMS : VIRTUAL));
  const cudnn_descriptor weights = add_scores(b, rondo_cudnn_type(s->type));
  apply(b, CUDNN_DIV, CUDNN_F32, powers, sum, weights);
  multiply(b, weights, v, add_rows(b, Y, true, &s->y));
}

/* Transposes scores of heads, rounded to the type. */
static cudnn_descriptor transpose_scores(builder *b, cudnn_descriptor scores) {
  const tensor_form rows = head_form(b, b->shape->rows, b->shape->columns), form = transposed(&rows);
  const cudnn_descriptor to = add_virtual(b, rondo_cudnn_type(b->shape->type), &form);
  reshape(b, scores, to);
  return to;
}

/* The gradient of k or v: of each head of q, and then, where several share k and v, their sum. */
static void multiply_columns(builder *b, cudnn_descriptor scores, cudnn_descriptor rows, int64_t number) {
  const rondo_fused_attention_shape *s = b->shape;
  const cudnn_descriptor to = add_rows(b, number, false, &s->k), by_columns = transpose_scores(b, scores);
  if (s->heads == s->groups) {
    multiply(b, by_columns, rows, to);
    return;
  }
  const tensor_form form = head_form(b, s->columns, s->size);
  const cudnn_descriptor of_heads = add_virtual(b, rondo_cudnn_type(s->type), &form);
  multiply(b, by_columns, rows, of_heads);
  reduce(b, CUDNN_REDUCE_ADD, of_heads, to);
}

/* For each row the sum of y dy. */
static cudnn_descriptor add_row_sums(builder *b, cudnn_descriptor dy) {
  const rondo_fused_attention_shape *s = b->shape;
  const tensor_form form = head_form(b, s->rows, s->size);
  const cudnn_descriptor products = add_virtual(b, CUDNN_F32, &form), sums = add_numbers(b, VIRTUAL);
  apply(b, CUDNN_MUL, CUDNN_F32, dy, add_rows(b, Y, true, &s->y), products);
  reduce(b, CUDNN_REDUCE_ADD, products, sums);
  const cudnn_descriptor to = add_numbers(b, ROW_SUMS);
  apply(b, CUDNN_MUL, CUDNN_F32, sums, add_value(b, ONE), to);
  return to;
}

/* With weights p = exp(scores - sums): dv = pᵀ dy; the gradient of the scores is ds = p (dy vᵀ - sum of y dy) scale; dk
 * = dsᵀ q and dq = ds k. */
static void add_gradients(builder *b) {
  const rondo_fused_attention_shape *s = b->shape;
  const cudnn_descriptor q = add_rows(b, Q, true, &s->q), k = add_columns(b, K), v = add_columns(b, V);
  const cudnn_descriptor dy = add_rows(b, DY, true, &s->y), scale = add_value(b, SCALE);
  const cudnn_descriptor row_sums = add_row_sums(b, dy), scores = add_scaled_scores(b, q, k, scale);
  const cudnn_descriptor off = scores_of(b, CUDNN_SUB, scores, add_numbers(b, SUMS));
  const cudnn_descriptor weights = scores_of(b, CUDNN_EXP, hide_distant(b, off), NULL);
  multiply_columns(b, weights, dy, DV);
  const cudnn_descriptor products = add_scores(b, CUDNN_F32);
  multiply(b, dy, v, products);
  const cudnn_descriptor centred = scores_of(b, CUDNN_SUB, products, row_sums);
  const cudnn_descriptor weighted = scores_of(b, CUDNN_MUL, centred, weights);
  const cudnn_descriptor gradient = scores_of(b, CUDNN_MUL, weighted, scale);
  multiply_columns(b, gradient, q, DK);
  const tensor_form form = rows_form(b, false, &s->k);
  const cudnn_descriptor k_rows = add_virtual(b, rondo_cudnn_type(s->type), &form);
  reshape(b, k, k_rows);
  multiply(b, gradient, k_rows, add_rows(b, DQ, true, &s->q));
}

/* Parts ------------------------------------------------------------------------------------------------------------
 *
 * Engines of gradients that give the same bits each time store the gradient of the scores. So gradients are computed in
 * parts of the batches, and if need be of the heads, of which the scores take as much memory as all values: q, k, v, y
 * and their gradients. A part has at least the heads that share k and v, unless these take too much. */

#define MIN_PART ((double)(1 << 20)) /* scores that are worth a part */
#define MIN_WORKSPACE ((double)(4 << 20))
#define MAX_WORKSPACE ((double)(1 << 30))
#define SCORE_TILE 64 /* to which rows and columns are rounded up */

static double bytes_of_values(const rondo_fused_attention_shape *s) {
  const double rows = (double)s->heads * (double)s->rows + (double)s->groups * (double)s->columns;
  return 4 * (double)s->batches * rows * (double)s->size * (double)rondo_type_bytes(s->type);
}

static double bytes_of_scores(const rondo_fused_attention_shape *s) {
  const double rows = ceil((double)s->rows / SCORE_TILE), columns = ceil((double)s->columns / SCORE_TILE);
  const double tiles = (double)s->batches * (double)s->heads * rows * columns;
  return tiles * SCORE_TILE * SCORE_TILE * (double)rondo_type_bytes(s->type);
}

/* The smallest number of equal parts, at least `least` if the count has so many. */
static size_t equal_parts(size_t count, double least) {
  size_t parts = 1;
  while (parts < count && ((double)parts < least || count % parts != 0)) parts++;
  return parts;
}

static void cut(rondo_fused_attention *attention) {
  rondo_fused_attention_shape *s = &attention->shape;
  const double parts = s->is_gradient ? ceil(bytes_of_scores(s) / fmax(bytes_of_values(s), MIN_PART)) : 1;
  attention->batch_parts = equal_parts(s->batches, parts);
  attention->head_parts = equal_parts(s->groups, ceil(parts / (double)attention->batch_parts));
  s->batches /= attention->batch_parts;
  s->heads /= attention->head_parts;
  s->groups /= attention->head_parts;
}

/* Of a part: its scores, and gradients of k and v for each head of q. Forward engines need next to none. */
static double workspace_limit(const rondo_fused_attention_shape *s) {
  return s->is_gradient ? fmin(MIN_WORKSPACE + bytes_of_scores(s) + bytes_of_values(s), MAX_WORKSPACE) : MIN_WORKSPACE;
}

/* rondo_cudnn_describe. */
static rondo_status describe(rondo_cudnn_plan *plan, void *user) {
  const rondo_fused_attention_shape *s = user;
  builder b = {.plan = plan, .shape = s, .status = RONDO_OK};
  (s->is_gradient ? add_gradients : add_forward)(&b);
  RONDO_TRY(b.status);
  return rondo_cudnn_choose(plan, b.operations, b.count, s->type, workspace_limit(s));
}

/* Preparing -------------------------------------------------------------------------------------------------------- */

static void log_unsupported(const rondo_fused_attention_shape *s) {
  rondo_log(RONDO_LOG_DEBUG, "tensor",
            "cuDNN has no suitable engine for %s of %zu x %zu heads (%zu of k and v) of %zu elements, %zu rows, %zu "
            "columns, %s, window %zu",
            s->is_gradient ? "gradients of attention" : "attention", s->batches, s->heads, s->groups, s->size, s->rows,
            s->columns, s->has_bias ? "with a bias" : "without a bias", s->window);
}

static bool is_worth_while(const rondo_fused_attention_shape *s) {
  const double scores = (double)s->batches * (double)s->heads * (double)s->rows * (double)s->columns;
  return 2 * scores * (double)s->size >= (double)rondo_option_number(RONDO_OPTION_CUDNN_LEAST);
}

/* What cuDNN is known to compute wrongly, after cudnn-frontend (sdpa_support_surface.h), TransformerEngine
 * (fused_attn.cpp) and issue 196678 of PyTorch:
 * - 9.10.0 and 9.10.1 have errors in all attention.
 * - Before 9.10.2, -infinity may give NaN unless a row sees the first column, and a bias excludes a window.
 * - 9.13 and 9.14 access other memory if more than 1,024 columns without causality are recorded in a CUDA graph.
 * - Gradients with a bias take 64 columns after the last for scores of 0 if these fill a tile of 128. With a row whose
 *   sum is below -88, that makes dq NaN. */
#define BACK_TILE 128

static bool is_wrong(const rondo_fused_attention_shape *s, size_t version) {
  if (version == 91000 || version == 91001) return true;
  if (version < 91002 && (s->has_bias || s->window > 0)) return true;
  if (version >= 91300 && version < 91500 && !s->causal && s->columns > 1024) return true;
  return s->is_gradient && s->has_bias && s->columns % BACK_TILE == BACK_TILE / 2;
}

static rondo_fused_attention make_of(rondo_cudnn_maker *maker, const rondo_fused_attention_shape *shape) {
  rondo_fused_attention made = {.plan = {.maker = maker, .what = "attention"},
                                .shape = *shape,
                                .hidden = -INFINITY,
                                .one = 1,
                                .back = (float)shape->window,
                                .ahead = shape->window == 0 ? 0 : (int32_t)(shape->window - 1)};
  cut(&made);
  return made;
}

rondo_status rondo_fused_attention_create(rondo_cudnn_maker *maker, const rondo_fused_attention_shape *shape,
                                          rondo_fused_attention **out) {
  rondo_fused_attention *made;
  *out = NULL;
  assert((!shape->causal && shape->window == 0) || shape->rows == shape->columns);
  if (!rondo_device_takes_libraries(maker->device) || !is_worth_while(shape) || !rondo_library_find(&rondo_cudnn) ||
      is_wrong(shape, rondo_cudnn_api.version()))
    return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(&maker->allocator, 1, sizeof *made, &made));
  *made = make_of(maker, shape);
  const rondo_status status = rondo_cudnn_plan_make(&made->plan, describe, &made->shape);
  if (status == RONDO_OK && made->plan.plan != NULL) {
    *out = made;
    return RONDO_OK;
  }
  if (status == RONDO_OK) log_unsupported(shape);
  rondo_fused_attention_destroy(made);
  return status;
}

void rondo_fused_attention_destroy(rondo_fused_attention *attention) {
  if (attention == NULL) return;
  rondo_cudnn_plan_free(&attention->plan);
  const rondo_allocator allocator = attention->plan.maker->allocator;
  rondo_release(&allocator, attention, 1, sizeof *attention);
}

/* Running ---------------------------------------------------------------------------------------------------------- */

/* The row sums of a part's gradients are in the workspace, before the library's. */
static size_t row_sum_bytes(const rondo_fused_attention_shape *s) {
  const size_t bytes = s->is_gradient ? s->batches * s->heads * s->rows * sizeof(float) : 0;
  return (bytes + 255) / 256 * 256;
}

size_t rondo_fused_attention_workspace(const rondo_fused_attention *attention) {
  return row_sum_bytes(&attention->shape) + attention->plan.workspace_bytes;
}

/* Numbers of tensors and their addresses, for those that a graph has. */
typedef struct tensor_list {
  int64_t numbers[REAL], count;
  const void *addresses[REAL];
} tensor_list;

static void list(tensor_list *to, int64_t number, const void *address) {
  to->numbers[to->count] = number;
  to->addresses[to->count++] = address;
}

/* The values of a part: from a batch and a head of q on, whose k and v are those of a group. */
typedef struct part_place {
  const rondo_fused_attention_shape *shape;
  size_t batch, head, group;
} part_place;

static const void *queries_at(const part_place *p, const void *address, const rondo_attention_strides *strides) {
  return (const char *)address +
         (p->batch * strides->batch + p->head * strides->head) * rondo_type_bytes(p->shape->type);
}

static const void *keys_at(const part_place *p, const void *address) {
  const rondo_attention_strides *strides = &p->shape->k;
  return (const char *)address +
         (p->batch * strides->batch + p->group * strides->head) * rondo_type_bytes(p->shape->type);
}

/* What hides columns. Causality limits later ones, a window earlier ones too. */
static void list_limits(const rondo_fused_attention *attention, tensor_list *l) {
  const rondo_fused_attention_shape *s = &attention->shape;
  if (s->causal || s->window > 0) list(l, HIDDEN_LATER, &attention->hidden);
  if (!s->causal && s->window > 1) list(l, AHEAD, &attention->ahead);
  if (s->window == 0) return;
  list(l, HIDDEN_EARLIER, &attention->hidden);
  list(l, BACK, &attention->back);
}

static void list_gradients(const rondo_fused_attention *attention, const rondo_fused_attention_memory *memory,
                           const part_place *p, tensor_list *l) {
  list(l, DY, queries_at(p, memory->dy, &p->shape->y));
  list(l, DQ, queries_at(p, memory->dq, &p->shape->q));
  list(l, DK, keys_at(p, memory->dk));
  list(l, DV, keys_at(p, memory->dv));
  list(l, ROW_SUMS, memory->workspace);
  list(l, ONE, &attention->one);
}

/* sums: those of the part. */
static rondo_status bind_part(rondo_fused_attention *attention, const rondo_fused_attention_memory *memory,
                              const part_place *p, const float *sums) {
  const rondo_fused_attention_shape *s = &attention->shape;
  const char *workspace = memory->workspace;
  tensor_list l = {.count = 0};
  list(&l, Q, queries_at(p, memory->q, &s->q));
  list(&l, K, keys_at(p, memory->k));
  list(&l, V, keys_at(p, memory->v));
  list(&l, Y, queries_at(p, memory->y, &s->y));
  list(&l, SCALE, &s->scale);
  if (s->has_bias) list(&l, BIAS, queries_at(p, memory->bias, &s->bias));
  list_limits(attention, &l);
  if (s->is_gradient || s->keeps_sums) list(&l, SUMS, sums);
  if (s->is_gradient) list_gradients(attention, memory, p, &l);
  return rondo_cudnn_plan_bind(&attention->plan, l.numbers, l.addresses, l.count,
                               workspace == NULL ? NULL : workspace + row_sum_bytes(s));
}

rondo_status rondo_fused_attention_bind(rondo_fused_attention *attention, const rondo_fused_attention_memory *memory) {
  const rondo_fused_attention_shape *s = &attention->shape;
  const size_t parts = attention->batch_parts * attention->head_parts;
  for (size_t part = 0; part < parts; part++) {
    const size_t of_heads = part % attention->head_parts;
    const part_place p = {s, part / attention->head_parts * s->batches, of_heads * s->heads, of_heads * s->groups};
    const float *sums = memory->sums;
    if (sums != NULL) sums += (p.batch * s->heads * attention->head_parts + p.head) * s->rows;
    RONDO_TRY(bind_part(attention, memory, &p, sums));
  }
  return RONDO_OK;
}

rondo_status rondo_fused_attention_run(const rondo_fused_attention *attention, rondo_stream *stream) {
  return rondo_cudnn_plan_run(&attention->plan, stream);
}
