/* SPDX-License-Identifier: MIT
 * attention_packed: attention for rows that are the packed q, k and v of all heads, as one product computes them. The
 * heads of the result are packed too, as the next product reads them, so there are no copies. The kernels are those of
 * attention. Threads: as tensor/program/operator.h says.
 */
#include <assert.h>

#include "tensor/operators/attention/attention.h"
#include "tensor/operators/common/operator_tools.h"

enum { QKV, Y, DY, SUMS }; /* inputs */

rondo_status rondo_require_packed(const rondo_program *program, const rondo_operation *operation, size_t *out_size) {
  const rondo_shape *qkv = rondo_operation_input(program, operation, QKV);
  const size_t *sizes = operation->attributes.sizes;
  const size_t heads = sizes[RONDO_ATTENTION_HEADS], groups = sizes[RONDO_ATTENTION_GROUPS];
  RONDO_TRY(rondo_require_float(program, operation, QKV, 3));
  const size_t row = qkv->dims[2];
  /* heads is at most row and groups divides heads, so the sum does not wrap around */
  if (heads == 0 || groups == 0 || heads > row || heads % groups != 0 || row % (heads + 2 * groups) != 0) {
    return rondo_fail_operation(
        program, operation, RONDO_REASON_SHAPE,
        "a row of %zu elements cannot be %zu heads of q and %zu of k and v: it must have (h + 2 "
        "g) d elements, with h a multiple of g",
        row, heads, groups);
  }
  *out_size = row / (heads + 2 * groups);
  if (*out_size <= RONDO_HEAD_MAX) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "a head has %zu elements; the maximum is %d: use more heads", *out_size, RONDO_HEAD_MAX);
}

rondo_attention_shape rondo_attention_packed_shape(const rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *qkv = rondo_emit_shape(emitter, operation->inputs[QKV]);
  const rondo_attributes *attributes = &operation->attributes;
  const size_t heads = attributes->sizes[RONDO_ATTENTION_HEADS], groups = attributes->sizes[RONDO_ATTENTION_GROUPS];
  const size_t rows = qkv->dims[1], size = qkv->dims[2] / (heads + 2 * groups);
  const rondo_attention_place place = rondo_attention_abreast(rows, qkv->dims[2], size);
  assert(heads % groups == 0 && size <= RONDO_HEAD_MAX);
  return (rondo_attention_shape){.batches = qkv->dims[0],
                                 .heads = heads,
                                 .groups = groups,
                                 .rows = rows,
                                 .columns = rows,
                                 .size = size,
                                 .q = place,
                                 .k = place,
                                 .y = rondo_attention_abreast(rows, heads * size, size),
                                 .own = place,
                                 .scale = attributes->numbers[RONDO_ATTENTION_SCALE],
                                 .causal = attributes->flags[RONDO_ATTENTION_CAUSAL]};
}

rondo_attention_parts rondo_attention_parts_of(const rondo_emitter *emitter, const rondo_attention_shape *shape,
                                               uint32_t value) {
  const char *q = rondo_emit_address(emitter, value);
  const size_t bytes = rondo_type_bytes(rondo_emit_shape(emitter, value)->type) * shape->size;
  return (rondo_attention_parts){q, q + shape->heads * bytes, q + (shape->heads + shape->groups) * bytes};
}

static rondo_status infer_packed(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const size_t heads = operation->attributes.sizes[RONDO_ATTENTION_HEADS];
  size_t size = 0;
  RONDO_TRY(rondo_require_packed(program, operation, &size));
  results[0] = *rondo_operation_input(program, operation, QKV);
  results[0].dims[2] = heads * size;
  results[1] = (rondo_shape){.type = RONDO_F32, .rank = 3, .dims = {results[0].dims[0], heads, results[0].dims[1]}};
  return RONDO_OK;
}

static rondo_status differentiate_packed(rondo_program *program, const rondo_operation *operation,
                                         const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t inputs[] = {operation->inputs[QKV], operation->results[0], result_gradients[0], operation->results[1]};
  if (result_gradients[0] == RONDO_NO_VALUE) return RONDO_OK;
  return rondo_program_add(program, &rondo_operator_attention_packed_gradient, inputs, 4, &operation->attributes,
                           input_gradients);
}

static rondo_status emit_packed(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_attention_shape shape = rondo_attention_packed_shape(emitter, operation);
  const rondo_attention_parts of = rondo_attention_parts_of(emitter, &shape, operation->inputs[QKV]);
  return rondo_emit_attention(emitter, operation, &shape, &of);
}

RONDO_OPERATOR(attention_packed, .types = RONDO_FLOATS, .inputs = {"qkv"}, .required = 1, .result_count = 2,
               .spare_results = 1u << 1, .infer = infer_packed, .differentiate = differentiate_packed,
               .emit = emit_packed);

static rondo_status infer_packed_gradient(const rondo_program *program, const rondo_operation *operation,
                                          rondo_shape *results) {
  size_t size = 0;
  RONDO_TRY(rondo_require_packed(program, operation, &size));
  RONDO_TRY(rondo_require_same_shape(program, operation, Y, DY));
  results[0] = *rondo_operation_input(program, operation, QKV);
  return RONDO_OK;
}

static rondo_status emit_packed_gradient(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_attention_shape shape = rondo_attention_packed_shape(emitter, operation);
  const rondo_attention_parts of = rondo_attention_parts_of(emitter, &shape, operation->inputs[QKV]);
  const rondo_attention_parts to = rondo_attention_parts_of(emitter, &shape, operation->results[0]);
  return rondo_emit_attention_gradient(emitter, operation, &shape, &of, Y, &to);
}

RONDO_OPERATOR(attention_packed_gradient, .inputs = {"qkv", "y", "gradient", "sums"}, .required = 4, .result_count = 1,
               .infer = infer_packed_gradient, .emit = emit_packed_gradient);

rondo_status rondo_op_attention_packed(rondo_program *program, rondo_value qkv, size_t heads, size_t groups,
                                       const rondo_attention_options *options, rondo_value *out_value) {
  const rondo_packed_heads of = {heads, groups};
  rondo_attributes attributes;
  RONDO_TRY(rondo_attention_begin(program, "attention_packed", qkv, "qkv", &of, options, out_value, &attributes));
  return rondo_program_apply(program, &rondo_operator_attention_packed, &qkv, 1, &attributes, out_value);
}
