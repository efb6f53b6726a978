/* SPDX-License-Identifier: MIT
 * A session's inside. A *lane* is one of its streams with a thread; a *place* is what a model has on a lane: programs
 * that share states and an arena, the graphs, staging memory. Whoever has claimed a lane, its thread or a caller, alone
 * uses the places on it.
 *
 * Threads: `lock` guards lanes' claims, the queue, slots, batches' counters, the list of models and their figures; it
 * is never held over work of the device or a callback. A model's graphs and tables change only while it is `changing`,
 * when no request of it is taken, or while all lanes are claimed; and what is told of them, which is `graphs`, the
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
#include "session/sizing/graph_times.h"
#include "session/sizing/pad_or_split.h"

#define RONDO_STAGING_ALIGNMENT 256
/* By which several graphs, or none, must be cheaper than one: times are measured. */
#define RONDO_DECISION_MARGIN 0.03

typedef struct rondo_lane rondo_lane;
typedef struct rondo_session_model rondo_session_model;
typedef struct rondo_model_devices rondo_model_devices; /* session/placement/parts_ahead.h, as is the next */
typedef struct rondo_ahead rondo_ahead;

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
typedef struct rondo_handover_memory {
  unsigned char *memory;
  size_t bytes;
} rondo_handover_memory;

/* A program for so many rows, compiled for a place. */
typedef struct rondo_placed {
  rondo_compiled *compiled; /* on the session's device */
  rondo_ahead *ahead;       /* what runs ahead of it on others; NULL: nothing does */
  void **addresses; /* in `compiled`, of the model's inputs, then of its outputs; NULL: it does not have this one */
} rondo_placed;

typedef struct rondo_place_graph {
  rondo_placed program;
  rondo_graph *graph;
  rondo_exec *exec;
  size_t rows;
  unsigned char *stage;         /* of the place */
  unsigned char *device_memory; /* its, of a function */
  size_t stage_rows;
  unsigned char *handover;              /* of the place */
  rondo_function *function;             /* the body once more, in place of `program`, `graph` and `exec`; */
  struct rondo_recorded_call *recorded; /* ... its one recording */
  rondo_input_copy *copies;             /* by input */
} rondo_place_graph;

/* A program for un-recorded runs of exactly so many rows. */
typedef struct rondo_place_program {
  size_t rows;
  rondo_placed program;
  uint64_t last_use;
} rondo_place_program;

typedef struct rondo_place {
  rondo_session_model *model;
  uint32_t lane;
  rondo_stream *stream; /* the anchor's or the tree's calls' */
  rondo_placed anchor;  /* for one row: has the states as long as the model, those of other lanes' the same ones */
  rondo_tree *tree;     /* of a function, in place of an anchor */
  rondo_function *plain_function; /* of that, what runs as it is */
  RONDO_ARRAY(rondo_place_graph) graphs;
  RONDO_ARRAY(rondo_stage) stages;
  RONDO_ARRAY(rondo_handover_memory) handovers;
  rondo_stage plain; /* of un-recorded runs, as is */
  rondo_handover_memory plain_handover;
  rondo_place_program *programs; /* max_unrecorded; rows 0: none */
  uint64_t uses;
  uint64_t arena_bytes, ahead_arena_bytes; /* of these, those on other devices; under the session's lock */
  size_t last_graph;                       /* that was launched by hand */
} rondo_place;

/* What is known of a graph on all lanes. */
typedef struct rondo_session_graph {
  size_t rows;
  uint32_t nodes;
  bool has_branches;
  double run_us, unrecorded_us, capture_us;
  double current_us, current_unrecorded_us; /* that the tables were made with; guarded as graphs' figures are */
  rondo_kept_time kept;
  uint64_t trials;
  double overlap, unrecorded_overlap; /* on all lanes at once, against one after the other: of 1 / lanes to 1 */
  uint64_t exec_bytes, arena_bytes;
  uint64_t launches, rows_run;
} rondo_session_graph;

