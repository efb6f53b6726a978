/* SPDX-License-Identifier: MIT
 * Graphed callables inside: a tree whose only path is the order. Each forward and backward is a *part*, a function
 * of the tree all of whose inputs are static; a round is a step. All outputs of a round are held to its end, so that
 * nothing that was recorded as live or dead can be otherwise later, and every call fits.
 *
 * Threads: one at a time, which the tree watches over.
 */
#ifndef RONDO_TREE_CALLABLES_CALLABLES_INTERNAL_H
#define RONDO_TREE_CALLABLES_CALLABLES_INTERNAL_H

#include <rondo/callables.h>

#include "tree/record/save_inputs.h"

typedef struct rondo_callable_part {
  rondo_function *function; /* NULL: there is no such part */
  uint32_t *kinds;          /* of all inputs, as given: the caller's, then a backward's others */
  rondo_input *values;      /* of all inputs: the samples; a backward's others point to what the forward has */
  rondo_input *given;       /* scratch of a call: the same with the caller's in front */
  size_t caller_count, value_count;
  rondo_buffer **outputs; /* of the round in progress, each held; NULL before the call */
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
  size_t position; /* in it, of the call that is due */
  uint64_t rounds, calls, copied_inputs, copied_bytes;
};

/* The part at a place of the order. */
static inline rondo_callable_part *rondo_callables_part(const rondo_callables *callables, size_t position) {
  const int32_t entry = callables->order[position];
  rondo_callable_state *state = &callables->states[(entry > 0 ? entry : -entry) - 1];
  return entry > 0 ? &state->forward : &state->backward;
}

/* Calls the part that is due with its inputs where the samples are. */
RONDO_MUST_USE rondo_status rondo_callables_call_next(rondo_callables *callables, rondo_stream *stream);
/* The round is over: its outputs are not held any more, and the first call is due. */
void rondo_callables_end_round(rondo_callables *callables);

#endif
