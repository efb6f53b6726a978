/* SPDX-License-Identifier: MIT
 * The addresses of a graph's memory, shared by its family: the graph, its clones and their execs. An alloc node gets
 * its address when it is created (GM-2).
 *
 * Bytes are free for a new alloc node when each allocation that covers them has a free node among the new node's
 * ancestors (GM-11). With a profile the node gets the planned bytes if they are free. Without a profile, or once the
 * graph departs from it, the node gets the smallest gap that fits. Removing an edge or node is refused if a free would
 * no longer come before an alloc of the same bytes. A space of relocatable graphs gives each alloc node its own bytes.
 *
 * The record of an allocation outlives graph and exec while the allocation is live (GM-4). Its life changes in the
 * order of the calls: a launch that leaves it allocated begins it; rondo_free, rondo_free_async or a free node ends it.
 *
 * Each graph of the family, each exec and each live allocation retains the space. The last release retires it. It is
 * destroyed when its launches are complete (graph_heap.h).
 *
 * The space of a recording has its addresses in an arena (arena.h), which it retains. The recording's blocks and slots
 * are records too, so that nothing is placed on them. Its records have no lives. They are in a hash table of the space,
 * because recordings that never run at the same time overlap.
 *
 * Threads: different threads may use graphs of one family; their shared state is under the lock of the device's memory.
 * Lives are atomic, because launches read them without a lock.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_ADDRESS_SPACE_H
#define RONDO_MEMORY_GRAPH_MEMORY_ADDRESS_SPACE_H

#include "base/array.h"
#include "graph/graph_internal.h"
#include "memory/device_memory.h"
#include "memory/graph_memory/graph_view.h"
#include "memory/profile/memory_profile.h"

/* How many bytes of addresses each space reserves: twice the device's memory, within these limits. When a process has
 * many spaces, RONDO_ADDRESS_SPACE_SHARED divided by their number. Less when the system has no more. ThreadSanitizer
 * leaves a program about a TiB of addresses, which retired spaces would fill. */
#if defined(__SANITIZE_THREAD__)
#define RONDO_ADDRESS_SPACE_MIN (UINT64_C(4) << 30)
#define RONDO_ADDRESS_SPACE_MAX (UINT64_C(4) << 30)
#define RONDO_ADDRESS_SPACE_SHARED (UINT64_C(64) << 30)
#else
#define RONDO_ADDRESS_SPACE_MIN (UINT64_C(64) << 30)
#define RONDO_ADDRESS_SPACE_MAX (UINT64_C(1) << 40)
#define RONDO_ADDRESS_SPACE_SHARED (UINT64_C(8) << 40)
#endif

typedef enum rondo_life {
  RONDO_LIFE_NEVER = 0,
  RONDO_LIFE_LIVE = 1,
  RONDO_LIFE_ENDING = 2, /* being freed: work that uses the bytes may still run, and the free may fail */
  RONDO_LIFE_FREED = 3
} rondo_life;

/* What a record represents. */
typedef enum rondo_record_role {
  RONDO_RECORD_NODES = 0, /* alloc nodes */
  RONDO_RECORD_BLOCK = 1, /* a block of a recording: open from the beginning */
  RONDO_RECORD_SLOT = 2   /* a slot of a recording: no node frees it */
} rondo_record_role;

/* Alloc nodes with the same address, bytes and name share a record: they are live one after another. */
struct rondo_graph_allocation {
  rondo_allocation base;
  rondo_record_role role;
  uint64_t key; /* of a block: rondo_arena_block.key */
  rondo_address_space *space;
  rondo_graph_allocation *next_alike; /* in the same bucket of rondo_address_space.alike */
  size_t position;                    /* in the space's allocations */
  uint32_t references;                /* alloc nodes and execs */
  uint32_t alloc_nodes;               /* added to graphs of the family by building or capture */
  uint32_t free_nodes;                /* added to the same graphs */
  uint32_t freed_outside;             /* free nodes of other graphs */
  uint64_t peers;                     /* other devices that may access it */
  bool open;                          /* the viewed graph allocates it and does not free it */
  uint32_t free_slot;                 /* the viewed graph's last free node of it; RONDO_NO_NODE for none */
  _Atomic uint32_t life;
  rondo_device_event *freed_event; /* recorded after the last stream-ordered free; NULL: there was none */
  _Atomic uint64_t freed_queue;    /* number of its queue; 0: the next launch need not wait. Counted in ordered_frees */
};

/* Chunk `chunk` of the heap is mapped at `offset`. */
typedef struct rondo_mapping {
  size_t offset, bytes;
  uint32_t chunk;
} rondo_mapping;

/* Pages of an allocation that its graph does not free. They do not belong to a heap. */
typedef struct rondo_private_pages {
  size_t offset, bytes;
  rondo_physical *physical;
} rondo_private_pages;

/* A free node of a graph of the space that frees an allocation of another space (free_nodes.c). */
typedef struct rondo_outside_free {
  const void *address;
  uint64_t serial; /* of that space */
} rondo_outside_free;

/* How a graph of the space follows a profile. */
typedef struct rondo_planned_addresses {
  rondo_profile *profile; /* a reference; NULL when none */
  uint32_t serial;        /* of the graph */
  size_t next;            /* the next allocation of the profile */
  bool departed;
  size_t departed_slot; /* the node that departed from it */
} rondo_planned_addresses;

