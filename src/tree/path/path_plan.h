/* SPDX-License-Identifier: MIT
 * Plans paths again (path_plan.c). A new recording is planned with the outputs of the path that are alive, and without
 * knowledge of later calls. Once a path is known, the tree plans its recordings together and removes them. Their next
 * calls record them again with that plan. A path that was warmed up (path_warm_up.h) is planned before its first
 * recording.
 *
 * A *path plan* tells how to record such calls. It has one part for each call, in the order of the path, and names the
 * recording after which it begins. Each part lists its premises: which outputs are dead and which are given up. A plan
 * ends when all parts are recorded, when a call departs from its part, or when a function of a part is destroyed.
 */
#ifndef RONDO_TREE_PATH_PATH_PLAN_H
#define RONDO_TREE_PATH_PATH_PLAN_H

#include "tree/tree_internal.h"

/* The part of a plan that a call about to be recorded matches. */
typedef struct rondo_plan_position {
  uint64_t plan; /* 0: none */
  uint32_t part;
} rondo_plan_position;

/* The profile for a call of the form with these inputs after the path's end. NULL if no plan has one and no path
 * warm-up provides one. The plan owns it. */
rondo_profile *rondo_path_plan_find(rondo_tree *tree, const rondo_form *form, const rondo_resolved_input *inputs,
                                    size_t slot_count, rondo_plan_position *out);
/* Called when a call was recorded there, or did not do what the plan assumes. */
void rondo_path_plan_note(rondo_tree *tree, rondo_recorded_call *made, rondo_plan_position place);
void rondo_path_plan_depart(rondo_tree *tree, rondo_plan_position place);
/* Drops the plans that the function is part of, because its recordings are removed. */
void rondo_path_plan_forget(rondo_tree *tree, const rondo_function *function);

/* Plans calls that were warmed up. The parent of the first one is the path's end. */
RONDO_MUST_USE rondo_status rondo_path_plan_warmed_up(rondo_tree *tree, rondo_recorded_call *const *calls,
                                                      size_t count);

/* Plans all paths that need much memory, including those planned recently, and frees memory that is no longer needed.
 * No path and no work may be in progress. */
RONDO_MUST_USE rondo_status rondo_path_plan_all(rondo_tree *tree);

/* How many paths must begin before the first such plan. */
void rondo_path_plan_begin_waiting(rondo_tree *tree);
/* Called when a path begins, with the number of paths since the last recording. Plans the path that needs most if it
 * takes too much. Failures here do not fail the call. */
void rondo_path_plan_when_calm(rondo_tree *tree, rondo_stream *stream, size_t input_count);

#endif
