/* SPDX-License-Identifier: MIT
 * The virtual side of graph memory: the addresses of a graph, shared with its clones and execs, of which alloc nodes
 * get theirs when they are made (GM-2).
 *
 * Placing knows the order: bytes are free for a new alloc node when each allocation that covers them has a free node
 * among the new node's ancestors (GM-11). With a profile the planned bytes are taken as long as they are free; without
 * one, or once the graph departs from it, the smallest gap that fits. Removing the edge or node by which a free comes
 * before an alloc at the same bytes is refused. A space of relocatable graphs gives each alloc node bytes of its own.
 *
 * An allocation here is a record of its own: it may live when graph and exec are gone (GM-4). Its state changes in the
 * order of the calls: a launch that leaves it allocated makes it live, any of the three ways to free it ends that.
 *
 * Who holds the space: each graph of the family, each exec, each live allocation. The last one retires it; it goes when
 * its launches are done (see heap.h).
 *
 * The space of a recording has its addresses in an arena (arena.h), which it holds. What the recording finds alive
 * there, and what it needs for its whole length, are records too, so that they are in the way of what is placed. Its
 * records have no lives, and stand in a table of the space's own, since recordings that never run at once overlap.
 *
 * Threads: graphs of one family may be used by different threads; what they share is under the lock of the device's
 * memory. States are atomic, because launches read them without a lock.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_ADDRESS_SPACE_H
#define RONDO_MEMORY_GRAPH_MEMORY_ADDRESS_SPACE_H

#include "base/array.h"
#include "graph/graph_internal.h"
#include "memory/device_memory.h"
#include "memory/graph_memory/live_before_node.h"
#include "memory/profile/memory_profile.h"

/* What is asked of the system for each space: twice the device's memory, within these; when a process has many spaces,
 * RONDO_ADDRESS_SPACE_SHARED divided by their number; less when the system has no more. A space that is full gets
 * another range of addresses (address_ranges.h). ThreadSanitizer leaves a
 * program about a TiB of addresses, which spaces that wait for their launches would fill. */
#if defined(__SANITIZE_THREAD__)
#define RONDO_ADDRESS_SPACE_LEAST (UINT64_C(4) << 30)
#define RONDO_ADDRESS_SPACE_MOST (UINT64_C(4) << 30)
#define RONDO_ADDRESS_SPACE_SHARED (UINT64_C(64) << 30)
#else
#define RONDO_ADDRESS_SPACE_LEAST (UINT64_C(64) << 30)
#define RONDO_ADDRESS_SPACE_MOST (UINT64_C(1) << 40)
#define RONDO_ADDRESS_SPACE_SHARED (UINT64_C(8) << 40)
#endif

typedef enum rondo_life {
  RONDO_LIFE_NEVER = 0,
  RONDO_LIFE_LIVE = 1,
  RONDO_LIFE_ENDING = 2, /* a free is on its way: work that uses the bytes may run, and it may be taken back */
  RONDO_LIFE_FREED = 3
} rondo_life;

/* What a record stands for. */
typedef enum rondo_record_role {
  RONDO_RECORD_NODES = 0, /* alloc nodes */
  RONDO_RECORD_BLOCK = 1, /* what lives in the arena when the recording begins: stands open from the beginning */
  RONDO_RECORD_SLOT = 2   /* what the recording needs for its whole length: no free node is of it */
} rondo_record_role;

/* Alloc nodes with the same address, bytes and name share a record: their lifetimes follow each other. */
struct rondo_graph_allocation {
  rondo_allocation base;
  rondo_record_role role;
  rondo_address_space *space;
  rondo_graph_allocation *next_alike; /* in the same bucket of `alike` */
  size_t position;                    /* among the space's allocations */
  uint32_t references;                /* alloc nodes and execs */
  uint32_t alloc_nodes;               /* made in graphs of the family by building or capture */
  uint32_t free_nodes;                /* of the same graphs; those of others: */
  uint32_t freed_outside;
  uint64_t peers;     /* devices that may access it, as the alloc node says */
  bool open;          /* the viewed graph allocates it and does not free it */
  uint32_t free_slot; /* the viewed graph's last free node of it; RONDO_NO_NODE when there is none */
  _Atomic uint32_t life;
  rondo_device_event *freed_event;    /* recorded behind the last stream-ordered free; NULL when there was none */
  _Atomic(rondo_queue *) freed_queue; /* where; NULL when what comes next need not wait; counted by the space */
};

/* Chunk `chunk` of the heap is mapped at `offset`. */
typedef struct rondo_mapping {
  size_t offset, bytes;
  uint32_t chunk;
} rondo_mapping;

/* Pages of an allocation that its graph does not free: not the heap's. */
typedef struct rondo_private_pages {
  size_t offset, bytes;
  rondo_physical *physical;
} rondo_private_pages;

/* A free node of a graph of the space, of what another space allocates (free_nodes.c). */
typedef struct rondo_outside_free {
  const void *address;
  uint64_t serial; /* of that space */
} rondo_outside_free;

/* A block of a recording's setting. */
typedef struct rondo_found_block {
  rondo_graph_allocation *record;
  uint64_t key;
} rondo_found_block;

/* What is known of one graph of the space, the last that was built: brought up to date, and built on, with every alloc
 * and free node, so that making them does not look at the whole graph each time. */
typedef struct rondo_graph_view {
  uint32_t serial; /* 0: none */
  size_t viewed;   /* slots looked at so far */
  rondo_standpoints points;
} rondo_graph_view;

/* The profile that a graph of the space follows. */
typedef struct rondo_planned_addresses {
  rondo_profile *profile; /* a reference; NULL when none */
  uint32_t serial;        /* of the graph */
  size_t next;            /* allocation of the profile */
  bool departed;
  size_t departed_slot; /* of the node with which it did */
} rondo_planned_addresses;

