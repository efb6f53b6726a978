/* SPDX-License-Identifier: MIT
 * Building graphs for a device: the functions that explicit building and captures share, on top of graph/ and memory/.
 */
#ifndef RONDO_EXEC_BUILD_GRAPH_BUILD_H
#define RONDO_EXEC_BUILD_GRAPH_BUILD_H

#include "exec/api_check.h"
#include "graph/graph_internal.h"
#include "memory/graph_memory/address_space.h"

/* An empty graph with an address space. The device counts the graph. The allocator in the options is not used. */
RONDO_MUST_USE rondo_status rondo_build_graph(const char *call, rondo_device *device,
                                              const rondo_graph_options *options, rondo_graph **out);

/* An empty graph in an existing address space, which it retains. Its addresses follow the profile (NULL: none). */
RONDO_MUST_USE rondo_status rondo_build_graph_in(rondo_device *device, const char *name, rondo_address_space *space,
                                                 rondo_profile *profile, bool relocate, rondo_graph **out);

/* Counts a graph of the device, for the owner of the attachment. */
rondo_graph_attachment rondo_build_hold(rondo_device *device);

/* Adds a node of any kind; an alloc node gets its address, in params too. */
RONDO_MUST_USE rondo_status rondo_build_node(const char *call, rondo_graph *graph, const rondo_node *dependencies,
                                             size_t count, rondo_node_params *params, rondo_node *out_node);

/* INVALID_STATE/CAPTURING_INTO if a stream captures into the graph or a graph inside it. */
RONDO_MUST_USE rondo_status rondo_build_refuse_captured(const char *call, const rondo_graph *graph);

/* Removes the graph and its children from the counts of graphs of its devices: for graphs that the user does not own.
 */
void rondo_build_uncount(rondo_graph *graph);

#endif
