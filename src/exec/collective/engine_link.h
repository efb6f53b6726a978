/* SPDX-License-Identifier: MIT
 * A communicator on a collective engine (<rondo/collective_engine.h>). A collective is two nodes or two pieces of work
 * of a queue: a kernel that starts it, and a wait for the link's semaphore, which is raised when it is done. The kernel
 * declares what the collective reads and writes, so verification, relocation and updates see it.
 *
 * Invariant: one collective is in progress at a time (`is_busy`), and it has the number `started`; `completed` follows.
 * It is done when the engine's test says so. If the engine needs polling, the thread that starts a collective polls for
 * a moment, then threads of the device that have nothing to do, and the progress thread from time to time. Otherwise
 * the engine rings that thread. That thread also notices a timeout.
 *
 * Life: `event` represents the semaphore in graphs, and its references count the users of the link: the user, the
 * kernels that graphs name, and nodes of execs. With the last one the semaphore is destroyed. It ends after the
 * executables that still run, and then everything is freed.
 *
 * Threads: `turn` is a lock for calls of the engine's start, test and watch. Any thread may fail the link; the first
 * failure counts.
 */
#ifndef RONDO_EXEC_COLLECTIVE_ENGINE_LINK_H
#define RONDO_EXEC_COLLECTIVE_ENGINE_LINK_H

#include "base/thread.h"
#include "exec/collective/communicator.h"

/* By what the collective has on this rank: a source, a destination, both (also one buffer in place), or none. */
enum {
  RONDO_ENGINE_NO_BUFFER,
  RONDO_ENGINE_READS,
  RONDO_ENGINE_WRITES,
  RONDO_ENGINE_READS_AND_WRITES,
  RONDO_ENGINE_UPDATES,
  RONDO_ENGINE_KERNELS
};

/* The last parameter of the kernels. No padding: graphs compare it as bytes. */
typedef struct rondo_engine_call {
  uint64_t count;
  uint32_t operation, type, reduction, root, to, from;
  uint32_t is_captured; /* else it is counted in `queued` */
  uint32_t reserved;
} rondo_engine_call;

typedef struct rondo_engine_link {
  rondo_link link;
  rondo_event event;
  rondo_allocator allocator;
  rondo_device *device;
  rondo_collective_engine engine;
  void (*attach)(struct rondo_engine_link *link); /* NULL: the engine must be polled */
  rondo_kernel *kernels[RONDO_ENGINE_KERNELS];    /* the user's references */
  char *name, *engine_name;                       /* the second is engine.name */
  uint64_t timeout_ns;
  /* The collective in progress. */
  _Atomic uint32_t turn;     /* lock: the engine is called */
  _Atomic bool is_busy;      /* from its kernel until it is done */
  _Atomic bool is_in_engine; /* the engine has started it; written with the turn */
  rondo_engine_call call;    /* of that one */
  const void *src;           /* of that one */
  void *dst;                 /* of that one */
  _Atomic uint64_t started, completed;
  _Atomic uint64_t polls;        /* turns in which it was polled; written with the turn */
  uint64_t watched, watched_ns;  /* the last one that the progress thread saw, and since when; its own */
  uint64_t polls_seen, poll_ns;  /* of that thread: to notice that others poll, and when it polls next; its own */
  _Atomic uint64_t queued, done; /* that were not captured */
  _Atomic bool closes;           /* the user waits until all are done */
  _Atomic uint32_t done_signal;  /* futex */
  /* Failing. */
  _Atomic uint32_t failed; /* 0; 1 while it is written; 2 */
  rondo_saved_error failure;
  /* The progress thread. */
  rondo_thread progress;
  bool has_progress;
  _Atomic bool stop, sleeps; /* `sleeps`: it does not look before it is rung, or for a long time */
  _Atomic uint32_t doorbell; /* futex */
} rondo_engine_link;

/* The communicator of one rank, and the owner of the engine if it succeeds. `attach` tells the engine its link, on
 * which it calls rondo_engine_link_ring when a collective is done; NULL: the engine must be polled. Links of subgroups
 * attach likewise. */
RONDO_MUST_USE rondo_status rondo_engine_link_open(const rondo_communicator_plan *plan,
                                                   const rondo_collective_engine *engine,
                                                   void (*attach)(rondo_engine_link *link), rondo_engine_link **out);

#endif
