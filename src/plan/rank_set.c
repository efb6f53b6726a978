/* SPDX-License-Identifier: MIT
 * Looking for a neighbour goes up to the first level whose word has one, and down again to it.
 */
#include "plan/rank_set.h"

#include <assert.h>

#include "base/error.h"

enum { WORD_BITS = 64 };

rondo_status rondo_rank_set_make(rondo_scratch *scratch, size_t bound, rondo_rank_set *out) {
  *out = (rondo_rank_set){.count = 0};
  size_t words = bound;
  do {
    words = words / WORD_BITS + 1; /* one more than needed where it fits exactly, so that the bound itself has a word */
    const int level = out->count++;
    out->words[level] = words;
    RONDO_TRY(rondo_scratch_take(scratch, words, sizeof **out->levels, &out->levels[level]));
  } while (words > 1);
  return RONDO_OK;
}

void rondo_rank_set_insert(rondo_rank_set *set, size_t number) {
  for (int i = 0; i < set->count; i++, number /= WORD_BITS) {
    set->levels[i][number / WORD_BITS] |= UINT64_C(1) << number % WORD_BITS;
  }
}

void rondo_rank_set_remove(rondo_rank_set *set, size_t number) {
  for (int i = 0; i < set->count; i++, number /= WORD_BITS) {
    set->levels[i][number / WORD_BITS] &= ~(UINT64_C(1) << number % WORD_BITS);
    if (set->levels[i][number / WORD_BITS] != 0) return;
  }
}

size_t rondo_rank_set_below(const rondo_rank_set *set, size_t number) {
  for (int i = 0; i < set->count; i++, number /= WORD_BITS) {
    const uint64_t below = set->levels[i][number / WORD_BITS] & ((UINT64_C(1) << number % WORD_BITS) - 1);
    if (below == 0) continue;
    number = number / WORD_BITS * WORD_BITS + (WORD_BITS - 1 - (size_t)__builtin_clzll(below));
    for (; i > 0; i--)
      number = number * WORD_BITS + (WORD_BITS - 1 - (size_t)__builtin_clzll(set->levels[i - 1][number]));
    return number;
  }
  return RONDO_NO_RANK;
}

size_t rondo_rank_set_from(const rondo_rank_set *set, size_t number) {
  for (int i = 0; i < set->count; i++) {
    const size_t word = number / WORD_BITS;
    const uint64_t from = word < set->words[i] ? set->levels[i][word] & ~UINT64_C(0) << number % WORD_BITS : 0;
    if (from == 0) {
      number = word + 1;
      continue;
    }
    number = word * WORD_BITS + (size_t)__builtin_ctzll(from);
    for (; i > 0; i--) number = number * WORD_BITS + (size_t)__builtin_ctzll(set->levels[i - 1][number]);
    return number;
  }
  return RONDO_NO_RANK;
}

/* Check ------------------------------------------------------------------------------------------------------------ */

#ifndef NDEBUG
void rondo_rank_set_check(const rondo_rank_set *set) {
  assert(set->count > 0 && set->count <= RONDO_RANK_LEVELS && set->words[set->count - 1] == 1);
  for (int level = 0; level + 1 < set->count; level++) {
    for (size_t word = 0; word < set->words[level]; word++) {
      const bool has_bit = (set->levels[level + 1][word / WORD_BITS] >> word % WORD_BITS & 1) != 0;
      assert(has_bit == (set->levels[level][word] != 0));
    }
  }
}
#endif
