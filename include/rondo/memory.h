/* SPDX-License-Identifier: MIT
 * Device memory: immediate, in stream order, and inside graphs.
 *
 * On a CPU device the host can also read and write the memory; a program that should run on any device must copy. Graph
 * memory: the address of an alloc node is fixed when the node is created. The physical pages come from one heap for
 * each launch stream; all graphs that are launched on the stream share them.
 */
#ifndef RONDO_MEMORY_H
#define RONDO_MEMORY_H

#include <rondo/stream.h>

RONDO_EXTERN_C_BEGIN

/* Allocates memory of the device, aligned to 256 bytes, with undefined contents. Free it with rondo_free. name (may be
 * NULL) is for messages; copied. Thread-safe. Errors: INVALID_ARGUMENT (NULL, 0 bytes), OUT_OF_MEMORY with the sizes;
 * CAPTURE_REFUSED/UNSUPPORTED_CALL if a capture forbids it (C9). */
RONDO_API RONDO_MUST_USE rondo_status rondo_malloc(rondo_device *device, size_t bytes, const char *name,
                                                   void **out_address);

/* Frees memory of any of the three kinds immediately: the caller must have waited for all work that uses it. NULL is
 * fine. Thread-safe. Errors: INVALID_LIFETIME with DOUBLE_FREE (naming the freed allocation, if it was freed recently),
 * NOT_ALLOCATED (graph memory that no launch has allocated), INTERIOR_ADDRESS (naming the allocation and the offset),
 * WRONG_MEMORY (memory of rondo_host_malloc), FOREIGN_ADDRESS; CAPTURE_REFUSED (C9). */
RONDO_API RONDO_MUST_USE rondo_status rondo_free(rondo_device *device, void *address);

/* Pools: where stream-ordered memory comes from. See below. */
typedef struct rondo_pool rondo_pool;

typedef struct rondo_malloc_options {
  uint32_t struct_size;
  uint32_t reserved;
  const char *name; /* for messages and dumps; copied; may be NULL */
  rondo_pool *pool; /* of the stream's device; NULL = the device's current pool */
} rondo_malloc_options;
#define RONDO_MALLOC_OPTIONS_INIT .struct_size = sizeof(rondo_malloc_options)

/* Allocates memory for work that is enqueued on the stream after this call. During a capture it becomes an alloc node
 * with a fixed address (GM-7), whatever the pool. options may be NULL. rondo_pool_attribute says which freed memory is
 * reused (GM-19). Errors: INVALID_ARGUMENT (also OTHER_DEVICE: the pool's), OUT_OF_MEMORY (ADDRESS_SPACE if a graph
 * needs more addresses than the process has left, see below), UNSUPPORTED (a device without pools or, during a capture,
 * without graph memory), CAPTURE_INVALID.
 *
 * The first alloc node of a graph reserves a range of addresses for the graph, which does not move: twice the device's
 * memory, at least 64 GiB and at most 1 TiB, while the process has few graphs with memory nodes. With more than about a
 * hundred (fewer on a GPU with much memory), each further graph gets 8 TiB divided by their number, at least 64 MiB and
 * at least eight times its first allocation. So the addresses of a process suffice for 100,000 graphs. A graph that
 * needs more reserves further ranges, each at least twice as large as the previous one. An allocation never spans two
 * ranges. */
RONDO_API RONDO_MUST_USE rondo_status rondo_malloc_async(rondo_stream *stream, size_t bytes,
                                                         const rondo_malloc_options *options, void **out_address);

/* Frees memory of any of the three kinds after the work that was enqueued on the stream so far. NULL is fine. During a
 * capture it becomes a free node, which must name memory of an alloc node (C15). Errors: INVALID_LIFETIME as
 * rondo_free; INVALID_ARGUMENT with FOREIGN_ADDRESS or DOUBLE_FREE during a capture; UNSUPPORTED as rondo_malloc_async;
 * CAPTURE_INVALID; OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_free_async(rondo_stream *stream, void *address);

/* Allocates host memory that copies can use directly, aligned to 256 bytes, with undefined contents. It does not count
 * as memory of the device. On CUDA it is page-locked: its pages are allocated and locked during the call, which takes
 * time that grows with the size. On a CPU device it comes from the device's allocator (rondo_device_options) and is not
 * touched, so with the C library's allocator the pages of a large buffer become resident when they are first used.
 * Thread-safe. Errors as rondo_malloc.
 */
RONDO_API RONDO_MUST_USE rondo_status rondo_host_malloc(rondo_device *device, size_t bytes, void **out_address);

/* Frees memory of rondo_host_malloc: the caller must have waited for the copies that use it. Work that declares an
 * access to freed host memory is refused. To detect that, the device keeps the blocks that were freed last, up to 32
 * MiB and 512 blocks, so that their addresses are not reused soon (rondo_memory_statistics.host_withheld). It frees
 * them when more blocks are freed, when a host allocation finds no memory, in rondo_memory_trim, and when it is closed.
 * A block of more than 32 MiB is freed at once; a later access to it is refused if its pages are unmapped, which a CUDA
 * driver does not always do. On CUDA, freeing a block waits for all work of the device. NULL is fine. Thread-safe.
 * Errors as rondo_free, where WRONG_MEMORY means device memory. */
