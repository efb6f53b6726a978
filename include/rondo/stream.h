/* SPDX-License-Identifier: MIT
 * Streams: queues of work that runs in order, asynchronously to the caller and to other streams; and events, by which
 * one stream waits for another.
 *
 * While a stream captures (<rondo/capture.h>) the same calls record nodes instead of queueing work. While this thread
 * is in the body of a function that is being recorded (<rondo/tree.h>), all calls that queue fail with
 * CAPTURE_REFUSED/STRAY_WORK on streams that capture nothing. A stream is thread-compatible: calls on one stream from
 * several threads need a lock of the caller's. In a forked child, streams and events of the parent refuse all work
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
  uint32_t reserved;
  const char *name; /* for messages and traces; copied; may be NULL: messages then tell the stream by its number, the
                       device's first is "stream 1" */
} rondo_stream_options;
#define RONDO_STREAM_OPTIONS_INIT .struct_size = sizeof(rondo_stream_options)

/* options may be NULL. The caller destroys it. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, LIMIT_EXCEEDED. */
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_create(rondo_device *device, const rondo_stream_options *options,
                                                          rondo_stream **out_stream);

/* Waits for the stream's work, then frees it; a capture that it is part of becomes invalid. The capture's other streams
 * then refuse all work until it is ended (<rondo/capture.h>); with its last stream the capture is over. NULL is fine.
 * Errors: INVALID_STATE/STILL_IN_USE (a function of a tree is being called on it, <rondo/tree.h>), IN_CALLBACK; those
 * of rondo_stream_synchronize outside of captures, with which the stream is gone all the same. */
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_destroy(rondo_stream *stream);

/* The device it was made for, which must outlive it; NULL for NULL. Thread-safe. */
RONDO_API rondo_device *rondo_stream_device(const rondo_stream *stream);

/* Queues a kernel over `grid`. The arguments' values are copied during the call, so they may change at once after it.
 * `args` and `arg_count`: RONDO_ARGS(&a, &b). Errors: INVALID_ARGUMENT (NULL, grid.x = 0, another number of arguments
 * than the kernel's, another device's kernel), INVALID_GRAPH/NO_FUNCTION (no code for this device), CAPTURE_INVALID,
 * OUT_OF_MEMORY (while capturing). Does not allocate and takes no lock outside capture; waits while the stream's queue
 * is full. */
RONDO_API RONDO_MUST_USE rondo_status rondo_launch(rondo_stream *stream, rondo_kernel *kernel, rondo_grid grid,
                                                   const void *const *args, size_t arg_count);

/* What more can be said of a launch. */
typedef struct rondo_launch_options {
  uint32_t struct_size;
  uint32_t reserved;
  const char *name;        /* the node's while capturing, and for messages; NULL = the kernel's */
  const size_t *arg_bytes; /* how many bytes behind each pointer the kernel may access at most, as in rondo_kernel_node:
                              arg_count of them; verification of the captured graph is exact then */
} rondo_launch_options;
#define RONDO_LAUNCH_OPTIONS_INIT .struct_size = sizeof(rondo_launch_options)

/* rondo_launch with options, which are read during the call and may be NULL. Errors as rondo_launch;
 * INVALID_ARGUMENT/BAD_SIZE (bytes of an argument that is no pointer). Does not allocate or lock outside capture.
 * Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_launch_with(rondo_stream *stream, rondo_kernel *kernel, rondo_grid grid,
                                                        const void *const *args, size_t arg_count,
                                                        const rondo_launch_options *options);

/* Queues a copy of `bytes` bytes between any two of host and device memory that the device can reach. Host memory must
 * stay as it is until the copy has run; work queued before it on the stream, such as a host function, may write it only
 * where it is of rondo_host_malloc: CUDA reads other host memory when it likes between the call and the copy (CUDA
 * driver API, "API synchronization behavior"). Errors: INVALID_ARGUMENT (NULL, 0 bytes, OUT_OF_RANGE: the two overlap,
 * or one passes the end of the allocation it begins in), INVALID_LIFETIME with USE_AFTER_FREE (one lies in an
 * allocation that was freed lately) or NOT_ALLOCATED (in graph memory that no launch has left allocated, GM-18; not
 * while capturing), CAPTURE_INVALID, OUT_OF_MEMORY, IN_CALLBACK. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_copy_async(rondo_stream *stream, void *dst, const void *src, size_t bytes);

/* The same for a box of up to three dimensions (see rondo_copy), which is copied during the call. Errors as
 * rondo_copy_async; INVALID_ARGUMENT/BAD_SIZE for pitches that are too small. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_copy_box_async(rondo_stream *stream, const rondo_copy *copy);

/* Queues a fill (see rondo_fill), whose description is copied during the call. Errors: INVALID_ARGUMENT with
 * NULL_ARGUMENT, BAD_SIZE (0 elements, an element of another size than 1, 2 or 4 bytes, alignment, pitch) or
 * OUT_OF_RANGE (it passes the end of the allocation it begins in); INVALID_LIFETIME as rondo_copy_async;
 * CAPTURE_INVALID, OUT_OF_MEMORY, IN_CALLBACK. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_fill_async(rondo_stream *stream, const rondo_fill *fill);

/* Queues a host function (see rondo_host_function); `user` is handed to it as it is and must last until it has run, or
 * while capturing as long as the graph and its execs. Errors: INVALID_ARGUMENT/NULL_ARGUMENT, CAPTURE_INVALID,
 * OUT_OF_MEMORY, IN_CALLBACK; what the function returns comes out at the next synchronisation. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_host_async(rondo_stream *stream, rondo_host_function function, void *user);

/* Waits until all that was queued on the stream is done; the waiting thread works along. Errors: the first asynchronous
 * failure since the last synchronisation, with its node's name, once; CAPTURE_REFUSED/UNSUPPORTED_CALL while the stream
 * captures, which makes the capture invalid (C6), or when another capture forbids it (C9); IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_synchronize(rondo_stream *stream);

/* OK when all is done, NOT_READY otherwise; else as rondo_stream_synchronize. */
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_query(rondo_stream *stream);

