/* SPDX-License-Identifier: MIT
 * Products of rows and panels, as integer_panels.h says. A tile of six rows and a panel stays in registers while the
 * loop goes over the depth. Without VNNI, quads of weights become 16-bit integers in registers, and pairs of sums are
 * added at the end. Threads: any.
 */
#include "tensor/operators/integer/integer_panels.h"

#include <assert.h>
#include <string.h>

#define QUAD RONDO_QUAD
#define WIDTH RONDO_INTEGER_COLUMNS
#define MOST_ROWS 6
#define CACHED_BYTES 262144 /* that the rows of a tile read */
#define ENOUGH_TILES 16

/* Weights ---------------------------------------------------------------------------------------------------------- */

/* The divisor of which most lanes of vectors are used. */
size_t rondo_panel_packed_width(size_t channels) {
  size_t best = 0;
  for (size_t width = 8; width <= WIDTH; width++) {
    if (channels % width != 0) continue;
    const size_t lanes = rondo_divide_up(width, 16) * 16;
    if (best == 0 || width * (rondo_divide_up(best, 16) * 16) >= best * lanes) best = width;
  }
  return best;
}

rondo_status rondo_panel_order(const rondo_allocator *allocator, size_t channels, size_t in, size_t taps,
                               bool is_transposed, rondo_packed_state **out) {
  const size_t width = rondo_panel_packed_width(channels);
  assert(width > 0 && in % QUAD == 0 && (is_transposed || taps == 1));
  RONDO_TRY(
      rondo_packed_state_create(allocator, 1, is_transposed ? channels : in, is_transposed ? in : channels, taps, out));
  size_t *of_channel = is_transposed ? (*out)->row : (*out)->column;
  size_t *of_input = is_transposed ? (*out)->column : (*out)->row;
  for (size_t i = 0; i < channels; i++) of_channel[i] = i / width * width * in * taps + i % width * QUAD;
  for (size_t i = 0; i < in; i++) of_input[i] = i / QUAD * QUAD * width + i % QUAD;
  for (size_t i = 0; i < taps; i++) (*out)->tap[i] = i * in * width;
  return RONDO_OK;
}

void rondo_panel_write(const uint8_t *weights, bool is_unsigned, size_t channels, size_t in, size_t taps, size_t number,
                       uint8_t *to) {
  const size_t width = rondo_panel_padded_width(channels), quads = rondo_divide_up(in, QUAD);
  const size_t first = number * width, count = rondo_smaller(width, channels - first);
  const uint8_t turned = rondo_to_signed(is_unsigned);
  memset(to, 0, taps * quads * width * QUAD);
  for (size_t j = 0; j < count; j++) {
    const uint8_t *from = weights + (first + j) * in * taps;
    for (size_t i = 0; i < in; i++)
      for (size_t tap = 0; tap < taps; tap++)
        to[((tap * quads + i / QUAD) * width + j) * QUAD + i % QUAD] = *from++ ^ turned;
  }
}

/* Rows ------------------------------------------------------------------------------------------------------------- */

RONDO_VECTORISED(widen,
                 (const uint8_t *restrict from, uint8_t turned, int32_t zero, int16_t *restrict to, size_t count),
                 (from, turned, zero, to, count)) {
  RONDO_EACH_LANE(i, lane, count, to[i] = (int16_t)((from[i] ^ turned) - zero));
}

void rondo_panel_copy(const uint8_t *from, size_t count, bool is_unsigned, int32_t zero, bool is_wide, void *to) {
  if (is_wide)
    widen(from, rondo_to_unsigned(is_unsigned), zero + (is_unsigned ? 0 : 128), to, count);
  else
    memcpy(to, from, count);
}

/* Some rows of a tile. Part `p` of row i begins at rows[i] + offsets[p]. */
typedef struct tile {
  const unsigned char *rows[MOST_ROWS];
  const size_t *offsets;                 /* bytes */
  size_t count, parts, quads, quad_step; /* quad_step: bytes; 0: all quads of a part are one */
  const int8_t *panel;
  size_t width;
  uint8_t turned; /* the bits of bytes */
  bool are_wide;
} tile;

static void find_offsets(const rondo_panel_rows *rows, size_t *out) {
  for (size_t down = 0; down < rows->down; down++)
    for (size_t across = 0; across < rows->across; across++)
      *out++ = down * rows->part_line_step + across * rows->part_step;
}

/* A row among all. */
typedef struct place {
  const unsigned char *image;
  size_t x, y;
} place;

static place find_place(const rondo_panel_rows *rows, size_t row) {
  const size_t line = row / rows->width;
  return (place){rows->first + line / rows->height * rows->image_step, row % rows->width, line % rows->height};
}