RONDO_API RONDO_MUST_USE rondo_status rondo_host_free(rondo_device *device, void *address);

/* Current and highest memory use of the device, in bytes. reserved: taken from the system. used: in live allocations,
 * rounded up to 256, or, for graph memory, mapped by at least one exec. */
typedef struct rondo_memory_statistics {
  uint32_t struct_size;
  uint32_t live_allocations;                                             /* by rondo_malloc and rondo_malloc_async */
  uint64_t pool_used, pool_used_high, pool_reserved, pool_reserved_high; /* stream-ordered memory, of all pools */
  uint64_t graph_used, graph_used_high, graph_reserved, graph_reserved_high;
  uint64_t remaps;               /* times the memory of a graph (and its clones) was mapped again (GM-13) */
  uint64_t heap_growth;          /* chunks added to heaps */
  uint64_t profiles;             /* profiles created from recordings and runs of the device (<rondo/profile.h>) */
  uint64_t profiled_allocations; /* alloc nodes that got the address that a profile planned */
  uint64_t profile_departures;   /* graphs that departed from their profile */
  uint64_t profiles_renewed;     /* profiles created from graphs that had departed from their own profile */
  uint64_t arena_backed, arena_backed_high; /* the part of graph_used and graph_reserved in trees */
  uint64_t host_withheld; /* freed host memory whose addresses are kept (rondo_host_free); rondo_memory_trim frees it */
} rondo_memory_statistics;

/* Reads the figures, of everything except allocated host memory. Allowed while streams capture. Thread-safe. Errors:
 * INVALID_ARGUMENT, OUT_OF_MEMORY, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_get_statistics(const rondo_device *device,
                                                                  rondo_memory_statistics *out_statistics);

/* Resets the highest values to the current values (GM-16), except those of each pool. Allowed while streams capture.
 * Thread-safe. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_reset_highs(rondo_device *device);

/* Returns to the system the graph memory that neither an exec in flight nor an unfreed allocation uses. Later launches
 * map memory again (GM-15). Waits for launches in flight, and delays other launches that need graph memory until it
 * returns. Memory of a recording (<rondo/recording.h>) stays until the recording is reset. Errors: CAPTURE_REFUSED
 * (C9). Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_memory_trim(rondo_device *device);

/* Returns to the system all memory that the device keeps for later use: the free memory of every pool, as
 * rondo_pool_trim does, and, on a device with graph memory, what rondo_graph_memory_trim returns. Allocations and
 * launches that find no memory, mappings or files do this themselves before they fail, with memory that is idle at that
 * time; memory that an upload mapped in advance goes last. A launch also waits for earlier launches that share its
 * stream's graph memory, but never for launches on other streams. This call waits for them too, and
 * makes the memory available to other programs. Errors as rondo_graph_memory_trim. Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_trim(rondo_device *device);

/* Gives work of `peer` access to memory that rondo_malloc allocates on `device`, as rondo_pool_set_access does for a
 * pool. Work that names memory of another device without access is refused when it is enqueued or instantiated:
 * INVALID_ARGUMENT or INVALID_GRAPH with NO_ACCESS, naming the device, the allocation and the fix (GM-17). Allocations
 * of graph memory that share an address have the access of all of them; rely only on an allocation's own. Thread-safe.
 * Errors as rondo_pool_set_access. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_set_access(rondo_device *device, const rondo_device *peer,
                                                              bool access);

/* Pools -----------------------------------------------------------------------------------------------------------
 * A device has a default pool and any number of other pools. Pools are thread-safe: an allocation, its free and the
 * settings may come from any thread. A pool takes memory from the system in chunks of 2 MiB. It keeps freed memory for
 * later allocations; when the host waits for work, it returns free memory above its release threshold. */

typedef struct rondo_pool_options {
  uint32_t struct_size;
  uint32_t reserved;
  const char *name;           /* for messages; copied; may be NULL */
  uint64_t release_threshold; /* RONDO_POOL_RELEASE_THRESHOLD */
} rondo_pool_options;
#define RONDO_POOL_OPTIONS_INIT .struct_size = sizeof(rondo_pool_options)