/* The driver's own handle: a CUstream on CUDA; NULL on a CPU device, and for NULL. Valid as long as the stream. What is
 * given to it runs in the stream's order, and is captured while the stream captures (<rondo/capture.h>). Any thread. */
RONDO_API void *rondo_stream_native(rondo_stream *stream);

/* Events ---------------------------------------------------------------------------------------------------------- */

typedef struct rondo_event_options {
  uint32_t struct_size;
  bool timing; /* keep the time at which it completes */
} rondo_event_options;
#define RONDO_EVENT_OPTIONS_INIT .struct_size = sizeof(rondo_event_options)

/* An event, from the device's free list when there is one. It starts complete, not recorded. options may be NULL.
 * Thread-safe. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_event_create(rondo_device *device, const rondo_event_options *options,
                                                         rondo_event **out_event);

/* Gives it back to the free list, at once when it is complete, else when it completes (looked for at the next request).
 * NULL is fine. Thread-safe. */
RONDO_API void rondo_event_destroy(rondo_event *event);

/* The event completes when all that was queued on the stream so far is done. Recording again starts anew; waits made
 * before keep what they wait for. While capturing, it stands for the stream's last nodes (C3). Errors:
 * INVALID_ARGUMENT (NULL, OTHER_DEVICE), CAPTURE_INVALID, OUT_OF_MEMORY, IN_CALLBACK. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_event_record(rondo_event *event, rondo_stream *stream);

/* While capturing: adds an event-record node, so that the event is recorded at each launch (C7, flag EXTERNAL).
 * Errors: INVALID_STATE/NOT_CAPTURING outside a capture. */
RONDO_API RONDO_MUST_USE rondo_status rondo_event_record_external(rondo_event *event, rondo_stream *stream);

/* Work queued on the stream from now on waits for the event as it is now recorded. An event never recorded is complete.
 * While the event belongs to a capture, the stream joins it (C3). Errors: CAPTURE_REFUSED with ISOLATION (a capturing
 * stream waits for an event never recorded, or recorded outside its capture) or MERGE (of another capture), which make
 * the captures invalid; CAPTURED_EVENT (the capture it was recorded in is over); CAPTURE_INVALID. */
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_wait_event(rondo_stream *stream, rondo_event *event);

/* While capturing: adds an event-wait node; each launch waits for the event as it is recorded then. Errors:
 * INVALID_STATE/NOT_CAPTURING outside a capture. */
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_wait_event_external(rondo_stream *stream, rondo_event *event);

/* OK when complete, NOT_READY otherwise. Errors: CAPTURE_REFUSED with CAPTURED_EVENT for an event that was last
 * recorded in a capture, which becomes invalid if it still goes on (C6), or UNSUPPORTED_CALL when a capture forbids it
 * (C9). */
RONDO_API RONDO_MUST_USE rondo_status rondo_event_query(rondo_event *event);

/* Waits until it is complete; the waiting thread works along. Errors as rondo_event_query, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_event_synchronize(rondo_event *event);

/* Time from `start`'s completion to `end`'s, in microseconds. Errors: NOT_READY while one is not complete;
 * INVALID_STATE with NO_TIMING, EVENT_NOT_RECORDED; INVALID_ARGUMENT (NULL, OTHER_DEVICE);
 * CAPTURE_REFUSED/CAPTURED_EVENT for an event that was last recorded in a capture, which becomes invalid if it still
 * goes on (C6); IN_CALLBACK. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_event_elapsed(const rondo_event *start, const rondo_event *end,
                                                          double *out_microseconds);

RONDO_EXTERN_C_END

#endif