/* Takes the next rows. */
static void take_rows(const rondo_panel_rows *rows, place *at, size_t count, tile *t) {
  t->count = count;
  for (size_t i = 0; i < count; i++) {
    t->rows[i] = at->image + at->y * rows->line_step + at->x * rows->step;
    if (++at->x < rows->width) continue;
    at->x = 0;
    if (++at->y < rows->height) continue;
    at->y = 0;
    at->image += rows->image_step;
  }
}

/* Element `k` of a part, of row `i`. */
static int32_t element_at(const tile *t, size_t part, size_t i, size_t k) {
  const unsigned char *from = t->rows[i] + t->offsets[part] + k / QUAD * t->quad_step;
  if (t->are_wide) return ((const int16_t *)(const void *)from)[k % QUAD];
  return from[k % QUAD] ^ t->turned;
}

static uint32_t total_of(const tile *t, size_t i) {
  uint32_t total = 0;
  for (size_t part = 0; part < t->parts; part++)
    for (size_t k = 0; k < QUAD * t->quads; k++) total += (uint32_t)element_at(t, part, i, k);
  return total;
}

static void multiply_plain(const tile *t, int32_t *sums) {
  memset(sums, 0, t->count * WIDTH * sizeof *sums);
  for (size_t i = 0; i < t->count; i++, sums += WIDTH) {
    const int8_t *panel = t->panel;
    for (size_t part = 0; part < t->parts; part++)
      for (size_t quad = 0; quad < t->quads; quad++, panel += QUAD * t->width)
        for (size_t q = 0; q < QUAD; q++) {
          const int32_t a = element_at(t, part, i, QUAD * quad + q);
          for (size_t j = 0; j < t->width; j++)
            sums[j] = (int32_t)((uint32_t)sums[j] + (uint32_t)(a * panel[QUAD * j + q]));
        }
  }
}

/* x86-64 ----------------------------------------------------------------------------------------------------------- */

#ifdef RONDO_HAS_X86

#ifdef __clang__
#define FULL_UNROLL _Pragma("unroll")
#else
#define FULL_UNROLL _Pragma("GCC unroll 16")
#endif

RONDO_INLINE int32_t load_quad(const unsigned char *from) {
  int32_t quad;
  memcpy(&quad, from, sizeof quad);
  return quad;
}

/* The sums of `count` rows and `vectors` vectors of channels, both constants. Compilers unroll the inner loops and keep
 * the sums in registers. */
#define DEFINE_VNNI(count, vectors)                                                                                 \
  RONDO_FOR_VNNI static void vnni_##count##_##vectors(const tile *t, int32_t *out) {                                \
    const size_t left = t->width - 16 * ((vectors)-1), step = t->quad_step, width = QUAD * t->width;                \
    const __mmask16 last = (__mmask16)((1u << left) - 1);                                                           \
    const __m512i turned = _mm512_set1_epi8((char)t->turned);                                                       \
    const int8_t *panel = t->panel;                                                                                 \
    __m512i sums[count][vectors];                                                                                   \
    FULL_UNROLL for (size_t i = 0; i < (count); i++) {                                                              \
      FULL_UNROLL for (size_t v = 0; v < (vectors); v++) sums[i][v] = _mm512_setzero_si512();                       \
    }                                                                                                               \
    for (size_t part = 0; part < t->parts; part++) {                                                                \
      const unsigned char *rows[count];                                                                             \
      FULL_UNROLL for (size_t i = 0; i < (count); i++) rows[i] = t->rows[i] + t->offsets[part];                     \
      for (size_t quad = 0, at = 0; quad < t->quads; quad++, at += step, panel += width) {                          \
        __m512i b[vectors];                                                                                         \
        FULL_UNROLL for (size_t v = 0; v + 1 < (vectors); v++) b[v] = _mm512_loadu_si512(panel + 64 * v);           \
        b[(vectors)-1] = _mm512_maskz_loadu_epi32(last, panel + 64 * ((vectors)-1));                                \
        FULL_UNROLL for (size_t i = 0; i < (count); i++) {                                                          \
          const __m512i a = _mm512_xor_si512(turned, _mm512_set1_epi32(load_quad(rows[i] + at)));                   \
          FULL_UNROLL for (size_t v = 0; v < (vectors); v++) sums[i][v] = _mm512_dpbusd_epi32(sums[i][v], a, b[v]); \
        }                                                                                                           \
      }                                                                                                             \
    }                                                                                                               \
    FULL_UNROLL for (size_t i = 0; i < (count); i++) {                                                              \
      FULL_UNROLL for (size_t v = 0; v < (vectors); v++) _mm512_storeu_si512(out + WIDTH * i + 16 * v, sums[i][v]); \
    }                                                                                                               \
  }
