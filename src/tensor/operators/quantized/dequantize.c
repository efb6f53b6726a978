/* SPDX-License-Identifier: MIT
 * dequantize: the elements of a quantised matrix. Gradients of matmul_quantized are products with them, and libraries
 * compute large products from them. Threads: as tensor/program/operator.h says.
 */
#include "tensor/operators/quantized/dequantize.h"

#include "tensor/operators/common/operator_rows.h"

enum { VALUES, SCALES, ZEROS };       /* inputs */
enum { TYPE = RONDO_QUANTIZED_FREE }; /* sizes */

/* Converts through a buffer, unless the type is F32. */
void rondo_store_dequantized(rondo_type type, const rondo_quantized_scheme *scheme,
                             const rondo_quantized_matrix *matrix, size_t row, void *out, size_t first_out) {
  float buffer[RONDO_CHUNK];
  RONDO_EACH_CHUNK(at, length, 0, scheme->columns) {
    float *to = rondo_chunk_of(type, out, first_out + at, buffer);
    rondo_dequantize_row(scheme, matrix, row, at, length, to);
    rondo_store_chunk(type, out, first_out + at, length, to);
  }
}

static void dequantize_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_quantized_scheme *scheme = args[0];
  const rondo_quantized_matrix matrix = {RONDO_ARG(const uint8_t *, 1), RONDO_ARG(const float *, 2),
                                         RONDO_ARG(const uint8_t *, 3)};
  void *y = RONDO_ARG(void *, 4);
  RONDO_EACH_ITEM(row, blocks, scheme->rows)
    rondo_store_dequantized(type, scheme, &matrix, row, y, row * scheme->columns);
}

RONDO_TYPED_KERNEL(dequantize, dequantize, RONDO_SCALAR(rondo_quantized_scheme), RONDO_READS, RONDO_READS, RONDO_READS,
                   RONDO_WRITES);

rondo_status rondo_emit_dequantize(rondo_emitter *emitter, rondo_type type, const rondo_quantized_scheme *scheme,
                                   const rondo_quantized_matrix *matrix, const void *out) {
  return rondo_emit_kernel(emitter, &dequantize_code[type],
                           rondo_emit_grid(emitter, scheme->rows, rondo_row_grain(scheme->columns)),
                           RONDO_ARGS(scheme, &matrix->values, &matrix->scales, &matrix->zeros, &out));
}

static rondo_status infer_dequantize(const rondo_program *program, const rondo_operation *operation,
                                     rondo_shape *results) {
  RONDO_TRY(rondo_quantized_require(program, operation, VALUES));
  const size_t *sizes = operation->attributes.sizes;
  const size_t dims[] = {rondo_operation_input(program, operation, VALUES)->dims[0], sizes[RONDO_QUANTIZED_COLUMNS]};
  return rondo_shape_make(operation->row->name, (rondo_type)sizes[TYPE], dims, 2, &results[0]);
}

static rondo_status emit_dequantize(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_quantized_scheme scheme = rondo_quantized_scheme_at(rondo_emit_program(emitter), operation, VALUES);
  const rondo_quantized_matrix matrix = rondo_emit_quantized(emitter, operation, VALUES);
  return rondo_emit_dequantize(emitter, (rondo_type)operation->attributes.sizes[TYPE], &scheme, &matrix,
                               rondo_emit_address(emitter, operation->results[0]));
}

RONDO_OPERATOR(dequantize, .types = RONDO_TYPE_BIT(RONDO_I8) | RONDO_TYPE_BIT(RONDO_U8),
               .inputs = {"values", "scales", "zeros"}, .required = 2, .result_count = 1, .infer = infer_dequantize,
               .emit = emit_dequantize);

rondo_attributes rondo_dequantize_attributes(const rondo_quantized_options *options, size_t columns) {
  rondo_attributes attributes = rondo_quantized_attributes(options, columns);
  attributes.sizes[TYPE] = options->type;
  attributes.size_count = TYPE + 1;
  return attributes;
}

rondo_status rondo_op_dequantize(rondo_program *program, rondo_value values, rondo_value scales, rondo_value zeros,
                                 const rondo_quantized_options *options, rondo_value *out_value) {
  const rondo_operator *row = &rondo_operator_dequantize;
  rondo_quantized_options given;
  const rondo_value inputs[] = {values, scales, zeros};
  uint32_t index = 0;
  RONDO_TRY(rondo_program_begin_of(program, row->name, values, "values", out_value, &index));
  RONDO_TRY(rondo_quantized_read(row->name, options, &given));
  const rondo_attributes attributes =
      rondo_dequantize_attributes(&given, rondo_quantized_columns(program, index, &given));
  return rondo_program_apply(program, row, inputs, 3, &attributes, out_value);
}
