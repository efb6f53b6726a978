/* SPDX-License-Identifier: MIT
 * Tiles of products of 8-bit integers, as integer_product.h says. Pairs of products are added by one instruction of
 * AVX2, from bytes that become 16-bit integers in registers. Threads: any.
 */
#include "tensor/operators/integer/integer_product.h"

#include <assert.h>
#include <math.h>

#include "tensor/operators/integer/integer_lanes.h"
#include "tensor/run/packed_state.h"

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

#ifdef RONDO_HAS_X86

#define FOR_AVX2 RONDO_FOR_AVX2

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
#ifdef RONDO_HAS_X86
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

/* to[i] = x[i] a / b, or for all i that of x[0]. */
RONDO_VECTORISED(rescale, (const float *restrict x, bool is_one, float a, float b, float *restrict to, size_t count),
                 (x, is_one, a, b, to, count)) {
  const float first = a * x[0] / b;
  if (is_one)
    RONDO_EACH_LANE(i, lane, count, to[i] = first);
  else
    RONDO_EACH_LANE(i, lane, count, to[i] = a * x[i] / b);
}

static void copy_biases(const int32_t *biases, bool is_one, uint32_t *to, size_t count) {
  if (!is_one) memcpy(to, biases, count * sizeof *to);
  for (size_t i = 0; i < count && is_one; i++) to[i] = (uint32_t)biases[0];
}

void rondo_integer_find_channels(const rondo_integer_ending *e, const rondo_integer_arrays *arrays, size_t first,
                                 size_t count, rondo_integer_channels *out) {
  const bool has_floats = e->biases != 0 && e->bias_float != 0, has_integers = e->biases != 0 && e->bias_float == 0;
  const size_t bias = e->biases == 1 ? 0 : first;
  assert(count <= RONDO_INTEGER_COLUMNS);
  if (e->has_scale == 0) return;
  out->zero = arrays->result_zero == NULL ? 0 : (float)rondo_byte_at(arrays->result_zero, e->result_unsigned, 0);
  rescale(arrays->scale + (e->scales == 1 ? 0 : first), e->scales == 1, e->a_scale, e->result_scale, out->factor,
          count);
  memset(out->added, 0, count * sizeof *out->added);
  memset(out->offset, 0, count * sizeof *out->offset);
  if (has_integers) copy_biases((const int32_t *)arrays->bias + bias, e->biases == 1, out->added, count);
  if (has_floats) rescale((const float *)arrays->bias + bias, e->biases == 1, 1, e->result_scale, out->offset, count);
}

/* A sum as a float. */
RONDO_INLINE float scaled(int32_t sum, uint32_t added, float factor, float offset) {
  return (float)(int32_t)((uint32_t)sum + added) * factor + offset;
}

/* What an activation does to floats: `least` is 0 for one, and else -infinity. */
RONDO_INLINE float at_least(float x, float least) { return x > least ? x : least; }
static float least_of(const rondo_integer_ending *e) { return e->relu != 0 ? 0 : -INFINITY; }

RONDO_VECTORISED(round_row,
                 (const int32_t *restrict sums, uint32_t added, float factor, float offset, float least, float zero,
                  bool is_unsigned, uint8_t *restrict to, size_t count),
                 (sums, added, factor, offset, least, zero, is_unsigned, to, count)) {
  RONDO_EACH_LANE(j, lane, count,
                  to[j] = limited(rintf(at_least(scaled(sums[j], added, factor, offset), least)) + zero, is_unsigned));
}

#ifdef RONDO_HAS_X86

/* What is the same for some sums: the limits of a result, and its zero. Limits are less the zero, so that what is
 * between them rounds to an integer that vectors hold. */
typedef struct limits {
  float low, high;
  int32_t zero;
  bool is_unsigned;
} limits;

static limits limits_of(const rondo_integer_ending *e, const rondo_integer_channels *c) {
  const bool is_unsigned = e->result_unsigned != 0;
  const float low = (is_unsigned ? 0.0f : -128.0f) - c->zero;
  return (limits){e->relu != 0 ? 0 : low, (is_unsigned ? 255.0f : 127.0f) - c->zero, (int32_t)c->zero, is_unsigned};
}

