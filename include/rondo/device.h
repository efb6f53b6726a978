/* SPDX-License-Identifier: MIT
 * Devices. `cpu` is always there; further CPU devices are `cpu:1`, `cpu:2`, ... (`cpu` is `cpu:0`): the same
 * processors, but memory of their own, so that programs for several devices run anywhere.
 *
 * `cpu:check` (and `cpu:check:N`) is a CPU device that finds mistakes in how memory is used:
 * - Each allocation has pages of its own between guard pages, which can be accessed during its lifetime only: from the
 *   alloc node, or the place of rondo_malloc_async in its stream, to the free. It ends where a page ends, so far as
 *   its alignment of 256 bytes allows; what is left around it is watched for changes. Addresses are not given out again
 *   soon. Fresh memory holds the 32-bit word 0x7ffcdead over and over, a NaN as a float and as a double (of
 *   allocations over 128 MiB the first and last 64 MiB do).
 * - A kernel, copy, fill or host function that accesses memory otherwise goes on with other memory in its place; its
 *   stream's next synchronisation fails with EXECUTION_FAILED, naming node, allocation and offset: USE_AFTER_FREE,
 *   NOT_ALLOCATED (not reached yet), OUT_OF_RANGE, FOREIGN_ADDRESS. Device and process live on. Accesses outside of
 *   the device's work are no business of the device.
 * - Each launch of an exec is run in several of the orders that its edges allow, node by node, from the same memory
 *   (check_orders). When results differ, EXECUTION_FAILED/RACE names the two nodes whose order matters. A kernel must
 *   therefore do nothing but write memory of the device, or host memory from rondo_host_malloc: with check_orders = 1
 *   it is run once. Graphs with host functions or external waits, or with kernels that declare writes of other memory,
 *   are run once anyway. Kernels that are given pointers as scalars make all live memory of the device part of the
 *   comparison: nothing else should use it during such a launch. Other streams' work waits meanwhile.
 * Programs see the same results as on `cpu`, more memory held, and addresses of graph memory that are not given out
 * twice (rondo_device_info.guarded). Faults are seen by handlers of SIGSEGV and SIGBUS, which are installed while such
 * a device is open. What is not theirs goes to the handler that was there before: outside of the device's work, the
 * system calls that one with its flags and its mask, and it may leave by siglongjmp; inside, this handler calls it, on
 * the same stack. From then on, and when a handler is installed later, that one stands in front until the device runs
 * its next work. Threads that run work get an alternate signal stack if they have none. AddressSanitizer must allow
 * that: handle_segv=1:handle_sigbus=1 in ASAN_OPTIONS.
 *
 * `cuda:N` is GPU N of the CUDA driver, 12.4 (550) or newer, which is loaded by name when a device is first asked for:
 * RONDO_CUDA_LIBRARY, else libcuda.so.1. Without it, or without a GPU, opening fails with UNAVAILABLE and the reason.
 * Kernels that are given as CUDA source are compiled by NVRTC, loaded likewise (RONDO_NVRTC_LIBRARY, else
 * libnvrtc.so.13 or .12). A device works in its GPU's primary context, which it shares with the CUDA runtime and other
 * libraries of the process; the caller's current context stays what it is. Host functions run on threads of the device
 * and do not hold each other up. A fault in a kernel loses the device: every later call on it returns DEVICE_LOST with
 * the driver's code and, of each stream, the graph that was launched last since the stream or the device was waited
 * for, other devices go on; a synchronous device runs graphs node by node and then names the node.
 *
 * A device is thread-safe. It must outlive what was made from it.
 *
 * Fork. A device belongs to the process that opened it. A child that this process forks has neither the device's
 * threads nor its memory: reading or writing that memory may raise SIGSEGV there.
 * - The device, and what was made from it before the fork, is of no use in the child. Calls that make objects (graphs
 *   and their nodes, trees, sessions and all others), enqueue, wait, capture, allocate, instantiate or update fail with
 *   INVALID_STATE/OTHER_PROCESS, and change nothing.
 * - Destroying, closing and freeing, also by rondo_free_async, does nothing in the child, and returns OK where a status
 *   is returned. The child keeps its copy of their host memory until it ends or calls exec.
 * - The child may call exec, and may open CPU devices of its own, before or after. For a GPU, fork before the first
 *   CUDA device is opened: the CUDA driver does not work in a child of a process that has used it.
 * - If another thread was inside a call of Rondo at the time of the fork, the child may only call exec or end: a lock
 *   which that thread held stays locked.
 * In the parent a fork changes nothing. This holds for fork(), not for system calls that pass by the handlers of
 * pthread_atfork. Plans, programs that are not compiled, weights and profiles belong to no device, and can be used in
 * the child.
 */
#ifndef RONDO_DEVICE_H
#define RONDO_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rondo/allocator.h>
#include <rondo/kernel.h>
#include <rondo/status.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_device_options {
  uint32_t struct_size; /* RONDO_DEVICE_OPTIONS_INIT sets it; 0 means the library's own */
  uint32_t workers; /* CPU: worker threads; 0 = RONDO_CPU_WORKERS, else one less than processors, at least 1. A thread
                       that waits for the device works along */
  bool synchronous; /* wait after every operation, for debugging: an error comes out where it arises (GX-9).
                       RONDO_SYNC=1 does the same */
  const rondo_allocator *allocator; /* host memory for this device and all made from it; NULL = the C library's */
  uint64_t memory_limit_bytes;      /* CPU: the most physical memory that the device takes from the system; 0 =
                                       RONDO_CPU_MEMORY_LIMIT, else what the machine has. rondo_host_malloc does not count */
  bool no_memory_nodes;             /* CPU: be a device without alloc and free nodes, for tests of programs (GM-1);
                                       RONDO_CPU_LACKS=memory_nodes does the same */
  bool no_memory_pools;             /* CPU: be one without stream-ordered memory, which also has no such nodes;
                                       RONDO_CPU_LACKS=memory_pools does the same */
  uint32_t check_orders; /* cpu:check: orders that each launch is run in, the first of them as the graph stands; 0 =
                            RONDO_CHECK_ORDERS, else 2; 1 = run it once */
  uint32_t reserved;
  uint64_t check_seed; /* cpu:check: what the orders are drawn from; 0 = RONDO_CHECK_SEED, else 1 */
} rondo_device_options;
#define RONDO_DEVICE_OPTIONS_INIT .struct_size = sizeof(rondo_device_options)

