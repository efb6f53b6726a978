/* SPDX-License-Identifier: MIT
 * Execs that several recordings share (shared_execs.c). A *tree exec* is an exec with the number of the segment whose
 * parameters it has now. Another segment with the same work updates the exec to its own parameters before it launches.
 */
#ifndef RONDO_TREE_RECORD_SHARED_EXECS_H
#define RONDO_TREE_RECORD_SHARED_EXECS_H

#include "tree/tree_internal.h"

struct rondo_tree_exec {
  rondo_tree_exec *next; /* of the tree */
  rondo_exec *exec;
  uint64_t fingerprint;
  uint32_t references; /* segments */
  uint64_t holds;      /* number of the segment whose parameters it has; 0: none */
  uint64_t bytes[2];   /* of the exec: host, device */
};

/* Whether recordings of the tree keep their graphs, so that they can share. */
static inline bool rondo_tree_shares(const rondo_tree *tree) {
  return tree->options.share_execs || tree->options.max_exec_bytes != 0;
}

/* Gives the segment a number, and a tree_exec with the graph's parameters. It is an existing one if the tree shares
 * execs or has no room for another; otherwise a new one, which sets *out_made. The caller keeps the graph. Errors as
 * rondo_instantiate. */
RONDO_MUST_USE rondo_status rondo_tree_exec_acquire(rondo_tree *tree, rondo_graph *graph, rondo_segment *segment,
                                                    bool *out_made);
/* The same for an exec that may be released at once: nothing is evicted for it. If it was made and stays, keep evicts.
 * */
RONDO_MUST_USE rondo_status rondo_tree_exec_try(rondo_tree *tree, rondo_graph *graph, rondo_segment *segment,
                                                bool *out_made);
void rondo_tree_exec_keep(rondo_tree *tree, const rondo_segment *segment);
/* The segment releases its tree_exec, if it has one. */
void rondo_tree_exec_release(rondo_tree *tree, rondo_segment *segment);

/* Restores the segment's parameters in a tree_exec that has those of another segment. */
RONDO_MUST_USE rondo_status rondo_tree_exec_switch(rondo_tree *tree, const rondo_recorded_call *call,
                                                   const rondo_segment *segment);

#endif
