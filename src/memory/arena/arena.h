/* SPDX-License-Identifier: MIT
 * Arenas: the memory that the recordings of a tree share. An arena is one reserved range of addresses whose first bytes
 * are backed by physical memory. The alloc nodes of the graphs recorded into it have their addresses there, so that
 * recordings that never run at once use the same bytes, and the arena is as large as the largest path needs.
 *
 * A recording is a capture into the arena (exec/capture/arena_capture.h). What is live when it begins are its *blocks*:
 * it never reuses their bytes, unless it frees the block, which makes a free node. What it needs for its whole length
 * are its *slots*. Its allocations get addresses from a plan, when they are known from an earlier run (lifetime_log.h)
 * or the whole path was planned. Without a plan, and from where it departs from its plan on, they get the best fit in
 * the order of the graph, like any graph's alloc nodes (alloc_node_address.c). Allocations that it does not free are
 * its *outputs*. A plan places them at the low end, one after another, so that later recordings of the path find the
 * rest in one piece; before an output is allocated, its bytes serve others.
 *
 * Only the owner knows which blocks and outputs are live between two launches. A launch of an exec with memory in an
 * arena is only the driver's launch: nothing is mapped, waited for, locked or counted. So the owner
 * - backs the arena (rondo_arena_back) before the first launch of a recording, for as many bytes as it needs;
 * - orders launches of recordings one after another, on one stream or by events;
 * - launches a recording only while nothing is live, of the bytes that it may write, but its blocks. Launching it again
 * while its outputs are live is allowed and recomputes them.
 *
 * Graphs, their clones and execs retain the arena. Destroying the arena takes it from its owner, and its memory is
 * freed with the last of them. They can be destroyed at any time after their launches; that ends no block or output.
 * A graph recorded into an arena can be cloned, instantiated any number of times, embedded as a child (verification
 * makes sure that no two graphs of an arena in one exec use the same bytes), and updated from: an exec can be updated
 * to another recording of the arena. It cannot be relocated (UNSUPPORTED/NOT_RELOCATABLE). Graphs that are embedded in
 * it and have addresses of their own are mapped as usual.
 *
 * Outside of recordings an arena's memory cannot be freed: rondo_free and rondo_free_async fail with
 * INVALID_LIFETIME/FOREIGN_ADDRESS (never INTERIOR_ADDRESS), free nodes of other graphs with
 * INVALID_ARGUMENT/FOREIGN_ADDRESS, and name the arena. Elsewhere an address in it means the whole backed part: copies
 * and fills are checked against its end. Verification of a graph of the arena knows its blocks, slots and allocations
 * by name; an access to other bytes of the arena is USE_AFTER_FREE. Other devices may access the whole arena if the
 * pools of its allocations let them (GM-17).
 *
 * On a guarded device ("cpu:check") nothing shares bytes and no plan is followed: each allocation and slot has pages of
 * its own, which other recordings get only after it is gone, and late. So more is backed than on other devices. A slot
 * lives as long as its recording, an allocation from its alloc node to its free node, an output until
 * rondo_arena_end_life or until it is allocated again.
 *
 * Threads: one thread at a time for an arena and for building graphs in it; any thread for looking addresses up, for
 * statistics, and for releasing graphs and execs.
 */
#ifndef RONDO_MEMORY_ARENA_ARENA_H
#define RONDO_MEMORY_ARENA_ARENA_H

#include <rondo/plan.h>
#include <rondo/profile.h>

#include "memory/device_memory.h"
#include "memory/profile/lifetime_log.h"

typedef struct rondo_arena_options {
  size_t reserve;   /* bytes of addresses; 0: twice the device's memory, as for graphs */
  const char *name; /* for messages; NULL: "" */
} rondo_arena_options;

/* OUT_OF_MEMORY (addresses, or host memory); UNSUPPORTED (a device without memory nodes). */
RONDO_MUST_USE rondo_status rondo_arena_create(rondo_device_memory *memory, const rondo_arena_options *options,
                                               rondo_arena **out);

/* Takes the arena from its owner, when all launches are complete. NULL is allowed. */
void rondo_arena_destroy(rondo_arena *arena);

/* Backs the first `bytes` of the arena, unless they are backed already; at once, on the host, without disturbing work
 * that runs. OUT_OF_MEMORY (the limit of the device or system, after pools have released their unused memory),
 * LIMIT_EXCEEDED (more than is reserved): the backed bytes do not change. */
