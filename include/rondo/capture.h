/* SPDX-License-Identifier: MIT
 * Stream capture: between begin and end, work that is enqueued on a stream becomes nodes of a graph and does not run.
 * So does work on streams that join the capture through events. The rules and their names (C1 to C16) follow the CUDA
 * driver's stream capture.
 *
 * A capture is thread-bound: the thread that began it must end it, unless its mode is RELAXED. Several captures may be
 * active at once, on different streams and threads. Work that the thread enqueues on streams that do not capture runs
 * at once (C2). Inside the body of a tree's function such work is refused (<rondo/tree.h>).
 *
 * Streams of other devices join a capture like those of its own, if the devices are of one kind (both CUDA, both CPU,
 * or both CPU with checks). Their work becomes nodes of their devices (rondo_node_params.device). Graph memory is only
 * allocated and freed on streams of the device on which the capture began. A stream of another device cannot join the
 * recording of a tree's function, whose memory is that of one device.
 *
 * A call that the thread's own capture refuses invalidates the capture (C6, C9). The error names the call, says what to
 * do instead, and says where the capture was: after which node. rondo_error.node has this node too (FW-7), unless the
 * capture is RELAXED, because other threads may then be adding nodes. Ending the capture reports the call and the node
 * again.
 *
 * Foreign work (GX-8). On a CUDA device, the driver captures too. A library (cuBLAS, cuDNN, NCCL) or the caller may
 * enqueue work on the native handle of a capturing stream (rondo_stream_native), or on streams that it forks and joins
 * with its own events. This work becomes part of the graph, in the order that the driver gives it among Rondo's own
 * work.
 * - A kernel becomes a kernel node with the kernel's name. It has one scalar parameter, which holds all arguments as
 *   the kernel receives them (cuFuncGetParamInfo gives the position of each). Execs keep the kernel's attributes.
 *   Verification looks for addresses of graph memory in the arguments and gives warnings for them (<rondo/verify.h>).
 *   A kernel that was declared (<rondo/access.h>) has the declared parameters, and is verified like Rondo's own.
 * - Copies, fills and memory operations without barriers become ordinary nodes. Host functions, events, copies of
 *   arrays, and all other kinds that the driver has become nodes of the kind FOREIGN (rondo_foreign_node). Nothing more
 *   is known about them.
 * - Programmatic dependent launches become programmatic edges (rondo_graph_programmatic_edges).
 * - Memory that a library allocates from the driver during the capture (cuMemAllocAsync, or cuBLAS without a workspace)
 *   is managed by the driver, separately from Rondo's graph memory; rondo_exec_info.foreign_bytes counts it. This
 *   memory, and kinds of nodes that cannot be created again (conditional nodes, semaphores, batches with
 *   barriers), bind the graph to what the driver captured. A bound graph can be instantiated once. It cannot be
 *   cloned, embedded, relocated or updated from, and it cannot lose nodes or edges (UNSUPPORTED/FOREIGN_WORK; a warning
 *   in the log says so when the capture ends). To avoid this, give libraries their memory before the capture, for
 *   example with cublasSetWorkspace. Copies of such memory must be captured before it is freed. Later copies are
 *   refused with CAPTURE_REFUSED/FOREIGN_WORK, which invalidates the capture. Copies that the driver cannot do as one
 *   operation (slices at uneven distances), and copies that are added to the graph explicitly, are refused by
 *   rondo_instantiate.
 * - Memory that is allocated in a capture has an address, but no physical memory until a launch. Libraries may still
 *   use it in the kernels, fills and copies that they enqueue: until the capture ends, placeholder memory is mapped
 *   there. If the device has no memory left for this, such fills and copies may be refused.
 * - The captured work, and the objects that libraries attached to it, live as long as the graph, its clones and their
 *   execs.
 * - A capture does not see work on the legacy default stream, which runs at once because Rondo's streams are
 *   non-blocking by default. If the stream is blocking, such work invalidates the capture (rondo_stream_adopt). A
 *   capture does not see calls of a library that act immediately. A call that cannot be captured invalidates the
 *   driver's capture. The next Rondo call on the stream detects that, and says between which node and which call it
 *   happened.
 * - A Rondo stream joins a capture by rondo_stream_wait_event, or by an event of a library. The next Rondo call on the
 *   stream detects the latter.
 */
#ifndef RONDO_CAPTURE_H
#define RONDO_CAPTURE_H

#include <rondo/memory.h>
#include <rondo/stream.h>

RONDO_EXTERN_C_BEGIN

/* Which immediate calls are refused during a capture (C9). Immediate calls act at once and are not captured:
 * rondo_malloc, rondo_free, synchronizing another stream, and so on. A refused call invalidates the capture. Two modes
 * count: the capture's mode and the mode of the calling thread. Thread mode GLOBAL, which every thread starts with:
 * refused if this thread began a capture that is not RELAXED, or if any other thread began one that is GLOBAL.
 * THREAD_LOCAL: refused if this thread began a capture that is not RELAXED. RELAXED: never refused. */
