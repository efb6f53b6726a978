/* SPDX-License-Identifier: MIT
 * Arenas: the memory that the recordings of a tree share. An arena is one reserved range of addresses whose first bytes
 * are backed by physical memory. The alloc nodes of the graphs recorded into it have their addresses there. So
 * recordings that never run at the same time use the same bytes, and the arena is as large as the largest path needs.
 *
 * A recording is a capture into the arena (exec/capture/arena_capture.h). Its *blocks* are the memory that is live when
 * it begins. It never reuses their bytes, unless it frees the block, which makes a free node. Its *slots* are the
 * memory that it needs from its begin to its end. Its *outputs* are the allocations that it does not free. Allocations
 * get addresses from a plan, if they are known from an earlier run (lifetime_log.h) or the whole path was planned.
 * Without a plan, or once the recording departs from its plan, they get the best fit, like the alloc nodes of other
 * graphs (alloc_node_address.c). A plan places outputs at the low end, one after another, so that the rest stays in one
 * piece for later recordings of the path. Before an output is allocated, other allocations may use its bytes.
 *
 * Only the owner knows which blocks and outputs are live between two launches. A launch of an exec with memory in an
 * arena is only the driver's launch: it maps nothing, waits for nothing, takes no lock and counts nothing. So the owner
 * - backs the arena (rondo_arena_back) before the first launch of a recording, for as many bytes as it needs;
 * - orders launches of recordings one after another, on one stream or by events;
 * - launches a recording only while its blocks are the only live memory among the bytes that it may write. Launching it
 *   again while its outputs are live is allowed and recomputes them.
 *
 * Graphs, their clones and execs retain the arena. rondo_arena_destroy releases the owner's reference; the memory is
 * freed with the last reference. Graphs and execs can be destroyed at any time after their launches; that ends no block
 * or output. A graph recorded into an arena can be cloned, instantiated any number of times, and embedded as a child
 * (verification ensures that no two graphs of an arena in one exec use the same bytes). An exec can be updated to
 * another recording of the arena. The graph cannot be relocated (UNSUPPORTED/NOT_RELOCATABLE). Embedded graphs with
 * their own addresses are mapped as usual.
 *
 * Outside of recordings an arena's memory cannot be freed: rondo_free and rondo_free_async fail with
 * INVALID_LIFETIME/FOREIGN_ADDRESS (never INTERIOR_ADDRESS), free nodes of other graphs with
 * INVALID_ARGUMENT/FOREIGN_ADDRESS, and name the arena. Elsewhere an address in it refers to the whole backed part:
 * copies and fills are checked against its end. Verification of a graph of the arena knows its blocks, slots and
 * allocations by name; an access to other bytes of the arena is USE_AFTER_FREE. Other devices may access the whole
 * arena if the pools of its allocations allow it (GM-17).
 *
 * On a guarded device ("cpu:check") no bytes are shared and no plan is followed: each allocation and slot has its own
 * pages, which other recordings reuse as late as possible. So more memory is backed than on other devices. A slot lives
 * as long as its recording, an allocation from its alloc node to its free node, an output until rondo_arena_end_life or
 * until it is allocated again.
 *
 * Threads: one thread at a time for an arena and for building graphs in it; any thread for looking up addresses, for
 * statistics, and for releasing graphs and execs.
 */
#ifndef RONDO_MEMORY_ARENA_ARENA_H
#define RONDO_MEMORY_ARENA_ARENA_H

#include <rondo/plan.h>
#include <rondo/profile.h>

#include "memory/device_memory.h"
#include "memory/profile/lifetime_log.h"

typedef struct rondo_arena_options {
  size_t reserve;   /* bytes of addresses to reserve; 0: twice the device's memory, as for graphs */
  const char *name; /* for messages; NULL: "" */
} rondo_arena_options;

/* OUT_OF_MEMORY (addresses, or host memory); UNSUPPORTED (a device without memory nodes). */
RONDO_MUST_USE rondo_status rondo_arena_create(rondo_device_memory *memory, const rondo_arena_options *options,
                                               rondo_arena **out);

/* Releases the owner's reference, when all launches are complete. NULL is allowed. */
void rondo_arena_destroy(rondo_arena *arena);

/* Backs the first `bytes` of the arena with memory, on the host, before it returns. Running work is not affected.
 * OUT_OF_MEMORY (the limit of the device or system, after pools have released their unused memory), LIMIT_EXCEEDED
 * (more than is reserved): the backed bytes do not change. */
RONDO_MUST_USE rondo_status rondo_arena_back(rondo_arena *arena, size_t bytes);