/* What runs so many rows; NULL: there are no graphs. */
typedef struct rondo_session_tables {
  rondo_table *any;
  rondo_table *recorded; /* without un-recorded runs */
} rondo_session_tables;

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
  rondo_place places[RONDO_SESSION_MAX_STREAMS];
  RONDO_ARRAY(rondo_session_graph) graphs;
  rondo_session_tables idle, loaded; /* while nothing else runs and lanes are free, and else */
  double unrecorded_extra_us; /* that an un-recorded run costs beside its time, as programs are compiled for some */
  bool has_given_times;       /* by rondo_session_set_times: they stay */
  bool is_outdated;           /* times have changed since the tables were made, */
  uint64_t next_renewal_ns;   /* ... which is not before then */
  double trial_debt_us;       /* what the last trial took that is not paid for yet */
  bool is_building;           /* in `build`, which is called by one at a time */
  bool is_changing;
  bool is_recording;                        /* in capture mode: a run records just now */
  uint32_t taken;                           /* by requests that wait or run, and writes of states, */
  uint32_t writes;                          /* ... which are so many of them */
  uint32_t runs;                            /* rondo_model_run of it */
  size_t waiting_rows;                      /* of requests in the queue, */
  rondo_slot_list waiting;                  /* ... which are these, */
  rondo_waiting by_way[RONDO_WAY_CAPTURED]; /* ... and by what they ask for */
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
  struct rondo_slot *next, *before; /* while it waits, as is the next; session/serve/batch_delay.h */
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
  rondo_table_entry entry;
  bool is_loaded; /* something else ran when it was formed, or no other lane was free */
  bool is_unrecorded;
  rondo_way_reason reason;
  size_t parts, taken, done, next_row;
  uint64_t padding;
  uint32_t first_graph;
  uint64_t began_ns;
  rondo_status status;
  rondo_saved_error error;
} rondo_batch;

#define RONDO_UNRECORDED_PART UINT32_MAX

/* Rows first .. first + rows of a batch, by one graph, or un-recorded. */
typedef struct rondo_part {
  rondo_batch *batch;
  size_t first, rows;
  uint32_t graph;
} rondo_part;

/* The session ----------------------------------------------------------------------------------------------------- */

/* The events around work on a lane's stream. */
typedef struct rondo_lane_span {
  rondo_event *begin, *end;
} rondo_lane_span;

/* Spans of work. A `begin` becomes `origin` before its distance gets so long that the driver's single-precision times
 * are coarse. */
typedef struct rondo_lane_timer {
  rondo_lane_span current; /* of what is queued, by who has claimed the lane; NULL: nothing is timed */
  pthread_mutex_t lock;    /* of what follows, and who exchanges `current` and `last` has it too */
  rondo_lane_span last;    /* of what has ended */
  bool has_last;           /* which is not counted yet */
  bool has_origin;
  rondo_event *origin;
  double origin_us; /* since the session's epoch */
} rondo_lane_timer;

/* Whether a lane is out of serving, by hand. Who takes it waits until it is free, and who gives it for its work: none
 * but them changes what it is meanwhile. */
typedef enum rondo_lane_hold { RONDO_NOT_HELD, RONDO_BEING_TAKEN, RONDO_TAKEN, RONDO_BEING_GIVEN } rondo_lane_hold;

struct rondo_lane {
  rondo_session *session;
  uint32_t number;
  bool has_thread, is_claimed;
  bool is_running; /* a batch, or a part of one */
  bool is_asleep;  /* its thread, and nobody has called it yet */
  rondo_lane_hold hold;
  uint32_t awaited; /* by so many who would claim it; they come before requests */
  rondo_thread thread;
  pthread_cond_t called;    /* for its thread, which looks for something to do then */
  rondo_executor *executor; /* of un-recorded runs; NULL: they go in a line */
  rondo_batch batch;        /* of who has claimed the lane */
  rondo_copy_list copies;   /* of inputs; likewise */
  rondo_lane_timer timer;
  uint64_t part_begin_ns, part_end_ns; /* of the graph that ran last, by who has claimed the lane */
  uint64_t queueing_ns;                /* of the part that ran last, by who has claimed the lane; 0: it was not timed */
};

