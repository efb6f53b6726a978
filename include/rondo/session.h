/* SPDX-License-Identifier: MIT
 * Sessions: models served from recordings at a few batch sizes, on several streams. A *model* is a network for batches
 * of any number of rows: a program that a callback makes for each, or a function as trees have them (<rondo/tree.h>).
 * Its recordings, the *graphs*, are told apart by model and index, one index for each size, and each stands on every
 * stream of the session: M streams by N sizes are M·N execs (SE-6, SE-7). A *request* is a number of rows of a model's
 * inputs; it is run by one graph, whose other rows are padding, by several graphs on several streams, or un-recorded,
 * whichever costs least by measured times (SE-8).
 *
 *   const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = 4, .max_delay_us = 500};
 *   TRY(rondo_session_create(device, &options, &session));
 *   const rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT, .build = build_ranker, .weights = weights,
 *                                      .history = rows_of_requests, .history_count = n};
 *   TRY(rondo_session_add_model(session, "ranker", &model));
 *   TRY(rondo_session_capture(session, "ranker"));                   // chooses sizes, records them, measures
 *   rondo_request request = {RONDO_REQUEST_INIT, .rows = 450, .inputs = inputs, .outputs = outputs};
 *   TRY(rondo_session_run(session, "ranker", &request, &answer));    // answer: graph, padding, or why un-recorded
 *
 * Rows are independent of each other: a row of an output depends on the same row of the inputs and on states alone, and
 * no run of a model changes a state. The first dimension of each input and output is the number of rows times a
 * constant.
 *
 * A session is thread-safe. It has a thread for each stream; a call of rondo_session_run that finds a stream free does
 * its work itself. A forked child has none of these threads: sessions of its parent refuse all calls there
 * (<rondo/device.h>, Fork).
 */
#ifndef RONDO_SESSION_H
#define RONDO_SESSION_H

#include <rondo/audit.h>
#include <rondo/placement.h>
#include <rondo/program.h>
#include <rondo/sizes.h>
#include <rondo/tree.h>
#include <rondo/weights.h>

RONDO_EXTERN_C_BEGIN

#define RONDO_SESSION_MAX_STREAMS 16
#define RONDO_SESSION_MAX_SIZES 64
#define RONDO_SESSION_MAX_VALUES 64 /* inputs, and outputs, of a model */
#define RONDO_SESSION_MAX_BATCH 64  /* requests that run together */
#define RONDO_SESSION_MAX_PARTS 8   /* graphs that run one request's rows, or those of a batch of requests */

typedef struct rondo_session rondo_session;

/* A request that was submitted, until it is waited for. Copied freely. Its number is given out once, so that a ticket
 * that was waited for is never taken for that of a later request. All zero is none. */
typedef struct rondo_ticket {
  rondo_session *session;
  uint64_t number;
} rondo_ticket;

typedef struct rondo_session_options {
  uint32_t struct_size;  /* RONDO_SESSION_OPTIONS_INIT sets it; 0 means the library's own */
  uint32_t streams;      /* M, at most RONDO_SESSION_MAX_STREAMS; 0 = 1 */
  uint32_t max_delay_us; /* how long a request may wait for others to share a graph with; 0: it does not wait, but those
                            that wait for a stream anyway are batched all the same. While three streams run, a request
                            whose rows cost 1.5 times what they do in a full graph waits until one of them is done, but
                            no longer than it would run. None waits where max_batch is 1 */
  uint32_t max_queue;    /* requests that wait or run, at most; 0 = 1024 */
  bool strict;           /* what no graph can run is refused instead of being run un-recorded */
  uint32_t max_unrecorded; /* numbers of rows that a stream keeps a program for, for un-recorded runs; the least
                              recently used goes; 0 = 8 */
  const char *name;        /* for messages; copied; may be NULL */
  uint32_t max_batch; /* requests that graphs run together, at most; 0 = RONDO_SESSION_MAX_BATCH; 1: each by itself.
                         As few do as make a row cost at most 10 % more than with any other number of those that
                         wait, and others for which there is room in their graphs beside them; un-recorded, each runs by
                         itself */
  bool timed;         /* keep how long work is under way on the device (rondo_session_get_usage): two events for
                         each graph or un-recorded run */
  const rondo_executor_options *executor; /* each stream has such an executor (<rondo/executor.h>), by which the model's
                                             work goes in un-recorded runs where that was measured to be faster; copied;
                                             NULL: none has, and it goes in a line */
} rondo_session_options;
#define RONDO_SESSION_OPTIONS_INIT .struct_size = sizeof(rondo_session_options)

