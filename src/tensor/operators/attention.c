/* SPDX-License-Identifier: MIT
 * attention: softmax(scale q kᵀ) v for each head (Vaswani et al., "Attention Is All You Need", 2017), made in tiles and
 * differentiated by making the scores again (Dao, "FlashAttention-2", 2023), for which each row keeps the logarithm of
 * its exponentials' sum. Gradients: the share of a row is dy · y; a second kernel makes dq by rows, a third one dk and
 * dv by columns, so that nothing is added by two at once.
 */
#include "tensor/operators/attention.h"

#include <math.h>

#include "base/versioned.h"
#include "tensor/operators.h"
#include "tensor/operators/gemm.h"
#include "tensor/program_internal.h"
#include "tensor/shape.h"

enum { CAUSAL };                    /* flags */
enum { SCALE };                     /* numbers */
enum { Q, K, V, DY, SUMS, SHARES }; /* inputs */

/* Kernels ---------------------------------------------------------------------------------------------------------- */

static void attention_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_attention_cpu(type, blocks, args);
}
static void attention_share_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_attention_share_cpu(type, blocks, args);
}
static void attention_q_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_attention_q_gradient_cpu(type, blocks, args);
}
static void attention_k_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_attention_k_gradient_cpu(type, blocks, args);
}

RONDO_TYPED_KERNEL(attention, attention, RONDO_SCALAR(rondo_attention_shape), RONDO_READS, RONDO_READS, RONDO_READS,
                   RONDO_WRITES, RONDO_WRITES);
RONDO_TYPED_KERNEL(attention_share, attention, RONDO_SCALAR(rondo_attention_shape), RONDO_READS, RONDO_READS,
                   RONDO_WRITES);
RONDO_TYPED_KERNEL(attention_q_gradient, attention, RONDO_SCALAR(rondo_attention_shape), RONDO_READS, RONDO_READS,
                   RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES);
RONDO_TYPED_KERNEL(attention_k_gradient, attention, RONDO_SCALAR(rondo_attention_shape), RONDO_READS, RONDO_READS,
                   RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES, RONDO_WRITES);

/* On CUDA a block has so many rows, or columns, as its shared memory has room for (attention.cu). */
static size_t tile_on_cuda(size_t size) { return size <= 32 ? 64 : size <= 64 ? 32 : 16; }

#define MOST_BLOCKS ((size_t)1 << 30)

/* A block for each tile of `count` rows of each of `heads`. */
static rondo_grid grid_of(const rondo_emitter *emitter, const rondo_attention_shape *shape, size_t heads,
                          size_t count) {
  const size_t tile = rondo_emit_is_cuda(emitter) ? tile_on_cuda(shape->size) : RONDO_ATTENTION_TILE;
  const size_t blocks = heads * ((count + tile - 1) / tile);
  return (rondo_grid){.x = (uint32_t)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS)};
}

/* Shapes ----------------------------------------------------------------------------------------------------------- */

static rondo_status fail_shapes(const rondo_program *program, const rondo_operation *operation) {
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "q must be [b, h, t, d], k and v [b, g, s, d] with h a multiple of g");
}

rondo_status rondo_require_attention(const rondo_program *program, const rondo_operation *operation) {
  const rondo_shape *q = rondo_operation_input(program, operation, Q);
  const rondo_shape *k = rondo_operation_input(program, operation, K);
  RONDO_TRY(rondo_require_float(program, operation, Q, 4));
  RONDO_TRY(rondo_require_input(program, operation, K, q->type, 4));
  RONDO_TRY(rondo_require_same_shape(program, operation, K, V));
  if (q->dims[0] != k->dims[0] || q->dims[1] % k->dims[1] != 0 || q->dims[3] != k->dims[3])
    return fail_shapes(program, operation);
  if (q->dims[3] > RONDO_HEAD_MOST) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "heads of %zu elements; the most is %d",
                                q->dims[3], RONDO_HEAD_MOST);
  }
  if (!operation->attributes.flags[CAUSAL] || q->dims[2] <= k->dims[2]) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "causal attention of %zu rows to %zu: the first rows would see nothing", q->dims[2],
                              k->dims[2]);
}

rondo_attention_shape rondo_attention_shape_of(const rondo_emitter *emitter, const rondo_operation *operation,
                                               uint32_t keys) {
  const rondo_shape *q = rondo_emit_shape(emitter, operation->inputs[Q]);
  const rondo_shape *k = rondo_emit_shape(emitter, operation->inputs[keys]);
  return (rondo_attention_shape){.batches = q->dims[0],
                                 .heads = q->dims[1],
                                 .groups = k->dims[1],
                                 .rows = q->dims[2],
                                 .columns = k->dims[2],
                                 .size = q->dims[3],
                                 .scale = operation->attributes.numbers[SCALE],
                                 .causal = operation->attributes.flags[CAUSAL]};
}

