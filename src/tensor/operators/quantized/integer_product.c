/* SPDX-License-Identifier: MIT
 * Tiles of products of 8-bit integers, as integer_product.h says. Pairs of products are added by one instruction of
 * AVX2, from bytes that become 16-bit integers in registers. Threads: any.
 */
#include "tensor/operators/quantized/integer_product.h"

#include <assert.h>
#include <math.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_AVX2 /* the compiler; the processor is asked */
#include <immintrin.h>
#endif

#define COLUMNS RONDO_INTEGER_COLUMNS
#define DEPTH RONDO_INTEGER_DEPTH
#define STEP RONDO_INTEGER_STEP

/* Forms ------------------------------------------------------------------------------------------------------------ */

/* Sums wrap around, so they are unsigned. */
static void multiply_plain(rondo_integer_tile *tile, size_t depth, bool b_unsigned) {
  for (size_t i = 0; i < tile->rows; i++) {
    uint32_t *sums = (uint32_t *)&tile->sums[i * COLUMNS];
    for (size_t k = 0; k < depth; k++) {
      const uint8_t *b = &tile->b[k * COLUMNS];
      const int32_t a = tile->a[i * DEPTH + k];
      for (size_t j = 0; j < tile->columns; j++)
        sums[j] += (uint32_t)(a * (b_unsigned ? (int32_t)b[j] : (int32_t)(int8_t)b[j]));
    }
  }
}

#ifdef HAS_AVX2

#define FOR_AVX2 __attribute__((target("avx2")))

FOR_AVX2 RONDO_INLINE __m256i load_16(const uint8_t *b, bool b_unsigned) {
  const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)b);
  return b_unsigned ? _mm256_cvtepu8_epi16(bytes) : _mm256_cvtepi8_epi16(bytes);
}

/* Columns k and k + 1 of a row of a, for all lanes. */
FOR_AVX2 RONDO_INLINE __m256i pair_of(const int16_t *a) {
  int32_t pair;
  memcpy(&pair, a, sizeof pair);
  return _mm256_set1_epi32(pair);
}

FOR_AVX2 RONDO_INLINE void add_sums(int32_t *sums, __m256i low, __m256i high) {
  __m256i *to = (__m256i *)(void *)sums;
  _mm256_storeu_si256(to, _mm256_add_epi32(_mm256_loadu_si256(to), _mm256_permute2x128_si256(low, high, 0x20)));
  _mm256_storeu_si256(to + 1, _mm256_add_epi32(_mm256_loadu_si256(to + 1), _mm256_permute2x128_si256(low, high, 0x31)));
}

/* The statements for each row that is computed at once: compilers keep no array in registers at -O2. */
#define EACH_OF_4(ROW) ROW(0) ROW(1) ROW(2) ROW(3)
#define EACH_OF_1(ROW) ROW(0)
#define BEGIN_ROW(i) __m256i low##i = _mm256_setzero_si256(), high##i = low##i;
#define ADD_ROW(i)                                                      \
  {                                                                     \
    const __m256i pair = pair_of(a + (i)*DEPTH + k);                    \
    low##i = _mm256_add_epi32(low##i, _mm256_madd_epi16(pair, first));  \
    high##i = _mm256_add_epi32(high##i, _mm256_madd_epi16(pair, last)); \
  }
#define STORE_ROW(i) add_sums(sums + (i)*COLUMNS, low##i, high##i);

/* Sixteen columns of some rows. */
#define MULTIPLY_ROWS(name, EACH)                                                                                     \
  FOR_AVX2 RONDO_INLINE void name(const int16_t *a, const uint8_t *b, size_t depth, bool b_unsigned, int32_t *sums) { \
    EACH(BEGIN_ROW)                                                                                                   \
    for (size_t k = 0; k < depth; k += 2) {                                                                           \
      const __m256i even = load_16(b + k * COLUMNS, b_unsigned), odd = load_16(b + (k + 1) * COLUMNS, b_unsigned);    \
      const __m256i first = _mm256_unpacklo_epi16(even, odd), last = _mm256_unpackhi_epi16(even, odd);                \
      EACH(ADD_ROW)                                                                                                   \
    }                                                                                                                 \
    EACH(STORE_ROW)                                                                                                   \
  }
MULTIPLY_ROWS(multiply_4, EACH_OF_4)
MULTIPLY_ROWS(multiply_1, EACH_OF_1)