/* An empty session. options may be NULL. The caller destroys it before the device is closed. Thread-safe. Errors:
 * INVALID_ARGUMENT with NULL_ARGUMENT, BAD_OPTIONS, OUT_OF_RANGE; OUT_OF_MEMORY; LIMIT_EXCEEDED (threads); those of
 * rondo_executor_create. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_create(rondo_device *device, const rondo_session_options *options,
                                                           rondo_session **out_session);

/* Takes no more requests, answers those that were taken, and frees all with its memory. Tickets must have been waited
 * for, runs destroyed, and streams given back. NULL is fine. Errors: INVALID_STATE/STILL_IN_USE (a ticket, run or
 * stream is out: the session takes no more requests, and can be destroyed later); IN_CALLBACK; else the session is
 * gone, and a failure is that of work that nobody waited for. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_destroy(rondo_session *session);

/* Models ---------------------------------------------------------------------------------------------------------- */

/* Adds the network for batches of `rows` rows to an empty program: inputs, states, outputs. For any number of rows it
 * makes the same inputs, outputs and states in the same order. A callback, and not one program with a dimension that is
 * left open: constants, reshapes and choices that depend on the number of rows are plain C this way, operators see
 * numbers, and a program is needed for each size anyway, as its memory is planned for it. Called by
 * rondo_session_add_model, by captures, and by un-recorded runs, from any thread, one at a time for each model, and
 * with no lock held: other threads use the session meanwhile. It must not call its session, nor must the body of a
 * function: such a call is refused with INVALID_STATE/IN_CALLBACK. */
typedef rondo_status (*rondo_model_build)(void *user, size_t rows, rondo_program *program);

/* A function as a model. Its body is that of rondo_function_options: it is called with as many inputs as were said,
 * each [rows, ...] in device memory, and makes output i by rondo_call_output(call, i, ...), of rows times the bytes
 * that were said. It is warmed up and recorded once for each graph on each stream, by a tree of the session's, whose
 * arena all sizes on a stream have in common; streams that it forks off are branches of the graph. A body that a tree
 * does not record is no model: that is said, with the reason, when it is captured. It may run on several streams at
 * once, from several threads, and what it copies from host memory must be among the constants, which are audited
 * (SE-4). */
typedef struct rondo_row_value {
  const char *name; /* copied */
  rondo_type type;
  uint32_t rank; /* of a row: 0 for a number; below RONDO_TREE_MAX_RANK */
  size_t shape[RONDO_TREE_MAX_RANK];
} rondo_row_value;

typedef struct rondo_model_options {
  uint32_t struct_size;
  uint32_t max_sizes;      /* graphs on a stream, at most: chosen by rondo_session_capture, for requests alone and for
                              several together; 0 = 16; at most RONDO_SESSION_MAX_SIZES */
  rondo_model_build build; /* or body */
  void *user;              /* must outlive the model */
  const rondo_weights *weights; /* states at the beginning; read during the call; NULL: zeros */
  const size_t *history;        /* rows of requests that came, in any order; copied. What sizes are chosen for */
  size_t history_count;
  uint64_t budget_bytes;         /* of a stream's graphs, for choosing; 0 = no limit */
  uint64_t budget_startup_us;    /* likewise, of the time that capturing on a stream takes */
  rondo_function_body body;      /* in place of build: the model is a function, with `user`, and these: */
  const rondo_row_value *inputs; /* what a row of each is; copied */
  size_t input_count;
  const rondo_row_value *outputs;
  size_t output_count;
  const rondo_host_range *constants; /* host memory that it copies from, which stays as it is; the list is copied */
  size_t constant_count;
  size_t max_batch_rows; /* of requests that run together, at most, for which rondo_session_capture chooses sizes beyond
                            the largest request of the history, among max_sizes and within the budgets: up to 2, 4, 8,
                            ... times that, as long as a row is cheaper by 10 % in twice as many while all streams are
                            busy; 0: 4 times the largest of the history, or with a budget none; 1: none */
  rondo_device *const *devices;      /* of a program whose operators have places (see Divided models); the first is the
                                        session's, and all stay open as long as the model; the list is copied */
  size_t device_count;               /* 0: all is on the session's */
  const rondo_placement_rule *rules; /* copied */
  size_t rule_count;
} rondo_model_options;
#define RONDO_MODEL_OPTIONS_INIT .struct_size = sizeof(rondo_model_options)

