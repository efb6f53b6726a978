/* SPDX-License-Identifier: MIT
 * A group of ranks on one machine: how ranks find each other, how they detect that one has ended, and their shared
 * memory. A rank is the holder of the lock on byte `rank` of the rendezvous file. The system releases the lock when the
 * process ends, however it ends. (The locks belong to open files and not to processes, so that ranks of one process
 * differ too.) The file's head describes the group; after it each rank has two slots for data, which only that rank
 * writes.
 *
 * Threads: entering, awaiting, reserving and leaving belong to one thread at a time; any thread may ask and ring.
 */
#ifndef RONDO_EXEC_COLLECTIVE_GROUP_H
#define RONDO_EXEC_COLLECTIVE_GROUP_H

#include <rondo/collective.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/allocation.h"
#include "base/thread.h"

#define RONDO_GROUP_TOKEN_BYTES 128
#define RONDO_GROUP_TEXT 320
#define RONDO_GROUP_PATH 256

/* What a rank says that it does in a piece. All ranks say the same. */
typedef struct rondo_group_work {
  uint64_t count; /* of the whole collective */
  uint64_t first; /* of the piece */
  uint32_t operation, type, reduction, root;
} rondo_group_work;

typedef struct rondo_group_member {
  alignas(RONDO_CACHE_LINE) _Atomic uint32_t present;  /* has come, as long as the lock is held */
  _Atomic uint32_t left;                               /* in order */
  _Atomic uint32_t failed;                             /* set after the failure was written */
  _Atomic uint64_t arrived;                            /* pieces that it has put into its slots */
  alignas(RONDO_CACHE_LINE) _Atomic uint32_t doorbell; /* futex; grows when somebody has news for it */
  _Atomic uint32_t sleeping;
  alignas(RONDO_CACHE_LINE) rondo_group_work works[2]; /* by the piece's number, as the slots */
  char failure[RONDO_GROUP_TEXT];
} rondo_group_member;

typedef struct rondo_group_header {
  _Atomic uint64_t magic;
  uint32_t world_size;
  uint32_t piece_bytes;                         /* of a slot; 0: no slots */
  uint32_t kind;                                /* of device */
  _Atomic uint32_t complete;                    /* futex */
  unsigned char token[RONDO_GROUP_TOKEN_BYTES]; /* rank 0's, there when it is complete */
  rondo_group_member members[];
} rondo_group_header;

typedef struct rondo_group {
  rondo_allocator allocator;
  int file;
  uint32_t rank, world_size;
  uint32_t piece_bytes;
  rondo_group_header *header;
  unsigned char *slots;
  size_t mapped_bytes;
  _Atomic uint64_t reserved_bytes; /* of each of the rank's slots */
  uint64_t deadline_ns;            /* of joining */
  char path[RONDO_GROUP_PATH];
} rondo_group;

typedef struct rondo_group_options {
  const char *path;
  uint32_t rank, world_size, piece_bytes, kind;
  const void *token; /* rank 0's, RONDO_GROUP_TOKEN_BYTES; NULL on others, or when there is none */
  uint64_t timeout_ns;
} rondo_group_options;

/* Takes the rank; does not wait for the others. Errors as rondo_communicator_create. */
RONDO_MUST_USE rondo_status rondo_group_enter(const rondo_allocator *allocator, const rondo_group_options *options,
                                              rondo_group **out);
/* Waits until all ranks have joined: UNAVAILABLE/TIMED_OUT naming those that have not. Call rondo_group_leave in any
 * case. */
RONDO_MUST_USE rondo_status rondo_group_await(rondo_group *group);
/* NULL is fine. The last rank that leaves removes the file. */
void rondo_group_leave(rondo_group *group);

/* Makes sure that the first `bytes` of each of the rank's slots have memory. OUT_OF_MEMORY naming the file. */
RONDO_MUST_USE rondo_status rondo_group_reserve(rondo_group *group, size_t bytes);

/* Whether that rank's process still has it. */
bool rondo_group_is_alive(const rondo_group *group, uint32_t rank);

void rondo_group_ring(rondo_group *group, uint32_t rank);
/* Sleeps until this rank is rung, unless it was since its doorbell showed `seen`, or the time has passed. */
void rondo_group_sleep(rondo_group *group, uint32_t seen, uint64_t timeout_ns);

static inline rondo_group_member *rondo_group_self(const rondo_group *group) {
  return &group->header->members[group->rank];
}

/* The slot of a rank for that piece. */
static inline unsigned char *rondo_group_slot(const rondo_group *group, uint32_t rank, uint64_t piece) {
  return group->slots + (2 * (size_t)rank + piece % 2) * group->piece_bytes;
}

#endif
