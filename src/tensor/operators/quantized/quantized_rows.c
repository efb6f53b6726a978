/* SPDX-License-Identifier: MIT
 * Prepares the activations of a product. A block prepares whole rows, so that the scale of a row does not depend on how
 * the work is divided. Threads: any; blocks of one kernel run at once.
 */
#include "tensor/operators/quantized/quantized_rows.h"

#include <math.h>
#include <string.h>

#include "tensor/operators/common/operator_rows.h"

#define LEAST_MAGNITUDE 1e-36f /* the same in quantized_rows.cu */

static size_t padded_columns(size_t columns) {
  return rondo_divide_up(columns, RONDO_QUANTIZED_STEP) * RONDO_QUANTIZED_STEP;
}

rondo_quantized_scheme rondo_quantized_rows_scheme(size_t rows, size_t columns) {
  rondo_quantized_scheme scheme = rondo_quantized_scheme_of(8, 0, rows, columns);
  scheme.row_bytes = padded_columns(columns);
  return scheme;
}

rondo_quantized_rows rondo_quantized_rows_of(const rondo_quantized_scheme *scheme, size_t rows, bool is_int8,
                                             bool for_dots) {
  const uint32_t unit = is_int8 ? RONDO_INT8_UNIT : RONDO_FLOAT_UNIT;
  return (rondo_quantized_rows){.rows = rows,
                                .columns = scheme->columns,
                                .padded = padded_columns(scheme->columns),
                                .group = scheme->group,
                                .groups = scheme->groups,
                                .start_factor = !for_dots           ? 0
                                                : scheme->has_zeros ? -1
                                                                    : -rondo_quantized_middle(scheme->bits),
                                .unit = for_dots && scheme->bits == 4 ? unit : 0,
                                .is_int8 = is_int8};
}

bool rondo_quantized_rows_place(const rondo_quantized_rows *rows, size_t begin, rondo_quantized_rows_layout *out) {
  const size_t starts = rows->start_factor == 0 ? 0 : rows->groups * RONDO_DOT_LANES;
  out->end = begin;
  assert(begin % RONDO_PART_ALIGNMENT == 0);
  return rondo_place_part(&out->end, rows->rows, rows->padded, rows->is_int8 ? 1 : sizeof(float), &out->values) &&
         rondo_place_part(&out->end, rows->rows, starts, sizeof(float), &out->starts) &&
         rondo_place_part(&out->end, rows->rows, 1, sizeof(float), &out->scales);
}

/* Kernel ----------------------------------------------------------------------------------------------------------- */

/* Moves the even columns of each unit before the odd ones. `count` is a multiple of the unit. */
RONDO_INLINE void order_units(const float *x, size_t unit, size_t count, float *out) {
  for (size_t first = 0; first < count; first += unit) {
    for (size_t i = 0; i < unit / 2; i++) {
      out[first + i] = x[first + 2 * i];
      out[first + unit / 2 + i] = x[first + 2 * i + 1];
    }
  }
}

/* `length` columns from `at` on, followed by zeros up to a whole step, in the order of the rows. Returns how many. */
static size_t load_ordered(rondo_type type, const rondo_quantized_rows *shape, const void *x, size_t row, size_t at,
                           float *out) {
  float buffer[RONDO_CHUNK];
  const size_t length = rondo_smaller(shape->columns - at, RONDO_CHUNK);
  const size_t padded = padded_columns(length);
  const float *from = rondo_load_chunk(type, x, row * shape->columns + at, length, buffer);
  if (from != buffer) memcpy(buffer, from, length * sizeof *buffer);
  memset(buffer + length, 0, (padded - length) * sizeof *buffer);
  if (shape->unit == RONDO_FLOAT_UNIT) {
    order_units(buffer, RONDO_FLOAT_UNIT, padded, out);
  } else if (shape->unit == RONDO_INT8_UNIT) {
    order_units(buffer, RONDO_INT8_UNIT, padded, out);
  } else {
    memcpy(out, buffer, padded * sizeof *out);
  }
  return padded;
}

/* NaN if an element is not finite. */
static float largest_magnitude(rondo_type type, const void *x, size_t first, size_t columns) {
  float buffer[RONDO_CHUNK], largest = 0, sum = 0;
  RONDO_EACH_CHUNK(at, length, 0, columns) {
    const float *chunk = rondo_load_chunk(type, x, first + at, length, buffer);
    for (size_t i = 0; i < length; i++) {
      const float magnitude = fabsf(chunk[i]);
      largest = magnitude > largest ? magnitude : largest;
      sum += magnitude - magnitude; /* NaN minus NaN, and infinity minus infinity, are NaN */
    }
  }
  return largest + sum;
}

