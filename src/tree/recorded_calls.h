/* SPDX-License-Identifier: MIT
 * The recorded calls of a tree: the table that finds one by its key, the links between them, and which are evicted when
 * there are too many.
 */
#ifndef RONDO_TREE_RECORDED_CALLS_H
#define RONDO_TREE_RECORDED_CALLS_H

#include "tree/tree_internal.h"

/* recorded_calls.c: finds the recorded call that fits; inserts one, which the tree then owns; removes and frees one
 * with all after it. A call of the path is removed only with the path. */
rondo_recorded_call *rondo_recorded_find(const rondo_tree *tree, const uint64_t *key, size_t count, uint64_t hash);

/* The same for the call that the path continued with last time. Makes no key and no table lookup. */
rondo_recorded_call *rondo_recorded_guess(const rondo_tree *tree, const rondo_function *function,
                                          const rondo_resolved_input *inputs);
rondo_recorded_call *rondo_recorded_guess_raw(const rondo_tree *tree, const rondo_function *function,
                                              const rondo_input *given);
RONDO_MUST_USE rondo_status rondo_recorded_reserve(rondo_tree *tree); /* room in the table for one more */
void rondo_recorded_add(rondo_tree *tree, rondo_recorded_call *call);
void rondo_recorded_remove(rondo_tree *tree, rondo_recorded_call *call);
void rondo_recorded_free(rondo_tree *tree, rondo_recorded_call *call); /* was never put in; NULL is fine */
void rondo_segment_free(rondo_tree *tree, rondo_segment *segment);     /* what it has */

/* The most bytes of the arena that are live at once in any recorded call. */
size_t rondo_recorded_arena_minimum(const rondo_tree *tree);

/* Makes room for one more under the tree's limit. False: impossible, because all recorded calls belong to the path. */
bool rondo_recorded_evict(rondo_tree *tree);
void rondo_recorded_evict_bytes(rondo_tree *tree, uint64_t most); /* until the execs have fewer bytes than that */

#endif