/* Opens a device by name: "cpu", "cpu:N" (N up to 15), "cpu:check", "cpu:check:N", "cuda" (which is "cuda:0"),
 * "cuda:N". Opening the same name twice gives two independent devices. options may be NULL. Errors: INVALID_ARGUMENT,
 * NOT_FOUND/UNKNOWN_DEVICE (the message lists the names there are), UNAVAILABLE (the driver cannot be had; says why),
 * OUT_OF_MEMORY, LIMIT_EXCEEDED (threads, or 64 checking devices). */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_open(const char *name, const rondo_device_options *options,
                                                        rondo_device **out_device);

/* Waits for all work of the device and closes it. NULL is fine. Errors: INVALID_STATE/STILL_IN_USE when sessions,
 * compiled programs, trees, streams, events, kernels, graphs, execs, recordings, pools, generators, allocations or
 * communicators of it live (the message counts them, with those that others of them have): nothing is closed then.
 * EXECUTION_FAILED and what else a synchronisation returns: the device is closed all the same. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_close(rondo_device *device);

/* What a device is and can do. */
typedef struct rondo_device_info {
  uint32_t struct_size;  /* set by the caller or 0; the library fills at most so much */
  uint32_t index;        /* N of "cpu:N", "cuda:N" */
  char name[32];         /* "cpu:0" */
  char description[96];  /* the processor's or GPU's own name */
  uint32_t workers;      /* CPU: worker threads */
  uint32_t processors;   /* CPU: processors; CUDA: multiprocessors */
  uint64_t memory_bytes; /* physical memory the device can use; asking for more fails */
  uint64_t page_bytes;   /* granularity of its memory */
  bool graph_memory;     /* alloc and free nodes (GM-1); only where memory_pools is set too */
  bool memory_pools;     /* stream-ordered allocation and pools; without it such calls return UNSUPPORTED */
  bool guarded;          /* cpu:check: allocations have pages of their own, and graph memory shares no addresses */
  bool cuda;             /* CUDA: kernels run from their CUDA source, and blocks have threads */
} rondo_device_info;

/* What the device is and can do. Thread-safe. Errors: INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_get_info(const rondo_device *device, rondo_device_info *out_info);

/* The names that can be opened now, one call each index: "cpu" first. Past the last: NOT_FOUND. For a driver that is
 * there in name but cannot be had (CUDA without a GPU), *out_unavailable says why in one line and the status is OK;
 * otherwise it is "". The strings are static or the thread's own until the next call. Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_enumerate(size_t index, const char **out_name,
                                                             const char **out_unavailable);

/* Devices of one kind can be let access each other's memory (GM-17): what another device's work may access is said by
 * rondo_pool_set_access, rondo_memory_set_access and rondo_alloc_node.peers. This is the device's bit in such lists,
 * 1 << N for "cpu:N" and "cuda:N"; 0 for NULL. Thread-safe. */
RONDO_API uint64_t rondo_device_peer_bit(const rondo_device *device);

/* Whether work of `device` can be let access memory of `peer`. True for a device and itself. Thread-safe. Errors:
 * INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_can_access_peer(const rondo_device *device, const rondo_device *peer,
                                                                   bool *out_can);

/* Waits until all work queued on the device so far is done. Errors: CAPTURE_REFUSED/UNSUPPORTED_CALL while a stream of
 * the device captures, or another capture forbids what acts at once (<rondo/capture.h>), which become invalid; the
 * asynchronous failure of one of its streams. Other streams keep theirs for their own next synchronisation, or the
 * device's. Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_synchronize(rondo_device *device);

/* Counters since the device was opened; monotonic unless said otherwise. Tests and benches rely on them. */
typedef struct rondo_device_statistics {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t kernels;        /* kernels run, in streams and graphs; disabled ones do not count */
  uint64_t launches;       /* execs launched */
  uint64_t events_created; /* events made anew; the others came from the free list (GX-9) */
  uint64_t events_reused;
  uint64_t parks;            /* times a worker went to sleep */
  uint64_t wakes;            /* times a sleeping worker was woken */
  uint64_t host_allocations; /* calls of the allocator */
  uint64_t mapped_bytes;     /* now: physical memory mapped */
  uint64_t maps;             /* map calls */
  uint64_t orders;           /* cpu:check: runs of execs in one order or another, where they were compared */
  uint64_t findings;         /* cpu:check: mistakes found */
  uint64_t rebuilds;         /* CUDA: execs made anew by an update, because the driver changes no such thing in place */
  uint64_t kernels_compiled; /* CUDA: sources that NVRTC compiled */
  uint64_t kernels_cached;   /* CUDA: sources whose code was found on disk (RONDO_CUDA_CACHE) */
  uint64_t cache_evictions;  /* CUDA: files there that went when more was kept than RONDO_CUDA_CACHE_BYTES */
} rondo_device_statistics;

/* The counters as they are now; those of work in flight may move between two of them. Thread-safe. Errors:
 * INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_get_statistics(const rondo_device *device,
                                                                  rondo_device_statistics *out_statistics);

RONDO_EXTERN_C_END

#endif
