/* SPDX-License-Identifier: MIT
 * Products of rows of quads and an image, as integer_lanes.h says. The form for VNNI keeps 24 vectors of sums in
 * registers, and that for AVX2 twelve, so that the processor multiplies in nearly every cycle. Threads: any.
 *
 * AVX2 adds two products to a sum of 16 bits, which saturates. Where two weights could make that happen, the second one
 * moves to another quad with the same offset. The sums stay exact, for some quads more.
 */
#include "tensor/operators/integer/integer_lanes.h"

#include <assert.h>
#include <string.h>

#define QUAD RONDO_QUAD
#define ROWS RONDO_LANE_ROWS

/* Quads ------------------------------------------------------------------------------------------------------------ */

static void interleave_some(const uint8_t *const *arrays, size_t from, size_t count, uint8_t turned, uint8_t *to) {
  for (size_t q = 0; q < QUAD; q++)
    for (size_t i = from; i < count; i++) to[QUAD * i + q] = arrays[q] == NULL ? 0 : (uint8_t)(arrays[q][i] ^ turned);
}

#ifdef RONDO_HAS_X86

RONDO_INLINE __m128i load_16(const uint8_t *from) { return _mm_loadu_si128((const __m128i *)(const void *)from); }
RONDO_INLINE __m128i load_8(const uint8_t *from) { return _mm_loadl_epi64((const __m128i *)(const void *)from); }
RONDO_INLINE __m128i load_4(const uint8_t *from) {
  int32_t bytes;
  memcpy(&bytes, from, sizeof bytes);
  return _mm_cvtsi32_si128(bytes);
}
RONDO_INLINE void store_quads(uint8_t *to, __m128i quads, __m128i turned) {
  _mm_storeu_si128((__m128i *)(void *)to, _mm_xor_si128(quads, turned));
}

/* The quads of as many elements as `LOAD` takes, from element `at` on: `count` / 4 vectors of them. */
#define INTERLEAVE(count, LOAD)                                                                                \
  RONDO_INLINE void interleave_##count(const uint8_t *const *arrays, size_t at, __m128i turned, uint8_t *to) { \
    const __m128i a = LOAD(arrays[0] + at), b = LOAD(arrays[1] + at);                                          \
    const __m128i c = LOAD(arrays[2] + at), d = LOAD(arrays[3] + at);                                          \
    const __m128i first = _mm_unpacklo_epi8(a, b), second = _mm_unpacklo_epi8(c, d);                           \
    store_quads(to + QUAD * at, _mm_unpacklo_epi16(first, second), turned);                                    \
    if ((count) == 4) return;                                                                                  \
    store_quads(to + QUAD * at + 16, _mm_unpackhi_epi16(first, second), turned);                               \
    if ((count) == 8) return;                                                                                  \
    const __m128i third = _mm_unpackhi_epi8(a, b), last = _mm_unpackhi_epi8(c, d);                             \
    store_quads(to + QUAD * at + 32, _mm_unpacklo_epi16(third, last), turned);                                 \
    store_quads(to + QUAD * at + 48, _mm_unpackhi_epi16(third, last), turned);                                 \
  }
INTERLEAVE(4, load_4)
INTERLEAVE(8, load_8)
INTERLEAVE(16, load_16)

/* At least four elements: the last ones that are done at once may have been done before. */
static void interleave_all(const uint8_t *const *arrays, size_t count, uint8_t turned, uint8_t *to) {
  const __m128i turns = _mm_set1_epi8((char)turned);
  size_t i = 0;
  for (; i + 16 <= count; i += 16) interleave_16(arrays, i, turns, to);
  if (i == count) return;
  if (count >= 16) {
    interleave_16(arrays, count - 16, turns, to);
    return;
  }
  if (count >= 8) {
    interleave_8(arrays, 0, turns, to);
    interleave_8(arrays, count - 8, turns, to);
    return;
  }
  interleave_4(arrays, 0, turns, to);
  interleave_4(arrays, count - 4, turns, to);
}

#endif

