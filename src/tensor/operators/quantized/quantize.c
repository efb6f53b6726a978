/* SPDX-License-Identifier: MIT
 * rondo_quantize: a matrix of floats to 8-bit or 4-bit integers, group by group. Threads: any.
 */
#include <math.h>
#include <string.h>

#include "tensor/operators/quantized/quantized_scheme.h"

/* The smallest and the largest value, and how a group is rounded to them. */
typedef struct rounding {
  float scale;
  int32_t zero, least, most;
} rounding;

static rounding symmetric(const float *x, size_t count, uint32_t bits) {
  const int32_t most = bits == 4 ? 7 : 127, zero = rondo_quantized_middle(bits);
  float largest = 0;
  for (size_t i = 0; i < count; i++) largest = fmaxf(largest, fabsf(x[i]));
  return (rounding){largest / (float)most, zero, zero - most, zero + most};
}

/* The range contains 0, which a value represents exactly. The limits are divided before they are subtracted, because
 * their difference may overflow. */
static rounding asymmetric(const float *x, size_t count, uint32_t bits) {
  const int32_t least = bits == 4 ? 0 : -128, most = bits == 4 ? 15 : 127;
  float low = 0, high = 0;
  for (size_t i = 0; i < count; i++) {
    low = fminf(low, x[i]);
    high = fmaxf(high, x[i]);
  }
  const float steps = (float)(most - least), scale = high / steps - low / steps;
  const int32_t zero = scale > 0 ? least - (int32_t)lrintf(low / scale) : rondo_quantized_middle(bits);
  return (rounding){scale, zero < most ? zero : most, least, most};
}

static int32_t round_one(const rounding *r, float x) {
  if (r->scale == 0) return r->zero;
  const float steps = rintf(x / r->scale) + (float)r->zero;
  return (int32_t)fmaxf((float)r->least, fminf((float)r->most, steps));
}

static void put_value(const rondo_quantized_scheme *scheme, uint8_t *row, size_t column, int32_t value) {
  if (scheme->bits == 8) {
    row[column] = (uint8_t)value;
  } else if (column % 2 == 0) {
    row[column / 2] = (uint8_t)value; /* the upper half is 0 until the next column is put */
  } else {
    row[column / 2] = (uint8_t)(row[column / 2] | value << 4);
  }
}

typedef struct target {
  uint8_t *values;
  float *scales;
  uint8_t *zeros; /* NULL: symmetric */
} target;

static void quantize_row(const rondo_quantized_scheme *scheme, const float *x, size_t row, const target *to) {
  uint8_t *values = to->values + row * scheme->row_bytes;
  for (size_t group = 0; group < scheme->groups; group++) {
    const size_t first = group * scheme->group, count = rondo_smaller(scheme->columns - first, scheme->group);
    const rounding r = (to->zeros == NULL ? symmetric : asymmetric)(x + first, count, scheme->bits);
    to->scales[row * scheme->groups + group] = r.scale;
    if (to->zeros != NULL) to->zeros[row * scheme->groups + group] = (uint8_t)r.zero;
    for (size_t i = first; i < first + count; i++) put_value(scheme, values, i, round_one(&r, x[i]));
  }
}

static rondo_status check_finite(const char *call, const float *matrix, size_t rows, size_t columns) {
  for (size_t row = 0; row < rows; row++) {
    for (size_t i = 0; i < columns; i++) {
      if (isfinite(matrix[row * columns + i])) continue;
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                        "%s: the element in row %zu and column %zu is %g: only finite numbers can be quantised", call,
                        row, i, (double)matrix[row * columns + i]);
    }
  }
  return RONDO_OK;
}

rondo_status rondo_quantize(const float *matrix, size_t rows, size_t columns, const rondo_quantized_options *options,
                            void *out_values, float *out_scales, void *out_zeros) {
  static const char call[] = "rondo_quantize";
  rondo_quantized_options given;
  rondo_shape shape;
  RONDO_TRY(rondo_require(call, "matrix", matrix));
  RONDO_TRY(rondo_require(call, "out_values", out_values));
  RONDO_TRY(rondo_require(call, "out_scales", out_scales));
  RONDO_TRY(rondo_quantized_read(call, options, &given));
  RONDO_TRY(rondo_shape_make(call, RONDO_F32, (size_t[]){rows, columns}, 2, &shape));
  RONDO_TRY(check_finite(call, matrix, rows, columns));
  const rondo_quantized_scheme scheme = rondo_quantized_scheme_of(given.bits, given.group, rows, columns);
  const target to = {out_values, out_scales, out_zeros};
  for (size_t row = 0; row < rows; row++) quantize_row(&scheme, matrix + row * columns, row, &to);
  return RONDO_OK;
}