static rondo_shape rows_of(const rondo_shape *q) {
  return (rondo_shape){.type = RONDO_F32, .rank = 3, .dims = {q->dims[0], q->dims[1], q->dims[2]}};
}

/* Forward ---------------------------------------------------------------------------------------------------------- */

static rondo_status infer_attention(const rondo_program *program, const rondo_operation *operation,
                                    rondo_shape *results) {
  RONDO_TRY(rondo_require_attention(program, operation));
  results[0] = *rondo_operation_input(program, operation, Q);
  results[1] = rows_of(&results[0]);
  return RONDO_OK;
}

static rondo_status differentiate_attention(rondo_program *program, const rondo_operation *operation,
                                            const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t *of = operation->inputs;
  const uint32_t dy = result_gradients[0];
  uint32_t shares = 0, of_k_and_v[2];
  if (dy == RONDO_NO_VALUE) return RONDO_OK;
  const uint32_t y_and_dy[] = {operation->results[0], dy};
  RONDO_TRY(rondo_program_add(program, &rondo_operator_attention_share, y_and_dy, 2, NULL, &shares));
  const uint32_t inputs[] = {of[Q], of[K], of[V], dy, operation->results[1], shares};
  RONDO_TRY(rondo_program_add(program, &rondo_operator_attention_q_gradient, inputs, 6, &operation->attributes,
                              &input_gradients[Q]));
  RONDO_TRY(
      rondo_program_add(program, &rondo_operator_attention_k_gradient, inputs, 6, &operation->attributes, of_k_and_v));
  input_gradients[K] = of_k_and_v[0];
  input_gradients[V] = of_k_and_v[1];
  return RONDO_OK;
}

static rondo_status emit_attention(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_attention_shape shape = rondo_attention_shape_of(emitter, operation, K);
  const void *q = rondo_emit_address(emitter, operation->inputs[Q]);
  const void *k = rondo_emit_address(emitter, operation->inputs[K]);
  const void *v = rondo_emit_address(emitter, operation->inputs[V]);
  void *y = rondo_emit_address(emitter, operation->results[0]);
  float *sums = rondo_emit_address(emitter, operation->results[1]);
  rondo_gemm_prepare();
  return rondo_emit_kernel(emitter, &attention_code[rondo_emit_shape(emitter, operation->inputs[Q])->type],
                           grid_of(emitter, &shape, shape.batches * shape.heads, shape.rows),
                           RONDO_ARGS(&shape, &q, &k, &v, &y, &sums));
}

const rondo_operator rondo_operator_attention = {.name = "attention",
                                                 .types = RONDO_FLOATS,
                                                 .inputs = {"q", "k", "v"},
                                                 .required = 3,
                                                 .result_count = 2,
                                                 .spare_results = 1u << 1,
                                                 .infer = infer_attention,
                                                 .differentiate = differentiate_attention,
                                                 .emit = emit_attention};

static rondo_status read_options(const char *call, const rondo_attention_options *options, rondo_attributes *out) {
  rondo_attention_options given;
  RONDO_TRY(rondo_versioned_read("rondo_attention_options", options, &given, sizeof given));
  if (!(given.scale >= 0 && given.scale < INFINITY)) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: scale %g is not above 0", call,
                      (double)given.scale);
  }
  *out = (rondo_attributes){.numbers = {given.scale}, .flags = {given.causal}};
  return RONDO_OK;
}

/* The usual scale is one over the root of a head's size. */
static rondo_status complete_scale(const rondo_program *program, const char *call, rondo_value q,
                                   rondo_attributes *attributes) {
  uint32_t index = 0;
  RONDO_TRY(rondo_program_resolve(program, q, call, "q", &index));
  const size_t size = rondo_shape_last(rondo_program_shape(program, index));
  if (attributes->numbers[SCALE] == 0) attributes->numbers[SCALE] = 1.0f / sqrtf((float)size);
  return RONDO_OK;
}

rondo_status rondo_attention_attributes(const rondo_program *program, const char *call, rondo_value q,
                                        const rondo_attention_options *options, rondo_attributes *out,
                                        rondo_value *out_value) {
  RONDO_TRY(rondo_require(call, "out_value", out_value));
  *out_value = (rondo_value){0};
  RONDO_TRY(rondo_require(call, "program", program));
  RONDO_TRY(read_options(call, options, out));
  return complete_scale(program, call, q, out);
}

