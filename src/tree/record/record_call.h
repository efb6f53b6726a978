/* SPDX-License-Identifier: MIT
 * Recording a call (record_call.c) and making its execs (bind_inputs.c). A *recorder* is a recording in progress: until
 * it stands, nothing of the tree has changed, and giving it up leaves nothing after (TR-15).
 */
#ifndef RONDO_TREE_RECORD_RECORD_CALL_H
#define RONDO_TREE_RECORD_RECORD_CALL_H

#include "tree/tree_internal.h"

#include "exec/capture/stray_work.h"
#include "memory/arena/arena_guard.h"
#include "tree/path/path_plan.h"

struct rondo_recorder {
  rondo_tree *tree;
  rondo_function *function;
  rondo_form *form;
  rondo_stream *stream;
  const rondo_resolved_input *given; /* the call's inputs */
  rondo_resolved_input *inputs;      /* what the body sees: moving ones in their slots */
  rondo_recorded_call *made;
  RONDO_ARRAY(rondo_arena_block) blocks; /* alive when the segment in progress began */
  RONDO_ARRAY(rondo_arena_slot) slots;   /* of the moving inputs, in their order */
  RONDO_ARRAY(rondo_segment) segments;
  RONDO_ARRAY(uint32_t) allocations; /* of a body of one segment: numbers of those that it leaves, as blocks */
  rondo_profile *profile;            /* of a plan of the whole path; the plan's; NULL */
  rondo_plan_place place;            /* ... and its place there */
  rondo_graph *moved, *again;        /* the same work with the inputs elsewhere, and once more in their slots; NULL */
  const void **elsewhere;            /* where, of the bound inputs; NULL with `moved` */
  size_t path_blocks;                /* of the blocks, those of the path; after them the slots and what segments left */
  bool is_capturing;
  rondo_arena_access access; /* of the body's on the host to memory that was not there */
  rondo_capture_watch watch; /* of the last run of the body */
  rondo_skip skip;           /* why it is given up; NONE */
  bool is_for_good;          /* ... by the form, from now on */
  char message[RONDO_TREE_MESSAGE];
  char cause[RONDO_TREE_MESSAGE]; /* what made its capture invalid; "" */
};

/* Gives the recorder up: the reason, from the thread's last error unless a message is given. Returns INVALID_STATE. */
rondo_status rondo_recorder_give_up(rondo_recorder *recorder, rondo_skip skip, bool is_for_good, const char *message);
/* Which reason the thread's last error is where it says nothing of the capture. */
rondo_skip rondo_skip_of_error(void);

/* Runs the body into the capture, watched for stray work, with the frees of what calls inside it leave. */
RONDO_MUST_USE rondo_status rondo_recorder_run_body(rondo_recorder *recorder, rondo_call *call);

/* Why a call was not recorded; NONE: it was. */
typedef struct rondo_record_result {
  rondo_skip skip;
  char message[RONDO_TREE_MESSAGE];
} rondo_record_result;

/* Records the body after the end of the path. If *out is not NULL, the recording is part of the tree and was launched.
 * Otherwise *out_result has the reason, and the tree is as before. A status other than OK is the failure of the call.
 */
RONDO_MUST_USE rondo_status rondo_record_call(rondo_function *function, rondo_form *form, rondo_stream *stream,
                                              const rondo_resolved_input *inputs, size_t key_count, uint64_t hash,
                                              rondo_record_result *out_result, rondo_recorded_call **out);

/* In a body that is recorded: a call inside must be on a stream of the recording. */
RONDO_MUST_USE rondo_status rondo_recorder_require_stream(rondo_recorder *recorder, const rondo_function *function,
                                                          rondo_stream *stream);

/* In a body that is recorded: between two segments what was enqueued so far runs, then the step; and an input is given
 * up. */
RONDO_MUST_USE rondo_status rondo_recorder_host_step(rondo_call *call, rondo_host_function step, void *user);
RONDO_MUST_USE rondo_status rondo_recorder_drop_input(rondo_call *call, size_t index);

#endif
