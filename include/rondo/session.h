/* SPDX-License-Identifier: MIT
 * Sessions serve models from recordings at a few batch sizes, on several streams. A *model* is a network for batches of
 * any number of rows: a program that a callback builds for each number of rows, or a function as in trees
 * (<rondo/tree.h>). Its recordings are *graphs*, one for each batch size. A graph has an index in its model and is
 * recorded on every stream of the session: M streams and N sizes make M·N execs (SE-6, SE-7). A *request* is a number
 * of rows of a model's inputs. It is run by one graph, with padding for the rows that are left; by several graphs on
 * several streams; or eagerly. The session chooses what costs least by measured times (SE-8).
 *
 *   const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = 4, .max_delay_us = 500};
 *   TRY(rondo_session_create(device, &options, &session));
 *   const rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT, .build = build_ranker, .weights = weights,
 *                                      .history = rows_of_requests, .history_count = n};
 *   TRY(rondo_session_add_model(session, "ranker", &model));
 *   TRY(rondo_session_capture(session, "ranker"));                   // chooses sizes, records them, measures
 *   rondo_request request = {RONDO_REQUEST_INIT, .rows = 450, .inputs = inputs, .outputs = outputs};
 *   TRY(rondo_session_run(session, "ranker", &request, &answer));    // answer: graph, padding, or why it ran eagerly
 *
 * Rows are independent: a row of an output depends only on the same row of the inputs and on states. The first
 * dimension of each input and output is the number of rows times a constant; a second dimension may vary, too (see
 * Lengths). On several streams, a model must change no state, except the cache slots of sequences. In a session with
 * one stream, a model may also change other states, such as running means or a state that is assigned: each graph and
 * each eager run of a request changes them once, and sees its rows of padding too, which are zeros. Recording and
 * measuring graphs leaves them as they are, and so does a request that fails: what fits into one graph is not split,
 * and a request of more rows runs eagerly. Only what must run by graphs is split, in a strict session or by
 * RONDO_RUN_RECORDED; and a prompt that is longer than the longest length has several parts. If one of these graphs
 * fails, those before it have changed the states.
 *
 * A session is thread-safe. It has a thread for each stream; a call of rondo_session_run that finds a free stream does
 * the work itself. A forked child has none of these threads, and sessions of its parent refuse all calls there
 * (<rondo/device.h>, Fork).
 *
 * Component: rondo-session.
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
#define RONDO_SESSION_MAX_VALUES 64  /* inputs of a model; also outputs */
#define RONDO_SESSION_MAX_BATCH 64   /* requests that run together */
#define RONDO_SESSION_MAX_PARTS 8    /* graphs that run one batch */
#define RONDO_SESSION_MAX_LENGTHS 32 /* of a model */

typedef struct rondo_session rondo_session;

/* A submitted request, until it is waited for. Tickets may be copied. A number is used once, so a stale ticket is never
 * confused with a later request. All zeros is no ticket. */
typedef struct rondo_ticket {
  rondo_session *session;
  uint64_t number;
} rondo_ticket;

/* A sequence, until it is closed (see Sequences). Handles may be copied. A number is used once, so a stale handle is
 * never confused with a later sequence. All zeros is no sequence. */
typedef struct rondo_sequence {
  rondo_session *session;
  uint32_t model, slot;
  uint64_t number;
} rondo_sequence;

typedef struct rondo_session_options {
  uint32_t struct_size;  /* RONDO_SESSION_OPTIONS_INIT sets it; 0 means the library's own */
  uint32_t streams;      /* at most RONDO_SESSION_MAX_STREAMS; 0 = 1 */
  uint32_t max_delay_us; /* how long a request may wait for others to share a graph with. With 0, only requests that
                            wait for a stream anyway are batched. While three streams run, a request whose rows cost 1.5
                            times what they cost in a full graph waits for one of them to finish, but no longer than it
                            would run. With max_batch 1 no request waits */
  uint32_t max_queue;    /* maximum number of requests that wait or run; 0 = 1024 */
  bool strict;           /* refuse what no graph can run, instead of running it eagerly */
  uint32_t max_eager_programs; /* numbers of rows for which a stream caches a program for eager runs; the least recently
                              used is evicted; 0 = 8 */
  const char *name;            /* for messages; copied; may be NULL */
  uint32_t max_batch; /* maximum number of requests that graphs run together; 0 = RONDO_SESSION_MAX_BATCH; 1: each runs
                         alone. A batch has the minimum number of requests for which a row costs at most 10 % more
                         than in the best batch of waiting requests. Requests that fit into its padding are added.
                         Eagerly each request runs alone */
  bool timed; /* measure how long the device works (rondo_session_get_usage), with two events for each graph or eager
                 run */
  /* Each stream gets an executor with these options (<rondo/executor.h>), which runs eager work where that was measured
   * to be faster. Copied; NULL: operators run one after the other. */
  const rondo_executor_options *executor;
  /* `streams` streams of the caller's, on which all models run (see Streams of the caller's); the list is copied. NULL:
   * the session creates its own. */
  rondo_stream *const *stream_list;
} rondo_session_options;
#define RONDO_SESSION_OPTIONS_INIT .struct_size = sizeof(rondo_session_options)

/* Streams of the caller's. A program that has streams, its own or a library's, gives them to the session, so that
 * requests run in order with its other work on them:
 *
 *   TRY(rondo_stream_adopt(device, cuda_stream, NULL, &stream));          // a CUstream, <rondo/stream.h>
 *   const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .stream_list = &stream};
 *
 * What was enqueued on a stream before a request runs before the graphs of the request that run there. The streams stay
 * the caller's and must outlive the session; rondo_stream_destroy refuses them meanwhile. The session uses them on its
 * threads and on those that call it, so the caller uses a rondo_stream, or another one that is the same stream, only
 * while no call of the session runs and every request was answered, or while it has acquired the stream
 * (rondo_session_acquire_stream). On CUDA devices, the owner of the native stream may enqueue work there at any other
 * time too, except while a model is added or captured: that work would become part of a recording. A failure of the
 * caller's work may fail a request, which then runs again. Adding and removing models waits for running requests and
 * for streams that are taken; requests that arrive meanwhile wait. Parts of divided models on other devices have
 * streams of their own, and so do executors. */