void rondo_integer_interleave(const uint8_t *const *arrays, size_t count, uint8_t turned, uint8_t *to) {
#ifdef RONDO_HAS_X86
  const bool is_whole = arrays[0] != NULL && arrays[1] != NULL && arrays[2] != NULL && arrays[3] != NULL;
  if (is_whole && count >= 4) {
    interleave_all(arrays, count, turned, to);
    return;
  }
#endif
  interleave_some(arrays, 0, count, turned, to);
}

/* Plain C ---------------------------------------------------------------------------------------------------------- */

typedef void (*lanes_function)(const int8_t *rows, size_t row_pitch, const uint8_t *image, const uint32_t *offsets,
                               size_t quads, size_t columns, int32_t *sums, size_t pitch);

/* Sums wrap around, so they are unsigned. */
static void add_row_plain(const int8_t *row, const uint8_t *image, const uint32_t *offsets, size_t quads,
                          size_t columns, uint32_t *sums) {
  for (size_t k = 0; k < quads; k++) {
    const int32_t a = row[QUAD * k], b = row[QUAD * k + 1], c = row[QUAD * k + 2], d = row[QUAD * k + 3];
    const uint8_t *from = image + QUAD * (size_t)offsets[k];
    for (size_t j = 0; j < columns; j++, from += QUAD)
      sums[j] += (uint32_t)(a * from[0] + b * from[1] + c * from[2] + d * from[3]);
  }
}

/* x86-64 ----------------------------------------------------------------------------------------------------------- */

#ifdef RONDO_HAS_X86

/* The statements for each row that is computed at once: compilers keep no array in registers at -O2. */
#define EACH_OF_6(ROW) ROW(0) ROW(1) ROW(2) ROW(3) ROW(4) ROW(5)
#define EACH_OF_5(ROW) ROW(0) ROW(1) ROW(2) ROW(3) ROW(4)
#define EACH_OF_4(ROW) ROW(0) ROW(1) ROW(2) ROW(3)
#define EACH_OF_3(ROW) ROW(0) ROW(1) ROW(2)
#define EACH_OF_2(ROW) ROW(0) ROW(1)
#define EACH_OF_1(ROW) ROW(0)

RONDO_INLINE int32_t quad_of(const int8_t *row) {
  int32_t quad;
  memcpy(&quad, row, sizeof quad);
  return quad;
}

/* Some rows and 4, 2 or 1 vectors of columns. */
#define FOR_VNNI RONDO_FOR_VNNI
FOR_VNNI RONDO_INLINE __m512i load_64(const void *from) { return _mm512_loadu_si512(from); }

#define BEGIN_ROW(i)                                                                                  \
  __m512i a##i = load_64(sums + (i)*pitch), b##i = width > 1 ? load_64(sums + (i)*pitch + 16) : a##i, \
          c##i = width > 2 ? load_64(sums + (i)*pitch + 32) : a##i,                                   \
          d##i = width > 2 ? load_64(sums + (i)*pitch + 48) : a##i;
#define ADD_ROW(i)                                                                    \
  {                                                                                   \
    const __m512i quad = _mm512_set1_epi32(quad_of(rows + (i)*row_pitch + QUAD * k)); \
    a##i = _mm512_dpbusd_epi32(a##i, a, quad);                                        \
    if (width > 1) b##i = _mm512_dpbusd_epi32(b##i, b, quad);                         \
    if (width > 2) c##i = _mm512_dpbusd_epi32(c##i, c, quad);                         \
    if (width > 2) d##i = _mm512_dpbusd_epi32(d##i, d, quad);                         \
  }
