/* SPDX-License-Identifier: MIT
 * The session and its stream workers. A worker is a stream with a thread. Its thread or a caller claims it; only the
 * claimant uses the instances of models on it.
 *
 * `lock` guards the claims of workers, the queue, the slots, the progress of batches, the list of models and their
 * counters. It is never held during device work or a callback.
 */
#ifndef RONDO_SESSION_SESSION_INTERNAL_H
#define RONDO_SESSION_SESSION_INTERNAL_H

#include <assert.h>

#include "base/thread.h"
#include "device/device.h"
#include "exec/stream/copy_list.h"
#include "session/request_types.h"
#include "session/serve/span_union.h"

typedef struct rondo_stream_worker rondo_stream_worker;

/* The events around one part's work on a stream. */
typedef struct rondo_event_pair {
  rondo_event *begin, *end;
} rondo_event_pair;

/* Measures when work runs on a stream. Drivers give the distance of two events in single precision, which is coarse for
 * long distances. So a later `begin` becomes `origin` from time to time. */
typedef struct rondo_stream_timer {
  rondo_event_pair current; /* of the part that the claimant enqueues; NULL: not timed */
  pthread_mutex_t lock;     /* guards the fields below, and the exchange of `current` and `last` */
  rondo_event_pair last;    /* of the part that ended last */
  bool has_last;            /* `last` is not counted yet */
  bool has_origin;
  rondo_event *origin;
  double origin_us; /* since the session's epoch */
} rondo_stream_timer;

/* Whether a caller has a stream for manual runs. In TAKING and GIVING, one caller waits for the worker or for its work,
 * and only that caller changes the state. */
typedef enum rondo_manual_state {
  RONDO_MANUAL_NONE,
  RONDO_MANUAL_TAKING,
  RONDO_MANUAL_TAKEN,
  RONDO_MANUAL_GIVING
} rondo_manual_state;

struct rondo_stream_worker {
  rondo_session *session;
  uint32_t number;
  bool has_thread, is_claimed;
  rondo_capture_mode mode_before; /* of the thread that called rondo_session_claim, or for worker 0 claim_all */
  bool is_running;                /* a batch, or a part of one */
  bool is_asleep;                 /* its thread sleeps and has not been woken */
  rondo_manual_state manual;
  uint32_t claims_waiting; /* callers that wait to claim it; they take precedence over requests */
  rondo_thread thread;
  pthread_cond_t wake;
  rondo_stream *lent;                      /* the caller's, on which all models run; NULL: each model has its own */
  rondo_stream_worker *next_lent;          /* see session_streams.c */
  rondo_executor *executor;                /* for eager runs; NULL: operators run one after the other */
  rondo_batch batch;                       /* this and all fields below belong to the claimant */
  rondo_copy_list copies;                  /* of inputs */
  rondo_stream_timer timer;                /* has its own lock */
  uint64_t sample_begin_ns, sample_end_ns; /* of the part that ran last */
  uint64_t enqueue_ns;                     /* time to enqueue the last graph; 0: not measured */
};

struct rondo_session {
  rondo_allocator allocator;
  rondo_device *device;
  bool is_cuda;
  char *name;
  rondo_session_options options; /* with defaults filled in */
  pthread_mutex_t lock;
  pthread_cond_t change; /* signalled when a worker is free, or a part or request is done */
  rondo_session_model *models;
  rondo_session_model *capturing; /* the head of the model in capture mode */
  rondo_stream_worker workers[RONDO_SESSION_MAX_STREAMS];
  rondo_slot *slots, *free_slots;
  rondo_slot *answered, *last_answered; /* their callbacks have not been called */
  uint32_t waiting;                     /* requests in the queue */
  uint64_t appended;                    /* requests that were ever queued */
  uint64_t next_deadline_ns;            /* no request in the queue has an earlier deadline */
  uint64_t next_turn, current_turn;     /* of calls that claim workers */
  uint64_t claims;                      /* number of claims so far, by parts and by calls */
  bool has_outdated;                    /* a model became outdated, and no worker has seen that yet */
  bool is_renewing;                     /* a thread makes dispatch tables */
  rondo_session_model *renewed;         /* ... for this model; NULL: the model changed, so the new tables are dropped */
  rondo_batch *open;                    /* batches with parts that have not been started */
  rondo_event *epoch;                   /* NULL: the session is not timed */
  rondo_span_union spans;               /* of work on all streams */
  rondo_session_usage usage;
  rondo_saved_error utilisation_error; /* not reported yet */
  uint32_t used_slots;
  uint32_t unanswered;       /* requests that wait or run, or whose callback has not returned */
  uint32_t runs;             /* objects of rondo_model_run */
  uint32_t slotted_models;   /* models with sequences that were ever added */
  uint64_t opened_sequences; /* sequences that were ever opened */
  atomic_uint signals;       /* calls that wake a worker without the lock, and may still use the session */
  bool is_draining, is_stopping;
};

/* Whether the session is in capture mode for the model. Its requests then name no sequences. Under the lock. */
static inline bool rondo_model_is_captured(const rondo_session_model *model) {
  return model->session->capturing == model->head;
}

/* Sets the thread's capture mode and returns the one before. In relaxed mode, calls leave captures of other threads
 * alone. In thread-local mode, the thread refuses calls that its own capture must not contain. */
static inline rondo_capture_mode rondo_set_capture_mode(rondo_capture_mode mode) {
  const rondo_status status = rondo_capture_exchange_thread_mode(&mode);
  assert(status == RONDO_OK);
  (void)status;
  return mode;
}

#endif
