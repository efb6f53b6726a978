/* SPDX-License-Identifier: MIT
 * The forms of dot products: plain C, AVX2, AVX2 with the VNNI instructions of AVX-512, and NEON. Each form defines a
 * few functions on eight lanes of floats and integers, from which RONDO_DOTS makes its four kinds of dot products.
 * Compilers do not vectorise the plain form well enough at -O2. Threads: any.
 *
 * A step has 32 columns, in the order of the prepared activations. With floats, lane l adds columns l, l + 8, l + 16
 * and l + 24, pair by pair. With integers, it adds columns 4 l .. 4 l + 3.
 */
#include "tensor/operators/quantized/quantized_dot.h"

#include <assert.h>
#include <string.h>

#include "tensor/operators/common/vectors.h"
#include "tensor/operators/quantized/quantized_scheme.h"

#define LANES RONDO_DOT_LANES
#define STEP RONDO_QUANTIZED_STEP
#define FACTORS RONDO_DOT_FACTORS

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_AVX2 /* the compiler; the processor is asked */
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__GNUC__)
#define HAS_NEON /* every processor */
#include <arm_neon.h>
#endif

/* Each lane's partial sums, pair by pair. */
RONDO_INLINE float join_lanes(const float *lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

/* The last step of a row may have fewer columns. It is copied, so that no byte after the row is read; the values that
 * are missing are multiplied by zeros. This comes before the loops, which then call no function and keep their sums in
 * registers. */
RONDO_INLINE void copy_last(const rondo_dot_row *row, uint32_t bits, uint8_t *last) {
  const size_t left = row->columns % STEP;
  memset(last, 0, STEP);
  memcpy(last, row->values + (row->columns - left) * bits / 8, rondo_quantized_row_bytes(bits, left));
}

/* The statements for i = 0 and, if `count` is not 1, for 1 .. 3. Compilers do not unroll such a loop at -O2, and so
 * keep its arrays in memory. */
#define EACH_FACTOR(count, ...) \
  do {                          \
    FOR_FACTOR(0, __VA_ARGS__)  \
    if ((count) == 1) break;    \
    FOR_FACTOR(1, __VA_ARGS__)  \
    FOR_FACTOR(2, __VA_ARGS__)  \
    FOR_FACTOR(3, __VA_ARGS__)  \
  } while (0)
#define FOR_FACTOR(number, ...) \
  {                             \
    enum { i = (number) };      \
    __VA_ARGS__;                \
  }

/* Products of a row with `count` factors, 1 or FACTORS: the groups of the row, and the steps of a group. `count` and
 * `has_zeros` are constants. Groups can be as short as a step, so little is done for each: the sums begin with what its
 * zero takes off. */
#define RONDO_DOT(form, kind, element, bits)                                                                          \
  FOR_##form RONDO_INLINE void dot_some_##kind##bits##_##form(const rondo_dot_row *row, const rondo_dot_factor *x,    \
                                                              const size_t count, const bool has_zeros, float *out) { \
    form##_floats totals[FACTORS];                                                                                    \
    float lanes[LANES];                                                                                               \
    uint8_t last[STEP];                                                                                               \
    copy_last(row, bits, last);                                                                                       \
    EACH_FACTOR(count, totals[i] = form##_no_floats());                                                               \
    for (size_t at = 0, group = 0; at < row->columns; group++) {                                                      \
      const size_t end = row->columns - at < row->group ? row->columns : at + row->group;                             \
      form##_##kind sums[FACTORS];                                                                                    \
      if (has_zeros) {                                                                                                \
        const int32_t zero = rondo_quantized_zero(bits, row->zeros, group);                                           \
        EACH_FACTOR(count, sums[i] = form##_times_##kind(form##_load_##kind(x[i].starts, LANES * group), zero));      \
      } else if ((bits) == 4) {                                                                                       \
        EACH_FACTOR(count, sums[i] = form##_load_##kind(x[i].starts, LANES * group));                                 \
      } else {                                                                                                        \
        EACH_FACTOR(count, sums[i] = form##_no_##kind());                                                             \
      }                                                                                                               \
      for (; at + STEP <= end; at += STEP) {                                                                          \
        const form##_##kind##_step step = form##_unpack_##kind##bits(row->values + at * (bits) / 8);                  \
        EACH_FACTOR(count, sums[i] = form##_add_##kind(sums[i], step, (const element *)x[i].values + at));            \
      }                                                                                                               \
      if (at < end) {                                                                                                 \
        const form##_##kind##_step step = form##_unpack_##kind##bits(last);                                           \
        EACH_FACTOR(count, sums[i] = form##_add_##kind(sums[i], step, (const element *)x[i].values + at));            \
        at = end;                                                                                                     \
      }                                                                                                               \
      EACH_FACTOR(count, totals[i] = form##_scale_##kind(totals[i], sums[i], row->scales[group]));                    \
    }                                                                                                                 \
    EACH_FACTOR(count, form##_store(lanes, totals[i]); out[i] = join_lanes(lanes));                                   \
  }                                                                                                                   \
  FOR_##form static void dot_##kind##bits##_##form(const rondo_dot_row *row, const rondo_dot_factor *x, size_t count, \
                                                   float *out) {                                                      \
    const bool has_zeros = row->zeros != NULL;                                                                        \
    size_t i = 0;                                                                                                     \
    if (count == FACTORS && has_zeros) {                                                                              \
      dot_some_##kind##bits##_##form(row, x, FACTORS, true, out);                                                     \
    } else if (count == FACTORS) {                                                                                    \
      dot_some_##kind##bits##_##form(row, x, FACTORS, false, out);                                                    \
    } else if (has_zeros) {                                                                                           \
      for (; i < count; i++) dot_some_##kind##bits##_##form(row, x + i, 1, true, out + i);                            \
    } else {                                                                                                          \
      for (; i < count; i++) dot_some_##kind##bits##_##form(row, x + i, 1, false, out + i);                           \
    }                                                                                                                 \
  }

#define RONDO_DOTS(form)                                                                      \
  RONDO_DOT(form, floats, float, 8)                                                           \
  RONDO_DOT(form, floats, float, 4)                                                           \
  RONDO_DOT(form, integers, int8_t, 8)                                                        \
  RONDO_DOT(form, integers, int8_t, 4)                                                        \
  static const rondo_quantized_dots form[2][2] = {{dot_floats8_##form, dot_integers8_##form}, \
                                                  {dot_floats4_##form, dot_integers4_##form}};

/* Plain C ---------------------------------------------------------------------------------------------------------- */

#ifndef HAS_NEON

#define FOR_plain

typedef struct plain_floats {
  float lane[LANES];
} plain_floats;
typedef struct plain_integers {
  int32_t lane[LANES];
} plain_integers;
typedef struct plain_step {
  int8_t value[STEP];
} plain_step;
typedef plain_step plain_floats_step, plain_integers_step;

RONDO_INLINE plain_floats plain_no_floats(void) { return (plain_floats){{0}}; }
RONDO_INLINE plain_integers plain_no_integers(void) { return (plain_integers){{0}}; }
RONDO_INLINE plain_floats plain_load_floats(const float *from, size_t at) {
  plain_floats x;
  memcpy(x.lane, from + at, sizeof x.lane);
  return x;
}
RONDO_INLINE plain_integers plain_load_integers(const int32_t *from, size_t at) {
  plain_integers x;
  memcpy(x.lane, from + at, sizeof x.lane);
  return x;
}
RONDO_INLINE plain_floats plain_times_floats(plain_floats x, int32_t factor) {
  for (size_t l = 0; l < LANES; l++) x.lane[l] *= (float)factor;
  return x;
}
RONDO_INLINE plain_integers plain_times_integers(plain_integers x, int32_t factor) {
  for (size_t l = 0; l < LANES; l++) x.lane[l] *= factor;
  return x;
}
RONDO_INLINE void plain_store(float *to, plain_floats from) { memcpy(to, from.lane, sizeof from.lane); }

RONDO_INLINE plain_step plain_unpack_floats8(const uint8_t *from) {
  plain_step step;
  memcpy(step.value, from, sizeof step.value);
  return step;
}
RONDO_INLINE plain_step plain_unpack_integers8(const uint8_t *from) { return plain_unpack_floats8(from); }

/* In the order of the activations, whose unit has `unit` columns. */
RONDO_INLINE plain_step plain_unpack(const uint8_t *from, size_t unit) {
  plain_step step;
  for (size_t i = 0; i < STEP / 2; i++) {
    const size_t first = i / (unit / 2) * unit + i % (unit / 2);
    step.value[first] = (int8_t)(from[i] & 15);
    step.value[first + unit / 2] = (int8_t)(from[i] >> 4);
  }
  return step;
}
RONDO_INLINE plain_step plain_unpack_floats4(const uint8_t *from) { return plain_unpack(from, RONDO_FLOAT_UNIT); }
RONDO_INLINE plain_step plain_unpack_integers4(const uint8_t *from) { return plain_unpack(from, RONDO_INT8_UNIT); }

RONDO_INLINE plain_floats plain_add_floats(plain_floats sums, plain_step step, const float *x) {
  for (size_t l = 0; l < LANES; l++) {
    float products[STEP / LANES];
    for (size_t k = 0; k < STEP / LANES; k++) products[k] = x[k * LANES + l] * (float)step.value[k * LANES + l];
    sums.lane[l] += (products[0] + products[1]) + (products[2] + products[3]);
  }
  return sums;
}

RONDO_INLINE plain_integers plain_add_integers(plain_integers sums, plain_step step, const int8_t *x) {
  for (size_t k = 0; k < STEP; k++) sums.lane[k / 4] += x[k] * step.value[k];
  return sums;
}

RONDO_INLINE plain_floats plain_scale_floats(plain_floats total, plain_floats sums, float scale) {
  for (size_t l = 0; l < LANES; l++) total.lane[l] += sums.lane[l] * scale;
  return total;
}

RONDO_INLINE plain_floats plain_scale_integers(plain_floats total, plain_integers sums, float scale) {
  for (size_t l = 0; l < LANES; l++) total.lane[l] += (float)sums.lane[l] * scale;
  return total;
}

RONDO_DOTS(plain)

#endif

/* x86-64 ----------------------------------------------------------------------------------------------------------- */

#ifdef HAS_AVX2

#define FOR_avx2 RONDO_FOR_AVX2

typedef __m256 avx2_floats;
typedef __m256i avx2_integers;
typedef struct avx2_floats_step {
  __m256 a, b, c, d; /* eight columns each */
} avx2_floats_step;
typedef struct avx2_integers_step {
  __m256i values, magnitudes;
} avx2_integers_step;

FOR_avx2 RONDO_INLINE avx2_floats avx2_no_floats(void) { return _mm256_setzero_ps(); }
FOR_avx2 RONDO_INLINE avx2_integers avx2_no_integers(void) { return _mm256_setzero_si256(); }
FOR_avx2 RONDO_INLINE void avx2_store(float *to, avx2_floats from) { _mm256_storeu_ps(to, from); }
FOR_avx2 RONDO_INLINE __m256i avx2_load(const void *from) { return _mm256_loadu_si256(from); }
FOR_avx2 RONDO_INLINE avx2_floats avx2_load_floats(const float *from, size_t at) { return _mm256_loadu_ps(from + at); }
FOR_avx2 RONDO_INLINE avx2_integers avx2_load_integers(const int32_t *from, size_t at) { return avx2_load(from + at); }

FOR_avx2 RONDO_INLINE avx2_floats avx2_times_floats(avx2_floats x, int32_t factor) {
  return _mm256_mul_ps(x, _mm256_set1_ps((float)factor));
}
FOR_avx2 RONDO_INLINE avx2_integers avx2_times_integers(avx2_integers x, int32_t factor) {
  return _mm256_mullo_epi32(x, _mm256_set1_epi32(factor));
}

FOR_avx2 RONDO_INLINE __m256 avx2_bytes(const uint8_t *from) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)from)));
}

FOR_avx2 RONDO_INLINE avx2_floats_step avx2_unpack_floats8(const uint8_t *from) {
  return (avx2_floats_step){avx2_bytes(from), avx2_bytes(from + LANES), avx2_bytes(from + 2 * LANES),
                            avx2_bytes(from + 3 * LANES)};
}

FOR_avx2 RONDO_INLINE avx2_floats_step avx2_unpack_floats4(const uint8_t *from) {
  const __m256i mask = _mm256_set1_epi32(15);
  const __m256i low = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)from));
  const __m256i high = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(from + LANES)));
  return (avx2_floats_step){
      _mm256_cvtepi32_ps(_mm256_and_si256(low, mask)), _mm256_cvtepi32_ps(_mm256_srli_epi32(low, 4)),
      _mm256_cvtepi32_ps(_mm256_and_si256(high, mask)), _mm256_cvtepi32_ps(_mm256_srli_epi32(high, 4))};
}

