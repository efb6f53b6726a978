/* SPDX-License-Identifier: MIT
 * Paths planned again (path_plan.c). A recording made for the first time is planned with what lives of the path as it
 * stands, and without what comes later. Once a path is known, its recordings are planned together, taken out, and
 * recorded again with that plan at their next calls. A path that was warmed up (path_warm_up.h) is planned before its
 * first recording is made.
 *
 * A *path plan* is what such calls are to be recorded with: its parts, in the order of the path, after the recording
 * where it begins, each with what must be so that it fits: what is dead, and what is given up. It ends when all parts
 * are recorded, when one departs, and with the functions of its parts.
 */
#ifndef RONDO_TREE_PATH_PATH_PLAN_H
#define RONDO_TREE_PATH_PATH_PLAN_H

#include "tree/tree_internal.h"

/* The place that a call about to be recorded has in a plan. */
typedef struct rondo_plan_place {
  uint64_t plan; /* 0: none */
  uint32_t part;
} rondo_plan_place;

/* The profile for a call of the form with these inputs after the path's end; NULL when no plan has one, and none comes
 * of a path warm-up. The plan's. */
rondo_profile *rondo_path_plan_find(rondo_tree *tree, const rondo_form *form, const rondo_resolved_input *inputs,
                                    size_t slot_count, rondo_plan_place *out);
/* A call was recorded there; or it did not do what the plan was made for. */
void rondo_path_plan_note(rondo_tree *tree, rondo_recorded_call *made, rondo_plan_place place);
void rondo_path_plan_depart(rondo_tree *tree, rondo_plan_place place);
/* The function's recordings go, and the plans that it is part of. */
void rondo_path_plan_forget(rondo_tree *tree, const rondo_function *function);

/* Plans calls that were warmed up; the first one's parent is the path's end. */
RONDO_MUST_USE rondo_status rondo_path_plan_warmed_up(rondo_tree *tree, rondo_recorded_call *const *calls,
                                                      size_t count);

/* Plans all paths that need much, newest plans included, and gives back what is not needed. No path is in progress, and
 * no work. */
RONDO_MUST_USE rondo_status rondo_path_plan_all(rondo_tree *tree);

/* How many paths must begin before the first such plan. */
void rondo_path_plan_begin_waiting(rondo_tree *tree);
/* A path began, `calm_after` of them since the last recording: the path that needs most is planned if it takes too
 * much. Nothing of it fails the call. */
void rondo_path_plan_when_calm(rondo_tree *tree, rondo_stream *stream, size_t input_count);

#endif
