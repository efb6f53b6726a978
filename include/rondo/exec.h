/* SPDX-License-Identifier: MIT
 * Execs: graphs made ready to run. An exec is a snapshot; the graph may be changed or destroyed afterwards.
 *
 * A launch runs after the earlier work of its stream and after earlier launches of the same exec on any stream (L1).
 * Updates touch later launches only, never those already queued (U1). An exec is thread-compatible; different execs may
 * be launched from different threads at once (GX-10). In a forked child, launches of the parent's execs are refused
 * (<rondo/device.h>, Fork).
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
  bool auto_free_on_launch;       /* a launch first frees what the last one left allocated (GM-10) */
  bool skip_verify;               /* do not look for mistakes (<rondo/verify.h>; GM-5, GM-18) */
  rondo_stream *upload_stream;    /* upload there at once; may be NULL */
  bool relocate;                  /* choose the addresses of graph memory anew (see below) */
  const rondo_plan_options *plan; /* for relocate; NULL = the planner's default */
} rondo_instantiate_options;
#define RONDO_INSTANTIATE_OPTIONS_INIT .struct_size = sizeof(rondo_instantiate_options)

/* Relocating. Without it, execs of one graph, and of its clones, share the addresses of its alloc nodes: they are
 * correct one after another and wait for each other. With relocate, the allocations that the graph frees itself are
 * planned together on its exact order (<rondo/plan.h>), at addresses that only this exec has, and what the graph says
 * of them is rewritten: pointer parameters of kernels (RONDO_READS, RONDO_WRITES, RONDO_UPDATES), copies and fills. So
 * the exec is independent of its relatives and may run at once with them; one memory graph may stand several times in
 * branches that run at once; and edges that a reuse of addresses relied on may be gone (rondo_graph_options.relocate).
 *
 * An address means what is alive there by the graph's order: the allocation that is made before the node while all
 * others at that address are freed before. Refused, naming the node: an address that is not ordered after the alloc
 * node, or may mean one of two allocations; a node of the kind FOREIGN; a scalar parameter with a word, or a host
 * function with a user pointer, that points into memory that moves. Not found: addresses that host functions or kernels
 * keep in memory; instantiate such graphs without relocate. Memory that the graph does not free keeps its address and
 * is shared with its relatives as ever. Updates and set_params are given the graph's own addresses. */

/* Makes an exec of the graph: verified, lowered, everything a launch needs made ready. options may be NULL. The caller
 * destroys it. Errors: INVALID_GRAPH with CYCLE (a node on it), NO_FUNCTION (the kernel) or NO_ACCESS (memory of
 * another device, <rondo/memory.h>); the first error that verification finds, with its status and reason, naming the
 * nodes and the edge that would mend it (<rondo/verify.h>; without verification only what no launch could keep account
 * of: INVALID_LIFETIME with STILL_ALLOCATED, NOT_ALLOCATED, DOUBLE_FREE or FOREIGN_ADDRESS);
 * INVALID_STATE/CAPTURING_INTO; INVALID_ARGUMENT (a graph without a device); OUT_OF_MEMORY;
 * INVALID_GRAPH/NOT_RELOCATABLE (see above); what rondo_exec_upload and, with relocate, rondo_plan_make return. */
RONDO_API RONDO_MUST_USE rondo_status rondo_instantiate(rondo_graph *graph, const rondo_instantiate_options *options,
                                                        rondo_exec **out_exec);

/* Does ahead what the first launch on this stream would do besides launching: mapping memory (GM-14). Memory that was
 * mapped for another stream is moved, after waiting for the launches that use it; a launch alone never moves it but is
 * ordered after the last one (GM-13). Errors: INVALID_ARGUMENT (NULL, another device's stream); OUT_OF_MEMORY;
 * CAPTURE_REFUSED/UNSUPPORTED_CALL on a capturing stream, which makes the capture invalid. */
RONDO_API RONDO_MUST_USE rondo_status rondo_exec_upload(rondo_exec *exec, rondo_stream *stream);

/* Queues the exec. While the stream captures, it becomes a child-graph node (C16). Does not allocate and takes no lock
 * once warm (GX-4, GX-10), unless memory that an exec of the same graph left allocated was freed in stream order since:
 * then it looks whether it gives those bytes out.
 *
 * What its nodes declare to access (copies, fills, pointer parameters of kernels, in child graphs too) must be
 * allocated when it is launched, as for the same work on a stream: memory of another graph is, once a launch has left
 * it so. This is looked up again when an allocation of the device was freed since the last launch; else a launch
 * compares two numbers. Disabled nodes, addresses that are not the device's, and execs made without verification are
 * not checked. The error is INVALID_LIFETIME with NOT_ALLOCATED (no launch has allocated it, or its graph is destroyed)
 * or USE_AFTER_FREE, or INVALID_ARGUMENT/OUT_OF_RANGE, with the node, the address, the allocation and the remedy;
 * nothing runs, and the exec can be launched when the memory is there. Errors beside these: INVALID_ARGUMENT (NULL,
 * another device's stream), INVALID_LIFETIME with STILL_ALLOCATED (memory of the last launch, or of an exec of the same
 * graph, was not freed, and no auto_free_on_launch; or another thread is freeing it), NOT_ALLOCATED or DOUBLE_FREE (it
 * frees what does not live), CAPTURE_INVALID, OUT_OF_MEMORY (first launch on a stream), UNSUPPORTED (nodes are disabled
 * and the stream captures).
 */
RONDO_API RONDO_MUST_USE rondo_status rondo_exec_launch(rondo_exec *exec, rondo_stream *stream);

