/* SPDX-License-Identifier: MIT
 * Streams and events. The work of a stream runs in order, asynchronously to the host and to other streams. Events let
 * one stream wait for another.
 *
 * While a stream captures (<rondo/capture.h>), the same calls record nodes and enqueue nothing. While a thread is in
 * the body of a function that is being recorded (<rondo/tree.h>), all calls that enqueue work fail with
 * CAPTURE_REFUSED/STRAY_WORK on streams that do not capture. A stream is thread-compatible: if several threads use one
 * stream, the caller must lock it. In a forked child, streams and events of the parent refuse all work
 * (<rondo/device.h>, Fork).
 */
#ifndef RONDO_STREAM_H
#define RONDO_STREAM_H

#include <rondo/device.h>
#include <rondo/graph.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_stream rondo_stream;

typedef struct rondo_stream_options {
  uint32_t struct_size;
  int32_t priority; /* of work on CUDA that waits for processors: lower numbers first; 0 is the default and the last.
                       The message of a refusal names the range, which on CPU devices is 0 alone */
  const char *name; /* for messages and traces; copied; NULL: messages use the stream's number, "stream 1" for the
                       first of the device */
  bool blocking;    /* on CUDA: the stream synchronises with the legacy default stream, and its captures forbid all
                       work there (C8); false: they do not know each other. No effect on CPU devices */
} rondo_stream_options;
#define RONDO_STREAM_OPTIONS_INIT .struct_size = sizeof(rondo_stream_options)

/* Creates a stream. options may be NULL. The caller destroys it. Errors: INVALID_ARGUMENT (OUT_OF_RANGE: a priority
 * that the device does not have), OUT_OF_MEMORY, LIMIT_EXCEEDED. */
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_create(rondo_device *device, const rondo_stream_options *options,
                                                          rondo_stream **out_stream);

/* Makes a rondo_stream of a stream that was made elsewhere and stays its owner's. All calls work on it. The owner may
 * go on enqueuing work, which runs in order with that of Rondo, and may adopt it several times: all handles are one
 * stream. Priority and flags stay. Destroy the rondo_stream before its owner destroys the stream, and not while other
 * code captures it.
 *
 * On CUDA, `native` is a CUstream or cudaStream_t of the device's primary context.
 * - A stream that was created without CU_STREAM_NON_BLOCKING synchronises with the legacy default stream. While it
 *   captures, the driver refuses work that reaches the legacy stream, in any thread, with
 *   CUDA_ERROR_STREAM_CAPTURE_IMPLICIT. That invalidates the capture, and the next Rondo call on the stream says so. A
 *   capture of other streams does not see such work, which runs at once.
 * - CU_STREAM_PER_THREAD is the default stream of the calling thread. Only this thread may use the rondo_stream: other
 *   threads get INVALID_STATE/WRONG_THREAD, and rondo_stream_destroy waits for the whole device there. Also a capture
 *   in relaxed mode must end on this thread, and until then rondo_stream_destroy fails on others.
 * - NULL and CU_STREAM_LEGACY are the legacy default stream. Captures of it are refused with
 *   CAPTURE_REFUSED/UNSUPPORTED_CALL, so functions of trees run eagerly. The message names the remedy.
 * - While code other than Rondo captures the stream, only kernels, copies, fills and memory operations may be enqueued
 *   on it. They become part of that capture. rondo_host_async is refused (CAPTURE_REFUSED/FOREIGN_WORK). The driver
 *   refuses launches of execs and waiting, which invalidates that capture (CAPTURE_REFUSED). Do not record events or
 *   free memory on the stream meanwhile: both would be part of the capture too.
 *
 * On CPU devices, `native` is rondo_stream_native of a stream of the same device, which may be another handle: "cpu:0"
 * may be opened twice. Each handle captures by itself, runs its work on its own device's threads, and returns failures
 * of its own work. All handles of one stream together are thread-compatible, also while one is adopted or destroyed.
 * They may be destroyed in any order.
 *
 * options may be NULL; priority and blocking must be 0. The caller destroys the handle. Errors: INVALID_ARGUMENT with
 * BAD_OPTIONS, OTHER_DEVICE (a stream of another device or context), STREAM_GONE (it was destroyed, as far as the
 * driver detects that); INVALID_STATE/ALREADY_CAPTURING; OUT_OF_MEMORY, LIMIT_EXCEEDED, IN_CALLBACK; those of the
 * driver. */
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_adopt(rondo_device *device, void *native,
                                                         const rondo_stream_options *options,
                                                         rondo_stream **out_stream);

