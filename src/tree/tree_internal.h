/* SPDX-License-Identifier: MIT
 * A tree inside. The *path* is the recorded calls replayed or made since the step began, from a root to the current
 * one. Its fresh outputs are numbered from the root on: the *bits* of the set of live ones. A recorded call knows which
 * of the bits before it were dead when it was made; it fits while none of these is live.
 *
 * The *era* is the number of the path: buffers in the arena are valid while it is theirs. It grows when a path ends,
 * which so costs one addition, however many buffers are held.
 *
 * A *form* is what a function's inputs are but for their addresses; it is what warms up. A recorded call is found by
 * its *key*: function, the recorded call before it, the form, and the addresses that must be the same. Keys are words,
 * built in one order (recording_key.c), hashed once and compared once.
 *
 * Threads: one at a time, which `owner` watches over. What buffers share with other threads stands in buffer.h.
 */
#ifndef RONDO_TREE_TREE_INTERNAL_H
#define RONDO_TREE_TREE_INTERNAL_H

#include "base/array.h"
#include "exec/capture/arena_capture.h"
#include "exec/cost/meter.h"
#include "exec/cost/recording_gain.h"
#include "exec/launch/exec_internal.h"
#include "exec/patch/launch_values.h"
#include "exec/patch/patch.h"
#include "memory/profile/warm_up_log.h"
#include "tree/path/buffer.h"

typedef struct rondo_recorded_call rondo_recorded_call;
typedef struct rondo_runner rondo_runner;
typedef struct rondo_path_plan rondo_path_plan; /* path_plan.h */
typedef struct rondo_rehearsal rondo_rehearsal; /* path_warm_up.h */
typedef struct rondo_padding rondo_padding;
typedef struct rondo_demoted rondo_demoted; /* demote_inputs.h */

#define RONDO_TREE_MESSAGE 400

/* What a function's inputs are but for their addresses, and what is known of calls with such. */
typedef struct rondo_form {
  struct rondo_form *next; /* of the function */
  uint64_t *words;         /* the key without the call before it and without addresses */
  size_t word_count;
  uint32_t number;               /* in the order of their first calls, from 1 */
  uint32_t warm_ups;             /* that are still to do */
  uint32_t recordings;           /* that there are */
  rondo_skip skip;               /* for good; NONE: it may be recorded */
  uint32_t written_input;        /* of MUTATED_INPUT, which holds only while this one is none of the path's outputs */
  rondo_noted_lifetimes **noted; /* what a warm-up allocated, from one host step to the next; NULL: not known */
  size_t noted_count, noted_room;
  uint32_t failures;               /* recordings in a row that were taken back, for no reason that is there for good */
  size_t output_count, host_steps; /* of the last run */
  uint32_t *output_orders;         /* ... and when each output was made among the fresh ones, from 1; 0: it is none */
  size_t order_room;
  bool has_orders;            /* they are known */
  rondo_launch_values values; /* what the last run of the body gave its launches */
  rondo_meter meter;          /* of the last warm-up, until the form is recorded or not (record_pays.h) */
  rondo_gain gain;            /* what recording it was predicted to gain */
  bool has_gain;
  char message[RONDO_TREE_MESSAGE]; /* why `skip` */
} rondo_form;

struct rondo_function {
  rondo_tree *tree;
  rondo_function *next;
  rondo_origin *origin;           /* its name */
  rondo_function_options options; /* `inputs` are the function's own */
  uint32_t number;                /* in keys */
  bool is_off;
  bool has_written;        /* inputs that are RONDO_INPUT_MUTATED */
  bool has_written_moving; /* ... and RONDO_INPUT_MOVING */
  bool takes_bare;         /* inputs that are bare need not be resolved for a replay */
  uint32_t *by_address;    /* inputs, as they lay at the last call: scratch of rondo_inputs_are_written_shared */
  rondo_padding *padding;  /* NULL without buckets */
  rondo_form *forms;
  uint32_t form_count, recordings;
  uint64_t calls, replayed, recorded, bodies, prepared, demoted;
  uint64_t skipped[RONDO_SKIP_ROOM];
  rondo_skip last_skip;
  char message[RONDO_TREE_MESSAGE];
  char *messages[RONDO_SKIP_ROOM]; /* the last one of each reason, for rondo_tree_explain; NULL: none */
  uint64_t moved_count;            /* static inputs that were elsewhere (moved_input.h); */
  char moved[RONDO_TREE_MESSAGE];  /* ... the last one in words */
};