rondo_status rondo_op_attention(rondo_program *program, rondo_value q, rondo_value k, rondo_value v,
                                const rondo_attention_options *options, rondo_value *out_value) {
  const rondo_value inputs[] = {q, k, v};
  rondo_attributes attributes;
  RONDO_TRY(rondo_attention_attributes(program, "attention", q, options, &attributes, out_value));
  return rondo_program_apply(program, &rondo_operator_attention, inputs, 3, &attributes, out_value);
}

/* Gradients -------------------------------------------------------------------------------------------------------- */

static rondo_status infer_share(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  RONDO_TRY(rondo_require_float(program, operation, 0, 4));
  RONDO_TRY(rondo_require_same_shape(program, operation, 0, 1));
  results[0] = rows_of(rondo_operation_input(program, operation, 0));
  return RONDO_OK;
}

#define SHARE_GRAIN ((rondo_grain){64, RONDO_CUDA_THREADS / 32})

static rondo_status emit_share(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_attention_shape shape = rondo_attention_shape_of(emitter, operation, 1);
  const void *y = rondo_emit_address(emitter, operation->inputs[0]);
  const void *dy = rondo_emit_address(emitter, operation->inputs[1]);
  float *shares = rondo_emit_address(emitter, operation->results[0]);
  return rondo_emit_kernel(emitter, &attention_share_code[rondo_emit_shape(emitter, operation->inputs[0])->type],
                           rondo_emit_grid(emitter, shape.batches * shape.heads * shape.rows, SHARE_GRAIN),
                           RONDO_ARGS(&shape, &y, &dy, &shares));
}

const rondo_operator rondo_operator_attention_share = {.name = "attention_share",
                                                       .inputs = {"y", "gradient"},
                                                       .required = 2,
                                                       .result_count = 1,
                                                       .infer = infer_share,
                                                       .emit = emit_share};

static rondo_status infer_q_gradient(const rondo_program *program, const rondo_operation *operation,
                                     rondo_shape *results) {
  RONDO_TRY(rondo_require_attention(program, operation));
  RONDO_TRY(rondo_require_same_shape(program, operation, Q, DY));
  results[0] = *rondo_operation_input(program, operation, Q);
  return RONDO_OK;
}

static rondo_status infer_k_gradient(const rondo_program *program, const rondo_operation *operation,
                                     rondo_shape *results) {
  RONDO_TRY(infer_q_gradient(program, operation, results));
  results[0] = results[1] = *rondo_operation_input(program, operation, K);
  return RONDO_OK;
}

static rondo_status emit_q_gradient(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_attention_shape shape = rondo_attention_shape_of(emitter, operation, K);
  const void *of[SHARES + 1];
  for (uint32_t i = 0; i <= SHARES; i++) of[i] = rondo_emit_address(emitter, operation->inputs[i]);
  void *dq = rondo_emit_address(emitter, operation->results[0]);
  rondo_gemm_prepare();
  return rondo_emit_kernel(emitter, &attention_q_gradient_code[rondo_emit_shape(emitter, operation->inputs[Q])->type],
                           grid_of(emitter, &shape, shape.batches * shape.heads, shape.rows),
                           RONDO_ARGS(&shape, &of[Q], &of[K], &of[V], &of[DY], &of[SUMS], &of[SHARES], &dq));
}

static rondo_status emit_k_gradient(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_attention_shape shape = rondo_attention_shape_of(emitter, operation, K);
  const void *of[SHARES + 1];
  for (uint32_t i = 0; i <= SHARES; i++) of[i] = rondo_emit_address(emitter, operation->inputs[i]);
  void *dk = rondo_emit_address(emitter, operation->results[0]);
  void *dv = rondo_emit_address(emitter, operation->results[1]);
  rondo_gemm_prepare();
  return rondo_emit_kernel(emitter, &attention_k_gradient_code[rondo_emit_shape(emitter, operation->inputs[Q])->type],
                           grid_of(emitter, &shape, shape.batches * shape.groups, shape.columns),
                           RONDO_ARGS(&shape, &of[Q], &of[K], &of[V], &of[DY], &of[SUMS], &of[SHARES], &dk, &dv));
}

#define GRADIENT_INPUTS .inputs = {"q", "k", "v", "gradient", "sums", "shares"}, .required = 6

const rondo_operator rondo_operator_attention_q_gradient = {.name = "attention_q_gradient",
                                                            GRADIENT_INPUTS,
                                                            .result_count = 1,
                                                            .infer = infer_q_gradient,
                                                            .emit = emit_q_gradient};
const rondo_operator rondo_operator_attention_k_gradient = {.name = "attention_k_gradient",
                                                            GRADIENT_INPUTS,
                                                            .result_count = 2,
                                                            .infer = infer_k_gradient,
                                                            .emit = emit_k_gradient};
