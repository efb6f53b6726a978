/* SPDX-License-Identifier: MIT
 * Inner loops of integer products, as integer_lanes.h says. The forms for AVX2 keep twelve vectors of sums in
 * registers, so that the processor multiplies in nearly every cycle. Threads: any.
 */
#include "tensor/operators/quantized/integer_lanes.h"

#include <assert.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_AVX2 /* the compiler; the processor is asked */
#include <immintrin.h>
#define FOR_AVX2 __attribute__((target("avx2")))
#endif

#define PAIRS RONDO_LANE_PAIRS

static bool uses_avx2(void) {
#ifdef HAS_AVX2
  return rondo_vectors_used() >= RONDO_VECTORS_AVX2;
#else
  return false;
#endif
}

/* Bytes to 16-bit integers ----------------------------------------------------------------------------------------- */

RONDO_VECTORISED(widen_bytes,
                 (const uint8_t *restrict from, uint8_t turned, int16_t offset, int16_t *restrict to, size_t count),
                 (from, turned, offset, to, count)) {
  RONDO_EACH_LANE(i, lane, count, to[i] = (int16_t)((from[i] ^ turned) - offset));
}

void rondo_integer_widen(const uint8_t *from, size_t count, rondo_byte_form form, int16_t *to) {
  widen_bytes(from, form.turned, form.offset, to, count);
}

static void interleave_some(const uint8_t *first, const uint8_t *second, size_t from, size_t count,
                            rondo_byte_form form, int16_t *to) {
  for (size_t i = from; i < count; i++) {
    to[2 * i] = (int16_t)((first[i] ^ form.turned) - form.offset);
    to[2 * i + 1] = second == NULL ? (int16_t)0 : (int16_t)((second[i] ^ form.turned) - form.offset);
  }
}

#ifdef HAS_AVX2

FOR_AVX2 RONDO_INLINE void store_pairs(__m128i bytes, __m256i offset, int16_t *to) {
  _mm256_storeu_si256((__m256i *)(void *)to, _mm256_sub_epi16(_mm256_cvtepu8_epi16(bytes), offset));
}

/* Returns how many were done. */
FOR_AVX2 static size_t interleave_avx2(const uint8_t *first, const uint8_t *second, size_t count, rondo_byte_form form,
                                       int16_t *to) {
  const __m128i turned = _mm_set1_epi8((char)form.turned);
  const __m256i offset = _mm256_set1_epi16(form.offset);
  size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m128i a = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)(first + i)), turned);
    const __m128i b = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)(second + i)), turned);
    store_pairs(_mm_unpacklo_epi8(a, b), offset, to + 2 * i);
    store_pairs(_mm_unpackhi_epi8(a, b), offset, to + 2 * i + 16);
  }
  for (; i + 8 <= count; i += 8) {
    const __m128i a = _mm_xor_si128(_mm_loadl_epi64((const __m128i *)(const void *)(first + i)), turned);
    const __m128i b = _mm_xor_si128(_mm_loadl_epi64((const __m128i *)(const void *)(second + i)), turned);
    store_pairs(_mm_unpacklo_epi8(a, b), offset, to + 2 * i);
  }
  return i;
}

#endif

void rondo_integer_interleave(const uint8_t *first, const uint8_t *second, size_t count, rondo_byte_form form,
                              int16_t *to) {
  size_t done = 0;
#ifdef HAS_AVX2
  if (second != NULL && uses_avx2()) done = interleave_avx2(first, second, count, form, to);
#endif
  interleave_some(first, second, done, count, form, to);
}

/* Rows and columns of pairs ---------------------------------------------------------------------------------------- */

/* Sums wrap around, so they are unsigned. */
static void add_lanes_plain(const int16_t *rows, size_t row_count, const int16_t *image, const uint32_t *offsets,
                            size_t pairs, size_t columns, int32_t *sums, size_t pitch) {
  for (size_t i = 0; i < row_count; i++) {
    uint32_t *to = (uint32_t *)sums + i * pitch;
    for (size_t k = 0; k < pairs; k++) {
      const int32_t first = rows[2 * (i * PAIRS + k)], second = rows[2 * (i * PAIRS + k) + 1];
      const int16_t *from = image + 2 * (size_t)offsets[k];
      for (size_t j = 0; j < columns; j++) to[j] += (uint32_t)(first * from[2 * j] + second * from[2 * j + 1]);
    }
  }
}

#ifdef HAS_AVX2

FOR_AVX2 RONDO_INLINE __m256i load(const void *from) { return _mm256_loadu_si256(from); }

/* A pair of a row, for all lanes. */
FOR_AVX2 RONDO_INLINE __m256i pair_of(const int16_t *row) {
  int32_t pair;
  memcpy(&pair, row, sizeof pair);
  return _mm256_set1_epi32(pair);
}