struct rondo_session {
  rondo_allocator allocator;
  rondo_device *device;
  bool is_cuda;
  char *name;
  rondo_session_options options; /* resolved */
  pthread_mutex_t lock;
  pthread_cond_t change; /* a lane is free, a part or request done */
  rondo_session_model *models;
  rondo_session_model *capturing; /* in capture mode */
  rondo_lane lanes[RONDO_SESSION_MAX_STREAMS];
  rondo_slot *slots, *free_slots;
  uint32_t waiting;             /* requests */
  uint64_t appended;            /* that ever waited */
  uint64_t next_deadline_ns;    /* no request in the queue has one before it */
  uint64_t turns_taken, turn;   /* of calls that claim lanes: whose it is */
  uint64_t claims;              /* of lanes, by parts that begin and by calls */
  bool has_outdated;            /* a model is outdated, and no lane's thread has looked since */
  bool is_renewing;             /* tables are made */
  rondo_session_model *renewed; /* ... for this one; NULL: they are thrown away */
  rondo_batch *open;            /* batches with parts that nobody has taken */
  rondo_event *epoch;           /* complete; NULL: nothing is timed */
  rondo_busy busy;              /* of all lanes */
  rondo_session_usage usage;
  rondo_saved_error usage_error; /* that nobody has been told yet */
  uint32_t taken;                /* slots that are not free */
  uint32_t running;              /* requests that wait or run */
  uint32_t runs;                 /* rondo_model_run of all models */
  bool is_draining, is_stopping;
};

/* model_callback.c: refuses inside of a callback of a model of the session, or of a host function, and NULL. */
RONDO_MUST_USE rondo_status rondo_session_front(const char *call, const rondo_session *session);
/* Around a callback, on its thread. */
void rondo_session_callback_enter(rondo_session_callback *callback, const rondo_session *session);
void rondo_session_callback_leave(const rondo_session_callback *callback);

/* session.c: the model of this name; under the lock. */
RONDO_MUST_USE rondo_status rondo_session_find(rondo_session *session, const char *call, const char *name,
                                               rondo_session_model **out);
/* Under the lock: whether requests may run on the lane; claims it, giving the lock up while it waits; gives it up. */
static inline bool rondo_lane_is_free(const rondo_lane *lane) { return !lane->is_claimed && lane->awaited == 0; }
/* Whether all others are unclaimed. */
bool rondo_lane_is_alone(const rondo_lane *lane);
void rondo_lane_claim(rondo_lane *lane);
void rondo_lane_release(rondo_lane *lane);
/* Claims a lane, waiting for it, or all of them at once; and gives them up. Without the lock. */
void rondo_session_claim(rondo_session *session, uint32_t number);
void rondo_session_release(rondo_session *session, uint32_t number);
void rondo_session_claim_all(rondo_session *session);
void rondo_session_release_all(rondo_session *session);
/* The model is changing until the end: STILL_IN_USE while requests of it are taken, or streams by hand, and
 * ALREADY_CAPTURING while it changes already. The second one is for who has the lock, and has looked at the arguments.
 */
RONDO_MUST_USE rondo_status rondo_session_change_begin(rondo_session *session, const char *call, const char *name,
                                                       rondo_session_model **out);
RONDO_MUST_USE rondo_status rondo_session_change_begin_locked(rondo_session *session, const char *call,
                                                              const char *name, rondo_session_model **out);
void rondo_session_change_end(rondo_session_model *model);

/* session_model.c */
RONDO_MUST_USE rondo_status rondo_model_make_program(rondo_session_model *model, size_t rows, rondo_program **out);
RONDO_MUST_USE rondo_status rondo_model_make(rondo_session *session, const char *name,
                                             const rondo_model_options *options, rondo_session_model **out);
