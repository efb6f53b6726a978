/* SPDX-License-Identifier: MIT
 * Products of rows of bytes and rows of bytes, as integer_lanes.h says. With VNNI, the rows of a stay bytes; without,
 * they are 16-bit integers, of which AVX2 multiplies sixteen at once. Threads: any.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/integer/integer_lanes.h"

/* Sums ------------------------------------------------------------------------------------------------------------- */

#ifdef RONDO_HAS_X86

#define FOR_AVX2 RONDO_FOR_AVX2
#define FOR_VNNI RONDO_FOR_VNNI

FOR_AVX2 RONDO_INLINE __m256i load(const void *from) { return _mm256_loadu_si256(from); }

FOR_AVX2 RONDO_INLINE int32_t total_of(__m256i sums) {
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
}

/* Of whole groups of 32. */
FOR_AVX2 static int32_t total_avx2(const uint8_t *bytes, uint8_t turned, size_t count) {
  const __m256i turns = _mm256_set1_epi8((char)turned);
  __m256i sums = _mm256_setzero_si256();
  for (size_t i = 0; i + 32 <= count; i += 32) {
    const __m256i twos = _mm256_maddubs_epi16(_mm256_set1_epi8(1), _mm256_xor_si256(load(bytes + i), turns));
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(twos, _mm256_set1_epi16(1)));
  }
  return total_of(sums);
}

/* The same of whole groups of 256. */
FOR_VNNI static int32_t total_vnni(const uint8_t *bytes, uint8_t turned, size_t count) {
  const __m512i turns = _mm512_set1_epi8((char)turned), ones = _mm512_set1_epi8(1);
  __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
  for (size_t i = 0; i + 256 <= count; i += 256) {
    a = _mm512_dpbusd_epi32(a, ones, _mm512_xor_si512(_mm512_loadu_si512(bytes + i), turns));
    b = _mm512_dpbusd_epi32(b, ones, _mm512_xor_si512(_mm512_loadu_si512(bytes + i + 64), turns));
    c = _mm512_dpbusd_epi32(c, ones, _mm512_xor_si512(_mm512_loadu_si512(bytes + i + 128), turns));
    d = _mm512_dpbusd_epi32(d, ones, _mm512_xor_si512(_mm512_loadu_si512(bytes + i + 192), turns));
  }
  const __m512i all = _mm512_add_epi32(_mm512_add_epi32(a, b), _mm512_add_epi32(c, d));
  return total_of(_mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1)));
}

#endif

int32_t rondo_integer_total(const uint8_t *bytes, size_t count, uint8_t turned) {
  uint32_t total = 0;
  size_t i = 0;
#ifdef RONDO_HAS_X86
  if (rondo_uses_vnni()) {
    total = (uint32_t)total_vnni(bytes, turned, count);
    i = count / 256 * 256;
  }
  if (rondo_vectors_used() >= RONDO_VECTORS_AVX2) {
    total += (uint32_t)total_avx2(bytes + i, turned, count - i);
    i += (count - i) / 32 * 32;
  }
#endif
  for (; i < count; i++) total += (uint32_t)rondo_signed_byte(bytes[i], turned);
  return (int32_t)total;
}

/* Rows of a -------------------------------------------------------------------------------------------------------- */

RONDO_VECTORISED(widen_bytes, (const uint8_t *restrict from, uint8_t turned, int16_t *restrict to, size_t count),
                 (from, turned, to, count)) {
  RONDO_EACH_LANE(i, lane, count, to[i] = (int16_t)(from[i] ^ turned));
}

RONDO_VECTORISED(turn_bytes, (const uint8_t *restrict from, uint8_t turned, uint8_t *restrict to, size_t count),
                 (from, turned, to, count)) {
  RONDO_EACH_LANE(i, lane, count, to[i] = (uint8_t)(from[i] ^ turned));
}

/* With VNNI, zeros after the row make its last vector whole. */
void rondo_integer_copy_dot_row(const uint8_t *from, size_t depth, uint8_t turned, unsigned char *to) {
#ifdef RONDO_HAS_X86
  if (rondo_uses_vnni()) {
    memset(to + depth, 0, rondo_divide_up(depth, 64) * 64 - depth);
    turn_bytes(from, turned, to, depth);
    return;
  }
#endif
  widen_bytes(from, turned, (int16_t *)(void *)to, depth);
}

