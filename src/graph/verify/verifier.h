/* SPDX-License-Identifier: MIT
 * Verification of a flattened graph: lifetimes and races, from what its nodes declare and from the allocations around
 * it, which come as data (<rondo/verify.h> says what is an error and what a warning, and why).
 *
 * Nothing here knows a device: the caller flattens the graph and looks up the allocations that addresses belong to.
 * Works on its own memory and keeps nothing but the findings. Any thread.
 */
#ifndef RONDO_GRAPH_VERIFY_VERIFIER_H
#define RONDO_GRAPH_VERIFY_VERIFIER_H

#include <rondo/verify.h>

#include "graph/graph_internal.h"
#include "graph/verify/happens_before.h"

/* A node of the flattened graph, in a topological order. */
typedef struct rondo_flat_node {
  const rondo_node_params *params;
  const rondo_graph *graph; /* that it belongs to; NULL for a node that only joins others */
  uint32_t slot;
} rondo_flat_node;

#define RONDO_RANGE_NAME 64

/* An allocation that the graph did not make. */
typedef struct rondo_known_range {
  const char *begin;
  size_t bytes;
  char name[RONDO_RANGE_NAME];      /* cut; "" when it has none */
  bool is_graph_memory;             /* of another graph's alloc node: a free node may name it */
  bool is_dead;                     /* nothing lives there that the graph may know of: each access is too late */
  bool was_freed;                   /* is_dead because the allocation was freed; else it is an arena */
  char no_access[RONDO_RANGE_NAME]; /* the device that it is on, when the graph's may not access it; else "" */
} rondo_known_range;

/* The allocation that the address is in: one that begins there before any other. False when there is none. */
typedef bool (*rondo_find_range)(void *user, const void *address, rondo_known_range *out);

typedef struct rondo_verify_input {
  const rondo_allocator *allocator;
  const rondo_flat_node *nodes;
  rondo_flat_edges edges;
  const rondo_graph *root; /* the graph that is verified, where its nodes are of several; may be NULL */
  rondo_find_range
      find; /* NULL: no allocation but the graph's own is known. Asked for frees, then in the order of addresses */
  void *user;
  const rondo_known_range *held; /* what lives when the graph begins, in memory that its alloc nodes may be given: they
                                    may have it after its free only. Apart from each other */
  size_t held_count;
  bool knows_all;        /* what `find` does not know, no graph allocates */
  bool clone_tags;       /* the graphs are clones: findings name the nodes of those that were cloned */
  uint32_t max_findings; /* 0: the default */
  uint32_t widest;       /* for tests: see rondo_verify_order_make; 0: the default */
} rondo_verify_input;

/* *out is made also when nothing was found. */
RONDO_MUST_USE rondo_status rondo_verify(const rondo_verify_input *input, rondo_findings **out);

/* Raises the first error; RONDO_OK when there is none. */
RONDO_MUST_USE rondo_status rondo_findings_raise(const rondo_findings *findings);

#endif
