/* SPDX-License-Identifier: MIT
 * SplitMix64: the state counts in steps of an odd constant, and each count is mixed into a number.
 */
#include "common/random_numbers.h"

static uint64_t next(draw_source *source) {
  source->state += 0x9e3779b97f4a7c15u;
  uint64_t mixed = source->state;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
  return mixed ^ (mixed >> 31);
}

draw_source draw_create(uint64_t seed, draw_purpose purpose) {
  draw_source source = {.state = seed};
  draw_source chosen = {.state = next(&source) + (uint64_t)purpose};
  return (draw_source){.state = next(&chosen)};
}

uint32_t draw_below(draw_source *source, uint32_t limit) { return (uint32_t)(((next(source) >> 32) * limit) >> 32); }

double draw_unit(draw_source *source) { return (double)(next(source) >> 11) * 0x1p-53; }
