/* SPDX-License-Identifier: MIT
 * What a run that is not recorded consists of, as nodes and what must come before what: copies of staged inputs first,
 * what says that all of them are done, operators in the order of the schedule, copies of staged outputs. Any order that
 * keeps the edges gives what the order of the nodes gives.
 */
#ifndef RONDO_TENSOR_RUN_RUN_NODES_H
#define RONDO_TENSOR_RUN_RUN_NODES_H

#include "tensor/compile/layout.h"
#include "tensor/run/compiled.h"

typedef enum rondo_run_node_kind {
  RONDO_RUN_INPUT,
  RONDO_RUN_TAKEN, /* all inputs are copied */
  RONDO_RUN_STEPS, /* of one kernel's operators */
  RONDO_RUN_OUTPUT
} rondo_run_node_kind;

struct rondo_run_node {
  rondo_run_node_kind kind;
  uint32_t first, end; /* STEPS: steps of the compiled program; INPUT and OUTPUT: `first` is its number */
};

typedef struct rondo_run_nodes {
  rondo_run_node *items;
  uint32_t count;
  rondo_edges before;
} rondo_run_nodes;

/* The steps are emitted. Errors: OUT_OF_MEMORY. Freed by the caller also after a failure, but for the items when it has
 * taken them. */
RONDO_MUST_USE rondo_status rondo_run_nodes_make(const rondo_program *program, const rondo_layout *layout,
                                                 const rondo_compiled *compiled, rondo_run_nodes *out);
void rondo_run_nodes_free(const rondo_allocator *allocator, rondo_run_nodes *nodes);

/* Queues a node's work on the stream. */
RONDO_MUST_USE rondo_status rondo_run_node_play(rondo_compiled *compiled, const rondo_run_node *node,
                                                rondo_stream *stream);

#endif
