/* SPDX-License-Identifier: MIT
 * Collectives: operations in which several devices take part, each with its own data: all-reduce, broadcast,
 * all-gather, reduce-scatter, all-to-all, send and receive, barrier (RC-7, TR-16, MM-1 to MM-3).
 *
 *   TRY(rondo_all_reduce(communicator, stream, gradients, gradients, count, RONDO_F32, RONDO_REDUCE_SUM));
 *
 * A communicator is one rank of a group: ranks 0 to world_size - 1, each with a device. What connects the ranks depends
 * on where they are:
 *
 *   ranks of one process                  rondo_communicator_create_all
 *   processes, on CPU devices             rondo_communicator_from_mpi (<rondo/mpi.h>): MPI moves the data
 *   processes, on CUDA, started by MPI    rondo_communicator_from_mpi: NCCL moves the data
 *   processes, on CUDA, by torchrun or Slurm   rondo_communicator_from_environment
 *   processes, on CUDA, any other launcher     rondo_communicator_make_id and rondo_communicator_from_id
 *
 * Enqueueing. A collective is enqueued on a stream like a kernel, and the call returns at once. If the stream captures,
 * the collective is captured: each device records its own part, and the replays of all ranks meet as the calls would
 * (TR-16). Work that is enqueued later on the stream starts when the collective is done on this rank. While a
 * collective waits for the other ranks it blocks only its stream, and no thread of the device (with an engine that
 * needs polling, such as MPI, a worker without other work polls for a moment first). So one thread may drive all ranks
 * of a process, even on one processor. It should switch to the next rank after some dozens of collectives, because a
 * call waits while its stream's queue is full. (On a synchronous device, RONDO_SYNC=1, each rank needs its own thread.)
 *
 * Order. All ranks call the same collectives in the same order, with the same counts, types and reductions. The
 * collectives of one communicator execute one after the other on each rank: on one stream, or on streams that events
 * order. Use two communicators for collectives that execute at the same time. CPU devices detect calls that differ, and
 * fail on all ranks with both descriptions. Collectives of one communicator that overlap are detected: in a graph by
 * verification, as a race on the communicator; otherwise when they run.
 *
 * Results have the same bits on all ranks and in every run with the same number of ranks. (With MPI, the sign of a zero
 * maximum or minimum and the bits of a NaN may differ.) In one process, values are
 * combined in the order of the ranks, ((r0 + r1) + r2) + ..., in their own type (F16 and BF16: in F32, rounded after
 * each step). MPI and NCCL choose an order for the group, which does not depend on timing.
 *
 * Buffers are in the memory of the communicator's device (on CPU devices also in host memory), aligned to the element.
 * Source and destination may be the same where the comment says so; otherwise they must not overlap.
 *
 * Errors. A rank fails if it waits longer than the timeout, if another rank has ended, has left (in one process) or
 * has failed, or if the calls differ.
 * The next synchronization of its stream then returns EXECUTION_FAILED with TIMED_OUT, PEER_LOST, MISMATCH or OVERLAP,
 * and names the rank, the operation and the other rank. The contents of the destination are undefined. The communicator
 * has then failed permanently, and the other ranks are notified. Later calls return INVALID_STATE with the first
 * failure; later launches of execs fail on their streams. Destroy the communicator and create another group.
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

#define RONDO_MAX_RANKS 65536

typedef struct rondo_communicator_options {
  uint32_t struct_size;     /* RONDO_COMMUNICATOR_OPTIONS_INIT sets it; 0 means the library's own */
  uint32_t join_timeout_ms; /* how long to wait for all ranks to join; 0 = 60 seconds. NCCL has its own timeouts */
  uint32_t timeout_ms;      /* CPU: how long a collective waits for the other ranks; 0 = 10 minutes */
  uint32_t reserved;        /* 0 */
  const char *name;         /* for messages; copied; may be NULL */
} rondo_communicator_options;
#define RONDO_COMMUNICATOR_OPTIONS_INIT .struct_size = sizeof(rondo_communicator_options)

/* Creates a whole group in one process, from one thread: rank i on devices[i], in out_communicators[i]. All devices are
 * of one kind; a CPU device may have several ranks, a GPU only one. Creates all or none. options may be NULL. The
 * caller destroys each communicator before it closes its device. Errors: INVALID_ARGUMENT with NULL_ARGUMENT,
 * OUT_OF_RANGE (count is 0 or above RONDO_MAX_RANKS), BAD_OPTIONS, MISMATCH (another kind of device; the same GPU
 * twice); UNAVAILABLE/NO_DRIVER (no NCCL: the names that were tried); UNSUPPORTED (the device has no collectives);
 * OUT_OF_MEMORY; LIMIT_EXCEEDED (threads); EXECUTION_FAILED with NCCL's code. Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_communicator_create_all(rondo_device *const *devices, uint32_t count,
                                                                    const rondo_communicator_options *options,
                                                                    rondo_communicator **out_communicators);

/* NCCL's id of a group that does not exist yet. One rank makes it and passes it to all, by whatever connects them. */
#define RONDO_COMMUNICATOR_ID_BYTES 128
typedef struct rondo_communicator_id {
  unsigned char bytes[RONDO_COMMUNICATOR_ID_BYTES];
} rondo_communicator_id;

