/* SPDX-License-Identifier: MIT
 * The sequences that a session has open for requests, by correlation id: one for each cache slot that is taken. A
 * request uses its sequence from rondo_triton_sequence_begin to rondo_triton_sequence_end. A sequence that has ended is
 * closed once the session does not use it any more, which may be shortly after the answer. One that was abandoned is
 * closed when another sequence needs a slot.
 */
#ifndef RONDO_TRITON_SEQUENCE_TABLE_H
#define RONDO_TRITON_SEQUENCE_TABLE_H

#include <pthread.h>
#include <rondo/session.h>

#include "triton/request_options.h"

typedef struct rondo_triton_sequence {
  rondo_triton_correlation correlation;
  rondo_sequence sequence; /* zeros: the entry is free */
  bool is_used;            /* by a request */
  bool has_ended;
  bool has_expired; /* it had no request for too long, so its sequence is stale */
  uint64_t used_ns; /* when its last request ended */
} rondo_triton_sequence;

/* Thread-safe. The lock is also held while the session's short calls about sequences run. */
typedef struct rondo_triton_sequences {
  pthread_mutex_t lock;
  rondo_allocator allocator;
  rondo_triton_sequence *items; /* NULL: the model has no sequences */
  size_t slots, count;
  uint64_t max_idle_ms; /* a sequence without a request for longer ends; 0: no limit */
} rondo_triton_sequences;

/* A table without entries. */
void rondo_triton_sequences_init(const rondo_allocator *allocator, rondo_triton_sequences *out);
/* Entries for the sequences of so many slots, and how long these may be idle. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_triton_sequences_reserve(rondo_triton_sequences *sequences, size_t slots,
                                                           size_t max_idle_ms);
void rondo_triton_sequences_free(rondo_triton_sequences *sequences);

/* Finds the sequence of a request, or opens one. NOT_READY: another request uses it, or all slots are taken; try again
 * later. Errors: INVALID_ARGUMENT/STALE_SEQUENCE (it is not open, was evicted, or was idle for too
 * long); those of rondo_sequence_open. */
RONDO_MUST_USE rondo_status rondo_triton_sequence_begin(rondo_triton_sequences *sequences, rondo_session *session,
                                                        const char *model, const rondo_triton_request_options *options,
                                                        rondo_triton_sequence **out);
/* The request has been answered. */
void rondo_triton_sequence_end(rondo_triton_sequences *sequences, rondo_triton_sequence *sequence, bool has_ended);

/* Closes sequences that have ended, or were idle for too long. Returns whether one that has ended is
 * still in use. */
bool rondo_triton_sequences_close_ended(rondo_triton_sequences *sequences);

#endif
