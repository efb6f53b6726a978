/* SPDX-License-Identifier: MIT
 * Random numbers that are the same on every machine for the same seed: SplitMix64 (Steele, Lea and Flood, Fast
 * splittable pseudorandom number generators, OOPSLA 2014). The state counts in steps of an odd constant, and each count
 * is mixed into a number.
 */
#ifndef RONDO_TOOL_RANDOM_NUMBERS_H
#define RONDO_TOOL_RANDOM_NUMBERS_H

#include <stdint.h>

/* The next number of the sequence, uniform over all 64-bit numbers. */
static inline uint64_t draw_next(uint64_t *state) {
  uint64_t mixed = *state += 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
  return mixed ^ (mixed >> 31);
}

/* A stream of random numbers. Streams of one seed with different purposes are unrelated. */
typedef struct draw_source {
  uint64_t state;
} draw_source;

typedef enum draw_purpose { DRAW_PARAMETERS = 1, DRAW_BATCHES = 2, DRAW_CHARACTERS = 3 } draw_purpose;

static inline draw_source draw_create(uint64_t seed, draw_purpose purpose) {
  uint64_t chosen = draw_next(&seed) + (uint64_t)purpose;
  return (draw_source){.state = draw_next(&chosen)};
}

/* Skips so many numbers. */
static inline void draw_skip(draw_source *source, uint64_t count) { source->state += count * 0x9e3779b97f4a7c15u; }

/* Uniform over 0, 1, ..., limit - 1, with a bias of at most limit / 2^32. */
static inline uint32_t draw_below(draw_source *source, uint32_t limit) {
  return (uint32_t)(((draw_next(&source->state) >> 32) * limit) >> 32);
}

/* Uniform over [0, 1), in steps of 2^-53. */
static inline double draw_unit(draw_source *source) { return (double)(draw_next(&source->state) >> 11) * 0x1p-53; }

#endif
