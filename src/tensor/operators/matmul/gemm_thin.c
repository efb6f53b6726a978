/* SPDX-License-Identifier: MIT
 * Products of few rows with a transposed b, as layers of a network have for a few requests: dot products of rows that
 * are read in place, because a library would take as long to rearrange b as to multiply it. Tiles of some rows of a and
 * four rows of b stay in registers while the loop goes over k. There are forms for AVX2 and AVX-512. A sum has as many
 * parts as the form's vector has lanes, so its bits depend on the form, but not on the tile. Threads: any.
 */
#include <assert.h>

#include "tensor/operators/common/kernel_support.h"
#include "tensor/operators/common/vectors.h"
#include "tensor/operators/matmul/gemm_few_rows.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#define COLUMNS 4        /* of c in a tile: rows of b */
#define MOST_TILE_ROWS 6 /* of all forms */
#define MOST_ROWS 32     /* of a product; with more, libraries are about as fast */
#define LEAST_DEPTH 32   /* with less, adding up lanes takes longer than multiplying */

typedef struct thin_tile {
  const float *a, *b;
  float *c;
  size_t k, a_stride, b_stride, c_stride;
  size_t columns; /* of c that are stored; b has COLUMNS rows or, if this is 1, one */
  bool accumulates;
} thin_tile;

#ifdef __clang__
#define FULL_UNROLL _Pragma("unroll")
#else
#define FULL_UNROLL _Pragma("GCC unroll 16")
#endif

/* Adds the products of one vector of each row. */
#define ADD_PRODUCTS(form, rows, count, load)                                                                \
  {                                                                                                          \
    form##_vector a[rows];                                                                                   \
    FULL_UNROLL for (size_t i = 0; i < (rows); i++) a[i] = load(t->a + i * t->a_stride + p);                 \
    FULL_UNROLL for (size_t j = 0; j < (count); j++) {                                                       \
      const form##_vector b = load(t->b + j * t->b_stride + p);                                              \
      FULL_UNROLL for (size_t i = 0; i < (rows); i++) sums[i][j] = form##_multiply_add(a[i], b, sums[i][j]); \
    }                                                                                                        \
  }