/* Adds a model by its name, which must not be empty. A program is made for two numbers of rows, to find out what it is.
 * Errors: INVALID_ARGUMENT with NULL_ARGUMENT, BAD_OPTIONS (build and body), DUPLICATE_NAME, SHAPE (an input or output
 * whose first dimension is not rows times a constant, or that is otherwise not the same for other rows, named; a model
 * without inputs or outputs), OUT_OF_RANGE (more than RONDO_SESSION_MAX_VALUES of them); what build and
 * rondo_weights_apply return; OUT_OF_MEMORY. With devices: INVALID_ARGUMENT with OTHER_DEVICE (the first is not the
 * session's), BAD_OPTIONS (a function; rules without devices), and as rondo_compile_divided; UNSUPPORTED/OTHER_DEVICE,
 * naming what and where, for a division in which nothing runs on the session's device, or another device reads what was
 * computed elsewhere or a state that does not lie there. UNSUPPORTED/SHAPE, from captures and un-recorded runs, when it
 * is another one for other rows. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_add_model(rondo_session *session, const char *name,
                                                              const rondo_model_options *options);

/* Frees the model with its graphs and memory. Errors: NOT_FOUND/UNKNOWN_NAME; INVALID_STATE with STILL_IN_USE while
 * a request of it waits or runs, a state of it is written, a run of it is out, or a stream is taken, ALREADY_CAPTURING
 * while it is captured. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_remove_model(rondo_session *session, const char *name);

/* Writes a state or cell of the model, which all its streams have in common, while none of them runs: waits for what
 * runs and for streams that are taken; requests that come meanwhile wait. While a model is being captured it writes
 * between two recordings or measurements: that changes no graph and no size that is chosen. Errors:
 * NOT_FOUND/UNKNOWN_NAME (the model; a name that no state or cell has; a function, whose states are its own); as
 * rondo_compiled_write. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_write(rondo_session *session, const char *model, const char *name,
                                                          const void *data, size_t bytes);

/* An input or output of a model, by index in the order in which the program makes them. */
typedef struct rondo_model_value {
  uint32_t struct_size;
  rondo_type type;
  const char *name; /* the model's own */
  size_t row_bytes; /* of one row of a request */
} rondo_model_value;

/* Errors: NOT_FOUND with UNKNOWN_NAME (the model), OUT_OF_RANGE (past the last); INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_get_input(rondo_session *session, const char *model, size_t index,
                                                              rondo_model_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_session_get_output(rondo_session *session, const char *model, size_t index,
                                                               rondo_model_value *out_value);

/* Divided models (SE-9). A model whose tables are large is served with its look-ups on a CPU device, where the tables
 * lie, and its dense part recorded on the session's device, which need not have room for them:
 *
 *   rondo_device *const devices[] = {gpu, cpu};
 *   const rondo_placement_rule rules[] = {{.operator_name = "embedding", .place = 1}};
 *   ... .devices = devices, .device_count = 2, .rules = rules, .rule_count = 1 ...       // of rondo_model_options
 *
 * Where operators run and states lie is said by rules and by rondo_program_place in `build`, as <rondo/placement.h> has
 * it; place 0 is the session's device, and devices are of any kind. What is placed on another device runs *ahead* of
 * the rest: it reads inputs of the model and states of its own, and what it computes is handed over by host memory of
 * the session's, page-locked where one of the devices is CUDA's. Each graph is then one recording on each device. Rows
 * of an input that look-ups read are put together in host memory, and copied from there by their recording; those of
 * other inputs are copied to the session's device meanwhile. Copies of what is handed over are part of the dense
 * recording.
 *
 * Each stream of the session has streams, arenas and host memory of its own on every device, so that the look-ups of
 * one request, and the copies of its inputs, run while the dense part of its neighbour does: that takes two streams at
 * least. All else is as for models in one piece: capture mode, sizes and their choice by the times of both together,
 * batches, splitting, un-recorded runs, deadlines, states written by name. A request with a wrong index fails before
 * its dense part runs. On devices of one kind results have the same bits as undivided. A model is divided alike for any
 * number of rows: its states stay where they are. */