/* CUDA. The process must live until all ranks have joined, because NCCL listens in it. This call and
 * rondo_communicator_from_id ignore NCCL_COMM_ID. Errors: INVALID_ARGUMENT;
 * UNSUPPORTED/OTHER_DEVICE (a CPU device: use MPI); UNAVAILABLE/NO_DRIVER (no NCCL); EXECUTION_FAILED with NCCL's code.
 * Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_communicator_make_id(rondo_device *device, rondo_communicator_id *out_id);

/* CUDA. Joins the group of that id as one rank, and waits until all ranks have joined. options may be NULL. Errors as
 * rondo_communicator_create_all, and OUT_OF_RANGE (rank is not below world_size). Thread-safe; waits. */
RONDO_API RONDO_MUST_USE rondo_status rondo_communicator_from_id(rondo_device *device, const rondo_communicator_id *id,
                                                                 uint32_t rank, uint32_t world_size,
                                                                 const rondo_communicator_options *options,
                                                                 rondo_communicator **out_communicator);

/* CUDA, with NCCL 2.13 or newer. Joins the group that a launcher describes in the environment, and waits until all
 * ranks have joined. Each process is one rank:
 *
 *   rank and size   RANK and WORLD_SIZE (torchrun), else SLURM_PROCID and SLURM_NTASKS
 *   address         NCCL_COMM_ID, "host:port"; else MASTER_ADDR and MASTER_PORT; else, with Slurm, the first host of
 *                   the step (SLURM_STEP_NODELIST, else SLURM_JOB_NODELIST) and a port that depends on the job
 *
 * A rank without a size, or a size without a rank, counts as neither. MASTER_ADDR and MASTER_PORT are needed both.
 *
 * At the address, NCCL of rank 0 listens while ranks join; Rondo opens no port. torchrun has its own server at
 * MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE is True), so then NCCL uses the port above it. All ranks call it, in the
 * same order if they make several communicators. options may be NULL. Errors as rondo_communicator_from_id, and
 * UNSUPPORTED (an older NCCL); UNAVAILABLE/UNKNOWN_NAME (a variable is missing: the message names those that are
 * looked for); INVALID_DATA/MALFORMED (a variable has another form; rank is not below the size). Thread-safe, but it
 * reads and sets the environment variable NCCL_COMM_ID; waits. */
RONDO_API RONDO_MUST_USE rondo_status rondo_communicator_from_environment(rondo_device *device,
                                                                          const rondo_communicator_options *options,
                                                                          rondo_communicator **out_communicator);

/* Divides the group: the ranks that pass the same color form a new group, ordered by key and then by their old rank.
 * All ranks call it, and it waits for them, so ranks of one process need a thread each (a single thread calls
 * rondo_communicator_create_all with the devices of the subgroup instead). The new communicator has the options of the
 * old one and its own collectives, which may run at the same time. A stream may capture meanwhile. Errors:
 * INVALID_ARGUMENT (on CUDA OUT_OF_RANGE: a color above INT32_MAX), INVALID_STATE (the communicator has failed;
 * CONCURRENT_USE), UNAVAILABLE (TIMED_OUT: a rank did not call it; PEER_LOST: a rank has left), UNSUPPORTED (the engine
 * cannot; NCCL is older than 2.18), OUT_OF_MEMORY, LIMIT_EXCEEDED, EXECUTION_FAILED with the library's code.
 * Thread-compatible; waits. */
RONDO_API RONDO_MUST_USE rondo_status rondo_communicator_split(rondo_communicator *communicator, uint32_t color,
                                                               uint32_t key, rondo_communicator **out_communicator);

/* Waits for the collectives that were enqueued eagerly, then leaves the group. Ranks of the same
 * process that still wait for this one fail with PEER_LOST; with MPI they wait until the timeout. Graphs that captured
 * its collectives, their clones and their execs keep what they need of it. They continue to work as long as those of
 * the other ranks do: the engine, or NCCL's communicator, is released with the last of them, in any order. NULL is
 * fine. Errors: IN_CALLBACK; on CUDA EXECUTION_FAILED with NCCL's code, after which the communicator is gone too. No
 * thread may use the communicator during the call. */
