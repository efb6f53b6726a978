/* SPDX-License-Identifier: MIT
 * The location of each value of a scheduled program: the decisions of a compilation that need no device. States and
 * cells are permanently in the block of states; a program that shares them uses the existing ones. Constants are in a
 * block of the compiled program. Inputs and results are in the arena, where values whose live ranges do not overlap
 * share bytes. An input is live during the whole run, because the user writes it between runs; a staged input only
 * until its last use. An output is live until the end of the run, and a workspace while its operation runs.
 *
 * The arena is planned for the schedule's order, or, if that takes little more memory, for its dependencies alone. Then
 * the recorded graph has branches.
 */
#ifndef RONDO_TENSOR_COMPILE_LAYOUT_H
#define RONDO_TENSOR_COMPILE_LAYOUT_H

#include <rondo/plan.h>

#include "tensor/compile/schedule.h"
#include "tensor/run/sharing.h"

/* The alignment of each value, to which its bytes are rounded up: enough for vector units and copies of any device. */
#define RONDO_VALUE_ALIGNMENT 256

typedef enum rondo_block {
  RONDO_BLOCK_NONE, /* a result of an operation that does not run */
  RONDO_BLOCK_STATES,
  RONDO_BLOCK_OWN,
  RONDO_BLOCK_SHARED,   /* a state or cell that exists already */
  RONDO_BLOCK_BORROWED, /* the elements of a constant, which are the caller's */
  RONDO_BLOCK_ARENA
} rondo_block;

/* The block of memory and the offset in it at which a value or a workspace lives. */
typedef struct rondo_location {
  rondo_block block;
  size_t offset;        /* SHARED: the index of the shared value; BORROWED: the address */
  size_t bytes;         /* ARENA: as planned, rounded up */
  uint32_t first, last; /* ARENA: the live range, as positions of the order, both included; the end of the run is one
                           past the last position */
  rondo_packed_state *packed; /* of a state that is packed, with a reference in the location of the state itself */
  bool reads_rows;            /* of a packed state: the program uses its plain rows, */
                              /* and otherwise, if it uses it, the packed elements */
} rondo_location;

typedef struct rondo_layout {
  rondo_schedule schedule;
  bool has_branches; /* the locations are right in every order that keeps the dependencies, not only in the schedule's
                        own */
  rondo_location *locations;      /* by value: that of its owner */
  rondo_location *workspaces;     /* by operation; NONE: it has none */
  rondo_edges users;              /* by arena item (rondo_layout_location): the positions that use it */
  size_t state_bytes;             /* of the block of states, */
  size_t shared_bytes;            /* of the shared states and cells, each rounded up, */
  size_t own_bytes;               /* and of constants and the gate */
  size_t packed_bytes;            /* of states that are packed, in the blocks above, */
  size_t rows_bytes;              /* and of the plain rows that the program uses of such states */
  size_t check_count;             /* cells of index checks */
  size_t gate_offset, gate_bytes; /* of the own block (tensor/run/index_check.h); no bytes: there is no gate */
  size_t arena_bytes, arena_bound, arena_sum; /* planned; lower bound; without sharing */
  size_t straight_bytes;                      /* planned for the order, whether that plan is used or not */
  size_t branch_bytes;   /* planned for the last branches tried, used or not, or a lower bound; 0: none were tried */
  uint64_t branch_steps; /* of the planner, for all branches that were tried */
  uint32_t reused_plans; /* that an earlier program's decided */
  rondo_structure structure;         /* if there is a list of earlier plans */
  const rondo_earlier_plan *earlier; /* whose order this one has, while the layout is made; NULL: none */
  bool ended_early; /* without branches, though not all widths were tried: too many operators, or steps */
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
  const rondo_sharing *sharing; /* with states and cells that exist already; may be NULL */
  rondo_earlier_plans *plans;   /* of the programs that share; NULL: none */
  rondo_staged_list staged;     /* inputs whose slots each run fills, and outputs */
  bool plain_states;            /* no state may be packed */
} rondo_layout_options;

/* Arena items by number: first the values, then the workspaces of the operations. NULL: the item is not in the arena,
 * or a value whose bytes belong to another one. */
static inline rondo_location *rondo_layout_location(const rondo_layout *layout, size_t item) {
  const size_t values = layout->schedule.values;
  assert(item < values + layout->schedule.operations);
  if (item < values && layout->schedule.owners[item] != item) return NULL;
  rondo_location *location = item < values ? &layout->locations[item] : &layout->workspaces[item - values];
  return location->block == RONDO_BLOCK_ARENA ? location : NULL;
}

/* Errors: INVALID_ARGUMENT with NONE (no output and no update), SHAPE, TYPE or DUPLICATE_NAME (a shared state or cell
 * differs), BAD_OPTIONS (a shared state is packed, and plain_states), LIMIT_EXCEEDED, OUT_OF_MEMORY, and what preparing
 * returns. options may be NULL. Freed by rondo_layout_free, also after a failure. */
RONDO_MUST_USE rondo_status rondo_layout_make(const rondo_program *program, const rondo_layout_options *options,
                                              rondo_layout *out);
void rondo_layout_free(const rondo_program *program, rondo_layout *layout);

#endif
