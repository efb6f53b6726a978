/* SPDX-License-Identifier: MIT
 * Random numbers that are the same everywhere for the same seed: SplitMix64 (Steele, Lea and Flood, Fast splittable
 * pseudorandom number generators, OOPSLA 2014).
 */
#ifndef RONDO_TOOL_RANDOM_NUMBERS_H
#define RONDO_TOOL_RANDOM_NUMBERS_H

#include <stdint.h>

typedef struct draw_source {
  uint64_t state;
} draw_source;

/* Sources of one seed for different purposes give unrelated numbers. */
typedef enum draw_purpose { DRAW_PARAMETERS = 1, DRAW_BATCHES = 2, DRAW_CHARACTERS = 3 } draw_purpose;

/* The next number of a sequence that begins with any state, evenly among all of 64 bits. */
uint64_t draw_next(uint64_t *state);

draw_source draw_create(uint64_t seed, draw_purpose purpose);

/* Evenly among 0, 1, ..., limit - 1, up to a bias of limit / 2^32. */
uint32_t draw_below(draw_source *source, uint32_t limit);

/* Evenly from 0 to 1, 1 excluded, in steps of 2^-53. */
double draw_unit(draw_source *source);

#endif