/* Addresses that a space has (address_ranges.h). */
typedef struct rondo_address_range rondo_address_range;
struct rondo_address_range {
  char *base;
  size_t bytes;
  size_t offset;                       /* of `base` in the space */
  uint32_t place;                      /* in the index of the device's own ranges */
  _Atomic(rondo_address_range *) next; /* NULL: it is the last one */
};

struct rondo_address_space {
  rondo_device_memory *memory;
  rondo_arena *arena; /* a reference; NULL: the space has addresses of its own */
  bool relocate;      /* its graphs are instantiated with relocate only: addresses are not shared (relocation.h) */
  atomic_uint references;
  atomic_uint live;          /* allocations alive */
  atomic_uint ordered_frees; /* allocations whose bytes the next launch that gives them out waits for */
  atomic_uint clones;        /* ever made, but for those of execs: with one, records of removed nodes stay */
  uint64_t serial;           /* unique in the process */

  /* Under the memory's lock. */
  rondo_address_range first; /* without a base until the first alloc node */
  size_t fresh;              /* on a guarded device: the offset from which on no allocation has been */
  RONDO_ARRAY(rondo_graph_allocation *) allocations;
  rondo_allocation_starts *starts; /* that the records stand in: the device's, in an arena `own` */
  rondo_allocation_starts own;
  rondo_address_space *next_in_arena, **link_in_arena;
  RONDO_ARRAY(rondo_found_block) blocks; /* of the setting, in its order */
  size_t held_count;                     /* the first records: blocks and slots */
  size_t guarded_slots;                  /* on a guarded device: those that live */
  bool slots_depart;                     /* a slot does not stand where the profile has it */
  size_t top;                            /* in an arena: offset that the records reach to, or did */
  RONDO_ARRAY(rondo_graph_allocation *)
  alike; /* buckets of the same ones, by address, bytes and name; a power of two */
  RONDO_ARRAY(rondo_outside_free) outside_frees; /* by address */
  rondo_graph_view view;
  rondo_planned_addresses planned;
  rondo_address_space *next_retired;

  /* Under the gate of `heap`; the pointer itself also under the memory's lock (heap.h). */
  rondo_heap *heap;
  rondo_address_space *next_bound, **bound_link; /* in the heap's list */
  size_t need;                                   /* the offset up to which memory must be mapped for its execs */
  RONDO_ARRAY(rondo_mapping) mappings;
  RONDO_ARRAY(rondo_private_pages) privates; /* by offset */
  bool mapped;                               /* all that `need` asks for */
  bool uploaded;                             /* mapped ahead of a launch that has not come yet */
  bool mapped_before;                        /* ever: mapping again counts as a remap */
};

/* An empty space, held once. It takes no addresses before the first alloc node. */
RONDO_MUST_USE rondo_status rondo_address_space_create(rondo_device_memory *memory, rondo_address_space **out);
/* For the graph that the space was made for, before its first node; profile may be NULL. A guarded device gives no
 * address out twice, so there it is not followed. */
void rondo_address_space_configure(rondo_address_space *space, const rondo_graph *graph, rondo_profile *profile,
                                   bool relocate);
/* The last release retires the space, for good. Who does not know of a reference that lasts asks for one: false when
 * the space is retired, or about to be. Any thread. */
void rondo_address_space_retain(rondo_address_space *space);
bool rondo_address_space_retain_unless_retired(rondo_address_space *space);
void rondo_address_space_release(rondo_address_space *space);

/* The same as a graph's attachment, which counts the clones that are made. An exec's clone is not a graph that can
 * grow: it is taken out of the count again. */
rondo_graph_attachment rondo_address_space_attachment(rondo_address_space *space);
void rondo_address_space_forget_clone(rondo_address_space *space);

/* The space of a graph that was made for a device. */
rondo_address_space *rondo_address_space_of(const rondo_graph *graph);

/* A life begins, if it is still `from` (false: another call was first): the allocation now counts and holds its space.
 * Cancelling takes it back: the life is `before` again. No lock, so that a launch can call these. */
bool rondo_graph_allocation_begin(rondo_graph_allocation *allocation, rondo_life from);
void rondo_graph_allocation_cancel(rondo_graph_allocation *allocation, rondo_life before);

/* A life ends in two steps: the claim (false: it does not live) can be taken back, the finish gives up what it held. */
bool rondo_graph_allocation_claim(rondo_graph_allocation *allocation);
void rondo_graph_allocation_unclaim(rondo_graph_allocation *allocation);
void rondo_graph_allocation_finish(rondo_graph_allocation *allocation, rondo_queue *queue);

/* Whether its bytes may be in use by what came before a free of it, or by who is to free it. */
static inline bool rondo_graph_allocation_holds(const rondo_graph_allocation *allocation) {
  const uint32_t life = atomic_load_explicit(&allocation->life, memory_order_acquire);
  return life == RONDO_LIFE_LIVE || life == RONDO_LIFE_ENDING;
}

/* Who gives the bytes out next waits for the event of the free on `queue`; NULL: for nothing. */
void rondo_graph_allocation_set_freed_queue(rondo_graph_allocation *allocation, rondo_queue *queue);

/* Makes the event that a stream-ordered free records, if there is none yet. */
RONDO_MUST_USE rondo_status rondo_graph_allocation_prepare_free(rondo_graph_allocation *allocation);

/* Frees it from outside, after what is queued or (NULL) at once. The caller holds a reference. */
RONDO_MUST_USE rondo_status rondo_graph_allocation_free(rondo_graph_allocation *allocation, rondo_queue *queue);

#endif
