/* SPDX-License-Identifier: MIT
 * embedding_quantized: rows of a quantised table, gathered by indices. A wrong index reads row 0, and the run fails.
 * Threads: as tensor/program/operator.h says.
 */
#include "tensor/operators/common/operator_rows.h"
#include "tensor/operators/quantized/dequantize.h"

enum { OF_INDICES, OF_TABLE };        /* inputs of the operator: a table has three, of which the last is optional */
enum { TYPE = RONDO_QUANTIZED_FREE }; /* sizes */

/* A scalar argument of the kernel; without padding. */
typedef struct look_up {
  size_t count;
  uint64_t wide_indices;
} look_up;

static void embedding_quantized_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_quantized_scheme *scheme = args[0];
  const look_up *shape = args[1];
  const void *indices = RONDO_ARG(const void *, 2);
  const rondo_quantized_matrix table = {RONDO_ARG(const uint8_t *, 3), RONDO_ARG(const float *, 4),
                                        RONDO_ARG(const uint8_t *, 5)};
  void *y = RONDO_ARG(void *, 6);
  const rondo_index_cell cell = rondo_begin_check(blocks, args + 7);
  const uint32_t is_wide = shape->wide_indices != 0;
  RONDO_EACH_ITEM(i, blocks, shape->count) {
    const int64_t index = rondo_index_at(indices, is_wide, i);
    const size_t row = rondo_check_index(cell, i, index, scheme->rows) ? (size_t)index : 0;
    rondo_store_dequantized(type, scheme, &table, row, y, i * scheme->columns);
  }
}

RONDO_TYPED_KERNEL(embedding_quantized, embedding_quantized, RONDO_SCALAR(rondo_quantized_scheme),
                   RONDO_SCALAR(look_up), RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES,
                   RONDO_CHECK_PARAMETERS);

static rondo_status infer_embedding(const rondo_program *program, const rondo_operation *operation,
                                    rondo_shape *results) {
  const size_t *sizes = operation->attributes.sizes;
  RONDO_TRY(rondo_quantized_require(program, operation, OF_TABLE));
  RONDO_TRY(rondo_require_indices(program, operation, OF_INDICES, RONDO_ANY_RANK));
  if (rondo_operation_input(program, operation, OF_TABLE)->dims[0] > INT32_MAX) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "the table has more rows than i32 can count");
  }
  rondo_shape result = *rondo_operation_input(program, operation, OF_INDICES);
  if (result.rank == RONDO_MAX_DIMENSIONS) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "the result would have %d dimensions",
                                RONDO_MAX_DIMENSIONS + 1);
  }
  result.dims[result.rank] = sizes[RONDO_QUANTIZED_COLUMNS];
  return rondo_shape_make(operation->row->name, (rondo_type)sizes[TYPE], result.dims, result.rank + 1, &results[0]);
}

static rondo_status emit_embedding(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_quantized_scheme scheme = rondo_quantized_scheme_at(rondo_emit_program(emitter), operation, OF_TABLE);
  const rondo_shape *indices = rondo_emit_shape(emitter, operation->inputs[OF_INDICES]);
  const look_up shape = {rondo_shape_elements(indices), indices->type == RONDO_I64};
  return rondo_emit_operands(emitter, operation, &embedding_quantized_code[operation->attributes.sizes[TYPE]],
                             rondo_emit_grid(emitter, shape.count, rondo_row_grain(scheme.columns)),
                             RONDO_OPERANDS(RONDO_OBJECT(scheme), RONDO_OBJECT(shape), RONDO_INPUT(OF_INDICES),
                                            RONDO_INPUT(OF_TABLE), RONDO_INPUT(OF_TABLE + 1), RONDO_INPUT(OF_TABLE + 2),
                                            RONDO_RESULT(0), RONDO_CHECK(OF_INDICES, scheme.rows)));
}

RONDO_OPERATOR(embedding_quantized, .types = RONDO_TYPE_BIT(RONDO_I8) | RONDO_TYPE_BIT(RONDO_U8),
               .typed_input = OF_TABLE, .inputs = {"indices", "values", "scales", "zeros"}, .required = 3,
               .result_count = 1, .checks_indices = 1, .infer = infer_embedding, .emit = emit_embedding);

rondo_status rondo_op_embedding_quantized(rondo_program *program, rondo_value values, rondo_value scales,
                                          rondo_value zeros, rondo_value indices,
                                          const rondo_quantized_options *options, rondo_value *out_value) {
  const rondo_operator *row = &rondo_operator_embedding_quantized;
  rondo_quantized_options given;
  const rondo_value inputs[] = {indices, values, scales, zeros};
  uint32_t index = 0;
  RONDO_TRY(rondo_program_begin_of(program, row->name, values, "values", out_value, &index));
  RONDO_TRY(rondo_quantized_read(row->name, options, &given));
  const rondo_attributes attributes =
      rondo_dequantize_attributes(&given, rondo_quantized_columns(program, index, &given));
  return rondo_program_apply(program, row, inputs, 4, &attributes, out_value);
}