/* Creates a session without models. options may be NULL. The caller destroys it before the device is closed.
 * Thread-safe. Errors: INVALID_ARGUMENT with NULL_ARGUMENT, BAD_OPTIONS, OUT_OF_RANGE; OUT_OF_MEMORY; LIMIT_EXCEEDED
 * (threads); those of rondo_executor_create. With stream_list, each names the stream: INVALID_ARGUMENT with
 * NULL_ARGUMENT or OTHER_DEVICE (a stream of another rondo_device); INVALID_STATE with ALREADY_CAPTURING, or
 * STILL_IN_USE (a session has this stream already, or the list has it twice); UNSUPPORTED/UNSUPPORTED_CALL (the legacy
 * default stream, or that of a thread); failures of earlier work on the stream; those of the driver, if the owner has
 * destroyed it. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_create(rondo_device *device, const rondo_session_options *options,
                                                           rondo_session **out_session);

/* Accepts no more requests, answers those that were accepted, and frees the session. Before that, tickets must be
 * waited for, runs destroyed and streams released. NULL is fine. Errors: INVALID_STATE/STILL_IN_USE (a ticket, run or
 * stream is in use: the session accepts no more requests, and can be destroyed later); IN_CALLBACK. After any other
 * failure the session is gone; the failure is one of earlier work that nobody waited for. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_destroy(rondo_session *session);

/* Models ---------------------------------------------------------------------------------------------------------- */

/* Adds the network for batches of `rows` rows to an empty program: inputs, states and outputs. For every number of rows
 * it must create the same inputs, outputs and states in the same order. This is a callback, and not one program with a
 * symbolic dimension, because constants, reshapes and decisions that depend on the number of rows are then plain C,
 * operators see numbers, and each size needs a program anyway to plan its memory. It is called by
 * rondo_session_add_model, by captures and by eager runs, from any thread, one at a time for each model. No lock is
 * held: other threads use the session meanwhile. The callback, and the body of a function, must not call the session;
 * such a call fails with INVALID_STATE/IN_CALLBACK. */
typedef rondo_status (*rondo_model_build)(void *user, size_t rows, rondo_program *program);

/* A function as a model. Its body, as in rondo_function_options, is called with the declared inputs, each [rows, ...]
 * in device memory, and creates output i with rondo_call_output(call, i, ...), with the declared bytes for each row. A
 * tree of the session warms it up and records it once for each graph on each stream. All sizes on a stream share the
 * tree's arena. Streams that the body forks become branches of the graph. A body that a tree does not record cannot be
 * a model; capturing it fails with the reason. The body may run on several streams and threads at once. Host memory
 * that it copies from must be listed as a constant; these copies are audited (SE-4). */
typedef struct rondo_row_value {
  const char *name; /* copied */
  rondo_type type;
  uint32_t rank; /* of a row, 0 for a scalar; below RONDO_TREE_MAX_RANK */
  size_t shape[RONDO_TREE_MAX_RANK];
} rondo_row_value;

/* Lengths (PR-5). A model may vary in a second dimension, such as the tokens of a text. Its `build_sized` makes the
 * network for a number of rows and a length; inputs of shape [rows, length, ...] have that dimension, and so have
 * outputs. A request names its length, and each of its rows may be shorter. The model has a few lengths, which are
 * given or are chosen from a history of rows and lengths. A request runs with the smallest length that is large enough;
 * the other positions are padding, which is zeros. The network reads how many positions of each row are valid from an
 * input that the session writes (rondo_row_inputs) or that requests give, such as a mask, and must not let the others
 * change its results. A network for which that is not so has exact lengths (rondo_model_options).
 *
 * Each length has graphs, times and a dispatch table of its own, as a model without lengths has. Its name is that of
 * the model with the length: length 64 of "gpt" is "gpt[64]", and functions that take the name of a model take this
 * name. They use the shortest length for "gpt", except that requests choose by their length; that writing states,
 * capturing and destroying graphs concern all lengths; and that only the whole model can be removed. States are shared,
 * and so are the stream and the arena of the lengths on each stream of the session.
 *
 * Sequences (PR-5). A model that generates step by step keeps what it needs of the earlier steps in *cache slots*, such
 * as the keys and values of a transformer: states whose first dimension is the number of slots. A sequence has one
 * slot, from rondo_sequence_open to rondo_sequence_close. A request with a sequence has one row; its positions are
 * appended to those that the sequence has. The network must find in a slot only what it wrote for the positions of the
 * sequence: the caches still have those of earlier sequences, and of steps that failed or were taken back. With
 * attention, the lengths of the caches see to that. The rows of a batch belong to different sequences, whose slots and
 * numbers of positions are inputs that the session writes. So one graph runs any sequences together, and they join and
 * leave between steps, which is known as continuous batching. A row of padding has no valid positions; it must write
 * nothing.
 *
 * The first request of a sequence, a prompt, usually has many positions, and the steps that follow have one. A prompt
 * that is longer than the longest length runs in several parts, and other requests may run between them.
 *
 * The result of a sequence does not depend on what else runs. It has the same bits each time if it has the same slot
 * and the same graphs run it, with a row for each slot: then the row of the graph is that of the slot. Otherwise it
 * differs by rounding, because operators may add numbers in another order in other rows and for other sizes: in F32 by
 * at most 1e-4 of the larger of 1 and the number, for the networks of Rondo's tests. So where bits matter, record only
 * sizes of all slots, and request RONDO_RUN_RECORDED.
 *
 * With `next` (rondo_request), a request goes on step by step in the session, and its steps are always in time for the
 * next batch. A program that makes a request for each step gives max_delay_us, so that steps wait for each other; they
 * do not wait longer once all open sequences wait.
 *
 * Sources (PR-5). In a model of an encoder and a decoder, such as T5, each sequence has a *source*, which is read once;
 * then each step attends to it. The encoder is a network of its own, with lengths of its own: `source` of the options.
 * Its name is that of the model with ".source", such as "t5.source". A request for it has a sequence and the source,
 * of at most the longest length. It writes to the sequence's slot of caches that the steps read: keys and values for
 * cross-attention, by rondo_op_attention_append. Steps get how many positions the source has (rondo_row_inputs.source),
 * and read the caches by rondo_op_attention without k and v. A sequence needs a source before its first step, and
 * another one replaces it; its positions stay. States of one name are one state in both networks. The encoder may have
 * no outputs. It is captured with the model, or alone by its name.
 *
 * A session with one stream runs steps in the largest batches. On several streams, different sequences run at the same
 * time, so the network must write to its states only in the slots that it is given. */

