/* SPDX-License-Identifier: MIT
 * Which operations of a program run, in which order, and what must come before what. Operations that no output and no
 * update needs are removed. Of operations that compute the same, one runs (common subexpressions). Views run nothing.
 * Some operations are fused into chains.
 *
 * The result of an operation that works in place (rondo_operator.is_in_place) takes over the bytes of its input, if
 * that is a result with no other reader. So bytes can have several writers, one after another, and all readers except
 * those writers see what the last one left. Neither takes part in the removal of common subexpressions.
 *
 * The meaning of a run: everything that computes sees the states as they were before the run; then the updates run, in
 * the program's order. The dependencies are those of the data under this meaning alone, so an update can run as soon as
 * its gradient is there and nothing needs the old state any more. Of the orders that keep the dependencies, one is
 * chosen with little memory live at once. Then some operations are moved so that they run as one kernel
 * (tensor/compile/join_updates.h).
 */
#ifndef RONDO_TENSOR_COMPILE_SCHEDULE_H
#define RONDO_TENSOR_COMPILE_SCHEDULE_H

#include <assert.h>

#include "tensor/compile/chain_plan.h"
#include "tensor/compile/operator_edges.h"
#include "tensor/program/program_internal.h"

typedef struct rondo_schedule {
  uint32_t *owners; /* by value: the value whose bytes it has. Of a view, the value that it shows; of a result that was
                       computed before, the first one; of a result in place, the input */
  uint32_t *makers; /* by value that owns bytes: the last operation that writes them; RONDO_NO_VALUE: none */
  size_t values;    /* of the program */
  bool *runs;       /* by operation: whether it is a step; the step of a chain is that of its last member */
  size_t operations;
  bool isolates_user_operators; /* the device guards allocations, so that each value of an operator of the user gets
                                   one of its own, and none is in a chain */
  RONDO_ARRAY(rondo_chain) chains;
  uint32_t *chain_of;  /* by operation: its chain plus one; 0: none */
  uint32_t *order;     /* operations in the order in which they run, */
  uint32_t count;      /* and how many */
  uint32_t *joined;    /* by position: how many operations from it on run as one kernel, 1 for most; 0: it runs with one
                          before it. Made by rondo_joins_make */
  rondo_edges before;  /* between positions of the order */
  size_t program_peak; /* maximum bytes of results and workspaces that are live at once: in the program's order, */
  size_t peak;         /* and in this one */
  uint64_t looks;      /* how often orders were searched for the next operation: the work of choosing them */
} rondo_schedule;

/* Sizes of memory: an operation's workspace, and the alignment to which all sizes are rounded up. */
typedef struct rondo_schedule_sizes {
  const size_t *workspaces; /* by operation */
  size_t alignment;
} rondo_schedule_sizes;

/* Sets for each operation whether an output or an update needs it. needed: by value, false. Returns whether there is an
 * output or an update. */
bool rondo_program_mark_runs(const rondo_program *program, bool *needed, bool *runs);
/* Counts what reads each value: inputs of operations that run, and outputs. readers: by value, 0. */
void rondo_program_count_readers(const rondo_program *program, const bool *runs, uint32_t *readers);
/* INVALID_ARGUMENT/NONE for a program that has neither output nor update. */
rondo_status rondo_schedule_fail_empty(const rondo_program *program);

/* Chooses what runs (owners, runs), so that the caller can prepare these operations and find their workspaces. _order
 * then chooses the order, again after fusing or unfusing. Errors: INVALID_ARGUMENT/NONE (no output and no update),
 * OUT_OF_MEMORY. rondo_schedule_free is called also after a failure. */
RONDO_MUST_USE rondo_status rondo_schedule_choose(const rondo_program *program, rondo_schedule *out);
RONDO_MUST_USE rondo_status rondo_schedule_order(const rondo_program *program, const rondo_schedule_sizes *sizes,
                                                 rondo_schedule *schedule);
/* Fuses what can be fused (tensor/compile/chain_plan.h). alignment: as in the sizes. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_schedule_fuse(const rondo_program *program, size_t alignment,
                                                rondo_schedule *schedule);
void rondo_schedule_unfuse(rondo_schedule *schedule);

void rondo_schedule_free(const rondo_program *program, rondo_schedule *schedule);

/* What the steps of `order` use, by position: the values whose bytes a step reads or writes, and, where `workspaces`
 * is not NULL, its workspace as schedule->values plus the operation's number. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_schedule_touched(const rondo_program *program, const rondo_schedule *schedule,
                                                   const uint32_t *order, uint32_t count, const size_t *workspaces,
                                                   rondo_edges *out);

/* Bytes of a result that owns its bytes and has memory, rounded up; 0 for other values. */
size_t rondo_schedule_bytes(const rondo_program *program, const rondo_schedule *schedule, uint32_t value,
                            size_t alignment);

static inline size_t rondo_round_up(size_t bytes, size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/* The first and the last position of the kernel that the operation at `position` runs in. */
static inline uint32_t rondo_kernel_first(const rondo_schedule *schedule, uint32_t position) {
  while (schedule->joined[position] == 0) position--;
  return position;
}
static inline uint32_t rondo_kernel_last(const rondo_schedule *schedule, uint32_t position) {
  const uint32_t first = rondo_kernel_first(schedule, position);
  assert(position < first + schedule->joined[first] && first + schedule->joined[first] <= schedule->count);
  return first + schedule->joined[first] - 1;
}

/* The operation of a step: the program's, or the chain's. */
static inline const rondo_operation *rondo_schedule_operation(const rondo_program *program,
                                                              const rondo_schedule *schedule, uint32_t number) {
  assert(number < schedule->operations);
  const uint32_t chain = schedule->chain_of[number];
  return chain == 0 ? &program->operations.items[number] : &schedule->chains.items[chain - 1].operation;
}

/* The name of the operator, or the names of a chain's operators, cut to `capacity` bytes, at least RONDO_CHAIN_NAME. */
void rondo_schedule_name(const rondo_program *program, const rondo_schedule *schedule, uint32_t number, char *buffer,
                         size_t capacity);

/* Whether the value is an input or a result, so that its bytes are in the arena while it is live. */
bool rondo_value_is_transient(const rondo_program *program, uint32_t value);

#endif
