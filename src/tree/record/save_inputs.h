/* SPDX-License-Identifier: MIT
 * Undoes runs of a body that do not count: restores the contents of inputs that are declared RONDO_INPUT_MUTATED, and
 * the state of generators of random numbers (save_inputs.c).
 */
#ifndef RONDO_TREE_RECORD_SAVE_INPUTS_H
#define RONDO_TREE_RECORD_SAVE_INPUTS_H

#include "exec/random/random_rollback.h"
#include "tree/tree_internal.h"

typedef struct rondo_saved_input {
  char *address;
  void *copy; /* of the tree's pool */
  size_t bytes;
} rondo_saved_input;

/* All zero: nothing is saved. */
typedef struct rondo_saved {
  RONDO_ARRAY(rondo_saved_input) inputs;
  rondo_random_rollback draws; /* since the save */
} rondo_saved;

/* Enqueues copies of the inputs on the stream, which must not be capturing. On failure nothing is saved. */
RONDO_MUST_USE rondo_status rondo_save(rondo_tree *tree, rondo_stream *stream, const rondo_function *function,
                                       const rondo_resolved_input *inputs, rondo_saved *out);

/* Ends the save. Enqueues the restoration and lets random numbers be drawn again; with is_kept, everything stays as the
 * run left it. */
RONDO_MUST_USE rondo_status rondo_save_end(rondo_tree *tree, rondo_stream *stream, rondo_saved *saved, bool is_kept);

#endif