/* A failure is that of work that nobody waited for; it is gone all the same. NULL is fine. */
RONDO_MUST_USE rondo_status rondo_model_free(rondo_session_model *model);
void rondo_model_drop_graphs(rondo_session_model *model, rondo_status *kept);
/* What is known of graphs behind the first `count` goes, before they do: others may ask for it meanwhile. */
void rondo_model_forget_graphs(rondo_session_model *model, size_t count);

/* dispatch_tables.c, while the model is changing: microseconds by graph (unrecorded may be NULL: 0; given ones stay as
 * they are), the tables that follow from all times, and their end. */
void rondo_model_put_times(rondo_session_model *model, const double *recorded, const double *unrecorded,
                           bool are_given);
RONDO_MUST_USE rondo_status rondo_model_make_tables(rondo_session_model *model);
void rondo_model_drop_tables(rondo_session_model *model);
/* Under the lock. What a graph took that ran alone; no renewal of the model is wanted, nor one that is under way; makes
 * tables anew for a model whose times have changed, giving the lock up meanwhile: whether there was one, or when to
 * look again. */
void rondo_model_take_reading(rondo_session_model *model, size_t graph, uint64_t begin_ns, uint64_t end_ns);
void rondo_model_stop_renewal(rondo_session_model *model);
bool rondo_session_renew(rondo_session *session, uint64_t *inout_wait_ns);

/* time_trial.c, under the lock: runs the batch, which was decided, by one graph if that is to be tried; and counts that
 * one ran for so long. */
void rondo_batch_try(const rondo_lane *lane, rondo_batch *batch);
void rondo_trial_pay(const rondo_batch *batch, uint64_t run_ns);

/* function_model.c: inputs, outputs and constants as they were said. */
RONDO_MUST_USE rondo_status rondo_function_model_check(const rondo_model_options *options);
RONDO_MUST_USE rondo_status rondo_function_model_fill(rondo_session_model *model, const rondo_model_options *options);

/* model_probe.c: finds inputs and outputs out. */
RONDO_MUST_USE rondo_status rondo_model_probe(rondo_session_model *model);

/* model_instance.c: by who has claimed the lane, or changes the model while nothing of it runs. */
RONDO_MUST_USE rondo_status rondo_place_open(rondo_place *place, rondo_session_model *model, uint32_t lane,
                                             const rondo_weights *weights);
void rondo_place_close(rondo_place *place, rondo_status *kept);
RONDO_MUST_USE rondo_status rondo_place_capture(rondo_place *place, size_t rows);
void rondo_place_drop_last(rondo_place *place, rondo_status *kept);
/* Zeros in all inputs of the graph's program. */
RONDO_MUST_USE rondo_status rondo_place_write_zeros(rondo_place *place, size_t graph);
RONDO_MUST_USE rondo_status rondo_place_describe(const rondo_place *place, size_t graph, rondo_session_graph *out);
/* The program for un-recorded runs of so many rows, until the next. */
RONDO_MUST_USE rondo_status rondo_place_program_for(rondo_place *place, size_t rows, const rondo_placed **out);
/* Writes a state or cell wherever it is, and waits for that. */
RONDO_MUST_USE rondo_status rondo_place_write_state(rondo_place *place, const char *name, const void *data,
                                                    size_t bytes);
/* Where a compiled program has the model's inputs and outputs, as rondo_placed.addresses; and their end. NULL is fine.
 */
RONDO_MUST_USE rondo_status rondo_placed_find(const rondo_session_model *model, const rondo_compiled *compiled,
                                              void ***out);
void rondo_placed_forget(const rondo_session_model *model, void **addresses);
/* staging_memory.c: bytes for inputs and outputs of so many rows; one that has room, else a new one, likewise for what
 * is handed over; those of the graphs go; and those of un-recorded runs too. */
