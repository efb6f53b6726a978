/* SPDX-License-Identifier: MIT
 * Updates of execs with whole graphs: of the whole exec, or of one child graph in it.
 */
#ifndef RONDO_EXEC_LAUNCH_UPDATE_H
#define RONDO_EXEC_LAUNCH_UPDATE_H

#include "exec/launch/exec_internal.h"

/* rondo_exec_update with checked arguments, for the public call `call`. */
RONDO_MUST_USE rondo_status rondo_exec_update_with(const char *call, rondo_exec *exec, rondo_graph *graph,
                                                   rondo_update_result *out_result);

/* Replaces the graph of a child node, whose tag the exec knows, by the child of `params`. Errors as
 * rondo_exec_set_params. */
RONDO_MUST_USE rondo_status rondo_exec_replace_child(const char *call, rondo_exec *exec, rondo_node node,
                                                     const rondo_node_params *params);

#endif
