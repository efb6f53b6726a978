/* SPDX-License-Identifier: MIT
 * The kernels before and after a library's product of integers. Threads: any; blocks of one kernel run at once.
 */
#include "tensor/operators/integer/integer_library.h"

#include <assert.h>
#include <string.h>

#include "base/environment.h"
#include "tensor/operators/common/operator_rows.h"
#include "tensor/operators/integer/integer_lanes.h"

#define UNIT RONDO_INTEGER_PRODUCT_UNIT
#define STRIP 32 /* columns of b that a block transposes; the same in integer_library.cu */

/* Own kernels compute products of fewer multiplications, for which the copies would take longer, unless the library is
 * to compute all (RONDO_CUBLASLT_LEAST at 1 or less). */
#define LEAST ((double)(1 << 22))

/* Kernels ---------------------------------------------------------------------------------------------------------- */

/* A scalar argument of the kernels; without padding. A factor as it is stored, and the size of its copy: [rows,
 * padded_k] of a, [padded_n, padded_k] of b. */
typedef struct factor_shape {
  size_t rows, columns, padded_n, padded_k;
  uint64_t is_unsigned;
} factor_shape;

/* U8 less 128 is the same bits with the highest one turned. */
static int8_t signed_byte(const factor_shape *shape, const uint8_t *from, size_t at) {
  return (int8_t)rondo_signed_byte(from[at], rondo_to_signed((uint32_t)shape->is_unsigned));
}

/* Arguments of both: shape, factor; copy, sums of its rows. */
static void integer_rows_cpu(rondo_blocks blocks, void *const *args) {
  const factor_shape *shape = args[0];
  const uint8_t *from = RONDO_ARG(const uint8_t *, 1);
  int8_t *to = RONDO_ARG(int8_t *, 2);
  int32_t *sums = RONDO_ARG(int32_t *, 3);
  RONDO_EACH_ITEM(row, blocks, shape->rows) {
    int8_t *copy = to + row * shape->padded_k;
    sums[row] = 0;
    memset(copy, 0, shape->padded_k);
    for (size_t k = 0; k < shape->columns; k++)
      sums[row] += copy[k] = signed_byte(shape, from, row * shape->columns + k);
  }
}

static void integer_columns_cpu(rondo_blocks blocks, void *const *args) {
  const factor_shape *shape = args[0];
  const uint8_t *from = RONDO_ARG(const uint8_t *, 1);
  int8_t *to = RONDO_ARG(int8_t *, 2);
  int32_t *sums = RONDO_ARG(int32_t *, 3);
  RONDO_EACH_TILE(strip, blocks, rondo_divide_up(shape->padded_n, STRIP)) {
    for (size_t j = strip * STRIP; j < rondo_smaller((strip + 1) * STRIP, shape->padded_n); j++) {
      int8_t *copy = to + j * shape->padded_k;
      sums[j] = 0;
      memset(copy, 0, shape->padded_k);
      for (size_t k = 0; k < shape->rows && j < shape->columns; k++)
        sums[j] += copy[k] = signed_byte(shape, from, k * shape->columns + j);
    }
  }
}

RONDO_UNTYPED_KERNEL(integer_rows, integer_library, RONDO_SCALAR(factor_shape), RONDO_READS, RONDO_WRITES,
                     RONDO_WRITES);
RONDO_UNTYPED_KERNEL(integer_columns, integer_library, RONDO_SCALAR(factor_shape), RONDO_READS, RONDO_WRITES,
                     RONDO_WRITES);

/* A scalar argument of the kernel; without padding. */
typedef struct sums_shape {
  size_t rows, columns, pitch, depth; /* pitch: from one row of the sums to the next */
  rondo_integer_ending ending;
} sums_shape;

/* The zero of a copy. */
static uint32_t copied_zero(const void *zeros, uint32_t is_unsigned, size_t at) {
  const int32_t zero = zeros == NULL ? 0 : rondo_byte_at(zeros, is_unsigned, at);
  return (uint32_t)(is_unsigned != 0 ? zero - 128 : zero);
}