size_t rondo_stage_bytes(const rondo_session_model *model, size_t rows);
RONDO_MUST_USE rondo_status rondo_place_find_stage(rondo_place *place, size_t rows, rondo_stage *out);
RONDO_MUST_USE rondo_status rondo_place_find_handover(rondo_place *place, size_t bytes, unsigned char **out);
void rondo_place_drop_stages(rondo_place *place, rondo_status *kept);
void rondo_place_close_stages(rondo_place *place, rondo_status *kept);
/* Room in place->plain for so many rows, and in place->plain_handover for what comes ahead; NULL: nothing does. */
RONDO_MUST_USE rondo_status rondo_place_reserve_plain(rondo_place *place, size_t rows, const rondo_ahead *ahead);
unsigned char *rondo_stage_input(const rondo_session_model *model, unsigned char *memory, size_t rows, size_t index);
unsigned char *rondo_stage_output(const rondo_session_model *model, unsigned char *memory, size_t rows, size_t index);

/* What comes ahead of a graph, or the same un-recorded, on what its inputs hold: waits for the place's work and queues
 * it; and waits until it is done. Nothing where nothing comes ahead. */
RONDO_MUST_USE rondo_status rondo_place_start_ahead(rondo_place *place, const rondo_place_graph *g, bool is_recorded);
RONDO_MUST_USE rondo_status rondo_place_take_ahead(const rondo_place_graph *g, rondo_status started);
/* Both. */
RONDO_MUST_USE rondo_status rondo_place_run_ahead(rondo_place *place, const rondo_place_graph *g, bool is_recorded);
/* Behind that, queues the work of a graph, or the same un-recorded; and waits for the place's work. */
RONDO_MUST_USE rondo_status rondo_place_launch(rondo_place *place, const rondo_place_graph *g, bool is_recorded);
RONDO_MUST_USE rondo_status rondo_place_synchronize(const rondo_place *place);
/* Adds what arenas and staging memory of the place will take with graphs of so many rows, which descend. */
RONDO_MUST_USE rondo_status rondo_place_plan(const rondo_place *place, const size_t *rows, size_t count,
                                             rondo_model_bytes *inout);

/* function_instance.c: the same where the model is a function. A call copies the outputs to the stage. */
RONDO_MUST_USE rondo_status rondo_function_place_open(rondo_place *place);
void rondo_function_place_close(rondo_place *place, rondo_status *kept);
void rondo_function_place_reset(rondo_place *place, rondo_status *kept);
/* Calls a graph's function, or (NULL) the plain one. */
RONDO_MUST_USE rondo_status rondo_function_place_call(rondo_place *place, rondo_function *function,
                                                      const rondo_stage *stage, size_t rows);
RONDO_MUST_USE rondo_status rondo_function_place_record(rondo_place *place, const rondo_stage *stage,
                                                        rondo_place_graph *g);
RONDO_MUST_USE rondo_status rondo_function_place_write_zeros(const rondo_place *place, const rondo_place_graph *g);
RONDO_MUST_USE rondo_status rondo_function_place_describe(const rondo_place_graph *g, rondo_session_graph *out);
uint64_t rondo_function_place_arena(const rondo_place *place);

/* measure_graphs.c: microseconds from a launch until it is done, by graph of the place, recorded and not; they rise
 * with the rows. With out_unrecorded NULL they are for a choice of sizes: no row costs more than one of a smaller
 * graph. Likewise. */
RONDO_MUST_USE rondo_status rondo_place_measure(rondo_place *place, double *out_run, double *out_unrecorded);
/* What the graph takes of all lanes' time, when all of them run it, by who has claimed them; their inputs are zeros. */
RONDO_MUST_USE rondo_status rondo_model_measure_share(rondo_session_model *model, size_t graph, double *out_us);
/* Of each graph, how long it takes on all lanes at once; likewise. */
RONDO_MUST_USE rondo_status rondo_model_measure_overlaps(rondo_session_model *model);

/* batch_part.c: runs a part on its place and waits for it. */
RONDO_MUST_USE rondo_status rondo_part_run(rondo_place *place, const rondo_part *part);

/* utilisation.c: how long work is under way on the device, in a session that is timed. begin and end stand around the
 * work, keep is called once it is done, by who has claimed the lane; take counts what was kept, also of another lane.
 * And how long the host takes: read says the clock's time, 0 in a session that is not timed; the others count, under
 * the lock.
 */
