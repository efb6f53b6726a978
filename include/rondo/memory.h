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
 * Errors: INVALID_LIFETIME with FOREIGN_ADDRESS, DOUBLE_FREE or NOT_ALLOCATED; CAPTURE_REFUSED (C9). */
RONDO_API RONDO_MUST_USE rondo_status rondo_free(rondo_device *device, void *address);

typedef struct rondo_malloc_options {
  uint32_t struct_size;
  uint32_t reserved;
  const char *name; /* for messages and dumps; copied; may be NULL */
} rondo_malloc_options;
#define RONDO_MALLOC_OPTIONS_INIT .struct_size = sizeof(rondo_malloc_options)

/* Memory that may be used by work queued on the stream after this call. While capturing it becomes an alloc node with a
 * fixed address (GM-7). options may be NULL. Memory that was freed on the same stream is used again at once, what was
 * freed on another when that free is done (GM-19). Errors: INVALID_ARGUMENT, OUT_OF_MEMORY (ADDRESS_SPACE when a
 * graph's 64 GiB of addresses are used up), UNSUPPORTED (a device without graph memory), CAPTURE_INVALID. */
RONDO_API RONDO_MUST_USE rondo_status rondo_malloc_async(rondo_stream *stream, size_t bytes,
                                                         const rondo_malloc_options *options, void **out_address);

/* Frees memory of any of the three kinds after the work queued on the stream so far. NULL is fine. While capturing it
 * becomes a free node, which must name memory of an alloc node (C15). Errors: INVALID_LIFETIME as rondo_free;
 * INVALID_ARGUMENT with FOREIGN_ADDRESS or DOUBLE_FREE while capturing; CAPTURE_INVALID; OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_free_async(rondo_stream *stream, void *address);

/* Host memory that copies can use without a detour (pinned on CUDA), aligned to 256. Thread-safe. Errors as
 * rondo_malloc. */
RONDO_API RONDO_MUST_USE rondo_status rondo_host_malloc(rondo_device *device, size_t bytes, void **out_address);

/* Frees it at once: the caller has waited for the copies. NULL is fine. Thread-safe. Errors as rondo_free. */
RONDO_API RONDO_MUST_USE rondo_status rondo_host_free(rondo_device *device, void *address);

/* What the device's memory holds now and held at most, in bytes. reserved: taken from the system; used: in live
 * allocations, rounded up to 256, or, for graph memory, mapped by at least one exec. */
typedef struct rondo_memory_statistics {
  uint32_t struct_size;
  uint32_t live_allocations;                                             /* by rondo_malloc and rondo_malloc_async */
  uint64_t pool_used, pool_used_high, pool_reserved, pool_reserved_high; /* stream-ordered memory */
  uint64_t graph_used, graph_used_high, graph_reserved, graph_reserved_high;
  uint64_t remaps;      /* times the memory of a graph (and its clones) was mapped again (GM-13) */
  uint64_t heap_growth; /* times a heap got another chunk */
} rondo_memory_statistics;

/* The figures as they are now, of everything but host memory. Allowed while streams capture: it changes nothing a
 * capture could miss. Thread-safe. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_get_statistics(const rondo_device *device,
                                                                  rondo_memory_statistics *out_statistics);

/* Sets the high marks to the current values (GM-16). Allowed while streams capture. Thread-safe. Errors:
 * INVALID_ARGUMENT, OUT_OF_MEMORY, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_reset_highs(rondo_device *device);

/* Gives back to the system what graph memory no exec in flight and no unfreed allocation uses; later launches map again
 * (GM-15). Waits for launches in flight, and holds others that need graph memory up meanwhile. Errors: CAPTURE_REFUSED
 * (C9). Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_memory_trim(rondo_device *device);

/* Gives stream-ordered memory that is free back to the system, in whole chunks, while at least `keep_bytes` remain
 * reserved (GM-19). Does not wait for frees that are not done. Allowed while streams capture and no part of a capture:
 * it acts at once, on memory that nothing uses, and leaves the captures valid. Thread-safe. Errors: INVALID_ARGUMENT,
 * OUT_OF_MEMORY, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_trim(rondo_device *device, uint64_t keep_bytes);

RONDO_EXTERN_C_END

#endif
