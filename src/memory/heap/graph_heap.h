/* SPDX-License-Identifier: MIT
 * The physical memory of graphs: heaps, and their mappings into address spaces.
 *
 * Each stream that launches graphs with memory has a heap: a list of chunks of physical memory. A space is bound to one
 * heap, and whole chunks are mapped one after another from its base on. Spaces bound to the same heap share its pages,
 * because their launches run one after another: in stream order or, for launches on other streams, after the heap's
 * last event (GM-12). The spaces of one exec get different chunks. Pages of allocations that their graph does not free
 * belong to the space. The heap's chunks are mapped around them, and a chunk that would overlap such pages is split.
 *
 * Mappings change on the host, at a first launch, an upload, a trim or growth. Existing mappings change only when all
 * launches of the heap are complete (GM-13). A heap that grows takes unused chunks from other streams' heaps: launches
 * that run one after another share memory across streams too. A heap outlives its stream and serves the next one.
 *
 * A private heap belongs to the execs that are set to use it. Other heaps do not take its memory, and trims do not
 * release it. It is returned to the system when the heap is abandoned and its launches are complete. When the system
 * has no more memory, mappings or files, first the pools and then the streams' heaps release their unused memory.
 *
 * Threads: the gate of a heap makes "wait for the last launch, launch, record the event" one step, and blocks launches
 * while mappings change. Unlike other locks it is held during these calls of the driver. Worker threads never enter it.
 * Entering an open gate and leaving it take one atomic operation each. Gates are entered by ascending id, before the
 * lock of the device's memory.
 */
#ifndef RONDO_MEMORY_HEAP_GRAPH_HEAP_H
#define RONDO_MEMORY_HEAP_GRAPH_HEAP_H

#include "base/error.h"
#include "base/thread.h"
#include "memory/graph_memory/address_space.h"

typedef struct rondo_heap_chunk {
  rondo_physical *physical;
  size_t bytes;
  uint32_t mappings; /* how many spaces it is mapped into */
} rondo_heap_chunk;

/* Who uses a heap. Changed under the memory's lock. */
typedef enum rondo_heap_use {
  RONDO_HEAP_EMPTY = 0, /* no user, no memory */
  RONDO_HEAP_SPARE = 1, /* no user; a stream left memory and bound spaces */
  RONDO_HEAP_STREAM = 2,
  RONDO_HEAP_PRIVATE = 3,
  RONDO_HEAP_LEAVING = 4 /* a private heap that was abandoned; becomes empty */
} rondo_heap_use;

struct rondo_heap {
  rondo_device_memory *memory;
  uint32_t id;
  _Atomic uint32_t gate; /* 0: open; 1: entered; 2: entered, and other threads wait */
  rondo_heap *next;      /* set once; the list only grows */
  _Atomic uint32_t use;  /* a rondo_heap_use */

  /* Under the gate. */
  rondo_device_event *last; /* recorded after the last launch */
  uint64_t last_queue;      /* number of the queue of the last launch; 0: there was none */
  uint64_t version;         /* changes when memory is unmapped */
  bool lost;                /* another heap took a chunk since the last trim */
  RONDO_ARRAY(rondo_heap_chunk) chunks;
  rondo_address_space *bound; /* by next_bound */
};

/* Bytes of a space or an arena, as offsets. */
typedef struct rondo_offset_range {
  size_t begin, end;
} rondo_offset_range;

/* For qsort: by `begin`. */
static inline int rondo_offset_range_compare(const void *a, const void *b) {
  const size_t x = ((const rondo_offset_range *)a)->begin, y = ((const rondo_offset_range *)b)->begin;
  return (x > y) - (x < y);
}

/* What an exec needs of one space. */
typedef struct rondo_space_need {
  rondo_address_space *space;
  size_t bytes; /* whole pages to be mapped from the base on; `privates` may be beyond */
  RONDO_ARRAY(rondo_offset_range) privates;
  rondo_heap *seen; /* while binding: the space's heap when it was read */
} rondo_space_need;

/* A heap for a stream (RONDO_HEAP_STREAM) or for execs (RONDO_HEAP_PRIVATE). May reuse one that has no user. */
RONDO_MUST_USE rondo_status rondo_heap_acquire(rondo_device_memory *memory, rondo_heap_use use, rondo_heap **out);