/* Where an output of a recorded call is. */
typedef enum rondo_output_place {
  RONDO_OUTPUT_EMPTY, /* 0 bytes */
  RONDO_OUTPUT_FRESH, /* memory of its own */
  RONDO_OUTPUT_OF_INPUT,
  RONDO_OUTPUT_OF_OUTPUT
} rondo_output_place;

typedef struct rondo_output {
  rondo_output_place place;
  uint32_t of;         /* OF_*: number of the input or output */
  size_t offset;       /* ... and where in it */
  void *address;       /* FRESH */
  uint32_t bit;        /* FRESH: on the path */
  uint32_t allocation; /* FRESH: number in the recorded call's noted lifetimes */
  rondo_buffer_layout extent;
} rondo_output;

/* How a moving input comes to the recorded work. */
typedef enum rondo_bound_way {
  RONDO_BOUND_PATCHED = 1,  /* its address is put into the nodes that use it */
  RONDO_BOUND_COPIED,       /* a node copies it into its slot, alone or with others, and is told where from */
  RONDO_BOUND_COPIED_BEFORE /* a copy into its slot is queued before the launch */
} rondo_bound_way;

typedef struct rondo_bound_input {
  rondo_bound_way way;
  uint32_t input;
  bool is_mutated; /* what was copied is copied back behind the work */
  uint32_t sites;  /* that its address has in the work */
  char *slot;      /* where the work has it, unless it is patched elsewhere */
  size_t bytes;
  const void *recorded; /* the address that its patches were made with */
} rondo_bound_input;

/* An output of the path that a recorded call was given, and its key where the work gives it up. */
typedef struct rondo_given_up {
  uint64_t key;
  uint32_t bit;
} rondo_given_up;

/* What is recorded between two host steps. */
typedef struct rondo_segment {
  rondo_runner *runner;     /* what launches it (shared_execs.h); */
  rondo_exec *exec;         /* ... its exec */
  rondo_graph *graph;       /* to update a shared exec from; NULL where execs are not shared */
  uint64_t number;          /* of all segments that the tree had */
  rondo_patch_set *patches; /* its inputs are the call's bound ones; NULL when it has none */
  rondo_host_function step; /* after it; NULL behind the last */
  void *user;
} rondo_segment;

struct rondo_recorded_call {
  rondo_function *function;
  rondo_form *form;
  rondo_recorded_call *parent; /* NULL: a root */
  rondo_recorded_call *children, *sibling;
  rondo_recorded_call *guess;           /* the child that the path went on with last */
  rondo_recorded_call *same_place;      /* in the table */
  rondo_recorded_call *previous, *next; /* all of the tree, in the order of making */
  uint32_t number, depth;               /* depth: 1 for roots */
  uint64_t hash;
  uint64_t *key;
  size_t key_count;
  uint64_t *dead_before; /* a bit for each before first_bit */
  uint32_t first_bit, bit_count;
  rondo_output *outputs;
  size_t output_count;
  bool hands_inputs_out; /* an output is a part of an input */
  rondo_bound_input *bound;
  const void **addresses;  /* of the bound inputs: scratch of a replay; */
  const void **patched_at; /* ... of a switch of execs: the second half of the same array */
  size_t bound_count;
  rondo_segment *segments;
  size_t segment_count;
  rondo_arena *arena;           /* its own, when recordings are separate (separate_recordings.h); else NULL */
  rondo_buffer **holders;       /* ... and by bit the buffer that was handed out */
  size_t arena_end;             /* bytes of the arena that must have memory */
  size_t arena_least;           /* most bytes that live at once, with what lives of the path: none can do with less */
  rondo_noted_lifetimes *noted; /* what its work allocates; NULL: not one segment, or nothing is planned */
  rondo_given_up *given_up;
  size_t given_up_count, given_up_room;
  uint64_t plan; /* that it was recorded with; 0: with none of its path */
  uint32_t plan_part;
  bool is_planned;        /* ... or planning its path brings nothing */
  uint32_t *moves;        /* of each input, when there were any; NULL */
  rondo_demoted *demoted; /* of functions behind it */
  uint64_t exec_bytes[2]; /* of the execs that were made for it: host, device */
  uint64_t replays, used; /* used: when last, by the tree's tick */
};

