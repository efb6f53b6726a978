/* SPDX-License-Identifier: MIT
 * The types of requests and batches. A request occupies a slot until its ticket is waited for, or until its callback
 * returns. A batch is a group of
 * requests of one model that run together. It is divided into parts; one graph runs a part, or the part runs eagerly.
 *
 * The session's lock guards everything except `done` and the lowest bit of `number` of a slot, which are atomic, and
 * the rows that a running part reads and writes.
 */
#ifndef RONDO_SESSION_REQUEST_TYPES_H
#define RONDO_SESSION_REQUEST_TYPES_H

#include "session/model_types.h"

typedef enum rondo_slot_state {
  RONDO_SLOT_FREE,
  RONDO_SLOT_QUEUED,
  RONDO_SLOT_RUNNING,
  RONDO_SLOT_DONE
} rondo_slot_state;

/* An accepted request. Its ticket contains `number`, which is different for each request that uses the slot. Bit 0 is
 * set only in the slot, once a thread has claimed the ticket to wait for it, or from the start if it has a callback.
 * The other bits are the index of the slot and the number of times that it was used. */
typedef struct rondo_slot {
  _Atomic uint64_t number;
  rondo_session *session;
  struct rondo_slot *next, *previous; /* in the model's list while it waits; `next` in that of answered ones */
  rondo_waiting_node waiting;         /* in the model's tree while it waits */
  struct rondo_slot *next_free;
  rondo_session_model *model;
  rondo_slot_state state;
  rondo_run_mode mode;
  bool has_no_graph; /* `mode` is EAGER, because no graph has the exact length */
  size_t rows;
  uint64_t accepted_ns, deadline_ns; /* no deadline: UINT64_MAX */
  const void *inputs[RONDO_SESSION_MAX_VALUES];
  void *outputs[RONDO_SESSION_MAX_VALUES];
  uint64_t direct;                        /* bit i: the device can copy input i directly from the request's memory */
  uint64_t device_inputs, device_outputs; /* bit i: the value is memory of the device */
  size_t length;                          /* positions of each row in memory; 1: the model has no lengths */
  size_t from, positions;                 /* those that the current part has */
  const int32_t *lengths;                 /* valid positions of each row; NULL: all */
  struct rondo_cache_slot *sequence;
  size_t start;  /* positions that the sequence has before the current part */
  size_t source; /* positions of its source */
  rondo_request_next next_step;
  rondo_request_done call_done; /* NULL: the ticket is waited for */
  void *user;                   /* of both */
  size_t next_length;           /* positions of the next step */
  uint64_t steps, began_ns;     /* began_ns: when it first started; 0: not yet */
  bool is_cancelled;            /* it ends with the step that runs */
  rondo_answer answer;
  rondo_saved_error error;
  _Atomic uint32_t done; /* futex */
} rondo_slot;

enum { RONDO_SLOT_INDEX_BITS = 20 }; /* at most 2^20 slots */
#define RONDO_SLOT_CLAIMED UINT64_C(1)
#define RONDO_SLOT_REUSED (UINT64_C(2) << RONDO_SLOT_INDEX_BITS)

/* Requests that run together, and their progress. */
typedef struct rondo_batch {
  struct rondo_batch *next; /* in the list of batches with parts that have not been started */
  rondo_session_model *model;
  rondo_slot *requests[RONDO_SESSION_MAX_BATCH];
  size_t first[RONDO_SESSION_MAX_BATCH]; /* row of each request in the batch */
  size_t count, rows;
  size_t repeats; /* launches of the largest graph, before those of `entry` */
  rondo_dispatch_entry entry;
  bool is_loaded; /* it was dispatched with the table for a loaded session */
  bool is_eager;
  rondo_run_reason reason;
  size_t parts, started, done, next_row;
  uint64_t padding;
  uint32_t first_graph;
  uint64_t began_ns;
  rondo_status status;
  rondo_saved_error error;
} rondo_batch;

/* Positions of a row of what runs the batch. Requests that run eagerly because no graph has their exact length run
 * alone. */
static inline size_t rondo_batch_length(const rondo_batch *batch) {
  return batch->model->has_exact_lengths ? batch->requests[0]->positions : batch->model->length;
}

#define RONDO_EAGER_PART UINT32_MAX

/* Rows first to first + rows - 1 of a batch. `graph` is an index, or RONDO_EAGER_PART. If the graph has a row for each
 * slot of the model, a sequence is in the row of its slot. So its result has the same bits, whatever else runs, also if
 * a library rounds differently in different rows. */
typedef struct rondo_part {
  rondo_batch *batch;
  size_t first, rows;
  uint32_t graph;
  bool is_by_slot;
} rondo_part;

#endif