/* Capturing ------------------------------------------------------------------------------------------------------- */

/* Capture mode (SE-1): until the end, each run of this model records a graph for its number of rows instead of running,
 * on every stream; nothing is read from its inputs nor written to its outputs. Other models run as ever, but on no
 * stream by hand: recording needs them all. k runs make k graphs, whose indices count from 0 on. Record the largest
 * first: the sizes of a model that stand on one stream never run together and have one arena in common. While a stream
 * records it is used for compute and copies alike, and nothing waits; afterwards it is as before (SE-2). That makes a
 * line of what is captured, but for the branches of a program, which are known without events: they stay branches of
 * the graph where rondo_compile would take them. Memory of a graph is the graph's, separate from that of un-recorded
 * runs of other sizes but for the arena (SE-3). The copies of what was recorded are audited (SE-4), and those of inputs
 * are taken out (SE-5). Errors: NOT_FOUND/UNKNOWN_NAME; INVALID_STATE with ALREADY_CAPTURING, NOT_CAPTURING. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_capture_begin(rondo_session *session, const char *model);
RONDO_API RONDO_MUST_USE rondo_status rondo_session_capture_end(rondo_session *session);

/* What a model takes, on all streams together. */
typedef struct rondo_model_bytes {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t state_bytes, arena_bytes, exec_bytes, staging_bytes; /* as in rondo_model_info */
} rondo_model_bytes;

/* Says what the model will take once graphs for these numbers of rows stand, the largest recorded first, before any of
 * them is recorded. States, arenas and staging memory are planned as recording will plan them, to the byte, for a model
 * that was not run un-recorded before. What execs take is that of one for the smallest number of rows, which is
 * recorded on the first stream and destroyed: to the byte where all sizes have the same nodes, which operators may
 * choose otherwise for other sizes, and on CUDA an estimate as rondo_exec_info.device_bytes is. Errors: as
 * rondo_session_capture; INVALID_ARGUMENT with NULL_ARGUMENT, BAD_SIZE (no sizes, a size of 0, or one twice);
 * UNSUPPORTED/NONE (a function: what it takes is known when it has run). */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_plan(rondo_session *session, const char *model, const size_t *rows,
                                                         size_t count, rondo_model_bytes *out_bytes);

