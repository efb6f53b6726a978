/* SPDX-License-Identifier: MIT
 * Arenas: the memory that the recordings of a tree have in common. An arena is one reserved range of addresses with
 * physical memory behind its first bytes. The graphs recorded into it have all their alloc nodes' addresses there, so
 * that recordings that never run at once use the same bytes, and the arena is as large as the path that needs most.
 *
 * A recording is a capture into the arena (exec/capture/arena_capture.h). What is alive when it begins are its
 * *blocks*: bytes that it never gives out, unless it frees the block, which makes a free node after which they are its
 * own. What it needs for its whole length are its *slots*. What it allocates gets addresses from a plan, when what the
 * work allocates is known from an earlier run (lifetime_log.h) or a plan of the whole path was made; else, and from
 * where it departs from its plan on, by best fit in the order of the graph, as any graph's alloc nodes
 * (alloc_node_address.c). What it allocates and does not free are its *outputs*: a plan places them at the low end, one
 * behind the other, so that those that come later on the path find the rest in one piece; before an output is allocated
 * its bytes serve others.
 *
 * Which of the blocks and outputs live between two launches is the holder's account alone. A launch of an exec whose
 * memory is an arena's is the driver's launch: nothing is mapped, waited for, locked or counted. So the holder
 * - backs the arena (rondo_arena_back) before the first launch of a recording, for as much as it says it needs;
 * - orders launches of recordings one after another: on one stream, or by events;
 * - launches a recording only while nothing but its blocks lives, of what it may write.
 * Launching it again while its outputs live is fine and makes them again.
 *
 * Graphs, their clones and execs hold the arena: destroying it takes it from its owner, and its memory goes with the
 * last of them. They can be destroyed at any time after their launches; that ends no block's or output's life.
 * A graph recorded into an arena can be cloned, instantiated any number of times, embedded as a child (where it stands
 * with others of its arena, verification sees to it that no two use the same bytes), and updated from: an exec may be
 * updated to another recording of the arena. It cannot be relocated (UNSUPPORTED/NOT_RELOCATABLE). Memory of graphs
 * that are embedded in it and have addresses of their own is framed and mapped as ever.
 *
 * Outside of recordings an arena's memory cannot be freed: rondo_free and rondo_free_async of it fail with
 * INVALID_LIFETIME/FOREIGN_ADDRESS (INTERIOR_ADDRESS is never said), free nodes of other graphs with
 * INVALID_ARGUMENT/FOREIGN_ADDRESS, naming the arena. Elsewhere an address of it means all that is backed: copies and
 * fills are checked against its end. Verification of a graph of the arena knows its blocks, slots and allocations by
 * name; an access to other bytes of the arena is USE_AFTER_FREE. Access by other devices is that of the pools at the
 * mallocs, for the whole arena (GM-17).
 *
 * On a guarded device ("cpu:check") nothing shares bytes, and no plan is followed: each allocation and slot has pages
 * of its own, which other recordings get only after its own is gone, and then late; so much more is backed than
 * elsewhere. A slot lives as long as its recording, an allocation from its alloc node to its free node, an output until
 * rondo_arena_end_life, or until it is allocated again.
 *
 * Threads: an arena, and building graphs in it, one at a time; looking addresses up, statistics and the release of its
 * graphs and execs any.
 */
#ifndef RONDO_MEMORY_ARENA_ARENA_H
#define RONDO_MEMORY_ARENA_ARENA_H

#include <rondo/plan.h>
#include <rondo/profile.h>

#include "memory/device_memory.h"
#include "memory/profile/lifetime_log.h"

typedef struct rondo_arena_options {
  size_t reserve;   /* bytes of addresses; 0: as graphs have, twice the device's memory */
  const char *name; /* for messages; NULL: "" */
} rondo_arena_options;

/* OUT_OF_MEMORY (addresses, or host memory); UNSUPPORTED (a device without memory nodes). */
RONDO_MUST_USE rondo_status rondo_arena_create(rondo_device_memory *memory, const rondo_arena_options *options,
                                               rondo_arena **out);

/* The owner gives it up, with all launches done. NULL is fine. */
void rondo_arena_destroy(rondo_arena *arena);

/* Puts memory behind the first `bytes` of the arena, if there is none yet; at once, on the host, disturbing nothing
 * that runs. OUT_OF_MEMORY (the device's limit, or system's; pools give back what they hold idle first), LIMIT_EXCEEDED
 * (more than is reserved): what is backed stays as it was. */
RONDO_MUST_USE rondo_status rondo_arena_back(rondo_arena *arena, size_t bytes);

/* Gives memory behind the first `keep` bytes back to the system, as far as it came in pieces that lie there whole.
 * Nothing that runs or lives may be there. Fails as the driver does; what was not given back stays backed. */
