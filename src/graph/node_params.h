/* SPDX-License-Identifier: MIT
 * Parameters of nodes: the checks of public calls (B2 to B4), defaults for zeros, and comparing.
 */
#ifndef RONDO_GRAPH_NODE_PARAMS_H
#define RONDO_GRAPH_NODE_PARAMS_H

#include "base/component.h"
#include "graph/graph_internal.h"

#include "graph/node.h"

/* The checks of rondo_node_params_check except those of addresses, functions and devices. Graphs from files must pass
 * them too. */
RONDO_MUST_USE rondo_status rondo_node_shape_check(const char *where, const rondo_node_params *params);

/* The checks that rondo_graph_insert makes on the parameters (not the dependencies; the address of an ALLOC may still
 * be NULL). `device` is the one that the node runs on. `where` is the call that received them and begins the message,
 * so an error reads the same whether the work is enqueued or captured. Does not allocate. */
RONDO_MUST_USE rondo_status rondo_node_params_check(const char *where, const rondo_device *device,
                                                    const rondo_node_params *params);

/* Makes parameters of a kernel node, for this call only, that differ from `now` in one argument. `args` has capacity
 * for RONDO_MAX_PARAMETERS. Errors: NODE_KIND, ARGUMENT_COUNT (no such argument), NULL_ARGUMENT. */
RONDO_MUST_USE rondo_status rondo_node_params_exchange(const char *where, const rondo_node_params *now, size_t number,
                                                       const void *value, const void **args, rondo_node_params *out);

/* Replaces zeros of checked parameters by defaults, as rondo_graph_insert does. Afterwards no grid, height, depth or
 * pitch is zero, a number without effect (the pitch of one row) has its default, and a fill's value has no bits beyond
 * its element. */
void rondo_node_params_resolve(rondo_node_params *params);

/* The ranges of a copy or fill, resolved or not; returns their number, 0 for other kinds. Ranges that
 * rondo_node_params_check would refuse are left out. */
RONDO_PRIVATE size_t rondo_node_extents(const rondo_node_params *params, rondo_extent out[RONDO_MOST_EXTENTS]);

/* Whether two kernels are one, or run the same CUDA function with the same parameters: each time that a library's
 * kernel is captured or imported, it may get a kernel object of its own. */
bool rondo_kernel_same_code(const rondo_kernel *a, const rondo_kernel *b);

/* How the resolved parameters of two nodes differ (rondo_difference_kind), or 0. Child graphs are not compared, because
 * that can fail. */
int rondo_node_params_compare(const rondo_node_params *a, const rondo_node_params *b, bool ignore_addresses);

#endif
