/* SPDX-License-Identifier: MIT
 * Device memory: at once, in stream order, and inside graphs.
 *
 * On a CPU device the memory can also be read and written by the host; a program that wants to run on any device copies
 * instead. Graph memory: an alloc node's address is fixed when the node is made; the physical pages behind it come from
 * one heap a launch stream and are shared by all graphs launched there.
 */
#ifndef RONDO_MEMORY_H
#define RONDO_MEMORY_H

#include <rondo/stream.h>

RONDO_EXTERN_C_BEGIN

/* Memory of the device, aligned to 256 bytes, contents undefined, until rondo_free. name (may be NULL) is for messages;
 * copied. Thread-safe. Errors: INVALID_ARGUMENT (NULL, 0 bytes), OUT_OF_MEMORY with the sizes;
 * CAPTURE_REFUSED/UNSUPPORTED_CALL when a capture forbids it (C9). */
RONDO_API RONDO_MUST_USE rondo_status rondo_malloc(rondo_device *device, size_t bytes, const char *name,
                                                   void **out_address);

/* Frees memory of any of the three kinds, at once: the caller has waited for its users. NULL is fine. Thread-safe.
 * Errors: INVALID_LIFETIME with DOUBLE_FREE (naming what was freed, if that is not long ago), NOT_ALLOCATED (graph
 * memory that no launch has allocated), INTERIOR_ADDRESS (naming the allocation that it lies in, and where),
 * WRONG_MEMORY (of rondo_host_malloc), FOREIGN_ADDRESS; CAPTURE_REFUSED (C9). */
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

/* Memory that may be used by work queued on the stream after this call. While capturing it becomes an alloc node with a
 * fixed address (GM-7), whatever the pool. options may be NULL. Which freed memory is used again is said at
 * rondo_pool_attribute (GM-19). Errors: INVALID_ARGUMENT (also OTHER_DEVICE: the pool's), OUT_OF_MEMORY
 * (ADDRESS_SPACE when a graph needs more addresses than the process has left, see below),
 * UNSUPPORTED (a device without pools or, while capturing, without graph memory), CAPTURE_INVALID.
 *
 * A graph's addresses are reserved with its first alloc node and do not move: twice the device's memory, at least 64
 * GiB and at most 1 TiB, as long as the process has few graphs with memory nodes. With more than about a hundred (fewer
 * on a GPU with much memory), each further graph gets 8 TiB divided by their number, at least 64 MiB and at least eight
 * times its first allocation. So 100,000 graphs fit the addresses of a process. A graph that needs more reserves
 * further ranges of addresses, each of at least twice the size of the one before; no allocation lies in two ranges. */
RONDO_API RONDO_MUST_USE rondo_status rondo_malloc_async(rondo_stream *stream, size_t bytes,
                                                         const rondo_malloc_options *options, void **out_address);

/* Frees memory of any of the three kinds after the work queued on the stream so far. NULL is fine. While capturing it
 * becomes a free node, which must name memory of an alloc node (C15). Errors: INVALID_LIFETIME as rondo_free;
 * INVALID_ARGUMENT with FOREIGN_ADDRESS or DOUBLE_FREE while capturing; UNSUPPORTED as rondo_malloc_async;
 * CAPTURE_INVALID; OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_free_async(rondo_stream *stream, void *address);

/* Host memory that copies can use without a detour, aligned to 256, contents undefined. It does not count as memory of
 * the device. On CUDA it is pinned: its pages are made and locked during the call, which takes time that grows with the
 * size. On a CPU device it comes from the device's allocator (rondo_device_options) and is not touched, so that with
 * the C library's allocator pages of a large buffer are made when they are first used. Thread-safe. Errors as
 * rondo_malloc.
 */
RONDO_API RONDO_MUST_USE rondo_status rondo_host_malloc(rondo_device *device, size_t bytes, void **out_address);

/* Frees it: the caller has waited for the copies. From now on, work that declares to access it is refused. So that
 * nobody else gets the addresses soon, the device keeps the blocks that were freed last, up to 32 MiB and 512 of them
 * (rondo_memory_statistics.host_withheld). It frees them when more is freed, when a host allocation finds no memory, by
 * rondo_memory_trim, and when it is closed. A block of more than 32 MiB is freed at once; a later access to it is
 * refused if its pages are unmapped, which a CUDA driver does not always do. On CUDA the driver waits for all that the
 * device runs when a block is freed. NULL is fine. Thread-safe. Errors as rondo_free; WRONG_MEMORY is for device memory
 * here. */
RONDO_API RONDO_MUST_USE rondo_status rondo_host_free(rondo_device *device, void *address);