/* The statements for each row that is computed at once: compilers keep no array in registers at -O2. */
#define EACH_OF_6(ROW) ROW(0) ROW(1) ROW(2) ROW(3) ROW(4) ROW(5)
#define EACH_OF_5(ROW) ROW(0) ROW(1) ROW(2) ROW(3) ROW(4)
#define EACH_OF_4(ROW) ROW(0) ROW(1) ROW(2) ROW(3)
#define EACH_OF_3(ROW) ROW(0) ROW(1) ROW(2)
#define EACH_OF_2(ROW) ROW(0) ROW(1)
#define EACH_OF_1(ROW) ROW(0)

#define BEGIN_ROW(i) __m256i low##i = load(sums + (i)*pitch), high##i = is_wide ? load(sums + (i)*pitch + 8) : low##i;
#define ADD_ROW(i)                                                                   \
  {                                                                                  \
    const __m256i pair = pair_of(rows + 2 * ((i)*PAIRS + k));                        \
    low##i = _mm256_add_epi32(low##i, _mm256_madd_epi16(pair, first));               \
    if (is_wide) high##i = _mm256_add_epi32(high##i, _mm256_madd_epi16(pair, last)); \
  }
#define STORE_ROW(i)                                       \
  _mm256_storeu_si256((void *)(sums + (i)*pitch), low##i); \
  if (is_wide) _mm256_storeu_si256((void *)(sums + (i)*pitch + 8), high##i);

/* Sixteen columns of some rows, or eight. */
#define LANES_OF_ROWS(count)                                                                                       \
  FOR_AVX2 RONDO_INLINE void lanes_of_##count(const int16_t *rows, const int16_t *image, const uint32_t *offsets,  \
                                              size_t pairs, int32_t *sums, size_t pitch, bool is_wide) {           \
    EACH_OF_##count(BEGIN_ROW) for (size_t k = 0; k < pairs; k++) {                                                \
      const int16_t *from = image + 2 * (size_t)offsets[k];                                                        \
      const __m256i first = load(from), last = is_wide ? load(from + 16) : first;                                  \
      EACH_OF_##count(ADD_ROW)                                                                                     \
    }                                                                                                              \
    EACH_OF_##count(STORE_ROW)                                                                                     \
  }                                                                                                                \
  FOR_AVX2 static void add_lanes_##count(const int16_t *rows, const int16_t *image, const uint32_t *offsets,       \
                                         size_t pairs, size_t columns, int32_t *sums, size_t pitch) {              \
    size_t j = 0;                                                                                                  \
    for (; j + 8 < columns; j += 16) lanes_of_##count(rows, image + 2 * j, offsets, pairs, sums + j, pitch, true); \
    if (j < columns) lanes_of_##count(rows, image + 2 * j, offsets, pairs, sums + j, pitch, false);                \
  }
LANES_OF_ROWS(1)
LANES_OF_ROWS(2)
LANES_OF_ROWS(3)
LANES_OF_ROWS(4)
LANES_OF_ROWS(5)
LANES_OF_ROWS(6)

typedef void (*lanes_function)(const int16_t *rows, const int16_t *image, const uint32_t *offsets, size_t pairs,
                               size_t columns, int32_t *sums, size_t pitch);
static const lanes_function lanes_by_rows[RONDO_LANE_ROWS + 1] = {NULL,        add_lanes_1, add_lanes_2, add_lanes_3,
                                                                  add_lanes_4, add_lanes_5, add_lanes_6};

#endif

void rondo_integer_add_lanes(const int16_t *rows, size_t row_count, const int16_t *image, const uint32_t *offsets,
                             size_t pairs, size_t columns, int32_t *sums, size_t pitch) {
  assert(row_count > 0 && row_count <= RONDO_LANE_ROWS && pairs <= PAIRS);
#ifdef HAS_AVX2
  if (uses_avx2()) {
    lanes_by_rows[row_count](rows, image, offsets, pairs, columns, sums, pitch);
    return;
  }
#endif
  add_lanes_plain(rows, row_count, image, offsets, pairs, columns, sums, pitch);
}

/* Rows and rows ---------------------------------------------------------------------------------------------------- */

/* Adds the products from element `from` on. */
static void add_dot(const int16_t *a, const uint8_t *b, bool b_unsigned, size_t from, size_t depth, int32_t *sum) {
  uint32_t total = (uint32_t)*sum;
  for (size_t k = from; k < depth; k++)
    total += (uint32_t)(a[k] * (b_unsigned ? (int32_t)b[k] : (int32_t)(int8_t)b[k]));
  *sum = (int32_t)total;
}

#ifdef HAS_AVX2

#define STEP 16

FOR_AVX2 RONDO_INLINE __m256i load_bytes(const uint8_t *b, bool b_unsigned) {
  const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)b);
  return b_unsigned ? _mm256_cvtepu8_epi16(bytes) : _mm256_cvtepi8_epi16(bytes);
}

FOR_AVX2 RONDO_INLINE int32_t total_of(__m256i sums) {
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
}