#define DEFINE_VNNI_ROWS(count) DEFINE_VNNI(count, 1) DEFINE_VNNI(count, 2) DEFINE_VNNI(count, 3) DEFINE_VNNI(count, 4)
DEFINE_VNNI_ROWS(1)
DEFINE_VNNI_ROWS(2)
DEFINE_VNNI_ROWS(3)
DEFINE_VNNI_ROWS(4)
DEFINE_VNNI_ROWS(5)
DEFINE_VNNI_ROWS(6)

typedef void (*tile_function)(const tile *t, int32_t *sums);
#define VNNI_ROW(count) \
  { vnni_##count##_1, vnni_##count##_2, vnni_##count##_3, vnni_##count##_4 }
static const tile_function vnni_forms[MOST_ROWS][4] = {VNNI_ROW(1), VNNI_ROW(2), VNNI_ROW(3),
                                                       VNNI_ROW(4), VNNI_ROW(5), VNNI_ROW(6)};

/* Channels `first` .. `first` + 7 of `count` rows, of which each is 16-bit integers. A sum has two parts. */
#define DEFINE_WIDE(count)                                                                                    \
  RONDO_FOR_AVX2 static void wide_##count(const tile *t, size_t first, int32_t *out) {                        \
    const size_t step = t->quad_step, width = QUAD * t->width;                                                \
    const int8_t *panel = t->panel + QUAD * first;                                                            \
    __m256i low[count], high[count];                                                                          \
    FULL_UNROLL for (size_t i = 0; i < (count); i++) low[i] = high[i] = _mm256_setzero_si256();               \
    for (size_t part = 0; part < t->parts; part++) {                                                          \
      const unsigned char *rows[count];                                                                       \
      FULL_UNROLL for (size_t i = 0; i < (count); i++) rows[i] = t->rows[i] + t->offsets[part];               \
      for (size_t quad = 0, at = 0; quad < t->quads; quad++, at += step, panel += width) {                    \
        const __m256i b = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)panel));        \
        const __m256i c = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(panel + 16))); \
        FULL_UNROLL for (size_t i = 0; i < (count); i++) {                                                    \
          const __m256i a = load_four(rows[i] + at);                                                          \
          low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(a, b));                                         \
          high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(a, c));                                       \
        }                                                                                                     \
      }                                                                                                       \
    }                                                                                                         \
    FULL_UNROLL for (size_t i = 0; i < (count); i++) {                                                        \
      const __m256i all = _mm256_permute4x64_epi64(_mm256_hadd_epi32(low[i], high[i]), 0xd8);                 \
      _mm256_storeu_si256((__m256i *)(void *)(out + WIDTH * i + first), all);                                 \
    }                                                                                                         \
  }

/* Four 16-bit integers, for all channels. */
RONDO_FOR_AVX2 RONDO_INLINE __m256i load_four(const unsigned char *from) {
  int64_t four;
  memcpy(&four, from, sizeof four);
  return _mm256_set1_epi64x(four);
}
DEFINE_WIDE(1)
DEFINE_WIDE(2)
DEFINE_WIDE(3)
DEFINE_WIDE(4)
DEFINE_WIDE(5)
DEFINE_WIDE(6)

typedef void (*wide_function)(const tile *t, size_t first, int32_t *sums);
static const wide_function wide_forms[MOST_ROWS] = {wide_1, wide_2, wide_3, wide_4, wide_5, wide_6};

/* The last eight channels may be among those before. */
static void multiply_wide(const tile *t, int32_t *sums) {
  for (size_t j = 0; j < t->width; j += 8) wide_forms[t->count - 1](t, rondo_smaller(j, t->width - 8), sums);
}

#endif

/* sums: rows of WIDTH. */
static void multiply(const tile *t, int32_t *sums) {
  assert(t->count > 0 && t->count <= MOST_ROWS && t->width > 0 && t->width <= WIDTH);
#ifdef RONDO_HAS_X86
  if (!t->are_wide && rondo_uses_vnni()) {
    vnni_forms[t->count - 1][(t->width - 1) / 16](t, sums);
    return;
  }
  if (t->are_wide && t->width >= 8 && rondo_vectors_used() >= RONDO_VECTORS_AVX2) {
    multiply_wide(t, sums);
    return;
  }
#endif
  multiply_plain(t, sums);
}

/* Zeros ------------------------------------------------------------------------------------------------------------ */

