/* SPDX-License-Identifier: MIT
 * Records a call. A *recorder* is a recording in progress. It does not change the tree until it succeeds; a recorder
 * that is abandoned has no effect (TR-15).
 */
#ifndef RONDO_TREE_RECORD_RECORD_CALL_H
#define RONDO_TREE_RECORD_RECORD_CALL_H

#include "tree/tree_internal.h"

#include "exec/capture/capture_internal.h"
#include "exec/capture/stray_work.h"
#include "memory/arena/arena_guard.h"
#include "tree/path/path_plan.h"

struct rondo_recorder {
  rondo_tree *tree;
  rondo_function *function;
  rondo_form *form;
  rondo_stream *stream;
  const rondo_resolved_input *given; /* the call's inputs */
  rondo_resolved_input *inputs;      /* as the body sees them: moving inputs are in their slots */
  rondo_recorded_call *made;
  RONDO_ARRAY(rondo_arena_block) blocks; /* live at the start of the current segment */
  RONDO_ARRAY(rondo_arena_slot) slots;   /* of the moving inputs, in order */
  RONDO_ARRAY(rondo_segment) segments;
  RONDO_ARRAY(uint32_t) allocations; /* the numbers of the allocations that the body leaves */
  rondo_profile *profile;            /* from the plan of a path, which owns it; NULL: none */
  rondo_plan_position position;      /* the part of that plan */
  rondo_graph *moved, *again; /* find_inputs.c: the same work with the inputs elsewhere, and in their slots; NULL */
  const void **elsewhere;     /* addresses of the bound inputs in `moved` */
  size_t path_blocks;         /* the first blocks are outputs of the path; then slots, and what segments left */
  bool is_capturing;
  bool has_body;             /* a run of the body has begun */
  rondo_arena_access access; /* by the host, to memory without pages */
  rondo_capture_watch watch; /* of the last run of the body */
  rondo_saved_error before;  /* the thread's last error when it began */
  rondo_skip skip;           /* why it was abandoned; NONE: it was not */
  bool is_for_good;          /* the reason is permanent for the form */
  char message[RONDO_TREE_MESSAGE];
  char cause[RONDO_TREE_MESSAGE]; /* what invalidated its capture; "": nothing */
  rondo_cause_source cause_source;
};

/* Abandons the recording for this reason, unless it was abandoned before. Returns INVALID_STATE. */
rondo_status rondo_recorder_abandon(rondo_recorder *recorder, rondo_skip skip, bool is_for_good, const char *format,
                                    ...) RONDO_PRINTF(4, 5);
/* The same with the message of the thread's last error. */
static inline rondo_status rondo_recorder_abandon_for_error(rondo_recorder *recorder, rondo_skip skip,
                                                            bool is_for_good) {
  return rondo_recorder_abandon(recorder, skip, is_for_good, "%s", rondo_last_error()->message);
}
/* The reason for the thread's last error, which is not about the capture. */
rondo_skip rondo_skip_of_error(void);

/* Begin and end a run of the body in the capture. Stray work is watched for, and the end captures the frees of what
 * inner calls leave. */
void rondo_recorder_begin_body(rondo_recorder *recorder, rondo_call *call);
RONDO_MUST_USE rondo_status rondo_recorder_end_body(rondo_recorder *recorder, rondo_call *call, rondo_status returned);

/* Why a call was not recorded; NONE: it was. */
typedef struct rondo_record_result {
  rondo_skip skip;
  bool has_died; /* its capture was made invalid */
  char message[RONDO_TREE_MESSAGE];
} rondo_record_result;

/* What is to be recorded, after the end of the path. The first `key_count` of tree->words are its key. */
typedef struct rondo_record_request {
  rondo_function *function;
  rondo_form *form;
  rondo_stream *stream;
  const rondo_resolved_input *inputs;
  size_t key_count;
  uint64_t hash;
} rondo_record_request;

/* Begins to record: fills `recorder` and `call`, and lets the stream capture for the body. After a failure the body
 * must not run. The end is due in any case. */
RONDO_MUST_USE rondo_status rondo_record_begin(rondo_recorder *recorder, rondo_call *call,
                                               const rondo_record_request *request);
/* Ends recording; `status` is the failure of the begin, or what the body returned. If *out is not NULL, the recording
 * is part of the tree and was launched. Otherwise *out_result has the reason, and the tree is unchanged. An error is a
 * failure of the call itself. */
RONDO_MUST_USE rondo_status rondo_record_end(rondo_recorder *recorder, rondo_call *call, rondo_status status,
                                             rondo_record_result *out_result, rondo_recorded_call **out);

/* Fails unless an inner call in a body that is being recorded uses a stream of the recording. */
RONDO_MUST_USE rondo_status rondo_recorder_require_stream(rondo_recorder *recorder, const rondo_function *function,
                                                          rondo_stream *stream);

/* In a body that is being recorded: adds a host step, which a replay runs after the work before it; drops an input.
 */
RONDO_MUST_USE rondo_status rondo_recorder_host_step(rondo_call *call, rondo_host_function step, void *user);
RONDO_MUST_USE rondo_status rondo_recorder_drop_input(rondo_call *call, size_t index);

#endif
