/* SPDX-License-Identifier: MIT
 * Capture: between begin and end, what is queued on a stream, and on streams that join it through events, becomes nodes
 * of a graph instead of running. Rules and their names (C1 to C16) follow the CUDA driver's stream capture.
 *
 * A capture is thread-bound: it ends on the thread that began it, unless its mode is RELAXED. Several captures at once,
 * on streams and threads of their own, do not disturb each other. What the thread gives to streams that capture nothing
 * runs at once, beside the capture (C2); in the body of a tree's function that is refused (<rondo/tree.h>).
 *
 * A call that the thread's own capture refuses makes it invalid (C6, C9). The error names the call and says what to do
 * instead, and where the capture was: behind which node, which rondo_error.node has too (FW-7), unless the capture is
 * RELAXED, which other threads may be adding to. The end of the capture says call and node once more.
 *
 * Foreign work (GX-8). On a CUDA device the driver captures too: what a library (cuBLAS, cuDNN, NCCL) or the user gives
 * to the native handle of a capturing stream (rondo_stream_native), or to streams that it forks off and joins by events
 * of its own, becomes part of the graph, in the order that the driver gives it among Rondo's work.
 * - Kernels become nodes of a kernel of their name, whose one scalar parameter is all of their arguments, as the kernel
 *   gets them (cuFuncGetParamInfo says where each stands). Execs keep their attributes. Words in them that are
 *   addresses of graph memory are looked at by verification, for warnings (<rondo/verify.h>).
 * - Copies and fills become nodes like Rondo's. Host functions, events, copies of arrays and what else the driver has
 *   become nodes of the kind FOREIGN (rondo_foreign_node), of which nothing more is known.
 * - Programmatic dependent launches make programmatic edges (rondo_graph_programmatic_edges).
 * - Memory that a library takes from the driver while it captures (cuMemAllocAsync, cuBLAS without a workspace) is the
 *   driver's, beside Rondo's graph memory: rondo_exec_info.foreign_bytes counts it. It and the kinds that cannot be
 *   made anew (conditional nodes, semaphores, batches of memory operations) bind the graph to what the driver captured:
 *   it can be instantiated once, and not cloned, embedded, relocated, updated from, or lose nodes and edges
 *   (UNSUPPORTED/FOREIGN_WORK; a warning of the log says so when the capture ends). Give libraries their memory before
 *   the capture: cublasSetWorkspace and its like. Copies of such memory are captured before it is freed: later they are
 *   refused with CAPTURE_REFUSED/FOREIGN_WORK, which makes the capture invalid, and those that the driver cannot take
 *   as one (slices at uneven distances), or that are added to the graph by hand, at rondo_instantiate.
 * - Memory allocated in a capture has addresses but no memory until a launch. Libraries may use it like any other in
 *   what they give to the capture, kernels, fills and copies: until the end, pages that hold nothing stand in for it.
 *   Where the device has none left, such fills and copies may be refused.
 * - What was captured lives as long as the graph, its clones and their execs, and what libraries hung on it with it.
 * - Not seen: work on the legacy stream (Rondo's streams are non-blocking, so that it runs at once), and what a library
 *   does at once. A call that cannot be captured makes the driver's capture invalid; the next call of Rondo's on it
 *   finds that out and says between which node and which call it was.
 * - A stream of Rondo's joins a capture by rondo_stream_wait_event, or by an event of a library's, which the next call
 *   of Rondo's on it finds out.
 */
#ifndef RONDO_CAPTURE_H
#define RONDO_CAPTURE_H

#include <rondo/memory.h>
#include <rondo/stream.h>

RONDO_EXTERN_C_BEGIN

/* Which calls that act at once, unseen by the capture (rondo_malloc, rondo_free, synchronising another stream, ...),
 * are refused while it lasts (C9). A refused call makes the capture invalid. Two modes meet, the capture's and the
 * thread's: thread mode GLOBAL (what a thread starts with): refused if this thread began a capture that is not RELAXED,
 * or any other thread began one that is GLOBAL; THREAD_LOCAL: refused if this thread began a capture that is not
 * RELAXED; RELAXED: never. */
typedef enum rondo_capture_mode {
  RONDO_CAPTURE_THREAD_LOCAL = 0, /* the default */
  RONDO_CAPTURE_GLOBAL = 1,
  RONDO_CAPTURE_RELAXED = 2
} rondo_capture_mode;