/* What `build_sized` makes a network for. */
typedef struct rondo_model_size {
  size_t rows;
  size_t length;
  size_t slots; /* of the states that are caches; the same each time. 0: the model has no sequences */
} rondo_model_size;

/* As rondo_model_build. For all sizes, inputs, outputs and states are the same in number, order and name. States have
 * the same shape, apart from the first dimension of caches, which is the number of slots. */
typedef rondo_status (*rondo_model_build_sized)(void *user, const rondo_model_size *size, rondo_program *program);

/* Names of inputs, of type I32, that the session writes. Requests do not give them. NULL: there is no such input. */
typedef struct rondo_row_inputs {
  const char *length;    /* [rows]: how many positions of the row are valid, its first ones; 0 in rows of padding */
  const char *slot;      /* [rows]: slot of the row's sequence; 0 in rows of padding */
  const char *start;     /* [rows]: positions that the sequence has already; 0 in rows of padding */
  const char *source;    /* [rows]: positions of the sequence's source (see Sources); 0 in rows of padding */
  const char *positions; /* [rows, length]: start, start + 1, ... at valid positions, else 0 */
  const char *last;      /* [rows]: index of the row's last valid position among all rows * length positions; of its
                            first one in rows of padding */
} rondo_row_inputs;

typedef struct rondo_model_options {
  uint32_t struct_size;
  uint32_t max_sizes; /* maximum number of graphs on a stream that rondo_session_capture chooses, for requests alone and
                         for several together; 0 = 16; at most RONDO_SESSION_MAX_SIZES */
  rondo_model_build build;      /* or body */
  void *user;                   /* must outlive the model */
  const rondo_weights *weights; /* initial states, without caches; read during the call; NULL: zeros */
  const size_t *history;        /* rows of past requests, in any order, which sizes are chosen for; copied */
  size_t history_count;
  uint64_t budget_bytes;         /* for the graphs of one stream; limits the choice of sizes; 0 = no limit */
  uint64_t budget_startup_us;    /* likewise, for the time to capture on one stream */
  rondo_function_body body;      /* in place of build: the model is a function, with `user` and the following */
  const rondo_row_value *inputs; /* one row of each; copied */
  size_t input_count;
  const rondo_row_value *outputs;
  size_t output_count;
  const rondo_host_range
      *constants; /* host memory that the body copies from and that stays constant; the list is copied */
  size_t constant_count;
  size_t
      max_batch_rows; /* maximum number of rows of requests that run together, for which rondo_session_capture chooses
                         sizes beyond the largest request of the history, within max_sizes and the budgets. It tries 2,
                         4, 8, ... times the largest request as long as doubling makes a row 10 % cheaper while all
                         streams are busy. 0: 4 times the largest request, or with a budget none; 1: none */
  rondo_device *const
      *devices; /* for a program whose operators are placed on several devices (see Divided models); the first is the
                   session's device. All stay open as long as the model; the list is copied */
  size_t device_count;               /* 0: everything runs on the session's device */
  const rondo_placement_rule *rules; /* copied */
  size_t rule_count;
  rondo_model_build_sized build_sized; /* in place of build, for lengths and sequences; not with devices */
  rondo_row_inputs row_inputs;         /* names are copied */
  const size_t *lengths;               /* of the model, in any order; at most RONDO_SESSION_MAX_LENGTHS; copied */
  size_t length_count;                 /* 0: chosen from history_lengths; without that, 1 alone */
  const size_t *history_lengths;       /* of the requests of `history`; copied. With given lengths, the history of a
                                          length has the requests that it runs, or one of 1 row if it runs none */
  uint32_t max_lengths;                /* maximum number of lengths that are chosen; 0 = 8 */
  bool evict_idle;       /* if all slots are taken, a new sequence takes that of the least recently used idle one */
  size_t slots;          /* maximum number of sequences; 0: the model has none */
  size_t slot_positions; /* maximum number of positions of a sequence, for which the caches are made */
  uint64_t budget_slot_bytes; /* for the caches of all slots; reduces `slots`; 0: no limit */
  /* The network that reads sources (see Sources): build_sized, user, row_inputs, and lengths and sizes as for a model.
   * slots, weights and source are those of this model. Read during the call; NULL: there is none. */
  const struct rondo_model_options *source;
  /* The network is never padded: for one whose results the padding of positions would change. A request whose length is
   * one of the model's runs by the graphs of this length. One of another length, up to the longest, runs eagerly with a
   * program for exactly its rows and its length (max_eager_programs). All rows of a request have its length. Lengths
   * that are chosen are those of the most positions in the history, and the longest. With build_sized and without
   * slots. */
  bool exact_lengths;
} rondo_model_options;
#define RONDO_MODEL_OPTIONS_INIT .struct_size = sizeof(rondo_model_options)

/* Adds a model under a name, which must not be empty. To find its inputs and outputs, it builds a program for two
 * numbers of rows, and with build_sized also for another length, and for one slot and two. Errors: INVALID_ARGUMENT
 * with NULL_ARGUMENT, BAD_OPTIONS (build and body), DUPLICATE_NAME, SHAPE (an input or output whose first dimension is
 * not rows times a constant, or that differs otherwise for other rows, named; a model without inputs or outputs),
 * OUT_OF_RANGE (more than RONDO_SESSION_MAX_VALUES of them); UNSUPPORTED/RACE (a state that runs on several streams
 * would change); what build and rondo_weights_apply return; OUT_OF_MEMORY.
 * With devices: INVALID_ARGUMENT with OTHER_DEVICE (the first is not the session's), BAD_OPTIONS (a function; rules
 * without devices), and as rondo_compile_divided; UNSUPPORTED/OTHER_DEVICE, with names, for a division in which nothing
 * runs on the session's device, or in which another device reads a result or a state of a different device. Captures
 * and eager runs fail with UNSUPPORTED/SHAPE if the division differs for other rows. With build_sized: INVALID_ARGUMENT
 * with BAD_OPTIONS (sequences without slot_positions or with exact_lengths; devices; lengths without build_sized),
 * UNKNOWN_NAME (a row input that the network does not have), TYPE or SHAPE (of a row input), OUT_OF_RANGE (a length of
 * 0, too many of them, a length above slot_positions, more than 2^31 - 1 slots or positions), DUPLICATE_NAME (a length
 * that is given twice); of a source BAD_OPTIONS (a model without slots; options that it does not have) and SHAPE (no
 * caches of the model); LIMIT_EXCEEDED (budget_slot_bytes is too small for one slot). */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_add_model(rondo_session *session, const char *name,
                                                              const rondo_model_options *options);

