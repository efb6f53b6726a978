/* SPDX-License-Identifier: MIT
 * A session's inside. A *worker* is one of its streams with a thread; a *place* is what a model has on a worker:
 * programs that share states and an arena, the graphs, staging memory. Whoever has claimed a worker, its thread or a
 * caller, alone uses the places on it.
 *
 * Threads: `lock` guards workers' claims, the queue, slots, batches' counters, the list of models and their figures; it
 * is never held over work of the device or a callback. A model's graphs and tables change only while it is `changing`,
 * when no request of it is taken, or while all workers are claimed; and what is told of them, which is `graphs`, the
 * tables and the first so many graphs of each place, under the lock. Tables, and the times that they are made from, are
 * also renewed while requests run, under the lock: who gives it up has copied what it needs of them.
 */
#ifndef RONDO_SESSION_SESSION_INTERNAL_H
#define RONDO_SESSION_SESSION_INTERNAL_H

#include <rondo/capture.h>
#include <rondo/memory.h>
#include <rondo/session.h>

#include "base/array.h"
#include "base/error.h"
#include "base/thread.h"
#include "device/device.h"
#include "exec/stream/copy_batch.h"
#include "session/serve/span_union.h"
#include "session/serve/waiting_requests.h"
#include "session/sizing/dispatch_table.h"
#include "session/sizing/graph_times.h"

#define RONDO_STAGING_ALIGNMENT 256
/* By which several graphs, or none, must be cheaper than one: times are measured. */
#define RONDO_DISPATCH_MARGIN 0.03

typedef struct rondo_stream_worker rondo_stream_worker;
typedef struct rondo_session_model rondo_session_model;
typedef struct rondo_model_devices rondo_model_devices; /* session/placement/upstream_parts.h, as is the next */
typedef struct rondo_upstream rondo_upstream;

/* Of several that went wrong, the first counts. */
static inline void rondo_keep_first(rondo_status *kept, rondo_status status) {
  if (*kept == RONDO_OK) *kept = status;
}

/* A callback of a model's that runs on this thread, perhaps inside of one of another session's model. */
typedef struct rondo_session_callback {
  const rondo_session *session;
  const struct rondo_session_callback *outer;
} rondo_session_callback;

/* Models ---------------------------------------------------------------------------------------------------------- */

typedef struct rondo_session_value {
  char *name;
  rondo_type type;
  size_t row_bytes;
  uint32_t rank; /* of a row; of a function's values alone, as is the shape */
  size_t shape[RONDO_TREE_MAX_RANK];
} rondo_session_value;

/* Host memory for all inputs and outputs of so many rows, each at an offset of its own. For functions also memory of
 * the device, in which inputs have the same offsets. */
typedef struct rondo_stage {
  unsigned char *memory, *device_memory;
  size_t rows;
} rondo_stage;

/* Host memory for what parts that run ahead hand over. */
typedef struct rondo_transfer_memory {
  unsigned char *memory;
  size_t bytes;
} rondo_transfer_memory;

/* A program for so many rows, compiled for a place. */
typedef struct rondo_instance_program {
  rondo_compiled *compiled; /* on the session's device */
  rondo_upstream *upstream; /* what runs ahead of it on others; NULL: nothing does */
  void **addresses; /* in `compiled`, of the model's inputs, then of its outputs; NULL: it does not have this one */
} rondo_instance_program;

typedef struct rondo_instance_graph {
  rondo_instance_program program;
  rondo_graph *graph;
  rondo_exec *exec;
  size_t rows;
  unsigned char *stage;         /* of the place */
  unsigned char *device_memory; /* its, of a function */
  size_t stage_rows;
  unsigned char *transfer;              /* of the place */
  rondo_function *function;             /* the body once more, in place of `program`, `graph` and `exec`; */
  struct rondo_recorded_call *recorded; /* ... its one recording */
  rondo_input_copy *copies;             /* by input */
} rondo_instance_graph;

/* A program for eager runs of exactly so many rows. */
typedef struct rondo_cached_program {
  size_t rows;
  rondo_instance_program program;
  uint64_t last_use;
} rondo_cached_program;

typedef struct rondo_model_instance {
  rondo_session_model *model;
  uint32_t worker;
  rondo_stream *stream; /* the anchor's or the tree's calls' */
  rondo_instance_program
      anchor;       /* for one row: has the states as long as the model, those of other workers' the same ones */
  rondo_tree *tree; /* of a function, in place of an anchor */
  rondo_function *eager_function; /* of that, what runs as it is */
  RONDO_ARRAY(rondo_instance_graph) graphs;
  RONDO_ARRAY(rondo_stage) stages;
  RONDO_ARRAY(rondo_transfer_memory) transfers;
  rondo_stage eager; /* of eager runs, as is */
  rondo_transfer_memory eager_transfer;
  rondo_cached_program *programs; /* max_unrecorded; rows 0: none */
  uint64_t uses;
  uint64_t arena_bytes, upstream_arena_bytes; /* of these, those on other devices; under the session's lock */
  size_t last_graph;                          /* that was launched by hand */
} rondo_model_instance;