/* Products of a less its zero and b less its zero, from those of a and b; modulo 2^32. */
static void correct(const sums_shape *s, const rondo_integer_arrays *arrays, const int32_t *sums, int32_t row_sum,
                    const int32_t *column_sums, size_t column, size_t count, int32_t *out) {
  const uint32_t a = copied_zero(arrays->a_zero, s->ending.a_unsigned, 0);
  for (size_t j = 0; j < count; j++) {
    const uint32_t b = copied_zero(arrays->b_zero, s->ending.b_unsigned, s->ending.zeros_b == 1 ? 0 : column + j);
    out[j] = (int32_t)((uint32_t)sums[column + j] - b * (uint32_t)row_sum - a * (uint32_t)column_sums[column + j] +
                       (uint32_t)s->depth * a * b);
  }
}

/* Arguments: shape; sums, of the rows of a, of the columns of b; a_zero, b_zero, bias, scale, result_zero, result */
static void integer_sums_cpu(rondo_blocks blocks, void *const *args) {
  const sums_shape *s = args[0];
  const int32_t *sums = RONDO_ARG(const int32_t *, 1), *row_sums = RONDO_ARG(const int32_t *, 2);
  const int32_t *column_sums = RONDO_ARG(const int32_t *, 3);
  const rondo_integer_arrays arrays = {.a_zero = RONDO_ARG(const void *, 4),
                                       .b_zero = RONDO_ARG(const void *, 5),
                                       .bias = RONDO_ARG(const void *, 6),
                                       .scale = RONDO_ARG(const float *, 7),
                                       .result_zero = RONDO_ARG(const void *, 8),
                                       .result = RONDO_ARG(void *, 9)};
  RONDO_EACH_ITEM(row, blocks, s->rows) {
    for (size_t column = 0; column < s->columns; column += RONDO_INTEGER_COLUMNS) {
      const size_t count = rondo_smaller(s->columns - column, RONDO_INTEGER_COLUMNS);
      int32_t corrected[RONDO_INTEGER_COLUMNS];
      rondo_integer_channels channels;
      rondo_integer_find_channels(&s->ending, &arrays, column, count, &channels);
      correct(s, &arrays, sums + row * s->pitch, row_sums[row], column_sums, column, count, corrected);
      rondo_integer_store_columns(&s->ending, &channels, corrected, 1, count, arrays.result, row * s->columns + column,
                                  0);
    }
  }
}

RONDO_UNTYPED_KERNEL(integer_sums, integer_library, RONDO_SCALAR(sums_shape), RONDO_READS, RONDO_READS, RONDO_READS,
                     RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES);

/* Work ------------------------------------------------------------------------------------------------------------- */

/* a [m, k] and b [k, n], and where their copies, the sums, and those of the rows of both copies are in the workspace,
 * after the library's part. */
typedef struct integer_work {
  size_t m, n, k, padded_n, padded_k;
  size_t a, b, sums, row_sums, column_sums, end;
} integer_work;

/* False if the library does not take these sizes, or they do not fit a size_t. */
static bool plan(size_t m, size_t n, size_t k, size_t library_bytes, integer_work *out) {
  *out = (integer_work){.m = m, .n = n, .k = k};
  return rondo_checked_align(n, UNIT, &out->padded_n) && rondo_checked_align(k, UNIT, &out->padded_k) &&
         out->padded_k <= RONDO_INTEGER_PRODUCT_DEPTH &&
         rondo_checked_align(library_bytes, RONDO_PART_ALIGNMENT, &out->end) &&
         rondo_place_part(&out->end, m, out->padded_k, 1, &out->a) &&
         rondo_place_part(&out->end, out->padded_n, out->padded_k, 1, &out->b) &&
         rondo_place_part(&out->end, m, out->padded_n, sizeof(int32_t), &out->sums) &&
         rondo_place_part(&out->end, m, 1, sizeof(int32_t), &out->row_sums) &&
         rondo_place_part(&out->end, out->padded_n, 1, sizeof(int32_t), &out->column_sums);
}

static bool is_worth_while(size_t m, size_t n, size_t k) {
  return (double)m * (double)n * (double)k >= LEAST || rondo_option_number(RONDO_OPTION_CUBLASLT_LEAST) <= 1;
}

rondo_status rondo_integer_library_prepare(rondo_resources *resources, uint32_t operation, size_t m, size_t n, size_t k,
                                           size_t *out_workspace_bytes) {
  integer_work work;
  *out_workspace_bytes = 0;
  if (!is_worth_while(m, n, k) || !plan(m, n, k, 0, &work)) return RONDO_OK;
  const rondo_product_shape shape = {
      .type = RONDO_I8, .m = m, .n = work.padded_n, .k = work.padded_k, .batches = 1, .transpose_b = true};
  RONDO_TRY(rondo_resources_add_product(resources, operation, &shape, out_workspace_bytes));
  if (rondo_resources_product(resources, operation) == NULL) return RONDO_OK;
  if (!plan(m, n, k, *out_workspace_bytes, &work))
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                      "the size of the workspace does not fit in %zu bits: make the factors smaller",
                      8 * sizeof(size_t));
  *out_workspace_bytes = work.end;
  return RONDO_OK;
}

