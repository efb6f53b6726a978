/* SPDX-License-Identifier: MIT
 * Internals of graphed callables: a tree whose only path is the order. Each forward and backward is a *part*, a
 * function of the tree with static inputs only. A round is a step. All outputs of a round are retained until it ends.
 * So what was live or dead during recording is so in every later round, and every call fits its recording.
 *
 * Threads: one at a time, which the tree enforces.
 */
#ifndef RONDO_TREE_CALLABLES_CALLABLES_INTERNAL_H
#define RONDO_TREE_CALLABLES_CALLABLES_INTERNAL_H

#include <rondo/callables.h>

#include "tree/record/save_inputs.h"

typedef struct rondo_callable_part {
  rondo_function *function; /* NULL: the part does not exist */
  uint32_t *kinds;          /* of all inputs, as given: the caller's, then the additional ones of a backward */
  rondo_input *values; /* of all inputs: the samples; the additional ones of a backward point to inputs and outputs of
                          the forward */
  rondo_input *given;  /* scratch of a call: the same, but with the caller's inputs first */
  size_t caller_count, value_count;
  rondo_buffer **outputs; /* of the current round, each retained; NULL before the call */
  size_t output_count;
} rondo_callable_part;

typedef struct rondo_callable_state {
  rondo_callable_part forward, backward;
} rondo_callable_state;

struct rondo_callables {
  rondo_allocator allocator;
  rondo_tree *tree;
  rondo_callable_state *states;
  size_t count;
  int32_t *order; /* as in the options */
  size_t order_count;
  size_t position;           /* index in it of the next call */
  rondo_callables_info info; /* rounds, calls, copied_inputs, copied_bytes */
};

/* The part at an index of the order. */
static inline rondo_callable_part *rondo_callables_part(const rondo_callables *callables, size_t position) {
  const int32_t entry = callables->order[position];
  rondo_callable_state *state = &callables->states[(entry > 0 ? entry : -entry) - 1];
  return entry > 0 ? &state->forward : &state->backward;
}

/* Calls the next part, with its inputs at the addresses of the samples. */
RONDO_MUST_USE rondo_status rondo_callables_call_next(rondo_callables *callables, rondo_stream *stream);
/* Ends the round: releases its outputs. The first call is next. */
void rondo_callables_end_round(rondo_callables *callables);

#endif