/* What the device's memory holds now and held at most, in bytes. reserved: taken from the system; used: in live
 * allocations, rounded up to 256, or, for graph memory, mapped by at least one exec. */
typedef struct rondo_memory_statistics {
  uint32_t struct_size;
  uint32_t live_allocations;                                             /* by rondo_malloc and rondo_malloc_async */
  uint64_t pool_used, pool_used_high, pool_reserved, pool_reserved_high; /* stream-ordered memory, of all pools */
  uint64_t graph_used, graph_used_high, graph_reserved, graph_reserved_high;
  uint64_t remaps;                          /* times the memory of a graph (and its clones) was mapped again (GM-13) */
  uint64_t heap_growth;                     /* times a heap got another chunk */
  uint64_t profiles;                        /* plans made of the device's recordings and runs (<rondo/profile.h>) */
  uint64_t profiled_allocations;            /* alloc nodes that got the address that a profile planned */
  uint64_t profile_departures;              /* graphs that departed from their profile */
  uint64_t profiles_afresh;                 /* of the profiles, those made of graphs that departed from their own */
  uint64_t arena_backed, arena_backed_high; /* of graph_used and graph_reserved, what trees of recordings hold */
  uint64_t host_withheld; /* freed host memory whose addresses are kept (rondo_host_free); rondo_memory_trim frees it */
} rondo_memory_statistics;

/* The figures as they are now, of everything but host memory that is allocated. Allowed while streams capture: it
 * changes nothing a capture could miss. Thread-safe. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_get_statistics(const rondo_device *device,
                                                                  rondo_memory_statistics *out_statistics);

/* Sets the high marks to the current values (GM-16); each pool keeps its own. Allowed while streams capture.
 * Thread-safe. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_reset_highs(rondo_device *device);

/* Gives back to the system what graph memory no exec in flight and no unfreed allocation uses; later launches map again
 * (GM-15). Waits for launches in flight, and holds others that need graph memory up meanwhile. What belongs to a
 * recording (<rondo/recording.h>) stays until that is reset. Errors: CAPTURE_REFUSED (C9). Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_memory_trim(rondo_device *device);

/* Gives back to the system all that the device holds for later only: what every pool has free, as by rondo_pool_trim,
 * and, on a device with graph memory, as rondo_graph_memory_trim. Allocations and launches that find no memory,
 * mappings or files do so by themselves before they fail, with what is idle then; memory that an upload mapped ahead
 * goes last. A launch also waits for earlier launches that share its stream's graph memory. Nothing waits for launches
 * on other streams: this call does, and it makes room for another program. Errors as rondo_graph_memory_trim.
 * Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_trim(rondo_device *device);

/* Lets work of `peer` access what rondo_malloc gives on `device`, as rondo_pool_set_access does for a pool. Work that
 * has an address of another device's memory without access is refused when it is queued or instantiated:
 * INVALID_ARGUMENT or INVALID_GRAPH with NO_ACCESS, naming device, allocation and remedy (GM-17). Allocations of graph
 * memory that share an address have the accesses of all of them; do not rely on more than an allocation's own.
 * Thread-safe. Errors as rondo_pool_set_access. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_set_access(rondo_device *device, const rondo_device *peer,
                                                              bool access);

/* Pools -----------------------------------------------------------------------------------------------------------
 * A device has a default pool and any number of others. Pools are thread-safe: an allocation, its free and the policies
 * may come from any thread. A pool takes memory from the system in chunks of 2 MiB and keeps what is freed for the next
 * allocation, up to its release threshold, until the host waits for work. */

typedef struct rondo_pool_options {
  uint32_t struct_size;
  uint32_t reserved;
  const char *name;           /* for messages; copied; may be NULL */
  uint64_t release_threshold; /* RONDO_POOL_RELEASE_THRESHOLD */
} rondo_pool_options;
#define RONDO_POOL_OPTIONS_INIT .struct_size = sizeof(rondo_pool_options)

