/* SPDX-License-Identifier: MIT
 * Plans paths again. The first recording of a call is planned with the live outputs of its path, without knowledge of
 * later calls. Once a path is known, the tree plans its recordings together and removes them. The next calls record
 * them again with that plan. A path that was warmed up (path_warm_up.h) is planned before its first recording.
 *
 * A *path plan* has one part for each call, in the order of the path, and the number of the recording before the first
 * part. A part has a memory profile and its assumptions: which outputs are dead, and which ones are given to the call.
 * A plan is freed when all parts are recorded, when a call departs from its part, or when a function of a part is
 * destroyed.
 */
#ifndef RONDO_TREE_PATH_PATH_PLAN_H
#define RONDO_TREE_PATH_PATH_PLAN_H

#include "tree/tree_internal.h"

/* The part of a plan for a call that is about to be recorded. */
typedef struct rondo_plan_position {
  uint64_t plan; /* 0: none */
  uint32_t part;
} rondo_plan_position;

/* Finds the profile for a call of the form with these inputs after the path's end. NULL: neither a plan nor a path
 * warm-up has one. The plan owns it. */
rondo_profile *rondo_path_plan_find(rondo_tree *tree, const rondo_form *form, const rondo_resolved_input *inputs,
                                    size_t slot_count, rondo_plan_position *out);
/* Called when a call was recorded with this part, or when it departed from the part. */
void rondo_path_plan_note(rondo_tree *tree, rondo_recorded_call *made, rondo_plan_position place);
void rondo_path_plan_depart(rondo_tree *tree, rondo_plan_position place);
/* Drops the plans that the function is part of, because its recordings are removed. */
void rondo_path_plan_forget(rondo_tree *tree, const rondo_function *function);

/* Plans calls that were warmed up. The first one comes after the path's end. */
RONDO_MUST_USE rondo_status rondo_path_plan_warmed_up(rondo_tree *tree, rondo_recorded_call *const *calls,
                                                      size_t count);

/* Plans all paths that need too much memory, including those that were planned before, and frees memory that is no
 * longer needed. No path and no work may be in progress. */
RONDO_MUST_USE rondo_status rondo_path_plan_all(rondo_tree *tree);

/* Sets the number of paths before the first automatic plan. */
void rondo_path_plan_begin_waiting(rondo_tree *tree);
/* Called when tree->steady_after paths have begun without a new recording. Plans the path that needs the most memory if
 * it needs too much. Failures are logged and do not fail the call. */
void rondo_path_plan_when_steady(rondo_tree *tree, rondo_stream *stream, size_t input_count);

#endif
