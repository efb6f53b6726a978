/* SPDX-License-Identifier: MIT
 * Collectives through shared memory. A collective is cut into pieces. A piece is work of the stream, whether enqueued
 * or captured: *send* copies the rank's part into one of its two slots, *arrive* tells all ranks, a wait for the
 * semaphore follows, *receive* combines the slots of all ranks, and *finish* ends it. (The only block of a small kernel
 * also arrives or finishes.)
 *
 * The slots need no other order. A rank arrives at piece n + 1 after it has finished n, and finishes n after all have
 * arrived at n. So when it sends n + 2 into the slot of n, all have finished n. That is why the pieces of a
 * communicator must not overlap on a rank; `current` and `has_arrived` find it when they do.
 *
 * Pieces are numbered as they run, so that a captured one has a new number in each replay. The worker that arrives
 * last, or the rank's monitor, sees that all ranks have arrived and raises the semaphore. The monitor is a thread that
 * sleeps until another rank rings, and that notices ranks that ended, left, failed or take too long.
 *
 * Life: `event` represents the semaphore in graphs, and its references count the users of the exchange: the user, the
 * four kernels that graphs name, and nodes of execs. With the last one the semaphore is destroyed. It ends after the
 * executables that still run, and then everything is freed.
 *
 * Threads: the kernels run on workers, piece by piece; the monitor is a thread of its own. Any thread may fail the
 * exchange; the first failure counts.
 */
#ifndef RONDO_EXEC_COLLECTIVE_EXCHANGE_H
#define RONDO_EXEC_COLLECTIVE_EXCHANGE_H

#include "exec/collective/communicator.h"

enum {
  RONDO_EXCHANGE_SEND,
  RONDO_EXCHANGE_ARRIVE,
  RONDO_EXCHANGE_RECEIVE,
  RONDO_EXCHANGE_FINISH,
  RONDO_EXCHANGE_KERNELS
};

#define RONDO_EXCHANGE_BLOCK ((size_t)128 << 10) /* bytes that a block of a kernel copies or combines */

enum { RONDO_PIECE_ARRIVES = 1, RONDO_PIECE_FINISHES = 2, RONDO_PIECE_IS_QUEUED = 4 /* not captured: counted */ };

/* The parameters of a piece's kernels. No padding: graphs compare it as bytes. */
typedef struct rondo_piece {
  uint64_t tag;   /* identifies it among pieces in progress, see rondo_exchange.tags; not 0 */
  uint64_t count; /* elements of the whole collective */
  uint64_t first; /* element of each part that the piece begins with */
  uint64_t length;
  uint32_t operation, type, reduction, root;
  uint32_t flags, reserved;
} rondo_piece;

typedef struct rondo_exchange {
  rondo_link link;
  rondo_event event;
  rondo_allocator allocator;
  rondo_device *device;
  rondo_group *group;
  rondo_kernel *kernels[RONDO_EXCHANGE_KERNELS]; /* the user's references */
  char *name;
  uint64_t timeout_ns;
  /* Used so far, by the user's thread. Each capture begins with the same tags, so that the same work captured twice is
   * the same graph. */
  uint64_t tags, captured_tags, capture_id;
  /* Work. */
  _Atomic uint64_t current;     /* the tag under way; 0: none */
  _Atomic uint32_t has_arrived; /* with it */
  _Atomic uint64_t arrived;     /* the number of the last piece */
  _Atomic uint64_t arrived_ns;
  _Atomic uint64_t last_kind, last_count; /* of that one, for messages */
  _Atomic uint32_t settling;              /* a lock for the thread that compares: no later piece is settled meanwhile */
  _Atomic uint64_t settled;               /* all ranks had arrived there */
  _Atomic uint64_t queued, done;          /* pieces that were not captured */
  _Atomic uint32_t done_signal;           /* futex */
  /* Failing. */
  _Atomic uint32_t failed; /* 0; 1 while it is written; 2 */
  rondo_saved_error failure;
  /* The monitor. */
  rondo_thread monitor;
  bool has_monitor;
  _Atomic bool stop;
} rondo_exchange;

/* Slots of the transport's table (exchange_queue.c). */
rondo_status rondo_exchange_check(const rondo_link *link, const char *call, const rondo_collective *work);
rondo_status rondo_exchange_run(rondo_link *link, rondo_stream *stream, const char *call, const rondo_collective *work);

/* The CPU functions of the kernels, and their parameters (exchange_kernels.c). */
rondo_status rondo_exchange_make_kernel(rondo_exchange *exchange, unsigned which, rondo_kernel **out);

/* Failing, once (exchange_monitor.c): all that waits here, and the other ranks, get the text. */
void rondo_exchange_fail(rondo_exchange *exchange, rondo_reason reason, const char *format, ...) RONDO_PRINTF(3, 4);
static inline bool rondo_exchange_has_failed(const rondo_exchange *exchange) {
  return atomic_load_explicit(&exchange->failed, memory_order_acquire) != 0;
}

/* Releases the waits for piece `number` if all ranks have arrived there, or fails if their calls differ. False if not
 * all have arrived, or another thread does this. */
bool rondo_exchange_settle(rondo_exchange *exchange, uint64_t number);

/* Keeps the words for a piece that is arriving. */
static inline void rondo_exchange_note_last(rondo_exchange *exchange, const rondo_piece *piece) {
  atomic_store_explicit(&exchange->last_count, piece->count, memory_order_relaxed);
  atomic_store_explicit(&exchange->last_kind,
                        (uint64_t)piece->root << 32 | piece->operation << 16 | piece->type << 8 | piece->reduction,
                        memory_order_relaxed);
}

/* The monitor's run. */
void *rondo_exchange_watch(void *exchange);

#endif