/* Chooses sizes for the model's history, within its budgets (<rondo/sizes.h>), from times that are measured on the way,
 * and records them on all streams, the largest first. Sizes are for requests alone and for several of the history
 * together, of which k count 1 / k^2.5 times what one does, as how many will wait for each other is not known; and a
 * row of padding costs beside its time what a row of the largest request does. Of choices that cost within 0.2 % of the
 * best, one of the fewest sizes is taken. Times are the least of rounds in which all sizes take turns, recorded and
 * not; while the least two of a size are more than 5 % apart, as beside other work, there are more rounds, for up to
 * 1.2 s and one round; and where sizes are chosen no row of a size costs more than one of a smaller size. One graph
 * runs a request unless several graphs, or an un-recorded run, are cheaper by 3 % at least: in time while nothing else
 * runs, and else in what they take of all streams' time together; an un-recorded run costs the compilation of a program
 * too, for the share of the history whose rows no program is kept for (rondo_session_options.max_unrecorded). Errors:
 * as a run in capture mode; INVALID_STATE with ALREADY_CAPTURED (it has graphs), ALREADY_CAPTURING;
 * INVALID_ARGUMENT/NONE (no history); LIMIT_EXCEEDED (the budgets); what rondo_compile, rondo_instantiate,
 * rondo_function_prepare and rondo_graph_audit_copies return. The model has then no graphs. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_capture(rondo_session *session, const char *model);

/* Destroys the model's graphs on all streams and frees their memory; it can be captured anew, and runs un-recorded till
 * then. Errors: as rondo_session_remove_model. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_destroy_graphs(rondo_session *session, const char *model);

/* Times that change (SE-8). Times that were measured beside other work are too long, and a machine gets slower and
 * faster. So the session also times what it runs, and decides by that. A run is a *reading* when one graph runs the
 * whole batch and nothing else runs on the session's streams meanwhile; it lasts from the copy of the first input until
 * the results are there. A reading below the known time replaces it at once. A longer one may have been disturbed: the
 * known time rises only if all of 16 readings are longer, to the least of them. A graph with fewer readings is taken to
 * be as much slower than measured as the graph with the nearest number of rows that has 16, and so are un-recorded
 * runs. No graph is taken to be slower than a larger one.
 *
 * A graph that is thought to be slow would never run. So a batch that several graphs, or an un-recorded run, are
 * thought to run faster than one graph is sometimes run by the smallest graph with room for it: a *trial*, for which
 * the answer has RONDO_WAY_TRIAL. It may take longer than the way that was decided. There are trials only while nothing
 * else waits or runs: three of each graph, and others that together take about 1 % of the time that the model's batches
 * run. A batch with more rows than the largest graph is no trial, and neither is a request that asks for UNRECORDED.
 *
 * Once a known time is more than 5 % from the one that decisions were made by, they are made anew, while requests run
 * by the old ones: by the thread of a stream that has nothing to do, which takes at most 1 % of its time. Without
 * memory for that the old decisions stay, and it is tried again. rondo_session_decide says the newest. Times that were
 * given by rondo_session_set_times stay: they have no readings and no trials. */

/* What is known of a graph (model, index). */
typedef struct rondo_model_graph {
  uint32_t struct_size;
  uint32_t nodes;       /* of the exec on one stream */
  size_t rows;          /* it has room for */
  double run_us;        /* measured: from the launch until it is done; the least of some, and no more than that of a
                           graph with more rows. 0 in capture mode */
  double unrecorded_us; /* the same work, un-recorded */
  uint64_t exec_bytes;  /* host and device memory of the exec, on one stream */
  uint64_t arena_bytes; /* that it needs of the arena of its stream */
  uint64_t launches;    /* on all streams */
  uint64_t rows_run;    /* of requests, in these */
  double capture_us;    /* what recording it took, on one stream */
  bool has_branches;    /* independent operators run side by side, and are no line */
  double current_us;    /* that decisions are made by: run_us, until readings say otherwise (see Times that change) */
  double current_unrecorded_us; /* likewise */
  uint64_t readings;            /* since it was measured */
  uint64_t trials;              /* likewise */
} rondo_model_graph;

/* Errors: NOT_FOUND with UNKNOWN_NAME, OUT_OF_RANGE; INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_get_graph(rondo_session *session, const char *model, size_t index,
                                                              rondo_model_graph *out_graph);

/* Gives the graphs of a model other times than those that were measured, in microseconds by index, `count` of each:
 * from an earlier run of the program, or for tests. They stay until graphs are captured. unrecorded may be
 * NULL: then nothing runs un-recorded but what has no graph. `overlap`: how long all streams take for a graph at once,
 * as a part of one after the other, at least 1 / streams and at most 1, the same for all graphs; 0 = as measured, for
 * some sizes, and on lines between them. Errors: NOT_FOUND/UNKNOWN_NAME; INVALID_ARGUMENT with NULL_ARGUMENT,
 * OUT_OF_RANGE (a count that is not that of the graphs, a time that is none); OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_set_times(rondo_session *session, const char *model,
                                                              const double *recorded, const double *unrecorded,
                                                              size_t count, double overlap);

/* Running by hand (SE-6) ------------------------------------------------------------------------------------------ */