struct rondo_tree {
  /* What each replay reads or writes, close together. */
  _Atomic uint64_t owner; /* thread of the call under way; 0 */
  rondo_tree_commons *commons;
  rondo_device *device;
  rondo_call *active;                  /* the innermost one */
  struct rondo_resolved_input *inputs; /* scratch of a call */
  rondo_stream_tie *last_stream;       /* NULL before the first call */
  rondo_recorded_call *current;        /* the path's end; NULL when it is empty */
  rondo_recorded_call *guess;          /* the root that a path began with last */
  uint64_t step, path_step;            /* path_step: of the path's calls */
  uint64_t *live;                      /* by bit of the path */
  rondo_buffer **holders;              /* by bit: the buffer that was handed out */
  size_t path_bits;                    /* of the path: all bits at and above are clear */
  size_t bit_room;                     /* of `live` and `holders`, a multiple of 64 */
  uint32_t scopes;
  uint32_t calm_paths;         /* that began since a recording was made */
  uint32_t calm_after;         /* that many, and the path that needs most may be planned again */
  rondo_rehearsal *rehearsing; /* of the path under way; NULL */
  bool is_off;
  bool is_watched;      /* the device watches lifetimes */
  bool has_copy_kernel; /* inputs are copied in the graph by kernels, which read the device's own memory alone */
  bool is_unrecorded;   /* a call on the path warmed up: addresses behind it are not fixed */
  bool is_marking;      /* rondo_tree_mark_step was called */
  bool is_backward_pending;
  bool is_preparing;                     /* what is recorded is not launched */
  bool is_aside;                         /* ... and outputs live in the arena that the path does not know of */
  rondo_buffer *step_buffers;            /* OWN ones of a step; of no step */
  rondo_buffer *unfreed;                 /* settled; their memory is freed with the next call, by `next` */
  RONDO_ARRAY(void *) unfreed_addresses; /* likewise, of no buffer */
  rondo_recorded_call *replayed_call;    /* without paths: the last one */
  uint64_t tick, calls, replayed, steps, patched_inputs, copied_inputs, copied_bytes, allocations;
  rondo_call_info last_call;  /* `message` is below */
  rondo_tree_options options; /* zeros replaced; `name` is the tree's own */

  rondo_device_memory *memory;
  rondo_allocator allocator;
  rondo_pool *pool; /* of what runs un-recorded, of clones and rondo_buffer_create */
  rondo_arena *arena;
  uint64_t pool_bytes; /* in buffers */

  rondo_function *functions;
  uint32_t function_count, functions_made;
  rondo_recorded_call *first, *last;
  rondo_recorded_call *roots;
  uint32_t recording_count, recordings_made;
  rondo_recorded_call **table; /* by hash; `table_places` is a power of two */
  size_t table_places;
  rondo_path_plan *plans;
  uint64_t plans_made;
  rondo_rehearsal *rehearsals; /* of paths that were not recorded yet */
  uint64_t exec_bytes[2];      /* of all runners */
  rondo_runner *runners;
  uint64_t segments_made;

  rondo_recorded_call *aside; /* the end of the path that waits while another one is prepared; NULL */
  rondo_buffer *kept_buffers;
  rondo_event *order;    /* between last_stream and another */
  uint64_t *words;       /* scratch of a call */
  uint32_t *moves;       /* as many as inputs */
  rondo_buffer **handed; /* outputs, more than are asked for */
  size_t input_room, word_room, handed_room;

  uint64_t recorded, prepared, evicted, rolled_back;
  uint64_t shared_execs, switches, exec_overruns;
  uint64_t checked, mistrusted, demoted;
  uint32_t demoted_places;
  uint64_t planned_paths, planned_before, planned_after, rehearsed_paths;
  uint64_t clones, cloned_bytes;
  uint64_t skipped[RONDO_SKIP_ROOM];
  char message[RONDO_TREE_MESSAGE];
};