/* As `limited` of `scaled`: where the first operand of max is no number, the result is the second one. */
FOR_AVX2 RONDO_INLINE __m256i rounded_8(const limits *l, const int32_t *sums, __m256i added, __m256 factor,
                                        __m256 offset) {
  const __m256i sum = _mm256_add_epi32(_mm256_loadu_si256((const __m256i *)(const void *)sums), added);
  const __m256 x = _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(sum), factor), offset);
  const __m256 inside = _mm256_min_ps(_mm256_max_ps(x, _mm256_set1_ps(l->low)), _mm256_set1_ps(l->high));
  return _mm256_add_epi32(_mm256_cvtps_epi32(inside), _mm256_set1_epi32(l->zero));
}

/* Packing works in halves of vectors. */
FOR_AVX2 RONDO_INLINE void store_32(bool is_unsigned, __m256i a, __m256i b, __m256i c, __m256i d, uint8_t *to) {
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i first = _mm256_packs_epi32(a, b), last = _mm256_packs_epi32(c, d);
  const __m256i bytes = is_unsigned ? _mm256_packus_epi16(first, last) : _mm256_packs_epi16(first, last);
  _mm256_storeu_si256((__m256i *)(void *)to, _mm256_permutevar8x32_epi32(bytes, order));
}

/* Both return how many were done: whole groups of 32. */
FOR_AVX2 static size_t row_groups_avx2(const limits *l, const int32_t *sums, uint32_t added, float factor, float offset,
                                       uint8_t *to, size_t count) {
  const __m256i more = _mm256_set1_epi32((int32_t)added);
  const __m256 by = _mm256_set1_ps(factor), shift = _mm256_set1_ps(offset);
  size_t j = 0;
  for (; j + 32 <= count; j += 32)
    store_32(l->is_unsigned, rounded_8(l, sums + j, more, by, shift), rounded_8(l, sums + j + 8, more, by, shift),
             rounded_8(l, sums + j + 16, more, by, shift), rounded_8(l, sums + j + 24, more, by, shift), to + j);
  return j;
}

FOR_AVX2 RONDO_INLINE __m256i rounded_columns(const limits *l, const int32_t *sums, const rondo_integer_channels *c,
                                              size_t j) {
  return rounded_8(l, sums + j, _mm256_loadu_si256((const __m256i *)(const void *)(c->added + j)),
                   _mm256_loadu_ps(c->factor + j), _mm256_loadu_ps(c->offset + j));
}

FOR_AVX2 static size_t column_groups_avx2(const limits *l, const int32_t *sums, const rondo_integer_channels *c,
                                          uint8_t *to, size_t count) {
  size_t j = 0;
  for (; j + 32 <= count; j += 32)
    store_32(l->is_unsigned, rounded_columns(l, sums, c, j), rounded_columns(l, sums, c, j + 8),
             rounded_columns(l, sums, c, j + 16), rounded_columns(l, sums, c, j + 24), to + j);
  return j;
}

/* Sixteen columns from column j on, of which those in `inside` exist. */
RONDO_FOR_AVX512 RONDO_INLINE __m512i rounded_16(const limits *l, const int32_t *sums, const rondo_integer_channels *c,
                                                 size_t j, __mmask16 inside) {
  const __m512i sum =
      _mm512_add_epi32(_mm512_maskz_loadu_epi32(inside, sums + j), _mm512_maskz_loadu_epi32(inside, c->added + j));
  const __m512 x = _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_maskz_loadu_ps(inside, c->factor + j)),
                                 _mm512_maskz_loadu_ps(inside, c->offset + j));
  const __m512 limited = _mm512_min_ps(_mm512_max_ps(x, _mm512_set1_ps(l->low)), _mm512_set1_ps(l->high));
  return _mm512_add_epi32(_mm512_cvtps_epi32(limited), _mm512_set1_epi32(l->zero));
}