/* Row j of b with each of the rows of a. */
#define DOT(j, i) sum##j##i = _mm256_add_epi32(sum##j##i, _mm256_madd_epi16(b##j, load(a + (i)*a_pitch + k)));
#define BEGIN_DOT(j, i) __m256i sum##j##i = _mm256_setzero_si256();
#define STORE_DOT(j, i) sums[(i)*pitch + (j)] = total_of(sum##j##i);
#define LOAD_ROW(j) const __m256i b##j = load_bytes(b + (j)*depth + k, b_unsigned);
#define DOTS_OF_3_4(D) D(0, 0) D(1, 0) D(2, 0) D(0, 1) D(1, 1) D(2, 1) D(0, 2) D(1, 2) D(2, 2) D(0, 3) D(1, 3) D(2, 3)
#define DOTS_OF_1_4(D) D(0, 0) D(0, 1) D(0, 2) D(0, 3)
#define DOTS_OF_4_1(D) D(0, 0) D(1, 0) D(2, 0) D(3, 0)
#define DOTS_OF_1_1(D) D(0, 0)

/* The products of some rows of b with some of a; returns the first element that is left. */
#define DOTS(b_rows, a_rows)                                                                                          \
  FOR_AVX2 RONDO_INLINE size_t dots_##b_rows##_##a_rows(const int16_t *a, size_t a_pitch, const uint8_t *b,           \
                                                        bool b_unsigned, size_t depth, int32_t *sums, size_t pitch) { \
    size_t k = 0;                                                                                                     \
    DOTS_OF_##b_rows##_##a_rows(BEGIN_DOT) for (; k + STEP <= depth; k += STEP){                                      \
        EACH_OF_##b_rows(LOAD_ROW) DOTS_OF_##b_rows##_##a_rows(DOT)} DOTS_OF_##b_rows##_##a_rows(STORE_DOT) return k; \
  }
DOTS(3, 4)
DOTS(1, 4)
DOTS(4, 1)
DOTS(1, 1)

typedef struct dots {
  const int16_t *a;
  size_t a_pitch;
  const uint8_t *b;
  bool b_unsigned;
  size_t depth, pitch;
  int32_t *sums;
} dots;

/* Rows j .. of b and i .. of a. */
FOR_AVX2 RONDO_INLINE void find_some(const dots *d, size_t j, size_t b_rows, size_t i, size_t a_rows, bool b_unsigned) {
  const int16_t *a = d->a + i * d->a_pitch;
  const uint8_t *b = d->b + j * d->depth;
  int32_t *sums = d->sums + i * d->pitch + j;
  const size_t done = b_rows == 3   ? dots_3_4(a, d->a_pitch, b, b_unsigned, d->depth, sums, d->pitch)
                      : b_rows == 4 ? dots_4_1(a, d->a_pitch, b, b_unsigned, d->depth, sums, d->pitch)
                      : a_rows == 4 ? dots_1_4(a, d->a_pitch, b, b_unsigned, d->depth, sums, d->pitch)
                                    : dots_1_1(a, d->a_pitch, b, b_unsigned, d->depth, sums, d->pitch);
  for (size_t y = 0; y < a_rows && done < d->depth; y++)
    for (size_t x = 0; x < b_rows; x++)
      add_dot(a + y * d->a_pitch, b + x * d->depth, b_unsigned, done, d->depth, &sums[y * d->pitch + x]);
}

FOR_AVX2 RONDO_INLINE void find_all(const dots *d, size_t a_rows, size_t b_rows, bool b_unsigned) {
  const size_t fours = a_rows / 4 * 4;
  size_t j = 0;
  for (; fours > 0 && j + 3 <= b_rows; j += 3)
    for (size_t i = 0; i < fours; i += 4) find_some(d, j, 3, i, 4, b_unsigned);
  for (; fours > 0 && j < b_rows; j++)
    for (size_t i = 0; i < fours; i += 4) find_some(d, j, 1, i, 4, b_unsigned);
  for (j = 0; j + 4 <= b_rows; j += 4)
    for (size_t i = fours; i < a_rows; i++) find_some(d, j, 4, i, 1, b_unsigned);
  for (; j < b_rows; j++)
    for (size_t i = fours; i < a_rows; i++) find_some(d, j, 1, i, 1, b_unsigned);
}

FOR_AVX2 static void find_avx2(const dots *d, size_t a_rows, size_t b_rows) {
  if (d->b_unsigned)
    find_all(d, a_rows, b_rows, true);
  else
    find_all(d, a_rows, b_rows, false);
}

#endif

void rondo_integer_find_dots(const int16_t *a, size_t a_rows, size_t a_pitch, const uint8_t *b, size_t b_rows,
                             bool b_unsigned, size_t depth, int32_t *sums, size_t pitch) {
#ifdef HAS_AVX2
  if (uses_avx2()) {
    const dots all = {a, a_pitch, b, b_unsigned, depth, pitch, sums};
    find_avx2(&all, a_rows, b_rows);
    return;
  }
#endif
  for (size_t i = 0; i < a_rows; i++) {
    for (size_t j = 0; j < b_rows; j++) {
      sums[i * pitch + j] = 0;
      add_dot(a + i * a_pitch, b + j * depth, b_unsigned, 0, depth, &sums[i * pitch + j]);
    }
  }
}