FOR_avx2 RONDO_INLINE __m256 avx2_product(const float *x, __m256 values) {
  return _mm256_mul_ps(_mm256_loadu_ps(x), values);
}

FOR_avx2 RONDO_INLINE avx2_floats avx2_add_floats(avx2_floats sums, avx2_floats_step step, const float *x) {
  const __m256 low = _mm256_add_ps(avx2_product(x, step.a), avx2_product(x + LANES, step.b));
  const __m256 high = _mm256_add_ps(avx2_product(x + 2 * LANES, step.c), avx2_product(x + 3 * LANES, step.d));
  return _mm256_add_ps(sums, _mm256_add_ps(low, high));
}

FOR_avx2 RONDO_INLINE avx2_integers_step avx2_unpack_integers8(const uint8_t *from) {
  const __m256i values = avx2_load(from);
  return (avx2_integers_step){values, _mm256_abs_epi8(values)};
}

/* 16 bytes to 32 values: the lower halves, then the upper halves. None is negative. */
FOR_avx2 RONDO_INLINE avx2_integers_step avx2_unpack_integers4(const uint8_t *from) {
  const __m256i twice = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)from));
  const __m256i shifted = _mm256_srlv_epi32(twice, _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4));
  const __m256i values = _mm256_and_si256(shifted, _mm256_set1_epi8(15));
  return (avx2_integers_step){values, values};
}

