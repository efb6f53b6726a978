/* SPDX-License-Identifier: MIT
 * The states that the server keeps for the backend: of the backend itself, of a model, of an instance. All instances of
 * a model on one device share a session, so that weights are there once and requests of all of them run together.
 *
 * Threads: the server calls for different models and instances at the same time. A model's lock guards its list of
 * sessions; it is not held while a model is recorded. A session's lock guards the requests in flight and what is
 * counted; it is not held during calls that can block, nor during answers.
 */
#ifndef RONDO_TRITON_SERVED_TYPES_H
#define RONDO_TRITON_SERVED_TYPES_H

#include <stdatomic.h>

#include "base/thread.h"
#include "triton/device_table.h"
#include "triton/model_metrics.h"
#include "triton/model_source.h"
#include "triton/sequence_table.h"
#include "triton/sizes/size_history.h"

typedef struct rondo_triton_backend {
  rondo_triton_devices devices;
  rondo_triton_metric_families metrics;
  rondo_triton_histories histories;
  size_t default_batch_size; /* of models whose configuration is completed */
} rondo_triton_backend;

typedef struct rondo_triton_served rondo_triton_served;
typedef struct rondo_triton_flight rondo_triton_flight;

typedef struct rondo_triton_model_state {
  rondo_triton_backend *backend;
  char *name;
  uint64_t version;
  rondo_triton_config config;
  rondo_triton_source source;
  pthread_mutex_t lock;
  pthread_cond_t opened; /* a session is no longer being opened */
  rondo_triton_served *sessions;
} rondo_triton_model_state;

/* How many answers of batches of one size came, and their rows, until a whole batch is reported. */
typedef struct rondo_triton_batch_count {
  uint32_t answers;
  uint64_t rows;
} rondo_triton_batch_count;

/* A session with the model, at the sizes that were chosen for it. */
typedef struct rondo_triton_recorded {
  rondo_session *session;
  uint32_t users;     /* requests that it has accepted, and calls that submit; under the lock of the served model */
  bool is_new_choice; /* of sizes, while the model was served */
  uint64_t padded;    /* requests that ran with rows of padding; under the lock of the served model */
  uint64_t reported[RONDO_TRITON_METRICS]; /* of counters */
} rondo_triton_recorded;

/* When sizes are chosen again. The fields belong to the watching thread, except those that say otherwise. */
typedef struct rondo_triton_size_choice {
  const char *fixed_by; /* why sizes are not chosen again; NULL: they are; constant */
  double bound;         /* on the regret of sizes; 0: sizes are chosen again on request only; constant */
  bool takes_requests;  /* requests may want other sizes; constant */
  bool is_wanted;       /* by a request; under the lock */
  bool is_running;
  bool is_done;                /* the thread has ended its work; under the lock */
  rondo_triton_recorded *made; /* by the thread; NULL: it failed; under the lock */
  double regret_left;          /* of the newest choice */
  uint64_t came, needed;       /* requests before the newest choice; that must come after it */
  uint64_t checked_ns;
  atomic_bool is_unwanted; /* the thread stops between two recordings; never reset */
  rondo_thread thread;
} rondo_triton_size_choice;

/* A model on a device. */
struct rondo_triton_served {
  rondo_triton_served *next;
  rondo_triton_model_state *model;
  char device_name[RONDO_TRITON_DEVICE_NAME];
  uint32_t instances; /* under the model's lock, as is the next */
  bool is_opening;    /* by the first instance; others wait */
  rondo_device *device;
  const char *kind; /* of the instances' group, as in configurations */
  rondo_allocator allocator;
  pthread_mutex_t lock;
  rondo_triton_recorded *recorded; /* takes new requests; another one after a choice of sizes, so under the lock */
  rondo_triton_recorded *retired;  /* has requests that came before the last choice; NULL: it has none */
  rondo_triton_size_choice choice;
  pthread_cond_t change;        /* a request was answered */
  rondo_triton_flight *flights; /* requests in flight */
  rondo_triton_flight *idle;    /* for further requests */
  uint32_t in_flight, most_in_flight;
  size_t max_delay_us;           /* of the configuration */
  uint64_t numbered;             /* requests so far */
  rondo_triton_history *history; /* NULL: a model with lengths */
  rondo_triton_sequences sequences;
  rondo_triton_flight
      *waiting; /* requests that wait for their sequence, in their order; served by the watching thread */
  uint32_t waiting_count;
  rondo_triton_flight *sourced; /* whose sources were read, so that their steps can be submitted; also by that thread */
  char *source_name;            /* of the network that reads sources, in the session; NULL: none */
  uint64_t sequence_ends;       /* requests that made others ready, or have left a sequence to close */
  rondo_triton_batch_count batches[RONDO_SESSION_MAX_BATCH + 1];
  rondo_triton_metrics metrics;
  rondo_thread watch;
  pthread_cond_t wake; /* of the watching thread */
  bool has_watch, is_stopping;
  bool is_asleep; /* the watching thread, until it is woken; under the lock */
};

typedef struct rondo_triton_instance {
  triton_instance *handle;
  rondo_triton_served *served;
  uint32_t in_flight; /* under the session's lock */
} rondo_triton_instance;

/* A request in flight: from the call that brings it until it is released. */
struct rondo_triton_flight {
  rondo_triton_flight *next, *previous;
  rondo_triton_instance *instance;
  triton_request *handle;
  triton_response *response;       /* NULL: not made yet */
  uint64_t number;                 /* different for each request of the session */
  rondo_ticket ticket;             /* zeros: not submitted yet */
  rondo_triton_recorded *recorded; /* to which it is submitted; NULL: not submitted yet */
  bool is_cancelled;
  uint64_t began_ns;
  rondo_request request;
  rondo_triton_request_options options; /* of a model with sequences, as are the next */
  rondo_triton_sequence *sequence;      /* NULL: it has none yet */
  rondo_triton_flight *next_waiting;    /* or sourced */
  rondo_request source;                 /* reads the source of the sequence before the step; rows 0: it has none */
  bool is_reading;                      /* the source was submitted, and not yet the step; under the lock */
  uint64_t wanted;                      /* outputs, a bit for each, as are the next: values in memory of the device */
  uint64_t device_inputs, device_outputs;
  uint64_t most_tokens; /* that the request and the slot allow */
  void *step_outputs;   /* with max_tokens: memory of outputs, as is the next */
  size_t step_bytes;
  bool is_broken; /* a token could not be sent */
  const void *inputs[RONDO_SESSION_MAX_VALUES];
  void *outputs[RONDO_SESSION_MAX_VALUES];
  void *gathered[RONDO_SESSION_MAX_VALUES]; /* inputs that were not in one piece, as is the next */
  size_t gathered_bytes[RONDO_SESSION_MAX_VALUES];
};

#endif
