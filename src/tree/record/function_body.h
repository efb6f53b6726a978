/* SPDX-License-Identifier: MIT
 * The interface of a call for its body: stream, inputs, outputs, host steps and refusals.
 */
#ifndef RONDO_TREE_RECORD_FUNCTION_BODY_H
#define RONDO_TREE_RECORD_FUNCTION_BODY_H

#include "tree/tree_internal.h"

/* An output of the call in progress. */
typedef struct rondo_made_output {
  bool is_made;
  uint32_t order; /* its index among the fresh outputs, from 1; 0: it is not fresh */
  rondo_output output;
  char name[64];
} rondo_made_output;

/* A call whose body runs. */
struct rondo_call {
  rondo_tree *tree;
  rondo_function *function;
  rondo_stream *stream;
  rondo_call *outer;        /* the call whose body makes this call; NULL: none */
  rondo_recorder *recorder; /* the recording in progress; NULL: it runs eagerly */
  rondo_form *form;         /* of an eager run; NULL: it learns nothing */
  void *host_watch;         /* the device's, for host accesses of the body; NULL: none */
  uint64_t errors_before;   /* rondo_error_number before the body */
  bool is_warm_up, wants_warm_up;
  bool is_noting, is_warm_up_unnoted;         /* notes are being made; some could not be made */
  RONDO_ARRAY(rondo_noted_lifetimes *) notes; /* of a warm-up: one for each segment between host steps */
  bool notes_values;                          /* the values of its launches are compared with the previous run */
  rondo_launch_values values;
  rondo_resolved_input *inputs;
  RONDO_ARRAY(rondo_made_output) outputs;
  uint32_t fresh_count;
  size_t host_steps;
  rondo_meter *meter;       /* of the outermost call; NULL: it is not metered */
  rondo_status failed_step; /* the status of a failed host step; OK: none */
  rondo_skip refused;       /* the body refused recording for this reason */
  char message[RONDO_TREE_MESSAGE];
};

/* Begin and end a run of the body, which returned `returned`. Every failure except NOT_READY has a message. After the
 * end, the outputs are in call->outputs, without gaps. */
void rondo_body_begin(rondo_call *call);
RONDO_MUST_USE rondo_status rondo_body_end(rondo_call *call, rondo_status returned);
/* Calls the function's callback in a run that has begun. A region that the callback leaves open is abandoned, and the
 * callback has failed. */
RONDO_MUST_USE rondo_status rondo_body_callback(rondo_call *call);
void rondo_body_free(rondo_call *call);

/* Stores the values of the call's launches in the form. True: some differ from the previous run, and the message names
 * them. */
bool rondo_body_compare_values(rondo_form *form, rondo_call *call, char message[RONDO_TREE_MESSAGE]);
/* The outermost call that contains this one, or the call itself. */
rondo_call *rondo_call_outermost(rondo_call *call);

/* Calls a host step of the function. A region that it leaves open is abandoned, and it has failed. It does not see the
 * region whose step it is, so it cannot end it. */
RONDO_MUST_USE rondo_status rondo_host_step_run(const rondo_function *function, rondo_host_function step, void *user);
/* Takes a host step in a run of the body. A host step is not a body, and must not call functions. */
RONDO_MUST_USE rondo_status rondo_body_take_step(rondo_call *call, rondo_host_function step, void *user);

#endif
