/* SPDX-License-Identifier: MIT
 * The types of a tree that several files share.
 *
 * The *path* is the list of recorded calls that were replayed or made since the step began, from a root to the current
 * call. Its fresh outputs are numbered, starting at the root. These numbers are the *bits* of the set of live outputs.
 * A recorded call stores which earlier outputs were dead when it was recorded. It fits while all of these are dead.
 *
 * The *generation* is the number of the path. A buffer in the arena is valid while it has the generation of its tree.
 * It grows by one when a path ends, which invalidates all buffers of the path at once.
 *
 * A *form* describes the inputs of a function without their addresses. Forms warm up. A recorded call is found by its
 * *key*: the function, the recorded call before it, the form with a region's key, and the addresses that must be the
 * same. A key is an array of words, which recording_key.c builds in one order, and which is hashed once and compared
 * once.
 *
 * Threads: one at a time; `owner` enforces that. buffer.h lists what buffers share with other threads.
 */
#ifndef RONDO_TREE_TREE_INTERNAL_H
#define RONDO_TREE_TREE_INTERNAL_H

#include "base/array.h"
#include "exec/capture/arena_capture.h"
#include "exec/cost/meter.h"
#include "exec/cost/recording_gain.h"
#include "exec/launch/exec_internal.h"
#include "exec/patch/frozen_values.h"
#include "exec/patch/patch.h"
#include "memory/profile/warm_up_log.h"
#include "tree/path/buffer.h"

typedef struct rondo_recorded_call rondo_recorded_call;
typedef struct rondo_tree_exec rondo_tree_exec;       /* shared_execs.h */
typedef struct rondo_recorder rondo_recorder;         /* record_call.h */
typedef struct rondo_path_plan rondo_path_plan;       /* path_plan.h */
typedef struct rondo_path_warm_up rondo_path_warm_up; /* path_warm_up.h */
typedef struct rondo_padding rondo_padding;
typedef struct rondo_region rondo_region;   /* region.c */
typedef struct rondo_demoted rondo_demoted; /* demote_inputs.h */

#define RONDO_TREE_MESSAGE 400

/* The description of a function's inputs without addresses, with what is known about calls with such inputs. */
typedef struct rondo_form {
  struct rondo_form *next; /* the next form of the function */
  uint64_t *words;         /* the key without the call before it and without addresses */
  size_t word_count;
  uint32_t number;        /* in the order of their first calls, from 1 */
  uint32_t warm_ups;      /* that are left */
  uint32_t recordings;    /* existing ones */
  uint64_t used;          /* the tree's tick of its last call that was no replay; for forms of regions */
  rondo_skip skip;        /* permanently; NONE: it may be recorded */
  uint32_t written_input; /* for MUTATED_INPUT, which applies only while this input is not an output of the path */
  rondo_noted_lifetimes **noted; /* what the warm-up allocated, one for each segment; NULL: not known */
  size_t noted_count, noted_capacity;
  uint32_t failures;               /* consecutive recordings that were undone for a temporary reason */
  uint32_t deaths;                 /* likewise, because the capture died (RONDO_SKIP_CAPTURE_DIED) */
  uint32_t waits;                  /* calls that run eagerly before it is recorded again after a death */
  size_t output_count, host_steps; /* of the last run */
  uint32_t *output_orders;         /* ... the index of each output among the fresh ones, from 1; 0: it is not fresh */
  size_t order_capacity;
  bool has_orders;            /* output_orders is known */
  rondo_launch_values values; /* values that launches received in the last run of the body */
  rondo_meter meter;          /* of the last warm-up, until record_gain.h decides */
  rondo_gain gain;            /* the predicted gain of recording it */
  bool has_gain;
  char message[RONDO_TREE_MESSAGE]; /* why `skip` */
} rondo_form;

