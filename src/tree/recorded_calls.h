/* SPDX-License-Identifier: MIT
 * The recorded calls of a tree: the table that finds one by its key, their family, and which of them go when there
 * are too many.
 */
#ifndef RONDO_TREE_RECORDED_CALLS_H
#define RONDO_TREE_RECORDED_CALLS_H

#include "tree/tree_internal.h"

/* recorded_calls.c: the recorded call that fits; putting one in, which then is the tree's; taking it out with all
 * after it and freeing them. A call of the path is never taken out but with the path. */
rondo_recorded_call *rondo_recorded_find(const rondo_tree *tree, const uint64_t *key, size_t count, uint64_t hash);

/* The same for the one that the path went on with last time: without making a key, or a look at the table. */
rondo_recorded_call *rondo_recorded_guess(const rondo_tree *tree, const rondo_function *function,
                                          const rondo_resolved_input *inputs);
rondo_recorded_call *rondo_recorded_guess_raw(const rondo_tree *tree, const rondo_function *function,
                                              const rondo_input *given);
RONDO_MUST_USE rondo_status rondo_recorded_reserve(rondo_tree *tree); /* room in the table for one more */
void rondo_recorded_add(rondo_tree *tree, rondo_recorded_call *call);
void rondo_recorded_remove(rondo_tree *tree, rondo_recorded_call *call);
void rondo_recorded_free(rondo_tree *tree, rondo_recorded_call *call); /* was never put in; NULL is fine */
void rondo_segment_free(rondo_tree *tree, rondo_segment *segment);     /* what it has */

/* Makes room for one more under the tree's bound. False: there is none, as all that there are belong to the path. */
bool rondo_recorded_evict(rondo_tree *tree);
void rondo_recorded_evict_bytes(rondo_tree *tree, uint64_t most); /* until the execs have fewer bytes than that */

#endif