/* Frees the model with its graphs and memory. Errors: NOT_FOUND/UNKNOWN_NAME; INVALID_STATE with STILL_IN_USE (a
 * request of it waits or runs, a state of it is being written, it has runs, or a stream is taken), ALREADY_CAPTURING
 * (it is being captured). */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_remove_model(rondo_session *session, const char *name);

/* Writes a state or cell of the model, which all streams share, while none of them runs. It waits for running work and
 * for streams that are taken; requests that arrive meanwhile wait. While a model is being captured, it writes between
 * two recordings or measurements, which changes no graph and no choice of sizes. Errors: NOT_FOUND/UNKNOWN_NAME (the
 * model; no state or cell has the name; a function, which owns its states); as rondo_compiled_write. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_write(rondo_session *session, const char *model, const char *name,
                                                          const void *data, size_t bytes);

/* An input or output of a model, by index in the order of creation in the program. */
typedef struct rondo_model_value {
  uint32_t struct_size;
  rondo_type type;
  const char *name;      /* owned by the model */
  size_t row_bytes;      /* of one row of a request */
  size_t position_bytes; /* of one position of a row, in models with lengths: a row has as many as the request's length;
                            0: the value does not have the length */
} rondo_model_value;

/* Errors: NOT_FOUND with UNKNOWN_NAME (the model), OUT_OF_RANGE (past the last); INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_get_input(rondo_session *session, const char *model, size_t index,
                                                              rondo_model_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_session_get_output(rondo_session *session, const char *model, size_t index,
                                                               rondo_model_value *out_value);

/* A length of a model, by index, the shortest first. */
typedef struct rondo_model_length {
  uint32_t struct_size;
  uint32_t reserved;
  size_t length;
  const char *name; /* such as "gpt[64]"; owned by the model */
} rondo_model_length;

/* Errors: NOT_FOUND with UNKNOWN_NAME (the model), OUT_OF_RANGE (past the last, or a model without lengths);
 * INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_get_length(rondo_session *session, const char *model, size_t index,
                                                               rondo_model_length *out_length);

/* Divided models (SE-9). A model with large tables can run its look-ups on a CPU device, which stores the tables, and
 * its dense part on the session's device, which does not need memory for the tables:
 *
 *   rondo_device *const devices[] = {gpu, cpu};
 *   const rondo_placement_rule rules[] = {{.operator_name = "embedding", .place = 1}};
 *   ... .devices = devices, .device_count = 2, .rules = rules, .rule_count = 1 ...       // of rondo_model_options
 *
 * Rules, and rondo_program_place in `build`, say where operators run and where states are stored (<rondo/placement.h>).
 * Place 0 is the session's device; devices may be of any kind. What is placed on another device forms an *upstream
 * part*, which runs before the part on the session's device, the main part. It reads inputs of the model and its own
 * states. Its results are transferred through host memory, which is page-locked if one of the devices is a CUDA device.
 * Each graph is then one recording on each device. The rows of an input that look-ups read are collected in host
 * memory, and their recording copies them from there; other inputs are copied to the session's device at the same time.
 * The copies of transferred results are part of the main part's recording.
 *
 * Each stream of the session has a stream, an arena and host memory on every device. So the look-ups of one request,
 * and the copies of its inputs, run at the same time as the main part of another request; this needs at least two
 * streams. Everything else is as for undivided models: capture mode, the choice of sizes by the times of all parts
 * together, batches, splitting, eager runs, deadlines, and writing states by name. A request with an index out of range
 * fails before its main part runs. If all devices are of one kind, results have the same bits as those of the undivided
 * model. A model is divided in the same way for every number of rows, so its states stay where they are. */

/* Capturing ------------------------------------------------------------------------------------------------------- */

/* Capture mode (SE-1). Until the end of the mode, each run of this model records a graph for its number of rows, on
 * every stream, instead of running. Its inputs are not read and its outputs not written. Other models run as usual,
 * but not on streams that are taken, because recording needs all streams. k runs make k graphs with indices from 0.
 * Record the largest first: the sizes of a model on one stream never run at the same time and share one arena. While a
 * stream records, compute and copies use the same stream, and nothing waits; afterwards it is as before (SE-2). So
 * operators are recorded one after the other, except the branches of a program, which are known without events: they
 * stay branches of the graph where rondo_compile would keep them. A graph owns its memory, apart from the arena, and
 * does not share it with eager runs of other sizes (SE-3). The recorded copies are audited (SE-4), and copies of inputs
 * are removed (SE-5). Errors: NOT_FOUND/UNKNOWN_NAME; INVALID_STATE with ALREADY_CAPTURING, NOT_CAPTURING. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_capture_begin(rondo_session *session, const char *model);
RONDO_API RONDO_MUST_USE rondo_status rondo_session_capture_end(rondo_session *session);

/* Memory of a model, on all streams. */
typedef struct rondo_model_bytes {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t state_bytes, arena_bytes, exec_bytes, staging_bytes; /* as in rondo_model_info */
} rondo_model_bytes;

/* Forecasts the memory of the model with graphs for these numbers of rows, recorded largest first, before any is
 * recorded. States, arenas and staging memory are planned as recording plans them: the forecast is exact for a model
 * that has not run eagerly. Memory of execs is that of one exec for the smallest number of rows, which is recorded on
 * the first stream and destroyed. It is exact if all sizes have the same nodes, but operators may choose different
 * ones; on CUDA it is an estimate, as rondo_exec_info.device_bytes is. Errors: as rondo_session_capture;
 * INVALID_ARGUMENT with NULL_ARGUMENT, BAD_SIZE (no sizes, a size of 0, or a size twice); UNSUPPORTED/NONE (a function,
 * whose memory is known only after it has run). */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_plan(rondo_session *session, const char *model, const size_t *rows,
                                                         size_t count, rondo_model_bytes *out_bytes);

