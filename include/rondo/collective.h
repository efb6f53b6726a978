/* SPDX-License-Identifier: MIT
 * Collectives: operations in which several devices take part, each with its own data: all-reduce, broadcast,
 * all-gather, reduce-scatter, barrier. There may be one process for each device, or several devices in one process
 * (RC-7, TR-16).
 *
 *   // in each process, with its own rank; all processes use the same rendezvous
 *   TRY(rondo_communicator_create(device, rendezvous, rank, world_size, NULL, &communicator));
 *   TRY(rondo_all_reduce(communicator, stream, gradients, gradients, count, RONDO_F32, RONDO_REDUCE_SUM));
 *   TRY(rondo_communicator_destroy(communicator));
 *
 * A communicator is one rank of a group: ranks 0 to world_size - 1, each with a device, all on one machine. Ranks find
 * each other through a rendezvous: the name of a file that all of them know, from rondo_rendezvous_make or chosen by
 * the caller. The file is removed as soon as all ranks have joined.
 *
 * Enqueueing. A collective is enqueued on a stream like a kernel, and the call returns at once. If the stream captures,
 * the collective is captured: each device records its own part, and the replays of all ranks meet as the calls would
 * (TR-16). Work that is enqueued later on the stream starts when the collective is done on this rank. While a
 * collective waits for the other ranks it blocks only its stream, and no thread of the device. So one thread may drive
 * all ranks of a process, even on one processor. It should switch to the next rank after some dozens of collectives,
 * because a call waits while its stream's queue is full. (On a synchronous device, RONDO_SYNC=1, each rank needs its
 * own thread.)
 *
 * Order. All ranks call the same collectives in the same order, with the same counts, types and reductions. The
 * collectives of one communicator execute one after the other on each rank: on one stream, or on streams that events
 * order. Use two communicators for collectives that execute at the same time. CPU devices detect calls that differ, and
 * fail on all ranks with both descriptions. Collectives of one communicator that overlap are detected: in a graph by
 * verification, as a race on the communicator; otherwise when they run.
 *
 * Results have the same bits on all ranks and in every run. CPU devices combine values in the order of the ranks, ((r0
 * + r1) + r2) + ..., in their own type. On CUDA, NCCL chooses an order for the group, which does not depend on timing.
 *
 * Buffers are in the memory of the communicator's device (on CPU devices also in host memory), aligned to the element.
 * Source and destination may be the same where the comment says so; otherwise they must not overlap.
 *
 * Errors. A rank fails if it waits longer than the timeout, if another rank has ended or left, or if the calls differ.
 * The next synchronization of its stream then returns EXECUTION_FAILED with TIMED_OUT, PEER_LOST, MISMATCH or OVERLAP,
 * and names the rank, the operation and the other rank. The contents of the destination are undefined. The communicator
 * has then failed permanently, and the other ranks are notified. Later calls return INVALID_STATE with the first
 * failure; later launches of execs fail on their streams. Destroy the communicator and create another group. (A rank
 * lives as long as its process, or a child that was forked from it and runs no other program.)
 *
 * On CPU devices, data goes through memory that the processes share, in pieces (rondo_communicator_options).
 *
 * On CUDA, NCCL does the work. It is loaded by name (RONDO_NCCL_LIBRARY, else libnccl.so.2) and uses the stream's
 * native handle. Its captured kernels are nodes of the graph like other foreign work (<rondo/capture.h>), so allocate
 * its buffers before the capture. Each rank needs its own thread or process. A rank that ends, calls that differ, and
 * collectives that overlap are not detected: NCCL's kernels wait until rondo_communicator_abort. NCCL connects ranks
 * when it first needs an algorithm: the first call of an operation, and the first call of a size for which it uses
 * another algorithm, wait for the same call on all ranks, captured or not. So ranks must be able to capture at the same
 * time. (With NCCL_RUNTIME_CONNECT=0 in the environment, NCCL connects while the group is created.)
 */
#ifndef RONDO_COLLECTIVE_H
#define RONDO_COLLECTIVE_H

#include <rondo/stream.h>
#include <rondo/type.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_communicator rondo_communicator;

