/* SPDX-License-Identifier: MIT
 * An eager run as nodes and their dependencies: first the copies of staged inputs and the event after all of them, then
 * operators in the schedule's order, then the copies of staged outputs. Any order that keeps the edges gives the
 * results of the order of the nodes.
 */
#ifndef RONDO_TENSOR_RUN_RUN_NODES_H
#define RONDO_TENSOR_RUN_RUN_NODES_H

#include "tensor/compile/layout.h"
#include "tensor/run/compiled.h"

typedef enum rondo_run_node_kind {
  RONDO_RUN_INPUT,
  RONDO_RUN_TAKEN, /* the event after the copies of all inputs */
  RONDO_RUN_STEPS, /* of the operators of one kernel */
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

/* For a program whose steps are emitted. Errors: OUT_OF_MEMORY. The caller frees it also after a failure; a caller that
 * keeps the items sets them to NULL. */
RONDO_MUST_USE rondo_status rondo_run_nodes_make(const rondo_program *program, const rondo_layout *layout,
                                                 const rondo_compiled *compiled, rondo_run_nodes *out);
void rondo_run_nodes_free(const rondo_allocator *allocator, rondo_run_nodes *nodes);

/* Enqueues a node's work on the stream. */
RONDO_MUST_USE rondo_status rondo_run_node_enqueue(rondo_compiled *compiled, const rondo_run_node *node,
                                                   rondo_stream *stream);

#endif
