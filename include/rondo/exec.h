/* SPDX-License-Identifier: MIT
 * Execs: executable graphs. An exec is a snapshot; the graph may be changed or destroyed afterwards.
 *
 * A launch runs after the earlier work of its stream, and after earlier launches of the same exec on any stream (L1).
 * Updates affect later launches only, never launches that are already enqueued (U1). An exec is thread-compatible;
 * different execs may be launched from different threads at once (GX-10). In a forked child, launches of the parent's
 * execs are refused (<rondo/device.h>, Fork).
 */
#ifndef RONDO_EXEC_H
#define RONDO_EXEC_H

#include <rondo/graph.h>
#include <rondo/plan.h>
#include <rondo/stream.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_exec rondo_exec;

typedef struct rondo_instantiate_options {
  uint32_t struct_size;           /* RONDO_INSTANTIATE_OPTIONS_INIT sets it; 0 means the library's own */
  bool auto_free_on_launch;       /* a launch first frees what the previous launch left allocated (GM-10) */
  bool skip_verify;               /* do not verify the graph (<rondo/verify.h>; GM-5, GM-18) */
  rondo_stream *upload_stream;    /* upload to this stream during the call; may be NULL */
  bool relocate;                  /* choose new addresses for the graph memory (see below) */
  const rondo_plan_options *plan; /* for relocate; NULL = the planner's default */
} rondo_instantiate_options;
#define RONDO_INSTANTIATE_OPTIONS_INIT .struct_size = sizeof(rondo_instantiate_options)

/* Relocation. Without it, execs of one graph and of its clones share the addresses of its alloc nodes. They are correct
 * one after the other and wait for each other. With relocate, the allocations that the graph frees itself are planned
 * together, on the graph's exact order (<rondo/plan.h>), at addresses that only this exec has. References to them in
 * the graph are rewritten: pointer parameters of kernels (RONDO_READS, RONDO_WRITES, RONDO_UPDATES), copies and fills.
 * The exec is then independent of the other execs of the graph, and may run at the same time. One graph with memory
 * nodes may be embedded several times in concurrent branches. Edges on which a reuse of addresses relied may be absent
 * (rondo_graph_options.relocate).
 *
 * An address refers to the allocation that is alive there in the graph's order: it is allocated before the node, and
 * all other allocations at that address are freed before. The following are refused, and the error names the node: an
 * address that is not ordered after its alloc node, or that may refer to two allocations; a node of the kind FOREIGN; a
 * scalar parameter with a word, or a host function with a user pointer, that points into memory that moves. Addresses
 * that host functions or kernels keep in memory are not found; instantiate such graphs without relocate. Memory that
 * the graph does not free keeps its address and is shared with the other execs of the graph. Updates and set_params
 * take the graph's own addresses. */

/* Creates an exec of the graph: verifies and flattens it, and prepares everything that a launch needs. options may be
 * NULL. The caller destroys the exec. Errors: INVALID_GRAPH with CYCLE (naming a node of the cycle), NO_FUNCTION (the
 * kernel) or NO_ACCESS (memory that the device of the node may not access, <rondo/memory.h>); the first error that
 * verification finds, with its status and reason, naming the nodes and the edge that would fix it (<rondo/verify.h>).
 * Without verification, only what makes a launch impossible: INVALID_LIFETIME with STILL_ALLOCATED, NOT_ALLOCATED,
 * DOUBLE_FREE or FOREIGN_ADDRESS; INVALID_STATE/CAPTURING_INTO; INVALID_ARGUMENT (a graph without a device);
 * OUT_OF_MEMORY; INVALID_GRAPH/NOT_RELOCATABLE (see above); the errors of rondo_exec_upload and, with relocate,
 * rondo_plan_make. */
RONDO_API RONDO_MUST_USE rondo_status rondo_instantiate(rondo_graph *graph, const rondo_instantiate_options *options,
                                                        rondo_exec **out_exec);

/* Does in advance what the first launch on this stream would do in addition to launching: it maps memory (GM-14).
 * Memory that is mapped for another stream is moved, after waiting for the launches that use it. A launch by itself
 * never moves memory; it is ordered after the last launch that uses it (GM-13). Errors: INVALID_ARGUMENT (NULL, another
 * device's stream); OUT_OF_MEMORY; CAPTURE_REFUSED/UNSUPPORTED_CALL on a capturing stream, which invalidates the
 * capture. */
RONDO_API RONDO_MUST_USE rondo_status rondo_exec_upload(rondo_exec *exec, rondo_stream *stream);