/* Chooses sizes for the model's history within its budgets (<rondo/sizes.h>), from times that it measures, and records
 * them on all streams, the largest first.
 *
 * Sizes are for requests alone and for several requests of the history together. How many will wait for each other is
 * not known, so k requests together count 1 / k^2.5 times as much as one. A row of padding costs, besides its time,
 * what a row of the largest request costs. Of the choices whose cost is within 0.2 % of the best, one with the minimum
 * number of sizes is taken.
 *
 * Times are the lowest of several rounds that run all sizes in alternation, recorded and eager. While the two lowest
 * times of a size differ by more than 5 %, as under other load, there are more rounds, for up to 1.2 s and one round.
 * For the choice of sizes, no row of a size costs more than one of a smaller size. One graph runs a request unless
 * several graphs, or an eager run, are at least 3 % cheaper: in time while nothing else runs, otherwise in their share
 * of all streams' time. An eager run also costs the compilation of a program, for the share of the history whose rows
 * have no cached program (rondo_session_options.max_eager_programs).
 *
 * Without budgets, the sizes for steps of sequences, which have the shortest length, are the number of slots, half of
 * it, and so on, because how many steps run together depends on the load. With max_sizes 1 it is the number of slots.
 *
 * After a failure the model has no graphs. Errors: as a run in capture mode; INVALID_STATE with ALREADY_CAPTURED (it
 * has graphs), ALREADY_CAPTURING; INVALID_ARGUMENT/NONE (no history); LIMIT_EXCEEDED (the budgets); what rondo_compile,
 * rondo_instantiate, rondo_function_prepare and rondo_graph_audit_copies return. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_capture(rondo_session *session, const char *model);

/* Destroys the model's graphs on all streams and frees their memory. The model can be captured again, and runs eagerly
 * until then. Errors: as rondo_session_remove_model. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_destroy_graphs(rondo_session *session, const char *model);

/* Times that change (SE-8). Times that were measured under other load are too long, and a machine becomes slower and
 * faster. So the session also measures its runs, and dispatches by these times. A run is a *sample* if one graph runs
 * the whole batch and nothing else runs on the session's streams meanwhile; it lasts from the copy of the first input
 * until the results are ready. A sample below the known time replaces it at once. A longer one may have been disturbed:
 * the known time rises only if 16 samples in a row are longer, to the lowest of them. A graph with fewer than
 * 16 samples, and eager runs, are assumed to be slower than measured by the same factor as the graph with the nearest
 * number of rows that has 16 samples. No graph is assumed to be slower than a larger one.
 *
 * A graph that seems slow would never run. So a batch for which several graphs, or an eager run, seem faster than one
 * graph is sometimes run by the smallest graph that fits it. This is a *trial*, and the answer has RONDO_RUN_TRIAL.
 * It may take longer than what was dispatched. There are trials only while nothing else waits or runs: three of each
 * graph, and others that together take about 1 % of the time of the model's batches. A batch with more rows than the
 * largest graph, and a request for EAGER, are never trials.
 *
 * Once a known time differs by more than 5 % from the one that dispatching uses, the dispatch tables are made again, by
 * the thread of an idle stream, which spends at most 1 % of its time on this. Requests use the old tables meanwhile,
 * also if there is no memory for new ones; that is tried again. rondo_session_get_dispatch uses the newest tables.
 * Times that were given by rondo_session_set_times stay: they have no samples and no trials. */

/* A graph of a model, by index. */
typedef struct rondo_model_graph {
  uint32_t struct_size;
  uint32_t nodes;  /* of the exec on one stream */
  size_t rows;     /* capacity */
  double run_us;   /* measured, from the launch until it is done: the lowest of several, and at most that of a larger
                      graph. 0 in capture mode */
  double eager_us; /* the same work, run eagerly */
  uint64_t exec_bytes;     /* host and device memory of the exec and of its program's constants, on one stream */
  uint64_t arena_bytes;    /* needed in the arena of its stream */
  uint64_t launches;       /* on all streams */
  uint64_t rows_run;       /* rows of requests in these launches */
  double capture_us;       /* time to record it on one stream */
  bool has_branches;       /* independent operators run in parallel */
  double current_us;       /* which dispatching uses: run_us, until samples differ (see Times that change) */
  double current_eager_us; /* likewise */
  uint64_t samples;        /* samples since it was measured */
  uint64_t trials;         /* likewise */
} rondo_model_graph;

/* Errors: NOT_FOUND with UNKNOWN_NAME, OUT_OF_RANGE; INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_get_graph(rondo_session *session, const char *model, size_t index,
                                                              rondo_model_graph *out_graph);

/* Replaces the measured times of a model's graphs, in microseconds by index, `count` of each: with those of an earlier
 * run of the program, or for tests. They stay until graphs are captured. `eager` may be NULL: then only what no
 * graph can run runs eagerly. `overlap` is the time of a graph on all streams at once, divided by the time one after
 * the other, from 1 / streams to 1, for all graphs; 0 = as measured for some sizes and interpolated for the others.
 * Errors: NOT_FOUND/UNKNOWN_NAME; INVALID_ARGUMENT with NULL_ARGUMENT, OUT_OF_RANGE (a count that differs from that of
 * the graphs, a time that is not above 0 and finite); OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_set_times(rondo_session *session, const char *model,
                                                              const double *recorded, const double *eager, size_t count,
                                                              double overlap);

/* Manual runs (SE-6) ----------------------------------------------------------------------------------------------- */

/* Takes a stream out of serving for manual runs, and waits until it is free. Streams count from 0. The model's work
 * runs on *out_stream. Several streams may be acquired, in any order. Calls that need all streams wait until none
 * is; requests continue. Errors: NOT_FOUND with UNKNOWN_NAME, OUT_OF_RANGE; INVALID_STATE/NOT_CAPTURED (no
 * graphs); INVALID_STATE/STILL_IN_USE (already acquired); INVALID_STATE/ALREADY_CAPTURING (a model is in capture mode).
 */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_acquire_stream(rondo_session *session, const char *model,
                                                                   size_t number, rondo_stream **out_stream);
