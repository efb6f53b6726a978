/* SPDX-License-Identifier: MIT
 * A compiled program explained (FW-7): what both formats say, found once.
 */
#ifndef RONDO_TENSOR_EXPLAIN_PROGRAM_EXPLAIN_H
#define RONDO_TENSOR_EXPLAIN_PROGRAM_EXPLAIN_H

#include "base/text.h"
#include "tensor/run/compiled.h"

typedef enum rondo_advice_kind {
  RONDO_ADVICE_MEASURE,      /* nothing is known of the gain */
  RONDO_ADVICE_RECORD,       /* it is not recorded, and that would pay */
  RONDO_ADVICE_LARGER_PIECE, /* too few works for a recording */
  RONDO_ADVICE_JOIN_WORKS,   /* nodes cost much beside what they do */
  RONDO_ADVICE_WORK_BOUND,   /* they cost next to nothing */
  RONDO_ADVICE_BRANCHES,     /* independent operators could run side by side */
  RONDO_ADVICE_INPUTS        /* copies in front of runs */
} rondo_advice_kind;

typedef struct rondo_advice {
  rondo_advice_kind kind;
  char message[320];
} rondo_advice;

enum { RONDO_MOST_ADVICE = 8 };

/* How the recorded graph's nodes come to be parallel, or why they do not. */
typedef enum rondo_branch_state {
  RONDO_BRANCH_NONE, /* dependencies make it one line */
  RONDO_BRANCH_TAKEN,
  RONDO_BRANCH_REFUSED, /* RONDO_BRANCHES_NEVER */
  RONDO_BRANCH_MEMORY,  /* they would take too much memory */
  RONDO_BRANCH_BUDGET   /* not all were tried: too many operators, or too much work */
} rondo_branch_state;

typedef struct rondo_explanation {
  const rondo_compiled *compiled;
  rondo_branch_state branches;
  uint32_t inputs, staged_inputs; /* inputs: that are not staged, with */
  uint64_t input_bytes;
  char reason[RONDO_GAIN_MESSAGE]; /* why it is not recorded; "" */
  rondo_advice advice[RONDO_MOST_ADVICE];
  size_t advice_count;
} rondo_explanation;

const char *rondo_advice_name(rondo_advice_kind kind);         /* "MEASURE" */
const char *rondo_branch_state_name(rondo_branch_state state); /* "none" */
const char *rondo_unrecorded_name(rondo_unrecorded reason);    /* "NO_GAIN"; NULL for NONE */
const char *rondo_unexecuted_name(rondo_unexecuted reason);    /* "SLOWER"; NULL for NONE */

void rondo_explanation_to_text(const rondo_explanation *e, rondo_text *out);
void rondo_explanation_to_json(const rondo_explanation *e, rondo_text *out);

#endif
