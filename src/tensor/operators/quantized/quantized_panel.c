/* SPDX-License-Identifier: MIT
 * Panels of quantised matrices: plain C, and AVX2. Rows of the matrix become columns of the panel. The AVX2 form
 * transposes bytes before it converts them: 16 bytes of 16 rows, which are 16 rows of the panel with 8 bits, and 32
 * with 4 bits, because both halves of a byte belong to the same row of the matrix. Threads: any.
 */
#include "tensor/operators/quantized/quantized_panel.h"

#include <assert.h>
#include <string.h>

#include "tensor/operators/common/vectors.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_AVX2 /* the compiler; the processor is asked */
#include <immintrin.h>
#endif

#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#define PANEL RONDO_PANEL
#define BYTES 16 /* of a row that are converted together: a unit, which has one scale */
#define LINE                                                                                              \
  64 /* bytes of a row that are copied before: if rows are a multiple of a page long, their lines share a \
        set of the cache, and do not stay there while their units are converted */

/* What is converted: bytes of each row, and the scales and zeros of their group. */
typedef struct panel_unit {
  uint8_t lines[PANEL][LINE];
  float scales[PANEL], zeros[PANEL];
} panel_unit;

/* Converts the unit that begins at byte `at` of the lines. */
typedef void (*unit_function)(const panel_unit *unit, size_t at, float *to);

/* Plain C ---------------------------------------------------------------------------------------------------------- */

static void unpack8_plain(const panel_unit *unit, size_t at, float *to) {
  for (size_t p = 0; p < BYTES; p++)
    for (size_t j = 0; j < PANEL; j++)
      to[p * PANEL + j] = unit->scales[j] * ((float)(int8_t)unit->lines[j][at + p] - unit->zeros[j]);
}

static void unpack4_plain(const panel_unit *unit, size_t at, float *to) {
  for (size_t p = 0; p < BYTES; p++) {
    for (size_t j = 0; j < PANEL; j++) {
      const uint8_t pair = unit->lines[j][at + p];
      to[2 * p * PANEL + j] = unit->scales[j] * ((float)(pair & 15) - unit->zeros[j]);
      to[(2 * p + 1) * PANEL + j] = unit->scales[j] * ((float)(pair >> 4) - unit->zeros[j]);
    }
  }
}

/* AVX2 ------------------------------------------------------------------------------------------------------------- */

#ifdef HAS_AVX2

/* bytes[p] becomes byte p of each row. Each round interleaves the first half of the vectors with the second. */
RONDO_FOR_AVX2 RONDO_INLINE void transpose(const panel_unit *unit, size_t at, __m128i *bytes) {
  __m128i other[PANEL];
  UNROLL for (size_t j = 0; j < PANEL; j++) bytes[j] = _mm_loadu_si128((const void *)(unit->lines[j] + at));
  UNROLL for (size_t round = 0; round < 2; round++) {
    UNROLL for (size_t j = 0; j < PANEL / 2; j++) {
      other[2 * j] = _mm_unpacklo_epi8(bytes[j], bytes[j + PANEL / 2]);
      other[2 * j + 1] = _mm_unpackhi_epi8(bytes[j], bytes[j + PANEL / 2]);
    }
    UNROLL for (size_t j = 0; j < PANEL / 2; j++) {
      bytes[2 * j] = _mm_unpacklo_epi8(other[j], other[j + PANEL / 2]);
      bytes[2 * j + 1] = _mm_unpackhi_epi8(other[j], other[j + PANEL / 2]);
    }
  }
}

/* Eight columns of a row of the panel, from the lower half of the bytes, which are signed. */
RONDO_FOR_AVX2 RONDO_INLINE void store_eight(const panel_unit *unit, __m128i bytes, size_t at, float *to) {
  const __m256 values = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
  const __m256 above = _mm256_sub_ps(values, _mm256_loadu_ps(unit->zeros + at));
  _mm256_storeu_ps(to + at, _mm256_mul_ps(_mm256_loadu_ps(unit->scales + at), above));
}

RONDO_FOR_AVX2 RONDO_INLINE void store_row(const panel_unit *unit, __m128i bytes, float *to) {
  store_eight(unit, bytes, 0, to);
  store_eight(unit, _mm_srli_si128(bytes, PANEL / 2), PANEL / 2, to);
}