/* Waits for all work on the stream, then frees the stream; of one that was adopted, only the handle. A capture that it
 * takes part in is invalidated. The capture's other streams then refuse all work until the capture is ended
 * (<rondo/capture.h>); it also ends with its last stream. NULL is fine. Errors: INVALID_STATE/STILL_IN_USE (a function
 * of a tree is being called on it, <rondo/tree.h>; a compiled program or a session runs on it), IN_CALLBACK; those of
 * rondo_stream_synchronize outside of captures, where the stream is freed nevertheless. */
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_destroy(rondo_stream *stream);

/* The stream's device, which must outlive it; NULL for NULL. Thread-safe. */
RONDO_API rondo_device *rondo_stream_device(const rondo_stream *stream);

/* Enqueues a kernel with the grid `grid`. The values of the arguments are copied, and may change after the call. `args`
 * and `arg_count`: RONDO_ARGS(&a, &b). Errors: INVALID_ARGUMENT (NULL, grid.x = 0, another number of arguments than the
 * kernel has, another device's kernel), INVALID_GRAPH/NO_FUNCTION (no code for this device), CAPTURE_INVALID,
 * OUT_OF_MEMORY (in a capture). Outside of captures it does not allocate and takes no lock; it waits while the stream's
 * queue is full. */
RONDO_API RONDO_MUST_USE rondo_status rondo_launch(rondo_stream *stream, rondo_kernel *kernel, rondo_grid grid,
                                                   const void *const *args, size_t arg_count);

/* Options of a launch. */
typedef struct rondo_launch_options {
  uint32_t struct_size;
  uint32_t reserved;
  const char *name;        /* of the node in a capture, and for messages; NULL = the kernel's name */
  const size_t *arg_bytes; /* maximum number of bytes that the kernel accesses through each pointer, arg_count entries,
                              as in rondo_kernel_node; makes verification of the captured graph exact */
  const rondo_launch_config *config; /* how the blocks run; NULL: the default */
} rondo_launch_options;
#define RONDO_LAUNCH_OPTIONS_INIT .struct_size = sizeof(rondo_launch_options)

/* Like rondo_launch with options, which are read during the call and may be NULL. Errors as rondo_launch;
 * INVALID_ARGUMENT/BAD_SIZE (bytes for an argument that is not a pointer); those of a launch configuration
 * (<rondo/kernel.h>). Outside of captures it does not allocate or lock. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_launch_with(rondo_stream *stream, rondo_kernel *kernel, rondo_grid grid,
                                                        const void *const *args, size_t arg_count,
                                                        const rondo_launch_options *options);

/* Enqueues a copy of `bytes` bytes, between host memory and device memory that the device can access, in any direction.
 * Host memory must not change until the copy has run. Earlier work on the stream, such as a host function, may write it
 * only if it is memory of rondo_host_malloc: CUDA may read other host memory at any time between the call and the copy
 * (CUDA driver API, "API synchronization behavior"). Errors: INVALID_ARGUMENT (NULL, 0 bytes, OUT_OF_RANGE: source and
 * destination overlap, or one passes the end of the allocation in which it begins), INVALID_LIFETIME with
 * USE_AFTER_FREE (recently freed memory) or NOT_ALLOCATED (graph memory that no launch has left allocated, GM-18; not
 * in a capture), CAPTURE_INVALID, OUT_OF_MEMORY, IN_CALLBACK. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_copy_async(rondo_stream *stream, void *dst, const void *src, size_t bytes);

/* The same for a box of up to three dimensions (see rondo_copy). *copy is read during the call. Errors as
 * rondo_copy_async; INVALID_ARGUMENT/BAD_SIZE for pitches that are too small. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_copy_box_async(rondo_stream *stream, const rondo_copy *copy);

/* Enqueues a fill (see rondo_fill). *fill is read during the call. Errors: INVALID_ARGUMENT with NULL_ARGUMENT,
 * BAD_SIZE (0 elements, an element size other than 1, 2 or 4 bytes, alignment, pitch) or OUT_OF_RANGE (it passes the
 * end of the allocation in which it begins); INVALID_LIFETIME as rondo_copy_async;
 * CAPTURE_INVALID, OUT_OF_MEMORY, IN_CALLBACK. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_fill_async(rondo_stream *stream, const rondo_fill *fill);

/* Enqueues memory operations (see rondo_memory_operations_node), which are copied. A wait holds up later work of this
 * stream alone. Errors as rondo_graph_add_memory_operations; CAPTURE_INVALID, OUT_OF_MEMORY, IN_CALLBACK.
 * Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_operations_async(rondo_stream *stream,
                                                                    const rondo_memory_operation *operations,
                                                                    size_t count);

/* Enqueues a host function (see rondo_host_function). `user` is passed to it unchanged. It must stay valid until the
 * function has run, or, in a capture, as long as the graph and its execs. Errors: INVALID_ARGUMENT/NULL_ARGUMENT,
 * CAPTURE_INVALID, OUT_OF_MEMORY, IN_CALLBACK. The next synchronization returns a failure of the function.
 * Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_host_async(rondo_stream *stream, rondo_host_function function, void *user);

/* Waits until all enqueued work of the stream is done. The waiting thread also executes work. Errors: the first
 * asynchronous failure since the last synchronization, with the name of its node, once;
 * CAPTURE_REFUSED/UNSUPPORTED_CALL while the stream captures, which invalidates the capture (C6), or if another capture
 * forbids it (C9); IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_synchronize(rondo_stream *stream);

/* Returns OK if all enqueued work is done, NOT_READY if not; other errors as rondo_stream_synchronize. */
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_query(rondo_stream *stream);