/* What is known of a graph on all workers. */
typedef struct rondo_session_graph {
  size_t rows;
  uint32_t nodes;
  bool has_branches;
  double run_us, unrecorded_us, capture_us;
  double current_us, current_unrecorded_us; /* that the tables were made with; guarded as graphs' figures are */
  rondo_tracked_time kept;
  uint64_t trials;
  double overlap, eager_overlap; /* on all workers at once, against one after the other: of 1 / workers to 1 */
  uint64_t exec_bytes, arena_bytes;
  uint64_t launches, rows_run;
} rondo_session_graph;

/* What runs so many rows; NULL: there are no graphs. */
typedef struct rondo_dispatch_tables {
  rondo_dispatch_table *any;
  rondo_dispatch_table *recorded; /* without eager runs */
} rondo_dispatch_tables;

/* Requests of a model that wait, the oldest first. */
typedef struct rondo_slot_list {
  struct rondo_slot *head, *tail;
} rondo_slot_list;

struct rondo_session_model {
  rondo_session_model *next;
  rondo_session *session;
  char *name;
  rondo_model_build build;
  rondo_function_body body;                /* or this: it is a function */
  RONDO_ARRAY(rondo_host_range) constants; /* of a function */
  rondo_model_devices *devices;            /* NULL: it is all on the session's */
  rondo_device *host_of;                   /* whose host memory is for staging */
  void *user;
  uint32_t max_sizes;
  size_t max_batch_rows;
  uint64_t budget_bytes, budget_startup_us;
  RONDO_ARRAY(size_t) history; /* ascending */
  RONDO_ARRAY(rondo_session_value) inputs, outputs;
  rondo_model_instance instances[RONDO_SESSION_MAX_STREAMS];
  RONDO_ARRAY(rondo_session_graph) graphs;
  rondo_dispatch_tables idle, loaded; /* while nothing else runs and workers are free, and else */
  double eager_extra_us;              /* that an eager run costs beside its time, as programs are compiled for some */
  bool has_given_times;               /* by rondo_session_set_times: they stay */
  bool is_outdated;                   /* times have changed since the tables were made, */
  uint64_t next_renewal_ns;           /* ... which is not before then */
  double trial_debt_us;               /* what the last trial took that is not paid for yet */
  bool is_building;                   /* in `build`, which is called by one at a time */
  bool is_changing;
  bool is_recording;                                     /* in capture mode: a run records just now */
  uint32_t taken;                                        /* by requests that wait or run, and writes of states, */
  uint32_t writes;                                       /* ... which are so many of them */
  uint32_t runs;                                         /* rondo_model_run of it */
  size_t waiting_rows;                                   /* of requests in the queue, */
  rondo_slot_list waiting;                               /* ... which are these, */
  rondo_waiting_tree waiting_by_way[RONDO_WAY_CAPTURED]; /* ... and by what they ask for */
  rondo_model_info info;
};

/* Requests -------------------------------------------------------------------------------------------------------- */

typedef enum rondo_slot_state {
  RONDO_SLOT_FREE,
  RONDO_SLOT_QUEUED,
  RONDO_SLOT_RUNNING,
  RONDO_SLOT_DONE
} rondo_slot_state;

/* A request that was taken. Tickets have its number, which is another one for each request that comes here: bit 0, of
 * the slot's alone, says that someone has claimed the ticket, to wait for it; then come the slot's index and how often
 * it was given back. It changes under the lock, but for bit 0. */
typedef struct rondo_slot {
  _Atomic uint64_t number;
  rondo_session *session;
  struct rondo_slot *next, *previous; /* while it waits, as is the next; session/serve/batch_delay.h */
  rondo_waiting_node waiting;
  struct rondo_slot *next_free;
  rondo_session_model *model;
  rondo_slot_state state;
  rondo_way way;
  size_t rows;
  uint64_t taken_ns, deadline_ns; /* no deadline: UINT64_MAX */
  const void *inputs[RONDO_SESSION_MAX_VALUES];
  void *outputs[RONDO_SESSION_MAX_VALUES];
  uint64_t direct; /* bit i: the device copies input i from where the request has it */
  rondo_answer answer;
  rondo_saved_error error;
  _Atomic uint32_t done; /* futex */
} rondo_slot;

enum { RONDO_SLOT_MOST_BITS = 20 }; /* of an index: slots are 2^20 at most */
#define RONDO_SLOT_CLAIMED UINT64_C(1)
#define RONDO_SLOT_REUSED (UINT64_C(2) << RONDO_SLOT_MOST_BITS)