/* Writes a new rendezvous, a string: an unused name in the machine's shared memory (/dev/shm, else /tmp). Pass it to
 * all ranks: by fork, an argument, an environment variable, or a pipe. No file is created yet. Thread-safe. Errors:
 * INVALID_ARGUMENT, IO_ERROR (the system has no random numbers). */
#define RONDO_RENDEZVOUS_BYTES 64
RONDO_API RONDO_MUST_USE rondo_status rondo_rendezvous_make(char out_rendezvous[RONDO_RENDEZVOUS_BYTES]);

#define RONDO_MAX_RANKS 256

typedef struct rondo_communicator_options {
  uint32_t struct_size;     /* RONDO_COMMUNICATOR_OPTIONS_INIT sets it; 0 means the library's own */
  uint32_t join_timeout_ms; /* how long to wait for all ranks to join; 0 = 60 seconds */
  uint32_t timeout_ms;      /* CPU: how long a collective waits for the other ranks; 0 = 10 minutes */
  uint32_t piece_bytes;     /* CPU: larger collectives are split into pieces of this size, a multiple of 4096, the same
                               on all ranks; a rank holds at most two. 0 = 4 MiB; at most 1 GiB */
  const char *name;         /* for messages; copied; may be NULL */
} rondo_communicator_options;
#define RONDO_COMMUNICATOR_OPTIONS_INIT .struct_size = sizeof(rondo_communicator_options)

/* Joins a group as one rank and waits until all ranks have joined. `rendezvous` is the same for all ranks, at most 255
 * bytes. It names a file that does not exist, or an empty file, in a folder that all ranks can write, on a file system
 * of this machine (tmpfs is fastest). The file is removed when all ranks have joined, or by the last rank that gives
 * up. Files left by ranks that have ended are reused. options may be NULL. The caller destroys the communicator before
 * it closes the device. Errors: INVALID_ARGUMENT with NULL_ARGUMENT, OUT_OF_RANGE (world_size is 0 or above
 * RONDO_MAX_RANKS, rank is not below it), BAD_OPTIONS (piece_bytes), RANK_TAKEN (this rank has already joined),
 * MISMATCH (the ranks that have joined use another world_size, another piece_bytes, or another kind of device);
 * UNAVAILABLE with TIMED_OUT (naming the ranks that did not join) or NO_DRIVER (no NCCL: the names that were tried);
 * INVALID_DATA (the file has other contents); IO_ERROR; UNSUPPORTED (the device has no collectives); OUT_OF_MEMORY;
 * LIMIT_EXCEEDED (threads); EXECUTION_FAILED with NCCL's code. Thread-safe; waits. */
RONDO_API RONDO_MUST_USE rondo_status rondo_communicator_create(rondo_device *device, const char *rendezvous,
                                                                uint32_t rank, uint32_t world_size,
                                                                const rondo_communicator_options *options,
                                                                rondo_communicator **out_communicator);

/* Creates a whole group in one process, from one thread: rank i on devices[i], in out_communicators[i]. All devices are
 * of one kind; a CPU device may have several ranks. Creates all or none. Errors as rondo_communicator_create. */
RONDO_API RONDO_MUST_USE rondo_status rondo_communicator_create_all(rondo_device *const *devices, uint32_t count,
                                                                    const rondo_communicator_options *options,
                                                                    rondo_communicator **out_communicators);

/* Waits for the collectives that were enqueued eagerly, then leaves the group. Ranks that still wait for this one fail
 * with PEER_LOST. Graphs that captured its collectives, their clones and their execs keep what they need of it. They
 * continue to work as long as those of the other ranks do: the shared memory, or NCCL's communicator, is released with
 * the last of them, in any order. NULL is fine. Errors: IN_CALLBACK; on CUDA EXECUTION_FAILED with NCCL's code, after
 * which the communicator is gone too. No thread may use the communicator during the call. */
RONDO_API RONDO_MUST_USE rondo_status rondo_communicator_destroy(rondo_communicator *communicator);

