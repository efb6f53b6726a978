/* SPDX-License-Identifier: MIT
 * Sizes and checks of quantised matrices, and their elements as floats. A row is read group by group, so that loops
 * have one scale. Threads: any.
 */
#include "tensor/operators/quantized/quantized_scheme.h"

#include <stdio.h>

/* Sizes ------------------------------------------------------------------------------------------------------------ */

rondo_quantized_scheme rondo_quantized_scheme_of(uint32_t bits, size_t group, size_t rows, size_t columns) {
  assert((bits == 4 || bits == 8) && group % RONDO_QUANTIZED_STEP == 0 && columns > 0);
  const size_t width = group == 0 || group > columns ? columns : group; /* kernels count columns with 32 bits */
  return (rondo_quantized_scheme){.rows = rows,
                                  .columns = columns,
                                  .group = width,
                                  .groups = rondo_divide_up(columns, width),
                                  .row_bytes = rondo_quantized_row_bytes(bits, columns),
                                  .bits = bits};
}

static rondo_status fail_option(const char *call, const char *what) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: %s", call, what);
}

rondo_status rondo_quantized_read(const char *call, const rondo_quantized_options *options,
                                  rondo_quantized_options *out) {
  char what[96];
  RONDO_TRY(rondo_versioned_read("rondo_quantized_options", options, out, sizeof *out));
  if (out->bits != 4 && out->bits != 8) {
    (void)snprintf(what, sizeof what, "%u bits: use 8 or 4", (unsigned)out->bits);
    return fail_option(call, what);
  }
  if (out->group % RONDO_QUANTIZED_STEP != 0) {
    (void)snprintf(what, sizeof what, "a group of %zu columns: use a multiple of %d, or 0 for the whole row",
                   out->group, RONDO_QUANTIZED_STEP);
    return fail_option(call, what);
  }
  if ((unsigned)out->activations > RONDO_QUANTIZED_INT8)
    return fail_option(call, "activations are neither RONDO_QUANTIZED_FLOAT nor _INT8");
  if (out->type == 0) out->type = RONDO_F32;
  const rondo_shape scalar = rondo_shape_scalar(out->type);
  return rondo_shape_is_float(&scalar) ? RONDO_OK : fail_option(call, "the type of the result is not f32, f16 or bf16");
}

rondo_status rondo_quantized_sizes(const rondo_quantized_options *options, size_t columns, size_t *out_row_bytes,
                                   size_t *out_groups) {
  static const char call[] = "rondo_quantized_sizes";
  rondo_quantized_options given;
  RONDO_TRY(rondo_require(call, "out_row_bytes", out_row_bytes));
  RONDO_TRY(rondo_require(call, "out_groups", out_groups));
  RONDO_TRY(rondo_quantized_read(call, options, &given));
  if (columns == 0) return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "%s: a row has no columns", call);
  const rondo_quantized_scheme scheme = rondo_quantized_scheme_of(given.bits, given.group, 1, columns);
  *out_row_bytes = scheme.row_bytes;
  *out_groups = scheme.groups;
  return RONDO_OK;
}

/* Values of programs ----------------------------------------------------------------------------------------------- */

rondo_attributes rondo_quantized_attributes(const rondo_quantized_options *options, size_t columns) {
  return (rondo_attributes){.sizes = {[RONDO_QUANTIZED_BITS] = options->bits,
                                      [RONDO_QUANTIZED_GROUP] = options->group,
                                      [RONDO_QUANTIZED_COLUMNS] = columns},
                            .size_count = RONDO_QUANTIZED_FREE};
}

size_t rondo_quantized_columns(const rondo_program *program, uint32_t values, const rondo_quantized_options *options) {
  const size_t bytes = rondo_shape_last(rondo_program_shape(program, values));
  if (options->columns != 0) return options->columns;
  return options->bits == 4 ? 2 * bytes : bytes;
}

rondo_quantized_scheme rondo_quantized_scheme_at(const rondo_program *program, const rondo_operation *operation,
                                                 uint32_t first) {
  const size_t *sizes = operation->attributes.sizes;
  const size_t rows = rondo_operation_input(program, operation, first)->dims[0];
  rondo_quantized_scheme scheme = rondo_quantized_scheme_of(
      (uint32_t)sizes[RONDO_QUANTIZED_BITS], sizes[RONDO_QUANTIZED_GROUP], rows, sizes[RONDO_QUANTIZED_COLUMNS]);
  scheme.has_zeros = operation->inputs[first + 2] != RONDO_NO_VALUE;
  return scheme;
}

