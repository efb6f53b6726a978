/* SPDX-License-Identifier: MIT
 * Random lifetimes in many shapes, for weaknesses that no single generator shows: each distribution of sizes with each
 * distribution of durations. Computed in integers, so they are the same on every machine.
 */
#ifndef RONDO_BENCH_PLAN_SHAPES_H
#define RONDO_BENCH_PLAN_SHAPES_H

#include "plan_items.h"

#define SHAPE_ONE 65536U /* 1 as a fixed-point number */

/* -ln u for a random u in (0, 1], linear between powers of two. */
static inline uint64_t random_exponential(uint64_t *state) {
  const uint64_t u = random_below(state, UINT64_C(1) << 40) + 1;
  const unsigned whole = 63 - (unsigned)__builtin_clzll(u);
  const uint64_t fraction = (u << (63 - whole) << 1) >> 48;
  return (((uint64_t)(40 - whole) << 16) - fraction) * 45426 / SHAPE_ONE;
}

/* 2 to the power of a fixed-point number, linear between integers. */
static inline uint64_t power_of_two(uint64_t logarithm) {
  return (SHAPE_ONE + (logarithm & (SHAPE_ONE - 1))) << (logarithm >> 16) >> 16;
}

/* Approximately normal, with a standard deviation of 1 and a mean of 6. */
static inline uint64_t random_normal(uint64_t *state) {
  uint64_t sum = 0;
  for (int i = 0; i < 12; i++) sum += random_below(state, SHAPE_ONE);
  return sum;
}

/* Distributed as 1 / u for a random u in (0, 1], limited to `most`. */
static inline uint64_t random_power_law(uint64_t *state, uint64_t most) {
  const uint64_t value = (UINT64_C(1) << 40) / (random_below(state, UINT64_C(1) << 40) + 1);
  return value < most ? value : most;
}

/* Sizes ------------------------------------------------------------------------------------------------------------ */

static inline size_t uniform_bytes(uint64_t *state) { return 512 * (1 + (size_t)random_below(state, 2000)); }
static inline size_t odd_bytes(uint64_t *state) { return 1 + (size_t)random_below(state, 1000000); }
static inline size_t exponential_bytes(uint64_t *state) {
  return 512 * (1 + (size_t)(random_exponential(state) * 500 / SHAPE_ONE));
}
static inline size_t power_law_bytes(uint64_t *state) { return 512 * (size_t)random_power_law(state, 100000); }
static inline size_t logarithmic_bytes(uint64_t *state) { return random_bytes(state, 12); }
static inline size_t log_normal_bytes(uint64_t *state) {
  return 512 * (size_t)power_of_two(random_normal(state) * 3 / 2);
}
static inline size_t bimodal_bytes(uint64_t *state) {
  const size_t scale = random_below(state, 10) == 0 ? 2048 : 8;
  return 512 * (scale + (size_t)random_below(state, scale));
}

typedef struct size_shape {
  const char *name;
  size_t (*bytes)(uint64_t *state);
} size_shape;

enum { SIZE_SHAPES = 7 };
static const size_shape size_shapes[SIZE_SHAPES] = {
    {"uniform", uniform_bytes},         {"odd", odd_bytes},
    {"exponential", exponential_bytes}, {"power law", power_law_bytes},
    {"logarithmic", logarithmic_bytes}, {"log-normal", log_normal_bytes},
    {"bimodal", bimodal_bytes}};

/* Durations -------------------------------------------------------------------------------------------------------- */

static inline uint64_t short_steps(uint64_t *state) { return 1 + random_below(state, 20); }
static inline uint64_t middle_steps(uint64_t *state) { return 1 + random_below(state, 200); }
static inline uint64_t long_steps(uint64_t *state) { return 1 + random_below(state, 4000); }
static inline uint64_t exponential_steps(uint64_t *state) { return 1 + random_exponential(state) * 300 / SHAPE_ONE; }
static inline uint64_t mixed_steps(uint64_t *state) {
  return 1 + (random_below(state, 10) == 0 ? random_below(state, 10000) : random_below(state, 20));
}
static inline uint64_t logarithmic_steps(uint64_t *state) {
  return 1 + random_below(state, UINT64_C(1) << random_below(state, 13));
}
static inline uint64_t heavy_steps(uint64_t *state) { return random_power_law(state, 50000); }

typedef struct life_shape {
  const char *name;
  uint64_t (*steps)(uint64_t *state); /* NULL: between any two steps */
} life_shape;

enum { LIFE_SHAPES = 8 };
static const life_shape life_shapes[LIFE_SHAPES] = {{"short", short_steps}, {"middle", middle_steps},
                                                    {"long", long_steps},   {"exponential", exponential_steps},
                                                    {"mixed", mixed_steps}, {"logarithmic", logarithmic_steps},
                                                    {"heavy", heavy_steps}, {"any", NULL}};

static inline void make_shape(input *in, const size_shape *sizes, const life_shape *lives, size_t items,
                              uint64_t seed) {
  uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15);
  for (size_t i = 0; i < items; i++) {
    const size_t bytes = sizes->bytes(&state);
    const uint32_t first = (uint32_t)random_below(&state, items);
    if (lives->steps != NULL) {
      add(in, bytes, first, first + (uint32_t)lives->steps(&state));
    } else {
      const uint32_t second = (uint32_t)random_below(&state, items);
      add(in, bytes, first < second ? first : second, (first < second ? second : first) + 1);
    }
  }
}

#endif
