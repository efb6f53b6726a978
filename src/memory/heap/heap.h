/* SPDX-License-Identifier: MIT
 * The physical side of graph memory: heaps, and what of them is mapped into which address space.
 *
 * Each stream that launches graphs with memory has a heap: a list of chunks. A space is bound to one heap and has a run
 * of whole chunks mapped from its base on; spaces bound to the same heap see the same pages, because their launches
 * come one after another: in stream order, or, for launches on other streams, by the heap's last event (GM-12). Pages
 * of allocations that their graph does not free are the space's own; the heap's chunks are mapped around them, and a
 * chunk that does not end where such pages begin is replaced by two that do. Two spaces of one exec get runs of their
 * own.
 *
 * Mapping is done at once on the host, at the first launch, upload, trim or growth, never for another reason, and only
 * when all launches of the heap are done (GM-13). A heap that grows takes what another stream's heap holds idle: what
 * runs one after another shares memory across streams too. A heap outlives its stream and serves the next one.
 *
 * A private heap is not a stream's but of who asked for it: its memory serves the execs that were told to use it, is
 * neither taken by other heaps nor trimmed, and goes back to the system once it is given up and what runs there is
 * done. Where the system has no more memory, mappings or files, heaps of streams give back what they hold idle, after
 * the pools.
 *
 * Threads: the gate of a heap makes "wait for the last launch, launch, record the event" one step, and keeps launches
 * away while mappings change. It is held over these calls of the driver on purpose: a heap that is being mapped anew
 * cannot be launched on. Worker threads never take it. Entering and leaving an open gate is one atomic operation each.
 * Gates are entered in the order of their ids, before the lock of the device's memory.
 */
#ifndef RONDO_MEMORY_HEAP_HEAP_H
#define RONDO_MEMORY_HEAP_HEAP_H

#include "base/error.h"
#include "base/thread.h"
#include "memory/graph_memory/address_space.h"

typedef struct rondo_heap_chunk {
  rondo_physical *physical;
  size_t bytes;
  uint32_t mappings; /* spaces it is mapped into */
} rondo_heap_chunk;

/* Whose a heap is. Changed under the memory's lock. */
typedef enum rondo_heap_use {
  RONDO_HEAP_EMPTY = 0, /* nobody's, and holds nothing */
  RONDO_HEAP_SPARE = 1, /* nobody's; what a stream left is bound to it */
  RONDO_HEAP_STREAM = 2,
  RONDO_HEAP_PRIVATE = 3,
  RONDO_HEAP_LEAVING = 4 /* private and given up; becomes empty */
} rondo_heap_use;

struct rondo_heap {
  rondo_device_memory *memory;
  uint32_t id;
  _Atomic uint32_t gate; /* 0 open, 1 entered, 2 entered and waited for */
  rondo_heap *next;      /* set once; the list only grows */
  _Atomic uint32_t use;  /* a rondo_heap_use */

  /* Under the gate. */
  rondo_device_event *last; /* recorded behind the last launch */
  rondo_queue *last_queue;  /* identity only; NULL: nothing launched yet */
  uint64_t version;         /* changes when a mapping is taken away */
  bool lost;                /* a chunk to another stream's heap, since the last trim */
  RONDO_ARRAY(rondo_heap_chunk) chunks;
  rondo_address_space *bound; /* by next_bound */
};

/* Pages, in bytes from a space's base. */
typedef struct rondo_page_range {
  size_t begin, end;
} rondo_page_range;

/* What an exec needs of one space. */
typedef struct rondo_space_need {
  rondo_address_space *space;
  size_t bytes; /* to be mapped from the base on, whole pages; `privates` may lie beyond */
  RONDO_ARRAY(rondo_page_range) privates;
  rondo_heap *seen; /* scratch of binding */
} rondo_space_need;

/* A heap for a stream: one whose stream is gone, or a new one. */
RONDO_MUST_USE rondo_status rondo_heap_acquire(rondo_device_memory *memory, rondo_heap **out);
void rondo_heap_release(rondo_heap *heap); /* its stream is destroyed and its work done; NULL is fine */