/* Waits for the stream's work and returns it to serving. If several threads release it, one succeeds. Errors:
 * INVALID_STATE/SCOPE (not acquired, or another thread releases it); a failure of its work. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_release_stream(rondo_session *session, size_t number);

/* One entry of the input map of a graph on a stream: the device destination of the input's rows, which must be copied
 * there before a launch, and its capacity in bytes. The source is the session's own memory that was
 * recorded. If an upstream part of a divided model reads the input, the source is also the destination. The inputs that
 * the session writes for requests (rondo_row_inputs) have the indices after those of requests. Errors:
 * NOT_FOUND with UNKNOWN_NAME, OUT_OF_RANGE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_get_input_copy(rondo_session *session, const char *model,
                                                                   size_t index, size_t number, size_t input,
                                                                   rondo_input_copy *out_copy);

/* Launches a graph of the model on a stream that was taken. It does not wait, except in a divided model, for earlier
 * work of the stream and for upstream parts; an index out of range there is reported here. Outputs are copied to the
 * session's memory. Once the stream was waited for, rondo_session_get_result finds them there until the next launch.
 * Errors: NOT_FOUND with UNKNOWN_NAME, OUT_OF_RANGE; INVALID_STATE/SCOPE (the stream was not acquired); as
 * rondo_exec_launch. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_launch(rondo_session *session, const char *model, size_t index,
                                                           size_t number);
/* An output of the last graph that was launched on the stream. Errors: NOT_FOUND with UNKNOWN_NAME, OUT_OF_RANGE;
 * INVALID_STATE/NO_OUTPUT (nothing of the model was launched on the stream). */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_get_result(rondo_session *session, const char *model, size_t number,
                                                               size_t output, const void **out_data);

/* Requests -------------------------------------------------------------------------------------------------------- */

/* What runs a request. */
typedef enum rondo_run_mode {
  RONDO_RUN_AUTO = 0,     /* requested: the cheapest */
  RONDO_RUN_RECORDED = 1, /* one graph */
  RONDO_RUN_SPLIT = 2,    /* several graphs */
  RONDO_RUN_EAGER = 3,    /* eagerly, on exactly these rows */
  RONDO_RUN_CAPTURED = 4  /* nothing: it was recorded, in capture mode */
} rondo_run_mode;

/* Why a request ran in its mode. */
typedef enum rondo_run_reason {
  RONDO_RUN_CHEAPEST = 0,
  RONDO_RUN_REQUESTED = 1, /* rondo_request.mode */
  RONDO_RUN_NO_GRAPH = 2,  /* the model has no graphs, or none of an exact length, or it changes states and no graph has
                              so many rows */
  RONDO_RUN_RETRY = 3,     /* its batch failed, and it ran again, alone or with at most half of the batch */
  RONDO_RUN_CAPTURING = 4, /* capture mode */
  RONDO_RUN_TRIAL = 5      /* one graph, to measure it (see Times that change) */
} rondo_run_reason;

typedef struct rondo_answer rondo_answer;

/* Called after each step of a request with a sequence, by a thread of the session or a caller of rondo_session_run,
 * with the answer so far; the outputs are written. It writes the inputs of the next step to the memory of the inputs,
 * which must have space for them, and returns their number of positions, or 0 to end the request. The step then joins
 * the next batch; so this is faster than a request for each step. No lock is held; other steps may wait meanwhile. It
 * must not call the session. */
typedef size_t (*rondo_request_next)(void *user, const rondo_answer *answer);

/* Called once when a submitted request is answered, instead of rondo_ticket_wait, by a thread of the session, or by one
 * that calls rondo_session_run, rondo_session_submit, rondo_session_submit_batch or rondo_ticket_cancel, also for
 * requests of others: hold no lock during these calls that `done` takes. `status` is what waiting would return,
 * rondo_last_error() has the details of a failure, and `answer` is NULL after one. The outputs are written, and the
 * memory of the request is the caller's again. The ticket has ended when the callback returns; until then the request
 * counts for max_queue, rondo_session_drain and rondo_session_remove_model. No lock is held. Other requests that ran
 * in the same batch may wait for the callback, so it should be short. It must not call the session. */
typedef void (*rondo_request_done)(void *user, rondo_status status, const rondo_answer *answer);

typedef struct rondo_request {
  uint32_t struct_size;
  rondo_run_mode mode; /* AUTO, RECORDED (one graph or several) or EAGER */
  size_t rows;
  /* Host memory of each input, rows times its row_bytes. It may be changed after the answer. Memory from
   * rondo_host_malloc of the session's device is copied directly; rows in other memory are first collected in the
   * session's own memory if the device is a CUDA device. There a kernel copies the rows for a graph, up to 2 MiB in
   * all, 64 pieces of memory for each launch. */
  const void *const *inputs;
  void *const *outputs; /* host memory for each output; NULL entries: not wanted */
  size_t input_count;   /* the numbers of the model, or 0, which means the same */
  size_t output_count;
  uint64_t deadline_us; /* from the call; a request that has not started by then fails; 0: none. A request waits for a
                           batch for at most half of that time. Each step of a sequence must start by then */
  size_t length; /* positions of each row, in models with lengths; at most the longest, except for a sequence. Values
                    with that dimension are [rows, length, ...] in memory. 0: that of the length that is named */
  const int32_t *lengths; /* valid positions of each row, 1 to `length`; NULL: all. Others are not read, and outputs are
                             undefined there */
  rondo_sequence sequence; /* required if the model has sequences; rows is 1. It is used by one request at a time. If
                              the request fails, its last step has appended nothing */
  rondo_request_next next; /* with a sequence; NULL: the request is one step */
  void *user;              /* of next and done */
  rondo_request_done done; /* of a submitted request: called with the answer. Its ticket is for rondo_ticket_query and
                              rondo_ticket_cancel, and is not waited for. NULL: it is waited for */
  uint64_t device_inputs, device_outputs; /* bit i: input or output i is memory of the session's device, also if other
                              code allocated it. Rows are copied on the device, in the order of the stream that runs
                              the request. Work of other streams that writes inputs must be complete. Not for divided
                              models and for models with lengths */
} rondo_request;
#define RONDO_REQUEST_INIT .struct_size = sizeof(rondo_request)