#define ROWS 4

FOR_AVX2 RONDO_INLINE void multiply_all(rondo_integer_tile *tile, size_t depth, bool b_unsigned) {
  for (size_t j = 0; j < tile->columns; j += STEP) {
    size_t i = 0;
    for (; i + ROWS <= tile->rows; i += ROWS)
      multiply_4(tile->a + i * DEPTH, tile->b + j, depth, b_unsigned, tile->sums + i * COLUMNS + j);
    for (; i < tile->rows; i++)
      multiply_1(tile->a + i * DEPTH, tile->b + j, depth, b_unsigned, tile->sums + i * COLUMNS + j);
  }
}

FOR_AVX2 static void multiply_avx2(rondo_integer_tile *tile, size_t depth, bool b_unsigned) {
  if (b_unsigned)
    multiply_all(tile, depth, true);
  else
    multiply_all(tile, depth, false);
}

#endif

void rondo_integer_multiply(rondo_integer_tile *tile, size_t depth, bool b_unsigned) {
  assert(depth <= DEPTH && tile->rows <= RONDO_INTEGER_ROWS && tile->columns <= COLUMNS);
#ifdef HAS_AVX2
  if (rondo_vectors_used() >= RONDO_VECTORS_AVX2) {
    multiply_avx2(tile, depth, b_unsigned);
    return;
  }
#endif
  multiply_plain(tile, depth, b_unsigned);
}

void rondo_integer_subtract(rondo_integer_tile *tile, size_t depth, const int32_t *zeros) {
  for (size_t i = 0; i < tile->rows; i++) {
    int32_t total = 0;
    for (size_t k = 0; k < depth; k++) total += tile->a[i * DEPTH + k];
    for (size_t j = 0; j < tile->columns; j++) {
      int32_t *sum = &tile->sums[i * COLUMNS + j];
      *sum = (int32_t)((uint32_t)*sum - (uint32_t)(total * zeros[j]));
    }
  }
}

/* Endings ---------------------------------------------------------------------------------------------------------- */

RONDO_INLINE uint8_t limited(float x, bool is_unsigned) {
  const float low = is_unsigned ? 0 : -128, high = is_unsigned ? 255 : 127;
  const float inside = x > low ? (x < high ? x : high) : low; /* NaN: the lowest */
  return (uint8_t)(int32_t)inside;
}

void rondo_integer_store(const rondo_integer_ending *e, const rondo_integer_arrays *arrays,
                         const rondo_integer_tile *tile, size_t row, size_t channel, size_t at) {
  const int32_t *sums = tile->sums + row * COLUMNS;
  if (e->has_scale == 0) {
    memcpy((int32_t *)arrays->result + at, sums, tile->columns * sizeof *sums);
    return;
  }
  const float zero = arrays->result_zero == NULL ? 0 : (float)rondo_byte_at(arrays->result_zero, e->result_unsigned, 0);
  uint8_t *to = (uint8_t *)arrays->result + at;
  for (size_t j = 0; j < tile->columns; j++) {
    const size_t of = e->by_row != 0 ? channel : channel + j;
    const uint32_t bias = e->biases == 0 ? 0 : (uint32_t)arrays->bias[e->biases == 1 ? 0 : of];
    const float scale = arrays->scale[e->scales == 1 ? 0 : of];
    to[j] = limited(rintf((float)(int32_t)((uint32_t)sums[j] + bias) * scale) + zero, e->result_unsigned != 0);
  }
}

/* Rows ------------------------------------------------------------------------------------------------------------- */

enum { RESULT_UNSIGNED = 3 }; /* flag; conv_integer has those of windows, too */

static rondo_status require_bytes(const rondo_program *program, const rondo_operation *operation, uint32_t input) {
  const rondo_type type = rondo_operation_input(program, operation, input)->type;
  if (type == RONDO_I8 || type == RONDO_U8) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_TYPE, "%s is %s; it must be i8 or u8",
                              operation->row->inputs[input], rondo_type_name(type));
}

