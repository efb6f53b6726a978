/* SPDX-License-Identifier: MIT
 * Graphed callables: a tree with one path, which calls the parts in their order. A *part* is a forward or a backward: a
 * function of the tree with static inputs only. A round is a step. All outputs of a round are retained until it ends.
 * So the same outputs are live in every round, and every call fits its recording.
 *
 * Threads: one at a time, which the tree enforces.
 */
#ifndef RONDO_TREE_CALLABLES_CALLABLES_INTERNAL_H
#define RONDO_TREE_CALLABLES_CALLABLES_INTERNAL_H

#include <rondo/callables.h>

#include "tree/record/save_inputs.h"

typedef struct rondo_callable_part {
  rondo_function *function; /* NULL: the part does not exist */
  uint32_t *kinds;          /* by input; a backward also has the inputs and outputs of its forward as inputs */
  rondo_input *values;      /* by input: the samples, then the inputs and outputs of the forward */
  rondo_input *given;       /* scratch memory: the same with the inputs of the current call */
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
  int32_t *order; /* as in rondo_callables_options */
  size_t order_count;
  size_t position;           /* index in it of the next call */
  rondo_callables_info info; /* rounds, calls, copied_inputs, copied_bytes */
};

/* The part at a position of the order. */
static inline rondo_callable_part *rondo_callables_part(const rondo_callables *callables, size_t position) {
  const int32_t entry = callables->order[position];
  rondo_callable_state *state = &callables->states[(entry > 0 ? entry : -entry) - 1];
  return entry > 0 ? &state->forward : &state->backward;
}

/* Calls the next part, with its inputs at the addresses of the samples. */
RONDO_MUST_USE rondo_status rondo_callables_call_next(rondo_callables *callables, rondo_stream *stream);
/* Ends the round and releases its outputs. The first part is next. */
void rondo_callables_end_round(rondo_callables *callables);

#endif
