/* SPDX-License-Identifier: MIT
 * Collectives: operations that several devices take part in, each with data of its own: all-reduce, broadcast,
 * all-gather, reduce-scatter, barrier. One process a device, or several devices in one process (RC-7, TR-16).
 *
 *   // in each process, with its own rank; the rendezvous is the same in all
 *   TRY(rondo_communicator_create(device, rendezvous, rank, world_size, NULL, &communicator));
 *   TRY(rondo_all_reduce(communicator, stream, gradients, gradients, count, RONDO_F32, RONDO_REDUCE_SUM));
 *   TRY(rondo_communicator_destroy(communicator));
 *
 * A communicator is one rank of a group: ranks 0 to world_size - 1, each with a device, all on one machine. Ranks find
 * each other at a rendezvous: the name of a file that all of them know, from rondo_rendezvous_make or the user's own.
 * The file is gone as soon as all have come.
 *
 * Queueing. A collective is queued on a stream like a kernel, returns at once, and is captured when the stream
 * captures: each device records its own part, and replays of all ranks meet as the calls would (TR-16). What is queued
 * behind it comes after it is done on this rank. While it waits for the other ranks it holds up its stream alone, no
 * thread of the device: one thread may drive all ranks of a process, on one processor. It should turn to the next rank
 * after some dozens of collectives, since a call waits while its stream's queue is full. (On a device that waits after
 * every operation, RONDO_SYNC=1, each rank needs a thread of its own.)
 *
 * Order. All ranks call the same collectives in the same order, with the same counts, types and reductions; the
 * collectives of one communicator come one after another on each rank (one stream, or streams ordered by events). Use
 * two communicators for what runs at once. Calls that differ are found on CPU devices, and fail on all ranks with both
 * descriptions. Collectives of one communicator that overlap are found: in a graph by verification, as a race at the
 * communicator, else when they run.
 *
 * Results are the same bits on all ranks and in every run: on CPU devices values are combined in the order of ranks,
 * ((r0 + r1) + r2) + ..., in their own type; on CUDA in the order that NCCL chooses for the group, whatever the timing.
 *
 * Buffers are memory of the communicator's device (host memory too, on CPU devices), aligned to the element. Source and
 * destination may be the same where the comment says so, else they must not overlap.
 *
 * Errors. A rank that waits longer than the timeout, whose peer has ended or left, or differs, fails: its stream's next
 * synchronisation returns EXECUTION_FAILED with TIMED_OUT, PEER_LOST, MISMATCH or OVERLAP, naming rank, operation and
 * the other rank; what the destination holds is not defined; the communicator has failed for good and the other ranks
 * are told. Later calls return INVALID_STATE with the first failure, later launches of execs fail on their streams.
 * Destroy it and make another group. (A rank lives as long as its process, or a child that was forked from it and runs
 * no other program.)
 *
 * On CPU devices data goes through memory that the processes share, piece by piece (rondo_communicator_options).
 *
 * On CUDA the work is NCCL's, which is loaded by name (RONDO_NCCL_LIBRARY, else libnccl.so.2) and given the stream's
 * native handle: captured, its kernels are nodes of the graph like any foreign work (<rondo/capture.h>), so its buffers
 * are allocated before the capture. Each rank is driven by a thread of its own, or a process. A rank that ends, calls
 * that differ and collectives that overlap are not found: NCCL's kernels wait, until rondo_communicator_abort.
 * NCCL connects ranks when it first needs an algorithm: the first call of an operation, and of a size that it does in
 * another way, waits for the same call of all ranks, captured or not. So ranks must be able to capture at the same
 * time. (NCCL_RUNTIME_CONNECT=0 in the environment makes NCCL connect while the group is made.)
 */
#ifndef RONDO_COLLECTIVE_H
#define RONDO_COLLECTIVE_H

#include <rondo/stream.h>
#include <rondo/type.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_communicator rondo_communicator;

/* A new rendezvous, as a text with its end: a name in the machine's shared memory (/dev/shm, else /tmp) that nobody
 * else has. Hand it to all ranks: by fork, an argument, an environment variable, a pipe. Nothing is made yet.
 * Thread-safe. Errors: INVALID_ARGUMENT, IO_ERROR (the system gives no random numbers). */
#define RONDO_RENDEZVOUS_BYTES 64
RONDO_API RONDO_MUST_USE rondo_status rondo_rendezvous_make(char out_rendezvous[RONDO_RENDEZVOUS_BYTES]);

#define RONDO_MOST_RANKS 256

typedef struct rondo_communicator_options {
  uint32_t struct_size;     /* RONDO_COMMUNICATOR_OPTIONS_INIT sets it; 0 means the library's own */
  uint32_t join_timeout_ms; /* how long to wait for all ranks to come; 0 = 60 seconds */
  uint32_t timeout_ms;      /* CPU: how long a collective waits for the other ranks; 0 = 10 minutes */
  uint32_t piece_bytes;     /* CPU: larger collectives are cut into pieces of this size, a multiple of 4096, the same on
                               all ranks; a rank holds at most two. 0 = 4 MiB; at most 1 GiB */
  const char *name;         /* for messages; copied; may be NULL */
} rondo_communicator_options;
#define RONDO_COMMUNICATOR_OPTIONS_INIT .struct_size = sizeof(rondo_communicator_options)