/* A range of addresses of a space (address_ranges.h). */
typedef struct rondo_address_range rondo_address_range;
struct rondo_address_range {
  char *base;
  size_t bytes;
  size_t offset;                       /* of `base` in the space */
  uint32_t index_node;                 /* in the index of the device's own ranges */
  _Atomic(rondo_address_range *) next; /* NULL: the last one */
};

struct rondo_address_space {
  rondo_device_memory *memory;
  rondo_arena *arena; /* a reference; NULL: the space has its own addresses */
  bool relocate;      /* its graphs are always relocated (relocation.h): nodes do not share addresses */
  atomic_uint references;
  atomic_uint live;          /* live allocations */
  atomic_uint ordered_frees; /* allocations whose free the next launch that uses their bytes waits for */
  atomic_uint clones;        /* ever created, except for execs: if there was one, records of removed nodes stay */
  uint64_t serial;           /* unique in the process */

  /* Under the memory's lock. */
  rondo_address_range first; /* `base` is NULL until the first alloc node */
  size_t fresh;              /* on a guarded device: the offsets from here on were never allocated */
  RONDO_ARRAY(rondo_graph_allocation *) allocations;
  rondo_allocation_starts *starts; /* of the records: the device's table or, in an arena, `own` */
  rondo_allocation_starts own;
  rondo_address_space *next_in_arena, **link_in_arena;
  size_t block_count;   /* the first records: the setting's blocks, in its order */
  size_t held_count;    /* the first records: blocks, then slots */
  size_t guarded_slots; /* on a guarded device: how many slots are live */
  bool slots_depart;    /* a slot is not at its planned offset */
  size_t top;           /* in an arena: the highest end of a record so far, as an offset */
  /* Hash buckets of the records of nodes, by address, bytes and name; their number is a power of two. */
  RONDO_ARRAY(rondo_graph_allocation *) alike;
  RONDO_ARRAY(rondo_outside_free) outside_frees; /* by address */
  rondo_graph_view view;
  rondo_planned_addresses planned;
  rondo_address_space *next_retired;

  /* Under the gate of `heap`; the pointer itself also under the memory's lock (graph_heap.h). */
  rondo_heap *heap;
  rondo_address_space *next_bound, **bound_link; /* in the heap's list */
  size_t need;                                   /* the offset up to which memory must be mapped for its execs */
  RONDO_ARRAY(rondo_mapping) mappings;
  RONDO_ARRAY(rondo_private_pages) privates; /* by offset */
  bool mapped;                               /* up to `need` */
  bool uploaded;                             /* mapped in advance for a later launch */
  bool mapped_before;                        /* mapping it again counts as a remap */
};

/* An empty space with one reference. It reserves no addresses before the first alloc node. */
RONDO_MUST_USE rondo_status rondo_address_space_create(rondo_device_memory *memory, rondo_address_space **out);
/* Configures the space for its first graph, before that has nodes. profile may be NULL; a guarded device, which reuses
 * no addresses, ignores it. */
void rondo_address_space_configure(rondo_address_space *space, const rondo_graph *graph, rondo_profile *profile,
                                   bool relocate);
/* The last release retires the space permanently. retain_unless_retired is for callers without a reference of their
 * own: false when the space is retired, or about to be. Any thread. */
void rondo_address_space_retain(rondo_address_space *space);
bool rondo_address_space_retain_unless_retired(rondo_address_space *space);
void rondo_address_space_release(rondo_address_space *space);
/* Adds it to the retired spaces, again if it could not be destroyed yet. */
void rondo_address_space_retire(rondo_address_space *space);

/* The space as a graph's attachment, which counts clones. forget_clone removes the clone of an exec, which cannot grow,
 * from the count. */
rondo_graph_attachment rondo_address_space_attachment(rondo_address_space *space);
void rondo_address_space_forget_clone(rondo_address_space *space);

/* The space of a graph that was created for a device. */
rondo_address_space *rondo_address_space_of(const rondo_graph *graph);

/* Begins a life if its state is still `from`; false if another call was first. The allocation is counted and retains
 * its space. Cancelling undoes that. Neither takes a lock, so that launches can call them. */
bool rondo_graph_allocation_begin(rondo_graph_allocation *allocation, rondo_life from);
void rondo_graph_allocation_cancel(rondo_graph_allocation *allocation, rondo_life before);

/* Ends a life in two steps: claim, which can be undone (false: it is not live), and finish. */
bool rondo_graph_allocation_claim(rondo_graph_allocation *allocation);
void rondo_graph_allocation_unclaim(rondo_graph_allocation *allocation);
void rondo_graph_allocation_finish(rondo_graph_allocation *allocation, rondo_queue *queue);

/* Whether its bytes may be in use: it is live or being freed. */
static inline bool rondo_graph_allocation_in_use(const rondo_graph_allocation *allocation) {
  const uint32_t life = atomic_load_explicit(&allocation->life, memory_order_acquire);
  return life == RONDO_LIFE_LIVE || life == RONDO_LIFE_ENDING;
}

/* The next launch that uses the bytes waits for the event of the free on `queue`; NULL: for nothing. */
void rondo_graph_allocation_set_freed_queue(rondo_graph_allocation *allocation, const rondo_queue *queue);

/* Creates the event that a stream-ordered free records, if there is none yet. */
RONDO_MUST_USE rondo_status rondo_graph_allocation_prepare_free(rondo_graph_allocation *allocation);

/* Frees it outside of graphs, after the work on the queue or (NULL) immediately. Takes the caller's reference. */
RONDO_MUST_USE rondo_status rondo_graph_allocation_free(rondo_graph_allocation *allocation, rondo_queue *queue);

#endif