/* An empty pool. options may be NULL. Thread-safe. Errors: INVALID_ARGUMENT, UNSUPPORTED (a device without pools,
 * GM-1), OUT_OF_MEMORY, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_create(rondo_device *device, const rondo_pool_options *options,
                                                        rondo_pool **out_pool);

/* The pool may not be used any more; its memory goes back when its last allocation is freed and that free is done (P3).
 * If it is the device's current pool, the default pool becomes that again. NULL is fine. Thread-safe. Errors:
 * INVALID_ARGUMENT/STILL_IN_USE (the default pool), IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_destroy(rondo_pool *pool);

/* The device's default pool, which is its own and cannot be destroyed. Thread-safe. Errors as rondo_pool_create. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_get_default_pool(rondo_device *device, rondo_pool **out_pool);

/* The pool that rondo_malloc_async uses when none is named: the default pool unless set otherwise. NULL sets the
 * default pool. Thread-safe. Errors as rondo_pool_create, and OTHER_DEVICE for another device's pool. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_get_pool(rondo_device *device, rondo_pool **out_pool);
RONDO_API RONDO_MUST_USE rondo_status rondo_device_set_pool(rondo_device *device, rondo_pool *pool);

/* What a pool's attributes are: numbers of bytes, and policies, which are 0 or 1 and all 1 unless set otherwise.
 *
 * Memory for a stream is looked for in this order (P1): what was freed earlier on the same stream; what was never used,
 * and what was freed on another stream and waited for on the host since; what was freed on a stream that this one comes
 * after by events (FOLLOW_EVENT_DEPENDENCIES); what another stream freed when that free happens to be done
 * (ALLOW_OPPORTUNISTIC); new memory of the system; and if there is no more, what another stream freed, for which the
 * allocating stream is then made to wait (ALLOW_INTERNAL_DEPENDENCIES). "Waited for on the host" is a synchronisation
 * or a query that returned OK, of the stream, the device, or an event behind the free, and the destruction of the
 * stream. Event nodes count: recording ones, not waiting ones.
 *
 * With ALLOW_OPPORTUNISTIC off, which freed memory an allocation gets depends on the calls alone and is the same in
 * every run, as long as memory does not run out.
 *
 * RELEASE_THRESHOLD is 0 unless set otherwise, as in the CUDA driver: when the host waits for a stream, an event or the
 * device, all chunks that are free as a whole go back to the system while more than that is reserved. A program that
 * waits in a loop and allocates in it sets UINT64_MAX, and trims where it wants to. */
typedef enum rondo_pool_attribute {
  RONDO_POOL_FOLLOW_EVENT_DEPENDENCIES = 1,
  RONDO_POOL_ALLOW_OPPORTUNISTIC = 2,
  RONDO_POOL_ALLOW_INTERNAL_DEPENDENCIES = 3,
  RONDO_POOL_RELEASE_THRESHOLD = 4,
  RONDO_POOL_RESERVED_CURRENT = 5, /* taken from the system; cannot be set */
  RONDO_POOL_RESERVED_HIGH = 6,    /* the most ever; set to 0 it becomes the current value */
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

/* A pool's figures together. The counters say how allocations were served: each by one kind of memory that was used
 * before, or by memory that never was. */
typedef struct rondo_pool_statistics {
  uint32_t struct_size;
  uint32_t live_allocations;
  uint64_t used, used_high, reserved, reserved_high;
  uint64_t same_stream;           /* freed on the stream itself */
  uint64_t host_ordered;          /* freed elsewhere, and waited for by the host */
  uint64_t event_ordered;         /* freed on a stream that comes before by events */
  uint64_t opportunistic;         /* freed elsewhere and found to be done */
  uint64_t internal_dependencies; /* freed elsewhere, and waited for by the stream */
  uint64_t chunks;                /* times memory was taken from the system */
} rondo_pool_statistics;

/* Thread-safe; allowed while streams capture. Errors: INVALID_ARGUMENT, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_get_statistics(rondo_pool *pool,
                                                                rondo_pool_statistics *out_statistics);

/* Lets work of `peer` access the pool's allocations, those that there are and those to come, or no longer (P3, GM-17).
 * An alloc node that is captured from the pool keeps the access of that moment. A device's own access cannot be taken
 * away. Thread-safe. Errors: INVALID_ARGUMENT with NULL_ARGUMENT, OTHER_DEVICE (a device that cannot access the
 * pool's), NO_ACCESS (the pool's own device, to be taken away); IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_set_access(rondo_pool *pool, const rondo_device *peer, bool access);
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_get_access(const rondo_pool *pool, const rondo_device *peer,
                                                            bool *out_access);

/* Gives memory of the pool that is free back to the system, in whole chunks, while at least `keep_bytes` remain
 * reserved (P3). Does not wait for frees that are not done; with ALLOW_OPPORTUNISTIC off, those that the host has not
 * waited for count as such. Allowed while streams capture and no part of a capture: it acts at once, on memory that
 * nothing uses, and leaves the captures valid. Thread-safe. Errors: INVALID_ARGUMENT, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_trim(rondo_pool *pool, uint64_t keep_bytes);

RONDO_EXTERN_C_END

#endif