/* An input of a call, looked at once. */
typedef enum rondo_input_way {
  RONDO_WAY_MOVING = 1,
  RONDO_WAY_STATIC,
  RONDO_WAY_MANAGED, /* an output of the path */
  RONDO_WAY_SCALAR,
  RONDO_WAY_OPAQUE
} rondo_input_way;

typedef struct rondo_resolved_input {
  rondo_input_way way;
  bool is_mutated;   /* declared; or demoted, and it may be written */
  bool is_sole;      /* an output of the path, or one that is rehearsed: given, and no one else holds it */
  bool is_dropped;   /* ... and the body needs it no more */
  bool is_of_ending; /* in the arena, of the path that ends with this call */
  uint32_t type, rank;
  char *address;
  size_t bytes; /* a SCALAR's value */
  rondo_buffer *buffer;
  size_t offset;       /* in the buffer */
  const size_t *shape; /* of `rank` dimensions; not set when there are none */
} rondo_resolved_input;

/* The tree for one outermost use: CONCURRENT_USE, TREE_GONE never (the tree is the caller's). */
RONDO_MUST_USE rondo_status rondo_tree_enter(rondo_tree *tree, const char *call);
static inline void rondo_tree_leave(rondo_tree *tree) { atomic_store_explicit(&tree->owner, 0, memory_order_release); }
bool rondo_tree_is_owner(const rondo_tree *tree); /* of the call under way, which is in a body */
/* Whether the calling thread is inside a call of the tree: in a body. */
static inline bool rondo_tree_is_mine(const rondo_tree *tree) {
  return __builtin_expect(atomic_load_explicit(&tree->owner, memory_order_relaxed) != 0, 0) &&
         rondo_tree_is_owner(tree);
}

/* call_inputs.c: what the given inputs are. Errors for `call`, as rondo_function_call. */
RONDO_MUST_USE rondo_status rondo_inputs_resolve(const char *call, const rondo_function *function,
                                                 const rondo_input *given, rondo_resolved_input *out);
/* Whether all are *bare*: memory at an address, of no buffer. Nothing is wrong with such inputs, and no path has them.
 */
bool rondo_inputs_are_bare(const rondo_function *function, const rondo_input *given);
/* Outputs of the path that ends are no longer of a path, nor where they were if they were cloned. */
void rondo_inputs_leave_path(const rondo_function *function, rondo_resolved_input *inputs);
/* Whether two have a byte in common, of which the second may be no memory. */
bool rondo_inputs_overlap(const rondo_resolved_input *a, const rondo_resolved_input *b);
/* Whether a moving input has a byte in common with another one, and the body writes to one of the two: copied or
 * patched, the other would or would not see what is written. */
bool rondo_inputs_are_written_shared(const rondo_function *function, const rondo_resolved_input *inputs);
void rondo_tree_read_info(rondo_tree *tree, rondo_tree_info *out); /* while it is entered */

/* recording_key.c: the words that a call of so many inputs has at most; the key of a call behind the path's end, into
 * tree->words, and the form's, which has neither that nor addresses. They return the number of words. */
size_t rondo_key_room(size_t input_count);
size_t rondo_key_make(const rondo_tree *tree, const rondo_function *function, const rondo_resolved_input *inputs,
                      uint64_t *words);
uint64_t rondo_key_hash(const uint64_t *words, size_t count);
/* Whether a recorded call's key is what rondo_key_make would make; keys of one function that are equal as far as they
 * go have one length. */
bool rondo_key_matches(const rondo_tree *tree, const rondo_function *function, const rondo_resolved_input *inputs,
                       const uint64_t *key);
/* The same for bare inputs, as they are given, of a function that takes such. */
bool rondo_key_matches_bare(const rondo_tree *tree, const rondo_function *function, const rondo_input *given,
                            const uint64_t *key);
size_t rondo_key_make_form(const rondo_function *function, const rondo_resolved_input *inputs, uint64_t *words);

/* What a key or a form says of an input. */
typedef struct rondo_keyed_input {
  rondo_input_way way; /* a form's is what is declared: an output of the path is MOVING or STATIC there */
  uint32_t type, rank;
  uint64_t bytes;        /* a SCALAR's value */
  const uint64_t *shape; /* in the key */
  const char *address;   /* in a key: STATIC and MANAGED */
} rondo_keyed_input;