/* Enqueues the exec on a stream of the graph's device. A launch is work of that stream, also if the exec has nodes of
 * other devices: synchronize the stream or its device to wait for it, and order streams of the other devices with
 * events (see rondo_node_params). An asynchronous failure of any node is one of the stream.
 *
 * While the stream captures, the exec becomes a child-graph node (C16). A warm launch does not allocate
 * and takes no lock (GX-4, GX-10). There is one exception: if another exec of the same graph left memory
 * allocated, and that memory was then freed in stream order, a launch checks whether it allocates these bytes.
 *
 * The memory that its nodes declare to access (copies, fills, pointer parameters of kernels, also in child graphs) must
 * be allocated at the launch, as for the same work on a stream. Memory of another graph is allocated once a launch of
 * that graph has left it allocated. The check is repeated if an allocation of the device was freed since the last
 * launch, or one of another device that the exec has nodes of; otherwise a launch compares two numbers. Disabled nodes,
 * addresses that are not the device's, and execs created without verification are not checked. The error is
 * INVALID_LIFETIME with NOT_ALLOCATED (no launch has allocated it, or its graph is destroyed) or USE_AFTER_FREE, or
 * INVALID_ARGUMENT/OUT_OF_RANGE, with the node, the address, the allocation and the fix. Nothing runs, and the exec can
 * be launched once the memory is allocated. Other errors: INVALID_ARGUMENT (NULL, another device's stream),
 * INVALID_LIFETIME with STILL_ALLOCATED (memory of the last launch, or of an exec of the same graph, was not freed,
 * without auto_free_on_launch; or another thread is freeing it), NOT_ALLOCATED or DOUBLE_FREE (it frees memory that is
 * not allocated), CAPTURE_INVALID, OUT_OF_MEMORY (first launch on a stream), UNSUPPORTED (nodes are disabled and the
 * stream captures).
 */
RONDO_API RONDO_MUST_USE rondo_status rondo_exec_launch(rondo_exec *exec, rondo_stream *stream);

/* Why an update was refused. */
typedef struct rondo_update_result {
  uint32_t struct_size;
  rondo_reason reason;   /* NONE; TOPOLOGY_CHANGED, NODE_KIND_CHANGED, PARAMETERS_CHANGED, FUNCTION_CHANGED,
                            NOT_UPDATABLE, NO_ACCESS, OTHER_DEVICE (the node has moved to another device) */
  rondo_node exec_node;  /* in the graph that the exec was created from; no node if the numbers of nodes differ */
  rondo_node graph_node; /* the corresponding node of the new graph */
} rondo_update_result;

/* Updates the exec with the parameters of a graph of the same topology, all or none (U3). Nodes correspond in
 * topological order; disabled nodes stay disabled. Alloc and free nodes may change too: later launches use the new
 * graph's memory. The exec then retains the user objects of the new graph instead (<rondo/user_object.h>). The new
 * graph is verified as in rondo_instantiate, unless the exec was created without verification (NOT_UPDATABLE if
 * refused). out_result may be NULL. Errors: UPDATE_REFUSED, with *out_result, CYCLE, OUT_OF_MEMORY; the exec is then
 * unchanged. */
RONDO_API RONDO_MUST_USE rondo_status rondo_exec_update(rondo_exec *exec, rondo_graph *graph,
                                                        rondo_update_result *out_result);

/* Changes the parameters of one node. `node` is a node of the graph that the exec was created from, or of a child graph
 * in it. The kind must be the same. KERNEL: kernel, grid and arguments may change; COPY and FILL: everything, if
 * one-dimensional before and after; HOST: everything; EVENT_*: the event; CHILD: see below; EMPTY, ALLOC, FREE:
 * UNSUPPORTED (U1). The device stays: another one, also that of another device's kernel or event, is
 * UPDATE_REFUSED/OTHER_DEVICE.
 * If the node then accesses other memory, lifetimes, extents and reach are verified, unless the exec was created
 * without verification. Races with other nodes are not verified, because those nodes may have to change too;
 * rondo_exec_update does that (<rondo/verify.h>). Errors: UNKNOWN_NODE, NODE_KIND, UPDATE_REFUSED, as rondo_graph_add;
 * INVALID_LIFETIME with NOT_ALLOCATED or USE_AFTER_FREE; INVALID_GRAPH with OUT_OF_RANGE or NO_ACCESS; OUT_OF_MEMORY;
 * the exec is then unchanged.
 *
 * The child graph of a CHILD node is replaced by another graph of the same topology, as if the exec was updated with a
 * graph that differs in this child alone (rondo_exec_update): nodes correspond in topological order, the whole is
 * verified, races included, and the exec exchanges the child's user objects. Nodes in the child keep the handles that
 * they had. params->as.child is read during the call and stays the caller's; a name of NULL keeps the node's. Errors:
 * as rondo_exec_update; UPDATE_REFUSED/NOT_UPDATABLE if random numbers are drawn, or if an update has left no such
 * child graph in the exec; as rondo_graph_add. */