struct rondo_function {
  rondo_tree *tree;
  rondo_region *region; /* whose code is the body; NULL: a callback is */
  uint64_t *caller_key; /* of a region's current call: the length of its key, and the key padded with zeros */
  size_t caller_words;  /* 0: it has no such key */
  bool always_captures; /* never replayed: each call is captured and uses an exec with the same topology */
  rondo_function *next;
  rondo_origin *origin;           /* its name */
  rondo_function_options options; /* `inputs` is a copy */
  uint32_t number;                /* in keys */
  bool is_off;
  bool has_written;        /* inputs that are RONDO_INPUT_MUTATED */
  bool has_written_moving; /* ... and RONDO_INPUT_MOVING */
  bool takes_raw;          /* all inputs are memory, and a replay with raw ones does not need to resolve them */
  uint32_t *by_address;    /* input numbers, in the order of addresses at the last call: scratch of
                              rondo_inputs_are_written_shared */
  rondo_padding *padding;  /* NULL without buckets */
  rondo_form *forms;
  rondo_function_info info; /* its messages are the two below */
  char message[RONDO_TREE_MESSAGE];
  char moved[RONDO_TREE_MESSAGE];
  char *messages[RONDO_SKIP_ROOM]; /* the last one of each reason, for rondo_tree_explain; NULL: none */
  uint64_t updates;                /* calls that used an exec with the same topology, of a region captured always */
  uint64_t max_exec_bytes;         /* of a region's recordings; 0: no limit */
  uint64_t evicted, died;          /* recordings; captures that were made invalid */
};

/* Which memory an output of a recorded call uses. */
typedef enum rondo_output_kind {
  RONDO_OUTPUT_EMPTY, /* 0 bytes */
  RONDO_OUTPUT_FRESH, /* memory of its own */
  RONDO_OUTPUT_OF_INPUT,
  RONDO_OUTPUT_OF_OUTPUT
} rondo_output_kind;

typedef struct rondo_output {
  rondo_output_kind kind;
  uint32_t of;         /* OF_*: number of the input or output */
  size_t offset;       /* ... and the offset in it */
  void *address;       /* FRESH */
  uint32_t bit;        /* FRESH: on the path */
  uint32_t allocation; /* FRESH: number in the recorded call's noted lifetimes */
  rondo_buffer_layout extent;
} rondo_output;

/* How recorded work accesses a moving input. */
typedef enum rondo_bound_method {
  RONDO_BOUND_PATCHED = 1,  /* its address is patched into the nodes that use it */
  RONDO_BOUND_COPIED,       /* a node copies it into its slot, perhaps with other inputs; the source is patched */
  RONDO_BOUND_COPIED_BEFORE /* a copy into its slot is enqueued before the launch */
} rondo_bound_method;

typedef struct rondo_bound_input {
  rondo_bound_method method;
  uint32_t input;
  bool is_mutated; /* its slot is copied back after the work */
  uint32_t sites;  /* number of uses of its address in the work */
  char *slot;      /* its address in the work as recorded */
  size_t bytes;
  const void *recorded; /* the address that its patches were made with */
} rondo_bound_input;

/* An output of the path that the caller gave to a recorded call (rondo_input.give). The key is that of the end of its
 * lifetime, if the body drops it. */
typedef struct rondo_given_output {
  uint64_t key;
  uint32_t bit;
} rondo_given_output;

/* The work between two host steps. */
typedef struct rondo_segment {
  rondo_tree_exec *tree_exec; /* what launches it (shared_execs.h); */
  rondo_exec *exec;           /* ... its exec */
  rondo_graph *graph;         /* to update a shared exec; NULL if the tree does not share execs */
  uint64_t number;            /* unique in the tree */
  rondo_patch_set *patches;   /* its inputs are the call's bound inputs; NULL: there are none */
  rondo_host_function step;   /* that follows; NULL after the last segment */
  void *user;
} rondo_segment;

