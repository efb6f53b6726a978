/* SPDX-License-Identifier: MIT
 * Undoes test runs of a body: restores the contents of mutated inputs and the state of random number generators.
 */
#ifndef RONDO_TREE_RECORD_SAVE_INPUTS_H
#define RONDO_TREE_RECORD_SAVE_INPUTS_H

#include "exec/random/random_rollback.h"
#include "tree/tree_internal.h"

typedef struct rondo_saved_input {
  char *address;
  void *copy; /* in the tree's pool */
  size_t bytes;
} rondo_saved_input;

typedef struct rondo_saved {
  RONDO_ARRAY(rondo_saved_input) inputs;
  rondo_random_rollback draws; /* since the save */
} rondo_saved;

/* Enqueues copies of the mutated inputs on the stream, which must not capture. After a failure nothing is saved. */
RONDO_MUST_USE rondo_status rondo_save(rondo_tree *tree, rondo_stream *stream, const rondo_function *function,
                                       const rondo_resolved_input *inputs, rondo_saved *out);

/* Ends the save. Enqueues the restoring copies, and resets the generators. `is_kept`: keeps what the run did instead.
 */
RONDO_MUST_USE rondo_status rondo_save_end(rondo_tree *tree, rondo_stream *stream, rondo_saved *saved, bool is_kept);

#endif
