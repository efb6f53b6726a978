/* SPDX-License-Identifier: MIT
 * The recorded calls of a tree: the table that finds a call by its key, the links between calls, and eviction.
 */
#ifndef RONDO_TREE_RECORDED_CALLS_H
#define RONDO_TREE_RECORDED_CALLS_H

#include "tree/tree_internal.h"

/* Finds the recorded call that has this key and fits; NULL: none. */
rondo_recorded_call *rondo_recorded_find(const rondo_tree *tree, const uint64_t *key, size_t count, uint64_t hash);

/* The same if it is the call that followed last time. Makes no key and needs no table. */
rondo_recorded_call *rondo_recorded_guess(const rondo_tree *tree, const rondo_function *function,
                                          const rondo_resolved_input *inputs);
rondo_recorded_call *rondo_recorded_guess_raw(const rondo_tree *tree, const rondo_function *function,
                                              const rondo_input *given);
/* Reserves memory in the table for one more call. */
RONDO_MUST_USE rondo_status rondo_recorded_reserve(rondo_tree *tree);
/* Adds a call to the tree, which owns it from now on. */
void rondo_recorded_add(rondo_tree *tree, rondo_recorded_call *call);
/* Removes and frees the call and all calls after it. None of them may be on the current path. */
void rondo_recorded_remove(rondo_tree *tree, rondo_recorded_call *call);
/* Frees a call that is not part of the tree. NULL is allowed. */
void rondo_recorded_free(rondo_tree *tree, rondo_recorded_call *call);
/* Frees what the segment contains. */
void rondo_segment_free(rondo_tree *tree, rondo_segment *segment);

/* The most bytes of the arena that are live at once in any recorded call. */
size_t rondo_recorded_arena_minimum(const rondo_tree *tree);

/* Evicts calls until the tree may have one more. False: all remaining calls belong to the path. */
bool rondo_recorded_evict(rondo_tree *tree);
/* Evicts calls until the execs use fewer bytes than the limit, or all remaining calls belong to the path. */
void rondo_recorded_evict_bytes(rondo_tree *tree, uint64_t limit);

/* Host and device memory of the execs of the function's recordings. A shared exec counts in equal parts. */
uint64_t rondo_recorded_exec_bytes(const rondo_function *function);
/* Evicts the function's least recently used calls, with the calls after them, until it has at most so many, whose execs
 * have at most so many bytes, or the rest belongs to the path. 0 bytes: no limit. */
void rondo_recorded_evict_of(rondo_function *function, uint32_t most, uint64_t most_bytes);
/* Removes the function's older calls after the same parent whose exec this call has taken over. */
void rondo_recorded_supersede(rondo_tree *tree, const rondo_recorded_call *call);

#endif
