/* SPDX-License-Identifier: MIT
 * attention: softmax(scale q kᵀ) v for each head (Vaswani et al., "Attention Is All You Need", 2017), computed in
 * tiles. The gradient computes the scores again (Dao, "FlashAttention-2", 2023); for that, the logarithm of the sum of
 * exponentials is kept for each row. One kernel computes the gradients, dq by rows, dk and dv by columns, so there are
 * no atomics. Threads: as tensor/program/operator.h says.
 */
#include "tensor/operators/attention/attention.h"

#include <assert.h>
#include <math.h>

#include "tensor/operators/common/operator_tools.h"
#include "tensor/operators/matmul/gemm.h"

enum { Q, K, V, Y, DY, SUMS }; /* inputs */

/* Kernels ---------------------------------------------------------------------------------------------------------- */

RONDO_TYPED_KERNEL_OF(attention, rondo_attention_cpu, attention, RONDO_SCALAR(rondo_attention_shape), RONDO_READS,
                      RONDO_READS, RONDO_READS, RONDO_WRITES, RONDO_WRITES);
RONDO_TYPED_KERNEL_OF(attention_gradient, rondo_attention_gradient_cpu, attention, RONDO_SCALAR(rondo_attention_shape),
                      RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES,
                      RONDO_WRITES, RONDO_WRITES);

/* Rows and columns of a tile on CUDA: as many as fit in shared memory (attention.cu). */
static size_t tile_on_cuda(size_t size) { return size <= 32 ? 64 : size <= 64 ? 32 : 16; }

/* A block for each tile of rows and, for gradients, of columns. */
static rondo_grid grid_of(const rondo_emitter *emitter, const rondo_attention_shape *shape, bool is_gradient) {
  const size_t tile = rondo_emit_is_cuda(emitter) ? tile_on_cuda(shape->size) : RONDO_ATTENTION_TILE;
  size_t blocks = shape->batches * shape->heads * rondo_divide_up(shape->rows, tile);
  assert(shape->groups > 0 && shape->heads % shape->groups == 0 && shape->size <= RONDO_HEAD_MAX);
  if (is_gradient) blocks += shape->batches * shape->groups * rondo_divide_up(shape->columns, tile);
  return rondo_tile_grid(blocks);
}

rondo_status rondo_emit_attention(rondo_emitter *emitter, const rondo_operation *operation,
                                  const rondo_attention_shape *shape, const rondo_attention_parts *of) {
  rondo_gemm_prepare();
  return rondo_emit_operands(emitter, operation, &attention_code[rondo_emit_shape(emitter, operation->inputs[0])->type],
                             grid_of(emitter, shape, false),
                             RONDO_OPERANDS(RONDO_OBJECT(*shape), RONDO_OBJECT(of->q), RONDO_OBJECT(of->k),
                                            RONDO_OBJECT(of->v), RONDO_RESULT(0), RONDO_RESULT(1)));
}

rondo_status rondo_emit_attention_gradient(rondo_emitter *emitter, const rondo_operation *operation,
                                           const rondo_attention_shape *shape, const rondo_attention_parts *of,
                                           uint32_t y, const rondo_attention_parts *to) {
  rondo_gemm_prepare();
  return rondo_emit_operands(emitter, operation,
                             &attention_gradient_code[rondo_emit_shape(emitter, operation->inputs[0])->type],
                             grid_of(emitter, shape, true),
                             RONDO_OPERANDS(RONDO_OBJECT(*shape), RONDO_OBJECT(of->q), RONDO_OBJECT(of->k),
                                            RONDO_OBJECT(of->v), RONDO_INPUT(y), RONDO_INPUT(y + 1), RONDO_INPUT(y + 2),
                                            RONDO_OBJECT(to->q), RONDO_OBJECT(to->k), RONDO_OBJECT(to->v)));
}

rondo_attention_parts rondo_attention_parts_at(const rondo_emitter *emitter, const uint32_t *values) {
  return (rondo_attention_parts){rondo_emit_address(emitter, values[0]), rondo_emit_address(emitter, values[1]),
                                 rondo_emit_address(emitter, values[2])};
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
  if (q->dims[3] > RONDO_HEAD_MAX) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "a head has %zu elements; the maximum is %d: use more heads", q->dims[3],
                                RONDO_HEAD_MAX);
  }
  if (!operation->attributes.flags[RONDO_ATTENTION_CAUSAL] || q->dims[2] <= k->dims[2]) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "causal attention needs at least as many rows of k as of q: there are %zu and %zu",
                              k->dims[2], q->dims[2]);
}