/* Adds sums of four products. The instruction multiplies unsigned bytes with signed ones, so signs move to x. Two
 * products fit in 16 bits: 2 * 128 * 127. */
FOR_avx2 RONDO_INLINE avx2_integers avx2_add_integers(avx2_integers sums, avx2_integers_step step, const int8_t *x) {
  const __m256i pairs = _mm256_maddubs_epi16(step.magnitudes, _mm256_sign_epi8(avx2_load(x), step.values));
  return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

FOR_avx2 RONDO_INLINE avx2_floats avx2_scale_floats(avx2_floats total, avx2_floats sums, float scale) {
  return _mm256_add_ps(total, _mm256_mul_ps(sums, _mm256_set1_ps(scale)));
}

FOR_avx2 RONDO_INLINE avx2_floats avx2_scale_integers(avx2_floats total, avx2_integers sums, float scale) {
  return avx2_scale_floats(total, _mm256_cvtepi32_ps(sums), scale);
}

RONDO_DOTS(avx2)

/* VNNI adds four products in one instruction. Everything else is as with AVX2. */
#define FOR_vnni __attribute__((target("avx2,avx512f,avx512vl,avx512vnni")))

typedef avx2_floats vnni_floats;
typedef avx2_integers vnni_integers;
typedef avx2_floats_step vnni_floats_step;
typedef avx2_integers_step vnni_integers_step;
#define vnni_no_floats avx2_no_floats
#define vnni_no_integers avx2_no_integers
#define vnni_store avx2_store
#define vnni_unpack_floats8 avx2_unpack_floats8
#define vnni_unpack_floats4 avx2_unpack_floats4
#define vnni_unpack_integers8 avx2_unpack_integers8
#define vnni_unpack_integers4 avx2_unpack_integers4
#define vnni_add_floats avx2_add_floats
#define vnni_load_floats avx2_load_floats
#define vnni_load_integers avx2_load_integers
#define vnni_times_floats avx2_times_floats
#define vnni_times_integers avx2_times_integers
#define vnni_scale_floats avx2_scale_floats
#define vnni_scale_integers avx2_scale_integers

FOR_vnni RONDO_INLINE vnni_integers vnni_add_integers(vnni_integers sums, vnni_integers_step step, const int8_t *x) {
  return _mm256_dpbusd_epi32(sums, step.magnitudes, _mm256_sign_epi8(avx2_load(x), step.values));
}

RONDO_DOTS(vnni)

static const rondo_quantized_dots (*chosen(void))[2] {
  const rondo_vectors used = rondo_vectors_used();
  if (used == RONDO_VECTORS_AVX512 && __builtin_cpu_supports("avx512vnni")) return vnni;
  return used >= RONDO_VECTORS_AVX2 ? avx2 : plain;
}

#endif

/* arm64 ------------------------------------------------------------------------------------------------------------ */

#ifdef HAS_NEON

#define FOR_neon

typedef struct neon_floats {
  float32x4_t low, high;
} neon_floats;
typedef struct neon_integers {
  int32x4_t low, high;
} neon_integers;
typedef struct neon_step {
  int8x16_t low, high; /* columns 0 .. 15 and 16 .. 31 */
} neon_step;
typedef neon_step neon_floats_step, neon_integers_step;

RONDO_INLINE neon_floats neon_no_floats(void) { return (neon_floats){vdupq_n_f32(0), vdupq_n_f32(0)}; }
RONDO_INLINE neon_integers neon_no_integers(void) { return (neon_integers){vdupq_n_s32(0), vdupq_n_s32(0)}; }
RONDO_INLINE neon_floats neon_load_floats(const float *from, size_t at) {
  return (neon_floats){vld1q_f32(from + at), vld1q_f32(from + at + 4)};
}
RONDO_INLINE neon_integers neon_load_integers(const int32_t *from, size_t at) {
  return (neon_integers){vld1q_s32(from + at), vld1q_s32(from + at + 4)};
}
RONDO_INLINE neon_floats neon_times_floats(neon_floats x, int32_t factor) {
  return (neon_floats){vmulq_n_f32(x.low, (float)factor), vmulq_n_f32(x.high, (float)factor)};
}
RONDO_INLINE neon_integers neon_times_integers(neon_integers x, int32_t factor) {
  return (neon_integers){vmulq_n_s32(x.low, factor), vmulq_n_s32(x.high, factor)};
}
RONDO_INLINE void neon_store(float *to, neon_floats from) {
  vst1q_f32(to, from.low);
  vst1q_f32(to + 4, from.high);
}

RONDO_INLINE neon_step neon_unpack_floats8(const uint8_t *from) {
  return (neon_step){vreinterpretq_s8_u8(vld1q_u8(from)), vreinterpretq_s8_u8(vld1q_u8(from + 16))};
}
RONDO_INLINE neon_step neon_unpack_integers8(const uint8_t *from) { return neon_unpack_floats8(from); }

RONDO_INLINE neon_step neon_unpack_integers4(const uint8_t *from) {
  const uint8x16_t pairs = vld1q_u8(from);
  return (neon_step){vreinterpretq_s8_u8(vandq_u8(pairs, vdupq_n_u8(15))), vreinterpretq_s8_u8(vshrq_n_u8(pairs, 4))};
}

/* Each half of the step has its even columns, then its odd ones. */
RONDO_INLINE neon_step neon_unpack_floats4(const uint8_t *from) {
  const neon_step apart = neon_unpack_integers4(from);
  return (neon_step){vcombine_s8(vget_low_s8(apart.low), vget_low_s8(apart.high)),
                     vcombine_s8(vget_high_s8(apart.low), vget_high_s8(apart.high))};
}

RONDO_INLINE float32x4_t neon_product(const float *x, int16x4_t values) {
  return vmulq_f32(vld1q_f32(x), vcvtq_f32_s32(vmovl_s16(values)));
}

/* The products of 16 columns, those of columns l and l + 8 added. */
RONDO_INLINE neon_floats neon_multiply(int8x16_t values, const float *x) {
  const int16x8_t first = vmovl_s8(vget_low_s8(values)), second = vmovl_s8(vget_high_s8(values));
  return (neon_floats){
      vaddq_f32(neon_product(x, vget_low_s16(first)), neon_product(x + 8, vget_low_s16(second))),
      vaddq_f32(neon_product(x + 4, vget_high_s16(first)), neon_product(x + 12, vget_high_s16(second)))};
}

RONDO_INLINE neon_floats neon_add_floats(neon_floats sums, neon_step step, const float *x) {
  const neon_floats low = neon_multiply(step.low, x), high = neon_multiply(step.high, x + 2 * LANES);
  sums.low = vaddq_f32(sums.low, vaddq_f32(low.low, high.low));
  sums.high = vaddq_f32(sums.high, vaddq_f32(low.high, high.high));
  return sums;
}

/* Sums of four neighbouring products. */
RONDO_INLINE int32x4_t neon_add_products(int32x4_t sums, int8x16_t values, int8x16_t x) {
  const int16x8_t low = vmull_s8(vget_low_s8(values), vget_low_s8(x));
  const int16x8_t high = vmull_s8(vget_high_s8(values), vget_high_s8(x));
  return vaddq_s32(sums, vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high)));
}