/* Products --------------------------------------------------------------------------------------------------------- */

typedef struct dots {
  const unsigned char *a;
  size_t a_pitch;
  const uint8_t *b;
  uint8_t turned;
  size_t depth, pitch;
  int32_t *sums;
} dots;

static const int16_t *wide_row(const dots *d, size_t i) {
  return (const int16_t *)(const void *)(d->a + i * d->a_pitch);
}

/* The sum of the products of row i of a and row j of b from element `from` on, and `sum`. */
static int32_t dot_from(const dots *d, size_t i, size_t j, size_t from, int32_t sum) {
  const int16_t *a = wide_row(d, i);
  const uint8_t *b = d->b + j * d->depth;
  uint32_t total = (uint32_t)sum;
  for (size_t k = from; k < d->depth; k++) total += (uint32_t)(a[k] * rondo_signed_byte(b[k], d->turned));
  return (int32_t)total;
}

#ifdef RONDO_HAS_X86

/* The statements for each row that is computed at once: compilers keep no array in registers at -O2. */
#define EACH_OF_4(ROW) ROW(0) ROW(1) ROW(2) ROW(3)
#define EACH_OF_3(ROW) ROW(0) ROW(1) ROW(2)
#define EACH_OF_2(ROW) ROW(0) ROW(1)
#define EACH_OF_1(ROW) ROW(0)

/* The totals of four vectors of sums. */
FOR_VNNI RONDO_INLINE void store_totals(const int32_t *sums, int32_t *to) {
  const __m512i a = _mm512_loadu_si512(sums), b = _mm512_loadu_si512(sums + 16), c = _mm512_loadu_si512(sums + 32);
  const __m512i d = _mm512_loadu_si512(sums + 48);
  const __m512i first = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
  const __m512i last = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
  const __m512i all = _mm512_add_epi32(_mm512_unpacklo_epi64(first, last), _mm512_unpackhi_epi64(first, last));
  const __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
  _mm_storeu_si128((void *)to, _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)));
}

/* Four rows of b. The last elements, which do not fill a vector, are those that are `inside` from `whole` on. */
typedef struct four_rows {
  const uint8_t *rows[4];
  uint8_t turned;
  size_t whole;
  uint64_t inside;
} four_rows;

#define BEGIN_ROW(i)                                                                                   \
  __m512i a##i = _mm512_setzero_si512(), b##i = _mm512_setzero_si512(), c##i = _mm512_setzero_si512(), \
          d##i = _mm512_setzero_si512();
#define ADD_ROW(i)                                                  \
  {                                                                 \
    const __m512i row = _mm512_loadu_si512(rows + (i)*a_pitch + k); \
    a##i = _mm512_dpbusd_epi32(a##i, row, a);                       \
    b##i = _mm512_dpbusd_epi32(b##i, row, b);                       \
    c##i = _mm512_dpbusd_epi32(c##i, row, c);                       \
    d##i = _mm512_dpbusd_epi32(d##i, row, d);                       \
  }