/* Where the inputs of a key begin; a form's begin where it does. Reading one returns where the next one is. */
const uint64_t *rondo_key_inputs(const uint64_t *key);
const uint64_t *rondo_key_read_input(const uint64_t *words, bool is_form, rondo_keyed_input *out);

/* recorded_calls.c: the recorded call that fits; putting one in, which then is the tree's; taking it out with all
 * behind it and freeing them. A call of the path is never taken out but with the path. */
rondo_recorded_call *rondo_recorded_find(const rondo_tree *tree, const uint64_t *key, size_t count, uint64_t hash);
/* The same for the one that the path went on with last time: without making a key, or a look at the table. */
rondo_recorded_call *rondo_recorded_guess(const rondo_tree *tree, const rondo_function *function,
                                          const rondo_resolved_input *inputs);
rondo_recorded_call *rondo_recorded_guess_bare(const rondo_tree *tree, const rondo_function *function,
                                               const rondo_input *given);
RONDO_MUST_USE rondo_status rondo_recorded_reserve(rondo_tree *tree); /* room in the table for one more */
void rondo_recorded_add(rondo_tree *tree, rondo_recorded_call *call);
void rondo_recorded_remove(rondo_tree *tree, rondo_recorded_call *call);
void rondo_recorded_free(rondo_tree *tree, rondo_recorded_call *call); /* was never put in; NULL is fine */
void rondo_segment_free(rondo_tree *tree, rondo_segment *segment);     /* what it has */
/* Makes room for one more under the tree's bound. False: there is none, as all that there are belong to the path. */
bool rondo_recorded_evict(rondo_tree *tree);
void rondo_recorded_evict_bytes(rondo_tree *tree, uint64_t most); /* until the execs have fewer bytes than that */

/* Nothing that was dead when it was made is live. */
static inline bool rondo_recorded_fits(const rondo_tree *tree, const uint64_t *dead_before, uint32_t first_bit) {
  const size_t words = ((size_t)first_bit + 63) / 64;
  for (size_t i = 0; i < words; i++)
    if ((tree->live[i] & dead_before[i]) != 0) return false;
  return true;
}

/* path.c: the path takes a recorded call that was launched. Its buffers, as far as asked for, are handed out. */
RONDO_MUST_USE rondo_status rondo_path_reserve(rondo_tree *tree, size_t bits);
void rondo_path_advance(rondo_tree *tree, rondo_recorded_call *call);
/* Nobody holds an output of it any more, or that gets memory of its own. */
void rondo_path_let_go(rondo_tree *tree, rondo_stream *stream, const rondo_buffer *buffer);
/* Ends the path: what is held of it expires or is cloned on the stream. NULL: nothing is cloned. The first
 * `input_count` of tree->inputs are those of the call that begins. */
RONDO_MUST_USE rondo_status rondo_path_finish(rondo_tree *tree, rondo_stream *stream, size_t input_count);
bool rondo_path_is_dead(const rondo_tree *tree); /* nobody holds anything of it */
/* Takes over what was released since; memory is freed behind the stream's work, or later when it is NULL. */
void rondo_path_settle(rondo_tree *tree, rondo_stream *stream);
/* The same of calls inside a body that is recorded on the stream, or captured; others are left for later. */
RONDO_MUST_USE rondo_status rondo_path_settle_nested(rondo_tree *tree, rondo_stream *stream);
/* Frees the memory of buffers of steps that are over. */
void rondo_path_sweep(rondo_tree *tree, rondo_stream *stream);
/* The stream's work comes after the tree's earlier work. */
RONDO_MUST_USE rondo_status rondo_path_follow(rondo_tree *tree, rondo_stream *stream);

/* skip_reason.c: why a call is run as it is. Counts it, keeps message and reason, and says so in the log. */
void rondo_skip_note(rondo_function *function, rondo_skip skip, const char *message);
void rondo_skip_forget(rondo_function *function); /* frees what was kept */
/* Whether the reason is an error in a strict tree; and that error. */
bool rondo_skip_is_strict(rondo_skip skip);
rondo_status rondo_skip_refuse(const rondo_function *function, rondo_skip skip, const char *message);

/* function_body.c: running a body. */
typedef struct rondo_made_output {
  bool is_made;
  uint32_t order; /* when it was made among the fresh ones, from 1; 0: it is none */
  rondo_output output;
  char name[64];
} rondo_made_output;

