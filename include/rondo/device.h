/* SPDX-License-Identifier: MIT
 * Devices. `cpu` always exists. Further CPU devices are `cpu:1`, `cpu:2`, ... (`cpu` is `cpu:0`). They use the same
 * processors but separate memory, so that programs for several devices run on any machine.
 *
 * `cpu:check` (and `cpu:check:N`) is a CPU device that finds mistakes in how memory is used:
 * - Each allocation has its own pages between guard pages. They can be accessed only during the allocation's lifetime:
 *   from the alloc node, or from the position of rondo_malloc_async in its stream, to the free. The allocation ends at
 *   the end of a page, as far as its alignment of 256 bytes allows; the bytes around it are watched for changes.
 *   Addresses are not reused soon. Fresh memory is filled with the 32-bit word 0x7ffcdead, a NaN as a float and as a
 *   double (for allocations over 128 MiB only the first and last 64 MiB).
 * - A kernel, copy, fill or host function that accesses other memory continues with substitute memory. The next
 *   synchronization of its stream fails with EXECUTION_FAILED and names the node, the allocation and the offset:
 *   USE_AFTER_FREE, NOT_ALLOCATED (not allocated yet), OUT_OF_RANGE, FOREIGN_ADDRESS. The device and the process
 *   continue. The device ignores accesses outside of its work.
 * - Each launch of an exec runs in several of the orders that its edges allow, node by node, from the same memory
 *   (check_orders). If results differ, EXECUTION_FAILED/RACE names the two nodes whose order matters. A kernel must
 *   therefore have no effect except writing memory of the device, or host memory from rondo_host_malloc; with
 *   check_orders = 1 it runs once. Graphs with host functions or external waits, or with kernels that declare writes of
 *   other memory, always run once. If kernels receive pointers as scalars, all live memory of the device is compared,
 *   and nothing else should use it during the launch. Work of other streams waits meanwhile.
 * Results are the same as on `cpu`. More memory is held, and graph memory never reuses addresses
 * (rondo_device_info.guarded). Handlers of SIGSEGV and SIGBUS detect the faults; they are installed while such a device
 * is open. Faults that do not concern the device go to the previous handler. Outside of the device's work, the system
 * calls the previous handler with its own flags and mask, and it may leave by siglongjmp. Inside the device's work,
 * Rondo's handler calls it, on the same stack. After that, or if a handler is installed later, that handler comes first
 * until the device runs its next work. Threads that run work get an alternate signal stack if they have none.
 * AddressSanitizer must allow this: handle_segv=1:handle_sigbus=1 in ASAN_OPTIONS.
 *
 * `cuda:N` is GPU N of the CUDA driver, 12.4 (550) or newer. The driver is loaded by name when a CUDA device is first
 * opened: RONDO_CUDA_LIBRARY, else libcuda.so.1. Without a driver or a GPU, opening fails with UNAVAILABLE and the
 * reason. NVRTC compiles kernels that are given as CUDA source. It is loaded in the same way (RONDO_NVRTC_LIBRARY, else
 * libnvrtc.so.13 or .12). A device works in its GPU's primary context, which it shares with the CUDA runtime and other
 * libraries of the process; the caller's current context does not change. Host functions run on threads of the device
 * and do not delay each other. A fault in a kernel loses the device: every later call on it returns DEVICE_LOST with
 * the driver's code and, for each stream, the last graph that was launched after the last wait for the stream or the
 * device. Other devices continue. A synchronous device runs graphs node by node and then names the node.
 *
 * A device is thread-safe. It must outlive all objects that were created from it.
 *
 * Fork. A device belongs to the process that opened it. A child that this process forks has neither the device's
 * threads nor its memory: reading or writing that memory may raise SIGSEGV there.
 * - In the child, the device and all objects that were created from it before the fork cannot be used. Calls that
 *   create objects (graphs and their nodes, trees, sessions and all others), enqueue, wait, capture, allocate,
 *   instantiate or update fail with INVALID_STATE/OTHER_PROCESS and change nothing.
 * - Destroying, closing and freeing (rondo_free_async too) does nothing in the child, and returns OK if the call
 *   returns a status. The child keeps its copy of the host memory until it ends or calls exec.
 * - The child may call exec, and may open CPU devices of its own, before or after. For a GPU, fork before the first
 *   CUDA device is opened: the CUDA driver does not work in a child of a process that has used it.
 * - If another thread was inside a call of Rondo at the time of the fork, the child may only call exec or end: a lock
 *   which that thread held stays locked.
 * In the parent, a fork changes nothing. This holds for fork(), not for system calls that bypass the handlers of
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
  uint32_t workers;     /* CPU: worker threads; 0 = RONDO_CPU_WORKERS, else one less than there are processors, at least
                           1. A thread that waits for the device also executes work */
  bool synchronous;     /* wait after every operation, for debugging: the call that caused an error returns it (GX-9).
                           RONDO_SYNC=1 does the same */
  const rondo_allocator
      *allocator;              /* host memory for the device and all objects created from it; NULL = the C library */
  uint64_t memory_limit_bytes; /* CPU: maximum physical memory that the device takes from the system; 0 =
                                  RONDO_CPU_MEMORY_LIMIT, else what the machine has. Does not count rondo_host_malloc */
  bool no_memory_nodes;        /* CPU: a device without alloc and free nodes, to test programs (GM-1);
                                  RONDO_CPU_LACKS=memory_nodes does the same */
  bool no_memory_pools;        /* CPU: a device without stream-ordered memory, hence also without alloc and free
                                  nodes; RONDO_CPU_LACKS=memory_pools does the same */
  uint32_t check_orders; /* cpu:check: number of orders in which each launch runs, the first being the graph's own; 0 =
                            RONDO_CHECK_ORDERS, else 2; 1 = run once */
  uint32_t reserved;
  uint64_t check_seed; /* cpu:check: seed for choosing the orders; 0 = RONDO_CHECK_SEED, else 1 */
} rondo_device_options;
#define RONDO_DEVICE_OPTIONS_INIT .struct_size = sizeof(rondo_device_options)