/* Requests that run together, and how far that is. */
typedef struct rondo_batch {
  struct rondo_batch *next; /* in the list of those with parts to take */
  rondo_session_model *model;
  rondo_slot *requests[RONDO_SESSION_MAX_BATCH];
  size_t first[RONDO_SESSION_MAX_BATCH]; /* row of each */
  size_t count, rows;
  size_t repeats; /* of the largest graph; then what the entry says, where it has a way */
  rondo_dispatch_entry entry;
  bool is_loaded; /* something else ran when it was formed, or no other worker was free */
  bool is_eager;
  rondo_way_reason reason;
  size_t parts, taken, done, next_row;
  uint64_t padding;
  uint32_t first_graph;
  uint64_t began_ns;
  rondo_status status;
  rondo_saved_error error;
} rondo_batch;

#define RONDO_EAGER_PART UINT32_MAX

/* Rows first .. first + rows of a batch, by one graph, or eager. */
typedef struct rondo_part {
  rondo_batch *batch;
  size_t first, rows;
  uint32_t graph;
} rondo_part;

/* The session ----------------------------------------------------------------------------------------------------- */

/* The events around work on a worker's stream. */
typedef struct rondo_event_pair {
  rondo_event *begin, *end;
} rondo_event_pair;

/* Spans of work. A `begin` becomes `origin` before its distance gets so long that the driver's single-precision times
 * are coarse. */
typedef struct rondo_stream_timer {
  rondo_event_pair current; /* of what is queued, by who has claimed the worker; NULL: nothing is timed */
  pthread_mutex_t lock;     /* of what follows, and who exchanges `current` and `last` has it too */
  rondo_event_pair last;    /* of what has ended */
  bool has_last;            /* which is not counted yet */
  bool has_origin;
  rondo_event *origin;
  double origin_us; /* since the session's epoch */
} rondo_stream_timer;

/* Whether a worker is out of serving, by hand. Who takes it waits until it is free, and who gives it for its work: none
 * but them changes what it is meanwhile. */
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
  bool is_running; /* a batch, or a part of one */
  bool is_asleep;  /* its thread, and nobody has called it yet */
  rondo_manual_state manual;
  uint32_t claims_waiting; /* by so many who would claim it; they come before requests */
  rondo_thread thread;
  pthread_cond_t wake;      /* for its thread, which looks for something to do then */
  rondo_executor *executor; /* of eager runs; NULL: they go in a line */
  rondo_batch batch;        /* of who has claimed the worker */
  rondo_copy_list copies;   /* of inputs; likewise */
  rondo_stream_timer timer;
  uint64_t sample_begin_ns, sample_end_ns; /* of the graph that ran last, by who has claimed the worker */
  uint64_t enqueue_ns; /* of the part that ran last, by who has claimed the worker; 0: it was not timed */
};

struct rondo_session {
  rondo_allocator allocator;
  rondo_device *device;
  bool is_cuda;
  char *name;
  rondo_session_options options; /* resolved */
  pthread_mutex_t lock;
  pthread_cond_t change; /* a worker is free, a part or request done */
  rondo_session_model *models;
  rondo_session_model *capturing; /* in capture mode */
  rondo_stream_worker workers[RONDO_SESSION_MAX_STREAMS];
  rondo_slot *slots, *free_slots;
  uint32_t waiting;                 /* requests */
  uint64_t appended;                /* that ever waited */
  uint64_t next_deadline_ns;        /* no request in the queue has one before it */
  uint64_t next_turn, current_turn; /* of calls that claim workers: whose it is */
  uint64_t claims;                  /* of workers, by parts that begin and by calls */
  bool has_outdated;                /* a model is outdated, and no worker's thread has looked since */
  bool is_renewing;                 /* tables are made */
  rondo_session_model *renewed;     /* ... for this one; NULL: they are thrown away */
  rondo_batch *open;                /* batches with parts that nobody has taken */
  rondo_event *epoch;               /* complete; NULL: nothing is timed */
  rondo_span_union utilised;        /* of all workers */
  rondo_session_usage usage;
  rondo_saved_error utilisation_error; /* that nobody has been told yet */
  uint32_t taken;                      /* slots that are not free */
  uint32_t running;                    /* requests that wait or run */
  uint32_t runs;                       /* rondo_model_run of all models */
  bool is_draining, is_stopping;
};

/* Under the lock: whether requests may run on the worker; claims it, giving the lock up while it waits; gives it up. */
static inline bool rondo_stream_worker_is_free(const rondo_stream_worker *worker) {
  return !worker->is_claimed && worker->claims_waiting == 0;
}

/* batch_sizes.c, while the model is changing and has no graphs: what graphs for 2, 4, ... times the rows of the largest
 * request are like, as long as they are worth having for requests that run together. `largest` was measured. */
enum { RONDO_MOST_DOUBLINGS = 16 };

/* worker.c, under the lock. Calls the threads of so many workers that are free and asleep, if there are. */
void rondo_stream_workers_wake(rondo_session *session, size_t count);
/* One, if there is something to do: for who has put something there, has let a worker go, or does a part of it all. */
static inline void rondo_stream_workers_wake_for_rest(rondo_session *session) {
  const bool is_outdated = session->has_outdated && !session->is_renewing;
  if (session->waiting > 0 || session->open != NULL || is_outdated) rondo_stream_workers_wake(session, 1);
}

#endif