struct rondo_answer {
  uint32_t struct_size;
  rondo_run_mode mode; /* in which its batch ran */
  rondo_run_reason reason;
  uint32_t graph;          /* index of the first graph that ran its batch; 0: none */
  uint32_t graphs;         /* that ran its batch */
  uint32_t stream;         /* of the first graph */
  uint32_t batch_requests; /* that ran together, including this one */
  uint32_t reserved;
  uint64_t batch_rows;
  uint64_t padding_rows; /* of the graphs that ran the batch */
  double queue_us;       /* from the call until it started */
  double run_us;         /* from then until it was done */
  uint64_t length;       /* of the graphs that ran it; the fields above are about the last of several steps or parts,
                            except the two times */
  uint64_t steps;        /* of a sequence */
};

/* Runs a request and waits for it. out_answer may be NULL. If a batch fails, its requests run again in halves, and so
 * do those of a half that fails, so that each has its own errors. Errors: NOT_FOUND/UNKNOWN_NAME; INVALID_ARGUMENT with
 * NULL_ARGUMENT, SHAPE (no rows), ARGUMENT_COUNT, OUT_OF_RANGE (mode); LIMIT_EXCEEDED/NONE (max_queue requests already
 * wait or run); LIMIT_EXCEEDED/TIMED_OUT (the deadline passed before it started); INVALID_STATE/ABORTED (cancelled);
 * INVALID_STATE/NONE (the session is being drained); UNSUPPORTED/NOT_RECORDED (no graph can run it, or a part or
 * later step of it, and the session is strict or the request asks for a graph); EXECUTION_FAILED/OUT_OF_RANGE and other
 * failures of its work. About lengths and sequences: INVALID_ARGUMENT with SHAPE (a length that the model does not
 * have, a sequence with several rows), OUT_OF_RANGE (a length of a row), NULL_ARGUMENT (no sequence), BAD_OPTIONS (a
 * sequence, lengths or `next` for a model that has none; a row shorter than the request in a model of exact lengths),
 * OTHER_DEVICE (a sequence of another session or model); INVALID_STATE with STALE_SEQUENCE (it was closed or evicted),
 * STILL_IN_USE (another request uses it); LIMIT_EXCEEDED/OUT_OF_RANGE (its slot has not enough free positions, at first
 * or for a later step); INVALID_STATE/CALL_ORDER (a sequence without the source that its model needs);
 * INVALID_ARGUMENT/BAD_OPTIONS (`done`, which is for submitted requests). About memory of the device:
 * UNSUPPORTED/WRONG_MEMORY (a divided model, or one with lengths); INVALID_ARGUMENT/WRONG_MEMORY (the driver says that
 * a value is not memory of a device). */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_run(rondo_session *session, const char *model,
                                                        const rondo_request *request, rondo_answer *out_answer);

/* Submits a request. The request itself is copied; its inputs, outputs and lengths, and the lists of them, belong to
 * the session until it was waited for, or until `done` is called, which may be before this call returns. The ticket
 * must be waited for once, unless the request has `done`; after a failure it is zero, and `done` is not called. Does
 * not wait, apart from callbacks and in capture mode. Errors: those of rondo_session_run that occur before it is
 * queued. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_submit(rondo_session *session, const char *model,
                                                           const rondo_request *request, rondo_ticket *out_ticket);
/* Submits several requests of a model, in their order, before any of them starts: those that fit run together. It stops
 * at the first one that is not accepted, whose error it returns; *out_accepted is how many were accepted, and
 * out_tickets has their tickets and zeros. Errors: as rondo_session_submit; INVALID_ARGUMENT/BAD_SIZE (no requests);
 * INVALID_STATE/ALREADY_CAPTURING (several requests for a model that is being captured). */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_submit_batch(rondo_session *session, const char *model,
                                                                 const rondo_request *const *requests, size_t count,
                                                                 rondo_ticket *out_tickets, size_t *out_accepted);
/* Waits for the answer and ends the ticket. out_answer may be NULL. One thread, any. Errors: those of the request;
 * INVALID_ARGUMENT/NULL_ARGUMENT (a zero ticket); INVALID_STATE/STALE_TICKET (it was waited for, another thread waits
 * for it, or its request has `done`). */
RONDO_API RONDO_MUST_USE rondo_status rondo_ticket_wait(rondo_ticket ticket, rondo_answer *out_answer);
/* OK if the answer is ready, else NOT_READY. Any thread, also while another one waits. Errors:
 * INVALID_ARGUMENT/NULL_ARGUMENT; INVALID_STATE/STALE_TICKET (it was waited for, or `done` has returned). */
RONDO_API RONDO_MUST_USE rondo_status rondo_ticket_query(rondo_ticket ticket);
/* Cancels a request that still waits: waiting for it returns INVALID_STATE/ABORTED. A request that runs ends so before
 * its next step or part, if it has one; else it is not affected. Neither is one that is done or was waited for, nor a
 * zero ticket. The ticket must still be waited for. Any thread, also while another one waits, and in callbacks of the
 * session: `done` of the cancelled request is not called before the `done` that cancels it returns. */
RONDO_API void rondo_ticket_cancel(rondo_ticket ticket);

/* Opens a sequence of a model, without positions. Thread-safe, as are the next three. Errors: NOT_FOUND/UNKNOWN_NAME;
 * INVALID_ARGUMENT with NULL_ARGUMENT, BAD_OPTIONS (the model has no sequences); LIMIT_EXCEEDED/NONE (all slots are
 * taken, and with evict_idle none of their sequences is idle). */
RONDO_API RONDO_MUST_USE rondo_status rondo_sequence_open(rondo_session *session, const char *model,
                                                          rondo_sequence *out_sequence);
/* Ends the sequence; others may take its slot. Models may be removed, and sessions destroyed, while sequences are open,
 * which become stale. Errors: INVALID_ARGUMENT/NULL_ARGUMENT (all zeros); INVALID_STATE with STALE_SEQUENCE,
 * STILL_IN_USE (a request uses it: cancel it or wait for it first). */