typedef enum rondo_capture_mode {
  RONDO_CAPTURE_THREAD_LOCAL = 0, /* the default */
  RONDO_CAPTURE_GLOBAL = 1,
  RONDO_CAPTURE_RELAXED = 2
} rondo_capture_mode;

/* Begins a capture on the stream. Errors: CAPTURE_REFUSED/ALREADY_CAPTURING (also if the stream joined another
 * capture), INVALID_ARGUMENT, OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_capture_begin(rondo_stream *stream, rondo_capture_mode mode);

typedef struct rondo_capture_options {
  uint32_t struct_size; /* RONDO_CAPTURE_OPTIONS_INIT sets it; 0 means the library's own */
  rondo_capture_mode mode;
  rondo_profile *profile; /* as rondo_graph_options.profile; may be NULL */
  bool relocate;          /* as rondo_graph_options.relocate */
} rondo_capture_options;
#define RONDO_CAPTURE_OPTIONS_INIT .struct_size = sizeof(rondo_capture_options)

/* Like rondo_capture_begin, with options for the new graph. options may be NULL. Errors as rondo_capture_begin;
 * INVALID_ARGUMENT/BAD_OPTIONS (a profile and relocate together). */
RONDO_API RONDO_MUST_USE rondo_status rondo_capture_begin_with(rondo_stream *stream,
                                                               const rondo_capture_options *options);

/* Like rondo_capture_begin, but adds nodes to an existing graph, after the given nodes (C14). Until the capture ends,
 * the graph must not be instantiated, destroyed, or captured into by another capture. rondo_capture_end returns the
 * same graph. Errors as rondo_capture_begin; INVALID_ARGUMENT with OTHER_DEVICE, UNKNOWN_NODE;
 * INVALID_STATE/CAPTURING_INTO (another stream captures into the graph). Thread-compatible, also with respect to the
 * graph. */
RONDO_API RONDO_MUST_USE rondo_status rondo_capture_begin_to_graph(rondo_stream *stream, rondo_graph *graph,
                                                                   const rondo_node *dependencies, size_t count,
                                                                   rondo_capture_mode mode);

/* Ends the capture. The caller owns the graph, which may be empty. out_graph may be NULL only after
 * rondo_capture_begin_to_graph. If the stream on which the capture began was destroyed, the capture is invalid, and any
 * of its other streams may end it, on any thread. Errors, with *out_graph = NULL:
 *   INVALID_STATE/NOT_CAPTURING;
 *   CAPTURE_REFUSED/UNMATCHED_STREAM (this stream joined the capture; the message names the stream that began it) and
 *   WRONG_THREAD: the capture continues;
 *   CAPTURE_REFUSED/UNJOINED (a forked stream was not joined; the message names it and its last node),
 *   CAPTURE_INVALID/INVALIDATED (the message names the call that invalidated the capture), OUT_OF_MEMORY: the capture
 *   has ended for all its streams. A graph that was captured into still belongs to the caller, and foreign nodes in it
 *   cannot be instantiated;
 *   DEVICE_LOST and other errors of the driver about work that a library captured: likewise. */
RONDO_API RONDO_MUST_USE rondo_status rondo_capture_end(rondo_stream *stream, rondo_graph **out_graph);

typedef enum rondo_capture_state {
  RONDO_CAPTURE_NONE = 0,
  RONDO_CAPTURE_ACTIVE = 1,
  RONDO_CAPTURE_INVALIDATED = 2
} rondo_capture_state;

typedef struct rondo_capture_info {
  uint32_t struct_size;
  rondo_capture_state state;
  uint64_t id;        /* unique in the process, the same for all streams of the capture; 0 when none */
  rondo_graph *graph; /* may be read and added to, not destroyed; NULL when there is no capture or it is invalid */
  const rondo_node *frontier; /* what the stream's next node will depend on; valid until the next call on the stream */
  size_t frontier_count;
} rondo_capture_info;

/* The state of the capture that the stream takes part in. Never invalidates a capture (C12), but detects that a library
 * invalidated it. Creates nodes for what libraries have captured so far. Errors: INVALID_ARGUMENT, IN_CALLBACK,
 * OUT_OF_MEMORY. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_capture_get_info(const rondo_stream *stream, rondo_capture_info *out_info);

/* Adds nodes to the dependencies of the stream's next node, or replaces these dependencies if `replace` is true (C13).
 * Errors: INVALID_STATE/NOT_CAPTURING, UNKNOWN_NODE, CAPTURE_INVALID. */
RONDO_API RONDO_MUST_USE rondo_status rondo_capture_set_frontier(rondo_stream *stream, const rondo_node *nodes,
                                                                 size_t count, bool replace);

/* Sets the calling thread's mode and returns the previous mode in *inout_mode (see rondo_capture_mode). Affects only
 * the calling thread. Errors: INVALID_ARGUMENT (NULL, or not a mode); the mode is then unchanged. */
RONDO_API RONDO_MUST_USE rondo_status rondo_capture_exchange_thread_mode(rondo_capture_mode *inout_mode);

RONDO_EXTERN_C_END

#endif
