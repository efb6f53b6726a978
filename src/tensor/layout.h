/* SPDX-License-Identifier: MIT
 * Which operations of a program run, in which order, and where each value lies: the decisions of a compilation that
 * need no device. What nobody reads is dropped. States, cells and constants lie in the persistent block, for ever;
 * inputs and results lie in the arena, whose bytes are shared by values that are not live together. An input keeps its
 * place for the whole run, because the user writes it between runs; an output keeps its place to the end; an
 * operation's workspace is there while the operation runs.
 */
#ifndef RONDO_TENSOR_LAYOUT_H
#define RONDO_TENSOR_LAYOUT_H

#include <rondo/plan.h>

#include "tensor/program_internal.h"

/* Of every value's address, and its bytes are rounded up to it: what vector units and copies of any device want. */
#define RONDO_VALUE_ALIGNMENT 256

typedef enum rondo_block { RONDO_BLOCK_NONE, RONDO_BLOCK_PERSISTENT, RONDO_BLOCK_ARENA } rondo_block;

typedef struct rondo_place {
  rondo_block block; /* NONE: a result of an operation that does not run */
  size_t offset;
  size_t bytes;         /* ARENA: as planned, rounded up */
  uint32_t first, last; /* ARENA: the positions of the order between which it lives, both included; the end of the run
                           is one past the last */
} rondo_place;

typedef struct rondo_layout {
  uint32_t *order; /* operations that run, views among them: first those that compute, then those that update states */
  size_t order_count;
  rondo_place *places;       /* one a value; a view's is that of what it shows */
  rondo_place *workspaces;   /* one an operation; NONE where it has none */
  size_t operations, values; /* of the program: entries allocated */
  size_t persistent_bytes;   /* with the cells of index checks at its end */
  size_t check_offset;
  size_t check_count;
  size_t arena_bytes, arena_bound, arena_sum; /* planned; lower bound; without sharing */
} rondo_layout;

/* The operations that run are prepared into the resources, which may be NULL: they then have no workspaces. Errors:
 * INVALID_ARGUMENT (no output and no update), LIMIT_EXCEEDED, OUT_OF_MEMORY, and what preparing says. Freed by
 * rondo_layout_free, also after a failure. */
RONDO_MUST_USE rondo_status rondo_layout_make(const rondo_program *program, rondo_resources *resources,
                                              rondo_layout *out);
void rondo_layout_free(const rondo_program *program, rondo_layout *layout);

#endif
