/* SPDX-License-Identifier: MIT
 * A set of whole numbers below a bound, as bits, with summaries above them: insertion, removal and the neighbours of a
 * number in a handful of words, whatever the bound.
 */
#ifndef RONDO_PLAN_RANK_SET_H
#define RONDO_PLAN_RANK_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/allocation.h"

#define RONDO_NO_RANK SIZE_MAX
#define RONDO_RANK_LEVELS 11 /* of 6 bits each */

typedef struct rondo_rank_set {
  uint64_t *levels[RONDO_RANK_LEVELS]; /* a bit of level i + 1 says that a word of level i is not 0 */
  size_t words[RONDO_RANK_LEVELS];
  int count; /* of levels; the last has one word */
} rondo_rank_set;

/* Empty, for numbers below `bound`. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_rank_set_make(rondo_scratch *scratch, size_t bound, rondo_rank_set *out);

void rondo_rank_set_insert(rondo_rank_set *set, size_t number);
void rondo_rank_set_remove(rondo_rank_set *set, size_t number);

/* The largest number in the set below `number`, which is at most the bound; the smallest from `number` on, which is
 * below it. RONDO_NO_RANK: there is none. */
size_t rondo_rank_set_below(const rondo_rank_set *set, size_t number);
size_t rondo_rank_set_from(const rondo_rank_set *set, size_t number);

/* Asserts that each summary bit says whether its word has a member. Linear in the bound. */
#ifdef NDEBUG
static inline void rondo_rank_set_check(const rondo_rank_set *set) { (void)set; }
#else
void rondo_rank_set_check(const rondo_rank_set *set);
#endif

#endif