/* Makes the communicator fail, as if the timeout had passed: work that waits for other ranks ends with
 * EXECUTION_FAILED/ABORTED, and the other ranks are notified. On CUDA, NCCL's work on the device ends with undefined
 * results, and graphs that captured some of it must not be launched again. Any thread may call it, even while another
 * thread waits for a stream. Errors: INVALID_ARGUMENT, IN_CALLBACK; on CUDA EXECUTION_FAILED with NCCL's code. */
RONDO_API RONDO_MUST_USE rondo_status rondo_communicator_abort(rondo_communicator *communicator);

typedef struct rondo_communicator_info {
  uint32_t struct_size;
  uint32_t rank, world_size;
  bool failed;           /* permanently; the next call returns the reason */
  uint64_t collectives;  /* that this rank enqueued or captured */
  uint64_t pieces;       /* CPU: pieces that were exchanged with the other ranks, including those of replays */
  uint64_t shared_bytes; /* CPU: shared memory that this rank holds for its data */
} rondo_communicator_info;

/* Errors: INVALID_ARGUMENT. Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_communicator_get_info(const rondo_communicator *communicator,
                                                                  rondo_communicator_info *out_info);

typedef enum rondo_reduction { RONDO_REDUCE_SUM = 1, RONDO_REDUCE_MAX = 2, RONDO_REDUCE_MIN = 3 } rondo_reduction;

/* "sum", "max", "min"; "unknown" for another number. Thread-safe. */
RONDO_API const char *rondo_reduction_name(rondo_reduction reduction);

/* The collectives. A communicator is thread-compatible, and the stream is of its device. Errors of all:
 * INVALID_ARGUMENT with NULL_ARGUMENT, BAD_SIZE (count is 0, or the bytes of all ranks do not fit the address space, or
 * a buffer is not aligned to its element), TYPE (not a type, or not a reduction), OUT_OF_RANGE (buffers overlap
 * although they must not; root is not a rank), OTHER_DEVICE; UNSUPPORTED/TYPE (reductions of F16 and BF16 on CPU
 * devices); INVALID_STATE (the communicator has failed); CAPTURE_INVALID; OUT_OF_MEMORY (shared memory, which a rank
 * allocates when it first sends that many bytes); IN_CALLBACK; on CUDA EXECUTION_FAILED with NCCL's code. A call that
 * fails while the stream captures invalidates the capture, unless nothing was captured yet.
 *
 * Sums of integers wrap. If one rank has a NaN, the maximum and the minimum are NaN on CPU devices. */

/* dst[i] = the reduction of all ranks' src[i], for `count` elements; on all ranks. src and dst may be the same. */
RONDO_API RONDO_MUST_USE rondo_status rondo_all_reduce(rondo_communicator *communicator, rondo_stream *stream,
                                                       const void *src, void *dst, size_t count, rondo_type type,
                                                       rondo_reduction reduction);

/* dst[i] = src[i] of the rank `root`. src is ignored on other ranks; on root it may be dst. */
RONDO_API RONDO_MUST_USE rondo_status rondo_broadcast(rondo_communicator *communicator, rondo_stream *stream,
                                                      const void *src, void *dst, size_t count, rondo_type type,
                                                      uint32_t root);

/* dst[r * count + i] = src[i] of rank r: dst has world_size * count elements. src may be dst + rank * count. */
RONDO_API RONDO_MUST_USE rondo_status rondo_all_gather(rondo_communicator *communicator, rondo_stream *stream,
                                                       const void *src, void *dst, size_t count, rondo_type type);

/* dst[i] = the reduction of all ranks' src[rank * count + i]: src has world_size * count elements. dst may be
 * src + rank * count. */
RONDO_API RONDO_MUST_USE rondo_status rondo_reduce_scatter(rondo_communicator *communicator, rondo_stream *stream,
                                                           const void *src, void *dst, size_t count, rondo_type type,
                                                           rondo_reduction reduction);

/* Work that is enqueued after the barrier on this rank starts after the work that was enqueued before it on every rank
 * is done. */
RONDO_API RONDO_MUST_USE rondo_status rondo_barrier(rondo_communicator *communicator, rondo_stream *stream);

RONDO_EXTERN_C_END

#endif
