/* SPDX-License-Identifier: MIT
 * Relocating execs: which are relocated, and the way between the addresses of the graph and those of the exec.
 */
#ifndef RONDO_EXEC_LAUNCH_EXEC_RELOCATE_H
#define RONDO_EXEC_LAUNCH_EXEC_RELOCATE_H

#include "exec/launch/exec_internal.h"

/* Relocates the draft, if it is to be: with the plan of `like`, if that fits; options and like may be NULL. */
RONDO_MUST_USE rondo_status rondo_exec_draft_relocate(rondo_exec_draft *draft, const rondo_plan_options *options,
                                                      const rondo_relocation *like);

/* True when the graph, or one in it, was made to be relocated. */
bool rondo_exec_must_relocate(const rondo_graph *graph);

/* UNSUPPORTED/NOT_RELOCATABLE when the graph, or one in it, was recorded into an arena. */
RONDO_MUST_USE rondo_status rondo_exec_refuse_arena(const char *call, const rondo_graph *graph);

/* Other parameters for a node of an exec with a second clone, in the exec's addresses. */
RONDO_MUST_USE rondo_status rondo_exec_translate(const rondo_exec *exec, uint32_t place,
                                                 const rondo_node_params *params, rondo_relocated_params *out);

/* The graph of the first clone that has the same nodes as `placed`, a graph of the second. */
rondo_graph *rondo_exec_original(const rondo_exec *exec, const rondo_graph *placed);

/* The parameters of a lowered node as they were given: without relocating, those that it has. */
const rondo_node_params *rondo_exec_given_params(const rondo_exec *exec, size_t place);

#endif