/* What the zeros of a panel add to its sums: (a - zero) (b - own) is a b - zero b - own a + zero own. */
typedef struct zeros {
  bool has_own;
  uint32_t own[WIDTH], added[WIDTH];
} zeros;

/* A row that is one quad, all over. */
static const size_t no_offsets[RONDO_PANEL_PARTS];

static void find_zeros(const rondo_panel_product *p, size_t channel, size_t count, const tile *t, zeros *out) {
  const rondo_integer_ending *e = p->ending;
  const uint8_t given = p->arrays.a_zero == NULL ? 0 : *(const uint8_t *)p->arrays.a_zero;
  const uint8_t turned = rondo_to_signed(e->b_unsigned), quad[QUAD] = {given, given, given, given};
  const uint32_t zero = t->are_wide ? 0 : given ^ t->turned; /* wide rows have none */
  const uint32_t depth = (uint32_t)(QUAD * t->quads * t->parts);
  const uint8_t *b_zeros = p->arrays.b_zero;
  int32_t sums[WIDTH] = {0};
  tile of_zero = *t;
  of_zero.rows[0] = quad;
  of_zero.offsets = no_offsets;
  of_zero.quad_step = 0;
  of_zero.count = 1;
  if (zero != 0) multiply(&of_zero, sums);
  out->has_own = false;
  for (size_t j = 0; j < count; j++) {
    const uint8_t byte = b_zeros == NULL ? 0 : b_zeros[e->zeros_b == 1 ? 0 : channel + j];
    out->own[j] = (uint32_t)rondo_signed_byte(byte, turned);
    out->has_own |= out->own[j] != 0;
    out->added[j] = zero * out->own[j] * depth - (uint32_t)sums[j];
  }
}

RONDO_VECTORISED(add_zeros, (const zeros *z, uint32_t total, int32_t *restrict sums, size_t count),
                 (z, total, sums, count)) {
  RONDO_EACH_LANE(j, lane, count, sums[j] = (int32_t)((uint32_t)sums[j] + z->added[j] - total * z->own[j]));
}

/* The product ------------------------------------------------------------------------------------------------------ */

void rondo_panel_multiply(const rondo_panel_product *p, size_t panel, size_t row, size_t count) {
  const rondo_panel_rows *rows = &p->rows;
  const size_t channel = panel * p->width, channels = rondo_smaller(p->width, p->channels - channel);
  const size_t parts = rows->across * rows->down;
  size_t offsets[RONDO_PANEL_PARTS];
  int32_t sums[MOST_ROWS * WIDTH];
  rondo_integer_channels ending;
  zeros z;
  tile t = {.offsets = offsets,
            .parts = parts,
            .quads = rows->quads,
            .quad_step = QUAD * rondo_panel_element(rows->are_wide),
            .panel = p->panels + panel * p->width * parts * rows->quads * QUAD,
            .width = p->width,
            .turned = rondo_to_unsigned(p->ending->a_unsigned),
            .are_wide = rows->are_wide};
  place at = find_place(rows, row);
  assert(parts <= RONDO_PANEL_PARTS);
  find_offsets(rows, offsets);
  find_zeros(p, channel, channels, &t, &z);
  rondo_integer_find_channels(p->ending, &p->arrays, channel, channels, &ending);
  const bool are_added = p->ending->has_scale == 0 || z.has_own; /* to the sums; else with the biases */
  for (size_t j = 0; j < channels && !are_added; j++) ending.added[j] += z.added[j];
  for (size_t end = row + count; row < end; row += t.count) {
    take_rows(rows, &at, rondo_smaller(end - row, MOST_ROWS), &t);
    multiply(&t, sums);
    for (size_t i = 0; i < t.count && are_added; i++)
      add_zeros(&z, z.has_own ? total_of(&t, i) : 0, sums + i * WIDTH, channels);
    rondo_integer_store_columns(p->ending, &ending, sums, t.count, channels, p->arrays.result,
                                row * p->channels + channel, p->channels);
  }
}

rondo_panel_tiling rondo_panel_tiles(size_t rows, size_t panels, size_t row_bytes) {
  const size_t cached = rondo_larger(CACHED_BYTES / row_bytes, 4 * MOST_ROWS);
  const size_t wanted = rondo_divide_up(rows, rondo_divide_up(ENOUGH_TILES, panels));
  const size_t most = rondo_larger(rondo_smaller(wanted, cached), rondo_smaller(cached, 8 * MOST_ROWS));
  rondo_panel_tiling t = {.rows = rondo_divide_up(most, MOST_ROWS) * MOST_ROWS, .across = panels};
  t.down = rondo_divide_up(rows, t.rows);
  return t;
}