#define STORE_ROW(i)                               \
  _mm512_storeu_si512(sums + 64 * (i), a##i);      \
  _mm512_storeu_si512(sums + 64 * (i) + 16, b##i); \
  _mm512_storeu_si512(sums + 64 * (i) + 32, c##i); \
  _mm512_storeu_si512(sums + 64 * (i) + 48, d##i);
#define LOAD_INSIDE(j) \
  _mm512_maskz_mov_epi8(inside, _mm512_xor_si512(_mm512_maskz_loadu_epi8(inside, f->rows[j] + k), turns))
#define LOAD_WHOLE(j) _mm512_xor_si512(_mm512_loadu_si512(f->rows[j] + k), turns)
#define ADD_COLUMNS(count, LOAD)                                      \
  {                                                                   \
    const __m512i a = LOAD(0), b = LOAD(1), c = LOAD(2), d = LOAD(3); \
    EACH_OF_##count(ADD_ROW)                                          \
  }

/* Four vectors of sums for each of some rows of a. The last elements come first: with code after the loop, gcc copies
 * the sums from register to register in it. */
#define VNNI_DOTS(count)                                                                                            \
  FOR_VNNI static void vnni_##count(const four_rows *f, const unsigned char *rows, size_t a_pitch, int32_t *sums) { \
    const __m512i turns = _mm512_set1_epi8((char)f->turned);                                                        \
    const __mmask64 inside = f->inside;                                                                             \
    const size_t whole = f->whole;                                                                                  \
    size_t k = whole;                                                                                               \
    EACH_OF_##count(BEGIN_ROW) ADD_COLUMNS(count, LOAD_INSIDE) for (k = 0; k < whole; k += 64)                      \
        ADD_COLUMNS(count, LOAD_WHOLE) EACH_OF_##count(STORE_ROW)                                                   \
  }
VNNI_DOTS(1)
VNNI_DOTS(2)
VNNI_DOTS(4)

/* Four rows of b, of which some may be the same, with all of a. */
FOR_VNNI static void find_vnni_four(const dots *d, const four_rows *f, size_t a_rows, int32_t *to, size_t pitch) {
  int32_t sums[4 * 64];
  for (size_t i = 0, count; i < a_rows; i += count) {
    const unsigned char *rows = d->a + i * d->a_pitch;
    count = a_rows - i >= 4 ? 4 : a_rows - i >= 2 ? 2 : 1;
    if (count == 4) vnni_4(f, rows, d->a_pitch, sums);
    if (count == 2) vnni_2(f, rows, d->a_pitch, sums);
    if (count == 1) vnni_1(f, rows, d->a_pitch, sums);
    for (size_t k = 0; k < count; k++) store_totals(sums + 64 * k, to + (i + k) * pitch);
  }
}

static void find_vnni(const dots *d, size_t a_rows, size_t b_rows) {
  int32_t last[RONDO_DOT_ROWS * 4];
  four_rows four = {.turned = d->turned, .whole = d->depth / 64 * 64, .inside = ((uint64_t)1 << d->depth % 64) - 1};
  for (size_t j = 0; j < b_rows; j += 4) {
    const size_t left = b_rows - j;
    for (size_t i = 0; i < 4; i++) four.rows[i] = d->b + (j + (i < left ? i : 0)) * d->depth;
    find_vnni_four(d, &four, a_rows, left >= 4 ? d->sums + j : last, left >= 4 ? d->pitch : 4);
    for (size_t i = 0; i < a_rows && left < 4; i++)
      memcpy(d->sums + i * d->pitch + j, last + 4 * i, left * sizeof *last);
  }
}

#define STEP 16

FOR_AVX2 RONDO_INLINE __m256i load_bytes(const uint8_t *b, bool turns) {
  const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)b);
  return _mm256_cvtepi8_epi16(turns ? _mm_xor_si128(bytes, _mm_set1_epi8((char)0x80)) : bytes);
}

/* Row j of b with each of the rows of a. */
#define DOT(j, i) sum##j##i = _mm256_add_epi32(sum##j##i, _mm256_madd_epi16(b##j, load(a + (i)*a_pitch + k)));
#define BEGIN_DOT(j, i) __m256i sum##j##i = _mm256_setzero_si256();
#define STORE_DOT(j, i) sums[(i)*pitch + (j)] = total_of(sum##j##i);
#define LOAD_ROW(j) const __m256i b##j = load_bytes(b + (j)*depth + k, turns);
#define DOTS_OF_3_4(D) D(0, 0) D(1, 0) D(2, 0) D(0, 1) D(1, 1) D(2, 1) D(0, 2) D(1, 2) D(2, 2) D(0, 3) D(1, 3) D(2, 3)
#define DOTS_OF_1_4(D) D(0, 0) D(0, 1) D(0, 2) D(0, 3)
#define DOTS_OF_4_1(D) D(0, 0) D(1, 0) D(2, 0) D(3, 0)
#define DOTS_OF_1_1(D) D(0, 0)

/* The products of some rows of b with some of a; returns the first element that is left. `turns`: the highest bits. */
#define AVX2_DOTS(b_rows, a_rows)                                                                                     \
  FOR_AVX2 RONDO_INLINE size_t avx2_##b_rows##_##a_rows(const int16_t *a, size_t a_pitch, const uint8_t *b,           \
                                                        bool turns, size_t depth, int32_t *sums, size_t pitch) {      \
    size_t k = 0;                                                                                                     \
    DOTS_OF_##b_rows##_##a_rows(BEGIN_DOT) for (; k + STEP <= depth; k += STEP){                                      \
        EACH_OF_##b_rows(LOAD_ROW) DOTS_OF_##b_rows##_##a_rows(DOT)} DOTS_OF_##b_rows##_##a_rows(STORE_DOT) return k; \
  }
