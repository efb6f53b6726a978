/* SPDX-License-Identifier: MIT
 * Which lengths a model has (rondo_model_options.history_lengths). A request runs with the shortest chosen length that
 * is large enough. Its cost is that length times its rows, because nothing can be measured before the model is made.
 * Pure.
 */
#ifndef RONDO_SESSION_SIZING_CHOOSE_LENGTHS_H
#define RONDO_SESSION_SIZING_CHOOSE_LENGTHS_H

#include <rondo/session.h>

#include "base/allocation.h"

/* Requests of the same length: the sum of their rows. */
typedef struct rondo_length_demand {
  size_t length;
  double rows;
} rondo_length_demand;

/* Chooses at most max_lengths lengths, ascending; the longest is always one. Fewer are taken if they cost at most 5 %
 * more. Sorts and joins the demands, of which there is at least one. */
RONDO_MUST_USE rondo_status rondo_lengths_choose(const rondo_allocator *allocator, rondo_length_demand *demands,
                                                 size_t count, uint32_t max_lengths,
                                                 size_t out[RONDO_SESSION_MAX_LENGTHS], size_t *out_count);

/* Chooses at most max_lengths lengths that are not padded, ascending: those of the most positions in all, and the
 * longest. Sorts and joins the demands likewise. Returns how many there are. */
size_t rondo_lengths_choose_exact(rondo_length_demand *demands, size_t count, uint32_t max_lengths,
                                  size_t out[RONDO_SESSION_MAX_LENGTHS]);

#endif
