/* SPDX-License-Identifier: MIT
 * A call from its begin to its end. Between the two, the body runs: as a callback (call.c) or as the code of a region
 * (region.c). Preparing a call uses some of its parts.
 */
#ifndef RONDO_TREE_CALL_H
#define RONDO_TREE_CALL_H

#include "tree/record/function_body.h"
#include "tree/record/record_call.h"
#include "tree/tree_internal.h"

/* A call in progress. */
typedef struct rondo_call_request {
  const char *name; /* of the public call, for messages about inputs */
  rondo_function *function;
  rondo_stream *stream;
  rondo_buffer **outputs;
  size_t output_count;
  size_t key_count;
  uint64_t hash;
  bool is_demoted;        /* this call has demoted some of its inputs */
  const rondo_input *raw; /* of rondo_inputs_find_raw, at first; NULL once they are resolved */
} rondo_call_request;

/* How the body runs. */
typedef enum rondo_run_kind {
  RONDO_RUN_NONE = 0, /* not at all, or not any more */
  RONDO_RUN_EAGER,
  RONDO_RUN_RECORDED,
  RONDO_RUN_NESTED,  /* as a part of another body */
  RONDO_RUN_CAPTURED /* as a part of a capture of the caller */
} rondo_run_kind;

/* A run of the body. A replay sets only the kind. */
typedef struct rondo_body_run {
  rondo_run_kind kind;
  rondo_skip skip;   /* EAGER: why */
  bool is_departed;  /* ... after a recording that departed from its plan */
  bool has_died;     /* ... after one whose capture was made invalid */
  bool is_abandoned; /* it must not run again */
  rondo_form *form;  /* EAGER, RECORDED */
  rondo_call call;
  rondo_recorder recorder;      /* RECORDED */
  rondo_resolved_input *inputs; /* NESTED, CAPTURED */
  rondo_capture_watch watch;    /* CAPTURED */
} rondo_body_run;

/* Begins a call of a tree that is entered. If the call is replayed, or fails, it is complete, and the run's kind is
 * NONE. Otherwise the body must run, and then the end is due. `given` must stay valid until then. */
RONDO_MUST_USE rondo_status rondo_call_begin(rondo_call_request *asked, const rondo_input *given, rondo_body_run *run);
/* Ends the run, in which the body returned `returned`. If the kind is not NONE then, a recording was abandoned: the
 * body must run again, and another end is due. */
RONDO_MUST_USE rondo_status rondo_call_end(rondo_call_request *asked, rondo_body_run *run, rondo_status returned);

/* Checks the arguments of `call`, which is not NULL. */
RONDO_MUST_USE rondo_status rondo_call_check(const char *call, const rondo_function *function,
                                             const rondo_stream *stream, const rondo_input *inputs, size_t input_count);

/* Volatile, because a call of memset takes longer than the few stores. */
static inline void rondo_call_clear_outputs(rondo_buffer *volatile *outputs, size_t count) {
  for (size_t i = 0; i < count; i++) outputs[i] = NULL;
}

/* Releases the references that the caller gave (rondo_input.give), whether the call succeeded or not. `given` may be
 * NULL. */
void rondo_call_drop_given(const rondo_input *given, size_t count);

/* CAPTURE_REFUSED while the stream captures. */
RONDO_MUST_USE rondo_status rondo_call_refuse_capture(const char *call, rondo_stream *stream);

/* Why a form that is warm cannot be recorded after the path's end; NONE: it can. The inputs are in tree->inputs. */
rondo_skip rondo_call_find_skip(rondo_function *function, const rondo_form *form, const char **out_message);

#define RONDO_INPUTS_ARE_SHARED                                                                \
  "two of its inputs share bytes; it writes one of them, and one moves: make both static, or " \
  "pass them as one input"
#define RONDO_ALL_ARE_NEEDED                                                                \
  "the tree has max_recordings recordings (rondo_tree_options), and all of them belong to " \
  "the path of this step, or to one that is suspended: raise the limit, or make steps of fewer calls"

/* After so many failed recordings in a row, a form is no longer recorded. */
enum { RONDO_MAX_FAILURES = 3 };

#endif