/* Rounds numbers of at most 127 to nearest, ties to even: adding 1.5 * 2^23 leaves no place for fractions. */
RONDO_INLINE int8_t round_to_byte(float x) { return (int8_t)(int32_t)((x + 12582912.0f) - 12582912.0f); }

RONDO_VECTORISED(round_chunk, (const float *restrict x, float factor, int8_t *restrict out, size_t count),
                 (x, factor, out, count)) {
  RONDO_EACH_LANE(i, lane, count, out[i] = round_to_byte(x[i] * factor));
}

/* Adds the columns of a step to the lanes of its group. */
static void add_float_sums(const float *x, float factor, float *sums) {
  for (size_t half = 0; half < RONDO_QUANTIZED_STEP; half += 2 * RONDO_DOT_LANES) {
    for (size_t l = 0; l < RONDO_DOT_LANES; l++) sums[l] += factor * (x[half + l] + x[half + RONDO_DOT_LANES + l]);
  }
}

static void add_integer_sums(const int8_t *x, int32_t factor, int32_t *sums) {
  for (size_t i = 0; i < RONDO_QUANTIZED_STEP; i++) sums[i / 4] += factor * x[i];
}

static void prepare_floats(rondo_type type, const rondo_quantized_rows *shape, const void *x, size_t row,
                           const rondo_quantized_rows_memory *to) {
  float *values = (float *)to->values + row * shape->padded;
  float *starts = to->starts == NULL ? NULL : (float *)to->starts + row * shape->groups * RONDO_DOT_LANES;
  if (starts != NULL) memset(starts, 0, shape->groups * RONDO_DOT_LANES * sizeof *starts);
  for (size_t at = 0, count; at < shape->columns; at += count) {
    count = load_ordered(type, shape, x, row, at, values + at);
    for (size_t i = at; starts != NULL && i < at + count; i += RONDO_QUANTIZED_STEP)
      add_float_sums(values + i, (float)shape->start_factor, starts + i / shape->group * RONDO_DOT_LANES);
  }
}

static void prepare_integers(rondo_type type, const rondo_quantized_rows *shape, const void *x, size_t row,
                             const rondo_quantized_rows_memory *to) {
  const float largest = largest_magnitude(type, x, row * shape->columns, shape->columns);
  /* 0 for NaN too, which the scale passes on, and for numbers so small that the factor would be infinite. */
  const float factor = largest > LEAST_MAGNITUDE ? 127 / largest : 0;
  int8_t *values = (int8_t *)to->values + row * shape->padded;
  int32_t *starts = to->starts == NULL ? NULL : (int32_t *)to->starts + row * shape->groups * RONDO_DOT_LANES;
  float chunk[RONDO_CHUNK];
  to->scales[row] = largest / 127;
  if (starts != NULL) memset(starts, 0, shape->groups * RONDO_DOT_LANES * sizeof *starts);
  for (size_t at = 0, count; at < shape->columns; at += count) {
    count = load_ordered(type, shape, x, row, at, chunk);
    if (factor == 0) memset(chunk, 0, sizeof chunk);
    round_chunk(chunk, factor, values + at, count);
    for (size_t i = at; starts != NULL && i < at + count; i += RONDO_QUANTIZED_STEP)
      add_integer_sums(values + i, (int32_t)shape->start_factor, starts + i / shape->group * RONDO_DOT_LANES);
  }
}

static void quantized_rows_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_quantized_rows *shape = args[0];
  const void *x = RONDO_ARG(const void *, 1);
  const rondo_quantized_rows_memory to = {RONDO_ARG(void *, 2), RONDO_ARG(void *, 3), RONDO_ARG(float *, 4)};
  RONDO_EACH_ITEM(row, blocks, shape->rows)
    (shape->is_int8 ? prepare_integers : prepare_floats)(type, shape, x, row, &to);
}

RONDO_TYPED_KERNEL(quantized_rows, quantized_rows, RONDO_SCALAR(rondo_quantized_rows), RONDO_READS, RONDO_WRITES,
                   RONDO_WRITES, RONDO_WRITES);

rondo_status rondo_emit_quantized_rows(rondo_emitter *emitter, rondo_type type, const rondo_quantized_rows *rows,
                                       const void *x, const rondo_quantized_rows_memory *memory) {
  assert(rows->is_int8 == (memory->scales != NULL));
  return rondo_emit_kernel(emitter, &quantized_rows_code[type],
                           rondo_emit_grid(emitter, rows->rows, rondo_row_grain(rows->columns)),
                           RONDO_ARGS(rows, &x, &memory->values, &memory->starts, &memory->scales));
}
