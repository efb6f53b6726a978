/* SPDX-License-Identifier: MIT
 * Records a call (record_call.c) and makes its execs (bind_inputs.c). A *recorder* is a recording in progress. It
 * changes nothing in the tree until it succeeds, and a recorder that is given up leaves nothing (TR-15).
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
  rondo_resolved_input *inputs;      /* what the body sees: moving inputs are in their slots */
  rondo_recorded_call *made;
  RONDO_ARRAY(rondo_arena_block) blocks; /* that are alive at the start of the current segment */
  RONDO_ARRAY(rondo_arena_slot) slots;   /* of the moving inputs, in their order */
  RONDO_ARRAY(rondo_segment) segments;
  RONDO_ARRAY(uint32_t) allocations; /* of a body of one segment: numbers of those that it leaves, as blocks */
  rondo_profile *profile;            /* from a plan of the whole path, which owns it; NULL */
  rondo_plan_position place;         /* ... and its part there */
  rondo_graph *moved,
      *again; /* the same work recorded with the inputs elsewhere, and again with them in their slots; NULL */
  const void **elsewhere; /* where, of the bound inputs; NULL with `moved` */
  size_t path_blocks;     /* of the blocks, those of the path; after them the slots and what segments left */
  bool is_capturing;
  rondo_arena_access access; /* of the body on the host, to memory that does not exist */
  rondo_capture_watch watch; /* of the last run of the body */
  rondo_skip skip;           /* why it is given up; NONE */
  bool is_for_good;          /* ... permanently, for the form */
  char message[RONDO_TREE_MESSAGE];
  char cause[RONDO_TREE_MESSAGE]; /* what invalidated its capture; "" */
};

/* Gives the recorder up and sets the reason. The message is the thread's last error unless one is passed. Returns
 * INVALID_STATE. */
rondo_status rondo_recorder_give_up(rondo_recorder *recorder, rondo_skip skip, bool is_for_good, const char *message);
/* The reason that matches the thread's last error, if the error is not about the capture. */
rondo_skip rondo_skip_of_error(void);

/* Runs the body into the capture and watches for stray work. Includes the frees of what inner calls leave. */
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

/* In a body that is being recorded: an inner call must be on a stream of the recording. */
RONDO_MUST_USE rondo_status rondo_recorder_require_stream(rondo_recorder *recorder, const rondo_function *function,
                                                          rondo_stream *stream);

/* In a body that is being recorded: the first takes a host step, which at replay runs after the work enqueued before
 * it. The second gives up an input. */
RONDO_MUST_USE rondo_status rondo_recorder_host_step(rondo_call *call, rondo_host_function step, void *user);
RONDO_MUST_USE rondo_status rondo_recorder_drop_input(rondo_call *call, size_t index);

#endif