/* Joins a group as one rank and waits until all ranks have. `rendezvous` is the same in all, at most 255 bytes: a file
 * that does not exist, or an empty one, in a folder that all can write, on a file system of this machine (tmpfs is the
 * quickest); it is removed when all have come, and by the last one that gives up. What ranks that ended before leave
 * there is taken over. options may be NULL. The caller destroys the communicator, before the device.
 * Errors: INVALID_ARGUMENT with NULL_ARGUMENT, OUT_OF_RANGE (world_size is 0 or above RONDO_MOST_RANKS, rank is not
 * below it), BAD_OPTIONS (piece_bytes), RANK_TAKEN (the rank has come already), MISMATCH (the ranks that have come say
 * another world_size or piece_bytes, or another kind of device);
 * UNAVAILABLE with TIMED_OUT (naming the ranks that did not come) or NO_DRIVER (no NCCL: the names that were tried);
 * INVALID_DATA (the file is something else); IO_ERROR; UNSUPPORTED (the device has no collectives); OUT_OF_MEMORY;
 * LIMIT_EXCEEDED (threads); EXECUTION_FAILED with NCCL's code. Thread-safe; waits. */
RONDO_API RONDO_MUST_USE rondo_status rondo_communicator_create(rondo_device *device, const char *rendezvous,
                                                                uint32_t rank, uint32_t world_size,
                                                                const rondo_communicator_options *options,
                                                                rondo_communicator **out_communicator);

/* A whole group in one process, from one thread: rank i on devices[i], into out_communicators[i]. All devices are of
 * one kind; on a CPU device several ranks may be on one device. All or none. Errors as rondo_communicator_create. */
RONDO_API RONDO_MUST_USE rondo_status rondo_communicator_create_all(rondo_device *const *devices, uint32_t count,
                                                                    const rondo_communicator_options *options,
                                                                    rondo_communicator **out_communicators);

/* Waits for the collectives that were queued un-recorded, then leaves the group; ranks that still wait for this one
 * fail with PEER_LOST. Graphs that captured its collectives, their clones and their execs keep what they need of it,
 * and go on working as long as the other ranks' do: the shared memory, or NCCL's communicator, is released with the
 * last of them, in any order. NULL is fine. Errors: IN_CALLBACK; on CUDA EXECUTION_FAILED with NCCL's code; the
 * communicator is gone all the same. Not while a thread uses it. */
RONDO_API RONDO_MUST_USE rondo_status rondo_communicator_destroy(rondo_communicator *communicator);

/* Makes the communicator fail, as if a timeout had passed: what waits for other ranks ends with
 * EXECUTION_FAILED/ABORTED, and the other ranks are told. On CUDA the work that NCCL has on the device ends, with
 * undefined results, and graphs that captured some must not be launched again. Any thread may call it, also while
 * another one waits for a stream. Errors: INVALID_ARGUMENT, IN_CALLBACK; on CUDA EXECUTION_FAILED with NCCL's code. */
RONDO_API RONDO_MUST_USE rondo_status rondo_communicator_abort(rondo_communicator *communicator);

typedef struct rondo_communicator_info {
  uint32_t struct_size;
  uint32_t rank, world_size;
  bool failed;           /* for good; the next call says why */
  uint64_t collectives;  /* queued or captured by this rank */
  uint64_t pieces;       /* CPU: pieces that met the other ranks', replays counted */
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
 * a buffer is not aligned to its element), TYPE (no type, or no reduction), OUT_OF_RANGE (buffers overlap as they must
 * not; root is no rank), OTHER_DEVICE; UNSUPPORTED/TYPE (reductions of F16 and BF16 on CPU devices); INVALID_STATE (the
 * communicator has failed); CAPTURE_INVALID; OUT_OF_MEMORY (shared memory, which is had when a rank first sends so
 * much); IN_CALLBACK; on CUDA EXECUTION_FAILED with NCCL's code. One that fails while the stream captures makes the
 * capture invalid, unless nothing was captured yet.
 *
 * Sums of integers wrap. Where one rank has a NaN, maximum and minimum are NaN on CPU devices. */

/* dst[i] = the reduction of all ranks' src[i], for `count` elements; on all ranks. src and dst may be the same. */
RONDO_API RONDO_MUST_USE rondo_status rondo_all_reduce(rondo_communicator *communicator, rondo_stream *stream,
                                                       const void *src, void *dst, size_t count, rondo_type type,
                                                       rondo_reduction reduction);

/* dst[i] = src[i] of the rank `root`. src is not looked at on other ranks; on root it may be dst. */
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

/* What is queued behind it on this rank comes after what was queued in front of it on every rank. */
RONDO_API RONDO_MUST_USE rondo_status rondo_barrier(rondo_communicator *communicator, rondo_stream *stream);

RONDO_EXTERN_C_END

#endif
