/* SPDX-License-Identifier: MIT
 * Which operations of a program run, in which order, and what must come before what. What nobody reads is dropped; of
 * operations that compute the same, one runs; views run nothing; some are joined into chains.
 *
 * What is made in place (rondo_operator.is_in_place) has the bytes of what it was made from, if that has no other
 * reader and is a result of its own. So bytes have several writers, one behind the other, and all readers but those
 * writers see what the last one left. Neither stands for an operation that computes the same.
 *
 * A run means: all that computes sees the states as they were before the run; then those that update states, in the
 * program's order. What must come before what are the data's dependencies under that meaning alone, so an update may
 * run as soon as its gradient is there and nobody reads the old state any more. The order is one of those that keep
 * them, chosen so that little memory is live at once; then some operations are put off to run as one kernel
 * (tensor/compile/join_updates.h).
 */
#ifndef RONDO_TENSOR_COMPILE_SCHEDULE_H
#define RONDO_TENSOR_COMPILE_SCHEDULE_H

#include <assert.h>

#include "tensor/compile/chain_plan.h"
#include "tensor/compile/operator_edges.h"
#include "tensor/program/program_internal.h"

typedef struct rondo_schedule {
  uint32_t *owners; /* one a value: the value whose bytes it has. A view's is what it shows, a repeated result's the
                       first, and of what is made in place what it was made from */
  uint32_t *makers; /* one a value that owns bytes: the last operation that writes them; RONDO_NO_VALUE: none */
  size_t values;    /* of the program */
  bool *runs;       /* one an operation: whether it is a step, that of a chain being the last member's */
  size_t operations;
  RONDO_ARRAY(rondo_chain) chains;
  uint32_t *chain_of; /* one an operation: its chain plus one; 0: none */
  uint32_t *order;    /* operations in the order in which they run, so many: */
  uint32_t count;
  uint32_t *joined;    /* one a position: how many from it on run as one kernel, 1 for most; 0: with one before it.
                          Made by rondo_joins_make */
  rondo_edges before;  /* between positions of the order */
  size_t program_peak; /* most bytes of results and workspaces live at once: in the program's order, */
  size_t peak;         /* and in this one */
  uint64_t looks;      /* at operations that were ready, or became dearer or cheaper, while orders were tried */
} rondo_schedule;

/* What the memory of running is judged by: the bytes of a value's result, and of an operation's workspace. */
typedef struct rondo_schedule_sizes {
  const size_t *workspaces; /* one an operation */
  size_t alignment;         /* to which both are rounded up */
} rondo_schedule_sizes;

/* Of every operation, whether an output or an update is computed from it. needed: one a value, false. Returns whether
 * there is an output or an update. */
bool rondo_program_mark_runs(const rondo_program *program, bool *needed, bool *runs);
/* INVALID_ARGUMENT/NONE where there is none. */
rondo_status rondo_schedule_fail_empty(const rondo_program *program);

/* First the choice of what runs (owners, runs), by which the caller can make ready what runs and learn its workspaces;
 * then the order, which may be chosen again after joining or parting. Errors: INVALID_ARGUMENT/NONE (no output and no
 * update), OUT_OF_MEMORY. rondo_schedule_free is called also after a failure. */
RONDO_MUST_USE rondo_status rondo_schedule_choose(const rondo_program *program, rondo_schedule *out);
RONDO_MUST_USE rondo_status rondo_schedule_order(const rondo_program *program, const rondo_schedule_sizes *sizes,
                                                 rondo_schedule *schedule);
/* Joins what may be joined (tensor/compile/chain_plan.h). alignment: as in the sizes. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_schedule_join(const rondo_program *program, size_t alignment,
                                                rondo_schedule *schedule);
void rondo_schedule_part(rondo_schedule *schedule);

void rondo_schedule_free(const rondo_program *program, rondo_schedule *schedule);

/* What the step of this number does: the program's operation, or the chain's. */
static inline const rondo_operation *rondo_schedule_operation(const rondo_program *program,
                                                              const rondo_schedule *schedule, uint32_t number) {
  assert(number < schedule->operations);
  const uint32_t chain = schedule->chain_of[number];
  return chain == 0 ? &program->operations.items[number] : &schedule->chains.items[chain - 1].operation;
}

/* The operator's name, or those of a chain's, cut to `room` bytes, at least RONDO_CHAIN_NAME. */
void rondo_schedule_name(const rondo_program *program, const rondo_schedule *schedule, uint32_t number, char *buffer,
                         size_t room);

/* Whether the value's bytes lie in the arena, so that they count while they live. */
bool rondo_value_is_transient(const rondo_program *program, uint32_t value);

#endif