/* The driver's handle, valid as long as the stream. On CUDA a CUstream: work that is enqueued on it runs in the order
 * of the stream, and is captured while the stream captures (<rondo/capture.h>). On a CPU device a number, which is good
 * for rondo_stream_adopt alone, and is the same for all handles of a stream. NULL for NULL, and for the legacy default
 * stream. Any thread. */
RONDO_API void *rondo_stream_native(rondo_stream *stream);

/* Events ---------------------------------------------------------------------------------------------------------- */

typedef struct rondo_event_options {
  uint32_t struct_size;
  bool timing; /* record the time at which the event completes */
} rondo_event_options;
#define RONDO_EVENT_OPTIONS_INIT .struct_size = sizeof(rondo_event_options)

/* Creates an event, or reuses one of the device's free list. It is initially complete and not recorded. options may be
 * NULL. Thread-safe. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_event_create(rondo_device *device, const rondo_event_options *options,
                                                         rondo_event **out_event);

/* Returns an event to the free list: at once if it is complete, otherwise after it completes. NULL is fine.
 * Thread-safe. */
RONDO_API void rondo_event_destroy(rondo_event *event);

/* Records the event: it completes when all work that is enqueued on the stream so far is done. Recording it again
 * replaces the previous record; earlier waits still wait for the previous one. In a capture, it represents the stream's
 * last nodes (C3). Errors: INVALID_ARGUMENT (NULL, OTHER_DEVICE: the stream's is not the event's), CAPTURE_INVALID,
 * OUT_OF_MEMORY, IN_CALLBACK. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_event_record(rondo_event *event, rondo_stream *stream);

/* In a capture: adds an event-record node, so that each launch records the event (C7, flag EXTERNAL). Errors:
 * INVALID_STATE/NOT_CAPTURING outside of a capture. */
RONDO_API RONDO_MUST_USE rondo_status rondo_event_record_external(rondo_event *event, rondo_stream *stream);

/* Makes later work of the stream wait for the event as it is recorded now. The event may belong to another device of
 * the same kind (both CUDA, both CPU, or both CPU with checks). An event that was never recorded is complete. While the
 * event belongs to a capture, the stream joins the capture (C3). Errors: CAPTURE_REFUSED with ISOLATION (a capturing
 * stream waits for an event that was never recorded, or recorded outside of its capture) or MERGE (an event of another
 * capture), which invalidate the captures; CAPTURED_EVENT (the capture in which it was recorded has ended);
 * CAPTURE_INVALID; INVALID_ARGUMENT (NULL; OTHER_DEVICE: a device of another kind, or a stream of another device that
 * would join the recording of a tree's function). */
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_wait_event(rondo_stream *stream, rondo_event *event);

/* In a capture: adds an event-wait node; each launch waits for the event as it is recorded at that time. Errors:
 * INVALID_STATE/NOT_CAPTURING outside of a capture. */
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_wait_event_external(rondo_stream *stream, rondo_event *event);

/* Returns OK if the event is complete, NOT_READY if not. Errors: CAPTURE_REFUSED with CAPTURED_EVENT for an event that
 * was last recorded in a capture, which is invalidated if it is still active (C6), or UNSUPPORTED_CALL if a capture
 * forbids it (C9). */
RONDO_API RONDO_MUST_USE rondo_status rondo_event_query(rondo_event *event);

/* Waits until the event is complete. The waiting thread also runs work. Errors as rondo_event_query, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_event_synchronize(rondo_event *event);

/* Returns the time from the completion of `start` to the completion of `end`, in microseconds. Errors: NOT_READY while
 * one is not complete; INVALID_STATE with NO_TIMING, EVENT_NOT_RECORDED; INVALID_ARGUMENT (NULL, OTHER_DEVICE);
 * CAPTURE_REFUSED/CAPTURED_EVENT for an event that was last recorded in a capture, which is invalidated if it is still
 * active (C6); IN_CALLBACK. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_event_elapsed(const rondo_event *start, const rondo_event *end,
                                                          double *out_microseconds);

RONDO_EXTERN_C_END

#endif
