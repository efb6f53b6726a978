/* SPDX-License-Identifier: MIT
 * The forms of the products by panels: plain C, AVX2 and AVX-512 with fused multiply-adds, and NEON. A tile of some
 * rows and one or more panels of columns stays in registers while the loop goes over k (Goto and van de Geijn,
 * "Anatomy of High-Performance Matrix Multiplication", 2008). A tile of few rows has more panels, because an addition
 * takes several cycles, in which the processor works on other sums. Each form defines its vector of floats and what it
 * does with it. Threads: any.
 */
#include "tensor/operators/matmul/gemm_packed.h"

#include <assert.h>
#include <string.h>

#include "tensor/operators/common/kernel_support.h"
#include "tensor/operators/common/vectors.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_AVX2 /* the compiler; the processor is asked */
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__GNUC__)
#define HAS_NEON /* every processor */
#include <arm_neon.h>
#endif

#define PANEL RONDO_PANEL
#define MOST_ROWS 6

void rondo_gemm_pack(const rondo_gemm_factor *b, size_t k, size_t n, size_t panel, float *packed) {
  const size_t first = panel * PANEL, count = rondo_smaller(PANEL, n - first);
  float *to = packed + first * k;
  assert(first < n);
  if (count < PANEL) memset(to, 0, k * PANEL * sizeof *to);
  if (!b->is_transposed) {
    for (size_t p = 0; p < k; p++) memcpy(to + p * PANEL, b->at + p * b->stride + first, count * sizeof *to);
    return;
  }
  for (size_t p = 0; p < k; p++)
    for (size_t j = 0; j < count; j++) to[p * PANEL + j] = b->at[(first + j) * b->stride + p];
}

/* A tile: rows of a, panels of b', and where its first element is in c. */
typedef struct panel_tile {
  const float *a, *b;
  const float *bias; /* of each row; NULL: none */
  float *c;
  size_t k, c_stride;
  size_t a_row, a_column; /* from a row of a' to the next one, and from a column */
  size_t b_row, b_panel;  /* from a row of b' to the next one, and from a panel */
  size_t columns;         /* that c has; the panels may have more */
  bool accumulates, rectifies;
} panel_tile;

RONDO_INLINE float end_sum(const panel_tile *t, float before, float sum) {
  const float y = t->accumulates ? before + sum : sum;
  return t->rectifies && y <= 0 ? 0 : y; /* NaN stays NaN */
}

/* A vector of sums becomes columns at .. of a row; the last panel may have fewer. */
RONDO_INLINE void store_part(const panel_tile *t, float *row, size_t at, const float *sums, size_t count) {
  for (size_t j = 0; j < count && at + j < t->columns; j++) row[at + j] = end_sum(t, row[at + j], sums[j]);
}

/* The tile of `rows` rows and `panels` panels, both constants. Compilers unroll the inner loops, as their bounds are
 * small constants, and keep the sums in registers. */
