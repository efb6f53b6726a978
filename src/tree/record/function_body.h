/* SPDX-License-Identifier: MIT
 * What a body sees of its call: stream, inputs, places for outputs, host steps, and ways to say what it must not
 * be recorded for.
 */
#ifndef RONDO_TREE_RECORD_FUNCTION_BODY_H
#define RONDO_TREE_RECORD_FUNCTION_BODY_H

#include "tree/tree_internal.h"

/* An output of the call in progress. */
typedef struct rondo_made_output {
  bool is_made;
  uint32_t order; /* when it was made among the fresh ones, from 1; 0: it is none */
  rondo_output output;
  char name[64];
} rondo_made_output;

/* A call whose body runs. */
struct rondo_call {
  rondo_tree *tree;
  rondo_function *function;
  rondo_stream *stream;
  rondo_call *outer;        /* that it is a part of; NULL */
  rondo_recorder *recorder; /* the recording in progress; NULL when it runs eagerly */
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

#endif