/* The stream of the heap is destroyed and its work done; NULL is allowed. */
void rondo_heap_release(rondo_heap *heap);

/* The users of a private heap are destroyed, but their launches may still run. A later sweep frees its memory when they
 * are complete. NULL is allowed. */
void rondo_heap_abandon(rondo_heap *heap);

/* The bytes of a heap, including the private pages of its spaces. */
uint64_t rondo_heap_bytes(rondo_heap *heap);

/* Waits for the launches that used the heap. */
RONDO_MUST_USE rondo_status rondo_heap_wait(rondo_heap *heap);

void rondo_heap_enter_slowly(rondo_heap *heap);

static inline bool rondo_heap_try_enter(rondo_heap *heap) {
  uint32_t open = 0;
  return atomic_compare_exchange_strong_explicit(&heap->gate, &open, 1, memory_order_acquire, memory_order_relaxed);
}
static inline void rondo_heap_enter(rondo_heap *heap) {
  if (!rondo_heap_try_enter(heap)) rondo_heap_enter_slowly(heap);
}
static inline void rondo_heap_leave(rondo_heap *heap) {
  if (atomic_exchange_explicit(&heap->gate, 0, memory_order_release) == 2) rondo_futex_wake(&heap->gate, 1);
}

/* Maps what `needs` lists, from the heap to which the spaces are bound, otherwise from `target`; with `move`, always
 * from `target`. On success the gate of *out_heap is entered. On failure the spaces may be unmapped; their next launch
 * maps them. */
RONDO_MUST_USE rondo_status rondo_heap_bind(rondo_heap *target, rondo_space_need *needs, size_t count, bool move,
                                            rondo_heap **out_heap);

/* Creates and maps physical memory that is mapped at one address only, and counts it as reserved and used. Reclaims
 * memory for it if necessary. OUT_OF_MEMORY lists the users of the memory. */
RONDO_MUST_USE rondo_status rondo_graph_pages_create(rondo_device_memory *memory, char *address, size_t bytes,
                                                     rondo_physical **out);
/* On failure the pages stay mapped. */
RONDO_MUST_USE rondo_status rondo_graph_pages_destroy(rondo_device_memory *memory, char *address,
                                                      rondo_physical *physical, size_t bytes);
/* Stops counting pages that could not be unmapped: the device keeps their memory as long as they are mapped. */
void rondo_graph_pages_abandon(rondo_device_memory *memory, rondo_physical *physical, size_t bytes);

/* Waits for the launches, and returns all memory that no live allocation needs to the system (GM-15), except that of
 * private heaps. */
RONDO_MUST_USE rondo_status rondo_heaps_trim(rondo_device_memory *memory);

/* The same for idle heaps, without waiting. A heap whose gate is entered keeps its memory, and so does one with an
 * upload that was not launched yet, unless `with_uploads`. */
void rondo_heaps_reclaim_idle(rondo_device_memory *memory, bool with_uploads);

/* Reclaims memory for a call of the driver that found no memory, or reached a limit of the process on mappings or
 * files. In steps: the unused memory of pools, then that of idle heaps, then that of uploads.
 *
 *   rondo_reclaim reclaim = rondo_reclaim_begin(memory);
 *   do status = ...; while (rondo_reclaim_more(&reclaim, status));
 *
 * If the call succeeds in the end, the error before it is restored. */
typedef struct rondo_reclaim {
  rondo_device_memory *memory;
  unsigned steps; /* so far */
  rondo_saved_error before;
} rondo_reclaim;
rondo_reclaim rondo_reclaim_begin(rondo_device_memory *memory);
bool rondo_reclaim_more(rondo_reclaim *reclaim, rondo_status status); /* whether to try again */

static inline bool rondo_reclaim_helps(rondo_status status) {
  return status == RONDO_OUT_OF_MEMORY || status == RONDO_LIMIT_EXCEEDED;
}

/* Frees retired spaces whose launches are complete (with `wait`: all), and the memory of abandoned heaps. */
void rondo_retired_sweep(rondo_device_memory *memory, bool wait);

/* Frees all heaps, at the end of the device. */
void rondo_heaps_destroy(rondo_device_memory *memory);

#endif