RONDO_FOR_AVX512 static void row_of_columns_avx512(const limits *l, const int32_t *sums,
                                                   const rondo_integer_channels *c, uint8_t *to, size_t count) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __mmask16 all = 0xffff;
  size_t j = 0;
  for (; j + 64 <= count; j += 64) { /* packing works in quarters of vectors */
    const __m512i first = _mm512_packs_epi32(rounded_16(l, sums, c, j, all), rounded_16(l, sums, c, j + 16, all));
    const __m512i last = _mm512_packs_epi32(rounded_16(l, sums, c, j + 32, all), rounded_16(l, sums, c, j + 48, all));
    const __m512i bytes = l->is_unsigned ? _mm512_packus_epi16(first, last) : _mm512_packs_epi16(first, last);
    _mm512_storeu_si512(to + j, _mm512_permutexvar_epi32(order, bytes));
  }
  for (; j < count; j += 16) {
    const __mmask16 inside = count - j < 16 ? (__mmask16)((1u << (count - j)) - 1) : all;
    _mm_mask_storeu_epi8(to + j, inside, _mm512_cvtepi32_epi8(rounded_16(l, sums, c, j, inside)));
  }
}

#endif

/* Columns first .. count - 1. */
RONDO_VECTORISED(round_columns,
                 (const int32_t *restrict sums, const rondo_integer_channels *restrict c, size_t first, float least,
                  bool is_unsigned, uint8_t *restrict to, size_t count),
                 (sums, c, first, least, is_unsigned, to, count)) {
  const float zero = c->zero;
  for (size_t j = first; j < count; j++)
    to[j] =
        limited(rintf(at_least(scaled(sums[j], c->added[j], c->factor[j], c->offset[j]), least)) + zero, is_unsigned);
}

static void store_bytes(const rondo_integer_ending *e, const rondo_integer_channels *c, const int32_t *sums,
                        size_t rows, size_t columns, uint8_t *to, size_t step) {
#ifdef RONDO_HAS_X86
  const limits l = limits_of(e, c);
  const rondo_vectors vectors = rondo_vectors_used();
#endif
  for (size_t i = 0; i < rows; i++, sums += COLUMNS, to += step) {
    size_t done = 0;
#ifdef RONDO_HAS_X86
    if (vectors == RONDO_VECTORS_AVX512) {
      row_of_columns_avx512(&l, sums, c, to, columns);
      continue;
    }
    if (vectors == RONDO_VECTORS_AVX2) done = column_groups_avx2(&l, sums, c, to, columns);
#endif
    if (done < columns) round_columns(sums, c, done, least_of(e), e->result_unsigned != 0, to, columns);
  }
}

RONDO_INLINE float activated(float x, bool has_relu) { return has_relu && x < 0 ? 0 : x; }

void rondo_integer_store_row(const rondo_integer_ending *e, const rondo_integer_channels *c, size_t index,
                             const int32_t *sums, size_t count, void *result, size_t at) {
  if (e->has_scale == 0) {
    memcpy((int32_t *)result + at, sums, count * sizeof *sums);
  } else if (e->result_float == 0) {
    size_t done = 0;
#ifdef RONDO_HAS_X86
    const limits l = limits_of(e, c);
    if (rondo_vectors_used() >= RONDO_VECTORS_AVX2)
      done =
          row_groups_avx2(&l, sums, c->added[index], c->factor[index], c->offset[index], (uint8_t *)result + at, count);
#endif
    round_row(sums + done, c->added[index], c->factor[index], c->offset[index], least_of(e), c->zero,
              e->result_unsigned != 0, (uint8_t *)result + at + done, count - done);
  } else {
    float *to = (float *)result + at;
    for (size_t j = 0; j < count; j++)
      to[j] = activated(scaled(sums[j], c->added[index], c->factor[index], c->offset[index]), e->relu != 0);
  }
}