struct rondo_recorded_call {
  rondo_function *function;
  rondo_form *form;
  rondo_recorded_call *parent; /* NULL: a root */
  rondo_recorded_call *children, *sibling;
  rondo_recorded_call *guess;           /* the child that followed last time */
  rondo_recorded_call *next_in_bucket;  /* in the table */
  rondo_recorded_call *previous, *next; /* of all recorded calls, oldest first */
  uint32_t number, depth;               /* depth: 1 for roots */
  uint64_t hash;
  uint64_t *key;
  size_t key_count;
  uint64_t *dead_before; /* the set of bits below first_bit whose outputs were dead */
  uint32_t first_bit, bit_count;
  rondo_output *outputs;
  size_t output_count;
  bool returns_inputs; /* an output is a part of an input */
  rondo_bound_input *bound;
  const void **addresses;  /* of the bound inputs: scratch memory of a replay */
  const void **patched_at; /* likewise when a shared exec is switched; the second half of the same array */
  size_t bound_count;
  rondo_segment *segments;
  size_t segment_count;
  size_t arena_end;             /* bytes of the arena that need physical memory */
  size_t arena_minimum;         /* maximum bytes live at once, including those of the path: no plan needs less */
  rondo_noted_lifetimes *noted; /* what its work allocates; NULL: it has several segments, or nothing is planned */
  rondo_given_output *given;
  size_t given_count, given_capacity;
  uint64_t plan; /* number of the path plan that it was recorded with; 0: none */
  uint32_t plan_part;
  bool is_planned;           /* it has such a plan, or a plan of its path saves nothing */
  uint32_t *moves;           /* by input (demote_inputs.h); NULL: no input moved */
  rondo_demoted *demoted;    /* demotions of inputs of the calls that follow it, by function */
  uint64_t exec_bytes[2];    /* of the execs that were made for it: host, device */
  uint64_t replays, used;    /* used: the tree's tick of the last use */
  rondo_object_list objects; /* of the graphs of its segments: its host steps may use them */
};

struct rondo_tree {
  /* Fields that each replay reads or writes, close together. */
  _Atomic uint64_t owner; /* the thread of the call in progress; 0: none */
  rondo_tree_commons *commons;
  rondo_device *device;
  rondo_call *active;                  /* the innermost one */
  struct rondo_resolved_input *inputs; /* scratch memory of a call */
  rondo_stream_tie *last_stream;       /* NULL before the first call */
  rondo_recorded_call *current;        /* the path's end; NULL when it is empty */
  rondo_recorded_call *guess;          /* the root of the last path that began */
  uint64_t step, path_step;            /* path_step: of the path's calls */
  uint64_t *live;                      /* by bit of the path */
  rondo_buffer **holders;              /* by bit: the buffer of the output */
  size_t path_bits;                    /* bits of the path; all others are clear */
  size_t bit_capacity;                 /* of `live` and `holders`, a multiple of 64 */
  uint32_t scopes;
  uint32_t steady_paths;          /* paths that began since the last recording */
  uint32_t steady_after;          /* when steady_paths reaches it, the path that needs the most memory may be planned */
  rondo_path_warm_up *warming_up; /* of the path in progress; NULL */
  bool is_off;
  bool is_watched;      /* the device watches lifetimes */
  bool has_copy_kernel; /* graphs copy inputs by kernels, which can read only memory of the device */
  bool is_eager;        /* a call of the path ran eagerly, so the addresses after it are not fixed */
  bool is_marking;      /* rondo_tree_mark_step was called */
  bool is_backward_pending;
  bool is_preparing;                     /* recordings are not launched */
  bool has_unknown_outputs;              /* ... and the arena has live outputs of the suspended path */
  rondo_buffer *step_buffers;            /* OWNED buffers of a step */
  rondo_buffer *unfreed;                 /* settled buffers, by `next`; the next call frees their memory */
  RONDO_ARRAY(void *) unfreed_addresses; /* likewise memory without a buffer */
  uint64_t tick;
  rondo_tree_info info;       /* except for what rondo_tree_read_info computes */
  rondo_call_info last_call;  /* `message` is below */
  rondo_tree_options options; /* with defaults filled in; `name` is a copy */

