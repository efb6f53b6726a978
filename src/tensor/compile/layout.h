/* SPDX-License-Identifier: MIT
 * Where each value of a program lies, when it runs as scheduled: the decisions of a compilation that need no device.
 * States and cells lie in the block of states, for ever, or where a program that is shared with has them; constants in
 * a block of the compiled program's own. Inputs and results lie in the arena, whose bytes are shared by values that are
 * not live together. An input keeps its place for the whole run, because the user writes it between runs, but a staged
 * one only from the beginning to its last use; an output keeps its place to the end; an operation's workspace is there
 * while the operation runs.
 *
 * The arena is planned for the schedule's order, or, where that takes hardly more memory, for its dependencies alone:
 * the recorded graph then has branches.
 */
#ifndef RONDO_TENSOR_COMPILE_LAYOUT_H
#define RONDO_TENSOR_COMPILE_LAYOUT_H

#include <rondo/plan.h>

#include "tensor/compile/schedule.h"
#include "tensor/run/sharing.h"

/* Of every value's address, and its bytes are rounded up to it: what vector units and copies of any device want. */
#define RONDO_VALUE_ALIGNMENT 256

typedef enum rondo_block {
  RONDO_BLOCK_NONE, /* a result of an operation that does not run */
  RONDO_BLOCK_STATES,
  RONDO_BLOCK_OWN,
  RONDO_BLOCK_SHARED, /* a state or cell that is there already */
  RONDO_BLOCK_ARENA
} rondo_block;

typedef struct rondo_place {
  rondo_block block;
  size_t offset;        /* SHARED: the index of the shared value */
  size_t bytes;         /* ARENA: as planned, rounded up */
  uint32_t first, last; /* ARENA: the positions of the order between which it lives, both included; the end of the run
                           is one past the last */
} rondo_place;

typedef struct rondo_layout {
  rondo_schedule schedule;
  bool has_branches;       /* places hold in every order that keeps the schedule's dependencies, not in its own alone */
  rondo_place *places;     /* one a value: that of its owner */
  rondo_place *workspaces; /* one an operation; NONE where it has none */
  size_t state_bytes;      /* of the block of states, and of those shared, each rounded up: */
  size_t shared_bytes;
  size_t own_bytes;
  size_t check_count;             /* cells of index checks */
  size_t gate_offset, gate_bytes; /* of the own block (tensor/run/index_check.h); no bytes: there is no gate */
  size_t arena_bytes, arena_bound, arena_sum; /* planned; lower bound; without sharing */
  size_t straight_bytes;                      /* planned for the order, whether that was taken or not */
  size_t branch_bytes;   /* planned for the last branches tried, taken or not, or a lower bound; 0: none were */
  uint64_t branch_steps; /* of the planner, for all branches that were tried */
  bool ended_early;      /* without branches, though not all widths were tried: too many operators, or steps */
} rondo_layout;

/* What rondo_compile_options says. */
typedef struct rondo_staged_list {
  const rondo_staged_value *items;
  size_t count;
} rondo_staged_list;

/* How the value of this name is staged. */
rondo_staging rondo_staged_how(const rondo_staged_list *staged, const char *name);

typedef struct rondo_layout_options {
  rondo_resources *resources; /* the operations that run are prepared into them; NULL: no workspaces */
  rondo_branch_policy branches;
  rondo_fusion_policy fusion;
  const rondo_sharing *sharing; /* states and cells that are there already; may be NULL */
  rondo_staged_list staged;     /* of staged inputs the slots are filled anew in each run */
} rondo_layout_options;

/* Errors: INVALID_ARGUMENT with NONE (no output and no update), SHAPE, TYPE or DUPLICATE_NAME (a state or cell is
 * another one where it is there already), LIMIT_EXCEEDED, OUT_OF_MEMORY, and what preparing says. options may be NULL.
 * Freed by rondo_layout_free, also after a failure. */
RONDO_MUST_USE rondo_status rondo_layout_make(const rondo_program *program, const rondo_layout_options *options,
                                              rondo_layout *out);
void rondo_layout_free(const rondo_program *program, rondo_layout *layout);

#endif