/* Takes a stream out of serving, waiting until it is free, for what follows; streams count from 0. *out_stream is where
 * the model's work runs. Several may be taken, in any order; calls that need all wait until none is taken, while
 * requests go on. Errors: NOT_FOUND with UNKNOWN_NAME, OUT_OF_RANGE; INVALID_STATE/NOT_CAPTURED (no graphs);
 * INVALID_STATE/STILL_IN_USE (it is taken already); INVALID_STATE/ALREADY_CAPTURING (capture mode, of whatever model).
 */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_take_stream(rondo_session *session, const char *model,
                                                                size_t number, rondo_stream **out_stream);
/* Waits for its work and gives it back to serving. Of several threads that give it, one does. Errors:
 * INVALID_STATE/SCOPE (it was not taken, or another thread gives it); what failed of its work. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_give_stream(rondo_session *session, size_t number);

/* The row `input` of the map of host source to device destination of a graph on a stream: where the input's rows go
 * before a launch, and how many bytes there is room for. Its source is the session's own memory, which was recorded.
 * For an input that parts ahead of a divided model read, it is also the destination: rows are put there.
 * Errors: NOT_FOUND with UNKNOWN_NAME, OUT_OF_RANGE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_get_input_copy(rondo_session *session, const char *model,
                                                                   size_t index, size_t number, size_t input,
                                                                   rondo_input_copy *out_copy);

/* Launches the graph (model, index) on a stream that was taken. Does not wait, but for the stream's work and what runs
 * ahead where the model is divided; a wrong index of that comes out here. Outputs are copied to the session's own
 * memory, where rondo_session_get_result finds those of the last graph once the stream was waited for, until the next
 * launch. Errors: NOT_FOUND with UNKNOWN_NAME, OUT_OF_RANGE; INVALID_STATE/SCOPE (the stream was not taken); as
 * rondo_exec_launch. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_launch(rondo_session *session, const char *model, size_t index,
                                                           size_t number);
/* Where an output of the last graph on a stream is, as said above. Errors: NOT_FOUND with UNKNOWN_NAME, OUT_OF_RANGE;
 * INVALID_STATE/NO_OUTPUT (nothing of the model was launched on the stream). */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_get_result(rondo_session *session, const char *model, size_t number,
                                                               size_t output, const void **out_data);

/* Requests -------------------------------------------------------------------------------------------------------- */

/* What runs a request. */
typedef enum rondo_way {
  RONDO_WAY_AUTO = 0,       /* asked for: the cheapest */
  RONDO_WAY_RECORDED = 1,   /* one graph */
  RONDO_WAY_SPLIT = 2,      /* several graphs */
  RONDO_WAY_UNRECORDED = 3, /* kernel by kernel, on so many rows and no more */
  RONDO_WAY_CAPTURED = 4    /* nothing: it was recorded, in capture mode */
} rondo_way;

/* Why that way. */
typedef enum rondo_way_reason {
  RONDO_WAY_CHEAPEST = 0,
  RONDO_WAY_ASKED = 1,     /* rondo_request.way */
  RONDO_WAY_NO_GRAPH = 2,  /* the model has none */
  RONDO_WAY_AGAIN = 3,     /* its batch failed, and it was run again, by itself or with half of the batch at most */
  RONDO_WAY_CAPTURING = 4, /* capture mode */
  RONDO_WAY_TRIAL = 5      /* one graph, to time it (see Times that change) */
} rondo_way_reason;

typedef struct rondo_request {
  uint32_t struct_size;
  rondo_way way; /* AUTO, RECORDED (one graph or several) or UNRECORDED */
  size_t rows;
  /* Host memory of each input, rows times its row_bytes; may be changed after the answer. Memory of rondo_host_malloc
   * of the session's device is copied from where it is; rows in other memory are put together in the session's own
   * first, where the device is CUDA's. There a kernel copies the rows for a graph, up to 2 MiB in all, 64 pieces of
   * memory a launch. */
  const void *const *inputs;
  void *const *outputs; /* host memory for each output; NULL entries: not wanted */
  size_t input_count;   /* those of the model, or 0: that many */
  size_t output_count;
  uint64_t deadline_us; /* from the call on: when it has not begun to run by then, it is not run; 0: none. It waits for
                           others no longer than half of that */
} rondo_request;
#define RONDO_REQUEST_INIT .struct_size = sizeof(rondo_request)