#define STORE_ROW(i)                                               \
  _mm512_storeu_si512(sums + (i)*pitch, a##i);                     \
  if (width > 1) _mm512_storeu_si512(sums + (i)*pitch + 16, b##i); \
  if (width > 2) _mm512_storeu_si512(sums + (i)*pitch + 32, c##i); \
  if (width > 2) _mm512_storeu_si512(sums + (i)*pitch + 48, d##i);

#define VNNI_OF_ROWS(count)                                                                                        \
  FOR_VNNI RONDO_INLINE void vnni_some_##count(const int8_t *rows, size_t row_pitch, const uint8_t *image,         \
                                               const uint32_t *offsets, size_t quads, int32_t *sums, size_t pitch, \
                                               const int width) {                                                  \
    EACH_OF_##count(BEGIN_ROW) for (size_t k = 0; k < quads; k++) {                                                \
      const uint8_t *from = image + QUAD * (size_t)offsets[k];                                                     \
      const __m512i a = load_64(from), b = width > 1 ? load_64(from + 64) : a;                                     \
      const __m512i c = width > 2 ? load_64(from + 128) : a, d = width > 2 ? load_64(from + 192) : a;              \
      EACH_OF_##count(ADD_ROW)                                                                                     \
    }                                                                                                              \
    EACH_OF_##count(STORE_ROW)                                                                                     \
  }                                                                                                                \
  FOR_VNNI static void vnni_##count(const int8_t *rows, size_t row_pitch, const uint8_t *image,                    \
                                    const uint32_t *offsets, size_t quads, size_t columns, int32_t *sums,          \
                                    size_t pitch) {                                                                \
    size_t j = 0;                                                                                                  \
    for (; j + 48 < columns; j += 64)                                                                              \
      vnni_some_##count(rows, row_pitch, image + QUAD * j, offsets, quads, sums + j, pitch, 4);                    \
    for (; j + 16 < columns; j += 32)                                                                              \
      vnni_some_##count(rows, row_pitch, image + QUAD * j, offsets, quads, sums + j, pitch, 2);                    \
    if (j < columns) vnni_some_##count(rows, row_pitch, image + QUAD * j, offsets, quads, sums + j, pitch, 1);     \
  }
VNNI_OF_ROWS(1)
VNNI_OF_ROWS(2)
VNNI_OF_ROWS(3)
VNNI_OF_ROWS(4)
VNNI_OF_ROWS(5)
VNNI_OF_ROWS(6)
static const lanes_function vnni_by_rows[ROWS + 1] = {NULL, vnni_1, vnni_2, vnni_3, vnni_4, vnni_5, vnni_6};

/* Some rows and two vectors of columns. */
#define FOR_AVX2 RONDO_FOR_AVX2
FOR_AVX2 RONDO_INLINE __m256i load_32(const void *from) { return _mm256_loadu_si256(from); }

#define BEGIN_HALVES(i) __m256i low##i = load_32(sums + (i)*pitch), high##i = load_32(sums + (i)*pitch + 8);
#define ADD_HALVES(i)                                                                               \
  {                                                                                                 \
    const __m256i quad = _mm256_set1_epi32(quad_of(rows + (i)*row_pitch + QUAD * k));               \
    low##i = _mm256_add_epi32(low##i, _mm256_madd_epi16(_mm256_maddubs_epi16(low, quad), ones));    \
    high##i = _mm256_add_epi32(high##i, _mm256_madd_epi16(_mm256_maddubs_epi16(high, quad), ones)); \
  }
#define STORE_HALVES(i)                                    \
  _mm256_storeu_si256((void *)(sums + (i)*pitch), low##i); \
  _mm256_storeu_si256((void *)(sums + (i)*pitch + 8), high##i);

#define AVX2_OF_ROWS(count)                                                                               \
  FOR_AVX2 static void avx2_##count(const int8_t *rows, size_t row_pitch, const uint8_t *image,           \
                                    const uint32_t *offsets, size_t quads, size_t columns, int32_t *sums, \
                                    size_t pitch) {                                                       \
    const __m256i ones = _mm256_set1_epi16(1);                                                            \
    for (size_t j = 0; j < columns; j += 16, image += 64, sums += 16) {                                   \
      EACH_OF_##count(BEGIN_HALVES) for (size_t k = 0; k < quads; k++) {                                  \
        const uint8_t *from = image + QUAD * (size_t)offsets[k];                                          \
        const __m256i low = load_32(from), high = load_32(from + 32);                                     \
        EACH_OF_##count(ADD_HALVES)                                                                       \
      }                                                                                                   \
      EACH_OF_##count(STORE_HALVES)                                                                       \
    }                                                                                                     \
  }
AVX2_OF_ROWS(1)
AVX2_OF_ROWS(2)
AVX2_OF_ROWS(3)
AVX2_OF_ROWS(4)
AVX2_OF_ROWS(5)
AVX2_OF_ROWS(6)
static const lanes_function avx2_by_rows[ROWS + 1] = {NULL, avx2_1, avx2_2, avx2_3, avx2_4, avx2_5, avx2_6};

/* Quads whose sums could saturate ---------------------------------------------------------------------------------- */

#define CHUNK 128 /* quads that are divided at once */

/* Some quads of some rows, and the quads that were added to them. */
typedef struct divided {
  size_t quads;
  uint32_t offsets[2 * CHUNK];
  int8_t rows[ROWS * 2 * CHUNK * QUAD];
} divided;
#define DIVIDED_PITCH ((size_t)2 * CHUNK * QUAD)

/* 255 times the sum of two weights of one sign has to fit into 16 bits. The sum of two others is smaller than one. */
RONDO_INLINE bool saturates(const int8_t *two) { return two[0] + two[1] > 128 || two[0] + two[1] < -128; }

/* Bit k: of quad k of eight, two weights could saturate. */
FOR_AVX2 RONDO_INLINE unsigned find_saturating(const int8_t *row) {
  const __m256i sums = _mm256_maddubs_epi16(_mm256_set1_epi8(1), load_32(row));
  const __m256i are_large = _mm256_cmpgt_epi16(_mm256_abs_epi16(sums), _mm256_set1_epi16(128));
  const __m256i in_upper = _mm256_or_si256(are_large, _mm256_slli_epi32(are_large, 16));
  return (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(in_upper));
}

/* Moves the second weight of each two that could saturate to a quad at the end. */
static void divide_quad(divided *d, size_t row_count, size_t k) {
  d->offsets[d->quads] = d->offsets[k];
  for (size_t i = 0; i < row_count; i++) {
    int8_t *from = d->rows + i * DIVIDED_PITCH + QUAD * k, *to = d->rows + i * DIVIDED_PITCH + QUAD * d->quads;
    memset(to, 0, QUAD);
    for (size_t q = 0; q < QUAD; q += 2) {
      if (!saturates(from + q)) continue;
      to[q + 1] = from[q + 1];
      from[q + 1] = 0;
    }
  }
  d->quads++;
}

FOR_AVX2 static void divide(const rondo_lane_rows *rows, size_t first, size_t count, const uint32_t *offsets,
                            divided *d) {
  memcpy(d->offsets, offsets + first, count * sizeof *offsets);
  for (size_t i = 0; i < rows->count; i++) {
    int8_t *row = d->rows + i * DIVIDED_PITCH;
    memcpy(row, rows->first + i * rows->pitch + QUAD * first, QUAD * count);
    memset(row + QUAD * count, 0, QUAD * (rondo_divide_up(count, 8) * 8 - count));
  }
  d->quads = count;
  for (size_t k = 0; k < count; k += 8) {
    unsigned found = 0;
    for (size_t i = 0; i < rows->count; i++) found |= find_saturating(d->rows + i * DIVIDED_PITCH + QUAD * k);
    for (; found != 0; found &= found - 1) divide_quad(d, rows->count, k + (size_t)__builtin_ctz(found));
  }
}

static void add_divided(const rondo_lane_rows *rows, const uint8_t *image, const uint32_t *offsets, size_t quads,
                        size_t columns, int32_t *sums, size_t pitch) {
  divided d;
  for (size_t k = 0; k < quads; k += CHUNK) {
    divide(rows, k, rondo_smaller(quads - k, CHUNK), offsets, &d);
    avx2_by_rows[rows->count](d.rows, DIVIDED_PITCH, image, d.offsets, d.quads, columns, sums, pitch);
  }
}

#endif

void rondo_integer_add_lanes(const rondo_lane_rows *rows, const uint8_t *image, const uint32_t *offsets, size_t quads,
                             size_t columns, int32_t *sums, size_t pitch) {
  assert(rows->count > 0 && rows->count <= ROWS);
#ifdef RONDO_HAS_X86
  if (rondo_uses_vnni()) {
    vnni_by_rows[rows->count](rows->first, rows->pitch, image, offsets, quads, columns, sums, pitch);
    return;
  }
  if (rondo_vectors_used() >= RONDO_VECTORS_AVX2) {
    add_divided(rows, image, offsets, quads, columns, sums, pitch);
    return;
  }
#endif
  for (size_t i = 0; i < rows->count; i++)
    add_row_plain(rows->first + i * rows->pitch, image, offsets, quads, columns, (uint32_t *)sums + i * pitch);
}