RONDO_MUST_USE rondo_status rondo_arena_trim(rondo_arena *arena, size_t keep);

typedef struct rondo_arena_info {
  void *base;
  size_t reserved;
  size_t backed;       /* bytes from the base that have memory */
  size_t high;         /* what the recordings that there are need, at most: no trim to less */
  uint32_t recordings; /* graphs recorded into it that there are, or of which there are clones or execs */
} rondo_arena_info;

void rondo_arena_get_info(const rondo_arena *arena, rondo_arena_info *out);

rondo_device *rondo_arena_device(const rondo_arena *arena);

/* Whether the address is among the reserved ones. */
bool rondo_arena_owns(const rondo_arena *arena, const void *address);

/* Settings --------------------------------------------------------------------------------------------------------- */

/* What lives when a recording begins: an output of an earlier one. */
typedef struct rondo_arena_block {
  void *address;
  size_t bytes;
  const char *name; /* copied; NULL: "" */
  uint64_t key;     /* the holder's, by which noted lifetimes know where the work gives it up; 0: none */
  uint32_t part;    /* of a path: the first that may give it up; without a key, one before which it is dead, not 0 */
} rondo_arena_block;

/* What a recording needs for its whole length, as an input that is copied. */
typedef struct rondo_arena_slot {
  size_t bytes;
  const char *name; /* copied; NULL: "" */
  void *address;    /* set by the begin; aligned to 256 */
} rondo_arena_slot;

/* How a recording begins. Of `profile` and `lifetimes` one at most is given; with neither it is placed online. */
typedef struct rondo_arena_setting {
  rondo_arena *arena;
  const rondo_arena_block *blocks;
  size_t block_count;
  rondo_arena_slot *slots;
  size_t slot_count;
  const rondo_noted_lifetimes *lifetimes; /* planned with blocks and slots as they stand */
  rondo_profile *profile;                 /* of rondo_arena_plan_path, for as many slots of the same sizes */
  const rondo_plan_options *plan;         /* for `lifetimes`; NULL: until 1.005 of the lower bound, 5 ms at most */
} rondo_arena_setting;

/* Watching --------------------------------------------------------------------------------------------------------- */

/* An access of the host's to memory that is not there. */
typedef struct rondo_arena_access {
  void *address; /* the first one, somewhere in `bytes` bytes; NULL: there was none */
  size_t bytes;
} rondo_arena_access;

/* Recordings ------------------------------------------------------------------------------------------------------- */

/* An output: what a recording allocates and does not free. */
typedef struct rondo_arena_output {
  void *address;
  size_t bytes;
  const char *name;    /* the graph's; never NULL */
  uint32_t node;       /* number of the alloc node */
  uint32_t allocation; /* the how manieth of the recording it is, from 0: its number in noted lifetimes */
} rondo_arena_output;

/* What a graph of an arena uses. */
typedef struct rondo_arena_recording {
  rondo_arena *arena;
  size_t need;        /* bytes from the arena's base that must be backed for a launch: also blocks and slots */
  bool planned;       /* it was made with a plan */
  bool departed;      /* ... which it did not follow to its end: record it again with the graph's own lifetimes */
  size_t peak;        /* of that plan, with blocks and slots; 0 without a plan */
  size_t least;       /* most bytes of blocks, slots and allocations that live at once: no arena can do with less. A
                         block that is given up counts up to there if it has a key */
  size_t lower_bound; /* no plan needs less, with the blocks where they are; 0 without a plan */
  rondo_arena_output *outputs; /* in the order of making */
  size_t output_count;
  uint32_t *ended; /* which blocks it frees, by their places in the setting, ascending */
  size_t ended_count, ended_room;
} rondo_arena_recording;

/* Whole paths ------------------------------------------------------------------------------------------------------ */

/* The end of an output's life further on the path. */
typedef struct rondo_path_end {
  uint32_t allocation; /* of the part that allocates it */
  uint32_t part;       /* before which it is dead, or, with `key`, within which it ends: a later one */
  uint64_t key;        /* 0: between the parts; else that of an end in that part's noted lifetimes */
} rondo_path_end;

/* One recording of a path. */
typedef struct rondo_path_part {
  const rondo_noted_lifetimes *lifetimes;
  const size_t *slots; /* bytes of each */
  size_t slot_count;
  const rondo_path_end *ends; /* of its outputs; those that are not among them outlive the path */
  size_t end_count;
  rondo_profile *profile; /* set: to be recorded with, in the order of the path; released by the caller */
} rondo_path_part;

/* Guarded devices -------------------------------------------------------------------------------------------------- */

#endif