RONDO_MUST_USE rondo_status rondo_arena_back(rondo_arena *arena, size_t bytes);

/* Gives memory after the first `keep` bytes back to the system, in the pieces in which it was backed. Nothing live and
 * no running work may use it. Fails as the driver does; memory that was not released stays backed. */
RONDO_MUST_USE rondo_status rondo_arena_trim(rondo_arena *arena, size_t keep);

typedef struct rondo_arena_info {
  void *base;
  size_t reserved;
  size_t backed;       /* bytes from the base that have memory */
  size_t high;         /* the most that an existing recording needs: do not trim below */
  uint32_t recordings; /* graphs recorded into it that exist, or whose clones or execs do */
} rondo_arena_info;

void rondo_arena_get_info(const rondo_arena *arena, rondo_arena_info *out);

rondo_device *rondo_arena_device(const rondo_arena *arena);

/* Whether the address is among the reserved ones. */
bool rondo_arena_owns(const rondo_arena *arena, const void *address);

/* Settings --------------------------------------------------------------------------------------------------------- */

/* What is live when a recording begins: an output of an earlier one. */
typedef struct rondo_arena_block {
  void *address;
  size_t bytes;
  const char *name; /* copied; NULL: "" */
  uint64_t key;     /* of the owner, by which logged lifetimes know where the work frees it; 0: none */
  uint32_t part; /* of a path: with a key, the first that may free it; without, the one before which it is dead; or 0 */
} rondo_arena_block;

/* What a recording needs for its whole length, for example an input that is copied. */
typedef struct rondo_arena_slot {
  size_t bytes;
  const char *name; /* copied; NULL: "" */
  void *address;    /* set by the begin; aligned to 256 */
} rondo_arena_slot;

/* How a recording begins. At most one of `profile` and `lifetimes` is given; with neither there is no plan. */
typedef struct rondo_arena_setting {
  rondo_arena *arena;
  const rondo_arena_block *blocks;
  size_t block_count;
  rondo_arena_slot *slots;
  size_t slot_count;
  const rondo_noted_lifetimes *lifetimes; /* planned around the blocks, with the slots */
  rondo_profile *profile;                 /* of rondo_arena_plan_path, for as many slots of the same sizes */
  const rondo_plan_options *plan;         /* for `lifetimes`; NULL: until 1.005 of the lower bound, 5 ms at most */
} rondo_arena_setting;

/* Recordings ------------------------------------------------------------------------------------------------------- */

/* An output: what a recording allocates and does not free. */
typedef struct rondo_arena_output {
  void *address;
  size_t bytes;
  const char *name;    /* the graph's; never NULL */
  uint32_t node;       /* number of the alloc node */
  uint32_t allocation; /* its number in the recording's logged lifetimes, from 0 */
} rondo_arena_output;

/* What a graph of an arena uses. */
typedef struct rondo_arena_recording {
  rondo_arena *arena;
  size_t need;        /* bytes from the arena's base that must be backed for a launch, with blocks and slots */
  bool planned;       /* it was recorded with a plan */
  bool departed;      /* ... and did not follow it to its end: record it again with the graph's own lifetimes */
  size_t peak;        /* of that plan, with blocks and slots; 0 without a plan */
  size_t least;       /* most bytes of blocks, slots and allocations that are live at once: no arena needs less. A
                         block with a key that the recording frees counts up to that free */
  size_t lower_bound; /* no plan needs less, with the blocks where they are; 0 without a plan */
  rondo_arena_output *outputs; /* in the order of their alloc nodes */
  size_t output_count;
  uint32_t *ended; /* which blocks of the setting it frees, ascending */
  size_t ended_count, ended_room;
} rondo_arena_recording;

/* Whole paths ------------------------------------------------------------------------------------------------------ */

/* Where the life of an output ends on the path. */
typedef struct rondo_path_end {
  uint32_t allocation; /* of the part that allocates it */
  uint32_t part;       /* a later part: the output ends before it or, with `key`, within it */
  uint64_t key;        /* 0: between the parts; otherwise the key of an end in that part's logged lifetimes */
} rondo_path_end;

/* One recording of a path. */
typedef struct rondo_path_part {
  const rondo_noted_lifetimes *lifetimes;
  const size_t *slots; /* bytes of each */
  size_t slot_count;
  const rondo_path_end *ends; /* of its outputs; outputs without an end outlive the path */
  size_t end_count;
  rondo_profile *profile; /* set: the part is recorded with it, in the path's order; the caller releases it */
} rondo_path_part;

#endif
