/* SPDX-License-Identifier: MIT
 * Verification of a flattened graph: finds errors of lifetimes and races, from what its nodes declare and from the
 * allocations around it, which the caller provides as data. <rondo/verify.h> says what is an error and what is a
 * warning, and why.
 *
 * This layer knows no devices: the caller flattens the graph and finds the allocations that addresses belong to. Uses
 * its own memory and keeps only the findings. Threads: any.
 */
#ifndef RONDO_GRAPH_VERIFY_VERIFIER_H
#define RONDO_GRAPH_VERIFY_VERIFIER_H

#include <rondo/verify.h>

#include "graph/graph_internal.h"
#include "graph/verify/happens_before.h"

/* A node of the flattened graph. They are in topological order. */
typedef struct rondo_flat_node {
  const rondo_node_params *params;
  const rondo_graph *graph; /* that contains it; NULL for a node that only joins others */
  uint32_t slot;
} rondo_flat_node;

#define RONDO_RANGE_NAME 64

/* An allocation that the graph did not make. */
typedef struct rondo_known_range {
  const char *begin;
  size_t bytes;
  char name[RONDO_RANGE_NAME];      /* truncated; "" if it has none */
  bool is_graph_memory;             /* of another graph's alloc node: a free node may free it */
  bool is_dead;                     /* nothing is allocated there that the graph may know of: each access is too late */
  bool was_freed;                   /* is_dead because the allocation was freed; else because it is an arena */
  char no_access[RONDO_RANGE_NAME]; /* the device of the memory, if the graph's device may not access it; else "" */
} rondo_known_range;

/* Finds the allocation that contains the address, preferably one that begins there. False if there is none. */
typedef bool (*rondo_find_range)(void *user, const void *address, rondo_known_range *out);

typedef struct rondo_verify_input {
  const rondo_allocator *allocator;
  const rondo_flat_node *nodes;
  rondo_flat_edges edges;
  const rondo_graph *root; /* the graph that is verified, if its nodes belong to several; may be NULL */
  rondo_find_range
      /* NULL: only the graph's own allocations are known. Called for frees first, then in the order of addresses */
      find;
  void *user;
  /* allocated when the graph begins, in memory that the graph's alloc nodes may get after it is freed. They do not
   * overlap */
  const rondo_known_range *held;
  size_t held_count;
  bool knows_all;        /* no graph allocates what `find` does not know */
  bool clone_tags;       /* the graphs are clones: findings have the ids of the nodes that were cloned */
  uint32_t max_findings; /* 0: the default */
  uint32_t widest;       /* for tests: see rondo_verify_order_make; 0: the default */
} rondo_verify_input;

/* *out is made even if nothing is found. */
RONDO_MUST_USE rondo_status rondo_verify(const rondo_verify_input *input, rondo_findings **out);

/* Raises the first error. RONDO_OK if there is none. */
RONDO_MUST_USE rondo_status rondo_findings_raise(const rondo_findings *findings);

#endif