/* A tile of `rows` rows and `count` columns; both are constants. */
#define DEFINE_TILE(form, rows, count)                                                               \
  FOR_##form static void tile_##rows##_##count##_##form(const thin_tile *t) {                        \
    form##_vector sums[rows][COLUMNS];                                                               \
    FULL_UNROLL for (size_t i = 0; i < (rows); i++) {                                                \
      FULL_UNROLL for (size_t j = 0; j < COLUMNS; j++) sums[i][j] = form##_zero();                   \
    }                                                                                                \
    size_t p = 0;                                                                                    \
    for (; p + form##_lanes <= t->k; p += form##_lanes) ADD_PRODUCTS(form, rows, count, form##_load) \
    if (p < t->k) {                                                                                  \
      const form##_mask mask = form##_mask_of(t->k - p);                                             \
      ADD_PRODUCTS(form, rows, count, form##_load_masked)                                            \
    }                                                                                                \
    FULL_UNROLL for (size_t i = 0; i < (rows); i++) store_sums(t, i, form##_join(sums[i]));          \
  }

/* Four sums of a row; those past the tile's columns are not stored. */
RONDO_INLINE void store_sums(const thin_tile *t, size_t row, __m128 sums) {
  float *c = t->c + row * t->c_stride;
  if (t->columns == COLUMNS)
    _mm_storeu_ps(c, t->accumulates ? _mm_add_ps(_mm_loadu_ps(c), sums) : sums);
  else
    *c = t->accumulates ? *c + _mm_cvtss_f32(sums) : _mm_cvtss_f32(sums);
}

typedef void (*tile_function)(const thin_tile *tile);

/* By the number of rows: four columns, and one. */
typedef struct thin_form {
  size_t most_rows;
  tile_function wide[MOST_TILE_ROWS + 1], narrow[MOST_TILE_ROWS + 1];
} thin_form;

/* Forms ------------------------------------------------------------------------------------------------------------ */

#define FOR_avx2 __attribute__((target("avx2,fma")))
typedef __m256 avx2_vector;
typedef __m256i avx2_mask;
enum { avx2_lanes = 8 };
#define avx2_zero() _mm256_setzero_ps()
#define avx2_load(from) _mm256_loadu_ps(from)
#define avx2_load_masked(from) _mm256_maskload_ps(from, mask)
#define avx2_mask_of(count) \
  _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define avx2_multiply_add(a, b, sum) _mm256_fmadd_ps(a, b, sum)

/* The sums of the lanes of four vectors. */
FOR_avx2 RONDO_INLINE __m128 avx2_join(const __m256 *x) {
  const __m256 low = _mm256_hadd_ps(x[0], x[1]), high = _mm256_hadd_ps(x[2], x[3]), all = _mm256_hadd_ps(low, high);
  return _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
}

DEFINE_TILE(avx2, 1, 4)
DEFINE_TILE(avx2, 2, 4)
DEFINE_TILE(avx2, 3, 4)
DEFINE_TILE(avx2, 1, 1)
DEFINE_TILE(avx2, 2, 1)
DEFINE_TILE(avx2, 3, 1)

static const thin_form avx2_form = {
    3, {NULL, tile_1_4_avx2, tile_2_4_avx2, tile_3_4_avx2}, {NULL, tile_1_1_avx2, tile_2_1_avx2, tile_3_1_avx2}};

#define FOR_avx512 RONDO_FOR_AVX512
typedef __m512 avx512_vector;
typedef __mmask16 avx512_mask;
enum { avx512_lanes = 16 };
#define avx512_zero() _mm512_setzero_ps()
#define avx512_load(from) _mm512_loadu_ps(from)
#define avx512_load_masked(from) _mm512_maskz_loadu_ps(mask, from)
#define avx512_mask_of(count) (__mmask16)((1u << (count)) - 1)
#define avx512_multiply_add(a, b, sum) _mm512_fmadd_ps(a, b, sum)

FOR_avx512 RONDO_INLINE __m128 avx512_join(const __m512 *x) {
  __m256 halves[COLUMNS];
  FULL_UNROLL for (size_t j = 0; j < COLUMNS; j++) halves[j] =
      _mm256_add_ps(_mm512_castps512_ps256(x[j]), _mm512_extractf32x8_ps(x[j], 1));
  const __m256 low = _mm256_hadd_ps(halves[0], halves[1]), high = _mm256_hadd_ps(halves[2], halves[3]);
  const __m256 all = _mm256_hadd_ps(low, high);
  return _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
}

DEFINE_TILE(avx512, 1, 4)
DEFINE_TILE(avx512, 2, 4)
DEFINE_TILE(avx512, 3, 4)
DEFINE_TILE(avx512, 4, 4)
DEFINE_TILE(avx512, 5, 4)
DEFINE_TILE(avx512, 6, 4)
DEFINE_TILE(avx512, 1, 1)
DEFINE_TILE(avx512, 2, 1)
DEFINE_TILE(avx512, 3, 1)
DEFINE_TILE(avx512, 4, 1)
DEFINE_TILE(avx512, 5, 1)
DEFINE_TILE(avx512, 6, 1)

static const thin_form avx512_form = {
    6,
    {NULL, tile_1_4_avx512, tile_2_4_avx512, tile_3_4_avx512, tile_4_4_avx512, tile_5_4_avx512, tile_6_4_avx512},
    {NULL, tile_1_1_avx512, tile_2_1_avx512, tile_3_1_avx512, tile_4_1_avx512, tile_5_1_avx512, tile_6_1_avx512}};

static const thin_form *chosen_form(void) {
  const rondo_vectors used = rondo_vectors_used();
  if (used == RONDO_VECTORS_AVX512) return &avx512_form;
  return used == RONDO_VECTORS_AVX2 && __builtin_cpu_supports("fma") ? &avx2_form : NULL;
}

/* Products --------------------------------------------------------------------------------------------------------- */

bool rondo_gemm_is_thin(const rondo_gemm *g) {
  return g->m <= MOST_ROWS && g->k >= LEAST_DEPTH && g->b.is_transposed && !g->a.is_transposed && chosen_form() != NULL;
}

/* All rows before the next four columns, whose rows of b are then in the nearest cache. Tiles have about equally many
 * rows. */
void rondo_gemm_thin(const rondo_gemm *g) {
  const thin_form *form = chosen_form();
  const size_t tiles = rondo_divide_up(g->m, form->most_rows);
  thin_tile t = {.k = g->k,
                 .a_stride = g->a.stride,
                 .b_stride = g->b.stride,
                 .c_stride = g->c.stride,
                 .accumulates = g->c.accumulates};
  assert(form != NULL);
  for (size_t column = 0; column < g->n; column += t.columns) {
    t.columns = g->n - column < COLUMNS ? 1 : COLUMNS;
    t.b = g->b.at + column * g->b.stride;
    for (size_t i = 0, row = 0, rows; i < tiles; i++, row += rows) {
      rows = g->m / tiles + (i < g->m % tiles ? 1 : 0);
      t.a = g->a.at + row * g->a.stride;
      t.c = g->c.at + row * g->c.stride + column;
      (t.columns == 1 ? form->narrow : form->wide)[rows](&t);
    }
  }
}

#else

bool rondo_gemm_is_thin(const rondo_gemm *gemm) {
  (void)gemm;
  return false;
}

void rondo_gemm_thin(const rondo_gemm *gemm) { rondo_gemm_plain(gemm); }

#endif