/* Returns memory after the first `keep` bytes to the system, in the pieces in which it was backed. No live block or
 * output and no running work may use it. Returns the driver's errors; memory that was not released stays backed. */
RONDO_MUST_USE rondo_status rondo_arena_trim(rondo_arena *arena, size_t keep);

typedef struct rondo_arena_info {
  void *base;
  size_t reserved;
  size_t backed;       /* bytes from the base that have memory */
  size_t high;         /* the maximum need of the existing recordings: do not trim below */
  uint32_t recordings; /* graphs recorded into it that exist, or whose clones or execs exist */
} rondo_arena_info;

void rondo_arena_get_info(const rondo_arena *arena, rondo_arena_info *out);

rondo_device *rondo_arena_device(const rondo_arena *arena);

/* Whether the address is among the reserved ones. */
bool rondo_arena_owns(const rondo_arena *arena, const void *address);

/* Settings --------------------------------------------------------------------------------------------------------- */

/* Memory that is live when a recording begins: an output of an earlier one. */
typedef struct rondo_arena_block {
  void *address;
  size_t bytes;
  const char *name; /* copied; NULL: "" */
  uint64_t key;     /* chosen by the owner: identifies it in logged lifetimes that free it; 0: none */
  /* In a path. With a key: the first part that may free it. Without: the part before which it ends, or 0. */
  uint32_t part;
} rondo_arena_block;

/* Memory that a recording needs from its begin to its end, for example for an input that is copied. */
typedef struct rondo_arena_slot {
  size_t bytes;
  const char *name; /* copied; NULL: "" */
  void *address;    /* set by rondo_arena_begin; aligned to 256 */
} rondo_arena_slot;

/* How a recording begins. Set at most one of `profile` and `lifetimes`; without both there is no plan. */
typedef struct rondo_arena_setting {
  rondo_arena *arena;
  const rondo_arena_block *blocks;
  size_t block_count;
  rondo_arena_slot *slots;
  size_t slot_count;
  const rondo_noted_lifetimes *lifetimes; /* to be planned around the blocks, with the slots */
  rondo_profile *profile;                 /* of rondo_arena_plan_path, for as many slots of the same sizes */
  const rondo_plan_options *plan;         /* for `lifetimes`; NULL: up to 5 ms, until within 1.005 of the bound */
} rondo_arena_setting;

/* Recordings ------------------------------------------------------------------------------------------------------- */

/* An output: an allocation that a recording does not free. */
typedef struct rondo_arena_output {
  void *address;
  size_t bytes;
  const char *name;    /* the graph's; never NULL */
  uint32_t node;       /* number of the alloc node */
  uint32_t allocation; /* its index in the recording's logged lifetimes */
} rondo_arena_output;

/* What a graph that was recorded into an arena uses. */
typedef struct rondo_arena_recording {
  rondo_arena *arena;
  size_t need;   /* bytes from the arena's base that must be backed for a launch, with blocks and slots */
  bool planned;  /* it was recorded with a plan */
  bool departed; /* it did not follow the plan to its end: record it again with the graph's own lifetimes */
  size_t peak;   /* of that plan, with blocks and slots; 0 without a plan */
  /* The maximum number of bytes of blocks, slots and allocations that are live at the same time: no arena needs less. A
   * block with a key counts until the recording frees it. */
  size_t least;
  size_t lower_bound;          /* the minimum for any plan with the blocks at their addresses; 0 without a plan */
  rondo_arena_output *outputs; /* in the order of their alloc nodes */
  size_t output_count;
  uint32_t *ended; /* which blocks of the setting it frees, ascending */
  size_t ended_count, ended_room;
} rondo_arena_recording;

/* Whole paths ------------------------------------------------------------------------------------------------------ */

/* Where the life of an output ends in the path. */
typedef struct rondo_path_end {
  uint32_t allocation; /* of the part that allocates it */
  uint32_t part;       /* a later part: the output ends before it or, with `key`, in it */
  uint64_t key;        /* 0, or the key of an end in that part's logged lifetimes */
} rondo_path_end;

/* One recording of a path. */
typedef struct rondo_path_part {
  const rondo_noted_lifetimes *lifetimes;
  const size_t *slots; /* their sizes in bytes */
  size_t slot_count;
  const rondo_path_end *ends; /* of its outputs; outputs without an end outlive the path */
  size_t end_count;
  rondo_profile *profile; /* set by rondo_arena_plan_path: record the part with it; the caller releases it */
} rondo_path_part;

#endif