/* An optional array of this type, with one element, or one for each of `channels`. */
static rondo_status require_array(const rondo_program *program, const rondo_operation *operation, uint32_t input,
                                  rondo_type type, size_t channels) {
  const rondo_shape *shape = rondo_operation_input(program, operation, input);
  if (shape == NULL) return RONDO_OK;
  const size_t elements = rondo_shape_elements(shape);
  if (shape->type == type && (elements == 1 || (shape->rank == 1 && elements == channels))) return RONDO_OK;
  return rondo_fail_operation(program, operation, shape->type != type ? RONDO_REASON_TYPE : RONDO_REASON_SHAPE,
                              "%s must be %s, a scalar or [%zu]", operation->row->inputs[input], rondo_type_name(type),
                              channels);
}

rondo_status rondo_integer_require(const rondo_program *program, const rondo_operation *operation, size_t channels,
                                   rondo_type *out_type) {
  const rondo_type made = operation->attributes.flags[RESULT_UNSIGNED] ? RONDO_U8 : RONDO_I8;
  const bool has_scale = operation->inputs[RONDO_INTEGER_SCALE] != RONDO_NO_VALUE;
  RONDO_TRY(require_bytes(program, operation, 0));
  RONDO_TRY(require_bytes(program, operation, 1));
  const rondo_type a = rondo_operation_input(program, operation, 0)->type;
  const rondo_type b = rondo_operation_input(program, operation, 1)->type;
  RONDO_TRY(require_array(program, operation, RONDO_INTEGER_A_ZERO, a, 1));
  RONDO_TRY(require_array(program, operation, RONDO_INTEGER_B_ZERO, b, channels));
  RONDO_TRY(require_array(program, operation, RONDO_INTEGER_BIAS, RONDO_I32, channels));
  RONDO_TRY(require_array(program, operation, RONDO_INTEGER_SCALE, RONDO_F32, channels));
  RONDO_TRY(require_array(program, operation, RONDO_INTEGER_RESULT_ZERO, made, 1));
  if (!has_scale && (operation->inputs[RONDO_INTEGER_BIAS] != RONDO_NO_VALUE ||
                     operation->inputs[RONDO_INTEGER_RESULT_ZERO] != RONDO_NO_VALUE))
    return rondo_fail_operation(program, operation, RONDO_REASON_BAD_OPTIONS,
                                "a bias or a zero of the result needs a scale");
  *out_type = has_scale ? made : RONDO_I32;
  return RONDO_OK;
}

static uint32_t elements_of(const rondo_emitter *emitter, const rondo_operation *operation, uint32_t input) {
  const rondo_shape *shape = rondo_emit_shape(emitter, operation->inputs[input]);
  return shape == NULL ? 0 : (uint32_t)rondo_shape_elements(shape);
}

rondo_integer_ending rondo_integer_ending_of(const rondo_emitter *emitter, const rondo_operation *operation,
                                             bool by_row) {
  return (rondo_integer_ending){.a_unsigned = rondo_emit_shape(emitter, operation->inputs[0])->type == RONDO_U8,
                                .b_unsigned = rondo_emit_shape(emitter, operation->inputs[1])->type == RONDO_U8,
                                .zeros_b = elements_of(emitter, operation, RONDO_INTEGER_B_ZERO),
                                .scales = elements_of(emitter, operation, RONDO_INTEGER_SCALE),
                                .biases = elements_of(emitter, operation, RONDO_INTEGER_BIAS),
                                .has_scale = operation->inputs[RONDO_INTEGER_SCALE] != RONDO_NO_VALUE,
                                .result_unsigned = operation->attributes.flags[RESULT_UNSIGNED],
                                .by_row = by_row};
}

rondo_status rondo_integer_read(const char *call, const rondo_integer_product_options *options, rondo_value *out_inputs,
                                rondo_attributes *out_attributes) {
  rondo_integer_product_options given;
  RONDO_TRY(rondo_versioned_read("rondo_integer_product_options", options, &given, sizeof given));
  out_inputs[RONDO_INTEGER_A_ZERO] = given.a_zero;
  out_inputs[RONDO_INTEGER_B_ZERO] = given.b_zero;
  out_inputs[RONDO_INTEGER_BIAS] = given.bias;
  out_inputs[RONDO_INTEGER_SCALE] = given.scale;
  out_inputs[RONDO_INTEGER_RESULT_ZERO] = given.result_zero;
  out_attributes->flags[RESULT_UNSIGNED] = given.result_type != RONDO_I8;
  if (given.result_type == 0 || given.result_type == RONDO_I8 || given.result_type == RONDO_U8) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: the type of the result is %d: use RONDO_I8, RONDO_U8, or 0 for RONDO_U8", call,
                    (int)given.result_type);
}