RONDO_FOR_AVX2 static void unpack8_avx2(const panel_unit *unit, size_t at, float *to) {
  __m128i bytes[PANEL];
  transpose(unit, at, bytes);
  UNROLL for (size_t p = 0; p < BYTES; p++) store_row(unit, bytes[p], to + p * PANEL);
}

RONDO_FOR_AVX2 static void unpack4_avx2(const panel_unit *unit, size_t at, float *to) {
  const __m128i mask = _mm_set1_epi8(15);
  __m128i bytes[PANEL];
  transpose(unit, at, bytes);
  UNROLL for (size_t p = 0; p < BYTES; p++) {
    store_row(unit, _mm_and_si128(bytes[p], mask), to + 2 * p * PANEL);
    store_row(unit, _mm_and_si128(_mm_srli_epi16(bytes[p], 4), mask), to + (2 * p + 1) * PANEL);
  }
}

static unit_function unpack_for(uint32_t bits) {
  if (rondo_vectors_used() == RONDO_VECTORS_PLAIN) return bits == 4 ? unpack4_plain : unpack8_plain;
  return bits == 4 ? unpack4_avx2 : unpack8_avx2;
}

#else

static unit_function unpack_for(uint32_t bits) { return bits == 4 ? unpack4_plain : unpack8_plain; }

#endif

/* Panels ----------------------------------------------------------------------------------------------------------- */

/* Rows past the last get the scale 0. */
static void load_scales(const rondo_quantized_scheme *scheme, const rondo_quantized_matrix *matrix, size_t row,
                        size_t group, panel_unit *unit) {
  for (size_t j = 0; j < PANEL; j++) {
    const bool is_there = row + j < scheme->rows;
    const size_t at = (is_there ? row + j : row) * scheme->groups + group;
    unit->scales[j] = is_there ? matrix->scales[at] : 0;
    unit->zeros[j] = (float)rondo_quantized_zero(scheme->bits, matrix->zeros, at);
  }
}

/* Copies `count` bytes of each row, and asks for those of the next panel's rows. */
static void copy_lines(const rondo_quantized_scheme *scheme, const rondo_quantized_matrix *matrix, size_t row,
                       size_t first, size_t count, panel_unit *unit) {
  for (size_t j = 0; j < PANEL; j++) {
    const size_t at = (row + j < scheme->rows ? row + j : row) * scheme->row_bytes + first;
    if (row + j + PANEL < scheme->rows) rondo_prefetch(matrix->values + at + PANEL * scheme->row_bytes);
    if (count == LINE)
      memcpy(unit->lines[j], matrix->values + at, LINE);
    else
      memcpy(unit->lines[j], matrix->values + at, count);
  }
}

/* Up to `left` columns of the unit at a byte of the lines. */
static void unpack_unit(panel_unit *unit, size_t at, unit_function unpack, size_t columns, size_t left, float *to) {
  float whole[2 * BYTES * PANEL];
  if (left >= columns) {
    unpack(unit, at, to);
  } else {
    unpack(unit, at, whole);
    memcpy(to, whole, left * PANEL * sizeof *to);
  }
}

void rondo_quantized_panel(const rondo_quantized_scheme *scheme, const rondo_quantized_matrix *matrix, size_t row,
                           size_t first, size_t depth, float *packed) {
  const unit_function unpack = unpack_for(scheme->bits);
  const size_t columns = BYTES * 8 / scheme->bits, of_line = LINE * 8 / scheme->bits;
  panel_unit unit = {.lines = {{0}}};
  size_t group = SIZE_MAX;
  assert(first % RONDO_QUANTIZED_STEP == 0 && first + depth <= scheme->columns && row < scheme->rows);
  for (size_t at = 0; at < depth; at += columns) {
    const size_t left = depth - at;
    if (at % of_line == 0)
      copy_lines(scheme, matrix, row, (first + at) * scheme->bits / 8,
                 rondo_quantized_row_bytes(scheme->bits, rondo_smaller(left, of_line)), &unit);
    if ((first + at) / scheme->group != group)
      load_scales(scheme, matrix, row, group = (first + at) / scheme->group, &unit);
    unpack_unit(&unit, at % of_line * scheme->bits / 8, unpack, columns, left, packed + at * PANEL);
  }
}