  rondo_device_memory *memory;
  rondo_allocator allocator;
  rondo_pool *pool; /* for eager calls, clones and rondo_buffer_create */
  rondo_arena *arena;

  rondo_function *functions;
  uint32_t functions_made;
  rondo_recorded_call *first, *last;
  rondo_recorded_call *roots;
  uint32_t recordings_made;
  rondo_recorded_call **table; /* by hash; `table_size` is a power of two */
  size_t table_size;
  rondo_path_plan *plans;
  uint64_t plans_made;
  rondo_path_warm_up *path_warm_ups; /* of paths that are not recorded yet */
  uint64_t exec_bytes[2];            /* of all execs */
  rondo_tree_exec *execs;
  uint64_t segments_made;

  rondo_recorded_call *suspended; /* the end of a path that is suspended while another is prepared; NULL: none */
  rondo_buffer *kept_buffers;     /* OWNED buffers of no step */
  rondo_event *order;             /* orders a stream after last_stream */
  uint64_t *words;                /* scratch memory: the key of a call */
  uint32_t *moves;                /* scratch memory: by input of a call (demote_inputs.h) */
  rondo_buffer **made_outputs;    /* scratch memory: all outputs of a call that requests fewer */
  size_t input_capacity, word_capacity, made_capacity;
  uint32_t demotion_count;
  char message[RONDO_TREE_MESSAGE];
};

/* How a call uses an input. */
typedef enum rondo_input_role {
  RONDO_ROLE_MOVING = 1,
  RONDO_ROLE_STATIC,
  RONDO_ROLE_MANAGED, /* an output of the path */
  RONDO_ROLE_SCALAR,
  RONDO_ROLE_OPAQUE
} rondo_input_role;

typedef struct rondo_resolved_input {
  rondo_input_role role;
  bool is_mutated;   /* declared as RONDO_INPUT_MUTATED; or it is demoted, and the work may write it */
  bool is_sole;      /* an output of the path or of the warm-up that the caller gives and nobody else retains */
  bool is_dropped;   /* ... and the body no longer needs it */
  bool is_of_ending; /* an output of the path that this call ends; it is still in the arena */
  uint32_t type, rank;
  char *address;
  size_t bytes; /* a SCALAR's value */
  rondo_buffer *buffer;
  size_t offset;       /* in the buffer */
  const size_t *shape; /* of `rank` dimensions; not set if `rank` is 0 */
} rondo_resolved_input;

/* The stream of the last call; NULL if there was no call or the stream is gone. */
static inline rondo_stream *rondo_tree_last_stream(const rondo_tree *tree) {
  return tree->last_stream == NULL ? NULL : tree->last_stream->stream;
}

/* The recorded calls after the path's end. */
static inline rondo_recorded_call *rondo_path_children(const rondo_tree *tree) {
  return tree->current == NULL ? tree->roots : tree->current->children;
}

/* The number of the recorded call at the path's end; 0 if the path is empty. */
static inline uint32_t rondo_path_last_number(const rondo_tree *tree) {
  return tree->current == NULL ? 0 : tree->current->number;
}

/* The number of words of a set of `bits` bits. */
static inline size_t rondo_bit_words(size_t bits) { return (bits + 63) / 64; }

/* Whether all outputs that were dead when the call was recorded are dead now. */
static inline bool rondo_recorded_fits(const rondo_tree *tree, const uint64_t *dead_before, uint32_t first_bit) {
  for (size_t i = 0; i < rondo_bit_words(first_bit); i++)
    if ((tree->live[i] & dead_before[i]) != 0) return false;
  return true;
}

#endif
