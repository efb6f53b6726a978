/* SPDX-License-Identifier: MIT
 * Runs of a body that do not count: what its inputs held that are declared RONDO_INPUT_MUTATED, and what it drew from
 * generators, as they were before (save_inputs.c).
 */
#ifndef RONDO_TREE_RECORD_SAVE_INPUTS_H
#define RONDO_TREE_RECORD_SAVE_INPUTS_H

#include "exec/random/random_journal.h"
#include "tree/tree_internal.h"

typedef struct rondo_saved_input {
  char *address;
  void *copy; /* of the tree's pool */
  size_t bytes;
} rondo_saved_input;

/* All zero: nothing is saved. */
typedef struct rondo_saved {
  RONDO_ARRAY(rondo_saved_input) inputs;
  rondo_random_journal draws; /* from the save on */
} rondo_saved;

/* Enqueues copies of the inputs on the stream, which does not capture. On failure nothing is saved. */
RONDO_MUST_USE rondo_status rondo_save(rondo_tree *tree, rondo_stream *stream, const rondo_function *function,
                                       const rondo_resolved_input *inputs, rondo_saved *out);

/* Ends it: queues the way back, and what was drawn is drawn again; or (is_kept) all stays as the run left it. */
RONDO_MUST_USE rondo_status rondo_save_end(rondo_tree *tree, rondo_stream *stream, rondo_saved *saved, bool is_kept);

#endif