/* The scales or zeros: one for each group. */
static rondo_status require_groups(const rondo_program *program, const rondo_operation *operation, uint32_t input,
                                   const rondo_quantized_scheme *scheme) {
  const rondo_shape *shape = rondo_operation_input(program, operation, input);
  if (shape == NULL || (shape->dims[0] == scheme->rows && shape->dims[1] == scheme->groups)) return RONDO_OK;
  return rondo_fail_operation(
      program, operation, RONDO_REASON_SHAPE,
      "%s must be [%zu, %zu], one for each %zu of %zu columns, not [%zu, %zu]: was the matrix quantised with another "
      "group size?",
      operation->row->inputs[input], scheme->rows, scheme->groups, scheme->group, scheme->columns, shape->dims[0],
      shape->dims[1]);
}

rondo_status rondo_quantized_require(const rondo_program *program, const rondo_operation *operation, uint32_t first) {
  const bool is_packed = operation->attributes.sizes[RONDO_QUANTIZED_BITS] == 4;
  const rondo_type type = is_packed ? RONDO_U8 : RONDO_I8;
  RONDO_TRY(rondo_require_input(program, operation, first, type, 2));
  RONDO_TRY(rondo_require_input(program, operation, first + 1, RONDO_F32, 2));
  RONDO_TRY(rondo_require_input(program, operation, first + 2, type, 2));
  const size_t columns = operation->attributes.sizes[RONDO_QUANTIZED_COLUMNS];
  const size_t bytes = rondo_operation_input(program, operation, first)->dims[1];
  if (columns > INT32_MAX)
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "a row has more columns than i32 can count");
  if (bytes != rondo_quantized_row_bytes(is_packed ? 4 : 8, columns)) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "a row of %zu columns with %d bits has %zu bytes, not %zu", columns, is_packed ? 4 : 8,
                                rondo_quantized_row_bytes(is_packed ? 4 : 8, columns), bytes);
  }
  const rondo_quantized_scheme scheme = rondo_quantized_scheme_at(program, operation, first);
  RONDO_TRY(require_groups(program, operation, first + 1, &scheme));
  return require_groups(program, operation, first + 2, &scheme);
}

rondo_quantized_matrix rondo_emit_quantized(const rondo_emitter *emitter, const rondo_operation *operation,
                                            uint32_t first) {
  const uint32_t *inputs = operation->inputs + first;
  return (rondo_quantized_matrix){rondo_emit_address(emitter, inputs[0]), rondo_emit_address(emitter, inputs[1]),
                                  rondo_emit_address(emitter, inputs[2])};
}

/* Elements --------------------------------------------------------------------------------------------------------- */

RONDO_VECTORISED(scale_bytes,
                 (const int8_t *restrict values, float scale, int32_t zero, float *restrict out, size_t count),
                 (values, scale, zero, out, count)) {
  RONDO_EACH_LANE(i, lane, count, out[i] = scale * (float)(values[i] - zero));
}

/* Two elements from each byte. */
RONDO_VECTORISED(scale_halves,
                 (const uint8_t *restrict pairs, float scale, int32_t zero, float *restrict out, size_t pair_count),
                 (pairs, scale, zero, out, pair_count)) {
  RONDO_EACH_LANE(i, lane, pair_count, out[2 * i] = scale * (float)((pairs[i] & 15) - zero);
                  out[2 * i + 1] = scale * (float)((pairs[i] >> 4) - zero));
}

/* Elements of one group, the first of which is at an even column. */
static void scale_some(uint32_t bits, const uint8_t *bytes, float scale, int32_t zero, float *out, size_t count) {
  if (bits == 8) {
    scale_bytes((const int8_t *)bytes, scale, zero, out, count);
    return;
  }
  scale_halves(bytes, scale, zero, out, count / 2);
  if (count % 2 != 0) out[count - 1] = scale * (float)((bytes[count / 2] & 15) - zero);
}

void rondo_dequantize_row(const rondo_quantized_scheme *scheme, const rondo_quantized_matrix *matrix, size_t row,
                          size_t first, size_t count, float *out) {
  const uint8_t *bytes = matrix->values + row * scheme->row_bytes;
  assert(first % RONDO_QUANTIZED_STEP == 0 && first + count <= scheme->columns && row < scheme->rows);
  for (size_t at = first, length; at < first + count; at += length) {
    const size_t group = at / scheme->group, number = row * scheme->groups + group;
    length = rondo_smaller((group + 1) * scheme->group, first + count) - at;
    scale_some(scheme->bits, bytes + at * scheme->bits / 8, matrix->scales[number],
               rondo_quantized_zero(scheme->bits, matrix->zeros, number), out + (at - first), length);
  }
}
