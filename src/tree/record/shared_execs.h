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
  uint64_t holds;      /* number of the segment whose parameters it has; 0: nobody's */
  uint64_t bytes[2];   /* of the exec: host, device */
};

/* Whether recordings of the tree keep their graphs, so that they can share. */
static inline bool rondo_tree_shares(const rondo_tree *tree) {
  return tree->options.share_execs || tree->options.max_exec_bytes != 0;
}

/* Gives the segment, which gets a number, a tree_exec with the graph's parameters: one that there is, when the tree
 * shares, or has no room for another; else a new one, which *out_made says. The graph stays the caller's. Errors as
 * rondo_instantiate. */
RONDO_MUST_USE rondo_status rondo_tree_exec_acquire(rondo_tree *tree, rondo_graph *graph, rondo_segment *segment,
                                                    bool *out_made);
/* The same for what may be let go of at once: nothing is evicted for it. Where it was made and stays, keep does that.
 */
RONDO_MUST_USE rondo_status rondo_tree_exec_try(rondo_tree *tree, rondo_graph *graph, rondo_segment *segment,
                                                bool *out_made);
void rondo_tree_exec_keep(rondo_tree *tree, const rondo_segment *segment);
/* The segment releases its tree_exec, if it has one. */
void rondo_tree_exec_release(rondo_tree *tree, rondo_segment *segment);

/* The tree_exec gets the segment's parameters back from another one. */
RONDO_MUST_USE rondo_status rondo_tree_exec_switch(rondo_tree *tree, const rondo_recorded_call *call,
                                                   const rondo_segment *segment);

#endif