AVX2_DOTS(3, 4)
AVX2_DOTS(1, 4)
AVX2_DOTS(4, 1)
AVX2_DOTS(1, 1)

/* Rows j .. of b and i .. of a. */
FOR_AVX2 RONDO_INLINE void find_some(const dots *d, size_t j, size_t b_rows, size_t i, size_t a_rows, bool turns) {
  const int16_t *a = wide_row(d, i);
  const uint8_t *b = d->b + j * d->depth;
  int32_t *sums = d->sums + i * d->pitch + j;
  const size_t a_pitch = d->a_pitch / sizeof *a;
  const size_t done = b_rows == 3   ? avx2_3_4(a, a_pitch, b, turns, d->depth, sums, d->pitch)
                      : b_rows == 4 ? avx2_4_1(a, a_pitch, b, turns, d->depth, sums, d->pitch)
                      : a_rows == 4 ? avx2_1_4(a, a_pitch, b, turns, d->depth, sums, d->pitch)
                                    : avx2_1_1(a, a_pitch, b, turns, d->depth, sums, d->pitch);
  for (size_t y = 0; y < a_rows && done < d->depth; y++)
    for (size_t x = 0; x < b_rows; x++)
      sums[y * d->pitch + x] = dot_from(d, i + y, j + x, done, sums[y * d->pitch + x]);
}

FOR_AVX2 RONDO_INLINE void find_all(const dots *d, size_t a_rows, size_t b_rows, bool turns) {
  const size_t fours = a_rows / 4 * 4;
  size_t j = 0;
  for (; fours > 0 && j + 3 <= b_rows; j += 3)
    for (size_t i = 0; i < fours; i += 4) find_some(d, j, 3, i, 4, turns);
  for (; fours > 0 && j < b_rows; j++)
    for (size_t i = 0; i < fours; i += 4) find_some(d, j, 1, i, 4, turns);
  for (j = 0; j + 4 <= b_rows; j += 4)
    for (size_t i = fours; i < a_rows; i++) find_some(d, j, 4, i, 1, turns);
  for (; j < b_rows; j++)
    for (size_t i = fours; i < a_rows; i++) find_some(d, j, 1, i, 1, turns);
}

FOR_AVX2 static void find_avx2(const dots *d, size_t a_rows, size_t b_rows) {
  assert(d->turned == 0 || d->turned == 0x80);
  if (d->turned != 0)
    find_all(d, a_rows, b_rows, true);
  else
    find_all(d, a_rows, b_rows, false);
}

#endif

void rondo_integer_find_dots(const unsigned char *a, size_t a_rows, const uint8_t *b, size_t b_rows, uint8_t turned,
                             size_t depth, int32_t *sums, size_t pitch) {
  const dots d = {a, rondo_integer_dot_bytes(depth), b, turned, depth, pitch, sums};
  assert(a_rows <= RONDO_DOT_ROWS);
#ifdef RONDO_HAS_X86
  if (rondo_uses_vnni()) {
    find_vnni(&d, a_rows, b_rows);
    return;
  }
  if (rondo_vectors_used() >= RONDO_VECTORS_AVX2) {
    find_avx2(&d, a_rows, b_rows);
    return;
  }
#endif
  for (size_t i = 0; i < a_rows; i++)
    for (size_t j = 0; j < b_rows; j++) sums[i * pitch + j] = dot_from(&d, i, j, 0, 0);
}