/* Begins a capture on the stream. Errors: CAPTURE_REFUSED/ALREADY_CAPTURING (also when it joined another's capture),
 * INVALID_ARGUMENT, OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_capture_begin(rondo_stream *stream, rondo_capture_mode mode);

typedef struct rondo_capture_options {
  uint32_t struct_size; /* RONDO_CAPTURE_OPTIONS_INIT sets it; 0 means the library's own */
  rondo_capture_mode mode;
  rondo_profile *profile; /* as rondo_graph_options.profile; may be NULL */
  bool relocate;          /* as rondo_graph_options.relocate */
} rondo_capture_options;
#define RONDO_CAPTURE_OPTIONS_INIT .struct_size = sizeof(rondo_capture_options)

/* As rondo_capture_begin, with the options of the graph that it makes. options may be NULL. Errors as
 * rondo_capture_begin; INVALID_ARGUMENT/BAD_OPTIONS (a profile and relocate together). */
RONDO_API RONDO_MUST_USE rondo_status rondo_capture_begin_with(rondo_stream *stream,
                                                               const rondo_capture_options *options);

/* As rondo_capture_begin, adding to an existing graph behind the given nodes (C14). The graph must not be instantiated,
 * destroyed or captured into otherwise until the end, where rondo_capture_end hands it out again. Errors as
 * rondo_capture_begin; INVALID_ARGUMENT with OTHER_DEVICE, UNKNOWN_NODE; INVALID_STATE/CAPTURING_INTO (another stream
 * captures into the graph). Thread-compatible, also with respect to the graph. */
RONDO_API RONDO_MUST_USE rondo_status rondo_capture_begin_to_graph(rondo_stream *stream, rondo_graph *graph,
                                                                   const rondo_node *dependencies, size_t count,
                                                                   rondo_capture_mode mode);

/* Ends the capture. The caller owns the graph (it may be empty). out_graph may be NULL after
 * rondo_capture_begin_to_graph only. If the stream that the capture began on was destroyed, the capture is invalid, and
 * any of its other streams ends it, on any thread. Errors, with *out_graph = NULL:
 *   INVALID_STATE/NOT_CAPTURING;
 *   CAPTURE_REFUSED/UNMATCHED_STREAM (this stream joined; the message names the one that began) and WRONG_THREAD: the
 *     capture goes on;
 *   CAPTURE_REFUSED/UNJOINED (a stream that was forked off was not joined; the message names it and its last node),
 *   CAPTURE_INVALID/INVALIDATED (the message says which call did it), OUT_OF_MEMORY: the capture is over for all its
 *     streams. A graph that was captured into stays the caller's, and foreign nodes in it cannot be instantiated.
 *   DEVICE_LOST and what else the driver says of work that a library captured: the same. */
RONDO_API RONDO_MUST_USE rondo_status rondo_capture_end(rondo_stream *stream, rondo_graph **out_graph);

typedef enum rondo_capture_state {
  RONDO_CAPTURE_NONE = 0,
  RONDO_CAPTURE_ACTIVE = 1,
  RONDO_CAPTURE_INVALIDATED = 2
} rondo_capture_state;

typedef struct rondo_capture_info {
  uint32_t struct_size;
  rondo_capture_state state;
  uint64_t id;                /* unique in the process, the same for all streams of the capture; 0 when none */
  rondo_graph *graph;         /* may be read and added to, not destroyed; NULL when none or invalid */
  const rondo_node *frontier; /* what the stream's next node will depend on; valid until the next call on the stream */
  size_t frontier_count;
} rondo_capture_info;

/* The state of the capture that the stream is part of. Never invalidates (C12), but finds out that a library has; makes
 * nodes for what libraries captured so far. Errors: INVALID_ARGUMENT, IN_CALLBACK, OUT_OF_MEMORY. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_capture_get_info(const rondo_stream *stream, rondo_capture_info *out_info);

/* Adds nodes to what the stream's next node depends on, or (replace) sets it (C13).
 * Errors: INVALID_STATE/NOT_CAPTURING, UNKNOWN_NODE, CAPTURE_INVALID. */
RONDO_API RONDO_MUST_USE rondo_status rondo_capture_set_frontier(rondo_stream *stream, const rondo_node *nodes,
                                                                 size_t count, bool replace);

/* Sets the calling thread's mode and returns the one before in *inout_mode (see rondo_capture_mode). Touches nothing
 * but the calling thread's own mode. Errors: INVALID_ARGUMENT (NULL, no mode); the mode is then as before. */
RONDO_API RONDO_MUST_USE rondo_status rondo_capture_exchange_thread_mode(rondo_capture_mode *inout_mode);

RONDO_EXTERN_C_END

#endif