RONDO_API RONDO_MUST_USE rondo_status rondo_communicator_destroy(rondo_communicator *communicator);

/* Makes the communicator fail, as if the timeout had passed: work that waits for other ranks ends with
 * EXECUTION_FAILED/ABORTED, and the other ranks are notified. On CUDA, NCCL's work on the device ends with undefined
 * results, and graphs that captured some of it must not be launched again. Any thread may call it, even while another
 * thread waits for a stream. Errors: INVALID_ARGUMENT, IN_CALLBACK; on CUDA EXECUTION_FAILED with NCCL's code. */
RONDO_API RONDO_MUST_USE rondo_status rondo_communicator_abort(rondo_communicator *communicator);

typedef struct rondo_communicator_info {
  uint32_t struct_size;
  uint32_t rank, world_size;
  bool failed;          /* permanently; the next call returns the reason */
  uint64_t collectives; /* that this rank enqueued or captured */
  uint64_t completed;   /* CPU: collectives that are done on this rank, including those of replays */
  const char *engine;   /* "process", "MPI" or "NCCL"; valid as long as the communicator */
} rondo_communicator_info;

/* Errors: INVALID_ARGUMENT. Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_communicator_get_info(const rondo_communicator *communicator,
                                                                  rondo_communicator_info *out_info);

/* AVERAGE is the sum, divided by the number of ranks; for floating-point types only. */
typedef enum rondo_reduction {
  RONDO_REDUCE_SUM = 1,
  RONDO_REDUCE_MAX = 2,
  RONDO_REDUCE_MIN = 3,
  RONDO_REDUCE_AVERAGE = 4
} rondo_reduction;

/* "sum", "max", "min", "average"; "unknown" for another number. Thread-safe. */
RONDO_API const char *rondo_reduction_name(rondo_reduction reduction);

/* The collectives. A communicator is thread-compatible, and the stream is of its device. Errors of all:
 * INVALID_ARGUMENT with NULL_ARGUMENT, BAD_SIZE (count is 0, or the bytes of all ranks do not fit the address space, or
 * a buffer is not aligned to its element), TYPE (not a type, or not a reduction, or an average of integers),
 * OUT_OF_RANGE (buffers overlap although they must not; root, to or from is not a rank), OTHER_DEVICE; LIMIT_EXCEEDED
 * (MPI: more than INT_MAX elements); UNSUPPORTED (the engine cannot; NCCL older than 2.7 cannot send and receive, and
 * older than 2.10 it has neither averages nor BF16); INVALID_STATE (the communicator has failed; CONCURRENT_USE:
 * another thread calls a collective of it); CAPTURE_INVALID; OUT_OF_MEMORY; IN_CALLBACK; on CUDA EXECUTION_FAILED with
 * NCCL's code. A call that fails while the stream captures invalidates the capture, unless nothing was captured yet.
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

/* dst[r * count + i] = src[rank * count + i] of rank r: each rank sends another part to each rank. src and dst have
 * world_size * count elements and must not overlap. */
RONDO_API RONDO_MUST_USE rondo_status rondo_all_to_all(rondo_communicator *communicator, rondo_stream *stream,
                                                       const void *src, void *dst, size_t count, rondo_type type);

/* Sends `count` elements to the rank `to`, which must receive as many of that type; receives from the rank `from`. Only
 * the two ranks call it. A send may wait until it is received, so two ranks that both send first wait for each other:
 * exchange with rondo_send_receive, which does both at once. `to` and `from` may be different ranks (as in a ring), or
 * the rank itself if both are. src and dst must not overlap. */
RONDO_API RONDO_MUST_USE rondo_status rondo_send(rondo_communicator *communicator, rondo_stream *stream,
                                                 const void *src, size_t count, rondo_type type, uint32_t to);
RONDO_API RONDO_MUST_USE rondo_status rondo_receive(rondo_communicator *communicator, rondo_stream *stream, void *dst,
                                                    size_t count, rondo_type type, uint32_t from);
RONDO_API RONDO_MUST_USE rondo_status rondo_send_receive(rondo_communicator *communicator, rondo_stream *stream,
                                                         const void *src, uint32_t to, void *dst, uint32_t from,
                                                         size_t count, rondo_type type);

/* Work that is enqueued after the barrier on this rank starts after the work that was enqueued before it on every rank
 * is done. */
RONDO_API RONDO_MUST_USE rondo_status rondo_barrier(rondo_communicator *communicator, rondo_stream *stream);

RONDO_EXTERN_C_END

#endif