/* Emits the copies of a and b. */
static rondo_status emit_factors(rondo_emitter *emitter, const rondo_operation *operation,
                                 const rondo_integer_ending *ending, const integer_work *work) {
  const factor_shape a = {work->m, work->k, work->padded_n, work->padded_k, ending->a_unsigned};
  const factor_shape b = {work->k, work->n, work->padded_n, work->padded_k, ending->b_unsigned};
  void *const a_copy = rondo_emit_part(emitter, work->a), *const row_sums = rondo_emit_part(emitter, work->row_sums);
  void *const b_copy = rondo_emit_part(emitter, work->b);
  void *const column_sums = rondo_emit_part(emitter, work->column_sums);
  RONDO_TRY(rondo_emit_operands(
      emitter, operation, &integer_rows_code, rondo_emit_grid(emitter, work->m, rondo_row_grain(work->padded_k)),
      RONDO_OPERANDS(RONDO_OBJECT(a), RONDO_INPUT(0), RONDO_OBJECT(a_copy), RONDO_OBJECT(row_sums))));
  if (ending->b_transposed != 0) { /* rows up to padded_n are not written: their sums are not read */
    const factor_shape rows = {work->n, work->k, work->padded_n, work->padded_k, ending->b_unsigned};
    return rondo_emit_operands(
        emitter, operation, &integer_rows_code, rondo_emit_grid(emitter, work->n, rondo_row_grain(work->padded_k)),
        RONDO_OPERANDS(RONDO_OBJECT(rows), RONDO_INPUT(1), RONDO_OBJECT(b_copy), RONDO_OBJECT(column_sums)));
  }
  return rondo_emit_operands(
      emitter, operation, &integer_columns_code, rondo_tile_grid(rondo_divide_up(work->padded_n, STRIP)),
      RONDO_OPERANDS(RONDO_OBJECT(b), RONDO_INPUT(1), RONDO_OBJECT(b_copy), RONDO_OBJECT(column_sums)));
}

static rondo_status emit_sums(rondo_emitter *emitter, const rondo_operation *operation,
                              const rondo_integer_ending *ending, const integer_work *work) {
  const sums_shape shape = {work->m, work->n, work->padded_n, work->k, *ending};
  void *const sums = rondo_emit_part(emitter, work->sums), *const row_sums = rondo_emit_part(emitter, work->row_sums);
  void *const column_sums = rondo_emit_part(emitter, work->column_sums);
  return rondo_emit_operands(
      emitter, operation, &integer_sums_code, rondo_emit_grid(emitter, work->m, rondo_row_grain(work->n)),
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_OBJECT(sums), RONDO_OBJECT(row_sums), RONDO_OBJECT(column_sums),
                     RONDO_INPUT(RONDO_INTEGER_A_ZERO), RONDO_INPUT(RONDO_INTEGER_B_ZERO),
                     RONDO_INPUT(RONDO_INTEGER_BIAS), RONDO_INPUT(RONDO_INTEGER_SCALE),
                     RONDO_INPUT(RONDO_INTEGER_RESULT_ZERO), RONDO_RESULT(0)));
}

rondo_status rondo_emit_integer_library(rondo_emitter *emitter, const rondo_operation *operation,
                                        const rondo_integer_ending *ending, size_t m, size_t n, size_t k) {
  integer_work work;
  const bool fits = plan(m, n, k, rondo_product_workspace(rondo_emit_product(emitter)), &work);
  assert(fits);
  (void)fits;
  RONDO_TRY(emit_factors(emitter, operation, ending, &work));
  RONDO_TRY(rondo_emit_product_call(emitter, &(rondo_product_memory){.a = rondo_emit_part(emitter, work.a),
                                                                     .b = rondo_emit_part(emitter, work.b),
                                                                     .c = rondo_emit_part(emitter, work.sums),
                                                                     .workspace = rondo_emit_workspace(emitter)}));
  return emit_sums(emitter, operation, ending, &work);
}