/* Creates an empty pool. options may be NULL. Thread-safe. Errors: INVALID_ARGUMENT, UNSUPPORTED (a device without
 * pools, GM-1), OUT_OF_MEMORY, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_create(rondo_device *device, const rondo_pool_options *options,
                                                        rondo_pool **out_pool);

/* Destroys a pool. It must not be used afterwards; its memory is returned when its last allocation is freed and that
 * free is complete (P3). If it is the device's current pool, the default pool becomes the current one. NULL is fine.
 * Thread-safe. Errors: INVALID_ARGUMENT/STILL_IN_USE (the default pool), IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_destroy(rondo_pool *pool);

/* Returns the device's default pool, which cannot be destroyed. Thread-safe. Errors as rondo_pool_create. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_get_default_pool(rondo_device *device, rondo_pool **out_pool);

/* Gets and sets the current pool, which rondo_malloc_async uses if the caller names none: initially the default pool.
 * NULL sets the default pool. Thread-safe. Errors as rondo_pool_create, and OTHER_DEVICE for another device's pool. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_get_pool(rondo_device *device, rondo_pool **out_pool);
RONDO_API RONDO_MUST_USE rondo_status rondo_device_set_pool(rondo_device *device, rondo_pool *pool);

/* The attributes of a pool: numbers of bytes, and policies, which are 0 or 1. All policies are initially 1.
 *
 * An allocation for a stream tries these kinds of memory in this order (P1):
 *   1. memory that was freed earlier on the same stream;
 *   2. memory that was never used, and memory that was freed on another stream and that the host has waited for;
 *   3. memory that another stream freed before an event that this stream waited for (FOLLOW_EVENT_DEPENDENCIES);
 *   4. memory that another stream freed, if that free is found to be complete (ALLOW_OPPORTUNISTIC);
 *   5. new memory from the system;
 *   6. memory that another stream freed; the allocating stream then waits for the free (ALLOW_INTERNAL_DEPENDENCIES).
 * The host has waited for a free after a synchronization, or a query that returned OK, of the stream, the device, or an
 * event after the free, and after the destruction of the stream. Event-record nodes count as such events; event-wait
 * nodes do not count as waits.
 *
 * With ALLOW_OPPORTUNISTIC off, the memory that an allocation gets depends only on the calls and is the same in every
 * run, as long as memory does not run out.
 *
 * RELEASE_THRESHOLD is initially 0, as in the CUDA driver: when the host waits for a stream, an event or the device,
 * completely free chunks are returned to the system while more than the threshold is reserved. A program that allocates
 * and waits in a loop should set UINT64_MAX, and trim when it wants to. */
typedef enum rondo_pool_attribute {
  RONDO_POOL_FOLLOW_EVENT_DEPENDENCIES = 1,
  RONDO_POOL_ALLOW_OPPORTUNISTIC = 2,
  RONDO_POOL_ALLOW_INTERNAL_DEPENDENCIES = 3,
  RONDO_POOL_RELEASE_THRESHOLD = 4,
  RONDO_POOL_RESERVED_CURRENT = 5, /* taken from the system; cannot be set */
  RONDO_POOL_RESERVED_HIGH = 6,    /* the highest value so far; setting it to 0 resets it to the current value */
  RONDO_POOL_USED_CURRENT = 7,     /* in live allocations, each rounded up to 256; cannot be set */
  RONDO_POOL_USED_HIGH = 8         /* as RESERVED_HIGH */
} rondo_pool_attribute;

/* Thread-safe; allowed while streams capture. Errors: INVALID_ARGUMENT with NULL_ARGUMENT, BAD_OPTIONS (no such
 * attribute), and for setting OUT_OF_RANGE (a policy that is not 0 or 1, a high mark that is not 0, a current value);
 * IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_get_attribute(rondo_pool *pool, rondo_pool_attribute attribute,
                                                               uint64_t *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_set_attribute(rondo_pool *pool, rondo_pool_attribute attribute,
                                                               uint64_t value);

/* All figures of a pool. The counters say which kind of memory the allocations got; the rest got memory that was never
 * used before. */
typedef struct rondo_pool_statistics {
  uint32_t struct_size;
  uint32_t live_allocations;
  uint64_t used, used_high, reserved, reserved_high;
  uint64_t same_stream;           /* freed on the same stream */
  uint64_t host_ordered;          /* freed on another stream, and the host has waited for it */
  uint64_t event_ordered;         /* freed on another stream before an event that this stream waited for */
  uint64_t opportunistic;         /* freed on another stream, and the free was found to be complete */
  uint64_t internal_dependencies; /* freed on another stream, for which the allocating stream waits */
  uint64_t chunks;                /* times memory was taken from the system */
} rondo_pool_statistics;

/* Thread-safe; allowed while streams capture. Errors: INVALID_ARGUMENT, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_get_statistics(rondo_pool *pool,
                                                                rondo_pool_statistics *out_statistics);

/* Gives or withdraws access of `peer`'s work to the pool's allocations, existing and future ones (P3, GM-17). An alloc
 * node that is captured from the pool keeps the access of that moment. The access of the pool's own device cannot be
 * withdrawn. Thread-safe. Errors: INVALID_ARGUMENT with NULL_ARGUMENT, OTHER_DEVICE (a device that cannot access the
 * pool's memory), NO_ACCESS (withdrawing the own device's access); IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_set_access(rondo_pool *pool, const rondo_device *peer, bool access);
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_get_access(const rondo_pool *pool, const rondo_device *peer,
                                                            bool *out_access);

/* Returns free memory of the pool to the system, in whole chunks, while at least `keep_bytes` remain reserved (P3).
 * Does not wait for incomplete frees; with ALLOW_OPPORTUNISTIC off, frees for which the host has not waited count as
 * incomplete. Allowed while streams capture: it acts immediately, on memory that nothing uses, and captures stay
 * valid. Thread-safe. Errors: INVALID_ARGUMENT, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_trim(rondo_pool *pool, uint64_t keep_bytes);

RONDO_EXTERN_C_END

#endif
