/* SPDX-License-Identifier: MIT
 * Graphs of the driver. A program that has CUgraphs imports them, to verify, inspect, plan, patch and launch them like
 * other graphs. A program that launches by itself takes the driver's handles of graphs and execs.
 *
 * On CUDA devices, a handle is a CUgraph or cudaGraph_t, and a CUgraphExec or cudaGraphExec_t. Other devices have no
 * graphs of a driver. Thread-compatible, like the graph or exec.
 */
#ifndef RONDO_NATIVE_GRAPH_H
#define RONDO_NATIVE_GRAPH_H

#include <rondo/exec.h>
#include <rondo/graph.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_import_options {
  uint32_t struct_size; /* RONDO_IMPORT_OPTIONS_INIT sets it; 0 means the library's own */
  bool takes_ownership; /* the graph belongs to Rondo if the call succeeds: the caller must not change or destroy it.
                           Without it, the driver's graph is copied, and stays the caller's */
  const char *name;     /* for messages and dumps; copied; may be NULL */
} rondo_import_options;
#define RONDO_IMPORT_OPTIONS_INIT .struct_size = sizeof(rondo_import_options)

/* Creates a graph from a graph of the driver, node by node. `native` must be a graph of the device's primary context
 * that no stream captures into. Nodes of the primary contexts of other devices become nodes of those devices, which
 * must be open. The driver does not tell the context of a copy or fill; such a node gets the graph's device, or the
 * device that owns its memory if the graph's device has no access to it. Kernels, copies, fills, child graphs, empty
 * nodes and edges become nodes and edges of the same kind, as in a capture (<rondo/capture.h>, Foreign work): a kernel
 * has one parameter that holds all arguments. Its attributes, such as clusters or priority, are kept, and so are the
 * ports and types of edges (rondo_graph_programmatic_edges). Host functions, events and copies of arrays become FOREIGN
 * nodes. Memory nodes, conditional nodes, semaphores and batches with barriers become bound ones (rondo_foreign_node):
 * such a graph can be instantiated once, and the driver copies no graph with memory or conditional nodes, so it can
 * only be imported with takes_ownership. What the driver's graph retains (cuGraphRetainUserObject) is retained by the
 * new graph, its clones and their execs; functions, events, and what host functions use must live as long as those.
 * options may be NULL. The caller destroys the graph. Errors: INVALID_ARGUMENT (NULL); UNSUPPORTED with NOT_SUPPORTED
 * (the device has no graphs of a driver), FOREIGN_WORK (the driver does not copy the graph: pass ownership) or
 * OTHER_DEVICE (a kernel of a context that is not the primary one of an open device); LIMIT_EXCEEDED (child graphs more
 * than 16 deep; arguments of a kernel that are too large); OUT_OF_MEMORY; DEVICE_LOST and other errors of the driver.
 * After an error the driver's graph is still the caller's.
 */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_import(rondo_device *device, void *native,
                                                         const rondo_import_options *options, rondo_graph **out_graph);

/* Returns the driver's form of a graph, which has a node for each node of the graph, in topological order
 * (rondo_graph_sort), with child graphs inside. Importing it gives an equal graph, if the graph was imported or
 * captured from a library: kernels of Rondo are imported as kernels with one parameter, and a host function as a
 * FOREIGN node. A fill is a memset node. A copy whose slices are at uneven distances is several nodes. A host function
 * runs on the driver's thread; its failure goes to the log, because no stream of Rondo's is synchronized. The handle
 * belongs to the graph. After a change of the graph, the next call returns another handle, and the earlier one stays
 * valid until the call after the change after that: so an exec can be updated from one to the other
 * (cuGraphExecUpdate). If only kernels have changed, but not their launch configurations, and not many of them, the
 * call copies the driver's graph and sets these kernels; else it adds all nodes again. Do not change what a handle
 * refers to; cuGraphClone makes a copy. Execs that the caller instantiates from it or from copies use kernels,
 * events, semaphores and records of host functions that belong to the handle: before it ends, end their launches, and
 * update or destroy them. Rondo verifies graphs in rondo_instantiate and rondo_graph_verify, and memory at
 * rondo_exec_launch, so launches by the driver are not checked. Errors: INVALID_ARGUMENT (NULL; OTHER_DEVICE: a graph
 * without a device); INVALID_STATE/CAPTURING_INTO; INVALID_GRAPH with CYCLE or NO_FUNCTION; UNSUPPORTED with
 * NOT_SUPPORTED (the device has no graphs of a driver; the graph allocates or frees memory, records events of Rondo's
 * or draws random numbers, which needs rondo_exec_launch) or FOREIGN_WORK (a bound graph: use rondo_exec_native);
 * OUT_OF_MEMORY; errors of the driver.
 */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_native(rondo_graph *graph, void **out_native);

/* Returns the driver's executable graph, after waiting for launches of an earlier one that an update replaced. The
 * handle is valid until the exec is updated, changed, patched, measured or destroyed; its launches may then still run.
 * The caller may launch it, and must not update or destroy it. Launches by the driver are not counted, and memory is
 * not checked. Errors: INVALID_ARGUMENT (NULL); UNSUPPORTED/NOT_SUPPORTED (the device has no graphs of a driver; the
 * exec has graph memory, host functions, events or random numbers, which need rondo_exec_launch); errors of the driver.
 */
RONDO_API RONDO_MUST_USE rondo_status rondo_exec_native(rondo_exec *exec, void **out_native);

RONDO_EXTERN_C_END

#endif