/* A private heap; its bytes, with those of allocations that live there; waiting for the launches that used it; and
 * giving it up, when all that used it is destroyed but may still run: its memory goes with the next sweep that finds it
 * idle. NULL is fine for the last. */
RONDO_MUST_USE rondo_status rondo_heap_acquire_private(rondo_device_memory *memory, rondo_heap **out);
uint64_t rondo_heap_bytes(rondo_heap *heap);
RONDO_MUST_USE rondo_status rondo_heap_wait(rondo_heap *heap);
void rondo_heap_give_up(rondo_heap *heap);

void rondo_heap_enter_slowly(rondo_heap *heap);
void rondo_heap_wake(rondo_heap *heap);

static inline bool rondo_heap_try_enter(rondo_heap *heap) {
  uint32_t open = 0;
  return atomic_compare_exchange_strong_explicit(&heap->gate, &open, 1, memory_order_acquire, memory_order_relaxed);
}
static inline void rondo_heap_enter(rondo_heap *heap) {
  if (!rondo_heap_try_enter(heap)) rondo_heap_enter_slowly(heap);
}
static inline void rondo_heap_leave(rondo_heap *heap) {
  if (atomic_exchange_explicit(&heap->gate, 0, memory_order_release) == 2) rondo_heap_wake(heap);
}

/* Maps what `needs` asks for: in the heap that the spaces are bound to already, if they are, else in `target`; with
 * `move` in `target` in any case. On success the gate of *out_heap is entered. On failure the spaces may be unmapped;
 * their next launch maps them. */
RONDO_MUST_USE rondo_status rondo_heap_bind(rondo_heap *target, rondo_space_need *needs, size_t count, bool move,
                                            rondo_heap **out_heap);

/* Physical memory for graphs, counted as reserved, and mapping it; room is made for both. OUT_OF_MEMORY says who holds
 * how much. */
RONDO_MUST_USE rondo_status rondo_graph_pages_create(rondo_device_memory *memory, size_t bytes, rondo_physical **out);
RONDO_MUST_USE rondo_status rondo_graph_pages_map(rondo_device_memory *memory, char *address, rondo_physical *physical);
void rondo_graph_pages_destroy(rondo_device_memory *memory, rondo_physical *physical, size_t bytes);

/* Gives all that no live allocation needs back to the system, after waiting for the launches (GM-15); private heaps
 * keep theirs. */
RONDO_MUST_USE rondo_status rondo_heaps_trim(rondo_device_memory *memory);

/* The same for the heaps of streams that nothing uses now, without waiting; a heap whose gate is entered keeps what it
 * has, and so does, without `ahead`, one with memory that was mapped ahead. */
void rondo_heaps_give_idle_back(rondo_device_memory *memory, bool ahead);

/* Makes room for a call of the driver that found no memory, or met a limit of the process on mappings or files. What is
 * held for later only goes step by step: the memory of pools, that of idle heaps, at last what was mapped ahead.
 *   rondo_room room = rondo_room_of(memory);
 *   do status = ...; while (rondo_room_make(&room, status));
 * A failure that room helped against leaves no error. */
typedef struct rondo_room {
  rondo_device_memory *memory;
  unsigned steps; /* taken so far */
  rondo_saved_error before;
} rondo_room;
rondo_room rondo_room_of(rondo_device_memory *memory);
bool rondo_room_make(rondo_room *room, rondo_status status); /* whether to try again */

static inline bool rondo_room_helps(rondo_status status) {
  return status == RONDO_OUT_OF_MEMORY || status == RONDO_LIMIT_EXCEEDED;
}

/* Frees retired spaces whose launches are done, or, with `wait`, all; and the memory of heaps that were given up. */
void rondo_retired_sweep(rondo_device_memory *memory, bool wait);

/* All heaps, at the end of the device. */
void rondo_heaps_destroy(rondo_device_memory *memory);

#endif
