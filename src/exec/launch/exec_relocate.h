/* SPDX-License-Identifier: MIT
 * Relocating execs: which execs are relocated, and translating the addresses of the graph to those of the exec.
 */
#ifndef RONDO_EXEC_LAUNCH_EXEC_RELOCATE_H
#define RONDO_EXEC_LAUNCH_EXEC_RELOCATE_H

#include "exec/launch/exec_internal.h"

/* Relocates the draft if `relocates` is set, with the plan of `like` if that fits. options and like may be NULL. */
RONDO_MUST_USE rondo_status rondo_exec_draft_relocate(rondo_exec_draft *draft, const rondo_plan_options *options,
                                                      const rondo_relocation *like);

/* Whether the graph, or a graph inside it, was created with `relocate`. */
bool rondo_exec_must_relocate(const rondo_graph *graph);

/* UNSUPPORTED/NOT_RELOCATABLE if the graph, or a graph inside it, was recorded into an arena. */
RONDO_MUST_USE rondo_status rondo_exec_refuse_arena(const char *call, const rondo_graph *graph);

/* Translates new parameters for a node of an exec with a second clone to the exec's addresses. */
RONDO_MUST_USE rondo_status rondo_exec_translate(const rondo_exec *exec, uint32_t index,
                                                 const rondo_node_params *params, rondo_relocated_params *out);

/* The graph in the first clone that corresponds to `placed`, a graph in the second. */
rondo_graph *rondo_exec_original(const rondo_exec *exec, const rondo_graph *placed);

/* The parameters of a lowered node in the addresses of the first clone. */
const rondo_node_params *rondo_exec_given_params(const rondo_exec *exec, size_t index);

#endif
