/* SPDX-License-Identifier: MIT
 * Execs that several recordings share. A *tree exec* is an exec with the number of the segment whose parameters it has.
 * Before another segment with the same work launches it, an update gives it the parameters of that segment.
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

/* Gives the segment of a recording of the function a number, and a tree_exec with the graph's parameters. If the
 * function always captures, uses one of its own execs that the driver can update. If the tree shares execs, or if
 * another exec would exceed max_exec_bytes, uses an existing one with the same work. Otherwise makes a new one, sets
 * *out_made, and evicts recordings to respect the limit. The caller keeps the graph. Errors as rondo_instantiate.
 *
 * `is_trial`: the segment may soon release the exec, so nothing is evicted for it. If a new exec stays,
 * rondo_tree_exec_keep evicts. */
RONDO_MUST_USE rondo_status rondo_tree_exec_acquire(rondo_function *function, rondo_graph *graph, bool is_trial,
                                                    rondo_segment *segment, bool *out_made);
void rondo_tree_exec_keep(rondo_tree *tree, const rondo_segment *segment);
/* Releases the segment's tree_exec, if it has one. */
void rondo_tree_exec_release(rondo_tree *tree, rondo_segment *segment);

/* Gives a tree_exec that has the parameters of another segment those of this one. */
RONDO_MUST_USE rondo_status rondo_tree_exec_switch(rondo_tree *tree, const rondo_recorded_call *call,
                                                   const rondo_segment *segment);

#endif