void rondo_integer_store_columns(const rondo_integer_ending *e, const rondo_integer_channels *c, const int32_t *sums,
                                 size_t rows, size_t columns, void *result, size_t at, size_t step) {
  assert(columns <= COLUMNS);
  if (e->has_scale != 0 && e->result_float == 0) {
    store_bytes(e, c, sums, rows, columns, (uint8_t *)result + at, step);
    return;
  }
  for (size_t i = 0; i < rows; i++, sums += COLUMNS, at += step) {
    float *to = (float *)result + at;
    if (e->has_scale == 0) memcpy(to, sums, columns * sizeof *sums);
    for (size_t j = 0; e->has_scale != 0 && j < columns; j++)
      to[j] = activated(scaled(sums[j], c->added[j], c->factor[j], c->offset[j]), e->relu != 0);
  }
}

/* Rows ------------------------------------------------------------------------------------------------------------- */

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

static bool has_input(const rondo_operation *operation, uint32_t input) {
  return operation->inputs[input] != RONDO_NO_VALUE;
}

static rondo_type result_type(const rondo_operation *operation) {
  return (rondo_type)operation->attributes.sizes[RONDO_INTEGER_TYPE];
}

static rondo_status require_ending(const rondo_program *program, const rondo_operation *operation) {
  const rondo_attributes *attributes = &operation->attributes;
  const bool has_result_zero = has_input(operation, RONDO_INTEGER_RESULT_ZERO);
  if (!has_input(operation, RONDO_INTEGER_SCALE) &&
      (has_input(operation, RONDO_INTEGER_BIAS) || has_result_zero ||
       attributes->sizes[RONDO_INTEGER_ACTIVATION] != RONDO_ACTIVATION_NONE || result_type(operation) == RONDO_F32))
    return rondo_fail_operation(program, operation, RONDO_REASON_BAD_OPTIONS,
                                "a bias, an activation, or a result that is F32 or has a zero needs a scale");
  if (result_type(operation) == RONDO_F32 && (has_result_zero || attributes->numbers[RONDO_INTEGER_RESULT_SCALE] != 1))
    return rondo_fail_operation(program, operation, RONDO_REASON_BAD_OPTIONS,
                                "a result that is F32 has no zero and no scale");
  return RONDO_OK;
}

rondo_status rondo_integer_require(const rondo_program *program, const rondo_operation *operation, size_t channels,
                                   rondo_type *out_type) {
  RONDO_TRY(require_bytes(program, operation, 0));
  RONDO_TRY(require_bytes(program, operation, 1));
  const rondo_type a = rondo_operation_input(program, operation, 0)->type;
  const rondo_type b = rondo_operation_input(program, operation, 1)->type;
  const rondo_shape *bias = rondo_operation_input(program, operation, RONDO_INTEGER_BIAS);
  const rondo_type of_bias = bias != NULL && bias->type == RONDO_F32 ? RONDO_F32 : RONDO_I32;
  RONDO_TRY(require_array(program, operation, RONDO_INTEGER_A_ZERO, a, 1));
  RONDO_TRY(require_array(program, operation, RONDO_INTEGER_B_ZERO, b, channels));
  RONDO_TRY(require_array(program, operation, RONDO_INTEGER_BIAS, of_bias, channels));
  RONDO_TRY(require_array(program, operation, RONDO_INTEGER_SCALE, RONDO_F32, channels));
  RONDO_TRY(require_ending(program, operation));
  RONDO_TRY(require_array(program, operation, RONDO_INTEGER_RESULT_ZERO, result_type(operation), 1));
  *out_type = has_input(operation, RONDO_INTEGER_SCALE) ? result_type(operation) : RONDO_I32;
  return RONDO_OK;
}

static rondo_status keep_nothing(void *object) {
  (void)object;
  return RONDO_OK;
}

rondo_status rondo_integer_keep_order(rondo_resources *resources, uint32_t number, rondo_packed_state **inout_packed) {
  static char mark;
  const rondo_status status = rondo_resources_add_object(resources, number, &mark, keep_nothing);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_status_ignore(rondo_packed_state_release(*inout_packed), "it has no rows");
  *inout_packed = NULL;
  return status;
}

static uint32_t elements_of(const rondo_emitter *emitter, const rondo_operation *operation, uint32_t input) {
  const rondo_shape *shape = rondo_emit_shape(emitter, operation->inputs[input]);
  return shape == NULL ? 0 : (uint32_t)rondo_shape_elements(shape);
}