/* What an update was refused for. */
typedef struct rondo_update_result {
  uint32_t struct_size;
  rondo_reason reason;   /* NONE; TOPOLOGY_CHANGED, NODE_KIND_CHANGED, PARAMETERS_CHANGED, FUNCTION_CHANGED,
                            NOT_UPDATABLE, NO_ACCESS */
  rondo_node exec_node;  /* the node of the graph the exec was made of; no node when the counts differ */
  rondo_node graph_node; /* its mate in the new graph */
} rondo_update_result;

/* Gives the exec the parameters of a graph of the same topology, all or none (U3). Nodes are paired in topological
 * order; disabled nodes stay so. Alloc and free nodes may change too: launches from then on use the new graph's memory.
 * The new graph is verified as by rondo_instantiate, unless the exec was made without (NOT_UPDATABLE when refused).
 * out_result may be NULL. Errors: UPDATE_REFUSED, with *out_result, CYCLE, OUT_OF_MEMORY; the exec is as before. */
RONDO_API RONDO_MUST_USE rondo_status rondo_exec_update(rondo_exec *exec, rondo_graph *graph,
                                                        rondo_update_result *out_result);

/* Gives one node other parameters; `node` is a node of the graph the exec was made of (or of a child graph in it). The
 * kind must be the same. KERNEL: kernel, grid and arguments may change; COPY and FILL: all, if one-dimensional before
 * and after; HOST: all; EVENT_*: the event; EMPTY, CHILD, ALLOC, FREE: UNSUPPORTED (U1). Where what the node accesses
 * changes, that is verified, unless the exec was made without: lifetimes, extents and reach, but not races with other
 * nodes, which may have to change too and are looked for by rondo_exec_update (<rondo/verify.h>). Errors: UNKNOWN_NODE,
 * NODE_KIND, UPDATE_REFUSED, as rondo_graph_add; INVALID_LIFETIME with NOT_ALLOCATED or USE_AFTER_FREE; INVALID_GRAPH
 * with OUT_OF_RANGE or NO_ACCESS; OUT_OF_MEMORY; the exec is as before. */
RONDO_API RONDO_MUST_USE rondo_status rondo_exec_set_params(rondo_exec *exec, rondo_node node,
                                                            const rondo_node_params *params);

/* A disabled node behaves as an empty one; what is set meanwhile holds later. KERNEL, COPY and FILL only (U2).
 * Errors: UNKNOWN_NODE; UNSUPPORTED/NODE_KIND; OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_exec_set_enabled(rondo_exec *exec, rondo_node node, bool enabled);
RONDO_API RONDO_MUST_USE rondo_status rondo_exec_get_enabled(const rondo_exec *exec, rondo_node node,
                                                             bool *out_enabled);

/* Frees the exec once its launches are done; does not wait (L2). Memory that its launches left allocated stays (GM-4).
 * NULL is fine. */
RONDO_API void rondo_exec_destroy(rondo_exec *exec);

typedef struct rondo_exec_info {
  uint32_t struct_size;
  uint32_t node_count;    /* with those of child graphs; child nodes themselves not counted */
  uint64_t launches;      /* so far */
  uint64_t updates;       /* whole updates that took effect */
  uint64_t graph_bytes;   /* graph memory it needs mapped: planned bytes of its alloc nodes (GX-12) */
  uint64_t host_bytes;    /* host memory of the exec itself */
  uint64_t device_bytes;  /* device memory of the exec itself, without graph memory: 0 on a CPU device; on CUDA an
                           * estimate, as the driver does not tell: what execs of so many kernels and copies were seen
                           * to take (docs/cuda-probes.md, 40), within a tenth. The driver takes 2 MiB and more at a
                           * time, and keeps for later execs what one gives back */
  uint64_t planned_bytes; /* relocated: bytes that hold all that moved, by the plan; else 0 */
  uint64_t planned_bound; /* the least that any plan needs */
  uint64_t foreign_bytes; /* memory that libraries left allocations of in the graph, which the driver manages (GX-8) */
} rondo_exec_info;

/* Sizes and counters of the exec, as they are now. Errors: INVALID_ARGUMENT, IN_CALLBACK. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_exec_get_info(const rondo_exec *exec, rondo_exec_info *out_info);

/* How long a node ran, in microseconds: from its begin to the end of all its blocks, wherever they ran. */
typedef struct rondo_node_time {
  rondo_node node;     /* of the graph the exec was made of, or of a child graph in it */
  double microseconds; /* median of the launches */
  double minimum, maximum;
} rondo_node_time;

/* Launches the exec once and then `repeats` (1 to 1000) times on the stream, waiting for each launch, and gives how
 * long each node ran in those. The work is really done: states change and host functions are called repeats + 1 times.
 * Looking at the clock adds some tens of nanoseconds to a node; what an event-wait node waits is not counted.
 * The array as in queries (B7), in an order in which each node comes after all it depends on; nodes of child graphs
 * have entries, child nodes themselves none. With times = NULL nothing is launched, and stream and repeats are not
 * looked at. Errors: INVALID_ARGUMENT (NULL, another device's stream, OUT_OF_RANGE: repeats);
 * CAPTURE_REFUSED/UNSUPPORTED_CALL on a capturing stream; OUT_OF_MEMORY; what rondo_exec_launch and
 * rondo_stream_synchronize return. */
RONDO_API RONDO_MUST_USE rondo_status rondo_exec_measure(rondo_exec *exec, rondo_stream *stream, uint32_t repeats,
                                                         rondo_node_time *times, size_t *inout_count);

RONDO_EXTERN_C_END

#endif
