/* SPDX-License-Identifier: MIT
 * Recording a call (record_call.c) and making its execs (bind_inputs.c). A *take* is a recording under way: until it
 * stands, nothing of the tree has changed, and giving it up leaves nothing behind (TR-15).
 */
#ifndef RONDO_TREE_RECORD_RECORD_CALL_H
#define RONDO_TREE_RECORD_RECORD_CALL_H

#include "exec/capture/stray_work.h"
#include "tree/path/path_plan.h"

struct rondo_take {
  rondo_tree *tree;
  rondo_arena *arena;
  rondo_function *function;
  rondo_form *form;
  rondo_stream *stream;
  const rondo_resolved_input *given; /* the call's inputs */
  rondo_resolved_input *inputs;      /* what the body sees: moving ones in their slots */
  rondo_recorded_call *made;
  RONDO_ARRAY(rondo_arena_block) blocks; /* alive when the segment under way began */
  RONDO_ARRAY(rondo_arena_slot) slots;   /* of the moving inputs, in their order */
  RONDO_ARRAY(rondo_segment) segments;
  RONDO_ARRAY(uint32_t) allocations; /* of a body of one segment: numbers of those that it leaves, as blocks */
  rondo_profile *profile;            /* of a plan of the whole path; the plan's; NULL */
  rondo_plan_place place;            /* ... and its place there */
  rondo_graph *moved, *again;        /* the same work with the inputs elsewhere, and once more in their slots; NULL */
  const void **elsewhere;            /* where, of the bound inputs; NULL with `moved` */
  size_t path_blocks; /* of the blocks, those of the path; behind them the slots and what segments left */
  bool is_capturing;
  rondo_arena_access access; /* of the body's on the host to memory that was not there */
  rondo_capture_watch watch; /* of the last run of the body */
  rondo_skip skip;           /* why it is given up; NONE */
  bool is_for_good;          /* ... by the form, from now on */
  char message[RONDO_TREE_MESSAGE];
  char cause[RONDO_TREE_MESSAGE]; /* what made its capture invalid; "" */
};

/* Gives the take up: the reason, from the thread's last error unless a message is given. Returns INVALID_STATE. */
rondo_status rondo_take_give_up(rondo_take *take, rondo_skip skip, bool is_for_good, const char *message);
/* Which reason the thread's last error is where it says nothing of the capture. */
rondo_skip rondo_skip_of_error(void);

/* Runs the body into the capture, watched for stray work, with the frees of what calls inside it leave. */
RONDO_MUST_USE rondo_status rondo_take_run_body(rondo_take *take, rondo_call *call);

/* find_inputs.c: records the body twice more, with `blocks` the blocks of the first recording. Where that fails, there
 * is nothing to compare with, and sites are what is declared. What was found is said in the log. */
void rondo_take_find(rondo_take *take);
void rondo_take_find_free(rondo_take *take);
void rondo_take_say_findings(const rondo_take *take, const rondo_patch_set *patches);

/* check_inputs.c: what was found so is tried before it is trusted, with the recorded call made but for its first
 * launch; inputs of work that does not pass are copied. Fails only with the device. */
RONDO_MUST_USE rondo_status rondo_take_check(rondo_take *take);

/* bind_inputs.c: the exec of one segment, which then is the take's; `is_whole`: there is no other. The graph may be
 * changed.
 */
RONDO_MUST_USE rondo_status rondo_take_bind(rondo_take *take, rondo_graph *graph, bool is_whole, rondo_segment *out);

#endif
