/* SPDX-License-Identifier: MIT
 * One function for each type and reduction, in a table. Constant, so that any thread may read it.
 */
#include "exec/collective/collective_reduce.h"

#include <assert.h>

#include "base/numbers/half_float.h"

/* Sums of integers wrap, so they are computed as unsigned numbers. */
#define DEFINE_SUM(name, type)                                          \
  static void name##_sum(void *dst, const void *src, size_t count) {    \
    type *const restrict to = dst;                                      \
    const type *const restrict from = src;                              \
    for (size_t i = 0; i < count; i++) to[i] = (type)(to[i] + from[i]); \
  }

/* `better`: to[i] > from[i]. A NaN does not equal itself, and is kept. */
#define DEFINE_BEST(name, type, reduction, better)                           \
  static void name##_##reduction(void *dst, const void *src, size_t count) { \
    type *const restrict to = dst;                                           \
    const type *const restrict from = src;                                   \
    for (size_t i = 0; i < count; i++)                                       \
      if (!(to[i] better from[i]) && to[i] == to[i]) to[i] = from[i];        \
  }

#define DEFINE_TYPE(name, type, sum_type) \
  DEFINE_SUM(name, sum_type)              \
  DEFINE_BEST(name, type, max, >)         \
  DEFINE_BEST(name, type, min, <)

DEFINE_TYPE(f32, float, float)
DEFINE_TYPE(f64, double, double)
DEFINE_TYPE(i32, int32_t, uint32_t)
DEFINE_TYPE(i64, int64_t, uint64_t)
DEFINE_TYPE(i8, int8_t, uint8_t)
DEFINE_TYPE(u8, uint8_t, uint8_t)

/* Elements that are combined as floats, and rounded after each step. */
#define DEFINE_HALF(name, from, to)                                        \
  static void name##_sum(void *dst, const void *src, size_t count) {       \
    uint16_t *const restrict x = dst;                                      \
    const uint16_t *const restrict y = src;                                \
    for (size_t i = 0; i < count; i++) x[i] = to(from(x[i]) + from(y[i])); \
  }                                                                        \
  DEFINE_HALF_BEST(name, from, max, >)                                     \
  DEFINE_HALF_BEST(name, from, min, <)

#define DEFINE_HALF_BEST(name, from, reduction, better)                      \
  static void name##_##reduction(void *dst, const void *src, size_t count) { \
    uint16_t *const restrict x = dst;                                        \
    const uint16_t *const restrict y = src;                                  \
    for (size_t i = 0; i < count; i++) {                                     \
      const float a = from(x[i]);                                            \
      if (!(a better from(y[i])) && a == a) x[i] = y[i];                     \
    }                                                                        \
  }

DEFINE_HALF(f16, rondo_from_f16, rondo_to_f16)
DEFINE_HALF(bf16, rondo_from_bf16, rondo_to_bf16)

#define TYPES (RONDO_U8 + 1)
#define REDUCTIONS (RONDO_REDUCE_AVERAGE + 1)
#define ROW(name) \
  { [RONDO_REDUCE_SUM] = name##_sum, [RONDO_REDUCE_MAX] = name##_max, [RONDO_REDUCE_MIN] = name##_min }

static const rondo_combine_function functions[TYPES][REDUCTIONS] = {
    [RONDO_F32] = ROW(f32), [RONDO_F64] = ROW(f64),   [RONDO_I32] = ROW(i32), [RONDO_I64] = ROW(i64),
    [RONDO_F16] = ROW(f16), [RONDO_BF16] = ROW(bf16), [RONDO_I8] = ROW(i8),   [RONDO_U8] = ROW(u8),
};

static const char *const names[REDUCTIONS] = {[RONDO_REDUCE_SUM] = "sum",
                                              [RONDO_REDUCE_MAX] = "max",
                                              [RONDO_REDUCE_MIN] = "min",
                                              [RONDO_REDUCE_AVERAGE] = "average"};

bool rondo_reduction_is_known(rondo_reduction reduction) {
  return (size_t)reduction >= RONDO_REDUCE_SUM && (size_t)reduction < REDUCTIONS;
}

const char *rondo_reduction_name(rondo_reduction reduction) {
  return rondo_reduction_is_known(reduction) ? names[reduction] : "unknown";
}

rondo_combine_function rondo_combine_find(rondo_type type, rondo_reduction reduction) {
  if ((size_t)type >= TYPES || !rondo_reduction_is_known(reduction)) return NULL;
  return functions[type][reduction];
}

#define DIVIDE(element, x, result)                      \
  {                                                     \
    element *const x = dst;                             \
    for (size_t i = 0; i < count; i++) x[i] = (result); \
    return;                                             \
  }

void rondo_reduce_divide(rondo_type type, void *dst, size_t count, uint32_t ranks) {
  const float divisor = (float)ranks;
  switch (type) {
    case RONDO_F32:
      DIVIDE(float, x, x[i] / divisor)
    case RONDO_F64:
      DIVIDE(double, x, x[i] / ranks)
    case RONDO_F16:
      DIVIDE(uint16_t, x, rondo_to_f16(rondo_from_f16(x[i]) / divisor))
    case RONDO_BF16:
      DIVIDE(uint16_t, x, rondo_to_bf16(rondo_from_bf16(x[i]) / divisor))
    case RONDO_I32:
    case RONDO_I64:
    case RONDO_I8:
    case RONDO_U8:
    case RONDO_BOOL:
    case RONDO_F8_E4M3:
    case RONDO_F8_E5M2:
      assert(false); /* refused by collective.c */
  }
}
