/* SPDX-License-Identifier: MIT
 * SplitMix64: the state counts in steps of an odd constant, and each count is mixed into a number.
 */
#include "common/random_numbers.h"

uint64_t draw_next(uint64_t *state) {
  uint64_t mixed = *state += 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
  return mixed ^ (mixed >> 31);
}

draw_source draw_create(uint64_t seed, draw_purpose purpose) {
  uint64_t chosen = draw_next(&seed) + (uint64_t)purpose;
  return (draw_source){.state = draw_next(&chosen)};
}

uint32_t draw_below(draw_source *source, uint32_t limit) {
  return (uint32_t)(((draw_next(&source->state) >> 32) * limit) >> 32);
}

double draw_unit(draw_source *source) { return (double)(draw_next(&source->state) >> 11) * 0x1p-53; }