RONDO_INLINE neon_integers neon_add_integers(neon_integers sums, neon_step step, const int8_t *x) {
  sums.low = neon_add_products(sums.low, step.low, vld1q_s8(x));
  sums.high = neon_add_products(sums.high, step.high, vld1q_s8(x + 16));
  return sums;
}

RONDO_INLINE neon_floats neon_scale_floats(neon_floats total, neon_floats sums, float scale) {
  total.low = vaddq_f32(total.low, vmulq_n_f32(sums.low, scale));
  total.high = vaddq_f32(total.high, vmulq_n_f32(sums.high, scale));
  return total;
}

RONDO_INLINE neon_floats neon_scale_integers(neon_floats total, neon_integers sums, float scale) {
  return neon_scale_floats(total, (neon_floats){vcvtq_f32_s32(sums.low), vcvtq_f32_s32(sums.high)}, scale);
}

RONDO_DOTS(neon)

#endif

#ifndef HAS_AVX2
static const rondo_quantized_dots (*chosen(void))[2] {
#ifdef HAS_NEON
  return neon;
#else
  return plain;
#endif
}
#endif

rondo_quantized_dots rondo_quantized_dots_for(uint32_t bits, bool is_int8) {
  assert(bits == 4 || bits == 8);
  return chosen()[bits == 4][is_int8];
}