typedef struct rondo_answer {
  uint32_t struct_size;
  rondo_way way; /* that its batch was run */
  rondo_way_reason reason;
  uint32_t graph;          /* the index of the first graph that ran its batch; 0 when none did */
  uint32_t graphs;         /* how many graphs ran its batch */
  uint32_t stream;         /* number of the first */
  uint32_t batch_requests; /* requests that ran together, this one included */
  uint32_t reserved;
  uint64_t batch_rows;
  uint64_t padding_rows; /* of the graphs that ran the batch */
  double queue_us;       /* from the call until it began to run */
  double run_us;         /* from then until it was done */
} rondo_answer;

/* Runs a request and waits for it. out_answer may be NULL. Errors: NOT_FOUND/UNKNOWN_NAME; INVALID_ARGUMENT with
 * NULL_ARGUMENT, SHAPE (no rows), ARGUMENT_COUNT, OUT_OF_RANGE (way);
 *   LIMIT_EXCEEDED/NONE: max_queue requests wait or run already;
 *   LIMIT_EXCEEDED/TIMED_OUT: the deadline passed before it began;
 *   INVALID_STATE/ABORTED: cancelled; INVALID_STATE/NONE: the session is being drained;
 *   UNSUPPORTED/NOT_RECORDED: no graph can run it, and the session is strict, or the request asked for one;
 *   EXECUTION_FAILED/OUT_OF_RANGE and what else its work failed for. Requests of a batch that fails are run again in
 *   halves, and those of a half that fails likewise, so that each has its own errors. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_run(rondo_session *session, const char *model,
                                                        const rondo_request *request, rondo_answer *out_answer);

/* Hands a request in, of which a copy is taken; its inputs and outputs, and the lists of them, stay the session's until
 * it was waited for. The ticket is waited for once; it is zero after a failure. Does not wait, but in capture mode.
 * Errors: those of rondo_session_run that come before it is queued. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_submit(rondo_session *session, const char *model,
                                                           const rondo_request *request, rondo_ticket *out_ticket);
/* Waits for the answer, with which the ticket is over. out_answer may be NULL. Any thread, one. Errors: those of the
 * request; INVALID_ARGUMENT/NULL_ARGUMENT (a ticket that is none); INVALID_STATE/STALE_TICKET (it was waited for
 * already, or another thread waits for it). */
RONDO_API RONDO_MUST_USE rondo_status rondo_ticket_wait(rondo_ticket ticket, rondo_answer *out_answer);
/* Whether it can be waited for without waiting: OK, or NOT_READY. Any thread, also while another one waits. Errors:
 * INVALID_ARGUMENT/NULL_ARGUMENT; INVALID_STATE/STALE_TICKET (it was waited for). */
RONDO_API RONDO_MUST_USE rondo_status rondo_ticket_query(rondo_ticket ticket);
/* Takes a request that still waits back: its wait returns INVALID_STATE/ABORTED. One that runs, is done, or was waited
 * for goes its way, and a ticket that is none is fine. The ticket is still to be waited for. Any thread, also while
 * another one waits. */
RONDO_API void rondo_ticket_cancel(rondo_ticket ticket);

/* Runs: create, reshape, bind, invoke, destroy, where a change of shape, a change of addresses and running are separate
 * calls, for callers who do one more often than the others (the life-cycle is XNNPACK's). A run is thread-compatible;
 * the session's model stays as long as it has runs. */
typedef struct rondo_model_run rondo_model_run;
/* Errors: INVALID_ARGUMENT, NOT_FOUND/UNKNOWN_NAME, OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_model_run_create(rondo_session *session, const char *model,
                                                             rondo_model_run **out_run);
/* How many rows it has from now on. With more than before, inputs and outputs are to be bound again. Errors:
 * INVALID_ARGUMENT with NULL_ARGUMENT, SHAPE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_model_run_reshape(rondo_model_run *run, size_t rows);
/* Where its inputs and outputs are from now on, as in rondo_request; the lists are copied. Errors: INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_model_run_bind(rondo_model_run *run, const void *const *inputs,
                                                           void *const *outputs);
/* Runs it as rondo_session_run would. Does not allocate. Errors: INVALID_STATE with SHAPE (it was not reshaped),
 * NULL_ARGUMENT (not bound); those of rondo_session_run. */