typedef struct rondo_take rondo_take; /* record_call.c */

struct rondo_call {
  rondo_tree *tree;
  rondo_function *function;
  rondo_stream *stream;
  rondo_call *outer; /* that it is a part of; NULL */
  rondo_take *take;  /* the recording under way; NULL when it runs as it is */
  bool is_warm_up, wants_warm_up;
  bool is_noting, is_warm_up_unnoted;         /* notes are being made; some could not be */
  RONDO_ARRAY(rondo_noted_lifetimes *) notes; /* of a warm-up: from one host step to the next */
  bool notes_values;                          /* it is a whole call whose launches' values are compared */
  rondo_launch_values values;
  rondo_resolved_input *inputs;
  RONDO_ARRAY(rondo_made_output) outputs;
  uint32_t fresh_count;
  size_t host_steps;
  rondo_meter *meter;       /* of the whole call; NULL */
  rondo_status failed_step; /* what a host step returned that failed; OK */
  rondo_skip refused;       /* by the body */
  char message[RONDO_TREE_MESSAGE];
};

/* Calls the body. A failure but NOT_READY has words, if only that no call of the library says why. Its outputs are
 * in call->outputs, without gaps. */
RONDO_MUST_USE rondo_status rondo_body_run(rondo_call *call);
void rondo_body_free(rondo_call *call);
/* Keeps the values that the call's launches were given as the form's. True: some are not those of the run before, and
 * the message says which. */
bool rondo_body_compare_values(rondo_form *form, rondo_call *call, char message[RONDO_TREE_MESSAGE]);
rondo_call *rondo_call_outermost(rondo_call *call); /* that this one is a part of, or itself */
/* Takes a host step, which is no body: it calls no functions. */
RONDO_MUST_USE rondo_status rondo_body_take_step(rondo_call *call, rondo_host_function step, void *user);

/* record_call.c: records the body behind the path's end. NONE and *out: it stands, was put in and launched; otherwise
 * the reason, and all is as before. A status that is not OK is the call's. */
typedef struct rondo_record_result {
  rondo_skip skip;
  char message[RONDO_TREE_MESSAGE];
} rondo_record_result;
RONDO_MUST_USE rondo_status rondo_record_call(rondo_function *function, rondo_form *form, rondo_stream *stream,
                                              const rondo_resolved_input *inputs, size_t key_count, uint64_t hash,
                                              rondo_record_result *out_result, rondo_recorded_call **out);
/* In a body that is recorded: a call inside must be on a stream of the recording. */
RONDO_MUST_USE rondo_status rondo_take_require_stream(rondo_take *take, const rondo_function *function,
                                                      rondo_stream *stream);
/* In a body that is recorded: between two segments what was queued so far runs, then the step; and an input is given
 * up. */
RONDO_MUST_USE rondo_status rondo_take_host_step(rondo_call *call, rondo_host_function step, void *user);
RONDO_MUST_USE rondo_status rondo_take_drop_input(rondo_call *call, size_t index);

/* replay.c: whether what copies inputs inside the graph can copy this one. */
bool rondo_input_can_be_copied(const rondo_tree *tree, const char *address, size_t bytes);
/* Launches a recorded call with the inputs where they are, and takes its host steps; and a segment of it by itself,
 * with inputs where call->addresses says. */
RONDO_MUST_USE rondo_status rondo_replay(rondo_tree *tree, const rondo_recorded_call *call, rondo_stream *stream,
                                         const rondo_resolved_input *inputs);
/* The same in two, for bare inputs as they are given: where there is nothing to be done but to tell their addresses,
 * that is done. */
bool rondo_replay_tell(rondo_tree *tree, const rondo_recorded_call *call, const rondo_input *given);
RONDO_MUST_USE rondo_status rondo_replay_told(const rondo_recorded_call *call, rondo_stream *stream);
RONDO_MUST_USE rondo_status rondo_replay_segment(const rondo_recorded_call *call, const rondo_segment *segment,
                                                 rondo_stream *stream);

/* The form is not recorded, for good; and whether calls of it may be. */
void rondo_form_skip(rondo_form *form, rondo_skip skip, const char *message);

#endif