rondo_integer_ending rondo_integer_ending_of(const rondo_emitter *emitter, const rondo_operation *operation,
                                             bool by_row) {
  const rondo_attributes *attributes = &operation->attributes;
  const rondo_shape *bias = rondo_emit_shape(emitter, operation->inputs[RONDO_INTEGER_BIAS]);
  return (rondo_integer_ending){.a_unsigned = rondo_emit_shape(emitter, operation->inputs[0])->type == RONDO_U8,
                                .b_unsigned = rondo_emit_shape(emitter, operation->inputs[1])->type == RONDO_U8,
                                .zeros_b = elements_of(emitter, operation, RONDO_INTEGER_B_ZERO),
                                .scales = elements_of(emitter, operation, RONDO_INTEGER_SCALE),
                                .biases = elements_of(emitter, operation, RONDO_INTEGER_BIAS),
                                .has_scale = has_input(operation, RONDO_INTEGER_SCALE),
                                .result_unsigned = result_type(operation) == RONDO_U8,
                                .by_row = by_row,
                                .result_float = result_type(operation) == RONDO_F32,
                                .bias_float = bias != NULL && bias->type == RONDO_F32,
                                .relu = attributes->sizes[RONDO_INTEGER_ACTIVATION] == RONDO_ACTIVATION_RELU,
                                .b_transposed = attributes->flags[RONDO_INTEGER_TRANSPOSE_B],
                                .a_scale = attributes->numbers[RONDO_INTEGER_A_SCALE],
                                .result_scale = attributes->numbers[RONDO_INTEGER_RESULT_SCALE]};
}

static rondo_status fail_option(const char *call, const char *what, double given, const char *use) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: %s is %g: use %s", call, what, given, use);
}

static bool is_scale(float given) { return given >= 0 && isfinite(given); }

rondo_status rondo_integer_read(const char *call, const rondo_integer_product_options *options, rondo_value *out_inputs,
                                rondo_attributes *out_attributes) {
  rondo_integer_product_options given;
  RONDO_TRY(rondo_versioned_read("rondo_integer_product_options", options, &given, sizeof given));
  out_inputs[RONDO_INTEGER_A_ZERO] = given.a_zero;
  out_inputs[RONDO_INTEGER_B_ZERO] = given.b_zero;
  out_inputs[RONDO_INTEGER_BIAS] = given.bias;
  out_inputs[RONDO_INTEGER_SCALE] = given.scale;
  out_inputs[RONDO_INTEGER_RESULT_ZERO] = given.result_zero;
  out_attributes->sizes[RONDO_INTEGER_TYPE] = given.result_type == 0 ? RONDO_U8 : given.result_type;
  out_attributes->sizes[RONDO_INTEGER_ACTIVATION] = given.activation;
  out_attributes->size_count = RONDO_INTEGER_SIZES;
  out_attributes->numbers[RONDO_INTEGER_A_SCALE] = given.a_scale == 0 ? 1 : given.a_scale;
  out_attributes->numbers[RONDO_INTEGER_RESULT_SCALE] = given.result_scale == 0 ? 1 : given.result_scale;
  out_attributes->flags[RONDO_INTEGER_TRANSPOSE_B] = given.transpose_b;
  if (given.activation != RONDO_ACTIVATION_NONE && given.activation != RONDO_ACTIVATION_RELU)
    return fail_option(call, "the activation", (double)given.activation, "RONDO_ACTIVATION_NONE or _RELU");
  if (!is_scale(given.a_scale)) return fail_option(call, "a_scale", (double)given.a_scale, "a positive number");
  if (!is_scale(given.result_scale))
    return fail_option(call, "result_scale", (double)given.result_scale, "a positive number");
  if (given.result_type == 0 || given.result_type == RONDO_I8 || given.result_type == RONDO_U8 ||
      given.result_type == RONDO_F32)
    return RONDO_OK;
  return fail_option(call, "the type of the result", (double)given.result_type,
                     "RONDO_I8, RONDO_U8, RONDO_F32, or 0 for RONDO_U8");
}