RONDO_API RONDO_MUST_USE rondo_status rondo_model_run_invoke(rondo_model_run *run, rondo_answer *out_answer);
/* NULL is fine. Thread-compatible. */
RONDO_API void rondo_model_run_destroy(rondo_model_run *run);

/* Takes no more requests and waits until all that were taken are answered. Errors: INVALID_ARGUMENT, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_drain(rondo_session *session);

/* A model's figures, since it was added. */
typedef struct rondo_model_info {
  uint32_t struct_size;
  uint32_t graphs, inputs, outputs;
  uint64_t requests; /* answered well, and the next by how their batches ran */
  uint64_t recorded, split, unrecorded;
  uint64_t refused, timed_out, cancelled, failed;
  uint64_t batches, batched;             /* batches of two requests and more, and their requests */
  uint64_t rows, padding_rows;           /* of requests, and added to them */
  uint64_t launches;                     /* of graphs */
  uint64_t unrecorded_programs, evicted; /* compiled for un-recorded runs, and those that went */
  uint64_t isolated;                     /* batches that failed and were run again in halves */
  uint64_t state_bytes, arena_bytes, exec_bytes, staging_bytes; /* on all streams */
  double overlap;             /* of the graph with most rows, see rondo_session_set_times; 1: no graphs */
  uint64_t executor_programs; /* of unrecorded_programs, those whose runs go by the streams' executors */
  uint64_t ahead_state_bytes, ahead_arena_bytes; /* of the above, those of a divided model on other devices */
  uint64_t trials;                               /* batches that were trials (see Times that change) */
  uint64_t renewals;                             /* how often decisions were made anew, because times had changed */
} rondo_model_info;

/* Errors: NOT_FOUND/UNKNOWN_NAME, INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_get_model_info(rondo_session *session, const char *model,
                                                                   rondo_model_info *out_info);

/* How long the session's work was under way on its device, since it was created: from the first kernel or copy of a
 * graph, or of an un-recorded run, to the last, by events of the device around each. Copies of inputs that come before
 * a graph do not count, nor does what runs ahead on other devices. Between the kernels of an un-recorded run the device
 * may wait for the host: that time counts. And what the host takes for it, by its clock: to form batches, under the
 * session's lock, from a look for who goes first until it is decided which graphs run those that run together; and to
 * queue graphs, from the first row of their inputs until the launch returns, with parts of a divided model that run
 * ahead. */
typedef struct rondo_session_usage {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t parts;     /* graphs and un-recorded runs */
  double busy_us;     /* in which one of them at least was under way, on whatever stream */
  double sum_us;      /* of all of them, added */
  uint64_t batches;   /* that were formed, */
  uint64_t requests;  /* ... of so many, */
  double forming_us;  /* ... in all */
  uint64_t graphs;    /* that were queued, */
  double queueing_us; /* ... in all */
} rondo_session_usage;

/* Thread-safe. Errors: INVALID_ARGUMENT; INVALID_STATE/NO_TIMING (rondo_session_options.timed); what the device says of
 * its events, the first since the last call, also where a request's were looked at: what they are of is not counted,
 * and the next call goes on. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_get_usage(rondo_session *session, rondo_session_usage *out_usage);

/* What a request of so many rows would be run by, and what that costs by the times known; *out_parts graphs by index in
 * `parts`, room for RONDO_SESSION_MAX_PARTS. More rows than the table has are run by the largest graph as often as it
 * takes, and one such part for the rest. Errors: NOT_FOUND/UNKNOWN_NAME, INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_decide(rondo_session *session, const char *model, size_t rows,
                                                           rondo_way *out_way, uint32_t *parts, uint32_t *out_parts,
                                                           double *out_us);

RONDO_EXTERN_C_END

#endif
