/* SPDX-License-Identifier: MIT
 * Parameters of nodes: the checks of public calls (B2 to B4), defaults for zeros, and comparing.
 */
#ifndef RONDO_GRAPH_NODE_PARAMS_H
#define RONDO_GRAPH_NODE_PARAMS_H

#include "graph/graph_internal.h"

#include "graph/node.h"

/* What rondo_node_params_check looks at apart from addresses, functions and devices: what a graph read from a file must
 * keep to as well. */
RONDO_MUST_USE rondo_status rondo_node_shape_check(const char *where, const rondo_node_params *params);

/* The checks of rondo_graph_insert alone, on the parameters (not the dependencies; the address of an ALLOC may still be
 * NULL). `where` starts the message: the call that was given them, so that a mistake reads the same queued or captured.
 * Does not allocate. */
RONDO_MUST_USE rondo_status rondo_node_params_check(const char *where, const rondo_device *device,
                                                    const rondo_node_params *params);

/* Gives checked parameters their defaults, as rondo_graph_insert does: no zero in a grid, height, depth or pitch; what
 * does not count (the pitch of one row) is what it would be by default; a fill's value has no bits past its element. */
void rondo_node_params_resolve(rondo_node_params *params);

/* The ranges of a copy or fill, resolved or not; returns their number, 0 for other kinds. Ranges that
 * rondo_node_params_check would refuse are left out. */
size_t rondo_node_extents(const rondo_node_params *params, rondo_extent out[RONDO_MOST_EXTENTS]);

/* What differs between two nodes' parameters; 0 when nothing. See rondo_graph_diff. Both are resolved. Child graphs are
 * not compared here: that can fail. */
int rondo_node_params_compare(const rondo_node_params *a, const rondo_node_params *b, bool ignore_addresses);

#endif