rondo_attention_shape rondo_attention_shape_of(const rondo_emitter *emitter, const rondo_operation *operation,
                                               uint32_t keys) {
  const rondo_shape *q = rondo_emit_shape(emitter, operation->inputs[Q]);
  const rondo_shape *k = rondo_emit_shape(emitter, operation->inputs[keys]);
  const rondo_attention_place of_q = rondo_attention_stacked(q->dims[1], q->dims[2], q->dims[3]);
  return (rondo_attention_shape){.batches = q->dims[0],
                                 .heads = q->dims[1],
                                 .groups = k->dims[1],
                                 .rows = q->dims[2],
                                 .columns = k->dims[2],
                                 .size = q->dims[3],
                                 .q = of_q,
                                 .k = rondo_attention_stacked(k->dims[1], k->dims[2], k->dims[3]),
                                 .y = of_q,
                                 .own = rondo_attention_stacked(k->dims[1], 1, k->dims[3]),
                                 .scale = operation->attributes.numbers[RONDO_ATTENTION_SCALE],
                                 .causal = operation->attributes.flags[RONDO_ATTENTION_CAUSAL]};
}

/* The shape of the sums of rows. */
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
  const uint32_t *of = operation->inputs, *made = operation->results;
  const uint32_t inputs[] = {of[Q], of[K], of[V], made[0], result_gradients[0], made[1]};
  if (result_gradients[0] == RONDO_NO_VALUE) return RONDO_OK;
  return rondo_program_add(program, &rondo_operator_attention_gradient, inputs, 6, &operation->attributes,
                           input_gradients);
}

static rondo_status emit_attention(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_attention_shape shape = rondo_attention_shape_of(emitter, operation, K);
  const rondo_attention_parts of = rondo_attention_parts_at(emitter, operation->inputs);
  return rondo_emit_attention(emitter, operation, &shape, &of);
}

RONDO_OPERATOR(attention, .types = RONDO_FLOATS, .inputs = {"q", "k", "v"}, .required = 3, .result_count = 2,
               .spare_results = 1u << 1, .infer = infer_attention, .differentiate = differentiate_attention,
               .emit = emit_attention);

static rondo_status infer_gradient(const rondo_program *program, const rondo_operation *operation,
                                   rondo_shape *results) {
  RONDO_TRY(rondo_require_attention(program, operation));
  RONDO_TRY(rondo_require_same_shape(program, operation, Q, Y));
  RONDO_TRY(rondo_require_same_shape(program, operation, Q, DY));
  results[0] = *rondo_operation_input(program, operation, Q);
  results[1] = results[2] = *rondo_operation_input(program, operation, K);
  return RONDO_OK;
}

static rondo_status emit_gradient(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_attention_shape shape = rondo_attention_shape_of(emitter, operation, K);
  const rondo_attention_parts of = rondo_attention_parts_at(emitter, operation->inputs);
  const rondo_attention_parts to = rondo_attention_parts_at(emitter, operation->results);
  return rondo_emit_attention_gradient(emitter, operation, &shape, &of, Y, &to);
}

RONDO_OPERATOR(attention_gradient, .inputs = {"q", "k", "v", "y", "gradient", "sums"}, .required = 6, .result_count = 3,
               .spare_results = 7, .infer = infer_gradient, .emit = emit_gradient);

/* Calls ------------------------------------------------------------------------------------------------------------ */

rondo_status rondo_attention_attributes(const char *call, size_t row, const rondo_packed_heads *heads,
                                        const rondo_attention_options *options, rondo_attributes *out) {
  rondo_attention_options given;
  const size_t parts = heads == NULL ? 1 : heads->heads + 2 * heads->groups, size = parts == 0 ? row : row / parts;
  RONDO_TRY(rondo_versioned_read("rondo_attention_options", options, &given, sizeof given));
  if (!(given.scale >= 0 && given.scale < INFINITY)) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: scale %g must be finite and above 0, or 0 for the default", call, (double)given.scale);
  }
  const float scale = given.scale == 0 ? 1.0f / sqrtf((float)size) : given.scale;
  *out = (rondo_attributes){.numbers = {scale}, .flags = {given.causal}};
  if (heads == NULL) return RONDO_OK;
  out->sizes[RONDO_ATTENTION_HEADS] = heads->heads;
  out->sizes[RONDO_ATTENTION_GROUPS] = heads->groups;
  out->size_count = 2;
  return RONDO_OK;
}

rondo_status rondo_attention_begin(const rondo_program *program, const char *call, rondo_value value, const char *what,
                                   const rondo_packed_heads *heads, const rondo_attention_options *options,
                                   rondo_value *out_value, rondo_attributes *out) {
  uint32_t index = 0;
  RONDO_TRY(rondo_program_begin_of(program, call, value, what, out_value, &index));
  return rondo_attention_attributes(call, rondo_shape_last(rondo_program_shape(program, index)), heads, options, out);
}

rondo_status rondo_op_attention(rondo_program *program, rondo_value q, rondo_value k, rondo_value v,
                                const rondo_attention_options *options, rondo_value *out_value) {
  const rondo_value inputs[] = {q, k, v};
  rondo_attributes attributes;
  RONDO_TRY(rondo_attention_begin(program, "attention", q, "q", NULL, options, out_value, &attributes));
  return rondo_program_apply(program, &rondo_operator_attention, inputs, 3, &attributes, out_value);
}