RONDO_API RONDO_MUST_USE rondo_status rondo_sequence_close(rondo_sequence sequence);
/* Keeps only the first positions, so that the next request continues from there: to take back a step, or to begin
 * again. Errors: as rondo_sequence_close; INVALID_ARGUMENT/OUT_OF_RANGE (it has fewer). */
RONDO_API RONDO_MUST_USE rondo_status rondo_sequence_truncate(rondo_sequence sequence, size_t positions);

typedef struct rondo_sequence_info {
  uint32_t struct_size;
  uint32_t slot;
  size_t positions, max_positions;
  bool is_busy;            /* a request uses it */
  size_t source_positions; /* of its source; 0: none was read */
} rondo_sequence_info;
/* Errors: INVALID_ARGUMENT; INVALID_STATE/STALE_SEQUENCE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_sequence_get_info(rondo_sequence sequence, rondo_sequence_info *out_info);

/* Runs, with separate calls to create, reshape, bind, invoke and destroy, for callers who do one of these more often
 * than the others (the life cycle is that of XNNPACK). A run is thread-compatible. A model with runs cannot be removed.
 */
typedef struct rondo_model_run rondo_model_run;
/* Errors: INVALID_ARGUMENT, BAD_OPTIONS of it (the model has sequences); NOT_FOUND/UNKNOWN_NAME, OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_model_run_create(rondo_session *session, const char *model,
                                                             rondo_model_run **out_run);
/* Sets the number of rows. With more rows than before, inputs and outputs must be bound again. Errors: INVALID_ARGUMENT
 * with NULL_ARGUMENT, SHAPE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_model_run_reshape(rondo_model_run *run, size_t rows);
/* Sets the inputs and outputs, as in rondo_request; the lists are copied. Errors: INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_model_run_bind(rondo_model_run *run, const void *const *inputs,
                                                           void *const *outputs);
/* Runs it as rondo_session_run does. Does not allocate. Errors: INVALID_STATE with SHAPE (no rows are set),
 * NULL_ARGUMENT (not bound); those of rondo_session_run. */
RONDO_API RONDO_MUST_USE rondo_status rondo_model_run_invoke(rondo_model_run *run, rondo_answer *out_answer);
/* NULL is fine. Thread-compatible. */
RONDO_API void rondo_model_run_destroy(rondo_model_run *run);

/* Accepts no more requests, and waits until all accepted ones are answered. Errors: INVALID_ARGUMENT, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_drain(rondo_session *session);

/* Counters and sizes of a model, since it was added. Of a model with lengths, states and arenas are those of all
 * lengths together, which share them; the rest is of one length, and a request counts where its last step ran. */
typedef struct rondo_model_info {
  uint32_t struct_size;
  uint32_t graphs, inputs, outputs;
  uint64_t requests; /* answered with success; the next line: by how they ran */
  uint64_t recorded, split, eager;
  uint64_t refused, timed_out, cancelled, failed;
  uint64_t batches, batched;                                    /* batches of at least two requests; their requests */
  uint64_t rows, padding_rows;                                  /* of requests; added as padding */
  uint64_t launches;                                            /* of graphs */
  uint64_t eager_programs, evicted;                             /* compiled for eager runs; evicted */
  uint64_t isolated;                                            /* batches that failed and ran again in halves */
  uint64_t state_bytes, arena_bytes, exec_bytes, staging_bytes; /* on all streams */
  double overlap;             /* of the largest graph, see rondo_session_set_times; 1: no graphs */
  uint64_t executor_programs; /* those of eager_programs that run on the streams' executors */
  uint64_t upstream_state_bytes,
      upstream_arena_bytes;   /* the parts of state_bytes and arena_bytes of a divided model on other devices */
  uint64_t trials;            /* batches that were trials (see Times that change) */
  uint64_t renewals;          /* how often the dispatch tables were made again because times had changed */
  uint64_t steps;             /* of requests with sequences, or their parts, that this length ran */
  uint64_t slots, slot_bytes; /* of the whole model, as are the next; slot_bytes is for one slot */
  uint64_t sequences;         /* that are open */
  uint64_t evicted_sequences, no_slot; /* sequences that were evicted; that were refused because all slots were taken */
} rondo_model_info;

/* Errors: NOT_FOUND/UNKNOWN_NAME, INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_get_model_info(rondo_session *session, const char *model,
                                                                   rondo_model_info *out_info);

/* How long the session has used its device, since it was created: from the first kernel or copy of a graph, or of an
 * eager run, to its last, by device events around each. Copies of inputs before a graph do not count, nor do upstream
 * parts on other devices. In an eager run the device may wait for the host between kernels; that time counts. Also, by
 * the host's clock: the time to form batches, under the session's lock, up to the dispatch of their graphs; and the
 * time to enqueue graphs, from the first row of their inputs until the launch returns, including upstream parts. */
typedef struct rondo_session_usage {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t parts;     /* graphs and eager runs */
  double busy_us;     /* while at least one of them was at work, on any stream */
  double sum_us;      /* the sum over all of them */
  uint64_t batches;   /* that were formed */
  uint64_t requests;  /* in these batches */
  double batching_us; /* to form these batches */
  uint64_t graphs;    /* that were enqueued */
  double enqueue_us;  /* to enqueue these graphs */
} rondo_session_usage;

/* Thread-safe. Errors: INVALID_ARGUMENT; INVALID_STATE/NO_TIMING (rondo_session_options.timed); the first failure of
 * the device's events since the last call. The time of such events is not counted, and the next call continues. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_get_usage(rondo_session *session, rondo_session_usage *out_usage);

/* Returns how a request of this many rows would run, and its cost by the known times: *out_parts graphs by index in
 * `parts`, which must hold RONDO_SESSION_MAX_PARTS entries. More rows than the dispatch table has are run by launches
 * of the largest graph and an entry for the rest. Errors: NOT_FOUND/UNKNOWN_NAME, INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_session_get_dispatch(rondo_session *session, const char *model, size_t rows,
                                                                 rondo_run_mode *out_mode, uint32_t *parts,
                                                                 uint32_t *out_parts, double *out_us);

RONDO_EXTERN_C_END

#endif
