/* SPDX-License-Identifier: MIT
 * Advice on how to gain more by recording a compiled program (FW-7).
 */
#ifndef RONDO_TENSOR_EXPLAIN_PROGRAM_ADVICE_H
#define RONDO_TENSOR_EXPLAIN_PROGRAM_ADVICE_H

#include "tensor/run/compiled.h"

typedef enum rondo_advice_kind {
  RONDO_ADVICE_MEASURE,      /* nothing is known of the gain */
  RONDO_ADVICE_RECORD,       /* it is not recorded, and that would pay */
  RONDO_ADVICE_LARGER_PIECE, /* too few works for a recording */
  RONDO_ADVICE_JOIN_WORKS,   /* nodes cost much besides their work */
  RONDO_ADVICE_WORK_BOUND,   /* nodes cost next to nothing */
  RONDO_ADVICE_BRANCHES,     /* independent operators could run in parallel */
  RONDO_ADVICE_INPUTS        /* inputs are copied before runs */
} rondo_advice_kind;

typedef struct rondo_advice {
  rondo_advice_kind kind;
  char message[320];
} rondo_advice;

enum { RONDO_MOST_ADVICE = 8 };

typedef struct rondo_advice_list {
  rondo_advice items[RONDO_MOST_ADVICE];
  size_t count;
} rondo_advice_list;

/* Why the recorded graph's nodes are parallel, or why they are not. */
typedef enum rondo_branch_state {
  RONDO_BRANCH_NONE, /* each operator depends on the one before it */
  RONDO_BRANCH_TAKEN,
  RONDO_BRANCH_REFUSED, /* RONDO_BRANCHES_NEVER */
  RONDO_BRANCH_MEMORY,  /* they would take too much memory */
  RONDO_BRANCH_BUDGET   /* not all were tried: too many operators, or too much work */
} rondo_branch_state;

const char *rondo_advice_name(rondo_advice_kind kind); /* "MEASURE" */

/* `input_bytes`: of inputs that are not staged. */
void rondo_advise(const rondo_compiled *compiled, rondo_branch_state branches, uint64_t input_bytes,
                  rondo_advice_list *out);

#endif