RONDO_API RONDO_MUST_USE rondo_status rondo_exec_set_params(rondo_exec *exec, rondo_node node,
                                                            const rondo_node_params *params);

/* Changes one argument of a kernel node, counted from 0, as rondo_exec_set_params does. `value` is the address of its
 * new value, which is copied. Errors: INVALID_ARGUMENT with NODE_KIND (not a kernel node), ARGUMENT_COUNT (no such
 * argument), NULL_ARGUMENT; those of rondo_exec_set_params. */
RONDO_API RONDO_MUST_USE rondo_status rondo_exec_set_argument(rondo_exec *exec, rondo_node node, size_t number,
                                                              const void *value);

/* Enables or disables a node. A disabled node behaves like an empty node. Parameters that are set meanwhile apply when
 * it is enabled again. KERNEL, COPY and FILL only (U2). Errors: UNKNOWN_NODE; UNSUPPORTED/NODE_KIND; OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_exec_set_enabled(rondo_exec *exec, rondo_node node, bool enabled);
RONDO_API RONDO_MUST_USE rondo_status rondo_exec_get_enabled(const rondo_exec *exec, rondo_node node,
                                                             bool *out_enabled);

/* Frees the exec once its launches are done; does not wait (L2). Memory that its launches left allocated stays (GM-4).
 * NULL is fine. */
RONDO_API void rondo_exec_destroy(rondo_exec *exec);

typedef struct rondo_exec_info {
  uint32_t struct_size;
  uint32_t node_count;    /* including the nodes of child graphs, without the child nodes themselves */
  uint64_t launches;      /* so far */
  uint64_t updates;       /* whole updates that succeeded, and child graphs that were replaced */
  uint64_t graph_bytes;   /* graph memory that must be mapped: planned bytes of its alloc nodes (GX-12) */
  uint64_t host_bytes;    /* host memory of the exec itself */
  uint64_t device_bytes;  /* device memory of the exec itself, without graph memory. 0 on a CPU device. On CUDA an
                           * estimate, because the driver does not report it: what execs with as many kernels and copies
                           * were measured to take (docs/cuda-probes.md, 40), within 10 %. The driver allocates 2 MiB or
                           * more at a time, and keeps the memory of destroyed execs for later ones */
  uint64_t planned_bytes; /* relocated: bytes of the plan, which hold all memory that moved; else 0 */
  uint64_t planned_bound; /* lower bound of every plan */
  uint64_t foreign_bytes; /* of allocations that libraries left in the graph, which the driver manages (GX-8) */
} rondo_exec_info;

/* Reads the sizes and counters of the exec. Errors: INVALID_ARGUMENT, IN_CALLBACK. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_exec_get_info(const rondo_exec *exec, rondo_exec_info *out_info);

/* How long a node ran, in microseconds: from its start to the end of all its blocks, on any processor. */
typedef struct rondo_node_time {
  rondo_node node;     /* of the graph that the exec was created from, or of a child graph in it */
  double microseconds; /* median of the launches */
  double minimum, maximum;
} rondo_node_time;

/* Launches the exec once and then `repeats` (1 to 1000) times on the stream, waits for each launch, and measures how
 * long each node ran in the repeats. The work is really done: states change, and host functions are called repeats + 1
 * times. Reading the clock adds some tens of nanoseconds to each node. The time that an event-wait node waits does not
 * count. `times` is an array as in queries (B7), in topological order. Nodes of child graphs have entries; child nodes
 * themselves have none. With times = NULL nothing is launched, and stream and repeats are ignored. Errors:
 * INVALID_ARGUMENT (NULL, another device's stream, OUT_OF_RANGE: repeats);
 * CAPTURE_REFUSED/UNSUPPORTED_CALL on a capturing stream; OUT_OF_MEMORY; what rondo_exec_launch and
 * rondo_stream_synchronize return. */
RONDO_API RONDO_MUST_USE rondo_status rondo_exec_measure(rondo_exec *exec, rondo_stream *stream, uint32_t repeats,
                                                         rondo_node_time *times, size_t *inout_count);

RONDO_EXTERN_C_END

#endif