/* Opens a device by name: "cpu", "cpu:N" (N up to 15), "cpu:check", "cpu:check:N", "cuda" (which is "cuda:0"),
 * "cuda:N". Opening the same name twice gives two independent devices. options may be NULL. Errors: INVALID_ARGUMENT,
 * NOT_FOUND/UNKNOWN_DEVICE (the message lists the existing names), UNAVAILABLE (the driver cannot be loaded or used;
 * the message says why), OUT_OF_MEMORY, LIMIT_EXCEEDED (threads, or 64 checking devices). */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_open(const char *name, const rondo_device_options *options,
                                                        rondo_device **out_device);

/* Waits for all work of the device and closes it. NULL is fine. Errors: INVALID_STATE/STILL_IN_USE if sessions,
 * compiled programs, trees, streams, events, kernels, graphs, execs, recordings, pools, generators, allocations or
 * communicators of the device still exist, or graphs or execs of other devices that have nodes of it, or streams of
 * other devices that wait for its events. Launches of destroyed execs are waited for. The message counts them,
 * including those that belong to other objects; nothing is closed then. EXECUTION_FAILED and other errors of a
 * synchronization: the device is closed nevertheless. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_close(rondo_device *device);

/* What a device is and can do. */
typedef struct rondo_device_info {
  uint32_t struct_size;  /* set by the caller, or 0; the library writes no more than this */
  uint32_t index;        /* N of "cpu:N", "cuda:N" */
  char name[32];         /* "cpu:0" */
  char description[96];  /* the processor's or GPU's own name */
  uint32_t workers;      /* CPU: worker threads */
  uint32_t processors;   /* CPU: processors; CUDA: multiprocessors */
  uint64_t memory_bytes; /* physical memory that the device can use; larger requests fail */
  uint64_t page_bytes;   /* granularity of its memory */
  bool graph_memory;     /* has alloc and free nodes (GM-1); only if memory_pools is set too */
  bool memory_pools;     /* has stream-ordered allocation and pools; without it such calls return UNSUPPORTED */
  bool guarded;          /* cpu:check: each allocation has its own pages, and graph memory shares no addresses */
  bool cuda;             /* CUDA: kernels are compiled from CUDA source, and blocks have threads */
  uint8_t uuid[16];      /* CUDA: identifies the GPU, as in `nvidia-smi -L`; otherwise zeros */
} rondo_device_info;

/* What the device is and can do. Thread-safe. Errors: INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_get_info(const rondo_device *device, rondo_device_info *out_info);

/* Lists the names that can be opened, one for each index; "cpu" is first. Past the last: NOT_FOUND. If a device has a
 * name but cannot be opened (CUDA without a GPU), *out_unavailable gives the reason in one line and the status is OK;
 * otherwise it is "". The strings are static, or belong to the thread until its next call. Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_enumerate(size_t index, const char **out_name,
                                                             const char **out_unavailable);

/* Devices of one kind can be given access to each other's memory (GM-17). rondo_pool_set_access,
 * rondo_memory_set_access and rondo_alloc_node.peers take a set of devices whose work gets access. This returns the
 * device's bit in such sets, 1 << N for "cpu:N" and "cuda:N"; 0 for NULL. Thread-safe. */
RONDO_API uint64_t rondo_device_peer_bit(const rondo_device *device);

/* Whether work of `device` can be given access to memory of `peer`. True for a device and itself. Thread-safe. Errors:
 * INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_can_access_peer(const rondo_device *device, const rondo_device *peer,
                                                                   bool *out_can);

/* Waits until all work that was enqueued on the device so far is done. Errors: CAPTURE_REFUSED/UNSUPPORTED_CALL while a
 * stream of the device captures, or while another capture forbids immediate calls (<rondo/capture.h>); these captures
 * are invalidated. Also returns the asynchronous failure of one of the device's streams. Other failed streams keep
 * their failure for their own next synchronization, or for the device's. Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_synchronize(rondo_device *device);

/* Counters since the device was opened. They only grow unless said otherwise. Tests and benchmarks rely on them. */
typedef struct rondo_device_statistics {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t kernels;        /* kernels executed, in streams and graphs; disabled kernels do not count */
  uint64_t launches;       /* execs launched */
  uint64_t events_created; /* new events; the others were reused from the free list (GX-9) */
  uint64_t events_reused;
  uint64_t parks;            /* times a worker went to sleep */
  uint64_t wakes;            /* times a sleeping worker was woken */
  uint64_t host_allocations; /* calls of the allocator */
  uint64_t mapped_bytes;     /* now: physical memory mapped */
  uint64_t maps;             /* map calls */
  uint64_t orders;           /* cpu:check: runs of execs in the orders that were compared */
  uint64_t findings;         /* cpu:check: errors found */
  uint64_t rebuilds; /* CUDA: execs that an update built again, because the driver cannot change them in place */
  uint64_t kernels_compiled; /* CUDA: sources that NVRTC compiled */
  uint64_t kernels_cached;   /* CUDA: sources whose code was found on disk (RONDO_CUDA_CACHE) */
  uint64_t cache_evictions;  /* CUDA: files removed from that cache to stay within RONDO_CUDA_CACHE_BYTES */
} rondo_device_statistics;

/* Reads the counters. Work in flight may change them during the call. Thread-safe. Errors: INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_get_statistics(const rondo_device *device,
                                                                  rondo_device_statistics *out_statistics);

RONDO_EXTERN_C_END

#endif