RONDO_MUST_USE rondo_status rondo_usage_open(rondo_session *session);
void rondo_usage_close(rondo_session *session);
RONDO_MUST_USE rondo_status rondo_usage_begin(rondo_lane *lane, rondo_stream *stream);
RONDO_MUST_USE rondo_status rondo_usage_end(rondo_lane *lane, rondo_stream *stream);
void rondo_usage_keep(rondo_lane *lane);
void rondo_usage_take(rondo_lane *lane);
uint64_t rondo_usage_read_clock(const rondo_session *session);
void rondo_usage_count_forming(rondo_session *session, size_t requests, uint64_t begin_ns);
void rondo_usage_count_queueing(rondo_lane *lane);

/* model_capture.c, while the model is changing. Records a graph for so many rows on all lanes; its times are not known
 * yet.
 */
RONDO_MUST_USE rondo_status rondo_session_record(rondo_session_model *model, size_t rows);
/* On one lane; `out` is of the first. */
RONDO_MUST_USE rondo_status rondo_session_record_on(rondo_session_model *model, uint32_t lane, size_t rows,
                                                    rondo_session_graph *out);
/* Back to `count` graphs on each lane; the error of before stays. */
void rondo_session_take_back(rondo_session_model *model, size_t count);

/* choose_sizes.c: times of all graphs, and the tables that follow from them; and, while the model is changing,
 * microseconds of the graphs that the first lane has, in the order in which they were recorded there. */
RONDO_MUST_USE rondo_status rondo_model_measure(rondo_session_model *model);
RONDO_MUST_USE rondo_status rondo_model_measure_alone(rondo_session_model *model, double *out_us);

/* batch_sizes.c, while the model is changing and has no graphs: what graphs for 2, 4, ... times the rows of the largest
 * request are like, as long as they are worth having for requests that run together. `largest` was measured. */
enum { RONDO_MOST_DOUBLINGS = 16 };
RONDO_MUST_USE rondo_status rondo_model_find_doublings(rondo_session_model *model, const rondo_session_graph *largest,
                                                       rondo_session_graph *out, size_t *out_count);

/* batch.c, under the lock, and with the lane claimed. Forms a batch of what waits; false when nothing is ripe, and
 * *out_wait_ns says for how long (UINT64_MAX: until something comes). */
bool rondo_batch_form(rondo_session *session, rondo_lane *lane, uint64_t *out_wait_ns);
/* Runs the lane's batch to its end; gives the lock up meanwhile. */
void rondo_batch_lead(rondo_session *session, rondo_lane *lane);
/* Runs a part of another lane's batch, if there is one to take; likewise. */
bool rondo_batch_help(rondo_session *session, rondo_lane *lane);

/* request_queue.c: numbers for slots that are new. */
void rondo_slots_number(rondo_slot *slots, uint32_t count);
/* Under the lock. Puts a request at the end of the queue; takes it out of there; and gives it its answer, of which
 * `status` and the thread's last error are what went wrong. */
void rondo_queue_append(rondo_session *session, rondo_slot *slot);
void rondo_queue_remove(rondo_session *session, rondo_slot *slot);
void rondo_slot_finish(rondo_slot *slot, rondo_status status);
/* Takes those out whose deadline has passed by now. */
void rondo_queue_expire(rondo_session *session, uint64_t now);

/* lane.c, under the lock. Calls the threads of so many lanes that are free and asleep, if there are. */
void rondo_lanes_call(rondo_session *session, size_t count);
/* One, if there is something to do: for who has put something there, has let a lane go, or does a part of it all. */
static inline void rondo_lanes_call_for_rest(rondo_session *session) {
  const bool is_outdated = session->has_outdated && !session->is_renewing;
  if (session->waiting > 0 || session->open != NULL || is_outdated) rondo_lanes_call(session, 1);
}

/* The main function of a lane's thread. */
void *rondo_lane_main(void *lane);

#endif