#ifdef __clang__
#define FULL_UNROLL _Pragma("unroll")
#else
#define FULL_UNROLL _Pragma("GCC unroll 16")
#endif
#define DEFINE_TILE(form, rows, panels)                                                                              \
  FOR_##form static void tile_##rows##_##panels##_##form(const panel_tile *t) {                                      \
    enum { VECTORS = (panels)*PANEL / form##_lanes, EACH = PANEL / form##_lanes };                                   \
    form##_vector sums[rows][VECTORS];                                                                               \
    FULL_UNROLL for (size_t i = 0; i < (rows); i++) {                                                                \
      FULL_UNROLL for (size_t v = 0; v < VECTORS; v++) sums[i][v] = form##_all(t->bias == NULL ? 0.0f : t->bias[i]); \
    }                                                                                                                \
    const float *column = t->a, *b_row = t->b;                                                                       \
    for (size_t p = 0; p < t->k; p++, column += t->a_column, b_row += t->b_row) {                                    \
      form##_vector b[VECTORS];                                                                                      \
      FULL_UNROLL for (size_t v = 0; v < VECTORS; v++) b[v] =                                                        \
          form##_load(b_row + v / EACH * t->b_panel + v % EACH * form##_lanes);                                      \
      FULL_UNROLL for (size_t i = 0; i < (rows); i++) {                                                              \
        const form##_vector a = form##_all(column[i * t->a_row]);                                                    \
        FULL_UNROLL for (size_t v = 0; v < VECTORS; v++) sums[i][v] = form##_multiply_add(a, b[v], sums[i][v]);      \
      }                                                                                                              \
    }                                                                                                                \
    FULL_UNROLL for (size_t i = 0; i < (rows); i++) {                                                                \
      FULL_UNROLL for (size_t v = 0; v < VECTORS; v++) {                                                             \
        float *row = t->c + i * t->c_stride, part[form##_lanes];                                                     \
        const size_t at = v * form##_lanes;                                                                          \
        if (at + form##_lanes <= t->columns) {                                                                       \
          form##_vector y = t->accumulates ? form##_add(form##_load(row + at), sums[i][v]) : sums[i][v];             \
          form##_store(row + at, t->rectifies ? form##_rectify(y) : y);                                              \
        } else {                                                                                                     \
          form##_store(part, sums[i][v]);                                                                            \
          store_part(t, row, at, part, form##_lanes);                                                                \
        }                                                                                                            \
      }                                                                                                              \
    }                                                                                                                \
  }

typedef void (*tile_function)(const panel_tile *tile);

/* By the number of rows: how many panels the tile has, and the same rows with one panel, for those that are left. */
typedef struct tile_form {
  size_t panels;
  tile_function wide, narrow;
} tile_form;

/* The rows of the table for 4 to 6 rows, which have `panels` panels at once: as many as the registers hold. */
#define DEFINE_TILES(form, panels)                                                                           \
  DEFINE_TILE(form, 1, 1)                                                                                    \
  DEFINE_TILE(form, 1, 4)                                                                                    \
  DEFINE_TILE(form, 2, 1)                                                                                    \
  DEFINE_TILE(form, 2, 2)                                                                                    \
  DEFINE_TILE(form, 3, 1)                                                                                    \
  DEFINE_TILE(form, 3, 2)                                                                                    \
  DEFINE_TILE(form, 4, 1)                                                                                    \
  DEFINE_TILE(form, 5, 1)                                                                                    \
  DEFINE_TILE(form, 6, 1)                                                                                    \
  static const tile_form form##_tiles[MOST_ROWS + 1] = {{0, NULL, NULL},                                     \
                                                        {4, tile_1_4_##form, tile_1_1_##form},               \
                                                        {2, tile_2_2_##form, tile_2_1_##form},               \
                                                        {2, tile_3_2_##form, tile_3_1_##form},               \
                                                        {panels, tile_4_##panels##_##form, tile_4_1_##form}, \
                                                        {panels, tile_5_##panels##_##form, tile_5_1_##form}, \
                                                        {panels, tile_6_##panels##_##form, tile_6_1_##form}};

/* Forms ------------------------------------------------------------------------------------------------------------ */

#ifdef HAS_NEON

#define FOR_neon
typedef float32x4_t neon_vector;
enum { neon_lanes = 4 };
#define neon_all(x) vdupq_n_f32(x)
#define neon_load(from) vld1q_f32(from)
#define neon_store(to, x) vst1q_f32(to, x)
#define neon_add(a, b) vaddq_f32(a, b)
#define neon_multiply_add(a, b, sum) vfmaq_f32(sum, a, b)
#define neon_rectify(x) vbslq_f32(vcleq_f32(x, vdupq_n_f32(0)), vdupq_n_f32(0), x)

DEFINE_TILES(neon, 1)

static const tile_form *chosen_tiles(void) { return neon_tiles; }

#else

#define FOR_plain
typedef struct plain_vector {
  float lane[4];
} plain_vector;
enum { plain_lanes = 4 };

RONDO_INLINE plain_vector plain_all(float x) { return (plain_vector){{x, x, x, x}}; }
RONDO_INLINE plain_vector plain_load(const float *from) { return (plain_vector){{from[0], from[1], from[2], from[3]}}; }
RONDO_INLINE void plain_store(float *to, plain_vector x) { memcpy(to, x.lane, sizeof x.lane); }
RONDO_INLINE plain_vector plain_add(plain_vector a, plain_vector b) {
  for (size_t i = 0; i < plain_lanes; i++) a.lane[i] += b.lane[i];
  return a;
}
RONDO_INLINE plain_vector plain_multiply_add(plain_vector a, plain_vector b, plain_vector sum) {
  for (size_t i = 0; i < plain_lanes; i++) sum.lane[i] += a.lane[i] * b.lane[i];
  return sum;
}

RONDO_INLINE plain_vector plain_rectify(plain_vector x) {
  for (size_t i = 0; i < plain_lanes; i++) x.lane[i] = x.lane[i] <= 0 ? 0 : x.lane[i];
  return x;
}

DEFINE_TILES(plain, 1)

#ifdef HAS_AVX2

#define FOR_avx2 __attribute__((target("avx2,fma")))
typedef __m256 avx2_vector;
enum { avx2_lanes = 8 };
#define avx2_all(x) _mm256_set1_ps(x)
#define avx2_load(from) _mm256_loadu_ps(from)
#define avx2_store(to, x) _mm256_storeu_ps(to, x)
#define avx2_add(a, b) _mm256_add_ps(a, b)
#define avx2_multiply_add(a, b, sum) _mm256_fmadd_ps(a, b, sum)
#define avx2_rectify(x) _mm256_and_ps(x, _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_NLE_UQ))

DEFINE_TILES(avx2, 1)

#define FOR_avx512 RONDO_FOR_AVX512
typedef __m512 avx512_vector;
enum { avx512_lanes = 16 };
#define avx512_all(x) _mm512_set1_ps(x)
#define avx512_load(from) _mm512_loadu_ps(from)
#define avx512_store(to, x) _mm512_storeu_ps(to, x)
#define avx512_add(a, b) _mm512_add_ps(a, b)
#define avx512_multiply_add(a, b, sum) _mm512_fmadd_ps(a, b, sum)
#define avx512_rectify(x) _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NLE_UQ), x)

DEFINE_TILE(avx512, 4, 2)
DEFINE_TILE(avx512, 5, 2)
DEFINE_TILE(avx512, 6, 2)
DEFINE_TILES(avx512, 2)

static const tile_form *chosen_tiles(void) {
  const rondo_vectors used = rondo_vectors_used();
  if (used == RONDO_VECTORS_AVX512) return avx512_tiles;
  return used == RONDO_VECTORS_AVX2 && __builtin_cpu_supports("fma") ? avx2_tiles : plain_tiles;
}

#else
static const tile_form *chosen_tiles(void) { return plain_tiles; }
#endif
#endif

/* Products --------------------------------------------------------------------------------------------------------- */

/* A product whose b' has whole panels in memory, packed or in place. */
typedef struct product {
  size_t m, n, k;
  rondo_gemm_factor a;
  const float *b;
  size_t b_row, b_panel;
  rondo_gemm_result c;
  const float *bias;
  bool rectifies;
} product;

static size_t a_row_of(const product *g) { return g->a.is_transposed ? 1 : g->a.stride; }

/* Multiplies `rows` rows with some panels. */
static void run_rows(const product *g, const tile_form *form, size_t row, size_t panel, size_t panels) {
  const size_t column = panel * PANEL;
  const panel_tile tile = {.a = g->a.at + row * a_row_of(g),
                           .b = g->b + panel * g->b_panel,
                           .bias = g->bias == NULL ? NULL : g->bias + row,
                           .c = g->c.at + row * g->c.stride + column,
                           .k = g->k,
                           .c_stride = g->c.stride,
                           .a_row = a_row_of(g),
                           .a_column = g->a.is_transposed ? g->a.stride : 1,
                           .b_row = g->b_row,
                           .b_panel = g->b_panel,
                           .columns = rondo_smaller(panels * PANEL, g->n - column),
                           .accumulates = g->c.accumulates,
                           .rectifies = g->rectifies};
  (panels == 1 ? form->narrow : form->wide)(&tile);
}

/* All rows before the next panels, which are then in the nearest cache. Tiles have about equally many rows: with few
 * of them, the processor would wait for sums. */
static void run_product(const product *g) {
  const tile_form *forms = chosen_tiles();
  const size_t all = rondo_gemm_panels(g->n), tiles = rondo_divide_up(g->m, MOST_ROWS);
  assert(g->a.stride >= (g->a.is_transposed ? g->m : g->k) && g->c.stride >= g->n);
  const size_t together = g->m == 0 ? 1 : forms[g->m / tiles].panels;
  for (size_t panel = 0, count; panel < all; panel += count) {
    count = all - panel < together ? 1 : together;
    for (size_t i = 0, row = 0, rows; i < tiles; i++, row += rows) {
      rows = g->m / tiles + (i < g->m % tiles ? 1 : 0);
      const tile_form *form = &forms[rows];
      for (size_t done = 0; done < count; done += form->panels)
        run_rows(g, form, row, panel + done, rondo_smaller(form->panels, count - done));
    }
  }
}

void rondo_gemm_run_packed(const rondo_gemm_packed *g) {
  run_product(&(product){g->m, g->n, g->k, .a = g->a, .b = g->packed, .b_row = PANEL, .b_panel = g->k * PANEL, g->c});
}

/* Multiplies the columns that make no whole panel. */
static void run_last_columns(const product *g, const rondo_gemm_factor *b) {
  float packed[RONDO_GEMM_SMALL_DEPTH * PANEL];
  const size_t column = g->n / PANEL * PANEL;
  const rondo_gemm_factor last = {b->at + column, b->stride, false};
  product rest = *g;
  rest.n -= column;
  rest.c.at += column;
  rest.b = packed;
  rest.b_row = PANEL;
  if (rest.n == 0) return;
  rondo_gemm_pack(&last, g->k, rest.n, 0, packed);
  run_product(&rest);
}

void rondo_gemm_run_small(const rondo_gemm_small *g) {
  assert(!g->b.is_transposed && g->b.stride >= g->n);
  for (size_t first = 0; first < g->k; first += RONDO_GEMM_SMALL_DEPTH) {
    const rondo_gemm_factor b = {g->b.at + first * g->b.stride, g->b.stride, false};
    product part = {
        .m = g->m,
        .n = g->n,
        .k = rondo_smaller(g->k - first, RONDO_GEMM_SMALL_DEPTH),
        .a = {g->a.at + (g->a.is_transposed ? first * g->a.stride : first), g->a.stride, g->a.is_transposed},
        .b = b.at,
        .b_row = b.stride,
        .b_panel = PANEL,
        .c = g->c,
        .bias = first == 0 ? g->bias : NULL};
    part.c.accumulates |= first > 0;
    part.rectifies = g->rectifies && first + part.k == g->k;
    run_last_columns(&part, &b);
    part.n -= part.n % PANEL;
    if (part.n > 0) run_product(&part);
  }
}
